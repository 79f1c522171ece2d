"""Naive twins of other tools' AP, each in the words of its own rules; imports nothing of the library under test.

`truth` is a list of (image, category, (x1, y1, x2, y2), crowd, difficult), `found` of (image, category, (x1, y1, x2, y2),
score), both in the order of the file.
"""

from __future__ import annotations

from fractions import Fraction

import naive
import numpy as np

THRESHOLDS = np.linspace(0.5, 0.95, 10).tolist()


def box_iou(one, other, pixel=0.0):
    """Intersection over union of two boxes by their corners."""
    width = min(one[2], other[2]) - max(one[0], other[0]) + pixel
    height = min(one[3], other[3]) - max(one[1], other[1]) + pixel
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    areas = [(box[2] - box[0] + pixel) * (box[3] - box[1] + pixel) for box in (one, other)]
    return both / (areas[0] + areas[1] - both)


def ultralytics(truth, found, *, since_2026, cut=0.001, cap=300):
    """AP of every class that has labels, at ten thresholds: {category: [AP, ...]}."""
    truth = [row for row in truth if not row[3]]  # labels hold no crowds
    images = sorted({row[0] for row in truth} | {row[0] for row in found})
    scored = []  # category, score, and whether it is right at every threshold
    for image in images:
        labels = [row for row in truth if row[0] == image]
        predictions = sorted((row for row in found if row[0] == image and row[3] >= cut), key=lambda row: -row[3])[:cap]
        ious = [[box_iou(p[2], t[2]) if p[1] == t[1] else 0.0 for t in labels] for p in predictions]
        right = [[False] * len(THRESHOLDS) for _ in predictions]
        for at, threshold in enumerate(THRESHOLDS):
            if since_2026:
                free = set(range(len(labels)))
                for p in range(len(predictions)):
                    able = [t for t in sorted(free) if ious[p][t] >= threshold]
                    if able:
                        free.remove(max(able, key=lambda t: ious[p][t]))
                        right[p][at] = True
            else:  # pairs by overlap; each prediction's first, then each label's first among those, in order of predictions
                pairs = [(ious[p][t], p, t) for p in range(len(predictions)) for t in range(len(labels))]
                pairs = sorted((pair for pair in pairs if pair[0] >= threshold), key=lambda pair: -pair[0])
                label_of = {}
                for _, p, t in pairs:
                    label_of.setdefault(p, t)
                first = {}
                for p in sorted(label_of):
                    first.setdefault(label_of[p], p)
                for p in first.values():
                    right[p][at] = True
        scored += [(p[1], p[3], flags) for p, flags in zip(predictions, right, strict=True)]
    scored.sort(key=lambda row: -row[1])
    result = {}
    for category in sorted({row[1] for row in truth}):
        labels = sum(row[1] == category for row in truth)
        mine = [flags for of, _, flags in scored if of == category]
        result[category] = [
            _linear_ap([flags[at] for flags in mine], labels, since_2026) for at in range(len(THRESHOLDS))
        ]
    return result


def _linear_ap(flags, labels, drops):
    """The area under straight lines through every point of the curve, read at 101 recalls."""
    if not flags:
        return 0.0
    points, right = [(0.0, 1.0)], 0
    for rank, flag in enumerate(flags, start=1):
        right += flag
        points.append((right / (labels + 1e-16), right / rank))
    if drops:
        points.append((points[-1][0], 0.0))
    points.append((1.0, 0.0))
    best = 0.0
    for i in reversed(range(len(points))):
        best = max(best, points[i][1])
        points[i] = points[i][0], best
    grid = np.linspace(0, 1, 101)
    read = np.interp(grid, [r for r, _ in points], [p for _, p in points])
    return float((np.diff(grid) * (read[1:] + read[:-1]) / 2.0).sum())


def single(truth, found):
    """Corners, and scores, in single precision; boxes become x, y, width and height in it, as COCO's records."""
    records = []
    for rows in (truth, found):
        records.append([])
        for row in rows:
            x1, y1, x2, y2 = np.array(row[2], np.float32)
            bbox = [float(x1), float(y1), float(x2 - x1), float(y2 - y1)]
            records[-1].append({"image_id": row[0], "category_id": row[1], "bbox": bbox})
    for record, row in zip(records[0], truth, strict=True):
        record |= {"iscrowd": int(row[3]), "area": record["bbox"][2] * record["bbox"][3]}
    for record, row in zip(records[1], found, strict=True):
        record["score"] = float(np.float32(row[3]))
    return records


def tensor_grid():
    """Thresholds and recalls in single precision, as `torch.linspace` makes them on a CPU with fused multiply-add."""
    step = Fraction(float(np.float32(0.01)))
    recalls = [float(np.float32(float(k * step if k < 50 else 1 - (100 - k) * step))) for k in range(101)]
    return {"iou_thresholds": np.float32(THRESHOLDS).tolist(), "recall_thresholds": recalls}


def coco_of_tensors(truth, found, images, categories, areas=None, **grid):
    """COCO's precision (T, R, K, A, M) of what tensors hold; `areas` of the objects, by default those of their boxes."""
    objects, results = single(truth, found)
    for record, area in zip(objects, areas or [record["area"] for record in objects], strict=True):
        record["area"] = area
    return naive.coco_evaluate(images, categories, objects, results, **grid)["precision"]


def voc(truth, found, *, threshold, strict=False, pixel, difficult, crowd, eleven=False, written=False):
    """AP of every class with objects, VOC's rule. `difficult` and `crowd` say whether such objects need not be found;
    `written` rounds as a file of results with three and one decimals does."""
    objects, boxes = {}, {}
    for image, category, box, is_crowd, is_difficult in truth:
        flag = (difficult and is_difficult) or (crowd and is_crowd)
        objects.setdefault(image, []).append({"name": category, "box": list(box), "difficult": flag})
    for image, category, box, score in found:
        if written:
            score, box = float(f"{score:.3f}"), [float(f"{side:.1f}") for side in box]
        images, scores, listed = boxes.setdefault(category, ([], [], []))
        images.append(image), scores.append(score), listed.append(list(box))
    classes = sorted({row[1] for row in truth})
    made = naive.voc_evaluate(classes, objects, boxes, threshold, strict, pixel)
    return {name: made[name]["ap_11" if eleven else "ap_all_point"] for name in classes}
