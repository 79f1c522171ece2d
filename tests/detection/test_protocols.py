"""What a protocol decides: presets, thresholds to the last bit, and options that cannot be."""

from __future__ import annotations

import dataclasses
import math

import naive
import numpy as np
import pytest
import workloads
from support import assert_same_result, detections_of, evaluate, ground_truth_of

import detmap
from detmap.decisions import decisions_of
from detmap.detection.protocols import COCO, PRESETS, UNLIMITED, VOC2007, VOC2012, Protocol, parse_thresholds, resolve


def test_the_numbers_of_coco():
    """linspace's, which are not i / 100."""
    assert COCO.iou_thresholds == tuple(np.linspace(0.5, 0.95, 10).tolist())
    assert COCO.iou_thresholds[8] == 0.8999999999999999
    assert COCO.recall_thresholds == tuple(np.linspace(0, 1, 101).tolist())
    assert [i for i in range(101) if COCO.recall_thresholds[i] != i / 100] == [35, 41, 47, 57, 69, 70, 82, 83, 94, 95]
    assert [list(pair) for _, *pair in COCO.area_ranges] == naive.AREA_RANGES
    assert COCO.max_dets == (1, 10, 100)
    assert COCO.epsilon == np.spacing(1)


def test_the_numbers_of_voc():
    assert VOC2007.iou_thresholds == VOC2012.iou_thresholds == (0.5,)
    assert VOC2007.recall_thresholds == tuple(np.arange(0, 1.1, 0.1).tolist())
    assert all(VOC2007.recall_thresholds[i] > i / 10 for i in (3, 6, 7))
    assert not VOC2007.strict
    assert VOC2007.inclusive_pixels
    assert (VOC2007.interpolation, VOC2012.interpolation) == ("11-point", "all-point")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("0.5:0.95:0.05", tuple(np.linspace(0.5, 0.95, 10).tolist())),
        ("0:1:0.01", tuple(np.linspace(0, 1, 101).tolist())),
        ("0.5", (0.5,)),
        ("0.3,0.5, 0.7", (0.3, 0.5, 0.7)),
        ("0.5:0.5:0.1", (0.5,)),
        (0.5, (0.5,)),
        (1, (1.0,)),
        ([0.9, 0.5], (0.9, 0.5)),
        (np.array([0.25, 0.5], np.float32), (0.25, 0.5)),
        (iter([0.5]), (0.5,)),
    ],
)
def test_thresholds(spec, expected):
    got = parse_thresholds(spec)
    assert got == expected
    assert all(type(value) is float for value in got)


@pytest.mark.parametrize(
    "spec",
    ["", "half", "0.5:0.95", "0.5:0.95:0.04", "0.5:0.9:0", "0.5:0.9:nan", "0.9:0.5:0.1", "0:1:1e-9", "1:2:3:4", "0.5,"],
)
def test_thresholds_that_cannot_be(spec):
    with pytest.raises(detmap.OptionError) as caught:
        parse_thresholds(spec)
    assert repr(spec) in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"iou_thresholds": []}, "iou_thresholds must be one or more finite numbers"),
        ({"iou_thresholds": [0.5, math.nan]}, "iou_thresholds must be one or more finite numbers"),
        ({"recall_thresholds": [math.inf]}, "recall_thresholds must be one or more finite numbers"),
        ({"iou_thresholds": [0.5, 0.5]}, "iou_thresholds repeat a value"),
        ({"iou_thresholds": object()}, "cannot read the option"),
        ({"area_ranges": {}}, "at least one area range is needed"),
        ({"area_ranges": {"all": (5, 1)}}, "area range 'all' must be low:high with low <= high, not 5.0:1.0"),
        ({"area_ranges": {"all": (math.nan, 1)}}, "area range 'all' must be low:high"),
        ({"area_ranges": {"all": 5}}, "area range 'all': must be least and largest area"),
        ({"area_ranges": [(0, 1)]}, "cannot read the option"),
        ({"max_dets": []}, "max_dets must be positive integers"),
        ({"max_dets": [0, 10]}, "max_dets must be positive integers"),
        ({"max_dets": [1.5]}, "max_dets must be positive integers"),
        ({"max_dets": "ten"}, "max_dets must be positive integers"),
        ({"max_dets": True}, "max_dets must be positive integers"),
    ],
)
def test_options_that_cannot_be(options, says):
    dataset, results = workloads.make_coco(0)
    with pytest.raises(detmap.OptionError) as caught:
        detmap.evaluate(ground_truth_of(dataset), detections_of(results), **options)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("matching", "greedy", "matching must be one of best-free, first-free, best, by-object, by-object-twice, not"),
        ("interpolation", "12-point", "interpolation must be one of grid, step"),
        ("ties", "random", "ties must be one of image, file"),
        ("ignore", ("occluded",), "ignore must be one of crowd, difficult"),
        ("max_dets", (10, 1), "max_dets must ascend without repeats"),
        ("max_dets", 0, "max_dets must be positive integers"),
        ("max_dets", 1.5, "max_dets cannot be 1.5: it must be a list"),
        ("ignore", 5, "ignore cannot be 5: it must be a list"),
        ("groups", None, "groups cannot be None: it must be a list"),
        ("area_ranges", (("a", 0, 1), ("a", 1, 2)), "two area ranges have one name"),
    ],
)
def test_protocols_that_cannot_be(field, value, says):
    with pytest.raises(detmap.OptionError) as caught:
        dataclasses.replace(COCO, **{field: value})
    assert says in str(caught.value)


def test_one_cap_may_stand_alone():
    for cap in (50, np.int64(50)):
        assert dataclasses.replace(COCO, max_dets=cap).max_dets == (50,)


@pytest.mark.parametrize("name", ["voc2007", "voc2012", "openimages", "dota", "dota-area"])
def test_rules_without_areas_know_no_largest_one(name):
    side = 3e5  # 9e10 square pixels; COCO's ranges end at 1e10
    kind = {"boxes": [[0, 0, side, side]]}
    if name.startswith("dota"):
        kind = {"rotated": [[side / 2, side / 2, side, side, 0.0]]}
    truth = detmap.GroundTruth.from_arrays(image_ids=["a"], category_ids=["b"], **kind)
    found = detmap.Detections.from_arrays(image_ids=["a"], category_ids=["b"], scores=[0.5], **kind)
    assert detmap.evaluate(truth, found, name)["mAP"] == pytest.approx(1.0, abs=1e-15)


def test_an_unknown_protocol():
    with pytest.raises(detmap.OptionError, match="unknown protocol 'cityscapes'; one of: coco, voc2007, voc2012"):
        resolve("cityscapes")


def test_resolve():
    assert resolve("coco") is PRESETS["coco"]
    assert resolve(VOC2007) is VOC2007
    changed = resolve("coco", max_dets=[10, None, 1, 10], area_ranges={"any": (0, 5)}, use_categories=False)
    assert changed.max_dets == (1, 10, UNLIMITED)
    assert changed.area_ranges == (("any", 0.0, 5.0),)
    assert not changed.use_categories
    assert changed.iou_thresholds == COCO.iou_thresholds


def test_a_protocol_is_plain_values():
    for protocol in PRESETS.values():
        told = protocol.to_dict()
        assert told["iou_thresholds"] == list(protocol.iou_thresholds)
        assert told["max_dets"] == [None if cap == UNLIMITED else cap for cap in protocol.max_dets]
        declared = decisions_of(Protocol).items()
        assert set(told) >= {name for name, made in declared if made.since == "0.1"}
        later = {name: getattr(protocol, name) for name, made in declared if made.since != "0.1"}
        assert {name for name in later if name in told} == {
            name for name in later if later[name] != Protocol.__dataclass_fields__[name].default
        }


def test_names_of_metrics():
    """By cap, by area, and for VOC by class."""
    dataset, results = workloads.make_coco(2, images=6, crowded_cell=True)
    result = evaluate(dataset, results)
    assert list(result)[6:9] == ["AR_1", "AR_10", "AR_100"]
    assert result["AP50"] == result.AP50
    truth, found = ground_truth_of(dataset), detections_of(results)
    other = detmap.evaluate(truth, found, max_dets=[500, 3], area_ranges={"all": (0, 1e10), "tiny": (0, 64)})
    assert list(other) == ["AP", "AP50", "AP75", "AP_tiny", "AR_3", "AR_500", "AR_tiny"]
    assert not math.isnan(other["AP"])  # a cap of one's own never makes AP undefined
    assert math.isnan(detmap.evaluate(truth, found, iou_thresholds=0.3)["AP50"])
    unlimited = detmap.evaluate(truth, found, max_dets=[None])
    assert "AR" in unlimited
    voc = detmap.evaluate(truth, found, "voc2007")
    assert list(voc) == ["mAP", *(f"AP_{name}" for _, name in voc.categories)]
    with pytest.raises(AttributeError, match="no attribute or metric 'AP_huge'"):
        _ = result.AP_huge
    with pytest.raises(KeyError):
        _ = result["AP_huge"]


def test_a_protocol_of_ones_own():
    """Every decision is open; a single-threshold AP by the step rule is the mean over the classes of that AP."""
    dataset, results = workloads.make_coco(2, images=6, crowded_cell=True)
    own = dataclasses.replace(COCO, name="own", iou_thresholds=(0.5,), interpolation="step", epsilon=0.0)
    result = detmap.evaluate(ground_truth_of(dataset), detections_of(results), own)
    twin = []
    for ranking in naive.coco_rankings(
        [item["id"] for item in dataset["images"]],
        [item["id"] for item in dataset["categories"]],
        dataset["annotations"],
        results,
        [0.5],
        (0, 1e10),
        100,
    ):
        if ranking is not None and ranking["positives"]:
            counted = [bool(h) for h, skip in zip(ranking["hit"][0], ranking["ignored"][0], strict=True) if not skip]
            twin.append(naive.step_ap(naive.ranks_of(counted), ranking["positives"]))
    assert result["AP"] == np.mean(twin)


def test_options_given_as_text_are_those_given_as_numbers():
    dataset, results = workloads.make_coco(2, images=6)
    assert_same_result(
        detmap.evaluate(ground_truth_of(dataset), detections_of(results), iou_thresholds="0.5:0.95:0.05"),
        evaluate(dataset, results),
    )


def test_thresholds_of_a_variant_may_be_text_too():
    """Never the characters of the text one by one."""
    coco = detmap.PRESETS["coco"]
    assert dataclasses.replace(coco, iou_thresholds="0.75:0.95:0.05").iou_thresholds == coco.iou_thresholds[5:]
    assert dataclasses.replace(coco, iou_thresholds="1").iou_thresholds == (1.0,)
    assert dataclasses.replace(coco, iou_thresholds=[np.float32(0.5)]).iou_thresholds == (0.5,)


@pytest.mark.parametrize("base", ["coco", "voc2012"])
@pytest.mark.parametrize("ignore", [(), ("difficult",)])
def test_a_crowd_that_is_not_ignored_is_an_object_like_any_other(base, ignore):
    """Only one that is ignored matches any number of detections: of others there would be more hits than objects."""
    one = {"image_ids": [1, 1], "category_ids": [1, 1], "boxes": [[0, 0, 30, 30], [60, 60, 20, 20]]}
    truth = detmap.GroundTruth.from_arrays(**one, crowd=[True, False])
    found = detmap.Detections.from_arrays(
        image_ids=[1, 1, 1],
        category_ids=[1, 1, 1],
        boxes=[[0, 0, 25, 25], [0, 0, 28, 28], [60, 60, 20, 20]],
        scores=[0.9, 0.8, 0.7],
    )
    protocol = dataclasses.replace(resolve(base), name="crowds found", ignore=ignore, crowd_overlap=True)
    assert detmap.match_pairs(truth, found, protocol, iou=0.5).outcome.tolist() == [1, 0, 1]
    result = detmap.evaluate(truth, found, protocol)
    assert_same_result(result, detmap.evaluate(truth, found, dataclasses.replace(protocol, crowd_overlap=False)))
    assert_same_result(result, detmap.evaluate(detmap.GroundTruth.from_arrays(**one), found, protocol))
