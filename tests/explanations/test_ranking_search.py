"""Which convention gives a number of rankings, and which orders of systems survive other conventions."""

from __future__ import annotations

import argparse
import json
import math

import numpy as np
import pytest
from test_explain import run
from test_explain_rankings import sample

import detmap
from detmap.cli import ranking_files
from detmap.explanations import Variant, find_ranking_value, rankings_survive
from detmap.explanations.ranking_shares import parse_convention
from detmap.retrieval import CONVENTIONS, evaluate_codes, evaluate_distances, evaluate_run

QRELS, RUN = sample(3, queries=20)


def evaluate(convention, scores=RUN):
    return evaluate_run(QRELS, scores, ["mAP"], convention)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rankings")
    rng = np.random.default_rng(1)
    lines = [f"{q} 0 {d} {grade}\n" for q, row in QRELS.items() for d, grade in row.items()]
    (folder / "qrels").write_text("".join(lines))
    for name, noise in (("one", 0.0), ("other", 0.4)):
        lines = [
            f"{q} Q0 {d} 1 {score + noise * rng.normal():.1f} {name}\n"
            for q, row in RUN.items()
            for d, score in row.items()
        ]
        (folder / f"{name}.run").write_text("".join(lines))
        arrays = {"query_ids": np.arange(12) % 5, "gallery_ids": np.arange(40) % 5}
        near = arrays["query_ids"][:, None] == arrays["gallery_ids"]
        np.savez(
            folder / f"{name}.npz", distances=np.round(rng.random((12, 40)) + 1 - near * (0.6 - noise), 1), **arrays
        )
        codes = {"query_codes": rng.integers(0, 2, (12, 16)), "gallery_codes": rng.integers(0, 2, (40, 16))}
        labels = {"query_labels": arrays["query_ids"], "gallery_labels": arrays["gallery_ids"]}
        np.savez(folder / f"{name}_codes.npz", **codes, **labels)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "oxford",
        "trec+empty=one",
        *(
            pytest.param(one, marks=pytest.mark.long)
            for one in ("trec", "torchmetrics+ties=reversed", "kaggle+ties=collapsed")
        ),
    ],
)
def test_a_planted_convention_is_found(text):
    value = evaluate(parse_convention(text))["mAP"]
    made = find_ranking_value(evaluate, f"{value:.6f}", run=True, most=5)
    assert made.rules == "conventions"
    assert any(math.isclose(one.value, value, abs_tol=1e-12) for one in made.candidates)
    assert len(made.candidates[0].changes) <= text.count("+")
    assert json.loads(json.dumps(made.to_dict()))["candidates"]


@pytest.mark.slow
def test_what_is_found_gives_the_number():
    """Every candidate's convention gives its value, and all that is named has the value of an evaluation of its own."""
    made = find_ranking_value(evaluate, "0.4", run=True)
    assert made.candidates
    for one in made.candidates:
        assert evaluate(one.protocol)["mAP"] == one.value
        assert made.quoted["mAP"][0] <= one.value <= made.quoted["mAP"][1]
    assert made.named == {name: {"mAP": evaluate(name)["mAP"]} for name, one in CONVENTIONS.items() if not one.together}


def test_decisions_about_lines_are_not_tried_on_arrays():
    rng = np.random.default_rng(0)
    given = rng.random((5, 20)), np.arange(5) % 3, np.arange(20) % 4

    def score(convention):
        return evaluate_distances(*given, metrics=["mAP"], convention=convention)

    made = find_ranking_value(score, "0.99")
    assert not made.candidates
    assert {"missing", "order", "single"}.isdisjoint({name.split()[0] for name in made.idle})
    assert "is nearest with" in made.sentences()[0]


def test_a_metric_that_is_not_there():
    with pytest.raises(detmap.OptionError, match="nothing"):
        find_ranking_value(lambda one: evaluate_run(QRELS, RUN, ["nothing"], one), "0.5", "nothing", run=True)
    with pytest.raises(detmap.OptionError, match="most must be a positive integer, not 0"):
        find_ranking_value(evaluate, "0.5", run=True, most=0)


def test_an_order_that_a_convention_turns_round():
    """One run finds more by scores of 0 or less, which one convention drops."""
    qrels = {f"q{q}": {"a": 1, "b": 1} for q in range(4)}
    runs = {
        "careful": {q: {"a": 0.9, "x": 0.8, "y": 0.7, "b": 0.6} for q in qrels},
        "negative": {q: {"a": 0.9, "b": -0.1, "x": -0.2} for q in qrels},
    }
    systems = {
        name: (lambda convention, scores=scores: evaluate_run(qrels, scores, ["mAP"], convention))
        for name, scores in runs.items()
    }
    made = rankings_survive(systems, "trec", run=True, replicates=200)
    (claim,) = made.claims
    assert (claim.first, claim.second, claim.survives) == ("negative", "careful", False)
    assert claim.smallest is not None
    assert claim.smallest.name == "positive_scores yes"
    assert claim.draws == 1.0
    assert "draws of queries" in made.sentences()[0]
    assert json.loads(json.dumps(made.to_dict()))["protocol"]["ties"] == "docid"
    variant = Variant("caps", "none", dict.fromkeys(systems, systems["careful"]))
    again = rankings_survive(systems, "trec", run=True, replicates=200, variants=[variant])
    assert any(one.name == "none" and not one.above("negative", "careful") for one in again.situations)
    with pytest.raises(detmap.OptionError, match="needs two systems or more"):
        rankings_survive({"one": evaluate}, "trec", run=True)


def test_every_situation_is_an_evaluation():
    other = {
        q: {d: round(score + 0.1 * (i % 3), 1) for i, (d, score) in enumerate(row.items())} for q, row in RUN.items()
    }
    systems = {"one": evaluate, "other": lambda convention: evaluate(convention, other)}
    made = rankings_survive(systems, "trec", run=True, replicates=200)
    for one in made.situations:
        if one.kind == "conventions":
            assert one.lowest == {name: system(one.name)["mAP"] for name, system in systems.items()}
        elif one.changes == 1:
            changed = parse_convention("trec+" + one.name.replace(" ", "="))
            assert one.lowest == {name: system(changed)["mAP"] for name, system in systems.items()}


def shown(capsys, *words):
    code, out, err = run(capsys, *words, "--format", "json", "--quiet")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.slow
def test_the_commands(capsys, files):
    qrels, one, other = files / "qrels", files / "one.run", files / "other.run"
    explained = shown(capsys, "explain", "--trec", qrels, one, "--from", "oxford")
    assert explained["target"]["convention"] == "trec"
    value = explained["source"]["value"]
    made = shown(capsys, "explain", "--trec", qrels, one, "--value", f"{value:.6f}", "--most", "3")
    assert made["named"]["oxford"] == {"mAP": value}
    made = shown(capsys, "compare", "--trec", qrels, one, other, "--under", "all", "--bootstrap", "200")
    assert set(made["models"]) == {"one", "other"}
    assert {"conventions", "caps"} <= {row["under"] for row in made["claims"][0]["where"]}
    for kind, suffix in (("--reid", ""), ("--hashing", "_codes")):
        first, second = (files / f"{name}{suffix}.npz" for name in ("one", "other"))
        explained = shown(capsys, "explain", kind, first, "--from", "oxford")
        value = explained["target"]["value"]
        assert "mAP" in shown(capsys, "explain", kind, first, "--value", f"{value:.4f}")["quoted"]
        arrays = np.load(first)
        if kind == "--reid":
            given = arrays["distances"], arrays["query_ids"], arrays["gallery_ids"]
            assert value == evaluate_distances(*given, metrics=["mAP"], convention="reid")["mAP"]
        else:
            given = (arrays[name] for name in ("query_codes", "gallery_codes", "query_labels", "gallery_labels"))
            assert value == evaluate_codes(*given, metrics=["mAP"], convention="hits_topk")["mAP"]
        survived = shown(capsys, "compare", kind, first, second, "--under", "all", "--bootstrap", "200")
        assert len(survived["models"]) == 2


def test_other_depths_and_levels_are_those_that_were_not_asked_for(monkeypatch):
    monkeypatch.setattr(ranking_files, "_runs", lambda options, qrels, runs, level, depth: (level, depth))
    for level, depth, expected in (
        (None, None, [(None, 10), (None, 100), (None, 1000), (2, None), (3, None)]),
        (1, 10, [(2, 10), (3, 10)]),
        (2, 100, [(2, 10), (1, 100), (3, 100)]),
    ):
        options = argparse.Namespace(relevance_level=level, depth=depth)
        made = ranking_files.variants_of("trec", options, ["qrels", "run"])
        assert [one.systems for one in made] == expected
        assert not ranking_files.variants_of("reid", options, ["one.npz"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("explain", "--trec", "qrels", "--value", "0.5"), "detmap explain --trec needs GT and DETECTIONS"),
        (("explain", "--trec", "--reid", "qrels", "--value", "0.5"), "give one of --trec and --reid"),
        (("explain", "--trec", "qrels", "one.run", "--value", "x"), "the value must be a number"),
        (("explain", "--reid", "one.npz", "--from", "reid", "--iou-type", "bbox"), "rankings have no shapes"),
        (("compare", "--trec", "qrels", "one.run", "other.run"), "detmap compare --trec needs --under all"),
        (("compare", "--trec", "qrels", "one.run", "--under", "all"), "needs two systems or more"),
        (("compare", "--trec", "qrels", "one.run", "one.run", "--under", "all"), "one.run is given twice"),
        (("explain", "--reid", "one.npz", "--from", "reid", "--threads", "2"), "does not go with --threads"),
        (("explain", "--trec", "qrels", "one.run", "--from", "trec", "--class-map", "x"), "go with --class-map"),
        (("explain", "--trec", "qrels", "one.run", "--value", "0.5", "--orders", "9"), "--orders goes with --from"),
        (("explain", "--trec", "qrels", "one.run", "--from", "trec", "--most", "9"), "--most goes with --value"),
        (("compare", "qrels", "one.run", "--convention", "trec"), "--convention goes with --trec, --reid or --hashing"),
    ],
)
def test_what_is_wrong(capsys, files, monkeypatch, words, says):
    monkeypatch.chdir(files)
    code, _, err = run(capsys, *words)
    assert (code, says in err) == (2, True), err


DETECTIONS_ONLY = [
    ("--max-dets", "5"),
    ("--class-map", "x"),
    ("--protocol", "voc2007"),
    ("--min-score", "0.5"),
    ("--gt-format", "coco"),
    ("--image-set", "x"),
    ("--unknown-images", "ignore"),
    ("--threads", "2"),
    ("--permutations", "99"),
    ("--correction", "bh"),
    ("--interval", "bca"),
    ("--card", "x"),
]


@pytest.mark.parametrize("option", DETECTIONS_ONLY, ids=lambda option: option[0])
@pytest.mark.parametrize("kind", ["--trec", "--reid", "--hashing"])
def test_options_of_detections_are_not_ignored(capsys, files, monkeypatch, kind, option):
    monkeypatch.chdir(files)
    given = ("qrels", "one.run", "other.run") if kind == "--trec" else ("one.npz", "other.npz")
    code, _, err = run(capsys, "compare", kind, *given, "--under", "all", *option)
    assert (code, f"detmap compare {kind} does not go with {option[0]}" in err) == (2, True), err


@pytest.mark.parametrize("asked", [("--under", "all"), ("--why",)], ids=lambda asked: asked[0])
@pytest.mark.parametrize("option", DETECTIONS_ONLY[-4:], ids=lambda option: option[0])
def test_options_of_tests_are_not_ignored_either(capsys, asked, option):
    code, _, err = run(capsys, "compare", "gt.json", "one.json", "other.json", *asked, *option)
    assert (code, f"{option[0]} is of the tests" in err) == (2, True), err


def test_grades_between_0_and_1_count_as_for_the_command_trec(capsys, tmp_path):
    """By default every grade above 0 is relevant, and a level may lie between two integers."""
    (tmp_path / "qrels.json").write_text(json.dumps({"q": {"a": 0.5, "b": 2, "c": 0}}))
    (tmp_path / "run.json").write_text(json.dumps({"q": {"a": 0.9, "c": 0.8, "b": 0.7}}))
    paths, values = (tmp_path / "qrels.json", tmp_path / "run.json"), set()
    for level in ((), ("0.25",), ("0.75",)):
        scored = shown(capsys, "trec", *paths, "--metrics", "mAP", *(("--level", *level) if level else ()))
        asked = ("--relevance-level", *level) if level else ()
        made = shown(capsys, "explain", "--trec", *paths, "--from", "oxford", *asked)
        assert made["target"]["value"] == scored["metrics"]["mAP"]
        values.add(made["target"]["value"])
    assert len(values) == 2
