"""The command warm: compile every kernel now, in parallel, so that nobody waits for it later."""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import multiprocessing
import os
import pkgutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from detmap.cli import workload
from detmap.cli.output import progress
from detmap.errors import OptionError, shorten

#: A kernel by module and name, and the types of its arguments.
Task = tuple[str, str, Any]


def add_commands(commands: Any) -> None:
    """Add warm."""
    warm = commands.add_parser(
        "warm",
        help="compile all kernels ahead of time",
        description="Compile every kernel in parallel processes and keep them on disk, so that no later run compiles: "
        "for images of containers and shared folders of clusters. NUMBA_CACHE_DIR names another folder.",
    )
    warm.set_defaults(run=_warm)
    warm.add_argument(
        "--cpu",
        metavar="NAME",
        help="compile for this processor, as LLVM names it, or 'generic' for any; default: the one of this machine",
    )
    warm.add_argument("--quiet", action="store_true", help="no notes or progress on stderr")


def _warm(options: argparse.Namespace) -> int:
    started = time.perf_counter()
    if options.cpu is not None:  # before anything imports numba, here and in the processes that are started
        os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = options.cpu, ""
    os.environ.pop("NUMBA_DISABLE_JIT", None)
    processes = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(1, processes, _begin, ({"NUMBA_DISABLE_JIT": "1"},)) as pool:
            folder, tasks = pool.submit(_survey, options.cpu).result()
        with ProcessPoolExecutor(_cores(), processes, _begin, ({},)) as pool:
            compiled = 0
            with progress(options, len(tasks), "kernels") as advance:
                for done in as_completed([pool.submit(_compile, task) for task in tasks]):
                    compiled += done.result()
                    advance()
    except BaseException:  # an interrupt, above all: nobody waits for what is still being compiled
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    seconds = time.perf_counter() - started
    print(f"{len(tasks)} kernels, {compiled} of them compiled now, in {seconds:.1f} s")
    print(folder)
    if options.cpu is not None:
        print(f"They are found where NUMBA_CPU_NAME={options.cpu} and NUMBA_CPU_FEATURES= (empty) are set.")
    return 0


def _cores() -> int:
    from detmap.parallel import cores

    return cores()


def _begin(environment: dict[str, str]) -> None:
    """Begin a process: an interrupt is its parent's to handle, and `environment` is set before numba is imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(environment)


def _survey(cpu: str | None) -> tuple[str, list[Task]]:
    """Return the folder of the cache, and what every kernel is called with when everything is run on a little data.

    The kernels are interpreted here, so that they can be compiled for a processor that this machine is not.
    """
    import detmap.kernels
    from detmap.kernels import _numba

    _check_cpu(cpu)
    for module in pkgutil.iter_modules(detmap.kernels.__path__):
        importlib.import_module(f"detmap.kernels.{module.name}")
    try:
        folder = _numba.writable_folder()
    except OSError as error:
        reason = f"{error.filename or 'any folder'}: {error.strerror or error}"
        raise OptionError(
            f"compiled kernels cannot be kept in {reason}; NUMBA_CACHE_DIR=FOLDER names another"
        ) from None
    recorder = _Recorder(detmap.kernels.KERNELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # interpreted integers that wrap around, divisions by zero
        workload.run()
    return str(folder), recorder.tasks()


class _Recorder:
    """Notes the types of the arguments of every kernel that is called from outside of kernels.

    What kernels call is compiled along with them.
    """

    def __init__(self, kernels: list[Any]) -> None:
        self._seen: dict[Task, int] = {}
        self._inside = threading.local()
        for function in kernels:
            setattr(sys.modules[function.__module__], function.__name__, self._recorded(function))

    def _recorded(self, function: Any) -> Any:
        import numba

        type_of: Any = numba.typeof
        parameters = inspect.signature(function)
        weight = len(function.__code__.co_code)

        @functools.wraps(function)
        def recorded(*given: Any, **named: Any) -> Any:
            if getattr(self._inside, "kernel", False):
                return function(*given, **named)
            types = tuple(type_of(value) for value in parameters.bind(*given, **named).args)
            self._seen[function.__module__, function.__name__, types] = weight
            self._inside.kernel = True
            try:
                return function(*given, **named)
            finally:
                self._inside.kernel = False

        return recorded

    def tasks(self) -> list[Task]:
        """Return what is to be compiled, what takes longest first."""
        return sorted(self._seen, key=lambda task: -self._seen[task])


def _check_cpu(name: str | None) -> None:
    """Refuse a processor that LLVM does not know, which it says on standard error and then ignores."""
    if name is None:
        return
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    before = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            binding.Target.from_default_triple().create_target_machine(cpu=name)
        finally:
            os.dup2(before, 2)
            os.close(before)
        said.seek(0)
        if b"not a recognized processor" in said.read():
            raise OptionError(f"--cpu {shorten(name)}: LLVM knows no such processor; 'generic' runs on every machine")


def _compile(task: Task) -> bool:
    """Compile a kernel unless it is there, and return whether it was compiled."""
    from detmap.kernels import _numba

    module, name, types = task
    function = getattr(importlib.import_module(module), name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", _numba.CacheWarning)
        try:
            function.compile(types)
        except _numba.CacheWarning as warning:
            raise OptionError(str(warning)) from None
    return not function.stats.cache_hits
