"""Made-up masks and poses as COCO's records, for the evaluation of shapes against pycocotools."""

from __future__ import annotations

import contextlib
import io

import numpy as np
from hypothesis import strategies as st


def blob(rng, height, width):
    """A random region: a rectangle or ellipse, sometimes with holes, sometimes of one pixel, sometimes all or nothing."""
    rows, columns = np.mgrid[:height, :width]
    kind = rng.integers(0, 10)
    if kind == 0:
        return np.zeros((height, width), bool)
    if kind == 1:
        return np.ones((height, width), bool)
    y, x = rng.uniform(0, height), rng.uniform(0, width)
    b, a = rng.uniform(0.5, height / 1.5), rng.uniform(0.5, width / 1.5)
    region = (
        np.hypot((rows - y) / b, (columns - x) / a) < 1 if kind < 7 else (abs(rows - y) < b) & (abs(columns - x) < a)
    )
    return region & (rng.random((height, width)) < 0.9) if kind % 3 == 0 else region


def compressed(region):
    """Pycocotools' record of a region, its counts as text."""
    from pycocotools import mask

    record = mask.encode(np.asfortranarray(region.astype(np.uint8)))
    return {"size": record["size"], "counts": record["counts"].decode()}


def uncompressed(region):
    """The same with a list of run lengths."""
    pixels = np.concatenate([[False], region.ravel(order="F")])
    edges = np.flatnonzero(np.diff(pixels.astype(int))) if pixels.any() else np.empty(0, int)
    return {"size": list(region.shape), "counts": np.diff([0, *edges.tolist(), region.size]).tolist()}


def outlines(rng, height, width):
    """One to three polygons: with points outside of the image, repeats, whole and half pixels."""
    made = []
    for which in range(rng.integers(1, 4)):
        points = rng.uniform(-4, [width + 4, height + 4], (int(rng.integers(3, 9)), 2))
        kind = rng.integers(0, 4)
        points = np.round(points) if kind == 0 else np.round(points * 2) / 2 if kind == 1 else points
        points = np.repeat(points, 2, axis=0) if kind == 2 else points
        flat = [round(value, 2) for value in points.ravel().tolist()]
        made.append(flat[:4] if which and rng.random() < 0.2 else flat + [1.5] * int(rng.random() < 0.1))
    return made


def any_segmentation(rng, region):
    """A region in one of COCO's spellings; polygons are others than the region."""
    kind = rng.integers(0, 3)
    return compressed(region) if kind == 0 else uncompressed(region) if kind == 1 else outlines(rng, *region.shape)


def mask_workload(seed, boxes="none"):
    """A data set and results with masks; results with ``boxes`` "all" may lack masks or have polygons, with "none" not."""
    from pycocotools import mask

    rng = np.random.default_rng(seed)
    images = [
        {"id": int(i), "height": int(h), "width": int(w)}
        for i, (h, w) in enumerate(rng.integers(3, 30, (int(rng.integers(1, 5)), 2)), start=5)
    ]
    categories = [{"id": int(i), "name": f"c{i}"} for i in range(1, 1 + rng.integers(1, 4))]
    annotations, results = [], []
    for image in images:
        size = image["height"], image["width"]
        regions = [blob(rng, *size) for _ in range(rng.integers(0, 7))]
        for region in regions:
            x, y, w, h = mask.toBbox(mask.encode(np.asfortranarray(region.astype(np.uint8)))).tolist()
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image["id"],
                    "category_id": int(rng.choice([c["id"] for c in categories])),
                    "segmentation": any_segmentation(rng, region),
                    "bbox": [x, y, w, h],
                    "area": float(rng.choice([region.sum(), 1024.0, 1024.5, 5000.0])),
                    "iscrowd": int(rng.random() < 0.2),
                }
            )
        for _ in range(rng.integers(0, 16)):
            near = regions and rng.random() < 0.8
            region = regions[rng.integers(0, len(regions))] if near else blob(rng, *size)
            region = np.roll(region, rng.integers(-1, 2, 2), (0, 1)) if rng.random() < 0.7 else region
            result = {
                "image_id": image["id"],
                "category_id": int(rng.integers(1, len(categories) + 1)),
                "segmentation": compressed(region),
                "score": float(rng.integers(0, 12) / 12),
            }
            if boxes == "all":
                corner = rng.uniform(0, size[::-1])
                result["bbox"] = [*corner.tolist(), *rng.choice([[3.5, 4.0], [32.0, 32.0], [20.25, 64.0]]).tolist()]
                if rng.random() < 0.3:
                    result["segmentation"] = any_segmentation(rng, region)
                elif rng.random() < 0.1:
                    del result["segmentation"]
            results.append(result)
    order = rng.permutation(len(results))
    return {"images": images, "categories": categories, "annotations": annotations}, [results[i] for i in order]


def pose_workload(seed, points=17, boxes=False):
    """A data set and results with poses: some objects without visible points, some of no area, ties."""
    rng = np.random.default_rng(seed)
    images = [{"id": int(i)} for i in rng.permutation(rng.integers(1, 5))]
    annotations, results = [], []
    for image in images:
        people = []
        for _ in range(rng.integers(0, 5)):
            pose = np.column_stack(
                [rng.uniform(0, 200, (points, 2)).round(int(rng.integers(0, 3))), rng.integers(0, 3, points)]
            )
            if rng.random() < 0.2:
                pose[:, 2] = 0
            people.append(pose)
            visible = int((pose[:, 2] > 0).sum())
            x, y = pose[:, :2].min(axis=0)
            w, h = np.ptp(pose[:, :2], axis=0)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image["id"],
                    "category_id": 1,
                    "keypoints": [int(v) if v == int(v) else v for v in pose.ravel().tolist()],
                    "num_keypoints": int(rng.choice([visible, 0, 3], p=[0.8, 0.1, 0.1])),
                    "bbox": [x, y, w, h],
                    "area": float(rng.choice([w * h / 2, 0.0, 1024.0, 9216.0])),
                    "iscrowd": int(rng.random() < 0.1),
                }
            )
        for _ in range(rng.integers(0, 30)):
            base = (
                people[rng.integers(0, len(people))]
                if people and rng.random() < 0.8
                else rng.uniform(0, 200, (points, 3))
            )
            moved = base.copy()
            moved[:, :2] += rng.normal(0, rng.choice([0, 2, 12]), (points, 2)).round(2)
            result = {
                "image_id": image["id"],
                "category_id": 1,
                "keypoints": moved.ravel().tolist(),
                "score": float(rng.integers(0, 9) / 9),
            }
            if boxes:
                result["bbox"] = [1.0, 2.0, *rng.choice([[30.0, 40.0], [96.0, 96.0]]).tolist()]
            results.append(result)
    return {"images": images, "categories": [{"id": 1, "name": "person"}], "annotations": annotations}, results


def ample(make):
    """Return the first workload that has enough of everything."""
    for seed in range(200):
        dataset, results = make(seed)
        if len(dataset["annotations"]) > 8 and len(results) > 20 and len(dataset["images"]) > 3:
            return dataset, results
    raise AssertionError


def seeds():
    """Seeds for hypothesis."""
    return st.integers(0, 2**32 - 1)


def pycocotools_reference(dataset, results, iou_type, **params):
    """Arrays and numbers of the real pycocotools; `params` are set on its `Params`."""
    import copy

    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = copy.deepcopy(dataset)
        truth.createIndex()
        found = truth.loadRes(copy.deepcopy(results))
        evaluation = COCOeval(truth, found, iou_type)
        for name, value in params.items():
            setattr(evaluation.params, name, value)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    arrays = {name: evaluation.eval[name] for name in ("precision", "recall", "scores")}
    return {**arrays, "stats": evaluation.stats, "ious": evaluation.ious}
