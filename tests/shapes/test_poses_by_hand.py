"""Poses scored by hand: areas of boxes in either format, sigmas by category, and every message about them."""

from __future__ import annotations

import numpy as np
import pytest

import detmap
from detmap.errors import InputError
from detmap.shapes.keypoints import KeypointReader
from detmap.shapes.kinds import Place

POINTS = [[10, 10, 2, 30, 10, 2, 20, 30, 2], [110, 10, 2, 130, 10, 1, 120, 30, 0]]


def tables(box_format="xywh", categories=("a", "b"), found=POINTS, points=POINTS, **more):
    boxes = np.array([[5, 5, 30, 30], [105, 5, 40, 20.0]])
    if box_format == "xyxy":
        boxes[:, 2:] += boxes[:, :2]
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 1], category_ids=list(categories), boxes=boxes, box_format=box_format, keypoints=points,
        areas=[900, 800], source="t", **more,
    )  # fmt: skip
    moved = np.array(found, float)
    moved[:, 0::3] += 1
    detections = detmap.Detections.from_arrays(
        image_ids=[1, 1], category_ids=list(categories), keypoints=moved, scores=[0.9, 0.8], source="d"
    )
    return truth, detections


def similarity(area, sigma, labelled):
    """OKS of a pose whose every point is one pixel off."""
    return float(np.mean(np.exp([-(1 / (2 * sigma) ** 2 / (area + np.spacing(1)) / 2)] * labelled)))


@pytest.mark.parametrize("box_format", ["xywh", "xyxy"])
def test_areas_by_which_poses_are_measured(box_format):
    truth, detections = tables(box_format)
    for oks_area, areas in (("area", (900, 800)), ("bbox*0.53", (30 * 30 * 0.53, 40 * 20 * 0.53))):
        for sigma in (0.01, 0.02):
            likely = similarity(areas[0], sigma, 3), similarity(areas[1], sigma, 2)
            for iou in (min(likely) - 1e-6, min(likely) + 1e-6, max(likely) - 1e-6, max(likely) + 1e-6):
                result = detmap.evaluate(
                    truth, detections, iou_type="keypoints", sigmas=[sigma] * 3, oks_area=oks_area, iou_thresholds=[iou],
                    area_ranges={"all": (0, 1e10)},
                )  # fmt: skip
                assert result["AP"] == pytest.approx(np.mean([one >= iou for one in likely]), abs=1e-12)


def test_sigmas_of_each_category():
    truth, detections = tables(categories=("a", "b"))
    likely = similarity(900, 0.01, 3), similarity(800, 0.02, 2)
    for iou in (min(likely) - 1e-6, min(likely) + 1e-6, max(likely) + 1e-6):
        result = detmap.evaluate(
            truth, detections, iou_type="keypoints", sigmas={"b": [0.02] * 3, "a": [0.01] * 3, "z": [1.0]},
            iou_thresholds=[iou], area_ranges={"all": (0, 1e10)},
        )  # fmt: skip
        assert result["AP"] == pytest.approx(np.mean([one >= iou for one in likely]), abs=1e-12)


REMEDY = "give as many sigmas as there are points: sigmas=[...] (--sigmas FILE), or of each category its own"


@pytest.mark.parametrize(
    ("sigmas", "more", "says"),
    [
        ([0.1] * 2, {}, f"t: record 0, field 'keypoints': 3 keypoints where sigmas are of 2; {REMEDY}"),
        ({"a": [0.1] * 3}, {}, f"t: record 1, field 'keypoints': there are no sigmas of the category 'b'; {REMEDY}"),
        ({"a": [0.1] * 3, "b": [0.1] * 4}, {},
         f"t: record 1, field 'keypoints': 3 keypoints where sigmas are of 4; {REMEDY}"),
        ([0.1] * 3, {"found": [[1, 2, 3, 4, 5, 6]] * 2}, "d: record 0, field 'keypoints': 2 keypoints where there are 3"),
        ([0.1] * 17, {"points": [[1, 2, 2] * 14] * 2},
         "t: record 0, field 'keypoints': 14 keypoints where sigmas are of 17; "
         f"--protocol crowdpose has those of 14; {REMEDY}"),
    ],
)  # fmt: skip
def test_poses_that_do_not_fit_their_sigmas(sigmas, more, says):
    truth, detections = tables(**more)
    with pytest.raises(InputError) as caught:
        detmap.evaluate(truth, detections, iou_type="keypoints", sigmas=sigmas)
    assert str(caught.value) == says


def test_annotations_without_area():
    truth, detections = tables(notices={"missing_area": 2})
    with pytest.raises(InputError) as caught:
        detmap.evaluate(truth, detections, iou_type="keypoints", sigmas=[0.1] * 3)
    says = "t: field 'area': has annotations without area, by which keypoint similarity is measured; "
    assert str(caught.value) == f"{says}oks_area='bbox*0.53' (--oks-area 'bbox*0.53') takes that share of the box"
    for oks_area in ("bbox*0.53", "bbox*0.53, ranges by area"):
        assert detmap.evaluate(truth, detections, iou_type="keypoints", sigmas=[0.1] * 3, oks_area=oks_area)["AP"] > 0


# ------------------------------------------------------------------------------------------------------------------- records


def read(*texts, once=False, boxes=None, field="keypoints", kind="annotation ", fields=None):
    """Read the values of a field, None for a record without it, as two parts."""
    joined, spans = b"", []
    for text in texts:
        spans.append((-1, -1) if text is None else (len(joined), len(joined) + len(text)))
        joined += b"" if text is None else text.encode() + b","
    data = np.frombuffer(joined + b" " * 16, np.uint8)
    reader = KeypointReader(data.size, field)
    if once:
        reader.scored_once(None)
    cut = len(spans) // 2
    rows = np.array(spans, np.int64).reshape(-1, 2)
    parts = [reader.read(data, 0, rows[:cut]), reader.read(data, 0, rows[cut:])]
    return reader.column(parts, Place("s", kind, None, boxes, fields or {}))


def test_lists_of_points():
    column, notices = read("[1,2,2,3,4,0]", "[5.5,6,1]", "[0,0,0]")
    arrays = column.arrays()
    assert arrays["values"].tolist() == [1, 2, 2, 3, 4, 0, 5.5, 6, 1, 0, 0, 0]
    assert arrays["starts"].tolist() == [0, 6, 9, 12]
    assert arrays["labelled"].tolist() == [1, 1, 0]
    assert column.boxes.tolist() == [[1, 2, 2, 2], [5.5, 6, 0, 0], [0, 0, 0, 0]]
    assert notices == {"missing_num_keypoints": 3, "missing_bbox": 3}
    counted = np.array([7, 8, 9])
    boxes = np.array([[0, 0, 1, 1.0], [np.nan] * 4, [np.nan] * 4])
    column, notices = read("[1,2,2]", "[1,2,2]", "[1,2,2]", boxes=boxes, fields={"num_keypoints": counted})
    assert column.labelled.tolist() == [7, 8, 9]
    assert notices == {"missing_bbox": 2}
    column, notices = read("[1,2,2,3,4,0]", "[5.5,6,1]", once=True, kind="")
    assert notices == {}
    assert column.poses.width == 2
    assert column.sizes().tolist() == [6, 3]
    assert [column.poses.values[a:b].tolist() for a, b in zip(column.poses.starts, column.poses.stops, strict=True)] == [
        [1, 2, 3, 4], [5.5, 6]
    ]  # fmt: skip


REMEDIED = "; keypoints are scored: each record needs its own"


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (("[1,2,2]", "[1,2]"), "annotation 1, field 'keypoints': must be numbers x, y, v, x, y, v and so on, three for each "
         f"point; there are 2{REMEDIED}"),
        (("[1,2,2]", "[]", "[1]"), "annotation 1, field 'keypoints': must be numbers x, y, v, x, y, v and so on, three for "
         f"each point; there are 0{REMEDIED}"),
        (("[1,2,2]", '"a"'), f"annotation 1, field 'keypoints': must be numbers x, y, v, x, y, v and so on{REMEDIED}"),
        (("[1,2,2]", '[1,"a",2]'), f"annotation 1, field 'keypoints': must be numbers x, y, v, x, y, v and so on{REMEDIED}"),
        (("[1,2,2]", "[1,2,2]", None), f"annotation 2, field 'keypoints': is missing{REMEDIED}"),
        (("[1,2,2]", "[1,2,2]", "[1,2e150,2]"), "annotation 2, field 'keypoints': a coordinate is too far away"),
        ((None, None), "field 'keypoints': no record has keypoints"),
    ],
)  # fmt: skip
def test_lists_that_are_refused(texts, says, once):
    with pytest.raises(InputError) as caught:
        read(*texts, once=once)
    assert str(caught.value) == f"s: {says}"
    if None in texts:
        return
    with pytest.raises(InputError) as caught:
        read(*texts, field="foot_kpts", kind="")
    record = says.partition(",")[0].removeprefix("annotation ")
    assert str(caught.value).startswith(f"s: record {record}, field 'foot_kpts': ")


def test_records_that_hold_boxes():
    with pytest.raises(InputError) as caught:
        read(None, None, boxes=np.zeros((2, 4)))
    held = "It holds boxes: iou_type='bbox' (--iou-type bbox) scores those"
    assert str(caught.value) == f"s: field 'keypoints': no record has keypoints. {held}"
