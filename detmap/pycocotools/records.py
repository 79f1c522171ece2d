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

#: Modules whose ``annToRLE`` returns the same masks as pycocotools.
_KNOWN = ("detmap.pycocotools.coco", "detmap.lvis.lvis", "pycocotools.coco")
_CHUNK = 512  # number of records that are processed together and fit the processor's cache
#: Limit below which a product of two integers, or a sum of two squares, is exact in float64.
_EXACT = 2**25


class UnusualError(Exception):
    """Raised for input that must be evaluated image by image to get pycocotools' result."""


@dataclass(frozen=True)
class Columns:
    """The fields of records as columns: ids, boxes of shape (n, 4), and scores of shape (n,); unread fields are empty."""

    images: Ids
    categories: Ids
    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]

    @classmethod
    def read(cls, records: list[Any], images: Ids | None = None, *, scored: bool = True, boxed: bool = True) -> Columns:
        """Read the fields of all records. `scored` and `boxed` tell whether scores and boxes are read. Image ids are
        read unless `images` is given.

        Raises
        ------
        UnusualError, or the error of a lookup
            If a field is missing, or a number is unusual.
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
            # pycocotools multiplies width and height in the given type, possibly float32.
            if scored and not (_python_numbers(width) and _python_numbers(height)):
                raise UnusualError
        return cls(images or _indexed(image_ids), _indexed(category_ids), boxes, scores)

    def visited(self, images: NDArray[Any], categories: NDArray[Any]) -> tuple[NDArray[np.bool_] | None, Columns]:
        """Return a mask of the records on the given images and of the given categories, and the columns of these records.

        The mask is None if all records are kept.
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
    """Return the records that the mask `rows` selects; None selects all records."""
    return records if rows is None else [record for record, keep in zip(records, rows, strict=True) if keep]


# ------------------------------------------------------------------------------------------------------------- shapes


def plain_boxes(boxes: NDArray[np.float64]) -> Boxes:
    """Return a column of boxes. Raise `UnusualError` for numbers that are not finite, for negative sizes, and for areas
    that underflow or reach 2**53.
    """
    sizes = boxes[:, 2:]
    areas = sizes[:, 0] * sizes[:, 1]
    if not (
        np.isfinite(boxes.sum())
        and sizes.min(initial=0) >= 0
        and areas.max(initial=0) < 2**53  # from 2**53 on, a product of integers may be more exact than floats
        and not sizes[areas == 0].all(axis=1).any()
    ):
        raise UnusualError
    return Boxes(boxes, sizes=True)


def compressed(records: list[Any]) -> bool:
    """Return whether all masks are compressed strings."""
    try:
        return {type(record["segmentation"]["counts"]) for record in records} <= {str, bytes}
    except (LookupError, TypeError):
        return False


class Segmentations:
    """The masks of records, as ``coco.annToRLE`` returns them.

    Parameters
    ----------
    records : list of dict
        Annotations, as ``loadAnns`` returns them.
    coco : COCO
        The data set of the records, with the sizes of images.

    Raises
    ------
    UnusualError, or an error of ``annToRLE``
        If a record has no valid mask.
    """

    def __init__(self, records: list[Any], coco: Any) -> None:
        if getattr(type(coco).annToRLE, "__module__", None) not in _KNOWN:
            raise UnusualError  # a derived class may return other masks
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
        """Return the masks of the records that `rows` selects; None selects all records."""
        return MaskColumn.of(Masks.from_rle(chosen(self._rles, rows)))

    def write(self) -> None:
        """Write compressed masks into the records, as pycocotools' ``evaluate`` does."""
        for row in self._converted:
            self._records[row]["segmentation"] = self._rles[row]


def _is_even(polygon: Any) -> bool:
    """Return whether a polygon is a flat list of at least three points."""
    return len(polygon) >= 6 and len(polygon) % 2 == 0 and not hasattr(polygon[0], "__len__")


def poses(records: Sequence[Any], count: int, labelled: NDArray[np.int64] | None = None) -> Keypoints:
    """Return the poses of records, with `count` points each.

    Raises
    ------
    UnusualError, or the error of a lookup
        If a pose has another number of points, or a number is unusual.
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
    """Return whether boxes and areas are small enough for OKS to be equal in float64 and in the records' number
    types.
    """
    return bool((np.abs(boxes) < 2**52).all() and ((areas >= 0) & (areas < 2**52)).all())


# ------------------------------------------------------------------------------------------------------------- numbers


def ids_of(values: list[Any]) -> NDArray[Any]:
    """Return ids as an array; raise struct.error unless all are integers or all are strings."""
    try:
        return integers(values)
    except struct.error:
        if set(map(type, values)) != {str}:
            raise
        return np.array(values)


def _python_numbers(values: Sequence[Any]) -> bool:
    """Return whether all values are Python's floats or integers, or numpy's float64."""
    # Summing is faster than checking every type. The sum is a Python float only if all numbers are Python's.
    return type(sum(values)) is float or set(map(type, values)) <= {float, int, np.float64}


def numbers(values: list[Any]) -> NDArray[np.float64]:
    """Return numbers as float64; raise `UnusualError` if float64 cannot represent a value exactly."""
    if type(sum(values)) is float:
        return np.frombuffer(struct.pack(f"{len(values)}d", *values))
    if any(issubclass(kind, np.unsignedinteger | np.bool_) for kind in set(map(type, values))):
        raise UnusualError  # pycocotools negates scores, which overflows or fails for these types
    array = np.array(values)
    if array.dtype.kind == "i" and (np.abs(array) < 2**53).all():
        return array.astype(np.float64)
    if array.dtype != np.float64 and array.dtype != np.float32:
        raise UnusualError
    return array.astype(np.float64, copy=False)


def areas_of(records: Sequence[Any]) -> NDArray[np.float64]:
    """Return the areas of records as float64; the areas of masks are numpy's uint32, other areas are read by `numbers`."""
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
    """Return the index of each record's id in `known` (-1: absent); `known` holds distinct ids in any order."""
    order = np.argsort(known, kind="stable")
    place = locate(ids.ids, known[order])
    place[place >= 0] = order[place[place >= 0]]
    return np.asarray(place.astype(np.int32)[ids.codes]) if place.size else np.empty(0, np.int32)
