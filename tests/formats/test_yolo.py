"""YOLO's labels and predictions: folders as Ultralytics' tools write them, and what is wrong with others."""

from __future__ import annotations

import json
import re
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from support import same_bits
from yolo_folders import NAMES, boxes_of, labels, picture
from yolo_folders import dataset as dataset

import detmap
from detmap.cli import main
from detmap.data.notices import describe
from detmap.errors import InputError, MissingDependencyError
from detmap.formats import registry
from detmap.formats.image_sizes import size_of_image
from detmap.formats.inputs import Input
from detmap.installation import install_command
from detmap.masks import Masks


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


def test_packages_that_are_missing_are_named(dataset, monkeypatch):
    for name, package in (("PIL", "pillow"), ("yaml", "pyyaml")):
        monkeypatch.setitem(__import__("sys").modules, name, None)
        with pytest.raises(MissingDependencyError, match=rf"needs {package}: {re.escape(install_command('yolo'))}"):
            detmap.read(dataset, "ground_truth")


def test_folders_of_text_are_told_apart(tmp_path):
    voc, yolo, other = (tmp_path / name for name in ("voc", "yolo", "other"))
    labels(voc / "comp4_det_test_dog.txt", "000001 0.5 48 240 195 371\n")
    labels(yolo / "a.txt", "0 0.5 0.5 0.5 0.5 0.9\n")
    labels(other / "a.txt", "something else\n")
    assert registry.recognise(voc, "detections").name == "voc"
    assert registry.recognise(yolo, "detections").name == "yolo"
    assert registry.recognise(other, "detections") is None
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
    fingerprints = [Input(path, "detections").fingerprint() for path in (found, found / "labels")]
    assert fingerprints[0] == fingerprints[1]


def test_convert_reads_standard_input(dataset, tmp_path):
    from detmap.reading.opening import Held

    truth = detmap.read(dataset, "ground_truth")
    detmap.write(truth, tmp_path / "truth.json")
    data = (tmp_path / "truth.json").read_bytes()
    assert registry.recognise(Held.of(data, "standard input"), "ground_truth").name == "coco"
    again = detmap.read(Held.of(data, "standard input"), "ground_truth")
    assert boxes_of(again) == boxes_of(truth)
