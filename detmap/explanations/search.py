"""Which protocol gives a number: the named ones first, then those with one or two decisions changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from detmap.choices import UNLIMITED
from detmap.errors import InputError, OptionError, shorten
from detmap.explanations.replay import TACIT, Replay, is_late, said, trimmed
from detmap.protocols import COCO, PRESETS, Protocol
from detmap.results import fragment
from detmap.scored_kinds import scored_kind
from detmap.tables import Detections, GroundTruth

#: What is tried besides the values that named protocols use: decision and value. Decisions of a group change together.
GRID: dict[str, tuple[dict[str, Any], ...]] = {
    "min_score": tuple({"min_score": cut} for cut in (0.001, 0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5)),
    "max_dets": tuple({"max_dets": (cap,)} for cap in (1, 10, 20, 50, 100, 300, 500, UNLIMITED)),
    "max_per_image": tuple({"max_per_image": cap} for cap in (10, 50, 100, 300, None)),
    "crowds": (
        {"ignore": ("crowd",), "crowd_overlap": True, "left_out": ()},
        {"ignore": ("crowd", "difficult"), "crowd_overlap": False, "left_out": ()},
        {"ignore": (), "crowd_overlap": False, "left_out": ("crowd",)},
        {"ignore": ("difficult",), "crowd_overlap": False, "left_out": ("crowd",)},
        {"ignore": ("difficult",), "crowd_overlap": False, "left_out": ()},
        {"ignore": (), "crowd_overlap": False, "left_out": ("difficult",)},
        {"ignore": (), "crowd_overlap": False, "left_out": ()},
    ),
    "curve": tuple(
        {"interpolation": rule, "recall_thresholds": COCO.recall_thresholds, "epsilon": 0.0}
        for rule in ("grid", "all-point", "11-point", "101-linear", "101-linear-tail", "step", "trapezoid")
    ),
    "pixels": (
        {"inclusive_pixels": False, "far_corner": "x+w-1"},
        {"inclusive_pixels": True, "far_corner": "x+w-1"},
        {"inclusive_pixels": True, "far_corner": "x+w"},
    ),
    "iou_thresholds": tuple(
        {"iou_thresholds": at} for at in ((0.5,), (0.75,), COCO.iou_thresholds, (0.3,), (0.4,), (0.6,), (0.7,))
    ),
    "matching": ({"matching": "best"}, {"matching": "best-free"}),
    "strict": ({"strict": True}, {"strict": False}),
    "use_categories": ({"use_categories": False}, {"use_categories": True}),
    "scored_images": ({"scored_images": "detected"}, {"scored_images": "all"}),
    "box_decimals": ({"box_decimals": 0}, {"box_decimals": 1}, {"box_decimals": None}),
    "score_decimals": ({"score_decimals": 2}, {"score_decimals": 3}, {"score_decimals": None}),
    "box_offset": ({"box_offset": 1.0}, {"box_offset": -1.0}, {"box_offset": 0.0}),
    "numbers": ({"numbers": "float32"}, {"numbers": "float64"}),
    "ties": ({"ties": "file"}, {"ties": "image"}),
    "id_zero": ({"id_zero": "missed"}, {"id_zero": "found"}),
}

#: So many protocols with two changes are evaluated, those first that single changes lead to expect near the number.
_PAIRS = 1500


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A protocol that gives the number.

    Attributes
    ----------
    protocol : Protocol or Convention
        It, as far as it decides the metric.
    base : str
        The named protocol that it is a variant of.
    changes : tuple of str
        What it decides otherwise, as ``"min_score 0.25"``.
    value : float
        What it gives.
    others : tuple of str
        Others that give the very same value with as few changes, and cannot be told from it here.
    """

    protocol: Any
    base: str
    changes: tuple[str, ...]
    value: float
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The named protocol and its changes."""
        return " with ".join([self.base, *([" and ".join(self.changes)] if self.changes else [])])


@dataclass(frozen=True, kw_only=True)
class Search:
    """What was found, and tried, for a number.

    Attributes
    ----------
    metric : str
        What it is taken for.
    low, high : float
        Every value from `low` to `high` is written with the quoted digits.
    candidates : list of Candidate
        Those of fewest changes first; values that many named protocols lead to ahead of others.
    named : dict of str to float
        The value under every named protocol.
    idle : tuple of str
        Decisions without any effect here.
    tried : tuple of int
        How many protocols were tried with no, one and two changes.
    evaluations : int
        How many of them differ here, and were evaluated.
    rules : str
        What was tried: "protocols", or of rankings "conventions".
    """

    metric: str
    low: float
    high: float
    candidates: list[Candidate]
    named: dict[str, float]
    idle: tuple[str, ...]
    tried: tuple[int, int, int]
    evaluations: int
    rules: str = "protocols"

    def sentences(self) -> list[str]:
        """Return in words what was found."""
        told = []
        if not any(self.named.values()):
            told.append(f"All named {self.rules} give 0: nothing is found that there was to find.")
        elif not self.candidates:
            nearest = min(self.named, key=lambda name: abs(self.named[name] - (self.low + self.high) / 2))
            told.append(
                f"Nothing that was tried gives this number; {nearest} is nearest with {self.named[nearest]:.4f}."
            )
        if self.idle:
            told.append(f"Without any effect here: {', '.join(self.idle)}.")
        none, one, two = self.tried
        told.append(f"Tried: {none} named {self.rules}, {one} with one change, {two} with two.")
        return told

    def _repr_html_(self) -> str:
        found = [
            {
                "protocol": one.base,
                "with": " and ".join(one.changes),
                "value": one.value,
                "the same here": "; ".join(one.others),
            }
            for one in self.candidates
        ]
        named = [{"protocol": name, "value": value} for name, value in self.named.items()]
        title = f"Which rules give {self.metric} from {self.low:.6g} to {self.high:.6g}"
        return fragment(title, {"candidates": found, "named protocols": named}, self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "metric": self.metric,
            "low": self.low,
            "high": self.high,
            "candidates": [
                {"base": one.base, "changes": list(one.changes), "value": one.value, "others": list(one.others)}
                for one in self.candidates
            ],
            "named": self.named,
            "without_effect": list(self.idle),
            "tried": list(self.tried),
            "evaluations": self.evaluations,
        }


def interval(text: str | float) -> tuple[float, float]:
    """Return the least and the largest number that is written so; above 1 it is taken for a percentage.

    Raises
    ------
    OptionError
        Where the text is no number from 0 to 100.
    """
    try:
        number = Decimal(str(text).strip().rstrip("%"))
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 <= number <= 100:
        raise OptionError(f"the value must be a number as 0.437 or 43.7, not {shorten(text)}")
    half = Decimal((0, (5,), int(number.as_tuple().exponent) - 1))
    unit = 100 if number > 1 or str(text).strip().endswith("%") else 1
    slack = 1e-12  # a value that lies half way may be written either way
    return float((number - half) / unit) - slack, float((number + half) / unit) + slack


def changed_to(base: Protocol, protocol: Protocol, change: Iterable[str]) -> str:
    """Return in words what a protocol decides otherwise than its base, of some decisions."""
    names = [one for one in change if getattr(protocol, one) != getattr(base, one)]
    silent = {tacit for one in names for tacit in TACIT.get(one, ())}
    return ", ".join(f"{one} {said(protocol, [one])}" for one in names if one not in silent)


def find_value(
    ground_truth: GroundTruth,
    detections: Detections,
    value: str | float,
    metric: str = "AP",
    *,
    most: int = 10,
    threads: int | None = None,
) -> Search:
    """Find the protocols that give a number.

    Parameters
    ----------
    ground_truth : GroundTruth
        What there is to find.
    detections : Detections
        What was found.
    value : str or float
        The number as it is quoted: as many digits as are given must agree. Above 1 it is a percentage.
    metric : str
        As for `detmap.explain`.
    most : int
        So many candidates are returned at most.
    threads : int, optional
        One per processor by default.

    Returns
    -------
    Search

    Raises
    ------
    OptionError
        For an unknown metric, or a value that is no number.
    InputError
        Where there is nothing to find.
    """
    low, high = interval(value)
    check_most(most)
    scored_kind(COCO, None, ground_truth, detections)  # all rules that are tried compare boxes
    replay = Replay(ground_truth, detections, metric, threads)
    bases = {}
    for name, one in PRESETS.items():
        try:
            plain = trimmed(one, metric)
        except OptionError:
            continue
        if plain.iou_type == "bbox":
            bases[name] = plain
    if not bases:
        trimmed(COCO, metric)  # says which metrics there are
    replay.value(next(iter(bases.values())))  # an error where there is nothing to find

    def look_up(one: Protocol) -> float:
        try:
            return replay.value(one).value
        except InputError:  # where only images with detections are scored, and there are none
            return math.nan

    bases = {name: one for name, one in bases.items() if not math.isnan(look_up(one))}
    tries = Tries(look_up, replay.simplified, GRID, changed_to, _is_curve, low, high)
    return tries.search(metric, bases, most, lambda: replay.evaluations)


def check_most(most: Any) -> None:
    """Refuse a number of candidates that cannot be."""
    if type(most) is not int or most < 1:
        raise OptionError(f"most must be a positive integer, not {most!r}")


def _is_curve(change: Mapping[str, Any]) -> bool:
    """Return whether a change is carried out after matching and ranking."""
    return all(map(is_late, change))


Change = tuple[str, int]


@dataclass(eq=False)
class Tries:
    """What was tried so far to give a number between `low` and `high`.

    A rule is a protocol or a convention. ``value(rule)`` is what it gives, NaN where it cannot be; ``plain(rule)`` the same
    for most rules that cannot be told apart here; ``words(base, rule, names)`` says what some decisions became;
    ``late(change)`` whether a change of the `grid` costs little.
    """

    value: Callable[[Any], float]
    plain: Callable[[Any], Any]
    grid: Mapping[str, Sequence[Mapping[str, Any]]]
    words: Callable[[Any, Any, Iterable[str]], str]
    late: Callable[[Mapping[str, Any]], bool]
    low: float
    high: float
    bases: dict[str, Any] = field(default_factory=dict)
    found: dict[Any, list[tuple[str, tuple[Change, ...], Any, float]]] = field(default_factory=dict)
    effects: dict[tuple[str, Change], float] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    varied: list[str] = field(default_factory=list)
    count: list[int] = field(default_factory=lambda: [0, 0, 0])

    def search(
        self, metric: str, bases: Mapping[str, Any], most: int, evaluations: Callable[[], int], rules: str = "protocols"
    ) -> Search:
        """Try the named rules, then one change of each, then two, until there are as many candidates as are wanted."""
        self.bases = dict(bases)
        for attempt in (self.named, self.singles, self.pairs):
            if len(self.candidates()) < most:
                attempt()
        return Search(
            metric=metric,
            low=self.low,
            high=self.high,
            candidates=self.candidates()[:most],
            named={name: self.value(one) for name, one in self.bases.items()},
            idle=tuple(name for name in self.grid if name not in self.moved) if self.varied else (),
            tried=(self.count[0], self.count[1], self.count[2]),
            evaluations=evaluations(),
            rules=rules,
        )

    def named(self) -> None:
        """Try the named rules."""
        for name, one in self.bases.items():
            self._try(name, (), one)

    def singles(self) -> None:
        """Try every change of one decision, of every named protocol that gives a number of its own."""
        seen: dict[float, str] = {}
        for name, base in self.bases.items():
            before = self.value(base)
            if seen.setdefault(before, name) != name:
                continue
            self.varied.append(name)
            for change in self._changes(base):
                after = self._try(name, (change,), self._changed(base, change))
                if math.isnan(after):
                    continue
                self.effects[name, change] = after - before
                if after != before:
                    self.moved.add(change[0])

    def pairs(self) -> None:
        """Try changes of two decisions, those first whose effects together come nearest to the number."""
        middle = (self.low + self.high) / 2
        expected: list[tuple[float, str, Change, Change]] = []
        for name in self.varied:
            before = self.value(self.bases[name])
            moving = [(label, at) for (of, (label, at)), effect in self.effects.items() if of == name and effect]
            for at, one in enumerate(moving):
                for other in moving[at + 1 :]:
                    if one[0] != other[0]:
                        effects = self.effects[name, one], self.effects[name, other]
                        # Most effects scale with the rest; those of few detections add up.
                        scaled = (before + effects[0]) * (before + effects[1]) / before if before else sum(effects)
                        off = min(abs(scaled - middle), abs(before + sum(effects) - middle))
                        expected.append((off, name, one, other))
        expected.sort(key=lambda row: row[0])
        # What shares its matching is tried together.
        for _, name, one, other in sorted(
            expected[:_PAIRS], key=lambda row: (self.varied.index(row[1]), row[2], row[3])
        ):
            self._try(name, (one, other), self._changed(self._changed(self.bases[name], one), other))

    def candidates(self) -> list[Candidate]:
        """Return what gives the number, each value once: of fewest changes, and of those the best known base."""
        by_value: dict[tuple[int, float], list[tuple[str, tuple[Change, ...], Any, float]]] = {}
        for ways in self.found.values():
            fewest = min(len(changes) for _, changes, _, _ in ways)
            for way in ways:
                if len(way[1]) == fewest:
                    by_value.setdefault((fewest, way[3]), []).append(way)
        made = []
        for (fewest, value), ways in sorted(by_value.items(), key=lambda item: (item[0][0], -len(item[1]))):
            if any(fewer < fewest and same == value for fewer, same in by_value):
                continue
            named = [self._candidate(*way[:3], value) for way in ways]
            made.append(replace(named[0], others=tuple(one.name for one in named[1:6])))
        return made

    def _candidate(self, name: str, changes: Sequence[Change], protocol: Any, value: float) -> Candidate:
        said_of = []
        for label, at in changes:
            said_of.append(self.words(self.bases[name], protocol, self.grid[label][at]))
        return Candidate(protocol=protocol, base=name, changes=tuple(said_of), value=value)

    def _changes(self, base: Any) -> Iterator[Change]:
        """Yield every change of one decision, or group, that makes another protocol here; each different one once."""
        own, there = self.plain(base), set()
        # What is matched in one way is used for all of its curves: they come last, and only there costs are small.
        for label in sorted(self.grid, key=lambda one: self.late(self.grid[one][0])):
            for at in range(len(self.grid[label])):
                made = self.plain(self._changed(base, (label, at)))
                if made != own and made not in there:
                    there.add(made)
                    yield label, at

    def _changed(self, base: Any, change: Change) -> Any:
        return replace(base, **self.grid[change[0]][change[1]])

    def _try(self, name: str, changes: tuple[Change, ...], protocol: Any) -> float:
        value = self.value(protocol)
        if math.isnan(value):
            return value
        self.count[len(changes)] += 1
        if self.low <= value <= self.high:
            plain = self.plain(protocol)
            self.found.setdefault(plain, []).append((name, changes, protocol, value))
        return value
