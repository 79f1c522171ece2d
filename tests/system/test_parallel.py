"""Blocks, steps and threads: how work is cut, who runs it, and what is left of it after an error."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from detmap.errors import OptionError
from detmap.system import parallel


@pytest.fixture
def four(monkeypatch):
    """Four processors."""
    monkeypatch.setattr(parallel, "cores", lambda: 4)


def test_how_many_threads(four):
    assert parallel.thread_count(None) == 4
    assert [parallel.thread_count(n) for n in (1, 3, np.int8(5), 32, 33, 10**6)] == [1, 3, 5, 32, 32, 32]
    for bad in (0, -1, 1.5, "2", True):
        with pytest.raises(OptionError) as caught:
            parallel.thread_count(bad)
        assert str(caught.value) == f"threads must be a positive integer or None, not {bad!r}"
    with parallel.limited(2):
        assert [parallel.thread_count(n) for n in (None, 1, 3)] == [2, 1, 2]
        with parallel.limited(1):
            assert parallel.thread_count(8) == 1
        assert parallel.thread_count(8) == 2
    assert parallel.thread_count(None) == 4


def test_cores_without_affinity(monkeypatch):
    monkeypatch.delattr(parallel.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: 7)
    assert parallel.cores() == 7
    monkeypatch.setattr(parallel.os, "cpu_count", lambda: None)
    assert parallel.cores() == 1


@pytest.mark.parametrize(
    ("begin", "end", "cost", "limit", "steps"),
    [
        (0, 5, 1, 2, [(0, 2), (2, 4), (4, 5)]),
        (3, 9, 10, 30, [(3, 6), (6, 9)]),
        (3, 9, 10, 29, [(3, 5), (5, 7), (7, 9)]),
        (0, 3, 100, 1, [(0, 1), (1, 2), (2, 3)]),
        (0, 3, 0, 2, [(0, 2), (2, 3)]),
        (0, 3, 1, 0, [(0, 1), (1, 2), (2, 3)]),
        (2, 2, 1, 1, []),
    ],
)
def test_steps(begin, end, cost, limit, steps):
    assert list(parallel.steps(begin, end, cost, limit)) == steps


@pytest.mark.parametrize(
    ("costs", "limit", "blocks"),
    [
        ([], 5, []),
        ([1], 5, [(0, 1)]),
        ([1, 1, 1, 1, 1], 2, [(0, 2), (2, 4), (4, 5)]),
        ([5, 1, 1, 9, 1], 3, [(0, 1), (1, 2), (2, 4), (4, 5)]),
        ([0, 0, 0], 3, [(0, 3)]),
        ([9, 9], 0, [(0, 1), (1, 2)]),
        ([1.5, 1.5, 1.5, 1.5], 3.0, [(0, 2), (2, 4)]),
    ],
)
def test_costs_are_cut(costs, limit, blocks):
    assert parallel.split(costs, limit) == blocks


def cover(blocks, count):
    """Whether blocks lie end to end from 0 to `count`."""
    ends = [0, *(end for _, end in blocks)]
    return [begin for begin, _ in blocks] == ends[:-1] and ends[-1] == count


def test_equal_ranges(four):
    assert parallel.even(0, None) == []
    assert parallel.even(5, 1) == [(0, 5)]
    assert parallel.even(3, None) == [(0, 1), (1, 2), (2, 3)]
    for count in (1, 7, 16, 17, 100):
        for threads in (None, 1, 2, 3):
            blocks = parallel.even(count, threads)
            assert cover(blocks, count)
            assert len(blocks) == (1 if threads == 1 else min(count, 4 * (threads or 4)))
            sizes = [end - begin for begin, end in blocks]
            assert max(sizes) - min(sizes) <= 1


def test_ranges_of_groups(four):
    starts = np.array([0, 3, 3, 10, 11, 40])
    assert parallel.cut(starts, 1) == [(0, 5)]
    assert parallel.cut(starts, 2) == [(0, 3), (3, 5)]
    assert parallel.cut(np.array([0, 1, 2, 3]), None) == [(0, 1), (1, 2), (2, 3)]
    assert parallel.cut(np.array([0, 0, 0]), None) == [(0, 2)]
    assert parallel.cut(np.arange(0, 101, 10), 2) == [(0, 2), (2, 3), (3, 4), (4, 5), (5, 7), (7, 8), (8, 9), (9, 10)]


def test_ranges_of_a_size(four):
    assert parallel.together(0, 5) == []
    assert parallel.together(3, 100) == [(0, 1), (1, 2), (2, 3)]
    for count, size, pieces in (
        (10, 5, 4),
        (20, 5, 4),
        (21, 5, 8),
        (40, 5, 8),
        (41, 5, 12),
        (400, 100, 4),
        (401, 100, 8),
    ):
        blocks = parallel.together(count, size)
        assert cover(blocks, count)
        assert len(blocks) == pieces
        sizes = [end - begin for begin, end in blocks]
        assert max(sizes) <= size
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("threads", [1, 3, None])
@pytest.mark.parametrize("apart", [False, True])
def test_results_come_in_order(threads, apart, four):
    seen = []

    def task(begin, end):
        seen.append((threading.current_thread() is threading.main_thread(), parallel.thread_count(None)))
        return list(range(begin, end))

    for blocks in ([], [(0, 2)], [(0, 2), (2, 3), (3, 7), (7, 8)]):
        seen.clear()
        assert parallel.run(task, blocks, threads, apart=apart) == [list(range(*block)) for block in blocks]
        alone = min(threads or 4, len(blocks)) <= 1 and not apart
        assert seen == [(alone, 4 if alone else 1)] * len(blocks)


def test_a_task_in_a_task_uses_its_thread(four):
    def inner(begin, end):
        return threading.get_ident()

    def task(begin, end):
        return threading.get_ident(), parallel.run(inner, [(0, 1), (1, 2)], apart=True)

    for own, others in parallel.run(task, [(0, 1), (1, 2), (2, 3)]):
        assert others == [own, own]


def test_an_error_stops_the_others(four):
    begun = []

    def task(begin, end):
        begun.append(begin)
        if begin == 0:
            raise ZeroDivisionError
        while not parallel.stop_flag()[0]:
            time.sleep(0.001)
        parallel.check()

    with pytest.raises(ZeroDivisionError):
        parallel.run(task, [(n, n + 1) for n in range(50)], 2)
    assert len(begun) < 50
    assert parallel.stop_flag()[0] == 0
    assert parallel.run(lambda a, b: b, [(0, 1), (1, 2)], 2) == [1, 2]


def test_large_tasks_share_the_threads(four):
    def counts(tasks, threads):
        with parallel.executor(tasks, threads) as pool:
            return pool._max_workers, pool.submit(parallel.thread_count, None).result()

    assert counts(1, None) == (1, 4)
    assert counts(2, None) == (2, 2)
    assert counts(3, None) == (3, 1)
    assert counts(9, None) == (4, 1)
    assert counts(2, 7) == (2, 3)
    assert counts(0, None) == (1, 4)
    with parallel.limited(2):
        assert counts(5, 8) == (2, 1)


def test_a_pool_that_is_left_by_an_error_tells_its_tasks(four):
    ended = []

    def task():
        try:
            while True:
                parallel.check()
                time.sleep(0.001)
        except parallel.Stopped:
            ended.append(True)
            raise

    def left(futures):
        with parallel.executor(2) as pool:
            futures.append(pool.submit(task))
            while not futures[0].running():
                time.sleep(0.001)
            raise KeyError

    futures = []
    with pytest.raises(KeyError):
        left(futures)
    with pytest.raises(parallel.Stopped):
        futures[0].result(10)
    assert ended == [True]
