"""Gates of eval, compare and trec: what they demand, what they say, and the exit code."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import detmap
from detmap import cli
from detmap.cli.gates import Gates
from detmap.results import Result

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "coco"
TRUTH, FOUND = str(FIXTURES / "ground_truth.json"), str(FIXTURES / "detections.json")
RECORDS = json.loads(Path(FOUND).read_text("utf-8"))


@pytest.fixture
def run(capsys):
    """Return the exit code of a command, what it prints, and its gates' lines."""

    def call(*words):
        code = cli.main([str(word) for word in words])
        printed = capsys.readouterr()
        lines = printed.err.splitlines()
        gates = [line.removeprefix("detmap: gate ") for line in lines if line.startswith("detmap: gate ")]
        return code, gates or lines, printed.out

    return call


@pytest.fixture
def card(tmp_path, run):
    (tmp_path / "before.json").write_text(json.dumps(RECORDS), "utf-8")
    path = tmp_path / "card.json"
    assert run("eval", TRUTH, tmp_path / "before.json", "--card", path, "--quiet")[0] == 0
    return path


@pytest.fixture
def worse(tmp_path):
    """Write detections of which the best third is lost, and return their path."""
    path = tmp_path / "worse.json"
    cut = np.quantile([one["score"] for one in RECORDS], 2 / 3)
    path.write_text(json.dumps([one for one in RECORDS if one["score"] < cut]), "utf-8")
    return path


@pytest.fixture
def slightly_worse(tmp_path):
    """Write detections of which those on one image are lost, and return their path."""
    path = tmp_path / "slightly.json"
    image = max(RECORDS, key=lambda one: one["score"])["image_id"]
    path.write_text(json.dumps([one for one in RECORDS if one["image_id"] != image]), "utf-8")
    return path


def test_a_lowest_value(run):
    value = detmap.evaluate(TRUTH, FOUND)["AP"]
    code, lines, _ = run("eval", TRUTH, FOUND, "--fail-under", "AP=0.4")
    assert (code, lines) == (0, [f"passed: AP {value:.4f} is at least 0.4000"])
    code, lines, _ = run("eval", TRUTH, FOUND, "--fail-under", "AP=0.42", "--fail-under", "mAP@0.5=0.5")
    assert code == 4
    assert lines == [f"failed: AP {value:.4f} is below 0.4200", "passed: AP50 0.5813 is at least 0.5000"]
    assert run("eval", TRUTH, FOUND, "--fail-under", f"AP={value!r}")[0] == 0
    above = math.nextafter(value, 1)
    code, lines, _ = run("eval", TRUTH, FOUND, "--fail-under", f"AP={above!r}")
    assert (code, lines) == (4, [f"failed: AP {value!r} is below {above!r}"])


def test_quiet_keeps_what_failed_and_formats_stay_whole(run):
    code, lines, out = run("eval", TRUTH, FOUND, "--fail-under=AP=.9", "--fail-under=AP=.1", "--quiet", "--format=json")
    assert (code, len(lines)) == (4, 1)
    assert json.loads(out)["metrics"]["AP"] > 0


def test_a_drop_from_a_card(run, card, worse, slightly_worse):
    code, lines, _ = run("eval", TRUTH, FOUND, "--max-drop", "AP=0", "--against", card)
    assert (code, lines) == (0, ["passed: AP 0.4181 is the same as card.json"])
    before, after = detmap.evaluate(TRUTH, FOUND)["AP"], detmap.evaluate(TRUTH, slightly_worse)["AP"]
    assert before > after
    for limit, expected in (((before - after) * (1 + 1e-9), 0), ((before - after) * (1 - 1e-9), 4)):
        assert run("eval", TRUTH, slightly_worse, "--max-drop", f"AP={limit!r}", "--against", card)[0] == expected
    code, lines, _ = run("eval", TRUTH, worse, "--max-drop", "AP=0.005", "--against", card)
    now = detmap.evaluate(TRUTH, worse)["AP"]
    assert code == 4
    assert lines == [
        f"failed: AP {now:.4f} is {before - now:.2g} below {before:.4f} of card.json, and 0.005 is allowed"
    ]


def test_a_rise_is_no_drop(run, tmp_path, worse):
    assert run("eval", TRUTH, worse, "--card", tmp_path / "low.json")[0] == 0
    code, lines, _ = run("eval", TRUTH, FOUND, "--max-drop", "AP=0", "--against", tmp_path / "low.json")
    assert code == 0
    assert " above " in lines[0]


def test_chance(run, card, worse, slightly_worse):
    """The p-value is that of a paired permutation test of both files."""
    drop = ("--max-drop", "AP=0", "--against", card, "--unless-chance")
    before = detmap.evaluate(TRUTH, FOUND).tally
    for path, expected in ((slightly_worse, 0), (worse, 4)):
        test = detmap.statistics.permute(before, detmap.evaluate(TRUTH, path).tally, metric="AP")
        p = test.p_values()[test.columns["AP"]]
        assert (p > 0.05) == (expected == 0)
        code, lines, _ = run("eval", TRUTH, path, *drop)
        assert code == expected
        assert f"p = {p:.2g}: it {'could be' if p > 0.05 else 'is hardly'} chance" in lines[0]


def test_chance_is_not_known_without_the_baselines_file(run, card, worse, tmp_path):
    drop = ("--max-drop", "AP=0", "--against", card, "--unless-chance")
    (tmp_path / "before.json").write_text("[]", "utf-8")
    code, lines, _ = run("eval", TRUTH, worse, *drop)
    assert code == 4
    assert (
        "whether it could be chance is not known: 'before.json', which the card was made from, is in none of"
        in lines[0]
    )


def test_an_undefined_metric_fails(run, tmp_path):
    truth = json.loads(Path(TRUTH).read_text("utf-8"))
    for one in truth["annotations"]:
        one["area"] = 50.0
    (tmp_path / "gt.json").write_text(json.dumps(truth), "utf-8")
    code, lines, _ = run("eval", tmp_path / "gt.json", FOUND, "--fail-under", "AP_large=0.0")
    assert (code, lines) == (4, ["failed: AP_large is undefined"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail-under", "AP"], "--fail-under 'AP': write METRIC=VALUE, as AP=0.42"),
        (["--fail-under", "=0.3"], "write METRIC=VALUE"),
        (["--fail-under", "AP=nan"], "write METRIC=VALUE"),
        (["--fail-under", "AP=1_0"], "write METRIC=VALUE"),
        (["--max-drop", "AP=-0.1", "--against", "CARD"], "the largest drop is 0 or more"),
        (["--max-drop", "AP=0.1"], "--max-drop needs --against CARD"),
        (["--against", "CARD"], "--against needs --max-drop METRIC=VALUE"),
        (["--unless-chance"], "--unless-chance needs --max-drop METRIC=VALUE"),
        (["--junit", "x.xml"], "--junit needs a gate"),
        (["--gate-summary", "x.md"], "--gate-summary needs a gate"),
        (["--fail-under", "AP51=0.1"], "no metric 'AP51'; did you mean"),
        (["--max-drop", "AP=0.1", "--against", "CARD", "--protocol", "voc2007"], "cannot be compared with: decision"),
        (["--max-drop", "AP=0.1", "--against", "CARD", "--max-dets", "1,10,99"], "cannot be compared with: decision"),
        (["--max-drop", "AP=0.1", "--against", "CARD", "--junit", "CARD"], "would be written over, and is to be read"),
    ],
)
def test_what_cannot_be_is_one_line(run, card, options, said):
    code, lines, _ = run("eval", TRUTH, FOUND, *(str(card) if one == "CARD" else one for one in options))
    assert code == 2
    assert len(lines) == 1
    assert said in lines[0]


def test_a_card_of_other_data_or_of_another_command_is_refused(run, card, tmp_path):
    truth = json.loads(Path(TRUTH).read_text("utf-8"))
    (tmp_path / "same.json").write_text(json.dumps(truth, indent=2), "utf-8")
    drop = ("--max-drop", "AP=0", "--against", card)
    assert run("eval", tmp_path / "same.json", FOUND, *drop)[0] == 0  # other bytes, the same content
    truth["annotations"][0]["bbox"][0] += 1
    (tmp_path / "other.json").write_text(json.dumps(truth), "utf-8")
    code, lines, _ = run("eval", tmp_path / "other.json", FOUND, *drop)
    assert code == 2
    assert "inputs ground truth (what was read of it)" in lines[0]
    made = json.loads(card.read_text("utf-8"))
    card.write_text(json.dumps({**made, "command": "batch"}), "utf-8")
    code, lines, _ = run("eval", TRUTH, FOUND, *drop)
    assert code == 2
    assert "is a card of detmap batch; give one of detmap eval" in lines[0]


def test_files_for_continuous_integration(run, tmp_path):
    junit, summary = tmp_path / "gates.xml", tmp_path / "gates.md"
    gates = ("--fail-under", "AP=0.5", "--fail-under", "AP50=0.5")
    assert run("eval", TRUTH, FOUND, *gates, "--junit", junit, "--gate-summary", summary)[0] == 4
    suite = ElementTree.fromstring(junit.read_bytes())
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")
    assert [case.attrib["name"] for case in suite] == ["--fail-under AP=0.5", "--fail-under AP50=0.5"]
    assert [failure.attrib["message"] for failure in suite.iter("failure")] == ["AP 0.4181 is below 0.5000"]
    assert summary.read_text("utf-8").splitlines()[2:] == [
        "| failed | --fail-under AP=0.5 | AP 0.4181 is below 0.5000 |",
        "| passed | --fail-under AP50=0.5 | AP50 0.5813 is at least 0.5000 |",
    ]


@pytest.mark.slow
def test_compare_takes_its_first_file_as_the_baseline(run, tmp_path, card, worse, slightly_worse):
    files = (tmp_path / "before.json", slightly_worse, worse)
    gates = ("--fail-under", "AP=0.3", "--max-drop", "AP50=0.001", "--unless-chance", "--quiet")
    code, lines, _ = run("compare", TRUTH, *files, "--bootstrap", 200, "--permutations", 200, *gates[:-1])
    assert code == 4
    assert [line.split(":")[:2] for line in lines] == [
        ["passed", " before"],
        ["passed", " slightly"],
        ["passed", " slightly"],
        ["failed", " worse"],
        ["failed", " worse"],
    ]
    assert "could be chance" in lines[2]
    of_card = ("--max-drop", "AP=0.001", "--against", card, "--unless-chance")
    code, lines, _ = run("compare", TRUTH, *files, "--bootstrap", 200, "--permutations", 200, *of_card)
    assert code == 4
    assert [line.split(":")[0] for line in lines] == ["passed", "passed", "failed"]
    code, lines, _ = run("compare", TRUTH, *files, "--bootstrap", 200, "--fail-under", "APx=0.3")
    assert (code, "no metric 'APx'" in lines[-1]) == (2, True)


@pytest.fixture
def ranked(tmp_path):
    """Write judgements, a run, and one that is worse on every query; return their paths."""
    rng = np.random.default_rng(4)
    qrels, good, bad = [], [], []
    for query in range(40):
        for item in range(10):
            relevant = int(rng.random() < 0.4)
            qrels.append(f"q{query} 0 d{item} {relevant}")
            good.append(f"q{query} Q0 d{item} 0 {relevant + 1.5 * rng.random():.6f} a")
            bad.append(f"q{query} Q0 d{item} 0 {rng.random():.6f} a")
    paths = {}
    for name, lines in (("qrels.txt", qrels), ("good.run", good), ("bad.run", bad)):
        paths[name] = tmp_path / name
        paths[name].write_text("\n".join(lines) + "\n", "utf-8")
    return paths


def test_runs(run, ranked, tmp_path):
    qrels, good, bad = ranked.values()
    card = tmp_path / "card.json"
    assert run("trec", qrels, good, "--card", card, "--fail-under", "map=0.5")[0] == 0
    value, low = (detmap.retrieval.evaluate_run(str(qrels), str(path)) for path in (good, bad))
    code, lines, _ = run("trec", qrels, good, bad, "--max-drop", "map=0.01", "--against", card, "--unless-chance")
    assert code == 4
    assert lines[0] == f"passed: {good}: mAP {value['map']:.4f} is the same as card.json"
    fallen = f"mAP {low['AP']:.4f} is {value['AP'] - low['AP']:.2g} below {value['AP']:.4f} of card.json"
    assert lines[1].startswith(f"failed: {bad}: {fallen}, and 0.01 is allowed; p = ")
    assert lines[1].endswith("it is hardly chance")
    code, lines, _ = run(
        "trec", qrels, bad, "--max-drop", "map=0.01", "--against", card, "--convention", "pyserini_msmarco"
    )
    assert code == 2
    code, lines, _ = run("trec", qrels, bad, "--fail-under", "ndcg_cut_7=0.01")
    assert (code, "nDCG@7" in lines[-1] or "ndcg_cut_7" in lines[-1]) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no bash")
def test_the_action_of_github(tmp_path):
    """Its inputs are lines; the verdicts are added to the job's summary, and the exit code is the command's."""
    script = Path(__file__).resolve().parents[2] / ".github" / "actions" / "gate" / "gate.sh"
    inputs = {
        "COMMAND": "eval",
        "FILES": f"{TRUTH}\n{FOUND}\n",
        "FAIL_UNDER": "AP=0.4\nAP50=0.6",
        "MAX_DROP": "",
        "AGAINST": "",
    }
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", "utf-8")
    inputs |= {"MAX_DROP": "", "AGAINST": ""}
    more = {"OPTIONS": "--format\ncsv\n", "GITHUB_STEP_SUMMARY": str(summary), "PYTHON": sys.executable}
    done = subprocess.run(
        [str(script)], env={**os.environ, **inputs, **more}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4, done.stderr
    assert done.stdout.startswith("metric,")
    rows = [line.split(" | ")[0] for line in summary.read_text("utf-8").splitlines()]
    assert rows == ["before", "| ", "| ---", "| passed", "| failed"]
    assert (tmp_path / "detmap-gates.xml").exists()


def test_a_metrics_own_name():
    result = Result({"AP": 0.5})
    assert result.name_of("AP") == "AP"
    with pytest.raises(KeyError, match="no metric 'ap50'"):
        result.name_of("ap50")
    assert detmap.evaluate(TRUTH, FOUND).name_of("mAP@0.5") == "AP50"


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (0.5, 0.49, "passed: AP 0.4900 is 0.01 below 0.5000 of a"),
        (0.5, 0.48999, "failed: AP 0.4900 is 0.01001 below 0.5000 of a, and 0.01 is allowed"),
        (0.5, 0.4, "failed: AP 0.4000 is 0.1 below 0.5000 of a, and 0.01 is allowed"),
        (0.5, 0.6, "passed: AP 0.6000 is 0.1 above 0.5000 of a"),
        (math.nan, 0.5, "failed: AP is undefined in a"),
    ],
)
def test_a_drop_is_a_difference_of_decimals(capsys, before, after, says):
    options = argparse.Namespace(fail_under=[], max_drop=["AP=0.01"], against=None, quiet=False)
    options.unless_chance = options.junit = options.gate_summary = None
    gates = Gates(options, "compare")
    code = gates.judge({"a": {"AP": before}, "b": {"AP": after}}, lambda *_: "no test")
    head, tail = says.split(": ")
    assert capsys.readouterr().err == f"detmap: gate {head}: b: {tail}\n"
    assert code == (0 if head == "passed" else 4)


def test_an_unknown_option_points_to_the_help_of_its_command(capsys):
    for words, help_of in ((["explain", TRUTH, FOUND, "--nosuch"], "detmap explain"), (["--nosuch"], "detmap")):
        with pytest.raises(SystemExit):
            cli.main(words)
        assert f"see {help_of} --help" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("eval", TRUTH, "missing.json", "--fail-under", "APP=0.1"),
        ("compare", TRUTH, "missing.json", "other.json", "--max-drop", "AP55=0.1"),
        ("eval", TRUTH, "missing.json", "--protocol", "voc2007", "--fail-under", "XY=0.1"),
        ("trec", "missing.qrels", "missing.run", "--fail-under", "nDCG@20=0.1"),
        ("trec", "missing.qrels", "missing.run", "--metrics", "map", "--fail-under", "foo=1"),
    ],
)
def test_a_metric_that_there_is_not_is_refused_ahead_of_reading(words, run):
    code, (line, *more), _ = run(*words)
    assert code == 2
    assert "no metric '" in line
    assert "there are: " in line
    assert not more


def test_other_names_of_metrics_and_names_of_categories_are_read_on(run):
    for words in (
        ("eval", TRUTH, "missing.json", "--fail-under", "map_50=0.1"),
        ("eval", TRUTH, "missing.json", "--protocol", "voc2007", "--fail-under", "AP_cat=0.1"),
        ("trec", "missing.qrels", "missing.run", "--fail-under", "ndcg_cut_10=0.1"),
    ):
        code, lines, _ = run(*words)
        assert code == 2
        assert "missing" in lines[0]
