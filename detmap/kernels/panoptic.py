"""Shared pixels of the segments of two label maps, and matching for panoptic quality."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, innermost, kernel
from detmap.kernels.png import Runs

Array = NDArray[Any]

#: Outcomes of segments. A segment of the ground truth is missed, matched, or a crowd region, which counts as neither. A
#: predicted segment is false, matched, or mostly on ignored pixels.
MISSED, MATCHED, IGNORED = 0, 1, 2

#: Number of entries of the table of recently seen ids.
_SEEN = 256


class Segments(NamedTuple):
    """The segments of the ground truth of an image by ascending id: ``category``, ``area``, ``crowd``.

    ``last`` is 1 for the last crowd region of its category in file order. An unlisted category is -1.
    """

    category: Array
    area: Array
    crowd: Array
    last: Array


class Outcome(NamedTuple):
    """Outcomes of the segments of the ground truth (``truth``) and of the predictions (``found``); then the matched
    pairs of segments, with the ``iou`` of each.
    """

    truth: Array
    found: Array
    first: Array
    second: Array
    iou: Array


@helper
def _place(ids: Array, wanted: int) -> Any:
    """Return the index of an id among ascending ids; -1 if absent."""
    low, high = 0, len(ids)
    while low < high:
        middle = (low + high) >> 1
        if np.int64(ids[middle]) < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(ids) and np.int64(ids[low]) == wanted else -1


@innermost
def _row(ids: Array, value: int, seen: Array, places: Array) -> Any:
    """Return 0 for VOID, 1 plus the index of a listed id, and 1 plus the number of `ids` for an unlisted id."""
    slot = (value ^ value >> 8 ^ value >> 16) & (_SEEN - 1)
    if seen[slot] != value:
        found = 0
        if value != 0:
            place = _place(ids, value)
            found = 1 + (place if place >= 0 else len(ids))
        seen[slot], places[slot] = value, found
    return np.int64(places[slot])


@kernel
def count_pairs(truth: Runs, found: Runs, truth_ids: Array, found_ids: Array, stop: Array, counts: Array) -> int:
    """Add to ``counts[1 + g, 1 + p]`` the pixels that the segments *g* and *p* share.

    Row and column 0 are VOID. The last row is for unlisted ids of `truth`. Returns -1, or the first run of `found` with
    an unlisted id. The kernel returns early once `stop` is set.

    Parameters
    ----------
    truth, found : Runs
        The label maps, with equal numbers of pixels.
    truth_ids, found_ids : ndarray of uint32, shape (G,), (P,)
        The ids of the segments, ascending.
    counts : ndarray of int64, shape (G + 2, P + 1)
        Written.
    """
    seen = np.full((2, _SEEN), -1, np.int64)
    places = np.zeros((2, _SEEN), np.int64)
    at, t, unlisted, row = np.int64(0), np.int64(-1), len(found_ids) + 1, np.int64(0)
    own_end = np.int64(0)
    for f in range(len(found.ends)):
        column = _row(found_ids, np.int64(found.values[f]), seen[1], places[1])
        if column == unlisted:
            return int(f)
        end = np.int64(found.ends[f])
        while at < end:
            if at == own_end:
                t += 1
                own_end = np.int64(truth.ends[t])
                row = _row(truth_ids, np.int64(truth.values[t]), seen[0], places[0])
            shared = min(end, own_end)
            counts[row, column] += shared - at
            at = shared
        if stop[0]:
            return -1
    return -1


@kernel
def match(counts: Array, truth: Segments, categories: Array, areas: Array, out: Outcome) -> int:
    """Match the segments of an image; return the number of matches, or -1 - g if segment g has an impossible area.

    Parameters
    ----------
    counts : ndarray of int64, shape (G + 2, P + 1)
        Pixels of each pair, as `count_pairs` writes them.
    truth : Segments
        The G segments of the ground truth.
    categories, areas : ndarray of int32 and of int64, shape (P,)
        Categories and areas of the predictions.
    out : Outcome
        Written. The pairs come in ascending order of the ids of ground truth, then predictions.
    """
    matches = 0
    for g in range(len(truth.category)):
        out.truth[g] = IGNORED if truth.crowd[g] else MISSED
        if truth.crowd[g]:
            continue
        for p in range(len(categories)):
            shared = counts[g + 1, p + 1]
            if shared == 0 or categories[p] != truth.category[g]:
                continue
            union = np.float64(areas[p]) + truth.area[g] - np.float64(shared) - np.float64(counts[0, p + 1])
            if union == 0.0:
                return int(-1 - g)
            iou = np.float64(shared) / union
            if iou > 0.5:
                out.truth[g] = MATCHED
                out.found[p] = MATCHED
                out.first[matches], out.second[matches], out.iou[matches] = g, p, iou
                matches += 1
    for p in range(len(categories)):
        if out.found[p] == MATCHED:
            continue
        left_out = counts[0, p + 1]
        for g in range(len(truth.category)):
            if truth.last[g] and truth.category[g] == categories[p]:
                left_out += counts[g + 1, p + 1]
        out.found[p] = IGNORED if np.float64(left_out) / np.float64(areas[p]) > 0.5 else MISSED
    return int(matches)
