"""The output of a scan: `Fields` describes the fields of a record, and `Table` holds the columns of these fields."""

from __future__ import annotations

import copy
import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Strings
from detmap.kernels import readonly, scanning
from detmap.kernels.lines import read_words
from detmap.kernels.texts import ABSENT, LENGTH_BITS, LENGTHS, factorise
from detmap.reading.documents import Document, NotUnderstood, unquoted
from detmap.shapes import Reader
from detmap.shapes.reading import powers

Ids = NDArray[np.int64] | Strings


class Fields:
    """The fields of one kind of record, with the type and the number of 64-bit words of each field. The argument
    `least` is an example of a shortest record, with the separator after it. Only the length of the example is kept.
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

    def read_by(self, reader: tuple[str, Reader] | None) -> Fields:
        """Return a copy of these fields in which a reader reads one field. `reader` holds the field's name and the
        reader; if it is None, return these fields.

        Raises `NotUnderstood` if the name is not among these fields, for example if it is the field of a plug-in.
        """
        if reader is None:
            return self
        if reader[0] not in self.names:
            raise NotUnderstood
        made = copy.copy(self)
        at = self.names.index(reader[0])
        made.kinds = (*self.kinds[:at], scanning.LISTS, *self.kinds[at + 1 :])
        return made

    def places(self, capacity: int) -> tuple[NDArray[np.int64], int, int]:
        """Lay out columns of `capacity` rows one after the other. Return `Columns.places`, and the sizes of
        `Columns.ids` and `Columns.words`.
        """
        begins, sizes = [], [0, 0]
        for kind, width in zip(self.kinds, self.widths, strict=True):
            apart = kind in scanning.APART
            begins.append(sizes[apart])
            sizes[apart] += capacity * width
        return readonly(list(zip(self.kinds, self.widths, begins, strict=True)), np.int64), sizes[True], sizes[False]


class Part(NamedTuple):
    """The result of scanning a block: the kernel's state, and the values that the reader returned."""

    state: NDArray[np.int64]
    read: list[Any]


class Table:
    """The columns of a list of records, joined from the results of its blocks in document order."""

    def __init__(
        self,
        document: Document,
        fields: Fields,
        capacity: int,
        ids: NDArray[np.uint64],
        words: NDArray[np.uint64],
        outcomes: list[Part],
    ) -> None:
        self.fields = fields
        self.span = 0, 0  # range of the list in the document
        comments = np.array([part.state[scanning.COMMENTS] for part in outcomes], np.int64)
        outcomes = [part for part in outcomes if part.state[scanning.ROW] > part.state[scanning.FIRST]]
        parts = [part.state for part in outcomes]
        self.rows = sum(int(part[scanning.ROW] - part[scanning.FIRST]) for part in parts)
        states = np.array(parts, np.int64).reshape(-1, scanning.STATE_SIZE)
        self.ever, self.integers, self.strings = (
            int(np.bitwise_or.reduce(states[:, slot])) for slot in (scanning.EVER, scanning.INTEGERS, scanning.STRINGS)
        )
        self.always = int(np.bitwise_and.reduce(states[:, scanning.ALWAYS]))
        self.unread = int(np.bitwise_or.reduce(states[:, scanning.UNREAD]))
        self.longer = int(states[:, scanning.LONGER].sum())
        self.comments = int(comments.sum())
        self.read = [made for part in outcomes for made in part.read]
        self.texts = document.texts()
        self.columns: dict[str, NDArray[np.uint64]] = {}
        for f, (kind, width, begin) in enumerate(fields.places(capacity)[0].tolist()):
            own = ids if kind in scanning.APART else words
            column = own[begin : begin + capacity * width].reshape(capacity, width)
            if self.ever >> f & 1 or not parts:
                self.columns[fields.names[f]] = self._packed(column, parts, 1 << f)

    def _packed(self, column: NDArray[np.uint64], parts: list[NDArray[np.int64]], bit: int) -> NDArray[np.uint64]:
        """Remove the rows that were reserved but not filled, and write `ABSENT` where a block never had the field."""
        row = 0
        for part in parts:
            begin, end = int(part[scanning.FIRST]), int(part[scanning.ROW])
            if not part[scanning.EVER] & bit:
                column[row : row + end - begin] = ABSENT
            elif row != begin:
                column[row : row + end - begin] = column[begin:end]
            row += end - begin
        # Tables take read-only arrays without a copy.
        column.setflags(write=False)
        return column[:row]

    def has(self, name: str) -> bool:
        """Return whether every record has a field."""
        return bool(self.always >> self.fields.names.index(name) & 1)

    def may_have(self, key: str) -> bool:
        """Return whether a record may have a key that is not among the fields. Only a hash of such keys is known."""
        name = key.encode()
        return bool(self.unread >> (5 * name[0] + 3 * name[-1] + len(name) & 63) & 1)

    def required(self, *names: str) -> None:
        """Raise `NotUnderstood` unless every record has these fields."""
        if not all(map(self.has, names)):
            raise NotUnderstood

    def numbers(self, name: str) -> NDArray[np.float64] | None:
        """Return a column of numbers, NaN where missing; None if all are missing."""
        column = self.columns.get(name)
        return None if column is None else np.squeeze(column.view(np.float64), () if column.shape[1] > 1 else 1)

    def spans(self, name: str) -> NDArray[np.int64] | None:
        """Return a column of spans, which are pairs of positions in the document; -1 where missing, None if all are
        missing.
        """
        column = self.columns.get(name)
        return None if column is None else column.view(np.int64)

    def flags(self, name: str) -> NDArray[np.int8] | None:
        """Return a column of flags, -1 where missing; None if all are missing."""
        column = self.columns.get(name)
        return None if column is None else column[:, 0].astype(np.int8)

    def ids(self, name: str) -> Ids:
        """Return a column of ids; every record must have an id."""
        self.required(name)
        column = self.columns[name]
        bit = 1 << self.fields.names.index(name)
        if not self.strings & bit:
            return column[:, 0].view(np.int64)
        if self.integers & bit:
            raise NotUnderstood
        return _factorised(self.texts, column[:, 0])


def distinct_strings(texts: NDArray[np.uint8], words: NDArray[np.uint64]) -> tuple[NDArray[np.int32], list[bytes]]:
    """Return a code for each row, and the distinct strings in order of first appearance."""
    codes = np.empty(len(words), np.int32)
    firsts = np.empty(len(words), np.uint64)
    seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
    with np.errstate(over="ignore"):  # see Document.skip
        count = factorise(texts, readonly(words, np.uint64), seed, codes, firsts)
    begins = (firsts[:count] >> np.uint64(LENGTH_BITS)).astype(np.int64)
    ends = begins + (firsts[:count] & LENGTHS).astype(np.int64)
    return codes, [texts[begin:end].tobytes() for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


def located(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return where strings begin and end in the form that kernels take; a string has less than 2**24 bytes."""
    return (begins << LENGTH_BITS | ends - begins).view(np.uint64)


def plain_numbers(texts: NDArray[np.uint8], words: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Parse words. Return the numbers, and the ascending indices of the words that are left to `float`."""
    values, unread = np.empty(words.size, np.float64), np.empty(words.size, np.int64)
    with np.errstate(over="ignore"):  # see Document.skip
        count = read_words(texts, readonly(words, np.uint64), powers(), values.view(np.uint64), unread)
    return values, unread[:count]


def _factorised(texts: NDArray[np.uint8], words: NDArray[np.uint64]) -> Strings:
    """Return JSON strings as codes and distinct values. Strings that differ only in escapes are equal."""
    codes, distinct = distinct_strings(texts, words)
    numbers: dict[str, int] = {}
    changed = [numbers.setdefault(unquoted(raw), len(numbers)) for raw in distinct]
    if len(numbers) < len(distinct):
        codes = np.array(changed, np.int32)[codes]
    return Strings(codes, list(numbers))
