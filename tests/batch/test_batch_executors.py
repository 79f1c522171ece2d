"""Many files on executors: processes, threads, and pools that break."""

from __future__ import annotations

import concurrent.futures
from concurrent.futures.process import BrokenProcessPool

import pytest
from batches import TRUTH, Forgetful, contents, run
from batches import few_permutations as few_permutations
from batches import files as files
from batches import truth as truth

import detmap
from detmap import batch
from detmap.batch import workers
from detmap.formats.inputs import Input
from detmap.system import parallel


@pytest.mark.slow
@pytest.mark.compiled
def test_a_process_pool_gives_the_same_bits(tmp_path, files, truth, capsys):
    run(capsys, "batch", TRUTH, *files, "--out", tmp_path / "threads", "--bootstrap", 200)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        found = list(batch.score(TRUTH, files, replicates=200, out=tmp_path / "processes", executor=pool))
        tests = batch.compare_files(truth, found, out=tmp_path / "processes", executor=pool)
        assert pool.submit(int).result() == 0  # it is the caller's, and still open
    batch.Leaderboard(found, tests=tests).write(tmp_path / "processes")
    assert contents(tmp_path / "processes") == contents(tmp_path / "threads")


def test_ground_truth_is_sent_once_to_each_worker(files, truth, monkeypatch):
    monkeypatch.setattr(workers, "_kept", workers._kept.__class__())
    executor = Forgetful()
    outcomes = list(batch.score(truth, files * 1, executor=executor))
    assert not any(outcome.error for outcome in outcomes)
    assert executor.sent == 3
    again = list(batch.score(truth, files, executor=executor))
    assert sorted(map(dict, again), key=str) == sorted(map(dict, outcomes), key=str)
    executor.workers[1].clear()  # a worker that starts anew lacks it and asks
    before = executor.sent
    entries = [batch.Entry(f"{i}", str(files[0])) for i in range(1)]
    list(batch.score(truth, [*entries, *files[1:]], executor=executor))
    assert executor.sent <= before + 4
    other = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]])
    for _ in range(3):
        list(batch.score(other, files, executor=executor))
    assert all(len(worker) <= 4 for worker in executor.workers)


@pytest.mark.compiled
@pytest.mark.jit
def test_what_was_sent_compiles_nothing_anew(files, truth):
    from detmap.kernels import matching, overlap

    list(batch.score(truth, files, executor=Forgetful()))
    for kernel in (matching.match, matching.mark_misses, overlap.box_areas, matching.collect_hits):
        assert len(kernel.signatures) == 1


class Broken(concurrent.futures.Executor):
    def submit(self, *arguments):
        raise BrokenProcessPool("gone")


def test_an_executor_that_breaks(files, truth):
    with pytest.raises(detmap.DetmapError, match="workers are gone"):
        list(batch.score(truth, files, executor=Broken()))


def test_a_pool_of_threads_of_the_callers(files, truth, monkeypatch):
    seen, original = [], Input.detections

    def look(*arguments, **options):
        seen.append(parallel.thread_count(None))
        return original(*arguments, **options)

    monkeypatch.setattr(parallel, "cores", lambda: 8)
    monkeypatch.setattr(Input, "detections", look)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert not any(one.error for one in batch.score(truth, files, executor=pool))
        assert not any(one.error for one in batch.score(truth, files[:1], executor=pool, threads=3))
    assert seen == [1] * 5 + [3]


def test_threads_share_the_processors(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 8)

    def shares(tasks, threads=None):
        with parallel.executor(tasks, threads) as pool:
            return pool._max_workers, pool.submit(parallel.thread_count, None).result()

    assert shares(3) == (3, 2)
    assert shares(1) == (1, 8)
    assert shares(20) == (8, 1)
    assert shares(20, 2) == (2, 1)
    assert shares(0) == (1, 8)
    with parallel.limited(3):
        assert parallel.thread_count(None) == 3
        assert parallel.thread_count(2) == 2
        assert parallel.thread_count(9) == 3
    assert parallel.thread_count(None) == 8


class Losing(Forgetful):
    """A cluster that loses tasks with the worker that had them."""

    def __init__(self, times, error):
        super().__init__()
        self.times, self.error, self._client = times, error, self
        self.status, self.lost = "running", dict[str, int]()

    def nthreads(self):
        return {"one": 2, "two": 2}

    def submit(self, task, *arguments, pure=False):
        if len(arguments) == 1:  # what all tasks share
            return arguments[0]
        path = arguments[4][0]
        if self.lost.setdefault(path, 0) < self.times:
            self.lost[path] += 1
            future = concurrent.futures.Future()
            future.set_exception(self.error("lost"))
            return future
        return super().submit(task, *arguments)


class FutureCancelledError(Exception):
    """As Dask's, which is no CancelledError."""


class KilledWorker(Exception):
    """As Dask's."""


def test_tasks_that_are_lost_together_with_a_worker_cost_no_row(files, truth):
    """All but the first of them had the row "CancelledError"."""
    expected = {one.entry.name: one.document for one in batch.score(truth, files)}
    for times in (1, 3):
        found = list(batch.score(truth, files, executor=Losing(times, FutureCancelledError)))
        assert {one.entry.name: one.document for one in found} == expected


def test_a_row_that_is_lost_says_what_scores_it(files, truth):
    for error, said in ((FutureCancelledError, "lost with its worker 4 times"), (KilledWorker, "KilledWorker: 'lost'")):
        found = list(batch.score(truth, files, executor=Losing(10**6, error)))
        assert {one.error for one in found} == {f"{said}; detmap batch --resume scores only the files that are missing"}
