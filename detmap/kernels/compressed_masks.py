"""Kernels that read or write compressed strings of masks directly: areas, boxes, overlaps and unions from strings, and
strings from bitmaps and polygons.

`detmap.kernels.masks` does the same in several steps. These kernels serve frequent calls with few masks, such as calls
of pycocotools' functions, where a mask is stored only as its string. The parameter ``text`` has the string of every
mask, followed by a NUL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.masks import _WORD, _mask_ious, _measure, _merge_all, _number, _read_string, _words, _write_string
from detmap.kernels.polygons import _LANES, _count_crossings, _draw

Array = NDArray[Any]

#: Status codes of kernels that otherwise return the index of a mask. `FINE` means success. `FLAT` means that a mask of
#: height 0 has foreground. `UNEQUAL` means that the runs of two masks have different sums.
FINE, FLAT, UNEQUAL = -1, -2, -3

#: Maximum number of crossings of a polygon; polygons with more crossings are left to the caller.
MOST_CROSSINGS = 1 << 26


@kernel
def areas_of_strings(text: bytes, out: Array) -> int:
    """Write the area of each mask; return the first mask whose string is truncated, or `FINE`."""
    p = 0
    for i in range(len(out)):
        area, inside = np.int64(0), np.int64(0)
        while text[np.uint64(p)]:
            _, p = _number(text, p)
            if p < 0:
                return i
            if not text[np.uint64(p)]:
                break
            value, p = _number(text, p)
            if p < 0:
                return i
            inside += value
            area += inside
        out[i] = area & _WORD
        p += 1
    return FINE


@kernel
def boxes_of_strings(text: bytes, spans: Array, out: Array) -> int:
    """Write the box of each mask; return `FINE`, `FLAT`, or the index of the first mask whose string is truncated.

    Columns 2 and 3 of `spans` are height and width; columns 0 and 1 are scratch.
    """
    ends, p = np.empty(len(text), np.uint32), 0
    for i in range(len(out)):
        p, stop = _read_string(text, p, ends, 0)
        if p < 0:
            return i
        p += 1
        spans[i, 0], spans[i, 1] = 0, stop
        area, _ = _measure(ends, spans[i], out[i])
        if area and spans[i, 2] == 0:
            return FLAT
    return FINE


@kernel
def ious_of_strings(text: bytes, spans: Array, crowd: Array, out: Array) -> int:
    """Write the overlap of every object with every detection, shape (g, d), as `detmap.kernels.masks.mask_ious` does.

    Returns `FINE`, `FLAT`, or the index of the first mask whose string is truncated. If an overlap is NaN, returns
    `UNEQUAL`. `spans` is as in `boxes_of_strings`.
    """
    count = len(spans)
    ends, p, first = np.empty(len(text), np.uint32), 0, 0
    areas, boxes, regular = np.empty(count, np.uint32), np.empty((count, 4)), np.empty(count, np.bool_)
    for i in range(count):
        p, stop = _read_string(text, p, ends, first)
        if p < 0:
            return i
        p += 1
        spans[i, 0], spans[i, 1] = first, stop
        first = stop
        areas[i], regular[i] = _measure(ends, spans[i], boxes[i])
        if areas[i] and spans[i, 2] == 0:
            return FLAT
    _mask_ious(ends, spans, areas, boxes, regular, crowd, 0, out)
    for g in range(len(out)):
        for d in range(out.shape[1]):
            if np.isnan(out[g, d]):
                return UNEQUAL
    return FINE


@kernel
def merge_strings(text: bytes, count: int, both: bool, out: Array) -> int:
    """Write the string of the union of `count` masks of one size, or of their intersection if `both` is true. `out` has
    room for seven characters per byte of `text`. Returns the length of the written string. Returns -1 if a string of
    `text` is truncated, one of several masks has no run, or the runs of the masks have different sums.
    """
    ends, spans, p, room = np.empty(len(text), np.uint32), np.empty((count, 4), np.int64), 0, 0
    for i in range(count):
        p, stop = _read_string(text, p, ends, room)
        if p < 0 or (stop == room and count > 1):
            return -1
        p += 1
        spans[i, 0], spans[i, 1] = room, stop
        room = stop
    if count == 1:
        return _write_string(ends, 0, room, out, 0)
    words, scratch = np.empty(_words(ends, spans), np.uint64), np.empty((2, room + 1), np.uint32)
    runs = _merge_all(ends, spans, both, words, scratch)
    return _write_string(scratch[0], 0, runs, out, 0) if runs >= 0 else -1


# ---------------------------------------------------------------------------------------------------------- to strings
# Strings are written consecutively to `out`, and their ends to `out_stops`. A kernel begins with mask `begin` and returns
# the first mask for which room may be lacking; the room that this mask needs is written to its element of `out_stops`.


@kernel
def strings_of_lengths(lengths: Array, stops: Array, begin: int, out: Array, out_stops: Array) -> int:
    """Write the string of each mask *i* from its run lengths ``lengths[stops[i - 1]:stops[i]]``, uint32, whose sums wrap
    at 32 bits.
    """
    p, ends = 0, np.empty(len(lengths), np.uint32)
    for i in range(begin, len(stops)):
        first, total = stops[i - 1] if i else 0, np.int64(0)
        out_stops[i] = 7 * (stops[i] - first)
        if p + out_stops[i] > len(out):
            return i
        for m in range(first, stops[i]):
            total = (total + np.int64(lengths[m])) & _WORD
            ends[m] = total
        p = _write_string(ends, first, stops[i], out, p)
        out_stops[i] = p
    return len(stops)


@kernel
def strings_of_polygons(
    points: Array, stops: Array, height: int, width: int, begin: int, out: Array, out_stops: Array
) -> int:
    """Write the strings of polygons with the vertices ``points[stops[i - 1]:stops[i]]``, drawn as in
    `detmap.kernels.polygons`.

    Returns -1 if a polygon has a vertex that is NaN or too far away, or too many crossings.
    """
    p, span = 0, np.array([0, 0, height, width])
    for i in range(begin, len(stops)):
        span[0], span[1] = stops[i - 1] if i else 0, stops[i]
        crossings = _count_crossings(points, span)
        if crossings < 0 or crossings > MOST_CROSSINGS:
            return -1
        out_stops[i] = 7 * (crossings + 1)
        if p + out_stops[i] > len(out):
            return i
        vertices, rows = np.empty((3, span[1] - span[0]), np.int32), np.empty(crossings + _LANES, np.int32)
        ordered, starts = np.empty(crossings, np.int32), np.empty(crossings + 2, np.int64)
        ends = np.empty(crossings + 1, np.uint32)
        p = _write_string(ends, 0, _draw(points, span, vertices, rows, ordered, starts, ends, 0), out, p)
        out_stops[i] = p
    return len(stops)


_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_HIGH = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)  # multiplied by a byte, repeats the byte eight times
_BLOCK = 8  # words compared at a time


@helper
def _find_changes(pixels: Array, words: Array, first: int, size: int, out: Array) -> Any:
    """Write the position, relative to `first`, of every byte that differs from the byte before, and finally `size`.
    Return the number of positions written. The byte before the first counts as 0. `words` is a view of `pixels` as
    uint64. Up to eight further elements of `out` are overwritten.
    """
    p, stop, m, before = first, first + size, 0, np.uint8(0)
    while p < stop:
        if p & 7 or p + 8 > stop:
            if pixels[p] != before:
                out[m] = p - first
                m += 1
            before = pixels[p]
            p += 1
            continue
        k, last = p >> 3, np.uint64(before)
        while k < stop >> 3:
            alike = last * _ONES
            if k + _BLOCK <= stop >> 3:
                differ = np.uint64(0)
                for j in range(_BLOCK):
                    differ |= words[np.uint64(k + j)] ^ alike
                if differ == 0:
                    k += _BLOCK
                    continue
            word = words[np.uint64(k)]
            if word != alike:
                differ = word ^ ((word << np.uint64(8)) | last)
                differ = (((differ & _LOW) + _LOW) | differ) & _HIGH  # the highest bit of each non-zero byte
                at = 8 * k - first
                for byte in range(8):
                    out[np.uint64(m)] = at + byte
                    m += np.int64((differ >> np.uint64(8 * byte + 7)) & np.uint64(1))
                last = word >> np.uint64(56)
            k += 1
        before = np.uint8(last)
        p = stop & ~7
    out[m] = size
    return m + 1


@kernel
def strings_of_bitmaps(pixels: Array, words: Array, size: int, begin: int, out: Array, out_stops: Array) -> int:
    """Write the strings of column-major bitmaps of `size` bytes each; `words` is a view of `pixels` as uint64.

    A run ends wherever the byte changes, as in pycocotools.
    """
    p, ends = 0, np.empty(size + 9, np.uint32)
    for i in range(begin, len(out_stops)):
        count = _find_changes(pixels, words, i * size, size, ends)
        out_stops[i] = 7 * count
        if p + out_stops[i] > len(out):
            return i
        p = _write_string(ends, 0, count, out, p)
        out_stops[i] = p
    return len(out_stops)
