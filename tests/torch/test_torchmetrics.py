"""torchmetrics' `MeanAveragePrecision` on detmap, by way of the patch: the numbers are those of pycocotools."""

from __future__ import annotations

import json

import pytest
import shape_workloads as made
import torch
from pycocotools.coco import COCO
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


def images_with_masks(dataset, results):
    """Predictions and targets of each image: boxes, and masks as bitmaps."""
    truth = COCO()
    truth.dataset = json.loads(json.dumps(dataset))
    truth.createIndex()
    found = truth.loadRes(json.loads(json.dumps(results)))
    for image in dataset["images"]:
        sides = []
        for api in (found, truth):
            anns = api.loadAnns(api.getAnnIds(imgIds=[image["id"]]))
            masks = [torch.from_numpy(api.annToMask(ann)).bool() for ann in anns]
            boxes = [[float(v) for v in ann["bbox"]] for ann in anns]
            side = {
                "boxes": torch.tensor(boxes).reshape(-1, 4),
                "masks": torch.stack(masks) if masks else torch.zeros((0, image["height"], image["width"])).bool(),
                "labels": torch.tensor([ann["category_id"] for ann in anns], dtype=torch.int64),
            }
            if api is found:
                side["scores"] = torch.tensor([ann["score"] for ann in anns])
            else:
                side["area"] = torch.tensor([ann["area"] for ann in anns], dtype=torch.float64)
                side["iscrowd"] = torch.tensor([ann["iscrowd"] for ann in anns], dtype=torch.int64)
            sides.append(side)
        yield sides


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # in pycocotools, with numpy 2
@pytest.mark.parametrize("backend", ["pycocotools", "faster_coco_eval"])
@pytest.mark.parametrize("kinds", ["segm", ("bbox", "segm")])
def test_masks_and_both(kinds, backend):
    """Every number, per class too; of faster_coco_eval all but the last bits."""
    data = made.ample(made.mask_workload)

    def computed():
        made_up = MeanAveragePrecision(iou_type=kinds, box_format="xywh", class_metrics=True, backend=backend)
        for prediction, target in images_with_masks(*data):
            made_up.update([prediction], [target])
        return made_up.compute()

    expected = computed()
    with patch_pycocotools() as patch:
        found = computed()
    assert patch.replaced
    assert set(found) == set(expected)
    assert expected["map" if kinds == "segm" else "segm_map"] > 0
    for name, value in expected.items():
        if backend == "pycocotools":
            assert torch.equal(found[name], value), name
        else:
            assert torch.allclose(found[name], value, rtol=1e-6, atol=0), name


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
