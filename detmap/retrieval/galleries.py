"""Rank a gallery for queries by distances, and remove junk by the rules of re-identification and landmark
benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import InputError, OptionError, is_id, is_integer, shorten
from detmap.hits import Hits
from detmap.kernels import cmc, ranking, readonly
from detmap.retrieval.conventions import Choices, Convention, convention_of
from detmap.retrieval.device_arrays import DeviceRows, DeviceTable, array_table, distance_blocks
from detmap.retrieval.metrics import listed, parse_all, parse_rate
from detmap.retrieval.ranked import Ranked, Request
from detmap.retrieval.scoring import RankingResult, flat, int64, labels, numeric, numeric_table, score, table
from detmap.system import parallel

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Default metrics.
REID_METRICS = ("mAP", "mAP(trapezoid)", "mINP", "CMC@1", "CMC@5", "CMC@10", "CMC@20")

#: Maximum rank of CMC in the protocols of CUHK03 and SYSU-MM01.
SHOT_RANKS = 100

#: Number of random galleries, with one item per identity, in the protocol of CUHK03.
DRAWS = 10

#: SYSU-MM01: items seen by camera 2 are hidden from camera 3.
_HIDDEN = (3, 2)

#: Maximum number of relevant items per block of queries. A relevant item takes about 80 bytes.
_BLOCK_ITEMS = 1 << 19


@dataclass(frozen=True)
class Gallery:
    """Which items are relevant to which query, and which are junk."""

    #: Numbers of queries and of items, without the items that are junk to every query.
    queries: int
    items: int
    #: The index of each item in the given gallery; None if all items are kept.
    columns: NDArray[np.int64] | None
    #: Number of items that are junk to every query.
    dropped: int
    #: Bounds of each query's candidates, shape (queries,). The candidates of query *q* are the items of its identity,
    #: ``members[first[q]:last[q]]``.
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    #: Items grouped by identity, ascending within an identity.
    members: NDArray[np.int64]
    #: The cameras of queries and items. A candidate seen by the query's camera is junk.
    query_cameras: NDArray[np.int64] | None
    gallery_cameras: NDArray[np.int64] | None
    #: Further junk items of each query.
    ignored: Sequence[NDArray[np.int64]] | None
    #: For each query, whether the items in `hidden` are junk, shape (queries,); None except for SYSU-MM01. In
    #: SYSU-MM01's protocol, items of the query's camera and identity are not junk.
    hiding: NDArray[np.bool_] | None
    #: The items that are junk to the queries flagged in `hiding`.
    hidden: NDArray[np.int64]
    #: The identity of each item, numbered from 0, shape (items,). Some variants of CMC need identities.
    people: NDArray[np.int64]

    def parts(self, begin: int, end: int, width: int) -> list[tuple[int, int]]:
        """Split queries ``[begin, end)`` into blocks that fit into memory. A query needs memory for its items and for
        `width` further values, such as CMC at each rank.
        """
        costs = self.last[begin:end] - self.first[begin:end] + 1 + width
        if self.ignored is not None:
            costs += np.fromiter((row.size for row in self.ignored[begin:end]), np.int64, end - begin)
        if self.hiding is not None:
            costs += self.hiding[begin:end] * self.hidden.size
        return [(begin + a, begin + b) for a, b in parallel.split(costs, _BLOCK_ITEMS)]

    def lists(self, begin: int, end: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the relevant items of queries ``[begin, end)`` as two arrays: the bounds of each query, and item
        numbers. Return the junk items as two further arrays of the same form.
        """
        sizes = self.last[begin:end] - self.first[begin:end]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        place = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.first[begin:end], sizes)
        items = self.members[place]
        rows = np.repeat(np.arange(begin, end), sizes)
        relevant = rows * np.int64(self.items) + items
        junk = [np.empty(0, np.int64)]
        if self.query_cameras is not None and self.gallery_cameras is not None and self.hiding is None:
            junk.append(relevant[self.query_cameras[rows] == self.gallery_cameras[items]])
        if self.ignored is not None:
            junk += [self.ignored[q] + q * np.int64(self.items) for q in range(begin, end)]
        if self.hiding is not None:
            some = begin + np.flatnonzero(self.hiding[begin:end])
            junk.append(np.add.outer(some * np.int64(self.items), self.hidden).ravel())
        codes = np.sort(np.concatenate(junk), kind="stable")  # a stable sort is fast, because the parts are sorted
        codes = codes[np.append(True, codes[1:] != codes[:-1])[: codes.size]]
        keep = np.ones(relevant.size, np.bool_)
        if codes.size:
            keep = codes[np.minimum(np.searchsorted(codes, relevant), codes.size - 1)] != relevant
        return (
            readonly(
                np.concatenate(([0], np.cumsum(np.bincount(rows[keep] - begin, minlength=end - begin)))), np.int64
            ),
            readonly(items[keep], np.int64),
            readonly(np.searchsorted(codes, np.arange(begin, end + 1) * np.int64(self.items)), np.int64),
            readonly(codes % self.items if codes.size else codes, np.int64),
        )


def _cameras(
    query: ArrayLike | None, gallery: ArrayLike | None, queries: int, items: int, numbered: bool
) -> tuple[Any, Any]:
    if (query is None) != (gallery is None):
        raise InputError("give the cameras of both the queries and the gallery, or neither", source="cameras")
    if query is None or gallery is None:
        return None, None
    pair = (labels(query, queries, "query_cameras"), labels(gallery, items, "gallery_cameras"))
    if all(a.dtype.kind in "iub" for a in pair):
        return pair
    if numbered:
        raise InputError("sysu knows its cameras by number", source="cameras", remedy="give cameras as integers")
    _, codes = np.unique(np.concatenate(pair), return_inverse=True)
    return codes[:queries], codes[queries:]


def relate(
    queries: int,
    items: int,
    query_ids: ArrayLike,
    gallery_ids: ArrayLike,
    query_cameras: ArrayLike | None,
    gallery_cameras: ArrayLike | None,
    junk_id: int | str | None,
    ignore: Sequence[ArrayLike] | None,
    self_match: ArrayLike | bool | None,
    convention: Convention,
) -> Gallery:
    """Check the arguments that define relevance and junk, and return the gallery; see `evaluate_distances`."""
    names, theirs = labels(query_ids, queries, "query_ids"), labels(gallery_ids, items, "gallery_ids")
    if (names.dtype.kind in "US") != (theirs.dtype.kind in "US"):
        raise InputError("query_ids and gallery_ids must both be integers or both be strings", source="gallery_ids")
    if not items:
        raise InputError("is empty", source="gallery_ids")
    _, people = np.unique(theirs, return_inverse=True)
    everywhere = np.zeros(items, np.bool_)
    if junk_id is not None:
        named = isinstance(junk_id, str)
        if not is_id(junk_id):
            raise OptionError(f"junk_id must be an identity or None, not {shorten(junk_id)}")
        if named and theirs.dtype.kind != "U":
            raise OptionError("junk_id is a string and gallery_ids are not")
        if named or theirs.dtype.kind in "iub":
            everywhere = theirs == junk_id
        elif theirs.dtype.kind == "U":  # compare as text, because ids from Market-1501's file names include "-1"
            everywhere = theirs == str(junk_id)
    ignored: list[NDArray[np.int64]] | None = None
    if ignore is not None:
        if not isinstance(ignore, Sequence | np.ndarray):
            raise InputError("expected a list of item numbers per query", source="ignore")
        if len(ignore) != queries:
            raise InputError(f"{len(ignore)} lists for {queries} queries", source="ignore")
        ignored = [_indices(row, items, f"ignore[{q}]") for q, row in enumerate(ignore)]
    own = self_matches(self_match, queries, items)
    if own is not None:
        selves = [own[q : q + 1][own[q : q + 1] >= 0] for q in range(queries)]
        ignored = selves if ignored is None else [np.concatenate(pair) for pair in zip(ignored, selves, strict=True)]
    sysu = convention.cmc == "sysu"
    cameras = _cameras(query_cameras, gallery_cameras, queries, items, sysu)
    columns = None
    dropped = int(everywhere.sum())
    if dropped:  # drop these once for all queries, because galleries hold thousands of distractors
        columns = np.flatnonzero(~everywhere)
        theirs, people = theirs[columns], people[columns]
        cameras = cameras[0], None if cameras[1] is None else cameras[1][columns]
        place = np.cumsum(~everywhere) - 1
        ignored = None if ignored is None else [place[row[~everywhere[row]]] for row in ignored]
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    hides = sysu and cameras[0] is not None
    return Gallery(
        queries,
        theirs.size,
        columns,
        dropped,
        np.searchsorted(ordered, names, side="left"),
        np.searchsorted(ordered, names, side="right"),
        order,
        cameras[0],
        cameras[1],
        ignored,
        cameras[0] == _HIDDEN[0] if hides else None,
        np.flatnonzero(cameras[1] == _HIDDEN[1]) if hides else np.empty(0, np.int64),
        people,
    )


def self_matches(self_match: ArrayLike | bool | None, queries: int, items: int) -> NDArray[np.int64] | None:
    """Return for each query the index of the query's own item, or a negative number; see `evaluate_distances`."""
    if isinstance(self_match, bool | np.bool_ | None) and not self_match:
        return None
    all_ = isinstance(self_match, bool | np.bool_)
    own: NDArray[Any] = np.arange(queries) if all_ else numeric(self_match, "self_match")
    if own.shape != (queries,) or own.dtype.kind not in "iu":
        raise InputError(f"expected {queries} item numbers", source="self_match")
    own = int64(own, "self_match")
    if own.size and own.max() >= items:
        row = int(np.argmax(own >= items))
        problem = f"is not among the {items} items"
        raise InputError(problem, source="self_match", record=f"query {row}", value=int(own[row]))
    return own


def _indices(values: ArrayLike, items: int, source: str) -> NDArray[np.int64]:
    array = numeric(values, source)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= items:
        raise InputError(f"expected item numbers from 0 to {items - 1}", source=source)
    return np.unique(array).astype(np.int64)


Rows = Callable[[int, int], NDArray[Any]]


def _rank(
    rows: Rows, gallery: Gallery, convention: Convention, begin: int, end: int, width: int, seed: int
) -> tuple[Ranked, NDArray[np.int64]]:
    """Rank queries ``[begin, end)``; return the rankings and each query's number of junk items."""
    # The CMC of CUHK03 and SYSU-MM01 is evaluated up to rank `width`.
    starts, relevant, junk_starts, junk = gallery.lists(begin, end)
    ranks, ahead, tied, which = (np.empty(relevant.size, np.int64) for _ in range(4))
    items = np.empty(end - begin, np.int64)
    shots: NDArray[np.float64] | None = None
    variant = SHOTS.get(convention.cmc or "", -1)
    if variant >= 0:
        shots = np.empty((end - begin, width))
        people = readonly(gallery.people, np.int64)
        own = readonly(
            [
                gallery.people[gallery.members[i]] if i < j else -1
                for i, j in zip(gallery.first[begin:end], gallery.last[begin:end], strict=True)
            ],
            np.int64,
        )
        identities = cmc.Identities(people, own, int(gallery.people.max(initial=-1)) + 1)
        drawing = cmc.Drawing(variant, DRAWS, seed, begin)
    lists = ranking.Lists(starts, relevant), ranking.Lists(junk_starts, junk)
    places = ranking.Places(ranks, ahead, tied, which, items)

    def check(bad: int) -> None:
        if bad >= 0:
            raise InputError("a distance is NaN", source="distances", record=f"query {begin + bad}")

    def task(a: int, b: int) -> None:
        for low, high in parallel.steps(a, b, gallery.items, 1 << 17):
            block = readonly(rows(begin + low, begin + high), np.float64)
            edges = readonly(np.arange(high - low + 1) * gallery.items, np.int64)
            distances = ranking.Distances(block.ravel(), edges, low)
            check(ranking.rank_relevant(distances, *lists, low, high, places))
            if shots is not None:
                cmc.shots(distances, *lists, identities, drawing, low, high, shots)

    if isinstance(rows, DeviceRows) and shots is None:
        check(rows.rank(*lists, begin, end, places))
    else:
        parallel.run(task, parallel.even(end - begin, None))
    hits = Hits(starts, ranks, np.diff(starts), items, ahead=ahead, tied=tied)
    return Ranked(hits, convention, shots=shots), np.diff(junk_starts)


#: The kernel's codes for the CMC of CUHK03 and SYSU-MM01.
SHOTS = {"cuhk03": cmc.DRAW, "cuhk03_exact": cmc.EXPECT, "sysu": cmc.MERGE}


Blocks = Sequence[tuple[int, int]]
RowsOf = Callable[[int, int], Rows]


def blocks_of(matrix: NDArray[Any] | DeviceTable) -> tuple[Blocks, RowsOf]:
    """Return the bounds of blocks of a matrix of distances, and a function that returns the distances of a block."""
    if isinstance(matrix, DeviceTable):
        return distance_blocks(matrix)
    return [(0, len(matrix))], lambda begin, end: lambda a, b: matrix[a:b]


def _columns(rows: Rows, columns: NDArray[np.int64] | None) -> Rows:
    """Return the distances to the items with the indices `columns` only; None selects all items."""
    if columns is not None and isinstance(rows, DeviceRows):
        return rows.take(columns)
    return rows if columns is None else lambda a, b: np.take(rows(a, b), columns, axis=1)


def shot_ranks(requests: Sequence[Request], gallery: Gallery, convention: Convention) -> int:
    """Return the maximum rank at which the CMC of CUHK03 or SYSU-MM01 is evaluated; 0 for other conventions."""
    if convention.cmc not in SHOTS:
        return 0
    return min(max([SHOT_RANKS, *(r.cut for r in requests if r.metric.name == "CMC")]), gallery.items)


def ranked_rows(
    cuts: Blocks, rows_of: RowsOf, gallery: Gallery, convention: Convention, width: int, seed: int
) -> Iterator[tuple[int, int, Rows, Ranked, NDArray[np.int64]]]:
    """Rank block by block. Yield the bounds of a block's queries, and the queries' distances, rankings and numbers of
    junk items.
    """
    for low, high in cuts:
        rows = _columns(rows_of(low, high), gallery.columns)
        for begin, end in gallery.parts(low, high, width):
            yield begin, end, rows, *_rank(rows, gallery, convention, begin, end, width, seed)
        del rows  # free the distances before the next block is made


def evaluate_rows(
    cuts: Blocks,
    rows_of: RowsOf,
    gallery: Gallery,
    metrics: Any,
    convention: Convention,
    seed: int,
    keep_curve: bool,
) -> RankingResult:
    """Rank and score the queries block by block. ``rows_of(begin, end)`` computes the distances of a block. It returns
    a function ``rows(a, b)`` for the distances of queries ``[a, b)``.
    """
    if not is_integer(seed) or not 0 <= seed < 1 << 63:
        raise OptionError(f"seed must be an integer from 0 to 2 ** 63 - 1, not {shorten(seed)}")
    names = listed(REID_METRICS if metrics is None else metrics)
    rates = {name: rate for name in names if (rate := parse_rate(name)) is not None}
    others = [name for name in names if name not in rates]
    requests = parse_all(others, convention) if others else []
    width = shot_ranks(requests, gallery, convention)
    if not gallery.items:
        raise InputError(f"no query has a relevant item: {matchless(gallery)}", source="queries")
    total = gallery.queries * gallery.dropped
    matched: list[NDArray[np.float64]] = []

    def ranked() -> Iterator[Ranked]:
        nonlocal total
        for begin, end, rows, block, junk in ranked_rows(cuts, rows_of, gallery, convention, width, seed):
            total += int(junk.sum())
            if rates:
                starts, relevant, _, _ = gallery.lists(begin, end)
                for q in range(begin, end):
                    mine = relevant[starts[q - begin] : starts[q - begin + 1]]
                    matched.append(np.asarray(rows(q, q + 1)[0, mine], dtype=np.float64))
            del rows  # free the distances before the next block is made
            yield block

    names_of = np.arange(gallery.queries)
    result = score(ranked(), names_of, requests, convention, reason=matchless(gallery), keep_curve=keep_curve)
    result.junk = total
    if rates:
        found = _true_positive_rates(cuts, rows_of, gallery, np.concatenate(matched), list(rates.values()))
        result.add({f"TPR@FPR={rate:g}": value for rate, value in zip(rates.values(), found, strict=True)})
    return result


def matchless(gallery: Gallery) -> str:
    """Return the likely reason why no query has a relevant item."""
    if not gallery.items:
        return "every item of the gallery is junk"
    if bool(np.any(gallery.last > gallery.first)):
        if gallery.query_cameras is not None:
            return "all matches share the query's camera, which makes them junk; are the cameras right?"
        return "all matches are junk"
    aside = f" ({gallery.dropped} items of junk_id aside)" if gallery.dropped else ""
    return f"the identities of queries and gallery have nothing in common{aside}"


def _true_positive_rates(
    cuts: Blocks,
    rows_of: RowsOf,
    gallery: Gallery,
    matched: NDArray[np.float64],
    wanted: list[float],
) -> list[float]:
    """Return fast-reid's TPR at given FPRs, over all pairs that are not junk."""
    # Pairs at distance *t* or more are classified as different. TPR is the share of pairs of different identities that
    # are classified as different. FPR is the share of pairs of one identity that are classified as different. The TPR
    # is read at the point of scikit-learn's ``roc_curve`` with the nearest FPR (the first of tied points).
    # ``roc_curve`` omits a point that lies exactly halfway between its two neighbours.
    steps, matches = np.unique(matched, return_counts=True)
    between, equal = np.zeros(steps.size + 1, np.int64), np.zeros(steps.size, np.int64)
    read = readonly(steps, np.float64)

    def add(rows: Rows, begin: int, end: int) -> None:
        """Count the distances of queries ``[begin, end)`` between `steps`, and the distances equal to each step."""
        nonlocal between, equal
        junk = ranking.Lists(*gallery.lists(begin, end)[2:])

        def task(a: int, b: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            counts = np.zeros(steps.size + 1, np.int64), np.zeros(steps.size, np.int64)
            for low, high in parallel.steps(a, b, gallery.items, 1 << 17):
                block = readonly(rows(begin + low, begin + high), np.float64)
                edges = readonly(np.arange(high - low + 1) * gallery.items, np.int64)
                distances = ranking.Distances(block.ravel(), edges, low)
                ranking.tally_intervals(distances, junk, read, low, high, *counts)
            return counts

        for part in parallel.run(task, parallel.even(end - begin, None)):
            between += part[0]
            equal += part[1]

    for low, high in cuts:
        rows = _columns(rows_of(low, high), gallery.columns)
        for begin, end in gallery.parts(low, high, 0):
            add(rows, begin, end)
        del rows  # free the distances before the next block is made
    different = equal - matches
    # Steps are the distances of pairs of one identity, here in descending order. At each step, `p` is the number of
    # pairs of one identity, and `n` the number of other pairs. `gap` is the number of pairs between two steps.
    p, n = matches[::-1], different[::-1]
    gap = between[::-1]
    false_rate = np.cumsum(p) / max(int(matches.sum()), 1)
    true_count = np.cumsum(gap[:-1] + n)
    dropped = np.zeros(p.size, np.bool_)
    dropped[:-1] = (gap[1:-1] == 0) & (p[:-1] == p[1:]) & (n[:-1] == n[1:])
    dropped[:1] &= gap[0] > 0  # the curve's first and last points are always kept
    rates = np.concatenate(([0.0], false_rate[~dropped]))
    counts = np.concatenate(([0], true_count[~dropped]))
    total = int(between.sum() + different.sum())
    return [float(counts[np.argmin(np.abs(rates - x))] / total) if total else float("nan") for x in wanted]


def evaluate_distances(
    distances: ArrayLike,
    query_ids: ArrayLike,
    gallery_ids: ArrayLike,
    query_cameras: ArrayLike | None = None,
    gallery_cameras: ArrayLike | None = None,
    *,
    metrics: Sequence[str] | str | None = None,
    convention: str | Convention = "reid",
    junk_id: int | None = -1,
    ignore: Sequence[ArrayLike] | None = None,
    self_match: ArrayLike | bool | None = None,
    seed: int = 0,
    keep_curve: bool = False,
    **choices: Unpack[Choices],
) -> RankingResult:
    """Evaluate the rankings of a gallery by distance.

    Parameters
    ----------
    distances : array_like of float, shape (q, g)
        Element (i, j) is the distance from query *i* to item *j*; smaller is better. May be a `numpy.memmap`, of any
        float type. Float arrays of PyTorch, or of a library with the array API, may be on another device. They are
        ranked there, with bit-identical results.
    query_ids, gallery_ids : array_like of int or str, shapes (q,), (g,)
        Identities. An item is relevant to the queries of the same identity.
    query_cameras, gallery_cameras : array_like of int or str, shapes (q,), (g,), optional
        An item with the query's identity and camera is junk: it is removed from the ranking.
    metrics : sequence of str, optional
        Names from the metric table, and ``TPR@FPR=0.001`` (as in fast-reid, over all pairs); by default mAP (step and
        trapezoid), mINP and CMC.
    convention : str or Convention
        See ``detmap conventions``. Single decisions (``ties=``, ``empty=``, ``normalizer=``, ``interpolation=``, ``cmc=`` …)
        can be given as well.
    junk_id : int, str or None
        Items of this identity are junk to every query.
    ignore : sequence of array_like of int, optional
        For each query, the numbers of the items that are junk to this query.
    self_match : True or array_like of int, shape (q,), optional
        The gallery index of each query's own item, which is junk to the query; negative if the gallery does not contain
        the query. If True, item *i* is query *i*.
    seed : int
        The seed of the draws of ``cmc="cuhk03"``.
    keep_curve : bool
        Keep the mean curve for `RankingResult.plot` even if there are more than 2**21 hits.

    Returns
    -------
    RankingResult

    Raises
    ------
    InputError
        If a distance is NaN, shapes do not match, or no query has a match.
    OptionError
        For unknown metrics, conventions and decisions.
    """
    matrix = array_table(distances, "distances", booleans=True)
    decided = convention_of(convention, choices)
    queries, items = matrix.shape
    gallery = relate(
        queries, items, query_ids, gallery_ids, query_cameras, gallery_cameras, junk_id, ignore, self_match, decided
    )
    return evaluate_rows(*blocks_of(matrix), gallery, metrics, decided, seed, keep_curve)


def evaluate_landmarks(
    ranks: ArrayLike,
    ground_truth: Sequence[dict[str, ArrayLike]],
    *,
    metrics: Sequence[str] | str = ("mAP", "mP@1", "mP@5", "mP@10"),
    convention: str | Convention = "revisitop",
    **choices: Unpack[Choices],
) -> dict[str, RankingResult]:
    """Evaluate ROxford and RParis: the easy, medium and hard set-ups from one ranking.

    Parameters
    ----------
    ranks : array_like of int, shape (items, queries)
        Column *q* is the ranking of query *q*: item numbers, best first (revisitop's layout).
    ground_truth : sequence of dict
        For each query, a dict of item numbers with the keys ``easy``, ``hard`` and ``junk``.

    Returns
    -------
    dict of str to RankingResult
        ``easy``: easy items are relevant, hard items are junk. ``medium``: easy and hard items are relevant. ``hard``:
        hard items are relevant, easy items are junk. Items marked as junk are junk in all three set-ups. Set-ups
        without relevant items are left out.

    Raises
    ------
    InputError
        If a column has a negative or repeated item, the ground truth has an unknown key or invalid item numbers, or no
        query has an easy or hard item.
    """
    matrix = table(ranks, "ranks")
    if matrix.ndim != 2 or matrix.dtype.kind not in "iu" or matrix.shape[1] != len(ground_truth):
        raise InputError(f"expected a column of item numbers for each of {len(ground_truth)} queries", source="ranks")
    if not len(ground_truth):
        raise InputError("there are no queries", source="ground_truth")
    matrix = int64(matrix, "ranks")
    for q in range(matrix.shape[1]):
        column = np.sort(matrix[:, q])
        if column.size and column[0] < 0:
            raise InputError("a negative item number", source="ranks", record=f"query {q}", value=int(column[0]))
        twice = np.flatnonzero(column[1:] == column[:-1])
        if twice.size:
            raise InputError(
                "an item is ranked twice", source="ranks", record=f"query {q}", value=int(column[twice[0]])
            )
    marks = [_marks(truth, q) for q, truth in enumerate(ground_truth)]
    decided = convention_of(convention, choices)
    requests = parse_all(metrics, decided)
    plan = {"easy": (("easy",), ("junk", "hard")), "medium": (("easy", "hard"), ("junk",))}
    plan["hard"] = (("hard",), ("junk", "easy"))
    results = {}
    for name, (good, bad) in plan.items():
        starts, places, found, items, removed = [0], [], [], [], 0
        for q, truth in enumerate(marks):
            wanted, out = (np.unique(np.concatenate([truth[mark] for mark in names])) for names in (good, bad))
            if np.isin(wanted, out).any():
                raise InputError("an item is both relevant and junk", source="ground_truth", record=f"query {q}")
            column = matrix[:, q]
            junk = np.isin(column, out)
            rank = np.cumsum(~junk)
            places.append(rank[np.isin(column, wanted)])
            starts.append(starts[-1] + places[-1].size)
            found.append(wanted.size)
            items.append(int(rank[-1]) if rank.size else 0)
            removed += int(junk.sum())
        hits = Hits(np.array(starts), np.concatenate(places), np.array(found), np.array(items))
        if sum(found):
            numbers = np.arange(len(marks))
            results[name] = score([Ranked(hits, decided)], numbers, requests, decided, junk=removed)
    if not results:
        raise InputError("no query has an easy or a hard item", source="ground_truth")
    return results


def _marks(truth: Any, query: int) -> dict[str, NDArray[np.int64]]:
    """Return the item numbers in a query's ground truth, by the keys easy, hard and junk."""
    record = f"query {query}"
    if not isinstance(truth, Mapping):
        raise InputError("expected a dict of easy, hard and junk", source="ground_truth", record=record)
    unknown = [name for name in truth if name not in ("easy", "hard", "junk", "bbx")]
    if unknown:  # revisitop's files also hold the query's box
        raise InputError("is none of easy, hard, junk", source="ground_truth", record=record, value=unknown[0])
    found = {}
    for name in ("easy", "hard", "junk"):
        array = flat(truth.get(name, ()), "ground_truth")
        if array.size and (array.dtype.kind not in "iu" or array.min() < 0):
            raise InputError("expected item numbers", source="ground_truth", record=record, field=name)
        found[name] = int64(array, "ground_truth") if array.size else np.empty(0, np.int64)
    return found


def multi_query(
    features: ArrayLike, ids: ArrayLike, cameras: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the mean feature of each identity seen by each camera, as in layumi's multi-query evaluation. Also return
    the identity and the camera of each mean.
    """
    rows = numeric_table(features, "features")
    people, who = np.unique(labels(ids, len(rows), "ids"), return_inverse=True)
    places, where = np.unique(labels(cameras, len(rows), "cameras"), return_inverse=True)
    pairs, inverse = np.unique(who * places.size + where, return_inverse=True)
    total = np.zeros((pairs.size, rows.shape[1]), np.result_type(rows.dtype, np.float32))
    np.add.at(total, inverse, rows)
    means = total / np.bincount(inverse, minlength=pairs.size)[:, None].astype(total.dtype)
    return means, people[pairs // max(places.size, 1)], places[pairs % max(places.size, 1)]
