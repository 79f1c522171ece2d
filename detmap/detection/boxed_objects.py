"""Objects that have a box but lack the scored geometry, such as Open Images' boxes without a mask.

The rules come from TensorFlow's Object Detection API: an object with only a box counts as a positive, but a detection
whose bounding box matches the object's box is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import GroundTruth
from detmap.detection.preparation import boxes_of, corners_of
from detmap.kernels import matching, overlap, readonly
from detmap.shapes import Column, Kind, Pairs
from detmap.shapes.boxes import Boxes

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol

#: A box (x, y, width, height) that overlaps every box in pixels or in fractions of the image.
_ANYWHERE = (-1e12, -1e12, 2e12, 2e12)


@dataclass(frozen=True, eq=False)
class BoxedObjects:
    """Objects that have only a box.

    `rows` is a mask of these objects. `corners` has the box corners of all objects, as fractions of the image's width and
    height if `shares` is true, else in pixels.
    """

    rows: NDArray[np.bool_]
    corners: NDArray[np.float64]
    shares: bool

    @classmethod
    def of(cls, ground_truth: GroundTruth, kind: Kind, protocol: Protocol) -> BoxedObjects | None:
        """Return the objects that the protocol matches by their boxes; None if there are none."""
        if protocol.without_shape != "boxed" or kind.absent is None:
            return None
        rows, shares = kind.absent(ground_truth.shape(kind.name))
        if not rows.any():
            return None
        corners = corners_of(boxes_of(ground_truth)) if shares is None else shares
        rows = rows & (corners[:, 2] > corners[:, 0]) & (corners[:, 3] > corners[:, 1])
        return cls(rows, corners, shares is not None or ground_truth.within_unit) if rows.any() else None

    def proposed(self, bounds: overlap.Boxes) -> overlap.Boxes:
        """Return `bounds` with huge boxes for the objects that have only a box, so that every detection overlaps them."""
        coordinates, areas = bounds.coordinates.copy(), bounds.areas.copy()
        far = np.array(_ANYWHERE)
        coordinates[self.rows] = far if bounds.sizes else np.append(far[:2], far[:2] + far[2:])
        areas[self.rows if areas.size else []] = np.nan
        return bounds._replace(coordinates=readonly(coordinates, np.float64), areas=readonly(areas, np.float64))

    def refine(self, detections: Column, kind: Kind, pairs: Pairs, out: NDArray[np.float64]) -> None:
        """Write the overlaps of detections with these objects to `out`. The overlap is IoU or, if the object is a group,
        the intersection over the detection's area.
        """
        at = np.flatnonzero(self.rows[pairs.ground_truth])
        bounds = detections.bounds()
        assert isinstance(bounds, Boxes)
        rows = pairs.detections[at]
        found = corners_of(Boxes(bounds.table[rows], bounds.sizes))
        if self.shares and kind.image_sizes is not None:
            found = found / np.tile(kind.image_sizes(detections)[rows][:, ::-1], 2)
        truth = self.corners[pairs.ground_truth[at]]
        height, width = (
            np.maximum(np.minimum(found[:, k + 2], truth[:, k + 2]) - np.maximum(found[:, k], truth[:, k]), 0.0)
            for k in (1, 0)
        )
        shared = height * width
        areas = [(one[:, 3] - one[:, 1]) * (one[:, 2] - one[:, 0]) for one in (found, truth)]
        whole = np.where(pairs.crowd[at], areas[0], areas[0] + areas[1] - shared)
        out[at] = np.divide(shared, whole, out=np.zeros(at.size), where=whole > 0)


def roles_of(group: NDArray[np.bool_] | None, boxed: BoxedObjects | None) -> NDArray[np.uint8] | None:
    """Return the bits ``GROUP`` and ``BOXED`` of each object; None if no object is a group or has only a box."""
    if group is None and boxed is None:
        return None
    role = np.uint8(0) if group is None else np.where(group, np.uint8(matching.GROUP), np.uint8(0))
    if boxed is not None:
        role = role + np.where(boxed.rows, np.uint8(matching.BOXED), np.uint8(0))
    return np.asarray(role, np.uint8)


def notices_of(boxed: BoxedObjects | None, notices: dict[str, Any], rows: NDArray[np.int32]) -> dict[str, Any]:
    """Replace the notice on absent masks by a notice on the evaluated objects (`rows`) that have only a box."""
    if boxed is None:
        return notices
    left = {code: count for code, count in notices.items() if code != "absent_masks"}
    return {**left, "boxed_objects": int(np.count_nonzero(boxed.rows[rows]))}
