"""Rankings compared query by query."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import OptionError
from detmap.statistics.bootstrap import Bootstrap, check_draws, drawn
from detmap.statistics.tests import TESTS, holm, paired, randomisation


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
    check_draws(replicates, seed)
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
        d = paired(a, b)
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
