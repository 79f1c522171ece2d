"""Many files: what is kept of each, and what each task is sent, stays small, and ranks follow from one pass."""

from __future__ import annotations

import json
import pickle
import random

import pytest
from batches import Forgetful, contents, outcome, variants
from batches import truth as truth

from detmap import batch
from detmap.batch import saving
from detmap.batch.finding import file_names

pytestmark = pytest.mark.compiled


class Weighing(Forgetful):
    """Notes how many bytes the arguments of tasks take that do not carry the ground truth."""

    def __init__(self):
        super().__init__()
        self.weights = []

    def submit(self, task, *arguments):
        self.weights += [len(pickle.dumps(arguments))] if arguments[2] is None else []
        return super().submit(task, *arguments)


def test_a_task_is_sent_no_keys_of_other_results(tmp_path, truth):
    paths = variants(tmp_path / "runs", 9, keep=0.1)
    list(batch.score(truth, paths, out=tmp_path / "out"))
    weights = []
    for count in (4, 9):
        executor = Weighing()
        for path in (tmp_path / "out/results").glob("*.json"):
            if int(path.stem[-3:]) >= count:
                path.rename(path.with_suffix(".aside"))
        list(batch.score(truth, paths[:4], out=tmp_path / "out", resume=True, executor=executor))
        weights.append(max(executor.weights))
        for path in (tmp_path / "out/results").glob("*.aside"):
            path.rename(path.with_suffix(".json"))
    assert weights[0] == weights[1]


def test_a_document_is_that_of_its_file_and_kept_small(tmp_path, truth):
    paths = variants(tmp_path / "runs", 2, keep=0.1)
    for one in batch.score(truth, paths, replicates=200, out=tmp_path / "out"):
        written = json.loads((tmp_path / f"out/results/{one.entry.name}.json").read_bytes())
        written.pop("seal")
        assert one.document == written == one.to_dict()
        assert list(one.document) == list(written)
        one.document["metrics"]["AP"] = 7.0  # of a copy
        assert one.document == written
        assert one.bootstrap.items() <= written["bootstrap"].items()
        kept = [value for value in vars(one).values() if isinstance(value, bytes)]
        assert sum(map(len, kept)) < len(saving.encoded(written)) / 3


def test_nothing_is_written_again_where_nothing_is_to_be_done(tmp_path, truth):
    """Files of the same content share a key, and each has a result of its own."""
    paths = variants(tmp_path / "runs", 3, keep=0.1)
    for at, path in enumerate(paths):
        (tmp_path / f"runs/{'za'[at % 2]}{at}.json").write_bytes(path.read_bytes())
    runs = [tmp_path / "runs"]
    list(batch.score(truth, runs, out=tmp_path / "out"))
    before = contents(tmp_path / "out")
    for path in (tmp_path / "out/results").iterdir():
        path.chmod(0o444)
    times = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out/results").iterdir()}
    assert len(list(batch.score(truth, runs, out=tmp_path / "out", resume=True))) == 6
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out/results").iterdir()} == times
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("seed", range(20))
def test_ranks_are_one_more_than_the_number_of_better_models(seed):
    rng = random.Random(seed)
    values = [rng.choice([None, 0.0, 0.25, 0.5, 1.0, rng.random()]) for _ in range(rng.randrange(1, 40))]
    rows = batch.Leaderboard([outcome(f"m{i}", AP=value) for i, value in enumerate(values)]).rows()
    for row in rows:
        value = values[int(row["model"][1:])]
        better = sum(other is not None and value is not None and other > value for other in values)
        assert row["rank"] == ("" if value is None else 1 + better)


def test_a_leaderboard_reads_each_document_once(monkeypatch, tmp_path):
    results = [outcome(f"m{i}", AP=i / 100) for i in range(50)]
    read, original = [], saving.unpacked
    monkeypatch.setattr(saving, "unpacked", lambda data: read.append(data) or original(data))
    batch.Leaderboard(results).write(tmp_path)
    assert len(read) <= len(results) + 10


def test_rows_are_the_callers_own():
    board = batch.Leaderboard([outcome("a", AP=0.5)])
    board.rows()[0]["model"] = "other"
    assert board.rows()[0]["model"] == "a"


def test_names_of_files_are_those_that_trying_one_number_after_the_other_finds():
    def naive(names):
        taken, out = set(), []
        for name in names:
            candidate, number = name, 1
            while candidate.lower() in taken:
                number += 1
                candidate = f"{name}-{number}"
            taken.add(candidate.lower())
            out.append(candidate)
        return out

    rng = random.Random(0)
    for _ in range(500):
        names = [rng.choice(["a", "A", "a-2", "A-2", "a-3", "a-2-2", "_"]) for _ in range(rng.randrange(12))]
        assert file_names(names) == naive(names)
    assert file_names(["é", "模", "."]) == ["_", "_-2", "_."]
