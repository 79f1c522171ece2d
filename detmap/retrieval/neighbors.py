"""Evaluate nearest neighbours from an index, given the gallery that it searched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import InputError, OptionError
from detmap.hits import Hits
from detmap.retrieval.conventions import Choices, Convention, convention_of
from detmap.retrieval.galleries import REID_METRICS, SHOTS, Gallery, Rows, evaluate_rows, matchless, relate
from detmap.retrieval.metrics import listed, parse_all, parse_rate
from detmap.retrieval.ranked import Ranked, Request
from detmap.retrieval.scoring import RankingResult, int64, labels, numeric, numeric_table, score

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Default ranks of CMC.
_RANKS = (1, 5, 10, 20)


def evaluate_neighbors(
    indices: ArrayLike | tuple[ArrayLike, ArrayLike],
    query_ids: ArrayLike,
    gallery_ids: ArrayLike,
    distances: ArrayLike | None = None,
    query_cameras: ArrayLike | None = None,
    gallery_cameras: ArrayLike | None = None,
    *,
    metrics: Sequence[str] | str | None = None,
    convention: str | Convention = "reid",
    junk_id: int | str | None = -1,
    ignore: Sequence[ArrayLike] | None = None,
    self_match: ArrayLike | bool | None = None,
    seed: int = 0,
    **choices: Unpack[Choices],
) -> RankingResult:
    """Evaluate the nearest neighbours that an index (faiss, hnswlib, scikit-learn ...) returned.

    The relevant items of a query are counted in the whole gallery, whether they were found or not.

    Parameters
    ----------
    indices : array_like of int, shape (q, k)
        Element (i, j) is the gallery index of the item at rank ``j + 1`` of query *i*. -1 stands for no item and may
        only fill the end of a row. The tuple that a search returns is accepted as well: distances and indices (faiss,
        scikit-learn) or indices and distances (hnswlib, scann). The array of integers is taken as the indices.
    query_ids, gallery_ids : array_like of int or str, shapes (q,), (g,)
        Identities. An item is relevant to the queries of the same identity.
    distances : array_like of float, shape (q, k), optional
        The distance of each neighbour, ascending in a row; distances at indices of -1 are ignored. Ties are ranked in the
        order of the gallery, as in `evaluate_distances`; tie rules other than ``index`` need distances.
    query_cameras, gallery_cameras, junk_id, ignore, self_match
        Which items are junk; see `evaluate_distances`. Junk is removed from the neighbours, so search for more neighbours
        than the metrics read.
    metrics : sequence of str, optional
        Names from the metric table. Unless the rows hold the whole gallery, a depth beyond *k* is an error, and so is a
        metric of whole rankings, such as mAP without a depth (use mAP@k). By default mAP@k, R@k and CMC, or the default
        metrics of `evaluate_distances` if the rows hold the whole gallery.
    convention : str or Convention
        See ``detmap conventions``; single decisions (``ties=``, ``empty=`` …) can be given as well. The CMC variants that
        draw or merge identities need rows that hold the whole gallery.
    seed : int
        The seed of the draws of ``cmc="cuhk03"``.

    Returns
    -------
    RankingResult
        If the rows hold the whole gallery, the values equal those of `evaluate_distances`. ``junk`` counts the junk items
        among the neighbours.

    Raises
    ------
    InputError
        If indices are outside of the gallery, an item is repeated, -1 precedes an item, distances are NaN or do not
        ascend, shapes do not match, or no query has a match.
    OptionError
        For metrics that need more than *k* neighbours, and for unknown metrics, conventions and decisions.

    Examples
    --------
    Both items of identity 7 are relevant; one of them was found.

    >>> result = evaluate_neighbors([[2, 1]], [7], [7, 8, 7], metrics=["mAP@2", "R@2", "CMC@1"])
    >>> dict(result)
    {'mAP@2': 0.5, 'R@2': 0.5, 'CMC@1': 1.0}
    """
    theirs = labels(gallery_ids, None, "gallery_ids")
    items, measured = places(*of_search(indices, distances), theirs.size)
    decided = convention_of(convention, choices)
    gallery = relate(
        len(items), theirs.size, query_ids, theirs, query_cameras, gallery_cameras, junk_id, ignore, self_match, decided
    )
    depth = items.shape[1]
    whole = depth >= theirs.size and bool((items[:, : theirs.size] >= 0).all())
    if metrics is None:
        metrics = REID_METRICS if whole else _default(depth, decided)
    names = listed(metrics)
    rates = [name for name in names if parse_rate(name) is not None]
    if rates and (measured is None or not whole):
        raise OptionError(f"{rates[0]} needs the distances of the whole gallery")
    if decided.cmc in SHOTS and not whole:
        raise OptionError(f"CMC {decided.cmc} needs rows that hold the whole gallery: {theirs.size} items")
    if rates or decided.cmc in SHOTS:
        rows = scattered(items, measured, theirs.size)
        return evaluate_rows([(0, len(items))], rows, gallery, names, decided, seed, False)
    requests = parse_all(names, decided)
    junk = short = 0

    def ranked() -> Iterator[Ranked]:
        nonlocal junk, short
        for block, removed, few in ranked_neighbors(items, measured, gallery, requests, decided, theirs.size):
            junk += int(removed.sum())
            short += int(few.sum())
            yield block

    result = score(ranked(), np.arange(len(items)), requests, decided, reason=matchless(gallery))
    result.junk = junk
    if short:
        result.add_notices({"short_rankings": short})
    return result


def places(
    indices: ArrayLike, distances: ArrayLike | None, count: int
) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    """Return the checked neighbours in a gallery of `count` items, and their distances."""
    items = _items(indices, count)
    return items, None if distances is None else _measured(distances, items)


def of_search(indices: Any, distances: Any) -> tuple[Any, Any]:
    """Return indices and distances. `indices` may be the pair of arrays that a search returns; `OptionError` is raised
    if `distances` are given, too. faiss and scikit-learn return distances first, but hnswlib and scann return indices
    first. Therefore the array of integers is taken as the indices. If both arrays are integers, as with faiss' Hamming
    distances, the first array is taken as the distances.
    """
    if not isinstance(indices, tuple) or len(indices) != 2:
        return indices, distances
    first, second = (numeric(one, "indices") for one in indices)
    if first.ndim != 2 or second.ndim != 2:
        return indices, distances
    if distances is not None:
        raise OptionError("distances are given twice: in the tuple that a search returns, and by themselves")
    indices_first = first.dtype.kind in "iu" and second.dtype.kind not in "iu"
    return (first, second) if indices_first else (second, first)


def ranked_neighbors(
    items: NDArray[np.int64],
    measured: NDArray[Any] | None,
    gallery: Gallery,
    requests: Sequence[Request],
    convention: Convention,
    count: int,
) -> Iterator[tuple[Ranked, NDArray[np.int64], NDArray[np.bool_]]]:
    """Rank the queries block by block. Yield the rankings and each query's number of junk items among its neighbours.
    Also yield a mask of the queries that, after removal of junk, have fewer neighbours than a metric needs. `count` is the
    size of the gallery that was searched. Raises `OptionError` for metrics that need more neighbours than `items` has.
    """
    depth = items.shape[1]
    whole = depth >= count and bool((items[:, :count] >= 0).all())
    for request in () if whole else requests:
        _check_reach(request, convention, depth)
    place = None
    if gallery.columns is not None:
        place = np.full(count, -1)
        place[gallery.columns] = np.arange(gallery.items)
    for begin, end in gallery.parts(0, len(items), depth):
        part = items[begin:end], None if measured is None else measured[begin:end]
        block, removed, all_junk = _rank(*part, place, gallery, convention, begin, end)
        yield block, removed, _short(block, requests, gallery.items - all_junk)


def _check_reach(request: Request, convention: Convention, depth: int) -> None:
    """Raise `OptionError` for a metric that needs more than `depth` neighbours, or the whole ranking."""
    metric, ranks = request.metric, request.metric.at == "rank" and request.depth is not None
    if ranks and request.cut > depth:
        raise OptionError(f"{request.name} reads {request.cut} neighbours of a query, and indices hold {depth}")
    if ranks or metric.reads != "ranking" or _to_relevant(request, convention):
        return
    remedy = "search for the whole gallery"
    if metric.depth == "may":
        remedy = f"ask for {replace(request, depth=float(depth)).name}, or {remedy}"
    raise OptionError(f"{request.name} reads whole rankings, and indices hold {depth} neighbours of a query: {remedy}")


def _to_relevant(request: Request, convention: Convention) -> bool:
    """Return whether a metric uses the first R ranks, where R is the number of relevant items."""
    to_relevant = request.metric.name == "AP" and convention.depth == "positives" and request.depth is None
    return to_relevant or request.metric.reads == "relevant"


def _default(depth: int, convention: Convention) -> list[str]:
    precision = "mAP" if convention.depth else f"mAP@{depth}"
    return [precision, f"R@{depth}", *(f"CMC@{rank}" for rank in _RANKS if rank <= depth)]


def _at(bad: NDArray[np.bool_]) -> tuple[int, int, str]:
    """Return the row and column of the first True in `bad`, and a description of that element."""
    row, column = map(int, np.unravel_index(int(np.argmax(bad)), bad.shape))
    return row, column, f"query {row}, rank {column + 1}"


def _items(indices: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return the checked indices as int64."""
    items = numeric_table(indices, "indices")
    if items.dtype.kind not in "iu":
        raise InputError("expected places in the gallery, which are integers", source="indices", value=items.dtype.name)
    if not items.shape[1]:
        raise InputError("there are no neighbours", source="indices", value=items.shape)
    items = int64(items, "indices")
    bad = (items < -1) | (items >= count)
    if bad.any():
        row, column, place = _at(bad)
        problem = f"is not a place in a gallery of {count} items, nor -1 for none"
        raise InputError(problem, source="indices", record=place, value=int(items[row, column]))
    bad = (items[:, :-1] < 0) & (items[:, 1:] >= 0)
    if bad.any():
        _, _, place = _at(bad)
        remedy = "name the items to be left out: self_match, ignore"
        raise InputError("-1 stands before an item", source="indices", record=place, remedy=remedy)
    order = np.argsort(items, axis=1, kind="stable")
    ordered = np.take_along_axis(items, order, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, column, _ = _at(twice)
        place = f"query {row}, rank {int(order[row, column + 1]) + 1}"
        raise InputError("an item is there twice", source="indices", record=place, value=int(ordered[row, column]))
    return items


def _measured(distances: ArrayLike, items: NDArray[np.int64]) -> NDArray[Any]:
    """Return the checked distances, with infinity for missing items."""
    given = numeric_table(distances, "distances")
    if given.shape != items.shape:
        raise InputError(f"shape {given.shape} where indices have {items.shape}", source="distances")
    bad = np.isnan(given) & (items >= 0)
    if bad.any():
        raise InputError("a distance is NaN", source="distances", record=_at(bad)[2])
    bad = (given[:, 1:] < given[:, :-1]) & (items[:, 1:] >= 0)
    if bad.any():
        row, column, _ = _at(bad)
        raise InputError(
            "is below the one before it",
            source="distances",
            record=f"query {row}, rank {column + 2}",
            value=given[row, column + 1].item(),
            remedy="put the nearest first; of similarities give the negatives",
        )
    return np.where(items >= 0, given, np.inf)


def scattered(items: NDArray[np.int64], measured: NDArray[Any] | None, count: int) -> Any:
    """Return a function that returns distances in gallery order, or ranks in place of distances if `measured` is None.
    Every query must have all items as neighbours.
    """

    def rows(begin: int, end: int) -> NDArray[Any]:
        values: NDArray[Any] = np.arange(count)[None] if measured is None else measured[begin:end, :count]
        out: NDArray[Any] = np.empty((end - begin, count))
        np.put_along_axis(out, items[begin:end, :count], values, axis=1)
        return out

    def of(begin: int, end: int) -> Rows:
        return rows

    return of


def _marked(
    items: NDArray[np.int64], starts: NDArray[np.int64], members: NDArray[np.int64], count: int
) -> NDArray[np.bool_]:
    """Return a mask of the `items` that are in their query's list. The list of query *q* is
    ``members[starts[q]:starts[q + 1]]``, in ascending order.
    """
    if not members.size:
        return np.zeros(items.shape, np.bool_)
    codes = np.repeat(np.arange(len(items)) * count, np.diff(starts)) + members
    wanted = np.arange(len(items))[:, None] * count + items
    place = np.minimum(np.searchsorted(codes, wanted), codes.size - 1)
    return np.asarray((codes[place] == wanted) & (items >= 0))


def _rank(
    items: NDArray[np.int64],
    measured: NDArray[Any] | None,
    place: NDArray[np.int64] | None,
    gallery: Gallery,
    convention: Convention,
    begin: int,
    end: int,
) -> tuple[Ranked, NDArray[np.int64], NDArray[np.int64]]:
    """Rank the neighbours of queries ``[begin, end)``. Also return each query's number of junk items among its
    neighbours, and its number of junk items in the gallery.
    """
    # `place` maps an item to its index after removal of the items that are junk to every query; -1 stands for a removed
    # item.
    given = np.count_nonzero(items >= 0, axis=1)
    if measured is not None and bool(np.any((measured[:, 1:] == measured[:, :-1]) & (items[:, 1:] < items[:, :-1]))):
        last = np.where(items >= 0, items, np.iinfo(np.int64).max)
        order = np.lexsort((last, measured), axis=1)
        items, measured = np.take_along_axis(items, order, axis=1), np.take_along_axis(measured, order, axis=1)
    if place is not None:
        items = np.where(items >= 0, place[items], -1)
    starts, relevant, junk_starts, junk = gallery.lists(begin, end)
    keep = (items >= 0) & ~_marked(items, junk_starts, junk, gallery.items)
    ranks: NDArray[np.int64] = np.cumsum(keep, axis=1, dtype=np.int64)
    hit = _marked(items, starts, relevant, gallery.items) & keep
    ahead = tied = np.empty(0, np.int64)
    if measured is not None:
        rows, value, found = np.nonzero(keep)[0], measured[keep], hit[keep]
        new = np.append(True, (rows[1:] != rows[:-1]) | (value[1:] != value[:-1]))[: rows.size]
        group = np.cumsum(new) - 1
        ahead = (ranks[keep][new] - 1)[group][found]
        tied = np.bincount(group)[group][found]
    bounds = np.concatenate(([0], np.cumsum(hit.sum(axis=1, dtype=np.int64))))
    hits = Hits(bounds, ranks[hit], np.diff(starts), ranks[:, -1], ahead=ahead, tied=tied)
    return Ranked(hits, convention), given - np.count_nonzero(keep, axis=1), np.diff(junk_starts)


def _short(block: Ranked, requests: Sequence[Request], available: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask, shape (q,), of the queries that have fewer neighbours than a metric needs, although the gallery has more
    items. Junk is not counted.
    """
    wanted = np.zeros(len(block.raw), np.int64)
    for request in requests:
        if request.depth is not None and request.metric.at == "rank":
            wanted = np.maximum(wanted, request.cut)
        elif _to_relevant(request, block.convention):
            multiple = 1.0 if request.depth is None else request.depth
            wanted = np.maximum(wanted, np.trunc(multiple * block.raw.positives + 0.9).astype(np.int64))
    some = block.raw.positives > 0
    return some & (block.raw.items < np.minimum(wanted, available))
