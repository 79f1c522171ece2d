"""CrowdPose and COCO-WholeBody: every bit of precision and recall, and all numbers, against a twin and expected values."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pose_scenes
import pytest
from naive_poses import PARTS, crowdpose, whole_body
from support import examples, same_bits
from workloads import REAL_DATA

import detmap
from detmap.cli import main
from detmap.data.notices import describe
from detmap.detection.protocols import PRESETS, parts_of
from detmap.formats.coco import read as coco
from detmap.statistics.bootstrap import replicated

STATS = ("AP", "AP50", "AP75", "AP_medium", "AP_large", "AR_20", "AR50", "AR75", "AR_medium", "AR_large")
NAMES = {**{part: f"wholebody-{part}" for part in PARTS}, "wholebody": "wholebody"}


@pytest.fixture(params=["decoder", "scanner"])
def each_parser(request, monkeypatch):
    monkeypatch.setattr(coco, "_WORTH_SCANNING", 0 if request.param == "scanner" else 1 << 40)


def minus_one(values):
    return np.where(np.isnan(values), -1.0, values)


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(minus_one(array)).tobytes()).hexdigest()


def eleven(result):
    """The numbers in CrowdPose's order, in which two are never set; -1 where one is undefined."""
    first = [result[name] for name in ("AP", "AP50", "AP75")]
    rest = [result[name] for name in ("AR_20", "AR50", "AR75", "AP_easy", "AP_medium", "AP_hard")]
    return [*minus_one(first).tolist(), 0.0, 0.0, *minus_one(rest).tolist()]


@pytest.mark.parametrize(
    ("name", "truth", "found"),
    [
        ("example", "example_crowdpose_val.json", "example_crowdpose_preds.json"),
        ("val_500", "crowdpose_val_500.json", "synthetic_results_500.json"),
    ],
)
def test_the_eleven_numbers_of_crowdpose(name, truth, found, each_parser):
    folder = REAL_DATA / "crowdpose"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    expected = json.loads((folder / "expected.json").read_text())[name]
    result = detmap.evaluate(folder / truth, folder / found, "crowdpose")
    assert eleven(result) == expected["stats"]
    for group in ("easy", "medium", "hard"):
        assert round(result[f"AP_{group}_defined"], 4) == result[f"AP_{group}"]
    assert dict(result.notices) == {}
    assert list(detmap.evaluate(folder / truth, folder / found, "auto").values()) == list(result.values())


@pytest.mark.parametrize("part", NAMES)
def test_the_parts_of_whole_bodies(part, each_parser):
    folder = REAL_DATA / "wholebody"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    expected = json.loads((folder / "expected.json").read_text())["synthetic"]["reference"][part]
    truth, found = folder / "synthetic_gt.json", folder / "synthetic_results.json"
    result = detmap.evaluate(truth, found, NAMES[part])
    assert [result[name] for name in STATS] == expected["stats"]
    for name in ("precision", "recall", "scores"):
        assert digest(getattr(result, name)) == expected[f"{name}_sha256"], name
    assert dict(result.notices) == {}
    every = detmap.evaluate_parts(truth, found, "wholebody")
    assert list(every) == list(NAMES)
    assert same_bits(list(every[part].values()), list(result.values()))


def assert_as_the_twin(result, precision, recall):
    assert same_bits(minus_one(result.precision[..., 0]), precision)
    assert same_bits(minus_one(result.recall[..., 0]), recall)


@pytest.mark.parametrize("seed", range(examples(4)))
def test_drawn_crowds_of_poses(seed, each_parser):
    document, results = pose_scenes.scene(
        seed, pose_scenes.CROWDPOSE, categories=1 + seed % 3, strings=bool(seed % 2), fields=0.8
    )
    stats, precision, recall = crowdpose(document, results)
    for given in ((document, results), (text(document), text(results))):
        truth = detmap.read_coco(given[0], iou_type="keypoints")
        found = detmap.read_coco_results(given[1], truth, iou_type="keypoints")
        result = detmap.evaluate(truth, found, "crowdpose")
        assert_as_the_twin(result, precision, recall)
        assert eleven(result) == stats
        missing = sum("crowdIndex" not in image for image in document["images"])
        assert result.notices.get("missing_crowdIndex", 0) == missing


@pytest.mark.parametrize("part", NAMES)
@pytest.mark.parametrize("seed", range(examples(2)))
def test_drawn_whole_bodies(seed, part, monkeypatch):
    monkeypatch.setattr(coco, "_WORTH_SCANNING", 0 if seed % 2 else 1 << 40)
    document, results = pose_scenes.scene(seed, images=7, categories=2 + seed % 2, strings=bool(seed % 2))
    precision, recall, left = whole_body(document, results, part)
    for given in ((document, results), (text(document), text(results))):
        truth = detmap.read_coco(given[0], iou_type="keypoints_wholebody")
        found = detmap.read_coco_results(given[1], truth, iou_type="keypoints_wholebody")
        result = detmap.evaluate(truth, found, NAMES[part], max_dets=20)
        assert_as_the_twin(result, precision, recall)
        field = PRESETS[NAMES[part]].score_field
        assert result.notices.get("missing_part_scores", 0) == sum(field not in one for one in results)
    assert len(detmap.match(truth, found, NAMES[part], max_dets=1000)) == left


def text(document):
    return json.dumps(document).encode()


def test_a_group_without_objects_counts_as_less_than_nothing():
    """A category without objects in a group is -1 in the published mean, and left out of the other one."""
    document, results = pose_scenes.scene(3, pose_scenes.CROWDPOSE, categories=3, odd=False)
    for image in document["images"]:
        image["crowdIndex"] = 0.5
    truth = detmap.read_coco(document, iou_type="keypoints")
    found = detmap.read_coco_results(results, truth, iou_type="keypoints")
    result = detmap.evaluate(truth, found, "crowdpose")
    assert result["AP_easy"] == result["AP_hard"] == -1.0
    assert np.isnan(result["AP_easy_defined"])
    assert result["AP_medium_defined"] == result["AP"]
    known = int((result.tally.positives[:, 0] > 0).sum())
    assert result["AP_medium"] == round((result["AP"] * known - (3 - known)) / 3, 4)
    plain = detmap.evaluate(truth, found, "crowdpose", crowd_means="defined")
    assert plain["AP_medium"] == result["AP"]
    assert "AP_medium_defined" not in plain
    other = detmap.evaluate(truth, found, "crowdpose", crowd_groups={"few": 0.5, "many": 2.0}, crowd_means="defined")
    assert np.isnan(other["AP_few"])
    assert other["AP_many"] == result["AP"]
    made = replicated(result, 3, 1)
    assert same_bits(made.estimate[: len(made.metrics)], [result[name] for name in made.metrics])


def test_groups_of_images_of_boxes_too():
    """Groups of images are no matter of poses."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 2], category_ids=[1, 1], boxes=[[0, 0, 9, 9]] * 2, crowd_index={1: 0.1, 2: np.float32(0.9)}
    )
    found = detmap.Detections.from_arrays(image_ids=[2], category_ids=[1], boxes=[[0, 0, 9, 9]], scores=[0.5])
    result = detmap.evaluate(truth, found, crowd_groups={"few": 0.5, "many": 1.0})
    assert (result["AP_few"], result["AP_many"]) == (0.0, pytest.approx(1))
    assert {row["images"] for row in result.summary()} == {"all", "few", "many"}
    tally = result.tally
    assert np.array_equal(detmap.Tally.from_bytes(tally.to_bytes()).crowd_index, tally.crowd_index)
    with pytest.raises(detmap.OptionError, match="'small' is the name of two"):
        detmap.evaluate(truth, found, crowd_groups={"small": 0.5})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"crowd_groups": {"a": 0.5, "b": 0.5}}, "crowd_groups must be names with crowd indices that ascend"),
        ({"crowd_groups": [("a", 0.1), ("a", 0.5)]}, "groups of images must have names of their own"),
        ({"crowd_groups": {"a": float("nan")}}, "crowd_groups must be names with crowd indices that ascend"),
        ({"crowd_groups": 5}, "crowd_groups cannot be 5"),
        ({"points": (3, 3)}, "points must be the first point and the one behind the last"),
        ({"points": "body"}, "points must be the first point and the one behind the last"),
        ({"score_field": ""}, "score_field must be a name"),
        ({"labelled": "yes"}, "labelled must be"),
    ],
)
def test_decisions_that_cannot_be(given, says):
    with pytest.raises(detmap.OptionError) as caught:
        detmap.detection.protocols.resolve("crowdpose", **given)
    assert says in str(caught.value)


def broken(document, results, part, change):
    (document["annotations"] if part == "truth" else results)[1].update(change)
    truth = detmap.read_coco(text(document), iou_type="keypoints_wholebody")
    return detmap.evaluate(
        truth, detmap.read_coco_results(text(results), truth, iou_type="keypoints_wholebody"), "wholebody"
    )


@pytest.mark.parametrize(
    ("part", "change", "says"),
    [
        ("truth", {"foot_kpts": [1, 2]}, "annotation 1, field 'foot_kpts': must be numbers x, y, v"),
        ("truth", {"foot_kpts": None}, "annotation 1, field 'foot_kpts': is missing"),
        ("found", {"foot_kpts": [1, 2, 3]}, "record 1, field 'foot_kpts': has 1 points where there are 6"),
        ("found", {"face_kpts": "a"}, "record 1, field 'face_kpts': must be numbers x, y, v"),
        ("found", {"keypoints": [1, 2, 3]}, "record 1, field 'keypoints': has 1 points where there are 17"),
        ("found", {"lefthand_kpts": [1e300] * 63}, "record 1, field 'lefthand_kpts': a coordinate is too far away"),
        ("found", {"foot_score": "high"}, "record 1, field 'foot_score': must be a finite number"),
        ("truth", {"foot_valid": 3}, "annotation 1, field 'foot_valid': is neither true nor false"),
    ],
)
def test_records_of_whole_bodies_that_are_wrong(part, change, says, monkeypatch):
    monkeypatch.setattr(coco, "_WORTH_SCANNING", 0 if part == "truth" else 1 << 40)
    document, results = pose_scenes.scene(1)
    with pytest.raises(detmap.InputError) as caught:
        broken(document, results, part, change)
    assert says in str(caught.value)


@pytest.mark.parametrize("value", [[1, 2], "0.5", True, 1e400])
def test_crowd_indices_that_are_none(value, each_parser):
    document, _ = pose_scenes.scene(1, pose_scenes.CROWDPOSE)
    document["images"][2]["crowdIndex"] = value
    with pytest.raises(
        detmap.InputError, match=r"(image 2, field 'crowdIndex': must be a finite number|not valid JSON)"
    ):
        detmap.read_coco(text(document) if value != 1e400 else document, iou_type="keypoints")


def test_results_with_all_points_in_one_list():
    """As programs hold them in memory; areas of results are then given, or those of all points."""
    document, results = pose_scenes.scene(4, odd=False)
    truth = detmap.read_coco(document, iou_type="keypoints_wholebody")
    found = detmap.read_coco_results(results, truth, iou_type="keypoints_wholebody")
    bare = [{**{name: one[name] for name in one if not name.endswith("kpts")}, "bbox": one_box(one)} for one in results]
    for one, other in zip(bare, results, strict=True):
        one["keypoints"] = [value for name in pose_scenes.WHOLE_BODY for value in other[name]]
    whole = detmap.read_coco_results(bare, truth, iou_type="keypoints_wholebody")
    arrays = detmap.Detections.from_arrays(
        image_ids=[one["image_id"] for one in bare],
        category_ids=[one["category_id"] for one in bare],
        keypoints=np.array([one["keypoints"] for one in bare]).reshape(-1, 133, 3),
        scores=[one["score"] for one in bare],
        more_scores={"face_score": [one["face_score"] for one in bare]},
        areas=found.areas,
    )
    result = detmap.evaluate(truth, found, "wholebody-face")
    for other in (whole, arrays):
        assert same_bits(list(detmap.evaluate(truth, other, "wholebody-face").values()), list(result.values()))
    body = detmap.read_coco_results(results, truth, iou_type="keypoints")
    with pytest.raises(detmap.InputError, match="17 keypoints where points 18 to 23 are compared"):
        detmap.evaluate(truth, body, "wholebody-foot")


def one_box(record):
    x, y = record["keypoints"][0::3], record["keypoints"][1::3]
    return [min(x), min(y), max(x) - min(x), max(y) - min(y)]


def test_a_skeleton_of_ones_own():
    sigmas = {"head": [0.05, 0.06], "tail": [0.1]}
    protocols = detmap.skeleton("cat", sigmas, oks_area="bbox*0.53")
    assert [one.name for one in protocols] == ["cat-head", "cat-tail", "cat"]
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.random((6, 3, 2)) * 50, np.ones((6, 3, 1))], axis=2)
    points[0, 2, 2] = 0  # the first tail is not labelled
    ids = {"image_ids": [1, 1, 2, 2, 3, 3], "category_ids": [1] * 6}
    truth = detmap.GroundTruth.from_arrays(keypoints=points, **ids)
    moved = points + rng.normal(0, 2, points.shape) * [1, 1, 0]
    found = detmap.Detections.from_arrays(keypoints=moved, scores=rng.random(6), **ids)
    for part, (first, stop) in {"head": (0, 2), "tail": (2, 3)}.items():
        own = next(one for one in protocols if one.name == f"cat-{part}")
        assert (own.points, own.sigmas) == ((first, stop), tuple(sigmas[part]))
        result = detmap.evaluate(truth, found, own, labelled="points", area_ranges={"all": (0, 1e10)})
        cut = [
            type(table).from_arrays(
                keypoints=table.shapes["keypoints"].arrays()["values"].reshape(-1, 3, 3)[:, first:stop],
                boxes=truth.boxes if table is truth else None,
                **ids,
                **({} if table is truth else {"scores": found.scores}),
            )
            for table in (truth, found)
        ]
        plain = detmap.evaluate(
            *cut, iou_type="keypoints", sigmas=sigmas[part], oks_area="bbox*0.53", area_ranges={"all": (0, 1e10)}
        )
        assert same_bits(list(result.values()), list(plain.values()))
        assert int(result.tally.positives[0, 0]) == 5 + (part == "head")
    with pytest.raises(detmap.OptionError, match="has no parts; these have: wholebody"):
        detmap.evaluate_parts(truth, found, "crowdpose")
    with pytest.raises(detmap.OptionError, match="parts must be a mapping"):
        detmap.skeleton("cat", [0.1])
    assert list(parts_of("wholebody")) == list(NAMES)


def test_flags_of_parts_ignore_objects_where_they_are_asked_for():
    document, results = pose_scenes.scene(6, odd=False)
    truth = detmap.read_coco(document, iou_type="keypoints_wholebody")
    found = detmap.read_coco_results(results, truth, iou_type="keypoints_wholebody")
    assert truth.part_flags["foot_valid"].tolist() == [one["foot_valid"] for one in document["annotations"]]
    result = detmap.evaluate(truth, found, "wholebody-foot", valid_flag="foot_valid", crowd_overlap=False)
    assert "missing_valid_flag" not in result.notices
    wrong = detmap.evaluate(truth, found, "wholebody-foot", valid_flag="feet_valid")
    assert wrong.notices["missing_valid_flag"] == len(truth)
    for one in document["annotations"]:
        if not one["foot_valid"]:
            one["iscrowd"] = 1
    other = detmap.read_coco(document, iou_type="keypoints_wholebody")
    assert same_bits(result.precision, detmap.evaluate(other, found, "wholebody-foot", crowd_overlap=False).precision)
    assert result.tally.positives[0, 0] < detmap.evaluate(truth, found, "wholebody-foot").tally.positives[0, 0]


@pytest.mark.parametrize("lists", [pose_scenes.CROWDPOSE, pose_scenes.WHOLE_BODY])
def test_conversions_keep_everything_or_say_what_they_lose(lists, tmp_path):
    document, results = pose_scenes.scene(2, lists, fields=0.5, odd=len(lists) > 1)
    protocol = "crowdpose" if len(lists) == 1 else "wholebody-lefthand"
    for name, one in (("truth", document), ("found", results)):
        (tmp_path / f"{name}.json").write_text(json.dumps(one))
        made = detmap.convert(tmp_path / f"{name}.json", tmp_path / f"{name}2.json")
        assert dict(made.lost) == {}
    one, other = (
        detmap.evaluate(tmp_path / f"truth{k}.json", tmp_path / f"found{k}.json", protocol) for k in ("", "2")
    )
    assert same_bits(one.precision, other.precision)
    assert same_bits(list(one.values()), list(other.values()))
    assert {**one.notices, "missing_area": 0} == {**other.notices, "missing_area": 0}
    lost = detmap.convert(tmp_path / "truth.json", tmp_path / "truth.csv").lost
    if len(lists) == 1:
        assert lost["crowd_index"] == sum("crowdIndex" in image for image in document["images"])
    assert lost["shapes"] == len(document["annotations"])
    kind = PRESETS[protocol].iou_type
    truth = detmap.read(tmp_path / "truth.json", iou_type=kind)
    found = detmap.read(tmp_path / "found.json", ground_truth=truth, iou_type=kind)
    if len(lists) > 1:
        assert detmap.write(found, tmp_path / "found.csv")["part_scores"] == len(results)
        assert detmap.write(truth, tmp_path / "other.csv")["part_flags"] == len(document["annotations"])


def test_the_command_shows_a_row_per_part(tmp_path, capsys):
    document, results = pose_scenes.scene(7)
    (tmp_path / "truth.json").write_text(json.dumps(document))
    (tmp_path / "found.json").write_text(json.dumps(results))
    given = [str(tmp_path / "truth.json"), str(tmp_path / "found.json"), "--parts"]
    out = tmp_path / "out.json"
    assert main(["eval", *given, "--protocol", "auto", "--format", "json", "--quiet", "--out", str(out)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown) == list(NAMES)
    assert json.loads(out.read_text()) == shown
    for part, one in shown.items():
        assert one["metrics"]["AP"] == detmap.evaluate(*given[:2], NAMES[part])["AP"]
    assert main(["eval", *given, "--protocol", "coco"]) == 2
    assert "the protocol 'coco' has no parts" in capsys.readouterr().err
    assert main(["eval", *given, "--protocol", "wholebody", "--bootstrap", "200"]) == 2
    assert "--parts shows a row per part, without --bootstrap" in capsys.readouterr().err
    assert main(["eval", *given, "--protocol", "wholebody"]) == 0
    assert "without a score of the part" in capsys.readouterr().err


def test_objects_without_boxes_of_their_own_are_said(each_parser):
    document, results = pose_scenes.scene(3, pose_scenes.CROWDPOSE, categories=1)
    without = document["annotations"][:: len(document["annotations"]) - 1]
    for one in without:
        del one["bbox"]
    truth = detmap.read_coco(text(document), iou_type="keypoints")
    result = detmap.evaluate(truth, detmap.read_coco_results(text(results), truth, iou_type="keypoints"), "crowdpose")
    assert result.notices["missing_bbox"] == len(without) == 2
    assert describe({"missing_bbox": 1}) == ["1 annotation without bbox: the box around the points"]


def test_what_notices_say():
    assert describe({"missing_crowdIndex": 1}) == ["1 image without crowdIndex: in none of the groups of images"]
    assert "without the flag that" in describe({"missing_valid_flag": 2})[0]
    assert describe({"missing_part_scores": 2})[0].startswith("2 detections without a score of the part (score_field)")
