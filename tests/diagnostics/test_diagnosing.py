"""The command that says what goes wrong: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import detmap
from detmap import cli

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "fixtures" / "coco" / name for name in ("ground_truth.json", "detections.json")]


def run(capsys, *words):
    try:
        code = cli.main(["diagnose", *map(str, words)])
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def test_the_command_writes_what_the_library_finds(capsys, tmp_path):
    code, out, err = run(capsys, *FILES, "--format", "json", "--quiet", "--out", tmp_path / "all.json")
    assert (code, err) == (0, "")
    truth = detmap.read(FILES[0], "ground_truth")
    diagnosis = detmap.diagnose(truth, detmap.read(FILES[1], "detections", ground_truth=truth))
    assert json.loads(out)["parts"] == json.loads(diagnosis.to_json())["parts"]
    assert json.loads((tmp_path / "all.json").read_text()) == json.loads(out)


def test_the_command_prints_tables(capsys):
    code, out, _ = run(capsys, *FILES, "--quiet", "--rows", "3", "--parts", "tide,images")
    assert code == 0
    assert out.startswith("coco bbox at IoU 0.5: AP 0.")
    assert "tide: errors" in out
    assert "3 more rows: --rows 0 shows all" in out
    assert "images: worst images by lost AP" in out
    code, out, _ = run(capsys, *FILES, "--quiet", "--format", "markdown", "--parts", "confusion")
    assert (code, out.count("## confusion")) == (0, 2)
    ranges = ("--slice", "area:tiny:0:256", "--slice", "area:a:b:256:1e9")
    code, out, _ = run(capsys, *FILES, "--quiet", "--format", "csv", "--parts", "slices", *ranges)
    assert (code, [line.split(",")[:2] for line in out.splitlines()[1:3]]) == (0, [["area", "tiny"], ["area", "a:b"]])
    code, out, _ = run(capsys, *FILES, "--quiet", "--format", "csv", "--parts", "tide")
    assert (code, out.splitlines()[0]) == (0, "error,count,dAP,progressive,meaning")
    code, out, _ = run(capsys, *FILES, "--quiet", "--format", "csv")
    assert (code, out.splitlines()[0]) == (0, "part,metric,value")


def test_the_five_worst_classes_are_shown(capsys):
    names = [one["name"] for one in json.loads(FILES[0].read_text())["categories"]]
    for count, title in ((1, None), (2, "category"), (5, "category"), (6, "worst of 6")):
        code, out, _ = run(capsys, *FILES, "--quiet", "--categories", ",".join(names[:count]))
        rows = [line.split("  ")[0] for line in out.splitlines() if line.split("  ")[0] in names]
        assert (code, len(rows), len({*rows})) == (0, min(count, 5) * (count > 1), len(rows))
        assert [line for line in out.splitlines() if line.startswith(f"{title}  ")] or title is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--parts", "shoe"], "unknown part 'shoe'; one of: tide, confusion"),
        (["--rows", "-1"], "--rows must be at least 0, not -1"),
        (["--iou", "0.01"], "iou must be above 0.1"),
        (["--parts", "tide", "--attributes", "a.csv"], "--attributes needs the part slices"),
        (["--attributes", "nowhere.csv"], "nowhere.csv"),
        (["--parts", "tide", "--slice", "area:tiny:0:256"], "--slice needs the part slices"),
        (["--slice", "area:tiny"], "--slice must be BY:NAME:LO:HI, as area:tiny:0:256, not 'area:tiny'"),
        (["--slice", "shoe:tiny:0:1"], "no ranges of 'shoe' can be given"),
        (["--slice", "area:tiny:1:nan"], "ranges of area must be like"),
    ],
)
def test_the_command_refuses_in_one_line(capsys, words, message):
    code, out, err = run(capsys, *FILES, *words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err


def test_a_part_that_cannot_be_made_is_left_out_unless_it_was_asked_for(capsys, tmp_path):
    rows = json.loads(FILES[1].read_text())
    loud = tmp_path / "loud.json"
    loud.write_text(json.dumps([{**row, "score": 100 * row["score"]} for row in rows]))
    code, out, err = run(capsys, FILES[0], loud, "--all")
    assert code == 0
    assert "note: calibration is left out: only scores between 0 and 1" in err
    assert "lrp" in out
    code, _, err = run(capsys, FILES[0], loud, "--parts", "calibration")
    assert code == 2
    assert "only scores between 0 and 1" in err
