"""Strings that are kept when the bytes that they lie among are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import kernel

# As in `scanning`: a string is a word, its first byte's position and then its length in the lower bits.
LENGTH_BITS = 24
ABSENT = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def keep(data: Any, words: Any, kept: Any, offset: int) -> None:
    """Copy strings one after the other, and say where they are now.

    Parameters
    ----------
    data : (n,) uint8
        Where they lie.
    words : (rows,) uint64
        In and out: position and length of each; all bits are set where a row has none.
    kept : (m,) uint8
        Out: the strings; `m` is the sum of their lengths.
    offset : int
        What is counted as the position of the first byte of `kept`.
    """
    end = 0
    for row in range(len(words)):
        word = words[row]
        if word == ABSENT:
            continue
        place = np.int64(word) >> LENGTH_BITS
        length = np.int64(word) & ((1 << LENGTH_BITS) - 1)
        for k in range(length):
            kept[end + k] = data[place + k]
        words[row] = np.uint64((offset + end) << LENGTH_BITS | length)
        end += length
