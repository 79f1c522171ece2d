"""nuScenes' detection metrics in plain Python, from documents: the twin of the protocol `nuscenes`.

Sums of products are rounded once with each addition, by fractions. arctan2 and interp are numpy's, as the development kit's.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

NAMES = ["car", "truck", "bus", "trailer", "construction_vehicle", "pedestrian", "motorcycle", "bicycle"]
NAMES += ["traffic_cone", "barrier"]
RANGES = dict(zip(NAMES, [50] * 5 + [40] * 3 + [30] * 2, strict=True))
ERRORS = ("ATE", "ASE", "AOE", "AVE", "AAE")
UNDEFINED = {"traffic_cone": {"AOE", "AVE", "AAE"}, "barrier": {"AVE", "AAE"}}


def fused(a, b):
    """A sum of products, from first to last, each rounded together with its addition."""
    total = a[0] * b[0]
    for left, right in zip(a[1:], b[1:], strict=True):
        total = float(Fraction(left) * Fraction(right) + Fraction(total))
    return total


def length(a, b):
    """The length of the difference of two points or velocities."""
    away = [p - q for p, q in zip(a[:2], b[:2], strict=True)]
    if any(value != value for value in away):
        return math.nan
    return math.sqrt(fused(away, away))


def yaw(q):
    square = fused(q, q)
    if not abs(1.0 - square) < 1e-14:
        q = [value / math.sqrt(square) for value in q]
    w, x, y, z = q
    across, along = fused([y, z, w, -x], [x, w, z, -y]), fused([x, w, -z, y], [x, w, z, -y])
    return float(np.arctan2(np.array([across + 0.0]), np.array([along + 0.0]))[0])


def rotation(q):
    square = sum(value * value for value in q)
    w, x, y, z = (value / math.sqrt(square) for value in q)
    return [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]


def in_rack(point, rack):
    turn = rotation(rack["rotation"])
    away = [p - c for p, c in zip(point, rack["translation"], strict=True)]
    width, long, height = rack["size"]
    inside = [sum(away[row] * turn[row][axis] for row in range(3)) for axis in range(3)]
    return all(abs(value) <= side / 2 for value, side in zip(inside, (long, width, height), strict=True))


def kept(box, sample):
    away = [p - c for p, c in zip(box["translation"][:2], sample["ego"][:2], strict=True)]
    name = box["detection_name"]
    if not math.sqrt(away[0] * away[0] + away[1] * away[1]) < RANGES[name] or box.get("num_pts", -1) == 0:
        return False
    return name not in ("bicycle", "motorcycle") or not any(in_rack(box["translation"], r) for r in sample["racks"])


def velocity(box):
    return [math.nan if value is None else value for value in box["velocity"] or (None, None)]


def errors(truth, found):
    shared, volume, other = (1.0, 1.0, 1.0)
    for a, b in zip(truth["size"], found["size"], strict=True):
        shared, volume, other = shared * min(a, b), volume * a, other * b
    period = math.pi if truth["detection_name"] == "barrier" else 2 * math.pi
    turned = (yaw(truth["rotation"]) - yaw(found["rotation"]) + period / 2) % period - period / 2
    if turned > math.pi:
        turned -= 2 * math.pi
    said = truth["attribute_name"]
    return [
        length(truth["translation"], found["translation"]),
        1 - shared / (volume + other - shared),
        abs(turned),
        length(velocity(truth), velocity(found)),
        math.nan if not said else float(said != found["attribute_name"]),
    ]


def accumulate(samples, results, name, threshold):
    """The precisions at 101 recalls, the confidences there, and the running errors, or None where nothing matches."""
    objects = {s["token"]: [b for b in s["boxes"] if b["detection_name"] == name] for s in samples}
    sought = sum(map(len, objects.values()))
    listed = [
        (box["detection_score"], at, token, box)
        for at, (token, box) in enumerate(results)
        if box["detection_name"] == name
    ]
    taken, hits, scores, matched = set(), [], [], []
    for score, _, token, box in sorted(listed, key=lambda one: one[:2], reverse=True):
        near, best = math.inf, None
        for at, own in enumerate(objects[token]):
            away = length(own["translation"], box["translation"])
            if (token, at) not in taken and away < near:
                near, best = away, at
        hits.append(near < threshold)
        scores.append(score)
        if near < threshold:
            taken.add((token, best))
            matched.append((score, errors(objects[token][best], box)))
    if not matched:
        return None
    found = np.cumsum(hits).astype(float)
    grid = np.linspace(0, 1, 101)
    precision, confidence = (
        np.interp(grid, found / sought, values, right=0)
        for values in (found / np.arange(1, found.size + 1), np.array(scores))
    )
    return precision, confidence, matched


def class_error(curve, column):
    if curve is None:
        return 1.0
    _, confidence, matched = curve
    total, count, means = 0.0, 0, []
    for _, values in matched:
        if values[column] == values[column]:
            total, count = total + values[column], count + 1
        means.append(total / count if count else 0.0)
    means = means if count else [1.0] * len(means)
    read = np.interp(confidence[::-1], [score for score, _ in matched][::-1], means[::-1])[::-1]
    reached = np.flatnonzero(confidence)
    last = reached[-1] if reached.size else 0
    return 1.0 if last < 11 else float(np.mean(read[11 : last + 1]))


def evaluate(document, results, thresholds=(0.5, 1.0, 2.0, 4.0)):
    """Every metric, by the names of `detmap`."""
    of = {one["token"]: one for one in document["samples"]}
    samples = [{**one, "boxes": [box for box in one["boxes"] if kept(box, one)]} for one in document["samples"]]
    boxes = [(token, box) for token, own in results["results"].items() for box in own if kept(box, of[token])]
    out = {}
    for name in NAMES:
        curves = {threshold: accumulate(samples, boxes, name, threshold) for threshold in thresholds}
        for threshold, curve in curves.items():
            read = np.zeros(90) if curve is None else np.maximum(curve[0][11:] - 0.1, 0)
            out[f"AP_{name}_{threshold:g}"] = float(np.mean(read)) / (1 - 0.1)
        out[f"AP_{name}"] = float(np.mean([out[f"AP_{name}_{threshold:g}"] for threshold in thresholds]))
        for column, error in enumerate(ERRORS):
            absent = error in UNDEFINED.get(name, ())
            out[f"{error}_{name}"] = math.nan if absent else class_error(curves[2.0], column)
    out["mAP"] = float(np.mean([out[f"AP_{name}"] for name in NAMES]))
    for error in ERRORS:
        out[f"m{error}"] = float(np.nanmean([out[f"{error}_{name}"] for name in NAMES]))
    scores = [max(0.0, 1 - out[f"m{error}"]) for error in ERRORS]
    out["NDS"] = float(5 * out["mAP"] + np.sum(scores)) / 10.0
    return out
