"""Statistics: bootstraps equal to images really duplicated, intervals, paired tests, corrections, groups."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import naive
import naive_statistics
import numpy as np
import pytest
import workloads
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import bits, detections_of, evaluate, examples, ground_truth_of, same_bits, tables_of_arrays

import detmap
import detmap.retrieval
from detmap import cli, statistics
from detmap.kernels import readonly, resampling
from detmap.statistics import distributions, draws, grouping, intervals, reweighting
from detmap.statistics.bootstrap import replicated

scipy_stats = pytest.importorskip("scipy.stats", reason="the reference for tests of significance")


def all_columns(tally):
    return reweighting.Reweighted(
        tally, reweighting.metric_names(tally.protocol), reweighting.category_metrics(tally.protocol)
    )


def naive_params(params):
    return {name: value for name, value in params.items() if name not in ("image_ids", "category_ids")}


@settings(max_examples=examples(60))
@given(workloads.coco_workloads(), st.integers(0, 2**32 - 1))
def test_replicates_equal_a_data_set_that_is_really_duplicated(workload, seed):
    dataset, results, params = workload
    params = {**params, "image_ids": None, "category_ids": None}
    made = replicated(evaluate(dataset, results, params), 4, seed)
    size = len(dataset["images"])
    ones = np.ones(size, int)

    def expected(counts):
        return naive_statistics.coco_metrics(
            *naive_statistics.duplicated(dataset, results, counts), naive_params(params)
        )

    assert same_bits(made.estimate, expected(ones))
    for r in range(4):
        assert same_bits(made.replicates[r], expected(statistics.drawn(size, seed, r)))
    for i in range(size):
        assert same_bits(made.jackknife[i], expected(ones - (np.arange(size) == i)))


@settings(max_examples=examples(60))
@given(workloads.tiny_coco_workloads(), st.lists(st.integers(0, 9), min_size=2, max_size=2))
def test_any_multiplicities(workload, counts):
    dataset, results, params = workload
    params = {**params, "image_ids": None, "category_ids": None}
    counts = np.array(counts[: len(dataset["images"])], np.int32)
    made = all_columns(evaluate(dataset, results, params).tally).score(1, lambda r: 2 * counts)[0, 0]
    expected = naive_statistics.coco_metrics(
        *naive_statistics.duplicated(dataset, results, counts), naive_params(params)
    )
    assert same_bits(made, expected)


def test_equal_scores_within_an_image_repeat_as_the_image_does():
    # hit, miss of one score on one image drawn twice: hit miss hit miss, and not hit hit miss miss
    dataset, results = (
        {
            "images": [{"id": 1}],
            "categories": [{"id": 1}],
            "annotations": [
                {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0}
            ],
        },
        [{"image_id": 1, "category_id": 1, "bbox": [x, 0, 10, 10], "score": 0.5} for x in (0, 50)],
    )
    assert ranks_of_copies(dataset, results, 2) == [1, 3] * 10


def ranks_of_copies(dataset, results, copies):
    """The ranks of the hits at every threshold where the only image is there so often."""
    data = reweighting.Reweighted(evaluate(dataset, results).tally, ["AP"], [])
    codes = readonly(np.array([[2 * copies]]), np.int16)
    near = np.empty((1, 1, 0, 10), np.int64)
    return data._hits(data._words(codes), data._positives(codes), (0, 1), near, reweighting._Room()).ranks.tolist()


@pytest.mark.parametrize("copies", [1, 3, 4, 5, 9])
def test_a_hit_without_equals_is_repeated_as_often_as_its_image(copies):
    box = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 10, 10]}
    dataset = {
        "images": [{"id": 1}],
        "categories": [{"id": 1}],
        "annotations": [{**box, "id": 1, "area": 100, "iscrowd": 0}],
    }
    assert ranks_of_copies(dataset, [{**box, "score": 0.5}], copies) == list(range(1, copies + 1)) * 10


@pytest.mark.parametrize("name", ["voc2007", "voc2012"])
@pytest.mark.parametrize("seed", range(3))
def test_voc_replicates_equal_files_whose_lines_are_really_duplicated(name, seed):
    rng = np.random.default_rng(seed)
    images, classes = [f"{i:02d}" for i in range(8)], ["cat", "dog"]

    def box():
        x, y = rng.integers(0, 30, 2)
        return [int(x), int(y), int(x + rng.integers(5, 20)), int(y + rng.integers(5, 20))]

    truth = {
        image: [
            {"name": classes[rng.integers(2)], "difficult": bool(rng.random() < 0.2), "box": box()}
            for _ in range(rng.integers(0, 5))
        ]
        for image in images
    }
    lines = []
    for image, objects in truth.items():
        for item in objects:
            for _ in range(rng.integers(0, 3)):
                shifted = [int(v + rng.integers(-1, 2)) for v in item["box"]]
                lines.append((item["name"], image, rng.integers(0, 4) / 4, shifted))
        lines += [(classes[rng.integers(2)], image, rng.integers(0, 4) / 4, box()) for _ in range(3)]
    lines = [lines[i] for i in rng.permutation(len(lines))]
    objects = [(image, item) for image, listed in truth.items() for item in listed]
    tally = detmap.match(
        detmap.GroundTruth.from_arrays(
            image_ids=[image for image, _ in objects],
            category_ids=[item["name"] for _, item in objects],
            boxes=[item["box"] for _, item in objects],
            box_format="xyxy",
            difficult=[item["difficult"] for _, item in objects],
            images=images,
            categories=classes,
        ),
        detmap.Detections.from_arrays(
            image_ids=[line[1] for line in lines],
            category_ids=[line[0] for line in lines],
            scores=[line[2] for line in lines],
            boxes=[line[3] for line in lines],
            box_format="xyxy",
        ),
        name,
    )
    made = replicated(tally, 20, seed)
    assert (made.metrics, made.categories) == (("mAP",), (("cat", "cat"), ("dog", "dog")))
    for r in range(20):
        counts = dict(zip(images, statistics.drawn(8, seed, r).tolist(), strict=True))
        found = {
            c: tuple(
                zip(
                    *(
                        (f"{image}#{copy}", score, corners)
                        for label, image, score, corners in lines
                        if label == c
                        for copy in range(counts[image])
                    ),
                    strict=True,
                )
            )
            for c in classes
        }
        copies = {f"{image}#{copy}": truth[image] for image in images for copy in range(counts[image])}
        done = naive.voc_evaluate(classes, copies, {c: rows or ([], [], []) for c, rows in found.items()})
        aps = [done[c]["ap_11" if name == "voc2007" else "ap_all_point"] for c in classes]
        defined = [ap for ap in aps if not math.isnan(ap)]
        assert same_bits(made.replicates[r], [np.mean(defined) if defined else math.nan, *aps])


@pytest.mark.compiled
def test_independent_of_threads_and_of_how_many_replicates_follow():
    truth, found = tables_of_arrays(workloads.detector_like(40, 30, 5, 1))
    tally = detmap.match(truth, found)
    one = replicated(tally, 30, 7, threads=1)
    other = replicated(detmap.DetectionResult(tally), 40, 7, threads=3)
    assert same_bits(one.replicates, other.replicates[:30])
    assert same_bits(one.jackknife, other.jackknife)
    assert not same_bits(one.replicates, replicated(tally, 30, 8).replicates)


def test_draws():
    counts = statistics.drawn(50, 3, 4)
    assert counts.sum() == 50
    assert counts.tolist() == statistics.drawn(50, 3, 4).tolist()
    assert counts.tolist() != statistics.drawn(50, 4, 3).tolist()
    assert statistics.drawn(0, 0, 0).size == 0


def test_more_than_64_thresholds():
    dataset, results = workloads.make_coco(5, images=4, categories=2)
    params = {**workloads.NO_PARAMS, "iou_thresholds": np.linspace(0.3, 0.95, 70).tolist()}
    made = replicated(evaluate(dataset, results, params), 2, 0)
    for r in range(2):
        copies = naive_statistics.duplicated(dataset, results, statistics.drawn(4, 0, r))
        assert same_bits(made.replicates[r], naive_statistics.coco_metrics(*copies, naive_params(params)))


def test_no_images():
    protocol = detmap.match(ground_truth_of(EMPTY), detections_of([])).protocol
    made = statistics.bootstrap(detmap.Tally.empty(protocol, ((1, "x"),)), 200)
    assert made.replicates.shape == (200, 15)
    assert np.isnan(made.interval()).all()
    assert np.isnan(made.bias()).all()
    assert np.isnan(made.standard_error()).all()
    assert set(made.reasons()) == {"undefined"}
    empty = detmap.Tally.empty(protocol, ((1, "x"),))
    assert np.isnan(statistics.permute(empty, empty, 10).p_values()).all()


EMPTY = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "x"}]}


@pytest.mark.compiled
def test_one_signature():
    test_more_than_64_thresholds()
    assert len(resampling.collect_hits.signatures) == 1


@pytest.mark.parametrize(
    ("replicates", "seed", "message"),
    [
        (0, 0, "0 replicates are too few for an interval; draw at least 200"),
        (1, 0, "1 replicate is too few for an interval; draw at least 200"),
        (1.5, 0, "replicates must be an integer of at least 200, not 1.5"),
        (True, 0, "must be an integer"),
        (199, 0, "199 replicates are too few for an interval; draw at least 200"),
        (200, -1, "seed must be an integer of at least 0, not -1"),
        (200, 2**64, "seed must be an integer from 0 to 2\\*\\*64 - 1"),
        (200, "7", "seed must be an integer"),
    ],
)
def test_draws_that_cannot_be(replicates, seed, message):
    tally = detmap.match(ground_truth_of(EMPTY), detections_of([]))
    with pytest.raises(detmap.OptionError, match=message):
        statistics.bootstrap(tally, replicates, seed)
    with pytest.raises(detmap.OptionError, match=message):
        statistics.bootstrap_queries({"x": [1.0]}, replicates, seed)
    with pytest.raises(detmap.OptionError, match=message):
        detmap.compare({"a": tally, "b": tally}, replicates, seed)


# ------------------------------------------------------------------------------------------------------------- streams


def test_streams_of_seeds_and_replicates_share_nothing():
    """Also where seed and replicate, written one after the other, are the same digits in base 2**32."""
    keys = [(seed, r) for seed in (0, 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1) for r in (0, 1, 2**32)]
    first = {key: tuple(draws.stream(*key, draws.BOOTSTRAP).integers(0, 2**63, 8).tolist()) for key in keys}
    assert len(set(first.values())) == len(keys)
    numbers = [number for values in first.values() for number in values]
    assert len(set(numbers)) == len(numbers)
    assert statistics.drawn(1000, 2**32, 0).tolist() != statistics.drawn(1000, 0, 1).tolist()
    assert statistics.exchanged(1000, 2**32, 0).tolist() != statistics.exchanged(1000, 0, 1).tolist()


def test_uses_of_one_seed_are_streams_of_their_own():
    made = [draws.stream(5, 0, use).integers(0, 2**63, 4).tolist() for use in (draws.BOOTSTRAP, draws.PERMUTATION)]
    assert made[0] != made[1]
    assert 0.45 < statistics.exchanged(10_000, 1, 1).mean() < 0.55
    assert statistics.exchanged(0, 0, 0).size == 0


@pytest.mark.parametrize("seed", [0, 2**32, 2**64 - 1])
@pytest.mark.parametrize("size", [1, 7, 8, 64, 65, 1000])
def test_draws_are_those_of_a_new_generator(seed, size):
    for replicate in (0, 1, 77):
        draws_of = draws.stream(seed, replicate, draws.BOOTSTRAP).integers(0, size, size)
        assert statistics.drawn(size, seed, replicate).tolist() == np.bincount(draws_of, minlength=size).tolist()
        swaps = np.frombuffer(draws.stream(seed, replicate, draws.PERMUTATION).bytes(-(-size // 8)), np.uint8)
        assert statistics.exchanged(size, seed, replicate).tolist() == np.unpackbits(swaps, count=size).tolist()


# ----------------------------------------------------------------------------------------------------------- intervals


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
    tally = detmap.match(*tables_of_arrays(workloads.detector_like(450, 4, 2, 1)))
    made = replicated(tally, 2, 0)
    assert made.jackknife.shape[0] == 200
    codes = np.where(np.arange(450) % 200 == 7, 0, 2).astype(np.int32)
    assert same_bits(made.jackknife[7], all_columns(tally).score(1, lambda r: codes)[0, 0])


# --------------------------------------------------------------------------------------------------------- permutations


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
    ranks = both._hits(both._words(codes), positives, (0, 1), near, reweighting._Room()).ranks
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
    both._hits(both._words(codes), np.full((1, 18, 1), 600), (0, 1), near, reweighting._Room())
    assert near[0, :, 0, 0].tolist() == [int((row[hit] == side).sum()) for row in sides for side in (0, 1)]


def test_a_mean_over_more_classes_than_are_brought_together_at_a_time():
    tables = tables_of_arrays(workloads.detector_like(12, 20, 19, 3))
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
    truth, found = tables_of_arrays(workloads.detector_like(40, 10, 3, 1))
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
    with pytest.raises(detmap.OptionError, match="no metric 'AR_1'; one of: mAP"):
        statistics.permute(one, other, 20, 0, "AR_1")


# ---------------------------------------------------------------------------------------------------------- comparison


@pytest.fixture(scope="module")
def models():
    """Three results on the same images: a detector, the same with most good detections demoted, and a slight variant."""
    arrays = workloads.detector_like(120, 20, 4, 3)
    rng = np.random.default_rng(0)
    worse = {**arrays, "dt_scores": np.where(rng.random(2400) < 0.5, 0.001, arrays["dt_scores"])}
    alike = {**arrays, "dt_scores": arrays["dt_scores"] + rng.normal(0, 0.002, 2400)}
    return {
        name: detmap.evaluate(*tables_of_arrays(one)) for name, one in (("bad", worse), ("one", arrays), ("two", alike))
    }


@pytest.fixture(scope="module")
def compared(models):
    return detmap.compare(models, 200, 1)


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
    with pytest.raises(detmap.OptionError, match="no metric 'AR_7'; one of: AP, AP50"):
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
    other = detmap.evaluate(*tables_of_arrays(workloads.detector_like(121, 20, 4, 3)))
    with pytest.raises(detmap.OptionError, match="'one' and 'other' were scored on different images"):
        detmap.compare({"one": models["one"], "other": other})
    narrow = detmap.evaluate(*tables_of_arrays(workloads.detector_like(120, 20, 4, 3)), iou_thresholds=0.5)
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


# ------------------------------------------------------------------------------------------------------------- queries

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
