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


class Events(NamedTuple):
    """The detections that count, in ranking order; bit ``a * T + t`` stands for area range *a* and threshold *t*.

    A run is what matters by itself: the detections of one score on one image where one of them is a hit, or is ignored at
    some thresholds. The runs of class *c* are ``class_starts[c]:class_starts[c + 1]``. Before run *j* come the misses
    ``miss_starts[j]:miss_starts[j + 1]``, each with its `image` and `pattern`: the area ranges that it counts in, where
    ``members[p, a]`` says that pattern *p* counts in *a*. Run *j* is on image ``run_images[j]`` and has the rows
    ``run_starts[j]:run_starts[j + 1]`` of what follows: the pattern, the number of caps that the detection is beyond, and
    the bits at which it is a hit, or is ignored although its pattern counts it. Misses behind the last hit are left out.
    """

    class_starts: Array
    miss_starts: Array
    images: Array
    patterns: Array
    run_images: Array
    run_starts: Array
    run_patterns: Array
    beyond: Array
    hit_starts: Array
    hit_bits: Array
    skip_starts: Array
    skip_bits: Array
    members: Array


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


@kernel
def collect_hits(
    events: Events, codes: Array, thresholds: int, sides: int, out_starts: Array, out_ranks: Array, out_near: Array
) -> None:
    """Write the ranks of the hits of ranking ``((replicate * sides + side) * K + class) * A * T + bit``.

    Copies of a miss are only counted; those of a run follow each other whole, as those of an image would. `out_starts` comes
    with room for as many hits as each ranking can have and leaves with where they are. ``out_near[row, class, cap,
    threshold]``, which comes with zeros, counts the hits of the first area range within each cap but the largest.
    """
    # Bound to names once: each look at a member inside the loops would count a reference.
    beyond = events.beyond
    class_starts = events.class_starts
    hit_bits = events.hit_bits
    hit_starts = events.hit_starts
    images = events.images
    members = events.members
    miss_starts = events.miss_starts
    patterns = events.patterns
    run_images = events.run_images
    run_patterns = events.run_patterns
    run_starts = events.run_starts
    skip_bits = events.skip_bits
    skip_starts = events.skip_starts
    classes, areas = class_starts.shape[0] - 1, members.shape[1]
    kinds, bits, caps = members.shape[0], areas * thresholds, out_near.shape[2]
    counted, above = np.empty((2, kinds), np.int64), np.empty(areas, np.int64)
    area_of = np.arange(bits) // thresholds
    skipped, at = np.empty(2 * bits, np.int64), np.empty(2 * bits, np.int64)  # of one side, then of the other
    stops = np.empty(out_starts.shape[0] - 1, np.int64)
    for r in range(codes.shape[0]):
        for c in range(classes):
            counted[:] = 0
            skipped[:] = 0
            for side in range(sides):
                first = ((r * sides + side) * classes + c) * bits
                for b in range(bits):
                    at[side * bits + b] = out_starts[first + b]
            for run in range(class_starts[c], class_starts[c + 1]):
                if kinds == 1:  # nothing but images to read, and sums that stay in registers
                    every, other = 0, 0
                    for e in range(miss_starts[run], miss_starts[run + 1]):
                        code = np.int64(codes[r, np.uint64(images[e])])
                        every += code >> 1
                        other += (code >> 1) * (code & 1)
                    counted[0, 0] += every - other
                    counted[1, 0] += other
                else:
                    for e in range(miss_starts[run], miss_starts[run + 1]):
                        code = codes[r, np.uint64(images[e])]
                        counted[np.uint64(code & 1), np.uint64(patterns[e])] += code >> 1
                code = codes[r, run_images[run]]
                side = np.int64(code & 1)
                own = side * bits
                for _ in range(code >> 1):
                    for d in range(run_starts[run], run_starts[run + 1]):
                        counted[side, run_patterns[d]] += 1
                        for i in range(skip_starts[d], skip_starts[d + 1]):
                            skipped[np.uint64(own + skip_bits[i])] += 1
                        if hit_starts[d] == hit_starts[d + 1]:
                            continue
                        for a in range(areas):
                            total = 0
                            for p in range(kinds):
                                total += members[p, a] * counted[side, p]
                            above[a] = total
                        for i in range(hit_starts[d], hit_starts[d + 1]):
                            b = np.uint64(hit_bits[i])
                            mine = np.uint64(own) + b
                            place = at[mine]
                            out_ranks[np.uint64(place)] = above[np.uint64(area_of[b])] - skipped[mine]
                            at[mine] = place + 1
                        for m in range(beyond[d], caps):
                            for i in range(hit_starts[d], hit_starts[d + 1]):
                                if hit_bits[i] < thresholds:
                                    out_near[r * sides + side, c, m, hit_bits[i]] += 1
            for side in range(sides):
                first = ((r * sides + side) * classes + c) * bits
                for b in range(bits):
                    stops[first + b] = at[side * bits + b]
    written = 0
    for q in range(stops.shape[0]):  # close the gaps: what is written never overtakes what is read
        start = out_starts[q]
        out_starts[q] = written
        for j in range(start, stops[q]):
            out_ranks[written] = out_ranks[j]
            written += 1
    out_starts[stops.shape[0]] = written


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
    table: Table, values: Array, starts: Array, near: Array, positives: Array, begin: int, end: int, out: Array
) -> None:
    """Write the columns of rows ``[begin, end)`` into ``out[row, column]``; NaN where no class has positives.

    ``values[row, class, area, threshold, recall]`` is what AP is the mean of; the hits that recall is made of are counted
    by `starts` (see `collect_hits`) and, within the smaller caps, by `near`. Means are taken over threshold, recall and
    class, in that order, as pycocotools takes them.
    """
    _, classes, areas, thresholds, recalls = values.shape
    gathered, stack = np.empty(classes * thresholds * recalls), np.empty((64, 3))
    flat = values.reshape(-1)
    for row in range(begin, end):
        for a in range(areas):
            held = 0
            for c in range(classes):
                held += positives[row, c, a] > 0
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
                            if positives[row, c, a] > 0:
                                q = ((row * classes + c) * areas + a) * thresholds + t
                                hits = near[row, c, cap, t] if cap < near.shape[2] else starts[q + 1] - starts[q]
                                gathered[n] = hits / positives[row, c, a]
                                n += 1
                    out[row, j] = _sum(gathered, 0, n, stack) / n
                    filled = False
                    continue
                if not filled:
                    n = 0
                    for t in range(thresholds):
                        for i in range(recalls):
                            for c in range(classes):
                                if positives[row, c, a] > 0:
                                    gathered[n] = values[row, c, a, t, i]
                                    n += 1
                    filled = True
                size = (last - first) * recalls * held
                out[row, j] = _sum(gathered, first * recalls * held, size, stack) / size
        for j in range(table.by_class.shape[0]):
            first, last = table.by_class[j, 0], table.by_class[j, 1]
            size = (last - first) * recalls
            for c in range(classes):
                column = table.metrics.shape[0] + j * classes + c
                if positives[row, c, 0] > 0 and size > 0:
                    place = ((row * classes + c) * areas * thresholds + first) * recalls
                    out[row, column] = _sum(flat, place, size, stack) / size
                else:
                    out[row, column] = np.nan
