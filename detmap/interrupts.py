"""What Ctrl-C does to a command: it ends at once, whatever is being computed, and leaves nothing half done.

Python runs signal handlers in the main thread, between two steps of Python: not while a kernel runs. Here the system's
handler writes to a pipe, on which a thread waits that does nothing else. This is for a process of our own only: a
program that uses the library keeps its handlers, and gets a KeyboardInterrupt as ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

from detmap import writing

CODE = 130  # what a shell returns for a program that SIGINT ended
_PATIENCE = 0.2  # seconds that what is to be done before the end may take
_before_end: list[Callable[[], object]] = []
_ending: list[bool] = []


def watch() -> None:
    """End this process on SIGINT from now on, with exit code 130 and one line on stderr.

    Where the process was started with SIGINT ignored (in the background), or somebody else handles it, nothing is done.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reader, writer = os.pipe()
    if os.name == "posix":  # elsewhere it need not be
        os.set_blocking(writer, False)
    threading.Thread(target=_wait, args=(reader,), name="detmap-interrupts", daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda *_: None)


def unwatch() -> None:
    """Leave SIGINT to Python again: a KeyboardInterrupt in the main thread, which has processes to end."""
    if threading.current_thread() is threading.main_thread() and signal.set_wakeup_fd(-1) >= 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _wait(reader: int) -> None:
    while signal.SIGINT not in os.read(reader, 64):
        pass
    end()


def end() -> NoReturn:
    """End this process as interrupted."""
    _ending.append(True)
    last = threading.Thread(target=_tidy, daemon=True)
    last.start()
    last.join(_PATIENCE)
    sys.stderr = None  # what else is said now is of no interest
    writing.abandon()
    with contextlib.suppress(OSError):
        os.write(2, b"detmap: interrupted\n")
    os._exit(CODE)


def _tidy() -> None:
    for task in reversed(_before_end):
        with contextlib.suppress(Exception):
            task()


def ending() -> bool:
    """Return whether this process is about to end, interrupted."""
    return bool(_ending)


@contextlib.contextmanager
def before_end(task: Callable[[], object]) -> Iterator[None]:
    """Within this context an interrupt calls `task`, from another thread, before the process ends."""
    _before_end.append(task)
    try:
        yield
    finally:
        _before_end.remove(task)


def leave() -> None:
    """Ignore SIGINT: all is done. Where one has come already wait for the end that it brings."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _ending:
        threading.Event().wait()
