"""Boxes and masks that say different things: the kind that is scored is the one that was read or asked for, and is named."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks import REFUSE, Attack, Must
from attacks.scenes import THRESHOLDS, Records, average_precision, scene

SIDE = 100
WAYS = {"iou_thresholds": THRESHOLDS, "area_ranges": {"all": (0, 1e10)}, "max_dets": [100]}


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Tables read for one kind of shape or two, under rules that leave the kind open, fix it, or ask for one."""
    import detmap

    truth, results = scene(rng)
    inner = [rectangle(rng, record) for record in (*truth["annotations"], *results)]
    shapes = inner[: len(truth["annotations"])], inner[len(truth["annotations"]) :]
    boxless = bool(rng.random() < 0.3)
    documents = [masked(truth["annotations"], shapes[0], False), masked(results, shapes[1], boxless)]
    read = [str(rng.choice(["bbox", "segm"])) for _ in range(2)]
    asked = [None, None, "bbox", "segm"][int(rng.integers(4))]
    fixed = [None, None, "bbox", "segm"][int(rng.integers(4))]
    kind = expected(read, asked, fixed)
    must = REFUSE
    if kind is not None:
        as_boxes = [kind == "segm", kind == "segm" or boxless]
        sides = [
            [{**one, "bbox": box} if use else one for one, box in zip(records, boxes, strict=True)]
            for records, boxes, use in zip((truth["annotations"], results), shapes, as_boxes, strict=True)
        ]
        must = Must([*average_precision({**truth, "annotations": sides[0]}, sides[1]), float(kind == "segm")])
    protocol: Any = "coco"
    if fixed is not None:
        protocol = dataclasses.replace(detmap.PRESETS["coco"], name="fixed", iou_type=fixed)

    def run() -> Any:
        text = json.dumps({**truth, "annotations": documents[0]}).encode()
        one = detmap.read_coco(text, iou_type=read[0])
        other = detmap.read_coco_results(json.dumps(documents[1]).encode(), one, iou_type=read[1])
        result = detmap.evaluate(one, other, protocol, iou_type=asked, **WAYS)
        named = result.protocol.iou_type
        if named not in repr(result) or not all(f"{named} IoU" in row for row in result.summary()):
            return f"not named: {result!r}"
        precision = result.precision
        means = [row[~np.isnan(row)] for row in precision]
        return [*(float(np.mean(row)) if row.size else float("nan") for row in means), float(named == "segm")]

    what = f"read for {read}, asked {asked}, protocol for {fixed}, boxes {'left out' if boxless else 'given'}"
    return Attack(f"{what}: {json.dumps([truth, documents])}"[:1500], run, must)


def expected(read: list[str], asked: str | None, fixed: str | None) -> str | None:
    """The kind that is scored; None where that must be refused."""
    if asked is not None:
        return asked if asked == "bbox" or read == ["segm", "segm"] else None
    if fixed is not None:
        return fixed if read == [fixed, fixed] else None
    return read[0] if read[0] == read[1] else None


def rectangle(rng: np.random.Generator, record: dict[str, Any]) -> list[float]:
    """A box of whole pixels, which is a mask too, near a record's own."""
    x, y, w, h = (max(int(value), 1) + int(rng.integers(0, 4)) for value in record["bbox"])
    return [float(x), float(y), float(min(w, SIDE - x)), float(min(h, SIDE - y))]


def masked(records: Records, boxes: list[list[float]], boxless: bool) -> Records:
    """The records with masks that fill `boxes`."""
    made = []
    for record, box in zip(records, boxes, strict=True):
        x, y, w, h = map(int, box)
        runs = [x * SIDE + y, *([h, SIDE - h] * w)]
        runs[-1] = SIDE * SIDE - sum(runs[:-1])
        mask = {"size": [SIDE, SIDE], "counts": runs}
        kept = {name: value for name, value in record.items() if not (boxless and name == "bbox")}
        made.append({**kept, "segmentation": mask})
    return made
