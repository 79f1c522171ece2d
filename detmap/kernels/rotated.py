"""Overlaps of quadrilaterals, such as rotated boxes, given by their corners.

Corners are taken relative to one corner of the pair, and each coordinate is a sum of two floats (double-double, about 32
digits). Therefore an overlap does not depend on the position of the quadrilaterals, or on how thin they are. Except for
one pair in billions, the overlap is the float nearest to the exact value. A polygon is clipped by the sides of a convex
polygon (Sutherland and Hodgman, 1974). A non-convex quadrilateral is the sum of two signed triangles: a region counts as
often as the outline winds around it, as in DOTA's development kit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel

Array = NDArray[Any]
Double = tuple[float, float]

#: Splits a float into halves of 26 bits, whose products are exact (Veltkamp and Dekker).
_SPLITTER = 134217729.0

#: Coordinates beyond these limits are scaled by a power of two, so that products stay within the range of floats.
_LARGE, _SMALL, _SCALE = 2.0**200, 2.0**-200, 2.0**400

#: Quadrilaterals of a smaller area overlap nothing, because products of their sides are not exact.
LEAST_AREA = 1e-280

#: Overlaps below this value are rounding errors of quadrilaterals that touch.
_NOTHING = 1e-20

#: Relative margin for rounding errors when pairs are rejected by their bounding boxes.
_MARGIN = 1e-9

#: Number of points in the buffer of a polygon. Each of four clips at most doubles the number of vertices.
ROWS = 64


class Quads(NamedTuple):
    """Quadrilaterals.

    ``corners`` float64 (n, 8): x, y of each corner, in either orientation. ``areas`` float64 (n,), 0 or more. ``turns``
    int8 (n,): 1 for convex outlines that turn from the x axis to the y axis, -1 for convex outlines that turn the other
    way, else 0.
    """

    corners: Array
    areas: Array
    turns: Array


class Compared(NamedTuple):
    """Pairs of rows ``left[p]`` and ``right[p]``, int64, and whether the right quadrilateral is a ``crowd``. Overlaps
    below ``lowest`` need not be exact.
    """

    left: Array
    right: Array
    crowd: Array
    lowest: float


class Scratch(NamedTuple):
    """Buffers of a kernel for one pair, float64 (`ROWS`, 4) each; a row is a point, with two floats each for x and y.
    ``left`` and ``right`` are the corners of the two quadrilaterals; ``polygon`` is clipped by ``edges``; ``sides``
    says on which side of an edge each of the polygon's points lies; ``spare`` receives the clipped polygon.
    """

    left: Array
    right: Array
    polygon: Array
    edges: Array
    sides: Array
    spare: Array


@innermost
def _sum(a: float, b: float) -> Any:
    """Return a + b and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@innermost
def _product(a: float, b: float) -> Any:
    """Return a * b and its rounding error."""
    total = a * b
    wide, other = a * _SPLITTER, b * _SPLITTER
    high, high_of_b = wide - (wide - a), other - (other - b)
    low, low_of_b = a - high, b - high_of_b
    return total, ((high * high_of_b - total) + high * low_of_b + low * high_of_b) + low * low_of_b


@innermost
def _add(a: Double, b: Double) -> Any:
    high, low = _sum(a[0], b[0])
    low += a[1] + b[1]
    total = high + low
    return total, low - (total - high)


@innermost
def _subtract(a: Double, b: Double) -> Any:
    return _add(a, (-b[0], -b[1]))


@innermost
def _times(a: Double, b: Double) -> Any:
    high, low = _product(a[0], b[0])
    low += a[0] * b[1] + a[1] * b[0]
    total = high + low
    return total, low - (total - high)


@innermost
def _over(a: Double, b: Double) -> Any:
    quotient = a[0] / b[0]
    rest = _subtract(a, _times(b, (quotient, 0.0)))
    return _sum(quotient, (rest[0] + rest[1]) / b[0])


@innermost
def _cross(ax: Double, ay: Double, bx: Double, by: Double) -> Any:
    return _subtract(_times(ax, by), _times(ay, bx))


@innermost
def _x(points: Array, row: int) -> Any:
    return points[row, 0], points[row, 1]


@innermost
def _y(points: Array, row: int) -> Any:
    return points[row, 2], points[row, 3]


@helper
def _relative(corners: Array, row: int, origin: tuple[float, float, float], out: Array) -> None:
    """Write the corners of a row relative to `origin`: x, y and the power of two that scales them."""
    for k in range(4):
        x, y = _sum(corners[row, 2 * k], -origin[0]), _sum(corners[row, 2 * k + 1], -origin[1])
        out[k, 0], out[k, 1], out[k, 2], out[k, 3] = (
            x[0] * origin[2],
            x[1] * origin[2],
            y[0] * origin[2],
            y[1] * origin[2],
        )


@helper
def _turn(points: Array, a: int, b: int, c: int) -> Any:
    """Return twice the signed area of a triangle."""
    ax, ay = _subtract(_x(points, b), _x(points, a)), _subtract(_y(points, b), _y(points, a))
    bx, by = _subtract(_x(points, c), _x(points, b)), _subtract(_y(points, c), _y(points, b))
    return _cross(ax, ay, bx, by)


@helper
def _twice_area(points: Array, count: int) -> Any:
    """Return twice the signed area of a polygon."""
    total = 0.0, 0.0
    for k in range(1, count - 1):
        total = _add(total, _turn(points, 0, k, k + 1))
    return total


@helper
def _copy(points: Array, row: int, to: int, out: Array) -> None:
    out[to, 0], out[to, 1], out[to, 2], out[to, 3] = points[row, 0], points[row, 1], points[row, 2], points[row, 3]


@helper
def _clip(scratch: Scratch, count: int, a: int, b: int) -> int:
    """Clip ``scratch.polygon`` by the edge from `a` to `b`; return the number of remaining points."""
    points, sides = scratch.polygon, scratch.sides
    x, y = _x(scratch.edges, a), _y(scratch.edges, a)
    dx, dy = _subtract(_x(scratch.edges, b), x), _subtract(_y(scratch.edges, b), y)
    inside = True
    for k in range(count):
        side = _cross(dx, dy, _subtract(_x(points, k), x), _subtract(_y(points, k), y))
        sides[k, 0], sides[k, 1] = side
        inside &= side[0] >= 0.0
    if inside:
        return count
    kept = 0
    for k in range(count):
        following = k + 1 if k + 1 < count else 0
        here, there = _x(sides, k), _x(sides, following)
        if here[0] >= 0.0:
            _copy(points, k, kept, scratch.spare)
            kept += 1
        if (here[0] > 0.0 and there[0] < 0.0) or (here[0] < 0.0 and there[0] > 0.0):
            share = _over(here, _subtract(here, there))
            px, py = _x(points, k), _y(points, k)
            px = _add(px, _times(_subtract(_x(points, following), px), share))
            py = _add(py, _times(_subtract(_y(points, following), py), share))
            scratch.spare[kept, 0], scratch.spare[kept, 1], scratch.spare[kept, 2], scratch.spare[kept, 3] = (
                px[0],
                px[1],
                py[0],
                py[1],
            )
            kept += 1
    for k in range(kept):
        _copy(scratch.spare, k, k, points)
    return kept


@helper
def _part(points: Array, turn: int, half: int, out: Array) -> int:
    """Write the corners of a convex quadrilateral in the order that turns from the x axis to the y axis. If the
    quadrilateral is not convex, write one of its two triangles, chosen by `half`. Returns the number of corners: 0 for
    a triangle without area, negative if a triangle turns the other way.
    """
    count, sign = 4, 1
    if turn == 0:
        area = _turn(points, 0, half + 1, half + 2)[0]
        if area == 0.0:
            return 0
        count, sign, turn = 3, 1 if area > 0.0 else -1, 1 if area > 0.0 else -1
    for k in range(count):
        at = k if turn > 0 else count - 1 - k
        _copy(points, at + half if count == 3 and at else at, k, out)
    return count * sign


@helper
def twice_shared_area(scratch: Scratch, turn: int, other_turn: int) -> Any:
    """Return twice the area shared by ``scratch.left`` and ``scratch.right``, as a sum of two floats."""
    total = 0.0, 0.0
    for half in range(1 if turn != 0 else 2):
        for other_half in range(1 if other_turn != 0 else 2):
            corners = _part(scratch.left, turn, half, scratch.polygon)
            edges = _part(scratch.right, other_turn, other_half, scratch.edges)
            count = abs(corners)
            for k in range(abs(edges)):
                if count == 0:
                    break
                count = _clip(scratch, count, k, k + 1 if k + 1 < abs(edges) else 0)
            if corners == 0 or edges == 0 or count < 3:
                continue
            area = _twice_area(scratch.polygon, count)
            total = _add(total, area) if (corners > 0) == (edges > 0) else _subtract(total, area)
    return total


@helper
def _extent(corners: Array, row: int, x: float, y: float) -> float:
    """Return the largest difference in x or in y between a point and the corners of a quadrilateral."""
    farthest = 0.0
    for k in range(4):
        farthest = max(farthest, max(abs(corners[row, 2 * k] - x), abs(corners[row, 2 * k + 1] - y)))
    return farthest


@helper
def load(first: Quads, i: int, second: Quads, j: int, scratch: Scratch) -> float:
    """Write the scaled corners of a pair to ``scratch.left`` and ``scratch.right``, and return the factor of the scaling."""
    x, y = first.corners[i, 0], first.corners[i, 1]
    extent = max(_extent(first.corners, i, x, y), _extent(second.corners, j, x, y))
    scale = 1.0 / _SCALE if extent > _LARGE else _SCALE if extent < _SMALL else 1.0
    _relative(first.corners, i, (x, y, scale), scratch.left)
    _relative(second.corners, j, (x, y, scale), scratch.right)
    return scale


@helper
def _hopeless(first: Quads, i: int, second: Quads, j: int, crowd: bool, lowest: float) -> bool:
    """Return whether the bounding boxes of two convex quadrilaterals show that the overlap is below `lowest`."""
    if first.turns[i] == 0 or second.turns[j] == 0 or lowest <= 0.0:
        return False
    shared = min(first.areas[i], second.areas[j])
    sides = 1.0
    for axis in range(2):
        low = high = first.corners[i, axis]
        low_of_other = high_of_other = second.corners[j, axis]
        for k in range(axis + 2, 8, 2):
            low, high = min(low, first.corners[i, k]), max(high, first.corners[i, k])
            low_of_other = min(low_of_other, second.corners[j, k])
            high_of_other = max(high_of_other, second.corners[j, k])
        sides *= max(min(high, high_of_other) - max(low, low_of_other), 0.0)
    shared = min(shared, sides) * (1.0 + _MARGIN)
    whole = first.areas[i] if crowd else first.areas[i] + second.areas[j] - shared
    return bool(shared < whole * (lowest * (1.0 - _MARGIN)))


@helper
def _overlap(first: Quads, i: int, second: Quads, j: int, crowd: bool, scratch: Scratch) -> float:
    """Return the shared area over the union, or over the area of the first quadrilateral if the second is a crowd."""
    load(first, i, second, j, scratch)
    shared = twice_shared_area(scratch, first.turns[i], second.turns[j])
    whole, other = _twice_area(scratch.left, 4), _twice_area(scratch.right, 4)
    # The sign of the shared area is right for outlines that turn from the x axis to the y axis. The corners of convex
    # outlines have been put in this order. Non-convex outlines turn the other way if their area is negative.
    if (whole[0] < 0.0 and first.turns[i] == 0) != (other[0] < 0.0 and second.turns[j] == 0):
        shared = -shared[0], -shared[1]
    if whole[0] < 0.0:
        whole = -whole[0], -whole[1]
    if other[0] < 0.0:
        other = -other[0], -other[1]
    if not crowd:
        whole = _subtract(_add(whole, other), shared)
    if not (shared[0] > 0.0 and whole[0] > 0.0):  # self-intersecting outlines can share negative areas
        return 0.0
    value = _over(shared, whole)[0]
    return 0.0 if value < _NOTHING else min(value, 1.0)


@kernel
def overlaps(first: Quads, second: Quads, pairs: Compared, begin: int, end: int, out: Array) -> None:
    """Write the overlaps of pairs ``[begin, end)``; 0 if an area is below `LEAST_AREA`, or if the overlap is known to
    be below ``pairs.lowest``.
    """
    memory = np.empty((6, ROWS, 4))
    scratch = Scratch(memory[0], memory[1], memory[2], memory[3], memory[4], memory[5])
    for p in range(begin, end):
        i, j, crowd = pairs.left[p], pairs.right[p], pairs.crowd[p]
        out[p] = 0.0
        if not (first.areas[i] >= LEAST_AREA and second.areas[j] >= LEAST_AREA):
            continue
        if not _hopeless(first, i, second, j, crowd, pairs.lowest):
            out[p] = _overlap(first, i, second, j, crowd, scratch)


@kernel
def measure(corners: Array, begin: int, end: int, areas: Array, turns: Array, bounds: Array) -> None:
    """Write the areas of quadrilaterals ``[begin, end)``, their orientations (``turns``, see `Quads`) and their bounding
    boxes (x1, y1, x2, y2, float64 (n, 4)).
    """
    points = np.empty((4, 4))
    for i in range(begin, end):
        x, y = corners[i, 0], corners[i, 1]
        _relative(corners, i, (x, y, 1.0), points)
        areas[i] = abs(_twice_area(points, 4)[0]) / 2
        turns[i] = 0
        ahead = behind = 0
        for k in range(4):
            turn = _turn(points, k, (k + 1) % 4, (k + 2) % 4)[0]
            ahead += turn > 0.0
            behind += turn < 0.0
            x, y = corners[i, 2 * k], corners[i, 2 * k + 1]
            if k == 0:
                bounds[i, 0], bounds[i, 1], bounds[i, 2], bounds[i, 3] = x, y, x, y
            bounds[i, 0], bounds[i, 2] = min(bounds[i, 0], x), max(bounds[i, 2], x)
            bounds[i, 1], bounds[i, 3] = min(bounds[i, 1], y), max(bounds[i, 3], y)
        turns[i] = 1 if ahead == 4 else -1 if behind == 4 else 0
