"""Label maps as runs of equal pixels: from the filtered rows of PNG files, and from arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.words import _lowest_bit, _word

Array = NDArray[Any]

#: Filters of rows, by the value added to a pixel: 0, the left pixel, the upper pixel, their mean, or whichever of left,
#: upper and upper left is nearest to left + upper - upper left.
NONE, LEFT, UPPER, MEAN, NEAREST = range(5)

#: Number of bytes, and number of pixels, compared at once.
_BYTES, _PIXELS = 32, 16

#: Masks for each byte of a colour: the lower seven bits, the highest bit, and all bits but the lowest.
_LOW, _HIGH, _UPPER_BITS = np.uint32(0x7F7F7F), np.uint32(0x808080), np.uint32(0xFEFEFE)


class Runs(NamedTuple):
    """Runs of equal pixels, row by row: run *i* has the value ``values[i]`` up to the pixel ``ends[i]``."""

    ends: Array
    values: Array


@innermost
def _zeros(data: Array, begin: int, end: int) -> Any:
    """Return the end of the zeros that begin at `begin`, at most `end`; eight bytes after `end` must be readable."""
    i = begin
    while i + _BYTES <= end and (_word(data, i) | _word(data, i + 8) | _word(data, i + 16) | _word(data, i + 24)) == 0:
        i += _BYTES
    while i < end:
        word = _word(data, i)
        if word != 0:
            return min(i + (_lowest_bit(word) >> 3), end)
        i += 8
    return end


@helper
def _nearest(left: Any, upper: Any, corner: Any) -> Any:
    """Return for each byte of a colour whichever of left, upper and corner is nearest to left + upper - corner (Paeth's
    filter).
    """
    out = np.uint32(0)
    for channel in range(3):
        shift = np.uint32(8 * channel)
        a, b, c = (
            np.int64((left >> shift) & np.uint32(255)),
            np.int64((upper >> shift) & np.uint32(255)),
            np.int64((corner >> shift) & np.uint32(255)),
        )
        of_a, of_b, of_c = abs(b - c), abs(a - c), abs(a + b - 2 * c)
        value = a if of_a <= of_b and of_a <= of_c else b if of_b <= of_c else c
        out |= np.uint32(value) << shift
    return out


@innermost
def _expected(kind: int, left: Any, upper: Any, corner: Any) -> Any:
    """Return the value that a filter adds to a pixel."""
    if kind == LEFT:
        return left
    if kind == UPPER:
        return upper
    if kind == MEAN:
        return (left & upper) + (((left ^ upper) & _UPPER_BITS) >> np.uint32(1))
    if kind == NEAREST:
        return left if upper == corner else _nearest(left, upper, corner)
    return np.uint32(0)


@kernel
def unfilter(data: Array, height: int, width: int, channels: int, stop: Array, out: Runs) -> int:
    """Write the runs of the ids ``R + 256 G + 65536 B`` of a PNG file's rows, after a first run that ends at 0.

    Only pixels whose bytes are not 0, or that follow a change in the row above, are computed, because every other pixel
    equals its left neighbour. Returns the number of runs, or -1 for an unknown filter. The kernel returns early once
    `stop` is set.

    Parameters
    ----------
    data : ndarray of uint8, shape (height * (1 + width * channels) + 8,)
        The rows, each after the number of its filter.
    out : Runs
        Of uint32; room for ``1 + height * width`` runs.
    """
    n, above = np.int64(1), np.int64(0)
    out.ends[0], out.values[0] = 0, 0
    for row in range(height):
        begin, base = row * (1 + width * channels), row * width
        kind, first, u = np.int64(data[begin]), n, above
        if kind > NEAREST:
            return -1
        if stop[0]:
            return int(n)
        x, left, corner = np.int64(0), np.uint32(0), np.uint32(0)
        while x < width:
            while np.int64(out.ends[u]) - base + width <= x:
                u += 1
            upper, reach = out.values[u], np.int64(out.ends[u]) - base + width
            at = np.uint64(begin + 1 + x * channels)
            own = np.uint32(data[at]) | np.uint32(data[at + np.uint64(1)]) << np.uint32(8)
            own |= np.uint32(data[at + np.uint64(2)]) << np.uint32(16)
            added = _expected(kind, left, upper, corner)
            value = np.uint32(((own & _LOW) + (added & _LOW)) ^ ((own ^ added) & _HIGH))
            x += 1
            if kind <= LEFT:
                reach = width
            if x < reach and (kind in (LEFT, NEAREST) or value == (upper if kind else np.uint32(0))):
                start = begin + 1 + x * channels
                x += (_zeros(data, start, begin + 1 + reach * channels) - start) // channels
            if n == first or out.values[n - 1] != value:
                out.values[n] = value
                n += 1
            out.ends[n - 1] = base + x
            left, corner = value, upper
        above = first
    return int(n)


@kernel
def runs(pixels: Array, out: Runs) -> int:
    """Write the runs of an array of ids, uint32, shape (n,), and return their number; `out` has room for n runs."""
    n, i, end = np.int64(0), np.int64(0), len(pixels)
    while i < end:
        value = pixels[i]
        i += 1
        while i + _PIXELS <= end:
            other = np.uint32(0)
            for k in range(_PIXELS):
                other |= pixels[np.uint64(i + k)] ^ value
            if other != 0:
                break
            i += _PIXELS
        while i < end and pixels[np.uint64(i)] == value:
            i += 1
        out.ends[n], out.values[n] = i, value
        n += 1
    return int(n)
