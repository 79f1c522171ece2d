"""Comparisons of several models: draws, corrections, groups, and what cannot be compared."""

from __future__ import annotations

import math
from dataclasses import replace

import large_workloads
import naive_statistics
import numpy as np
import pytest
from compared_models import compared as compared
from compared_models import models as models
from hypothesis import given
from hypothesis import strategies as st
from support import bits, tables_of_arrays

import detmap
from detmap import statistics
from detmap.kernels import readonly
from detmap.statistics import grouping

scipy_stats = pytest.importorskip("scipy.stats", reason="the reference for tests of significance")


@pytest.mark.slow
@pytest.mark.compiled
def test_compare_draws_the_same_images_for_all_and_tests_by_permutation(models, compared):
    made = compared
    one, two = (statistics.bootstrap(models[name], 200, 1) for name in ("one", "two"))
    found = next(d for d in made.differences if {d.first, d.second} == {"one", "two"})
    sign = 1 if found.second == "two" else -1
    assert found.difference == sign * (models["two"]["AP"] - models["one"]["AP"])
    test = statistics.permute(models[found.first].tally, models[found.second].tally, 5000, 1, categories=True)
    assert found.p == test.p_value("AP")
    assert (found.low, found.high) == tuple(test.interval()[0])
    own = [d for d in made.categories if (d.first, d.second) == (found.first, found.second)]
    assert [d.p for d in own] == test.p_values()[1:].tolist()
    assert [[d.low, d.high] for d in own] == test.interval()[1:].tolist()
    change = two - one if sign > 0 else one - two
    other = next(d for d in replace(made, bootstraps=by_percentiles(made)).differences if d[:2] == found[:2])
    assert (other.low, other.high) == tuple(replace(change, method="percentile").interval()[0])


def by_percentiles(made):
    return {name: replace(one, method="percentile") for name, one in made.bootstraps.items()}


@pytest.mark.compiled
def test_compare_tells_apart_what_differs(models, compared):
    made = compared
    assert [d.second for d in made.differences][1:] == ["bad", "bad"]
    assert made.groups["bad"] == "b"
    assert made.groups["one"] == made.groups["two"] == "a"
    assert made.changed
    assert {d.second for d in made.changed} == {"bad"}
    assert [d.adjusted for d in made.categories] == pytest.approx(
        naive_statistics.holm([d.p for d in made.categories]), rel=1e-12
    )
    assert made.families == ((3, 7, []), (12, 9, []))
    document = made.to_dict()
    assert [m["model"] for m in document["models"]] == ["bad", "one", "two"]
    assert len(document["differences"]) == 3
    assert len(document["categories"]) == 12
    assert document["test"]["permutations"] == 5000
    said = " ".join(made.sentences())
    assert "5,000 permutations" in said
    one = " ".join(detmap.compare(models, 200, 1, permutations=1).sentences())
    assert "1 permutation:" in one
    assert "12 hypotheses, each with objects on 9 images or more" in said
    bh = detmap.compare(models, 200, 1, permutations=1000, correction="bh")
    assert [d.adjusted for d in bh.categories] == pytest.approx(
        naive_statistics.benjamini_hochberg([d.p for d in bh.categories]), rel=1e-12
    )
    assert "the expected share of false claims among the claims in a family is at most 5 %" in " ".join(bh.sentences())


@pytest.mark.compiled
def test_a_model_does_not_differ_from_itself(models):
    made = detmap.compare({"a": models["one"], "b": models["one"]}, 200)
    (only,) = made.differences
    assert (only.difference, only.p, only.adjusted) == (0.0, 1.0, 1.0)
    assert math.isnan(only.low)  # all differences are 0, whichever images are drawn: nothing to make an interval of
    assert made.groups == {"a": "a", "b": "a"}
    assert not made.changed
    assert not any(map(made.disagrees, made.categories))


@pytest.mark.parametrize("metric", ["AP50", "AR_1", "AR_100", "AP_large", "AR_small"])
@pytest.mark.compiled
def test_compare_by_another_metric(models, metric):
    made = detmap.compare(models, 200, permutations=500, metric=metric, method="bca")
    (best, *_), (found, *_) = sorted(models, key=lambda name: -models[name][metric]), made.differences
    assert (found.metric, found.first) == (metric, best)
    assert found.difference == models[found.second][metric] - models[found.first][metric]
    assert list(made.bootstraps["one"].columns) == list(models["one"])
    with pytest.raises(detmap.OptionError, match=r"no metric 'AR_7'; did you mean 'AR_1'\? one of: AP, AP50"):
        detmap.compare(models, 200, metric="AR_7")
    with pytest.raises(detmap.OptionError, match="unknown correction 'z'; one of: holm, bh"):
        detmap.compare(models, 200, correction="z")


@pytest.mark.compiled
def test_where_interval_and_test_disagree_the_output_says_so(models):
    made = detmap.compare(models, 200, permutations=500)
    assert not any(map(made.disagrees, (*made.differences, *made.categories)))
    found = made.differences[0]
    assert not made.disagrees(found._replace(low=-1.0, high=1.0, p=0.3))
    assert made.disagrees(found._replace(low=0.1, high=1.0, p=0.3))
    assert made.disagrees(found._replace(low=-1.0, high=1.0, p=0.01))
    assert not made.disagrees(found._replace(low=math.nan, high=math.nan, p=0.01))
    object.__setattr__(made, "disagrees", lambda one: True)
    assert "trust p" in made.sentences()[-1]


@pytest.mark.compiled
def test_what_cannot_be_compared(models):
    with pytest.raises(detmap.OptionError, match="two models"):
        detmap.compare({"one": models["one"]})
    other = detmap.evaluate(*tables_of_arrays(large_workloads.detector_like(121, 20, 4, 3)))
    with pytest.raises(detmap.OptionError, match="'one' and 'other' were scored on different images"):
        detmap.compare({"one": models["one"], "other": other})
    narrow = detmap.evaluate(*tables_of_arrays(large_workloads.detector_like(120, 20, 4, 3)), iou_thresholds=0.5)
    with pytest.raises(detmap.OptionError, match="different protocols"):
        detmap.compare({"one": models["one"], "narrow": narrow})
    tally = models["one"].tally
    fewer = replace(tally, positive_counts=readonly(np.maximum(tally.positive_counts - 1, 0), np.int32))
    with pytest.raises(detmap.OptionError, match="first and second were scored on different objects"):
        statistics.permute(tally, fewer, 10)
    one, other = statistics.bootstrap(models["one"], 200), statistics.bootstrap(models["one"], 201)
    with pytest.raises(detmap.OptionError, match="same images"):
        one - other


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm(p_values):
    assert statistics.holm(p_values).tolist() == pytest.approx(naive_statistics.holm(p_values), abs=1e-15)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_benjamini_hochberg(p_values):
    made = statistics.benjamini_hochberg(p_values).tolist()
    assert made == pytest.approx(naive_statistics.benjamini_hochberg(p_values), abs=1e-15)
    if p_values:
        assert made == pytest.approx(scipy_stats.false_discovery_control(p_values).tolist(), abs=1e-12)


def test_holm_leaves_out_what_was_not_tested():
    assert statistics.holm([0.04, math.nan, 0.01])[[0, 2]].tolist() == [0.04, 0.02]
    assert math.isnan(statistics.holm([0.04, math.nan, 0.01])[1])


@given(st.integers(0, 6), st.data())
def test_groups_share_a_letter_exactly_where_not_apart(count, data):
    names = [f"m{i}" for i in range(count)]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    apart = set(data.draw(st.lists(st.sampled_from(pairs), unique=True))) if pairs else set()
    letters = statistics.group_letters(names, apart)
    assert list(letters) == names
    assert all(letters.values())
    for a, b in pairs:
        assert ((a, b) in apart) == (not set(letters[a]) & set(letters[b]))


def test_groups_of_many_models():
    names = [f"m{i:03d}" for i in range(150)]
    apart = [(a, b) for i, a in enumerate(names) for b in names[i + 20 :]]
    letters = statistics.group_letters(names, apart)
    assert letters["m000"] == "a"
    assert letters["m149"] == grouping.letter(130)
    assert all(letters.values())


def test_letters():
    assert [grouping.letter(i) for i in (0, 25, 26, 27, 701, 702)] == ["a", "z", "aa", "ab", "zz", "aaa"]


@pytest.mark.compiled
def test_to_dict(models):
    made = statistics.bootstrap(models["one"], 200, 3)
    document = made.to_dict()
    assert document["method"] == "t"
    rows = [row["intervals"] for row in document["per_category"]]
    ends = [*document["intervals"].values(), *(row[name] for name in ("AP", "AP50", "AP75") for row in rows)]
    assert ends == made.interval().tolist()
    assert list(document["intervals"]) == list(models["one"])
    own = [row[name] for name in ("AP", "AP50", "AP75") for row in models["one"].per_category]
    assert bits(made.estimate).tolist() == bits([*models["one"].values(), *own]).tolist()
    assert document["images"]["AP"] == made.support[0]
