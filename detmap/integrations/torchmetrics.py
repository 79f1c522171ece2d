"""The backend "detmap" of torchmetrics' `MeanAveragePrecision`, and a metric that always uses this backend."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torchmetrics.detection import MeanAveragePrecision as TheirMetric
from torchmetrics.detection import helpers

from detmap.integrations.map_states import Scores, Settings, States, scores_of
from detmap.pycocotools import mask
from detmap.pycocotools.coco import COCO
from detmap.pycocotools.cocoeval import COCOeval

_Theirs: Any = helpers.CocoBackend
_theirs = helpers._calculate_map_with_coco
_SIGNATURE = inspect.signature(_theirs)


class CocoBackend(_Theirs):  # type: ignore[misc]
    """torchmetrics' `CocoBackend` with the additional name "detmap"."""

    def __init__(self, backend: str) -> None:
        super().__init__("pycocotools" if backend == "detmap" else backend)
        self.backend = backend

    @property
    def coco(self) -> Any:
        """The class of data sets."""
        return COCO if self.backend == "detmap" else super().coco

    @property
    def cocoeval(self) -> Any:
        """The class of evaluations."""
        return COCOeval if self.backend == "detmap" else super().cocoeval

    @property
    def mask_utils(self) -> Any:
        """The module of mask functions."""
        return mask if self.backend == "detmap" else super().mask_utils


class MeanAveragePrecision(TheirMetric):  # type: ignore[misc]
    """torchmetrics' `MeanAveragePrecision`, computed by detmap.

    Results and parameters are torchmetrics', but `backend` is ignored. AP counts detections up to the largest of
    `max_detection_thresholds`.

    Examples
    --------
    >>> from torch import tensor
    >>> metric = MeanAveragePrecision()
    >>> prediction = {"boxes": tensor([[0.0, 0.0, 9.0, 9.0]]), "scores": tensor([0.8]), "labels": tensor([1])}
    >>> metric.update([prediction], [{"boxes": tensor([[0.0, 0.0, 10.0, 10.0]]), "labels": tensor([1])}])
    >>> metric.compute()["map_50"]
    tensor(1.)
    """

    def __init__(self, *parameters: Any, **named: Any) -> None:
        super().__init__(*parameters, **named)
        self._coco_backend = CocoBackend("detmap")

    def compute(self) -> dict[str, Any]:
        """Return a mapping of torchmetrics' names to tensors."""
        parameters = {"coco_backend": self._coco_backend}
        parameters |= {name: getattr(self, name) for name in list(_SIGNATURE.parameters)[1:]}
        computed: dict[str, Any] = _calculate_map(**parameters)
        return computed


def own_results(
    backend: Any, value_of: Callable[[str], Any]
) -> tuple[dict[str, Any], dict[str, Scores | None], list[int]]:
    """Return the results of a metric under torchmetrics' names, the scores by ``iou_type``, and the classes."""
    states, settings = (tuple(map(value_of, kind._fields)) for kind in (States, Settings))
    found, classes = scores_of(States(*states), Settings(*settings))
    caps = Settings(*settings).max_detection_thresholds
    made: dict[str, Any] = {}
    for kind, scores in found.items():
        prefix = "" if len(found) == 1 else f"{kind}_"
        stats = 12 * [-1.0] if scores is None else scores.stats
        made |= backend._coco_stats_to_tensor_dict(stats, prefix=prefix, max_detection_thresholds=caps)
        if scores is not None:
            made[f"{prefix}map_per_class"] = _single([-1.0] if scores.ap is None else scores.ap)
            made[f"{prefix}mar_{caps[-1]}_per_class"] = _single([-1.0] if scores.ar is None else scores.ar)
    return {**made, "classes": torch.tensor(classes, dtype=torch.int32)}, found, classes


def _single(values: Any) -> Any:
    return torch.as_tensor(values).to(torch.float32)


def _calculate_map(*given: Any, **named: Any) -> Any:
    """Replace `_calculate_map_with_coco`, and compute with detmap if the backend is "detmap"."""
    values = _SIGNATURE.bind(*given, **named).arguments
    # For extended summaries, `detmap.pycocotools` computes overlaps and curves in pycocotools' form.
    if getattr(values["coco_backend"], "backend", None) != "detmap" or values["extended_summary"]:
        return _theirs(*given, **named)
    return own_results(values["coco_backend"], values.__getitem__)[0]


#: The objects that replace torchmetrics' own, by the module and name of the replaced object.
NAMES = {
    ("torchmetrics.detection.helpers", "CocoBackend"): CocoBackend,
    ("torchmetrics.detection.helpers", "_calculate_map_with_coco"): _calculate_map,
}
