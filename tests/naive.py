"""Naive twins: the rules of every protocol in plain, slow Python; imports nothing of the library under test.

Boxes are rows of floats. "xywh" is left, top, width, height in continuous coordinates; "xyxy" is left, top, right,
bottom.
Rankings are lists of 1-based ranks of the hits, ascending. Ranks given as `fractions.Fraction` make the ranking
functions exact.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from fractions import Fraction

import numpy as np

IOU_THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALL_THRESHOLDS = np.linspace(0.0, 1.0, 101)
AREA_RANGES = [[0, 1e10], [0, 1024], [1024, 9216], [9216, 1e10]]
MAX_DETS = [1, 10, 100]
VOC_RECALL_GRID = np.arange(0.0, 1.1, 0.1)  # its 0.3, 0.6 and 0.7 lie just above the decimals

# ---------------------------------------------------------------------------------------------------------- overlap


def box_iou(detections, ground_truth, crowd):
    """IoU of every detection (D, 4) with every ground truth (G, 4), xywh, COCO's rule: (D, G) float64.

    With a crowd the intersection is divided by the detection's area alone.
    """
    dx, dy, dw, dh = np.asarray(detections, float).reshape(-1, 4).T[:, :, None]
    gx, gy, gw, gh = np.asarray(ground_truth, float).reshape(-1, 4).T[:, None, :]
    width = np.minimum(dx + dw, gx + gw) - np.maximum(dx, gx)
    height = np.minimum(dy + dh, gy + gh) - np.maximum(dy, gy)
    intersection = width * height
    union = np.where(np.asarray(crowd, bool), dw * dh, dw * dh + gw * gh - intersection)
    touching = (width > 0) & (height > 0)
    with np.errstate(all="ignore"):  # areas of boxes smaller than 1e-160 vanish, and C divides on
        return np.divide(intersection, union, out=np.zeros_like(intersection), where=touching)


def voc_iou(detections, ground_truth, inclusive=True):
    """IoU of every detection (D, 4) with every ground truth (G, 4), xyxy, VOC's rule: (D, G) float64.

    `inclusive` counts both end pixels: a box from 1 to 3 is three pixels wide.
    """
    one = 1.0 if inclusive else 0.0
    dx1, dy1, dx2, dy2 = np.asarray(detections, float).reshape(-1, 4).T[:, :, None]
    gx1, gy1, gx2, gy2 = np.asarray(ground_truth, float).reshape(-1, 4).T[:, None, :]
    width = np.minimum(dx2, gx2) - np.maximum(dx1, gx1) + one
    height = np.minimum(dy2, gy2) - np.maximum(dy1, gy1) + one
    intersection = width * height
    union = (dx2 - dx1 + one) * (dy2 - dy1 + one) + (gx2 - gx1 + one) * (gy2 - gy1 + one) - intersection
    touching = (width > 0) & (height > 0)
    return np.divide(intersection, union, out=np.zeros_like(intersection), where=touching)


# ---------------------------------------------------------------------------------------------------------- sorting


def by_score(scores):
    """Positions by descending score; ties keep their order, NaN comes last."""
    return sorted(
        range(len(scores)), key=lambda i: (math.isnan(scores[i]), 0.0 if math.isnan(scores[i]) else -scores[i])
    )


def grouped_order(groups, scores):
    """Positions by ascending group, then as `by_score`: the stable grouped sort."""
    return sorted(by_score(scores), key=lambda i: groups[i])


# ------------------------------------------------------------------------------------------------------------- COCO


def coco_match_cell(ious, scores, gt_ignore, gt_crowd, thresholds):
    """COCO's greedy matching of one image and class.

    Parameters: `ious` (D, G), `scores` (D,), `gt_ignore` and `gt_crowd` (G,), all in the order of the input.
    Returns `matched` (T, D), the position of the ground truth or -1, and `ignored` (T, D), whether that one is to be
    ignored; both in the order of the input.
    """
    D, G = np.shape(ious)
    matched = np.full((len(thresholds), D), -1)
    ignored = np.zeros((len(thresholds), D), bool)
    real = [g for g in range(G) if not gt_ignore[g]]
    rest = [g for g in range(G) if gt_ignore[g]]
    for t, threshold in enumerate(thresholds):
        taken = set()
        for d in by_score(scores):
            # An ignored ground truth is only looked at when no real one can be had; the last of the equals wins.
            for candidates in (real, rest):
                best, chosen = min(threshold, 1 - 1e-10), -1
                for g in candidates:
                    if (g not in taken or gt_crowd[g]) and not ious[d, g] < best:
                        best, chosen = ious[d, g], g
                if chosen >= 0:
                    matched[t, d] = chosen
                    ignored[t, d] = bool(gt_ignore[chosen])
                    taken.add(chosen)
                    break
    return matched, ignored


def coco_rankings(
    images,
    categories,
    ground_truth,
    detections,
    iou_thresholds,
    area_range,
    max_det,
    use_categories=True,
    missed=(),
    measure=box_iou,
):
    """Match everything within one area range, `max_det` detections per image and class at most.

    Returns one entry per category in the order of `categories` (a single one when `use_categories` is false): None
    where no image has anything of it, else a dict of `scores` (N,), `image` (N,), `rank` (N,) the 0-based place within
    its image, `hit` (T, N), `ignored` (T, N) in ranking order (score, then image, then place), and `positives`.
    `missed` are ids of annotations: what matches one has no match. An `area_range` may also be two functions, which say of
    a record of ground truth and of one of a detection whether it is inside.
    """
    low, high = area_range
    if callable(low):
        truth_inside, inside = area_range
    else:

        def truth_inside(record):
            return low <= record["area"] <= high

        def inside(record):
            return low <= record["bbox"][2] * record["bbox"][3] <= high

    gts, dts = defaultdict(list), defaultdict(list)
    for record in ground_truth:
        gts[record["image_id"], record["category_id"]].append(record)
    for record in detections:
        dts[record["image_id"], record["category_id"]].append(record)
    groups = [[category] for category in sorted(set(categories))] if use_categories else [list(categories)]
    result = []
    for group in groups:
        scores, image_of, rank_of, hits, ignores, positives, seen = [], [], [], [], [], 0, False
        for image in sorted(set(images)):
            gt = [record for category in group for record in gts.get((image, category), ())]
            dt = [record for category in group for record in dts.get((image, category), ())]
            if not gt and not dt:
                continue
            seen = True
            dt = [dt[i] for i in by_score([record["score"] for record in dt])][:max_det]
            crowd = [bool(record.get("iscrowd", 0)) for record in gt]
            ignore = [c or not truth_inside(record) for c, record in zip(crowd, gt, strict=True)]
            positives += ignore.count(False)
            ious = measure([record["bbox"] for record in dt], [record["bbox"] for record in gt], crowd)
            matched, ignored = coco_match_cell(ious, [record["score"] for record in dt], ignore, crowd, iou_thresholds)
            for g, record in enumerate(gt):
                if record.get("id") in missed:
                    matched[matched == g] = -1
            for i, record in enumerate(dt):
                outside = not inside(record)
                scores.append(record["score"])
                image_of.append(image)
                rank_of.append(i)
                ignores.append(ignored[:, i] | ((matched[:, i] < 0) & outside))
                hits.append((matched[:, i] >= 0) & ~ignored[:, i])
        order = by_score(scores)
        shape = (len(scores), len(iou_thresholds))
        result.append(
            {
                "scores": np.array([float(scores[i]) for i in order]),
                "image": [image_of[i] for i in order],
                "rank": [rank_of[i] for i in order],
                "hit": np.array([hits[i] for i in order], bool).reshape(shape).T,
                "ignored": np.array([ignores[i] for i in order], bool).reshape(shape).T,
                "positives": positives,
            }
            if seen
            else None
        )
    return result


def coco_evaluate(
    images,
    categories,
    ground_truth,
    detections,
    iou_thresholds=None,
    recall_thresholds=None,
    area_ranges=None,
    max_dets=None,
    use_categories=True,
    missed=(),
    measure=box_iou,
):
    """Precision (T, R, K, A, M), recall (T, K, A, M) and scores (T, R, K, A, M) with -1 where undefined, COCO's rule.

    `images` and `categories` are ids; records are COCO's dicts (`bbox` xywh, `area`, `iscrowd`; `score`). Categories
    come out in ascending order, caps too. Annotation ids play no part but for those in `missed`, as pycocotools does with
    the id 0: who matches such an object has no match. What it does with duplicate ids is not repeated here.
    Overlaps are those of `measure`, a function of the shapes in `bbox` of both sides and the crowds.
    """
    iou_thresholds = IOU_THRESHOLDS if iou_thresholds is None else iou_thresholds
    recall_thresholds = RECALL_THRESHOLDS if recall_thresholds is None else recall_thresholds
    area_ranges = AREA_RANGES if area_ranges is None else area_ranges
    max_dets = sorted(MAX_DETS if max_dets is None else max_dets)
    K = len(set(categories)) if use_categories else 1
    T, R, A, M = len(iou_thresholds), len(recall_thresholds), len(area_ranges), len(max_dets)
    precision, scores = np.full((T, R, K, A, M), -1.0), np.full((T, R, K, A, M), -1.0)
    recall = np.full((T, K, A, M), -1.0)
    for a, area_range in enumerate(area_ranges):
        rankings = coco_rankings(
            images,
            categories,
            ground_truth,
            detections,
            iou_thresholds,
            area_range,
            max_dets[-1],
            use_categories,
            missed,
            measure,
        )
        for k, ranking in enumerate(rankings):
            if ranking is None or not ranking["positives"]:
                continue
            for m, cap in enumerate(max_dets):
                kept = [i for i, rank in enumerate(ranking["rank"]) if rank < cap]
                for t in range(T):
                    precision[t, :, k, a, m], recall[t, k, a, m], scores[t, :, k, a, m] = _coco_curve(
                        [ranking["scores"][i] for i in kept],
                        [bool(ranking["hit"][t, i]) for i in kept],
                        [bool(ranking["ignored"][t, i]) for i in kept],
                        ranking["positives"],
                        recall_thresholds,
                    )
    return {"precision": precision, "recall": recall, "scores": scores}


def _coco_curve(scores, hit, ignored, positives, recall_thresholds):
    """The precisions and scores at `recall_thresholds`, and the last recall, of one ranking."""
    tp = fp = 0
    precisions, recalls = [], []
    for is_hit, is_ignored in zip(hit, ignored, strict=True):
        tp += is_hit
        fp += not is_hit and not is_ignored
        precisions.append(tp / (float(fp + tp) + 2.0**-52))
        recalls.append(tp / positives)
    envelope, best = [], 0.0
    for value in reversed(precisions):
        best = max(best, value)
        envelope.append(best)
    envelope.reverse()
    precision_at, score_at = [0.0] * len(recall_thresholds), [0.0] * len(recall_thresholds)
    for r, threshold in enumerate(recall_thresholds):
        place = int(np.searchsorted(recalls, threshold, side="left"))
        if place == len(recalls):
            break  # this one and every later one keep 0, in the given order
        precision_at[r], score_at[r] = envelope[place], scores[place]
    return precision_at, recalls[-1] if recalls else 0.0, score_at


def coco_summary(precision, recall):
    """The twelve numbers of arrays made with COCO's own settings; -1 where nothing is defined."""

    def mean(values):
        values = values[values > -1]
        return np.mean(values) if values.size else -1.0

    average_precisions = [
        mean(precision[..., 0, 2]),
        mean(precision[0:1, ..., 0, 2]),
        mean(precision[5:6, ..., 0, 2]),
        *(mean(precision[..., a, 2]) for a in (1, 2, 3)),
    ]
    average_recalls = [mean(recall[..., 0, m]) for m in (0, 1, 2)] + [mean(recall[..., a, 2]) for a in (1, 2, 3)]
    return np.array(average_precisions + average_recalls)


# -------------------------------------------------------------------------------------------------------------- VOC


def voc_match(images, scores, boxes, ground_truth, threshold=0.5, strict=False, inclusive=True):
    """The devkit's matching of one class.

    Parameters: `images` (N,), `scores` (N,), `boxes` (N, 4) xyxy of the detections in file order; `ground_truth` maps
    an image to `(boxes (G, 4) xyxy, difficult (G,))` of this class. `strict` compares with `>`, as the Python programs
    do; the devkit with `>=`.
    Returns `order` (N,), the detections by descending score (ties in file order), and for every rank "TP", "FP" or
    "ignored", and the number of positives.
    """
    boxes = np.asarray(boxes, float).reshape(-1, 4)
    of_image = defaultdict(list)
    for i, image in enumerate(images):
        of_image[image].append(i)
    best_iou, best_gt = [0.0] * len(boxes), [-1] * len(boxes)
    for image, members in of_image.items():
        if image in ground_truth and len(ground_truth[image][0]):
            ious = voc_iou(boxes[members], ground_truth[image][0], inclusive)
            for i, row, g in zip(members, ious, ious.argmax(axis=1), strict=True):  # argmax: the first of the equals
                best_iou[i], best_gt[i] = row[g], g
    order = np.argsort(-np.asarray(scores, float), kind="stable")
    outcome, taken = [], set()
    for i in order.tolist():
        enough = best_iou[i] > threshold if strict else best_iou[i] >= threshold
        key = images[i], best_gt[i]
        if best_gt[i] < 0 or not enough:
            outcome.append("FP")
        elif ground_truth[images[i]][1][best_gt[i]]:
            outcome.append("ignored")
        elif key in taken:
            outcome.append("FP")
        else:
            taken.add(key)
            outcome.append("TP")
    positives = sum(not flag for _, difficult in ground_truth.values() for flag in difficult)
    return order, outcome, positives


def hit_ranks(outcome):
    """1-based ranks of the hits among what is not ignored: `outcome` is a list of "TP", "FP", "ignored"."""
    ranks, rank = [], 0
    for what in outcome:
        rank += what != "ignored"
        if what == "TP":
            ranks.append(rank)
    return ranks


def voc_ap_11(ranks, positives):
    """VOC2007's 11-point AP on the grid of the Python programs; NaN without positives."""
    if not positives:
        return math.nan
    total = 0.0
    for precision in n_point_precisions(ranks, positives, VOC_RECALL_GRID):
        total += precision / 11
    return total


def voc_ap_all_point(ranks, positives):
    """VOC2010's AP, the area under the envelope; NaN without positives."""
    return all_point_ap(ranks, positives)


def vocap(outcome, positives):
    """AP of the development kit from 2010 on, as VOCap.m goes about it: curves with ends, and terms added one by one."""
    tp = np.cumsum([what == "TP" for what in outcome])
    fp = np.cumsum([what == "FP" for what in outcome])
    some = tp + fp > 0  # before, the kit has NaN, which its envelope passes over
    mrec = [0.0, *(tp / positives)[some].tolist(), 1.0]
    mpre = [0.0, *(tp[some] / (fp + tp)[some]).tolist(), 0.0]
    for i in range(len(mpre) - 2, -1, -1):
        mpre[i] = max(mpre[i], mpre[i + 1])
    ap = 0.0
    for i in range(1, len(mrec)):
        if mrec[i] != mrec[i - 1]:
            ap += (mrec[i] - mrec[i - 1]) * mpre[i]
    return ap


def voc_evaluate(classes, ground_truth, detections, threshold=0.5, strict=False, inclusive=True):
    """Every class of a data set.

    `ground_truth` maps an image to a list of objects as `read_voc_xml` returns them; `detections` maps a class to
    `(images, scores, boxes)` as `read_voc_results` returns them.
    Returns for every class a dict of `ap_11`, `ap_all_point`, `positives`, `detections`, `ranks`, `order`, `outcome`.
    """
    result = {}
    for name in classes:
        objects = {}
        for image, listed in ground_truth.items():
            mine = [item for item in listed if item["name"] == name]
            if mine:
                objects[image] = [item["box"] for item in mine], [item["difficult"] for item in mine]
        images, scores, boxes = detections.get(name, ([], [], []))
        order, outcome, positives = voc_match(images, scores, boxes, objects, threshold, strict, inclusive)
        ranks = hit_ranks(outcome)
        result[name] = {
            "ap_11": voc_ap_11(ranks, positives),
            "ap_all_point": voc_ap_all_point(ranks, positives),
            "positives": positives,
            "detections": len(images),
            "ranks": ranks,
            "order": order,
            "outcome": outcome,
        }
    return result


def read_voc_xml(text):
    """The objects of one VOC annotation, as dicts of `name`, `difficult` and `box` (xyxy); parts are no objects."""
    return [
        {
            "name": item.findtext("name").strip(),
            "difficult": bool(int(item.findtext("difficult", "0"))),
            "box": [float(item.find("bndbox").findtext(side)) for side in ("xmin", "ymin", "xmax", "ymax")],
        }
        for item in ElementTree.fromstring(text).findall("object")
    ]


def read_voc_results(text):
    """`images`, `scores`, `boxes` (xyxy) of one `comp4_det_*_{class}.txt`, in file order."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return [row[0] for row in rows], [float(row[1]) for row in rows], [[float(x) for x in row[2:6]] for row in rows]


# --------------------------------------------------------------------------------------------------------- rankings


def ranks_of(relevance, scores=None):
    """1-based ranks of the relevant items of a list in ranking order, or ranked by score with ties in list order."""
    order = range(len(relevance)) if scores is None else by_score(scores)
    return [rank for rank, i in enumerate(order, start=1) if relevance[i]]


def precisions_at_hits(ranks, epsilon=0):
    """Precision at every hit: j / (rank_j + epsilon)."""
    return [j / (rank + epsilon) for j, rank in enumerate(ranks, start=1)]


def envelope_at_hits(ranks, epsilon=0):
    """The largest precision at each hit or a later one."""
    result, best = [], 0
    for precision in reversed(precisions_at_hits(ranks, epsilon)):
        best = max(best, precision)
        result.append(best)
    return result[::-1]


def step_ap(ranks, positives, epsilon=0):
    """Sum of the precisions at the hits, divided once by the positives; NaN without positives."""
    return _total(precisions_at_hits(ranks, epsilon)) / positives if positives else math.nan


def all_point_ap(ranks, positives, epsilon=0):
    """Sum over the hits, in rank order, of the gain in recall times the envelope; NaN without positives."""
    if not positives:
        return math.nan
    one = Fraction(1) if ranks and isinstance(ranks[0], Fraction) else 1
    terms = []
    for j, precision in enumerate(envelope_at_hits(ranks, epsilon)):
        terms.append((one * (j + 1) / positives - one * j / positives) * precision)
    return _total(terms) if terms else 0.0


def trapezoid_hits_ap(ranks, positives, epsilon=0):
    """The known mistake of taking the precision at the hit before, 1 before the first. NaN without positives."""
    if not positives:
        return math.nan
    before, terms = 1, []
    for precision in precisions_at_hits(ranks, epsilon):
        terms.append((precision + before) / 2)
        before = precision
    return _total(terms) / positives


def trapezoid_ap(ranks, positives, epsilon=0):
    """Sum over hits of the mean of the precision there and at the rank before, divided once by the positives.

    Before rank 1 the precision is taken as that of rank 1. NaN without positives.
    """
    if not positives:
        return math.nan
    terms = []
    for j, rank in enumerate(ranks, start=1):
        here = j / (rank + epsilon)
        before = (j - 1) / (rank - 1 + epsilon) if rank > 1 else here
        terms.append((here + before) / 2)
    return _total(terms) / positives


def n_point_precisions(ranks, positives, grid, epsilon=0):
    """For every recall of `grid` the largest precision at that recall or more, 0 where it is not reached.

    Recalls are compared as floats, or exactly with those of a `grid` of fractions.
    """
    envelope = envelope_at_hits(ranks, epsilon)
    result = []
    for wanted in grid:
        one = Fraction(1) if isinstance(wanted, Fraction) else 1
        reached = [j for j in range(len(ranks)) if one * (j + 1) / positives >= wanted]
        result.append(envelope[reached[0]] if reached else 0)
    return result


def n_point_ap(ranks, positives, grid, epsilon=0):
    """Mean of `n_point_precisions` by numpy's mean; exact when the ranks are fractions; NaN without positives."""
    if not positives:
        return math.nan
    values = n_point_precisions(ranks, positives, grid, epsilon)
    return (
        sum(values) / len(values) if any(isinstance(v, Fraction) for v in values) else float(np.mean(np.array(values)))
    )


def precision_recall(relevance, positives, epsilon=0):
    """Precision and recall at every rank of a list in ranking order; recall is NaN without positives."""
    precision, recall, tp = [], [], 0
    for rank, relevant in enumerate(relevance, start=1):
        tp += bool(relevant)
        precision.append(tp / (rank + epsilon))
        recall.append(tp / positives if positives else math.nan)
    return precision, recall


def _total(values):
    """Left-to-right sum. (`sum` compensates its rounding from Python 3.12 on.)"""
    total = 0
    for value in values:
        total = total + value
    return total


# ----------------------------------------------------------------------------------------------------------- counts


def counts(scores, hit, ignored, positives, score_threshold=-math.inf):
    """TP, FP and FN of one ranking at one IoU threshold, of the detections with `score >= score_threshold`."""
    kept = [i for i, score in enumerate(scores) if score >= score_threshold]
    tp = sum(bool(hit[i]) for i in kept)
    fp = sum(not hit[i] and not ignored[i] for i in kept)
    return tp, fp, positives - tp


def best_f1(scores, hit, ignored, positives):
    """The score threshold at which F1 is best: (score, F1, precision, recall); a tied group enters whole.

    F1 is 2 TP / (counted + positives), compared exactly; the highest score wins among equals. What is ignored is as if
    it were not there. All NaN without positives or without a counted detection.
    """
    counted = [(score, bool(h)) for score, h, skip in zip(scores, hit, ignored, strict=True) if not skip]
    if not positives or not counted:
        return math.nan, math.nan, math.nan, math.nan
    counted.sort(key=lambda pair: -pair[0])
    best_score, best_tp, best_n, tp = counted[0][0], 0, 0, 0
    for n, (score, is_hit) in enumerate(counted, start=1):
        tp += is_hit
        last_of_its_group = n == len(counted) or counted[n][0] != score
        # 2 TP / (n + positives), cross-multiplied; no threshold was held before the first group
        better = best_n == 0 or tp * (best_n + positives) > best_tp * (n + positives)
        if last_of_its_group and better:
            best_score, best_tp, best_n = score, tp, n
    return float(best_score), 2 * best_tp / (best_n + positives), best_tp / best_n, best_tp / positives
