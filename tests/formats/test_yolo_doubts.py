"""YOLO's files that can be meant in two ways: valid ones are read, and what is to be said of the others decides."""

from __future__ import annotations

import pytest

import detmap
from detmap.errors import InputError
from detmap.formats.yolo import folders
from detmap.formats.yolo.folders import beside_results

BOX = "0 0.5 0.5 0.2 0.3"

#: A box and four keypoints, which can be an outline of eight points as well.
POSE = f"{BOX} 0.42 0.37 2 0.58 0.37 2 0.58 0.63 2 0.42 0.63 2\n"


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("alias", ["names: *a", "names: {0: cat, names: *a}", "more: *a\nnames: *a"])
def test_settings_that_hold_themselves_are_refused(alias, tmp_path):
    """An alias may stand for the mapping that it is in."""
    put(tmp_path / "labels/a.txt", BOX + "\n")
    with pytest.raises(InputError, match=r"data\.yaml: is not valid YAML"):
        detmap.read(put(tmp_path / "data.yaml", f"&a\n{alias}\n"), "ground_truth", image_sizes="10x10")


@pytest.mark.parametrize("sticking", [2, 10])
def test_boxes_beyond_their_images_are_read_in_the_order_that_is_documented(sticking, tmp_path):
    """A detector that does not clip its boxes writes such files; that the order is doubtful is said."""
    lines = ["0 0.05 0.5 0.2 0.3 0.05\n"] * sticking + [f"{BOX} 0.3\n"] * (10 - sticking)
    put(tmp_path / "labels/a.txt", "".join(lines))
    found = detmap.read(tmp_path, "detections", image_sizes="100x100")
    assert found.scores.tolist() == [0.05] * sticking + [0.3] * (10 - sticking)
    assert found.boxes[0].tolist() == pytest.approx([-5, 35, 20, 30])
    assert {code: n for code, n in found.notices.items() if n} == {"score_before_box": sticking}


def test_what_a_given_file_says_of_keypoints_holds_for_both_sides(tmp_path):
    """The message about lines that can be two things names this remedy."""
    put(tmp_path / "set/labels/a.txt", POSE * 4)
    put(tmp_path / "runs/labels/a.txt", POSE.replace("\n", " 0.5\n") * 4)
    poses = put(tmp_path / "said/poses.yaml", "kpt_shape: [4, 3]\nnames: [person]\n")
    outlines = put(tmp_path / "said/outlines.yaml", "names: [person]\n")
    for role, folder in (("ground_truth", "set/labels"), ("detections", "runs")):
        with pytest.raises(InputError, match="can be a polygon of 8 points, or a box and 4 keypoints of 3"):
            detmap.read(tmp_path / folder, role, image_sizes="100x100")
        more = {"image_sizes": "100x100"}
        found = detmap.read(tmp_path / folder, role, classes=poses, **more)
        assert found.boxes[0].tolist() == pytest.approx([40, 35, 20, 30])
        found = detmap.read(tmp_path / folder, role, classes=poses, iou_type="keypoints", **more)
        assert found.shapes["keypoints"].arrays()["values"].size == 4 * 4 * 3
        found = detmap.read(tmp_path / folder, role, classes=outlines, **more)
        assert found.boxes[0].tolist() != pytest.approx([40, 35, 20, 30])


def test_a_given_file_of_names_leaves_the_data_sets_keypoints(tmp_path):
    put(tmp_path / "set/labels/a.txt", POSE * 4)
    put(tmp_path / "set/data.yaml", "kpt_shape: [4, 3]\nnames: [person]\nval: labels\n")
    names = put(tmp_path / "names.yaml", "names: [human]\n")
    for source in ("set", "set/labels"):
        truth = detmap.read(tmp_path / source, "ground_truth", image_sizes="100x100", classes=names)
        assert truth.boxes[0].tolist() == pytest.approx([40, 35, 20, 30])
        assert truth.category_names == ("human",)


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_a_polygon_in_a_corner_is_no_pose(count, tmp_path):
    """Its zeros, taken for what is said of keypoints, would mean that none of them is seen."""
    put(tmp_path / "labels/a.txt", "0 .3 0 .3 .2 .2 .3 0 .3 0 0\n" * count)
    assert len(detmap.read(tmp_path / "labels", "ground_truth", image_sizes="100x100")) == count


def test_two_files_of_settings_are_refused_near_labels_too(tmp_path):
    """Which one is meant is said by its path: as ground truth, or of predictions as classes."""
    put(tmp_path / "data.yaml", "names: [a]\nval: labels\n")
    other = put(tmp_path / "dataset.yaml", "names: [b]\nval: labels\n")
    put(tmp_path / "labels/a.txt", BOX + "\n")
    put(tmp_path / "runs/labels/a.txt", f"{BOX} 0.5\n")
    sizes = {"image_sizes": "10x10"}
    for source, role in (("", "ground_truth"), ("labels", "ground_truth"), ("runs", "detections")):
        with pytest.raises(InputError, match=r"holds data\.yaml and dataset\.yaml.*give the path.*--classes"):
            detmap.read(tmp_path / source, role, **sizes)
    assert detmap.read(other, "ground_truth", **sizes).category_names == ("b",)
    assert detmap.read(tmp_path / "labels", "ground_truth", classes=other, **sizes).category_names == ("b",)
    assert len(detmap.read(tmp_path / "runs", "detections", classes=other, **sizes)) == 1
    assert beside_results(tmp_path / "runs") == []
    other.unlink()
    assert folders.settings_near(str(tmp_path / "labels")) == str(tmp_path / "data.yaml")
