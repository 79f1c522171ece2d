"""Implements the decisions of a protocol about the input: rounds and moves numbers, and leaves records out. Protocols
that lack these decisions, such as `coco` and VOC's, use the tables without a copy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import locate
from detmap.data.notices import added
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.federated import without_area
from detmap.detection.protocols import Protocol
from detmap.errors import OptionError
from detmap.kernels import readonly
from detmap.shapes import find
from detmap.shapes.boxes import Boxes
from detmap.shapes.kinds import BOXES

T = TypeVar("T", GroundTruth, Detections)


def prepared(ground_truth: GroundTruth, detections: Detections, protocol: Protocol) -> tuple[GroundTruth, Detections]:
    """Return both tables, all rows kept, with boxes moved and boxes and scores rounded as the protocol says. Raises
    `OptionError` if boxes are to be changed but masks or other geometries are compared.

    Boxes are first rounded to decimals and then converted to single precision, as in a program that reads boxes from a
    file.
    """
    if find(protocol.iou_type).column_name != BOXES and (protocol.box_decimals is not None or protocol.box_offset):
        raise OptionError(f"box_decimals and box_offset change boxes, and {protocol.iou_type} compares other shapes")
    if protocol.box_decimals is not None or protocol.box_offset:
        corners = corners_of(boxes_of(detections)) + protocol.box_offset
        if protocol.box_decimals is not None:
            corners = rounded(corners, protocol.box_decimals)
        detections = _with_corners(detections, corners)
    if protocol.numbers == "float32":
        ground_truth, detections = _in_single(ground_truth), _in_single(detections)
    ground_truth, detections = _parted(ground_truth, protocol), _parted(detections, protocol)
    if protocol.score_field != "score":
        detections = _scored_by(detections, protocol.score_field)
    scores = prepared_scores(detections.scores, protocol)
    if scores is not detections.scores:
        detections = replace(detections, scores=scores)
    if protocol.inclusive_pixels and protocol.far_corner == "x+w":
        ground_truth, detections = _by_corners(ground_truth), _by_corners(detections)
    return ground_truth, detections


def _parted(table: T, protocol: Protocol) -> T:
    """Return a table whose poses have only the points that the protocol compares."""
    kind = find(protocol.iou_type)
    if kind.part is None or (protocol.points is None and protocol.labelled == "field"):
        return table
    counted = protocol.labelled == "points" or isinstance(table, Detections)
    made = kind.part(table.shape(kind.name), protocol.points, counted, table.source)
    return replace(table, shapes={**table.shapes, kind.column_name: made})


def _scored_by(detections: Detections, field: str) -> Detections:
    """Return detections with scores taken from another score field. Detections without this field keep their scores."""
    own = detections.more_scores.get(field, np.full(len(detections), np.nan))
    missing = np.isnan(own)
    notices = added(detections.notices, {"missing_part_scores": int(missing.sum())})
    scores = readonly(np.where(missing, detections.scores, own), np.float64)
    return replace(detections, scores=scores, notices=notices)


def prepared_scores(scores: NDArray[np.float64], protocol: Protocol) -> NDArray[np.float64]:
    """Return scores rounded as the protocol says; the same array if the protocol does not round scores."""
    if protocol.score_decimals is not None:
        scores = readonly(rounded(scores, protocol.score_decimals), np.float64)
    if protocol.numbers == "float32":
        scores = readonly(scores.astype(np.float32), np.float64)
    return scores


def left_out(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol
) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
    """Return a mask of the objects, shape (g,), and a mask of the detections, shape (n,), that are not scored. None in
    place of a mask means that every row is scored. All detections must be on images of the ground truth.
    """
    if not (
        protocol.left_out
        or protocol.scored_images == "detected"
        or protocol.min_score is not None
        or protocol.max_per_image is not None
        or protocol.max_per_category is not None
        or protocol.without_area == "dropped"
        or protocol.unseen == "dropped"
        or protocol.class_ranges
    ):
        return None, None
    objects = without_area(ground_truth, protocol)
    cut = np.zeros(len(detections), np.bool_)
    if protocol.min_score is not None:
        cut |= detections.scores < protocol.min_score
    kind = find(protocol.iou_type)
    if protocol.unseen == "dropped" and kind.ignored is not None:
        cut |= kind.ignored(detections.shape(kind.name))
    images = detections.images.codes
    for cap, codes in (
        (protocol.max_per_image, images),
        (protocol.max_per_category, detections.categories.codes),
    ):
        if cap is not None:
            cut |= beyond_cap(cap, codes, detections.scores, ~cut)
    for flag in protocol.left_out:
        flagged = getattr(ground_truth, flag, None)
        if flagged is not None:
            objects = flagged if objects is None else objects | flagged
    if kind.left_out is not None:
        apart = _by_kind(ground_truth, ground_truth, protocol)
        objects = apart if objects is None else objects | apart
        cut |= _by_kind(detections, ground_truth, protocol)
    if protocol.scored_images == "detected":
        there = np.zeros(detections.images.ids.size, np.bool_)
        there[images[~cut]] = True
        unseen = ~np.isin(ground_truth.images.ids, detections.images.ids[there])[ground_truth.images.codes]
        objects = unseen if objects is None else objects | unseen
    return objects, cut if cut.any() else None


def _by_kind(table: GroundTruth | Detections, ground_truth: GroundTruth, protocol: Protocol) -> NDArray[np.bool_]:
    """Return a mask, shape (n,), of the rows that are left out because of their location, such as bicycles in nuScenes'
    racks.
    """
    kind = find(protocol.iou_type)
    assert kind.left_out is not None
    names = dict(zip(ground_truth.categories.ids.tolist(), ground_truth.categories.names, strict=True))
    known = np.array([names.get(one, "") for one in table.categories.ids.tolist()], str)
    classes = known[table.categories.codes] if known.size else np.empty(len(table), str)
    images = locate(table.images.ids, ground_truth.images.ids)[table.images.codes]
    return kind.left_out(table.shape(kind.name), images, classes, ground_truth.images.surroundings, protocol)


def beyond_cap(
    cap: int, groups: NDArray[np.int32], scores: NDArray[np.float64], counted: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return a mask, shape (n,), of the detections beyond the `cap` best in their group. Only detections in the mask
    `counted` are compared; of detections with equal scores the first are best.
    """
    out = np.zeros(groups.size, np.bool_)
    sizes = np.bincount(groups[counted], minlength=int(groups.max(initial=-1)) + 1)
    crowded = counted & (sizes > cap)[groups] if sizes.max(initial=0) > cap else out
    if not crowded.any():
        return out
    rows = np.flatnonzero(crowded)
    order = rows[np.lexsort((-scores[rows], groups[rows]))]  # stable: the first of equal scores stays first
    first = np.searchsorted(groups[order], groups[order])
    out[order] = np.arange(order.size) - first >= cap
    return out


def rounded(values: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Return values correctly rounded to some decimals, as Python does. `numpy.round` may be wrong for values near the
    middle between two decimals, so Python rounds these values.
    """
    out = np.round(values, decimals)
    if not decimals:  # rounding to integers is exact
        return out
    scaled = np.abs(values) * 10.0**decimals
    doubtful = (np.abs(scaled - np.floor(scaled) - 0.5) < 1e-3) | (scaled > 1e12)
    out[doubtful] = [round(value, decimals) for value in values[doubtful].tolist()]
    return out


def boxes_of(table: GroundTruth | Detections) -> Boxes:
    """Return the column of boxes."""
    boxes = table.shapes[BOXES]
    assert isinstance(boxes, Boxes)
    return boxes


def _with_boxes(table: T, boxes: Boxes) -> T:
    return replace(table, shapes={**table.shapes, BOXES: boxes})


def corners_of(boxes: Boxes) -> NDArray[np.float64]:
    """Return x1, y1, x2, y2 of boxes, shape (n, 4)."""
    if not boxes.sizes:
        return boxes.table
    return np.concatenate((boxes.table[:, :2], boxes.table[:, :2] + boxes.table[:, 2:]), axis=1)


def _with_corners(table: T, corners: NDArray[np.float64]) -> T:
    sizes = boxes_of(table).sizes
    if sizes:
        corners = np.concatenate((corners[:, :2], corners[:, 2:] - corners[:, :2]), axis=1)
    return _with_boxes(table, Boxes(readonly(corners, np.float64), sizes))


def _by_corners(table: T) -> T:
    """Return a table whose boxes are given by their corners."""
    return _with_boxes(table, Boxes(readonly(corners_of(boxes_of(table)), np.float64), False))


def _in_single(table: T) -> T:
    """Return a table with box corners rounded to single precision. Box sizes are computed from these corners in single
    precision.
    """
    return _with_corners(table, corners_of(boxes_of(table)).astype(np.float32))
