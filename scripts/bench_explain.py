"""Explanations: seconds of each, tables in memory, kernels compiled. Part of bench.py; by itself it prints its rows.

scripts/bench_explain.py [--quick]
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def tables(images: int) -> tuple[Any, Any, Any]:
    """Ground truth and the detections of two models, 100 in each image, of 80 categories."""
    from workloads import detector_like, to_coco

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


def rows(quick: bool) -> dict[str, float]:
    """Return the median seconds of each row, by its title."""
    import detmap
    from detmap.explanations import contrast, survives

    small, large = tables(10 if quick else 500), tables(20 if quick else 5000)
    value = f"{detmap.evaluate(small[0], small[1], 'ultralytics')['AP']:.4f}"
    tasks: dict[str, Callable[[], Any]] = {
        "explain, ultralytics to coco, 500,000 detections": lambda: detmap.explain(*large[:2], "ultralytics", "coco"),
        "explain --value, 50,000 detections": lambda: detmap.find_value(*small[:2], value),
        "compare --under all, two models of 50,000 detections": lambda: survives(
            small[0], {"one": small[1], "other": small[2]}
        ),
        "compare --why, two models of 50,000 detections": lambda: contrast(*small),
    }
    found = {}
    for title, task in tasks.items():
        times = []
        for _ in range(2 if quick else 4):  # the first compiles
            start = perf_counter()
            task()
            times.append(perf_counter() - start)
        found[title] = statistics.median(times[1:])
    return found


if __name__ == "__main__":
    for name, seconds in rows("--quick" in sys.argv[1:]).items():
        print(f"{seconds:9.2f} s  {name}")
