"""What makes the difference between two models: classes, sizes, errors, images."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from test_explain import FOUND, TRUTH, run
from test_presets import tables, workload
from test_survival import models

import detmap
from detmap.explanations import contrast
from detmap.statistics import bootstrap


@pytest.fixture(scope="module")
def pair():
    truth, found = models(images=12)
    return truth, found["one"], found["two"]


@pytest.fixture(scope="module")
def made(pair):
    return contrast(*pair, replicates=200)


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "ultralytics", "coco+use_categories=no"])
def test_classes_sum_to_the_difference(pair, protocol):
    made = contrast(*pair, protocol, replicates=200)
    whole = sum(made.exact.values(), Fraction())
    assert float(whole) == pytest.approx(made.difference, abs=1e-15)
    assert [Fraction(one.value) for one in made.splits["classes"].effects] == sorted(
        (Fraction(float(share)) for share in made.exact.values()), key=lambda value: -abs(value)
    )
    assert made.splits["classes"].remainder == 0


def test_values_of_classes_and_sizes_are_those_of_evaluations(pair, made):
    truth, *found = pair
    results = [detmap.evaluate(truth, one) for one in found]
    assert [made.first_value, made.second_value] == [result["AP"] for result in results]
    for effect in made.splits["sizes"].effects:
        assert [effect.first, effect.second] == [result[f"AP_{effect.name}"] for result in results]
    areas = truth.areas[~truth.crowd]
    for effect in made.splits["sizes"].effects:
        low, high = {"small": (0, 1024), "medium": (1024, 9216), "large": (9216, 1e10)}[effect.name]
        share = np.mean((areas >= low) & (areas <= high))
        assert effect.value == pytest.approx((effect.second - effect.first) * share, abs=1e-15)


def test_errors_are_those_of_tide(pair, made):
    truth, *found = pair
    costs = [detmap.diagnose(truth, one).tide() for one in found]
    split = made.splits["errors"]
    assert split.whole == costs[1]["AP"] - costs[0]["AP"]
    assert len(split.effects) == 6
    for effect in split.effects:
        assert effect.value == costs[0][f"dAP_{effect.name}"] - costs[1][f"dAP_{effect.name}"]


def test_images_are_left_out_one_by_one(pair, made):
    """An image's share is what evaluations without it say."""
    truth, *found = pair
    size = truth.images.ids.size
    for effect in made.splits["images"].effects[:4]:
        image = int(effect.name)
        kept = truth.images.ids[truth.images.codes] != image
        values = []
        for one in found:
            rest = one.take(np.flatnonzero(one.images.ids[one.images.codes] != image))
            values.append(detmap.evaluate(truth.take(np.flatnonzero(kept)), rest)["AP"])
        without = values[1] - values[0]
        assert effect.value == pytest.approx(made.difference - (size - 1) / size * without, abs=1e-12)


def test_effects_and_remainders_sum_to_what_is_split(made):
    for split in made.splits.values():
        total = math.fsum([*(one.value for one in split.effects), split.remainder])
        assert total == pytest.approx(split.whole, abs=1e-12)
        assert [abs(one.value) for one in split.effects] == sorted(
            (abs(one.value) for one in split.effects), reverse=True
        )


def test_intervals_are_those_of_the_paired_draws(pair, made):
    truth, *found = pair
    first, second = (bootstrap(detmap.evaluate(truth, one), 200) for one in found)
    drawn = second - first
    ends = drawn.interval()[drawn.category_columns("AP")] / 3
    by_name = {one.name: one for one in made.splits["classes"].effects}
    for (_, name), (low, high) in zip(drawn.categories, ends.tolist(), strict=True):
        assert [by_name[name].low, by_name[name].high] == pytest.approx([low, high], abs=1e-15, nan_ok=True)


def test_one_image_that_makes_the_difference():
    """Two models that differ on one image, in one class: all splits say so."""
    truth, found = workload(2, images=12)
    lost = [row for row in found if not (row[0] == 3 and row[1] == 2)]
    objects, first = tables(truth, found, images=12)
    made = contrast(objects, first, tables(truth, lost, images=12)[1], replicates=200, names=("all", "lost"))
    (one,) = [effect for effect in made.splits["classes"].effects if effect.value]
    assert one.name == "2"
    assert one.value == pytest.approx(made.difference, abs=1e-15)
    assert made.splits["images"].effects[0].name == "3"
    assert made.splits["images"].effects[0].value == pytest.approx(made.difference, rel=0.5)


def test_no_difference(pair):
    truth, first, _ = pair
    made = contrast(truth, first, first, replicates=200)
    assert made.difference == 0
    assert not any(effect.value for split in made.splits.values() for effect in split.effects)
    assert "none makes a difference" in " ".join(made.sentences())


def test_metrics_and_rules_that_say_less(pair, monkeypatch):
    truth, first, second = pair
    made = contrast(truth, first, second, metric="AP_medium", replicates=200)
    assert made.first_value == detmap.evaluate(truth, first)["AP_medium"]
    assert "sizes" not in made.splits
    made = contrast(truth, first, second, "ultralytics-8.3", replicates=200)
    assert (made.replicates, list(made.splits)) == (200, ["classes", "sizes", "errors", "images"])
    assert any(one.low < one.value < one.high for one in made.splits["classes"].effects)
    monkeypatch.setattr("detmap.explanations.splits.IMAGES", 3)
    images = contrast(truth, first, second, replicates=200).splits["images"]
    assert len(images.effects) == 3
    assert "Measured: the 3 images of 12 where most differs" in images.says
    with pytest.raises(detmap.OptionError, match="200"):
        contrast(truth, first, second, replicates=1)


def test_the_command(capsys, tmp_path):
    rows = json.loads(Path(FOUND).read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps([row for row in rows if row["score"] > 0.2]))
    words = ["compare", TRUTH, FOUND, other, "--why", "--bootstrap", 200, "--quiet"]
    code, out, _ = run(capsys, *words, "--out", tmp_path / "why.json")
    assert code == 0
    made = json.loads((tmp_path / "why.json").read_text())
    assert all(sentence in out for sentence in made["sentences"])
    truth = detmap.read_coco(TRUTH)
    assert made["second_value"] == detmap.evaluate(truth, detmap.read_coco_results(str(other), truth))["AP"]
    assert "split,name,first,second,value,low,high" in run(capsys, *words, "--format", "csv")[1]
    assert "not both" in run(capsys, *words, "--under", "all")[2]


def test_one_model_is_none_too_many(capsys):
    assert "a comparison needs two models or more" in run(capsys, "compare", TRUTH, FOUND, "--why")[2]
