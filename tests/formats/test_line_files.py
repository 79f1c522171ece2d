"""Formats of lines in files, made from a description: what is read, written, refused, and left aside by checks."""

from __future__ import annotations

import json

import numpy as np
import pytest
from growth import kitti
from legs import examples
from support import assert_same_result, same_bits
from workloads import make_coco

import detmap
from detmap.cli import main
from detmap.errors import InputError
from detmap.formats import FORMATS, files, line_files, line_format
from detmap.reading.lines import read_lines

pytestmark = pytest.mark.plugins("kitti")

#: The first two labels of KITTI's training set, by their form.
LABELS = {
    "000000.txt": "Pedestrian 0.00 0 -0.20 712.40 143.00 810.73 307.92 1.89 0.48 1.20 1.84 1.47 8.41 0.01 0\n",
    "000001.txt": "Truck 0.00 0 -1.57 599.41 156.40 629.75 189.25 2.85 2.63 12.34 0.47 1.49 69.44 -1.56 0\n"
    "Car 0.00 0 1.85 387.63 181.54 423.81 203.12 1.67 1.87 3.69 -16.53 2.39 58.49 1.57 0\n"
    "DontCare -1 -1 -10 503.89 169.71 590.61 190.13 -1 -1 -1 -1000 -1000 -1000 -10 0\n",
}
FOUND = {
    "000000.txt": "Pedestrian -1 -1 -10 712.40 143.00 810.73 300.00 -1 -1 -1 -1000 -1000 -1000 -10 0 0.9\n",
    "000001.txt": "Car -1 -1 -10 387.63 181.54 423.81 203.12 -1 -1 -1 -1000 -1000 -1000 -10 0 0.5\n"
    "Truck -1 -1 -10 510.00 170.00 585.00 188.00 -1 -1 -1 -1000 -1000 -1000 -10 0 0.8\n"
    "Truck -1 -1 -10 599.41 156.40 629.75 189.25 -1 -1 -1 -1000 -1000 -1000 -10 0 0.7\n",
}


def folder(path, contents):
    path.mkdir()
    for name, text in contents.items():
        (path / name).write_text(text)
    return path


def made(monkeypatch, **given):
    """A format of one description, registered for the test."""
    found = line_format("made", **given)
    monkeypatch.setitem(FORMATS, "made", found)
    monkeypatch.setitem(FORMATS._modules, "made", "test")
    return found


@pytest.fixture
def pair(tmp_path):
    return folder(tmp_path / "truth", LABELS), folder(tmp_path / "found", FOUND)


def test_kitti_is_recognised_and_read(pair):
    truth, found = detmap.read(pair[0], "ground_truth"), detmap.read(pair[1], "detections")
    assert files.registry.recognise(pair[0], "ground_truth") is kitti.FORMAT
    assert files.registry.recognise(pair[1], "ground_truth") is None
    assert truth.images.ids.tolist() == ["000000", "000001"]
    assert sorted(truth.categories.ids.tolist()) == ["Car", "Pedestrian", "Truck"]
    assert truth.boxes[0].tolist() == [712.40, 143.00, 810.73, 307.92]
    assert not truth.box_sizes
    assert found.scores.tolist() == [0.9, 0.5, 0.8, 0.7]


def test_a_region_of_all_classes_is_a_crowd_of_each(pair):
    truth = detmap.read(pair[0], "ground_truth")
    regions = np.flatnonzero(truth.crowd)
    assert sorted(truth.categories.codes[regions].tolist()) == [0, 1, 2]
    assert (truth.boxes[regions] == [503.89, 169.71, 590.61, 190.13]).all()
    found = detmap.read(pair[1], "detections", ground_truth=truth)
    assert detmap.evaluate(truth, found)["AP50"] > 0.999  # the better scored truck lies in the region
    without = detmap.evaluate(truth.take(~truth.crowd), found)
    assert without["AP50"] < 0.9


def test_what_is_written_is_read_again(pair, tmp_path):
    truth, found = detmap.read(pair[0], "ground_truth"), detmap.read(pair[1], "detections")
    assert detmap.write(truth, tmp_path / "again", format="street") == {}
    text = (tmp_path / "again/000001.txt").read_text()
    assert text.count("DontCare") == 1
    assert text.splitlines()[0] == "Truck -1 -1 -10 599.41 156.4 629.75 189.25 -1 -1 -1 -1000 -1000 -1000 -10 0"
    again = detmap.read(tmp_path / "again", "ground_truth")
    assert same_bits(again.boxes, truth.boxes)
    assert again.crowd.tolist() == truth.crowd.tolist()
    detmap.write(found, tmp_path / "results", format="street")
    assert_same_result(
        detmap.evaluate(again, detmap.read(tmp_path / "results", "detections")), detmap.evaluate(truth, found)
    )
    lone = truth.take(np.flatnonzero(truth.crowd)[:1])  # a crowd of one class is no region
    assert detmap.write(lone, tmp_path / "lone", format="street")["crowd"] == 1
    named = detmap.GroundTruth.from_arrays(image_ids=["a"], category_ids=["DontCare"], boxes=[[0, 0, 5, 5]])
    with pytest.raises(InputError, match="is the word for regions of all classes"):
        detmap.write(named, tmp_path / "named", format="street")
    with pytest.raises(InputError, match=r"regions of all classes.*--class-map"):  # KITTI's words have no cases
        detmap.write(named, tmp_path / "named", format="kitti")
    shares = detmap.GroundTruth.from_arrays(image_ids=["a"], category_ids=["b"], boxes=[[0, 0, 0.5, 0.5]])
    with pytest.raises(InputError, match="would be read as these"):
        detmap.write(shares, tmp_path / "named", format="text")


def test_classes_of_kitti_are_those_of_ground_truth_with_capitals(tmp_path):
    own = {"image_ids": ["a"], "category_ids": [3], "boxes": [[10, 10, 50, 50]]}
    truth = detmap.GroundTruth.from_arrays(**own, category_names={3: "Car"})
    detmap.write(
        detmap.Detections.from_arrays(**own, scores=[0.5]), tmp_path / "out", format="kitti", ground_truth=truth
    )
    assert detmap.read(tmp_path / "out", "detections", ground_truth=truth).categories.values.tolist() == [3]


def test_a_folder_is_written_whole_or_not_at_all(tmp_path):
    truth = detmap.GroundTruth.from_arrays(
        image_ids=["a", "b" * 300], category_ids=["car", "car"], boxes=[[10, 10, 50, 50]] * 2
    )
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        with pytest.raises(detmap.OptionError, match="cannot write"):
            detmap.write(truth, tmp_path / name, format="kitti")
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def test_scores_are_those_of_the_same_boxes_in_json(tmp_path, monkeypatch):
    dataset, results = make_coco(7, images=8, unknown_categories=False)
    for one in dataset["categories"]:
        one["name"] = one["name"].replace(" ", "-")
    for name, content in (("truth", dataset), ("found", results)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    truth = detmap.read(tmp_path / "truth.json", "ground_truth")
    found = detmap.read(tmp_path / "found.json", "detections", ground_truth=truth)
    truth = truth.take(~truth.crowd)
    made(
        monkeypatch,
        ground_truth="{crowd} {class} {x} {y} {width} {height} 0",
        detections="{score} {class} {cx} {cy} {width} {height}",
    )
    lost = detmap.write(truth, tmp_path / "lines", format="made")
    assert set(lost) <= {
        "areas",
        "category_ids",
        "image_ids",
        "image_sizes",
        "empty_categories",
        "category_order",
        "sizes",
    }
    again = detmap.read(tmp_path / "lines", "ground_truth", format="made")
    assert sorted(map(tuple, again.boxes.tolist())) == sorted(map(tuple, truth.boxes.tolist()))
    lost = detmap.write(found, tmp_path / "results", format="made", ground_truth=truth)
    back = detmap.read(tmp_path / "results", "detections", format="made", ground_truth=truth)
    order = np.argsort(np.array([str(i) for i in found.images.values])[found.images.codes], kind="stable")
    assert same_bits(back.scores, found.scores[order])
    changed = (back.boxes != found.boxes[order]).any(axis=1)
    assert np.count_nonzero(changed) == lost.get("rounded_boxes", 0)


def test_flags_are_columns_or_marks(tmp_path, monkeypatch):
    made(monkeypatch, ground_truth="{class} {difficult} {x1} {y1} {x2} {y2} [crowd]")
    path = folder(tmp_path / "truth", {"a.txt": "cat 1 0 0 9 9\ncat 0 5 5 9 9 crowd\n"})
    table = detmap.read(path, "ground_truth", format="made")
    assert (table.difficult.tolist(), table.crowd.tolist()) == ([True, False], [False, True])
    assert detmap.write(table, tmp_path / "again", format="made") == {}
    assert (tmp_path / "again/a.txt").read_text() == "cat 1 0.0 0.0 9.0 9.0\ncat 0 5.0 5.0 9.0 9.0 crowd\n"
    (path / "a.txt").write_text("cat 2 0 0 9 9\n")
    with pytest.raises(InputError, match=r"a\.txt: line 1: difficult must be 0 or 1"):
        detmap.read(path, "ground_truth", format="made")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Car 1 2 3", "line 2: has 4 fields where 17 are expected.*a line is: class -1 -1 -10 x1 y1 x2 y2"),
        (FOUND["000000.txt"].replace("0.9", "high"), r"line 2: must be a finite number \(got 'high'\)"),
        (
            FOUND["000000.txt"].replace("712.40", "900.0"),
            "line 2, field 'bbox': the far corner lies before the near one",
        ),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_file(line, problem, pair):
    with (pair[1] / "000001.txt").open("w") as file:
        file.write(f"{FOUND['000000.txt']}{line}\n")
    with pytest.raises(InputError, match=rf"000001\.txt: {problem}") as caught:
        detmap.read(pair[1], "detections", format="street")
    assert "\n" not in str(caught.value)


def test_checks_leave_wrong_lines_aside(pair, capsys):
    (pair[0] / "000001.txt").write_text(LABELS["000001.txt"] + "Car 1 2\n")
    (pair[1] / "000001.txt").write_text(FOUND["000001.txt"] + "Car x\n" * 2)
    words = ["--plugin", "growth.kitti", "--format", "json"]
    assert main(["check", *map(str, pair), *words]) == 1
    found = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["code"] == "bad_values"]
    assert [(one["count"], one["records"]) for one in found] == [
        (1, ["000001.txt line 4"]),
        (2, ["000001.txt line 4", "000001.txt line 5"]),
    ]
    assert "has 3 fields where 16 are expected" in found[0]["says"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{class} {x} {y} {width}",
        "{x} {y} {width} {height}",
        "{class} {a} {b} {c} {d}",
        "{class} {x1} {y1} {x2} {y2} {age}",
        "{class} {x1} {y1} {x2} {y2} [old]",
    ],
)
def test_a_description_that_is_none(text):
    if not text:
        assert line_format("none").read_ground_truth is None
        return
    with pytest.raises(ValueError, match="columns"):
        line_format("none", ground_truth=text)


def test_valid_lines_are_told_from_others_as_line_by_line():
    rng = np.random.default_rng(2)
    side = line_files._Side(
        row=line_files._Row("{class} {x1} {y1} {x2} {y2} {crowd} [difficult]", scored=False), formed=None
    )
    usual = [b"car 10 20.5 30 40 0", b"bus 1 2 3 4 1 difficult", b"car 0 0 1 1 0"]
    odd = [b"car 0.5 0 1 1 0", b"car 1 2 3", b"car 1 2 3 x 0", b"car 1 2 3 4 2", b"\xff 1 2 3 4 0", b"a 1 2 3 4 0 hard"]
    seen = set()
    for turn in range(examples(300)):
        words = usual + odd * (turn % 3)
        text = b"\n".join(words[i] for i in rng.integers(0, len(words), rng.integers(0, 30)))
        lines = read_lines([(text, "a.txt")])
        good, refused = side._told_apart(lines)
        expected = [side._error(lines.take([row])) for row in range(len(lines))]
        assert good.numbers.tolist() == [n for n, error in enumerate(expected, 1) if error is None]
        assert [(one.record, one.problem) for one in refused] == [
            (f"a.txt line {n}", error.problem) for n, error in enumerate(expected, 1) if error is not None
        ]
        seen |= {one.problem for one in refused}
    assert len(seen) == 6
