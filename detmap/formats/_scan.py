"""The orchestration of the scanner: map a file, split it at records, scan on threads, verify the splits, merge columns.

``None`` from a ``scan_*`` function means "not understood", never "wrong": a library parser then decides what the document
is.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import mmap
import os
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap import parallel
from detmap.kernels import readonly, scanning

# Bytes that a thread scans at a time. The outcome does not depend on it.
BLOCK = 1 << 22
# Numbers of a block that are handed to float() at a time.
DOUBTS = 1 << 10

_BLANKS = re.compile(rb"[ \t\n\r]*")
_FIRST_KEY = re.compile(rb'\{[ \t\n\r]{0,64}"[^"\\]{0,64}"')
# What float() reads beyond decimal numbers (inf, nan, 1_000) is not plain.
_DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

Buffer = bytes | bytearray | memoryview | mmap.mmap


class Strings(NamedTuple):
    """A column of string ids.

    Attributes
    ----------
    codes : (n,) int32
        Index into `values` for each row.
    values : list of str
        The distinct ids in the order of their first appearance.
    """

    codes: NDArray[np.int32]
    values: list[str]


Ids = NDArray[np.int64] | Strings


class ResultColumns(NamedTuple):
    """COCO results, a row per record in file order.

    Attributes
    ----------
    image_id, category_id : (n,) int64, or Strings
        The ids, as integers or as strings throughout.
    bbox : (n, 4) float64 or None
        Left, top, width, height in pixels; NaN where a record has none, None where no record has one.
        A record without a box has a segmentation or keypoints.
    score : (n,) float64
        The scores.
    segmentation, keypoints : (n, 2) int64 or None
        Where the value lies in the document, begin and end; -1 where a record has none, None where no record has one.
    """

    image_id: Ids
    category_id: Ids
    bbox: NDArray[np.float64] | None
    score: NDArray[np.float64]
    segmentation: NDArray[np.int64] | None
    keypoints: NDArray[np.int64] | None


class GroundTruthColumns(NamedTuple):
    """COCO ground truth, rows in file order.

    Attributes
    ----------
    images : (i,) int64, or Strings
        The ids of the images.
    categories : (c,) int64, or Strings
        The ids of the categories.
    names : list of str
        The names of the categories.
    id : (n,) int64, or Strings, or None
        The ids of the annotations; None where they have none.
    image_id, category_id : (n,) int64, or Strings
        Image and category of each annotation.
    bbox : (n, 4) float64 or None
        Left, top, width, height in pixels; NaN where an annotation has none, None where all have none.
    area : (n,) float64 or None
        Area in square pixels; NaN or None as in `bbox`.
    iscrowd, ignore : (n,) int8 or None
        0, 1, or -1 where an annotation does not say; None where none says.
    num_keypoints : (n,) int64 or None
        How many keypoints are labelled; None where no annotation says.
    segmentation, keypoints : (n, 2) int64 or None
        Where the value lies in the document, begin and end; -1 where an annotation has none, None where all have none.
    """

    images: Ids
    categories: Ids
    names: list[str]
    id: Ids | None
    image_id: Ids
    category_id: Ids
    bbox: NDArray[np.float64] | None
    area: NDArray[np.float64] | None
    iscrowd: NDArray[np.int8] | None
    ignore: NDArray[np.int8] | None
    num_keypoints: NDArray[np.int64] | None
    segmentation: NDArray[np.int64] | None
    keypoints: NDArray[np.int64] | None


class RunColumns(NamedTuple):
    """A TREC run, a row per line in file order.

    Attributes
    ----------
    query : (n,) int32
        Index into `queries` for each row.
    queries : list of bytes
        The distinct query ids in the order of their first appearance.
    document : (n,) uint64
        Where each document id lies in `data`: its first byte's position, shifted left by `scanning.LENGTH_BITS`, plus
        its length.
    score : (n,) float64
        The scores, finite.
    data : (bytes,) uint8
        The file.
    longer : int
        How many lines have text after the tag.
    """

    query: NDArray[np.int32]
    queries: list[bytes]
    document: NDArray[np.uint64]
    score: NDArray[np.float64]
    data: NDArray[np.uint8]
    longer: int


class QrelsColumns(NamedTuple):
    """TREC relevance judgements, a row per line in file order.

    Attributes
    ----------
    query, queries, document, data
        As in `RunColumns`.
    relevance : (n,) int64
        The grades.
    """

    query: NDArray[np.int32]
    queries: list[bytes]
    document: NDArray[np.uint64]
    relevance: NDArray[np.int64]
    data: NDArray[np.uint8]


class MappedFile(mmap.mmap):
    """A whole file, mapped for reading; pages that have been scanned are given back."""


def map_file(path: str | os.PathLike[str]) -> MappedFile | bytes:
    """Map a file for the scanner; what cannot be mapped (a pipe, an empty file) is read."""
    with Path(path).open("rb") as file:
        try:
            return MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (ValueError, OSError):
            return file.read()


class _NotUnderstood(Exception):
    """The document is left to the library parser."""


@functools.cache
def _powers() -> NDArray[np.uint64]:
    """The powers that the kernels look up: 10**0 ... 10**19, then the leading 128 bits of every 5**q as two words."""
    words = [10**n for n in range(scanning.POWERS_OF_FIVE)]
    for q in range(scanning.LOWEST_POWER, scanning.HIGHEST_POWER + 1):
        power = 5 ** abs(q)
        if q < 0:  # the reciprocal; rounded up as long as the power itself has fewer than 64 bits
            power = (1 << (127 + power.bit_length())) // power + (q >= -27)
        power = power << 128 >> power.bit_length()
        words += [power >> 64, power & (1 << 64) - 1]
    return readonly(words, np.uint64)


class _Document:
    """A document's bytes, as the kernels and as `re` read them, and how many marks lie where.

    A mark is a byte that every record has: JSON's opening brace, or the line feed of lines that need not be UTF-8.
    """

    def __init__(self, data: Buffer, threads: int | None, mark: bytes = b"{") -> None:
        self.mark = ord(mark)
        self.raw: Buffer = data if len(data) >= 8 else bytes(data) + b"\n" * 8
        self.bytes = readonly(np.frombuffer(self.raw, np.uint8), np.uint8)
        self.size = len(self.raw)
        self.threads = threads
        bounds = [(begin, min(begin + BLOCK, self.size)) for begin in range(0, self.size, BLOCK)]
        self.marks = [0, *itertools.accumulate(parallel.run(self._survey, bounds, threads))]

    def _survey(self, begin: int, end: int) -> int:
        """Count the marks of a block, and make sure that JSON is UTF-8."""
        end += self._continued(end)  # a character that the block's edge cuts belongs to the block that it begins in
        count = scanning.survey(self.bytes, begin, end, self.mark)
        if count < 0 and self.mark == ord("{"):
            try:
                str(self.slice(begin + (self._continued(begin) if begin else 0), end), "utf-8")
            except UnicodeDecodeError:
                raise _NotUnderstood from None
        self.release(begin, end)
        return int(max(count, ~count))

    def _continued(self, place: int) -> int:
        """How many of the bytes from `place` on continue a character; at most three can."""
        following = self.bytes[place : place + 3] & 0xC0 == 0x80
        return int(np.argmin(following)) if not following.all() else len(following)

    def slice(self, begin: int, end: int) -> bytes:
        """Copy some bytes."""
        return bytes(self.raw[begin:end])

    def marks_before(self, place: int) -> int:
        """Count the marks ahead of a position."""
        block = place // BLOCK
        count = scanning.survey(self.bytes, block * BLOCK, place, self.mark)
        return self.marks[block] + int(max(count, ~count))

    def release(self, begin: int, end: int) -> None:
        """Give the pages of a block back to the system: they stay in its file cache, not in our memory."""
        if isinstance(self.raw, MappedFile) and hasattr(mmap, "MADV_DONTNEED"):
            begin = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
            end = end // mmap.PAGESIZE * mmap.PAGESIZE
            if end > begin:
                self.raw.madvise(mmap.MADV_DONTNEED, begin, end - begin)

    def after_blanks(self, place: int) -> int:
        """Return the first position from `place` on that is not white space."""
        match = _BLANKS.match(self.raw, place)
        assert match is not None  # it may be empty
        return match.end()

    def begins(self, place: int, text: bytes) -> bool:
        """Whether `text` lies at a position."""
        return self.slice(place, place + len(text)) == text

    def skip(self, place: int) -> int:
        """Return where the value that begins at a position ends."""
        with np.errstate(over="ignore"):  # uncompiled, words that wrap around warn
            place = scanning.skip_value(self.bytes, place, False, _powers())
        if place < 0:
            raise _NotUnderstood
        return place

    def text(self, begin: int, end: int) -> str:
        """Decode the string between two quotes."""
        raw = self.slice(begin, end)
        text: str = json.loads(b'"%b"' % raw) if b"\\" in raw else raw.decode()
        return text

    def resolve(self, doubts: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
        """Let `float()` read the numbers that the kernel could not decide."""
        floats = words.view(np.float64)
        for at, begin, end in doubts.tolist():
            text = self.slice(begin, end)
            value = float(text) if _DECIMAL.fullmatch(text) else math.inf
            if math.isinf(value):
                raise _NotUnderstood
            floats[at] = value


class _Fields:
    """The fields of a kind of record.

    Parameters
    ----------
    least : bytes
        The shortest record, with what follows it.
    **kinds : (int, int)
        What each field holds, and how many words a record has of it.
    """

    def __init__(self, least: bytes, **kinds: tuple[int, int]) -> None:
        self.least = len(least)
        self.names = tuple(kinds)
        self.kinds = tuple(kind for kind, _ in kinds.values())
        self.widths = tuple(width for _, width in kinds.values())
        rows = []
        for name in self.names:
            text, mask = name.encode() + b'"', b"\xff" * (len(name) + 1)
            rows.append(
                [*(int.from_bytes(part[k : k + 8], "little") for part in (text, mask) for k in (0, 8)), len(text)]
            )
        self.table = readonly(rows, np.uint64)

    def places(self, capacity: int) -> tuple[NDArray[np.int64], int, int]:
        """Lay out columns of `capacity` rows one after the other; and say how many words ids have, and all others."""
        begins, sizes = [], [0, 0]
        for kind, width in zip(self.kinds, self.widths, strict=True):
            apart = kind in scanning.APART
            begins.append(sizes[apart])
            sizes[apart] += capacity * width
        return readonly(list(zip(self.kinds, self.widths, begins, strict=True)), np.int64), sizes[True], sizes[False]


_ID, _NUMBER, _BOX = (scanning.ID, 1), (scanning.NUMBERS, 1), (scanning.NUMBERS, 4)
_FLAG, _SPAN = (scanning.FLAG, 1), (scanning.SPAN, 2)
_QUERY, _INTEGER = (scanning.REPEATED, 1), (scanning.INTEGER, 1)
_RESULT = _Fields(
    b'{"image_id":1,"category_id":1,"score":1,"keypoints":0},',
    image_id=_ID,
    category_id=_ID,
    bbox=_BOX,
    score=_NUMBER,
    segmentation=_SPAN,
    keypoints=_SPAN,
)
_ANNOTATION = _Fields(
    b'{"image_id":1,"category_id":1},',
    id=_ID,
    image_id=_ID,
    category_id=_ID,
    bbox=_BOX,
    area=_NUMBER,
    iscrowd=_FLAG,
    ignore=_FLAG,
    num_keypoints=_ID,
    segmentation=_SPAN,
    keypoints=_SPAN,
)
_LISTS = {
    "images": _Fields(b'{"id":1},', id=_ID),
    "annotations": _ANNOTATION,
    "categories": _Fields(b'{"id":1,"name":""},', id=_ID, name=_ID),
}
_RUN = _Fields(b"q 0 d 0 1 t\n", query=_QUERY, document=_ID, score=_NUMBER)
_QRELS = _Fields(b"q 0 d 1\n", query=_QUERY, document=_ID, relevance=_INTEGER)


class _Table:
    """The columns of a list of records.

    Parameters
    ----------
    document : _Document
        What was scanned.
    fields : _Fields
        What it was scanned for.
    capacity : int
        The number of rows for which there is room.
    ids, words : uint64
        The columns, one after the other.
    parts : list of (STATE_SIZE,) int64
        The final states of the blocks in the order of the document.
    """

    def __init__(
        self,
        document: _Document,
        fields: _Fields,
        capacity: int,
        ids: NDArray[np.uint64],
        words: NDArray[np.uint64],
        parts: list[NDArray[np.int64]],
    ) -> None:
        self.document, self.fields = document, fields
        parts = [part for part in parts if part[scanning.ROW] > part[scanning.FIRST]]
        self.rows = sum(int(part[scanning.ROW] - part[scanning.FIRST]) for part in parts)
        states = np.array(parts, np.int64).reshape(-1, scanning.STATE_SIZE)
        self.ever, self.integers, self.strings = (
            int(np.bitwise_or.reduce(states[:, slot])) for slot in (scanning.EVER, scanning.INTEGERS, scanning.STRINGS)
        )
        self.always = int(np.bitwise_and.reduce(states[:, scanning.ALWAYS]))
        self.longer = int(states[:, scanning.LONGER].sum())
        self.columns: dict[str, NDArray[np.uint64]] = {}
        for f, (kind, width, begin) in enumerate(fields.places(capacity)[0].tolist()):
            own = ids if kind in scanning.APART else words
            column = own[begin : begin + capacity * width].reshape(capacity, width)
            if self.ever >> f & 1 or not parts:
                self.columns[fields.names[f]] = self._packed(column, parts, 1 << f)

    def _packed(self, column: NDArray[np.uint64], parts: list[NDArray[np.int64]], bit: int) -> NDArray[np.uint64]:
        """Close the gaps between blocks that counted more braces than records, and say where blocks lack the field."""
        row = 0
        for part in parts:
            begin, end = int(part[scanning.FIRST]), int(part[scanning.ROW])
            if not part[scanning.EVER] & bit:
                column[row : row + end - begin] = scanning.ALL
            elif row != begin:
                column[row : row + end - begin] = column[begin:end]
            row += end - begin
        # What nobody can write to need not be copied: boxes and scores are used where they are. Ids are not, and lie apart.
        column.setflags(write=False)
        return column[:row]

    def has(self, name: str) -> bool:
        """Whether every record has a field."""
        return bool(self.always >> self.fields.names.index(name) & 1)

    def required(self, *names: str) -> None:
        """Leave the document to the library parser unless every record has these fields."""
        if not all(map(self.has, names)):
            raise _NotUnderstood

    def numbers(self, name: str) -> NDArray[np.float64] | None:
        """Return a column of numbers, NaN where a record has none."""
        column = self.columns.get(name)
        return None if column is None else np.squeeze(column.view(np.float64), () if column.shape[1] > 1 else 1)

    def spans(self, name: str) -> NDArray[np.int64] | None:
        """Return a column of spans, -1 where a record has none."""
        column = self.columns.get(name)
        return None if column is None else column.view(np.int64)

    def flags(self, name: str) -> NDArray[np.int8] | None:
        """Return a column of flags, -1 where a record has none."""
        column = self.columns.get(name)
        return None if column is None else column[:, 0].astype(np.int8)

    def ids(self, name: str) -> Ids:
        """Return a column of ids, which every record has."""
        self.required(name)
        column = self.columns[name]
        bit = 1 << self.fields.names.index(name)
        if not self.strings & bit:
            return column[:, 0].view(np.int64)
        if self.integers & bit:
            raise _NotUnderstood
        return _factorised(self.document, column[:, 0])


def _distinct(document: _Document, words: NDArray[np.uint64]) -> tuple[NDArray[np.int32], list[tuple[int, int]]]:
    """Number distinct strings: each row's number, and where each string appeared first (begin, end)."""
    codes = np.empty(len(words), np.int32)
    firsts = np.empty(len(words), np.uint64)
    seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
    with np.errstate(over="ignore"):  # see _Document.skip
        count = scanning.factorise(document.bytes, readonly(words, np.uint64), seed, codes, firsts)
    begins = (firsts[:count] >> np.uint64(scanning.LENGTH_BITS)).astype(np.int64)
    ends = begins + (firsts[:count] & np.uint64((1 << scanning.LENGTH_BITS) - 1)).astype(np.int64)
    return codes, list(zip(begins.tolist(), ends.tolist(), strict=True))


def _factorised(document: _Document, words: NDArray[np.uint64]) -> Strings:
    """Number distinct JSON strings; strings that are written differently may still be the same."""
    codes, places = _distinct(document, words)
    numbers: dict[str, int] = {}
    distinct = [numbers.setdefault(document.text(begin, end), len(numbers)) for begin, end in places]
    if len(numbers) < len(places):
        codes = np.array(distinct, np.int32)[codes]
    return Strings(codes, list(numbers))


class _Format(NamedTuple):
    """How records follow each other."""

    fields: _Fields
    # JSON: one record a line instead of a list
    lines: bool = False
    # Not JSON, but tokens: for each token of a line its field, -1 for none; and whether others may follow
    tokens: NDArray[np.int64] | None = None
    more: bool = False

    def cuts(self, document: _Document, begin: int) -> list[int]:
        """Guess where records begin, one a block.

        A writer begins all its records alike: with a brace and the key of the first record. Where that key is found
        inside a record the guess is wrong; the scan of the block before shows it. A block without that key is likely to
        lie behind the list.
        """
        if self.lines or self.tokens is not None:
            feed, pattern = 1, re.compile(rb"\n(?=\{)" if self.lines else rb"\n")
        else:
            match = _FIRST_KEY.match(document.raw, begin)
            if match is None:
                return []
            feed, pattern = 0, re.compile(re.escape(match.group()))
        cuts = []
        for place in range((begin // BLOCK + 1) * BLOCK, document.size, BLOCK):
            found = pattern.search(document.raw, place, place + BLOCK)
            if found is None or found.start() + feed == document.size:
                break
            cuts.append(found.start() + feed)
        return cuts

    def rows(self, document: _Document, cuts: list[int]) -> list[int]:
        """Return the first row of each block: no block has more records than marks, or than fit."""
        marks = [document.marks_before(cut) for cut in cuts]
        marks[-1] += 1  # the last line may have no line feed
        rows = [0]
        for k, (begin, end) in enumerate(itertools.pairwise(cuts)):
            rows.append(rows[-1] + min(marks[k + 1] - marks[k], (end - begin) // self.fields.least + 1))
        return rows

    def scan(
        self,
        document: _Document,
        stop: int,
        places: NDArray[np.int64],
        ids: NDArray[np.uint64],
        words: NDArray[np.uint64],
        doubts: NDArray[np.int64],
        state: NDArray[np.int64],
    ) -> None:
        """Call the kernel."""
        if self.tokens is None:
            names, lines = self.fields.table, self.lines
            scanning.scan_records(document.bytes, stop, lines, names, places, _powers(), ids, words, doubts, state)
        else:
            tokens, more = self.tokens, self.more
            scanning.scan_lines(document.bytes, stop, tokens, more, places, _powers(), ids, words, doubts, state)


def _scan_list(document: _Document, begin: int, kind: _Format) -> tuple[_Table, int]:
    """Scan the records from `begin` on: their table, and the position after the list.

    Every block is scanned as if its first record began where that was guessed. It did if the block before ends there; else
    the block is scanned anew from where that ends.
    """
    cuts = [begin, *kind.cuts(document, begin), document.size]
    rows = kind.rows(document, cuts)
    places, *sizes = kind.fields.places(rows[-1])
    ids, words = (np.empty(size, np.uint64) for size in sizes)
    ended = document.size

    def scan(block: int, start: int) -> NDArray[np.int64]:
        nonlocal ended
        stop = cuts[block + 1]
        state = np.zeros(scanning.STATE_SIZE, np.int64)
        state[scanning.POSITION] = start
        state[scanning.FIRST] = state[scanning.ROW] = rows[block]
        state[scanning.LIMIT] = rows[block + 1]
        state[scanning.ALWAYS] = -1
        doubts = np.empty((DOUBTS, 3), np.int64)
        with np.errstate(over="ignore"):  # see _Document.skip
            while True:
                kind.scan(document, stop, places, ids, words, doubts, state)
                try:
                    document.resolve(doubts[: state[scanning.DOUBTS]], words)
                except _NotUnderstood:
                    state[scanning.STATUS] = scanning.FAILED
                if state[scanning.STATUS] != scanning.FULL:
                    break
                state[scanning.DOUBTS] = 0
        if state[scanning.STATUS] == scanning.CLOSED:
            ended = min(ended, int(state[scanning.POSITION]))
        document.release(start, stop)
        return state

    def guess(block: int, _: int) -> NDArray[np.int64] | None:
        return scan(block, cuts[block]) if cuts[block] <= ended else None

    guesses = parallel.run(guess, [(block, block + 1) for block in range(len(rows) - 1)], document.threads)
    parts = []
    place = begin
    for block, guessed in enumerate(guesses):
        if place >= cuts[block + 1]:
            continue
        state = guessed if guessed is not None and place == cuts[block] else scan(block, place)
        if state[scanning.STATUS] == scanning.FAILED:
            break
        parts.append(state)
        place = int(state[scanning.POSITION])
        if state[scanning.STATUS] == scanning.CLOSED:
            return _Table(document, kind.fields, rows[-1], ids, words, parts), place
    raise _NotUnderstood


def _empty(document: _Document, fields: _Fields) -> _Table:
    return _Table(document, fields, 0, np.empty(0, np.uint64), np.empty(0, np.uint64), [])


def _scan_array(document: _Document, place: int, fields: _Fields) -> tuple[_Table, int]:
    """Scan the list of records at a position: its table, and the position after it."""
    if not document.begins(place, b"["):
        raise _NotUnderstood
    place = document.after_blanks(place + 1)
    if document.begins(place, b"]"):
        return _empty(document, fields), place + 1
    return _scan_list(document, place, _Format(fields))


def scan_results(data: Buffer, threads: int | None, *, lines: bool = False) -> ResultColumns | None:
    """Scan COCO results: a JSON list of objects, or one object a line.

    Parameters
    ----------
    data : bytes or mmap or memoryview
        The document.
    threads : int or None
        How many threads work on it, None for one per processor. The outcome does not depend on it.
    lines : bool
        Whether the document is JSON Lines.

    Returns
    -------
    ResultColumns or None
        The columns; None where the document is not understood, so that a library parser has to decide. What is
        understood is valid JSON, with a plain record in every place: each field at most once, ids integers of 64 bits or
        strings throughout, a score, and a box of four numbers or a segmentation or keypoints.
    """
    try:
        document = _Document(data, threads)
        place = document.after_blanks(0)
        if lines and place < document.size:
            table, place = _scan_list(document, place, _Format(_RESULT, lines=True))
        elif lines:
            table = _empty(document, _RESULT)
        else:
            table, place = _scan_array(document, place, _RESULT)
        if document.after_blanks(place) < document.size:
            return None
        table.required("score")
        bbox, segmentation, keypoints = table.numbers("bbox"), table.spans("segmentation"), table.spans("keypoints")
        if not (table.has("bbox") or table.has("segmentation") or table.has("keypoints")):
            located = np.zeros(table.rows, np.bool_)
            located |= False if bbox is None else ~np.isnan(bbox[:, 0])
            for spans in (segmentation, keypoints):
                located |= False if spans is None else spans[:, 0] >= 0
            if not located.all():
                return None
        score = table.numbers("score")
        assert score is not None
        return ResultColumns(table.ids("image_id"), table.ids("category_id"), bbox, score, segmentation, keypoints)
    except _NotUnderstood:
        return None


def scan_ground_truth(data: Buffer, threads: int | None) -> GroundTruthColumns | None:
    """Scan COCO ground truth: a JSON object with the lists `images`, `annotations` and `categories`.

    Parameters
    ----------
    data : bytes or mmap or memoryview
        The document.
    threads : int or None
        How many threads work on it, None for one per processor. The outcome does not depend on it.

    Returns
    -------
    GroundTruthColumns or None
        The columns; None where the document is not understood, so that a library parser has to decide. What is
        understood is valid JSON, with each list once and a plain record in every place: each field at most once, ids
        integers of 64 bits or strings throughout, and where one record has an id of a kind, all have.
    """
    try:
        document = _Document(data, threads)
        tables: dict[str, _Table] = {}
        place = document.after_blanks(0)
        separator = b"{"
        while document.begins(place, separator):
            place = document.after_blanks(place + 1)
            if separator == b"{" and document.begins(place, b"}"):
                break
            separator = b","
            begin = place
            if not document.begins(place, b'"'):
                return None
            place = document.skip(place)
            name = document.text(begin + 1, place - 1)
            place = document.after_blanks(place)
            if not document.begins(place, b":"):
                return None
            place = document.after_blanks(place + 1)
            if name not in _LISTS:
                place = document.skip(place)
            elif name in tables:
                return None
            else:
                tables[name], place = _scan_array(document, place, _LISTS[name])
            place = document.after_blanks(place)
        if not document.begins(place, b"}") or document.after_blanks(place + 1) < document.size:
            return None
        if len(tables) < len(_LISTS):
            return None
        return _ground_truth(tables["images"], tables["annotations"], tables["categories"])
    except _NotUnderstood:
        return None


def _ground_truth(images: _Table, annotations: _Table, categories: _Table) -> GroundTruthColumns:
    """Put the columns of the three lists together."""
    names = categories.ids("name")
    num_keypoints = annotations.ids("num_keypoints") if "num_keypoints" in annotations.columns else None
    if (categories.rows and not isinstance(names, Strings)) or isinstance(num_keypoints, Strings):
        raise _NotUnderstood
    return GroundTruthColumns(
        images=images.ids("id"),
        categories=categories.ids("id"),
        names=[names.values[code] for code in names.codes.tolist()] if isinstance(names, Strings) else [],
        id=annotations.ids("id") if "id" in annotations.columns else None,
        image_id=annotations.ids("image_id"),
        category_id=annotations.ids("category_id"),
        bbox=annotations.numbers("bbox"),
        area=annotations.numbers("area"),
        iscrowd=annotations.flags("iscrowd"),
        ignore=annotations.flags("ignore"),
        num_keypoints=num_keypoints,
        segmentation=annotations.spans("segmentation"),
        keypoints=annotations.spans("keypoints"),
    )


_RUN_LINES = _Format(_RUN, tokens=readonly([0, -1, 1, -1, 2, -1], np.int64), more=True)
_QRELS_LINES = _Format(_QRELS, tokens=readonly([0, -1, 1, 2], np.int64))


def _scan_tokens(
    data: Buffer, threads: int | None, kind: _Format
) -> tuple[_Document, _Table, NDArray[np.int32], list[bytes]]:
    """Scan lines, and number the queries."""
    document = _Document(data, threads, b"\n")
    table, _ = _scan_list(document, 0, kind)
    codes, places = _distinct(document, table.columns["query"][:, 0])
    return document, table, codes, [document.slice(begin, end) for begin, end in places]


def scan_run(data: Buffer, threads: int | None = None) -> RunColumns | None:
    """Scan a TREC run: lines of query, a field that is passed, document, rank (passed), score, tag (passed).

    As in trec_eval, empty lines and those that begin with ``#`` are passed, and so are up to `scanning.MOST_FURTHER` words
    that follow the tag.

    Parameters
    ----------
    data : bytes or mmap or memoryview
        The document.
    threads : int or None
        How many threads work on it, None for one per processor. The outcome does not depend on it.

    Returns
    -------
    RunColumns or None
        The columns; None where a line is not plain: too few fields or too many, a score that is no finite decimal number,
        a control character.
    """
    try:
        document, table, query, queries = _scan_tokens(data, threads, _RUN_LINES)
    except _NotUnderstood:
        return None
    score = table.numbers("score")
    assert score is not None
    return RunColumns(query, queries, table.columns["document"][:, 0], score, document.bytes, table.longer)


def scan_qrels(data: Buffer, threads: int | None = None) -> QrelsColumns | None:
    """Scan TREC relevance judgements: lines of query, a field that is passed, document, grade.

    Empty lines and those that begin with ``#`` are passed.

    Parameters
    ----------
    data : bytes or mmap or memoryview
        The document.
    threads : int or None
        How many threads work on it, None for one per processor. The outcome does not depend on it.

    Returns
    -------
    QrelsColumns or None
        The columns; None where a line is not plain: another number of fields, a grade that is no integer of 64 bits, a
        control character.
    """
    try:
        document, table, query, queries = _scan_tokens(data, threads, _QRELS_LINES)
    except _NotUnderstood:
        return None
    relevance = table.columns["relevance"][:, 0].view(np.int64)
    return QrelsColumns(query, queries, table.columns["document"][:, 0], relevance, document.bytes)
