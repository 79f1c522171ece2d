"""A second process that compiles missing kernels in reverse order, which halves the wait for compilation.

The main process compiles each kernel at its first call. The second process first evaluates a few boxes with uncompiled
kernels, to find the needed kernels and their argument types. Then it compiles these kernels in reverse order of their
first calls. Each process announces the kernel that it begins to compile. If the second process fails, the main process
compiles everything.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

    from detmap.detection.protocols import Protocol

#: Program of the second process, with the import path of the main process.
_PROGRAM = "import sys; sys.path[:] = {path!r}; from detmap.cli import second_process; second_process.run()"


#: Maximum number of seconds to wait for a kernel from the second process, before the second process is ended.
_LONGEST = 120.0


class SecondProcess:
    """The second process of this module. It is started as soon as a kernel is missing."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._owner = os.getpid()
        self._process: subprocess.Popen[str] | None = None
        self._started = False
        self._compiled: set[str] = set()
        self._at = ""
        self._changed = threading.Condition()

    def has_compiled(self, label: str) -> bool:
        """Return whether the second process has compiled a missing kernel; wait if that process is compiling it."""
        if os.getpid() != self._owner:  # a fork receives no messages of the second process
            return False
        with self._changed:
            if not self._started:
                self._started = True
                try:
                    self._start()
                except Exception:  # without the second process, this process compiles everything
                    self.end()
            if not self._changed.wait_for(lambda: self._at != label, _LONGEST):
                self._at = ""
                self.end()
            if label in self._compiled:
                return True
            self._say(label)
            return False

    def _start(self) -> None:
        import base64
        import pickle
        import subprocess

        from detmap.kernels import _ahead, _numba
        from detmap.system.parallel import cores

        # With detmap's precompiled kernels, only kernels of plug-ins can be missing.
        if cores() < 2 or _ahead.chosen().object is not None:
            return
        _numba.writable_folder()
        protocol = base64.b64encode(pickle.dumps(self._protocol)).decode()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._say(protocol)
        said = self._process.stdout
        threading.Thread(target=self._listen, args=[said], name="detmap-compiling", daemon=True).start()

    def _say(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()

    def _listen(self, said: IO[str]) -> None:
        with contextlib.suppress(OSError, ValueError), said:
            for line in said:
                word, _, label = line.strip().partition(" ")
                with self._changed:
                    self._at = label if word == "begin" else ""
                    if word == "end":
                        self._compiled.add(label)
                    self._changed.notify_all()
        with self._changed:
            self._at = ""
            self._changed.notify_all()

    def end(self) -> None:
        """End the second process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            with contextlib.suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]


@contextlib.contextmanager
def second_process(protocol: Protocol) -> Iterator[None]:
    """Context manager in which a second process compiles missing kernels of an evaluation."""
    from detmap.kernels import elsewhere

    other = SecondProcess(protocol)
    elsewhere.ASKED.append(other.has_compiled)
    try:
        yield
    finally:
        elsewhere.ASKED.remove(other.has_compiled)
        other.end()


def run() -> None:
    """Main function of the second process."""
    import base64
    import pickle
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    told: set[str] = set()
    protocol = pickle.loads(base64.b64decode(sys.stdin.readline()))

    def follow() -> None:
        for line in iter(sys.stdin.readline, ""):
            told.add(line.strip())
        os._exit(0)  # the parent has ended

    threading.Thread(target=follow, daemon=True).start()
    for function, types in reversed(calls(lambda: _evaluate(protocol))):
        label = function._cache.label
        if label not in told:
            print("begin", label, flush=True)
            function.compile(types)
            print("end", label, flush=True)


def _evaluate(protocol: Protocol) -> None:
    from detmap import evaluate
    from detmap.cli import workload

    dict(evaluate(*workload.tables(protocol.iou_type), protocol=protocol))


def calls(task: Callable[[], object]) -> list[tuple[Any, Any]]:
    """Return the kernels that a task calls, with their argument types, in the order of first calls."""
    import importlib
    import pkgutil
    import warnings

    import detmap.kernels
    from detmap.cli.compiling import Recorder

    names = [f"detmap.kernels.{module.name}" for module in pkgutil.iter_modules(detmap.kernels.__path__)]
    modules = [importlib.import_module(name) for name in names]
    before = [dict(vars(module)) for module in modules]
    try:
        for module in modules:
            plain = {name: value.py_func for name, value in vars(module).items() if hasattr(value, "py_func")}
            vars(module).update(plain)
        # Kernels of plug-ins stay compiled, because they may call helpers that Python code cannot call.
        own = [kernel for kernel in detmap.kernels.KERNELS if kernel.__module__ in names]
        recorder = Recorder([getattr(kernel, "py_func", kernel) for kernel in own])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # uncompiled kernels warn of integer overflows
            task()
    finally:
        for module, names_before in zip(modules, before, strict=True):
            vars(module).update(names_before)
    return [(getattr(sys.modules[module], name), types) for module, name, types in recorder.seen()]
