"""Ultralytics: the callback that scores validations, and LVIS by way of the patch."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import executed
import numpy as np
import pytest
import torch

import detmap
from detmap import OptionError, patch_pycocotools

os.environ.setdefault("YOLO_OFFLINE", "true")
pytest.importorskip("ultralytics")
pytest.importorskip("faster_coco_eval")
from PIL import Image
from ultralytics import YOLO
from ultralytics.models.yolo.detect import DetectionValidator
from ultralytics.utils import SETTINGS

pytestmark = pytest.mark.filterwarnings("default")  # of Ultralytics and what it needs


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Six images with objects of two classes; of the model's predictions some are near objects."""
    monkeypatch.setitem(SETTINGS, "datasets_dir", str(tmp_path))
    rng = np.random.default_rng(8)
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    for i in range(6):
        Image.new("RGB", [int(rng.integers(40, 90))] * 2, (i, 0, 0)).save(tmp_path / "images" / f"{i}.png")
        rows = [f"{rng.integers(0, 2)} " + " ".join(map(str, [*rng.uniform(0.4, 0.6, 2), 0.4, 0.5])) for _ in range(i)]
        (tmp_path / "labels" / f"{i}.txt").write_text("\n".join(rows))
    path = tmp_path / "data.yaml"
    path.write_text(f"path: {tmp_path}\ntrain: images\nval: images\nnames: {{0: cat, 1: dog}}\n")

    def found(self, predictions):
        made = []
        for _ in range(len(predictions[0] if isinstance(predictions, tuple | list) else predictions)):
            centre, half = rng.normal(32, 4, (9, 2)), np.array([12.8, 16])  # of images of 64 x 64
            boxes = torch.from_numpy(np.concatenate([centre - half, centre + half], axis=1).astype(np.float32))
            classes, scores = rng.integers(0, 2, 9), np.sort(rng.random(9).astype(np.float32))[::-1].copy()
            made.append({"bboxes": boxes, "conf": torch.from_numpy(scores), "cls": torch.from_numpy(classes).float()})
        return [{**one, "extra": one["bboxes"][:, :0]} for one in made]

    monkeypatch.setattr(DetectionValidator, "postprocess", found)
    return path


def test_every_validation_is_scored(data):
    """As what the validator writes for COCO's AP, boxes with three decimals; and by its own protocol."""
    from detmap.integrations.ultralytics import Validation

    model, validators = YOLO("yolo11n.yaml", task="detect"), []
    validation, own = Validation(model), Validation(model, "ultralytics")
    model.add_callback("on_val_end", validators.append)
    options = {
        "data": str(data),
        "imgsz": 64,
        "batch": 4,
        "workers": 0,
        "plots": False,
        "verbose": False,
        "rect": False,
    }
    for number in range(2):  # other predictions are drawn
        theirs = model.val(**options, save_json=True, project=str(data.parent), device="cpu")
        assert len(validators) == number + 1
        assert [name for _, name in validation.result.categories][:2] == ["cat", "dog"]
        assert validation.result.tally.image_ids.size == 6
        written = detmap.evaluate(validators[-1].gdict, validators[-1].jdict)
        assert 0.1 < written["AP50"] < 0.95
        for name, value in written.items():
            assert validation.result[name] == pytest.approx(value, abs=1e-9, nan_ok=True)
        assert own.result["AP50"] == pytest.approx(theirs.box.map50, abs=1e-6)


def test_refusals(data):
    from detmap.integrations.ultralytics import Validation

    with pytest.raises(OptionError, match="max_dets"):
        Validation(YOLO("yolo11n.yaml"), max_dets=0)
    validation = Validation(YOLO("yolo11n.yaml"))
    with pytest.raises(OptionError, match="oriented boxes"):
        validation._start(SimpleNamespace(args=SimpleNamespace(task="obb")))


def test_lvis_by_the_patch(tmp_path):
    """`lvis_style=True`: the numbers of faster_coco_eval, those of rare, common and frequent categories too."""
    truth = json.loads((executed.ROOT / "fixtures/lvis/ground_truth.json").read_text())
    known = {image["id"] for image in truth["images"]}
    every = json.loads((executed.ROOT / "fixtures/coco/detections.json").read_text())
    results = [result for result in every if result["image_id"] in known]
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/lvis_v1_val.json").write_text(json.dumps(truth))
    (tmp_path / "predictions.json").write_text(json.dumps(results))

    def reported():
        validator = DetectionValidator(save_dir=tmp_path, args={"save_json": True, "split": "val"})
        validator.data, validator.gdict, validator.training = {"path": tmp_path}, None, False
        validator.is_coco, validator.is_lvis, validator.jdict = False, True, results
        files = [f"{image['id']:012d}.jpg" for image in truth["images"]]
        validator.dataloader = SimpleNamespace(dataset=SimpleNamespace(im_files=files))
        return validator.eval_json({})

    expected = reported()
    with patch_pycocotools() as patch:
        found = reported()
    assert "faster_coco_eval.COCOeval_faster" in patch.replaced
    assert {"metrics/APr(B)", "metrics/APc(B)", "metrics/APf(B)", "fitness"} <= set(expected)
    assert found == pytest.approx(expected, rel=1e-14)
