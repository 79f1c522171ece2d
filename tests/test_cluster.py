"""A real Dask cluster of several processes: the bits of a local run, whatever happens to a worker."""

from __future__ import annotations

import json
import os
import signal

import pytest
from support import assert_same_result
from test_batch import FIXTURES, TRUTH, contents, run, shards_of_fixture, variants

import detmap
from detmap import batch

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

pytestmark = [
    pytest.mark.compiled,
    # Of the cluster itself: sockets and event loops that it leaves to be collected.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers of one thread each, in processes of their own and in a folder of their own."""
    folder = tmp_path_factory.mktemp("cluster")
    before = os.getcwd()
    os.chdir(folder)  # which the workers start in, so that relative paths mean something else to them
    try:
        made = distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(folder),
            silence_logs=50,
        )
    finally:
        os.chdir(before)
    yield made
    made.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return variants(tmp_path_factory.mktemp("runs"), 12)


@pytest.fixture(scope="module")
def local(files):
    return {o.entry.name: o.document for o in batch.score(TRUTH, files, replicates=200)}


def test_same_files_as_a_local_run(tmp_path, capsys, cluster, files):
    arguments = ["batch", TRUTH, *files, "--bootstrap", 200]
    assert run(capsys, *arguments, "--out", tmp_path / "local")[0] == 0
    code, _, err = run(capsys, *arguments, "--scheduler", cluster.scheduler_address, "--out", tmp_path / "cluster")
    assert code == 0, err
    assert contents(tmp_path / "cluster") == contents(tmp_path / "local")


def test_a_worker_killed_half_way_changes_nothing(cluster, files, local):
    with distributed.Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        assert len(set(pids)) == 2
        assert os.getpid() not in pids
        found = {}
        for outcome in batch.score(TRUTH, files, replicates=200, executor=client.get_executor()):
            found[outcome.entry.name] = outcome.document
            if len(found) == 4:
                os.kill(pids[0], signal.SIGKILL)
        client.wait_for_workers(2, timeout=60)
        assert set(client.run(os.getpid).values()) != set(pids)
    assert found == local


def test_a_worker_without_the_file_gives_that_row_an_error(tmp_path, monkeypatch, cluster, files, local):
    (tmp_path / "here.json").write_bytes(files[0].read_bytes())
    monkeypatch.chdir(tmp_path)
    with batch.cluster(cluster.scheduler_address) as executor:
        found = {
            o.entry.name: o for o in batch.score(TRUTH, ["here.json", files[0]], replicates=200, executor=executor)
        }
    assert found["here"].error.startswith("here.json: no such file")
    assert found["model-000"].document == local["model-000"]


def test_shards(tmp_path, capsys, cluster):
    paths = shards_of_fixture(tmp_path, 5)
    truth = detmap.read_coco(TRUTH)
    expected = detmap.evaluate(truth, detmap.read_coco_results(FIXTURES / "detections.json", truth))
    with batch.cluster(cluster.scheduler_address) as executor:
        assert_same_result(batch.evaluate_shards(TRUTH, paths, executor=executor), expected)
    arguments = ["eval", TRUTH, tmp_path, "--sharded", "--scheduler", cluster.scheduler_address, "--format", "json"]
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    assert json.loads(out)["metrics"] == dict(expected)


def test_no_scheduler(capsys, files):
    code, _, err = run(capsys, "batch", TRUTH, files[0], "--scheduler", "tcp://127.0.0.1:9", "--quiet")
    assert code == 2
    assert "no scheduler at 'tcp://127.0.0.1:9'" in err
    assert "Traceback" not in err
