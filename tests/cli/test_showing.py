"""What commands show: tables that fit, columns that were asked for, parts of the data, and causes of an AP near 0."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap import cli, plots
from detmap.cli import terminal
from detmap.data.subsets import subset
from detmap.formats.model_names import brief
from detmap.statistics import bootstrap
from detmap.system import progress

ROOT = Path(__file__).resolve().parents[2]
TRUTH, FOUND = (ROOT / "fixtures/coco" / name for name in ("ground_truth.json", "detections.json"))
LVIS = ROOT / "fixtures/lvis/ground_truth.json"


def run(capsys, *words):
    try:
        code = cli.main([*map(str, words)])
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


# ------------------------------------------------------------------------------------------------------------- tables


def rows_of(names, columns, digits=4):
    rng = np.random.default_rng(0)
    return [{"model": name, **{c: round(float(rng.random()), digits) for c in columns}} for name in names]


def test_a_table_fits_and_says_which_columns_it_leaves_out():
    rows = rows_of(["one", "two"], [f"metric_{n}" for n in range(20)])
    whole = terminal.table(rows, styled=False)
    shown = terminal.table(rows, 100, ["metric_19"], styled=False)
    assert max(map(len, whole.splitlines())) > 200
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 100
    assert "metric_19" in lines[0]
    left_out = re.findall(r"metric_\d+", " ".join(lines[lines.index("") :]))
    assert sorted([*left_out, *re.findall(r"metric_\d+", lines[0])]) == sorted(f"metric_{n}" for n in range(20))
    assert terminal.table(rows, 1000, styled=False) == whole


def test_names_that_would_be_cut_alike_are_shown_whole():
    names = [f"{'a' * 30}{n}{'b' * 30}" for n in range(2)]
    shown = terminal.table(rows_of(names, ["AP", *(f"AP{n}" for n in range(20))]), 100, styled=False)
    assert all(name in shown for name in names)
    names = [f"{n}{'a' * 60}{n}" for n in range(2)]
    shown = terminal.table(rows_of(names, ["AP", *(f"AP{n}" for n in range(20))]), 100, styled=False)
    assert max(map(len, shown.splitlines())) <= 100
    assert "0aaaa" in shown
    assert "…" in shown


def test_sentences_are_wrapped_at_blanks_and_whole():
    said = " ".join(f"word{n}" for n in range(40))
    rows = [{"model": "one", "error": said}, {"model": "two", "error": "short"}]
    shown = terminal.table(rows, 60, styled=False)
    assert max(map(len, shown.splitlines())) <= 60
    assert " ".join(shown.split()).replace("model error one ", "").startswith(said)


def test_a_leaderboard_of_many_models_shows_each_in_a_line(capsys, tmp_path):
    records = json.loads(FOUND.read_text())
    for n in range(27):
        (tmp_path / f"model_{n:02}.json").write_text(json.dumps(records[:: n + 1]))
    code, out, _ = run(capsys, "batch", TRUTH, tmp_path, "--metrics", "AP50,AR_100", "--rank-by", "AR_10")
    assert code == 0
    rows = [line.split() for line in out.splitlines() if "model_" in line]
    assert len(rows) == 27
    assert out.splitlines()[2].split() == ["rank", "model", "AR_10", "AP50", "AR_100"]
    assert max(map(len, out.splitlines())) <= 100
    code, out, _ = run(capsys, "batch", TRUTH, tmp_path)
    table = out.split("\n\n")[1].splitlines()
    assert len(table) == 28
    assert max(map(len, table)) <= 100
    code, out, _ = run(capsys, "batch", TRUTH, tmp_path, "--wide")
    assert "AR_large" in out.splitlines()[2]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("AP5", "no metric 'AP5'; did you mean 'AP50'?"),
        ("AP_smal", "no metric 'AP_smal'; did you mean 'AP_small'?"),
        (",", "--metrics names no metric"),
    ],
)
def test_metrics_that_there_are_not_are_refused_before_scoring(capsys, given, said):
    code, out, err = run(capsys, "batch", TRUTH, FOUND, "--metrics", given)
    assert (code, out) == (2, "")
    assert said in err


def test_latex_is_a_table_for_each_table(capsys):
    code, out, err = run(capsys, "eval", TRUTH, FOUND, "--format", "latex", "--per-class", "--quiet")
    assert (code, err) == (0, "")
    assert out.count(r"\begin{tabular}") == out.count(r"\end{tabular}") == 2
    assert r"AP\_small" in out
    assert out.splitlines()[-1] == r"\end{tabular}"


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--plot", "curve.gif"], "a plot is written as .svg, .pdf or .png"),
        (["--out", "nowhere/at/all.json"], "there is no folder 'nowhere/at'"),
        (["--card", "nowhere/card.json"], "there is no folder 'nowhere'"),
        (["--error-threshold", "2"], "--error-threshold has no effect under coco bbox: it is about boxes in space"),
        (["--protocol", "voc2012", "--absorbing"], "--absorbing has no effect under voc2012 bbox"),
        (["--points", "0:17"], "--points has no effect under coco bbox: it is about poses"),
        (["--iou-type", "centre-distance"], "--iou-type centre-distance is a distance"),
        (["--categories", "persn"], "field 'categories': is no category of the ground truth; did you mean 'person'?"),
        (["--images", "no_such_image"], "is no image of the ground truth"),
        (["--images", ","], "names nothing: nothing would be scored"),
    ],
)
def test_what_cannot_work_is_refused_before_scoring(capsys, monkeypatch, words, said):
    monkeypatch.setattr("detmap.detection.evaluate.scored", lambda *_, **__: pytest.fail("it was scored"))
    code, out, err = run(capsys, "eval", TRUTH, FOUND, *words)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err


def test_a_model_is_not_compared_with_itself(capsys):
    code, _, err = run(capsys, "compare", TRUTH, FOUND, FOUND)
    assert code == 2
    assert f"{str(FOUND)!r} is given twice" in err


@pytest.mark.slow
def test_a_picture_is_drawn_in_three_forms_that_stay_the_same(tmp_path):
    pytest.importorskip("matplotlib")
    line = plots.Line("a", np.array([0.5, 1.0]), interpolated=np.array([1.0, 0.5]))
    for ending, begin in {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}.items():
        made = []
        for name in ("one", "two"):
            plots.precision_recall([line], path=tmp_path / f"{name}.{ending}")
            made.append((tmp_path / f"{name}.{ending}").read_bytes())
        assert made[0] == made[1]
        assert made[0].startswith(begin)


# ------------------------------------------------------------------------------------------------------- parts of the data


def test_a_subset_scores_as_evaluate_does_with_ids(capsys, tmp_path):
    truth = detmap.read(TRUTH, "ground_truth")
    images = truth.images.ids[::3].tolist()
    names = list(truth.category_names[:3])
    listed = tmp_path / "images.txt"
    listed.write_text("\n".join(map(str, images)) + "\n")
    words = ("--images", listed, "--categories", ",".join(names), "--format", "json", "--quiet")
    code, out, _ = run(capsys, "eval", TRUTH, FOUND, *words)
    assert code == 0
    ids = truth.categories.ids[:3].tolist()
    expected = detmap.evaluate(str(TRUTH), str(FOUND), image_ids=images, category_ids=ids)
    assert json.loads(out)["metrics"] == json.loads(expected.to_json())["metrics"]
    assert json.loads(out)["per_category"] == json.loads(expected.to_json())["per_category"]
    whole = detmap.evaluate(str(TRUTH), str(FOUND))
    assert expected["AP"] != whole["AP"]


@pytest.mark.parametrize("command", ["batch", "diagnose", "compare", "explain", "report"])
def test_every_command_on_detections_takes_subsets(capsys, tmp_path, command):
    other = tmp_path / "other.json"
    other.write_text(json.dumps(json.loads(FOUND.read_text())[::2]))
    truth = detmap.read(TRUTH, "ground_truth")
    words = {
        "batch": [FOUND, other, "--format", "json"],
        "compare": [FOUND, other, "--format", "json", "--bootstrap", "200"],
        "diagnose": [FOUND, "--format", "json", "--parts", "tide"],
        "explain": [FOUND, "--from", "voc2012", "--format", "json"],
        "report": [FOUND, "--out", tmp_path / "page.html"],
    }[command]
    if command == "report":
        pytest.importorskip("jinja2")
    name = truth.category_names[0]
    images = ",".join(map(str, truth.images.ids[:20].tolist()))
    more = [] if command == "report" else ["--images", images]
    code, out, err = run(capsys, command, TRUTH, *words, "--categories", name, *more, "--quiet")
    assert (code, err) == (0, "")
    if command == "batch":
        expected = detmap.evaluate(
            str(TRUTH), str(FOUND), image_ids=truth.images.ids[:20], category_ids=truth.categories.ids[:1]
        )
        found = next(one for one in json.loads(out)["models"] if one["model"] == "detections")
        assert found["metrics"]["AP"] == expected["AP"]


def test_detections_on_no_image_of_the_whole_are_still_refused(capsys, tmp_path):
    records = json.loads(FOUND.read_text())
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps([*records, {**records[0], "image_id": 1}]))
    image = detmap.read(TRUTH, "ground_truth").images.ids[0]
    code, _, err = run(capsys, "eval", TRUTH, wrong, "--images", image)
    assert code == 2
    assert "is not an image of the ground truth" in err


def test_a_subset_has_the_lists_of_its_images_and_all_that_is_said_of_them():
    truth = detmap.read(LVIS, "ground_truth")
    images, categories = truth.images.ids[1::2].tolist(), truth.categories.ids[::2].tolist()
    part = subset(truth, images, categories)
    assert part.images.ids.tolist() == images
    assert part.categories.ids.tolist() == categories
    for name in ("negatives", "not_exhaustive"):
        whole = getattr(truth, name).by_image(truth.images.ids, truth.categories.ids)
        made = getattr(part, name).by_image(part.images.ids, part.categories.ids)
        assert made == {i: [c for c in listed if c in categories] for i, listed in whole.items() if i in images}
    own = truth.images.ids[truth.images.codes]
    kept = np.isin(own, images) & np.isin(truth.categories.ids[truth.categories.codes], categories)
    assert np.array_equal(part.boxes, truth.boxes[kept])
    assert np.array_equal(part.images.ids[part.images.codes], own[kept])


# ------------------------------------------------------------------------------------------------------------- causes


def test_the_cause_of_an_ap_near_0_is_said_in_a_line(capsys, tmp_path):
    records, truth = json.loads(FOUND.read_text()), json.loads(TRUTH.read_text())
    ids = sorted(one["id"] for one in truth["categories"])
    places = [{**one, "category_id": ids.index(one["category_id"])} for one in records]
    x, y, w, h = 0, 1, 2, 3
    corners = [{**one, "bbox": [b[x], b[y], b[x] + b[w], b[y] + b[h]]} for one in records for b in [one["bbox"]]]
    for name, found, said in (("places", places, "category ids of"), ("corners", corners, "two corners")):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(found))
        for command in ("eval", "batch"):
            _, _, err = run(capsys, command, TRUTH, path)
            told = [line for line in err.splitlines() if "little is found" in line]
            assert len(told) == 1, (command, err)
            assert said in told[0]
        assert "little is found" not in run(capsys, "eval", TRUTH, path, "--quiet")[2]
    assert "little is found" not in run(capsys, "eval", TRUTH, FOUND)[2]


# ------------------------------------------------------------------------------------------------------------ progress


def test_a_bootstrap_counts_what_is_done():
    result = detmap.evaluate(str(TRUTH), str(FOUND))
    heard: list[str] = []
    with progress.listening(heard.append):
        bootstrap(result, 200, threads=1)
    told = [re.fullmatch(r"(bootstrap|jackknife) (\d+) of (\d+) \((\d+) %\)", text) for text in heard if text]
    assert all(told)
    assert {(one[1], one[3]) for one in told} >= {("bootstrap", "200")}
    counts = [int(one[2]) for one in told if one[1] == "bootstrap"]
    assert counts == sorted(counts)
    assert heard[0] == "bootstrap 0 of 200 (0 %)"
    assert heard[-1] == ""
    assert progress._counted == []


def test_nothing_is_counted_where_nothing_listens():
    with progress.counting(("bootstrap", 10)):
        assert progress._counted == []
        progress.advance(5)


# --------------------------------------------------------------------------------------------------------- diagnoses


def test_a_diagnosis_of_many_classes_fits_a_screen(capsys, tmp_path):
    rng = np.random.default_rng(0)
    boxes = rng.integers(0, 400, (800, 4)).tolist()
    rows = [
        {"id": n + 1, "image_id": n % 20, "category_id": n % 80, "bbox": [x, y, 10 + w % 50, 10 + h % 50], "area": 600}
        for n, (x, y, w, h) in enumerate(boxes)
    ]
    document = {
        "images": [{"id": n, "file_name": f"{n}.jpg", "width": 500, "height": 500} for n in range(20)],
        "categories": [{"id": n, "name": f"class {n}"} for n in range(80)],
        "annotations": [{**row, "iscrowd": 0} for row in rows],
    }
    truth, found = tmp_path / "truth.json", tmp_path / "found.json"
    truth.write_text(json.dumps(document))
    keys = ("image_id", "category_id", "bbox")
    found.write_text(json.dumps([{**{k: row[k] for k in keys}, "score": row["id"] / 1000} for row in rows[::2]]))
    code, out, _ = run(capsys, "diagnose", truth, found)
    assert code == 0
    lines = out.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 120
    assert [line.split()[0] for line in lines if re.match("(Cls|Loc|Both|Dupe|Bkg|Miss) ", line)] == [
        *("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")
    ]
    assert sum(line.startswith("class ") for line in lines) == 5
    assert any(line.startswith("cut: scores of ") for line in lines)
    assert any(line.startswith("first: Miss costs most") for line in lines)
    _, every, _ = run(capsys, "diagnose", truth, found, "--all")
    assert len(every.splitlines()) > 300
    assert "more rows" not in every
    code, _, err = run(capsys, "diagnose", truth, found, "--all", "--rows", "3")
    assert (code, "--all shows every part" in err) == (2, True)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (
            ["run_of_2024_base_model_lr0.1", "run_of_2024_base_model_lr0.25"],
            ["…024_base_model_lr0.1", "…024_base_model_lr0.25"],
        ),
        (["x" * 50], ["x" * 50]),
        (["first_" + "a" * 30, "other_" + "b" * 30], ["first_" + "a" * 30, "other_" + "b" * 30]),
    ],
)
def test_long_names_of_pairs_are_brief_where_they_stay_apart(names, expected):
    found = brief(names)
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    if expected[0] == names[0]:
        assert list(found.values()) == expected
    else:
        assert all(len(one) <= 22 and one.startswith("…") and one.strip("…") in name for name, one in found.items())


def test_tables_of_pairs_keep_what_decides(tmp_path, capsys, monkeypatch):
    """Long names are brief, so that difference and p are shown; CSV and --wide have them whole."""
    monkeypatch.chdir(tmp_path)
    rows = json.loads(FOUND.read_text())
    names = [f"a_model_of_a_rather_long_name_{one}_and_more.json" for one in ("first", "second")]
    for name, some in zip(names, (rows, rows[::2]), strict=True):
        Path(name).write_text(json.dumps(some))
    words = ["compare", str(TRUTH), *names, "--bootstrap", "200", "--permutations", "200"]
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    pairs = next(line for line in shown.splitlines() if line.startswith("from"))
    assert "difference" in pairs
    assert "p (Holm)" in pairs
    assert "…" in shown
    assert max(map(len, shown.split("\n\np: ")[0].splitlines())) <= 100
    assert cli.main([*words, "--wide"]) == 0
    assert "…" not in capsys.readouterr().out.split("\n\np: ")[0]


def test_runs_are_called_by_their_files(tmp_path, capsys):
    for name in ("first", "second"):
        (tmp_path / f"{name}.run").write_text("q1 Q0 a 1 2 x\nq2 Q0 b 1 2 x\n")
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 c 1\nq3 0 c 1\n")
    words = ["trec", str(tmp_path / "qrels.txt"), *(str(tmp_path / f"{name}.run") for name in ("first", "second"))]
    assert cli.main([*words, "--metrics", "map", "--compare"]) == 0
    shown = capsys.readouterr().out
    assert str(tmp_path) not in shown
    assert "1 judged query that the run does not have" in shown
    assert "notices " not in shown
    assert cli.main([*words, "--format", "csv"]) == 0
    assert str(tmp_path) in capsys.readouterr().out
