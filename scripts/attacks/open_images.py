"""Open Images' files: boxes, masks, submissions, verified labels and hierarchies, as they are or damaged anywhere."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from attacks import Attack, Must
from attacks.documents import ANYTHING, damage

_TITLES = (
    "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
)


def _files(rng: np.random.Generator, masks: bool) -> tuple[dict[str, bytes], list[float]]:
    """Return files by name, and what the detections hold: score and corners, sorted, or the area of the mask."""
    images, labels = [f"{k:016x}" for k in range(3)], ["/m/0k4j", "/m/01g317", "top"]
    more = ",Mask,ImageWidth,ImageHeight" if masks else ""
    truth, found, strings, expected = [_TITLES + more], [f"ImageID,LabelName,Score,XMin,XMax,YMin,YMax{more}"], {}, []
    for _ in range(int(rng.integers(1, 9))):
        image, label = str(rng.choice(images)), str(rng.choice(labels[:2]))
        x1, y1 = (int(v) / 16 for v in rng.integers(0, 8, 2))
        x2, y2 = (int(v) / 16 for v in rng.integers(9, 17, 2))
        score, size = int(rng.integers(1, 9)) / 8, int(rng.integers(1, 9))
        counts = f"{chr(48 + 0)}{chr(48 + size)}{chr(48 + 16 - size)}".encode()  # a run of `size` in 4 x 4 pixels
        code = base64.b64encode(zlib.compress(counts)).decode()
        mask = f",{code},4,4" if masks else ""
        truth.append(f"{image},x,{label},1,{x1},{x2},{y1},{y2},0,-1,{int(rng.integers(-1, 2))},0,0{mask}")
        found.append(f"{image},{label},{score},{x1},{x2},{y1},{y2}{mask}")
        strings.setdefault(image, []).append(f"{label} {score} " + (code if masks else f"{x1} {y1} {x2} {y2}"))
        expected.append([score, float(size)] if masks else [score, x1, y1, x2, y2])
    sides = ",4,4" if masks else ""
    titles = "ImageID,ImageWidth,ImageHeight,PredictionString" if masks else "ImageId,PredictionString"
    submission = [titles, *(f"{image}{sides},{' '.join(own)}" for image, own in strings.items())]
    listed = [
        "ImageID,Source,LabelName,Confidence",
        *(f"{image},v,{label},{k % 2}" for k, image in enumerate(images) for label in labels),
    ]
    tree = {
        "LabelName": "root",
        "Subcategory": [{"LabelName": "top", "Subcategory": [{"LabelName": one} for one in labels[:2]]}],
    }
    texts = {"truth": truth, "found": found, "submission": submission, "labels": listed}
    files = {f"{name}.csv": "\n".join(lines).encode() for name, lines in texts.items()}
    return {**files, "tree.json": json.dumps(tree).encode()}, [value for one in sorted(expected) for value in one]


def attack(rng: np.random.Generator, folder: Path) -> Attack:
    """Boxes or masks with labels and hierarchy: what is detected comes out bit for bit, or the files are refused."""
    import detmap

    masks = rng.random() < 0.4
    files, expected = _files(rng, masks)
    must, what = Must(value=expected), "openimages"
    side = str(rng.choice(["found.csv", "submission.csv"]))
    if rng.random() < 0.7:
        name = str(rng.choice(["truth.csv", side, "labels.csv", "tree.json"]))
        files[name] = damage(rng, files[name])
        must, what = Must(value=ANYTHING, refuse=True), f"openimages damaged {name}"
    for name, data in files.items():
        (folder / name).write_bytes(data)
    kind: Any = "segm" if masks else "bbox"

    def run() -> Any:
        given: Any = {"image_labels": folder / "labels.csv", "hierarchy": folder / "tree.json", "iou_type": kind}
        truth = detmap.read(folder / "truth.csv", "ground_truth", format="openimages", **given)
        found = detmap.read(folder / side, "detections", format="openimages", ground_truth=truth, iou_type=kind)
        detmap.evaluate(truth, found, "openimages")
        shapes = found.shapes[kind].areas()[:, None] if masks else found.boxes
        listed = sorted([score, *own] for score, own in zip(found.scores.tolist(), shapes.tolist(), strict=True))
        return [value for one in listed for value in one]

    return Attack(what, run, must, sum(map(len, files.values())))
