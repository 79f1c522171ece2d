"""Naive twins of diagnoses in plain Python: tidecv 1.0.1, and the confusion matrices of Ultralytics and supervision."""

from __future__ import annotations

from collections import defaultdict

import naive
import numpy as np


def rows_of(table, image):
    """The rows of a table on an image."""
    if not table.images.ids.size:
        return []
    return np.flatnonzero(table.images.ids[table.images.codes] == image).tolist()


def classes_of(table):
    return [table.categories.ids[code] for code in table.categories.codes]


def matrix(truth, found, match, score, iou):
    """The matrix of Ultralytics or supervision, truth in rows."""
    kinds = truth.categories.ids.tolist()
    size = len(kinds)
    out = np.zeros((size + 1, size + 1), int)
    labels, keys = classes_of(truth), classes_of(found)
    for image in truth.images.ids.tolist():
        gts = rows_of(truth, image)
        dts = [
            d for d in rows_of(found, image)
            if keys[d] in kinds and (found.scores[d] > score if match == "ultralytics" else found.scores[d] >= score)
        ]  # fmt: skip
        ious = naive.box_iou(found.boxes[dts], truth.boxes[gts], np.zeros(len(gts), bool))
        pairs = [(d, g) for d in range(len(dts)) for g in range(len(gts)) if ious[d, g] > iou]
        if match == "ultralytics":
            pairs.sort(key=lambda p, ious=ious, dts=dts: (-found.scores[dts[p[0]]], p[0], -ious[p], p[1]))
        else:
            pairs.sort(
                key=lambda p, ious=ious, dts=dts, gts=gts: (keys[dts[p[0]]] != labels[gts[p[1]]], -ious[p], p[::-1])
            )
        detected, taken = set(), set()
        for d, g in pairs:
            if d not in detected and g not in taken:
                detected.add(d)
                taken.add(g)
                out[kinds.index(labels[gts[g]]), kinds.index(keys[dts[d]])] += 1
        for d in set(range(len(dts))) - detected:
            out[size, kinds.index(keys[dts[d]])] += 1
        for g in set(range(len(gts))) - taken:
            out[kinds.index(labels[gts[g]]), size] += 1
    return out


TYPES = ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")


def mean_ap(points, positives):
    """tidecv's mAP of lists of (score, right) by class: classes with neither points nor objects are left out."""
    values = []
    for kind in set(points) | set(positives):
        if not points.get(kind) and not positives.get(kind):
            continue
        if not positives.get(kind):
            values.append(0.0)
            continue
        ranked = sorted(points.get(kind, []), key=lambda point: -point[0])
        right = np.cumsum([hit for _, hit in ranked])
        recall = right / positives[kind]
        precision = right / np.arange(1, len(ranked) + 1)
        precision = np.maximum.accumulate(precision[::-1])[::-1]
        at = np.searchsorted(recall, np.arange(101) / 100, side="left")
        values.append(sum(precision[i] if i < len(ranked) else 0.0 for i in at) / 101)
    return float(np.mean(values)) if values else float("nan")


def tidecv(truth, found, images, pos=0.5, bg=0.1, cap=100):
    """AP, counts, and gains one by one, progressive and special; `images` are ids in the order of the file."""
    labels, keys = classes_of(truth), classes_of(found)
    errors, hits, base, positives, taken = [], [], defaultdict(list), defaultdict(int), set()
    for image in images:
        dts = sorted(rows_of(found, image), key=lambda d: -found.scores[d])[:cap]
        gts = [g for g in rows_of(truth, image) if not truth.crowd[g]]
        crowds = [g for g in rows_of(truth, image) if truth.crowd[g]]
        ious = naive.box_iou(found.boxes[dts], truth.boxes[gts], np.zeros(len(gts), bool))
        over = naive.box_iou(found.boxes[dts], truth.boxes[crowds], np.ones(len(crowds), bool))
        for g in gts:
            positives[labels[g]] += 1
        of = {}
        for i, d in enumerate(dts):
            free = [(-ious[i, j], j) for j, g in enumerate(gts) if labels[g] == keys[d] and g not in taken]
            if free and -min(free)[0] >= pos:
                of[i] = gts[min(free)[1]]
                taken.add(of[i])
        for i, d in enumerate(dts):
            if i in of:
                hits.append((keys[d], found.scores[d]))
                base[keys[d]].append((found.scores[d], True))
                continue
            ignored = any(over[i, j] > pos and labels[g] == keys[d] for j, g in enumerate(crowds))
            same = [(-ious[i, j], j) for j, g in enumerate(gts) if labels[g] == keys[d]]
            other = [(-ious[i, j], j) for j, g in enumerate(gts) if labels[g] != keys[d]]
            best, wrong = (-min(pairs)[0] if pairs else 0.0 for pairs in (same, other))
            target = None
            if same and bg <= best <= pos:
                kind, target = "Loc", gts[min(same)[1]]
            elif wrong >= pos:
                kind, target = "Cls", gts[min(other)[1]]
            elif best >= pos:
                kind = "Dupe"
            else:
                kind = "Bkg" if max(best, wrong) <= bg else "Both"
            errors.append((kind, keys[d], found.scores[d], ignored, target))
            if not ignored:
                base[keys[d]].append((found.scores[d], False))
    pointed = {target for *_, target in errors if target is not None and target not in taken}
    best_of = {}
    for at, (_, _, score, _, target) in enumerate(errors):
        if target in pointed and (target not in best_of or score > errors[best_of[target]][2]):
            best_of[target] = at
    objects = [g for image in images for g in rows_of(truth, image) if not truth.crowd[g]]
    missing = [g for g in objects if g not in taken and g not in pointed]

    def mended(kind, disabled, right):
        """Points by class with the errors of a kind mended, and what is right then: (class, score), in order."""
        points, fixed = defaultdict(list), []
        for at, (what, key, score, ignored, target) in enumerate(errors):
            if at in disabled:
                continue
            if what == kind:
                if best_of.get(target) == at:
                    fixed.append((labels[target] if what == "Cls" else key, score))
                    points[fixed[-1][0]].append((score, True))
            elif not ignored:
                points[key].append((score, False))
        for key, score in right:
            points[key].append((score, True))
        return points, fixed + right

    def fewer(gone):
        out = dict(positives)
        for g in gone:
            out[labels[g]] -= 1
        return out

    points = {name: mended(name, set(), hits)[0] for name in TYPES}
    sought = {name: fewer(missing) if name == "Miss" else positives for name in TYPES}
    ap = mean_ap(base, positives)
    main = {name: max(mean_ap(points[name], sought[name]) - ap, 0.0) for name in TYPES}
    progressive, before, disabled, right = {}, ap, set(), hits
    for name in TYPES:
        now, right = mended(name, disabled, right)
        disabled |= {at for at, error in enumerate(errors) if error[0] == name}
        after = mean_ap(now, sought[name])
        progressive[name] = max(after - before, 0.0)
        before = after
    apart, as_pushed = defaultdict(list), defaultdict(list)
    for _, key, score, ignored, _ in errors:
        if not ignored:
            apart[key].append((0.0, False))
            as_pushed[key].append((score, False))
    for key, score in hits:
        apart[key].append((1.0, True))
        as_pushed[key].append((score, True))
    return {
        "AP": ap,
        "counts": {name: sum(error[0] == name for error in errors) for name in TYPES} | {"Miss": len(missing)},
        "main": main,
        "progressive": progressive,
        "FalsePos": mean_ap(apart, positives) - ap,
        "FalseNeg": mean_ap(as_pushed, fewer([g for g in objects if g not in taken])) - ap,
    }
