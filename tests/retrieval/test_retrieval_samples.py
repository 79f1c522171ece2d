"""Scores of samples against scikit-learn and exact twins."""

from __future__ import annotations

import warnings
from fractions import Fraction

import naive_retrieval as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legs import examples

from detmap.errors import InputError, OptionError
from detmap.retrieval import average_precision_score

sizes = st.integers(1, 30)


def both(sklearn, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return average_precision_score(*args, **options), sklearn.average_precision_score(*args, **options)


@given(st.integers(0, 2**32), sizes, st.sampled_from([2, 5, 1000]), st.booleans())
@settings(max_examples=examples(200))
def test_binary_equals_scikit_learn(seed, n, levels, weighted):
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    truth, scores = rng.integers(0, 2, n), rng.integers(0, levels, n) / 7
    weights = rng.integers(0, 4, n) / 4 + 0.0 if weighted else None
    if weighted and not weights.any():
        return
    ours, theirs = both(sklearn, truth, scores, sample_weight=weights)
    assert ours == pytest.approx(theirs, abs=1e-14)
    names = np.where(truth, "yes", "no")
    if 0 < truth.sum() < n:
        ours, theirs = both(sklearn, names, scores, sample_weight=weights, pos_label="no")
        assert ours == pytest.approx(theirs, abs=1e-14)


@given(st.integers(0, 2**32), sizes, st.sampled_from(["macro", "micro", "weighted", "samples", None]), st.booleans())
@settings(max_examples=examples(200))
@pytest.mark.compiled
def test_multilabel_and_multiclass_equal_scikit_learn(seed, n, average, weighted):
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    truth, scores = rng.integers(0, 2, (n, 4)), rng.integers(0, 6, (n, 4)) / 5
    weights = rng.integers(1, 4, n) / 4 if weighted else None
    ours, theirs = both(sklearn, truth, scores, average=average, sample_weight=weights)
    assert np.allclose(ours, theirs, rtol=0, atol=1e-14)
    classes = rng.integers(0, 4, n)
    if np.unique(classes).size == 4:
        ours, theirs = both(sklearn, classes, scores, average=average, sample_weight=weights)
        assert np.allclose(ours, theirs, rtol=0, atol=1e-14)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=12))
@settings(max_examples=examples(150))
def test_exact_values(pairs):
    scores, truth = [-s for s, _ in pairs], [int(y) for _, y in pairs]
    if not any(truth):
        return
    relevant = {i for i, y in enumerate(truth) if y}
    distances = [Fraction(-s) for s in scores]
    assert average_precision_score(truth, scores) == pytest.approx(
        float(naive.collapsed_ap(distances, relevant)), abs=1e-15
    )
    area = naive.collapsed_ap(distances, relevant, trapezoid=True)
    assert average_precision_score(truth, scores, interpolation="trapezoid") == pytest.approx(float(area), abs=1e-15)
    # the largest precision at a point of that recall or more
    points = []
    for value in sorted(set(distances)):
        inside = [i for i in range(len(truth)) if distances[i] <= value]
        hits = len(relevant & set(inside))
        points.append((Fraction(hits, len(relevant)), Fraction(hits, len(inside))))
    eleven = sum(max((p for r, p in points if float(r) >= t), default=0) for t in np.arange(0, 1.1, 0.1)) / 11
    assert average_precision_score(truth, scores, interpolation="11-point") == pytest.approx(float(eleven), abs=1e-14)


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=examples(80))
def test_thresholds_read_the_curve_at_given_scores(seed, weighted):
    rng = np.random.default_rng(seed)
    truth, scores = rng.integers(0, 2, 20), rng.random(20).round(2)
    weights = rng.integers(1, 4, 20) / 4 if weighted else np.ones(20)
    steps = np.linspace(0.1, 1, 10)
    if not truth.any():
        return
    total, last = 0.0, 0.0
    for t in steps[::-1]:
        chosen = scores >= t
        if chosen.any():
            recall = (weights * truth)[chosen].sum() / (weights * truth).sum()
            total += (recall - last) * (weights * truth)[chosen].sum() / weights[chosen].sum()
            last = recall
    got = average_precision_score(truth, scores, thresholds=steps, sample_weight=weights if weighted else None)
    assert got == pytest.approx(total, abs=1e-14)


def test_no_positive_warns_and_gives_zero():
    with pytest.warns(UserWarning, match="no positive sample"):
        assert average_precision_score([0, 0], [0.1, 0.2]) == 0.0


def test_many_samples_use_both_sides():
    rng = np.random.default_rng(0)
    truth, scores = rng.integers(0, 2, 50_000).astype(bool), rng.integers(0, 3000, 50_000).astype(np.float32)
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=-1))
    hits = np.cumsum(truth[order])[ends]
    wanted = np.sum(np.diff(hits, prepend=0) * hits / (ends + 1)) / truth.sum()
    assert average_precision_score(truth, scores) == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize(
    ("args", "options", "error", "message"),
    [
        (([0, 1], [0.1, np.nan]), {}, InputError, "Input contains NaN"),
        (([0, 1], [0.1]), {}, InputError, "1 rows for 2"),
        (([0, 1, 2], [0.1, 0.2, 0.3]), {}, InputError, "3 classes"),
        (([0, 1], [0.1, 0.2]), {"pos_label": 5}, OptionError, "is not a valid label"),
        (([0, 1], [0.1, 0.2]), {"average": "mean"}, OptionError, "average must be"),
        (([0, 1], [0.1, 0.2]), {"sample_weight": [1, -1]}, InputError, "none negative"),
        (
            ([0, 1], [0.1, 0.2]),
            {"sample_weight": [1, 1], "interpolation": "11-point"},
            OptionError,
            "can be combined with",
        ),
        (([0, 1], [0.1, 0.2]), {"interpolation": "13-point"}, OptionError, "unknown interpolation"),
        (([[0, 1]], [[0.1, 0.2, 0.3]]), {}, InputError, "of shape"),
        (([[0, 2]], [[0.1, 0.2]]), {}, InputError, "0 and 1"),
    ],
)
def test_bad_input(args, options, error, message):
    with pytest.raises(error, match=message):
        average_precision_score(*args, **options)
