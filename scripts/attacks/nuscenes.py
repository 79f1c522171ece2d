"""nuScenes' results, samples and tables, as they are or damaged: every metric comes out bit for bit, or it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.documents import ANYTHING, damage, spell

#: What stands in place of a value of a box.
_ODD: tuple[Any, ...] = (
    None,
    True,
    "",
    "1",
    [],
    {},
    [[[]]],
    -1,
    0,
    1e308,
    -1e308,
    1e-320,
    10**400,
    [1.0],
    [0.0] * 3,
    [1e200] * 4,
)


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """A scene with ties, racks and unknown velocities, in other spellings, with a value or bytes changed."""
    import moving_scenes
    import naive_moving

    import detmap

    names = moving_scenes.NAMES[: int(rng.integers(1, 11))]
    samples, results = moving_scenes.scene(int(rng.integers(2**32)), int(rng.integers(1, 7)), names=names)
    if not any(results["results"].values()):
        return attack(rng, folder)
    must, what = Must(), "nuscenes"
    if rng.random() < 0.3:
        boxes = [one["boxes"] for one in samples["samples"]] + list(results["results"].values())
        own = boxes[int(rng.choice([at for at, one in enumerate(boxes) if one]))]
        box = own[int(rng.integers(len(own)))]
        name = str(rng.choice(list(box)))
        box[name] = _ODD[int(rng.integers(len(_ODD)))]
        must, what = Must(value=ANYTHING, refuse=True), f"nuscenes, {name} {box[name]!r}"
    files = {}
    for name, document in (("samples", samples), ("results", results)):
        text = spell(rng, document, int(rng.integers(2))) if what == "nuscenes" else json.dumps(document)
        files[name] = text.encode()
    if what == "nuscenes":  # of the samples in the order in which they are spelled, which decides among equal scores
        expected = naive_moving.evaluate(*map(json.loads, files.values()))
        must = Must(value=[expected[name] for name in sorted(expected)])
    if rng.random() < 0.4:
        name = str(rng.choice(list(files)))
        files[name] = damage(rng, files[name])
        must, what = Must(value=ANYTHING, refuse=True), f"{what}, damaged {name}"
    for name, data in files.items():
        (folder / f"{name}.json").write_bytes(data)

    def run() -> Any:
        paths = [folder / f"{name}.json" for name in files]
        truth = detmap.read(paths[0], "ground_truth", format="nuscenes", iou_type="centre-distance")
        found = detmap.read(paths[1], ground_truth=truth, format="nuscenes", iou_type="centre-distance")
        result = detmap.evaluate(truth, found, "nuscenes")
        return [result[name] for name in sorted(result)]

    return Attack(what, run, must, sum(map(len, files.values())))
