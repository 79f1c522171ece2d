"""Run-length masks and the overlap of boxes, on detmap's kernels: the functions of ``pycocotools.mask``.

Odd input gives the same results as in pycocotools. If pycocotools would not terminate or would read out of bounds, a
`detmap.InputError` (a ValueError) is raised.
"""

from __future__ import annotations

from typing import Any

from detmap.pycocotools import _mask

__author__ = "The detmap developers"

iou = _mask.iou
merge = _mask.merge
frPyObjects = _mask.frPyObjects


def encode(bimask: Any) -> Any:
    """Return the run-length masks of an array of 0 and 1.

    Parameters
    ----------
    bimask : ndarray of uint8 or bool, shape (h, w) or (h, w, n)
        The array, in Fortran order. A run ends where the value changes, also from 1 to 2.

    Returns
    -------
    dict, or list of dict
        The size, and the compressed counts as bytes; a list of dicts for an array of three dimensions.
    """
    if len(bimask.shape) == 3:
        return _mask.encode(bimask)
    if len(bimask.shape) == 2:
        height, width = bimask.shape
        return _mask.encode(bimask.reshape((height, width, 1), order="F"))[0]
    return None


def decode(rleObjs: Any) -> Any:
    """Return a run-length mask as a uint8 array of 0 and 1, shape (h, w); a list of masks gives shape (h, w, n).

    Raises
    ------
    ValueError
        If runs are longer than the image. If runs are shorter, the rest is background.
    """
    return _mask.decode(rleObjs) if type(rleObjs) is list else _mask.decode([rleObjs])[:, :, 0]


def area(rleObjs: Any) -> Any:
    """Return the area of one run-length mask, or the areas of a list of masks; uint32."""
    return _mask.area(rleObjs) if type(rleObjs) is list else _mask.area([rleObjs])[0]


def toBbox(rleObjs: Any) -> Any:
    """Return the box x, y, width, height around one run-length mask; for a list of masks the boxes, shape (n, 4)."""
    return _mask.toBbox(rleObjs) if type(rleObjs) is list else _mask.toBbox([rleObjs])[0]
