"""Bytes -> columns: strict JSON records and TREC lines, read once, eight bytes at a time; and the strings that lie in them.

Nothing here raises about a document. A kernel stops with a status where it meets something that it does not understand,
and its caller hands the document to a parser that explains. What it does accept is valid to the letter: RFC 8259
grammar in every value, also in those that are skipped (UTF-8 is checked by the caller, on the blocks that are not ASCII).

Most writers put the same bytes between the values of all records. `_learn` notes those of a block's first record, and
`_scan_alike` reads every record that has them, too; `scan_records` itself reads the others key by key.

A column is a run of 64-bit words in one flat array, so that integers, floats and byte spans take one path; a float is
written as its bit pattern. Short decimals are the quotient of two doubles. Others are rounded with the algorithm of Eisel
and Lemire (D. Lemire, "Number parsing at a gigabyte per second", 2021), which needs no floating-point operation. What it
cannot decide, and whatever has more than 19 digits, is put on a list of doubts for `float()`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import helper, innermost, kernel

# What a field holds; REPEATED, an id that the line before often has too, and INTEGER only in lines. What else the values of
# records may be that are alike: a string that is an id, and what nobody asked for.
ID, NUMBERS, FLAG, SPAN, REPEATED, INTEGER, QUOTED, PASSED = range(8)
# Those whose columns lie apart from the others: they are looked up, and then no longer needed.
APART = (ID, REPEATED)
# Why a kernel stopped: at a record that begins at or after `stop`; after the list; at something not understood; with
# the list of doubts full (empty it and call again).
STOPPED, CLOSED, FAILED, FULL = range(4)
# The slots of `state`. EVER, ALWAYS, INTEGERS, STRINGS: a bit per field: some record, every record has it, and as what.
# LONGER: how many lines have more tokens than there are fields for.
STATUS, POSITION, FIRST, ROW, LIMIT, EVER, ALWAYS, INTEGERS, STRINGS, DOUBTS, LONGER, STATE_SIZE = range(12)
# A string is a word: its first byte's position, then its length in the lower bits.
LENGTH_BITS = 24
# Values nested deeper than this are not understood.
MAX_DEPTH = 64
# No kind of record has more numbers than this.
MOST_NUMBERS = 8
# A line that may have further tokens has no more of them than this: four could be a second record on the same line.
MOST_FURTHER = 3
# A record's first keys are expected where the record before had them.
EXPECTED_KEYS = 16
# Records are read by their likeness to the first one if it has no more values than this, and no more words between two.
MOST_VALUES = 24
GLUE_WORDS = 4
# What is noted of a value: its kind, where row 0 has it, how far rows are apart, its bytes. What is noted of the glue
# before it: its length, then its words, each ahead of the mask of what counts of it.
KIND, PLACE, STEP, BEGIN, END, NOTES = range(6)
LENGTH, WORDS, GLUE_NOTES = 0, 1, 1 + 2 * GLUE_WORDS
# So many bytes are there where a number is read without a look at the end of the document, and where glue is before it.
NUMBER_ROOM = 48
ROOM = 8 * GLUE_WORDS + NUMBER_ROOM
# After so many records in a row that are unlike the first one, the others are not compared with it.
MOST_MISSES = 64

LOWEST_POWER, HIGHEST_POWER = -342, 308
POWERS_OF_FIVE = 20

U1, U7, U8, U16, U24, U32, U40, U48, U52, U56, U63 = (np.uint64(n) for n in (1, 7, 8, 16, 24, 32, 40, 48, 52, 56, 63))
U2, U3, U4, U5, U6 = (np.uint64(n) for n in (2, 3, 4, 5, 6))
NOTHING = np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
LOW32 = np.uint64(0xFFFFFFFF)
ONES = np.uint64(0x0101010101010101)
HIGHS = np.uint64(0x8080808080808080)
DIGIT_ZEROS = np.uint64(0x3030303030303030)
TO_HIGH = np.uint64(0x7676767676767676)
QUOTES = np.uint64(0x2222222222222222)
BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
SPACES = np.uint64(0x2020202020202020)
ABOVE_SPACES = np.uint64(0x2121212121212121)
TEN, HUNDREDS, PAIRS = np.uint64(10), np.uint64(100 + (1000000 << 32)), np.uint64(0x000000FF000000FF)
UNITS = np.uint64(1 + (10000 << 32))
TRUE, FALSE, NULL = (np.uint64(int.from_bytes(name, "little")) for name in (b"true", b"false", b"null"))
TEN_TO_EIGHT = np.uint64(10**8)
# A mantissa below it is exact as a double. 2**53 would do, but widened single precision is on both sides of that by turns,
# and a branch that cannot be foretold costs more than it saves.
EXACT = np.uint64(10**15)
# The highest power of ten that is both a 64-bit integer and a double.
HIGHEST_DIVISOR = 18
BYTE, POINT = np.uint64(0xFF), np.uint64(ord(".") ^ ord("0"))
FIVE_BYTES = np.uint64(0xFFFFFFFFFF)
UNROUNDED = np.uint64(0x1FF)
FRACTION_MASK = np.uint64((1 << 52) - 1)
HIDDEN_2 = np.uint64(2 << 52)
MIXER = np.uint64(0x9E3779B97F4A7C15)
LARGEST_INTEGER = np.uint64((1 << 63) - 1)


@kernel
def survey(data: Any, begin: int, end: int, mark: int) -> int:
    """How many bytes of ``data[begin:end]`` are `mark`; -1 minus that number where one of the bytes is not ASCII."""
    count, joined = 0, np.uint8(0)
    for k in range(end - begin):
        c = data[np.uint64(begin + k)]
        count += c == mark
        joined |= c
    return ~count if joined >= np.uint8(128) else count


@innermost
def _word(data: Any, i: int) -> Any:
    """Eight bytes from `i` on, the first one lowest."""
    j = np.uint64(i)  # an unsigned index has no negative case: the eight loads become one
    return (
        np.uint64(data[j])
        | np.uint64(data[j + U1]) << U8
        | np.uint64(data[j + U2]) << U16
        | np.uint64(data[j + U3]) << U24
        | np.uint64(data[j + U4]) << U32
        | np.uint64(data[j + U5]) << U40
        | np.uint64(data[j + U6]) << U48
        | np.uint64(data[j + U7]) << U56
    )


@helper
def _load(data: Any, i: int) -> Any:
    """Eight bytes from `i` on, the first one lowest; zeros past the end. `data` holds at least eight bytes."""
    shift = NOTHING
    if i + 8 > len(data):
        if i >= len(data):
            return NOTHING
        shift = np.uint64(8 * (i + 8 - len(data)))
        i = len(data) - 8
    return _word(data, i) >> shift


@helper
def _byte(data: Any, i: int) -> Any:
    """The byte at `i`; 0, which is valid nowhere, past the end."""
    if i >= len(data):
        return 0
    return np.int64(data[np.uint64(i)])


@helper
def _before(flags: Any) -> Any:
    """How many bytes lie below the lowest one whose highest bit is set; 8 where there is none."""
    below = (flags - U1) & ~flags & HIGHS
    count = 0
    while below != NOTHING:  # LLVM knows this loop as one instruction
        below &= below - U1
        count += 1
    return count


@innermost
def _leading_digits(word: Any) -> Any:
    """How many digits eight bytes begin with that were combined with those of zeros."""
    return _before(((word + TO_HIGH) | word) & HIGHS)


@helper
def _blank(data: Any, i: int, lines: bool) -> int:
    """The first position from `i` on that is not white space; a line feed is none where records are lines."""
    while True:
        c = _byte(data, i)
        if c > 32 or not (c == 32 or c == 9 or c == 13 or (c == 10 and not lines)):
            return i
        i += 1


@innermost
def _eight_digits(word: Any) -> Any:
    """The number that eight bytes of 0 to 9 spell, the first one lowest."""
    word = word * TEN + (word >> U8)
    return ((word & PAIRS) * HUNDREDS + ((word >> U16) & PAIRS) * UNITS) >> U32


@innermost
def _last_digits(word: Any, n: int) -> Any:
    """The number that the first `n` of eight bytes spell, 0 to 7 of them; of 8 no number that means anything."""
    return _eight_digits(word << (U56 - np.uint64(8 * n) & U63) << U8)  # a shift by 64 at once has no meaning


@innermost
def _digits(data: Any, i: int, mantissa: Any, powers: Any) -> Any:
    """Append the digits from `i` on: the new mantissa, where they end, whether it has at most 19 digits."""
    fits = True
    while True:
        word = _load(data, i) ^ DIGIT_ZEROS
        n = _leading_digits(word)
        if n == 0:
            return mantissa, i, fits
        if mantissa >= powers[np.uint64(19 - n)]:
            fits = False
        mantissa = mantissa * powers[np.uint64(n)] + _eight_digits(word << np.uint64(64 - 8 * n))  # zeros on the left
        if n < 8:
            return mantissa, i + n, fits
        i += 8  # not n: where the next word lies is known before this one has been looked at


@innermost
def _whole_part(data: Any, i: int) -> Any:
    """Read eight bytes of a decimal: digits as bytes, how many lie before the point, where that is, whether it is plain.

    A plain one has one to seven digits, no zero that leads others, and then a point.
    """
    word = _word(data, i) ^ DIGIT_ZEROS
    whole = _leading_digits(word)
    place = np.uint64(8 * whole) & U63
    plain = (whole > 0) & ((whole == 1) | (word & BYTE != NOTHING)) & (word >> place & BYTE == POINT)
    return word, whole, place, plain


@innermost
def _short_number(data: Any, i: int) -> Any:
    """Read a number of up to seven bytes, with a point, no sign, no exponent: its digits, those after the point, its end.

    The end is -1 for any other number. `NUMBER_ROOM` bytes are there.
    """
    word, whole, place, short = _whole_part(data, i)
    joined = word ^ (word ^ word >> U8) & ALL << place  # without the point
    digits = _leading_digits(joined)
    i += digits + 1
    short &= (digits > whole) & (digits < 8) & (data[np.uint64(i)] | 32 != 101)
    return _last_digits(joined, digits), digits - whole, i if short else -1


@innermost
def _long_number(data: Any, i: int, powers: Any) -> Any:
    """Read up to seven digits, a point and up to 23 digits, without sign or exponent, that are below 10**19 side by side.

    Returns mantissa and decimal exponent as `_number` does, and the end, -1 for any other. `NUMBER_ROOM` bytes are there.
    """
    word, whole, _, plain = _whole_part(data, i)
    mantissa = _last_digits(word, whole)
    i += whole + 1
    digits = 0
    word = _word(data, i) ^ DIGIT_ZEROS
    last = _leading_digits(word)
    while last == 8 and digits < 16:
        plain &= mantissa < powers[np.uint64(11)]  # else it may not fit
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
    """Read up to seven digits without a sign: value, and end, -1 for any other integer. `NUMBER_ROOM` bytes are there."""
    word = _word(data, i) ^ DIGIT_ZEROS
    digits = _leading_digits(word)
    plain = (digits > 0) & (digits < 8) & ((digits == 1) | (word & BYTE != NOTHING))
    return np.int64(_last_digits(word, digits)), i + digits if plain else -1


@helper
def _number(data: Any, i: int, powers: Any) -> Any:
    """Read a JSON number: its mantissa and decimal exponent, its end (-1: there is none), whether the two are all of it."""
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
    """The higher and the lower half of a * b."""
    a0, a1, b0, b1 = a & LOW32, a >> U32, b & LOW32, b >> U32
    lowest, left, right = a0 * b0, a0 * b1, a1 * b0
    middle = (lowest >> U32) + (left & LOW32) + (right & LOW32)
    return a1 * b1 + (left >> U32) + (right >> U32) + (middle >> U32), a * b


@innermost
def _rounded(mantissa: Any, exponent: int, five: Any, more: Any) -> Any:
    """The bits of the double nearest to mantissa * 10**exponent, and whether they are certain to be that.

    `five` and `more` are the higher and the lower word of 5**exponent; an exponent outside the table is never certain.
    """
    if mantissa == NOTHING:
        return NOTHING, True
    length = 0
    rest = mantissa
    while rest != NOTHING:  # LLVM knows this loop as one instruction
        rest >>= U1
        length += 1
    mantissa <<= np.uint64(64 - length)
    high, low = _product(mantissa, five)
    # Asked for only where the rounding hangs on it; without a branch, for of widened single precision that is every other.
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
    """The bits of the double nearest to mantissa / 10**digits: below `EXACT`, up to `HIGHEST_DIVISOR` it is rounded once."""
    quotient = np.float64(np.int64(mantissa)) / np.float64(np.int64(powers[np.uint64(digits)]))
    return np.float64(quotient).view(np.uint64)  # numba views what is wrapped in its dtype


@innermost
def _nearest(mantissa: Any, exponent: int, powers: Any) -> Any:
    """The bits of the double nearest to mantissa * 10**exponent, and whether they are certain to be that."""
    if mantissa < EXACT and -HIGHEST_DIVISOR <= exponent <= 0:
        bits, certain = _quotient(mantissa, -exponent, powers), True
    else:
        power = POWERS_OF_FIVE + 2 * (min(max(exponent, LOWEST_POWER), HIGHEST_POWER) - LOWEST_POWER)
        bits, certain = _rounded(mantissa, exponent, powers[power], powers[power + 1])
    return bits, certain


@helper
def _integer(data: Any, i: int, powers: Any) -> Any:
    """Read a JSON integer of 64 bits: its value, its end (-1: there is none)."""
    negative = _byte(data, i) == 45
    if negative:
        i += 1
    magnitude, end, fits = _digits(data, i, NOTHING, powers)
    value = np.int64(magnitude)  # -2**63 wraps around to itself
    beyond = magnitude > LARGEST_INTEGER + np.uint64(negative)
    wrong = end == i or (_byte(data, i) == 48 and end > i + 1) or beyond or not fits
    return -value if negative else value, -1 if wrong else end


@helper
def _hexadecimal(c: int) -> int:
    """The value of a hexadecimal digit, something large for anything else."""
    if 48 <= c <= 57:
        return c - 48
    if 97 <= c | 32 <= 102:
        return (c | 32) - 87
    return 1 << 16


@helper
def _string_end(data: Any, i: int) -> int:
    """The position after the closing quote of the string whose first character is at `i`, -1 where it is not valid."""
    end = 0
    paired = False  # the escape before was the first half of a pair
    while end == 0:
        word = _load(data, i)
        quote = word ^ QUOTES
        backslash = word ^ BACKSLASHES
        n = _before((((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash) | ((word - SPACES) & ~word)) & HIGHS)
        i += n
        c = _byte(data, i)
        if n == 8 and not paired:
            continue
        if c == 34 and not paired:
            end = i + 1
        elif c == 92 and not (paired and n > 0):
            c = _byte(data, i + 1)
            if c == 117:
                unit = 0
                for k in range(i + 2, i + 6):
                    unit = unit * 16 + _hexadecimal(_byte(data, k))
                i += 6
                if paired != (0xDC00 <= unit < 0xE000) or unit > 0xFFFF:
                    end = -1
                paired = 0xD800 <= unit < 0xDC00
            elif not paired and (
                c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116
            ):
                i += 2
            else:
                end = -1
        else:
            end = -1
    return end


@helper
def _value_of_key(data: Any, i: int, lines: bool) -> int:
    """Pass a key and its colon: where the value begins, -1 where there is no key."""
    if _byte(data, i) != 34:
        return -1
    i = _string_end(data, i + 1)
    if i < 0:
        return -1
    i = _blank(data, i, lines)
    if _byte(data, i) != 58:
        return -1
    return _blank(data, i + 1, lines)


@helper
def _value_end(data: Any, i: int, lines: bool, powers: Any) -> int:
    """Where the JSON value that begins at `i` ends, -1 where it is not valid or too deep."""
    objects = NOTHING  # a bit for every open bracket, the innermost lowest: 1 for an object
    depth = 0
    while True:
        c = _byte(data, i)
        if c == 34:
            i = _string_end(data, i + 1)
        elif c == 45 or 48 <= c <= 57:
            _, _, i, _ = _number(data, i, powers)
        elif c == 91 or c == 123:
            if depth == MAX_DEPTH:
                return -1
            i = _blank(data, i + 1, lines)
            objects = objects << U1 | np.uint64(c == 123)
            depth += 1
            if _byte(data, i) != c + 2:  # not empty
                if c == 123:
                    i = _value_of_key(data, i, lines)
                    if i < 0:
                        return -1
                continue
        else:
            word = _load(data, i)
            if word & LOW32 == TRUE or word & LOW32 == NULL:
                i += 4
            elif word & FIVE_BYTES == FALSE:
                i += 5
            else:
                return -1
        if i < 0:
            return -1
        while depth > 0:
            i = _blank(data, i, lines)
            c = _byte(data, i)
            inside = objects & U1 != NOTHING
            if c == 44:
                i = _blank(data, i + 1, lines)
                if inside:
                    i = _value_of_key(data, i, lines)
                    if i < 0:
                        return -1
                break
            if c != (125 if inside else 93):
                return -1
            i += 1
            depth -= 1
            objects >>= U1
        else:
            return i


@kernel
def skip_value(data: Any, i: int, lines: bool, powers: Any) -> int:
    """Where the JSON value that begins at `i` ends, -1 where it is not valid or too deep.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    i : int
        Position of the value's first byte.
    lines : bool
        Whether a line feed ends a record and so is no white space.
    powers : uint64
        The powers: those of ten up to 10**19; then, from `POWERS_OF_FIVE` on, of each power of five the leading 128 bits
        as two words.
    """
    return _value_end(data, i, lines, powers)  # which Python cannot call


@helper
def _leave_out(fields: int, places: Any, begin: int, end: int, ids: Any, words: Any) -> None:
    """Write into rows that they do not have the fields whose bits are set."""
    for field in range(len(places)):
        if fields >> field & 1:
            column, width = places[field, 2], places[field, 1]
            for k in range(column + begin * width, column + end * width):
                if places[field, 0] == ID:
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


@innermost
def _doubt(doubts: Any, doubtful: int, at: int, begin: int, end: int) -> int:
    """Leave a number to the caller: how many there are now."""
    doubts[doubtful, 0] = at
    doubts[doubtful, 1] = begin
    doubts[doubtful, 2] = end
    return doubtful + 1


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
                end = _value_end(data, place, lines, powers)
                if end >= 0 and kind == SPAN:
                    words[at] = np.uint64(place)
                    words[at + U1] = np.uint64(end)
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
        Per field what it holds (`ID`, `NUMBERS`, `FLAG`, `SPAN`), the number of words that a record has of it, and where its
        column begins: in `ids` where it is an `ID`, else in `words`.
    powers : uint64
        The powers, as in `skip_value`.
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
                    i = _value_end(data, i, lines, powers)
                    if i < 0:
                        break
                    words[at] = np.uint64(begin)
                    words[at + 1] = np.uint64(i)
                    noted = _note(values, noted, SPAN, at - row * width, width, begin, i)
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


@helper
def _hash(data: Any, word: Any, seed: Any) -> Any:
    """Hash the string that `word` locates; the seed keeps a document from choosing its collisions."""
    begin = np.int64(word) >> LENGTH_BITS
    length = np.int64(word) & ((1 << LENGTH_BITS) - 1)
    value = (seed ^ np.uint64(length)) * MIXER
    for k in range(0, length, 8):
        part = _load(data, begin + k)
        if length - k < 8:
            part &= ALL >> np.uint64(64 - 8 * (length - k))
        value = (value ^ part) * MIXER
        value ^= value >> U32
    value *= MIXER  # strings that differ in their last bytes differ in few bits as yet
    return value ^ value >> U32


@helper
def _same(data: Any, word: Any, others: Any, other: Any) -> Any:
    """Whether a string of `data` and a string of `others` have the same bytes."""
    begin = np.int64(word) >> LENGTH_BITS
    place = np.int64(other) >> LENGTH_BITS
    length = np.int64(word) & ((1 << LENGTH_BITS) - 1)
    if length != np.int64(other) & ((1 << LENGTH_BITS) - 1):
        return False
    for k in range(0, length, 8):
        difference = _load(data, begin + k) ^ _load(others, place + k)
        if length - k < 8:
            difference <<= np.uint64(64 - 8 * (length - k))
        if difference != NOTHING:
            return False
    return True


@helper
def _token_end(data: Any, i: int) -> int:
    """The first position from `i` on that holds a blank or a control character, or is the end."""
    while True:
        word = _load(data, i)
        n = _before((word - ABOVE_SPACES) & ~word & HIGHS)
        i += n
        if n < 8:
            return i


@helper
def _tab_or_space(data: Any, i: int) -> int:
    """The first position from `i` on that is neither a space nor a tabulator."""
    while _byte(data, i) == 32 or _byte(data, i) == 9:
        i += 1
    return i


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
        As in `scan_records`. Every column is written.
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
        if doubtful == len(doubts):
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


@kernel
def factorise(data: Any, words: Any, seed: Any, codes: Any, firsts: Any) -> int:
    """Number the distinct strings in the order of their first appearance.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    words : (rows,) uint64
        The strings: position and length.
    seed : uint64
        Seed of the hash; the outcome does not depend on it.
    codes : (rows,) int32
        Out: the number of each row's string.
    firsts : (rows,) uint64
        Out: where each distinct string appeared first.

    Returns
    -------
    int
        How many distinct strings there are.
    """
    table = np.full(1 << 10, -1, np.int32)
    hashes = np.zeros(len(table), np.uint64)
    count = 0
    for row in range(len(words)):
        word = words[row]
        if row > 0 and (word == words[row - 1] or _same(data, word, data, words[row - 1])):
            codes[row] = codes[row - 1]
            continue
        value = _hash(data, word, seed)
        slot = np.int64(value >> U24) & (len(table) - 1)
        while table[slot] >= 0 and (hashes[slot] != value or not _same(data, word, data, firsts[table[slot]])):
            slot = (slot + 1) & (len(table) - 1)
        if table[slot] < 0:
            table[slot] = count
            hashes[slot] = value
            firsts[count] = word
            codes[row] = count
            count += 1
            if 2 * count > len(table):
                old, old_hashes = table, hashes
                table = np.full(4 * len(old), -1, np.int32)
                hashes = np.zeros(len(table), np.uint64)
                for k in range(len(old)):
                    if old[k] >= 0:
                        slot = np.int64(old_hashes[k] >> U24) & (len(table) - 1)
                        while table[slot] >= 0:
                            slot = (slot + 1) & (len(table) - 1)
                        table[slot] = old[k]
                        hashes[slot] = old_hashes[k]
        else:
            codes[row] = table[slot]
    return count


@kernel
def find_strings(
    data: Any,
    words: Any,
    starts: Any,
    wanted_data: Any,
    wanted: Any,
    wanted_starts: Any,
    begin: int,
    stop: int,
    seed: Any,
    found: Any,
) -> int:
    """Find, group by group, strings of one buffer among the strings of another, which repeats none within a group.

    Parameters
    ----------
    data, wanted_data : (n,) uint8
        The buffers, at least eight bytes each.
    words, wanted : (n,) uint64
        The strings that are searched, and those that are sought: position and length.
    starts, wanted_starts : (groups + 1,) int64
        Where in `words` and in `wanted` each group starts, and the last one ends.
    begin, stop : int
        The groups to work on.
    seed : uint64
        Seed of the hash; the outcome does not depend on it.
    found : (n,) int64
        Out: for each element of `wanted` its place among the strings of its group, -1 where it is not there.

    Returns
    -------
    int
        -1, or the first row of `words` whose string its group had before; from that group on nothing is sought.
    """
    table = np.empty(1 << 6, np.int32)
    hashes = np.empty(1 << 6, np.uint64)
    for group in range(begin, stop):
        first, end = starts[group], starts[group + 1]
        size = 1 << 6
        while size < 2 * (end - first):
            size *= 2
        if size > len(table):
            table = np.empty(size, np.int32)
            hashes = np.empty(size, np.uint64)
        for slot in range(size):
            table[slot] = -1
        for row in range(first, end):
            value = _hash(data, words[row], seed)
            slot = np.int64(value >> U24) & (size - 1)
            while table[slot] >= 0:
                if hashes[slot] == value and _same(data, words[row], data, words[first + table[slot]]):
                    return row
                slot = (slot + 1) & (size - 1)
            table[slot] = row - first
            hashes[slot] = value
        for k in range(wanted_starts[group], wanted_starts[group + 1]):
            value = _hash(wanted_data, wanted[k], seed)
            slot = np.int64(value >> U24) & (size - 1)
            found[k] = -1
            while table[slot] >= 0:
                if hashes[slot] == value and _same(wanted_data, wanted[k], data, words[first + table[slot]]):
                    found[k] = table[slot]
                    break
                slot = (slot + 1) & (size - 1)
    return -1


@helper
def _ahead(data: Any, score: float, word: Any, other_score: float, other_word: Any) -> Any:
    """Whether a row ranks ahead of another one: by the higher score, then by the higher string."""
    tied = np.int64(score == other_score)  # without a tie, empty strings at 0 are compared
    place, other_place = tied * (np.int64(word) >> LENGTH_BITS), tied * (np.int64(other_word) >> LENGTH_BITS)
    length = tied * (np.int64(word) & ((1 << LENGTH_BITS) - 1))
    other_length = tied * (np.int64(other_word) & ((1 << LENGTH_BITS) - 1))
    shorter = min(length, other_length)
    k = 0
    while k + 8 <= shorter and _load(data, place + k) == _load(data, other_place + k):
        k += 8
    while k < shorter and _byte(data, place + k) == _byte(data, other_place + k):
        k += 1
    higher = (k == other_length) | (_byte(data, place + k) > _byte(data, other_place + k))
    return (score > other_score) | ((k < length) & higher)


@kernel
def rank_rows(data: Any, words: Any, scores: Any, starts: Any, begin: int, stop: int, rows: Any) -> None:
    """Order the rows of each group by descending score, rows of equal score by descending string, as bytes.

    Parameters
    ----------
    data : (n,) uint8
        The buffer, at least eight bytes.
    words : (n,) uint64
        The strings: position and length.
    scores : (n,) float64
        The scores, none of them NaN.
    starts : (groups + 1,) int64
        Where in `rows` each group starts, and the last one ends.
    begin, stop : int
        The groups to work on.
    rows : (n,) int32
        In and out: the rows, group by group.
    """
    longest = 0
    for group in range(begin, stop):
        longest = max(longest, starts[group + 1] - starts[group])
    spare = np.empty(longest, np.int32)
    for group in range(begin, stop):
        first, end = starts[group], starts[group + 1]
        width = 1
        while width < end - first:  # merge neighbours; most runs come in order, and then nothing moves
            for left in range(first, end - width, 2 * width):
                middle = left + width
                right = min(middle + width, end)
                one, other = rows[middle], rows[middle - 1]
                if not _ahead(data, scores[one], words[one], scores[other], words[other]):
                    continue
                for k in range(width):
                    spare[k] = rows[left + k]
                a, b = 0, middle
                for k in range(left, right):
                    if a == width:
                        break
                    other = spare[a]
                    one = rows[b] if b < right else other
                    if _ahead(data, scores[one], words[one], scores[other], words[other]):
                        rows[k] = one
                        b += 1
                    else:
                        rows[k] = other
                        a += 1
            width *= 2
