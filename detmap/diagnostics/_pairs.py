"""Overlaps of detections and objects across classes, and repeated matching with different ignored objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.detection import zero_ids
from detmap.detection.arrangement import Arrangement, over_cells, rule_at
from detmap.detection.matches import images_of, unmatched
from detmap.kernels import overlap, pairs, readonly
from detmap.system import parallel

#: By TIDE's definition, a detection is on background if all of its overlaps with objects are below this value.
BACKGROUND = 0.1


class Overlaps(NamedTuple):
    """Pairs on one image: positions of detection (`found`) and object (`truth`), and their overlap, each of shape (p,)."""

    found: NDArray[np.int64]
    truth: NDArray[np.int64]
    overlap: NDArray[np.float64]

    def take(self, rows: NDArray[Any]) -> Overlaps:
        """Return the pairs at the indices `rows`."""
        return Overlaps(*(column[rows] for column in self))


def overlaps(arranged: Arrangement, least: float, threads: int | None = None) -> Overlaps:
    """Return all pairs on one image that overlap by at least `least`, sorted by position. Categories may differ."""
    cells = images_of(arranged)
    parts: list[tuple[int, Overlaps]] = []

    def search(begin: int, end: int) -> None:
        found = arranged.candidates(cells, least, begin, end, parallel.stop_flag())
        count = int(found.last.max(initial=0))
        sizes = (cells.detection_stops - cells.detection_starts)[begin:end]
        detection = np.repeat(cells.detection_starts[begin:end] - np.cumsum(sizes) + sizes, sizes) + np.arange(
            sizes.sum()
        )
        start = np.repeat(cells.ground_truth_starts[begin:end], sizes)
        lengths = found.last - found.first
        at = np.repeat(found.first - np.cumsum(lengths) + lengths, lengths) + np.arange(count)
        made = Overlaps(
            np.repeat(detection, lengths),
            np.repeat(start, lengths) + found.ground_truth[:count][at],
            found.iou[:count][at],
        )
        made = made.take(made.overlap >= least)
        parts.append((begin, made.take(np.lexsort((made.truth, made.found)))))

    over_cells(search, cells, threads)
    parts.sort(key=lambda part: part[0])
    if not parts:
        return Overlaps(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return Overlaps(*(np.concatenate(columns) for columns in zip(*(part for _, part in parts), strict=True)))


def take_in_order(found: Sequence[int], truth: Sequence[int], detections: int, objects: int) -> NDArray[np.bool_]:
    """Match greedily, and return a mask of the pairs that match. Pairs are visited in order, and a pair matches if its
    detection and its object are both unmatched.
    """
    free, left = bytearray(b"\1") * detections, bytearray(b"\1") * objects
    made = np.zeros(len(found), np.bool_)
    for at, (d, g) in enumerate(zip(found, truth, strict=True)):
        if free[d] and left[g]:
            free[d] = left[g] = 0
            made[at] = True
    return made


@dataclass(frozen=True, eq=False)
class Rematch:
    """Matches two tables several times with different ignored objects. Overlaps are measured only once."""

    arranged: Arrangement
    rule: pairs.Rule
    blocks: tuple[tuple[int, int, overlap.Candidates], ...]

    @classmethod
    def of(cls, arranged: Arrangement, iou: float, threads: int | None = None) -> Rematch:
        """Measure the overlaps that the matching at the threshold `iou` needs."""
        rule = rule_at(arranged.protocol, iou)
        blocks: list[tuple[int, int, overlap.Candidates]] = []

        def search(begin: int, end: int) -> None:
            found = arranged.candidates(arranged.cells, rule.overlap, begin, end, parallel.stop_flag())
            blocks.append((begin, end, found))

        over_cells(search, arranged.cells, threads)
        return cls(arranged, rule, tuple(blocks))

    def match(
        self, left_out: NDArray[np.bool_], outside: NDArray[np.bool_]
    ) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Return the outcome of every detection and the mask of found objects, both by position. Objects in the mask
        `left_out` are ignored, too. Detections in the mask `outside` are ignored if unmatched.
        """
        arranged = self.arranged
        objects = arranged.objects._replace(ignored=readonly(arranged.objects.ignored | left_out, np.bool_))
        out = unmatched(arranged, outside)
        for begin, end, candidates in self.blocks:
            pairs.assign(arranged.cells, candidates, objects, self.rule, begin, end, parallel.stop_flag(), out)
        if arranged.zero is not None and arranged.protocol.id_zero == zero_ids.MISSED:
            zero_ids.unmatch(out, arranged.zero, outside)
        return out.outcome, out.taken & ~objects.ignored
