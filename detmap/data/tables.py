"""Ground truth and detections: validated, immutable columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import columns
from detmap.data.crowding import crowd_index_column
from detmap.data.display import record, table_fragment
from detmap.data.federated import CategoryLists, Lists, frequency_column
from detmap.data.frames import Framed
from detmap.data.ids import (
    Categories,
    Clusters,
    Ids,
    Images,
    categories_given,
    cluster_column,
    index_among,
    index_ids,
    locate,
    order_of_images,
    sizes_of_images,
    unknown_image,
    used,
)
from detmap.data.notices import added
from detmap.errors import InputError, check_allowed, shorten
from detmap.kernels import Frozen, readonly
from detmap.shapes import KINDS, Boxes, Column, find
from detmap.shapes import boxes as box_columns
from detmap.shapes.boxes import BoxFormat, Checked, InvalidBoxes, extremes
from detmap.shapes.kinds import BOXES

MissingClasses = Literal["zero", "error", "skip"]


def complete(column: NDArray[np.float64]) -> bool:
    """Return whether a column holds no NaN."""
    return not (len(column) and np.isnan(extremes(column)[0]))


def _column(column: NDArray[Any], values: Any, count: int, source: str, name: str, tail: tuple[int, ...] = ()) -> Any:
    """Return a read-only column. It is copied if the caller could still change it through `values`."""
    if isinstance(values, np.ndarray) and values.flags.writeable and np.may_share_memory(values, column):
        column = column.copy()
    column = readonly(column, column.dtype)
    if column.size == 0 and count == 0:
        column = readonly(np.empty((0, *tail)), column.dtype)
    if column.shape != (count, *tail):
        expected = " x ".join(str(n) for n in (count, *tail))
        raise InputError(f"shape {column.shape} where {expected} was expected", source=source, field=name)
    return column


def _numbers(values: Any, count: int, source: str, name: str, tail: tuple[int, ...] = ()) -> NDArray[np.float64]:
    column: NDArray[np.float64] = _column(
        columns.numbers(values, source=source, field=name), values, count, source, name, tail
    )
    return column


def _optional(values: Any, count: int, source: str, name: str) -> NDArray[np.float64]:
    """Return a column of numbers or flags, with NaN for each value that is None."""
    if isinstance(values, list | tuple) or getattr(getattr(values, "dtype", None), "kind", "") == "O":
        values = [np.nan if value is None else value for value in values]
    made = columns.numbers(values, source=source, field=name, booleans=True)
    column: NDArray[np.float64] = _column(made, values, count, source, name)
    return column


def _flags(values: Any, count: int, source: str, name: str) -> NDArray[np.bool_]:
    if values is None:
        return readonly(np.zeros(count, np.bool_), np.bool_)
    column: NDArray[np.bool_] = _column(columns.flags(values, source=source, field=name), values, count, source, name)
    return column


def _boxes(
    boxes: Any,
    shapes: Mapping[str, Column] | None,
    count: int,
    source: str,
    box_format: BoxFormat,
    invalid_boxes: InvalidBoxes,
) -> Checked:
    """Check boxes; if none are given, use the bounding boxes of the first column of `shapes`."""
    for name, column in (shapes or {}).items():
        kind = find(name)
        if name == BOXES or kind.stored or not isinstance(column, kind.column):
            raise InputError(f"expected a {kind.column.__name__}", source=source, field=f"shapes[{name!r}]")
        if len(column) != count:
            raise InputError(f"{len(column)} shapes for {count} records", source=source, field=f"shapes[{name!r}]")
    if boxes is None and shapes:
        bounds = next(iter(shapes.values())).bounds()
        boxes, box_format = bounds.table, "xywh" if bounds.sizes else "xyxy"
    return box_columns.check(_numbers(boxes, count, source, "boxes", (4,)), box_format, invalid_boxes, source)


def _columns(shapes: Mapping[str, Column] | None, source: str, **values: Any) -> dict[str, Column]:
    """Return the columns `shapes`, and the columns made from keyword arguments such as `masks`."""
    columns = dict(shapes or {})
    if all(value is None for value in values.values()):
        return columns
    for kind in KINDS.values():
        value = values.get(kind.argument)
        if value is not None and kind.given is not None and not kind.stored:
            if kind.name in columns:
                raise InputError("is given twice", source=source, field=kind.argument, remedy="keep one of the two")
            columns[kind.name] = kind.given(value, source)
    return columns


def _categories(category_ids: Any, labels: Any, source: str) -> Any:
    """Return the categories, given as `category_ids` or as `labels`."""
    given = categories_given(category_ids, labels)
    if given is None:
        raise InputError(
            "are missing", source=source, field="category_ids", remedy="give category_ids=..., one per box"
        )
    return given


def _kinds(kinds: Sequence[str] | None, boxes: Any, shapes: Mapping[str, Column], source: str) -> tuple[str, ...]:
    """Return the kinds of geometry to score: the requested `kinds`, which the table must have, or all given kinds."""
    if kinds is None:
        return (*(() if boxes is None and shapes else (BOXES,)), *shapes)
    named = () if isinstance(kinds, str) else tuple(dict.fromkeys(find(kind).name for kind in kinds))
    absent = [kind for kind in named if find(kind).column_name not in (BOXES, *shapes)]
    if absent or not named:
        held = ", ".join((BOXES, *shapes))
        raise InputError(
            "must list kinds of shape that are given",
            source=source,
            field="kinds",
            value=kinds,
            remedy=f"these are given: {held}",
        )
    return named


def _shapes(checked: Checked, others: Mapping[str, Column] | None) -> dict[str, Column]:
    """Return the columns of a table by kind, boxes first, for the rows that were kept."""
    rows = checked.kept
    taken = {name: column if rows is None else column.take(rows) for name, column in (others or {}).items()}
    return {BOXES: checked.boxes, **taken}


class _Shaped(Framed):
    """Base class of `GroundTruth` and `Detections`."""

    make_ids = Ids
    shapes: Mapping[str, Column]
    kinds: tuple[str, ...]
    source: str

    if TYPE_CHECKING:

        def __len__(self) -> int: ...
        def take(self, rows: ArrayLike) -> Any: ...

    @property
    def boxes(self) -> NDArray[np.float64]:
        """The coordinates of ``shapes["bbox"]``, shape (n, 4)."""
        boxes = self.shapes[BOXES]
        assert isinstance(boxes, Boxes)
        return boxes.table

    @property
    def box_sizes(self) -> bool:
        """Whether columns 2 and 3 of `boxes` are width and height."""
        boxes = self.shapes[BOXES]
        assert isinstance(boxes, Boxes)
        return boxes.sizes

    def __getitem__(self, rows: Any) -> Any:
        """Return one row as a dict of plain values by column name of `to_arrow`, or a table of several rows for a
        slice, indices or a boolean mask, as in `take`.

        A table of one row is ``table[[0]]``.

        Raises
        ------
        IndexError
            For a row that does not exist.
        InputError
            For the name of a column, because columns are attributes.
        """
        if isinstance(rows, slice):
            return self.take(np.arange(len(self))[rows])
        if isinstance(rows, str | bool):
            have = ", ".join(name for name in ("boxes", "scores", "areas", "crowd", "difficult") if hasattr(self, name))
            raise InputError(
                f"a table is indexed by rows, not by {shorten(rows)}",
                source=self.source,
                remedy=f"columns are attributes: images.ids, images.codes, categories.ids, categories.codes, {have}",
            )
        if isinstance(rows, int | np.integer):
            if not -len(self) <= rows < len(self):
                raise IndexError(f"there is no row {rows}: the table has {len(self)}")
            return record(cast("GroundTruth | Detections", self), int(rows))
        return self.take(rows)

    def _repr_html_(self) -> str:
        return table_fragment(cast("GroundTruth | Detections", self))

    def shape(self, kind: str) -> Column:
        """Return the column of a kind of shape.

        Raises
        ------
        InputError
            If the table has no such column.
        """
        known = find(kind)
        if known.column_name not in self.shapes:
            given = f"{known.argument}=..." if known.argument and KINDS.is_shipped(known.name) else "shapes={...}"
            read = f", or read the file with iou_type={kind!r}" if known.reader or KINDS.is_shipped(known.name) else ""
            raise InputError(
                f"there are no shapes of the kind {known.column_name!r} here, only: {', '.join(self.shapes)}",
                source=self.source,
                remedy=f"give them as {given}{read}, or choose another iou_type",
            )
        return self.shapes[known.column_name]


def _first(bad: NDArray[np.bool_]) -> int:
    return int(np.argmax(bad))


def _of(rows: NDArray[np.bool_] | None, *given: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the `rows` of columns; None selects all rows."""
    return list(given) if rows is None else [readonly(column[rows], column.dtype) for column in given]


@dataclass(frozen=True, eq=False, kw_only=True)
class GroundTruth(_Shaped, Frozen):
    """The objects to be found: one row per object, in the given order.

    Build one with `from_arrays`, `detmap.read_coco` or `detmap.read_voc`. Arrays are read-only.

    Attributes
    ----------
    images : Images
        All images, with or without objects: ``images.ids``, and ``images.sizes`` if the sizes are known. Object *k* is on
        the image ``images.ids[images.codes[k]]``.
    categories : Categories
        All categories, with or without objects: ``categories.ids`` and ``categories.names``. Object *k* is of the category
        ``categories.ids[categories.codes[k]]``.
    shapes : mapping of str to Column
        A column of geometries for each kind, such as boxes or masks, by its `iou_type`; "bbox" is always there.
    kinds : tuple of str
        The kinds of shape that the table was made for, which `detmap.evaluate` scores unless another kind is requested.
    boxes : ndarray of float64, shape (n, 4)
        Boxes in pixels: x, y, width, height if `box_sizes`, else x1, y1, x2, y2. An alias of the array in
        ``shapes["bbox"]``.
    box_sizes : bool
        Whether columns 2 and 3 of `boxes` are width and height.
    areas : ndarray of float64, shape (n,)
        Areas in square pixels, by which objects are assigned to area ranges. Areas that are not given are computed, see
        `from_arrays`.
    crowd, difficult : ndarray of bool, shape (n,)
        COCO's ``iscrowd`` and VOC's ``difficult``.
    zero_ids : ndarray of bool, shape (n,), or None
        Whether the annotation of an object has the id 0, see `Protocol.id_zero`. None if no annotation has the id 0.
        Only COCO's JSON has ids of annotations.
    group_of : ndarray of bool, shape (n,), or None
        Whether a box stands for a group of objects, Open Images' ``IsGroupOf``; see `Protocol.group_of`. None if no box
        stands for a group.
    negatives, not_exhaustive : CategoryLists, or None
        For each image, the categories that are known to be absent (LVIS's ``neg_category_ids``), and the categories
        whose objects may not all be annotated (``not_exhaustive_category_ids``). See `Protocol.judged` and
        `Protocol.not_exhaustive`. None if no image has such a list.
    part_flags : mapping of str to ndarray of bool, shape (n,)
        Whether a part of each object's pose is valid, by name of the flag, as COCO-WholeBody's ``foot_valid``; see
        `Protocol.valid_flag`.
    present : CategoryLists, or None
        The categories that are known to be on an image, with or without boxes: Open Images' verified labels of confidence
        1. See `Protocol.judged`. None if no image has such a list.
    fields : mapping of str to ndarray of float64, shape (n,)
        Other fields of the objects by name, such as occlusion, which `Protocol.levels` read; NaN where an object has no
        value.
    within_unit : bool
        Whether boxes seem to be normalised, because nearly all coordinates lie within 0 to 1, and some of these
        have fractions.
    notices : mapping of str to int
        The number of occurrences of each kind of unusual input, by code; see `detmap.data.notices.NOTICES`.
    source : str
        Name of the file or of the data, for messages.
    whole : GroundTruth, or None
        For a subset of images and categories, the table from which the subset was taken; otherwise None. Detections are
        left out if their image or category is in the whole table but not in the subset.
    category_names : tuple of str
        An alias of ``categories.names``. This alias and ``categories.values``, an alias of ``categories.ids``, will be
        removed in version 0.2.
    image_sizes : ndarray of int64, shape (i, 2), or None
        An alias of ``images.sizes``. This alias and ``images.values``, an alias of ``images.ids``, will be removed in
        version 0.2.
    """

    images: Images
    categories: Categories
    shapes: Mapping[str, Column]
    areas: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    difficult: NDArray[np.bool_]
    zero_ids: NDArray[np.bool_] | None = None
    group_of: NDArray[np.bool_] | None = None
    negatives: CategoryLists | None = None
    not_exhaustive: CategoryLists | None = None
    present: CategoryLists | None = None
    fields: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    within_unit: bool = False
    notices: Mapping[str, int] = field(default_factory=dict)
    source: str = "ground truth"
    kinds: tuple[str, ...] = (BOXES,)
    part_flags: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    whole: GroundTruth | None = None

    @property
    def category_names(self) -> tuple[str, ...]:
        """An alias of ``categories.names``, to be removed in version 0.2."""
        return self.categories.names

    @property
    def image_sizes(self) -> NDArray[np.int64] | None:
        """An alias of ``images.sizes``, to be removed in version 0.2."""
        return self.images.sizes

    @classmethod
    def from_arrays(
        cls,
        *,
        image_ids: ArrayLike | Ids,
        category_ids: ArrayLike | Ids | None = None,
        labels: ArrayLike | Ids | None = None,
        boxes: ArrayLike | None = None,
        masks: Any = None,
        keypoints: Any = None,
        rotated: Any = None,
        segments: Any = None,
        tracks: Any = None,
        shapes: Mapping[str, Column] | None = None,
        kinds: Sequence[str] | None = None,
        box_format: BoxFormat = "xywh",
        areas: ArrayLike | None = None,
        crowd: ArrayLike | None = None,
        difficult: ArrayLike | None = None,
        zero_ids: ArrayLike | None = None,
        group_of: ArrayLike | None = None,
        images: ArrayLike | Ids | None = None,
        categories: ArrayLike | Ids | None = None,
        category_names: Mapping[Any, str] | None = None,
        invalid_boxes: InvalidBoxes = "error",
        image_sizes: ArrayLike | None = None,
        neg_category_ids: Lists | None = None,
        not_exhaustive_category_ids: Lists | None = None,
        pos_category_ids: Lists | None = None,
        frequencies: Mapping[Any, str] | None = None,
        crowd_index: Mapping[Any, float] | None = None,
        part_flags: Mapping[str, ArrayLike] | None = None,
        fields: Mapping[str, ArrayLike] | None = None,
        notices: Mapping[str, int] | None = None,
        source: str = "ground truth",
    ) -> GroundTruth:
        """Build ground truth from columns.

        Parameters
        ----------
        image_ids, category_ids : array_like of int or str, shape (n,)
            Each object's image and category.
        labels : array_like of int or str, shape (n,), optional
            Another name of `category_ids`: give one of the two.
        boxes : array_like of float, shape (n, 4)
            Boxes in pixels. If left out, the enclosing boxes of the other shapes are used.
        masks : array_like of bool or uint8, shape (n, height, width), or Masks, or list of mappings, optional
            Bitmaps (arrays or tensors), a `detmap.masks.Masks`, or run-length codes; for ``iou_type`` "segm" and "boundary".
        keypoints : array_like of float, shape (n, k, 3), optional
            x, y and visibility of each point; for ``iou_type`` "keypoints".
        rotated : array_like of float, shape (n, 5), (n, 8) or (n, 4, 2), or Rotated, optional
            Rotated boxes for ``iou_type`` "rotated" and "probiou". Each is given by centre x, y, width, height and angle
            in radians, clockwise on the screen, or by its four corners. `detmap.shapes.rotated.Rotated` takes other angles.
        segments : array_like of float, shape (n, 2), optional
            Start and end of segments of time, for ``iou_type`` "temporal" and "temporal_span"; an image is a video.
        tracks : list of list of mapping or None, optional
            For each track, a list with a run-length code or None for each frame of the video, for ``iou_type`` "tracks";
            an image is a video.
        shapes : mapping of str to Column, optional
            Columns of other kinds of shape, by their `iou_type`; see `detmap.shapes`.
        kinds : sequence of str, optional
            The kinds of shape to score, by their `iou_type`; by default all given kinds. With several kinds,
            `detmap.evaluate` needs an ``iou_type``.
        box_format : {"xywh", "xyxy", "cxcywh"}
            Near corner and size, two corners, or centre and size. If a protocol has inclusive pixels, as VOC's has, the
            far corner of a box given by its size is ``x + width - 1``, and a box given by corners is ``x2 - x1 + 1`` wide.
        areas : array_like of float, shape (n,), optional
            Width times height by default; if `boxes` are left out, the areas of the masks or other geometries.
        crowd, difficult : array_like of bool, shape (n,), optional
            False by default; numbers must be 0 or 1.
        zero_ids : array_like of bool, shape (n,), optional
            Whether the annotation of an object has the id 0; False by default.
        group_of : array_like of bool, shape (n,), optional
            Whether a box stands for a group of objects; by default no box does.
        images, categories : array_like of int or str, optional
            All ids; by default the ids of the objects. Images without objects matter, because detections on them are
            false positives.
        category_names : mapping, optional
            Category id to name; the id itself by default.
        invalid_boxes : {"error", "miss", "drop"}
            How boxes of negative width or height are treated. ``miss`` keeps them as objects that nothing overlaps, of area
            0 unless `areas` says otherwise. ``drop`` leaves out these boxes and those that are not finite. Notices count
            such boxes.
        image_sizes : array_like of int, shape (i, 2), optional
            Height and width of each of `images`, in their order; 0 if unknown. Polygons of results require the sizes.
        neg_category_ids, not_exhaustive_category_ids : mapping of image id to sequence of category ids, optional
            For federated data such as LVIS: categories that are known to be absent from an image, and categories whose
            objects may not all be annotated. Categories that are not among `categories` are left out.
        pos_category_ids : mapping of image id to sequence of category ids, optional
            Categories that are known to be on an image, with or without boxes, as Open Images' verified labels say.
        frequencies : mapping of category id to {"r", "c", "f"}, optional
            Whether a category is rare, common or frequent, for the metrics APr, APc and APf.
        crowd_index : mapping of image id to float, optional
            The crowd index of an image, for `Protocol.crowd_groups`.
        part_flags : mapping of str to array_like of bool, shape (n,), optional
            Whether a part of each object's pose is valid, as ``{"foot_valid": [...]}``, for `Protocol.valid_flag`.
        fields : mapping of str to array_like of float or bool, shape (n,), optional
            Other fields of the objects that levels of difficulty read, as ``{"occlusion": [0, 2, 1]}``; None or NaN if
            an object has no value.

        Raises
        ------
        InputError
            If ids are missing or of mixed types; if a box is not finite or has a negative size; if values are masked,
            missing or of another type; if columns differ in length; or if the image or category of an object is not
            listed.
        """
        image = index_among(image_ids, images, source, "image_id", "images")
        category = index_among(
            _categories(category_ids, labels, source), categories, source, "category_id", "categories"
        )
        count = image.codes.size
        if category.codes.size != count:
            raise InputError(f"{category.codes.size} category ids for {count} objects", source=source)
        shapes = _columns(
            shapes, source, masks=masks, keypoints=keypoints, rotated=rotated, segments=segments, tracks=tracks
        )
        checked = _boxes(boxes, shapes, count, source, box_format, invalid_boxes)
        if areas is None and boxes is None and shapes:
            areas = next(iter(shapes.values())).areas()
        given = areas is not None
        area = _numbers(areas, count, source, "area") if given else checked.boxes.areas()
        bad = ~(area >= 0) | np.isinf(area)
        if bad.any():
            raise InputError(
                "an area must be a finite number of 0 or more",
                source=source,
                record=_first(bad),
                field="area",
                value=float(area[_first(bad)]),
                remedy="leave out the areas: they are width times height then",
            )
        given_flags = (("crowd", crowd), ("difficult", difficult), ("zero_ids", zero_ids), ("group_of", group_of))
        flags = [_flags(value, count, source, name) for name, value in given_flags]
        image_codes, category_codes, *flags = _of(checked.kept, image.codes, category.codes, *flags)
        zero = bool(flags[2].any())
        names = {} if category_names is None else category_names
        if not isinstance(names, Mapping):
            problem = f"must be a mapping of category id to name, not {type(names).__name__}"
            raise InputError(problem, source=source, field="category_names")
        flat = [str(names.get(value, value)) for value in category.ids.tolist()]

        def lists(given: Lists | None, name: str) -> CategoryLists | None:
            return None if given is None else CategoryLists.of(given, image.ids, category.ids, source, name)

        return cls(
            images=Images(
                image.ids,
                image_codes,
                sizes_of_images(image_sizes, images, image.ids, source),
                order=order_of_images(images, image.ids, source),
                crowd_index=crowd_index_column(crowd_index, image.ids, source),
            ),
            categories=Categories(
                category.ids, category_codes, tuple(flat), frequency_column(frequencies, category.ids, source)
            ),
            shapes=_shapes(checked, shapes),
            kinds=_kinds(kinds, boxes, shapes, source),
            areas=_of(checked.kept if given else None, readonly(area, np.float64))[0],
            crowd=flags[0],
            difficult=flags[1],
            zero_ids=flags[2] if zero else None,
            group_of=flags[3] if flags[3].any() else None,
            negatives=lists(neg_category_ids, "neg_category_ids"),
            not_exhaustive=lists(not_exhaustive_category_ids, "not_exhaustive_category_ids"),
            present=lists(pos_category_ids, "pos_category_ids"),
            fields={
                str(name): _of(checked.kept, _optional(values, count, source, str(name)))[0]
                for name, values in (fields or {}).items()
            },
            within_unit=checked.within_unit,
            part_flags={
                name: _of(checked.kept, _flags(values, count, source, name))[0]
                for name, values in (part_flags or {}).items()
            },
            notices=added(added(notices, {"zero_id": int(flags[2].sum())} if zero else {}), checked.notices),
            source=source,
        )

    def take(self, rows: ArrayLike) -> GroundTruth:
        """Return some of the objects, without checking them again; images, categories and notices stay as they are.

        Parameters
        ----------
        rows : array_like of int or bool
            Indices, or a boolean mask of shape (n,).
        """
        chosen = np.asarray(rows)
        return replace(
            self,
            images=self.images.take(chosen),
            categories=self.categories.take(chosen),
            shapes={name: column.take(chosen) for name, column in self.shapes.items()},
            areas=readonly(self.areas[chosen], np.float64),
            crowd=readonly(self.crowd[chosen], np.bool_),
            difficult=readonly(self.difficult[chosen], np.bool_),
            zero_ids=None if self.zero_ids is None else readonly(self.zero_ids[chosen], np.bool_),
            part_flags={name: readonly(flags[chosen], np.bool_) for name, flags in self.part_flags.items()},
            group_of=None if self.group_of is None else readonly(self.group_of[chosen], np.bool_),
            fields={name: readonly(values[chosen], np.float64) for name, values in self.fields.items()},
        )

    def with_clusters(self, clusters: Clusters | None) -> GroundTruth:
        """Return the same objects with images in clusters. The bootstrap then draws, and tests permute, whole clusters.

        Parameters
        ----------
        clusters : mapping of image id to cluster, or array_like of int or str, shape (i,), or None
            The cluster of each image, such as the video of a frame, by image id or in the order of ``images.ids``. None
            if images are independent.

        Raises
        ------
        InputError
            If an image has no cluster, or clusters are neither all integers nor all strings.
        """
        column = None if clusters is None else cluster_column(clusters, self.images.ids, "clusters")
        return replace(self, images=replace(self.images, clusters=column))

    def with_images(self, ids: NDArray[Any]) -> GroundTruth:
        """Return the same objects with further images, which have no objects.

        Parameters
        ----------
        ids : ndarray of int or str
            Ids of images in any order. Images that the table already has are unchanged; ids of another type than the
            table's are ignored.
        """
        own = self.images.ids
        if (own.size and own.dtype.kind != ids.dtype.kind) or not (locate(ids, own) < 0).any():
            return self
        made = np.union1d(own, ids) if own.size else np.unique(ids)
        at = locate(own, made)
        lists = {name: getattr(self, name) for name in ("negatives", "not_exhaustive", "present")}
        lists = {name: None if one is None else one.spread(at, made.size) for name, one in lists.items()}
        return replace(self, images=self.images.among(made), **lists)

    def __len__(self) -> int:
        """Return the number of objects."""
        return int(self.areas.size)

    def __repr__(self) -> str:
        return (
            f"<GroundTruth ({', '.join(self.kinds)}): {len(self)} objects, {self.images.ids.size} images, "
            f"{self.categories.ids.size} categories>"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Detections(_Shaped, Frozen):
    """The output of a detector: one row per detection, in the given order.

    Build one with `from_arrays`, `detmap.read_coco_results` or `detmap.read_voc_results`. Arrays are read-only.

    Attributes
    ----------
    images, categories : Ids
        The images and categories of the detections. Detection *k* is on the image ``images.ids[images.codes[k]]`` and of
        the category ``categories.ids[categories.codes[k]]``. ``values`` is an alias of ``ids``, to
        be removed in version 0.2.
    shapes : mapping of str to Column
        A column of geometries for each kind, such as boxes or masks, by its `iou_type`; "bbox" is always there.
    kinds : tuple of str
        The kinds of shape that the table was made for, which `detmap.evaluate` scores unless another kind is requested.
    boxes : ndarray of float64, shape (n, 4)
        Boxes in pixels: x, y, width, height if `box_sizes`, else x1, y1, x2, y2. An alias of the array in
        ``shapes["bbox"]``.
    box_sizes : bool
        Whether columns 2 and 3 of `boxes` are width and height.
    scores : ndarray of float64, shape (n,)
        Confidence on any scale; higher is more confident.
    within_unit : bool
        Whether boxes seem to be normalised, because nearly all coordinates lie within 0 to 1, and some of these
        have fractions.
    classes : tuple of str, or None
        The classes with a file, if results come as a file per class.
    missing_classes : {"zero", "error", "skip"}
        Treatment of scored classes without a file. "zero" gives such a class AP 0 and a notice, "error" raises
        `InputError`, and "skip" leaves such classes out.
    notices : mapping of str to int
        The number of occurrences of each kind of unusual input, by code; see `detmap.data.notices.NOTICES`.
    source : str
        Name of the file or of the data, for messages.
    more_scores : mapping of str to ndarray of float64, shape (n,)
        Other scores of each detection by name, such as the score of a part of its pose; NaN if a detection has none. See
        `Protocol.score_field`.
    areas : ndarray of float64, shape (n,), or None
        Areas in square pixels, by which detections are assigned to area ranges. NaN stands for the area of the mask or
        other geometry. None if there are only boxes.
    """

    images: Ids
    categories: Ids
    shapes: Mapping[str, Column]
    scores: NDArray[np.float64]
    within_unit: bool = False
    classes: tuple[str, ...] | None = None
    missing_classes: MissingClasses = "zero"
    notices: Mapping[str, int] = field(default_factory=dict)
    source: str = "detections"
    areas: NDArray[np.float64] | None = None
    kinds: tuple[str, ...] = (BOXES,)
    more_scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        *,
        image_ids: ArrayLike | Ids,
        category_ids: ArrayLike | Ids | None = None,
        labels: ArrayLike | Ids | None = None,
        boxes: ArrayLike | None = None,
        masks: Any = None,
        keypoints: Any = None,
        rotated: Any = None,
        segments: Any = None,
        tracks: Any = None,
        shapes: Mapping[str, Column] | None = None,
        kinds: Sequence[str] | None = None,
        scores: ArrayLike,
        more_scores: Mapping[str, ArrayLike] | None = None,
        areas: ArrayLike | None = None,
        box_format: BoxFormat = "xywh",
        invalid_boxes: InvalidBoxes = "error",
        notices: Mapping[str, int] | None = None,
        source: str = "detections",
    ) -> Detections:
        """Build detections from columns.

        Parameters
        ----------
        image_ids, category_ids : array_like of int or str, shape (n,)
            Each detection's image and category.
        labels, boxes, masks, keypoints, rotated, segments, tracks, shapes, kinds
            See `GroundTruth.from_arrays`.
        scores : array_like of float, shape (n,)
            Confidence; higher is more confident.
        more_scores : mapping of str to array_like of float, shape (n,), optional
            Other scores by name, as ``{"foot_score": [...]}``, for `Protocol.score_field`; NaN where a detection has none.
        areas : array_like of float, shape (n,), optional
            Areas in square pixels, for detections with masks or other geometries. NaN stands for the geometry's own area.
            The default is the area of the box if `boxes` are given, as in pycocotools, else the area of the geometry.
        box_format : {"xywh", "xyxy", "cxcywh"}
            Near corner and size, two corners, or centre and size; see `GroundTruth.from_arrays`.
        invalid_boxes : {"error", "miss", "drop"}
            How boxes of negative width or height are treated. ``miss`` keeps them as detections that overlap nothing, as
            pycocotools and VOC's development kit do. (Under COCO's rule a box with one negative side has a negative area,
            which is outside of every area range, so the box is ignored.) ``drop`` leaves out these boxes and those that
            are not finite. Notices count such boxes.

        Raises
        ------
        InputError
            If ids are missing or of mixed types; if a box is not finite or has a negative size; if a score is NaN; if
            values are masked, missing or of another type; or if columns differ in length.
        """
        images = index_ids(image_ids, source=source, field="image_id")
        categories = index_ids(_categories(category_ids, labels, source), source=source, field="category_id")
        count = images.codes.size
        if categories.codes.size != count:
            raise InputError(f"{categories.codes.size} category ids for {count} detections", source=source)
        shapes = _columns(
            shapes, source, masks=masks, keypoints=keypoints, rotated=rotated, segments=segments, tracks=tracks
        )
        checked = _boxes(boxes, shapes, count, source, box_format, invalid_boxes)
        score = _numbers(scores, count, source, "score")
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
        own = None
        if areas is not None:
            own = _of(checked.kept, _numbers(areas, count, source, "area"))[0]
        elif boxes is not None and shapes:
            table = checked.boxes.table
            sides = table[:, 2:] if checked.boxes.sizes else table[:, 2:] - table[:, :2]
            own = readonly(sides[:, 0] * sides[:, 1], np.float64)
        elif shapes:
            own = _of(checked.kept, readonly(next(iter(shapes.values())).areas(), np.float64))[0]
        if checked.kept is not None:
            images, categories = used(images, checked.kept), used(categories, checked.kept)
        return cls(
            images=images,
            categories=categories,
            shapes=_shapes(checked, shapes),
            kinds=_kinds(kinds, boxes, shapes, source),
            scores=_of(checked.kept, score)[0],
            within_unit=checked.within_unit,
            notices=added(notices, checked.notices),
            source=source,
            areas=own,
            more_scores={
                name: _of(checked.kept, _numbers(values, count, source, name))[0]
                for name, values in (more_scores or {}).items()
            },
        )

    def on_images_of(self, ground_truth: GroundTruth, unknown: Literal["error", "ignore"] = "error") -> Detections:
        """Return the detections that lie on images of the ground truth.

        Parameters
        ----------
        ground_truth : GroundTruth
            The ground truth that lists the images.
        unknown : {"error", "ignore"}
            What to do with detections on other images; ``ignore`` drops and counts them.

        Raises
        ------
        InputError
            For detections on other images, naming the first.
        """
        if not isinstance(ground_truth, GroundTruth):
            raise InputError(
                f"expected GroundTruth, not {type(ground_truth).__name__}",
                remedy="read it first: detmap.read_coco, detmap.read_voc",
            )
        check_allowed("unknown_images", unknown, ("error", "ignore"))
        known = locate(self.images.ids, ground_truth.images.ids) >= 0
        if known.all():
            return self
        kept = known[self.images.codes]
        own, theirs = self.images.ids, ground_truth.images.ids
        # raised even if unknown images are dropped, because otherwise all detections would be dropped
        if theirs.size and own.dtype.kind != theirs.dtype.kind:
            raise InputError(
                f"image ids such as {shorten(own[0].item())} never match the ground truth's, such as "
                f"{shorten(theirs[0].item())}",
                source=self.source,
                field="image_id",
                remedy="write both as integers, or both as strings",
            )
        if unknown == "error":
            record = _first(~kept)
            raise unknown_image(self.source, record, self.images.ids[self.images.codes[record]].item(), "image_id")
        made = self.take(kept)
        boxes = made.shapes[BOXES]
        assert isinstance(boxes, Boxes)
        notices = {**self.notices, **boxes.notices(), "unknown_image": int((~kept).sum())}
        return replace(made, notices=notices)

    def take(self, rows: ArrayLike) -> Detections:
        """Return some of the detections, without checking them again; notices stay as they are.

        Parameters
        ----------
        rows : array_like of int or bool
            Indices, or a boolean mask of shape (n,).
        """
        chosen = np.asarray(rows)
        return replace(
            self,
            images=used(self.images, chosen),
            categories=used(self.categories, chosen),
            shapes={name: column.take(chosen) for name, column in self.shapes.items()},
            scores=readonly(self.scores[chosen], np.float64),
            areas=None if self.areas is None else readonly(self.areas[chosen], np.float64),
            more_scores={name: readonly(values[chosen], np.float64) for name, values in self.more_scores.items()},
        )

    def __len__(self) -> int:
        """Return the number of detections."""
        return int(self.scores.size)

    def __repr__(self) -> str:
        return f"<Detections ({', '.join(self.kinds)}): {len(self)} on {self.images.ids.size} images>"
