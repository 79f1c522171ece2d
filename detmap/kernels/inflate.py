"""Decompress deflate (RFC 1951), the compression of PNG files, piece by piece and in bounded memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost
from detmap.kernels.words import BYTE, U1, U2, U3, U4, U5, U6, U7, U8, U16, U24, U32, U40, U48, U56, _load, _word

Array = NDArray[Any]

#: Maximum length in bits of a code that is looked up in a table; longer codes are decoded bit by bit.
BITS = 11

#: Maximum length of a code in bits, and number of symbols in the table of literals and lengths.
LONGEST, SYMBOLS = 15, 288

#: Number of bytes that are copied at once, and number of bytes after the end of the output that may be overwritten.
_AT_ONCE = SLACK = 32

#: Maximum distance of a copy, and maximum number of bytes that one step (a copy or an uncompressed block) adds.
HISTORY, STEP = 1 << 15, (1 << 16) - 1

#: Status codes of `inflate` for damaged data, and for data that exceeds the output.
DAMAGED, TOO_LONG = -1, -2

_LENGTHS = np.array(
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258],
    np.int64,
)
_LENGTH_BITS = np.array([0] * 8 + [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4 + [5] * 4 + [0], np.int64)
_DISTANCES = np.array(
    [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
     8193, 12289, 16385, 24577],
    np.int64,
)  # fmt: skip
_DISTANCE_BITS = np.array([0, 0] + [n // 2 for n in range(28)], np.int64)
_ORDER = np.array([16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], np.int64)


class Codes(NamedTuple):
    """Memory for two tables of codes: one for literals and lengths, one for distances.

    ``fast``, shape (2, 2 ** BITS), maps the next `BITS` bits to ``16 * symbol + length of its code``, or to 0 for a
    longer code. ``counts``, shape (2, 16), has the number of codes of each length, and ``symbols``, shape (2, 288), the
    symbols in the order of their codes. ``lengths``, shape (320,), has the code lengths of a block. ``at``, shape (3,),
    has the position of the next bit, and two flags (0 or 1): whether this position is within a compressed block, and
    whether the header of the last block has been read.
    """

    fast: Array
    counts: Array
    symbols: Array
    lengths: Array
    at: Array


def codes() -> Codes:
    """Return memory for tables of codes."""
    return Codes(
        np.empty((2, 1 << BITS), np.int32), np.empty((2, 16), np.int32), np.empty((2, SYMBOLS), np.int32),
        np.empty(320, np.int32), np.zeros(3, np.int64),
    )  # fmt: skip


@innermost
def _put(out: Array, i: int, word: int) -> None:
    """Write eight bytes from `i` on, in little-endian order."""
    j = np.uint64(i)
    out[j] = word & BYTE
    out[j + U1] = (word >> U8) & BYTE
    out[j + U2] = (word >> U16) & BYTE
    out[j + U3] = (word >> U24) & BYTE
    out[j + U4] = (word >> U32) & BYTE
    out[j + U5] = (word >> U40) & BYTE
    out[j + U6] = (word >> U48) & BYTE
    out[j + U7] = (word >> U56) & BYTE


@innermost
def _bits(data: Array, at: Array, count: int) -> Any:
    """Read `count` bits, at most 32."""
    word = _load(data, at[0] >> 3) >> np.uint64(at[0] & 7)
    at[0] += count
    return np.int64(word & ((U1 << np.uint64(count)) - U1))


@helper
def _make_table(codes: Codes, which: int, first: int, number: int) -> Any:
    """Make a table from ``lengths[first:first + number]``; return 0, or `DAMAGED` if no code has these lengths."""
    counts, symbols, fast = codes.counts[which], codes.symbols[which], codes.fast[which]
    counts[:] = 0
    fast[:] = 0
    for k in range(number):
        counts[codes.lengths[first + k]] += 1
    left, used = 1, 0
    for length in range(1, LONGEST + 1):
        left = 2 * left - counts[length]
        used += counts[length]
        if left < 0:
            return DAMAGED
    if left > 0 and used > 1:  # an incomplete code is only valid for a single symbol
        return DAMAGED
    code, place = 0, 0
    for length in range(1, LONGEST + 1):
        code <<= 1
        if counts[length] == 0:
            continue
        for k in range(number):
            if codes.lengths[first + k] != length:
                continue
            symbols[place] = k
            place += 1
            if length <= BITS:
                reverse = 0
                for bit in range(length):
                    reverse |= ((code >> bit) & 1) << (length - 1 - bit)
                for entry in range(reverse, 1 << BITS, 1 << length):
                    fast[entry] = k << 4 | length
            code += 1
    return 0


@helper
def _long_symbol(codes: Codes, which: int, word: int) -> Any:
    """Return ``16 * symbol + length of its code`` for the code in the lowest bits of `word`, `DAMAGED` if none matches."""
    code, first, place = np.int64(0), np.int64(0), np.int64(0)
    for length in range(1, LONGEST + 1):
        code |= np.int64(word >> np.uint64(length - 1)) & 1
        count = np.int64(codes.counts[which, length])
        if code - count < first:
            return np.int64(codes.symbols[which, place + code - first]) << 4 | length
        place += count
        first = (first + count) << 1
        code <<= 1
    return DAMAGED


@innermost
def _symbol(codes: Codes, which: int, word: int) -> Any:
    found = np.int64(codes.fast[which, word & np.uint64((1 << BITS) - 1)])
    return found if found != 0 else _long_symbol(codes, which, word)


@helper
def _read_lengths(data: Array, codes: Codes) -> Any:
    """Read the code lengths of a block and make both tables; return 0, or `DAMAGED`."""
    literals, distances, number = (
        _bits(data, codes.at, 5) + 257,
        _bits(data, codes.at, 5) + 1,
        _bits(data, codes.at, 4) + 4,
    )
    if literals > 286 or distances > 30:
        return DAMAGED
    for k in range(19):
        codes.lengths[k] = 0
    for k in range(number):
        codes.lengths[_ORDER[k]] = _bits(data, codes.at, 3)
    if _make_table(codes, 0, 0, 19) != 0:
        return DAMAGED
    k, total = 0, literals + distances
    while k < total:
        found = _symbol(codes, 0, _load(data, codes.at[0] >> 3) >> np.uint64(codes.at[0] & 7))
        if found < 0:
            return DAMAGED
        codes.at[0] += found & 15
        symbol, value, times = found >> 4, np.int32(0), 1
        if symbol < 16:
            value = np.int32(symbol)
        elif symbol == 16:
            if k == 0:
                return DAMAGED
            value, times = codes.lengths[k - 1], 3 + _bits(data, codes.at, 2)
        else:
            times = 3 + _bits(data, codes.at, 3) if symbol == 17 else 11 + _bits(data, codes.at, 7)
        if k + times > total:
            return DAMAGED
        for _ in range(times):
            codes.lengths[k] = value
            k += 1
    if codes.lengths[256] == 0 or _make_table(codes, 0, 0, literals) != 0:
        return DAMAGED
    return np.int64(_make_table(codes, 1, literals, distances))


@helper
def _fixed(codes: Codes) -> Any:
    """Make the tables of a block with fixed codes."""
    for k in range(SYMBOLS):
        codes.lengths[k] = 8 if k < 144 or k >= 280 else 9 if k < 256 else 7
    for k in range(SYMBOLS, SYMBOLS + 32):  # two of these codes are invalid; their symbols are refused when they occur
        codes.lengths[k] = 5
    _make_table(codes, 0, 0, SYMBOLS)
    return np.int64(_make_table(codes, 1, SYMBOLS, 32))


@innermost
def _copy(out: Array, i: int, distance: int, length: int) -> None:
    """Copy `length` bytes to `i` from `distance` bytes before `i`. Source and target may overlap. Up to `SLACK` bytes
    after the target are overwritten.
    """
    if distance == 1:
        value = out[i - 1]
        for k in range(length):
            out[np.uint64(i + k)] = value
    elif distance >= _AT_ONCE:
        for k in range(0, length, _AT_ONCE):
            j = i + k - distance
            first, second, third, fourth = _word(out, j), _word(out, j + 8), _word(out, j + 16), _word(out, j + 24)
            _put(out, i + k, first)
            _put(out, i + k + 8, second)
            _put(out, i + k + 16, third)
            _put(out, i + k + 24, fourth)
    elif distance >= 8:
        for k in range(0, length, 8):
            _put(out, i + k, _word(out, i + k - distance))
    else:
        for k in range(length):
            out[np.uint64(i + k)] = out[np.uint64(i + k - distance)]


@helper
def _stored(data: Array, codes: Codes, out: Array, i: int, end: int) -> Any:
    """Copy an uncompressed block; return the end of the output, or an error code."""
    begin = (codes.at[0] + 7) >> 3
    if begin + 4 > len(data):
        return DAMAGED
    length = np.int64(data[begin]) | np.int64(data[begin + 1]) << 8
    if length ^ 0xFFFF != np.int64(data[begin + 2]) | np.int64(data[begin + 3]) << 8 or begin + 4 + length > len(data):
        return DAMAGED
    if i + length > end:
        return TOO_LONG
    for k in range(length):
        out[i + k] = data[begin + 4 + k]
    codes.at[0] = (begin + 4 + length) << 3
    return i + length


@helper
def _block(data: Array, codes: Codes, out: Array, i: int, pause: int, end: int) -> Any:
    """Decompress with the current tables until the block ends or the output has `pause` bytes; return the end of the
    output, or an error code.
    """
    at, last = codes.at[0], len(data) << 3
    while i < pause:
        if at > last:
            return DAMAGED
        word = _load(data, at >> 3) >> np.uint64(at & 7)
        found = _symbol(codes, 0, word)
        if found < 0:
            return DAMAGED
        used = found & 15
        symbol = found >> 4
        if symbol < 256:
            if i >= end:
                return TOO_LONG
            out[np.uint64(i)] = symbol
            i, at = i + 1, at + used
            continue
        if symbol == 256:
            codes.at[0], codes.at[1] = at + used, 0
            return i if at + used <= last else DAMAGED
        if symbol > 285:
            return DAMAGED
        more = _LENGTH_BITS[symbol - 257]
        length = _LENGTHS[symbol - 257] + np.int64((word >> np.uint64(used)) & ((U1 << np.uint64(more)) - U1))
        used += more
        found = _symbol(codes, 1, word >> np.uint64(used))
        if found < 0 or found >> 4 > 29:
            return DAMAGED
        used += found & 15
        more = _DISTANCE_BITS[found >> 4]
        distance = _DISTANCES[found >> 4] + np.int64((word >> np.uint64(used)) & ((U1 << np.uint64(more)) - U1))
        if distance > i:
            return DAMAGED
        if i + length > end:
            return TOO_LONG
        _copy(out, i, distance, length)
        i, at = i + length, at + used + more
    codes.at[0] = at
    return i


@helper
def inflate(data: Array, codes: Codes, out: Array, i: int, pause: int, end: int) -> Any:
    """Decompress more of `data`, until the output has `pause` bytes or the data ends.

    Returns the end of the output, or `DAMAGED` or `TOO_LONG`. The data has ended if ``codes.at[1:]`` is (0, 1).

    Parameters
    ----------
    data : ndarray of uint8, shape (n,)
        At least eight bytes.
    codes : Codes
        Scratch memory. ``codes.at`` is 0 before the first call.
    out : ndarray of uint8, shape (m,)
        Before `i`, the whole output so far, or at least its last `HISTORY` bytes. Bytes up to ``pause + STEP + SLACK``
        may be overwritten.
    i, pause, end : int
        The end of the output so far; the length of output at which to return; the maximum length of output.
    """
    while i < pause:
        if codes.at[1] == 0:
            if codes.at[2] != 0:
                return i
            if codes.at[0] >> 3 >= len(data):
                return DAMAGED
            codes.at[2] = _bits(data, codes.at, 1)
            kind = _bits(data, codes.at, 2)
            if kind == 0:
                i = _stored(data, codes, out, i, end)
                if i < 0:
                    return i
                continue
            if kind == 3 or (_fixed(codes) if kind == 1 else _read_lengths(data, codes)) != 0:
                return DAMAGED
            codes.at[1] = 1
        i = _block(data, codes, out, i, pause, end)
        if i < 0:
            return i
    return i
