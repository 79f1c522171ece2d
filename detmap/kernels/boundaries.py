"""The boundary of masks: the pixels of a mask that lie within some distance of its contour.

Masks are runs, as in `detmap.kernels.masks`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel

Array = NDArray[Any]


@helper
def _add_run(start: int, end: int, m: int, first: int, out: Array) -> int:
    """Write a foreground run behind the `m` ends from `first`, or only count it where `out` is empty; return how many."""
    if out.shape[0] == 0:
        return m + 2
    if m and out[first + m - 1] == start:
        out[first + m - 1] = end
        return m
    out[first + m], out[first + m + 1] = start, end
    return m + 2


@helper
def _column_boundary(start: int, end: int, inner: Array, distance: int, m: int, first: int, out: Array) -> int:
    """Add what is boundary of a foreground run within a column: where fewer than 2d + 1 columns are `inner`."""
    offset = start - start % inner.shape[0]
    begin = -1
    for p in range(start, end):
        if inner[p - offset] > 2 * distance:
            if begin >= 0:
                m = _add_run(begin, p, m, first, out)
            begin = -1
        elif begin < 0:
            begin = p
    if begin >= 0:
        m = _add_run(begin, end, m, first, out)
    return m


@helper
def _shrink(ends: Array, span: Array, m: int, column: int, distance: int, inner: Array) -> int:
    """Count, for each row, the columns up to this one in which the row is deeper inside than `distance`.

    `m` is the first foreground run that does not end in front of the column; returned for the next one.
    """
    low, height, at = column * span[2], span[2], 0
    while m < span[1] and ends[m] <= low:
        m += 2
    for k in range(m, span[1], 2):
        start, end = max(np.int64(ends[k - 1]) - low, 0), min(np.int64(ends[k]) - low, height)
        if start >= height:
            break
        for row in range(at, min(start + distance, height)):
            inner[row] = 0
        for row in range(start + distance, end - distance):
            inner[row] += 1
        at = max(start + distance, end - distance)
    for row in range(at, height):
        inner[row] = 0
    return m


@kernel
def boundary_runs(
    ends: Array, spans: Array, distances: Array, begin: int, end: int, out_ends: Array, out_spans: Array
) -> None:
    """Write the boundaries of the masks ``[begin, end)``: pixels within a distance of background or of the image's edge.

    Distances are the larger of those along x and y. Mask *i* is written from ``out_spans[i, 0]`` up to ``out_spans[i, 1]``;
    where `out_ends` is empty, only the room that it needs is written to ``out_spans[i, 1]``.
    """
    for i in range(begin, end):
        span, distance = spans[i], distances[i]
        height, total, first = span[2], span[2] * span[3], out_spans[i, 0]
        inner = np.zeros(height, np.int64)
        count, ahead, behind = 0, span[0] + 1, span[0] + 1
        left = np.int64(ends[span[0]]) // height  # the first column with foreground, and the one behind the last
        right = (
            (np.int64(ends[span[0] + (span[1] - span[0]) // 2 * 2 - 1]) - 1) // height + 1 if ahead < span[1] else left
        )
        for column in range(left - distance, right):
            if column + distance < right:
                ahead = _shrink(ends, span, ahead, column + distance, distance, inner)
            else:
                inner[:] = 0
            low = column * height
            if column < left:
                continue
            while behind < span[1] and ends[behind] <= low:
                behind += 2
            for m in range(behind, span[1], 2):
                start, stop = max(np.int64(ends[m - 1]), low), min(np.int64(ends[m]), low + height)
                if start >= low + height:
                    break
                count = _column_boundary(start, stop, inner, distance, count, first, out_ends)
        if out_ends.shape[0] and (count == 0 or np.int64(out_ends[first + count - 1]) < total):
            out_ends[first + count] = total
            count += 1
        out_spans[i, 1] = first + count + (out_ends.shape[0] == 0)
