"""What explanations and comparisons say where there is little to say: nothing to find, like rules, tiny shares."""

from __future__ import annotations

import json

import pytest
from test_contrast import pair as pair  # a fixture
from test_explain import FOUND, TRUTH, run
from test_presets import tables, workload

import detmap
from detmap.explanations import contrast, explain_run, rankings_survive, survives
from detmap.results import signed
from detmap.retrieval import evaluate_run


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "+0.0000"),
        (-0.0, "+0.0000"),
        (0.00005, "+0.0001"),
        (-0.00004, "-4e-05"),
        (3e-17, "+3e-17"),
        (-0.5, "-0.5000"),
    ],
)
def test_differences_too_small_for_four_decimals(value, text):
    assert signed(value) == text


def test_a_tiny_share_is_no_zero():
    """A share that four decimals would make 0 is told, with the power of ten that it has."""
    truth, found = tables(*workload(3, images=8), images=8)
    near = detmap.explain(truth, found, "coco", "coco+score_decimals=2+box_decimals=1")
    assert all("+0.0000" not in one.sentence and "-0.0000" not in one.sentence for one in near.shares if one.exact)


def test_like_rules_are_said_to_be_so(capsys):
    code, out, _ = run(capsys, "explain", TRUTH, FOUND, "--from", "coco", "--to", "coco", "--quiet")
    assert code == 0
    assert out.startswith("AP (bbox): 0.4181 under coco, 0.4181 under coco\n")
    assert "The two have the same rules." in out
    assert out.count("Other orders of equal scores give") == 1


def test_nothing_to_find_has_no_difference(capsys, tmp_path, pair):
    truth, *found = pair
    none = detmap.GroundTruth.from_arrays(
        image_ids=[], category_ids=[], boxes=[], images=truth.images.ids, categories=truth.categories.ids
    )
    with pytest.raises(detmap.InputError, match="nothing to find under coco, so that AP is undefined"):
        contrast(none, *found, replicates=200)
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    words = ("--from", "coco+scored_images=detected", "--to", "coco")
    assert "nothing to find on images with detections under" in run(capsys, "explain", TRUTH, empty, *words)[2]


def test_the_one_image_with_objects_makes_all_of_the_difference():
    """Without it the difference is undefined, which is no share of 0; other images have none."""
    truth, found = workload(2, images=5)
    truth = [row for row in truth if row[0] == 2]
    objects, first = tables(truth, found, images=5)
    made = contrast(objects, first, tables(truth, [row for row in found if row[0] != 2], images=5)[1], replicates=200)
    images = made.splits["images"]
    assert (images.effects[0].name, images.effects[0].value) == ("2", made.difference)
    assert "nan" not in json.dumps(made.table("images"), default=str).replace("NaN", "")


def test_low_thresholds_leave_out_what_is_told_above_them(pair):
    """Errors, and suspicious labels, are looked for at overlaps above 0.1: all else is told below it too."""
    truth, first, second = pair
    made = contrast(truth, first, second, "coco+iou_thresholds=0.05", replicates=200)
    assert list(made.splits) == ["classes", "sizes", "images"]
    assert "Errors are told apart at IoU thresholds above 0.1 only." in made.sentences()
    survived = survives(truth, {"one": first, "two": second}, "coco+iou_thresholds=0.05", replicates=200)
    assert "labels" not in {one.kind for one in survived.situations}


def test_models_scored_on_different_images_are_split_all_the_same(pair):
    """Where only images with detections are scored, two models may have different ones."""
    truth, first, second = pair
    some = second.take([row for row in range(len(second)) if second.images.ids[second.images.codes[row]] < 5])
    made = contrast(truth, first, some, "coco+scored_images=detected", replicates=200)
    scored = [detmap.evaluate(truth, one, made.protocol)["AP"] for one in (first, some)]
    assert [made.first_value, made.second_value] == scored


def test_models_called_like_columns_keep_their_values(pair):
    made = contrast(*pair, replicates=200, names=("low", "effect"))
    row = made.table("classes")[0]
    assert {"low (model)", "effect (model)", "low", "high", "effect"} <= set(row)


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "qrels").write_text("".join(f"q{q} 0 a 1\nq{q} 0 b 0\n" for q in range(4)))
    for name, queries in (("first", (0, 1)), ("second", (2, 3)), ("stray", (7, 8))):
        (tmp_path / name).write_text(
            "".join(f"q{q} Q0 {d} 1 {s} x\n" for q in queries for d, s in (("b", 2), ("a", 1)))
        )
    return tmp_path


def test_runs_of_different_queries_are_said_to_be_so(runs, capsys):
    qrels, *both = (runs / name for name in ("qrels", "first", "second"))
    words = ("--under", "all", "--bootstrap", 200, "--quiet")
    code, out, _ = run(capsys, "compare", "--trec", qrels, *both, *words)
    assert code == 0
    assert "first is scored on 2 queries and second on 2, of which 0 are the same" in out
    systems = {one.name: lambda rule, one=one: evaluate_run(qrels, one, ["mAP"], rule) for one in both}
    assert rankings_survive({"a": systems["first"], "b": systems["first"]}, "trec", replicates=200).notes == ()


def test_an_error_names_the_run(runs, capsys):
    qrels, stray = runs / "qrels", runs / "stray"
    for words in (
        ("explain", "--trec", qrels, stray, "--from", "ranx"),
        ("explain", "--trec", qrels, stray, "--value", "0.5"),
    ):
        code, _, err = run(capsys, *words)
        assert code == 2
        assert f"{stray}: no query of the run is judged" in err
    with pytest.raises(detmap.InputError, match="stray"):
        explain_run(qrels, stray, "ranx")
