"""Runs a task over blocks on a thread pool; the only file that starts threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def run(task: Callable[[int, int], T], bounds: Sequence[tuple[int, int]], threads: int | None) -> list[T]:
    """Return ``[task(begin, end) for begin, end in bounds]``, worked on by `threads` threads (None: one per processor)."""
    workers = min(threads or os.cpu_count() or 1, len(bounds))
    if workers <= 1:
        return [task(begin, end) for begin, end in bounds]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(task, *zip(*bounds, strict=True)))
