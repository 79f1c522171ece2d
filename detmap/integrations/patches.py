"""Functions that add the backend "detmap" to other packages. Each function imports its package when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from detmap.errors import OptionError
from detmap.system.patching import Patch


def _translation(name: str, package: str, since: str) -> Any:
    """Return the module that translates between a package and detmap."""
    try:
        return import_module(f"detmap.integrations.{name}")
    except (ImportError, AttributeError) as error:  # other versions of the package may lack imported names
        problem = f"this needs {package} {since} or later: pip install '{package}>={since}' ({error})"
        raise OptionError(problem) from error


def patch_torchmetrics() -> Patch:
    """Let torchmetrics' ``MeanAveragePrecision(backend="detmap")`` compute with detmap.

    Boxes, masks, or both are scored. All parameters are supported, and results have torchmetrics' names. AP counts
    detections up to the largest of `max_detection_thresholds`. Other backends are unchanged.

    Returns
    -------
    Patch
        ``undo()``, or the end of a ``with`` block, restores torchmetrics. Existing metric objects are unchanged.

    Raises
    ------
    OptionError
        If torchmetrics is not installed, or is older than 1.8.
    """
    return Patch(_translation("torchmetrics", "torchmetrics", "1.8").NAMES)


def patch_rfdetr() -> Patch:
    """Register "detmap" as an evaluation backend of RF-DETR: ``model.train(…, eval_backend="detmap")``.

    Boxes, masks, or both are scored from the state of RF-DETR's metric, with at most ``eval_max_dets`` detections per
    image. Other backends are unchanged.

    Returns
    -------
    Patch
        ``undo()``, or the end of a ``with`` block, removes the backend from the registry.

    Raises
    ------
    OptionError
        If RF-DETR is not installed with its extra ``train``, or is older than 1.11.
    """
    patch: Patch = _translation("rfdetr", "rfdetr[train]", "1.11").Entry()
    return patch
