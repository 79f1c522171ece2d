"""JSON records -> columns, read once.

Most writers put the same bytes between the values of all records. `_learn` notes those of a block's first record, and
`_scan_alike` reads every record that has them, too; `scan_records` itself reads the others key by key.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import helper, kernel
from detmap.kernels.numbers import (
    NUMBER_ROOM,
    _doubt,
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
    NUMBERS,
    PASSED,
    POSITION,
    QUOTED,
    ROW,
    STATUS,
    STOPPED,
    STRINGS,
)
from detmap.kernels.texts import LENGTH_BITS
from detmap.kernels.values import FALSE, TRUE, _lists_end, _string_end, _value_end
from detmap.kernels.words import ALL, FIVE_BYTES, LOW32, NOTHING, U1, U63, _blank, _byte, _load, _word

# A record's first keys are expected where the record before had them.
EXPECTED_KEYS = 16
# Records are read by their likeness to the first one if it has no more values than this, and no more words between two.
MOST_VALUES = 24
GLUE_WORDS = 4
# What is noted of a value: its kind, where row 0 has it, how far rows are apart, its bytes. What is noted of the glue
# before it: its length, then its words, each ahead of the mask of what counts of it.
KIND, PLACE, STEP, BEGIN, END, NOTES = range(6)
LENGTH, WORDS, GLUE_NOTES = 0, 1, 1 + 2 * GLUE_WORDS
# So many bytes are there where glue is compared, and a number read after it, without a look at the end of the document.
ROOM = 8 * GLUE_WORDS + NUMBER_ROOM
# After so many records in a row that are unlike the first one, the others are not compared with it.
MOST_MISSES = 64


@helper
def _leave_out(fields: int, places: Any, begin: int, end: int, ids: Any, words: Any) -> None:
    """Write into rows that they do not have the fields whose bits are set."""
    for field in range(len(places)):
        if fields >> field & 1:
            column, width = places[field, 2], places[field, 1]
            for k in range(column + begin * width, column + end * width):
                if places[field, 0] == ID or places[field, 0] == LISTS:
                    ids[k] = ALL
                else:
                    words[k] = ALL


@helper
def _note(values: Any, noted: int, kind: int, place: int, step: int, begin: int, end: int) -> int:
    """Note a value while there is room for it; how many there are now."""
    if noted < len(values):
        values[noted, KIND] = kind
        values[noted, PLACE] = place
        values[noted, STEP] = step
        values[noted, BEGIN] = begin
        values[noted, END] = end
    return noted + 1


@helper
def _learn(data: Any, begin: int, end: int, values: Any, count: int, glue: Any) -> int:
    """Note the bytes before each value of a record, and those after the last one up to the next record at `end`.

    Returns `count`, or 0 where values, or bytes between them, are too many.
    """
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


@helper
def _scan_alike(
    data: Any,
    i: int,
    stop: int,
    lines: bool,
    row: int,
    limit: int,
    values: Any,
    count: int,
    glue: Any,
    powers: Any,
    ids: Any,
    words: Any,
    doubts: Any,
    doubtful: int,
) -> Any:
    """Scan records for as long as they have the glue that was learnt: where the next one begins, its row, how many doubts.

    Most writers put the same bytes between the values of all records: a few words that are compared stand for keys, colons
    and blanks. What was written of a record that turns out to be another is written anew by whoever scans that.
    """
    inside = len(data) - ROOM
    place, end, waiting = i, i, doubtful  # within the record; `i`, `row` and `doubtful` are ahead of it
    while end >= 0 and i < stop and row < limit and doubtful + MOST_NUMBERS <= len(doubts):
        for k in range(count + 1):
            g = np.uint64(k)
            end = -1
            if place > inside:
                break
            other = NOTHING
            for w in range(GLUE_WORDS):
                word = np.uint64(WORDS + 2 * w)
                other |= _word(data, place + 8 * w) & glue[g, word + U1] ^ glue[g, word]
            if other != NOTHING:
                break
            place += np.int64(glue[g, LENGTH])
            if k == count:
                if data[np.uint64(place)] == 123:  # not more white space
                    end = place
                break
            kind = values[g, KIND]
            at = np.uint64(values[g, PLACE] + row * values[g, STEP])
            if kind == NUMBERS:
                negative = np.int64(data[np.uint64(place)] == 45)
                mantissa, digits, end = _short_number(data, place + negative)
                if end >= 0:
                    bits = _quotient(mantissa, digits, powers)
                else:
                    mantissa, exponent, end = _long_number(data, place + negative, powers)
                    fits = True
                    if end < 0:
                        mantissa, exponent, end, fits = _number(data, place, powers)
                    bits, certain = _nearest(mantissa, exponent, powers)
                    if not (fits and certain):
                        waiting = _doubt(doubts, waiting, at, place, end)
                words[at] = bits | np.uint64(negative) << U63
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
    return i, row, doubtful


@kernel
def scan_records(
    data: Any,
    stop: int,
    lines: bool,
    names: Any,
    places: Any,
    powers: Any,
    ids: Any,
    words: Any,
    doubts: Any,
    state: Any,
) -> None:
    """Scan JSON objects that follow each other in a list, or line by line, into columns.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    stop : int
        The first record that begins here or later is left to the next block.
    lines : bool
        One record a line instead of a list.
    names : (fields, 5) uint64
        Per field its name and closing quote as two little-endian words, their two masks, its length with the quote.
    places : (fields, 3) int64
        Per field what it holds (`ID`, `NUMBERS`, `FLAG`, `SPAN`, `LISTS`), the number of words that a record has of it, and
        where its column begins: in `ids` where it is an `ID` or `LISTS`, else in `words`.
    powers : uint64
        The powers, as in `values.skip_value`.
    ids, words : uint64
        Out: the columns, those of ids apart because they are needed for less long. A record without an optional field has
        all bits set there; a field that the block never meets is left unwritten.
    doubts : (k, 3) int64
        Out: numbers left to the caller: where in `words`, first byte, end; k is at least `MOST_NUMBERS`.
    state : (STATE_SIZE,) int64
        In and out. Begin with `POSITION` at the first byte of a record, `FIRST` = `ROW` = the first row to write,
        `LIMIT` = the row after the last, `ALWAYS` all bits set, the rest 0.
    """
    fields = len(places)
    expected = np.zeros(EXPECTED_KEYS, np.int64)
    i = state[POSITION]
    row = state[ROW]
    ever = state[EVER]
    always = state[ALWAYS]
    integers = state[INTEGERS]
    strings = state[STRINGS]
    doubtful = state[DOUBTS]
    status = FAILED
    values = np.empty((MOST_VALUES, NOTES), np.int64)
    glue = np.empty((MOST_VALUES + 1, GLUE_NOTES), np.uint64)
    first_fields = 0  # those of the first record
    count = 0  # its values, if others are read by their likeness to it
    misses = 0
    while True:
        if count > 0 and misses < MOST_MISSES:
            start, begin = i, row
            i, row, doubtful = _scan_alike(
                data, i, stop, lines, row, state[LIMIT], values, count, glue, powers, ids, words, doubts, doubtful
            )
            misses = misses + 1 if i == start else 0
            if ever != first_fields:
                _leave_out(ever & ~first_fields, places, begin, row, ids, words)
        if i >= stop:
            status = STOPPED
            break
        if doubtful + MOST_NUMBERS > len(doubts):
            status = FULL
            break
        # Braces were counted, and there are as many as records or more: so many rows are there. A file that changed since
        # then may hold more records.
        if row >= state[LIMIT] or _byte(data, i) != 123:
            break
        start = i
        noted = 0 if first_fields == 0 else MOST_VALUES  # no room for any other record's
        seen = 0
        key = 0
        i = _blank(data, i + 1, lines)
        while True:
            if _byte(data, i) != 34:
                i = -1
                break
            i += 1
            word0 = _load(data, i)
            word1 = _load(data, i + 8)
            field = expected[key & (EXPECTED_KEYS - 1)]
            if word0 & names[field, 2] != names[field, 0] or word1 & names[field, 3] != names[field, 1]:
                field = 0
                while field < fields and (
                    word0 & names[field, 2] != names[field, 0] or word1 & names[field, 3] != names[field, 1]
                ):
                    field += 1
            if field < fields:
                expected[key & (EXPECTED_KEYS - 1)] = field
                i += np.int64(names[field, 4])
            else:
                begin = i
                i = _string_end(data, i)
                for k in range(begin, i):
                    if data[k] == 92:  # may spell a known name
                        i = -1
                if i < 0:
                    break
            key += 1
            i = _blank(data, i, lines)
            if _byte(data, i) != 58:
                i = -1
                break
            i = _blank(data, i + 1, lines)
            if field == fields:
                begin = i
                i = _value_end(data, i, lines, powers)
                noted = _note(values, noted, PASSED, 0, 0, begin, i)
            else:
                bit = 1 << field
                if seen & bit:
                    i = -1
                    break
                seen |= bit
                kind = places[field, 0]
                width = places[field, 1]
                at = places[field, 2] + row * width
                if not ever & bit:
                    _leave_out(bit, places, state[FIRST], row, ids, words)
                    ever |= bit
                if kind == NUMBERS:
                    if width > 1:
                        if _byte(data, i) != 91:
                            i = -1
                            break
                        i = _blank(data, i + 1, lines)
                    for k in range(width):
                        if k > 0:
                            i = _blank(data, i, lines)
                            if _byte(data, i) != 44:
                                i = -1
                                break
                            i = _blank(data, i + 1, lines)
                        mantissa, exponent, end, fits = _number(data, i, powers)
                        if end < 0:
                            i = -1
                            break
                        bits, certain = _nearest(mantissa, exponent, powers)
                        if data[np.uint64(i)] == 45:
                            bits |= U1 << U63
                        if not (fits and certain):
                            doubtful = _doubt(doubts, doubtful, at + k, i, end)
                        words[at + k] = bits
                        noted = _note(values, noted, NUMBERS, at + k - row * width, width, i, end)
                        i = end
                    if width > 1 and i >= 0:
                        i = _blank(data, i, lines)
                        if _byte(data, i) != 93:
                            i = -1
                            break
                        i += 1
                elif kind == ID:
                    begin = i
                    if _byte(data, i) == 34:
                        begin += 1
                        i = _string_end(data, begin)
                        if i < 0 or i - 1 - begin >= 1 << LENGTH_BITS:
                            i = -1
                            break
                        ids[at] = np.uint64(begin << LENGTH_BITS | i - 1 - begin)
                        strings |= bit
                        kind = QUOTED
                    else:
                        value, i = _integer(data, i, powers)
                        ids[at] = np.uint64(value)
                        integers |= bit
                    noted = _note(values, noted, kind, at - row * width, width, begin, i)
                elif kind == FLAG:
                    begin = i
                    c = _byte(data, i)
                    word0 = _load(data, i)
                    words[at] = np.uint64(c == 49 or c == 116)
                    if c == 48 or c == 49:
                        i += 1
                    elif word0 & LOW32 == TRUE:
                        i += 4
                    elif word0 & FIVE_BYTES == FALSE:
                        i += 5
                    else:
                        i = -1
                    noted = _note(values, noted, FLAG, at - row * width, width, begin, i)
                else:
                    begin = i
                    i = _lists_end(data, i, lines, powers) if kind == LISTS else _value_end(data, i, lines, powers)
                    if i < 0:
                        break
                    if kind == LISTS:
                        ids[at], ids[at + 1] = np.uint64(begin), np.uint64(i)
                    else:
                        words[at], words[at + 1] = np.uint64(begin), np.uint64(i)
                    noted = _note(values, noted, kind, at - row * width, width, begin, i)
            if i < 0:
                break
            i = _blank(data, i, lines)
            c = _byte(data, i)
            i += 1
            if c == 125:
                break
            if c != 44:
                i = -1
                break
            i = _blank(data, i, lines)
        if i < 0:
            break
        if ever != seen:
            _leave_out(ever & ~seen, places, row, row + 1, ids, words)
        always &= seen
        row += 1
        i = _blank(data, i, lines)
        c = _byte(data, i)
        if lines:
            if c != 10 and i < len(data):
                break
            i = _blank(data, i, not lines)
            if i == len(data):
                status = CLOSED
                break
        elif c == 44:
            i = _blank(data, i + 1, lines)
        elif c == 93:
            i += 1
            status = CLOSED
            break
        else:
            break
        if first_fields == 0:
            first_fields = seen
            count = _learn(data, start, i, values, noted, glue)
    state[STATUS] = status
    state[POSITION] = i
    state[ROW] = row
    state[EVER] = ever
    state[ALWAYS] = always
    state[INTEGERS] = integers
    state[STRINGS] = strings
    state[DOUBTS] = doubtful
