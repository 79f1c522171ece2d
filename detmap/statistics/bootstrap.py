"""Metrics of data sets drawn with replacement from the one that was scored."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from detmap import parallel
from detmap.errors import OptionError
from detmap.statistics.distributions import t_test
from detmap.statistics.reweighting import Reweighted
from detmap.tally import Tally

_NORMAL = NormalDist()


class HasTally(Protocol):
    """Anything that keeps its tally, as a `detmap.DetectionResult` does."""

    tally: Tally


def drawn(size: int, seed: int, replicate: int) -> NDArray[np.int32]:
    """Return how often each of `size` images (or queries) is drawn in one bootstrap replicate, shape (size,).

    It depends on the arguments alone, so that replicate *r* of every model and on every machine draws the same.
    """
    draws = np.random.default_rng((seed, replicate)).integers(0, size, size) if size else ()
    return np.bincount(np.asarray(draws, np.int64), minlength=size).astype(np.int32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Bootstrap:
    """Metrics of data sets drawn with replacement from the one that was scored.

    Attributes
    ----------
    metrics : tuple of str
        The first of the m columns.
    categories : tuple of (id, name)
        The others: an AP per category.
    estimate : ndarray of float64, shape (m,)
        The metrics of the data itself.
    replicates : ndarray of float64, shape (B, m)
        Row *r* holds the metrics of replicate *r*; NaN where one is undefined there, as the AP of a category none of whose
        images was drawn.
    jackknife : ndarray of float64, shape (n, m) or (0, m)
        Row *i* holds the metrics without image *i*; made only for BCa intervals.
    support : ndarray of int64, shape (m,)
        How many images (queries) say something about each column: those that hold positives of it.
    seed : int
        What the draws follow from.
    """

    metrics: tuple[str, ...]
    categories: tuple[tuple[Any, str], ...] = ()
    estimate: NDArray[np.float64]
    replicates: NDArray[np.float64]
    jackknife: NDArray[np.float64]
    support: NDArray[np.int64]
    seed: int

    def interval(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return the confidence intervals, shape (m, 2): BCa ones with a jackknife, else percentile ones.

        NaN where no replicate is defined; of BCa also where all replicates lie on one side of the estimate, so that its bias
        is beyond measure.

        Notes
        -----
        B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993), chapters 13 and 14. Quantiles interpolate
        linearly between replicates; a replicate that equals the estimate counts half on either side.
        """
        if not 0 < level < 1:
            raise OptionError(f"a confidence level lies between 0 and 1, not {level!r}")
        tails = ((1 - level) / 2, (1 + level) / 2)
        out = np.full((self.estimate.size, 2), np.nan)
        for column, (estimate, values) in enumerate(zip(self.estimate, self.replicates.T, strict=True)):
            values = values[~np.isnan(values)]
            if not values.size or math.isnan(estimate):
                continue
            at = _bca_tails(estimate, values, self.jackknife[:, column], tails) if self.jackknife.size else tails
            if at is not None:
                out[column] = np.quantile(values, at)
        return out

    def standard_error(self) -> NDArray[np.float64]:
        """Return the standard deviation of the replicates, times sqrt(n / (n - 1)) for n images of support, shape (m,).

        The factor makes it unbiased for a mean. NaN with fewer than two images or two defined replicates.
        """
        out = np.full(self.estimate.size, np.nan)
        for column, values in enumerate(self.replicates.T):
            values, n = values[~np.isnan(values)], int(self.support[column])
            if values.size > 1 and n > 1:
                out[column] = float(np.std(values, ddof=1)) * math.sqrt(n / (n - 1))
        return out

    def p_values(self) -> NDArray[np.float64]:
        """Return the two-sided p-value of the hypothesis that each column is 0, shape (m,); for differences.

        The estimate over its standard error, against Student's t with n - 1 degrees of freedom for n images of support. A
        column that is 0 in the data and in every replicate has 1; NaN where there is no standard error.
        """
        out = np.full(self.estimate.size, np.nan)
        for column, (estimate, error) in enumerate(zip(self.estimate, self.standard_error(), strict=True)):
            if not math.isnan(error) and not math.isnan(estimate):
                out[column] = t_test(float(estimate), float(error), int(self.support[column]) - 1)
        return out

    def __sub__(self, other: Bootstrap) -> Bootstrap:
        """Return the bootstrap of the differences: the same draws give both sides.

        Raises
        ------
        OptionError
            Where the two do not have columns, draws and images in common.
        """
        same = (
            self.metrics == other.metrics
            and self.categories == other.categories
            and self.seed == other.seed
            and self.replicates.shape == other.replicates.shape
            and self.jackknife.shape == other.jackknife.shape
            and np.array_equal(self.support, other.support)
        )
        if not same:
            raise OptionError("only bootstraps of the same images, categories, seed and replicates can be compared")
        return Bootstrap(
            metrics=self.metrics,
            categories=self.categories,
            estimate=self.estimate - other.estimate,
            replicates=self.replicates - other.replicates,
            jackknife=self.jackknife - other.jackknife,
            support=self.support,
            seed=self.seed,
        )

    def only(self, metric: str) -> Bootstrap:
        """Return the column of one metric."""
        at = [self.metrics.index(metric)]
        return Bootstrap(
            metrics=(metric,),
            estimate=self.estimate[at],
            replicates=self.replicates[:, at],
            jackknife=self.jackknife[:, at],
            support=self.support[at],
            seed=self.seed,
        )

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return the intervals as plain values: ``[low, high]`` by metric, and in the order of categories."""
        ends, head = self.interval(level).tolist(), len(self.metrics)
        return {
            "replicates": len(self.replicates),
            "seed": self.seed,
            "method": "BCa" if self.jackknife.size else "percentile",
            "level": level,
            "intervals": dict(zip(self.metrics, ends, strict=False)),
            "per_category": ends[head:],
        }


def _bca_tails(
    estimate: float, values: NDArray[np.float64], jackknife: NDArray[np.float64], tails: tuple[float, float]
) -> list[float] | None:
    """Return the quantiles at which a BCa interval ends; None where they are undefined."""
    below = (np.mean(values < estimate) + np.mean(values <= estimate)) / 2
    if not 0 < below < 1:
        return None
    bias = _NORMAL.inv_cdf(float(below))
    influence = jackknife[~np.isnan(jackknife)]
    influence = influence.mean() - influence if influence.size else influence
    spread = float((influence**2).sum())
    acceleration = float((influence**3).sum()) / (6 * spread**1.5) if spread else 0.0
    at = []
    for tail in tails:
        z = bias + _NORMAL.inv_cdf(tail)
        at.append(_NORMAL.cdf(bias + z / (1 - acceleration * z)))
    return at


def bootstrap(
    scored: Tally | HasTally,
    replicates: int = 1000,
    seed: int = 0,
    *,
    bca: bool = False,
    threads: int | None = None,
) -> Bootstrap:
    """Draw the images with replacement and score every draw; an image drawn twice counts twice, its positives too.

    Every replicate is, bit for bit, what scoring a data set with those copies would give, the copies of an image being
    neighbours in the order of ties (where ties go by position in the file: the copies of a line). Nothing is matched again.

    Parameters
    ----------
    scored : Tally or DetectionResult
        What was found.
    replicates : int
        How many draws, B.
    seed : int
        What the draws follow from, 0 or more. The same seed draws the same images for every model.
    bca : bool
        Score the data without each of its images too (one more replicate per image), for BCa intervals.
    threads : int, optional
        One per processor by default. Changes no result.

    Returns
    -------
    Bootstrap
        Of ``AP``, ``AP50`` and ``AP75`` (or ``mAP``, where the protocol says so) over the whole area range at the largest
        cap, and of every category's AP.

    Raises
    ------
    OptionError
        For fewer than one replicate or a negative seed.
    """
    check_draws(replicates, seed)
    tally = (scored if isinstance(scored, Tally) else scored.tally).in_ranking_order(threads)
    data = Reweighted(tally)
    size = tally.image_ids.size
    estimate = np.array(data.metrics(np.ones(size, np.int32)))
    values = np.empty((replicates, estimate.size))
    jackknife = np.empty((size if bca else 0, estimate.size))

    def draw(begin: int, end: int) -> None:
        for r in range(begin, end):
            values[r] = data.metrics(drawn(size, seed, r))

    def leave_out(begin: int, end: int) -> None:
        weights = np.ones(size, np.int32)
        for i in range(begin, end):
            weights[i] = 0
            jackknife[i] = data.metrics(weights)
            weights[i] = 1

    parallel.run(draw, parallel.even(replicates, threads), threads)
    parallel.run(leave_out, parallel.even(len(jackknife), threads), threads)
    return Bootstrap(
        metrics=data.names,
        categories=tally.categories,
        estimate=estimate,
        replicates=values,
        jackknife=jackknife,
        support=data.support,
        seed=seed,
    )


def check_draws(replicates: int, seed: int) -> None:
    """Refuse numbers of replicates and seeds that cannot be."""
    for name, value, least in (("replicates", replicates, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise OptionError(f"{name} must be an integer of at least {least}, not {value!r}")
