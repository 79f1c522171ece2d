"""What a Dask cluster returns is of the file as it is now, and of this run: equal calls are not one call."""

from __future__ import annotations

import contextlib
import json
import os

import pytest
from batches import FIXTURES, TRUTH, variants
from test_cluster import cluster as cluster

import detmap
from detmap import batch
from detmap.formats.inputs import Input

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::DeprecationWarning"),
]


def expected(path):
    truth = detmap.read_coco(TRUTH)
    return detmap.evaluate(truth, detmap.read_coco_results(path, truth))["AP"]


@contextlib.contextmanager
def executor_of(cluster, how):
    """As `detmap batch --scheduler` has it, or as a caller of the library gets one."""
    if how == "ours":
        with batch.cluster(cluster.scheduler_address) as executor:
            yield executor
        return
    with distributed.Client(cluster) as client:
        yield client.get_executor()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ours", "a caller's"])
def test_a_file_that_is_rewritten_gets_its_new_score(tmp_path, cluster, how):
    """While an earlier iterator is open, and so its futures alive, the old score was given again."""
    path = tmp_path / "model.json"
    path.write_bytes((FIXTURES / "detections.json").read_bytes())
    before = expected(path)
    records = json.loads(path.read_text())
    with executor_of(cluster, how) as executor:
        first = batch.score(TRUTH, [path], executor=executor)
        assert next(first)["AP"] == before
        path.write_text(json.dumps(records[::3]))
        after = expected(path)
        assert after != before
        [found] = batch.score(TRUTH, [path], executor=executor)
        assert found["AP"] == after
        with executor_of(cluster, how) as other:
            [found] = batch.score(TRUTH, [path], executor=other)
        assert found["AP"] == after
        first.close()


@pytest.mark.parametrize("how", ["ours", "a caller's"])
def test_a_run_after_one_that_was_closed_early(tmp_path, cluster, how):
    """The second had rows "CancelledError": its calls were those that the first took back."""
    paths = variants(tmp_path, 12)
    with executor_of(cluster, how) as executor:
        started = batch.score(TRUTH, paths, executor=executor)
        next(started)
        started.close()
        found = list(batch.score(TRUTH, paths, executor=executor))
    assert [one.error for one in found] == [None] * 12
    assert len({one.entry.name for one in found}) == 12


def test_two_runs_side_by_side(tmp_path, cluster):
    """Each has its own calls: closing one takes nothing from the other."""
    paths = variants(tmp_path, 8)
    with batch.cluster(cluster.scheduler_address) as executor:
        one, other = (batch.score(TRUTH, paths, executor=executor) for _ in range(2))
        next(one)
        found = [next(other)]
        one.close()
        found += other
    assert [outcome.error for outcome in found] == [None] * 8


@pytest.mark.slow
def test_a_file_written_between_hashing_and_reading_is_that_row(tmp_path, monkeypatch):
    """Its result would be kept under the hash of what was there before, for the next run to take up."""
    paths = variants(tmp_path / "runs", 2)
    read = Input.detections

    def slow(found, *rest, **options):
        if str(found.path) == str(paths[0]):
            os.utime(found.path, ns=(1, 1))
        return read(found, *rest, **options)

    monkeypatch.setattr(Input, "detections", slow)
    found = {one.entry.path: one for one in batch.score(TRUTH, paths, out=tmp_path / "out", threads=1)}
    assert found[str(paths[0])].error.startswith(f"{paths[0]}: changed while it was read")
    assert found[str(paths[1])].error is None
