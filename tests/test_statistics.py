"""Statistics: bootstraps equal to images really duplicated, intervals, paired tests, corrections, groups."""

from __future__ import annotations

import json
import math

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
from detmap.kernels import resampling
from detmap.statistics import distributions, grouping, reweighting

scipy_stats = pytest.importorskip("scipy.stats", reason="the reference for tests of significance")


def naive_params(params):
    return {name: value for name, value in params.items() if name not in ("image_ids", "category_ids")}


@settings(max_examples=examples(60))
@given(workloads.coco_workloads(), st.integers(0, 2**32 - 1))
def test_replicates_equal_a_data_set_that_is_really_duplicated(workload, seed):
    dataset, results, params = workload
    params = {**params, "image_ids": None, "category_ids": None}
    made = statistics.bootstrap(evaluate(dataset, results, params), 4, seed, bca=True)
    size = len(dataset["images"])
    ones = np.ones(size, int)

    def expected(counts):
        return naive_statistics.coco_aps(*naive_statistics.duplicated(dataset, results, counts), naive_params(params))

    assert same_bits(made.estimate, expected(ones))
    for r in range(4):
        assert same_bits(made.replicates[r], expected(statistics.drawn(size, seed, r)))
    for i in range(size):
        assert same_bits(made.jackknife[i], expected(ones - (np.arange(size) == i)))


@settings(max_examples=examples(60))
@given(workloads.tiny_coco_workloads(), st.lists(st.integers(0, 4), min_size=2, max_size=2))
def test_any_multiplicities(workload, counts):
    dataset, results, params = workload
    params = {**params, "image_ids": None, "category_ids": None}
    counts = np.array(counts[: len(dataset["images"])], np.int32)
    made = reweighting.Reweighted(evaluate(dataset, results, params).tally).metrics(counts)
    expected = naive_statistics.coco_aps(*naive_statistics.duplicated(dataset, results, counts), naive_params(params))
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
    made = reweighting.Reweighted(evaluate(dataset, results).tally).hits(np.array([2], np.int32))
    assert made.ranks.tolist() == [1, 3] * 10


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
    made = statistics.bootstrap(tally, 20, seed)
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


def test_independent_of_threads_and_of_how_many_replicates_follow():
    truth, found = tables_of_arrays(workloads.detector_like(40, 30, 5, 1))
    tally = detmap.match(truth, found)
    one = statistics.bootstrap(tally, 30, 7, bca=True, threads=1)
    other = statistics.bootstrap(detmap.DetectionResult(tally), 40, 7, bca=True, threads=3)
    assert same_bits(one.replicates, other.replicates[:30])
    assert same_bits(one.jackknife, other.jackknife)
    assert not same_bits(one.replicates, statistics.bootstrap(tally, 30, 8).replicates)


def test_draws():
    counts = statistics.drawn(50, 3, 4)
    assert counts.sum() == 50
    assert counts.tolist() == statistics.drawn(50, 3, 4).tolist()
    assert counts.tolist() != statistics.drawn(50, 4, 3).tolist()
    assert statistics.drawn(0, 0, 0).size == 0


def test_more_than_64_thresholds():
    dataset, results = workloads.make_coco(5, images=6)
    params = {**workloads.NO_PARAMS, "iou_thresholds": np.linspace(0.3, 0.95, 70).tolist()}
    made = statistics.bootstrap(evaluate(dataset, results, params), 3, 0)
    for r in range(3):
        copies = naive_statistics.duplicated(dataset, results, statistics.drawn(6, 0, r))
        assert same_bits(made.replicates[r], naive_statistics.coco_aps(*copies, naive_params(params)))


def test_no_images():
    protocol = detmap.match(ground_truth_of(EMPTY), detections_of([])).protocol
    made = statistics.bootstrap(detmap.Tally.empty(protocol, ((1, "x"),)), 3, bca=True)
    assert made.replicates.shape == (3, 4)
    assert np.isnan(made.interval()).all()
    assert np.isnan(made.p_values()).all()


EMPTY = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "x"}]}


@pytest.mark.compiled
def test_one_signature():
    test_more_than_64_thresholds()
    assert len(resampling.collect_hits.signatures) == 1


@pytest.mark.parametrize(("replicates", "seed"), [(0, 0), (10, -1), (1.5, 0), (True, 0)])
def test_draws_that_cannot_be(replicates, seed):
    with pytest.raises(detmap.OptionError, match="must be an integer"):
        statistics.bootstrap(detmap.match(ground_truth_of(EMPTY), detections_of([])), replicates, seed)


# ----------------------------------------------------------------------------------------------------------- intervals


@pytest.fixture(scope="module")
def skewed():
    values = np.random.default_rng(4).exponential(size=37)
    return values, statistics.bootstrap_queries({"mean": values}, 999, 5, bca=True)


def test_percentile_interval_is_of_quantiles(skewed):
    values, _ = skewed
    made = statistics.bootstrap_queries({"mean": values}, 999, 5)
    expected = [naive_statistics.quantile(made.replicates[:, 0], at) for at in (0.05, 0.95)]
    assert made.interval(0.9)[0] == pytest.approx(expected, rel=1e-13)


def test_bca_interval_is_efrons(skewed):
    values, made = skewed
    expected = naive_statistics.bca_interval(values.mean(), made.replicates[:, 0], made.jackknife[:, 0], 0.9)
    assert made.interval(0.9)[0] == pytest.approx(expected, rel=1e-12)
    assert made.interval(0.9)[0, 1] > statistics.bootstrap_queries({"mean": values}, 999, 5).interval(0.9)[0, 1]


def test_bca_interval_agrees_with_scipy(skewed):
    values, made = skewed
    done = scipy_stats.bootstrap((values,), np.mean, n_resamples=999, rng=1, method="BCa", confidence_level=0.9)
    again = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=0, bootstrap_result=done, method="BCa", confidence_level=0.9
    )
    with_its_draws = statistics.Bootstrap(
        metrics=("mean",),
        estimate=made.estimate,
        replicates=done.bootstrap_distribution[:, None],
        jackknife=made.jackknife,
        support=made.support,
        seed=0,
    )
    assert with_its_draws.interval(0.9)[0] == pytest.approx(list(again.confidence_interval), rel=1e-12)


def test_standard_error_of_a_mean(skewed):
    values, made = skewed
    exact = values.std(ddof=1) / math.sqrt(values.size)
    assert made.standard_error()[0] == pytest.approx(exact, rel=0.1)


def test_interval_without_spread_or_on_one_side():
    made = statistics.bootstrap_queries({"same": np.ones(9)}, 50, bca=True)
    assert made.interval()[0].tolist() == [1.0, 1.0]
    assert made.standard_error()[0] == 0
    lopsided = statistics.Bootstrap(
        metrics=("x",),
        estimate=np.array([2.0]),
        replicates=np.ones((9, 1)),
        jackknife=np.ones((3, 1)),
        support=np.array([3]),
        seed=0,
    )
    assert np.isnan(lopsided.interval()).all()
    with pytest.raises(detmap.OptionError, match="confidence level"):
        made.interval(95)


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


def test_compare_draws_the_same_images_for_all(models):
    made = detmap.compare(models, 60, 1)
    one, two = (statistics.bootstrap(models[name], 60, 1) for name in ("one", "two"))
    found = next(d for d in made.differences if {d.first, d.second} == {"one", "two"})
    sign = 1 if found.second == "two" else -1
    values = sign * (two.replicates[:, 0] - one.replicates[:, 0])
    assert found.difference == sign * (models["two"]["AP"] - models["one"]["AP"])
    assert (found.low, found.high) == pytest.approx(np.quantile(values, [0.025, 0.975]).tolist(), rel=1e-12)
    error = values.std(ddof=1) * math.sqrt(made.bootstraps["one"].support[0] / (made.bootstraps["one"].support[0] - 1))
    freedom = made.bootstraps["one"].support[0] - 1
    assert found.p == pytest.approx(2 * scipy_stats.t.sf(abs(found.difference) / error, freedom), rel=1e-10)


def test_compare_tells_apart_what_differs(models):
    made = detmap.compare(models, 60, 1)
    assert [d.second for d in made.differences][1:] == ["bad", "bad"]
    assert made.groups["bad"] == "b"
    assert made.groups["one"] == made.groups["two"] == "a"
    assert made.changed
    assert {d.second for d in made.changed} == {"bad"}
    assert [d.adjusted for d in made.categories] == pytest.approx(
        naive_statistics.holm([d.p for d in made.categories]), rel=1e-12
    )
    document = made.to_dict()
    assert [m["model"] for m in document["models"]] == ["bad", "one", "two"]
    assert len(document["differences"]) == 3
    assert len(document["categories"]) == 12


def test_a_model_does_not_differ_from_itself(models):
    made = detmap.compare({"a": models["one"], "b": models["one"]}, 50)
    (only,) = made.differences
    assert only[4:] == (0.0, 0.0, 0.0, 1.0, 1.0)
    assert made.groups == {"a": "a", "b": "a"}
    assert not made.changed


def test_compare_by_another_metric(models):
    made = detmap.compare(models, 20, metric="AP50", bca=True)
    assert made.differences[0].metric == "AP50"
    with pytest.raises(detmap.OptionError, match="no bootstrap of 'AR'"):
        detmap.compare(models, 20, metric="AR")


def test_what_cannot_be_compared(models):
    with pytest.raises(detmap.OptionError, match="two models"):
        detmap.compare({"one": models["one"]})
    other = detmap.evaluate(*tables_of_arrays(workloads.detector_like(121, 20, 4, 3)))
    with pytest.raises(detmap.OptionError, match="'one' and 'other' were scored on different images"):
        detmap.compare({"one": models["one"], "other": other})
    narrow = detmap.evaluate(*tables_of_arrays(workloads.detector_like(120, 20, 4, 3)), iou_thresholds=0.5)
    with pytest.raises(detmap.OptionError, match="different protocols"):
        detmap.compare({"one": models["one"], "narrow": narrow})
    one, other = statistics.bootstrap(models["one"], 5), statistics.bootstrap(models["one"], 6)
    with pytest.raises(detmap.OptionError, match="same images"):
        one - other


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm(p_values):
    assert statistics.holm(p_values).tolist() == pytest.approx(naive_statistics.holm(p_values), abs=1e-15)


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
    made = statistics.bootstrap_queries(values, 30, 9, bca=True)
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
    rows = statistics.compare_queries(systems, replicates=200)
    assert [(row.first, row.second) for row in rows] == [("a", "b"), ("a", "c"), ("b", "c")]
    for name in statistics.TESTS:
        assert [row.adjusted[name] for row in rows] == pytest.approx(naive_statistics.holm([r.p[name] for r in rows]))
        assert rows[0].adjusted[name] > 0.05 > rows[1].adjusted[name]
    assert rows[1].low < 0.2 < rows[1].high
    with pytest.raises(detmap.OptionError, match="unknown test 'z'"):
        statistics.compare_queries(systems, ["z"])
    with pytest.raises(detmap.OptionError, match="two systems"):
        statistics.compare_queries({"a": base})


def test_to_dict(models):
    made = statistics.bootstrap(models["one"], 20, 3)
    document = made.to_dict()
    assert document["method"] == "percentile"
    assert document["intervals"]["AP"] == made.interval()[0].tolist()
    assert [*document["intervals"].values(), *document["per_category"]] == made.interval().tolist()
    assert bits(made.estimate[:3]).tolist() == bits([models["one"][n] for n in ("AP", "AP50", "AP75")]).tolist()


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
    expected = statistics.compare_queries(columns, seed=4)
    arguments = ["trec", str(tmp_path / "qrels"), *columns, "--compare", "--seed", "4"]
    assert cli.main([*arguments, "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)["comparisons"]
    assert [row["queries"] for row in made] == [29, 30, 29]
    for row, one in zip(made, expected, strict=True):
        assert (row["difference"], row["low"], row["high"]) == (one.difference, one.low, one.high)
        assert {name: row[f"{name} (Holm)"] for name in statistics.TESTS} == one.adjusted
    assert made[0]["t (Holm)"] > 0.05 > made[1]["t (Holm)"]
    assert cli.main(arguments) == 0
    assert "wilcoxon (Holm)" in capsys.readouterr().out
    assert cli.main([*arguments, "--metrics", "P@5"]) == 0
    assert "P@5" in capsys.readouterr().out
    assert cli.main([*arguments[:-3], "--compare", "nDCG@3"]) == 2
