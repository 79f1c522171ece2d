"""Files of nuScenes, ActivityNet, THUMOS14 and YouTube-VIS: written, read again and scored with the same bits."""

from __future__ import annotations

import json

import moving_scenes
import numpy as np
import pytest
import temporal_scenes
import track_scenes
from support import assert_same_result, examples

import detmap
from detmap.cli import main
from detmap.errors import InputError
from detmap.formats import LOST

SEEDS = range(300, 300 + examples(6))


def nuscenes(seed, folder):
    samples, results = moving_scenes.scene(seed)
    del samples["samples"][0]["ego"]
    return dumped(folder, samples, results)


def activitynet(seed, folder):
    truth, results = temporal_scenes.scene(seed, unknown=True, whole=bool(seed % 2))
    truth = {video: one for video, one in truth.items() if one["subset"] == "validation"}
    return dumped(folder, {"database": truth}, {"version": "1.3", "results": results})


def thumos14(seed, folder):
    temporal_scenes.write_thumos(folder, *temporal_scenes.thumos(seed, 1))
    return folder / "annotation", folder / "found.txt"


def ytvis(seed, folder):
    document, results = track_scenes.scene(seed, odd=bool(seed % 2))
    for video in document["videos"][::2]:
        video["file_names"] = []
    return dumped(folder, document, results)


def dumped(folder, *documents):
    paths = folder / "truth.json", folder / "found.json"
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document))
    return paths


MADE = {one.__name__: one for one in (nuscenes, activitynet, thumos14, ytvis)}
PROTOCOLS = {**{name: [name] for name in MADE}, "thumos14": ["thumos14", "thumos14-11"]}


def converted(paths, folder, to, ground_truth=None):
    """Both files in a format, and what was lost."""
    folder.mkdir()
    targets = folder / "truth", folder / "found"
    lost = [detmap.convert(paths[0], targets[0], to=to).lost]
    lost.append(detmap.convert(paths[1], targets[1], to=to, ground_truth=ground_truth).lost)
    return targets, lost


def lost_of_frames(path):
    """What a conversion of YouTube-VIS' annotations loses: names and numbers of frames, and areas by frame."""
    document = json.loads(path.read_text())
    tracks = document["annotations"]
    longest = {
        video["id"]: max([len(one["segmentations"]) for one in tracks if one["video_id"] == video["id"]], default=0)
        for video in document["videos"]
    }
    frames = sum(bool(one["file_names"]) or one["length"] > longest[one["id"]] for one in document["videos"])
    several = sum(sum(area is not None for area in one["areas"]) > 1 for one in tracks)
    return {code: count for code, count in (("frames", frames), ("frame_areas", several)) if count}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MADE)
def test_there_and_back(name, seed, tmp_path):
    """Converted into the same format, what is lost is counted; and converted once more, the files have the same bytes."""
    paths = MADE[name](seed, tmp_path)
    again, lost = converted(paths, tmp_path / "again", name)
    more, lost_more = converted(again, tmp_path / "more", name)
    assert lost == [lost_of_frames(paths[0]) if name == "ytvis" else {}, {}]
    assert lost_more == [{}, {}]
    if name == "nuscenes":
        documents = [json.loads(one.read_text()) for one in (paths[0], again[0])]
        points = [[box["num_pts"] for own in one["samples"] for box in own["boxes"]] for one in documents]
        assert points[0] == points[1]
    for protocol in PROTOCOLS[name]:
        expected = detmap.evaluate(*paths, protocol)
        assert_same_result(detmap.evaluate(*again, protocol), expected)
        assert_same_result(detmap.evaluate(*more, protocol), expected)
    for path in again:
        twin = tmp_path / "more" / path.name
        files = [path] if path.is_file() else sorted(path.iterdir())
        assert [one.read_bytes() for one in files] == [
            (twin if path.is_file() else twin / one.name).read_bytes() for one in files
        ]


@pytest.mark.parametrize("seed", SEEDS)
def test_segments_in_the_other_format(seed, tmp_path):
    """ActivityNet's into THUMOS14's and back; both sides are scored by both rules."""
    objects, _, found = temporal_scenes.thumos(seed, 1)
    temporal_scenes.write_thumos(tmp_path, objects, [], found)
    paths = tmp_path / "annotation", tmp_path / "found.txt"
    there, _ = converted(paths, tmp_path / "there", "activitynet", paths[0])
    back, _ = converted(there, tmp_path / "back", "thumos14", there[0])
    tables = [detmap.read(one[0], "ground_truth", iou_type="temporal") for one in (paths, there, back)]
    assert sorted(tables[1].category_names) == ["BaseballPitch", "Diving"]
    for protocol in ("activitynet", "thumos14", "thumos14-11"):
        results = [detmap.evaluate(*one, protocol) for one in (paths, there, back)]
        values = [
            {name: one.average_precision[:, k, 0, 0].tolist() for k, (_, name) in enumerate(one.categories)}
            for one in results
        ]
        if protocol != "activitynet":  # which breaks ties by the order in the file
            assert values[0] == values[1] == values[2]
        assert results[0].notices.keys() == results[1].notices.keys()


def test_what_is_lost_is_counted(tmp_path):
    segments = {"image_ids": [5, 7, 5], "category_ids": ["b", "a", "c"], "segments": [[0, 1], [1, 2], [2, 3.5]]}
    truth = detmap.GroundTruth.from_arrays(**segments, images=[5, 6, 7], crowd=[0, 1, 0], difficult=[0, 0, 1])
    found = detmap.Detections.from_arrays(**segments, scores=[0.1, 0.2, 0.3])
    lost = {name: detmap.write(truth, tmp_path / name, format=name) for name in ("activitynet", "thumos14")}
    every = {"crowd": 1, "difficult": 1, "image_ids": 3, "category_ids": 3}
    assert lost["activitynet"] == {**every, "category_order": 3}
    assert lost["thumos14"] == {**every, "empty_images": 1}
    assert set().union(*lost.values()) <= {*LOST}
    lost = {
        name: detmap.write(found, tmp_path / f"{name}-found", format=name, ground_truth=truth)
        for name in ("activitynet", "thumos14")
    }
    assert lost["activitynet"] == {"image_ids": 2, "order": 2}
    assert lost["thumos14"] == {"image_ids": 2, "category_ids": 3}


def test_ambiguous_segments_are_written_once(tmp_path):
    """Also where two are equal; a crowd of one class stays a plain object."""
    crowds = [("v", 1.0, 2.0, name, 1) for name in "ab"] * 2 + [("v", 5.0, 6.0, "a", 1), ("v", 0.0, 1.0, "b", 0)]
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[one[0] for one in crowds],
        category_ids=[one[3] for one in crowds],
        segments=[one[1:3] for one in crowds],
        crowd=[one[4] for one in crowds],
    )
    assert detmap.write(truth, tmp_path / "out", format="thumos14") == {"crowd": 1, "category_ids": 2}
    assert (tmp_path / "out" / "Ambiguous_test.txt").read_text() == "v 1.0 2.0\n" * 2
    assert (tmp_path / "out" / "a_test.txt").read_text() == "v 5.0 6.0\n"
    assert (tmp_path / "out" / "detclasslist.txt").read_text() == "1 a\n2 b\n"


def one_segment(**more):
    given = {"image_ids": ["v"], "category_ids": ["a"], "segments": [[0, 1]], **more}
    make = detmap.Detections if "scores" in given else detmap.GroundTruth
    return make.from_arrays(**given)


def one_box(**more):
    return detmap.Detections.from_arrays(
        **{"image_ids": ["a"], "category_ids": ["b"], "boxes": [[0, 0, 1, 1]], "scores": [1], **more}
    )


@pytest.mark.parametrize(
    ("table", "format", "problem"),
    [
        (one_segment(), "nuscenes", "no shapes of the kind 'centre-distance'"),
        (one_segment(), "ytvis", "must be an integer"),
        (one_segment(category_ids=["a b"]), "thumos14", "cannot be the name of a file of a class"),
        (one_segment(category_ids=["Ambiguous"]), "thumos14", "cannot be the name of a file of a class"),
        (one_segment(category_ids=["../a"]), "thumos14", "cannot be the name of a file of a class"),
        (one_segment(category_ids=[-1]), "thumos14", "cannot be the number of a class"),
        (one_segment(image_ids=["v w"]), "thumos14", "cannot be the name of a video"),
        (one_segment(image_ids=["v.mp4"]), "thumos14", "cannot be the name of a video"),
        (one_segment(image_ids=["é" * 129]), "thumos14", "cannot be the name of a video"),
        (one_box(image_ids=["é" * 129]), "dota", "cannot be written as a name"),
        (one_segment(scores=[0.5]), "thumos14", "names for classes, and the format numbers"),
        (one_segment(scores=[np.inf]), "activitynet", "a score must be finite"),
        (one_segment(category_ids=["\ud800"]), "activitynet", "no text that UTF-8 can hold"),
        (one_box(image_ids=[""]), "feather", "cannot be written as an id"),
        (one_box(category_ids=["a" * 257]), "parquet", "cannot be written as an id"),
        (one_segment(), "coco", "formats that hold them and can be written: activitynet, thumos14"),
    ],
)
def test_refused(table, format, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        detmap.write(table, tmp_path / "out", format=format)


def moving(count=1, attributes=None, **more):
    column = detmap.shapes.moving.MovingBoxes.from_arrays(
        np.zeros((count, 3)), np.ones((count, 3)), [[1, 0, 0, 0]] * count, attributes=attributes
    )
    return {"image_ids": ["s"] * count, "shapes": {"centre-distance": column}, **more}


def test_refused_boxes_in_space(tmp_path):
    path = tmp_path / "out.json"
    with pytest.raises(InputError, match="is no class of nuScenes"):
        detmap.write(detmap.GroundTruth.from_arrays(**moving(category_ids=["cat"])), path, format="nuscenes")
    with pytest.raises(InputError, match="is no number of an attribute"):
        detmap.write(
            detmap.GroundTruth.from_arrays(**moving(category_ids=["car"], attributes=[8])), path, format="nuscenes"
        )
    many = detmap.Detections.from_arrays(**moving(501, category_ids=["car"] * 501), scores=np.zeros(501))
    with pytest.raises(InputError, match="has 501 boxes, and a submission at most 500"):
        detmap.write(many, path, format="nuscenes")
    assert not path.exists()
    few = detmap.GroundTruth.from_arrays(**moving(2, category_ids=["truck", "car"]), categories=["car", "cat", "truck"])
    assert detmap.write(few, path, format="nuscenes") == {"category_ids": 3, "empty_categories": 1}
    assert detmap.read(path, "ground_truth", iou_type="centre-distance").categories.codes.tolist() == [1, 0]


def test_the_folder_above_the_annotations_is_told_which_to_give(tmp_path):
    """With the detections beside them, whose lines could be those of boxes."""
    paths = thumos14(1, tmp_path)
    with pytest.raises(InputError, match=r"give the path of what is meant in it: annotation \(thumos14\)"):
        detmap.evaluate(tmp_path, paths[1], "thumos14")


def test_other_formats_are_refused_in_one_line(tmp_path, capsys):
    paths = ytvis(1, tmp_path)
    assert main(["convert", str(paths[0]), str(tmp_path / "out.csv")]) == 2
    said = capsys.readouterr().err
    assert "holds shapes of the kind tracks, which the format csv has no place for" in said
    assert "formats that hold them and can be written: ytvis (--to)" in said
    assert main(["convert", str(paths[0]), str(tmp_path / "out.json"), "--to", "ytvis"]) == 0
    assert "ytvis:" in capsys.readouterr().out


def test_samples_without_detections_are_listed(tmp_path):
    """If the ground truth is given, as a submission must list all."""
    truth, results = moving_scenes.scene(5)
    token = next(iter(results["results"]))
    results["results"][token] = []
    paths = dumped(tmp_path, truth, results)
    detmap.convert(paths[1], tmp_path / "few.json", to="nuscenes")
    assert detmap.evaluate(paths[0], tmp_path / "few.json", "nuscenes").notices["missing_samples"] >= 1
    detmap.convert(paths[1], tmp_path / "all.json", to="nuscenes", ground_truth=paths[0])
    assert "missing_samples" not in detmap.evaluate(paths[0], tmp_path / "all.json", "nuscenes").notices
    document = json.loads((tmp_path / "all.json").read_text())
    assert document["results"][token] == []
