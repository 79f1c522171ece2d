"""A task in a process of its own, which ends when it reaches a limit of time or memory."""

from __future__ import annotations

import json
import math
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from detmap import plugins
from detmap.errors import DetmapError, OptionError, shorten
from detmap.system import parallel

T = TypeVar("T")

_TICK = 0.02  # seconds between two checks of the process
_HEAD = struct.Struct("<q")  # the header of the output: the memory in use before the task begins
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from detmap.batch.limited_process import main; main()"
)


class LimitError(DetmapError):
    """A task reached one of its limits."""


@dataclass(frozen=True)
class Limits:
    """Limits of scoring one file: time, and memory beyond that of the program and the ground truth.

    Parameters
    ----------
    seconds : float, optional
        From the loaded ground truth to the result.
    memory : int, optional
        In bytes. The system must report the memory of a process, as Linux does.

    Raises
    ------
    OptionError
        For a limit of 0 or less, and where the system does not report memory.
    """

    seconds: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise OptionError(f"the limit of time must be a number of seconds above 0, not {shorten(self.seconds)}")
        if self.memory is not None and not self.memory > 0:
            raise OptionError(f"the limit of memory must be a number of bytes above 0, not {shorten(self.memory)}")
        if self.memory is not None and not _resident("self"):
            raise OptionError("this system does not tell how much memory a process takes, so that it cannot be limited")

    def check(self, begun: float, memory: int) -> None:
        """Raise `LimitError` if a task that began at `begun` and uses `memory` bytes exceeds a limit."""
        if self.seconds is not None and time.monotonic() - begun > self.seconds:
            unit = "second" if self.seconds == 1 else "seconds"
            raise LimitError(f"stopped: it reached the limit of {self.seconds:g} {unit} (--limit-seconds)")
        if self.memory is not None and memory > self.memory:
            raise LimitError(f"stopped: it reached the limit of {_shown(self.memory)} of memory (--limit-memory)")


def _shown(size: int) -> str:
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if not size % (1 << shift):
            return f"{size >> shift} {unit}"
    return f"{size} bytes"


def _resident(process: int | str) -> int:
    """Return the resident memory of a process in bytes; 0 where the system does not report it, or the process has ended."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def run(limits: Limits, prepare: Callable[..., object], task: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Return ``task(*arguments)``, computed in a process of its own. Raises `LimitError` where it reaches a limit,
    `DetmapError` where the process ends without a result; and whatever the task raises.

    The clock starts, and memory counts, when ``prepare(*arguments)`` has loaded what every task needs. `prepare`, `task` and
    `arguments` are pickled.
    """
    parcel = pickle.dumps((prepare, task, arguments), pickle.HIGHEST_PROTOCOL)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        pickle.dump((plugins.loaded(), parallel.thread_count(None), parcel), given)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)], stdin=given, stdout=made, stderr=subprocess.DEVNULL
        )
        try:
            _watch(process, made, limits)
        finally:
            process.kill()
            process.wait()
        made.seek(_HEAD.size)
        try:
            good, outcome = pickle.load(made)
        except (EOFError, pickle.UnpicklingError):
            how = f"signal {-process.returncode}" if process.returncode < 0 else f"code {process.returncode}"
            raise DetmapError(f"its process ended without a result ({how}): was there enough memory?") from None
    if not good:
        raise outcome
    found: T = outcome
    return found


def _watch(process: subprocess.Popen[bytes], made: IO[bytes], limits: Limits) -> None:
    """Wait until a process ends; raise `LimitError` when it exceeds a limit."""
    begun, before = 0.0, None
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_TICK)
            return
        if parallel.stop_flag()[0]:
            raise parallel.Stopped
        if before is None:
            begun, before = time.monotonic(), _at_its_beginning(made)
        else:
            limits.check(begun, _resident(process.pid) - before if limits.memory else 0)


def _at_its_beginning(made: IO[bytes]) -> int | None:
    """Return the memory that a process reports as its task begins; None before that."""
    if not hasattr(os, "pread"):  # such systems cannot limit memory
        return 0 if os.fstat(made.fileno()).st_size else None
    # not a seek, which would move the position at which the process writes
    head = os.pread(made.fileno(), _HEAD.size, 0)
    return int(_HEAD.unpack(head)[0]) if len(head) == _HEAD.size else None


def main() -> None:
    """Run the task from standard input, and write its outcome to standard output."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # keep what the task prints out of the result
        modules, threads, parcel = pickle.load(sys.stdin.buffer)
        plugins.load(modules)
        prepare, task, arguments = pickle.loads(parcel)
        with parallel.limited(threads):
            with suppress(Exception):  # the task itself raises the error
                prepare(*arguments)
            out.write(_HEAD.pack(_resident("self")))
            out.flush()
            try:
                outcome: tuple[bool, Any] = True, task(*arguments)
            except Exception as error:
                outcome = False, error
        try:
            data = pickle.dumps(outcome)
        except Exception:  # exceptions may hold anything
            data = pickle.dumps((False, DetmapError(f"{type(outcome[1]).__name__}: {shorten(str(outcome[1]), 300)}")))
        out.write(data)
