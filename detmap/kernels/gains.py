"""Measures that read gains or wrong items rank by rank: trec_eval's relatives of nDCG, and what unjudged items may hide.

`starts` and `ranks` are those of the waist (see `detmap.kernels.curves`), here of the items with a gain; `gains` is the
gain of each. The best ranking of query *q* is ``ideal[ideal_starts[q]:ideal_starts[q + 1]]``, its gains, descending. Each
sum runs in the order of the ranks, which decides its last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

Array = NDArray[Any]


@kernel
def gain_over_cost(starts: Array, ranks: Array, gains: Array, ideal_starts: Array, ideal: Array, out: Array) -> None:
    """Write G: each gain over log2(2 + cost - found), as a share of all gains there are.

    At a rank, `found` is the sum of the gains so far, that one included, and `cost` that of the best ranking, of which
    every rank counts at least 1.
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
    """Write the mean of nDCG at the ranks of all items with a gain; at the end for those that were not ranked."""
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
    """Write the mean of nDCG at the ranks where the best ranking goes on with a lower gain, and where it is over.

    A ranking of ``items[q]`` items that is longer than the best one by more than one item has a last point at its end.
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
    """Write the mean over the positives of 1 / log2(2 + wrong items before it); 0 for one that was not ranked."""
    for q in range(starts.size - 1):
        total = 0.0
        for j in range(starts[q], starts[q + 1]):
            total += 1.0 / np.log2(2.0 + ranks[j] - (j - starts[q] + 1))
        out[q] = total / positives[q] if positives[q] else 0.0


@kernel
def residual(starts: Array, ranks: Array, items: Array, p: float, out: Array) -> None:
    """Write what rank-biased precision could gain if all that was not judged were relevant: `ranks` are of the judged.

    As in trec_eval, 0 where all ranked items are judged.
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
