"""Many files: names, errors as rows, resuming, what is written; shards; executors."""

from __future__ import annotations

import concurrent.futures
import csv
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import workloads
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_result, examples, tables_of_arrays

import detmap
from detmap import batch, cli, parallel, statistics, writing
from detmap.batch import finding, workers
from detmap.batch import shards as shards_module
from detmap.errors import InputError
from detmap.formats import files as formats
from detmap.kernels import readonly
from detmap.protocols import resolve
from detmap.results import without_nan

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures" / "coco"
TRUTH = FIXTURES / "ground_truth.json"


def variants(folder, count, seed=0, keep=0.5):
    """Files of detections with noise on their scores, and a ground truth; returns the paths."""
    records = json.loads((FIXTURES / "detections.json").read_text())
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for i in range(count):
        rng = random.Random(f"{seed} {i}")
        noisy = [{**row, "score": round(row["score"] + rng.gauss(0, 0.1 * i), 3)} for row in records]
        paths.append(folder / f"model-{i:03d}.json")
        paths[-1].write_text(json.dumps([row for row in noisy if rng.random() < keep]))
    return paths


@pytest.fixture(scope="module", autouse=True)
def few_permutations():
    """Fewer than are drawn by default; how many a number of models takes is tested in test_statistics."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("detmap.statistics.comparison.permutations_needed", lambda hypotheses, alpha: 1000)
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return variants(tmp_path_factory.mktemp("runs"), 5)


@pytest.fixture(scope="module")
def truth():
    return detmap.read_coco(TRUTH)


def run(capsys, *arguments):
    try:
        code = cli.main(list(map(str, arguments)))
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


def contents(folder, pattern="**/*"):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in Path(folder).glob(pattern)
        if path.is_file() and path.name != "leaderboard.parquet"
    }


# ------------------------------------------------------------------------------------------------------- finding files


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]")


def test_names_are_distinct_and_no_longer_than_needed(tmp_path):
    touch(tmp_path, "one/x.json", "two/x.json", "two/y.json.gz", "z.json", "z.json.gz", "deep/two/x.json", "w.jsonl")
    names = {e.path.removeprefix(str(tmp_path) + "/"): e.name for e in batch.find([tmp_path / "**/*.json*"])}
    assert names == {
        "one/x.json": "one/x",
        "two/x.json": next(n for p, n in names.items() if p == "two/x.json"),
        "deep/two/x.json": "deep/two/x",
        "two/y.json.gz": "y",
        "z.json": next(n for p, n in names.items() if p == "z.json"),
        "z.json.gz": next(n for p, n in names.items() if p == "z.json.gz"),
        "w.jsonl": "w",
    }
    assert len(set(names.values())) == 7
    assert names["two/x.json"].endswith("two/x")
    assert names["z.json"].endswith("z.json")


def test_a_file_is_found_once(tmp_path):
    touch(tmp_path, "a.json", "b.json")
    found = batch.find([tmp_path / "b.json", tmp_path, str(tmp_path) + "/./*.json"])
    assert [entry.name for entry in found] == ["b", "a"]


def test_a_folder_is_what_lies_in_it_or_voc(tmp_path):
    touch(
        tmp_path,
        "a.json",
        "note.txt",
        "leaderboard.json",
        "voc/comp4_det_test_cat.txt",
        "sub/b.json",
        "c.tar.gz",
        ".json",
    )
    assert [entry.name for entry in batch.find([tmp_path])] == [".json", "a", "c", "voc"]
    assert [entry.name for entry in batch.find([tmp_path / "voc"])] == ["voc"]


def test_a_pattern_in_the_name_of_a_file(tmp_path):
    touch(tmp_path, "a[1].json", "a1.json")
    assert [entry.name for entry in batch.find([tmp_path / "a[1].json"])] == ["a[1]"]
    assert [entry.name for entry in batch.find([tmp_path / "a?.json"])] == ["a1"]


def test_manifest(tmp_path):
    touch(tmp_path, "a.json", "b.json", "c.json")
    (tmp_path / "m.csv").write_text('\ufeffname,path,backbone\nfirst,a.json,"R50, deep"\n,b.json,Swin\n', "utf-8")
    found = batch.find([tmp_path / "m.csv", tmp_path / "c.json"])
    assert [(e.name, Path(e.path).name, dict(e.tags)) for e in found] == [
        ("first", "a.json", {"backbone": "R50, deep"}),
        ("b", "b.json", {"backbone": "Swin"}),
        ("c", "c.json", {}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("name\nx\n", "no column 'path'"),
        ("path,name\na.json\n", "too many or too few cells"),
        ("path,name\na.json,x,y\n", "too many or too few cells"),
        ("path,name\na.json,x\nb.json,x\n", "2 files are called"),
        ('path\n"a.json\n', "is not a CSV file"),
        (b"path\n\xff\n", "is not a CSV file"),
    ],
)
def test_bad_manifests(tmp_path, text, message):
    path = tmp_path / "m.csv"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(detmap.DetmapError, match=message):
        batch.find([path])


def test_nothing_found(tmp_path):
    for nothing in (tmp_path, tmp_path / "*.json"):
        with pytest.raises(detmap.OptionError, match=r"no file"):
            batch.find([nothing])


@given(st.lists(st.text("aA./-_é\n\0 ", min_size=1, max_size=5), max_size=8))
def test_names_of_result_files(names):
    made = finding.file_names(names)
    assert len({name.lower() for name in made}) == len(names)
    assert all(
        name and name[0] not in ".-" and set(name) <= set("aAbcdefghijklmnopqrstuvwxyz0123456789._-") for name in made
    )


# -------------------------------------------------------------------------------------------------------------- scoring


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


def write(folder, name, data):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def broken_files(folder):
    """Twenty files that cannot be scored, each for a reason of its own."""
    good = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}

    def record(**changes):
        return json.dumps([good, {**good, **changes}])

    whole = (FIXTURES / "detections.json").read_bytes()
    texts = {
        "empty": "",
        "blank": " \n",
        "cut": whole[: len(whole) // 2],
        "not json": "image_id,score\n1,0.5\n",
        "binary": bytes(range(256)) * 20,
        "object": "{}",
        "number": "42",
        "swapped": TRUTH.read_bytes(),
        "no score": json.dumps([{k: v for k, v in good.items() if k != "score"}]),
        "nan": record(score=float("nan")),
        "text score": record(score="high"),
        "short box": record(bbox=[1, 2, 3]),
        "negative": record(bbox=[1, 2, -3, 4]),
        "infinite": record(bbox=[1, 2, 3, float("inf")]),
        "stray image": record(image_id=987654321),
        "mixed ids": record(image_id="one"),
        "nested": "[" * 100_000,
        "bad gzip.gz": gzip.compress(whole)[:1000],
        "surrogate": b'[{"image_id": "\xff\xfe"}]',
    }
    paths = [
        write(folder, f"{name}.json" if not name.endswith(".gz") else "bad gzip.json.gz", text)
        for name, text in texts.items()
    ]
    return [*paths, folder / "missing.json"]


@pytest.mark.compiled
def test_bad_files_spoil_nothing(tmp_path, capsys):
    good = variants(tmp_path / "good", 80, keep=0.05)
    bad = broken_files(tmp_path / "bad")
    assert len(bad) == 20
    mixed = [*good, *bad]
    random.Random(1).shuffle(mixed)
    code, out, err = run(capsys, "batch", TRUTH, *mixed, "--out", tmp_path / "out", "--format", "csv")
    assert code == 3
    rows = list(csv.DictReader(out.splitlines()))
    assert len(rows) == 100
    assert {row["model"] for row in rows if row["error"]} == {finding._stem(path.name) for path in bad}
    assert {row["model"] for row in rows if row["AP"]} == {path.stem for path in good}
    assert all(bool(row["error"]) != bool(row["AP"]) for row in rows)
    errors = [line for line in err.splitlines() if line.startswith("detmap: error: ")]
    assert len(errors) == 20
    assert "Traceback" not in err
    assert len(list((tmp_path / "out/results").iterdir())) == 100
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
    def fail(path, *rest):
        raise (MemoryError if path == str(files[0]) else ZeroDivisionError)("hm\n")

    monkeypatch.setattr(formats, "read_detections", fail)
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


# ------------------------------------------------------------------------------------------------------------- resuming


def counting(monkeypatch):
    """Count the files that are really read."""
    read, original = [], formats.read_detections

    def count(path, *rest):
        read.append(Path(path).name)
        return original(path, *rest)

    monkeypatch.setattr(formats, "read_detections", count)
    return read


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
    write(out, f"results/.detmap-{writing._machine()}-{ended.pid}-{'0' * 16}.tmp", b"{")
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


def results(out):
    return sum(1 for path in (out / "results").glob("*.json")) if (out / "results").is_dir() else 0


@pytest.mark.compiled
def test_killed_and_resumed(tmp_path):
    paths = variants(tmp_path / "runs", 25)
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
    assert 3 <= len(board["models"]) <= results(tmp_path / "out") <= len(board["models"]) + 1 < 40


# ---------------------------------------------------------------------------------------------------------- leaderboard


def outcome(name, **metrics):
    return batch.FileResult(batch.Entry(name, name), {"metrics": metrics, "protocol": {}, "per_category": []})


def failed(name):
    return batch.FileResult(batch.Entry(name, name, {"run": "7"}), {"error": "no"})


def test_order_of_the_leaderboard():
    results = [failed("z"), outcome("b", AP=0.5, AR=0.1), outcome("n", AP=None, AR=1.0), outcome("c", AP=0.75, AR=0.3)]
    results += [outcome("a", AP=0.5, AR=0.2), failed("y")]
    board = batch.Leaderboard(results)
    assert [(row["rank"], row["model"]) for row in board.rows()] == [
        *((1, "c"), (2, "a"), (2, "b")),
        *(("", "n"), ("", "y"), ("", "z")),
    ]
    assert [row["run"] for row in board.rows()] == ["", "", "", "", "7", "7"]
    assert [row["model"] for row in batch.Leaderboard(results, "AR").rows()] == ["n", "c", "a", "b", "y", "z"]
    assert list(board.to_frame()["model"]) == ["c", "a", "b", "n", "y", "z"]
    assert batch.Leaderboard([failed("z")]).rows() == [{"rank": "", "model": "z", "run": "7", "error": "no"}]
    assert batch.Leaderboard([]).table() == []


def test_a_tag_that_is_called_as_a_metric():
    entry = batch.Entry("m", "m", {"AP": "yes", "rank": "x"})
    (row,) = batch.Leaderboard([batch.FileResult(entry, {"metrics": {"AP": 0.5}})]).rows()
    assert row == {"rank": 1, "model": "m", "tag AP": "yes", "tag rank": "x", "AP": 0.5, "error": ""}


@pytest.mark.compiled
def test_written_files(tmp_path, capsys, files):
    code, out, err = run(capsys, "batch", TRUTH, *files, "--bootstrap", 200, "--out", tmp_path, "--rank-by", "AP50")
    assert code == 0
    assert err == ""
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"leaderboard.{kind}" for kind in ("csv", "json", "md", "html", "parquet")),
        "results",
        "tests.json",
    }
    rows = list(csv.DictReader((tmp_path / "leaderboard.csv").read_text().splitlines()))
    import pyarrow.parquet as pq

    columns = pq.read_table(tmp_path / "leaderboard.parquet").to_pydict()
    assert columns["AP50"] == [float(row["AP50"]) for row in rows] == sorted(columns["AP50"], reverse=True)
    assert columns["rank"] == [1, 2, 3, 4, 5]
    document = json.loads((tmp_path / "leaderboard.json").read_text())
    for model, row in zip(document["models"], rows, strict=True):
        assert model["intervals"]["AP50"] == [float(row["AP50 low"]), float(row["AP50 high"])]
        result = json.loads((tmp_path / f"results/{model['model']}.json").read_text())
        assert result["metrics"] == model["metrics"]
        assert len(result["bootstrap"]["per_category"]) == len(result["per_category"])
    assert document["models"][0]["model"] in out
    assert (tmp_path / "leaderboard.md").read_text().startswith("# Leaderboard by AP50")
    assert all(model["model"] in (tmp_path / "leaderboard.html").read_text() for model in document["models"])


@pytest.mark.compiled
def test_tests_are_kept_for_the_contents_that_were_tested(files, truth, tmp_path):
    paths = [tmp_path / path.name for path in files[:3]]
    for path, source in zip(paths, files, strict=False):
        path.write_bytes(source.read_bytes())
    more = {"permutations": 100, "seed": 2, "out": tmp_path, "resume": True}
    unknown = list(batch.score(truth, paths))  # without `out` nobody knows their contents
    tested = batch.compare_files(truth, unknown, **more)
    assert json.loads((tmp_path / "tests.json").read_text())["tests"] == {}
    assert batch.compare_files(truth, unknown, **more).p == tested.p
    scored = list(batch.score(truth, paths, out=tmp_path))
    assert batch.compare_files(truth, scored, **more).p == tested.p
    kept = json.loads((tmp_path / "tests.json").read_text())["tests"]
    assert len(kept) == 3
    for rules in ({"protocol": resolve("coco", max_dets=[1])}, {"seed": 3}):  # are no others' results
        assert batch.compare_files(truth, scored, **{**more, **rules}).p == pytest.approx(
            batch.compare_files(truth, scored, **{**more, **rules, "out": None}).p, abs=0
        )
    paths[1].write_bytes(files[3].read_bytes())
    assert batch.compare_files(truth, scored, **{**more, "seed": 3}).p  # known from before
    with pytest.raises(InputError, match="has changed since it was scored"):
        batch.compare_files(truth, scored, **{**more, "seed": 4})


@pytest.mark.compiled
def test_groups_are_those_of_compare(files, truth):
    scored = list(batch.score(truth, files, replicates=200, seed=2))
    assert batch.Leaderboard(scored).groups == {}
    tests = batch.compare_files(truth, scored, seed=2)
    board = batch.Leaderboard(scored, tests=tests)
    tallies = {p.stem: detmap.match(truth, detmap.read_coco_results(p, truth)) for p in files}
    compared = detmap.compare(tallies, 200, 2, permutations=tests.permutations)
    assert board.groups == compared.groups
    assert tests.p == {(one.first, one.second): one.p for one in compared.differences}
    assert len(set(board.groups.values())) > 1
    assert [row["group"] for row in board.rows()] == [board.groups[row["model"]] for row in board.rows()]
    by_recall = batch.compare_files(truth, scored, metric="AR_1", permutations=200, seed=2)
    assert set(batch.Leaderboard(scored, "AR_1", by_recall).groups) == {path.stem for path in files}
    assert "200 permutations" in by_recall.sentences()[0]
    few = replace(by_recall, images=3)
    assert few.sentences() == ["group: too few images to tell models apart: 3, and it takes 9"]
    assert replace(by_recall, p={}).sentences() == []


def test_without_optional_packages(tmp_path, capsys, files, monkeypatch):
    for package in ("jinja2", "pyarrow", "distributed", "pandas"):
        monkeypatch.setitem(sys.modules, package, None)
    code, _, err = run(capsys, "batch", TRUTH, files[0], "--out", tmp_path)
    assert code == 0
    assert "detmap[report]" in err
    assert "detmap[parquet]" in err
    assert not (tmp_path / "leaderboard.html").exists()
    code, _, err = run(capsys, "batch", TRUTH, files[0], "--scheduler", "tcp://127.0.0.1:1")
    assert code == 2
    assert "detmap[dask]" in err
    with pytest.raises(detmap.MissingDependencyError):
        batch.Leaderboard([]).to_frame()


def test_hostile_names_are_text(tmp_path, capsys):
    path = write(tmp_path, "=1+1|<b>\x1b[31m.json", "[]")
    run(capsys, "batch", TRUTH, path, "--out", tmp_path / "out")
    assert "\x1b" not in run(capsys, "batch", TRUTH, path)[1]
    assert next(csv.DictReader((tmp_path / "out/leaderboard.csv").read_text().splitlines()))["model"].startswith("'=")
    for name in ("md", "html"):
        text = (tmp_path / f"out/leaderboard.{name}").read_text()
        assert "<b>" not in text
        assert "\x1b" not in text


@pytest.mark.compiled
def test_voc_folders(tmp_path, capsys):
    voc = ROOT / "fixtures/voc"
    other = tmp_path / "runs/other"
    other.mkdir(parents=True)
    for path in (voc / "results").iterdir():
        lines = path.read_text().splitlines(keepends=True)
        (other / path.name).write_text("".join(lines[::2]))
    arguments = ["batch", voc / "Annotations", voc / "results", tmp_path / "runs", "--protocol", "voc2012"]
    arguments += ["--out", tmp_path / "out", "--bootstrap", 200]
    code, out, _ = run(capsys, *arguments, "--format", "json")
    assert code == 0
    models = json.loads(out)["models"]
    assert [model["model"] for model in models] == ["results", "other"]
    truth = detmap.read_voc(voc / "Annotations")
    result = detmap.evaluate(truth, detmap.read_voc_results(voc / "results", truth), "voc2012")
    assert models[0]["metrics"] == dict(result)
    assert list(models[0]["intervals"]) == list(result)
    before = contents(tmp_path / "out")
    assert run(capsys, *arguments, "--resume")[0] == 0
    assert contents(tmp_path / "out") == before


# ------------------------------------------------------------------------------------------------------------ executors


@pytest.mark.compiled
def test_a_process_pool_gives_the_same_bits(tmp_path, files, truth, capsys):
    run(capsys, "batch", TRUTH, *files, "--out", tmp_path / "threads", "--bootstrap", 200)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        found = list(batch.score(TRUTH, files, replicates=200, out=tmp_path / "processes", executor=pool))
        tests = batch.compare_files(truth, found, out=tmp_path / "processes", executor=pool)
        assert pool.submit(int).result() == 0  # it is the caller's, and still open
    batch.Leaderboard(found, tests=tests).write(tmp_path / "processes")
    assert contents(tmp_path / "processes") == contents(tmp_path / "threads")


class Forgetful(concurrent.futures.Executor):
    """Runs a task at once, in one of three workers by turns; arguments are pickled as if they were sent."""

    _max_workers = 3

    def __init__(self):
        self.workers, self.turn, self.sent = [workers._kept.__class__() for _ in range(3)], 0, 0

    def submit(self, task, *arguments):
        import pickle

        self.sent += arguments[2] is not None
        task, arguments = pickle.loads(pickle.dumps((task, arguments)))
        workers._kept, self.turn = self.workers[self.turn % 3], self.turn + 1
        future = concurrent.futures.Future()
        try:
            future.set_result(task(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


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
    assert all(len(worker) <= 2 for worker in executor.workers)


@pytest.mark.compiled
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
    seen, original = [], formats.read_detections

    def look(*arguments):
        seen.append(parallel.thread_count(None))
        return original(*arguments)

    monkeypatch.setattr(parallel, "cores", lambda: 8)
    monkeypatch.setattr(formats, "read_detections", look)
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


# --------------------------------------------------------------------------------------------------------------- shards


def cut(records, parts, seed):
    """Deal the images of records to parts, whole."""
    rng = random.Random(seed)
    part = {}
    out = [[] for _ in range(parts)]
    for row in records:
        out[part.setdefault(row["image_id"], rng.randrange(parts))].append(row)
    return out


@settings(max_examples=examples(30))
@given(workloads.coco_workloads(), st.integers(1, 4), st.sampled_from(["coco", "voc2007"]))
def test_shards_are_the_whole(tmp_path_factory, workload, parts, name):
    dataset, records, params = workload
    folder = tmp_path_factory.mktemp("shards")
    shards = cut(records, parts, 1)
    truth = write(
        folder,
        "truth/gt.json",
        json.dumps(
            dataset
            | {
                "annotations": [
                    a for a in dataset["annotations"] if a["category_id"] < 99_999 or a["category_id"] > 10**6
                ]
            }
        ),
    )
    for i, shard in enumerate(shards):
        write(folder, f"shards/{i}.json", json.dumps(shard))
    whole = write(folder, "whole.json", json.dumps([row for shard in shards for row in shard]))
    protocol = resolve(name, iou_thresholds=params["iou_thresholds"], use_categories=params["use_categories"])
    ground_truth = detmap.read_coco(truth)
    expected = detmap.evaluate(ground_truth, detmap.read_coco_results(whole, ground_truth), protocol)
    made = batch.evaluate_shards(truth, [folder / "shards"], protocol)
    assert_same_result(made, expected)
    assert made.to_json() == expected.to_json()
    for column in ("category", "image", "rank", "order", "scores", "hit", "ignored"):
        assert np.array_equal(getattr(made.tally, column), getattr(expected.tally, column)), column


def test_shards_are_merged_with_their_neighbours_in_any_order_of_arrival(tmp_path):
    truth = detmap.read_coco(TRUTH)
    paths = shards_of_fixture(tmp_path, 7)
    leaves = [shards_module._match_shard(truth, path, resolve("voc2007"), "error") for path in paths]
    assert all(leaf.records for leaf in leaves)
    expected, before = leaves[0].tally, leaves[0].records
    for count in range(1, 8):
        if count > 1:
            last = leaves[count - 1]
            expected = expected.merge(replace(last.tally, order=readonly(last.tally.order + before, np.int64)))
            before += last.records
        for seed in range(10):
            tree = shards_module._Tree(count)
            for i in random.Random(seed).sample(range(count), count):
                tree.add(i, leaves[i].records, leaves[i].tally)
            (made,) = tree.merged()
            assert made.to_bytes() == expected.to_bytes()


def shards_of_fixture(folder, parts=3):
    shards = cut(json.loads((FIXTURES / "detections.json").read_text()), parts, 5)
    return [write(folder, f"part-{i}.json", json.dumps(shard)) for i, shard in enumerate(shards)]


@pytest.mark.compiled
def test_shards_on_the_command_line(tmp_path, capsys):
    shards_of_fixture(tmp_path / "shards")
    expected = run(capsys, "eval", TRUTH, FIXTURES / "detections.json", "--bootstrap", 200, "--format", "json")
    assert (
        run(capsys, "eval", TRUTH, tmp_path / "shards/*.json", "--sharded", "--bootstrap", 200, "--format", "json")
        == expected
    )
    assert run(capsys, "eval", TRUTH, FIXTURES / "detections.json", "--scheduler", "x")[0] == 2


def test_a_shard_given_twice(tmp_path):
    shards = shards_of_fixture(tmp_path)
    twin = write(tmp_path, "twin.json", shards[1].read_bytes())
    with pytest.raises(
        detmap.InputError,
        match=r"twin.json: is the same shard as .*part-1.json|part-1.json: is the same shard as .*twin.json",
    ):
        batch.evaluate_shards(TRUTH, [*shards, twin])


def test_shards_that_share_an_image(tmp_path):
    shards = shards_of_fixture(tmp_path)
    row = json.loads(shards[0].read_text())[0]
    stray = write(tmp_path, "stray.json", json.dumps([{**row, "score": 0.123}]))
    with pytest.raises(
        detmap.InputError, match=r"stray.json: field 'image_id'|stray.json.*shares an image with .*part-0.json"
    ) as caught:
        batch.evaluate_shards(TRUTH, [*shards, stray])
    assert "part-0.json" in str(caught.value)
    assert str(row["image_id"]) in str(caught.value)


def test_empty_and_broken_shards(tmp_path):
    shards = shards_of_fixture(tmp_path)
    empty = [write(tmp_path, f"empty-{i}.json", "[]") for i in range(2)]
    truth = detmap.read_coco(TRUTH)
    expected = detmap.evaluate(truth, detmap.read_coco_results(FIXTURES / "detections.json", truth))
    assert_same_result(batch.evaluate_shards(truth, [*shards, *empty]), expected)
    nothing = batch.evaluate_shards(truth, empty)
    assert nothing.notices["no_detections"] == 1
    assert nothing["AP"] == 0
    bad = write(tmp_path, "bad.json", "{")
    with pytest.raises(detmap.InputError, match=r"bad.json"):
        batch.evaluate_shards(truth, [*shards, bad])


def test_shards_on_any_executor(tmp_path):
    arrays = workloads.detector_like(30, 20, 4, 1)
    dataset, records = workloads.to_coco(arrays)
    truth, found = tables_of_arrays(arrays)
    paths = [write(tmp_path, f"{i}.json", json.dumps(shard)) for i, shard in enumerate(cut(records, 4, 2))]
    assert_same_result(batch.evaluate_shards(truth, paths, executor=Forgetful()), detmap.evaluate(truth, found))
    assert len(dataset["images"]) == 30


# -------------------------------------------------------------------------------------------------------------- compare


@pytest.mark.compiled
def test_compare_on_the_command_line(tmp_path, capsys, files, truth):
    tallies = {p.stem: detmap.match(truth, detmap.read_coco_results(p, truth)) for p in files}
    made = detmap.compare(tallies, 200, 3, metric="AP50", level=0.9)
    arguments = ["compare", TRUTH, *files, "--bootstrap", 200, "--seed", 3, "--metric", "AP50", "--confidence", 0.9]
    code, out, _ = run(capsys, *arguments, "--format", "json", "--out", tmp_path / "c.json")
    assert code == 0
    expected = json.loads(json.dumps(without_nan(made.to_dict())))
    assert json.loads(out) == json.loads((tmp_path / "c.json").read_text()) == expected
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert all(path.stem in out for path in files)
    assert "paired permutation test" in out
    assert "Holm's correction: the probability of any false claim in a family is at most 10 %" in out
    rows = list(csv.DictReader(run(capsys, *arguments, "--format", "csv")[1].splitlines()))
    assert len(rows) == 10 + 10 * len(truth.category_names)
    out = run(capsys, *arguments, "--correction", "bh", "--permutations", 400)[1]
    assert "p (BH)" in out
    assert "400 permutations" in out
    assert run(capsys, "compare", TRUTH, files[0])[0] == 2
    assert run(capsys, "compare", TRUTH, *files, "--bootstrap", 0)[0] == 2


@pytest.mark.compiled
def test_compare_says_that_nothing_changed(tmp_path, capsys, files):
    twin = write(tmp_path, "twin.json", files[0].read_bytes())
    out = run(capsys, "compare", TRUTH, files[0], twin, "--bootstrap", 200)[1]
    assert "no category changed significantly" in out


@pytest.mark.compiled
def test_eval_with_intervals(capsys, truth):
    found = FIXTURES / "detections.json"
    result = detmap.evaluate(truth, detmap.read_coco_results(found, truth))
    made = statistics.bootstrap(result, 200, 1, method="bca")
    arguments = ["eval", TRUTH, found, "--bootstrap", 200, "--seed", 1, "--interval", "bca"]
    document = json.loads(run(capsys, *arguments, "--format", "json")[1])
    assert document["bootstrap"] == json.loads(json.dumps(without_nan(made.to_dict())))
    rows = list(csv.DictReader(run(capsys, *arguments, "--format", "csv")[1].splitlines()))
    assert [float(rows[1]["low"]), float(rows[1]["high"])] == made.interval()[1].tolist()
    without = [name for name in result if np.isnan(made.interval()[made.columns[name], 0])]
    assert [row["metric"] for row in rows if not row["low"]] == without
    assert [int(row["images"]) for row in rows] == made.support[: len(rows)].tolist()
    rows = list(csv.DictReader(run(capsys, *arguments, "--format", "csv", "--per-class")[1].splitlines()))
    ends = without_nan(made.interval()[made.category_columns("AP")].tolist())
    assert [[row["low"], row["high"]] for row in rows] == [["" if e is None else repr(e) for e in row] for row in ends]
    assert f"{made.interval()[0, 0]:.4f}" in run(capsys, *arguments, "--per-class")[1]
    voc = ROOT / "fixtures/voc"
    arguments = [
        "eval",
        voc / "Annotations",
        voc / "results",
        "--protocol",
        "voc2007",
        "--bootstrap",
        200,
        "--format",
        "csv",
    ]
    rows = list(csv.DictReader(run(capsys, *arguments)[1].splitlines()))
    assert any(row["low"] for row in rows)
