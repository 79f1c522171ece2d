"""Ground truth and detections that share images and categories and nothing else, of many kinds: no reading makes them agree.

Nothing here imports the library under test, nor shares a constant with it.
"""

from __future__ import annotations

import numpy as np

#: Width and height of the images that a data set draws from.
SHAPES = [
    [(640, 480)],
    [(640, 480), (480, 640), (500, 375)],
    [(512, 512)],
    [(1280, 720)],
    [(1242, 375)],
    [(1920, 1080), (800, 1333)],
]

#: What would make them agree, if it were true.
CLAIMS = {
    "image_ids_shifted",
    "image_ids_positions",
    "category_ids_shifted",
    "category_ids_positions",
    "classes_permuted",
    "classes_renamed",
    "corners_as_sizes",
    "sizes_as_corners",
    "centres_as_corners",
    "sides_swapped",
    "axes_swapped",
    "normalised_boxes",
    "scaled_boxes",
    "turned_boxes",
    "shifted_boxes",
    "inverted_scores",
    "image_sizes_swapped",
}


def _anywhere(rng, n):
    one, other = rng.random((2, n, 2))
    near = np.minimum(one, other)
    return near, np.maximum(np.maximum(one, other) - near, 0.01)


def _lognormal(rng, n):
    sides = np.clip(rng.lognormal(-1.8, 0.8, (n, 2)), 0.01, 0.95)
    return rng.random((n, 2)) * (1 - sides), sides


def _central(rng, n):
    sides = np.clip(rng.normal(0.5, 0.15, (n, 2)), 0.05, 0.95)
    return (1 - sides) * np.clip(rng.normal(0.5, 0.1, (n, 2)), 0, 1), sides


def _small(rng, n):
    sides = np.clip(rng.lognormal(-3.5, 0.4, (n, 2)), 0.003, 0.95)
    return rng.random((n, 2)) * (1 - sides), sides


def _on_a_horizon(rng, n):
    height = np.clip(rng.lognormal(-1.5, 0.4, n), 0.02, 0.6)
    x = rng.random(n) * (1 - 0.4 * height)
    y = np.clip(0.5 + rng.normal(0, 0.05, n) - height / 2, 0, 1 - height)
    return np.c_[x, y], np.c_[0.4 * height, height]


def _on_a_grid(rng, n):
    return rng.integers(0, 9, (n, 2)) / 10, np.full((n, 2), 0.1)


#: Where boxes lie, and how large they are, as fractions of an image.
PLACES = (_anywhere, _lognormal, _central, _small, _on_a_horizon, _on_a_grid)


def pair(seed):
    """Columns of ground truth and of detections, by the names of `from_arrays`.

    The detections are on images of the sizes that are said, of one size, turned, or of any: they may lie outside.
    """
    rng = np.random.default_rng([seed, 16])
    images = int(np.exp(rng.uniform(0, np.log(400))))
    shapes = np.array(SHAPES[rng.integers(len(SHAPES))])
    sizes = shapes[rng.integers(len(shapes), size=images)]
    dense = rng.random() < 0.6
    ids = np.arange(images) + rng.integers(2) if dense else np.sort(rng.choice(600_000, images, replace=False))
    count = int(rng.integers(1, 4)) if rng.random() < 0.4 else int(rng.integers(2, 80))
    classes = (
        np.arange(count) + rng.integers(2) if rng.random() < 0.6 else np.sort(rng.choice(200, count, replace=False))
    )
    kind = PLACES[rng.integers(len(PLACES))]
    sides = []
    for most in (20, 60):
        n = max(1, int(images * np.exp(rng.uniform(np.log(0.5), np.log(most)))))
        at = np.sort(rng.integers(images, size=n))
        on = sizes[at]
        if sides:
            frames = (
                on,
                np.full((n, 2), rng.choice([320, 512, 640, 1000])),
                on[:, ::-1],
                rng.integers(200, 2000, (1, 2)),
            )
            on = frames[rng.integers(len(frames))]
            kind = kind if rng.random() < 0.4 else PLACES[rng.integers(len(PLACES))]
        near, far = kind(rng, n)
        weights = rng.dirichlet(np.full(count, rng.choice([0.2, 1.0, 10.0])))
        boxes = np.concatenate([near * on, far * on], axis=1)
        if rng.random() < 0.3:
            boxes = np.round(boxes) + np.array([0, 0, 1, 1])
        sides.append({"image_ids": ids[at], "category_ids": classes[rng.choice(count, n, p=weights)], "boxes": boxes})
    truth, found = sides
    return {**truth, "images": ids, "categories": classes, "image_sizes": sizes[:, ::-1]}, {
        **found,
        "scores": rng.random(len(found["boxes"])),
    }
