"""Make a fork wait while another thread compiles or loads a kernel, or imports a module of `_PACKAGES`. The forked
process could never release a lock that this thread held during the fork.
"""

from __future__ import annotations

# `concurrent.futures.thread` and `logging` register handlers that take locks before a fork. `_before` must run earlier,
# because it waits for other threads, which may need these locks. Handlers run in reverse order of registration, so both
# modules are imported before `_before` is registered.
import concurrent.futures.thread
import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

_PACKAGES = ("detmap", "llvmlite", "msgspec", "numba", "numpy")
_EARLIER = (concurrent.futures.thread, logging)
_held: list[Callable[[], None]] = []  # functions that release the locks held during a fork


def _imported_elsewhere() -> list[str]:
    """Return the modules that other threads are importing, according to Python's import locks."""
    locks: dict[str, Any] = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    names = []
    for name, reference in list(locks.items()):
        owner = getattr(reference(), "owner", None)
        if name.partition(".")[0] in _PACKAGES and owner not in (None, threading.get_ident()):
            names.append(name)
    return names


def _take_locks() -> None:
    compiler = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)
    linker = getattr(getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None), "_lock", None)
    for lock in (compiler, getattr(linker, "_lock", None)):  # in the order of a compiling thread
        if lock is not None:
            lock.acquire()
            _held.append(lock.release)


def _release() -> None:
    while _held:
        _held.pop()()


def _before() -> None:
    for _ in range(100):
        _take_locks()
        names = _imported_elsewhere()
        if not names:
            return
        _release()  # the import may need these locks
        for name in names:
            with suppress(ImportError):
                importlib.import_module(name)  # waits until the other thread has imported the module
    _take_locks()


def _in_child() -> None:
    _release()
    if sys.version_info < (3, 12):  # cached properties have a lock before Python 3.12
        names = [name for name in sys.modules if name.partition(".")[0] == "detmap"]
        kinds = [kind for name in names for kind in vars(sys.modules[name]).values() if isinstance(kind, type)]
        for value in [value for kind in kinds for value in vars(kind).values()]:
            if isinstance(value, cached_property):
                value.lock = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
