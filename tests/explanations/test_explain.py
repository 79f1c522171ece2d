"""Why two protocols give different numbers: the laws of shares, the chain, the search for a number, and what is shown."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from batches import run
from hypothesis import given, settings
from hypothesis import strategies as st
from support import BOX_PROTOCOLS, examples, same_bits
from test_presets import tables, workload

import detmap
from detmap.detection.protocols import COCO, PRESETS
from detmap.explanations import replay, search, tries
from detmap.explanations.quotes import interval
from detmap.explanations.shares import sampled, shapley

ROOT = Path(__file__).resolve().parents[2]
TRUTH, FOUND = str(ROOT / "fixtures/coco/ground_truth.json"), str(ROOT / "fixtures/coco/detections.json")
VALUES = st.lists(st.floats(0, 1), min_size=16, max_size=16)


def game(values, count):
    """A game whose value for a set of players is a float of the list, by the set's number."""
    return lambda players: Fraction(values[sum(1 << player for player in players)] if count else values[0])


@settings(max_examples=examples(100))
@given(st.integers(0, 4), VALUES, st.integers(0, 9))
def test_shares_sum_to_the_difference(count, values, seed):
    value = game(values, count)
    whole = value(frozenset(range(count))) - value(frozenset())
    assert sum(shapley(count, value), Fraction()) == whole
    assert sum(sampled(count, value, 8, seed)[0], Fraction()) == whole


@settings(max_examples=examples(100))
@given(VALUES, st.integers(0, 3))
def test_where_one_decision_matters_all_goes_to_it(values, player):
    def value(players):
        return Fraction(values[player in players])

    for shares in (shapley(4, value), sampled(4, value, 4, 0)[0]):
        assert shares[player] == Fraction(values[1]) - Fraction(values[0])
        assert not any(share for other, share in enumerate(shares) if other != player)


@settings(max_examples=examples(100))
@given(VALUES)
def test_symmetric_decisions_share_alike(values):
    """Players 0 and 1 count alike: a value depends on how many of them there are."""

    def value(players):
        return Fraction(values[len({0, 1} & players) + 3 * (2 in players)])

    shares = shapley(3, value)
    assert shares[0] == shares[1]


def test_drawn_shares_are_near_the_exact_ones():
    """Within a few of the standard errors that are said, and better the more orders are drawn."""
    rng = np.random.default_rng(3)
    values = rng.random(16).tolist()
    exact, (drawn, errors) = shapley(4, game(values, 4)), sampled(4, game(values, 4), 400, 1)
    assert max(errors) < 0.05
    assert all(abs(float(one - other)) < 4 * error for one, other, error in zip(exact, drawn, errors, strict=True))
    assert max(sampled(4, game(values, 4), 20, 1)[1]) > max(errors)


@settings(max_examples=examples(50))
@given(VALUES)
def test_shapley_is_the_mean_over_all_orders(values):
    value, total = game(values, 4), [Fraction()] * 4
    for order in itertools.permutations(range(4)):
        for at, player in enumerate(order):
            total[player] += value(frozenset(order[: at + 1])) - value(frozenset(order[:at]))
    assert shapley(4, value, [2, 0, 3, 1]) == [share / 24 for share in total]


SAMPLE = workload(4, images=8)


@pytest.fixture(scope="module")
def pair():
    return tables(*SAMPLE, images=8)


PAIRS = [
    ("ultralytics", "coco"),
    ("coco", "voc2007"),
    ("torchmetrics", "supervision"),
    ("padilla", "mmeval-voc"),
    ("coco", "detectron2-voc"),
]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_between_two_tools(pair, source, target):
    """The ends are what `evaluate` says, the shares sum to their difference, and so does the chain."""
    made = detmap.explain(*pair, source, target)
    for name, value in ((source, made.source_value), (target, made.target_value)):
        assert value == next(iter(detmap.evaluate(*pair, name).values()))
    if not made.error:
        assert sum((one.exact for one in made.shares), Fraction()) == Fraction(made.target_value) - Fraction(
            made.source_value
        )
    assert math.isclose(made.source_value + sum(step.change for step in made.chain), made.target_value, abs_tol=1e-12)
    assert made.chain[-1].value == made.target_value
    assert made.matchings <= made.evaluations
    assert json.loads(json.dumps(made.to_dict()))["sentences"] == made.sentences()
    assert f"{made.source_value:.4f} under {source}" in made.sentences()[0]


def test_more_than_seven_decisions_are_sampled(pair):
    """The shares still sum to the difference, and their errors are said."""
    made = detmap.explain(*pair, "ultralytics", "detectron2-voc", orders=6)
    assert len(made.shares) > 7
    assert made.error > 0
    assert sum((one.exact for one in made.shares), Fraction()) == Fraction(made.target_value) - Fraction(
        made.source_value
    )
    assert made.error == max(one.error for one in made.shares)
    with pytest.raises(detmap.OptionError, match="orders must be an integer of at least 4, not 2"):
        detmap.explain(*pair, "ultralytics", "detectron2-voc", orders=2)
    again = detmap.explain(*pair, "ultralytics", "detectron2-voc", orders=6)
    assert [one.exact for one in again.shares] == [one.exact for one in made.shares]


@pytest.mark.parametrize("name", ["coco", "padilla", "ultralytics", "voc2007"])
def test_the_band_of_equal_scores(name):
    """Every order of equal scores of different images gives a value within the band; orders that know the hits reach it."""
    truth, found = workload(9, images=30)
    one_each = {(row[0], row[1]): row for row in found}.values()  # no ties within an image and class
    found = [(i, c, box, round(score, 1)) for i, c, box, score in one_each]
    objects, detections = tables(truth, found, images=30)
    protocol = dataclasses.replace(replay.trimmed(PRESETS[name], "AP50"), ties="file")
    low, high = replay.Replay(objects, detections).band(protocol)
    assert low < high
    rng, values = np.random.default_rng(0), []
    for _ in range(10):
        order = rng.permutation(len(found))
        values.append(
            detmap.evaluate(objects, tables(truth, [found[at] for at in order], images=30)[1], protocol)["AP"]
        )
    assert low <= min(values)
    assert max(values) <= high
    hit = np.zeros(len(found), bool)
    matches = detmap.match_pairs(objects, detections, protocol)
    hit[matches.detection] = matches.outcome == detmap.HIT
    for order, end in ((np.argsort(hit), low), (np.argsort(~hit), high)):
        value = detmap.evaluate(objects, tables(truth, [found[at] for at in order], images=30)[1], protocol)["AP"]
        assert value == pytest.approx(end, abs=1e-15)


def test_a_band_is_said_where_it_shows(pair):
    assert "Other orders" not in str(detmap.explain(*pair, "coco", "voc2012").sentences())  # no score is there twice
    made = detmap.explain(*pair, "coco", "coco+score_decimals=1")
    assert made.source_band == (made.source_value, made.source_value)
    assert made.target_band[0] < made.target_band[1]
    assert f"to {made.target_band[1]:.4f} under coco+score_decimals=1." in str(made.sentences())


def test_one_decision(pair):
    made = detmap.explain(*pair, "coco", "coco+min_score=0.3")
    (share,) = made.shares
    assert share.exact == Fraction(made.target_value) - Fraction(made.source_value) < 0
    (step,) = made.chain
    cut = [row for row in SAMPLE[1] if row[3] < 0.3]
    assert step.changed == len(cut)
    assert [one.score for one in step.examples] == sorted((row[3] for row in cut), reverse=True)[:5]
    assert {one.after for one in step.examples} == {"not scored"}
    assert share.sentence == f"min_score: {share.value:+.4f} for 0.3 in place of none."
    assert sum(change for _, change in step.classes) == pytest.approx(3 * share.value)


def test_a_decision_without_effect_is_said(pair):
    made = detmap.explain(*pair, "coco", dataclasses.replace(COCO, name="mine", max_dets=(1, 10, 99), dilation=0.3))
    assert [one.exact for one in made.shares] == [0, 0]
    assert "No difference here: max_dets, dilation." in made.sentences() or "dilation, max_dets" in str(
        made.sentences()
    )
    assert made.evaluations == 1
    assert detmap.explain(*pair, "coco", "coco").shares == []


@pytest.mark.parametrize("name", BOX_PROTOCOLS)
def test_simplified_protocols_give_the_same(pair, name):
    """A protocol and its simpler form give the same bits, whatever is changed in it."""
    looked = replay.Replay(*pair)
    changes = [{}, {"min_score": 0.0}, {"max_per_image": 10**4}, {"box_decimals": 9}, {"scored_images": "detected"}]
    for change in changes:
        one = replay.trimmed(dataclasses.replace(PRESETS[name], **change), "AP")
        assert detmap.evaluate(*pair, one)["AP"] == detmap.evaluate(*pair, looked.simplified(one))["AP"]


def test_other_metrics(pair):
    made = detmap.explain(*pair, "coco", "coco+matching=best", metric="AP_medium")
    assert made.source_value == detmap.evaluate(*pair)["AP_medium"]
    made = detmap.explain(*pair, "coco", "voc2012", metric="AP50")
    assert made.source_value == detmap.evaluate(*pair)["AP50"]
    for metric, says in (("AR", "'AR' is no AP of coco"), ("AP_huge", "one of: AP, AP50, AP75, AP_small")):
        with pytest.raises(detmap.OptionError, match=says):
            detmap.explain(*pair, "coco", "coco", metric=metric)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("koko", "unknown protocol 'koko'"),
        ("coco+min_score", "'min_score' is no decision=value"),
        ("coco+cut=1", "'cut=1' is no decision=value"),
        ("coco+min_score=high", "min_score must be a number"),
        ("coco+strict=1", "strict must be yes or no"),
    ],
)
def test_protocols_that_cannot_be(text, says):
    with pytest.raises(detmap.OptionError, match=says):
        replay.parse(text)


def test_protocols_with_changes():
    made = replay.parse("coco+min_score=0.25+max_dets=1,300+left_out=crowd+strict=yes+area_ranges=small:0:9+epsilon=0")
    assert (made.min_score, made.max_dets, made.left_out, made.strict) == (0.25, (1, 300), ("crowd",), True)
    assert made.area_ranges == (("all", 0.0, 1e10), ("small", 0.0, 9.0))
    assert made.epsilon == 0
    assert replay.parse("ultralytics+min_score=none+left_out=none").left_out == ()
    assert replay.parse("coco") is COCO


def test_nothing_to_find():
    empty = detmap.GroundTruth.from_arrays(image_ids=[], category_ids=[], boxes=[], images=[1], categories=[1])
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]], scores=[1])
    with pytest.raises(detmap.InputError, match="has nothing to find under coco, so that AP is undefined"):
        detmap.explain(empty, found, "coco", "voc2007")


# ------------------------------------------------------------------------------------------------------ a number


def test_quoted_digits():
    low, high = interval("0.437")
    assert low <= 0.4365 <= high
    assert low <= 0.4375 <= high
    assert not high > 0.43751
    assert interval("43.7")[0] == pytest.approx(0.4365)
    assert interval("61%") == pytest.approx((0.605, 0.615))
    for text in ("AP", "-1", "101", "nan", "inf", ""):
        with pytest.raises(detmap.OptionError, match="the value must be a number as"):
            interval(text)


@pytest.mark.parametrize("name", BOX_PROTOCOLS)
@pytest.mark.parametrize("number", range(2))
def test_what_is_cut_from_a_tally_is_what_would_be_matched(pair, name, number):
    """A replay matches less often than it evaluates, and every value has the bits of an evaluation of its own."""
    rng, looked = np.random.default_rng(number), replay.Replay(*pair)
    choices = {
        "min_score": [None, 0.01, 0.2, 0.5],
        "max_dets": [(1,), (2,), (10,), (100,)],
        "max_per_image": [None, 2, 8],
        "scored_images": ["all", "detected"],
        "interpolation": ["grid", "all-point", "101-linear-tail"],
        "use_categories": [True, False],
        "score_decimals": [None, 1],
        "left_out": [(), ("crowd",), ("difficult", "crowd")],
    }
    for _ in range(8):
        chosen = {key: values[rng.integers(len(values))] for key, values in choices.items() if rng.random() < 0.5}
        if not chosen.get("use_categories", True):
            chosen["max_per_category"] = None  # which needs categories
        one = replay.trimmed(dataclasses.replace(PRESETS[name], **chosen), "AP")
        result = detmap.evaluate(*pair, one)
        found = looked.value(one)
        assert found.value == result["AP"], chosen
        assert same_bits(found.classes, result._by_category(None))
    assert looked.matchings <= looked.evaluations


@pytest.mark.parametrize("name", ["coco", "ultralytics-8.3", "padilla", "detectron2-voc"])
def test_the_number_of_a_tool(pair, name):
    """A named protocol is found by its number."""
    value = next(iter(detmap.evaluate(*pair, name).values()))
    made = detmap.find_value(*pair, f"{value:.6f}", most=1)
    first = made.candidates[0]
    assert not first.changes
    assert abs(first.value - value) < 1e-6
    assert name in (first.base, *first.others) or made.named[name]["AP"] == first.value
    assert made.verdict == "found"


@pytest.fixture
def small(monkeypatch):
    """A search among fewer changes."""
    kept = {name: search.GRID[name] for name in ("min_score", "matching", "curve", "strict")}
    monkeypatch.setattr(search, "GRID", kept)
    monkeypatch.setattr(search, "WIDER", {"twice": search.WIDER["twice"]})


@pytest.mark.usefixtures("small")
def test_a_changed_decision_is_found(pair):
    value = detmap.evaluate(*pair, replay.parse("coco+min_score=0.25"))["AP"]
    made = detmap.find_value(*pair, f"{value:.4f}", most=5)
    names = [name for one in made.candidates for name in (one.name, *one.others)]
    assert any("min_score 0.25" in name for name in names)
    assert made.tried[0] == len(made.named)
    assert made.tried[1] > 20
    low, high = made.quoted["AP"]
    assert all(low <= one.value <= high for one in made.candidates)


@pytest.mark.usefixtures("small")
def test_two_changed_decisions_are_found(pair):
    value = detmap.evaluate(*pair, replay.parse("coco+min_score=0.25+matching=best"))["AP"]
    made = detmap.find_value(*pair, f"{value:.4f}", most=5)
    assert value in [one.value for one in made.candidates]


@pytest.mark.usefixtures("small")
def test_a_number_that_nothing_gives(pair, monkeypatch):
    monkeypatch.setattr(tries, "_COMBINED", {1: 10, 2: 40})
    made = detmap.find_value(*pair, "0.999999")
    assert made.candidates == []
    assert made.sentences()[0].startswith("Nothing that was tried gives this number; ")
    assert made.tried[2] > 0
    json.dumps(made.to_dict())


# ------------------------------------------------------------------------------------------------ the command line


def test_the_command(capsys, tmp_path):
    code, out, _ = run(
        capsys, "explain", TRUTH, FOUND, "--from", "ultralytics", "--out", tmp_path / "e.json", "--quiet"
    )
    assert code == 0
    truth = detmap.read_coco(TRUTH)
    made = detmap.explain(truth, detmap.read_coco_results(FOUND, truth), "ultralytics", "coco")
    assert json.loads((tmp_path / "e.json").read_text())["shares"] == made.to_dict()["shares"]
    assert made.remarks()
    assert all(sentence in out for sentence in made.remarks())
    assert out.splitlines()[0].startswith(
        f"AP (bbox): {made.source_value:.4f} under ultralytics, {made.target_value:.4f} under coco"
    )


def test_the_command_for_a_number(capsys):
    truth = detmap.read_coco(TRUTH)
    value = detmap.evaluate(truth, detmap.read_coco_results(FOUND, truth))["AP"]
    code, out, _ = run(
        capsys, "explain", TRUTH, FOUND, "--value", f"{value:.5f}", "--most", 1, "--format", "json", "--quiet"
    )
    assert code == 0
    assert json.loads(out)["candidates"][0]["base"] == "coco"


@pytest.mark.parametrize(("kind", "found", "cap"), [("segm", "masks", 100), ("keypoints", "poses", 20)])
def test_masks_and_poses(capsys, kind, found, cap):
    """A name means what it means for that kind of shape: the ends are what `detmap eval` says."""
    paths = [str(ROOT / f"fixtures/people/{name}.json") for name in ("ground_truth", found)]
    assert replay.parse("coco", kind).max_dets[-1] == cap
    code, out, _ = run(
        capsys,
        "explain",
        *paths,
        "--from",
        "coco",
        "--to",
        "coco+matching=best",
        "--iou-type",
        kind,
        "--format",
        "json",
    )
    assert code == 0
    shown = json.loads(run(capsys, "eval", *paths, "--iou-type", kind, "--format", "json", "--quiet")[1])
    explained = json.loads(run(capsys, "explain", *paths, "--from", "coco", "--iou-type", kind, "--format", "json")[1])
    assert explained["source"]["value"] == shown["metrics"]["AP"] == json.loads(out)["source"]["value"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give --from PROTOCOL, or --value NUMBER"),
        (["--from", "coco", "--value", "0.4"], "give --from PROTOCOL, or --value NUMBER"),
        (["--value", "0.4", "--to", "coco"], "it goes with neither --to nor --iou-type, other than bbox"),
        (["--from", "coco", "--threads", "0"], "--threads must be a positive integer, not 0"),
        (["--from", "coco", "--depth", "3"], "--depth goes with --trec or --hashing"),
        (["--reid", "--from", "oxford"], "detmap explain --reid takes one file, of arrays"),
        (["--value", "many"], "the value must be a number"),
        (["--from", "koko"], "unknown protocol 'koko'"),
    ],
)
def test_options_that_contradict(capsys, words, says):
    code, _, err = run(capsys, "explain", TRUTH, FOUND, *words)
    assert (code, says in err) == (2, True)


def test_protocols_are_listed_with_who_uses_them(capsys):
    out = run(capsys, "protocols")[1]
    assert "used by" in out
    assert "Padilla" in out
    rows = json.loads(run(capsys, "protocols", "--format", "json")[1])
    assert [row["protocol"] for row in rows] == list(PRESETS)
    assert all(row["unlike coco"] for row in rows)
    assert np.array([len(row["decides"]) for row in rows]).min() > 40


def test_without_detections_every_protocol_gives_nothing(capsys, tmp_path):
    """A protocol that scores images with detections alone has none to score: that is no fault of the ground truth."""
    (tmp_path / "none.json").write_text("[]")
    code, out, _ = run(capsys, "explain", TRUTH, tmp_path / "none.json", "--value", "0.4", "--quiet")
    assert code == 0
    assert "All named protocols give 0: nothing is found that there was to find." in out
    truth = detmap.read_coco(TRUTH)
    none = detmap.read_coco_results(tmp_path / "none.json", truth)
    found = detmap.read_coco_results(FOUND, truth)
    (claim,) = detmap.explanations.survives(truth, {"one": found, "none": none}, replicates=200).claims
    assert claim.first == "one"


@pytest.mark.slow
def test_planted_conventions_are_found(monkeypatch):
    """A small sample of scripts/plant_conventions.py, whose ways of differing share nothing with the search."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import plant_conventions

    assert [line for good, line in plant_conventions.planted(2, 11, images=12) if not good] == []


@pytest.mark.slow
def test_a_protocol_under_which_nothing_can_be_found_is_left_out_of_a_search(monkeypatch):
    """It has no value, and so none that is nearest."""
    truth, found = tables(*workload(0))
    nobody = found.take(np.zeros(0, np.int64))
    one = dataclasses.replace(COCO, name="seen", scored_images="detected")
    monkeypatch.setattr(search, "PRESETS", {"coco": COCO, "seen": one})
    assert list(search.find_value(truth, nobody, "0.5").named) == ["coco"]
    assert list(search.find_value(truth, found, "0.99").named) == ["coco", "seen"]
