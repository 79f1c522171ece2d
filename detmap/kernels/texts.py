"""Strings that are kept when the bytes that they lie among are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from detmap.kernels import innermost, kernel

# As in `scanning`: a string is a word, its first byte's position and then its length in the lower bits.
LENGTH_BITS = 24
ABSENT = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def kept_size(words: Any) -> int:
    """Return how many bytes `keep` copies."""
    size = 0
    for row in range(len(words)):
        if words[row] != ABSENT and (row == 0 or words[row] != words[row - 1]):
            size += np.int64(words[row]) & ((1 << LENGTH_BITS) - 1)
    return size


@innermost
def _copy_eight(data: Any, place: Any, kept: Any, end: Any) -> None:
    """Copy eight bytes: all are read before any is written, so that a compiler makes one load and one store of them."""
    one, two = np.uint64(1), np.uint64(2)
    place, end, four = np.uint64(place), np.uint64(end), np.uint64(4)
    a, b, c, d = data[place], data[place + one], data[place + two], data[place + two + one]
    e, f, g, h = data[place + four], data[place + four + one], data[place + four + two], data[place + four + two + one]
    kept[end], kept[end + one], kept[end + two], kept[end + two + one] = a, b, c, d
    end += four
    kept[end], kept[end + one], kept[end + two], kept[end + two + one] = e, f, g, h


@kernel
def keep(data: Any, words: Any, kept: Any, offset: int) -> None:
    """Copy strings one after the other, and say where they are now. Rows in succession of one word share their copy.

    Parameters
    ----------
    data : (n,) uint8
        Where they lie.
    words : (rows,) uint64
        In and out: position and length of each; all bits are set where a row has none.
    kept : (`kept_size(words)`,) uint8
        Out: the strings.
    offset : int
        What is counted as the position of the first byte of `kept`.
    """
    end, last, copied = 0, ABSENT, ABSENT
    for row in range(len(words)):
        word = words[row]
        if word == ABSENT:
            last = ABSENT
            continue
        if word != last:
            place = np.int64(word) >> LENGTH_BITS
            length = np.int64(word) & ((1 << LENGTH_BITS) - 1)
            k = 0
            while k < length:
                if place + k + 8 <= len(data) and end + k + 8 <= len(kept):
                    _copy_eight(data, place + k, kept, end + k)  # what is too much the next string overwrites
                    k += 8
                else:
                    kept[end + k] = data[place + k]
                    k += 1
            last, copied = word, np.uint64((offset + end) << LENGTH_BITS | length)
            end += length
        words[row] = copied
