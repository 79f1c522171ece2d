"""Boxes that are copies of other boxes, also if they were rounded, or cut off at the edges of the image."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Minimum side of a box, as a multiple of the rounding step, for two boxes that are equal after rounding to be copies.
#: On boxes of this size, rounding moves each edge by at most 1/200 of a side. For VOC2007 and six scenes of
#: ``tests/planting``, with objects in whole pixels or 2 decimals, no copy occurs by chance among 47,000 detections that
#: find an object with at least this side. On smaller objects, 184 detections are copies by chance.
STEPS = 100

#: Maximum difference of coordinates that are considered equal, because of floating-point rounding.
_EQUAL = 1e-6

#: Maximum number of decimals of a rounded box; boxes with more decimals are considered not rounded.
_DECIMALS = 5


class Copies(NamedTuple):
    """Masks of pairs of boxes, shape (n,)."""

    #: Whether the boxes are equal, if necessary after rounding and clipping.
    same: NDArray[np.bool_]
    #: Whether the boxes are equal without rounding or clipping.
    exact: NDArray[np.bool_]
    #: Whether the boxes are equal only after rounding, and so small that this may be chance; excluded from `same`.
    unsure: NDArray[np.bool_]


def copies_of(boxes: Array, objects: Array, sizes: Array) -> Copies:
    """Compare each box with an object (both x, y, width, height), on images of the given `sizes` (width, height)."""
    exact = (np.abs(boxes - objects) <= _EQUAL).all(axis=1)
    step = steps(objects)
    fits = _fits(boxes, objects, step)
    if np.isfinite(sizes).all():
        near, far = np.maximum(boxes[:, :2], 0), np.minimum(boxes[:, :2] + boxes[:, 2:], sizes)
        fits |= _fits(np.concatenate([near, far - near], axis=1), objects, step)
    large = (objects[:, 2:] >= STEPS * step[:, None]).all(axis=1)
    return Copies(exact | (fits & large), exact, fits & ~large & ~exact)


def _fits(boxes: Array, objects: Array, step: Array) -> NDArray[np.bool_]:
    """Mask of the boxes that equal the object after rounding of position and size, or of both corners."""
    away = np.abs(boxes - objects)
    away[:, 2:] = np.minimum(away[:, 2:], np.abs(boxes[:, :2] + boxes[:, 2:] - objects[:, :2] - objects[:, 2:]))
    return np.asarray((away <= step[:, None] / 2 + _EQUAL).all(axis=1))


def steps(boxes: Array) -> NDArray[np.float64]:
    """Return the step to which the coordinates of each box are rounded: 1, 0.1, 0.01 and so on; 0 if not rounded."""
    out = np.zeros(len(boxes))
    for decimals in range(_DECIMALS, -1, -1):
        out[(np.abs(boxes - np.round(boxes, decimals)) <= 1e-9).all(axis=1)] = 10.0**-decimals
    return out
