"""Confidence intervals of one metric from its jackknife and bootstrap, and criteria for too few data."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from detmap.statistics.distributions import t_quantile

Method = Literal["t", "bca", "percentile"]

#: Descriptions of the methods for intervals.
METHODS = {
    "t": "Student's t on a logit scale with the standard error of bootstrap and jackknife",
    "bca": "BCa bootstrap",
    "percentile": "percentile bootstrap",
}

#: Minimum number of units with positives for an interval, by kind of unit.
FEWEST = {"images": 10, "videos": 10, "samples": 10, "queries": 10, "clusters": 5}
#: Minimum effective number of units for an interval; below this number, a single unit determines the metric.
FEWEST_EFFECTIVE = 1.2
#: Minimum expected successes and failures, n·p and n·(1−p), for the effective sample size n.
FEWEST_EVENTS = 2.0
#: Minimum distances from 0 and from 1 at which the AP of one class has an interval. AP is a mean over 101 recalls. An
#: AP below 0.02 depends on whether the first detection is a hit. At a single IoU threshold, an AP above 0.985 depends
#: on whether the last object is found; means over several thresholds may be nearer to 1. For a mean over K classes,
#: both distances are divided by K.
LEAST_AP, LAST_AP = 0.02, 0.015
#: Maximum Kolmogorov-Smirnov distance of the replicates from a normal distribution; a larger distance means that the
#: metric takes few distinct values.
LARGEST_JUMP = 0.2

_NORMAL = NormalDist()

#: Probabilities, and their normal quantiles, at which the replicates are compared with a normal distribution.
_SHARES = np.arange(1, 40) / 40
_AT = np.array([_NORMAL.inv_cdf(share) for share in _SHARES.tolist()])


def nearest(thresholds: int, classes: int) -> tuple[float, float]:
    """Return the minimum distances of an AP from 0 and from 1 for an interval. The AP is a mean over the given numbers
    of IoU thresholds and classes. For metrics other than AP, `thresholds` is 0.
    """
    classes = max(classes, 1)
    return LEAST_AP / classes if thresholds else 0.0, LAST_AP / classes if thresholds == 1 else 0.0


def standard_error(replicates: NDArray[np.float64], jackknife: NDArray[np.float64], images: int) -> float:
    """Return a standard error from the variances that bootstrap and jackknife estimate; NaN with fewer than two images.

    The bootstrap variance is slightly too small for few images; the factor ``n / (n - 1)`` for n images with positives
    makes it unbiased for a mean. The jackknife variance is too large on average. For a metric that changes in steps,
    the jackknife variance can be far too large, or far too small. Therefore the mean of two variances is used: the
    bootstrap variance, and the larger of bootstrap and jackknife variance.

    Efron, B., and C. Stein, The jackknife estimate of variance (1981).
    """
    groups = jackknife.size
    values = replicates[~np.isnan(replicates)]
    if groups < 2 or images < 2 or values.size < 2:
        return math.nan
    away = jackknife[~np.isnan(jackknife)]
    away = away - away.mean() if away.size else away
    left_out = float((away**2).sum()) * (groups - 1) / groups
    drawn = float(np.var(values, ddof=1)) * images / (images - 1)
    return math.sqrt((drawn + max(drawn, left_out)) / 2)


def trials(estimate: float, error: float) -> float:
    """Return the number of independent trials with which the proportion `estimate` has the standard error `error`.

    This is the effective sample size of E. Korn and B. Graubard, Confidence intervals for proportions with small
    expected number of positive counts estimated from survey data (1998).
    """
    return estimate * (1 - estimate) / error**2


def _logits(values: NDArray[np.float64], count: float) -> NDArray[np.float64]:
    """Return the logits of proportions among `count` trials, clipped to at least half a success and half a failure."""
    # Haldane, J., The estimation and significance of the logarithm of a ratio of frequencies (1956).
    half = min(0.5 / count, 0.5)
    values = np.clip(values, half, 1 - half)
    return np.log(values / (1 - values))


def jump(values: NDArray[np.float64]) -> float:
    """Return the Kolmogorov-Smirnov distance of values from the normal distribution of the same mean and deviation.

    This is the maximum difference of the cumulative distributions, evaluated at the normal quantiles of 1/40, 2/40,
    ..., 39/40. The distance is about 0.05 for 200 normal values. If a share s of the values are equal, the distance is
    at least about s / 2.
    """
    values = np.sort(values[~np.isnan(values)])
    at = values.mean() + _AT * values.std()
    below, up_to = (np.searchsorted(values, at, side) / values.size for side in ("left", "right"))
    return float(np.maximum(_SHARES - below, up_to - _SHARES).max())


def effective(jackknife: NDArray[np.float64]) -> float:
    """Return the effective number of images, ``sum(u ** 2) ** 2 / sum(u ** 4)`` for the images' influences *u* on the
    metric. The result is the number of images if all influences are equal up to sign, 1 if a single image has an
    influence, and 0 if no image has one.
    """
    defined = jackknife[~np.isnan(jackknife)]
    away = defined - defined.mean() if defined.size else defined
    fourth = float((away**4).sum())
    return float((away**2).sum()) ** 2 / fourth if fourth else 0.0


def reason(
    estimate: float,
    replicates: NDArray[np.float64],
    jackknife: NDArray[np.float64],
    images: int,
    unit: str = "images",
    *,
    bounded: bool = True,
    near: tuple[float, float] = (0.0, 0.0),
) -> str:
    """Return the reason why there is no interval, in a few words; "" if there is an interval. See `interval`."""
    if math.isnan(estimate):
        return "undefined"
    if images < FEWEST[unit]:
        return f"{images} {unit} with something to find: an interval takes {FEWEST[unit]}"
    if bounded and estimate < near[0]:
        return f"below {near[0]:.2g}: it hangs on whether a hit comes first by chance"
    if bounded and 1 - estimate < near[1]:
        return f"within {near[1]:.2g} of 1: it hangs on whether the last object is found"
    found = effective(jackknife)
    if not found:
        return f"the same whichever of the {unit} are left out"
    if found < FEWEST_EFFECTIVE:
        return f"one of the {unit} decides it"
    error = standard_error(replicates, jackknife, images)
    if math.isnan(error):
        return f"undefined in the draws of the {unit}"
    if bounded and 0 < estimate < 1:
        count = trials(estimate, error)
        few, what = min((estimate * count, "successes"), ((1 - estimate) * count, "failures"))
        if few < FEWEST_EVENTS:
            return f"too uncertain: its error is that of a share with {few:.1f} {what}; an interval takes {FEWEST_EVENTS:g}"
        if jump(_logits(replicates, count)) > LARGEST_JUMP:
            return f"it moves in jumps, from draw to draw of the {unit}"
    return ""


def interval(
    method: Method,
    estimate: float,
    replicates: NDArray[np.float64],
    jackknife: NDArray[np.float64],
    images: int,
    level: float,
    *,
    bounded: bool,
    near: tuple[float, float] = (0.0, 0.0),
    balance: float | None = None,
) -> tuple[float, float]:
    """Return the interval of one metric from its estimate, its replicates and its jackknife. `images` is the number of
    images with positives; for clusters, `balance` is the effective number of clusters. `near` holds the minimum
    distances from 0 and from 1. An estimate nearer to 0 or 1 has no interval. An end of an interval nearer to 0 or 1 is
    set to 0 or 1, because intervals would otherwise miss the expected value too often.
    """
    tails = ((1 - level) / 2, (1 + level) / 2)
    if method == "t":
        quantile = t_quantile(tails[1], freedom(images, jackknife.size, balance))
        error = standard_error(replicates, jackknife, images)
        if not bounded:
            return estimate - quantile * error, estimate + quantile * error
        if not 0 < estimate < 1:
            return math.nan, math.nan
        count = trials(estimate, error)
        margin = quantile * standard_error(_logits(replicates, count), _logits(jackknife, count), images)
        middle = math.log(estimate / (1 - estimate))
        low, high = _logistic(middle - margin), _logistic(middle + margin)
        # An end that is too near to 0 or 1 is set to 0 or 1.
        few = FEWEST_EVENTS / count
        return 0.0 if low < max(near[0], few) else low, 1.0 if 1 - high < max(near[1], few) else high
    values = replicates[~np.isnan(replicates)]
    if not values.size:
        return math.nan, math.nan
    if method == "percentile":
        low, high = np.quantile(values, tails)
        return float(low), float(high)
    values = values - (values.mean() - estimate)
    at = bca_tails(estimate, values, jackknife, tails)
    if at is None:
        return math.nan, math.nan
    low, high = np.quantile(values, at)
    if bounded:  # shifted replicates may exceed the range of the metric
        low, high = max(low, 0.0), min(high, 1.0)
    return float(low), float(high)


def freedom(images: int, groups: int, balance: float | None = None) -> float:
    """Return the degrees of freedom of a jackknife error. `images` is the number of units, and `groups` is the number
    of groups into which the jackknife divides them. For clusters, `balance` is the effective number of clusters, and
    the result is at least 1.
    """
    return min(images, groups) - 1 if balance is None else max(min(balance, groups) - 1, 1.0)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def bca_tails(
    estimate: float, values: NDArray[np.float64], jackknife: NDArray[np.float64], tails: tuple[float, float]
) -> list[float] | None:
    """Return the two probabilities whose quantiles of the replicates are the ends of a BCa interval. Return None if
    they are undefined. Half of the replicates that equal the estimate are counted as smaller.
    """
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
