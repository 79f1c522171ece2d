"""Quoted numbers, and the result of a search for rules that give these numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from detmap.errors import OptionError, shorten
from detmap.explanations.tries import FOUND, Match, Tries, Vocabulary
from detmap.results import fragment


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Rules that give the quoted numbers.

    Attributes
    ----------
    protocol : Protocol or Convention
        The decisions. Changes that are no decisions, such as how files were written, are only listed in `changes`.
    base : str
        The named protocol that these rules modify.
    changes : tuple of str
        The changes, such as ``"min_score 0.25"``.
    values : dict of str to float
        The values under these rules, by the name of the quoted number.
    by_chance : float
        Expected number of chance agreements with the quoted digits, among rules at least as usual as these rules.
    others : tuple of str
        Up to five other rules with exactly the same values.
    """

    protocol: Any
    base: str
    changes: tuple[str, ...]
    values: dict[str, float]
    by_chance: float
    others: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The value of the first quoted number under these rules."""
        return next(iter(self.values.values()))

    @property
    def name(self) -> str:
        """The name of the protocol with its changes."""
        return " with ".join([self.base, *([" and ".join(self.changes)] if self.changes else [])])


@dataclass(frozen=True, kw_only=True)
class Search:
    """The result of a search for quoted numbers.

    Attributes
    ----------
    quoted : dict of str to tuple of float
        The minimum and maximum value that round to the quoted digits, by the name of the number.
    candidates : list of Candidate
        Rules that agree with all quoted numbers, the most usual first, up to the requested number of candidates.
    matches : int
        Number of all candidates found.
    expected : float
        Number of candidates expected by chance if no tried rule produced the quoted numbers.
    named : dict of str to dict of str to float
        The value of each quoted number under each named protocol, as ``named[protocol][number]``.
    idle : tuple of str
        Kinds of changes without any effect on these tables.
    tried : tuple of int
        Number of protocols tried with no, one, two and three changes.
    evaluations : int
        Number of evaluations; protocols that are equivalent on these tables are evaluated once.
    rules : str
        The noun for the rules: "protocols", or for rankings "conventions".
    """

    quoted: dict[str, tuple[float, float]]
    candidates: list[Candidate]
    matches: int
    expected: float
    named: dict[str, dict[str, float]]
    idle: tuple[str, ...]
    tried: tuple[int, ...]
    evaluations: int
    rules: str = "protocols"

    @property
    def verdict(self) -> str:
        """The verdict: "nothing" without candidates, "found" if the first candidate's `by_chance` is at most 0.02, else
        "chance".
        """
        if not self.candidates:
            return "nothing"
        return "found" if self.candidates[0].by_chance <= FOUND else "chance"

    def sentences(self) -> list[str]:
        """Return the result in sentences."""
        told = []
        if not any(value for values in self.named.values() for value in values.values()):
            told.append(f"All named {self.rules} give 0: nothing is found that there was to find.")
        elif not self.candidates:
            ends = {name: sum(ends) / 2 for name, ends in self.quoted.items()}
            nearest = min(self.named, key=lambda name: max(abs(self.named[name][of] - ends[of]) for of in ends))
            near = " and ".join(_value_of(of, value, len(ends)) for of, value in self.named[nearest].items())
            given = "this number" if len(ends) == 1 else "these numbers"
            told.append(
                f"Nothing that was tried gives {given}; of the named {self.rules} {nearest} is nearest with {near}."
            )
        given = "a number" if len(self.quoted) == 1 else "numbers"
        count = f"There {'is' if self.matches == 1 else 'are'} {self.matches}."
        told.append(f"Expected by chance for {given} near here: {_about(self.expected)} candidates. {count}")
        if self.verdict == "found":
            first = self.candidates[0]
            told.append(
                f"{first.name} agrees better than chance: {_about(first.by_chance)} candidates at least as usual are "
                "expected by chance."
            )
        elif self.verdict == "chance":
            told.append("This may be chance: none of these is shown to be the rule.")
        if self.verdict == "chance":
            told.append(f"Another number tells them apart: {self._another()}.")
        if self.idle:
            told.append(f"Without any effect here: {', '.join(self.idle)}.")
        none, *more = self.tried
        words = [f"{count} with {how}" for count, how in zip(more, ("one change", "two", "three"), strict=False)]
        told.append(f"Tried: {none} named {self.rules}, {', '.join(words)}.")
        return told

    def _another(self) -> str:
        if self.rules != "protocols":
            return "--value METRIC=…"
        missing = next((f"--value {name}=…, or " for name in ("AP", "AP50") if name not in self.quoted), "")
        return f"{missing}a class's AP, --value CLASS=…"

    def rows(self) -> list[dict[str, Any]]:
        """Return the candidates as a table."""
        return [
            {
                self.rules[:-1]: one.base,
                "with": " and ".join(one.changes),
                **{_column(name, len(self.quoted)): f"{value:.6f}" for name, value in one.values.items()},
                "by chance": _about(one.by_chance),
                "the same here": "; ".join(one.others),
            }
            for one in self.candidates
        ]

    def named_rows(self) -> list[dict[str, Any]]:
        """Return the values under the named rules as a table."""
        return [
            {self.rules[:-1]: name} | {_column(of, len(self.quoted)): f"{value:.6f}" for of, value in values.items()}
            for name, values in self.named.items()
        ]

    def _repr_html_(self) -> str:
        title = " and ".join(f"{name} from {low:.6g} to {high:.6g}" for name, (low, high) in self.quoted.items())
        tables = {"candidates": self.rows(), f"named {self.rules}": self.named_rows()}
        return fragment(f"Which rules give {title}", tables, self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "quoted": {name: list(ends) for name, ends in self.quoted.items()},
            "verdict": self.verdict,
            "matches": self.matches,
            "expected_by_chance": self.expected,
            "candidates": [
                {
                    "base": one.base,
                    "changes": list(one.changes),
                    "values": one.values,
                    "by_chance": one.by_chance,
                    "others": list(one.others),
                }
                for one in self.candidates
            ],
            "named": self.named,
            "without_effect": list(self.idle),
            "tried": list(self.tried),
            "evaluations": self.evaluations,
        }


def _column(name: str, count: int) -> str:
    return name if count > 1 else "value"


def _value_of(name: str, value: float, count: int) -> str:
    return f"{name} {value:.4f}" if count > 1 else f"{value:.4f}"


def _about(number: float) -> str:
    """Return an expected number with two significant digits."""
    return f"{number:.0f}" if number >= 9.95 else "<0.0001" if 0 < number < 1e-4 else f"{number:.2g}"


def interval(text: str | float) -> tuple[float, float]:
    """Return the minimum and maximum number that round to the digits of a text; a number above 1 is a percentage."""
    try:
        number = Decimal(str(text).strip().rstrip("%"))
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not 0 <= number <= 100:
        raise OptionError(f"the value must be a number as 0.437 or 43.7, not {shorten(text)}")
    half = Decimal((0, (5,), int(number.as_tuple().exponent) - 1))
    unit = 100 if number > 1 or str(text).strip().endswith("%") else 1
    slack = 1e-12  # halfway values may be rounded either way
    return float((number - half) / unit) - slack, float((number + half) / unit) + slack


def read_values(texts: Iterable[str], metric: str) -> dict[str, str]:
    """Return quoted numbers by name, from texts such as ``AP50=0.61``, or ``0.437`` for the metric `metric`."""
    made: dict[str, str] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        name = name.strip() if equals else metric
        interval(number)
        if name in made:
            raise OptionError(
                f"--value gives {shorten(name)} twice; a second number is another metric's, or a class's AP"
            )
        made[name] = number
    return made


def quoted_of(value: str | float | Mapping[str, str | float], metric: str) -> dict[str, tuple[float, float]]:
    """Return the minimum and maximum value of each quoted number by name."""
    given = value if isinstance(value, Mapping) else {metric: value}
    if not given:
        raise OptionError("value must hold a number, as {'AP': '0.437', 'AP50': '0.612'}, and is empty")
    return {str(name): interval(number) for name, number in given.items()}


def searched(
    looked: Vocabulary,
    names: Sequence[str],
    quoted: dict[str, tuple[float, float]],
    most: int,
    rules: str = "protocols",
) -> Search:
    """Search a vocabulary for rules that give the quoted numbers."""
    tries = Tries(looked, names, list(quoted.values()))
    matches = tries.search(most)
    return Search(
        quoted=quoted,
        candidates=[_candidate(looked, match, quoted) for match in matches[:most]],
        matches=len(matches),
        expected=tries.expected(),
        named={name: {of: looked.value(name, (), at) for at, of in enumerate(quoted)} for name in names},
        idle=tuple(name for name in looked.grid if name not in tries.moved) if tries.count[1] else (),
        tried=tuple(tries.count[: 4 if tries.count[3] else 3]),
        evaluations=looked.evaluations,
        rules=rules,
    )


def _candidate(looked: Vocabulary, match: Match, quoted: Iterable[str]) -> Candidate:
    made = [
        Candidate(
            protocol=looked.rules(way.name, way.changes),
            base=way.name,
            changes=looked.words(way.name, way.changes),
            values=dict(zip(quoted, match.values, strict=True)),
            by_chance=match.by_chance,
        )
        for way in match.ways[:6]
    ]
    return replace(made[0], others=tuple(one.name for one in made[1:]))


def check_most(most: Any) -> None:
    """Raise `OptionError` for an invalid maximum number of candidates."""
    if type(most) is not int or most < 1:
        raise OptionError(f"most must be a positive integer, not {most!r}")
