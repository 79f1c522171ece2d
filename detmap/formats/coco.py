"""COCO JSON: ground truth (``instances_*.json``) and lists of results.

The library's typed decoder turns bytes into records at speed. Whatever it does not take goes through the checks at the end
of this file, which look for the first record that is wrong and say how.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError
from detmap.formats._source import Source, read_bytes
from detmap.tables import Detections, GroundTruth

Id = int | str

_LONGEST_ID = 1024


class _Image(msgspec.Struct, gc=False):
    id: Id


class _Category(msgspec.Struct, gc=False):
    id: Id
    name: str | None = None


class _Annotation(msgspec.Struct, gc=False):
    image_id: Id
    category_id: Id
    bbox: tuple[float, float, float, float]
    area: float
    id: Id | None = None
    iscrowd: int | bool | None = None
    ignore: int | float | bool | None = None


class _GroundTruth(msgspec.Struct, gc=False):
    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[_Category]


class _Result(msgspec.Struct, gc=False):
    image_id: Id
    category_id: Id
    bbox: tuple[float, float, float, float]
    score: float


_decode_ground_truth = msgspec.json.Decoder(_GroundTruth).decode
_decode_results = msgspec.json.Decoder(list[_Result]).decode
_FIELDS = {
    "image": ("id",),
    "category": ("id",),
    "annotation": ("image_id", "category_id", "bbox", "area"),
    "result": ("image_id", "category_id", "bbox", "score"),
}
_REMEDIES = {
    "area": "give it in square pixels: it decides between small, medium and large",
    "bbox": "a box is [x, y, width, height]",
    "score": "give each detection its confidence",
}


def read_coco(source: Source | Mapping[str, Any]) -> GroundTruth:
    """Read ground truth in COCO's JSON.

    Parameters
    ----------
    source : path, bytes, file object, or mapping
        ``images``, ``annotations`` with ``image_id``, ``category_id``, ``bbox`` (x, y, width, height), ``area`` and
        ``iscrowd``, and ``categories``; gzip too. A mapping is the parsed document.

    Returns
    -------
    GroundTruth
        One row per annotation, in file order. A missing ``iscrowd`` is taken as 0, and counted; ``ignore`` becomes
        `difficult`, which COCO's protocol does not look at (pycocotools overwrites it).

    Raises
    ------
    InputError
        Where the file is not such a document; names file, record, field and value.
    """
    if isinstance(source, Mapping):
        name = "ground truth"
        document = _records(_checked_ground_truth(source, name))
    else:
        data, name = read_bytes(source, "ground truth")
        document = _parse(data, name, _decode_ground_truth, _checked_ground_truth)
    images, annotations, categories = document.images, document.annotations, document.categories
    image_ids = _ids([r.id for r in images], name, "image", "id")
    category_ids = _ids([r.id for r in categories], name, "category", "id")
    own = [r.id for r in annotations if r.id is not None]
    return GroundTruth.from_arrays(
        image_ids=_ids([r.image_id for r in annotations], name, "annotation", "image_id"),
        category_ids=_ids([r.category_id for r in annotations], name, "annotation", "category_id"),
        boxes=_boxes(annotations),
        areas=np.array([r.area for r in annotations], np.float64),
        crowd=np.array([bool(r.iscrowd) for r in annotations], np.bool_),
        difficult=np.array([bool(r.ignore) for r in annotations], np.bool_),
        images=image_ids,
        categories=category_ids,
        category_names={r.id: r.name for r in categories if r.name is not None},
        notices={
            "missing_iscrowd": sum(r.iscrowd is None for r in annotations),
            "duplicate_annotation_ids": len(own) - len(set(own)),
            "zero_id": own.count(0),
        },
        source=name,
    )


def read_coco_results(
    source: Source | Sequence[Mapping[str, Any]],
    ground_truth: GroundTruth | None = None,
    *,
    unknown_images: Literal["error", "ignore"] = "error",
) -> Detections:
    """Read detections in COCO's JSON of results.

    Parameters
    ----------
    source : path, bytes, file object, or list of mappings
        A list of records with ``image_id``, ``category_id``, ``bbox`` (x, y, width, height) and ``score``; gzip too.
    ground_truth : GroundTruth, optional
        Whose images the detections are on.
    unknown_images : {"error", "ignore"}
        What to do with a detection on an image that the ground truth does not have; ``ignore`` drops and counts them.

    Returns
    -------
    Detections
        One row per record, in file order.

    Raises
    ------
    InputError
        Where the file is not such a list; names file, record, field and value.
    """
    if isinstance(source, Sequence) and not isinstance(source, str | bytes | bytearray | memoryview):
        name = "detections"
        records = [_Result(**{f: r[f] for f in _FIELDS["result"]}) for r in _checked_results(source, name)]
    elif isinstance(source, Mapping):
        raise _not_results(source, "detections")
    else:
        data, name = read_bytes(source, "detections")
        records = _parse(data, name, _decode_results, _checked_results)
    detections = Detections.from_arrays(
        image_ids=_ids([r.image_id for r in records], name, "record", "image_id"),
        category_ids=_ids([r.category_id for r in records], name, "record", "category_id"),
        boxes=_boxes(records),
        scores=np.array([r.score for r in records], np.float64),
        source=name,
    )
    return detections if ground_truth is None else detections.on_images_of(ground_truth, unknown_images)


def _parse(data: bytes, name: str, decode: Callable[[bytes], Any], check: Callable[[Any, str], Any]) -> Any:
    """Decode `data`, or raise the error that says what is wrong with it."""
    try:
        return decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        reason = error
    try:
        document = json.loads(data)
    except RecursionError:
        raise InputError("nested too deeply", source=name, remedy="is this a COCO file?") from None
    except ValueError:
        text = "is empty" if not data.strip() else f"is not valid JSON: {reason} ({len(data)} bytes in all)"
        raise InputError(text, source=name, remedy="is it the right file, and complete?") from None
    check(document, name)
    # Every field that is read is in order: what remains is NaN or Infinity somewhere else, which is not JSON.
    raise InputError(f"is not valid JSON: {reason}", source=name, remedy="NaN and Infinity are not JSON")


def _ids(values: list[Any], source: str, kind: str, field: str) -> NDArray[Any]:
    """Return ids as one integer or string column."""
    kinds = set(map(type, values))
    if kinds == {str}:
        if max(map(len, values)) > _LONGEST_ID:
            raise InputError(f"an id is longer than {_LONGEST_ID} characters", source=source, field=field)
        return np.array(values)
    if len(kinds) > 1:
        first = type(values[0])
        record = next(i for i, value in enumerate(values) if type(value) is not first)
        raise InputError(
            "ids must be all integers or all strings",
            source=source,
            record=f"{kind} {record}",
            field=field,
            value=values[record],
        )
    try:
        return np.array(values, np.int64)
    except OverflowError:
        record = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
        raise InputError(
            "is beyond 64 bits", source=source, record=f"{kind} {record}", field=field, value=values[record]
        ) from None


def _boxes(records: Sequence[Any]) -> NDArray[np.float64]:
    flat = np.fromiter(chain.from_iterable(r.bbox for r in records), np.float64, 4 * len(records))
    return flat.reshape(-1, 4)


# What follows runs on parsed objects, and on files that the typed decoder did not take.


def _not_results(document: Any, name: str) -> InputError:
    if isinstance(document, Mapping) and {"images", "annotations"} & set(document):
        return InputError(
            "is ground truth where detections were expected",
            source=name,
            remedy="are the arguments swapped? The ground truth comes first",
        )
    return InputError(
        f"is not a list of detections but {_kind(document)}",
        source=name,
        remedy='a result file is [{"image_id": …, "category_id": …, "bbox": […], "score": …}, …]',
    )


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


def _checked_results(document: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(document, Sequence) or isinstance(document, str | bytes):
        raise _not_results(document, name)
    return [_checked_record(record, i, "result", name) for i, record in enumerate(document)]


def _checked_ground_truth(document: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        if isinstance(document, list) and document and isinstance(document[0], dict) and "score" in document[0]:
            raise InputError(
                "is a list of detections where ground truth was expected",
                source=name,
                remedy="are the arguments swapped? The ground truth comes first",
            )
        raise InputError(f"is not COCO ground truth but {_kind(document)}", source=name)
    checked: dict[str, Any] = {}
    for section, kind in (("images", "image"), ("categories", "category"), ("annotations", "annotation")):
        records = document.get(section)
        if not isinstance(records, Sequence) or isinstance(records, str | bytes):
            what = "is missing" if section not in document else f"must be a list, not {_kind(records)}"
            raise InputError(
                what, source=name, field=section, remedy="ground truth has images, annotations and categories"
            )
        checked[section] = [_checked_record(record, i, kind, name) for i, record in enumerate(records)]
    return checked


def _checked_record(record: Any, index: int, kind: str, name: str) -> dict[str, Any]:
    """Return the record's fields as plain Python values, or raise the error that names what is wrong."""
    place: dict[str, Any] = {"source": name, "record": index if kind == "result" else f"{kind} {index}"}
    if not isinstance(record, Mapping):
        raise InputError(f"must be an object, not {_kind(record)}", **place)
    out: dict[str, Any] = {}
    for field in _FIELDS[kind]:
        if field not in record:
            raise InputError("is missing", **place, field=field, remedy=_REMEDIES.get(field))
        value = record[field]
        if field == "bbox":
            out[field] = _checked_box(value, place)
        elif field in ("area", "score"):
            out[field] = _number(value, {**place, "field": field}, _REMEDIES[field])
        else:
            value = value.item() if isinstance(value, np.generic) else value
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise InputError("must be an integer or a string", **place, field=field, value=value)
            out[field] = value
    for field in {"annotation": ("id", "iscrowd", "ignore"), "category": ("name",)}.get(kind, ()):
        value = record.get(field)
        value = value.item() if isinstance(value, np.generic) else value
        allowed: tuple[type, ...] = (str,) if field == "name" else (int, str) if field == "id" else (int, float)
        if value is not None and not isinstance(value, allowed):
            raise InputError(f"must not be {_kind(value)}", **place, field=field, value=value)
        out[field] = value
    return out


def _checked_box(value: Any, place: dict[str, Any]) -> tuple[float, ...]:
    place = {**place, "field": "bbox"}
    numbers = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(numbers, list | tuple):
        raise InputError(f"must be a list of 4 numbers, not {_kind(value)}", **place, remedy=_REMEDIES["bbox"])
    if len(numbers) != 4:
        raise InputError(
            f"has {len(numbers)} numbers where 4 are expected", **place, value=numbers, remedy=_REMEDIES["bbox"]
        )
    return tuple(_number(number, place, _REMEDIES["bbox"], shown=numbers) for number in numbers)


def _number(value: Any, place: dict[str, Any], remedy: str, shown: Any = None) -> float:
    value = value.item() if isinstance(value, np.generic) else value
    shown = value if shown is None else shown
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"must be a number, not {_kind(value)}", **place, value=shown, remedy=remedy)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number != number or number in (float("inf"), float("-inf")):
        raise InputError("must be a finite number", **place, value=shown, remedy=remedy)
    return number


def _records(checked: Mapping[str, Iterable[dict[str, Any]]]) -> _GroundTruth:
    return _GroundTruth(
        images=[_Image(**r) for r in checked["images"]],
        categories=[_Category(**r) for r in checked["categories"]],
        annotations=[_Annotation(**r) for r in checked["annotations"]],
    )
