"""Large made-up data sets as arrays, of what detectors write and of dense scenes; and the same in COCO's dicts.

Nothing here imports the library under test.
"""

from __future__ import annotations

import numpy as np


def detector_like(images, detections_per_image, categories, seed, objects_per_image=7.0):
    """What a detector writes: most detections false, classes skewed, exactly `detections_per_image` per image.

    Returns a dict of arrays, detections ordered by image and descending score within it:
    `image_ids` (images,), `category_ids` (categories,), and with G ground truths and N detections `gt_image_ids`,
    `gt_category_ids`, `gt_areas`, `gt_crowd` (G,), `gt_boxes` (G, 4), `dt_image_ids`, `dt_category_ids`, `dt_scores`
    (N,), `dt_boxes` (N, 4). Boxes are xywh. Ids are int64 and start at 1, the rest is float64, where `dt_boxes` and
    `dt_scores` are exact in float32.
    """
    rng = np.random.default_rng(seed)
    weights = 1 / (np.arange(categories) + 3.0)
    cumulative = np.cumsum(weights / weights.sum())

    def skewed(n):
        return np.minimum(np.searchsorted(cumulative, rng.random(n)), categories - 1)

    scene = skewed(images * 3).reshape(images, 3)  # the classes that an image is likely to show
    count = rng.poisson(objects_per_image, images)
    gt_image = np.repeat(np.arange(images), count)
    G = len(gt_image)
    gt_class = np.where(rng.random(G) < 0.85, scene[gt_image, rng.integers(0, 3, G)], skewed(G))
    side = np.exp(rng.normal(4.0, 0.9, G))
    ratio = np.exp(rng.normal(0, 0.4, G))
    size = np.clip(np.stack([side * ratio, side / ratio], axis=1), 4, 420)
    corner = rng.random((G, 2)) * (np.array([640, 480]) - size).clip(1)
    gt_boxes = np.round(np.concatenate([corner, size], axis=1), 2)
    gt_areas = np.round(gt_boxes[:, 2] * gt_boxes[:, 3] * rng.uniform(0.4, 1.0, G), 4)

    N = images * detections_per_image
    dt_image = np.repeat(np.arange(images), detections_per_image)
    first = np.cumsum(count) - count
    place = np.tile(np.arange(detections_per_image), images)
    has_objects = count[dt_image] > 0
    # One in place for every object, then about a fifth of the rest around some object, then background.
    own = place < count[dt_image]
    around = has_objects & ~own & (rng.random(N) < 0.2)
    target = np.where(own, place, (rng.random(N) * count[dt_image]).astype(np.int64))
    source = np.minimum(first[dt_image] + target, max(G - 1, 0))
    spread = np.where(own, 0.06, 0.35)[:, None]
    false_size = np.exp(rng.normal(4.0, 0.9, (N, 2))).clip(4, 420)
    boxes = np.concatenate([rng.random((N, 2)) * (np.array([640, 480]) - false_size).clip(1), false_size], axis=1)
    dt_class = np.where(rng.random(N) < 0.5, scene[dt_image, rng.integers(0, 3, N)], skewed(N))
    if G:
        real = own | around
        base = gt_boxes[source[real]]
        jitter = rng.normal(0, 1, (len(base), 4)) * spread[real]
        boxes[real, :2] = base[:, :2] + jitter[:, :2] * base[:, 2:]
        boxes[real, 2:] = base[:, 2:] * np.exp(jitter[:, 2:])
        right = rng.random(N) < np.where(own, 0.85, 0.6)
        dt_class = np.where(real & right, gt_class[source], dt_class)
    scores = rng.beta(np.where(own, 2.5, np.where(around, 0.8, 0.5)), np.where(own, 1.5, np.where(around, 4.0, 9.0)))
    scores = scores.astype(np.float32).astype(np.float64)
    order = np.lexsort((-scores, dt_image))
    return {
        "image_ids": np.arange(1, images + 1),
        "category_ids": np.arange(1, categories + 1),
        "gt_image_ids": gt_image + 1,
        "gt_category_ids": gt_class + 1,
        "gt_boxes": gt_boxes,
        "gt_areas": gt_areas,
        "gt_crowd": (rng.random(G) < 0.01).astype(np.int64),
        "dt_image_ids": dt_image[order] + 1,
        "dt_category_ids": dt_class[order] + 1,
        "dt_boxes": boxes[order].astype(np.float32).astype(np.float64),
        "dt_scores": scores[order],
    }


def dense_scene(images, objects, detections, seed, canvas=4000.0, side=50.0):
    """One class, many objects of similar size on a large canvas, most of them found: the arrays of `detector_like`."""
    rng = np.random.default_rng(seed)
    G, N = images * objects, images * detections
    gt_image, dt_image = np.repeat(np.arange(images), objects), np.repeat(np.arange(images), detections)
    size = side * np.exp(rng.normal(0, 0.15, (G, 2)))
    gt_boxes = np.round(np.concatenate([rng.random((G, 2)) * (canvas - side), size], axis=1), 2)
    place = np.tile(np.arange(detections), images)
    # nine in ten objects are found once, a third of the rest of the detections are doubles, the others are false
    own = (place < objects) & (rng.random(N) < 0.9)
    double = (place >= objects) & (rng.random(N) < 0.35)
    source = dt_image * objects + np.where(own, place, rng.integers(0, objects, N))
    jitter = rng.normal(0, 0.08, (N, 4))
    base = gt_boxes[source]
    base[~(own | double), :2] = rng.random((int((~(own | double)).sum()), 2)) * (canvas - side)
    boxes = np.concatenate([base[:, :2] + jitter[:, :2] * base[:, 2:], base[:, 2:] * np.exp(jitter[:, 2:])], axis=1)
    scores = rng.beta(np.where(own, 3.0, 1.0), np.where(own, 1.5, 4.0)).astype(np.float32).astype(np.float64)
    order = np.lexsort((-scores, dt_image))
    return {
        "image_ids": np.arange(1, images + 1),
        "category_ids": np.array([1]),
        "gt_image_ids": gt_image + 1,
        "gt_category_ids": np.ones(G, np.int64),
        "gt_boxes": gt_boxes,
        "gt_areas": gt_boxes[:, 2] * gt_boxes[:, 3],
        "gt_crowd": np.zeros(G, np.int64),
        "dt_image_ids": dt_image[order] + 1,
        "dt_category_ids": np.ones(N, np.int64),
        "dt_boxes": boxes[order].astype(np.float32).astype(np.float64),
        "dt_scores": scores[order],
    }


def to_coco(arrays):
    """`(dataset, results)` in COCO's dicts of the arrays that `detector_like` and `dense_scene` return."""
    names = ("gt_image_ids", "gt_category_ids", "gt_boxes", "gt_areas", "gt_crowd")
    gts = zip(*(arrays[name].tolist() for name in names), strict=True)
    names = ("dt_image_ids", "dt_category_ids", "dt_boxes", "dt_scores")
    dts = zip(*(arrays[name].tolist() for name in names), strict=True)
    dataset = {
        "images": [{"id": i, "width": 640, "height": 480} for i in arrays["image_ids"].tolist()],
        "annotations": [
            {"id": k, "image_id": i, "category_id": c, "bbox": b, "area": a, "iscrowd": crowd}
            for k, (i, c, b, a, crowd) in enumerate(gts, start=1)
        ],
        "categories": [{"id": c, "name": f"class {c}"} for c in arrays["category_ids"].tolist()],
    }
    return dataset, [{"image_id": i, "category_id": c, "bbox": b, "score": s} for i, c, b, s in dts]
