"""Abstention: is a retriever surest of the queries that it answers best? Gisserot-Boukhlef et al. (2024), as MTEB has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import InputError, check_choice

Confidence = Literal["max", "std", "diff1"]

#: The shares of queries that are left unanswered.
RATES = tuple(np.linspace(0, 1, 11)[:-1].tolist())


def confidences(run: Mapping[Any, Mapping[Any, float]], kind: Confidence = "max") -> NDArray[np.float64]:
    """Return how sure each query's scores make it look.

    Parameters
    ----------
    run : mapping of mapping
        Scores by query and document.
    kind : {"max", "std", "diff1"}
        The highest score, the standard deviation (of the population), or by how much the highest exceeds the second.

    Returns
    -------
    ndarray of float64, shape (q,)
        In the order of `run`; 0 for a query without a document, and for "diff1" where there is one alone.
    """
    check_choice("kind", kind, ("max", "std", "diff1"))
    found = []
    for scores in run.values():
        row = np.array(list(scores.values()), np.float64)
        if row.size == 0 or (kind == "diff1" and row.size == 1):
            found.append(0.0)
        elif kind == "std":
            found.append(float(np.std(row)))
        else:
            best = np.sort(row)[::-1]
            found.append(float(best[0] - best[1] if kind == "diff1" else best[0]))
    return np.array(found)


def abstention_area(confidence: ArrayLike, values: ArrayLike) -> float:
    """Return nAUC: the normalised area under the curve of a metric against the share of queries left unanswered.

    The least confident tenth, two tenths … nine tenths of the queries are left out (at least one stays), and the area under
    the mean of the others is put between that of random omission, 0, and that of leaving out the worst, 1. Queries of equal
    confidence have the mean of their values.

    Parameters
    ----------
    confidence : array_like, shape (q,)
        How confident each answer is, as from `confidences`.
    values : array_like, shape (q,)
        The metric of each query, as ``result.per_query["nDCG@10"]``.

    Returns
    -------
    float
        At most 1; negative where confident answers are the worse ones. NaN where no order is better than another.

    Raises
    ------
    InputError
        For columns of unequal lengths, and NaN.
    """
    sure, metric = (np.asarray(column, np.float64) for column in (confidence, values))
    if sure.ndim != 1 or sure.shape != metric.shape:
        raise InputError(f"expected two columns of one length, not {sure.shape} and {metric.shape}", source="values")
    if np.isnan(sure).any() or np.isnan(metric).any():
        raise InputError("a confidence or a value is NaN", source="values")
    if not sure.size or metric.min() == metric.max():
        return float("nan")
    best = _curve(metric, metric)
    area, most, flat = _area(_curve(sure, metric)), _area(best), best[0] * RATES[-1]
    return float((area - flat) / (most - flat))


def _curve(confidence: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the values that are left at each of the `RATES`."""
    order = np.argsort(confidence, kind="stable")
    _, first, sizes = np.unique(confidence[order], return_index=True, return_counts=True)
    means = np.repeat(np.add.reduceat(values[order], first) / sizes, sizes)
    left_out = [min(round(rate * values.size), values.size - 1) for rate in RATES]
    return np.array([means[count:].mean() for count in left_out])


def _area(curve: NDArray[np.float64]) -> float:
    """Return the area under a curve over the `RATES`, by trapezoids."""
    return float((np.diff(RATES) * (curve[1:] + curve[:-1]) / 2.0).sum())
