"""Kernels for object keypoint similarity (OKS): one computes the exponents of keypoints, one the means of their
exponentials. The exponentials are left to `numpy.exp`, as in pycocotools, because libm's results differ from numpy's on
some processors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel

Array = NDArray[Any]

#: ``np.spacing(1)``, which pycocotools adds to areas.
_EPSILON = 2.220446049250313e-16

#: Exponent above which a point is called far, and an upper bound of a far point's term exp(-exponent) in the mean.
_FAR, _FAR_TERM = 3.0, 0.05
#: Numbers per point of the ground truth, and the offsets of y and v.
_XYV, _Y, _V = np.uint64(3), np.uint64(1), np.uint64(2)


class Poses(NamedTuple):
    """Keypoints, each of ``width`` numbers: x, y, v or x, y. Row *i* has the numbers ``values[starts[i]:stops[i]]``."""

    values: Array
    starts: Array
    stops: Array
    width: int = 3


class Objects(NamedTuple):
    """Ground-truth objects: ``boxes`` (x, y, width, height), ``areas``, and variances of keypoints. The variances of row
    *i* begin at ``variances[first[i]]``, one for each keypoint.
    """

    boxes: Array
    areas: Array
    variances: Array
    first: Array


class Likely(NamedTuple):
    """Pairs of rows ``left[i]`` and ``right[i]``, int64. Similarities below ``lowest`` need not be exact."""

    left: Array
    right: Array
    lowest: float


class Terms(NamedTuple):
    """Exponents of the keypoints of pairs (``values``, float64), and end of each pair's exponents (``stops``, int64)."""

    values: Array
    stops: Array


@kernel
def exponents(found: Poses, truth: Poses, objects: Objects, pairs: Likely, begin: int, end: int, terms: Terms) -> None:
    """Write the negated exponents of pairs ``[begin, end)`` consecutively, and the end of each pair's exponents.

    If the object has visible points, only the visible points count. Otherwise all points count, by their distance to a
    box with the centre of the object's box and three times its width and height. The exponents of a pair are omitted if
    its far points alone keep the mean below ``pairs.lowest``.
    """
    left, right, lowest = pairs.left, pairs.right, pairs.lowest
    out, stops, width = terms.values, terms.stops, np.uint64(found.width)
    used = 0
    for i in range(begin, end):
        d, g = np.uint64(found.starts[left[i]]), np.uint64(truth.starts[right[i]])
        count = (truth.stops[right[i]] - truth.starts[right[i]]) // 3
        visible = 0
        for k in range(np.uint64(count)):
            visible += truth.values[g + _XYV * k + _V] > 0
        row = right[i]
        x0, x1 = objects.boxes[row, 0] - objects.boxes[row, 2], objects.boxes[row, 0] + objects.boxes[row, 2] * 2
        y0, y1 = objects.boxes[row, 1] - objects.boxes[row, 3], objects.boxes[row, 1] + objects.boxes[row, 3] * 2
        area, variances = objects.areas[row] + _EPSILON, objects.variances[objects.first[row] :]
        # Each far point lowers the mean by at least (1 - `_FAR_TERM`) / (number of points). More than `most_far` far
        # points lower the mean below `lowest`.
        most_far = (1.0 - lowest) * (visible if visible else count) / (1.0 - _FAR_TERM) + 1e-6
        first, far = used, 0
        for k in range(np.uint64(count)):
            # Branch-free: points that do not count are written, too, and the next point overwrites them.
            x, y = found.values[d + width * k], found.values[d + width * k + _Y]
            counts = 1
            if visible:
                counts = np.int64(truth.values[g + _XYV * k + _V] > 0)
                dx, dy = x - truth.values[g + _XYV * k], y - truth.values[g + _XYV * k + _Y]
            else:
                dx, dy = max(0.0, x0 - x) + max(0.0, x - x1), max(0.0, y0 - y) + max(0.0, y - y1)
            exponent = (dx * dx + dy * dy) / variances[k] / area / 2
            out[np.uint64(used)] = -exponent
            used += counts
            far += counts & (exponent > _FAR)
            if far > most_far:
                used = first
                break
        stops[i - begin] = used


@helper
def _sum(values: Array, first: int, count: int) -> Any:
    """Sum up to 128 numbers in numpy's order: eight partial sums, then the rest sequentially."""
    if count < 8:
        total = 0.0
        for k in range(count):
            total += values[first + k]
        return total
    a, b, c, d = values[first], values[first + 1], values[first + 2], values[first + 3]
    e, f, g, h = values[first + 4], values[first + 5], values[first + 6], values[first + 7]
    k = 8
    while k < count - count % 8:
        a, b, c, d = (
            a + values[first + k],
            b + values[first + k + 1],
            c + values[first + k + 2],
            d + values[first + k + 3],
        )
        e, f = e + values[first + k + 4], f + values[first + k + 5]
        g, h = g + values[first + k + 6], h + values[first + k + 7]
        k += 8
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    while k < count:
        total += values[first + k]
        k += 1
    return total


@kernel
def means(values: Array, stops: Array, out: Array) -> None:
    """Write the mean of each pair's numbers, which end at ``stops[i]``: 0 if there are none, NaN if there are more than
    128.
    """
    first = 0
    for i in range(len(stops)):
        count = stops[i] - first
        out[i] = _sum(values, first, count) / max(count, 1) if count <= 128 else float("nan")
        first = stops[i]


@kernel
def extents(poses: Poses, begin: int, end: int, out_boxes: Array, out_labelled: Array) -> float:
    """Write the box x, y, width, height around each of the poses ``[begin, end)``, and the number of points with v
    above 0 (0 if poses have no v). Returns the largest absolute value of any x, y or v.
    """
    farthest, width, flagged = 0.0, np.uint64(poses.width), poses.width == 3
    for i in range(begin, end):
        first, labelled = np.uint64(poses.starts[i]), 0
        left, right, top, bottom = 0.0, 0.0, 0.0, 0.0
        count = max(poses.stops[i] - poses.starts[i] + poses.width - 1, 0) // poses.width
        if count > 0:
            left = right = poses.values[first]
            top = bottom = poses.values[first + _Y]
        for k in range(np.uint64(count)):
            at = first + width * k  # unsigned, because numba checks signed indices for negative values
            x, y, v = poses.values[at], poses.values[at + _Y], poses.values[at + _V] if flagged else 0.0
            labelled += v > 0
            farthest = max(farthest, abs(v))
            left, right, top, bottom = min(left, x), max(right, x), min(top, y), max(bottom, y)
        out_boxes[i, 0], out_boxes[i, 1], out_boxes[i, 2], out_boxes[i, 3] = left, top, right - left, bottom - top
        out_labelled[i] = labelled
        farthest = max(max(farthest, max(abs(left), abs(right))), max(abs(top), abs(bottom)))
    return farthest


@kernel
def drop_flags(values: Array, starts: Array, stops: Array) -> int:
    """Remove v from every point in place, without leaving gaps between rows; return the end of the last row.

    The rows' ranges in `values` must be consecutive. `starts` and `stops` are updated.
    """
    at = starts[0]
    for i in range(len(starts)):
        first, points = starts[i], (stops[i] - starts[i]) // 3
        starts[i] = at
        for k in range(np.uint64(points)):
            own, kept = np.uint64(first) + _XYV * k, np.uint64(at) + k + k
            values[kept], values[kept + _Y] = values[own], values[own + _Y]
        at += 2 * points
        stops[i] = at
    return int(at)


#: Coordinates of boxes are clipped to this number, so that no area overflows. The number is twice the largest
#: coordinate of any input.
_EDGE = 4e150


@helper
def _slack(one: float, other: float) -> Any:
    """Return an upper bound of the rounding error of the sum of two numbers."""
    return 1e-9 * (abs(one) + abs(other))


@helper
def _within(value: float) -> Any:
    return min(max(value, -_EDGE), _EDGE)


@helper
def _doubled(near: float, size: float) -> Any:
    """Return the ends of an interval that is extended by its length at both ends; the length may be negative."""
    return min(near - size, near + size * 2), max(near - size, near + size * 2)


@kernel
def corners(boxes: Array, begin: int, end: int, out: Array) -> None:
    """Write the corners of boxes x, y, width, height, slightly enlarged, so that rounding excludes no point."""
    for i in range(begin, end):
        for axis in range(2):
            near, size = boxes[i, axis], boxes[i, axis + 2]
            slack = _slack(near, size)
            out[i, axis], out[i, axis + 2] = _within(near - slack), _within(near + size + slack)


@kernel
def reaches(truth: Poses, objects: Objects, limit: float, begin: int, end: int, out: Array) -> None:
    """Write the corners of a box for each object such that points outside of the box have exponents above `limit`."""
    for i in range(begin, end):
        first, count = truth.starts[i], (truth.stops[i] - truth.starts[i]) // 3
        widest, left, right, top, bottom = 0.0, np.inf, -np.inf, np.inf, -np.inf
        for k in range(count):
            widest = max(widest, objects.variances[objects.first[i] + k])
            if truth.values[first + 3 * k + 2] > 0:
                x, y = truth.values[first + 3 * k], truth.values[first + 3 * k + 1]
                left, right, top, bottom = min(left, x), max(right, x), min(top, y), max(bottom, y)
        if left > right:
            left, right = _doubled(objects.boxes[i, 0], objects.boxes[i, 2])
            top, bottom = _doubled(objects.boxes[i, 1], objects.boxes[i, 3])
        reach = np.sqrt(2.0 * widest * (objects.areas[i] + _EPSILON) * limit)
        along_x, along_y = reach + _slack(left, right), reach + _slack(top, bottom)
        out[i, 0], out[i, 2] = _within(left - along_x), _within(right + along_x)
        out[i, 1], out[i, 3] = _within(top - along_y), _within(bottom + along_y)
