"""Tallies reweighted: the metrics of data sets in which every image occurs as often as it was drawn.

A block of replicates is worked on at a time. One image of one replicate has a code, ``2 * copies + side``: a bootstrap draws
copies and has one side; a permutation has one copy of each image of each of two models, and deals them out to two sides. A
replicate gives a row of output for every side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel

Array = NDArray[Any]


#: So many replicates are worked on side by side: what is looked up of an image once is added up for all of them.
LANES = 8


class Events(NamedTuple):
    """The detections that count, in ranking order; bit ``a * T + t`` stands for area range *a* and threshold *t*.

    A run is what matters by itself: the detections of one score on one image where one of them is a hit, or is ignored at
    some thresholds. The runs of class *c* are ``class_starts[c]:class_starts[c + 1]``. Run *j* is on image ``run_images[j]``
    and has ``run_sizes[j, a]`` detections that count in area range *a*. Before it come the segments
    ``segment_starts[j]:segment_starts[j + 1]`` of misses. A segment has one pattern, the area ranges that its misses count
    in (``members[p, a]`` says that pattern *p* counts in *a*); the `images` of segment *s* are
    ``miss_starts[s]:miss_starts[s + 1]``. Misses behind the last hit are left out.

    What runs mean for a bit are its items, in ranking order: those of class *c* and bit *b* are
    ``item_starts[c * A * T + b]:item_starts[c * A * T + b + 1]``. Item *i* is of run ``item_runs[i]``: ``item_steps[i]`` of
    its detections count, of which the hits are at the places ``places[place_starts[i]:place_starts[i + 1]]``, from 1 on,
    and ``item_skips[i]`` are ignored; ``item_alone[i]`` says that there is one that counts, a hit, and none is ignored.
    The first hit of the item is beyond ``beyond[place_starts[i]]`` caps, and so on.
    """

    class_starts: Array
    run_images: Array
    run_sizes: Array
    segment_starts: Array
    patterns: Array
    miss_starts: Array
    images: Array
    members: Array
    item_starts: Array
    item_runs: Array
    item_steps: Array
    item_skips: Array
    item_alone: Array
    place_starts: Array
    places: Array
    beyond: Array


class Table(NamedTuple):
    """The columns to fill: ``metrics`` are means over classes, then each of ``by_class`` has a column per class.

    A row of `metrics` is whether it is of recall, the area range, the first threshold and the one after the last, and the
    cap; a row of `by_class` the first threshold and the one after the last.
    """

    metrics: Array
    by_class: Array


@kernel
def count_positives(category: Array, image: Array, counts: Array, codes: Array, out: Array) -> None:
    """Add up what there is to find: ``out[replicate, side, class, area]``, which comes with zeros."""
    for r in range(codes.shape[0]):
        for pair in range(category.shape[0]):
            code = codes[r, image[pair]]
            copies = np.int64(code >> 1)
            if copies:
                for a in range(counts.shape[1]):
                    out[r, code & 1, category[pair], a] += copies * counts[pair, a]


@helper
def _add_up(copies: Array, stride: Any, offset: Any, images: Array, begin: int, end: int, out: Array) -> None:
    """Write the sum of ``copies[image * stride + offset:][:LANES]`` over some images.

    Eight variables instead of a loop over `out`, so that the sums stay in one register of the processor.
    """
    a = b = c = d = e = f = g = h = 0
    for m in range(begin, end):
        i = np.uint64(images[m]) * stride + offset
        a += copies[i]
        b += copies[i + np.uint64(1)]
        c += copies[i + np.uint64(2)]
        d += copies[i + np.uint64(3)]
        e += copies[i + np.uint64(4)]
        f += copies[i + np.uint64(5)]
        g += copies[i + np.uint64(6)]
        h += copies[i + np.uint64(7)]
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = a, b, c, d, e, f, g, h


@helper
def _look_ahead(
    events: Events, copies: Array, lanes: int, block: int, begin: int, end: int, sums: Array, out_before: Array,
    out_copies: Array,
) -> None:  # fmt: skip
    """Count what is ahead of the runs ``[begin, end)`` of a class, for `LANES` replicates from `block` on.

    `copies` are those of `collect_hits`, flat; `sums` is room for sums, (sides * areas + 1, `LANES`).

    ``out_before[side, area, lane, run - begin]`` are the detections ahead of a run, ``out_copies[side, lane, run - begin]``
    the copies of its own.
    """
    members, images, miss_starts, sizes = events.members, events.images, events.miss_starts, events.run_sizes
    sides, areas = out_copies.shape[0], members.shape[1]
    stride, gathered = np.uint64(sides * lanes), sums[sides * areas]
    sums[:] = 0
    for run in range(begin, end):
        for s in range(events.segment_starts[run], events.segment_starts[run + 1]):
            _add_up(copies, stride, np.uint64(block), images, miss_starts[s], miss_starts[s + 1], gathered)
            for side in range(sides):
                if side == 1:  # what is not on the one side is on the other
                    for lane in range(LANES):
                        gathered[lane] = miss_starts[s + 1] - miss_starts[s] - gathered[lane]
                for a in range(areas):
                    if members[events.patterns[s], a]:
                        for lane in range(LANES):
                            sums[side * areas + a, lane] += gathered[lane]
        for side in range(sides):
            own = (np.int64(events.run_images[run]) * sides + side) * lanes + block
            for lane in range(LANES):
                out_copies[side, lane, run - begin] = copies[own + lane]
            for a in range(areas):
                for lane in range(LANES):
                    out_before[side, a, lane, run - begin] = sums[side * areas + a, lane]
                    sums[side * areas + a, lane] += sizes[run, a] * copies[own + lane]


@helper
def _ranks_of_bit(
    events: Events, items: int, stop: int, begin: int, before: Array, copies: Array, written: int, out_ranks: Array
) -> int:
    """Write the ranks of the hits of items ``[items, stop)`` and return where they end.

    ``before[run - begin]`` and ``copies[run - begin]`` are of one replicate, side and area range.
    """
    runs, alone, steps, skips = events.item_runs, events.item_alone, events.item_steps, events.item_skips
    place_starts, places, base = events.place_starts, events.places, np.uint64(begin)
    skipped = 0
    for i in range(np.uint64(items), np.uint64(stop)):
        run = np.uint64(runs[i]) - base
        many, ahead = np.int64(copies[run]), before[run] - skipped
        if alone[i]:
            # Two ranks are written whatever the copies, as a branch that is guessed wrong takes longer.
            place = np.uint64(written)
            out_ranks[place] = ahead + 1
            out_ranks[place + np.uint64(1)] = ahead + 2
            for copy in range(2, many):
                out_ranks[written + copy] = ahead + 1 + copy
            written += many
            continue
        for copy in range(many):
            for j in range(place_starts[i], place_starts[i + np.uint64(1)]):
                out_ranks[written] = ahead + copy * steps[i] + places[j]
                written += 1
        skipped += many * skips[i]
    return written


@helper
def _count_within(events: Events, items: int, stop: int, begin: int, copies: Array, out: Array) -> None:
    """Count the hits of items ``[items, stop)`` that are beyond no more than *m* caps: ``out[m]``."""
    out[:] = 0
    for i in range(items, stop):
        many = copies[events.item_runs[i] - begin]
        for j in range(events.place_starts[i], events.place_starts[i + 1]):
            for m in range(events.beyond[j], out.shape[0]):
                out[m] += many


@kernel
def collect_hits(
    events: Events, copies: Array, replicates: int, begin: int, end: int, out_starts: Array, out_ranks: Array,
    out_near: Array,
) -> None:  # fmt: skip
    """Write the ranks of the hits of classes ``[begin, end)``.

    Copies of a miss are only counted; those of a run follow each other whole, as those of an image would.

    Parameters
    ----------
    events : Events
        The detections.
    copies : (i, sides, lanes) int16
        Each replicate's copies of each image on each side; there are multiples of `LANES`, and those behind the
        `replicates` are not looked at.
    out_starts : (n + 1,) int64
        Out: where each ranking's hits are. The ranking of class *c*, row ``replicate * sides + side`` and bit *b* is
        ``((c - begin) * rows + row) * A * T + b``.
    out_ranks : int64
        Out: the ranks of the hits, one ranking after the other; there is room for two more.
    out_near : (K, rows, caps, T) int64
        Out: the hits of the first area range within each cap but the largest, of classes ``[begin, end)``.
    """
    sides, areas, caps, thresholds = copies.shape[1], events.members.shape[1], out_near.shape[2], out_near.shape[3]
    bits, longest = areas * thresholds, 0
    class_starts, item_starts = events.class_starts, events.item_starts
    for c in range(begin, end):
        longest = max(longest, class_starts[c + 1] - class_starts[c])
    before = np.empty((sides, areas, LANES, longest), np.int64)
    own = np.empty((sides, LANES, longest), np.int16)
    sums, within = np.empty((sides * areas + 1, LANES), np.int64), np.empty(caps, np.int64)
    flat, lanes = copies.reshape(-1), copies.shape[2]
    written, ranking = 0, 0
    for c in range(begin, end):
        first, last = class_starts[c], class_starts[c + 1]
        for replicate in range(replicates):
            lane = replicate % LANES
            if lane == 0:
                _look_ahead(events, flat, lanes, replicate, first, last, sums, before, own)
            for side in range(sides):
                for b in range(bits):
                    out_starts[ranking] = written
                    ranking += 1
                    items, stop = item_starts[c * bits + b], item_starts[c * bits + b + 1]
                    written = _ranks_of_bit(
                        events, items, stop, first, before[side, b // thresholds, lane], own[side, lane], written,
                        out_ranks,
                    )  # fmt: skip
                    if caps and b < thresholds:
                        _count_within(events, items, stop, first, own[side, lane], within)
                        for m in range(caps):
                            out_near[c, replicate * sides + side, m, b] = within[m]
    out_starts[ranking] = written


@helper
def _pairwise(values: Array, begin: int, count: int) -> Any:
    """Add up as numpy does, at most 128 values: eight partial sums, then the rest."""
    if count < 8:
        total = 0.0
        for i in range(begin, begin + count):
            total += values[i]
        return total
    a, b, c, d = values[begin], values[begin + 1], values[begin + 2], values[begin + 3]
    e, f, g, h = values[begin + 4], values[begin + 5], values[begin + 6], values[begin + 7]
    whole = count - count % 8
    for i in range(begin + 8, begin + whole, 8):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        e += values[i + 4]
        f += values[i + 5]
        g += values[i + 6]
        h += values[i + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(begin + whole, begin + count):
        total += values[i]
    return total


@helper
def _sum(values: Array, begin: int, count: int, stack: Array) -> Any:
    """Add up as numpy does, so that a mean has the same bits: halves that are multiples of eight, down to 128 values.

    `stack` is room for the sums of left halves and what is right of them: (64, 3).
    """
    depth, total = 0, 0.0
    # A row of the stack is a half that waits: where it begins, its length, and, where its left is done, the left's sum.
    done = np.int64(-1)
    while True:
        while count > 128:
            half = count // 2
            half -= half % 8
            stack[depth, 0] = begin + half
            stack[depth, 1] = count - half
            depth += 1
            count = half
        total = _pairwise(values, begin, count)
        while depth > 0 and stack[depth - 1, 1] == done:
            depth -= 1
            total = stack[depth, 2] + total
        if depth == 0:
            return total
        stack[depth - 1, 2] = total
        begin, count = np.int64(stack[depth - 1, 0]), np.int64(stack[depth - 1, 1])
        stack[depth - 1, 1] = done


@kernel
def average(
    table: Table, values: Array, hits: Array, near: Array, positives: Array, begin: int, end: int, out: Array
) -> None:
    """Write the columns of rows ``[begin, end)`` into ``out[row, column]``; NaN where no class has positives.

    ``values[class, row, area, threshold, recall]`` is what AP is the mean of. ``hits[class, row, area, threshold]`` are
    those that recall is made of, `near` (see `collect_hits`) those within the smaller caps, and
    ``positives[class, row, area]`` what there is to find. Means are taken over
    threshold, recall and class, in that order, as pycocotools takes them.
    """
    classes, rows, areas, thresholds, recalls = values.shape
    gathered, stack = np.empty(classes * thresholds * recalls), np.empty((64, 3))
    flat = values.reshape(-1)
    for row in range(begin, end):
        for a in range(areas):
            held = 0
            for c in range(classes):
                held += positives[c, row, a] > 0
            filled = False
            for j in range(table.metrics.shape[0]):
                if table.metrics[j, 1] != a:
                    continue
                first, last, cap = table.metrics[j, 2], table.metrics[j, 3], table.metrics[j, 4]
                if held == 0 or first >= last:
                    out[row, j] = np.nan
                    continue
                if table.metrics[j, 0]:
                    n = 0
                    for t in range(first, last):
                        for c in range(classes):
                            if positives[c, row, a] > 0:
                                found = near[c, row, cap, t] if cap < near.shape[2] else hits[c, row, a, t]
                                gathered[n] = found / positives[c, row, a]
                                n += 1
                    out[row, j] = _sum(gathered, 0, n, stack) / n
                    filled = False
                    continue
                if not filled:
                    n = 0
                    for t in range(thresholds):
                        for i in range(recalls):
                            for c in range(classes):
                                if positives[c, row, a] > 0:
                                    gathered[n] = values[c, row, a, t, i]
                                    n += 1
                    filled = True
                size = (last - first) * recalls * held
                out[row, j] = _sum(gathered, first * recalls * held, size, stack) / size
        for j in range(table.by_class.shape[0]):
            first, last = table.by_class[j, 0], table.by_class[j, 1]
            size = (last - first) * recalls
            for c in range(classes):
                column = table.metrics.shape[0] + j * classes + c
                if positives[c, row, 0] > 0 and size > 0:
                    place = ((c * rows + row) * areas * thresholds + first) * recalls
                    out[row, column] = _sum(flat, place, size, stack) / size
                else:
                    out[row, column] = np.nan
