"""Paired tests of two systems by their metrics for the same queries, and corrections for multiple tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import OptionError, check_integer
from detmap.statistics.distributions import t_test
from detmap.statistics.draws import QUERIES, check_seed, stream


class Test(NamedTuple):
    """The outcome of a paired test: its ``statistic``, the two-sided ``p`` and the number ``n`` of pairs."""

    statistic: float
    p: float
    n: int


def paired(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return the differences, second minus first, for the queries where neither value is NaN."""
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
        p is 1 if all differences are 0, and NaN with fewer than two queries.
    """
    d = paired(first, second)
    if d.size < 2:
        return Test(math.nan, math.nan, d.size)
    mean, error = float(d.mean()), float(d.std(ddof=1)) / math.sqrt(d.size)
    statistic = mean / error if error else math.copysign(math.inf, mean) if mean else 0.0
    return Test(statistic, t_test(mean, error, d.size - 1), d.size)


def wilcoxon(first: ArrayLike, second: ArrayLike) -> Test:
    """Return Wilcoxon's signed-rank test; differences of 0 are left out.

    Parameters
    ----------
    first, second : array_like of float, shape (q,)
        A metric of both systems, query by query; queries with NaN are left out.

    Returns
    -------
    Test
        ``statistic`` is the smaller of the two rank sums. p is exact for up to 50 differences without ties; otherwise it
        is from the normal approximation, corrected for ties but not for continuity. p is 1 if all differences are 0, and
        NaN without queries.
    """
    d = paired(first, second)
    if not d.size:
        return Test(math.nan, math.nan, 0)
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
        ways = np.zeros(n * (n + 1) // 2 + 1)  # ways[s]: number of subsets of the ranks with sum s, exact below 2**53
        ways[0] = 1
        for rank in range(1, n + 1):
            ways[rank:] += ways[:-rank].copy()
        p = 2 * float(ways[: int(statistic) + 1].sum()) / 2**n
        return Test(statistic, min(p, 1.0), n)
    ties = float((counts.astype(np.float64) ** 3 - counts).sum())
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    z = (statistic - total / 2) / math.sqrt(variance)
    return Test(statistic, min(math.erfc(-z / math.sqrt(2)), 1.0), n)


#: Default number of permutations of the randomisation test.
PERMUTATIONS = 100_000


def randomisation(first: ArrayLike, second: ArrayLike, permutations: int = PERMUTATIONS, seed: int = 0) -> Test:
    """Return Fisher's randomisation test of the mean difference, with values exchanged on random queries.

    Parameters
    ----------
    first, second : array_like of float, shape (q,)
        A metric of both systems, query by query; queries with NaN are left out.
    permutations : int
        Number of sampled permutations. If this is 2**q or more, all 2**q permutations are enumerated.
    seed : int
        The seed of the draws.

    Returns
    -------
    Test
        ``statistic`` is the mean difference. If b sampled permutations are at least as extreme as the data, p is ``(1 +
        b) / (1 + permutations)``, which is never 0. p is NaN without queries.

    Notes
    -----
    Smucker, M., J. Allan and B. Carterette, A comparison of statistical significance tests for information retrieval
    evaluation (2007).
    """
    check_integer("permutations", permutations, 1)
    check_seed(seed)
    d = paired(first, second)
    if not d.size:
        return Test(math.nan, math.nan, 0)
    observed = abs(float(d.sum()))
    # Tolerance for sums that are mathematically equal but rounded differently.
    least = observed - 1e-12 * float(np.abs(d).sum())
    exact = d.size < 60 and 2**d.size <= permutations
    total = 2**d.size if exact else permutations
    rng = stream(seed, 0, QUERIES)
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


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values adjusted by Holm's method.

    If hypotheses with adjusted p-values of at most alpha are rejected, the family-wise error rate is at most alpha,
    under any dependence of the tests. The family-wise error rate is the probability that any true hypothesis is
    rejected.

    Parameters
    ----------
    p_values : array_like of float, shape (n,)
        NaN stands for a hypothesis that was not tested; it stays NaN and is not counted.

    Notes
    -----
    Holm, S., A simple sequentially rejective multiple test procedure (1979).
    """
    return _adjusted(p_values, lambda p: np.maximum.accumulate(p * np.arange(p.size, 0, -1)))


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values adjusted by Benjamini and Hochberg's method.

    If hypotheses with adjusted p-values of at most alpha are rejected, the false discovery rate is at most alpha, for
    independent or positively dependent tests. The false discovery rate is the expected share of true hypotheses among
    the rejected ones (0 if none is rejected).

    Parameters
    ----------
    p_values : array_like of float, shape (n,)
        NaN stands for a hypothesis that was not tested; it stays NaN and is not counted.

    Notes
    -----
    Benjamini, Y., and Y. Hochberg, Controlling the false discovery rate (1995).
    """
    return _adjusted(p_values, lambda p: np.minimum.accumulate((p * (p.size / np.arange(1, p.size + 1)))[::-1])[::-1])


def _adjusted(p_values: ArrayLike, rule: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Adjust p-values by `rule`, a function of the ascending p-values; NaN stays NaN."""
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    order = order[~np.isnan(p[order])]
    out = np.full(p.shape, np.nan)
    out[order] = np.minimum(rule(p[order]), 1.0)
    return out


Correction = Literal["holm", "bh"]

#: Corrections for multiple tests by name, with their guarantees.
CORRECTIONS: dict[str, tuple[Callable[[ArrayLike], NDArray[np.float64]], str]] = {
    "holm": (holm, "Holm's correction: the probability of any false claim in a family is at most {alpha}"),
    "bh": (
        benjamini_hochberg,
        "Benjamini and Hochberg's correction: the expected share of false claims among the claims in a family is at most "
        "{alpha}, where the tests are independent or positively dependent",
    ),
}


def promise(correction: Correction, alpha: float) -> str:
    """Return the guarantee of a correction in words."""
    return CORRECTIONS[correction][1].format(alpha=f"{100 * alpha:.3g} %")


def enough_drawn(permutations: int, hypotheses: int, correction: Correction, alpha: float) -> bool:
    """Return whether the smallest possible p-value, ``1 / (1 + permutations)``, would be significant after the
    correction.
    """
    least = np.full(hypotheses, 1 / (1 + permutations))
    return bool(adjust(least, correction)[0] <= alpha)


def adjust(p_values: ArrayLike, correction: Correction) -> NDArray[np.float64]:
    """Return the p-values adjusted by a correction of `CORRECTIONS`."""
    return CORRECTIONS[correction][0](p_values)
