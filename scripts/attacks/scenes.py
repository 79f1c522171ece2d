"""Small scenes for attacks: objects and detections as plain records, and the AP that a naive program gives them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import naive
import numpy as np

THRESHOLDS = [0.5, 0.75]
Records = list[dict[str, Any]]


def scene(rng: np.random.Generator) -> tuple[dict[str, Any], Records]:
    """Return COCO's ground truth and results of a few images; scores tie often, boxes lie on a coarse grid."""
    images = [int(i) for i in rng.choice(50, rng.integers(1, 5), replace=False) + 1]
    categories = [int(c) for c in rng.choice(20, rng.integers(1, 4), replace=False) + 1]
    annotations: Records = []
    results: Records = []
    for image in images:
        for _ in range(rng.integers(0, 5)):
            x, y, w, h = (float(v) / 2 for v in rng.integers(1, 80, 4))
            category = int(rng.choice(categories))
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": category,
                    "bbox": [x, y, w, h],
                    "area": w * h,
                    "iscrowd": int(rng.random() < 0.1),
                }
            )
            for _ in range(rng.integers(0, 3)):
                moved = [x + float(rng.integers(-2, 3)) / 4, y, w + float(rng.integers(0, 3)) / 4, h]
                results.append({"image_id": image, "category_id": category, "bbox": moved, "score": score(rng)})
        if rng.random() < 0.4:
            x, y, w, h = (float(v) for v in rng.integers(1, 60, 4))
            category = int(rng.choice(categories))
            results.append({"image_id": image, "category_id": category, "bbox": [x, y, w, h], "score": score(rng)})
    truth = {
        "images": [{"id": i, "width": 100, "height": 100} for i in images],
        "annotations": annotations,
        "categories": [{"id": c, "name": f"class {c}"} for c in categories],
    }
    return truth, results


def score(rng: np.random.Generator) -> float:
    return float(rng.integers(1, 10)) / 10 if rng.random() < 0.5 else float(rng.random())


def average_precision(truth: dict[str, Any], results: Records, missed: Sequence[Any] = ()) -> list[float]:
    """AP at either threshold, area all, 100 detections: NaN where no object is to be found.

    `missed` are ids of annotations that count as `Protocol.id_zero` says of 0.
    """
    images, categories = ([one["id"] for one in truth[key]] for key in ("images", "categories"))
    precision = naive.coco_evaluate(
        images,
        categories,
        truth["annotations"],
        results,
        THRESHOLDS,
        area_ranges=[[0, 1e10]],
        max_dets=[100],
        missed=missed,
    )["precision"]
    means = []
    for t in range(len(THRESHOLDS)):
        values = precision[t][precision[t] > -1]
        means.append(float(np.mean(values)) if values.size else math.nan)
    return means


def evaluated(truth: Any, found: Any, **decisions: Any) -> list[float]:
    """What detmap says of the same."""
    import detmap

    ranges = {"all": (0, 1e10)}
    result = detmap.evaluate(truth, found, iou_thresholds=THRESHOLDS, area_ranges=ranges, max_dets=[100], **decisions)
    precision = result.precision
    means = []
    for t in range(len(THRESHOLDS)):
        values = precision[t][~np.isnan(precision[t])]
        means.append(float(np.mean(values)) if values.size else math.nan)
    return means
