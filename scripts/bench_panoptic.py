#!/usr/bin/env python
"""Panoptic quality of 500 images of 640 x 480 beside hotcoco: JSON and PNG files to numbers, by turns.

    scripts/bench_panoptic.py FOLDER [--peer PYTHON] [--images 500] [--rounds 5]

Files are made in FOLDER, unless they are there; PYTHON is an interpreter that has hotcoco. Each run is a process that scores
once to warm up, and once more for its times; the medians are printed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

RUN = """
import contextlib, io, json, resource, sys, time
sys.path.insert(0, {root!r})
{load}
score = lambda: evaluate({folder!r} + "/gt.json", {folder!r} + "/pred.json")
with contextlib.redirect_stdout(io.StringIO()):
    score()
    wall, cpu = time.perf_counter(), time.process_time()
    score()
    times = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps([*times, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""

LOADS = {
    "detmap": "from detmap.panoptic import evaluate",
    "hotcoco": "from hotcoco.panoptic import pq_compute as evaluate",
}


def make(folder: Path, images: int, height: int = 480, width: int = 640) -> None:
    """Write label maps of cells with wavy borders, and predictions whose cells are moved by some pixels."""
    from PIL import Image

    rng = np.random.default_rng(5)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    documents: dict[str, list[object]] = {"gt": [], "pred": []}
    for side in documents:
        (folder / side).mkdir(parents=True, exist_ok=True)
    for image in range(images):
        count = int(rng.integers(6, 28))
        centres = (rng.random((count, 2)) * [height, width]).astype(np.float32)
        wave, ripple = rng.uniform(4, 30, 2), float(rng.uniform(2, 9))
        shift = 6 * np.sin(x / wave[0]) + 3 * np.sin(y / ripple), 6 * np.sin(y / wave[1])
        categories = rng.integers(1, 134, count)
        for side, moved, bend in (("gt", 0.0, 1.0), ("pred", 8.0, 0.7)):
            at = centres + rng.normal(0, moved, centres.shape)
            distance = [(y + bend * shift[0] - a) ** 2 + (x + bend * shift[1] - b) ** 2 for a, b in at]
            cell = np.argmin(distance, axis=0)
            ids = rng.choice(2**24 - 2, count, replace=False) + 1
            void = (rng.random(count) < 0.06) & (side == "gt")
            label_map = np.where(void[cell], 0, ids[cell])
            colours = np.stack([label_map >> shift & 255 for shift in (0, 8, 16)], axis=-1).astype(np.uint8)
            Image.fromarray(colours).save(folder / side / f"{image:06}.png")
            own = np.where((rng.random(count) < 0.75) | (side == "gt"), categories, rng.integers(1, 134, count))
            areas = np.bincount(cell.ravel(), minlength=count)
            segments = [
                {
                    "id": int(ids[k]),
                    "category_id": int(own[k]),
                    "area": int(areas[k]),
                    "iscrowd": int(k == 0 and image % 3 == 0),
                }
                for k in range(count)
                if areas[k] and not void[k]
            ]
            documents[side].append({"image_id": image, "file_name": f"{image:06}.png", "segments_info": segments})
    classes = [{"id": k + 1, "name": f"c{k + 1}", "isthing": int(k < 80)} for k in range(133)]
    sizes = [{"id": k, "width": width, "height": height, "file_name": f"{k:06}.jpg"} for k in range(images)]
    truth = {"images": sizes, "categories": classes, "annotations": documents["gt"]}
    (folder / "pred.json").write_text(json.dumps({"annotations": documents["pred"]}))
    (folder / "gt.json").write_text(json.dumps(truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not (options.folder / "gt.json").exists():
        make(options.folder, options.images)
    found: dict[str, list[list[float]]] = {name: [] for name in LOADS}
    for _ in range(options.rounds):
        for name, load in LOADS.items():
            code = RUN.format(root=str(ROOT) if name == "detmap" else "", load=load, folder=str(options.folder))
            python = sys.executable if name == "detmap" else options.peer
            found[name].append(json.loads(subprocess.run([python, "-c", code], capture_output=True, check=True).stdout))
    for name, rows in found.items():
        wall, cpu, memory = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{name:8} processor {cpu:.2f} s, wall {wall:.2f} s, memory {memory:.0f} MB")


if __name__ == "__main__":
    main()
