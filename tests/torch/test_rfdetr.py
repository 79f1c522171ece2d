"""RF-DETR's evaluation backend "detmap": the numbers of its other backends, of boxes, masks and masks alone."""

from __future__ import annotations

import contextlib
import pickle

import pytest
import torch
from map_batches import assert_same, batches

from detmap import patch_rfdetr

pytest.importorskip("rfdetr")
pytest.importorskip("pytorch_lightning")
pytest.importorskip("torchmetrics")
pytest.importorskip("faster_coco_eval")
from rfdetr import config
from rfdetr.training import coco_map
from rfdetr.training.callbacks import coco_eval

KINDS = [("bbox",), ("segm",), ("bbox", "segm")]
KEYS = {"bbox": {"boxes": True}, "segm": {"masks": True, "boxes": False}, "bbox+segm": {"masks": True}}


@pytest.fixture
def patched():
    with patch_rfdetr() as patch:
        yield patch


def filled(backend, seed, **options):
    kinds = options.get("iou_type", ("bbox",))
    metric = coco_eval.OnePassCocoMeanAveragePrecision(backend=backend, **{"iou_type": kinds, **options})
    metric.warn_on_many_detections = False
    for prediction, target in zip(*batches(seed, **KEYS["+".join(kinds)]), strict=True):
        metric.update([prediction], [target])
    return metric


def assert_equals_the_others(seed, **options):
    """To the last bit of ultrafast-pycocotools, and but for that of faster_coco_eval, which takes means in another order."""
    found = filled("detmap", seed, **options).compute()
    expected = filled("faster_coco_eval", seed, **options).compute()
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        assert torch.allclose(found[name], value, rtol=1e-6, atol=0), name
    with contextlib.suppress(ImportError):  # a benchmark's package
        assert_same(found, filled("ufcoco", seed, **options).compute())
    return found


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_every_kind(kinds, by_class, patched):
    found = assert_equals_the_others(1, iou_type=kinds, class_metrics=by_class, max_detection_thresholds=[1, 10, 500])
    assert found["map" if len(kinds) == 1 else "segm_map"] > 0


@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_no_images_and_no_objects(kinds, patched):
    def computed(backend, images):
        metric = coco_map.OnePassCocoMeanAveragePrecision(backend=backend, iou_type=kinds, class_metrics=True)
        for prediction, target in images:
            metric.update([prediction], [target])
        return metric.compute()

    none = {
        "boxes": torch.tensor([]),
        "masks": torch.zeros((0, 9, 9), dtype=torch.bool),
        "labels": torch.tensor([]).long(),
    }
    one = {"boxes": torch.tensor([[1.0, 2, 5, 6]]), "masks": torch.ones((1, 9, 9)).bool(), "labels": torch.tensor([3])}
    scored = {"scores": torch.tensor([0.5])}
    for images in ([(none | {"scores": torch.tensor([])}, none)], [(one | scored, none), (one | scored, one)]):
        assert_same(computed("detmap", images), computed("faster_coco_eval", images))


def test_it_is_an_option_of_every_configuration(patched):
    for made in (config.TrainConfig, config.SegmentationTrainConfig):
        assert made(dataset_dir="here", eval_backend="detmap").eval_backend == "detmap"
        assert made(dataset_dir="here").eval_backend == "vernier"
    patched.undo()
    with pytest.raises(ValueError, match="eval_backend"):
        config.TrainConfig(dataset_dir="here", eval_backend="detmap")
    with pytest.raises(ValueError, match="requires backend in"):
        coco_map.OnePassCocoMeanAveragePrecision(backend="detmap")


def test_the_callback_takes_it(patched):
    callback = coco_eval.COCOEvalCallback(max_dets=300, segmentation=True, eval_backend="detmap")
    callback.setup(None, None, "validate")
    assert type(callback.map_metric._coco_backend).__module__ == "detmap.integrations.rfdetr"
    assert callback.map_metric.max_detection_thresholds == [1, 10, 300]


def test_a_metric_goes_to_another_process(patched):
    metric = filled("detmap", 2)
    assert_same(pickle.loads(pickle.dumps(metric)).compute(), metric.compute())
