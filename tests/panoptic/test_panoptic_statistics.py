"""Intervals and tests of panoptic quality: what drawing and exchanging images gives is what scoring such data sets gives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from legs import examples
from panoptic_scenes import CATEGORIES, documents, images

import detmap
from detmap.errors import InputError, OptionError
from detmap.panoptic import evaluate
from detmap.statistics import bootstrap, compare, drawn, permute
from detmap.statistics.clusters import clustered

FIXTURES = "fixtures/panoptic"


def columns(result):
    """All columns of a bootstrap, from a result."""
    return np.concatenate([list(result.values()), result.qualities.ravel()])


def scored(scenes):
    return evaluate(*documents(scenes))


@settings(max_examples=examples(40), deadline=None)
@given(scenes=st.lists(images(), min_size=1, max_size=4), seed=st.integers(0, 9))
def test_a_replicate_is_what_scoring_the_drawn_images_gives(scenes, seed):
    try:
        result = scored(scenes)
    except InputError:
        assume(False)
    made = bootstrap(result, 200, seed)
    np.testing.assert_equal(made.estimate, columns(result))
    assert list(made.columns) == list(result)
    for replicate in range(3):
        copies = drawn(len(scenes), seed, replicate)
        again = [scene for scene, count in zip(scenes, copies, strict=True) for _ in range(count)]
        np.testing.assert_allclose(made.replicates[replicate], columns(scored(again)), rtol=1e-12)
    for left_out in range(len(scenes)):
        rest = scored([one for at, one in enumerate(scenes) if at != left_out])
        np.testing.assert_allclose(made.jackknife[left_out], columns(rest), rtol=1e-12)
    held = [
        sum(any(s["category_id"] == one["id"] and not s["iscrowd"] for s in scene[1]) for scene in scenes)
        for one in CATEGORIES
    ]
    assert made.support[9:14].tolist() == held
    assert made.support[0] == sum(
        any(s["category_id"] != 99 and not s["iscrowd"] for s in scene[1]) for scene in scenes
    )


@settings(max_examples=examples(30), deadline=None)
@given(scenes=st.lists(images(), min_size=1, max_size=4), data=st.data())
def test_a_permutation_is_what_scoring_the_exchanged_images_gives(scenes, data):
    """With so few images all permutations are looked at, each of which is scored here from the pixels."""
    other = []
    for truth, segments, found, predicted in scenes:
        if data.draw(st.booleans()):
            categories = [one["id"] for one in CATEGORIES[:4]]
            predicted = [{**one, "category_id": data.draw(st.sampled_from(categories))} for one in predicted]
        other.append((truth, segments, found, predicted))
    try:
        first, second = scored(scenes), scored(other)
    except InputError:
        assume(False)
    test = permute(first.tally, second.tally, categories=True)
    estimate = columns(second) - columns(first)
    wanted = [0, *range(9, 14)]
    np.testing.assert_allclose(test.estimate, estimate[wanted], atol=1e-12)
    extreme = np.zeros(len(wanted))
    for swaps in itertools.product((0, 1), repeat=len(scenes)):
        sides = [[(a, b)[s ^ side] for a, b, s in zip(scenes, other, swaps, strict=True)] for side in (0, 1)]
        difference = columns(scored(sides[1])) - columns(scored(sides[0]))
        with np.errstate(invalid="ignore"):
            extreme += np.abs(difference[wanted]) >= np.abs(estimate[wanted]) - 1e-12
    expected = np.where(np.isnan(estimate[wanted]), np.nan, extreme / 2 ** len(scenes))
    np.testing.assert_allclose(test.p_values(), expected, atol=1e-12)


def models():
    return {name: evaluate(f"{FIXTURES}/ground_truth.json", f"{FIXTURES}/{name}.json") for name in ("before", "after")}


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(detmap.__path__[0] + "/..")


@pytest.mark.slow
@pytest.mark.compiled
def test_models_are_compared_by_any_metric_and_in_clusters():
    made = compare(models(), 200, metric="RQ_things")
    assert [one.metric for one in made.differences] == ["RQ_things"]
    assert {one.metric for one in made.categories} == {"PQ"}
    assert "made the segments of an image" in str(made)
    assert made.to_dict()["iou_type"] == "panoptic"
    by_video = {image: image // 4 for image in range(1, 17)}
    tallies = {name: clustered(one.tally, by_video) for name, one in models().items()}
    assert compare(tallies, 200).unit == "clusters"
    whole = bootstrap(tallies["before"], 200)
    assert whole.support[0] == 5
    assert len(whole.jackknife) == 5
    assert bootstrap(models()["before"], 200, clusters=by_video).estimate.tolist() == pytest.approx(
        whole.estimate.tolist(), nan_ok=True
    )
    with pytest.raises(OptionError, match="no metric 'AP'; one of: PQ"):
        compare(models(), 200, metric="AP")


def test_tallies_of_other_tasks_and_rules_are_not_compared():
    before = models()["before"]
    other = evaluate(f"{FIXTURES}/ground_truth.json", f"{FIXTURES}/before.json", parts=3)
    with pytest.raises(OptionError, match="different protocols"):
        compare({"one": before, "other": other}, 200)
    boxes = detmap.evaluate("fixtures/coco/ground_truth.json", "fixtures/coco/detections.json")
    with pytest.raises(OptionError, match="different tasks"):
        compare({"one": before, "other": boxes}, 200)
    with pytest.raises(OptionError, match="same categories and rules"):
        before.tally.merge(other.tally)
