"""Candidates: for each detection, the objects with enough overlap for a match.

A cell is one pair of category and image that has both detections and ground truth. Every kind of geometry, such as
boxes, has a kernel that finds the candidates of cells. `detmap.kernels.matching` reads only candidates, so that a
further geometry needs only a further kernel like `box_candidates`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import NEVER, allocate, helper, innermost, kernel, readonly

Array = NDArray[Any]

_NONE = readonly((), np.float64)


class Cells(NamedTuple):
    """For each pair of image and category: the ranges of its detections and of its objects; int64, shape (c,) each."""

    detection_starts: Array
    detection_stops: Array
    ground_truth_starts: Array
    ground_truth_stops: Array


class Boxes(NamedTuple):
    """Boxes by position: the box at position *p* is ``coordinates[order[p]]``.

    If ``sizes`` is True, columns 2 and 3 are width and height, else the far corner. ``pixel`` is 1.0 where corners are
    inclusive pixels and 0.0 where they are points. ``areas`` is empty if the boxes themselves are compared. If the
    boxes enclose other geometries, such as masks, ``areas`` has the areas of these geometries by record, NaN where
    unreliable.
    """

    coordinates: Array
    order: Array
    sizes: bool
    pixel: float
    areas: Array = _NONE


class Candidates(NamedTuple):
    """The objects that may match each detection of a block of cells.

    The objects for detection *r* of the block have the positions ``ground_truth[first[r]:last[r]]`` within their cell, in
    no particular order, and the overlaps ``iou[first[r]:last[r]]`` with the detection.
    """

    first: Array
    last: Array
    ground_truth: Array
    iou: Array


class Wanted(NamedTuple):
    """Wanted are the pairs whose overlap is at least ``lowest``. ``crowd`` flags the ground-truth records of crowds."""

    crowd: Array
    lowest: float


class Found(NamedTuple):
    """The columns of `Candidates`. If ``ground_truth`` and ``iou`` are too short for all pairs, the search stops early.
    ``reached``, int64, shape (3,), then has the indices of the cell, row of ``first``, and pair to continue at.
    """

    first: Array
    last: Array
    ground_truth: Array
    iou: Array
    reached: Array


@helper
def longest_run(starts: Array, stops: Array, begin: int, end: int) -> int:
    """Return the length of the longest of the ranges ``starts[i]:stops[i]``, for *i* in ``[begin, end)``."""
    longest = 0
    for i in range(begin, end):
        longest = max(longest, stops[i] - starts[i])
    return longest


@helper
def _corners(boxes: Boxes, position: int) -> tuple[float, float, float, float, float]:
    """Return x1, y1, x2, y2 and the area. If boxes are given by their sizes, x2 is x + width - pixel."""
    record = boxes.order[position]
    x, y = boxes.coordinates[record, 0], boxes.coordinates[record, 1]
    p, q = boxes.coordinates[record, 2], boxes.coordinates[record, 3]
    if boxes.sizes:
        return x, y, x + p - boxes.pixel, y + q - boxes.pixel, p * q
    return x, y, p, q, (p - x + boxes.pixel) * (q - y + boxes.pixel)


@kernel
def box_areas(boxes: Boxes, begin: int, end: int, out: Array) -> None:
    """Write the areas of the boxes at positions ``[begin, end)``."""
    for position in range(begin, end):
        out[position - begin] = _corners(boxes, position)[4]


@helper
def _sort_by_left(keys: Array, names: Array, count: int) -> None:
    """Sort `keys`, and `names` with them. The function is a heapsort because numpy's sorts take long to compile."""
    for end in range(2 * count - 1, 0, -1):
        if end >= count:  # first make a heap, from the last parent up
            root, size = end - count, count
        else:  # then move the maximum behind the heap
            keys[0], keys[end], names[0], names[end] = keys[end], keys[0], names[end], names[0]
            root, size = 0, end
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and keys[child + 1] > keys[child]:
                child += 1
            if keys[root] >= keys[child]:
                break
            keys[root], keys[child], names[root], names[child] = keys[child], keys[root], names[child], names[root]
            root = child


@helper
def _place(boxes: Boxes, start: int, count: int, by_left: bool, out: Array, names: Array, keys: Array) -> None:
    """Write corners, areas and indices of a cell's boxes, in their order, or sorted by left edge; `keys` is scratch."""
    for i in range(count):
        names[i] = i
    if by_left:
        for i in range(count):
            keys[i] = boxes.coordinates[boxes.order[start + i], 0]
        _sort_by_left(keys, names, count)
    for i in range(count):
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = _corners(boxes, start + names[i])
        if boxes.areas.shape[0]:
            out[i, 4] = boxes.areas[boxes.order[start + names[i]]]


@helper
def _swept(
    right: Array, objects: int, active: Array, live: int, entered: int, x1: float, x2: float, pixel: float
) -> tuple[int, int, int]:
    """Advance the sweep to `x1`: return the number of live objects, the next object to enter, and the first object that
    begins after `x2`. The live objects are ``active[:live]``. Objects from `entered` on that begin at `x1` or before
    are added; objects that end before `x1` are removed.
    """
    while entered < objects and right[entered, 0] <= x1:
        active[live] = entered
        live += 1
        entered += 1
    kept = 0
    for i in range(live):
        if right[active[i], 2] - x1 + pixel > 0.0:  # otherwise no later detection overlaps the object, either
            active[kept] = active[i]
            kept += 1
    beyond = entered
    while beyond < objects and not x2 - right[beyond, 0] + pixel <= 0.0:
        beyond += 1
    return kept, entered, beyond


class Compared(NamedTuple):
    """The ground truth of one image and category: ``boxes`` as x1, y1, x2, y2 and area, and indices of the objects
    (``names``). ``weights`` are 0 for crowds, whose own areas do not count in the union, and 1 for other objects.
    """

    boxes: Array
    weights: Array
    names: Array


@innermost
def _overlap(box: tuple[float, ...], truth: Compared, g: int, pixel: float, bounds: bool, hopeless: float) -> Any:
    """Return the overlap of a box, as `_corners` returns it, with an object; -inf if the overlap is less than
    `hopeless`.

    With `bounds`, return the largest overlap that the masks within the boxes may have, NaN if an area is unknown.
    """
    x1, y1, x2, y2, area = box
    height = max(min(y2, truth.boxes[g, 3]) - max(y1, truth.boxes[g, 1]) + pixel, 0.0)
    width = max(min(x2, truth.boxes[g, 2]) - max(x1, truth.boxes[g, 0]) + pixel, 0.0)
    inter = width * height
    if bounds:  # comparisons with a NaN area are False
        inter = min(inter, min(area, truth.boxes[g, 4]))
    if inter < (area + truth.weights[g] * (truth.boxes[g, 4] - inter)) * hopeless:
        return -np.inf
    if inter > 0.0:
        return inter / (area if truth.weights[g] == 0.0 else area + truth.boxes[g, 4] - inter)
    return 0.0


@helper
def _compare_all(
    boxes: Boxes,
    run: tuple[int, int],
    truth: Compared,
    objects: int,
    least: tuple[float, float],
    row: int,
    used: int,
    out: Found,
) -> int:
    """Compare every detection of a cell with every object. The function is used if objects are few or if all pairs are
    wanted. Return the end of the written pairs. `run` is the range of the detections. `least` holds the minimum
    overlap, and the overlap below which a pair is rejected without a division. The first detection has the row `row` of
    `out`; pairs are written from `used` on.
    """
    bounds = boxes.areas.shape[0] > 0
    for i in range(run[1] - run[0]):
        box = _corners(boxes, run[0] + i)
        if bounds:
            box = box[0], box[1], box[2], box[3], boxes.areas[boxes.order[run[0] + i]]
        out.first[row + i] = used
        for g in range(objects):
            value = _overlap(box, truth, g, boxes.pixel, bounds, least[1])
            if value >= least[0] or (bounds and np.isnan(value)):  # an unknown area allows any overlap
                out.ground_truth[used], out.iou[used] = g, value
                used += 1
        out.last[row + i] = used
    return used


@kernel
def box_candidates(
    cells: Cells, detections: Boxes, ground_truth: Boxes, wanted: Wanted, end: int, stop: Array, out: Found
) -> int:
    """Find the candidates of the cells from ``out.reached[0]`` up to `end`: every pair that overlaps by
    ``wanted.lowest`` or more.

    The overlap is intersection over union, or intersection over the detection's area if the object is a crowd. In a
    cell with many pairs, detections and objects are sorted by left edge and swept: a detection is only compared with
    objects that it meets along x. If the lowest overlap is 0 or less, pairs that do not touch count too, and all pairs
    are compared. For boxes around masks of known areas, the overlap is an upper bound, from the area that the boxes
    share and the smaller area of the masks. The kernel returns early once `stop` is set.

    Returns 0, or, if room is lacking, the minimum room needed. The caller then copies the found pairs and calls again,
    which repeats the search in the current cell.
    """
    begin, row, used = out.reached[0], out.reached[1], out.reached[2]
    most = longest_run(cells.detection_starts, cells.detection_stops, begin, end)
    widest = longest_run(cells.ground_truth_starts, cells.ground_truth_stops, begin, end)
    lowest, room = wanted.lowest, out.iou.shape[0]
    left, left_names = np.empty((most, 5)), np.empty(most, np.int64)  # the cell's detections: x1, y1, x2, y2, area
    right, right_names, right_weights = np.empty((widest, 5)), np.empty(widest, np.int64), np.empty(widest)
    truth = Compared(right, right_weights, right_names)
    # active: the objects that the sweep has reached
    keys, active = np.empty(max(most, widest)), np.empty(widest, np.int64)
    pixel, bounds = detections.pixel, detections.areas.shape[0] > 0
    # Cheap rejection of most pairs: compare the intersection with the union times the lowest overlap instead of
    # dividing. The factor leaves a margin for rounding; if the lowest overlap is too small for a margin, nothing is
    # rejected.
    hopeless = lowest * (1.0 - 1e-6) if lowest > 1e-300 else 0.0
    for c in range(begin, end):
        out.reached[0], out.reached[1], out.reached[2] = c, row, used
        start = cells.ground_truth_starts[c]
        count, objects = cells.detection_stops[c] - cells.detection_starts[c], cells.ground_truth_stops[c] - start
        sweep = objects >= 8 and count * objects >= 512 and lowest > 0.0
        _place(ground_truth, start, objects, sweep, right, right_names, keys)
        for g in range(objects):
            right_weights[g] = 0.0 if wanted.crowd[ground_truth.order[start + right_names[g]]] else 1.0
            if np.isnan(right[g, 4]):  # a weight of 0 would hide that the area is unknown
                right_weights[g] = np.nan
        if stop[0]:
            return 0
        if not sweep:
            if used + count * objects > room:
                return int(used + count * objects)
            run = cells.detection_starts[c], cells.detection_stops[c]
            used = _compare_all(detections, run, truth, objects, (lowest, hopeless), row, used, out)
            row += count
            continue
        # not True, which would recompile `_place`
        _place(detections, cells.detection_starts[c], count, sweep, left, left_names, keys)
        live = entered = np.int64(0)  # not 0, which would recompile `_swept`
        for at in range(count):
            if stop[0]:
                return 0
            box = left[at, 0], left[at, 1], left[at, 2], left[at, 3], left[at, 4]
            live, entered, beyond = _swept(right, objects, active, live, entered, box[0], box[2], pixel)
            met = live + beyond - entered
            if used + met > room:  # estimated room for all detections of the cell, plus a quarter
                expected = out.reached[2] + (used - out.reached[2]) * 5 // 4 * count // (at + 1)
                return int(max(used + met, expected))
            d = row + left_names[at]
            out.first[d] = used
            for i in range(met):
                g = active[i] if i < live else entered + i - live
                value = _overlap(box, truth, g, pixel, bounds, hopeless)
                if value >= lowest or (bounds and np.isnan(value)):
                    out.ground_truth[used], out.iou[used] = right_names[g], value
                    used += 1
            out.last[d] = used
        row += count
    return 0


def candidates(
    cells: Cells,
    detections: Boxes,
    ground_truth: Boxes,
    crowd: Array,
    lowest: float,
    begin: int,
    end: int,
    stop: Array = NEVER,
) -> Candidates:
    """Return the candidates of cells ``[begin, end)``; see `box_candidates`."""
    rows = int((cells.detection_stops[begin:end] - cells.detection_starts[begin:end]).sum())
    first, last = np.empty(rows, np.int64), np.empty(rows, np.int64)
    wanted, reached = Wanted(crowd, lowest), np.array([begin, 0, 0], np.int64)
    room = rows + 16
    names, overlaps = allocate((room, np.int32), (room, np.float64))
    while True:
        found = Found(first, last, names, overlaps, reached)
        needed = box_candidates(cells, detections, ground_truth, wanted, end, stop, found)
        if not needed:
            return Candidates(first, last, names, overlaps)
        room, used = max(needed, 2 * room), int(reached[2])
        names, overlaps = allocate((room, np.int32), (room, np.float64))
        names[:used], overlaps[:used] = found.ground_truth[:used], found.iou[:used]
