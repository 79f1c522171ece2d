"""Read COCO JSON that the scanner refuses, with msgspec's typed decoder. Documents that the decoder refuses go through
`check.py`, which finds the first invalid record.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Ids, coded, zeros
from detmap.data.tables import GroundTruth
from detmap.errors import InputError
from detmap.formats.coco.check import LONGEST_ID, checked_ground_truth, checked_results
from detmap.formats.coco.shapes import read_values, result_shapes, truth_shapes
from detmap.reading.documents import misplaced
from detmap.reading.record_walk import crowded, holds_long_list, holds_long_value, walked
from detmap.reading.scanner import RESULT_LISTS
from detmap.reading.sources import Buffer, unmarked
from detmap.reading.typed_json import UNREADABLE
from detmap.reading.unlike import refuse_foreign
from detmap.shapes import Kind

Id = int | str
T = TypeVar("T", bound=msgspec.Struct)


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
    iscrowd: int | float | bool | None = None
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


class _ResultsWithin(msgspec.Struct, gc=False):
    annotations: list[_Result] | msgspec.UnsetType = msgspec.UNSET
    predictions: list[_Result] | msgspec.UnsetType = msgspec.UNSET
    images: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    categories: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode_ground_truth = msgspec.json.Decoder(_GroundTruth).decode
_decode_results = msgspec.json.Decoder(list[_Result]).decode
_decode_object = msgspec.json.Decoder(_ResultsWithin).decode
_decode_lines = msgspec.json.Decoder(_Result).decode_lines
_decode_any = msgspec.json.Decoder().decode
_decode_any_lines = msgspec.json.Decoder().decode_lines
_OBJECT = re.compile(rb"(\xef\xbb\xbf)?\s*\{")
_ESCAPED_LETTER = re.compile(rb"\\u00[67]")


def _boxes(records: Sequence[Any]) -> NDArray[np.float64]:
    flat = np.fromiter(chain.from_iterable(r.bbox for r in records), np.float64, 4 * len(records))
    return flat.reshape(-1, 4)


def _some_boxes(records: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return boxes, NaN where missing; None if all are missing."""
    if all(r.bbox is None for r in records):
        return None
    nothing = (np.nan,) * 4
    return np.array([nothing if r.bbox is None else r.bbox for r in records], np.float64).reshape(-1, 4)


def truth_of(document: Mapping[str, Any], kind: Kind, name: str) -> dict[str, Any]:
    """Return the columns of a parsed document."""
    if kind.reader is not None:
        return _ground_truth_with(kind, checked_ground_truth(document, name, kind), name)
    return _ground_truth_columns(_records(checked_ground_truth(document, name)), name)


def truth_in(data: Buffer, kind: Kind, name: str) -> dict[str, Any]:
    """Return the columns of a file."""
    if kind.reader is None:
        return _ground_truth_columns(_parse(data, name, partial(_decode_truth, name=name), checked_ground_truth), name)
    decode = partial(_decode_plain, keys=_GroundTruth.__struct_fields__, name=name)
    check = partial(checked_ground_truth, kind=kind)
    return _ground_truth_with(kind, check(_parse(data, name, decode, check), name), name)


def results_of(document: Any, kind: Kind, truth: GroundTruth | None, name: str) -> dict[str, Any]:
    """Return the columns of parsed results; if records have several lists of keypoints, only the first is read."""
    if kind.reader is not None:
        return _results_with(kind, checked_results(document, name, kind), truth, name)
    return _result_columns(_typed(_Result, checked_results(document, name)), name)


def results_in(data: Buffer, lines: bool, kind: Kind, truth: GroundTruth | None, name: str) -> dict[str, Any]:
    """Return the columns of a file of results; if records have several lists of keypoints, only the first is read."""
    if kind.reader is None:
        return _result_columns(_parsed_results(data, name, lines), name)
    decode = partial(_decode_plain, keys=RESULT_LISTS, name=name, lines=lines)
    check = partial(checked_results, kind=kind)
    return _results_with(kind, check(_parse(data, name, decode, check, lines), name), truth, name)


def _result_columns(records: list[_Result], name: str, boxes_of: Any = _boxes) -> dict[str, Any]:
    return {
        "image_ids": _ids([r.image_id for r in records], name, "record", "image_id"),
        "category_ids": _ids([r.category_id for r in records], name, "record", "category_id"),
        "boxes": boxes_of(records),
        "scores": np.array([r.score for r in records], np.float64),
    }


def _results_with(kind: Kind, records: list[dict[str, Any]], truth: GroundTruth | None, name: str) -> dict[str, Any]:
    """Return the columns of parsed results with geometries of the given kind."""
    reader, parts = read_values(kind, [record["shape"] for record in records])
    columns = _result_columns(_typed(_Result, records), name, _some_boxes)
    return result_shapes(kind, reader, parts, columns, truth, name)


def _ground_truth_with(kind: Kind, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the columns of a parsed document with geometries of the given kind."""
    annotations = document["annotations"]
    columns = _ground_truth_columns(_records(document), name, _some_boxes)
    columns["image_sizes"] = np.array([r["size"] for r in document["sizes"]], np.float64).reshape(-1, 2)
    counts: dict[str, Any] = {}
    for field in kind.counts:
        listed = [r[field] for r in annotations]
        counts[field] = None if None in listed else np.array(listed, np.int64)
    reader, parts = read_values(kind, [record["shape"] for record in annotations])
    return truth_shapes(kind, reader, parts, columns, counts, name)


def _decode_plain(data: Buffer, keys: Iterable[str], name: str, lines: bool = False) -> Any:
    """Decode a document into plain Python values."""
    if crowded(data) or holds_long_value(data):
        raise msgspec.ValidationError("too many values")  # the checks raise the precise error
    if lines:
        return _one_a_line(_decode_any_lines, data)
    found = _decode_any(data)
    check_once(data, keys, name)
    return found


def _one_a_line(decode: Callable[[Buffer], list[Any]], data: Buffer) -> list[Any]:
    """Decode a record per line; the decoder alone would also accept a record that spans lines."""
    found = decode(data)
    if len(found) != sum(1 for line in io.BytesIO(data) if line.strip()):
        raise msgspec.DecodeError("a record goes on in the next line")
    return found


def _ground_truth_columns(document: _GroundTruth, name: str, boxes_of: Any = _boxes) -> dict[str, Any]:
    """Return the columns of ground truth; an area of None becomes NaN."""
    annotations = document.annotations
    own = [r.id for r in annotations if r.id is not None]
    return {
        "image_ids": _ids([r.image_id for r in annotations], name, "annotation", "image_id"),
        "category_ids": _ids([r.category_id for r in annotations], name, "annotation", "category_id"),
        "boxes": boxes_of(annotations),
        "areas": np.array([r.area for r in annotations], np.float64),
        "crowd": _flags([r.iscrowd for r in annotations], name, "iscrowd"),
        "difficult": _flags([r.ignore for r in annotations], name, "ignore"),
        "images": _ids([r.id for r in document.images], name, "image", "id"),
        "categories": _ids([r.id for r in document.categories], name, "category", "id"),
        "category_names": {r.id: r.name for r in document.categories if r.name is not None},
        "notices": {
            "missing_iscrowd": sum(r.iscrowd is None for r in annotations),
            "duplicate_annotation_ids": len(own) - len(set(own)),
        },
        "zero_ids": zeros([r.id for r in annotations]),
    }


def _parsed_results(data: Buffer, name: str, lines: bool) -> list[_Result]:
    """Decode results: a JSON list, an object that contains such a list, or a record per line."""
    if lines:
        return list(_parse(data, name, partial(_one_a_line, _decode_lines), checked_results, lines))
    decode = partial(_decode_within, name=name) if _OBJECT.match(data) else _decode_results
    return list(_parse(data, name, decode, checked_results))


def _decode_within(data: Buffer, name: str) -> list[_Result]:
    """Decode an object that holds a list of results."""
    found = _decode_object(data)
    check_once(data, RESULT_LISTS, name)
    lists = [part for part in (found.annotations, found.predictions) if part is not msgspec.UNSET]
    rest = (found.images, found.categories)
    if len(lists) != 1 or (not lists[0] and any(part is not msgspec.UNSET for part in rest)):
        raise msgspec.ValidationError("no list of results")  # the checks raise the precise error
    return lists[0]


def _decode_truth(data: Buffer, name: str) -> _GroundTruth:
    """Decode ground truth."""
    found = _decode_ground_truth(data)
    check_once(data, _GroundTruth.__struct_fields__, name)
    return found


def check_once(data: Buffer, keys: Iterable[str], name: str) -> None:
    """Refuse a valid document whose outermost object repeats a key; the decoder would take the last value."""
    text = bytes(data)
    # Counting suffices, unless the same key is spelled in two ways because an ASCII letter is escaped.
    if all(text.count(b'"%b"' % key.encode()) < 2 for key in keys) and not _ESCAPED_LETTER.search(text):
        return
    names: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names[:] = [key for key, _ in pairs]  # the outermost object is completed last

    # Integers stay text, because Python limits the number of their digits.
    json.loads(text.decode(errors="replace"), object_pairs_hook=note, parse_int=str)
    for key in keys:
        if names.count(key) > 1:
            raise InputError("is there twice", source=name, field=key, remedy="keep the one that is meant")


def _parse(
    data: Buffer, name: str, decode: Callable[[Buffer], Any], check: Callable[[Any, str], Any], lines: bool = False
) -> Any:
    """Decode `data`, or raise the error that says what is wrong with it."""
    data = unmarked(data)
    try:
        found = decode(data)
        _check_encoding(data, name)  # the decoder does not check fields that it skips
        return found
    except UNREADABLE as error:
        reason = str(error)  # the exception would keep this frame, and the data, alive in a reference cycle
    try:
        if crowded(data) or holds_long_list(data):
            check(walked(data, lines), name)
            if crowded(data):
                raise InputError("holds more lists and objects than such a file can have", source=name)
        else:
            # The bytes are decoded here, because the parser could take them for UTF-32 if some bytes are 0.
            texts = [line.decode() for line in bytes(data).splitlines()] if lines else [bytes(data).decode()]
            parsed = [json.loads(text) for text in texts if text.strip() or not lines]
            check(parsed if lines else parsed[0], name)
    except InputError:
        raise
    except RecursionError:
        raise InputError("nested too deeply", source=name, remedy="is this a COCO file?") from None
    except ValueError as error:
        refuse_foreign(data, name)
        _check_encoding(data, name)  # raises a clearer error if the text is not UTF-8
        if isinstance(error, json.JSONDecodeError) and reason.startswith(("Expected", "Object")):
            reason = str(error)  # msgspec's reason is about an earlier place in the text
        problem = "is empty" if not bytes(data).strip() else f"is not valid JSON: {reason} ({len(data)} bytes in all)"
        raise InputError(problem, source=name, remedy="is it the right file, and complete?") from None
    _check_encoding(data, name)
    # Python's parser accepts NaN and Infinity, which are not JSON. NaN or Infinity must occur in a field that is not
    # read.
    raise InputError(
        f"is not valid JSON: {reason}", source=name, remedy="NaN, Infinity and text that is not UTF-8 are not JSON"
    )


def _check_encoding(data: Buffer, name: str) -> None:
    """Refuse invalid UTF-8 anywhere in the document."""
    at = misplaced(data)
    if at >= 0:
        line = bytes(data[:at]).count(b"\n") + 1
        remedy = "JSON is UTF-8: write the file again in it"
        raise InputError(f"is not UTF-8 at byte {at:,}, in line {line:,}", source=name, remedy=remedy)


def _ids(values: list[Any], source: str, kind: str, field: str) -> NDArray[Any] | Ids:
    """Return ids as one integer or string column."""
    kinds = set(map(type, values))
    if kinds == {str}:
        for record, value in enumerate(values):
            if len(value) > LONGEST_ID or "\0" in value:
                raise InputError(
                    f"an id must have at most {LONGEST_ID} characters, none of them null",
                    source=source,
                    record=f"{kind} {record}",
                    field=field,
                    value=value,
                )
        return coded(values, source, field)
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


def _flags(values: list[Any], source: str, field: str) -> NDArray[np.bool_]:
    """Return flags, False where missing."""
    for record, value in enumerate(values):
        if value is not None and value not in (0, 1):
            place = f"annotation {record}"
            raise InputError("is neither 0 nor 1", source=source, record=place, field=field, value=value)
    return np.array([bool(value) for value in values], np.bool_)


def _records(checked: Mapping[str, Iterable[dict[str, Any]]]) -> _GroundTruth:
    return _GroundTruth(
        images=_typed(_Image, checked["images"]),
        categories=_typed(_Category, checked["categories"]),
        annotations=_typed(_Annotation, checked["annotations"]),
    )


def _typed(of: type[T], checked: Iterable[dict[str, Any]]) -> list[T]:
    """Return checked records as structs, with None for missing boxes and areas."""
    return [of(**{name: record[name] for name in of.__struct_fields__}) for record in checked]
