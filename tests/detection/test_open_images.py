"""Open Images' protocol: every AP against TensorFlow's published numbers and a naive twin, and what goes with it."""

from __future__ import annotations

import json

import naive_open_images
import numpy as np
import open_images_scenes
import pytest
from support import assert_same_result, examples, same_bits
from workloads import REAL_DATA

import detmap
from detmap.data.notices import describe
from detmap.detection.protocols import PRESETS

DATA = REAL_DATA / "oid" / "expected.json"

#: What a drawn scene may be like.
SCENES = ({}, {"fine": True}, {"many": 30, "images": 12}, {"strings": True, "categories": 11, "images": 9})


def ap(result, categories):
    return [result[f"AP_{one}"] for one in categories]


def boxes_of(records):
    return np.array([one["box"] for one in records], np.float64).reshape(-1, 4)


@pytest.mark.real_data
@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_the_numbers_of_tensorflow():
    document = json.loads(DATA.read_text())
    for case in document["cases"]:
        truth, found = ({name: [one[name] for one in case[side]] for name in case[side][0]} if case[side] else None
                        for side in ("gt", "dt"))  # fmt: skip
        found = found or {"category": [], "bbox_xywh": np.empty((0, 4)), "score": []}
        tables = (
            detmap.GroundTruth.from_arrays(
                image_ids=[1] * len(truth["category"]),
                category_ids=truth["category"],
                boxes=truth["bbox_xywh"],
                group_of=truth["is_group_of"],
            ),
            detmap.Detections.from_arrays(
                image_ids=[1] * len(found["category"]),
                category_ids=found["category"],
                boxes=found["bbox_xywh"],
                scores=found["score"],
            ),
        )
        result = detmap.evaluate(*tables, "openimages")
        assert {one: result[f"AP_{one}"] for one in case["expected"]} == case["expected"], case["name"]
    case = document["tf_unit_test"]
    rows = {side: [(image, one) for image, records in case[side].items() for one in records] for side in ("gt", "dt")}
    columns = {
        side: {
            "image_ids": [image for image, _ in own],
            "category_ids": [one["category"] for _, one in own],
            "boxes": [[one["box"][k] for k in (1, 0, 3, 2)] for _, one in own],
            "box_format": "xyxy",
        }
        for side, own in rows.items()
    }
    truth = detmap.GroundTruth.from_arrays(**columns["gt"], group_of=[one["is_group_of"] for _, one in rows["gt"]])
    found = detmap.Detections.from_arrays(**columns["dt"], scores=[one["score"] for _, one in rows["dt"]])
    result = detmap.evaluate(truth, found, "openimages", group_of="ignored", judged="all")
    assert {name.removeprefix("AP_"): value for name, value in result.items()} == case["expected"]


@pytest.mark.parametrize("kind", SCENES)
@pytest.mark.parametrize("seed", range(examples(12)))
def test_every_bit_of_drawn_scenes(seed, kind):
    scene = open_images_scenes.scene(seed, **kind)
    objects, detections, labels, categories, _ = scene
    tables = open_images_scenes.tables(*scene)
    result = detmap.evaluate(*tables, "openimages")
    expected = naive_open_images.evaluate(objects, detections, labels, categories)
    assert same_bits(ap(result, categories), list(expected.values()))
    for weight, group_of in ((1, "found"), (0, "ignored")):
        result = detmap.evaluate(*tables, "openimages", group_of=group_of, judged="all", iou_thresholds=[0.3])
        expected = naive_open_images.evaluate(
            objects, detections, labels, categories, weight=weight, judged=False, least=0.3
        )
        assert same_bits(ap(result, categories), list(expected.values()))


@pytest.mark.parametrize("absent", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(examples(6)))
def test_masks(seed, absent):
    scene = open_images_scenes.scene(seed, masks=True, fine=absent > 0, absent=absent)
    objects, detections, labels, categories, _ = scene
    expected = naive_open_images.evaluate(objects, detections, labels, categories, masks=True)
    result = detmap.evaluate(*open_images_scenes.tables(*scene), "openimages", iou_type="segm")
    assert same_bits(ap(result, categories), list(expected.values()))


@pytest.mark.parametrize("absent", [None, 0.5])
@pytest.mark.parametrize("seed", range(examples(4)))
def test_tallies_of_parts_and_saved_ones(seed, absent):
    scene = open_images_scenes.scene(seed, many=20, masks=absent is not None, absent=absent or 0.0)
    truth, found = open_images_scenes.tables(*scene)
    kind = "bbox" if absent is None else "segm"
    whole = detmap.match(truth, found, "openimages", iou_type=kind)
    result = detmap.DetectionResult(whole)
    assert_same_result(detmap.DetectionResult(detmap.Tally.from_bytes(whole.to_bytes())), result)
    side = np.arange(truth.images.ids.size) % 2 == 0
    parts = [
        detmap.match(truth, found, "openimages", iou_type=kind, image_ids=truth.images.ids[rows])
        for rows in (side, ~side)
    ]
    assert_same_result(detmap.DetectionResult(parts[1].merge(parts[0])), result)


@pytest.mark.parametrize("absent", [None, 0.5])
@pytest.mark.parametrize("protocol", ["openimages", "coco"])
@pytest.mark.parametrize("seed", range(examples(4)))
def test_matches_have_the_bits_of_the_tally(seed, protocol, absent):
    scene = open_images_scenes.scene(seed, many=20, masks=absent is not None, absent=absent or 0.0)
    truth, found = open_images_scenes.tables(*scene)
    given = {"iou_type": "bbox" if absent is None else "segm"}
    if protocol == "coco":
        given |= {"without_shape": "boxed", "group_of": "found", "ties": "reversed", "area_ranges": [("all", 0, 1e10)]}
        given |= {"iou_thresholds": [0.5], "max_dets": [100]}
    tally = detmap.match(truth, found, protocol, **given)
    matches = detmap.match_pairs(truth, found, protocol, iou=0.5, **given)
    order = np.lexsort((matches.tie_keys(), -matches.score, matches.category))
    assert same_bits(matches.score[order], tally.scores)
    assert np.array_equal(matches.outcome[order], tally.hit[:, 0] + 2 * tally.ignored[:, 0])
    assert matches.missed.size == tally.positives.sum() - tally.hit.sum()
    if protocol == "openimages":
        diagnosis = detmap.diagnose(truth, found, "openimages", **given)
        expected = detmap.evaluate(truth, found, "openimages", **given)["mAP"]
        assert diagnosis.tide()["AP"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(examples(4)))
def test_groups_leave_the_hits_of_cocos_rule_as_they_are(seed):
    """A detection that finds an object by itself is a hit whether groups are there or not; a group only ignores others."""
    truth, found = open_images_scenes.tables(*open_images_scenes.scene(seed, many=20))
    assert truth.group_of is not None
    alone = detmap.match(truth.take(np.flatnonzero(~truth.group_of)), found, "coco", iou_thresholds=[0.3, 0.5, 0.7])
    both = detmap.match(truth, found, "coco", iou_thresholds=[0.3, 0.5, 0.7], group_of="ignored")
    assert alone.hit.any()
    assert np.array_equal(both.hit, alone.hit)
    assert ((both.ignored & alone.ignored) == alone.ignored).all()
    assert (both.ignored != alone.ignored).any()


def test_under_other_protocols_groups_are_objects_like_others():
    scene = open_images_scenes.scene(3)
    truth, found = open_images_scenes.tables(*scene)
    plain = open_images_scenes.tables([{**one, "group": False} for one in scene[0]], *scene[1:])
    assert truth.group_of is not None
    assert plain[0].group_of is None
    for name in sorted({"coco", "voc2012", "lvis"}):
        assert_same_result(detmap.evaluate(truth, found, name), detmap.evaluate(*plain, name))


def test_images_without_labels_are_counted():
    scene = open_images_scenes.scene(1)
    truth, found = open_images_scenes.tables(*scene[:2], [], *scene[3:])
    notices = detmap.evaluate(truth, found, "openimages").notices
    assert notices["missing_neg_category_ids"] == truth.images.ids.size
    assert any("verified labels" in line for line in describe(notices))


def test_what_the_protocol_says_of_itself():
    said = PRESETS["openimages"].describe()
    for part in ("groups found", "categories that were looked for", "ties by reversed", "all-point-pairwise AP"):
        assert part in said
