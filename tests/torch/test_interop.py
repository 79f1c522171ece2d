"""The classes of Ultralytics, supervision and torchvision themselves: what `detmap.formats.interop` makes of them."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

import detmap
from detmap.formats.interop import from_supervision, from_torchvision, from_ultralytics

os.environ.setdefault("YOLO_OFFLINE", "true")
NAMES = {0: "cat", 1: "dog"}
BOXES = [[0.0, 0, 8, 8], [10, 10, 30, 20]]
SCORES = [0.5, 0.25]


def boxes(scored=(0, 1)):
    """As a model returns them: corners, score, class."""
    return torch.tensor([[*box, score, number] for box, score, number in zip(BOXES, SCORES, scored, strict=True)])


def test_results_of_ultralytics(tmp_path):
    """Boxes, masks, keypoints and oriented boxes; saved as text they are read as the same numbers but for their rounding."""
    results = pytest.importorskip("ultralytics.engine.results")
    image = np.zeros((40, 60, 3), np.uint8)
    masks = torch.zeros(2, 40, 60)
    masks[0, 2:6, 1:5] = 1
    points = torch.full((2, 4, 3), 0.5)
    given = {"orig_img": image, "path": "/data/a.jpg", "names": NAMES}
    one = results.Results(**given, boxes=boxes(), masks=masks, keypoints=points)
    empty = results.Results(**{**given, "path": "/data/b.jpg"}, boxes=torch.zeros(0, 6))
    found = from_ultralytics([one, empty])
    assert found.boxes.tolist() == BOXES
    assert found.scores.tolist() == SCORES
    assert found.images.ids.tolist() == ["a"]
    assert from_ultralytics([one, empty], iou_type="segm").shapes["segm"].areas().tolist() == [16, 0]
    small = results.Results(**given, boxes=boxes(), masks=torch.nn.functional.interpolate(masks[None], (20, 30))[0])
    assert from_ultralytics([small], iou_type="segm").shapes["segm"].sizes().tolist() == [[40, 60]] * 2
    assert len(from_ultralytics([one], iou_type="keypoints").shapes["keypoints"]) == 2
    turned = results.Results(**given, obb=torch.tensor([[20.0, 20, 10, 4, 0, 0.5, 1]]))
    assert from_ultralytics(turned).boxes[0].tolist() == pytest.approx([15, 18, 25, 22])
    (tmp_path / "labels").mkdir()
    results.Results(**given, boxes=boxes()).save_txt(tmp_path / "labels/a.txt", save_conf=True)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=["a"], category_ids=[0], boxes=[[0, 0, 8, 8]], categories=[0, 1], category_names=NAMES,
        images=["a"], image_sizes=[[40, 60]],
    )  # fmt: skip
    saved = detmap.read(tmp_path / "labels", "detections", ground_truth=truth)
    handed = from_ultralytics([one, empty], ground_truth=truth, unknown_images="ignore")
    corners = np.c_[saved.boxes[:, :2], saved.boxes[:, :2] + saved.boxes[:, 2:]]
    assert corners == pytest.approx(handed.boxes, abs=1e-3)
    assert saved.scores == pytest.approx(handed.scores, abs=1e-5)
    assert saved.categories.codes.tolist() == handed.categories.codes.tolist()


def test_detections_of_supervision():
    supervision = pytest.importorskip("supervision")
    given = {"xyxy": np.array(BOXES), "class_id": np.array([0, 1])}
    masks = np.zeros((2, 40, 60), bool)
    masks[0, 2:6, 1:5] = True
    one = supervision.Detections(
        **given, confidence=np.array(SCORES), mask=masks, data={"class_name": np.array(["cat", "dog"])}
    )
    found = from_supervision({"a": one, "b": supervision.Detections.empty()}, iou_type="segm")
    assert found.boxes.tolist() == BOXES
    assert found.shapes["segm"].areas().tolist() == [16, 0]
    truth = from_supervision({"a": supervision.Detections(**given)}, role="ground_truth", classes=["cat", "dog"])
    assert truth.category_names == ("cat", "dog")
    assert len(from_supervision(one, image_ids=["a"], ground_truth=truth)) == 2


@pytest.mark.parametrize("form", ["XYXY", "XYWH", "CXCYWH"])
def test_targets_of_torchvision(form):
    tensors = pytest.importorskip("torchvision.tv_tensors")
    table = torch.tensor(BOXES)
    if form != "XYXY":
        table[:, 2:] -= table[:, :2]
    if form == "CXCYWH":
        table[:, :2] += table[:, 2:] / 2
    held = tensors.BoundingBoxes(table, format=form, canvas_size=(40, 60))
    masks = tensors.Mask(torch.zeros(2, 40, 60, dtype=torch.uint8))
    masks[0, 2:6, 1:5] = 1
    target = {"boxes": held, "labels": torch.tensor([1, 2]), "image_id": torch.tensor([7]), "masks": masks}
    truth = from_torchvision([target], role="ground_truth", iou_type="segm")
    assert truth.boxes.tolist() == BOXES
    assert truth.images.ids.tolist() == [7]
    assert truth.shapes["segm"].areas().tolist() == [16, 0]
    output = {
        "boxes": torch.tensor(BOXES, requires_grad=True),
        "labels": torch.tensor([1, 2]),
        "scores": torch.tensor(SCORES),
    }
    found = from_torchvision([output], image_ids=[7], ground_truth=truth)
    assert detmap.evaluate(truth, found, iou_type="bbox")["AP50"] > 0.99
