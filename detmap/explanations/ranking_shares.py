"""Why two conventions give different numbers for the same rankings: the share of each decision in the difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from detmap.choices import whole
from detmap.decisions import Decision
from detmap.errors import InputError, OptionError, shorten
from detmap.explanations.replay import grouped, with_changes
from detmap.explanations.shares import Explained, Step, check_orders, weighed
from detmap.retrieval.conventions import CONVENTIONS, Convention, convention_of
from detmap.retrieval.runs import evaluate_run, read_tables
from detmap.retrieval.scoring import RankingResult

#: A function that returns the result of the rankings under a convention.
Evaluate = Callable[[Convention], RankingResult]

#: Maximum number of queries named for each decision.
_NAMED = 5


def parse_convention(text: str) -> Convention:
    """Return a convention from its name and changes, such as ``trec`` or ``trec+ties=index+empty=skip``."""
    name, *changes = text.split("+")
    return with_changes(CONVENTIONS.find(name.strip()), text, changes, _read)


def _read(key: str, _: Decision, text: str) -> Any:
    """Parse the value of the decision `key`."""
    if text == "none":
        return None
    try:
        return whole(text) if key == "digits" else text
    except ValueError:
        raise ValueError(f"must be an integer or none, not {shorten(text)}") from None


@dataclass(frozen=True, kw_only=True)
class RankingExplanation(Explained[Convention]):
    """Why a metric has different values under two conventions.

    Attributes
    ----------
    metric : str
        The name of the metric.
    source, target : Convention
        The two conventions.
    source_value, target_value : float
        The metric under each of the two conventions.
    source_band, target_band : tuple of float
        The minimum and maximum of the metric over all orders of equal scores. If these are undefined, both equal the
        metric's value.
    shares : list of Share
        The share of each decision, the largest first. The exact shares sum to the exact difference of the two values.
    chain : list of Step
        The steps from `source` to `target`, which change one decision after the other. In a step, `classes` holds the
        queries with the largest changes, `changed` is the number of changed queries, and `examples` is empty.
    error : float
        The largest standard error of a share; 0 if all orders were averaged.
    evaluations : int
        Number of different conventions evaluated.
    notices : mapping of str to int
        Counts of unusual features of the input, by code.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; exact shares are text, such as "1/8"."""

        def moved(step: Step) -> dict[str, Any]:
            queries = [{"query": name, "change": change} for name, change in step.classes]
            return {"queries": queries, "changed_queries": step.changed}

        return self._document(lambda rules: {"convention": rules.name, "decides": rules.describe()}, moved)


def explain_run(
    qrels: Any,
    run: Any,
    source: str | Convention,
    target: str | Convention = "trec",
    metric: str = "mAP",
    *,
    level: int = 1,
    depth: int | None = None,
    judged_only: bool = False,
    orders: int = 64,
    seed: int = 0,
) -> RankingExplanation:
    """Explain why a metric of a run has different values under two conventions.

    Parameters
    ----------
    qrels, run
        As for `detmap.retrieval.evaluate_run`, but not as open files, because both are read more than once.
    source, target, metric, orders, seed
        See `explain_rankings`.
    level, depth, judged_only
        See `detmap.retrieval.evaluate_run`.

    Returns
    -------
    RankingExplanation

    Raises
    ------
    OptionError
        For an unknown convention or metric.
    InputError
        For files that cannot be read, or without relevant documents.
    """
    tables = read_tables(qrels, run)
    given: dict[str, Any] = {"level": level, "depth": depth, "judged_only": judged_only}

    def evaluate(convention: Convention) -> RankingResult:
        return evaluate_run(*tables, [metric], convention, **given)

    first = source if isinstance(source, Convention) else parse_convention(source)
    evaluate_run(qrels, run, [metric], first, **given)  # raises errors that name the file
    return explain_rankings(evaluate, first, target, metric, run=True, orders=orders, seed=seed)


def explain_rankings(
    evaluate: Evaluate,
    source: str | Convention,
    target: str | Convention,
    metric: str = "mAP",
    *,
    run: bool = False,
    orders: int = 64,
    seed: int = 0,
) -> RankingExplanation:
    """Explain why a metric of rankings has different values under two conventions.

    Parameters
    ----------
    evaluate : callable
        A function of a `detmap.retrieval.Convention` that returns the result with the metric, such as ``lambda convention:
        evaluate_distances(distances, query_ids, gallery_ids, metrics=["mAP"], convention=convention)``.
    source, target : str or Convention
        Names of `detmap.retrieval.CONVENTIONS`, with changes as in ``"trec+ties=index"``, or conventions.
    metric : str
        The name of a metric of the result.
    run : bool
        Whether `evaluate` takes decisions about the lines of a run, as `detmap.retrieval.evaluate_run` does.
    orders, seed
        As for `detmap.explain`.

    Returns
    -------
    RankingExplanation

    Raises
    ------
    OptionError
        For an unknown convention or metric.
    InputError
        If the metric is undefined.
    """
    check_orders(orders)
    named = [one if isinstance(one, Convention) else parse_convention(one) for one in (source, target)]
    both = convention_of(named[0], {}, run=run), convention_of(named[1], {}, run=run)
    replay = RankingReplay(evaluate, metric)
    ends = [replay.value(one) for one in both]
    shares, error, steps = weighed(both, _players(*both), replay.value, orders, seed)
    return RankingExplanation(
        metric=metric,
        source=both[0],
        target=both[1],
        source_value=ends[0],
        target_value=ends[1],
        source_band=replay.band(both[0]),
        target_band=replay.band(both[1]),
        shares=shares,
        chain=_chain(replay, both[0], steps),
        error=error,
        evaluations=len(replay.known),
        notices=replay.result(both[0]).notices,
    )


class RankingReplay:
    """Evaluates the same rankings under many conventions, each convention once."""

    def __init__(self, evaluate: Evaluate, metric: str) -> None:
        self.evaluate, self.metric = evaluate, metric
        self.known: dict[Convention, RankingResult] = {}

    def result(self, convention: Convention) -> RankingResult:
        """Return the result under a convention."""
        plain = replace(convention, name="", formula="", users="")
        if plain not in self.known:
            self.known[plain] = self.evaluate(convention)
        return self.known[plain]

    def value(self, convention: Convention) -> float:
        """Return the metric under a convention."""
        result = self.result(convention)
        try:
            value = float(result[self.metric])
        except KeyError as error:
            raise OptionError(str(error.args[0])) from None
        if math.isnan(value):
            raise InputError(f"{self.metric} is undefined under {convention.name}", source="rankings")
        return value

    def band(self, convention: Convention) -> tuple[float, float]:
        """Return the metric's minimum and maximum over all orders of equal scores. If these are undefined, both equal
        the metric's value.
        """
        value = self.value(convention)
        if self.metric.lower() not in ("map", "ap"):
            return value, value
        try:
            low, high = self.result(convention).tie_band
        except OptionError:  # the band is undefined for this rule of AP, or there are too many hits
            return value, value
        return min(low, value), max(high, value)


def _players(source: Convention, target: Convention) -> list[tuple[str, tuple[str, ...]]]:
    """Return the decisions in which two conventions differ, as groups (label, decisions)."""
    # Some curves do not define collapsed ties, or expectations over ties. If one of the two curves does not, ties and
    # curve are changed together.
    shared = {source.ties, target.ties} & {"collapsed", "expected"}
    both = shared and not {source.interpolation, target.interpolation} <= {"step", "trapezoid"}
    return grouped(source, target, {"ties": "ties and curve", "interpolation": "ties and curve"} if both else {})


def _chain(replay: RankingReplay, first: Convention, steps: Sequence[tuple[str, Convention]]) -> list[Step]:
    """Return the effect of each step; a step changes one more decision."""
    made, before = [], first
    for label, convention in steps:
        values = [replay.value(one) for one in (before, convention)]
        moved = _moved(replay.result(before), replay.result(convention), replay.metric)
        most = sorted(moved, key=lambda item: -abs(item[1]))[:_NAMED]
        made.append(
            Step(decision=label, value=values[1], change=values[1] - values[0], classes=most, changed=len(moved))
        )
        before = convention
    return made


def _moved(before: RankingResult, after: RankingResult, metric: str) -> list[tuple[str, float]]:
    """Return the queries whose values differ, with the differences; a query without a value counts as 0."""
    try:
        sides = [one.per_query[metric] for one in (before, after)]
    except KeyError:  # the metric has no values per query
        return []
    values = [
        dict(zip(map(str, one.query_ids.tolist()), np.nan_to_num(side).tolist(), strict=True))
        for one, side in zip((before, after), sides, strict=True)
    ]
    change = {name: values[1].get(name, 0.0) - values[0].get(name, 0.0) for name in {**values[0], **values[1]}}
    return [(name, by) for name, by in change.items() if by]
