"""Write CSV and TSV with the columns of a table, and with numbers that round-trip. Boxes are the only shapes that are
written."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from detmap.data.ids import Ids
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.file_names import check_scores, lost_names, shapes_lost, unused
from detmap.formats.registry import Writing, unpacked_name
from detmap.reading.options import Path
from detmap.reading.sources import compressed
from detmap.system.whole_files import write

_SIZES, _CORNERS = ("x", "y", "width", "height"), ("x1", "y1", "x2", "y2")


def write_ground_truth(table: GroundTruth, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a row per object, and a row per image without objects."""
    count = table.images.values.size
    alone = np.flatnonzero(np.bincount(table.images.codes, minlength=count) == 0)
    codes = np.concatenate([table.images.codes, alone]).astype(np.int64)
    empty = [""] * alone.size
    columns: dict[str, list[Any]] = _ids(table, codes, len(empty))
    if table.images.names is not None and "image" not in columns:
        _check(table.images.names, table.source, "image")
        columns["image"] = [table.images.names[code] for code in codes.tolist()]
    if "category_id" in columns:
        _check(table.category_names, table.source, "category")
        columns["category"] = [table.category_names[code] for code in table.categories.codes.tolist()] + empty
    _add_boxes(columns, table, empty)
    columns["area"] = [*map(repr, table.areas.tolist()), *empty]
    groups = np.zeros(0, np.bool_) if table.group_of is None else table.group_of
    for name, flags in (("crowd", table.crowd), ("difficult", table.difficult), ("IsGroupOf", groups)):
        if flags.any():
            columns[name] = [*flags.astype(int).tolist(), *empty]
    for name, values in table.fields.items():
        _check([name], table.source, "fields", least=1)
        if name in columns:
            raise InputError("is the name of another column", source=table.source, field=name)
        columns[name] = [*("" if value != value else repr(value) for value in values.tolist()), *empty]
    if table.images.sizes is not None:
        for name, place in (("image_width", 1), ("image_height", 0)):
            columns[name] = [side or "" for side in table.images.sizes[codes, place].tolist()]
    _write(path, columns, table.source)
    renamed = "category_id" not in columns and table.category_names != tuple(table.categories.values.tolist())
    return {
        "empty_categories": unused(table.categories.codes, table.categories.ids.size),
        "category_names": len(table.category_names) if renamed else 0,
        "image_names": 0 if "image_id" in columns else lost_names(table),
        "shapes": shapes_lost(table, ()),
    }


def write_detections(table: Detections, path: Path, writing: Writing) -> Mapping[str, int]:
    """Write a row per detection."""
    check_scores(table)
    columns = _ids(table, table.images.codes, 0)
    columns["score"] = list(map(repr, table.scores.tolist()))
    _add_boxes(columns, table, [])
    _write(path, columns, table.source)
    return {"shapes": shapes_lost(table, ())}


def _ids(table: GroundTruth | Detections, images: Any, more: int) -> dict[str, list[Any]]:
    """Return the columns of images and categories. Titles end in ``_id`` if the ids are integers."""
    out: dict[str, list[Any]] = {}
    pairs: tuple[tuple[str, Ids, Any], ...] = (
        ("image", table.images, images),
        ("category", table.categories, table.categories.codes),
    )
    for name, ids, codes in pairs:
        values = ids.values.tolist()
        integers = ids.values.dtype.kind == "i" and ids.values.size > 0
        if not integers:
            _check(values, table.source, name, least=1)
        cells = [values[code] for code in codes.tolist()]
        out[f"{name}_id" if integers else name] = cells + [""] * (more if name == "category" else 0)
    return out


def _check(texts: Iterable[str], source: str, field: str, least: int = 0) -> None:
    """Refuse text that would not round-trip in a cell, such as text with surrounding blanks."""
    for text in texts:
        if text != text.strip() or not text.isprintable() or not least <= len(text) <= 256:
            raise InputError("cannot be written as a cell", source=source, field=field, value=text)


def _add_boxes(columns: dict[str, list[Any]], table: GroundTruth | Detections, empty: list[str]) -> None:
    for name, column in zip(_SIZES if table.box_sizes else _CORNERS, table.boxes.T, strict=True):
        columns[name] = [*map(repr, column.tolist()), *empty]


def _write(path: Path, columns: Mapping[str, Iterable[Any]], source: str) -> None:
    name = os.fspath(path)
    plain = unpacked_name(name)
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter="\t" if plain.endswith(".tsv") else ",", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    try:
        data = out.getvalue().encode()
    except UnicodeEncodeError:
        raise InputError("an id or a name is no text that UTF-8 can hold", source=source) from None
    write(name, compressed(data, name))
