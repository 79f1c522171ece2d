"""The settings of YOLO's data sets: splits, lists, classes, and what is wrong in data.yaml."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from yolo_folders import NAMES, boxes_of, labels, picture, settings_of
from yolo_folders import dataset as dataset

import detmap
from detmap.data.notices import describe
from detmap.errors import InputError, OptionError
from detmap.formats import Reading, registry


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
        registry.FORMATS["yolo"].read_ground_truth(b"0 1 2 3 4", Reading())


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
