"""Write COCO's JSON: ground truth, lists of results, and results with a record per line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, OptionError
from detmap.formats.coco.federated import LISTS
from detmap.formats.file_names import shapes_lost
from detmap.formats.registry import FORMATS, Writing, packed
from detmap.reading.options import Path
from detmap.reading.sources import compressed
from detmap.shapes import Boxes, Column, Kind, find
from detmap.shapes.kinds import BOX_FIELD, BOXES
from detmap.system.whole_files import write

#: Number of records encoded at a time.
_BLOCK = 1 << 14

_LINES = packed(".jsonl", ".ndjson")


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write ground truth as a document with images, annotations and categories."""
    if os.fspath(path).endswith(_LINES):
        raise OptionError("JSON Lines hold detections: write ground truth into a file that ends in .json")
    boxes, rounded = sized(table)
    parts = [
        b'{"images":[',
        b",".join(_records(_images(table), table.source)),
        b'],"categories":[',
        b",".join(_records(_categories(table), table.source)),
        b'],"annotations":[',
        b",\n".join(_records(_annotations(table, boxes), table.source)),
        b"]}\n",
    ]
    _write(path, b"".join(parts))
    lost = {"corners": 0 if table.box_sizes else len(table), "rounded_boxes": rounded}
    return {**lost, "shapes": _unwritable(table)}


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write detections as a list of results, or as a record per line if the file's name says so."""
    infinite = ~np.isfinite(table.scores)
    if infinite.any():
        raise InputError(
            "a score must be finite to be written as JSON",
            source=table.source,
            record=int(np.argmax(infinite)),
            field="score",
            value=float(table.scores[np.argmax(infinite)]),
        )
    boxes, rounded = sized(table)
    kept, differing = _own_boxes(table, boxes)
    records = _records(_results(table, boxes, kept), table.source)
    if os.fspath(path).endswith(_LINES):
        whole = b"".join(part.replace(b",\n", b"\n") + b"\n" for part in records)
    else:
        whole = b"[" + b",\n".join(records) + b"]\n"
    _write(path, whole)
    lost = {"corners": 0 if table.box_sizes else len(table), "rounded_boxes": rounded, "areas": differing}
    return {**lost, "shapes": _unwritable(table)}


def _unwritable(table: GroundTruth | Detections) -> int:
    """Return the number of records with geometries that COCO has no field for. Raises `InputError` if the table
    has such geometries but no boxes.
    """
    names = [name for name in table.shapes if name != BOXES and _kind_of(table, name).records is None]
    if names and BOXES not in table.kinds:
        able = [one.name for one in FORMATS.values() if one.holds and names[0] in one.holds and one.write_ground_truth]
        raise InputError(
            f"COCO's records have no field for shapes of the kind {names[0]!r}, and there are no boxes besides",
            source=table.source,
            remedy=f"formats that hold them and can be written: {', '.join(able) or 'none'}",
        )
    return shapes_lost(table, [name for name in table.shapes if name not in names])


def _kind_of(table: GroundTruth | Detections, name: str) -> Kind:
    """Return the kind of geometry in the column `name`. If several kinds share the column, ``table.kinds`` decides."""
    return next((own for own in map(find, table.kinds) if own.stored == name), find(name))


def sized(table: GroundTruth | Detections) -> tuple[NDArray[np.float64], int]:
    """Return boxes as x, y, width, height, and the number of boxes whose far corner changes by rounding."""
    boxes = table.boxes
    if table.box_sizes:
        return boxes, 0
    out = boxes.copy()
    out[:, 2:] -= boxes[:, :2]
    return out, int(np.count_nonzero((out[:, :2] + out[:, 2:] != boxes[:, 2:]).any(axis=1)))


def _own_boxes(table: Detections, boxes: NDArray[np.float64]) -> tuple[NDArray[np.bool_], int]:
    """Return a mask of the detections to write with a box, and the number of areas that the file cannot preserve."""
    # For detections with masks or keypoints, the reader takes the areas from the boxes if there are boxes, else from
    # the masks or keypoints.
    all_of_them = np.ones(len(table), np.bool_)
    others = [column for name, column in table.shapes.items() if name != BOXES]
    if not others or table.areas is None or not len(table):
        return all_of_them, 0
    shapes = _first_list(table, others[0])
    bounds, shape_areas = shapes.bounds(), shapes.areas()
    assert isinstance(bounds, Boxes)
    around = (boxes == bounds.table).all(axis=1) if bounds.sizes else np.zeros(len(table), np.bool_)
    wanted = np.where(np.isnan(table.areas), shape_areas, table.areas)
    best = all_of_them, len(table) + 1
    for kept in (all_of_them, ~around, ~(around & np.isnan(table.areas))):
        of_boxes = np.where(kept, boxes[:, 2] * boxes[:, 3], shape_areas)
        found = shape_areas if not kept[0] else of_boxes
        differing = int(np.count_nonzero(found != wanted))
        if differing < best[1]:
            best = kept, differing
    return best


def _first_list(table: Detections, column: Column) -> Column:
    """Return the geometries from which the reader derives boxes and areas. If poses have several lists of keypoints, only
    the first list counts.
    """
    for kind in map(find, table.kinds):
        if kind.lists and kind.part is not None:
            return kind.part(column, (0, kind.lists[kind.field]), True, table.source)  # type: ignore[no-any-return]
    return column


def _images(table: GroundTruth) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of images."""
    records: list[dict[str, Any]] = [{"id": one} for one in table.images.values.tolist()]
    if table.images.names is not None:
        for record, name in zip(records, table.images.names, strict=True):
            if name:
                record["file_name"] = name
    if table.images.sizes is not None:
        for record, (height, width) in zip(records, table.images.sizes.tolist(), strict=True):
            if height and width:
                record["height"], record["width"] = height, width
    for field, lists in zip(LISTS, (table.negatives, table.not_exhaustive, table.present), strict=True):
        own = {} if lists is None else lists.by_image(table.images.ids, table.categories.ids)
        for record in records:
            if record["id"] in own:
                record[field] = own[record["id"]]
    if table.images.crowd_index is not None:
        for record, value in zip(records, table.images.crowd_index.tolist(), strict=True):
            if value == value:
                record["crowdIndex"] = value
    yield records


def _categories(table: GroundTruth) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of categories."""
    pairs = zip(table.categories.values.tolist(), table.category_names, strict=True)
    records: list[dict[str, Any]] = [{"id": one, "name": name} for one, name in pairs]
    for record, frequency in zip(records, table.categories.frequencies or (), strict=False):
        if frequency:
            record["frequency"] = frequency
    yield records


def _annotations(table: GroundTruth, boxes: NDArray[np.float64]) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of objects."""
    images, categories = table.images.values.tolist(), table.categories.values.tolist()
    for rows in _blocks(len(table)):
        columns = (
            table.images.codes[rows].tolist(),
            table.categories.codes[rows].tolist(),
            boxes[rows].tolist(),
            table.areas[rows].tolist(),
            table.crowd[rows].tolist(),
        )
        records: list[dict[str, Any]] = [
            {
                "id": number,
                "image_id": images[image],
                "category_id": categories[category],
                BOX_FIELD: box,
                "area": area,
                "iscrowd": int(crowd),
            }
            for number, image, category, box, area, crowd in zip(
                range(rows.start + 1, rows.stop + 1), *columns, strict=True
            )
        ]
        for row in np.flatnonzero(table.difficult[rows]).tolist():
            records[row]["ignore"] = 1
        _with_named(
            records, {name: values[rows] for name, values in (*table.part_flags.items(), *table.fields.items())}
        )
        if table.group_of is not None:
            for record, flag in zip(records, table.group_of[rows].tolist(), strict=True):
                record["is_group_of"] = int(flag)
        yield _with_shapes(records, table, rows)


def _results(table: Detections, boxes: NDArray[np.float64], kept: NDArray[np.bool_]) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of detections."""
    images, categories = table.images.values.tolist(), table.categories.values.tolist()
    for rows in _blocks(len(table)):
        columns = (
            table.images.codes[rows].tolist(),
            table.categories.codes[rows].tolist(),
            boxes[rows].tolist(),
            table.scores[rows].tolist(),
        )
        records: list[dict[str, Any]] = [
            {"image_id": images[image], "category_id": categories[category], BOX_FIELD: box, "score": score}
            for image, category, box, score in zip(*columns, strict=True)
        ]
        _with_named(records, {name: values[rows] for name, values in table.more_scores.items()})
        for row in np.flatnonzero(~kept[rows]).tolist():
            del records[row][BOX_FIELD]
        yield _with_shapes(records, table, rows)


def _blocks(count: int) -> Iterator[slice]:
    for begin in range(0, count, _BLOCK):
        yield slice(begin, min(begin + _BLOCK, count))


def _with_named(records: list[dict[str, Any]], columns: Mapping[str, NDArray[Any]]) -> None:
    """Add the values of columns to records, except NaN."""
    for name, values in columns.items():
        for record, value in zip(records, values.tolist(), strict=True):
            if value == value:
                record[name] = value


def _with_shapes(records: list[dict[str, Any]], table: GroundTruth | Detections, rows: slice) -> list[dict[str, Any]]:
    """Add the fields of all shapes other than boxes to records."""
    for name, column in table.shapes.items():
        kind = _kind_of(table, name)
        if name == BOXES or kind.records is None:
            continue
        for record, fields in zip(records, kind.records(column.take(np.arange(rows.start, rows.stop))), strict=True):
            record.update(fields)
    return records


def _records(blocks: Iterator[list[dict[str, Any]]], source: str) -> Iterator[bytes]:
    """Yield the JSON of blocks of records, a record per line, without the enclosing brackets."""
    # Numbers have the fewest digits that round-trip.
    encode = msgspec.json.Encoder().encode
    for block in blocks:
        try:
            yield b",\n".join(map(encode, block))
        except UnicodeEncodeError:
            raise InputError("an id or a name is no text that UTF-8 can hold", source=source) from None


def _write(path: Path, data: bytes) -> None:
    name = os.fspath(path)
    write(name, compressed(data, name))
