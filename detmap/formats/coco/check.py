"""Check parsed COCO documents record by record, and raise an error that names the first invalid record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from detmap.choices import is_number
from detmap.errors import InputError, is_id, is_integer, shorten
from detmap.reading.scanner import GROUND_TRUTH_ONLY, RESULT_LISTS
from detmap.reading.unlike import listed
from detmap.shapes import KINDS, Kind
from detmap.shapes.kinds import BOX_FIELD, SHIPPED_COUNTS

#: Maximum length of an id in characters.
LONGEST_ID = 256

#: Required fields of a record.
FIELDS = {
    "image": ("id",),
    "category": ("id",),
    "annotation": ("image_id", "category_id", BOX_FIELD, "area"),
    "result": ("image_id", "category_id", BOX_FIELD, "score"),
}
_REMEDIES = {
    "area": "give it in square pixels: it decides between small, medium and large",
    BOX_FIELD: "a box is [x, y, width, height]",
    "score": "give each detection its confidence",
}

_NO_LIST = "is not a list of detections but "
_SECTIONS = "ground truth has images, annotations and categories"
_LIST = 'a result file is [{"image_id": …, "category_id": …, "bbox": […], "score": …}, …]'


def _results_within(document: Mapping[str, Any], name: str) -> Any:
    """Return an object's list of results, or raise the error that says why the object has no such list."""
    found = [key for key in RESULT_LISTS if key in document]
    if len(found) > 1:
        raise InputError(f"has both {' and '.join(found)}", source=name, remedy="keep the list of detections alone")
    records = document[found[0]] if found else None
    first = records[0] if isinstance(records, list | tuple) and records else None
    scored = isinstance(first, Mapping) and "score" in first
    if GROUND_TRUTH_ONLY & set(document) and not scored:
        raise InputError(
            "is ground truth where detections were expected",
            source=name,
            remedy="are the arguments swapped? The ground truth comes first",
        )
    if not found:
        raise InputError(_NO_LIST + _kind(document) + held_by(document), source=name, remedy=_within(document) or _LIST)
    if not isinstance(records, Sequence) or isinstance(records, str | bytes):
        raise InputError(f"must be a list, not {_kind(records)}", source=name, field=found[0], remedy=_LIST)
    return records


def _within(document: Mapping[str, Any]) -> str | None:
    """Return advice if an object seems to hold results in another layout, else None."""
    values = [*islice(document.items(), 100)]
    for key, value in values:
        if isinstance(value, list) and value and isinstance(value[0], Mapping) and "image_id" in value[0]:
            return f"its list {shorten(key)} may be meant: give that list alone, or call it 'predictions'"
    if len(values) > 1 and all(isinstance(value, list) for _, value in values):
        return f"lists by image or by column are not read: write a record for each detection, or CSV; {_LIST}"
    return None


def held_by(record: Any) -> str:
    """Return the end of a message that names the fields of an object, or of the first object in a list."""
    first = record[0] if isinstance(record, list | tuple) and record else record
    names = [str(key) for key in first] if isinstance(first, Mapping) else []
    return f" with {listed(names, 6)}" if names else ""


def _closest(record: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Describe a record in an error message: its fields, and another format if the record resembles that format more."""
    from detmap.formats.tools.recognition import RECORDS

    near = {name: needed & record.keys() for name, needed in RECORDS.items()}
    best = max(near, key=lambda name: len(near[name]) / len(RECORDS[name]))
    has = f"the record has {listed([str(key) for key in record], 6)}" if record else "the record is empty"
    if not near[best] or len(near[best]) <= len(record.keys() & set(fields)):
        return has
    return f"{has}, which comes close to the format {best} but lacks {listed(sorted(RECORDS[best] - record.keys()))}"


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", dict: "an object", list: "a list", str: "a string", type(None): "null"}
    if isinstance(value, Sequence) and type(value) not in kinds:
        return "a list"
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


def checked_results(document: Any, name: str, kind: Kind | None = None) -> list[dict[str, Any]]:
    """Return the records of a list of results, or of an object that holds such a list, as plain Python values."""
    if isinstance(document, Mapping):
        document = _results_within(document, name)
    if not isinstance(document, Sequence) or isinstance(document, str | bytes):
        raise InputError(_NO_LIST + _kind(document) + held_by(document), source=name, remedy=_LIST)
    return [_checked_record(record, i, "result", name, kind) for i, record in enumerate(document)]


def checked_ground_truth(document: Any, name: str, kind: Kind | None = None) -> Mapping[str, Any]:
    """Return the images, categories and annotations of ground truth as plain Python values."""
    if not isinstance(document, Mapping):
        if isinstance(document, list) and document and isinstance(document[0], dict) and "score" in document[0]:
            raise InputError(
                "is a list of detections where ground truth was expected",
                source=name,
                remedy="are the arguments swapped? The ground truth comes first",
            )
        problem = f"is not COCO ground truth but {_kind(document)}"
        if held_by(document):
            problem += f" of objects{held_by(document)}"
        raise InputError(problem, source=name, remedy=_SECTIONS)
    checked: dict[str, Any] = {}
    for section, what in (("images", "image"), ("categories", "category"), ("annotations", "annotation")):
        records = document.get(section)
        if not isinstance(records, Sequence) or isinstance(records, str | bytes):
            problem = "is missing" if section not in document else f"must be a list, not {_kind(records)}"
            there = "" if section in document else f"; there is {listed(list(map(str, document)), 6) or 'nothing'}"
            raise InputError(problem, source=name, field=section, remedy=_SECTIONS + there)
        shape = kind if section == "annotations" else None
        checked[section] = [_checked_record(record, i, what, name, shape) for i, record in enumerate(records)]
    if kind is not None:
        checked["sizes"] = [
            {"size": [_side(image.get(key)) for key in ("height", "width")]} for image in document["images"]
        ]
    return checked


def _side(value: Any) -> float:
    """Return the height or width of an image, NaN if invalid."""
    good = is_number(value) and abs(value) < 2**32
    return float(value) if good else float("nan")


def _checked_record(record: Any, index: int, kind: str, name: str, shape: Kind | None = None) -> dict[str, Any]:
    """Return the record's fields as plain Python values, or raise the error that names what is wrong."""
    # A record with a mask or another geometry needs neither a box nor an area.
    place: dict[str, Any] = {"source": name, "record": index if kind == "result" else f"{kind} {index}"}
    if not isinstance(record, Mapping):
        raise InputError(f"must be an object, not {_kind(record)}", **place, remedy=_LIST if kind == "result" else None)
    out: dict[str, Any] = {}
    for field in FIELDS[kind]:
        if shape is not None and field in (BOX_FIELD, "area") and _nothing(record.get(field)):
            out[field] = None
            continue
        if field not in record or (kind == "result" and field == BOX_FIELD and _nothing(record[field])):
            other = _other_kind(record) if field == BOX_FIELD else None
            if other is None:
                panoptic = "segments_info" in record
                remedy = _REMEDIES.get(field) or _closest(record, FIELDS[kind])
                remedy = "panoptic segmentation is scored by detmap pq" if panoptic else remedy
                raise InputError("is missing", **place, field=field, remedy=remedy)
            remedy = f"it has {other.field}: iou_type={other.name!r} (--iou-type {other.name}) scores that"
            if kind == "result" and index == 0:
                raise BoxlessError(other, "is missing", **place, field=field, remedy=remedy)
            raise InputError("is missing", **place, field=field, remedy=remedy)
        value = record[field]
        if field == BOX_FIELD:
            out[field] = _checked_box(value, place)
        elif field in ("area", "score"):
            out[field] = _number(value, {**place, "field": field}, _REMEDIES[field])
        else:
            value = value.item() if isinstance(value, np.generic) else value
            if not is_id(value):
                raise InputError("must be an integer or a string", **place, field=field, value=value)
            out[field] = value
    for field in {"annotation": ("id", "iscrowd", "ignore"), "category": ("name",)}.get(kind, ()):
        value = record.get(field)
        value = value.item() if isinstance(value, np.generic) else value
        allowed: tuple[type, ...] = (str,) if field == "name" else (int, str) if field == "id" else (int, float)
        if value is not None and not isinstance(value, allowed):
            raise InputError(f"must not be {_kind(value)}", **place, field=field, value=value)
        out[field] = value
    if shape is not None:
        out["shape"] = record.get(shape.field)
        for field in dict.fromkeys((*SHIPPED_COUNTS, *shape.counts)):
            count = record.get(field)
            count = count.item() if isinstance(count, np.generic) else count
            if count is not None and not is_integer(count):
                raise InputError("must be an integer", **place, field=field, value=count)
            if count is not None and not -(2**63) <= count < 2**63:
                raise InputError("is beyond 64 bits", **place, field=field, value=count)
            out[field] = count
    return out


class BoxlessError(InputError):
    """Raised if the first result has no box, but a mask or another geometry. The reader then computes all boxes from the
    geometries, as pycocotools does.
    """

    def __init__(self, kind: Kind, problem: str, **place: Any) -> None:
        super().__init__(problem, **place)
        self.kind = kind


def _other_kind(record: Mapping[str, Any]) -> Kind | None:
    """Return the kind of shape of a record without a box."""
    for kind in KINDS.values():
        if kind.reader is not None and not _nothing(record.get(kind.field)):
            return kind
    return None


def _nothing(value: Any) -> bool:
    """Return whether a field counts as missing: null, or an empty list."""
    return value is None or (isinstance(value, list | tuple) and not value)


def _checked_box(value: Any, place: dict[str, Any]) -> tuple[float, ...]:
    place = {**place, "field": BOX_FIELD}
    numbers = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(numbers, Sequence) or isinstance(numbers, str | bytes):
        raise InputError(f"must be a list of 4 numbers, not {_kind(value)}", **place, remedy=_REMEDIES[BOX_FIELD])
    if len(list(islice(numbers, 5))) != 4:
        if not isinstance(numbers, list | tuple):  # a lazily decoded list, which len() would decode to its end
            raise InputError("is a list of more or fewer than 4 numbers", **place, remedy=_REMEDIES[BOX_FIELD])
        raise InputError(
            f"has {len(numbers)} numbers where 4 are expected", **place, value=numbers, remedy=_REMEDIES[BOX_FIELD]
        )
    return tuple(_number(number, place, _REMEDIES[BOX_FIELD], shown=numbers) for number in numbers)


def _number(value: Any, place: dict[str, Any], remedy: str, shown: Any = None) -> float:
    value = value.item() if isinstance(value, np.generic) else value
    shown = value if shown is None else shown
    if not is_number(value):
        raise InputError(f"must be a number, not {_kind(value)}", **place, value=shown, remedy=remedy)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number != number or number in (float("inf"), float("-inf")):
        raise InputError("must be a finite number", **place, value=shown, remedy=remedy)
    return number
