"""What is said of intervals and tests: their level, what they estimate, why there is none, what cannot be significant."""

import json
from dataclasses import replace

import large_workloads
import numpy as np
import pytest
from executed import ROOT
from support import tables_of_arrays

import detmap
from detmap import cli, statistics
from detmap.statistics import comparison

pytestmark = pytest.mark.compiled

FILES = [str(ROOT / "fixtures/coco" / name) for name in ("ground_truth.json", "detections.json")]


@pytest.fixture(scope="module")
def models():
    """A detector, and two that are worse: the last one much."""
    arrays = large_workloads.detector_like(60, 12, 3, 3)
    low = np.random.default_rng(0).random(720)
    scores = {
        name: np.where(low < share, 0.001, arrays["dt_scores"]) for name, share in (("a", 0), ("b", 0.2), ("c", 0.6))
    }
    return {name: detmap.evaluate(*tables_of_arrays({**arrays, "dt_scores": own})) for name, own in scores.items()}


@pytest.fixture(scope="module")
def few(models):
    """With 19 permutations no corrected p of three pairs can be 0.05 or less."""
    return detmap.compare(models, 200, permutations=19)


def test_the_level_of_an_interval_is_said(models, capsys):
    made = statistics.bootstrap(models["a"], 200)
    assert made.sentence().startswith(
        "low, high: 95 % confidence interval of the value expected on data sets of this size"
    )
    assert made.to_dict(0.9)["sentence"].startswith("low, high: 90 % confidence interval of the value")
    assert cli.main(["eval", *FILES, "--bootstrap", "200", "--confidence", "0.999"]) == 0
    assert "low, high: 99.9 % confidence interval of the value expected" in capsys.readouterr().out


def test_the_level_of_a_comparison_is_said(few):
    said = replace(few, level=0.9).sentences()
    assert any(one.startswith("low, high of a difference: 90 % confidence interval, not corrected") for one in said)
    assert any(one.startswith("low, high of a model: 90 % confidence interval of the value expected") for one in said)
    assert "above 0.1;" in " ".join(said)


def test_too_few_permutations_for_a_family_are_said(models, few):
    assert few.groups == {}  # c is much worse, and these tests could not have told
    assert "no groups: these tests could not have told any two models apart by AP" in few.sentences()
    assert {one["group"] for one in few.to_dict()["models"]} == {""}
    assert few.families[0].size == 3
    (of_metric,) = (one for one in few.sentences() if one.startswith("too few permutations for the family of AP:"))
    assert "none of its p can be below 0.05, and no such p is significant after the correction; draw 5,000" in of_metric
    assert any(one.startswith("too few permutations for the family of the categories") for one in few.sentences())
    enough = detmap.compare({name: models[name] for name in "ac"}, 200, permutations=19)
    assert not any("family of AP: none" in one for one in enough.sentences())  # of one pair p can be 1 / 20
    more = detmap.compare(models, 200, permutations=200)
    assert not any(one.startswith("too few permutations") for one in more.sentences())
    assert more.groups["c"] != more.groups["a"]


def test_false_discovery_rates_take_fewer_permutations(few):
    """Where all p are as small as can be, Benjamini and Hochberg's correction leaves them as they are."""
    assert not any(one.startswith("too few permutations") for one in replace(few, correction="bh").sentences())
    assert comparison._too_few_drawn(18, 3, "x", "bh", 0.05)
    assert not comparison._too_few_drawn(19, 0, "x", "holm", 0.05)


def test_all_permutations_are_never_too_few():
    """Models that differ on three images have four permutations: more cannot be drawn."""
    arrays = large_workloads.detector_like(30, 8, 2, 5)
    other = {**arrays, "dt_scores": arrays["dt_scores"].copy()}
    other["dt_scores"][:24:8] /= 2
    made = detmap.compare({n: detmap.evaluate(*tables_of_arrays(one)) for n, one in (("a", arrays), ("b", other))}, 200)
    assert next(iter(made.permutations.values())).exact.all()
    assert not any(one.startswith("too few permutations") for one in made.sentences())


def test_how_many_intervals_disagree_with_their_test(few):
    made = replace(few)
    object.__setattr__(made, "disagrees", lambda one: one.category is None)
    total = len(made.differences) + len(made.categories)
    assert made.sentences()[-1].startswith(f"interval and p disagree (~) for 3 of {total} differences: trust p")


def test_why_there_is_no_interval_is_printed(capsys):
    assert cli.main(["eval", *FILES, "--bootstrap", "200", "--per-class"]) == 0
    assert "no interval of cup (AP): 7 images with something to find: an interval takes 10" in capsys.readouterr().out
    assert cli.main(["eval", *FILES, "--bootstrap", "200"]) == 0
    assert "no interval" not in capsys.readouterr().out
    assert cli.main(["eval", *FILES, "--bootstrap", "200", "--iou-thresholds", "0.9"]) == 0
    assert "no interval of AP50, AP75: undefined\n" in capsys.readouterr().out
    assert cli.main(["eval", *FILES, "--bootstrap", "200", "--per-class", "--format", "json"]) == 0
    assert "cup" in json.loads(capsys.readouterr().out)["bootstrap"]["per_category"][6]["category"]


def test_a_class_under_voc_is_said_once(capsys):
    folders = [str(ROOT / "fixtures/voc" / name) for name in ("Annotations", "results")]
    assert cli.main(["eval", *folders, "--protocol", "voc2007", "--bootstrap", "200", "--per-class"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("no interval")]
    assert said == [
        "no interval of AP_bicycle, AP_dog: 8 images with something to find: an interval takes 10",
        "no interval of AP_car: 9 images with something to find: an interval takes 10",
    ]


def test_many_reasons_are_cut_short():
    from detmap.statistics.result_intervals import without_interval

    reasons = {f"m{i}": f"reason {i // 20}" for i in range(200)} | {"good": ""}
    said = without_interval(reasons, "--format json says why")
    assert len(said) == 7
    assert said[0] == "no interval of m0, m1, m2, m3, m4, m5, m6, m7 and 12 more: reason 0"
    assert said[-1] == "no interval of 80 more: --format json says why"
    assert without_interval({"good": ""}, "") == []


def test_a_leaderboard_tells_the_bias_and_the_images(tmp_path, capsys):
    """By any metric that it is ranked by; also the reasons are in its JSON."""
    out = tmp_path / "board"
    asked = ["batch", *FILES, "--bootstrap", "200", "--rank-by", "AR_small", "--out", str(out), "--quiet"]
    assert cli.main([*asked, "--permutations", "9"]) == 0
    said = capsys.readouterr().out
    document = json.loads((out / "leaderboard.json").read_text())["models"][0]
    made = statistics.bootstrap(scored(), 200)
    at = made.columns["AR_small"]
    assert document["bias"]["AR_small"] == made.bias()[at]
    assert document["images"]["AR_small"] == made.support[at] == 34
    assert document["no_interval"] == {}
    assert f"{made.bias()[at]:.4f}" in said
    assert "AR_small high  AR_small bias" in said
    assert "independent of each other; 34 images with something to find\nbias: by how much" in said
    assert "AR_small bias" in (out / "leaderboard.csv").read_text().splitlines()[0]
    assert "bias: by how much the value is expected to exceed" in (out / "leaderboard.html").read_text().lower()


def scored():
    truth = detmap.read_coco(FILES[0])
    return detmap.evaluate(truth, detmap.read_coco_results(FILES[1], truth))


def test_a_report_says_what_its_interval_is_of(tmp_path):
    page = tmp_path / "page.html"
    assert cli.main(["report", *FILES, "--bootstrap", "200", "--out", str(page), "--quiet"]) == 0
    text = page.read_text()
    assert "Interval of the AP expected on data sets of this size, drawn like this one; 58 images" in text
    assert "estimated bias 0.0019, not taken off; images are taken as independent of each other." in text
    assert cli.main(["report", *FILES, "--bootstrap", "0", "--out", str(page), "--quiet"]) == 0
    assert "Interval of the AP" not in page.read_text()


def test_a_report_marks_intervals_that_disagree_with_their_test(models):
    from detmap.reports.sections import compared

    made = detmap.compare(models, 200, permutations=200)
    columns = [block.columns for block in compared(made).panels[0][1] if hasattr(block, "columns")]
    assert "interval and p" not in [column["name"] for some in columns for column in some]
    object.__setattr__(made, "disagrees", lambda one: one.first == "a")
    tables = [block for block in compared(made).panels[0][1] if hasattr(block, "columns")]
    assert [column["name"] for column in tables[0].columns][-1] == "interval and p"
    assert [row[-1]["shown"] for row in tables[0].rows] == ["disagree (~)", "disagree (~)", "agree"]


def test_a_comparison_says_why_a_model_has_no_interval(models):
    made = detmap.compare({name: models[name] for name in "ab"}, 200, permutations=100)
    assert not any(one.startswith("no interval") for one in made.sentences())
    few = {name: replace(one, support=np.full_like(one.support, 9)) for name, one in made.bootstraps.items()}
    said = [one for one in replace(made, bootstraps=few).sentences() if one.startswith("no interval")]
    assert said == [
        f"no interval of AP of {name}: 9 images with something to find: an interval takes 10" for name in "ab"
    ]


@pytest.mark.slow
def test_runs_are_corrected_by_either_method(tmp_path, capsys):
    rng = np.random.default_rng(5)
    (tmp_path / "qrels").write_text("".join(f"q{q} 0 d{d} 1\n" for q in range(30) for d in range(3)))
    runs = [str(tmp_path / name) for name in "abc"]
    for path, shift in zip(runs, (0.0, 0.3, 1.5), strict=True):
        lines = [f"q{q} Q0 d{d} 0 {rng.normal() + shift * (d < 3):.4f} x\n" for q in range(30) for d in range(20)]
        (tmp_path / path).write_text("".join(lines))
    asked = ["trec", str(tmp_path / "qrels"), *runs, "--compare", "--correction"]
    for name, shown, correct in (("holm", "Holm", statistics.holm), ("bh", "BH", statistics.benjamini_hochberg)):
        assert cli.main([*asked, name, "--format", "json"]) == 0
        rows = json.loads(capsys.readouterr().out)["comparisons"]
        expected = correct([row["p randomisation"] for row in rows]).tolist()
        assert [row[f"randomisation ({shown})"] for row in rows] == expected
        assert cli.main([*asked, name]) == 0
        said = capsys.readouterr().out
        assert f"randomisation ({shown})" in said
        assert "<0.0001" in said  # small p-values are shown as such in that column too
        assert f"{shown}: corrected over 3 pairs of runs, the family of each test\n" in said
        assert statistics.tests.promise(name, 0.05) in said


def test_a_notebook_marks_intervals_that_disagree_with_their_test(few):
    assert "interval and p<" not in few._repr_html_()
    made = replace(few)
    object.__setattr__(made, "disagrees", lambda one: one.first == "a")
    html = made._repr_html_()
    assert "interval and p<" in html
    assert html.count(">~<") == 2


def test_a_p_value_that_equals_the_level_is_significant(models):
    """1 - 0.9 is less than 0.1 in floating point, and nine permutations leave p = 0.1 at best."""
    made = detmap.compare({name: models[name] for name in "ac"}, 200, permutations=9, level=0.9)
    assert made.differences[0].p == 0.1
    assert made.groups["a"] != made.groups["c"]
    assert made.differences[0].high < 0
    assert not any("for the family of AP: none" in one for one in made.sentences())


def test_permutations_are_counted_over_all_pairs(models):
    """Equal models have one permutation: the sentence is not of that pair alone."""
    made = detmap.compare({"a": models["a"], "same": models["a"], "c": models["c"]}, 200, permutations=99)
    assert made.sentences()[0].startswith(
        "p: paired permutation test, 99 permutations (all of them where there are fewer): would the models differ"
    )
