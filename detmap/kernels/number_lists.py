"""Read JSON lists of numbers, such as keypoints of COCO's records, into columns. The scanner of records has
only checked the brackets of these lists.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.numbers import COMMA as COMMA_MARK
from detmap.kernels.numbers import (
    DIGIT_ZEROS,
    NUMBER_ROOM,
    POINT,
    SPACED,
    TEN,
    TIGHT,
    TO_HIGH,
    TWO_BYTES,
    _eight_digits,
    _plain_numbers,
    _quotient,
)
from detmap.kernels.segmentations import DOUBTS, POINTS, ROW, _after_number, _coordinate
from detmap.kernels.words import (
    BYTE,
    COMMA,
    HIGHS,
    NOTHING,
    U1,
    U8,
    U63,
    _blank,
    _byte,
    _lowest_bit,
    _word,
)

Array = NDArray[Any]

# The bytes from the point of a number such as 2.0 to the next number: ".0," or ".0, ". The v of COCO's keypoints is
# often written like 2.0. `_THREE_BYTES` and `_FOUR_BYTES` select these bytes in a word that begins with the digit
# before the point. All bytes are exclusive-or'ed with "0", so that digits are below ten.
_TENTHS, _TENTHS_SPACED = (
    np.uint64(int.from_bytes(bytes(c ^ ord("0") for c in text), "little") & ~BYTE.item())
    for text in (b"\0.0,", b"\0.0, ")
)
_THREE_BYTES, _FOUR_BYTES = np.uint64(0xFFFFFF00), np.uint64(0xFFFFFFFF00)

#: Number of consecutive failures to read rows in pairs, after which rows are read one by one.
_MOST_MISSES = 16


class _Two(NamedTuple):
    """Destination and layout of two lists of ``size`` numbers that are read alternately: the first list is written from
    ``out[at]`` on, the second after the first. Numbers are separated by a comma, followed by a space if ``gap`` is 2.
    """

    out: Array
    at: int
    size: int
    gap: int


@helper
def _plain_pairs(data: Any, i: int, j: int, powers: Any, two_lists: _Two, count: int) -> Any:
    """Read two lists at once, number by number in turn, as `_plain_numbers` reads one list. The last number of each
    list is not read.

    The position of a number depends on the number before, so two lists are interleaved to hide this latency. Numbers
    such as ``2.0`` are tried first. Returns the positions of the next numbers, and how many numbers of each list have
    been read, including the `count` numbers read before.
    """
    out, at, size, gap = two_lists
    beside, most = at + size, size - 1
    inside = len(data) - NUMBER_ROOM
    looked_at, expected = (TWO_BYTES, SPACED) if gap == 2 else (BYTE, TIGHT)
    behind_digit, tenths = (_FOUR_BYTES, _TENTHS_SPACED) if gap == 2 else (_THREE_BYTES, _TENTHS)
    while count < most and i < inside and j < inside:
        one, two = _word(data, i) ^ DIGIT_ZEROS, _word(data, j) ^ DIGIT_ZEROS
        if ((one ^ tenths) | (two ^ tenths)) & behind_digit == NOTHING and one & BYTE < TEN and two & BYTE < TEN:
            k = np.uint64(count)
            out[np.uint64(at) + k] = np.float64(np.int64(one & BYTE)).view(np.uint64)
            out[np.uint64(beside) + k] = np.float64(np.int64(two & BYTE)).view(np.uint64)
            count += 1
            i, j = i + 3 + gap, j + 3 + gap
            continue
        others, further = ((one + TO_HIGH) | one) & HIGHS, ((two + TO_HIGH) | two) & HIGHS
        bit, other_bit = _lowest_bit(others), _lowest_bit(further)
        whole, other_whole = bit >> 3, other_bit >> 3
        if whole == 0 or (whole > 1 and one & BYTE == NOTHING):
            break
        if other_whole == 0 or (other_whole > 1 and two & BYTE == NOTHING):
            break
        mark = one >> (np.uint64(bit - 7) & U63) & BYTE
        if mark != two >> (np.uint64(other_bit - 7) & U63) & BYTE:
            break
        digits, other_digits = whole, other_whole
        if mark == POINT:
            bit, other_bit = _lowest_bit(others & (others - U1)), _lowest_bit(further & (further - U1))
            digits, other_digits = (bit >> 3) - 1, (other_bit >> 3) - 1
            if bit == 64 or other_bit == 64 or digits == whole or other_digits == other_whole:
                break
            below, other_below = (U1 << np.uint64(8 * whole)) - U1, (U1 << np.uint64(8 * other_whole)) - U1
            one, two = one & below | one >> U8 & ~below, two & other_below | two >> U8 & ~other_below
        elif mark != COMMA_MARK:
            break
        end, other_end = i + (bit >> 3), j + (other_bit >> 3)
        after = np.uint64(data[np.uint64(end)]) | np.uint64(data[np.uint64(end + 1)]) << U8
        other_after = np.uint64(data[np.uint64(other_end)]) | np.uint64(data[np.uint64(other_end + 1)]) << U8
        if after & looked_at != expected or other_after & looked_at != expected:
            break
        k = np.uint64(count)
        out[np.uint64(at) + k] = _quotient(_eight_digits(one << np.uint64(64 - 8 * digits)), digits - whole, powers)
        out[np.uint64(beside) + k] = _quotient(
            _eight_digits(two << np.uint64(64 - 8 * other_digits)), other_digits - other_whole, powers
        )
        count += 1
        i, j = end + gap, other_end + gap
    return _blank(data, i, False), _blank(data, j, False), count


@helper
def _any_number(data: Any, i: int, powers: Any, out: Array, at: int) -> Any:
    """Read a number of a list. Return the position of the next number, and whether there is a next number. The position
    is -1 if this number is invalid, or if its last bit is uncertain.
    """
    bits, end, certain = _coordinate(data, i, powers)
    if end < 0 or not certain:
        return np.int64(-1), False
    out[at] = bits
    return _after_number(data, end)


@helper
def _alike(data: Any, places: Array, row: int, powers: Any, out: Array, at: int, size: int) -> Any:
    """Read the lists of two rows side by side. Return whether both have `size` numbers, and no number whose last bit is
    uncertain.
    """
    i, j = places[row, 0], places[row + 1, 0]
    if i < 0 or j < 0 or _byte(data, i) != 91 or _byte(data, j) != 91:
        return False
    i, j = _blank(data, i + 1, False), _blank(data, j + 1, False)
    comma = i
    while comma < len(data) and comma < i + 32 and data[comma] != COMMA:
        comma += 1
    both, count = _Two(out, at, size, 2 if _byte(data, comma + 1) == 32 else 1), 0
    while True:
        i, j, count = _plain_pairs(data, i, j, powers, both, count)
        i, more = _any_number(data, i, powers, out, at + count)
        j, others = _any_number(data, j, powers, out, at + size + count)
        count += 1
        if i < 0 or j < 0 or more != others or more == (count == size):
            return False
        if not more:
            return True


@kernel
def read_numbers(
    data: Any, places: Array, powers: Any, doubts: Array, state: Array, starts: Array, stops: Array, values: Array
) -> None:
    """Read the lists of numbers of records from ``state[ROW]`` on, until `doubts` is full.

    If no record was read, `doubts` is too short for the next record.

    Parameters are those of `detmap.kernels.segmentations.read_segmentations`, with two differences: ``starts`` and
    ``stops``, (n,) int64, are the range of each record in `values` (uint64, the bits of float64), and ``state[POINTS]``
    is the position of the next values. If the lists of n records have b bytes in total, `values` must have room for n +
    b / 2 values. A record without a list has no values; if a list has anything but numbers, the record's stop is -1.
    """
    size, misses = 0, 0  # number of values of the previous row; number of consecutive failures of `_alike`
    while state[ROW] < len(places):
        row, at, kept = state[ROW], state[POINTS], state[DOUBTS]
        if size > 0 and misses < _MOST_MISSES and row + 1 < len(places) and at + 2 * size <= len(values):
            if _alike(data, places, row, powers, values, at, size):
                starts[row], stops[row], starts[row + 1], stops[row + 1] = at, at + size, at + size, at + 2 * size
                state[ROW], state[POINTS], misses = row + 2, at + 2 * size, 0
                continue
            misses += 1
        starts[row] = at
        i = places[row, 0]
        wrong = False
        if i >= 0 and _byte(data, i) != 110:
            wrong = _byte(data, i) != 91
            i = _blank(data, i + 1, False)
            more = _byte(data, i) != 93
            while not wrong and more:
                i, at = _plain_numbers(data, i, powers, values, at)
                bits, end, certain = _coordinate(data, i, powers)
                if end < 0:
                    wrong = True
                    break
                if not certain:
                    if state[DOUBTS] == len(doubts):
                        state[DOUBTS] = kept
                        return
                    doubts[state[DOUBTS], 0] = at
                    doubts[state[DOUBTS], 1] = i
                    doubts[state[DOUBTS], 2] = end
                    state[DOUBTS] += 1
                values[at] = bits
                at += 1
                i, more = _after_number(data, end)
                wrong = i < 0
        stops[row] = -1 if wrong else at
        size = 0 if wrong else at - state[POINTS]
        state[POINTS] += size
        state[ROW] = row + 1
