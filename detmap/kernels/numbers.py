"""Parse decimal numbers as doubles and integers.

Short decimals are computed as the quotient of two doubles. Other decimals are rounded with the algorithm of Eisel and
Lemire (D. Lemire, "Number parsing at a gigabyte per second", 2021), which needs no floating-point operation. Numbers
that the algorithm cannot round with certainty, and numbers of more than 19 digits, are put on a list of doubts, which
the caller passes to `float()`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost
from detmap.kernels.words import (
    ALL,
    BYTE,
    HIGHS,
    LOW32,
    NOTHING,
    U1,
    U3,
    U8,
    U16,
    U32,
    U52,
    U56,
    U63,
    _before,
    _blank,
    _byte,
    _load,
    _lowest_bit,
    _word,
)

Array = NDArray[Any]

LOWEST_POWER, HIGHEST_POWER = -342, 308
POWERS_OF_FIVE = 20
# Number of bytes, from the start of a number on, that must be readable to parse it without checking for the document's
# end.
NUMBER_ROOM = 48

DIGIT_ZEROS = np.uint64(0x3030303030303030)
TO_HIGH = np.uint64(0x7676767676767676)
TEN, HUNDREDS, PAIRS = np.uint64(10), np.uint64(100 + (1000000 << 32)), np.uint64(0x000000FF000000FF)
UNITS = np.uint64(1 + (10000 << 32))
TEN_TO_EIGHT = np.uint64(10**8)
# Mantissas below `EXACT` are exact as doubles. 2**53 would be a valid limit, too. But mantissas of widened float32
# values lie on both sides of 2**53, and mispredicted branches would cost more than that limit saves.
EXACT = np.uint64(10**15)
# The highest power of ten that is exact both as a 64-bit integer and as a double.
HIGHEST_DIVISOR = 18
POINT, COMMA = (np.uint64(ord(c) ^ ord("0")) for c in ".,")
# Separator of numbers in lists with spaces (two bytes), separator in lists without spaces (one byte), and mask of two
# bytes.
SPACED, TIGHT, TWO_BYTES = (np.uint64(int.from_bytes(c, "little")) for c in (b", ", b",", b"\xff\xff"))
UNROUNDED = np.uint64(0x1FF)
FRACTION_MASK = np.uint64((1 << 52) - 1)
HIDDEN_2 = np.uint64(2 << 52)
LARGEST_INTEGER = np.uint64((1 << 63) - 1)


@innermost
def _leading_digits(word: Any) -> Any:
    """Return the number of leading digits among eight bytes that are exclusive-or'ed with "0"."""
    return _before(((word + TO_HIGH) | word) & HIGHS)


@innermost
def _eight_digits(word: Any) -> Any:
    """Return the number spelled by eight bytes of values 0 to 9; the first digit is in the lowest byte."""
    word = word * TEN + (word >> U8)
    return ((word & PAIRS) * HUNDREDS + ((word >> U16) & PAIRS) * UNITS) >> U32


@innermost
def _last_digits(word: Any, n: int) -> Any:
    """Return the number spelled by the first `n` of eight bytes, for n from 0 to 7."""
    return _eight_digits(word << (U56 - np.uint64(8 * n) & U63) << U8)  # a single shift by 64 is undefined


@innermost
def _digits(data: Any, i: int, mantissa: Any, powers: Any) -> Any:
    """Append the digits from `i` on: return the new mantissa, the end of the digits, and whether the mantissa has at
    most 19 digits.
    """
    fits = True
    while True:
        word = _load(data, i) ^ DIGIT_ZEROS
        n = _leading_digits(word)
        if n == 0:
            return mantissa, i, fits
        if mantissa >= powers[np.uint64(19 - n)]:
            fits = False
        mantissa = mantissa * powers[np.uint64(n)] + _eight_digits(word << np.uint64(64 - 8 * n))  # adds leading zeros
        if n < 8:
            return mantissa, i + n, fits
        i += 8  # not n, so that the next place does not depend on these digits


@innermost
def _whole_part(data: Any, i: int) -> Any:
    """Read eight bytes of a decimal. Return the digits as bytes, the number of digits before the point, and the
    position of the point in bits. Also return whether the bytes begin with one to seven digits without a leading zero,
    then a point.
    """
    word = _word(data, i) ^ DIGIT_ZEROS
    whole = _leading_digits(word)
    place = np.uint64(8 * whole) & U63
    plain = (whole > 0) & ((whole == 1) | (word & BYTE != NOTHING)) & (word >> place & BYTE == POINT)
    return word, whole, place, plain


@innermost
def _short_number(data: Any, i: int) -> Any:
    """Read a number of up to seven bytes with a point, without sign or exponent. Return its digits as an integer, the
    number of digits after the point, and its end, which is -1 if the number has another form. Requires `NUMBER_ROOM`
    readable bytes.
    """
    word, whole, place, short = _whole_part(data, i)
    joined = word ^ (word ^ word >> U8) & ALL << place  # remove the point
    digits = _leading_digits(joined)
    i += digits + 1
    short &= (digits > whole) & (digits < 8) & (data[np.uint64(i)] | 32 != 101)
    return _last_digits(joined, digits), digits - whole, i if short else -1


@innermost
def _long_number(data: Any, i: int, powers: Any) -> Any:
    """Read a number of up to seven digits, a point and up to 23 digits, without sign or exponent. Its digits without the
    point must form an integer below 10**19.

    Returns mantissa and decimal exponent as `_number` does, and the end, which is -1 for any other number. Requires
    `NUMBER_ROOM` readable bytes.
    """
    word, whole, _, plain = _whole_part(data, i)
    mantissa = _last_digits(word, whole)
    i += whole + 1
    digits = 0
    word = _word(data, i) ^ DIGIT_ZEROS
    last = _leading_digits(word)
    while last == 8 and digits < 16:
        plain &= mantissa < powers[np.uint64(11)]  # otherwise the product may exceed 64 bits
        mantissa = mantissa * TEN_TO_EIGHT + _eight_digits(word)
        digits += 8
        word = _word(data, i + digits) ^ DIGIT_ZEROS
        last = _leading_digits(word)
    plain &= (last < 8) & (mantissa < powers[np.uint64(19 - last)])
    mantissa = mantissa * powers[np.uint64(last)] + _last_digits(word, last)
    digits += last
    i += digits
    plain &= (digits > 0) & (data[np.uint64(i)] | 32 != 101)
    return mantissa, -digits, i if plain else -1


@innermost
def _plain_integer(data: Any, i: int) -> Any:
    """Read up to seven digits without a sign: return the value, and the end, which is -1 for any other integer.
    Requires `NUMBER_ROOM` readable bytes.
    """
    word = _word(data, i) ^ DIGIT_ZEROS
    digits = _leading_digits(word)
    plain = (digits > 0) & (digits < 8) & ((digits == 1) | (word & BYTE != NOTHING))
    return np.int64(_last_digits(word, digits)), i + digits if plain else -1


@helper
def _plain_numbers(data: Any, i: int, powers: Any, out: Array, at: int) -> Any:
    """Read plain numbers of a list; return the position of the first other number, and its index in `out`. A plain
    number has up to seven bytes, digits with an optional point, and a comma after it.
    """
    inside = len(data) - NUMBER_ROOM
    gap, looked_at, expected = 2, TWO_BYTES, SPACED
    while i < inside:
        word = _word(data, i) ^ DIGIT_ZEROS
        others = ((word + TO_HIGH) | word) & HIGHS
        bit = _lowest_bit(others)
        mark = word >> (np.uint64(bit - 7) & U63) & BYTE
        whole = bit >> 3
        if whole == 0 or (whole > 1 and word & BYTE == NOTHING):
            break
        if mark == POINT:
            bit = _lowest_bit(others & (others - U1))
            digits = (bit >> 3) - 1
            if bit == 64 or digits == whole:
                break
            below = (U1 << np.uint64(8 * whole)) - U1
            word = word & below | word >> U8 & ~below
            i += digits + 1
        elif mark == COMMA:
            digits = whole
            i += digits
        else:
            break
        separator = np.uint64(data[np.uint64(i)]) | np.uint64(data[np.uint64(i + 1)]) << U8
        if separator & BYTE != TIGHT:
            i -= bit >> 3
            break
        out[np.uint64(at)] = _quotient(_eight_digits(word << np.uint64(64 - 8 * digits)), digits - whole, powers)
        at += 1
        if separator & looked_at == expected:
            i += gap
        else:
            begin = i + 1
            i = _blank(data, begin, False)
            if i == begin:
                gap, looked_at, expected = 1, BYTE, TIGHT
    return _blank(data, i, False), at


@helper
def _number(data: Any, i: int, powers: Any) -> Any:
    """Read a JSON number: return its mantissa and decimal exponent, its end (-1: invalid), and whether mantissa and
    exponent are exact.
    """
    if _byte(data, i) == 45:
        i += 1
    begin = i
    mantissa, end, fits = _digits(data, i, NOTHING, powers)
    several = end > i + 1
    wrong = end == i
    exponent = 0
    if _byte(data, end) == 46:
        i = end + 1
        mantissa, end, fine = _digits(data, i, mantissa, powers)
        fits &= fine
        wrong |= end == i
        exponent = i - end
    if _byte(data, end) | 32 == 101:
        i = end + 1
        sign = _byte(data, i)
        if sign == 43 or sign == 45:
            i += 1
        scale, end, fine = _digits(data, i, NOTHING, powers)
        wrong |= end == i
        if not fine or scale > np.uint64(99999):
            fits = False
        elif sign == 45:
            exponent -= np.int64(scale)
        else:
            exponent += np.int64(scale)
    wrong |= several & (_byte(data, begin) == 48)
    fits &= mantissa < powers[19]
    return mantissa, exponent, -1 if wrong else end, fits


@helper
def _product(a: Any, b: Any) -> Any:
    """Return the high and low words of a * b."""
    a0, a1, b0, b1 = a & LOW32, a >> U32, b & LOW32, b >> U32
    lowest, left, right = a0 * b0, a0 * b1, a1 * b0
    middle = (lowest >> U32) + (left & LOW32) + (right & LOW32)
    return a1 * b1 + (left >> U32) + (right >> U32) + (middle >> U32), a * b


@innermost
def _rounded(mantissa: Any, exponent: int, five: Any, more: Any) -> Any:
    """Return the bits of the double nearest to mantissa * 10**exponent, and whether the bits are certain. `five` and
    `more` are the high and low words of 5**exponent; for an exponent outside of the table the bits are never certain.
    """
    if mantissa == NOTHING:
        return NOTHING, True
    length = 0
    rest = mantissa
    while rest != NOTHING:  # LLVM compiles this loop to one instruction
        rest >>= U1
        length += 1
    mantissa <<= np.uint64(64 - length)
    high, low = _product(mantissa, five)
    # The second product is computed without a branch, because float32 values widened to float64 need the product every
    # other time.
    more, _ = _product(mantissa, more)
    more &= NOTHING - np.uint64(high & UNROUNDED == UNROUNDED)
    low += more
    high += np.uint64(more > low)
    upper = high >> U63
    shift = upper + np.uint64(9)
    fraction = high >> shift
    biased = ((217706 * exponent) >> 16) + np.int64(upper) + length + 1022
    if exponent < LOWEST_POWER or exponent > HIGHEST_POWER or biased <= 0 or biased >= 2046:
        return NOTHING, False  # subnormal, or perhaps infinite
    if low == ALL and (exponent < -27 or exponent > 55):
        return NOTHING, False
    if low <= U1 and -4 <= exponent <= 23 and fraction & U3 == U1 and fraction << shift == high:
        fraction &= ~U1  # exactly halfway: to even
    fraction = (fraction + (fraction & U1)) >> U1
    if fraction >= HIDDEN_2:
        fraction = NOTHING
        biased += 1
    return (fraction & FRACTION_MASK) | np.uint64(biased) << U52, True


@innermost
def _quotient(mantissa: Any, digits: int, powers: Any) -> Any:
    """Return the bits of mantissa / 10**digits. The quotient is the nearest double if `mantissa` is below `EXACT` and
    `digits` at most `HIGHEST_DIVISOR`, because then only the division rounds.
    """
    quotient = np.float64(np.int64(mantissa)) / np.float64(np.int64(powers[np.uint64(digits)]))
    return np.float64(quotient).view(np.uint64)  # only numpy scalars have `view` in numba


@innermost
def _nearest(mantissa: Any, exponent: int, powers: Any) -> Any:
    """Return the bits of the double nearest to mantissa * 10**exponent, and whether the bits are certain."""
    if mantissa < EXACT and -HIGHEST_DIVISOR <= exponent <= 0:
        bits, certain = _quotient(mantissa, -exponent, powers), True
    else:
        power = POWERS_OF_FIVE + 2 * (min(max(exponent, LOWEST_POWER), HIGHEST_POWER) - LOWEST_POWER)
        bits, certain = _rounded(mantissa, exponent, powers[power], powers[power + 1])
    return bits, certain


@innermost
def _has_sign(mantissa: Any, i: int, end: int) -> Any:
    """Return whether a minus at `i` changes the number: ``-0`` is JSON's integer 0, while ``-0.0`` is a float with a
    sign.
    """
    return np.int64((mantissa != NOTHING) | (end - i != 2))


@innermost
def _double(data: Any, i: int, powers: Any) -> Any:
    """Read a JSON number: return the bits of the nearest double, its end (-1: invalid), and whether the bits are certain."""
    mantissa, exponent, end, fits = _number(data, i, powers)
    bits, certain = _nearest(mantissa, exponent, powers)
    if _byte(data, i) == 45:
        bits |= U1 << U63
    return bits, end, fits and certain


@innermost
def _pointed_or_double(data: Any, i: int, inside: int, powers: Any) -> Any:
    """Read a number as `_double` does, but faster if the number has a point and no sign. Any `i` below `inside` must
    have `NUMBER_ROOM` readable bytes.
    """
    negative = _byte(data, i) == 45
    mantissa, exponent, end, fits = NOTHING, 0, -1, True
    if i < inside:
        mantissa, exponent, end = _long_number(data, i, powers)
    if end < 0:
        mantissa, exponent, end, fits = _number(data, i, powers)
    bits, certain = _nearest(mantissa, exponent, powers)
    return bits | np.uint64(negative) << U63, end, fits and certain


@helper
def _integer(data: Any, i: int, powers: Any) -> Any:
    """Read a JSON integer of 64 bits: return its value, and its end (-1: invalid)."""
    negative = _byte(data, i) == 45
    if negative:
        i += 1
    magnitude, end, fits = _digits(data, i, NOTHING, powers)
    value = np.int64(magnitude)  # -2**63 wraps around to itself
    beyond = magnitude > LARGEST_INTEGER + np.uint64(negative)
    wrong = end == i or (_byte(data, i) == 48 and end > i + 1) or beyond or not fits
    return -value if negative else value, -1 if wrong else end


@innermost
def _doubt(doubts: Any, doubtful: int, at: int, begin: int, end: int) -> int:
    """Put a number on the list of doubts for the caller; return the new number of doubts."""
    doubts[doubtful, 0] = at
    doubts[doubtful, 1] = begin
    doubts[doubtful, 2] = end
    return doubtful + 1
