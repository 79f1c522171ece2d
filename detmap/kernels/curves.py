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

from detmap.kernels import kernel

Array = NDArray[Any]

STEP, ALL_POINT, TRAPEZOID = 0, 1, 2


@kernel
def _longest(starts: Array, begin: int, end: int) -> int:
    longest = 0
    for q in range(begin, end):
        longest = max(longest, starts[q + 1] - starts[q])
    return longest


@kernel
def _envelope(ranks: Array, first: int, hits: int, epsilon: float, out: Array) -> None:
    """Write the largest precision at each hit or any later one."""
    best = 0.0
    for j in range(hits - 1, -1, -1):
        best = max(best, (j + 1) / (ranks[first + j] + epsilon))
        out[j] = best


@kernel
def average_precision(
    starts: Array, ranks: Array, positives: Array, rule: int, epsilon: float, begin: int, end: int, out: Array
) -> None:
    """Write the AP of rankings ``[begin, end)`` into `out`; NaN where there is nothing to find.

    `rule` STEP adds the precisions at the hits; ALL_POINT replaces each by the largest precision at that recall or
    later; TRAPEZOID by its mean with the precision one rank earlier (at rank 1: with 1). All add in rank order and divide
    once, by the positives.
    """
    envelope = np.empty(_longest(starts, begin, end))
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
        best, rest = 0.0, hits  # the largest precision at hit `rest` or later, from the right
        for i in range(stop - 1, -1, -1):
            j = reached[i]
            if i + 1 < stop and j > reached[i + 1]:  # an unsorted grid
                best, rest = 0.0, hits
            while rest > 0 and rest >= j:
                best = max(best, rest / (ranks[first + rest - 1] + epsilon))
                rest -= 1
            out_precision[q, i] = best
            if with_scores:
                out_scores[q, i] = scores[first + j - 1] if j else first_scores[q]
