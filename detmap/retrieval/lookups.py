"""Look up judged documents in the dicts of a run, without hashing or copying the ids of other documents. Documents are
ranked by score; ids are compared only between documents with the same score.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.formats.trec import Texts
from detmap.kernels import ranking, readonly
from detmap.kernels.texts import LENGTHS, Grouped, Tied, count_before, find_strings, rank_rows
from detmap.retrieval.document_ids import Keys, strings
from detmap.system import parallel

#: Function that returns the ids of documents, given their ascending indices among the documents of a block of queries.
Ids = Callable[[NDArray[np.int64]], Texts]

#: Maximum average number of comparisons per tied document; if more are needed, the tied documents are sorted by id.
_FEW = 16

#: Number of scores processed together.
TOGETHER = 1 << 16


def found_in(scores: Mapping[Any, float], documents: Mapping[Any, Any]) -> list[float]:
    """Return the scores of documents, NaN for missing ones."""
    get = scores.get
    return [get(document, math.nan) for document in documents]


class Scores(NamedTuple):
    """Scores of a run; the scores of query *i* are ``values[starts[i]:starts[i + 1]]``."""

    values: NDArray[np.float64]
    starts: NDArray[np.int64]

    def part(self, begin: int, end: int) -> Scores:
        """Return the scores of queries ``[begin, end)``."""
        first = self.starts[begin]
        return Scores(self.values[first : self.starts[end]], self.starts[begin : end + 1] - first)

    def distances(self, single: bool) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the negated scores, which kernels read as distances, and the start of each query's scores."""
        values: NDArray[Any] = self.values
        if single:
            with np.errstate(over="ignore"):  # overflow to infinity in single precision, as in C
                values = values.astype(np.float32)
        return readonly(-values, np.float64), readonly(self.starts, np.int64)


class Order(NamedTuple):
    """The order of documents: by score, in single precision if `single`. Equal scores are sorted by descending id if
    `descending`, else they stay in the given order.
    """

    single: bool
    descending: bool


def groups_of(starts: NDArray[np.int64], which: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Concatenate the groups with the indices `which`, where -1 stands for an empty group. Return the bounds of the
    concatenated groups, and the original index of each row.
    """
    sizes = np.where(which >= 0, starts[which + 1] - starts[which], 0)
    new = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return new, np.arange(new[-1]) + np.repeat(starts[which] - new[:-1], sizes)


class Found(NamedTuple):
    """Documents that were looked up in a run, query by query. For documents that the run lacks, the score is NaN, and the
    other values have no meaning.
    """

    #: The order of the documents.
    order: Order
    #: The score of each document; NaN if a run lacks it.
    scores: NDArray[np.float64]
    #: For each document, the number of documents of the same query with a better score.
    ahead: NDArray[np.int64]
    #: For each document, the number of documents of the same query with the same score, including the document.
    tied: NDArray[np.int64]
    #: For each document, the number of documents with the same score that precede it.
    before: NDArray[np.int64]

    @classmethod
    def empty(cls, order: Order, count: int) -> Found:
        """Return buffers for `count` documents."""
        return cls(order, np.full(count, math.nan), *(np.zeros(count, np.int64) for _ in range(3)))

    def place(self, begin: int, run: Scores, sought: Scores, ids: Ids, names: Sequence[str]) -> None:
        """Rank each document in `sought` among the documents of the same query in `run`. Write the results from index
        `begin` on. ``ids`` returns the ids of documents in `run`; `names` are the ids of the documents in `sought`.
        """
        self.scores[begin : begin + sought.values.size] = sought.values
        got = np.flatnonzero(~np.isnan(sought.values))
        own = Scores(sought.values[got], np.searchsorted(got, sought.starts)).distances(self.order.single)
        values, rows = run.distances(self.order.single)
        ahead, tied = np.zeros(got.size, np.int64), np.zeros(got.size, np.int64)
        numbers, mine = np.zeros(values.size, np.int32), np.zeros(got.size, np.int32)
        ranking.count_nearer(values, rows, *own, ahead, tied, numbers, mine)
        self.ahead[begin + got], self.tied[begin + got] = ahead, tied
        which = np.flatnonzero(tied > 1)
        if not which.size:
            return
        lines = np.flatnonzero(numbers)
        listed, ends = ids(lines), np.searchsorted(lines, rows)
        every = Tied(listed.data, listed.words, readonly(ends, np.int64), readonly(numbers[lines], np.int32))
        texts = strings([names[one] for one in got[which].tolist()], "qrels", "documents", int(LENGTHS))
        bounds = readonly(np.searchsorted(which, own[1]), np.int64)
        some = Tied(texts.data, texts.words, bounds, readonly(mine[which], np.int32))
        before = np.empty(which.size, np.int64)
        if int(tied[which].sum()) > _FEW * lines.size:
            before = _before_sorted(every, some, self.order.descending)
        else:
            count_before(every, some, self.order.descending, before)
        self.before[begin + got[which]] = before


def look_up(run: Scores, ids: Keys, sought: Sequence[Mapping[str, Any]], order: Order) -> Found:
    """Look up the documents in `sought`, query by query, in a run."""
    starts = np.concatenate(([0], np.cumsum([len(one) for one in sought]))).astype(np.int64)
    found = Found.empty(order, int(starts[-1]))

    def place(begin: int, end: int) -> None:
        own = chain.from_iterable(map(found_in, ids.mappings[begin:end], sought[begin:end]))
        scores = Scores(np.fromiter(own, np.float64, int(starts[end] - starts[begin])), starts[begin : end + 1])

        names = list(chain.from_iterable(sought[begin:end]))
        shifted = scores._replace(starts=scores.starts - scores.starts[0])
        found.place(int(starts[begin]), run.part(begin, end), shifted, partial(ids.lines, begin, end), names)

    parallel.run(place, parallel.split(np.diff(run.starts) + 1, TOGETHER))
    return found


def _before_sorted(every: Tied, some: Tied, descending: bool) -> NDArray[np.int64]:
    """Return for each string in `some` the number of preceding strings of the same query and score; see `Order`."""
    starts, groups = every.starts, every.starts.size - 1
    owner = np.repeat(np.arange(groups), np.diff(starts))
    order = np.arange(owner.size, dtype=np.int32)
    if descending:
        rank_rows(every.data, every.words, readonly(-every.numbers, np.float64), starts, 0, groups, order)
    else:
        order = np.lexsort((every.numbers, owner)).astype(np.int32)
    place, numbers, owners = np.arange(owner.size), every.numbers[order], owner[order]
    begins = np.concatenate(([True], (numbers[1:] != numbers[:-1]) | (owners[1:] != owners[:-1])))
    before = np.empty(owner.size, np.int64)
    before[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    found = np.empty(some.words.size, np.int64)
    seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
    with np.errstate(over="ignore"):  # uncompiled kernels warn of integer overflow
        find_strings(Grouped(*every[:3]), Grouped(*some[:3]), 0, groups, seed, found)
    sought: NDArray[np.int64] = before[starts[np.repeat(np.arange(groups), np.diff(some.starts))] + found]
    return sought
