"""Ultralytics' own validator on detmap, by way of the patch: pycocotools' numbers to the last bit.

With faster_coco_eval it reports the same, but for the last bit: that one takes the mean in another order.
"""

from __future__ import annotations

import json
import logging
import os
from types import SimpleNamespace

import pytest
import shape_workloads as made

from detmap import patch_pycocotools

os.environ.setdefault("YOLO_OFFLINE", "true")
pytest.importorskip("ultralytics")
pytest.importorskip("faster_coco_eval")
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from ultralytics.models.yolo.detect import DetectionValidator
from ultralytics.models.yolo.pose import PoseValidator
from ultralytics.models.yolo.segment import SegmentationValidator
from ultralytics.utils import LOGGER
from workloads import make_coco


def reported(folder, ids, *, held):
    """What the validator adds to its statistics for files (or, as during training, for what they hold), and what it says."""
    truth, results = (folder / f"{name}.json" for name in ("instances", "predictions"))
    validator = DetectionValidator(save_dir=folder, args={"save_json": True})
    validator.jdict = json.loads(results.read_text())
    validator.is_coco, validator.is_lvis = True, False
    validator.gdict = json.loads(truth.read_text()) if held else None
    validator.training = False
    validator.dataloader = SimpleNamespace(dataset=SimpleNamespace(im_files=[f"images/{i:012d}.jpg" for i in ids]))
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    LOGGER.addHandler(handler)
    try:
        given = (validator.jdict, validator.gdict) if held else (results, truth)
        return validator.coco_evaluate({}, *given), [line for line in lines if "@[" in line], lines
    finally:
        LOGGER.removeHandler(handler)


@pytest.mark.parametrize("held", [False, True])
def test_detmap_in_the_validator(tmp_path, held):
    truth, results = make_coco(31, images=11, categories=5, crowds=0.15, over_100=True)
    (tmp_path / "instances.json").write_text(json.dumps(truth))
    (tmp_path / "predictions.json").write_text(json.dumps(results))
    ids = [image["id"] for image in truth["images"]][1:]  # not all: the validator says which
    expected, summary, _ = reported(tmp_path, ids, held=held)
    with patch_pycocotools() as patch:
        found, own_summary, lines = reported(tmp_path, ids, held=held)
    assert "faster_coco_eval.COCOeval_faster" in patch.replaced
    assert not [line for line in lines if "unable to run" in line]
    assert own_summary == summary
    assert len(summary) == 14
    assert found == pytest.approx(expected, rel=1e-14)
    reference = COCO(str(tmp_path / "instances.json"))
    evaluation = COCOeval(reference, reference.loadRes(results), "bbox")
    if not held:
        evaluation.params.imgIds = ids
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    names = ("50-95", "50", None, "_small", "_medium", "_large")
    for name, value in zip(names, evaluation.stats[:6].tolist(), strict=True):
        assert name is None or found[f"metrics/mAP{name}(B)"] == value


def evaluated(validator_class, folder, truth, results):
    """What a validator adds to its statistics for the files of COCO's val2017, and what it says."""
    validator = validator_class(save_dir=folder, args={"save_json": True})
    validator.data, validator.gdict, validator.training = {"path": folder}, None, False
    validator.is_coco, validator.is_lvis = True, False
    validator.jdict = results
    files = [f"images/{image['id']:012d}.jpg" for image in truth["images"]]
    validator.dataloader = SimpleNamespace(dataset=SimpleNamespace(im_files=files))
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    LOGGER.addHandler(handler)
    try:
        return validator.eval_json({}), lines
    finally:
        LOGGER.removeHandler(handler)


@pytest.mark.parametrize(
    ("validator", "name", "kind", "make"),
    [
        (SegmentationValidator, "instances", "segm", lambda seed: made.mask_workload(seed, "all")),
        (PoseValidator, "person_keypoints", "keypoints", lambda seed: made.pose_workload(seed, boxes=True)),
    ],
    ids=["masks", "poses"],
)
def test_detmap_in_the_validators_of_masks_and_poses(tmp_path, validator, name, kind, make):
    """Boxes and shapes, one after the other from one object of results: pycocotools' numbers."""
    truth, results = made.ample(make)
    results = [result for result in results if kind in ("keypoints",) or "segmentation" in result]
    path = tmp_path / "annotations" / f"{name}_val2017.json"
    path.parent.mkdir()
    path.write_text(json.dumps(truth))
    (tmp_path / "predictions.json").write_text(json.dumps(results))
    expected, original = evaluated(validator, tmp_path, truth, results)
    with patch_pycocotools():
        found, lines = evaluated(validator, tmp_path, truth, results)
    assert not [line for line in lines if "unable to run" in line]
    assert [line for line in lines if "@[" in line] == [line for line in original if "@[" in line]
    assert found == pytest.approx(expected, rel=1e-12)
    reference = COCO(str(path))
    for letter, kind_of_shape in (("B", "bbox"), ("M" if kind == "segm" else "P", kind)):
        evaluation = COCOeval(reference, reference.loadRes(json.loads(json.dumps(results))), kind_of_shape)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        assert found[f"metrics/mAP50-95({letter})"] == evaluation.stats[0]
        assert found[f"metrics/mAP50({letter})"] == evaluation.stats[1]
