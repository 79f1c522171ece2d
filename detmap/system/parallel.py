"""Run tasks over blocks on a thread pool. Only this module starts threads for computations; nested calls start none.

Ctrl-C, or a signal handler that raises, can interrupt a waiting caller. Pending blocks are then cancelled, and a flag
tells running blocks to stop. Long kernels check the flag; blocks of other kernels are short.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import OptionError, is_integer
from detmap.kernels import NEVER, readonly

T = TypeVar("T")
_inside = threading.local()
_PATIENCE = 0.2  # seconds that an interrupt waits for running blocks, which may be compiling
_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use, by default one per processor. Parallel tasks share the available threads."""
    if threads is not None and (not is_integer(threads) or threads < 1):
        raise OptionError(f"threads must be a positive integer or None, not {threads!r}")
    limit: int | None = getattr(_inside, "limit", None)
    # More than a few threads per processor save no time, and starting them takes time.
    return min(int(threads or limit or cores()), limit or 8 * cores())


class Stopped(BaseException):
    """The work of this thread was cancelled; its result is not used."""


class _Flag:
    """Tells tasks and their kernels to stop; kernels read `seen`."""

    def __init__(self) -> None:
        self._word = np.zeros(1, np.uint8)
        self.seen = readonly(self._word, np.uint8)

    def set(self) -> None:
        self._word[0] = 1


def stop_flag() -> NDArray[np.uint8]:
    """Return the flag that long kernels of this thread check, uint8 of shape (1,); nonzero once the kernels must stop."""
    flag: _Flag | None = getattr(_inside, "flag", None)
    return NEVER if flag is None else flag.seen


def check() -> None:
    """Raise `Stopped` if this thread's work was cancelled."""
    if stop_flag()[0]:
        raise Stopped


def steps(begin: int, end: int, cost: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive parts of a block of items, each of cost `cost`. A part costs about `limit`. Check for
    cancellation before each part.
    """
    step = max(1, limit // max(1, cost))
    for low in range(begin, end, step):
        check()
        yield low, min(low + step, end)


def _enter_worker(limit: int = 1, flag: _Flag | None = None) -> None:
    _inside.limit = limit
    _inside.flag = flag


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Context manager that limits the number of threads, because the process shares the machine."""
    before = getattr(_inside, "limit", None)
    _inside.limit = threads
    try:
        yield
    finally:
        _inside.limit = before


def run(
    task: Callable[[int, int], T],
    blocks: Sequence[tuple[int, int]],
    threads: int | None = None,
    *,
    apart: bool = False,
) -> list[T]:
    """Call ``task(begin, end)`` for every half-open block and return the results in the order of `blocks`.

    A task must release the GIL (a kernel, or numpy on large arrays) and write only the output of its block. Called from
    within a task, `run` uses only the calling thread. If `apart` is true, no block runs in the main thread, which stays
    free to handle signals. Blocks may then take long if they check `stop_flag`.
    """
    workers = min(thread_count(threads), len(blocks))
    if workers <= 1 and not (apart and blocks and threading.current_thread() is threading.main_thread()):
        results = []
        for begin, end in blocks:
            results.append(task(begin, end))
            check()
        return results
    above: _Flag | None = getattr(_inside, "flag", None)
    flag = above or _Flag()

    def work(begin: int, end: int) -> T:
        _inside.flag = flag
        check()
        return task(begin, end)

    futures: list[Future[T]] = []
    try:
        pool = _pool(workers)
        for begin, end in blocks:
            futures.append(pool.submit(work, begin, end))
        wait(futures, return_when=FIRST_EXCEPTION)  # wakes this thread once instead of for every block
        results = [future.result() for future in futures]
    except BaseException as error:  # no block may keep running after `run` returns
        if above is None:
            flag.set()
        for future in futures:
            future.cancel()
        own = any(future.done() and not future.cancelled() and future.exception() is error for future in futures)
        if wait(futures, None if own else _PATIENCE).not_done:
            _pools.pop(workers, None)  # the pool's threads are still busy, so the next call needs a new pool
        raise
    check()
    return results


def _pool(workers: int) -> ThreadPoolExecutor:
    """Return the pool of `workers` threads, which is kept because starting threads takes longer than most tasks."""
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, "detmap", _enter_worker)
        return _pools[workers]


def _forget_pools() -> None:
    """Replace pools and lock in a forked process, which lacks the threads of its parent."""
    global _lock
    _pools.clear()
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


class Workers(ThreadPoolExecutor):
    """A pool for large tasks that can be cancelled while running."""

    def __init__(self, workers: int, threads: int) -> None:
        self._flag = _Flag()
        self._futures: set[Future[Any]] = set()
        super().__init__(workers, "detmap", _enter_worker, (threads, self._flag))

    def submit(self, *arguments: Any, **keywords: Any) -> Future[Any]:
        """Submit a task, like `ThreadPoolExecutor.submit`."""
        future = super().submit(*arguments, **keywords)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def stop(self, patience: float | None) -> None:
        """Cancel pending tasks, tell running tasks to stop, and wait at most `patience` seconds (None: until all stop)."""
        self._flag.set()
        self.shutdown(wait=False, cancel_futures=True)
        wait(list(self._futures), patience)


@contextmanager
def executor(tasks: int, threads: int | None = None) -> Iterator[Workers]:
    """Yield a pool for a number of large tasks, which share `threads` threads.

    Leaving the context early cancels all tasks, and waits until running tasks stop. After an exception it waits only
    briefly.
    """
    total = thread_count(threads)
    workers = max(1, min(total, tasks))
    pool = Workers(workers, total // workers)
    try:
        yield pool
    except BaseException as error:
        pool.stop(None if isinstance(error, GeneratorExit) else _PATIENCE)
        raise
    pool.shutdown()


def split(costs: ArrayLike, limit: float) -> list[tuple[int, int]]:
    """Cut a sequence of `costs` into half-open ranges with sums of about `limit`."""
    total: NDArray[Any] = np.cumsum(np.asarray(costs, dtype=np.float64))
    if not total.size:
        return []
    bins = np.floor(np.concatenate(([0.0], total)) / max(limit, 1e-300))
    cuts = [0, *(np.flatnonzero(np.diff(bins)) + 1).tolist(), int(total.size)]
    return [(a, b) for a, b in itertools.pairwise(cuts) if b > a]


def cut(starts: NDArray[np.int64], threads: int | None) -> list[tuple[int, int]]:
    """Cut consecutive groups into ranges with about equally many items, a few ranges per thread. Group *g* has the items
    ``starts[g]:starts[g + 1]``.
    """
    groups = starts.size - 1
    ends = [end for _, end in even(int(starts[-1]), threads)]
    cuts = sorted({0, *np.searchsorted(starts, ends).tolist(), groups})
    return list(itertools.pairwise(cuts))


def even(count: int, threads: int | None) -> list[tuple[int, int]]:
    """Cut ``[0, count)`` into a few equal ranges per thread, so that a slow core does not delay the result."""
    if not count:
        return []
    workers = thread_count(threads)
    pieces = min(count, 1 if workers == 1 else 4 * workers)
    return [(count * i // pieces, count * (i + 1) // pieces) for i in range(pieces)]


def together(count: int, size: int) -> list[tuple[int, int]]:
    """Cut ``[0, count)`` into equal ranges of at most `size`; if `count` is large, all threads get equally many ranges."""
    workers = thread_count(None)
    pieces = min(count, workers * -(-count // (workers * size)))
    return [(count * i // pieces, count * (i + 1) // pieces) for i in range(pieces)]
