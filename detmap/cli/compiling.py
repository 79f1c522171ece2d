"""Compile every kernel in worker processes, for `detmap warm`."""

from __future__ import annotations

import argparse
import contextlib
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from detmap.cli.output import progress
from detmap.errors import MissingDependencyError, OptionError, shorten
from detmap.system.interrupts import unwatch

#: Module and name of a kernel, and the types of its arguments.
Task = tuple[str, str, Any]


def warm(options: argparse.Namespace) -> None:
    """Compile the missing kernels, and print the folder of the cache and the time taken."""
    from detmap.kernels import _ahead

    started = time.perf_counter()
    unwatch()
    found = _ahead.chosen().object
    if found is not None:
        print(
            f"Nothing to do: {found.path} holds all kernels, compiled. DETMAP_KERNELS=jit compiles them all the same."
        )
        return
    if not _ahead.has_numba():
        raise MissingDependencyError("numba", "jit", "detmap warm")
    os.environ.pop("NUMBA_DISABLE_JIT", None)
    if options.cpu is not None:  # numba reads these variables when it is imported
        os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = options.cpu, ""
    folder, tasks, costs = compile_all(options.cpu, lambda count: progress(options, count, "kernels"))
    seconds = time.perf_counter() - started
    print(f"{len(tasks)} kernels, {len(costs)} of them compiled now, in {seconds:.1f} s")
    if options.verbose:
        for label, cost in sorted(costs.items(), key=lambda item: -item[1]):
            print(f"{cost:8.2f} s  {label}")
    print(folder)
    if options.cpu is not None:
        print(f"They are found where NUMBA_CPU_NAME={options.cpu} and NUMBA_CPU_FEATURES= (empty) are set.")


def compile_all(
    cpu: str | None, shown: Callable[[int], contextlib.AbstractContextManager[Callable[[], None]]] | None = None
) -> tuple[str, list[Task], dict[str, float]]:
    """Compile every kernel that is not in the cache, in worker processes.

    The context manager ``shown(number_of_kernels)`` displays progress. It yields a function, which is called after each
    kernel. Return the folder of the cache, all kernels, and the processor time in seconds of each compilation.
    """
    from detmap.system.parallel import cores

    folder, tasks = survey(cpu)
    show: Any = shown or (lambda count: contextlib.nullcontext(lambda: None))
    with _processes(cores(), {"DETMAP_KERNELS": "jit"}) as pool, show(len(tasks)) as advance:
        costs: dict[str, float] = {}
        for done in as_completed(pool.start(_compile, tasks)):
            costs.update(done.result())
            advance()
    return folder, tasks, costs


def survey(cpu: str | None) -> tuple[str, list[Task]]:
    """Return the folder of the cache, and every kernel with its argument types."""
    with _processes(1, {"NUMBA_DISABLE_JIT": "1"}) as pool:
        found: tuple[str, list[Task]] = pool.start(_survey, [cpu])[0].result()
        return found


@contextlib.contextmanager
def _processes(count: int, environment: dict[str, str]) -> Iterator[_Pool]:
    """Yield a pool of worker processes; an error or interrupt in this process terminates them."""
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin, (environment,)) as executor:
        try:
            yield _Pool(executor)
        except BrokenProcessPool:
            raise OptionError("a process that compiled was killed; is there too little memory?") from None
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise


class _Pool(NamedTuple):
    """A pool of processes that ignore Ctrl-C, which the parent process handles."""

    executor: ProcessPoolExecutor

    def start(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Future[Any]]:
        """Submit a call of `function` for each of `tasks`."""
        if not hasattr(signal, "pthread_sigmask"):
            return [self.executor.submit(function, task) for task in tasks]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # new processes inherit the mask
        try:
            return [self.executor.submit(function, task) for task in tasks]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(environment: dict[str, str]) -> None:
    """Initialise a process: set `environment` before numba is imported."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(environment)


def _survey(cpu: str | None) -> tuple[str, list[Task]]:
    """Return the folder of the cache, and every kernel with its argument types, recorded during a workload on small data."""
    # Kernels run uncompiled here, because code for another processor may not run on this machine.
    import detmap.kernels
    from detmap.cli import workload  # imports numba, after `_begin` has set the environment
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
    recorder = Recorder(detmap.kernels.KERNELS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # uncompiled kernels warn of integer overflows and divisions by zero
        workload.run()
    return str(folder), recorder.tasks()


class Recorder:
    """Records the argument types of kernels that Python code calls. Compiling a kernel also compiles the kernels that
    it calls.
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

    def seen(self) -> list[Task]:
        """Return the recorded kernels in the order of first calls."""
        return list(self._seen)

    def tasks(self) -> list[Task]:
        """Return the recorded kernels in descending order of bytecode length."""
        return sorted(self._seen, key=lambda task: -self._seen[task])


def _check_cpu(name: str | None) -> None:
    """Refuse a processor unknown to LLVM, which would only print a warning and ignore the name."""
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


def _compile(task: Task) -> dict[str, float]:
    """Compile a kernel and return its label with the processor time in seconds; return {} for a cached kernel."""
    from detmap.kernels import _numba

    module, name, types = task
    function = getattr(importlib.import_module(module), name)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error", _numba.CacheWarning)
        try:
            function.compile(types)
        except _numba.CacheWarning as warning:
            raise OptionError(str(warning)) from None
    if function.stats.cache_hits:
        return {}
    return {f"{module.rpartition('.')[2]}.{name}": time.process_time() - started}
