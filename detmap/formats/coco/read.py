"""COCO JSON: ground truth (``instances_*.json``) and lists of results.

The scanner turns the bytes of large files into columns. Small files, and documents that the scanner refuses, are read
by `records.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detmap.columns import texts
from detmap.data.benchmarks import noted_in
from detmap.data.ids import Ids, Strings, index_ids, zeros
from detmap.data.tables import Detections, GroundTruth, complete
from detmap.errors import InputError
from detmap.formats.coco.check import LONGEST_ID, BoxlessError
from detmap.formats.coco.federated import (
    federated_columns,
    federated_columns_in,
    federated_columns_of,
    groups_in,
    has_groups,
)
from detmap.formats.coco.lines import holds_lines
from detmap.formats.coco.shapes import boxes_around, reader_of, result_shapes, truth_shapes
from detmap.formats.file_names import recoded, resolve_images
from detmap.formats.registry import Format, Given, packed
from detmap.formats.tools.recognition import first_keys, json_format
from detmap.kernels import _ahead
from detmap.plugins import later, register
from detmap.reading.opening import File, Held, unreadable
from detmap.reading.options import Reading, Role
from detmap.reading.scanner import RESULT_LISTS, scan_ground_truth, scan_results
from detmap.reading.sources import Opened, Source
from detmap.shapes import Kind
from detmap.shapes.boxes import InvalidBoxes
from detmap.shapes.kinds import BOXES
from detmap.shapes.left_strings import left

#: Minimum size in bytes for the scanner. Small files are read faster without the scanner, because loading its kernels
#: from numba's cache takes time. Kernels compiled ahead of time load without delay.
_WORTH_SCANNING = 1 << 20 if _ahead.chosen().object is None else 1 << 12


_NAMED = re.compile(rb'"image_id"\s*:\s*"')


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
        JSON with ``images``, ``categories`` and ``annotations``. An annotation has ``image_id``, ``category_id``,
        ``bbox`` (x, y, width, height), ``area`` and ``iscrowd``. Files may be compressed by gzip. A mapping is the
        parsed document.
    iou_type : {"bbox", "segm", "keypoints", "boundary"}
        The shapes to read besides the boxes: ``segmentation`` (compressed strings, run lengths or polygons) or
        ``keypoints``. An annotation without ``bbox`` then gets the box around its shape.
    invalid_boxes : {"error", "miss", "drop"}
        How boxes of negative width or height are treated, see `GroundTruth.from_arrays`.
    fields : sequence of str
        Further numeric or boolean fields of the annotations to read, for use in `Protocol.levels`;
        "attributes.occluded" is a field of a nested object.

    Returns
    -------
    GroundTruth
        One row per annotation, in file order. A missing ``iscrowd`` is taken as 0, and counted in the notices.
        ``ignore`` becomes `difficult`, which COCO's protocol does not use (pycocotools overwrites ``ignore``).

    Raises
    ------
    InputError
        If the file is not such a document; the message names file, record, field and value.
    """
    return _ground_truth(source, iou_type, invalid_boxes, fields, facts=False)


def _ground_truth(
    source: Source | Mapping[str, Any],
    iou_type: str,
    invalid_boxes: InvalidBoxes,
    fields: Sequence[str],
    *,
    facts: bool,
) -> GroundTruth:
    """Read ground truth. If `facts` is true, also read the names and sizes of images and the skeletons of categories."""
    kind = _kind_of(iou_type, source)
    if isinstance(source, Mapping):
        name = "ground truth"
        from detmap.formats.coco.records import truth_of

        columns = truth_of(source, kind, name)
        columns["notices"] |= noted_in(source)
        columns |= federated_columns(source, name)
        if kind.lists:
            from detmap.formats.coco.parts import parts_of_records, with_parts

            columns = with_parts(kind, columns, parts_of_records(kind, source["annotations"]), name, "annotation ")
        if fields:
            from detmap.formats.coco.fields import annotation_fields

            columns["fields"] = annotation_fields(source, fields, name)
    else:
        with Opened(source, "ground truth") as opened:
            name = opened.name
            scanned = _scanned_ground_truth(opened, iou_type, facts)
            if scanned is not None:
                columns = scanned
            else:
                from detmap.formats.coco.records import truth_in
                from detmap.reading.foreign_fields import foreign_fields

                columns = truth_in(opened.whole(), kind, name)
                columns["notices"] = columns["notices"] | foreign_fields(opened.whole())
                columns |= federated_columns_in(opened.whole(), columns["notices"], name)
            if has_groups(columns["notices"]):
                columns |= groups_in(opened.whole(), name)
            if kind.lists:
                from detmap.formats.coco.parts import parts_of_document, with_parts

                columns = with_parts(kind, columns, parts_of_document(kind, opened.whole()), name, "annotation ")
            if fields:
                from detmap.formats.coco.fields import annotation_fields

                columns["fields"] = annotation_fields(opened.whole(), fields, name)
            listed = columns.pop("listed", b"") or opened.whole() if facts else b""
    table = GroundTruth.from_arrays(**columns, kinds=(kind.name,), invalid_boxes=invalid_boxes, source=name)
    if not facts or isinstance(source, Mapping):
        return table
    from detmap.formats.coco.inspection import with_facts

    return with_facts(table, listed)


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
        that has this list as ``annotations`` or as ``predictions``. A file whose name ends in ``.jsonl`` or ``.ndjson``,
        or whose first line is a record, holds one record per line. Files may be compressed by gzip.
    ground_truth : GroundTruth, optional
        The ground truth that lists the images of the detections. Polygons are drawn in the image sizes of the ground
        truth.
    iou_type : {"bbox", "segm", "keypoints", "boundary"}
        The shapes to read besides the boxes: ``segmentation`` or ``keypoints``. A record without ``bbox`` then gets the
        box around its shape. If a record has ``bbox``, its area is the area of the box, and the filled box replaces a
        missing mask. If `iou_type` is "bbox" but the first record has no box, boxes and areas are computed from the
        masks or poses, as in pycocotools.
    unknown_images : {"error", "ignore"}
        Whether detections on images that the ground truth lacks are an error, or are dropped and counted.
    invalid_boxes : {"error", "miss", "drop"}
        How boxes of negative width or height are treated, see `Detections.from_arrays`.

    Returns
    -------
    Detections
        One row per record, in file order.

    Raises
    ------
    InputError
        If the file is not such a list; the message names file, record, field and value.
    """
    kind = _kind_of(iou_type, source)
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
    """Replace image ids that are file names, as in Ultralytics' results, by the ids of the ground truth."""
    own = found.images.ids
    if not isinstance(truth, GroundTruth) or truth.images.names is None:
        return found
    if own.dtype.kind == truth.images.ids.dtype.kind or own.dtype.kind == "i":
        return found
    ids = resolve_images(own.tolist(), truth, "ignore", found.source)
    if None in ids:  # for an unknown image, `on_images_of` raises the error
        return found
    return replace(found, images=recoded(ids, found.images.codes))


def _boxes_if_none(read: Callable[[Kind], dict[str, Any]], kind: Kind) -> dict[str, Any]:
    """Read results. If boxes are wanted and the results have none, read the boxes around their masks or poses."""
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
    from detmap.formats.coco.records import results_of

    name = "detections"
    columns = results_of(document, kind, truth, name)
    if not kind.lists:
        return columns
    from detmap.formats.coco.parts import parts_of_records, with_parts

    within = document
    if isinstance(document, Mapping):
        within = next(document[key] for key in RESULT_LISTS if key in document)
    return with_parts(kind, columns, parts_of_records(kind, within), name, "")


def _results_in(opened: Opened, lines: bool, kind: Kind, truth: GroundTruth | None) -> dict[str, Any]:
    """Return the columns of a file of results."""
    columns = _whole_results_in(opened, lines, kind, truth)
    if not kind.lists:
        return columns
    from detmap.formats.coco.parts import parts_of_document, with_parts

    return with_parts(kind, columns, parts_of_document(kind, opened.whole(), lines=lines), opened.name, "")


def _kind_of(iou_type: str, source: Any) -> Kind:
    """Return the kind of shapes to read from a source; raise `InputError` if COCO's format cannot hold this kind."""
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    try:
        return reader_of(iou_type, 0, path or getattr(source, "name", "data"))[0]
    except InputError:
        if path and not os.path.exists(path):  # a missing file is the error to report first
            raise unreadable(path, FileNotFoundError()) from None
        raise


def _whole_results_in(opened: Opened, lines: bool, kind: Kind, truth: GroundTruth | None) -> dict[str, Any]:
    """Return the columns of a file of results; if records have several lists of keypoints, only the first is read."""
    scanned = _scanned_results(opened, lines, kind.name, truth)
    if scanned is not None:
        return scanned
    from detmap.formats.coco.records import results_in

    return results_in(opened.whole(), lines, kind, truth, opened.name)


def _scanned_results(opened: Opened, lines: bool, iou_type: str, truth: GroundTruth | None) -> dict[str, Any] | None:
    """Return the columns of a large file that the scanner supports, else None."""
    kind, reader = reader_of(iou_type, len(opened))
    if len(opened) < (_WORTH_SCANNING if reader is None else _WORTH_SCANNING >> 3):
        return None
    if left() and not kind.lists and reader is not None and hasattr(reader[1], "scored_once"):
        reader[1].scored_once(opened.data if isinstance(opened.data, File) else None)
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


def _scanned_ground_truth(opened: Opened, iou_type: str, facts: bool) -> dict[str, Any] | None:
    """Return the columns of a large file that the scanner supports; None for other files. If `facts` is true, add the
    JSON of the images and categories.
    """
    kind, reader = reader_of(iou_type, len(opened))
    if len(opened) < (_WORTH_SCANNING if reader is None else _WORTH_SCANNING >> 3):
        return None
    found = scan_ground_truth(opened.data, None, reader=reader, listing=facts)
    if found is None or not (reader or (_complete(found.bbox) and _complete(found.area))):
        return None
    if not _short(found.image_id, found.category_id, found.images, found.categories):
        return None
    count = found.image_id.codes.size if isinstance(found.image_id, Strings) else found.image_id.size
    none = np.full(count, -1, np.int8)
    crowd = none if found.iscrowd is None else found.iscrowd
    own = found.id
    distinct, zero = count, None
    if own is not None:  # `index_ids` would pad all strings to the length of the longest one
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
        **({"listed": found.listing} if facts else {}),
    }
    if reader is None:
        return columns
    columns["image_sizes"] = found.sizes
    counts = {field: found.counts[field] for field in kind.counts}
    return truth_shapes(kind, reader[1], found.parts, columns, counts, opened.name)


def _scanned_ids(ids: Any, source: str, field: str) -> Any:
    """Return scanned ids as integers, or as distinct strings and codes."""
    return Ids(texts(ids.values, source=source, field=field), ids.codes) if isinstance(ids, Strings) else ids


def _complete(column: NDArray[np.float64] | None) -> bool:
    """Return whether every record has the field; the scanner writes NaN for a missing field."""
    return column is not None and complete(column)


def _short(*columns: Any) -> bool:
    """Return whether no id exceeds the maximum length."""
    return all(
        len(value) <= LONGEST_ID and "\0" not in value
        for ids in columns
        if isinstance(ids, Strings)
        for value in ids.values
    )


_SUFFIXES = packed(".json", ".jsonl", ".ndjson")

#: Outermost keys of COCO's documents, which no other tool's files begin with.
_KEYS = frozenset([b"info", b"licenses", b"images", b"annotations", b"categories", b"type"])


def _sniff(given: Given) -> bool:
    if given.is_folder or given.name.endswith((".yaml", ".yml", ".csv", ".tsv")):  # YAML and CSV can begin like JSON
        return False
    if json_format(given.head) is not None:
        return False
    return given.name.endswith(_SUFFIXES) or given.head.lstrip()[:1] in (b"{", b"[")


def _is_certain(given: Given) -> bool:
    """Return whether the name has a suffix of JSON files, and the first keys occur only in COCO's files."""
    if given.is_folder or not given.name.endswith(_SUFFIXES):
        return False
    listed, own, _ = first_keys(given.head)
    return b"image_id" in own if listed else bool(own) and own <= _KEYS


def _tell(given: Given) -> Role:
    """Return "detections" for a list, and for a file with a record per line; else "ground_truth"."""
    listed = given.head.lstrip()[:1] == b"["
    source = given.path or Held.of(given.open().read(), given.name)
    return "detections" if listed or holds_lines(source, given.name) else "ground_truth"


def _read_ground_truth(source: Source | Mapping[str, Any], reading: Reading) -> GroundTruth:
    facts = reading.image_facts and not isinstance(source, Mapping)
    return _ground_truth(source, reading.iou_type, reading.invalid_boxes, reading.fields, facts=facts)


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
        kinds_in=later("detmap.formats.coco.inspection", "kinds_in"),
        inspect=later("detmap.formats.coco.inspection", "inspect"),
        image_field=later("detmap.formats.coco.inspection", "image_field"),
        salvage=later("detmap.formats.coco.salvage", "salvage"),
        holds=None,  # None means every kind of shape with a field in COCO's records
        federated=True,
        grouped=True,
        fields=None,
        words=("COCO JSON", "COCO result JSON"),
    )
)
