"""Search for rules that reproduce quoted numbers: first named rules, then variants with up to three changes. Estimate
how many rules agree by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from detmap.explanations.chance import Chance
from detmap.system import progress

#: A change: the name of a row of the vocabulary's grid, and the index of a change in this row.
Change = tuple[str, int]
Changes = tuple[Change, ...]

#: Maximum number of evaluated rules with one, two and three changes. The rules with estimated values nearest to the
#: quoted numbers are evaluated.
_COMBINED = {1: 100, 2: 1200, 3: 500}

#: Prior weight of rows that the vocabulary's `usual` does not list.
_OTHERWISE = 2.0

#: Stride in rows of ascending numbers (`smooth`): every fifth change is evaluated, and effects in between are
#: interpolated.
_STRIDE = 5

#: Minimum prior weight of a change to be tried in combinations of three changes.
_RAREST = 5e-4

#: Maximum difference of a value from its quoted number. If a value of a rule with several changes differs more, the
#: rule's other values are not evaluated.
_REACH = 0.03

#: Maximum number of candidates expected by chance for the verdict "found".
FOUND = 0.02

#: Number of decimals to which values are rounded before they are compared for equality.
_SAME = 12


class Vocabulary(Protocol):
    """The rules that can be tried: named rules, each with changes. ``grid`` maps the name of a row to its changes
    (decisions and values). ``usual`` has the prior weights of rows. ``smooth`` names rows of ascending numbers; their
    effects are interpolated.
    """

    grid: Mapping[str, Sequence[Mapping[str, Any]]]
    usual: Mapping[str, float]
    smooth: Sequence[str] = ()

    def value(self, name: str, changes: Changes, number: int) -> float:
        """Return the value of quoted number `number` (an index) under the rule `name` with changes; NaN if the rule
        does not apply.
        """
        ...

    def plain(self, name: str, changes: Changes) -> Hashable:
        """Return a key that is equal for rules known to be equivalent on these tables."""
        ...

    def place(self, changes: Changes) -> Any:
        """Return a sort key by which rules with shared computations are adjacent."""
        ...

    def rules(self, name: str, changes: Changes) -> Any:
        """Return the named rule with its changes: a protocol or a convention."""
        ...

    def words(self, name: str, changes: Changes) -> tuple[str, ...]:
        """Return the changes in words."""
        ...

    @property
    def evaluations(self) -> int:
        """Return the number of rules evaluated."""
        ...


@dataclass(frozen=True)
class Way:
    """A named rule with changes that gives the quoted numbers, and its prior weight (`usual`)."""

    usual: float
    name: str
    changes: Changes


@dataclass(frozen=True)
class Match:
    """Rules with exactly the same values, the most usual first, and the number of rules expected to agree by chance."""

    values: tuple[float, ...]
    ways: list[Way]
    by_chance: float


@dataclass(eq=False)
class Tries:
    """A search for rules whose values lie in the intervals of the quoted numbers. It stores the values tried so far."""

    vocabulary: Vocabulary
    names: Sequence[str]
    quoted: Sequence[tuple[float, float]]
    tried: dict[tuple[float, ...], float] = field(default_factory=dict)
    found: dict[tuple[float, ...], dict[Hashable, Way]] = field(default_factory=dict)
    effects: dict[str, dict[Change, NDArray[np.float64]]] = field(default_factory=dict)
    own: dict[str, tuple[float, ...]] = field(default_factory=dict)
    between: dict[str, dict[Change, NDArray[np.float64]]] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    count: list[int] = field(default_factory=lambda: [0, 0, 0, 0])

    def search(self, most: int) -> list[Match]:
        """Try more changes until chance does not explain a match, or there are `most` matches. Three changes are tried
        only if several numbers are quoted and no rule with fewer changes agrees.
        """
        self._named()
        if len(self.matches()) < most:
            self._singles()
        for size in (2, 3) if len(self.quoted) > 1 else (2,):
            found = self.matches()
            if any(match.by_chance <= FOUND for match in found) or len(found) >= most or (found and size == 3):
                break
            self._combined(size)
        return self.matches()

    def matches(self) -> list[Match]:
        """Return the rules that agree with all numbers, the most usual first."""
        made, chance = [], self._chance()
        for ways in self.found.values():
            fewest = min(len(way.changes) for way in ways.values())
            best = sorted((way for way in ways.values() if len(way.changes) == fewest), key=lambda way: -way.usual)
            values = tuple(self._values(best[0].name, best[0].changes))
            made.append(Match(values, best, chance(best[0].usual)))
        return sorted(made, key=lambda match: (-match.ways[0].usual, -len(match.ways)))

    def expected(self) -> float:
        """Return the number of tried rules expected to reproduce the quoted numbers by chance."""
        return self._chance()(0.0)

    def _chance(self) -> Callable[[float], float]:
        """Return a function that maps a prior weight to the expected number of chance agreements, among rules with at
        least this weight.
        """
        values = np.array(list(self.tried)).reshape(-1, len(self.quoted))
        density, shares = Chance(values, np.array(self.quoted)), np.array(list(self.tried.values()))
        return cache(lambda usual: density.expected(shares >= usual))

    def usual(self, changes: Changes) -> float:
        """Return the prior weight of a combination of changes: the product of the weights of its changes."""
        return math.prod(self._share(label) for label, _ in changes)

    def _share(self, label: str) -> float:
        return self.vocabulary.usual.get(label, _OTHERWISE) / 100 / len(self.vocabulary.grid[label])

    def _values(self, name: str, changes: Changes) -> Iterator[float]:
        for at in range(len(self.quoted)):
            yield self.vocabulary.value(name, changes, at)

    def _try(self, name: str, changes: Changes) -> tuple[float, ...] | None:
        """Evaluate a rule and return its values; None if a value is undefined, or far from its quoted number."""
        made: list[float] = []
        for value, middle in zip(self._values(name, changes), self._middle, strict=True):
            if math.isnan(value):
                return None
            made.append(value)
            if len(changes) > 1 and abs(value - middle) > _REACH and len(made) < len(self.quoted):
                self.count[len(changes)] += 1
                return None
        self.count[len(changes)] += 1
        key, usual = tuple(round(value, _SAME) for value in made), self.usual(changes)
        self.tried[key] = max(usual, self.tried.get(key, 0.0))
        if all(low <= value <= high for value, (low, high) in zip(made, self.quoted, strict=True)):
            ways = self.found.setdefault(key, {})
            plain = self.vocabulary.plain(name, changes)
            if plain not in ways or ways[plain].usual < usual:
                ways[plain] = Way(usual, name, changes)
        return tuple(made)

    @cached_property
    def _middle(self) -> NDArray[np.float64]:
        return np.asarray(np.array(self.quoted).mean(axis=1))

    def _named(self) -> None:
        """Try the named rules."""
        for name in self.names:
            made = self._try(name, ())
            if made is not None and made not in self.own.values():
                self.own[name] = made

    def _singles(self) -> None:
        """Try the named rules with one change. Of named rules with equal values, only the first is used."""
        grid = self.vocabulary.grid
        there = {name: {self.vocabulary.plain(name, ())} for name in self.own}
        smooth = self.vocabulary.smooth
        every = [
            (name, (label, at))
            for name in self.own
            for label in grid
            for at in range(0, len(grid[label]), _STRIDE if label in smooth else 1)
        ]
        order = sorted(every, key=lambda row: self.vocabulary.place((row[1],)))
        for name, change in progress.counted("rule with one change", order):
            plain = self.vocabulary.plain(name, (change,))
            if plain in there[name]:
                continue
            there[name].add(plain)
            after = self._try(name, (change,))
            if after is None:  # a value is undefined with this change
                self.moved.add(change[0])
            elif after != self.own[name]:
                self.moved.add(change[0])
                self.effects.setdefault(name, {})[change] = np.array(after) - self.own[name]
        for name in self.effects:
            for label in smooth:
                self._interpolate(name, label)
        self._combined(1)

    def _interpolate(self, name: str, label: str) -> None:
        """Estimate the effects of the row's other changes by interpolation between the evaluated changes."""
        effects = self.effects[name]
        places = [at for of, at in effects if of == label]
        if not places:
            return
        between = [at for at in range(places[0], places[-1]) if at % _STRIDE]
        columns = np.array([effects[label, at] for at in places]).T
        made = [np.interp(between, places, column) for column in columns]
        for at, effect in zip(between, np.array(made).T, strict=True):
            self.between.setdefault(name, {})[label, at] = effect

    def _combined(self, size: int) -> None:
        """Try the combinations of `size` changes whose estimated values are nearest to the quoted numbers."""
        nearest: list[tuple[float, str, Changes]] = []
        for name, effects in self.effects.items():
            between = self.between.get(name, {})
            nearest += self._nearest(name, between if size == 1 else {**effects, **between}, size)
        nearest.sort(key=lambda row: row[0])
        chosen = nearest[: _COMBINED[size]]
        order = {name: at for at, name in enumerate(self.names)}
        tried = sorted(chosen, key=lambda row: (self.vocabulary.place(row[2])[:1], order[row[1]], row[2]))
        for _, name, changes in progress.counted("rule with several changes", tried):
            self._try(name, changes)

    def _nearest(
        self, name: str, effects: Mapping[Change, NDArray[np.float64]], size: int
    ) -> list[tuple[float, str, Changes]]:
        """Return the combinations of `size` changes with estimates nearest to the quoted numbers, and the distances."""
        distinct: dict[Any, Change] = {}
        for change, effect in effects.items():
            if size < 3 or self._share(change[0]) >= _RAREST:
                distinct.setdefault((frozenset(self._sets(change)), *effect.round(_SAME)), change)
        changes = list(distinct.values())
        if len(changes) < size:
            return []
        by = np.array([effects[one] for one in changes]).reshape(len(changes), len(self.quoted))
        sets = [self._sets(one) for one in changes]
        apart = np.array([[one.isdisjoint(other) for other in sets] for one in sets], np.bool_).reshape(
            len(changes), -1
        )
        picked = _combinations(apart, size)
        if not picked.size:
            return []
        before = np.array(self.own[name])
        added = before + sum(by[column] for column in picked.T)
        # Combine the effects of several changes as sums and as products, because either can be the better estimate.
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = before * np.prod([(before + by[column]) / before for column in picked.T], axis=0)
        scaled = np.where(np.isfinite(scaled), scaled, added)
        off = np.minimum(*(np.abs(made - self._middle).max(axis=1) for made in (added, scaled)))
        least = np.argsort(off, kind="stable")[: _COMBINED[size]]
        return [(float(off[at]), name, tuple(changes[one] for one in picked[at])) for at in least]

    def _sets(self, change: Change) -> set[str]:
        """Return the names of the decisions that a change sets."""
        return set(self.vocabulary.grid[change[0]][change[1]])


def _combinations(apart: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """Return all sets of `size` indices, one set per row, in which ``apart[i, j]`` is true for any two indices."""
    picked = np.arange(apart.shape[0])[:, None]
    for _ in range(size - 1):
        last = apart.shape[0]
        parts = []
        for at in range(last):
            fit = (picked[:, -1] < at) & apart[picked, at].all(axis=1)
            parts.append(np.column_stack((picked[fit], np.full(int(fit.sum()), at))))
        picked = np.concatenate(parts) if parts else picked[:0]
    return picked
