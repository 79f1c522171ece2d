"""A drop-in for ranx's evaluation: the same classes, functions, arguments and names of metrics, from detmap's own measures.

``from detmap import ranx``. Values equal those of ranx 0.3.21 to about 1e-15, and the order of results is the same.
Where ranx pairs queries by position, or leaves the order of equal scores to its sort, a `UserWarning` says what detmap
does. Fusion, plots and downloads are not included.
"""

from __future__ import annotations

from detmap.ranx.comparison import Report, compare
from detmap.ranx.evaluation import evaluate
from detmap.ranx.rows import Qrels, Run

__all__ = ["Qrels", "Report", "Run", "compare", "evaluate"]
