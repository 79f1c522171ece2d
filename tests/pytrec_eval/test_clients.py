"""MTEB's, BEIR's and ir_measures' own evaluation, with pytrec_eval and under the patch: the same numbers."""

from __future__ import annotations

import copy
import random
import struct
import warnings

import pytest
from legs import examples

from detmap import patch_pytrec_eval, pytrec_eval

CUTOFFS = [1, 3, 5, 10, 20, 100, 1000]


def drawn(seed):
    rng = random.Random(seed)
    documents = [
        *(f"doc{i}" for i in range(rng.choice([20, 200]))),
        "q1",
        "q2",
    ]  # BEIR drops what is named as its query
    qrels, run = {}, {}
    for query in [f"q{i}" for i in range(rng.randint(1, 12))]:
        judged = {document: rng.choice([0, 1, 2]) for document in rng.sample(documents, rng.randint(1, 15))}
        qrels[query] = {**judged, next(iter(judged)): 1}
        ranked = rng.sample(documents, rng.randint(1, len(documents)))
        run[query] = {document: round(rng.random(), rng.choice([1, 6])) for document in ranked}
    return qrels, run


def mteb(qrels, run):
    metrics = pytest.importorskip("mteb._evaluators.retrieval_metrics", exc_type=ImportError)
    return metrics.calculate_retrieval_scores(copy.deepcopy(run), qrels, CUTOFFS)


def beir(qrels, run):
    evaluation = pytest.importorskip("beir.retrieval.evaluation", exc_type=ImportError)
    return evaluation.EvaluateRetrieval.evaluate(qrels, copy.deepcopy(run), CUTOFFS)


def ir_measures(qrels, run):
    package = pytest.importorskip("ir_measures")
    names = (
        "AP AP@10 AP(rel=2) nDCG nDCG@10 P@5 P(rel=2)@5 P(judged_only=True)@10 R@100 RR Rprec Bpref NumRet NumQ NumRel"
    )
    names += " SetAP SetF SetP SetR Success@5 IPrec@0.5 infAP nDCG(judged_only=True)@10"
    measures = [package.parse_measure(name) for name in names.split()]
    run = dict(list(run.items())[len(run) > 2 :])  # without a judged query
    of_all = package.evaluator(measures, qrels)
    return [
        package.calc_aggregate(measures, qrels, run),
        sorted(map(tuple, package.pytrec_eval.iter_calc(measures, qrels, run)), key=str),
        package.pytrec_eval.calc_aggregate(measures, qrels, {}),
        of_all.calc_aggregate(run),
        of_all.calc_aggregate(run),
    ]


def bits(value):
    if isinstance(value, dict):
        return [(str(key), bits(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return [bits(inner) for inner in value]
    if isinstance(value, float):
        return type(value).__name__, "nan" if value != value else struct.pack("<d", value)
    return type(value).__name__, str(value)


@pytest.mark.compiled
@pytest.mark.parametrize("client", [mteb, beir, ir_measures])
def test_clients_find_the_same_numbers(client, monkeypatch):
    pytest.importorskip("pytrec_eval")
    calls = []
    evaluate = pytrec_eval.RelevanceEvaluator.evaluate
    monkeypatch.setattr(
        pytrec_eval.RelevanceEvaluator, "evaluate", lambda self, run: calls.append(run) or evaluate(self, run)
    )
    for seed in range(examples(100)):
        qrels, run = drawn(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # their own
            wanted = client(qrels, run)
            assert not calls
            with patch_pytrec_eval():
                found = client(qrels, run)
        assert bits(found) == bits(wanted)
        assert calls
        calls.clear()
