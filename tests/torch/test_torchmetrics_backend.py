"""torchmetrics' `MeanAveragePrecision` with the backend "detmap", and the metric of detmap: pycocotools' numbers."""

from __future__ import annotations

import pickle
import warnings

import pytest
import torch
from map_batches import assert_same, batches

from detmap import OptionError, patch_torchmetrics
from detmap.integrations import patches

pytest.importorskip("torchmetrics")
pytest.importorskip("torchvision")
from torchmetrics import detection

KINDS = [("bbox",), ("segm",), ("bbox", "segm")]
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation:DeprecationWarning"
)  # pycocotools, with numpy 2


def filled(metric, seed, **options):
    metric.warn_on_many_detections = False
    for prediction, target in zip(*batches(seed, **options), strict=True):
        metric.update([prediction], [target])
    return metric


def made(backend, **options):
    if backend != "own":
        return detection.MeanAveragePrecision(backend=backend, **options)
    from detmap.integrations.torchmetrics import MeanAveragePrecision

    return MeanAveragePrecision(**options)


@pytest.fixture
def patched():
    with patch_torchmetrics() as patch:
        yield patch
    with pytest.raises(ValueError, match="backend"):
        detection.MeanAveragePrecision(backend="detmap")


@pytest.mark.parametrize("backend", ["detmap", "own"])
@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_all_results(kinds, average, backend, patched):
    shapes = {"masks": "segm" in kinds, "boxes": "bbox" in kinds}
    for seed in range(2):
        # Of both kinds torchmetrics takes masks by class once it has taken boxes by class, whatever `average` is.
        by_class = seed == 0 and not (average == "micro" and len(kinds) == 2)
        options = {"iou_type": kinds, "average": average, "class_metrics": by_class}
        expected = filled(made("pycocotools", **options), seed, **shapes).compute()
        found = filled(made(backend, **options), seed, **shapes).compute()
        assert_same(found, expected)
    assert max(value.max() for name, value in expected.items() if "map" in name) > 0


def test_results_by_class_change_no_micro_average():
    options = {"iou_type": ("bbox", "segm"), "average": "micro"}
    found = filled(made("own", **options, class_metrics=True), 0, masks=True).compute()
    expected = filled(made("pycocotools", **options), 0, masks=True).compute()
    assert found["segm_map"] == expected["segm_map"]


@pytest.mark.parametrize("backend", ["detmap", "own"])
def test_thresholds_caps_and_formats(backend, patched):
    options = {
        "iou_thresholds": [0.75, 0.5, 0.3],
        "rec_thresholds": [0.0, 0.2, 0.9],
        "max_detection_thresholds": [100, 2, 7],
        "box_format": "cxcywh",
        "class_metrics": True,
    }
    expected = filled(made("pycocotools", **options), 7).compute()
    assert_same(filled(made(backend, **options), 7).compute(), expected)


def test_ap_within_the_largest_cap(patched):
    options = {"max_detection_thresholds": [1, 10, 20], "class_metrics": True}
    assert filled(made("pycocotools", **options), 3).compute()["map"] == -1  # it looks for a cap of 100
    found = filled(made("detmap", **options), 3).compute()
    expected = filled(made("faster_coco_eval", **options), 3).compute()
    for name, value in expected.items():
        assert torch.allclose(found[name], value, rtol=1e-6, atol=0), name
    assert found["map"] > 0


@pytest.mark.parametrize("backend", ["detmap", "own"])
@pytest.mark.parametrize("kinds", KINDS, ids="+".join)
def test_nothing_and_nearly_nothing(kinds, backend, patched):
    def empty(image, *names):
        return {name: value[:0] if name in names else value for name, value in image.items()}

    every = ("boxes", "masks", "labels", "scores", "iscrowd", "area")
    given = {"masks": "segm" in kinds, "boxes": "bbox" in kinds, "images": 30}
    pairs = [pair for pair in zip(*batches(5, **given), strict=True) if all(len(one["labels"]) for one in pair)]
    cases = [
        [],
        [(empty(pairs[0][0], *every), empty(pairs[0][1], *every))],
        [(empty(pairs[0][0], *every), pairs[0][1])],
        [(pairs[0][0], empty(pairs[0][1], *every))],
        [(pairs[0][0], empty(pairs[0][1], *every)), pairs[1]],
    ]
    for case in cases:
        found, expected = (made(name, iou_type=kinds, class_metrics=True) for name in (backend, "pycocotools"))
        for metric in (found, expected):
            for prediction, target in case:
                metric.update([prediction], [target])
        with pytest.warns(UserWarning, match="compute") if not case else warnings.catch_warnings():
            assert_same(found.compute(), expected.compute())


@pytest.mark.parametrize("backend", ["detmap", "own"])
def test_boxes_of_negative_size_overlap_nothing(backend, patched):
    prediction = {
        "boxes": torch.tensor([[9.0, 9, 4, 40], [9, 9, 4, 4], [0, 0, 9, 9]]),
        "labels": torch.tensor([1, 1, 1]),
    }
    target = {"boxes": torch.tensor([[9.0, 9, 4, 40], [9, 9, 4, 4], [0, 0, 9, 9]]), "labels": torch.tensor([1, 1, 1])}
    prediction["scores"] = torch.tensor([0.9, 0.8, 0.7])
    results = []
    for name in (backend, "pycocotools"):
        metric = made(name)
        metric.update([prediction], [target])
        results.append(metric.compute())
    assert_same(*results)


@pytest.mark.parametrize("backend", ["detmap", "own"])
def test_an_extended_summary(backend, patched):
    options = {"iou_type": ("bbox", "segm"), "extended_summary": True}
    found, expected = (filled(made(name, **options), 2, masks=True).compute() for name in (backend, "pycocotools"))
    assert set(found) == set(expected)
    for name, value in expected.items():
        if name.endswith("ious"):
            assert {key: torch.as_tensor(one).tolist() for key, one in found[name].items()} == {
                key: torch.as_tensor(one).tolist() for key, one in value.items()
            }
        else:
            assert torch.equal(found[name], value), name


def test_metrics_are_reset_saved_and_called(patched):
    metric = filled(made("own"), 1)
    first = metric.compute()
    assert_same(pickle.loads(pickle.dumps(metric)).compute(), first)
    metric.reset()
    assert_same(filled(metric, 1).compute(), first)
    metric.reset()
    assert_same(metric(*batches(1)), first)
    with patch_torchmetrics():
        assert pickle.loads(pickle.dumps(filled(made("detmap"), 1))).compute()["map"] == first["map"]


def test_other_backends_stay_what_they_are(patched):
    expected = filled(made("pycocotools"), 4).compute()
    patched.undo()
    assert_same(filled(made("pycocotools"), 4).compute(), expected)


def test_an_old_version_is_refused(monkeypatch):
    def absent(name):
        raise ImportError("no such name")

    monkeypatch.setattr(patches, "import_module", absent)
    with pytest.raises(OptionError, match=r"needs torchmetrics 1\.8 or later"):
        patch_torchmetrics()
