"""Overlaps of pairs of masks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.mask_strings import _FIVE, _TO_GROUPS
from detmap.kernels.masks import _first_behind, _iou_by_runs
from detmap.kernels.words import NOTHING, _word

Array = NDArray[Any]

#: In each of eight bytes, the bit that is set if a number continues in the next byte.
_CONTINUED = np.uint64(0x2020202020202020)

#: Number of pairs of runs that are compared at once.
_AT_ONCE = 8


class Masks(NamedTuple):
    """A column of masks.

    Mask *i* is stored as runs or as a compressed string. Its runs are ``ends[spans[i, 0]:spans[i, 1]]``, as in
    `detmap.kernels.masks`. If ``spans[i, 1]`` is negative, its string is ``text[spans[i, 0]:~spans[i, 1]]`` and is
    valid. ``spans[i, 2:]`` is its height and width. ``areas`` are float64; ``boxes`` are x, y, width, height;
    ``regular`` is as in `detmap.kernels.masks`.
    """

    text: Array
    ends: Array
    spans: Array
    areas: Array
    boxes: Array
    regular: Array


@helper
def _most_runs(masks: Masks, row: int) -> Any:
    stop = masks.spans[row, 1]
    return (~stop if stop < 0 else stop) - masks.spans[row, 0]


@helper
def _unpack(masks: Masks, row: int, out: Array, at: int) -> Any:
    """Write the ends of a mask's runs from ``out[at]`` on; return the end of the output."""
    p, stop = masks.spans[row, 0], masks.spans[row, 1]
    if stop >= 0:
        for m in range(stop - p):
            out[at + m] = masks.ends[p + m]
        return at + stop - p
    stop = ~stop
    m = at
    last, before, total = np.int64(0), np.int64(0), np.int64(0)
    singly = p + 3  # numbers before this position are read singly, later numbers eight at once
    while p < stop:
        if p >= singly and m > at + 2 and p + 8 <= stop:
            groups = _word(masks.text, p) + _TO_GROUPS
            if groups & _CONTINUED == NOTHING:
                for k in range(8):
                    value = (np.int64(groups >> np.uint64(8 * k) & _FIVE) ^ 16) - 16 + before
                    before, last = last, value
                    total += value
                    out[np.uint64(m + k)] = total
                p, m = p + 8, m + 8
                continue
            singly = p + 8
        c = np.int64(masks.text[np.uint64(p)]) - 48
        p += 1
        value = ((c & 31) ^ 16) - 16
        if c & 32:
            value, shift = c & 31, 5
            while c & 32:
                c = np.int64(masks.text[np.uint64(p)]) - 48
                p += 1
                value |= (((c & 31) ^ 16) - 16 if not c & 32 else c & 31) << shift
                shift += 5
        if m > at + 2:
            value += before
        before, last = last, value
        total += value
        out[m] = total
        m += 1
    return m


@kernel
def unpack(masks: Masks, rows: Array, begin: int, end: int, out_ends: Array, out_spans: Array) -> None:
    """Write the runs of mask ``rows[i]``, for *i* in ``[begin, end)``, to ``out_ends`` from ``out_spans[i, 0]`` on, and
    their end to ``out_spans[i, 1]``.
    """
    for i in range(begin, end):
        out_spans[i, 1] = _unpack(masks, rows[i], out_ends, out_spans[i, 0])


@innermost
def _shared_at_once(one: Array, a: int, other: Array, b: int) -> Any:
    """Compare `_AT_ONCE` pairs of runs: return whether every run ends before the next run of the other mask begins, and
    the number of pixels that the pairs share.
    """
    fine, shared = True, np.int64(0)
    for k in range(0, 2 * _AT_ONCE, 2):
        a_end, b_end = np.int64(one[np.uint64(a + k)]), np.int64(other[np.uint64(b + k)])
        inside = min(a_end, b_end) - max(np.int64(one[np.uint64(a + k - 1)]), np.int64(other[np.uint64(b + k - 1)]))
        shared += max(inside, 0)
        fine &= (a_end <= np.int64(other[np.uint64(b + k + 1)])) & (b_end <= np.int64(one[np.uint64(a + k + 1)]))
    return fine, shared


@helper
def _shared(one: Array, a_stop: int, other: Array, b_first: int, b_stop: int) -> Any:
    """Return how many pixels two regular masks share; the first mask has the runs ``one[:a_stop]``."""
    if a_stop < 2 or b_stop - b_first < 2:
        return 0
    start = max(one[0], other[b_first])
    a, b = _first_behind(one, 0, a_stop, start), _first_behind(other, b_first, b_stop, start)
    shared, singly = np.int64(0), a
    # A run is finished once the other mask's next run begins after its end. Usually one comparison finishes both runs
    # of a pair. Therefore `_AT_ONCE` pairs are compared in one step. The result of the step is used only if all runs
    # are finished.
    while a + 1 < a_stop and b + 1 < b_stop:
        if a >= singly and a + 2 * _AT_ONCE <= a_stop and b + 2 * _AT_ONCE <= b_stop:
            fine, several = _shared_at_once(one, a, other, b)
            if fine:
                shared, a, b = shared + several, a + 2 * _AT_ONCE, b + 2 * _AT_ONCE
                continue
            singly = a + 2 * _AT_ONCE
        a_end, b_end = np.int64(one[np.uint64(a)]), np.int64(other[np.uint64(b)])
        inside = min(a_end, b_end) - max(np.int64(one[np.uint64(a - 1)]), np.int64(other[np.uint64(b - 1)]))
        shared += max(inside, 0)
        a_next, b_next = np.int64(one[np.uint64(a + 1)]), np.int64(other[np.uint64(b + 1)])
        a += 2 * (a_end <= b_next)
        b += 2 * (b_end <= a_next)
    while a < a_stop and b < b_stop:  # one of the masks has no next run
        a_end, b_end = np.int64(one[a]), np.int64(other[b])
        inside = min(a_end, b_end) - max(np.int64(one[a - 1]), np.int64(other[b - 1]))
        shared += max(inside, 0)
        a += 2 * (a_end <= b_end)
        b += 2 * (b_end <= a_end)
    return shared


@helper
def _by_runs(ours: Array, count: int, ground_truth: Masks, g: int, area: int, spare: Array, spans: Array) -> Any:
    """Return the overlap of a pair with an irregular mask, by walking the runs as pycocotools does; `spare` has room
    for the runs of both masks.
    """
    for m in range(count):
        spare[m] = ours[m]
    spans[0, 0], spans[0, 1], spans[1, 0] = 0, count, count
    for m in range(ground_truth.spans[g, 0], ground_truth.spans[g, 1]):
        spare[count] = ground_truth.ends[m]
        count += 1
    spans[1, 1] = count
    return _iou_by_runs(spare, spans[0], spans[1], area)


@kernel
def mask_overlaps(
    detections: Masks,
    ground_truth: Masks,
    left: Array,
    right: Array,
    crowd: Array,
    stop: Array,
    out: Array,
) -> None:
    """Write the overlap of each pair of rows. The pairs of a detection must be consecutive.

    The overlap is 0 if boxes do not touch, -1 if the sizes of the images differ. The ground truth is not compressed.
    For a crowd, the intersection is divided by the detection's area. The kernel returns early once `stop` is set.
    """
    most, widest = 0, 0
    for i in range(len(left)):
        most = max(most, _most_runs(detections, left[i]))
        if not (detections.regular[left[i]] and ground_truth.regular[right[i]]):
            widest = max(widest, _most_runs(detections, left[i]) + _most_runs(ground_truth, right[i]))
    ours, spare, spans = np.empty(most, np.uint32), np.empty(widest, np.uint32), np.zeros((2, 4), np.int64)
    unpacked, count = np.int64(-1), 0
    for i in range(len(left)):
        if stop[0]:
            return
        d, g = left[i], right[i]
        out[i] = 0.0
        width = min(
            detections.boxes[d, 0] + detections.boxes[d, 2], ground_truth.boxes[g, 0] + ground_truth.boxes[g, 2]
        ) - max(detections.boxes[d, 0], ground_truth.boxes[g, 0])
        height = min(
            detections.boxes[d, 1] + detections.boxes[d, 3], ground_truth.boxes[g, 1] + ground_truth.boxes[g, 3]
        ) - max(detections.boxes[d, 1], ground_truth.boxes[g, 1])
        if width <= 0.0 or height <= 0.0:
            continue
        if detections.spans[d, 2] != ground_truth.spans[g, 2] or detections.spans[d, 3] != ground_truth.spans[g, 3]:
            out[i] = -1.0
            continue
        if unpacked != d:
            count, unpacked = _unpack(detections, d, ours, 0), d
        own = detections.areas[d]
        if detections.regular[d] and ground_truth.regular[g]:
            shared = float(_shared(ours, count, ground_truth.ends, ground_truth.spans[g, 0], ground_truth.spans[g, 1]))
            if shared > 0.0:
                out[i] = shared / (own if crowd[i] else own + ground_truth.areas[g] - shared)
        else:
            out[i] = _by_runs(ours, count, ground_truth, g, np.int64(own) if crowd[i] else -1, spare, spans)
