"""Cells between delimiters, a record a line -> columns, read once."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import helper, kernel
from detmap.kernels.numbers import _doubt, _nearest, _number
from detmap.kernels.scanning import (
    CLOSED,
    DOUBTS,
    EVER,
    FAILED,
    FULL,
    LIMIT,
    NUMBERS,
    POSITION,
    ROW,
    STATUS,
    STOPPED,
    STRINGS,
)
from detmap.kernels.texts import LENGTH_BITS
from detmap.kernels.words import U1, U63, _byte

# A cell is not longer than this; and all of a line's numbers may be left to the caller, so that no line has more cells.
LONGEST_CELL, MOST_CELLS = 1 << 16, 256


@helper
def _cell_end(data: Any, i: int, delimiter: int) -> int:
    """The first position from `i` on that holds a delimiter or the end of a line, or is the end; -1 where a quote comes."""
    begin = i
    while i < len(data):
        c = _byte(data, i)
        if c == delimiter or c == 10 or c == 13:
            break
        if c == 34:
            return -1
        i += 1
    return i if i - begin < LONGEST_CELL else -1


@kernel
def scan_cells(
    data: Any,
    stop: int,
    cells: Any,
    delimiter: int,
    places: Any,
    powers: Any,
    ids: Any,
    words: Any,
    doubts: Any,
    state: Any,
) -> None:
    """Scan lines of cells into columns. Quotes, blank lines, and lines with more or fewer cells are not understood.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    stop : int
        The first line that begins here or later is left to the next block.
    cells : (k,) int64
        For each cell of a line its field, -1 for none; at most `MOST_CELLS`.
    delimiter : int
        The byte between cells.
    places : (fields, 3) int64
        Per field what it holds (`ID`: any text; `NUMBERS`), 1, and where its column begins: in `ids` or in `words`.
    powers, ids, words, doubts, state
        As in `records.scan_records`. Every column is written.
    """
    i = state[POSITION]
    row = state[ROW]
    doubtful = state[DOUBTS]
    last = len(cells) - 1
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
            if field >= 0 and places[field, 0] == NUMBERS:
                at = places[field, 2] + row
                mantissa, exponent, i, fits = _number(data, begin, powers)
                bits, certain = _nearest(mantissa, exponent, powers)
                if _byte(data, begin) == 45:
                    bits |= U1 << U63
                c = _byte(data, i) if i >= 0 else 0
                if not (i >= 0 and fits and certain and (c == delimiter or c == 10 or c == 13 or i == len(data))):
                    i = _cell_end(data, begin, delimiter)
                    doubtful = _doubt(doubts, doubtful, at, begin, max(i, begin))
                words[at] = bits
            else:
                i = _cell_end(data, begin, delimiter)
                if field >= 0:
                    ids[places[field, 2] + row] = np.uint64(begin << LENGTH_BITS | max(i, begin) - begin)
            if i < 0 or (cell < last and _byte(data, i) != delimiter):
                i = -1
                break
            i += cell < last
        if i < 0:
            break
        c = _byte(data, i)
        if c == 13:
            i += 1
            c = _byte(data, i)
        if c != 10 and i < len(data):
            break
        i += 1
        row += 1
    state[STATUS] = status
    state[POSITION] = i
    state[ROW] = row
    state[DOUBTS] = doubtful
    state[EVER] = (1 << len(places)) - 1
    for field in range(len(places)):
        if places[field, 0] != NUMBERS:
            state[STRINGS] |= 1 << field
