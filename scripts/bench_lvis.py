#!/usr/bin/env python
"""LVIS at its size, from files to the numbers: detmap and its peers by turns, a process each, processor time.

20,000 images, 1,203 classes, 2,000,000 boxes (100 an image, placed as `large_workloads.detector_like` does); with --masks
500,000 masks (25 an image). Each image lists the categories of its objects that are not exhaustive, and some that are known
not to be there. detmap under `coco` scores the same files. Kernels are those that the checkout has: after
scripts/build-kernels compiled ones, as in wheels, else numba's, whose import takes a quarter of a second.

AP of masks differs in the fourth or fifth decimal: some masks have no pixel. lvis-api and detmap drop detections without
area, which vernier and ultrafast-pycocotools count as false positives.

    scripts/bench_lvis.py --images 2000           a smaller one
    scripts/bench_lvis.py --masks --each 100      masks an image
    scripts/bench_lvis.py --peers PYTHON          with vernier and ultrafast-pycocotools, as that Python has them
    scripts/bench_lvis.py --only "detmap lvis,lvis-api" --images 2000 --peers PYTHON    lvis-api takes 40 s for these
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [os.environ.get("DETMAP_TREE", str(ROOT)), str(ROOT / "tests"), str(ROOT / "scripts")]

#: What each program does with the two files; the last line prints AP.
PROGRAMS = {
    "detmap lvis": "import detmap\nvalue = detmap.evaluate(*files, 'lvis', iou_type=kind)['AP']",
    "detmap coco": "import detmap\nvalue = detmap.evaluate(*files, 'coco', iou_type=kind)['AP']",
    "vernier": (
        "from vernier.instance import Bbox, CocoDataset, Evaluator, Segm\n"
        "truth, found = (open(file, 'rb').read() for file in files)\n"
        "how = {'iou': Bbox() if kind == 'bbox' else Segm(), 'parity_mode': 'strict', 'max_dets': (1, 100, 300)}\n"
        "dataset = CocoDataset.from_lvis_json(truth)\n"
        "value = Evaluator(**how).evaluate(dataset, found).stats[0]"
    ),
    "ultrafast": (
        "from ultrafast_pycocotools import COCO, COCOeval\n"
        "truth = COCO(files[0])\n"
        "made = COCOeval(truth, truth.loadRes(files[1]), kind, lvis_style=True)\n"
        "made.params.maxDets = [300]\n"
        "made.evaluate(), made.accumulate(), made.summarize()\n"
        "value = made.stats[0]"
    ),
    "lvis-api": (
        "import sys, types, numpy\n"
        "numpy.float = float\n"
        "sys.modules['cv2'] = sys.modules['lvis.vis'] = types.SimpleNamespace(LVISVis=None)\n"
        "from lvis import LVISEval\n"
        "made = LVISEval(*files, kind)\n"
        "made.run()\n"
        "value = made.get_results()['AP']"
    ),
}
_MEASURE = """import os, sys
kind, files = sys.argv[1], sys.argv[2:]
before = os.times()
{program}
after = os.times()
print(sum(after[:2]) - sum(before[:2]), float(value))
"""


def write_case(folder: Path, images: int, masks: bool, each: int) -> int:
    """Write the workload and return its number of detections."""
    import bench_shapes
    from large_workloads import detector_like, to_coco

    if masks:
        original = detector_like
        sys.modules["large_workloads"].detector_like = lambda count, each, _, seed: original(count, each, 1203, seed)
        bench_shapes.write_masks(folder, images, each)
        sys.modules["large_workloads"].detector_like = original
        dataset = json.loads((folder / "ground_truth.json").read_text())
        count = images * each
    else:
        dataset, results = to_coco(detector_like(images, each, 1203, seed=1))
        folder.mkdir()
        (folder / "detections.json").write_text(json.dumps(results))
        count = len(results)
    rng = np.random.default_rng(7)
    present: dict[int, set[int]] = {image["id"]: set() for image in dataset["images"]}
    kept = [one for one in dataset["annotations"] if not one["iscrowd"]]  # LVIS has no crowds
    for one in kept:
        present[one["image_id"]].add(one["category_id"])
    for image in dataset["images"]:
        there = sorted(present[image["id"]])
        image["not_exhaustive_category_ids"] = [one for one in there if rng.random() < 0.1]
        others = set(rng.integers(1, 1204, 20).tolist()) - present[image["id"]]
        image["neg_category_ids"] = sorted(others)
        image["coco_url"] = ""
    for place, category in enumerate(dataset["categories"]):
        category.update(frequency="fcr"[min(place // 400, 2)], name=f"class {place}", instance_count=1, image_count=1)
    dataset["annotations"] = kept
    (folder / "ground_truth.json").write_text(json.dumps(dataset))
    return count


def main() -> None:
    """Print processor seconds of each program, medians of runs by turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--masks", action="store_true")
    parser.add_argument("--each", type=int, help="detections an image; default: 100, with --masks 25")
    parser.add_argument("--peers", metavar="PYTHON")
    parser.add_argument("--only", metavar="LIST", default=",".join(name for name in PROGRAMS if name != "lvis-api"))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    # The peers' modules were compiled when they were installed; so are ours, wherever that is not switched off.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    kind = "segm" if options.masks else "bbox"
    names = [name for name in options.only.split(",") if name.startswith("detmap") or options.peers]
    sides = "ground_truth", "boxed_detections" if options.masks else "detections"  # vernier reads no masks alone
    with tempfile.TemporaryDirectory() as folder:
        count = write_case(
            Path(folder, "case"), options.images, options.masks, options.each or (25 if options.masks else 100)
        )
        files = [str(Path(folder, "case") / f"{name}.json") for name in sides]
        taken: dict[str, list[float]] = {}
        values: dict[str, str] = {}
        for _ in range(options.repeats):
            for name in names:
                ours = name.startswith("detmap")
                words = [sys.executable if ours else options.peers, "-c"]
                words += [_MEASURE.format(program=PROGRAMS[name]), kind, *files]
                environment = {**os.environ, "PYTHONPATH": sys.path[0]} if ours else None
                done = subprocess.run(words, capture_output=True, text=True, env=environment)
                if done.returncode:
                    taken[name], values[name] = [], done.stderr.strip().split("\n")[-1]
                    continue
                seconds, values[name] = done.stdout.strip().split("\n")[-1].split()
                taken.setdefault(name, []).append(float(seconds))
    print(f"{count:,} detections ({kind}), {options.images:,} images: processor seconds, medians of {options.repeats}")
    for name, seconds in taken.items():
        print(f"{name:12} {statistics.median(seconds) if seconds else float('nan'):9.2f}  AP {values[name]}")


if __name__ == "__main__":
    main()
