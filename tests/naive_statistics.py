"""Naive twins of the statistics: images really duplicated, quantiles and corrections by the book. No import of detmap."""

from __future__ import annotations

import itertools
import math

import naive
import numpy as np

UNDEFINED = math.nan


def duplicated(dataset, results, counts):
    """The data set in which image `i` of the ascending ids occurs `counts[i]` times; copies are neighbours in id order."""
    ids = sorted(item["id"] for item in dataset["images"])
    copies = {
        image: [1 + 1000 * place + copy for copy in range(count)]
        for place, (image, count) in enumerate(zip(ids, counts, strict=True))
    }

    def spread(records):
        return [{**row, "image_id": new} for row in records for new in copies.get(row["image_id"], ())]

    images = [{**item, "id": new} for item in dataset["images"] for new in copies[item["id"]]]
    return {**dataset, "images": images, "annotations": spread(dataset["annotations"])}, spread(results)


def coco_metrics(dataset, results, params):
    """Every metric in the order of detmap's columns, then AP, AP50 and AP75 of every category; NaN where undefined."""
    done = naive.coco_evaluate(
        [item["id"] for item in dataset["images"]],
        sorted(item["id"] for item in dataset["categories"]),
        dataset["annotations"],
        results,
        **params,
    )
    precision, recall = done["precision"], done["recall"]
    thresholds = naive.IOU_THRESHOLDS if params.get("iou_thresholds") is None else params["iou_thresholds"]

    def mean(values):
        values = values[values > -1]
        return float(np.mean(values)) if values.size else UNDEFINED

    def at(values, wanted):
        return values if wanted is None else values[[t for t, iou in enumerate(thresholds) if iou == wanted]]

    areas = range(1, precision.shape[3])
    whole = precision[:, :, :, 0, -1]
    return [
        *(mean(at(whole, iou)) for iou in (None, 0.5, 0.75)),
        *(mean(precision[:, :, :, a, -1]) for a in areas),
        *(mean(recall[:, :, 0, m]) for m in range(recall.shape[3])),
        *(mean(recall[:, :, a, -1]) for a in areas),
        *(mean(at(whole, iou)[:, :, k]) for iou in (None, 0.5, 0.75) for k in range(whole.shape[2])),
    ]


def exchanged(first, second, images, swaps):
    """Two lists of detections after those of some images have changed sides; a list is read image by image."""

    def of(results, image):
        return [row for row in results if row["image_id"] == image]

    sides = ([], [])
    for image, swap in zip(images, swaps, strict=True):
        for side, results in ((swap, first), (1 - swap, second)):
            sides[side].extend(of(results, image))
    return sides


def permutation_p(differences, observed, drawn):
    """The share of permutations that differ at least as much; the data are one more where they are drawn."""
    extreme = sum(abs(value) >= abs(observed) - 1e-12 for value in differences)
    return (extreme + drawn) / (len(differences) + drawn)


def benjamini_hochberg(p_values):
    """Adjusted p-values: the smallest level at which the step-up procedure rejects each, by trying every step."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    for step, i in enumerate(order):
        later = range(step, len(order))
        adjusted[i] = min(1.0, *(len(order) / (j + 1) * p_values[order[j]] for j in later))
    return adjusted


def bca_interval(estimate, replicates, jackknife, level):
    """Efron's BCa interval of one metric from replicates moved to the estimate, quantiles interpolated linearly."""
    from scipy.stats import norm

    shift = sum(replicates) / len(replicates) - estimate
    replicates = [value - shift for value in replicates]
    below = sum((value < estimate) + (value == estimate) / 2 for value in replicates) / len(replicates)
    bias = norm.ppf(below)
    mean = sum(jackknife) / len(jackknife)
    cubes, squares = sum((mean - v) ** 3 for v in jackknife), sum((mean - v) ** 2 for v in jackknife)
    acceleration = cubes / (6 * squares**1.5)
    ends = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = bias + norm.ppf(tail)
        ends.append(quantile(replicates, norm.cdf(bias + z / (1 - acceleration * z))))
    return ends


def quantile(values, at):
    """Linear interpolation between the order statistics."""
    ordered = sorted(values)
    place = at * (len(ordered) - 1)
    low = min(math.floor(place), len(ordered) - 2)
    return ordered[low] + (place - low) * (ordered[low + 1] - ordered[low])


def holm(p_values):
    """Adjusted p-values: the smallest alpha at which the stepwise procedure rejects each, by trying every step."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    for step, i in enumerate(order):
        needed = [(len(order) - earlier) * p_values[order[earlier]] for earlier in range(step + 1)]
        adjusted[i] = min(1.0, max(needed))
    return adjusted


def randomisation_p(first, second):
    """Share of all assignments of the two values of each query whose mean difference is at least as large."""
    observed = abs(sum(b - a for a, b in zip(first, second, strict=True)))
    extreme = total = 0
    for swaps in itertools.product((False, True), repeat=len(first)):
        pairs = [(b, a) if swap else (a, b) for swap, a, b in zip(swaps, first, second, strict=True)]
        total += 1
        extreme += abs(sum(b - a for a, b in pairs)) >= observed
    return extreme / total


def t_interval(value, draws, left_out, images, level):
    """Student's t interval of a difference, the variance being the mean of the bootstrap's and the larger one of both."""
    from scipy.stats import t

    draws, left_out = ([one for one in values if not math.isnan(one)] for values in (draws, left_out))
    away = sum(left_out) / len(left_out)
    jackknife = sum((one - away) ** 2 for one in left_out) * (len(left_out) - 1) / len(left_out)
    mean = sum(draws) / len(draws)
    drawn = sum((one - mean) ** 2 for one in draws) / (len(draws) - 1) * images / (images - 1)
    error = math.sqrt((drawn + max(jackknife, drawn)) / 2)
    margin = float(t.ppf((1 + level) / 2, min(images, len(left_out)) - 1)) * error
    return value - margin, value + margin


# ------------------------------------------------------------------- an interval from the formulas of docs/statistics.md


def copies(images, seed, replicate):
    """How often each image is in a replicate of the bootstrap."""
    places = np.random.Generator(np.random.Philox(key=[seed, replicate])).integers(0, images, images)
    return [int((places == place).sum()) for place in range(images)]


def resampled(dataset, results, params, replicates, seed):
    """Every metric of the data, of each replicate and without each image: images are really duplicated and left out."""
    size = len(dataset["images"])
    whole = [1] * size
    without = [[int(place != out) for place in range(size)] for out in range(size)]
    drawn = [copies(size, seed, r) for r in range(replicates)]
    made = [coco_metrics(*duplicated(dataset, results, counts), params) for counts in (whole, *drawn, *without)]
    return made[0], made[1 : 1 + replicates], made[1 + replicates :]


def freedom_of_clusters(objects, groups):
    """Degrees of freedom of clusters with so many objects each, of which the jackknife leaves out so many groups."""
    held = [n for n in objects if n]
    worth = (len(held) + sum(held) ** 2 / sum(n * n for n in held)) / 2
    return max(min(worth, groups) - 1, 1)


def defined(values):
    return [float(v) for v in values if not math.isnan(v)]


def squares(values):
    """The sum of the squared distances from the mean."""
    mean = math.fsum(values) / len(values)
    return math.fsum((v - mean) ** 2 for v in values)


def standard_error(replicates, jackknife, images):
    """Step 1."""
    drawn, groups = defined(replicates), len(jackknife)
    b = images / (images - 1) * squares(drawn) / (len(drawn) - 1)
    j = (groups - 1) / groups * squares(defined(jackknife))
    return math.sqrt((b + max(b, j)) / 2)


def interval(value, replicates, jackknife, images, level=0.95, least=0.0, last=0.0, fewest=10, freedom=None):
    """The interval of a metric, None where there is none; a metric below `least`, or less than `last` from 1, has none."""
    from scipy.stats import norm, t

    if math.isnan(value) or images < fewest or value < least or 1 - value < last:
        return None
    away = defined(jackknife)
    away = [v - math.fsum(away) / len(away) for v in away]
    fourth = math.fsum(u**4 for u in away)
    if not fourth or math.fsum(u**2 for u in away) ** 2 / fourth < 1.2:
        return None
    m = value * (1 - value) / standard_error(replicates, jackknife, images) ** 2  # step 2
    if m * value < 2 or m * (1 - value) < 2:
        return None

    def logits(values):  # step 3
        moved = [v if math.isnan(v) else min(max(v, 0.5 / m), 1 - 0.5 / m) for v in map(float, values)]
        return [math.log(v / (1 - v)) for v in moved]

    drawn = defined(logits(replicates))
    mean, deviation = math.fsum(drawn) / len(drawn), math.sqrt(squares(drawn) / len(drawn))
    for share in (k / 40 for k in range(1, 40)):
        at = mean + float(norm.ppf(share)) * deviation
        below, up_to = (sum(inside) / len(drawn) for inside in ([v < at for v in drawn], [v <= at for v in drawn]))
        if max(share - below, up_to - share) > 0.2:
            return None
    error = standard_error(logits(replicates), logits(jackknife), images)
    freedom = min(images, len(jackknife)) - 1 if freedom is None else freedom
    reach = float(t.ppf((1 + level) / 2, freedom)) * error
    low, high = (1 / (1 + math.exp(-(math.log(value / (1 - value)) + sign * reach))) for sign in (-1, 1))
    low = 0.0 if low < max(2 / m, least) else low  # step 4
    return low, 1.0 if 1 - high < max(2 / m, last) else high


def nearest(kind, thresholds, classes):
    """How far from 0 and from 1 a mean over so many IoU thresholds and classes must be to have an interval."""
    if kind != "AP":
        return 0.0, 0.0
    return 0.02 / classes, 0.015 / classes if thresholds == 1 else 0.0
