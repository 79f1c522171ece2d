"""Data sets on which the drop-in is run, with boxes, masks or keypoints, and how it is run on them."""

from __future__ import annotations

import numpy as np
from dropin import REAL, load, set_params, shown
from workloads import make_coco

QUIRKS = [
    {},
    {"zero_ids": True},
    {"duplicate_ids": True, "stray_images": True},
    {"zero_ids": True, "duplicate_ids": True, "stray_images": True},
]


def whole(evaluation):
    """Whether the drop-in evaluated everything at once."""
    return "_snapshot" in vars(evaluation)


def evaluated(api, workload, *, inside=True):
    dataset, results, params = workload
    evaluation = api.COCOeval(*load(api, dataset, results), "bbox")
    set_params(evaluation.params, params)
    evaluation.evaluate()
    evaluation.accumulate()
    if len(evaluation.params.maxDets) > 2:
        evaluation.summarize()
    return shown(evaluation, inside=inside)


PLAIN = make_coco(7, images=6, categories=4, crowds=0.2, over_100=True)
QUIRKY = make_coco(8, images=6, categories=4, crowds=0.2, zero_ids=True, duplicate_ids=True, stray_images=True)
#: What the recipes of frameworks are run on.
DATA = make_coco(31, images=11, categories=5, crowds=0.15, over_100=True)
NAN, INF = float("nan"), float("inf")


def run(evaluation):
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation


def with_masks():
    """Polygons and run lengths as ground truth, run lengths and boxes as results."""
    dataset, results = make_coco(24, images=3, categories=2, negative=False, zero_sized=False)
    assert len(dataset["annotations"]) > 20
    dataset["categories"][0]["id"] = 1

    def polygon(box):
        x, y, w, h = (float(v) for v in box)
        return [[x, y, x, y + h, x + w, y + h, x + w, y]]

    for record in dataset["annotations"]:
        record["bbox"] = [float(v) for v in record["bbox"]]
        record["segmentation"] = polygon(record["bbox"])
        if record["iscrowd"]:
            start = record["id"] * 50
            record["segmentation"] = {"size": [150, 150], "counts": [start, 900, 150 * 150 - 900 - start]}
    for record in results:
        x, y, w, h = (int(v) for v in record.pop("bbox"))
        mask = np.zeros((150, 150), np.uint8, order="F")
        mask[max(y, 0) : y + h, max(x, 0) : x + w] = 1
        record["segmentation"] = REAL.mask.encode(mask)
    return dataset, results


def with_keypoints(*, number=17, labelled=True):
    rng = np.random.default_rng(5)
    dataset, results = make_coco(12, images=4, categories=1)
    for record in dataset["annotations"]:
        x, y, w, h = record["bbox"]
        seen = rng.integers(0, 3, number)
        points = np.stack([rng.uniform(x, x + w + 1, number), rng.uniform(y, y + h + 1, number), seen], axis=1)
        points[seen == 0] = 0
        record["keypoints"] = points.ravel().tolist()
        if labelled:
            record["num_keypoints"] = int((seen > 0).sum()) if rng.random() < 0.9 else 0
    spare = list(dataset["annotations"])
    spare[0] |= {"keypoints": [0] * 3 * number}
    for record in results:
        del record["bbox"]
        base = np.array(spare[rng.integers(len(spare))]["keypoints"]).reshape(-1, 3)
        record["keypoints"] = (base + rng.normal(0, 3, base.shape) * [1, 1, 0]).ravel().tolist()
    return dataset, results
