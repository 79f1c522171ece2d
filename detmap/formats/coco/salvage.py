"""Read COCO's files that strict reading refuses, record by record.

Only ``detmap check`` uses this module, because an evaluation raises an error for the first invalid record.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.coco.check import _checked_record
from detmap.formats.coco.inspection import is_side, with_facts
from detmap.formats.coco.lines import holds_lines
from detmap.formats.coco.shapes import read_values
from detmap.formats.registry import Refused, Salvaged
from detmap.reading.options import Role
from detmap.reading.scanner import RESULT_LISTS
from detmap.reading.sources import Source, read_bytes
from detmap.shapes import KINDS, Kind, Place
from detmap.shapes.boxes import FARTHEST
from detmap.shapes.kinds import BOX_FIELD, BOXES

#: Number of records read at a time. If a record of the block is invalid, each half of the block is read separately.
_BLOCK = 256

#: Code of the finding if the ids in a field are partly integers and partly strings.
_OF_FIELDS = {"image_id": "image_ids_type", "category_id": "category_ids_type"}

# ------------------------------------------------------------------------------------------------------------------ salvage


def salvage(source: Source, role: Role, kinds: Sequence[str], ground_truth: GroundTruth | None) -> Salvaged | None:
    """Read a file record by record, without the invalid records; None if the file is not COCO's JSON."""
    from detmap.formats.coco.records import check_once

    data, name = read_bytes(source, role.replace("_", " "))
    text = bytes(data).removeprefix(b"\xef\xbb\xbf")
    try:
        if holds_lines(source, name):
            document: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            check_once(text, ("images", "categories", *RESULT_LISTS), name)
            document = json.loads(text)
    except (ValueError, RecursionError):  # ValueError includes the InputError for a repeated list
        return None
    try:
        if role == "ground_truth":
            return _truth(document, kinds, name)
        return _results(document, kinds, ground_truth, name)
    except InputError:  # even the remaining records cannot be read
        return None


def _truth(document: Any, kinds: Sequence[str], name: str) -> Salvaged | None:
    from detmap.formats.coco.read import read_coco

    lists = {"images": "image", "categories": "category", "annotations": "annotation"}
    if not isinstance(document, Mapping) or any(not isinstance(document.get(key), list) for key in lists):
        return None
    refused: list[Refused] = []
    kept: dict[str, list[Any]] = {}
    places: dict[str, list[int]] = {}
    for key, what in lists.items():
        unit = "" if what == "annotation" else what
        kept[key], places[key], wrong = _one_by_one(document[key], what, name, kinds, unit)
        refused += wrong
    sizes = {one["id"]: _size(one) for one in kept["images"]}
    for field, listed, code in (
        ("image_id", set(sizes), "unlisted_images"),
        ("category_id", {one["id"] for one in kept["categories"]}, "unlisted_categories"),
    ):
        _sort_out(kept, places, refused, partial(_unlisted, field, listed, code))
    _sort_out(kept, places, refused, _flagged)
    good = _with_shapes(
        kept["annotations"], kinds, [sizes[one["image_id"]] for one in kept["annotations"]], "annotation "
    )
    refused += [Refused(places["annotations"][row], code, problem) for row, (code, problem) in good.wrong.items()]
    rows = [row for row in range(len(kept["annotations"])) if row not in good.wrong]
    clean = {
        "images": kept["images"],
        "categories": kept["categories"],
        "annotations": [kept["annotations"][row] for row in rows],
    }
    tables = [read_coco(clean, iou_type=kind, invalid_boxes="miss") for kind in kinds]
    facts = msgspec.json.encode({"images": [_plain_image(one) for one in kept["images"]]})
    table = with_facts(tables[0], facts)
    return _joined(table, tables, name), np.array([places["annotations"][row] for row in rows], np.int64), refused


def _results(document: Any, kinds: Sequence[str], truth: GroundTruth | None, name: str) -> Salvaged | None:
    from detmap.formats.coco.read import read_coco_results

    if isinstance(document, Mapping):
        held = [document[key] for key in RESULT_LISTS if isinstance(document.get(key), list)]
        document = held[0] if len(held) == 1 else None
    if not isinstance(document, list):
        return None
    kept: dict[str, list[Any]] = {}
    places: dict[str, list[int]] = {}
    kept["annotations"], places["annotations"], refused = _one_by_one(document, "result", name, kinds, "")
    known: dict[Any, tuple[int, int]] = {}
    if truth is not None and truth.images.sizes is not None:
        known = dict(zip(truth.images.ids.tolist(), map(tuple, truth.images.sizes.tolist()), strict=True))
    records = kept["annotations"]
    good = _with_shapes(records, kinds, [known.get(one["image_id"], (0, 0)) for one in records], "")
    refused += [Refused(places["annotations"][row], code, problem) for row, (code, problem) in good.wrong.items()]
    rows = [row for row in range(len(records)) if row not in good.wrong]
    left = [records[row] for row in rows]
    read = kinds if left else [BOXES]
    tables = [read_coco_results(left, iou_type=kind, invalid_boxes="miss") for kind in read]
    return _joined(tables[0], tables, name), np.array([places["annotations"][row] for row in rows], np.int64), refused


def _joined(table: Any, tables: Sequence[GroundTruth | Detections], name: str) -> Any:
    """Return `table` with the geometry columns of all `tables`."""
    shapes = {kind: column for other in reversed(tables) for kind, column in other.shapes.items()}
    kinds = tuple(dict.fromkeys(kind for other in tables for kind in other.kinds))
    return replace(table, shapes=shapes, kinds=kinds, source=name)


def _one_by_one(
    records: Sequence[Any], what: str, name: str, kinds: Sequence[str], unit: str
) -> tuple[list[Any], list[int], list[Refused]]:
    """Return the valid records, their indices, and the refused records. If ids are of two types, records with ids of
    the less common type are refused too.
    """
    shaped = next((KINDS[kind] for kind in kinds if KINDS[kind].reader is not None), None)
    kept, places, refused = [], [], []
    for place, record in enumerate(records):
        try:
            checked = _checked_record(record, place, what, name, shaped if what in ("annotation", "result") else None)
            box = checked.get(BOX_FIELD)
            if box is not None and not all(abs(value) <= FARTHEST for value in box):
                raise InputError("a box must be four finite numbers", field=BOX_FIELD)
            if what == "annotation" and checked.get("area") is not None and checked["area"] < 0:
                raise InputError("an area must be a finite number of 0 or more", field="area")
        except InputError as error:
            refused.append(Refused(place, "bad_values", _said(error), unit))
            continue
        kept.append(record)
        places.append(place)
    for field in ("id",) if what in ("image", "category") else ("image_id", "category_id"):
        text = Counter(isinstance(record[field], str) for record in kept)
        if len(text) == 2:
            most = text.most_common(1)[0][0]
            code = _OF_FIELDS.get(field, "bad_values")
            wrong = [row for row, record in enumerate(kept) if isinstance(record[field], str) != most]
            refused += [Refused(places[row], code, "ids are of two types", unit) for row in wrong]
            left = set(wrong)
            kept = [record for row, record in enumerate(kept) if row not in left]
            places = [place for row, place in enumerate(places) if row not in left]
    return kept, places, refused


def _said(error: InputError) -> str:
    return f"{error.field}: {error.problem}" if error.field else error.problem


def _sort_out(
    kept: dict[str, list[Any]],
    places: dict[str, list[int]],
    refused: list[Refused],
    judge: Callable[[Any], tuple[str, str] | None],
) -> None:
    """Move annotations from `kept` to `refused` if `judge` returns a code and a problem for them."""
    records, at = kept["annotations"], places["annotations"]
    said = [judge(record) for record in records]
    refused += [Refused(place, *what) for place, what in zip(at, said, strict=True) if what is not None]
    kept["annotations"] = [record for record, what in zip(records, said, strict=True) if what is None]
    places["annotations"] = [place for place, what in zip(at, said, strict=True) if what is None]


def _unlisted(field: str, listed: set[Any], code: str, record: Any) -> tuple[str, str] | None:
    return None if record[field] in listed else (code, f"{field}: is not listed")


def _flagged(record: Any) -> tuple[str, str] | None:
    """Refuse flags other than 0 and 1."""
    for field in ("iscrowd", "ignore"):
        if record.get(field) not in (None, 0, 1):
            return "bad_values", f"{field}: is neither 0 nor 1"
    return None


class _Shaped:
    """The records whose mask or other geometry is invalid, with the reason for each."""

    def __init__(self) -> None:
        self.wrong: dict[int, tuple[str, str]] = {}


def _with_shapes(records: Sequence[Any], kinds: Sequence[str], sizes: Sequence[Any], prefix: str) -> _Shaped:
    made = _Shaped()
    boxes = [record.get(BOX_FIELD) or (float("nan"),) * 4 for record in records]
    table = np.array(boxes, np.float64).reshape(-1, 4)
    known = np.array(sizes, np.int64).reshape(-1, 2)
    for name in kinds:
        kind = KINDS[name]
        if kind.reader is None:
            continue
        for begin in range(0, len(records), _BLOCK):
            rows = [row for row in range(begin, min(begin + _BLOCK, len(records))) if row not in made.wrong]
            _halved(records, kind, rows, table, known, prefix, made)
    return made


def _halved(
    records: Sequence[Any],
    kind: Kind,
    rows: list[int],
    boxes: NDArray[np.float64],
    sizes: NDArray[np.int64],
    prefix: str,
    made: _Shaped,
) -> None:
    """Read the geometries of some records; if a geometry is invalid, read each half of the records separately."""
    if not rows:
        return
    at = np.array(rows)
    try:
        reader, parts = read_values(kind, [records[row].get(kind.field) for row in rows])
        reader.column(parts, Place("", prefix, sizes[at], boxes[at], {}))
    except InputError as error:
        if len(rows) == 1:
            code = kind.refused.get(error.problem, kind.refused[""])
            without = not records[rows[0]].get(kind.field)
            made.wrong[rows[0]] = ("missing_shapes" if without else code, error.problem)
            return
        half = len(rows) // 2
        for part in (rows[:half], rows[half:]):
            _halved(records, kind, part, boxes, sizes, prefix, made)


def _size(image: Any) -> tuple[int, int]:
    """Return height and width of an image, 0 if invalid."""
    sides = [image.get(key) for key in ("height", "width")]
    return (int(sides[0]), int(sides[1])) if all(map(is_side, sides)) else (0, 0)


def _plain_image(image: Any) -> dict[str, Any]:
    """Return the id, file name, height and width of an image."""
    height, width = _size(image)
    name = image.get("file_name")
    return {"id": image["id"], "file_name": name if isinstance(name, str) else None, "height": height, "width": width}
