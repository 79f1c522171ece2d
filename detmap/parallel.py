"""Runs a task over blocks on a thread pool: the only file that starts threads, and it knows when it is inside one."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.errors import OptionError

T = TypeVar("T")
_inside = threading.local()
_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """Return how many threads to work with: `threads`, or one per processor; inside a worker at most its share."""
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1):
        raise OptionError(f"threads must be a positive integer or None, not {threads!r}")
    limit: int | None = getattr(_inside, "limit", None)
    # More threads than a few per processor only cost their making.
    return min(int(threads or limit or cores()), limit or 8 * cores())


def _enter_worker(limit: int = 1) -> None:
    _inside.limit = limit


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Let what runs in this thread meanwhile use so many threads at most: its process shares the machine with others."""
    before = getattr(_inside, "limit", None)
    _inside.limit = threads
    try:
        yield
    finally:
        _inside.limit = before


def run(task: Callable[[int, int], T], blocks: Sequence[tuple[int, int]], threads: int | None = None) -> list[T]:
    """Call ``task(begin, end)`` for every block and return the results in the order of `blocks`.

    Parameters
    ----------
    task : callable
        Releases the GIL (a kernel, or numpy on large arrays) and writes only what belongs to its block.
    blocks : sequence of (int, int)
        The half-open ranges.
    threads : int, optional
        At most this many at a time; one per processor by default. A call from within a task runs in its caller's thread.
    """
    workers = min(thread_count(threads), len(blocks))
    if workers <= 1:
        return [task(begin, end) for begin, end in blocks]
    futures = [_pool(workers).submit(task, begin, end) for begin, end in blocks]
    try:
        return [future.result() for future in futures]
    finally:  # after an error too nothing goes on behind the caller's back
        for future in futures:
            future.cancel()
        wait(futures)


def _pool(workers: int) -> ThreadPoolExecutor:
    """Return the pool of so many threads. It stays: starting threads takes longer than many a task."""
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, "detmap", _enter_worker)
        return _pools[workers]


def _forget_pools() -> None:
    """A forked process has none of its parent's threads, nor whoever may have held the lock."""
    global _lock
    _pools.clear()
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def executor(tasks: int, threads: int | None = None) -> ThreadPoolExecutor:
    """Return a pool for a number of large tasks, which use `threads` in all, each its share."""
    total = thread_count(threads)
    workers = max(1, min(total, tasks))
    return ThreadPoolExecutor(workers, "detmap", _enter_worker, (total // workers,))


def split(costs: ArrayLike, limit: float) -> list[tuple[int, int]]:
    """Cut a sequence into runs of consecutive items whose costs add up to about `limit` (an item is never cut).

    Parameters
    ----------
    costs : array_like of float, shape (n,)
        The cost of each item, not negative.
    limit : float
        A run ends with the item that brings it to `limit` or beyond.

    Returns
    -------
    list of (int, int)
        Half-open ranges that cover ``[0, n)`` in order; empty for no items.
    """
    total: NDArray[Any] = np.cumsum(np.asarray(costs, dtype=np.float64))
    if not total.size:
        return []
    bins = np.floor(np.concatenate(([0.0], total)) / max(limit, 1e-300))
    cuts = [0, *(np.flatnonzero(np.diff(bins)) + 1).tolist(), int(total.size)]
    return [(a, b) for a, b in itertools.pairwise(cuts) if b > a]


def cut(starts: NDArray[np.int64], threads: int | None) -> list[tuple[int, int]]:
    """Cut groups, of which group *g* has the items ``starts[g]:starts[g + 1]``, into runs of about equally many items.

    As in `even` a few runs per thread; a group is never cut.
    """
    groups = starts.size - 1
    ends = [end for _, end in even(int(starts[-1]), threads)]
    cuts = sorted({0, *np.searchsorted(starts, ends).tolist(), groups})
    return list(itertools.pairwise(cuts))


def even(count: int, threads: int | None) -> list[tuple[int, int]]:
    """Cut ``[0, count)`` into a few equal runs per thread, so that a slow core does not hold up the others."""
    if not count:
        return []
    workers = thread_count(threads)
    pieces = min(count, 1 if workers == 1 else 4 * workers)
    return [(count * i // pieces, count * (i + 1) // pieces) for i in range(pieces)]
