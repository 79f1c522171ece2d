"""Boxes whose width and height were scaled, although their top left corners are right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detmap.checks.changes import Array, resized
from detmap.checks.evidence import Evidence
from detmap.checks.findings import AT_LEAST, Finding, found
from detmap.checks.inputs import overlaps
from detmap.checks.rates import Part

#: Minimum IoU of a confident detection with an object, and minimum number of such detections. If both sides are
#: multiplied by 0.4, the IoU is 0.16.
LEAST, FEWEST = 0.15, 20

#: Minimum logarithm of the factor by which width and height deviate, and minimum difference from the logarithm
#: elsewhere. In 4,200 ranges of 10 to 160 images drawn in 14 clean scenes of ``tests/planting`` (seeds 0 and 1 of each
#: kind), the smaller logarithm of width and height is at most 0.024.
BIAS = 0.08

#: Minimum deviation as a multiple of its standard error. In the ranges of `BIAS`, the smaller multiple of width and
#: height is at most 2.6.
SURE = 6.0

#: Maximum deviation of the top left corner as a share of the deviation of width and height. The share is 0 if the sides
#: were scaled about this corner, and 0.5 if they were scaled about the centre. With sides times 0.6 to 1.25 on a tenth or
#: two fifths of the images of ``tests/planting/scenes.py``, the share is at most 0.04.
AT_CORNER = 0.25

#: If the sides are scaled back: minimum increase of the median IoU, and maximum amount by which the median IoU may
#: remain below the median elsewhere. In the ranges of `BIAS` the median rises by at most 0.024. In the scenes of
#: `AT_CORNER`, the median rises by at least 0.23, to at least the median elsewhere minus 0.007.
BETTER, WORSE = 0.05, 0.1


def resized_sides(evidence: Evidence, part: Part | None) -> Finding | None:
    """Return the finding of detections of a part, or of all images, whose sides were scaled about their top left corner;
    None if they were not.
    """
    rows, objects = _confident(evidence)
    own, true = evidence.found.boxes[rows], evidence.object_box[objects]
    inside = np.ones(rows.size, np.bool_) if part is None else part.images[evidence.object_image[objects]]
    if np.count_nonzero(inside) < FEWEST or (part is not None and np.count_nonzero(~inside) < FEWEST):
        return None
    larger = np.log(true[:, 2:] / own[:, 2:])
    corner = (own[:, :2] - true[:, :2]) / np.maximum(own[:, 2:], true[:, 2:])
    usual, at = np.zeros(2), np.zeros(2)
    if part is not None:
        usual, at = np.median(larger[~inside], axis=0), np.median(corner[~inside], axis=0)
    away = np.median(larger[inside], axis=0) - usual
    spread = np.median(np.abs(larger[inside] - usual - away), axis=0) / np.sqrt(np.count_nonzero(inside))
    moved = np.abs(np.median(corner[inside], axis=0) - at)
    if (np.abs(away) < np.maximum(BIAS, SURE * 1.2533 * 1.4826 * spread)).any() or (
        moved > AT_CORNER * -np.expm1(-np.abs(away))
    ).any():
        return None
    plain, undone = overlaps(own, true), overlaps(resized(own, np.exp(away)), true)
    before, after = float(np.median(plain[inside])), float(np.median(undone[inside]))
    if after < before + BETTER or (part is not None and after < float(np.median(plain[~inside])) - WORSE):
        return None
    better = np.sort(rows[inside & (undone > plain)])
    width, height = np.exp(away)
    more = (
        f"their top left corners are right, width times {width:.3g} and height times {height:.3g} are those of objects"
    )
    more += "" if part is None else f"; {part.says}"
    return found("scaled_boxes", better.size, "detection", more=more, words=AT_LEAST, **evidence.found.records(better))


def _confident(evidence: Evidence) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the confident detections that overlap an object of their category best, at most one for each object, and
    these objects.
    """
    sure = np.zeros(len(evidence.found), np.bool_)
    sure[evidence.sure] = True
    rows, which, best = evidence.pairs
    some = np.flatnonzero(sure[rows] & (which >= 0) & (best >= LEAST))
    order = some[np.lexsort((-best[some], which[some]))]
    first: Array = order[np.unique(which[order], return_index=True)[1]] if order.size else order
    return rows[first], which[first]
