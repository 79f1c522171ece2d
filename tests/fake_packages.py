"""Stand-ins on numpy for the packages that `detmap.integrations` translates: what is called of them, and no more.

The packages themselves are tested in tests/torch, where they are installed.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import ClassVar, Literal

import numpy as np


class Array(np.ndarray):
    """An array with the methods of a tensor that are called."""

    def numel(self):
        return self.size

    def clone(self):
        return self.copy()

    def float(self):
        return self.astype(np.float32)

    def int(self):
        return self.astype(np.int32)

    def to(self, dtype):
        return self.astype(dtype)


def tensor(values, dtype=None):
    return np.array(values, dtype).view(Array)


def torch():
    """PyTorch."""

    def unique(values, dim, return_inverse):
        assert dim == 0
        assert return_inverse
        return tuple(map(tensor, np.unique(values, axis=dim, return_inverse=True)))

    return {
        "torch": SimpleNamespace(
            Tensor=type("Tensor", (), {}), cat=lambda some: tensor(np.concatenate(some)), tensor=tensor, unique=unique,
            as_tensor=lambda values: np.asarray(values).view(Array), zeros=lambda *shape: tensor(np.zeros(shape)),
            int32=np.int32, float32=np.float32,
        )
    }  # fmt: skip


class Backend:
    """torchmetrics' `CocoBackend`."""

    coco, cocoeval, mask_utils = "their COCO", "their COCOeval", "their mask"

    def __init__(self, backend):
        assert backend in ("pycocotools", "faster_coco_eval")
        self.backend = backend

    @staticmethod
    def _coco_stats_to_tensor_dict(stats, prefix, max_detection_thresholds):
        names = ["map", "map_50", "map_75", "map_small", "map_medium", "map_large"]
        names += [f"mar_{cap}" for cap in max_detection_thresholds] + ["mar_small", "mar_medium", "mar_large"]
        return {f"{prefix}{name}": tensor(value, np.float32) for name, value in zip(names, stats, strict=True)}


def _calculate_map_with_coco(
    coco_backend, groundtruth_labels, groundtruth_box, groundtruth_mask, groundtruth_crowds, groundtruth_area,
    detection_labels, detection_box, detection_mask, detection_scores, iou_type, average, iou_thresholds,
    rec_thresholds, max_detection_thresholds, class_metrics, extended_summary,
):  # fmt: skip
    return "theirs", coco_backend.backend, extended_summary


class MeanAveragePrecision:
    """torchmetrics' metric, whose state is given to it."""

    def __init__(self, **state):
        vars(self).update(state)
        self._coco_backend = Backend("pycocotools")

    def compute(self):
        return "computed by the parent"


def torchmetrics():
    """torchmetrics, with the objects that are replaced in it."""
    helpers = ModuleType("torchmetrics.detection.helpers")
    helpers.CocoBackend = type("CocoBackend", (Backend,), {"__module__": helpers.__name__})
    helpers._calculate_map_with_coco = _calculate_map_with_coco
    detection = ModuleType("torchmetrics.detection")
    detection.MeanAveragePrecision, detection.helpers = MeanAveragePrecision, helpers
    package = ModuleType("torchmetrics")
    package.detection = detection
    return {one.__name__: one for one in (package, detection, helpers)}


def rfdetr():
    """RF-DETR, with its registry and its configurations."""
    coco_map, config = ModuleType("rfdetr.training.coco_map"), ModuleType("rfdetr.config")

    def sentinels(self, prefix, classes):
        return {f"{prefix}classes": classes}

    class Config:
        model_fields: ClassVar = {"eval_backend": SimpleNamespace(annotation=Literal["faster_coco_eval", "ufcoco"])}
        rebuilt: ClassVar = []

        @classmethod
        def model_rebuild(cls, force):
            cls.rebuilt.append((cls.__name__, force))

    config.CocoEvalBackend = Literal["faster_coco_eval", "ufcoco"]
    config.TrainConfig = type("TrainConfig", (Config,), {})
    own = {"eval_backend": SimpleNamespace(annotation=Config.model_fields["eval_backend"].annotation)}
    config.Below = type("Below", (config.TrainConfig,), {"model_fields": own})
    coco_map.OnePassCocoMeanAveragePrecision = type(
        "OnePassCocoMeanAveragePrecision",
        (MeanAveragePrecision,),
        {"__module__": coco_map.__name__, "_per_class_sentinels": sentinels},
    )
    coco_map._RfdetrCocoBackend = type("_RfdetrCocoBackend", (Backend,), {})
    coco_map._BACKENDS = {"faster_coco_eval": Backend}
    package, training = ModuleType("rfdetr"), ModuleType("rfdetr.training")
    package.config, training.coco_map = config, coco_map
    return {one.__name__: one for one in (package, config, training, coco_map)}


def ultralytics():
    """Ultralytics' scaling of boxes."""

    def scale_boxes(shape, boxes, original, ratio_pad):
        assert ratio_pad == "pad"
        return boxes * (original[0] / shape[0])

    utils = ModuleType("ultralytics.utils")
    utils.ops = SimpleNamespace(scale_boxes=scale_boxes)
    package = ModuleType("ultralytics")
    package.utils = utils
    return {one.__name__: one for one in (package, utils)}


def _modules(name):
    """Return by name an empty module and its parents, the outermost first."""
    parts = name.split(".")
    names = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return {one: ModuleType(one) for one in names}


class InformationRetrievalEvaluator:
    """sentence-transformers' evaluator, whose attributes are given to it."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


def sentence_transformers():
    """sentence-transformers."""
    made = _modules("sentence_transformers.sentence_transformer.evaluation")
    [*made.values()][-1].InformationRetrievalEvaluator = InformationRetrievalEvaluator
    return made


class AccuracyCalculator:
    """pytorch-metric-learning's calculator: what it prepares for the functions of measures."""

    def __init__(self, knn_func=None, avg_of_avgs=False, return_per_class=False):
        self.knn_func, self.avg_of_avgs, self.return_per_class = knn_func, avg_of_avgs, return_per_class
        names = [name.removeprefix("calculate_") for name in dir(self) if name.startswith("calculate_")]
        self.original_function_dict = dict.fromkeys(("NMI", *names))
        self.label_comparison_fn = lambda a, b: a == b

    def requires_clustering(self):
        return ["NMI"]

    def get_accuracy(self, query, query_labels, reference, reference_labels, ref_includes_query, include, exclude):
        assert len(query) == len(query_labels)
        assert len(reference) == len(reference_labels)
        _, places = self.knn_func(query, None, reference, ref_includes_query)
        unique = np.unique(query_labels)
        counts = np.array([np.count_nonzero(reference_labels == label) for label in unique])
        own = counts[np.searchsorted(unique, query_labels)]
        given = {
            "query_labels": query_labels, "knn_labels": reference_labels[places],
            "label_counts": (tensor(unique), tensor(counts)), "ref_includes_query": ref_includes_query,
            "not_lone_query_mask": tensor(own > int(ref_includes_query)),
        }  # fmt: skip
        return {name: getattr(self, f"calculate_{name}")(**given) for name in include if name not in exclude}


def pytorch_metric_learning():
    """pytorch-metric-learning."""
    made = _modules("pytorch_metric_learning.utils.accuracy_calculator")
    [*made.values()][-1].AccuracyCalculator = AccuracyCalculator
    return made


#: The stand-ins that each translation imports.
OF = {
    "torchmetrics": (torch, torchmetrics),
    "rfdetr": (torch, torchmetrics, rfdetr),
    "ultralytics": (torch, ultralytics),
    "sentence_transformers": (sentence_transformers,),
    "pytorch_metric_learning": (torch, pytorch_metric_learning),
}


def stand_in(name, monkeypatch):
    """Put the stand-ins of a translation into `sys.modules`, and forget translations that were imported with others."""
    for make in OF[name]:
        for full, module in make().items():
            monkeypatch.setitem(sys.modules, full, module)
    for one in OF:
        monkeypatch.delitem(sys.modules, f"detmap.integrations.{one}", raising=False)
