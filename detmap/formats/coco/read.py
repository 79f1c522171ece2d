"""COCO JSON: ground truth (``instances_*.json``) and lists of results.

A large file goes through the scanner, bytes to columns. What that does not take, and what is too small to be worth its
start, the library's typed decoder turns into records. Whatever that does not take goes through `_coco_checks`, which
looks for the first record that is wrong and says how.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.columns import texts
from detmap.data.benchmarks import noted_in
from detmap.data.ids import Ids, coded, index_ids, zeros
from detmap.data.tables import Detections, GroundTruth, complete
from detmap.errors import InputError
from detmap.formats.coco.check import FIELDS, BoxlessError, checked_ground_truth, checked_results
from detmap.formats.coco.federated import federated_columns, federated_columns_in, federated_columns_of, groups_in
from detmap.formats.coco.fields import annotation_fields
from detmap.formats.coco.inspection import holds_lines, image_field, inspect, kinds_in, with_facts
from detmap.formats.coco.parts import parts_of_document, parts_of_records, with_parts
from detmap.formats.coco.shapes import boxes_around, read_values, reader_of, result_shapes, truth_shapes
from detmap.formats.file_names import recoded, resolve_images
from detmap.formats.registry import Format, Given, packed
from detmap.formats.tools.recognition import first_keys, json_format
from detmap.plugins import later, register
from detmap.reading.documents import misplaced
from detmap.reading.foreign_fields import foreign_fields
from detmap.reading.opening import Held
from detmap.reading.options import Reading, Role
from detmap.reading.record_walk import crowded, holds_long_list, holds_long_value, walked
from detmap.reading.scanned_columns import Strings
from detmap.reading.scanner import RESULT_LISTS, scan_ground_truth, scan_results
from detmap.reading.sources import Buffer, Opened, Source, read_bytes
from detmap.shapes import Kind
from detmap.shapes.boxes import InvalidBoxes
from detmap.shapes.kinds import BOX_FIELD, BOXES

Id = int | str

_LONGEST_ID = 256
_WORTH_SCANNING = 1 << 20  # bytes; below it, loading the scanner takes longer than all else


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
_NAMED = re.compile(rb'"image_id"\s*:\s*"')
_ESCAPED_LETTER = re.compile(rb"\\u00[67]")


def read_coco(
    source: Source | Mapping[str, Any],
    *,
    iou_type: str = BOXES,
    invalid_boxes: InvalidBoxes = "error",
    fields: Sequence[str] = (),
) -> GroundTruth:
    """Read ground truth in COCO's JSON.

    Parameters
    ----------
    source : path, bytes, file object, or mapping
        ``images``, ``annotations`` with ``image_id``, ``category_id``, ``bbox`` (x, y, width, height), ``area`` and
        ``iscrowd``, and ``categories``; gzip too. A mapping is the parsed document.
    iou_type : {"bbox", "segm", "keypoints", "boundary"}
        Which shapes to read, with the boxes: ``segmentation`` (compressed strings, run lengths or polygons) or
        ``keypoints``. An annotation without ``bbox`` then gets the box around its shape.
    invalid_boxes : {"error", "miss", "drop"}
        What becomes of boxes of negative width or height, see `GroundTruth.from_arrays`.
    fields : sequence of str
        Fields of the annotations to read besides, numbers or booleans, which `Protocol.levels` name; one of an object that
        is a value itself as "attributes.occluded".

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
    kind, _ = reader_of(iou_type, 0)
    if isinstance(source, Mapping):
        name = "ground truth"
        if kind.reader is not None:
            columns = _ground_truth_with(kind, checked_ground_truth(source, name, kind), name)
        else:
            columns = _ground_truth_columns(_records(checked_ground_truth(source, name)), name)
        columns["notices"] |= noted_in(source)
        columns |= federated_columns(source, name)
        if kind.lists:
            columns = with_parts(kind, columns, parts_of_records(kind, source["annotations"]), name, "annotation ")
        columns["fields"] = annotation_fields(source, fields, name)
    else:
        with Opened(source, "ground truth") as opened:
            name = opened.name
            scanned = _scanned_ground_truth(opened, iou_type)
            if scanned is not None:
                columns = scanned
            elif kind.reader is not None:
                decode = partial(_decode_plain, keys=_GroundTruth.__struct_fields__, name=name)
                check = partial(checked_ground_truth, kind=kind)
                columns = _ground_truth_with(kind, check(_parse(opened.whole(), name, decode, check), name), name)
                columns["notices"] = columns["notices"] | foreign_fields(opened.whole())
            else:
                decode = partial(_decode_truth, name=name)
                columns = _ground_truth_columns(_parse(opened.whole(), name, decode, checked_ground_truth), name)
                columns["notices"] |= foreign_fields(opened.whole())
            if scanned is None:
                columns |= federated_columns_in(opened.whole(), columns["notices"], name)
            if any(code.startswith("foreign_fields:") for code in columns["notices"]):
                columns |= groups_in(opened.whole(), columns["notices"], name)
            if kind.lists:
                columns = with_parts(kind, columns, parts_of_document(kind, opened.whole()), name, "annotation ")
            if fields:
                columns["fields"] = annotation_fields(opened.whole(), fields, name)
    return GroundTruth.from_arrays(**columns, kinds=(kind.name,), invalid_boxes=invalid_boxes, source=name)


def read_coco_results(
    source: Source | Sequence[Mapping[str, Any]] | Mapping[str, Any],
    ground_truth: GroundTruth | None = None,
    *,
    iou_type: str = BOXES,
    unknown_images: Literal["error", "ignore"] = "error",
    invalid_boxes: InvalidBoxes = "error",
) -> Detections:
    """Read detections in COCO's JSON of results.

    Parameters
    ----------
    source : path, bytes, file object, list of mappings, or mapping
        A list of records with ``image_id``, ``category_id``, ``bbox`` (x, y, width, height) and ``score``; or an object
        that has this list as ``annotations`` or as ``predictions``; gzip too. A file whose name ends in ``.jsonl`` or
        ``.ndjson``, or whose first line is a record, holds a record a line.
    ground_truth : GroundTruth, optional
        Whose images the detections are on. Polygons are drawn on images of the sizes that it says.
    iou_type : {"bbox", "segm", "keypoints", "boundary"}
        Which shapes to read, with the boxes: ``segmentation`` or ``keypoints``. A record without ``bbox`` then gets the box
        around its shape; one with a box keeps its area for area ranges, and is filled where it has no mask. With "bbox"
        and no box in the first record the boxes around masks or poses are read, with the areas of these, as in pycocotools.
    unknown_images : {"error", "ignore"}
        What to do with a detection on an image that the ground truth does not have; ``ignore`` drops and counts them.
    invalid_boxes : {"error", "miss", "drop"}
        What becomes of boxes of negative width or height, see `Detections.from_arrays`.

    Returns
    -------
    Detections
        One row per record, in file order.

    Raises
    ------
    InputError
        Where the file is not such a list; names file, record, field and value.
    """
    kind, _ = reader_of(iou_type, 0)
    if isinstance(source, Sequence | Mapping) and not isinstance(source, str | bytes | bytearray | memoryview):
        name = "detections"
        columns = _boxes_if_none(partial(_results_of, source, truth=ground_truth), kind)
    else:
        with Opened(source, "detections") as opened:
            name = opened.name
            columns = _boxes_if_none(partial(_results_in, opened, holds_lines(source, name), truth=ground_truth), kind)
    detections = Detections.from_arrays(**columns, kinds=(kind.name,), invalid_boxes=invalid_boxes, source=name)
    if ground_truth is None:
        return detections
    return _by_file_names(detections, ground_truth).on_images_of(ground_truth, unknown_images)


def _by_file_names(found: Detections, truth: GroundTruth) -> Detections:
    """Return detections with the ids of images that they call by the names of their files, as Ultralytics does; where they
    have ids, or the ground truth has no names, as they are.
    """
    own = found.images.ids
    if not isinstance(truth, GroundTruth) or truth.images.names is None:
        return found
    if own.dtype.kind == truth.images.ids.dtype.kind or own.dtype.kind == "i":
        return found
    ids = resolve_images(own.tolist(), truth, "ignore", found.source)
    if None in ids:  # the error says which
        return found
    return replace(found, images=recoded(ids, found.images.codes))


def _boxes_if_none(read: Callable[[Kind], dict[str, Any]], kind: Kind) -> dict[str, Any]:
    """Read results; where they are masks or poses without boxes, and boxes are asked for, the boxes around them."""
    try:
        return read(kind)
    except BoxlessError as error:
        other, plain = error.kind, error.elsewhere(error.source or "", error.record)
    try:
        return boxes_around(read(other), other)
    except InputError:
        raise plain from None


def _results_of(document: Any, kind: Kind, truth: GroundTruth | None) -> dict[str, Any]:
    """Return the columns of parsed results."""
    name = "detections"
    if kind.reader is not None:
        columns = _results_with(kind, checked_results(document, name, kind), truth, name)
        if not kind.lists:
            return columns
        within = document
        if isinstance(document, Mapping):
            within = next(document[key] for key in RESULT_LISTS if key in document)
        return with_parts(kind, columns, parts_of_records(kind, within), name, "")
    records = [_Result(**{f: r[f] for f in FIELDS["result"]}) for r in checked_results(document, name)]
    return _result_columns(records, name)


def _results_in(opened: Opened, lines: bool, kind: Kind, truth: GroundTruth | None) -> dict[str, Any]:
    """Return the columns of a file of results."""
    columns = _whole_results_in(opened, lines, kind, truth)
    if not kind.lists:
        return columns
    return with_parts(kind, columns, parts_of_document(kind, opened.whole(), lines=lines), opened.name, "")


def _whole_results_in(opened: Opened, lines: bool, kind: Kind, truth: GroundTruth | None) -> dict[str, Any]:
    """Return the columns of a file of results, of shapes with several fields those of the first."""
    scanned = _scanned_results(opened, lines, kind.name, truth)
    if scanned is not None:
        return scanned
    if kind.reader is None:
        return _result_columns(_parsed_results(opened.whole(), opened.name, lines), opened.name)
    decode = partial(_decode_plain, keys=RESULT_LISTS, name=opened.name, lines=lines)
    check = partial(checked_results, kind=kind)
    found = check(_parse(opened.whole(), opened.name, decode, check, lines), opened.name)
    return _results_with(kind, found, truth, opened.name)


def _scanned_results(opened: Opened, lines: bool, iou_type: str, truth: GroundTruth | None) -> dict[str, Any] | None:
    """Return the columns of a large file that the scanner understands."""
    kind, reader = reader_of(iou_type, len(opened))
    if len(opened) < (_WORTH_SCANNING if reader is None else _WORTH_SCANNING >> 3):
        return None
    found = scan_results(opened.data, None, lines=lines, reader=reader)
    if found is None or not (reader or _complete(found.bbox)) or not _short(found.image_id, found.category_id):
        return None
    columns = {
        "image_ids": _scanned_ids(found.image_id, opened.name, "image_id"),
        "category_ids": _scanned_ids(found.category_id, opened.name, "category_id"),
        "boxes": found.bbox,
        "scores": found.score,
    }
    return columns if reader is None else result_shapes(kind, reader[1], found.parts, columns, truth, opened.name)


def _scanned_ground_truth(opened: Opened, iou_type: str) -> dict[str, Any] | None:
    """Return the columns of a large file that the scanner understands."""
    kind, reader = reader_of(iou_type, len(opened))
    if len(opened) < (_WORTH_SCANNING if reader is None else _WORTH_SCANNING >> 3):
        return None
    found = scan_ground_truth(opened.data, None, reader=reader)
    if found is None or not (reader or (_complete(found.bbox) and _complete(found.area))):
        return None
    if not _short(found.image_id, found.category_id, found.images, found.categories):
        return None
    count = found.image_id.codes.size if isinstance(found.image_id, Strings) else found.image_id.size
    none = np.full(count, -1, np.int8)
    crowd = none if found.iscrowd is None else found.iscrowd
    own = found.id
    distinct, zero = count, None
    if own is not None:  # strings are distinct already, and of any length
        distinct = len(own.values) if isinstance(own, Strings) else index_ids(own, source="", field="id").ids.size
        zero = zeros(own.values)[own.codes] if isinstance(own, Strings) else own == 0
    categories = found.categories.values if isinstance(found.categories, Strings) else found.categories.tolist()
    columns = {
        "image_ids": _scanned_ids(found.image_id, opened.name, "image_id"),
        "category_ids": _scanned_ids(found.category_id, opened.name, "category_id"),
        "boxes": found.bbox,
        "areas": found.area,
        "crowd": crowd > 0,
        "difficult": (none if found.ignore is None else found.ignore) > 0,
        "images": _scanned_ids(found.images, opened.name, "id"),
        "categories": _scanned_ids(found.categories, opened.name, "id"),
        "category_names": dict(zip(categories, found.names, strict=True)),
        "notices": {
            "missing_iscrowd": int((crowd < 0).sum()),
            "duplicate_annotation_ids": count - distinct,
            **found.notices,
        },
        "zero_ids": zero,
        **federated_columns_of(found.sections, opened.name),
    }
    if reader is None:
        return columns
    columns["image_sizes"] = found.sizes
    counts = {field: found.counts[field] for field in kind.counts}
    return truth_shapes(kind, reader[1], found.parts, columns, counts, opened.name)


def _scanned_ids(ids: Any, source: str, field: str) -> Any:
    """Return scanned ids as a column of integers, or as distinct strings and codes."""
    return Ids(texts(ids.values, source=source, field=field), ids.codes) if isinstance(ids, Strings) else ids


def _complete(column: NDArray[np.float64] | None) -> bool:
    """Return whether every record has the field: the scanner writes NaN where one has not."""
    return column is not None and complete(column)


def _short(*columns: Any) -> bool:
    """Return whether every id is one that is taken."""
    return all(
        len(value) <= _LONGEST_ID and "\0" not in value
        for ids in columns
        if isinstance(ids, Strings)
        for value in ids.values
    )


def _result_columns(records: list[_Result], name: str) -> dict[str, Any]:
    return {
        "image_ids": _ids([r.image_id for r in records], name, "record", "image_id"),
        "category_ids": _ids([r.category_id for r in records], name, "record", "category_id"),
        "boxes": _boxes(records),
        "scores": np.array([r.score for r in records], np.float64),
    }


def _results_with(kind: Kind, records: list[dict[str, Any]], truth: GroundTruth | None, name: str) -> dict[str, Any]:
    """Return the columns of parsed results with shapes of a kind."""
    reader, parts = read_values(kind, [record["shape"] for record in records])
    columns = {
        "image_ids": _ids([r["image_id"] for r in records], name, "record", "image_id"),
        "category_ids": _ids([r["category_id"] for r in records], name, "record", "category_id"),
        "boxes": _some_boxes(records),
        "scores": np.array([r["score"] for r in records], np.float64),
    }
    return result_shapes(kind, reader, parts, columns, truth, name)


def _ground_truth_with(kind: Kind, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the columns of a parsed document with shapes of a kind."""
    annotations = document["annotations"]
    plain = [{**r, BOX_FIELD: (0.0,) * 4, "area": 0.0} for r in annotations]
    columns = _ground_truth_columns(
        _records({**document, "annotations": [{k: r[k] for k in _Annotation.__struct_fields__} for r in plain]}), name
    )
    columns["boxes"] = _some_boxes(annotations)
    columns["areas"] = np.array([np.nan if r["area"] is None else r["area"] for r in annotations], np.float64)
    columns["image_sizes"] = np.array([r["size"] for r in document["sizes"]], np.float64).reshape(-1, 2)
    counts: dict[str, Any] = {}
    for field in kind.counts:
        listed = [r[field] for r in annotations]
        counts[field] = None if None in listed else np.array(listed, np.int64)
    reader, parts = read_values(kind, [record["shape"] for record in annotations])
    return truth_shapes(kind, reader, parts, columns, counts, name)


def _some_boxes(records: Sequence[Mapping[str, Any]]) -> NDArray[np.float64] | None:
    """Return boxes, NaN where a record has none; None where none has."""
    if all(record[BOX_FIELD] is None for record in records):
        return None
    nothing = (np.nan,) * 4
    return np.array([nothing if r[BOX_FIELD] is None else r[BOX_FIELD] for r in records], np.float64).reshape(-1, 4)


def _decode_plain(data: Buffer, keys: Iterable[str], name: str, lines: bool = False) -> Any:
    """Decode a document as it is."""
    if crowded(data) or holds_long_value(data):
        raise msgspec.ValidationError("too many values")  # the checks say what is wrong
    if lines:
        return _one_a_line(_decode_any_lines, data)
    found = _decode_any(data)
    _check_once(data, keys, name)
    return found


def _one_a_line(decode: Callable[[Buffer], list[Any]], data: Buffer) -> list[Any]:
    """Decode lines; the decoder alone would take a record that goes on in the next line."""
    found = decode(data)
    if len(found) != sum(1 for line in io.BytesIO(data) if line.strip()):
        raise msgspec.DecodeError("a record goes on in the next line")
    return found


def _ground_truth_columns(document: _GroundTruth, name: str) -> dict[str, Any]:
    annotations = document.annotations
    own = [r.id for r in annotations if r.id is not None]
    return {
        "image_ids": _ids([r.image_id for r in annotations], name, "annotation", "image_id"),
        "category_ids": _ids([r.category_id for r in annotations], name, "annotation", "category_id"),
        "boxes": _boxes(annotations),
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
    """Decode a list of results, or the one of an object, or lines."""
    if lines:
        return list(_parse(data, name, partial(_one_a_line, _decode_lines), checked_results, lines))
    decode = partial(_decode_within, name=name) if _OBJECT.match(data) else _decode_results
    return list(_parse(data, name, decode, checked_results))


def _decode_within(data: Buffer, name: str) -> list[_Result]:
    """Decode an object that has a list of results."""
    found = _decode_object(data)
    _check_once(data, RESULT_LISTS, name)
    lists = [part for part in (found.annotations, found.predictions) if part is not msgspec.UNSET]
    rest = (found.images, found.categories)
    if len(lists) != 1 or (not lists[0] and any(part is not msgspec.UNSET for part in rest)):
        raise msgspec.ValidationError("no list of results")  # the checks say what is wrong
    return lists[0]


def _decode_truth(data: Buffer, name: str) -> _GroundTruth:
    """Decode ground truth."""
    found = _decode_ground_truth(data)
    _check_once(data, _GroundTruth.__struct_fields__, name)
    return found


def _check_once(data: Buffer, keys: Iterable[str], name: str) -> None:
    """Refuse a document, which is valid, whose outermost object has one of the keys twice: the decoder takes the last."""
    text = bytes(data)
    # Only then is it parsed again. Whoever writes JSON escapes no letter; who does may write a key in two ways.
    if all(text.count(b'"%b"' % key.encode()) < 2 for key in keys) and not _ESCAPED_LETTER.search(text):
        return
    names: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names[:] = [key for key, _ in pairs]  # the outermost object is done last

    json.loads(text.decode(errors="replace"), object_pairs_hook=note, parse_int=str)  # an int has a limit
    for key in keys:
        if names.count(key) > 1:
            raise InputError("is there twice", source=name, field=key, remedy="keep the one that is meant")


def _parse(
    data: Buffer, name: str, decode: Callable[[Buffer], Any], check: Callable[[Any, str], Any], lines: bool = False
) -> Any:
    """Decode `data`, or raise the error that says what is wrong with it."""
    if data[:3] == b"\xef\xbb\xbf":  # the mark that some programs write before UTF-8
        data = data[3:]
    try:
        found = decode(data)
        _check_encoding(data, name)  # the decoder passes over what is not read
        return found
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        reason = str(error)  # the error itself would hold this frame, with all that is read here, in a circle
    try:
        if crowded(data) or holds_long_list(data):
            check(walked(data, lines), name)
            if crowded(data):
                raise InputError("holds more lists and objects than such a file can have", source=name)
        else:
            text = bytes(data)
            check([json.loads(line) for line in text.splitlines() if line.strip()] if lines else json.loads(text), name)
    except InputError:
        raise
    except RecursionError:
        raise InputError("nested too deeply", source=name, remedy="is this a COCO file?") from None
    except UnicodeDecodeError:
        _check_encoding(data, name)
        raise
    except ValueError:
        _check_encoding(data, name)  # the parser takes halves of characters
        problem = "is empty" if not bytes(data).strip() else f"is not valid JSON: {reason} ({len(data)} bytes in all)"
        raise InputError(problem, source=name, remedy="is it the right file, and complete?") from None
    _check_encoding(data, name)
    # Every field that is read is in order: what remains is NaN or Infinity somewhere else, which is not JSON.
    raise InputError(
        f"is not valid JSON: {reason}", source=name, remedy="NaN, Infinity and text that is not UTF-8 are not JSON"
    )


def _check_encoding(data: Buffer, name: str) -> None:
    """Refuse what is not UTF-8, wherever in the document."""
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
            if len(value) > _LONGEST_ID or "\0" in value:
                raise InputError(
                    f"an id must have at most {_LONGEST_ID} characters, none of them null",
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
    """Return flags, False where an annotation does not say."""
    for record, value in enumerate(values):
        if value is not None and value not in (0, 1):
            place = f"annotation {record}"
            raise InputError("is neither 0 nor 1", source=source, record=place, field=field, value=value)
    return np.array([bool(value) for value in values], np.bool_)


def _boxes(records: Sequence[Any]) -> NDArray[np.float64]:
    flat = np.fromiter(chain.from_iterable(r.bbox for r in records), np.float64, 4 * len(records))
    return flat.reshape(-1, 4)


def _records(checked: Mapping[str, Iterable[dict[str, Any]]]) -> _GroundTruth:
    return _GroundTruth(
        images=[_Image(**r) for r in checked["images"]],
        categories=[_Category(**r) for r in checked["categories"]],
        annotations=[_Annotation(**r) for r in checked["annotations"]],
    )


_SUFFIXES = packed(".json", ".jsonl", ".ndjson")

#: The outermost keys of COCO's documents, which the files of no other tool begin with.
_KEYS = frozenset([b"info", b"licenses", b"images", b"annotations", b"categories", b"type"])


def _sniff(given: Given) -> bool:
    if given.is_folder or given.name.endswith((".yaml", ".yml", ".csv", ".tsv")):  # may begin with a bracket too
        return False
    if json_format(given.head) is not None:
        return False
    return given.name.endswith(_SUFFIXES) or given.head.lstrip()[:1] in (b"{", b"[")


def _is_certain(given: Given) -> bool:
    """A file of JSON, by name and content, whose first fields are COCO's and no others."""
    if given.is_folder or not given.name.endswith(_SUFFIXES):
        return False
    listed, own, _ = first_keys(given.head)
    return b"image_id" in own if listed else bool(own) and own <= _KEYS


def _tell(given: Given) -> Role:
    """Detections are a list, or a record a line."""
    listed = given.head.lstrip()[:1] == b"["
    source = given.path or Held.of(given.open().read(), given.name)
    return "detections" if listed or holds_lines(source, given.name) else "ground_truth"


def _read_ground_truth(source: Source | Mapping[str, Any], reading: Reading) -> GroundTruth:
    how: dict[str, Any] = {name: getattr(reading, name) for name in ("iou_type", "invalid_boxes", "fields")}
    if not reading.image_facts or isinstance(source, Mapping):
        return read_coco(source, **how)
    data, name = read_bytes(source, "ground truth")
    held = Held.of(bytes(data), name)
    return with_facts(read_coco(held, **how), held)


def _read_detections(source: Source, ground_truth: GroundTruth | None, reading: Reading) -> Detections:
    return read_coco_results(
        source,
        ground_truth,
        iou_type=reading.iou_type,
        unknown_images=reading.unknown_images,
        invalid_boxes=reading.invalid_boxes,
    )


FORMAT = register(
    Format(
        name="coco",
        takes=("fields",),
        suffixes=_SUFFIXES,
        sniff=_sniff,
        is_certain=_is_certain,
        read_ground_truth=_read_ground_truth,
        read_detections=_read_detections,
        write_ground_truth=later("detmap.formats.coco.write", "write_ground_truth"),
        write_detections=later("detmap.formats.coco.write", "write_detections"),
        written=_SUFFIXES,
        tell=_tell,
        by_name=lambda given: _NAMED.search(given.head) is not None,
        kinds_in=kinds_in,
        inspect=inspect,
        image_field=image_field,
        salvage=later("detmap.formats.coco.salvage", "salvage"),
        holds=None,  # whatever kind has a reader
        federated=True,
        grouped=True,
        words=("COCO JSON", "COCO result JSON"),
    )
)
