"""A naive twin of Open Images' evaluation, as TensorFlow's Object Detection API has it; imports nothing of the library.

Objects are dicts: image, label, box (x1, y1, x2, y2), group, and with masks a mask (a bitmap, or None). Detections likewise,
with a score. Labels of images are triples of image, label and 1 or 0. Sorts are stable.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np


def box_overlap(a, b, over_first):
    """Intersection over union, or over the first box's area."""
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    inter = height * width
    first, second = ((c[3] - c[1]) * (c[2] - c[0]) for c in (a, b))
    whole = first if over_first else first + second - inter
    return inter / whole if whole else float("nan")


def mask_overlap(a, b, over_first):
    inter = float(np.logical_and(a, b).sum())
    whole = float(a.sum()) if over_first else float(a.sum()) + float(b.sum()) - inter
    return inter / max(whole, 1e-7)


def mask_box(mask):
    """The box around a mask, as shares of its sides."""
    rows, columns = np.nonzero(mask)
    if not rows.size:
        return (0.0, 0.0, 0.0, 0.0)
    height, width = mask.shape
    return (
        float(columns.min()) / width,
        float(rows.min()) / height,
        float(columns.max() + 1) / width,
        float(rows.max() + 1) / height,
    )


def best(overlaps):
    """The first of the largest; NaN is largest of all, as in numpy."""
    return int(np.argmax(overlaps))


class Cell:
    """The detections of one class on one image, best first: whether each is a hit, fell to a group, or is set aside."""

    def __init__(self, found, least):
        self.found, self.least = found, least
        self.hit = [False] * len(found)
        self.fell = [False] * len(found)
        self.boxed = [False] * len(found)

    def single(self, objects, overlap, boxed):
        taken = [False] * len(objects)
        for i, one in enumerate(self.found):
            if not objects:
                continue
            overlaps = [overlap(one, g, False) for g in objects]
            g = best(overlaps)
            if not self.hit[i] and not self.fell[i] and overlaps[g] >= self.least and not taken[g]:
                self.hit[i] = taken[g] = True
                self.boxed[i] = boxed

    def grouped(self, groups, overlap, boxed):
        """Return the score of each group, 0 where nothing fell to it."""
        scores = [0.0] * len(groups)
        for i, one in enumerate(self.found):
            if not groups:
                continue
            overlaps = [overlap(one, g, True) for g in groups]
            g = best(overlaps)
            if not self.hit[i] and not self.fell[i] and overlaps[g] >= self.least:
                self.fell[i] = True
                self.boxed[i] = boxed
                scores[g] = max(scores[g], one["score"])
        return scores


def entries(objects, found, weight, least, masks, cap=10_000):
    """(score, hit) of one class on one image, in the order in which they are appended."""
    found = [one for one in found if one["score"] > -10]
    found = [found[i] for i in np.argsort([one["score"] for one in found], kind="stable")[::-1][:cap]]
    cell = Cell(found, least)

    def boxes(d, g, over_first):
        return box_overlap(d["box"], g["box"], over_first)

    def shapes(d, g, over_first):
        return mask_overlap(d["mask"], g["mask"], over_first) if masks else boxes(d, g, over_first)

    drawn = [g for g in objects if not masks or (g["mask"] is not None and g["mask"].any())]
    others = [g for g in objects if not any(g is one for one in drawn)]
    cell.single([g for g in drawn if not g["group"]], shapes, False)
    scores = cell.grouped([g for g in drawn if g["group"]], shapes, False)
    if masks:
        cell.single([g for g in others if not g["group"]], boxes, True)
        cell.grouped([g for g in others if g["group"]], boxes, True)
    plain = [
        (one["score"], hit)
        for one, hit, fell, boxed in zip(found, cell.hit, cell.fell, cell.boxed, strict=True)
        if not fell and not boxed
    ]
    return plain + [(score, True) for score in scores if score > 0 and weight]


def average_precision(rows, positives):
    order = np.argsort([score for score, _ in rows], kind="stable")[::-1]
    hits = np.array([rows[i][1] for i in order], bool)
    if not hits.size:
        return 0.0
    true, false = np.cumsum(hits.astype(float)), np.cumsum((~hits).astype(float))
    precision = np.concatenate([[0], true / (true + false), [0]])
    recall = np.concatenate([[0], true / positives, [1]])
    for i in range(len(precision) - 2, -1, -1):
        precision[i] = max(precision[i], precision[i + 1])
    steps = np.flatnonzero(recall[1:] != recall[:-1]) + 1
    return float(np.sum((recall[steps] - recall[steps - 1]) * precision[steps]))


def evaluate(objects, detections, labels, categories, *, weight=1, judged=True, least=0.5, masks=False):
    """AP by category, NaN where nothing is to be found."""
    looked_for = defaultdict(set)
    for one in objects:
        looked_for[one["image"]].add(one["label"])
    for image, label, _ in labels:
        looked_for[image].add(label)
    cells, truth = defaultdict(list), defaultdict(list)
    for one in objects:
        truth[one["image"], one["label"]].append(one)
    for one in detections:
        one = {**one, "box": mask_box(one["mask"])} if masks else one
        x1, y1, x2, y2 = one["box"]
        if x1 < x2 and y1 < y2 and (not judged or one["label"] in looked_for[one["image"]]):
            cells[one["image"], one["label"]].append(one)
    images = sorted({one["image"] for one in [*objects, *detections]})
    made = {}
    for category in categories:
        own = [one for one in objects if one["label"] == category]
        positives = sum(weight if one["group"] else 1 for one in own)
        rows = []
        for image in images:
            if cells[image, category]:
                rows += entries(truth[image, category], cells[image, category], weight, least, masks)
        made[category] = average_precision(rows, positives) if positives else float("nan")
    return made


def ancestors(hierarchy):
    """For each label the labels above it, by each path, the root left out; and for each those below it."""
    above, below = defaultdict(list), defaultdict(set)

    def walk(node, path):
        name = node["LabelName"]
        above[name] += path
        for parent in path:
            below[parent].add(name)
        for child in [*node.get("Subcategory", ()), *node.get("Part", ())]:
            walk(child, [*path, name])

    for child in hierarchy.get("Subcategory", ()):
        walk(child, [])
    return above, below
