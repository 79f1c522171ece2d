"""Progress of long computations: computations count their steps, and commands show the count."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

#: A function that is called with text such as "bootstrap 120 of 200 (60 %)", and with "" at the end.
Listener = Callable[[str], None]

_listeners: list[Listener] = []
_counted: list[_Counted] = []
_lock = threading.Lock()


class _Counted:
    """A computation of consecutive parts, each with a name and a number of steps."""

    def __init__(self, parts: tuple[tuple[str, int], ...]) -> None:
        self.parts, self.done = parts, 0

    def text(self) -> str:
        """Return the progress of the current part."""
        before = 0
        for name, total in self.parts:
            if total and self.done < before + total:
                done = self.done - before
                return f"{name} {done:,} of {total:,} ({100 * done // total} %)"
            before += total
        return ""


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Context manager that reports the progress of computations to a listener."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def counting(*parts: tuple[str, int]) -> Iterator[None]:
    """Context manager in which `advance` counts the steps of `parts`, given as names with numbers of steps."""
    if not _listeners:
        yield
        return
    _counted.append(_Counted(parts))
    _tell()
    try:
        yield
    finally:
        _counted.pop()
        _tell()


def counted(name: str, items: Sequence[T]) -> Iterator[T]:
    """Yield the items of a sequence, counting each item as a step when it is done."""
    with counting((name, len(items))):
        for item in items:
            yield item
            advance(1)


def advance(steps: int) -> None:
    """Count steps of the innermost computation, in any thread."""
    if not _listeners or not _counted:
        return
    with _lock:
        _counted[-1].done += steps
    _tell()


def _tell() -> None:
    text = _counted[-1].text() if _counted else ""
    for listener in tuple(_listeners):
        listener(text)
