"""How sure a score is: bootstrap over images or queries, paired tests, corrections; reweights tallies, matches nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import parallel
from detmap.errors import OptionError
from detmap.hits import Hits
from detmap.kernels import readonly, resampling
from detmap.tally import Tally

_NORMAL = NormalDist()


class HasTally(Protocol):
    """Anything that keeps its tally, as a `detmap.DetectionResult` does."""

    tally: Tally


# ------------------------------------------------------------------------------------------------------- the bootstrap


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
                out[column] = _t_test(float(estimate), float(error), int(self.support[column]) - 1)
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
    _check_draws(replicates, seed)
    tally = (scored if isinstance(scored, Tally) else scored.tally).in_ranking_order(threads)
    data = _Reweighted(tally)
    size = tally.image_ids.size
    estimate = np.array(data.metrics(np.ones(size, np.int32)))
    values = np.empty((replicates, estimate.size))
    jackknife = np.empty((size if bca else 0, estimate.size))

    def draw(begin: int, end: int) -> None:
        for r, _ in parallel.steps(begin, end, 1, 1):
            values[r] = data.metrics(drawn(size, seed, r))

    def leave_out(begin: int, end: int) -> None:
        weights = np.ones(size, np.int32)
        for i, _ in parallel.steps(begin, end, 1, 1):
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


def _check_draws(replicates: int, seed: int) -> None:
    for name, value, least in (("replicates", replicates, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise OptionError(f"{name} must be an integer of at least {least}, not {value!r}")


@dataclass(frozen=True, eq=False)
class _Reweighted:
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


# -------------------------------------------------------------------------------------------------------- comparisons


class Difference(NamedTuple):
    """How a metric of one model differs from another's.

    ``difference`` is the value of `second` minus that of `first`; ``low`` and ``high`` its confidence interval; ``p`` the
    two-sided p-value that there is none, and ``adjusted`` the same after Holm's correction over all that were tested
    together. `category` is None for a metric of all.
    """

    first: str
    second: str
    metric: str
    category: str | None
    difference: float
    low: float
    high: float
    p: float
    adjusted: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two or more models on the same images.

    Attributes
    ----------
    bootstraps : mapping of str to Bootstrap
        Each model's own, from the same draws.
    metric : str
        What the models are compared by.
    level : float
        Of the intervals; ``1 - level`` is the level of the tests.
    notices : mapping of str to mapping of str to int
        What was unusual in each model's input, counted; `detmap.tables.NOTICES` says it in words.
    """

    bootstraps: Mapping[str, Bootstrap]
    metric: str
    level: float = 0.95
    notices: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @cached_property
    def _pairs(self) -> list[tuple[str, str, Bootstrap]]:
        ordered = sorted(self.bootstraps, key=lambda name: (-self._value(name), name))
        ordered = [name for name in ordered if not math.isnan(self._value(name))]
        return [(a, b, self.bootstraps[b] - self.bootstraps[a]) for a, b in itertools.combinations(ordered, 2)]

    def _value(self, name: str) -> float:
        one = self.bootstraps[name]
        return float(one.estimate[one.metrics.index(self.metric)])

    def _differences(self, categories: bool) -> list[Difference]:
        found = []
        for first, second, one in self._pairs:
            interval, p = one.interval(self.level), one.p_values()
            head = len(one.metrics)
            columns: list[tuple[int, str, str | None]] = [(one.metrics.index(self.metric), self.metric, None)]
            if categories:
                columns = [(head + k, "AP", name) for k, (_, name) in enumerate(one.categories)]
            for c, metric, category in columns:
                low, high = map(float, interval[c])
                value = float(one.estimate[c])
                found.append(Difference(first, second, metric, category, value, low, high, float(p[c]), math.nan))
        adjusted = holm([one.p for one in found]).tolist()
        return [one._replace(adjusted=value) for one, value in zip(found, adjusted, strict=True)]

    @cached_property
    def differences(self) -> list[Difference]:
        """A difference per pair of models, the better one first, with Holm's correction over the pairs."""
        return self._differences(categories=False)

    @cached_property
    def categories(self) -> list[Difference]:
        """A difference per pair of models and category, with Holm's correction over all of them."""
        return self._differences(categories=True)

    @property
    def changed(self) -> list[Difference]:
        """Those `categories` whose difference is significant."""
        return [one for one in self.categories if one.adjusted <= 1 - self.level]

    @cached_property
    def groups(self) -> dict[str, str]:
        """Letters for every model: two models that cannot be told apart share one, two that can do not."""
        models = sorted(self.bootstraps, key=lambda name: (-self._value(name), name))
        models = [name for name in models if not math.isnan(self._value(name))]
        apart = {(one.first, one.second) for one in self.differences if one.adjusted <= 1 - self.level}
        return group_letters(models, apart)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; element *i* of `models` belongs to the *i*-th model."""
        interval = {
            name: one.interval(self.level)[one.metrics.index(self.metric)] for name, one in self.bootstraps.items()
        }
        return {
            "metric": self.metric,
            "level": self.level,
            "models": [
                {
                    "model": name,
                    self.metric: self._value(name),
                    "low": float(interval[name][0]),
                    "high": float(interval[name][1]),
                    "group": self.groups.get(name, ""),
                }
                for name in self.bootstraps
            ],
            "differences": [one._asdict() for one in self.differences],
            "categories": [one._asdict() for one in self.categories],
            "notices": {name: dict(found) for name, found in self.notices.items()},
        }


def compare(
    models: Mapping[str, Tally | HasTally],
    replicates: int = 1000,
    seed: int = 0,
    *,
    metric: str | None = None,
    level: float = 0.95,
    bca: bool = False,
    threads: int | None = None,
) -> Comparison:
    """Say which models differ by more than the choice of images explains.

    The same images are drawn for all models, so that what is hard in an image is hard for all of them.

    Parameters
    ----------
    models : mapping of str to Tally or DetectionResult
        Two or more, scored under one protocol on the same images and categories.
    replicates, seed, bca, threads
        See `bootstrap`.
    metric : str, optional
        ``AP`` (by default), ``AP50`` or ``AP75``; ``mAP`` where the protocol says so.
    level : float
        Of the confidence intervals; tests are at ``1 - level``.

    Returns
    -------
    Comparison
        Differences with intervals and p-values, corrected by Holm's method; categories that changed; groups of models that
        cannot be told apart.

    Raises
    ------
    OptionError
        For fewer than two models, models of different images, categories or protocols, or an unknown metric.
    """
    tallies = {name: one if isinstance(one, Tally) else one.tally for name, one in models.items()}
    if len(tallies) < 2:
        raise OptionError("a comparison needs two models or more")
    first_name, first = next(iter(tallies.items()))
    for name, tally in tallies.items():
        for what, same in (
            ("protocols", tally.protocol == first.protocol),
            ("categories", tally.categories == first.categories),
            ("images", np.array_equal(tally.image_ids, first.image_ids)),
        ):
            if not same:
                raise OptionError(f"{first_name!r} and {name!r} were scored on different {what}")
    done = {name: bootstrap(tally, replicates, seed, bca=bca, threads=threads) for name, tally in tallies.items()}
    notices = {name: tally.every_notice() for name, tally in tallies.items()}
    return Comparison(done, checked_metric(metric, next(iter(done.values())).metrics), level, notices)


def checked_metric(metric: str | None, names: Sequence[str]) -> str:
    """Return `metric`, or the first of `names`.

    Raises
    ------
    OptionError
        Where it is not among them.
    """
    if metric is None:
        return names[0]
    if metric not in names:
        raise OptionError(f"no bootstrap of {metric!r}; one of: {', '.join(names)}")
    return metric


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values adjusted by Holm's method: rejecting those of at most alpha keeps the familywise error at alpha.

    Parameters
    ----------
    p_values : array_like of float, shape (n,)
        NaN is no test, stays NaN, and is not counted.

    Notes
    -----
    S. Holm, A simple sequentially rejective multiple test procedure (1979).
    """
    p = np.asarray(p_values, np.float64)
    out = np.full(p.shape, np.nan)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    factors = np.arange(order.size, 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return out


def group_letters(models: Sequence[str], apart: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return letters for every model: two that are `apart` share none, any other two share one at least.

    A letter is a largest set of models none of which are apart; sets are taken until every pair is in one. (The fewest sets
    take exponential time; of models on a line, which these nearly are, this finds them.)
    """
    place = {name: i for i, name in enumerate(models)}
    size = len(models)
    alike = [(1 << size) - 1] * size  # sets of models as bits
    for first, second in apart:
        alike[place[first]] &= ~(1 << place[second])
        alike[place[second]] &= ~(1 << place[first])
    together = [0] * size  # who is in a set with whom already
    groups = []
    for i in range(size):
        while missing := (alike[i] & ~together[i]) >> i << i:
            members = 1 << i | 1 << (missing.bit_length() - 1)  # as far along the line as it goes
            fits = alike[i] & alike[missing.bit_length() - 1]
            for k in range(size):
                if fits >> k & 1:
                    members |= 1 << k
                    fits &= alike[k]
            groups.append(members)
            for k in range(size):
                if members >> k & 1:
                    together[k] |= members
    return {name: "".join(_letter(g) for g, group in enumerate(groups) if group >> i & 1) for name, i in place.items()}


def _letter(index: int) -> str:
    """Return a, b, …, z, aa, ab, … ."""
    text = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        text = chr(97 + rest) + text
    return text


# ------------------------------------------------------------------------------------------------------------ queries


class Test(NamedTuple):
    """A paired test: its ``statistic``, the two-sided ``p`` and the number ``n`` of pairs that it is about."""

    statistic: float
    p: float
    n: int


def _paired(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return the differences, second minus first, of the queries that have both values."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise OptionError(
            f"a paired test needs two values of every query, not arrays of shapes {a.shape} and {b.shape}"
        )
    difference = b - a
    return np.asarray(difference[~np.isnan(difference)])


def paired_t(first: ArrayLike, second: ArrayLike) -> Test:
    """Return Student's paired t-test.

    Parameters
    ----------
    first, second : array_like of float, shape (q,)
        A metric of both systems, query by query; queries with NaN are left out.

    Returns
    -------
    Test
        p is 1 where all differences are 0, and NaN with fewer than two queries.
    """
    d = _paired(first, second)
    if d.size < 2:
        return Test(math.nan, math.nan, d.size)
    mean, error = float(d.mean()), float(d.std(ddof=1)) / math.sqrt(d.size)
    statistic = mean / error if error else math.copysign(math.inf, mean) if mean else 0.0
    return Test(statistic, _t_test(mean, error, d.size - 1), d.size)


def wilcoxon(first: ArrayLike, second: ArrayLike) -> Test:
    """Return Wilcoxon's signed-rank test; differences of 0 are left out.

    Parameters
    ----------
    first, second : array_like of float, shape (q,)
        A metric of both systems, query by query; queries with NaN are left out.

    Returns
    -------
    Test
        ``statistic`` is the smaller of the two rank sums. p is exact for up to 50 differences without ties, else from the
        normal distribution with the correction for ties and none for continuity; 1 where no difference is left.
    """
    d = _paired(first, second)
    d = d[d != 0]
    n = int(d.size)
    if not n:
        return Test(0.0, 1.0, 0)
    _, place, counts = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place.reshape(-1)]
    up = float(ranks[d > 0].sum())
    total = n * (n + 1) / 2
    statistic = min(up, total - up)
    if n <= 50 and counts.max() == 1:
        ways = np.zeros(n * (n + 1) // 2 + 1)  # how many of the 2**n sets of ranks have each sum; exact below 2**53
        ways[0] = 1
        for rank in range(1, n + 1):
            ways[rank:] += ways[:-rank].copy()
        p = 2 * float(ways[: int(statistic) + 1].sum()) / 2**n
        return Test(statistic, min(p, 1.0), n)
    ties = float((counts.astype(np.float64) ** 3 - counts).sum())
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    z = (statistic - total / 2) / math.sqrt(variance)
    return Test(statistic, min(math.erfc(-z / math.sqrt(2)), 1.0), n)


def randomisation(first: ArrayLike, second: ArrayLike, permutations: int = 100_000, seed: int = 0) -> Test:
    """Return Fisher's randomisation test of the mean difference: which system is which is drawn anew for every query.

    Parameters
    ----------
    first, second : array_like of float, shape (q,)
        A metric of both systems, query by query; queries with NaN are left out.
    permutations : int
        How many assignments are drawn; all 2**q of them are looked at where that is no more.
    seed : int
        What the draws follow from.

    Returns
    -------
    Test
        ``statistic`` is the mean difference. A drawn p counts the data as one of the draws, (1 + b) / (1 + permutations),
        and is never 0. NaN without queries.

    Notes
    -----
    M. Smucker, J. Allan and B. Carterette, A comparison of statistical significance tests for information retrieval
    evaluation (2007).
    """
    _check_draws(permutations, seed)
    d = _paired(first, second)
    if not d.size:
        return Test(math.nan, math.nan, 0)
    observed = abs(float(d.sum()))
    # Sums that are equal on paper differ in rounding: those within it count as equal.
    least = observed - 1e-12 * float(np.abs(d).sum())
    exact = d.size < 60 and 2**d.size <= permutations
    total = 2**d.size if exact else permutations
    rng = np.random.default_rng(seed)
    extreme, block = 0, max(1, 4_000_000 // d.size)
    for begin in range(0, total, block):
        size = min(block, total - begin)
        if exact:
            flipped = (np.arange(begin, begin + size)[:, None] >> np.arange(d.size)) & 1
        else:
            flipped = rng.integers(0, 2, (size, d.size), np.uint8)
        sums = np.where(flipped, -d, d).sum(axis=1)
        extreme += int((np.abs(sums) >= least).sum())
    p = extreme / total if exact else (extreme + 1) / (total + 1)
    return Test(float(d.mean()), p, d.size)


#: The paired tests of two systems by name.
TESTS = {"t": paired_t, "wilcoxon": wilcoxon, "randomisation": randomisation}


def bootstrap_queries(
    values: Mapping[str, ArrayLike], replicates: int = 1000, seed: int = 0, *, bca: bool = False
) -> Bootstrap:
    """Draw the queries with replacement and take the means.

    Parameters
    ----------
    values : mapping of str to array_like of float, shape (q,)
        Metric to its value at every query; queries with NaN are left out of a mean.
    replicates, seed, bca
        See `bootstrap`.

    Returns
    -------
    Bootstrap
        A column per metric.
    """
    _check_draws(replicates, seed)
    columns = {name: np.asarray(column, np.float64) for name, column in values.items()}
    if len({column.shape for column in columns.values()}) > 1 or any(c.ndim != 1 for c in columns.values()):
        raise OptionError("every metric needs one value of every query")
    size = next(iter(columns.values())).size if columns else 0
    table = np.stack(list(columns.values()), axis=1) if columns else np.empty((0, 0))
    present = ~np.isnan(table)
    filled = np.where(present, table, 0.0)

    def mean(weights: NDArray[Any]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return np.asarray((filled * weights[:, None]).sum(axis=0) / (present * weights[:, None]).sum(axis=0))

    drawn_means = [mean(drawn(size, seed, r)) for r in range(replicates)]
    left_out = [mean(np.arange(size) != i) for i in range(size if bca else 0)]
    shape = (-1, len(columns))
    return Bootstrap(
        metrics=tuple(columns),
        estimate=mean(np.ones(size, np.int32)),
        replicates=np.array(drawn_means).reshape(shape),
        jackknife=np.array(left_out).reshape(shape),
        support=present.sum(axis=0),
        seed=seed,
    )


class QueryComparison(NamedTuple):
    """Two systems by one metric: means, their ``difference`` (second minus first) with its bootstrap interval, and tests.

    ``p`` and ``adjusted`` map a name of `TESTS` to the p-value, before and after Holm's correction over all pairs.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    queries: int
    p: dict[str, float]
    adjusted: dict[str, float]


def compare_queries(
    systems: Mapping[str, ArrayLike],
    tests: Iterable[str] = ("t", "wilcoxon", "randomisation"),
    *,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    bca: bool = False,
) -> list[QueryComparison]:
    """Compare every pair of systems query by query.

    Parameters
    ----------
    systems : mapping of str to array_like of float, shape (q,)
        System to its metric at every query, in one order of queries.
    tests : iterable of str
        Names of `TESTS`.
    replicates, seed, bca
        Of the bootstrap over queries, see `bootstrap`; the randomisation test draws from `seed` too.
    level : float
        Of the intervals.

    Returns
    -------
    list of QueryComparison
        A row per pair, in the order of `systems`.

    Raises
    ------
    OptionError
        For fewer than two systems, systems of different numbers of queries, or an unknown test.
    """
    names = list(tests)
    for name in names:
        if name not in TESTS:
            raise OptionError(f"unknown test {name!r}; one of: {', '.join(TESTS)}")
    if len(systems) < 2:
        raise OptionError("a comparison needs two systems or more")
    rows = []
    for first, second in itertools.combinations(systems, 2):
        a, b = np.asarray(systems[first], np.float64), np.asarray(systems[second], np.float64)
        d = _paired(a, b)
        drawn_ = bootstrap_queries({"difference": d}, replicates, seed, bca=bca)
        low, high = drawn_.interval(level)[0]
        p = {
            name: (randomisation(a, b, seed=seed) if name == "randomisation" else TESTS[name](a, b)).p for name in names
        }
        estimate = float(drawn_.estimate[0])
        rows.append(QueryComparison(first, second, estimate, float(low), float(high), d.size, p, {}))
    for name in names:
        for row, adjusted in zip(rows, holm([row.p[name] for row in rows]), strict=True):
            row.adjusted[name] = float(adjusted)
    return rows


# ----------------------------------------------------------------------------------------------------- distributions


def _t_test(mean: float, error: float, freedom: int) -> float:
    """Return the two-sided p-value of ``mean / error`` under Student's t; 1 for 0 of 0."""
    if freedom < 1:
        return math.nan
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    t = mean / error
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), to about 1e-14.

    The continued fraction of Abramowitz and Stegun 26.5.8, evaluated by the modified Lentz method.
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly its mirror image does not
        return 1.0 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    fraction = d
    for m in range(1, 10_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + step * d or tiny)
            c = 1 + step / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return front * fraction
