"""Which detections hit which ground truth: candidates to hit and ignored bits.

Bit ``a * T + t`` of a detection's row of words belongs to area range *a* and IoU threshold *t*.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel
from detmap.kernels.overlap import Candidates, Cells

Array = NDArray[Any]


class Objects(NamedTuple):
    """What matching asks of the ground truth, by position: ``areas``, and flags ``ignored`` and ``crowd``."""

    areas: Array
    ignored: Array
    crowd: Array


@kernel
def _set(words: Array, row: int, bit: int) -> None:
    words[row, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@kernel
def _clear(words: Array, row: int, bit: int) -> None:
    words[row, bit >> 6] &= ~(np.uint64(1) << np.uint64(bit & 63))


@kernel
def mark_misses(areas: Array, ranges: Array, thresholds: int, begin: int, end: int, hit: Array, ignored: Array) -> None:
    """Start detections ``[begin, end)``, of these `areas`, as misses, ignored in the ranges that they are outside of."""
    words = np.zeros((ranges.shape[0], ignored.shape[1]), np.uint64)
    for a in range(ranges.shape[0]):
        for t in range(thresholds):
            _set(words, a, a * thresholds + t)
    for d in range(begin, end):
        for w in range(ignored.shape[1]):
            hit[d, w] = np.uint64(0)
            ignored[d, w] = np.uint64(0)
        for a in range(ranges.shape[0]):
            if areas[d - begin] < ranges[a, 0] or areas[d - begin] > ranges[a, 1]:
                for w in range(ignored.shape[1]):
                    ignored[d, w] |= words[a, w]


@kernel
def _widest(cells: Cells, begin: int, end: int) -> int:
    widest = 0
    for c in range(begin, end):
        widest = max(widest, cells.ground_truth_stops[c] - cells.ground_truth_starts[c])
    return widest


@kernel
def _open_cell(objects: Objects, ranges: Array, start: int, count: int, outside: Array, taken: Array) -> None:
    """Note which of a cell's ground truth each area range ignores, and that none is taken."""
    for g in range(count):
        area = objects.areas[start + g]
        for a in range(ranges.shape[0]):
            outside[g, a] = objects.ignored[start + g] or area < ranges[a, 0] or area > ranges[a, 1]
        taken[g] = False


@kernel
def _best_free(
    candidates: Candidates,
    first: int,
    last: int,
    lowest: float,
    outside: Array,
    taken: Array,
    crowd: Array,
    a: int,
    b: int,
) -> int:
    """Return the best ground truth that bit `b` leaves free, an ignored one only for want of a real one; -1 for none.

    Among equal overlaps the later ground truth wins. A crowd is always free.
    """
    for want_ignored in (False, True):
        chosen, best = -1, lowest
        for i in range(first, last):
            g = candidates.ground_truth[i]
            if candidates.iou[i] < best or outside[g, a] != want_ignored or (taken[g, b] and not crowd[g]):
                continue
            chosen, best = g, candidates.iou[i]
        if chosen >= 0:
            return chosen
    return -1


@kernel
def match(
    cells: Cells,
    candidates: Candidates,
    objects: Objects,
    thresholds: Array,
    ranges: Array,
    only_best: bool,
    begin: int,
    end: int,
    hit: Array,
    ignored: Array,
) -> None:
    """Match the detections of cells ``[begin, end)``, best score first, and set the bits of those that found something.

    By COCO's rule a detection takes the best ground truth that is still free (`_best_free`). By VOC's (`only_best`) it
    looks at the one that it overlaps most, the first among equals: if that is ignored so is the detection, if it is taken
    already the detection is a miss.
    """
    widest = _widest(cells, begin, end)
    outside = np.empty((widest, ranges.shape[0]), np.bool_)
    taken = np.empty((widest, ranges.shape[0] * thresholds.shape[0]), np.bool_)
    row = 0
    for c in range(begin, end):
        start, stop = cells.ground_truth_starts[c], cells.ground_truth_stops[c]
        _open_cell(objects, ranges, start, stop - start, outside, taken)
        crowd = objects.crowd[start:stop]
        for d in range(cells.detection_starts[c], cells.detection_stops[c]):
            first, last = candidates.first[row], candidates.last[row]
            row += 1
            if first == last:
                continue
            best = first
            for i in range(first + 1, last):
                if candidates.iou[i] > candidates.iou[best]:
                    best = i
            for a in range(ranges.shape[0]):
                for t in range(thresholds.shape[0]):
                    bit = a * thresholds.shape[0] + t
                    if candidates.iou[best] < thresholds[t]:
                        continue
                    if only_best:
                        g = candidates.ground_truth[best]
                        if taken[g, bit] and not outside[g, a]:
                            continue
                    else:
                        g = _best_free(candidates, first, last, thresholds[t], outside, taken, crowd, a, bit)
                        if g < 0:
                            continue
                    taken[g, bit] = True
                    if outside[g, a]:
                        _set(ignored, d, bit)
                    else:
                        _set(hit, d, bit)
                        _clear(ignored, d, bit)


@kernel
def collect_hits(
    class_starts: Array,
    ranks: Array,
    scores: Array,
    hit: Array,
    ignored: Array,
    caps: Array,
    positives: Array,
    thresholds: int,
    begin: int,
    end: int,
    out_starts: Array,
    out_ranks: Array,
    out_scores: Array,
    out_items: Array,
    out_first_scores: Array,
) -> None:
    """Write the hits of sweeps ``[begin, end)``; sweep ``(class * areas + area) * caps + cap`` has a ranking per threshold.

    Detections come sorted by class and descending score. Those beyond the cap within their image, and those ignored at a
    threshold, are not ranked there. Most are plain misses everywhere, and only counted.
    """
    areas = positives.shape[1]
    words = hit.shape[1]
    most = 0
    for sweep in range(begin, end):
        c, a = sweep // (areas * caps.shape[0]), sweep // caps.shape[0] % areas
        most = max(most, min(positives[c, a], class_starts[c + 1] - class_starts[c]))
    rank_of = np.empty((thresholds, most), np.int64)
    score_of = np.empty((thresholds, most))
    found = np.empty(thresholds, np.int64)
    skipped = np.empty(thresholds, np.int64)
    mask = np.empty(words, np.uint64)
    written, ranking = 0, 0
    out_starts[0] = 0
    for sweep in range(begin, end):
        c, a = sweep // (areas * caps.shape[0]), sweep // caps.shape[0] % areas
        cap = caps[sweep % caps.shape[0]]
        for w in range(words):
            mask[w] = np.uint64(0)
        for t in range(thresholds):
            bit = a * thresholds + t
            mask[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
            found[t], skipped[t] = 0, 0
        ranked, first_score, seen = 0, 0.0, False
        for d in range(class_starts[c], class_starts[c + 1]):
            if ranks[d] >= cap:
                continue
            if not seen:
                first_score, seen = scores[d], True
            ranked += 1
            plain = True
            for w in range(words):
                if (hit[d, w] | ignored[d, w]) & mask[w]:
                    plain = False
            if plain:
                continue
            for t in range(thresholds):
                bit = a * thresholds + t
                shift = np.uint64(bit & 63)
                if (ignored[d, bit >> 6] >> shift) & np.uint64(1):
                    skipped[t] += 1
                elif (hit[d, bit >> 6] >> shift) & np.uint64(1):
                    rank_of[t, found[t]] = ranked - skipped[t]
                    score_of[t, found[t]] = scores[d]
                    found[t] += 1
        for t in range(thresholds):
            for j in range(found[t]):
                out_ranks[written] = rank_of[t, j]
                out_scores[written] = score_of[t, j]
                written += 1
            out_starts[ranking + 1] = written
            out_items[ranking] = ranked - skipped[t]
            out_first_scores[ranking] = first_score
            ranking += 1
