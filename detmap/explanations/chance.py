"""Expected number of tried values that agree with a quoted number by chance."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: Number of nearest tried values for the estimate of the local density, which then has a relative error of 20 %.
_NEAREST = 25

#: Number of nearest tried values from which the local scale and correlation of several numbers are estimated.
_CLOUD = 60


class Chance:
    """The density of tried values near the quoted numbers.

    `values` are the distinct vectors of tried values, shape (n, k); `quoted`, shape (k, 2), holds the interval of
    values that round to each quoted number. The density is a nearest-neighbour estimate (Loftsgaarden and Quesenberry
    1965): if the smallest ball about the quoted numbers with *m* values has the volume *V*, the density is (m - 1) / V.
    Values that agree with the quoted numbers are left out, and the volume of the quoted intervals is subtracted,
    because otherwise the true rule would raise the estimate. Numbers are correlated under most rules, so distances use
    the local covariance. Some rules make two numbers equal, such as AP and AP50 at a single threshold. Values under
    these rules have a separate density with one dimension fewer.
    """

    def __init__(self, values: NDArray[np.float64], quoted: NDArray[np.float64]) -> None:
        same = values[:, :, None] == values[:, None, :]
        kinds, kind = np.unique(same.argmax(axis=2), axis=0, return_inverse=True)
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.float64], float, int]] = []
        for at, first in enumerate(kinds):
            columns = np.unique(first)
            low = np.array([quoted[first == column, 0].max() for column in columns])
            high = np.array([quoted[first == column, 1].min() for column in columns])
            if (low < high).all():
                rows = np.flatnonzero(kind.reshape(-1) == at)
                self._parts.append(_part(rows, values[rows][:, columns], low, high))

    def expected(self, among: NDArray[np.bool_]) -> float:
        """Return the expected number of values that agree by chance, among the values flagged by `among`, shape (n,)."""
        total = 0.0
        for rows, away, unit, count in self._parts:
            distances = np.sort(away[among[rows]])
            if distances.size:
                rank = min(distances.size, max(3, min(_NEAREST, distances.size // 4)))
                volume = unit * float(distances[rank - 1]) ** count  # in units of the quoted intervals' volume
                total += max(rank - 1, 1) / max(volume - 1, volume / 2)
        return total


def _part(
    rows: NDArray[np.int64], values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], float, int]:
    """Return four items: the rows of values that disagree with the quoted numbers, the distances of these values from
    the numbers, and the volume and the dimension of the unit ball.
    """
    away = (values - (low + high) / 2) / (high - low)
    outside = (np.abs(away) > 0.5).any(axis=1)
    rows, away, count = rows[outside], away[outside], low.size
    cloud = away[np.argsort(np.abs(away).max(axis=1), kind="stable")[:_CLOUD]]
    spread = np.cov(cloud.T, bias=True).reshape(count, count) if len(cloud) > count else np.zeros((count, count))
    # The added variance accounts for rounding to the quoted digits. It also prevents a singular matrix if the numbers
    # are dependent.
    scale, axes = np.linalg.eigh(spread + 0.25 * np.eye(count))
    unit_ball = math.pi ** (count / 2) / math.gamma(count / 2 + 1)
    return rows, np.linalg.norm(away @ axes / np.sqrt(scale), axis=1), unit_ball * float(np.sqrt(scale).prod()), count
