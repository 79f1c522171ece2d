"""Overlap of boxes on detmap's kernels; run-length masks by the real pycocotools, loaded when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from detmap.errors import MissingDependencyError
from detmap.kernels import readonly
from detmap.kernels.assignment import box_ious


def _real() -> Any:
    try:
        real = import_module("pycocotools.mask")
    except ImportError:
        real = None
    if real is None or real.__name__ == __name__:  # this module itself, where it stands in for an absent pycocotools
        raise MissingDependencyError("pycocotools", "masks", "work on masks")
    return real


def _boxes(objects: Any) -> Any:
    """Return boxes as an (n, 4) array, None for run-length masks, what is empty as it is."""
    if len(objects) == 0:
        return objects
    if type(objects) is np.ndarray:
        if objects.ndim == 1:
            objects = objects.reshape((objects[0], 1))
        if objects.ndim != 2 or objects.shape[1] != 4:
            raise Exception("an array must be of boxes, shape (n, 4)")
        return objects.astype(np.float64)
    if type(objects) is not list:
        raise Exception("expected a list or an array of boxes, or a list of run-length masks")
    if all(len(item) == 4 and type(item) in (list, np.ndarray) for item in objects):
        return np.array(objects, dtype=np.float64)
    if all(type(item) is dict for item in objects):
        return None
    raise Exception("expected boxes of four numbers each, or run-length masks")


def iou(dt: Any, gt: Any, pyiscrowd: Any) -> Any:
    """Return the overlap of every detection with every ground truth.

    Parameters
    ----------
    dt, gt : list or ndarray
        Boxes x, y, width, height of shape (d, 4) and (g, 4), or run-length masks.
    pyiscrowd : sequence of int, shape (g,)
        Where 1 the overlap is taken over the detection's area.

    Returns
    -------
    ndarray of float64, shape (d, g), or an empty list
        The list where there are no detections or no ground truth.
    """
    crowd = np.array(pyiscrowd, dtype=np.uint8)
    if crowd.ndim != 1:
        raise ValueError(f"iscrowd has {crowd.ndim} dimensions where 1 was expected")
    found, truth = _boxes(dt), _boxes(gt)
    if found is None or truth is None:
        return _real().iou(dt, gt, pyiscrowd)
    if len(found) == 0 or len(truth) == 0:
        return []
    if crowd.size != len(truth):
        raise AssertionError("iscrowd must have the length of gt")
    out = np.empty((len(found), len(truth)))
    box_ious(readonly(found, np.float64), readonly(truth, np.float64), readonly(crowd, np.bool_), out)
    return np.asfortranarray(out)


def merge(rleObjs: Any, intersect: Any = 0) -> Any:
    """Return the union, or the intersection, of run-length masks."""
    return _real().merge(rleObjs, intersect)


def frPyObjects(pyobj: Any, h: Any, w: Any) -> Any:
    """Return run-length masks of polygons, boxes or uncompressed run lengths."""
    return _real().frPyObjects(pyobj, h, w)


def encode(bimask: Any) -> Any:
    """Return the run-length masks of an array of 0 and 1, shape (h, w) or (h, w, n)."""
    return _real().encode(bimask)


def decode(rleObjs: Any) -> Any:
    """Return the array of 0 and 1 of one run-length mask, or of a list of them."""
    return _real().decode(rleObjs)


def area(rleObjs: Any) -> Any:
    """Return the area of one run-length mask, or of each of a list."""
    return _real().area(rleObjs)


def toBbox(rleObjs: Any) -> Any:
    """Return the box around one run-length mask, or around each of a list."""
    return _real().toBbox(rleObjs)
