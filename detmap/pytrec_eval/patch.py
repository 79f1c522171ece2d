"""`patch_pytrec_eval`: replace pytrec_eval by the drop-in, reversibly."""

from __future__ import annotations

from detmap import pytrec_eval
from detmap.system.patching import Patch

_NAMES = {
    ("pytrec_eval", name): getattr(pytrec_eval, name)
    for name in ("RelevanceEvaluator", "compute_aggregated_measure", "parse_run", "parse_qrel")
}


def patch_pytrec_eval() -> Patch:
    """Let MTEB, BEIR, ir_measures, PyTerrier and other users of pytrec_eval compute with detmap.

    ``RelevanceEvaluator``, ``compute_aggregated_measure``, ``parse_run`` and ``parse_qrel`` are replaced in pytrec_eval
    and in loaded modules that have imported these names; existing evaluators are unchanged. If pytrec_eval is not
    installed, `detmap.pytrec_eval` is importable under the name pytrec_eval.

    Returns
    -------
    Patch
        The attribute ``replaced`` lists what was replaced. ``undo()``, or the end of a ``with`` block, restores everything.

    Examples
    --------
    >>> with patch_pytrec_eval():
    ...     from pytrec_eval import RelevanceEvaluator
    >>> RelevanceEvaluator({"q": {"a": 1}}, {"map"}).evaluate({"q": {"b": 0.9, "a": 0.5}})
    {'q': {'map': 0.5}}
    """
    return Patch(_NAMES, {"pytrec_eval": pytrec_eval})
