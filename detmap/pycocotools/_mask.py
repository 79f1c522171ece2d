"""Run-length masks and the overlap of boxes, on detmap's kernels: what ``pycocotools._mask`` holds.

`detmap.pycocotools.mask` is its public face.

What pycocotools computes from odd input is computed alike. Where it would not end, or reads memory that is not the
input's, this raises a `detmap.InputError`, which is a ValueError.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError
from detmap.kernels import masks as kernels
from detmap.kernels import readonly
from detmap.kernels.assignment import box_ious
from detmap.run_lengths import (
    Runs,
    freeze,
    lengths_of_runs,
    measure,
    runs_of_bitmaps,
    runs_of_polygons,
    runs_of_text,
    strings_of_runs,
)


def _siz(value: Any) -> int:
    """Return a height, width or count as C's size_t takes it: fractions are cut off."""
    if isinstance(value, str | bytes) or value is None:
        raise TypeError("an integer is required")
    number = int(value) if isinstance(value, float | np.floating) else operator.index(value)
    if number < 0:
        raise OverflowError(f"a size cannot be negative, as {number} is")
    if number >= 2**63:
        raise OverflowError(f"a size must be below 2**63, not {number}")
    return number


def _sizes(objects: list[Any]) -> Any:
    """Return the heights and widths of masks: a pair where all are alike, else shape (n, 2)."""
    sizes = [item["size"] for item in objects]
    if not sizes:
        return np.empty((0, 2), np.int64)
    first = sizes[0]
    if type(first) is list and sizes.count(first) == len(sizes):
        return _siz(first[0]), _siz(first[1])
    return np.array([(_siz(size[0]), _siz(size[1])) for size in sizes], np.int64)


def _bytes(counts: Any) -> bytes:
    """Return a string of run lengths up to its first NUL."""
    if type(counts) is str:
        counts = counts.encode()
    if type(counts) is not bytes:
        raise TypeError(f"counts must be bytes or str, not {type(counts).__name__}; frPyObjects takes lists of counts")
    return counts.partition(b"\0")[0]


def _listed(objects: Any) -> list[Any]:
    len(objects)  # an iterator is refused
    return list(objects)


def _text(objects: list[Any]) -> bytes:
    """Return the strings of masks, each with a NUL behind it."""
    counts = [item["counts"] for item in objects]
    kinds = set(map(type, counts))
    if kinds == {bytes}:
        text = b"\0".join(counts)
    elif kinds == {str}:
        text = "\0".join(counts).encode()
    else:
        text = b"\0".join(map(_bytes, counts))
    if text.count(b"\0") != len(counts) - 1 and counts:
        text = b"\0".join(map(_bytes, counts))
    return text + b"\0"


def _truncated(record: int) -> InputError:
    return InputError("the string ends within a number", record=record, field="counts", remedy="is it cut off?")


def _runs(objects: list[Any]) -> Runs:
    """Return the runs of masks that are given by strings."""
    text = _text(objects)
    runs, bad = runs_of_text(text, _sizes(objects), len(objects))
    if bad >= 0:
        raise _truncated(bad)
    return runs


def _records(runs: Runs) -> list[dict[str, Any]]:
    """Return masks as dicts of size and string."""
    sizes = runs.spans[:, 2:].tolist()
    return [{"size": size, "counts": counts} for size, counts in zip(sizes, strings_of_runs(runs), strict=True)]


class RLEs:
    """Masks, read: what ``_frString`` returns and ``_toString`` takes; ``n`` is their number."""

    def __init__(self, n: Any = 0, runs: Runs | None = None) -> None:
        self._runs = Runs.empty(_siz(n)) if runs is None else runs
        self.n = len(self._runs.spans)


class Masks:
    """Room for `n` bitmaps of height `h` and width `w`; ``np.array`` of it has the shape (h, w, n)."""

    def __init__(self, h: Any, w: Any, n: Any) -> None:
        self._pixels = np.zeros((_siz(h), _siz(w), _siz(n)), np.uint8, order="F")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return self._pixels.astype(dtype or np.uint8, copy=copy is not False)


def _frString(rleObjs: Any) -> RLEs:
    return RLEs(runs=_runs(_listed(rleObjs)))


def _toString(Rs: RLEs) -> list[dict[str, Any]]:
    return _records(Rs._runs)


# ------------------------------------------------------------------------------------------------------------- overlap


def _regions(objects: Any) -> Any:
    """Return boxes as an (n, 4) array, masks as the list they are, what is empty as it is."""
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
    if set(map(type, objects)) == {dict}:
        return objects
    if all(len(item) == 4 and type(item) in (list, np.ndarray) for item in objects):
        return np.array(objects, dtype=np.float64)
    raise Exception("expected boxes of four numbers each, or run-length masks")


def iou(dt: Any, gt: Any, pyiscrowd: Any) -> Any:
    """Return the overlap of every detection with every ground truth.

    Parameters
    ----------
    dt, gt : list or ndarray
        Boxes x, y, width, height of shape (d, 4) and (g, 4), or lists of run-length masks.
    pyiscrowd : sequence of int, shape (g,)
        Where 1 the overlap is taken over the detection's area.

    Returns
    -------
    ndarray of float64, shape (d, g), or an empty list
        The list where there are no detections or no ground truth. Of masks of two sizes -1, where their boxes touch.

    Raises
    ------
    InputError
        Where the runs of two masks do not add up to the same number of pixels.
    """
    crowd = np.array(pyiscrowd, dtype=np.uint8)
    if crowd.ndim != 1:
        raise ValueError(f"iscrowd has {crowd.ndim} dimensions where 1 was expected")
    found, truth = _regions(dt), _regions(gt)
    boxes = type(found) is np.ndarray, type(truth) is np.ndarray
    runs = None
    if len(found) and len(truth) and not any(boxes):
        runs = _runs(found + truth)
    else:
        for side in (found, truth):
            if type(side) is list and side:
                _runs(side)  # its errors come first
    if len(found) == 0 or len(truth) == 0:
        return []
    if boxes[0] != boxes[1]:
        raise Exception("detections and ground truth must be of one kind, boxes or run-length masks")
    if crowd.size != len(truth):
        raise AssertionError("iscrowd must have the length of gt")
    if runs is not None:
        return _mask_ious(runs, len(found), crowd)
    out = np.empty((len(found), len(truth)))
    box_ious(readonly(found, np.float64), readonly(truth, np.float64), readonly(crowd, np.bool_), out)
    return np.asfortranarray(out)


def _mask_ious(runs: Runs, detections: int, crowd: NDArray[Any]) -> NDArray[np.float64]:
    """Return the overlap of the first `detections` masks with each of the others, shape (d, g), in Fortran's order."""
    areas, boxes, regular = measure(runs)
    _check_heights(runs, areas)
    out: NDArray[np.float64] = np.empty((len(runs.spans) - detections, detections))
    kernels.mask_ious(runs.ends, runs.spans, areas, boxes, regular, freeze(crowd != 0), 0, out)
    if np.isnan(out).any():
        g, d = np.argwhere(np.isnan(out))[0].tolist()
        raise InputError(f"the runs of detection {d} and ground truth {g} do not add up to the same", field="counts")
    return np.transpose(out)


def _check_heights(runs: Runs, areas: NDArray[Any]) -> None:
    """Refuse foreground in masks of height 0, which have no columns to lie in."""
    if not runs.spans[:, 2].all() and areas[runs.spans[:, 2] == 0].any():
        raise InputError("a mask of height 0 has foreground", field="size", remedy="give the image's height and width")


# ----------------------------------------------------------------------------------------------------- masks to masks


def merge(rleObjs: Any, intersect: Any = 0) -> Any:
    """Return the union, or the intersection, of run-length masks.

    Parameters
    ----------
    rleObjs : sequence of dict
        Masks of one size. Of none, and of several sizes, the outcome has size [0, 0] and no runs.
    intersect : int
        Where not 0: what all masks share.

    Returns
    -------
    dict
        Size and compressed counts, bytes.
    """
    objects = _listed(rleObjs)
    if isinstance(intersect, str | bytes) or intersect is None:
        raise TypeError("an integer is required")
    both = int(intersect) != 0
    runs = _runs(objects)
    spans = runs.spans
    if len(spans) == 0 or (len(spans) > 1 and (spans[1:, 2:] != spans[0, 2:]).any()):
        return {"size": [0, 0], "counts": b""}
    if len(spans) > 1:
        if (spans[:, 1] == spans[:, 0]).any():
            record = int(np.flatnonzero(spans[:, 1] == spans[:, 0])[0])
            raise InputError("a mask without runs cannot be merged", record=record, field="counts")
        runs = runs.merged(freeze(np.array([0, len(spans)])), both)
        if runs.spans[0, 1] < 0:
            raise InputError("the runs of the masks do not add up to the same", field="counts")
    return _records(runs)[0]


def area(rleObjs: Any) -> NDArray[np.uint32]:
    """Return the area of each mask, shape (n,)."""
    text = np.frombuffer(_text(rleObjs), np.uint8)
    _sizes(rleObjs)
    out = np.empty(len(rleObjs), np.uint32)
    bad = kernels.areas_of_strings(text, 0, 0, len(rleObjs), out)
    if bad >= 0:
        raise _truncated(bad)
    return out


def toBbox(rleObjs: Any) -> NDArray[np.float64]:
    """Return the box x, y, width, height around each mask, shape (n, 4)."""
    runs = _runs(rleObjs)
    areas, boxes, _ = measure(runs)
    _check_heights(runs, areas)
    boxes.flags.writeable = True
    return boxes


# ------------------------------------------------------------------------------------------------------------- bitmaps


def encode(mask: Any) -> list[dict[str, Any]]:
    """Return the masks of an array of shape (h, w, n)."""
    if not isinstance(mask, np.ndarray):
        raise TypeError(f"mask must be a numpy.ndarray, not {type(mask).__name__}")
    if mask.ndim != 3:
        raise ValueError(f"mask has {mask.ndim} dimensions where 3 were expected")
    if mask.dtype not in (np.uint8, np.bool_):
        raise ValueError(f"mask must be of dtype uint8 or bool, not {mask.dtype}")
    if not mask.flags.f_contiguous:
        raise ValueError("mask is not Fortran contiguous; numpy.asfortranarray makes it so")
    height, width, count = mask.shape
    return _records(runs_of_bitmaps(mask.reshape(-1, order="F"), height, width, count))


def decode(rleObjs: Any) -> NDArray[np.uint8]:
    """Return the masks as an array of shape (h, w, n)."""
    runs = _runs(rleObjs)
    if not rleObjs:
        raise InputError("there are no masks to decode")
    count, (height, width) = len(rleObjs), runs.spans[0, 2:].tolist()
    out = np.zeros((count, height * width), np.uint8)
    if kernels.draw_runs(runs.ends, runs.spans, 0, count, out) >= 0:
        _draw_on(runs, out.reshape(-1))
    return out.reshape(-1).reshape((height, width, count), order="F")


def _draw_on(runs: Runs, out: NDArray[np.uint8]) -> None:
    """Draw masks whose runs do not add up to the image, as the original does: one behind the other, without gaps."""
    lengths, values = [], []
    for first, stop in runs.spans[:, :2].tolist():
        lengths.append(lengths_of_runs(runs, first, stop))
        values.append(np.arange(stop - first) % 2)
    steps = np.concatenate(lengths)
    if steps.sum() > out.size:
        raise ValueError("the runs of a mask are longer than its image")
    drawn = np.repeat(np.concatenate(values), steps)
    out[: drawn.size], out[drawn.size :] = drawn, 0


# ------------------------------------------------------------------------------------------------------- other objects


def frBbox(bb: Any, h: Any, w: Any) -> list[dict[str, Any]]:
    """Return run-length masks of boxes x, y, width, height; float64, shape (n, 4)."""
    if not isinstance(bb, np.ndarray):
        raise TypeError(f"boxes must be a numpy.ndarray, not {type(bb).__name__}")
    if bb.dtype != np.float64 or bb.ndim != 2:
        raise ValueError(f"boxes must be of dtype float64 and two dimensions, not {bb.dtype} and {bb.ndim}")
    height, width = _siz(h), _siz(w)
    if len(bb) and bb.shape[1] < 4:
        raise InputError(f"a box has four numbers, not {bb.shape[1]}", field="bbox")
    if bb.flags.forc:  # as they lie in memory, in whatever order
        bb = bb.ravel("K")[: 4 * len(bb)].reshape(-1, 4)
    left, top = bb[:, 0], bb[:, 1]
    right, bottom = left + bb[:, 2], top + bb[:, 3]
    corners = np.stack([left, top, left, bottom, right, bottom, right, top], axis=1).reshape(-1, 2)
    return _drawn(corners, [4] * len(bb), height, width)


def _drawn(points: NDArray[Any], sizes: list[int], height: int, width: int) -> list[dict[str, Any]]:
    runs, bad, problem = runs_of_polygons(points, sizes, (height, width))
    if problem:
        raise InputError(problem, record=bad, field="segmentation")
    return _records(runs)


def frPoly(poly: Any, h: Any, w: Any) -> list[dict[str, Any]]:
    """Return the run-length mask of each polygon, x and y in turn; an odd last number is left out."""
    height, width = _siz(h), _siz(w)
    arrays = []
    for outline in poly:
        array = np.array(outline, dtype=np.float64)
        if array.ndim != 1:
            raise ValueError(f"a polygon has {array.ndim} dimensions where 1 was expected")
        arrays.append(array[: array.size & ~1])
    points = np.concatenate([*arrays, np.empty(0)]).reshape(-1, 2)
    return _drawn(points, [array.size // 2 for array in arrays], height, width)


def frUncompressedRLE(ucRles: Any, h: Any, w: Any) -> list[dict[str, Any]]:
    """Return run-length masks, compressed, of dicts whose counts are lists; their own sizes count."""
    _siz(h), _siz(w)
    lengths, sizes = [], []
    for i in range(len(ucRles)):
        counts = np.array(ucRles[i]["counts"], dtype=np.uint32)
        if counts.ndim != 1:
            raise ValueError(f"counts has {counts.ndim} dimensions where 1 was expected")
        lengths.append(counts)
        sizes.append((_siz(ucRles[i]["size"][0]), _siz(ucRles[i]["size"][1])))
    return _records(Runs.of_lengths(lengths, sizes))


def frPyObjects(pyobj: Any, h: Any, w: Any) -> Any:
    """Return run-length masks of polygons, boxes or uncompressed run lengths; the first one says which they are.

    Parameters
    ----------
    pyobj : list, dict or ndarray
        Polygons of more than four numbers each; uncompressed masks; one of these; or an array of boxes, shape (n, 4).
    h, w : int
        Height and width of the image.

    Returns
    -------
    list of dict, or dict
        Size and compressed counts; one dict for one object.

    Raises
    ------
    InputError
        Where a coordinate is no number or too far to be drawn.
    """
    if type(pyobj) is np.ndarray:
        return frBbox(pyobj, h, w)
    if type(pyobj) is list:
        first = pyobj[0]
        if len(first) == 4:
            return frBbox(pyobj, h, w)
        if len(first) > 4:
            return frPoly(pyobj, h, w)
        if type(first) is dict and "counts" in first and "size" in first:
            return frUncompressedRLE(pyobj, h, w)
    elif type(pyobj) is dict and "counts" in pyobj and "size" in pyobj:
        return frUncompressedRLE([pyobj], h, w)[0]
    raise Exception("expected polygons, boxes or uncompressed run-length masks")
