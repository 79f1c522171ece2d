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

    values: NDArray[np.floating[Any]]
    starts: NDArray[np.int64]


def places_of(run: Scores, hits: Scores) -> Places:
    """Rank hits by their scores among those of their query; tied ones have the first rank of their group.

    Parameters
    ----------
    run : Scores
        All scores, in the precision in which they are compared.
    hits : Scores
        Those of the hits, which are among the others.
    """
    count = hits.values.size
    ahead, tied = np.empty(count, np.int64), np.empty(count, np.int64)
    bounds, own = run.starts.tolist(), hits.starts.tolist()
    for first, last, begin, end in zip(bounds, bounds[1:], own, own[1:], strict=False):
        if begin < end:
            row, values = np.sort(run.values[first:last]), hits.values[begin:end]
            above = row.searchsorted(values, "right")
            ahead[begin:end] = row.size - above
            tied[begin:end] = above - row.searchsorted(values, "left")
    which = np.lexsort((ahead, np.repeat(np.arange(len(own) - 1), np.diff(hits.starts))))
    ahead, tied = ahead[which], tied[which]
    return Places(ahead + 1, ahead, tied, which)


def greater_ids(
    ids: Sequence[str], scores: NDArray[np.floating[Any]], tied: Sequence[str], values: NDArray[np.floating[Any]]
) -> list[int]:
    """Return for each of the `tied` documents, whose scores are `values`, how many of the same score have a greater id.

    Strings compare by code points, which is the order of their bytes in UTF-8.
    """
    order = np.argsort(scores)
    begins, ends = (np.searchsorted(scores, values, side, sorter=order).tolist() for side in ("left", "right"))
    groups: dict[int, list[str]] = {}
    for begin, end in zip(begins, ends, strict=True):
        if begin not in groups:
            groups[begin] = sorted([ids[place] for place in order[begin:end].tolist()], reverse=True)
    return [groups[begin].index(document) for begin, document in zip(begins, tied, strict=True)]
