"""Metrics of resampled data sets, in which every image counts as often as it was drawn.

Replicates are processed in blocks. An image in a replicate has the code ``2 * copies + side``. A bootstrap replicate is
one data set and has one side, with any number of copies of each image. A permutation replicate is two data sets and has
two sides: each image of either model has one copy, on one of the sides. A replicate gives one row of output per side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel

Array = NDArray[Any]


#: Number of replicates computed at the same time: each byte of a word is the number of copies of an image in one
#: replicate.
LANES = 8


#: Kinds of items that are processed without a branch, see `Events`. The lowest bit is set if the item has a hit.
ALONE, NO_HIT = 1, 2

#: Spare room after the ranks, for ranks that are written speculatively.
SPARE = 256


class Events(NamedTuple):
    """The detections that count, in ranking order. Bit ``a * T + t`` stands for area range *a* and threshold *t*.

    A run is a group of detections of one class, with equal scores, on one image. At least one detection of a run is a
    hit or is ignored at some thresholds. All other detections are misses. The runs of class *c* are
    ``class_starts[c]:class_starts[c + 1]``. Run *j* is on image ``run_images[j]``, and ``run_sizes[j, a]`` of its
    detections count in area range *a*.

    The misses before run *j* and after the previous run form the segments ``segment_starts[j]:segment_starts[j + 1]``.
    All misses of segment *s* count in the same area ranges, where ``members[patterns[s], a] == 1``. The misses of
    segment *s* are on the images ``images[miss_starts[s]:miss_starts[s + 1]]``. Misses after the last run of their
    class are left out.

    An item is a run at one area range and threshold (bit), if a detection of the run is a hit or is ignored there. The
    items of class *c* and bit *b*, in ranking order, are ``item_starts[k]:item_starts[k + 1]`` with ``k = c * A * T +
    b``. Item *i* belongs to run ``item_runs[i]``. At its bit, the run has ``item_steps[i]`` detections that count
    and ``item_skips[i]`` ignored ones. ``places[place_starts[i]:place_starts[i + 1]]`` are the ranks of the hits, from
    1, among the detections of the run that count. ``beyond[p]`` is the number of caps (maximum numbers of detections
    per image) that exclude the hit at ``places[p]``. ``item_kinds[i]`` is `ALONE` if a hit is the only detection that
    counts and none is ignored, `NO_HIT` if there is no hit, and else 0.
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
    item_kinds: Array
    place_starts: Array
    places: Array
    beyond: Array


class Ahead(NamedTuple):
    """Numbers of detections ahead of each run of a class, as written by `_look_ahead`. ``here`` counts the first data set
    of a replicate; ``everywhere`` counts every image once.
    """

    here: Array
    everywhere: Array


class Sides(NamedTuple):
    """Buffers for the ranks of hits on side 0, and on side 1."""

    first: Array
    second: Array


class Table(NamedTuple):
    """The columns of the output. Each row of ``metrics`` gives one column, a mean over classes. Each row of
    ``by_class`` gives one column per class.

    A row of `metrics` holds five numbers: 1 for recall or 0 for AP, the area range, the first threshold, the end of the
    thresholds, and the cap. A row of `by_class` holds the first threshold and the end of the thresholds.
    """

    metrics: Array
    by_class: Array


@kernel
def count_positives(category: Array, image: Array, counts: Array, codes: Array, out: Array) -> None:
    """Add the positives of replicates to ``out[replicate, side, class, area]``, initially zeros."""
    for r in range(codes.shape[0]):
        for pair in range(category.shape[0]):
            code = codes[r, image[pair]]
            copies = np.int64(code >> 1)
            if copies:
                for a in range(counts.shape[1]):
                    out[r, code & 1, category[pair], a] += copies * counts[pair, a]


@helper
def _most_copies(words: Array) -> int:
    """Return the largest number of copies of an image in any replicate, at least 1."""
    most, byte, eight = np.uint64(1), np.uint64(255), np.uint64(8)
    for block in range(words.shape[0]):
        for i in range(words.shape[1]):
            word = words[block, i]
            for _ in range(LANES):
                most = max(most, word & byte)
                word >>= eight
    return int(most)


@helper
def _look_ahead(
    events: Events, words: Array, chunk: int, begin: int, end: int, sums: Array, out_ahead: Array, out_all: Array
) -> None:
    """Count the detections ahead of the runs ``[begin, end)`` of a class, for `LANES` replicates.

    `words` holds, one byte per replicate, how often each image was drawn, as in `collect_hits`. Up to `chunk` words can
    be added without an overflow of any byte. `sums`, (areas + 1, `LANES`), is a buffer.
    ``out_ahead[lane, area, run - begin]`` is ``256 * ahead + copies``: the number of detections ahead of the run, and
    the number of copies of the run's image, both on side 0. ``out_all[area, run - begin]`` is the number of detections
    ahead of the run if every image counts once.
    """
    images, miss_starts = events.images, events.miss_starts
    areas, byte, eight = out_all.shape[0], np.uint64(255), np.uint64(8)
    gathered = sums[areas]
    sums[:] = 0
    for run in range(begin, end):
        at = np.uint64(run - begin)
        for a in range(areas):
            out_all[a, at] = out_all[a, at - np.uint64(1)] + events.run_sizes[run - 1, a] if run > begin else 0
        for s in range(events.segment_starts[run], events.segment_starts[run + 1]):
            gathered[:] = 0
            for m in range(miss_starts[s], miss_starts[s + 1], chunk):
                word = np.uint64(0)
                for n in range(np.uint64(m), np.uint64(min(m + chunk, miss_starts[s + 1]))):
                    word += words[np.uint64(images[n])]
                for lane in range(LANES):
                    gathered[lane] += np.int64(word & byte)
                    word >>= eight
            for a in range(areas):
                if events.members[events.patterns[s], a]:
                    out_all[a, at] += miss_starts[s + 1] - miss_starts[s]
                    for lane in range(LANES):
                        sums[a, lane] += gathered[lane]
        word = words[np.uint64(events.run_images[run])]
        for lane in range(LANES):
            gathered[lane] = np.int64(word & byte)
            word >>= eight
        for a in range(areas):
            size = events.run_sizes[run, a]
            for lane in range(LANES):
                out_ahead[lane, a, at] = 256 * sums[a, lane] + gathered[lane]
                sums[a, lane] += size * gathered[lane]


@helper
def _ranks_of_bit(
    events: Events, items: int, stop: int, begin: int, ahead: Array, written: int, out_ranks: Array
) -> int:
    """Write the ranks of the hits of items ``[items, stop)`` from ``out_ranks[written]`` on, and return their end.

    `ahead` is the ``out_ahead`` of `_look_ahead` for one replicate and area range.
    """
    runs, kinds, steps, skips = events.item_runs, events.item_kinds, events.item_steps, events.item_skips
    place_starts, places, base = events.place_starts, events.places, np.uint64(begin)
    skipped = 0
    for i in range(np.uint64(items), np.uint64(stop)):
        both = ahead[np.uint64(runs[i]) - base]
        many, before = both & 255, (both >> 8) - skipped
        skipped += many * skips[i]
        if kinds[i]:
            # Four ranks are always written, because a mispredicted branch takes longer. The next ranks overwrite
            # surplus ranks.
            for copy in range(4):
                out_ranks[np.uint64(written + copy)] = before + 1 + copy
            for copy in range(4, many):
                out_ranks[np.uint64(written + copy)] = before + 1 + copy
            written += many * (kinds[i] & 1)
            continue
        for copy in range(many):
            for j in range(place_starts[i], place_starts[i + np.uint64(1)]):
                out_ranks[written] = before + copy * steps[i] + places[j]
                written += 1
    return written


@helper
def _deal_ranks_of_bit(
    events: Events, items: int, stop: int, begin: int, ahead: Ahead, written: int, kept: int, out: Sides
) -> int:
    """Write the ranks of the hits of items ``[items, stop)``: hits on side 0 to ``out.first``, from `written` on, hits
    on side 1 to ``out.second``, from `kept` on. Return the end of the ranks on side 0.

    `ahead` is for one replicate and area range; its first element is for the run `begin`.
    """
    runs, kinds, skips = events.item_runs, events.item_kinds, events.item_skips
    place_starts, places, base, one = events.place_starts, events.places, np.uint64(begin), np.uint64(1)
    out_ranks, out_others, skipped, others_skipped = out.first, out.second, 0, 0
    for i in range(np.uint64(items), np.uint64(stop)):
        run = np.uint64(runs[i]) - base
        both = ahead.here[run]
        here, before = both & 1, both >> 8
        others_before = ahead.everywhere[run] - before - others_skipped
        before -= skipped
        gone = here * skips[i]
        skipped += gone
        others_skipped += skips[i] - gone
        if kinds[i]:
            # The rank is written on both sides, because a mispredicted branch takes longer; where there is no hit, the
            # next rank overwrites it.
            out_ranks[np.uint64(written)] = before + 1
            out_others[np.uint64(kept)] = others_before + 1
            hit = kinds[i] & 1
            written += here * hit
            kept += hit - here * hit
        elif here:
            for j in range(place_starts[i], place_starts[i + one]):
                out_ranks[written] = before + places[j]
                written += 1
        else:
            for j in range(place_starts[i], place_starts[i + one]):
                out_others[kept] = others_before + places[j]
                kept += 1
    return written


@helper
def _deal_ranks(
    events: Events,
    category: int,
    ahead: Ahead,
    ranking: int,
    bits: int,
    spare: Array,
    out_starts: Array,
    out_ranks: Array,
) -> None:
    """Write the ranks of the hits of a class in one replicate: all of side 0, then all of side 1.

    `ahead` is for this replicate, (areas, runs); `spare` is a buffer for the ranks of one side. The first ranking of
    the class has the number `ranking` and begins at ``out_starts[ranking]``.
    """
    item_starts, thresholds = events.item_starts, bits // ahead.everywhere.shape[0]
    written, kept = out_starts[ranking], 0
    for b in range(bits):
        items, stop = item_starts[category * bits + b], item_starts[category * bits + b + 1]
        of_area = Ahead(ahead.here[b // thresholds], ahead.everywhere[b // thresholds])
        begin, out = events.class_starts[category], Sides(out_ranks, spare)
        end = _deal_ranks_of_bit(events, items, stop, begin, of_area, written, kept, out)
        kept += events.place_starts[stop] - events.place_starts[items] - (end - written)
        written = end
        out_starts[ranking + b + 1], out_starts[ranking + bits + b + 1] = written, kept
    for b in range(bits):
        out_starts[ranking + bits + b + 1] += written
    for j in range(kept):
        out_ranks[written + j] = spare[j]


@helper
def _count_within(
    events: Events, words: Array, chunk: int, items: int, stop: int, sums: Array, sides: int, out_near: Array
) -> None:
    """Write to ``out_near[lane * sides + side, cap]`` how many hits of the items ``[items, stop)`` are within a cap.
    The largest cap is left out.

    `words` has the copies of each image in `LANES` replicates, as in `collect_hits`; up to `chunk` words can be added
    without an overflow of any byte. If `out_near` has rows for fewer lanes, the other lanes are left out. `sums` is a
    buffer for `LANES` sums.
    """
    run_images, runs, place_starts, beyond = events.run_images, events.item_runs, events.place_starts, events.beyond
    byte, eight = np.uint64(255), np.uint64(8)
    for cap in range(out_near.shape[1]):
        sums[:] = 0
        word, waiting, total = np.uint64(0), 0, 0
        for i in range(items, stop):
            copies = words[np.uint64(run_images[runs[i]])]
            for j in range(place_starts[i], place_starts[i + 1]):
                if beyond[j] > cap:
                    continue
                word += copies
                waiting += 1
                if waiting == chunk:
                    for lane in range(LANES):
                        sums[lane] += np.int64(word & byte)
                        word >>= eight
                    total += waiting
                    waiting = 0
        total += waiting
        for row in range(out_near.shape[0] // sides):
            found = sums[row] + np.int64((word >> (eight * np.uint64(row))) & byte)
            out_near[row * sides, cap] = found
            if sides == 2:  # a hit that is not on side 0 is on side 1
                out_near[row * sides + 1, cap] = total - found


@kernel
def collect_hits(
    events: Events, words: Array, sides: int, begin: int, end: int, out_starts: Array, out_ranks: Array, out_near: Array
) -> None:
    """Write the ranks of the hits of classes ``[begin, end)``.

    Misses get no rank, but count in the ranks of later hits. If an image was drawn several times, its runs are ranked
    several times, one copy after the other.

    Parameters
    ----------
    events : Events
        The detections.
    words : (blocks, i) uint64
        The number of copies of each image on side 0 in each replicate, at most 255, one byte each: image *i* has
        ``words[r // LANES, i] >> 8 * (r % LANES) & 255`` copies in replicate *r*.
    sides : {1, 2}
        Number of sides. With two sides, each image has one copy, on one of the sides.
    out_starts : (n + 1,) int64
        Out: the range of each ranking's hits. The ranking of class *c*, row ``replicate * sides + side`` and bit *b* is
        ``((c - begin) * rows + row) * A * T + b``.
    out_ranks : int64
        Out: the ranks of the hits by ranking, with room for `SPARE` more.
    out_near : (K, rows, caps, T) int64
        Out: the number of hits in the first area range within each cap but the largest, for classes ``[begin, end)``.
    """
    areas, caps, thresholds = events.members.shape[1], out_near.shape[2], out_near.shape[3]
    bits, longest, most, ranking = areas * thresholds, 0, 0, 0
    class_starts, item_starts, place_starts = events.class_starts, events.item_starts, events.place_starts
    for c in range(begin, end):
        longest = max(longest, class_starts[c + 1] - class_starts[c])
        most = max(most, place_starts[item_starts[(c + 1) * bits]] - place_starts[item_starts[c * bits]])
    ahead, everywhere = np.empty((LANES, areas, longest), np.int64), np.empty((areas, longest), np.int64)
    spare = np.empty(most + 1, np.int64)
    sums = np.empty((areas + 1, LANES), np.int64)
    chunk = 255 // _most_copies(words)
    out_starts[0] = 0
    for c in range(begin, end):
        first, last = class_starts[c], class_starts[c + 1]
        for replicate in range(out_near.shape[1] // sides):
            lane = replicate % LANES
            if lane == 0:
                of_lanes = words[replicate // LANES]
                _look_ahead(events, of_lanes, chunk, first, last, sums, ahead, everywhere)
                for t in range(thresholds if caps else 0):
                    items, stop = item_starts[c * bits + t], item_starts[c * bits + t + 1]
                    rows = out_near[c, replicate * sides : (replicate + LANES) * sides, :, t]
                    _count_within(events, of_lanes, chunk, items, stop, sums[0], sides, rows)
            if sides == 2:
                both = Ahead(ahead[lane], everywhere)
                _deal_ranks(events, c, both, ranking, bits, spare, out_starts, out_ranks)
            for b in range(bits if sides == 1 else 0):
                items, stop = item_starts[c * bits + b], item_starts[c * bits + b + 1]
                out_starts[ranking + b + 1] = _ranks_of_bit(
                    events, items, stop, first, ahead[lane, b // thresholds], out_starts[ranking + b], out_ranks
                )
            ranking += sides * bits


@helper
def _pairwise(values: Array, begin: int, count: int) -> Any:
    """Sum at most 128 values as numpy does: eight partial sums, then the rest."""
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
    """Sum in numpy's order, so that a mean has the same bits. The range of values is halved, at multiples of eight,
    until no part has more than 128 values. `stack`, (64, 3), is a buffer for left sums and pending right halves.
    """
    depth, total = 0, 0.0
    # A row of the stack is a pending right half: its start, its length (`done` while it is summed), and the sum of the
    # left half.
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


#: Number of classes transposed at a time. Values of one class are adjacent in the input, values of one threshold and
#: recall in the output. With few classes at a time, both reads and writes are close together.
_TOGETHER = 8


@helper
def _bring_together(values: Array, classes: Array, row: int, area: int, out: Array) -> None:
    """Gather the values of some `classes` in one row and area range, by threshold, recall and class, in that order."""
    thresholds, recalls, many = values.shape[3], values.shape[4], classes.size
    for begin in range(0, many, _TOGETHER):
        end = min(begin + _TOGETHER, many)
        for t in range(thresholds):
            for i in range(recalls):
                place = np.uint64((t * recalls + i) * many)
                for k in range(np.uint64(begin), np.uint64(end)):
                    out[place + k] = values[classes[k], row, area, t, i]


@kernel
def average(
    table: Table, values: Array, hits: Array, near: Array, positives: Array, begin: int, end: int, out: Array
) -> None:
    """Write the columns of rows ``[begin, end)`` into ``out[row, column]``; NaN where no class has positives.

    ``values[class, row, area, threshold, recall]`` are the precisions that AP averages. ``hits[class, row, area,
    threshold]`` are the numbers of hits, for recall; `near` (see `collect_hits`) are the numbers of hits within smaller
    caps; ``positives[class, row, area]`` are the numbers of positives. Means are taken over threshold, recall and
    class, in that order, as pycocotools takes them.
    """
    classes, rows, areas, thresholds, recalls = values.shape
    gathered, stack = np.empty(classes * thresholds * recalls), np.empty((64, 3))
    flat, holding = values.reshape(-1), np.empty(classes, np.int64)
    for row in range(begin, end):
        for a in range(areas):
            held = 0
            for c in range(classes):
                holding[held] = c
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
                        for c in holding[:held]:
                            found = near[c, row, cap, t] if cap < near.shape[2] else hits[c, row, a, t]
                            gathered[n] = found / positives[c, row, a]
                            n += 1
                    out[row, j] = _sum(gathered, 0, n, stack) / n
                    filled = False
                    continue
                if not filled:
                    _bring_together(values, holding[:held], row, a, gathered)
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
