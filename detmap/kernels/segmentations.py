"""Read COCO's segmentations from JSON into columns: compressed masks, lists of run lengths, or polygons. The scanner of
records has validated the JSON, except the content of lists of numbers and of objects. Problems become a status of the
record, never an exception.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.mask_strings import _measure_text
from detmap.kernels.numbers import (
    NUMBER_ROOM,
    _has_sign,
    _integer,
    _long_number,
    _nearest,
    _number,
    _plain_integer,
    _plain_numbers,
    _quotient,
    _short_number,
)
from detmap.kernels.values import BACKSLASHES, QUOTES, _hexadecimal, _string_end, _value_end
from detmap.kernels.words import (
    BYTE,
    HIGHS,
    NOTHING,
    ONES,
    U63,
    _before,
    _blank,
    _byte,
    _load,
    _word,
)

Array = NDArray[Any]

# Kind of a record's segmentation; negative values are problems.
ABSENT, PACKED, LISTED, OUTLINES = range(4)
NEITHER, INCOMPLETE, TWICE, BAD_SIZE, BAD_COUNTS, FOREIGN, CUT, UNFILLED, NO_OUTLINE, BAD_OUTLINE, SHORT, NO_JSON = (
    range(-1, -13, -1)
)

# The slots of `state`. ROW: the next record. TEXT, ENDS, POINTS, POLYGONS: numbers of elements used of `text`, `ends`,
# `points` and `vertices`. DOUBTS: number of doubts. ODD: number of polygons with fewer than three points or an odd
# number of coordinates. WITHIN: whether `text` begins with the bytes of `data`, so that strings without escapes need
# not be copied. LEFT: offset added to the positions of strings if they are left in the file, else 0.
ROW, TEXT, ENDS, POINTS, POLYGONS, DOUBTS, ODD, WITHIN, LEFT, STATE_SIZE = range(10)

_WORD = 0xFFFFFFFF
_SIZE = np.uint64(int.from_bytes(b'size"', "little"))
_COUNTS = np.uint64(int.from_bytes(b'counts"', "little"))
_FIVE_BYTES = np.uint64((1 << 40) - 1)
_SEVEN = np.uint64((1 << 56) - 1)
_BACKSLASH = np.uint8(ord("\\"))
# Number of bytes compared with a backslash at once; with fewer the loop is not vectorised.
_AT_ONCE = 64


class Segments(NamedTuple):
    """The segmentations of records.

    ``kinds`` (n,) int8 is one of `ABSENT`, `PACKED`, `LISTED`, `OUTLINES`, or a problem. ``spans`` (n, 4) int64 holds
    begin and end of the record's data, and height and width of its image (not for polygons). The data are a string in
    ``text``, runs in ``ends``, or polygons in ``vertices``. The end of a string is stored as ``~end``, because its sign
    tells strings from runs.

    Each string in ``text`` is followed by a NUL or a quote. Strings that are left in the file are not in ``text``. The
    runs in ``ends`` are as in `detmap.kernels.masks`. ``vertices`` has the number of coordinates of each polygon, and
    ``points`` the coordinates of one polygon after the other. ``areas``, ``boxes`` (x, y, width, height) and
    ``regular`` are written for compressed masks.
    """

    kinds: Array
    spans: Array
    text: Array
    ends: Array
    vertices: Array
    points: Array
    areas: Array
    boxes: Array
    regular: Array


@helper
def _read_size(data: Any, i: int, powers: Any, out: Segments, row: int) -> int:
    """Read ``[height, width]``; return its end, or a problem."""
    if _byte(data, i) != 91:
        return BAD_SIZE
    for k in range(2):
        value, end = _integer(data, _blank(data, i + 1, False), powers)
        if end < 0 or value <= 0 or value > _WORD:
            return BAD_SIZE
        out.spans[row, 2 + k] = value
        i = _blank(data, end, False)
        if _byte(data, i) != (93 if k else 44):
            return BAD_SIZE
    return i + 1


@helper
def _escaped(data: Any, i: int) -> int:
    """Return the character for the escape whose backslash is just before `i`, or 1 if the character cannot occur in a
    mask.
    """
    c = _byte(data, i)
    if c == 117:
        value = 0
        for k in range(i + 1, i + 5):
            value = 16 * value + _hexadecimal(_byte(data, k))
        return value if 48 <= value <= 111 else 1
    return c if c == 92 else 1


@helper
def _read_text(data: Any, i: int, stop: int, text: Array, at: int) -> Any:
    """Copy the string whose first character is at `i` to ``text[at:]``, and append a NUL. Return the positions of the
    closing quote and of the NUL. If there is no quote before `stop`, everything up to `stop`, or a few bytes more, is
    copied. Eight bytes are written at a time, so the bytes after the NUL are undefined.
    """
    while i < stop:
        if i + 8 <= len(data):
            word = _word(data, i)
            quote, backslash = word ^ QUOTES, word ^ BACKSLASHES
            special = (((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash)) & HIGHS
            for k in range(8):
                text[np.uint64(at + k)] = np.uint8(word >> np.uint64(8 * k) & BYTE)
            if special == NOTHING:  # with a branch, the CPU loads the next bytes before `special` is known
                i, at = i + 8, at + 8
                continue
            n = _before(special)
            i, at = i + n, at + n
        c = np.uint8(_byte(data, i))
        if c == 34:
            break
        if c == 92:
            c = np.uint8(_escaped(data, i + 1))
            i += 5 if _byte(data, i + 1) == 117 else 1
        i += 1
        text[at] = c
        at += 1
    text[at] = 0
    return i, at


@helper
def _plain_end(data: Any, i: int, stop: int) -> int:
    """Return the end of the string that contains `i`; -1 if it does not end before `stop`, or has an escape."""
    while i + 8 <= min(stop, len(data)):
        word = _word(data, i)
        quote, backslash = word ^ QUOTES, word ^ BACKSLASHES
        special = (((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash)) & HIGHS
        if special != NOTHING:
            i += _before(special)
            break
        i += 8
    while i < stop and _byte(data, i) != 34 and _byte(data, i) != 92:
        i += 1
    return i if i < stop and _byte(data, i) == 34 else -1


@helper
def _read_string(data: Any, i: int, stop: int, text: Array, state: Array) -> Any:
    """Read the mask's string whose first character is at `i`. Return its begin and end in `text`, and the position of
    its closing quote in `data`. The string is copied unless `text` begins with `data` and the string has no escapes.
    """
    end = _plain_end(data, i, stop) if state[WITHIN] else -1
    if end >= 0:
        return i, end, end
    begin = state[TEXT]
    i, end = _read_text(data, i, stop, text, begin)
    return begin, end, i


@helper
def _why(out: Segments, row: int) -> int:
    """Return the problem of an invalid mask string."""
    foreign = False
    for p in range(out.spans[row, 0], out.spans[row, 1]):
        foreign |= np.uint8(out.text[p] - np.uint8(48)) > 63
    if foreign:
        return FOREIGN
    last = out.spans[row, 1] - 1
    return CUT if last >= out.spans[row, 0] and (np.int64(out.text[last]) - 48) & 32 else UNFILLED


@helper
def _read_lengths(data: Any, i: int, powers: Any, out: Segments, at: int) -> Any:
    """Read a list of run lengths, and write the ends of the runs from ``ends[at]`` on. Return the number of runs or a
    problem, and then the end of the list.
    """
    i = _blank(data, i + 1, False)
    total, count = np.int64(0), 0
    if _byte(data, i) == 93:
        return 0, i + 1
    while True:
        value, end = _integer(data, i, powers)
        if end < 0 or value < 0 or value > _WORD:
            return BAD_COUNTS, i
        total += value
        if total > _WORD:
            return UNFILLED, i
        out.ends[at + count] = total
        count += 1
        i = _blank(data, end, False)
        c = _byte(data, i)
        if c == 93:
            return count, i + 1
        if c != 44:
            return BAD_COUNTS, i
        i = _blank(data, i + 1, False)


@helper
def _same(data: Any, one: int, other: int, length: int) -> Any:
    """Return whether the bytes at two places are the same."""
    differ = NOTHING
    for k in range(0, length, 8):
        part = _load(data, one + k) ^ _load(data, other + k)
        differ |= part << np.uint64(8 * max(k + 8 - length, 0))
    return differ == NOTHING


@helper
def _may_have_escapes(data: Any, begin: int, end: int) -> Any:
    """Return whether a range of bytes may have a backslash. The last `_AT_ONCE` bytes before `end` are searched even if
    the range is shorter.
    """
    found = np.uint8(end < _AT_ONCE)
    while begin < end and not found:
        at = np.uint64(min(begin, end - _AT_ONCE))
        for k in range(_AT_ONCE):
            found = np.uint8(found | (data[at + np.uint64(k)] == _BACKSLASH))
        begin += _AT_ONCE
    return found != 0


@innermost
def _read_alike(data: Any, place: Array, out: Segments, row: int, state: Array, alike: Array) -> Any:
    """Read a mask without parsing its keys and size if the bytes before and after its string equal those of the previous
    mask; return whether the bytes are equal. `alike` has six elements: place and number of the bytes before the string,
    place and number of the bytes after it, height, and width.

    The string is not always searched for quotes. A string with a quote makes the mask invalid. Therefore the caller
    must validate the mask.
    """
    begin, end = place[0] + alike[1], place[1] - alike[3]
    if alike[1] == 0 or begin > end:
        return False
    if not (_same(data, place[0], alike[0], alike[1]) and _same(data, end, alike[2], alike[3])):
        return False
    if state[WITHIN] and not _may_have_escapes(data, begin, end):
        out.spans[row, 0], out.spans[row, 1] = begin, end
    else:
        out.spans[row, 0], out.spans[row, 1], closing = _read_string(data, begin, end + 1, out.text, state)
        if closing != end:
            return False
    alike[0], alike[2] = place[0], end
    out.spans[row, 2], out.spans[row, 3] = alike[4], alike[5]
    return True


@helper
def _read_mask(data: Any, i: int, stop: int, powers: Any, out: Segments, row: int, state: Array, alike: Array) -> Any:
    """Read an object with size and counts into row `row` of `out`; return its kind, or the code of a problem. Column 1 of
    ``out.spans`` gets the end of the mask's data in `out`.
    """
    if _value_end(data, i, False, powers) != stop:
        return NO_JSON
    kind, sized, length = ABSENT, False, 0
    alike[0], alike[1] = i, 0
    i = _blank(data, i + 1, False)
    while _byte(data, i) != 125:
        if _byte(data, i) == 44:
            i = _blank(data, i + 1, False)
        word = _load(data, i + 1)
        i = _blank(data, _string_end(data, i + 1), False)
        i = _blank(data, i + 1, False)
        c = _byte(data, i)
        if word & _FIVE_BYTES == _SIZE:
            if sized:
                return TWICE
            i = _read_size(data, i, powers, out, row)
            sized = True
            if i < 0:
                return i
        elif word & _SEVEN == _COUNTS:
            if kind != ABSENT:
                return TWICE
            if c == 34:
                length = i + 1 - alike[0]
                out.spans[row, 0], out.spans[row, 1], i = _read_string(data, i + 1, stop, out.text, state)
                kind, alike[2] = PACKED, i
                i += 1
            elif c == 91:
                count, i = _read_lengths(data, i, powers, out, state[ENDS])
                if count < 0:
                    return count
                kind, out.spans[row, 0], out.spans[row, 1] = LISTED, state[ENDS], state[ENDS] + count
            else:
                return BAD_COUNTS
        else:
            i = _value_end(data, i, False, powers)
        i = _blank(data, i, False)
    if kind == ABSENT or not sized:
        return INCOMPLETE
    if out.spans[row, 2] > _WORD // out.spans[row, 3]:
        return BAD_SIZE
    if kind == PACKED:
        alike[1], alike[3], alike[4], alike[5] = length, i + 1 - alike[2], out.spans[row, 2], out.spans[row, 3]
        return PACKED
    last = out.ends[out.spans[row, 1] - 1] if out.spans[row, 1] > out.spans[row, 0] else 0
    return LISTED if last == out.spans[row, 2] * out.spans[row, 3] else UNFILLED


@innermost
def _coordinate(data: Any, i: int, powers: Any) -> Any:
    """Read a number: return the bits of the nearest double, its end (-1: invalid), and whether the bits are certain."""
    negative = np.int64(_byte(data, i) == 45)
    end, certain, bits = np.int64(-1), True, NOTHING
    if i + NUMBER_ROOM < len(data):
        mantissa, digits, end = _short_number(data, i + negative)
        if end >= 0:
            bits = _quotient(mantissa, digits, powers)
        else:
            value, end = _plain_integer(data, i + negative)
            c = data[np.uint64(max(end, 0))]
            if end >= 0 and (c == 44 or c == 93 or c <= 32):
                bits = np.float64(value).view(np.uint64)
                negative &= np.int64(value != 0)
            else:
                mantissa, exponent, end = _long_number(data, i + negative, powers)
                if end >= 0:
                    bits, certain = _nearest(mantissa, exponent, powers)
    if end < 0:
        mantissa, exponent, end, fits = _number(data, i, powers)
        negative &= _has_sign(mantissa, i, end)
        bits, certain = _nearest(mantissa, exponent, powers)
        certain &= fits
    return bits | np.uint64(negative) << U63, end, certain


@innermost
def _after_number(data: Any, i: int) -> Any:
    """Skip a comma and white space; return the position of the next element (-1: invalid) and True, or the position of
    the list's closing bracket and False.
    """
    if i + 2 < len(data) and data[np.uint64(i)] == 44 and data[np.uint64(i + 1)] > 32:
        return i + 1, True
    i = _blank(data, i, False)
    c = _byte(data, i)
    if c == 44:
        return _blank(data, i + 1, False), True
    return (i if c == 93 else -1), False


@helper
def _read_outlines(data: Any, i: int, powers: Any, out: Segments, row: int, state: Array, doubts: Array) -> int:
    """Read a list of polygons. Return `OUTLINES` or a problem; return `ABSENT` if `doubts` has no room for a coordinate
    that the caller must parse.
    """
    polygon, at = state[POLYGONS], state[POINTS]
    first = polygon
    i = _blank(data, i + 1, False)
    if _byte(data, i) == 93:
        return NO_OUTLINE
    another = True
    while another:
        if _byte(data, i) != 91:
            return BAD_OUTLINE
        begin = at
        i = _blank(data, i + 1, False)
        more = _byte(data, i) != 93
        while more:
            i, at = _plain_numbers(data, i, powers, out.points, at)
            bits, end, certain = _coordinate(data, i, powers)
            if end < 0:
                return BAD_OUTLINE
            if not certain:
                if state[DOUBTS] == len(doubts):
                    return ABSENT
                doubts[state[DOUBTS], 0] = at
                doubts[state[DOUBTS], 1] = i
                doubts[state[DOUBTS], 2] = end
                state[DOUBTS] += 1
            out.points[at] = bits
            at += 1
            i, more = _after_number(data, end)
            if i < 0:
                return BAD_OUTLINE
        if polygon == first and at - begin < 6:
            return SHORT
        state[ODD] += (at - begin < 6) or ((at - begin) & 1)
        at -= (at - begin) & 1  # pycocotools drops a last x without y
        out.vertices[polygon] = at - begin
        polygon += 1
        i, another = _after_number(data, i + 1)
        if i < 0:
            return BAD_OUTLINE
    out.spans[row, 0], out.spans[row, 1] = first, polygon
    state[POLYGONS], state[POINTS] = polygon, at
    return OUTLINES


@kernel
def read_segmentations(data: Any, places: Array, powers: Any, doubts: Array, state: Array, out: Segments) -> None:
    """Read the segmentations of records from ``state[ROW]`` on, until `doubts` is full.

    If no record was read, `doubts` is too short for the next record.

    Parameters
    ----------
    data : (k,) uint8
        JSON, at least eight bytes.
    places : (n, 2) int64
        The range of each record's value; -1 if the record has none.
    powers : uint64
        As in `detmap.kernels.values.skip_value`.
    doubts : (d, 3) int64
        Out: for each coordinate that is left to ``float()``: its index in ``out.points``, its first byte and its end.
    state : (STATE_SIZE,) int64
        In and out: the slots `ROW` to `LEFT`.
    out : Segments
        Out. ``points`` are uint64, the bits of doubles. If the values have b bytes in total, ``text`` must have room for
        b + 8 bytes, and each of ``ends``, ``points`` and ``vertices`` for b / 2 + 1 elements.
    """
    longest = 0
    for row in range(state[ROW], len(places)):
        longest = max(longest, places[row, 1] - places[row, 0])
    values, alike = np.empty(longest + 1, np.int64), np.zeros(6, np.int64)
    while state[ROW] < len(places):
        row = state[ROW]
        i = places[row, 0]
        kept = state[DOUBTS]
        out.spans[row, 0], out.spans[row, 1], out.spans[row, 2], out.spans[row, 3] = 0, 0, 0, 0
        out.boxes[row, 0], out.boxes[row, 1], out.boxes[row, 2], out.boxes[row, 3] = 0.0, 0.0, 0.0, 0.0
        out.areas[row], out.regular[row] = 0.0, False
        kind = ABSENT
        if i >= 0:
            c = _byte(data, i)
            if c == 123:
                same = _read_alike(data, places[row], out, row, state, alike)
                valid = False
                while not valid:
                    kind = PACKED
                    if not same:
                        kind = _read_mask(data, i, places[row, 1], powers, out, row, state, alike)
                    valid = kind != PACKED or _measure_text(out, row, values)
                    if not (valid or same):
                        whole = _value_end(data, i, False, powers) == places[row, 1]
                        kind, valid = _why(out, row) if whole else NO_JSON, True
                    same = False
                if kind == PACKED:
                    if state[LEFT]:
                        out.spans[row, 0], out.spans[row, 1] = alike[0] + alike[1] + state[LEFT], alike[2] + state[LEFT]
                    elif out.spans[row, 0] == state[TEXT]:
                        state[TEXT] = out.spans[row, 1] + 1
                    out.spans[row, 1] = ~out.spans[row, 1]
                elif kind == LISTED:
                    state[ENDS] = out.spans[row, 1]
            elif c == 91:
                odd = state[ODD]
                kind = _read_outlines(data, i, powers, out, row, state, doubts)
                if kind == ABSENT:
                    state[DOUBTS], state[ODD] = kept, odd
                    return
            elif c != 110:  # null
                kind = NEITHER
        out.kinds[row] = kind
        state[ROW] = row + 1


@kernel
def unescape(text: Array, order: Array, spans: Array) -> None:
    """Resolve the escapes of valid strings in place, and write the strings' new ends.

    Parameters
    ----------
    text : (k,) uint8
        In and out.
    order : (n,) int64
        The strings by position in `text`; two strings are the same or do not overlap.
    spans : (n, 4) int64
        In and out. Column 0 is the first byte of each string, column 1 its end, inverted (~).
    """
    begin, at = np.int64(-1), np.int64(-1)
    for row in order:
        i, stop = spans[row, 0], ~spans[row, 1]
        if i != begin:
            begin, at = i, stop
            if _may_have_escapes(text, i, stop):
                at = i
                while i < stop:
                    c = text[i]
                    if c == _BACKSLASH:
                        c = np.uint8(_escaped(text, i + 1))
                        i += 5 if text[i + 1] == 117 else 1
                    i += 1
                    text[at] = c
                    at += 1
        spans[row, 1] = ~at
