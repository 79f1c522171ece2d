"""Ctrl-C ends a command at once, whatever is being computed, and leaves no half-written file.

Python runs signal handlers in the main thread, between two steps of Python: not while a kernel runs. Here the system's
handler writes to a pipe, and a thread that does nothing else waits on it. Only the command line does this: a program that
uses the library keeps its handlers, and gets a KeyboardInterrupt as usual.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

from detmap.system import whole_files

CODE = 130  # what a shell returns for a program that SIGINT ended
_PATIENCE = 0.2  # seconds that what is to be done before the end may take
_before_end: list[Callable[[], object]] = []
_ending: list[bool] = []


def watch() -> None:
    """End this process on SIGINT from now on, with exit code 130 and one line on stderr.

    Nothing is done where the process was started with SIGINT ignored (in the background), or has another handler for it.
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
    """Give SIGINT back to Python: the main thread gets a KeyboardInterrupt and can end its child processes."""
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
    whole_files.abandon()
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
    """Ignore SIGINT from now on, since all is done. If one has arrived already, wait for the end of the process."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _ending:
        threading.Event().wait()
