"""A naive twin of CrowdPose's and COCO-WholeBody's evaluations, from their rules; imports nothing of the library.

Ground truth is a document in the benchmark's JSON as a dict, detections are a list of its records.
"""

from __future__ import annotations

import numpy as np
from naive import IOU_THRESHOLDS, RECALL_THRESHOLDS, _coco_curve, by_score, coco_match_cell
from naive_masks import likeness

_BODY = ".26 .25 .25 .35 .35 .79 .79 .72 .72 .62 .62 1.07 1.07 .87 .87 .89 .89"
_FOOT = ".68 .66 .66 .92 .94 .94"
_FACE = (
    ".42 .43 .44 .43 .40 .35 .31 .25 .20 .23 .29 .32 .37 .38 .43 .41 .45 .13 .12 .11 .11 .12 .12 .11 .11 .13 .15 .09 .07 "
    ".07 .07 .12 .09 .08 .16 .10 .17 .11 .09 .11 .09 .07 .13 .08 .11 .12 .10 .34 .08 .08 .09 .08 .08 .07 .10 .08 .09 .09 "
    ".09 .07 .07 .08 .11 .08 .08 .08 .10 .08"
)
_HAND = ".29 .22 .35 .37 .47 .26 .25 .24 .35 .18 .24 .22 .26 .17 .21 .21 .32 .20 .19 .22 .31"
_CROWDPOSE = ".79 .79 .72 .72 .62 .62 1.07 1.07 .87 .87 .89 .89 .79 .79"
ALL, MEDIUM, LARGE = (0, 1e10), (32**2, 96**2), (96**2, 1e10)


def numbers(text):
    """Tenths, divided by ten."""
    return [float(word) / 10.0 for word in text.split()]


#: Of each part of a whole body: the list of its points, its sigmas, and the field of its score.
PARTS = {
    "body": ("keypoints", _BODY, "score"),
    "foot": ("foot_kpts", _FOOT, "foot_score"),
    "face": ("face_kpts", _FACE, "face_score"),
    "lefthand": ("lefthand_kpts", _HAND, "lefthand_score"),
    "righthand": ("righthand_kpts", _HAND, "righthand_score"),
}


def whole_body(truth, records, part):
    """Precision (T, R, K, A), recall (T, K, A) and the number of detections that are left, of a part or "wholebody"."""
    if part == "wholebody":
        fields = [field for field, _, _ in PARTS.values()]
        sigmas = [round(sigma, 9) for _, text, _ in PARTS.values() for sigma in numbers(text)]
        score = "wholebody_score"
    else:
        field, text, score = PARTS[part]
        fields, sigmas = [field], numbers(text)

    def points(record):
        return [value for field in fields for value in record[field]]

    found = [
        {**one, "points": points(one), "score": one.get(score, one["score"]), "area": extent(one["keypoints"])}
        for one in records
        if any(v > 0 for v in points(one)[2::3])
    ]
    objects = []
    for one in truth["annotations"]:
        own = points(one)
        objects.append({**one, "points": own, "ignore": one["iscrowd"] or not any(v > 0 for v in own[2::3])})
    return *evaluate(truth, objects, found, sigmas, (ALL, MEDIUM, LARGE)), len(found)


def crowdpose(truth, records):
    """The eleven numbers, and precision and recall as in `whole_body`."""
    found = [{**one, "points": one["keypoints"], "area": extent(one["keypoints"])} for one in records]
    objects = [
        {
            **one,
            "points": one["keypoints"],
            "area": one["bbox"][2] * one["bbox"][3] * 0.53,
            "ignore": one["iscrowd"] or one["num_keypoints"] == 0,
        }
        for one in truth["annotations"]
    ]
    sigmas = numbers(_CROWDPOSE)
    precision, recall = evaluate(truth, objects, found, sigmas, (ALL,))
    stats = [mean(precision), mean(precision[[0]]), mean(precision[[5]]), 0.0, 0.0]
    stats += [mean(recall), mean(recall[[0]]), mean(recall[[5]])]
    groups = {"easy": [], "medium": [], "hard": []}
    for image in truth["images"]:
        index = image.get("crowdIndex")
        if index is not None:
            groups["easy" if index < 0.2 else "medium" if index < 0.8 else "hard"].append(image)
    for images in groups.values():
        own, _ = evaluate({**truth, "images": images}, objects, found, sigmas, (ALL,))
        stats.append(round(np.mean(own), 4))
    return stats, precision, recall


def mean(values):
    """The mean of what is not -1, and -1 where nothing is."""
    values = values[values > -1]
    return float(np.mean(values)) if values.size else -1


def extent(points):
    """The area of the box around all points."""
    x, y = points[0::3], points[1::3]
    return (max(x) - min(x)) * (max(y) - min(y))


def evaluate(truth, objects, found, sigmas, ranges, cap=20):
    """Precision (T, R, K, A) and recall (T, K, A), -1 without objects."""
    categories = sorted(one["id"] for one in truth["categories"])
    shape = (len(IOU_THRESHOLDS), len(RECALL_THRESHOLDS), len(categories), len(ranges))
    precision, recall = -np.ones(shape), -np.ones((shape[0], *shape[2:]))
    cells = []
    for k, category in enumerate(categories):
        for image in sorted(one["id"] for one in truth["images"]):
            gt, dt = (
                [one for one in rows if (one["image_id"], one["category_id"]) == (image, category)]
                for rows in (objects, found)
            )
            dt = [dt[i] for i in by_score([one["score"] for one in dt])][:cap]
            alike = np.zeros((len(dt), len(gt)))
            for d, one in enumerate(dt):
                for g, other in enumerate(gt):
                    alike[d, g] = likeness(one["points"], other["points"], other["bbox"], other["area"], sigmas)
            cells.append((k, gt, dt, alike))
    for a, (low, high) in enumerate(ranges):
        for k in range(len(categories)):
            scores, hits, ignores, positives = [], [], [], 0
            for own, gt, dt, alike in cells:
                if own != k:
                    continue
                ignore = [bool(one["ignore"]) or not low <= one["area"] <= high for one in gt]
                positives += ignore.count(False)
                own_scores = [one["score"] for one in dt]
                matched, ignored = coco_match_cell(
                    alike, own_scores, ignore, [one["iscrowd"] for one in gt], IOU_THRESHOLDS
                )
                outside = np.array([not low <= one["area"] <= high for one in dt], bool)
                ignored = ignored | ((matched < 0) & outside)
                scores += own_scores
                hits.append((matched >= 0) & ~ignored)
                ignores.append(ignored)
            if not positives:
                continue
            order = by_score(scores)
            for t in range(shape[0]):
                hit, ignored = (
                    [bool(one[i]) for i in order] for one in (np.concatenate(rows, 1)[t] for rows in (hits, ignores))
                )
                ranked = [scores[i] for i in order]
                precision[t, :, k, a], recall[t, k, a], _ = _coco_curve(
                    ranked, hit, ignored, positives, RECALL_THRESHOLDS
                )
    return precision, recall
