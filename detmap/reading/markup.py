"""The elements of plain XML files as columns. A parser with precise errors reads the files that are not plain."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from detmap.choices import decimal
from detmap.data.ids import Strings
from detmap.kernels import readonly
from detmap.kernels.markup import DEEPEST, scan_markup
from detmap.kernels.texts import ABSENT, LENGTH_BITS
from detmap.reading.scanned_columns import distinct_strings, plain_numbers

#: The beginning of a plain file: a byte order mark and a declaration, which are both optional.
_DECLARATION = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:<\?xml version=(["'])1\.0\1(?: encoding=(["'])(?i:utf-8)\2)?"""
    rb"""(?: standalone=(["'])(?:yes|no)\3)? ?\?>)?"""
)

#: Characters that XML does not allow, and that are valid in UTF-8.
_NONCHARACTERS = re.compile(rb"\xef\xbf[\xbe\xbf]")


class Elements:
    """The elements and attributes of XML files in the order of the document, and their texts."""

    def __init__(self, contents: Sequence[bytes]) -> None:
        sizes = np.array([len(content) for content in contents], np.int64)
        ends = np.cumsum(sizes + 1) - 1
        begins = ends - sizes + np.array([_start(content) for content in contents], np.int64)
        joined = b"\n".join([*contents, bytes(8)])
        data = np.frombuffer(joined, np.uint8)
        most = min(joined.count(b"<") + joined.count(b"="), len(joined) // 4)  # the shortest element is <a/>
        names, texts, parents = np.empty(most, np.uint64), np.empty(most, np.uint64), np.empty(most, np.int64)
        #: The first row of each file, followed by the number of all rows. Files that are not plain have no rows.
        self.firsts = np.empty(len(contents) + 1, np.int64)
        bounds = readonly(np.stack([begins, ends], axis=1), np.int64)
        with np.errstate(over="ignore"):  # see Document.skip
            count = scan_markup(data, bounds, names, texts, parents, self.firsts, np.empty(DEEPEST, np.int64))
        codes, distinct = distinct_strings(data, names[:count])
        #: The row of the element around each element, its own row for a root; ``~row`` of the element for an attribute.
        self.parents = parents[:count]
        self.names, self._called = codes, [name.decode() for name in distinct]
        self._texts = texts[:count]
        self._places = names[:count]
        self._data, self._joined = data, joined

    def files(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the file of each row."""
        return np.asarray(np.searchsorted(self.firsts, rows, "right") - 1)

    def among(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of `rows` among all rows."""
        mask = np.zeros(self.parents.size, np.bool_)
        mask[rows] = True
        return mask

    def named(self, name: str) -> NDArray[np.int64]:
        """Return the rows of elements and attributes named `name`."""
        if name not in self._called:
            return np.empty(0, np.int64)
        rows: NDArray[np.int64] = np.flatnonzero(self.names == self._called.index(name))
        return rows

    def roots(self, name: str) -> NDArray[np.int64]:
        """Return the rows of the roots of a name."""
        rows = self.named(name)
        return np.asarray(rows[self.parents[rows] == rows])

    def inside(self, name: str, outer: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the elements of a name that are children of the elements `outer`."""
        rows = self.named(name)
        rows = rows[self.parents[rows] >= 0]
        rows = rows[self.parents[rows] != rows]
        return np.asarray(rows[self.among(outer)[self.parents[rows]]])

    def first(self, rows: NDArray[np.int64], owners: NDArray[np.int64], of: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first of the `rows` that belongs to each row in `of`, -1 if there is none. `owners` are the rows
        that `rows` belong to.
        """
        found = np.full(self.parents.size, -1, np.int64)
        found[owners[::-1]] = rows[::-1]
        return np.asarray(found[of])

    def attribute(self, name: str, of: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of an attribute of each of the elements `of`, -1 if there is none."""
        rows = self.named(name)
        rows = rows[self.parents[rows] < 0]
        return self.first(rows, ~self.parents[rows], of)

    def have_text(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the elements have no elements inside."""
        return np.asarray(self._texts[rows] != ABSENT)

    def line(self, row: int) -> int:
        """Return the line of an element, counted from 1 across all files."""
        before = self._joined[: int(self._places[row]) >> LENGTH_BITS]
        return 1 + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")

    def name(self, row: int) -> str:
        """Return the name of an element or attribute."""
        return str(self._called[self.names[row]])

    def text(self, row: int) -> str:
        """Return the text of an element without blanks around it, or the value of an attribute."""
        place, length = divmod(int(self._texts[row]), 1 << LENGTH_BITS)
        return self._joined[place : place + length].decode()

    def numbers(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the texts of rows as numbers, as `decimal` parses them, and a mask of the finite numbers."""
        values, unread = plain_numbers(self._data, self._texts[rows])
        good = np.ones(rows.size, np.bool_)
        for k in unread.tolist():
            try:
                values[k] = decimal(self.text(rows[k]))
                good[k] = np.isfinite(values[k])
            except ValueError:
                good[k] = False
        return values, good

    def strings(self, rows: NDArray[np.int64]) -> Strings:
        """Return the texts of rows."""
        codes, distinct = distinct_strings(self._data, self._texts[rows])
        return Strings(codes, [text.decode() for text in distinct])


def _start(content: bytes) -> int:
    """Return the position after the declaration of a file; its end if its characters are not those of plain XML."""
    if not content.isascii():
        try:
            content.decode()
        except UnicodeDecodeError:
            return len(content)
        if _NONCHARACTERS.search(content):
            return len(content)
    match = _DECLARATION.match(content)
    return match.end() if match else 0
