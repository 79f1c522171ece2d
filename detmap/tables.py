"""Ground truth and detections: validated, immutable columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import parallel
from detmap.errors import InputError
from detmap.kernels import Frozen, readonly

T = TypeVar("T")
BoxFormat = Literal["xywh", "xyxy", "cxcywh"]

#: What was accepted although it is unusual: code to the sentence that a person reads, for `n` records.
NOTICES = {
    "missing_iscrowd": "{n} annotations without iscrowd: taken as 0",
    "duplicate_annotation_ids": "{n} annotations repeat an id: each counts as an object of its own",
    "zero_id": "{n} annotations with id 0: matched like any other (pycocotools takes their match for a miss)",
    "zero_sized_boxes": "{n} boxes of no width or height",
    "unknown_image": "{n} detections on images that the ground truth does not have: dropped",
    "unknown_category": "{n} detections of categories that the ground truth does not have: not scored",
    "no_detections": "no detections at all: every recall is 0",
    "empty_categories": "{n} categories without ground truth: left out of the means",
    "text_after_name": "{n} lines of the run with text after its name: that text is not read",
    "no_judged_document": "none of the {n} ranked documents is judged: are ids of run and judgements written alike?",
}


def describe(notices: Mapping[str, int]) -> list[str]:
    """Return the sentences of `notices`, in the order of the table."""
    return [text.format(n=notices[code]) for code, text in NOTICES.items() if notices.get(code)]


class Ids(NamedTuple):
    """Distinct ids and, for every record, which one it has.

    ``values`` (k,) ascends and is int64 or a string dtype; ``codes`` (n,) is int32.
    """

    values: NDArray[Any]
    codes: NDArray[np.int32]


def index_ids(ids: ArrayLike | Ids, *, source: str, field: str) -> Ids:
    """Find the distinct ids, in ascending order, and the index of each record's.

    Of `Ids` the values may come in any order, each once and all in use.

    Raises
    ------
    InputError
        Where the ids are not all integers or all strings.
    """
    if isinstance(ids, Ids):
        ascending = np.argsort(ids.values, kind="stable")
        place = np.empty(ascending.size, np.int32)
        place[ascending] = np.arange(ascending.size)
        return Ids(readonly(ids.values[ascending], ids.values.dtype), readonly(place[ids.codes], np.int32))
    if isinstance(ids, list | tuple):
        kinds = {str if isinstance(value, str) else bool if isinstance(value, bool) else int for value in ids}
        if len(kinds) > 1 or bool in kinds:
            raise _mixed_ids(source, field)
        if str in kinds and any("\0" in value for value in ids):
            raise InputError("an id holds a null character", source=source, field=field)
    try:
        values = np.asarray(ids)
        values = values.astype(str) if values.dtype.kind == "T" else values
    except ValueError:
        raise _mixed_ids(source, field) from None
    if values.size == 0 and values.ndim == 1:
        return Ids(readonly((), np.int64), readonly((), np.int32))
    if values.ndim != 1 or values.dtype.kind not in "iuU":
        raise _mixed_ids(source, field)
    if values.dtype.kind == "u" and values.max() > np.iinfo(np.int64).max:
        raise InputError("an id is beyond 64 bits", source=source, field=field, value=int(values.max()))
    if values.dtype.kind in "iu":
        values = values.astype(np.int64, copy=False)
        low, high = map(int, _extremes(values))
        if high - low < 8 * values.size + 1_000_000:  # ids are mostly dense: look them up rather than sort
            seen, codes = np.zeros(high - low + 1, np.bool_), np.empty(values.size, np.int32)

            def see(begin: int, end: int) -> None:
                seen[values[begin:end] - low] = True

            def look_up(begin: int, end: int) -> None:
                codes[begin:end] = place[values[begin:end] - low]

            _run(see, values.size)
            place = np.cumsum(seen, dtype=np.int32) - np.int32(1)
            _run(look_up, values.size)
            return Ids(readonly(np.flatnonzero(seen) + low, np.int64), readonly(codes, np.int32))
    distinct, index = np.unique(values, return_inverse=True)
    return Ids(readonly(distinct, distinct.dtype), readonly(index.reshape(-1), np.int32))


def _run(task: Callable[[int, int], T], count: int) -> list[T]:
    """Run a task over `count` rows, on threads where there are enough of them."""
    return parallel.run(task, parallel.even(count, None if count > _MANY else 1))


def _extremes(column: NDArray[Any]) -> tuple[Any, Any]:
    """Return the least and the largest value of a column of one row or more; NaN where it has one."""
    ends = _run(lambda begin, end: (column[begin:end].min(), column[begin:end].max()), len(column))
    return np.min([low for low, _ in ends]), np.max([high for _, high in ends])


def complete(column: NDArray[np.float64]) -> bool:
    """Return whether no value of a column is NaN."""
    return not (len(column) and np.isnan(_extremes(column)[0]))


def coded(strings: Sequence[str]) -> Ids:
    """Return the distinct strings and each one's code: an array of them all would be as wide as the widest."""
    places: dict[str, int] = {}
    codes = [places.setdefault(value, len(places)) for value in strings]
    return Ids(np.array(list(places), str), np.array(codes, np.int32))


def _mixed_ids(source: str, field: str) -> InputError:
    return InputError(
        "ids must be a flat sequence, all integers or all strings",
        source=source,
        field=field,
        remedy="give every image and category one id of one type",
    )


def locate(ids: NDArray[Any], within: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of each of `ids` in the ascending array `within`, -1 where it is not there."""
    if not within.size or not ids.size or (ids.dtype.kind == "i") != (within.dtype.kind == "i"):
        return np.full(ids.size, -1, np.int64)
    place = np.minimum(np.searchsorted(within, ids), within.size - 1)
    return np.where(within[place] == ids, place, -1)


def _column(values: ArrayLike, dtype: Any, count: int, source: str, name: str, tail: tuple[int, ...] = ()) -> Any:
    try:
        column = readonly(values, dtype)
    except (TypeError, ValueError, OverflowError):
        raise InputError("expected numbers in a regular array", source=source, field=name) from None
    if isinstance(values, np.ndarray) and values.flags.writeable and np.may_share_memory(values, column):
        column = readonly(column.copy(), dtype)  # the caller may go on to use the array for something else
    if column.size == 0 and count == 0:
        column = readonly(np.empty((0, *tail)), dtype)
    if column.shape != (count, *tail):
        expected = " x ".join(str(n) for n in (count, *tail))
        raise InputError(f"shape {column.shape} where {expected} was expected", source=source, field=name)
    return column


#: Rows from which on threads are worth their start.
_MANY = 100_000

#: Coordinates beyond this have areas beyond what a float holds.
_FARTHEST = 1e150


def _first(bad: NDArray[np.bool_]) -> int:
    return int(np.argmax(bad))


def _boxes(boxes: ArrayLike, box_format: BoxFormat, count: int, source: str) -> tuple[NDArray[np.float64], bool]:
    """Check boxes; return them, with whether columns 2 and 3 are sizes."""
    if box_format not in ("xywh", "xyxy", "cxcywh"):
        raise InputError("unknown box_format; one of xywh, xyxy, cxcywh", source=source, value=box_format)
    column = _column(boxes, np.float64, count, source, "boxes", (4,))
    # The extremes first: they say of most columns that all is well, and row by row numpy takes long.
    lowest, highest = _extremes(column) if column.size else (0.0, 0.0)
    if not (lowest >= -_FARTHEST and highest <= _FARTHEST):
        bad = ~(np.abs(column) <= _FARTHEST).all(axis=1)
        raise InputError(
            "a box must be four finite numbers" + ("" if np.isnan(column[bad]).any() else f" of at most {_FARTHEST:g}"),
            source=source,
            record=_first(bad),
            field="bbox",
            value=column[_first(bad)].tolist(),
            remedy="leave out the record or repair the box",
        )
    if box_format == "xyxy":
        bad = (column[:, 2] < column[:, 0]) | (column[:, 3] < column[:, 1])
        problem, remedy = (
            "the far corner lies before the near one",
            "is it x, y, width, height? That is box_format='xywh'",
        )
    else:
        bad = (column[:, 2] < 0) | (column[:, 3] < 0) if lowest < 0 else np.zeros(0, np.bool_)
        problem, remedy = "width and height must not be negative", "is it x1, y1, x2, y2? That is box_format='xyxy'"
    if bad.any():
        raise InputError(
            problem, source=source, record=_first(bad), field="bbox", value=column[_first(bad)].tolist(), remedy=remedy
        )
    if box_format == "cxcywh":
        shifted = column.copy()
        shifted[:, :2] -= column[:, 2:] / 2
        column = readonly(shifted, np.float64)
    return column, box_format != "xyxy"


def _zero_sized(boxes: NDArray[np.float64], sizes: bool) -> int:
    def count(begin: int, end: int) -> int:
        x, y, p, q = boxes[begin:end].T
        return int(np.count_nonzero((p == 0) | (q == 0) if sizes else (p == x) | (q == y)))

    return sum(_run(count, len(boxes)))


@dataclass(frozen=True, eq=False, kw_only=True)
class GroundTruth(Frozen):
    """The objects to be found: one row per object, in the order in which they were given.

    Build one with `from_arrays`, `detmap.read_coco` or `detmap.read_voc`. Arrays are read-only.

    Attributes
    ----------
    images : Ids
        The images, those without objects included, and each object's.
    categories : Ids
        The categories, and each object's.
    category_names : tuple of str
        Names in the order of ``categories.values``.
    boxes : ndarray of float64, shape (n, 4)
        In pixels: x, y, width, height where `box_sizes`, else x1, y1, x2, y2.
    box_sizes : bool
        What columns 2 and 3 of `boxes` are.
    areas : ndarray of float64, shape (n,)
        Square pixels; decides the area range. Of the mask, where the data says so.
    crowd, difficult : ndarray of bool, shape (n,)
        COCO's ``iscrowd`` and VOC's ``difficult``.
    notices : mapping of str to int
        What was unusual, counted; see `NOTICES`.
    source : str
        Where it came from, for messages.
    """

    images: Ids
    categories: Ids
    category_names: tuple[str, ...]
    boxes: NDArray[np.float64]
    box_sizes: bool
    areas: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    difficult: NDArray[np.bool_]
    notices: Mapping[str, int] = field(default_factory=dict)
    source: str = "ground truth"

    @classmethod
    def from_arrays(
        cls,
        *,
        image_ids: ArrayLike | Ids,
        category_ids: ArrayLike | Ids,
        boxes: ArrayLike,
        box_format: BoxFormat = "xywh",
        areas: ArrayLike | None = None,
        crowd: ArrayLike | None = None,
        difficult: ArrayLike | None = None,
        images: ArrayLike | Ids | None = None,
        categories: ArrayLike | Ids | None = None,
        category_names: Mapping[Any, str] | None = None,
        notices: Mapping[str, int] | None = None,
        source: str = "ground truth",
    ) -> GroundTruth:
        """Build ground truth from columns.

        Parameters
        ----------
        image_ids, category_ids : array_like of int or str, shape (n,)
            Each object's image and category.
        boxes : array_like of float, shape (n, 4)
            In pixels.
        box_format : {"xywh", "xyxy", "cxcywh"}
            Near corner and size, two corners, or centre and size.
        areas : array_like of float, shape (n,), optional
            Width times height by default.
        crowd, difficult : array_like of bool, shape (n,), optional
            False by default.
        images, categories : array_like of int or str, optional
            All ids there are; by default those that objects have. Images without objects matter: what is detected there is
            false.
        category_names : mapping, optional
            Category id to name; the id itself by default.

        Raises
        ------
        InputError
            For ids of mixed types, boxes that are not finite or have a negative size, columns of unequal lengths, or an
            object on an image or of a category that is not listed.
        """
        image, image_index = _indexed(image_ids, images, source, "image_id", "images")
        category, category_index = _indexed(category_ids, categories, source, "category_id", "categories")
        count = image_index.size
        if category_index.size != count:
            raise InputError(f"{category_index.size} category ids for {count} objects", source=source)
        table, sizes = _boxes(boxes, box_format, count, source)
        extent = table[:, 2:] if sizes else table[:, 2:] - table[:, :2]
        area = _column(extent[:, 0] * extent[:, 1] if areas is None else areas, np.float64, count, source, "area")
        bad = ~(area >= 0) | np.isinf(area)
        if bad.any():
            raise InputError(
                "an area must be a finite number of 0 or more",
                source=source,
                record=_first(bad),
                field="area",
                value=float(area[_first(bad)]),
            )
        names = category_names or {}
        flat = [str(names.get(value, value)) for value in category.tolist()]
        counted = dict(notices or {})
        counted["zero_sized_boxes"] = counted.get("zero_sized_boxes", 0) + _zero_sized(table, sizes)
        none = np.zeros(count, np.bool_)
        return cls(
            images=Ids(image, image_index),
            categories=Ids(category, category_index),
            category_names=tuple(flat),
            boxes=table,
            box_sizes=sizes,
            areas=area,
            crowd=_column(none if crowd is None else crowd, np.bool_, count, source, "crowd"),
            difficult=_column(none if difficult is None else difficult, np.bool_, count, source, "difficult"),
            notices=counted,
            source=source,
        )

    def __len__(self) -> int:
        """Return the number of objects."""
        return int(self.areas.size)

    def __repr__(self) -> str:
        return f"<GroundTruth: {len(self)} objects, {self.images.values.size} images, {len(self.category_names)} categories>"


@dataclass(frozen=True, eq=False, kw_only=True)
class Detections(Frozen):
    """What a detector says it found: one row per detection, in the order in which they were given.

    Build one with `from_arrays`, `detmap.read_coco_results` or `detmap.read_voc_results`. Arrays are read-only.

    Attributes
    ----------
    images, categories : Ids
        The images and categories that occur, and each detection's.
    boxes : ndarray of float64, shape (n, 4)
        In pixels: x, y, width, height where `box_sizes`, else x1, y1, x2, y2.
    box_sizes : bool
        What columns 2 and 3 of `boxes` are.
    scores : ndarray of float64, shape (n,)
        Higher is surer; any scale.
    notices : mapping of str to int
        What was unusual, counted; see `NOTICES`.
    source : str
        Where it came from, for messages.
    """

    images: Ids
    categories: Ids
    boxes: NDArray[np.float64]
    box_sizes: bool
    scores: NDArray[np.float64]
    notices: Mapping[str, int] = field(default_factory=dict)
    source: str = "detections"

    @classmethod
    def from_arrays(
        cls,
        *,
        image_ids: ArrayLike | Ids,
        category_ids: ArrayLike | Ids,
        boxes: ArrayLike,
        scores: ArrayLike,
        box_format: BoxFormat = "xywh",
        notices: Mapping[str, int] | None = None,
        source: str = "detections",
    ) -> Detections:
        """Build detections from columns.

        Parameters
        ----------
        image_ids, category_ids : array_like of int or str, shape (n,)
            Each detection's image and category.
        boxes : array_like of float, shape (n, 4)
            In pixels.
        scores : array_like of float, shape (n,)
            Higher is surer.
        box_format : {"xywh", "xyxy", "cxcywh"}
            Near corner and size, two corners, or centre and size.

        Raises
        ------
        InputError
            For ids of mixed types, boxes that are not finite or have a negative size, a NaN score, or columns of unequal
            lengths.
        """
        images = index_ids(image_ids, source=source, field="image_id")
        categories = index_ids(category_ids, source=source, field="category_id")
        count = images.codes.size
        if categories.codes.size != count:
            raise InputError(f"{categories.codes.size} category ids for {count} detections", source=source)
        table, sizes = _boxes(boxes, box_format, count, source)
        score = _column(scores, np.float64, count, source, "score")
        bad = np.isnan(score)
        if bad.any():
            raise InputError(
                "a score must be a number",
                source=source,
                record=_first(bad),
                field="score",
                value=float("nan"),
                remedy="leave out the record: NaN has no place in a ranking",
            )
        counted = dict(notices or {})
        counted["zero_sized_boxes"] = counted.get("zero_sized_boxes", 0) + _zero_sized(table, sizes)
        return cls(
            images=images,
            categories=categories,
            boxes=table,
            box_sizes=sizes,
            scores=score,
            notices=counted,
            source=source,
        )

    def on_images_of(self, ground_truth: GroundTruth, unknown: Literal["error", "ignore"] = "error") -> Detections:
        """Return the detections that lie on images of the ground truth.

        Parameters
        ----------
        ground_truth : GroundTruth
            Whose images count.
        unknown : {"error", "ignore"}
            What to do where others occur; ``ignore`` drops and counts them.

        Raises
        ------
        InputError
            Where others occur, names the first.
        """
        if not isinstance(ground_truth, GroundTruth):
            raise InputError(
                f"expected GroundTruth, not {type(ground_truth).__name__}",
                remedy="read it first: detmap.read_coco, detmap.read_voc",
            )
        if unknown not in ("error", "ignore"):
            raise InputError("unknown_images must be 'error' or 'ignore'", value=unknown)
        known = locate(self.images.values, ground_truth.images.values) >= 0
        if known.all():
            return self
        kept = known[self.images.codes]
        if unknown == "error":
            record = _first(~kept)
            raise InputError(
                "is not an image of the ground truth",
                source=self.source,
                record=record,
                field="image_id",
                value=self.images.values[self.images.codes[record]].item(),
                remedy="are both of one data set? Such detections are dropped with unknown_images='ignore' "
                "(--unknown-images ignore)",
            )
        return Detections.from_arrays(
            image_ids=self.images.values[self.images.codes[kept]],
            category_ids=self.categories.values[self.categories.codes[kept]],
            boxes=self.boxes[kept],
            scores=self.scores[kept],
            box_format="xywh" if self.box_sizes else "xyxy",
            notices={**self.notices, "zero_sized_boxes": 0, "unknown_image": int((~kept).sum())},
            source=self.source,
        )

    def __len__(self) -> int:
        """Return the number of detections."""
        return int(self.scores.size)

    def __repr__(self) -> str:
        return f"<Detections: {len(self)} on {self.images.values.size} images>"


def _indexed(
    ids: ArrayLike | Ids, listed: ArrayLike | Ids | None, source: str, field: str, plural: str
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Index `ids` among `listed`, or among themselves."""
    own = index_ids(ids, source=source, field=field)
    if listed is None:
        return own
    known = index_ids(listed, source=source, field=plural).values
    place = locate(own.values, known)
    if (place < 0).any():
        missing = _first(place < 0)
        raise InputError(
            f"is not among the {plural}",
            source=source,
            record=int(np.argmax(own.codes == missing)),
            field=field,
            value=own.values[missing].item(),
            remedy=f"list it under {plural} or leave out the record",
        )
    return known, readonly(place.astype(np.int32)[own.codes], np.int32)


def check_pair(ground_truth: object, detections: object) -> None:
    """Refuse anything but a `GroundTruth` and `Detections`, in that order.

    Raises
    ------
    InputError
        Says so where the two are swapped.
    """
    if isinstance(ground_truth, Detections) and isinstance(detections, GroundTruth):
        raise InputError("the arguments are swapped", remedy="give the ground truth first, then the detections")
    for value, kind in ((ground_truth, GroundTruth), (detections, Detections)):
        if not isinstance(value, kind):
            raise InputError(
                f"expected {kind.__name__}, not {type(value).__name__}",
                remedy=f"read or build one first: detmap.read_coco, {kind.__name__}.from_arrays, …",
            )


def select(ids: Sequence[Any] | ArrayLike, known: NDArray[Any], what: str) -> NDArray[np.bool_]:
    """Return which of `known` the `ids` ask for.

    Raises
    ------
    InputError
        Where one of them is not known.
    """
    if not isinstance(ids, np.ndarray | Ids):
        ids = list(ids)  # type: ignore[arg-type]  # sets and iterators too
    wanted = index_ids(ids, source="evaluate", field=what).values
    place = locate(wanted, known)
    if (place < 0).any():
        raise InputError(
            "is not in the ground truth", source="evaluate", field=what, value=wanted[_first(place < 0)].item()
        )
    mask = np.zeros(known.size, np.bool_)
    mask[place] = True
    return mask
