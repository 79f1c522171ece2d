"""Convert row-major bitmaps to masks, whose runs are column-major, without transposing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.words import _before

Array = NDArray[Any]


_BLOCK = 8  # words per step


@helper
def _changes(above: Array, row: Array, out: Array) -> None:
    """Write 1 where exactly one of two rows has foreground, else 0."""
    for c in range(len(row)):
        out[np.uint64(c)] = min(above[np.uint64(c)], np.uint8(1)) ^ min(row[np.uint64(c)], np.uint8(1))


@helper
def _find_turns(pixels: Array, edges: Array, words: Array, counts: Array, out: Array) -> int:
    """Write, row by row, the (row, column) of every pixel that differs from the pixel above it. Return the number of
    these pixels, or -1 if `out` is full. The pixel above the top of a column is the bottom of the previous column.
    ``counts[c + 1]`` is increased by the number of these pixels in column c. `edges` and `words` are two views of one
    buffer, as bytes and as 64-bit words; the buffer's bytes after the last column must be 0.
    """
    height, width = pixels.shape
    used = 0
    for r in range(height):
        if r:
            _changes(pixels[r - 1], pixels[r], edges)
        else:
            edges[0] = pixels[0, 0] != 0
            _changes(pixels[height - 1, : width - 1], pixels[0, 1:], edges[1:])
        k = 0
        while k < len(words):
            if k + _BLOCK <= len(words):
                some = np.uint64(0)
                for j in range(_BLOCK):
                    some |= words[np.uint64(k + j)]
                if some == 0:
                    k += _BLOCK
                    continue
            word = words[np.uint64(k)]
            if word and used + 8 > len(out):
                return -1
            while word:
                c = 8 * k + _before(word << np.uint64(7))
                word &= word - np.uint64(1)
                out[used, 0], out[used, 1] = r, c
                counts[c + 1] += 1
                used += 1
            k += 1
    return used


@kernel
def runs_of_bitmaps(pixels: Array, begin: int, end: int, out: Array, out_spans: Array) -> int:
    """Write the ends of the runs of the masks ``[begin, end)`` of `pixels`, uint8, shape (n, height, width).

    `out` is filled from its beginning; the ends of mask *i* are ``out[out_spans[i, 0]:out_spans[i, 1]]``. Returns
    `end`, or the first mask *i* for which no room is left; the room that mask *i* needs is written to ``out_spans[i,
    1]``.
    """
    height, width = pixels.shape[1:]
    words = np.zeros((width + 7) // 8, np.uint64)
    edges = words.view(np.uint8)
    turns, used = np.empty((4 * width + 8, 2), np.uint32), np.int64(0)
    starts = np.empty(width + 1, np.int64)
    for i in range(begin, end):
        count = -1
        while count < 0:
            starts[:] = 0
            count = _find_turns(pixels[i], edges, words, starts, turns)
            if count < 0:
                turns = np.empty((4 * len(turns), 2), np.uint32)
        if used + count + 1 > len(out):
            out_spans[i, 1] = count + 1
            return i
        for c in range(1, width):
            starts[c] += starts[c - 1]
        for k in range(count):
            c = np.int64(turns[k, 1])
            out[used + starts[c]] = c * height + np.int64(turns[k, 0])
            starts[c] += 1
        out[used + count] = height * width
        out_spans[i, 0], out_spans[i, 1] = used, used + count + 1
        used += count + 1
    return end
