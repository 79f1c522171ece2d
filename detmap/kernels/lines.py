"""Scan lines of TREC files and of VOC's results into columns in one pass, and parse words that are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.numbers import NUMBER_ROOM, _doubt, _integer, _pointed_or_double
from detmap.kernels.scanning import (
    CLOSED,
    COMMENTS,
    DOUBTS,
    FAILED,
    FULL,
    INTEGER,
    LIMIT,
    LONGER,
    NUMBERS,
    POSITION,
    REPEATED,
    ROW,
    STOPPED,
    Columns,
    _leave_lines,
)
from detmap.kernels.texts import ABSENT, LENGTH_BITS, LENGTHS, _same
from detmap.kernels.words import NOTHING, U1, U2, _byte, _next_line, _tab_or_space, _token_end

# Maximum number of tokens after a record on the same line. Four more tokens could be a second record.
MOST_FURTHER = 3


@innermost
def _id_at(data: Any, i: int, before: Any) -> Any:
    """Read the token at `i`: return its location and its end; the end is -1 if the token is too long. If the token
    equals the one at the location `before`, return `before` as its location. This comparison is faster than a search
    for the token's end.
    """
    length = np.int64(before & LENGTHS)
    again = np.uint64(i << LENGTH_BITS | length)
    if before != ABSENT and _byte(data, i + length) <= 32 and _same(data, again, data, before):
        return before, i + length
    end = _token_end(data, i)
    return np.uint64(i << LENGTH_BITS | end - i), end if end - i < 1 << LENGTH_BITS else -1


@helper
def _no_number(data: Any, i: int) -> bool:
    """Return whether the first byte of the token at `i` shows that the token is neither a number nor inf or nan."""
    c = _byte(data, i)
    digit = c >= 48 and c <= 57
    return not (digit or c == 43 or c == 45 or c == 46 or c == 73 or c == 105 or c == 78 or c == 110)


@helper
def _unread(data: Any, i: int) -> bool:
    """Return whether the second token of the line at `i` may be the ignored field of a TREC run file, Q0 or 0."""
    c = _byte(data, _tab_or_space(data, _token_end(data, i)))
    return bool(c == 81 or c == 113 or c == 48)


@kernel
def scan_lines(data: Any, stop: int, tokens: Any, more: bool, powers: Any, columns: Columns, state: Any) -> None:
    """Scan lines of tokens between blanks into columns; empty lines are skipped.

    A line that begins with ``#`` is a record if it has all tokens, with numbers where numbers belong. Other lines that
    begin with ``#`` are comments, which are skipped and counted. The scan fails if a line could be either a record or a
    comment.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    stop : int
        The first line that begins at this position or later is left to the next block.
    tokens : (k,) int64
        The field of each token of a line, -1 for a token that is not read.
    more : bool
        Whether a line may have up to `MOST_FURTHER` more tokens; they are skipped, and the line is counted.
    powers, columns, state
        As in `records.scan_records`; ``doubts`` has at least *k* rows. The kind of a field is `ID`, `REPEATED` (an id
        that often equals the previous id), `NUMBERS` (one number) or `INTEGER`. Every column is written.
    """
    places, ids, words, doubts = columns
    i, row, doubtful = state[POSITION], state[ROW], state[DOUBTS]
    most, inside = len(tokens) + MOST_FURTHER * more, len(data) - NUMBER_ROOM
    status = FAILED
    while True:
        if i >= stop:
            status = CLOSED if i >= len(data) else STOPPED
            break
        if doubtful + len(tokens) > len(doubts):  # `doubts` must have room for all numbers of a line
            status = FULL
            break
        i = _tab_or_space(data, i)
        c = _byte(data, i)
        token, line, doubted, marked, comment = 0, i, doubtful, c == 35, False
        blank = c == 10 or c == 13 or i == len(data)
        if not blank and row >= state[LIMIT]:
            break
        while c > 32:
            begin = i
            field = tokens[np.uint64(token)] if token < len(tokens) and not comment else -1
            if field < 0:
                i = _token_end(data, i) if token < most or marked else -1
            else:
                # Unsigned, because numba checks signed indices for negative values.
                kind, at = places[np.uint64(field), NOTHING], np.uint64(places[np.uint64(field), U2] + row)
                if kind == NUMBERS:
                    bits, i, certain = _pointed_or_double(data, begin, inside, powers)
                    if i < 0 or _byte(data, i) > 32 or not certain:
                        i = _token_end(data, begin)
                        doubtful = _doubt(doubts, doubtful, np.int64(at), begin, i)
                        comment = marked and _no_number(data, begin)
                    words[at] = bits
                elif kind == INTEGER:
                    value, i = _integer(data, begin, powers)
                    words[at] = np.uint64(value)
                    i = -1 if i >= 0 and _byte(data, i) > 32 else i
                    if i < 0 and marked and _no_number(data, begin):
                        comment, i = True, _token_end(data, begin)
                else:
                    before = ids[at - U1] if kind == REPEATED and row > state[ROW] else ABSENT
                    ids[at], i = _id_at(data, begin, before)
            if i < 0:
                break
            token += 1
            i = _tab_or_space(data, i)
            c = _byte(data, i)
        unclear = marked and not comment and token > len(tokens) and more and _unread(data, line)  # comment or record?
        comment = comment or (marked and token != len(tokens))
        failed = i < 0 or unclear or (token < len(tokens) and not blank and not comment)
        i = -1 if failed else _next_line(data, i)
        if i < 0:
            break
        if comment:
            doubtful = doubted
            state[COMMENTS] += 1
        elif not blank:
            row += 1
            state[LONGER] += token > len(tokens)
    _leave_lines(places, state, status, i, row, doubtful)


@kernel
def read_words(data: Any, words: Any, powers: Any, values: Any, unread: Any) -> int:
    """Parse words as JSON numbers. Return the number of words that are not JSON numbers, or cannot be rounded with
    certainty.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    words : (k,) uint64
        Position and length of each word, see `texts`.
    powers
        As in `records.scan_records`.
    values : (k,) uint64
        Out: the bits of the nearest doubles.
    unread : (k,) int64
        Out: the indices of the words that were not parsed, ascending.
    """
    inside, count = len(data) - NUMBER_ROOM, 0
    for row in range(len(words)):
        word = words[np.uint64(row)]
        begin = np.int64(word) >> LENGTH_BITS
        bits, end, certain = _pointed_or_double(data, begin, inside, powers)
        values[np.uint64(row)] = bits
        if end != begin + np.int64(word & LENGTHS) or not certain:
            unread[count] = row
            count += 1
    return count
