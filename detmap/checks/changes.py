"""Functions that undo errors in how boxes are written.

Most functions take boxes (x, y, width, height), shape (n, 4), and the width and height of each box's image, shape (n,
2), infinite if unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Change = Callable[[Array, Array], Array]


def as_corners(boxes: Array, sizes: Array) -> Array:
    """Return boxes x, y, width, height from two corners: left, top, right, bottom."""
    return np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)


def as_corners_of_rows(boxes: Array, sizes: Array) -> Array:
    """Return boxes x, y, width, height from two corners, y before x: top, left, bottom, right."""
    return as_corners(boxes[:, [1, 0, 3, 2]], sizes)


def as_sizes(boxes: Array, sizes: Array) -> Array:
    """Undo the conversion from two corners, for boxes that were given as x, y, width, height."""
    return np.concatenate([boxes[:, :2], boxes[:, 2:] + boxes[:, :2]], axis=1)


def as_centres(boxes: Array, sizes: Array) -> Array:
    """Return boxes x, y, width, height from boxes centre x, centre y, width, height."""
    return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]], axis=1)


def swapped_sides(boxes: Array, sizes: Array) -> Array:
    """Return boxes after swapping width and height."""
    return boxes[:, [0, 1, 3, 2]]


def swapped_axes(boxes: Array, sizes: Array) -> Array:
    """Return boxes after swapping x and y, and width and height."""
    return boxes[:, [1, 0, 3, 2]]


def swapped_corner(boxes: Array, sizes: Array) -> Array:
    """Return boxes after swapping x and y, but not width and height."""
    return boxes[:, [1, 0, 2, 3]]


def reordered(order: tuple[int, ...]) -> Change:
    """Return the change that reads left, top, right and bottom of boxes from the columns `order` of their corners."""

    def change(boxes: Array, sizes: Array) -> Array:
        return as_corners(as_sizes(boxes, sizes)[:, order], sizes)

    return change


def in_pixels(boxes: Array, sizes: Array) -> Array:
    """Return boxes in pixels from shares of the image."""
    known = np.where(np.isfinite(sizes), sizes, 0.0)
    return np.asarray(boxes * np.concatenate([known, known], axis=1))


def mirrored(boxes: Array, sizes: Array) -> Array:
    """Return boxes of images that were mirrored left to right."""
    return np.concatenate([sizes[:, :1] - boxes[:, :1] - boxes[:, 2:3], boxes[:, 1:]], axis=1)


def upside_down(boxes: Array, sizes: Array) -> Array:
    """Return boxes of images that were mirrored top to bottom, as if y were counted from the bottom."""
    return np.concatenate([boxes[:, :1], sizes[:, 1:] - boxes[:, 1:2] - boxes[:, 3:], boxes[:, 2:]], axis=1)


def half_turned(boxes: Array, sizes: Array) -> Array:
    """Return boxes of images that were turned by 180 degrees."""
    return upside_down(mirrored(boxes, sizes), sizes)


def turned_right(boxes: Array, sizes: Array) -> Array:
    """Return boxes of images that were turned clockwise by 90 degrees; `sizes` are image sizes before the turn."""
    return upside_down(swapped_axes(boxes, sizes), sizes)


def turned_left(boxes: Array, sizes: Array) -> Array:
    """Return boxes of images that were turned counter-clockwise by 90 degrees; `sizes` are image sizes before the turn."""
    return mirrored(swapped_axes(boxes, sizes), sizes)


def scaled(boxes: Array, factor: Array | float, padding: Array | float = 0.0) -> Array:
    """Return boxes after `padding` is subtracted from x and y, and all coordinates are multiplied by `factor` (a
    number, or an array of factors for x and y, shape (2,) or (n, 2)).
    """
    return np.concatenate([(boxes[:, :2] - padding) * factor, boxes[:, 2:] * factor], axis=1)


def resized(boxes: Array, factor: Array | float) -> Array:
    """Return boxes after width and height, but not x and y, are multiplied by `factor`."""
    return np.concatenate([boxes[:, :2], boxes[:, 2:] * factor], axis=1)


#: For each code of a wrong box format, the functions that may undo it, for objects and for detections.
CHANGES: dict[str, tuple[Change, ...]] = {
    "corners_as_sizes": (as_corners, as_corners_of_rows),
    "centres_as_corners": (as_centres,),
    "sides_swapped": (swapped_sides,),
    "axes_swapped": (swapped_axes, swapped_corner),
    "normalised_boxes": (in_pixels,),
}

#: The functions that undo a flip or rotation of images, with a description of the flip or rotation.
TURNS: dict[Change, str] = {
    mirrored: "mirrored left to right",
    upside_down: "mirrored top to bottom",
    half_turned: "turned by 180 degrees",
    turned_right: "turned clockwise by 90 degrees",
    turned_left: "turned counter-clockwise by 90 degrees",
}

#: The turns by 90 degrees. On a square image, turning detections one way has the same effect as turning objects the
#: other way.
QUARTERS: tuple[Change, ...] = (turned_right, turned_left)

#: The names of left, top, right and bottom as two corners.
_CORNERS = ("x1", "y1", "x2", "y2")

#: For each wrong order of the four columns of two corners, the change that undoes it.
ORDERS: dict[str, Change] = {
    ", ".join(_CORNERS[order.index(at)] for at in range(4)): reordered(order)
    for order in permutations(range(4))
    if order != (0, 1, 2, 3)
}
