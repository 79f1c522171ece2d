"""Overlapping pairs of boxes, within a memory limit: 12,000 detections and 12,000 objects can form 144 million
pairs.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError
from detmap.kernels import overlap, readonly
from detmap.system import limits

_PAIR = 12  # bytes per pair: 8 for the overlap, 4 for the index of the object


def candidates(
    cells: overlap.Cells,
    bounds: tuple[overlap.Boxes, overlap.Boxes],
    crowd: NDArray[np.bool_],
    least: float,
    begin: int,
    end: int,
    stop: NDArray[np.uint8],
) -> overlap.Candidates:
    """Call `detmap.kernels.overlap.candidates`; raise `InputError` if the pairs of one image and category exceed
    `limits.PAIRS`.
    """
    found = cells.detection_stops[begin:end] - cells.detection_starts[begin:end]
    objects = cells.ground_truth_stops[begin:end] - cells.ground_truth_starts[begin:end]
    most = limits.PAIRS.value() // _PAIR
    if (found * objects).max(initial=0) <= most:
        return overlap.candidates(cells, *bounds, crowd, least, begin, end, stop)
    parts = []
    for at in range(begin, end):
        first, last, start, stops = (int(column[at]) for column in cells)
        step = max(1, most // (4 * (stops - start)))
        pairs = 0
        for part, until in pairwise([*range(first, last, step), last]):
            run = overlap.Cells(*(readonly([value], np.int64) for value in (part, until, start, stops)))
            made = overlap.candidates(run, *bounds, crowd, least, 0, 1, stop)
            count = int(made.last.max(initial=0))
            parts.append(made._replace(ground_truth=made.ground_truth[:count].copy(), iou=made.iou[:count].copy()))
            pairs += count
            if pairs > most:
                raise InputError(
                    f"{last - first:,} detections and {stops - start:,} objects of one image and category overlap in more "
                    f"than {most:,} pairs, which take more than {limits.PAIRS.value() >> 20:,} MiB",
                    remedy=f"is it one box many times? Cap them (max_dets, --max-dets), or {limits.PAIRS.advice()}",
                )
    return _joined(parts)


def _joined(parts: list[overlap.Candidates]) -> overlap.Candidates:
    """Concatenate candidates of consecutive ranges of detections."""
    before = np.cumsum([0, *(part.iou.size for part in parts)]).tolist()
    firsts = [part.first + offset for part, offset in zip(parts, before, strict=False)]
    lasts = [part.last + offset for part, offset in zip(parts, before, strict=False)]
    truth = np.concatenate([part.ground_truth for part in parts])
    overlaps = np.concatenate([part.iou for part in parts])
    return overlap.Candidates(np.concatenate(firsts), np.concatenate(lasts), truth, overlaps)
