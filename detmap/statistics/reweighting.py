"""A tally scored again under other weights of its images; nothing is matched again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from detmap.hits import Hits
from detmap.kernels import readonly, resampling
from detmap.tally import Tally


@dataclass(frozen=True, eq=False)
class Reweighted:
    """A tally in ranking order made ready to be scored under many weights of its images: whole area range, largest cap."""

    tally: Tally
    names: tuple[str, ...] = field(init=False)
    support: NDArray[np.int64] = field(init=False)
    events: resampling.Events = field(init=False)

    def __post_init__(self) -> None:
        tally = self.tally
        head = ("mAP",) if tally.protocol.per_class_metrics else ("AP", "AP50", "AP75")
        object.__setattr__(self, "names", head)
        held = tally.positive_counts[:, 0] > 0
        support = np.bincount(tally.positive_category[held], minlength=len(tally.categories))
        every = np.full(len(head), np.unique(tally.positive_image[held]).size)
        object.__setattr__(self, "support", readonly(np.concatenate((every, support)), np.int64))
        object.__setattr__(self, "events", self._events())

    def _events(self) -> resampling.Events:
        tally, thresholds = self.tally, len(self.tally.protocol.iou_thresholds)
        mask = np.zeros(-(-thresholds // 64), np.uint64)
        for t in range(thresholds):
            mask[t >> 6] |= np.uint64(1) << np.uint64(t & 63)
        hit, ignored = tally.hit[:, : mask.size] & mask, tally.ignored[:, : mask.size] & mask
        kept = np.flatnonzero((ignored != mask).any(axis=1))
        category, image, score = tally.category[kept], tally.image[kept], tally.scores[kept]
        hit, ignored = hit[kept], ignored[kept]
        starts_run = np.ones(kept.size, np.bool_)
        if tally.protocol.ties == "image":
            # An image's detections of one score change places with nobody: the copies of such a run follow each other whole.
            starts_run[1:] = (category[1:] != category[:-1]) | (image[1:] != image[:-1]) | (score[1:] != score[:-1])
        run = np.cumsum(starts_run) - 1
        special = (hit | ignored).any(axis=1)
        in_special = np.bincount(run[special], minlength=int(starts_run.sum())).astype(np.bool_)[run]
        first = in_special & starts_run
        events = image.copy()
        events[first] = ~np.arange(int(first.sum()), dtype=np.int32)
        stays = ~in_special | first
        counts = np.bincount(category[stays], minlength=len(tally.categories))
        lengths = np.bincount(np.cumsum(first)[in_special] - 1, minlength=int(first.sum()))
        return resampling.Events(
            readonly(np.concatenate(([0], np.cumsum(counts))), np.int64),
            readonly(events[stays], np.int32),
            readonly(image[first], np.int32),
            readonly(np.concatenate(([0], np.cumsum(lengths))), np.int64),
            readonly(hit[in_special], np.uint64),
            readonly(ignored[in_special], np.uint64),
        )

    def hits(self, weights: NDArray[np.int32]) -> Hits:
        """Return the hits of ranking ``k * T + t`` where image *i* occurs ``weights[i]`` times."""
        tally, thresholds = self.tally, len(self.tally.protocol.iou_thresholds)
        found = tally.positive_counts[:, 0] * weights[tally.positive_image]
        positives = np.bincount(tally.positive_category, weights=found, minlength=len(tally.categories))
        positives = np.repeat(positives.astype(np.int64), thresholds)
        starts = np.concatenate(([0], np.cumsum(positives)))  # no ranking has more hits than positives
        ranks, items = np.empty(starts[-1], np.int64), np.empty(positives.size, np.int64)
        resampling.collect_hits(self.events, readonly(weights, np.int32), thresholds, starts, ranks, items)
        return Hits(starts, ranks[: starts[-1]], positives, items)

    def metrics(self, weights: NDArray[np.int32]) -> list[float]:
        """Return the value of every metric and category, computed as `detmap.DetectionResult` does."""
        protocol, hits = self.tally.protocol, self.hits(weights)
        if protocol.interpolation == "grid":
            grid = readonly(protocol.recall_thresholds, np.float64)
            flat = np.empty((len(hits), grid.size))
            hits.interpolate_into(grid, protocol.epsilon, flat, np.empty((0, grid.size)))
        else:
            flat = hits.average_precision(protocol.interpolation, protocol.epsilon, threads=1)
        values = flat.reshape(len(self.tally.categories), len(protocol.iou_thresholds), -1)
        per_category = values.reshape(len(values), -1).mean(axis=1)
        # The mean of the whole selection at once, by threshold, recall and category: that order is part of the last bit.
        defined = np.ascontiguousarray(values[~np.isnan(per_category)].transpose(1, 2, 0))
        selections = [defined]
        if not protocol.per_class_metrics:
            for iou in (0.5, 0.75):
                distance = np.abs(np.array(protocol.iou_thresholds) - iou)
                nearest = int(np.argmin(distance))
                selections.append(defined[nearest : nearest + 1] if distance[nearest] < 1e-9 else defined[:0])
        head = [float(np.mean(part.ravel())) if part.size else float("nan") for part in selections]
        return [*head, *map(float, per_category)]
