"""Naive twins of the retrieval conventions, in exact fractions where they can be; they import nothing of detmap."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from math import log2

import numpy as np


def order_by_distance(distances, junk=(), ties="index", key=None):
    """Items in rank order; `key` gives the documents' names for ties="docid"."""
    items = [i for i in range(len(distances)) if i not in set(junk)]
    if ties == "reversed":
        return sorted(items, key=lambda i: (distances[i], -i))
    if ties == "docid":
        items = sorted(items, key=lambda i: key[i], reverse=True)
        return sorted(items, key=lambda i: distances[i])
    return sorted(items, key=lambda i: (distances[i], i))


def tie_orders(distances, relevant, junk=()):
    """Every distinguishable order of the tied items, as 0/1 flags, each as often as the others."""
    groups = defaultdict(list)
    for i in order_by_distance(distances, junk):
        groups[distances[i]].append(int(i in relevant))
    parts = []
    for value in sorted(groups):
        flags = groups[value]
        places = itertools.combinations(range(len(flags)), sum(flags))
        parts.append([[int(i in chosen) for i in range(len(flags))] for chosen in places])
    return [[flag for part in choice for flag in part] for choice in itertools.product(*parts)]


def step_ap(flags, positives, k=None, normalizer="positives"):
    """AP of 0/1 flags in rank order; None where it is undefined."""
    flags = flags[:k]
    total, seen = Fraction(0), 0
    for rank, flag in enumerate(flags, 1):
        if flag:
            seen += 1
            total += Fraction(seen, rank)
    return _divide(total, positives, seen, k, normalizer)


def trapezoid_ap(flags, positives, k=None, normalizer="positives"):
    flags = flags[:k]
    total, seen = Fraction(0), 0
    for rank, flag in enumerate(flags, 1):
        if flag:
            before = Fraction(seen, rank - 1) if rank > 1 else Fraction(1)
            seen += 1
            total += (Fraction(seen, rank) + before) / 2
    return _divide(total, positives, seen, k, normalizer)


def _divide(total, positives, seen, k, normalizer):
    if not positives:
        return None
    divisor = {"positives": positives, "hits": seen, "smaller": min(positives, k or positives)}[normalizer]
    return total / divisor if divisor else None


def collapsed_ap(distances, relevant, junk=(), trapezoid=False):
    """One point per distinct distance (scikit-learn); `trapezoid`: the area under straight lines from (0, 1)."""
    items = order_by_distance(distances, junk)
    positives = sum(i in relevant for i in items)
    total, last_recall, last_precision = Fraction(0), Fraction(0), Fraction(1)
    for value in sorted({distances[i] for i in items}):
        inside = [i for i in items if distances[i] <= value]
        hits = sum(i in relevant for i in inside)
        precision, recall = Fraction(hits, len(inside)), Fraction(hits, positives)
        height = (precision + last_precision) / 2 if trapezoid else precision
        total += (recall - last_recall) * height
        last_recall, last_precision = recall, precision
    return total


def ndcg(gains, ideal, k=None, exponential=False):
    def gain(g):
        return 2**g - 1 if exponential else g

    def dcg(values):
        return sum(gain(g) / log2(rank + 1) for rank, g in enumerate(values[:k], 1) if g > 0)

    best = dcg(sorted(ideal, reverse=True))
    return dcg(gains) / best if best else 0.0


def market(distances, query_ids, gallery_ids, query_cameras, gallery_cameras, ties="index"):
    """torchreid and fast-reid: AP, INP and the rank of the first match per query; None for queries without a match."""
    out = []
    for q, row in enumerate(distances):
        mine = [i for i in range(len(row)) if gallery_ids[i] == query_ids[q]]
        junk = [i for i in mine if gallery_cameras[i] == query_cameras[q]]
        flags = [int(gallery_ids[i] == query_ids[q]) for i in order_by_distance(row, junk, ties)]
        ranks = [r for r, flag in enumerate(flags, 1) if flag]
        if not ranks:
            out.append(None)
            continue
        out.append((step_ap(flags, len(ranks)), Fraction(len(ranks), ranks[-1]), ranks[0]))
    return out


def layumi(scores, query_ids, gallery_ids, query_cameras, gallery_cameras):
    """layumi's evaluate: trapezoid AP and the first match, ties reversed, id -1 junk; 0 for queries without a match."""
    out = []
    for q, row in enumerate(scores):
        index = np.argsort(row, kind="stable")[::-1]
        same = gallery_ids == query_ids[q]
        camera = gallery_cameras == query_cameras[q]
        junk = (gallery_ids == -1) | (same & camera)
        good = same & ~camera & ~junk
        if not good.any():
            out.append((Fraction(0), 0))
            continue
        flags = [int(good[i]) for i in index if not junk[i]]
        out.append((trapezoid_ap(flags, int(good.sum())), flags.index(1) + 1))
    return out


def all_shots_cmc(distances, query_ids, gallery_ids, query_cameras, gallery_cameras, topk):
    """open-reid's cmc with its default options."""
    total, valid = [Fraction(0)] * topk, 0
    for q, row in enumerate(distances):
        keep = [
            i
            for i in order_by_distance(row)
            if gallery_ids[i] != query_ids[q] or gallery_cameras[i] != query_cameras[q]
        ]
        index = [place for place, i in enumerate(keep) if gallery_ids[i] == query_ids[q]]
        if not index:
            continue
        valid += 1
        for j, k in enumerate(index):
            if k - j < topk:
                total[k - j] += Fraction(1, len(index))
    return [sum(total[: k + 1]) / valid for k in range(topk)]


def cuhk03_exact_cmc(distances, query_ids, gallery_ids, query_cameras, gallery_cameras, topk):
    """The mean over every way to draw one gallery image per identity, by enumeration."""
    total, valid = [Fraction(0)] * topk, 0
    for q, row in enumerate(distances):
        keep = [i for i in range(len(row)) if gallery_ids[i] != query_ids[q] or gallery_cameras[i] != query_cameras[q]]
        people = defaultdict(list)
        for i in keep:
            people[gallery_ids[i]].append(i)
        if query_ids[q] not in people:
            continue
        valid += 1
        draws = list(itertools.product(*people.values()))
        for draw in draws:
            ranked = sorted(draw, key=lambda i: (row[i], i))
            rank = next(r for r, i in enumerate(ranked) if gallery_ids[i] == query_ids[q])
            for k in range(rank, topk):
                total[k] += Fraction(1, len(draws))
    return [t / valid for t in total]


def sysu_cmc(distances, query_ids, gallery_ids, query_cameras, gallery_cameras, topk):
    """eval_sysu: identities in order of their nearest image; camera 2 is hidden from camera 3."""
    total, valid = [Fraction(0)] * topk, 0
    for q, row in enumerate(distances):
        kept = [i for i in order_by_distance(row) if not (query_cameras[q] == 3 and gallery_cameras[i] == 2)]
        people = list(dict.fromkeys(gallery_ids[i] for i in kept))
        if query_ids[q] not in people:
            continue
        valid += 1
        for k in range(people.index(query_ids[q]), topk):
            total[k] += 1
    return [t / valid for t in total]


def revisitop(ranks, good, junk, kappas):
    """revisitop's compute_map: per query AP and precisions at kappas, None without good items."""
    out = []
    for q in range(ranks.shape[1]):
        if not len(good[q]):
            out.append(None)
            continue
        positions, removed = [], 0
        for place, item in enumerate(ranks[:, q]):
            if item in junk[q]:
                removed += 1
            elif item in good[q]:
                positions.append(place - removed)
        ap = Fraction(0)
        for j, rank in enumerate(positions):
            before = Fraction(j, rank) if rank else Fraction(1)
            ap += (before + Fraction(j + 1, rank + 1)) / 2 / len(good[q])
        at = []
        for kappa in kappas:
            kq = min(max(positions) + 1, kappa)
            at.append(Fraction(sum(p + 1 <= kq for p in positions), kq))
        out.append((ap, at))
    return out


def bpref(grades, positives, negatives, level=1):
    """`grades` in rank order; None: not in the pool, negative: not judged."""
    total, wrong = 0.0, 0
    for grade in grades:
        if grade is None or grade < 0:
            continue
        if grade >= level:
            total += 1.0 - min(wrong, positives) / min(negatives, positives) if wrong else 1.0
        else:
            wrong += 1
    return total / positives if positives else 0.0


def err(gains, highest, k=None):
    reading, total = Fraction(1), Fraction(0)
    for rank, g in enumerate(gains[:k], 1):
        stop = Fraction(2 ** max(g, 0) - 1, 2**highest)
        total += reading * stop / rank
        reading *= 1 - stop
    return total


def rbp(gains, p, highest=1):
    return sum((1 - p) * max(g, 0) / highest * p ** (rank - 1) for rank, g in enumerate(gains, 1))


def roc_rates(distances, query_ids, gallery_ids, query_cameras, gallery_cameras, rates):
    """fast-reid's evaluate_roc, over scikit-learn's curve."""
    from sklearn.metrics import roc_curve

    match, other = [], []
    for q, row in enumerate(distances):
        for i, distance in enumerate(row):
            if gallery_ids[i] != query_ids[q]:
                other.append(distance)
            elif gallery_cameras[i] != query_cameras[q]:
                match.append(distance)
    fpr, tpr, _ = roc_curve(np.repeat([0, 1], [len(match), len(other)]), np.array(match + other))
    return [tpr[np.argmin(np.abs(fpr - rate))] for rate in rates]


def discounted(gains):
    return sum(g / log2(rank + 1) for rank, g in enumerate(gains, 1) if g > 0)


def normalized_gain(gains, ideal):
    """trec_eval's G of the gains in rank order, and of all gains."""
    ideal = sorted((g for g in ideal if g > 0), reverse=True)
    total = 0.0
    for rank, gain in enumerate(gains, 1):
        if gain > 0:
            cost = sum(max(g, 1) for g in ideal[:rank]) + max(rank - len(ideal), 0)
            total += gain / log2(2 + cost - sum(g for g in gains[:rank] if g > 0))
    return total / sum(ideal) if ideal else 0.0


def binary_gain(flags, positives):
    return (
        sum(1 / log2(2 + flags[:i].count(0)) for i, flag in enumerate(flags) if flag) / positives if positives else 0.0
    )


def ndcg_at_gains(gains, ideal):
    """trec_eval's ndcg_rel."""
    ideal = sorted((g for g in ideal if g > 0), reverse=True)
    if not ideal:
        return 0.0
    points = [discounted(gains[:r]) / discounted(ideal[:r]) for r, g in enumerate(gains, 1) if g > 0]
    rest = (len(ideal) - len(points)) * discounted(gains) / discounted(ideal)
    return (sum(points) + rest) / len(ideal)


def ndcg_at_levels(gains, ideal):
    """trec_eval's Rndcg."""
    ideal = sorted((g for g in ideal if g > 0), reverse=True)
    ends = [r for r in range(1, len(ideal) + 1) if r == len(ideal) or ideal[r] != ideal[r - 1]]
    points = [discounted(gains[:r]) / discounted(ideal[:r]) for r in ends]
    if ideal and len(gains) > len(ideal) + 1:
        points.append(discounted(gains) / discounted(ideal))
    return sum(points) / len(points) if points else 0.0


def rbp_residual(judged, p):
    """What trec_eval's rbp_resid is of flags in rank order that say which items are judged."""
    unjudged = sum(p**i for i, flag in enumerate(judged) if not flag)
    return p ** len(judged) + (1 - p) * unjudged if unjudged else 0.0
