"""Columns of 3D boxes, as in KITTI, with the overlap seen from above (bird's-eye view) and the overlap in space.

The camera looks along z, x points to the right and y down. Boxes stand upright: the height lies along y, and the only
rotation is about y. Intersections are computed as for rotated boxes (`detmap.kernels.rotated`), in coordinates relative
to one of the two boxes. Therefore the overlap is exactly 1 for equal boxes, and exactly 0 for boxes that only touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.errors import InputError
from detmap.kernels import Frozen, readonly
from detmap.kernels import rotated as kernels
from detmap.shapes.boxes import FARTHEST, Boxes
from detmap.shapes.kinds import BEV, BOX3D, BOXES, Column, Drawing, Kind, Pairs
from detmap.shapes.rotated import Rotated
from detmap.system import parallel

#: Number of pairs that are compared before the next check whether the evaluation was interrupted.
_PAIRS = 1 << 13

#: Name of the argument for 3D boxes in the ``from_arrays`` of tables, and in messages.
_ARGUMENT = "boxes3d"

#: Signs of the corners along length and width, in the order of KITTI's program.
_CORNERS = ((1, 1), (1, -1), (-1, -1), (-1, 1))


@dataclass(frozen=True, eq=False)
class Boxes3D(Frozen):
    """The 3D boxes of a table, a `detmap.shapes.Column`.

    Attributes
    ----------
    table : ndarray of float64, shape (n, 8)
        Height, width and length in metres; x, y, z of the centre of the bottom in metres; rotation about y in radians, 0
        where the length lies along x; and the observation angle (alpha) in radians, NaN if unknown. Width and length
        may both be negative; this is the same box turned by 180 degrees.
    ground : Rotated
        The boxes seen from above, in x and z.
    """

    table: NDArray[np.float64]
    ground: Rotated

    @classmethod
    def of(cls, boxes: Any, source: str = "boxes in space") -> Boxes3D:
        """Return a column of boxes.

        Parameters
        ----------
        boxes : array_like of float, shape (n, 7) or (n, 8)
            Columns as in `table`; the last column may be left out.
        source : str
            Name of the source for messages.

        Raises
        ------
        InputError
            If the array has another shape, if a number is infinite, beyond 1e150 or NaN (except alpha), or if only one
            of width and length is negative.
        """
        numbers = columns.numbers(boxes, source=source, field=_ARGUMENT)
        if not numbers.size and numbers.ndim:
            numbers = np.empty((0, 8))
        if numbers.ndim != 2 or numbers.shape[1] not in (7, 8):
            problem = (
                f"shape {numbers.shape} where n x 7 (h, w, l, x, y, z, rotation) or n x 8 (and alpha) was expected"
            )
            raise InputError(problem, source=source, field=_ARGUMENT)
        table = np.full((len(numbers), 8), np.nan)
        table[:, : numbers.shape[1]] = numbers
        good = (np.abs(table[:, :7]) <= FARTHEST).all(axis=1)
        sided = (table[:, 1] < 0) == (table[:, 2] < 0)
        infinite = np.isinf(table[:, 7])
        bad = ~(good & sided) | infinite
        if bad.any():
            row = int(np.argmax(bad))
            problem = "width and length must not be negative, unless both are"
            if not good[row] or infinite[row]:
                problem = f"a box in space must be finite numbers of at most {FARTHEST:g}"
            raise InputError(problem, source=source, record=row, field=_ARGUMENT, value=table[row].tolist())
        return cls(readonly(table, np.float64), Rotated.from_corners(_corners(table), source))

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self.table)

    def take(self, rows: NDArray[Any]) -> Boxes3D:
        """Return some of the boxes."""
        return Boxes3D(readonly(self.table[rows], np.float64), self.ground.take(rows))

    def bounds(self) -> Boxes:
        """Return axis-aligned boxes around the boxes seen from above, in metres along x and z."""
        return self.ground.bounds()

    def areas(self) -> NDArray[np.float64]:
        """Return the areas seen from above, in square metres."""
        return self.ground.areas()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the table."""
        return {"table": self.table}

    def angles(self, kind: str) -> NDArray[np.float64]:
        """Return the angles for the orientation similarity: alpha if `kind` is "bbox", else the rotation about y."""
        return np.asarray(self.table[:, 7 if kind == BOXES else 6])


def seen(angles: NDArray[np.float64]) -> dict[str, Column]:
    """Return a dict with a column of boxes with the observation angles (alpha) `angles`; all other values of the boxes
    are 0.
    """
    return {BOX3D: Boxes3D.of(np.column_stack([np.zeros((angles.size, 7)), angles]))}


def _corners(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the corners of boxes seen from above, shape (n, 8), computed and ordered as in KITTI's program."""
    _, width, length, x, _, z, turn, _ = table.T
    cosine, sine = np.cos(turn), np.sin(turn)
    made = []
    for along, across in _CORNERS:
        u, v = along * length / 2, across * width / 2
        made += [cosine * u + sine * v + x, -sine * u + cosine * v + z]
    return np.stack(made, axis=1)


def _given(values: Any, source: str) -> Boxes3D:
    """Return a column from a user's argument."""
    return values if isinstance(values, Boxes3D) else Boxes3D.of(values, source)


def _join(given: Sequence[Boxes3D]) -> Boxes3D:
    """Return the concatenation of several columns."""
    return Boxes3D.of(np.concatenate([*(column.table for column in given), np.empty((0, 8))]))


def _ground(detections: Boxes3D, ground_truth: Boxes3D, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write intersections over unions of the boxes seen from above."""
    compared = kernels.Compared(*pairs)
    for begin in range(0, len(out), _PAIRS):
        if parallel.stop_flag()[0]:
            return
        end = min(begin + _PAIRS, len(out))
        kernels.overlaps(detections.ground.quads, ground_truth.ground.quads, compared, begin, end, out)


def _volume(detections: Boxes3D, ground_truth: Boxes3D, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write intersections over unions in space. For a crowd, the shared volume is divided by the detection's volume.

    All pairs are passed to the kernels as crowds, so the kernels return shared areas divided by the detections' areas.
    Multiplication by the detections' areas restores the shared area, exactly for equal boxes.
    """
    every = pairs._replace(crowd=np.ones(len(out), np.bool_), lowest=0.0)
    _ground(detections, ground_truth, every, out)
    left, right = detections.table[pairs.detections], ground_truth.table[pairs.ground_truth]
    top, other_top = left[:, 4] - left[:, 0], right[:, 4] - right[:, 0]
    high = np.minimum(left[:, 4], right[:, 4]) - np.maximum(top, other_top)
    area = detections.areas()[pairs.detections]
    shared = out * area * np.maximum(high, 0.0)
    # Compute heights as differences, like the shared height, so that equal boxes overlap by exactly 1.
    volume = area * (left[:, 4] - top)
    other = ground_truth.areas()[pairs.ground_truth] * (right[:, 4] - other_top)
    whole = np.where(pairs.crowd, volume, volume + other - shared)
    out[:] = np.divide(shared, whole, out=np.zeros(len(out)), where=(shared > 0) & (whole > 0))
    np.minimum(out, 1.0, out=out)


def _draw(column: Boxes3D) -> list[Drawing]:
    """Return the outlines seen from above."""
    return [Drawing([row.reshape(4, 2)], np.empty((0, 2))) for row in column.ground.corners]


def _absent(column: Boxes3D) -> tuple[NDArray[np.bool_], None]:
    """Return a mask of the objects without a 3D box, whose sides are -1 in KITTI's files."""
    return np.asarray(~(column.table[:, :3] > 0).any(axis=1)), None


KIND = Kind(
    name=BEV,
    column=Boxes3D,
    field=_ARGUMENT,
    refine=_ground,
    stored=BOX3D,
    absent=_absent,
    argument=_ARGUMENT,
    given=_given,
    join=_join,
    draw=_draw,
    same_bits=False,
    unit="metres",
)
SPACE = replace(KIND, name=BOX3D, stored="", refine=_volume)
