"""DOTA's text files and YOLO's oriented boxes: read, recognised, written, refused; and DOTA's numbers."""

from __future__ import annotations

import io
import json
import tarfile

import naive_rotated as twin
import numpy as np
import pytest
from support import assert_same_result, same_bits
from workloads import REAL_DATA

import detmap
from detmap.cli import main
from detmap.data.notices import describe
from detmap.formats import dota, files

HEADER = "imagesource:GoogleEarth\ngsd:0.25\n"
LABELS = {
    "P0001": HEADER + "10 10 20 10 20 30 10 30 ship 0 \n100.5 100 140 100 140 120 100 120 plane 1\n",
    "P0002": "10 10 20 10 20 30 10 30 ship\n",
    "P0003": HEADER,
}
RESULTS = {
    "Task1_ship": "P0001 0.5 10.0 10.0 20.0 10.0 20.0 30.0 10.0 30.0\nP0003 0.25 1 1 5 1 5 5 1 5\n",
    "Task1_plane": "",
}


def written(folder, files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@pytest.fixture
def both(tmp_path):
    return written(tmp_path / "labelTxt", LABELS), written(tmp_path / "Task1", RESULTS)


def test_labels_and_results(both):
    truth = detmap.read(both[0], iou_type="rotated")
    assert truth.images.ids.tolist() == ["P0001", "P0002", "P0003"]
    assert truth.categories.names == ("plane", "ship")
    assert truth.difficult.tolist() == [False, True, False]
    corners = truth.shapes["rotated"].arrays()["corners"]
    assert corners[1].tolist() == [100.5, 100, 140, 100, 140, 120, 100, 120]
    assert truth.kinds == ("rotated",)
    found = detmap.read(both[1], ground_truth=truth, iou_type="probiou")
    assert found.scores.tolist() == [0.5, 0.25]
    assert found.images.ids[found.images.codes].tolist() == ["P0001", "P0003"]
    assert found.classes == ("plane", "ship")
    assert found.kinds == ("probiou",)
    one = detmap.read(both[1] / "Task1_ship.txt", "detections", iou_type="rotated")
    assert same_bits(one.shapes["rotated"].arrays()["corners"], found.shapes["rotated"].arrays()["corners"])
    boxes = detmap.read(both[0])
    assert boxes.kinds == tuple(boxes.shapes) == ("bbox",)
    assert boxes.boxes[1].tolist() == [100, 100, 140.5 - 0.5, 120]
    assert describe(boxes.notices) == [
        "1 field of another benchmark, which this protocol does not read, so that the number is not that benchmark's: "
        "corners of rotated boxes (DOTA); DOTA's rules: --protocol dota"
    ]


def test_eval_knows_the_files_and_the_kind(both, capsys, tmp_path):
    assert main(["eval", *map(str, both), "--protocol", "dota", "--quiet"]) == 0
    assert "dota rotated: 2 detections, 3 objects" in capsys.readouterr().out
    assert main(["eval", *map(str, both), "--protocol", "auto", "--quiet"]) == 0
    assert "dota rotated: 2 detections, 3 objects" in capsys.readouterr().out
    assert main(["eval", *map(str, both)]) == 0
    assert "DOTA's rules: --protocol dota" in capsys.readouterr().out
    result = detmap.evaluate(*both, "dota")
    assert result["AP_ship"] == pytest.approx(6 / 11)
    assert result["mAP"] == result["AP_ship"]  # no plane is to be found
    names = tmp_path / "imageset.txt"
    names.write_text("P0001\n")
    words = [
        "eval",
        *map(str, both),
        "--protocol",
        "dota-area",
        "--image-set",
        str(names),
        "--unknown-images",
        "ignore",
    ]
    assert main([*words, "--quiet"]) == 0
    assert "dota-area rotated: 1 detection, 2 objects, 1 image" in capsys.readouterr().out
    truth = detmap.read(both[0], iou_type="rotated", image_set=names)
    assert truth.images.ids.tolist() == ["P0001"]
    names.write_text("P0001\nP9\n")
    with pytest.raises(detmap.InputError, match=r"1 images of the image set have no labels.*P9"):
        detmap.read(both[0], iou_type="rotated", image_set=names)


def test_archives(both, tmp_path):
    for folder in both:
        with tarfile.open(tmp_path / f"{folder.name}.tar.gz", "w:gz") as archive:
            archive.add(folder, folder.name)
    how = {"format": "dota", "iou_type": "rotated"}
    truth = detmap.read(tmp_path / "labelTxt.tar.gz", "ground_truth", **how)
    found = detmap.read(tmp_path / "Task1.tar.gz", ground_truth=truth, **how)
    assert_same_result(detmap.evaluate(truth, found, "dota"), detmap.evaluate(*both, "dota"))


@pytest.mark.parametrize("role", ["ground_truth", "detections"])
def test_round_trips(both, role, tmp_path):
    source = both[role == "detections"]
    made = detmap.convert(source, tmp_path / "out", to="dota")
    assert made.role == role
    assert not {code for code, count in made.lost.items() if count}
    first, second = (detmap.read(path, role, iou_type="rotated") for path in (source, tmp_path / "out"))
    assert same_bits(first.shapes["rotated"].arrays()["corners"], second.shapes["rotated"].arrays()["corners"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir())[0] in ("P0001.txt", "Task1_ship.txt")


def test_boxes_become_corners_and_corners_boxes(both, tmp_path):
    made = detmap.convert(both[0], tmp_path / "coco.json")
    assert made.lost["shapes"] == 3
    detmap.convert(tmp_path / "coco.json", tmp_path / "back", to="dota")
    assert (tmp_path / "back" / "P0001.txt").read_text().splitlines()[0] == "10 10 20 10 20 30 10 30 ship 0"


def test_horizontal_results(both, tmp_path):
    task2 = written(tmp_path / "Task2", {"Task2_ship": "P0001 0.5 10 10 20 30\n"})
    assert detmap.evaluate(both[0], task2)["AP50"] == pytest.approx(25.5 / 101)
    with pytest.raises(detmap.InputError, match="holds upright boxes, as Task2 asks for; give the results of Task1"):
        detmap.evaluate(both[0], task2, "dota")


@pytest.mark.parametrize(
    ("side", "name", "text", "message"),
    [
        (0, "P0001", "1 2 3 4 5 6 7 8\n", "P0001.txt: line 1: has 8 fields where 9 or 10 are expected"),
        (0, "P0001", HEADER + "1 2 3 4 5 6 7 8 ship 0 1\n", "P0001.txt: line 3: has 11 fields"),
        (0, "P0001", "1 2 3 4 5 6 7 x ship 0\n", "P0001.txt: line 1: must be a finite number .*'x'"),
        (0, "P0001", "1 2 3 4 5 6 7 nan ship 0\n", "line 1.*must be a finite number"),
        (0, "P0001", "1 2 3 4 5 6 7 1e200 ship 0\n", "line 1.*must be finite numbers of at most"),
        (0, "P0001", "1 2 3 4 5 6 7 8 ship -1\n", "line 1.*difficult must be a whole number"),
        (0, "P0001", "1 2 3 4 5 6 7 8 ship yes\n", "line 1.*difficult must be a whole number"),
        (0, "P0001", b"1 2 3 4 5 6 7 8 \xff 0\n", "line 1.*is not text in UTF-8"),
        (
            1,
            "Task1_ship",
            "P0001 0.5 1 2 3 4\nP0001 1 2 3 4 5 6 7 8 9\n",
            "line 2: has 10 fields where 6|line 2.*has 10 fields",
        ),
        (1, "Task1_ship", "P0001 0.5 1 2 3 4 5 6 7\n", "Task1_ship.txt: line 1: has 9 fields where 10 are expected"),
        (1, "Task1_ship", "P0001 nan 1 2 3 4 5 6 7 8\n", "line 1.*must be a finite number"),
        (
            1,
            "Task1_ship",
            "P0009 0.5 1 2 3 4 5 6 7 8\n",
            "Task1_ship.txt: line 1: is not an image of the ground truth .*P0009",
        ),
        (1, "Task2_ship", "P0001 0.5 1 2 3 4\n", "Task2_ship.txt: is a second file for class ship"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(both, side, name, text, message):
    written(both[side], {name: text})
    with pytest.raises(detmap.InputError, match=message) as caught:
        detmap.evaluate(*both, "dota")
    assert "\n" not in str(caught.value)


def test_images_that_are_not_there_and_classes_without_files(both):
    written(both[1], {"Task1_ship": "P0009 0.5 1 2 3 4 5 6 7 8\nP0001 0.5 10 10 20 10 20 30 10 30\n"})
    truth = detmap.read(both[0], iou_type="rotated")
    found = detmap.read(both[1], ground_truth=truth, iou_type="rotated", unknown_images="ignore")
    assert len(found) == found.notices["unknown_image"] == 1
    (both[1] / "Task1_ship.txt").unlink()
    with pytest.raises(detmap.InputError, match="1 class of the ground truth has no result file: ship"):
        detmap.read(both[1], ground_truth=truth, iou_type="rotated", missing_classes="error")


def test_swapped_sides_are_refused(both):
    with pytest.raises(
        detmap.InputError, match=r"looks like detections \(format dota\) where ground truth was expected"
    ):
        detmap.evaluate(*both[::-1], "dota")


# ------------------------------------------------------------------------------------------------------------ YOLO's own


@pytest.fixture
def oriented(tmp_path):
    labels = written(
        tmp_path / "labels", {"img1": "0 0.25 0.5 0.5 0.25 0.75 0.5 0.5 0.75\n1 .1 .1 .2 .1 .2 .2 .1 .2\n", "img3": ""}
    )
    return labels, written(tmp_path / "predictions", {"img1": "0 0.25 0.5 0.5 0.25 0.75 0.5 0.5 0.75 0.875\n"})


def test_oriented_boxes_of_yolo(oriented, tmp_path):
    sizes = {"img1": (480, 640), "img3": (50, 100)}
    truth = detmap.read(oriented[0], "ground_truth", iou_type="rotated", image_sizes=sizes)
    assert truth.shapes["rotated"].arrays()["corners"][0].tolist() == [160, 240, 320, 120, 480, 240, 320, 360]
    found = detmap.read(oriented[1], ground_truth=truth, iou_type="rotated")
    assert found.scores.tolist() == [0.875]
    assert detmap.evaluate(truth, found)["AP"] == pytest.approx(0.5)
    assert detmap.evaluate(truth, found, iou_type="probiou")["AP"] == pytest.approx(0.5)
    files.write(truth, tmp_path / "out", format="yolo")
    again = detmap.read(tmp_path / "out", "ground_truth", iou_type="rotated")
    assert np.allclose(
        again.shapes["rotated"].arrays()["corners"], truth.shapes["rotated"].arrays()["corners"], atol=1e-9
    )
    files.write(found, tmp_path / "found", format="yolo", ground_truth=truth)
    assert (tmp_path / "found" / "img1.txt").read_text() == "0 0.25 0.5 0.5 0.25 0.75 0.5 0.5 0.75 0.875\n"
    files.write(truth, tmp_path / "dota", format="dota")
    assert (tmp_path / "dota" / "img3.txt").read_text() == ""
    (oriented[0] / "img1.txt").write_text("0 0.25 0.5 0.5 0.25\n")
    with pytest.raises(detmap.InputError, match="line 1: is not the four corners of a box"):
        detmap.read(oriented[0], "ground_truth", iou_type="rotated", image_sizes=sizes)


# ----------------------------------------------------------------------------------------------------------- the numbers


def task1(folder):
    """Ground truth and detections as the twin takes them."""
    truth, found = [], []
    for path in sorted((folder / "labelTxt").glob("*.txt")):
        for words in (line.split() for line in path.read_text().splitlines()):
            if len(words) >= 9:
                truth.append(
                    (path.stem, words[8], [float(word) for word in words[:8]], len(words) > 9 and words[9] != "0")
                )
    for path in sorted((folder / "Task1").glob("*.txt")):
        for words in filter(None, (line.split() for line in path.read_text().splitlines())):
            found.append((words[0], path.stem[6:], [float(word) for word in words[2:]], float(words[1])))
    return truth, found


@pytest.mark.real_data
@pytest.mark.parametrize(("protocol", "key"), [("dota", "stable_voc07"), ("dota-area", "stable_area")])
def test_dota_s_numbers_are_those_of_its_development_kit(protocol, key):
    folder = REAL_DATA / "dota"
    expected = json.loads((folder / "expected.json").read_text())[key]
    result = detmap.evaluate(folder / "labelTxt", folder / "Task1", protocol)
    made = {name.removeprefix("AP_"): value for name, value in result.items() if name != "mAP"}
    assert made.keys() == expected["per_class"].keys()
    assert [made[name] for name in made] == pytest.approx([expected["per_class"][name] for name in made], abs=1e-14)
    assert result["mAP"] == pytest.approx(expected["map_over_present"], abs=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_dota_s_numbers_are_those_of_the_twin(seed, tmp_path):
    """Objects a few pixels apart, many ties, doubles and difficult ones."""
    rng = np.random.default_rng(seed)
    labels, results = {f"P{n}": HEADER for n in range(3)}, {f"Task1_{name}": "" for name in ("ship", "plane", "bus")}
    for n in range(3):
        for name in ("ship", "plane"):
            for _ in range(rng.integers(1, 8)):
                row = [*rng.uniform(0, 90, 2), *rng.uniform(4, 30, 2), rng.uniform(-4, 4)]
                quad = np.round(twin.rectangle(*row), rng.integers(0, 3))
                labels[f"P{n}"] += f"{' '.join(map(str, quad))} {name} {int(rng.random() < 0.2)}\n"
                for _ in range(rng.integers(0, 3)):
                    near = quad + np.tile(rng.normal(0, 2, 2).round(1), 4)
                    results[f"Task1_{name}"] += f"P{n} {rng.integers(1, 9) / 8} {' '.join(map(str, near))}\n"
    both = written(tmp_path / "labelTxt", labels), written(tmp_path / "Task1", results)
    for protocol, eleven in (("dota", True), ("dota-area", False)):
        expected = twin.dota(*task1(tmp_path), eleven)
        result = detmap.evaluate(*both, protocol)
        assert {name: result[f"AP_{name}"] for name in expected} == pytest.approx(expected, abs=1e-15)
        assert result["mAP"] == pytest.approx(np.mean(list(expected.values())), abs=1e-15)


def test_streams_say_their_format(both):
    """An archive in a stream is taken for VOC's, unless it is said."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        archive.add(both[0], "labelTxt")
    (both[0].parent / "labels.tar").write_bytes(held.getvalue())
    assert len(detmap.read(both[0].parent / "labels.tar", "ground_truth", format="dota", iou_type="rotated")) == 3


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
def test_large_results_are_scanned_and_say_the_same(both, monkeypatch, end):
    """Plain ones by the scanner, others word by word; what is wrong is found by words either way."""
    rng = np.random.default_rng(1)
    rows = [
        f"P000{n % 3 + 1} {score} {' '.join(map(repr, quad))}"
        for n, (score, *quad) in enumerate(rng.normal(0, 99, (50, 9)).tolist())
    ]
    written(both[1], {"Task1_plane": end.join([*rows, ""])})
    truth = detmap.read(both[0], iou_type="rotated")
    tables = []
    for least in (0, 1 << 30):
        monkeypatch.setattr(dota, "_WORTH_SCANNING", least)
        tables.append(detmap.read(both[1], ground_truth=truth, iou_type="rotated"))
    for name in ("images", "categories"):
        first, second = (getattr(one, name) for one in tables)
        assert first.ids[first.codes].tolist() == second.ids[second.codes].tolist()
    assert same_bits(tables[0].scores, tables[1].scores)
    assert same_bits(*(one.shapes["rotated"].arrays()["corners"] for one in tables))
    monkeypatch.setattr(dota, "_WORTH_SCANNING", 0)
    for wrong, message in (
        ("P9" + rows[0][5:], "is not an image"),
        (rows[0][:-1] + "e200", "must be finite"),
        ("x", "has 1 fields"),
    ):
        written(both[1], {"Task1_plane": end.join([*rows, wrong, ""])})
        with pytest.raises(detmap.InputError, match=f"Task1_plane.txt: line 51.*{message}"):
            detmap.read(both[1], ground_truth=truth, iou_type="rotated")
