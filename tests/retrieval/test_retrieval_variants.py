"""Abstention, variants of queries, and the overlap of rankings: worked values, MTEB's own functions, bad input."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from legs import examples

from detmap.errors import InputError, OptionError
from detmap.retrieval import (
    abstention_area,
    confidences,
    evaluate_run,
    neighbor_recall,
    p_mrr,
    rank_biased_overlap,
    robustness,
)


@pytest.mark.parametrize(
    ("sure", "values", "area"),
    [
        ([0.1, 0.2, 0.3, 0.4], [1, 0, 0, 1], 0.2972972972972973),
        ([0.2, 0.1, 0.1, 0.2], [1, 0, 0, 1], 1.0),
        ([0.5] * 4, [1, 0, 0, 1], 0.0),
        ([0.1, 0.2, 0.3], [0.5] * 3, math.nan),
        ([1.0], [0.3], math.nan),
        ([], [], math.nan),
        ([0.1] * 2, [0.1, 0.3], 0.0),
    ],
)
def test_area_of_abstention(sure, values, area):
    found = abstention_area(sure, values)
    assert type(found) is float
    assert found == pytest.approx(area, abs=1e-15, nan_ok=True)


def test_the_area_is_negative_where_confident_answers_are_the_worse_ones():
    assert abstention_area([0.4, 0.3, 0.2, 0.1], [0, 0.25, 0.5, 1]) < 0


def test_confidences_of_queries():
    run = {"a": {"x": 1.0, "y": 4.0, "z": 3.5}, "b": {"x": 2.0}, "c": {}}
    assert confidences(run).tolist() == [4.0, 2.0, 0.0]
    assert confidences(run, "diff1").tolist() == [0.5, 0.0, 0.0]
    assert confidences(run, "std").tolist() == [float(np.std([1.0, 4.0, 3.5])), 0.0, 0.0]


def test_robustness_is_the_mean_of_the_worst_variants():
    qrels = {f"{q}_{v}": {"a": 1} for q in (7, 8) for v in "xy"}
    run = {"7_x": {"a": 1.0}, "7_y": {"b": 2.0, "a": 1.0}, "8_x": {"c": 3.0, "b": 2.0, "a": 1.0}, "8_y": {"a": 1.0}}
    result = evaluate_run(qrels, run, ["nDCG@10", "MRR"])
    assert robustness(result) == (1 / math.log2(3) + 0.5) / 2
    assert robustness(result, "MRR") == (1 / 2 + 1 / 3) / 2
    assert robustness(result, "MRR", group=lambda query: query[-1]) == (1 / 3 + 1 / 2) / 2
    with pytest.raises(OptionError, match="was not evaluated"):
        robustness(result, "map")


def ranked(*documents):
    return {document: -float(rank) for rank, document in enumerate(documents)}


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [(1, 3, 0.6666666666666667), (3, 1, -0.6666666666666667), (2, 2, 0.0), (1, 10, 0.9)],
)
def test_one_document_that_moves(old, new, moved):
    others = [f"x{i}" for i in range(11)]
    runs = [{"q": ranked(*others[: rank - 1], "d", *others[rank - 1 :])} for rank in (old, new)]
    assert p_mrr(*runs, {"q": ["d"]}) == pytest.approx(moved, abs=1e-15)


def test_p_mrr_is_a_mean_over_documents_and_then_over_queries():
    before = {"q": ranked("d1", "d2", "d3"), "p": ranked("a", "b")}
    after = {"q": ranked("d3", "d2", "d1"), "p": ranked("b")}
    assert p_mrr(before, after, {"q": ["d1", "d2"]}) == 0.33333333333333337
    assert p_mrr(before, after, {"q": ["d1", "d2"], "p": ["a"]}) == (0.33333333333333337 + 0.5) / 2
    assert math.isnan(p_mrr(before, after, {}))
    assert math.isnan(p_mrr(before, after, {"q": []}))
    with pytest.raises(InputError, match=r"after: a query of changed is not there \(got 'x'\)"):
        p_mrr({"x": {}}, after, {"x": ["a"]})


@pytest.mark.parametrize(
    ("first", "second", "p", "cut", "extrapolated"),
    [
        ("abcd", "abdc", 0.9, 0.3169, 0.973),
        ("ab", "ba", 0.98, 0.0196, 0.98),
        ("abcde", "abc", 0.9, 0.271, 1.0),
        ("abc", "abcde", 0.9, 0.271, 1.0),
        ("ab", "cd", 0.5, 0.0, 0.0),
        ("a", "a", 0.25, 0.75, 1.0),
        ("", "", 0.5, 1.0, 1.0),
        ("a", "", 0.5, 0.0, 0.0),
    ],
)
def test_overlap_of_rankings(first, second, p, cut, extrapolated):
    assert rank_biased_overlap(first, second, p) == pytest.approx(extrapolated, abs=1e-15)
    assert rank_biased_overlap(first, second, p, extrapolate=False) == pytest.approx(cut, abs=1e-15)


def equation_32(first, second, p):
    """The formula of the paper as it stands."""
    longer, shorter = sorted((first, second), key=len, reverse=True)
    s, last = len(shorter), len(longer)
    common = [len(set(longer[:d]) & set(shorter[:d])) for d in range(last + 1)]
    total = sum(common[d] / d * p**d for d in range(1, last + 1))
    total += sum(common[s] * (d - s) / (s * d) * p**d for d in range(s + 1, last + 1))
    return (1 - p) / p * total + ((common[last] - common[s]) / last + common[s] / s) * p**last


def test_overlap_is_that_of_the_paper():
    for seed in range(examples(300)):
        rng = random.Random(seed)
        names = range(rng.randint(1, 12))
        first, second = (rng.sample(names, rng.randint(1, len(names))) for _ in range(2))
        p = rng.choice([0.1, 0.5, 0.9, 0.98])
        found = rank_biased_overlap(first, second, p)
        assert found == rank_biased_overlap(second, first, p)
        assert found == pytest.approx(equation_32(first, second, p), abs=1e-14)
        assert 0 <= rank_biased_overlap(first, second, p, extrapolate=False) <= found + 1e-14 <= 1 + 2e-14


def test_bad_input_is_refused():
    with pytest.raises(InputError, match=r"second: rank 3: an id is there twice \(got 'a'\)"):
        rank_biased_overlap("ab", "aba")
    for p in (0, 1, 1.5, "0.9", math.nan):
        with pytest.raises(OptionError, match="p must be above 0"):
            rank_biased_overlap("ab", "ab", p)
    with pytest.raises(InputError, match="of one length"):
        abstention_area([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="is NaN"):
        abstention_area([1.0, math.nan], [1.0, 2.0])
    with pytest.raises(OptionError, match="kind"):
        confidences({"q": {"a": 1.0}}, "min")


def test_the_functions_of_mteb_find_the_same():
    theirs = pytest.importorskip("mteb._evaluators.retrieval_metrics", exc_type=ImportError)
    for seed in range(examples(200)):
        rng = random.Random(seed)
        count = rng.randint(1, 30)
        sure, values = ([round(rng.random(), rng.choice([1, 8])) for _ in range(count)] for _ in range(2))
        with np.errstate(invalid="ignore", divide="ignore"):
            wanted = theirs.nauc(np.array(sure), np.array(values))
        if len(set(values)) > 1:  # else theirs is a quotient of rounding errors
            assert abstention_area(sure, values) == wanted
        documents = [f"d{i}" for i in range(12)]
        runs = [
            {q: {d: round(rng.random(), 1) for d in rng.sample(documents, rng.randint(1, 12))} for q in "abc"}
            for _ in range(2)
        ]
        changed = {q: rng.sample(documents, rng.randint(1, 3)) for q in "abc"}
        original, new = ({f"{q}-{end}": run[q] for q in run} for run, end in zip(runs, ("og", "changed"), strict=True))
        assert p_mrr(*runs, changed) == pytest.approx(theirs.calculate_pmrr(original, new, changed), abs=1e-15)
        for query, scores in runs[0].items():
            wanted = theirs.confidence_scores(list(scores.values()))
            for kind in ("max", "std", "diff1"):
                assert confidences({query: scores}, kind)[0] == wanted[kind]


# Approximate neighbours ------------------------------------------------------------------------------------------------


def naive_recall(found, near, exact, bound, k):
    total = 0
    for items, theirs, wanted, ends in zip(found, near, exact, bound, strict=True):
        for item, distance in zip(items[:k], theirs[:k], strict=True):
            total += item >= 0 and (item in wanted[:k] or distance <= ends[k - 1])
    return total / len(found) / k


def test_recall_of_an_approximate_index():
    rng = np.random.default_rng(0)
    for _ in range(examples(40)):
        queries, gallery, k = 4, 30, int(rng.integers(1, 8))
        distances = rng.integers(0, 12, (queries, gallery)).astype(float)
        exact = np.argsort(distances, axis=1, kind="stable")
        bound = np.take_along_axis(distances, exact, 1)
        found = np.stack([row[np.sort(rng.choice(gallery, 8, replace=False) // 2 * 2)] for row in exact])
        found = np.stack([np.r_[list(dict.fromkeys(row)), [-1] * 8][:8] for row in found]).astype(int)
        near = np.take_along_axis(distances, np.maximum(found, 0), 1)
        wanted = naive_recall(found, near, exact, bound, k)
        assert neighbor_recall((near, found), (bound, exact), k) == pytest.approx(wanted, abs=1e-15)
        assert neighbor_recall((-near, found), (-bound, exact), k) == pytest.approx(
            wanted if (bound[:, 0] < bound[:, k - 1]).any() else neighbor_recall((-near, found), (-bound, exact), k)
        )
        alone = naive_recall(found, near, exact, np.full_like(bound, -1), k)
        assert neighbor_recall(found, exact, k) == pytest.approx(alone, abs=1e-15)
    assert neighbor_recall(exact, exact) == 1
    assert math.isnan(neighbor_recall(np.zeros((0, 3), int), np.zeros((0, 3), int)))


def test_neighbours_that_cannot_be_compared():
    for found, exact, k, problem in (
        ([[1, 2]], [[1, 2], [1, 2]], None, "of the same queries"),
        ([[1, 2]], [[1, 2]], 3, "expected 3 exact neighbours"),
        ([[1, 1]], [[1, 2]], None, "there twice"),
        ([[1.5, 1.0]], [[1, 2]], None, "are integers"),
    ):
        with pytest.raises(InputError, match=problem):
            neighbor_recall(found, exact, k)
    with pytest.raises(OptionError, match="k must be"):
        neighbor_recall([[1]], [[1]], 0)
