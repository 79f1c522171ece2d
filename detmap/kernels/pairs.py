"""Find the object that each detection is matched to at one IoU threshold, and the objects that each detection overlaps
most. `detmap.kernels.matching` handles all thresholds and area ranges at once, but only gives hits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel
from detmap.kernels.matching import BOXED, GROUP, SINGLE, Objects, _best_by_role
from detmap.kernels.overlap import Candidates, Cells

Array = NDArray[Any]

MISS, HIT, IGNORED = 0, 1, 2


class Rule(NamedTuple):
    """The rule at one threshold: the minimum ``overlap`` of a match, whether a detection only considers the best object
    (VOC), and whether objects choose detections (THUMOS14).
    """

    overlap: float
    only_best: bool
    by_object: bool = False


class Taken(NamedTuple):
    """For each detection: its ``outcome``, the position of the object that it is matched to (``ground_truth``), and its
    ``overlap`` with that object. For each object: whether it is matched (``taken``). All columns are indexed by position.
    """

    outcome: Array
    ground_truth: Array
    overlap: Array
    taken: Array


class Search(NamedTuple):
    """Arrays by position: the categories of detections (``found``) and of objects (``truth``). ``floor`` is the minimum
    overlap. If ``first`` is true, the first object of a tie wins, else the last.
    """

    found: Array
    truth: Array
    floor: float
    first: bool


class Nearest(NamedTuple):
    """For each detection: the position of the best object of its category and the overlap with that object, then the same
    for the best object of another category.
    """

    same: Array
    same_overlap: Array
    other: Array
    other_overlap: Array


class Rows(NamedTuple):
    """For each pair: its rows in the tables of ``detections`` and ``ground_truth``. ``detection_order`` and
    ``ground_truth_order`` map positions to rows of the tables.
    """

    detections: Array
    ground_truth: Array
    detection_order: Array
    ground_truth_order: Array


@kernel
def rows_of(cells: Cells, candidates: Candidates, begin: int, end: int, out: Rows) -> None:
    """Write, for each candidate pair of the cells ``[begin, end)``, the row of the detection and the row of the object."""
    row = 0
    for c in range(begin, end):
        start = cells.ground_truth_starts[c]
        for d in range(cells.detection_starts[c], cells.detection_stops[c]):
            for i in range(candidates.first[row], candidates.last[row]):
                out.detections[i] = out.detection_order[d]
                out.ground_truth[i] = out.ground_truth_order[start + candidates.ground_truth[i]]
            row += 1


@helper
def _better(candidates: Candidates, a: int, b: int, first: bool) -> Any:
    """Return whether candidate `a` overlaps more than `b`; in a tie the earlier object is better if `first`, else the
    later one.
    """
    if candidates.iou[a] != candidates.iou[b]:
        return candidates.iou[a] > candidates.iou[b]
    return (candidates.ground_truth[a] < candidates.ground_truth[b]) == first


@helper
def _choose(
    cells: Cells, candidates: Candidates, objects: Objects, overlap: float, c: int, row: int, stop: Array, out: Taken
) -> None:
    """Let each object of cell `c`, in order, take the free detection that overlaps it most, the first in a tie.
    Remaining detections that touch an ignored object are ignored. `row` is the row of the cell's first detection in
    `candidates`.
    """
    start, first = cells.ground_truth_starts[c], cells.detection_starts[c]
    for g in range(start, cells.ground_truth_stops[c]):
        if stop[0]:
            return
        best, overlapped = -1, 0.0
        for d in range(first, cells.detection_stops[c]):
            for i in range(candidates.first[row + d - first], candidates.last[row + d - first]):
                iou = candidates.iou[i]
                if start + candidates.ground_truth[i] != g or iou < overlap or (best >= 0 and iou <= overlapped):
                    continue
                if not objects.ignored[g] and out.ground_truth[d] < 0:
                    best, overlapped = d, iou
        if best >= 0:
            out.outcome[best] = HIT
            out.taken[g] = True
            out.ground_truth[best] = g
            out.overlap[best] = overlapped
    for d in range(first, cells.detection_stops[c]):
        if out.ground_truth[d] >= 0:
            continue
        touched = 0.0
        for i in range(candidates.first[row + d - first], candidates.last[row + d - first]):
            g = start + candidates.ground_truth[i]
            if objects.ignored[g] and candidates.iou[i] > touched:
                touched = candidates.iou[i]
                out.outcome[d] = IGNORED
                out.ground_truth[d] = g
                out.overlap[d] = touched


@kernel
def assign(
    cells: Cells,
    candidates: Candidates,
    objects: Objects,
    rule: Rule,
    begin: int,
    end: int,
    stop: Array,
    out: Taken,
) -> None:
    """Match the detections of cells ``[begin, end)``, best score first, by the rules of `detmap.kernels.matching.match`.
    If ``rule.by_object`` is true, each object in turn chooses a detection instead.

    ``objects.ignored`` includes objects outside of the area range. `out` must be initialised with the ``outcome`` of
    unmatched detections, -1 in ``ground_truth``, and False in ``taken``. The kernel returns early once `stop` is set.
    """
    row, roles, best = 0, objects.role.shape[0] > 0, np.empty(4, np.int64)
    for c in range(begin, end):
        start = cells.ground_truth_starts[c]
        if rule.by_object:
            _choose(cells, candidates, objects, rule.overlap, c, row, stop, out)
            row += cells.detection_stops[c] - cells.detection_starts[c]
            continue
        for d in range(cells.detection_starts[c], cells.detection_stops[c]):
            if stop[0]:
                return
            chosen, fallen = -1, SINGLE
            if roles:
                _best_by_role(candidates, candidates.first[row], candidates.last[row], objects.role, start, best)
            for i in range(candidates.first[row], candidates.last[row]):
                g = start + candidates.ground_truth[i]
                if candidates.iou[i] < rule.overlap or (roles and objects.role[g] != SINGLE):
                    continue
                if not rule.only_best and out.taken[g] and not objects.crowd[g]:
                    continue
                if chosen >= 0:
                    before = start + candidates.ground_truth[chosen]
                    if rule.only_best or objects.ignored[g] == objects.ignored[before]:
                        if not _better(candidates, i, chosen, rule.only_best):
                            continue
                    elif objects.ignored[g]:
                        continue
                chosen = i
            row += 1
            if chosen >= 0:
                g = start + candidates.ground_truth[chosen]
                if out.taken[g] and not (objects.crowd[g] or objects.ignored[g]):  # matched already (VOC's rule)
                    chosen = -1
            for role in range(GROUP, best.shape[0] if roles else GROUP):
                if chosen >= 0 or best[role] < 0 or candidates.iou[best[role]] < rule.overlap:
                    continue
                if role != BOXED or not out.taken[start + candidates.ground_truth[best[role]]]:
                    chosen, fallen = best[role], role
            if chosen < 0:
                continue
            g = start + candidates.ground_truth[chosen]
            found_before = fallen == GROUP and out.taken[g]
            out.outcome[d] = IGNORED if objects.ignored[g] or found_before or fallen >= BOXED else HIT
            out.taken[g] = True
            out.ground_truth[d] = g
            out.overlap[d] = candidates.iou[chosen]


@kernel
def nearest(
    cells: Cells,
    candidates: Candidates,
    objects: Objects,
    search: Search,
    begin: int,
    end: int,
    stop: Array,
    out: Nearest,
) -> None:
    """Find for each detection of cells ``[begin, end)`` the best object of its category and of another category (see
    `Nearest`); ignored objects do not count. In this kernel a cell is an image with all its categories. Positions in
    `out` must be initialised with -1. The kernel returns early once `stop` is set.
    """
    row = 0
    for c in range(begin, end):
        start = cells.ground_truth_starts[c]
        for d in range(cells.detection_starts[c], cells.detection_stops[c]):
            if stop[0]:
                return
            same, other = -1, -1
            for i in range(candidates.first[row], candidates.last[row]):
                g = start + candidates.ground_truth[i]
                if objects.ignored[g] or candidates.iou[i] < search.floor:
                    continue
                if search.found[d] == search.truth[g]:
                    if same < 0 or _better(candidates, i, same, search.first):
                        same = i
                elif other < 0 or _better(candidates, i, other, search.first):
                    other = i
            row += 1
            if same >= 0:
                out.same[d], out.same_overlap[d] = start + candidates.ground_truth[same], candidates.iou[same]
            if other >= 0:
                out.other[d], out.other_overlap[d] = start + candidates.ground_truth[other], candidates.iou[other]
