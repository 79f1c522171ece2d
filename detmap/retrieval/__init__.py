"""Evaluation of rankings: the public functions."""

from __future__ import annotations

from detmap.retrieval.abstention import abstention_area, confidences
from detmap.retrieval.codes import evaluate_codes
from detmap.retrieval.conventions import CONVENTIONS, Convention
from detmap.retrieval.evaluator import Evaluator
from detmap.retrieval.features import evaluate_features
from detmap.retrieval.galleries import evaluate_distances, evaluate_landmarks, multi_query
from detmap.retrieval.metrics import METRICS
from detmap.retrieval.neighbors import evaluate_neighbors
from detmap.retrieval.overlap import neighbor_recall, rank_biased_overlap
from detmap.retrieval.ranked import Metric
from detmap.retrieval.rankings import evaluate_rankings
from detmap.retrieval.runs import evaluate_run
from detmap.retrieval.samples import average_precision_score, global_average_precision
from detmap.retrieval.scoring import RankingResult
from detmap.retrieval.variants import p_mrr, robustness

__all__ = [
    "CONVENTIONS", "METRICS", "Convention", "Evaluator", "Metric", "RankingResult", "abstention_area",
    "average_precision_score", "confidences", "evaluate_codes", "evaluate_distances", "evaluate_features",
    "evaluate_landmarks", "evaluate_neighbors", "evaluate_rankings", "evaluate_run", "global_average_precision",
    "multi_query", "neighbor_recall", "p_mrr", "rank_biased_overlap", "robustness"
]  # fmt: skip
