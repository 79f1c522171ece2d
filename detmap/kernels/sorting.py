"""Counting sorts and radix sorts of rows, within groups of different sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel

Array = NDArray[Any]

_SMALL = 40  # size below which insertion sort is faster than a radix sort


@helper
def _count(keys: Array, order: Array, out_starts: Array) -> Any:
    """Write where each of the g groups of equal keys will start once `order` is sorted by key, and where the last group
    will end; return the number of rows.
    """
    count = order.shape[0] if order.shape[0] else keys.shape[0]
    for g in range(out_starts.shape[0]):
        out_starts[g] = 0
    for i in range(count):
        out_starts[keys[order[i] if order.shape[0] else i] + 1] += 1
    for g in range(1, out_starts.shape[0]):
        out_starts[g] += out_starts[g - 1]
    return count


@kernel
def group_by(keys: Array, order: Array, out_order: Array, out_starts: Array) -> None:
    """Stably sort the rows in `order` by key; ``out_starts`` (g + 1) says where groups start.

    `keys` has an integer in ``[0, g)`` for each row. If `order` is empty, all rows are sorted. To sort no
    rows, pass empty `keys`, too.
    """
    count = _count(keys, order, out_starts)
    at = out_starts.copy()
    for i in range(count):
        row = order[i] if order.shape[0] else i
        key = keys[row]
        out_order[at[key]] = row
        at[key] += 1


@kernel
def place_by(keys: Array, order: Array, out_places: Array, out_starts: Array) -> None:
    """Write the position that `group_by` gives to every row. `order` holds every row once, or is empty."""
    count = _count(keys, order, out_starts)
    at = out_starts.copy()
    for i in range(count):
        row = order[i] if order.shape[0] else i
        key = keys[row]
        out_places[row] = at[key]
        at[key] += 1


@helper
def _descending_key(bits: Any) -> Any:
    """Return an unsigned integer for the bits of a score, so that higher scores have lower integers; -0.0 equals 0.0,
    NaN comes last.
    """
    sign = np.uint64(1) << np.uint64(63)
    magnitude = bits & ~sign
    if magnitude > np.uint64(0x7FF0000000000000):
        return ~np.uint64(0)
    if bits & sign and magnitude:
        return bits
    return ~(magnitude | sign)


class Keyed(NamedTuple):
    """Rows ``order[first:]`` and their sort keys ``keys``. Each sort takes `first` as an argument."""

    keys: Array
    order: Array


@helper
def _by_byte(rows: Keyed, first: int, size: int, shift: Any, out: Keyed, out_first: int, counts: Array) -> None:
    """Stably sort `size` rows by one byte of their keys, from ``rows.order[first:]`` to ``out.order[out_first:]``."""
    keys, order, byte = rows.keys, rows.order, np.uint64(255)
    for value in range(256):
        counts[value] = 0
    for i in range(size):
        counts[(keys[i] >> shift) & byte] += 1
    total = 0
    for value in range(256):
        count = counts[value]
        counts[value] = total
        total += count
    for i in range(size):
        value = (keys[i] >> shift) & byte
        at = counts[value]
        counts[value] = at + 1
        out.keys[at] = keys[i]
        out.order[out_first + at] = order[first + i]


@helper
def _by_bytes(rows: Keyed, first: int, size: int, differing: Any, lowest: int, spare: Keyed, counts: Array) -> None:
    """Stably sort by the bytes of the keys from the `lowest` on, skipping bytes that are equal in all keys."""
    moved = False
    for byte in range(lowest, 8):
        shift = np.uint64(8 * byte)
        # keys of widened float32 scores share three bytes, and keys that are small integers share most bytes
        if (differing >> shift) & np.uint64(255) == 0:
            continue
        if moved:
            _by_byte(spare, np.int64(0), size, shift, rows, first, counts)
        else:
            _by_byte(rows, first, size, shift, spare, np.int64(0), counts)
        moved = not moved
    if moved:
        for i in range(size):
            rows.keys[i], rows.order[first + i] = spare.keys[i], spare.order[i]


@helper
def _by_insertion(keys: Array, order: Array, first: int, size: int, limit: int) -> bool:
    """Stably sort by insertion; after more than `limit` moves give up and return False, with equal keys still in order."""
    for i in range(1, size):
        key, item, j = keys[i], order[first + i], i
        while j > 0 and keys[j - 1] > key:
            keys[j], order[first + j] = keys[j - 1], order[first + j - 1]
            j -= 1
        keys[j], order[first + j] = key, item
        limit -= i - j
        if limit < 0:
            return False
    return True


@helper
def _sort(
    keys: Array, size: int, order: Array, first: int, spare_keys: Array, spare_order: Array, counts: Array
) -> None:
    """Stably sort ``order[first:first + size]`` by ascending ``keys[:size]``, 64 bits each, and sort the keys too: by
    insertion if there are few rows, else by radix sort.
    """
    if size <= _SMALL:
        _by_insertion(keys, order, first, size, size * size)
        return
    rows, spare, differing = Keyed(keys, order), Keyed(spare_keys, spare_order), np.uint64(0)
    for i in range(1, size):
        differing |= keys[i] ^ keys[0]
    if differing >> np.uint64(32):
        # Few scores share the upper half of their bits, so sorting by that half leaves little to do. If much is left to
        # do, the sort starts over.
        _by_bytes(rows, first, size, differing, np.int64(4), spare, counts)
        if _by_insertion(keys, order, first, size, 4 * size):
            return
    _by_bytes(rows, first, size, differing, np.int64(0), spare, counts)


@helper
def _longest_group(starts: Array, begin: int, end: int) -> int:
    """Return the size of the longest of groups ``[begin, end)``."""
    longest = 0
    for g in range(begin, end):
        longest = max(longest, starts[g + 1] - starts[g])
    return longest


class Placed(NamedTuple):
    """Rows sorted by image, category and score (``order``). For each of them: its image, its category, its rank within
    image and category, and the bits of its score.
    """

    order: Array
    image: Array
    category: Array
    rank: Array
    bits: Array


@kernel
def arrange_cells(
    starts: Array, category: Array, bits: Array, merged: bool, begin: int, end: int, out: Placed, out_starts: Array
) -> int:
    """Cut the rows of images ``[begin, end)`` into cells of one category each, and sort each cell by descending score;
    return the number of cells.

    Image *g* has the rows ``out.order[starts[g]:starts[g + 1]]``, which are sorted in place. The other columns of `out`
    are written for these rows. ``out_starts[starts[begin]:]`` receives the starts of the cells. With `merged`
    categories, all rows of an image form one cell of category 0, in which ties are ordered by category. `bits` are the
    scores as bit patterns, uint64. If `bits` is empty, the rows of a category keep their order.
    """
    order = out.order
    longest = _longest_group(starts, begin, end)
    keys, spare_keys = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    spare_order = np.empty(longest, order.dtype)
    counts = np.empty(256, np.int64)
    cells = 0
    for g in range(begin, end):
        start, stop = starts[g], starts[g + 1]
        # If detections are written by descending score, as most detectors do, every category is already in order.
        in_order = True
        if bits.shape[0]:
            in_order = not merged
            for i in range(start, stop):
                keys[i - start] = _descending_key(bits[order[i]])
            for i in range(1, stop - start):
                in_order &= keys[i - 1] <= keys[i]
        for i in range(start, stop):
            keys[i - start] = np.uint64(category[order[i]])
        _sort(keys, stop - start, order, start, spare_keys, spare_order, counts)
        first = start
        while first < stop and not in_order:
            after = first + 1
            while after < stop and (merged or category[order[after]] == category[order[first]]):
                after += 1
            # Because most categories have one or two rows in an image, a call of `_sort` for each category would
            # dominate the time.
            rises = False
            for i in range(first, after if after - first > 1 else first):
                keys[i - first] = _descending_key(bits[order[i]])
                rises |= i > first and keys[i - first] < keys[i - first - 1]
            if rises:
                _sort(keys, after - first, order, first, spare_keys, spare_order, counts)
            first = after
        last, rank = -1, 0
        for i in range(start, stop):
            key = 0 if merged else category[order[i]]
            begins = key != last
            rank = 0 if begins else rank + 1
            last = key
            out_starts[starts[begin] + cells] = i  # overwritten later unless a cell begins here
            cells += begins
            out.image[i], out.category[i], out.rank[i] = g, key, rank
        if bits.shape[0]:
            for i in range(start, stop):
                out.bits[i] = bits[order[i]]
    return cells


class Rows(NamedTuple):
    """Columns of `detmap.detection.tally.Tally` without the category, a row per detection. ``order`` may be empty."""

    image: Array
    rank: Array
    order: Array
    scores: Array
    hit: Array
    ignored: Array


@kernel
def scatter_rows(places: Array, begin: int, end: int, rows: Rows, out: Rows) -> None:
    """Write rows ``[begin, end)`` to their `places`, column by column, so that few cache lines are written at a time."""
    for i in range(begin, end):
        out.image[places[i]] = rows.image[i]
    for i in range(begin, end):
        out.rank[places[i]] = rows.rank[i]
    for i in range(begin, end if rows.order.shape[0] else begin):
        out.order[places[i]] = rows.order[i]
    for i in range(begin, end):
        out.scores[places[i]] = rows.scores[i]
    for w in range(rows.hit.shape[1]):
        for i in range(begin, end):
            out.hit[places[i], w] = rows.hit[i, w]
        for i in range(begin, end):
            out.ignored[places[i], w] = rows.ignored[i, w]


@kernel
def sort_rows(starts: Array, begin: int, end: int, rows: Rows, out_group: Array) -> None:
    """Stably sort the rows of groups ``[begin, end)`` by descending score, in place, and write each row's group.

    Group *g* has rows ``[starts[g], starts[g + 1])``. Scores are given as their bits, uint64. Each column is copied to
    the buffers of the sort before its rows are reordered.
    """
    longest = _longest_group(starts, begin, end)
    keys, spare_keys = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    order, spare_order = np.empty(longest, np.int32), np.empty(longest, np.int32)
    counts = np.empty(256, np.int64)
    bits = rows.scores
    for g in range(begin, end):
        first = starts[g]
        size = starts[g + 1] - first
        for i in range(size):
            keys[i] = _descending_key(bits[first + i])
            order[i] = i
            out_group[first + i] = g
        _sort(keys, size, order, np.int64(0), spare_keys, spare_order, counts)
        for i in range(size):
            spare_order[i] = rows.image[first + i]
        for i in range(size):
            rows.image[first + i] = spare_order[order[i]]
        for i in range(size):
            spare_order[i] = rows.rank[first + i]
        for i in range(size):
            rows.rank[first + i] = spare_order[order[i]]
        if rows.order.shape[0]:
            for i in range(size):
                spare_keys[i] = rows.order[first + i]
            for i in range(size):
                rows.order[first + i] = spare_keys[order[i]]
        for i in range(size):
            spare_keys[i] = bits[first + i]
        for i in range(size):
            bits[first + i] = spare_keys[order[i]]
        for w in range(rows.hit.shape[1]):
            for i in range(size):
                keys[i], spare_keys[i] = rows.hit[first + i, w], rows.ignored[first + i, w]
            for i in range(size):
                rows.hit[first + i, w], rows.ignored[first + i, w] = keys[order[i]], spare_keys[order[i]]


@kernel
def join(
    left_group: Array, left_key: Array, right_group: Array, right_key: Array, out_left: Array, out_right: Array
) -> int:
    """Write the positions at which two lists, both ascending by (group, key), have the same (group, key); return the number
    of matches.
    """
    i, j, pairs = 0, 0, 0
    while i < left_group.shape[0] and j < right_group.shape[0]:
        if left_group[i] == right_group[j] and left_key[i] == right_key[j]:
            out_left[pairs], out_right[pairs] = i, j
            pairs += 1
            i += 1
            j += 1
        elif left_group[i] < right_group[j] or (left_group[i] == right_group[j] and left_key[i] < right_key[j]):
            i += 1
        else:
            j += 1
    return pairs
