"""Read mappings from strings to floats that are encoded as MessagePack."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import innermost, kernel
from detmap.kernels.texts import LENGTH_BITS
from detmap.kernels.words import ALL, HIGHS, NOTHING, ONES, U8, U16, U32, U48, _word

# First bytes of MessagePack's types: map with a 16-bit or 32-bit count, string with an 8-bit or 16-bit length, and
# 64-bit float.
MAP16, MAP32, STRING8, STRING16, DOUBLE = 0xDE, 0xDF, 0xD9, 0xDA, 0xCB

EVEN_BYTES, EVEN_PAIRS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)


@innermost
def _big_endian(data: Any, i: int) -> Any:
    """Return the eight bytes from `i` on as a big-endian integer."""
    word = _word(data, i)
    word = word >> U8 & EVEN_BYTES | (word & EVEN_BYTES) << U8
    word = word >> U16 & EVEN_PAIRS | (word & EVEN_PAIRS) << U16
    return word >> U32 | word << U32


@kernel
def read_mappings(data: Any, starts: Any, numbers: Any, words: Any) -> int:
    """Locate the strings of mappings, and read the floats.

    Parameters
    ----------
    data : (n,) uint8
        The concatenated mappings, followed by at least eight bytes of padding.
    starts : (m + 1,) int64
        Mapping *i* has the rows ``starts[i]:starts[i + 1]``.
    numbers : (rows,) uint64
        Out: the bits of the floats.
    words : (rows,) uint64
        Out: position and length of each string, packed into one word.

    Returns
    -------
    int
        The number of rows read. Reading stops at an unsupported type, at a string with a zero byte or more than 65,535
        bytes, and at a mapping whose number of rows differs from `starts`.
    """
    i, row = 0, 0
    for mapping in range(len(starts) - 1):
        kind = np.int64(data[np.uint64(i)])
        after = _big_endian(data, i + 1)
        if kind >> 4 == 8:
            count, i = kind & 15, i + 1
        elif kind == MAP16:
            count, i = np.int64(after >> U48), i + 3
        elif kind == MAP32:
            count, i = np.int64(after >> U32), i + 5
        else:
            return row
        if count != starts[mapping + 1] - starts[mapping]:
            return row
        for _ in range(count):
            kind = np.int64(data[np.uint64(i)])
            if kind >> 5 == 5:
                length, i = kind & 31, i + 1
            elif kind == STRING8:
                length, i = np.int64(data[np.uint64(i + 1)]), i + 2
            elif kind == STRING16:
                length, i = np.int64(_big_endian(data, i + 1) >> U48), i + 3
            else:
                return row
            zeros = NOTHING
            for k in range(0, length, 8):
                word = _word(data, i + k)
                if length - k < 8:
                    word |= ALL << np.uint64(8 * (length - k))
                zeros |= (word - ONES) & ~word & HIGHS
            if zeros != NOTHING or data[np.uint64(i + length)] != DOUBLE:
                return row
            words[row] = np.uint64(i << LENGTH_BITS | length)
            i += length + 9
            numbers[row] = _big_endian(data, i - 8)
            row += 1
    return row
