"""Folders of KITTI's label text with invented scenes: cars, vans, people, regions, sizes on the limits, tied scores."""

from __future__ import annotations

import math

import numpy as np

#: Type, height, width and length in metres, and how often each occurs.
TYPES = (
    ("Car", 1.5, 1.6, 3.9, 6),
    ("Van", 2.2, 1.9, 5.0, 2),
    ("Pedestrian", 1.7, 0.6, 0.8, 3),
    ("Person_sitting", 1.2, 0.6, 0.8, 1),
    ("Cyclist", 1.7, 0.6, 1.8, 3),
    ("Truck", 3.0, 2.5, 9.0, 1),
)
REGION = "-1 -1 -10 {:.2f} {:.2f} {:.2f} {:.2f} -1 -1 -1 -1000 -1000 -1000 -10"


def line(name, truncated, occluded, box, space, alpha):
    """A line of labels."""
    return " ".join(
        [name, f"{truncated:.2f}", str(occluded), f"{alpha:.2f}", *(f"{one:.2f}" for one in (*box, *space))]
    )


def scene(rng, tied=True):
    """The lines of labels and of results of one image."""
    labels, found = [], []
    weights = np.array([one[-1] for one in TYPES], float)
    for _ in range(rng.integers(0, 9)):
        name, *sizes = TYPES[rng.choice(len(TYPES), p=weights / weights.sum())][:4]
        x, y = rng.uniform(0, 1000), rng.uniform(100, 200)
        height = float(rng.choice([24.9, 25, 26, 40, 41, rng.uniform(20, 120)]))
        width = height * rng.uniform(0.5, 1.8)
        box = np.array([x, y, x + width, y + height])
        space = np.array([*sizes, rng.uniform(-20, 20), 1.65, rng.uniform(8, 60), rng.uniform(-math.pi, math.pi)])
        alpha = rng.uniform(-math.pi, math.pi)
        truncated = float(rng.choice([0, 0, 0.1, 0.15, 0.3, 0.5, 0.8]))
        labels.append(line(name, truncated, rng.choice([0, 0, 0, 1, 2, 3]), box, space, alpha))
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            other = name if rng.random() < 0.85 else TYPES[rng.integers(len(TYPES))][0]
            near = box + rng.normal(0, rng.choice([0, 0.02, 0.1]) * height, 4)
            near[2:] = np.maximum(near[2:], near[:2] + 1)
            moved = space + rng.normal(0, rng.choice([0, 0.02, 0.1]), 7) * [1, 1, 1, 3, 1, 3, 1]
            moved[:3] = np.maximum(moved[:3], 0.1)
            score = rng.random()
            found.append(
                line(other, -1, -1, near, moved, alpha + rng.normal(0, 0.3)) + f" {round(score, 1 if tied else 9)}"
            )
    for _ in range(rng.integers(0, 2)):
        x, y = rng.uniform(0, 1000), rng.uniform(100, 200)
        box = x, y, x + 60, y + 60
        labels.insert(rng.integers(0, len(labels) + 1), f"DontCare {REGION.format(*box)}")
        if rng.random() < 0.7:
            space = 1.5, 1.6, 3.9, x / 30, 1.6, 30.0, 0.3
            found.append(line("Car", -1, -1, (x + 5, y + 5, x + 55, y + 55), space, 0.2) + f" {round(rng.random(), 2)}")
    for _ in range(rng.integers(0, 3)):
        x, y, height = rng.uniform(0, 1000), rng.uniform(100, 200), rng.uniform(20, 60)
        space = 1.5, 1.6, 3.9, rng.uniform(-20, 20), 1.6, rng.uniform(8, 60), 0.3
        found.append(line("Car", -1, -1, (x, y, x + 50, y + height), space, 0.2) + f" {round(rng.random(), 2)}")
    return labels, [found[at] for at in rng.permutation(len(found))]


def write(folder, seed, images=8, tied=False):
    """Write labels, and the results of two models."""
    rng = np.random.default_rng(seed)
    for name in ("label_2", "one", "two"):
        (folder / name).mkdir(parents=True)
    for image in range(images):
        labels, found = scene(rng, tied)
        other = [" ".join([*text.split()[:-1], f"{1 - float(text.split()[-1]):.9f}"]) for text in found]
        for name, lines in (("label_2", labels), ("one", found), ("two", other)):
            (folder / name / f"{image:06d}.txt").write_text("".join(f"{text}\n" for text in lines))
    return folder
