"""Why two conventions give different numbers for the same rankings: each decision's share of the difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from detmap.choices import whole
from detmap.decisions import YES_OR_NO, decisions_of, differing
from detmap.errors import InputError, OptionError, shorten
from detmap.explanations.shares import EXACT, Share, Step, check_orders, markup, sampled, shapley, told
from detmap.retrieval.conventions import CONVENTIONS, Convention, convention_of
from detmap.retrieval.runs import evaluate_run, read_tables
from detmap.retrieval.scoring import RankingResult

#: Gives the result under a convention.
Evaluate = Callable[[Convention], RankingResult]

_DECLARED = decisions_of(Convention)

#: The order in which decisions are read: what is ranked, its curve, the mean.
_ORDER = ("ranking", "curve", "mean")

#: How many queries are named for each decision.
_NAMED = 5


def parse_convention(text: str) -> Convention:
    """Return a convention from its name and changes, as ``trec`` or ``trec+ties=index+empty=skip``."""
    name, *changes = text.split("+")
    found = CONVENTIONS.find(name.strip())
    given: dict[str, Any] = {}
    for change in changes:
        key, equals, value = (part.strip() for part in change.partition("="))
        made = _DECLARED.get(key)
        if made is None or not equals or not made.affects:
            known = ", ".join(one for one, declared in _DECLARED.items() if declared.affects)
            raise OptionError(f"{shorten(change)} is no decision=value; decisions: {known}")
        given[key] = _read(key, value)
    return replace(found, name=text, **given) if given else found


def _read(key: str, text: str) -> Any:
    """Return the value of a decision that a text says."""
    if _DECLARED[key].allowed is YES_OR_NO:
        if text not in ("yes", "no"):
            raise OptionError(f"{key} must be yes or no, not {shorten(text)}")
        return text == "yes"
    if text == "none":
        return None
    try:
        return whole(text) if key == "digits" else text
    except ValueError:
        raise OptionError(f"{key} must be an integer or none, not {shorten(text)}") from None


@dataclass(frozen=True, kw_only=True)
class RankingExplanation:
    """Why a metric has two values under two conventions.

    Attributes
    ----------
    metric : str
        What was measured.
    source, target : Convention
        The two conventions.
    source_value, target_value : float
        The metric under each.
    source_band, target_band : tuple of float
        The least and the largest value over the orders of equal scores; both are the value where no band is defined.
    shares : list of Share
        The largest first. Their exact values sum to the exact difference of the two floats.
    chain : list of Step
        The way from the source's value to the target's, in reading order; its `classes` are the queries that moved most,
        `changed` is how many did, and there are no `examples`.
    error : float
        The largest standard error of a share; 0 where all orders were weighed.
    evaluations : int
        How many different conventions were evaluated.
    notices : mapping of str to int
        What was unusual in the input, counted.
    """

    metric: str
    source: Convention
    target: Convention
    source_value: float
    target_value: float
    source_band: tuple[float, float]
    target_band: tuple[float, float]
    shares: list[Share]
    chain: list[Step]
    error: float
    evaluations: int
    notices: Mapping[str, int] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """Return what the shares say, the largest first."""
        return told(self)

    def _repr_html_(self) -> str:
        return markup(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; exact shares as fractions."""
        return {
            "metric": self.metric,
            **{
                side: {"convention": one.name, "decides": one.describe(), "value": value, "tie_band": list(band)}
                for side, one, value, band in (
                    ("source", self.source, self.source_value, self.source_band),
                    ("target", self.target, self.target_value, self.target_band),
                )
            },
            "difference": self.target_value - self.source_value,
            "shares": [{**vars(one), "decisions": list(one.decisions), "exact": str(one.exact)} for one in self.shares],
            "chain": [
                {
                    "decision": step.decision,
                    "value": step.value,
                    "change": step.change,
                    "queries": [{"query": name, "change": change} for name, change in step.classes],
                    "changed_queries": step.changed,
                }
                for step in self.chain
            ],
            "error": self.error,
            "evaluations": self.evaluations,
            "sentences": self.sentences(),
            "notices": dict(self.notices),
        }


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
    """Say why a metric of a run has different values under two conventions.

    Parameters
    ----------
    qrels, run
        As for `detmap.retrieval.evaluate_run`, but for open files: they are read more than once.
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
        For files that cannot be read, or in which there is nothing to find.
    """
    tables = read_tables(qrels, run)
    given: dict[str, Any] = {"level": level, "depth": depth, "judged_only": judged_only}

    def evaluate(convention: Convention) -> RankingResult:
        return evaluate_run(*tables, [metric], convention, **given)

    first = source if isinstance(source, Convention) else parse_convention(source)
    evaluate_run(qrels, run, [metric], first, **given)  # an error names the file
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
    """Say why a metric of some rankings has different values under two conventions.

    Parameters
    ----------
    evaluate : callable
        Takes a `detmap.retrieval.Convention` and returns the result with the metric, as ``lambda convention:
        evaluate_distances(distances, query_ids, gallery_ids, metrics=["mAP"], convention=convention)``.
    source, target : str or Convention
        Names of `detmap.retrieval.CONVENTIONS`, with changes as in ``"trec+ties=index"``, or conventions.
    metric : str
        A metric of the result.
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
        Where the metric is undefined.
    """
    check_orders(orders)
    named = [one if isinstance(one, Convention) else parse_convention(one) for one in (source, target)]
    both = [convention_of(one, {}, run=run) for one in named]
    replay = RankingReplay(evaluate, metric)
    differ = _players(*both)

    def changed(which: Sequence[int]) -> Convention:
        names = [name for at in which for name in differ[at][1]]
        return replace(both[0], **{name: getattr(both[1], name) for name in names})

    def value(which: frozenset[int]) -> Fraction:
        return Fraction(replay.value(changed(sorted(which))))

    ends = [replay.value(one) for one in both]
    if len(differ) <= EXACT:
        exact, errors = shapley(len(differ), value), [0.0] * len(differ)
    else:
        exact, errors = sampled(len(differ), value, orders, seed)
    shares = [
        Share(
            decision=label,
            decisions=names,
            before=said(both[0], names),
            after=said(both[1], names),
            value=float(exact[at]),
            exact=exact[at],
            error=errors[at],
        )
        for at, (label, names) in enumerate(differ)
    ]
    steps = [(label, changed(range(at + 1))) for at, (label, _) in enumerate(differ)]
    return RankingExplanation(
        metric=metric,
        source=both[0],
        target=both[1],
        source_value=ends[0],
        target_value=ends[1],
        source_band=replay.band(both[0]),
        target_band=replay.band(both[1]),
        shares=sorted(shares, key=lambda one: -abs(one.exact)),
        chain=_chain(replay, both[0], steps),
        error=max(errors, default=0.0),
        evaluations=len(replay.known),
        notices=replay.result(both[0]).notices,
    )


class RankingReplay:
    """The same rankings under many conventions, each evaluated once."""

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
        """Return the band of equal scores, where there is one for the metric."""
        value = self.value(convention)
        if self.metric.lower() not in ("map", "ap"):
            return value, value
        try:
            low, high = self.result(convention).tie_band
        except OptionError:  # not for this rule of AP, or for so many hits
            return value, value
        return min(low, value), max(high, value)


def _players(source: Convention, target: Convention) -> list[tuple[str, tuple[str, ...]]]:
    """Return what two conventions decide differently: a label, and the decisions that make sense together only.

    Ties as one point, or in all orders at once, are defined for some curves only: then both are changed together.
    """
    names = differing(source, target)
    shared = {source.ties, target.ties} & {"collapsed", "expected"}
    curves = {source.interpolation, target.interpolation}
    groups: dict[str, list[str]] = {}
    for name in names:
        together = shared and not curves <= {"step", "trapezoid"} and name in ("ties", "interpolation")
        groups.setdefault("ties and curve" if together else name, []).append(name)

    def place(item: tuple[str, list[str]]) -> int:
        return min(_ORDER.index(one) for name in item[1] for one in _DECLARED[name].affects if one in _ORDER)

    return [(label, tuple(made)) for label, made in sorted(groups.items(), key=place)]


def said(convention: Convention, names: Sequence[str]) -> str:
    """Return in words what a convention decides in some decisions."""
    told = []
    for name in names:
        value = getattr(convention, name)
        word = ("no", "yes")[value] if isinstance(value, bool) else str("none" if value is None else value)
        told.append(word if len(names) == 1 else f"{name} {word}")
    return ", ".join(told)


def _chain(replay: RankingReplay, first: Convention, steps: Sequence[tuple[str, Convention]]) -> list[Step]:
    """Return what each change of a decision does, one after the other."""
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
    """Return the queries whose values differ, and by how much; what is left out of a mean counts as 0."""
    try:
        sides = [one.per_query[metric] for one in (before, after)]
    except KeyError:  # a mean over the whole, without a value per query
        return []
    values = [
        dict(zip(map(str, one.query_ids.tolist()), np.nan_to_num(side).tolist(), strict=True))
        for one, side in zip((before, after), sides, strict=True)
    ]
    change = {name: values[1].get(name, 0.0) - values[0].get(name, 0.0) for name in {**values[0], **values[1]}}
    return [(name, by) for name, by in change.items() if by]
