"""The boundary of masks: the pixels of a mask that lie within some distance of its contour.

Masks are stored as runs, as in `detmap.kernels.masks`. A pixel of a mask that is not boundary is called deep. Deep
pixels are stored as bits, by column, in words of 64 rows. A pixel is deep along y if at least `distance` pixels above
it and below it belong to its run. A pixel is deep if this pixel and the next `distance` pixels to its left and to its
right are deep along y.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.masks import _first_behind
from detmap.kernels.words import ALL, NOTHING, _lowest_bit

Array = NDArray[Any]

#: Approximate number of words of 64 pixels that are processed at a time, to limit memory.
_WORDS = 1 << 16


@helper
def _add_run(start: int, end: int, first: int, m: int, out: Array) -> int:
    """Append a foreground run to the mask ``out[first:m]``, unless the run is empty; return the mask's new end."""
    if start >= end:
        return m
    if m > first and np.int64(out[m - 1]) == start:
        out[m - 1] = end
        return m
    out[m], out[m + 1] = start, end
    return m + 2


@helper
def _add_pixels(ends: Array, span: Array, begin: int, end: int, first: int, m: int, out: Array) -> int:
    """Append the foreground of a mask from pixel `begin` up to `end`, as `_add_run` does."""
    for k in range(_first_behind(ends, span[0], span[1], begin), span[1], 2):
        start = np.int64(ends[k - 1])
        if start >= end:
            break
        m = _add_run(max(start, begin), min(np.int64(ends[k]), end), first, m, out)
    return m


@helper
def _extent(ends: Array, span: Array) -> Any:
    """Return the begin and end of the columns with foreground, then of the rows with foreground; zeros if there are none."""
    height, low = span[2], np.int64(0)
    left, right, top, bottom = np.int64(-1), np.int64(0), height, np.int64(0)
    for k in range(span[0] + 1, span[1], 2):
        start, end = np.int64(ends[k - 1]), np.int64(ends[k])
        if start >= end:
            continue
        if start - low >= height:  # most runs begin in the column of the previous run, or in the next one
            low += height if start - low < 2 * height else (start - low) // height * height
        if left < 0:
            left = low // height
        inside = end - low <= height
        top, bottom = min(top, start - low if inside else 0), max(bottom, end - low if inside else height)
        right = end
    if left < 0:
        return np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    return left, (right - 1) // height + 1, top, bottom


@helper
def _set_bits(words: Array, at: int, begin: int, end: int) -> None:
    """Set the bits ``[begin, end)``, counted from the lowest bit of ``words[at]``."""
    if begin < end:
        first, last = at + (begin >> 6), at + ((end - 1) >> 6)
        low, high = ALL << np.uint64(begin & 63), ALL >> np.uint64(63 - ((end - 1) & 63))
        if first == last:
            words[first] |= low & high
        else:
            words[first] |= low
            for w in range(first + 1, last):
                words[w] = ALL
            words[last] |= high


@helper
def _deep_rows(
    ends: Array, span: Array, column: int, columns: int, top: int, size: int, distance: int, out: Array
) -> None:
    """Set the bits of pixels that are deep along y, in `columns` columns from `column` on.

    A column has `size` words; bit *r* stands for the row ``top + r``.
    """
    for k in range(columns * size):
        out[k] = NOTHING
    height = span[2]
    low, at = column * height, 0
    begin, stop = low, low + columns * height
    for k in range(_first_behind(ends, span[0], span[1], begin), span[1], 2):
        start, end = max(np.int64(ends[k - 1]), begin), min(np.int64(ends[k]), stop)
        if start >= stop:
            break
        while start < end:
            while start - low >= height:
                low += height
                at += size
            behind = min(end, low + height)
            _set_bits(out, at, start - low - top + distance, behind - low - top - distance)
            start = behind


@helper
def _in_all(rows: Array, columns: int, size: int, reach: int) -> None:
    """Keep in each column only the bits that are set in all `reach` columns from that column on; the last ``reach - 1``
    columns become invalid.
    """
    common = 1
    while 2 * common <= reach:
        for k in range((columns - 2 * common + 1) * size):
            rows[k] &= rows[k + common * size]
        common *= 2
    for k in range((columns - reach + 1) * size):
        rows[k] &= rows[k + (reach - common) * size]


@helper
def _add_rest(start: int, end: int, base: int, rows: Array, at: int, first: int, m: int, out: Array) -> int:
    """Append the pixels of a run that are not deep. The run lies in one column. The words from ``rows[at]`` on mark its
    deep pixels; the first bit stands for the pixel `base`.
    """
    begin, row, stop, deep = start, start - base, end - base, False
    while row < stop:
        word = rows[at + (row >> 6)]
        word = (~word if deep else word) >> np.uint64(row & 63)
        if word == NOTHING:
            row = (row | 63) + 1
            continue
        row += _lowest_bit(word)
        if row >= stop:  # the row belongs to another run
            break
        if deep:
            begin = base + row
        else:
            m = _add_run(begin, base + row, first, m, out)
        deep = not deep
    return _add_run(begin, end, first, m, out)


@kernel
def boundary_runs(
    ends: Array, spans: Array, distances: Array, begin: int, end: int, out: Array, out_spans: Array
) -> int:
    """Write the boundaries of the masks ``[begin, end)``: pixels within a distance of background or of the image's edge.

    A distance is measured as the larger of the distances along x and y. `out` is filled from its beginning; the ends of
    mask *i* are ``out[out_spans[i, 0]:out_spans[i, 1]]``. Returns `end`, or the first mask *i* for which room may be
    lacking; the minimum room for mask *i* is written to ``out_spans[i, 1]``.
    """
    rows, used = np.empty(256, np.uint64), np.int64(0)
    for i in range(begin, end):
        span, distance, first = spans[i], distances[i], used
        height, reach = span[2], 2 * distance + 1
        left, right, top, bottom = _extent(ends, span)
        size, tallest = (bottom - top + 63) >> 6, bottom - top + 4
        # A mask whose foreground spans fewer than `reach` columns or rows has no deep pixels.
        if right - left < reach or bottom - top < reach:
            inner, outer = right, right
        else:
            inner, outer = left + distance, right - distance
        # Upper bound of the number of ends that are appended before the next check for room.
        most = span[1] - span[0] + tallest
        if used + most > out.shape[0]:
            out_spans[i, 1] = used + most - first
            return i
        used = _add_pixels(ends, span, left * height, inner * height, first, used, out)
        step = max(reach, _WORDS // max(size, 1))
        behind = span[0] + 1
        for column in range(inner, outer, step):
            columns = min(step, outer - column) + 2 * distance
            if columns * size > rows.shape[0]:
                rows = np.empty(columns * size, np.uint64)
            _deep_rows(ends, span, column - distance, columns, top, size, distance, rows)
            _in_all(rows, columns, size, reach)
            for c in range(columns - 2 * distance):
                low = (column + c) * height
                while behind < span[1] and np.int64(ends[behind]) <= low:
                    behind += 2
                if used + most > out.shape[0]:
                    out_spans[i, 1] = used + most - first
                    return i
                for k in range(behind, span[1], 2):
                    start = max(np.int64(ends[k - 1]), low)
                    if start >= low + height:
                        break
                    stop = min(np.int64(ends[k]), low + height)
                    used = _add_rest(start, stop, low + top, rows, c * size, first, used, out)
        if used + most > out.shape[0]:
            out_spans[i, 1] = used + most - first
            return i
        used = _add_pixels(ends, span, outer * height, right * height, first, used, out)
        if used == first or np.int64(out[used - 1]) < height * span[3]:
            out[used] = height * span[3]
            used += 1
        out_spans[i, 0], out_spans[i, 1] = first, used
    return end
