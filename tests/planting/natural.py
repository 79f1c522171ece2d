"""Clean scenes with parts that differ by nature: classes of a long tail, videos, night, cameras."""

from __future__ import annotations

import numpy as np

from planting.scenes import Scene, boxes, detected

NATURAL_KINDS = ("long-tailed", "videos", "day and night", "cameras")


def natural(seed, kind):
    """A clean scene of one of `NATURAL_KINDS`."""
    rng = np.random.default_rng([seed, 100 + NATURAL_KINDS.index(kind)])
    return _videos(rng) if kind == "videos" else _photographs(rng, kind)


def _named(rng, count):
    ids = np.sort(rng.choice(np.arange(10, 600_000), count, replace=False))
    return ids, [f"{one:012d}.jpg" for one in ids]


def _photographs(rng, kind):
    """Images that do not depend on each other; those at night, or of one camera, are harder and emptier than others."""
    count, classes = 600, 40 if kind == "long-tailed" else 6
    shapes = np.array([(640, 480), (480, 640), (1280, 720)])
    ids, names = _named(rng, count)
    sizes = shapes[rng.integers(3, size=count)]
    hard, mean, false = rng.normal(0, 0.5, count), np.full(count, 5.0), 8
    usual = 1.0 / np.arange(1, classes + 1) if kind == "long-tailed" else rng.dirichlet(np.full(classes, 3.0))
    if kind == "day and night":  # one part by the ids, in which a third of the objects is found less well
        night = np.arange(count) >= int(rng.uniform(0.3, 0.9) * count)
        hard, mean = hard + 0.9 * night, np.where(night, 3.0, 6.0)
    if kind == "cameras":
        of = np.sort(rng.integers(4, size=count))
        sizes, hard = (
            np.array([(640, 480), (800, 600), (1280, 720), (1920, 1080)])[of],
            hard + np.array([0, 0.3, -0.3, 0.8])[of],
        )
        names = [f"cam{one}/{name}" for one, name in zip(of, names, strict=True)]
    image = np.repeat(np.arange(count), np.maximum(rng.poisson(mean), 1))
    label = rng.choice(classes, image.size, p=usual / usual.sum())
    box = boxes(rng, sizes[image])
    side = np.sqrt(box[:, 2] * box[:, 3])
    ease = rng.normal(2.6, 0.6, classes)[label] + 0.7 * np.log(side / 60) - hard[image] + rng.normal(0, 0.7, image.size)
    made = Scene.of_objects(sizes, ids, names, image, label, box, classes)
    return detected(rng, made, ease, usual / usual.sum(), false)


def _videos(rng):
    """Thirty videos of twenty frames: an object that is hard to find is so in all of its frames."""
    videos, frames, classes = 30, 20, 5
    sizes = np.tile([(1280, 720)], (videos * frames, 1))
    ids, names = _named(rng, videos * frames)
    usual = rng.dirichlet(np.full(classes, 3.0))
    tracks = np.repeat(np.arange(videos), rng.poisson(6, videos) + 1)
    label = rng.choice(classes, tracks.size, p=usual)
    first = boxes(rng, np.tile([(1280, 720)], (tracks.size, 1)))
    speed = rng.normal(0, 6, (tracks.size, 2))
    side = np.sqrt(first[:, 2] * first[:, 3])
    of_track = rng.normal(2.6, 0.6, classes)[label] + 0.7 * np.log(side / 60) + rng.normal(0, 0.8, tracks.size)
    of_track -= rng.normal(0, 0.4, videos)[tracks]
    image = (tracks[:, None] * frames + np.arange(frames)).ravel()
    box = np.repeat(first, frames, axis=0)
    box[:, :2] += (speed[:, None] * np.arange(frames)[None, :, None]).reshape(-1, 2)
    box[:, :2] = np.clip(box[:, :2], 0, np.array([1280, 720]) - box[:, 2:])
    order = np.argsort(image, kind="stable")
    ease = np.repeat(of_track, frames) + rng.normal(0, 0.5, image.size)
    made = Scene.of_objects(sizes, ids, names, image[order], np.repeat(label, frames)[order], box[order], classes)
    return detected(rng, made, ease[order], usual, 4)
