"""Options of the command line: what is read is not written over, and no option is ignored."""

from __future__ import annotations

import json

import numpy as np
import pytest

import detmap
from detmap.cli import main
from detmap.diagnostics import diagnose
from detmap.errors import InputError, OptionError


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """The fixture's files, in a folder of their own, in which the test runs."""
    truth = {
        "images": [{"id": 1, "width": 64, "height": 64, "file_name": "a.jpg"}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 7, "name": "dog"}],
        "annotations": [
            {"id": i, "image_id": 1, "category_id": of, "bbox": [9 * i, 0, 8, 8], "area": 64, "iscrowd": 0,
             "segmentation": [[9 * i, 0, 9 * i + 8, 0, 9 * i + 8, 8]]}
            for i, of in ((1, 1), (2, 7))
        ],
    }  # fmt: skip
    found = [
        {"image_id": 1, "category_id": of, "bbox": [9 * i, 0, 8, 8], "score": 0.5 + i / 9} for i, of in ((1, 1), (2, 7))
    ]
    monkeypatch.chdir(tmp_path)
    for name, content in (("truth.json", truth), ("found.json", found), ("other.json", found[:1])):
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "map.csv").write_text("dog,cat\n")
    (tmp_path / "attributes.csv").write_text("image,weather\n1,rain\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "read"),
    [
        ("eval truth.json found.json --out", "truth.json"),
        ("eval truth.json found.json --class-map map.csv --card", "map.csv"),
        ("eval truth.json found.json --arrays", "./found.json"),
        ("explain truth.json found.json --from voc2007 --out", "found.json"),
        ("diagnose truth.json found.json --parts slices --attributes attributes.csv --out", "attributes.csv"),
        ("check truth.json found.json --out", "truth.json"),
        ("check truth.json --train other.json --out", "other.json"),
        ("compare truth.json found.json other.json --class-map map.csv --out", "map.csv"),
        ("compare truth.json *.json --out", "other.json"),
        ("reid found.json --gallery other.json --out", "other.json"),
    ],
)
def test_no_command_writes_over_what_it_reads(command, read, pair, capsys):
    before = {path: path.read_bytes() for path in pair.iterdir()}
    assert main([*command.split(), read]) == 2
    assert "would be written over" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in pair.iterdir()} == before


@pytest.mark.parametrize(
    "command", ["eval - -", "check - -", "diagnose - -", "explain - - --from voc2007", "verify - x -"]
)
def test_standard_input_is_read_once(command, pair, capsys):
    assert main(command.split()) == 2
    assert capsys.readouterr().err.count("is given twice, and can be read only once") == 1


@pytest.mark.parametrize("command", ["eval", "check", "diagnose", "batch"])
@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("--classes", "--classes names the classes of YOLO's files: it does not go with the format coco"),
        ("--image-set", "--image-set lists images of VOC's XML"),
        ("--columns", "--columns names the columns of a table"),
        ("--gt-columns", "--gt-columns names the columns of a table"),
        ("--box-format", "--box-format says how boxes are written"),
        ("--gt-box-format", "--gt-box-format says how boxes are written"),
    ],
)
def test_an_option_that_concerns_no_file_is_refused(command, flag, problem, pair, capsys):
    assert main([command, "truth.json", "found.json", flag, "xyxy"]) == 2
    assert problem in capsys.readouterr().err


def test_an_option_concerns_one_of_two_formats(pair, capsys):
    (pair / "classes.txt").write_text("cat\ndog\n")
    for folder, score in (("truth", ""), ("found", " 0.5")):
        (pair / folder).mkdir()
        (pair / folder / "a.txt").write_text(f"1 0.5 0.5 0.1 0.1{score}\n")
    how = ["--classes", "classes.txt", "--image-sizes", "64x64", "--quiet", "--format", "json"]
    assert main(["eval", "truth", "found", *how, "--per-class"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [row["category"] for row in made["per_category"]] == ["cat", "dog"]
    assert made["metrics"]["AP"] > 0.99
    detections = [{"image_id": "a", "category_id": "dog", "bbox": [28.8, 28.8, 6.4, 6.4], "score": 0.5}]
    (pair / "found.json").write_text(json.dumps(detections))
    assert main(["batch", "truth", "found", "found.json", *how]) in (0, 3)  # one with classes, one without
    assert "does not go with" not in capsys.readouterr().err


def test_reading_refuses_an_option_that_does_not_concern_the_format(pair):
    for option in ("classes", "columns", "box_format", "image_set"):
        with pytest.raises(OptionError, match=rf"^{option} \(--{option.replace('_', '-')}\) .*the format coco$"):
            detmap.read("found.json", "detections", **{option: "xywh"})


def test_reading_refuses_an_option_that_does_not_concern_the_role(pair):
    for role, name, option in (
        ("ground_truth", "truth.json", {"unknown_images": "ignore"}),
        ("detections", "found.json", {"clusters": "video_id"}),
        ("detections", "found.json", {"image_facts": True}),
    ):
        what = "detections" if role == "ground_truth" else "ground truth"
        with pytest.raises(OptionError, match=rf"^{next(iter(option))} is an option of reading {what}: {name} is "):
            detmap.read(name, role, **option)
    with pytest.raises(OptionError, match=r"^missing_classes .*is about VOC's and DOTA's files of results"):
        detmap.read("found.json", "detections", missing_classes="skip")
    assert len(detmap.read("truth.json", "ground_truth", class_map={"dog": "cat"}).categories.ids) == 1


def test_check_refuses_an_option_of_what_is_not_read(pair, capsys):
    truth = detmap.read("truth.json", "ground_truth")
    found = detmap.read("found.json", "detections")
    with pytest.raises(OptionError, match=r"^gt_format is an option of reading ground truth: no file is given"):
        detmap.check(truth, found, gt_format="coco")
    with pytest.raises(OptionError, match=r"^dt_format is an option of reading detections: truth.json is ground truth"):
        detmap.check("truth.json", found, dt_format="coco")
    assert main(["check", "truth.json", "--columns", "image,score"]) == 2
    assert "columns is an option of reading detections: truth.json is ground truth" in capsys.readouterr().err
    detmap.check(truth, train="truth.json", gt_format="coco")  # which is read


@pytest.mark.parametrize("option", [["--seed", "1"], ["--confidence", "0.9"], ["--interval", "bca"]])
def test_options_of_intervals_need_some(pair, option, capsys):
    assert main(["eval", "truth.json", "found.json", *option]) == 2
    assert f"{option[0]} needs --bootstrap N" in capsys.readouterr().err
    assert main(["compare", "truth.json", "found.json", *option]) == 2  # which has intervals, of two models
    assert "needs two models" in capsys.readouterr().err


def test_an_empty_selection_is_refused(pair):
    for name, called in (("labels", "category_ids"), ("category_ids", "category_ids"), ("image_ids", "image_ids")):
        with pytest.raises(InputError, match=f"'{called}': is empty: nothing would be scored; None scores all"):
            detmap.evaluate("truth.json", "found.json", **{name: []})


def test_a_class_map_calls_classes_of_coco_as_the_ground_truth_does(pair):
    truth = detmap.read("truth.json", "ground_truth")
    for content in ("dog,cat\n", "7,cat\n", "dog,1\n", "7,1\n"):
        (pair / "map.csv").write_text(content)
        found = detmap.read("found.json", "detections", ground_truth=truth, class_map="map.csv")
        assert found.categories.ids[found.categories.codes].tolist() == [1, 1]
    (pair / "map.csv").write_text("dog,\n")
    found = detmap.read("found.json", "detections", ground_truth=truth, class_map="map.csv")
    assert (found.categories.ids.tolist(), found.notices["dropped_classes"]) == ([1], 1)


def test_a_class_map_that_maps_nothing_is_noticed(pair, capsys):
    (pair / "map.csv").write_text("hen,cat\n")
    assert main(["eval", "truth.json", "found.json", "--class-map", "map.csv"]) == 0
    assert "no class of the class map (1 in all) is among those of the detections" in capsys.readouterr().out


def test_check_takes_a_class_map(pair, capsys):
    records = json.loads((pair / "found.json").read_text())
    (pair / "found.json").write_text(json.dumps([{**one, "category_id": one["category_id"] + 90} for one in records]))
    (pair / "map.csv").write_text("91,cat\n97,dog\n")
    arguments = ["check", "truth.json", "found.json", "--format", "json"]

    def codes(*more):
        main([*arguments, *more])
        return {one["code"] for one in json.loads(capsys.readouterr().out)["findings"]}

    assert "unknown_categories" in codes() - codes("--class-map", "map.csv")
    assert main([*arguments, "--class-map", "none.csv"]) == 2
    assert "none.csv: no such file" in capsys.readouterr().err
    with pytest.raises(InputError, match="no such file"):
        detmap.check("truth.json", "found.json", class_map="none.csv")


def test_check_looks_for_shapes_that_no_record_has(pair, capsys):
    assert main(["check", "truth.json", "found.json", "--iou-type", "keypoints"]) == 1
    said = capsys.readouterr().out
    for records in ("2 objects", "2 detections"):
        assert f"error: None of {records} has the shape that is looked for: of the kind keypoints (no_shapes)" in said


def test_a_diagnosis_of_nothing_is_no_number(pair, capsys):
    (pair / "truth.json").write_text('{"images": [], "categories": [], "annotations": []}')
    (pair / "found.json").write_text("[]")
    assert main(["diagnose", "truth.json", "found.json"]) == 0
    assert "AP –, 0 detections, 0 objects, 0 images" in capsys.readouterr().out


def test_bootstrap_needs_a_part_with_intervals(pair, capsys):
    assert main(["diagnose", "truth.json", "found.json", "--parts", "tide", "--bootstrap", "200"]) == 2
    assert "--bootstrap needs the part operating_points or slices" in capsys.readouterr().err


def test_splits_that_are_no_names_are_refused(pair, capsys):
    assert main(["batch", "truth.json", "found.json", "--splits", "truth.json"]) == 2
    assert "field 'split': is no name of a split" in capsys.readouterr().err


def test_a_card_holds_the_class_map_and_finds_it_elsewhere(pair, capsys):
    assert main(["eval", "truth.json", "found.json", "--class-map", "map.csv", "--card", "card.json"]) == 0
    card = json.loads((pair / "card.json").read_text())
    assert [one["role"] for one in card["inputs"]] == ["ground_truth", "detections", "class_map"]
    verify = ["verify", "card.json", "truth.json", "found.json"]
    assert main(verify) == 0
    (pair / "map.csv").rename(pair / "there.csv")
    assert main(verify) == 2
    assert main([*verify, "--class-map", "there.csv"]) == 0
    (pair / "map.csv").write_text("dog,cat\ncat,dog\n")
    capsys.readouterr()
    assert main(verify) == 1
    assert "class map" in capsys.readouterr().out


def test_a_value_with_a_space_is_quoted_in_help(capsys):
    with pytest.raises(SystemExit):
        main(["eval", "--help-all"])
    assert "{area,bbox*0.53,'bbox*0.53, ranges by area'}" in capsys.readouterr().out


def test_an_interval_of_a_score_lies_within_the_scores():
    generator = np.random.default_rng(0)
    ids, scores = np.arange(80), generator.uniform(0.4, 0.6, 80)
    boxes = np.tile([0.0, 0.0, 8.0, 8.0], (80, 1))
    away = boxes + np.where(generator.random(80) < 0.1, 20, 0)[:, None] * [1, 1, 0, 0]
    truth = detmap.GroundTruth.from_arrays(image_ids=ids, category_ids=ids * 0, boxes=boxes)
    found = detmap.Detections.from_arrays(image_ids=ids, category_ids=ids * 0, boxes=away, scores=scores)
    made = diagnose(truth, found, replicates=200).part("operating_points")
    ends = np.array([[row["score low"], row["score high"]] for row in made.rows("points")])
    assert np.isfinite(ends).any()
    assert np.nanmin(ends) >= scores.min()
    assert np.nanmax(ends) <= scores.max()
