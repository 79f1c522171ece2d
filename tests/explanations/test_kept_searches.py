"""Searches in made-up vocabularies, and sentences on made-up findings of few and many things, are the text that is kept."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from kept import Kept, said

from detmap.detection.protocols import PRESETS
from detmap.explanations import Claim, Contrast, Effect, Search, Situation, Split, Survival, quotes, tries
from detmap.explanations.chance import Chance
from detmap.explanations.shares import Explanation, Share, Step
from detmap.explanations.survival import KINDS

KEPT = Kept("searches", digits=10)


class Toy:
    """A vocabulary in which each change of a rule adds an effect to each number."""

    def __init__(self, seed, numbers):
        rng = np.random.default_rng(seed)
        sizes = {"a": 3, "b": 12, "c": 4, "d": 1, "idle": 2}
        self.grid = {
            name: [{name: at, **({"c": 0} if name == "d" else {})} for at in range(size)]
            for name, size in sizes.items()
        }
        self.usual, self.smooth = {"a": 20.0, "b": 6.0, "c": 0.1}, ("b",)
        self.base = {name: rng.random(numbers).round(2) for name in ("one", "two", "three")}
        self.base["none"] = np.full(numbers, math.nan)
        self.effects = {
            (name, at): np.sort(rng.normal(0, 0.05, (size, numbers)), axis=0)[at]
            if name != "idle"
            else np.zeros(numbers)
            for name, size in sizes.items()
            for at in range(size)
        }
        self.asked = set()

    def value(self, name, changes, number):
        self.asked.add((name, changes, number))
        if ("c", 3) in changes:
            return math.nan
        return float(self.base[name][number] + sum(self.effects[one][number] for one in changes))

    def plain(self, name, changes):
        return name, tuple(one for one in changes if one[0] != "idle")

    def place(self, changes):
        return tuple(sorted(changes))

    def rules(self, name, changes):
        return f"{name}{changes}"

    def words(self, name, changes):
        return tuple(f"{label} {at}" for label, at in changes)

    @property
    def evaluations(self):
        return len(self.asked)


def searched(seed, decimals, most, planted):
    """What a search finds that is given the numbers of a rule with some changes."""
    toy = Toy(seed, len(decimals))
    given = [toy.value("two", planted, at) for at in range(len(decimals))]
    toy.asked.clear()
    quoted = {
        f"n{at}": quotes.interval(f"{max(value, 0):.{digits}f}")
        for at, (value, digits) in enumerate(zip(given, decimals, strict=True))
    }
    made = quotes.searched(toy, list(toy.base), quoted, most)
    search = tries.Tries(toy, list(toy.base), list(quoted.values()))
    search.search(most)
    return {
        "verdict": made.verdict,
        "sentences": made.sentences(),
        "candidates": [said(one, 10) for one in made.candidates[:6]],
        "counts": [made.matches, made.evaluations, *made.tried],
        "expected": made.expected,
        "named": said(made.named, 10),
        "rows": said(made.rows(), 10),
        "idle": made.idle,
        "between": said(search.between, 10),
        "effects": said(search.effects, 10),
        "moved": search.moved,
        "tried": len(search.tried),
    }


PLANTED = ((), (("a", 1),), (("b", 7),), (("a", 2), ("b", 3)), (("a", 0), ("b", 4), ("c", 1)))
for _seed, _planted in enumerate(PLANTED):
    for _decimals in ((3,), (4, 4), (2, 3, 3)):
        for _most in (1, 5):
            KEPT.add(f"search {_seed} {_decimals} {_most} {_planted}", searched, _seed, _decimals, _most, _planted)


def expected(size, numbers):
    rng = np.random.default_rng([size, numbers])
    values = rng.normal(0.5, 0.05, (size, numbers)).round(6)
    values[: size // 4, -1] = values[: size // 4, 0]
    quoted = np.array([[0.5 + at / 50 - 0.005, 0.5 + at / 50 + 0.005] for at in range(numbers)])
    chance = Chance(values, quoted)
    return said(
        [chance.expected(among) for among in (np.ones(size, bool), np.arange(size) % 3 == 0, np.zeros(size, bool))], 9
    )


for _size in (1, 2, 5, 11, 40, 130, 300):
    for _numbers in (1, 2, 3):
        KEPT.add(f"chance among {_size} of {_numbers}", expected, _size, _numbers)
QUOTED = (
    "0.437",
    "43.7",
    "43.7%",
    "0.5%",
    "1",
    "1.0",
    "100",
    "100.1",
    "0",
    "-1",
    "nan",
    "4e-1",
    "abc",
    "",
    " 0.5 ",
    "1.00001",
    0.25,
    30,
    "0.9%",
)
for _text in QUOTED:
    KEPT.add(f"quoted {_text!r}", lambda text: said(quotes.interval(text)), _text)
for _texts in (["0.4"], ["AP50=0.61", "0.4"], ["a=b=0.5"], ["0.4", "AP=0.5"], ["AP50=x"], [" AP75 = 0.3"]):
    KEPT.add(f"quoted {_texts}", quotes.read_values, _texts, "AP")
for _value in ({}, {"AP": "0.4", 7: 30}, "0.5", 0.5):
    KEPT.add(f"value {_value!r}", lambda value: said(quotes.quoted_of(value, "AP50")), _value)
for _most in (0, 1, -1, True, 2.0, "3"):
    KEPT.add(f"most {_most!r}", quotes.check_most, _most)
KEPT.add(
    "numbers in words", lambda: [quotes._about(one) for one in (0, 9e-5, 1e-4, 0.012345, 0.5, 9.94, 9.95, 10.4, 1234)]
)


def result(numbers, candidates, chance, rules, zero=False):
    """What is said of a search with some numbers and candidates."""
    names = ["AP", "AP50", "cat"][:numbers]
    made = [
        quotes.Candidate(
            protocol=PRESETS["coco"], base="coco", changes=("min_score 0.25", "ties file")[:at],
            values=dict.fromkeys(names, 0.4), by_chance=chance, others=("voc2012",) * at,
        )
        for at in range(candidates)
    ]  # fmt: skip
    search = Search(
        quoted=dict.fromkeys(names, (0.395, 0.405)), candidates=made, matches=candidates, expected=1.25,
        named={name: dict.fromkeys(names, 0.0 if zero else value) for name, value in (("coco", 0.3), ("voc2012", 0.45))},
        idle=("pixels",) * (candidates == 2), tried=(3, 10, 7, 2)[: 3 + numbers // 2], evaluations=12, rules=rules,
    )  # fmt: skip
    return {
        "verdict": search.verdict,
        "sentences": search.sentences(),
        "rows": [said(one) for one in search.rows()],
        "named": [said(one) for one in search.named_rows()],
        "document": said({name: value for name, value in search.to_dict().items() if name != "candidates"}),
        "html": said(search._repr_html_()),
    }


for _numbers, _candidates, _chance in itertools.product((1, 2, 3), (0, 1, 2), (0.01, 0.02, 0.5)):
    for _rules in ("protocols", "conventions"):
        KEPT.add(
            f"search of {_numbers}, {_candidates} candidates, {_chance} {_rules}",
            result,
            _numbers,
            _candidates,
            _chance,
            _rules,
        )
KEPT.add("search of nothing", result, 1, 1, 0.5, "protocols", zero=True)


def effects(count, zeros, bounded):
    return [
        Effect(
            name=f"e{at}", first=0.2, second=0.3, value=0.0 if at < zeros else 0.01 * (count - at) * (-1) ** at,
            low=-0.01 if bounded else math.nan, high=0.02 if bounded else math.nan,
            without=math.nan if at % 2 else 0.05, without_low=(-0.01 if at < 2 + zeros else 0.01) if bounded else math.nan,
            without_high=0.04 if bounded else math.nan,
        )
        for at in range(count)
    ]  # fmt: skip


def contrasted(count, zeros, bounded, held, names, unit):
    rest = 0.0 if zeros else 6e-5
    made = {
        name: Split(name=name, says=f"Of {name}.", whole=0.1, effects=effects(count, zeros, bounded), remainder=rest)
        for name in names
    }
    low, high = ((-0.1, 0.2) if held else (0.05, 0.2)) if bounded else (math.nan, math.nan)
    one = Contrast(
        metric="AP", protocol=PRESETS["coco"], first="old", second="low" if zeros else "new", first_value=0.2,
        second_value=0.2 if zeros == 1 else 0.3, splits=made, exact={"e0": Fraction(1, 3)}, replicates=1500, level=0.9,
        low=low, high=high, unit=unit,
    )  # fmt: skip
    return {
        "sentences": one.sentences(),
        "tables": {name: [said(row) for row in one.table(name, 2)] for name in names},
        "document": said(one.to_dict()),
        "html": said(one._repr_html_()),
    }


for _count, _zeros, _bounded, _held in itertools.product((0, 1, 2, 3, 4, 6), (0, 1), (False, True), (False, True)):
    KEPT.add(
        f"contrast of {_count}, {_zeros} zero, {_bounded}, {_held}", contrasted, _count, _zeros, _bounded, _held,
        ("classes", "images") if _held else ("classes", "errors", "images"), "clusters" if _count == 3 else "images",
    )  # fmt: skip


def survived(situations, replicates, difference, draws, notes):
    kinds = list(KINDS)
    made = [
        Situation(
            kind=kinds[at % len(kinds)], name=f"s{at}", changes=at,
            lowest={"x": 0.4, "y": 0.3 + 0.05 * at}, highest={"x": 0.4 + (at == 1) * 0.1, "y": 0.3 + 0.05 * at},
        )
        for at in range(situations)
    ]  # fmt: skip
    against = [one for one in made if not one.above("x", "y")]
    claim = Claim(
        first="x", second="y", difference=difference, tried=situations, held=situations - len(against), against=against,
        draws=draws, against_draws=1 - draws - 0.01, survives=not against and draws >= 0.95,
    )  # fmt: skip
    one = Survival(
        metric="AP", protocol=PRESETS["coco"], values={"x": 0.4, "y": 0.4 - difference}, situations=made, claims=[claim],
        replicates=replicates, level=0.95, suspects=10, notes=notes,
    )  # fmt: skip
    return {
        "sentences": one.sentences(),
        "table": one.table(claim),
        "smallest": said(claim.smallest),
        "shown": [situation.shown(name) for situation in made for name in ("x", "y")],
        "document": said(one.to_dict()),
        "html": said(one._repr_html_()),
    }


for _situations, _replicates, _difference in itertools.product((0, 1, 2, 3, 5), (0, 200), (0.1, 0.0)):
    KEPT.add(
        f"survival {_situations} {_replicates} {_difference}", survived, _situations, _replicates, _difference, 0.96,
        ("A note.",) * (_situations == 2),
    )  # fmt: skip


def explained(shares, error, same, band):
    made = [
        Share(
            decision=f"d{at}",
            decisions=(f"d{at}",),
            before="yes",
            after="no",
            value=at / 10,
            exact=Fraction(at, 10),
            error=error,
        )
        for at in range(shares)
    ]
    target = PRESETS["coco"] if same else PRESETS["voc2012"]
    one = Explanation(
        metric="AP", source=PRESETS["coco"], target=target, source_value=0.25, target_value=0.25 + shares / 10,
        source_band=(0.2, 0.3) if band else (0.25, 0.25), target_band=(0.2, 0.3) if band == 1 else (0.35, 0.35), shares=made,
        chain=[Step(decision="d0", value=0.3, change=0.05, classes=[("cat", 0.1)], changed=3)], error=error, evaluations=7,
        notices={"zero_sized_boxes": 2} if shares == 2 else {}, matchings=5,
    )  # fmt: skip
    return {
        "heading": one.heading,
        "sentences": one.sentences(),
        "remarks": one.remarks(),
        "document": said(one.to_dict()),
        "html": said(one._repr_html_()),
    }


for _shares, _error, _same, _band in itertools.product((0, 1, 2, 3), (0.0, 0.0123), (False, True), (0, 1, 2)):
    KEPT.add(f"explanation {_shares} {_error} {_same} {_band}", explained, _shares, _error, _same, _band)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
