"""Many files: the order of the leaderboard, and what is written."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from batches import ROOT, TRUTH, contents, outcome, run, write
from batches import few_permutations as few_permutations
from batches import files as files
from batches import truth as truth

import detmap
from detmap import batch
from detmap.detection.protocols import resolve
from detmap.errors import InputError
from detmap.installation import install_command


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


@pytest.mark.slow
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
    assert few.sentences() == ["no groups: too few images to tell models apart: 3, and it takes 9"]
    assert replace(by_recall, p={}).sentences() == []


@pytest.mark.compiled
def test_too_few_permutations_are_known_before_any_is_drawn(files, truth, monkeypatch, capsys):
    """Letters would say that the best and the worst model cannot be told apart."""
    scored = list(batch.score(truth, files))
    enough = batch.compare_files(truth, scored, permutations=200)
    assert len(set(enough.groups.values())) > 1
    assert not any("not tested" in line for line in enough.sentences())
    assert replace(enough, images=enough.fewest).could_tell
    assert not replace(enough, images=enough.fewest - 1).could_tell

    def never(*_: object, **__: object) -> float:
        raise AssertionError("a pair is tested")

    monkeypatch.setattr("detmap.batch.comparing._test_pair", never)
    few = batch.compare_files(truth, scored, permutations=19)
    pairs = len(few.p)
    assert np.isnan(list(few.p.values())).all()
    assert few.groups == {}
    assert few.sentences() == [
        f"no groups: no p could be significant after the correction over {pairs} pairs with 19 permutations; draw 1,000 "
        "(--permutations)"
    ]
    assert "group" not in batch.Leaderboard(scored, tests=few).rows()[0]
    assert replace(few, correction="bh").could_tell  # of which p of 1/20 are enough, if all pairs have it


def test_without_optional_packages(tmp_path, capsys, files, monkeypatch):
    for package in ("jinja2", "pyarrow", "distributed", "pandas"):
        monkeypatch.setitem(sys.modules, package, None)
    code, _, err = run(capsys, "batch", TRUTH, files[0], "--out", tmp_path)
    assert code == 0
    assert install_command("report") in err
    assert install_command("parquet") in err
    assert not (tmp_path / "leaderboard.html").exists()
    code, _, err = run(capsys, "batch", TRUTH, files[0], "--scheduler", "tcp://127.0.0.1:1")
    assert code == 2
    assert install_command("dask") in err
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


def test_pages_of_models_are_linked_where_they_lie_beside_it(tmp_path):
    pytest.importorskip("jinja2")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "a_b.html").write_text("page")
    batch.Leaderboard([outcome("a b", AP=0.5), outcome("c", AP=0.25)]).write(tmp_path)
    text = (tmp_path / "leaderboard.html").read_text()
    assert '<a href="reports/a_b.html">a b</a>' in text
    assert text.count('<a href="reports/') == 1
    assert f"2 models · 2026-01-01 00:00 UTC · detmap {detmap.__version__}" in text
    assert f"<dt>Made</dt><dd>2026-01-01 00:00 UTC with detmap {detmap.__version__}</dd>" in text
