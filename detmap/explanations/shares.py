"""Why two protocols give different numbers: the share of each decision in the difference, and detections whose outcome
changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic

import numpy as np

from detmap.decisions import decisions_of
from detmap.detection.given import Found, Truth, tables_of
from detmap.detection.protocols import PRESETS, Protocol
from detmap.errors import OptionError
from detmap.explanations.replay import Replay, Rules, Value, is_late, moved_to, pair, parse, players, said
from detmap.kernels.pairs import HIT, IGNORED, MISS
from detmap.results import fragment, signed
from detmap.shapes import IouType
from detmap.shapes.kinds import BOXES

#: Maximum number of decisions whose shares are averaged over all orders of the decisions. For more decisions, orders
#: are sampled.
EXACT = 7

#: Maximum standard error of sampled shares. Minimum number of sampled pairs; a pair is an order and its reverse.
SURE, _PAIRS = 1e-4, 4

#: A sentence on causes of differences that cannot be seen in a file of detections.
BEFORE = (
    "How the detections came about (non-maximum suppression, letterboxing, the model's own score cut) is not in the files, "
    "and not among these decisions."
)

_OUTCOMES = {MISS: "false positive", HIT: "hit", IGNORED: "ignored"}

#: Maximum number of classes, and of detections, named for each decision.
_NAMED = 5

Values = Callable[[frozenset[int]], Fraction]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A detection whose outcome is changed by a decision.

    Attributes
    ----------
    image, category : int or str
        The ids of image and category.
    name : str
        The name of the category.
    box : tuple of float
        The box as in the table: x, y, width and height, or the coordinates of two corners.
    score : float
        The score as in the table.
    iou : float
        The threshold at which the outcome changes.
    overlap : float
        The overlap with the matched object after the change or, if the detection is then unmatched, before the change.
        NaN if the detection is unmatched in both cases.
    before, after : str
        The outcomes: "hit", "false positive", "ignored", or "not scored".
    """

    image: Any
    category: Any
    name: str
    box: tuple[float, ...]
    score: float
    iou: float
    overlap: float
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Share:
    """A decision's share of the difference between two protocols.

    Attributes
    ----------
    decision : str
        The name of the decision, or of a group of decisions that are changed together.
    decisions : tuple of str
        The names of the decisions in the group.
    before, after : str
        The value of the decision under each of the two protocols.
    value : float
        The Shapley value: the effect of changing this decision, averaged over all orders in which the decisions can be
        changed.
    exact : Fraction
        The Shapley value without rounding. The exact shares sum exactly to the difference of the metric.
    error : float
        The standard error of the value if orders were sampled; 0 if all orders were averaged.
    """

    decision: str
    decisions: tuple[str, ...]
    before: str
    after: str
    value: float
    exact: Fraction
    error: float = 0.0

    @property
    def sentence(self) -> str:
        """The share in words."""
        if not self.exact:
            return f"{self.decision} makes no difference here."
        return f"{self.decision}: {signed(self.value)} for {self.after} in place of {self.before}."


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step from one protocol to the other, which changes one more decision.

    Attributes
    ----------
    decision : str
        The decision, or group of decisions, that changes.
    value : float
        The metric after the change.
    change : float
        The change of the metric.
    classes : list of (name, float)
        The classes that the step changed most, with the changes.
    examples : list of Example
        Detections whose outcome the step changed, by descending score.
    changed : int
        Number of all detections with an outcome changed by the step.
    """

    decision: str
    value: float
    change: float
    classes: list[tuple[str, float]] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)
    changed: int = 0


@dataclass(frozen=True, kw_only=True)
class Explained(Generic[Rules]):
    """The base class of `Explanation` and `RankingExplanation`."""

    metric: str
    source: Rules
    target: Rules
    source_value: float
    target_value: float
    source_band: tuple[float, float]
    target_band: tuple[float, float]
    shares: list[Share]
    chain: list[Step]
    error: float
    evaluations: int
    notices: Mapping[str, int] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """A title with the metric, the IoU type, and both values."""
        kind = f" ({self.source.iou_type})" if isinstance(self.source, Protocol) else ""
        ends = ((self.source_value, self.source), (self.target_value, self.target))
        return f"{self.metric}{kind}: {', '.join(f'{value:.4f} under {rules.name}' for value, rules in ends)}"

    def sentences(self) -> list[str]:
        """Return sentences on the two values and on each share, the largest first, and the `remarks`."""
        gap = self.target_value - self.source_value
        first = (
            f"{self.metric} is {self.source_value:.4f} under {self.source.name} and {self.target_value:.4f} under "
            f"{self.target.name}: {signed(gap) if gap else 'no difference'}."
        )
        return [first, *(share.sentence for share in self.shares if share.exact), *self.remarks()]

    def remarks(self) -> list[str]:
        """Return sentences on everything but the two values and the shares."""
        idle = [share.decision for share in self.shares if not share.exact]
        more = [f"No difference here: {', '.join(idle)}."] if idle else []
        if not self.shares:
            more.append("The two have the same rules.")
        bands = (self.source.name, self.source_band), (self.target.name, self.target_band)
        for name, band in dict.fromkeys(bands):
            low, high = (f"{end:.4f}" for end in band)
            if low != high:
                more.append(f"Other orders of equal scores give {low} to {high} under {name}.")
        if self.error:
            more.append(f"Orders were drawn: standard errors are up to {self.error:.2g}.")
        return more

    def _document(
        self, decided: Callable[[Rules], dict[str, Any]], step: Callable[[Step], dict[str, Any]], **counts: int
    ) -> dict[str, Any]:
        """Return everything as plain values; `decided` converts a protocol or convention, and `step` converts a step."""
        ends = {
            "source": (self.source, self.source_value, self.source_band),
            "target": (self.target, self.target_value, self.target_band),
        }
        return {
            "metric": self.metric,
            **{
                side: {**decided(rules), "value": value, "tie_band": list(band)}
                for side, (rules, value, band) in ends.items()
            },
            "difference": self.target_value - self.source_value,
            "shares": [{**vars(one), "decisions": list(one.decisions), "exact": str(one.exact)} for one in self.shares],
            "chain": [
                {"decision": one.decision, "value": one.value, "change": one.change, **step(one)} for one in self.chain
            ],
            "error": self.error,
            "evaluations": self.evaluations,
            **counts,
            "sentences": self.sentences(),
            "notices": dict(self.notices),
        }

    def _repr_html_(self) -> str:
        ends = (self.source.name, self.target.name) if self.source.name != self.target.name else ("from", "to")
        rows = [
            {"rule": share.decision, ends[0]: share.before, ends[1]: share.after, "share": signed(share.value)}
            for share in self.shares
            if share.exact
        ]
        return fragment(self.heading, {"": rows}, self.sentences())


@dataclass(frozen=True, kw_only=True)
class Explanation(Explained[Protocol]):
    """Why a metric has different values under two protocols.

    Attributes
    ----------
    metric : str
        The name of the metric.
    source, target : Protocol
        The two protocols, reduced to the decisions that the metric needs.
    source_value, target_value : float
        The metric under each of the two protocols.
    source_band, target_band : tuple of float
        The minimum and maximum of the metric over all orders of equal scores in a class. A program with an unstable sort
        gives a value between the two.
    shares : list of Share
        The share of each decision, the largest first. The exact shares sum to the exact difference of the two values.
    chain : list of Step
        The steps from `source` to `target`, which change one decision after the other.
    error : float
        The largest standard error of a share; 0 if all orders were averaged.
    evaluations, matchings : int
        Number of different protocols evaluated, and number of matchings.
    notices : mapping of str to int
        Counts of unusual features of the tables, by code.
    """

    matchings: int

    def sentences(self) -> list[str]:
        """Return sentences on the two values and on each share, the largest first, and the `remarks`."""
        return super().sentences()

    def remarks(self) -> list[str]:
        """Return sentences on everything but the two values and the shares."""
        return [*super().remarks(), BEFORE]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; exact shares are text, such as "1/8"."""

        def moved(step: Step) -> dict[str, Any]:
            return {
                "classes": [{"category": name, "change": change} for name, change in step.classes],
                "changed_detections": step.changed,
                "examples": [{**vars(one), "box": list(one.box)} for one in step.examples],
            }

        made = self._document(lambda rules: {"protocol": rules.to_dict()}, moved, matchings=self.matchings)
        for row, share in zip(made["shares"], self.shares, strict=True):
            row["sentence"] = share.sentence
        return made

    def __str__(self) -> str:
        """Return the two values and the share of each decision as text."""
        return "\n".join([repr(self), *self.sentences()])

    def __repr__(self) -> str:
        ends = f"{self.source_value:.4f} to {self.target_value:.4f}"
        return f"<Explanation: {self.metric} ({self.source.iou_type}) {ends}, {len(self.shares)} shares>"


def explain(
    ground_truth: Truth,
    detections: Found,
    source: str | Protocol | None = None,
    target: str | Protocol | None = None,
    metric: str = "AP",
    *,
    iou_type: IouType | None = None,
    orders: int = 64,
    seed: int = 0,
    threads: int | None = None,
) -> Explanation:
    """Explain why a metric has different values under two protocols.

    Parameters
    ----------
    ground_truth, detections
        Tables, paths, or COCO's JSON, as for `detmap.evaluate`.
    source, target : str or Protocol
        Names of `detmap.PRESETS`, with changes as in ``"coco+min_score=0.25"``, or protocols.
    metric : str
        "AP" (for VOC's protocols equal to mAP), "AP50", "AP75", or ``"AP_"`` followed by the name of an area range that
        both protocols have.
    iou_type : str, optional
        The kind of geometry that is matched, as for `detmap.evaluate`.
    orders : int
        Maximum number of orders sampled if more than seven decisions differ; sampling stops when all standard errors
        are at most 0.0001.
    seed : int
        Seed of the sampling.
    threads : int, optional
        One per processor by default. The number does not affect the result.

    Returns
    -------
    Explanation

    Raises
    ------
    OptionError
        For an unknown protocol or metric, or protocols that match different kinds of geometries.
    InputError
        If the metric is undefined because there are no positives.
    """
    check_orders(orders)
    if source is None or target is None:
        raise OptionError(
            "explain needs two protocols, as in explain(ground_truth, detections, 'coco', 'ultralytics'); there are: "
            f"{', '.join(PRESETS)}"
        )
    named = [parse(one) if isinstance(one, str) else one for one in (source, target)]
    levels = [level for one in named for level in one.levels]
    implied = next((one for one in named if one.iou_type != BOXES), None)
    plain = implied or (source if isinstance(source, Protocol) else "coco")
    truth, found = tables_of(ground_truth, detections, plain, iou_type, levels)
    both = pair(source, target, metric, iou_type, truth, found)
    replay = Replay(truth, found, metric, threads)
    differ = players(*both)

    ends = [replay.value(one).value for one in both]
    bands = [replay.band(one) for one in both]  # while the matches are still cached
    # The first decisions of `order` change most often between successive evaluations. Decisions about the curve come
    # first, because they do not change the matches.
    order = sorted(range(len(differ)), key=lambda at: all(map(is_late, differ[at][1])), reverse=True)
    shares, error, steps = weighed(both, differ, lambda rules: replay.value(rules).value, orders, seed, order)
    return Explanation(
        metric=metric,
        source=both[0],
        target=both[1],
        source_value=ends[0],
        target_value=ends[1],
        source_band=bands[0],
        target_band=bands[1],
        shares=shares,
        chain=_chain(replay, both[0], steps),
        error=error,
        evaluations=replay.evaluations,
        matchings=replay.matchings,
        notices=replay.notices,
    )


def weighed(
    both: tuple[Rules, Rules],
    differ: Sequence[tuple[str, tuple[str, ...]]],
    value: Callable[[Rules], float],
    orders: int,
    seed: int,
    order: Sequence[int] | None = None,
) -> tuple[list[Share], float, list[tuple[str, Rules]]]:
    """Return the shares, the largest first, the maximum standard error of a share, and the rules after each step."""

    def changed(which: Iterable[int]) -> Rules:
        return moved_to(*both, [name for at in which for name in differ[at][1]])

    def exactly(which: frozenset[int]) -> Fraction:
        return Fraction(value(changed(sorted(which))))

    if len(differ) <= EXACT:
        exact, errors = shapley(len(differ), exactly, order), [0.0] * len(differ)
    else:
        exact, errors = sampled(len(differ), exactly, orders, seed)
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
    return sorted(shares, key=lambda one: -abs(one.exact)), max(errors, default=0.0), steps


def check_orders(orders: int) -> None:
    """Raise `OptionError` for a number of orders that is too small for a standard error."""
    if type(orders) is not int or orders < 4:
        raise OptionError(f"orders must be an integer of at least 4, not {orders!r}")


def shapley(count: int, value: Values, order: Sequence[int] | None = None) -> list[Fraction]:
    """Return the Shapley values of a game with `count` players. The Shapley values sum to the value of the set of all
    players minus the value of the empty set. The first player of `order` changes most often between successive
    evaluations, so this player should be the cheapest to change.
    """
    fastest = list(range(count)) if order is None else list(order)
    sets = [frozenset(fastest[bit] for bit in range(count) if code >> bit & 1) for code in range(1 << count)]
    known = {one: value(one) for one in sets}
    weights = [
        Fraction(math.factorial(size) * math.factorial(count - size - 1), math.factorial(count))
        for size in range(count)
    ]
    return [
        sum((weights[len(one)] * (known[one | {player}] - known[one]) for one in sets if player not in one), Fraction())
        for player in range(count)
    ]


def sampled(count: int, value: Values, orders: int, seed: int) -> tuple[list[Fraction], list[float]]:
    """Return the means of the players' contributions over sampled orders, and the standard errors of the means. Each order
    is paired with its reverse, which reduces the variance. The means have the same sum as the Shapley values.
    """
    generator = np.random.default_rng(seed)
    known: dict[frozenset[int], Fraction] = {}

    def look_up(one: frozenset[int]) -> Fraction:
        if one not in known:
            known[one] = value(one)
        return known[one]

    means: list[list[Fraction]] = []
    errors = [math.inf] * count
    while 2 * len(means) < orders and (len(means) < _PAIRS or max(errors) > SURE):
        forward = generator.permutation(count).tolist()
        gained = [Fraction()] * count
        for way in (forward, forward[::-1]):
            there: frozenset[int] = frozenset()
            for player in way:
                gained[player] += (look_up(there | {player}) - look_up(there)) / 2
                there = there | {player}
        means.append(gained)
        if len(means) > 1:
            columns = np.array([[float(one) for one in row] for row in means])
            errors = (np.std(columns, axis=0, ddof=1) / math.sqrt(len(means))).tolist()
    return [sum(column, Fraction()) / len(means) for column in zip(*means, strict=True)], errors


def _chain(replay: Replay, first: Protocol, steps: Sequence[tuple[str, Protocol]]) -> list[Step]:
    """Return the effect of each step; a step changes one more decision."""
    made, before, at = [], replay.value(first), first
    for label, protocol in steps:
        after = replay.value(protocol)
        changed, examples = 0, list[Example]()
        simpler = replay.simplified(at), replay.simplified(protocol)
        if any(getattr(simpler[0], name) != getattr(simpler[1], name) for name in _EARLY):
            changed, examples = _flipped(replay, at, protocol)
        made.append(
            Step(
                decision=label,
                value=after.value,
                change=after.value - before.value,
                classes=_moved(replay, protocol, before, after),
                examples=examples,
                changed=changed,
            )
        )
        before, at = after, protocol
    return made


_EARLY = [name for name, made in decisions_of(Protocol).items() if made.affects and not is_late(name)]


def _moved(replay: Replay, protocol: Protocol, before: Value, after: Value) -> list[tuple[str, float]]:
    """Return the classes whose values changed most."""
    if before.classes.size != after.classes.size:  # one of the two protocols merges the classes
        return []
    names = replay.ground_truth.categories.names if protocol.use_categories else ("all",)
    change = np.nan_to_num(after.classes - before.classes)
    most = np.argsort(-np.abs(change), kind="stable")[:_NAMED]
    return [(names[k], float(change[k])) for k in most.tolist() if change[k] and k < len(names)]


def _flipped(replay: Replay, before: Protocol, after: Protocol) -> tuple[int, list[Example]]:
    """Return the number of detections whose outcome differs between two protocols, and examples with high scores."""
    iou = 0.5 if before.find_threshold(0.5) is not None or 0.5 in after.iou_thresholds else before.iou_thresholds[0]
    outcomes, overlaps = zip(*(replay.outcomes(one, iou) for one in (before, after)), strict=True)
    rows = np.flatnonzero(outcomes[0] != outcomes[1])
    table, found = replay.detections, []
    names = dict(zip(replay.ground_truth.categories.ids.tolist(), replay.ground_truth.categories.names, strict=True))
    scores = table.scores[rows]
    for row in rows[np.argsort(-scores, kind="stable")[:_NAMED]].tolist():
        overlap = overlaps[1][row] if not math.isnan(overlaps[1][row]) else overlaps[0][row]
        category = table.categories.ids[table.categories.codes[row]].item()
        found.append(
            Example(
                image=table.images.ids[table.images.codes[row]].item(),
                category=category,
                name=names.get(category, str(category)),
                box=tuple(table.shapes[BOXES].arrays()["table"][row].tolist()),
                score=float(table.scores[row]),
                iou=float(iou),
                overlap=float(overlap),
                before=_OUTCOMES.get(int(outcomes[0][row]), "not scored"),
                after=_OUTCOMES.get(int(outcomes[1][row]), "not scored"),
            )
        )
    return int(rows.size), found
