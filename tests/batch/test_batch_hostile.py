"""Batches against whoever writes names, tags, results and paths: nothing becomes markup, is trusted or is lost."""

from __future__ import annotations

import csv
import io
import json
import os
import sys

import pytest
from batches import FIXTURES, TRUTH, contents, counting, run, variants, write

import detmap
from detmap import batch, results
from detmap.batch import saving
from detmap.batch.workers import one_line
from detmap.errors import OptionError
from detmap.reports import leaderboard as report

pytestmark = pytest.mark.compiled

DATA = (FIXTURES / "detections.json").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no such names")
def test_a_name_that_is_not_utf_8_is_a_row_of_every_file(tmp_path, capsys):
    pq = pytest.importorskip("pyarrow.parquet")
    with open(os.fsencode(tmp_path) + b"/\xff\xfe.json", "wb") as file:
        file.write(DATA)
    arguments = ["batch", TRUTH, tmp_path, "--out", tmp_path / "out"]
    for more in ([], ["--resume"]):
        code, out, err = run(capsys, *arguments, *more)
        assert (code, err) == (0, "")
        assert "\\udcff\\udcfe" in out
    assert pq.read_table(tmp_path / "out/leaderboard.parquet").to_pydict()["model"] == ["\\udcff\\udcfe"]
    assert "\\udcff" in (tmp_path / "out/leaderboard.csv").read_text()
    assert json.loads((tmp_path / "out/leaderboard.json").read_text())["models"][0]["model"] == "\udcff\udcfe"


# ---------------------------------------------------------------------------------------------------------- earlier results


def edited(change):
    def edit(path):
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document, indent=1))

    return edit


def overwrite(data):
    return lambda path: path.write_bytes(data)


def set_ap(document):
    document["metrics"]["AP"] = 0.99


DAMAGE = {
    "an edited AP": edited(set_ap),
    "a metric that is text": edited(lambda document: document["metrics"].update(AP="high")),
    "metrics that are a list": edited(lambda document: document.update(metrics=[1])),
    "no metrics": edited(lambda document: document.pop("metrics")),
    "another bootstrap": edited(lambda document: document.update(bootstrap=3)),
    "notices that are text": edited(lambda document: document.update(notices="many")),
    "no seal": edited(lambda document: document.pop("seal")),
    "a seal that is a list": edited(lambda document: document.update(seal=[])),
    "a key that is a list": edited(lambda document: document.update(key=[])),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "nothing": overwrite(b""),
    "not text": overwrite(b"\xff\xfe\x00"),
    "nested": overwrite(b'{"key":' * 50_000),
    "a long number": overwrite(b'{"key":' + b"9" * 10_000 + b"}"),
    "a list": overwrite(b"[1]"),
}


def test_results_that_are_damaged_or_were_edited_are_made_again(tmp_path, capsys, monkeypatch):
    """Tracebacks, and an edited AP was believed. One that nobody touched is taken up."""
    paths = variants(tmp_path / "runs", len(DAMAGE) + 1, keep=0.05)
    arguments = ["batch", TRUTH, *paths, "--out", tmp_path / "out", "--quiet"]  # which looks for no causes of a low AP
    assert run(capsys, *arguments)[0] == 0
    expected = contents(tmp_path / "out")
    for i, damage in enumerate(DAMAGE.values()):
        damage(tmp_path / f"out/results/model-{i:03d}.json")
    read = counting(monkeypatch)
    code, _, err = run(capsys, *arguments, "--resume")
    assert (code, err) == (0, "")
    assert sorted(read) == [f"model-{i:03d}.json" for i in range(len(DAMAGE))]
    assert contents(tmp_path / "out") == expected


def test_what_is_no_file_among_the_results(tmp_path, capsys):
    """A pipe would be waited for."""
    (path,) = variants(tmp_path / "runs", 1)
    (tmp_path / "out/results/model-009.json").mkdir(parents=True)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "out/results/pipe.json")
    assert run(capsys, "batch", TRUTH, path, "--out", tmp_path / "out", "--resume")[0] == 0
    assert saving.unsealed(tmp_path / "none.json") is None


def test_edited_tests_are_made_again(tmp_path, capsys):
    paths = variants(tmp_path / "runs", 2)
    arguments = ["batch", TRUTH, *paths, "--bootstrap", 200, "--permutations", 50, "--out", tmp_path / "out"]
    assert run(capsys, *arguments)[0] == 0
    saved = tmp_path / "out/tests.json"
    expected = saved.read_bytes()
    for damage in (
        edited(lambda document: document["tests"].update(dict.fromkeys(document["tests"], 0.5))),
        edited(lambda document: document.update(tests=[])),
        overwrite(b"[]"),
    ):
        damage(saved)
        assert run(capsys, *arguments, "--resume")[0] == 0
        assert saved.read_bytes() == expected


# ---------------------------------------------------------------------------------------------------------------- markup


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201"]
)
def test_no_cell_and_no_header_is_a_formula(text):
    written = list(csv.reader(io.StringIO(results.to_csv([{text: text, "plain": 1.5}]), newline="")))
    cell = "'" + text.replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")
    assert written[0] == [cell, "plain"]
    assert written[1] == [cell, "1.5"]


@pytest.mark.parametrize("code", [0, 7, 8, 10, 13, 27, 127, 0x9B, 0x200E, 0x2028, 0x202E, 0x2066, 0x2069, 0x61C])
def test_no_cell_of_csv_commands_a_terminal(code):
    """Controls and changes of the direction of writing are escaped; what a language needs to be written stays."""
    text = f"a{chr(code)}b"
    out = results.to_csv([{text: text}])
    assert chr(code) not in out.replace("\n", "", 2) if code == 10 else chr(code) not in out
    assert out == f"{ascii(text)[1:-1]}\n" * 2
    kept = "\u5206\u985e\u3000\u200d\xe9\xa0"
    assert results.to_csv([{kept: kept}]) == f"{kept}\n" * 2


def test_tags_that_are_formulas(tmp_path, capsys):
    write(tmp_path, "a.json", DATA)
    manifest = write(tmp_path, "m.csv", "path,=1+1\na.json,=2+2\n")
    assert run(capsys, "batch", TRUTH, manifest, "--out", tmp_path / "out")[0] == 0
    header, row = csv.reader((tmp_path / "out/leaderboard.csv").read_text().splitlines())
    assert header[2] == "'=1+1"
    assert row[2] == "'=2+2"
    assert run(capsys, "batch", TRUTH, manifest, "--format", "csv")[1].startswith("rank,model,'=1+1,")


MARKUP = [
    "[here](https://evil.example)",
    "![](https://evil.example/a.png)",
    "https://evil.example/x",
    "HTTP://evil.example",
    "www.evil.example",
    "WWW.evil.example",
    "a@evil.example",
    "<https://evil.example>",
    "[x]: https://evil.example",
    "`code`",
    "*bold*",
    "_slanted_",
    "~~gone~~",
    "$x^2$",
    "a|b",
    "&lt;b&gt;",
    "\\[x](y)",
]


@pytest.mark.parametrize("name", MARKUP)
def test_names_are_no_markdown(name):
    """As a reader of Markdown sees it, there is text and nothing else."""
    mistune = pytest.importorskip("markdown_it", reason="no reader of Markdown is installed")
    reader = mistune.MarkdownIt("gfm-like" if hasattr(mistune, "MarkdownIt") else "commonmark", {"linkify": False})
    text = report.markdown([{"model": name, "AP": 0.5}], [{"model": name, "error": name}], name)
    page = reader.render(text)
    for tag in ("<a", "<img", "<em", "<strong", "<code", "<s>"):
        assert tag not in page
    assert page.count("<td") == 4


def test_how_names_are_escaped_in_markdown():
    shown = {name: results.markdown_text(name) for name in MARKUP}
    assert shown["![](https://evil.example/a.png)"] == r"!\[\](https&#58;//evil.example/a.png)"
    assert shown["WWW.evil.example"] == "WWW&#46;evil.example"
    assert shown["a@evil.example"] == "a&#64;evil.example"
    assert shown["&lt;b&gt;"] == "&#38;lt;b&#38;gt;"
    assert shown["\\[x](y)"] == r"\\\[x\](y)"
    assert results.markdown_text("AP_small model_1.2-b: x") == "AP_small model_1.2-b: x"
    assert report.markdown([{"model": "a"}], [], "AP_[x](y)").startswith("# Leaderboard by AP\\_\\[x\\](y)\n")


# ------------------------------------------------------------------------------------------------------------ over inputs


def test_results_are_not_written_over_predictions(tmp_path, capsys):
    """`results/NAME.json` was replaced by its own score."""
    for name in ("a", "b"):
        write(tmp_path, f"results/{name}.json", DATA)
    code, _, err = run(capsys, "batch", TRUTH, tmp_path / "results", "--out", tmp_path)
    assert code == 2
    assert "results/a.json' would be written over, and is to be read: choose another name" in err
    assert {path.name for path in tmp_path.iterdir()} == {"results"}
    assert (tmp_path / "results/a.json").read_bytes() == DATA
    with pytest.raises(OptionError, match="would be written over"):
        batch.score(TRUTH, [tmp_path / "results"], out=tmp_path)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="the system has no links")
def test_nor_under_another_name(tmp_path, capsys):
    write(tmp_path, "own/leaderboard.csv", "path\nx.json\n")
    write(tmp_path, "own/x.json", DATA)
    os.symlink(tmp_path / "own", tmp_path / "link")
    code, _, err = run(capsys, "batch", TRUTH, tmp_path / "own/leaderboard.csv", "--out", tmp_path / "link")
    assert code == 2
    assert "leaderboard.csv' would be written over" in err
    assert (tmp_path / "own/leaderboard.csv").read_text() == "path\nx.json\n"


@pytest.mark.parametrize("option", ["--out", "--arrays", "--plot"])
@pytest.mark.parametrize("which", [0, 1])
def test_nor_by_eval_and_compare(tmp_path, capsys, option, which):
    truth, found = write(tmp_path, "gt.json", TRUTH.read_bytes()), write(tmp_path, "dt.json", DATA)
    target = tmp_path / "sub/.." / (truth, found)[which].name
    (tmp_path / "sub").mkdir()
    assert run(capsys, "eval", truth, found, option, target)[0] == 2
    if option == "--out":
        code, _, err = run(capsys, "compare", truth, found, write(tmp_path, "other.json", DATA), option, target)
        assert code == 2
        assert "would be written over" in err
    assert (truth.read_bytes(), found.read_bytes()) == (TRUTH.read_bytes(), DATA)


def test_a_folder_that_is_input_and_output_stays_the_same_input(tmp_path, capsys):
    """What a batch writes beside the files is no file of predictions the next time."""
    variants(tmp_path, 2)
    arguments = ["batch", TRUTH, tmp_path, "--out", tmp_path, "--bootstrap", 200, "--permutations", 50]
    for _ in range(2):
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert "2 files by AP" in out
    assert {entry.name for entry in batch.find([tmp_path])} == {"model-000", "model-001"}
    (tmp_path / "leaderboard.json").unlink()
    assert "tests" in {entry.name for entry in batch.find([tmp_path])}  # any other folder may have such a file


def test_identical_models_have_one_rank(tmp_path, capsys):
    for name in "cab":
        write(tmp_path, f"runs/{name}.json", DATA)
    variants(tmp_path / "runs", 1)
    rows = json.loads(run(capsys, "batch", TRUTH, tmp_path / "runs", "--format", "json", "--rank-by", "AP_small")[1])
    assert [(row["rank"], row["model"]) for row in rows["models"]][:3] == [(1, "a"), (1, "b"), (1, "c")]
    assert rows["models"][3]["rank"] == 4


# -------------------------------------------------------------------------------------------------------------- executors


class RemoteError(Exception):
    pass


TRACED = """\x1b[0;31m---------------------------------------------------------------------------\x1b[0m
\x1b[0;31mValueError\x1b[0m                                Traceback (most recent call last)
File \x1b[0;32m<string>:1\x1b[0m
\x1b[0;32m----> 1\x1b[0;31m \x1b[0mfail\x1b[0m()

\x1b[0;31mValueError\x1b[0m: it is \x1b[1mbroken\x1b[0m
"""


def test_a_traceback_of_another_executor_is_its_last_line():
    assert one_line(RemoteError(TRACED)) == "RemoteError: 'ValueError: it is broken'"
    plain = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\nKeyError: 3\n'
    assert one_line(RemoteError(plain)) == "RemoteError: 'KeyError: 3'"
    assert one_line(RemoteError("two\nlines")) == "RemoteError: 'two lines'"
    assert one_line(RemoteError("")) == "RemoteError: ''"
    assert one_line(detmap.DetmapError("as it is")) == "as it is"
    assert one_line(MemoryError()) == "out of memory"


def test_groups_and_intervals_of_another_metric_than_the_first(tmp_path, capsys):
    """There were dashes in the columns of whatever was not AP."""
    paths = variants(tmp_path, 3)
    arguments = ["--rank-by", "AP_small", "--bootstrap", 200, "--permutations", 400]
    code, out, _ = run(capsys, "batch", TRUTH, *paths, *arguments, "--format", "csv")
    assert code == 0
    for row in csv.DictReader(out.splitlines()):
        assert row["group"]
        assert float(row["AP_small low"]) < float(row["AP_small"]) < float(row["AP_small high"])


def test_an_interval_that_no_model_has_is_a_sentence_and_no_column(tmp_path, capsys):
    """There were two columns of dashes: too few images have a small object."""
    document = json.loads(TRUTH.read_text())
    few = sorted({one["image_id"] for one in document["annotations"]})[:3]
    for one in document["annotations"]:
        one["area"] = 500 if one["image_id"] in few else 5000
    truth = write(tmp_path, "truth.json", json.dumps(document))
    paths = variants(tmp_path / "runs", 2)
    arguments = ["--rank-by", "AP_small", "--bootstrap", 200, "--permutations", 50]
    code, out, _ = run(capsys, "batch", truth, *paths, *arguments)
    assert code == 0
    assert "AP_small low" not in out
    assert "no interval of AP_small: " in out
    assert "no groups: too few images to tell models apart: 3, and it takes" in out
