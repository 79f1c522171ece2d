"""Measures of objects and detections, such as the area. Limits of measures define area ranges and levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.tables import GroundTruth
from detmap.detection.ranges import FLAGS, MEASURES, Condition, conditions
from detmap.errors import InputError, shorten
from detmap.kernels import matching, readonly
from detmap.shapes import Boxes

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol


@dataclass(frozen=True, eq=False)
class Measured:
    """A table with boxes to measure."""

    #: The boxes of the table's rows.
    boxes: Boxes
    #: The row and the image at each position of the arrangement, shape (n,).
    order: NDArray[np.int32]
    image: NDArray[np.int32]
    #: The number that is added to differences of corners: 1 with inclusive pixels, else 0.
    pixel: float


class Measures:
    """The measures of a protocol's ranges. Measure 0 is the area. Each range of another quantity or unit, such as
    height, has its own measure: 1 for rows in the range, else 0. `ranges` holds the limits of each range and the index
    of its measure.
    """

    def __init__(self, protocol: Protocol, sizes: NDArray[np.int64] | None, images: NDArray[Any], source: str) -> None:
        self._conditions = conditions(protocol)
        limits: list[tuple[float, float]] = []
        measure: list[int] = []
        for _, low, high, *of in (*protocol.area_ranges, *((name, 0, 0, text) for name, text in protocol.levels)):
            limits.append((1.0, 1.0) if of else (low, high))
            measure.append(1 + sum(map(bool, measure)) if of else 0)
        self.ranges = matching.Ranges(readonly(limits, np.float64), readonly(measure, np.int64))
        self._sizes: NDArray[np.float64] | None = None
        if any(one.share for own in self._conditions for one in own):
            unknown = np.ones(images.size, np.bool_) if sizes is None else (sizes <= 0).any(axis=1)
            if unknown.any():
                raise InputError(
                    f"{int(unknown.sum())} of {images.size} images have no size, the first of them "
                    f"{shorten(images[int(np.argmax(unknown))].item())}: a range in percent needs them",
                    source=source,
                    field="height",
                    remedy="give width and height of the images (--image-sizes), or ranges in pixels",
                )
            self._sizes = None if sizes is None else sizes.astype(np.float64)

    def of_objects(
        self, truth: GroundTruth, areas: NDArray[np.float64], side: Measured
    ) -> tuple[NDArray[np.float64], dict[str, int]]:
        """Return the measures of objects by position, shape (n, M), and a notice that counts the objects that lack a
        field of a level. Raises `InputError` if all objects lack a field.
        """
        out = np.empty((areas.size, 1 + len(self._conditions)))
        out[:, 0] = areas
        lacking = np.zeros(areas.size, np.bool_)
        for column, own in enumerate(self._conditions, 1):
            inside = np.ones(areas.size, np.bool_)
            for one in own:
                if one.measures and one.objects:
                    inside &= one.holds(self._sized(one, areas, side, slice(None)))
                elif not one.measures:
                    values = field_of(truth, one.of)[side.order]
                    lacking |= np.isnan(values)
                    inside &= one.holds(values)
            out[:, column] = inside
        return readonly(out, np.float64), {"missing_level_fields": int(lacking.sum())}

    def of_detections(self, areas: NDArray[np.float64], side: Measured, begin: int, end: int) -> NDArray[np.float64]:
        """Return the measures of the detections at positions ``[begin, end)``, shape (n, M)."""
        if not self._conditions:
            return areas.reshape(-1, 1)
        out = np.empty((areas.size, 1 + len(self._conditions)))
        out[:, 0] = areas
        for column, own in enumerate(self._conditions, 1):
            inside = np.ones(areas.size, np.bool_)
            for one in own:
                if one.measures and one.detections:
                    inside &= one.holds(self._sized(one, areas, side, slice(begin, end)))
            out[:, column] = inside
        return out

    def _sized(self, one: Condition, areas: NDArray[np.float64], side: Measured, rows: slice) -> NDArray[np.float64]:
        """Return the values that a condition compares: sizes in pixels, or in percent of the image's size."""
        values = areas
        if one.of != "area":
            values = np.maximum(_of_sides(one.of, lambda axis: _side(side, rows, axis)), 0.0)
        if not one.share or self._sizes is None:
            return values
        height, width = self._sizes[side.image[rows]].T
        whole = height * width if one.of == "area" else _of_sides(one.of, lambda axis: (width, height)[axis])
        return 100.0 * values / whole


def outside_of(measures: NDArray[np.float64], ranges: matching.Ranges) -> NDArray[np.bool_]:
    """Return a mask, shape (n, A), of the rows of `measures` outside of each range."""
    values = measures[:, ranges.measure]
    return np.asarray((values < ranges.limits[:, 0]) | (values > ranges.limits[:, 1]))


def _side(side: Measured, rows: slice, axis: int) -> NDArray[np.float64]:
    """Return the widths (`axis` 0) or heights (1) of boxes."""
    table, order = side.boxes.table, side.order[rows]
    if side.boxes.sizes:
        sizes: NDArray[np.float64] = table[order, 2 + axis]
        return sizes
    values: NDArray[np.float64] = table[order, 2 + axis] - table[order, axis]
    return values + side.pixel if side.pixel else values


def _of_sides(of: str, side: Callable[[int], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the widths, the heights, or the longer sides; ``side(axis)`` returns widths (0) or heights (1)."""
    if of == "length":
        return np.maximum(side(1), side(0))
    return side(("width", "height").index(of))


def field_of(truth: GroundTruth, name: str) -> NDArray[np.float64]:
    """Return a field of the objects, NaN where missing; raise `InputError` if no object has it."""
    if name in truth.fields:
        return truth.fields[name]
    if name in FLAGS:
        return np.asarray(getattr(truth, FLAGS[name]), np.float64)
    raise InputError(
        f"has no field {shorten(name)} of objects that a level reads; there are: "
        f"{', '.join([*truth.fields, 'iscrowd', 'difficult', *MEASURES])}",
        source=truth.source,
        remedy=f"read it with fields=[{name!r}], or give from_arrays fields={{{name!r}: …}}",
    )
