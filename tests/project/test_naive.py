"""The naive twins, workloads and fixtures: against pycocotools, exact fractions, brute force and real data."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import large_workloads
import naive
import numpy as np
import pytest
import workloads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from legs import examples
from pycocotools import mask
from pycocotools.cocoeval import Params

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
many = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def assert_equal_to_pycocotools(dataset, results, params):
    reference = workloads.pycocotools_evaluate(dataset, results, **params)
    twin = workloads.naive_evaluate(dataset, results, params)
    for name, array in twin.items():
        assert np.array_equal(array, reference[name]), name
    return reference


def exact(ranks):
    return [Fraction(rank) for rank in ranks]


# ------------------------------------------------------------------------------------------------- COCO: pycocotools


def test_default_settings_are_pycocotools():
    defaults = Params("bbox")
    assert np.array_equal(naive.IOU_THRESHOLDS, defaults.iouThrs)
    assert np.array_equal(naive.RECALL_THRESHOLDS, defaults.recThrs)
    assert defaults.areaRng == naive.AREA_RANGES
    assert defaults.maxDets == naive.MAX_DETS


@pytest.mark.parametrize("kind", ["integers", "quarters", "floats"])
def test_box_iou_has_the_bits_of_pycocotools(kind):
    rng = np.random.default_rng(7)
    for _ in range(20):
        boxes = rng.integers(-4, 12, (80, 4)) if kind == "integers" else rng.normal(4, 6, (80, 4))
        if kind == "quarters":
            boxes = np.round(boxes * 4) / 4
        boxes[:, 2:] = np.abs(boxes[:, 2:])  # some of them 0
        crowd = rng.integers(0, 2, 40)
        dt, gt = boxes[:40].astype(float), boxes[40:].astype(float)
        dt[:5] = gt[:5]
        assert np.array_equal(naive.box_iou(dt, gt, crowd), mask.iou(dt, gt, crowd.tolist()))


# What must really occur among the examples, and in what share of them at least, for their equality to mean anything.
SHARES = {
    "ties within an image": 0.3,
    "ties across images": 0.2,
    "crowds": 0.3,
    "crowd matched": 0.3,
    "empty image": 0.15,
    "image without ground truth": 0.1,
    "image without detections": 0.1,
    "area on an edge": 0.4,
    "detection's area on an edge": 0.4,
    "class without ground truth": 0.05,
    "class without detections": 0.05,
    "no detections": 0.005,
    "no ground truth": 0.01,
    "smallest cap exceeded": 0.6,
    "largest cap exceeded": 0.15,
    "more than 100 detections": 0.15,
    "unsorted image ids": 0.25,
    "unsorted category ids": 0.15,
    "unsorted annotation ids": 0.4,
    "integer boxes": 0.4,
    "fractional boxes": 0.4,
    "zero-sized ground truth": 0.05,
    "zero-sized detection": 0.15,
    "five ground truths in a cell": 0.4,
    "duplicated ground-truth box": 0.2,
    "duplicated detection box": 0.3,
    "IoU on a threshold": 0.3,
    "ground truth wanted twice": 0.5,
    "choice of ground truths": 0.3,
    "two best ground truths": 0.25,
    "negative coordinates": 0.4,
    "negative scores": 0.03,
    "unknown category": 0.04,
    "own IoU thresholds": 0.2,
    "own recall thresholds": 0.2,
    "own area ranges": 0.3,
    "own caps": 0.2,
    "without categories": 0.05,
    "subset of images": 0.04,
    "subset of categories": 0.04,
}


@pytest.mark.slow
def test_coco_evaluate_equals_pycocotools_and_the_workloads_hold_what_they_promise():
    seen, made = Counter(), 0
    wanted = max(examples(500), 100)

    @settings(many, max_examples=wanted, database=None)
    @given(workloads.coco_workloads())
    def check(workload):
        nonlocal made
        made += 1
        occurring = workloads.features(*workload)
        seen.update(name for name, occurs in occurring.items() if occurs)
        assert not occurring["id 0"]
        assert not occurring["duplicate annotation ids"]
        assert_equal_to_pycocotools(*workload)

    check()
    assert made >= wanted
    # Half of what is usual: releases of hypothesis differ in how they draw.
    too_rare = {name: seen[name] / made for name, share in SHARES.items() if seen[name] < share / 2 * made}
    assert not too_rare


@settings(many, max_examples=examples(150))
@given(workloads.tiny_coco_workloads())
def test_coco_evaluate_equals_pycocotools_on_tiny_data(workload):
    assert_equal_to_pycocotools(*workload)


@settings(many, max_examples=examples(60))
@given(workloads.coco_workloads(unsorted_thresholds=True, stray_images=True))
def test_coco_evaluate_equals_pycocotools_with_unsorted_thresholds_and_annotations_of_no_image(workload):
    assert_equal_to_pycocotools(*workload)


def test_the_switches_for_what_only_a_drop_in_repeats():
    for switch, name in (("zero_ids", "id 0"), ("duplicate_ids", "duplicate annotation ids")):
        shown = [workloads.features(*workloads.make_coco(seed, **{switch: True}))[name] for seed in range(20)]
        assert sum(shown) >= 15
    dataset, _ = workloads.make_coco(1, stray_images=True)
    assert {a["image_id"] for a in dataset["annotations"]} - {i["id"] for i in dataset["images"]}


@pytest.mark.parametrize("scores", sorted(workloads.SCORES))
def test_matching_of_a_cell_equals_pycocotools(scores):
    compared = 0
    for seed in range(4):
        dataset, results = workloads.make_coco(seed, scores=scores, crowded_cell=True, crowds=0.3)
        reference = workloads.pycocotools_evaluate(dataset, results)
        for cell in reference["eval_imgs"]:
            if cell is None or not cell["dtIds"] or not cell["gtIds"]:
                continue
            low, high = cell["aRng"]
            key = cell["image_id"], cell["category_id"]
            gt = [a for a in dataset["annotations"] if (a["image_id"], a["category_id"]) == key]
            dt = [r for r in results if (r["image_id"], r["category_id"]) == key]
            order = naive.by_score([r["score"] for r in dt])[:100]
            dt = [dt[i] for i in order]
            crowd = [a["iscrowd"] for a in gt]
            ignore = [a["iscrowd"] or a["area"] < low or a["area"] > high for a in gt]
            ious = naive.box_iou([r["bbox"] for r in dt], [a["bbox"] for a in gt], crowd)
            # given in another order than that of the scores, each detection still gets its own answer
            shuffle = np.random.default_rng(seed).permutation(len(dt))
            rank = np.argsort(shuffle)
            matched, ignored = naive.coco_match_cell(
                ious[shuffle], -shuffle.astype(float), ignore, crowd, naive.IOU_THRESHOLDS
            )
            ids = np.array([a["id"] for a in gt] + [0])[matched[:, rank]]
            assert np.array_equal(ids, cell["dtMatches"])
            hit = (matched >= 0) & ~ignored
            assert np.array_equal(hit[:, rank], (cell["dtMatches"] > 0) & ~cell["dtIgnore"])
            compared += 1
    assert compared > 100


def test_rankings_and_counts_equal_pycocotools_cells():
    dataset, results = workloads.make_coco(3, images=8, scores="tenths", crowds=0.3, crowded_cell=True)
    reference = workloads.pycocotools_evaluate(dataset, results)
    images = [item["id"] for item in dataset["images"]]
    categories = sorted(item["id"] for item in dataset["categories"])
    rankings = naive.coco_rankings(
        images, categories, dataset["annotations"], results, naive.IOU_THRESHOLDS, [0, 1e10], 100
    )
    cells = [cell for cell in reference["eval_imgs"] if cell is not None and cell["aRng"] == [0, 1e10]]
    for category, ranking in zip(categories, rankings, strict=True):
        own = [cell for cell in cells if cell["category_id"] == category]
        assert (ranking is None) == (not own)
        if ranking is None:
            continue
        for t, threshold_score in ((0, 0.3), (5, 0.0), (9, 0.7)):
            tp = fp = 0
            for cell in own:
                kept = np.array(cell["dtScores"]) >= threshold_score
                matched, ignored = cell["dtMatches"][t] > 0, np.asarray(cell["dtIgnore"][t], bool)
                tp += int((kept & matched & ~ignored).sum())
                fp += int((kept & ~matched & ~ignored).sum())
            positives = sum(int((cell["gtIgnore"] == 0).sum()) for cell in own)
            counted = naive.counts(
                ranking["scores"], ranking["hit"][t], ranking["ignored"][t], ranking["positives"], threshold_score
            )
            assert counted == (tp, fp, positives - tp)


def test_summary_equals_pycocotools():
    for seed in range(6):
        dataset, results = workloads.make_coco(seed, images=6, crowded_cell=True)
        reference = assert_equal_to_pycocotools(dataset, results, {})
        assert naive.coco_summary(reference["precision"], reference["recall"]).tolist() == reference["stats"].tolist()


def test_hits_of_a_ranking_give_the_curve_of_pycocotools():
    """The waist: from ranks, positives and an epsilon alone comes the mean over 101 points."""
    dataset, results = workloads.make_coco(5, images=8, categories=2, crowded_cell=True, scores="continuous")
    reference = workloads.pycocotools_evaluate(dataset, results)
    images, categories = ([item["id"] for item in dataset[name]] for name in ("images", "categories"))
    rankings = naive.coco_rankings(
        images, categories, dataset["annotations"], results, naive.IOU_THRESHOLDS, [0, 1e10], 100
    )
    compared = 0
    for k, ranking in enumerate(rankings):
        if ranking is None or not ranking["positives"]:
            continue
        for t in range(10):
            ranks = np.flatnonzero(ranking["hit"][t][~ranking["ignored"][t]]) + 1
            points = naive.n_point_precisions(ranks.tolist(), ranking["positives"], naive.RECALL_THRESHOLDS, 2.0**-52)
            assert points == reference["precision"][t, :, k, 0, 2].tolist()
            compared += bool(ranks.size)
    assert compared


# ----------------------------------------------------------------------------------------------- the big generators


def test_array_workloads_are_what_they_say():
    for make in (
        lambda seed: large_workloads.detector_like(40, 100, 12, seed),
        lambda seed: large_workloads.dense_scene(3, 60, 90, seed),
    ):
        arrays, again, other = make(1), make(1), make(2)
        assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
        assert not np.array_equal(arrays["dt_scores"], other["dt_scores"])
        for name in ("dt_boxes", "dt_scores"):
            assert np.array_equal(arrays[name], arrays[name].astype(np.float32))
        assert (arrays["dt_boxes"][:, 2:] > 0).all()
        assert (arrays["gt_boxes"][:, 2:] > 0).all()
        assert len(set(Counter(arrays["dt_image_ids"].tolist()).values())) == 1  # the same number in each image
        same_image = np.diff(arrays["dt_image_ids"]) == 0
        assert (np.diff(arrays["dt_scores"])[same_image] <= 0).all()
        dataset, results = large_workloads.to_coco(arrays)
        found = workloads.pycocotools_evaluate(dataset, results)
        assert 0.2 < found["stats"][0] < 0.8
        hits = sum(
            int((cell["dtMatches"][0] > 0).sum()) for cell in found["eval_imgs"] if cell and cell["aRng"][0] == 0
        )
        assert hits
    assert len(large_workloads.detector_like(2, 5, 3, 0, objects_per_image=0)["dt_scores"]) == 10


def test_detector_like_is_mostly_false_with_about_seven_objects_an_image():
    arrays = large_workloads.detector_like(200, 100, 20, 0)
    assert 6 < len(arrays["gt_boxes"]) / 200 < 8
    dataset, results = large_workloads.to_coco(arrays)
    rankings = naive.coco_rankings(
        arrays["image_ids"].tolist(), range(1, 21), dataset["annotations"], results, [0.5], [0, 1e10], 100
    )
    assert sum(int(r["hit"].sum()) for r in rankings if r) < 0.1 * len(results)
    common = np.bincount(arrays["gt_category_ids"], minlength=21)[1:]
    assert common[:5].sum() > 2 * common[-5:].sum()


# ------------------------------------------------------------------------------------------------------------- VOC


def test_voc_iou_counts_both_end_pixels():
    assert naive.voc_iou([[1, 1, 2, 2]], [[2, 2, 3, 3]])[0, 0] == 1 / 7
    assert naive.voc_iou([[1, 1, 2, 2]], [[2, 2, 3, 3]], inclusive=False)[0, 0] == 0
    assert naive.voc_iou([[1, 1, 2, 2]], [[3, 1, 4, 2]])[0, 0] == 0  # neighbours share no pixel
    assert naive.voc_iou([[0, 0, 4, 4]], [[0, 0, 2, 4]], inclusive=False)[0, 0] == 0.5
    assert naive.voc_iou(np.zeros((0, 4)), np.zeros((3, 4))).shape == (0, 3)


def test_voc_iou_without_end_pixels_is_coco_iou():
    rng = np.random.default_rng(0)
    boxes = rng.integers(0, 30, (60, 4)).astype(float)
    boxes[:, 2:] += boxes[:, :2] + 1
    as_coco = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
    ours = naive.voc_iou(boxes[:30], boxes[30:], inclusive=False)
    assert np.array_equal(ours, naive.box_iou(as_coco[:30], as_coco[30:], np.zeros(30)))
    assert (ours > 0).any()


def test_voc_matching_by_hand():
    gts = {
        "a": ([[1, 1, 10, 10], [1, 1, 10, 10], [101, 1, 110, 10]], [False, False, True]),
        "b": ([[1, 1, 10, 10]], [False]),
    }
    images = ["a", "a", "a", "a", "b", "c"]
    scores = [0.9, 0.8, 0.7, 0.6, 0.9, 0.5]
    boxes = [[1, 1, 10, 10], [1, 1, 10, 10], [101, 1, 110, 10], [101, 1, 110, 10], [1, 1, 10, 5], [1, 1, 9, 9]]
    order, outcome, positives = naive.voc_match(images, scores, boxes, gts)
    assert order.tolist() == [0, 4, 1, 2, 3, 5]
    # The second of two equal objects is never looked at, difficult ones take any number, IoU 1/2 is enough.
    assert outcome == ["TP", "TP", "FP", "ignored", "ignored", "FP"]
    assert positives == 3
    _, strict, _ = naive.voc_match(images, scores, boxes, gts, strict=True)
    assert strict == ["TP", "FP", "FP", "ignored", "ignored", "FP"]
    assert naive.hit_ranks(["FP", "ignored", "TP", "ignored", "TP"]) == [2, 3]


def test_voc_reading_leaves_parts_alone():
    text = """<annotation><object><name> person </name><difficult>1</difficult>
        <part><name>head</name><bndbox><xmin>7</xmin><ymin>7</ymin><xmax>8</xmax><ymax>8</ymax></bndbox></part>
        <bndbox><ymax>4</ymax><xmax>3.5</xmax><ymin>2</ymin><xmin>1</xmin></bndbox></object></annotation>"""
    assert naive.read_voc_xml(text) == [{"name": "person", "difficult": True, "box": [1.0, 2.0, 3.5, 4.0]}]


def brute_force_voc_ap(outcome, positives):
    """11-point AP of the Python programs, from cumulative counts, and the kit's area."""
    tp, fp = (np.cumsum([what == wanted for what in outcome]) for wanted in ("TP", "FP"))
    recall, precision = tp / positives, tp / np.maximum(tp + fp, np.finfo(float).eps)
    eleven = 0.0
    for point in np.arange(0.0, 1.1, 0.1):
        eleven += (precision[recall >= point].max() if (recall >= point).any() else 0) / 11
    return eleven, naive.vocap(outcome, positives)


@given(st.lists(st.sampled_from(["TP", "FP", "FP", "ignored"]), min_size=1, max_size=40), st.integers(0, 10))
def test_voc_ap_equals_the_cumulative_form(outcome, missed):
    if missed + outcome.count("TP") == 0:
        missed = 1
    positives = missed + outcome.count("TP")
    ranks = naive.hit_ranks(outcome)
    eleven, area = brute_force_voc_ap(outcome, positives)
    assert naive.voc_ap_11(ranks, positives) == eleven
    assert naive.voc_ap_all_point(ranks, positives) == area


@pytest.mark.slow
@workloads.needs_real_data
def test_voc_twin_on_many_tied_scores():
    """Of three classes; formats/test_voc.py compares the twin with published numbers, and evaluations with it, on all."""
    truth, found = workloads.real_voc_ground_truth(), workloads.real_voc_detections("b", "cow", "sheep", "train")
    assert {name: len(scores) for name, (_, scores, _) in found.items()} == {
        "cow": 20884,
        "sheep": 21879,
        "train": 23878,
    }
    result = naive.voc_evaluate(sorted(found), truth, found)
    for name, (_, scores, _) in found.items():
        assert len(set(scores)) < len(scores) / 2
        assert np.array_equal(result[name]["order"], naive.by_score(scores))
        outcome = result[name]["outcome"]
        eleven, area = brute_force_voc_ap(outcome, result[name]["positives"])
        assert result[name]["ap_11"] == eleven
        assert result[name]["ap_all_point"] == area


@pytest.mark.slow
@workloads.needs_real_data
def test_coco_twin_on_the_example_of_the_coco_api():
    folder = workloads.REAL_DATA / "coco"
    truth = json.loads((folder / "instances_val2014_100.json").read_text())
    found = json.loads((folder / "instances_val2014_fakebbox100_results.json").read_text())
    reference = assert_equal_to_pycocotools(truth, found, {})
    printed = (folder / "val2014_fake_eval_res.txt").read_text().split("type=bbox")[1].split("---")[0]
    numbers = [float(line.split("=")[-1]) for line in printed.splitlines() if "@[" in line]
    assert len(numbers) == 12
    assert [round(float(value), 3) for value in reference["stats"]] == numbers


@pytest.mark.slow
@workloads.needs_real_data
def test_coco_twin_on_part_of_voc_as_coco():
    truth = json.loads((workloads.REAL_DATA / "voc2007" / "pascal_test2007.json").read_text())
    names = {item["name"]: item["id"] for item in truth["categories"]}
    images = sorted(item["id"] for item in truth["images"])[:150]
    chosen = set(images)
    found = []
    for name, rows in workloads.real_voc_detections("a").items():
        for image, score, (x1, y1, x2, y2) in zip(*rows, strict=True):
            if int(image) in chosen:
                box = [x1, y1, x2 - x1 + 1, y2 - y1 + 1]
                found.append({"image_id": int(image), "category_id": names[name], "bbox": box, "score": score})
    assert len(found) > 5000
    assert_equal_to_pycocotools(truth, found, {"image_ids": images})


# --------------------------------------------------------------------------------------------------------- rankings


def test_worked_examples_in_exact_fractions():
    step, trapezoid = naive.step_ap, naive.trapezoid_ap
    assert step(exact([1, 4, 5]), 3) == Fraction(7, 10)
    assert step(exact([1, 2, 3]), 3) == 1
    assert step(exact([1, 3, 6, 9, 10]), 5) == Fraction(28, 45)
    assert naive.all_point_ap(exact([1, 3, 6]), 3) == Fraction(13, 18)
    tenths = [Fraction(i, 10) for i in range(11)]
    assert naive.n_point_ap(exact([1, 3, 6]), 3, tenths) == Fraction(8, 11)
    assert naive.voc_ap_11([1, 3, 6], 3) == pytest.approx(8 / 11, abs=1e-15)  # summed in elevenths
    # two rankings of five, five positives: the trapezoid looks at the rank before, not at the previous hit
    assert trapezoid(exact([2, 3, 4]), 5) == Fraction(37, 120)
    assert trapezoid(exact([1, 4, 5]), 5) == Fraction(59, 150)
    assert trapezoid(exact([1, 3, 4]), 5) == Fraction(11, 24)
    assert trapezoid(exact([2, 3, 4]), 4) == Fraction(37, 96)
    assert trapezoid(exact([1, 3]), 2) == Fraction(19, 24)
    assert step(exact([2, 3, 4]), 5) == Fraction(23, 60)
    assert step(exact([1, 4, 5]), 5) == Fraction(21, 50)
    assert step(exact([1, 3, 4]), 5) == Fraction(29, 60)


def test_the_grid_of_the_python_programs_misses_three_tenths():
    ranks = [1, 2, 3]  # recall 3/10 exactly, at precision 1
    assert naive.voc_ap_11(ranks, 10) == 3 * (1 / 11)
    assert naive.n_point_ap(ranks, 10, [i / 10 for i in range(11)]) == 4 / 11


rankings = st.lists(st.booleans(), max_size=30)


@given(rankings, st.integers(0, 5))
def test_average_precisions_against_brute_force(relevance, missed):
    positives = sum(relevance) + missed
    ranks = naive.ranks_of(relevance)
    if not positives:
        for measure in (naive.step_ap, naive.all_point_ap, naive.trapezoid_ap, naive.voc_ap_11, naive.voc_ap_all_point):
            assert math.isnan(measure(ranks, 0))
        assert math.isnan(naive.n_point_ap(ranks, 0, [0.5]))
        return
    points = [
        (Fraction(sum(relevance[:n]), n), Fraction(sum(relevance[:n]), positives)) for n in range(1, len(relevance) + 1)
    ]
    hits = [n for n, relevant in enumerate(relevance) if relevant]
    best_from = [max((p for p, _ in points[n:]), default=0) for n in range(len(points))]
    assert naive.step_ap(exact(ranks), positives) == sum(points[n][0] for n in hits) * Fraction(1, positives)
    assert naive.all_point_ap(exact(ranks), positives) == sum(best_from[n] for n in hits) * Fraction(1, positives)
    halves = [points[n][0] + points[max(n - 1, 0)][0] for n in hits]
    assert naive.trapezoid_ap(exact(ranks), positives) == sum(halves) * Fraction(1, 2 * positives)
    for count in (11, 101, 4):
        grid = [Fraction(i, count - 1) for i in range(count)]
        at = [max((p for p, r in points if r >= wanted), default=0) for wanted in grid]
        assert naive.n_point_ap(exact(ranks), positives, grid) == sum(at) * Fraction(1, count)
    precision, recall = naive.precision_recall(relevance, positives)
    assert precision == [float(p) for p, _ in points]
    assert recall == [float(r) for _, r in points]


@given(rankings, st.integers(1, 5))
def test_floats_are_near_the_fractions(relevance, missed):
    ranks, positives = naive.ranks_of(relevance), sum(relevance) + missed
    for measure in (naive.step_ap, naive.all_point_ap, naive.trapezoid_ap):
        inexact = measure(ranks, positives)
        assert isinstance(inexact, float)
        assert inexact == pytest.approx(float(measure(exact(ranks), positives)), abs=1e-14)


# ------------------------------------------------------------------------------------------------- sorting and counts

tied_scores = st.lists(st.sampled_from([0.0, -0.0, 0.25, -1.5, 3.0, math.nan]), max_size=25)


@given(tied_scores, st.randoms(use_true_random=False))
def test_sorting_equals_numpy_stable_sorting(scores, random):
    assert naive.by_score(scores) == np.argsort(-np.array(scores, float), kind="stable").tolist()
    groups = [random.randrange(3) for _ in scores]
    assert naive.grouped_order(groups, scores) == np.lexsort((-np.array(scores, float), groups)).tolist()


def test_ranks_of_scored_items():
    assert naive.ranks_of([0, 1, 1, 0], [0.1, 0.5, 0.9, 0.5]) == [1, 2]
    assert naive.ranks_of([1, 0, 1], [0.5, 0.5, 0.5]) == [1, 3]


detections = st.lists(
    st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5]), st.sampled_from(["hit", "miss", "miss", "ignored"])),
    max_size=20,
)


@given(detections, st.integers(0, 4))
def test_best_f1_against_brute_force(found, missed):
    scores = [score for score, _ in found]
    hit, ignored = [kind == "hit" for _, kind in found], [kind == "ignored" for _, kind in found]
    positives = sum(hit) + missed
    result = naive.best_f1(scores, hit, ignored, positives)
    counted = {score for score, kind in found if kind != "ignored"}
    if not positives or not counted:
        assert all(math.isnan(value) for value in result)
        return
    choices = []
    for threshold in counted:
        tp, fp, fn = naive.counts(scores, hit, ignored, positives, threshold)
        assert tp + fn == positives
        choices.append((Fraction(2 * tp, 2 * tp + fp + fn), threshold, tp / (tp + fp), tp / positives))
    f1, score, precision, recall = max(choices)
    assert result == (score, float(f1), precision, recall)


def test_best_f1_takes_a_tied_group_whole():
    # cut within the group, F1 could be 1
    assert naive.best_f1([0.5, 0.5], [True, False], [False, False], 1) == (0.5, 2 / 3, 0.5, 1.0)
    # 0.9 and 0.1 both give 1/2: the higher score wins
    assert naive.best_f1([0.9, 0.5, 0.5, 0.5, 0.1], [1, 0, 0, 0, 1], [0] * 5, 3)[:2] == (0.9, 0.5)


# --------------------------------------------------------------------------------------------------------- fixtures


@pytest.fixture(scope="module")
def made():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import make_fixtures
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return make_fixtures.make()


def test_committed_fixtures_are_what_the_script_makes(made):
    committed = {
        p.relative_to(FIXTURES).as_posix()
        for folder in ("coco", "dota", "lvis", "nuscenes", "panoptic", "people", "poses", "temporal", "voc", "ytvis")
        for p in (FIXTURES / folder).rglob("*.*")
    }
    assert committed == set(made)
    different = [path for path, content in made.items() if (FIXTURES / path).read_bytes() != content]
    assert not different
    assert sum(map(len, made.values())) < 2_000_000


def test_coco_fixture(made):
    dataset, results = json.loads(made["coco/ground_truth.json"]), json.loads(made["coco/detections.json"])
    reference = assert_equal_to_pycocotools(dataset, results, {})
    committed = json.loads((FIXTURES / "coco" / "expected.json").read_text())
    assert list(committed["metrics"].values()) == reference["stats"].tolist()
    assert 0.35 < reference["stats"][0] < 0.55
    assert (reference["stats"] > 0).all()
    occurring = workloads.features(dataset, results)
    for name in ("ties within an image", "ties across images", "crowd matched", "image without detections"):
        assert occurring[name], name
    assert len({annotation["id"] for annotation in dataset["annotations"]}) == len(dataset["annotations"])
    listed = {item["id"] for item in dataset["images"]}
    assert len(listed) == 60
    assert {record["image_id"] for record in dataset["annotations"] + results} <= listed


def test_voc_fixture(made):
    truth = {Path(path).stem: naive.read_voc_xml(content) for path, content in made.items() if path.endswith(".xml")}
    found = {
        Path(path).stem.split("_")[-1]: naive.read_voc_results(content.decode())
        for path, content in made.items()
        if path.startswith("voc/results/")
    }
    assert made["voc/ImageSets/test.txt"].decode().split() == sorted(truth)
    objects = [item for listed in truth.values() for item in listed]
    assert {item["name"] for item in objects} == set(found) == {"bicycle", "car", "cat", "dog", "person"}
    assert sum(item["difficult"] for item in objects) > 10
    assert [] in truth.values()
    assert sum(content.count(b"<part>") for content in made.values()) > 10
    result = naive.voc_evaluate(sorted(found), truth, found)
    assert all(0.3 < numbers["ap_11"] < 0.95 for numbers in result.values())
    assert all(len(set(scores)) < len(scores) for _, scores, _ in found.values())  # ties
    images = {image for images, _, _ in found.values() for image in images}
    assert images <= set(truth)
