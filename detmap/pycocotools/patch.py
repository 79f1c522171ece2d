"""`patch_pycocotools`: replace pycocotools by the drop-in, reversibly."""

from __future__ import annotations

from detmap.pycocotools import _mask, coco, cocoeval, faster, mask
from detmap.system.patching import Patch

#: Replacements by module and name.
_NAMES = {
    ("pycocotools.coco", "COCO"): coco.COCO,
    ("pycocotools.cocoeval", "COCOeval"): cocoeval.COCOeval,
    ("pycocotools.cocoeval", "Params"): cocoeval.Params,
    ("faster_coco_eval", "COCO"): faster.COCO,
    ("faster_coco_eval", "COCOeval_faster"): faster.COCOeval_faster,
    ("faster_coco_eval.core.faster_eval_api", "COCOeval"): faster.COCOeval,
    ("faster_coco_eval.core.cocoeval", "Params"): faster.Params,
}
_STAND_INS = {
    "pycocotools": None,
    "pycocotools.coco": coco,
    "pycocotools.cocoeval": cocoeval,
    "pycocotools.mask": mask,
    "pycocotools._mask": _mask,
}


def patch_pycocotools() -> Patch:
    """Replace the classes of pycocotools and faster_coco_eval by detmap's classes, in all code that uses them.

    ``COCO``, ``COCOeval`` (``COCOeval_faster``) and ``Params`` are replaced in these packages and in loaded modules
    that have imported these classes by name; existing subclasses are unchanged. If pycocotools is not installed,
    detmap's modules are importable under the name pycocotools.

    Returns
    -------
    Patch
        The attribute ``replaced`` lists what was replaced. ``undo()``, or the end of a ``with`` block, restores everything.

    Examples
    --------
    >>> with patch_pycocotools() as patch:
    ...     from pycocotools.cocoeval import COCOeval
    >>> COCOeval.__module__
    'detmap.pycocotools.cocoeval'
    """
    return Patch(_NAMES, _STAND_INS)
