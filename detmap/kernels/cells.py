"""Scan text with one record per line and a delimiter between cells into columns, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.numbers import (
    NUMBER_ROOM,
    _double,
    _doubt,
    _integer,
    _plain_integer,
    _quotient,
    _short_number,
)
from detmap.kernels.scanning import (
    CLOSED,
    DOUBTS,
    FAILED,
    FULL,
    ID,
    INTEGER,
    LIMIT,
    NUMBERS,
    PASSED,
    POSITION,
    ROW,
    STOPPED,
    Columns,
    _leave_lines,
)
from detmap.kernels.texts import LENGTH_BITS
from detmap.kernels.words import HIGHS, ONES, _before, _byte, _load, _next_line

# Maximum length of a cell, and maximum number of cells of a line. The number of cells is limited because the list of
# numbers that are left to ``float()`` must have room for all cells of a line.
LONGEST_CELL, MOST_CELLS = 1 << 16, 256

QUOTES, FOURTEENS = np.uint64(0x2222222222222222), np.uint64(0x0E0E0E0E0E0E0E0E)


@helper
def _cell_end(data: Any, i: int, delimiter: int) -> int:
    """Return the position of the next delimiter or line end from `i` on, or the end of the data; -1 if a quote or
    control character comes first.
    """
    begin = i
    spread = np.uint64(delimiter) * ONES
    while i - begin < LONGEST_CELL:
        word = _load(data, i)  # zeros after the end
        between, quoted = word ^ spread, word ^ QUOTES
        flags = ((between - ONES) & ~between) | ((quoted - ONES) & ~quoted) | ((word - FOURTEENS) & ~word)
        n = _before(flags & HIGHS)
        i += n
        if n < 8:
            c = _byte(data, i)
            return i if c == delimiter or c == 10 or c == 13 or i == len(data) else -1
    return -1


@innermost
def _plain_cell(data: Any, i: int, powers: Any) -> Any:
    """Read a short decimal number: return its bits and its end; the end is -1 for any other text. Requires
    `NUMBER_ROOM` readable bytes.
    """
    mantissa, digits, end = _short_number(data, i)
    return _quotient(mantissa, digits, powers), end


@innermost
def _integer_cell(data: Any, i: int, inside: int, powers: Any) -> Any:
    """Read an integer of 64 bits: return its value and its end; the end is -1 for any other text, including -0."""
    if i < inside:
        value, end = _plain_integer(data, i)
        if end >= 0:
            return value, end
    value, end = _integer(data, i, powers)
    return value, -1 if value == 0 and _byte(data, i) == 45 else end


@kernel
def scan_cells(data: Any, stop: int, cells: Any, delimiter: int, powers: Any, columns: Columns, state: Any) -> None:
    """Scan lines of cells into columns. Quotes, blank lines, and lines with a different number of cells are not
    supported.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    stop : int
        The first line that begins at this position or later is left to the next block.
    cells : (k,) int64
        The field of each cell of a line, -1 for a cell that is not read; at most `MOST_CELLS` cells.
    delimiter : int
        The byte between cells.
    powers, columns, state
        As in `records.scan_records`. The kind of a field is `ID` (any text), `NUMBERS` (one number) or `INTEGER`. Every
        column is written.
    """
    places, ids, words, doubts = columns
    i, row, doubtful = state[POSITION], state[ROW], state[DOUBTS]
    last, inside = len(cells) - 1, len(data) - NUMBER_ROOM
    status = FAILED
    while True:
        if i >= stop:
            status = CLOSED if i >= len(data) else STOPPED
            break
        if doubtful + len(cells) > len(doubts):
            status = FULL
            break
        if row >= state[LIMIT]:
            break
        for cell in range(len(cells)):
            begin = i
            field = cells[cell]
            kind = places[field, 0] if field >= 0 else PASSED
            at = places[field, 2] + row
            if kind == NUMBERS:
                if i < inside:
                    bits, end = _plain_cell(data, i, powers)
                    if end >= 0 and data[np.uint64(end)] == (delimiter if cell < last else 10):
                        words[at] = bits
                        i = end + (cell < last)
                        continue
                bits, i, certain = _double(data, begin, powers)
                c = _byte(data, i) if i >= 0 else 0
                if not (i >= 0 and certain and (c == delimiter or c == 10 or c == 13 or i == len(data))):
                    i = _cell_end(data, begin, delimiter)
                    doubtful = _doubt(doubts, doubtful, at, begin, max(i, begin))
                words[at] = bits
            elif kind == INTEGER:
                value, i = _integer_cell(data, begin, inside, powers)
                words[at] = np.uint64(value)
            else:
                i = _cell_end(data, begin, delimiter)
                if kind == ID:
                    ids[at] = np.uint64(begin << LENGTH_BITS | max(i, begin) - begin)
            if i < 0 or (cell < last and _byte(data, i) != delimiter):
                i = -1
                break
            i += cell < last
        if i < 0:
            break
        i = _next_line(data, i)
        if i < 0:
            break
        row += 1
    _leave_lines(places, state, status, i, row, doubtful)
