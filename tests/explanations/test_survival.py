"""Whether the order of models survives other rules, images and labels."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from support import BOX_PROTOCOLS
from test_explain import run
from test_presets import tables, workload

import detmap
from detmap.detection.protocols import PRESETS
from detmap.explanations import replay, survives
from detmap.explanations.survival import KINDS
from detmap.statistics import bootstrap

ROOT = Path(__file__).resolve().parents[2]
TRUTH, FOUND = str(ROOT / "fixtures/coco/ground_truth.json"), str(ROOT / "fixtures/coco/detections.json")


def models(seed=4, images=8):
    """Ground truth and two models: the second sees the same with other scores, and loses some of it."""
    truth, found = workload(seed, images=images)
    rng = np.random.default_rng(seed)
    other = [
        (i, c, box, float(np.clip(s + rng.normal(0, 0.1), 0.01, 1))) for i, c, box, s in found if rng.random() < 0.9
    ]
    objects, first = tables(truth, found, images=images)
    return objects, {"one": first, "two": tables(truth, other, images=images)[1]}


@pytest.fixture(scope="module")
def pair():
    return models()


@pytest.fixture(scope="module")
def made(pair):
    return survives(*pair, replicates=200)


def test_every_value_is_that_of_an_evaluation(pair, made):
    truth, found = pair
    assert made.values == {name: detmap.evaluate(truth, found[name])["AP"] for name in made.values}
    named = {one.name: one for one in made.situations}
    federated = {"lvis", "lvis-fixed", "openimages"}
    assert not federated & named.keys()  # the ground truth does not list what was looked for
    by_fields = {name for name in BOX_PROTOCOLS if detmap.PRESETS[name].class_levels}
    assert not by_fields & named.keys()  # the ground truth lacks what their levels read
    for name in set(BOX_PROTOCOLS) - {"coco", *federated, *by_fields}:
        for model, detections in found.items():
            assert named[name].lowest[model] == next(iter(detmap.evaluate(truth, detections, name).values())), name
    for name in ("min_score 0.25", "iou_thresholds 0.75", "matching best", "max_dets 1"):
        protocol = replay.parse("coco+" + name.replace(" ", "="))
        for model, detections in found.items():
            assert named[name].lowest[model] == detmap.evaluate(truth, detections, protocol)["AP"], name
    assert {one.kind for one in made.situations} <= set(KINDS)
    assert not any("box_offset" in one.name for one in made.situations)


def test_who_is_above_where(made):
    """The table counts what the situations say, and the draws."""
    (claim,) = made.claims
    rows = made.table(claim)
    of_rules = [row for row in rows if row["under"] != "draws of images"]
    first, second = claim.first, claim.second
    assert sum(row[f"{first} above"] for row in of_rules) == claim.held
    assert sum(row["tried"] for row in of_rules) == claim.tried == len(made.situations)
    assert all(row["tried"] == row[f"{first} above"] + row[f"{second} above"] + row["neither"] for row in rows)
    assert len(claim.against) == claim.tried - claim.held
    assert not any(one.above(first, second) for one in claim.against)
    assert [one.changes for one in claim.against] == sorted(one.changes for one in claim.against)


def test_the_same_images_are_drawn_for_all(pair, made):
    truth, found = pair
    (claim,) = made.claims
    drawn = []
    for name in (claim.first, claim.second):
        one = bootstrap(detmap.evaluate(truth, found[name]), 200, 0)
        drawn.append(one.replicates[:, one.columns["AP"]])
    assert claim.draws == np.mean(drawn[0] > drawn[1])
    assert claim.against_draws == np.mean(drawn[0] < drawn[1])
    assert rows_of(made)["draws of images"]["tried"] == 200


def rows_of(made):
    return {row["under"]: row for row in made.table(made.claims[0])}


def boxes(count, step=100.0):
    return [(float(at * step), 0.0, at * step + 40.0, 40.0) for at in range(count)]


def test_an_order_that_survives():
    """Who finds everything exactly stays above who finds the half of it beside its place."""
    truth = [(at % 10, 1, box, False, False) for at, box in enumerate(boxes(60))]
    found = [(i, c, box, 0.9 - at / 1000) for at, (i, c, box, *_) in enumerate(truth)]
    beside = [(i, c, (box[0] + 15, *box[1:]), s) for at, (i, c, box, s) in enumerate(found) if at % 4]
    objects, best = tables(truth, found, images=10, categories=1)
    made = survives(objects, {"b": tables(truth, beside, images=10, categories=1)[1], "a": best}, replicates=200)
    (claim,) = made.claims
    assert (claim.first, claim.survives, claim.smallest, claim.draws) == ("a", True, None, 1.0)
    assert "survives: it holds under" in made.sentences()[0]
    assert made.sentences()[0].endswith("; no change that was tried turns it round.")


def test_a_score_cut_that_turns_the_order_round():
    """Nearly all hits of the better model have low scores: one change is enough, and it is said."""
    truth = [(at % 10, 1, box, False, False) for at, box in enumerate(boxes(40))]
    low = [(i, c, box, 0.3 if at > 4 else 0.9) for at, (i, c, box, *_) in enumerate(truth)]
    high = [(i, c, box, 0.9) for i, c, box, *_ in truth[:30]]
    objects, one = tables(truth, low, images=10, categories=1)
    made = survives(objects, {"low": one, "high": tables(truth, high, images=10, categories=1)[1]}, replicates=200)
    (claim,) = made.claims
    assert (claim.first, claim.survives) == ("low", False)
    assert claim.smallest.name == "min_score 0.4"
    assert claim.smallest.above("high", "low")
    assert "does not survive" in made.sentences()[0]
    assert "the smallest change that ends it is min_score 0.4 (0.1" in made.sentences()[0]


def test_an_order_that_is_one_of_equal_scores():
    """Two models that differ in the order of what is tied alone."""
    truth = [(at, 1, boxes(1)[0], False, False) for at in range(10)]
    hits = [(at, 1, boxes(1)[0], 0.5) for at in range(10)]
    wrong = [(at, 1, (500.0, 500.0, 520.0, 520.0), 0.5) for at in range(10)]
    objects, first = tables(truth, hits[:5] + wrong[5:], images=10, categories=1)
    second = tables(truth, wrong[:5] + hits[5:], images=10, categories=1)[1]
    made = survives(objects, {"hits first": first, "hits last": second}, replicates=200)
    (claim,) = made.claims
    assert claim.difference > 0.2
    assert (claim.smallest.name, claim.smallest.changes) == ("any order of equal scores", 0)
    assert claim.smallest.lowest["hits first"] == claim.smallest.lowest["hits last"] < made.values["hits first"]
    assert rows_of(made)["orders of equal scores"]["neither"] >= 1
    assert " to " in claim.smallest.shown("hits first")


def test_labels_that_are_missing():
    """A model that finds objects without labels is below one that does not, until these places are left out."""
    every = [(at % 10, 1, box, False, False) for at, box in enumerate(boxes(60))]
    truth, lost = every[5:], every[:5]
    # Sure of most, wrong where there is no label, and never found: two objects that nobody touches.
    good = [(i, c, box, 0.99 - at / 1000) for at, (i, c, box, *_) in enumerate(lost + truth[:-2])]
    blind = [(i, c, box, 0.9 - at / 1000) for at, (i, c, box, *_) in enumerate(truth[:-3])]
    objects, first = tables(truth, good, images=10, categories=1)
    made = survives(objects, {"good": first, "blind": tables(truth, blind, images=10, categories=1)[1]}, replicates=200)
    assert made.claims[0].first == "blind"
    (labels,) = [one for one in made.situations if one.kind == "labels"]
    assert labels.lowest["good"] == 1.0
    assert labels.above("good", "blind") or labels.lowest["blind"] == 1.0
    assert labels in made.claims[0].against
    assert any("makes suspicious" in sentence for sentence in made.sentences())


@pytest.mark.parametrize("flags", [{"ignore": ("crowd", "difficult")}, {"left_out": ("difficult",)}, {}])
def test_suspects_need_not_be_found(flags):
    """They count as difficult, whatever the rules make of objects that are difficult already."""
    from detmap.explanations.survival import _ignoring

    truth, found = workload(5, images=8)
    objects, detections = tables(truth, found, images=8)
    base = dataclasses.replace(PRESETS["coco"], **flags)
    suspect = np.random.default_rng(0).random(len(truth)) < 0.3
    changed, protocol = _ignoring(objects, suspect, base)
    kept = [
        (*row[:4], bool(bad or (row[4] and flags.get("ignore"))))
        for row, bad in zip(truth, suspect, strict=True)
        if not (row[4] and flags.get("left_out"))
    ]
    expected = detmap.evaluate(
        *tables(kept, found, images=8), dataclasses.replace(base, ignore=protocol.ignore, left_out=())
    )
    assert "difficult" in protocol.ignore
    assert detmap.evaluate(changed, detections, protocol)["AP"] == expected["AP"]


def test_three_models_and_two_that_are_the_same(pair):
    truth, found = pair
    made = survives(truth, {**found, "again": found["one"]}, "voc2012", metric="AP50", replicates=200)
    assert len(made.claims) == 3
    same = next(claim for claim in made.claims if {claim.first, claim.second} == {"one", "again"})
    assert (same.difference, same.survives, same.held) == (0, False, 0)
    assert "have the same AP50" in " ".join(made.sentences())
    json.dumps(made.to_dict())


def test_images_are_drawn_also_where_the_curve_ends_at_the_last_detection(pair):
    truth, found = pair
    made = survives(*pair, "ultralytics-8.3", replicates=200, seed=3)
    claim = made.claims[0]
    drawn = []
    for name in (claim.first, claim.second):
        tally = detmap.match(truth, found[name], replay.trimmed(PRESETS["ultralytics-8.3"], "AP"))
        one = bootstrap(tally, 200, 3)
        drawn.append(one.replicates[:, one.columns["AP"]])
    assert claim.draws == (drawn[0] > drawn[1]).mean()
    assert "draws of images" in rows_of(made)


def test_what_cannot_be(pair):
    truth, found = pair
    with pytest.raises(detmap.OptionError, match="needs two models or more"):
        survives(truth, {"one": found["one"]})
    with pytest.raises(detmap.OptionError, match="200"):
        survives(truth, found, replicates=10)
    with pytest.raises(detmap.OptionError, match="is no AP of coco"):
        survives(truth, found, metric="AR_100")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A second model on the fixture."""
    rng = np.random.default_rng(0)
    rows = [
        {**row, "score": round(max(0.001, row["score"] + rng.normal(0, 0.02)), 3)}
        for row in json.loads(Path(FOUND).read_text())
    ]
    path = tmp_path_factory.mktemp("models") / "other.json"
    path.write_text(json.dumps(rows))
    return str(path)


def test_the_command(capsys, tmp_path, other):
    words = ["compare", TRUTH, FOUND, other, "--under", "all", "--bootstrap", 200, "--quiet"]
    code, out, _ = run(capsys, *words, "--out", tmp_path / "s.json")
    assert code == 0
    made = json.loads((tmp_path / "s.json").read_text())
    assert out.splitlines()[0].startswith(
        f"AP under coco bbox: detections {made['models']['detections']:.4f}, other 0."
    )
    assert all(sentence in out for sentence in made["sentences"])
    truth = detmap.read_coco(TRUTH)
    assert made["models"]["other"] == detmap.evaluate(truth, detmap.read_coco_results(other, truth))["AP"]


@pytest.mark.parametrize(("kind", "found"), [("segm", "masks"), ("keypoints", "poses")])
def test_masks_and_poses(capsys, tmp_path, kind, found):
    """What only boxes have is not tried."""
    folder = ROOT / "fixtures/people"
    rows = json.loads((folder / f"{found}.json").read_text())
    (tmp_path / "fewer.json").write_text(json.dumps(rows[::2]))
    paths = [folder / "ground_truth.json", folder / f"{found}.json", tmp_path / "fewer.json"]
    code, out, err = run(
        capsys,
        "compare",
        *paths,
        "--under",
        "all",
        "--bootstrap",
        200,
        "--iou-type",
        kind,
        "--format",
        "json",
        "--quiet",
    )
    assert (code, err) == (0, "")
    made = json.loads(out)
    assert not any(one["kind"] == "conventions" or "pixels" in one["name"] for one in made["situations"])
    assert made["claims"][0]["tried"] > 20


def test_where_every_label_is_suspicious_the_rest_is_still_told():
    """Neither model finds the only object: without it nothing would be left to find."""
    objects, one = tables(
        [(0, 1, boxes(1)[0], False, False)], [(0, 1, (50.0, 50.0, 60.0, 60.0), 0.9)], images=2, categories=1
    )
    other = one.take(np.zeros(0, np.int64))
    made = survives(objects, {"a": one, "b": other}, replicates=200)
    assert "labels" not in rows_of(made)
    assert made.sentences()[0] == "a and b have the same AP, 0.0000: there is no order."
