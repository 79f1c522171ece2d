"""What COCO calls a segmentation, as JSON -> columns: a compressed mask, a list of run lengths, or polygons.

The bytes are valid JSON, for the scanner of records has passed over them, but for what stands between the brackets of
lists of numbers, and between braces. Whatever is wrong is a status of the record, never an exception.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.numbers import (
    NUMBER_ROOM,
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
    U1,
    U3,
    U5,
    U8,
    U16,
    U48,
    U63,
    _before,
    _blank,
    _byte,
    _load,
    _word,
)

Array = NDArray[Any]

# What a record's segmentation is. Below 0: what is wrong with it.
ABSENT, PACKED, LISTED, OUTLINES = range(4)
NEITHER, INCOMPLETE, TWICE, BAD_SIZE, BAD_COUNTS, FOREIGN, CUT, UNFILLED, NO_OUTLINE, BAD_OUTLINE, SHORT, NO_JSON = (
    range(-1, -13, -1)
)

# The slots of `state`: the next record, how much of `text`, `ends`, `points`, `vertices` is used, how many doubts there are,
# and how many polygons have fewer than three points or half a point at the end.
ROW, TEXT, ENDS, POINTS, POLYGONS, DOUBTS, ODD, STATE_SIZE = range(8)

_WORD = 0xFFFFFFFF
_SIZE = np.uint64(int.from_bytes(b'size"', "little"))
_COUNTS = np.uint64(int.from_bytes(b'counts"', "little"))
_FIVE_BYTES = np.uint64((1 << 40) - 1)
# Added to eight characters it makes of each its group: five bits, 32 where more follow, and always 64, but never 128.
_TO_GROUPS, _GROUPS, _BEYOND = (np.uint64(n * 0x0101010101010101) for n in (0x10, 0x40, 0xC0))
# None of these bits is set in a number that is one character: no more follows.
_MARKS = np.uint64(0xE0E0E0E0E0E0E0E0)
_FIVE, _NEXT_FIVE, _LANE = np.uint64(31), np.uint64(31 << 5), np.uint64(0xFFFF)
U13, U15 = np.uint64(13), np.uint64(15)
# Four numbers of 16 bits side by side, each with a bias, so that none is negative: times `_LANES` each is added to all that
# are above it.
_BIAS, _LANE_LIMIT = 0x4000, 0x800
_LANES, _EVEN, _LANE_HIGHS = np.uint64(0x0001000100010001), np.uint64(0x00FF00FF00FF00FF), np.uint64(0x8000800080008000)
_TO_BIASED = np.uint64(0x5050505050505050)  # makes of groups numbers from 0 to 31, 16 more than they are
_SIXTEENS = np.uint64(0x0040003000200010)  # takes those from their sums
_MOVED = np.uint64(0x4400330022001100)
_ABOVE_ZERO, _FROM_ZERO = np.uint64(0x3FFF3FFF3FFF3FFF), np.uint64(0x4000400040004000)
_TWICE = np.uint64(0xC000C000C000C000)  # less two biased numbers: the bias, less what they are together
_ALL_LANES, _NO_LANES = np.uint64(0x7FFF7FFF7FFF7FFF), np.uint64(0x4000400040004000)
_SEVEN = np.uint64((1 << 56) - 1)


class Segments(NamedTuple):
    """Records' segmentations.

    ``kinds`` (n,) int8 is one of `ABSENT`, `PACKED`, `LISTED`, `OUTLINES`, or a problem. ``spans`` (n, 4) int64 says where
    in ``text``, ``ends`` or ``vertices`` its mask, runs or polygons begin and end, and height and width of its image (not
    of polygons); the end of a string is inverted (~). ``text`` has strings, a NUL behind each; ``ends`` the runs as
    `detmap.kernels.masks` has them; ``vertices`` how many coordinates each polygon has, which follow each other in
    ``points``. Of compressed masks there are ``areas``, ``boxes`` (x, y, width, height) and whether they are ``regular``.
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
    """Read ``[height, width]``; where it ends, or a problem."""
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
    """Return the character that an escape stands for, `i` being behind the backslash; 1 where it is none of a mask's."""
    c = _byte(data, i)
    if c == 117:
        value = 0
        for k in range(i + 1, i + 5):
            value = 16 * value + _hexadecimal(_byte(data, k))
        return value if 48 <= value <= 111 else 1
    return c if c == 92 else 1


@helper
def _read_text(data: Any, i: int, stop: int, out: Segments, at: int) -> Any:
    """Copy a string, `i` being behind its quote, and a NUL to ``text[at]``; where the next quote is, and where the NUL.

    Where there is no quote ahead of `stop` it is all up to there, or a few bytes more. Eight bytes are written at a time,
    of which the last are overwritten.
    """
    while i < stop:
        if i + 8 <= len(data):
            word = _word(data, i)
            quote, backslash = word ^ QUOTES, word ^ BACKSLASHES
            special = (((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash)) & HIGHS
            for k in range(8):
                out.text[np.uint64(at + k)] = np.uint8(word >> np.uint64(8 * k) & BYTE)
            if special == NOTHING:  # a branch, as the next eight bytes need not wait for it
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
        out.text[at] = c
        at += 1
    out.text[at] = 0
    return i, at


@helper
def _number_at(text: Array, p: int, stop: int) -> Any:
    """Read one number of a string: the number, and where it ends, -1 where it is cut off or none."""
    value, shift, c = np.int64(0), np.int64(0), np.int64(32)
    while c & 32:
        c = np.int64(np.uint8(text[np.uint64(p)] - np.uint8(48)))
        p += 1
        if c > 63 or p > stop or shift > 35:
            return value, np.int64(-1)
        value |= (c & 31) << shift
        shift += 5
    sign = np.int64(1) << (shift - 1)
    return (value ^ sign) - sign, p


@helper
def _numbers(text: Array, first: int, stop: int, values: Array) -> Any:
    """Write the numbers of a string, as they stand there; how many there are, -1 where one is cut off or none."""
    count, p = np.uint64(0), first
    while p < stop:
        value, p = _number_at(text, p, stop)
        if p < 0:
            return np.int64(-1)
        values[count] = value
        count += np.uint64(1)
    return np.int64(count)


@innermost
def _step(word: Any) -> Any:
    """Read the number that a word of groups begins with, of one character or two: the number, and 1 where it has two."""
    more = np.int64(word >> U5 & U1)
    value = np.int64(word & _FIVE | word >> U3 & _NEXT_FIVE) & (31 | (0x3E0 & -more))
    sign = np.int64(16) << (5 * more)
    return (value ^ sign) - sign, more


@innermost
def _four_columns(groups: Any, inside: Any, outside: Any, line: Any, height: int) -> Any:
    """Read four pairs of runs at once, from eight numbers: whether each is one run of its column, the next one following.

    Then, 16 bits for each pair and `_BIAS` more than they are: the lengths of the runs of foreground, those of
    background, the rows that foreground begins at, and those that it begins at in the columns that follow. Before the first
    are `inside`, `outside` and `line`, `_BIAS` more too; these and `height` are below `_LANE_LIMIT` at first.
    """
    ins = ((groups & _EVEN) + inside) * _LANES - _SIXTEENS
    outs = ((groups >> U8 & _EVEN) + outside) * _LANES - _SIXTEENS
    moves = ins + outs - np.uint64(0x8000 + height - 0x1100) * _LANES  # from row to row, and 0x1100 more
    behind = (moves + line) * _LANES - _MOVED
    begins = behind << U16 | line
    fine = (ins + _ABOVE_ZERO) & (outs + _ABOVE_ZERO) & (behind + _FROM_ZERO)
    fine &= np.uint64(0xC000 + height - 1) * _LANES - behind
    fine &= np.uint64(0x8000 + height) * _LANES + _LANE_HIGHS - begins - ins
    return fine & _LANE_HIGHS == _LANE_HIGHS, ins, outs, begins, behind


@innermost
def _lesser(one: Any, other: Any) -> Any:
    """Return the lesser of each two of four numbers below 2**15."""
    beyond = (one | _LANE_HIGHS) - other  # by how much, where its highest bit says that it is
    take = beyond & _LANE_HIGHS
    return one - (beyond & (take - (take >> U15)))


@innermost
def _lane(word: Any, k: int) -> Any:
    return np.int64(word >> np.uint64(16 * k) & _LANE)


@innermost
def _read_columns(text: Array, p: int, stop: int, height: int, tops: Any, bottoms: Any, state: Any) -> Any:
    """Read a string from `p` on for as long as eight characters are eight numbers, of four columns with one run each.

    Where that ends, the area of these runs, and the rest as `_measure_text` and `_four_columns` have it.
    """
    area = np.int64(0)
    inside, outside, line = state
    while p + 8 <= stop:
        groups = _word(text, p) + _TO_GROUPS ^ _TO_BIASED
        if groups & _MARKS != NOTHING:
            break
        fine, ins, outs, begins, behind = _four_columns(groups, inside, outside, line, height)
        if not fine:
            break
        area += np.int64(ins * _LANES >> U48)
        tops, bottoms = _lesser(tops, begins), _lesser(bottoms, _TWICE - begins - ins)
        inside, outside, line, p = ins >> U48, outs >> U48, behind >> U48, p + 8
    return p, area, tops, bottoms, (inside, outside, line)


@helper
def _measure_text(out: Segments, row: int, values: Array) -> bool:
    """Write area and box of a compressed mask, and whether it is regular; return whether it is one, and fills its image.

    Runs come in pairs, foreground and then background, of which none is empty here. Most numbers are one character, and
    most columns have one run: eight such characters are read at once. Else a pair is read at a time, without a branch for
    numbers of two characters nor for columns of several runs, as neither can be foreseen.
    """
    # It is longer than a kernel should be: with long numbers and the box in functions of their own it takes 4 % longer.
    text, stop, height = out.text, out.spans[row, 1], out.spans[row, 2]
    pixels = height * out.spans[row, 3]
    before, p = _number_at(text, out.spans[row, 0], stop)
    if p < 0 or before < 0 or before > pixels:
        return False
    column, line = before // height, before % height
    left, right, top, bottom, area = column, column, height, np.int64(0), np.int64(0)
    inside, outside, wrong = np.int64(0), np.int64(0), np.int64(0)  # the last run of each; negative if one was empty
    tops, bottoms = _ALL_LANES, _NO_LANES  # the greatest that are never reached, less the bottoms: of four columns each
    singly = p if height < _LANE_LIMIT else stop  # up to here a pair is read at a time
    while p < stop:
        if p >= singly and np.uint64(inside | outside) < _LANE_LIMIT:
            state = np.uint64(inside + _BIAS), np.uint64(outside + _BIAS), np.uint64(line + _BIAS)
            begin = p
            p, many, tops, bottoms, state = _read_columns(text, p, stop, height, tops, bottoms, state)
            singly = p + 8
            if p > begin:
                column += (p - begin) >> 1
                right, area = column - 1, area + many
                inside, outside, line = (
                    np.int64(state[0]) - _BIAS,
                    np.int64(state[1]) - _BIAS,
                    np.int64(state[2]) - _BIAS,
                )
                if p >= stop:
                    break
        word = _word(text, p) + _TO_GROUPS
        value, more = _step(word)
        rest = word >> np.uint64(8 + 8 * more)
        other, also = _step(rest)
        used = 2 + more + also
        longer = more & np.int64(word >> U13) | also & np.int64(rest >> U13)
        foreign = ((word ^ _GROUPS) & _BEYOND) << np.uint64(64 - 8 * used)
        behind_it = np.int64(0)
        if p + used <= stop and not longer & 1 and foreign == NOTHING:
            inside, outside, p = inside + value, outside + other, p + used
            behind_it = outside
            wrong |= (inside - 1) | (outside - 1)
        else:
            value, p = _number_at(text, p, stop)
            inside += value
            wrong |= inside - 1
            if 0 <= p < stop:
                value, p = _number_at(text, p, stop)
                outside += value
                behind_it = outside
                wrong |= outside - 1
            if p < 0 or inside > pixels or outside > pixels:  # so that no sum can wrap around
                return False
        area += inside
        end = line + inside
        if end > height:
            column, end = column + (end - 1) // height, (end - 1) % height + 1
            top, bottom = np.int64(0), height
        top, bottom, right = min(top, line), max(bottom, end), column
        line = end + behind_it - height  # most runs end in the next column, or go on in this one
        here = np.int64(line < 0)
        column, line = column + 1 - here, line + here * height
        if line >= height:
            column, line = column + line // height, line % height
    if wrong < 0:
        return _measure_slowly(out, row, values, _numbers(text, out.spans[row, 0], stop, values))
    if column * height + line != pixels:
        return False
    for k in range(4):
        top, bottom = min(top, _lane(tops, k) - _BIAS), max(bottom, _BIAS - _lane(bottoms, k))
    out.areas[row], out.regular[row] = area, True
    out.boxes[row, 0], out.boxes[row, 2] = left if area else 0, right - left + 1 if area else 0
    out.boxes[row, 1], out.boxes[row, 3] = top if area else 0, bottom - top if area else 0
    return True


@helper
def _measure_slowly(out: Segments, row: int, values: Array, count: int) -> bool:
    """Do as `_measure_text` where runs may be empty, from the `count` numbers of a string; -1: it has something else."""
    height, width = out.spans[row, 2], out.spans[row, 3]
    pixels, position, area = height * width, np.int64(0), np.int64(0)
    left, right, top, bottom = width, np.int64(-1), height, np.int64(0)
    for k in range(count):
        length = values[np.uint64(k)]
        if k > 2:
            length += values[np.uint64(k - 2)]
            values[np.uint64(k)] = length
        if length < 0 or position + length > pixels:
            return False
        if k & 1 and length > 0:
            area += length
            first, last = position // height, (position + length - 1) // height
            left, right = min(left, first), max(right, last)
            top = min(top, position % height) if first == last else np.int64(0)
            bottom = max(bottom, (position + length - 1) % height + 1) if first == last else height
        position += length
    if position != pixels:
        return False
    out.areas[row], out.regular[row] = area, False
    out.boxes[row, 0], out.boxes[row, 2] = left if area else 0, right - left + 1 if area else 0
    out.boxes[row, 1], out.boxes[row, 3] = top if area else 0, bottom - top if area else 0
    return True


@helper
def _why(out: Segments, row: int) -> int:
    """Return what is wrong with a string that is no mask."""
    foreign = False
    for p in range(out.spans[row, 0], out.spans[row, 1]):
        foreign |= np.uint8(out.text[p] - np.uint8(48)) > 63
    if foreign:
        return FOREIGN
    last = out.spans[row, 1] - 1
    return CUT if last >= out.spans[row, 0] and (np.int64(out.text[last]) - 48) & 32 else UNFILLED


@helper
def _read_lengths(data: Any, i: int, powers: Any, out: Segments, at: int) -> Any:
    """Read a list of run lengths as ends, from ``ends[at]``: how many there are, or a problem; and where the list ends."""
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
def _read_alike(data: Any, place: Array, out: Segments, row: int, state: Array, alike: Array) -> Any:
    """Read a mask whose bytes around the string are those of the mask before: whether they are.

    `alike` has where those are, before and behind the string, and how many; then height and width.
    """
    begin, stop = place[0], place[1]
    if alike[1] == 0 or begin + alike[1] > stop or not _same(data, begin, alike[0], alike[1]):
        return False
    i, end = _read_text(data, begin + alike[1], stop, out, state[TEXT])
    if stop - i != alike[3] or not _same(data, i, alike[2], alike[3]):
        return False
    out.spans[row, 0], out.spans[row, 1], out.spans[row, 2], out.spans[row, 3] = state[TEXT], end, alike[4], alike[5]
    return True


@helper
def _read_mask(data: Any, i: int, stop: int, powers: Any, out: Segments, row: int, state: Array, alike: Array) -> Any:
    """Read an object with size and counts; return what it is, or a problem. Its span ends where it ends in `out`."""
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
                i, end = _read_text(data, i + 1, stop, out, state[TEXT])
                alike[2] = i
                i += 1
                kind, out.spans[row, 0], out.spans[row, 1] = PACKED, state[TEXT], end
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
    """Read a number: the bits of the nearest double, where it ends (-1: there is none), whether the bits are certain."""
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
            else:
                mantissa, exponent, end = _long_number(data, i + negative, powers)
                if end >= 0:
                    bits, certain = _nearest(mantissa, exponent, powers)
    if end < 0:
        mantissa, exponent, end, fits = _number(data, i, powers)
        bits, certain = _nearest(mantissa, exponent, powers)
        certain &= fits
    return bits | np.uint64(negative) << U63, end, certain


@innermost
def _after_number(data: Any, i: int) -> Any:
    """Pass a comma and white space: where the next element of a list begins (-1: there is none, nor an end), and True.

    Or where the list's closing bracket is, and False.
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
    """Read a list of polygons; return what it is, or a problem, or `ABSENT` where there is no room for doubts."""
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
        at -= (at - begin) & 1  # pycocotools leaves out half a point
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
    """Read the segmentations of records from ``state[ROW]`` on, until the list of doubts is full.

    Where no record was read, the list is too short for one.

    Parameters
    ----------
    data : (k,) uint8
        JSON, at least eight bytes.
    places : (n, 2) int64
        Where each record's value begins and ends; -1 where it has none.
    powers : uint64
        As in `detmap.kernels.values.skip_value`.
    doubts : (d, 3) int64
        Out: coordinates that are left to ``float()``: where in ``out.points``, first byte, end.
    state : (STATE_SIZE,) int64
        In and out. A record that has more doubts than there is room for, alone, is a `BAD_OUTLINE`.
    out : Segments
        Out. ``points`` are uint64, the bits of doubles. There must be room: ``text`` of as many bytes as the values have,
        and eight more; ``ends``, ``points`` and ``vertices`` of half as many elements, and one more.
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
                kind = PACKED
                if not _read_alike(data, places[row], out, row, state, alike):
                    kind = _read_mask(data, i, places[row, 1], powers, out, row, state, alike)
                if kind == PACKED and not _measure_text(out, row, values):
                    whole = _value_end(data, i, False, powers) == places[row, 1]
                    kind = _why(out, row) if whole else NO_JSON
                if kind == PACKED:
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
