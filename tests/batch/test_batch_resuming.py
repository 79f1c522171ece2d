"""Many files, resumed: what has not changed is not scored again, also after a kill."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from batches import FIXTURES, ROOT, TRUTH, broken_files, contents, counting, results, run, variants, write
from batches import few_permutations as few_permutations
from batches import files as files

from detmap.system import whole_files


@pytest.mark.slow
@pytest.mark.compiled
def test_resume_scores_what_changed(tmp_path, capsys, monkeypatch):
    paths = variants(tmp_path / "runs", 4)
    arguments = ["batch", TRUTH, tmp_path / "runs", "--out", tmp_path / "out", "--bootstrap", 200]
    assert run(capsys, *arguments)[0] == 0
    before = contents(tmp_path / "out")
    read = counting(monkeypatch)
    assert run(capsys, *arguments, "--resume")[0] == 0
    assert read == []
    assert contents(tmp_path / "out") == before
    os.utime(paths[0])  # the content counts, not the date
    paths[1].write_bytes(paths[2].read_bytes().replace(b"0.", b"0.0", 50))
    paths[3].rename(tmp_path / "runs/renamed.json")
    assert run(capsys, *arguments, "--resume")[0] == 0
    # Scored once, and then read with each of the others for the test of that pair; no other pair is tested again.
    others = [path.name for path in (tmp_path / "runs").iterdir() if path != paths[1]]
    assert sorted(read) == sorted([paths[1].name] * (1 + len(others)) + others)
    assert json.loads((tmp_path / "out/results/renamed.json").read_text())["name"] == "renamed"
    resumed = contents(tmp_path / "out", "leaderboard.*")
    assert run(capsys, *arguments)[0] == 0
    assert contents(tmp_path / "out", "leaderboard.*") == resumed


@pytest.mark.parametrize(
    "change",
    [
        ("--bootstrap", 201),
        ("--seed", 1),
        ("--interval", "bca"),
        ("--max-dets", "1,10"),
        ("--ignore-categories",),
        ("--confidence", 0.9),
    ],
)
@pytest.mark.compiled
def test_resume_knows_other_options(tmp_path, capsys, monkeypatch, files, change):
    arguments = ["batch", TRUTH, files[0], "--out", tmp_path, "--bootstrap", 200]
    assert run(capsys, *arguments)[0] == 0
    read = counting(monkeypatch)
    assert run(capsys, *arguments, *change, "--resume")[0] == 0
    assert len(read) == 1
    assert run(capsys, *arguments, *change, "--resume", "--threads", 1)[0] == 0
    assert len(read) == 1


def test_resume_knows_other_ground_truth_and_damaged_results(tmp_path, capsys, monkeypatch, files):
    other = json.loads(TRUTH.read_text())
    other["annotations"][0]["bbox"][0] += 1
    truth = write(tmp_path, "truth.json", json.dumps(other))
    out = tmp_path / "out"
    assert run(capsys, "batch", TRUTH, *files, "--out", out)[0] == 0
    read = counting(monkeypatch)
    assert run(capsys, "batch", truth, *files, "--out", out, "--resume")[0] == 0
    assert len(read) == 5
    expected = contents(out)
    write(out, "results/model-001.json", b"{")
    write(out, "results/model-002.json", b"[" * 100_000)
    write(out, "results/model-003.json", b"[1]")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write(out, f"results/.detmap-{whole_files._machine()}-{ended.pid}-{'0' * 16}.tmp", b"{")
    assert run(capsys, "batch", truth, *files, "--out", out, "--resume")[0] == 0
    assert len(read) == 8
    assert contents(out) == expected


def test_a_bad_file_is_tried_again(tmp_path, capsys):
    path = write(tmp_path, "x.json", "{")
    arguments = ["batch", TRUTH, path, "--out", tmp_path / "out", "--resume"]
    assert run(capsys, *arguments)[0] == 3
    path.write_bytes((FIXTURES / "detections.json").read_bytes())
    assert run(capsys, *arguments)[0] == 0


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "detmap", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*arguments):
    process = start(*arguments)
    said = process.communicate()[1]
    assert "Traceback" not in said
    return process.returncode


@pytest.mark.slow
@pytest.mark.compiled
def test_killed_and_resumed(tmp_path):
    paths = variants(tmp_path / "runs", 10)
    bad = broken_files(tmp_path / "runs")[:-1]
    arguments = ["batch", TRUTH, tmp_path / "runs", "--bootstrap", 200, "--quiet", "--threads", 1]
    assert finish(*arguments, "--out", tmp_path / "undisturbed") == 3
    out, rng, killed = tmp_path / "out", random.Random(3), 0
    for number in range(4):
        process = start(*arguments, "--out", out, "--resume")
        wanted = results(out) + rng.randrange(1, 4)
        until = time.monotonic() + 60
        while number and results(out) < wanted and process.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(rng.random() * 0.05)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        process.stderr.close()
        for path in (out / "results").glob("*.json") if out.exists() else ():
            json.loads(path.read_bytes())  # whole, whenever one looks
    assert killed >= 3
    assert results(out) < len(paths) + len(bad)
    assert finish(*arguments, "--out", out, "--resume") == 3
    assert contents(out) == contents(tmp_path / "undisturbed")
    parquet = [(folder / "leaderboard.parquet").read_bytes() for folder in (out, tmp_path / "undisturbed")]
    assert parquet[0] == parquet[1]


@pytest.mark.slow
@pytest.mark.compiled
def test_interrupted(tmp_path):
    paths = variants(tmp_path / "runs", 40)
    process = start("batch", TRUTH, *paths, "--bootstrap", 200, "--out", tmp_path / "out", "--threads", 1)
    while results(tmp_path / "out") < 3 and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    said = process.stderr.read()
    process.stderr.close()
    assert "interrupted" in said
    assert "Traceback" not in said
    board = json.loads((tmp_path / "out/leaderboard.json").read_text())
    # The interrupt may come between a result and its row: --resume finds it then.
    assert results(tmp_path / "out") >= 3
    assert len(board["models"]) <= results(tmp_path / "out") <= len(board["models"]) + 1 < 40


@pytest.mark.compiled
def test_resume_with_nothing_to_do_compares_no_pair_of_paths_and_writes_no_result(tmp_path, capsys, monkeypatch):
    """Resolving every pair of a result's path and a file's took longer than scoring."""
    many = variants(tmp_path / "runs", 40)
    arguments = ["batch", TRUTH, *many, "--out", tmp_path / "out", "--quiet"]
    assert run(capsys, *arguments)[0] == 0
    before = {path: path.stat() for path in (tmp_path / "out/results").glob("*.json")}
    calls, original = [], os.path.realpath
    monkeypatch.setattr(os.path, "realpath", lambda path, **more: calls.append(path) or original(path, **more))
    assert run(capsys, *arguments, "--resume")[0] == 0
    assert len(calls) < 10 * len(many)
    after = {path: path.stat() for path in before}
    assert all(
        (before[path].st_ino, before[path].st_mtime_ns) == (one.st_ino, one.st_mtime_ns) for path, one in after.items()
    )


@pytest.mark.compiled
def test_resume_compares_contents_and_not_dates(tmp_path, capsys):
    """A file may change within the resolution of its date, or be given its old date again."""
    (path,) = variants(tmp_path / "runs", 1)
    arguments = ["batch", TRUTH, path, "--out", tmp_path / "out", "--format", "json"]
    first = json.loads(run(capsys, *arguments)[1])["models"][0]["metrics"]
    state, data = path.stat(), path.read_bytes()
    path.write_bytes(data.replace(b'"score": 0.7', b'"score": 0.1'))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert path.stat().st_size == state.st_size
    assert path.read_bytes() != data
    assert json.loads(run(capsys, *arguments, "--resume")[1])["models"][0]["metrics"] != first
