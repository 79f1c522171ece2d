"""Samples in flat columns beside torchmetrics' retrieval metrics; where scores are equal, between their bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("torchmetrics")
import torchmetrics.retrieval as theirs

from detmap.retrieval import Evaluator

EVERY = {"positive_scores": False}
AVERAGED = {**EVERY, "ties": "expected"}

#: Their class, its arguments, the metric, its decisions.
ROWS = [
    ("RetrievalMAP", {}, "mAP", {}),
    ("RetrievalMAP", {"top_k": 5}, "mAP@5", {}),
    ("RetrievalMRR", {}, "MRR", {}),
    ("RetrievalMRR", {"top_k": 2}, "MRR@2", {}),
    ("RetrievalPrecision", {"top_k": 5}, "P@5", {}),
    ("RetrievalPrecision", {"top_k": 90}, "P@90", {}),
    ("RetrievalRecall", {"top_k": 5}, "R@5", {}),
    ("RetrievalHitRate", {"top_k": 2}, "success@2", EVERY),
    ("RetrievalRPrecision", {}, "R-prec", EVERY),
    ("RetrievalFallOut", {"top_k": 5}, "R@5", EVERY),
    ("RetrievalNormalizedDCG", {}, "nDCG", AVERAGED),
    ("RetrievalNormalizedDCG", {"top_k": 5}, "nDCG@5", AVERAGED),
]


def batch(rng, tied, graded):
    queries = rng.integers(0, 12, 300)
    scores = rng.integers(-1, 5, 300) / 4 if tied else rng.normal(size=300)
    grades = rng.integers(0, 4 if graded else 2, 300)
    grades[queries == 3], grades[queries == 5] = 0, 1
    return torch.from_numpy(scores.astype(np.float32)), torch.from_numpy(grades), torch.from_numpy(queries)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("name", "options", "metric", "decisions"), ROWS)
def test_the_same_numbers(name, options, metric, decisions, tied):
    rng = np.random.default_rng(7)
    averaged = "ties" in decisions
    batches = [batch(rng, tied, averaged) for _ in range(3)]
    for empty, action in (("zero", "neg"), ("one", "pos"), ("skip", "skip")):
        wanted = getattr(theirs, name)(empty_target_action=action, **options)
        for each in batches:
            wanted.update(*each)
        found = []
        for ties in ("expected",) if averaged else ("worst", "best") if tied else ("index",):
            evaluator = Evaluator(metrics=[metric], **{"empty": empty, **decisions, "ties": ties})
            for scores, grades, queries in batches:
                evaluator.update(scores, 1 - grades if name == "RetrievalFallOut" else grades, queries)
            found.append(evaluator.compute()[metric])
        value = float(wanted.compute())
        assert min(found) - 1e-6 <= value <= max(found) + 1e-6
