"""Confidence intervals of one metric from its jackknife and its bootstrap, and where the data are too few for one."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from detmap.statistics.distributions import t_quantile

Method = Literal["t", "bca", "percentile"]

#: The kinds of intervals by name, in words.
METHODS = {
    "t": "Student's t on a logit scale with a standard error, the larger one of bootstrap and jackknife",
    "bca": "BCa bootstrap",
    "percentile": "percentile bootstrap",
}

#: An interval takes so many images with something to find ...
FEWEST_IMAGES = 10
#: ... of which one alone must not decide: as much information as so many that sway the metric alike.
FEWEST_EFFECTIVE = 1.2
#: On the logit scale the standard error must be less than this: there an interval reaches from a seventh of a small value to
#: seven times, and by how much the value itself would vary on that scale can no longer be told.
LARGEST_ERROR = 1.0
#: An AP must not be less: a hit at the very top adds up to 0.01 to it (one of 101 recalls), and where that seldom happens
#: the data in which it did not know nothing of it.
LEAST_AP = 0.02

_NORMAL = NormalDist()


def standard_error(replicates: NDArray[np.float64], jackknife: NDArray[np.float64], images: int) -> float:
    """Return the larger of the standard errors of bootstrap and jackknife; NaN with fewer than two images.

    Either can be much too small near 0 and 1, where few images bear all of the chance, but not both. The bootstrap's is
    multiplied by ``sqrt(n / (n - 1))`` for n images with something to find, which makes it unbiased for a mean.
    """
    groups = jackknife.size
    values = replicates[~np.isnan(replicates)]
    if groups < 2 or images < 2 or values.size < 2:
        return math.nan
    away = jackknife[~np.isnan(jackknife)]
    away = away - away.mean() if away.size else away
    left_out = math.sqrt(float((away**2).sum()) * (groups - 1) / groups)
    return max(left_out, float(np.std(values, ddof=1)) * math.sqrt(images / (images - 1)))


def effective(jackknife: NDArray[np.float64]) -> float:
    """Return the number of equally influential images that the data are worth.

    ``sum(u ** 2) ** 2 / sum(u ** 4)`` of the images' influences *u*: their number where all are alike but in sign, and 1
    where one image decides everything. 0 where none does.
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
    least: float = -math.inf,
) -> str:
    """Return why there is no interval, in a few words; empty where there is one.

    There is none of an estimate below `least`. See `interval` for the other parameters.
    """
    if math.isnan(estimate):
        return "undefined"
    if images < FEWEST_IMAGES:
        return f"{images} {unit} with something to find: an interval takes {FEWEST_IMAGES}"
    if estimate < least:
        return f"below {least:g}: it hangs on whether a hit comes first by chance"
    found = effective(jackknife)
    if not found:
        return f"the same whichever of the {unit} are left out"
    if found < FEWEST_EFFECTIVE:
        return f"one of the {unit} decides it"
    if bounded and standard_error(replicates, jackknife, images) >= LARGEST_ERROR * estimate * (1 - estimate) > 0:
        return "too uncertain: the standard error is value * (1 - value) or more"
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
) -> tuple[float, float]:
    """Return the ends of the interval of one metric.

    Parameters
    ----------
    method
        See `detmap.statistics.Bootstrap.interval`.
    estimate, replicates, jackknife
        The metric of the data, of draws from it, and of it without some images.
    images : int
        The number of images with something to find.
    level : float
        How often such an interval should hold the true value.
    bounded : bool
        Whether the metric lies between 0 and 1.
    """
    tails = ((1 - level) / 2, (1 + level) / 2)
    if method == "t":
        freedom = min(images, jackknife.size) - 1
        margin = t_quantile(tails[1], freedom) * standard_error(replicates, jackknife, images)
        if not bounded:
            return estimate - margin, estimate + margin
        if not 0 < estimate < 1:
            return math.nan, math.nan
        middle, margin = math.log(estimate / (1 - estimate)), margin / (estimate * (1 - estimate))
        return _logistic(middle - margin), _logistic(middle + margin)
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
    if bounded:  # replicates that are moved may lie beyond what the metric can be
        low, high = max(low, 0.0), min(high, 1.0)
    return float(low), float(high)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def bca_tails(
    estimate: float, values: NDArray[np.float64], jackknife: NDArray[np.float64], tails: tuple[float, float]
) -> list[float] | None:
    """Return the quantiles at which a BCa interval ends; None where they are undefined.

    A replicate that equals the estimate counts half on either side.
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
