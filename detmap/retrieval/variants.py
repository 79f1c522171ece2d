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
    """Return the mean over queries of the worst variant's value: MTEB's robustness@10, from InstructIR (Oh et al., 2024).

    Parameters
    ----------
    result : RankingResult
        The result over all variants; each variant is a separate query.
    metric : str
        A metric in `result`.
    group : callable
        ``group(query_id)`` returns a key that all variants of a query share; by default the id up to the first
        underscore.

    Returns
    -------
    float

    Raises
    ------
    OptionError
        If the metric was not evaluated.
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
    """Return p-MRR (FollowIR, Weller et al., 2024): how far documents fall if an instruction makes them irrelevant.

    Parameters
    ----------
    before, after : mapping of mapping
        Scores by query and document, without and with the instruction, under the same query ids. Documents with equal
        scores are ranked by descending id.
    changed : mapping of iterable
        For each query, the documents that are relevant only without the instruction.

    Returns
    -------
    float
        Above 0, up to 1, if the documents fall; negative if they rise. The value is a mean over the documents of a query,
        then over queries; NaN if there are no documents. Documents missing from a run are ranked last.

    Raises
    ------
    InputError
        If a run lacks a query of `changed`.
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
    """Return the relative change of the reciprocal rank, computed as in FollowIR so that the last bit is equal."""
    return (1 / old) / (1 / new) - 1 if old >= new else 1 - (1 / new) / (1 / old)
