"""The commands for rankings, and the pictures."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import detmap
from detmap import cli, results
from detmap.errors import OptionError
from detmap.retrieval import CONVENTIONS, evaluate_distances, evaluate_run

QRELS = "1 0 a 1\n1 0 b 0\n2 0 c 2\n2 0 d 1\n"
RUN = "1 Q0 b 1 0.9 x\n1 Q0 a 2 0.8 x\n2 Q0 c 1 5 x\n2 Q0 z 2 4 x\n2 Q0 d 3 3 x\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "run").write_text(RUN)
    (tmp_path / "other").write_text(RUN.replace("0.9", "0.7"))
    rng = np.random.default_rng(0)
    labels = {"query_ids": np.arange(4), "gallery_ids": np.arange(20) % 5}
    cameras = {"query_cameras": np.zeros(4, int), "gallery_cameras": rng.integers(0, 2, 20)}
    np.savez(tmp_path / "reid.npz", distances=rng.random((4, 20)), **labels, **cameras)
    features = {"query_features": rng.random((4, 3)), "gallery_features": rng.random((20, 3))}
    np.savez(tmp_path / "features.npz", **features, **labels)
    codes = {"query_codes": rng.integers(0, 2, (4, 8)), "gallery_codes": rng.integers(0, 2, (20, 8))}
    np.savez(tmp_path / "codes.npz", **codes, query_labels=labels["query_ids"], gallery_labels=labels["gallery_ids"])
    np.savez(tmp_path / "pickled.npz", distances=np.array([{}], dtype=object), **labels)
    np.savez(tmp_path / "few.npz", distances=rng.random((4, 20)))
    return tmp_path


def run(capsys, *arguments):
    code = cli.main([str(a) for a in arguments])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_trec(capsys, files):
    code, out, _ = run(capsys, "trec", files / "qrels", files / "run", "--metrics", "map,ndcg@10,P_5")
    assert code == 0
    assert "trec: step AP / all relevant, ties docid" in out
    assert re.search(r"^mAP +0\.6667$", out, re.M)
    assert "nDCG@10" in out
    code, out, _ = run(
        capsys, "trec", files / "qrels", files / "run", "--metrics", "map", "--per-query", "--format", "csv"
    )
    assert out == "query,AP\n1,0.5\n2,0.8333333333333333\n"
    code, out, _ = run(capsys, "trec", files / "qrels", files / "run", "--format", "json", "--out", files / "all.json")
    assert json.loads(out) == json.loads((files / "all.json").read_text())
    assert json.loads(out)["queries"]["scored"] == 2


def test_trec_several_runs(capsys, files):
    paths = [str(files / "run"), str(files / "other")]
    code, out, _ = run(capsys, "trec", files / "qrels", *paths, "--metrics", "map", "--format", "json")
    assert [json.loads(out)[p]["metrics"]["mAP"] for p in paths] == [2 / 3, 11 / 12]
    code, out, _ = run(capsys, "trec", files / "qrels", *paths, "--metrics", "map", "--format", "markdown")
    assert (code, "0.6667 | 0.9167" in out) == (0, True)
    code, out, _ = run(capsys, "trec", files / "qrels", *paths, "--metrics", "num_rel")
    assert re.search(r"^num_rel +\d+ +\d+$", out, re.M)  # counts are whole numbers
    code, out, _ = run(capsys, "trec", files / "qrels", files / "run", "--metrics", "map", "--format", "markdown")
    assert re.search(r"\| mAP \| 0\.6667 \| trec \|", out)  # where no title names the convention
    code, out, _ = run(capsys, "trec", files / "qrels", *paths, "--metrics", "map", "--plot", files / "two.svg")
    assert (code, (files / "two.svg").read_text().count("<svg")) == (0, 1)


def test_reid_and_hashing(capsys, files):
    code, out, _ = run(capsys, "reid", files / "reid.npz", "--plot", files / "cmc.png")
    assert code == 0
    assert re.search(r"^CMC@1 +0\.\d{4}$", out, re.M)
    assert (files / "cmc.png").read_bytes()[:4] == b"\x89PNG"
    code, out, _ = run(
        capsys, "reid", files / "features.npz", "--metric", "cosine", "--metrics", "mAP", "--ties", "worst"
    )
    assert (code, "ties worst" in out) == (0, True)
    code, out, _ = run(capsys, "hashing", files / "codes.npz", "--k", "5", "--per-query")
    assert (code, "mAP@5" in out, out.count("\n") > 8) == (0, True, True)


def test_conventions_are_all_listed(capsys):
    for form in ("table", "json", "csv", "markdown"):
        code, out, _ = run(capsys, "conventions", "--format", form)
        assert code == 0
        assert all(name in out for name in CONVENTIONS)
    assert {"trec", "trec10", "ranx", "beir", "msmarco", "kaggle", "torchmetrics"} <= set(CONVENTIONS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trec", "nothing", "run"], "no such file"),
        (["trec", "qrels", "qrels"], r"qrels:1: 4 fields where 6 belong"),
        (["trec", "qrels", "run", "--metrics", "mapp"], "unknown metric 'mapp'"),
        (["trec", "qrels", "run", "--convention", "x"], "unknown convention"),
        (["reid", "pickled.npz"], "pickled objects"),
        (["reid", "run"], "not an .npz file"),
        (["reid", "few.npz"], "has no array query_ids"),
        (["reid", "reid.npz", "--plot", "x.gif"], "as .svg, .pdf or .png"),
        (["hashing", "reid.npz"], "has no array query_codes"),
    ],
)
def test_bad_input_is_one_line_and_code_2(capsys, files, arguments, message, monkeypatch):
    monkeypatch.chdir(files)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"detmap: error: .*{message}.*\n", err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trec", "qrels", "run", "--metrics", ","], "metrics holds no name"),
        (["trec", "qrels", "run", "--metrics", "map@9223372036854775807"], "at most 2"),
        (["trec", "qrels", "run", "--metrics", "RBP(p=1..2)"], "holds no number"),
        (["trec", "qrels", "run", "--level", "9" * 30], "level must be"),
        (["trec", "qrels", "run", "--depth", "9" * 30], "depth must be"),
        (["hashing", "codes.npz", "--k", "9" * 30], "depth must be"),
        (["reid", "encrypted.npz"], "is damaged"),
        (["reid", "unknown.npz"], "is damaged"),
        (["reid", "bomb.npz"], "decompresses to far more than its size"),
    ],
)
def test_hostile_input_is_one_line_and_code_2(capsys, files, arguments, message, monkeypatch):
    monkeypatch.chdir(files)
    good = bytearray((files / "reid.npz").read_bytes())
    for name, offset, value in (("encrypted", 6, b"\x01"), ("unknown", 8, b"\x63")):
        data, at = good.copy(), -1
        while (at := data.find(b"PK\x03\x04", at + 1)) >= 0:
            data[at + offset : at + offset + 1] = value
        while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
            data[at + offset + 2 : at + offset + 3] = value
        (files / f"{name}.npz").write_bytes(data)
    np.savez_compressed(files / "bomb.npz", distances=np.zeros((500, 500)))
    monkeypatch.setenv("DETMAP_MOST_INFLATED", "1M")
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"detmap: error: .*{message}.*\n", err)


def test_ids_in_latin_1_and_counts_of_queries(capsys, files):
    for name, text in (("q", QRELS), ("r", RUN)):
        (files / name).write_bytes(text.encode().replace(b"2 ", "é ".encode("latin-1")))
    for form in ("table", "csv", "json", "markdown"):
        code, out, err = run(capsys, "trec", files / "q", files / "r", "--per-query", "--format", form)
        assert (code, err) == (0, "")
    (files / "short").write_text(RUN.splitlines()[0] + "\n9 Q0 x 1 1 x\n")
    code, out, _ = run(capsys, "trec", files / "qrels", files / "run", files / "short", "--format", "csv")
    assert (code, "queries missing,0,1" in out, "queries extra,0,1" in out) == (0, True, True)


def test_a_name_that_begins_with_an_underscore_is_in_the_legend():
    from detmap import plots

    recall = np.linspace(0, 1, 5)
    figure = plots.precision_recall([plots.Line("_private", recall, recall), plots.Line("open", recall, recall)])
    assert [text.get_text().strip() for text in figure.legends[0].get_texts()] == ["_private", "open"]


def test_curves_of_one_name_are_both_drawn():
    """Two classes, or two queries, may have the same name."""
    from detmap import plots

    recall = np.linspace(0, 1, 5)
    figure = plots.precision_recall(
        [plots.Line("a", recall, None, recall), plots.Line("a", recall.copy(), None, recall)]
    )
    assert len(figure.axes[0].lines) == 2


def test_plots_hold_what_they_draw(tmp_path):
    result = evaluate_run({"a": {"x": 1, "y": 1}}, {"a": {"x": 2.0, "n": 1.0, "y": 0.5}}, "map")
    figure = result.plot(kind="pr", queries=[0])
    raw, envelope = figure.axes[0].lines
    assert raw.get_ydata().tolist() == [1, 0.5, 2 / 3]
    assert envelope.get_ydata().tolist() == [1, 1, 2 / 3, 2 / 3]
    assert len(figure.axes[0].collections) == 1  # the shaded area
    mean = result.plot(tmp_path / "mean.svg")
    left, right = mean.axes  # CMC from the hits, although it was not asked for
    assert left.lines[0].get_ydata().tolist() == [1, 1, 1]
    assert right.lines[0].get_ydata()[-1] == 2 / 3
    (text,) = mean.legends[0].get_texts()
    assert text.get_text().split("\n")[1:] == [f"  mAP {result['mAP']:.4f}", "  CMC@1 1.0000, @5 1.0000"]
    first = (tmp_path / "mean.svg").read_bytes()
    result.plot(tmp_path / "mean.svg")
    assert (tmp_path / "mean.svg").read_bytes() == first
    reid = evaluate_distances(np.arange(6.0).reshape(1, 6), [1], [0, 1, 1, 2, 3, 4])
    assert reid.plot().axes[0].lines[0].get_ydata().tolist() == [0, 1, 1, 1, 1, 1]
    with pytest.raises(OptionError, match="CMC was not evaluated"):
        result.plot(kind="cmc")


def test_labels_fit_and_many_lines_are_drawn(tmp_path):
    from detmap import plots

    recall = np.linspace(0, 1, 5)
    name = "a very long name of a category with $math$ and\nlines " * 4
    lines = [plots.Line(f"{i} {name}", recall, 1 - recall / (i + 1), None) for i in range(20)]
    figure = plots.precision_recall(lines, path=tmp_path / "many.png")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()[plots.NAMED :]] == ["6 more"]
    figure.canvas.draw()
    box, inside = legend.get_window_extent(), figure.axes[0].get_window_extent()
    assert inside.x1 < box.x0
    assert inside.width > 200
    assert box.x1 <= figure.bbox.x1
    assert box.y0 >= figure.bbox.y0
    styles = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines[: plots.NAMED]}
    assert len(styles) == plots.NAMED
    with pytest.raises(OptionError, match="no curve"):
        plots.precision_recall([])


def test_detection_draws_the_same_way(tmp_path):
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 1], category_ids=[1, 1], boxes=[[0, 0, 9, 9], [20, 0, 9, 9]], box_format="xywh"
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1, 1], category_ids=[1, 1], boxes=[[0, 0, 9, 9], [50, 0, 9, 9]], scores=[0.9, 0.8], box_format="xywh"
    )
    figure = detmap.evaluate(truth, found).plot(tmp_path / "pr.svg")
    assert figure.axes[0].lines[0].get_ydata().tolist() == [1 / (1 + np.spacing(1)), 0.5]
    assert (tmp_path / "pr.svg").exists()
    (text,) = figure.legends[0].get_texts()
    assert text.get_text() == "1\n  AP 0.5050"


def test_the_mean_is_in_front_and_the_largest_classes_are_named():
    """20 classes: class k has k + 1 objects, of which the first is found."""
    classes = np.repeat(np.arange(20), np.arange(20) + 1)
    boxes = np.column_stack([20.0 * np.arange(classes.size), np.zeros(classes.size)])
    boxes = np.column_stack([boxes, boxes + 9])
    truth = detmap.GroundTruth.from_arrays(
        image_ids=np.zeros(classes.size, int), category_ids=classes, boxes=boxes, images=[0], categories=np.arange(20)
    )
    first = np.searchsorted(classes, np.arange(20))
    found = detmap.Detections.from_arrays(
        image_ids=np.zeros(20, int), category_ids=np.arange(20), boxes=boxes[first], scores=np.full(20, 0.5)
    )
    result = detmap.evaluate(truth, found)
    figure = result.plot()
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[0] == f"mean of 20 classes\n  AP {result['AP50']:.4f}"
    ap = result.average_precision[0, :, 0, -1]
    assert texts[1:-1] == [f"{k}\n  AP {ap[k]:.4f}" for k in range(19, 5, -1)]
    assert texts[-1] == "6 more"
    widest = max(figure.axes[0].lines, key=lambda line: line.get_linewidth())
    assert widest.get_zorder() == max(line.get_zorder() for line in figure.axes[0].lines)
    # class k reaches a recall of 1 / (k + 1) with a precision of 1
    reached = [np.mean([r <= 1 / (k + 1) for k in range(20)]) for r in np.linspace(0, 1, 201)]
    assert np.allclose(widest.get_ydata()[1:], reached)


def test_cmc_and_curve_of_several_results_are_one_picture():
    from detmap.retrieval.scoring import plot_rankings

    results = {str(k): evaluate_distances(np.arange(6.0).reshape(1, 6), [1], [0, 1, k, 2, 3, 4]) for k in (1, 2)}
    figure = plot_rankings(results)
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]
    for axes in figure.axes:
        assert [line.get_color() for line in axes.lines] == [line.get_color() for line in figure.axes[0].lines]
    assert [text.get_text().split("\n")[0] for text in figure.legends[0].get_texts()] == ["1", "2"]
    assert figure.axes[0].lines[0].get_ydata().tolist() == results["1"].cmc.tolist()


def test_cmc_of_a_picture_is_that_which_is_evaluated():
    rng = np.random.default_rng(0)
    run = {f"q{k}": {f"d{d}": float(rng.integers(5)) for d in range(8)} for k in range(9)}
    judged = {f"q{k}": {f"d{d}": 1 for d in range(8) if rng.random() < 0.1 * k} | {"d9": 0} for k in range(9)}
    for rules in ({}, {"empty": "zero"}, {"empty": "one"}, {"empty": "skip"}):
        asked = evaluate_run(judged, run, ["map", "CMC@1"], **rules)
        plain = evaluate_run(judged, run, "map", **rules)
        assert plain.cmc is None
        assert np.allclose(plain._matched(), asked.cmc, atol=1e-15)


def test_the_package_loads_its_entries_when_asked():
    program = "import detmap, sys; assert 'numba' not in sys.modules; detmap.retrieval.evaluate_rankings([[1]])"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)


def test_text_stays_one_line_for_hostile_ids():
    names = ["\x1b[31mq\nx"]
    result = evaluate_run({names[0]: {"d": 1}}, {names[0]: {"d": 1.0}}, "map")
    assert "\x1b" not in results.to_text(result.rows())
    assert results.to_text(result.rows()).count("\n") == 1


def test_the_names_of_faiss_are_known_and_missing_arrays_are_named(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    distances, indices = np.array([[0.1, 0.4], [0.2, 3e38]]), np.array([[1, 0], [2, -1]])
    ids = {"query_ids": [5, 6], "gallery_ids": [5, 5, 6]}
    np.savez("ours.npz", distances=distances, indices=indices, **ids)
    np.savez("faiss.npz", D=distances, I=indices, **ids)
    np.savez("I.npz", D=distances, I=indices)
    shown = [run(capsys, "reid", name, "--format", "json", "--quiet") for name in ("ours.npz", "faiss.npz")]
    assert shown[0] == shown[1]
    assert shown[0][0] == 0
    code, out, err = run(capsys, "reid", "I.npz")
    assert (code, out) == (2, "")
    assert err == "detmap: error: I.npz: has no array query_ids or gallery_ids; there is D, I\n"
    np.savez("many.npz", **{f"array_{i}": ids["query_ids"] for i in range(40)})
    assert run(capsys, "reid", "many.npz")[2].endswith("array_11 and 28 more\n")
