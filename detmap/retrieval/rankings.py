"""Evaluate rankings given as relevance lists or ranked ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import InputError, OptionError
from detmap.retrieval.conventions import Choices, Convention, Normalizer, convention_of
from detmap.retrieval.metrics import able, parse_all
from detmap.retrieval.pools import Pool
from detmap.retrieval.ranked import Ranked, Request, stored_level
from detmap.retrieval.scoring import RankingResult, check_level, flat, graded, int64, score, stored, table

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Maximum number of relevant items that were not ranked, over all ideal rankings.
_MOST_UNSEEN = 1 << 24

#: Default metrics.
RANKING_METRICS = ("mAP", "R-prec", "MRR", "P@1", "P@5", "P@10", "nDCG@10")

#: Further default metrics under the conventions of projects that report CMC.
RANKING_CMC = ("CMC@1", "CMC@5", "CMC@10", "CMC@20")


def evaluate_rankings(
    rankings: Iterable[Any],
    positives: ArrayLike | None = None,
    *,
    query_ids: Sequence[Any] | None = None,
    relevant: Sequence[Collection[Any]] | None = None,
    metrics: Sequence[str] | str | None = None,
    convention: str | Convention = "detmap",
    level: float | None = None,
    **choices: Unpack[Choices],
) -> RankingResult:
    """Evaluate rankings that are already in order.

    Parameters
    ----------
    rankings : iterable of array_like, or array_like of shape (q, n)
        For each query, the relevance of the ranked items, best first: booleans, or grades, which may be fractions (0:
        judged not relevant; negative: not judged). With `query_ids` or `relevant`, the ids of the ranked items instead.
    positives : array_like of int, shape (q,), or int, optional
        The number of relevant items of each query, including items that were not ranked. In nDCG's ideal ranking,
        unranked items have the lowest relevant grade. By default the relevant items in the ranking are counted, with a
        notice, because a truncated ranking may lack some. For neighbours from an index use `evaluate_neighbors`, which
        counts relevant items in the gallery.
    query_ids : sequence, shape (q,), optional
        Identities of the queries: an item is relevant if its id equals the query's.
    relevant : sequence of collections, shape (q,), optional
        The relevant ids of each query. If a ranking repeats a relevant id, only the first occurrence is a hit; further
        occurrences occupy ranks as items that are not relevant.
    metrics : sequence of str, optional
        Names from the metric table. By default mAP, R-prec, MRR, P at 1, 5 and 10, and nDCG@10; under conventions of
        projects that report CMC, also CMC.
    level : float, optional
        The lowest grade that counts as relevant; by default every grade above 0 does.
    convention, choices
        See `detmap.retrieval.evaluate_distances`.

    Returns
    -------
    RankingResult
        ``result.curve(q)`` holds precision and recall at every rank of query *q*.
    """
    decided = convention_of(convention, choices)
    if metrics is None:
        metrics = able([*RANKING_METRICS, *(RANKING_CMC if decided.cmc in ("market", "allshots") else ())], decided)
    requests = parse_all(metrics, decided)
    lowest = 1.0 if level is None else check_level(level)
    if level is not None and (query_ids is not None or relevant is not None or lowest <= 0):
        raise OptionError("level is for grades, and must be above 0")
    if query_ids is not None and relevant is not None:
        raise OptionError("give query_ids or relevant, not both")
    if not isinstance(rankings, Iterable):
        raise InputError(f"expected rankings, not {type(rankings).__name__}", source="rankings")
    lists = list(rankings)
    other = query_ids if query_ids is not None else relevant
    name = "relevant" if query_ids is None else "query_ids"
    if other is not None and not hasattr(other, "__len__"):
        raise InputError(f"expected a sequence, not {type(other).__name__}", source=name)
    if other is not None and len(other) != len(lists):
        raise InputError(f"{len(other)} for {len(lists)} rankings", source=name)
    if not lists:
        raise InputError("there are none", source="rankings")
    if other is not None and (query_ids is not None or hasattr(other, "__array__")):
        other = _unpacked(other, name)
    wanted = np.zeros(len(lists), np.int64)
    grades = []
    for q, items in enumerate(lists):
        if query_ids is not None and other is not None:
            listed = flat(items, "rankings")
            grades.append(np.broadcast_to(listed == other[q], listed.shape).astype(np.int64))
        elif other is not None:
            try:
                good = set(_unpacked(other[q], name))
                wanted[q] = len(good)
                values = _unpacked(items, "rankings")
                grades.append(np.array([_credit(good, item) for item in values], dtype=np.int64))
            except TypeError:
                raise InputError("expected ids in lists", source="rankings", record=q) from None
        else:
            grades.append(_grades(items, q))
    counts = np.array([g.size for g in grades])
    every, scale = stored(np.concatenate(grades), "rankings")
    low = 1 if level is None else stored_level(lowest, scale)
    owner = np.repeat(np.arange(len(lists)), counts)
    found = np.bincount(owner[every >= low], minlength=len(lists))
    total = np.maximum(found, wanted) if positives is None else _positives(positives, found)
    starts = np.concatenate(([0], np.cumsum(counts)))
    pool = Pool(starts, np.arange(every.size) - np.repeat(starts[:-1], counts) + 1, every, counts)
    best: tuple[NDArray[np.int64], NDArray[np.int64]] | tuple[None, None] = None, None
    if any(request.metric.graded or request.level is not None for request in requests):
        best = _ideal(every, owner, total - found, low)
    block = Ranked(
        pool.hits(low, total),
        decided,
        pool=pool,
        negatives=np.bincount(owner[(every >= 0) & (every < low)], minlength=len(lists)),
        ideal_starts=best[0],
        ideal=best[1],
        level=low,
        highest=int(every.max(initial=1)) if scale is None else float(scale.max(initial=0)),
        scale=scale,
    )
    result = score([block], np.arange(len(lists)), requests, decided, reason="no ranking has a relevant item")
    if positives is None and relevant is None and any(_divides(request, decided) for request in requests):
        result.add_notices({"counted_positives": len(lists)})
    return result


#: Metrics that do not depend on relevant items outside of the ranking.
_OF_THE_RANKING = (
    "P", "RR", "success", "hits", "CMC", "DCG", "ERR", "RBP", "judged", "unj", "rbp_resid", "fallout",
    "num_q", "num_ret", "num_rel_ret", "num_nonrel_judged_ret",
)  # fmt: skip


def _divides(request: Request, convention: Convention) -> bool:
    """Return whether a metric depends on the total number of relevant items."""
    if request.metric.name == "AP":
        named = [option for option in request.options if option in get_args(Normalizer)]
        return "hits" not in (named or [convention.normalizer])
    return request.metric.name not in _OF_THE_RANKING


def _unpacked(values: Any, source: str) -> Any:
    """Return arrays, tensors, and lists of tensors as lists of Python values; other collections unchanged."""
    # Convert tensors to numbers, because a set treats two tensors of the same value as different members.
    if isinstance(values, list | tuple) and any(hasattr(value, "detach") for value in values):
        return [table(value, source).tolist() for value in values]
    return table(values, source).tolist() if hasattr(values, "__array__") else values


def _credit(good: set[Any], item: Any) -> int:
    if item in good:
        good.remove(item)
        return 1
    return 0


def _grades(items: Any, q: int) -> NDArray[Any]:
    """Return the grades of a ranking as integers, or as floats if a grade has a fraction."""
    row = table(items, "rankings")
    if row.ndim != 1 or (row.size and row.dtype.kind not in "biuf"):
        raise InputError("expected a flat sequence of relevances", source="rankings", record=q)
    if row.dtype.kind == "f" and np.isnan(row).any():
        raise InputError("a grade is NaN", source="rankings", record=q)
    if row.dtype.kind == "f" and not bool(np.all(row == np.trunc(row))) and bool(np.all(np.abs(row) <= 2.0**31)):
        return row.astype(np.float64)
    return graded(row, "rankings")


def _positives(positives: ArrayLike, found: NDArray[np.int64]) -> NDArray[np.int64]:
    given = table(positives, "positives")
    if given.dtype.kind not in "iu" or given.shape not in ((), found.shape):
        raise InputError(f"expected an integer, or {found.size} of them", source="positives")
    total = np.broadcast_to(int64(given, "positives"), found.shape)
    if (total < found).any():
        q = int(np.argmax(total < found))
        raise InputError(f"{total[q]} for a ranking with {found[q]} relevant items", source="positives", record=q)
    return total


def _ideal(
    grades: NDArray[np.int64], owner: NDArray[Any], unseen: NDArray[np.int64], lowest: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of each query's ideal ranking, and its grades: all grades above 0 in descending order. The
    `unseen` items have grade `lowest`.
    """
    good = grades > 0
    if unseen.astype(np.float64).sum() > _MOST_UNSEEN:
        raise InputError(
            f"more than {_MOST_UNSEEN} relevant items that were not ranked",
            source="positives",
            remedy="leave out nDCG and RBP",
        )
    values = np.concatenate((grades[good], np.full(int(unseen.sum()), lowest, np.int64)))
    owners = np.concatenate((owner[good], np.repeat(np.arange(unseen.size), unseen)))
    order = np.lexsort((-values, owners))
    starts = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=unseen.size))))
    return starts, values[order]
