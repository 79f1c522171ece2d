"""Evaluate all images at once on detmap's kernels, and return pycocotools' arrays of precision, recall and scores."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.federated import CategoryLists
from detmap.data.ids import Categories, Images, zeros
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.evaluate import match
from detmap.detection.precisions import Curves, recalls
from detmap.detection.protocols import COCO as PRESET
from detmap.detection.protocols import Protocol
from detmap.detection.tally import Tally
from detmap.errors import DetmapError, OptionError
from detmap.kernels import readonly
from detmap.pycocotools import records as reading
from detmap.pycocotools._curves import accumulate
from detmap.pycocotools.coco import Results
from detmap.pycocotools.records import Columns, Segmentations, UnusualError
from detmap.shapes import Boxes, Column

#: Values of `iouType` that `take` supports.
KINDS = ("bbox", "segm", "boundary", "keypoints")

#: Exceptions that `take` raises for unusual input, and for records that make pycocotools raise errors.
UNUSUAL = (
    UnusualError, DetmapError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError, struct.error
)  # fmt: skip


class Federated(NamedTuple):
    """LVIS's lists by image: categories verified to be absent, and categories that are not exhaustively annotated."""

    negatives: Mapping[Any, Any]
    not_exhaustive: Mapping[Any, Any]


@dataclass(frozen=True)
class Snapshot:
    """The outcome of `COCOeval.evaluate`, with access to the evaluated records.

    Attributes
    ----------
    params : Params
        A copy of the parameters.
    gts : list of dict
        The ground truth.
    dts : callable
        Returns the records of the detections.
    results : COCO
        The data set of the detections.
    tally : Tally
        The outcome of matching.
    """

    params: Any
    gts: list[Any]
    dts: Callable[[], list[Any]]
    results: Any
    tally: Tally

    def accumulate(self, p: Any) -> dict[str, NDArray[np.float64]] | None:
        """Return precision, recall and scores under the params `p`; None unless `p` selects what was evaluated."""
        own = self.params
        if not (
            list(p.imgIds) == own.imgIds
            and list(p.catIds) == (list(own.catIds) if own.useCats else [-1])
            and [tuple(r) for r in p.areaRng] == [tuple(r) for r in own.areaRng]
            and len(p.iouThrs) == len(own.iouThrs)
            and bool(p.useCats) == bool(own.useCats)
            and set(p.maxDets) <= set(own.maxDets)
        ):
            return None
        try:
            protocol = replace(self.tally.protocol, recall_thresholds=_floats(p.recThrs), max_dets=tuple(p.maxDets))
        except OptionError:
            return None
        tally = replace(self.tally, protocol=protocol).in_ranking_order()
        curves = Curves.of(tally, protocol.max_dets, True, None)
        arrays = {"precision": curves.precision, "recall": recalls(tally), "scores": curves.scores}
        made = {name: np.array(array, order="C") for name, array in arrays.items()}
        for array in made.values():
            array[np.isnan(array)] = -1.0
        return made

    def agrees(self, images: list[Any]) -> bool:
        """Return whether evaluation image by image, with `images` as ``evalImgs``, gives bit-identical arrays."""
        p = copy.copy(self.params)
        p.catIds = p.catIds if p.useCats else [-1]
        own, theirs = self.accumulate(p), accumulate(p, self.params, images)
        return own is None or all(own[name].tobytes() == theirs[name].tobytes() for name in own)


def take(
    p: Any,
    data: tuple[Any, Any],
    select: Callable[[Any, Mapping[str, Any]], list[Any]],
    frozen: Any,
    dilation: float | None = None,
    own_area: bool = True,
    federated: Federated | None = None,
) -> Snapshot:
    """Match the ground truth and results that the params `p` select; `frozen` is a copy of `p`. ``select(coco,
    filters)`` returns the annotations that pass the filters. `dilation` is the dilation ratio of boundaries. If
    `own_area` is true, keypoint similarity uses an object's ``area``, else a share of its box's area. `federated` holds
    LVIS's lists of categories, if there are any.

    Raises
    ------
    One of `UNUSUAL`
        If the right result requires evaluation image by image, as in pycocotools. Records are then unchanged.
    """
    coco_gt, coco_dt = data
    protocol = _protocol(p, dilation, own_area)
    if federated is not None:
        protocol = replace(protocol, judged="verified", not_exhaustive="ignored")
    images, categories = reading.ids_of(list(p.imgIds)), reading.ids_of(list(p.catIds))
    if not images.size or not categories.size or np.unique(categories).size < categories.size:
        raise UnusualError
    filters = {"imgIds": p.imgIds, "catIds": p.catIds} if p.useCats else {"imgIds": p.imgIds}

    gts = select(coco_gt, filters)
    truth = _Side.read(p, coco_gt, gts, None, images, categories, scored=False)
    sought = truth.records
    crowd, areas = np.array([g["iscrowd"] for g in sought] or [0]), reading.areas_of(sought)
    zero = _zeros([g["id"] for g in sought])
    if crowd.dtype.kind not in "bi" or ((crowd != 0) & (crowd != 1)).any():
        raise UnusualError
    if p.iouType == "keypoints":
        sides = truth.columns.boxes[:, 2:]
        if not reading.exact(truth.columns.boxes, areas if own_area else sides[:, 0] * sides[:, 1]):
            raise UnusualError
    points = [g["num_keypoints"] for g in gts] if p.iouType == "keypoints" else []
    results = _waiting(coco_dt, p.iouType)
    records = select(coco_dt, filters) if results is None else results.records

    def dts() -> list[Any]:
        return select(coco_dt, filters) if results is not None else records

    found = _Side.read(p, coco_dt, records, results, images, categories)
    lists = _lists(federated, truth.columns.images.ids, p.catIds)
    tally = match(
        GroundTruth(
            images=Images(truth.columns.images.ids, truth.columns.images.codes),
            categories=Categories(
                truth.columns.categories.ids, truth.columns.categories.codes, tuple(map(str, p.catIds))
            ),
            shapes=truth.shapes,
            areas=readonly(areas, np.float64),
            crowd=readonly(crowd[: areas.size], np.bool_),
            difficult=readonly(np.zeros(areas.size), np.bool_),
            zero_ids=readonly(zero, np.bool_) if zero.any() else None,
            negatives=lists[0],
            not_exhaustive=lists[1],
        ),
        Detections(
            images=found.columns.images,
            categories=found.columns.categories,
            shapes=found.shapes,
            scores=found.columns.scores,
            areas=_areas(found, results, p.iouType),
        ),
        protocol,
        iou_type=protocol.iou_type,
    )
    low, high = protocol.area_ranges[-1][1:]
    for gt in gts:
        gt["ignore"] = gt.get("iscrowd", False)
    for gt, count in zip(gts, points, strict=False):
        gt["ignore"] = count == 0 or gt["ignore"]
    for gt, area in zip(sought, areas.tolist(), strict=True):
        gt["_ignore"] = int(bool(gt["ignore"]) or area < low or area > high)
    for side in (truth, found):
        if side.masks is not None:
            side.masks.write()
    return Snapshot(frozen, gts, dts, coco_dt, tally)


def _lists(
    federated: Federated | None, images: NDArray[Any], categories: Any
) -> tuple[CategoryLists | None, CategoryLists | None]:
    """Return LVIS's two lists by image, with categories as indices."""
    if federated is None:
        return None, None
    place, wanted = {category: k for k, category in enumerate(categories)}, set(images.tolist())
    made = []
    for name, lists in federated._asdict().items():
        own = {
            image: [place[one] for one in given if one in place] for image, given in lists.items() if image in wanted
        }
        made.append(CategoryLists.of(own, images, np.arange(len(place)), "images", name))
    return made[0], made[1]


def _protocol(p: Any, dilation: float | None, own_area: bool) -> Protocol:
    """Return the params as a protocol."""
    changes: dict[str, Any] = {"iou_type": p.iouType}
    thresholds = _floats(p.iouThrs)
    if p.useCats not in (0, 1):
        raise UnusualError
    if p.iouType == "keypoints":
        sigmas = p.kpt_oks_sigmas
        if not p.useCats or type(sigmas) is not np.ndarray or sigmas.dtype != np.float64 or sigmas.ndim != 1:
            raise UnusualError
        changes |= {"sigmas": tuple(sigmas.tolist()), "oks_area": "area" if own_area else "bbox*0.53, ranges by area"}
    elif p.iouType != "bbox" and min(thresholds) <= 0:
        raise UnusualError  # such thresholds accept pycocotools' overlap of -1 between masks of different sizes
    if p.iouType == "boundary":
        changes["dilation"] = dilation
    return replace(
        PRESET,
        name="pycocotools",
        iou_thresholds=thresholds,
        area_ranges=tuple((f"range {a}", float(low), float(high)) for a, (low, high) in enumerate(p.areaRng)),
        max_dets=tuple(p.maxDets),
        use_categories=bool(p.useCats),
        id_zero="missed",
        **changes,
    )


def _zeros(ids: list[Any]) -> NDArray[np.bool_]:
    """Return a mask of annotation ids that pycocotools converts to 0; raise ValueError for a string that is no number."""
    known = reading.ids_of(ids)
    if known.dtype.kind != "U":
        return np.asarray(known == 0)
    for identity in ids:
        float(identity)
    return zeros(ids)


def _waiting(coco: Any, kind: str) -> Results | None:
    """Return the results in `coco` if `loadRes` has not computed their derived fields yet and the evaluation does not
    need these fields, else None.
    """
    if not type(coco).__module__.startswith("detmap.pycocotools."):  # other classes may select other records
        return None
    results: Results | None = coco.__dict__.get("_results")
    if results is None or (kind in ("bbox", "keypoints") and results.held not in ("bbox", kind)):
        return None
    if kind in ("segm", "boundary") and not (results.held != "keypoints" and reading.compressed(results.records)):
        return None
    return results


@dataclass(frozen=True)
class _Side:
    """The records of the ground truth or of the detections, and their fields as columns."""

    records: Sequence[Any]
    columns: Columns
    shapes: dict[str, Column]
    masks: Segmentations | None

    @classmethod
    def read(
        cls, p: Any, coco: Any, records: list[Any], results: Results | None, images: Any, categories: Any,
        *, scored: bool = True,
    ) -> _Side:  # fmt: skip
        """Read the records that are on the given images and of the given categories."""
        kind = p.iouType
        masks = Segmentations(records, coco) if kind in ("segm", "boundary") else None
        boxed = (
            kind == "bbox" or (kind == "keypoints" and not scored) or (results is not None and results.held == "bbox")
        )
        every = Columns.read(records, None if results is None else results.images, scored=scored, boxed=boxed)
        rows, columns = every.visited(images, categories)
        kept = reading.chosen(records, rows)
        shapes: dict[str, Column]
        if masks is not None:
            column = masks.column(rows)
            shapes = {"bbox": column.bounds(), "segm": column}
        elif kind == "keypoints":
            labelled = None if scored else np.array([record["num_keypoints"] for record in kept] or np.empty(0, int))
            if labelled is not None and labelled.dtype != np.int64:
                raise UnusualError
            poses = reading.poses(kept, len(p.kpt_oks_sigmas), labelled)
            shapes = {"bbox": poses.bounds() if scored else Boxes(columns.boxes, sizes=True), "keypoints": poses}
        else:
            shapes = {"bbox": reading.plain_boxes(columns.boxes)}
        return cls(kept, columns, shapes, masks)


def _areas(found: _Side, results: Results | None, kind: str) -> NDArray[np.float64] | None:
    """Return the area by which each detection is assigned to area ranges; None for the area of its geometry."""
    sides = found.columns.boxes[:, 2:]
    areas = sides[:, 0] * sides[:, 1]
    if results is None:
        own = reading.areas_of(found.records)
        if (reading.ids_of([d["id"] for d in found.records]) <= 0).any() or (kind == "bbox" and (own != areas).any()):
            raise UnusualError
        areas = own
    elif results.held != "bbox":
        return None
    if kind == "bbox":
        return None
    if not (np.abs(areas) < 2**53).all():
        raise UnusualError
    return readonly(areas, np.float64)


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(np.asarray(values, np.float64).tolist())
