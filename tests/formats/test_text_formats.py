"""CSV, and lines of text per image: what is read, what is refused, and the laws of what is written."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from support import assert_same_result, same_bits
from test_round_trips import assert_same_table, law, through
from workloads import make_coco

import detmap
from detmap.cli import main
from detmap.errors import InputError, OptionError
from detmap.formats import files

TRUTH = "image_id,category_id,category,x,y,width,height,iscrowd\n1,5,cat,0,0,10,20,0\n1,6,dog,5,5,10,10,1\n2,,,,,,,\n"
FOUND = "image_id,category_id,score,x,y,width,height\n1,5,0.9,0,0,10,20\n2,6,0.5,1,1,2,2\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def found_of(tmp_path, text, **more):
    return detmap.read(write(tmp_path / "found.csv", text), "detections", **more)


def truth_of(tmp_path, text, **more):
    return detmap.read(write(tmp_path / "truth.csv", text), "ground_truth", **more)


# ------------------------------------------------------------------------------------------------------------------- CSV


def test_csv_with_its_usual_names(tmp_path):
    truth = truth_of(tmp_path, TRUTH)
    assert truth.images.values.tolist() == [1, 2]
    assert truth.categories.values.tolist() == [5, 6]
    assert truth.category_names == ("cat", "dog")
    assert truth.boxes.tolist() == [[0, 0, 10, 20], [5, 5, 10, 10]]
    assert truth.crowd.tolist() == [False, True]
    assert truth.areas.tolist() == [200, 100]
    found = found_of(tmp_path, FOUND, ground_truth=truth)
    assert found.scores.tolist() == [0.9, 0.5]
    assert detmap.evaluate(truth, found)["AP"] == pytest.approx(1)
    packed = tmp_path / "found.tsv.gz"
    packed.write_bytes(gzip.compress(("\ufeff" + FOUND.replace(",", "\t").replace("\n", "\r\n")).encode()))
    assert_same_table(found, detmap.read(packed, "detections", ground_truth=truth))
    nameless = write(tmp_path / "found.txt", FOUND.replace(",", ";"))
    assert_same_table(found, detmap.read(nameless, "detections", ground_truth=truth))


@pytest.mark.parametrize(
    ("header", "box", "expected"),
    [
        ("filename,class,xmin,ymin,xmax,ymax,confidence", "1,2,4,6", [1, 2, 4, 6]),
        ("Image,Label,X1,Y1,X2,Y2,Score", "1,2,4,6", [1, 2, 4, 6]),
        ("img,name,left,top,right,bottom,conf", "1,2,4,6", [1, 2, 4, 6]),
        ("file_name,category,left,top,w,h,score", "1,2,4,6", [1, 2, 4, 6]),
        ("image,label_name,x_center,y_center,width,height,score", "3,5,4,6", [1, 2, 4, 6]),
    ],
)
def test_other_names_of_columns(header, box, expected, tmp_path):
    found = found_of(tmp_path, f"{header}\na.jpg,cat,{box},0.5\n")
    assert found.boxes.tolist() == [expected]
    assert found.box_sizes == ("right" not in header and "2" not in header and "max" not in header)
    assert found.images.values.tolist() == ["a.jpg"]
    assert found.categories.values.tolist() == ["cat"]


def test_columns_that_the_caller_names(tmp_path):
    text = "photo,what,p,a,b,c,d,score\nx,cat,0.5,1,2,3,4,9\n"
    names = {"image": "photo", "category": "what", "score": "p", "x": "a", "y": "b", "width": "c", "height": "d"}
    for columns in (names, ",".join(f"{role}={title}" for role, title in names.items())):
        found = found_of(tmp_path, text, columns=columns)  # what is called score is another thing then
        assert (found.scores.tolist(), found.boxes.tolist()) == ([0.5], [[1, 2, 3, 4]])
    rows = "x,9,cat,0.5,1,2,3,4\n"
    for columns in ("image,-,category,score,x1,y1,x2,y2", ["image", None, "class", "conf", "x1", "y1", "x2", "y2"]):
        found = found_of(tmp_path, rows, columns=columns)
        assert (found.scores.tolist(), found.boxes.tolist(), found.box_sizes) == ([0.5], [[1, 2, 3, 4]], False)
    with pytest.raises(OptionError, match=r"a column cannot be 'colour'; one of: image_id, image"):
        found_of(tmp_path, rows, columns="image,colour")
    with pytest.raises(InputError, match=r"has no column 'nowhere'; it has: photo, what"):
        found_of(tmp_path, text, columns={"score": "nowhere"})


def test_ids_are_matched_with_those_of_the_ground_truth(tmp_path):
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[7, 8],
        category_ids=[1, 2],
        boxes=[[0, 0, 9, 9]] * 2,
        images=[7, 8],
        categories=[1, 2],
        category_names={1: "cat", 2: "dog"},
    )
    truth = replace(truth, images=replace(truth.images, names=("val/a.jpg", "b.png")))
    rows = "x,y,width,height,score\n"
    for header, cells in (
        ("image,class", "a.jpg,cat"),
        ("image,class", "dir/a.png,1"),
        ("image,class", "7,cat"),
        ("image,class", "007.jpg,1"),
        ("image_id,category_id", "7,1"),
        ("image_id,category_id", "a,cat"),
    ):
        found = found_of(tmp_path, f"{header},{rows}{cells},0,0,9,9,1\n", ground_truth=truth)
        assert (found.images.values.tolist(), found.categories.values.tolist()) == ([7], [1]), cells
    strings = detmap.GroundTruth.from_arrays(image_ids=["7"], category_ids=["1"], boxes=[[0, 0, 9, 9]])
    found = found_of(tmp_path, f"image_id,category_id,{rows}7,1,0,0,9,9,1\n", ground_truth=strings)
    assert (found.images.values.tolist(), found.categories.values.tolist()) == (["7"], ["1"])
    text = f"image_id,category_id,{rows}7,1,0,0,9,9,1\n9,3,0,0,9,9,1\n"
    with pytest.raises(InputError, match=r"found\.csv: line 3: is not an image of the ground truth \(got 9\)"):
        found_of(tmp_path, text, ground_truth=truth)
    kept = found_of(tmp_path, text, ground_truth=truth, unknown_images="ignore")
    assert (len(kept), kept.notices["unknown_image"]) == (1, 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (
            "a,b\n1,2\n",
            "the first line names no column that is known; its first line is: a, b|there is no column for scores",
        ),
        (FOUND.replace("score", "sure"), r"there is no column for scores; it has: image_id.*--columns score="),
        (FOUND.replace("image_id", "pic"), "there is no column for images"),
        (FOUND.replace("height", "what"), "there is no column for boxes"),
        (FOUND + "1,5,0.9,0,0,10\n", "line 4: has 6 fields where 7 are expected"),
        (FOUND + "1,5,high,0,0,10,20\n", r"line 4, field 'score': must be a finite number \(got 'high'\)"),
        (FOUND + "1,5,,0,0,10,20\n", "line 4, field 'score': is missing"),
        (FOUND + "1,5,1,nan,0,10,20\n", "field 'x': must be a finite number"),
        (FOUND + "1,5,1,1_0,0,10,20\n", "field 'x': must be a finite number"),
        (FOUND + ",5,1,1,0,10,20\n", "field 'image_id': is missing"),
        (FOUND + "x" * 300 + ",5,1,1,0,10,20\n", "has more than 256 characters"),
        (FOUND + '"1,5,1,1,0,10,20\n', "is not valid CSV"),
        (FOUND.replace(",", "\t").replace("0.9", '"0."9'), r"is not valid CSV: '\\t' expected"),
        (b"\xff\xfe" + FOUND.encode(), "is not a text file in UTF-8"),
        ("x1,y1," + FOUND.replace("width,height", "x2,y2,width,height"), "fields where|boxes in"),
        ("image_id,image_id" + FOUND[8:], "has two columns for image_id|fields where"),
        (FOUND + "1,5,1,1,0,-10,20\n", "width and height must not be negative"),
        (FOUND + '1,5,1,1,0,10,"' + "9" * 200_000 + '"\n', "is not valid CSV: field larger"),
    ],
)
def test_csv_that_is_none(text, problem, tmp_path, monkeypatch):
    """With and without the scanner of large files."""
    said = set()
    for worth in (0, 1 << 60):
        monkeypatch.setattr("detmap.formats.delimited.read._WORTH_SCANNING", worth)
        with pytest.raises(InputError, match=problem) as caught:
            found_of(tmp_path, text)
        said.add(str(caught.value))
    (message,) = said
    assert message.isprintable()


def test_boxes_in_two_ways_are_refused_unless_one_is_named(tmp_path):
    text = "image,class,score,x1,y1,x2,y2,x,y,w,h\na,cat,1,0,0,1,1,0,0,2,2\n"
    with pytest.raises(InputError, match="has columns of boxes in 2 ways: x1, y1, x2, y2 and x, y, width, height"):
        found_of(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (TRUTH + "1,5,bird,0,0,1,1,0\n", "is another name of the category 5"),
        (TRUTH + "1,5,cat,0,0,1,1,2\n", "is neither 0 nor 1"),
        (TRUTH + "1,,,0,0,1,1,\n", "field 'category_id': is missing"),
        ("image,image_width,image_height,class,x,y,w,h\na,5,x,c,0,0,1,1\n", "must be whole numbers"),
        ("image,image_width,image_height,class,x,y,w,h\na,5,5,c,0,0,1,1\na,5,6,c,0,0,1,1\n", "is another size"),
    ],
)
def test_ground_truth_that_contradicts_itself(text, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        truth_of(tmp_path, text)


def test_csv_holds_every_table_of_boxes(tmp_path):
    """Categories without objects apart, which it counts; corners stay corners."""

    @law()
    def holds(world):
        truth, found = world
        everything = [*truth.images.values.tolist(), *truth.categories.values.tolist(), *(truth.images.names or ())]
        if truth.categories.values.dtype.kind == "i":
            everything += truth.category_names
        if any(isinstance(one, str) and not (one == one.strip() and one.isprintable()) for one in everything):
            with pytest.raises(InputError, match="cannot be written as a cell"):
                detmap.write(truth, tmp_path / "truth.csv")
            return
        for name in ("found.csv", "found.tsv.gz"):
            again, lost = through(found, tmp_path / name)
            assert lost == {}
            if len(found):
                assert_same_table(found, again)
        used = np.unique(truth.categories.codes)
        integers = [ids.values.dtype.kind == "i" for ids in (truth.images, truth.categories)]
        again, lost = through(truth, tmp_path / "truth.csv")
        assert lost.get("empty_categories", 0) == truth.categories.values.size - used.size
        assert again.images.values.tolist() == truth.images.values.tolist()
        assert again.images.codes.tolist() == truth.images.codes.tolist()
        assert again.categories.values.tolist() == truth.categories.values[used].tolist()
        assert same_bits(again.boxes, truth.boxes)
        assert same_bits(again.areas, truth.areas)
        assert again.crowd.tolist() == truth.crowd.tolist()
        assert again.difficult.tolist() == truth.difficult.tolist()
        if integers[1]:
            assert again.category_names == tuple(truth.category_names[i] for i in used)
        assert (again.images.names == truth.images.names) or ("image_names" in lost)
        assert truth.image_sizes is None or np.array_equal(again.image_sizes, truth.image_sizes)

    holds()


def test_corners_stay_corners_in_csv(tmp_path):
    boxes = [[-0.7, 0, 0.1, 1], [1, 2, 3, 5]]
    table = detmap.Detections.from_arrays(
        image_ids=["a", "b"], category_ids=["c", "c"], boxes=boxes, scores=[1, 2], box_format="xyxy"
    )
    again, lost = through(table, tmp_path / "found.csv")
    assert lost == {}
    assert_same_table(table, again)


def test_a_made_up_data_set_scores_the_same_through_csv_and_on_the_command_line(tmp_path, capsys):
    dataset, results = make_coco(8, images=6)
    truth = detmap.read_coco(dataset)
    found = detmap.read_coco_results(results, truth)
    expected = detmap.evaluate(truth, found)
    detmap.write(found, tmp_path / "found.csv")
    detmap.write(truth, tmp_path / "truth.json")
    assert_same_result(detmap.evaluate(truth, detmap.read(tmp_path / "found.csv", "detections")), expected)
    assert main(["eval", str(tmp_path / "truth.json"), str(tmp_path / "found.csv"), "--format", "json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["metrics"] == json.loads(expected.to_json())["metrics"]


# ---------------------------------------------------------------------------------------------------------- lines of text


@pytest.fixture
def cartucho(tmp_path):
    """As the README of Cartucho's mAP describes them."""
    write(
        tmp_path / "ground-truth/image_1.txt",
        "tvmonitor 2 10 173 238\nbook 439 157 556 241\nbook 437 246 518 351 difficult\n",
    )
    write(tmp_path / "ground-truth/image_2.txt", "")
    write(
        tmp_path / "detection-results/image_1.txt", "tvmonitor 0.471781 2 10 173 238\nbook 0.429497 439 157 556 241\n"
    )
    write(tmp_path / "detection-results/image_2.txt", "book 0.3 1 2 3 4\n")
    return tmp_path


def test_corners_as_cartucho_writes_them(cartucho, capsys):
    truth = detmap.read(cartucho / "ground-truth", "ground_truth")
    assert truth.images.values.tolist() == ["image_1", "image_2"]
    assert truth.difficult.tolist() == [False, False, True]
    assert truth.boxes[0].tolist() == [2, 10, 173, 238]
    assert not truth.box_sizes
    assert truth.notices["boxes_read_as_xyxy"] == 3
    found = detmap.read(cartucho / "detection-results", "detections", ground_truth=truth)
    assert sorted(found.scores.tolist()) == [0.3, 0.429497, 0.471781]
    result = detmap.evaluate(truth, found, "voc2012")
    assert result["mAP"] == 1
    words = [str(cartucho / "ground-truth"), str(cartucho / "detection-results"), "--protocol", "voc2012"]
    assert main(["eval", *words, "--format", "json"]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["metrics"]["mAP"] == 1
    assert "6 boxes are taken for left, top, right, bottom" in out.err


def test_corner_and_size_as_padilla_takes_them(tmp_path):
    write(tmp_path / "truth/a.txt", "bottle 6 234 45 32\nperson 1 156 103 18\n")
    table = detmap.read(tmp_path / "truth", "ground_truth")
    assert table.boxes.tolist() == [[6, 234, 45, 32], [1, 156, 103, 18]]
    assert table.box_sizes
    assert table.notices["boxes_read_as_xywh"] == 2
    write(tmp_path / "few/a.txt", "bottle 0.5 1 2 30 40\n")
    for given, sizes in ((None, False), ("xyxy", False), ("xywh", True)):
        found = detmap.read(tmp_path / "few", "detections", box_format=given)
        assert found.box_sizes == sizes
        assert any(code.startswith("boxes_read") for code in found.notices) == (given is None)
    centred = detmap.read(tmp_path / "few", "detections", box_format="cxcywh")
    assert centred.boxes.tolist() == [[-14, -18, 30, 40]]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("cat 0.5 1 2 3", "line 2: has 5 fields where 6 are expected"),
        ("cat 0.5 1 2 3 4 difficult", "has 7 fields where 6 are expected"),
        ("two words 0.5 1 2 3 4", "has 7 fields where 6"),
        ("cat high 1 2 3 4", r"must be a finite number \(got 'high'\)"),
        ("cat 0.5 1 2 3 inf", r"must be a finite number \(got 'inf'\)"),
        ("c\0t 0.5 1 2 3 4", "is not a text file"),
        ("x" * 300 + " 0.5 1 2 3 4", "field of absurd length"),
    ],
)
def test_lines_that_are_none(line, problem, tmp_path):
    write(tmp_path / "found/a.txt", f"cat 0.5 1 2 3 4\n{line}\n")
    with pytest.raises(InputError, match=problem):
        detmap.read(tmp_path / "found", "detections", format="text")


def test_a_few_inverted_corners_are_no_sizes(tmp_path):
    """Of many corners some may be wrong; which of the two forms it is has to be said then."""
    (tmp_path / "gt").mkdir()
    lines = [f"cat {i} {i} {i + 20} {i + 30}" for i in range(60)]
    (tmp_path / "gt/a.txt").write_text("\n".join([*lines, "cat 50 50 40 60"]))
    with pytest.raises(
        InputError, match=r"line 61: is one of 1 boxes of 61 that are inverted as left, top, right, bottom"
    ):
        detmap.read(tmp_path / "gt", "ground_truth")
    assert len(detmap.read(tmp_path / "gt", "ground_truth", box_format="xywh")) == 61
    table = detmap.read(tmp_path / "gt", "ground_truth", box_format="xyxy", invalid_boxes="drop")
    assert len(table) == 60


def test_shares_of_the_image_are_read_with_sizes_and_noticed(tmp_path):
    write(tmp_path / "found/a.txt", "cat 0.9 0.5 0.5 0.25 0.25\n")
    with pytest.raises(InputError, match=r"the size of the image is not known, and boxes are shares of it \(got 'a'\)"):
        detmap.read(tmp_path / "found", "detections")
    found = detmap.read(tmp_path / "found", "detections", image_sizes="64x32")
    assert found.boxes.tolist() == [[24, 12, 16, 8]]
    assert found.notices["boxes_read_as_shares"] == 1
    write(tmp_path / "other/a.txt", "0 0.9 0.5 0.5 0.25 0.25\n0 0.95 0.2 0.2 0.25 0.25\n")
    found = detmap.read(tmp_path / "other", "detections", image_sizes="64x64")
    assert found.notices["score_before_box"] == 2
    told = detmap.read(tmp_path / "other", "detections", format="text", box_format="cxcywh", image_sizes="64x64")
    assert told.boxes.tolist() == [[24, 24, 16, 16], [4.800000000000001, 4.800000000000001, 16, 16]]


def test_lines_of_text_hold_boxes_by_their_corners(tmp_path_factory):
    @law(files=True)
    def holds(world):
        truth, found = world
        folder = tmp_path_factory.mktemp("text")
        if len(set(truth.category_names)) < len(truth.category_names):
            return
        lost = detmap.write(truth, folder / "truth", format="text")
        assert lost.get("crowd", 0) == truth.crowd.sum()
        again = detmap.read(folder / "truth", "ground_truth", format="text", box_format="xyxy")
        once_more = detmap.write(again, folder / "again", format="text")
        assert set(once_more) <= {"areas"}
        assert_same_table(again, detmap.read(folder / "again", "ground_truth", format="text", box_format="xyxy"))
        assert sorted(again.difficult.tolist()) == sorted(truth.difficult.tolist())
        if not len(found):
            return
        detmap.write(found, folder / "found", format="text", ground_truth=truth)
        results = detmap.read(folder / "found", "detections", format="text", ground_truth=again, box_format="xyxy")
        order = np.argsort(np.array([str(one) for one in found.images.values])[found.images.codes], kind="stable")
        assert same_bits(results.scores, found.scores[order])
        corners = found.boxes + np.pad(found.boxes[:, :2], ((0, 0), (2, 0)))
        assert same_bits(results.boxes, corners[order])

    holds()


def test_what_lines_of_text_cannot_hold(tmp_path):
    given = {"image_ids": ["a"], "category_ids": ["two words"], "boxes": [[0, 0, 1, 1]]}
    for table in (detmap.GroundTruth.from_arrays(**given), detmap.Detections.from_arrays(**given, scores=[1])):
        with pytest.raises(InputError, match=r"must be one word \(got 'two words'\)"):
            detmap.write(table, tmp_path / "out", format="text")
    table = detmap.Detections.from_arrays(**{**given, "category_ids": ["c"]}, scores=[np.inf])
    with pytest.raises(InputError, match="a score must be finite"):
        detmap.write(table, tmp_path / "out", format="text")
    with pytest.raises(InputError, match="a score must be finite"):
        detmap.write(table, tmp_path / "out.csv")
    assert not (tmp_path / "out").exists()


def test_folders_and_files_are_told_apart(cartucho):
    assert files.registry.recognise(cartucho / "ground-truth", "ground_truth").name == "text"
    assert files.registry.recognise(cartucho / "detection-results", "detections").name == "text"
    assert files.registry.recognise(write(cartucho / "a.txt", FOUND), "detections").name == "csv"
    assert files.registry.recognise(write(cartucho / "a.log", FOUND), "detections") is None
    assert files.registry.recognise(write(cartucho / "b.csv", "[1]"), "detections").name == "csv"
