"""Read an update of the evaluator: check and copy image ids and the content of each image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.columns import array, flags, identifiers, numbers, plain
from detmap.data.crowding import crowd_index_of
from detmap.data.ids import categories_given, index_ids
from detmap.errors import InputError
from detmap.shapes import KINDS, Boxes, Kind, find
from detmap.shapes.boxes import FARTHEST, BoxFormat, InvalidBoxes, finite, infinite, inverted, negative
from detmap.shapes.kinds import BOXES

_NOWHERE = np.zeros(1)
#: Fields of an `Image` with a value for each detection (`FOUND`) or for each object (`TRUE`).
FOUND = ("boxes", "scores", "labels", "own_areas")
TRUE = ("true_boxes", "true_labels", "areas", "crowd", "difficult", "group_of")


#: Lists of categories per image in LVIS and Open Images.
LISTS = ("neg_category_ids", "not_exhaustive_category_ids", "pos_category_ids")


#: Maps a list to its alternative; a list counts as missing only if both are missing.
_OR = {"neg_category_ids": "pos_category_ids"}


class Image(NamedTuple):
    """An image waiting to be matched."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    labels: NDArray[Any]
    own_areas: NDArray[np.float64]  # areas of the boxes if masks or poses are given, too; else NaN
    true_boxes: NDArray[np.float64]
    true_labels: NDArray[Any]
    areas: NDArray[np.float64]  # given areas; NaN where the area of the box is used
    crowd: NDArray[np.bool_]
    difficult: NDArray[np.bool_]
    group_of: NDArray[np.bool_]
    dropped: int  # number of dropped boxes
    shapes: Any = None  # column of masks, keypoints or other geometries; None for boxes
    true_shapes: Any = None
    unscored: int = 0  # 1 if masks or keypoints are left unscored, because boxes are given too
    lists: Mapping[str, list[Any]] = {}  # category ids of each given list of `LISTS`
    crowd_index: float | None = None
    fields: Mapping[str, NDArray[np.float64]] = {}  # fields of objects, for levels of difficulty
    size: tuple[int, int] = (0, 0)  # height and width, if the protocol has ranges in percent of the image
    # Angles at which the camera sees detections and objects, if both are given.
    angles: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None


def read_image(
    prediction: Mapping[str, Any],
    target: Mapping[str, Any],
    i: int,
    kind: Kind,
    box_format: BoxFormat,
    invalid_boxes: InvalidBoxes,
    names: Mapping[Any, str] | None,
    needs: Mapping[str, Any],
) -> Image:
    """Return image `i` of an update, checked. Raises `InputError` for data that cannot be scored.

    `names` are the categories, if given. `needs` is what `detmap.detection.ranges.needs` returns for the protocol. If
    boxes are missing, the bounding boxes of the masks or other geometries are used.
    """
    shapes, true_shapes = (
        _read_shapes(record, source, i, kind) for record, source in ((prediction, "predictions"), (target, "targets"))
    )
    boxes, kept = _read_boxes(prediction, "predictions", i, box_format, invalid_boxes, shapes)
    scores = _column(prediction, "scores", len(boxes), "predictions", i)
    if np.isnan(scores).any():
        raise InputError(
            "a score must be a number",
            source="predictions",
            record=f"image {i}",
            field=f"scores[{int(np.argmax(np.isnan(scores)))}]",
            value=float("nan"),
            remedy="leave out the detection: NaN has no place in a ranking",
        )
    labels = _labels(prediction, len(boxes), "predictions", i)
    true_boxes, true_kept = _read_boxes(target, "targets", i, box_format, invalid_boxes, true_shapes)
    count = len(true_boxes)
    true_labels = _labels(target, count, "targets", i)
    if names is not None:
        for value in true_labels.tolist():
            if value not in names:
                problem = "is not among the categories"
                raise InputError(problem, source="targets", record=f"image {i}", field="labels", value=value)
    if "area" not in target:
        bare = true_shapes is not None and "boxes" not in target
        areas = np.array(true_shapes.areas(), np.float64) if bare else _unknown(count)
    else:
        areas = _column(target, "area", count, "targets", i)
        good = (areas >= 0) & (areas < np.inf)
        if not good.all():
            bad = int(np.argmin(good))
            raise InputError(
                "an area must be a finite number of 0 or more",
                source="targets",
                record=f"image {i}",
                field=f"area[{bad}]",
                value=float(areas[bad]),
                remedy="leave out the areas: they are width times height then",
            )
    crowd, difficult, group_of = (_flags(target, name, count, i) for name in ("iscrowd", "difficult", "group_of"))
    own = _unknown(len(boxes))
    if shapes is not None and "boxes" in prediction:
        sides = boxes[:, 2:] - boxes[:, :2] if box_format == "xyxy" else boxes[:, 2:]
        own = sides[:, 0] * sides[:, 1]
    lists = {name: _category_list(target[name], name, i) for name in LISTS if target.get(name) is not None}
    crowded = target.get("crowdIndex")
    crowded = None if crowded is None else crowd_index_of(crowded, "targets", f"image {i}")
    image = Image(
        boxes, scores, labels, own, true_boxes, true_labels, areas, crowd, difficult, group_of,
        0, shapes, true_shapes, 0, lists, crowded,
    )  # fmt: skip
    if "alpha" in prediction and "alpha" in target:
        pairs = (prediction, len(boxes), "predictions"), (target, count, "targets")
        found, true = (_column(record, "alpha", size, source, i) for record, size, source in pairs)
        image = image._replace(angles=(found, true))
    if needs:
        fields = {name: _optional(target, name, count, i) for name in needs.get("fields", ())}
        image = image._replace(fields=fields, size=_size(target, i) if "image_facts" in needs else (0, 0))
    return image if kept is None and true_kept is None else _without(image, kept, true_kept)


def _optional(target: Mapping[str, Any], name: str, count: int, i: int) -> NDArray[np.float64]:
    """Return a field of objects; None and NaN mean no value."""
    if not count:
        return np.empty(0)
    value = _field(target, name, "targets", i)
    if isinstance(value, list | tuple):
        value = [np.nan if one is None else float(one) if isinstance(one, bool | np.bool_) else one for one in value]
    elif array(value).dtype.kind == "b":
        value = array(value).astype(np.float64)
    column: NDArray[np.float64] = _column({name: value}, name, count, "targets", i)
    return column


def _size(target: Mapping[str, Any], i: int) -> tuple[int, int]:
    """Return height and width of the image of a target."""
    sides = array(_field(target, "image_size", "targets", i))
    if sides.shape != (2,) or sides.dtype.kind not in "iuf" or not ((sides >= 1) & (sides == np.floor(sides))).all():
        raise InputError(
            "must be the height and width of the image in pixels",
            source="targets",
            record=f"image {i}",
            field="image_size",
        )
    return int(sides[0]), int(sides[1])


def _category_list(value: Any, name: str, i: int) -> list[Any]:
    """Return a list of category ids of a target, checked."""
    column: NDArray[Any] = _own(value, "targets", name, i, identifiers) if len(value) else np.empty(0, np.int64)
    if column.ndim != 1:
        raise InputError("must be a list of category ids", source="targets", record=f"image {i}", field=name)
    return list(column.tolist())


#: Fields of predictions and targets that hold no boxes, masks, keypoints or other geometry.
_NO_SHAPES = frozenset(
    ("scores", "labels", "category_ids", "area", "iscrowd", "difficult", "group_of", "crowdIndex", "alpha")
)


def kinds_given(prediction: object, target: object) -> list[str]:
    """Return the kinds of shape that an image's prediction and target both have, boxes first."""
    if not isinstance(prediction, Mapping) or not isinstance(target, Mapping):
        return []
    both = (prediction.keys() & target.keys()) - _NO_SHAPES
    found = [BOXES] if "boxes" in both else []
    if both - {"boxes"}:
        found += [
            one.name for one in KINDS.values() if one.given is not None and not one.stored and one.argument in both
        ]
    return found


def kind_of_images(given: Mapping[int, list[str]], before: str | None) -> str | None:
    """Return the kind of shape to score, None if undecided. Boxes are scored if all images have boxes. Otherwise the
    only kind that all images have is scored.

    `given` maps the index of each image in the update to its kinds; `before` is the kind of earlier images, if any. Raises
    `InputError` if an image without boxes has several kinds, or if kinds differ between images.
    """
    kind = before
    for i, kinds in given.items():
        if len(kinds) > 1 and kinds[0] != BOXES:
            raise InputError(
                f"there are shapes of several kinds, {' and '.join(kinds)}",
                source="update",
                record=f"image {i}",
                remedy=f"say which one is scored: Evaluator(iou_type={_either(kinds)})",
            )
        if not kinds:
            continue
        if kind not in (None, kinds[0]):
            # sorted, so that the message does not depend on the order of images
            pair = sorted({str(kind), kinds[0]}, key=lambda name: (name != BOXES, name))
            first, second = (find(name).argument or "boxes" for name in pair)
            raise InputError(
                f"some images have {'boxes' if pair[0] == BOXES else f'only {first}'} in predictions and targets, "
                f"others only {second}",
                source="update",
                record=f"image {i}",
                remedy=f"give the same with every image, or say what is scored: Evaluator(iou_type={_either(pair)})",
            )
        kind = kinds[0]
    return kind


def _either(kinds: Iterable[str]) -> str:
    return " or ".join(map(repr, kinds))


def _read_shapes(record: Mapping[str, Any], source: str, i: int, kind: Kind) -> Any:
    """Return a column with a copy of a record's masks, keypoints or other geometries of a kind; None for boxes."""
    if kind.given is None:
        return None
    value = _field(record, kind.argument, source, i)
    try:
        return kind.given(value, source)
    except InputError as error:
        within = "" if error.record is None else f"[{error.record}]"
        raise InputError(
            error.problem, source=source, record=f"image {i}", field=f"{kind.argument}{within}", remedy=error.remedy
        ) from None


def _around(shapes: Any, box_format: BoxFormat) -> NDArray[np.float64]:
    """Return the bounding boxes of `shapes`."""
    bounds: Boxes = shapes.bounds()
    near, size = bounds.table[:, :2], bounds.table[:, 2:]
    if not bounds.sizes:
        size = size - near
    if box_format == "xyxy":
        return np.concatenate([near, near + size], axis=1)
    return np.concatenate([near + size / 2 if box_format == "cxcywh" else near, size], axis=1)


def _read_boxes(
    record: Mapping[str, Any],
    source: str,
    i: int,
    box_format: BoxFormat,
    invalid_boxes: InvalidBoxes,
    shapes: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return boxes, and a mask of the boxes to keep (None if all are kept)."""
    if shapes is not None and "boxes" not in record:
        return _around(shapes, box_format), None
    boxes = _own(_field(record, "boxes", source, i), source, "boxes", i)
    if shapes is not None and len(shapes) != (len(boxes) if boxes.size else 0):
        problem = f"{len(shapes)} shapes where there are {len(boxes) if boxes.size else 0} boxes"
        raise InputError(problem, source=source, record=f"image {i}", field="boxes")
    if boxes.size == 0:
        return np.empty((0, 4)), None
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InputError(
            f"shape {boxes.shape} where n x 4 was expected", source=source, record=f"image {i}", field="boxes"
        )
    # Whole columns are compared, because reductions of rows are slow. If any value is NaN, the minimum and maximum are
    # NaN, and the comparisons are false.
    if np.minimum.reduce(boxes, None) >= -FARTHEST and np.maximum.reduce(boxes, None) <= FARTHEST:
        left, top, right, bottom = boxes.T
        if box_format != "xyxy":
            left = top = _NOWHERE
        if np.count_nonzero(left <= right) == len(boxes) == np.count_nonzero(top <= bottom):
            return boxes, None
    good, inversion = finite(boxes), negative(boxes, box_format)
    if invalid_boxes == "drop":
        return boxes, good & ~inversion
    if not good.all():
        bad = int(np.argmin(good))
        raise infinite(boxes[bad], source=source, record=f"image {i}", field=f"boxes[{bad}]")
    count = int(np.count_nonzero(inversion))
    if count and invalid_boxes == "error":
        bad = int(np.argmax(inversion))
        place: dict[str, Any] = {"source": source, "record": f"image {i}", "field": f"boxes[{bad}]"}
        raise inverted(boxes[bad], count, len(boxes), box_format, **place)
    return boxes, None


def ids_of_targets(targets: Sequence[Any]) -> list[Any] | None:
    """Return the ``image_id`` of targets, as in torchvision; None if no target has one."""
    found = [target["image_id"] for target in targets if isinstance(target, Mapping) and "image_id" in target]
    if found and len(found) < len(targets):
        raise InputError(
            f"{len(targets) - len(found)} of {len(targets)} targets have none",
            source="update",
            field="image_id",
            remedy="give image_ids=..., one per image",
        )
    return found or None


def read_ids(image_ids: Any, alone: bool) -> list[Any]:
    """Return image ids as Python integers or strings. If there is a single image (`alone`), its id need not be in a list."""
    if type(image_ids) is list and set(map(type, image_ids)) == {int} and max(map(abs, image_ids)) < 1 << 63:
        return list(image_ids)
    quick = plain(image_ids, np.int64)
    if quick is not None and quick.ndim == 1:
        return list(quick.tolist())
    if alone and isinstance(image_ids, str | bytes | int | float):
        image_ids = [image_ids]
    if isinstance(image_ids, list | tuple):
        image_ids = [one if type(one) in (int, str) else _single(one) for one in image_ids]
    elif not isinstance(image_ids, str | bytes):
        ids = array(image_ids)
        one_each = ids.ndim == 2 and ids.shape[1] == 1  # a batch of one-element tensors
        image_ids = ids.reshape(-1) if one_each or (alone and ids.ndim == 0) else ids
    return list(identifiers(image_ids, source="update", field="image_ids").tolist())


def _single(value: Any) -> Any:
    """Return the element of an array or tensor of size 1; other values unchanged."""
    if isinstance(value, str):  # also numpy strings, because arrays drop trailing null characters
        return str(value)
    if not (hasattr(value, "detach") or hasattr(value, "__array__") or hasattr(value, "__dlpack__")):
        return value
    one = array(value)
    return one.item() if one.size == 1 and one.dtype.kind in "iuU" else value


def _field(record: Mapping[str, Any], name: str, source: str, i: int) -> Any:
    try:
        return record[name]
    except (KeyError, TypeError):
        raise InputError(f"there is no {name!r}", source=source, record=f"image {i}", field=name) from None


_DTYPES: dict[Any, type[np.float64 | np.int64 | np.bool_]] = {
    numbers: np.float64,
    identifiers: np.int64,
    flags: np.bool_,
}


def read_categories(categories: Sequence[int] | Sequence[str] | Mapping[Any, str] | None) -> dict[Any, str] | None:
    """Return names of categories by id, in the order of ids; None if no categories are given."""
    if categories is None:
        return None
    if isinstance(categories, str | bytes):
        remedy = f"for one category write [{categories!r}]"
        raise InputError("is a single string", source="evaluator", field="categories", remedy=remedy)
    try:
        names: Mapping[Any, Any] = categories if isinstance(categories, Mapping) else {c: c for c in categories}
    except TypeError:
        remedy = "give a sequence of ids, or a mapping of id to name"
        raise InputError(
            "must be integers or strings", source="evaluator", field="categories", value=categories, remedy=remedy
        ) from None
    ids = index_ids(list(names), source="evaluator", field="categories").ids.tolist()
    if set(ids) != set(names):
        raise InputError("must be all integers or all strings", source="evaluator", field="categories")
    return {identity: str(names[identity]) for identity in ids}


def notices_of(
    image: Image,
    box_format: BoxFormat,
    names: Mapping[Any, str] | None,
    inclusive_pixels: bool,
    fields: Sequence[str] = (),
) -> dict[str, int]:
    """Return the notices of one image. They are stored separately for each image because a merge may drop an image."""
    empty, missed = 0, 0
    for boxes in (image.boxes, image.true_boxes):
        sizes = boxes[:, 2:] - boxes[:, :2] if box_format == "xyxy" else boxes[:, 2:]
        missed += int((sizes < 0).any(axis=1).sum())
        empty += int((sizes == 0).any(axis=1).sum())
    unknown = 0 if names is None else sum(label not in names for label in image.labels.tolist())
    counts = {
        "zero_sized_boxes": 0 if inclusive_pixels else empty,
        "missed_boxes": missed,
        "dropped_boxes": image.dropped,
        "unknown_category": unknown,
        "unscored_shapes": image.unscored,
        "missing_crowdIndex": int("crowdIndex" in fields and image.crowd_index is None),
        **{
            f"missing_{name}": int(name not in image.lists and _OR.get(name) not in image.lists)
            for name in LISTS[:2]
            if name in fields
        },
    }
    return {code: count for code, count in counts.items() if count}


def _own(value: Any, source: str, name: str, i: int, read: Callable[..., Any] = numbers) -> Any:
    """Return a checked copy of an array, because the caller may reuse the array before the image is matched."""
    quick = plain(value, _DTYPES[read])
    if quick is not None:
        return quick
    column = read(value, source=source, field=name, record=f"image {i}")
    return column if isinstance(value, list | tuple) else column.copy()


def _column(
    record: Mapping[str, Any],
    name: str,
    count: int,
    source: str,
    i: int,
    read: Callable[..., Any] = numbers,
) -> Any:
    column = _own(_field(record, name, source, i), source, name, i, read)
    if column.shape != (count,):
        raise InputError(
            f"shape {column.shape} where there are {count} boxes", source=source, record=f"image {i}", field=name
        )
    return column


def _unknown(count: int) -> NDArray[np.float64]:
    """Return a column of NaN; `numpy.full` is slower for small arrays."""
    column = np.empty(count)
    column.fill(np.nan)
    return column


def _flags(record: Mapping[str, Any], name: str, count: int, i: int) -> NDArray[np.bool_]:
    """Return flags of targets, False by default."""
    if name not in record:
        return np.zeros(count, np.bool_)
    column: NDArray[np.bool_] = _column(record, name, count, "targets", i, flags)
    return column


def _labels(record: Mapping[str, Any], count: int, source: str, i: int) -> NDArray[Any]:
    name = "labels"
    if "category_ids" in record:
        categories_given(record["category_ids"], record.get("labels"))
        name = "category_ids"
    labels = _field(record, name, source, i)
    if count == 0 and array(labels).size == 0:
        return np.empty(0, np.int64)
    column: NDArray[Any] = _column(record, name, count, source, i, identifiers)
    return column


def _without(image: Image, kept: NDArray[np.bool_] | None, true_kept: NDArray[np.bool_] | None) -> Image:
    """Return an image without dropped boxes."""
    changes: dict[str, Any] = {}
    dropped = 0
    for rows, names, shapes in ((kept, FOUND, "shapes"), (true_kept, TRUE, "true_shapes")):
        if rows is not None:
            dropped += int(np.count_nonzero(~rows))
            changes.update((name, getattr(image, name)[rows]) for name in names)
            column = getattr(image, shapes)
            changes[shapes] = None if column is None else column.take(rows)
    if image.angles is not None:
        sides = zip(image.angles, (kept, true_kept), strict=True)
        changes["angles"] = tuple(angles if rows is None else angles[rows] for angles, rows in sides)
    if true_kept is not None:
        changes["fields"] = {name: values[true_kept] for name, values in image.fields.items()}
    return image._replace(**changes, dropped=dropped)
