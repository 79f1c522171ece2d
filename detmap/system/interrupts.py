"""End a command at once on Ctrl-C, even within a kernel, without leaving unfinished files.

Python runs signal handlers in the main thread between two bytecode instructions, so never while a kernel runs.
Therefore Python's C handler writes the signal to a pipe, and a separate thread reads the pipe. Only the command line
does this: programs that use the library keep their handlers, and get a KeyboardInterrupt as usual.
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

CODE = 130  # exit code of shells for a program ended by SIGINT
_PATIENCE = 0.2  # maximum number of seconds for cleaning up
_before_end: list[Callable[[], object]] = []
_ending: list[bool] = []


def watch() -> None:
    """End this process on SIGINT from now on, with exit code 130 and one line on stderr.

    Nothing is done if the process was started with SIGINT ignored (in the background), or has another SIGINT handler.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reader, writer = os.pipe()
    if os.name == "posix":  # `set_wakeup_fd` requires a non-blocking pipe, except on Windows
        os.set_blocking(writer, False)
    threading.Thread(target=_wait, args=(reader,), name="detmap-interrupts", daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda *_: None)


def unwatch() -> None:
    """Restore Python's handling of SIGINT: the main thread gets a KeyboardInterrupt and can end its child processes."""
    if threading.current_thread() is threading.main_thread() and signal.set_wakeup_fd(-1) >= 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _wait(reader: int) -> None:
    while signal.SIGINT not in os.read(reader, 64):
        pass
    end()


def end() -> NoReturn:
    """End this process with the exit code and the message of an interrupt."""
    _ending.append(True)
    last = threading.Thread(target=_tidy, daemon=True)
    last.start()
    last.join(_PATIENCE)
    sys.stderr = None  # suppress further output
    whole_files.abandon()
    with contextlib.suppress(OSError):
        os.write(2, b"detmap: interrupted\n")
    os._exit(CODE)


def _tidy() -> None:
    for task in reversed(_before_end):
        with contextlib.suppress(Exception):
            task()


def ending() -> bool:
    """Return whether this process is about to end because of an interrupt."""
    return bool(_ending)


@contextlib.contextmanager
def before_end(task: Callable[[], object]) -> Iterator[None]:
    """Context manager in which an interrupt calls `task`, from another thread, before the process ends."""
    _before_end.append(task)
    try:
        yield
    finally:
        _before_end.remove(task)


def leave() -> None:
    """Ignore SIGINT from now on, because all work is done; if a SIGINT is already ending the process, wait for the end."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _ending:
        threading.Event().wait()
