"""Run-length masks and the overlap of boxes, on detmap's kernels: the functions of ``pycocotools._mask``.

`detmap.pycocotools.mask` is the public module. Odd input gives the same results as in pycocotools. If pycocotools would
not terminate or would read out of bounds, a `detmap.InputError` (a ValueError) is raised.
"""

from __future__ import annotations

import operator
import struct
from array import array
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError
from detmap.kernels import compressed_masks, readonly
from detmap.kernels import masks as kernels
from detmap.kernels.assignment import box_ious
from detmap.run_lengths import WORD, Runs, freeze, lengths_of_runs, runs_of_polygons, runs_of_text, strings_of_runs

#: Initial size in bytes of the buffer for strings of masks: a constant, and an addition for each mask.
_ROOM, _ROOM_EACH = 1 << 12, 1 << 10

#: Maximum size of the buffer for strings of several masks; exceeded only if one mask needs more.
_MOST_ROOM = 1 << 26


def _siz(value: Any) -> int:
    """Return a height, width or count converted to C's size_t, truncating fractions."""
    if type(value) is int and 0 <= value < 2**63:
        return value
    if isinstance(value, str | bytes) or value is None:
        raise TypeError("an integer is required")
    number = int(value) if isinstance(value, float | np.floating) else operator.index(value)
    if number < 0:
        raise OverflowError(f"a size cannot be negative, as {number} is")
    if number >= 2**63:
        raise OverflowError(f"a size must be below 2**63, not {number}")
    return number


def _sizes(objects: list[Any]) -> Any:
    """Return the heights and widths of masks: one pair if all sizes are equal, else an array of shape (n, 2)."""
    if len(objects) == 1:
        size = objects[0]["size"]
        return _siz(size[0]), _siz(size[1])
    sizes = [item["size"] for item in objects]
    if not sizes:
        return np.empty((0, 2), np.int64)
    first = sizes[0]
    if set(map(type, sizes)) == {list} and sizes.count(first) == len(sizes):
        return _siz(first[0]), _siz(first[1])
    return np.array([(_siz(size[0]), _siz(size[1])) for size in sizes], np.int64)


def _bytes(counts: Any) -> bytes:
    """Return a string of run lengths as bytes, up to the first NUL."""
    if type(counts) is str:
        counts = counts.encode()
    if type(counts) is not bytes:
        raise TypeError(f"counts must be bytes or str, not {type(counts).__name__}; frPyObjects takes lists of counts")
    return counts.partition(b"\0")[0]


def _listed(objects: Any) -> list[Any]:
    len(objects)  # raises for an iterator
    return list(objects)


def _text(objects: list[Any]) -> bytes:
    """Return the concatenated NUL-terminated strings of masks."""
    if len(objects) == 1:
        return _bytes(objects[0]["counts"]) + b"\0"
    counts = [item["counts"] for item in objects]
    kinds = set(map(type, counts))
    if kinds == {str}:
        counts = [item.encode() for item in counts]
    if (kinds != {bytes} and kinds != {str}) or [item for item in counts if 0 in item]:
        counts = list(map(_bytes, counts))
    return b"\0".join([*counts, b""])


def _truncated(record: int) -> InputError:
    return InputError("the string ends within a number", record=record, field="counts", remedy="is it cut off?")


def _runs(objects: list[Any]) -> Runs:
    """Return the runs of masks given by strings."""
    text = _text(objects)
    runs, bad = runs_of_text(text, _sizes(objects), len(objects))
    if bad >= 0:
        raise _truncated(bad)
    return runs


def _spans(objects: list[Any]) -> NDArray[np.int64]:
    """Return a table with a row per mask for kernels to fill; columns 2 and 3 hold heights and widths."""
    spans = np.empty((len(objects), 4), np.int64)
    spans[:, 2:] = _sizes(objects)
    return spans


def _records(runs: Runs) -> list[dict[str, Any]]:
    """Return masks as dicts of size and string."""
    sizes = runs.spans[:, 2:].tolist()
    return [{"size": size, "counts": counts} for size, counts in zip(sizes, strings_of_runs(runs), strict=True)]


def _written(count: int, write: Callable[[int, NDArray[np.uint8], NDArray[np.int64]], int]) -> list[bytes] | None:
    """Call the kernel `write` until it has written `count` strings, and return the strings; None if it fails."""
    strings: list[bytes] = []
    stops = np.empty(count, np.int64)
    begin, room = 0, _ROOM + _ROOM_EACH * count
    while True:
        out = np.empty(room, np.uint8)
        end = write(begin, out, stops)
        if end < 0:
            return None
        cuts = [0, *stops[begin:end].tolist()]
        text = out[: cuts[-1]].tobytes()
        strings += [text[first:stop] for first, stop in pairwise(cuts)]
        if end == count:
            return strings
        most = int(stops[end])
        begin, room = end, max(room, most, min(most * (count - end), _MOST_ROOM))


def _of_size(strings: list[bytes], height: int, width: int) -> list[dict[str, Any]]:
    """Return masks of one size as dicts of size and string."""
    return [{"size": [height, width], "counts": counts} for counts in strings]


class RLEs:
    """Decoded masks, returned by ``_frString`` and taken by ``_toString``; ``n`` is the number of masks."""

    def __init__(self, n: Any = 0, runs: Runs | None = None) -> None:
        self._runs = Runs.empty(_siz(n)) if runs is None else runs
        self.n = len(self._runs.spans)


class Masks:
    """Buffer for `n` bitmaps of height `h` and width `w`; ``np.array`` converts it to an array of shape (h, w, n)."""

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
    """Return boxes as an (n, 4) array; return lists of masks, and empty input, unchanged."""
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
        1 for crowd regions, where the overlap is the intersection divided by the detection's area.

    Returns
    -------
    ndarray of float64, shape (d, g), or an empty list
        The list is empty without detections or ground truth. The overlap of masks of different sizes is -1 if their
        boxes touch.

    Raises
    ------
    InputError
        If the runs of two masks have different sums.
    """
    crowd = np.array(pyiscrowd, dtype=np.uint8)
    if crowd.ndim != 1:
        raise ValueError(f"iscrowd has {crowd.ndim} dimensions where 1 was expected")
    found, truth = _regions(dt), _regions(gt)
    boxes = type(found) is np.ndarray, type(truth) is np.ndarray
    masks = len(found) > 0 and len(truth) > 0 and not any(boxes)
    if masks:
        text, spans = _text(found + truth), _spans(found + truth)
    else:
        for side in (found, truth):
            if type(side) is list and side:
                _runs(side)  # an invalid string is reported before any other error
    if crowd.size != len(truth) and (len(truth) == 0 or len(found) == 0 or boxes[0] == boxes[1]):
        raise AssertionError("iscrowd must have the length of gt")
    if len(found) == 0 or len(truth) == 0:
        return []
    if boxes[0] != boxes[1]:
        raise Exception("detections and ground truth must be of one kind, boxes or run-length masks")
    if masks:
        return _mask_ious(text, spans, len(found), crowd)
    out = np.empty((len(found), len(truth)))
    box_ious(readonly(found, np.float64), readonly(truth, np.float64), readonly(crowd, np.bool_), out)
    return np.asfortranarray(out)


def _mask_ious(text: bytes, spans: NDArray[Any], detections: int, crowd: NDArray[Any]) -> NDArray[np.float64]:
    """Return the overlaps of detections and objects, shape (d, g), in Fortran order. `text` holds the masks of the
    detections, then the masks of the objects.
    """
    out: NDArray[np.float64] = np.empty((len(spans) - detections, detections))
    status = compressed_masks.ious_of_strings(text, spans, freeze(crowd != 0), out)
    if status == compressed_masks.UNEQUAL:
        g, d = np.argwhere(np.isnan(out))[0].tolist()
        raise InputError(f"the runs of detection {d} and ground truth {g} do not add up to the same", field="counts")
    _check(status)
    return np.transpose(out)


def _check(status: int) -> None:
    """Raise the error for the status that a kernel of masks returned."""
    if status == compressed_masks.FLAT:
        raise InputError("a mask of height 0 has foreground", field="size", remedy="give the image's height and width")
    if status >= 0:
        raise _truncated(status)


# ----------------------------------------------------------------------------------------------------- masks to masks


def merge(rleObjs: Any, intersect: Any = 0) -> Any:
    """Return the union, or the intersection, of run-length masks.

    Parameters
    ----------
    rleObjs : sequence of dict
        Masks of one size. If there are no masks, or sizes differ, the result has size [0, 0] and no runs.
    intersect : int
        If not 0, return the intersection.

    Returns
    -------
    dict
        The size, and the compressed counts as bytes.
    """
    objects = _listed(rleObjs)
    if type(intersect) is not int and (isinstance(intersect, str | bytes) or intersect is None):
        raise TypeError("an integer is required")
    both = int(intersect) != 0
    text, sizes, count = _text(objects), _sizes(objects), len(objects)
    if count == 0 or (type(sizes) is not tuple and (sizes != sizes[0]).any()):
        _runs(objects)  # an invalid string is reported before any other error
        return {"size": [0, 0], "counts": b""}
    height, width = sizes if type(sizes) is tuple else sizes[0].tolist()
    out = np.empty(7 * len(text), np.uint8)
    used = compressed_masks.merge_strings(text, count, both, out)
    if used < 0:
        spans = _runs(objects).spans
        empty = np.flatnonzero(spans[:, 1] == spans[:, 0])
        if empty.size:
            raise InputError("a mask without runs cannot be merged", record=int(empty[0]), field="counts")
        raise InputError("the runs of the masks do not add up to the same", field="counts")
    return {"size": [height, width], "counts": out[:used].tobytes()}


def area(rleObjs: Any) -> NDArray[np.uint32]:
    """Return the area of each mask, shape (n,)."""
    text = _text(rleObjs)
    _sizes(rleObjs)
    out = np.empty(len(rleObjs), np.uint32)
    _check(compressed_masks.areas_of_strings(text, out))
    return out


def toBbox(rleObjs: Any) -> NDArray[np.float64]:
    """Return the box x, y, width, height around each mask, shape (n, 4)."""
    out = np.empty((len(rleObjs), 4))
    _check(compressed_masks.boxes_of_strings(_text(rleObjs), _spans(rleObjs), out))
    return out


# ------------------------------------------------------------------------------------------------------------- bitmaps


def encode(mask: Any) -> list[dict[str, Any]]:
    """Return the run-length masks of an array of shape (h, w, n)."""
    if not isinstance(mask, np.ndarray):
        raise TypeError(f"mask must be a numpy.ndarray, not {type(mask).__name__}")
    if mask.ndim != 3:
        raise ValueError(f"mask has {mask.ndim} dimensions where 3 were expected")
    if mask.dtype not in (np.uint8, np.bool_):
        raise ValueError(f"mask must be of dtype uint8 or bool, not {mask.dtype}")
    if not mask.flags.f_contiguous:
        raise ValueError("mask is not Fortran contiguous; numpy.asfortranarray makes it so")
    height, width, count = mask.shape
    pixels = mask.reshape(-1, order="F").view(np.uint8)
    if pixels.__array_interface__["data"][0] % 8:
        pixels = pixels.copy()
    pixels = readonly(pixels, np.uint8)
    words, size = readonly(pixels[: pixels.size & ~7].view(np.uint64), np.uint64), height * width
    strings = _written(
        count, lambda begin, out, stops: compressed_masks.strings_of_bitmaps(pixels, words, size, begin, out, stops)
    )
    return _of_size(strings or [], height, width)


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
    """Draw masks whose runs do not fill the image. As in pycocotools, all runs are written to `out` without gaps."""
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
    """Return run-length masks of float64 boxes x, y, width, height, shape (n, 4)."""
    if not isinstance(bb, np.ndarray):
        raise TypeError(f"boxes must be a numpy.ndarray, not {type(bb).__name__}")
    if bb.dtype != np.float64 or bb.ndim != 2:
        raise ValueError(f"boxes must be of dtype float64 and two dimensions, not {bb.dtype} and {bb.ndim}")
    height, width = _siz(h), _siz(w)
    if len(bb) and bb.shape[1] < 4:
        raise InputError(f"a box has four numbers, not {bb.shape[1]}", field="bbox")
    if bb.flags.forc:  # read in memory order, as in pycocotools
        bb = bb.ravel("K")[: 4 * len(bb)].reshape(-1, 4)
    left, top = bb[:, 0], bb[:, 1]
    right, bottom = left + bb[:, 2], top + bb[:, 3]
    corners = np.stack([left, top, left, bottom, right, bottom, right, top], axis=1).reshape(-1, 2)
    return _drawn(corners, np.full(len(bb), 4), height, width)


def _drawn(points: NDArray[Any], vertices: NDArray[Any], height: int, width: int) -> list[dict[str, Any]]:
    """Return masks of polygons; polygon *i* has ``vertices[i]`` consecutive rows (x, y) of `points`."""
    if max(height, width, height * width) <= WORD:
        points, ends = readonly(points, np.float64), readonly(np.cumsum(vertices), np.int64)
        strings = _written(
            len(ends),
            lambda begin, out, stops: compressed_masks.strings_of_polygons(
                points, ends, height, width, begin, out, stops
            ),
        )
        if strings is not None:
            return _of_size(strings, height, width)
    runs, bad, problem = runs_of_polygons(points, vertices, (height, width))
    if problem:
        raise InputError(problem, record=bad, field="segmentation")
    return _records(runs)


def _numbers(polygons: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return all coordinates, and the number of coordinates of each polygon; an x without a y at the end is dropped."""
    if type(polygons) is list and set(map(type, polygons)) == {list}:
        counts, flat = list(map(len, polygons)), list(chain.from_iterable(polygons))
        if flat and not [count for count in counts if count & 1] and set(map(type, flat)) <= {float, int}:
            with suppress(struct.error):  # an integer too large for a float
                return np.frombuffer(struct.pack(f"{len(flat)}d", *flat)), np.array(counts)
    arrays = []
    for polygon in polygons:
        numbers = np.array(polygon, dtype=np.float64)
        if numbers.ndim != 1:
            raise ValueError(f"a polygon has {numbers.ndim} dimensions where 1 was expected")
        arrays.append(numbers[: numbers.size & ~1])
    return np.concatenate([*arrays, np.empty(0)]), np.array([numbers.size for numbers in arrays], np.int64)


def frPoly(poly: Any, h: Any, w: Any) -> list[dict[str, Any]]:
    """Return the run-length mask of each polygon of alternating x and y; an x without y at the end is dropped."""
    height, width = _siz(h), _siz(w)
    numbers, counts = _numbers(poly)
    return _drawn(numbers.reshape(-1, 2), counts // 2, height, width)


def _lengths(counts: Any) -> NDArray[np.uint32]:
    """Return run lengths converted to C integers, truncating fractions."""
    if type(counts) is list and set(map(type, counts)) == {int}:
        return np.frombuffer(array("I", counts), np.uint32)
    lengths = np.array(counts, dtype=np.uint32)
    if lengths.ndim != 1:
        raise ValueError(f"counts has {lengths.ndim} dimensions where 1 was expected")
    return lengths


def frUncompressedRLE(ucRles: Any, h: Any, w: Any) -> list[dict[str, Any]]:
    """Compress run-length masks whose counts are lists. The sizes are those of the masks, not h and w."""
    _siz(h), _siz(w)
    lengths, sizes = [], []
    for i in range(len(ucRles)):
        lengths.append(_lengths(ucRles[i]["counts"]))
        sizes.append([_siz(ucRles[i]["size"][0]), _siz(ucRles[i]["size"][1])])
    stops = readonly(np.cumsum([one.size for one in lengths]), np.int64)
    joined = readonly(
        lengths[0] if len(lengths) == 1 else np.concatenate([*lengths, np.empty(0, np.uint32)]), np.uint32
    )
    strings = _written(
        len(sizes), lambda begin, out, into: compressed_masks.strings_of_lengths(joined, stops, begin, out, into)
    )
    return [{"size": size, "counts": counts} for size, counts in zip(sizes, strings or [], strict=True)]


def frPyObjects(pyobj: Any, h: Any, w: Any) -> Any:
    """Return run-length masks of polygons, boxes or uncompressed run lengths; the first element decides the kind.

    Parameters
    ----------
    pyobj : list, dict or ndarray
        A list of polygons (more than four numbers each), a list of uncompressed masks, one uncompressed mask, or an array
        of boxes, shape (n, 4).
    h, w : int
        Height and width of the image.

    Returns
    -------
    list of dict, or dict
        Size and compressed counts of each mask; a single dict if `pyobj` is a dict.

    Raises
    ------
    InputError
        For a coordinate that is NaN or too large.
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
