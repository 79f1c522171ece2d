"""A drop-in for pytrec_eval: the same names, arguments, results and errors, computed by detmap's metrics.

Use ``from detmap import pytrec_eval``, or `detmap.patch_pytrec_eval` for code that imports pytrec_eval itself. If
pytrec-eval-terrier 0.5.11 defines a value, it is equal to the last bit. Keys, key order and types are always equal.
"""

from __future__ import annotations

from detmap.pytrec_eval.evaluator import (
    RelevanceEvaluator,
    compute_aggregated_measure,
    supported_measures,
    supported_nicknames,
)
from detmap.pytrec_eval.lines import parse_qrel, parse_run

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

#: Version of pytrec-eval-terrier that is reproduced.
__version__ = "0.5.11"
