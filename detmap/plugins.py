"""Plug-ins: registries of named objects, and external modules that add objects to the registries.

A plug-in is a module that calls `register` while it is imported. A program can import plug-ins, and the command line
imports them with ``--plugin MODULE``. Installed plug-ins have an entry point in the group ``detmap.plugins``. The
command line imports installed plug-ins, and so does the look-up of an unknown name.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, NamedTuple, NewType, TypeVar

from detmap.errors import OptionError, one_of, shorten

T = TypeVar("T")

#: A name registered by a plug-in, for type checkers: ``protocol=PluginName("mine")``.
PluginName = NewType("PluginName", str)

#: The entry-point group of plug-ins.
GROUP = "detmap.plugins"

_OWN = __name__.partition(".")[0]

#: All registries.
_REGISTRIES: list[Registry[Any]] = []

#: Paths, by module name, of external modules that have registered an object or were loaded as plug-ins; None for a
#: module that can be imported by its name.
_MODULES: dict[str, str | None] = {}

#: Whether installed plug-ins have been loaded, and the threads that are loading them.
_installed: list[bool] = []
_loading: set[int] = set()


class PluginWarning(UserWarning):
    """An installed plug-in cannot be loaded; everything else works without it."""


def later(module: str, attribute: str) -> Callable[..., Any]:
    """Return a function whose module is imported when the function is first called."""

    def called(*values: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(module), attribute)(*values, **named)

    return called


class _Later(NamedTuple):
    """Placeholder of an object in a registry whose module is imported on demand."""

    module: str
    attribute: str


class Registry(dict[str, T]):
    """A registry of objects by name. `of` is the class of the objects, and `what` is their noun in messages. `also`
    maps unregistered names, such as "box", to registered names that messages suggest.
    """

    def __init__(self, of: type[T], what: str, also: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.of, self.what, self._also = of, what, also or {}
        self._modules: dict[str, str] = {}
        self._shipped: dict[str, T] = {}
        _REGISTRIES.append(self)

    def add(self, thing: T, module: str) -> T:
        """Register and return an object of `module`. An earlier object of this module with the same name is replaced.
        Raises `OptionError` if another module has registered the name.
        """
        name: Any = getattr(thing, "name", None)
        if not isinstance(name, str) or not name:
            raise OptionError(
                f"the name of a {self.what} must be a string of at least one character, not {shorten(name)}"
            )
        owner = self._modules.get(name, module)
        if owner != module and self[name] != thing:
            raise OptionError(f"the {self.what} {shorten(name)} is registered by {owner} already: choose another name")
        self._modules[name] = owner
        if owner.partition(".")[0] == _OWN:
            self._shipped[name] = thing
        self[name] = thing
        return thing

    def add_later(self, name: str, module: str, attribute: str = "") -> None:
        """Register a built-in name whose module is imported on demand. The object is the module's `attribute` or, if
        empty, the object that the module registers as `name`.
        """
        if name not in self:
            self._modules[name] = module
            self[name] = _Later(module, attribute)  # type: ignore[assignment]

    def __getitem__(self, name: str) -> T:
        """Return the object called `name`, importing its module if needed."""
        thing = super().__getitem__(name)
        if isinstance(thing, _Later):
            module = importlib.import_module(thing.module)
            # An already imported module does not register its object again, so `_shipped` keeps the object.
            self[name] = getattr(module, thing.attribute) if thing.attribute else self._shipped[name]
            thing = super().__getitem__(name)
        return thing

    def loaded(self) -> list[T]:
        """Return the objects that are already imported."""
        return [self[name] for name, thing in super().items() if not isinstance(thing, _Later)]

    def values(self) -> list[T]:  # type: ignore[override]
        """Return all objects."""
        return [self[name] for name in tuple(self)]  # importing an object's module may register further objects

    def items(self) -> list[tuple[str, T]]:  # type: ignore[override]
        """Return all names with their objects."""
        return [(name, self[name]) for name in self]

    def is_shipped(self, name: str) -> bool:
        """Return whether a name is built in."""
        return self._modules[name].partition(".")[0] == _OWN

    def find(self, name: str) -> T:
        """Return the object called `name`; for an unknown name raise `OptionError` with known names."""
        if isinstance(name, str) and name not in self:
            load_installed()
        if not isinstance(name, str) or name not in self:
            meant = self._also.get(str(name)[:100].lower(), "")
            raise OptionError(f"unknown {self.what} {shorten(name)}{one_of(name, self, meant)}")
        return self[name]


def register(thing: T) -> T:
    """Register a kind of shape, a format, a protocol, a convention or a part of a diagnosis, and return it.

    Parameters
    ----------
    thing : Kind, Format, Protocol, Convention or Part
        A kind of shape to compare (`detmap.shapes.Kind`), a format of files (`detmap.formats.Format`), a
        protocol of detections (`detmap.Protocol`), a convention of rankings (`detmap.retrieval.Convention`), or a part
        of a diagnosis (`detmap.diagnostics.Part`).

    Raises
    ------
    OptionError
        For anything else, or a name registered by another module.

    Notes
    -----
    Workers of an executor import the calling module before their first task, so the module must be importable on the
    workers under the same name.
    """
    module = str(sys._getframe(1).f_globals.get("__name__", "__main__"))
    for registry in _REGISTRIES:
        if isinstance(thing, registry.of):
            registry.add(thing, module)
            break
    else:
        kinds = "a kind of shape, a format, a protocol, a convention or a part of a diagnosis"
        raise OptionError(f"expected {kinds}, not {shorten(thing)}")
    if module.partition(".")[0] not in (_OWN, "__main__"):
        _MODULES.setdefault(module, None)
    return thing


def load(modules: Iterable[str]) -> None:
    """Import plug-ins, given as module names or paths of ``.py`` files. The folder of such a file is appended to the
    module search path. Raises `OptionError` with the reason if a plug-in cannot be imported.
    """
    for given in modules:
        path = os.path.abspath(given) if given.endswith(".py") else None
        try:
            name = given if path is None else _module_of(path)
            module = importlib.import_module(name)
        except Exception as error:  # a plug-in may raise anything
            raise OptionError(f"plug-in {shorten(given, 200)}: {_reason(error)}") from None
        found = getattr(module, "__file__", None)
        if path is not None and (found is None or not os.path.samefile(found, path)):
            raise OptionError(f"plug-in {shorten(given, 200)}: another module is called {name}: rename the file")
        _MODULES[name] = path


def loaded() -> tuple[str, ...]:
    """Return the modules that were loaded or have registered an object, as names or paths that `load` accepts."""
    return tuple(name if path is None else path for name, path in _MODULES.items())


def sources() -> list[str]:
    """Return the files of loaded plug-ins, and of the sibling modules that plug-ins use."""
    found: dict[str, None] = {}
    waiting = list(_MODULES)
    seen = set(waiting)
    while waiting:
        module = sys.modules.get(waiting.pop())
        path = getattr(module, "__file__", None)
        if path is None or not os.path.isfile(path):
            continue
        found[path] = None
        for value in list(vars(module).values()):
            name = value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", None))
            beside = getattr(sys.modules.get(name), "__file__", None)
            if name not in seen and beside is not None and os.path.dirname(beside) == os.path.dirname(path):
                seen.add(name)
                waiting.append(name)
    return sorted(found)


def load_installed() -> bool:
    """Import the installed plug-ins, once per process; return whether this call imported them."""
    thread = threading.get_ident()
    if _installed or thread in _loading:  # a plug-in may look up names while it is loaded
        return False
    _loading.add(thread)
    try:
        _load_points(_entry_points())
    finally:
        _loading.discard(thread)
    _installed.append(True)
    return True


def _entry_points() -> Sequence[Any]:
    if not _may_be_installed():
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _may_be_installed() -> bool:
    """Return whether the metadata of any distribution mentions the entry-point group; false means that no plug-in is
    installed.
    """
    # `importlib.metadata` takes 40 ms to import and parse the metadata of 100 distributions; this search takes 2 ms.
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    if finders != [importlib.machinery.PathFinder]:
        return True
    for folder in sys.path:
        try:
            names = os.listdir(folder or os.curdir)
        except FileNotFoundError:
            continue
        except OSError:  # the entry is an archive
            return True
        if any(name.endswith(".egg") for name in (folder, *names)):
            return True
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                with suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if GROUP.encode() in file.read():
                        return True
    return False


def _load_points(points: Sequence[Any]) -> None:
    for point in points:
        try:
            point.load()
        except Exception as error:  # a plug-in may raise anything, but an installed plug-in must not end the program
            text = f"the installed plug-in {shorten(point.name)} cannot be loaded: {_reason(error)}"
            warnings.warn(PluginWarning(text), stacklevel=2)
        else:
            _MODULES.setdefault(point.value.partition(":")[0].strip(), None)


def _module_of(path: str) -> str:
    """Return the name under which a file can be imported."""
    folder, name = os.path.split(path[: -len(".py")])
    if not os.path.isfile(path):
        raise OptionError("no such file")
    if not name.isidentifier():
        raise OptionError("its name is none that can be imported: rename the file")
    if folder not in sys.path:
        sys.path.append(folder)
    return name


def _reason(error: Exception) -> str:
    text = shorten(str(error), 200)[1:-1]
    return text if isinstance(error, OptionError) else f"{type(error).__name__}: {text}"
