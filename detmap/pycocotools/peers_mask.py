"""`detmap.pycocotools.mask` with hotcoco's aliases. `encode` also takes arrays that are not in Fortran order."""

from typing import Any

import numpy as np

from detmap.pycocotools import mask
from detmap.pycocotools.mask import area, decode, frPyObjects, iou, merge, toBbox

__all__ = ["area", "decode", "encode", "frPyObjects", "fr_py_objects", "iou", "merge", "toBbox", "to_bbox"]

to_bbox, fr_py_objects = toBbox, frPyObjects


def encode(bimask: Any) -> Any:
    """Return the run-length masks of an array of 0 and 1, in any memory order; see `detmap.pycocotools.mask.encode`."""
    return mask.encode(np.asfortranarray(bimask) if isinstance(bimask, np.ndarray) else bimask)
