"""Counting and radix sorts on ragged groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

Array = NDArray[Any]

_SMALL = 40  # below this an insertion sort beats eight counting passes


@kernel
def group_by(keys: Array, order: Array, out_order: Array, out_starts: Array) -> None:
    """Stably sort `order` by ``keys[order[i]]``, integers in ``[0, g)``; ``out_starts`` (g + 1) says where groups start."""
    groups = out_starts.shape[0] - 1
    for g in range(groups + 1):
        out_starts[g] = 0
    for i in range(order.shape[0]):
        out_starts[keys[order[i]] + 1] += 1
    for g in range(groups):
        out_starts[g + 1] += out_starts[g]
    at = out_starts[:groups].copy()
    for i in range(order.shape[0]):
        key = keys[order[i]]
        out_order[at[key]] = order[i]
        at[key] += 1


@kernel
def _descending_key(bits: Any) -> Any:
    """Return an unsigned key that ascends as the score with these bits descends; -0.0 is 0.0, NaN comes last."""
    sign = np.uint64(1) << np.uint64(63)
    magnitude = bits & ~sign
    if magnitude > np.uint64(0x7FF0000000000000):
        return ~np.uint64(0)
    if bits & sign and magnitude:
        return bits
    return ~(magnitude | sign)


@kernel
def sort_groups(scores: Array, starts: Array, begin: int, end: int, order: Array) -> None:
    """Stably sort ``order[starts[g]:starts[g + 1]]`` by descending ``scores[order[i]]``, for groups ``[begin, end)``."""
    bits = scores.view(np.uint64)
    longest = 0
    for g in range(begin, end):
        longest = max(longest, starts[g + 1] - starts[g])
    keys = np.empty(longest, np.uint64)
    other_keys = np.empty(longest if longest > _SMALL else 0, np.uint64)
    other_order = np.empty(other_keys.shape[0], order.dtype)
    counts = np.zeros((8, 256), np.int64)
    byte = np.uint64(255)
    for g in range(begin, end):
        first, last = starts[g], starts[g + 1]
        size = last - first
        if size < 2:
            continue
        for i in range(size):
            keys[i] = _descending_key(bits[order[first + i]])
        if size <= _SMALL:
            for i in range(1, size):
                key, item, j = keys[i], order[first + i], i
                while j > 0 and keys[j - 1] > key:
                    keys[j], order[first + j] = keys[j - 1], order[first + j - 1]
                    j -= 1
                keys[j], order[first + j] = key, item
            continue
        counts[:] = 0
        for i in range(size):
            key = keys[i]
            for digit in range(8):
                counts[digit, (key >> np.uint64(8 * digit)) & byte] += 1
        for digit in range(8):
            shift = np.uint64(8 * digit)
            row = counts[digit]
            if row[(keys[0] >> shift) & byte] == size:
                continue  # all the same: scores that were single precision leave three such digits
            total = 0
            for value in range(256):
                count = row[value]
                row[value] = total
                total += count
            for i in range(size):
                value = (keys[i] >> shift) & byte
                other_keys[row[value]] = keys[i]
                other_order[row[value]] = order[first + i]
                row[value] += 1
            for i in range(size):
                keys[i] = other_keys[i]
                order[first + i] = other_order[i]


@kernel
def count_runs(starts: Array, keys: Array, order: Array) -> int:
    """Return how many runs of equal ``keys[order[i]]`` there are within the groups that `starts` delimits."""
    runs = 0
    for g in range(starts.shape[0] - 1):
        for i in range(starts[g], starts[g + 1]):
            if i == starts[g] or keys[order[i]] != keys[order[i - 1]]:
                runs += 1
    return runs


@kernel
def find_runs(starts: Array, keys: Array, order: Array, out_starts: Array, out_group: Array, out_key: Array) -> None:
    """Write where each run of equal keys starts (and, last, where the last one ends), its group and its key."""
    runs = 0
    for g in range(starts.shape[0] - 1):
        for i in range(starts[g], starts[g + 1]):
            if i == starts[g] or keys[order[i]] != keys[order[i - 1]]:
                out_starts[runs], out_group[runs], out_key[runs] = i, g, keys[order[i]]
                runs += 1
    out_starts[runs] = order.shape[0]


@kernel
def spread_runs(
    starts: Array, group: Array, key: Array, begin: int, end: int, out_group: Array, out_key: Array, out_place: Array
) -> None:
    """Write for every position of runs ``[begin, end)`` the run's group and key, and its 0-based place within the run."""
    for r in range(begin, end):
        for i in range(starts[r], starts[r + 1]):
            out_group[i], out_key[i], out_place[i] = group[r], key[r], i - starts[r]


@kernel
def join(
    left_group: Array, left_key: Array, right_group: Array, right_key: Array, out_left: Array, out_right: Array
) -> int:
    """Write the positions at which two lists, ascending by (group, key), hold the same pair; return how many."""
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
