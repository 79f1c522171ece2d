"""The evaluator of torchvision's reference scripts, as faster_coco_eval ships it: batch by batch, then merged."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pytest
import shape_workloads as made
import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detmap import patch_pycocotools

pytest.importorskip("faster_coco_eval")
from faster_coco_eval.utils.pytorch import coco_eval as references


def outputs(kind, dataset, results):
    """Image id to what a model returns."""
    truth = COCO()
    truth.dataset = dataset
    truth.createIndex()
    for image in dataset["images"]:
        own = [result for result in results if result["image_id"] == image["id"]]
        output = {
            "scores": torch.tensor([result["score"] for result in own], dtype=torch.float64),
            "labels": torch.tensor([result["category_id"] for result in own], dtype=torch.int64),
        }
        if kind == "segm":
            masks = [torch.from_numpy(truth.annToMask(result)) for result in own]
            empty = torch.zeros((0, 1, image["height"], image["width"]))
            output["masks"] = torch.stack(masks)[:, None] if masks else empty
        else:
            points = [np.reshape(result["keypoints"], (-1, 3)).tolist() for result in own]
            output["keypoints"] = torch.tensor(points, dtype=torch.float64).reshape(len(own), -1, 3)
        yield image["id"], output


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # in pycocotools, with numpy 2
@pytest.mark.parametrize("kind", ["segm", "keypoints"])
def test_references(kind):
    dataset, results = made.ample(made.mask_workload if kind == "segm" else made.pose_workload)

    def evaluated():
        truth = references.COCO(json.loads(json.dumps(dataset)))
        evaluator = references.FasterCocoEvaluator(truth, [kind])
        for image, output in outputs(kind, dataset, results):
            evaluator.update({image: output})
        evaluator.synchronize_between_processes()
        evaluator.accumulate()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            evaluator.summarize()
        return evaluator.stats_as_dict[kind], [line for line in printed.getvalue().splitlines() if "@[" in line]

    expected, lines = evaluated()
    with patch_pycocotools() as patch:
        assert "faster_coco_eval.utils.pytorch.coco_eval.COCOeval_faster" in patch.replaced
        found, own_lines = evaluated()
    assert own_lines == lines
    assert found == pytest.approx(expected, rel=1e-12)
    truth = COCO()
    truth.dataset = dataset
    truth.createIndex()
    evaluation = COCOeval(truth, truth.loadRes(results), kind)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    assert list(found.values())[: evaluation.stats.size] == evaluation.stats.tolist()
