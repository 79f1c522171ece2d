"""Rasterise polygons to runs as pycocotools does, from the points where outlines cross the centre lines of columns.

Vertices are rounded to fifths of a pixel. The centre of column c lies between the fifths 5c + 2 and 5c + 3. Where the
outline steps between these two fifths, it crosses the centre line at the row of the upper point. Each crossing toggles
between outside and inside for all pixels after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel

Array = NDArray[Any]

#: Maximum absolute coordinate of a vertex in fifths of a pixel, so that differences fit into 32 bits.
FIFTHS_LIMIT = 2**30

#: Maximum absolute coordinate, in fifths, for which the sums in `_down` are exact enough to round to the right fifth.
_EXACT = 2**20

#: Maximum row or column of a vertex.
_BEYOND = 2**28

#: Number of crossings of an edge computed at a time, in vector instructions.
_LANES = 8


@innermost
def _column(fifth: int, width: int) -> Any:
    """Return the number of the image's columns whose centre is left of the x coordinate `fifth`."""
    # The operand of floor is at least 0.1 away from any integer, so its rounding error does not matter.
    return min(max(np.int32(np.floor((np.float64(fifth) + 2.5) * 0.2)), np.int32(0)), np.int32(min(width, _BEYOND)))


@innermost
def _fifth(value: float) -> Any:
    return np.int32(5.0 * value + 0.5)  # truncates towards zero, as in C


@helper
def _count_crossings(points: Array, span: Array) -> Any:
    """Return the number of crossings of a polygon; -1 if a vertex is NaN or too far away."""
    first, stop, width = span[0], span[1], span[3]
    near, count = True, np.int64(0)
    for p in range(first, stop):
        x, y = points[np.uint64(p), 0], points[np.uint64(p), 1]
        near &= (abs(x) < FIFTHS_LIMIT // 5) & (abs(y) < FIFTHS_LIMIT // 5)
    if not near:
        return np.int64(-1)
    if first < stop:
        before = _column(_fifth(points[stop - 1, 0]), width)
        for p in range(first, stop):
            column = _column(_fifth(points[np.uint64(p), 0]), width)
            count += np.int64(abs(column - before))
            before = column
    return count


@kernel
def count_crossings(points: Array, spans: Array, begin: int, end: int, out: Array) -> None:
    """Write the number of crossings of polygons ``[begin, end)``; -1 if a vertex is NaN or too far away.

    Polygon *i* has the vertices ``points[spans[i, 0]:spans[i, 1]]`` (x, y) and an image of height ``spans[i, 2]`` and width
    ``spans[i, 3]``.
    """
    for i in range(begin, end):
        out[i] = _count_crossings(points, spans[i])


@helper
def _vertices(points: Array, span: Array, out: Array) -> Any:
    """Write x and y of each vertex in fifths, and the number of columns whose centre is left of the vertex. Return the
    minimum and maximum of these numbers of columns, and whether no coordinate exceeds `_EXACT`.
    """
    least, most, exact = np.int32(min(span[3], _BEYOND)), np.int32(0), True
    first = span[0]
    for p in range(span[1] - first):
        x, y = _fifth(points[np.uint64(first + p), 0]), _fifth(points[np.uint64(first + p), 1])
        column = _column(x, span[3])
        exact &= (abs(x) < _EXACT) & (abs(y) < _EXACT)
        least, most = min(least, column), max(most, column)
        k = np.uint64(p)
        out[0, k], out[1, k], out[2, k] = x, y, column
    return np.int64(least), np.int64(most), exact


@innermost
def _row(fifth: float, height: float) -> Any:
    """Return the first row whose centre lies at or below the y coordinate `fifth`, from 0 to `height`."""
    row = (fifth + 2.5) * 0.2
    row = row if row > 0.0 else 0.0
    return np.int32(row if row < height else height)


@helper
def _along(x: float, y: float, slope: float, columns: Any, height: float, rows: Array, at: int) -> None:
    """Write, from ``rows[at]`` on, the rows at which an edge crosses the centres of columns. The edge begins at (x, y)
    and is longer along x than along y. `columns` holds the centre of the first column in fifths, the step to the next
    centre, and the number of columns. Rows are written in blocks of `_LANES`, the last block padded.
    """
    centre, step, count = columns
    ahead = centre - x + (slope < 0)
    while count > 0:
        # The count equals `_LANES`, in a form that the compiler cannot evaluate; given a constant, it would unroll the
        # loop instead of vectorising.
        for k in range((min(count, _LANES) + _LANES - 1) & _LANES):
            # one instruction for all lanes
            fifth = np.floor(y + slope * (ahead + step * np.float64(np.int32(k))) + 0.5)
            rows[np.uint64(at + k)] = _row(fifth, height)
        ahead, at, count = ahead + step * _LANES, at + _LANES, count - _LANES


@helper
def _down(x: float, y: float, slope: float, columns: Any, height: float, rows: Array, at: int) -> None:
    """Write rows as `_along` does, but for an edge that is longer along y; `slope` is dx / dy, and no coordinate exceeds
    `_EXACT`.

    The slope is at least 2**-21. Rounding errors of the point where the line meets a centre are therefore far smaller
    than a step. The first step after the centre is therefore the step nearest to the computed point, or the next step.
    """
    centre, step, count = columns
    ahead = centre - x + 0.5
    inverse, rising = 1.0 / slope, slope > 0
    while count > 0:
        for k in range((min(count, _LANES) + _LANES - 1) & _LANES):  # the count is written as in `_along`
            to = ahead + step * np.float64(np.int32(k))
            t = np.floor(inverse * to + 0.5)
            behind = (x + slope * t + 0.5 >= to + x + 0.5) == rising
            rows[np.uint64(at + k)] = _row(y + t - np.float64(behind), height)
        ahead, at, count = ahead + step * _LANES, at + _LANES, count - _LANES


@helper
def _far_down(edge: Any, columns: Any, height: float, rows: Array, at: int) -> None:
    """Write rows as `_down` does, but for coordinates of any size. `edge` holds x and y of the upper vertex, the slope,
    the length along y, and whether the edge leads upwards.

    If a single step skips the centre of a column because of rounding, the row is 0. Only edges of millions of pixels
    can skip a centre. Compared numbers stay unrounded, because rounding would not change the result.
    """
    x, y, slope, down, back = edge
    centre, step, count = columns
    inverse, rising = 1.0 / slope, slope > 0
    for k in range(count):
        # a first guess, nearly always right; the search from it is exact
        t = min(max(int((centre + 0.5 - x) * inverse) + 1, 1), down)
        old, new = x + slope * (t - 1) + 0.5, x + slope * t + 0.5
        while t > 1 and (old >= centre + 1.0) == rising:
            t -= 1
            old, new = x + slope * (t - 1) + 0.5, old
        while (new >= centre + 1.0) != rising:
            t += 1
            old, new = new, x + slope * t + 0.5
        near, far = (old, new) if rising else (new, old)
        met = far < centre + 2.0 if rising != back else near >= centre
        rows[at + k] = _row(y + t - 1.0 if met else -1.0, height)
        centre += step


@helper
def _crossings(vertices: Array, count: int, start: int, height: float, exact: bool, rows: Array) -> Any:
    """Write the rows of a polygon's crossings in the order of the outline from vertex `start`; return their number."""
    at, p = np.int64(0), start
    x, y, column = np.int64(vertices[0, start]), np.int64(vertices[1, start]), np.int64(vertices[2, start])
    for _ in range(count):
        p = p + 1 if p + 1 < count else 0
        k = np.uint64(p)
        next_x, next_y, next_column = np.int64(vertices[0, k]), np.int64(vertices[1, k]), np.int64(vertices[2, k])
        across, down, crossed = next_x - x, next_y - y, abs(next_column - column)
        if crossed:
            right = next_column > column
            columns = (5.0 * (column if right else column - 1) + 2.0, 5.0 if right else -5.0, crossed)
            steep = abs(across) < abs(down)
            back = down < 0 if steep else across < 0
            from_x, from_y = np.float64(next_x if back else x), np.float64(next_y if back else y)
            if not steep:
                _along(from_x, from_y, float(down) / float(across), columns, height, rows, at)
            elif exact:
                _down(from_x, from_y, float(across) / float(down), columns, height, rows, at)
            else:
                edge = (from_x, from_y, float(across) / float(down), abs(down), back)
                _far_down(edge, columns, height, rows, at)
            at += crossed
        x, y, column = next_x, next_y, next_column
    return at


@innermost
def _write_run(ends: Array, m: int, behind: int, begin: int, end: int) -> Any:
    """Write a run of foreground, or extend the last one if it ends at `begin`; return the end of the runs."""
    if begin == behind:
        m -= 2
    else:
        ends[np.uint64(m)] = begin
    ends[np.uint64(m + 1)] = end
    return m + 2


@helper
def _write_simple(rows: Array, left: int, columns: int, height: int, out_ends: Array, at: int) -> Any:
    """Write the runs of an outline that crosses each of its columns twice; return the end of the output, and the pixel
    after the last run.
    """
    m, behind, base = at, np.int64(-1), left * height
    for c in range(columns):
        one, other = rows[np.uint64(c)], rows[np.uint64(2 * columns - 1 - c)]
        if one != other:
            m = _write_run(out_ends, m, behind, base + min(one, other), base + max(one, other))
            behind = base + max(one, other)
        base += height
    return m, behind


@helper
def _sort_by_column(vertices: Array, count: int, start: int, left: int, rows: Array, starts: Array, out: Array) -> None:
    """Sort the output of `_crossings` by column and row: the rows of column ``left + c`` are ``out[starts[c]:starts[c +
    1]]``.
    """
    columns = len(starts) - 2
    for c in range(len(starts)):
        starts[c] = 0
    column, at = np.int64(vertices[2, start]), np.int64(0)
    for placing in range(2):  # count, then place
        for p in range(start + 1, start + 1 + count):
            there = np.int64(vertices[2, p if p < count else p - count])
            while column != there:
                right = column < there
                c = np.uint64((column if right else column - 1) - left + 1)
                if placing:
                    out[np.uint64(starts[c])] = rows[np.uint64(at)]
                    at += 1
                    starts[c] += 1
                else:
                    starts[c + np.uint64(1)] += 1
                column += 1 if right else -1
        if not placing:
            for c in range(2, columns + 2):
                starts[c] += starts[c - 1]
    for c in range(columns):
        gap = 1
        while 3 * gap < starts[c + 1] - starts[c]:  # for two crossings, as in nearly all columns, the gap is 1
            gap = 3 * gap + 1
        while gap > 0:  # Shell's sort
            for k in range(starts[c] + gap, starts[c + 1]):
                row, place = out[k], k
                while place >= starts[c] + gap and out[place - gap] > row:
                    out[place] = out[place - gap]
                    place -= gap
                out[place] = row
            gap //= 3


@helper
def _write_sorted(rows: Array, starts: Array, left: int, height: int, out_ends: Array, at: int) -> Any:
    """Write runs as `_write_simple` does, for any outline, from crossings that are sorted by column and row."""
    m, behind = at, np.int64(-1)
    for c in range(len(starts) - 2):
        base = (left + c) * height
        for k in range(starts[c], starts[c + 1], 2):  # a closed outline crosses each column an even number of times
            begin, end = base + rows[np.uint64(k)], base + rows[np.uint64(k + 1)]
            if begin != end:
                m = _write_run(out_ends, m, behind, begin, end)
                behind = end
    return m, behind


@helper
def _draw(
    points: Array, span: Array, vertices: Array, rows: Array, ordered: Array, starts: Array, out_ends: Array, at: int
) -> Any:
    """Write the ends of a polygon's mask from ``out_ends[at]``, and return their end. `vertices` has room for three
    numbers per vertex, (3, n) int32. For c crossings, `ordered` and `rows`, both int32, have room for c and ``c +
    _LANES`` numbers, `starts` for c + 2, and `out_ends` for c + 1.
    """
    count, height, width = span[1] - span[0], span[2], span[3]
    left, right, exact = _vertices(points, span, vertices)
    columns, m, behind = right - left, at, np.int64(-1)
    if columns > 0:
        start = 0
        while vertices[2, start] != left:
            start += 1
        total = _crossings(vertices, count, start, float(min(height, _BEYOND)), exact, rows)
        if total == 2 * columns:
            m, behind = _write_simple(rows, left, columns, height, out_ends, at)
        else:
            _sort_by_column(vertices, count, start, left, rows, starts[: columns + 2], ordered)
            m, behind = _write_sorted(ordered, starts[: columns + 2], left, height, out_ends, at)
    if behind != height * width:
        out_ends[m] = height * width
        m += 1
    return m


@kernel
def draw_polygons(points: Array, spans: Array, begin: int, end: int, out_ends: Array, out_spans: Array) -> None:
    """Write the masks of polygons ``[begin, end)`` into ``out_ends``; mask *i* begins at ``out_spans[i, 0]``. Polygons are
    given as for `count_crossings`.

    Each mask needs room for one run more than its polygon has crossings. Before the call ``out_spans[i, 1]`` is the end of
    this room; the kernel replaces it by the end of the mask.
    """
    most, longest = np.int64(0), np.int64(0)
    for i in range(begin, end):
        most = max(most, out_spans[i, 1] - out_spans[i, 0])
        longest = max(longest, spans[i, 1] - spans[i, 0])
    vertices, rows = np.empty((3, longest), np.int32), np.empty(most + _LANES, np.int32)
    ordered, starts = np.empty(most, np.int32), np.empty(most + 2, np.int64)
    for i in range(begin, end):
        out_spans[i, 1] = _draw(points, spans[i], vertices, rows, ordered, starts, out_ends, out_spans[i, 0])
