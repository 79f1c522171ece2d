"""Run tasks in separate processes, and kill a process that exceeds a limit of time or memory."""

from __future__ import annotations

import gc
import io
import json
import math
import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, TypeVar

from detmap import plugins
from detmap.errors import DetmapError, OptionError, shorten
from detmap.system import parallel

T = TypeVar("T")

_TICK = 0.02  # seconds between two checks of the process
_FORKS = sys.platform == "linux"  # elsewhere forking a process with loaded libraries is unsafe
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl
_KILLED = 9  # SIGKILL, which Python's `signal` does not define on Windows
_own = threading.local()
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from detmap.batch.limited_process import main; main()"
)


class LimitError(DetmapError):
    """A task reached a limit of time or memory."""


@dataclass(frozen=True)
class Limits:
    """Limits for scoring one file. With a limit, each file is scored in a separate process; without limits, each thread
    has a process that scores one file after the other.

    Parameters
    ----------
    seconds : float, optional
        Maximum time for reading and scoring the file; loading the ground truth is not counted.
    memory : int, optional
        Maximum memory in bytes, in addition to the memory of the program and the ground truth. Requires a system that
        reports the memory of a process, such as Linux.

    Raises
    ------
    OptionError
        For a limit of 0 or less, or a limit of memory on a system that does not report the memory of a process.
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
    """Return the resident memory of a process in bytes; 0 if the system does not report it or the process has ended.

    Pages of mapped files are not counted. A forked process maps its parent's pages only when it reads them, so the
    count would grow without new memory.
    """
    try:
        with open(f"/proc/{process}/status", "rb") as file:
            lines = (line.split() for line in file)
            return sum(int(words[1]) << 10 for words in lines if words[0] in (b"RssAnon:", b"RssShmem:"))
    except (OSError, ValueError, IndexError):
        return 0


def run(
    limits: Limits,
    prepare: Callable[..., object],
    task: Callable[..., T],
    shared: tuple[Any, ...],
    arguments: tuple[Any, ...],
) -> T:
    """Return ``task(*shared, *arguments)``, computed in a separate process. Raises `LimitError` if the process reaches a
    limit, `DetmapError` if the process ends without a result, and any exception that the task raises.

    The process is forked from a server process that has called ``prepare(*shared)``; without limits, the server itself
    runs the task. Later calls in the same thread reuse the server if `shared` is the same. Time and memory are counted
    from the fork. All arguments are pickled.
    """
    server: _Server | None = getattr(_own, "server", None)
    if server is None or not server.serves(prepare, task, shared):
        server = _own.server = _Server(prepare, task, shared)
    try:
        good, outcome = pickle.loads(server.outcome(limits, arguments))
    except BaseException:
        close()
        raise
    if not good:
        raise outcome
    found: T = outcome
    return found


class _Server:
    """A server process that forks a process for each task with limits. The server itself runs tasks without limits, and
    all tasks if forking is unsafe.
    """

    def __init__(self, prepare: Callable[..., object], task: Callable[..., Any], shared: tuple[Any, ...]) -> None:
        self._serves = (prepare, task, *shared)
        command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(self._process.stdout, self._said), daemon=True).start()
        self.close = weakref.finalize(self, _end, self._process)
        parcel = pickle.dumps((prepare, task, shared), pickle.HIGHEST_PROTOCOL)
        self._send((os.getpid(), plugins.loaded(), parallel.thread_count(None), parcel))

    def serves(self, prepare: Callable[..., object], task: Callable[..., Any], shared: tuple[Any, ...]) -> bool:
        """Return whether the server was created for these functions and identical shared objects."""
        wanted = (prepare, task, *shared)
        return len(wanted) == len(self._serves) and all(a is b for a, b in zip(wanted, self._serves, strict=True))

    def outcome(self, limits: Limits, arguments: tuple[Any, ...]) -> bytes:
        """Run a task and return a pickled pair: whether the task succeeded, and its result or exception."""
        self._send((_FORKS and limits != Limits(), arguments))
        process, before = self._wait(lambda: None)
        begun = time.monotonic()
        data: bytes | None
        data, status = self._wait(lambda: limits.check(begun, _resident(process) - before if limits.memory else 0))
        if data is None:
            raise _ended(status)
        limits.check(begun, 0)  # the time may have run out since the last check
        return data

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # the process has ended; `_wait` raises the error
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def _wait(self, check: Callable[[], None]) -> Any:
        """Return the next message of the process; call `check` every `_TICK` seconds while waiting."""
        while True:
            with suppress(queue.Empty):
                message = self._said.get(timeout=_TICK)
                if message is None:
                    raise _ended(self._process.wait())
                return message
            if parallel.stop_flag()[0]:
                raise parallel.Stopped
            check()


def _ended(status: int) -> DetmapError:
    how = f"signal {-status}" if status < 0 else f"code {status}"
    asked = ": was there enough memory?" if status == -_KILLED else ""
    return DetmapError(f"its process ended without a result ({how}){asked}")


def close() -> None:
    """End the server process of this thread, which would otherwise end together with the thread."""
    server: _Server | None = getattr(_own, "server", None)
    if server is not None:
        server.close()
        _own.server = None


def _listen(stream: IO[bytes], said: queue.SimpleQueue[Any]) -> None:
    """Put the messages of a process into a queue, and None after the last message."""
    with suppress(EOFError, OSError, pickle.UnpicklingError), stream:
        while True:
            said.put(pickle.load(stream))
    said.put(None)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a server process; the system then kills its forked child (see `_die_with`)."""
    process.kill()
    process.wait()
    with suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]


def main() -> None:
    """Run the tasks read from standard input, and write the outcomes of the tasks to standard output."""
    with os.fdopen(os.dup(1), "wb") as out, suppress(EOFError):
        os.dup2(2, 1)  # printed text must not mix with results
        caller, modules, threads, parcel = pickle.load(sys.stdin.buffer)
        if _FORKS:
            _die_with(caller)
        plugins.load(modules)
        prepare, task, shared = pickle.loads(parcel)
        # Errors are ignored, because they occur again in the task. One thread is used, because threads do not survive a
        # fork.
        with suppress(Exception), parallel.limited(1):
            prepare(*shared)
        gc.freeze()  # exclude all objects loaded by now from garbage collection
        while True:
            forking, arguments = pickle.load(sys.stdin.buffer)
            with tempfile.TemporaryFile() if forking else io.BytesIO() as made:
                status = _run(partial(task, *shared, *arguments), threads, forking, made, out)
                made.seek(0)
                pickle.dump((None if status else made.read(), status), out)
            out.flush()


def _die_with(parent: int) -> None:
    """Ask the system to kill this process when the thread that started it ends. `parent` is the id of the parent
    process.
    """
    import ctypes

    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, _KILLED)
    if os.getppid() != parent:  # the parent has ended already
        os._exit(1)


def _run(task: Callable[[], object], threads: int, forking: bool, made: IO[bytes], out: IO[bytes]) -> int:
    """Run a task in a forked process that writes the outcome to `made`, and return the exit status of the process.
    First, write the process id and the memory used before the fork to `out`. If `forking` is false, run the task in
    this process.
    """
    before, server = _resident("self"), os.getpid()
    process = os.fork() if forking else 0
    if process or not forking:
        pickle.dump((process or server, before), out)
        out.flush()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    try:
        if forking:
            _die_with(server)
        with parallel.limited(threads):
            made.write(_outcome_of(task))
            made.flush()
    except BaseException:
        if not forking:
            raise
        os._exit(1)
    if forking:
        os._exit(0)
    return 0


def _outcome_of(task: Callable[[], object]) -> bytes:
    """Run a task and return a pickled pair: whether the task succeeded, and its result or exception."""
    try:
        outcome: tuple[bool, Any] = True, task()
    except Exception as error:
        outcome = False, error
    try:
        data = pickle.dumps(outcome)
        if not outcome[0]:
            pickle.loads(data)  # some exceptions can be pickled but not unpickled
        return data
    except Exception:
        text = f"{type(outcome[1]).__name__}: {shorten(str(outcome[1]), 300)}"
        return pickle.dumps((False, DetmapError(text)))
