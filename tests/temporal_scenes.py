"""Random segments of time, in ActivityNet's JSON."""

from __future__ import annotations

import random

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
