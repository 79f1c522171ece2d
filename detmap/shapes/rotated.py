"""Columns of rotated boxes, stored as quadrilaterals. They are compared by exact IoU, or by probIoU of Gaussians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.errors import InputError
from detmap.kernels import Frozen, readonly
from detmap.kernels import rotated as kernels
from detmap.shapes.boxes import FARTHEST, Boxes, over_rows
from detmap.shapes.kinds import PROBIOU, ROTATED, Drawing, Kind, Pairs
from detmap.system import parallel

if TYPE_CHECKING:
    from detmap.data.tables import Detections, GroundTruth
    from detmap.detection.protocols import Protocol

#: Number of pairs that are compared before the next check whether the evaluation was interrupted.
_PAIRS = 1 << 13

#: Name of the argument for rotated boxes in the ``from_arrays`` of tables, and in messages.
_ARGUMENT = "rotated"


@dataclass(frozen=True, eq=False)
class Rotated(Frozen):
    """The rotated boxes of a table, stored as corners; a `detmap.shapes.Column`.

    Attributes
    ----------
    quads : detmap.kernels.rotated.Quads
        Read-only corners (n, 8) as x1, y1, x2, y2, x3, y3, x4, y4 in pixels, areas (n,) in square pixels, and directions
        of the outlines (n,).
    boxes : ndarray of float64, shape (n, 4)
        The axis-aligned boxes around the rotated boxes: x1, y1, x2, y2.
    """

    quads: kernels.Quads
    boxes: NDArray[np.float64]

    @classmethod
    def from_corners(cls, corners: Any, source: str = "rotated boxes") -> Rotated:
        """Return a column of quadrilaterals.

        Parameters
        ----------
        corners : array_like of float, shape (n, 4, 2) or (n, 8)
            x and y of the corners in pixels, in the order of the outline. Start and direction of the outline do not
            matter, and it may be concave. The two parts of a self-intersecting outline count with opposite signs, as in
            DOTA's development kit.
        source : str
            Name of the source for messages.

        Raises
        ------
        InputError
            If the array has another shape, or a coordinate is infinite, NaN or beyond 1e150.
        """
        table = _table(corners, source, (8,))
        _check(table, np.ones(len(table), np.bool_), source)
        return cls._of(table)

    @classmethod
    def from_angles(
        cls, boxes: Any, *, degrees: bool = False, clockwise: bool = True, source: str = "rotated boxes"
    ) -> Rotated:
        """Return a column of rectangles.

        Parameters
        ----------
        boxes : array_like of float, shape (n, 5)
            Centre x, y, width, height in pixels, and angle. The sides lie along x and y at the angle 0.
        degrees : bool
            Whether angles are in degrees; radians by default.
        clockwise : bool
            Whether positive angles turn clockwise on the screen, from x to y with y pointing down, as in OpenCV since
            4.5.1, MMRotate and Ultralytics, but not in Detectron2.
        source : str
            Name of the source for messages.

        Raises
        ------
        InputError
            If the array has another shape, if a number is infinite, NaN or beyond 1e150, or if a width or height
            is negative.
        """
        table = _table(boxes, source, (5,))
        _check(table, np.asarray((table[:, 2:4] >= 0).all(axis=1)), source)
        x, y, width, height, angle = table.T
        cosines, sines = np.array([_direction(one, degrees) for one in angle.tolist()]).reshape(-1, 2).T
        if not clockwise:
            sines = -sines
        along = np.stack([cosines * width, sines * width], axis=1) / 2
        across = np.stack([-sines * height, cosines * height], axis=1) / 2
        centre = np.stack([x, y], axis=1)
        sides = ((-1, -1), (1, -1), (1, 1), (-1, 1))
        return cls._of(np.concatenate([centre + a * along + b * across for a, b in sides], axis=1))

    @classmethod
    def _of(cls, corners: NDArray[np.float64]) -> Rotated:
        count = len(corners)
        table = readonly(corners, np.float64)
        areas, turns, boxes = np.empty(count), np.empty(count, np.int8), np.empty((count, 4))
        over_rows(lambda begin, end: kernels.measure(table, begin, end, areas, turns, boxes), count)
        quads = kernels.Quads(table, readonly(areas, np.float64), readonly(turns, np.int8))
        return cls(quads, readonly(boxes, np.float64))

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self.quads.areas)

    @property
    def corners(self) -> NDArray[np.float64]:
        """x1, y1, x2, y2, x3, y3, x4, y4 in pixels, shape (n, 8)."""
        return self.quads.corners

    def take(self, rows: NDArray[Any]) -> Rotated:
        """Return some of the boxes."""
        taken = (readonly(column[rows], column.dtype) for column in self.quads)
        return Rotated(kernels.Quads(*taken), readonly(self.boxes[rows], np.float64))

    def bounds(self) -> Boxes:
        """Return axis-aligned boxes around the rotated boxes."""
        return Boxes(self.boxes, sizes=False)

    def areas(self) -> NDArray[np.float64]:
        """Return the areas in square pixels. If an outline crosses itself, the area is the difference of the areas of
        its two parts.
        """
        return self.quads.areas

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the corners."""
        return {"corners": self.corners}


def _table(values: Any, source: str, widths: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an array of float64. Raise `InputError` if its number of columns is not in `widths`."""
    numbers = columns.numbers(values, source=source, field=_ARGUMENT)
    if not numbers.size and numbers.ndim:
        return np.empty((0, widths[0]))
    if numbers.ndim == 3 and numbers.shape[1:] == (4, 2):
        numbers = numbers.reshape(-1, 8)
    if numbers.ndim != 2 or numbers.shape[1] not in widths:
        expected = {5: "n x 5 (centre x, y, width, height, angle)", 8: "n x 8 or n x 4 x 2 (corners)"}
        problem = f"shape {numbers.shape} where {' or '.join(expected[one] for one in widths)} was expected"
        raise InputError(problem, source=source, field=_ARGUMENT)
    return np.array(numbers, np.float64)


def _check(table: NDArray[np.float64], good: NDArray[np.bool_], source: str) -> None:
    """Raise `InputError` for a row with a number that is not finite, or a row that is not `good`."""
    finite = np.asarray((np.abs(table) <= FARTHEST).all(axis=1))
    bad = ~(finite & good)
    if bad.any():
        row = int(np.argmax(bad))
        problem = "width and height must not be negative"
        if not finite[row]:
            problem = f"a rotated box must be finite numbers of at most {FARTHEST:g}"
        raise InputError(problem, source=source, record=row, field=_ARGUMENT, value=table[row].tolist())


def _direction(angle: float, degrees: bool) -> tuple[float, float]:
    """Return cosine and sine, exact for multiples of 90 degrees."""
    if not degrees:
        return math.cos(angle), math.sin(angle)
    quarter = round(math.fmod(angle, 360.0) / 90.0)
    rest = math.radians(math.fmod(angle, 360.0) - 90.0 * quarter)
    cosine, sine = math.cos(rest), math.sin(rest)
    return ((cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine))[quarter % 4]


def _given(values: Any, source: str) -> Rotated:
    """Return a column from a user's argument: rows of five numbers, with angles in radians, or corners."""
    if isinstance(values, Rotated):
        return values
    table = _table(values, source, (8, 5))
    made = Rotated.from_angles if table.shape[1] == 5 else Rotated.from_corners
    return made(table, source=source)


def _join(given_columns: Sequence[Rotated]) -> Rotated:
    """Return the concatenation of several columns."""
    return Rotated._of(np.concatenate([*(column.corners for column in given_columns), np.empty((0, 8))]))


def _refine(detections: Rotated, ground_truth: Rotated, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write intersections over unions."""
    compared = kernels.Compared(*pairs)
    for begin in range(0, len(out), _PAIRS):
        if parallel.stop_flag()[0]:
            return
        kernels.overlaps(detections.quads, ground_truth.quads, compared, begin, min(begin + _PAIRS, len(out)), out)


def _draw(column: Rotated) -> list[Drawing]:
    """Return the outlines."""
    return [Drawing([row.reshape(4, 2)], np.empty((0, 2))) for row in column.corners]


KIND = Kind(
    name=ROTATED,
    column=Rotated,
    field=_ARGUMENT,
    refine=_refine,
    argument=_ARGUMENT,
    given=_given,
    join=_join,
    draw=_draw,
)


# --------------------------------------------------------------------------------------------------------------- probIoU


class _Gaussians(NamedTuple):
    """Centres (n, 2), variances along both axes of the rectangles (n, 2), and unit vectors of the first axis (n, 2)."""

    centres: NDArray[np.float64]
    variances: NDArray[np.float64]
    units: NDArray[np.float64]


#: Stabilising constant of Ultralytics, and maximum Bhattacharyya distance, to which larger distances are clipped.
_EPSILON, _FARTHEST_APART = 1e-7, 100.0

#: All pairs of corners. At least one pair lies on a side of the minimum rectangle around all four corners.
_PAIRED = ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3))


def _gaussians(column: Rotated) -> _Gaussians:
    """Return a Gaussian for each box. The variances are those of a uniform distribution on the minimum-area rectangle
    around the corners, which may be rotated and is fitted as in OpenCV.
    """
    corners = column.corners.reshape(-1, 4, 2)
    points = corners - corners[:, :1]
    count = len(points)
    least = np.full(count, np.inf)
    out = _Gaussians(np.empty((count, 2)), np.empty((count, 2)), np.empty((count, 2)))
    for a, b in _PAIRED:
        side = points[:, b] - points[:, a]
        length = np.hypot(side[:, 0], side[:, 1])[:, None]
        unit = np.divide(side, length, out=np.tile([1.0, 0.0], (count, 1)), where=length > 0)
        normal = np.stack([-unit[:, 1], unit[:, 0]], axis=1)
        placed = np.stack([(points * axis[:, None]).sum(axis=2) for axis in (unit, normal)], axis=2)
        low, high = placed.min(axis=1), placed.max(axis=1)
        sizes, middle = high - low, (low + high) / 2
        area = sizes[:, 0] * sizes[:, 1]
        better = area < least
        least[better] = area[better]
        centre = unit * middle[:, :1] + normal * middle[:, 1:]
        for column_of, value in zip(out, (centre + corners[:, 0], sizes**2 / 12, unit), strict=True):
            column_of[better] = value[better]
    return out


def _prepare(
    detections: Detections, ground_truth: GroundTruth, protocol: Protocol
) -> tuple[_Gaussians, _Gaussians, dict[str, int]]:
    """Return both tables' boxes as Gaussians."""
    found, truth = detections.shape(PROBIOU), ground_truth.shape(PROBIOU)
    assert isinstance(found, Rotated)
    assert isinstance(truth, Rotated)
    return _gaussians(found), _gaussians(truth), {}


def _probable(detections: _Gaussians, ground_truth: _Gaussians, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write 1 minus the Hellinger distances of Gaussians (Llerena et al., 2021), with Ultralytics' stabilising
    constant.

    All terms are sums of squares, to avoid cancellation for thin boxes.
    """
    left, right = (
        [column[rows] for column in side]
        for side, rows in ((detections, pairs.detections), (ground_truth, pairs.ground_truth))
    )
    (x, y), (p, q), (r, s) = (left[0] - right[0]).T, left[1].T, right[1].T
    (cosine, sine), (other_cosine, other_sine) = left[2].T, right[2].T
    apart = p * (y * cosine - x * sine) ** 2 + q * (x * cosine + y * sine) ** 2
    apart += r * (y * other_cosine - x * other_sine) ** 2 + s * (x * other_cosine + y * other_sine) ** 2
    along = (cosine * other_cosine + sine * other_sine) ** 2
    across = (cosine * other_sine - sine * other_cosine) ** 2
    shared = p * q + r * s + (p * s + q * r) * along + (p * r + q * s) * across
    own = np.sqrt(p * q) * np.sqrt(r * s)
    distance = apart / (shared + _EPSILON) / 4 + np.log(shared / (4 * own + _EPSILON) + _EPSILON) / 2
    out[:] = 1 - np.sqrt(1 - np.exp(-np.clip(distance, _EPSILON, _FARTHEST_APART)) + _EPSILON)


def _reach(detections: _Gaussians, ground_truth: _Gaussians, lowest: float) -> tuple[Boxes, Boxes] | None:
    """Return a box for each Gaussian. Two boxes touch if their Gaussians may overlap by at least `lowest`."""
    if lowest <= 0:
        return None
    # The squared distance of the centres, divided by the sum of both variances, is at most four times the Bhattacharyya
    # distance.
    limit = -math.log(1 - (1 - lowest) ** 2) if lowest < 1 else 0.0
    return _around(detections, limit), _around(ground_truth, limit)


def _around(gaussians: _Gaussians, limit: float) -> Boxes:
    """Return boxes around Gaussians. The boxes of two Gaussians touch if their Bhattacharyya distance is at most
    `limit`. If a Gaussian is very small, the stabilising constant dominates the distance, so the box is unbounded.
    """
    centres, (p, q), (x, y) = gaussians.centres, gaussians.variances.T, gaussians.units.T**2
    variances = np.stack([p * x + q * y, p * y + q * x], axis=1)
    reach = 2 * np.sqrt((limit + 1e-5) * variances) * (1 + 1e-6) + 1e-6 * (1 + np.abs(centres))
    reach[p * q < 1] = FARTHEST
    return Boxes(readonly(np.concatenate([centres - reach, centres + reach], axis=1), np.float64), sizes=False)


PROBABLE = replace(
    KIND, name=PROBIOU, stored=ROTATED, refine=_probable, prepare=_prepare, reach=_reach, same_bits=False
)
