"""The command line as a new user meets it: output, files, exit codes, messages; and what a start may not load."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from batches import run

import detmap
from detmap.cli import _HOMES
from detmap.kernels import compiled_before, matching

ROOT = Path(__file__).resolve().parents[2]
TRUTH, FOUND = str(ROOT / "fixtures/coco/ground_truth.json"), str(ROOT / "fixtures/coco/detections.json")
VOC = str(ROOT / "fixtures/voc/Annotations"), str(ROOT / "fixtures/voc/results")


@pytest.fixture(autouse=True)
def _wide_plain_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture(scope="module")
def result():
    truth = detmap.read_coco(TRUTH)
    return detmap.evaluate(truth, detmap.read_coco_results(FOUND, truth))


def test_table(capsys, result):
    code, out, err = run(capsys, "eval", TRUTH, FOUND)
    assert code == 0
    assert "Traceback" not in err
    lines = {line.split()[0]: line.split()[1] for line in out.splitlines()[2:] if line}
    assert lines["AP"] == f"{result['AP']:.4f}"
    assert set(result) < set(lines)


def test_per_class_table_names_every_class(capsys, result):
    out = run(capsys, "eval", TRUTH, FOUND, "--per-class")[1]
    assert all(f"\n{name} " in out for _, name in result.categories)


def test_json_and_out_are_the_same_and_hold_everything(capsys, result, tmp_path):
    path = tmp_path / "r.json"
    code, out, _ = run(capsys, "eval", TRUTH, FOUND, "--format", "json", "--out", path)
    assert code == 0
    document = json.loads(path.read_text())
    assert json.loads(out) == document
    assert document["metrics"] == dict(result)
    assert document["protocol"]["name"] == "coco"
    assert document["per_category"] == json.loads(result.to_json())["per_category"]


def test_undefined_is_null(capsys):
    out = run(capsys, "eval", TRUTH, FOUND, "--area-range", "none:1e9:2e9", "--format", "json")[1]
    assert json.loads(out)["metrics"]["AP_none"] is None
    assert json.loads(out)["metrics"]["AP"] > 0.4
    out = run(capsys, "eval", TRUTH, FOUND, "--area-range", "none:1e9:2e9", "--format", "csv")[1]
    assert "AP_none,\n" in out


def test_csv_has_all_digits(capsys, result):
    out = run(capsys, "eval", TRUTH, FOUND, "--format", "csv")[1]
    assert {name: float(value) for name, value in list(csv.reader(io.StringIO(out)))[1:]} == dict(result)
    rows = list(csv.DictReader(io.StringIO(run(capsys, "eval", TRUTH, FOUND, "--format", "csv", "--per-class")[1])))
    assert [float(row["AP"]) for row in rows] == [record["AP"] for record in result.per_category]
    assert [int(row["TP@0.75"]) for row in rows] == [record["true_positives"][5] for record in result.per_category]


def test_markdown(capsys):
    out = run(capsys, "eval", TRUTH, FOUND, "--format", "markdown", "--per-class")[1]
    lines = out.splitlines()
    assert lines[0].startswith("| metric | value |")
    assert len({line.count("|") for line in lines[:14]}) == 1


def test_arrays(capsys, result, tmp_path):
    run(capsys, "eval", TRUTH, FOUND, "--arrays", tmp_path / "a.npz", "--quiet")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        for name in ("precision", "recall", "scores"):
            assert np.array_equal(arrays[name], getattr(result, name), equal_nan=True)


def test_voc(capsys):
    code, out, _ = run(capsys, "eval", *VOC, "--protocol", "voc2007", "--format", "json")
    assert code == 0
    metrics = json.loads(out)["metrics"]
    assert next(iter(metrics)) == "mAP"
    assert metrics["mAP"] == pytest.approx(np.mean([v for k, v in metrics.items() if k.startswith("AP_")]), abs=1e-15)


def test_caps_and_thresholds(capsys):
    out = run(capsys, "eval", TRUTH, FOUND, "--max-dets", "500,1", "--iou-thresholds", "0.5", "--format", "json")[1]
    metrics = json.loads(out)["metrics"]
    assert {"AR_1", "AR_500"} < set(metrics)
    assert metrics["AP"] == metrics["AP50"]
    assert metrics["AP75"] is None


def test_quiet_and_notes(capsys, tmp_path):
    path = tmp_path / "d.json"
    path.write_text('[{"image_id":1,"category_id":4242,"bbox":[1,2,3,4],"score":1}]')
    said = "1 detection on images that the ground truth does not have: dropped"
    words = ("eval", TRUTH, path, "--unknown-images", "ignore")
    for form in ("table", "markdown", "csv", "json", "latex"):  # once, where tables do not hold them on stderr
        _, out, err = run(capsys, *words, "--format", form)
        assert (said in out, said in err) == (form in ("table", "markdown"), form not in ("table", "markdown"))
    _, _, err = run(capsys, *words, "--quiet")
    assert "note" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((FOUND, TRUTH), "are the arguments swapped?"),
        ((TRUTH, "missing.json"), "missing.json: no such file"),
        ((TRUTH, FOUND, "--max-dets", "x"), "--max-dets must be integers"),
        ((TRUTH, FOUND, "--max-dets", "0"), "max_dets must be positive"),
        ((TRUTH, FOUND, "--area-range", "x:1"), "--area-range must be NAME:LO:HI"),
        ((TRUTH, FOUND, "--area-range", ":1:2"), "has no name"),
        ((TRUTH, FOUND, "--area-range", "x:5:2"), "low <= high"),
        ((TRUTH, FOUND, "--iou-thresholds", "0.5:0.9:0.3"), "whole steps"),
        ((TRUTH, FOUND, "--threads", "0"), "--threads must be at least 1"),
        ((TRUTH, FOUND, "--image-set", "x"), "--image-set lists images of VOC's XML"),
        ((TRUTH, FOUND, "--out", "/no/such/folder/x.json"), "cannot write"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, message):
    code, out, err = run(capsys, "eval", *arguments)
    assert code == 2
    assert out == ""
    errors = [line for line in err.splitlines() if line.startswith("detmap: error: ")]
    assert len(errors) == 1
    assert message in errors[0]


def test_usage(capsys):
    assert run(capsys)[0] == 2
    assert run(capsys, "eval")[0] == 2
    code, out, _ = run(capsys, "eval", "--help")
    assert code == 0
    assert "examples:" in out
    assert run(capsys, "--version")[1].startswith("detmap 0.")


@pytest.mark.parametrize("command", _HOMES)
def test_help_is_one_screen(capsys, command):
    """Every flag is explained by --help-all; --help is at most 40 lines, and names options that there are."""
    code, brief, _ = run(capsys, command, "--help")
    assert code == 0
    assert len(brief.splitlines()) <= 40
    assert max(map(len, brief.splitlines())) <= 120
    code, whole, _ = run(capsys, command, "--help-all")
    assert code == 0
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", whole))
    head = brief.partition("\nexamples:")[0]
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", head)) <= flags | {"--trec", "--reid", "--hashing"}
    if command in ("eval", "batch", "compare", "trec", "diagnose"):
        assert {"--format", "--out"} <= set(re.findall(r"^  (--[a-z-]+)", brief, re.M))


def test_hostile_names_are_text(capsys, tmp_path):
    document = json.loads(Path(TRUTH).read_text())
    document["categories"][0]["name"] = "\x1b[31mred\n|<b>=1"
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(document))
    for form in ("table", "markdown"):
        out = run(capsys, "eval", path, FOUND, "--per-class", "--format", form)[1]
        assert "\x1b" not in out
        assert "\\x1b[31mred\\n" in out.replace("\\\\", "\\").replace("\\[", "[")
    assert "<b>" not in out
    document["categories"][0]["name"] = "=1+1"
    path.write_text(json.dumps(document))
    out = run(capsys, "eval", path, FOUND, "--per-class", "--format", "csv")[1]
    assert ",'=1+1," in out


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "code", ["import detmap", "from detmap.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"]
)
def test_what_a_start_loads(code):
    done = python(
        code + "\nimport sys; print([m for m in ('numba', 'numpy', 'msgspec', 'pandas') if m in sys.modules])"
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_scoring_boxes_loads_nothing_of_masks_and_of_other_commands():
    done = python(
        f"import sys\nfrom detmap.cli import main\nmain(['eval', {str(TRUTH)!r}, {str(FOUND)!r}, '--format', 'csv'])\n"
        "parts = ('masks', 'polygons', 'keypoints', 'checks', 'diagnostics', 'explanations', 'statistics')\n"
        "print([name for name in sys.modules if name.startswith('detmap') and set(parts) & set(name.split('.'))])"
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.jit
def test_the_first_run_says_that_it_compiles_and_the_second_does_not(tmp_path):
    command = [sys.executable, "-m", "detmap", "eval", TRUTH, FOUND]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr for _ in range(2)
    ]
    assert "compiling" in said[0]
    assert "compiling" not in said[1]


def test_compiled_before_knows_a_plain_function():
    assert compiled_before(lambda: None)
    assert isinstance(compiled_before(matching.match), bool)


def test_a_closed_pipe_is_no_error(tmp_path):
    command = f"{sys.executable} -m detmap eval {TRUTH} {FOUND} --format json | head -c 10"
    done = subprocess.run(
        command, shell=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_module_and_face():
    done = subprocess.run(
        [sys.executable, "-m", "detmap", "--version"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(b"detmap ")
    assert set(detmap.__all__) <= set(dir(detmap))
    assert all(getattr(detmap, name) is not None for name in detmap.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = detmap.nothing


@pytest.mark.parametrize("form", ["table", "json", "markdown"])
def test_a_terminal_without_the_characters(form, tmp_path):
    document = json.loads(Path(TRUTH).read_text())
    document["categories"][0]["name"] = "bär"
    document["categories"].append({"id": 999, "name": "nothing"})
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(document))
    done = subprocess.run(
        [sys.executable, "-m", "detmap", "eval", str(path), FOUND, "--per-class", "--format", form],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if form == "json":
        assert json.loads(done.stdout)["per_category"][0]["category"] == "bär"


def test_a_full_disk_is_one_line():
    command = [sys.executable, "-m", "detmap", "eval", str(TRUTH), str(FOUND)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "cannot write the output" in done.stderr
    assert "Traceback" not in done.stderr
