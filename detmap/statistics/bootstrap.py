"""Confidence intervals of metrics by bootstrap (images drawn with replacement) and jackknife (some images left out)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Clusters
from detmap.detection.tally import Tally
from detmap.errors import OptionError, check_choice
from detmap.panoptic.tally import PanopticTally
from detmap.statistics import intervals
from detmap.statistics.clusters import Units, clustered, independent
from detmap.statistics.draws import check_replicates, check_seed, drawn
from detmap.statistics.intervals import Method
from detmap.statistics.resampled import AnyTally, Copies, Resampled, ResampledDetections
from detmap.statistics.segments import ResampledSegments
from detmap.system import progress

#: Explanation of the column ``bias`` in tables.
BIAS = "bias: by how much the value is expected to exceed that of a data set without end, estimated; not taken off"

#: Maximum number of groups that the jackknife omits in turn. With this number of images or fewer, each image is a
#: group.
GROUPS = 200


class HasTally(Protocol):
    """A result with a tally, such as a `detmap.DetectionResult` or a `detmap.panoptic.PanopticResult`."""

    @property
    def tally(self) -> AnyTally:
        """The outcome of matching."""


def tally_of(scored: AnyTally | HasTally) -> AnyTally:
    """Return `scored` if it is a tally, else the tally of the result."""
    return scored if isinstance(scored, Tally | PanopticTally) else scored.tally


@dataclass(frozen=True, eq=False, kw_only=True)
class Bootstrap:
    """Metrics of bootstrap replicates, and of jackknife samples, which leave out some of the images.

    Attributes
    ----------
    metrics : tuple of str
        The metrics over all categories, in the first of the m columns.
    by_category : tuple of str
        The per-category metrics in the remaining columns: for each metric, one column per category.
    categories : tuple of (id, name)
        The K categories.
    columns : dict of str to int
        The column of each metric, by its name in a result.
    estimate : ndarray of float64, shape (m,)
        The metrics of the data itself.
    replicates : ndarray of float64, shape (B, m)
        Row *r* holds the metrics of replicate *r*; NaN where undefined, such as the AP of a category without images in
        the replicate.
    jackknife : ndarray of float64, shape (g, m)
        Row *i* holds the metrics without image *i*, or without group *i* of images.
    support : ndarray of int64, shape (m,)
        For each column, the number of images (clusters, queries) with positives.
    near : ndarray of float64, shape (m, 2), optional
        For each column, the minimum distances of a value from 0 and from 1 for an interval; by default 0.
    balance : ndarray of float64, shape (m,), optional
        The effective number of clusters of each column, if clusters are drawn; see
        `detmap.statistics.clusters.balanced`.
    most : ndarray of float64, shape (m,), optional
        The maximum value of each column: 100 for a percentage; by default 1.
    seed : int
        The seed of the draws.
    method : {"t", "bca", "percentile"}
        How intervals are computed, see `interval`.
    bounded : bool
        Whether the columns lie between 0 and 1, as metrics do; False for differences.
    unlimited : ndarray of bool, shape (m,), optional
        Mask of columns that are not bounded even if `bounded` is True, such as errors in metres; by default none.
    limits : ndarray of float64, shape (m, 2), optional
        The minimum and maximum possible value of each column, to which intervals are clipped; by default no clipping.
    unit : {"images", "videos", "samples", "clusters", "queries"}
        The unit of the draws.
    """

    metrics: tuple[str, ...]
    by_category: tuple[str, ...] = ()
    categories: tuple[tuple[Any, str], ...] = ()
    columns: dict[str, int] = field(default_factory=dict)
    estimate: NDArray[np.float64]
    replicates: NDArray[np.float64]
    jackknife: NDArray[np.float64]
    support: NDArray[np.int64]
    near: NDArray[np.float64] | None = None
    balance: NDArray[np.float64] | None = None
    most: NDArray[np.float64] | None = None
    seed: int
    method: Method = "t"
    bounded: bool = True
    unlimited: NDArray[np.bool_] | None = None
    limits: NDArray[np.float64] | None = None
    unit: str = "images"

    @property
    def main(self) -> str:
        """The first per-category metric, ``AP`` or ``PQ``; "" if there are no per-category metrics."""
        return self.by_category[0] if self.by_category else ""

    def category_columns(self, metric: str) -> NDArray[np.int64]:
        """Return the columns of a per-category metric, one for every category."""
        start = len(self.metrics) + self.by_category.index(metric) * len(self.categories)
        return np.arange(start, start + len(self.categories))

    def interval(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return the confidence intervals, shape (m, 2); NaN if the data are too few, see `reasons`.

        The intervals are for the expected value of the metric on data sets of this size, sampled like this one. The
        estimate is unbiased for this expected value. The replicates have a bias: they exceed the estimate about as far
        as it exceeds an infinite data set's value.

        * ``"t"``: the estimate plus and minus Student's t times the standard error, on a logit scale, so that an interval
          stays between 0 and 1 and is longer on the side of 0.5. Differences of metrics are not transformed. An
          estimate very near to 0 or 1 has no interval. An end very near to 0 or 1 is set to 0 or 1.
        * ``"bca"``: Efron's bias-corrected and accelerated bootstrap, with replicates shifted so that their mean is the
          estimate.
        * ``"percentile"``: quantiles of the replicates. These intervals are shifted by the bias of the replicates.
          Relative to the value on an infinite data set, they are shifted by twice this bias.

        Notes
        -----
        Efron, B., and R. Tibshirani, An Introduction to the Bootstrap (1993), chapters 11 to 14.
        """
        check_level(level)
        out = np.full((self.estimate.size, 2), np.nan)
        for column in range(self.estimate.size):
            if not self.reason(column):
                most = self._most(column)
                ends = intervals.interval(
                    self.method,
                    float(self.estimate[column]) / most,
                    self.replicates[:, column] / most,
                    self.jackknife[:, column] / most,
                    int(self.support[column]),
                    level,
                    bounded=self._is_bounded(column),
                    near=self._near(column),
                    balance=self.balance_of(column),
                )
                out[column] = np.array(ends) * most
        return out if self.limits is None else np.clip(out, self.limits[:, :1], self.limits[:, 1:])

    def _most(self, column: int) -> float:
        """Return the maximum possible value of a column."""
        return 1.0 if self.most is None else float(self.most[column])

    def balance_of(self, column: int) -> float | None:
        """Return the effective number of clusters for the metric of a column; None without clusters."""
        return None if self.balance is None else float(self.balance[column])

    def _is_bounded(self, column: int) -> bool:
        """Return whether a column lies between 0 and 1."""
        return self.bounded and not (self.unlimited is not None and self.unlimited[column])

    def _near(self, column: int) -> tuple[float, float]:
        """Return the minimum distances of a value from 0 and from 1 for an interval."""
        if self.near is None:
            return 0.0, 0.0
        low, high = self.near[column].tolist()
        return low, high

    def reason(self, column: int) -> str:
        """Return the reason why a column has no interval, in a few words; "" if there is an interval."""
        most = self._most(column)
        return intervals.reason(
            float(self.estimate[column]) / most,
            self.replicates[:, column] / most,
            self.jackknife[:, column] / most,
            int(self.support[column]),
            self.unit,
            bounded=self._is_bounded(column),
            near=self._near(column),
        )

    def reasons(self) -> list[str]:
        """Return for every column the reason why there is no interval, in a few words; "" if there is an interval."""
        return [self.reason(column) for column in range(self.estimate.size)]

    def bias(self) -> NDArray[np.float64]:
        """Return the estimated bias of each metric relative to an infinite data set, shape (m,). The bias is estimated
        by the mean of the replicates minus the estimate, because replicates are drawn from the data as the data are
        drawn from the population. On few images, AP is usually too high, because the interpolated curve lies above the
        noisy precision.
        """
        defined = ~np.isnan(self.replicates)
        count = defined.sum(axis=0)
        total = np.where(defined, self.replicates, 0.0).sum(axis=0)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan) - self.estimate

    def standard_error(self) -> NDArray[np.float64]:
        """Return the standard error of each metric, shape (m,), from bootstrap and jackknife.

        With the variances ``b`` of the bootstrap and ``j`` of the jackknife, the standard error is the square root of
        ``(b + max(b, j)) / 2``; NaN with fewer than two images. Intervals on a logit scale apply this formula to
        logits.
        """
        columns = zip(self.replicates.T, self.jackknife.T, self.support.tolist(), strict=True)
        return np.array([intervals.standard_error(*column) for column in columns])

    def __sub__(self, other: Bootstrap) -> Bootstrap:
        """Return the bootstrap of the differences between this model and `other`, which must have the same draws.

        Raises
        ------
        OptionError
            If columns, draws or images of the two bootstraps differ.
        """
        same = (
            self.metrics == other.metrics
            and self.by_category == other.by_category
            and self.categories == other.categories
            and self.seed == other.seed
            and self.replicates.shape == other.replicates.shape
            and self.jackknife.shape == other.jackknife.shape
            and np.array_equal(self.support, other.support)
        )
        if not same:
            raise OptionError("only bootstraps of the same images, categories, seed and replicates can be compared")
        return replace(
            self,
            estimate=self.estimate - other.estimate,
            replicates=self.replicates - other.replicates,
            jackknife=self.jackknife - other.jackknife,
            bounded=False,
            limits=None,
        )

    def sentence(self, whose: str = "", level: float = 0.95) -> str:
        """Return a sentence that explains the intervals. The phrase `whose` names their owner, such as " of a model"."""
        made = intervals.METHODS[self.method]
        made = made if self.bounded else made.replace(" on a logit scale", "")
        tell = f"none where too few {self.unit} could tell"
        if self.bounded and self.method == "t":
            tell = "none, or open to 0 or 1, where the data cannot tell"
        return (
            f"low, high{whose}: {100 * level:.6g} % confidence interval of the value expected on data sets of this size, "
            f"drawn like this one; {made}; {tell}; {independent(self.unit)}"
        )

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return the intervals as plain values: ``[low, high]`` by metric, for all categories and for each category."""
        ends, bias, images = self.interval(level).tolist(), self.bias().tolist(), self.support.tolist()
        reasons = self.reasons()
        own = {name: self.category_columns(name).tolist() for name in self.by_category}
        return {
            "replicates": len(self.replicates),
            "seed": self.seed,
            "method": self.method,
            "level": level,
            "sentence": self.sentence(level=level),
            "intervals": {name: ends[at] for name, at in self.columns.items()},
            "bias": {name: bias[at] for name, at in self.columns.items()},
            self.unit: {name: images[at] for name, at in self.columns.items()},
            "no_interval": {name: reasons[at] for name, at in self.columns.items() if reasons[at]},
            "per_category": [
                {
                    "category": name,
                    self.unit: images[own[self.main][k]],
                    "intervals": {metric: ends[at[k]] for metric, at in own.items()},
                    "bias": {metric: bias[at[k]] for metric, at in own.items()},
                    "no_interval": {metric: reasons[at[k]] for metric, at in own.items() if reasons[at[k]]},
                }
                for k, (_, name) in enumerate(self.categories)
            ],
        }


def check_draws(replicates: int, seed: int, level: float) -> None:
    """Raise `OptionError` for options with which no interval can be computed."""
    check_replicates(replicates)
    check_seed(seed)
    check_level(level)


def check_level(level: float) -> None:
    """Raise `OptionError` for a confidence level that is not between 0 and 1."""
    if not 0 < level < 1:
        raise OptionError(f"a confidence level lies between 0 and 1, not {level!r}")


def alpha_of(level: float) -> float:
    """Return the significance level, which is 1 minus the confidence level. The difference is computed in decimal and
    rounded up, so that a p-value of 0.1 is significant at the confidence level 0.9 in spite of rounding errors.
    """
    return float(1 - Decimal(repr(float(level)))) * (1 + 1e-12)


def bootstrap(
    scored: AnyTally | HasTally,
    replicates: int = 1000,
    seed: int = 0,
    *,
    method: Method = "t",
    clusters: Clusters | None = None,
    threads: int | None = None,
) -> Bootstrap:
    """Draw the images with replacement and score every draw. An image that is drawn twice counts twice, and so do its
    objects. If images form clusters of dependent images, such as frames of a video, whole clusters are drawn.

    The metrics of every replicate and jackknife sample are bit-identical to the metrics of a data set of the drawn
    images, but nothing is matched again. In this data set, the copies of an image directly follow each other. If ties
    are broken by position in the file, the copies of a line directly follow each other.

    Parameters
    ----------
    scored : Tally, DetectionResult, PanopticTally or PanopticResult
        The outcome of matching, or a result.
    replicates : int
        The number of draws B, at least 200.
    seed : int
        The seed of the draws, 0 to 2**64 - 1. The same seed draws the same images for every model.
    method : {"t", "bca", "percentile"}
        How intervals are computed, see `Bootstrap.interval`.
    clusters : mapping of image id to cluster, or array_like of int or str, shape (i,), optional
        The cluster of each image, by image id or in ascending order of the image ids; by default the clusters of the
        ground truth (`GroundTruth.with_clusters`), if it has any.
    threads : int, optional
        One per processor by default. Changes no result.

    Returns
    -------
    Bootstrap
        The columns are all metrics of a result, then each category's ``AP``, ``AP50`` and ``AP75``, or ``PQ``, ``SQ`` and
        ``RQ``.

    Raises
    ------
    OptionError
        For fewer than 200 replicates, an unknown method, or a seed out of range.
    """
    check_replicates(replicates)
    return replicated(clustered(tally_of(scored), clusters), replicates, seed, method=method, threads=threads)


def replicated(
    scored: AnyTally | HasTally, replicates: int, seed: int, *, method: Method = "t", threads: int | None = None
) -> Bootstrap:
    """Return the result of `bootstrap` for any number of replicates, even too few for an interval."""
    check_seed(seed)
    check_choice("interval", method, intervals.METHODS)
    data = resampled(scored, threads)
    count, copies = samples(data.units, replicates, seed)
    with progress.counting(("bootstrap", replicates), ("jackknife", count - replicates)):
        values = data.score(count, copies, threads)
    return Bootstrap(
        metrics=data.metrics,
        by_category=data.by_category,
        categories=data.categories,
        columns=data.columns,
        estimate=values[0],
        replicates=values[1 : 1 + replicates],
        jackknife=values[1 + replicates :],
        support=data.support,
        near=data.near,
        balance=data.balance,
        most=data.most,
        seed=seed,
        method=method,
        unlimited=data.unlimited,
        unit=data.units.name,
    )


def resampled(scored: AnyTally | HasTally, threads: int | None = None) -> Resampled:
    """Return the tally of `scored`, prepared to be scored for many samples of its images."""
    tally = tally_of(scored)
    return ResampledSegments(tally) if isinstance(tally, PanopticTally) else ResampledDetections(tally, threads)


def samples(units: Units, replicates: int, seed: int) -> tuple[int, Copies]:
    """Return the number of samples, and a function that draws them; see `Copies`. Sample 0 is the data itself. The
    bootstrap draws follow, then the jackknife samples, each without one group of units.
    """
    size = units.number
    groups = min(size, GROUPS)

    def copies(sample: int) -> NDArray[np.int32]:
        if sample == 0:
            return units.over_images(np.full(size, 2, np.int32))
        if sample <= replicates:
            return units.over_images(2 * drawn(size, seed, sample - 1))
        left_out = np.arange(size) % groups == sample - 1 - replicates
        return units.over_images(np.where(left_out, 0, 2).astype(np.int32))

    return 1 + replicates + groups, copies
