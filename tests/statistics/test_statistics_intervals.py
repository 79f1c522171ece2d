"""Intervals of metrics: by which method, where there is none, and where an end is opened."""

from __future__ import annotations

import math
from dataclasses import replace

import large_workloads
import naive_statistics
import numpy as np
import pytest
from compared_models import all_columns
from compared_models import models as models
from support import same_bits, tables_of_arrays

import detmap
from detmap import statistics
from detmap.statistics import distributions, intervals
from detmap.statistics.bootstrap import replicated

scipy_stats = pytest.importorskip("scipy.stats", reason="the reference for tests of significance")


@pytest.fixture(scope="module")
def skewed():
    values = np.random.default_rng(4).exponential(size=37)
    return values, statistics.bootstrap_queries({"mean": values}, 999, 5, method="bca")


def test_percentile_interval_is_of_quantiles(skewed):
    values, _ = skewed
    made = statistics.bootstrap_queries({"mean": values}, 999, 5, method="percentile")
    expected = [naive_statistics.quantile(made.replicates[:, 0], at) for at in (0.05, 0.95)]
    assert made.interval(0.9)[0] == pytest.approx(expected, rel=1e-13)


def test_bca_interval_is_efrons(skewed):
    values, made = skewed
    expected = naive_statistics.bca_interval(values.mean(), made.replicates[:, 0], made.jackknife[:, 0], 0.9)
    assert made.interval(0.9)[0] == pytest.approx(expected, rel=1e-12)
    plain = statistics.bootstrap_queries({"mean": values}, 999, 5, method="percentile")
    assert made.interval(0.9)[0, 1] > plain.interval(0.9)[0, 1]


def test_bca_interval_agrees_with_scipy(skewed):
    values, made = skewed
    done = scipy_stats.bootstrap((values,), np.mean, n_resamples=999, rng=1, method="BCa", confidence_level=0.9)
    again = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=0, bootstrap_result=done, method="BCa", confidence_level=0.9
    )
    tails = intervals.bca_tails(values.mean(), done.bootstrap_distribution, made.jackknife[:, 0], (0.05, 0.95))
    assert np.quantile(done.bootstrap_distribution, tails) == pytest.approx(list(again.confidence_interval), rel=1e-12)


def mean_of_errors(replicates, jackknife, images):
    """The standard error, written out: the jackknife's variance counts half where it is the larger one."""
    drawn = replicates.var(ddof=1) * images / (images - 1)
    left_out = ((jackknife - jackknife.mean()) ** 2).sum() * (jackknife.size - 1) / jackknife.size
    return math.sqrt(drawn if left_out < drawn else (drawn + left_out) / 2)


def test_interval_of_a_mean_is_students(skewed):
    values, _ = skewed
    made = statistics.bootstrap_queries({"mean": values}, 200, 5)
    error = values.std(ddof=1) / math.sqrt(values.size)
    assert made.standard_error()[0] == pytest.approx(error, rel=0.1)
    assert made.standard_error()[0] == pytest.approx(
        mean_of_errors(made.replicates[:, 0], made.jackknife[:, 0], 37), rel=1e-12
    )
    margin = scipy_stats.t.ppf(0.95, 36) * made.standard_error()[0]
    assert made.interval(0.9)[0] == pytest.approx([values.mean() - margin, values.mean() + margin], rel=1e-12)


def on_logit_scale(value, replicates, jackknife, images, level=0.95):
    """The interval before its ends are opened, written out."""
    trials = value * (1 - value) / mean_of_errors(replicates, jackknife, images) ** 2
    logits = [
        np.log(v / (1 - v)) for v in (np.clip(some, 0.5 / trials, 1 - 0.5 / trials) for some in (replicates, jackknife))
    ]
    margin = scipy_stats.t.ppf((1 + level) / 2, min(images, jackknife.size) - 1) * mean_of_errors(*logits, images)
    return [1 / (1 + math.exp(-(math.log(value / (1 - value)) + sign * margin))) for sign in (-1, 1)], trials


@pytest.mark.compiled
def test_interval_of_a_metric_is_on_a_logit_scale(models):
    made = statistics.bootstrap(models["one"], 200)
    value, images = models["one"]["AP"], int(made.support[0])
    expected, _ = on_logit_scale(value, made.replicates[:, 0], made.jackknife[:, 0], images)
    assert made.interval()[0] == pytest.approx(expected, rel=1e-12)
    assert made.standard_error()[0] == pytest.approx(
        mean_of_errors(made.replicates[:, 0], made.jackknife[:, 0], images), rel=1e-12
    )
    assert made.bias()[0] == pytest.approx(made.replicates[:, 0].mean() - value, abs=1e-15)


def hits(successes, trials=200, replicates=400, **more):
    """The bootstrap of a share: so many of the images are hits."""
    rng = np.random.default_rng(3)
    values = np.repeat([1.0, 0.0], [successes, trials - successes])
    return statistics.Bootstrap(
        metrics=("AR_1",),
        columns={"AR_1": 0},
        estimate=np.array([values.mean()]),
        replicates=rng.binomial(trials, values.mean(), (replicates, 1)) / trials,
        jackknife=((values.sum() - values) / (trials - 1))[:, None],
        support=np.array([trials]),
        seed=0,
        **more,
    )


@pytest.mark.parametrize("successes", [4, 5, 10, 30, 100, 170, 190, 195, 196])
def test_an_end_at_which_there_would_be_no_interval_is_opened(successes):
    """So the intervals that are shown hold also where most data sets show none."""
    made = hits(successes)
    assert made.reasons() == [""]
    expected, trials = on_logit_scale(made.estimate[0], made.replicates[:, 0], made.jackknife[:, 0], 200)
    assert trials == pytest.approx(200, rel=0.15)
    expected = [
        0.0 if expected[0] * trials < 2 else expected[0],
        1.0 if (1 - expected[1]) * trials < 2 else expected[1],
    ]
    assert made.interval()[0] == pytest.approx(expected, rel=1e-12)
    assert (made.interval()[0, 0] == 0) == (successes <= 5)
    assert (made.interval()[0, 1] == 1) == (successes >= 195)


@pytest.mark.parametrize("successes", [1, 199])
def test_a_share_needs_two_successes_and_two_failures(successes):
    made = hits(successes)
    what = "successes" if successes == 1 else "failures"
    made = replace(made, jackknife=made.jackknife + np.tile([-0.001, 0.001], 100)[:, None])  # or one image would decide
    (why,) = made.reasons()
    assert why.startswith("too uncertain: its error is that of a share with ")
    assert why.endswith(f" {what}; an interval takes 2")
    assert np.isnan(made.interval()).all()


@pytest.mark.parametrize("share", [0.2, 0.4, 0.5])
def test_no_interval_of_what_jumps(share):
    made = hits(100)
    high = np.arange(400) < 400 * share
    noise = made.replicates / 1000
    made = replace(made, replicates=np.where(high, 0.55, 0.45)[:, None] + noise)
    assert made.reasons() == ["it moves in jumps, from draw to draw of the images"]
    assert replace(made, bounded=False).reasons() == [""]
    assert intervals.jump(noise[:, 0]) < 0.1
    assert intervals.jump(np.where(high, 0.55, 0.45)) > 0.2
    assert intervals.jump(np.append(np.full(200, 0.5), math.nan)) > 0.9


def test_the_interval_of_a_metric_with_another_maximum_is_that_of_its_share(skewed):
    _, made = skewed
    numbers = {name: 128 * getattr(made, name) for name in ("estimate", "replicates", "jackknife")}
    whole = replace(made, **numbers, most=np.array([128.0]))
    assert not np.isnan(made.interval()).any()
    assert same_bits(whole.interval(), 128 * made.interval())


def test_an_undefined_error_makes_no_interval():
    made = hits(100)
    made = replace(made, replicates=np.full_like(made.replicates, math.nan))
    assert made.reasons() == ["undefined in the draws of the images"]


@pytest.mark.parametrize("freedom", [1, 2, 9, 40, 5000])
@pytest.mark.parametrize("probability", [0.6, 0.95, 0.975, 0.9995])
def test_quantiles_of_t(freedom, probability):
    assert distributions.t_quantile(probability, freedom) == pytest.approx(
        scipy_stats.t.ppf(probability, freedom), rel=1e-9
    )


def some_bootstrap(jackknife, support=50, estimate=0.5, replicates=200, copies=0, **more):
    """The bootstrap of one column, and as many again that are like it as `copies` says."""
    rng = np.random.default_rng(0)
    columns = 1 + copies
    return statistics.Bootstrap(
        metrics=("x",),
        columns={"x": 0},
        estimate=np.full(columns, estimate),
        replicates=np.repeat(rng.normal(estimate, 0.1, (replicates, 1)), columns, axis=1),
        jackknife=np.repeat(np.array(jackknife, float)[:, None], columns, axis=1),
        support=np.array([support]),
        seed=0,
        **more,
    )


@pytest.mark.parametrize(
    ("jackknife", "support", "estimate", "reason"),
    [
        ([0.4, 0.6] * 10, 9, 0.5, "9 images with something to find: an interval takes 10"),
        ([0.4, 0.6] * 10, 20, math.nan, "undefined"),
        ([0.5] * 20, 20, 0.5, "the same whichever of the images are left out"),
        ([0.5] * 19 + [0.4], 20, 0.5, "one of the images decides it"),
        (
            [0.3, 0.7] * 10,
            20,
            0.5,
            "too uncertain: its error is that of a share with 0.3 failures; an interval takes 2",
        ),
    ],
)
def test_no_interval_where_too_few_images_could_tell(jackknife, support, estimate, reason):
    made = some_bootstrap(jackknife, support, estimate)
    assert made.reasons() == [reason]
    assert np.isnan(made.interval()).all()
    assert made.to_dict()["no_interval"] == {"x": reason}


#: Of how many IoU thresholds a metric is the mean AP.
THRESHOLDS = {"AP": 10, "AP_small": 10, "AP50": 1, "AP75": 1, "mAP": 1, "AR_1": 0}


def few_classes(name, value, classes=(), by_category=("AP", "AP50", "AP75")):
    """The bootstrap of an AP that varies little; `classes` are the images that hold each class."""
    near = [intervals.nearest(THRESHOLDS[name], np.count_nonzero(classes))]
    near += [intervals.nearest(THRESHOLDS[one], 1) for one in by_category for _ in classes]
    made = some_bootstrap([value - 1e-4, value + 1e-4] * 10, estimate=value, copies=len(by_category) * len(classes))
    made = replace(made, replicates=made.estimate + (made.replicates - made.estimate) / 1000)
    return replace(
        made,
        metrics=(name,),
        by_category=by_category if classes else (),
        categories=tuple((k, f"c{k}") for k in range(len(classes))),
        support=np.array([50, *(list(classes) * len(by_category) if classes else ())]),
        near=np.array(near),
    )


def test_no_interval_of_an_ap_that_a_single_hit_would_change():
    by_chance = "below 0.02: it hangs on whether a hit comes first by chance"
    for name in ("AP", "AP50", "mAP"):
        assert few_classes(name, 0.019).reasons() == [by_chance]
        assert few_classes(name, 0.021).reasons() == [""]
        assert replace(few_classes(name, 0.019), bounded=False).reasons() == [""]
        assert replace(few_classes(name, -0.5), bounded=False).reasons() == [""]  # of a difference
    assert few_classes("AR_1", 0.019).reasons() == [""]


def test_no_interval_of_an_ap_at_one_threshold_that_the_last_object_decides():
    last = "within 0.015 of 1: it hangs on whether the last object is found"
    for name in ("AP50", "AP75", "mAP"):
        assert few_classes(name, 0.986).reasons() == [last]
        assert few_classes(name, 0.984).reasons() == [""]
        assert replace(few_classes(name, 0.986), bounded=False).reasons() == [""]
    for name in ("AP", "AP_small", "AR_1"):
        assert few_classes(name, 0.986).reasons() == [""]


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("protocol", "options", "names"),
    [
        ("coco", {"iou_thresholds": (0.5,)}, ["AP", "AP50", "AP_large"]),
        ("coco", {}, ["AP50", "AP75"]),
        ("voc2012", {}, ["mAP", "AP_cat"]),
    ],
)
def test_what_is_of_one_threshold_is_known_by_the_protocol(protocol, options, names):
    """One of 200 objects is not found: AP is 0.99, or 0.995, of one threshold whatever the metric is called."""
    images = np.repeat(np.arange(1, 41), 5)
    boxes = np.tile([[200.0 * k, 0, 200.0 * k + 100, 100] for k in range(5)], (40, 1))
    columns = {"image_ids": images, "category_ids": np.ones(200, int), "boxes": boxes}
    truth = detmap.GroundTruth.from_arrays(**columns, category_names={1: "cat"})
    found = detmap.Detections.from_arrays(
        **{name: column[1:] for name, column in columns.items()}, scores=np.linspace(0.5, 1, 199)
    )
    made = statistics.bootstrap(detmap.evaluate(truth, found, protocol, **options), 200)
    reasons = made.reasons()
    last = "within 0.015 of 1: it hangs on whether the last object is found"
    assert [reasons[made.columns[name]] for name in names] == [last] * len(names)
    several = [name for name in made.columns if name not in names and name.startswith(("AP", "mAP"))]
    assert last not in [reasons[made.columns[name]] for name in several]


def test_the_last_hits_of_many_classes_are_averaged():
    """Of four classes with objects a single hit adds up to a quarter of a recall, but to a class of its own it adds all."""
    made = few_classes("AP50", 0.019, classes=(30, 30, 0, 30, 30))
    reasons = made.reasons()
    assert reasons[0] == ""
    assert reasons[1] == "below 0.02: it hangs on whether a hit comes first by chance"
    assert reasons[3] == "0 images with something to find: an interval takes 10"
    assert few_classes("AP50", 0.004, classes=(30,) * 4).reasons()[0].startswith("below 0.005: ")
    reasons = few_classes("AP50", 0.99, classes=(30,) * 4).reasons()
    assert reasons[0] == ""
    assert reasons[1:5] == [""] * 4  # AP
    assert {why[:12] for why in reasons[5:]} == {"within 0.015"}  # AP50 and AP75
    assert few_classes("AP50", 0.997, classes=(30,) * 4).reasons()[0].startswith("within 0.0037 of 1: ")


def test_an_end_near_which_an_ap_has_no_interval_is_opened():
    made = few_classes("AP50", 0.022)
    made = replace(made, replicates=made.estimate + (made.replicates - made.estimate) * 20)
    low, high = made.interval()[0]
    assert low == 0
    assert 0.022 < high < 0.03
    low, high = replace(made, near=None).interval()[0]
    assert 0.01 < low < 0.02
    made = few_classes("AP50", 0.983)
    made = replace(made, replicates=made.estimate + (made.replicates - made.estimate) * 20)
    assert made.interval()[0, 1] == 1
    assert 0.984 < replace(made, near=np.array([intervals.nearest(THRESHOLDS["AP"], 0)])).interval()[0, 1] < 1


def test_intervals_of_other_methods_where_they_are_undefined():
    assert some_bootstrap([0.49, 0.51] * 10).reasons() == [""]
    made = some_bootstrap([0.49, 0.51] * 10, method="bca")
    assert not np.isnan(made.interval()).any()
    shifted = np.random.default_rng(0).normal(0.05, 0.01, 200), np.array([0.029, 0.031] * 10)
    low, high = intervals.interval("bca", 0.02, *shifted, 20, 0.9999, bounded=False)
    assert low < 0
    assert intervals.interval("bca", 0.02, *shifted, 20, 0.9999, bounded=True) == (
        0.0,
        high,
    )  # as low as a metric can be
    lopsided = replace(made, replicates=np.full((200, 1), np.nan))
    assert np.isnan(lopsided.interval()).all()
    assert intervals.bca_tails(2.0, np.ones(9), np.ones(3), (0.1, 0.9)) is None
    with pytest.raises(detmap.OptionError, match="confidence level"):
        made.interval(95)
    with pytest.raises(detmap.OptionError, match="unknown interval 'z'; one of: t, bca, percentile"):
        statistics.bootstrap_queries({"x": [1.0]}, 200, method="z")


@pytest.mark.compiled
def test_copies_many_images_leaves_out_groups():
    tally = detmap.match(*tables_of_arrays(large_workloads.detector_like(450, 4, 2, 1)))
    made = replicated(tally, 2, 0)
    assert made.jackknife.shape[0] == 200
    codes = np.where(np.arange(450) % 200 == 7, 0, 2).astype(np.int32)
    assert same_bits(made.jackknife[7], all_columns(tally).score(1, lambda r: codes)[0, 0])
