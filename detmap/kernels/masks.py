"""Masks as runs: conversion from and to strings and bitmaps, sizes, overlaps and unions.

A mask is read column by column, pixel (row, column) being number ``column * height + row``. Its runs alternate between
background and foreground, background first. All masks of a column share one array ``ends``, uint32, which holds for
every run the number of the pixel after the run. Row *i* of ``spans`` (int64, shape (n, 4)) holds the range of mask *i*
in ``ends``, and the height and width of the mask.

A mask is *regular* if no run except the first is empty and no end wraps around at 32 bits, so that its ends ascend
strictly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel

Array = NDArray[Any]

_WORD = 0xFFFFFFFF  # lengths and sums are 32 bits, as in pycocotools' C code
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


# ------------------------------------------------------------------------------------------------------------- strings
# A number is written as groups of five bits, the lowest first, one character each (the group plus 48). The bit of value
# 32 is set if another group follows; in the last group the bit of value 16 is the sign. From the fourth number on, the
# difference from the number two before is written instead.


@innermost
def _number(text: Any, p: int) -> Any:
    """Return the number at `p` and its end; the end is -1 if the text is truncated. Shifts wrap around at 32 bits, as
    in pycocotools.
    """
    c = np.int64(text[np.uint64(p)]) - 48
    p += 1
    value = ((c & 31) ^ 16) - 16
    if c & 32:
        value, shift = c & 31, np.int64(5)
        while c & 32:
            c = np.int64(text[np.uint64(p)]) - 48
            p += 1
            value |= (c & 31) << shift
            shift = (shift + 5) & 31
        if c == -48:
            return np.int64(0), np.int64(-1)
        value |= -((c >> 4) & 1) << shift
    return value, p


@helper
def _read_string(text: Any, p: int, out: Array, at: int) -> Any:
    """Decode the NUL-terminated string at `p`, and write the ends of its runs from ``out[at]`` on. Returns the position
    of the NUL (-1 if the text is truncated), and the end of the output. Numbers are read in pairs, because each is
    stored as the difference from the number two before.
    """
    m, total, outside, inside = at, np.int64(0), np.int64(0), np.int64(0)
    while text[np.uint64(p)]:
        value, p = _number(text, p)
        if p < 0:
            break
        outside = (value + (outside if m > at + 2 else 0)) & _WORD
        total += outside
        out[np.uint64(m)] = total & _WORD
        m += 1
        if not text[np.uint64(p)]:
            break
        value, p = _number(text, p)
        if p < 0:
            break
        inside = (value + inside) & _WORD
        total += inside
        out[np.uint64(m)] = total & _WORD
        m += 1
    return p, m


@kernel
def decode_strings(text: Array, at: int, begin: int, end: int, out_ends: Array, out_spans: Array) -> int:
    """Write the ends and the spans (columns 0 and 1) of the masks ``[begin, end)``, whose strings begin at ``text[at]``.

    Each string ends with a NUL. The ends of a mask's runs are written to `out_ends` from the index at which its string
    begins in `text`. Returns the first mask whose string is truncated, or -1.
    """
    p = at
    for i in range(begin, end):
        first = p
        p, stop = _read_string(text, p, out_ends, first)
        if p < 0:
            return i
        out_spans[i, 0], out_spans[i, 1] = first, stop
        p += 1
    return -1


@helper
def _write_string(ends: Array, first: int, stop: int, out: Array, p: int) -> int:
    """Write the string of a mask from ``out[p]``, at most 7 characters per run; return its end."""
    before, last, behind = 0, 0, 0
    for m in range(first, stop):
        length = (np.int64(ends[m]) - behind) & _WORD
        behind = np.int64(ends[m])
        value = length - (before if m > first + 2 else 0)
        before, last = last, length
        while value > 15 or value < -16:
            out[p] = ((value & 31) | 32) + 48
            value >>= 5
            p += 1
        out[p] = (value & 31) + 48
        p += 1
    return p


@kernel
def encode_strings(ends: Array, spans: Array, begin: int, end: int, at: int, out: Array, out_stops: Array) -> None:
    """Write the strings of the masks ``[begin, end)`` one after the other from ``out[at]``; at most 7 characters a run."""
    p = at
    for i in range(begin, end):
        p = _write_string(ends, spans[i, 0], spans[i, 1], out, p)
        out_stops[i] = p


# ------------------------------------------------------------------------------------------------------------- bitmaps


@helper
def _fills(ends: Array, span: Array, size: int) -> bool:
    """Return whether the runs of a mask add up to `size` pixels, and no sum wraps around."""
    behind = 0
    for m in range(span[0], span[1]):
        here = np.int64(ends[m])
        if here < behind:
            return False
        behind = here
    return behind == size and span[1] > span[0]


@kernel
def draw_runs(ends: Array, spans: Array, begin: int, end: int, out: Array) -> int:
    """Set the foreground of the masks ``[begin, end)`` to 1 in `out`, shape (n, p). Row *i* of `out` holds the pixels of
    mask *i* column by column, and must be 0 initially.

    Stops at the first mask whose runs do not add up to p pixels, and returns its index; else returns -1.
    """
    for i in range(begin, end):
        if not _fills(ends, spans[i], out.shape[1]):
            return i
        for m in range(spans[i, 0] + 1, spans[i, 1], 2):
            for p in range(ends[m - 1], ends[m]):
                out[i, p] = 1
    return -1


@kernel
def first_unfilled(ends: Array, spans: Array, begin: int, end: int) -> int:
    """Return the first of the masks ``[begin, end)`` whose runs do not add up to height times width, or -1."""
    for i in range(begin, end):
        if not _fills(ends, spans[i], spans[i, 2] * spans[i, 3]):
            return i
    return -1


# ---------------------------------------------------------------------------------------------------------------- size


@helper
def _measure_regular(ends: Array, span: Array, out_box: Array) -> Any:
    """Write the box of a regular mask of at least two runs, and return its area; return -1 if the mask is not regular.
    Runs are read in pairs, foreground and then background.
    """
    first, stop, height = span[0], span[1], span[2]
    start = np.int64(ends[first])
    left, right, row = start // height, np.int64(0), start % height
    top, bottom, area, least = height, np.int64(0), np.int64(0), np.int64(1)
    for m in range(first + 1, stop, 2):
        right = np.int64(ends[m])
        behind = np.int64(ends[m + 1]) if m + 1 < stop else right + 1
        length, gap = right - start, behind - right
        least = min(least, min(length, gap))
        area += length
        top, row = min(top, row), row + length
        bottom, row = max(bottom, row), row + gap
        row -= height * (row >= height)  # a product instead of a branch, because ends of columns are hard to predict
        if row >= height:
            row %= height
        start = behind
    if least <= 0:
        return np.int64(-1)
    if bottom > height:  # a run continues in the next column
        top, bottom = np.int64(0), height
    left = min(left, span[3])
    out_box[0], out_box[2] = left, ((right - 1) // height - left + 1) & _WORD
    out_box[1], out_box[3] = top, bottom - top
    return area


@helper
def _measure_slowly(ends: Array, span: Array, out_box: Array) -> Any:
    """Write the box of any mask; return its area, and whether it is regular. A last run of background is ignored."""
    first, stop, height = span[0], span[1], max(span[2], 1)
    area, regular, behind = 0, True, 0
    left, right, top, bottom = span[3] & _WORD, 0, span[2] & _WORD, 0
    column, row = 0, 0  # of the pixel at `behind`
    for m in range(first, stop):
        here = np.int64(ends[m])
        regular = regular and (here > behind or m == first)
        length = (here - behind) & _WORD
        start_column, start_row = column, row
        row += length
        if row >= 2 * height or here < behind:  # `here` is below `behind` if a sum has wrapped around
            column, row = here // height, here % height
        elif row >= height:
            column, row = column + 1, row - height
        behind = here
        if (m - first) & 1 and length:
            area += length
            last_column, last_row = (column, row - 1) if row else (column - 1, height - 1)
            if here == 0:
                last_column, last_row = _WORD // height, _WORD % height
            left, right = min(left, start_column), max(right, last_column)
            if start_column < last_column:
                top, bottom = 0, height - 1
            else:
                top, bottom = min(top, start_row), max(bottom, last_row)
    paired = stop - first >= 2
    out_box[0], out_box[2] = left * paired, ((right - left + 1) & _WORD) * paired
    out_box[1], out_box[3] = top * paired, ((bottom - top + 1) & _WORD) * paired
    return area & _WORD, regular


@helper
def _measure(ends: Array, span: Array, out_box: Array) -> Any:
    """Write the box of a mask; return its area, and whether it is regular."""
    if span[1] - span[0] >= 2 and 0 < span[2] <= _WORD and span[3] <= _WORD:
        area = _measure_regular(ends, span, out_box)
        if area >= 0:
            return area, True
    area, regular = _measure_slowly(ends, span, out_box)
    return area, regular


@kernel
def measure_runs(
    ends: Array, spans: Array, begin: int, end: int, out_areas: Array, out_boxes: Array, out_regular: Array
) -> None:
    """Write the areas and boxes (x, y, width, height) of the masks ``[begin, end)``, and whether each mask is regular.

    The box of a mask with fewer than two runs is 0, 0, 0, 0. If all foreground runs are empty, the box is the
    meaningless box that pycocotools returns.
    """
    for i in range(begin, end):
        out_areas[i], out_regular[i] = _measure(ends, spans[i], out_boxes[i])


# ------------------------------------------------------------------------------------------------------------- overlap


@helper
def _first_behind(ends: Array, first: int, stop: int, position: int) -> int:
    """Return the index of the first foreground run that ends after `position`, among runs from `first` to `stop`."""
    low, high = 0, (stop - first) // 2
    while low < high:
        middle = (low + high) // 2
        if ends[first + 2 * middle + 1] > position:
            high = middle
        else:
            low = middle + 1
    return first + 2 * low + 1


@helper
def _intersection(ends: Array, one: Array, other: Array) -> int:
    """Return how many pixels two regular masks share."""
    a, a_stop, b, b_stop = one[0], one[1], other[0], other[1]
    if a_stop - a < 2 or b_stop - b < 2:
        return 0
    start = max(ends[a], ends[b])
    a, b = _first_behind(ends, a, a_stop, start), _first_behind(ends, b, b_stop, start)
    shared = 0
    while a < a_stop and b < b_stop:
        a_end, b_end = np.int64(ends[a]), np.int64(ends[b])
        inside = min(a_end, b_end) - max(np.int64(ends[a - 1]), np.int64(ends[b - 1]))
        shared += max(inside, 0)
        a += 2 * (a_end <= b_end)
        b += 2 * (b_end <= a_end)
    return shared


@helper
def _length(ends: Array, first: int, m: int) -> Any:
    """Return the length of run `m` of the mask whose first run is `first`."""
    return (np.int64(ends[m]) - (np.int64(ends[m - 1]) if m > first else 0)) & _WORD


@helper
def _iou_by_runs(ends: Array, one: Array, other: Array, area: int) -> Any:
    """Return the IoU of two masks. If `area` is not -1, return their intersection divided by `area`. Runs are walked as
    in pycocotools, which also stops where the next runs of both masks are empty. Return NaN where pycocotools would
    loop forever.
    """
    a, b = one[0] + 1, other[0] + 1
    left, right = _length(ends, one[0], one[0]), _length(ends, other[0], other[0])
    in_a, in_b, shared, union = False, False, 0, 0
    while True:
        step = min(left, right)
        union += step * (in_a or in_b)
        shared += step * (in_a and in_b)
        left, right = left - step, right - step
        moved = step > 0
        if left == 0 and a < one[1]:
            left, a, in_a, moved = _length(ends, one[0], a), a + 1, not in_a, True
        if right == 0 and b < other[1]:
            right, b, in_b, moved = _length(ends, other[0], b), b + 1, not in_b, True
        if (left + right) & _WORD == 0:
            break
        if not moved:
            return np.nan
    shared, union = shared & _WORD, union & _WORD
    if shared == 0:
        return 0.0
    return shared / (union if area < 0 else area)


@helper
def _mask_ious(
    ends: Array, spans: Array, areas: Array, boxes: Array, regular: Array, crowd: Array, begin: int, out: Array
) -> None:
    """Implement `mask_ious`."""
    detections = out.shape[1]
    for row in range(out.shape[0]):
        g = detections + begin + row
        for d in range(detections):
            out[row, d] = 0.0
            if min(boxes[d, 0] + boxes[d, 2], boxes[g, 0] + boxes[g, 2]) <= max(boxes[d, 0], boxes[g, 0]):
                continue
            if min(boxes[d, 1] + boxes[d, 3], boxes[g, 1] + boxes[g, 3]) <= max(boxes[d, 1], boxes[g, 1]):
                continue
            if spans[d, 2] != spans[g, 2] or spans[d, 3] != spans[g, 3]:
                out[row, d] = -1.0
            elif regular[d] and regular[g] and ends[spans[d, 1] - 1] == ends[spans[g, 1] - 1]:
                shared = _intersection(ends, spans[d], spans[g])
                whole = np.int64(areas[d]) if crowd[begin + row] else np.int64(areas[d]) + np.int64(areas[g]) - shared
                if shared:
                    out[row, d] = shared / whole
            else:
                out[row, d] = _iou_by_runs(ends, spans[d], spans[g], np.int64(areas[d]) if crowd[begin + row] else -1)


@kernel
def mask_ious(
    ends: Array, spans: Array, areas: Array, boxes: Array, regular: Array, crowd: Array, begin: int, out: Array
) -> None:
    """Write the overlaps, shape (g, d), of the objects ``[begin, begin + g)`` with d detections.

    The first d masks are the detections; the other masks are the objects, numbered from 0. For a crowd, the
    intersection is divided by the detection's area. The overlap is 0 if boxes do not touch, -1 if the sizes of the
    images differ, NaN if the runs of the two masks have different sums.
    """
    _mask_ious(ends, spans, areas, boxes, regular, crowd, begin, out)


# --------------------------------------------------------------------------------------------------------------- merge


@helper
def _merge_by_runs(ends: Array, count: int, more: Array, span: Array, both: bool, out: Array) -> int:
    """Merge two masks as pycocotools does: the first `count` runs of `ends`, and the runs ``span[0]:span[1]`` of `more`.
    Return the number of merged runs, or -1 if the runs of the two masks have different sums.
    """
    a, b = 1, span[0] + 1
    left, right = _length(ends, 0, 0), _length(more, span[0], span[0])
    in_a, in_b, inside, position, m = False, False, False, 0, 0
    while True:
        step = min(left, right)
        position += step
        left, right = left - step, right - step
        moved = step > 0
        if left == 0 and a < count:
            left, a, in_a, moved = _length(ends, 0, a), a + 1, not in_a, True
        if right == 0 and b < span[1]:
            right, b, in_b, moved = _length(more, span[0], b), b + 1, not in_b, True
        before, inside = inside, (in_a and in_b) if both else (in_a or in_b)
        done = (left + right) & _WORD == 0
        if inside != before or done:
            out[m] = position & _WORD
            m += 1
        if done:
            return m
        if not moved:
            return -1


@helper
def _unite(ends: Array, count: int, more: Array, span: Array, out: Array) -> int:
    """Write the union of two regular masks of one size, and return its number of runs."""
    total, stop = np.int64(ends[count - 1]), span[1]
    a, b, m = 1, span[0] + 1, 0
    if b < stop:  # runs before the other mask's first foreground run are unchanged
        a = _first_behind(ends, 0, count, np.int64(more[b - 1]) - 1)
        for m in range(a - 1):
            out[m] = ends[m]
        m = a - 1
    start, end = -1, -1
    while b < stop:
        of_b = a >= count or more[b - 1] < ends[a - 1]
        new_start, new_end = (more[b - 1], more[b]) if of_b else (ends[a - 1], ends[a])
        a, b = a + 2 * (not of_b), b + 2 * of_b
        if np.int64(new_start) > end:
            if start >= 0:
                out[m], out[m + 1] = start, end
                m += 2
            start, end = np.int64(new_start), np.int64(new_end)
        else:
            end = max(end, np.int64(new_end))
    while a < count and np.int64(ends[a - 1]) <= end:
        end = max(end, np.int64(ends[a]))
        a += 2
    if start >= 0:
        out[m], out[m + 1] = start, end
        m += 2
    for k in range(a - 1, count - count % 2):
        out[m] = ends[k]
        m += 1
    if m == 0 or np.int64(out[m - 1]) < total:
        out[m] = total
        m += 1
    return m


@helper
def _is_regular(ends: Array, span: Array) -> bool:
    """Return whether a mask is regular."""
    regular = True
    for m in range(span[0] + 1, span[1]):
        regular = regular and ends[m] > ends[m - 1]
    return regular


@helper
def _words(ends: Array, spans: Array) -> Any:
    """Return the number of words of 64 pixels for merging masks as bitmaps. Return 0 if the masks have fewer runs than
    words, because merging their runs is then faster.
    """
    last = spans[len(spans) - 1]
    runs = np.int64(0)
    for i in range(len(spans)):
        runs += spans[i, 1] - spans[i, 0]
    words = (np.int64(ends[last[1] - 1]) + 63) // 64 if last[1] > last[0] else np.int64(0)
    return words if words <= runs else np.int64(0)


@helper
def _paint(ends: Array, span: Array, first: int, out: Array) -> None:
    """Set the bits of every second run of a regular mask, from run `first` on. `out` has 64 pixels to a word."""
    for m in range(span[0] + first, span[1], 2):
        start, last = np.int64(ends[m - 1]) if m > span[0] else np.int64(0), np.int64(ends[m]) - 1
        if start > last:  # an empty first run
            continue
        low, high = start >> 6, last >> 6
        from_low, to_high = _ALL << np.uint64(start & 63), _ALL >> np.uint64(63 - (last & 63))
        if low == high:
            out[low] |= from_low & to_high
            continue
        out[low] |= from_low
        for k in range(low + 1, high):
            out[k] = _ALL
        out[high] |= to_high


@helper
def _painted(words: Array, flipped: Any, total: int, out: Array) -> int:
    """Write the ends of the runs of the bitmap `words`, and return their number. Each word is first combined with
    `flipped` by exclusive-or.
    """
    before, m = np.uint64(0), 0
    for k in range(len(words)):
        word = words[k] ^ flipped
        turns = word ^ ((word << np.uint64(1)) | before)
        before = word >> np.uint64(63)
        while turns:
            lowest = (turns & (~turns + np.uint64(1))) - np.uint64(1)
            turns &= turns - np.uint64(1)
            position = np.int64(64 * k)
            while lowest:  # LLVM compiles this loop to one instruction
                lowest &= lowest - np.uint64(1)
                position += 1
            if position < total:
                out[m] = position
                m += 1
    out[m] = total
    return m + 1


@helper
def _merge_all(ends: Array, spans: Array, both: bool, words: Array, scratch: Array) -> Any:
    """Merge one group of masks, as `merge_groups` does, into the first row of `scratch`. Return the number of merged
    runs, or -1 if the runs of the masks have different sums.

    The length of `words` must be the number that `_words` returns.
    """
    regular, alike = True, True
    for i in range(spans.shape[0]):
        regular = regular and _is_regular(ends, spans[i])
        alike = alike and ends[spans[i, 1] - 1] == ends[spans[0, 1] - 1]
    if regular and alike and len(words):
        words[:] = 0
        for i in range(spans.shape[0]):
            # the intersection is the complement of the union of complements
            _paint(ends, spans[i], 0 if both else 1, words)
        return _painted(words, _ALL if both else np.uint64(0), np.int64(ends[spans[0, 1] - 1]), scratch[0])
    count = spans[0, 1] - spans[0, 0]
    now = (spans.shape[0] - 1) % 2
    for m in range(count):
        scratch[now, m] = ends[spans[0, 0] + m]
    for i in range(1, spans.shape[0]):
        if regular and not both and scratch[now, count - 1] == ends[spans[i, 1] - 1]:
            count = _unite(scratch[now], count, ends, spans[i], scratch[1 - now])
        else:
            count = _merge_by_runs(scratch[now], count, ends, spans[i], both, scratch[1 - now])
        if count < 0:
            return -1
        now = 1 - now
    return count


@kernel
def merge_groups(
    ends: Array, spans: Array, groups: Array, both: bool, begin: int, end: int, out_ends: Array, out_spans: Array
) -> None:
    """Write the union of the masks of each group ``[begin, end)``, or with `both` their intersection.

    Group *g* has the masks ``groups[g]:groups[g + 1]``: at least one mask, with at least one run each. The ends of its
    merged mask are written to ``out_ends[out_spans[g, 0]:out_spans[g, 1]]``, which must have room for one run more than
    the group's masks have in total. ``out_spans[g, 1]`` is written; it is -1 if the masks' runs have different sums.
    """
    for g in range(begin, end):
        room = 1
        for i in range(groups[g], groups[g + 1]):
            room += spans[i, 1] - spans[i, 0]
        group = spans[groups[g] : groups[g + 1]]
        words, scratch = np.empty(_words(ends, group), np.uint64), np.empty((2, room), np.uint32)
        count = _merge_all(ends, group, both, words, scratch)
        for m in range(count):
            out_ends[out_spans[g, 0] + m] = scratch[0, m]
        out_spans[g, 1] = out_spans[g, 0] + count if count >= 0 else -1
