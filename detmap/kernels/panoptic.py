"""Count the pixels that segments of two label maps share, and match the segments for panoptic quality."""

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


#: Problems of an image. A predicted segment may not be listed in the JSON, may have no pixels, or may have a category
#: that the ground truth lacks. The given area of a ground-truth segment may contradict its pixels.
UNLISTED, EMPTY, UNKNOWN, IMPOSSIBLE = range(4)


class LabelMaps(NamedTuple):
    """Label maps one after the other: map *i* has the runs ``starts[i]:starts[i + 1]`` of `runs`."""

    starts: Array
    runs: Runs


class Segments(NamedTuple):
    """Segments: image *i* has the rows ``starts[i]:starts[i + 1]``, by ascending id.

    A `category` that is not listed is -1. `area` is NaN if not given. `last` is 1 for the last `crowd` region of its
    category and image in file order.
    """

    starts: Array
    ids: Array
    category: Array
    area: Array
    crowd: Array
    last: Array


class Outcome(NamedTuple):
    """Outcomes of the segments of the ground truth (``truth``) and of the predictions (``found``).

    ``odd``, shape (images, 2), has for each image the number of ground-truth segments whose area is wrong, and whether
    any pixel's id is not listed. ``pairs`` and ``iou`` have the ground-truth row and the IoU of each matched pair of a
    block. ``problem``, shape (4,), describes a problem: its kind, the image, the id (if `UNLISTED`) or row (otherwise)
    of the segment, and the segment's number of pixels (only if `IMPOSSIBLE`). ``counts`` and ``areas`` are buffers for
    the largest image: the pixels of each pair of segments, and the areas of the predicted segments.
    """

    truth: Array
    found: Array
    odd: Array
    pairs: Array
    iou: Array
    problem: Array
    counts: Array
    areas: Array


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
    """Return the row of an id in the table of counts: 0 for VOID, 1 plus the index in `ids`, or 1 plus the length of
    `ids` for an unlisted id.
    """
    slot = (value ^ value >> 8 ^ value >> 16) & (_SEEN - 1)
    if seen[slot] != value:
        found = 0
        if value != 0:
            place = _place(ids, value)
            found = 1 + (place if place >= 0 else len(ids))
        seen[slot], places[slot] = value, found
    return np.int64(places[slot])


@helper
def _count_pairs(
    truth: Runs, found: Runs, ids: Array, found_ids: Array, seen: Array, places: Array, counts: Array
) -> Any:
    """Write the number of pixels that segments *g* and *p* share to ``counts[1 + g, 1 + p]``. If an id of `found` is not
    listed, return this id, else -1.

    Row and column 0 are VOID, and the last row is for unlisted ids of `truth`. `seen` and `places` are a table of recent
    ids.
    """
    seen[:] = -1
    counts[:] = 0
    at, t, unlisted, row = np.int64(0), np.int64(-1), len(found_ids) + 1, np.int64(0)
    own_end = np.int64(0)
    for f in range(len(found.ends)):
        column = _row(found_ids, np.int64(found.values[f]), seen[1], places[1])
        if column == unlisted:
            return np.int64(found.values[f])
        end = np.int64(found.ends[f])
        while at < end:
            if at == own_end:
                t += 1
                own_end = np.int64(truth.ends[t])
                row = _row(ids, np.int64(truth.values[t]), seen[0], places[0])
            shared = min(end, own_end)
            counts[row, column] += shared - at
            at = shared
    return np.int64(-1)


@helper
def _check(counts: Array, found: Segments, first: int, areas: Array, problem: Array) -> Any:
    """Write the areas of an image's predicted segments, which begin at row `first`; return False if a segment has no
    pixels or an unlisted category.
    """
    for p in range(len(areas)):
        areas[p] = 0
        for g in range(len(counts)):
            areas[p] += counts[g, p + 1]
    for p in range(len(areas)):
        if areas[p] == 0:
            problem[0], problem[2] = EMPTY, first + p
            return False
    for p in range(len(areas)):
        if found.category[first + p] < 0:
            problem[0], problem[2] = UNKNOWN, first + p
            return False
    return True


@helper
def _match(counts: Array, truth: Segments, found: Segments, i: int, areas: Array, out: Outcome, matches: int) -> Any:
    """Match the segments of image `i` and write the pairs from index `matches` on; return their end, or -1 for a problem."""
    own, other = truth.starts[i], found.starts[i]
    objects, predictions = truth.starts[i + 1] - own, found.starts[i + 1] - other
    for p in range(predictions):
        out.found[other + p] = MISSED
    for g in range(objects):
        held = np.int64(0)
        for p in range(predictions + 1):
            held += counts[g + 1, p]
        area = truth.area[own + g]
        if np.isnan(area):
            area = np.float64(held)
        out.odd[i, 0] += area != np.float64(held)
        out.truth[own + g] = IGNORED if truth.crowd[own + g] else MISSED
        if truth.crowd[own + g]:
            continue
        for p in range(predictions):
            shared = counts[g + 1, p + 1]
            if shared == 0 or found.category[other + p] != truth.category[own + g]:
                continue
            union = np.float64(areas[p]) + area - np.float64(shared) - np.float64(counts[0, p + 1])
            if union == 0.0:
                out.problem[0], out.problem[2], out.problem[3] = IMPOSSIBLE, own + g, held
                return np.int64(-1)
            iou = np.float64(shared) / union
            if iou > 0.5:
                out.truth[own + g] = MATCHED
                out.found[other + p] = MATCHED
                out.pairs[matches], out.iou[matches] = own + g, iou
                matches += 1
    for p in range(predictions):
        if out.found[other + p] == MATCHED:
            continue
        left_out = counts[0, p + 1]
        for g in range(objects):
            if truth.last[own + g] and truth.category[own + g] == found.category[other + p]:
                left_out += counts[g + 1, p + 1]
        out.found[other + p] = IGNORED if np.float64(left_out) / np.float64(areas[p]) > 0.5 else MISSED
    for p in range(predictions + 1):
        if counts[objects + 1, p] > 0:
            out.odd[i, 1] = 1
    return matches


@kernel
def match(
    maps: LabelMaps, found_maps: LabelMaps, truth: Segments, found: Segments, begin: int, end: int, stop: Array,
    out: Outcome,
) -> int:  # fmt: skip
    """Match the segments of the images ``[begin, end)``; return the number of matched pairs, or -1 for a problem.

    Pairs are sorted by image, then by ground-truth id, then by predicted id. The kernel returns early once `stop` is
    set.

    Parameters
    ----------
    maps, found_maps : LabelMaps
        The label maps of these images only. Both maps of an image have the same number of pixels.
    truth, found : Segments
        The segments of all images.
    out : Outcome
        Written for these images. ``odd`` must be 0 initially.
    """
    seen = np.empty((2, _SEEN), np.int64)
    places = np.zeros((2, _SEEN), np.int64)
    matches = np.int64(0)
    for i in range(begin, end):
        own, other = truth.starts[i], found.starts[i]
        rows, columns = truth.starts[i + 1] - own + 2, found.starts[i + 1] - other + 1
        counts = out.counts[: rows * columns].reshape((rows, columns))
        areas = out.areas[: columns - 1]
        first, last = maps.starts[i - begin], maps.starts[i - begin + 1]
        runs = Runs(maps.runs.ends[first:last], maps.runs.values[first:last])
        first, last = found_maps.starts[i - begin], found_maps.starts[i - begin + 1]
        found_runs = Runs(found_maps.runs.ends[first:last], found_maps.runs.values[first:last])
        out.problem[1] = i
        unlisted = _count_pairs(
            runs,
            found_runs,
            truth.ids[own : own + rows - 2],
            found.ids[other : other + columns - 1],
            seen,
            places,
            counts,
        )
        if unlisted >= 0:
            out.problem[0], out.problem[2] = UNLISTED, unlisted
            return -1
        if not _check(counts, found, other, areas, out.problem):
            return -1
        matches = _match(counts, truth, found, i, areas, out, matches)
        if matches < 0:
            return -1
        if stop[0]:
            return 0
    return int(matches)
