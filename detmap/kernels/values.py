"""Find the ends of JSON strings and values, strictly by RFC 8259. Callers check UTF-8 on blocks that are not ASCII."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.numbers import _number
from detmap.kernels.words import (
    FIVE_BYTES,
    FROM_BRACES,
    HIGHS,
    LOW32,
    NOTHING,
    ONES,
    U1,
    _before,
    _blank,
    _byte,
    _load,
    _word,
)

# Maximum depth of nested values.
MAX_DEPTH = 64

QUOTES = np.uint64(0x2222222222222222)
BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
FROM_BRACKETS = np.uint64(0x2525252525252525)  # added to a byte, sets the highest bit for "[" and above
BRACKET, OPENING_BRACE, QUOTE = (np.uint8(ord(c)) for c in '[{"')
SPACES = np.uint64(0x2020202020202020)
TRUE, FALSE, NULL = (np.uint64(int.from_bytes(name, "little")) for name in (b"true", b"false", b"null"))


@helper
def _hexadecimal(c: int) -> int:
    """Return the value of a hexadecimal digit, a large number for other characters."""
    if 48 <= c <= 57:
        return c - 48
    if 97 <= c | 32 <= 102:
        return (c | 32) - 87
    return 1 << 16


@helper
def _string_end(data: Any, i: int) -> int:
    """Return the position after the closing quote of the string whose first character is at `i`, -1 if it is invalid."""
    end = 0
    paired = False  # whether the previous escape was the first half of a surrogate pair
    while end == 0:
        word = _load(data, i)
        quote = word ^ QUOTES
        backslash = word ^ BACKSLASHES
        special = (((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash) | ((word - SPACES) & ~word)) & HIGHS
        # The CPU predicts this branch, and so loads the next eight bytes while it still computes `special`.
        if special == NOTHING and not paired:
            i += 8
            continue
        n = _before(special)
        i += n
        c = _byte(data, i)
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
    """Skip a key and its colon; return the position of the value, -1 if there is no key."""
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
    """Return the end of the JSON value that begins at `i`, -1 if it is invalid or too deep."""
    objects = NOTHING  # a bit per open bracket, 1 for an object; the innermost is the lowest
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


@innermost
def _braces(data: Any, i: int) -> Any:
    """Return a word of eight bytes: 128 where the byte from `i` on is an opening brace or above, else 0."""
    word = _word(data, i)
    return ((word + FROM_BRACES) | word) & HIGHS


@innermost
def _brace_after(data: Any, i: int) -> Any:
    """Return the first place from `i` on of a byte of at least ``{``; the end of `data` if there is none."""
    while i + 32 <= len(data):
        one, two, three, four = _braces(data, i), _braces(data, i + 8), _braces(data, i + 16), _braces(data, i + 24)
        if one | two | three | four != NOTHING:
            # Select the first word with a brace, without branches, which would be unpredictable.
            near, far = one if one != NOTHING else two, three if three != NOTHING else four
            before, beyond = 0 if one != NOTHING else 8, 16 if three != NOTHING else 24
            here = one | two != NOTHING
            return i + (before if here else beyond) + _before(near if here else far)
        i += 32
    while i < len(data) and data[np.uint64(i)] < OPENING_BRACE:
        i += 1
    return i


@helper
def _past_numbers(data: Any, i: int) -> int:
    """Skip 64 bytes at a time while none of them is a quote, an opening bracket, or a byte above a bracket."""
    while i + 64 <= len(data):
        special = np.uint8(0)
        for k in range(64):
            c = data[np.uint64(i) + np.uint64(k)]
            special = np.uint8(special | (c >= BRACKET) | (c == QUOTE))
        if special:
            break
        i += 64
    return i


@helper
def _lists_end(data: Any, i: int, lines: bool, powers: Any) -> int:
    """Return the end of the value that begins at `i`. The function is faster than `_value_end` for lists of numbers and
    for flat objects, because it checks less. In lists of numbers, nulls and flat objects, only brackets are checked, so
    that ``[1 2]`` passes. In an object without inner braces, only the closing brace is looked for. Therefore the reader
    of the object must check that the object ends there.
    """
    begin, depth = i, 0
    if not lines and _byte(data, i) == 123:
        i = _brace_after(data, i + 1)
        if _byte(data, i) == 125:
            return i + 1
    if lines or _byte(data, begin) != 91:
        return _value_end(data, begin, lines, powers)
    while i < len(data):
        word = _load(data, i)
        quote = word ^ QUOTES
        special = ((word + FROM_BRACKETS) | word | ((quote - ONES) & ~quote)) & HIGHS
        if special == NOTHING:
            i = _past_numbers(data, i + 8)
            continue
        i += _before(special)
        c = _byte(data, i)
        if c == 91:
            depth += 1
            if depth > MAX_DEPTH:
                return -1
        elif c == 93:
            depth -= 1
            if depth == 0:
                return i + 1
        elif c == 123:
            i = _brace_after(data, i + 1)
            if _byte(data, i) != 125:
                return _value_end(data, begin, lines, powers)
        elif c == 110 and _load(data, i) & LOW32 == NULL:
            i += 3
        elif c != 101:
            return _value_end(data, begin, lines, powers)
        i += 1
    return -1


@kernel
def skip_value(data: Any, i: int, lines: bool, powers: Any) -> int:
    """Return the end of the JSON value that begins at `i`, -1 if it is invalid or too deep.

    Parameters
    ----------
    data : (n,) uint8
        The document, at least eight bytes.
    i : int
        Position of the value's first byte.
    lines : bool
        Whether a line feed ends a record, and so is not white space.
    powers : uint64
        Powers of ten up to 10**19; then, from index `numbers.POWERS_OF_FIVE` on, the leading 128 bits of each power of
        five, as two words.
    """
    return _value_end(data, i, lines, powers)  # Python cannot call a helper


@kernel
def list_elements(data: Any, places: Any, exact: bool, powers: Any, out: Any, counts: Any) -> int:
    """Find the elements of JSON lists; return their number, or -1 if an element is unsupported.

    Parameters
    ----------
    data : (k,) uint8
        Valid JSON, at least eight bytes.
    places : (n, 2) int64
        The range of each list.
    exact : bool
        Whether elements may be anything. Otherwise objects must have no inner braces, even in strings, and an element
        with a wrong end is only noticed when it is read.
    powers : uint64
        As in `skip_value`.
    out : (m, 2) int64
        Out: the range of each element, as far as there is room.
    counts : (n,) int64
        Out: the number of elements of each list.
    """
    total = 0
    for row in range(len(places)):
        before, i = total, _blank(data, places[row, 0] + 1, False)
        more = _byte(data, i) != 93
        while more:
            end = _value_end(data, i, False, powers) if exact else _lists_end(data, i, False, powers)
            if end < 0:
                return -1
            if total < len(out):
                out[total, 0], out[total, 1] = i, end
            total += 1
            i = _blank(data, end, False)
            more = _byte(data, i) == 44
            if more:
                i = _blank(data, i + 1, False)
        if _byte(data, i) != 93:
            return -1
        counts[row] = total - before
    return total
