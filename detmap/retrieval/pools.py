"""Pools: the ranked documents of a query that were judged or selected for judgement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.hits import Hits, counted, up_to
from detmap.kernels import Frozen, readonly


@dataclass(frozen=True, eq=False)
class Pool(Frozen):
    """The pooled documents that were ranked, for many queries, in the order of their ranks."""

    #: Bounds of the queries, shape (q + 1,): the documents of query *i* are the elements ``starts[i]:starts[i + 1]`` of
    #: the arrays of shape (n,).
    starts: NDArray[np.int64]
    #: 1-based rank of each document, ascending within a query, shape (n,).
    ranks: NDArray[np.int64]
    #: The grade of each document, shape (n,); negative if the document is in the pool but was not judged.
    grades: NDArray[np.int64]
    #: Number of ranked documents of each query, pooled or not, shape (q,).
    items: NDArray[np.int64]
    #: The tied group of each document, as in `detmap.Hits`, shape (n,), or (0,) if scores are unknown.
    ahead: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    tied: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        for name in ("starts", "ranks", "grades", "items", "ahead", "tied"):
            object.__setattr__(self, name, readonly(getattr(self, name), np.int64))

    def __len__(self) -> int:
        """Return the number of queries."""
        return int(self.items.size)

    def within(self, depth: ArrayLike) -> NDArray[np.int64]:
        """Return each query's number of pooled documents up to `depth` (a rank, or one rank per query), shape (q,)."""
        return counted(self.starts, up_to(self.starts, self.ranks, depth))

    def cut(self, depth: int) -> Pool:
        """Return the pool as if only the first `depth` documents of each query had been ranked."""
        some = self._where(up_to(self.starts, self.ranks, depth))
        return replace(some, items=np.minimum(self.items, depth), tied=np.minimum(some.tied, depth - some.ahead))

    def judged(self) -> Pool:
        """Return the pool as if only judged documents had been ranked."""
        some = self._where(self.grades >= 0)
        owner = np.repeat(np.arange(len(self)), np.diff(some.starts))
        place = np.arange(owner.size) - some.starts[owner]
        ahead = tied = some.ahead
        if ahead.size:
            new = np.ones(owner.size, np.bool_)  # whether a document's score differs from the previous document's
            new[1:] = (ahead[1:] != ahead[:-1]) | (owner[1:] != owner[:-1])
            first, group = np.flatnonzero(new), np.cumsum(new) - 1
            ahead, tied = place[first][group], np.diff(np.append(first, owner.size))[group]
        return replace(some, ranks=place + 1, items=np.diff(some.starts), ahead=ahead, tied=tied)

    def hits(self, level: int, positives: ArrayLike | None = None) -> Hits:
        """Return the documents of grade `level` or higher as hits. By default, `positives` is the number of hits of
        each query.
        """
        some = self._where(self.grades >= level)
        found = np.diff(some.starts) if positives is None else np.asarray(positives)
        return Hits(some.starts, some.ranks, found, self.items, grades=some.grades, ahead=some.ahead, tied=some.tied)

    def _where(self, wanted: NDArray[np.bool_]) -> Pool:
        """Return the pool restricted to the documents in the mask `wanted`."""
        columns = {name: getattr(self, name) for name in ("ranks", "grades", "ahead", "tied")}
        columns = {name: column[wanted] if column.size else column for name, column in columns.items()}
        return replace(self, starts=np.concatenate(([0], np.cumsum(wanted)))[self.starts], **columns)
