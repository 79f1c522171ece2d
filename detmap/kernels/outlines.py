"""Trace the outlines of a mask along pixel edges, as polygons that fill the same pixels.

A mask is cut into segments: a segment is the part of a run in one column. A segment has a top edge, walked to the
right, and a bottom edge, walked to the left, so that foreground is always on the right. From one edge to the next, the
path follows the border between two columns up or down. Where two pixels only touch at a corner the path turns right,
which separates the pixels. Drawing a polygon uses only its crossings with the centre lines of columns, so vertical
steps do not change the filled pixels.

Edge ``2 * s`` is the top of segment s, ``2 * s + 1`` its bottom. Segments are ordered by column, then from the top.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel

Array = NDArray[Any]


@helper
def _cut(ends: Array, first: int, stop: int, height: int, out: Array) -> int:
    """Write the segments of a mask (column, top, bottom), or only count them if `out` is empty; return their number."""
    count = 0
    for m in range(first + 1, stop, 2):
        at, end = np.int64(ends[m - 1]), np.int64(ends[m])
        while at < end:
            column = at // height
            behind = min(end, (column + 1) * height)
            if len(out):
                out[count, 0], out[count, 1], out[count, 2] = column, at - column * height, behind - column * height
            count += 1
            at = behind
    return count


@helper
def _above(segments: Array, low: int, column: int, row: int) -> int:
    """Return the first segment from `low` on that ends below `row` in `column`, or is in a later column."""
    high = len(segments)
    while low < high:
        middle = (low + high) // 2
        if segments[middle, 0] < column or (segments[middle, 0] == column and segments[middle, 2] <= row):
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _next_edge(segments: Array, edge: int) -> int:
    """Return the edge after `edge` in the outline."""
    s = edge // 2
    column, top, bottom = segments[s, 0], segments[s, 1], segments[s, 2]
    if edge % 2 == 0:
        t = _above(segments, s, column + 1, top)  # the segment at the corner, or the next segment below
        if t == len(segments) or segments[t, 0] != column + 1 or segments[t, 1] >= bottom:
            return edge + 1
        if segments[t, 1] < top and s and segments[s - 1, 0] == column and segments[s - 1, 2] > segments[t, 1]:
            return 2 * (s - 1) + 1
        return 2 * t
    t = _above(segments, 0, column - 1, bottom - 1)  # the segment at the corner, or the next segment above
    if segments[t, 0] != column - 1 or segments[t, 1] >= bottom:
        t -= 1
    if t < 0 or segments[t, 0] != column - 1 or segments[t, 2] <= top:
        return edge - 1
    below = s + 1 < len(segments) and segments[s + 1, 0] == column
    if segments[t, 2] > bottom and below and segments[s + 1, 1] < segments[t, 2]:
        return 2 * (s + 1)
    return 2 * t + 1


@helper
def _join_holes(segments: Array, following: Array, before: Array, seen: Array) -> None:
    """Join every hole to the outline around it. A vertical line from the hole's first bottom edge to the top edge of
    the same segment is walked in both directions.
    """
    for edge in range(len(following)):
        if seen[edge]:
            continue
        area, lowest, e = np.int64(0), len(following), edge
        while not seen[e]:
            seen[e] = True
            area += segments[e // 2, 2] if e % 2 else -segments[e // 2, 1]
            if e % 2:
                lowest = min(lowest, e)
            e = following[e]
        if area < 0:
            seen[lowest] = 2
    for bottom in range(1, len(following), 2):
        if seen[bottom] == 2:
            top = bottom - 1
            last, e = before[top], following[bottom]
            following[last], before[e] = e, last
            following[bottom], before[top] = top, bottom


@helper
def _write_polygons(segments: Array, following: Array, seen: Array, out: Array) -> int:
    """Write the corners x, y of each polygon, followed by a row of -1; return the number of rows."""
    used = 0
    for edge in range(len(following)):
        e = edge
        if seen[edge] == 0:
            continue
        while seen[e]:
            seen[e] = 0
            f = following[e]
            y, next_y = segments[e // 2, 1 + e % 2], segments[f // 2, 1 + f % 2]
            if y != next_y or e % 2 != f % 2:
                x = segments[e // 2, 0] + 1 - e % 2
                out[used, 0], out[used, 1], out[used + 1, 0], out[used + 1, 1] = x, y, x, next_y
                used += 2
            e = f
        out[used, 0], out[used, 1] = -1, -1
        used += 1
    return used


@kernel
def trace(ends: Array, first: int, stop: int, height: int, out: Array) -> int:
    """Write the polygons of a mask: rows of corners x, y, int64, and a row of -1 after each polygon. The mask has the
    ascending runs ``ends[first:stop]``. Each region connected by pixel sides becomes one polygon. Returns the number of
    rows. If `out` may be too small, writes nothing and returns the negative of a sufficient number of rows.
    """
    count = _cut(ends, first, stop, height, np.empty((0, 3), np.int64))
    if 5 * count > len(out):
        return -5 * count
    segments = np.empty((count, 3), np.int64)
    _cut(ends, first, stop, height, segments)
    following, before = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    for edge in range(2 * count):
        following[edge] = _next_edge(segments, edge)
        before[following[edge]] = edge
    seen = np.zeros(2 * count, np.uint8)
    _join_holes(segments, following, before, seen)
    return _write_polygons(segments, following, seen, out)
