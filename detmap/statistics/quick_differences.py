"""Differences of AP after exchanges of images, computed fast, with a bound on the rounding errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detmap.detection.metric_names import metric_table
from detmap.kernels import exchanges, readonly
from detmap.statistics.reweighting import Reweighted


@dataclass(frozen=True, eq=False)
class QuickDifferences:
    """Differences between two models after exchanges of images, for a metric that is a mean of interpolated precision.
    `error` is the maximum absolute deviation from `PairedDetections.differences`, which adds the same terms in another
    order.
    """

    _data: Reweighted
    _weights: NDArray[np.float64]
    _weight_starts: NDArray[np.int64]
    _number: int
    error: float

    @classmethod
    def of(cls, data: Reweighted) -> QuickDifferences | None:
        """Prepare the differences in the single metric of `data`. Return None if the metric is not a mean of interpolated
        precision.
        """
        protocol = data.tally.protocol
        kind, _, _, _, group = dict(metric_table(protocol, ()))[data.metrics[0]]
        grid = readonly(protocol.recall_thresholds, np.float64)
        plain = protocol.interpolation == "grid" and protocol.mean_of == "values" and protocol.epsilon < 1e-15
        if kind != "AP" or group is not None or not plain or not (np.diff(grid) >= 0).all():
            return None
        area, first, last = data.table.metrics[0, 1:4].tolist()
        none = np.full((1, data.tally.image_ids.size), 2, np.int16)
        none[:, 1::2] = 3
        positives = data.positives(none)[:, 0, area]
        bounds = data.events.item_starts.reshape(-1)
        longest = int(np.diff(data.events.place_starts[bounds]).max(initial=0))
        weights = np.zeros((positives.size, max(int(positives.max(initial=0)), longest) + 2))
        for own, found in zip(weights, positives.tolist(), strict=True):
            if found:
                reached = np.searchsorted(np.arange(found + 1) / found, grid)
                own[: found + 2] = np.bincount(np.maximum(reached, 1), minlength=found + 2)
        held = positives.size if protocol.empty_classes == "zero" else int(np.count_nonzero(positives))
        # The rounding error of a sum of n terms is at most n * eps / 2 times the sum. Both orders of summation compute
        # two means, each at most 1.
        terms = longest + positives.size * (last - first) + 100
        return cls(
            data,
            readonly(weights.reshape(-1), np.float64),
            readonly(np.arange(positives.size + 1) * weights.shape[1], np.int64),
            held * (last - first) * grid.size,
            4 * terms * float(np.finfo(np.float64).eps),
        )

    def __call__(self, swaps: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return differences, shape (n,); ``swaps[k, i]`` is 1 if permutation *k* exchanges detections on image *i*."""
        codes = np.empty((*swaps.shape, 2), np.int16)
        codes[..., 0] = 2 + swaps
        codes[..., 1] = 3 - swaps
        words = self._data.words(codes.reshape(len(swaps), -1))
        area, first, last = self._data.table.metrics[0, 1:4].tolist()
        sums = np.empty((len(swaps), 2))
        exchanges.add_curves(self._data.events, words, self._weights, self._weight_starts, area, first, last, sums)
        return (sums[:, 1] - sums[:, 0]) / self._number
