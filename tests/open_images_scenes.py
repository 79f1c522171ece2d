"""Drawn ground truth and detections in Open Images' manner, for the naive twin and as tables."""

from __future__ import annotations

import numpy as np

import detmap

SIDE = 24


def scene(seed, *, images=6, categories=4, strings=False, fine=False, masks=False, many=10, absent=0.0):
    """Objects, detections, labels of images, categories: boxes on a coarse grid, so that overlaps and scores are tied.

    With `masks` a share of the objects, `absent`, has a box and no mask.
    """
    rng = np.random.default_rng(seed)
    steps = 1000 if fine else 6
    ids = [f"{k:04x}" if strings else k for k in rng.permutation(images * 3)[:images].tolist()]
    labels = [f"/m/0{k}" if strings else k + 1 for k in range(categories)]

    def box():
        (x1, x2), (y1, y2) = (np.sort(rng.choice(steps + 1, 2, replace=False)) / steps for _ in "xy")
        return float(x1), float(y1), float(x2), float(y2)

    def shape(one):
        mask = np.zeros((SIDE, SIDE), bool)
        x1, y1, x2, y2 = (round(v * SIDE) for v in one)
        mask[y1:y2, x1:x2] = True
        return mask & (rng.random(mask.shape) < 0.9)

    objects, detections = [], []
    for image in ids[1:]:  # the first image has no box
        for _ in range(rng.integers(0, many)):
            one = {"image": image, "label": labels[rng.integers(0, max(1, categories - 1))], "box": box()}
            one["group"] = bool(rng.random() < 0.35)
            if masks:
                one["mask"] = shape(one["box"]) if rng.random() >= absent else None
            objects.append(one)
    for image in ids[:-1]:  # the last image has no detection
        near = [one for one in objects if one["image"] == image]
        for _ in range(rng.integers(0, 3 * many)):
            chosen = near[rng.integers(0, len(near))] if near and rng.random() < 0.8 else None
            own = chosen["box"] if chosen and rng.random() < 0.5 else box()
            if chosen and rng.random() < 0.4:  # inside of it
                x1, y1, x2, y2 = chosen["box"]
                (a, b), (c, d) = np.sort(rng.random((2, 2)) * 1.2 - 0.1, axis=1).tolist()
                own = x1 + a * (x2 - x1), y1 + c * (y2 - y1), x1 + b * (x2 - x1), y1 + d * (y2 - y1)
            label = chosen["label"] if chosen and rng.random() < 0.9 else labels[rng.integers(0, categories)]
            score = float(
                rng.choice([rng.integers(0, 6) / 5, rng.random(), -0.5, -10.0, -11.0], p=[0.6, 0.34, 0.02, 0.02, 0.02])
            )
            if rng.random() < 0.03:
                own = (own[0], own[1], own[0], own[3])
            one = {"image": image, "label": label, "box": own, "score": score}
            if masks:
                one["mask"] = shape(np.clip(own, 0, 1))
            detections.append(one)
    listed = [(image, label, int(rng.random() < 0.5)) for image in ids for label in labels if rng.random() < 0.4]
    return objects, [detections[k] for k in rng.permutation(len(detections))], listed, labels, ids


def tables(objects, detections, labels, categories, images, **more):
    """The same as ground truth and detections."""
    lists = {1: {}, 0: {}}
    for image, label, confidence in labels:
        lists[confidence].setdefault(image, []).append(label)

    def columns(records):
        made = {
            "image_ids": np.array([one["image"] for one in records], np.array(images).dtype),
            "category_ids": np.array([one["label"] for one in records], np.array(categories).dtype),
        }
        if records and "mask" in records[0]:
            none = np.zeros((SIDE, SIDE), bool)
            made["masks"] = np.array([none if one["mask"] is None else one["mask"] for one in records])
            if all(one["mask"] is not None for one in records):
                return made
        boxes = np.array([one["box"] for one in records], np.float64).reshape(-1, 4)
        return {**made, "boxes": boxes, "box_format": "xyxy"}

    truth = detmap.GroundTruth.from_arrays(
        **columns(objects),
        group_of=[one["group"] for one in objects],
        images=images,
        categories=categories,
        pos_category_ids=lists[1] or None,
        neg_category_ids=lists[0] or None,
        **more,
    )
    found = detmap.Detections.from_arrays(**columns(detections), scores=[one["score"] for one in detections])
    return truth, found
