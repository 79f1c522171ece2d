"""Hits to precision, recall and average precision: the core under every AP that detmap reports.

Every kernel reads the waist (see `detmap.hits.Hits`): for ranking *q* the ascending 1-based ranks of its hits,
``ranks[starts[q]:starts[q + 1]]``, and ``positives[q]``, how many hits there were to find. Precision at the *j*-th hit is
``j / (rank_j + epsilon)``, recall ``j / positives``. Precision only falls between hits, so that hits are all that a curve
needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.sorting import longest_group

Array = NDArray[Any]

STEP, ALL_POINT, TRAPEZOID, TRAPEZOID_OF_HITS = 0, 1, 2, 3


@helper
def _envelope(ranks: Array, first: int, hits: int, epsilon: float, out: Array) -> None:
    """Write the largest precision at each hit or any later one."""
    row, best = ranks[first : first + hits], 0.0
    for j in range(hits - 4, -1, -4):  # a maximum waits for the one before it: here one in four does
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


@kernel
def average_precision(
    starts: Array, ranks: Array, positives: Array, rule: int, epsilon: float, begin: int, end: int, out: Array
) -> None:
    """Write the AP of rankings ``[begin, end)`` into `out`; NaN where there is nothing to find.

    `rule` STEP adds the precisions at the hits; ALL_POINT replaces each by the largest precision at that recall or
    later; TRAPEZOID by its mean with the precision one rank earlier (at rank 1: with 1); TRAPEZOID_OF_HITS by its mean with
    the precision at the hit before (at the first: with 1), a known mistake. All add in rank order and divide once, by the
    positives.
    """
    envelope = np.empty(longest_group(starts, begin, end))
    for q in range(begin, end):
        first, hits = starts[q], starts[q + 1] - starts[q]
        if positives[q] <= 0:
            out[q] = np.nan
            continue
        if rule == ALL_POINT:
            _envelope(ranks, first, hits, epsilon, envelope)
        total = 0.0
        for j in range(hits):
            rank = ranks[first + j]
            if rule == ALL_POINT:
                total += envelope[j]
                continue
            value = (j + 1) / (rank + epsilon)
            if rule == TRAPEZOID:
                before = j / (rank - 1 + epsilon) if rank > 1 else 1.0
                value = (value + before) / 2
            elif rule == TRAPEZOID_OF_HITS:
                value = (value + (j / (ranks[first + j - 1] + epsilon) if j else 1.0)) / 2
            total += value
        out[q] = total / positives[q]


@kernel
def interpolate(
    starts: Array,
    ranks: Array,
    scores: Array,
    first_scores: Array,
    positives: Array,
    grid: Array,
    epsilon: float,
    begin: int,
    end: int,
    out_precision: Array,
    out_scores: Array,
) -> None:
    """Write the interpolated precision of rankings ``[begin, end)`` at the recalls of `grid`.

    ``out_precision[q, i]`` is the largest precision at recall ``grid[i]`` or more, 0 where that recall is not reached,
    NaN where there is nothing to find. As pycocotools does, the loop over the grid stops at the first recall that is not
    reached, whatever follows it in an unsorted grid. With scores (`scores` not empty) ``out_scores[q, i]`` is the score at
    which that recall is first reached; at recall 0 that of the first item.
    """
    with_scores = out_scores.shape[0] > 0
    reached = np.empty(grid.shape[0], np.int64)  # how many hits it takes to reach each recall of the grid
    envelope = np.empty(longest_group(starts, begin, end))
    found = 0
    for q in range(begin, end):
        first, hits = starts[q], starts[q + 1] - starts[q]
        if positives[q] <= 0:
            out_precision[q] = np.nan
            if with_scores:
                out_scores[q] = np.nan
            continue
        if positives[q] != found:  # the rankings of a class share their positives
            found = positives[q]
            for i in range(grid.shape[0]):
                # A guess, then the exact comparison: the first hit whose recall, as rounded, reaches the grid's.
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
    starts: Array,
    ranks: Array,
    positives: Array,
    items: Array,
    grid: Array,
    epsilon: float,
    tail: bool,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Write what straight lines between the points of the envelope of rankings ``[begin, end)`` say at an ascending `grid`.

    Only hits are known, and they suffice. The last miss before a hit has the recall of the hit before and the envelope of
    the one that follows, as its own precision is lower: where there is such a miss the curve is flat. Of points of one
    recall the last one counts: a hit, or the last miss behind it. Behind all `items` the curve drops to 0, or with `tail`
    falls to (1, 0) in a straight line. 0 without hits, NaN where there is nothing to find.
    """
    longest = longest_group(starts, begin, end)
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


# Orders of the items of a tied group.
KEEP, REVERSE, FIRST, LAST, COLLAPSE = 0, 1, 2, 3, 4


@helper
def _group_end(ahead: Array, j: int, stop: int) -> int:
    """Return where the tied group of hit `j` ends among the hits before `stop`."""
    end = j + 1
    while end < stop and ahead[end] == ahead[j]:
        end += 1
    return end


@kernel
def break_ties(
    starts: Array,
    ranks: Array,
    ahead: Array,
    tied: Array,
    grades: Array,
    rule: int,
    out_ranks: Array,
    out_grades: Array,
) -> None:
    """Write the ranks and grades of the hits under another order of each tied group."""
    for q in range(starts.size - 1):
        j = starts[q]
        while j < starts[q + 1]:
            end = _group_end(ahead, j, starts[q + 1])
            for i in range(j, end):
                if rule == REVERSE:
                    source = end - 1 - (i - j)
                    out_ranks[i] = 2 * ahead[j] + tied[j] + 1 - ranks[source]
                    out_grades[i] = grades[source]
                    continue
                out_grades[i] = grades[i]
                if rule == FIRST:
                    out_ranks[i] = ahead[j] + 1 + (i - j)
                elif rule == LAST:
                    out_ranks[i] = ahead[j] + tied[j] - (end - 1 - i)
                else:
                    out_ranks[i] = ahead[j] + tied[j]
            if rule in (FIRST, LAST):
                group = out_grades[j:end]
                group.sort()
                if rule == FIRST:
                    for i in range(group.size // 2):
                        group[i], group[group.size - 1 - i] = group[group.size - 1 - i], group[i]
            j = end


@kernel
def collapsed_average_precision(
    starts: Array, ahead: Array, tied: Array, positives: Array, trapezoid: bool, begin: int, end: int, out: Array
) -> None:
    """Write AP with one point per tied group: all its hits take the precision at its end.

    With `trapezoid`, the mean of that and the precision at the end of the group before (1 ahead of everything).
    """
    for q in range(begin, end):
        if positives[q] <= 0:
            out[q] = np.nan
            continue
        total = 0.0
        j = starts[q]
        while j < starts[q + 1]:
            stop = _group_end(ahead, j, starts[q + 1])
            value = (stop - starts[q]) / (ahead[j] + tied[j])
            if trapezoid:
                value = (value + ((j - starts[q]) / ahead[j] if ahead[j] else 1.0)) / 2
            total += (stop - j) * value
            j = stop
        out[q] = total / positives[q]


@helper
def _group_sums(before: int, ahead: int, inside: int, trapezoid: bool) -> tuple[float, float]:
    """Return two sums over the first `inside` places of a tied group: the precision that a hit in a place has from itself
    and the `before` hits ahead of the group, and the precision that it would gain if all earlier places of the group held
    hits.
    """
    alone, gained = 0.0, 0.0
    for i in range(1, inside + 1):
        a = (before + 1) / (ahead + i)
        g = (i - 1) / (ahead + i)
        if trapezoid:
            rank_before = ahead + i - 1
            a = (a + (before / rank_before if rank_before else 1.0)) / 2
            g = (g + ((i - 1) / rank_before if rank_before else 0.0)) / 2
        alone += a
        gained += g
    return alone, gained


@helper
def _group_mean(alone: float, gained: float, hits: int, places: int) -> float:
    """Return the expected sum of the precisions at `hits` hits in random order over `places` places.

    A place holds a hit with probability hits / places, and then each other place holds one with probability
    (hits - 1) / (places - 1) (McSherry and Najork, Computing Information Retrieval Performance Measures Efficiently in
    the Presence of Tied Scores, 2008).
    """
    if places == 0:
        return 0.0
    return hits / places * (alone + ((hits - 1) / (places - 1) * gained if places > 1 else 0.0))


@kernel
def expected_average_precision(
    starts: Array,
    ahead: Array,
    tied: Array,
    positives: Array,
    depth: Array,
    trapezoid: bool,
    by_hits: bool,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Write the mean AP at `depth` over all orders of the tied items.

    The sum is divided by ``positives[q]``; with `by_hits` by the hits up to `depth` instead, whose number is random
    (hypergeometric) in the group that the cut goes through, so that the mean is taken over it. Orders without a hit up to
    `depth` count 0; out is NaN where no order has one.
    """
    for q in range(begin, end):
        if positives[q] <= 0:
            out[q] = np.nan
            continue
        total = 0.0
        first = j = starts[q]
        crossed = False
        while j < starts[q + 1] and ahead[j] < depth[q]:
            stop = _group_end(ahead, j, starts[q + 1])
            n, hits, inside = tied[j], stop - j, min(tied[j], depth[q] - ahead[j])
            alone, gained = _group_sums(j - first, ahead[j], inside, trapezoid)
            if by_hits and inside < n:
                # The chance that x of the hits fall among the `inside` places, by recurrence over x, in logarithms so that
                # a large group does not underflow.
                lowest, highest = max(0, inside - (n - hits)), min(inside, hits)
                logs = np.zeros(highest - lowest + 1)
                for x in range(lowest, highest):
                    up = (hits - x) * (inside - x)
                    logs[x + 1 - lowest] = logs[x - lowest] + np.log(up / ((x + 1) * (n - hits - inside + x + 1)))
                chances = np.exp(logs - logs.max())
                mean = 0.0
                for x in range(max(lowest, 1 - (j - first)), highest + 1):
                    value = (total + _group_mean(alone, gained, x, inside)) / (j - first + x)
                    mean += chances[x - lowest] * value
                out[q] = mean / chances.sum() if j - first + highest > 0 else np.nan
                crossed = True
                break
            # Only `inside` of the group's places count, but a place's neighbours are all of the group's.
            share = (hits - 1) / (n - 1) if n > 1 else 0.0
            total += hits / n * (alone + share * gained)
            j = stop
        if crossed:
            continue
        if by_hits:
            out[q] = total / (j - first) if j > first else np.nan
        else:
            out[q] = total / positives[q]


@kernel
def tie_band(
    starts: Array,
    ahead: Array,
    tied: Array,
    positives: Array,
    depth: Array,
    trapezoid: bool,
    by_hits: bool,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Write the lowest and the highest AP at `depth` over all orders of the tied items into ``out[q]``.

    With a divisor that the order does not touch these are hits last and hits first. With `by_hits` the number of hits that
    the last group brings before the cut is free within bounds, and every number is tried.
    """
    for q in range(begin, end):
        if positives[q] <= 0:
            out[q] = np.nan
            continue
        low, high = 0.0, 0.0
        first = j = starts[q]
        crossed = False
        while j < starts[q + 1] and ahead[j] < depth[q]:
            stop = _group_end(ahead, j, starts[q + 1])
            n, hits, s, c = tied[j], stop - j, ahead[j], j - first
            inside = min(n, depth[q] - s)
            fewest, most = max(0, inside - (n - hits)), min(inside, hits)
            if not by_hits or inside == n:
                for x in range(1, most + 1):
                    high += _precision(c + x, s + x, trapezoid)
                for x in range(1, fewest + 1):
                    low += _precision(c + x, s + inside - fewest + x, trapezoid)
                j = stop
                continue
            lowest, highest = np.inf, -np.inf
            top, bottom, raised, taken = high, low, 0.0, 0
            for x in range(most + 1):
                if x:
                    top += _precision(c + x, s + x, trapezoid)
                if x < fewest:
                    continue
                if x > taken:  # one more hit, ahead of the others, each of which it raises by 1 / rank
                    while taken < x:
                        taken += 1
                        rank = s + inside - taken + 1
                        bottom += raised + _precision(c + 1, rank, trapezoid)
                        if trapezoid:
                            raised += (1.0 / rank + (1.0 / (rank - 1) if rank > 1 else 0.0)) / 2
                        else:
                            raised += 1.0 / rank
                if c + x:
                    highest = max(highest, top / (c + x))
                    lowest = min(lowest, bottom / (c + x))
                else:
                    highest = max(highest, 0.0)
                    lowest = 0.0
            out[q, 0], out[q, 1] = lowest, highest
            if c + most == 0:
                out[q] = np.nan
            crossed = True
            break
        if crossed:
            continue
        divisor = j - first if by_hits else positives[q]
        out[q, 0] = low / divisor if divisor else np.nan
        out[q, 1] = high / divisor if divisor else np.nan


@helper
def _precision(hits: int, rank: int, trapezoid: bool) -> float:
    value = hits / rank
    if trapezoid:
        value = (value + ((hits - 1) / (rank - 1) if rank > 1 else 1.0)) / 2
    return value


@kernel
def expected_first(starts: Array, ahead: Array, tied: Array, depth: int, reciprocal: bool, out: Array) -> None:
    """Write the mean over all tie orders of 1 / rank of the first hit, or of whether it stands within `depth`.

    0 without hits. The first of r hits among n places is at place i with probability C(n - i, r - 1) / C(n, r).
    """
    for q in range(starts.size - 1):
        out[q] = 0.0
        if starts[q] == starts[q + 1]:
            continue
        j = starts[q]
        n, r, s = tied[j], _group_end(ahead, j, starts[q + 1]) - j, ahead[j]
        chance = r / n
        for i in range(1, min(n - r + 1, depth - s) + 1):
            out[q] += chance / (s + i) if reciprocal else chance
            chance *= (n - i - r + 1) / (n - i) if n > i else 0.0


@kernel
def expected_inverse_last(starts: Array, ahead: Array, tied: Array, out: Array) -> None:
    """Write the mean over all tie orders of 1 / rank of the last hit; 0 without hits."""
    for q in range(starts.size - 1):
        out[q] = 0.0
        if starts[q] == starts[q + 1]:
            continue
        last = starts[q + 1] - 1
        r = 1
        while last - r >= starts[q] and ahead[last - r] == ahead[last]:
            r += 1
        n, s = tied[last], ahead[last]
        chance = r / n
        for i in range(n, r - 1, -1):
            out[q] += chance / (s + i)
            chance *= (i - r) / (i - 1) if i > 1 else 0.0


@kernel
def expected_within(starts: Array, ahead: Array, tied: Array, depth: Array, out: Array) -> None:
    """Write the mean number of hits at ranks up to ``depth[q]`` over all orders of the tied items."""
    for q in range(starts.size - 1):
        out[q] = 0.0
        for j in range(starts[q], starts[q + 1]):
            if ahead[j] >= depth[q]:
                break
            out[q] += min(tied[j], depth[q] - ahead[j]) / tied[j]


@kernel
def gained(
    starts: Array, ranks: Array, gains: Array, ahead: Array, tied: Array, depth: int, expected: bool, out: Array
) -> None:
    """Write the discounted cumulative gain, the sum of gain / log2(rank + 1) over ranks up to `depth`, in rank order.

    With `expected` the mean over all orders of the tied items: each takes the mean discount of its group's places.
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
def cascade(starts: Array, ranks: Array, stops: Array, depth: int, out: Array) -> None:
    """Write the expected reciprocal rank (Chapelle et al., 2009): a reader stops at hit *j* with chance ``stops[j]``."""
    for q in range(starts.size - 1):
        out[q], reading = 0.0, 1.0
        for j in range(starts[q], starts[q + 1]):
            if ranks[j] > depth:
                break
            out[q] += reading * stops[j] / ranks[j]
            reading *= 1.0 - stops[j]


@kernel
def persistent(starts: Array, ranks: Array, gains: Array, p: float, depth: int, out: Array) -> None:
    """Write rank-biased precision (Moffat and Zobel, 2008): (1 - p) times the sum of gain * p ** (rank - 1)."""
    for q in range(starts.size - 1):
        out[q] = 0.0
        for j in range(starts[q], starts[q + 1]):
            if ranks[j] > depth:
                break
            out[q] += gains[j] * p ** (ranks[j] - 1)
        out[q] *= 1.0 - p


@kernel
def preferences(starts: Array, grades: Array, level: int, positives: Array, negatives: Array, out: Array) -> None:
    """Write bpref (Buckley and Voorhees, 2004) from the ranks' order of the pooled documents.

    `grades` are those of the pooled documents in rank order: at least `level` is relevant, from 0 up to `level` judged
    not relevant, below 0 not judged. 0 without relevant documents.
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
def inferred(starts: Array, ranks: Array, grades: Array, level: int, positives: Array, out: Array) -> None:
    """Write inferred AP (Yilmaz and Aslam, 2006) with trec_eval's smoothing of 0.00001; grades as in `preferences`."""
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
    """Write the largest precision at hit ``wanted[q, i]`` (counted from 1; 0 means any) or later; 0 where there is none."""
    envelope = np.empty(longest_group(starts, 0, starts.size - 1))
    for q in range(starts.size - 1):
        hits = starts[q + 1] - starts[q]
        _envelope(ranks, starts[q], hits, 0.0, envelope)
        for i in range(wanted.shape[1]):
            j = max(wanted[q, i], 1)
            out[q, i] = envelope[j - 1] if j <= hits else 0.0


@kernel
def all_shots(starts: Array, ranks: Array, out: Array) -> None:
    """Add each hit's 1 / hits at the number of wrong items ahead of it to ``out[place]``, over all rankings."""
    for q in range(starts.size - 1):
        hits = starts[q + 1] - starts[q]
        for j in range(hits):
            place = ranks[starts[q] + j] - 1 - j
            if place < out.size:
                out[place] += 1.0 / hits


@kernel
def expected_first_places(starts: Array, ahead: Array, tied: Array, out: Array) -> None:
    """Add to ``out[i]`` the chance that the first hit stands at rank ``i + 1``, over all rankings; see `expected_first`."""
    for q in range(starts.size - 1):
        if starts[q] == starts[q + 1]:
            continue
        j = starts[q]
        n, r, s = tied[j], _group_end(ahead, j, starts[q + 1]) - j, ahead[j]
        chance = r / n
        for i in range(1, n - r + 2):
            out[s + i - 1] += chance
            chance *= (n - i - r + 1) / (n - i) if n > i else 0.0


@kernel
def weighted_points(scores: Array, truth: Array, weights: Array, order: Array, recall: Array, precision: Array) -> int:
    """Write recall and precision at each distinct score, descending, of weighted samples; return how many there are.

    `order` sorts the samples by descending score. Recall is in weight, not yet divided by the total of the positives.
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
    """Write (f1, score, precision, recall) where F1 of each ranking is best; NaN without positives or items that count.

    Ranking *r* has rows ``[starts[r], starts[r + 1])``, of which those count that are not `ignored`. Rows of equal score
    enter together; of equally good scores the highest is taken. `bit` is where the words (n, W) hold the flags.
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
