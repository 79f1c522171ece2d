"""detmap scores ranked predictions: object detections and retrieval rankings.

Names are imported lazily: ``import detmap`` imports neither numba nor an optional package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from detmap.system import fork_safety  # noqa: F401 - imported first, because another thread may fork during later imports

if TYPE_CHECKING:
    from detmap.checks import check
    from detmap.checks.report import Report
    from detmap.data.tables import Detections, GroundTruth
    from detmap.detection.evaluate import match
    from detmap.detection.evaluator import Evaluator
    from detmap.detection.matches import HIT, IGNORED, MISS, Matches, match_pairs
    from detmap.detection.protocols import PRESETS, Protocol
    from detmap.detection.result import DetectionResult
    from detmap.detection.tally import Tally
    from detmap.diagnostics import Diagnosis, diagnose
    from detmap.errors import DetmapError, InputError, MissingDependencyError, OptionError, StateError
    from detmap.evaluation import evaluate
    from detmap.explanations import explain, find_value
    from detmap.formats.coco.read import read_coco, read_coco_results
    from detmap.formats.conversion import Converted, convert
    from detmap.formats.files import read, write
    from detmap.formats.voc.read import read_voc, read_voc_results
    from detmap.hits import Curve, Hits, average_precision, precision_recall_curve
    from detmap.integrations.patches import patch_rfdetr, patch_torchmetrics
    from detmap.plugins import register
    from detmap.pycocotools.patch import patch_pycocotools
    from detmap.pytrec_eval.patch import patch_pytrec_eval
    from detmap.reports.detectors import report
    from detmap.retrieval import average_precision_score
    from detmap.statistics import compare
    from detmap.system.patching import Patch

__version__ = "0.1.0"

_HOMES = {
    "checks": ("check",),
    "checks.report": ("Report",),
    "evaluation": ("evaluate", "evaluate_parts"),
    "detection.evaluate": ("match",),
    "detection.result": ("DetectionResult",),
    "diagnostics": ("Diagnosis", "diagnose"),
    "errors": ("DetmapError", "InputError", "MissingDependencyError", "OptionError", "StateError"),
    "detection.evaluator": ("Evaluator",),
    "explanations": ("explain", "find_value"),
    "formats.coco.read": ("read_coco", "read_coco_results"),
    "formats.conversion": ("Converted", "convert"),
    "formats.files": ("read", "write"),
    "formats.voc.read": ("read_voc", "read_voc_results"),
    "hits": ("Curve", "Hits", "average_precision", "precision_recall_curve"),
    "detection.matches": ("HIT", "IGNORED", "MISS", "Matches", "match_pairs"),
    "integrations.patches": ("patch_rfdetr", "patch_torchmetrics"),
    "retrieval": ("average_precision_score",),
    "plugins": ("register",),
    "reports.detectors": ("report",),
    "detection.protocols": ("PRESETS", "Protocol", "skeleton"),
    "pycocotools.patch": ("patch_pycocotools",),
    "pytrec_eval.patch": ("patch_pytrec_eval",),
    "system.patching": ("Patch",),
    "statistics": ("compare",),
    "data.tables": ("Detections", "GroundTruth"),
    "detection.tally": ("Tally",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022 - in the order in which a reader meets them
    "evaluate",
    "evaluate_parts",
    "match",
    "match_pairs",
    "GroundTruth",
    "Detections",
    "Protocol",
    "PRESETS",
    "skeleton",
    "register",
    "Tally",
    "Matches",
    "MISS",
    "HIT",
    "IGNORED",
    "DetectionResult",
    "compare",
    "diagnose",
    "Diagnosis",
    "report",
    "explain",
    "find_value",
    "Evaluator",
    "patch_pycocotools",
    "patch_pytrec_eval",
    "patch_rfdetr",
    "patch_torchmetrics",
    "Patch",
    "read",
    "write",
    "convert",
    "Converted",
    "check",
    "Report",
    "read_coco",
    "read_coco_results",
    "read_voc",
    "read_voc_results",
    "Hits",
    "Curve",
    "average_precision",
    "precision_recall_curve",
    "average_precision_score",
    "DetmapError",
    "InputError",
    "OptionError",
    "StateError",
    "MissingDependencyError",
]


#: Submodules that ``import detmap`` makes available as attributes: ``detmap.masks.Masks``.
_PARTS = (
    "batch",
    "cards",
    "checks",
    "data",
    "detection",
    "diagnostics",
    "errors",
    "explanations",
    "formats",
    "hits",
    "integrations",
    "lvis",
    "masks",
    "panoptic",
    "plugins",
    "pycocotools",
    "pytrec_eval",
    "ranx",
    "reports",
    "retrieval",
    "shapes",
    "statistics",
)


#: Names that users of other libraries look for, mapped to their replacements in detmap.
_ELSEWHERE = {
    "COCO": "from detmap.pycocotools.coco import COCO",
    "COCOeval": "from detmap.pycocotools.cocoeval import COCOeval",
    "MeanAveragePrecision": "detmap.Evaluator",
    "load": "detmap.read(path)",
    "from_frame": "detmap.Detections.from_frame(frame)",
    "bootstrap": "detmap.evaluate(ground_truth, detections, bootstrap=1000)",
    "evaluate_run": "from detmap.retrieval import evaluate_run",
}


def _hint(name: str) -> str:
    """Return the suffix of an error message that suggests a replacement for the unknown name; "" if there is none."""
    if name.startswith(("read_", "load_")):
        return "; detmap.read(path) reads every format"
    return f"; there is {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"detmap.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'detmap' has no attribute {name!r}{_hint(name)}")
    value = getattr(import_module(f"detmap.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS, "__version__"])
