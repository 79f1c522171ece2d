"""Rankings to numbers: the public entries of retrieval evaluation."""

from __future__ import annotations

from detmap.retrieval.conventions import CONVENTIONS, Convention
from detmap.retrieval.galleries import evaluate_distances, evaluate_features, evaluate_landmarks, multi_query
from detmap.retrieval.metrics import METRICS, Metric
from detmap.retrieval.runs import evaluate_run
from detmap.retrieval.scoring import RankingResult

__all__ = [
    "CONVENTIONS",
    "METRICS",
    "Convention",
    "Metric",
    "RankingResult",
    "evaluate_distances",
    "evaluate_features",
    "evaluate_landmarks",
    "evaluate_run",
    "multi_query",
]
