"""Real gaps between programs: both numbers are made without the search or the decision, and the decision explains all of it.

Where a program decides otherwise on the same records its twin is written from its own rules (`naive_tools`, or a loop
here); where it reads other records these are changed for real, and scored under plain rules.
"""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import naive_tools
import numpy as np
import pytest
from support import same_bits
from test_presets import of_classes, tables, workload

import detmap
from detmap.detection.protocols import COCO, PRESETS
from detmap.explanations import explain_rankings, explain_run
from detmap.kernels import readonly
from detmap.retrieval import evaluate_codes, evaluate_distances, evaluate_run

COCO_FILES = Path(__file__).resolve().parents[2] / "fixtures" / "coco"
TRUTH = json.loads((COCO_FILES / "ground_truth.json").read_text(encoding="utf-8"))
FOUND = json.loads((COCO_FILES / "detections.json").read_text(encoding="utf-8"))


def read(truth=TRUTH, found=FOUND):
    objects = detmap.read_coco(truth)
    return objects, detmap.read_coco_results(found, objects)


def boxes(change):
    """The records with other corners."""
    out = []
    for one in FOUND:
        x, y, w, h = one["bbox"]
        near, far = change(np.array([x, y])), change(np.array([x + w, y + h]))
        out.append({**one, "bbox": [*near.tolist(), *(far - near).tolist()]})
    return TRUTH, out


def annotated(kept=lambda one: True, **changes):
    listed = [{**one, **changes} for one in TRUTH["annotations"] if kept(one)]
    return {**TRUTH, "annotations": listed}, FOUND


def whole_of(made, *decisions):
    """All of the gap goes to these decisions, and is not nothing."""
    gap = Fraction(made.target_value) - Fraction(made.source_value)
    assert sum((one.exact for one in made.shares), Fraction()) == gap != 0
    assert {one.decision for one in made.shares if one.exact} == set(decisions)


SEEN = {one["image_id"] for one in FOUND if one["score"] >= 0.5}

#: What is decided, and the records that a program makes which decides so: name, change of COCO's rules, records, label.
CHANGED = {
    "a confidence cut at 0.25": (
        "min_score=0.25",
        (TRUTH, [one for one in FOUND if one["score"] >= 0.25]),
        "min_score",
    ),
    "crowds that a converter leaves out": (
        "left_out=crowd+ignore=none+crowd_overlap=no",
        annotated(lambda one: not one["iscrowd"]),
        "crowds",
    ),
    "crowds that lost their flag": ("ignore=none+crowd_overlap=no", annotated(iscrowd=0), "crowds"),
    "boxes in whole pixels": (
        "box_decimals=0",
        boxes(lambda corner: np.array([round(side) for side in corner])),
        "box_decimals",
    ),
    "pixels that count from 1": ("box_offset=1", boxes(lambda corner: corner + 1), "box_offset"),
    "scores with two decimals": (
        "score_decimals=2",
        (TRUTH, [{**one, "score": round(one["score"], 2)} for one in FOUND]),
        "score_decimals",
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_records_that_a_program_changes(name):
    text, records, label = CHANGED[name]
    made = detmap.explain(*read(), "coco", f"coco+{text}")
    assert made.target_value == pytest.approx(detmap.evaluate(*read(*records))["AP"], abs=1e-12)
    whole_of(made, label)


def test_images_without_detections_are_never_opened():
    truth = {**TRUTH, "annotations": [one for one in TRUTH["annotations"] if one["image_id"] in SEEN]}
    found = [one for one in FOUND if one["score"] >= 0.5]
    made = detmap.explain(*read(), "coco+min_score=0.5", "coco+min_score=0.5+scored_images=detected")
    assert made.target_value == detmap.evaluate(*read(truth, found))["AP"]
    assert made.target_value > made.source_value
    whole_of(made, "scored_images")


def test_a_cap_of_an_image_is_no_cap_of_a_class():
    """The best 20 of an image, as detectors keep them, against the best 20 of each class in it."""
    kept, counts = [], {}
    for one in sorted(FOUND, key=lambda one: -one["score"]):
        counts[one["image_id"]] = counts.get(one["image_id"], 0) + 1
        kept += [one] * (counts[one["image_id"]] <= 20)
    made = detmap.explain(*read(), "coco+max_dets=20", "coco+max_per_image=20")
    assert made.target_value == pytest.approx(detmap.evaluate(*read(TRUTH, kept))["AP"], abs=1e-3)  # the order of ties
    assert {one.decision for one in made.shares if one.exact} <= {"max_dets", "max_per_image"}


def test_ultralytics_against_pycocotools():
    """On one JSON: the twin of Ultralytics' rules, and pycocotools' number (of which the fixture holds the bits)."""
    truth, found = workload(7, images=8)
    made = detmap.explain(*tables(truth, found, images=8), "ultralytics", "coco")
    twin = naive_tools.ultralytics(truth, found, since_2026=True, cut=0.001, cap=300)
    assert made.source_value == pytest.approx(np.mean(list(twin.values())), abs=1e-14)
    whole_of(made, *(one.decision for one in made.shares if one.exact))
    expected = json.loads((COCO_FILES / "expected.json").read_text(encoding="utf-8"))
    value = detmap.explain(*read(), "ultralytics", "coco").target_value
    assert value in list(_numbers(expected))


def _numbers(value):
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)
    elif isinstance(value, float):
        yield value


def test_torchmetrics_reads_its_curve_in_single_precision():
    """Its ten thresholds and 101 recalls are tensors; caps are the same. The gap is a curve's, not the detector's."""
    grid = naive_tools.tensor_grid()
    single = dataclasses.replace(COCO, **{name: tuple(values) for name, values in grid.items()})
    made = detmap.explain(*read(), "torchmetrics", "coco")
    assert made.source_value == detmap.evaluate(*read(), single)["AP"]
    whole_of(made, "curve")


@pytest.mark.parametrize(("source", "target"), [("voc2007", "voc2012"), ("voc2012", "coco"), ("voc2007", "coco")])
def test_three_numbers_called_mean_average_precision(source, target):
    """VOC at 11 recalls, VOC by the whole area, and COCO at 0.5."""
    made = detmap.explain(*read(), source, target, metric="AP50")
    for name, value in ((source, made.source_value), (target, made.target_value)):
        result = detmap.evaluate(*read(), dataclasses.replace(PRESETS[name], iou_thresholds=(0.5,)))
        assert value == next(iter(result.values()))
    assert "curve" in {one.decision for one in made.shares if one.exact}


def test_padillas_unstable_sort():
    """Any order of equal scores is what an unstable sort may make: each gives a number within the band."""
    truth, found = read()
    made = detmap.explain(truth, found, "padilla", "coco", metric="AP50")
    low, high = made.source_band
    assert low < made.source_value < high
    protocol = dataclasses.replace(PRESETS["padilla"], iou_thresholds=(0.5,))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(found))
        order = order[np.lexsort((found.images.codes[order], -found.scores[order]))]
        shuffled = found.take(order[np.random.default_rng(seed).permutation(order.size)])
        value = next(iter(detmap.evaluate(truth, shuffled, protocol).values()))
        assert low - 2e-3 <= value <= high + 2e-3  # equal scores within an image are matched in another order, too


def test_difficult_objects():
    """Padilla's program counts them, the devkit does not: of twins of both the second finds fewer positives."""
    truth, found = workload(3, images=6)
    objects, detections = tables(truth, found)
    counted = dataclasses.replace(objects, difficult=readonly(np.zeros(len(objects)), np.bool_))
    made = detmap.explain(objects, detections, "voc2012", "voc2012+ignore=crowd")
    whole_of(made, "crowds")
    rules = dataclasses.replace(PRESETS["voc2012"], ignore=("crowd",))
    assert same_bits(
        np.array(list(of_classes(detmap.evaluate(objects, detections, rules)).values())),
        np.array(list(of_classes(detmap.evaluate(counted, detections, "voc2012")).values())),
    )
    assert made.target_value == detmap.evaluate(counted, detections, "voc2012")["mAP"]


def test_the_inclusive_pixel():
    """The devkit's "+ 1" is a box that is one pixel larger to the right and below."""
    truth, found = workload(5, images=6)
    larger = [(i, c, (x1, y1, x2 + 1, y2 + 1), *rest) for i, c, (x1, y1, x2, y2), *rest in truth]
    grown = [(i, c, (x1, y1, x2 + 1, y2 + 1), s) for i, c, (x1, y1, x2, y2), s in found]
    made = detmap.explain(*tables(truth, found), "coco", "coco+inclusive_pixels=yes")
    result = detmap.evaluate(*tables(larger, grown))
    assert made.target_value == pytest.approx(result["AP"], abs=1e-12)
    whole_of(made, "pixels")


# ------------------------------------------------------------------------------------------------------------ rankings

RNG = np.random.default_rng(11)
IDS = RNG.integers(0, 6, 50)
NEAR = RNG.random((20, 50)) + 0.2 * (IDS[:20, None] != IDS)


def average(relevant, rule):
    """The AP of one ranking of 0 and 1, by a loop."""
    hits, total = 0, 0.0
    for rank, flag in enumerate(relevant, start=1):
        if flag:
            before = hits / (rank - 1) if rank > 1 else 1.0
            hits += 1
            total += hits / rank if rule == "step" else (hits / rank + before) / 2
    return total / hits


def test_the_trapezoid_of_market_1501():
    def evaluate(convention):
        return evaluate_distances(NEAR, IDS[:20], IDS, metrics=["mAP"], convention=convention)

    made = explain_rankings(evaluate, "oxford", "trec")
    relevant = [(IDS[np.argsort(row)] == own) for row, own in zip(NEAR, IDS[:20], strict=True)]
    assert made.source_value == pytest.approx(np.mean([average(one, "trapezoid") for one in relevant]), abs=1e-12)
    assert made.target_value == pytest.approx(np.mean([average(one, "step") for one in relevant]), abs=1e-12)
    whole_of(made, "interpolation")


def test_the_divisor_of_scripts_for_hash_codes():
    """They divide by the hits in the top k, and not by what there was to find."""
    codes = RNG.integers(0, 2, (50, 64))

    def evaluate(convention):
        return evaluate_codes(codes[:10], codes, IDS[:10], IDS, 5, metrics=["mAP@5"], convention=convention)

    made = explain_rankings(evaluate, "hits_topk", "detmap", "mAP@5")
    distances = (codes[:10, None] != codes).sum(axis=2)
    ranked = [(IDS[np.argsort(row, kind="stable")[:5]] == own) for row, own in zip(distances, IDS[:10], strict=True)]
    assert made.source_value == pytest.approx(np.mean([average(one, "step") for one in ranked]), abs=1e-12)
    whole_of(made, "normalizer")


def test_equal_scores_of_a_run():
    """trec_eval goes down the names of documents, ranx keeps the order of the file."""
    qrels = {"q": {"a": 1, "b": 0, "c": 1}}
    made = explain_run(qrels, {"q": {"a": 0.5, "b": 0.5, "c": 0.5}}, "ranx", "trec")
    assert made.source_value == average([1, 0, 1], "step")
    assert made.target_value == average([1, 0, 1][::-1], "step")  # c, b, a: the same here
    made = explain_run(qrels, {"q": {"a": 0.5, "c": 0.5, "b": 0.5}}, "ranx", "trec")
    assert (made.source_value, made.target_value) == (1.0, average([1, 0, 1], "step"))
    whole_of(made, "ties")


def test_cmc_of_cuhk03_draws_one_image_of_each_person():
    """Against Market-1501's, which looks at all images: fewer images of others stand ahead."""

    def evaluate(convention):
        return evaluate_distances(NEAR, IDS[:20], IDS, metrics=["CMC@3"], convention=convention)

    made = explain_rankings(evaluate, "reid", "cuhk03_exact", "CMC@3")
    first = [(IDS[np.argsort(row)] == own).argmax() < 3 for row, own in zip(NEAR, IDS[:20], strict=True)]
    assert made.source_value == pytest.approx(np.mean(first))
    whole_of(made, "cmc")


def test_what_a_run_lacks():
    """ranx counts a judged query without results as 0, trec_eval's mean is over the queries of the run."""
    qrels, run = {"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1.0}}
    made = explain_run(qrels, run, "trec", "ranx")
    assert (made.source_value, made.target_value) == (1.0, 0.5)
    whole_of(made, "missing")
    assert evaluate_run(qrels, run, ["mAP"], "trec")["mAP"] == 1.0
