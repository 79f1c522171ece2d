"""Many files: scores are those of one evaluation, and errors are rows."""

from __future__ import annotations

import concurrent.futures
import csv
import json
import random
import shutil

import pytest
from batches import TRUTH, broken_files, run, variants, write
from batches import few_permutations as few_permutations
from batches import files as files
from batches import truth as truth

import detmap
from detmap import batch, statistics
from detmap.batch import finding, workers
from detmap.formats.inputs import Input
from detmap.results import without_nan


def test_scores_are_those_of_evaluate(files, truth):
    for outcome in batch.score(TRUTH, files):
        result = detmap.evaluate(truth, detmap.read_coco_results(outcome.entry.path, truth))
        assert dict(outcome) == dict(result)
        assert outcome.rows() == json.loads(result.to_json())["per_category"]
        assert outcome.error is None
        assert list(outcome.to_frame()["AP"]) == [row["AP"] for row in result.per_category]
        assert outcome.entry.name in repr(outcome)


@pytest.mark.compiled
def test_bootstrap_of_a_file_is_that_of_its_result(files, truth):
    (outcome,) = batch.score(truth, files[:1], replicates=200, seed=3, method="bca", level=0.9)
    result = detmap.evaluate(truth, detmap.read_coco_results(files[0], truth))
    made = statistics.bootstrap(result, 200, 3, method="bca")
    assert outcome.interval("AP50") == tuple(made.interval(0.9)[1])
    assert outcome.document["bootstrap"] == json.loads(json.dumps(without_nan(made.to_dict(0.9))))


@pytest.mark.compiled
def test_bad_files_spoil_nothing(tmp_path, capsys):
    good = variants(tmp_path / "good", 20, keep=0.05)
    bad = broken_files(tmp_path / "bad")
    assert len(bad) == 20
    mixed = [*good, *bad]
    random.Random(1).shuffle(mixed)
    code, out, err = run(capsys, "batch", TRUTH, *mixed, "--out", tmp_path / "out", "--format", "csv")
    assert code == 3
    rows = list(csv.DictReader(out.splitlines()))
    assert len(rows) == 40
    assert {row["model"] for row in rows if row["error"]} == set(finding.distinct([path.name for path in bad]))
    assert {row["model"] for row in rows if row["AP"]} == {path.stem for path in good}
    assert all(bool(row["error"]) != bool(row["AP"]) for row in rows)
    errors = [line for line in err.splitlines() if line.startswith("detmap: error: ")]
    assert len(errors) == 20
    assert "Traceback" not in err
    assert len(list((tmp_path / "out/results").glob("*.json"))) == 40
    document = json.loads((tmp_path / "out/leaderboard.json").read_text())
    assert sum(model["error"] is not None for model in document["models"]) == 20
    values = [model["metrics"]["AP"] for model in document["models"] if not model["error"]]
    assert values == sorted(values, reverse=True)


def test_fail_fast(tmp_path, capsys, files):
    bad = write(tmp_path, "bad.json", "{")
    code, out, err = run(capsys, "batch", TRUTH, bad, *files, "--fail-fast", "--threads", 1, "--format", "json")
    assert code == 3
    assert [model["model"] for model in json.loads(out)["models"]] == ["bad"]
    assert err.count("detmap: error") == 1


def test_an_error_that_nobody_foresaw_is_a_row_too(files, truth, monkeypatch):
    def fail(found, *rest, **options):
        raise (MemoryError if found.path == str(files[0]) else ZeroDivisionError)("hm\n")

    monkeypatch.setattr(Input, "detections", fail)
    outcomes = {o.entry.path: o.error for o in batch.score(truth, files[:2])}
    assert outcomes == {str(files[0]): "out of memory", str(files[1]): "ZeroDivisionError: 'hm'"}


def test_options_come_before_files(truth):
    with pytest.raises(detmap.OptionError, match="unknown protocol"):
        batch.score(truth, [], "coca")
    with pytest.raises(detmap.InputError, match="no such file"):
        batch.score("nowhere.json", [])
    assert list(batch.score(truth, [])) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--resume",), "--resume needs --out DIR"),
        (("--bootstrap", "199"), "199 replicates are too few for an interval; draw at least 200"),
        (("--bootstrap", "-1"), "-1 replicates are too few for an interval; draw at least 200"),
        (("--permutations", "0"), "permutations must be an integer of at least 1"),
        (("--permutations", "99"), "--permutations needs --bootstrap N"),
        (("--seed", "-1"), "seed must be an integer of at least 0"),
        (("--seed", str(2**64)), "seed must be an integer from 0 to"),
        (("--confidence", "95"), "between 0 and 1"),
        (("--rank-by", "mAP"), "cannot rank by 'mAP'"),
        (("--out", "/dev/null/x"), "cannot write to"),
    ],
)
def test_options_that_cannot_be(capsys, files, arguments, message):
    code, _, err = run(capsys, "batch", TRUTH, files[0], *arguments)
    assert code == 2
    assert message in err.splitlines()[-1]


def test_files_that_are_scored_at_the_same_time_come_in_their_order(tmp_path, files, truth, monkeypatch):
    monkeypatch.setattr(workers, "wait", lambda pending, *_: concurrent.futures.wait(pending))
    entries = [batch.Entry(f"{at:02}", str(tmp_path / f"{at:02}.json")) for at in range(24)]
    for one in entries:
        shutil.copy(files[0], one.path)
    assert [one.entry for one in batch.score(truth, entries, threads=12)] == entries
