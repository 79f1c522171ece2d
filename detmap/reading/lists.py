"""Scan a list of records: split the document at records, scan the blocks on threads, verify the splits, merge the
columns.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import passing, readonly, scanning
from detmap.kernels.cells import scan_cells
from detmap.kernels.lines import scan_lines
from detmap.kernels.records import scan_records
from detmap.reading import documents
from detmap.reading.documents import Document, NotUnderstood, unquoted
from detmap.reading.scanned_columns import Fields, Part, Table
from detmap.shapes import Reader
from detmap.shapes.reading import decimal, powers
from detmap.system import parallel

# Maximum number of values, not rounded with certainty, that a kernel leaves to `float()` at a time.
DOUBTS = 1 << 10

_FIRST_KEY = re.compile(rb'\{[ \t\n\r]{0,64}"[^"\\]{0,64}"')


def _resolve(data: NDArray[np.uint8], doubts: NDArray[np.int64], words: NDArray[np.uint64]) -> None:
    """Parse with `float()` the numbers that the kernel could not round with certainty."""
    floats = words.view(np.float64)
    for at, begin, end in doubts.tolist():
        value = decimal(data[begin:end].tobytes())
        if math.isinf(value):
            raise NotUnderstood
        floats[at] = value


class Layout(NamedTuple):
    """The layout of consecutive records."""

    fields: Fields
    # JSON with one record per line instead of a list
    lines: bool = False
    # For lines of words instead of JSON: the field of each word, -1 for ignored words. `more` allows further words.
    tokens: NDArray[np.int64] | None = None
    more: bool = False
    # Delimiter of CSV; `tokens` then holds the field of each column. 0 for other layouts
    delimiter: int = 0
    # A field and its reader, which is called with the field's values in each window while the window is in memory. See
    # `Fields.read_by`.
    reader: tuple[str, Reader] | None = None

    @property
    def by_line(self) -> bool:
        """Whether each record is one line; the last line may lack a newline."""
        return self.lines or self.tokens is not None

    def cuts(self, document: Document, begin: int) -> tuple[list[int], bool]:
        """Guess where the first record of each further block begins, and whether the last block lies after the list.
        Most records begin as the first record does, with a brace and the same key. If these bytes occur inside a
        record, the guess is wrong; the scan of the previous block detects a wrong guess. A block without these bytes
        probably lies after the list.
        """
        if self.by_line:
            feed, pattern = 1, re.compile(rb"\n(?=\{)" if self.lines else rb"\n")
        else:
            match = _FIRST_KEY.match(document.slice(begin, begin + 256))
            if match is None:
                return [], False
            feed, pattern = 0, re.compile(re.escape(match.group()))
        cuts: list[int] = []
        for place in range((begin // documents.BLOCK + 1) * documents.BLOCK, document.size, documents.BLOCK):
            found = document.find(pattern, place, place + documents.BLOCK)
            if found < 0 and not self.by_line:
                return [*cuts, place], True
            if found < 0 or found + feed == document.size:
                break
            cuts.append(found + feed)
        return cuts, False

    def scan(
        self,
        data: NDArray[np.uint8],
        stop: int,
        columns: scanning.Columns,
        state: NDArray[np.int64],
    ) -> None:
        """Call the kernel of this layout."""
        if self.tokens is None:
            scan_records(data, stop, self.lines, self.fields.table, powers(), columns, state)
        elif self.delimiter:
            scan_cells(data, stop, self.tokens, self.delimiter, powers(), columns, state)
        else:
            scan_lines(data, stop, self.tokens, self.more, powers(), columns, state)


class _TooFewRows(Exception):
    """There is no room for a block's rows, so the rows of all blocks must be counted before the scan."""


class _Window(NamedTuple):
    """A range of bytes in memory."""

    #: The position of the first byte in the document.
    base: int
    #: The bytes; shape (n,).
    data: NDArray[np.uint8]
    #: Records that begin before this position are scanned in this window.
    stop: int
    #: Whether this is the end of the document.
    last: bool


class List:
    """The scan of a list of records, block by block, from the first record on.

    Every block is scanned from the guessed start of its first record. If the last record of the previous block ends
    elsewhere, the block is scanned again from that end. The rows of a block are stored after the rows of all earlier
    blocks, whose records must be counted first. If `exact` is true, all blocks are counted before the scan. Otherwise
    the total is estimated from the first block, and a file is read only once.
    """

    def __init__(self, document: Document, begin: int, kind: Layout, exact: bool) -> None:
        self.document, self.kind = document, kind
        cuts, over = kind.cuts(document, begin)
        self.cuts = [begin, *cuts, document.size]
        self.blocks = [(block, block + 1) for block in range(len(self.cuts) - 1)]
        # A last block that seems to lie after the list is scanned only if the list turns out to continue in this block.
        self.rest = len(self.blocks) - 1 if over else len(self.blocks)
        self.ended = document.size
        self.rows = [0]  # first row of each counted block, and the next free row
        self.counted: dict[int, int] = {}  # counts of blocks that wait for earlier blocks
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
        """Reserve `rows` rows; unwritten pages take no memory."""
        self.capacity = rows
        self.places, *sizes = self.kind.fields.places(rows)
        self.ids, self.words = passing(sizes[0], np.uint64), np.empty(sizes[1], np.uint64)

    def most_rows(self, block: int, marks: int) -> int:
        """Return an upper bound on the number of records of a block, given its number of marks (see `Document`). The bound
        is nearly always exact. If not, `Table` closes the gaps between blocks.
        """
        most = min(marks, -(-(self.cuts[block + 1] - self.cuts[block]) // self.kind.fields.least))
        if self.kind.by_line:
            return most + (block + 1 == len(self.blocks))
        return max(most, 1)

    def marks(self, block: int, begin: int | None = None) -> int:
        """Count the marks of a block, optionally from a position on."""
        count, stop = 0, self.cuts[block + 1]
        for place in range(self.cuts[block] if begin is None else begin, stop, documents.WINDOW):
            base, data = self.document.window(place, min(place + documents.WINDOW, stop))
            count += self.document.survey(data, place - base, min(place + documents.WINDOW, stop) - base)[0]
        return count

    def publish(self, block: int, count: int) -> None:
        """Store the number of rows of a block, and wake the threads that wait for it."""
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
        """Wait until all blocks up to this one are counted; return whether there is room for this block's rows."""
        with self.turn:
            self.turn.wait_for(lambda: len(self.rows) > block + 1)
        return self.rows[block] < self.rows[block + 1] <= self.capacity

    def guess(self, block: int, _: int) -> Part | None:
        """Scan a block from its guessed first record; return None if there is no room for the rows, or the list ends
        before the block.
        """
        window, plain = None, False
        if block == self.rest:
            return None
        if len(self.rows) <= len(self.blocks):
            count = 0
            try:
                if self.cuts[block] <= self.ended:
                    window = self.window(self.cuts[block], self.cuts[block + 1], documents.MARGIN)
                    marks, plain = self.document.survey(
                        window.data, self.cuts[block] - window.base, window.stop - window.base
                    )
                    if window.stop < self.cuts[block + 1]:
                        marks += self.marks(block, window.stop)
                        window = None  # the buffer was overwritten meanwhile
                    count = self.most_rows(block, marks)
            finally:  # later blocks wait for the count
                self.publish(block, count)
        if self.cuts[block] > self.ended or not self.has_room(block):
            return None
        return self.scan(block, self.cuts[block], window, plain)

    def window(self, start: int, stop: int, margin: int) -> _Window:
        """Read a window of a block, with a margin for the last record."""
        base, data = self.document.window(
            start, min(start + max(documents.WINDOW, documents.GROWTH * margin), stop) + margin
        )
        last = base + data.size == self.document.size
        return _Window(base, data, stop if last else min(stop, base + data.size - margin), last)

    def scan(self, block: int, start: int, window: _Window | None = None, plain: bool = False) -> Part:
        """Scan the records from `start` on. If a `window` is given, `plain` says whether it is known to be ASCII."""
        stop, margin = self.cuts[block + 1], documents.MARGIN
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
            except NotUnderstood:
                if window.last or documents.GROWTH * margin > documents.MOST_MARGIN:
                    state[scanning.STATUS] = scanning.FAILED
                    break
                state, window = before, None  # the window may have cut a record
                margin *= documents.GROWTH
                continue
            state[scanning.POSITION] += window.base
            start = int(state[scanning.POSITION])
            if state[scanning.STATUS] == scanning.CLOSED:
                break
            if start == window.base + window.data.size:  # there may be white space before the next record
                start = state[scanning.POSITION] = self.document.after_blanks(start)
            if start >= stop:
                break
            window = None
        if state[scanning.STATUS] == scanning.CLOSED:
            self.ended = min(self.ended, start)
        elif state[scanning.STATUS] == scanning.FAILED and block == 0:
            self.ended = 0  # the whole scan fails, so the other blocks are skipped
        return Part(state, made)

    def read(self, window: _Window, state: NDArray[np.int64], first: int, made: list[Any]) -> None:
        """Pass the values of the rows from `first` on to the reader, while they are in memory."""
        row = int(state[scanning.ROW])
        if self.kind.reader is None or row == first:
            return
        name, reader = self.kind.reader
        f = self.kind.fields.names.index(name)
        _, width, place = self.places[f].tolist()
        spans = self.ids[place + width * first : place + width * row].view(np.int64).reshape(-1, width)
        if not state[scanning.EVER] >> f & 1:  # the column was never written
            spans = np.full((row - first, width), -1, np.int64)
        spans = readonly(spans, np.int64)
        # built-in readers write into the final buffers, readers of plug-ins do not
        read_at = getattr(reader, "read_at", None)
        if read_at is None:
            part = reader.read(window.data, window.base, spans)
        else:
            part = read_at(window.data, spans, first, self.capacity, window.base, self.document.buffer())
        if part is None:
            raise NotUnderstood
        made.append(part)

    def scan_window(self, window: _Window, state: NDArray[np.int64]) -> None:
        """Scan the records of a window."""
        doubts = np.empty((DOUBTS, 3), np.int64)
        columns = scanning.Columns(self.places, self.ids, self.words, doubts)
        with np.errstate(over="ignore"):  # see Document.skip
            while True:
                state[scanning.DOUBTS] = 0
                stop = window.stop - window.base
                self.kind.scan(window.data, stop, columns, state)
                _resolve(window.data, doubts[: state[scanning.DOUBTS]], self.words)
                if state[scanning.STATUS] != scanning.FULL:
                    break
        if state[scanning.STATUS] == scanning.FAILED:
            raise NotUnderstood
        if state[scanning.STATUS] == scanning.CLOSED and self.kind.by_line and not window.last:
            raise NotUnderstood  # a line cut by the window was taken for the last line

    def detach(self, window: _Window, state: NDArray[np.int64], first: int) -> None:
        """Make rows from `first` on independent of a window: copy strings, and make positions absolute."""
        row = int(state[scanning.ROW])
        for f, (kind, width, place) in enumerate(self.places.tolist()):
            if kind in (scanning.SPAN, scanning.LISTS) and state[scanning.EVER] >> f & 1:
                own = self.ids if kind in scanning.APART else self.words
                spans = own[place + width * first : place + width * row].view(np.int64)
                if state[scanning.ALWAYS] >> f & 1:
                    spans += window.base
                else:
                    np.add(spans, window.base, out=spans, where=spans >= 0)
            elif kind in scanning.APART and state[scanning.STRINGS] >> f & 1:
                if state[scanning.INTEGERS] >> f & 1:  # integers and strings cannot be mixed in a column
                    raise NotUnderstood
                self.document.keep(window.data, self.ids[place + first : place + row])

    def check(self, window: _Window, begin: int, end: int, plain: bool) -> None:
        """Raise `NotUnderstood` unless the scanned records of a window are UTF-8."""
        stop, end = window.stop - window.base, min(end, window.data.size)
        if not (plain and self.document.survey(window.data, stop, max(stop, end))[1]):
            self.document.check(window.data, begin, end)

    def table(self) -> tuple[Table, int]:
        """Scan all blocks; return the table, and the position after the list."""
        guesses = parallel.run(self.guess, self.blocks, self.document.threads)
        parts = []
        place = self.cuts[0]
        for block, part in enumerate(guesses):
            if place >= self.cuts[block + 1]:
                continue
            if part is None or place != self.cuts[block]:
                if block == self.rest and len(self.rows) <= len(self.blocks):
                    self.publish(block, self.most_rows(block, self.marks(block)))
                if not self.has_room(block):
                    raise _TooFewRows
                part = self.scan(block, place)
            if part.state[scanning.STATUS] == scanning.FAILED:
                break
            parts.append(part)
            place = int(part.state[scanning.POSITION])
            if part.state[scanning.STATUS] == scanning.CLOSED:
                table = Table(self.document, self.kind.fields, self.capacity, self.ids, self.words, parts)
                return table, place
        raise NotUnderstood


def scan_list(document: Document, begin: int, kind: Layout) -> tuple[Table, int]:
    """Scan the records from `begin` on; return their table, and the position after the list."""
    try:
        return List(document, begin, kind, exact=False).table()
    except _TooFewRows:
        return List(document, begin, kind, exact=True).table()


def empty(document: Document, fields: Fields) -> Table:
    """Return the table of a list without records."""
    return Table(document, fields, 0, np.empty(0, np.uint64), np.empty(0, np.uint64), [])


def scan_array(document: Document, place: int, kind: Layout) -> tuple[Table, int]:
    """Scan the list of records at a position; return its table, and the position after the list."""
    if not document.begins(place, b"["):
        raise NotUnderstood
    place = document.after_blanks(place + 1)
    if document.begins(place, b"]"):
        return empty(document, kind.fields), place + 1
    return scan_list(document, place, kind)


def scan_object(document: Document, place: int, lists: Mapping[str, Layout]) -> tuple[dict[str, Table], set[str], int]:
    """Scan the object at a position; return the tables of its lists, its other members' names, and its end."""
    tables: dict[str, Table] = {}
    others: set[str] = set()
    separator = b"{"
    while document.begins(place, separator):
        place = document.after_blanks(place + 1)
        if separator == b"{" and document.begins(place, b"}"):
            break
        separator = b","
        begin = place
        if not document.begins(place, b'"'):
            raise NotUnderstood
        place = document.skip(place)
        name = unquoted(document.slice(begin + 1, place - 1))
        place = document.after_blanks(place)
        if not document.begins(place, b":"):
            raise NotUnderstood
        place = document.after_blanks(place + 1)
        if name not in lists:
            place = document.skip(place)
            others.add(name)
        elif name in tables:
            raise NotUnderstood
        else:
            begin = place
            tables[name], place = scan_array(document, begin, lists[name])
            tables[name].span = begin, place
        place = document.after_blanks(place)
    if not document.begins(place, b"}"):
        raise NotUnderstood
    return tables, others, place + 1
