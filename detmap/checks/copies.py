"""Boxes that are copies of other boxes, also if they were rounded, or cut off at the edges of the image."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Minimum side of a box, as a multiple of the step to which it is rounded, for a box that is equal after rounding to be a
#: copy: each edge then moves by at most 1/200 of a side. In clean data none of 47,000 detections that find an object has
#: its box then: for VOC2007 and six scenes of ``tests/planting``, with objects of 2 decimals and in whole pixels. Of
#: smaller objects, 184 have.
STEPS = 100

#: Maximum difference of coordinates that are equal, from the rounding of numbers.
_EQUAL = 1e-6

#: Maximum number of decimals to which boxes are rounded; boxes with more are not rounded.
_DECIMALS = 5


class Copies(NamedTuple):
    """Masks of pairs of boxes, shape (n,)."""

    #: Whether the boxes are equal, at least after rounding and cutting.
    same: NDArray[np.bool_]
    #: Whether they are equal as they are.
    exact: NDArray[np.bool_]
    #: Whether they are equal after rounding, but so small that this may be chance; such pairs are not in `same`.
    unsure: NDArray[np.bool_]


def copies_of(boxes: Array, objects: Array, sizes: Array) -> Copies:
    """Return which boxes are copied to objects (both x, y, width, height), on images of some `sizes` (width, height)."""
    exact = (np.abs(boxes - objects) <= _EQUAL).all(axis=1)
    step = steps(objects)
    fits = _fits(boxes, objects, step)
    if np.isfinite(sizes).all():
        near, far = np.maximum(boxes[:, :2], 0), np.minimum(boxes[:, :2] + boxes[:, 2:], sizes)
        fits |= _fits(np.concatenate([near, far - near], axis=1), objects, step)
    large = (objects[:, 2:] >= STEPS * step[:, None]).all(axis=1)
    return Copies(exact | (fits & large), exact, fits & ~large & ~exact)


def _fits(boxes: Array, objects: Array, step: Array) -> NDArray[np.bool_]:
    """Mask of the boxes that are rounded to an object, whose size or whose far corner is rounded, too."""
    away = np.abs(boxes - objects)
    away[:, 2:] = np.minimum(away[:, 2:], np.abs(boxes[:, :2] + boxes[:, 2:] - objects[:, :2] - objects[:, 2:]))
    return np.asarray((away <= step[:, None] / 2 + _EQUAL).all(axis=1))


def steps(boxes: Array) -> NDArray[np.float64]:
    """Return the step to which the coordinates of each box are rounded: 1, 0.1, 0.01 and so on, 0 if they are not."""
    out = np.zeros(len(boxes))
    for decimals in range(_DECIMALS, -1, -1):
        out[(np.abs(boxes - np.round(boxes, decimals)) <= 1e-9).all(axis=1)] = 10.0**-decimals
    return out
