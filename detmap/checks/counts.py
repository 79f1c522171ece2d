"""Counts of pairs of categories."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.data.ids import locate


class Counts:
    """A matrix with the number of occurrences of each pair of a row and a column in `rows` and `columns`, both of shape
    (n,). The matrix is sparse because there may be tens of thousands of categories.
    """

    def __init__(self, rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> None:
        self.shape, self.total = shape, rows.size
        self._keys, self._counts = np.unique(rows * max(shape[1], 1) + columns, return_counts=True)
        self.of_rows = np.bincount(rows, minlength=shape[0])
        self.of_columns = np.bincount(columns, minlength=shape[1])

    @cached_property
    def best(self) -> NDArray[np.int64]:
        """The column with the largest count in each row, the first of tied columns; 0 for an empty row."""
        rows, columns = np.divmod(self._keys, max(self.shape[1], 1))
        order = np.lexsort((columns, -self._counts, rows))
        first = order[np.unique(rows[order], return_index=True)[1]]
        out = np.zeros(self.shape[0], np.int64)
        out[rows[first]] = columns[first]
        return out

    def at(self, rows: ArrayLike, columns: ArrayLike) -> NDArray[np.int64]:
        """Return the counts at `rows` and `columns`; 0 where a column is negative."""
        columns = np.asarray(columns)
        keys = np.asarray(rows) * max(self.shape[1], 1) + columns
        place = locate(keys.ravel(), self._keys).reshape(keys.shape)
        known = (place >= 0) & (columns >= 0)
        out = np.zeros(keys.shape, np.int64)
        out[known] = self._counts[place[known]]
        return out
