"""Precision, recall and average precision, per category, area range, cap (an entry of `max_dets`) and IoU threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.detection import zero_ids
from detmap.detection.metric_names import metric_table
from detmap.detection.protocols import Protocol
from detmap.detection.sampling import Sampled
from detmap.detection.tally import Tally
from detmap.hits import SAMPLED, SAMPLES, Hits
from detmap.kernels import Frozen, matching, readonly
from detmap.system import parallel

#: Approximate number of blocks of rankings: enough for all threads, but few, because each block needs a call.
_BLOCKS = 16

#: Minimum cost of a block, in the units of `Rankings.blocks`; a smaller block takes less time than a call.
_LEAST = 65_536.0


@dataclass(frozen=True, eq=False)
class Rankings:
    """The rankings of a tally, computed a block at a time.

    Ranking ``((k * A + a) * M + m) * T + t`` belongs to category *k*, area range *a*, cap *m* and IoU threshold *t*.
    """

    #: The tally, in ranking order.
    tally: Tally
    #: The selected caps of the protocol, ascending.
    caps: tuple[int, ...]
    #: Whether `hits` also returns scores.
    scored: bool = True

    def __len__(self) -> int:
        """Return the number of rankings."""
        return self.tally.positives.size * self._per_area()

    def _per_area(self) -> int:
        return len(self.caps) * len(self.tally.protocol.iou_thresholds)

    def _capacity(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return an upper bound on the hits of each ranking: the number of hits within the largest cap."""
        thresholds = len(self.tally.protocol.iou_thresholds)
        ranking = np.arange(begin, end)
        return np.asarray(
            self.tally.hit_counts.ravel()[ranking // self._per_area() * thresholds + ranking % thresholds]
        )

    def blocks(self) -> list[tuple[int, int]]:
        """Cut the rankings into blocks, which limits the memory in use at a time."""
        hits, areas = int(self.tally.hit_counts.sum()), self.tally.positives.shape[1]
        if len(self.caps) * hits + areas * len(self.tally) + 4 * len(self) <= _LEAST:  # this sum equals that of `costs`
            return parallel.even(len(self), 1)
        capacity = self._capacity(0, len(self))
        looked_at = np.repeat(np.diff(self.tally.class_starts), len(self) // max(len(self.tally.categories), 1))
        costs = capacity + looked_at / self._per_area() + 4
        # Every block scans all rows of its classes, so small blocks cost more than they save.
        least = max(float(costs.sum()) / _BLOCKS, 2.0 * np.diff(self.tally.class_starts).max(initial=0))
        return parallel.split(costs, max(min(least, max(len(self.tally), len(self))), _LEAST))

    def hits(self, begin: int, end: int) -> Hits:
        """Return the hits of rankings ``[begin, end)``."""
        tally = self.tally
        starts = np.concatenate(([0], np.cumsum(self._capacity(begin, end))))
        room, rankings = (starts[-1], end - begin) if self.scored else (0, 0)
        items, ranks = np.empty(end - begin, np.int64), np.empty(starts[-1], np.int64)
        scores, first = np.empty(room), np.empty(rankings)
        caps, thresholds = readonly(self.caps, np.int64), len(tally.protocol.iou_thresholds)
        out = matching.Collected(starts, ranks, scores, items, first)
        matching.collect_hits(tally.columns(), caps, tally.positives, thresholds, begin, end, out)
        found = starts[-1]
        positives = tally.positives.ravel()[np.arange(begin, end) // self._per_area()]
        return Hits(starts, ranks[:found], positives, items, scores[:found], first)


@dataclass(frozen=True, eq=False)
class Curves(Frozen):
    """The curves of `detmap.DetectionResult` for some of the caps. `scores` is empty unless requested. `alike` is the
    mean similarity of orientation, see `detmap.detection.sampling.Averages`; None except under KITTI's interpolation.
    """

    precision: NDArray[np.float64]
    scores: NDArray[np.float64]
    average_precision: NDArray[np.float64]
    alike: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, tally: Tally, caps: tuple[int, ...], scored: bool, threads: int | None) -> Curves:
        """Compute the curves of a tally in ranking order; `scored` requests the scores."""
        protocol = tally.protocol
        if protocol.interpolation in SAMPLED:
            return cls._sampled(tally, caps, scored, threads)
        shape = (len(tally.categories), len(protocol.range_names), len(caps), len(protocol.iou_thresholds))
        rankings = Rankings(tally, caps, scored)
        grid = readonly(protocol.recall_thresholds, np.float64)
        precision, scores = (np.empty((rows, grid.size)) for rows in (len(rankings), len(rankings) if scored else 0))
        ap = np.empty(len(rankings))

        def accumulate(begin: int, end: int) -> None:
            hits, rows = rankings.hits(begin, end), slice(begin, end)
            hits.interpolate_into(grid, protocol.epsilon, precision[rows], scores[rows])
            if protocol.interpolation == "grid":
                ap[rows] = precision[rows].mean(axis=1)
            else:
                ap[rows] = hits.average_precision(protocol.interpolation, protocol.epsilon, threads=1)

        parallel.run(accumulate, rankings.blocks(), threads)
        return cls._in_order(precision, scores, ap, shape, scored)

    @classmethod
    def joined(cls, parts: Sequence[Curves]) -> Curves:
        """Concatenate the curves of consecutive ranges of categories."""
        if len(parts) == 1:
            return parts[0]
        scored = bool(parts[0].scores.size)
        by_category = [
            np.concatenate([getattr(one, name).transpose(axes) for one in parts])
            for name, axes in (
                ("precision", (2, 3, 4, 0, 1)),
                *([("scores", (2, 3, 4, 0, 1))] if scored else []),
                ("average_precision", (1, 2, 3, 0)),
            )
        ]
        shape = by_category[-1].shape
        rows = [column.reshape(-1, column.shape[-1]) for column in by_category[:-1]]
        scores = rows[1] if scored else parts[0].scores
        return cls._in_order(rows[0], scores, by_category[-1].ravel(), shape, scored)

    @classmethod
    def _sampled(cls, tally: Tally, caps: tuple[int, ...], scored: bool, threads: int | None) -> Curves:
        """Compute the curves from the precision at up to 41 scores. This precision is the same for every cap."""
        protocol = tally.protocol
        shape = (len(tally.categories), len(protocol.range_names), len(caps), len(protocol.iou_thresholds))
        made = Sampled.of(tally, threads=threads)
        places = np.ceil(np.clip(np.array(protocol.recall_thresholds), 0.0, 1.0) * (SAMPLES - 1) - 1e-9).astype(
            np.int64
        )

        def capped(values: NDArray[np.float64]) -> NDArray[np.float64]:
            values = values.reshape(shape[0], shape[1], 1, shape[3], values.shape[-1])
            return np.ascontiguousarray(np.broadcast_to(values, (*shape, values.shape[-1])))

        precision = capped(made.precision)[..., places].reshape(-1, places.size)
        scores = capped(made.scores)[..., places].reshape(-1, places.size) if scored else np.empty((0, places.size))
        means = made.averages(protocol.interpolation)
        ap = capped(means.precision[..., None]).ravel()
        return replace(cls._in_order(precision, scores, ap, shape, scored), alike=means.alike)

    @classmethod
    def _in_order(
        cls,
        precision: NDArray[np.float64],
        scores: NDArray[np.float64],
        ap: NDArray[np.float64],
        shape: tuple[int, ...],
        scored: bool,
    ) -> Curves:
        """Transpose arrays with the axes category, area, cap and threshold, of sizes `shape`, to pycocotools' order."""
        recalls = precision.shape[1]
        for array in (precision, scores, ap):
            array.setflags(write=False)
        return cls(
            precision.reshape(*shape, recalls).transpose(3, 4, 0, 1, 2),
            scores.reshape(*shape, recalls).transpose(3, 4, 0, 1, 2) if scored else scores,
            ap.reshape(shape).transpose(3, 0, 1, 2),
        )


def averaged(curves: Curves, protocol: Protocol) -> NDArray[np.float64]:
    """Return the values that AP averages, at the largest cap. The axes are threshold, recall, category and
    area range.
    """
    grid = protocol.interpolation == "grid"
    values = curves.precision[..., -1] if grid else curves.average_precision[:, None, :, :, -1]
    return with_empty(values, protocol)


def with_empty(values: NDArray[np.float64], protocol: Protocol) -> NDArray[np.float64]:
    """Return AP or recall; for classes without ground truth, NaN is replaced by 0 if the protocol says so."""
    return values if protocol.empty_classes == "undefined" else np.where(np.isnan(values), 0.0, values)


def mean_of_defined(values: NDArray[np.float64]) -> float:
    """Return the mean of values that are not NaN; NaN if there are none."""
    if values.ndim > 1 and values.size:  # usually all or none of a category's values (last axis) are NaN
        undefined = np.isnan(values[(0,) * (values.ndim - 1)])
        if np.isnan(values[..., undefined]).all():
            values = values[..., ~undefined]  # values and order are those of `defined`, so that the mean is equal
    mean = float(np.mean(values.ravel())) if values.size else float("nan")
    if mean == mean:  # no value is missing
        return mean
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if defined.size else float("nan")


def mean_under(protocol: Protocol, values: NDArray[np.float64]) -> float:
    """Return AP, averaged by the protocol's rule; NaN if undefined. `values` has the axes threshold, recall and category."""
    if protocol.mean_of == "thresholds":
        values = np.array([mean_of_defined(own) for own in values])
    elif protocol.mean_of == "classes" and values.size:
        values = np.ascontiguousarray(np.moveaxis(values, -1, 0)).reshape(values.shape[-1], -1).mean(axis=1)
    return mean_of_defined(values)


def published_mean(values: NDArray[np.float64]) -> float:
    """Return the mean with NaN counted as -1, rounded to four decimals, as in CrowdPose's evaluation."""
    return float(np.round(np.mean(np.where(np.isnan(values), -1.0, values)), 4)) if values.size else float("nan")


def effect_of_zero_ids(tally: Tally, threads: int | None = None) -> dict[str, int]:
    """Return a notice that states AP for both values of the decision `id_zero`. It is empty if no annotation has the id 0.
    The tally must be in ranking order.
    """
    changed = changed_by_zero_ids(tally, threads)
    if changed is None:
        return {}
    return notice_of_zero_ids(tally, Curves.of(tally, tally.protocol.max_dets[-1:], False, threads), [changed])


class Changed(NamedTuple):
    """The effect of switching the decision `id_zero` to its other value. `categories` is a mask, shape (K,), of the
    affected categories. `values` is the result of `averaged` under the other value, for these categories and the first
    area range.
    """

    categories: NDArray[np.bool_]
    values: NDArray[np.float64]


def changed_by_zero_ids(tally: Tally, threads: int | None = None) -> Changed | None:
    """Return the effect of switching the decision `id_zero` to its other value. None if no annotation has the id 0, or
    if the effect is unknown.
    """
    under = zero_ids.under_other(tally)
    if under is None:
        return None
    categories, other = under
    curves = Curves.of(other, tally.protocol.max_dets[-1:], False, threads)
    return Changed(categories, averaged(curves, tally.protocol)[:, :, :, 0])


def notice_of_zero_ids(tally: Tally, curves: Curves, changed: Sequence[Changed | None]) -> dict[str, int]:
    """Return a notice that states AP for both values of the decision `id_zero`. It is empty if every item of `changed` is
    None.

    `curves` has the curves of all categories within the largest cap. `changed` has an item for each of consecutive
    ranges that cover all categories.
    """
    parts = [part for part in changed if part is not None]
    if not parts:
        return {}
    protocol = tally.protocol
    here = averaged(curves, protocol)[:, :, :, 0]
    there = here.copy()
    there[..., np.concatenate([part.categories for part in parts])] = np.concatenate(
        [part.values for part in parts], -1
    )
    name = metric_table(protocol, tally.categories)[0][0]
    return zero_ids.effect(name, protocol.id_zero, mean_of_defined(here), mean_of_defined(there))


def recalls(tally: Tally) -> NDArray[np.float64]:
    """Return the final recall, shape (T, K, A, M), of a tally in ranking order; NaN without positives."""
    positives = tally.positives[:, None, :, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        reached = np.where(positives > 0, tally.hits_within / positives, np.nan)
    return readonly(reached.transpose(3, 0, 2, 1), np.float64)
