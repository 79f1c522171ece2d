"""AP of two tables under protocols that `detmap.explanations.incremental.Lean` does not implement. Every protocol is
evaluated from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.detection.evaluate import match
from detmap.detection.matches import match_pairs
from detmap.detection.protocols import Protocol
from detmap.detection.result import DetectionResult
from detmap.detection.tally import Tally
from detmap.kernels import readonly


@dataclass(eq=False)
class Whole:
    """Scores two tables as `detmap.evaluate` does. Protocols must have one cap (maximum number of detections). If a
    protocol has several area ranges or levels, the last one is scored. `Whole` has the interface of `Lean`, but is
    slower. `matchings` is the number of matchings so far.
    """

    ground_truth: GroundTruth
    detections: Detections
    threads: int | None = None
    matchings: int = 0
    _last: Tally | None = None

    def values(self, protocol: Protocol) -> NDArray[np.float64]:
        """Return the precisions that the metric averages, by threshold, recall and category; see `Lean.values`."""
        return self._values(self._tally(protocol))

    def notices(self, protocol: Protocol) -> dict[str, int]:
        """Return the notices about the tables."""
        return dict(DetectionResult(self._tally(protocol), threads=self.threads).notices)

    def ends(self, protocol: Protocol) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return `values` with hits ranked last, and with hits ranked first, among equal scores of a category; None
        without ties.
        """
        tally = self._tally(protocol).in_ranking_order(self.threads)
        tied = (np.diff(tally.scores) == 0) & (np.diff(tally.category) == 0)
        if not tied.any():
            return None
        last, first = (
            [self._reordered(tally, at, up) for at in range(len(protocol.iou_thresholds))] for up in (False, True)
        )
        return np.concatenate(last), np.concatenate(first)

    def outcomes(self, protocol: Protocol, iou: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return each detection's outcome (-1 if not scored) and overlap (NaN if unmatched) at one threshold."""
        area = protocol.range_names[-1]
        made = match_pairs(
            self.ground_truth,
            self.detections,
            protocol,
            iou=iou,
            area=area,
            iou_type=protocol.iou_type,
            threads=self.threads,
        )
        outcome, overlaps = np.full(len(self.detections), -1), np.full(len(self.detections), np.nan)
        outcome[made.detection], overlaps[made.detection] = made.outcome, made.overlap
        return outcome, overlaps

    def positives(self, protocol: Protocol) -> NDArray[np.int64]:
        """Return the number of positives of each category."""
        return np.asarray(self._tally(protocol).positives[:, -1])

    def _tally(self, protocol: Protocol) -> Tally:
        if self._last is None or self._last.protocol != protocol:
            self.matchings += 1
            self._last = match(
                self.ground_truth, self.detections, protocol, iou_type=protocol.iou_type, threads=self.threads
            )
        return self._last

    def _values(self, tally: Tally) -> NDArray[np.float64]:
        return DetectionResult(tally, threads=self.threads)._values("AP", None, len(tally.protocol.range_names) - 1, 0)

    def _reordered(self, tally: Tally, threshold: int, hits_first: bool) -> NDArray[np.float64]:
        """Return the values at one threshold with the hits first, or last, among equal scores of a category."""
        ranges = len(tally.protocol.range_names)
        columns = {name: tally.bit(getattr(tally, name), ranges - 1, threshold) for name in ("hit", "ignored")}
        order = np.lexsort((columns["hit"] != hits_first, -tally.scores, tally.category))
        flags: dict[str, Any] = {name: readonly(column[order, None], np.uint64) for name, column in columns.items()}
        one = replace(tally.protocol, iou_thresholds=tally.protocol.iou_thresholds[threshold : threshold + 1])
        return self._values(replace(tally.take(order, slice(None)), protocol=one, **flags))
