"""Naive twins of ActivityNet's and THUMOS14's evaluations of segments of time: plain loops, nothing of detmap."""

from __future__ import annotations

import math

import numpy as np


def overlap(one, other):
    """The tIoU of a detection and an object, as ActivityNet's program counts it; NaN where both have no length."""
    shared = max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
    whole = (other[1] - other[0]) + (one[1] - one[0]) - shared
    return shared / whole if whole else math.nan


def activitynet(truth, results, thresholds):
    """Return labels in order of appearance, and for each threshold the AP of each, of a database and results.

    Equal scores stand from the last to the first, as a stable sort that is reversed has them.
    """
    videos = {video: one["annotations"] for video, one in truth.items() if one["subset"] == "validation"}
    labels = list(dict.fromkeys(one["label"] for own in videos.values() for one in own))
    rows = [(video, one) for video, own in results.items() for one in own]
    table = []
    for threshold in thresholds:
        table.append([])
        for label in labels:
            objects = {video: [one["segment"] for one in own if one["label"] == label] for video, own in videos.items()}
            taken = {video: [False] * len(own) for video, own in objects.items()}
            own = [(video, one) for video, one in rows if one["label"] == label]
            order = np.argsort([one["score"] for _, one in own], kind="stable")[::-1]
            flags = []
            for at in order.tolist():
                video, one = own[at]
                overlaps = [overlap(one["segment"], other) for other in objects.get(video, [])]
                hit = False
                for place in np.argsort(overlaps, kind="stable")[::-1].tolist():
                    if overlaps[place] < threshold:
                        break
                    if not taken[video][place]:
                        taken[video][place] = hit = True
                        break
                flags.append(hit)
            table[-1].append(area(flags, sum(map(len, objects.values()))))
    return labels, np.array(table)


def area(flags, positives):
    """The area under the envelope, its terms added as numpy does."""
    if not flags:
        return 0.0
    hits = np.cumsum(flags).astype(float)
    recall = np.hstack([[0], hits / positives, [1]])
    precision = np.hstack([[0], hits / np.arange(1, len(flags) + 1), [0]])
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    steps = np.where(recall[1:] != recall[:-1])[0] + 1
    return float(np.sum((recall[steps] - recall[steps - 1]) * precision[steps]))


def thumos(objects, ambiguous, found, classes, threshold, eleven=False):
    """Return the AP of each class at a threshold: of `objects` and `found`, (video, start, end, class[, score]).

    By the kit as updated, or with `eleven` the one before it.
    """
    out = []
    for label in classes:
        own = [one for one in objects if one[3] == label]
        rows = []
        videos = sorted({one[0] for one in (*objects, *found)})
        for video in videos:
            sought = [one for one in own if one[0] == video]
            given = sorted((one for one in found if one[3] == label and one[0] == video), key=lambda one: -one[4])
            free = [True] * len(given)
            for target in sought:
                values = [spanned(one, target) if free[place] else 0.0 for place, one in enumerate(given)]
                best = max(range(len(given)), key=lambda place: (values[place], -place), default=None)
                if best is not None and values[best] > threshold:
                    free[best] = False
            for one, left in zip(given, free, strict=True):
                if not (left and any(other[0] == video and spanned(one, other) > 0 for other in ambiguous)):
                    rows.append((one[4], not left))
        if eleven:  # hits are listed before misses
            rows.sort(key=lambda row: not row[1])
        rows.sort(key=lambda row: -row[0])
        flags = [hit for _, hit in rows]
        out.append(eleven_points(flags, len(own)) if eleven else precision_at_hits(flags, len(own)))
    return out


def spanned(one, other):
    """What two segments share, over the time from the first start to the last end."""
    shared = min(one[2], other[2]) - max(one[1], other[1])
    return shared / (max(one[2], other[2]) - min(one[1], other[1])) if shared > 0 else 0.0


def precision_at_hits(flags, positives):
    """The sum of the precision at each hit, over what there is to find."""
    total = hits = 0
    for rank, hit in enumerate(flags, 1):
        if hit:
            hits += 1
            total += hits / rank
    return total / positives


def eleven_points(flags, positives):
    """The mean of the envelope at the recalls that MATLAB makes of 0:0.1:1."""
    recalls = [0, 0.1, 0.2, 3 * 0.1, 0.4, 0.5, 1 - 0.4, 1 - 0.3, 1 - 0.2, 1 - 0.1, 1]
    hits, points = 0, []
    for rank, hit in enumerate(flags, 1):
        hits += hit
        points.append((hits / positives, hits / rank))
    total = 0.0
    for recall in recalls:
        total += max((precision for at, precision in points if at >= recall), default=0.0) / 11
    return total
