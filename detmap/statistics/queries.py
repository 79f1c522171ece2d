"""Bootstrap and comparison of rankings over queries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import OptionError, check_choice, shorten
from detmap.statistics.bootstrap import Bootstrap, alpha_of
from detmap.statistics.draws import check_replicates, check_seed, drawn
from detmap.statistics.intervals import METHODS, Method
from detmap.statistics.permutation import permutations_needed
from detmap.statistics.tests import CORRECTIONS, PERMUTATIONS, TESTS, Correction, adjust, paired, randomisation


def bootstrap_queries(
    values: Mapping[str, ArrayLike],
    replicates: int = 1000,
    seed: int = 0,
    *,
    method: Method = "t",
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> Bootstrap:
    """Draw the queries with replacement, and compute the mean of each metric over the drawn queries.

    The mean has no bias. Its interval is for the mean over the population of queries.

    Parameters
    ----------
    values : mapping of str to array_like of float, shape (q,)
        The values of each metric by its name, one value per query; queries with NaN are left out of the mean.
    replicates, seed, method
        See `bootstrap`. Intervals by Student's t are on the scale of the metric itself, as is usual for means.
    limits : mapping of str to (float, float), optional
        The minimum and maximum possible value of each metric for a query. Intervals are clipped to these limits.
        Clipping does not change the coverage, because no mean is beyond the limits. By default intervals are not
        clipped.

    Returns
    -------
    Bootstrap
        A column per metric.

    Raises
    ------
    OptionError
        For metrics with unequal numbers of values, a value beyond the `limits`, or invalid options of `bootstrap`.
    """
    check_replicates(replicates)
    check_seed(seed)
    check_choice("interval", method, METHODS)
    columns = {name: np.asarray(column, np.float64) for name, column in values.items()}
    if len({column.shape for column in columns.values()}) > 1 or any(c.ndim != 1 for c in columns.values()):
        raise OptionError("every metric needs one value of every query")
    size = next(iter(columns.values())).size if columns else 0
    table = np.stack(list(columns.values()), axis=1) if columns else np.empty((0, 0))
    cut = np.array([(limits or {}).get(name, (-math.inf, math.inf)) for name in columns], np.float64).reshape(-1, 2)
    for name, column, (least, most) in zip(columns, table.T, cut.tolist(), strict=True):
        if ((column < least) | (column > most)).any():
            raise OptionError(f"{shorten(name)} has a value of a query beyond its limits, {least:g} and {most:g}")
    present = ~np.isnan(table)
    filled = np.where(present, table, 0.0)

    def mean(weights: NDArray[Any]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            return np.asarray((filled * weights[:, None]).sum(axis=0) / (present * weights[:, None]).sum(axis=0))

    drawn_means = [mean(drawn(size, seed, r)) for r in range(replicates)]
    with np.errstate(invalid="ignore"):
        left_out = (filled.sum(axis=0) - filled) / (present.sum(axis=0) - present)
    return Bootstrap(
        metrics=tuple(columns),
        columns={name: at for at, name in enumerate(columns)},
        estimate=mean(np.ones(size, np.int32)),
        replicates=np.array(drawn_means).reshape(-1, len(columns)),
        jackknife=left_out,
        support=present.sum(axis=0),
        seed=seed,
        method=method,
        bounded=False,
        limits=cut,
        unit="queries",
    )


class QueryComparison(NamedTuple):
    """The ``difference`` between two systems' means of a metric (second minus first), with its interval and tests.

    ``p`` and ``adjusted`` map the name of a test in `TESTS` to its p-value before and after the correction over all pairs.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    queries: int
    p: dict[str, float]
    adjusted: dict[str, float]

    def disagrees(self, alpha: float = 0.05) -> bool:
        """Return whether interval and randomisation test disagree on whether the difference is 0. In this case trust the
        test, which is exact; the interval is approximate.
        """
        p = self.p.get("randomisation", math.nan)
        if math.isnan(p) or math.isnan(self.low):
            return False
        return (self.low > 0 or self.high < 0) != (p <= alpha)


def compare_queries(
    systems: Mapping[str, ArrayLike],
    tests: Iterable[str] = ("randomisation",),
    *,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    method: Method = "t",
    correction: Correction = "holm",
) -> list[QueryComparison]:
    """Compare every pair of systems query by query.

    Parameters
    ----------
    systems : mapping of str to array_like of float, shape (q,)
        The metric of each system by its name, one value per query, with the queries in the same order for all systems.
    tests : iterable of str
        Names of tests in `TESTS`; by default the randomisation test.
    replicates, seed, method
        See `bootstrap_queries`; `seed` is also the seed of the randomisation test.
    level : float
        Level of the intervals.
    correction : {"holm", "bh"}
        The correction over all pairs, see `compare`.

    Returns
    -------
    list of QueryComparison
        A row per pair, in the order of `systems`.

    Raises
    ------
    OptionError
        For fewer than two systems, systems with different numbers of queries, two systems without a common query, or an
        unknown test.

    Notes
    -----
    The randomisation test draws as many permutations as the correction over all pairs needs (`permutations_needed`),
    but at least 100,000. With few queries, fewer permutations are possible; see `too_few_queries`.
    """
    names = list(tests)
    for name in names:
        check_choice("test", name, TESTS)
    check_choice("correction", correction, CORRECTIONS)
    if len(systems) < 2:
        raise OptionError("a comparison needs two systems or more")
    rows = []
    pairs = math.comb(len(systems), 2)
    permutations = max(PERMUTATIONS, permutations_needed(pairs, alpha_of(level)))
    for first, second in itertools.combinations(systems, 2):
        a, b = np.asarray(systems[first], np.float64), np.asarray(systems[second], np.float64)
        d = paired(a, b)
        if not d.size:
            raise OptionError(
                f"{shorten(first)} and {shorten(second)} have no query in common: there is nothing to compare"
            )
        drawn_ = bootstrap_queries({"difference": d}, replicates, seed, method=method)
        low, high = drawn_.interval(level)[0]
        p = {
            name: (randomisation(a, b, permutations, seed) if name == "randomisation" else TESTS[name](a, b)).p
            for name in names
        }
        estimate = float(drawn_.estimate[0])
        rows.append(QueryComparison(first, second, estimate, float(low), float(high), d.size, p, {}))
    for name in names:
        for row, adjusted in zip(rows, adjust([row.p[name] for row in rows], correction), strict=True):
            row.adjusted[name] = float(adjusted)
    return rows


def too_few_queries(queries: Iterable[int], correction: Correction = "holm", level: float = 0.95) -> str:
    """Return the reason why no p-value of a randomisation or Wilcoxon test can be significant after the correction; ""
    if a p-value can be. With n queries, two-sided p-values are at least ``2 ** (1 - n)``. `queries` holds the number of
    queries of each pair.
    """
    many, alpha = np.array(list(queries), np.float64), alpha_of(level)

    def could_tell(numbers: NDArray[np.float64]) -> bool:
        return bool((adjust(2.0 ** (1 - numbers), correction) <= alpha).any())

    if not many.size or could_tell(many):
        return ""
    fewest = next(n for n in range(1, 1076) if could_tell(np.full(many.size, float(n))))
    return (
        "too few queries for any p of a randomisation or Wilcoxon test to be significant after the correction: "
        f"{int(many.max())}, and it takes {fewest}"
    )
