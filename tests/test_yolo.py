"""YOLO's labels and predictions: folders as Ultralytics' tools write them, and what is wrong with others."""

from __future__ import annotations

import json
import os
import re
import tarfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from legs import examples
from PIL import Image
from shape_workloads import mask_workload, pose_workload
from support import assert_same_result, same_bits
from test_round_trips import law, through

import detmap
from detmap.cli import main
from detmap.errors import InputError, MissingDependencyError, OptionError
from detmap.formats import files, registry
from detmap.formats._image_sizes import size_of_image
from detmap.formats._outlines import outlines
from detmap.masks import Masks
from detmap.notices import describe

NAMES = "names:\n  0: cat\n  1: dog\n"


def picture(path, width, height, turned=None):
    """A small image; `turned` is EXIF's number for how it is to be turned."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if turned:
        exif[274] = turned
    Image.new("RGB", (width, height)).save(path, **({"exif": exif} if turned else {}))


def labels(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def dataset(tmp_path):
    """A data set as training takes it: data.yaml, images and labels of two splits; one image has no objects."""
    root = tmp_path / "set"
    for name, size in (("a", (200, 100)), ("b", (64, 48)), ("empty", (10, 10))):
        picture(root / f"images/val/{name}.png", *size)
    picture(root / "images/train/c.jpg", 20, 40, turned=6)
    labels(root / "labels/val/a.txt", "0 0.5 0.5 0.25 0.5\n1 0.1 0.2 0.1 0.2\n")
    labels(root / "labels/val/b.txt", "1 0.25 0.25 0.5 0.5\n\n")
    labels(root / "labels/train/c.txt", "0 0.5 0.5 0.5 0.5\n")
    labels(root / "data.yaml", f"path: .\ntrain: images/train\nval: images/val\n{NAMES}")
    return root


def boxes_of(table):
    """Rows of image, category and box."""
    ids = zip(table.images.codes.tolist(), table.categories.codes.tolist(), strict=True)
    names = table.images.values.tolist(), table.categories.values.tolist()
    return [
        (names[0][i], names[1][c], [round(float(v), 6) for v in box])
        for (i, c), box in zip(ids, table.boxes, strict=True)
    ]


def test_a_data_set_is_read_from_its_settings_its_folder_or_its_labels(dataset):
    expected = [("a", 0, [75, 25, 50, 50]), ("a", 1, [10, 10, 20, 20]), ("b", 1, [0, 0, 32, 24])]
    for path in (dataset, dataset / "data.yaml", dataset / "labels/val", dataset / "images/val"):
        more = {"format": "yolo"} if path.parent.name == "images" else {}
        table = detmap.read(path, "ground_truth", **more)
        assert boxes_of(table) == expected, path
        assert table.images.values.tolist() == ["a", "b", "empty"]
        assert table.image_sizes.tolist() == [[100, 200], [48, 64], [10, 10]]
        assert table.images.names == ("a.png", "b.png", "empty.png")
        assert table.category_names == ("cat", "dog")
        assert table.areas.tolist() == pytest.approx([2500, 400, 768])
        assert not table.crowd.any()
    train = detmap.read(dataset, "ground_truth", image_set="train")
    assert train.image_sizes.tolist() == [[20, 40]]  # turned by a quarter, as its EXIF data says
    assert boxes_of(train) == [("c", 0, [10, 5, 20, 10])]


def test_predictions_as_they_are_saved_are_scored_with_no_glue(dataset, capsys):
    """A number explained: of three objects one is hit by the surest detection of its class, one by the second surest."""
    found = dataset.parent / "runs/detect/predict"
    labels(found / "labels/a.txt", "0 0.5 0.5 0.25 0.5 0.9\n1 0.1 0.2 0.1 0.2 0.7\n")
    labels(found / "labels/empty.txt", "1 0.5 0.5 0.2 0.2 0.8\n")
    truth = detmap.read(dataset, "ground_truth")
    for path in (found, found / "labels"):
        table = detmap.read(path, "detections", ground_truth=truth)
        assert table.scores.tolist() == [0.9, 0.7, 0.8]
        assert len(table.notices) == 1
        result = detmap.evaluate(truth, table)
        # cat: 1. dog: precision 1/2 up to recall 1/2, that is at 51 of 101 recalls.
        assert result["AP50"] == (1 + 51 / 101 / 2) / 2
    assert main(["eval", str(dataset), str(found), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["AP50"] == result["AP50"]
    packed = dataset.parent / "labels.tar"
    with tarfile.open(packed, "w") as archive:
        archive.add(found / "labels", "labels")
    again = detmap.read(packed, "detections", ground_truth=truth, format="yolo")
    assert same_bits(again.boxes, table.boxes)


def test_predictions_find_coco_images_by_the_names_of_their_files(tmp_path, capsys):
    truth = {
        "images": [
            {"id": 70, "file_name": "val/one.jpg", "width": 100, "height": 50},
            {"id": 7, "file_name": "000000000012.jpg", "width": 10, "height": 10},
        ],
        "categories": [{"id": 3, "name": "dog"}, {"id": 9, "name": "cat"}],
        "annotations": [
            {"id": 1, "image_id": 70, "category_id": 9, "bbox": [25, 0, 50, 50], "area": 2500, "iscrowd": 0},
            {"id": 2, "image_id": 7, "category_id": 3, "bbox": [0, 0, 5, 5], "area": 25, "iscrowd": 0},
        ],
    }
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    labels(tmp_path / "labels/one.txt", "0 0.5 0.5 0.5 1 0.5\n")
    labels(tmp_path / "labels/000000000012.txt", "1 0.25 0.25 0.5 0.5 0.25\n")
    table = detmap.read(tmp_path / "truth.json", "ground_truth")
    for classes in (["cat", "dog"], tmp_path / "classes.txt", tmp_path / "names.yaml"):
        if not isinstance(classes, list):
            classes.write_text("cat\ndog\n" if classes.suffix == ".txt" else NAMES)
        found = detmap.read(tmp_path / "labels", "detections", ground_truth=table, classes=classes)
        assert boxes_of(found) == [(7, 3, [0, 0, 5, 5]), (70, 9, [25, 0, 50, 50])]
        assert detmap.evaluate(table, found)["AP"] == pytest.approx(1)
    (tmp_path / "classes.txt").unlink()
    by_order = detmap.read(tmp_path / "labels", "detections", ground_truth=table)
    assert by_order.notices["classes_by_order"] == 2
    assert sorted(by_order.categories.values.tolist()) == [3, 9]
    numbers = detmap.GroundTruth.from_arrays(
        image_ids=[12],
        category_ids=[0],
        boxes=[[0, 0, 1, 1]],
        images=[12, 5],
        categories=[0, 1],
        image_sizes=[[10, 10]] * 2,
    )
    only = tmp_path / "one"
    labels(only / "000000000012.txt", "1 0.25 0.25 0.5 0.5 0.25\n")
    assert boxes_of(detmap.read(only, "detections", ground_truth=numbers)) == [(12, 1, [0, 0, 5, 5])]
    with pytest.raises(InputError, match=r"is not the name of an image of the ground truth \(got 'one'\)"):
        detmap.read(tmp_path / "labels", "detections", ground_truth=numbers)
    dropped = detmap.read(tmp_path / "labels", "detections", ground_truth=numbers, unknown_images="ignore")
    assert dropped.notices["unknown_image"] == 1
    words = ["--classes", str(tmp_path / "names.yaml"), "--format", "json"]
    assert main(["eval", str(tmp_path / "truth.json"), str(tmp_path / "labels"), *words]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["AP"] == pytest.approx(1)
    labels(tmp_path / "labels/one.txt", "2 0.5 0.5 0.5 1 0.5\n")
    with pytest.raises(InputError, match="class 2 is beyond the 2 categories"):
        detmap.read(tmp_path / "labels", "detections", ground_truth=table)


def simple_truth(tmp_path, text, **more):
    labels(tmp_path / "set/labels/a.txt", text)
    return detmap.read(tmp_path / "set/labels", "ground_truth", image_sizes={"a.jpg": (100, 200)}, **more)


def simple_found(tmp_path, text, **more):
    labels(tmp_path / "found/a.txt", text)
    given = {"image_sizes": "200x100", **more}
    return detmap.read(tmp_path / "found", "detections", format="yolo", **given)


def test_a_polygon_counts_by_its_extent_or_as_a_mask(tmp_path):
    outline = [0.1, 0.1, 0.5, 0.1, 0.5, 0.6]
    text = "3 " + " ".join(map(str, outline)) + "\n"
    assert boxes_of(simple_truth(tmp_path, text)) == [("a", 3, [20, 10, 80, 50])]
    expected = Masks.from_polygons([[np.array(outline) * np.array([200, 100] * 3)]], (100, 200))
    truth = simple_truth(tmp_path, text, iou_type="segm")
    assert truth.shapes["segm"].masks().to_rle() == expected.to_rle()
    assert truth.areas.tolist() == expected.areas().tolist()
    for iou_type in ("segm", "boundary"):
        found = simple_found(tmp_path, text[:-1] + " 0.5\n", iou_type=iou_type)
        assert found.shapes["segm"].masks().to_rle() == expected.to_rle()
        assert found.scores.tolist() == [0.5]
        assert detmap.evaluate(truth, found, iou_type=iou_type)["AP"] == pytest.approx(1)
    assert simple_truth(tmp_path, "", iou_type="segm").shapes["segm"].masks().to_rle() == []
    oriented = "0 0.5 0.25 0.75 0.5 0.5 0.75 0.25 0.5 0.125\n"
    assert boxes_of(simple_found(tmp_path, oriented)) == [("a", 0, [50, 25, 100, 50])]


def test_poses_have_a_box_and_points(tmp_path):
    box, points = [0.5, 0.5, 0.5, 0.5], [0.25, 0.5, 2, 0.5, 0.25, 0]
    line = " ".join(map(str, [0, *box, *points])) + "\n"
    labels(tmp_path / "set/data.yaml", "kpt_shape: [2, 3]\nnames: [person]\n")
    truth = simple_truth(tmp_path, line, iou_type="keypoints")
    assert truth.shapes["keypoints"].arrays()["values"].tolist() == [50, 50, 2, 100, 25, 0]
    assert truth.shapes["keypoints"].labelled.tolist() == [1]
    assert truth.boxes.tolist() == [[50, 25, 100, 50]]
    assert simple_truth(tmp_path, line).boxes.tolist() == truth.boxes.tolist()
    scored = line[:-1] + " 0.5\n"
    found = simple_found(tmp_path, scored, iou_type="keypoints", classes=tmp_path / "set/data.yaml")
    assert found.shapes["keypoints"].arrays()["values"].tolist() == [50, 50, 2, 100, 25, 0]
    assert found.scores.tolist() == [0.5]
    sigmas = {"sigmas": [0.1, 0.1], "iou_type": "keypoints"}
    assert detmap.evaluate(truth, found, **sigmas)["AP"] == pytest.approx(1)
    labels(tmp_path / "set/data.yaml", "kpt_shape: [3, 2]\nnames: [person]\n")
    flat = simple_truth(tmp_path, "0 0.5 0.5 0.5 0.5 0.1 0.1 0 0.5 -1 0\n", iou_type="keypoints")
    assert flat.shapes["keypoints"].arrays()["values"].tolist() == pytest.approx([20, 10, 2, 0, 50, 2, 0, 0, 0])


def test_without_settings_the_number_of_points_follows_where_it_can(tmp_path):
    seventeen = " ".join(["0.5 0.5 1"] * 17)
    found = simple_found(tmp_path, f"0 0.5 0.5 0.5 0.5 {seventeen} 0.75\n", iou_type="keypoints")
    assert found.shapes["keypoints"].arrays()["values"].size == 51
    with pytest.raises(InputError, match=r"a\.txt: line 1: has 12 numbers: how many keypoints these are is not clear"):
        simple_found(tmp_path, "0 0.5 0.5 0.5 0.5 0.5 0.5 1 0.5 0.5 1 0.75\n", iou_type="keypoints")


def test_numbers_of_tracks_behind_the_score_are_not_read(tmp_path):
    found = simple_found(tmp_path, "0 0.5 0.5 0.25 0.5 0.9 17\n0 0.5 0.5 0.25 0.5 0.8\n")
    assert found.scores.tolist() == [0.9, 0.8]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("0 0.5 0.5 0.25 0.5", "has 5 numbers, of which none is a score.*save_conf=True"),
        ("0 0.5 0.5 0.25", "has 4 numbers; a line is at least"),
        ("0 100 50 50 50 0.9", "must be shares of the image's width and height"),
        ("-1 0.5 0.5 0.25 0.5 0.9", "number of a class must be an integer of 0 or more"),
        ("0.5 0.5 0.5 0.25 0.5 0.9", "number of a class must be an integer of 0 or more"),
        ("1e9 0.5 0.5 0.25 0.5 0.9", "number of a class must be an integer"),
        ("cat 0.5 0.5 0.25 0.5 0.9", "must be a finite number .*cat"),
        ("0 0.5 nan 0.25 0.5 0.9", "must be a finite number .*nan"),
        ("0 0.5 0.5 1_0 0.5 0.9", "must be a finite number .*1_0"),
        ("0 0.5 0.5 0.25 0.5 inf", "must be a finite number .*inf"),
        ("0 0.5 0.5 0.25 0.5 " + "0" * 300, "field of absurd length"),
        ("0 0.1 0.1 0.2 0.2 0.3 0.3 0.4 0.4", "has 9 numbers, of which none is a score"),
        ("0 0.5 0.5 \0 0.5 0.9", "is not a text file"),
    ],
)
def test_a_line_that_is_none_is_named(line, problem, tmp_path):
    others = line if "100" in line else "0 0.5 0.5 0.25 0.5 0.9"
    with pytest.raises(InputError, match=rf"a\.txt: (line [12]: )?.*{problem}"):
        simple_found(tmp_path, f"0 0.5 0.5 0.25 0.5 0.9\n{line}\n{others}\n")


def test_lines_of_another_kind_than_is_scored_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"line 1: is not a polygon.*--iou-type bbox"):
        simple_truth(tmp_path, "0 0.5 0.5 0.5 0.5\n", iou_type="segm")
    with pytest.raises(
        InputError, match=r"neither a box nor a polygon.*is the sixth a score\? Then these are detections"
    ):
        simple_truth(tmp_path, "0 0.5 0.5 0.5 0.5 0.5\n")
    labels(tmp_path / "set/data.yaml", "kpt_shape: [2, 3]\nnames: [person]\n")
    with pytest.raises(InputError, match="line 1: is not a box and keypoints"):
        simple_truth(tmp_path, "0 0.5 0.5 0.5 0.5\n", iou_type="keypoints")
    labels(tmp_path / "set/data.yaml", "names: [person]\n")
    with pytest.raises(InputError, match="the class 1 has no name; there are names of 0 to 0"):
        simple_truth(tmp_path, "1 0.5 0.5 0.5 0.5\n")


def test_sizes_that_nothing_says(tmp_path):
    labels(tmp_path / "labels/a.txt", "0 0.5 0.5 0.5 0.5\n")
    with pytest.raises(InputError, match=r"size of the image is not known.*--image-sizes"):
        detmap.read(tmp_path / "labels", "ground_truth")
    for text in ("image,width,height\na.jpg,200,100\n", "a\t200\t100", '"dir/a.png";200;100\n\n'):
        (tmp_path / "sizes.csv").write_text(text)
        table = detmap.read(tmp_path / "labels", "ground_truth", image_sizes=tmp_path / "sizes.csv")
        assert boxes_of(table) == [("a", 0, [50, 25, 100, 50])]
    for text, problem in (
        ("a,200,100\na,3,4\n", "line 2: 'a' has two sizes"),
        ("a,0,100\n", "must have a width and height of 1 or more"),
        ("a,200\n", "line 1: is not image, width and height"),
        ("a,200,100\nb,2.5,100", "line 2: is not image, width and height"),
    ):
        (tmp_path / "sizes.csv").write_text(text)
        with pytest.raises(InputError, match=problem):
            detmap.read(tmp_path / "labels", "ground_truth", image_sizes=tmp_path / "sizes.csv")
    with pytest.raises(InputError, match=r"must be \(height, width\)"):
        detmap.read(tmp_path / "labels", "ground_truth", image_sizes={"a": 5})
    table = detmap.read(tmp_path / "labels", "ground_truth", image_sizes="200x100")
    without = replace(table, images=replace(table.images, sizes=None))
    labels(tmp_path / "found/a.txt", "0 0.5 0.5 0.5 0.5 1\n")
    with pytest.raises(InputError, match="the ground truth says no sizes"):
        detmap.read(tmp_path / "found", "detections", ground_truth=without)
    with pytest.raises(InputError, match="read the ground truth first"):
        detmap.read(tmp_path / "found", "detections")


def test_images_whose_headers_cannot_be_read(tmp_path):
    labels(tmp_path / "labels/a.txt", "0 0.5 0.5 0.5 0.5\n")
    (tmp_path / "images").mkdir()
    for content in (b"", b"\xff\xd8\xff\xe0", b"GIF89a", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"):
        (tmp_path / "images/a.jpg").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.jpg: the size of the image cannot be read from its header"):
            detmap.read(tmp_path / "labels", "ground_truth")
    picture(tmp_path / "images/a.png", 5, 6)
    with pytest.raises(InputError, match=r"holds two images of one name: 'a\.jpg' and 'a\.png'"):
        detmap.read(tmp_path / "labels", "ground_truth")


@pytest.mark.parametrize("turned", [None, *range(1, 9)])
def test_an_image_is_as_large_as_it_is_shown(turned, tmp_path):
    picture(tmp_path / "a.jpg", 30, 20, turned)
    assert size_of_image(tmp_path / "a.jpg") == ((30, 20) if turned and turned > 4 else (20, 30))


def test_what_is_not_there_and_what_is_left_over(dataset, tmp_path):
    labels(dataset / "labels/val/stray.txt", "0 0.5 0.5 0.5 0.5\n")
    labels(dataset / "labels/val/classes.txt", "cat\n")
    assert detmap.read(dataset, "ground_truth").notices["stray_labels"] == 1
    with pytest.raises(OptionError, match=r"has no split test, only: val, train"):
        detmap.read(dataset, "ground_truth", image_set="test")
    with pytest.raises(InputError, match="holds folders: 'train', 'val'"):
        detmap.read(dataset / "labels", "ground_truth", format="yolo")
    with pytest.raises(InputError, match="no such file"):
        detmap.read(dataset / "other.yaml", "ground_truth")
    (dataset / "data.yaml").write_text(f"val: nowhere\n{NAMES}")
    with pytest.raises(InputError, match=r"field 'val': is not there \(got 'nowhere'\)"):
        detmap.read(dataset, "ground_truth")
    with pytest.raises(InputError, match="a stream does not say where the images are"):
        registry.FORMATS["yolo"].read_ground_truth(b"0 1 2 3 4", registry.Reading())


def test_splits_are_lists_and_lists_of_folders_too(dataset):
    expected = boxes_of(detmap.read(dataset, "ground_truth"))
    (dataset / "val.txt").write_text("./images/val/a.png\n./images/val/b.png\n\nimages/val/empty.png\n")
    for val in ("val.txt", "[images/val]", "[val.txt]", "../images/val"):  # the last as some exporters write it
        (dataset / "data.yaml").write_text(f"val: {val}\n{NAMES}")
        assert boxes_of(detmap.read(dataset, "ground_truth")) == expected, val
    (dataset / "data.yaml").write_text(f"val: [images/val, images/train]\n{NAMES}")
    assert len(detmap.read(dataset, "ground_truth")) == 4
    (dataset / "data.yaml").write_text(f"val: [images/val, val.txt]\n{NAMES}")
    with pytest.raises(InputError, match="is the name of two images"):
        detmap.read(dataset, "ground_truth")
    (dataset / "data.yaml").write_text(f"val: val.txt\n{NAMES}")
    (dataset / "val.txt").write_text("/etc/passwd\n")
    with pytest.raises(InputError, match=r"val\.txt: line 1: is not the path of an image"):
        detmap.read(dataset, "ground_truth")


def test_folders_outside_of_that_of_the_settings_are_said(dataset, tmp_path):
    for place in (dataset, os.path.relpath(dataset, tmp_path / "elsewhere")):
        labels(tmp_path / "elsewhere/data.yaml", f"path: {place}\nval: images/val\n{NAMES}")
        table = detmap.read(tmp_path / "elsewhere", "ground_truth")
        [code] = [code for code in table.notices if code.startswith("outside_paths:")]
        assert code.endswith("set/images/val")
        assert "data.yaml names lie outside of its own" in " ".join(describe(table.notices))
    (dataset / "linked").mkdir()
    os.symlink(dataset / "images", tmp_path / "elsewhere/images")
    os.symlink(dataset / "labels", tmp_path / "elsewhere/labels")
    labels(tmp_path / "elsewhere/data.yaml", f"val: images/val\n{NAMES}")
    assert any(code.startswith("outside") for code in detmap.read(tmp_path / "elsewhere", "ground_truth").notices)


def settings_of(dataset, text):
    """Write data.yaml, and return its path."""
    (dataset / "data.yaml").write_text(text)
    return dataset / "data.yaml"


def test_a_split_that_is_not_val_is_said(dataset):
    for text, split in (
        ("train: images/train\nval:\n", "train"),
        ("train: images/train\ntest: images/val\nval: []\n", "test"),
    ):
        table = detmap.read(settings_of(dataset, text + NAMES), "ground_truth")
        assert f"data.yaml has no split val: its split {split} is read" in " ".join(describe(table.notices))
    table = detmap.read(settings_of(dataset, f"train: images/train\n{NAMES}"), "ground_truth", image_set="train")
    assert not describe(table.notices)


def test_the_number_of_classes_agrees_with_their_names(dataset):
    """nc alone counts classes that have no objects too; beside names it must be their number, as training has it."""
    val = "val: images/val\n"
    assert len(detmap.read(settings_of(dataset, f"nc: 2\n{val}{NAMES}"), "ground_truth").category_names) == 2
    assert detmap.read(settings_of(dataset, f"nc: 5\n{val}"), "ground_truth").categories.values.tolist() == [
        0,
        1,
        2,
        3,
        4,
    ]
    with pytest.raises(InputError, match=r"field 'nc': is not the number of names, of which there are 2 \(got 80\)"):
        detmap.read(settings_of(dataset, f"nc: 80\n{val}{NAMES}"), "ground_truth")
    with pytest.raises(InputError, match=r"a\.txt: line 2: the class 1 is not below nc of data\.yaml, 1"):
        detmap.read(settings_of(dataset, f"nc: 1\n{val}"), "ground_truth")


def test_keys_and_settings_that_are_there_twice_are_refused(dataset):
    """YAML itself would take the last of them without a word."""
    val = "val: images/val\n"
    with pytest.raises(InputError, match=r"line 5, field 'names': is there twice"):
        detmap.read(settings_of(dataset, f"{val}{NAMES}names: [x, y]\n"), "ground_truth")
    with pytest.raises(InputError, match=r"line 3, field '0': is there twice"):
        detmap.read(settings_of(dataset, "names:\n  0: cat\n  0: dog\n" + val), "ground_truth")
    settings_of(dataset, val + NAMES)
    labels(dataset / "dataset.yaml", f"{val}names: [x, y]\n")
    with pytest.raises(InputError, match=r"holds data\.yaml and dataset\.yaml"):
        detmap.read(dataset, "ground_truth")
    assert detmap.read(dataset / "dataset.yaml", "ground_truth").category_names == ("x", "y")


def test_folders_within_a_folder_of_images_are_not_lost(dataset):
    """Training would read them; hidden ones, as of notebooks, are no images of anybody's."""
    picture(dataset / "images/val/.ipynb_checkpoints/a.png", 5, 5)
    assert len(detmap.read(dataset, "ground_truth").image_sizes) == 3
    picture(dataset / "images/val/more/deep/d.png", 5, 5)
    with pytest.raises(InputError, match=r"images/val: holds files, and folders of files too: 'more/deep'"):
        detmap.read(dataset, "ground_truth")
    labels(dataset / "labels/test/a.txt", "0 0.5 0.5 0.5 0.5\n")
    labels(dataset / "labels/test/more/b.txt", "0 0.5 0.5 0.5 0.5\n")
    with pytest.raises(InputError, match="holds files, and folders of files too: 'more'"):
        detmap.read(dataset / "labels/test", "ground_truth", image_sizes="10x10")


def test_lists_of_images_are_read_from_their_folder_or_that_of_the_settings(dataset):
    """A list may be given itself; one of which nothing is there, as of another machine, is no list of empty images."""
    expected = boxes_of(detmap.read(dataset, "ground_truth"))
    labels(dataset / "splits/val.txt", "images/val/a.png\nimages/val/b.png\nimages/val/empty.png\n")
    assert boxes_of(detmap.read(settings_of(dataset, f"val: splits/val.txt\n{NAMES}"), "ground_truth")) == expected
    labels(dataset / "val.txt", "./images/val/a.png\n./images/val/b.png\n./images/val/empty.png\n")
    assert boxes_of(detmap.read(dataset / "val.txt", "ground_truth")) == expected
    labels(dataset / "splits/val.txt", "/content/set/images/val/a.png\n/content/set/images/val/b.png\n")
    with pytest.raises(
        InputError, match=r"val\.txt: none of the 2 images that it lists is there, and none of their labels"
    ):
        detmap.read(dataset, "ground_truth", image_sizes="64x48")


def poses(rng, count, width, lines, scored=False):
    """Lines of a box and keypoints within it."""
    out = []
    for _ in range(lines):
        x, y, w, h = rng.uniform(0.3, 0.7), rng.uniform(0.3, 0.7), rng.uniform(0.1, 0.5), rng.uniform(0.1, 0.5)
        points = np.c_[
            rng.uniform(x - w / 2, x + w / 2, count), rng.uniform(y - h / 2, y + h / 2, count), np.full(count, 2)
        ]
        words = ["0", *map(repr, map(float, (x, y, w, h, *points[:, :width].ravel())))]
        out.append(" ".join([*words, "0.5"] if scored else words) + "\n")
    return "".join(out)


@pytest.mark.parametrize(("count", "width"), [(4, 3), (6, 3), (17, 2), (5, 2)])
def test_poses_are_not_taken_for_polygons(count, width, tmp_path):
    """Without kpt_shape their number of numbers may be a polygon's: which it is has to be said."""
    rng = np.random.default_rng(count)
    problem = (
        rf"line 1: can be a polygon of {(4 + count * width) // 2} points, or a box and {count} keypoints of {width}"
    )
    labels(tmp_path / "labels/a.txt", poses(rng, count, width, 12))
    labels(tmp_path / "runs/labels/a.txt", poses(rng, count, width, 12, scored=True))
    with pytest.raises(InputError, match=problem):
        detmap.read(tmp_path / "labels", "ground_truth", image_sizes="100x100")
    with pytest.raises(InputError, match=problem):
        detmap.read(tmp_path / "runs", "detections", image_sizes="100x100")
    for shape, numbers in ((f"kpt_shape: [{count}, {width}]\n", 1), ("", 0)):
        labels(tmp_path / "said.yaml", shape + NAMES)
        table = detmap.read(tmp_path / "runs", "detections", image_sizes="100x100", classes=tmp_path / "said.yaml")
        assert len(table) == 12
        given = [line.split()[3:5] for line in (tmp_path / "runs/labels/a.txt").read_text().splitlines()]
        fits = np.abs(table.boxes[:, 2:] - 100 * np.array(given, float))
        assert (fits.max() < 1e-9) == bool(numbers)


@pytest.mark.parametrize("corners", [4, 7])
def test_polygons_are_not_taken_for_poses(corners, tmp_path):
    """Outlines of objects anywhere, all of one number of points, are read with no question."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        lines = []
        for _ in range(int(rng.integers(3, 12))):
            angle = np.sort(rng.uniform(0, 2 * np.pi, corners))
            middle, radius = rng.uniform(0.3, 0.7, 2), rng.uniform(0.02, 0.28, 2)
            points = middle + radius * np.c_[np.cos(angle), np.sin(angle)]
            lines.append("0 " + " ".join(map(repr, points.ravel().tolist())) + "\n")
        labels(tmp_path / "labels/a.txt", "".join(lines))
        assert len(detmap.read(tmp_path / "labels", "ground_truth", image_sizes="100x100")) == len(lines)


def test_scores_ahead_of_boxes_are_seen_in_small_boxes_too(tmp_path):
    """class score x y w h is no line of YOLO's: read as such, some boxes leave their images, which they would not."""
    rng = np.random.default_rng(0)
    rows = [[rng.uniform(0.2, 0.95), *rng.uniform(0.1, 0.9, 2), *rng.uniform(0.02, 0.1, 2)] for _ in range(60)]
    rows = np.array(rows).tolist()
    labels(tmp_path / "ahead/labels/a.txt", "".join(f"0 {' '.join(map(repr, row))}\n" for row in rows))
    found = detmap.read(tmp_path / "ahead", "detections", image_sizes="64x48")
    (said,) = describe(found.notices)
    assert re.match(r"\d+ boxes leave their images, and far fewer would if the score came before the box", said)
    labels(tmp_path / "behind/labels/a.txt", "".join(f"0 {' '.join(map(repr, (*row[1:], row[0])))}\n" for row in rows))
    found = detmap.read(tmp_path / "behind", "detections", image_sizes="64x48")
    assert len(found) == 60
    assert describe(found.notices) == []


def test_a_folder_of_splits_without_settings_names_them(dataset):
    (dataset / "data.yaml").unlink()
    with pytest.raises(InputError, match=r"holds folders: 'train', 'val'; give the one that is meant"):
        detmap.read(dataset, "ground_truth")


LETTERS = "abcdefghijklmnopqr"
BOMB = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise(LETTERS))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a mapping was expected"),
        ("[1, 2]", "a mapping was expected"),
        ("names: [cat", "is not valid YAML"),
        ("a: &a [*a]\n", "is not valid YAML|has no split"),
        ("x: !!python/object/apply:os.system ['true']\nnames: 5", "field 'names'"),
        ("names: {a: cat}", "field 'names': must be a list of names"),
        ("names: [[a]]", "field 'names'"),
        ("names: [a]\nkpt_shape: 17", "field 'kpt_shape'"),
        ("names: [a]\nkpt_shape: [17, 4]", "field 'kpt_shape'"),
        ("names: [a]\nkpt_shape: [99999999, 3]", "field 'kpt_shape'"),
        ("names: [a]\nval: {a: b}", "field 'val'"),
        ("names: [a]\npath: [b]", "field 'path'"),
        ("names: [a]\nnc: two", "field 'nc': must be the number of classes"),
        ("names: [a]\nnc: " + "9" * 5000, "field 'nc': must be the number of classes"),
        ("names: [a]\n", "has no split val, only: none"),
        (BOMB + "names: *r\n", "field 'names'"),
        (BOMB + "<<: [*r, *r, *r]\nnames: [a]\n", "has no split"),
        ("[" * 1500, "is not valid YAML"),
        ("# " + "x" * (1 << 20), "is larger than 1 MiB"),
        ("\x01: 3", "is not valid YAML"),
    ],
)
def test_settings_that_are_none(text, problem, tmp_path):
    """Nothing in them is run or expanded, and each is refused in one line."""
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises((InputError, OptionError), match=problem) as caught:
        detmap.read(tmp_path / "data.yaml", "ground_truth")
    assert str(caught.value).isprintable()


def test_packages_that_are_missing_are_named(dataset, monkeypatch):
    for name, package in (("PIL", "pillow"), ("yaml", "pyyaml")):
        monkeypatch.setitem(__import__("sys").modules, name, None)
        with pytest.raises(MissingDependencyError, match=rf"needs {package}: pip install 'detmap\[yolo\]'"):
            detmap.read(dataset, "ground_truth")


# --------------------------------------------------------------------------------------------------------------- writing


def test_labels_hold_boxes_but_for_their_last_digits(tmp_path_factory):
    """Shares times sizes are the boxes again, to a few units in the last place of the image's size."""

    @law(files=True, sizes=True)
    def holds(world):
        truth, found = world
        folder = tmp_path_factory.mktemp("yolo")
        again, lost = through(truth, folder / "set", format="yolo")
        if len(truth):
            far = np.abs(again.boxes - truth.boxes[np.argsort(order_of(truth, again), kind="stable")])
            assert far.max() <= 1e-12 * max(truth.boxes.max(), truth.image_sizes.max())
        assert lost.get("crowd", 0) == truth.crowd.sum()
        assert lost.get("difficult", 0) == truth.difficult.sum()
        assert again.category_names == truth.category_names
        assert sorted(again.image_sizes.tolist()) == sorted(truth.image_sizes.tolist())
        if not len(found):
            return
        detmap.write(found, folder / "found", format="yolo", ground_truth=truth)
        results = detmap.read(folder / "found", "detections", ground_truth=again)
        assert sorted(results.scores.tolist()) == sorted(found.scores.tolist())

    holds()


def order_of(truth, again):
    """For each object the place of its image in the second table, whose ids are the names of files."""
    place = {name: i for i, name in enumerate(again.images.values.tolist())}
    return np.array([place[str(truth.images.values[code])] for code in truth.images.codes])


def test_boxes_that_divide_evenly_keep_every_bit(tmp_path):
    """Sizes that are powers of two: nothing is rounded, and results are the same."""
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 5, 60)
    boxes = np.concatenate([rng.integers(0, 300, (60, 2)), rng.integers(1, 200, (60, 2))], axis=1)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=np.array([f"i{i}" for i in ids[:30]]),
        category_ids=rng.integers(0, 2, 30),
        boxes=boxes[:30],
        images=[f"i{i}" for i in range(5)],
        categories=[0, 1],
        category_names={0: "no", 1: 'a "dog": {x}'},
        image_sizes=[[512, 1024]] * 5,
    )
    found = detmap.Detections.from_arrays(
        image_ids=np.array([f"i{i}" for i in ids]),
        category_ids=rng.integers(0, 2, 60),
        boxes=boxes,
        scores=rng.random(60),
    )
    again, lost = through(truth, tmp_path / "set", format="yolo")
    assert lost == {}
    assert again.category_names == truth.category_names
    assert detmap.write(found, tmp_path / "found", format="yolo", ground_truth=truth) == {}
    results = detmap.read(tmp_path / "found", "detections", ground_truth=again)
    order = np.argsort(found.images.codes, kind="stable")
    assert same_bits(results.boxes, found.boxes[order])
    assert same_bits(results.scores, found.scores[order])
    assert_same_result(detmap.evaluate(again, results), detmap.evaluate(truth, found))


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), side=st.integers(1, 12), share=st.sampled_from([0.1, 0.5, 0.9]))
def test_an_outline_is_drawn_as_the_same_mask_again(seed, side, share):
    """Also with holes, in parts, and where pixels touch at a corner."""
    rng = np.random.default_rng(seed)
    pixels = rng.random((3, side, side + 3)) < share
    pixels = pixels[pixels.any(axis=(1, 2))]
    if not len(pixels):
        return
    masks = Masks.from_bitmaps(pixels)
    drawn = Masks.from_polygons([[one] for one in outlines(masks)], (side, side + 3))
    assert np.array_equal(drawn.to_bitmaps(), pixels)


@pytest.mark.parametrize(("kind", "make"), [("segm", mask_workload), ("keypoints", pose_workload)])
def test_masks_and_poses_score_the_same_when_they_were_written(kind, make, tmp_path):
    dataset, results = make(4)[:2]
    for image in dataset["images"]:
        image.update({"height": image.get("height", 512), "width": image.get("width", 512)})
    truth = detmap.read_coco(dataset, iou_type=kind)
    truth = replace(truth, crowd=detmap.kernels.readonly(np.zeros(len(truth)), np.bool_))
    found = detmap.read_coco_results(results, truth, iou_type=kind)
    keep = found.shapes[kind].areas() > 0
    found = found.take(keep) if kind == "segm" else found
    again, lost = through(truth, tmp_path / "set", format="yolo", iou_type=kind)
    assert "masks" not in lost
    assert "shapes" not in lost
    more = detmap.write(found, tmp_path / "found", format="yolo", ground_truth=truth)
    assert "masks" not in more
    settings_of = tmp_path / "set/data.yaml"
    back = detmap.read(tmp_path / "found", "detections", ground_truth=again, iou_type=kind, classes=settings_of)
    assert sorted(back.scores.tolist()) == sorted(found.scores.tolist())
    if kind == "segm":
        in_order = found.take(np.argsort(found.images.codes, kind="stable"))
        codes = [table.shapes["segm"].masks().to_rle() for table in (in_order, back)]
        assert codes[0] == codes[1]


def test_what_yolo_cannot_hold_is_counted_or_refused(tmp_path):
    given = {"image_ids": ["a"], "category_ids": [4], "boxes": [[0, 0, 8, 8]]}
    truth = detmap.GroundTruth.from_arrays(**given, areas=[5], crowd=[True], image_sizes=[[16, 16]], images=["a"])
    lost = detmap.write(truth, tmp_path / "set", format="yolo")
    assert lost == {"crowd": 1, "areas": 1, "category_ids": 1}
    assert any("are crowds" in text for text in registry.describe_lost(lost))
    found = detmap.Detections.from_arrays(**given, scores=[1])
    with pytest.raises(InputError, match=r"give the ground truth \(ground_truth=\.\.\., --ground-truth\)"):
        detmap.write(found, tmp_path / "found", format="yolo")
    with pytest.raises(InputError, match="size of the image is not known"):
        detmap.write(replace(truth, images=replace(truth.images, sizes=None)), tmp_path / "other", format="yolo")
    other = detmap.Detections.from_arrays(**{**given, "category_ids": [5]}, scores=[1])
    with pytest.raises(InputError, match="is not a category of the ground truth"):
        detmap.write(other, tmp_path / "found", format="yolo", ground_truth=truth)
    named = replace(truth, categories=replace(truth.categories, names=("a\x07b",)))
    with pytest.raises(InputError, match=r"cannot be written as a name in data\.yaml"):
        detmap.write(named, tmp_path / "other", format="yolo")
    assert not (tmp_path / "other").exists()


# -------------------------------------------------------------------------------------------------------------- sniffing


def test_folders_of_text_are_told_apart(tmp_path):
    voc, yolo, other = (tmp_path / name for name in ("voc", "yolo", "other"))
    labels(voc / "comp4_det_test_dog.txt", "000001 0.5 48 240 195 371\n")
    labels(yolo / "a.txt", "0 0.5 0.5 0.5 0.5 0.9\n")
    labels(other / "a.txt", "something else\n")
    assert files.registry.recognise(voc, "detections").name == "voc"
    assert files.registry.recognise(yolo, "detections").name == "yolo"
    assert files.registry.recognise(other, "detections") is None
    labels(voc / "a.xml", "<annotation/>")
    labels(voc / "data.yaml", NAMES)
    with pytest.raises(InputError, match=r"can be read as voc or yolo; say which: format=\.\.\. \(--gt-format\)"):
        detmap.read(voc, "ground_truth")
    assert len(detmap.read(voc, "ground_truth", format="voc")) == 0


def test_batch_scores_folders_of_predictions_and_sees_when_they_change(dataset, tmp_path, capsys):
    """Also where they lie in a folder called labels: a result is not taken for that of other files."""
    found = tmp_path / "runs/predict"
    labels(found / "labels/a.txt", "0 0.5 0.5 0.25 0.5 0.9\n")
    words = ["batch", str(dataset), str(found), "--out", str(tmp_path / "out"), "--resume", "--format", "json"]
    values = []
    for text in (None, "0 0.5 0.5 0.25 0.5 0.9\n1 0.1 0.2 0.1 0.2 0.7\n"):
        if text:
            labels(found / "labels/a.txt", text)
        assert main(words) == 0
        values.append(json.loads(capsys.readouterr().out)["models"][0]["metrics"]["AP50"])
    assert values[0] < values[1]
    fingerprints = [files.fingerprint(path) for path in (found, found / "labels")]
    assert fingerprints[0] == fingerprints[1]


def test_convert_reads_standard_input(dataset, tmp_path):
    from detmap.formats._open import Held

    truth = detmap.read(dataset, "ground_truth")
    detmap.write(truth, tmp_path / "truth.json")
    data = (tmp_path / "truth.json").read_bytes()
    assert files.registry.recognise(Held.of(data, "standard input"), "ground_truth").name == "coco"
    again = detmap.read(Held.of(data, "standard input"), "ground_truth")
    assert boxes_of(again) == boxes_of(truth)
