#!/usr/bin/env python3
"""Processor time and memory of RF-DETR's metric with each evaluation backend: 5,000 images of 100 detections, as tensors.

    python scripts/bench_rfdetr.py [ROUNDS [BACKEND …]]

The interpreter's environment needs ``rfdetr[train]``. Measured is `compute` of the metric that its callback makes, within
caps of 1, 10 and 500 detections, by class too and not; `update`, which stores tensors, is the same for all. Every run has a
process of its own, warmed up by a small data set; rounds are interleaved. Memory is the most that was resident beyond what
was there before `compute`, taken in a round of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BACKENDS = ("detmap", "vernier", "hotcoco", "ufcoco", "faster_coco_eval")


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def filled(backend: str, by_class: bool, images: int) -> object:
    """Return the metric with everything in it."""
    import numpy as np
    import torch

    workloads = importlib.import_module("large_workloads")
    metrics = importlib.import_module("rfdetr.training.coco_map")
    made = workloads.detector_like(images, 100, 80, 0)
    arrays = {name: torch.from_numpy(column) for name, column in made.items()}
    metric = metrics.OnePassCocoMeanAveragePrecision(
        box_format="xywh", backend=backend, class_metrics=by_class, max_detection_thresholds=[1, 10, 500]
    )
    starts = {
        side: np.searchsorted(made[f"{side}_image_ids"], np.arange(1, images + 2)).tolist() for side in ("gt", "dt")
    }
    for i in range(images):
        true, found = (slice(*starts[side][i : i + 2]) for side in ("gt", "dt"))
        prediction = {"boxes": arrays["dt_boxes"][found].float(), "scores": arrays["dt_scores"][found].float()}
        target = {"boxes": arrays["gt_boxes"][true].float(), "area": arrays["gt_areas"][true].float()}
        target |= {"labels": arrays["gt_category_ids"][true], "iscrowd": arrays["gt_crowd"][true]}
        metric.update([{**prediction, "labels": arrays["dt_category_ids"][found]}], [target])
    return metric


def measure(backend: str, by_class: bool, watched: bool) -> dict[str, float]:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests/torch")]
    importlib.import_module("conftest")  # lets torchvision be imported where its operators are made for a GPU
    sys.path[:1] = [str(ROOT), str(ROOT / "tests")]
    if backend == "detmap":
        importlib.import_module("detmap").patch_rfdetr()
    filled(backend, by_class, 20).compute()
    metric = filled(backend, by_class, 5000)
    before, most, done = resident(), [resident()], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            most[0] = max(most[0], resident())

    watcher = threading.Thread(target=watch)
    if watched:
        watcher.start()
    cpu, start = os.times(), time.perf_counter()
    result = metric.compute()
    wall, after = time.perf_counter() - start, os.times()
    done.set()
    used = after.user + after.system - cpu.user - cpu.system
    return {"cpu": used, "wall": wall, "peak": most[0] - before, "map": float(result["map"])}


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3] == "by class", sys.argv[4] == "memory")))
        return
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for how in ("all classes", "by class"):
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in sys.argv[2:] or BACKENDS}
        for number in range(rounds + 1):
            for name, own in runs.items():
                command = [sys.executable, __file__, "--one", name, how, "time" if number else "memory"]
                made = subprocess.run(command, capture_output=True, text=True, check=True)
                own.append(json.loads(made.stdout.splitlines()[-1]))
        assert len({run["map"] for own in runs.values() for run in own}) == 1, "they do not agree"
        base = [run["cpu"] for run in runs["detmap"][1:]]
        for name, (memory, *timed) in runs.items():
            cpu, wall = (statistics.median(run[key] for run in timed) for key in ("cpu", "wall"))
            ratio = statistics.median(run["cpu"] / own for run, own in zip(timed, base, strict=True))
            print(
                f"{how}: {name:17} processor {cpu:.3f} s ({ratio:.1f}x), wall {wall:.3f} s; peak +{memory['peak']:.0f} MB"
            )


if __name__ == "__main__":
    main()
