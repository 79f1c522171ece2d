"""Whether one model stays above another under other conventions, maximum numbers of detections, thresholds, orders of
equal scores, images and labels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import Detections, GroundTruth
from detmap.decisions import differing, written
from detmap.detection.evaluate import match
from detmap.detection.protocols import PRESETS, AnyProtocol, Protocol
from detmap.detection.scored_kinds import readable
from detmap.errors import InputError, OptionError
from detmap.explanations.replay import Question, Replay, Rules, decided, players, trimmed
from detmap.explanations.search import GRID, changed_to
from detmap.kernels import readonly
from detmap.results import fragment
from detmap.shapes import IouType, find
from detmap.shapes.kinds import BOXES

#: Kind of situation for each row of `GRID`; "other decisions" for rows that are not listed.
_KINDS = {
    "min_score": "score cuts",
    "max_dets": "caps",
    "max_per_image": "caps",
    "iou_thresholds": "IoU thresholds",
    "ties": "orders of equal scores",
}

#: Display order of the kinds.
KINDS = ("conventions", *dict.fromkeys(_KINDS.values()), "relevance levels", "other decisions", "labels")

#: Rows of `GRID` that only apply to boxes, and rows that are not tried. ``box_offset`` is not tried, because an offset is
#: a mistake in a file, not a rule for comparing models.
_OF_BOXES, _MISTAKES = ("pixels", "box_decimals", "numbers"), ("box_offset",)

#: Maximum number of suspicious labels left out for each model: one per `_OBJECTS_PER_SUSPECT` objects, but at least
#: `_FEWEST_SUSPECTS`.
_OBJECTS_PER_SUSPECT, _FEWEST_SUSPECTS = 100, 10


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Alternative rules or labels under which the models were scored again.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    name : str
        The change, such as ``"min_score 0.25"``.
    changes : int
        Number of changed decisions; a group of decisions counts as one, another order of equal scores counts as none.
    lowest, highest : dict of str to float
        The minimum and maximum value of each model; they differ only in the situation "any order of equal scores".
    """

    kind: str
    name: str
    changes: int
    lowest: dict[str, float]
    highest: dict[str, float]

    def above(self, first: str, second: str) -> bool:
        """Return whether the first model is above the second in every order of equal scores."""
        return self.lowest[first] > self.highest[second]

    def shown(self, model: str) -> str:
        """Return a model's value, or the range of its values, as text."""
        low, high = f"{self.lowest[model]:.4f}", f"{self.highest[model]:.4f}"
        return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The claim that one model is above another, and whether it survives.

    Attributes
    ----------
    first, second : str
        The names of the model with the larger value, and of the other model.
    difference : float
        Value of `first` minus value of `second`.
    tried, held : int
        Number of situations tried, and number of situations in which `first` is above `second`.
    against : list of Situation
        The situations in which `first` is not above `second`, sorted by number of changes, then by change of the
        values.
    draws, against_draws : float
        The shares of draws in which `first` is above `second`, and `second` above `first`; NaN without draws.
    survives : bool
        Whether `first` is above `second` in all situations, and in at least the share `level` of the draws.
    """

    first: str
    second: str
    difference: float
    tried: int
    held: int
    against: list[Situation]
    draws: float
    against_draws: float
    survives: bool

    @property
    def smallest(self) -> Situation | None:
        """The situation in `against` with the fewest changes; None if `against` is empty."""
        return self.against[0] if self.against else None


@dataclass(frozen=True, kw_only=True)
class Survival:
    """Which orders of models survive other rules, images and labels.

    Attributes
    ----------
    metric : str
        The name of the metric.
    protocol : Protocol or Convention
        The rules of the comparison, reduced to the decisions that the metric needs.
    values : dict of str to float
        The value of each model, the best first.
    situations : list of Situation
        All situations that were tried.
    claims : list of Claim
        A claim for every pair of models.
    replicates : int
        Number of draws of images, or queries; 0 for rankings whose metric has no values per query.
    level : float
        Minimum share of the draws in which an order must hold.
    suspects : int
        Maximum number of labels left out for each model.
    units : str
        The unit of the draws: "images", "clusters" or, for rankings, "queries".
    notes : tuple of str
        Further sentences, such as on systems that were scored on different queries.
    """

    metric: str
    protocol: Any
    values: dict[str, float]
    situations: list[Situation]
    claims: list[Claim]
    replicates: int
    level: float
    suspects: int
    units: str = "images"
    notes: tuple[str, ...] = ()

    def table(self, claim: Claim) -> list[dict[str, Any]]:
        """Return how often each of the two models has the higher value: a row for each kind of situation, and a row for
        the bootstrap draws.
        """
        rows = []
        for kind in KINDS:
            here = [one for one in self.situations if one.kind == kind]
            if here:
                first = sum(one.above(claim.first, claim.second) for one in here)
                second = sum(one.above(claim.second, claim.first) for one in here)
                rows.append(_row(kind, claim, len(here), first, second, len(here) - first - second))
        if self.replicates:
            first, second = (round(share * self.replicates) for share in (claim.draws, claim.against_draws))
            rest = self.replicates - first - second
            rows.append(_row(f"draws of {self.units}", claim, self.replicates, first, second, rest))
        return rows

    def sentences(self) -> list[str]:
        """Return a sentence on each pair of models that says whether their order survives."""
        told = [self._sentence(claim) for claim in self.claims]
        if self.replicates:
            told.append(
                f"An order survives the draws of {self.units} where it holds in {self.level:.0%} of them or more."
            )
        if any(one.kind == "labels" for one in self.situations):
            told.append(
                f"Labels: up to {self.suspects} that each model makes suspicious count neither for nor against any model."
            )
        return [*told, *self.notes]

    def _sentence(self, claim: Claim) -> str:
        first, second = claim.first, claim.second
        values = f"{self.values[first]:.4f} against {self.values[second]:.4f}"
        if not claim.difference:
            return f"{first} and {second} have the same {self.metric}, {self.values[first]:.4f}: there is no order."
        drawn = f" and in {claim.draws:.1%} of {self.replicates:,} draws of {self.units}" if self.replicates else ""
        word = "survives" if claim.survives else "does not survive"
        said = (
            f"That {first} is above {second} ({values}) {word}: it holds under {claim.held} of {claim.tried} other "
            f"rules{drawn}"
        )
        if claim.smallest is None:
            return said + "; no change that was tried turns it round."
        now = f"{claim.smallest.shown(first)} against {claim.smallest.shown(second)}"
        return said + f"; the smallest change that ends it is {claim.smallest.name} ({now})."

    def _repr_html_(self) -> str:
        tables = {f"{one.first} above {one.second}": self.table(one) for one in self.claims}
        return fragment(f"Which orders by {self.metric} survive", tables, self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "metric": self.metric,
            "protocol": _decided(self.protocol),
            "models": self.values,
            "replicates": self.replicates,
            "level": self.level,
            "suspects": self.suspects,
            "claims": [
                {
                    **{name: value for name, value in vars(claim).items() if name != "against"},
                    "smallest_change": claim.smallest.name if claim.smallest else None,
                    "against": [one.name for one in claim.against],
                    "where": self.table(claim),
                }
                for claim in self.claims
            ],
            "situations": [dict(vars(one)) for one in self.situations],
            "sentences": self.sentences(),
        }


def _decided(rules: Any) -> dict[str, Any]:
    """Return every decision of a protocol or convention as plain values."""
    return rules.to_dict() if isinstance(rules, Protocol) else written(rules)


def _row(kind: str, claim: Claim, tried: int, first: int, second: int, neither: int) -> dict[str, Any]:
    names = (claim.first, claim.second)
    above = {f"{name} above": count for name, count in zip(names, (first, second), strict=True)}
    return {"under": kind, "tried": tried, **above, "neither": neither}


def survives(
    ground_truth: GroundTruth,
    models: Mapping[str, Detections],
    protocol: AnyProtocol = "coco",
    *,
    metric: str = "AP",
    iou_type: IouType | None = None,
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    threads: int | None = None,
) -> Survival:
    """Test whether the order of models survives other rules.

    The models are scored again in these situations:

    * under every named protocol that applies;
    * with one decision changed, as in the grid of `find_value` (score thresholds, caps, IoU thresholds, curves, crowds, …);
    * with the best and the worst order of equal scores for each model;
    * on resampled images, which are the same for all models;
    * without the most suspicious labels, see `detmap.diagnostics.suspects`.

    Parameters
    ----------
    ground_truth : GroundTruth
        The objects.
    models : mapping of str to Detections
        The detections of two or more models, by name.
    protocol : str or Protocol
        The rules that define the order, as for `detmap.explain`.
    metric : str
        As for `detmap.explain`.
    iou_type : str, optional
        The kind of geometry that is matched, as for `detmap.evaluate`.
    replicates : int
        Number of bootstrap draws of images; at least 200.
    seed : int
        Seed of the draws.
    level : float
        Minimum share of the draws in which an order must hold.
    threads : int, optional
        One per processor by default. The number does not affect the result.

    Returns
    -------
    Survival

    Raises
    ------
    OptionError
        For fewer than two models, an unknown protocol or metric, or too few replicates.
    InputError
        If there are no positives.
    """
    from detmap.statistics.bootstrap import check_draws

    if len(models) < 2:
        raise OptionError("whether an order survives needs two models or more")
    check_draws(replicates, seed, level)
    named = decided(protocol, iou_type, ground_truth, *models.values())
    base = trimmed(named, metric)
    replays = {name: Replay(ground_truth, found, metric, threads) for name, found in models.items()}
    trial = _Trial(base, replays, {name: one.value(base).value for name, one in replays.items()})
    trial.try_ties({name: one.band(base) for name, one in replays.items()})
    trial.try_rules(changed_decisions(base), seen={trial.plain(base)})
    trial.try_rules(other_conventions(base, metric, ground_truth))
    suspects = max(len(ground_truth) // _OBJECTS_PER_SUSPECT, _FEWEST_SUSPECTS)
    trial.try_labels(suspects)
    trial.situations.sort(key=lambda one: KINDS.index(one.kind))
    units = f"{find(base.iou_type).scene}s" if ground_truth.images.clusters is None else "clusters"
    return trial.survival(metric, trial.draws(replicates, seed), replicates, level, units, suspects=suspects)


def claims_of(
    values: Mapping[str, float],
    situations: Sequence[Situation],
    drawn: Mapping[str, NDArray[np.float64]],
    level: float,
) -> list[Claim]:
    """Return a claim for each pair of models. `values` are sorted, the best model first; `drawn` may be empty."""
    claims = []
    for first, second in itertools.combinations(values, 2):
        against = [one for one in situations if not one.above(first, second)]
        against.sort(key=lambda one: (one.changes, _moved(one, values, (first, second))))
        share, other = (
            float(np.mean(drawn[one] > drawn[two])) if drawn else math.nan
            for one, two in ((first, second), (second, first))
        )
        claims.append(
            Claim(
                first=first,
                second=second,
                difference=values[first] - values[second],
                tried=len(situations),
                held=len(situations) - len(against),
                against=against,
                draws=share,
                against_draws=other,
                survives=not against and not share < level and values[first] > values[second],
            )
        )
    return claims


def _moved(situation: Situation, values: Mapping[str, float], names: tuple[str, str]) -> float:
    """Return the total change of the values of two models in a situation."""
    return sum(
        max(abs(situation.lowest[name] - values[name]), abs(situation.highest[name] - values[name])) for name in names
    )


def changed_decisions(base: Protocol) -> Iterator[tuple[str, str, int, Protocol]]:
    """Yield (kind, name, number of changes, protocol) for each protocol with one decision changed as in `GRID`."""
    for label, changes in GRID.items():
        if label in _MISTAKES or (label in _OF_BOXES and base.iou_type != BOXES):
            continue
        if label == "iou_thresholds" and len(base.iou_thresholds) == 1:
            continue  # the threshold of a metric such as AP50 is not changed
        for change in changes:
            protocol = replace(base, **change)
            yield _KINDS.get(label, "other decisions"), changed_to(base, protocol, change), 1, protocol


def other_conventions(
    base: Protocol, metric: str, ground_truth: GroundTruth
) -> Iterator[tuple[str, str, int, Protocol]]:
    """Yield the named protocols that match boxes and have the metric, as tuples like those of `changed_decisions`."""
    for name, one in readable(PRESETS, ground_truth).items() if base.iou_type == BOXES else ():
        try:
            protocol = trimmed(one, metric)
        except OptionError:
            continue
        if protocol.iou_type == BOXES and differing(protocol, base):
            yield "conventions", name, len(players(base, protocol)), protocol


class Trial(Generic[Rules]):
    """Scores models under other rules than `base`. `values` has the value of each model under `base`, the best first."""

    def __init__(self, base: Rules, questions: Mapping[str, Question[Rules]], values: Mapping[str, float]) -> None:
        self.base, self.questions = base, questions
        self.values = dict(sorted(values.items(), key=lambda item: (-item[1], item[0])))
        self.situations: list[Situation] = []

    def add(
        self, kind: str, name: str, changes: int, lowest: dict[str, float], highest: dict[str, float] | None = None
    ) -> None:
        """Add a situation, unless a model's value is undefined in the situation."""
        if not any(map(math.isnan, lowest.values())):
            made = Situation(kind=kind, name=name, changes=changes, lowest=lowest, highest=highest or lowest)
            self.situations.append(made)

    def try_ties(self, bands: Mapping[str, tuple[float, float]]) -> None:
        """Add the situation "any order of equal scores", if the order changes any value."""
        if any(low < high for low, high in bands.values()):
            ends = ({name: band[at] for name, band in bands.items()} for at in (0, 1))
            self.add(_KINDS["ties"], "any order of equal scores", 0, *ends)

    def plain(self, rules: Rules) -> tuple[Hashable, ...]:
        """Return a key that is equal for rules known to be equivalent for all models."""
        return tuple(one.plain(rules) for one in self.questions.values())

    def try_rules(
        self, rules: Iterable[tuple[str, str, int, Rules]], seen: set[Any] | None = None, idle: bool = True
    ) -> None:
        """Score the models under several rules, each given as a tuple (kind, name, number of changes, rules). Rules
        whose key is in `seen` are skipped. If `idle` is false, rules that change no value are skipped, too.
        """
        for kind, name, changes, one in rules:
            if seen is not None:
                made = self.plain(one)
                if made in seen:
                    continue
                seen.add(made)
            found = {model: question.number(one) for model, question in self.questions.items()}
            if idle or found != self.values:
                self.add(kind, name, changes, found)

    def survival(
        self,
        metric: str,
        drawn: Mapping[str, NDArray[np.float64]],
        replicates: int,
        level: float,
        units: str,
        **more: Any,
    ) -> Survival:
        """Return the result of the trial. `drawn` has the bootstrap values of each model, and may be empty."""
        return Survival(
            metric=metric,
            protocol=self.base,
            values=self.values,
            situations=self.situations,
            claims=claims_of(self.values, self.situations, drawn, level),
            replicates=replicates if drawn else 0,
            level=level,
            units=units,
            **more,
        )


class _Trial(Trial[Protocol]):
    """A trial of models that are given as tables of detections."""

    questions: Mapping[str, Replay]

    def try_labels(self, most: int) -> None:
        """Score the models again without the labels that `detmap.diagnostics.suspects` lists, at most `most` labels for
        each model.
        """
        from detmap.diagnostics import diagnose
        from detmap.diagnostics._pairs import BACKGROUND

        base = self.base
        iou = 0.5 if base.find_threshold(0.5) is not None else base.iou_thresholds[0]
        if iou <= BACKGROUND:  # suspects are only defined at higher thresholds
            return
        truth = next(iter(self.questions.values())).ground_truth
        found, rows = np.zeros(len(truth), np.bool_), {}
        for name, one in self.questions.items():
            diagnosis = diagnose(truth, one.detections, base, iou=iou, iou_type=base.iou_type, threads=one.threads)
            rows[name] = diagnosis.suspects(most=most).rows()
            scored = diagnosis.places >= 0
            found[scored] |= diagnosis.found[diagnosis.places[scored]] >= 0
        suspect = np.zeros(len(truth), np.bool_)
        values: dict[str, float] = {}
        kept = {name: np.ones(len(one.detections), np.bool_) for name, one in self.questions.items()}
        for name, made in rows.items():
            for row in made:
                at, twin, detection = row["object"], row["other object"], row["detection"]
                if at >= 0 and twin < 0 and found[at]:
                    continue  # a model detects the object in its labelled class
                if at >= 0:
                    suspect[max(at, twin)] = True  # flag the second of two labels that may belong to one object
                if detection >= 0:
                    kept[name][detection] = False
        if not suspect.any() and all(map(np.all, kept.values())):
            return
        objects, protocol = _ignoring(truth, suspect, base)
        for name, one in self.questions.items():
            detections = one.detections.take(np.flatnonzero(kept[name]))
            try:
                values[name] = Replay(objects, detections, one.metric, one.threads).value(protocol).value
            except InputError:  # every object is suspicious
                return
        self.add("labels", "label suspects left out", 1, values)

    def draws(self, replicates: int, seed: int) -> dict[str, NDArray[np.float64]]:
        """Return the values of each model on drawn images; the draws are the same for all models."""
        from detmap.statistics import bootstrap

        made = {}
        for name, one in self.questions.items():
            tally = match(one.ground_truth, one.detections, self.base, iou_type=self.base.iou_type, threads=one.threads)
            drawn = bootstrap(tally, replicates, seed, threads=one.threads)
            made[name] = drawn.replicates[:, drawn.columns["AP"]]
        return made


def _ignoring(truth: GroundTruth, suspect: NDArray[np.bool_], base: Protocol) -> tuple[GroundTruth, Protocol]:
    """Return the ground truth and the protocol, changed so that objects flagged by `suspect` are ignored, too."""
    ignored = truth.difficult & ("difficult" in base.ignore)
    objects = replace(truth, difficult=readonly(ignored | suspect, np.bool_))
    if "difficult" in base.left_out:
        objects = objects.take(np.flatnonzero(~truth.difficult))
    left_out = tuple(flag for flag in base.left_out if flag != "difficult")
    ignore = tuple(dict.fromkeys((*base.ignore, "difficult")))
    return objects, replace(base, ignore=ignore, left_out=left_out)
