"""Tests of significance, corrections, groups and distributions on small columns are the figures that are kept."""

from __future__ import annotations

import functools
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from kept import Kept, said
from test_kept_statistics import CLUSTERS, results

import detmap
from detmap import panoptic, statistics
from detmap.statistics import clusters, distributions, draws, grouping, intervals, tests

KEPT = Kept("tests", digits=12)


def column(size, of):
    rng = np.random.default_rng([size, of])
    return rng.random(size) if of % 2 else rng.integers(0, 5, size) / 4


def significant(size, of, name):
    first, second = column(size, of), column(size, of + 2)
    return [
        said(tests.TESTS[name](one, other), 12) for one, other in ((first, second), (second, first), (first, first))
    ]


for _name in tests.TESTS:
    for _size in (0, 1, 2, 3, 7, 14, 19, 20, 21, 49, 50, 51, 52):
        for _of in (0, 1):
            if _name != "randomisation" or _size <= 20 or (_size == 51 and _of):
                KEPT.add(f"{_name} of {_size}, {_of}", significant, _size, _of, _name)
for _permutations in (10, 100, 1023, 1024, 1025):
    KEPT.add(
        f"randomisation with {_permutations}",
        lambda count: [said(tests.randomisation(column(10, of), column(10, of + 2), count, 3), 12) for of in (0, 1)],
        _permutations,
    )
for _first, _second in (([], []), ([1], [1, 2]), ([0.5, math.nan], [0.5, 1]), ([[1, 2]], [[1, 2]])):
    KEPT.add(
        f"paired {_first} {_second}",
        lambda one, two: [said(test(one, two)) for test in tests.TESTS.values()],
        _first,
        _second,
    )

P_VALUES = (
    [],
    [0.01],
    [0.04, 0.01],
    [0.5, 0.5, 0.001],
    [0.01, 0.02, 0.03, 0.04],
    [1.0, 0.9, 0.0],
    [math.nan, 0.01, 0.03],
    [0.3] * 5,
)
for _values in P_VALUES:
    KEPT.add(
        f"corrections of {_values}",
        lambda values: {name: said(tests.adjust(values, name), 12) for name in tests.CORRECTIONS},
        _values,
    )
KEPT.add("promises", lambda: [tests.promise(name, alpha) for name in tests.CORRECTIONS for alpha in (0.05, 0.123456)])
KEPT.add(
    "enough drawn",
    lambda: said(
        {
            (permutations, size, name): tests.enough_drawn(permutations, size, name, alpha)
            for permutations in (18, 19, 20, 38, 39, 58, 59, 60, 99, 100)
            for size in (1, 2, 3, 5)
            for name in tests.CORRECTIONS
            for alpha in (0.05,)
        }
    ),
)


def letters(count):
    """Groups of some models for every set of pairs that are apart, or for many sets of many models."""
    names = [f"m{at}" for at in range(count)]
    pairs = list(itertools.combinations(names, 2))
    chosen = (
        itertools.product((0, 1), repeat=len(pairs))
        if count < 5
        else np.random.default_rng(count).integers(0, 2, (40, len(pairs)))
    )
    return [" ".join(grouping.group_letters(names, itertools.compress(pairs, one)).values()) for one in chosen]


for _count in (0, 1, 2, 3, 4, 6, 9):
    KEPT.add(f"letters of {_count}", letters, _count)
KEPT.add("letters", lambda: " ".join(map(grouping.letter, (0, 1, 25, 26, 27, 51, 52, 701, 702, 703))))
KEPT.add(
    "distributions",
    lambda: {
        "t": [
            said(distributions.t_test(mean, error, of), 12)
            for mean, error in ((0, 0), (1, 0), (0, 1), (1, 1), (2.5, 1), (40, 2))
            for of in (1, 2, 30, 1e6)
        ],
        "beta": [
            said(distributions.incomplete_beta(a, b, x), 12)
            for a, b, x in itertools.product((0.5, 3, 20), (0.5, 7), (0, 0.1, 0.5, 0.9, 1))
        ],
        "quantile": [
            said(distributions.t_quantile(p, of), 9)
            for p, of in itertools.product((0.001, 0.3, 0.5, 0.9, 0.975, 0.99999), (1, 2, 7.5, 100))
        ],
    },
)  # fmt: skip
KEPT.add(
    "draws",
    lambda: {
        "drawn": [
            said(draws.drawn(size, seed, r)) for size in (0, 1, 2, 9, 40) for seed, r in ((0, 0), (0, 1), (7, 0))
        ],
        "exchanged": [
            said(draws.exchanged(size, seed, r)) for size in (0, 1, 7, 8, 9, 40) for seed, r in ((0, 0), (3, 2))
        ],
        "exchanges": [said(draws.exchanges(9, 2, begin, end)) for begin, end in ((0, 1), (1, 4))],
    },
)
for _check, _values in (
    (draws.check_seed, (0, -1, 1.5, True, 2**63, 2**64, "1", None)),
    (draws.check_replicates, (199, 200, 0, 1, -1, 200.0, "200", True)),
    (draws.check_replicates, (2,)),
    (statistics.bootstrap, ()),
):
    for _value in _values:
        KEPT.add(
            f"{_check.__name__} {_value!r}" + ("" if len(_values) > 1 else " alone"),
            lambda check, value: repr(check(value)),
            _check,
            _value,
        )


def units(of, images=6, name="images"):
    made = clusters.units_among(None if of is None else np.array(of), images, name)
    counts = np.array([3, 0, 2, 5, 0, 1])[:images]
    return {
        "units": said(made),
        "totals": said(made.totals(np.array([0, 2, 2, 3, 5]), np.array([1, 2, 3, 4, 5]))),
        "any": said(made.any_of(counts > 2)),
        "over": said(made.over_images(np.arange(10, 16))),
        "balance": clusters.balanced(made.totals(np.arange(images), counts)),
        "sentence": clusters.independent(made.name),
    }


for _of in (None, [0, 0, 1, 1, 2, 2], [5, 1, 5, 1, 5, 3], ["b", "a", "b", "c", "c", "c"]):
    KEPT.add(f"units {_of}", units, _of)
KEPT.add(
    "balance",
    lambda: said([clusters.balanced(np.array(one)) for one in ([1, 1, 1], [3, 1], [9, 0, 0], [2, 3, 4, 5], [1])], 12),
)


def arithmetic():
    """Intervals of made-up replicates near both ends, without spread, and of few units."""
    rng = np.random.default_rng(2)
    made = []
    for estimate, spread, images in itertools.product((0.0, 0.01, 0.5, 0.97, 1.0), (0.0005, 0.002, 0.2), (4, 12, 300)):
        replicates = np.clip(estimate + spread * rng.normal(size=200), 0, 1)
        jackknife = np.clip(estimate + spread * rng.normal(size=images) / images, 0, 1)
        made.append(
            {
                "error": intervals.standard_error(replicates, jackknife, images),
                "jump": intervals.jump(jackknife),
                "effective": intervals.effective(jackknife),
                "trials": intervals.trials(estimate, spread),
                "tails": intervals.bca_tails(replicates, estimate, jackknife, 0.05) if False else None,
            }
        )
    return [said(one, 11) for one in made]


KEPT.add("arithmetic of intervals", arithmetic)
KEPT.add("nearest", lambda: said([intervals.nearest(t, k) for t in (1, 10) for k in (1, 2, 80)]))
KEPT.add(
    "freedom",
    lambda: said([intervals.freedom(i, g, b) for i in (2, 9, 300) for g in (1, 5) for b in (None, 0.3, 4.5)], 12),
)


def permuted(categories, metric, unit):
    models = {name: one.tally for name, one in results().items()}
    made = statistics.permute(models["one"], models["other"], 300, 4, metric, categories=categories, clusters=unit)
    return {
        "p": said(made.p_values(), 12),
        "drawn": made.drawn,
        "of metric": made.p_value(made.metrics[0]),
        "columns": made.columns,
        "intervals": [said(made.interval(level), 12) for level in (0.5, 0.95)],
        "support": said(made.support),
    }


for _categories in (False, True):
    for _metric in (None, "AP75", "AR_10", "AP_small"):
        for _unit in (None, CLUSTERS):
            KEPT.add(f"permuted {_categories} {_metric} {_unit is None}", permuted, _categories, _metric, _unit)


PANOPTIC = Path(__file__).resolve().parents[2] / "fixtures" / "panoptic"


@functools.cache
def segmented():
    """Two models of panoptic segmentation on the same images."""
    return {
        name: panoptic.evaluate(PANOPTIC / "ground_truth.json", PANOPTIC / f"{name}.json")
        for name in ("before", "after")
    }


def segments(unit):
    one, other = segmented().values()
    made = statistics.bootstrap(one, 200, 2, clusters=unit)
    tested = statistics.permute(one.tally, other.tally, 200, 3, categories=True, clusters=unit)
    compared = detmap.compare(segmented(), 200, 1, permutations=250, clusters=unit)
    return {
        "intervals": said(made.to_dict(0.9), 12),
        "balance": said([made.balance_of(at) for at in range(9)], 12),
        "replicates": said(made.replicates, 12),
        "jackknife": said(made.jackknife, 12),
        "p": said(tested.p_values(), 12),
        "ends": said(tested.interval(0.9), 12),
        "comparison": str(compared),
        "document": said(compared.to_dict(), 12),
    }


for _unit in (None, [0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12]):
    KEPT.add(f"panoptic {_unit is None}", segments, _unit)
for _metric in ("SQ", "RQ_things", "PQ_stuff", "AP"):
    KEPT.add(
        f"panoptic {_metric}",
        lambda metric: str(detmap.compare(segmented(), 200, 1, permutations=250, metric=metric)),
        _metric,
    )


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
