"""A whole evaluation of boxes on detmap's kernels: records to columns, to a tally, to pycocotools' arrays."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.detection import DetectionResult, match
from detmap.errors import DetmapError, OptionError
from detmap.ids import Categories, Ids, Images, index_ids, locate
from detmap.kernels import readonly
from detmap.protocols import COCO as PRESET
from detmap.pycocotools.coco import Results, integers
from detmap.shapes import Boxes
from detmap.tables import Detections, GroundTruth
from detmap.tally import Tally

_CHUNK = 512  # records that stay in the processor's cache while their fields are read one after the other


class UnusualError(Exception):
    """Ids, numbers or params with which only the faithful path gives pycocotools' answer."""


#: What `take` raises for such, and for records that pycocotools refuses in its own way.
UNUSUAL = (
    UnusualError, DetmapError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError, struct.error
)  # fmt: skip


@dataclass(frozen=True)
class Snapshot:
    """What `COCOeval.evaluate` found, and how to look at it again pair by pair.

    Attributes
    ----------
    params : Params
        As they were; a copy.
    gts : list of dict
        The ground truth.
    dts : callable
        Returns the detections' records.
    tally : Tally
        What was matched.
    """

    params: Any
    gts: list[Any]
    dts: Callable[[], list[Any]]
    tally: Tally

    def accumulate(self, p: Any) -> dict[str, NDArray[np.float64]] | None:
        """Return precision, recall and scores under the params `p`; None where they ask for something else."""
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
        result = DetectionResult(replace(self.tally, protocol=protocol))
        made = {}
        for name in ("precision", "recall", "scores"):
            made[name] = np.array(getattr(result, name), order="C")
            made[name][np.isnan(made[name])] = -1.0
        return made


def take(p: Any, coco_gt: Any, coco_dt: Any, frozen: Any) -> Snapshot:
    """Match the boxes that the params `p`, of which `frozen` is a copy, select.

    Raises
    ------
    One of `UNUSUAL`
        Where only the faithful path has the answer.
    """
    if p.useCats not in (0, 1):
        raise UnusualError
    protocol = replace(
        PRESET,
        name="pycocotools",
        iou_thresholds=_floats(p.iouThrs),
        area_ranges=tuple((f"range {a}", float(low), float(high)) for a, (low, high) in enumerate(p.areaRng)),
        max_dets=tuple(p.maxDets),
        use_categories=bool(p.useCats),
    )
    images, categories = _ids(list(p.imgIds)), _ids(list(p.catIds))
    if not images.size or not categories.size or np.unique(categories).size < categories.size:
        raise UnusualError
    filters = {"imgIds": p.imgIds, "catIds": p.catIds} if p.useCats else {"imgIds": p.imgIds}

    def dts() -> list[Any]:
        records: list[Any] = coco_dt.loadAnns(coco_dt.getAnnIds(**filters))
        return records

    gts = coco_gt.loadAnns(coco_gt.getAnnIds(**filters))
    sought, truth = _Columns.read(gts, scored=False).visited(gts, images, categories)
    crowd, areas = np.array([g["iscrowd"] for g in sought] or [0]), _numbers([g["area"] for g in sought])
    if crowd.dtype.kind not in "bi" or ((crowd != 0) & (crowd != 1)).any() or not _ids([g["id"] for g in sought]).all():
        raise UnusualError
    ours = type(coco_dt).__module__.startswith("detmap.pycocotools.")  # another's class may select in its own way
    results: Results | None = coco_dt.__dict__.get("_results") if ours else None
    if results is not None:
        found = _Columns.read(results.records, results.images).visited((), images, categories)[1]
    else:
        records = dts()
        seen, found = _Columns.read(records).visited(records, images, categories)
        own = _numbers([d["area"] for d in seen])
        if (_ids([d["id"] for d in seen]) <= 0).any() or (own != found.boxes[:, 2] * found.boxes[:, 3]).any():
            raise UnusualError
    if not (found.plain() and truth.plain()):
        raise UnusualError

    tally = match(
        GroundTruth(
            images=Images(truth.images.ids, truth.images.codes),
            categories=Categories(truth.categories.ids, truth.categories.codes, tuple(map(str, p.catIds))),
            shapes={"bbox": Boxes(truth.boxes, sizes=True)},
            areas=readonly(areas, np.float64),
            crowd=readonly(crowd[: areas.size], np.bool_),
            difficult=readonly(np.zeros(areas.size), np.bool_),
        ),
        Detections(
            images=found.images,
            categories=found.categories,
            shapes={"bbox": Boxes(found.boxes, sizes=True)},
            scores=found.scores,
        ),
        protocol,
    )
    low, high = protocol.area_ranges[-1][1:]
    for gt in gts:
        gt["ignore"] = gt.get("iscrowd", False)
    for gt, area in zip(sought, areas.tolist(), strict=True):
        gt["_ignore"] = int(bool(gt["iscrowd"]) or area < low or area > high)
    return Snapshot(frozen, gts, dts, tally)


@dataclass(frozen=True)
class _Columns:
    """The fields of records: ids, boxes (n, 4) and scores (n,) or (0,) as float64."""

    images: Ids
    categories: Ids
    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]

    @classmethod
    def read(cls, records: list[Any], images: Ids | None = None, *, scored: bool = True) -> _Columns:
        count = len(records)
        boxes, scores = np.empty((count, 4)), np.empty(count if scored else 0)
        image_ids: list[Any] = []
        category_ids: list[Any] = []
        for start in range(0, count, _CHUNK):
            chunk = records[start : start + _CHUNK]
            rows = slice(start, start + len(chunk))
            if images is None:
                image_ids.append(_ids([record["image_id"] for record in chunk]))
            category_ids.append(_ids([record["category_id"] for record in chunk]))
            if scored:
                scores[rows] = _numbers([record["score"] for record in chunk])
            listed = [record["bbox"] for record in chunk]
            if set(map(type, listed)) != {list}:
                raise UnusualError
            x, y, width, height = zip(*listed, strict=True)
            packed = struct.pack(f"{4 * len(chunk)}d", *x, *y, *width, *height)
            boxes[rows] = np.frombuffer(packed).reshape(4, -1).T
            # pycocotools multiplies width and height as they come: in single precision if that is what they are
            if scored and not (_python_numbers(width) and _python_numbers(height)):
                raise UnusualError
        return cls(images or _indexed(image_ids), _indexed(category_ids), boxes, scores)

    def visited(
        self, records: Sequence[Any], images: NDArray[Any], categories: NDArray[Any]
    ) -> tuple[Sequence[Any], _Columns]:
        """Return what lies on these images and is of these categories, with their places for ids."""
        image, category = _places(self.images, images), _places(self.categories, categories)
        boxes, scores = self.boxes, self.scores
        kept = (image >= 0) & (category >= 0)
        if not kept.all():
            image, category, boxes = image[kept], category[kept], boxes[kept]
            scores = scores[kept] if scores.size else scores
            records = [record for record, keep in zip(records, kept, strict=False) if keep]
        return records, _Columns(
            Ids(images, readonly(image, np.int32)),
            Ids(readonly(np.arange(categories.size), np.int64), readonly(category, np.int32)),
            readonly(boxes, np.float64),
            readonly(scores, np.float64),
        )

    def plain(self) -> bool:
        """Return whether these are proper boxes, whose areas neither vanish nor are huge, with scores that can be ranked."""
        sizes = self.boxes[:, 2:]
        areas = sizes[:, 0] * sizes[:, 1]
        return bool(
            np.isfinite(self.boxes.sum())
            and sizes.min(initial=0) >= 0
            and areas.max(initial=0) < 2**53  # else a product of integers may be more exact
            and not sizes[areas == 0].all(axis=1).any()
            and not np.isnan(self.scores).any()
        )


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(np.asarray(values, np.float64).tolist())


def _ids(values: list[Any]) -> NDArray[Any]:
    """Return ids as an array, where they are all integers or all strings."""
    try:
        return integers(values)
    except struct.error:
        if set(map(type, values)) != {str}:
            raise
        return np.array(values)


def _python_numbers(values: Sequence[Any]) -> bool:
    """Return whether these are Python's own floats and integers, or numpy's of the same precision.

    A sum tells faster than a look at every type: it is a float only where every number is one of Python's.
    """
    return type(sum(values)) is float or set(map(type, values)) <= {float, int, np.float64}


def _numbers(values: list[Any]) -> NDArray[np.float64]:
    """Return numbers as float64, where that changes none of them."""
    if type(sum(values)) is float:
        return np.frombuffer(struct.pack(f"{len(values)}d", *values))
    array = np.array(values)
    if array.dtype.kind == "i" and (np.abs(array) < 2**53).all():
        return array.astype(np.float64)
    if array.dtype != np.float64 and array.dtype != np.float32:
        raise UnusualError
    return array.astype(np.float64, copy=False)


def _indexed(chunks: list[NDArray[Any]]) -> Ids:
    if len({chunk.dtype.kind for chunk in chunks}) > 1:
        raise UnusualError
    return index_ids(np.concatenate(chunks) if chunks else (), source="records", field="id")


def _places(table: Ids, known: NDArray[Any]) -> NDArray[np.int32]:
    """Return the place of each record's id among the `known` ids, which stand in any order without repeats; or -1."""
    order = np.argsort(known, kind="stable")
    place = locate(table.ids, known[order])
    place[place >= 0] = order[place[place >= 0]]
    return np.asarray(place.astype(np.int32)[table.codes]) if place.size else np.empty(0, np.int32)
