"""Ultralytics' own validator on detmap, by way of the patch: pycocotools' numbers to the last bit.

With faster_coco_eval it reports the same, but for the last bit: that one takes the mean in another order.
"""

from __future__ import annotations

import json
import logging
import os
from types import SimpleNamespace

import pytest

from detmap import patch_pycocotools

os.environ.setdefault("YOLO_OFFLINE", "true")
pytest.importorskip("ultralytics")
pytest.importorskip("faster_coco_eval")
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from ultralytics.models.yolo.detect import DetectionValidator
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
