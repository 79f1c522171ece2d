"""The waist and the AP core: worked examples, the naive twin, validation."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import naive
import naive_tools
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples, same_bits
from workloads import REAL_DATA

import detmap
from detmap.hits import GRIDS, INTERPOLATIONS, Curve, Hits

WORKED = REAL_DATA.parent / "reference" / "worked_examples.json"

#: relevance in rank order, positives, interpolation, AP as a fraction
EXAMPLES = [
    ([1, 0, 0, 1, 1], 3, "step", Fraction(7, 10)),
    ([1, 1, 1], 3, "step", Fraction(1)),
    ([1, 0, 1, 0, 0, 1, 0, 0, 1, 1], 5, "step", Fraction(28, 45)),
    ([1, 0, 1, 0, 0, 1, 0], 3, "11-point", Fraction(8, 11)),
    ([1, 0, 1, 0, 0, 1, 0], 3, "all-point", Fraction(13, 18)),
    # re-identification: the trapezoid, and the step sum, over 5 positives
    ([0, 1, 1, 1, 0], 5, "trapezoid", Fraction(37, 120)),
    ([1, 0, 0, 1, 1], 5, "trapezoid", Fraction(59, 150)),
    ([1, 0, 1, 1, 0], 5, "trapezoid", Fraction(11, 24)),
    ([0, 1, 1, 1, 0], 5, "step", Fraction(23, 60)),
    ([1, 0, 0, 1, 1], 5, "step", Fraction(21, 50)),
    ([1, 0, 1, 1, 0], 5, "step", Fraction(29, 60)),
    ([0, 1, 1, 1, 0], 4, "trapezoid", Fraction(37, 96)),
    ([1, 0, 1, 1, 0], 4, "trapezoid", Fraction(55, 96)),
    ([1, 0, 1], 2, "trapezoid", Fraction(19, 24)),  # with the rank before, not with the hit before (11/12)
    ([0, 1, 1, 1, 0], 3, "step", Fraction(23, 36)),
]


@pytest.mark.parametrize(("relevance", "positives", "interpolation", "exact"), EXAMPLES)
def test_worked_example(relevance, positives, interpolation, exact):
    ranks = [Fraction(rank) for rank in naive.ranks_of(relevance)]
    twin = {
        "step": naive.step_ap,
        "all-point": naive.all_point_ap,
        "trapezoid": naive.trapezoid_ap,
        "trapezoid-hits": naive.trapezoid_hits_ap,
        "11-point": lambda r, p: naive.n_point_ap(r, p, GRIDS["11-point"].tolist()),
    }[interpolation](ranks, positives)
    assert twin == exact
    got = detmap.average_precision(relevance, positives=positives, interpolation=interpolation)
    assert abs(got - float(twin)) <= 1e-15
    hits = detmap.Hits.from_ranks([naive.ranks_of(relevance)], [positives])
    assert same_bits(hits.average_precision(interpolation)[0], got)


@pytest.mark.skipif(not WORKED.is_file(), reason="../shared/reference/worked_examples.json is absent")
def test_the_rankings_of_the_reference():
    """The file holds what is written above, and no ranking that is not."""
    document = json.loads(WORKED.read_text())
    seen = 0
    for entry in document["average_precision_of_a_ranking"]:
        ranks = entry.get("hit_ranks") or naive.ranks_of(entry["relevance"])
        positives = entry.get("positives", len(ranks))
        for key, interpolation in (("exact", entry["convention"]), ("all_point", "all-point")):
            if key in entry:
                got = detmap.Hits.from_ranks([ranks], [positives]).average_precision(interpolation)[0]
                assert abs(got - float(Fraction(entry[key]))) <= 1e-15, entry["id"]
                seen += 1
    reid = document["reid"]
    for name, relevance in reid["relevance"].items():
        for key, interpolation, positives in (
            ("trapezoid_positives_5", "trapezoid", 5),
            ("step_positives_5", "step", 5),
            ("step_normalized_by_hits", "step", None),
        ):
            got = detmap.average_precision(relevance, positives=positives, interpolation=interpolation)
            assert abs(got - float(Fraction(reid[key][name]))) <= 1e-15, (key, name)
            seen += 1
    for name, value in reid["true_gallery_counts"]["trapezoid"].items():
        if name.endswith("red"):
            got = detmap.average_precision(reid["relevance"][name], positives=4, interpolation="trapezoid")
            assert abs(got - float(Fraction(value))) <= 1e-15
            seen += 1
    hashing = document["hashing"]
    labels = np.array(hashing["query_labels"]), np.array(hashing["gallery_labels"])
    relevant = (labels[0] @ labels[1].T) > 0
    for row, distances, exact in zip(relevant, hashing["hamming"], hashing["ap"], strict=True):
        got = detmap.average_precision(row, scores=-np.array(distances))  # ties in index order
        assert abs(got - float(Fraction(exact))) <= 1e-15
        seen += 1
    binary = document["classification"]["binary"]
    got = detmap.average_precision(binary["y_true"], binary["y_score"])
    assert abs(got - float(Fraction(binary["exact"]))) <= 1e-15
    assert seen >= 5 + 12 + 2 + 3


ranking = st.lists(st.booleans(), max_size=25)
TWINS = {
    "step": naive.step_ap,
    "all-point": naive.all_point_ap,
    "11-point": naive.voc_ap_11,
    "101-point": lambda ranks, positives: naive.n_point_ap(ranks, positives, naive.RECALL_THRESHOLDS),
    "trapezoid": naive.trapezoid_ap,
    "trapezoid-hits": naive.trapezoid_hits_ap,
}


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(ranking, st.integers(0, 3)), max_size=5), st.sampled_from(INTERPOLATIONS))
def test_every_interpolation_equals_its_twin(rows, interpolation):
    """To the last bit, one by one and together."""
    ranks = [naive.ranks_of(relevance) for relevance, _ in rows]
    positives = [len(found) + missed for found, (_, missed) in zip(ranks, rows, strict=True)]
    expected = [TWINS[interpolation](found, n) for found, n in zip(ranks, positives, strict=True)]
    assert same_bits(
        detmap.Hits.from_ranks(ranks, positives).average_precision(interpolation), np.array(expected, float)
    )
    for (relevance, _), n, value in zip(rows, positives, expected, strict=True):
        assert same_bits(detmap.average_precision(relevance, positives=n, interpolation=interpolation), value)


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.1, 0.5, 0.5, -0.0, 0.0, 1e300, -math.inf])), max_size=30)
)
def test_ranking_by_score(items):
    """Higher first, equal scores in their order; any relevance above 0 counts."""
    relevance, scores = [r for r, _ in items], [s for _, s in items]
    ranks = naive.ranks_of([r > 0 for r in relevance], scores)
    assert same_bits(detmap.average_precision(relevance, scores), naive.step_ap(ranks, len(ranks)))


def test_many_rankings_on_threads():
    """More than a block of rankings, whatever the number of threads."""
    rng = np.random.default_rng(0)
    ranks = [np.flatnonzero(rng.random(30) < 0.3) + 1 for _ in range(300)]
    hits = detmap.Hits.from_ranks(ranks)
    assert len(hits) == 300
    for interpolation in INTERPOLATIONS:
        expected = hits.average_precision(interpolation, threads=1)
        assert same_bits(expected, [TWINS[interpolation](r.tolist(), len(r)) for r in ranks])
        for threads in (2, 7, None):
            assert same_bits(hits.average_precision(interpolation, threads=threads), expected)


def test_interpolate_and_recall():
    hits = detmap.Hits.from_ranks([[1, 3], [], []], [4, 2, 0], [9, 0, 5])
    precision, scores = hits.interpolate([0.0, 0.5, 0.75])
    assert same_bits(precision, np.array([[1.0, 2 / 3, 0.0], [0.0, 0.0, 0.0], [np.nan] * 3]))
    assert scores.shape == (0, 3)
    assert same_bits(hits.recall(), np.array([0.5, 0.0, np.nan]))
    assert hits.counts.tolist() == [2, 0, 0]
    assert hits.items.tolist() == [9, 0, 5]
    assert not hits.ranks.flags.writeable


def test_undefined_and_zero():
    for interpolation in INTERPOLATIONS:
        assert math.isnan(detmap.average_precision([], interpolation=interpolation))
        assert math.isnan(detmap.average_precision([0, 0], interpolation=interpolation))
        assert detmap.average_precision([0, 0], positives=2, interpolation=interpolation) == 0.0
        assert detmap.average_precision([1], interpolation=interpolation) == pytest.approx(1.0, abs=1e-15)
    assert detmap.Hits.from_ranks([]).average_precision().shape == (0,)


def test_the_epsilon_of_coco():
    assert detmap.average_precision([1], epsilon=2.0**-52) == 1 / (1 + 2.0**-52) < 1.0


# --------------------------------------------------------------------------------------------------------- validation


@pytest.mark.parametrize(
    ("ranks", "more", "says"),
    [
        ([[3, 1]], {}, "ranking 0: ranks must be positive and strictly ascending"),
        ([[1], [2, 2]], {}, "ranking 1: ranks must be positive and strictly ascending"),
        ([[0, 1]], {}, "ranking 0: ranks must be positive"),
        ([[-5]], {}, "ranking 0: ranks must be positive"),
        ([[1, 2], [3]], {"positives": [2, 0]}, "ranking 1: more hits than positives"),
        ([[1, 4]], {"items": [3]}, "ranking 0: a hit beyond the last item"),
        ([[1], [2]], {"positives": [1]}, "'positives': 1 values for 2 rankings"),
        ([[1]], {"items": [1, 2]}, "'items': 2 values for 1 rankings"),
        ([[1.5]], {}, "'ranking 0': expected a flat sequence of integers"),
        ([[[1]]], {}, "'ranking 0': expected a flat sequence of integers"),
        ([["1"]], {}, "'ranking 0': expected a flat sequence of integers"),
        ([[1]], {"positives": [[1]]}, "'positives': expected a flat sequence of integers"),
    ],
)
def test_ranks_that_cannot_be(ranks, more, says):
    with pytest.raises(detmap.InputError) as caught:
        detmap.Hits.from_ranks(ranks, **more)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "more", "says"),
    [
        (([1, 0], [0.5]), {}, "1 scores for 2 items"),
        (([1, 0], [0.5, math.nan]), {}, "a score is NaN"),
        (([1.0, math.nan],), {}, "a relevance is NaN"),
        (([[1, 0]],), {}, "expected a flat sequence of relevances"),
        ((["yes"],), {}, "expected a flat sequence of relevances"),
        (([1, 1],), {"positives": 1}, "at least 2, the number of relevant items in the ranking (got 1)"),
        (([1],), {"positives": True}, "must be an integer"),
        (([1],), {"positives": 2.0}, "must be an integer"),
    ],
)
def test_rankings_that_cannot_be(arguments, more, says):
    for function in (detmap.average_precision, detmap.precision_recall_curve):
        with pytest.raises(detmap.InputError) as caught:
            function(*arguments, **more)
        assert says in str(caught.value)


def test_an_unknown_interpolation():
    with pytest.raises(
        detmap.OptionError, match="one of: step, all-point, trapezoid, trapezoid-hits, 11-point, 101-point"
    ):
        detmap.average_precision([1], interpolation="12-point")


# -------------------------------------------------------------------------------------------------------------- curves


@settings(max_examples=examples(200))
@given(ranking, st.integers(0, 3), st.sampled_from([0.0, 2.0**-52]))
def test_precision_recall_curve(relevance, missed, epsilon):
    positives = sum(relevance) + missed
    curve = detmap.precision_recall_curve(relevance, positives=positives, epsilon=epsilon)
    precision, recall = naive.precision_recall(relevance, positives, epsilon)
    assert same_bits(curve.precision, precision)
    assert same_bits(curve.recall, recall)
    assert same_bits(curve.interpolated, [max(precision[i:]) for i in range(len(precision))])
    assert curve.scores.shape == (0,)


def test_the_curve_is_sorted_by_score():
    curve = detmap.precision_recall_curve([0, 1, 1, 0], [0.1, 0.9, 0.3, 0.3])
    assert curve.scores.tolist() == [0.9, 0.3, 0.3, 0.1]
    assert curve.recall.tolist() == [0.5, 1.0, 1.0, 1.0]
    assert curve.precision.tolist() == [1.0, 1.0, 2 / 3, 0.5]


@settings(max_examples=examples(400))
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([-1.5, -0.5, 0.0, 0.25, 0.5, 0.75, 0.9])), max_size=25),
    st.integers(0, 5),
)
def test_best_f1(items, missed):
    """A tied group enters whole, and of equally good scores the highest is taken: mostly ties here."""
    relevance, scores = [r for r, _ in items], [s for _, s in items]
    positives = sum(relevance) + missed
    best = detmap.precision_recall_curve(relevance, scores, positives=positives).best_f1(positives)
    expected = naive.best_f1(scores, relevance, [False] * len(items), positives)
    assert same_bits([best[name] for name in ("score", "f1", "precision", "recall")], expected)


def test_best_f1_by_hand():
    """Within a group of equal scores the lucky order does not count: 1 of 2 at 0.9, not 1 of 1."""
    curve = detmap.precision_recall_curve([1, 0, 1], [0.9, 0.9, 0.2])
    best = curve.best_f1(2)
    assert (best["score"], best["precision"], best["recall"]) == (0.2, 2 / 3, 1.0)
    assert best["f1"] == pytest.approx(4 / 5, abs=1e-15)
    equal = detmap.precision_recall_curve([1, 0, 0, 1], [0.9, 0.8, 0.7, 0.6]).best_f1(2)
    assert equal["score"] == 0.9  # F1 is 2/3 at 0.9 and at 0.6
    none = Curve.from_flags(np.zeros(0, bool), np.zeros(0), 3).best_f1(3)
    assert all(math.isnan(value) for value in none.values())


@settings(max_examples=examples(100))
@given(st.lists(st.booleans(), max_size=30), st.integers(0, 9), st.booleans())
def test_straight_lines_are_read_as_numpy_reads_them(flags, missed, tail):
    """The kernel knows the hits alone; the twin makes every point of the curve and calls numpy.interp."""
    positives = sum(flags) + missed
    hits = Hits.from_ranks([[], np.flatnonzero(flags) + 1], [3, positives], [2, len(flags)])
    nothing, made = hits.average_precision("101-linear-tail" if tail else "101-linear").tolist()
    assert nothing == 0.0
    assert same_bits(made, naive_tools._linear_ap(flags, positives, not tail) if positives else math.nan)
