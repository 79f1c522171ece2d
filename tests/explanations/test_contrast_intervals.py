"""Intervals of what makes the difference of two models, against images that are really copied and scored anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import naive_statistics
import numpy as np
import pytest
import workloads
from support import detections_of, ground_truth_of, same_bits
from test_explain import FOUND, TRUTH, run

import detmap
from detmap.diagnostics._redrawn import redrawn
from detmap.explanations import contrast, parse
from detmap.explanations.replay import trimmed
from detmap.statistics import drawn

COLUMNS = ("AP", "dAP_Cls", "dAP_Loc", "dAP_Both", "dAP_Dupe", "dAP_Bkg", "dAP_Miss")

PROTOCOLS = [
    "coco",
    "coco+ties=file",
    "coco+use_categories=no",
    "coco+scored_images=detected+max_per_image=3",
    "voc2007",
    "ultralytics",
    "ultralytics-8.3",
    "padilla",
]


def same_as_of_copies(made, dataset, results, protocol, draws):
    """Hold every replicate, and every jackknife, against a diagnosis of a data set with those copies of images."""
    size = len(dataset["images"])

    def expected(counts):
        copies, found = naive_statistics.duplicated(dataset, results, counts)
        tide = detmap.diagnose(ground_truth_of(copies), detections_of(found), protocol, iou=0.5).tide()
        return [tide[name] for name in COLUMNS]

    ones = np.ones(size, int)
    assert same_bits(made.estimate, expected(ones))
    for r in range(draws):
        assert same_bits(made.replicates[r], expected(drawn(size, made.seed, r))), r
    for i in range(size):
        assert same_bits(made.jackknife[i], expected(ones - (np.arange(size) == i))), i


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("seed", range(2))
def test_costs_of_errors_in_draws_are_those_of_data_with_copies(name, seed):
    dataset, results = workloads.make_coco(seed, images=6, crowded_cell=True)
    protocol = trimmed(parse(name), "AP")
    diagnosis = detmap.diagnose(
        ground_truth_of(dataset), detections_of(results), protocol, iou=0.5, replicates=200, seed=seed
    )
    made = redrawn(diagnosis)
    assert made.metrics == COLUMNS
    same_as_of_copies(made, dataset, results, protocol, 8)


def test_a_class_of_crowds_alone_does_not_move_the_ends_of_an_interval():
    dataset, results = workloads.make_coco(0, images=6)
    crowd = {**dataset["annotations"][0], "id": 10**6, "category_id": 10**6, "iscrowd": 1}
    more = {
        **dataset,
        "categories": [*dataset["categories"], {"id": 10**6}],
        "annotations": [*dataset["annotations"], crowd],
    }
    one, other = (
        redrawn(
            detmap.diagnose(ground_truth_of(made), detections_of(results), trimmed(parse("coco"), "AP"), replicates=200)
        )
        for made in (dataset, more)
    )
    assert same_bits(one.near, other.near)


def test_a_class_whose_objects_are_all_missed_in_a_draw():
    """Of class 2 one object is missed and one found: without the latter nothing is left of it when misses are mended."""

    def box(image, category, x, **more):
        return {"image_id": image, "category_id": category, "bbox": [x, 0, 10, 10], **more}

    objects = [box(1, 2, 0), box(2, 2, 0), box(1, 1, 50), box(3, 1, 50)]
    dataset = {
        "images": [{"id": image} for image in (1, 2, 3)],
        "categories": [{"id": 1}, {"id": 2}],
        "annotations": [{"id": i, "area": 100, "iscrowd": 0, **one} for i, one in enumerate(objects, 1)],
    }
    results = [box(2, 2, 0, score=0.9), box(3, 2, 300, score=0.8), box(1, 1, 50, score=0.7), box(3, 1, 54, score=0.4)]
    protocol = trimmed(parse("coco"), "AP50")
    diagnosis = detmap.diagnose(ground_truth_of(dataset), detections_of(results), protocol, replicates=200)
    same_as_of_copies(redrawn(diagnosis), dataset, results, protocol, 60)


def test_ties_between_classes_go_by_the_file_where_the_rule_says_so():
    """A detection that is mended into another class stands there as the file has it, among equal scores too."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[0, 0, 1], category_ids=[1, 1, 2], boxes=[[0, 0, 10, 10], [50, 0, 10, 10], [0, 0, 10, 10]]
    )
    # The one of class 2 covers the second object of class 1, and has the score of a false positive and of a hit there.
    rows = {"miss": (1, 1, [200, 0, 10, 10]), "hit": (0, 1, [0, 0, 10, 10]), "wrong class": (0, 2, [50, 0, 10, 10])}
    gains = []
    for order in (("wrong class", "miss", "hit"), ("miss", "wrong class", "hit"), ("miss", "hit", "wrong class")):
        listed = [rows[name] for name in order]
        found = detmap.Detections.from_arrays(
            image_ids=[row[0] for row in listed],
            category_ids=[row[1] for row in listed],
            boxes=[row[2] for row in listed],
            scores=[0.5, 0.5, 0.5],
        )
        tide = detmap.diagnose(truth, found, parse("voc2012+ties=file")).tide()
        gains.append(tide["AP"] + tide["dAP_Cls"])
    # AP of class 1 with hits at 1 and 3, at 2 and 3, and at 2 and 3; of class 2 there is nothing.
    assert gains == pytest.approx([(0.5 + 0.5 * 2 / 3) / 2, 2 / 3 / 2, 2 / 3 / 2])


@pytest.fixture(scope="module")
def workload():
    dataset, results = workloads.make_coco(11, images=20, categories=3, crowds=0.05)
    rng = np.random.default_rng(3)
    other = [
        {**one, "score": float(np.clip(one["score"] + rng.normal(0, 0.2), 0, 1))}
        for one in results
        if rng.random() < 0.8
    ]
    return dataset, results, other


@pytest.fixture(scope="module")
def made(workload):
    dataset, *found = workload
    return contrast(ground_truth_of(dataset), *map(detections_of, found), replicates=200, level=0.9, seed=2)


def test_intervals_of_errors_are_those_of_the_paired_draws(workload, made):
    dataset, *found = workload
    truth = ground_truth_of(dataset)
    first, second = (
        redrawn(detmap.diagnose(truth, detections_of(one), trimmed(parse("coco"), "AP"), replicates=200, seed=2))
        for one in found
    )
    saved = first - second
    ends = dict(zip(COLUMNS, saved.interval(0.9).tolist(), strict=True))
    effects = {f"dAP_{one.name}": one for one in made.splits["errors"].effects}
    assert {name: [one.low, one.high] for name, one in effects.items()} == {
        name: pytest.approx(ends[name], abs=1e-15, nan_ok=True) for name in COLUMNS[1:]
    }
    known = [one for one in effects.values() if not np.isnan(one.low)]
    assert len(known) > 2
    assert all(one.low < one.value < one.high for one in known)


@pytest.mark.slow
def test_intervals_without_an_image_come_from_the_draws_that_do_not_hold_it(workload, made):
    """Each draw is made of images that are really copied; an interval without one takes the draws in which it is not."""
    dataset, *found = workload
    size = len(dataset["images"])

    def gap(counts):
        values = []
        for one in found:
            copies, rows = naive_statistics.duplicated(dataset, one, counts)
            values.append(detmap.evaluate(ground_truth_of(copies), detections_of(rows))["AP"])
        return values[1] - values[0]

    ones = np.ones(size, int)
    counts = [drawn(size, 2, r) for r in range(200)]
    gaps = [gap(one) for one in counts]
    left_out = [gap(ones - (np.arange(size) == i)) for i in range(size)]
    holding = {row["image_id"] for row in dataset["annotations"] if not row["iscrowd"]}
    ids = sorted(item["id"] for item in dataset["images"])
    effects = {int(one.name): one for one in made.splits["images"].effects}
    assert set(effects) == set(ids)
    for at, (image, one) in enumerate((image, effects[image]) for image in ids):
        assert one.without == left_out[at]
        expected = naive_statistics.t_interval(
            left_out[at],
            [value for value, count in zip(gaps, counts, strict=True) if not count[at]],
            left_out[:at] + left_out[at + 1 :],
            len(holding - {image}),
            0.9,
        )
        assert [one.without_low, one.without_high] == pytest.approx(expected, abs=1e-12)
        assert np.isnan([one.low, one.high]).all()
    whole = naive_statistics.t_interval(made.difference, gaps, left_out, len(holding), 0.9)
    assert [made.low, made.high] == pytest.approx(whole, abs=1e-12)


def test_more_images_than_groups_of_the_jackknife():
    """Of many images the jackknife leaves out groups: an interval without an image leaves out its group."""
    dataset, results = workloads.make_coco(1, images=230, categories=2, objects_per_image=2.0, false_per_image=1.0)
    truth = ground_truth_of(dataset)
    other = [one for one in results if one["score"] > 0.2]
    made = contrast(truth, *map(detections_of, (results, other)), replicates=200)
    ends = [(one.without_low, one.without, one.without_high) for one in made.splits["images"].effects]
    assert len(ends) == 230
    assert all(low < value < high for low, value, high in ends)
    assert all(one.low < one.value < one.high for one in made.splits["errors"].effects if not np.isnan(one.low))


def test_few_images_have_no_intervals():
    dataset, results = workloads.make_coco(1, images=4)
    made = contrast(
        ground_truth_of(dataset), *map(detections_of, (results, results[::2])), replicates=200, names=("low", "effect")
    )
    assert np.isnan([made.low, made.high]).all()
    for split in made.splits.values():
        assert all(np.isnan([one.low, one.high, one.without_low, one.without_high]).all() for one in split.effects)
    assert " to " not in made.sentences()[0]


@pytest.mark.slow
def test_what_is_shown(capsys, tmp_path):
    """Errors and images have their intervals in the table, in Markdown, in CSV, in JSON and in a notebook."""
    rows = json.loads(Path(FOUND).read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps([row for row in rows if row["score"] > 0.2]))
    words = ["compare", TRUTH, FOUND, other, "--why", "--bootstrap", 200, "--quiet"]
    _, out, _ = run(capsys, *words, "--out", tmp_path / "why.json")
    document = json.loads((tmp_path / "why.json").read_text())
    splits = {split["name"]: split["effects"] for split in document["splits"]}
    markdown, table = run(capsys, *words, "--format", "markdown")[1], run(capsys, *words, "--format", "csv")[1]
    (miss,) = [one for one in splits["errors"] if one["name"] == "Miss"]
    image = splits["images"][0]
    for low, high in ((miss["low"], miss["high"]), (image["without_low"], image["without_high"])):
        assert low < high
        for text in (out, markdown):
            assert f"{low:.4f}" in text
            assert f"{high:.4f}" in text
        assert str(low) in table
    assert document["low"] < document["difference"] < document["high"]
    assert f"({document['low']:+.4f} to {document['high']:+.4f})" in out
    truth = detmap.read_coco(TRUTH)
    found = [detmap.read_coco_results(str(path), truth) for path in (FOUND, other)]
    assert "without" in contrast(truth, *found, replicates=200)._repr_html_()


def test_images_that_decide_are_named():
    """Where the interval holds 0 with an image and not without it, or the other way round, a sentence names it."""
    rows = json.loads(Path(FOUND).read_text())
    dataset = json.loads(Path(TRUTH).read_text())
    whole = [{**row, "bbox": [round(side) for side in row["bbox"]]} for row in rows]
    cut = [row for row in rows if row["score"] >= 0.15]
    made = contrast(ground_truth_of(dataset), detections_of(whole), detections_of(cut), replicates=200)
    effects = [one for one in made.splits["images"].effects if not np.isnan(one.without_low)]
    holds = [one.without_low <= 0 <= one.without_high for one in effects]
    assert any(holds)
    assert not all(holds)
    whole = made.low <= 0 <= made.high
    deciding = [one.name for one, held in zip(effects, holds, strict=True) if held != whole]
    word = "holds 0; leaving out " if whole else "does not hold 0; leaving out "
    (said,) = [one for one in made.sentences() if word in one]
    assert f"any one of these {len(deciding)} images ({', '.join(deciding[:3])}" in said
    assert said.endswith(") changes that.")
    alone = replace(made.splits["images"], effects=[one for one in effects if one.name == deciding[0]])
    (said,) = [one for one in replace(made, splits={"images": alone}).sentences() if word in one]
    assert said.endswith(f"leaving out image {deciding[0]} changes that.")
