"""Workloads taken apart by image, and evaluators that are fed with them."""

from __future__ import annotations

import numpy as np
from support import options_of
from workloads import make_coco

from detmap import Evaluator

WORKLOAD = make_coco(21, images=9, categories=4, crowds=0.2)


def by_image(dataset, results):
    """Image id to what `update` takes: prediction and target."""
    images = {}
    for item in dataset["images"]:
        gts = [a for a in dataset["annotations"] if a["image_id"] == item["id"]]
        dts = [r for r in results if r["image_id"] == item["id"]]
        prediction = {
            "boxes": np.array([r["bbox"] for r in dts], float).reshape(-1, 4),
            "scores": np.array([r["score"] for r in dts], float),
            "labels": np.array([r["category_id"] for r in dts], int),
        }
        target = {
            "boxes": np.array([a["bbox"] for a in gts], float).reshape(-1, 4),
            "labels": np.array([a["category_id"] for a in gts], int),
            "area": np.array([a["area"] for a in gts], float),
            "iscrowd": np.array([a["iscrowd"] for a in gts], int),
        }
        images[item["id"]] = prediction, target
    return images


def evaluator_of(dataset, params=None, **more):
    options = {k: v for k, v in options_of(params).items() if k not in ("image_ids", "category_ids")}
    more.setdefault("categories", [item["id"] for item in dataset["categories"]])
    return Evaluator(**{"box_format": "xywh", **options, **more})


def feed(evaluator, images, ids, sizes=(3,)):
    """Update with `ids` in this order, in batches of `sizes` in turn."""
    at, turn = 0, 0
    while at < len(ids):
        batch = ids[at : at + sizes[turn % len(sizes)]]
        evaluator.update([images[i][0] for i in batch], [images[i][1] for i in batch], image_ids=batch)
        at, turn = at + len(batch), turn + 1
    return evaluator


IMAGE = {"boxes": [[0.0, 0, 10, 10], [5, 5, 20, 30]], "scores": [0.9, 0.1], "labels": [1, 2]}
TARGET = {"boxes": [[0.0, 0, 10, 11]], "labels": [1]}


NAN = float("nan")
