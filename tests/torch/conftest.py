"""What the tests with PyTorch share."""

from __future__ import annotations

import re
import sys

import torch


def _declare_operators() -> None:
    """Let torchvision be imported where its compiled operators, made for a GPU, cannot be loaded beside this PyTorch.

    It registers shapes for operators that are then not there; nothing here calls one.
    """
    declared = []
    while True:
        try:
            import torchvision  # noqa: F401
        except ImportError:
            return
        except RuntimeError as error:
            missing = re.fullmatch(r"operator torchvision::(\w+) does not exist", str(error))
            if not missing or missing[1] in declared:
                raise
            declared.append(missing[1])
            _LIBRARY.define(f"{missing[1]}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
                del sys.modules[name]
        else:
            return


_LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
_declare_operators()
