"""Columns of boxes, and checks of their validity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError, check_allowed
from detmap.kernels import Frozen, overlap, readonly
from detmap.shapes.kinds import Kind
from detmap.system import parallel

T = TypeVar("T")
BoxFormat = Literal["xywh", "xyxy", "cxcywh"]
InvalidBoxes = Literal["error", "miss", "drop"]

BOX_FORMATS = ("xywh", "xyxy", "cxcywh")
INVALID_BOXES = ("error", "miss", "drop")

#: Minimum number of rows for which threads are used.
_MANY = 100_000

#: Maximum coordinate of boxes. The areas of boxes with larger coordinates may exceed the range of floats.
FARTHEST = 1e150


def over_rows(task: Callable[[int, int], T], count: int) -> list[T]:
    """Run a task over `count` rows, on threads if there are enough rows."""
    return parallel.run(task, parallel.even(count, None if count > _MANY else 1))


def extremes(column: NDArray[Any]) -> tuple[Any, Any]:
    """Return the minimum and maximum of a non-empty column; both are NaN if the column holds a NaN."""
    ends = over_rows(lambda begin, end: (column[begin:end].min(), column[begin:end].max()), len(column))
    return np.min([low for low, _ in ends]), np.max([high for _, high in ends])


@dataclass(frozen=True, eq=False)
class Boxes(Frozen):
    """The boxes of a table, a `detmap.shapes.Column`.

    Attributes
    ----------
    table : ndarray of float64, shape (n, 4)
        Read-only; x, y, width, height if `sizes`, else x1, y1, x2, y2.
    sizes : bool
        Whether columns 2 and 3 are width and height.
    """

    table: NDArray[np.float64]
    sizes: bool

    def __len__(self) -> int:
        """Return the number of boxes."""
        return len(self.table)

    def take(self, rows: NDArray[Any]) -> Boxes:
        """Return some of the boxes, without checking them again."""
        return Boxes(readonly(self.table[rows], np.float64), self.sizes)

    def bounds(self) -> Boxes:
        """Return the boxes themselves."""
        return self

    def areas(self, pixel: float = 0.0) -> NDArray[np.float64]:
        """Return width times height, 0 if width or height is negative; `pixel` is added to x2 - x1 and y2 - y1."""
        return areas(self.table, self.sizes, pixel)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the table."""
        return {"table": self.table}

    def placed(self, order: NDArray[np.int32], pixel: float) -> overlap.Boxes:
        """Return the boxes as kernels read them, in the order of the row indices `order`."""
        return overlap.Boxes(self.table, order, self.sizes, pixel)

    def notices(self) -> dict[str, int]:
        """Return the number of boxes with a negative width or height, and of boxes with a width or height of 0."""
        missed = int(np.count_nonzero(negative(self.table, "xywh" if self.sizes else "xyxy")))
        return {"missed_boxes": missed, "zero_sized_boxes": _zero_sized(self.table, self.sizes)}


#: Constants of `seem_shares`: maximum distance of a normalised box beyond the range 0 to 1, minimum share of boxes
#: within this distance, and sample size.
_BEYOND, _MOST, _LOOKED_AT = 0.5, 0.9, 1024


class Checked(NamedTuple):
    """The outcome of checking boxes."""

    #: The boxes as a table's column.
    boxes: Boxes
    #: Mask of the given rows that are kept; None if all rows are kept.
    kept: NDArray[np.bool_] | None
    #: Whether boxes seem to be normalised; see `seem_shares`.
    within_unit: bool
    #: Number of occurrences of each notice, by code.
    notices: dict[str, int]


def check(given: NDArray[np.float64], box_format: BoxFormat, invalid_boxes: InvalidBoxes, source: str) -> Checked:
    """Check read-only boxes of any format, shape (n, 4). Raise `InputError` for boxes that are not finite, unless
    `invalid_boxes` is "drop", and for boxes of negative size if `invalid_boxes` is "error". Raise `OptionError` for an
    invalid `box_format` or `invalid_boxes`.
    """
    check_allowed("box_format", box_format, BOX_FORMATS)
    check_allowed("invalid_boxes", invalid_boxes, INVALID_BOXES)
    notices: dict[str, int] = {}
    kept = None
    # Check the extremes first, because they suffice for most columns, and row-wise checks are slow in numpy.
    lowest, highest = extremes(given) if given.size else (0.0, 0.0)
    if not (lowest >= -FARTHEST and highest <= FARTHEST):
        good = finite(given)
        if invalid_boxes != "drop":
            row = int(np.argmin(good))
            raise infinite(given[row], source=source, record=row, field="bbox")
        kept = good
    if box_format == "xyxy" or not lowest >= 0:
        bad = negative(given, box_format)
        if kept is not None:
            bad &= kept
        count = int(np.count_nonzero(bad))
        if count and invalid_boxes == "error":
            row = int(np.argmax(bad))
            raise inverted(given[row], count, len(given), box_format, source=source, record=row, field="bbox")
        if count and invalid_boxes == "miss":
            notices["missed_boxes"] = count
        elif count:
            kept = ~bad if kept is None else kept & ~bad
    if kept is not None:
        notices["dropped_boxes"] = int(np.count_nonzero(~kept))
        given = readonly(given[kept], np.float64)
    within_unit = seem_shares(given)
    if box_format == "cxcywh":
        shifted = given.copy()
        shifted[:, :2] -= given[:, 2:] / 2
        given = readonly(shifted, np.float64)
    sizes = box_format != "xyxy"
    notices["zero_sized_boxes"] = _zero_sized(given, sizes)
    return Checked(Boxes(given, sizes), kept, within_unit, notices)


def seem_shares(given: NDArray[np.float64]) -> bool:
    """Return whether boxes in any format, shape (n, 4), seem to be normalised rather than in pixels. A few boxes that
    exceed their images do not affect the result. Boxes of integers, even of 0 and 1, are assumed to be in pixels.
    """
    sample = given[:: 1 + len(given) // _LOOKED_AT]
    near = ((sample >= -_BEYOND) & (sample <= 1 + _BEYOND)).all(axis=1)
    return bool(np.count_nonzero(near) >= _MOST * max(len(sample), 1) and (sample[near] % 1 != 0).any())


def finite(boxes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mask of the boxes whose four numbers are finite and at most `FARTHEST`, shape (n,)."""
    return np.asarray((np.abs(boxes) <= FARTHEST).all(axis=1))


def negative(boxes: NDArray[np.float64], box_format: BoxFormat) -> NDArray[np.bool_]:
    """Mask of the boxes with a negative width or height, shape (n,)."""
    if box_format == "xyxy":
        return np.asarray((boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1]))
    return np.asarray((boxes[:, 2] < 0) | (boxes[:, 3] < 0))


def areas(boxes: NDArray[np.float64], sizes: bool, pixel: float = 0.0) -> NDArray[np.float64]:
    """Return width times height, 0 if width or height is negative; `pixel` is added to x2 - x1 and y2 - y1."""
    width, height = (boxes[:, 2:] if sizes else boxes[:, 2:] - boxes[:, :2] + pixel).T
    return np.asarray(np.maximum(width, 0.0) * np.maximum(height, 0.0))


def infinite(box: NDArray[np.float64], **place: Any) -> InputError:
    """Return the error about a box that is not finite; `place` holds arguments of `InputError`."""
    return InputError(
        "a box must be four finite numbers" + ("" if np.isnan(box).any() else f" of at most {FARTHEST:g}"),
        **place,
        value=box.tolist(),
        remedy="leave out the record or repair the box; invalid_boxes='drop' (--invalid-boxes drop) leaves out all such",
    )


def inverted(
    box: NDArray[np.float64], count: int, among: int, box_format: BoxFormat | None, **place: Any
) -> InputError:
    """Return the error about the first of `count` boxes of negative size, in a table of `among` boxes.

    `box_format` is the caller's option; None if the file format allows only one box format.
    """
    problem = "the far corner lies before the near one"
    choice = "where the format has a choice. Otherwise "
    remedy = f"is it x, y, width, height? That is box_format='xywh' (--box-format xywh) {choice}"
    if box_format is None:
        remedy = ""
    elif box_format != "xyxy":
        problem = "width and height must not be negative"
        remedy = f"is it x1, y1, x2, y2? COCO's files hold sizes; box_format='xyxy' (--box-format xyxy) {choice}"
    return InputError(
        f"{problem}, here and in {count - 1:,} more of {among:,} boxes"
        if count > 1
        else f"{problem}, in 1 of {among:,} boxes",
        **place,
        value=box.tolist(),
        remedy=remedy + "invalid_boxes='miss' lets such boxes match nothing, 'drop' leaves them out (--invalid-boxes)",
    )


def _zero_sized(boxes: NDArray[np.float64], sizes: bool) -> int:
    def count(begin: int, end: int) -> int:
        x, y, p, q = boxes[begin:end].T
        return int(np.count_nonzero((p == 0) | (q == 0) if sizes else (p == x) | (q == y)))

    return sum(over_rows(count, len(boxes)))


def _measured(boxes: Boxes, order: NDArray[np.int32], pixel: float, begin: int, end: int) -> NDArray[np.float64]:
    """Return width times height without clipping at 0, because pycocotools compares this product with area ranges."""
    out = np.empty(end - begin)
    overlap.box_areas(boxes.placed(order, pixel), begin, end, out)
    return out


def _sample() -> list[dict[str, Any]]:
    """Return some boxes."""
    return [{"bbox": [1.0, 1.0, 3.0, 4.0]}] * 3


#: Boxes need no `refine`, because the overlap of two boxes is the overlap of their bounds.
KIND = Kind(name="bbox", column=Boxes, field="bbox", propose="threshold", measure=_measured, sample=_sample)
