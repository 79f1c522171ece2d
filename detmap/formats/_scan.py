"""The orchestration of the scanner: split a document at records, scan on threads, verify the splits, merge columns.

A file is read by windows, as the scan comes to them; what a column keeps of it (strings) is copied. A document in memory
is one window.

``None`` from a ``scan_*`` function means "not understood", never "wrong": a library parser then decides what the document
is.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap import parallel
from detmap.formats._open import File
from detmap.kernels import readonly, scanning, texts
from detmap.shapes import Reader
from detmap.shapes.reading import decimal, powers

# Bytes that a thread scans at a time, and those of a file that it has in memory. The outcome depends on neither.
BLOCK = 1 << 20
WINDOW = 1 << 23
# So many bytes of a window lie behind the place where the last record begins that is scanned in it. If that is longer, the
# window is made larger, by this factor, up to a limit; what is longer still is left to the library parser.
MARGIN = 1 << 16
GROWTH, MOST_MARGIN = 4, 1 << 24
# Numbers of a block that are handed to float() at a time.
DOUBTS = 1 << 10

#: Where results are in an object instead of a list; and what only ground truth, or a whole data set of results, has.
RESULT_LISTS = ("annotations", "predictions")
GROUND_TRUTH_ONLY = {"images", "categories"}

_MARK = b"\xef\xbb\xbf"  # of the byte order, in UTF-8
_BLANKS = re.compile(rb"[ \t\n\r]*")
_FIRST_KEY = re.compile(rb'\{[ \t\n\r]{0,64}"[^"\\]{0,64}"')

Buffer = bytes | bytearray | memoryview


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
    parts : list
        What the reader of shapes made of them, in file order.
    """

    image_id: Ids
    category_id: Ids
    bbox: NDArray[np.float64] | None
    score: NDArray[np.float64]
    segmentation: NDArray[np.int64] | None
    keypoints: NDArray[np.int64] | None
    parts: list[Any]


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
    sizes : (i, 2) float64 or None
        Height and width of the images, NaN where one has none; None where they were not asked for.
    parts : list
        What the reader of shapes made of the annotations, in file order.
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
    sizes: NDArray[np.float64] | None
    parts: list[Any]


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
        The document, or what is kept of a file.
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


class _NotUnderstood(Exception):
    """The document is left to the library parser."""


class _Document:
    """A document's bytes, a window at a time.

    A mark is a byte that every record has: JSON's opening brace, or the line feed of lines that need not be UTF-8.
    """

    def __init__(self, data: Buffer | File, threads: int | None, mark: bytes = b"{") -> None:
        if isinstance(data, File) and data.size < 8:
            data = data.read()
        self.file = data if isinstance(data, File) else None
        if isinstance(data, File):
            self.size = data.size
        else:
            data = data if len(data) >= 8 else bytes(data) + b"\n" * 8
            self.memory = readonly(np.frombuffer(data, np.uint8), np.uint8)
            self.size = len(data)
        self._own = threading.local()
        self._keeping = threading.Lock()
        self._kept: NDArray[np.uint8] | None = None
        self._end = 0  # of what is kept
        self.mark = ord(mark)
        self.threads = threads

    def window(self, begin: int, end: int) -> tuple[int, NDArray[np.uint8]]:
        """Return bytes, at least eight, and the position of the first: all, or those of a file from `begin` to `end`.

        What is a file's is overwritten when the same thread asks again.
        """
        if self.file is None:
            return 0, self.memory
        end = min(max(end, begin + 8), self.size)
        begin = min(begin, self.size - 8)
        own: NDArray[np.uint8] | None = getattr(self._own, "window", None)
        if own is None or own.size < end - begin:
            own = self._own.window = np.empty(max(end - begin, BLOCK + 2 * MARGIN), np.uint8)
        self.file.read_into(own[: end - begin], begin)
        return begin, readonly(own[: end - begin], np.uint8)

    def survey(self, data: NDArray[np.uint8], begin: int, end: int) -> tuple[int, bool]:
        """Count the marks of some bytes of a window, and say whether all bytes are ASCII."""
        count = int(scanning.survey(data, begin, end, self.mark))
        return max(count, ~count), count >= 0

    def check(self, data: NDArray[np.uint8], begin: int, end: int) -> None:
        """Make sure that whole values of JSON, some bytes of a window, are UTF-8; lines need not be."""
        if self.mark == ord("{"):
            try:
                str(data[begin:end].data, "utf-8")
            except UnicodeDecodeError:
                raise _NotUnderstood from None

    def keep(self, data: NDArray[np.uint8], words: NDArray[np.uint64]) -> None:
        """Copy the strings of a window to where they stay, and let `words` say where that is."""
        size = texts.kept_size(readonly(words, np.uint64))
        with self._keeping:
            if self._kept is None:
                # No block is scanned more than twice. What is never written to takes no memory.
                self._kept = np.empty(2 * self.size + 8, np.uint8)
            begin = self._end
            if begin + size + 8 > self._kept.size:
                raise _NotUnderstood
            self._end += size
        texts.keep(data, words, self._kept[begin : begin + size], begin)

    def texts(self) -> NDArray[np.uint8]:
        """Return what the words of strings refer to, at least eight bytes."""
        if self.file is None:
            return self.memory
        if self._kept is None:
            return readonly(np.zeros(8), np.uint8)
        self._kept[self._end : self._end + 8] = 0
        return readonly(self._kept[: self._end + 8], np.uint8)

    def slice(self, begin: int, end: int) -> bytes:
        """Copy some bytes."""
        base, data = self.window(begin, min(end, self.size))
        return data[begin - base : max(end - base, 0)].tobytes()

    def find(self, pattern: re.Pattern[bytes], begin: int, end: int) -> int:
        """Return where a pattern, of a few bytes, is found first that lies between two positions; -1 where it is not."""
        end = min(end, self.size)
        for place in range(begin, end, MARGIN):
            stop = end if self.file is None else min(place + 2 * MARGIN, end)
            base, data = self.window(place, stop)
            found = pattern.search(data.data, place - base, stop - base)
            if found is not None:
                return base + found.start()
            if stop == end:
                break
        return -1

    def after_blanks(self, place: int) -> int:
        """Return the first position from `place` on that is not white space."""
        step = 64
        while place < self.size:
            base, data = self.window(place, place + step)
            match = _BLANKS.match(data.data, place - base)
            assert match is not None  # it may be empty
            place = base + match.end()
            if place < base + data.size:
                break
            step = MARGIN
        return place

    def begins(self, place: int, text: bytes) -> bool:
        """Whether `text` lies at a position."""
        return self.slice(place, place + len(text)) == text

    def skip(self, place: int) -> int:
        """Return where the value that begins at a position ends."""
        size = MARGIN
        while True:
            base, data = self.window(place, place + size)
            with np.errstate(over="ignore"):  # uncompiled, words that wrap around warn
                end = int(scanning.skip_value(data, place - base, False, powers()))
            if base + data.size == self.size or 0 <= end < data.size:
                break
            size *= GROWTH  # the window may have cut the value
        if end < 0:
            raise _NotUnderstood
        self.check(data, place - base, end)
        return base + end


def _text(raw: bytes) -> str:
    """Decode what is written between two quotes."""
    text: str = json.loads(b'"%b"' % raw) if b"\\" in raw else raw.decode()
    return text


def _resolve(data: NDArray[np.uint8], doubts: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    """Let `float()` read the numbers that the kernel could not decide."""
    floats = words.view(np.float64)
    for at, begin, end in doubts.tolist():
        value = decimal(data[begin:end].tobytes())
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
_SIZED_IMAGE = _Fields(b'{"id":1},', id=_ID, height=_NUMBER, width=_NUMBER)
_RUN = _Fields(b"q 0 d 0 1 t\n", query=_QUERY, document=_ID, score=_NUMBER)
_QRELS = _Fields(b"q 0 d 1\n", query=_QUERY, document=_ID, relevance=_INTEGER)


class _Part(NamedTuple):
    """What came of a block: the state of the kernel, and what a reader made."""

    state: NDArray[np.int64]
    read: list[Any]


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
    outcomes : list of _Part
        What came of the blocks, in the order of the document.
    """

    def __init__(
        self,
        document: _Document,
        fields: _Fields,
        capacity: int,
        ids: NDArray[np.uint64],
        words: NDArray[np.uint64],
        outcomes: list[_Part],
    ) -> None:
        self.fields = fields
        outcomes = [part for part in outcomes if part.state[scanning.ROW] > part.state[scanning.FIRST]]
        parts = [part.state for part in outcomes]
        self.rows = sum(int(part[scanning.ROW] - part[scanning.FIRST]) for part in parts)
        states = np.array(parts, np.int64).reshape(-1, scanning.STATE_SIZE)
        self.ever, self.integers, self.strings = (
            int(np.bitwise_or.reduce(states[:, slot])) for slot in (scanning.EVER, scanning.INTEGERS, scanning.STRINGS)
        )
        self.always = int(np.bitwise_and.reduce(states[:, scanning.ALWAYS]))
        self.longer = int(states[:, scanning.LONGER].sum())
        self.read = [made for part in outcomes for made in part.read]
        self.texts = document.texts()
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
        return _factorised(self.texts, column[:, 0])


def _distinct(texts: NDArray[np.uint8], words: NDArray[np.uint64]) -> tuple[NDArray[np.int32], list[bytes]]:
    """Number distinct strings: each row's number, and the strings in the order of their first appearance."""
    codes = np.empty(len(words), np.int32)
    firsts = np.empty(len(words), np.uint64)
    seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
    with np.errstate(over="ignore"):  # see _Document.skip
        count = scanning.factorise(texts, readonly(words, np.uint64), seed, codes, firsts)
    begins = (firsts[:count] >> np.uint64(scanning.LENGTH_BITS)).astype(np.int64)
    ends = begins + (firsts[:count] & np.uint64((1 << scanning.LENGTH_BITS) - 1)).astype(np.int64)
    return codes, [texts[begin:end].tobytes() for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def _factorised(texts: NDArray[np.uint8], words: NDArray[np.uint64]) -> Strings:
    """Number distinct JSON strings; strings that are written differently may still be the same."""
    codes, distinct = _distinct(texts, words)
    numbers: dict[str, int] = {}
    changed = [numbers.setdefault(_text(raw), len(numbers)) for raw in distinct]
    if len(numbers) < len(distinct):
        codes = np.array(changed, np.int32)[codes]
    return Strings(codes, list(numbers))


class _Format(NamedTuple):
    """How records follow each other."""

    fields: _Fields
    # JSON: one record a line instead of a list
    lines: bool = False
    # Not JSON, but tokens: for each token of a line its field, -1 for none; and whether others may follow
    tokens: NDArray[np.int64] | None = None
    more: bool = False
    # Who reads the values of a field, and which that is: they are there only as long as their window
    reader: tuple[str, Reader] | None = None

    @property
    def by_line(self) -> bool:
        """Whether a record ends where its line does, so that the last one needs no mark."""
        return self.lines or self.tokens is not None

    def cuts(self, document: _Document, begin: int) -> list[int]:
        """Guess where records begin, one a block.

        A writer begins all its records alike: with a brace and the key of the first record. Where that key is found
        inside a record the guess is wrong; the scan of the block before shows it. A block without that key is likely to
        lie behind the list.
        """
        if self.by_line:
            feed, pattern = 1, re.compile(rb"\n(?=\{)" if self.lines else rb"\n")
        else:
            match = _FIRST_KEY.match(document.slice(begin, begin + 256))
            if match is None:
                return []
            feed, pattern = 0, re.compile(re.escape(match.group()))
        cuts = []
        for place in range((begin // BLOCK + 1) * BLOCK, document.size, BLOCK):
            found = document.find(pattern, place, place + BLOCK)
            if found < 0 or found + feed == document.size:
                break
            cuts.append(found + feed)
        return cuts

    def scan(
        self,
        data: NDArray[np.uint8],
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
            scanning.scan_records(data, stop, lines, names, places, powers(), ids, words, doubts, state)
        else:
            tokens, more = self.tokens, self.more
            scanning.scan_lines(data, stop, tokens, more, places, powers(), ids, words, doubts, state)


class _TooFewRows(Exception):
    """There is no room for the rows of a block: those of all blocks have to be counted first."""


class _Window(NamedTuple):
    """Bytes in memory.

    Attributes
    ----------
    base : int
        The position of the first byte in the document.
    data : (n,) uint8
        The bytes.
    stop : int
        The position before which records begin that are scanned here.
    last : bool
        Whether nothing follows in the document.
    """

    base: int
    data: NDArray[np.uint8]
    stop: int
    last: bool


class _List:
    """The scan of a list of records, block by block.

    Every block is scanned as if its first record began where that was guessed. It did if the block before ends there; else
    the block is scanned anew from where that ends. A block's rows follow those of the block before as soon as the marks of
    that are counted.

    Parameters
    ----------
    document : _Document
        What is scanned.
    begin : int
        Where the first record begins.
    kind : _Format
        How records follow each other.
    exact : bool
        Whether to count the marks of all blocks before any is scanned. Else those of the first one say how many rows to
        expect, so that a file is read once.
    """

    def __init__(self, document: _Document, begin: int, kind: _Format, exact: bool) -> None:
        self.document, self.kind = document, kind
        self.cuts = [begin, *kind.cuts(document, begin), document.size]
        self.blocks = [(block, block + 1) for block in range(len(self.cuts) - 1)]
        self.ended = document.size
        self.rows = [0]  # the first row of each block whose marks are counted, and of the one after these
        self.counted: dict[int, int] = {}  # of blocks that wait for others
        self.turn = threading.Condition()
        self.take_room(0)
        if exact:
            counts = parallel.run(
                lambda block, _: self.most_rows(block, self.marks(block)), self.blocks, document.threads
            )
            self.take_room(sum(counts))
            for block, count in enumerate(counts):
                self.publish(block, count)

    def take_room(self, rows: int) -> None:
        """Make room for so many rows. What is never written to takes no memory."""
        self.capacity = rows
        self.places, *sizes = self.kind.fields.places(rows)
        self.ids, self.words = (np.empty(size, np.uint64) for size in sizes)

    def most_rows(self, block: int, marks: int) -> int:
        """Return how many records a block can have: no more than marks, or than fit. The last line may have no mark."""
        return min(marks, (self.cuts[block + 1] - self.cuts[block]) // self.kind.fields.least) + 1

    def marks(self, block: int, begin: int | None = None) -> int:
        """Count the marks of a block, or those from a position on."""
        count, stop = 0, self.cuts[block + 1]
        for place in range(self.cuts[block] if begin is None else begin, stop, WINDOW):
            base, data = self.document.window(place, min(place + WINDOW, stop))
            count += self.document.survey(data, place - base, min(place + WINDOW, stop) - base)[0]
        return count

    def publish(self, block: int, count: int) -> None:
        """Say how many rows a block takes."""
        with self.turn:
            if block == 0 and not self.capacity:
                whole, part = self.document.size - self.cuts[0], self.cuts[1] - self.cuts[0]
                expected = count if part == whole else int(1.1 * count * whole / part) + 16
                self.take_room(min(expected, whole // self.kind.fields.least + len(self.blocks)))
            self.counted[block] = count
            while len(self.rows) - 1 in self.counted:
                self.rows.append(self.rows[-1] + self.counted.pop(len(self.rows) - 1))
            self.turn.notify_all()

    def has_room(self, block: int) -> bool:
        """Return whether there are rows for a block, once those of all before it are counted."""
        with self.turn:
            self.turn.wait_for(lambda: len(self.rows) > block + 1)
        return self.rows[block] < self.rows[block + 1] <= self.capacity

    def guess(self, block: int, _: int) -> _Part | None:
        """Scan a block from where its first record was guessed; None where there is no room, or no need."""
        window, plain = None, False
        if len(self.rows) <= len(self.blocks):
            count = 0
            try:
                if self.cuts[block] <= self.ended:
                    window = self.window(self.cuts[block], self.cuts[block + 1], MARGIN)
                    marks, plain = self.document.survey(
                        window.data, self.cuts[block] - window.base, window.stop - window.base
                    )
                    if window.stop < self.cuts[block + 1]:
                        marks += self.marks(block, window.stop)
                        window = None  # others were read since
                    count = self.most_rows(block, marks)
            finally:  # others wait for it
                self.publish(block, count)
        if self.cuts[block] > self.ended or not self.has_room(block):
            return None
        return self.scan(block, self.cuts[block], window, plain)

    def window(self, start: int, stop: int, margin: int) -> _Window:
        """Read a window of a block, with a margin for the last record."""
        base, data = self.document.window(start, min(start + max(WINDOW, GROWTH * margin), stop) + margin)
        last = base + data.size == self.document.size
        return _Window(base, data, stop if last else min(stop, base + data.size - margin), last)

    def scan(self, block: int, start: int, window: _Window | None = None, plain: bool = False) -> _Part:
        """Scan the records from `start` on; a window that is there already may be known to be `plain` (ASCII)."""
        stop, margin = self.cuts[block + 1], MARGIN
        state = np.zeros(scanning.STATE_SIZE, np.int64)
        state[scanning.FIRST] = state[scanning.ROW] = self.rows[block]
        state[scanning.LIMIT], state[scanning.ALWAYS] = self.rows[block + 1], -1
        made: list[Any] = []
        while True:
            if window is None:
                window = self.window(start, stop, margin)
                plain = self.document.survey(window.data, start - window.base, window.stop - window.base)[1]
            before = state.copy()
            try:
                state[scanning.POSITION] = start - window.base
                self.scan_window(window, state)
                self.check(window, start - window.base, int(state[scanning.POSITION]), plain)
                self.read(window, state, int(before[scanning.ROW]), made)
                if self.document.file is not None:
                    self.detach(window, state, int(before[scanning.ROW]))
            except _NotUnderstood:
                if window.last or GROWTH * margin > MOST_MARGIN:
                    state[scanning.STATUS] = scanning.FAILED
                    break
                state, window = before, None  # it may have cut a record
                margin *= GROWTH
                continue
            state[scanning.POSITION] += window.base
            start = int(state[scanning.POSITION])
            if state[scanning.STATUS] == scanning.CLOSED or start >= stop:
                break
            if start == window.base + window.data.size:  # there may be white space ahead of the next record
                start = self.document.after_blanks(start)
            window = None
        if state[scanning.STATUS] == scanning.CLOSED:
            self.ended = min(self.ended, start)
        elif state[scanning.STATUS] == scanning.FAILED and block == 0:
            self.ended = 0  # as all is in vain
        return _Part(state, made)

    def read(self, window: _Window, state: NDArray[np.int64], first: int, made: list[Any]) -> None:
        """Let the reader have the values of the rows from `first` on, as long as they are in memory."""
        row = int(state[scanning.ROW])
        if self.kind.reader is None or row == first:
            return
        name, reader = self.kind.reader
        f = self.kind.fields.names.index(name)
        _, width, place = self.places[f].tolist()
        spans = self.words[place + width * first : place + width * row].view(np.int64).reshape(-1, width)
        if not state[scanning.EVER] >> f & 1:  # never written to
            spans = np.full((row - first, width), -1, np.int64)
        made.append(reader.read(window.data, window.base, readonly(spans, np.int64)))

    def scan_window(self, window: _Window, state: NDArray[np.int64]) -> None:
        """Scan the records of a window."""
        doubts = np.empty((DOUBTS, 3), np.int64)
        with np.errstate(over="ignore"):  # see _Document.skip
            while True:
                state[scanning.DOUBTS] = 0
                stop = window.stop - window.base
                self.kind.scan(window.data, stop, self.places, self.ids, self.words, doubts, state)
                _resolve(window.data, doubts[: state[scanning.DOUBTS]], self.words)
                if state[scanning.STATUS] != scanning.FULL:
                    break
        if state[scanning.STATUS] == scanning.FAILED:
            raise _NotUnderstood
        if state[scanning.STATUS] == scanning.CLOSED and self.kind.by_line and not window.last:
            raise _NotUnderstood  # a record was taken for the last line

    def detach(self, window: _Window, state: NDArray[np.int64], first: int) -> None:
        """Make the rows from `first` on independent of a window: copy its strings, count positions from the file's begin."""
        row = int(state[scanning.ROW])
        for f, (kind, width, place) in enumerate(self.places.tolist()):
            if kind == scanning.SPAN and state[scanning.EVER] >> f & 1:
                spans = self.words[place + width * first : place + width * row].view(np.int64)
                np.add(spans, window.base, out=spans, where=spans >= 0)
            elif kind in scanning.APART and state[scanning.STRINGS] >> f & 1:
                if state[scanning.INTEGERS] >> f & 1:  # which no column may have besides
                    raise _NotUnderstood
                self.document.keep(window.data, self.ids[place + first : place + row])

    def check(self, window: _Window, begin: int, end: int, plain: bool) -> None:
        """Make sure that the records that were scanned of a window are UTF-8."""
        stop, end = window.stop - window.base, min(end, window.data.size)
        if not (plain and self.document.survey(window.data, stop, max(stop, end))[1]):
            self.document.check(window.data, begin, end)

    def table(self) -> tuple[_Table, int]:
        """Scan all blocks: the table, and the position after the list."""
        guesses = parallel.run(self.guess, self.blocks, self.document.threads)
        parts = []
        place = self.cuts[0]
        for block, part in enumerate(guesses):
            if place >= self.cuts[block + 1]:
                continue
            if part is None or place != self.cuts[block]:
                if not self.has_room(block):
                    raise _TooFewRows
                part = self.scan(block, place)
            if part.state[scanning.STATUS] == scanning.FAILED:
                break
            parts.append(part)
            place = int(part.state[scanning.POSITION])
            if part.state[scanning.STATUS] == scanning.CLOSED:
                table = _Table(self.document, self.kind.fields, self.capacity, self.ids, self.words, parts)
                return table, place
        raise _NotUnderstood


def _scan_list(document: _Document, begin: int, kind: _Format) -> tuple[_Table, int]:
    """Scan the records from `begin` on: their table, and the position after the list."""
    try:
        return _List(document, begin, kind, exact=False).table()
    except _TooFewRows:
        return _List(document, begin, kind, exact=True).table()


def _empty(document: _Document, fields: _Fields) -> _Table:
    return _Table(document, fields, 0, np.empty(0, np.uint64), np.empty(0, np.uint64), [])


def _scan_array(document: _Document, place: int, kind: _Format) -> tuple[_Table, int]:
    """Scan the list of records at a position: its table, and the position after it."""
    if not document.begins(place, b"["):
        raise _NotUnderstood
    place = document.after_blanks(place + 1)
    if document.begins(place, b"]"):
        return _empty(document, kind.fields), place + 1
    return _scan_list(document, place, kind)


def _scan_object(
    document: _Document, place: int, lists: Mapping[str, _Format]
) -> tuple[dict[str, _Table], set[str], int]:
    """Scan the object at a position: the tables of its lists, the names of its other members, the position after it."""
    tables: dict[str, _Table] = {}
    others: set[str] = set()
    separator = b"{"
    while document.begins(place, separator):
        place = document.after_blanks(place + 1)
        if separator == b"{" and document.begins(place, b"}"):
            break
        separator = b","
        begin = place
        if not document.begins(place, b'"'):
            raise _NotUnderstood
        place = document.skip(place)
        name = _text(document.slice(begin + 1, place - 1))
        place = document.after_blanks(place)
        if not document.begins(place, b":"):
            raise _NotUnderstood
        place = document.after_blanks(place + 1)
        if name not in lists:
            place = document.skip(place)
            others.add(name)
        elif name in tables:
            raise _NotUnderstood
        else:
            tables[name], place = _scan_array(document, place, lists[name])
        place = document.after_blanks(place)
    if not document.begins(place, b"}"):
        raise _NotUnderstood
    return tables, others, place + 1


def scan_results(
    data: Buffer | File, threads: int | None, *, lines: bool = False, reader: tuple[str, Reader] | None = None
) -> ResultColumns | None:
    """Scan COCO results: a JSON list of objects, an object with that list as `annotations` or `predictions`, or JSON Lines.

    Parameters
    ----------
    data : bytes or memoryview or File
        The document.
    threads : int or None
        How many threads work on it, None for one per processor. The outcome does not depend on it.
    lines : bool
        Whether the document is JSON Lines.
    reader : (str, Reader), optional
        Who reads the values of a field, "segmentation" or "keypoints".

    Returns
    -------
    ResultColumns or None
        The columns; None where the document is not understood, so that a library parser has to decide. What is
        understood is valid JSON, with a plain record in every place: each field at most once, ids integers of 64 bits or
        strings throughout, a score, and a box of four numbers or a segmentation or keypoints. An object has one such
        list, and where it has images or categories too, as ground truth has, the list is not empty.
    """
    kind = _Format(_RESULT, reader=reader)
    try:
        document = _Document(data, threads)
        place = document.after_blanks(0)
        if lines and place < document.size:
            table, place = _scan_list(document, place, _Format(_RESULT, lines=True, reader=reader))
        elif lines:
            table = _empty(document, _RESULT)
        elif document.begins(place, b"{"):
            tables, others, place = _scan_object(document, place, dict.fromkeys(RESULT_LISTS, kind))
            if len(tables) != 1:
                return None
            (table,) = tables.values()
            if not table.rows and others & GROUND_TRUTH_ONLY:
                return None
        else:
            table, place = _scan_array(document, place, kind)
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
        ids = table.ids("image_id"), table.ids("category_id")
        return ResultColumns(*ids, bbox, score, segmentation, keypoints, table.read)
    except _NotUnderstood:
        return None


def scan_ground_truth(
    data: Buffer | File, threads: int | None, *, reader: tuple[str, Reader] | None = None
) -> GroundTruthColumns | None:
    """Scan COCO ground truth: a JSON object with the lists `images`, `annotations` and `categories`.

    Parameters
    ----------
    data : bytes or memoryview or File
        The document.
    threads : int or None
        How many threads work on it, None for one per processor. The outcome does not depend on it.
    reader : (str, Reader), optional
        As in `scan_results`; with one, the images' sizes are read too.

    Returns
    -------
    GroundTruthColumns or None
        The columns; None where the document is not understood, so that a library parser has to decide. What is
        understood is valid JSON, with each list once and a plain record in every place: each field at most once, ids
        integers of 64 bits or strings throughout, and where one record has an id of a kind, all have.
    """
    try:
        document = _Document(data, threads)
        lists = {name: _Format(fields) for name, fields in _LISTS.items()}
        if reader is not None:
            lists["images"] = _Format(_SIZED_IMAGE)
            lists["annotations"] = _Format(_ANNOTATION, reader=reader)
        tables, _, place = _scan_object(document, document.after_blanks(0), lists)
        if document.after_blanks(place) < document.size or len(tables) < len(_LISTS):
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
        sizes=_sizes(images) if "height" in images.fields.names else None,
        parts=annotations.read,
    )


def _sizes(images: _Table) -> NDArray[np.float64]:
    """Return heights and widths, NaN where an image has none."""
    columns = [images.numbers(name) for name in ("height", "width")]
    return np.stack([np.full(images.rows, np.nan) if one is None else one for one in columns], axis=1)


_RUN_LINES = _Format(_RUN, tokens=readonly([0, -1, 1, -1, 2, -1], np.int64), more=True)
_QRELS_LINES = _Format(_QRELS, tokens=readonly([0, -1, 1, 2], np.int64))


def _scan_tokens(
    data: Buffer | File, threads: int | None, kind: _Format
) -> tuple[_Table, NDArray[np.int32], list[bytes]]:
    """Scan lines after a byte order mark, if there is one, and number the queries."""
    document = _Document(data, threads, b"\n")
    table, _ = _scan_list(document, len(_MARK) if document.begins(0, _MARK) else 0, kind)
    return table, *_distinct(table.texts, table.columns["query"][:, 0])


def scan_run(data: Buffer | File, threads: int | None = None) -> RunColumns | None:
    """Scan a TREC run: lines of query, a field that is passed, document, rank (passed), score, tag (passed).

    As in trec_eval, empty lines and those that begin with ``#`` are passed, and so are up to `scanning.MOST_FURTHER` words
    that follow the tag.

    Parameters
    ----------
    data : bytes or memoryview or File
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
        table, query, queries = _scan_tokens(data, threads, _RUN_LINES)
    except _NotUnderstood:
        return None
    score = table.numbers("score")
    assert score is not None
    return RunColumns(query, queries, table.columns["document"][:, 0], score, table.texts, table.longer)


def scan_qrels(data: Buffer | File, threads: int | None = None) -> QrelsColumns | None:
    """Scan TREC relevance judgements: lines of query, a field that is passed, document, grade.

    Empty lines and those that begin with ``#`` are passed.

    Parameters
    ----------
    data : bytes or memoryview or File
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
        table, query, queries = _scan_tokens(data, threads, _QRELS_LINES)
    except _NotUnderstood:
        return None
    relevance = table.columns["relevance"][:, 0].view(np.int64)
    return QrelsColumns(query, queries, table.columns["document"][:, 0], relevance, table.texts)
