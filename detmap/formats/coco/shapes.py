"""Convert masks and keypoints of COCO's records to columns: from the scanner for large files, else from parsed
records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Ids, index_ids, locate
from detmap.data.tables import GroundTruth
from detmap.errors import InputError
from detmap.formats.registry import FORMATS
from detmap.kernels import passing, readonly
from detmap.shapes import Column, Kind, Place, Reader, find
from detmap.shapes.boxes import over_rows
from detmap.shapes.kinds import BOX_FIELD, BOXES


def reader_of(iou_type: str, size: int, source: str = "read_coco") -> tuple[Kind, tuple[str, Reader] | None]:
    """Return the kind of shape called `iou_type`. Also return the name of its field in COCO's records and a
    reader for a document of `size` bytes. For boxes, return None instead of field name and reader.
    """
    kind = find(iou_type)
    if kind.reader is None:
        if kind.column_name != BOXES:
            able = [one.name for one in FORMATS.values() if kind.name in (one.holds or ())]
            raise InputError(
                f"COCO's files hold no shapes of the kind {kind.name!r}",
                source=source,
                remedy=f"files of these formats do: {', '.join(able) or 'none'}",
            )
        return kind, None
    return kind, (kind.field, kind.reader(size))


def result_shapes(
    kind: Kind, reader: Reader, parts: Sequence[Any], columns: dict[str, Any], truth: GroundTruth | None, name: str
) -> dict[str, Any]:
    """Return arguments of `Detections.from_arrays` from columns whose ``boxes`` may be NaN or None."""
    boxes: NDArray[np.float64] | None = columns["boxes"]
    sizes = None
    if kind.sized and truth is not None and truth.images.sizes is not None:
        table = index_ids(columns["image_ids"], source=name, field="image_id")
        columns = {**columns, "image_ids": table}
        known = np.concatenate([truth.images.sizes, np.zeros((1, 2), np.int64)])[locate(table.ids, truth.images.ids)]
        sizes = passing((table.codes.size, 2), np.int64)
        given = sizes
        over_rows(lambda begin, end: known.take(table.codes[begin:end], 0, given[begin:end], "clip"), len(given))
    column, notices = reader.column(parts, Place(name, "", sizes, boxes, {}))
    columns = {**columns, "shapes": {kind.column_name: column}}
    if boxes is None or not len(boxes):
        return {**columns, "boxes": None, "areas": column.areas(), "notices": notices}
    without = np.isnan(boxes[:, 0])
    # As in pycocotools, the first result decides whether the areas of boxes are used.
    areas = np.full(len(boxes), np.nan) if without[0] else boxes[:, 2] * boxes[:, 3]
    if without.any():
        notices = {**notices, "unused_boxes" if without[0] else "boxless_results": int((without != without[0]).sum())}
    return {**columns, "boxes": _filled(boxes, column), "areas": areas, "notices": notices}


def boxes_around(columns: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Replace the masks or keypoints in `columns` from `result_shapes` by the boxes around them; the areas are unchanged."""
    column = columns["shapes"][kind.column_name]
    if columns["boxes"] is not None:
        raise InputError("some results have boxes, and the first has none", source="", field=BOX_FIELD)
    notices = {code: count for code, count in columns["notices"].items() if code != "mask_sizes"}
    notices["boxes_of_shapes"] = len(column)
    return {**columns, "shapes": None, "boxes": _filled(None, column), "areas": column.areas(), "notices": notices}


def truth_shapes(
    kind: Kind,
    reader: Reader,
    parts: Sequence[Any],
    columns: dict[str, Any],
    fields: Mapping[str, NDArray[Any] | None],
    name: str,
) -> dict[str, Any]:
    """Return arguments of `GroundTruth.from_arrays` from columns whose ``boxes`` and ``areas`` may be NaN or None.
    Raises `InputError` for an annotation without a valid geometry. ``image_sizes`` are float64 on input, NaN if
    unknown.
    """
    given = columns["image_sizes"]
    good = (given >= 1) & (given < 2**32) & (given == np.floor(given))
    sizes = np.where(good.all(axis=1)[:, None], given, 0).astype(np.int64)
    of_images = _sizes_of(columns["image_ids"], columns["images"], sizes, name) if kind.sized else None
    boxes: NDArray[np.float64] | None = columns["boxes"]
    column, notices = reader.column(parts, Place(name, "annotation ", of_images, boxes, fields))
    filled = _filled(boxes, column)
    areas = columns["areas"]
    areas = np.full(len(column), np.nan) if areas is None else areas
    missing = np.isnan(areas)
    if missing.any() and kind.areas is None:
        raise InputError(
            "is missing",
            source=name,
            record=f"annotation {int(np.argmax(missing))}",
            field="area",
            remedy="give it in square pixels: it decides between small, medium and large",
        )
    areas = np.where(missing, np.maximum(filled[:, 2], 0) * np.maximum(filled[:, 3], 0), areas)
    notices = {**columns["notices"], **notices, "missing_area": int(missing.sum())}
    return {
        **columns,
        "shapes": {kind.column_name: column},
        "boxes": filled,
        "areas": areas,
        "image_sizes": sizes,
        "notices": {code: count for code, count in notices.items() if count},
    }


def _sizes_of(image_ids: Any, images: Any, sizes: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    """Return the size of each record's image, given the `sizes` of all images in order."""
    own, listed = (
        one if isinstance(one, Ids) else index_ids(one, source=name, field="image_id") for one in (image_ids, images)
    )
    known: NDArray[np.int64] = np.zeros((listed.ids.size + 1, 2), np.int64)
    known[listed.codes] = sizes
    order = np.argsort(listed.ids, kind="stable")
    place = locate(own.ids, listed.ids[order])
    return np.asarray(known[np.append(order, listed.ids.size)[place][own.codes]])


def _filled(boxes: NDArray[np.float64] | None, column: Column) -> NDArray[np.float64]:
    """Return boxes (x, y, width, height); a missing box is replaced by the box around the shape."""
    bounds = column.bounds()
    around = bounds.table
    if not bounds.sizes:
        around = np.concatenate((around[:, :2], around[:, 2:] - around[:, :2]), axis=1)
    if boxes is None:
        return around
    without = np.isnan(boxes[:, 0])
    return np.where(without[:, None], around, boxes) if without.any() else boxes


def read_values(kind: Kind, values: Sequence[Any]) -> tuple[Reader, list[Any]]:
    """Read geometries from parsed JSON values, which are None for records without a geometry. Return the reader, and a
    list with its result.
    """
    assert kind.reader is not None
    import msgspec

    texts = [b"" if value is None else msgspec.json.encode(plain(value)) for value in values]
    return read_texts(kind.reader, texts)


def read_texts(make: Callable[[int], Reader], texts: Sequence[bytes]) -> tuple[Reader, list[Any]]:
    """Read geometries from JSON texts, which are empty for records without a geometry. Return the reader, and a list
    with its result.
    """
    lengths = np.array([len(text) for text in texts], np.int64)
    stops = np.cumsum(lengths)
    spans = np.stack([stops - lengths, stops], axis=1)
    spans[lengths == 0] = -1
    data = readonly(np.frombuffer(b"".join([*texts, b" " * 8]), np.uint8), np.uint8)
    reader = make(data.size)
    return reader, [reader.read(data, 0, readonly(spans, np.int64))]


def plain(value: Any) -> Any:
    """Convert a value of a record, which may contain arrays and bytes, to JSON types."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        numbers = all(type(one) in (int, float) for one in value)
        return list(value) if numbers else [plain(one) for one in value]
    return value if isinstance(value, int | float | str | bool | None) else str(type(value))
