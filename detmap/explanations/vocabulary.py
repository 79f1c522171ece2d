"""Changes that `explain --value` tries in addition to decisions of protocols: how files were written, and how the mean is
taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.federated import CategoryLists
from detmap.data.ids import Ids, used
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.preparation import boxes_of, corners_of
from detmap.kernels import readonly
from detmap.shapes.boxes import Boxes
from detmap.shapes.kinds import BOXES

Tables = tuple[GroundTruth, Detections]

#: Relative prior weight of each row of changes, divided evenly among the row's changes; 2 for rows that are not listed.
USUAL = {
    "min_score": 20.0,
    "curve": 10.0,
    "crowds": 10.0,
    "max_dets": 8.0,
    "max_per_image": 8.0,
    "iou_thresholds": 6.0,
    "pixels": 6.0,
    "id_zero": 6.0,
    "matching": 4.0,
    "scored_images": 4.0,
    "mean": 4.0,
    "use_categories": 3.0,
    "box_decimals": 3.0,
    "nms": 3.0,
    "other cuts": 3.0,
}

#: Minimum areas of detections or objects that are tried, in square pixels.
_AREAS = (16, 64, 100, 256, 1024)

#: Changes that only `explain --value` tries: decisions of a protocol, transformations of both tables (keys of `_WAYS`),
#: or other kinds of means ("mean").
WIDER: dict[str, tuple[dict[str, Any], ...]] = {
    "boxes": ({"boxes": "xywh rounded"}, {"boxes": "xywh truncated"}),
    "nms": (
        *({"nms": f"{overlap:g}"} for overlap in (0.3, 0.45, 0.5, 0.6, 0.65, 0.7)),
        *({"nms": f"{overlap:g} among all classes"} for overlap in (0.45, 0.5, 0.6, 0.7)),
    ),
    "twice": ({"twice": "detections"}, {"twice": "objects"}),
    "least_area": (
        *({"least_area": f"{area} of {what}"} for what in ("detections", "objects", "both") for area in _AREAS),
        *({"area_ranges": (("all", float(area), 1e10),)} for area in _AREAS),
    ),
    "mean": (
        {"mean": "absent classes 0"},
        {"mean": "absent classes 0 if detected"},
        {"mean": "by objects"},
        {"mean": "over images"},
    ),
    "recalls": (
        {"interpolation": "grid", "recall_thresholds": tuple((np.arange(1, 41) / 40).tolist()), "epsilon": 0.0},
    ),
    "other cuts": tuple({"min_score": cut / 100} for cut in range(2, 100) if cut not in (5, 10, 20, 25, 30, 40, 50)),
}

#: Rows of ascending numbers. Every fifth number is evaluated first; effects of the numbers in between are interpolated.
SMOOTH = ("other cuts",)


def treated(tables: Tables, name: str, how: str) -> Tables:
    """Return both tables after the transformation `name`. Unchanged tables are not copied."""
    return _WAYS[name](tables, how)


def _whole(tables: Tables, how: str) -> Tables:
    """Round x, y, width and height of detected boxes to whole numbers."""
    truth, found = tables
    boxes = boxes_of(found)
    table = boxes.table
    if not boxes.sizes:
        table = np.concatenate((table[:, :2], table[:, 2:] - table[:, :2]), axis=1)
    whole = np.round(table) if how == "xywh rounded" else np.trunc(table)
    if np.array_equal(whole, table):
        return tables
    shapes = {**found.shapes, BOXES: Boxes(readonly(whole, np.float64), True)}
    return truth, replace(found, shapes=shapes)


def _suppressed(tables: Tables, how: str) -> Tables:
    """Apply non-maximum suppression: remove detections that overlap a better detection on the same image by more than a
    threshold. In most variants, only detections of the same class are compared.
    """
    truth, found = tables
    threshold, classes = float(how.split()[0]), not how.endswith("all classes")
    codes = found.images.codes.astype(np.int64)
    if classes:
        codes = codes * max(found.categories.ids.size, 1) + found.categories.codes
    order = np.lexsort((-found.scores, codes))
    starts = np.flatnonzero(np.append(True, np.diff(codes[order]) != 0)[: order.size])
    sizes = np.diff(np.append(starts, order.size))
    corners, kept = corners_of(boxes_of(found))[order], np.ones(order.size, np.bool_)
    for size in np.unique(sizes[sizes > 1]).tolist():
        of = starts[sizes == size]
        step = max(1, 2_000_000 // size**2)
        for at in range(0, of.size, step):
            rows = of[at : at + step, None] + np.arange(size)
            kept[rows] = _greedy(_overlaps(corners[rows]) > threshold)
    return tables if kept.all() else (truth, found.take(np.sort(order[kept])))


def _overlaps(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pairwise IoU of the boxes of each group, shape (groups, n, n), from corners of shape (groups, n, 4)."""
    left, top, right, bottom = np.moveaxis(corners, -1, 0)
    shared = np.minimum(right[:, :, None], right[:, None, :]) - np.maximum(left[:, :, None], left[:, None, :])
    np.maximum(shared, 0, out=shared)
    high = np.minimum(bottom[:, :, None], bottom[:, None, :]) - np.maximum(top[:, :, None], top[:, None, :])
    shared *= np.maximum(high, 0, out=high)
    areas = np.maximum(right - left, 0) * np.maximum(bottom - top, 0)
    union = areas[:, :, None] + areas[:, None, :] - shared
    return np.asarray(np.divide(shared, union, out=np.zeros_like(shared), where=union > 0))


def _greedy(over: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask of the boxes that survive greedy suppression by better boxes, shape (groups, n)."""
    kept = np.ones(over.shape[:2], np.bool_)
    for at in range(over.shape[1] - 1):
        kept[:, at + 1 :] &= ~(over[:, at, at + 1 :] & kept[:, at, None])
    return kept


def _twice(tables: Tables, what: str) -> Tables:
    """Append a copy of every detection, or of every object."""
    truth, found = tables
    if what == "objects":
        return truth.take(np.tile(np.arange(len(truth)), 2)), found
    return truth, found.take(np.tile(np.arange(len(found)), 2))


def _large(tables: Tables, how: str) -> Tables:
    """Remove detections, objects or both whose boxes are smaller than a minimum area."""
    truth, found = tables
    least, _, what = how.split()
    of_truth, of_found = (boxes_of(one).areas() >= float(least) for one in tables)
    if what != "detections" and not of_truth.all():
        truth = truth.take(np.flatnonzero(of_truth))
    if what != "objects" and not of_found.all():
        found = found.take(np.flatnonzero(of_found))
    return truth, found


#: Transformations of files, in the order of application.
_WAYS: dict[str, Callable[[Tables, str], Tables]] = {
    "boxes": _whole,
    "nms": _suppressed,
    "twice": _twice,
    "least_area": _large,
}

#: The names of the transformations, in the order of application.
ORDER = tuple(_WAYS)

#: Maximum number of pairs of image and class for which the mean over images is tried.
_MOST_CELLS = 5000


class ByImage:
    """Tables in which every pair of image and class becomes a new class, so that each image is scored separately.
    `images` and `classes` hold the indices of each new class's image and original class in the ground truth.
    """

    def __init__(self, tables: Tables) -> None:
        truth, found = tables
        count = truth.categories.ids.size
        cells = truth.images.codes.astype(np.int64) * count + truth.categories.codes
        distinct, codes = np.unique(cells, return_inverse=True)
        self.images, self.classes = np.divmod(distinct, count)
        known = np.flatnonzero(np.isin(found.categories.ids, truth.categories.ids)[found.categories.codes])
        of_found = (
            np.searchsorted(truth.images.ids, found.images.ids)[found.images.codes[known]].astype(np.int64) * count
        )
        of_found += np.searchsorted(truth.categories.ids, found.categories.ids)[found.categories.codes[known]]
        there = np.isin(of_found, distinct)
        ids = readonly(np.arange(distinct.size), np.int64)
        names = tuple(map(str, ids.tolist()))
        found = replace(found.take(known[there]), classes=None)
        found_codes = Ids(ids, readonly(np.searchsorted(distinct, of_found[there]), np.int32))
        frequencies = truth.categories.frequencies
        categories = replace(
            truth.categories,
            ids=ids,
            codes=readonly(codes, np.int32),
            names=names,
            frequencies=None if frequencies is None else tuple(frequencies[k] for k in self.classes.tolist()),
        )
        lists = truth.not_exhaustive
        if lists is not None:
            rows = np.flatnonzero(lists.holds(self.images, self.classes, count))
            lists = CategoryLists.of_pairs(self.images[rows], rows, distinct.size, lists.listed)
        self.tables = (
            # every new class has objects and detections on one image only
            replace(truth, categories=categories, negatives=None, not_exhaustive=lists, present=None),
            replace(found, categories=used(found_codes, np.arange(len(found)))),
        )

    @property
    def few(self) -> bool:
        """Whether the number of new classes is small enough for scoring."""
        return bool(self.images.size <= _MOST_CELLS)

    def mean(self, values: NDArray[np.float64], category: int | None) -> float:
        """Return the mean over images of the value of the class `category` or, if it is None, of each image's mean over
        classes; NaN without values.
        """
        there = ~np.isnan(values) & (category is None or self.classes == category)
        if not there.any():
            return float("nan")
        counts = np.bincount(self.images[there])
        sums = np.bincount(self.images[there], values[there])
        return float(np.mean(sums[counts > 0] / counts[counts > 0]))
