"""Measures from the ranks of items: trec_eval's variants of nDCG, a discount by wrong items, and the residual of
unjudged items.

`ranks` and `gains` hold the ranks and gains of all ranked items that have a gain; query *q* has the elements from
``starts[q]`` to ``starts[q + 1] - 1``. The ideal ranking of query *q* has the descending gains
``ideal[ideal_starts[q]:ideal_starts[q + 1]]``. Sums are taken in rank order, because the order determines the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

Array = NDArray[Any]


@kernel
def gain_over_cost(starts: Array, ranks: Array, gains: Array, ideal_starts: Array, ideal: Array, out: Array) -> None:
    """Write G: the sum of gain / log2(2 + cost - found), relative to the sum of all gains. At a rank, `found` is the
    cumulative gain including that rank. `cost` is the cumulative gain of the ideal ranking, where every rank gains at
    least 1.
    """
    for q in range(starts.size - 1):
        first, best = ideal_starts[q], ideal_starts[q + 1] - ideal_starts[q]
        total, cost, found, rank = 0.0, 0.0, 0.0, 0
        for j in range(starts[q], starts[q + 1]):
            while rank < ranks[j]:
                cost += max(ideal[first + rank], 1.0) if rank < best else 1.0
                rank += 1
            found += gains[j]
            total += gains[j] / np.log2(2.0 + cost - found)
        whole = 0.0
        for i in range(first, first + best):
            whole += ideal[i]
        out[q] = total / whole if whole else 0.0


@kernel
def ndcg_at_gains(starts: Array, ranks: Array, gains: Array, ideal_starts: Array, ideal: Array, out: Array) -> None:
    """Write the mean of nDCG at the ranks of all items with a gain; an item that is not ranked counts with the nDCG at
    the end of the ranking.
    """
    for q in range(starts.size - 1):
        first, best = ideal_starts[q], ideal_starts[q + 1] - ideal_starts[q]
        total, found, ideally, rank = 0.0, 0.0, 0.0, 0
        for j in range(starts[q], starts[q + 1]):
            found += gains[j] / np.log2(ranks[j] + 1.0)
            while rank < min(ranks[j], best):
                ideally += ideal[first + rank] / np.log2(rank + 2.0)
                rank += 1
            total += found / ideally
        while rank < best:
            ideally += ideal[first + rank] / np.log2(rank + 2.0)
            rank += 1
        if best:
            total += (best - (starts[q + 1] - starts[q])) * found / ideally
        out[q] = total / best if best else 0.0


@kernel
def ndcg_at_levels(
    starts: Array, ranks: Array, gains: Array, ideal_starts: Array, ideal: Array, items: Array, out: Array
) -> None:
    """Write the mean of nDCG at the last ranks of each level of gain in the ideal ranking. If the ideal
    ranking is shorter than ``items[q]`` by more than one item, the mean includes nDCG of the whole ranking.
    """
    for q in range(starts.size - 1):
        first, best = ideal_starts[q], ideal_starts[q + 1] - ideal_starts[q]
        total, points, found, ideally = 0.0, 0, 0.0, 0.0
        j = starts[q]
        for rank in range(1, best + 1):
            ideally += ideal[first + rank - 1] / np.log2(rank + 1.0)
            if rank < best and ideal[first + rank] == ideal[first + rank - 1]:
                continue
            while j < starts[q + 1] and ranks[j] <= rank:
                found += gains[j] / np.log2(ranks[j] + 1.0)
                j += 1
            total += found / ideally
            points += 1
        if best and items[q] > best + 1:
            while j < starts[q + 1]:
                found += gains[j] / np.log2(ranks[j] + 1.0)
                j += 1
            total += found / ideally
            points += 1
        out[q] = total / points if points else 0.0


@kernel
def wrong_before(starts: Array, ranks: Array, positives: Array, out: Array) -> None:
    """Write the mean of 1 / log2(2 + number of wrong items before the positive) over the positives; a positive that is
    not ranked counts 0.
    """
    for q in range(starts.size - 1):
        total = 0.0
        for j in range(starts[q], starts[q + 1]):
            total += 1.0 / np.log2(2.0 + ranks[j] - (j - starts[q] + 1))
        out[q] = total / positives[q] if positives[q] else 0.0


@kernel
def residual(starts: Array, ranks: Array, items: Array, p: float, out: Array) -> None:
    """Write the increase of rank-biased precision if all unjudged items were relevant. `ranks` holds the ranks of
    judged items. As in trec_eval, the increase is 0 if all ranked items are judged.
    """
    for q in range(starts.size - 1):
        weight, total, unjudged, j = 1.0, 0.0, 0, starts[q]
        for rank in range(1, items[q] + 1):
            if j < starts[q + 1] and ranks[j] == rank:
                j += 1
            else:
                total += weight
                unjudged += 1
            weight *= p
        out[q] = weight + (1.0 - p) * total if unjudged else 0.0
