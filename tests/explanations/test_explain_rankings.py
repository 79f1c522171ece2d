"""Why two conventions give different numbers for the same rankings."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from test_explain import run

import detmap
from detmap.explanations import explain_rankings, explain_run
from detmap.explanations.ranking_shares import parse_convention
from detmap.retrieval import CONVENTIONS, evaluate_codes, evaluate_distances, evaluate_run


def sample(seed=0, queries=12):
    """Judgements and a run with ties, scores below 0, queries without relevant items, and one that the run lacks."""
    rng = np.random.default_rng(seed)
    qrels = {f"q{q}": {f"d{d}": int(q > 1 and rng.random() < 0.3) for d in range(20)} for q in range(queries)}
    scores = {
        f"q{q}": {f"d{d}": round(float(rng.random()), 1) - 0.2 for d in rng.permutation(40)[:20].tolist()}
        for q in range(queries - 1)
    }
    return qrels, scores


SAMPLE = sample()


@pytest.mark.parametrize("target", ["trec", "voc07", "trapezoid_hits"])
@pytest.mark.parametrize("source", [name for name, one in CONVENTIONS.items() if not one.together])
def test_between_two_conventions(source, target):
    """The ends are what `evaluate_run` says, and shares and chain sum to their difference."""
    made = explain_run(*SAMPLE, source, target)
    for name, value in ((source, made.source_value), (target, made.target_value)):
        assert value == evaluate_run(*SAMPLE, ["map"], name)["map"]
    gap = Fraction(made.target_value) - Fraction(made.source_value)
    assert sum((one.exact for one in made.shares), Fraction()) == gap
    assert math.isclose(made.source_value + sum(step.change for step in made.chain), made.target_value, abs_tol=1e-12)
    assert made.source_band[0] <= made.source_value <= made.source_band[1]
    assert json.loads(json.dumps(made.to_dict()))["sentences"] == made.sentences()


def test_a_convention_that_ranks_all_queries_together_scores_no_runs():
    with pytest.raises(detmap.OptionError, match="gap ranks the predictions of all queries together"):
        explain_run(*SAMPLE, "trec", "gap")


def test_one_decision_gets_all_of_it():
    made = explain_run(*SAMPLE, "trec", "trec+missing=zero")
    (share,) = made.shares
    assert share.decision == "missing"
    assert share.exact == Fraction(made.target_value) - Fraction(made.source_value) < 0
    assert share.sentence == f"missing: {share.value:+.4f} for zero in place of skip."


def test_the_queries_that_moved():
    made = explain_run(*SAMPLE, "trec", "trec+normalizer=hits")
    (step,) = made.chain
    before, after = (
        evaluate_run(*SAMPLE, ["map"], one).per_query["map"]
        for one in ("trec", parse_convention("trec+normalizer=hits"))
    )
    assert step.changed == np.count_nonzero(before != after)
    assert step.classes[0][1] == max((after - before).tolist(), key=abs)


def test_what_has_no_effect_is_said():
    made = explain_run(*SAMPLE, "trec10", "trec")
    assert "No difference here: recall_cutoffs." in made.sentences()
    made = explain_run(*SAMPLE, "trec", "trec")
    assert (made.shares, made.chain, made.evaluations) == ([], [], 1)


def test_other_metrics_and_levels():
    made = explain_run(*SAMPLE, "trec", "detmap", "nDCG@10", depth=7)
    assert made.source_value == evaluate_run(*SAMPLE, ["nDCG@10"], depth=7)["nDCG@10"]
    assert made.source_band == (made.source_value, made.source_value)
    low, high = explain_run(*SAMPLE, "trec", "detmap").source_band
    assert low < high


def test_many_decisions_are_sampled():
    made = explain_run(*SAMPLE, "ranx", "beir+normalizer=hits+interpolation=trapezoid+positive_scores=yes", orders=8)
    assert len(made.shares) > 7
    assert made.error > 0
    assert sum((one.exact for one in made.shares), Fraction()) == Fraction(made.target_value) - Fraction(
        made.source_value
    )
    with pytest.raises(detmap.OptionError, match="orders must be"):
        explain_run(*SAMPLE, "ranx", "beir", orders=1)


def test_distances_and_codes():
    """Galleries and hash codes by a function; decisions about the lines of a run do not count there."""
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 5, 30)
    distances = rng.integers(0, 9, (10, 30)).astype(float)
    made = explain_rankings(
        lambda convention: evaluate_distances(distances, ids[:10], ids, metrics=["mAP"], convention=convention),
        "oxford",
        "kaggle",
    )
    assert (
        made.source_value == evaluate_distances(distances, ids[:10], ids, metrics=["mAP"], convention="oxford")["mAP"]
    )
    assert {one.decision for one in made.shares} == {"interpolation", "normalizer"}
    codes = rng.integers(0, 2, (30, 16)).astype(np.uint8)

    def hashing(convention):
        return evaluate_codes(codes[:10], codes, ids[:10], ids, 5, metrics=["mAP@5"], convention=convention)

    made = explain_rankings(hashing, "hits_topk", "detmap", "mAP@5")
    assert made.shares[0].decision == "normalizer"
    assert made.shares[0].value < 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("koko", "unknown convention 'koko'"),
        ("trec+ties", "'ties' is no decision=value"),
        ("trec+single=1", "single must be yes or no"),
        ("trec+digits=few", "digits must be an integer or none"),
        ("trec+ties=odd", "ties must be one of"),
    ],
)
def test_conventions_that_cannot_be(text, says):
    with pytest.raises(detmap.OptionError, match=says):
        parse_convention(text)


def test_values_are_said_as_they_are():
    """A number of digits is no yes."""
    (share,) = explain_run(*SAMPLE, "trec", "trec+digits=1").shares
    assert (share.before, share.after) == ("none", "1")
    (share,) = explain_run(*SAMPLE, "trec", "trec+positive_scores=yes").shares
    assert (share.before, share.after) == ("no", "yes")


def test_conventions_with_changes():
    made = parse_convention("trec+digits=3+single=no+depth=none+ties=index")
    assert (made.digits, made.single, made.depth, made.ties) == (3, False, None, "index")
    assert parse_convention("trec") is CONVENTIONS["trec"]


@pytest.fixture
def files(tmp_path):
    qrels, scores = SAMPLE
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, row in qrels.items() for d, g in row.items()))
    (tmp_path / "a.run").write_text(
        "".join(f"{q} Q0 {d} 1 {s} a\n" for q, row in scores.items() for d, s in row.items())
    )
    return [tmp_path / "qrels.txt", tmp_path / "a.run"]


def test_the_command(capsys, files, tmp_path):
    words = ["explain", "--trec", *files, "--from", "torchmetrics", "--quiet"]
    code, out, _ = run(capsys, *words, "--out", tmp_path / "e.json")
    assert code == 0
    made = explain_run(*files, "torchmetrics", "trec")
    assert made.remarks()
    assert all(sentence in out for sentence in made.remarks())
    assert "queries moved most" in out
    assert json.loads((tmp_path / "e.json").read_text())["shares"] == made.to_dict()["shares"]
    assert json.loads(run(capsys, *words, "--metric", "ndcg@5", "--format", "json")[1])["metric"] == "ndcg@5"


def test_the_command_says_what_is_wrong(capsys, files, tmp_path):
    code, _, err = run(capsys, "explain", "--trec", *files, "--value", "0.3", "--iou-type", "bbox")
    assert (code, "--trec does not go with --iou-type" in err) == (2, True)
    code, _, err = run(capsys, "explain", "--trec", *files, "--from", "trec", "--metric", "quality")
    assert (code, "unknown metric 'quality'" in err) == (2, True)
    (tmp_path / "a.run").write_text("q1 Q0 d1\n")
    code, _, err = run(capsys, "explain", "--trec", *files, "--from", "trec")
    assert (code, "a.run" in err, len(err.splitlines())) == (2, True, 1)
