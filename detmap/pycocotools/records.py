"""Convert pycocotools' records to columns: ids, scores, areas, and boxes, masks or poses."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Ids, index_ids, locate
from detmap.errors import DetmapError
from detmap.kernels import readonly
from detmap.masks import Masks
from detmap.pycocotools.coco import integers
from detmap.shapes import Boxes
from detmap.shapes.keypoints import Keypoints, rows_of
from detmap.shapes.masks import MaskColumn

#: Modules of data sets whose ``annToRLE`` makes masks as pycocotools does.
_KNOWN = ("detmap.pycocotools.coco", "detmap.lvis.lvis", "pycocotools.coco")
_CHUNK = 512  # number of records that stay in the processor's cache while their fields are read in turn
#: Limit below which a product of two integers, or a sum of two squares, is exact in float64.
_EXACT = 2**25


class UnusualError(Exception):
    """Ids, numbers or params with which only the faithful path gives pycocotools' answer."""


@dataclass(frozen=True)
class Columns:
    """The fields of records: ids, boxes (n, 4) or (0, 4), and scores (n,) or (0,) as float64."""

    images: Ids
    categories: Ids
    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]

    @classmethod
    def read(cls, records: list[Any], images: Ids | None = None, *, scored: bool = True, boxed: bool = True) -> Columns:
        """Read the fields of all records; boxes and scores if requested, and images if not given.

        Raises
        ------
        UnusualError, or what a lookup raises
            For missing fields, and unusual numbers.
        """
        count = len(records)
        boxes, scores = np.empty((count if boxed else 0, 4)), np.empty(count if scored else 0)
        image_ids: list[Any] = []
        category_ids: list[Any] = []
        for start in range(0, count, _CHUNK):
            chunk = records[start : start + _CHUNK]
            rows = slice(start, start + len(chunk))
            if images is None:
                image_ids.append(ids_of([record["image_id"] for record in chunk]))
            category_ids.append(ids_of([record["category_id"] for record in chunk]))
            if scored:
                scores[rows] = numbers([record["score"] for record in chunk])
            if not boxed:
                continue
            listed = [record["bbox"] for record in chunk]
            if set(map(type, listed)) != {list}:
                raise UnusualError
            x, y, width, height = zip(*listed, strict=True)
            packed = struct.pack(f"{4 * len(chunk)}d", *x, *y, *width, *height)
            boxes[rows] = np.frombuffer(packed).reshape(4, -1).T
            # pycocotools multiplies width and height in their own type, possibly float32
            if scored and not (_python_numbers(width) and _python_numbers(height)):
                raise UnusualError
        return cls(images or _indexed(image_ids), _indexed(category_ids), boxes, scores)

    def visited(self, images: NDArray[Any], categories: NDArray[Any]) -> tuple[NDArray[np.bool_] | None, Columns]:
        """Return which records lie on these images and are of these categories, and them with their places for ids.

        None stands for all.
        """
        image, category = _places(self.images, images), _places(self.categories, categories)
        boxes, scores = self.boxes, self.scores
        kept: NDArray[np.bool_] | None = (image >= 0) & (category >= 0)
        if kept is not None and kept.all():
            kept = None
        if kept is not None:
            image, category = image[kept], category[kept]
            boxes = boxes[kept] if boxes.size else boxes
            scores = scores[kept] if scores.size else scores
        if np.isnan(scores).any():
            raise UnusualError
        return kept, Columns(
            Ids(images, readonly(image, np.int32)),
            Ids(readonly(np.arange(categories.size), np.int64), readonly(category, np.int32)),
            readonly(boxes, np.float64),
            readonly(scores, np.float64),
        )


def chosen(records: Sequence[Any], rows: NDArray[np.bool_] | None) -> Sequence[Any]:
    """Return the records of the rows that `Columns.visited` kept."""
    return records if rows is None else [record for record, keep in zip(records, rows, strict=True) if keep]


# ------------------------------------------------------------------------------------------------------------- shapes


def plain_boxes(boxes: NDArray[np.float64]) -> Boxes:
    """Return a column of regular boxes, whose areas neither underflow nor are huge; raise `UnusualError` for other
    boxes.
    """
    sizes = boxes[:, 2:]
    areas = sizes[:, 0] * sizes[:, 1]
    if not (
        np.isfinite(boxes.sum())
        and sizes.min(initial=0) >= 0
        and areas.max(initial=0) < 2**53  # otherwise a product of integers may be more exact
        and not sizes[areas == 0].all(axis=1).any()
    ):
        raise UnusualError
    return Boxes(boxes, sizes=True)


def compressed(records: list[Any]) -> bool:
    """Return whether all masks are compressed strings, which evaluations leave unchanged."""
    try:
        return {type(record["segmentation"]["counts"]) for record in records} <= {str, bytes}
    except (LookupError, TypeError):
        return False


class Segmentations:
    """The masks of records, as returned by ``annToRLE`` of their data set.

    Parameters
    ----------
    records : list of dict
        What ``loadAnns`` returned.
    coco : COCO
        Their data set, with the sizes of images.

    Raises
    ------
    UnusualError, or what ``annToRLE`` raises
        If records lack such masks.
    """

    def __init__(self, records: list[Any], coco: Any) -> None:
        if getattr(type(coco).annToRLE, "__module__", None) not in _KNOWN:
            raise UnusualError  # derived classes may make other masks
        images = coco.imgs
        sizes = {i: (images[i]["height"], images[i]["width"]) for i in {record["image_id"] for record in records}}
        self._records = records
        self._rles = [record["segmentation"] for record in records]
        self._converted: list[int] = []
        polygons = [row for row, mask in enumerate(self._rles) if type(mask) is list]
        even = [row for row in polygons if all(map(_is_even, self._rles[row])) and self._rles[row]]
        try:
            drawn = Masks.from_polygons(
                [self._rles[row] for row in even], [sizes[records[row]["image_id"]] for row in even]
            )
        except DetmapError:
            even, drawn = [], Masks.from_rle([])
        for row, rle in zip(even, drawn.to_rle(), strict=True):
            self._rles[row] = {"size": rle["size"], "counts": rle["counts"].encode()}
            self._converted.append(row)
        for row, mask in enumerate(self._rles):
            if type(mask) is list or type(mask["counts"]) is list:
                self._rles[row] = coco.annToRLE(records[row])
                self._converted.append(row)

    def column(self, rows: NDArray[np.bool_] | None) -> MaskColumn:
        """Return the masks of some records, None for all."""
        return MaskColumn.of(Masks.from_rle(chosen(self._rles, rows)))

    def write(self) -> None:
        """Write into the records what pycocotools' ``evaluate`` does."""
        for row in self._converted:
            self._records[row]["segmentation"] = self._rles[row]


def _is_even(polygon: Any) -> bool:
    """Return whether a value is a regular polygon of at least three points."""
    return len(polygon) >= 6 and len(polygon) % 2 == 0 and not hasattr(polygon[0], "__len__")


def poses(records: Sequence[Any], count: int, labelled: NDArray[np.int64] | None = None) -> Keypoints:
    """Return the poses of records, `count` points each.

    Raises
    ------
    UnusualError, or what a lookup raises
        For another number of points, and unusual numbers.
    """
    listed = [record["keypoints"] for record in records]
    if not listed:
        return Keypoints.of(rows_of(np.empty((0, 0))), labelled)
    if set(map(type, listed)) != {list}:
        raise UnusualError
    table = np.array(listed)
    if table.shape != (len(listed), 3 * count) or table.dtype not in (np.float64, np.int64):
        raise UnusualError
    if not (np.abs(table) < _EXACT).all():
        raise UnusualError
    return Keypoints.of(rows_of(table.reshape(len(listed), 3 * count)), labelled)


def exact(boxes: NDArray[np.float64], areas: NDArray[np.float64]) -> bool:
    """Return whether similarities of poses with these boxes and areas equal those computed from the records' own numbers."""
    return bool((np.abs(boxes) < 2**52).all() and ((areas >= 0) & (areas < 2**52)).all())


# ------------------------------------------------------------------------------------------------------------- numbers


def ids_of(values: list[Any]) -> NDArray[Any]:
    """Return ids as an array, if all are integers or all are strings."""
    try:
        return integers(values)
    except struct.error:
        if set(map(type, values)) != {str}:
            raise
        return np.array(values)


def _python_numbers(values: Sequence[Any]) -> bool:
    """Return whether these are Python's floats and integers, or numpy's of the same precision."""
    # A sum is faster than a check of every type: it is a float only if all numbers are Python's.
    return type(sum(values)) is float or set(map(type, values)) <= {float, int, np.float64}


def numbers(values: list[Any]) -> NDArray[np.float64]:
    """Return numbers as float64, if that changes none of them."""
    if type(sum(values)) is float:
        return np.frombuffer(struct.pack(f"{len(values)}d", *values))
    if any(issubclass(kind, np.unsignedinteger | np.bool_) for kind in set(map(type, values))):
        raise UnusualError  # negating it changes or overflows it
    array = np.array(values)
    if array.dtype.kind == "i" and (np.abs(array) < 2**53).all():
        return array.astype(np.float64)
    if array.dtype != np.float64 and array.dtype != np.float32:
        raise UnusualError
    return array.astype(np.float64, copy=False)


def areas_of(records: Sequence[Any]) -> NDArray[np.float64]:
    """Return the areas of records as float64, if that changes none of them; those of masks are numpy's uint32."""
    values = [record["area"] for record in records]
    if not values or type(values[0]) is not np.uint32:
        return numbers(values)
    array = np.array(values)
    if array.dtype.kind not in "iu":
        raise UnusualError
    return array.astype(np.float64)


def _indexed(chunks: list[NDArray[Any]]) -> Ids:
    if len({chunk.dtype.kind for chunk in chunks}) > 1:
        raise UnusualError
    return index_ids(np.concatenate(chunks) if chunks else (), source="records", field="id")


def _places(ids: Ids, known: NDArray[Any]) -> NDArray[np.int32]:
    """Return the index of each record's id among the `known` ids, which are distinct and unordered; or -1."""
    order = np.argsort(known, kind="stable")
    place = locate(ids.ids, known[order])
    place[place >= 0] = order[place[place >= 0]]
    return np.asarray(place.astype(np.int32)[ids.codes]) if place.size else np.empty(0, np.int32)
