"""torchmetrics' `MeanAveragePrecision` on detmap, by way of the patch: the numbers are those of pycocotools."""

from __future__ import annotations

import pytest
import torch
from test_tensors import WORKLOAD, pairs

from detmap import Evaluator, patch_pycocotools

pytest.importorskip("torchmetrics")
pytest.importorskip("torchvision")
from torchmetrics.detection import MeanAveragePrecision


def metric(**options):
    made = MeanAveragePrecision(box_format="xywh", class_metrics=True, **options)
    for _, prediction, target in pairs(*WORKLOAD):
        prediction = {key: value.float() if value.is_floating_point() else value for key, value in prediction.items()}
        target = {key: value for key, value in target.items() if value is not None}
        target["boxes"] = target["boxes"].float()
        made.update([prediction], [target])
    return made.compute()


def test_detmap_as_the_backend():
    expected = metric(backend="pycocotools")
    with patch_pycocotools() as patch:
        found = metric(backend="pycocotools")
    assert patch.replaced
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def test_evaluator_instead():
    expected = metric(backend="pycocotools")
    evaluator = Evaluator(box_format="xywh")
    for _, prediction, target in pairs(*WORKLOAD):
        prediction["boxes"], target["boxes"] = prediction["boxes"].float(), target["boxes"].float()
        prediction["scores"] = prediction["scores"].float()
        del target["masks"]
        evaluator.update(prediction, target)
    result = evaluator.compute()
    for name, theirs in {"AP": "map", "AP50": "map_50", "AP75": "map_75", "AR_100": "mar_100"}.items():
        assert torch.tensor(result[name], dtype=torch.float32) == expected[theirs]
