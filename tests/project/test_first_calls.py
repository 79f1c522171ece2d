"""What a new user types at the prompt: each call gives the number of the documented one, or one line that names the call."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import assert_same_result

import detmap
from detmap import retrieval
from detmap.cli import main

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
G, B = (str(FIXTURES / "coco" / name) for name in ("ground_truth.json", "detections.json"))
#: Ground truth with masks, and detections with masks alone.
P, S = (str(FIXTURES / "people" / name) for name in ("ground_truth.json", "masks.json"))
DRAWS = {"replicates": 200, "permutations": 19}


def parsed(path):
    return json.loads(Path(path).read_text())


@pytest.fixture(scope="module")
def g():
    return detmap.read_coco(G)


@pytest.fixture(scope="module")
def d(g):
    return detmap.read_coco_results(B, g)


@pytest.fixture(scope="module")
def r(g, d):
    return detmap.evaluate(g, d)


@pytest.fixture(scope="module")
def people():
    """The result of masks, read for them."""
    truth = detmap.read_coco(P, iou_type="segm")
    return detmap.evaluate(truth, detmap.read_coco_results(S, truth, iou_type="segm"))


@pytest.fixture(scope="module")
def b2(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "b2.json"
    path.write_text(json.dumps(parsed(B)[::2]))
    return path


def refused(call, *words):
    """The call ends in one line, which holds all of these words."""
    with pytest.raises((detmap.DetmapError, AttributeError)) as caught:
        call()
    said = str(caught.value)
    assert "\n" not in said
    for word in words:
        assert word in said, said


# ------------------------------------------------------------------------------------------------- the list of first calls


@pytest.mark.parametrize(
    "make", [str, Path, parsed, lambda path: detmap.read(path)], ids=["text", "path", "json", "table"]
)
def test_evaluate_diagnose_explain_and_check(make, r, g, d):
    assert_same_result(detmap.evaluate(make(G), make(B)), r)
    assert detmap.diagnose(make(G), make(B)).ap == detmap.diagnose(g, d).ap == r["AP50"]
    made = detmap.explain(make(G), make(B), "coco", "voc2012")
    assert (made.source_value, made.target_value) == (r["AP"], detmap.evaluate(g, d, "voc2012")["mAP"])
    assert detmap.check(make(G), make(B)).codes == detmap.check(detmap.read(G), d).codes


def test_masks(people):
    assert_same_result(detmap.evaluate(P, S, iou_type="segm"), people)
    assert people.protocol.iou_type == "segm"
    truth = detmap.read_coco(P)
    boxes = detmap.evaluate(truth, detmap.read_coco_results(S, truth))
    assert boxes.protocol.iou_type == "bbox"
    assert boxes["AP"] != people["AP"]
    assert_same_result(detmap.evaluate(P, S), boxes)


def test_boxes_scored_as_masks(g, d):
    refused(
        lambda: detmap.evaluate(g, d, iou_type="segm"),
        "no shapes of the kind 'segm'",
        "read the file with iou_type='segm'",
    )
    truth = detmap.read_coco(P, iou_type="segm")
    assert detmap.evaluate(truth, detmap.read_coco_results(S, truth, iou_type="segm"), iou_type="segm")["AP"] > 0


def test_read(g, d):
    assert list(detmap.read(G)[:50]) == list(g[:50])
    assert list(detmap.read(B)[:50]) == list(d[:50])


def test_a_result(r, tmp_path):
    assert "AP_small   0.2596  precision" in str(r)
    assert (r["mAP"], r["AP@0.5"], r.map50, r.ap) == (r["AP"], r["AP50"], r["AP50"], r["AP"])
    refused(lambda: r["foo"], "there are: AP, AP50, AP75")
    assert [row["metric"] for row in r.summary()] == list(r) == list(r.to_dict()["metrics"]) == list(dict(r))
    assert r.per_category[0]["category"] == "person" == r.to_frame().category[0]
    assert json.loads(r.to_json())["metrics"]["AP"] == r["AP"]
    for suffix, text in {"json": r.to_json(), "md": r.to_markdown(), "tex": r.to_latex()}.items():
        r.save(tmp_path / f"x.{suffix}")
        assert (tmp_path / f"x.{suffix}").read_text().rstrip("\n") == text.rstrip("\n")


def test_plot(r):
    pytest.importorskip("matplotlib")
    assert r.plot().axes


@pytest.mark.slow
def test_report(g, d, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert detmap.report(g, d, bootstrap=0) == Path("report.html")
    assert "in memory (detections.json)" in Path("report.html").read_text()
    made = detmap.report(G, B, "other.html", bootstrap=200)
    assert main(["report", G, B, "--out", "command.html", "--bootstrap", "200", "--quiet"]) == 0

    def page(path):
        return [line for line in Path(path).read_text().splitlines() if "UTC with detmap" not in line]

    assert page(made) == page("command.html")


def test_explain_without_protocols(g, d):
    refused(
        lambda: detmap.explain(g, d), "explain(ground_truth, detections, 'coco', 'ultralytics')", "voc2007, voc2012"
    )
    assert detmap.explain(g, d, "coco", "ultralytics").shares


def test_compare(b2, r):
    other = detmap.evaluate(G, b2)
    wanted = repr(detmap.compare({"detections": r, "b2": other}, **DRAWS).to_dict())
    assert repr(detmap.compare(G, [B, b2], **DRAWS).to_dict()) == wanted
    assert (
        repr(detmap.compare(parsed(G), {"detections": parsed(B), "b2": detmap.read(b2)}, **DRAWS).to_dict()) == wanted
    )


def test_models_are_named_alike_whatever_was_loaded_before(b2):
    """Suffixes of files are left out of names, which takes that the formats are known."""
    code = (
        f"import detmap; print(*detmap.compare({G!r}, [{B!r}, {str(b2)!r}], replicates=200, permutations=9).bootstraps)"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert made.stdout == "detections b2\n"


def test_bootstrap(g, d, r):
    made = detmap.evaluate(g, d, bootstrap=200)
    drawn = detmap.statistics.bootstrap(r, 200)
    assert made.intervals["AP"] == tuple(drawn.interval()[drawn.columns["AP"]])
    assert_same_result(made, r)


def test_arrays_with_labels():
    boxes, ids = [[0, 0, 10, 10], [5, 5, 20, 20]], [1, 2]
    truth = detmap.GroundTruth.from_arrays(boxes=boxes, category_ids=ids, image_ids=ids)
    found = [
        detmap.Detections.from_arrays(boxes=boxes, scores=[0.9, 0.8], image_ids=ids, **{name: ids})
        for name in ("labels", "category_ids")
    ]
    assert_same_result(*(detmap.evaluate(truth, one) for one in found))


def test_tables_at_the_prompt(g, d):
    assert (len(g), len(d)) == (444, 2482)
    assert g[0]["category"] == "cat"
    assert "<table>" in g._repr_html_()
    assert not {"import_module", "system", "TYPE_CHECKING"} & set(dir(detmap))


def test_what_faiss_returns(tmp_path, capsys):
    distances, indices = np.array([[0.1, 0.4], [0.2, 0.9]]), np.array([[1, 0], [2, 0]])
    ids = {"query_ids": [5, 6], "gallery_ids": [5, 5, 6]}
    made = retrieval.evaluate_neighbors((distances, indices), **ids)
    assert dict(made) == dict(retrieval.evaluate_neighbors(indices, distances=distances, **ids))
    np.savez(tmp_path / "I.npz", D=distances, I=indices)
    assert main(["reid", str(tmp_path / "I.npz")]) == 2
    assert "has no array query_ids or gallery_ids; there is D, I" in capsys.readouterr().err
    np.savez(tmp_path / "I.npz", D=distances, I=indices, **ids)
    assert main(["reid", str(tmp_path / "I.npz"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == dict(made)


# --------------------------------------------------------------------------------- what other libraries' users type besides


def test_the_kind_of_shape_as_cocoeval_takes_it(r):
    """``COCOeval(gt, dt, "bbox")``."""
    refused(lambda: detmap.evaluate(G, B, "bbox"), "'bbox' is a kind of shape, not a protocol: iou_type='bbox'")
    assert_same_result(detmap.evaluate(G, B, iou_type="bbox"), r)


@pytest.mark.parametrize(
    ("theirs", "ours", "value"),
    [
        ("maxDets", "max_dets", [1, 10]),
        ("iouThrs", "iou_thresholds", [0.5, 0.75]),
        ("useCats", "use_categories", False),
        ("areaRng", "area_ranges", {"all": (0, 1e10)}),
        ("catIds", "category_ids", [1]),
        ("imgIds", "image_ids", [65464]),
        ("max_detection_thresholds", "max_dets", [1, 10]),
        ("iou_threshold", "iou_thresholds", 0.5),
        ("bootstap", "bootstrap", 200),
    ],
)
def test_parameters_of_pycocotools_and_torchmetrics(theirs, ours, value, g, d):
    refused(lambda: detmap.evaluate(g, d, **{theirs: value}), f"did you mean {ours!r}?")
    assert len(detmap.evaluate(g, d, **{ours: value})) > 0


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("summarize", "print(result)"),
        ("stats", "list(result.values())"),
        ("to_pandas", "result.to_frame()"),
        ("per_class", "result.per_category"),
        ("eval", "result.precision, result.recall"),
    ],
)
def test_attributes_of_other_results(name, call, r):
    refused(lambda: getattr(r, name), f"there is {call}")
    eval(call.removeprefix("print"), {"result": r})


def test_the_ap_of_a_class_by_its_name(r):
    refused(lambda: r["bicycle"], "the AP of this class is result.per_category[1]['AP']")
    assert r.per_category[1]["category"] == "bicycle"


def test_names_of_other_packages(g):
    for name in ("COCO", "COCOeval"):
        call = f"from detmap.pycocotools.{name.lower()} import {name}"
        refused(lambda name=name: getattr(detmap, name), call)
        exec(call)
    refused(lambda: detmap.MeanAveragePrecision, "detmap.Evaluator")
    refused(lambda: detmap.read_yolo, "detmap.read(path) reads every format")
    assert len(detmap.read(G)) == len(g)


def test_torchmetrics_loop():
    box = [[0.0, 0.0, 10.0, 10.0]]
    metric = detmap.Evaluator(iou_type="bbox")
    metric.update([{"boxes": box, "scores": [0.9], "labels": [1]}], [{"boxes": box, "labels": [1]}])
    made = metric.compute()
    assert (made["map"], made["map_50"], made["mar_100"]) == (made["AP"], made["AP50"], made["AR_100"])
    assert made["map_50"] > 0.999


def test_objects_of_pycocotools(r):
    from detmap.pycocotools.coco import COCO

    truth = COCO(G)
    results = truth.loadRes(B)
    refused(lambda: detmap.evaluate(truth, results), "coco.dataset, and of results coco.dataset['annotations']")
    assert_same_result(detmap.evaluate(truth.dataset, results.dataset["annotations"]), r)


def test_a_data_frame(d, g, r):
    pytest.importorskip("pandas")
    frame = d.to_frame()
    refused(lambda: detmap.evaluate(g, frame), "detmap.Detections.from_frame(frame)")
    assert_same_result(detmap.evaluate(g, detmap.Detections.from_frame(frame)), r)


def test_an_array_as_loadres_takes_it(g):
    rows = np.array([[65464, 10.0, 10.0, 20.0, 20.0, 0.9, 17]])
    refused(lambda: detmap.evaluate(g, rows), "not ndarray", "detmap.Detections.from_arrays(...)")
    found = detmap.Detections.from_arrays(
        image_ids=rows[:, 0].astype(int), labels=rows[:, 6].astype(int), boxes=rows[:, 1:5], scores=rows[:, 5]
    )
    assert detmap.evaluate(g, found).tally.scores.tolist() == [0.9]


def test_swapped_arguments(g, d, r):
    refused(lambda: detmap.evaluate(d, g), "the arguments are swapped", "ground truth first, then the detections")
    refused(lambda: detmap.evaluate(B, G), "are the arguments swapped? The ground truth comes first")
    refused(lambda: detmap.evaluate(parsed(B), parsed(G)), "the arguments are swapped")


def test_scikit_learn(r):
    metrics = pytest.importorskip("sklearn.metrics")
    truth, scores = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    assert detmap.average_precision_score(truth, scores) == metrics.average_precision_score(truth, scores)
    assert retrieval.average_precision_score(truth, scores) == metrics.average_precision_score(truth, scores)


def test_what_is_given_twice_or_would_be_ignored(b2, r):
    refused(lambda: detmap.evaluate(G, [B, b2]), "several models are given: detmap.compare(ground_truth, [detections")
    refused(lambda: detmap.evaluate(G, B, level=0.9), "they need bootstrap=N")
    refused(lambda: detmap.evaluate(G, B, labels=17), "is not a sequence of ids; for one write [17]")
    refused(lambda: detmap.evaluate(G, B, columns="id=x"), "an option of reading, detmap.read(path, columns=...)")
    refused(lambda: detmap.read(G, image_sizes=5), "a path or '640x480', not int")
    models = {"a": r, "b": r}
    refused(lambda: detmap.compare(models, 200, 0, seed=7), "seed is given twice")
    refused(lambda: detmap.compare(models, 200, replicates=300), "replicates is given twice")
    refused(lambda: detmap.compare(models, protocol="voc2007"), "the models are scored already")
    assert len(detmap.read(parsed(G))) == len(detmap.read(G))
    assert len(detmap.read(parsed(B))) == len(detmap.read(B))


def test_printing_what_is_made(b2, g, d):
    compared = detmap.compare(G, [B, b2], **DRAWS)
    assert str(compared).startswith("<Comparison by AP (bbox): detections 0.4181, b2 0.")
    assert "group" in str(compared)
    assert all(line in str(compared) for line in compared.sentences())
    checked = detmap.check(g, d)
    assert str(checked) == checked.to_text()
    assert repr(checked).startswith("<Report on 444 objects, 2,482 detections")
    explained = detmap.explain(g, d, "coco", "voc2012")
    assert str(explained).splitlines()[1:] == explained.sentences()
