"""A real Dask cluster of several processes: the bits of a local run, whatever happens to a worker."""

from __future__ import annotations

import json
import os
import signal

import pytest
from batches import FIXTURES, TRUTH, contents, run, shards_of_fixture, variants
from support import assert_same_result

import detmap
from detmap import batch
from detmap.batch import clusters, stamps, workers
from detmap.detection import packed

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

pytestmark = [
    pytest.mark.slow,
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
            dashboard_address=":0",
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


def test_relative_paths_are_those_of_who_asks_and_a_missing_file_is_one_error(
    tmp_path, monkeypatch, cluster, files, local
):
    """Workers have started in another folder, where no such file is."""
    (tmp_path / "here.json").write_bytes(files[0].read_bytes())
    monkeypatch.chdir(tmp_path)
    given = ["here.json", "gone.json", files[0]]
    with batch.cluster(cluster.scheduler_address) as executor:
        found = {o.entry.name: o for o in batch.score(TRUTH, given, replicates=200, executor=executor)}
        shards = batch.evaluate_shards(TRUTH, ["here.json"], executor=executor)
        scored = [found[name] for name in ("here", "model-000")]
        tests = batch.compare_files(TRUTH_READ, scored, permutations=20, executor=executor)
    assert found["gone"].error == f"{tmp_path / 'gone.json'}: no such file; check the path"
    assert found["model-000"].document == local["model-000"]
    assert dict(found["here"]) == dict(found["model-000"]) == dict(shards)
    assert found["here"].document["source"] == "here.json"
    assert list(tests.p.values()) == [1.0]


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


def test_columns_of_shards_stay_on_workers_and_outlive_them(tmp_path, monkeypatch, cluster):
    """The asking process gets the columns of a block of categories at a time. If workers die, their shards are computed
    again, also where Dask has dropped all copies of the ground truth but one.
    """
    paths = shards_of_fixture(tmp_path, 5)
    truth = detmap.read_coco(TRUTH)
    expected = detmap.evaluate(truth, detmap.read_coco_results(FIXTURES / "detections.json", truth))
    monkeypatch.setattr(packed, "TOGETHER", len(expected.tally) // 3)
    lengths, gather = [], packed.ShardedTally._column

    def note(self, name, columns):
        found = gather(self, name, columns)
        lengths.append(len(found))
        return found

    monkeypatch.setattr(packed.ShardedTally, "_column", note)
    with batch.cluster(cluster.scheduler_address) as executor:
        result = batch.evaluate_shards(TRUTH, paths, executor=executor)
        assert dict(result) == dict(expected)
        assert 0 < max(lengths) < len(expected.tally)
        executor._client.amm.run_once()  # drops copies, as the scheduler does every two seconds
        for pid in executor._client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        assert_same_result(result, expected)
        again = batch.evaluate_shards(TRUTH, paths, executor=executor)
    with pytest.raises(detmap.DetmapError, match=r"workers keep cannot be read .*; score the files again"):
        again.tally  # noqa: B018


def test_no_scheduler(capsys, files, monkeypatch):
    monkeypatch.setattr(clusters, "_CONNECTING", 0.2)
    code, _, err = run(capsys, "batch", TRUTH, files[0], "--scheduler", "tcp://127.0.0.1:9", "--quiet")
    assert code == 2
    assert "no scheduler at 'tcp://127.0.0.1:9'" in err
    assert "Traceback" not in err


TRUTH_READ = detmap.read_coco(TRUTH)


def test_the_ground_truth_is_sent_once_to_each_worker_whatever_its_threads(tmp_path, monkeypatch):
    """Every thread of a worker got one of its own."""
    sent = []
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=4, processes=False, dashboard_address=":0", silence_logs=50
        ) as made,
        batch.cluster(made.scheduler_address) as executor,
    ):
        submit = executor._client.submit

        def note(function, *arguments, **options):
            sent.append(sum(isinstance(one, bytes) for one in arguments))
            assert len(arguments) == 1 or arguments[3] == 1  # threads of a task: other tasks have the others
            return submit(function, *arguments, **options)

        monkeypatch.setattr(executor._client, "submit", note)
        monkeypatch.setattr(workers, "_kept", workers._kept.__class__())
        found = list(batch.score(TRUTH, variants(tmp_path, 9), executor=executor))
    assert [one.error for one in found] == [None] * 9
    assert sent == [1] + [0] * 9


def test_a_worker_with_other_code_scores_nothing(monkeypatch, files, cluster):
    """It may give other numbers."""
    monkeypatch.setattr(stamps, "_own", lambda confidence: "another")
    monkeypatch.setattr(workers, "__version__", "99.0")
    with batch.cluster(cluster.scheduler_address) as executor:
        (found,) = batch.score(TRUTH, files[:1], executor=executor)
    assert found.error.startswith("the worker on ")
    assert found.error.endswith(f"has detmap {detmap.__version__}, and this process 99.0: install the same on both")


@pytest.mark.filterwarnings("always::detmap.batch.clusters.ClusterWarning")
def test_a_cluster_without_workers_says_so(monkeypatch, files, capsys):
    """It waited without a word."""
    monkeypatch.setattr(clusters, "_PATIENCE", 0.5)
    monkeypatch.setattr(workers, "_TICK", 0.1)
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0", silence_logs=50) as made:
        code, _, err = run(capsys, "batch", TRUTH, files[0], "--scheduler", made.scheduler_address)
    assert code == 2
    assert "note: the cluster has no workers: waiting for one, for 0.5 seconds at most" in err
    assert "error: the cluster had no workers for 0.5 seconds; what is done is kept" in err


def test_workers_that_come_later_do_the_work(monkeypatch, files):
    monkeypatch.setattr(workers, "_TICK", 0.1)
    options = {"processes": False, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(n_workers=0, **options) as made, batch.cluster(made.scheduler_address) as executor:
        monkeypatch.setattr(clusters.warnings, "warn", lambda *_, **__: made.scale(1))
        found = list(batch.score(TRUTH, files[:3], executor=executor))
        monkeypatch.undo()
    assert [one.error for one in found] == [None] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_scheduler_that_dies_is_one_line_and_what_is_done_is_kept(tmp_path, capsys, files):
    """A traceback followed the first rows."""
    import subprocess
    import sys

    program = (
        "import distributed, time\n"
        "if __name__ == '__main__':\n"
        "    made = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,"
        " protocol='tcp://', dashboard_address=':0', silence_logs=50)\n"
        "    print(made.scheduler_address, flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=os.getcwd(),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    paths = [tmp_path / f"{i}.json" for i in range(60)]
    for path in paths:
        path.write_bytes(files[0].read_bytes())
    try:
        address = process.stdout.readline().strip()
        with batch.cluster(address) as executor:
            outcomes = batch.score(TRUTH, paths, executor=executor)
            assert next(outcomes).error is None
            process.kill()
            with pytest.raises(detmap.DetmapError, match="scheduler is gone"):
                list(outcomes)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
