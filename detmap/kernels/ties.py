"""Ties: expectation and range of AP and related metrics over all orders of items with equal scores. Kernels read the
columns of `detmap.hits.Hits` with the bounds of the tied groups: hit *j* is in a group of ``tied[j]`` items, with
``ahead[j]`` items before the group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.curves import FIRST, LAST, REVERSE

Array = NDArray[Any]


class Ties(NamedTuple):
    """Rankings with tied items, in the columns of `detmap.hits.Hits`. In each ranking only ranks up to its ``depth``
    count.
    """

    starts: Array
    ahead: Array
    tied: Array
    positives: Array
    depth: Array


@helper
def _group_end(ahead: Array, j: int, stop: int) -> int:
    """Return the end of hit `j`'s tied group among the hits before `stop`."""
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
    """Write AP with one point per tied group: all hits of a group take the precision at the end of the group.

    With `trapezoid`, the hits take the mean of that precision and the precision at the end of the previous group (1 for
    the first group).
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
    """Return two sums over the first `inside` places of a tied group with `before` hits ahead of it. The first sum is
    over the precisions at these places, each computed as if its place held the group's only hit. The second sum is over
    the increases of these precisions if all earlier places of the group hold hits, too.
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

    A place holds a hit with probability hits / places. If the place holds a hit, every other place holds a hit with
    probability (hits - 1) / (places - 1). See McSherry and Najork, Computing Information Retrieval Performance Measures
    Efficiently in the Presence of Tied Scores, 2008.
    """
    if places == 0:
        return 0.0
    return hits / places * (alone + ((hits - 1) / (places - 1) * gained if places > 1 else 0.0))


@kernel
def expected_average_precision(ties: Ties, trapezoid: bool, by_hits: bool, begin: int, end: int, out: Array) -> None:
    """Write the expected AP at `depth` over all orders of the tied items. The sum of precisions is divided by
    ``positives[q]``, or with `by_hits` by the number of hits up to `depth`. In a tied group that `depth` cuts, that
    number has a hypergeometric distribution. Orders without a hit up to `depth` count 0; the value is NaN if no order
    has a hit up to `depth`.
    """
    starts, ahead, tied, positives, depth = ties.starts, ties.ahead, ties.tied, ties.positives, ties.depth
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
                # The probability of x hits among the `inside` places is computed from the probability of x - 1 hits.
                # Logarithms prevent underflow in large groups.
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
            # Precisions are summed over the first `inside` places, but the hits are spread over all `n` places.
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
def tie_band(ties: Ties, trapezoid: bool, by_hits: bool, begin: int, end: int, out: Array) -> None:
    """Write the lowest and the highest AP at `depth` over all orders of the tied items into ``out[q]``.

    If the divisor is constant, AP is lowest with hits last and highest with hits first. With `by_hits` the divisor is
    the number of hits up to `depth`. If `depth` cuts a tied group, every possible number is tried.
    """
    starts, ahead, tied, positives, depth = ties.starts, ties.ahead, ties.tied, ties.positives, ties.depth
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
                if x > taken:  # each hit adds 1 / rank to the precision at all later hits
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
    """Write the expectation of 1 / rank of the first hit over all orders of tied items. If `reciprocal` is false, write
    the probability that this rank is within `depth`.

    The value is 0 without hits. The first of r hits among n places is at place i with probability C(n - i, r - 1) /
    C(n, r).
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
    """Write the expectation over all tie orders of 1 / rank of the last hit; 0 without hits."""
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
    """Write the expected number of hits at ranks up to ``depth[q]`` over all orders of the tied items."""
    for q in range(starts.size - 1):
        out[q] = 0.0
        for j in range(starts[q], starts[q + 1]):
            if ahead[j] >= depth[q]:
                break
            out[q] += min(tied[j], depth[q] - ahead[j]) / tied[j]


@kernel
def expected_first_places(starts: Array, ahead: Array, tied: Array, out: Array) -> None:
    """Add to ``out[i]``, for each ranking, the probability that its first hit has rank ``i + 1``."""
    for q in range(starts.size - 1):
        if starts[q] == starts[q + 1]:
            continue
        j = starts[q]
        n, r, s = tied[j], _group_end(ahead, j, starts[q + 1]) - j, ahead[j]
        chance = r / n
        for i in range(1, n - r + 2):
            out[s + i - 1] += chance
            chance *= (n - i - r + 1) / (n - i) if n > i else 0.0
