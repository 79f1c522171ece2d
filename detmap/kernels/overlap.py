"""How much do two shapes overlap: for each detection the short list of ground truth that it overlaps enough.

A cell is one (category, image) that holds both detections and ground truth. A kernel here turns cells into candidates,
and `detmap.kernels.matching` reads nothing else, so that any other shape needs one more kernel here and nothing there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import NEVER, helper, innermost, kernel, readonly

Array = NDArray[Any]

_NONE = readonly((), np.float64)


class Cells(NamedTuple):
    """Where each cell's detections and ground truth lie in their (image, category) order; int64, shape (c,) each."""

    detection_starts: Array
    detection_stops: Array
    ground_truth_starts: Array
    ground_truth_stops: Array


class Boxes(NamedTuple):
    """Boxes by position: the box at position *p* is ``coordinates[order[p]]``.

    ``sizes`` says that columns 2 and 3 are width and height rather than the far corner. ``pixel`` is 1.0 where corners are
    inclusive pixels and 0.0 where they are points. ``areas`` are, by record, those of the shapes that the boxes are around,
    NaN where they are not to be relied on; empty: the boxes are the shapes.
    """

    coordinates: Array
    order: Array
    sizes: bool
    pixel: float
    areas: Array = _NONE


class Candidates(NamedTuple):
    """The ground truth that may match, for the detections of a block of cells, one after the other.

    Detection *r* of the block has ``ground_truth[first[r]:last[r]]``, positions within its cell in no particular order, and
    their overlaps ``iou[first[r]:last[r]]``.
    """

    first: Array
    last: Array
    ground_truth: Array
    iou: Array


class Wanted(NamedTuple):
    """Which pairs count: those that overlap by ``lowest`` or more. By record of ground truth: whether it is a ``crowd``."""

    crowd: Array
    lowest: float


class Runs(NamedTuple):
    """The columns of `Candidates` that say where the candidates of each detection are."""

    first: Array
    last: Array


@helper
def longest_run(starts: Array, stops: Array, begin: int, end: int) -> int:
    """Return the length of the longest of the runs ``starts[i]:stops[i]``, for *i* in ``[begin, end)``."""
    longest = 0
    for i in range(begin, end):
        longest = max(longest, stops[i] - starts[i])
    return longest


@helper
def _corners(boxes: Boxes, position: int) -> tuple[float, float, float, float, float]:
    """Return x1, y1, x2, y2 and the area; the far corner of a box given by its size is x + w - pixel."""
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


#: The bytes of a pair in what `box_candidates` returns: its overlap, float64, and its ground truth, int32.
_PAIR = 12


@kernel
def _grown(packed: Array, used: int, needed: int) -> Array:
    """Return room for more pairs, which begins with the `used` pairs of this one."""
    room = packed.shape[0] // _PAIR
    more = max(needed, 2 * room)
    grown = np.empty(_PAIR * more, np.uint8)
    iou, found = packed[: 8 * room].view(np.float64), packed[8 * room :].view(np.int32)
    more_iou, more_found = grown[: 8 * more].view(np.float64), grown[8 * more :].view(np.int32)
    for i in range(used):  # a slice would compile its error message too, for a second and more
        more_iou[i], more_found[i] = iou[i], found[i]
    return grown


@helper
def _sort_by_left(keys: Array, names: Array, count: int) -> None:
    """Heapsort `keys`, and `names` along with them: numpy's sorts take longer to compile than all else in this file."""
    for end in range(2 * count - 1, 0, -1):
        if end >= count:  # first make a heap, from the last parent up
            root, size = end - count, count
        else:  # then move its largest key behind it
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


@kernel
def _place(boxes: Boxes, start: int, count: int, by_left: bool, out: Array, names: Array) -> None:
    """Write the corners and areas of a cell's boxes, and which is which: in their order, or by their left edge."""
    for i in range(count):
        names[i] = i
    if by_left:
        keys = np.empty(count)
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
    """Sweep on to `x1`: how many objects are live there, which is the next to enter, and which the first beyond `x2`.

    The first `live` of `active` are joined by those from `entered` on that begin at `x1` or before, and left by those that
    end before it.
    """
    while entered < objects and right[entered, 0] <= x1:
        active[live] = entered
        live += 1
        entered += 1
    kept = 0
    for i in range(live):
        if right[active[i], 2] - x1 + pixel > 0.0:  # else no later detection meets it either
            active[kept] = active[i]
            kept += 1
    beyond = entered
    while beyond < objects and not x2 - right[beyond, 0] + pixel <= 0.0:
        beyond += 1
    return kept, entered, beyond


class Compared(NamedTuple):
    """A cell's ground truth: ``boxes`` as x1, y1, x2, y2 and area; how often its own area counts in the union (``weights``),
    0 times for a crowd, else once; and which is which (``names``).
    """

    boxes: Array
    weights: Array
    names: Array


@innermost
def _overlap(box: tuple[float, ...], truth: Compared, g: int, pixel: float, bounds: bool, hopeless: float) -> Any:
    """Return the overlap of a box, as `_corners` returns it, with an object; -inf where it is less than `hopeless`.

    With `bounds` it is the largest that the shapes within the boxes may have, and NaN where an area is unknown.
    """
    x1, y1, x2, y2, area = box
    height = max(min(y2, truth.boxes[g, 3]) - max(y1, truth.boxes[g, 1]) + pixel, 0.0)
    width = max(min(x2, truth.boxes[g, 2]) - max(x1, truth.boxes[g, 0]) + pixel, 0.0)
    inter = width * height
    if bounds:  # of an area that is NaN no number is the lesser
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
    out: Any,
) -> int:
    """Compare detections with all objects of their cell: these are few, or all pairs are wanted. Return where pairs end.

    `run` has the positions where the detections begin and stop; `least` the lowest overlap, and what is rejected without a
    division; `out` what is written, as in `box_candidates`: from `row` on where pairs begin and end, from `used` on pairs.
    """
    runs, found, iou = out
    bounds = boxes.areas.shape[0] > 0
    for i in range(run[1] - run[0]):
        box = _corners(boxes, run[0] + i)
        if bounds:
            box = box[0], box[1], box[2], box[3], boxes.areas[boxes.order[run[0] + i]]
        runs.first[row + i] = used
        for g in range(objects):
            value = _overlap(box, truth, g, boxes.pixel, bounds, least[1])
            if value >= least[0] or (bounds and np.isnan(value)):  # of an unknown area nothing is known
                found[used], iou[used] = g, value
                used += 1
        runs.last[row + i] = used
    return used


@kernel
def box_candidates(
    cells: Cells, detections: Boxes, ground_truth: Boxes, wanted: Wanted, begin: int, end: int, stop: Array, out: Runs
) -> Array:
    """Find the candidates of cells ``[begin, end)``: every pair whose overlap is at least ``wanted.lowest``.

    The overlap is intersection over union, or over the detection's own area where the ground truth is a crowd. In a
    crowded cell both sides are sorted by their left edge and swept: a detection is compared with the ground truth that it
    meets along x, and with no other. Where the lowest overlap is 0 or less pairs that do not touch count too, and all are
    compared. Where boxes are around shapes of known areas, the overlap is the largest that these can have: they share no
    more than their boxes do, and no more than the smaller one has. Once `stop` is set the rest is left undone.

    Written are the first columns of `Candidates`; returned are the others, one after the other, as bytes: see `candidates`,
    which calls this.
    """
    most = longest_run(cells.detection_starts, cells.detection_stops, begin, end)
    widest = longest_run(cells.ground_truth_starts, cells.ground_truth_stops, begin, end)
    lowest, room = wanted.lowest, out.first.shape[0] + 16
    packed = np.empty(_PAIR * room, np.uint8)
    iou, found = packed[: 8 * room].view(np.float64), packed[8 * room :].view(np.int32)
    left, left_names = np.empty((most, 5)), np.empty(most, np.int64)  # the cell's detections: x1, y1, x2, y2, area
    right, right_names, right_weights = np.empty((widest, 5)), np.empty(widest, np.int64), np.empty(widest)
    truth = Compared(right, right_weights, right_names)
    active = np.empty(widest, np.int64)  # what the sweep has reached and not yet left behind
    pixel, bounds = detections.pixel, detections.areas.shape[0] > 0
    # Cheap rejection of most pairs: compare the intersection with the union times the lowest overlap instead of dividing.
    # The factor leaves a margin for rounding; where the lowest overlap is too small for one nothing is rejected so.
    hopeless = lowest * (1.0 - 1e-6) if lowest > 1e-300 else 0.0
    used, row = np.int64(0), 0  # of a plain 0 `_grown` would be compiled a second time, for the literal
    for c in range(begin, end):
        start = cells.ground_truth_starts[c]
        count, objects = cells.detection_stops[c] - cells.detection_starts[c], cells.ground_truth_stops[c] - start
        sweep = objects >= 8 and count * objects >= 512 and lowest > 0.0
        _place(ground_truth, start, objects, sweep, right, right_names)
        for g in range(objects):
            right_weights[g] = 0.0 if wanted.crowd[ground_truth.order[start + right_names[g]]] else 1.0
            if np.isnan(right[g, 4]):  # unknown, which a crowd's weight of 0 would hide
                right_weights[g] = np.nan
        if stop[0]:
            return packed
        if not sweep:
            if used + count * objects > room:
                packed = _grown(packed, used, used + count * objects)
                room = packed.shape[0] // _PAIR
                iou, found = packed[: 8 * room].view(np.float64), packed[8 * room :].view(np.int32)
            run, pairs = (cells.detection_starts[c], cells.detection_stops[c]), (out, found, iou)
            used = _compare_all(detections, run, truth, objects, (lowest, hopeless), row, used, pairs)
            row += count
            continue
        _place(detections, cells.detection_starts[c], count, True, left, left_names)
        live, entered = 0, 0
        for at in range(count):
            if stop[0]:
                return packed
            box = left[at, 0], left[at, 1], left[at, 2], left[at, 3], left[at, 4]
            live, entered, beyond = _swept(right, objects, active, live, entered, box[0], box[2], pixel)
            met = live + beyond - entered
            if used + met > room:
                packed = _grown(packed, used, used + met)
                room = packed.shape[0] // _PAIR
                iou, found = packed[: 8 * room].view(np.float64), packed[8 * room :].view(np.int32)
            d = row + left_names[at]
            out.first[d] = used
            for i in range(met):
                g = active[i] if i < live else entered + i - live
                value = _overlap(box, truth, g, pixel, bounds, hopeless)
                if value >= lowest or (bounds and np.isnan(value)):
                    found[used], iou[used] = right_names[g], value
                    used += 1
            out.last[d] = used
        row += count
    return packed


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
    """Return what `box_candidates` finds in cells ``[begin, end)``."""
    rows = int((cells.detection_stops[begin:end] - cells.detection_starts[begin:end]).sum())
    first, last = np.empty(rows, np.int64), np.empty(rows, np.int64)
    wanted, runs = Wanted(crowd, lowest), Runs(first, last)
    packed = box_candidates(cells, detections, ground_truth, wanted, begin, end, stop, runs)
    middle = packed.size // _PAIR * 8
    return Candidates(first, last, packed[middle:].view(np.int32), packed[:middle].view(np.float64))
