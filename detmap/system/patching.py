"""Replace objects of other packages, reversibly."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from types import ModuleType, TracebackType
from typing import Any


class Patch:
    """A replacement of objects in other packages, as made by `detmap.patch_pycocotools`. `undo`, or the end of a ``with``
    block, restores the objects.

    Parameters
    ----------
    instead : mapping of (str, str) to object
        Replacements by module and name. Packages that are not installed are skipped.
    stand_ins : mapping of str to module
        Modules by full name, the package first, which are added if the package is not installed. None creates an empty
        module.

    Attributes
    ----------
    replaced : tuple of str
        Full names of the replaced objects, such as ``"pycocotools.coco.COCO"``.
    """

    def __init__(
        self, instead: Mapping[tuple[str, str], Any], stand_ins: Mapping[str, ModuleType | None] | None = None
    ) -> None:
        self._old: list[tuple[ModuleType, str, Any]] = []
        self._added: dict[str, ModuleType] = {}
        replaced: list[str] = []
        if stand_ins and not _there(next(iter(stand_ins))):
            replaced += self._stand_in(stand_ins)
        found = _theirs(instead, list(instead.values()))
        for module_name, module in list(sys.modules.items()):
            if not isinstance(module, ModuleType) or module_name.split(".")[0] == "detmap":
                continue
            for name, value in list(vars(module).items()):
                if id(value) in found:
                    self._old.append((module, name, value))
                    setattr(module, name, found[id(value)])
                    replaced.append(f"{module_name}.{name}")
        self.replaced = tuple(sorted(replaced))

    def _stand_in(self, stand_ins: Mapping[str, ModuleType | None]) -> list[str]:
        """Add modules under the name of a package that is not installed."""
        for full, module in stand_ins.items():
            made = ModuleType(full, "detmap's modules under another name") if module is None else module
            self._added[full] = made
            package, _, name = full.rpartition(".")
            if package:
                setattr(self._added[package], name, made)
        sys.modules.update(self._added)
        return list(self._added)

    def undo(self) -> None:
        """Restore all replaced objects."""
        while self._old:
            module, name, value = self._old.pop()
            setattr(module, name, value)
        for name, module in self._added.items():
            if sys.modules.get(name) is module:  # keep a module that has replaced the stand-in
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


def _there(package: str) -> bool:
    return sys.modules.get(package) is not None or find_spec(package) is not None


def _theirs(instead: Mapping[tuple[str, str], Any], ours: Collection[Any]) -> dict[int, Any]:
    """Return a dict from the ``id()`` of each replaced object to its replacement."""
    found: dict[int, Any] = {}
    for (module_name, name), own in instead.items():
        if not _there(module_name.partition(".")[0]):
            continue
        theirs = getattr(importlib.import_module(module_name), name, None)
        if theirs is not None and theirs not in ours:
            found[id(theirs)] = own
    return found
