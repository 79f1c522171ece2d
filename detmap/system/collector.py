"""Pauses Python's cyclic garbage collector while many small objects without cycles are made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_PAUSES: list[bool] = []


@contextmanager
def paused() -> Iterator[None]:
    """Context manager that disables cyclic garbage collection, which takes a third of the time of reading a file line
    by line.
    """
    with _LOCK:
        _PAUSES.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            if _PAUSES.pop():  # false in inner contexts, where the collector is already off
                gc.enable()
