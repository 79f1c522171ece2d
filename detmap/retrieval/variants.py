"""Metrics over variants of queries: the worst variant, and the effect of instructions on ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from detmap.errors import InputError, OptionError
from detmap.retrieval.scoring import RankingResult


def _before_underscore(query: Any) -> str:
    return str(query).partition("_")[0]


def robustness(
    result: RankingResult, metric: str = "nDCG@10", group: Callable[[Any], Any] = _before_underscore
) -> float:
    """Return the mean over queries of the worst of their variants: MTEB's robustness@10, of InstructIR (Oh et al., 2024).

    Parameters
    ----------
    result : RankingResult
        The result over all variants, each a query of its own.
    metric : str
        An evaluated metric.
    group : callable
        ``group(query_id)`` returns a key shared by variants; by default the id up to its first underscore.

    Returns
    -------
    float

    Raises
    ------
    OptionError
        For a metric that was not evaluated.
    """
    if metric not in result.per_query:
        raise OptionError(f"{metric} was not evaluated")
    worst: dict[Any, float] = {}
    for query, value in zip(result.query_ids.tolist(), result.per_query[metric].tolist(), strict=True):
        name = group(query)
        worst[name] = min(worst.get(name, value), value)
    return sum(worst.values()) / len(worst) if worst else float("nan")


def p_mrr(
    before: Mapping[Any, Mapping[Any, float]],
    after: Mapping[Any, Mapping[Any, float]],
    changed: Mapping[Any, Iterable[Any]],
) -> float:
    """Return p-MRR: whether documents that an instruction makes irrelevant fall (Weller et al., 2024: FollowIR).

    Parameters
    ----------
    before, after : mapping of mapping
        Scores by query and document, without the instruction and with it, under the same query ids. Documents with equal
        scores are in descending order of their ids.
    changed : mapping of iterable
        By query the documents that are relevant only without the instruction.

    Returns
    -------
    float
        Above 0, up to 1, if documents fall; negative if they rise. Documents missing from a run are ranked last. A mean
        over the documents of a query, then over queries; NaN if there are none.

    Raises
    ------
    InputError
        For a query that one of the runs lacks.
    """
    means = []
    for query, documents in changed.items():
        for run, name in ((before, "before"), (after, "after")):
            if query not in run:
                raise InputError("a query of changed is not there", source=name, value=query)
        places = [_ranks(run[query]) for run in (before, after)]
        moves = [
            _move(*(ranks.get(document, len(ranks) + 1) for ranks in places)) for document in dict.fromkeys(documents)
        ]
        if moves:
            means.append(sum(moves) / len(moves))
    return sum(means) / len(means) if means else float("nan")


def _ranks(scores: Mapping[Any, float]) -> dict[Any, int]:
    order = sorted(((score, document) for document, score in scores.items()), reverse=True)
    return {document: rank for rank, (_, document) in enumerate(order, 1)}


def _move(old: int, new: int) -> float:
    """Return the relative change of a reciprocal rank, with FollowIR's quotients to the last bit."""
    return (1 / old) / (1 / new) - 1 if old >= new else 1 - (1 / new) / (1 / old)
