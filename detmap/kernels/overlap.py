"""How much do two shapes overlap: for each detection the short list of ground truth that it overlaps enough.

A cell is one (category, image) that holds both detections and ground truth. A kernel here turns cells into candidates,
and `detmap.kernels.matching` reads nothing else, so that any other shape needs one more kernel here and nothing there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

Array = NDArray[Any]


class Cells(NamedTuple):
    """Where each cell's detections and ground truth lie in their (category, image) order; int64, shape (c,) each."""

    detection_starts: Array
    detection_stops: Array
    ground_truth_starts: Array
    ground_truth_stops: Array


class Boxes(NamedTuple):
    """Boxes by position: the box at position *p* is ``coordinates[order[p]]``.

    ``sizes`` says that columns 2 and 3 are width and height rather than the far corner. ``pixel`` is 1.0 where corners are
    inclusive pixels and 0.0 where they are points.
    """

    coordinates: Array
    order: Array
    sizes: bool
    pixel: float


class Candidates(NamedTuple):
    """The ground truth that may match, for the detections of a block of cells, one after the other.

    Detection *r* of the block has ``ground_truth[first[r]:last[r]]``, ascending positions within its cell, and their
    overlaps ``iou[first[r]:last[r]]``.
    """

    first: Array
    last: Array
    ground_truth: Array
    iou: Array


@kernel
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


@kernel
def _grow(array: Array, used: int, needed: int) -> Array:
    if needed <= array.shape[0]:
        return array
    grown = np.empty(max(needed, 2 * array.shape[0]), array.dtype)
    grown[:used] = array[:used]
    return grown


@kernel
def _place(boxes: Boxes, start: int, count: int, out: Array) -> None:
    for i in range(count):
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = _corners(boxes, start + i)


@kernel
def box_candidates(
    cells: Cells, detections: Boxes, ground_truth: Boxes, crowd: Array, lowest: float, begin: int, end: int
) -> Candidates:
    """Return the candidates of cells ``[begin, end)``: every pair whose overlap is at least `lowest`.

    The overlap is intersection over union, or over the detection's own area where the ground truth is a `crowd` (by
    record). In a crowded cell both sides are sorted by their left edge and swept: a detection is compared with the ground
    truth that it meets along x, and with no other. Where `lowest` is 0 or less pairs that do not touch count too, and all
    are compared.
    """
    rows, most, widest = 0, 0, 0
    for c in range(begin, end):
        rows += cells.detection_stops[c] - cells.detection_starts[c]
        most = max(most, cells.detection_stops[c] - cells.detection_starts[c])
        widest = max(widest, cells.ground_truth_stops[c] - cells.ground_truth_starts[c])
    first = np.empty(rows, np.int64)
    last = np.empty(rows, np.int64)
    found = np.empty(rows + 16, np.int32)
    iou = np.empty(rows + 16, np.float64)
    left = np.empty((most, 5))  # x1, y1, x2, y2, area of the cell's detections
    right = np.empty((widest, 5))  # and of its ground truth
    active = np.empty(widest, np.int64)  # the ground truth that the sweep has reached and not yet left behind
    meets = np.arange(widest)
    pixel = detections.pixel
    used, row = 0, 0
    for c in range(begin, end):
        start = cells.ground_truth_starts[c]
        count, objects = cells.detection_stops[c] - cells.detection_starts[c], cells.ground_truth_stops[c] - start
        _place(detections, cells.detection_starts[c], count, left)
        _place(ground_truth, start, objects, right)
        sweep = objects >= 8 and count * objects >= 512 and lowest > 0.0
        if sweep:
            by_left = np.argsort(left[:count, 0])
            entering = np.argsort(right[:objects, 0])
        else:
            by_left = entering = meets[:0]
            for g in range(objects):
                meets[g] = g
        live, entered = 0, 0
        for at in range(count):
            d = by_left[at] if sweep else at
            x1, y1, x2, y2, area = left[d, 0], left[d, 1], left[d, 2], left[d, 3], left[d, 4]
            met = objects
            if sweep:
                while entered < objects and right[entering[entered], 0] <= x1:
                    active[live] = entering[entered]
                    live += 1
                    entered += 1
                met, kept = 0, 0
                for i in range(live):
                    g = active[i]
                    if right[g, 2] - x1 + pixel > 0.0:  # else no later detection meets it either
                        active[kept] = g
                        kept += 1
                        meets[met] = g
                        met += 1
                live = kept
                for i in range(entered, objects):
                    if x2 - right[entering[i], 0] + pixel <= 0.0:
                        break
                    meets[met] = entering[i]
                    met += 1
            found, iou = _grow(found, used, used + met), _grow(iou, used, used + met)
            first[row + d] = used
            for i in range(met):
                g = meets[i]
                height = min(y2, right[g, 3]) - max(y1, right[g, 1]) + pixel
                width = min(x2, right[g, 2]) - max(x1, right[g, 0]) + pixel
                value = 0.0
                if height > 0.0 and width > 0.0:
                    inter = width * height
                    value = inter / (area if crowd[ground_truth.order[start + g]] else area + right[g, 4] - inter)
                if not value >= lowest:  # nor is it where areas vanished and 0 / 0 came out
                    continue
                j = used  # candidates of a detection stand in the order of the ground truth, which the sweep loses
                while j > first[row + d] and found[j - 1] > g:
                    found[j], iou[j] = found[j - 1], iou[j - 1]
                    j -= 1
                found[j], iou[j] = g, value
                used += 1
            last[row + d] = used
        row += count
    return Candidates(first, last, found[:used], iou[:used])
