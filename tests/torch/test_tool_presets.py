"""The protocols named after tools give the numbers of the tools' own classes, on boxes without equal scores."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_presets import of_classes, tables, workload

import detmap

IMAGES = 12
SEEDS = range(4)


def sides(seed, cut=0.0):
    """Ground truth and detections, as rows of each image, detections by score, those below the cut left out."""
    truth, found = workload(seed, images=IMAGES)
    found = sorted((row for row in found if row[3] >= cut), key=lambda row: -row[3])
    for image in range(IMAGES):
        yield [row for row in truth if row[0] == image], [row for row in found if row[0] == image]


def evaluated(seed, name):
    return detmap.evaluate(*tables(*workload(seed, images=IMAGES), images=IMAGES), name)


def boxes(rows):
    return np.array([row[2] for row in rows], np.float64).reshape(-1, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_ultralytics(seed):
    """Its matching and its AP of every class at ten thresholds, to the last bit."""
    os.environ.setdefault("YOLO_OFFLINE", "true")
    pytest.importorskip("ultralytics")
    from ultralytics.models.yolo.detect import DetectionValidator
    from ultralytics.utils.metrics import ap_per_class

    one = SimpleNamespace(iouv=torch.linspace(0.5, 0.95, 10), niou=10)
    one.match_predictions = lambda *given: DetectionValidator.match_predictions(one, *given)
    columns = []
    for truth, found in sides(seed, 0.001):
        labels = [row for row in truth if not row[3]]  # its labels hold no crowds
        predicted, given = (
            {"bboxes": torch.tensor(boxes(rows)), "cls": torch.tensor([float(row[1]) for row in rows])}
            for rows in (found, labels)
        )
        right = DetectionValidator._process_batch(one, predicted, given)["tp"]
        scores = np.array([row[3] for row in found])
        columns.append((right, scores, predicted["cls"].numpy(), given["cls"].numpy()))
    tp, scores, classes, labels = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    made = ap_per_class(tp, scores, classes, labels)
    result = evaluated(seed, "ultralytics")
    ours = of_classes(result)
    for category, values in zip(made[6].tolist(), made[5].tolist(), strict=True):
        assert ours[int(category)] == values
    assert result["AP"] == pytest.approx(made[5].mean(), abs=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_torchmetrics(seed):
    """Every number that it returns, in its single precision."""
    pytest.importorskip("torchmetrics")
    pytest.importorskip("torchvision")
    from torchmetrics.detection import MeanAveragePrecision

    metric = MeanAveragePrecision(box_format="xyxy", class_metrics=True, backend="pycocotools")
    for truth, found in sides(seed):
        predicted, given = (
            {
                "boxes": torch.tensor(boxes(rows)).float(),
                "labels": torch.tensor([row[1] for row in rows], dtype=torch.int64),
            }
            for rows in (found, truth)
        )
        predicted["scores"] = torch.tensor([row[3] for row in found]).float()
        given["iscrowd"] = torch.tensor([int(row[3]) for row in truth], dtype=torch.int64)
        metric.update([predicted], [given])
    made = metric.compute()
    result = evaluated(seed, "torchmetrics")
    names = {"map": "AP", "map_50": "AP50", "map_75": "AP75", "mar_1": "AR_1", "mar_10": "AR_10", "mar_100": "AR_100"}
    names |= {f"map_{size}": f"AP_{size}" for size in ("small", "medium", "large")}
    for theirs, ours in names.items():
        assert made[theirs].item() == np.float32(np.nan_to_num(result[ours], nan=-1)), theirs
    protocol = detmap.PRESETS["torchmetrics"]
    assert torch.linspace(0, 1, 101).tolist() == list(protocol.recall_thresholds)
    assert metric.iou_thresholds == list(protocol.iou_thresholds)


@pytest.mark.parametrize("seed", SEEDS)
def test_supervision(seed):
    """Its AP, over all thresholds and at 0.5 and 0.75, within its single precision."""
    supervision = pytest.importorskip("supervision")
    from supervision.metrics import MeanAveragePrecision

    metric = MeanAveragePrecision()
    for truth, found in sides(seed):
        predicted, given = (
            supervision.Detections(
                xyxy=boxes(rows).astype(np.float32), class_id=np.array([row[1] for row in rows], int)
            )
            for rows in (found, truth)
        )
        predicted.confidence = np.array([row[3] for row in found], np.float32)
        given.data = {
            "iscrowd": np.array([int(row[3]) for row in truth]),
            "area": np.prod(np.diff(boxes(truth).reshape(-1, 2, 2), axis=1), axis=(1, 2)),
        }
        metric.update(predicted, given)
    made = metric.compute()
    result = evaluated(seed, "supervision")
    for theirs, ours in (("map50_95", "AP"), ("map50", "AP50"), ("map75", "AP75")):
        assert getattr(made, theirs) == pytest.approx(result[ours], abs=1e-7)
