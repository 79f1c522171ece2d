"""Precision, recall and average precision from hits: the core of every AP that detmap reports.

Every kernel reads the columns of `detmap.hits.Hits`: for ranking *q* the ascending 1-based ranks of its hits,
``ranks[starts[q]:starts[q + 1]]``, and the number of positives, ``positives[q]``. Precision at the *j*-th hit is ``j /
(rank_j + epsilon)``, recall ``j / positives``. Precision decreases between hits, so hits determine the curve.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.sorting import _longest_group

Array = NDArray[Any]

STEP, ALL_POINT, TRAPEZOID, TRAPEZOID_OF_HITS, PAIRWISE = 0, 1, 2, 3, 4

# Orders of the items of a tied group. Defined here rather than in `detmap.kernels.ties`, so that evaluations of
# detections need not load that module.
KEEP, REVERSE, FIRST, LAST, COLLAPSE = 0, 1, 2, 3, 4


#: Size of the stack of `_pairwise_sum`. Every halving of a range adds at most two entries.
_HALVES = 128


class Rankings(NamedTuple):
    """The hits of rankings, with the columns of `detmap.hits.Hits`; `scores` and `first_scores` may be empty."""

    starts: Array
    ranks: Array
    positives: Array
    scores: Array
    first_scores: Array


@helper
def _envelope(ranks: Array, first: int, hits: int, epsilon: float, out: Array) -> None:
    """Write, for each hit, the maximum precision at this hit or any later hit."""
    row, best = ranks[first : first + hits], 0.0
    for j in range(hits - 4, -1, -4):  # unrolled, so that the chain of dependent maxima has a quarter of the steps
        d = (j + 4) / (row[np.uint64(j + 3)] + epsilon)
        c = max(d, (j + 3) / (row[np.uint64(j + 2)] + epsilon))
        b = max(c, (j + 2) / (row[np.uint64(j + 1)] + epsilon))
        a = max(b, (j + 1) / (row[np.uint64(j)] + epsilon))
        out[j + 3], out[j + 2], out[j + 1] = max(best, d), max(best, c), max(best, b)
        best = max(best, a)
        out[j] = best
    for j in range(hits % 4 - 1, -1, -1):
        best = max(best, (j + 1) / (row[np.uint64(j)] + epsilon))
        out[j] = best


@helper
def _block_sum(values: Array, start: int, size: int) -> Any:
    """Sum at most 128 values as numpy does: eight partial sums, joined pairwise; then the rest sequentially."""
    if size < 8:
        total = 0.0
        for i in range(size):
            total += values[start + i]
        return total
    a, b, c, d = values[start], values[start + 1], values[start + 2], values[start + 3]
    e, f, g, h = values[start + 4], values[start + 5], values[start + 6], values[start + 7]
    for i in range(start + 8, start + size - size % 8, 8):
        a, b, c, d = a + values[i], b + values[i + 1], c + values[i + 2], d + values[i + 3]
        e, f, g, h = e + values[i + 4], f + values[i + 5], g + values[i + 6], h + values[i + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(size - size % 8, size):
        total += values[start + i]
    return total


@helper
def _pairwise_sum(values: Array, size: int, starts: Array, sizes: Array, sums: Array) -> Any:
    """Sum values in the order of numpy's pairwise ``sum``, which halves blocks of more than 128; the other arguments
    are scratch.
    """
    tasks, made = 1, 0
    starts[0], sizes[0] = 0, size
    while tasks:
        tasks -= 1
        start, count = starts[tasks], sizes[tasks]
        if count < 0:  # both halves have been summed
            made -= 1
            sums[made - 1] += sums[made]
        elif count <= 128:
            sums[made] = _block_sum(values, start, count)
            made += 1
        else:
            half = count // 2 - count // 2 % 8
            sizes[tasks] = -1
            starts[tasks + 1], sizes[tasks + 1] = start + half, count - half
            starts[tasks + 2], sizes[tasks + 2] = start, half
            tasks += 3
    return sums[0]


@kernel
def average_precision(
    starts: Array, ranks: Array, positives: Array, rule: int, epsilon: float, begin: int, end: int, out: Array
) -> None:
    """Write the AP of rankings ``[begin, end)`` into `out`; NaN without positives.

    The `rule` STEP adds the precisions at the hits. TRAPEZOID replaces each precision by its mean with the precision
    one rank earlier (1 at rank 1). TRAPEZOID_OF_HITS takes the mean with the precision at the previous hit (1 at the
    first hit), which is a known mistake. These three rules add in rank order and divide the sum by the number of
    positives. ALL_POINT adds in rank order, as VOC's development kit does, and does not divide the sum. A term is a
    hit's gain in recall times the largest precision at that recall or later. PAIRWISE adds the terms of ALL_POINT in
    the order of numpy's ``sum``, with a last term of 0 if recall does not reach 1.
    """
    area = rule in (ALL_POINT, PAIRWISE)
    envelope = np.empty(_longest_group(starts, begin, end) + 1)
    tasks, sizes, sums = np.empty(_HALVES, np.int64), np.empty(_HALVES, np.int64), np.empty(_HALVES)
    for q in range(begin, end):
        first, hits = starts[q], starts[q + 1] - starts[q]
        if positives[q] <= 0:
            out[q] = np.nan
            continue
        if area:
            _envelope(ranks, first, hits, epsilon, envelope)
        total, before_hit = 0.0, 0.0
        for j in range(hits):
            rank = ranks[first + j]
            if area:
                recall = (j + 1) / positives[q]
                envelope[j] *= recall - before_hit
                total += envelope[j]
                before_hit = recall
                continue
            value = (j + 1) / (rank + epsilon)
            if rule == TRAPEZOID:
                before = j / (rank - 1 + epsilon) if rank > 1 else 1.0
                value = (value + before) / 2
            elif rule == TRAPEZOID_OF_HITS:
                value = (value + (j / (ranks[first + j - 1] + epsilon) if j else 1.0)) / 2
            total += value
        if rule == PAIRWISE:
            envelope[hits] = 0.0
            total = _pairwise_sum(envelope, hits + (hits < positives[q]), tasks, sizes, sums)
        out[q] = total if area else total / positives[q]


@kernel
def interpolate(
    rankings: Rankings, grid: Array, epsilon: float, begin: int, end: int, out_precision: Array, out_scores: Array
) -> None:
    """Write the interpolated precision of rankings ``[begin, end)`` at the recalls of `grid`.

    ``out_precision[q, i]`` is the largest precision at recall ``grid[i]`` or more, 0 if that recall is not reached, NaN
    without positives. As in pycocotools, the loop over the grid stops at the first recall that is not reached, even in
    an unsorted grid. If `out_scores` is not empty, ``out_scores[q, i]`` is the score at which that recall is first
    reached; for recall 0 it is the score of the first item.
    """
    starts, ranks, positives = rankings.starts, rankings.ranks, rankings.positives
    scores, first_scores = rankings.scores, rankings.first_scores
    with_scores = out_scores.shape[0] > 0
    reached = np.empty(grid.shape[0], np.int64)  # number of hits needed to reach each recall of the grid
    envelope = np.empty(_longest_group(starts, begin, end))
    found = 0
    for q in range(begin, end):
        first, hits = starts[q], starts[q + 1] - starts[q]
        if positives[q] <= 0:
            for i in range(grid.shape[0]):  # a loop, because numba compiles an error message into a slice assignment
                out_precision[q, i] = np.nan
                if with_scores:
                    out_scores[q, i] = np.nan
            continue
        if positives[q] != found:  # all rankings of a class have the same number of positives
            found = positives[q]
            for i in range(grid.shape[0]):
                # Guess the first hit whose rounded recall reaches ``grid[i]``, then correct the guess by comparing.
                j = int(max(0.0, min(np.ceil(grid[i] * found), found + 1.0)))
                while j > 0 and (j - 1) / found >= grid[i]:
                    j -= 1
                while j <= found and j / found < grid[i]:
                    j += 1
                reached[i] = j
        stop = 0
        while stop < grid.shape[0] and reached[stop] <= hits:
            stop += 1
        for i in range(stop, grid.shape[0]):
            out_precision[q, i] = 0.0
            if with_scores:
                out_scores[q, i] = 0.0
        _envelope(ranks, first, hits, epsilon, envelope)
        for i in range(stop):
            out_precision[q, i] = envelope[max(reached[i], 1) - 1] if hits else 0.0
        if with_scores:
            for i in range(stop):
                j = reached[i]
                out_scores[q, i] = scores[first + j - 1] if j else first_scores[q]


@kernel
def read_lines(
    rankings: Rankings, items: Array, grid: Array, epsilon: float, tail: bool, begin: int, end: int, out: Array
) -> None:
    """Write the precision envelope of rankings ``[begin, end)``, interpolated linearly at the recalls of an ascending
    `grid`. Of several points with the same recall, only the last point counts. The curve ends at the precision of all
    `items`, then drops to 0 or, with `tail`, falls to (1, 0) in a straight line. The curve is 0 without hits, NaN
    without positives.
    """
    starts, ranks, positives = rankings.starts, rankings.ranks, rankings.positives
    longest = _longest_group(starts, begin, end)
    envelope = np.empty(longest)
    at, value = np.empty(2 * longest + 3), np.empty(2 * longest + 3)
    for q in range(begin, end):
        first, hits = starts[q], starts[q + 1] - starts[q]
        if positives[q] <= 0 or hits == 0:
            out[q] = 0.0 if positives[q] > 0 else np.nan
            continue
        _envelope(ranks, first, hits, epsilon, envelope)
        at[0], value[0] = 0.0, 1.0 if ranks[first] == 1 else envelope[0]
        for j in range(hits):
            at[2 * j + 1], value[2 * j + 1] = (j + 1) / positives[q], envelope[j]
            at[2 * j + 2], value[2 * j + 2] = (j + 1) / positives[q], envelope[j]
            if j + 1 < hits and ranks[first + j + 1] - ranks[first + j] > 1:
                value[2 * j + 2] = envelope[j + 1]
        lowest = hits / (max(items[q], ranks[first + hits - 1]) + epsilon)
        value[2 * hits] = lowest
        at[2 * hits + 1], value[2 * hits + 1] = hits / positives[q], lowest if tail else 0.0
        at[2 * hits + 2], value[2 * hits + 2] = 1.0, 0.0
        p = 0
        for i in range(grid.shape[0]):
            while p < 2 * hits + 2 and at[p + 1] <= grid[i]:
                p += 1
            out[q, i] = value[p]
            if p < 2 * hits + 2 and at[p] != grid[i]:
                out[q, i] += (value[p + 1] - value[p]) / (at[p + 1] - at[p]) * (grid[i] - at[p])


@kernel
def dcg(
    starts: Array, ranks: Array, gains: Array, ahead: Array, tied: Array, depth: int, expected: bool, out: Array
) -> None:
    """Write the discounted cumulative gain, the sum of gain / log2(rank + 1) over ranks up to `depth`, in rank order.

    With `expected`, write the expectation over all orders of tied items: each item gets the mean discount of its
    group's ranks.
    """
    for q in range(starts.size - 1):
        out[q] = 0.0
        discount, known = 0.0, -1
        for j in range(starts[q], starts[q + 1]):
            if not expected:
                if ranks[j] > depth:
                    break
                out[q] += gains[j] / np.log2(ranks[j] + 1.0)
                continue
            if ahead[j] != known:
                known, discount = ahead[j], 0.0
                for i in range(ahead[j] + 1, min(ahead[j] + tied[j], depth) + 1):
                    discount += 1.0 / np.log2(i + 1.0)
                discount /= tied[j]
            out[q] += gains[j] * discount


@kernel
def err(starts: Array, ranks: Array, stops: Array, depth: int, out: Array) -> None:
    """Write the expected reciprocal rank (Chapelle et al., 2009): a reader stops at hit *j* with probability
    ``stops[j]``.
    """
    for q in range(starts.size - 1):
        out[q], reading = 0.0, 1.0
        for j in range(starts[q], starts[q + 1]):
            if ranks[j] > depth:
                break
            out[q] += reading * stops[j] / ranks[j]
            reading *= 1.0 - stops[j]


@kernel
def rbp(starts: Array, ranks: Array, gains: Array, p: float, depth: int, out: Array) -> None:
    """Write rank-biased precision (Moffat and Zobel, 2008): (1 - p) times the sum of gain * p ** (rank - 1)."""
    for q in range(starts.size - 1):
        out[q] = 0.0
        for j in range(starts[q], starts[q + 1]):
            if ranks[j] > depth:
                break
            out[q] += gains[j] * p ** (ranks[j] - 1)
        out[q] *= 1.0 - p


@kernel
def bpref(starts: Array, grades: Array, level: int, positives: Array, negatives: Array, out: Array) -> None:
    """Write bpref (Buckley and Voorhees, 2004), which depends only on the order of the pooled documents.

    `grades` has the pooled documents in rank order. A grade of at least `level` means relevant, a lower grade from 0 on
    means not relevant, a negative grade means not judged. The value is 0 without relevant documents.
    """
    for q in range(starts.size - 1):
        total, wrong = 0.0, 0
        for j in range(starts[q], starts[q + 1]):
            if grades[j] >= level:
                if wrong:
                    total += 1.0 - min(wrong, positives[q]) / min(negatives[q], positives[q])
                else:
                    total += 1.0
            elif grades[j] >= 0:
                wrong += 1
        out[q] = total / positives[q] if positives[q] else 0.0


@kernel
def inf_ap(starts: Array, ranks: Array, grades: Array, level: int, positives: Array, out: Array) -> None:
    """Write inferred AP (Yilmaz and Aslam, 2006) with trec_eval's smoothing of 0.00001; grades as in `bpref`."""
    smooth = 0.00001
    for q in range(starts.size - 1):
        total, right, wrong, unknown = 0.0, 0, 0, 0
        for j in range(starts[q], starts[q + 1]):
            if grades[j] < 0:
                unknown += 1
            elif grades[j] < level:
                wrong += 1
            else:
                before = ranks[j] - 1.0
                if before == 0.0:
                    total += 1.0
                else:
                    seen = (right + wrong + unknown) / before
                    total += 1.0 / (before + 1.0) + (before / (before + 1.0)) * seen * (
                        (right + smooth) / (right + wrong + 2 * smooth)
                    )
                right += 1
        out[q] = total / positives[q] if positives[q] else 0.0


@kernel
def interpolate_counts(starts: Array, ranks: Array, wanted: Array, out: Array) -> None:
    """Write the maximum precision at hit number ``wanted[q, i]`` (counted from 1; 0 also means hit 1) or any later hit;
    0 if there is no such hit.
    """
    envelope = np.empty(_longest_group(starts, 0, starts.size - 1))
    for q in range(starts.size - 1):
        hits = starts[q + 1] - starts[q]
        _envelope(ranks, starts[q], hits, 0.0, envelope)
        for i in range(wanted.shape[1]):
            j = max(wanted[q, i], 1)
            out[q, i] = envelope[j - 1] if j <= hits else 0.0


@kernel
def all_shots(starts: Array, ranks: Array, out: Array) -> None:
    """For each hit with k wrong items ahead of it, add 1 / (hits of its ranking) to ``out[k]``."""
    for q in range(starts.size - 1):
        hits = starts[q + 1] - starts[q]
        for j in range(hits):
            place = ranks[starts[q] + j] - 1 - j
            if place < out.size:
                out[place] += 1.0 / hits


@kernel
def weighted_points(scores: Array, truth: Array, weights: Array, order: Array, recall: Array, precision: Array) -> int:
    """Write recall and precision of weighted samples at each distinct score, highest first; return the number of points.

    `order` sorts the samples by descending score. `recall` is the weight of the true positives, not yet divided by the
    total weight of the positives.
    """
    right, total, points = 0.0, 0.0, 0
    for i in range(order.size):
        s = order[i]
        total += weights[s]
        if truth[s]:
            right += weights[s]
        if i + 1 == order.size or scores[order[i + 1]] != scores[s]:
            recall[points] = right
            precision[points] = right / total if total else 0.0
            points += 1
    return points


@kernel
def best_f1(
    starts: Array, scores: Array, hit: Array, ignored: Array, bit: int, positives: Array, out_best: Array
) -> None:
    """Write (F1, score, precision, recall) at the score with the best F1 of each ranking; NaN if there are no positives
    or all items are ignored.

    Ranking *r* has the rows ``[starts[r], starts[r + 1])``; rows that are `ignored` do not count. At a score, all rows
    with at least this score are accepted. If several scores have the same F1, the highest is taken. The rows of `hit` and
    `ignored`, shape (n, W), hold flags as bits; `bit` is the index of the flag that is read.
    """
    word, shift, one = bit >> 6, np.uint64(bit & 63), np.uint64(1)
    for r in range(starts.shape[0] - 1):
        for column in range(4):
            out_best[r, column] = np.nan
        items, hits, most = 0, 0, -1.0
        stop = starts[r + 1] if positives[r] else starts[r]
        for i in range(starts[r], stop):
            counted = ((ignored[i, word] >> shift) & one) == 0
            items += counted
            hits += counted and ((hit[i, word] >> shift) & one) != 0
            if items and (i + 1 == stop or scores[i + 1] != scores[i]):
                f1 = 2.0 * hits / (items + positives[r])
                if f1 > most:
                    most = f1
                    out_best[r, 0], out_best[r, 1] = f1, scores[i]
                    out_best[r, 2], out_best[r, 3] = hits / items, hits / positives[r]
