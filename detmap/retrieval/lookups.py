"""Judged documents that are looked up in the dicts of a run; the ids of other documents are neither hashed nor copied.

The dict says the score of a document, and a score without ties says the rank. Where a judged document is tied, the ids of
its group are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import ranking, readonly
from detmap.system import parallel

#: Documents of one score up to which comparing each of them is faster than sorting them.
_FEW = 64

#: Scores that are looked at together.
_TOGETHER = 1 << 16


def scores_of(run: Sequence[Mapping[Any, float]], judged: Sequence[Mapping[Any, Any]]) -> NDArray[np.float64]:
    """Return the score of every judged document, query by query; NaN of those that the run does not hold."""
    count = sum(map(len, judged))
    found = (found_in(scores, documents) for scores, documents in zip(run, judged, strict=True))
    return np.fromiter(chain.from_iterable(found), np.float64, count)


def found_in(scores: Mapping[Any, float], documents: Mapping[Any, Any]) -> list[float]:
    """Return the scores of documents, NaN of those that are not there."""
    get = scores.get
    return [get(document, math.nan) for document in documents]


class Places(NamedTuple):
    """Where hits fall, by query and rank: as in `detmap.retrieval.runs`."""

    ranks: NDArray[np.int64]
    ahead: NDArray[np.int64]
    tied: NDArray[np.int64]
    which: NDArray[np.int64]


class Scores(NamedTuple):
    """Scores of a run: those of query *i* are ``values[starts[i]:starts[i + 1]]``."""

    values: NDArray[np.float64]
    starts: NDArray[np.int64]

    def distances(self, begin: int, end: int, single: bool) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the scores of queries ``[begin, end)``, turned around as kernels read them, and where each starts."""
        first = self.starts[begin]
        values: NDArray[Any] = self.values[first : self.starts[end]]
        if single:
            with np.errstate(over="ignore"):  # what is too large for single precision becomes infinite, as in C
                values = values.astype(np.float32)
        return readonly(-values, np.float64), readonly(self.starts[begin : end + 1] - first, np.int64)


class Order(NamedTuple):
    """What orders documents: scores, in `single` precision, then ids where they are to be `descending`, else places."""

    single: bool
    descending: bool


def places_of(
    run: Scores, hits: Scores, order: Order, ids: Sequence[Mapping[Any, Any]], names: Sequence[Any]
) -> Places:
    """Rank hits among the documents of their query.

    Parameters
    ----------
    run : Scores
        All scores.
    hits : Scores
        Those of the hits, which are among the others.
    order : Order
        How they are compared.
    ids : sequence of mapping
        The documents of each query, in the order of their scores.
    names : sequence
        The id of each hit.
    """
    count, queries = hits.values.size, hits.starts.size - 1
    ahead, tied, before = (np.zeros(count, np.int64) for _ in range(3))

    def place(begin: int, end: int) -> None:
        every, own = run.distances(begin, end, order.single), hits.distances(begin, end, order.single)
        some = slice(hits.starts[begin], hits.starts[end])
        ranking.count_nearer(*every, *own, 0, end - begin, ahead[some], tied[some])
        which = np.flatnonzero(tied[some] > 1)
        if not which.size:
            return
        owner = np.repeat(np.arange(end - begin), np.diff(own[1]))[which]
        nearer, sizes = ahead[some][which], tied[some][which]
        in_groups = np.lexsort((nearer, owner))
        owner, nearer, sizes, which = owner[in_groups], nearer[in_groups], sizes[in_groups], which[in_groups]
        first = np.flatnonzero(np.diff(owner, prepend=-1) | np.diff(nearer, prepend=-1))  # hit of each group
        wanted = np.zeros(own[0].size, np.int64)
        wanted[which[first]] = sizes[first]
        bounds = readonly(np.concatenate(([0], np.cumsum(wanted))), np.int64)
        listed = np.empty(int(bounds[-1]), np.int64)
        ranking.list_equal(*every, *own, bounds, 0, end - begin, listed)
        limits = [*first.tolist(), which.size]
        groups = zip(
            (owner[first] + begin).tolist(),
            bounds[which[first]].tolist(),
            bounds[which[first] + 1].tolist(),
            limits,
            limits[1:],
            strict=False,
        )
        hit, offsets = (which + some.start).tolist(), []
        members, documents, last = listed.tolist(), [], -1
        for query, low, high, begins, ends in groups:
            if query != last:
                documents, last = list(ids[query]), query
            group = [documents[place] for place in members[low:high]]
            offsets += _before(group, [names[one] for one in hit[begins:ends]], order.descending)
        before[hit] = offsets

    parallel.run(place, parallel.split(np.diff(run.starts) + 1, _TOGETHER))
    ranks = ahead + before + 1
    which = np.lexsort((ranks, np.repeat(np.arange(queries), np.diff(hits.starts))))
    return Places(ranks[which], ahead[which], tied[which], which)


def _before(group: list[Any], wanted: list[Any], descending: bool) -> list[int]:
    """Return how many documents of a group of one score come before each of the `wanted`."""
    # Strings compare by code points, which is the order of their bytes in UTF-8.
    if len(wanted) == 1 and not descending:
        return [group.index(wanted[0])]
    if len(wanted) == 1 and len(group) <= _FEW:
        return [sum(map(wanted[0].__lt__, group))]
    at = {document: place for place, document in enumerate(sorted(group, reverse=True) if descending else group)}
    return [at[document] for document in wanted]
