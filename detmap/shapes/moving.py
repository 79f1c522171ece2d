"""Columns of 3D boxes with velocities, as in nuScenes, compared by the distance of their centres on the ground.

z points up. A distance falls as boxes come nearer, so `refine` writes negated distances. The five errors of matched
pairs are computed with fused multiply-adds (`detmap.shapes.fused`), as in nuScenes' development kit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.errors import InputError
from detmap.kernels import Frozen, readonly
from detmap.shapes import fused
from detmap.shapes.boxes import FARTHEST, Boxes
from detmap.shapes.kinds import DISTANCE, Drawing, Kind, Pairs, Surroundings
from detmap.system import parallel

#: Number of pairs that are compared before the next check whether the evaluation was interrupted.
_PAIRS = 1 << 16

#: Name of the argument for moving boxes in the ``from_arrays`` of tables, and in messages.
_ARGUMENT = "moving"

#: Number of columns of the array that users pass: translation, size, rotation and velocity.
_WIDTH = 12

#: Attribute number of a box without an attribute.
NO_ATTRIBUTE = -1

#: Minimum difference between 1 and the squared length of a quaternion that is rescaled to length 1.
_UNIT = 1e-14


@dataclass(frozen=True, eq=False)
class MovingBoxes(Frozen):
    """The moving 3D boxes of a table, a `detmap.shapes.Column`.

    Attributes
    ----------
    centres : ndarray of float64, shape (n, 3)
        x, y, z in metres, z up.
    sizes : ndarray of float64, shape (n, 3)
        Width, length, height in metres, above 0.
    rotations : ndarray of float64, shape (n, 4)
        Quaternions w, x, y, z; not 0.
    velocities : ndarray of float64, shape (n, 2)
        Along x and y, in metres per second; NaN if unknown.
    attributes : ndarray of int64, shape (n,)
        The number of each box's attribute, `NO_ATTRIBUTE` for none.
    unseen : ndarray of bool, shape (n,)
        Whether the box of an object contains no lidar or radar point.
    """

    centres: NDArray[np.float64]
    sizes: NDArray[np.float64]
    rotations: NDArray[np.float64]
    velocities: NDArray[np.float64]
    attributes: NDArray[np.int64]
    unseen: NDArray[np.bool_]

    @classmethod
    def from_arrays(
        cls,
        centres: Any,
        sizes: Any,
        rotations: Any,
        velocities: Any = None,
        attributes: Any = None,
        unseen: Any = None,
        source: str = "boxes",
    ) -> MovingBoxes:
        """Return a column of boxes.

        Parameters
        ----------
        centres, sizes : array_like of float, shape (n, 3)
            x, y, z of the centres, and width, length, height, in metres.
        rotations : array_like of float, shape (n, 4)
            Quaternions w, x, y, z of any length but 0.
        velocities : array_like of float, shape (n, 2), optional
            In metres per second; NaN if unknown.
        attributes : array_like of int, shape (n,), optional
            The number of each box's attribute, -1 for none.
        unseen : array_like of bool, shape (n,), optional
            Whether the box of an object contains no lidar or radar point.
        source : str
            Name of the source for messages.

        Raises
        ------
        InputError
            If an array has another shape, if a number is infinite, beyond 1e150 or NaN (except a velocity), if a size is
            not above 0, or if a quaternion has length 0.
        """
        place = _numbers(centres, 3, source, "translation")
        count = len(place)
        size = _numbers(sizes, 3, source, "size")
        turn = _numbers(rotations, 4, source, "rotation")
        speed = np.full((count, 2), np.nan) if velocities is None else _numbers(velocities, 2, source, "velocity", True)
        kinds = np.full(count, NO_ATTRIBUTE) if attributes is None else np.asarray(attributes)
        flags = np.zeros(count, np.bool_) if unseen is None else np.asarray(unseen)
        for name, column in (("size", size), ("rotation", turn), ("velocity", speed)):
            if len(column) != count:
                raise InputError(f"{len(column)} rows for {count} boxes", source=source, field=name)
        if kinds.shape != (count,) or flags.shape != (count,):
            raise InputError(
                f"must have one value for each of {count} boxes", source=source, field="attributes, unseen"
            )
        for name, column, bad, problem in (
            ("size", size, ~(size > 0).all(axis=1), "width, length and height must be above 0"),
            ("rotation", turn, ~(np.abs(turn).max(axis=1, initial=0) >= 1e-100), "a quaternion must have a length"),
        ):
            if bad.any():
                row = int(np.argmax(bad))
                raise InputError(problem, source=source, record=row, field=name, value=column[row].tolist())
        place, size, turn, speed = (readonly(column, np.float64) for column in (place, size, turn, speed))
        return cls(place, size, turn, speed, readonly(kinds, np.int64), readonly(flags, np.bool_))

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self.centres)

    def take(self, rows: NDArray[Any]) -> MovingBoxes:
        """Return some of the boxes."""
        return MovingBoxes(*(readonly(column[rows], column.dtype) for column in self.arrays().values()))

    def bounds(self) -> Boxes:
        """Return squares that contain the outlines of the boxes on the ground, in metres."""
        reach = np.hypot(*self.sizes[:, :2].T)[:, None] / 2
        ground = self.centres[:, :2]
        return Boxes(readonly(np.concatenate([ground - reach, ground + reach], axis=1), np.float64), sizes=False)

    def areas(self) -> NDArray[np.float64]:
        """Return width times length, in square metres."""
        return readonly(self.sizes[:, 0] * self.sizes[:, 1], np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all columns."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def yaws(self) -> NDArray[np.float64]:
        """Return the angle between the x axis and each box's heading on the ground, in radians, shape (n,)."""
        w, x, y, z = _units(self.rotations)
        along = fused.dot((x, w, -z, y), (x, w, z, -y))
        across = fused.dot((y, z, w, -x), (x, w, z, -y))
        return np.asarray(np.arctan2(across + 0.0, along + 0.0))  # adding 0 turns -0 into 0, as a matrix product does


def _units(rotations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the columns of normalised quaternions, shape (4, n)."""
    squares = fused.dot(rotations.T, rotations.T)
    unit = np.abs(1.0 - squares) < _UNIT
    return np.asarray(np.where(unit[:, None], rotations, rotations / np.sqrt(squares)[:, None]).T)


def _numbers(values: Any, width: int, source: str, field: str, unknown: bool = False) -> NDArray[np.float64]:
    """Return rows of `width` finite numbers. If `unknown` is true, numbers may also be NaN, for unknown values."""
    table = columns.numbers(values, source=source, field=field)
    if not table.size:
        return np.empty((0, width))
    if table.ndim != 2 or table.shape[1] != width:
        raise InputError(f"shape {table.shape} where n x {width} was expected", source=source, field=field)
    good = np.abs(table) <= FARTHEST
    bad = ~(good | np.isnan(table) if unknown else good).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        problem = f"must be finite numbers of at most {FARTHEST:g}"
        raise InputError(problem, source=source, record=row, field=field, value=table[row].tolist())
    return np.array(table, np.float64)


def _given(values: Any, source: str) -> MovingBoxes:
    """Return a column from a user's argument: rows of translation, size, rotation and velocity."""
    if isinstance(values, MovingBoxes):
        return values
    table = columns.numbers(values, source=source, field=_ARGUMENT)
    table = table if table.size else np.empty((0, _WIDTH))
    if table.ndim != 2 or table.shape[1] != _WIDTH:
        expected = f"n x {_WIDTH} (translation, size, rotation w x y z, velocity)"
        raise InputError(f"shape {table.shape} where {expected} was expected", source=source, field=_ARGUMENT)
    centres, sizes, rotations, velocities = np.split(table, [3, 6, 10], axis=1)
    return MovingBoxes.from_arrays(centres, sizes, rotations, velocities, source=source)


def _join(given_columns: Sequence[MovingBoxes]) -> MovingBoxes:
    """Return the concatenation of several columns."""
    every = [*given_columns, MovingBoxes.from_arrays([], [], [])]
    arrays = [column.arrays() for column in every]
    return MovingBoxes(*(readonly(np.concatenate([one[n] for one in arrays]), arrays[-1][n].dtype) for n in arrays[-1]))


def _refine(detections: MovingBoxes, ground_truth: MovingBoxes, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write the distances of the centres on the ground, negated."""
    for begin in range(0, len(out), _PAIRS):
        if parallel.stop_flag()[0]:
            return
        some = slice(begin, min(begin + _PAIRS, len(out)))
        rows = pairs.detections[some], pairs.ground_truth[some]
        out[some] = -_lengths(detections.centres, ground_truth.centres, *rows)


def _lengths(
    found: NDArray[np.float64], truth: NDArray[np.float64], rows: NDArray[Any], others: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the distances between rows of two tables, in the plane of the first two columns."""
    x, y = (found[rows, axis] - truth[others, axis] for axis in (0, 1))
    return fused.length((x, y))


def _reach(detections: MovingBoxes, ground_truth: MovingBoxes, lowest: float) -> tuple[Boxes, Boxes]:
    """Return squares around the centres. Two squares touch if their centres are at most `-lowest` apart."""
    return _around(detections, -lowest), _around(ground_truth, -lowest)


def _around(column: MovingBoxes, reach: float) -> Boxes:
    ground = column.centres[:, :2]
    half = (0.5 * max(reach, 0.0)) * (1 + 1e-6) + 1e-6 * (1 + np.abs(ground))
    return Boxes(readonly(np.concatenate([ground - half, ground + half], axis=1), np.float64), sizes=False)


def _draw(column: MovingBoxes) -> list[Drawing]:
    """Return the outlines on the ground."""
    yaws = column.yaws()
    forward = np.stack([np.cos(yaws), np.sin(yaws)], axis=1)
    along = forward * column.sizes[:, 1:2] / 2
    across = np.stack([-forward[:, 1], forward[:, 0]], axis=1) * column.sizes[:, :1] / 2
    ground = column.centres[:, :2]
    corners = [ground + a * along + b * across for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1))]
    return [Drawing([outline], np.empty((0, 2))) for outline in np.stack(corners, axis=1)]


# ------------------------------------------------------------------------------------------------------------------ errors

#: Errors of translation (metres), scale (1 - IoU of boxes with shared centre and heading), orientation (radians),
#: velocity (metres per second), attribute (0 or 1).
ERRORS = ("ATE", "ASE", "AOE", "AVE", "AAE")


def _errors(
    detections: MovingBoxes,
    ground_truth: MovingBoxes,
    rows: NDArray[Any],
    others: NDArray[Any],
    half_turns: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the errors of matched pairs, shape (p, 5); NaN if unknown. `half_turns` flags objects whose front and back
    are not distinguished.
    """
    out = np.empty((len(rows), len(ERRORS)))
    out[:, 0] = _lengths(detections.centres, ground_truth.centres, rows, others)
    found, truth = detections.sizes[rows], ground_truth.sizes[others]
    shared = np.minimum(truth, found)
    volumes = [(side[:, 0] * side[:, 1]) * side[:, 2] for side in (truth, found, shared)]
    out[:, 1] = 1 - volumes[2] / (volumes[0] + volumes[1] - volumes[2])
    period = np.where(half_turns, np.pi, 2 * np.pi)
    turned = ground_truth.take(others).yaws() - detections.take(rows).yaws()
    turned = np.mod(turned + period / 2, period) - period / 2
    out[:, 2] = np.abs(np.where(turned > np.pi, turned - 2 * np.pi, turned))
    out[:, 3] = _lengths(detections.velocities, ground_truth.velocities, rows, others)
    attribute = ground_truth.attributes[others]
    out[:, 4] = np.where(attribute == NO_ATTRIBUTE, np.nan, attribute != detections.attributes[rows])
    return out


# ------------------------------------------------------------------------------------------------------------------- range


def _left_out(
    column: MovingBoxes,
    images: NDArray[np.int32],
    classes: NDArray[Any],
    surroundings: Surroundings | None,
    protocol: Any,
) -> NDArray[np.bool_]:
    """Mask of the boxes that are not scored: too far from the ego vehicle, not seen by a sensor, or bicycles in a rack."""
    out = np.zeros(len(column), np.bool_)
    if "unseen" in protocol.left_out:
        out |= column.unseen
    if surroundings is None:
        return out
    if protocol.class_ranges:
        most = np.full(len(column), np.inf)
        for name, metres in protocol.class_ranges:
            most[classes == name] = metres
        x, y = (column.centres[:, :2] - surroundings.places[images, :2]).T
        out |= np.sqrt(x * x + y * y) >= most  # False if the position of the ego vehicle is unknown (NaN)
    if "racked" in protocol.left_out:
        parked = ~out & np.isin(classes, _PARKED)
        rows = np.flatnonzero(parked & np.isin(images, surroundings.rack_images))
        for row in rows.tolist():
            out[row] = _in_rack(column.centres[row], surroundings, int(images[row]))
    return out


#: Classes that are not scored in a bicycle rack.
_PARKED = ("bicycle", "motorcycle")


def _in_rack(point: NDArray[np.float64], surroundings: Surroundings, image: int) -> bool:
    """Return whether a point is inside or on the surface of one of an image's racks."""
    own = surroundings.rack_images == image
    centres, sizes, rotations = (
        getattr(surroundings, name)[own] for name in ("rack_centres", "rack_sizes", "rack_rotations")
    )
    w, x, y, z = _units(rotations)
    axes = (
        np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)]),
        np.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)]),
        np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]),
    )
    inside = np.ones(len(centres), np.bool_)
    for axis, size in zip(axes, (sizes[:, 1], sizes[:, 0], sizes[:, 2]), strict=True):
        inside &= np.abs(((point - centres).T * axis).sum(axis=0)) <= size / 2
    return bool(inside.any())


KIND = Kind(
    name=DISTANCE,
    column=MovingBoxes,
    field=_ARGUMENT,
    propose="all",
    refine=_refine,
    reach=_reach,
    argument=_ARGUMENT,
    given=_given,
    join=_join,
    draw=_draw,
    falls=True,
    errors=ERRORS,
    deviations=_errors,
    left_out=_left_out,
    same_bits=False,
    scene="sample",
    unit="metres",
)
