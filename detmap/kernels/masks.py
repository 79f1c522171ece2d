"""Masks as runs: how strings and bitmaps become runs and back, how large masks are, and how far they overlap.

A mask is read column by column, pixel (row, column) being number ``column * height + row``. Its runs alternate between
background and foreground, background first. All masks of a column share one array ``ends``: for every run the number of
the pixel behind it, uint32. Row *i* of ``spans`` (int64, shape (n, 4)) says where mask *i* lies in ``ends``, from and to,
and its height and width.

A mask is *regular* where only its first run is empty, if any, and no sum has wrapped around: its ends ascend strictly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel

Array = NDArray[Any]

_WORD = 0xFFFFFFFF  # lengths and sums are 32 bits, as in C
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_HIGH = np.uint64(0x8080808080808080)
_ONES = np.uint64(0x0101010101010101)  # times a byte: eight of it


# ------------------------------------------------------------------------------------------------------------- strings
# A number is written as groups of five bits, the lowest first, one character each (the group plus 48). Bit 32 says that
# more follow; bit 16 of the last is the sign. From the fourth number on it is the difference to the last but one.


@innermost
def _more(text: Array, at: int) -> int:
    """Return how many characters the number at `at` has, or 0 where the text ends within it."""
    size = 1
    while (np.int64(text[at + size - 1]) - 48) & 32:
        if text[at + size] == 0:
            return 0
        size += 1
    return size


@innermost
def _number(text: Array, at: int, size: int) -> int:
    """Return the number that has `size` characters; shifts wrap around at 32 bits, as those of the original do."""
    value = 0
    for k in range(size):
        value |= (((np.int64(text[at + k]) - 48) & 31) << ((5 * k) & 31)) & _WORD
    if (np.int64(text[at + size - 1]) - 48) & 16:
        value |= -(1 << ((5 * size) & 31))
    return value


@kernel
def decode_strings(text: Array, at: int, begin: int, end: int, out_ends: Array, out_spans: Array) -> int:
    """Write the ends and the spans (columns 0 and 1) of the masks ``[begin, end)``, whose strings begin at `at`.

    Each string ends with a NUL. A mask's ends lie where its string lies. Returns the first mask whose string ends within
    a number, or -1.
    """
    p = at
    for i in range(begin, end):
        first = m = p
        total, last, before = 0, 0, 0
        while text[p]:
            size = 1
            c = np.int64(text[p]) - 48
            value = ((c & 31) ^ 16) - 16
            if c & 32:
                size = _more(text, p)
                if size == 0:
                    return i
                value = _number(text, p, size)
            p += size
            value = (value + before) & _WORD
            before = last if m > first + 1 else 0
            last = value
            total += value
            out_ends[m] = total & _WORD
            m += 1
        out_spans[i, 0], out_spans[i, 1] = first, m
        p += 1
    return -1


@kernel
def areas_of_strings(text: Array, at: int, begin: int, end: int, out: Array) -> int:
    """Write the areas of the masks ``[begin, end)`` and return as `decode_strings`; no run is stored."""
    p = at
    for i in range(begin, end):
        area, length, m = 0, 0, 0
        while text[p]:
            size = 1
            c = np.int64(text[p]) - 48
            value = ((c & 31) ^ 16) - 16
            if c & 32:
                size = _more(text, p)
                if size == 0:
                    return i
                value = _number(text, p, size)
            p += size
            if m & 1:
                length += value
                area += length & _WORD
            m += 1
        out[i] = area & _WORD
        p += 1
    return -1


@kernel
def encode_strings(ends: Array, spans: Array, begin: int, end: int, at: int, out: Array, out_stops: Array) -> None:
    """Write the strings of the masks ``[begin, end)`` one after the other from ``out[at]``; at most 7 characters a run."""
    p = at
    for i in range(begin, end):
        before, last, behind = 0, 0, 0
        first = spans[i, 0]
        for m in range(first, spans[i, 1]):
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
        out_stops[i] = p


# ------------------------------------------------------------------------------------------------------------- bitmaps


@innermost
def _changed(word: Any, before: Any) -> Any:
    """Return the bytes of `word` that differ from the byte in front of them, as the highest bit of each."""
    differ = word ^ ((word << np.uint64(8)) | before)
    return (((differ & _LOW) + _LOW) | differ) & _HIGH


@kernel
def count_runs(pixels: Array, words: Array, size: int, begin: int, end: int, out: Array) -> None:
    """Write the number of runs of the bitmaps ``[begin, end)``, each of `size` bytes of `pixels`, column by column.

    `words` are the same bytes eight at a time. A run ends wherever the byte changes, as in pycocotools.
    """
    for i in range(begin, end):
        p, stop = i * size, (i + 1) * size
        before, runs = np.uint8(0), 1
        while p < stop:
            if p & 7 or p + 8 > stop:
                runs += pixels[p] != before
                before = pixels[p]
                p += 1
                continue
            last = np.uint64(before)
            alike = last * _ONES
            for k in range(p >> 3, stop >> 3):
                if words[k] == alike:
                    continue
                changed = _changed(words[k], last)
                while changed:  # as many times as bytes differ
                    changed &= changed - np.uint64(1)
                    runs += 1
                last = words[k] >> np.uint64(56)
                alike = last * _ONES
            before = np.uint8(last)
            p = stop & ~7
        out[i] = runs


@kernel
def find_runs(pixels: Array, words: Array, spans: Array, begin: int, end: int, out: Array) -> None:
    """Write the ends of the runs of the bitmaps ``[begin, end)``, whose number `count_runs` has put into `spans`."""
    for i in range(begin, end):
        size = spans[i, 2] * spans[i, 3]
        first, stop = i * size, (i + 1) * size
        p, before, m = first, np.uint8(0), spans[i, 0]
        while p < stop:
            if p & 7 or p + 8 > stop:
                if pixels[p] != before:
                    out[m] = p - first
                    m += 1
                before = pixels[p]
                p += 1
                continue
            last = np.uint64(before)
            alike = last * _ONES
            for k in range(p >> 3, stop >> 3):
                if words[k] == alike:
                    continue
                changed = _changed(words[k], last)
                if changed:
                    for byte in range(8):
                        if (changed >> np.uint64(8 * byte + 7)) & np.uint64(1):
                            out[m] = 8 * k + byte - first
                            m += 1
                last = words[k] >> np.uint64(56)
                alike = last * _ONES
            before = np.uint8(last)
            p = stop & ~7
        out[m] = size


@helper
def _fills(ends: Array, span: Array, size: int) -> bool:
    """Return whether the runs of a mask add up to `size` pixels, without a sum that wraps around."""
    behind = 0
    for m in range(span[0], span[1]):
        here = np.int64(ends[m])
        if here < behind:
            return False
        behind = here
    return behind == size and span[1] > span[0]


@kernel
def draw_runs(ends: Array, spans: Array, begin: int, end: int, out: Array) -> int:
    """Set the foreground of the masks ``[begin, end)`` to 1 in `out`, their zeroed pixels column by column, shape (n, p).

    Returns the first mask whose runs do not add up to p pixels, where it stops, or -1.
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


@kernel
def measure_runs(
    ends: Array, spans: Array, begin: int, end: int, out_areas: Array, out_boxes: Array, out_regular: Array
) -> None:
    """Write areas, boxes (x, y, width, height) and which masks are regular, for the masks ``[begin, end)``.

    Without two runs a box is 0; with empty foreground alone it begins behind the image and has 1 - width and 1 - height
    modulo 2**32, as in pycocotools. An odd last run, background, is not looked at.
    """
    for i in range(begin, end):
        first, stop, height = spans[i, 0], spans[i, 1], max(spans[i, 2], 1)
        area, regular, behind = 0, True, 0
        left, right, top, bottom = spans[i, 3] & _WORD, 0, spans[i, 2] & _WORD, 0
        column, row = 0, 0  # of the pixel at `behind`
        for m in range(first, stop):
            here = np.int64(ends[m])
            regular = regular and (here > behind or m == first)
            length = (here - behind) & _WORD
            start_column, start_row = column, row
            row += length
            if row >= 2 * height or here < behind:  # below: a sum has wrapped around
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
        out_areas[i] = area & _WORD
        out_regular[i] = regular
        paired = stop - first >= 2
        out_boxes[i, 0], out_boxes[i, 2] = left * paired, ((right - left + 1) & _WORD) * paired
        out_boxes[i, 1], out_boxes[i, 3] = top * paired, ((bottom - top + 1) & _WORD) * paired


# ------------------------------------------------------------------------------------------------------------- overlap


@helper
def _first_behind(ends: Array, first: int, stop: int, position: int) -> int:
    """Return where the first foreground run that ends behind `position` has its end; runs from `first` to `stop`."""
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
    """Return the overlap of two masks as pycocotools walks them; over `area` unless it is -1.

    Where both masks are at the end of a run and the next runs are empty, the walk ends. NaN: it would not end.
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


@kernel
def mask_ious(
    ends: Array, spans: Array, areas: Array, boxes: Array, regular: Array, crowd: Array, begin: int, out: Array
) -> None:
    """Write the overlap of masks of two sides, shape (g, d): of the ground truth ``[begin, begin + g)``, numbered from 0.

    The detections are the first d masks and the ground truth follows. Over a crowd the detection's area counts. 0: boxes
    do not touch; -1: sizes differ; NaN: the runs of the two do not add up to the same.
    """
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


# --------------------------------------------------------------------------------------------------------------- merge


@helper
def _merge_by_runs(ends: Array, count: int, more: Array, span: Array, both: bool, out: Array) -> int:
    """Merge the mask of `count` runs in `ends` with one of `more` as pycocotools does; return the runs, -1 as NaN above."""
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
    if b < stop:  # what ends in front of the other mask stays as it is
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
def _merge_all(ends: Array, spans: Array, both: bool, scratch: Array) -> Any:
    """Write what `merge_groups` says of one group to the first row of `scratch`, and return its number of runs or -1."""
    regular = True
    for i in range(spans.shape[0]):
        regular = regular and _is_regular(ends, spans[i])
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
    """Write the union of the masks of each group ``[begin, end)``, or what they all share (`both`).

    Group *g* has the masks ``groups[g]:groups[g + 1]``, at least one, each of at least one run. Its merged mask is written
    from ``out_spans[g, 0]``, where there must be room for one run more than its masks have, up to ``out_spans[g, 1]``; -1
    there: their runs do not add up to the same.
    """
    for g in range(begin, end):
        room = 1
        for i in range(groups[g], groups[g + 1]):
            room += spans[i, 1] - spans[i, 0]
        scratch = np.empty((2, room), np.uint32)
        count = _merge_all(ends, spans[groups[g] : groups[g + 1]], both, scratch)
        for m in range(count):
            out_ends[out_spans[g, 0] + m] = scratch[0, m]
        out_spans[g, 1] = out_spans[g, 0] + count if count >= 0 else -1


# ------------------------------------------------------------------------------------------------------------ boundary


@helper
def _add_run(start: int, end: int, m: int, first: int, out: Array) -> int:
    """Write a foreground run behind the `m` ends from `first`, or only count it where `out` is empty; return how many."""
    if out.shape[0] == 0:
        return m + 2
    if m and out[first + m - 1] == start:
        out[first + m - 1] = end
        return m
    out[first + m], out[first + m + 1] = start, end
    return m + 2


@helper
def _column_boundary(start: int, end: int, inner: Array, distance: int, m: int, first: int, out: Array) -> int:
    """Add what is boundary of a foreground run within a column: where fewer than 2d + 1 columns are `inner`."""
    offset = start - start % inner.shape[0]
    begin = -1
    for p in range(start, end):
        if inner[p - offset] > 2 * distance:
            if begin >= 0:
                m = _add_run(begin, p, m, first, out)
            begin = -1
        elif begin < 0:
            begin = p
    if begin >= 0:
        m = _add_run(begin, end, m, first, out)
    return m


@helper
def _shrink(ends: Array, span: Array, m: int, column: int, distance: int, inner: Array) -> int:
    """Count, for each row, the columns up to this one in which the row is deeper inside than `distance`.

    `m` is the first foreground run that does not end in front of the column; returned for the next one.
    """
    low, height, at = column * span[2], span[2], 0
    while m < span[1] and ends[m] <= low:
        m += 2
    for k in range(m, span[1], 2):
        start, end = max(np.int64(ends[k - 1]) - low, 0), min(np.int64(ends[k]) - low, height)
        if start >= height:
            break
        for row in range(at, min(start + distance, height)):
            inner[row] = 0
        for row in range(start + distance, end - distance):
            inner[row] += 1
        at = max(start + distance, end - distance)
    for row in range(at, height):
        inner[row] = 0
    return m


@kernel
def boundary_runs(
    ends: Array, spans: Array, distances: Array, begin: int, end: int, out_ends: Array, out_spans: Array
) -> None:
    """Write the boundaries of the masks ``[begin, end)``: pixels within a distance of background or of the image's edge.

    Distances are the larger of those along x and y. Mask *i* is written from ``out_spans[i, 0]`` up to ``out_spans[i, 1]``;
    where `out_ends` is empty, only the room that it needs is written to ``out_spans[i, 1]``.
    """
    for i in range(begin, end):
        span, distance = spans[i], distances[i]
        height, total, first = span[2], span[2] * span[3], out_spans[i, 0]
        inner = np.zeros(height, np.int64)
        count, ahead, behind = 0, span[0] + 1, span[0] + 1
        left = np.int64(ends[span[0]]) // height  # the first column with foreground, and the one behind the last
        right = (
            (np.int64(ends[span[0] + (span[1] - span[0]) // 2 * 2 - 1]) - 1) // height + 1 if ahead < span[1] else left
        )
        for column in range(left - distance, right):
            if column + distance < right:
                ahead = _shrink(ends, span, ahead, column + distance, distance, inner)
            else:
                inner[:] = 0
            low = column * height
            if column < left:
                continue
            while behind < span[1] and ends[behind] <= low:
                behind += 2
            for m in range(behind, span[1], 2):
                start, stop = max(np.int64(ends[m - 1]), low), min(np.int64(ends[m]), low + height)
                if start >= low + height:
                    break
                count = _column_boundary(start, stop, inner, distance, count, first, out_ends)
        if out_ends.shape[0] and (count == 0 or np.int64(out_ends[first + count - 1]) < total):
            out_ends[first + count] = total
            count += 1
        out_spans[i, 1] = first + count + (out_ends.shape[0] == 0)
