"""KITTI's matching, in which objects choose detections and matching is repeated at each score.

See `detmap.kernels.rematching`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from detmap.detection.arrangement import Arrangement, least_overlaps, over_cells
from detmap.detection.measures import outside_of
from detmap.kernels import matching, pairs
from detmap.kernels import rematching as kernels
from detmap.system import parallel

#: Sentinel for a missing angle. If one detection has no angle, the similarity of orientation is undefined.
NO_ANGLE = -10.0


def match_all(
    arranged: Arrangement,
    thresholds: NDArray[np.float64],
    words: matching.Words,
    threads: int | None,
    taken: NDArray[np.int32] | None = None,
) -> kernels.Steps:
    """Match all detections, and return how the numbers of hits and misses change at each score.

    `thresholds` are minimum overlaps. `words` holds the outcomes of the detections, at first all unmatched, and is
    updated in place. `taken` receives the index of each detection's matched object, among the objects of the same image
    and category.
    """
    bits = arranged.ranges.measure.size * thresholds.size
    out = _room(words, bits, arranged.angles[0], np.empty(0, np.int32) if taken is None else taken)
    lowest = float(thresholds.min())
    rows = kernels.Rows(arranged.scores, arranged.order, *arranged.angles)

    def pair(begin: int, end: int) -> None:
        stop = parallel.stop_flag()
        both = [arranged.candidates(cells, lowest, begin, end, stop) for cells in (arranged.cells, arranged.others)]
        pairing = kernels.Pairing(arranged.cells, arranged.others, *both)
        levels = kernels.Levels(thresholds, arranged.ranges, stop)
        kernels.match(pairing, arranged.objects, levels, rows, begin, end, out)

    over_cells(pair, arranged.cells, threads)
    if arranged.angles[0].size:
        out.alike[arranged.angles[0] == NO_ANGLE] = np.nan
    return out


def _room(words: matching.Words, bits: int, angles: NDArray[np.float64], taken: NDArray[np.int32]) -> kernels.Steps:
    """Return output arrays, initialised as if no detection were matched. `words` tells which detections are ignored."""
    count = len(words.hit)
    missed = np.empty((count, bits), np.int32)
    for bit in range(bits):
        missed[:, bit] = (words.ignored[:, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1) == 0
    alike = np.full((count, bits), 0.0 if angles.size else np.nan)
    return kernels.Steps(words.hit, words.ignored, np.zeros((count, bits), np.int32), missed, alike, taken)


def taken(arranged: Arrangement, objects: matching.Objects, iou: float, at: int, threads: int | None) -> pairs.Taken:
    """Match at one threshold. Return the outcome and the object of each detection after the first of KITTI's two passes."""
    thresholds = least_overlaps(arranged.protocol, [iou])
    ranges, size = arranged.ranges, arranged.order.size
    one = replace(
        arranged,
        objects=objects,
        ranges=ranges._replace(limits=ranges.limits[at : at + 1], measure=ranges.measure[at : at + 1]),
    )
    outside = outside_of(one.unmatched_measures(0, size), one.ranges)
    words = matching.Words(np.zeros((size, 1), np.uint64), outside.astype(np.uint64))
    found = np.full(size, -1, np.int32)
    match_all(one, thresholds, words, threads, found)
    count = arranged.found.order.size
    hit, ignored = (column[:count, 0] == 1 for column in words)
    place = np.full(count, -1, np.int32)
    first = np.zeros(count, np.int64)
    cells = arranged.cells
    for begin, end, start in zip(*(column.tolist() for column in cells[:3]), strict=True):
        first[begin:end] = start
    own = found[:count]
    place[own >= 0] = (first[own >= 0] + own[own >= 0]).astype(np.int32)
    out = pairs.Taken(
        np.where(hit, pairs.HIT, np.where(ignored, pairs.IGNORED, pairs.MISS)).astype(np.uint8),
        place,
        np.full(count, np.nan),
        np.zeros(arranged.truth.order.size, np.bool_),
    )
    out.taken[place[place >= 0]] = True
    _measure(arranged, out, float(thresholds[0]))
    return out


def _measure(arranged: Arrangement, out: pairs.Taken, least: float) -> None:
    """Write the overlaps of detections with the objects they match."""
    cells = arranged.cells
    candidates = arranged.candidates(cells, least, 0, cells.detection_starts.size, parallel.stop_flag())
    sizes = cells.detection_stops - cells.detection_starts
    position = np.arange(sizes.sum()) + np.repeat(cells.detection_starts - np.cumsum(sizes) + sizes, sizes)
    start = np.repeat(cells.ground_truth_starts, sizes)
    held = candidates.last - candidates.first
    detection = np.repeat(position, held)
    at = np.repeat(candidates.first - np.cumsum(held) + held, held) + np.arange(held.sum())
    own = out.ground_truth[detection] == np.repeat(start, held) + candidates.ground_truth[at]
    out.overlap[detection[own]] = candidates.iou[at[own]]
