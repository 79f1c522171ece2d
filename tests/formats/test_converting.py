"""detmap convert: any format into any other, what is lost is said, and nothing that is read is written over."""

from __future__ import annotations

import json
import os
from itertools import product

import numpy as np
import pytest
from shape_workloads import mask_workload, pose_workload
from support import assert_same_result, same_bits

import detmap
from detmap.cli import main
from detmap.errors import InputError, OptionError
from detmap.formats import FORMATS, LOST, files

BOXES = ("coco", "voc", "yolo", "csv", "text", "parquet", "feather", "dota", "kitti")
ENDING = {"coco": ".json", "csv": ".csv", "parquet": ".parquet", "feather": ".feather"}


@pytest.fixture(scope="module")
def world():
    """A data set that every format can hold: integers in images whose sides are powers of two, names for ids."""
    rng = np.random.default_rng(11)
    images = [f"img{i}" for i in range(6)]
    names = ["cat", "dog", "hen"]

    def columns(count):
        boxes = np.concatenate([rng.integers(0, 300, (count, 2)), rng.integers(1, 200, (count, 2))], axis=1)
        return {
            "image_ids": [images[i] for i in np.sort(rng.integers(0, 6, count))],
            "category_ids": [names[i] for i in rng.integers(0, 3, count)],
            "boxes": boxes,
        }

    given = columns(40)
    truth = detmap.GroundTruth.from_arrays(**given, images=images, categories=names, image_sizes=[[512, 1024]] * 6)
    near = {**given, "boxes": given["boxes"] + rng.integers(0, 4, (40, 4))}
    found = detmap.Detections.from_arrays(
        **{key: [*near[key], *more] for (key, more) in columns(60).items()}, scores=np.round(rng.random(100), 2)
    )
    return truth, found


def write_both(world, folder, format):
    truth, found = world
    paths = [folder / f"{format}-{what}{ENDING.get(format, '')}" for what in ("truth", "found")]
    detmap.write(truth, paths[0], format=format)
    detmap.write(found, paths[1], format=format, ground_truth=truth)
    return paths


@pytest.mark.parametrize("format", BOXES)
def test_the_same_detections_give_the_same_bits_in_every_format(format, world, tmp_path):
    """On either side, through the command line's own reading."""
    expected = detmap.evaluate(*world)
    assert 0.1 < expected["AP"] < 0.9
    paths = write_both(world, tmp_path, format)
    truth = detmap.read(paths[0], "ground_truth")
    found = detmap.read(paths[1], "detections", ground_truth=truth)
    result = detmap.evaluate(truth, found)
    assert_same_result(result, expected)


@pytest.mark.parametrize(("first", "second"), list(product(BOXES, BOXES)))
def test_every_format_into_every_other(first, second, world, tmp_path):
    """Ground truth and detections are told apart by their content, and arrive with every bit of their boxes and scores."""
    paths = write_both(world, tmp_path, first)
    more = {"image_sizes": "1024x512"} if first in ("voc", "text", "dota", "kitti") and second == "yolo" else {}
    targets = [tmp_path / f"out-{what}{ENDING.get(second, '')}" for what in ("truth", "found")]
    made = detmap.convert(paths[0], targets[0], to=second, **more)
    assert (made.role, made.format, made.written, made.images) == ("ground_truth", second, 40, 6)
    assert set(made.lost) <= {
        "category_ids",
        "image_sizes",
        "areas",
        "corners",
        "category_names",
        "image_names",
        "sizes",
        "shapes",
    }
    assert set(made.lost) <= set(LOST)
    dets = detmap.convert(paths[1], targets[1], to=second, ground_truth=paths[0] if not more else world[0])
    assert (dets.role, dets.written) == ("detections", 100)
    truth = detmap.read(targets[0], "ground_truth")
    found = detmap.read(targets[1], "detections", ground_truth=truth)
    for table, expected in ((truth, world[0]), (found, world[1])):
        boxes = table.boxes if table.box_sizes else np.c_[table.boxes[:, :2], table.boxes[:, 2:] - table.boxes[:, :2]]
        assert sorted(boxes.tolist()) == sorted(expected.boxes.tolist())
    assert sorted(found.scores.tolist()) == sorted(world[1].scores.tolist())
    assert detmap.evaluate(truth, found)["AP50"] == detmap.evaluate(*world)["AP50"]


@pytest.mark.parametrize(("kind", "make"), [("segm", mask_workload), ("keypoints", pose_workload)])
def test_shapes_that_every_record_has_come_along(kind, make, tmp_path):
    dataset, results = make(7)[:2]
    paths = [tmp_path / "truth.json", tmp_path / "found.jsonl"]
    paths[0].write_text(json.dumps(dataset))
    paths[1].write_text("".join(json.dumps(one) + "\n" for one in results))
    expected = detmap.read(paths[0], "ground_truth", iou_type=kind)
    assert detmap.convert(paths[0], tmp_path / "again.json").lost == {}
    again = detmap.read(tmp_path / "again.json", "ground_truth", iou_type=kind)
    for name, array in expected.shapes[kind].arrays().items():
        assert np.array_equal(again.shapes[kind].arrays()[name], array)
    made = detmap.convert(paths[1], tmp_path / "found.json", ground_truth=paths[0])
    assert (made.role, made.lost) == ("detections", {})
    found = detmap.read(paths[1], "detections", ground_truth=expected, iou_type=kind)
    more = detmap.read(tmp_path / "found.json", "detections", ground_truth=again, iou_type=kind)
    assert_same_result(detmap.evaluate(expected, found, iou_type=kind), detmap.evaluate(again, more, iou_type=kind))
    lost = detmap.convert(paths[0], tmp_path / "boxes.csv").lost
    assert lost["shapes"] == len(dataset["annotations"])
    assert detmap.convert(paths[0], tmp_path / "other.json", iou_type="bbox").lost["shapes"] == len(expected)


def test_masks_and_poses_of_one_document_come_along_together(tmp_path):
    masks, poses = mask_workload(2)[0], pose_workload(2)[0]
    shared = masks["annotations"][0]
    records = [{**shared, "id": i, "keypoints": one["keypoints"]} for i, one in enumerate(poses["annotations"], 1)]
    document = {**masks, "annotations": records}
    (tmp_path / "both.json").write_text(json.dumps(document))
    assert detmap.convert(tmp_path / "both.json", tmp_path / "again.json").lost == {}
    for kind in ("bbox", "segm", "keypoints"):
        tables = [detmap.read(tmp_path / name, "ground_truth", iou_type=kind) for name in ("both.json", "again.json")]
        for name, column in tables[0].shapes.items():
            for key, array in column.arrays().items():
                assert np.array_equal(tables[1].shapes[name].arrays()[key], array)
    some = {**document, "annotations": [{**records[0]}, {k: v for k, v in records[1].items() if k != "keypoints"}]}
    (tmp_path / "some.json").write_text(json.dumps(some))
    assert detmap.convert(tmp_path / "some.json", tmp_path / "few.json").lost == {"shapes": 1}


def test_an_input_is_never_written_over(world, tmp_path, monkeypatch):
    paths = write_both(world, tmp_path, "coco")
    before = [path.read_bytes() for path in paths]
    os.link(paths[0], tmp_path / "hard.json")
    os.symlink(paths[0], tmp_path / "soft.json")
    monkeypatch.chdir(tmp_path)
    for target in (
        paths[0],
        tmp_path / "hard.json",
        tmp_path / "soft.json",
        "coco-truth.json",
        f"./x/../{paths[0].name}",
    ):
        with pytest.raises(OptionError, match=r"is read here, and is not written over|cannot write"):
            detmap.convert(paths[0], target, to="coco")
    with pytest.raises(OptionError, match="is not written over"):
        detmap.convert(paths[1], paths[0], ground_truth=paths[0])
    folder = write_both(world, tmp_path, "voc")[0]
    with pytest.raises(OptionError, match="is not written over"):
        detmap.convert(folder, folder, to="yolo")
    assert before == [path.read_bytes() for path in paths]


def test_what_is_not_clear_is_asked(world, tmp_path):
    (tmp_path / "some.circles").write_text("{}")
    path = tmp_path / "out.bin"
    paths = write_both(world, tmp_path, "coco")
    with pytest.raises(OptionError, match="does not say a format"):
        detmap.convert(paths[0], path)
    with pytest.raises(OptionError, match=r"unknown format 'none'; one of: .*coco"):
        detmap.convert(paths[0], path, to="none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is an empty folder"):
        detmap.convert(tmp_path / "empty", path, to="coco")
    with pytest.raises(InputError, match="no such file"):
        detmap.convert(tmp_path / "absent.json", path, to="coco")
    with pytest.raises(OptionError, match=r"role must be"):
        detmap.convert(paths[0], path, to="coco", role="both")
    assert not path.exists()


def test_the_command_says_what_was_written_and_what_was_lost(tmp_path, capsys):
    crowds = detmap.GroundTruth.from_arrays(
        image_ids=["a", "b"],
        category_ids=["cat", "dog"],
        boxes=[[0, 0, 8, 8]] * 2,
        crowd=[1, 0],
        image_sizes=[[16, 32]] * 2,
        images=["a", "b"],
    )
    detmap.write(crowds, tmp_path / "truth.json")
    assert main(["convert", str(tmp_path / "truth.json"), str(tmp_path / "set"), "--to", "yolo"]) == 0
    out = capsys.readouterr().out
    assert "yolo: 2 objects on 2 images written to" in out
    assert "1 objects are crowds, which the format has no field for" in out
    assert main(["convert", str(tmp_path / "set"), str(tmp_path / "back.json"), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["role"], document["written"], document["lost"]) == ("ground_truth", 2, {})
    assert main(["convert", str(tmp_path / "set"), str(tmp_path / "set"), "--to", "voc"]) == 2
    assert "is not written over" in capsys.readouterr().err


def test_every_loss_has_words():
    assert all("{n}" in text for text in LOST.values())
    assert all(any(one.words) for one in FORMATS.values() if files.registry.FORMATS.is_shipped(one.name))


def test_scores_keep_their_bits_whatever_they_are(tmp_path):
    """Shortest digits: what is printed is the same number again."""
    rng = np.random.default_rng(5)
    scores = np.frombuffer(rng.bytes(8 * 4000), np.float64)
    scores = scores[np.isfinite(scores)]
    count = scores.size
    truth = detmap.GroundTruth.from_arrays(
        image_ids=["a"], category_ids=["c"], boxes=[[0, 0, 1, 1]], image_sizes=[[64, 64]], images=["a"]
    )
    found = detmap.Detections.from_arrays(
        image_ids=["a"] * count, category_ids=["c"] * count, boxes=[[0, 0, 1, 1]] * count, scores=scores
    )
    for format in BOXES:
        path = tmp_path / f"{format}{ENDING.get(format, '')}"
        detmap.write(found, path, format=format, ground_truth=truth)
        again = detmap.read(path, "detections", ground_truth=truth)
        assert same_bits(again.scores, scores), format
