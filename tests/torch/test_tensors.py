"""Tensors of PyTorch go in as they are: on update, through DLPack, and with gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support import assert_same_result, evaluate
from workloads import make_coco

from detmap import Evaluator, InputError

WORKLOAD = make_coco(41, images=8, categories=3, crowds=0.2)


class Capsule:
    """What speaks DLPack and nothing else."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def pairs(dataset, results, make=lambda tensor: tensor):
    """What torchvision's models return and its data sets hold, image by image; corners."""
    for item in dataset["images"]:
        gts = [a for a in dataset["annotations"] if a["image_id"] == item["id"]]
        dts = [r for r in results if r["image_id"] == item["id"]]

        def boxes(records):
            return make(torch.tensor([r["bbox"] for r in records], dtype=torch.float64).reshape(-1, 4))

        prediction = {
            "boxes": boxes(dts),
            "scores": make(torch.tensor([r["score"] for r in dts], dtype=torch.float64)),
            "labels": make(torch.tensor([r["category_id"] for r in dts], dtype=torch.int64)),
        }
        target = {
            "boxes": boxes(gts),
            "labels": make(torch.tensor([a["category_id"] for a in gts], dtype=torch.int64)),
            "area": make(torch.tensor([a["area"] for a in gts], dtype=torch.float64)),
            "iscrowd": make(torch.tensor([a["iscrowd"] for a in gts], dtype=torch.uint8)),
            "masks": None,
        }
        yield item["id"], prediction, target


@pytest.mark.parametrize(
    "make",
    [
        lambda tensor: tensor,
        Capsule,
        lambda tensor: tensor.requires_grad_() if tensor.is_floating_point() else tensor,
        lambda tensor: tensor.to("cpu", copy=True).as_subclass(torch.nn.Parameter),
    ],
    ids=["tensors", "DLPack", "with gradients", "a subclass"],
)
def test_tensors_give_the_same_bits(make):
    dataset, results = WORKLOAD
    evaluator = Evaluator(box_format="xywh", categories=[item["id"] for item in dataset["categories"]])
    for identity, prediction, target in pairs(dataset, results, make):
        evaluator.update([prediction], [target], image_ids=torch.tensor([identity]))
    assert_same_result(evaluator.compute(), evaluate(dataset, results))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision(dtype):
    boxes = torch.tensor([[1.5, 2.25, 30.0, 40.0]], dtype=dtype)
    low, plain = Evaluator(), Evaluator()
    scores, labels = torch.tensor([0.3], dtype=dtype), torch.tensor([1])
    low.update(
        {"boxes": boxes, "scores": scores, "labels": labels}, {"boxes": boxes, "labels": labels}, torch.tensor(3)
    )
    wide = boxes.double().numpy()
    plain.update({"boxes": wide, "scores": scores.double().tolist(), "labels": [1]}, {"boxes": wide, "labels": [1]}, 3)
    assert low.to_bytes() == plain.to_bytes()


def test_tensors_are_copied():
    boxes, labels = torch.tensor([[0.0, 0, 5, 5]]), torch.tensor([1])
    evaluator = Evaluator()
    evaluator.update(
        {"boxes": boxes, "scores": torch.tensor([0.5]), "labels": labels}, {"boxes": boxes, "labels": labels}
    )
    boxes.zero_()
    labels.zero_()
    result = evaluator.compute()
    assert np.isclose(result["AP"], 1)
    assert result.categories == ((1, "1"),)


def test_refusals_name_the_place():
    boxes = torch.tensor([[0.0, 0, float("nan"), 5]])
    image = {"boxes": boxes, "scores": torch.tensor([0.5]), "labels": torch.tensor([1])}
    with pytest.raises(InputError, match="image 0"):
        Evaluator().update(image, {"boxes": boxes[:0], "labels": torch.tensor([])})


def test_states_go_through_checkpoints(tmp_path):
    dataset, results = WORKLOAD
    evaluator = Evaluator(box_format="xywh")
    for identity, prediction, target in pairs(dataset, results):
        evaluator.update(prediction, target, identity)
    torch.save({"epoch": 3, "metric": evaluator.state_dict()}, tmp_path / "checkpoint.pt")
    loaded = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    other = Evaluator(box_format="xywh")
    other.load_state_dict(loaded["metric"])
    assert other.to_bytes() == evaluator.to_bytes()
