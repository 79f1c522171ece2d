"""Scan JSON records into columns in one pass. Most writers put the same bytes ("glue") between the values of all
records. `_learn` records the glue of a block's first record, `_scan_alike` reads every record with the same glue, and
`_scan_record` reads the other records key by key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.numbers import (
    NUMBER_ROOM,
    _double,
    _doubt,
    _has_sign,
    _integer,
    _long_number,
    _nearest,
    _number,
    _plain_integer,
    _quotient,
    _short_number,
)
from detmap.kernels.scanning import (
    ALWAYS,
    CLOSED,
    DOUBTS,
    EVER,
    FAILED,
    FIRST,
    FLAG,
    FULL,
    ID,
    INTEGERS,
    LIMIT,
    LISTS,
    MOST_NUMBERS,
    NOTED,
    NUMBERS,
    PASSED,
    POSITION,
    QUOTED,
    ROW,
    STATUS,
    STOPPED,
    STRINGS,
    UNREAD,
    Columns,
)
from detmap.kernels.texts import LENGTH_BITS
from detmap.kernels.values import FALSE, TRUE, _lists_end, _string_end, _value_end
from detmap.kernels.words import ALL, FIVE_BYTES, LOW32, NOTHING, U1, U63, _blank, _byte, _load, _word

# Number of keys of the previous record whose order is remembered, because most records have the same order of keys.
EXPECTED_KEYS = 16
# Records are compared with the first record only if it has at most `MOST_VALUES` values, and at most `GLUE_WORDS` words
# of eight bytes between two values.
MOST_VALUES = 24
GLUE_WORDS = 4
# Columns of `Likeness.values`: kind, place of row 0, stride of rows, first byte, end. Columns of `Likeness.glue`: length
# of the glue, then its words, each followed by the mask of its bytes.
KIND, PLACE, STEP, BEGIN, END, NOTES = range(6)
LENGTH, WORDS, GLUE_NOTES = 0, 1, 1 + 2 * GLUE_WORDS
SHORT_GLUE = np.uint64(16)  # most glue has at most 16 bytes
# Number of readable bytes required to compare glue, and read a number after it, without checking for the document's
# end.
ROOM = 8 * GLUE_WORDS + NUMBER_ROOM
# Number of consecutive records unlike the first record after which records are no longer compared with it.
MOST_MISSES = 64


class Likeness(NamedTuple):
    """The layout of a block's first record: its `values`, and the `glue` before each value and after the last."""

    values: Any
    glue: Any


@helper
def _leave_out(fields: int, places: Any, begin: int, end: int, ids: Any, words: Any) -> None:
    """Write missing values to rows ``[begin, end)`` of the fields whose bits are set in `fields`."""
    for field in range(len(places)):
        if fields >> field & 1:
            column, width = places[field, 2], places[field, 1]
            for k in range(column + begin * width, column + end * width):
                if places[field, 0] == ID or places[field, 0] == LISTS:
                    ids[k] = ALL
                else:
                    words[k] = ALL


@helper
def _note(values: Any, state: Any, kind: int, place: int, step: int, begin: int, end: int) -> None:
    """Count a value, and record its kind, place, step and range unless `values` is full."""
    noted = state[NOTED]
    if noted < len(values):
        values[noted, KIND] = kind
        values[noted, PLACE] = place
        values[noted, STEP] = step
        values[noted, BEGIN] = begin
        values[noted, END] = end
    state[NOTED] = noted + 1


@helper
def _learn(data: Any, begin: int, end: int, likeness: Likeness, count: int) -> int:
    """Record the glue of a record: the bytes before each value, and the bytes from the last value to the next record at
    `end`. Returns the number of values, `count`, or 0 if there are too many values, or too many bytes between two
    values.
    """
    values, glue = likeness
    if not 0 < count <= len(values):
        return 0
    for k in range(count + 1):
        stop = values[k, BEGIN] if k < count else end
        if stop - begin > 8 * GLUE_WORDS:
            return 0
        glue[k, LENGTH] = np.uint64(stop - begin)
        for w in range(GLUE_WORDS):
            rest = stop - begin - 8 * w
            mask = ALL if rest >= 8 else (U1 << np.uint64(8 * max(rest, 0))) - U1
            glue[k, WORDS + 2 * w] = _load(data, begin + 8 * w) & mask
            glue[k, WORDS + 2 * w + 1] = mask
        begin = values[min(k, count - 1), END]
    return count


@innermost
def _has_glue(data: Any, place: int, glue: Any, g: Any) -> bool:
    """Return whether the bytes at `place` equal the glue before value `g` of the first record."""
    other = NOTHING
    for w in range(2):
        word = np.uint64(WORDS + 2 * w)
        other |= _word(data, place + 8 * w) & glue[g, word + U1] ^ glue[g, word]
    if glue[g, LENGTH] > SHORT_GLUE:
        for w in range(2, GLUE_WORDS):
            word = np.uint64(WORDS + 2 * w)
            other |= _word(data, place + 8 * w) & glue[g, word + U1] ^ glue[g, word]
    return bool(other == NOTHING)


@innermost
def _short_or_long(data: Any, i: int, powers: Any) -> Any:
    """Read a number as `_double` does, but faster if it is short: return its bits, its end (-1: invalid), and whether the
    bits are certain. Requires `NUMBER_ROOM` readable bytes.
    """
    negative = np.int64(data[np.uint64(i)] == 45)
    certain = True
    mantissa, digits, end = _short_number(data, i + negative)
    if end >= 0:
        bits = _quotient(mantissa, digits, powers)
    else:
        mantissa, exponent, end = _long_number(data, i + negative, powers)
        fits = True
        if end < 0:
            mantissa, exponent, end, fits = _number(data, i, powers)
            negative &= _has_sign(mantissa, i, end)
        bits, certain = _nearest(mantissa, exponent, powers)
        certain &= fits
    return bits | np.uint64(negative) << U63, end, certain


@helper
def _scan_alike(
    data: Any, stop: int, lines: bool, likeness: Likeness, count: int, powers: Any, columns: Columns, state: Any
) -> None:
    """Scan records while the bytes between their `count` values equal the recorded glue: a few words are compared, and
    keys, colons and blanks are not parsed. If a record differs, `_scan_record` writes its row again.
    """
    values, glue = likeness
    _, ids, words, doubts = columns
    i, row, doubtful, limit = state[POSITION], state[ROW], state[DOUBTS], state[LIMIT]
    inside = len(data) - ROOM
    place, end, waiting = i, i, doubtful  # `i`, `row` and `doubtful` advance only after a record
    while end >= 0 and i < stop and row < limit and doubtful + MOST_NUMBERS <= len(doubts):
        for k in range(count + 1):
            g = np.uint64(k)
            end = -1
            if place > inside or not _has_glue(data, place, glue, g):
                break
            place += np.int64(glue[g, LENGTH])
            if k == count:
                if data[np.uint64(place)] == 123:  # the next record, without further white space
                    end = place
                break
            kind = values[g, KIND]
            at = np.uint64(values[g, PLACE] + row * values[g, STEP])
            if kind == NUMBERS:
                bits, end, certain = _short_or_long(data, place, powers)
                if not certain:
                    waiting = _doubt(doubts, waiting, at, place, end)
                words[at] = bits
            elif kind == ID:
                value, end = _plain_integer(data, place)
                if end < 0:
                    value, end = _integer(data, place, powers)
                ids[at] = np.uint64(value)
            elif kind == FLAG:
                end = place + 1 if data[np.uint64(place)] | 1 == 49 else -1
                words[at] = np.uint64(data[np.uint64(place)] & 1)
            elif kind == QUOTED:
                end = _string_end(data, place)
                if end - 1 - place >= 1 << LENGTH_BITS:
                    end = -1
                if end >= 0:
                    ids[at] = np.uint64(place << LENGTH_BITS | end - 1 - place)
            else:
                end = (
                    _lists_end(data, place, lines, powers) if kind == LISTS else _value_end(data, place, lines, powers)
                )
                if end >= 0 and kind == LISTS:
                    ids[at], ids[at + U1] = np.uint64(place), np.uint64(end)
                elif end >= 0 and kind != PASSED:
                    words[at], words[at + U1] = np.uint64(place), np.uint64(end)
            if end < 0:
                break
            place = end
        if end >= 0:
            i, doubtful = place, waiting
            row += 1
    state[POSITION], state[ROW], state[DOUBTS] = i, row, doubtful


@innermost
def _key_bit(first: int, last: int, length: int) -> Any:
    """Return the bit that stands for a key in `UNREAD`. The bit depends on the key's first byte, last byte, and length."""
    return np.int64(1) << (np.int64(first) * 5 + np.int64(last) * 3 + np.int64(length) & 63)


@innermost
def _find_field(data: Any, i: int, lines: bool, names: Any, expected: Any, key: int, state: Any) -> Any:
    """Read a key and its colon: return its field (``len(names)`` for none), and the position of the value (-1 if there
    is no key). `expected` holds the fields of the previous record; the field at index `key` is tried first.
    """
    if _byte(data, i) != 34:
        return 0, -1
    i += 1
    word0 = _load(data, i)
    word1 = _load(data, i + 8)
    field = expected[key & (EXPECTED_KEYS - 1)]
    if word0 & names[field, 2] != names[field, 0] or word1 & names[field, 3] != names[field, 1]:
        field = 0
        while field < len(names) and (
            word0 & names[field, 2] != names[field, 0] or word1 & names[field, 3] != names[field, 1]
        ):
            field += 1
    if field < len(names):
        expected[key & (EXPECTED_KEYS - 1)] = field
        i += np.int64(names[field, 4])
    else:
        begin = i
        i = _string_end(data, i)
        for k in range(begin, i):
            if data[k] == 92:  # an escape may spell a known name
                i = -1
        if i < 0:
            return field, -1
        state[UNREAD] |= _key_bit(data[begin], data[max(i - 2, begin)], i - 1 - begin)
    i = _blank(data, i, lines)
    return field, _blank(data, i + 1, lines) if _byte(data, i) == 58 else -1


@innermost
def _scan_numbers(
    data: Any, i: int, lines: bool, field: int, powers: Any, columns: Columns, state: Any, values: Any
) -> int:
    """Scan the value of a field: a number, or a list if the field has several numbers per record. Return the end of the
    value, or -1 if it is unsupported.
    """
    places, _, words, doubts = columns
    width, first = places[field, 1], places[field, 2]
    if width > 1:
        if _byte(data, i) != 91:
            return -1
        i = _blank(data, i + 1, lines)
    for k in range(width):
        if k > 0:
            i = _blank(data, i, lines)
            if _byte(data, i) != 44:
                return -1
            i = _blank(data, i + 1, lines)
        bits, end, certain = _double(data, i, powers)
        if end < 0:
            return -1
        if not _has_sign(bits << U1, i, end):
            bits = NOTHING
        at = first + state[ROW] * width + k
        if not certain:
            state[DOUBTS] = _doubt(doubts, state[DOUBTS], at, i, end)
        words[at] = bits
        _note(values, state, NUMBERS, first + k, width, i, end)
        i = end
    if width > 1:
        i = _blank(data, i, lines)
        return i + 1 if _byte(data, i) == 93 else -1
    return i


@innermost
def _scan_value(
    data: Any, i: int, lines: bool, field: int, powers: Any, columns: Columns, state: Any, values: Any
) -> int:
    """Scan an id, or a value that is not a number: return its end, -1 if it is unsupported."""
    places, ids, words, _ = columns
    kind, width, first = places[field, 0], places[field, 1], places[field, 2]
    at, begin = first + state[ROW] * width, i
    if kind == ID and _byte(data, i) == 34:
        begin += 1
        i = _string_end(data, begin)
        if i < 0 or i - 1 - begin >= 1 << LENGTH_BITS:
            return -1
        ids[at] = np.uint64(begin << LENGTH_BITS | i - 1 - begin)
        state[STRINGS] |= 1 << field
        kind = QUOTED
    elif kind == ID:
        value, i = _integer(data, i, powers)
        ids[at] = np.uint64(value)
        state[INTEGERS] |= 1 << field
    elif kind == FLAG:
        c, word = _byte(data, i), _load(data, i)
        words[at] = np.uint64(c == 49 or c == 116)
        if c == 48 or c == 49:
            i += 1
        elif word & LOW32 == TRUE:
            i += 4
        elif word & FIVE_BYTES == FALSE:
            i += 5
        else:
            return -1
    else:
        i = _lists_end(data, i, lines, powers) if kind == LISTS else _value_end(data, i, lines, powers)
        if i < 0:
            return -1
        if kind == LISTS:
            ids[at], ids[at + 1] = np.uint64(begin), np.uint64(i)
        else:
            words[at], words[at + 1] = np.uint64(begin), np.uint64(i)
    _note(values, state, kind, first, width, begin, i)
    return i


@innermost
def _scan_record(
    data: Any, lines: bool, names: Any, expected: Any, powers: Any, columns: Columns, state: Any, values: Any
) -> Any:
    """Scan a record key by key. Return its end (-1 if it is unsupported), and a bit set of the fields that it has."""
    places = columns.places
    i = _blank(data, state[POSITION] + 1, lines)
    seen, key = 0, 0
    while True:
        field, i = _find_field(data, i, lines, names, expected, key, state)
        if i < 0:
            return -1, seen
        key += 1
        bit = 1 << field
        if field == len(places):
            begin = i
            i = _value_end(data, i, lines, powers)
            _note(values, state, PASSED, 0, 0, begin, i)
        elif seen & bit:
            return -1, seen
        else:
            seen |= bit
            if not state[EVER] & bit:
                _leave_out(bit, places, state[FIRST], state[ROW], columns.ids, columns.words)
                state[EVER] |= bit
            if places[field, 0] == NUMBERS:
                i = _scan_numbers(data, i, lines, field, powers, columns, state, values)
            else:
                i = _scan_value(data, i, lines, field, powers, columns, state, values)
        if i < 0:
            return -1, seen
        i = _blank(data, i, lines)
        c = _byte(data, i)
        i += 1
        if c == 125:
            return i, seen
        if c != 44:
            return -1, seen
        i = _blank(data, i, lines)


@innermost
def _next_record(data: Any, i: int, lines: bool) -> Any:
    """Find what follows a record. Return the position of the next record and `STOPPED`, the end of the list and
    `CLOSED`, or any position and `FAILED`.
    """
    i = _blank(data, i, lines)
    c = _byte(data, i)
    if lines:
        if c != 10 and i < len(data):
            return i, FAILED
        i = _blank(data, i, False)
        return i, CLOSED if i == len(data) else STOPPED
    if c == 44:
        return _blank(data, i + 1, lines), STOPPED
    return i + 1, CLOSED if c == 93 else FAILED


@kernel
def scan_records(data: Any, stop: int, lines: bool, names: Any, powers: Any, columns: Columns, state: Any) -> None:
    """Scan JSON objects that follow each other in a list, or line by line, into columns.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    stop : int
        The first record that begins at this position or later is left to the next block.
    lines : bool
        One record per line instead of a list.
    names : (fields, 5) uint64
        For each field: its name and closing quote as two little-endian words, their two masks, and the length with the
        quote.
    powers : uint64
        The powers, as in `values.skip_value`.
    columns : Columns
        Fields of the types `ID`, `NUMBERS`, `FLAG`, `SPAN` or `LISTS`. If a record lacks a field, all bits of its words in
        the field's column are set; the column of a field that no record of the block has is left unwritten. There is
        room for at least `MOST_NUMBERS` doubts.
    state : (STATE_SIZE,) int64
        In and out. Initially, `POSITION` is the first byte of a record, `FIRST` and `ROW` are the first row to write,
        `LIMIT` is the row after the last row, `ALWAYS` has all bits set, and the other slots are 0.
    """
    places, ids, words, doubts = columns
    expected = np.zeros(EXPECTED_KEYS, np.int64)
    values = np.empty((MOST_VALUES, NOTES), np.int64)
    likeness = Likeness(values, np.empty((MOST_VALUES + 1, GLUE_NOTES), np.uint64))
    first_fields = 0  # fields of the first record
    count = 0  # number of values of the first record; 0 if other records are not compared with it
    misses = 0
    state[STATUS] = FAILED
    while True:
        if count > 0 and misses < MOST_MISSES:
            start, begin = state[POSITION], state[ROW]
            _scan_alike(data, stop, lines, likeness, count, powers, columns, state)
            misses = misses + 1 if state[POSITION] == start else 0
            if state[EVER] != first_fields:
                _leave_out(state[EVER] & ~first_fields, places, begin, state[ROW], ids, words)
        start, row = state[POSITION], state[ROW]
        if start >= stop:
            state[STATUS] = STOPPED
            break
        if state[DOUBTS] + MOST_NUMBERS > len(doubts):
            state[STATUS] = FULL
            break
        # The caller has counted opening braces and reserved a row for each brace. A record has at least one brace, so the
        # rows only run out if the file has changed since the count.
        if row >= state[LIMIT] or _byte(data, start) != 123:
            break
        state[NOTED] = 0 if first_fields == 0 else MOST_VALUES  # only the first record is noted
        i, seen = _scan_record(data, lines, names, expected, powers, columns, state, values)
        if i < 0:
            break
        if state[EVER] != seen:
            _leave_out(state[EVER] & ~seen, places, row, row + 1, ids, words)
        state[ALWAYS] &= seen
        state[ROW] = row + 1
        state[POSITION], status = _next_record(data, i, lines)
        if status != STOPPED:
            state[STATUS] = status
            break
        if first_fields == 0:
            first_fields = seen
            count = _learn(data, start, state[POSITION], likeness, state[NOTED])
