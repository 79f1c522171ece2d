"""Bootstraps: replicates equal to images really duplicated, and streams of draws."""

from __future__ import annotations

import math

import large_workloads
import naive
import naive_statistics
import numpy as np
import pytest
import workloads
from compared_models import all_columns, naive_params
from hypothesis import given, settings
from hypothesis import strategies as st
from support import detections_of, evaluate, examples, ground_truth_of, same_bits, tables_of_arrays

import detmap
from detmap import statistics
from detmap.kernels import readonly, resampling
from detmap.statistics import draws, reweighting
from detmap.statistics.bootstrap import replicated


@pytest.mark.slow
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
    return data._hits(data.words(codes), data.positives(codes), (0, 1), near, reweighting._Room()).ranks.tolist()


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
    truth, found = tables_of_arrays(large_workloads.detector_like(40, 30, 5, 1))
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
@pytest.mark.jit
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
