"""detmap pq, and compare, batch and report with --pq."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest
from executed import ROOT

from detmap import cli, statistics
from detmap.batch import panoptic
from detmap.formats.coco.panoptic import read_panoptic
from detmap.panoptic import evaluate

FIXTURES = ROOT / "fixtures" / "panoptic"
TRUTH, BEFORE, AFTER = (str(FIXTURES / f"{name}.json") for name in ("ground_truth", "before", "after"))


def run(capsys, *words, code=0):
    assert cli.main([str(word) for word in words]) == code
    return capsys.readouterr()


def test_every_format_holds_the_numbers(capsys, tmp_path):
    result = evaluate(TRUTH, BEFORE)
    document = json.loads(run(capsys, "pq", TRUTH, BEFORE, "--format", "json", "--out", tmp_path / "out.json").out)
    assert document["metrics"] == dict(result)
    assert json.loads((tmp_path / "out.json").read_text()) == document
    lines = run(capsys, "pq", TRUTH, BEFORE, "--format", "csv").out.splitlines()
    assert dict(line.split(",") for line in lines[1:]) == {name: repr(value) for name, value in result.items()}
    assert len(run(capsys, "pq", TRUTH, BEFORE, "--format", "csv", "--per-class").out.splitlines()) == 7
    assert "| All | 0.5424 |" in run(capsys, "pq", TRUTH, BEFORE, "--format", "markdown").out
    eight = run(capsys, "pq", TRUTH, BEFORE, "--parts", "8", "--threads", "1", "--format", "json").out
    assert json.loads(eight)["metrics"] == dict(evaluate(TRUTH, BEFORE, parts=8))


def test_folders_intervals_and_clusters(capsys, tmp_path):
    shutil.copy(BEFORE, tmp_path / "moved.json")
    refused = run(capsys, "pq", TRUTH, tmp_path / "moved.json", code=2).err
    assert "there is no folder" in refused
    assert "--pred-folder" in refused
    folder = FIXTURES / "before"
    found = run(capsys, "pq", TRUTH, tmp_path / "moved.json", "--pred-folder", folder, "--bootstrap", 200).out
    assert "PQ_stuff" in found
    (tmp_path / "videos.csv").write_text("image,cluster\n" + "".join(f"{n},{n // 3}\n" for n in range(1, 17)))
    found = run(capsys, "pq", TRUTH, BEFORE, "--bootstrap", 200, "--clusters", tmp_path / "videos.csv").out
    assert "clusters of images are taken as independent" in found
    assert "needs --bootstrap" in run(capsys, "pq", TRUTH, BEFORE, "--interval", "bca", code=2).err


def test_gates_and_cards(capsys, tmp_path):
    card = tmp_path / "card.json"
    run(capsys, "pq", TRUTH, AFTER, "--card", card)
    assert "the same bits in all 9 numbers" in run(capsys, "verify", card, TRUTH, AFTER).out
    assert "differences" in run(capsys, "verify", card, TRUTH, BEFORE, code=1).out
    gates = ("--max-drop", "PQ=0.01", "--against", card)
    assert "gate failed" in run(capsys, "pq", TRUTH, BEFORE, *gates, code=4).err
    gates = (*gates, "--unless-chance")
    assert "it is hardly chance" in run(capsys, "pq", TRUTH, BEFORE, *gates, code=4).err
    shutil.copy(BEFORE, tmp_path / "before.json")
    shutil.copytree(FIXTURES / "before", tmp_path / "before")
    told = run(capsys, "pq", TRUTH, tmp_path / "before.json", *gates, code=4).err
    assert "whether it could be chance is not known" in told  # the baseline is in another folder
    run(capsys, "pq", TRUTH, AFTER, "--fail-under", "PQ=0.6", *gates)


def test_models_are_compared(capsys):
    document = json.loads(
        run(capsys, "compare", "--pq", TRUTH, BEFORE, AFTER, "--bootstrap", 200, "--format", "json").out
    )
    assert [row["model"] for row in document["models"]] == ["before", "after"]
    (one,) = document["differences"]
    assert one["p"] < 0.05
    assert one["difference"] == evaluate(TRUTH, BEFORE)["PQ"] - evaluate(TRUTH, AFTER)["PQ"]
    assert "two models or more" in run(capsys, "compare", "--pq", TRUTH, BEFORE, code=2).err


def test_many_files_make_a_leaderboard(capsys, tmp_path):
    (tmp_path / "bad.json").write_text("[]")
    (tmp_path / "bad").mkdir()
    board = tmp_path / "board"
    words = ("batch", "--pq", TRUTH, BEFORE, AFTER, tmp_path / "bad.json", "--out", board)
    told = run(capsys, *words, "--bootstrap", 200, code=3)
    assert told.out.index("after") < told.out.index("before")
    assert "error: bad: " in told.err
    document = json.loads((board / "leaderboard.json").read_text())
    assert [(row["rank"], row["model"]) for row in document["models"]] == [(1, "after"), (2, "before"), (None, "bad")]
    assert document["models"][0]["metrics"]["PQ"] == evaluate(TRUTH, AFTER)["PQ"]
    assert document["tests"]["pairs"][0]["p"] < 0.05
    page = (board / "leaderboard.html").read_text()
    assert '"metric": "PQ"' in page
    assert "PQ (panoptic)" in page
    assert json.loads((board / "results" / "before.json").read_text())["task"] == "panoptic"
    assert "unknown metric 'AP'" in run(capsys, *words, "--rank-by", "AP", code=2).err


def test_models_are_tested_from_the_best_on(tmp_path):
    """Those of equal PQ by name; files of an earlier run are scored again, and of one file there is no test."""
    for name in ("a", "z"):
        shutil.copy(AFTER, tmp_path / f"{name}.json")
        shutil.copytree(FIXTURES / "after", tmp_path / name)
    files = [BEFORE, tmp_path / "z.json", AFTER, tmp_path / "a.json"]
    made = panoptic.PanopticFiles(read_panoptic(TRUTH), files)
    results = list(made.score())
    tests = made.compare(results, permutations=999)
    assert tests.models == ["a", "after", "z", "before"]
    assert list(tests.p) == list(itertools.combinations(tests.models, 2))
    assert tests.p["a", "z"] == 1.0
    assert tests.p["z", "before"] == tests.p["a", "before"] < 0.05
    again = panoptic.PanopticFiles(read_panoptic(TRUTH), files)
    assert again.compare(results, permutations=999).p == tests.p
    assert again.compare(results[:1]) is None


@pytest.mark.slow
def test_what_has_not_changed_is_not_scored_again(capsys, tmp_path, monkeypatch):
    """What has not changed: content, label maps, ground truth, rules and draws; tests between files hold all the same."""
    for name in ("ground_truth", "before", "after"):
        shutil.copy(FIXTURES / f"{name}.json", tmp_path)
        shutil.copytree(FIXTURES / name, tmp_path / name)
    truth, before, after = (tmp_path / f"{name}.json" for name in ("ground_truth", "before", "after"))
    words = ("batch", "--pq", truth, before, after, "--out", tmp_path / "board", "--bootstrap", 200, "--format", "json")
    whole = run(capsys, *words).out
    kept = {path.name: path.read_bytes() for path in (tmp_path / "board" / "results").iterdir()}
    scored = []
    scoring = panoptic.PanopticFiles.result
    monkeypatch.setattr(
        panoptic.PanopticFiles, "result", lambda self, entry: scored.append(entry.name) or scoring(self, entry)
    )
    made = statistics.bootstrap
    drawn = []
    monkeypatch.setattr(panoptic, "bootstrap", lambda *one, **how: drawn.append(1) or made(*one, **how))
    assert run(capsys, *words, "--resume").out == whole
    assert not drawn
    assert {path.name: path.read_bytes() for path in (tmp_path / "board" / "results").iterdir()} == kept
    scored.clear()
    plain = (*words[:7], "--resume")
    run(capsys, *plain)
    assert scored == ["before", "after"]  # other draws, namely none
    scored.clear()
    run(capsys, *plain)
    assert scored == []
    first = sorted((tmp_path / "after").iterdir())[0]
    shutil.copy(tmp_path / "ground_truth" / first.name, first)
    run(capsys, *plain, code=3)  # whose segments have other ids
    assert scored == ["after"]
    run(capsys, *plain[:-1], "--parts", 2, "--resume", code=3)
    assert scored == ["after", "before", "after"]
    assert "needs --out" in run(capsys, "batch", "--pq", truth, before, "--resume", code=2).err


def test_files_within_limits(capsys, tmp_path):
    words = ("batch", "--pq", TRUTH, BEFORE, "--format", "json")
    limited = run(capsys, *words, "--limit-seconds", 100, "--limit-memory", "2G").out
    assert json.loads(limited)["models"] == json.loads(run(capsys, *words).out)["models"]
    told = run(capsys, *words, "--limit-seconds", 1e-9, code=3)
    assert "stopped: it reached the limit of 1e-09 seconds" in told.err
    assert "must be a number of seconds above 0" in run(capsys, *words, "--limit-seconds", 0, code=2).err


@pytest.mark.slow
def test_pages(capsys, tmp_path):
    run(capsys, "report", "--pq", TRUTH, BEFORE, "--out", tmp_path / "one.html", "--bootstrap", 0)
    page = (tmp_path / "one.html").read_text()
    assert "no interval was asked for" in page
    assert "What better outlines would give" in page
    assert page.count(">PQ_stuff") == 1  # no second table repeats the first screen
    run(capsys, "report", "--pq", TRUTH, BEFORE, AFTER, "--out", tmp_path / "two.html", "--bootstrap", 200)
    page = (tmp_path / "two.html").read_text()
    assert "after has 0.1527 more PQ than before" in page
    assert "Images by PQ" in page
    assert "95 % confidence interval of the value expected" in page


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("pq", TRUTH, "none.json"), "none.json"),
        (("pq", TRUTH, BEFORE, "--parts", "0"), "parts must be an integer of at least 1"),
        (("pq", TRUTH, BEFORE, "--parts", "x"), "--parts"),
        (("pq", TRUTH, BEFORE, "--threads", "0"), "--threads must be at least 1"),
        (("pq", BEFORE, BEFORE), "categories"),
        (("batch", "--pq", TRUTH, BEFORE, AFTER, "--pred-folder", str(FIXTURES / "after")), "folders of label maps"),
        (("pq", TRUTH, BEFORE, "--fail-under", "AP=0.5"), "no metric 'AP'"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(capsys, words, says):
    try:
        error = run(capsys, *words, code=2).err
    except SystemExit:
        error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("words", [("pq",), ("compare", "--pq"), ("batch", "--pq"), ("report", "--pq")])
def test_help_fits_a_screen(capsys, words):
    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    text = capsys.readouterr().out
    assert text.count("\n") <= 40
    assert "PRED.json" in text


@pytest.mark.parametrize("words", [("pq",), ("batch", "--pq")])
def test_examples_of_help_are_of_panoptic_segmentation(capsys, words):
    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    examples = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  detmap ")]
    assert examples
    assert all(line[1] == "pq" or line[2] == "--pq" for line in examples)
