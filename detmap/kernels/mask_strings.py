"""Measure compressed masks from their strings, without storing runs.

A string has COCO's format: one number per run, in characters of five bits each. From the fourth run on, a number is the
run's length minus the length of the run two before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost
from detmap.kernels.words import NOTHING, U1, U3, U5, U8, U16, U48, _word

if TYPE_CHECKING:
    from detmap.kernels.segmentations import Segments

Array = NDArray[Any]

# `_TO_GROUPS` adds 16 to eight characters; the sums are groups. Bits 0 to 4 of a group are bits of a number, bit 5 is
# set if the number has another group, and bit 6 is always set. A character is valid if its group is from 64 to 127.
_TO_GROUPS, _GROUPS, _BEYOND = (np.uint64(n * 0x0101010101010101) for n in (0x10, 0x40, 0xC0))
# Mask for testing that eight characters are eight numbers of one character each.
_MARKS = np.uint64(0xE0E0E0E0E0E0E0E0)
_FIVE, _NEXT_FIVE, _LANE = np.uint64(31), np.uint64(31 << 5), np.uint64(0xFFFF)
U13, U15 = np.uint64(13), np.uint64(15)
# A word holds four 16-bit numbers (lanes), each with a bias so that none is negative. The product of the word and
# `_LANES` holds the running sums of the four numbers.
_BIAS, _LANE_LIMIT = 0x4000, 0x800
_LANES, _EVEN, _LANE_HIGHS = np.uint64(0x0001000100010001), np.uint64(0x00FF00FF00FF00FF), np.uint64(0x8000800080008000)
# Exclusive-or with `_TO_BIASED` turns the groups of one-character numbers into the numbers plus 16.
_TO_BIASED = np.uint64(0x5050505050505050)
_SIXTEENS = np.uint64(0x0040003000200010)  # subtracted from running sums to remove the added 16s
_MOVED = np.uint64(0x4400330022001100)
_ABOVE_ZERO, _FROM_ZERO = np.uint64(0x3FFF3FFF3FFF3FFF), np.uint64(0x4000400040004000)
_TWICE = np.uint64(0xC000C000C000C000)  # `_TWICE` - a - b, for biased a and b, is the biased -(a + b)
_INVALID = (False, False, *5 * (np.int64(0),))  # the return value of `_measured` for an invalid mask
_ALL_LANES, _NO_LANES = np.uint64(0x7FFF7FFF7FFF7FFF), np.uint64(0x4000400040004000)


@helper
def _number_at(text: Array, p: int, stop: int) -> Any:
    """Read one number of a string: return the number and its end; the end is -1 if the number is truncated or invalid."""
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
    """Write the raw numbers of a string; return their count, or -1 if a number is truncated or invalid."""
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
    """Read a number of one or two characters at the start of a word of groups: return the number, and 1 if it has two
    characters, else 0.
    """
    more = np.int64(word >> U5 & U1)
    value = np.int64(word & _FIVE | word >> U3 & _NEXT_FIVE) & (31 | (0x3E0 & -more))
    sign = np.int64(16) << (5 * more)
    return (value ^ sign) - sign, more


@innermost
def _four_columns(groups: Any, inside: Any, outside: Any, line: Any, height: int) -> Any:
    """Read the lengths of eight runs, foreground and background in turn. Return whether the four foreground runs are in
    four consecutive columns, one in each. Also return four words with 16 bits per pair, biased by `_BIAS`: lengths of
    the foreground runs, lengths of the background runs, first rows of the foreground runs, and first rows of the next
    foreground runs. `inside` and `outside` are the lengths of the two runs before the first pair, and `line` is the
    first row of that pair; all three are biased. Without the bias, these three and `height` are below `_LANE_LIMIT`.
    """
    ins = ((groups & _EVEN) + inside) * _LANES - _SIXTEENS
    outs = ((groups >> U8 & _EVEN) + outside) * _LANES - _SIXTEENS
    moves = ins + outs - np.uint64(0x8000 + height - 0x1100) * _LANES  # increase of the first row, plus 0x1100
    behind = (moves + line) * _LANES - _MOVED
    begins = behind << U16 | line
    fine = (ins + _ABOVE_ZERO) & (outs + _ABOVE_ZERO) & (behind + _FROM_ZERO)
    fine &= np.uint64(0xC000 + height - 1) * _LANES - behind
    fine &= np.uint64(0x8000 + height) * _LANES + _LANE_HIGHS - begins - ins
    return fine & _LANE_HIGHS == _LANE_HIGHS, ins, outs, begins, behind


@innermost
def _lesser(one: Any, other: Any) -> Any:
    """Return the lane-wise minimum of two words with four numbers below 2**15 each."""
    # The highest bit of a lane is set where `one` is not less than `other`; the lower bits then hold the difference.
    beyond = (one | _LANE_HIGHS) - other
    take = beyond & _LANE_HIGHS
    return one - (beyond & (take - (take >> U15)))


@innermost
def _lane(word: Any, k: int) -> Any:
    return np.int64(word >> np.uint64(16 * k) & _LANE)


@innermost
def _read_columns(text: Array, p: int, stop: int, height: int, tops: Any, bottoms: Any, state: Any) -> Any:
    """Read columns with one run each from `p` on, four at a time, until the next eight characters describe anything
    else. Returns the end, the area of the runs that were read, the new `tops` and `bottoms`, and the new `state`:
    `inside`, `outside` and `line` of `_four_columns`.
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
def _measured(text: Array, p: int, stop: int, height: int, width: int, values: Array) -> Any:
    """Return whether the compressed mask in ``text[p:stop]`` is valid and fills its image, whether it is regular, its
    area, and its extent: first and last column, first row, and end of the rows. Runs are read in pairs of foreground
    and background; masks with empty runs are left to `_measured_slowly`. In most masks nearly all numbers have one
    character, and nearly all columns have one run. Four columns with one run each are read at once, from eight
    characters. Other pairs are read one by one, without branches for two-character numbers and columns of several runs,
    because such branches are unpredictable.
    """
    # Separate functions for reading long numbers and for computing the box would make this 4 % slower.
    first, pixels = p, height * width
    before, p = _number_at(text, p, stop)
    if p < 0 or before < 0 or before > pixels:
        return _INVALID
    column, line = before // height, before % height
    left, right, top, bottom, area = column, column, height, np.int64(0), np.int64(0)
    inside, outside, wrong = (
        np.int64(0),
        np.int64(0),
        np.int64(0),
    )  # lengths of the last two runs, and a number that becomes negative if a length is below 1
    tops, bottoms = _ALL_LANES, _NO_LANES  # minimum of tops and of negated bottoms, for each of four columns
    singly = p if height < _LANE_LIMIT else stop  # pairs before this position are read one by one
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
                return _INVALID
        area += inside
        end = line + inside
        if end > height:
            column, end = column + (end - 1) // height, (end - 1) % height + 1
            top, bottom = np.int64(0), height
        top, bottom, right = min(top, line), max(bottom, end), column
        line = end + behind_it - height  # the next run mostly begins in the next column, else in the same column
        here = np.int64(line < 0)
        column, line = column + 1 - here, line + here * height
        if line >= height:
            column, line = column + line // height, line % height
    if wrong < 0:
        return _measured_slowly(values, _numbers(text, first, stop, values), height, width)
    if column * height + line != pixels:
        return _INVALID
    if tops != _ALL_LANES:
        for k in range(4):
            top, bottom = min(top, _lane(tops, k) - _BIAS), max(bottom, _BIAS - _lane(bottoms, k))
    return True, True, area, left, right, top, bottom


@helper
def _measured_slowly(values: Array, count: int, height: int, width: int) -> Any:
    """Measure a mask that may have empty runs, as `_measured` does, from the `count` raw numbers of its string in
    `values`. `count` is -1 if the string is invalid.
    """
    pixels, position, area = height * width, np.int64(0), np.int64(0)
    left, right, top, bottom = width, np.int64(-1), height, np.int64(0)
    for k in range(count):
        length = values[np.uint64(k)]
        if k > 2:
            length += values[np.uint64(k - 2)]
            values[np.uint64(k)] = length
        if length < 0 or position + length > pixels:
            return _INVALID
        if k & 1 and length > 0:
            area += length
            first, last = position // height, (position + length - 1) // height
            left, right = min(left, first), max(right, last)
            top = min(top, position % height) if first == last else np.int64(0)
            bottom = max(bottom, (position + length - 1) % height + 1) if first == last else height
        position += length
    if position != pixels:
        return _INVALID
    return True, False, area, left, right, top, bottom


@innermost
def _measure_text(out: Segments, row: int, values: Array) -> bool:
    """Write area and box of a compressed mask, and whether it is regular; return whether it is valid and fills its
    image.
    """
    # Only the used arrays are passed, because passing all arrays of `out` takes a tenth as long as measuring a mask.
    begin, stop, height, width = out.spans[row, 0], out.spans[row, 1], out.spans[row, 2], out.spans[row, 3]
    valid, regular, area, left, right, top, bottom = _measured(out.text, begin, stop, height, width, values)
    if valid:
        out.areas[row], out.regular[row] = area, regular
        out.boxes[row, 0], out.boxes[row, 2] = left if area else 0, right - left + 1 if area else 0
        out.boxes[row, 1], out.boxes[row, 3] = top if area else 0, bottom - top if area else 0
    return bool(valid)
