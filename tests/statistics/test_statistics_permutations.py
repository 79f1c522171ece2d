"""Paired tests of models by permutation, equal to an exchange of detections for real."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import large_workloads
import naive_statistics
import numpy as np
import pytest
import workloads
from compared_models import models as models
from compared_models import naive_params
from hypothesis import given, settings
from hypothesis import strategies as st
from support import evaluate, examples, same_bits, tables_of_arrays

import detmap
from detmap import statistics
from detmap.detection.protocols import COCO
from detmap.kernels import readonly
from detmap.statistics import reweighting
from detmap.statistics.bootstrap import replicated
from detmap.statistics.draws import exchanges
from detmap.statistics.permutation import _paired, p_value
from detmap.statistics.quick_differences import QuickDifferences


def swapped(dataset, first, second, params, swaps):
    """The metrics of both sides after a real exchange, second minus first."""
    images = sorted(item["id"] for item in dataset["images"])
    one, other = (
        np.array(naive_statistics.coco_metrics(dataset, side, naive_params(params)))
        for side in naive_statistics.exchanged(first, second, images, swaps)
    )
    return other - one


def another(results, seed):
    """A second model's results: some scores changed, some detections gone, all on the same images."""
    rng = np.random.default_rng(seed)
    moved = [{**row, "score": float(rng.choice([row["score"], 0.3, 0.7]))} for row in results]
    return [row for row in moved if rng.random() < 0.8]


@settings(max_examples=examples(40))
@given(workloads.coco_workloads(), st.integers(0, 2**32 - 1), st.data())
def test_permutations_equal_an_exchange_of_detections_for_real(workload, seed, data):
    dataset, results, params = workload
    params = {**params, "image_ids": None, "category_ids": None, "use_categories": True}
    second = another(results, seed)
    tallies = [evaluate(dataset, one, params).tally for one in (results, second)]
    names = statistics.metric_names(tallies[0].protocol)
    at = data.draw(st.integers(0, len(names) - 1))
    size, classes = len(dataset["images"]), len(dataset["categories"])
    columns = [at, *range(len(names), len(names) + classes)]
    made = statistics.permute(*tallies, 3, seed, names[at], categories=True, threads=1)
    expected = swapped(dataset, results, second, params, [0] * size)[columns]
    assert same_bits(made.estimate, expected)
    if not made.exact[0]:
        for r in range(3):
            swaps = statistics.exchanged(size, seed, r).tolist()
            assert same_bits(made.differences[r], swapped(dataset, results, second, params, swaps)[columns])


@pytest.mark.parametrize("most", [1, 3, 255])
def test_more_misses_than_a_byte_can_count_ahead_of_a_hit(most):
    """Copies of images are counted in bytes, which must not run over into those of the next replicate."""
    images = 700
    boxes = np.array([[0.0, 0.0, 10.0, 10.0]])
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[images - 1], category_ids=[1], boxes=boxes, images=np.arange(images), categories=[1]
    )
    found = detmap.Detections.from_arrays(
        image_ids=np.arange(images),
        category_ids=np.ones(images, int),
        boxes=np.repeat(boxes, images, axis=0),
        scores=np.linspace(1.0, 0.1, images),
    )
    tally = detmap.match(truth, found).in_ranking_order()
    rng = np.random.default_rng(most)
    copies = rng.integers(0, most + 1, (9, images)).astype(np.int32)
    copies[0] = most  # where all images have the most copies, bytes run over soonest
    copies[:, 0], copies[:, -1] = most, 1
    made = reweighting.Reweighted(tally, ["AP50"], []).score(9, lambda r: 2 * copies[r])[:, 0, 0]
    assert np.rint(1 / made).tolist() == copies.sum(axis=1).tolist()
    both = reweighting.Reweighted(tally, ["AP50"], [], sides=2)
    sides = rng.integers(0, 2, (9, images)).astype(np.int32)
    sides[:, -1] = np.arange(9) % 2
    codes = readonly(2 + sides, np.int16)
    near = np.empty((1, 18, 0, 10), np.int64)
    positives = np.ones((1, 18, 1), np.int64)
    ranks = both._hits(both.words(codes), positives, (0, 1), near, reweighting._Room()).ranks
    assert ranks.tolist() == [int((row == row[-1]).sum()) for row in sides for _ in range(10)]


@pytest.mark.parametrize("most", [1, 3])
def test_hits_within_a_cap_are_counted_beyond_a_byte(most):
    """Recall at one detection an image is counted in bytes too: of 600 images, of which every second one has a first hit."""
    images = np.arange(600)
    boxes = np.tile([0.0, 0.0, 10.0, 10.0], (600, 1))
    truth = detmap.GroundTruth.from_arrays(
        image_ids=images, category_ids=np.ones(600, int), boxes=boxes, images=images, categories=[1]
    )
    hit = images % 2 == 0
    found = detmap.Detections.from_arrays(
        image_ids=images,
        category_ids=np.ones(600, int),
        boxes=np.where(hit[:, None], boxes, 100.0),
        scores=np.ones(600),
    )
    tally = detmap.evaluate(truth, found, iou_thresholds=0.5).tally.in_ranking_order()
    copies = np.random.default_rng(most).integers(0, most + 1, (9, 600)).astype(np.int32)
    made = reweighting.Reweighted(tally, ["AR_1"], []).score(9, lambda r: 2 * copies[r])[:, 0, 0]
    assert made.tolist() == [row[hit].sum() / row.sum() for row in copies]
    both = reweighting.Reweighted(tally, ["AR_1"], [], sides=2)
    sides = np.random.default_rng(most).integers(0, 2, (9, 600))
    near = np.empty((1, 18, 2, 1), np.int64)
    codes = readonly(2 + sides, np.int16)
    both._hits(both.words(codes), np.full((1, 18, 1), 600), (0, 1), near, reweighting._Room())
    assert near[0, :, 0, 0].tolist() == [int((row[hit] == side).sum()) for row in sides for side in (0, 1)]


@pytest.mark.compiled
def test_a_mean_over_more_classes_than_are_brought_together_at_a_time():
    tables = tables_of_arrays(large_workloads.detector_like(12, 20, 19, 3))
    result = detmap.evaluate(*tables)
    made = replicated(result, 1, 0, threads=1)
    assert same_bits([made.estimate[at] for at in made.columns.values()], list(result.values()))
    assert 8 < np.isfinite([row["AP"] for row in result.per_category]).sum() < 19  # some hold nothing


@settings(max_examples=examples(30))
@given(workloads.tiny_coco_workloads(), st.integers(0, 2**32 - 1))
def test_few_images_are_permuted_in_every_way(workload, seed):
    dataset, results, params = workload
    params = {**params, "image_ids": None, "category_ids": None, "use_categories": True}
    second = another(results, seed)
    made = statistics.permute(
        *(evaluate(dataset, one, params).tally for one in (results, second)), 64, seed, categories=True
    )
    size = len(dataset["images"])
    assert made.exact.all()
    every = [swapped(dataset, results, second, params, swaps) for swaps in itertools.product((0, 1), repeat=size)]
    head = len(every[0]) - 3 * len(dataset["categories"])
    for place, column in enumerate([0, *range(head, head + len(dataset["categories"]))]):
        observed = every[0][column]
        p = naive_statistics.permutation_p([row[column] for row in every], observed, 0)
        assert made.p_values()[place] == (pytest.approx(p, rel=1e-12) if not math.isnan(observed) else ANY_NAN)


class _AnyNan:
    def __eq__(self, other):
        return math.isnan(other)

    __hash__ = None


ANY_NAN = _AnyNan()


@pytest.mark.compiled
def test_a_drawn_p_value_counts_the_data_and_is_never_zero(models):
    tallies = models["one"].tally, models["bad"].tally
    made = statistics.permute(*tallies, 99, 4)
    assert made.p_value("AP") == 1 / 100
    assert made.extreme.tolist() == [0]
    again = statistics.permute(*tallies, 99, 4, threads=1)
    assert same_bits(made.differences, again.differences)
    other = statistics.permute(*tallies[::-1], 99, 4)
    assert same_bits(other.differences, -made.differences)


def permutations_of(differences, estimate, exact=False, images=20, support=20):
    return statistics.Permutations(
        metrics=("AP",), by_category=(), categories=(), estimate=np.array([estimate]),
        differences=np.array(differences, float)[:, None], whole={}, images=images, support=np.array([support]),
        extreme=np.array([(np.abs(differences) >= abs(estimate) - 1e-12).sum()]),
        permutations=np.array([len(differences)]), exact=np.array([exact]), seed=0, columns={"AP": 0},
    )  # fmt: skip


@settings(max_examples=examples(200))
@given(
    st.lists(st.integers(-30, 30), min_size=1, max_size=200), st.integers(-40, 40), st.booleans(),
    st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)  # fmt: skip
def test_the_interval_of_a_difference_holds_0_exactly_where_the_test_does_not_reject(values, estimate, exact, level):
    if exact:
        values = [*values, estimate]  # the data are one of all permutations
    made = permutations_of(np.array(values) / 64, estimate / 64, exact)
    low, high = made.interval(level)[0]
    (p,) = made.p_values()
    if not math.isnan(low):
        assert (low <= 0 <= high) == (p > 1 - level)
        assert low < estimate / 64 < high
    elif exact:  # nothing was exchanged, or so few permutations exist that none can be significant
        assert not any(values) or 1 / len(values) > 1 - level or p > 1 - level
    else:
        assert not any(values) or 1 / (len(values) + 1) > 1 - level or p > 1 - level


def test_the_interval_of_a_difference_by_hand():
    """Of 99 permutations five may differ as much, but for the data themselves: the fifth largest difference is the reach."""
    values = np.arange(1, 100) / 100
    rounding = 1e-12
    assert permutations_of(values, 0.2).interval()[0] == pytest.approx([0.2 - 0.95, 0.2 + 0.95], abs=2 * rounding)
    reach, spread = 0.95 + rounding, 20 * (values**2).mean()
    shorter = reach * math.sqrt(1 - (2**2 - reach**2) / spread)
    assert permutations_of(values, 2.0).interval()[0] == pytest.approx([2 - shorter, 2 + shorter], rel=1e-12)
    for few in (
        permutations_of(values, 0.2, support=9),
        permutations_of(values[:18], 0.2),
        permutations_of(values, math.nan),
    ):
        assert np.isnan(few.interval()).all()
    assert not np.isnan(permutations_of(values[:19], 0.2).interval()).any()
    with pytest.raises(detmap.OptionError, match="confidence level"):
        permutations_of(values, 0.2).interval(95)


@pytest.mark.compiled
def test_a_category_on_few_changing_images_is_looked_at_whole():
    """One model finds everything in three images of a rare class and the other nothing: p is 2 / 2**3, not 1e-16."""
    image = np.arange(60)
    rare = [0, 20, 40]
    boxes = np.tile([0.0, 0.0, 20.0, 20.0], (63, 1))
    truth = detmap.GroundTruth.from_arrays(
        image_ids=np.r_[image, rare], category_ids=np.r_[np.zeros(60, int), [1] * 3], boxes=boxes, images=image,
        categories=[0, 1],
    )  # fmt: skip
    rng = np.random.default_rng(1)

    def model(finds_rare):
        count = 63 if finds_rare else 60
        shifted = boxes[:count] + np.where(np.arange(count) < 60, rng.choice([0, 9], count), 0)[:, None] * [1, 0, 0, 0]
        return detmap.match(
            truth,
            detmap.Detections.from_arrays(
                image_ids=np.r_[image, rare][:count], category_ids=np.r_[np.zeros(60, int), [1] * 3][:count],
                boxes=shifted, scores=rng.random(count),
            ),
        )  # fmt: skip

    tallies = model(True), model(False)
    made = statistics.permute(*tallies, 500, categories=True)
    assert made.exact.tolist() == [False, False, True]
    assert made.permutations.tolist() == [500, 500, 4]
    assert made.p_values()[2] == 2 / 2**3
    compared = detmap.compare({"all": tallies[0], "none": tallies[1]}, 200)
    assert [math.isnan(one.p) for one in compared.categories] == [False, True]
    assert compared.families[1] == (1, 6, ["1"])
    assert not [one for one in compared.changed if one.category == "1"]


def test_which_hypotheses_are_tested_follows_from_the_images_alone():
    for images, pairs, tested, fewest in (
        ([5], 1, [False], 6),  # 2 ** -4 is more than 0.05
        ([6], 1, [True], 6),
        ([6, 6], 1, [False, False], 7),
        ([7, 7], 1, [True, True], 7),
        ([7, 6], 1, [True, False], 7),
        ([7], 2, [True], 7),
        ([2, 3, 50, 60], 1, [False, False, True, True], 7),
        ([], 1, [], 6),
    ):
        made, least = statistics.testable(images, 0.05, pairs)
        assert (made.tolist(), least) == (tested, fewest), images
    counts = np.random.default_rng(0).zipf(1.3, 400).clip(max=1000)
    tested, least = statistics.testable(counts, 0.05, 1)
    assert tested.tolist() == (counts >= least).tolist()
    assert tested.sum() * 2.0 ** (1 - least) <= 0.05 < (counts >= least - 1).sum() * 2.0 ** (2 - least)
    with pytest.raises(detmap.OptionError, match="no test can have a level"):
        statistics.testable([9], 0.0, 1)
    assert statistics.permutations_needed(1, 0.05) == 5000
    assert statistics.permutations_needed(800, 0.05) == 32_000


@pytest.mark.parametrize("name", ["voc2007", "voc2012"])
@pytest.mark.compiled
def test_models_under_voc_are_compared_by_a_class_too(name):
    truth, found = tables_of_arrays(large_workloads.detector_like(40, 10, 3, 1))
    one = detmap.match(truth, found, name)
    other = detmap.match(truth, replace(found, scores=readonly(1 - found.scores, np.float64)), name)
    values = [detmap.DetectionResult(tally) for tally in (one, other)]
    metric = next(key for key in values[0] if key.startswith("AP_"))
    for wanted in ("mAP", metric):
        made = statistics.permute(one, other, 20, 0, wanted)
        assert made.estimate[made.columns[wanted]] == values[1][wanted] - values[0][wanted]
        compared = detmap.compare({"a": one, "b": other}, 200, metric=wanted)
        assert abs(compared.differences[0].difference) == abs(values[1][wanted] - values[0][wanted])
    made = statistics.bootstrap(one, 200)
    assert [made.estimate[at] for at in made.columns.values()] == list(values[0].values())
    with pytest.raises(detmap.OptionError, match=r"no metric 'AR_1'; did you mean 'AP_1'\? one of: mAP"):
        statistics.permute(one, other, 20, 0, "AR_1")


@settings(max_examples=examples(60))
@given(workloads.coco_workloads(), st.integers(0, 2**32 - 1), st.data())
def test_a_p_value_alone_is_that_of_all_differences(workload, seed, data):
    dataset, results, params = workload
    params = {**params, "image_ids": None, "category_ids": None, "use_categories": True}
    first, second = (evaluate(dataset, one, params).tally for one in (results, another(results, seed)))
    metric = data.draw(st.sampled_from(statistics.metric_names(first.protocol)))
    permutations = data.draw(st.sampled_from([1, 2, 30]))  # so few that they are drawn
    test = statistics.permute(first, second, permutations, seed, metric, threads=1)
    assert same_bits(p_value(first, second, permutations, seed, metric, 1), test.p_value(metric))
    pair = _paired(first, second, metric, False, 1)
    quick, swaps = pair.quick(), exchanges(pair.units.number, seed, 0, 12)
    assert (quick is None) == metric.startswith("AR")
    expected = pair.differences(12, swaps.__getitem__, 1)[:, 0]
    if quick is not None and not np.isnan(expected).any():
        assert np.abs(quick(swaps) - expected).max() <= quick.error < 1e-11


@pytest.mark.compiled
def test_a_p_value_alone_of_clusters(models):
    tallies = [one.tally for one in models.values()][:2]
    clusters = np.arange(tallies[0].image_ids.size) // 2
    first, second = (replace(one, clusters=clusters) for one in tallies)
    for metric in ("AP", "AP50", "AP_medium", "AR_10"):
        assert p_value(first, second, 50, 3, metric) == statistics.permute(first, second, 50, 3, metric).p_value(metric)


@pytest.mark.compiled
def test_differences_too_near_to_tell_are_computed_in_the_order_of_scoring(models, monkeypatch):
    first, second = [one.tally for one in models.values()][:2]
    expected = statistics.permute(first, second, 300, 5, "AP").p_value("AP")
    quick = _paired(first, second, "AP", False, 1).quick()
    assert quick is not None
    rough = np.random.default_rng(0)

    def coarse(self, swaps):
        made = original(self, swaps)
        return made + rough.uniform(-self.error, self.error, made.shape)

    original = QuickDifferences.__call__
    monkeypatch.setattr(QuickDifferences, "of", classmethod(lambda cls, data: replace(quick, error=0.01)))
    monkeypatch.setattr(QuickDifferences, "__call__", coarse)
    assert p_value(first, second, 300, 5, "AP") == expected


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("change", "quick"),
    [
        ({}, True),
        ({"recall_thresholds": (0.0, 0.25, 0.25, 1.0)}, True),
        ({"epsilon": 0.1}, False),
        ({"interpolation": "all-point"}, False),
        ({"mean_of": "thresholds"}, False),
        ({"epsilon": 0.1, "mean_of": "classes"}, False),
    ],
)
def test_a_p_value_alone_under_other_means(models, change, quick):
    first, second = (replace(one.tally, protocol=replace(COCO, **change)) for one in list(models.values())[:2])
    assert (_paired(first, second, "AP", False, 1).quick() is not None) == quick
    assert p_value(first, second, 40, 3, "AP") == statistics.permute(first, second, 40, 3, "AP").p_value("AP")


def test_the_error_of_quick_differences_is_at_least_that_of_a_sum_over_classes_and_thresholds():
    truth, found = tables_of_arrays(large_workloads.detector_like(12, 20, 40, 3))
    tally = detmap.match(truth, found)
    quick = _paired(tally, tally, "AP", False, 1).quick()
    assert quick is not None
    assert quick.error >= 4 * 40 * 10 * np.finfo(float).eps
