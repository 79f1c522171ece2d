"""Instance masks as a column of runs: conversions from and to run-length codes, polygons and bitmaps; sizes, overlaps,
boundaries. `Masks` holds validated masks, on top of `detmap.run_lengths`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import columns
from detmap.errors import InputError, OptionError
from detmap.kernels import Frozen, boundaries, outlines, readonly
from detmap.kernels import masks as kernels
from detmap.run_lengths import (
    WORD,
    freeze,
    joined,
    lengths_of_runs,
    over,
    runs_of_bitmaps,
    runs_of_text,
    strings_of_runs,
    written,
)
from detmap.run_lengths import Runs as Runs
from detmap.run_lengths import measure as measure
from detmap.run_lengths import runs_of_polygons as runs_of_polygons

__all__ = ["Masks", "iou"]

# ------------------------------------------------------------------------------------------------------- reading users' data


def _sizes(values: Any, count: int, source: str) -> NDArray[np.int64]:
    """Return heights and widths, shape (n, 2), given as one pair for all masks or as a pair for each mask."""
    if len(values) == 2 and not any(hasattr(value, "__len__") for value in values):
        values = [values] * count
    try:
        sizes = np.array(values)
        good = sizes.shape == (count, 2) and sizes.dtype.kind in "iu"
    except (ValueError, OverflowError):
        good = False
    if good or not count:
        sizes = np.array(values, np.int64).reshape(count, 2) if count else np.empty((0, 2), np.int64)
        positive = ((sizes > 0) & (sizes <= WORD)).all(axis=1)
        fits = positive & (np.where(positive, sizes[:, 0], 1) <= WORD // np.where(positive, sizes[:, 1], 1))
        if fits.all():
            return sizes
        record = int(np.flatnonzero(~fits)[0])
    else:
        record = next((i for i, value in enumerate(values) if not _is_size(value)), -1)
    problem = "size must be two positive integers, height and width, of less than 2**32 pixels"
    if record < 0:
        raise InputError(f"{len(values)} sizes for {count} masks", source=source, field="size")
    raise InputError(problem, source=source, record=record, field="size", value=values[record])


def _is_size(value: Any) -> bool:
    try:
        return len(value) == 2 and all(isinstance(side, int | np.integer) and 0 < side <= WORD for side in value)
    except TypeError:
        return False


def _lengths(counts: Any, record: int, source: str) -> NDArray[np.int64]:
    """Return uncompressed run lengths."""
    place = {"source": source, "record": record, "field": "counts"}
    try:
        lengths = np.array(counts)
    except (ValueError, OverflowError):
        lengths = np.array([""])
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise InputError("counts must be a string, or a list of integers", value=counts, **place)  # type: ignore[arg-type]
    if ((lengths < 0) | (lengths > WORD)).any():
        value = int(lengths[(lengths < 0) | (lengths > WORD)][0])
        raise InputError("a run is negative or too long", value=value, **place)  # type: ignore[arg-type]
    return lengths.astype(np.int64)


def _strings(counts: list[Any]) -> tuple[bytes, NDArray[np.int64]]:
    """Concatenate strings (bytes or str) with a NUL after each string; also return the start of each string."""
    texts = [item if type(item) is bytes else item.encode("utf-8", "replace") for item in counts]
    starts = np.cumsum([0, *(len(text) + 1 for text in texts)])
    return b"\0".join([*texts, b""]), starts


def _runs_of_strings(counts: list[Any], rows: list[int], sizes: Any, source: str, threads: int | None) -> Runs:
    text, starts = _strings(counts)
    characters = np.frombuffer(text, np.uint8)
    wrong = np.flatnonzero((characters - np.uint8(48)) > 63)  # characters below 48 wrap around
    if wrong.size != len(counts) or (wrong != starts[1:] - 1).any():
        bad = wrong[: len(counts)][wrong[: len(counts)] != starts[1 : wrong.size + 1] - 1]
        at = int(bad[0]) if bad.size else int(wrong[len(counts)])
        record = int(np.searchsorted(starts, at, "right")) - 1
        problem = f"counts has a character outside '0' to 'o', at position {at - int(starts[record])}"
        raise InputError(problem, source=source, record=rows[record], field="counts", value=counts[record])
    runs, bad_record = runs_of_text(text, sizes, len(counts), starts, threads)
    if bad_record >= 0:
        value, record = counts[bad_record], rows[bad_record]
        problem, remedy = "counts ends within a number", "was the string cut off?"
        raise InputError(problem, source=source, record=record, field="counts", value=value, remedy=remedy)
    return runs


def _check_filled(runs: Runs, source: str, threads: int | None) -> None:
    def task(begin: int, end: int) -> int:
        return kernels.first_unfilled(runs.ends, runs.spans, begin, end)

    bad = [record for record in over(task, len(runs.spans), runs.ends.nbytes, threads) if record >= 0]
    if not bad:
        return
    first, stop, height, width = runs.spans[bad[0]].tolist()
    total = int(lengths_of_runs(runs, first, stop).sum())
    problem = f"the runs add up to {total} pixels, the image has {height} x {width} = {height * width}"
    remedy = "counts and size must be of the same image"
    raise InputError(problem, source=source, record=bad[0], field="counts", remedy=remedy)


def _without_empty(runs: Runs, row: int) -> NDArray[np.int64]:
    """Return the run lengths of a mask without empty runs, except the first run. The runs must cover the image."""
    first, stop, height, width = runs.spans[row].tolist()
    ends = runs.ends[first:stop].astype(np.int64)
    # pixels keep their value at a position where an even number of runs ends
    turns, times = np.unique(ends[:-1], return_counts=True)
    turns = turns[(times % 2 == 1) & (turns < height * width)]
    return np.diff(np.concatenate([turns, [height * width]]), prepend=0)


def _outline(outline: Any, record: int, source: str) -> NDArray[np.float64]:
    """Return the vertices of a polygon, shape (k, 2)."""
    place = {"source": source, "record": record, "field": "segmentation"}
    try:
        points = np.asarray(columns.array(outline))
        good = points.dtype.kind in "iuf" and (points.ndim == 1 or (points.ndim == 2 and points.shape[1] == 2))
    except (TypeError, ValueError, OverflowError, RuntimeError):
        good = False
    if not good:
        raise InputError("a polygon must be numbers x, y, x, y and so on", value=outline, **place)  # type: ignore[arg-type]
    if points.size < 6 or points.size % 2:
        problem = f"a polygon must have an even number of coordinates, at least 6, not {points.size}"
        raise InputError(problem, value=outline, **place)  # type: ignore[arg-type]
    return points.astype(np.float64).reshape(-1, 2)


# ---------------------------------------------------------------------------------------------------------------- the column


class Masks(Frozen):
    """Binary masks of objects, each a region of its image, stored as run lengths.

    Instances are immutable. `from_rle`, `from_polygons` and `from_bitmaps` make instances from validated input: the
    runs of every mask add up to the number of pixels of the image.

    Examples
    --------
    >>> square = Masks.from_polygons([[[1, 1, 3, 1, 3, 3, 1, 3]]], size=(4, 5))
    >>> square.areas().tolist(), square.boxes().tolist()
    ([4], [[1.0, 1.0, 2.0, 2.0]])
    >>> square.to_rle()
    [{'size': [4, 5], 'counts': '52207'}]
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._measured: tuple[Any, Any, Any] | None = None

    @classmethod
    def from_rle(cls, records: Iterable[Any], *, source: str = "masks", threads: int | None = None) -> Masks:
        """Read run-length codes in COCO's format.

        Parameters
        ----------
        records : iterable of dict
            ``size`` is height and width; ``counts`` the compressed string (str or bytes), or the list of run lengths,
            column by column, background first.
        source : str
            Name of the data for messages, such as a file.
        threads : int, optional
            Maximum number of threads; one per processor by default.

        Returns
        -------
        Masks

        Raises
        ------
        InputError
            If a record lacks a field. If a size is not two positive integers, or the image has 2**32 pixels or more. If a
            string is cut off or has an invalid character. If the runs do not add up to the number of pixels of the image.
        """
        records = list(records)
        for i, record in enumerate(records):
            for field in ("size", "counts"):
                if not isinstance(record, dict) or field not in record:
                    problem = "a mask must be an object with size and counts"
                    raise InputError(problem, source=source, record=i, field=field, value=record)
        sizes = _sizes([record["size"] for record in records], len(records), source)
        text = [i for i, record in enumerate(records) if isinstance(record["counts"], str | bytes)]
        counts = [records[i]["counts"] for i in text]
        runs = _runs_of_strings(counts, text, sizes[text], source, threads)
        if len(text) < len(records):
            there = set(text)
            listed = [i for i in range(len(records)) if i not in there]
            lengths = [_lengths(records[i]["counts"], i, source) for i in listed]
            runs = joined([(runs, text), (Runs.of_lengths(lengths, sizes[listed]), listed)], len(records))
        _check_filled(runs, source, threads)
        return cls(runs)

    @classmethod
    def from_polygons(
        cls, polygons: Iterable[Any], size: Any, *, source: str = "masks", threads: int | None = None
    ) -> Masks:
        """Draw polygons as pycocotools does, pixel for pixel.

        Parameters
        ----------
        polygons : iterable
            For every mask a list of polygons, which are united; a polygon is a list of x, y, x, y and so on, or an array
            of shape (k, 2), at least three points.
        size : (int, int), or array_like of int, shape (n, 2)
            Height and width of the image, or of the image of each mask.
        source, threads
            As in `from_rle`.

        Returns
        -------
        Masks

        Raises
        ------
        InputError
            If a mask has no polygon, if a polygon has fewer than 6 numbers or an odd number of numbers, or if a coordinate
            is NaN or so far away that pycocotools would run out of memory.
        """
        masks = [list(mask) for mask in polygons]
        sizes = _sizes(size, len(masks), source)
        outlines, owners = [], []
        for i, mask in enumerate(masks):
            if not mask:
                raise InputError("a mask without polygons", source=source, record=i, field="segmentation")
            outlines += [_outline(outline, i, source) for outline in mask]
            owners += [i] * len(mask)
        points = np.concatenate([*outlines, np.empty((0, 2))])
        runs, bad, problem = runs_of_polygons(points, [len(item) for item in outlines], sizes[owners], threads)
        if problem:
            raise InputError(problem, source=source, record=owners[bad], field="segmentation", value=masks[owners[bad]])
        if len(outlines) > len(masks):
            groups = np.cumsum([0, *(len(mask) for mask in masks)])
            runs = runs.merged(freeze(groups), False, threads)
        return cls(runs)

    @classmethod
    def from_bitmaps(cls, bitmaps: Any, *, source: str = "masks", threads: int | None = None) -> Masks:
        """Convert an array of bitmaps to masks.

        Parameters
        ----------
        bitmaps : array_like of bool or uint8, shape (n, height, width)
            An array, or a tensor on any device; non-zero values are foreground.
        source, threads
            As in `from_rle`.

        Returns
        -------
        Masks

        Raises
        ------
        InputError
            For another type or shape.
        """
        problem, remedy = (
            "bitmaps must be bool or uint8, of shape (n, height, width)",
            "compare scores with a threshold",
        )
        try:
            given = columns.array(bitmaps)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            raise InputError(problem, source=source, value=bitmaps) from None
        if type(given) is not np.ndarray and isinstance(given, np.ma.MaskedArray) and np.ma.getmaskarray(given).any():
            raise InputError("bitmaps are masked", source=source, remedy="fill in what is masked")
        if given.ndim != 3 or given.dtype not in (np.bool_, np.uint8):
            shown = f"{given.dtype} of shape {given.shape}"
            raise InputError(f"{problem}, not {shown}", source=source, remedy=remedy)
        count, height, width = given.shape
        if count == 0:
            return cls(Runs.empty(0))
        _sizes((height, width), count, source)
        return cls(runs_of_bitmaps(readonly(given, given.dtype).view(np.uint8), threads))

    def __len__(self) -> int:
        return len(self._runs.spans)

    def __repr__(self) -> str:
        return f"<Masks: {len(self)}>"

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Height and width of each mask's image, shape (n, 2)."""
        return self._runs.spans[:, 2:]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the columns: ``ends`` (uint32) and ``spans`` (int64, shape (n, 4)).

        Mask *i* has the runs ``ends[spans[i, 0]:spans[i, 1]]``. Pixels are counted column by column. An element of
        ``ends`` is the index of the first pixel after a run; the first run is background. ``spans[i, 2:]`` are height
        and width.
        """
        return {"ends": self._runs.ends, "spans": self._runs.spans}

    def take(self, rows: ArrayLike) -> Masks:
        """Return the masks of these rows (indices or a boolean mask). The runs are shared with this column, not copied."""
        return Masks(Runs(self._runs.ends, freeze(self._runs.spans[np.asarray(rows)])))

    def _measures(self) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.bool_]]:
        if self._measured is None:
            self._measured = measure(self._runs, None)
        return self._measured

    def areas(self) -> NDArray[np.int64]:
        """Return the number of pixels of each mask, shape (n,)."""
        return self._measures()[0].astype(np.int64)

    def boxes(self) -> NDArray[np.float64]:
        """Return the box x, y, width, height around each mask, shape (n, 4); zeros for empty masks."""
        return np.where(self._measures()[0][:, None] > 0, self._measures()[1], 0.0)

    def bounds(self) -> NDArray[np.float64]:
        """Return the corners x1, y1, x2, y2 of the box around each mask, shape (n, 4)."""
        boxes = self.boxes()
        boxes[:, 2:] += boxes[:, :2]
        return boxes

    def to_rle(self) -> list[dict[str, Any]]:
        """Return the masks in the format of COCO's results: ``size`` and compressed ``counts``, a str."""
        strings = strings_of_runs(self._runs)
        return [
            {"size": size, "counts": text.decode()} for size, text in zip(self.sizes.tolist(), strings, strict=True)
        ]

    def to_bitmaps(self) -> NDArray[np.bool_]:
        """Return the masks as an array of bool, shape (n, height, width).

        Raises
        ------
        InputError
            For masks of different sizes.
        """
        sizes = self.sizes
        other = np.flatnonzero((sizes != sizes[:1]).any(axis=1))
        if other.size:
            row = int(other[0])
            problem = f"masks of several sizes make no array; the first is of size {sizes[0].tolist()}"
            raise InputError(problem, source="masks", record=row, field="size", value=sizes[row].tolist())
        height, width = sizes[0].tolist() if len(self) else (0, 0)
        out = np.zeros((len(self), width * height), np.uint8)

        def task(begin: int, end: int) -> None:
            kernels.draw_runs(self._runs.ends, self._runs.spans, begin, end, out)

        over(task, len(self), out.nbytes, None)
        return np.ascontiguousarray(out.view(np.bool_).reshape(len(self), width, height).transpose(0, 2, 1))

    def to_polygons(self) -> list[list[list[int]]]:
        """Return the outlines of each mask along the edges of its pixels: polygons x, y, x, y and so on, clockwise.

        Every region of a mask that is connected by pixels' sides is one polygon; regions that touch only at corners are
        separate polygons. COCO's polygons cannot have holes, so the outline of a hole is joined to the outline around it
        by a vertical line that is traversed in both directions. `from_polygons` and pycocotools therefore reproduce
        every mask exactly, including holes. In a program that moves vertices, the line may become visible.

        Returns
        -------
        list
            For each mask the list of its polygons, empty for an empty mask (which `from_polygons` refuses).

        Examples
        --------
        >>> Masks.from_rle([{"size": [4, 5], "counts": "52207"}]).to_polygons()
        [[[3, 1, 3, 3, 1, 3, 1, 1]]]
        """
        ends, spans = self._regular()
        polygons, out = [], np.empty((1 << 10, 2), np.int64)
        for first, stop, height, _ in spans.tolist():
            while (rows := outlines.trace(ends, first, stop, height, out)) < 0:
                out = np.empty((-rows, 2), np.int64)
            corners = out[:rows]
            cuts = [-1, *np.flatnonzero(corners[:, 0] < 0).tolist()]
            polygons.append([corners[begin + 1 : end].ravel().tolist() for begin, end in pairwise(cuts)])
        return polygons

    def _regular(self) -> Runs:
        """Return the runs of all masks; only the first run of a mask may be empty."""
        runs, regular = self._runs, self._measures()[2]
        if regular.all():
            return runs
        rows, good = np.flatnonzero(~regular).tolist(), np.flatnonzero(regular).tolist()
        plain = Runs.of_lengths([_without_empty(runs, row) for row in rows], self.sizes[rows])
        return joined([(Runs(runs.ends, runs.spans[good]), good), (plain, rows)], len(self))

    def merge(self, intersect: bool = False) -> Masks:
        """Return the union, or intersection, of all masks as a column with one mask.

        Raises
        ------
        InputError
            If there are no masks, or masks of different sizes.
        """
        sizes = self.sizes
        if not len(self):
            raise InputError("there are no masks to merge", source="masks")
        other = np.flatnonzero((sizes != sizes[0]).any(axis=1))
        if other.size:
            row = int(other[0])
            problem = f"masks of several sizes cannot be merged; the first is of size {sizes[0].tolist()}"
            raise InputError(problem, source="masks", record=row, field="size", value=sizes[row].tolist())
        return Masks(self._regular().merged(freeze(np.array([0, len(self)])), bool(intersect)))

    def boundary(self, dilation: float = 0.02, *, threads: int | None = None) -> Masks:
        """Return the boundary of each mask, as in Boundary IoU: the pixels of the mask within a distance d, in x and in
        y, of the background or of the outside of the image.

        Parameters
        ----------
        dilation : float
            The distance d as a share of the image's diagonal; d is rounded, and at least 1.
        threads : int, optional
            Maximum number of threads; one per processor by default.

        Returns
        -------
        Masks

        Raises
        ------
        OptionError
            If `dilation` is not a positive number.
        """
        if not isinstance(dilation, int | float | np.number) or not 0 < dilation < np.inf:
            raise OptionError(f"dilation must be a positive number, not {dilation!r}")
        runs, count = self._runs, len(self)
        if not count:
            return self
        heights, widths = self.sizes[:, 0], self.sizes[:, 1]
        # rounds halves to even, as Python's round
        reach = np.rint(float(dilation) * np.sqrt(heights * heights + widths * widths))
        distances = freeze(np.clip(reach, 1, np.maximum(heights, widths)).astype(np.int64))
        write = partial(boundaries.boundary_runs, runs.ends, runs.spans, distances)
        room = 2 * runs.ends.size // count + 64  # most runs are split in two
        return Masks(written(write, runs.spans.copy(), room, runs.ends.nbytes, threads))


def iou(a: Masks, b: Masks, crowd: ArrayLike | None = None, *, threads: int | None = None) -> NDArray[np.float64]:
    """Return the overlap of every mask of `a` with every mask of `b`, equal to pycocotools' to the bit.

    Parameters
    ----------
    a, b : Masks
        Masks of one size. If `crowd` is given, `a` are the detections.
    crowd : array_like of bool, shape (len(b),), optional
        Where true, the intersection is divided by the area of the mask of `a` instead of the area of the union.
    threads : int, optional
        Maximum number of threads; one per processor by default.

    Returns
    -------
    ndarray of float64, shape (len(a), len(b))

    Raises
    ------
    InputError
        If sizes differ, or `crowd` has another length than `b`.
    """
    for side, other in ((a, a), (b, a)):
        wrong = np.flatnonzero((side.sizes != other.sizes[:1]).any(axis=1)) if len(other) else np.empty(0, int)
        if wrong.size:
            row = int(wrong[0])
            problem = f"masks of different images cannot be compared; the first is of size {a.sizes[0].tolist()}"
            where, value = "a" if side is a else "b", side.sizes[row].tolist()
            raise InputError(problem, source=where, record=row, field="size", value=value)
    flags = np.zeros(len(b), np.bool_) if crowd is None else columns.flags(crowd, source="iou", field="crowd")
    if flags.shape != (len(b),):
        raise InputError(f"crowd has shape {flags.shape} where ({len(b)},) was expected", source="iou", field="crowd")
    flags = readonly(flags, np.bool_)
    both = joined([(a._runs, list(range(len(a)))), (b._runs, list(range(len(a), len(a) + len(b))))], len(a) + len(b))
    of_a, of_b = a._measures(), b._measures()
    areas = readonly(np.concatenate([of_a[0], of_b[0]]), np.uint32)
    boxes = readonly(np.concatenate([of_a[1], of_b[1]]), np.float64)
    regular = readonly(np.concatenate([of_a[2], of_b[2]]), np.bool_)
    out = np.empty((len(b), len(a)))

    def task(begin: int, end: int) -> None:
        kernels.mask_ious(both.ends, both.spans, areas, boxes, regular, flags, begin, out[begin:end])

    over(task, len(b), len(a) * both.ends.nbytes, threads)
    return np.ascontiguousarray(out.T)
