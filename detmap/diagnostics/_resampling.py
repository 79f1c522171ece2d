"""Confidence intervals of parts, by resampling images and by leaving images out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matches import HIT, IGNORED
from detmap.detection.tally import Tally, in_file_order, rematched
from detmap.kernels import readonly
from detmap.statistics import Bootstrap, intervals
from detmap.statistics.bootstrap import replicated, samples
from detmap.statistics.clusters import Units, balanced, independent, units_among
from detmap.statistics.distributions import t_test

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis


def units_of(diagnosis: Diagnosis) -> Units:
    """Return the resampling units: the images of a diagnosis, or clusters of them."""
    return units_among(diagnosis.arranged.clusters, diagnosis.arranged.image_ids.size, f"{diagnosis.scene}s")


def weights(units: Units, replicates: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield the weights of images for every bootstrap draw, and then for every jackknife sample (one group left out)."""
    count, copies = samples(units, replicates, seed)
    for sample in range(1, count):  # the first sample is the data itself
        yield copies(sample).astype(np.int64) // 2


def interval(
    estimate: float,
    values: NDArray[np.float64],
    replicates: int,
    units: Units,
    objects: NDArray[np.int64],
    *,
    bounded: bool = True,
) -> tuple[float, float]:
    """Return a 95 % interval of a metric; NaN if the data are too few. `values` has the metric of each sample, in the order
    of `weights`. `objects` are the numbers of positives per image.
    """
    made, away = values[:replicates], values[replicates:]
    own = units.totals(np.arange(objects.size), objects)
    many, balance = int(np.count_nonzero(own)), None if units.of is None else balanced(own)
    if intervals.reason(estimate, made, away, many, units.name, bounded=bounded):
        return float("nan"), float("nan")
    low, high = intervals.interval("t", estimate, made, away, many, 0.95, bounded=bounded, balance=balance)
    return float(low), float(high)


def sentence(diagnosis: Diagnosis) -> str:
    """Return a sentence on the assumptions of the intervals."""
    return f"low, high: 95 % confidence intervals; {independent(units_of(diagnosis).name)}"


def tally_of(diagnosis: Diagnosis, outcome: NDArray[np.uint8], counted: NDArray[np.bool_]) -> Tally:
    """Return a tally at the diagnosis's threshold. `outcome` holds the outcomes of the detections, and `counted` is a
    mask of the objects that count, both by position.
    """
    arranged = diagnosis.arranged
    found, truth, protocol = arranged.found, arranged.truth, arranged.protocol
    bits = [readonly((outcome == what)[:, None], np.uint64) for what in (HIT, IGNORED)]
    sums = np.concatenate(([0], np.cumsum(counted)))
    image, category = truth.cells()
    return Tally(
        protocol=replace(
            protocol,
            iou_thresholds=(diagnosis.iou,),
            area_ranges=protocol.area_ranges[:1],
            levels=(),
            max_dets=protocol.max_dets[-1:],
            # under KITTI's rule the given outcomes would not be used, because matching is repeated at each score
            matching="best-free" if rematched(protocol) else protocol.matching,
            error_threshold=None,
        ),
        categories=arranged.categories,
        image_ids=arranged.image_ids,
        category=found.category,
        image=found.image,
        rank=found.rank,
        order=readonly(found.order if in_file_order(protocol) else (), np.int64),
        scores=found.scores,
        hit=bits[0],
        ignored=bits[1],
        errors=readonly(np.empty((0, 0)), np.float64),
        positive_category=category,
        positive_image=image,
        positive_counts=readonly(np.diff(sums[truth.starts])[:, None], np.int32),
        clusters=arranged.clusters,
    )


def bootstrap_of(diagnosis: Diagnosis, outcome: NDArray[np.uint8], counted: NDArray[np.bool_]) -> Bootstrap:
    """Return the bootstrap of the tally that `tally_of` makes. Column 0 of its replicates is the mean AP."""
    tally = tally_of(diagnosis, outcome, counted).in_ranking_order(diagnosis.threads, grouped=True)
    return replicated(tally, diagnosis.replicates, diagnosis.seed, threads=diagnosis.threads)


def p_value(one: Bootstrap, other: Bootstrap) -> float:
    """Return the two-sided p-value of the difference in mean AP of two bootstraps, by Student's t; NaN for too few data."""
    images = int(min(one.support[0], other.support[0]))
    away, left_out = (
        a[:, 0] - b[:, 0] for a, b in ((one.replicates, other.replicates), (one.jackknife, other.jackknife))
    )
    error = intervals.standard_error(away, left_out, images)
    if images < intervals.FEWEST[one.unit] or not error > 0:
        return float("nan")
    worth = [balance for balance in (one.balance_of(0), other.balance_of(0)) if balance is not None]
    freedom = intervals.freedom(images, images, min(worth, default=None))
    return t_test(float(one.estimate[0] - other.estimate[0]), error, freedom)
