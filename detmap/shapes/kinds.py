"""What detmap asks of a kind of shape, and the registry of kinds.

A new kind is one file: a column class, and a `Kind` that is given to `detmap.register`. Its kernel, if it needs one, is
another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from detmap.plugins import Registry

if TYPE_CHECKING:
    from detmap.shapes.boxes import Boxes


class Column(Protocol):
    """The shapes of a table, one per row; immutable. Derive from `detmap.kernels.Frozen` to leave a pickle read-only."""

    def __len__(self) -> int:
        """Return the number of shapes."""

    def take(self, rows: NDArray[Any]) -> Column:
        """Return some of the shapes, without checking them again; `rows` are indices or flags."""

    def bounds(self) -> Boxes:
        """Return a box around each shape, its sides along the axes; must not be smaller than the shape."""

    def areas(self) -> NDArray[np.float64]:
        """Return the areas in square pixels, shape (n,)."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that the column holds, by name."""


class Pairs(NamedTuple):
    """Pairs of shapes whose overlap is to be found.

    Attributes
    ----------
    detections, ground_truth : ndarray of int64, shape (p,)
        Rows in the two columns; pairs of one detection follow each other.
    crowd : ndarray of bool, shape (p,)
        Whether the overlap is to be taken over the detection's own area, as the ground truth is a crowd.
    """

    detections: NDArray[np.int64]
    ground_truth: NDArray[np.int64]
    crowd: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of shape, and how two of them overlap.

    Attributes
    ----------
    name : str
        What ``iou_type`` calls it: "bbox".
    column : type
        The class of its columns, a `Column`.
    field : str
        The field of COCO's records that holds it.
    propose : {"threshold", "touch", "all"}
        Of which pairs in an image and category the overlap is found: those whose boxes overlap by the lowest threshold,
        those whose boxes touch, or all. With a threshold of 0 or less it is always all.
    refine : callable, or None
        ``refine(detections, ground_truth, pairs, out)`` writes the overlap of each of the `Pairs` of rows of two columns
        into ``out``, float64, never NaN. It is called in several threads at a time. None: the overlap of the bounds.
    ignored : callable, or None
        Of a column of ground truth, which rows neither have to be found nor are wrong to find whatever their flags, as poses
        without a visible keypoint; an array of bool, shape (n,). None: none.
    measure : callable, or None
        ``measure(column, order, pixel, begin, end)`` returns areas of detections ``order[begin:end]`` as area ranges look
        at them. None: ``column.take(order[begin:end]).areas()``.
    """

    name: str
    column: type[Any]
    field: str
    propose: Literal["threshold", "touch", "all"] = "touch"
    refine: Callable[[Any, Any, Pairs, NDArray[np.float64]], None] | None = None
    ignored: Callable[[Any], NDArray[np.bool_]] | None = None
    measure: Callable[[Any, NDArray[np.int32], float, int, int], NDArray[np.float64]] | None = None


#: Every kind by name.
KINDS = Registry(Kind, "iou_type")


def find(name: str) -> Kind:
    """Return the kind of that name.

    Raises
    ------
    OptionError
        Lists those there are.
    """
    return KINDS.find(name)
