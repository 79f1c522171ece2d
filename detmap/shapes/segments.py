"""Columns of segments of time, and the overlap of two segments relative to their union, or to the time that spans
both.
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
from detmap.shapes.boxes import FARTHEST, Boxes
from detmap.shapes.kinds import TEMPORAL, TEMPORAL_SPAN, Kind, Pairs

#: Name of the argument for segments in the ``from_arrays`` of tables, and in messages.
_ARGUMENT = "segments"


@dataclass(frozen=True, eq=False)
class Segments(Frozen):
    """The segments of time of a table, a `detmap.shapes.Column`.

    Attributes
    ----------
    ends : ndarray of float64, shape (n, 2)
        Read-only; start and end in seconds.
    """

    ends: NDArray[np.float64]

    @classmethod
    def of(cls, ends: Any, source: str = "segments") -> Segments:
        """Return a column of segments.

        Parameters
        ----------
        ends : array_like of float, shape (n, 2)
            Start and end in seconds, or in any other unit of time. A segment may have no length.
        source : str
            Name of the source for messages.

        Raises
        ------
        InputError
            If the array has another shape, if a time is infinite, NaN or beyond 1e150, or if an end is before its start.
        """
        table = np.array(columns.numbers(ends, source=source, field=_ARGUMENT), np.float64)
        table = table.reshape(0, 2) if not table.size and table.ndim else table
        if table.ndim != 2 or table.shape[1] != 2:
            raise InputError(
                f"shape {table.shape} where n x 2 (start, end) was expected", source=source, field=_ARGUMENT
            )
        finite = np.asarray((np.abs(table) <= FARTHEST).all(axis=1))
        bad = ~finite | (table[:, 1] < table[:, 0])
        if bad.any():
            row = int(np.argmax(bad))
            problem = "the end lies before the start"
            if not finite[row]:
                problem = f"start and end must be finite numbers of at most {FARTHEST:g}"
            raise InputError(problem, source=source, record=row, field=_ARGUMENT, value=table[row].tolist())
        return cls(readonly(table, np.float64))

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.ends)

    def take(self, rows: NDArray[Any]) -> Segments:
        """Return some of the segments."""
        return Segments(readonly(self.ends[rows], np.float64))

    def bounds(self) -> Boxes:
        """Return a box for each segment, with the time as x, and with y from 0 to 1."""
        table = np.zeros((len(self), 4))
        table[:, 0], table[:, 2], table[:, 3] = self.ends[:, 0], self.ends[:, 1], 1.0
        return Boxes(readonly(table, np.float64), sizes=False)

    def areas(self) -> NDArray[np.float64]:
        """Return the lengths in seconds, shape (n,)."""
        return np.asarray(self.ends[:, 1] - self.ends[:, 0])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return start and end."""
        return {"ends": self.ends}


def _given(values: Any, source: str) -> Segments:
    """Return a column from a user's argument."""
    return values if isinstance(values, Segments) else Segments.of(values, source)


def _join(given_columns: Sequence[Segments]) -> Segments:
    """Return the concatenation of several columns."""
    return Segments(readonly(np.concatenate([*(one.ends for one in given_columns), np.empty((0, 2))]), np.float64))


def _shared(detections: Segments, ground_truth: Segments, pairs: Pairs) -> tuple[NDArray[np.float64], ...]:
    """Return for each pair the shared time, start and end of the detection, and start and end of the object."""
    a, b = detections.ends[pairs.detections].T
    x, y = ground_truth.ends[pairs.ground_truth].T
    return np.maximum(np.minimum(b, y) - np.maximum(a, x), 0.0), a, b, x, y


def _refine(detections: Segments, ground_truth: Segments, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write intersections over unions. For a crowd, the shared time is divided by the detection's length. Two segments
    without length overlap by 1 at any distance. ActivityNet's program computes 0/0 for them, and counts the NaN as a
    match, because NaN is not below any threshold.
    """
    shared, a, b, x, y = _shared(detections, ground_truth, pairs)
    whole = np.where(pairs.crowd, b - a, (y - x) + (b - a) - shared)
    out[:] = np.divide(shared, whole, out=np.ones_like(shared), where=whole > 0)


def _refine_span(detections: Segments, ground_truth: Segments, pairs: Pairs, out: NDArray[np.float64]) -> None:
    """Write intersections over the time from the first start to the last end; 0 if nothing is shared."""
    shared, a, b, x, y = _shared(detections, ground_truth, pairs)
    whole = np.where(pairs.crowd, b - a, np.maximum(b, y) - np.minimum(a, x))
    out[:] = np.divide(shared, whole, out=np.zeros_like(shared), where=shared > 0)


KIND = Kind(
    name=TEMPORAL,
    column=Segments,
    field=_ARGUMENT,
    propose="all",  # segments without length match each other, even if they do not touch
    refine=_refine,
    argument=_ARGUMENT,
    given=_given,
    join=_join,
    scene="video",
    unit="seconds",
)

#: Segments as compared by THUMOS14's programs. If two segments share time, this overlap and the overlap of `KIND` differ
#: at most in the last bit.
SPAN = replace(KIND, name=TEMPORAL_SPAN, stored=TEMPORAL, propose="touch", refine=_refine_span)
