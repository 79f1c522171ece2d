"""A drop-in for ranx's evaluation: ranx's classes, functions, arguments and metric names, computed by detmap's metrics.

Use ``from detmap import ranx``. Values equal those of ranx 0.3.21 to about 1e-15, and the order of results is the same.
A `UserWarning` says what detmap does if ranx would pair queries by position, or if ranx's sort would decide the order
of equal scores. Fusion, plots and downloads are not included.
"""

from __future__ import annotations

from detmap.ranx.comparison import Report, compare
from detmap.ranx.evaluation import evaluate
from detmap.ranx.rows import Qrels, Run

__all__ = ["Qrels", "Report", "Run", "compare", "evaluate"]
