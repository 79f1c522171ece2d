"""Every decision is a keyword wherever a protocol or convention is taken, by name; what is misspelt is named."""

from __future__ import annotations

import dataclasses
import inspect
import json

import numpy as np
import pytest
import workloads
from support import detections_of, ground_truth_of, same_bits
from test_decisions import GIVEN

import detmap
from detmap import batch, retrieval
from detmap.decisions import decisions_of, default_of
from detmap.detection.protocols import COCO, Decisions, EveryDecision, Protocol, resolve
from detmap.errors import OptionError
from detmap.retrieval import Convention
from detmap.retrieval.conventions import _OF_RUNS, Choices, RunChoices, convention_of

#: Values that a decision of no flag is given here.
MORE = {
    "epsilon": 0.5,
    "per_class_metrics": True,
    "mean_of": "classes",
    "threshold_metrics": True,
    "error_rules": (),
    "class_levels": False,
    "unlisted_images": "wrong",
}


@pytest.fixture(scope="module")
def pair():
    dataset, results = workloads.make_coco(5, images=4, categories=3, crowds=0.2, crowded_cell=True)
    return ground_truth_of(dataset), detections_of(results)


def test_the_keywords_are_the_decisions():
    declared = set(decisions_of(Protocol)) - {"name"}
    assert set(Decisions.__annotations__) == declared - {"iou_type"}
    assert set(EveryDecision.__annotations__) == declared
    decided = {name for name, made in decisions_of(Convention).items() if made.affects} - {"together"}
    assert set(Choices.__annotations__) == decided - set(_OF_RUNS)
    assert set(RunChoices.__annotations__) == decided - {"depth"}


def test_every_decision_is_a_keyword(pair):
    """With the bits of a protocol that decides so."""
    values = {name: value for name, (_, value) in GIVEN.items() if name not in ("iou_type", "sigmas")} | MORE
    values["id_zero"] = "missed"
    assert set(values) == set(Decisions.__annotations__) - {"sigmas"}
    for name, value in values.items():
        protocol = dataclasses.replace(COCO, **{name: value})
        asked = {row[0]: row[1:] for row in value} if name == "area_ranges" else value
        result = detmap.evaluate(*pair, **{name: asked})
        assert result.protocol == protocol
        assert same_bits(result.precision, detmap.evaluate(*pair, protocol).precision), name
        tally = detmap.match(*pair, **{name: asked})
        assert tally.protocol == protocol
        assert same_bits(tally.hit, detmap.match(*pair, protocol).hit), name
        area = protocol.area_ranges[0][0]
        rows = detmap.match_pairs(*pair, area=area, **{name: asked})
        assert rows.protocol == protocol
        assert np.array_equal(rows.outcome, detmap.match_pairs(*pair, protocol, area=area).outcome), name
        assert detmap.diagnose(*pair, **{name: asked}).protocol == protocol
        assert detmap.Diagnosis(*pair, **{name: asked}).protocol == protocol
        assert detmap.Evaluator(**{name: asked}).protocol == protocol


def test_none_is_a_value_where_it_can_be_one():
    """A cut of a protocol is taken away by None; a decision that cannot be None stays."""
    cut = detmap.PRESETS["ultralytics"]
    assert cut.min_score == 0.001
    assert resolve(cut, min_score=None, max_per_image=None) == dataclasses.replace(
        cut, min_score=None, max_per_image=None
    )
    assert resolve(cut, matching=None, iou_thresholds=None, use_categories=None, max_dets=None) == cut
    merged = dataclasses.replace(COCO, use_categories=False)
    assert resolve(merged).use_categories is False
    assert resolve(merged, use_categories=True) == COCO
    rounded = detmap.retrieval.CONVENTIONS["beir"]
    assert rounded.digits == 5
    assert convention_of(rounded, {"digits": None}, run=True).digits is None
    assert convention_of(rounded, {"ties": None}, run=True) is rounded
    nullable = {field.name for field in dataclasses.fields(Protocol) if default_of(field) is None}
    assert nullable == {
        *("sigmas", "points", "min_score", "max_per_image", "max_per_category", "box_decimals", "score_decimals"),
        "error_threshold",
    }


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda *pair: detmap.evaluate(*pair, min_scor=0.25), "'min_scor'; did you mean 'min_score'?"),
        (lambda *pair: detmap.match(*pair, strickt=True), "'strickt'; did you mean 'strict'?"),
        (lambda *pair: detmap.match_pairs(*pair, thread=1), "'thread'; did you mean 'threads'?"),
        (lambda *pair: detmap.diagnose(*pair, max_det=5), "'max_det'; did you mean 'max_dets'?"),
        (lambda *pair: detmap.Evaluator(iou_threshold=0.5), "'iou_threshold'; did you mean 'iou_thresholds'?"),
        (lambda *pair: list(batch.score(pair[0], [], id_zer="missed")), "'id_zer'; did you mean 'id_zero'?"),
        (lambda *pair: detmap.diagnose(*pair, image_ids=[1]), "a protocol has no decision called 'image_ids'"),
        (lambda *pair: detmap.diagnose(*pair, replicate=1), "'replicate'; did you mean 'replicates'?"),
        (lambda *pair: detmap.Evaluator(category_ids=[1]), "'category_ids'; did you mean 'categories'?"),
        (lambda *pair: detmap.Evaluator(image_ids=[1]), "a protocol has no decision called 'image_ids'"),
        (lambda *pair: detmap.match(*pair, image_id=[1]), "'image_id'; did you mean 'image_ids'?"),
        (lambda *pair: detmap.match_pairs(*pair, categori_ids=[1]), "'categori_ids'; did you mean 'category_ids'?"),
        (lambda *pair: list(batch.score(pair[0], [], thread=1)), "'thread'; did you mean 'threads'?"),
        (lambda *pair: list(batch.score(pair[0], [], iou_typ="segm")), "'iou_typ'; did you mean 'iou_type'?"),
        (lambda *pair: detmap.evaluate(*pair, zzzzzz=1), "a protocol has no decision called 'zzzzzz'"),
    ],
)
def test_a_keyword_that_there_is_not(pair, call, meant):
    with pytest.raises(OptionError, match=f"{meant.replace('?', '[?]')}$"):
        call(*pair)


def test_a_keyword_that_no_convention_has():
    with pytest.raises(OptionError, match=r"unknown option 'tie'; did you mean 'ties'\?; a convention decides: cmc, "):
        retrieval.evaluate_rankings([[1, 0]], tie="best")
    with pytest.raises(OptionError, match="unknown option 'zzzzzz'; a convention decides: "):
        retrieval.evaluate_rankings([[1, 0]], zzzzzz="best")


def test_every_choice_is_a_keyword_of_rankings():
    """Of evaluations that take a convention, each takes what its kind decides."""
    takers = [value for name, value in vars(retrieval).items() if name.startswith("evaluate") and callable(value)]
    takers = [one for one in takers if "convention" in inspect.signature(one).parameters]
    assert len(takers) >= 6
    for one in takers:
        assert list(inspect.signature(one).parameters)[-1] == "choices"
    values = {
        "names": "ranx",
        "interpolation": "trapezoid",
        "normalizer": "hits",
        "ties": "reversed",
        "empty": "zero",
        "digits": 2,
    }
    values |= {"recall_cutoffs": "nearest", "relative_rbp": False, "cmc": "allshots", "depth": "positives"}
    assert set(values) == set(Choices.__annotations__)
    for name, value in values.items():
        made = retrieval.evaluate_distances([[1.0, 2.0, 3.0]], [1], [1, 2, 1], metrics=["mAP"], **{name: value})
        assert getattr(made.convention, name) == value
    qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 0.5, "b": 0.25}}
    values |= {"missing": "zero", "order": "given", "single": False, "positive_scores": True, "drop_same_id": True}
    for name in RunChoices.__annotations__:
        made = retrieval.evaluate_run(qrels, run, ["mAP"], **{name: values[name]})
        assert getattr(made.convention, name) == values[name]


def test_files_of_a_folder_are_scored_by_keywords(tmp_path):
    dataset, results = workloads.make_coco(5, images=4, categories=3, negative=False)
    (tmp_path / "one.json").write_text(json.dumps(results))
    truth = ground_truth_of(dataset)
    expected = detmap.evaluate(truth, detections_of(results), min_score=0.5, matching="best")
    (scored,) = batch.score(truth, [tmp_path / "one.json"], min_score=0.5, matching="best", iou_type="bbox")
    assert scored["AP"] == expected["AP"]
    shards = batch.evaluate_shards(truth, [tmp_path / "one.json"], min_score=0.5, matching="best")
    assert same_bits(shards.precision, expected.precision)
