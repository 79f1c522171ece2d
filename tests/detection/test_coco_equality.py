"""Every bit of the COCO protocol against the real pycocotools: fixtures, made-up data sets, real data, other settings."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import large_workloads
import naive
import numpy as np
import pytest
import workloads
from hypothesis import given, seed, settings
from support import (
    METRICS,
    assert_equal_arrays,
    assert_same_result,
    bits,
    detections_of,
    evaluate,
    examples,
    expected_arrays,
    ground_truth_of,
    same_bits,
    voc2007_detections,
)

import detmap

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "coco"

#: Shares of the examples in which a peculiarity must really occur for the equality to mean anything.
LEAST_SHARES = {
    "ties within an image": 0.25,
    "ties across images": 0.2,
    "crowds": 0.3,
    "crowd matched": 0.25,
    "smallest cap exceeded": 0.5,
    "largest cap exceeded": 0.1,
    "more than 100 detections": 0.08,
    "area on an edge": 0.4,
    "detection's area on an edge": 0.4,
    "five ground truths in a cell": 0.4,
    "two best ground truths": 0.3,
    "ground truth wanted twice": 0.5,
    "IoU on a threshold": 0.3,
    "empty image": 0.1,
    "image without ground truth": 0.04,
    "image without detections": 0.04,
    "class without ground truth": 0.05,
    "class without detections": 0.01,
    "unsorted image ids": 0.2,
    "unsorted category ids": 0.12,
    "unsorted annotation ids": 0.3,
    "integer boxes": 0.4,
    "fractional boxes": 0.4,
    "zero-sized ground truth": 0.05,
    "zero-sized detection": 0.1,
    "negative scores": 0.04,
    "unknown category": 0.02,
    "own IoU thresholds": 0.25,
    "own recall thresholds": 0.2,
    "own area ranges": 0.25,
    "own caps": 0.2,
    "without categories": 0.02,
    "subset of images": 0.02,
    "subset of categories": 0.03,
    "no detections": 0.01,
    "no ground truth": 0.01,
}


def assert_equal_numbers(result, reference):
    """The twelve numbers, where pycocotools prints them for the largest cap and the four usual ranges; else the means."""

    def mean(values):
        return np.mean(values[values > -1]) if (values > -1).any() else np.nan

    expected = {"AP": mean(reference["precision"][..., 0, -1])}
    for m, cap in enumerate(result.protocol.max_dets):
        expected[f"AR_{cap}"] = mean(reference["recall"][..., 0, m])
    for a, (name, _, _) in enumerate(result.protocol.area_ranges[1:], start=1):
        expected[f"AP_{name}"] = mean(reference["precision"][..., a, -1])
        expected[f"AR_{name}"] = mean(reference["recall"][..., a, -1])
    for name, value in expected.items():
        assert same_bits(result[name], value), f"{name}: {result[name]!r}, expected {value!r}"
    if tuple(result.protocol.max_dets) == (1, 10, 100) and len(result.protocol.area_ranges) == 4:
        stats = np.where(reference["stats"] == -1, np.nan, reference["stats"])
        assert list(result) == list(METRICS)
        assert same_bits(list(result.values()), stats), dict(zip(METRICS, stats.tolist(), strict=True))


def assert_equal(dataset, results, params=None, **more):
    """One workload, both ways."""
    reference = workloads.pycocotools_evaluate(dataset, results, **(params or {}))
    result = evaluate(dataset, results, params, **more)
    assert_equal_arrays(result, reference)
    assert_equal_numbers(result, reference)
    return result, reference


# ------------------------------------------------------------------------------------------------------------ made up


@pytest.mark.parametrize("shard", range(4))
def test_any_workload(shard):
    """Where a leg makes many examples, enough of them must have what is unusual."""
    seen, made = Counter(), 0

    @seed(20250301 + shard)
    @settings(max_examples=examples(250))
    @given(workloads.coco_workloads(unsorted_thresholds=True))
    def check(workload):
        nonlocal made
        made += 1
        seen.update(name for name, occurs in workloads.features(*workload).items() if occurs)
        assert_equal(*workload)

    check()
    if made >= 200:
        shares = {name: seen[name] / made for name in LEAST_SHARES}
        rare = {name: share for name, share in shares.items() if share < LEAST_SHARES[name]}
        assert not rare, f"of {made} examples too few have: {rare}"


@pytest.mark.parametrize("shard", range(2))
def test_any_tiny_workload(shard):
    @seed(20250401 + shard)
    @settings(max_examples=examples(250))
    @given(workloads.tiny_coco_workloads(unsorted_thresholds=True))
    def check(workload):
        assert_equal(*workload)

    check()


@pytest.mark.parametrize("scores", sorted(workloads.SCORES))
@pytest.mark.parametrize("number", range(3))
def test_seeded_workload(scores, number):
    settings = {"images": 12, "categories": 4, "scores": scores, "crowded_cell": True, "over_100": number == 2}
    dataset, results = workloads.make_coco(number, **settings)
    assert_equal(dataset, results)
    assert_equal(dataset, results, {"use_categories": False})


def test_the_naive_twin_agrees_with_both():
    dataset, results = workloads.make_coco(7, images=8, crowded_cell=True, over_100=True)
    _, reference = assert_equal(dataset, results)
    twin = expected_arrays(workloads.naive_evaluate(dataset, results))
    for name, array in expected_arrays(reference).items():
        assert np.array_equal(bits(array), bits(twin[name])), name


def test_many_thresholds_and_areas_need_several_words():
    dataset, results = workloads.make_coco(11, images=6, crowded_cell=True)
    params = {"iou_thresholds": np.linspace(0.05, 0.99, 30).tolist()}
    result, _ = assert_equal(dataset, results, params)
    assert result.tally.hit.shape[1] == 2  # 30 thresholds x 4 areas are 120 bits
    ranges = [[0, 1e10], [0, 1024], [1024, 9216], [9216, 1e10], [0, 100], [100, 400], [1024, 1024]]
    result, _ = assert_equal(dataset, results, {**params, "area_ranges": ranges})
    assert result.tally.hit.shape[1] == 4


@pytest.mark.parametrize("thresholds", [[0.0], [-0.5, 0.5], [0.0, 1.0], [1.0], [1.5, 0.5], [1 - 1e-10, 1 - 1e-12]])
def test_thresholds_at_and_beyond_the_ends(thresholds):
    for number in range(4):
        dataset, results = workloads.make_coco(number, images=4, crowded_cell=True)
        assert_equal(dataset, results, {"iou_thresholds": thresholds})
        assert_equal(dataset, results, {"iou_thresholds": thresholds, "use_categories": False})


@pytest.mark.parametrize("recalls", [[0.0, 0.0, 1.0], [1.0, 0.0], [-0.5, 0.5], [2.0], [0.5, 1.1, 0.0, 0.25]])
def test_recall_thresholds_in_any_order(recalls):
    dataset, results = workloads.make_coco(3, images=6)
    assert_equal(dataset, results, {"recall_thresholds": recalls})


def test_subsets_of_images_and_categories():
    dataset, results = workloads.make_coco(5, images=9, categories=4, crowded_cell=True)
    images = [item["id"] for item in dataset["images"]]
    categories = [item["id"] for item in dataset["categories"]]
    for params in (
        {"image_ids": images[::2]},
        {"image_ids": [images[4]]},
        {"category_ids": sorted(categories[1:])},
        {"image_ids": images[3:], "category_ids": [categories[0]]},
        {"image_ids": images[3:], "category_ids": sorted(categories[1:]), "use_categories": False},
    ):
        assert_equal(dataset, results, params)


def test_infinite_scores_and_zeros_of_both_signs():
    dataset, results = workloads.make_coco(9, images=6, crowded_cell=True)
    rng = np.random.default_rng(0)
    values = [float("inf"), float("-inf"), 0.0, -0.0, 5e-324, -5e-324, 1e308, -1.0, 1.0]
    for record in results:
        record["score"] = values[rng.integers(len(values))]
    assert_equal(dataset, results)


def test_boxes_whose_areas_vanish():
    """Areas below the smallest double make an overlap of 0 / 0. pycocotools takes that for a match; it is none here."""
    tiny = [1e-170, 1e-170]
    objects = [[0, 0, 2, 2], [0, 0, *tiny], [5, 5, 1, 1]]
    boxes = [[0, 0, *tiny], [0, 0, 1, 2], [5, 5, 1, 1]]
    truth = {"image_ids": [1] * 3, "category_ids": [1] * 3, "boxes": objects}
    found = {"image_ids": [1] * 3, "category_ids": [1] * 3, "boxes": boxes, "scores": [0.9, 0.8, 0.7]}
    for thresholds in ([0.0], [-1.0], [0.5]):
        result = detmap.evaluate(
            detmap.GroundTruth.from_arrays(**truth), detmap.Detections.from_arrays(**found), iou_thresholds=thresholds
        )
        counts = result.counts(iou=thresholds[0], score=-1)
        expected = 2 if thresholds == [0.5] else 3  # a threshold of 0 takes boxes that do not touch
        assert counts.true_positives.tolist() == [expected]


def test_two_boxes_whose_areas_vanish_overlap_by_nothing():
    """Which is enough where the threshold is 0."""
    tiny = {"image_ids": [1], "category_ids": [1], "boxes": [[0, 0, 1e-170, 1e-170]]}
    for threshold, expected in ((0.0, 1), (0.5, 0)):
        truth = detmap.GroundTruth.from_arrays(**tiny)
        result = detmap.evaluate(truth, detmap.Detections.from_arrays(**tiny, scores=[1]), iou_thresholds=[threshold])
        assert result.counts(iou=threshold).true_positives.tolist() == [expected]


def sized(results, scale):
    return [{**record, "bbox": [v * scale for v in record["bbox"]]} for record in results]


@pytest.mark.parametrize("scale", [1e-6, 1e9])
def test_very_small_and_very_large_coordinates(scale):
    dataset, results = workloads.make_coco(21, images=5, crowded_cell=True, edges=(1024, 9216))
    dataset["annotations"] = sized(dataset["annotations"], scale)
    assert_equal(dataset, sized(results, scale))


# -------------------------------------------------------------------------------------------------------- dense cells


@pytest.mark.parametrize(
    ("objects", "detections", "canvas"),
    [
        (8, 64, 200.0),
        (7, 200, 300.0),
        (60, 90, 300.0),
        pytest.param(300, 400, 700.0, marks=pytest.mark.compiled),
        pytest.param(600, 800, 1100.0, marks=[pytest.mark.compiled, pytest.mark.long]),
    ],
)
def test_dense_scene(objects, detections, canvas):
    """Cells that are swept (8 objects and 512 pairs, or more), and some just below."""
    arrays = large_workloads.dense_scene(2, objects, detections, objects, canvas=canvas)
    dataset, results = large_workloads.to_coco(arrays)
    if objects < 100:
        assert_equal(dataset, results, {"max_dets": [1, 10, 100]})
    assert_equal(dataset, results, {"max_dets": [1, 100, 10_000]})


def test_dense_grid_of_equal_boxes():
    """Every edge is shared by many boxes, and every detection touches several objects equally."""
    rng = np.random.default_rng(1)
    where = [(x, y) for x in range(0, 60, 6) for y in range(0, 48, 6)]
    objects = [where[i] for i in rng.permutation(len(where))]
    dataset = {
        "images": [{"id": 1, "width": 99, "height": 99}],
        "categories": [{"id": 1, "name": "one"}],
        "annotations": [
            {
                "id": 1 + i,
                "image_id": 1,
                "category_id": 1,
                "bbox": [x, y, 12, 12],
                "area": 144,
                "iscrowd": int(i % 9 == 0),
            }
            for i, (x, y) in enumerate(objects)
        ],
    }
    boxes = [[3 * int(x), 3 * int(y), *rng.choice([0, 6, 12, 15], 2).tolist()] for x, y in rng.integers(0, 20, (90, 2))]
    results = [{"image_id": 1, "category_id": 1, "bbox": bbox, "score": int(rng.integers(5)) / 4} for bbox in boxes]
    for thresholds in (None, [0.05, 0.1, 1 / 3, 0.5], [0.0, 0.5], [-1.0]):
        assert_equal(dataset, results, {"iou_thresholds": thresholds, "max_dets": [1, 10, 100]})


@pytest.mark.compiled
def test_detector_like():
    arrays = large_workloads.detector_like(150, 100, 20, 5)
    dataset, results = large_workloads.to_coco(arrays)
    result, _ = assert_equal(dataset, results, threads=1)
    for threads in (2, 7):
        assert_same_result(evaluate(dataset, results, threads=threads), result)


# ---------------------------------------------------------------------------------------- fixtures and the real thing


def read(path):
    return json.loads(Path(path).read_text())


def test_fixtures():
    dataset, results = read(FIXTURES / "ground_truth.json"), read(FIXTURES / "detections.json")
    result, _ = assert_equal(dataset, results)
    assert dict(result) == read(FIXTURES / "expected.json")["metrics"]


def test_fixtures_through_the_readers():
    truth = detmap.read_coco(FIXTURES / "ground_truth.json")
    found = detmap.read_coco_results(FIXTURES / "detections.json", truth)
    from_records = evaluate(read(FIXTURES / "ground_truth.json"), read(FIXTURES / "detections.json"))
    assert_same_result(detmap.evaluate(truth, found), from_records)


@pytest.mark.compiled
@pytest.mark.real_data
def test_the_example_of_the_coco_api():
    """Its own ground truth and made-up results, and the numbers that it prints (with three digits)."""
    folder = workloads.REAL_DATA / "coco"
    dataset = read(folder / "instances_val2014_100.json")
    results = read(folder / "instances_val2014_fakebbox100_results.json")
    result, _ = assert_equal(dataset, results)
    printed = re.findall(r"= (-?\d\.\d+)", (folder / "val2014_fake_eval_res.txt").read_text())
    boxes = [float(number) for number in printed[12:24]]  # after the twelve for masks
    assert [round(value, 3) for value in result.values()] == boxes


@pytest.mark.compiled
@pytest.mark.real_data
def test_genuine_images_with_jittered_copies_of_their_objects():
    """The made-up results of the COCO API hold no crowd; these images do."""
    dataset = read(workloads.REAL_DATA / "coco" / "instances_val2017_COCO-MINI.json")
    rng = np.random.default_rng(2)
    results = []
    for row in dataset["annotations"]:
        for _ in range(rng.integers(0, 4)):
            box = np.array(row["bbox"]) * rng.normal(1, 0.05, 4)
            record = {"image_id": row["image_id"], "category_id": row["category_id"], "bbox": box.round(2).tolist()}
            results.append({**record, "score": round(float(rng.random()), 3)})
    assert any(row["iscrowd"] for row in dataset["annotations"])
    assert_equal(dataset, results)


@pytest.mark.long
@pytest.mark.real_data
@pytest.mark.compiled
def test_a_whole_benchmark():
    """VOC2007's test set and a real detector's 254,590 detections, by COCO's rule."""
    dataset = read(workloads.REAL_DATA / "voc2007" / "pascal_test2007.json")
    number = {item["name"]: item["id"] for item in dataset["categories"]}
    image_of = {Path(item["file_name"]).stem: item["id"] for item in dataset["images"]}
    results = []
    for name, text in voc2007_detections("a").items():
        for image, score, box in zip(*naive.read_voc_results(text), strict=True):
            x1, y1, x2, y2 = box
            record = {"image_id": image_of[image], "category_id": number[name], "score": score}
            results.append({**record, "bbox": [x1, y1, max(x2 - x1 + 1, 0), max(y2 - y1 + 1, 0)]})
    assert len(results) == 254_590
    assert_equal(dataset, results)


def test_a_workload_that_differs_is_noticed():
    """The comparison itself can fail: one detection moved by one unit in the last place of its score, or left out."""
    dataset, results = workloads.make_coco(13, images=5, scores="continuous", crowded_cell=True)
    reference = workloads.pycocotools_evaluate(dataset, results)
    top = max(results, key=lambda record: record["score"])
    changed = [{**r, "score": np.nextafter(r["score"], 2)} if r is top else r for r in results]
    for other in (changed, [r for r in results if r is not top]):
        with pytest.raises(AssertionError):
            assert_equal_arrays(evaluate(dataset, other), reference)


@pytest.mark.compiled
def test_what_only_a_drop_in_repeats():
    """Id 0 and repeated ids: an object is an object here, and the difference to pycocotools is real."""
    dataset, results = workloads.make_coco(17, images=4, categories=1, crowds=0.0, crowded_cell=True)
    expected, differ = evaluate(dataset, results), 0
    for ids in ("zero", "double"):
        rows = [dict(row) for row in dataset["annotations"]]
        for row in rows if ids == "double" else rows[:0]:
            row["id"] = 1 + row["id"] // 2
        hit = []
        for row in rows:
            trial = [{**other, "id": 0} if other is row else other for other in rows] if ids == "zero" else rows
            changed = {**dataset, "annotations": trial}
            assert_same_result(evaluate(changed, results), expected)
            reference = workloads.pycocotools_evaluate(changed, results)
            hit.append(not same_bits(expected.recall, expected_arrays(reference)["recall"]))
        differ += any(hit)
    assert differ == 2


def test_tables_of_a_workload_hold_its_records():
    dataset, results = workloads.make_coco(1)
    assert len(ground_truth_of(dataset)) == len(dataset["annotations"])
    assert len(detections_of(results)) == len(results)
