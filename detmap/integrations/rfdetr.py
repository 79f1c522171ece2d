"""The backend "detmap" in RF-DETR's registry of evaluation backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

from rfdetr import config
from rfdetr.training import coco_map

from detmap.integrations.torchmetrics import own_results
from detmap.pycocotools import mask
from detmap.system.patching import Patch

_Theirs: Any = coco_map.OnePassCocoMeanAveragePrecision


class Backend(coco_map._RfdetrCocoBackend):  # type: ignore[misc]
    """The backend "detmap" in RF-DETR's registry."""

    unused_backend_methods = ("_get_coco_datasets", "_get_coco_format")
    uses_coco_evaluator = False

    def __init__(self) -> None:
        super().__init__("faster_coco_eval")  # accepted by the parent class; faster_coco_eval is not used

    @property
    def mask_utils(self) -> Any:
        """The module of mask functions."""
        return mask


class OnePassCocoMeanAveragePrecision(_Theirs):  # type: ignore[misc]
    """RF-DETR's metric with the additional backend "detmap"."""

    def compute(self) -> dict[str, Any]:
        """Return the results under torchmetrics' names, including a value for each class."""
        if not isinstance(self._coco_backend, Backend):
            computed: dict[str, Any] = super().compute()
            return computed
        made, found, classes = own_results(self._coco_backend, lambda name: getattr(self, name))
        for kind, scores in found.items():
            if scores is None:
                made |= self._per_class_sentinels("" if len(found) == 1 else f"{kind}_", classes)
        return made


class Entry(Patch):
    """Adds the backend to the registry and to the allowed values of ``eval_backend``; `undo` removes it."""

    def __init__(self) -> None:
        super().__init__({(_Theirs.__module__, _Theirs.__name__): OnePassCocoMeanAveragePrecision})
        coco_map._BACKENDS["detmap"] = Backend
        _allow((*get_args(config.CocoEvalBackend), "detmap"))
        self.replaced = (*self.replaced, "rfdetr.training.coco_map._BACKENDS['detmap']")

    def undo(self) -> None:
        """Remove the backend and the metric class."""
        super().undo()
        coco_map._BACKENDS.pop("detmap", None)
        _allow(get_args(config.CocoEvalBackend))


def _allow(names: tuple[str, ...]) -> None:
    """Set the allowed values of ``eval_backend`` in every configuration class."""
    for one in _with_subclasses(config.TrainConfig):
        one.model_fields["eval_backend"].annotation = Literal[names]
        one.model_rebuild(force=True)


def _with_subclasses(base: Any) -> Iterator[Any]:
    yield base
    for one in base.__subclasses__():
        yield from _with_subclasses(one)
