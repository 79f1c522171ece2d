"""Convert label maps, from the compressed rows of PNG files or from arrays, to runs of equal pixels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.inflate import HISTORY, SLACK, STEP, Codes, inflate
from detmap.kernels.words import _lowest_bit, _word

Array = NDArray[Any]

#: PNG's row filters, named after the value that each adds to a pixel: 0, the left pixel, the upper pixel, or the mean
#: of both. `NEAREST` adds whichever of left, upper and upper left is nearest to left + upper - upper left.
NONE, LEFT, UPPER, MEAN, NEAREST = range(5)

#: Error codes of files, in addition to `DAMAGED` and `TOO_LONG`: pixels are missing; a row has an unknown filter.
MISSING, UNKNOWN = -3, -4

#: Minimum size of the window in bytes. Larger windows, up to whole files, are not faster.
_WINDOW = 1 << 18

#: Number of bytes, and number of pixels, compared at once.
_BYTES, _PIXELS = 32, 16

#: Bit mask of the three bytes of a colour.
_COLOUR = np.uint64(0xFFFFFF)

#: Bit masks that select, in each byte of a colour, the lower seven bits, the highest bit, and all bits but the lowest.
_LOW, _HIGH, _UPPER_BITS = np.uint32(0x7F7F7F), np.uint32(0x808080), np.uint32(0xFEFEFE)


class Runs(NamedTuple):
    """Runs of equal pixels in row-major order: run *i* has the value ``values[i]`` and ends before pixel ``ends[i]``."""

    ends: Array
    values: Array


class Files(NamedTuple):
    """F PNG files: file *f* has the compressed pixels ``data[begin[f]:end[f]]``, without zlib's header of two bytes, and
    ``height[f]`` rows of ``width[f]`` pixels of ``channels[f]`` bytes.
    """

    data: Array
    begin: Array
    end: Array
    height: Array
    width: Array
    channels: Array


class Scratch(NamedTuple):
    """Memory for decompression: the tables `codes`, and `window`, which holds the latest decompressed rows."""

    codes: Codes
    window: Array


def window(row: int) -> int:
    """Return the size in bytes of the window for rows of `row` bytes."""
    return max(_WINDOW, row + HISTORY + STEP + SLACK + 1)


@innermost
def _zeros(data: Array, begin: int, end: int) -> Any:
    """Return the end of the zero bytes from `begin` on, at most `end`. Eight bytes after `end` must be readable."""
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


@helper
def _unfilter(data: Array, begin: int, base: int, width: int, channels: int, above: int, n: int, out: Runs) -> Any:
    """Write the runs of a row from ``out[n]`` on; return the end of the row's runs in `out`, or `UNKNOWN`.

    The row begins at ``data[begin]``, its first pixel is pixel `base` of the map, and the row above begins in run `above`.
    Only pixels whose bytes are not 0, or that follow a change in the row above, are computed, because every other pixel
    equals its left neighbour.
    """
    kind, first, u = np.int64(data[begin]), n, above
    if kind > NEAREST:
        return UNKNOWN
    x, left, corner = np.int64(0), np.uint32(0), np.uint32(0)
    clear = np.int64(0)  # all bytes of the pixels from x up to `clear`, if any, are known to be 0
    while x < width:
        while np.int64(out.ends[u]) - base + width <= x:
            u += 1
        upper, reach = out.values[u], np.int64(out.ends[u]) - base + width
        own = np.uint32(0) if x < clear else np.uint32(_word(data, begin + 1 + x * channels) & _COLOUR)
        added = _expected(kind, left, upper, corner)
        value = np.uint32(((own & _LOW) + (added & _LOW)) ^ ((own ^ added) & _HIGH))
        x += 1
        if kind <= LEFT:
            reach = width
        if x < reach and (kind in (LEFT, NEAREST) or value == (upper if kind else np.uint32(0))):
            if clear < x:
                start = begin + 1 + x * channels
                zeros = np.uint64(_zeros(data, start, begin + 1 + width * channels) - start)
                # The compiler turns a division by a constant into a multiplication.
                clear = x + np.int64(zeros // np.uint64(3) if channels == 3 else zeros >> np.uint64(2))
            x = min(clear, reach)
        if n == first or out.values[n - 1] != value:
            out.values[n] = value
            n += 1
        out.ends[n - 1] = base + x
        left, corner = value, upper
    return n


@helper
def _decode(files: Files, f: int, scratch: Scratch, stop: Array, out: Runs, n: int) -> Any:
    """Write an empty run and then the runs of file `f`, from ``out[n]`` on; return the end of the runs in `out`, or an
    error code.
    """
    data, window, codes = files.data[files.begin[f] : files.end[f]], scratch.window, scratch.codes
    height, width, channels = files.height[f], files.width[f], files.channels[f]
    size, pause = 1 + width * channels, len(window) - STEP - SLACK
    codes.at[:] = 0
    out.ends[n], out.values[n] = 0, 0
    above, n, row, begin = n, n + 1, np.int64(0), np.int64(0)
    i, end = np.int64(0), height * size
    while True:
        i = inflate(data, codes, window, i, pause, end)
        if i < 0:
            return i
        while begin + size <= i:
            first = n
            n = _unfilter(window, begin, row * width, width, channels, above, n, out)
            if n < 0:
                return n
            above, row, begin = first, row + 1, begin + size
        if stop[0]:
            return n
        if codes.at[1] == 0 and codes.at[2] != 0:
            return n if i == end else MISSING
        moved = max(min(begin, i - HISTORY), 0)
        for k in range(i - moved):
            window[np.uint64(k)] = window[np.uint64(k + moved)]
        i, begin, end = i - moved, begin - moved, end - moved


@kernel
def label_maps(files: Files, first: int, scratch: Scratch, stop: Array, out: Runs, ends: Array) -> int:
    """Write the runs of the ids ``R + 256 G + 65536 B`` of PNG files, one file after the other from file `first` on.

    An empty run, which ends at 0, precedes the runs of each file. The kernel stops at a file that is damaged, at a file
    for which `out` lacks room for a run per pixel, or when `stop` is set. Returns the number of the file at which it
    stopped, or the number of files if it did not stop.

    Parameters
    ----------
    files : Files
        F files.
    scratch : Scratch
        Memory for decompression. Its window has at least ``window(row)`` bytes, where ``row`` is the size of the longest
        row.
    out : Runs
        Receives the runs, as uint32.
    ends : ndarray of int64, shape (F,)
        Receives the end of each file's runs in `out`, or an error code: `DAMAGED`, `TOO_LONG`, `MISSING`, `UNKNOWN`.
    """
    n = np.int64(0)
    for f in range(first, len(files.begin)):
        if n + 1 + files.height[f] * files.width[f] > len(out.ends) or stop[0]:
            return f
        n = np.int64(_decode(files, f, scratch, stop, out, n))
        ends[f] = n
        if n < 0:
            return f
    return len(files.begin)


@kernel
def runs(pixels: Array, out: Runs) -> int:
    """Write the runs of an array of ids, uint32, shape (n,); return the number of runs. `out` has room for n runs."""
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
