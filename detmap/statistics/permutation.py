"""Paired permutation tests of two models, which exchange the models' detections on random images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.data.ids import Clusters
from detmap.detection.tally import Tally
from detmap.errors import OptionError, check_integer
from detmap.panoptic.tally import PanopticTally
from detmap.statistics.bootstrap import alpha_of, check_level
from detmap.statistics.clusters import clustered
from detmap.statistics.draws import check_seed, exchanged, exchanges
from detmap.statistics.intervals import FEWEST
from detmap.statistics.resampled import MOST_CHANGING, AnyTally, Paired, PairedDetections
from detmap.statistics.segments import PairedSegments
from detmap.system import parallel, progress

#: Default number of permutations, unless the number of hypotheses requires more.
PERMUTATIONS = 5000

#: Tolerance for differences that are mathematically equal but rounded differently.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class Permutations:
    """Differences between the metrics of two models after exchanging their detections on some images.

    Attributes
    ----------
    metrics, by_category, categories
        The columns, as in `detmap.statistics.Bootstrap`.
    estimate : ndarray of float64, shape (m,)
        The differences without any exchange, second model minus first.
    differences : ndarray of float64, shape (P, m)
        Row *r* holds the differences after permutation *r*.
    whole : dict of int to ndarray of float64
        The differences after every possible permutation, by column. Only for columns with enumerated permutations, if
        the rows of `differences` were sampled.
    extreme, permutations : ndarray of int64, shape (m,)
        Number of permutations with at least the absolute difference of `estimate`, and total number of permutations.
    exact : ndarray of bool, shape (m,)
        Whether all possible permutations of the column were enumerated, rather than sampled.
    support : ndarray of int64, shape (m,)
        For each column, the number of images, or clusters, with positives.
    images : int
        The number of images, or of clusters if `unit` is "clusters".
    seed : int
        The seed of the draws.
    columns : dict of str to int
        The column of each metric, by its name in a result.
    unit : {"images", "videos", "samples", "clusters"}
        The unit that permutations exchange between models.
    """

    metrics: tuple[str, ...]
    by_category: tuple[str, ...]
    categories: tuple[tuple[Any, str], ...]
    estimate: NDArray[np.float64]
    differences: NDArray[np.float64]
    whole: dict[int, NDArray[np.float64]]
    extreme: NDArray[np.int64]
    permutations: NDArray[np.int64]
    exact: NDArray[np.bool_]
    support: NDArray[np.int64]
    images: int
    seed: int
    columns: dict[str, int]
    unit: str = "images"

    def p_value(self, metric: str) -> float:
        """Return the p-value of one metric."""
        return float(self.p_values()[self.columns[metric]])

    @property
    def drawn(self) -> int:
        """The number of permutations drawn or enumerated."""
        return len(self.differences)

    def category_columns(self, metric: str) -> NDArray[np.int64]:
        """Return the columns of a per-category metric, one for every category."""
        start = len(self.metrics) + self.by_category.index(metric) * len(self.categories)
        return np.arange(start, start + len(self.categories))

    def p_values(self) -> NDArray[np.float64]:
        """Return the two-sided p-value of each column, shape (m,); NaN where the difference is undefined.

        If all permutations are enumerated, p is ``extreme / permutations``. If permutations are sampled, p is ``(1 +
        extreme) / (1 + permutations)``, which is never 0, because the data count as one more permutation.
        """
        p = _share(self.extreme, self.permutations, ~self.exact)
        return np.where(np.isnan(self.estimate), np.nan, p)

    def interval(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return confidence intervals of the differences, derived from the test, shape (m, 2).

        The intervals estimate the expected difference on data sets of this size, sampled like this one. An interval
        contains 0 if, and only if, p is above ``1 - level``. Its half-width is the largest difference that would not be
        significant. If the models differ, exchanging their detections inflates the spread of the differences. Intervals
        that exclude 0 are corrected for this, see the notes.

        An interval is NaN if fewer than 10 images, or 5 clusters, have positives, or if no exchange changes the metric.
        It is also NaN if no p-value could be significant: at the level 0.95, if the models differ on fewer than six
        images or clusters.

        Notes
        -----
        For a sum of contributions u over n images, random signs give the variance ``sum(u ** 2)``, while the variance of
        the sum is ``sum(u ** 2) - difference ** 2 / n``. The square of the half-width c is therefore multiplied by ``1 -
        (difference ** 2 - c ** 2) / (n * v)``, where v is the variance over permutations. This factor is 1 if the
        difference is just significant, so that interval and test agree. See P. Good, Permutation, Parametric and Bootstrap
        Tests of Hypotheses (2005), on intervals from permutations.
        """
        check_level(level)
        out = np.full((self.estimate.size, 2), np.nan)
        for column, difference in enumerate(self.estimate.tolist()):
            values = self.whole.get(column, self.differences[:, column])
            if math.isnan(difference) or self.support[column] < FEWEST[self.unit]:
                continue
            reach = _reach(values, bool(self.exact[column]), alpha_of(level))
            if abs(difference) > reach:
                spread = self.images * float((values**2).mean())
                reach *= math.sqrt(min(1.0, max(0.0, 1 - difference**2 / spread) + reach**2 / spread))
            out[column] = difference - reach, difference + reach
        return out


def permute(
    first: AnyTally,
    second: AnyTally,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    metric: str | None = None,
    *,
    categories: bool = False,
    clusters: Clusters | None = None,
    threads: int | None = None,
) -> Permutations:
    """Exchange the detections of two models on each image with probability one half, and score both exchanged sets.

    The images of a cluster, such as the frames of a video, are exchanged together.

    The metrics of every permutation are bit-identical to scoring the exchanged detections, but nothing is matched
    again. If ties are broken by position in the file, the position is that in the file of the detection's model.
    Detections with equal scores and positions are ordered by image. If few images can change a column, all of its
    permutations are enumerated.

    Parameters
    ----------
    first, second : Tally, or PanopticTally
        Tallies of the same images, categories and protocol.
    permutations : int
        The number of sampled permutations P. If a column has at most P possible permutations, all are enumerated.
    seed : int
        The seed of the draws, 0 to 2**64 - 1.
    metric : str, optional
        A metric of the result; the first by default.
    categories : bool
        Also test the AP, or PQ, of every category.
    clusters : mapping of image id to cluster, or array_like of int or str, shape (i,), optional
        The cluster of each image, see `bootstrap`.
    threads : int, optional
        One per processor by default. Changes no result.

    Raises
    ------
    OptionError
        For fewer than one permutation, a seed out of range, or tallies of different protocols, categories, images or
        objects.

    Notes
    -----
    Pitman, E., Significance tests which may be applied to samples from any populations (1937); B. Phipson and G. Smyth,
    Permutation p-values should never be zero (2010).
    """
    check_integer("permutations", permutations, 1)
    check_seed(seed)
    first, second = clustered(first, clusters), clustered(second, clusters)
    check_alike(first, second, "first", "second")
    pair = _paired(first, second, metric, categories, threads)
    units, head = pair.units, len(pair.metrics)
    none = np.zeros(units.number, np.uint8)
    anywhere = np.flatnonzero(pair.differs.any(axis=0))
    count, every = _plan(anywhere.size, permutations)

    def swaps(r: int) -> NDArray[np.uint8]:
        if r == 0:
            return none
        return _chosen(r - 1, anywhere, units.number) if every else exchanged(units.number, seed, r - 1)

    with progress.counting(("permutation", count)):
        made = pair.differences(1 + count, swaps, threads)
    estimate, drawn = made[0], made[1:]
    extreme = _count(drawn, estimate)
    whole: dict[int, NDArray[np.float64]] = {}
    total, exact = np.full(estimate.size, count), np.full(estimate.size, every)
    for k in range(0 if every or not pair.by_category else len(pair.categories)):
        own = np.flatnonzero(pair.differs[k])
        count, every = _plan(own.size, permutations)
        if every:  # few images can change this category, so all permutations are enumerated
            few = pair.differences(count, partial(_chosen, changing=own, units=units.number), threads, category=k)
            at = head + k + len(pair.categories) * np.arange(few.shape[1])
            whole |= dict(zip(at.tolist(), few.T, strict=True))
            extreme[at], total[at], exact[at] = _count(few, estimate[at]), count, True
    return Permutations(
        metrics=pair.metrics,
        by_category=pair.by_category,
        categories=pair.categories,
        estimate=estimate,
        differences=drawn,
        whole=whole,
        extreme=extreme,
        permutations=total,
        exact=exact,
        support=pair.support,
        images=units.number,
        unit=units.name,
        seed=seed,
        columns=pair.columns,
    )


#: Number of permutations per block; the draws of a block are cached for the next pair of models.
_BLOCK = 1024


def p_value(
    first: AnyTally, second: AnyTally, permutations: int, seed: int, metric: str, threads: int | None = None
) -> float:
    """Return the same p-value as ``permute(…).p_value(metric)``, to the bit.

    For means of interpolated precision, this function is several times faster than `permute`.

    Differences are first computed in a faster order of summation. p counts the differences that are at least as large
    as the observed difference. Therefore differences within rounding errors of the observed one are computed again as
    in `permute`.
    """
    check_integer("permutations", permutations, 1)
    check_seed(seed)
    check_alike(first, second, "first", "second")
    pair = _paired(first, second, metric, False, threads)
    quick = pair.quick() if isinstance(pair, PairedDetections) else None
    if quick is None or _plan(int(np.count_nonzero(pair.differs.any(axis=0))), permutations)[1]:
        return permute(first, second, permutations, seed, metric, threads=threads).p_value(metric)
    units = pair.units
    estimate = pair.differences(1, lambda _: np.zeros(units.number, np.uint8), threads)[0]
    if np.isnan(estimate[0]):
        return math.nan
    differences = np.empty(permutations)

    def work(begin: int, end: int) -> None:
        differences[begin:end] = quick(units.over_images(exchanges(units.number, seed, begin, end)))
        progress.advance(end - begin)

    starts = range(0, permutations, _BLOCK)
    with progress.counting(("permutation", permutations)):
        parallel.run(work, [(begin, min(begin + _BLOCK, permutations)) for begin in starts], threads)
    above = np.abs(differences) - (abs(float(estimate[0])) - _ROUNDING)
    near = np.flatnonzero(np.abs(above) <= quick.error).tolist()
    again = pair.differences(len(near), lambda r: exchanged(units.number, seed, near[r]), threads)
    extreme = np.count_nonzero(above > quick.error) + int(_count(again, estimate)[0])
    return float(_share(extreme, permutations, True))


def _paired(first: AnyTally, second: AnyTally, metric: str | None, categories: bool, threads: int | None) -> Paired:
    """Return the implementation of `Paired` for this type of tallies."""
    if isinstance(first, PanopticTally):
        assert isinstance(second, PanopticTally)
        return PairedSegments(first, second, metric, categories)
    assert isinstance(second, Tally)
    return PairedDetections(first, second, metric, categories, threads)


def check_alike(first: AnyTally, second: AnyTally, name: str, other: str) -> None:
    """Refuse two models that were scored under different protocols, or on different data."""
    kinds = isinstance(first, PanopticTally), isinstance(second, PanopticTally)
    if kinds[0] != kinds[1]:
        raise OptionError(f"{name} and {other} were scored by different tasks")
    for what, same in (
        ("protocols", _rules(first) == _rules(second)),
        ("categories", first.categories == second.categories),
        ("images", np.array_equal(first.image_ids, second.image_ids)),
        ("clusters of images", _same(first.clusters, second.clusters)),
        ("objects", np.array_equal(_objects(first), _objects(second))),
    ):
        if not same:
            raise OptionError(f"{name} and {other} were scored on different {what}")


def _rules(tally: AnyTally) -> Any:
    return tally.rules if isinstance(tally, PanopticTally) else tally.protocol


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


def _objects(tally: AnyTally) -> NDArray[np.int64]:
    """Return the numbers of objects of each category on each image."""
    if isinstance(tally, PanopticTally):
        return tally.objects()
    order = np.lexsort((tally.positive_image, tally.positive_category))
    return np.column_stack((tally.positive_category, tally.positive_image, tally.positive_counts))[order].astype(
        np.int64
    )


def _plan(changing: int, permutations: int) -> tuple[int, bool]:
    """Return the number of permutations for models that differ on `changing` images, and whether all are enumerated."""
    # When all permutations are enumerated, the first image is never exchanged, because exchanging all images only
    # changes the sign of the difference.
    every = changing < MOST_CHANGING and 2 ** max(changing - 1, 0) <= permutations
    return (2 ** max(changing - 1, 0) if every else permutations), every


def _chosen(number: int, changing: NDArray[np.int64], units: int) -> NDArray[np.uint8]:
    """Return flags of the units that permutation `number` exchanges. Each binary digit of `number` stands for a unit in
    `changing`; the first unit is never exchanged.
    """
    swaps = np.zeros(units, np.uint8)
    swaps[changing[1:]] = (number >> np.arange(max(changing.size - 1, 0))) & 1
    return swaps


def _share(extreme: Any, permutations: Any, drawn: Any) -> Any:
    """Return p-values; if permutations are sampled (`drawn`), the data count as one more permutation."""
    return (extreme + drawn) / (permutations + drawn)


def _reach(differences: NDArray[np.float64], exact: bool, alpha: float) -> float:
    """Return the largest absolute difference that is not significant; NaN if no difference can be significant."""
    least, total = int(exact), differences.size  # if all permutations are enumerated, the data are one of them
    allowed = int(alpha * (total + 1)) + 1
    while allowed >= least and _share(allowed, total, not exact) > alpha:
        allowed -= 1
    if allowed < least:
        return math.nan
    reach = float(np.sort(np.abs(differences))[total - 1 - allowed]) + _ROUNDING
    return reach if reach > 2 * _ROUNDING else math.nan


def _count(differences: NDArray[np.float64], estimate: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray((np.abs(differences) >= np.abs(estimate) - _ROUNDING).sum(axis=0), np.int64)


def testable(images: ArrayLike, alpha: float, pairs: int) -> tuple[NDArray[np.bool_], int]:
    """Decide from the ground truth, without the predictions, which hypotheses are tested.

    With n images there are 2**n permutations. Each permutation has a mirror image with the negated difference, so
    two-sided p-values are at least 2**(1 - n). A hypothesis is tested if its smallest possible p-value is significant
    in the first, strictest step of Holm's correction over all tested hypotheses. All other hypotheses are left out:
    they could become significant only after another hypothesis is rejected, and would make the correction stricter for
    every hypothesis.

    Parameters
    ----------
    images : array_like of int, shape (n,)
        The number of images with positives for each hypothesis.
    alpha : float
        The family-wise error rate.
    pairs : int
        The number of pairs of models; every hypothesis is tested for each pair.

    Returns
    -------
    tested : ndarray of bool, shape (n,)
        Whether each hypothesis is tested.
    fewest : int
        The smallest number of images with which a hypothesis is tested.
    """
    held = np.asarray(images, np.int64)
    for fewest in range(1, 1076):
        tested = held >= fewest
        if max(int(tested.sum()), 1) * pairs * 2.0 ** (1 - fewest) <= alpha:
            return tested, fewest
    raise OptionError(f"no test can have a level of {alpha!r}")


def permutations_needed(hypotheses: int, alpha: float) -> int:
    """Return a number of permutations for which the smallest possible p-value is at most half the level of Holm's first
    step.
    """
    return max(PERMUTATIONS, math.ceil(2 * hypotheses / alpha))
