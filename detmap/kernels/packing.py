"""Pack matrices of one byte per bit into eight bits per byte, as `numpy.packbits` does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.words import U1, U56, _word

Array = NDArray[Any]

_ONES = np.uint64(0x0101010101010101)
_U9, _U18, _U36 = np.uint64(9), np.uint64(18), np.uint64(36)

#: Properties of a matrix, see `pack_bytes`.
ZEROS_AND_ONES, SIGNS = 1, 2


@kernel
def pack_bytes(values: Array, bits: int, begin: int, end: int, out: Array) -> int:
    """Pack the rows ``[begin, end)`` of a matrix with `bits` bytes per row: a byte of 1 becomes a set bit, and any other
    byte a clear bit.

    Returns `ZEROS_AND_ONES` if every byte is 0 or 1, plus `SIGNS` if every byte is 1 or 255 (-1 as int8); 0 if neither
    is true.
    """
    whole, others, same = bits // 8, np.uint64(0), np.uint64(0)
    for row in range(begin, end):
        first = row * bits
        for k in range(whole):
            word = _word(values, first + 8 * k)
            one = word & ~(word >> U1) & _ONES
            # the bits of eight bytes are gathered in the highest byte, the first byte's bit highest
            bytes_ = one | (one << _U9)
            bytes_ |= bytes_ << _U18
            bytes_ |= bytes_ << _U36
            out[row, k] = np.uint8(bytes_ >> U56)
            others |= word & ~_ONES
            same |= word ^ (one | ((one ^ _ONES) * np.uint64(255)))
        byte = np.uint8(0)
        for i in range(8 * whole, bits):
            value = values[first + i]
            if value == 1:
                byte |= np.uint8(128 >> (i & 7))
            others |= np.uint64(value > 1)
            same |= np.uint64(value != 1 and value != 255)
        if bits & 7:
            out[row, whole] = byte
    return (ZEROS_AND_ONES if others == 0 else 0) + (SIGNS if same == 0 else 0)
