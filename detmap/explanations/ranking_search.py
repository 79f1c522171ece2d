"""Find the convention under which rankings have a quoted value, and test whether orders of systems survive other
conventions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError, OptionError
from detmap.explanations.quotes import Search, check_most, quoted_of, searched
from detmap.explanations.ranking_shares import Evaluate, RankingReplay, parse_convention
from detmap.explanations.replay import said
from detmap.explanations.survival import Survival, Trial
from detmap.explanations.tries import Changes, Vocabulary
from detmap.hits import INTERPOLATIONS
from detmap.retrieval.conventions import CONVENTIONS, Convention, convention_of
from detmap.retrieval.scoring import RankingResult

#: Changes that are tried in addition to named conventions: in each row, the values of one decision.
GRID: dict[str, tuple[dict[str, Any], ...]] = {
    name: tuple({name: value} for value in values)
    for name, values in {
        "interpolation": INTERPOLATIONS,
        "normalizer": ("positives", "hits", "smaller"),
        "depth": (None, "positives"),
        "ties": ("index", "reversed", "docid", "collapsed", "expected"),
        "empty": ("skip", "zero", "one"),
        "missing": ("skip", "zero"),
        "order": ("score", "given"),
        "single": (False, True),
        "positive_scores": (False, True),
        "drop_same_id": (False, True),
        "recall_cutoffs": ("ceiling", "nearest"),
        "relative_rbp": (True, False),
        "cmc": ("market", "allshots", "cuhk03", "cuhk03_exact", "sysu"),
    }.items()
}

#: Prior weight of each row of `GRID`, divided evenly among the row's changes; 2 for rows that are not listed.
_USUAL = {"ties": 20.0, "missing": 15.0, "normalizer": 15.0, "depth": 10.0, "order": 8.0, "interpolation": 8.0}

#: Maps a decision to the heading above its changes; by default "other decisions".
_KINDS = {"ties": "orders of equal scores"}

#: Decisions about the lines of a run, which do not apply to arrays.
_RUNS_ONLY = ("missing", "order", "single", "positive_scores", "drop_same_id")


class Variant(NamedTuple):
    """The same systems with other rankings or judgements. `systems` maps a system's name to a function that evaluates the
    system.
    """

    kind: str
    name: str
    systems: Mapping[str, Evaluate]


class _Looked:
    """A metric of one system's rankings under many conventions; NaN under conventions that do not apply."""

    def __init__(self, evaluate: Evaluate, metric: str, run: bool) -> None:
        self.replay, self.run = RankingReplay(evaluate, metric), run
        self._values: dict[Convention, float] = {}
        self.problem: Exception | None = None

    def plain(self, convention: Convention) -> Convention:
        """Return a convention without its names and, for arrays, without the decisions about the lines of a run."""
        if not self.run:
            convention = convention_of(convention, {}, run=False)
        return replace(convention, name="", formula="", users="")

    def number(self, convention: Convention) -> float:
        """Return the metric; NaN if the convention does not apply to the metric or to the rankings."""
        plain = self.plain(convention)
        if plain not in self._values:
            try:
                self._values[plain] = self.replay.value(convention)
            except (OptionError, InputError) as error:
                self.problem = error
                self._values[plain] = math.nan
            self.replay.known.clear()  # keep the number, but free the result with its rankings
        return self._values[plain]

    @property
    def evaluations(self) -> int:
        """Return the number of conventions evaluated."""
        return sum(not math.isnan(value) for value in self._values.values())


class _Numbers(Vocabulary):
    """The values of rankings under named conventions with changes from `GRID`."""

    usual = _USUAL

    def __init__(self, evaluate: Evaluate, metrics: Sequence[str], run: bool) -> None:
        self.grid = {name: changes for name, changes in GRID.items() if run or name not in _RUNS_ONLY}
        self.looked = [_Looked(evaluate, metric, run) for metric in metrics]
        for one in self.looked[1:]:
            one.replay.known = self.looked[0].replay.known  # all metrics share the evaluations

    def value(self, name: str, changes: Changes, number: int) -> float:
        """Return the value of the metric with the index `number` under a convention with changes; NaN if the rules do
        not apply.
        """
        return self.looked[number].number(self.rules(name, changes))

    def plain(self, name: str, changes: Changes) -> Convention:
        """Return the convention without its names."""
        return self.looked[0].plain(self.rules(name, changes))

    def place(self, changes: Changes) -> tuple[()]:
        """Return a constant: rules share no intermediate results, so they can be evaluated in any order."""
        return ()

    def rules(self, name: str, changes: Changes) -> Convention:
        """Return the convention with its changes."""
        decided: dict[str, Any] = {}
        for label, at in changes:
            decided |= self.grid[label][at]
        return replace(CONVENTIONS[name], **decided)

    def words(self, name: str, changes: Changes) -> tuple[str, ...]:
        """Return the changes in words."""
        rule = self.rules(name, changes)
        return tuple(_words(CONVENTIONS[name], rule, self.grid[label][at]) for label, at in changes)

    @property
    def evaluations(self) -> int:
        """Return the number of conventions evaluated."""
        return self.looked[0].evaluations


def find_ranking_value(
    evaluate: Evaluate,
    value: str | float | Mapping[str, str | float],
    metric: str = "mAP",
    *,
    run: bool = False,
    most: int = 10,
) -> Search:
    """Find the conventions under which rankings have a quoted value, or several quoted values at once.

    Parameters
    ----------
    evaluate, metric, run
        As for `explain_rankings`. The result of `evaluate` must have every metric that `value` names.
    value, most
        As for `find_value`. Several numbers are named by metrics, such as ``{"mAP": "0.31", "nDCG@10": "0.42"}``.

    Returns
    -------
    Search

    Raises
    ------
    OptionError
        For an unknown metric, or a value that is no number.
    InputError
        If the metric is undefined under every convention.
    """
    quoted = quoted_of(value, metric)
    check_most(most)
    numbers = _Numbers(evaluate, list(quoted), run)
    names = [
        name
        for name, one in CONVENTIONS.items()
        if not one.together and not any(math.isnan(looked.number(one)) for looked in numbers.looked)
    ]
    problem = next((looked.problem for looked in numbers.looked if looked.problem is not None), None)
    if not names and problem is not None:
        raise problem
    return searched(numbers, names, quoted, most, "conventions")


def rankings_survive(
    systems: Mapping[str, Evaluate],
    convention: str | Convention = "detmap",
    metric: str = "mAP",
    *,
    run: bool = False,
    variants: Sequence[Variant] = (),
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Survival:
    """Test whether the order of systems survives other conventions, orders of equal scores, and draws of queries.

    Parameters
    ----------
    systems : mapping of str to callable
        Two or more systems by name, for the same queries. Each system is given by a function like `evaluate` of
        `explain_rankings`.
    convention : str or Convention
        The rules that define the order.
    metric, run
        As for `explain_rankings`.
    variants : sequence of Variant
        Other rankings or judgements of the same systems, such as rankings of another depth.
    replicates, seed, level
        As for `survives`, with draws of queries instead of images.

    Returns
    -------
    Survival

    Raises
    ------
    OptionError
        For fewer than two systems, an unknown convention or metric, or too few replicates.
    InputError
        If the metric is undefined.
    """
    from detmap.statistics.bootstrap import check_draws

    if len(systems) < 2:
        raise OptionError("whether an order survives needs two systems or more")
    check_draws(replicates, seed, level)
    base = convention_of(parse_convention(convention) if isinstance(convention, str) else convention, {}, run=run)
    results = {name: RankingReplay(evaluate, metric) for name, evaluate in systems.items()}
    looked = {name: _Looked(evaluate, metric, run) for name, evaluate in systems.items()}
    trial = Trial(base, looked, {name: one.value(base) for name, one in results.items()})
    trial.try_ties({name: one.band(base) for name, one in results.items()})
    # rules that change no value do not count as alternatives
    trial.try_rules(_other_rules(base, run), seen={trial.plain(base)}, idle=False)
    for variant in variants:
        try:
            found = {name: RankingReplay(one, metric).value(base) for name, one in variant.systems.items()}
        except InputError:  # no document is relevant
            continue
        trial.add(variant.kind, variant.name, 1, found)
    notes = tuple(_apart({name: one.result(base) for name, one in results.items()}))
    drawn = _draws(results, base, metric, replicates, seed)
    return trial.survival(metric, drawn, replicates, level, "queries", suspects=0, notes=notes)


def _other_rules(base: Convention, run: bool) -> Iterator[tuple[str, str, int, Convention]]:
    """Yield (kind, name, number of changes, convention): first `base` with one decision changed, then named
    conventions.
    """
    for label, changes in GRID.items():
        if run or label not in _RUNS_ONLY:
            for change in changes:
                rule = replace(base, **change)
                yield _KINDS.get(label, "other decisions"), _words(base, rule, change), 1, rule
    for name, rule in CONVENTIONS.items():
        if not rule.together:
            yield "conventions", name, sum(getattr(rule, one) != getattr(base, one) for one in GRID), rule


def _apart(results: Mapping[str, RankingResult]) -> Iterator[str]:
    """Yield a sentence for each pair of systems that were scored on different queries."""
    for first, second in itertools.combinations(results, 2):
        one, other = (set(results[name].query_ids.tolist()) for name in (first, second))
        if one != other:
            yield (
                f"{first} is scored on {len(one):,} queries and {second} on {len(other):,}, of which {len(one & other):,} "
                "are the same: their values are means over different queries (missing zero counts a missing query as 0)."
            )


def _words(base: Convention, rule: Convention, names: Iterable[str]) -> str:
    """Describe the decisions among `names` in which a convention differs from its base."""
    return ", ".join(f"{name} {said(rule, [name])}" for name in names if getattr(rule, name) != getattr(base, name))


def _draws(
    results: Mapping[str, RankingReplay], base: Convention, metric: str, replicates: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Return each system's mean metric in every bootstrap sample of the queries. All systems have the same samples.
    Return {} if the metric has no values per query.
    """
    from detmap.data.ids import locate

    made = {name: one.result(base) for name, one in results.items()}
    known = metric if all(metric in one.per_query for one in made.values()) else "AP"
    if any(known not in one.per_query for one in made.values()) or (
        known != metric and metric.lower() not in ("map", "ap")
    ):
        return {}
    queries = np.unique(np.concatenate([one.query_ids for one in made.values()]))
    weights = np.random.default_rng(seed).multinomial(queries.size, np.full(queries.size, 1 / queries.size), replicates)
    drawn = {}
    for name, one in made.items():
        values = np.full(queries.size, np.nan)
        values[locate(one.query_ids, queries)] = one.per_query[known]
        there = ~np.isnan(values)
        count = weights[:, there].sum(axis=1)
        drawn[name] = weights[:, there] @ values[there] / np.maximum(count, 1)
    return drawn
