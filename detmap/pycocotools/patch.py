"""`patch_pycocotools`: puts the drop-in where other code looks for pycocotools, and takes it away again."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType, TracebackType
from typing import Any

from detmap.pycocotools import _mask, coco, cocoeval, faster, mask

#: Module and name to what stands there instead.
_NAMES = {
    ("pycocotools.coco", "COCO"): coco.COCO,
    ("pycocotools.cocoeval", "COCOeval"): cocoeval.COCOeval,
    ("pycocotools.cocoeval", "Params"): cocoeval.Params,
    ("faster_coco_eval", "COCO"): faster.COCO,
    ("faster_coco_eval", "COCOeval_faster"): faster.COCOeval_faster,
    ("faster_coco_eval.core.faster_eval_api", "COCOeval"): faster.COCOeval,
    ("faster_coco_eval.core.cocoeval", "Params"): faster.Params,
}
_MODULES = {"coco": coco, "cocoeval": cocoeval, "mask": mask, "_mask": _mask}


def _there(package: str) -> bool:
    return sys.modules.get(package) is not None or find_spec(package) is not None


class Patch:
    """What `patch_pycocotools` replaced; undone by `undo`, or at the end of a ``with`` block.

    Attributes
    ----------
    replaced : tuple of str
        Full names, ``"pycocotools.coco.COCO"`` and so on.
    """

    def __init__(self) -> None:
        self._old: list[tuple[ModuleType, str, Any]] = []
        self._added: dict[str, ModuleType] = {}
        replaced: list[str] = []
        if not _there("pycocotools"):
            replaced += self._stand_in()
        instead: dict[int, Any] = {}
        for (module_name, name), ours in _NAMES.items():
            if not _there(module_name.partition(".")[0]):
                continue
            theirs = getattr(importlib.import_module(module_name), name, None)
            if theirs is not None and theirs not in _NAMES.values():
                instead[id(theirs)] = ours
        for module_name, module in list(sys.modules.items()):
            if not isinstance(module, ModuleType) or module_name.split(".")[0] == "detmap":
                continue
            for name, value in list(vars(module).items()):
                if id(value) in instead:
                    self._old.append((module, name, value))
                    setattr(module, name, instead[id(value)])
                    replaced.append(f"{module_name}.{name}")
        self.replaced = tuple(sorted(replaced))

    def _stand_in(self) -> list[str]:
        """Make modules by the name of pycocotools, which is not installed."""
        package = ModuleType("pycocotools", "detmap.pycocotools under another name")
        for name, module in _MODULES.items():
            setattr(package, name, module)
        made = {"pycocotools": package, **{f"pycocotools.{name}": module for name, module in _MODULES.items()}}
        self._added = made
        sys.modules.update(made)
        return list(made)

    def undo(self) -> None:
        """Put everything back."""
        while self._old:
            module, name, value = self._old.pop()
            setattr(module, name, value)
        for name, module in self._added.items():
            if sys.modules.get(name) is module:  # else somebody has put another one there since
                del sys.modules[name]
        self._added = {}

    def __enter__(self) -> Patch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.undo()

    def __repr__(self) -> str:
        return f"<Patch: {', '.join(self.replaced) or 'nothing to replace'}>"


def patch_pycocotools() -> Patch:
    """Make code that uses pycocotools, or ``faster_coco_eval``'s classes, use detmap's.

    ``COCO``, ``COCOeval`` (``COCOeval_faster``) and ``Params`` are replaced in these packages and wherever a module that
    is loaded already has imported them by name; subclasses that exist already stay what they are. Where pycocotools is not
    installed, detmap's modules stand in under its name.

    Returns
    -------
    Patch
        Says what was ``replaced``. Its ``undo()`` puts everything back, as does the end of a ``with`` block.

    Examples
    --------
    >>> with patch_pycocotools() as patch:
    ...     from pycocotools.cocoeval import COCOeval
    >>> COCOeval.__module__
    'detmap.pycocotools.cocoeval'
    """
    return Patch()
