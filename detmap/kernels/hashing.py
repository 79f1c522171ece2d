"""Hashes of rows of floats: equal rows have equal hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel

Array = NDArray[Any]


@helper
def _mix(state: Any, word: Any) -> Any:
    """Return the state of a hash after one more word; the shift propagates high bits to low ones."""
    state = (state ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return state ^ (state >> np.uint64(32))


@helper
def _unsigned(word: Any, single: bool) -> Any:
    """Return the bits of a float64, or of two float32 (`single`), with -0 replaced by 0, because -0 equals 0."""
    if not single:
        return np.uint64(0) if word == np.uint64(0x8000000000000000) else word
    low, high = word & np.uint64(0xFFFFFFFF), word & np.uint64(0xFFFFFFFF00000000)
    low = np.uint64(0) if low == np.uint64(0x80000000) else low
    high = np.uint64(0) if high == np.uint64(0x8000000000000000) else high
    return low | high


@kernel
def hash_rows(words: Array, single: bool, begin: int, end: int, out: Array) -> None:
    """Write a hash of each of the rows ``[begin, end)``. A word has the bits of a float64 or, with `single`, of two
    float32.

    The number of words in a row is a multiple of four. Four independent chains hide the latency of each step.
    """
    for i in range(begin, end):
        row = words[i]
        a, b, c, d = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
        for j in range(0, row.size, 4):
            a = _mix(a, _unsigned(row[j], single))
            b = _mix(b, _unsigned(row[j + 1], single))
            c = _mix(c, _unsigned(row[j + 2], single))
            d = _mix(d, _unsigned(row[j + 3], single))
        out[i] = _mix(_mix(_mix(a, b), c), d)
