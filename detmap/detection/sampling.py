"""Precision at up to 41 scores, as in KITTI, from a tally whose images may be weighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.detection.protocols import Protocol
from detmap.detection.rematching import chosen_thresholds
from detmap.detection.tally import Tally, rematched
from detmap.hits import SAMPLES, sampled_mean
from detmap.kernels import readonly, rematching
from detmap.system import parallel


class Averages(NamedTuple):
    """AP and mean similarity of orientation (`alike`) by class, range and threshold, shape (K, A, T); NaN if undefined."""

    precision: NDArray[np.float64]
    alike: NDArray[np.float64]


def of_class(
    values: NDArray[np.float64], name: str, protocol: Protocol, categories: Sequence[tuple[Any, str]], detected: Any
) -> float:
    """Return the mean of `values`, shape (K, T), over the thresholds of a class, in percent. NaN if the class is not
    evaluated, has no ground truth, or has no detections, for which KITTI's program prints nothing. `detected`, shape
    (K,), is the number of detections of each class.
    """
    places = [k for k, (_, own) in enumerate(categories) if own.casefold() == name.casefold()]
    if len(places) != 1 or not detected[places[0]]:
        return float("nan")
    chosen = 100.0 * values[places[0], chosen_thresholds(protocol, categories)[:, places[0]]]
    return float(np.mean(chosen)) if chosen.size else float("nan")


@dataclass(frozen=True)
class Sampled:
    """Precision, scores at which precision is read, and similarity of orientation, each of shape (K, A, T, 41); NaN for
    classes without objects.
    """

    precision: NDArray[np.float64]
    scores: NDArray[np.float64]
    alike: NDArray[np.float64]

    def averages(self, rule: str) -> Averages:
        """Return AP and the mean similarity of orientation under a rule of `detmap.hits.SAMPLED`."""
        return Averages(sampled_mean(self.precision, rule), sampled_mean(self.alike, rule))

    @classmethod
    def of(cls, tally: Tally, copies: NDArray[np.int64] | None = None, threads: int | None = None) -> Sampled:
        """Sample precision, scores and similarity of a tally in ranking order; `copies` are image weights, by default 1."""
        protocol = tally.protocol
        ranges, thresholds = len(protocol.range_names), len(protocol.iou_thresholds)
        shape = (len(tally.categories), ranges, thresholds, SAMPLES)
        precision, scores, alike = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
        counts = np.ones(tally.image_ids.size, np.int64) if copies is None else copies
        positives = positives_of(tally, counts)
        columns = _steps(tally)
        # One detection without an angle disables the similarity for all classes, as in the benchmark's program.
        oriented = bool(len(tally)) and not np.isnan(columns[2]).any()
        turned = columns[2] if oriented else readonly(np.empty((0, columns[2].shape[1])), np.float64)
        rows = rematching.Sampled(
            tally.scores, tally.image, tally.hit, columns[0], columns[1], turned, readonly(counts, np.int64)
        )
        starts = tally.class_starts

        def read(begin: int, end: int) -> None:
            for ranking in range(begin, end):
                k, bit = divmod(ranking, ranges * thresholds)
                a, t = divmod(bit, thresholds)
                if positives[k, a] > 0:
                    out = precision[k, a, t], scores[k, a, t], alike[k, a, t]
                    rematching.sample(rows, bit, int(starts[k]), int(starts[k + 1]), int(positives[k, a]), *out)
                    if not oriented:
                        alike[k, a, t] = np.nan

        parallel.run(read, parallel.even(shape[0] * ranges * thresholds, threads), threads)
        return cls(precision, scores, alike)


def positives_of(tally: Tally, copies: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the weighted number of objects, shape (K, A)."""
    weights = tally.positive_counts * copies[tally.positive_image][:, None]
    columns = [np.bincount(tally.positive_category, one, len(tally.categories)) for one in weights.T]
    made: NDArray[np.int64] = np.stack(columns, axis=1).astype(np.int64)
    return made


def _steps(tally: Tally) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return three arrays by detection, area range and threshold: the changes that the detection makes to the number of
    hits, to the number of misses, and to the sum of orientation similarities. If matching is not repeated at each
    score, a detection adds only its own outcome.
    """
    if rematched(tally.protocol):
        return tally.found, tally.missed, tally.alike
    bits = len(tally.protocol.range_names) * len(tally.protocol.iou_thresholds)
    hit, ignored = (_unpacked(words, bits) for words in (tally.hit, tally.ignored))
    nothing = readonly(np.full((len(tally), bits), np.nan), np.float64)
    return readonly(hit, np.int32), readonly(~(hit | ignored), np.int32), nothing


def _unpacked(words: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
    """Return rows of 64-bit words as rows of flags, shape (n, bits)."""
    return np.stack([(words[:, b >> 6] >> np.uint64(b & 63)) & np.uint64(1) == 1 for b in range(bits)], axis=1)
