"""Comparisons of rankings query by query, against scipy."""

from __future__ import annotations

import json
import math

import naive_statistics
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import examples

import detmap
import detmap.retrieval
from detmap import cli, statistics
from detmap.statistics import distributions, draws
from detmap.statistics.queries import too_few_queries

scipy_stats = pytest.importorskip("scipy.stats", reason="the reference for tests of significance")

VALUES = st.lists(st.integers(0, 20).map(lambda v: v / 20), min_size=2, max_size=70)


@given(VALUES, st.integers(0, 1000))
def test_paired_t_is_scipys(first, seed):
    second = np.clip(np.array(first) + np.random.default_rng(seed).normal(0.02, 0.2, len(first)), 0, 1)
    assume(np.ptp(second - first) > 1e-6)
    made, expected = statistics.paired_t(first, second), scipy_stats.ttest_rel(second, first)
    assert made.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert made.p == pytest.approx(expected.pvalue, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("freedom", [1, 2, 5, 30, 1000, 100_000])
@pytest.mark.parametrize("t", [1e-9, 0.1, 1.0, 1.96, 3.0, 8.0, 40.0])
def test_student(freedom, t):
    assert distributions.t_test(t, 1.0, freedom) == pytest.approx(2 * scipy_stats.t.sf(t, freedom), rel=1e-9)


@given(VALUES, st.integers(0, 1000), st.booleans())
def test_wilcoxon_is_scipys(first, seed, tied):
    rng = np.random.default_rng(seed)
    second = first + (rng.integers(-1, 3, len(first)) / 8 if tied else rng.normal(0.02, 0.2, len(first)))
    d = second - np.array(first)
    d = d[d != 0]
    made = statistics.wilcoxon(first, second)
    if not d.size:
        assert made == (0.0, 1.0, 0)
        return
    exact = d.size <= 50 and np.unique(np.abs(d)).size == d.size
    expected = scipy_stats.wilcoxon(d, method="exact" if exact else "asymptotic", correction=False)
    assert made.n == d.size
    assert made.statistic == expected.statistic
    assert made.p == pytest.approx(expected.pvalue, rel=1e-9)


def test_wilcoxon_of_equal_queries_is_certain():
    assert statistics.wilcoxon([0.25, 0.5], [0.25, 0.5]) == (0.0, 1.0, 0)


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=9))
def test_randomisation_over_all_assignments(pairs):
    first, second = zip(*pairs, strict=True)
    made = statistics.randomisation([a / 10 for a in first], [b / 10 for b in second])
    assert made.p == naive_statistics.randomisation_p(first, second)


@given(VALUES, st.integers(0, 1000))
def test_randomisation_equals_values_exchanged_for_real(first, seed):
    """Every drawn assignment is made: the values of some queries change sides, and both means are taken anew."""
    second = np.random.default_rng(seed).permutation(first)
    assume(2 ** len(first) > 60)
    swaps = draws.stream(seed, 0, draws.QUERIES).integers(0, 2, (60, len(first)), np.uint8)
    extreme = 0
    for row in swaps:
        one, other = np.where(row, second, first), np.where(row, first, second)
        extreme += abs(other.mean() - one.mean()) >= abs(second.mean() - np.mean(first)) - 1e-12
    assert statistics.randomisation(first, second, 60, seed).p == (1 + extreme) / 61


def test_randomisation_drawn():
    rng = np.random.default_rng(1)
    first = rng.random(40)
    second = first + rng.normal(0.05, 0.15, 40)
    made = statistics.randomisation(first, second, 200_000, seed=3)
    assert made == statistics.randomisation(first, second, 200_000, seed=3)
    assert made.p == pytest.approx(statistics.paired_t(first, second).p, rel=0.1)
    assert statistics.randomisation(first, first + 1, 1000).p == 1 / 1001


def test_queries_without_a_value_are_left_out():
    a, b = [0.1, math.nan, 0.3, 0.5], [0.2, 0.4, 0.1, 0.9]
    for test in statistics.TESTS.values():
        assert test(a, b) == test([0.1, 0.3, 0.5], [0.2, 0.1, 0.9])
        with pytest.raises(detmap.OptionError, match="two values of every query"):
            test(a, b[:3])
    assert all(math.isnan(test([], []).p) for name, test in statistics.TESTS.items() if name != "wilcoxon")
    assert math.isnan(statistics.paired_t([1], [2]).p)


def test_bootstrap_over_queries():
    rng = np.random.default_rng(2)
    values = {"map": rng.random(25), "p10": np.where(rng.random(25) < 0.2, np.nan, rng.random(25))}
    made = statistics.bootstrap_queries(values, 200, 9)
    for r in range(30):
        drawn = np.repeat(np.arange(25), statistics.drawn(25, 9, r))
        expected = [np.nanmean(column[drawn]) for column in values.values()]
        assert made.replicates[r] == pytest.approx(expected, rel=1e-13)
    assert made.jackknife[3] == pytest.approx([np.nanmean(np.delete(c, 3)) for c in values.values()], rel=1e-13)
    assert made.support.tolist() == [25, int((~np.isnan(values["p10"])).sum())]
    with pytest.raises(detmap.OptionError, match="one value of every query"):
        statistics.bootstrap_queries({"a": [1.0], "b": [1.0, 2.0]})


@pytest.mark.parametrize("method", ["t", "bca", "percentile"])
@pytest.mark.parametrize(("zeros", "end"), [(2, 1), (38, 0)])
def test_intervals_are_cut_at_the_limits_of_their_metric(method, zeros, end):
    """Student's t leaves the range of a mean near an end of it: CMC@20 of few queries reached 1.0063."""
    values = np.repeat([0.0, 1.0], [zeros, 40 - zeros])
    plain = statistics.bootstrap_queries({"cmc": values}, 400, method=method)
    both = {"cmc": values, "dcg": 2 * values}
    made = statistics.bootstrap_queries(both, 400, method=method, limits={"cmc": (0, 1)})
    (low, high), other = made.interval()
    assert (low, high) == (max(plain.interval()[0, 0], 0), min(plain.interval()[0, 1], 1))
    assert other.tolist() == (2 * plain.interval()[0]).tolist()
    assert (not 0 <= plain.interval()[0, end] <= 1) == (method == "t")
    assert (made - made).limits is None
    assert math.isnan(statistics.bootstrap_queries({"cmc": values[:3]}, 200, limits={"cmc": (0, 1)}).interval()[0, 0])
    with pytest.raises(detmap.OptionError, match="'dcg' has a value of a query beyond its limits, 0 and 1"):
        statistics.bootstrap_queries(both, 400, limits={"dcg": (0, 1)})


def test_compare_queries():
    rng = np.random.default_rng(2)
    base = rng.random(60)
    systems = {"a": base, "b": base + rng.normal(0, 0.01, 60), "c": base + 0.2 + rng.normal(0, 0.05, 60)}
    rows = statistics.compare_queries(systems, statistics.TESTS, replicates=200)
    assert list(statistics.compare_queries(systems, replicates=200)[0].p) == ["randomisation"]
    assert [(row.first, row.second) for row in rows] == [("a", "b"), ("a", "c"), ("b", "c")]
    for name in statistics.TESTS:
        assert [row.adjusted[name] for row in rows] == pytest.approx(naive_statistics.holm([r.p[name] for r in rows]))
        assert rows[0].adjusted[name] > 0.05 > rows[1].adjusted[name]
    assert rows[1].low < 0.2 < rows[1].high
    assert not any(row.disagrees() for row in rows)
    assert rows[0]._replace(low=0.001, high=0.1).disagrees()
    assert rows[1]._replace(low=-0.1, high=0.1).disagrees()
    assert not rows[1]._replace(low=math.nan, high=math.nan).disagrees()
    assert not rows[0]._replace(p={"t": 0.5}, low=0.001, high=0.1).disagrees()
    with pytest.raises(detmap.OptionError, match="unknown test 'z'"):
        statistics.compare_queries(systems, ["z"])
    with pytest.raises(detmap.OptionError, match="two systems"):
        statistics.compare_queries({"a": base})


@pytest.mark.compiled
def test_runs_compared_on_the_command_line(tmp_path, capsys):
    rng = np.random.default_rng(5)
    (tmp_path / "qrels").write_text("".join(f"q{q} 0 d{d} 1\n" for q in range(30) for d in range(0, 20, 4)))
    columns = {}
    for name, noise in (("a", 0.1), ("b", 0.1), ("c", 3.0)):
        lines = [
            f"q{q} Q0 d{d} 1 {(d % 4 == 0) + rng.normal(0, 0.5 + noise):.6f} x\n"
            for q in range(30 - (name == "b"))
            for d in range(20)
        ]
        (tmp_path / name).write_text("".join(lines))
        result = detmap.retrieval.evaluate_run(str(tmp_path / "qrels"), str(tmp_path / name))
        values = dict(zip(result.query_ids.tolist(), result.per_query["AP"].tolist(), strict=True))
        columns[str(tmp_path / name)] = [values.get(query, math.nan) for query in sorted(f"q{q}" for q in range(30))]
    expected = statistics.compare_queries(columns, statistics.TESTS, seed=4)
    tests = ",".join(statistics.TESTS)
    arguments = ["trec", str(tmp_path / "qrels"), *columns, "--seed", "4", "--tests", tests, "--compare"]
    assert cli.main([*arguments, "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)["comparisons"]
    assert [row["queries"] for row in made] == [29, 30, 29]
    for row, one in zip(made, expected, strict=True):
        assert (row["difference"], row["low"], row["high"]) == (one.difference, one.low, one.high)
        assert {name: row[f"{name} (Holm)"] for name in statistics.TESTS} == one.adjusted
    assert made[0]["t (Holm)"] > 0.05 > made[1]["t (Holm)"]
    assert [row["disagrees"] for row in made] == [False, False, False]
    assert cli.main(arguments) == 0
    said = capsys.readouterr().out
    assert "wilcoxon (Holm)" in said
    assert "<0.0001" in said
    assert "Holm: corrected over 3 pairs of runs" in said
    assert "~" not in said
    assert cli.main([*arguments, "--metrics", "P@5"]) == 0
    assert "P@5" in capsys.readouterr().out
    assert cli.main([*arguments, "nDCG@3"]) == 2


def test_many_pairs_take_more_permutations(monkeypatch):
    """Known before drawing: with 100,000 no p of so many pairs, or at such a level, could be significant."""
    asked = []

    def drawn(first, second, permutations, seed):
        asked.append(permutations)
        return statistics.randomisation(first, second, 1, seed)

    monkeypatch.setattr("detmap.statistics.queries.randomisation", drawn)
    rng = np.random.default_rng(0)
    systems = {name: rng.random(30) for name in "abcd"}
    statistics.compare_queries(systems, replicates=200)
    assert set(asked) == {100_000}
    asked.clear()
    statistics.compare_queries(systems, replicates=200, level=0.9999)
    assert set(asked) == {120_000}


@pytest.mark.parametrize(
    ("queries", "correction", "fewest"),
    [
        ([5], "holm", 6),
        ([6], "holm", 0),
        ([6, 6, 6], "holm", 7),
        ([7, 2, 2], "holm", 0),
        ([6, 6, 6], "bh", 0),
        ([], "holm", 0),
    ],
)
def test_too_few_queries_are_said(queries, correction, fewest):
    said = too_few_queries(queries, correction)
    assert said.endswith(f": {max(queries)}, and it takes {fewest}") if fewest else said == ""
    if len(queries) == 1:  # what is said is what the test gives
        values = np.arange(1.0, 1 + queries[0])
        assert (statistics.randomisation(np.zeros(queries[0]), values).p <= 0.05) == (not said)
