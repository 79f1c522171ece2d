"""The commands that compare: `detmap compare`, and `detmap eval` with intervals."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from batches import FIXTURES, ROOT, TRUTH, run, write
from batches import few_permutations as few_permutations
from batches import files as files
from batches import truth as truth

import detmap
from detmap import statistics
from detmap.results import without_nan


@pytest.mark.slow
@pytest.mark.compiled
def test_compare_on_the_command_line(tmp_path, capsys, files, truth):
    files = files[:3]
    tallies = {p.stem: detmap.match(truth, detmap.read_coco_results(p, truth)) for p in files}
    made = detmap.compare(tallies, 200, 3, metric="AP50", level=0.9)
    arguments = ["compare", TRUTH, *files, "--bootstrap", 200, "--seed", 3, "--metric", "AP50", "--confidence", 0.9]
    code, out, _ = run(capsys, *arguments, "--format", "json", "--out", tmp_path / "c.json")
    assert code == 0
    expected = json.loads(json.dumps(without_nan(made.to_dict())))
    assert json.loads(out) == json.loads((tmp_path / "c.json").read_text()) == expected
    arguments += ["--permutations", 400]
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert all(path.stem in out for path in files)
    assert "paired permutation test" in out
    assert "Holm's correction: the probability of any false claim in a family is at most 10 %" in out
    rows = list(csv.DictReader(run(capsys, *arguments, "--format", "csv")[1].splitlines()))
    assert len(rows) == 3 + 3 * len(truth.category_names)
    out = run(capsys, *arguments, "--correction", "bh")[1]
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
