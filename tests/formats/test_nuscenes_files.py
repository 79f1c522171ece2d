"""nuScenes' files: results, a JSON of samples, the tables; and what is wrong with them in one line."""

from __future__ import annotations

import json
from pathlib import Path

import moving_scenes
import numpy as np
import pytest
from support import assert_same_result
from workloads import REAL_DATA

import detmap
from detmap.cli import main
from detmap.formats.nuscenes import CLASSES

KIND = "centre-distance"
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "nuscenes"


def tables_of(samples, folder, rng):
    """The data set's tables of a JSON of samples, with what evaluation does not read; velocities are measured anew."""
    folder.mkdir()
    categories = {name: f"vehicle.{name}" for name in ("car", "truck", "trailer", "motorcycle", "bicycle")}
    categories |= {"bus": "vehicle.bus.bendy", "construction_vehicle": "vehicle.construction"}
    categories |= {"pedestrian": "human.pedestrian.child", "barrier": "movable_object.barrier"}
    categories |= {"traffic_cone": "movable_object.trafficcone", "rack": "static_object.bicycle_rack", "dog": "animal"}
    attributes = sorted({box["attribute_name"] for one in samples for box in one["boxes"]} - {""})
    rows = {name: [] for name in ("sample", "sample_annotation", "sample_data", "ego_pose", "instance")}
    for number, one in enumerate(samples):
        token = one["token"]
        rows["sample"].append({"token": token, "timestamp": 10**15 + number * 500_000, "scene_token": f"s{number % 2}"})
        for sensor in ("lidar", "camera"):
            own = {"sample_token": token, "ego_pose_token": f"{sensor}{token}", "calibrated_sensor_token": sensor}
            rows["sample_data"].append({**own, "is_key_frame": True})
            ego = one["ego"] if sensor == "lidar" else [0.0, 0.0, 0.0]
            rows["ego_pose"].append({"token": f"{sensor}{token}", "translation": ego})
        dog = {**moving_scenes.box(rng, "dog", one["ego"]), "num_pts": 3, "attribute_name": ""}
        racks = [{**rack, "detection_name": "rack", "num_pts": 3, "attribute_name": ""} for rack in one["racks"]]
        for place, box in enumerate([*one["boxes"], dog, *racks]):
            name = f"{token}-{place}"
            rows["instance"].append({"token": name, "category_token": box["detection_name"]})
            rows["sample_annotation"].append(
                {
                    **{key: box[key] for key in ("translation", "size", "rotation")},
                    "token": name,
                    "sample_token": token,
                    "instance_token": name,
                    "attribute_tokens": [box["attribute_name"]] if box["attribute_name"] else [],
                    "prev": "",
                    "next": "",
                    "num_lidar_pts": box["num_pts"] // 2,
                    "num_radar_pts": box["num_pts"] - box["num_pts"] // 2,
                    "visibility_token": "1",
                }
            )
    rows["scene"] = [{"token": f"s{side}", "name": f"scene-{side}"} for side in (0, 1)]
    rows["attribute"] = [{"token": name, "name": name} for name in attributes]
    rows["category"] = [{"token": token, "name": name} for token, name in categories.items()]
    rows["sensor"] = [{"token": "l", "channel": "LIDAR_TOP"}, {"token": "c", "channel": "CAM_FRONT"}]
    rows["calibrated_sensor"] = [{"token": "lidar", "sensor_token": "l"}, {"token": "camera", "sensor_token": "c"}]
    for name, own in rows.items():
        (folder / f"{name}.json").write_text(json.dumps(own))
    return folder


@pytest.fixture
def scene(tmp_path):
    """A JSON of samples without velocities, results, and the tables."""
    samples, results = moving_scenes.scene(7, samples=10)
    for one in samples["samples"]:
        for box in one["boxes"]:
            box["velocity"] = None
    paths = [tmp_path / name for name in ("samples.json", "results.json")]
    for path, document in zip(paths, (samples, results), strict=True):
        path.write_text(json.dumps(document))
    return *paths, tables_of(samples["samples"], tmp_path / "v1.0-mine", np.random.default_rng(1))


def test_tables_and_samples_are_the_same(scene, tmp_path):
    samples, results, tables = scene
    one = detmap.evaluate(samples, results, "nuscenes")
    assert one["mAP"] > 0.05
    assert_same_result(detmap.evaluate(tables, results, "nuscenes"), one)
    truth = detmap.read(tables, "ground_truth", iou_type=KIND)
    assert truth.categories.names == CLASSES
    assert len(truth) == len(detmap.read(samples, "ground_truth", iou_type=KIND))
    (tmp_path / "val.txt").write_text("scene-1\n")
    some = detmap.read(tables, "ground_truth", iou_type=KIND, image_set=tmp_path / "val.txt")
    assert some.images.ids.tolist() == truth.images.ids[1::2].tolist()
    tokens = detmap.read(samples, "ground_truth", iou_type=KIND, image_set=some.images.ids.tolist())
    given = {"unknown_images": "ignore"}
    found = [detmap.read(results, ground_truth=one, iou_type=KIND, **given) for one in (some, tokens)]
    assert_same_result(*(detmap.evaluate(*pair, "nuscenes") for pair in zip((some, tokens), found, strict=True)))


def test_velocities_are_those_between_neighbours(scene):
    """From the sample before to the one behind; unknown beyond 1.5 s of one neighbour, and 3 s of two."""
    *_, tables = scene
    path = tables / "sample_annotation.json"
    rows = json.loads(path.read_text())
    chain = [next(row for row in rows if row["sample_token"] == f"sample{n:02d}") for n in (0, 1, 2, 6)]
    for n, row in enumerate(chain):
        row |= {"translation": [8.0 * n * n, -4.0 * n, 0.0], "num_lidar_pts": 9}
        row["prev"] = chain[n - 1]["token"] if n else ""
        row["next"] = chain[n + 1]["token"] if n < 3 else ""
    names = json.loads((tables / "instance.json").read_text())
    for row in names:
        if row["token"] in {one["token"] for one in chain}:
            row["category_token"] = "car"
    (tables / "instance.json").write_text(json.dumps(names))
    path.write_text(json.dumps(rows))
    column = detmap.read(tables, "ground_truth", iou_type=KIND).shape(KIND)
    at = [int(np.flatnonzero((column.centres == row["translation"]).all(axis=1))[0]) for row in chain]
    assert column.velocities[at[0]] == pytest.approx([16.0, -8.0])
    assert column.velocities[at[1]] == pytest.approx([32.0, -8.0])
    assert column.velocities[at[2]] == pytest.approx([64 / 2.5, -8 / 2.5])  # 2.5 s between its neighbours
    assert np.isnan(column.velocities[at[3]]).all()  # 2 s after the one before


def test_nan_as_python_writes_it(scene, tmp_path):
    samples, results, _ = scene
    document = json.loads(results.read_text())
    boxes = [box for own in document["results"].values() for box in own]
    for box in boxes[::3]:
        box["velocity"] = [float("nan"), float("nan")]
    (tmp_path / "nan.json").write_text(json.dumps(document))
    for box in boxes[::3]:
        box["velocity"] = [None, None]
    results.write_text(json.dumps(document))
    assert b"NaN" in (tmp_path / "nan.json").read_bytes()
    assert_same_result(*(detmap.evaluate(samples, one, "nuscenes") for one in (tmp_path / "nan.json", results)))
    boxes[0]["translation"][0] = float("nan")
    results.write_text(json.dumps(document))
    with pytest.raises(detmap.InputError, match=r"sample '.*', \[0\]\.translation\[0\]: expected `float`, got `null`"):
        detmap.evaluate(samples, results, "nuscenes")


def test_the_command_line_needs_no_kind_and_no_format(scene, capsys):
    samples, results, tables = scene
    for truth in (samples, tables):
        assert main(["eval", str(truth), str(results), "--protocol", "nuscenes"]) == 0
        assert "NDS" in capsys.readouterr().out
    assert main(["eval", str(results), str(samples), "--protocol", "nuscenes"]) == 2
    assert "are the arguments swapped?" in capsys.readouterr().err


BOX = {
    "translation": [0.0, 0.0, 0.0],
    "size": [1.0, 2.0, 3.0],
    "rotation": [1.0, 0.0, 0.0, 0.0],
    "velocity": [0.0, 0.0],
}
BOX |= {"detection_name": "car", "detection_score": 0.5, "attribute_name": "", "sample_token": "a"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"detection_name": "tram"}, "sample 'a', box 1, field 'detection_name': is no class (got 'tram'); car, truck"),
        ({"attribute_name": "vehicle.flying"}, "field 'attribute_name': is no attribute (got 'vehicle.flying')"),
        ({"sample_token": "b"}, "field 'sample_token': is another sample (got 'b'); it is 'a'"),
        ({"detection_score": None}, "sample 'a', box 1, field 'detection_score': is missing"),
        ({"detection_score": "high"}, "expected `float | null`, got `str`"),
        ({"size": [1.0, 2.0]}, "expected `array` of length 3"),
        ({"size": [1.0, 2.0, 0.0]}, "box 1, field 'size': width, length and height must be above 0"),
        ({"rotation": [0.0, 0.0, 0.0, 0.0]}, "box 1, field 'rotation': a quaternion must have a length"),
        ({"translation": [1e200, 0.0, 0.0]}, "box 1, field 'translation': must be finite numbers of at most 1e+150"),
        ({"velocity": [1.0]}, "expected `array` of length 2"),
    ],
)
def test_a_box_that_cannot_be_is_named(change, says, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"meta": {}, "results": {"c": [], "a": [BOX, {**BOX, **change}]}}))
    with pytest.raises(detmap.InputError) as caught:
        detmap.read(path, "detections", iou_type=KIND)
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"results": {"a": [', "is not valid JSON"),
        ('{"meta": {}, "results": {"a": 5}}', "sample 'a': expected `array`, got `int`"),
        ('{"results": {"a": ' + "[" * 100_000 + "]" * 100_000 + "}}", "results.json"),
    ],
)
def test_results_that_cannot_be_read(text, says, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(detmap.InputError) as caught:
        detmap.read(path, "detections", iou_type=KIND)
    assert says in str(caught.value)


def test_more_boxes_than_a_submission_may_have(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"meta": {}, "results": {"a": [BOX] * 501}}))
    with pytest.raises(detmap.InputError, match="sample 'a': has 501 boxes, and a submission at most 500"):
        detmap.read(path, "detections", iou_type=KIND)


@pytest.mark.parametrize(
    ("table", "change", "says"),
    [
        ("sample", {"scene_token": "x"}, "sample.json: record 0, field 'scene_token': is no token of the other table"),
        (
            "sample_annotation",
            {"instance_token": "x"},
            "field 'instance_token': is no token of the other table (got 'x')",
        ),
        ("sample_annotation", {"prev": "x"}, "field 'prev': is no token of the other table (got 'x')"),
        (
            "sample_annotation",
            {"attribute_tokens": ["vehicle.moving", "vehicle.parked"]},
            "has more than one attribute",
        ),
        ("sample_data", {"ego_pose_token": "x"}, "sample_data.json: record 0, field 'ego_pose_token'"),
        (
            "sample_annotation",
            {"size": "big"},
            "sample_annotation.json: record 0, field 'size': expected `array`, got `str`",
        ),
    ],
)
def test_a_row_of_the_tables_that_cannot_be_is_named(table, change, says, scene):
    *_, tables = scene
    path = tables / f"{table}.json"
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([{**rows[0], **change}, *rows[1:]]))
    with pytest.raises(detmap.InputError) as caught:
        detmap.read(tables, "ground_truth", iou_type=KIND)
    assert says in str(caught.value)


def test_samples_that_the_results_lack_are_counted(scene, tmp_path):
    samples, results, _ = scene
    document = json.loads(results.read_text())
    document["results"].popitem()
    results.write_text(json.dumps(document))
    assert dict(detmap.evaluate(samples, results, "nuscenes").notices)["missing_samples"] == 1
    document["results"]["elsewhere"] = [{**BOX, "sample_token": "elsewhere"}]
    results.write_text(json.dumps(document))
    with pytest.raises(detmap.InputError, match="is not an image of the ground truth"):
        detmap.evaluate(samples, results, "nuscenes")


@pytest.mark.real_data
def test_the_development_kit(tmp_path):
    """Every number that the kit gives of the synthetic data set, to the last bit, of samples and of tables."""
    folder = REAL_DATA / "nuscenes"
    expected = json.loads((folder / "expected.json").read_text())["metrics"]
    (tmp_path / "mini_val.txt").write_text("scene-0103\nscene-0916\n")
    errors = {"ATE": "trans_err", "ASE": "scale_err", "AOE": "orient_err", "AVE": "vel_err", "AAE": "attr_err"}
    for source, how in (("gt_flat.json", {}), ("v1.0-mini", {"image_set": tmp_path / "mini_val.txt"})):
        truth = detmap.read(folder / source, "ground_truth", iou_type=KIND, **how)
        found = detmap.read(folder / "results.json", ground_truth=truth, iou_type=KIND)
        result = detmap.evaluate(truth, found, "nuscenes")
        wanted = {"mAP": expected["mean_ap"], "NDS": expected["nd_score"]}
        for name in CLASSES:
            wanted[f"AP_{name}"] = expected["mean_dist_aps"][name]
            wanted |= {f"AP_{name}_{float(at):g}": value for at, value in expected["label_aps"][name].items()}
            wanted |= {f"{e}_{name}": expected["label_tp_errors"][name][theirs] for e, theirs in errors.items()}
        wanted |= {f"m{name}": expected["tp_errors"][theirs] for name, theirs in errors.items()}
        assert {*wanted} == {*result}
        exact = [name for name, value in wanted.items() if result[name] == value or value != value]
        # arctan2 is numpy's, whose last bit depends on the processor.
        assert {*wanted} - {*exact} <= {"NDS", *(name for name in wanted if "AOE" in name)}
        for name, value in wanted.items():
            assert result[name] == pytest.approx(value, abs=1e-12, nan_ok=True)
