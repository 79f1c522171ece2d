"""Scan plain XML into a table of elements and attributes, in one pass.

Plain XML has no comments, processing instructions, entities, sections or namespaces, and its names are ASCII. A file
that is not plain, or not well-formed, is left to a parser with precise errors. Bytes of text and of attributes' values
that are not ASCII are accepted, and the caller checks that they are UTF-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import helper, kernel
from detmap.kernels.texts import ABSENT, LENGTH_BITS, LENGTHS, _same
from detmap.kernels.words import NOTHING, _blank, _byte

# Maximum depth of nested elements, and maximum number of attributes of an element. Attributes are compared pairwise.
DEEPEST, MOST_ATTRIBUTES = 64, 64


@helper
def _name_end(data: Any, i: int) -> int:
    """Return the end of the name at `i`; `i` if there is no name."""
    begin = i
    while True:
        c = _byte(data, i)
        letter = (c | 32 >= 97 and c | 32 <= 122) or c == 95
        if not (letter or (i > begin and ((c >= 48 and c <= 57) or c == 45 or c == 46))):
            return i
        i += 1


@helper
def _text_end(data: Any, i: int, end: int) -> int:
    """Return the position of the tag after the text from `i` on, or `end`; -1 for a byte that plain text cannot have."""
    while i < end:
        c = data[np.uint64(i)]
        if c < 63:  # "<" and most bytes that plain text cannot have lie below
            if c == 60:
                return i
            if c == 38 or c == 62 or (c < 32 and c != 10 and c != 9 and c != 13):
                return -1
        elif c == 127:
            return -1
        i += 1
    return end


@helper
def _trimmed(data: Any, begin: int, end: int) -> Any:
    """Return the location of a text without blanks around it; `ABSENT` if it is too long, or has a carriage return
    inside.
    """
    begin = min(_blank(data, begin, False), end)
    while end > begin and (_byte(data, end - 1) == 32 or (_byte(data, end - 1) >= 9 and _byte(data, end - 1) <= 13)):
        end -= 1
    for i in range(begin, end):
        if data[np.uint64(i)] == 13:
            return ABSENT
    return np.uint64(begin << LENGTH_BITS | end - begin) if end - begin < 1 << LENGTH_BITS else ABSENT


@helper
def _value_end(data: Any, i: int, end: int) -> int:
    """Return the closing quote of the attribute's value whose opening quote is at `i`; -1 if the value is not plain."""
    quote = _byte(data, i)
    begin = i + 1
    if quote != 34 and quote != 39:
        return -1
    i = begin
    while i < end and i - begin < 1 << LENGTH_BITS:
        c = _byte(data, i)
        if c == quote:
            return i
        if c < 32 or c == 38 or c == 60 or c == 127:
            return -1
        i += 1
    return -1


@helper
def _attributes(data: Any, i: int, end: int, element: int, row: int, table: Any) -> Any:
    """Read the attributes of the tag whose name ends at `i`. Return the position of ``>`` or ``/>``, and the next row;
    the position is -1 if the attributes are not plain.
    """
    names, texts, parents = table
    first = row
    while True:
        begin = _blank(data, i, False)
        c = _byte(data, begin)
        if c == 62 or c == 47:
            return begin, row
        stop = _name_end(data, begin)
        if begin == i or stop == begin or stop - begin >= 1 << LENGTH_BITS or stop >= end or _byte(data, stop) != 61:
            return -1, row
        if row - first == MOST_ATTRIBUTES or row >= len(names):
            return -1, row
        name = np.uint64(begin << LENGTH_BITS | stop - begin)
        for other in range(first, row):
            if names[other] & LENGTHS == name & LENGTHS and _same(data, names[other], data, name):
                return -1, row
        i = _value_end(data, stop + 1, end) + 1
        if i == 0:
            return -1, row
        names[row], parents[row] = name, ~element
        texts[row] = np.uint64(stop + 2 << LENGTH_BITS | i - stop - 3)
        row += 1


@helper
def _file(data: Any, i: int, end: int, row: int, table: Any, stack: Any) -> int:
    """Scan one file into rows from `row` on; return the next row, or -1 if the file is not plain."""
    names, texts, parents = table
    first, depth = row, 0
    while True:
        begin = i
        i = _text_end(data, begin, end)
        if i < 0:
            return -1
        if i == end or depth == 0:
            if min(_blank(data, begin, False), end) < i:
                return -1
            if i == end:
                return row if depth == 0 and row > first else -1
        if _byte(data, i + 1) == 47:
            if depth == 0:
                return -1
            depth -= 1
            element = stack[depth]
            if texts[element] == NOTHING:
                texts[element] = _trimmed(data, begin, i)
                if texts[element] == ABSENT:
                    return -1
            i += 2
            name = np.uint64(i << LENGTH_BITS) | names[element] & LENGTHS
            i += np.int64(names[element] & LENGTHS)
            if i >= end or not _same(data, name, data, names[element]):
                return -1
            i = _blank(data, i, False)
        else:
            if depth == DEEPEST or (depth == 0 and row > first) or row >= len(names):
                return -1
            element = row
            begin, i = i + 1, _name_end(data, i + 1)
            if i == begin or i - begin >= 1 << LENGTH_BITS:
                return -1
            names[row], texts[row] = np.uint64(begin << LENGTH_BITS | i - begin), NOTHING
            parents[row] = stack[depth - 1] if depth else row
            if depth:
                texts[stack[depth - 1]] = ABSENT
            i, row = _attributes(data, i, end, element, row + 1, table)
            if i < 0:
                return -1
            if _byte(data, i) == 47:
                i += 1
                texts[element] = np.uint64(i << LENGTH_BITS)
            else:
                stack[depth] = element
                depth += 1
        if i >= end or _byte(data, i) != 62:
            return -1
        i += 1


@kernel
def scan_markup(data: Any, bounds: Any, names: Any, texts: Any, parents: Any, firsts: Any, stack: Any) -> int:
    """Scan files of plain XML; return the number of rows.

    Parameters
    ----------
    data : (n,) uint8
        The files, at least eight bytes.
    bounds : (files, 2) int64
        Begin and end of each file.
    names : (rows,) uint64
        Out: position and length of the name of each element and attribute, in the order of the document; attributes
        follow their element.
    texts : (rows,) uint64
        Out: position and length of an attribute's value, or of an element's text without blanks around it; all bits
        are set for an element that has elements.
    parents : (rows,) int64
        Out: the row of an element's parent, for the root its own row; for an attribute ``~row`` of its element.
    firsts : (files + 1,) int64
        Out: the first row of each file. A file that is not plain has no rows.
    stack : (`DEEPEST`,) int64
        Memory for the elements that are open.
    """
    row, table = 0, (names, texts, parents)
    for file in range(len(bounds)):
        firsts[file] = row
        after = _file(data, bounds[file, 0], bounds[file, 1], row, table, stack)
        row = max(row, after)
    firsts[len(bounds)] = row
    return row
