"""Matching in which objects choose detections, as in KITTI: once to find the scores at which precision is read, and
again at each of these scores.

In the first pass each object takes the free detection of the highest score that overlaps it enough. Then, for every
score of a detection, only detections of at least that score take part, and each object of the image and category takes
the free detection that overlaps it most. Objects choose in the order of the file. Bits are as in
`detmap.kernels.matching`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.matching import Objects, Ranges
from detmap.kernels.overlap import Candidates, Cells, longest_run

Array = NDArray[Any]

#: Roles of a detection in an area range: valid, ignored, or absent.
_VALID, _IGNORED, _ABSENT = 0, 1, 2


class Pairing(NamedTuple):
    """The ``cells`` with their ``candidates``. For each cell, ``others`` are the detections of other categories that
    are ignored but may be matched to objects of the cell, with their ``others_candidates``.
    """

    cells: Cells
    others: Cells
    candidates: Candidates
    others_candidates: Candidates


class Rows(NamedTuple):
    """Arrays by position: the ``scores`` of detections and their ``rows`` in the table, with detections of other
    categories last. ``angles`` and ``object_angles`` are the angles of detections and of objects in radians, empty if
    unknown.
    """

    scores: Array
    rows: Array
    angles: Array
    object_angles: Array


class Levels(NamedTuple):
    """``thresholds``, shape (T,), are minimum overlaps, and ``ranges`` are area ranges. Once ``stop`` is set, work ends."""

    thresholds: Array
    ranges: Ranges
    stop: Array


class Steps(NamedTuple):
    """Output of matching, by position of detections. ``hit`` and ``ignored`` are the words of the first pass. The next
    three columns have a value for each area range and threshold (bit). When the minimum score is lowered to the
    detection's score, the image's numbers of hits and misses change by ``found`` and ``missed``, int32 (n, bits). The
    image's sum of similarities of orientation becomes ``alike``, float64 (n, bits). ``taken``, int32 (n,), is the
    object that a detection is matched to in the first pass, numbered within its image and category; the array may be
    empty.
    """

    hit: Array
    ignored: Array
    found: Array
    missed: Array
    alike: Array
    taken: Array


class Span(NamedTuple):
    """The objects of one image and category begin at position ``start``; ``size`` is their number, and ``detections``
    the number of detections.
    """

    start: int
    size: int
    detections: int


class Cell(NamedTuple):
    """One cell. The detections that overlap object *g* are ``of[starts[g]:starts[g + 1]]``, with their ``iou`` and, if
    angles are known, similarity of orientation (``alike``). ``at`` has the positions of detections. The other arrays
    are buffers: ``role``, ``used`` and ``stuff`` with an element per detection, ``unneeded`` with an element per
    object.
    """

    starts: Array
    of: Array
    iou: Array
    alike: Array
    at: Array
    role: Array
    used: Array
    stuff: Array
    unneeded: Array


@helper
def _count(candidates: Candidates, row: int, count: int, starts: Array) -> None:
    for r in range(row, row + count):
        for i in range(candidates.first[r], candidates.last[r]):
            starts[candidates.ground_truth[i] + 1] += 1


@helper
def _place(candidates: Candidates, row: int, count: int, before: int, cell: Cell) -> None:
    """Add `count` detections, numbered from `before` on, to the lists of the objects that they overlap. ``cell.starts``
    moves to the next free place of each list.
    """
    for r in range(count):
        for i in range(candidates.first[row + r], candidates.last[row + r]):
            to = cell.starts[candidates.ground_truth[i]]
            cell.of[to], cell.iou[to] = before + r, candidates.iou[i]
            cell.starts[candidates.ground_truth[i]] += 1


@helper
def _gather(pairing: Pairing, c: int, row: int, others_row: int, cell: Cell) -> Any:
    """List for each object of cell `c` the detections that overlap it; return the number of the cell's own detections,
    and of `others`.
    """
    own, others = pairing.cells, pairing.others
    count = own.detection_stops[c] - own.detection_starts[c]
    more = others.detection_stops[c] - others.detection_starts[c]
    objects = own.ground_truth_stops[c] - own.ground_truth_starts[c]
    for g in range(objects + 1):
        cell.starts[g] = 0
    _count(pairing.candidates, row, count, cell.starts)
    _count(pairing.others_candidates, others_row, more, cell.starts)
    for g in range(objects):
        cell.starts[g + 1] += cell.starts[g]
    for d in range(count):
        cell.at[d] = own.detection_starts[c] + d
    for d in range(more):
        cell.at[count + d] = others.detection_starts[c] + d
    _place(pairing.candidates, row, count, 0, cell)
    _place(pairing.others_candidates, others_row, more, count, cell)
    for g in range(objects, 0, -1):
        cell.starts[g] = cell.starts[g - 1]
    cell.starts[0] = 0
    return count, more


@helper
def _roles(objects: Objects, start: int, size: int, ranges: Ranges, a: int, unneeded: Array) -> None:
    """Write which objects of a cell are ignored in an area range."""
    for g in range(size):
        value = objects.measures[start + g, ranges.measure[a]]
        outside = value < ranges.limits[a, 0] or value > ranges.limits[a, 1]
        unneeded[g] = objects.ignored[start + g] or outside


@helper
def _first(cell: Cell, g: int, least: float, rows: Rows) -> int:
    """Return the free detection of the highest score that overlaps an object enough, the first in file order in a tie;
    -1 for none.
    """
    best = -1
    for i in range(cell.starts[g], cell.starts[g + 1]):
        d = cell.of[i]
        if cell.role[d] == _ABSENT or cell.used[d] == 1 or not cell.iou[i] >= least:
            continue
        if best >= 0:
            score, other = rows.scores[cell.at[d]], rows.scores[cell.at[best]]
            if score < other or (score == other and rows.rows[cell.at[d]] > rows.rows[cell.at[best]]):
                continue
        best = d
    return best


@helper
def _nearest(cell: Cell, g: int, least: float, rows: Rows, stop: int, stamp: int) -> int:
    """Return the index in ``cell.of`` of the free, valid detection among the first `stop` that overlaps object `g`
    most; -1 for none.
    """
    best, most = -1, 0.0
    for i in range(cell.starts[g], cell.starts[g + 1]):
        d = cell.of[i]
        if d >= stop or cell.role[d] != _VALID or cell.used[d] == stamp or not cell.iou[i] >= least:
            continue
        if best >= 0:
            later = rows.rows[cell.at[d]] > rows.rows[cell.at[cell.of[best]]]
            if cell.iou[i] < most or (cell.iou[i] == most and later):
                continue
        best, most = i, cell.iou[i]
    return best


@helper
def _first_pass(cell: Cell, span: Span, objects: Objects, least: float, rows: Rows, bit: int, out: Steps) -> None:
    """Match one area range and threshold (`bit`) in the first pass. Detections in don't-care regions are marked in
    ``cell.stuff``.
    """
    word, mask = bit >> 6, np.uint64(1) << np.uint64(bit & 63)
    for g in range(span.size):
        if objects.crowd[span.start + g]:
            for i in range(cell.starts[g], cell.starts[g + 1]):
                if cell.iou[i] >= least:
                    cell.stuff[cell.of[i]] = 1
            continue
        d = _first(cell, g, least, rows)
        if d < 0:
            continue
        cell.used[d] = 1
        if d < span.detections:
            if out.taken.shape[0]:
                out.taken[cell.at[d]] = g
            if cell.role[d] == _VALID and not cell.unneeded[g]:
                out.hit[cell.at[d], word] |= mask
            else:
                out.ignored[cell.at[d], word] |= mask
    for d in range(span.detections):
        if cell.stuff[d] and not cell.used[d]:
            out.ignored[cell.at[d], word] |= mask


@helper
def _second_passes(cell: Cell, span: Span, objects: Objects, least: float, rows: Rows, bit: int, out: Steps) -> None:
    """Write how the numbers of hits and misses change at each score, for one area range and threshold (`bit`)."""
    before_found, before_missed, before_alike = 0, 0, 0.0
    begin, valid = 0, 0
    while begin < span.detections:
        stop, counted = begin, False
        while stop < span.detections and rows.scores[cell.at[stop]] == rows.scores[cell.at[begin]]:
            if cell.role[stop] == _VALID:
                counted = True
                valid += cell.stuff[stop] == 0
            out.found[cell.at[stop], bit], out.missed[cell.at[stop], bit] = 0, 0
            stop += 1
        if counted:
            found, missed, alike = 0, valid, 0.0
            for g in range(span.size):
                if objects.crowd[span.start + g]:
                    continue
                i = _nearest(cell, g, least, rows, stop, stop + 1)
                if i < 0:
                    continue
                d = cell.of[i]
                cell.used[d] = stop + 1
                missed -= cell.stuff[d] == 0
                if not cell.unneeded[g]:
                    found += 1
                    if rows.angles.shape[0]:
                        alike += cell.alike[i]
            out.found[cell.at[stop - 1], bit] = found - before_found
            out.missed[cell.at[stop - 1], bit] = missed - before_missed
            before_found, before_missed, before_alike = found, missed, alike
        for d in range(begin, stop):
            out.alike[cell.at[d], bit] = before_alike
        begin = stop


@helper
def _compare_angles(cell: Cell, span: Span, rows: Rows) -> None:
    """Write the similarity of orientation of all overlapping pairs in a cell."""
    for g in range(span.size):
        for i in range(cell.starts[g], cell.starts[g + 1]):
            turn = rows.object_angles[span.start + g] - rows.angles[cell.at[cell.of[i]]]
            cell.alike[i] = (1.0 + math.cos(turn)) / 2.0


@kernel
def match(pairing: Pairing, objects: Objects, levels: Levels, rows: Rows, begin: int, end: int, out: Steps) -> None:
    """Match the cells ``[begin, end)``. Before the call, `out` must describe all detections as misses, and as ignored
    in area ranges that do not contain their size.
    """
    cells, others = pairing.cells, pairing.others
    widest = longest_run(cells.ground_truth_starts, cells.ground_truth_stops, begin, end)
    most = longest_run(cells.detection_starts, cells.detection_stops, begin, end)
    most += longest_run(others.detection_starts, others.detection_stops, begin, end)
    pairs = pairing.candidates.iou.shape[0] + pairing.others_candidates.iou.shape[0]
    cell = Cell(
        np.empty(widest + 1, np.int64), np.empty(pairs, np.int64), np.empty(pairs), np.empty(pairs),
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64),
        np.empty(widest, np.bool_),
    )  # fmt: skip
    row, others_row = 0, 0
    for c in range(begin, end):
        count, more = _gather(pairing, c, row, others_row, cell)
        start = cells.ground_truth_starts[c]
        span = Span(start, cells.ground_truth_stops[c] - start, count)
        if rows.angles.shape[0]:
            _compare_angles(cell, span, rows)
        for a in range(levels.ranges.limits.shape[0]):
            _roles(objects, start, span.size, levels.ranges, a, cell.unneeded)
            for t in range(levels.thresholds.shape[0]):
                if levels.stop[0]:
                    return
                bit = a * levels.thresholds.shape[0] + t
                for d in range(count + more):
                    flagged = (out.ignored[cell.at[d], bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1)
                    cell.role[d] = _IGNORED if flagged else _ABSENT if d >= count else _VALID
                    cell.used[d], cell.stuff[d] = 0, 0
                least = levels.thresholds[t]
                _first_pass(cell, span, objects, least, rows, bit, out)
                for d in range(count):
                    cell.used[d] = 0
                _second_passes(cell, span, objects, least, rows, bit, out)
        row += count
        others_row += more


class Sampled(NamedTuple):
    """Detections of all classes in ranking order, with columns of `detmap.Tally`; ``copies`` is the number of copies of
    each image.
    """

    scores: Array
    image: Array
    hit: Array
    found: Array
    missed: Array
    alike: Array
    copies: Array


@helper
def _wanted(place: int, hits: int, positives: int, recall: float) -> bool:
    """Return whether precision at `recall` is read at the hit with the index `place`: the last hit, or a hit at least
    as near to `recall` as the next hit.
    """
    last = place == hits - 1
    low = (place + 1) / positives
    high = low if last else (place + 2) / positives
    return last or not high - recall < recall - low


@helper
def _envelope(values: Array, count: int) -> None:
    """Replace each of the first `count` values by the maximum of this and all later values, with the NaN semantics of
    C++'s ``max_element``.
    """
    best = 0.0
    for k in range(values.shape[0] - 1, -1, -1):
        if values[k] > best:
            best = values[k]
        if k < count and values[k] == values[k]:
            values[k] = best


@kernel
def sample(
    rows: Sampled, bit: int, begin: int, end: int, positives: int, precision: Array, scores: Array, alike: Array
) -> None:
    """Write precision, scores and similarity of orientation of one class, shape (41,) each, padded with 0.

    The values are taken at the scores of the hits nearest to the recalls 0, 1/40, 2/40 and so on.
    """
    for k in range(precision.shape[0]):
        precision[k], scores[k], alike[k] = 0.0, 0.0, 0.0
    hits = 0
    for d in range(begin, end):
        if (rows.hit[d, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1):
            hits += rows.copies[rows.image[d]]
    here = np.zeros(rows.copies.shape[0] if rows.alike.shape[0] else 0)
    place, recall, count, found, missed, d = 0, 0.0, 0, 0, 0, begin
    while d < end and place < hits:
        stop, first = d, count
        while stop < end and rows.scores[stop] == rows.scores[d]:
            copies = rows.copies[rows.image[stop]]
            found += copies * rows.found[stop, bit]
            missed += copies * rows.missed[stop, bit]
            if here.shape[0]:
                here[rows.image[stop]] = rows.alike[stop, bit]
            if (rows.hit[stop, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1):
                for _ in range(copies):
                    if _wanted(place, hits, positives, recall) and count < precision.shape[0]:
                        count += 1
                        recall += 1 / 40.0
                    place += 1
            stop += 1
        if count > first:
            total = 0.0
            for i in range(here.shape[0]):
                for _ in range(rows.copies[i]):
                    total += here[i]
            for k in range(first, count):
                counted = float(found + missed)
                scores[k] = rows.scores[d]
                precision[k] = found / counted if counted != 0.0 else np.nan
                alike[k] = total / counted if counted != 0.0 else np.nan
        d = stop
    _envelope(precision, count)
    _envelope(alike, count)


@kernel
def sample_hits(starts: Array, ranks: Array, positives: Array, begin: int, end: int, out: Array) -> None:
    """Write the precision, shape (q, 41), of rankings ``[begin, end)`` at up to 41 hits, chosen as `sample` does."""
    for q in range(begin, end):
        values, count, recall = out[q], 0, 0.0
        hits = starts[q + 1] - starts[q]
        for k in range(values.shape[0]):
            values[k] = 0.0 if positives[q] > 0 else np.nan
        if positives[q] <= 0:
            continue
        for place in range(hits):
            if _wanted(place, hits, positives[q], recall) and count < values.shape[0]:
                values[count] = (place + 1) / ranks[starts[q] + place]
                count += 1
                recall += 1 / 40.0
        _envelope(values, count)
