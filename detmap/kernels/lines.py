"""Lines of TREC and of VOC's results -> columns, read once."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel
from detmap.kernels.numbers import _doubt, _integer, _nearest, _number
from detmap.kernels.scanning import (
    CLOSED,
    DOUBTS,
    EVER,
    FAILED,
    FULL,
    ID,
    INTEGER,
    LIMIT,
    LONGER,
    NUMBERS,
    POSITION,
    REPEATED,
    ROW,
    STATUS,
    STOPPED,
    STRINGS,
)
from detmap.kernels.texts import LENGTH_BITS, _same
from detmap.kernels.words import U1, U63, _byte, _tab_or_space, _token_end

# A line that may have further tokens has no more of them than this: four could be a second record on the same line.
MOST_FURTHER = 3


@kernel
def scan_lines(
    data: Any,
    stop: int,
    tokens: Any,
    more: bool,
    places: Any,
    powers: Any,
    ids: Any,
    words: Any,
    doubts: Any,
    state: Any,
) -> None:
    """Scan lines of tokens between blanks into columns; empty lines and those that begin with ``#`` are passed.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    stop : int
        The first line that begins here or later is left to the next block.
    tokens : (k,) int64
        For each token of a line its field, -1 for none.
    more : bool
        Whether a line may have more tokens than that, up to `MOST_FURTHER`; they are passed, and the line is counted.
    places : (fields, 3) int64
        Per field what it holds (`ID`, `NUMBERS`, `REPEATED`, `INTEGER`), 1, and where its column begins: in `ids` where it
        is an `ID` or `REPEATED`, else in `words`.
    powers, ids, words, doubts, state
        As in `records.scan_records`; there is room for at least *k* doubts. Every column is written.
    """
    i = state[POSITION]
    row = state[ROW]
    doubtful = state[DOUBTS]
    longer = state[LONGER]
    most = len(tokens) + MOST_FURTHER * more
    status = FAILED
    while True:
        if i >= stop:
            status = CLOSED if i >= len(data) else STOPPED
            break
        if doubtful + len(tokens) > len(doubts):  # each token may bring one
            status = FULL
            break
        i = _tab_or_space(data, i)
        c = _byte(data, i)
        token = len(tokens) if c == 35 else 0
        blank = c == 35 or c == 10 or c == 13 or i == len(data)
        if not blank and row >= state[LIMIT]:
            break
        while c > 32:
            begin = i
            field = tokens[token] if token < len(tokens) else -1
            if field < 0:
                if token >= most and not blank:
                    i = -1
                    break
                i = _token_end(data, i)
            else:
                at = places[field, 2] + row
                kind = places[field, 0]
                if kind == NUMBERS:
                    mantissa, exponent, i, fits = _number(data, begin, powers)
                    bits, certain = _nearest(mantissa, exponent, powers)
                    if c == 45:
                        bits |= U1 << U63
                    if i < 0 or _byte(data, i) > 32 or not (fits and certain):
                        i = _token_end(data, begin)
                        doubtful = _doubt(doubts, doubtful, at, begin, i)
                    words[at] = bits
                elif kind == INTEGER:
                    value, i = _integer(data, begin, powers)
                    if i < 0 or _byte(data, i) > 32:
                        i = -1
                        break
                    words[at] = np.uint64(value)
                else:
                    i = _token_end(data, begin)
                    if i - begin >= 1 << LENGTH_BITS:
                        i = -1
                        break
                    word = np.uint64(begin << LENGTH_BITS | i - begin)
                    if kind == REPEATED and row > state[ROW] and _same(data, word, data, ids[at - 1]):
                        word = ids[at - 1]
                    ids[at] = word
            token += 1
            i = _tab_or_space(data, i)
            c = _byte(data, i)
        if i < 0 or (token < len(tokens) and not blank):
            break
        if c == 13:
            i += 1
            c = _byte(data, i)
        if c != 10 and i < len(data):
            break
        i += 1
        if not blank:
            row += 1
            longer += token > len(tokens)
    state[STATUS] = status
    state[POSITION] = i
    state[ROW] = row
    state[LONGER] = longer
    state[EVER] = (1 << len(places)) - 1
    for field in range(len(places)):
        if places[field, 0] == ID or places[field, 0] == REPEATED:
            state[STRINGS] |= 1 << field
    state[DOUBTS] = doubtful
