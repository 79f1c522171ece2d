"""Abstention: whether a retriever's confidence predicts the quality of its answers. The measure is defined by
Gisserot-Boukhlef et al. (2024) and computed as in MTEB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import InputError, check_choice

Confidence = Literal["max", "std", "diff1"]

#: Shares of queries left unanswered, one for each point of the curve.
RATES = tuple(np.linspace(0, 1, 11)[:-1].tolist())


def confidences(run: Mapping[Any, Mapping[Any, float]], kind: Confidence = "max") -> NDArray[np.float64]:
    """Return the confidence of each query from its scores.

    Parameters
    ----------
    run : mapping of mapping
        Scores by query and document.
    kind : {"max", "std", "diff1"}
        The highest score, the standard deviation (of the population), or the difference between the two highest scores.

    Returns
    -------
    ndarray of float64, shape (q,)
        One confidence per query, in the order of `run`. The confidence is 0 for a query without documents, and with
        "diff1" also for a query with one document.
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

    The points of the curve are means of the metric over the queries that remain without the least confident 0, 10, 20 …
    90 % of the queries; at least one query remains. The area is normalised: leaving out random queries gives 0, leaving
    out the worst queries gives 1. For queries of equal confidence the mean of their metric values is used.

    Parameters
    ----------
    confidence : array_like, shape (q,)
        The confidence of each query's answer, for example from `confidences`.
    values : array_like, shape (q,)
        The metric's value for each query, such as ``result.per_query["nDCG@10"]``.

    Returns
    -------
    float
        At most 1; negative if confident answers are worse. NaN if all values are equal.

    Raises
    ------
    InputError
        If the lengths differ, or a confidence or value is NaN.
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
    """Return the mean of the values of the remaining queries, at each of the `RATES`."""
    order = np.argsort(confidence, kind="stable")
    _, first, sizes = np.unique(confidence[order], return_index=True, return_counts=True)
    means = np.repeat(np.add.reduceat(values[order], first) / sizes, sizes)
    left_out = [min(round(rate * values.size), values.size - 1) for rate in RATES]
    return np.array([means[count:].mean() for count in left_out])


def _area(curve: NDArray[np.float64]) -> float:
    """Return the area under a curve over the `RATES`, by the trapezoidal rule."""
    return float((np.diff(RATES) * (curve[1:] + curve[:-1]) / 2.0).sum())
