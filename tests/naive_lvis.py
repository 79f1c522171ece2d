"""A naive twin of LVIS's evaluation, of its fixed AP and of pooled AP, from their rules; imports nothing of the library.

Ground truth is LVIS's JSON as a dict, detections are a list of records. Unlike lvis-api the twin takes files that lack
fields: an image without a list has an empty one, and a category without a frequency is in no group.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from naive import IOU_THRESHOLDS, RECALL_THRESHOLDS, box_iou, by_score, coco_match_cell

AREA_RANGES = {"all": (0, 1e10), "small": (0, 32**2), "medium": (32**2, 96**2), "large": (96**2, 1e10)}
GROUPS = ("r", "c", "f")


def kept(records, per_image=300, per_category=None):
    """The records within the caps, in the order in which lvis-api goes on with them."""
    for field, most in (("category_id", per_category), ("image_id", per_image)):
        if most is None:
            continue
        groups = defaultdict(list)
        for record in records:
            groups[record[field]].append(record)
        if field == "category_id":  # the published script sorts every group
            groups = {key: sorted(group, key=lambda one: -one["score"])[:most] for key, group in groups.items()}
        else:
            for key, group in groups.items():
                if len(group) > most:
                    groups[key] = sorted(group, key=lambda one: -one["score"])[:most]
        records = [record for group in groups.values() for record in group]
    return records


def boxes_iou(found, objects):
    """Overlaps of two lists of records, (D, G)."""
    return box_iou([one["bbox"] for one in found], [one["bbox"] for one in objects], [False] * len(objects))


def evaluate(
    truth, records, *, per_image=300, per_category=None, thresholds=IOU_THRESHOLDS, overlaps=boxes_iou, **more
):
    """Precision (T, R, K, A), recall (T, K, A), the results by name, and pooled AP (T, R) by pool.

    Records have an ``area``. `missed` are the ids of objects that no detection finds: in lvis-api the id 0.
    """
    missed = more.pop("missed", ())
    assert not more
    images = {one["id"]: one for one in truth["images"]}
    categories = sorted(one["id"] for one in truth["categories"])
    frequency = {one["id"]: one.get("frequency") for one in truth["categories"]}
    objects, found = defaultdict(list), defaultdict(list)
    for one in truth["annotations"]:
        if one["area"] > 0:
            objects[one["image_id"], one["category_id"]].append(one)
    for one in kept(records, per_image, per_category):
        image, category = one["image_id"], one["category_id"]
        looked_for = objects[image, category] or category in (images[image].get("neg_category_ids") or ())
        if one["area"] > 0 and looked_for:
            found[image, category].append(one)

    shape = (len(thresholds), 101, len(categories), len(AREA_RANGES))
    precision, recall = -np.ones(shape), -np.ones((shape[0], *shape[2:]))
    pooled = {}
    for a, (low, high) in enumerate(AREA_RANGES.values()):
        cells = {}
        for k, category in enumerate(categories):
            own = [
                _cell(
                    objects[image, category],
                    found[image, category],
                    (low, high),
                    category in (images[image].get("not_exhaustive_category_ids") or ()),
                    thresholds,
                    overlaps,
                    missed,
                )
                for image in sorted(images)
            ]
            cells[category] = own
            curve = _curve(own, thresholds)
            if curve is not None:
                precision[:, :, k, a], recall[:, k, a] = curve
        if a == 0:
            for pool in ("all", *GROUPS):
                some = [category for category in categories if pool in ("all", frequency[category])]
                by_image = [cells[category][i] for i in range(len(images)) for category in some]
                pooled[pool] = _curve(by_image, thresholds)
    return precision, recall, _results(precision, recall, thresholds, [frequency[one] for one in categories]), pooled


def _cell(objects, found, area, lenient, thresholds, overlaps, missed):
    """Scores, hits (T, D) and ignored detections (T, D) of an image and a category, and how many objects there are."""
    low, high = area
    found = [found[i] for i in by_score([one["score"] for one in found])]
    ignore = [bool(one.get("ignore")) or one["area"] < low or one["area"] > high for one in objects]
    scores = [one["score"] for one in found]
    ious = overlaps(found, objects) if found and objects else np.zeros((len(found), len(objects)))
    matched, ignored = coco_match_cell(ious, scores, ignore, [False] * len(objects), thresholds)
    for g, one in enumerate(objects):
        if one["id"] in missed:
            matched[matched == g] = -1
    outside = np.array([one["area"] < low or one["area"] > high or lenient for one in found], bool)
    ignored = ignored | ((matched < 0) & outside)
    return scores, (matched >= 0) & ~ignored, ignored, ignore.count(False)


def _curve(cells, thresholds):
    """Precision (T, R) and recall (T,) of cells, one after the other; None without objects."""
    positives = sum(cell[3] for cell in cells)
    if not positives:
        return None
    scores = np.concatenate([cell[0] for cell in cells])
    hit, ignored = (np.concatenate([cell[i] for cell in cells], axis=1) for i in (1, 2))
    order = by_score(scores.tolist())
    precision, recall = np.zeros((len(thresholds), 101)), np.zeros(len(thresholds))
    for t in range(len(thresholds)):
        true = np.cumsum(hit[t, order].astype(float))
        false = np.cumsum((~hit & ~ignored)[t, order].astype(float))
        if not true.size:
            continue
        reached, values = true / positives, true / (true + false + np.spacing(1))
        values = np.maximum.accumulate(values[::-1])[::-1]
        recall[t] = reached[-1]
        for r, place in enumerate(np.searchsorted(reached, RECALL_THRESHOLDS, side="left")):
            precision[t, r] = values[place] if place < values.size else 0.0
    return precision, recall


def mean(values):
    """The mean of what is not -1, and -1 where nothing is."""
    values = values[values > -1]
    return np.mean(values) if values.size else -1


def _results(precision, recall, thresholds, frequencies):
    """The thirteen numbers by lvis-api's names."""
    at = {iou: np.where(np.asarray(thresholds) == iou)[0] for iou in (0.5, 0.75)}
    made = {"AP": precision[..., 0], "AP50": precision[at[0.5], ..., 0], "AP75": precision[at[0.75], ..., 0]}
    made |= {f"AP{name[0]}": precision[..., a] for a, name in enumerate(AREA_RANGES) if a}
    for group in GROUPS:
        made[f"AP{group}"] = precision[:, :, [k for k, own in enumerate(frequencies) if own == group], 0]
    made["AR@300"] = recall[..., 0]
    made |= {f"AR{name[0]}@300": recall[..., a] for a, name in enumerate(AREA_RANGES) if a}
    return {name: mean(values) for name, values in made.items()}


def inside(truth, records, thresholds, areas, image_ids, category_ids, *, use_cats=True):
    """lvis-api's `eval_imgs`, its `dt_pointers` and its overlaps by image and category; records have ids and areas."""
    images = {one["id"]: one for one in truth["images"]}
    objects, found = defaultdict(list), defaultdict(list)
    for image in image_ids:
        for one in truth["annotations"]:
            if one["image_id"] == image and one["area"] > 0:
                objects[image, one["category_id"]].append(one)
        for one in records:
            category = one["category_id"]
            looked_for = objects[image, category] or category in images[image]["neg_category_ids"]
            if one["image_id"] == image and one["area"] > 0 and looked_for:
                found[image, category].append(one)
    if not use_cats:
        for table in (objects, found):
            for image in image_ids:
                table[image, -1] = [one for category in category_ids for one in table[image, category]]
    cells, overlaps = [], {}
    for category in category_ids if use_cats else [-1]:
        for low, high in areas:
            for image in image_ids:
                own = objects[image, category]
                best = sorted(found[image, category], key=lambda one: -one["score"])
                overlaps[image, category] = boxes_iou(best, own) if own and best else []
                cells.append(_entry(own, best, overlaps[image, category], (low, high), thresholds))
                if cells[-1] is not None:
                    lenient = [d["category_id"] in images[image]["not_exhaustive_category_ids"] for d in best]
                    outside = [d["area"] < low or d["area"] > high for d in best]
                    spared = np.array([a or b for a, b in zip(lenient, outside, strict=True)], bool)
                    cells[-1]["dt_ignore"] |= (cells[-1]["dt_matches"] == 0) & spared
                    cells[-1] |= {"image_id": image, "category_id": category, "area_rng": [low, high]}
    count, pointers = len(image_ids), {}
    for k in range(len(category_ids) if use_cats else 1):
        for a in range(len(areas)):
            first = (k * len(areas) + a) * count
            own = [cell for cell in cells[first : first + count] if cell is not None]
            pointers.setdefault(k, {})[a] = _pointers(own)
    return cells, pointers, overlaps


def _entry(objects, found, ious, area, thresholds):
    """The matches of a cell; `found` is sorted by score."""
    if not objects and not found:
        return None
    ignore = [int(bool(one.get("ignore")) or not area[0] <= one["area"] <= area[1]) for one in objects]
    order = sorted(range(len(objects)), key=lambda g: ignore[g])
    of_found, of_objects = np.zeros((len(thresholds), len(found))), np.zeros((len(thresholds), len(objects)))
    ignored = np.zeros(of_found.shape, bool)
    for t, threshold in enumerate(thresholds):
        for d, one in enumerate(found if len(ious) else ()):
            best, match = min(threshold, 1 - 1e-10), None
            for place, g in enumerate(order):
                if of_objects[t, place]:
                    continue
                if match is not None and not ignore[order[match]] and ignore[g]:
                    break
                if ious[d][g] >= best:
                    best, match = ious[d][g], place
            if match is not None:
                ignored[t, d] = ignore[order[match]]
                of_found[t, d], of_objects[t, match] = objects[order[match]]["id"], one["id"]
    return {
        "dt_ids": [one["id"] for one in found],
        "gt_ids": [objects[g]["id"] for g in order],
        "dt_matches": of_found,
        "gt_matches": of_objects,
        "dt_scores": [one["score"] for one in found],
        "gt_ignore": [ignore[g] for g in order],
        "dt_ignore": ignored,
    }


def _pointers(cells):
    """The detections of a category by descending score, and which are true and false positives; {} without objects."""
    if not sum(cell["gt_ignore"].count(0) for cell in cells):
        return {}
    order = by_score([score for cell in cells for score in cell["dt_scores"]])
    ids = np.array([one for cell in cells for one in cell["dt_ids"]])[order]
    hit = np.concatenate([cell["dt_matches"] != 0 for cell in cells], axis=1)[:, order]
    ignored = np.concatenate([cell["dt_ignore"] for cell in cells], axis=1)[:, order]
    return {"dt_ids": ids, "tps": hit & ~ignored, "fps": ~hit & ~ignored}
