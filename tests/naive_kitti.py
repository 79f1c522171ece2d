"""KITTI's evaluation in plain Python, from the benchmark's rules: loops over images, objects, detections and thresholds.

Objects and detections are tuples: class, box, truncation, occlusion, alpha, box in space, score. Nothing of detmap
is imported.
"""

from __future__ import annotations

import math
from typing import NamedTuple

LIMITS = {"easy": (40, 0, 0.15), "moderate": (25, 1, 0.3), "hard": (25, 2, 0.5)}
LEAST = {"car": 0.7, "pedestrian": 0.5, "cyclist": 0.5}
NEIGHBOUR = {"car": "van", "pedestrian": "person_sitting", "cyclist": None}


class Thing(NamedTuple):
    """An object, a region, or a detection."""

    name: str
    box: tuple[float, ...]
    truncated: float
    occluded: float
    alpha: float
    space: tuple[float, ...]
    score: float = 0.0


def read(path, scored=False):
    """The things of one file."""
    things = []
    with open(path) as lines:
        for words in filter(None, map(str.split, lines)):
            numbers = [float(word) for word in words[1:]]
            things.append(
                Thing(
                    words[0].lower(),
                    tuple(numbers[3:7]),
                    *numbers[:3],
                    tuple(numbers[7:14]),
                    numbers[14] if scored else 0.0,
                )
            )
    return things


def overlap(found, sought, whole=True):
    """Intersection over union on the image, or over the detection."""
    a, b = found.box, sought.box
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    area = (a[2] - a[0]) * (a[3] - a[1])
    return shared / (area + (b[2] - b[0]) * (b[3] - b[1]) - shared) if whole else shared / area


def roles(things, name, level, scored):
    """0 counts, 1 is ignored, -1 is not there, of each thing."""
    height, occlusion, truncation = LIMITS[level]
    out = []
    for one in things:
        tall = one.box[3] - one.box[1]
        if scored:
            out.append(1 if math.floor(abs(tall)) < height else 0 if one.name == name else -1)
            continue
        outside = one.occluded > occlusion or one.truncated > truncation or tall <= height
        out.append((1 if outside else 0) if one.name == name else 1 if one.name == NEIGHBOUR[name] else -1)
    return out


def first_pass(image, name, level, overlaps):
    """The scores of true positives."""
    objects, found = image
    needed, valid = roles(objects, name, level, False), roles(found, name, level, True)
    used, scores = set(), []
    for g, role in enumerate(needed):
        if role == -1:
            continue
        best = None
        for d, own in enumerate(valid):
            if own == -1 or d in used or not overlaps(found[d], objects[g]) > LEAST[name]:
                continue
            if best is None or found[d].score > found[best].score:
                best = d
        if best is not None:
            used.add(best)
            if role == 0 and valid[best] == 0:
                scores.append(found[best].score)
    return scores


def second_pass(image, name, level, overlaps, threshold):
    """True and false positives, and the sum of similarities, at a threshold."""
    objects, found = image
    needed, valid = roles(objects, name, level, False), roles(found, name, level, True)
    used, hits, alike = set(), 0, 0.0
    for g, role in enumerate(needed):
        if role == -1:
            continue
        best, most, ignored = None, 0.0, False
        for d, own in enumerate(valid):
            if own == -1 or d in used or found[d].score < threshold:
                continue
            value = overlaps(found[d], objects[g])
            if not value > LEAST[name]:
                continue
            if own == 0 and (best is None or ignored or value > most):
                best, most, ignored = d, value, False
            elif own == 1 and best is None:
                best, ignored = d, True
        if best is not None:
            used.add(best)
            if role == 0 and not ignored:
                hits += 1
                alike += (1 + math.cos(objects[g].alpha - found[best].alpha)) / 2
    misses = 0
    for d, own in enumerate(valid):
        if own == 0 and d not in used and found[d].score >= threshold:
            regions = (one for one in objects if one.name == "dontcare")
            misses += not any(overlaps(found[d], region, whole=False) > LEAST[name] for region in regions)
    return hits, misses, alike


def thresholds_of(scores, positives):
    """The scores at which precision is read."""
    out, recall = [], 0.0
    for i, score in enumerate(sorted(scores, reverse=True)):
        last = i == len(scores) - 1
        low, high = (i + 1) / positives, (i + 1 if last else i + 2) / positives
        if not last and high - recall < recall - low:
            continue
        out.append(score)
        recall += 1 / 40.0
    return out


def evaluate(images, name, level, overlaps=overlap):
    """Precision and similarity at 41 places; None without objects."""
    positives = sum(roles(objects, name, level, False).count(0) for objects, _ in images)
    if not positives:
        return None
    scores = [score for image in images for score in first_pass(image, name, level, overlaps)]
    precision, alike = [0.0] * 41, [0.0] * 41
    thresholds = thresholds_of(scores, positives)
    for k, threshold in enumerate(thresholds):
        hits = misses = 0
        similarity = 0.0
        for image in images:
            tp, fp, own = second_pass(image, name, level, overlaps, threshold)
            hits, misses, similarity = hits + tp, misses + fp, similarity + own
        precision[k] = hits / (hits + misses) if hits + misses else math.nan
        alike[k] = similarity / (hits + misses) if hits + misses else math.nan
    for values in (precision, alike):
        for k in range(len(thresholds)):
            values[k] = largest(values[k:])
    return precision, alike


def largest(values):
    """C++'s ``max_element``: a NaN stays where it is first, and is passed over elsewhere."""
    best = values[0]
    for value in values[1:]:
        if best < value:
            best = value
    return best


def average(values, rule):
    """Of 40 places, or of 11, in percent."""
    chosen = values[1:] if rule == 40 else values[::4]
    total = 0.0
    for value in chosen:
        total += value
    return 100 * (total / rule)
