"""Sums of interpolated precision after images are exchanged between two models. These kernels are faster than
`resampling.average`, but have other rounding errors.

At a recall of the grid, interpolated precision is the maximum precision at the hits that reach this recall. The sum
over the grid is therefore a sum over hits. The weight of a hit is the number of recalls that this hit is the first to
reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.resampling import LANES, Ahead, Events, _look_ahead

Array = NDArray[Any]


@helper
def _add_curves(
    events: Events, items: int, stop: int, ahead: Ahead, begin: int, found: Array, weights: Array, out: Array
) -> None:
    """Add the sums of interpolated precision of one class and threshold to `out`, for each of the two models (sides).

    The items of this class and threshold are ``[items, stop)``. The arrays of `ahead` begin with run `begin` of
    `events`. ``found`` holds four numbers: hits and ignored detections of the first side, then of both sides together.
    Hit *j* of a side, counted from 1, has the weight ``weights[j]``.
    """
    runs, kinds, skips = events.item_runs, events.item_kinds, events.item_skips
    place_starts, places, base, one = events.place_starts, events.places, np.uint64(begin), np.uint64(1)
    hits, skipped = found[0], found[1]
    others, others_skipped = found[2] - hits, found[3] - skipped
    best, others_best, total, others_total = 0.0, 0.0, 0.0, 0.0
    for back in range(np.uint64(stop - items)):
        i = np.uint64(stop - 1) - back
        run = np.uint64(runs[i]) - base
        both = ahead.here[run]
        here, before = both & 1, both >> 8
        others_before = ahead.everywhere[run] - before
        skip = skips[i]
        skipped -= here * skip
        others_skipped -= skip - here * skip
        if kinds[i]:
            # Both sides are computed without a branch, because a mispredicted branch takes longer.
            hit = kinds[i] & 1
            mine = hit * here
            theirs = hit - mine
            count = others + here * (hits - others)
            others_rank = others_before - others_skipped
            rank = others_rank + here * (before - skipped - others_rank) + 1
            precision = count / rank
            best = max(best, mine * precision)
            others_best = max(others_best, theirs * precision)
            weight = weights[np.uint64(count)]
            total += mine * (weight * best)
            others_total += theirs * (weight * others_best)
            hits -= mine
            others -= theirs
        elif here:
            for p in range(place_starts[i + one], place_starts[i], -1):
                best = max(best, hits / (before - skipped + places[p - 1]))
                total += weights[hits] * best
                hits -= 1
        else:
            for p in range(place_starts[i + one], place_starts[i], -1):
                others_best = max(others_best, others / (others_before - others_skipped + places[p - 1]))
                others_total += weights[others] * others_best
                others -= 1
    out[0] += total
    out[1] += others_total


@helper
def _count_sides(events: Events, words: Array, items: int, stop: int, out: Array) -> None:
    """Count the hits and ignored detections among the items ``[items, stop)``, for each replicate. A row of `out` is
    the ``found`` of `_add_curves`.
    """
    byte, eight = np.uint64(255), np.uint64(8)
    out[:] = 0
    hits, skipped = 0, 0
    for i in range(np.uint64(items), np.uint64(stop)):
        word = words[np.uint64(events.run_images[np.uint64(events.item_runs[i])])]
        many, skip = events.place_starts[i + np.uint64(1)] - events.place_starts[i], events.item_skips[i]
        hits += many
        skipped += skip
        for lane in range(LANES):
            here = np.int64(word & byte)
            out[lane, 0] += here * many
            out[lane, 1] += here * skip
            word >>= eight
    for lane in range(LANES):
        out[lane, 2], out[lane, 3] = hits, skipped


@kernel
def add_curves(
    events: Events, words: Array, weights: Array, weight_starts: Array, area: int, first: int, last: int, out: Array
) -> None:
    """Write the sums of interpolated precision over classes, thresholds ``[first, last)`` and recalls, for both models.

    Parameters
    ----------
    events : Events
        The detections.
    words : (blocks, i) uint64
        As for `resampling.collect_hits` with two sides.
    weights, weight_starts : (n,) float64, (K + 1,) int64
        ``weights[weight_starts[c] + j]`` is the weight of hit *j* of class *c*, counted from 1: the number of recalls
        that this hit is the first to reach. A class whose weights are all 0 is left out.
    out : (r, 2) float64
        Out: the sums of each replicate.
    """
    classes, areas = weight_starts.shape[0] - 1, events.members.shape[1]
    bits, longest = (events.item_starts.shape[0] - 1) // max(classes, 1), 0
    start = area * (bits // areas)
    for c in range(classes):
        longest = max(longest, events.class_starts[c + 1] - events.class_starts[c])
    ahead, everywhere = np.empty((LANES, areas, longest), np.int64), np.empty((areas, longest), np.int64)
    sums, found = np.empty((areas + 1, LANES), np.int64), np.empty((LANES, 4), np.int64)
    out[:] = 0.0
    for c in range(classes):
        begin, end = events.class_starts[c], events.class_starts[c + 1]
        own = weights[weight_starts[c] : weight_starts[c + 1]]
        for replicate in range(0, out.shape[0], LANES):
            of_lanes = words[replicate // LANES]
            _look_ahead(events, of_lanes, 255, begin, end, sums, ahead, everywhere)
            for b in range(c * bits + start + first, c * bits + start + last):
                items, stop = events.item_starts[b], events.item_starts[b + 1]
                _count_sides(events, of_lanes, items, stop, found)
                for lane in range(min(LANES, out.shape[0] - replicate)):
                    of_lane = Ahead(ahead[lane, area], everywhere[area])
                    _add_curves(events, items, stop, of_lane, begin, found[lane], own, out[replicate + lane])
