"""Random segments of time, in ActivityNet's JSON and THUMOS14's lines."""

from __future__ import annotations

import random

import numpy as np

LABELS = ("jump", "run", "throw", "unseen")


def scene(seed, *, videos=8, unknown=False, whole=False):
    """Return the database and results: near, double, stray and exact detections, tied scores, several subsets.

    With `unknown` some detections are in videos of another subset, or of none; with `whole` times are whole seconds, so
    that overlaps are tied, and some segments have no length.
    """
    draw = random.Random(seed)
    truth, results = {}, {}
    for number in range(videos):
        video = f"v{number:03d}"
        objects, found = [], []
        for _ in range(draw.randint(0, 5)):
            label, start, length = draw.choice(LABELS[:3]), draw.uniform(0, 60), draw.uniform(1, 20)
            ends = [round(start), round(start) + round(length / 4)] if whole else [start, start + length]
            objects.append({"segment": ends, "label": label})
            for _ in range(draw.choice([0, 1, 1, 2, 3])):
                shift = [draw.choice([-1, 0, 0, 1]) for _ in ends] if whole else [draw.gauss(0, 2) for _ in ends]
                near = sorted(end + by for end, by in zip(ends, shift, strict=True))
                of = label if draw.random() < 0.85 else draw.choice(LABELS[:3])
                found.append({"label": of, "segment": near, "score": round(draw.random(), 1 if whole else 2)})
        for _ in range(draw.randint(0, 3)):
            start = draw.uniform(0, 60)
            stray = [start, start + draw.uniform(0, 9)]
            found.append({"label": draw.choice(LABELS[:3]), "segment": stray, "score": round(draw.random() / 2, 2)})
        if objects and draw.random() < 0.3:
            objects.append(dict(objects[0]))
        draw.shuffle(found)
        truth[video] = {"subset": "validation", "duration": 90.0, "annotations": objects}
        results[video] = found
    if unknown:
        extra = {"label": "jump", "segment": [1.0, 5.0], "score": 0.7}
        truth["w000"] = {"subset": "training", "annotations": [{"segment": [1.0, 5.0], "label": LABELS[3]}]}
        order = [*results, "w000", "nowhere"]
        draw.shuffle(order)
        results = {video: results.get(video, [dict(extra)]) for video in order}
    return truth, results


def thumos(seed, decimals=4, videos=8):
    """Return objects, ambiguous segments (video, start, end, class) and detections, which have a score besides.

    With four decimals no two scores are equal.
    """
    rng = np.random.default_rng(seed)
    objects, ambiguous, found = [], [], []
    scores = (round(score, decimals) for score in rng.permutation(10_000) / 1e4)
    for video in (f"video_test_{n:07d}" for n in range(videos)):
        for label in (7, 26, 0):
            for _ in range(rng.integers(0, 4)):
                start, length = rng.integers(0, 60), rng.integers(2, 12)
                (objects if label else ambiguous).append((video, float(start), float(start + length), label))
                for _ in range(rng.integers(0, 3)):
                    ends = start + rng.integers(-1, 2), start + length + rng.integers(-1, 2)
                    found.append((video, *map(float, ends), int(label or 7), float(next(scores))))
    found.append(("video_test_0000099", 1.0, 5.0, 7, float(next(scores))))
    return objects, ambiguous, found


def write_thumos(folder, objects, ambiguous, found):
    (folder / "annotation").mkdir()
    for name, label in (("Ambiguous", 0), ("BaseballPitch", 7), ("Diving", 26)):
        lines = "".join(f"{one[0]}  {one[1]} {one[2]}\n" for one in (*objects, *ambiguous) if one[3] == label)
        (folder / "annotation" / f"{name}_test.txt").write_text(lines)
    (folder / "annotation" / "detclasslist.txt").write_text("7 BaseballPitch\n26 Diving\n")
    (folder / "found.txt").write_text("".join(" ".join(map(str, one)) + "\n" for one in found))
