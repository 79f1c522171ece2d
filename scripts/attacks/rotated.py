"""Rotated boxes of all sorts in DOTA's files, as they are or damaged: AP comes out bit for bit, or it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.documents import ANYTHING, damage
from attacks.texts import lay_out

HEADER = "imagesource:GoogleEarth\ngsd:null\n"


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Pairs of quadrilaterals, thin, far, crossing and empty ones too, some as objects and some as detections."""
    import naive_rotated as twin

    import detmap

    images = [f"P{n}" for n in range(int(rng.integers(1, 4)))]
    count = int(rng.integers(1, 23))
    both = np.stack(twin.pairs(int(rng.integers(2**32)), count))
    # Larger areas are in no range: those of DOTA's protocols are VOC's, which end at 1e10.
    small = (np.ptp(both.reshape(2, count, 4, 2), axis=2) < 1e5).all(axis=(0, 2))
    objects, detections = both[:, small].tolist()
    labels = {f"labelTxt/{image}.txt": HEADER if rng.random() < 0.7 else "" for image in images}
    results = {f"Task1/Task1_{name}.txt": "" for name in ("ship", "plane")}
    truth, found = [], []
    for own, other in zip(objects, detections, strict=True):
        image, name = str(rng.choice(images)), str(rng.choice(["ship", "plane"]))
        difficult, score = int(rng.random() < 0.2), int(rng.integers(1, 5)) / 4
        end = str(rng.choice(["\n", "\r\n", " \n", "\n\n"]))
        labels[f"labelTxt/{image}.txt"] += f"{' '.join(map(repr, own))} {name} {difficult}{end}"
        truth.append((image, name, own, bool(difficult)))
        for quad in (other, own)[: int(rng.integers(0, 3))]:
            results[f"Task1/Task1_{name}.txt"] += f"{image} {score} {' '.join(map(repr, quad))}{end}"
            found.append((image, name, quad, score))
    protocol = str(rng.choice(["dota", "dota-area"]))
    expected = twin.dota(truth, found, protocol == "dota")
    must, what = Must(value=[expected[name] for name in sorted(expected)]), protocol
    files = {name: text.encode() for name, text in {**labels, **results}.items()}
    if rng.random() < 0.6:
        name = str(rng.choice(list(files)))
        files[name] = damage(rng, files[name])
        must, what = Must(value=ANYTHING, refuse=True), f"{protocol}, damaged {name}"
    lay_out(folder / "dota", files)

    def run() -> Any:
        paths = [folder / "dota" / name for name in ("labelTxt", "Task1")]
        truth = detmap.read(paths[0], "ground_truth", format="dota", iou_type="rotated")
        found = detmap.read(paths[1], ground_truth=truth, format="dota", iou_type="rotated")
        result = detmap.evaluate(truth, found, protocol)
        made = {name: value for name, value in result.items() if name.startswith("AP_")}
        return [made[name] for name in sorted(made) if made[name] == made[name]]

    return Attack(f"{what}: {files!r}"[:1500], run, must, sum(map(len, files.values())))
