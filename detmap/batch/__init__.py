"""Score many prediction files, or the shards of one model's detections, against one ground truth on any executor."""

from __future__ import annotations

from detmap.batch.clusters import cluster
from detmap.batch.comparing import compare_files
from detmap.batch.finding import Entry, find
from detmap.batch.leaderboard import Leaderboard, metric_names
from detmap.batch.limited_process import Limits
from detmap.batch.panoptic import PanopticFiles
from detmap.batch.scoring import FileResult, score
from detmap.batch.shards import evaluate_shards
from detmap.batch.splits import Splits

__all__ = [
    "Entry",
    "FileResult",
    "Leaderboard",
    "Limits",
    "PanopticFiles",
    "Splits",
    "cluster",
    "compare_files",
    "evaluate_shards",
    "find",
    "metric_names",
    "score",
]
