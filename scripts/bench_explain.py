"""Explanations: time and memory of each, tables in memory, kernels compiled. Part of bench.py; by itself it prints its rows.

scripts/bench_explain.py [--quick]
"""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]


def tables(images: int) -> tuple[Any, Any, Any]:
    """Ground truth and the detections of two models, 100 in each image, of 80 categories."""
    from large_workloads import detector_like, to_coco

    import detmap

    made = detector_like(images, 100, 80, seed=1)
    none = {name: column[:0] for name, column in made.items() if name.startswith("dt_")}
    truth = detmap.read_coco(to_coco({**made, **none})[0])
    noise = np.random.default_rng(2).normal(0, 0.02, made["dt_scores"].size)
    found = [
        detmap.Detections.from_arrays(
            image_ids=made["dt_image_ids"],
            category_ids=made["dt_category_ids"],
            boxes=made["dt_boxes"],
            scores=scores,
        )
        for scores in (made["dt_scores"], np.clip(made["dt_scores"] + noise, 0.001, 1))
    ]
    return truth, found[0], found[1]


@dataclass(frozen=True)
class Measured:
    """Medians of a row: seconds of the clock and of all processors, and bytes that it adds at its peak."""

    seconds: float
    processor: float
    added: float


def farthest() -> tuple[str, str]:
    """The two protocols of detmap's own that differ in the most rules."""
    from itertools import combinations

    from detmap.detection.protocols import PRESETS
    from detmap.explanations.replay import pair, players

    boxes = PRESETS["coco"].iou_type
    names = [name for name, one in PRESETS.items() if PRESETS.is_shipped(name) and one.iou_type == boxes]
    return max(combinations(names, 2), key=lambda both: len(players(*pair(*both, "AP", None))))


def measured(task: Callable[[], Any], turns: int) -> Measured:
    """Run a task so often, after once that compiles and warms."""
    from bench_programs import memory

    task()
    found = []
    for _ in range(turns):
        gc.collect()
        if hasattr(ctypes.CDLL(None), "malloc_trim"):
            ctypes.CDLL(None).malloc_trim(0)  # else it would reuse what came before, unseen
        Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark
        before, start, processor = memory("VmRSS"), time.perf_counter(), time.process_time()
        task()
        found.append((time.perf_counter() - start, time.process_time() - processor, memory("VmHWM") - before))
    return Measured(*(statistics.median(column) for column in zip(*found, strict=True)))


def rows(quick: bool) -> dict[str, Measured]:
    """Return what each row takes, by its title."""
    import detmap
    from detmap.explanations import contrast, survives

    small, large = tables(10 if quick else 500), tables(20 if quick else 5000)
    values = [f"{detmap.evaluate(*one[:2], 'ultralytics')['AP']:.4f}" for one in (small, large)]
    of_small, of_large = (f"{len(one[1]):,} detections" for one in (small, large))
    apart = farthest()
    tasks: dict[str, Callable[[], Any]] = {
        f"explain, ultralytics to coco, {of_large}": lambda: detmap.explain(*large[:2], "ultralytics", "coco"),
        f"explain, {apart[0]} to {apart[1]}, {of_large}": lambda: detmap.explain(*large[:2], *apart),
        f"explain --value, {of_small}": lambda: detmap.find_value(*small[:2], values[0]),
        f"explain --value, {of_large}": lambda: detmap.find_value(*large[:2], values[1]),
        f"compare --under all, two models of {of_small}": lambda: survives(
            small[0], {"one": small[1], "other": small[2]}
        ),
        f"compare --why, two models of {of_small}": lambda: contrast(*small),
    }
    return {title: measured(task, 1 if quick else 3) for title, task in tasks.items()}


if __name__ == "__main__":
    for name, row in rows("--quick" in sys.argv[1:]).items():
        print(f"{row.seconds:9.2f} s {row.processor:9.2f} s of processors {row.added / 1e6:7.0f} MB added  {name}")
