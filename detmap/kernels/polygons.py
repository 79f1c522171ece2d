"""Polygons as runs, as pycocotools draws them: on a grid five times as fine, by the crossings of the columns' centres.

Vertices are rounded to fifths of a pixel. Where the outline steps from fifth 5c + 2 to 5c + 3, or back, it crosses the
centre of column c, at the row of the upper one of the two points. Each crossing turns inside to outside
for all pixels that follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel

Array = NDArray[Any]

#: Vertices beyond this many fifths of a pixel are not drawn: differences must fit into 32 bits.
FIFTHS_LIMIT = 2**30


@helper
def _fifths(value: float) -> int:
    return int(5.0 * value + 0.5)  # towards zero, as in C


@helper
def _first_column(low: int) -> int:
    """Return the first column, from 0, whose centre lies at or behind `low` (in fifths)."""
    return max(-((2 - low) // 5), 0)


@helper
def _last_column(high: int, width: int) -> int:
    """Return the last column of the image whose centre lies in front of `high` (in fifths)."""
    return min((high - 3) // 5, width - 1)


@helper
def _most_crossings(points: Array, span: Array) -> Any:
    """Return how many crossings a polygon has at most; -1: a vertex is no number or too far."""
    if span[0] >= span[1]:
        return np.int64(0)
    count, before = np.int64(0), np.int64(0)
    for p in range(span[0] - 1, span[1]):  # the edge from the last vertex to the first one is the first
        at = p if p >= span[0] else span[1] - 1
        if not (abs(points[at, 0]) < FIFTHS_LIMIT // 5 and abs(points[at, 1]) < FIFTHS_LIMIT // 5):
            return np.int64(-1)
        x = np.int64(_fifths(points[at, 0]))
        across = _last_column(max(before, x), span[3]) - _first_column(min(before, x)) + 1
        count += max(across, 0) * (p >= span[0])
        before = x
    return count


@kernel
def count_crossings(points: Array, spans: Array, begin: int, end: int, out: Array) -> None:
    """Write how many crossings polygons ``[begin, end)`` have at most; -1: a vertex is no number or too far.

    Polygon *i* has the vertices ``points[spans[i, 0]:spans[i, 1]]`` (x, y) and an image of height ``spans[i, 2]`` and width
    ``spans[i, 3]``.
    """
    for i in range(begin, end):
        out[i] = _most_crossings(points, spans[i])


@helper
def _row(fifth: int, height: int) -> Any:
    """Return the first row whose centre lies at or below a fifth, which is -1 or more, from 0 to `height`."""
    return min(np.int64(np.uint64(fifth + 2) // np.uint64(5)), height)


@helper
def _cross_along(edge: Any, low: int, high: int, height: int, left: int, starts: Array, rows: Array) -> None:
    """Write the rows at which an edge crosses the centres of columns `low` to `high`; it is longer along x than along y."""
    x, y, next_x, next_y = edge
    if x > next_x:
        x, y, next_x, next_y = next_x, next_y, x, y
    slope = float(next_y - y) / float(next_x - x) if next_x > x else 0.0
    shift = 2 - x + (slope < 0)
    for c in range(low, high + 1):
        place = starts[np.uint64(c - left + 1)]
        rows[np.uint64(place)] = _row(max(int(y + slope * (5 * c + shift) + 0.5), 0), height)
        starts[np.uint64(c - left + 1)] = place + 1


@helper
def _cross_down(edge: Any, low: int, high: int, height: int, left: int, starts: Array, rows: Array) -> None:
    """Write the rows at which an edge crosses the centres of columns `low` to `high`; it is longer along y than along x.

    Where it steps over a centre the row is 0. Only an edge of millions of pixels can: rounded, it moves by two fifths at
    once. What is compared is not rounded: towards zero all from `centre` to `centre` + 1 becomes `centre`.
    """
    x, y, next_x, next_y = edge
    back = y > next_y
    if back:
        x, y, next_x, next_y = next_x, next_y, x, y
    down = next_y - y
    slope = float(next_x - x) / float(down)
    inverse, rising = 1.0 / slope, slope > 0
    for c in range(low, high + 1):
        centre = float(5 * c + 2)
        t = min(max(int((centre + 0.5 - x) * inverse) + 1, 1), down)  # nearly always; the walk from here is exact
        old, new = x + slope * (t - 1) + 0.5, x + slope * t + 0.5
        while t > 1 and (old >= centre + 1.0) == rising:
            t -= 1
            old, new = x + slope * (t - 1) + 0.5, old
        while (new >= centre + 1.0) != rising:
            t += 1
            old, new = new, x + slope * t + 0.5
        near, far = (old, new) if rising else (new, old)
        met = far < centre + 2.0 if rising != back else near >= centre
        place = starts[np.uint64(c - left + 1)]
        rows[np.uint64(place)] = _row(max(y + t - 1, 0) if met else -1, height)
        starts[np.uint64(c - left + 1)] = place + 1


@helper
def _sort_down(rows: Array, first: int, stop: int) -> None:
    """Sort the few crossings of a column by their row."""
    for k in range(first + 1, stop):
        row, place = rows[k], k
        while place > first and rows[place - 1] > row:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = row


@helper
def _crossings(points: Array, span: Array, left: int, columns: int, starts: Array, rows: Array, edges: Array) -> None:
    """Write the rows of a polygon's crossings, grouped by column and sorted, and where each column's begin.

    ``rows[starts[c]:starts[c + 1]]`` belong to column ``left + c``. `edges` has room for four numbers for each vertex.
    """
    count = span[1] - span[0]
    for c in range(columns + 2):
        starts[c] = 0
    for p in range(count):
        edges[p, 0], edges[p, 1] = _fifths(points[span[0] + p, 0]), _fifths(points[span[0] + p, 1])
    for p in range(count):  # count, then place
        x, next_x = edges[p, 0], edges[p + 1 if p + 1 < count else 0, 0]
        low, high = _first_column(min(x, next_x)), _last_column(max(x, next_x), span[3])
        edges[p, 2], edges[p, 3] = low, high
        if low <= high:
            starts[low - left + 2] += 1
            if high - left + 3 < columns + 2:
                starts[high - left + 3] -= 1
    change = np.int64(0)  # from one column's number of crossings to the next one's
    for c in range(2, columns + 2):
        change += starts[c]
        starts[c] = starts[c - 1] + change
    for p in range(count):
        low, high = edges[p, 2], edges[p, 3]
        if low > high:
            continue
        q = p + 1 if p + 1 < count else 0
        edge = (edges[p, 0], edges[p, 1], edges[q, 0], edges[q, 1])
        if abs(edge[2] - edge[0]) >= abs(edge[3] - edge[1]):
            _cross_along(edge, low, high, span[2], left, starts, rows)
        else:
            _cross_down(edge, low, high, span[2], left, starts, rows)


@helper
def _columns(points: Array, span: Array) -> Any:
    """Return the first column whose centre a polygon may cross, and how many columns there are from it."""
    if span[0] >= span[1]:
        return np.int64(0), np.int64(0)
    least, most = points[span[0], 0], points[span[0], 0]
    for p in range(span[0] + 1, span[1]):
        least, most = min(least, points[p, 0]), max(most, points[p, 0])
    left = min(np.int64(_first_column(_fifths(least))), span[3])
    return left, max(np.int64(_last_column(_fifths(most), span[3])) - left + 1, np.int64(0))


@helper
def _draw(points: Array, span: Array, starts: Array, rows: Array, edges: Array, out_ends: Array, at: int) -> Any:
    """Write the ends of a polygon's mask from ``out_ends[at]``, and return where they stop.

    `starts` has room for two more than `_columns` says, `rows` for all crossings, `edges` for four numbers for each vertex.
    """
    height, width = span[2], span[3]
    left, columns = _columns(points, span)
    _crossings(points, span, left, columns, starts, rows, edges)
    m = at
    behind, widen = np.int64(-1), False
    for c in range(columns + 1):
        last = c == columns
        first, stop = (np.int64(0), np.int64(1)) if last else (starts[c], starts[c + 1])
        if stop - first == 2 and not last:  # most columns
            one, other = rows[first], rows[first + 1]
            position, end = (left + c) * height + min(one, other), (left + c) * height + max(one, other)
            if position != behind and position != end and not widen:
                out_ends[m], out_ends[m + 1] = position, end
                m, behind = m + 2, end
                continue
        if not last:
            _sort_down(rows, first, stop)
        for k in range(first, stop):
            position = height * width if last else (left + c) * height + rows[k]
            if widen:  # the run in front of an empty one goes on to where the run behind it ends
                out_ends[m - 1], widen = position, False
            elif position == behind:
                widen = True
            else:
                out_ends[m] = position
                m += 1
            behind = position
    return m


@kernel
def draw_polygons(points: Array, spans: Array, begin: int, end: int, out_ends: Array, out_spans: Array) -> None:
    """Write the masks of polygons ``[begin, end)`` (as for `count_crossings`) into ``out_ends``, from ``out_spans[i, 0]``.

    There must be room for one run more than there are crossings; where the last one ends goes to ``out_spans[i, 1]``.
    """
    widest, most, longest = np.int64(0), np.int64(0), np.int64(0)
    for i in range(begin, end):
        widest = max(widest, _columns(points, spans[i])[1])
        most = max(most, out_spans[i, 1] - out_spans[i, 0])
        longest = max(longest, spans[i, 1] - spans[i, 0])
    starts, rows = np.empty(widest + 2, np.int64), np.empty(most, np.int64)
    edges = np.empty((longest, 4), np.int64)
    for i in range(begin, end):
        out_spans[i, 1] = _draw(points, spans[i], starts, rows, edges, out_ends, out_spans[i, 0])
