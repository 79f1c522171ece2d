"""Scan documents into columns: COCO, VOC's results, TREC's runs and judgements.

``None`` from a ``scan_*`` function means "not understood", never "wrong": a library parser then reads the document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data import benchmarks
from detmap.data.ids import Strings
from detmap.kernels import readonly, scanning
from detmap.reading.documents import Buffer, Document, NotUnderstood
from detmap.reading.foreign_fields import foreign_fields
from detmap.reading.lists import Layout, empty, scan_array, scan_list, scan_object
from detmap.reading.opening import File
from detmap.reading.scanned_columns import Fields, Ids, Table, distinct_strings
from detmap.shapes import Reader
from detmap.shapes.kinds import BOX_FIELD, SHIPPED_COUNTS, SHIPPED_FIELDS

#: Keys under which an object may hold a list of results, and keys that only a complete data set has.
RESULT_LISTS = ("annotations", "predictions")
GROUND_TRUTH_ONLY = {"images", "categories"}

_MARK = b"\xef\xbb\xbf"  # UTF-8 byte order mark


class ResultColumns(NamedTuple):
    """COCO results, a row per record in file order."""

    #: The image and category ids, all integers or all strings; shape (n,).
    image_id: Ids
    category_id: Ids
    #: Left, top, width, height in pixels, shape (n, 4); NaN where missing, None if all are missing. A record without a
    #: box has a mask or another geometry.
    bbox: NDArray[np.float64] | None
    #: The scores; shape (n,).
    score: NDArray[np.float64]
    #: Start and end of each record's geometry in the document, by field; -1 where missing, None if all are missing.
    shapes: dict[str, NDArray[np.int64] | None]
    #: What the reader of geometries returned, in file order.
    parts: list[Any]


class GroundTruthColumns(NamedTuple):
    """COCO ground truth, rows in file order."""

    #: The ids of the images; shape (i,).
    images: Ids
    #: The ids of the categories; shape (c,).
    categories: Ids
    #: The names of the categories.
    names: list[str]
    #: The ids of the annotations, shape (n,); None if annotations have no ids.
    id: Ids | None
    #: Image and category of each annotation; shape (n,).
    image_id: Ids
    category_id: Ids
    #: Left, top, width, height in pixels, shape (n, 4); NaN where missing, None if all are missing.
    bbox: NDArray[np.float64] | None
    #: Area in square pixels, shape (n,); NaN or None as in `bbox`.
    area: NDArray[np.float64] | None
    #: 0, 1, or -1 where missing; None if all are missing; shape (n,).
    iscrowd: NDArray[np.int8] | None
    ignore: NDArray[np.int8] | None
    #: Integer fields such as ``num_keypoints``, by name; None if no annotation has the field.
    counts: Mapping[str, NDArray[np.int64] | None]
    #: Start and end of each record's geometry in the document, by field; -1 where missing, None if all are missing.
    shapes: dict[str, NDArray[np.int64] | None]
    #: Height and width of the images, shape (i, 2), NaN where missing; None if not requested.
    sizes: NDArray[np.float64] | None
    #: What the reader of geometries returned, in file order.
    parts: list[Any]
    #: Notices on fields of other benchmarks.
    notices: dict[str, int]
    #: The raw lists of images and categories, if they have fields of other benchmarks.
    sections: dict[str, bytes]
    #: The images and categories as JSON; empty if not requested.
    listing: bytes


class TrackColumns(NamedTuple):
    """YouTube-VIS' results, a row per record in file order."""

    #: The video and category ids; shape (n,).
    video_id: NDArray[np.int64]
    category_id: NDArray[np.int64]
    #: The scores; shape (n,).
    score: NDArray[np.float64]
    #: Start and end of each list of segmentations in the document; shape (n, 2).
    segmentations: NDArray[np.int64]


class RunColumns(NamedTuple):
    """A TREC run, a row per line in file order."""

    #: Index into `queries` for each row; shape (n,).
    query: NDArray[np.int32]
    #: The distinct query ids in order of first appearance.
    queries: list[bytes]
    #: Position and length of each document id in `data`, packed into one integer, shape (n,). The length is in the lowest
    #: `texts.LENGTH_BITS` bits.
    document: NDArray[np.uint64]
    #: The scores, finite; shape (n,).
    score: NDArray[np.float64]
    #: The whole run if it is in memory, or the strings copied from a file; shape (bytes,).
    data: NDArray[np.uint8]
    #: Number of lines with text after the tag.
    longer: int
    #: Number of comments: lines that begin with ``#`` and are no records.
    comments: int


class QrelsColumns(NamedTuple):
    """TREC relevance judgements, a row per line in file order. `relevance` holds the grades. The other columns are as in
    `RunColumns`.
    """

    query: NDArray[np.int32]
    queries: list[bytes]
    document: NDArray[np.uint64]
    relevance: NDArray[np.int64]
    data: NDArray[np.uint8]
    comments: int


class VocColumns(NamedTuple):
    """A file of VOC's results, a row per line in file order."""

    #: Index into `images` for each row; shape (n,).
    image: NDArray[np.int32]
    #: The distinct image ids in order of first appearance.
    images: list[bytes]
    #: Score, xmin, ymin, xmax, ymax, finite; shape (n, 5).
    numbers: NDArray[np.float64]


_ID, _NUMBER, _BOX = (scanning.ID, 1), (scanning.NUMBERS, 1), (scanning.NUMBERS, 4)
_FLAG, _SPAN = (scanning.FLAG, 1), (scanning.SPAN, 2)
_QUERY, _INTEGER = (scanning.REPEATED, 1), (scanning.INTEGER, 1)
_SHAPES = tuple(SHIPPED_FIELDS.values())
_RESULT = Fields(
    b'{"image_id":1,"category_id":1,"score":1,"keypoints":0},',
    image_id=_ID,
    category_id=_ID,
    bbox=_BOX,
    score=_NUMBER,
    **dict.fromkeys(_SHAPES, _SPAN),
)
_ANNOTATION = Fields(
    b'{"image_id":1,"category_id":1},',
    id=_ID,
    image_id=_ID,
    category_id=_ID,
    bbox=_BOX,
    area=_NUMBER,
    iscrowd=_FLAG,
    ignore=_FLAG,
    **dict.fromkeys(SHIPPED_COUNTS, _ID),
    **dict.fromkeys(_SHAPES, _SPAN),
)
_TRACK = Fields(
    b'{"video_id":1,"category_id":1,"score":1,"segmentations":[]},',
    video_id=_ID,
    category_id=_ID,
    score=_NUMBER,
    segmentations=(scanning.LISTS, 2),
)
_LISTS = {
    "images": Fields(b'{"id":1},', id=_ID),
    "annotations": _ANNOTATION,
    "categories": Fields(b'{"id":1,"name":""},', id=_ID, name=_ID),
}
_SIZED_IMAGE = Fields(b'{"id":1},', id=_ID, height=_NUMBER, width=_NUMBER)
_RUN = Fields(b"q 0 d 0 1 t\n", query=_QUERY, document=_ID, score=_NUMBER)
_VOC_NUMBERS = ("score", "xmin", "ymin", "xmax", "ymax")
_VOC = Fields(b"i 1 0 0 1 1\n", image=_ID, **dict.fromkeys(_VOC_NUMBERS, _NUMBER))
_QRELS = Fields(b"q 0 d 1\n", query=_QUERY, document=_ID, relevance=_INTEGER)


def scan_results(
    data: Buffer | File, threads: int | None, *, lines: bool = False, reader: tuple[str, Reader] | None = None
) -> ResultColumns | None:
    """Scan COCO results: a JSON list of objects, an object with that list as `annotations` or `predictions`, or JSON
    Lines.

    Returns None for a document that a library parser must read. Otherwise the document is valid JSON. Each record has a
    score, a box of four numbers or another geometry, and no repeated field; ids are all 64-bit integers or all strings.
    An object has exactly one list of results. If the object also has images or categories, the list is not empty.
    """
    try:
        kind = Layout(_RESULT.read_by(reader), reader=reader)
        document = Document(data, threads, inner=reader is not None)
        place = document.after_blanks(0)
        if lines and place < document.size:
            table, place = scan_list(document, place, kind._replace(lines=True))
        elif lines:
            table = empty(document, _RESULT)
        elif document.begins(place, b"{"):
            tables, others, place = scan_object(document, place, dict.fromkeys(RESULT_LISTS, kind))
            if len(tables) != 1:
                return None
            (table,) = tables.values()
            if not table.rows and others & GROUND_TRUTH_ONLY:
                return None
        else:
            table, place = scan_array(document, place, kind)
        if document.after_blanks(place) < document.size:
            return None
        table.required("score")
        bbox, shapes = table.numbers(BOX_FIELD), {field: table.spans(field) for field in _SHAPES}
        if not any(map(table.has, (BOX_FIELD, *shapes))):
            located = np.zeros(table.rows, np.bool_)
            located |= False if bbox is None else ~np.isnan(bbox[:, 0])
            for spans in shapes.values():
                located |= False if spans is None else spans[:, 0] >= 0
            if not located.all():
                return None
        score = table.numbers("score")
        assert score is not None
        ids = table.ids("image_id"), table.ids("category_id")
        return ResultColumns(*ids, bbox, score, shapes, table.read)
    except NotUnderstood:
        return None


def scan_ground_truth(
    data: Buffer | File, threads: int | None, *, reader: tuple[str, Reader] | None = None, listing: bool = False
) -> GroundTruthColumns | None:
    """Scan COCO ground truth: a JSON object with the lists `images`, `annotations` and `categories`. If a
    `reader` is given, the sizes of images are scanned too. If `listing` is true, the raw lists of images and categories
    are also returned. Returns None for a document that a library parser must read, for example if a list is repeated or
    some annotations lack an id.
    """
    try:
        document = Document(data, threads, inner=reader is not None)
        lists = {name: Layout(fields) for name, fields in _LISTS.items()}
        if reader is not None:
            lists["images"] = Layout(_SIZED_IMAGE)
            lists["annotations"] = Layout(_ANNOTATION.read_by(reader), reader=reader)
        tables, _, place = scan_object(document, document.after_blanks(0), lists)
        if document.after_blanks(place) < document.size or len(tables) < len(_LISTS):
            return None
        found = {name: _foreign(document, name, tables[name]) for name in _LISTS}
        notices = {code: n for codes in found.values() for code, n in codes.items()}
        sections = {name: bytes(document.slice(*tables[name].span)) for name in ("images", "categories") if found[name]}
        columns = _ground_truth(tables["images"], tables["annotations"], tables["categories"], notices, sections)
        if listing:
            images, categories = (document.slice(*tables[name].span) for name in ("images", "categories"))
            columns = columns._replace(listing=b'{"images":%b,"categories":%b}' % (images, categories))
        return columns
    except NotUnderstood:
        return None


def scan_tracks(data: Buffer, threads: int | None = None) -> TrackColumns | None:
    """Scan YouTube-VIS' results: a JSON list of objects. Returns None for a document that a library parser must read.

    The lists of segmentations are only located. The caller must check that each list is valid, and that it ends at the
    position given in `TrackColumns.segmentations`.
    """
    try:
        document = Document(data, threads)
        table, place = scan_array(document, document.after_blanks(0), Layout(_TRACK))
        if not table.rows or document.after_blanks(place) < document.size:
            return None
        table.required(*_TRACK.names)
        videos, categories = table.ids("video_id"), table.ids("category_id")
    except NotUnderstood:
        return None
    if isinstance(videos, Strings) or isinstance(categories, Strings):
        return None
    score, segmentations = table.numbers("score"), table.spans("segmentations")
    assert score is not None
    assert segmentations is not None
    return TrackColumns(videos, categories, score, segmentations)


def _foreign(document: Document, section: str, table: Table) -> dict[str, int]:
    """Return the notices on fields of other benchmarks in a list, which is parsed again if it may have such fields."""
    fields = [field for field in benchmarks.fields_of(section) if table.may_have(field)]
    if fields and section != "annotations":  # annotations are not parsed, because there are many
        return foreign_fields(b'{"%b":%b}' % (section.encode(), document.slice(*table.span)))
    found = [field for field in fields if document.find(re.compile(b'"%b"' % field.encode()), *table.span) >= 0]
    return benchmarks.noted(found, section)


def _ground_truth(
    images: Table, annotations: Table, categories: Table, notices: dict[str, int], sections: dict[str, bytes]
) -> GroundTruthColumns:
    """Combine the columns of the three lists."""
    names = categories.ids("name")
    counts: dict[str, NDArray[np.int64] | None] = {}
    for field in SHIPPED_COUNTS:
        found = annotations.ids(field) if field in annotations.columns else None
        if isinstance(found, Strings):
            raise NotUnderstood
        counts[field] = found
    if categories.rows and not isinstance(names, Strings):
        raise NotUnderstood
    return GroundTruthColumns(
        images=images.ids("id"),
        categories=categories.ids("id"),
        names=[names.values[code] for code in names.codes.tolist()] if isinstance(names, Strings) else [],
        id=annotations.ids("id") if "id" in annotations.columns else None,
        image_id=annotations.ids("image_id"),
        category_id=annotations.ids("category_id"),
        bbox=annotations.numbers(BOX_FIELD),
        area=annotations.numbers("area"),
        iscrowd=annotations.flags("iscrowd"),
        ignore=annotations.flags("ignore"),
        counts=counts,
        shapes={field: annotations.spans(field) for field in _SHAPES},
        sizes=_sizes(images) if "height" in images.fields.names else None,
        parts=annotations.read,
        notices=notices,
        sections=sections,
        listing=b"",
    )


def _sizes(images: Table) -> NDArray[np.float64]:
    """Return heights and widths, NaN where missing."""
    columns = [images.numbers(name) for name in ("height", "width")]
    return np.stack([np.full(images.rows, np.nan) if one is None else one for one in columns], axis=1)


_RUN_LINES = Layout(_RUN, tokens=readonly([0, -1, 1, -1, 2, -1], np.int64), more=True)
_QRELS_LINES = Layout(_QRELS, tokens=readonly([0, -1, 1, 2], np.int64))
_VOC_LINES = Layout(_VOC, tokens=readonly(range(6), np.int64))


def _scan_tokens(
    data: Buffer | File, threads: int | None, kind: Layout
) -> tuple[Table, NDArray[np.int32], list[bytes]]:
    """Scan lines after an optional byte order mark, and number the distinct values of the first field: queries or images."""
    document = Document(data, threads, b"\n")
    table, _ = scan_list(document, len(_MARK) if document.begins(0, _MARK) else 0, kind)
    return table, *distinct_strings(table.texts, table.columns[kind.fields.names[0]][:, 0])


def scan_run(data: Buffer | File, threads: int | None = None) -> RunColumns | None:
    """Scan a TREC run: lines of query, an ignored field, document, rank (ignored), score, tag (ignored).

    As in trec_eval, empty lines are skipped, and so are up to `lines.MOST_FURTHER` words after the tag. Comments are
    counted; see `kernels.lines.scan_lines`. Returns None if a line is not plain: too few or too many fields, a score
    that is no finite decimal number, a control character.
    """
    try:
        table, query, queries = _scan_tokens(data, threads, _RUN_LINES)
    except NotUnderstood:
        return None
    score = table.numbers("score")
    assert score is not None
    return RunColumns(query, queries, table.columns["document"][:, 0], score, table.texts, table.longer, table.comments)


def scan_qrels(data: Buffer | File, threads: int | None = None) -> QrelsColumns | None:
    """Scan TREC relevance judgements: lines of query, an ignored field, document, grade.

    Empty lines are skipped and comments are counted, as in a run. Returns None if a line is not plain: a different
    number of fields, a grade that is no 64-bit integer, a control character.
    """
    try:
        table, query, queries = _scan_tokens(data, threads, _QRELS_LINES)
    except NotUnderstood:
        return None
    relevance = table.columns["relevance"][:, 0].view(np.int64)
    return QrelsColumns(query, queries, table.columns["document"][:, 0], relevance, table.texts, table.comments)


def scan_voc_results(data: Buffer, threads: int | None = None) -> VocColumns | None:
    """Scan a file of VOC's results: lines of image, score and four corners.

    Returns None if a line is not plain: a different number of fields, a number that is not finite, a control character,
    a ``#`` (which does not begin a comment in these files), a byte order mark.
    """
    if b"#" in bytes(data) or bytes(data[:3]) == _MARK:
        return None
    try:
        table, image, images = _scan_tokens(data, threads, _VOC_LINES)
    except NotUnderstood:
        return None
    columns = [table.numbers(name) for name in _VOC_NUMBERS]
    return VocColumns(image, images, np.stack([one for one in columns if one is not None], axis=1))
