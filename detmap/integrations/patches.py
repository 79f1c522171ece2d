"""Functions that add the backend "detmap" to other packages, which they import when called."""

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

    Boxes, masks and both, with all parameters and under torchmetrics' names; AP is taken within the largest of
    `max_detection_thresholds`. Other backends are unchanged.

    Returns
    -------
    Patch
        Its ``undo()`` puts everything back, as does the end of a ``with`` block. Existing metric objects are unchanged.

    Raises
    ------
    OptionError
        Where torchmetrics is not installed, or is older than 1.8.
    """
    return Patch(_translation("torchmetrics", "torchmetrics", "1.8").NAMES)


def patch_rfdetr() -> Patch:
    """Register "detmap" as an evaluation backend of RF-DETR: ``model.train(…, eval_backend="detmap")``.

    Boxes, boxes and masks, and masks alone are scored from the columns of its metric, within ``eval_max_dets``. Other
    backends are unchanged.

    Returns
    -------
    Patch
        Its ``undo()`` takes the backend out of the registry, as does the end of a ``with`` block.

    Raises
    ------
    OptionError
        Where RF-DETR is not installed with its extra ``train``, or is older than 1.11.
    """
    patch: Patch = _translation("rfdetr", "rfdetr[train]", "1.11").Entry()
    return patch
