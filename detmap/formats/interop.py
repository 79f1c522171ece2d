"""Convert objects of other libraries to tables: Ultralytics, supervision, torchvision. None of these libraries is
imported.

Tensors may be on any device. Classes are numbers in these libraries. If names of classes are given, the ground truth's
categories are found by name; otherwise the numbers are category ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.data.ids import coded
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError, check_choice, is_id
from detmap.formats.file_names import resolve_categories, resolve_images, stem
from detmap.masks import Masks
from detmap.shapes import find
from detmap.shapes import masks as mask_columns
from detmap.shapes.kinds import BOXES, KEYPOINTS, MASKS
from detmap.shapes.masks import MaskColumn

__all__ = ["from_supervision", "from_torchvision", "from_ultralytics"]

Role = Literal["ground_truth", "detections"]
Unknown = Literal["error", "ignore"]


class _Images:
    """Collects the objects image by image, and builds the table."""

    def __init__(self, source: str, role: Role, iou_type: str) -> None:
        check_choice("role", role, ("ground_truth", "detections"))
        kind = find(iou_type)
        self.source, self.role, self.kind, self.scored = source, role, kind.column_name, kind.name
        if self.kind not in (BOXES, MASKS, KEYPOINTS):
            raise InputError(f"hands over boxes, masks and keypoints, not {iou_type}", source=source)
        self.ids: list[Any] = []
        self.counts: list[int] = []
        self.parts: dict[str, list[NDArray[Any]]] = {}
        self.masks: list[MaskColumn] = []
        self.sizes: list[tuple[int, int]] = []

    def place(self, image: Any) -> str:
        return f"image {image}"

    def add(self, image: Any, boxes: Any, classes: Any, **more: Any) -> None:
        """Add an image: boxes (x1, y1, x2, y2), classes, and further arguments of ``from_arrays``."""
        if isinstance(image, np.generic) or hasattr(image, "item"):
            image = image.item()
        if not is_id(image):
            raise InputError("an image's id must be an integer or a string", source=self.source, value=image)
        table = self.boxes(boxes, image)
        found = {"boxes": table, "category_ids": self.array(classes, image, "classes").reshape(-1)}
        found |= {name: self.array(value, image, name) for name, value in more.items() if value is not None}
        for name, column in found.items():
            if len(column) != len(table):
                raise InputError(
                    f"{len(column)} {name} for {len(table)} boxes", source=self.source, record=self.place(image)
                )
            self.parts.setdefault(name, []).append(column)
        self.ids.append(image)
        self.counts.append(len(table))

    def add_masks(self, masks: MaskColumn) -> None:
        """Add the masks of the image that was added last."""
        if len(masks) != self.counts[-1]:
            problem = f"{len(masks)} masks for {self.counts[-1]} boxes"
            raise InputError(problem, source=self.source, record=self.place(self.ids[-1]))
        self.masks.append(masks)

    def array(self, values: Any, image: Any, name: str) -> NDArray[Any]:
        """Return an array; raise `InputError` for values that are none."""
        try:
            return columns.array(values)
        except TypeError as error:
            raise InputError(
                f"{name} cannot be read as an array: {error}", source=self.source, record=self.place(image)
            ) from None

    def boxes(self, values: Any, image: Any) -> NDArray[Any]:
        """Return an array of boxes, shape (n, 4)."""
        table = self.array(values, image, "boxes")
        if table.size % 4:
            raise InputError(f"boxes of shape {table.shape}", source=self.source, record=self.place(image))
        return table.reshape(-1, 4)

    def absent(self, image: Any, what: str, remedy: str) -> InputError:
        """Return the error about an image that lacks a required field."""
        return InputError(f"there are no {what}", source=self.source, record=self.place(image), remedy=remedy)

    def table(
        self, names: Mapping[int, str], ground_truth: GroundTruth | None, unknown: Unknown
    ) -> GroundTruth | Detections:
        """Return the table of all images; `names` are the names of classes by number, if known."""
        twice = next((one for one, count in _counted(self.ids) if count > 1), None)
        if twice is not None:
            raise InputError("is there twice", source=self.source, record=self.place(twice))
        kept, ids, dropped = list(range(len(self.ids))), self.ids, 0
        if self.role == "detections" and ground_truth is not None:
            found = self._found(ground_truth, unknown)
            kept = [i for i in kept if found[i] is not None]
            dropped = sum(self.counts) - sum(self.counts[i] for i in kept)
            ids = [found[i] for i in kept]
        rows = np.concatenate([np.full(self.counts[i], i in kept) for i in range(len(self.ids))] or [np.zeros(0, bool)])
        images = [one for one, i in zip(ids, kept, strict=True) for _ in range(self.counts[i])]
        given: dict[str, Any] = {}
        for name, parts in self.parts.items():
            if len(parts) < len(self.ids):
                raise InputError(f"some images have {name}, and others not", source=self.source)
            some = [part for part in parts if len(part)] or parts[:1]  # empty arrays may have any shape
            if len({part.shape[1:] for part in some}) > 1:
                raise InputError(f"{name} of different shapes", source=self.source)
            given[name] = np.concatenate(some)[rows]
        given.setdefault("boxes", np.empty((0, 4)))
        if self.role == "detections":
            given.setdefault("scores", np.empty(0))
        if self.kind == MASKS:
            joined = mask_columns.join(self.masks) if self.masks else MaskColumn.of(Masks.from_polygons([], (1, 1)))
            given["shapes"] = {MASKS: joined.take(np.flatnonzero(rows))}
        given["image_ids"] = _column(images)
        given["category_ids"] = self._categories(given.get("category_ids", np.empty(0, np.int64)), names, ground_truth)
        given |= {"box_format": "xyxy", "source": self.source, "kinds": (self.scored,)}
        if self.role == "detections":
            notices = {"unknown_image": dropped} if dropped else {}
            return Detections.from_arrays(**given, notices=notices)
        given["images"] = _column(self.ids)
        if self.sizes and len(self.sizes) == len(self.ids):
            given["image_sizes"] = self.sizes
        if names:
            given |= {"categories": sorted(names), "category_names": names}
        return GroundTruth.from_arrays(**given)

    def _found(self, ground_truth: GroundTruth, unknown: Unknown) -> list[Any]:
        """Return the ground truth's id of each image; None for images to drop."""
        known = set(ground_truth.images.ids.tolist())
        files = [str(one) for one in self.ids]
        by_name = resolve_images(files, ground_truth, "ignore", self.source)
        found = [one if one in known else other for one, other in zip(self.ids, by_name, strict=True)]
        lost = [one for one, other, count in zip(self.ids, found, self.counts, strict=True) if other is None and count]
        if lost and unknown == "error":
            raise InputError(
                "is not an image of the ground truth",
                source=self.source,
                value=lost[0],
                remedy="give their ids: image_ids; or drop what is found there: unknown_images='ignore'",
            )
        return found

    def _categories(self, classes: NDArray[Any], names: Mapping[int, str], ground_truth: GroundTruth | None) -> Any:
        """Return the category id of each object, given its class number."""
        numbers = columns.identifiers(classes, source=self.source, field="classes") if classes.size else classes
        if self.role == "ground_truth" or ground_truth is None or not names or not numbers.size:
            return numbers if numbers.size else np.empty(0, np.int64)
        distinct, codes = np.unique(numbers, return_inverse=True)
        lacking = next((one for one in distinct.tolist() if one not in names), None)
        if lacking is not None:
            raise InputError("the class has no name", source=self.source, value=lacking)
        found = resolve_categories([names[one] for one in distinct.tolist()], ground_truth)
        return _column([found[code] for code in codes.reshape(-1).tolist()])


def _counted(ids: Sequence[Any]) -> Iterable[tuple[Any, int]]:
    counts: dict[Any, int] = {}
    for one in ids:
        counts[one] = counts.get(one, 0) + 1
    return counts.items()


def _column(ids: Sequence[Any]) -> Any:
    """Return strings as a coded column; other ids as a list, because ``from_arrays`` checks the types of its elements."""
    if not ids:
        return np.empty(0, np.int64)
    return coded(ids) if all(isinstance(one, str) for one in ids) else list(ids)


def _names(classes: Any, source: str) -> dict[int, str]:
    """Return the names of classes by number from a list or mapping."""
    if classes is None:
        return {}
    pairs = classes.items() if isinstance(classes, Mapping) else enumerate(classes)
    try:
        return {int(number): str(name) for number, name in pairs}
    except (TypeError, ValueError):
        raise InputError("must be a list of names, or names by number", source=source, field="classes") from None


def _paired(items: Sequence[Any], image_ids: Iterable[Any] | None, source: str) -> list[tuple[Any, Any]]:
    """Return items paired with image ids."""
    ids = list(image_ids if image_ids is not None else ())
    if len(ids) != len(items):
        raise InputError(f"{len(ids)} image_ids for {len(items)} images", source=source)
    return list(zip(ids, items, strict=True))


def from_ultralytics(
    results: Any,
    *,
    image_ids: Iterable[Any] | None = None,
    ground_truth: GroundTruth | None = None,
    iou_type: str = BOXES,
    unknown_images: Unknown = "error",
) -> Detections:
    """Return the detections of Ultralytics' `Results`, as ``model.predict`` and ``model(...)`` return them.

    Parameters
    ----------
    results : Results or iterable of Results
        One `Results` for each image; a generator (``stream=True``) is consumed once.
    image_ids : iterable of int or str, optional
        The id of each image; by default its file name, by which the image is found in the ground truth.
    ground_truth : GroundTruth, optional
        The ground truth whose ids are used. Categories are matched by the names of the model's classes, images by file
        name. Without ground truth, category ids are the model's numbers, and image ids are file names without suffix.
    iou_type : str
        The shapes to read besides the boxes: "bbox", "segm" or "keypoints". Masks whose size differs from the image
        size (``retina_masks=False``) are drawn from Ultralytics' outlines.
    unknown_images : {"error", "ignore"}
        Whether detections on images that the ground truth lacks are an error, or are dropped.

    Returns
    -------
    Detections
        Oriented boxes become the axis-aligned boxes around them.

    Raises
    ------
    InputError
        If `results` have another type, an image is repeated or unknown, or shapes of the kind `iou_type` are missing.
    """
    source = "results"
    if hasattr(results, "orig_shape"):
        results = [results]
    listed = list(results) if isinstance(results, Iterable) else []
    if not listed and not isinstance(results, Sequence):
        raise InputError(
            "expected Ultralytics' Results, one for each image", source=source, value=type(results).__name__
        )
    made = _Images(source, "detections", iou_type)
    names: dict[int, str] = {}
    own = image_ids is None
    for image, one in _paired(listed, map(_path_of, listed) if own else image_ids, source):
        boxes = getattr(one, "obb", None)
        boxes = getattr(one, "boxes", None) if boxes is None else boxes
        if boxes is None:
            raise made.absent(image, "boxes", "give the results of a model that detects")
        if own and ground_truth is None:
            image = stem(image)
        names.update(_names(getattr(one, "names", None), source))
        points = _points_of(made, image, one, len(boxes.cls)) if made.kind == KEYPOINTS else None
        made.add(image, boxes.xyxy, boxes.cls, scores=boxes.conf, keypoints=points)
        if made.kind == MASKS:
            made.add_masks(_masks_of(made, image, one, made.counts[-1]))
    return cast(Detections, made.table(names, ground_truth, unknown_images))


def _path_of(result: Any) -> str:
    path = getattr(result, "path", None)
    if not isinstance(path, str) or not path:
        raise InputError("has no path, and no image_ids are given", source="results", value=type(result).__name__)
    return path


def _points_of(made: _Images, image: Any, result: Any, count: int) -> NDArray[Any]:
    """Return keypoints; if the result has no visibilities, all are 1."""
    points = getattr(result, KEYPOINTS, None)
    if points is None and not count:
        return np.empty((0, 1, 3))
    if points is None:
        raise made.absent(image, KEYPOINTS, "score the boxes: iou_type='bbox'")
    table = made.array(points.data, image, KEYPOINTS)
    if table.ndim != 3 or table.shape[2] not in (2, 3):
        raise InputError(f"keypoints of shape {table.shape}", source=made.source, record=made.place(image))
    if table.shape[2] == 2:
        table = np.concatenate([table, np.ones((*table.shape[:2], 1), table.dtype)], axis=2)
    return table


def _masks_of(made: _Images, image: Any, result: Any, count: int) -> MaskColumn:
    """Return the masks of a result at the size of the image."""
    size = tuple(int(side) for side in result.orig_shape)
    masks = getattr(result, "masks", None)
    if masks is None:
        if count:
            raise made.absent(image, "masks", "score the boxes: iou_type='bbox'")
        return MaskColumn.of(Masks.from_polygons([], (1, 1)))
    bitmaps = made.array(masks.data, image, "masks")
    if bitmaps.shape[1:] == size:
        return MaskColumn.of(Masks.from_bitmaps(bitmaps > 0, source=made.place(image)))
    outlines = [made.array(one, image, "masks").astype(np.float64).reshape(-1, 2) for one in masks.xy]
    drawn = [i for i, one in enumerate(outlines) if len(one) > 2]
    empty = [i for i, one in enumerate(outlines) if len(one) <= 2]  # masks whose outline has at most two points
    both = [
        Masks.from_polygons([[outlines[i]] for i in drawn], size, source=made.place(image)),
        Masks.from_rle([{"size": list(size), "counts": [size[0] * size[1]]}] * len(empty)),
    ]
    joined = mask_columns.join([MaskColumn.of(masks) for masks in both if len(masks)])
    return joined.take(np.argsort(np.array([*drawn, *empty], np.int64)))


def from_supervision(
    detections: Any,
    *,
    image_ids: Iterable[Any] | None = None,
    classes: Any = None,
    role: Role = "detections",
    ground_truth: GroundTruth | None = None,
    iou_type: str = BOXES,
    unknown_images: Unknown = "error",
) -> GroundTruth | Detections:
    """Return the table of supervision's `Detections`, or of a `DetectionDataset`.

    Parameters
    ----------
    detections : mapping of image to Detections, sequence of Detections, Detections, or DetectionDataset
        One `Detections` per image. A data set provides annotations and classes.
    image_ids : iterable of int or str, optional
        The id of each image; by default the key in the mapping or data set.
    classes : sequence of str or mapping of int to str, optional
        The names of classes; by default the names in ``data["class_name"]``, if any.
    role : {"detections", "ground_truth"}
        The role. Ground truth needs no confidence.
    ground_truth : GroundTruth, optional
        For detections: the ground truth whose ids are used. Categories are matched by name, images by id or file name.
    iou_type : {"bbox", "segm"}
        The shapes to read besides the boxes.
    unknown_images : {"error", "ignore"}
        Whether detections on images that the ground truth lacks are an error, or are dropped.

    Returns
    -------
    GroundTruth or Detections

    Raises
    ------
    InputError
        If `detections` have another type, an image is repeated or unknown, or a class or confidence is missing.
    """
    source = role.replace("_", " ")
    made = _Images(source, role, iou_type)
    names = _names(classes if classes is not None else getattr(detections, "classes", None), source)
    if hasattr(detections, "annotations"):
        detections = detections.annotations
    if isinstance(detections, Mapping):
        pairs = list(detections.items())
        if image_ids is not None:
            pairs = _paired(list(detections.values()), image_ids, source)
    else:
        pairs = _paired([detections] if hasattr(detections, "xyxy") else list(detections), image_ids, source)
    for image, one in pairs:
        if not hasattr(one, "xyxy"):
            raise InputError("expected supervision's Detections", source=source, value=type(one).__name__)
        count = len(made.array(one.xyxy, image, "boxes"))
        if one.class_id is None and count:
            raise made.absent(image, "classes", "set class_id")
        if role == "detections" and one.confidence is None and count:
            raise made.absent(image, "scores", "set confidence; of ground truth say role='ground_truth'")
        numbers = one.class_id if count else np.empty(0, np.int64)
        scores = (one.confidence if count else np.empty(0)) if role == "detections" else None
        made.add(image, one.xyxy, numbers, scores=scores)
        if classes is None and count:
            _add_names(
                names,
                made.array(numbers, image, "classes"),
                (getattr(one, "data", None) or {}).get("class_name"),
                source,
            )
        if made.kind == MASKS:
            if one.mask is None and count:
                raise made.absent(image, "masks", "score the boxes: iou_type='bbox'")
            bitmaps = np.zeros((0, 1, 1), bool) if one.mask is None else made.array(one.mask, image, "masks")
            made.add_masks(MaskColumn.of(Masks.from_bitmaps(bitmaps, source=made.place(image))))
        elif made.kind == KEYPOINTS:
            raise InputError("supervision's Detections have no keypoints", source=source)
    return made.table(names, ground_truth, unknown_images)


def _add_names(names: dict[int, str], numbers: NDArray[Any], given: Any, source: str) -> None:
    """Add class names from a list that holds the name of each record's class."""
    if given is None:
        return
    for number, name in zip(numbers.tolist(), list(given), strict=True):
        if names.setdefault(number, str(name)) != str(name):
            raise InputError(f"the class {number} has two names", source=source, field="class_name", value=name)


def from_torchvision(
    outputs: Iterable[Mapping[str, Any]],
    *,
    image_ids: Iterable[Any] | None = None,
    classes: Any = None,
    role: Role = "detections",
    ground_truth: GroundTruth | None = None,
    iou_type: str = BOXES,
    mask_threshold: float = 0.5,
    unknown_images: Unknown = "error",
) -> GroundTruth | Detections:
    """Return the table of the outputs or training targets of torchvision's detection models.

    Parameters
    ----------
    outputs : iterable of mapping
        One mapping per image, with ``boxes`` (x1, y1, x2, y2, or `BoundingBoxes` of another format), ``labels``, and
        for detections ``scores``. Optional are ``masks`` (n, 1, height, width) or (n, height, width), and ``keypoints``
        (n, k, 3). Targets may have ``area``, ``iscrowd`` and ``image_id``.
    image_ids : iterable of int or str, optional
        The id of each image; by default the value of ``image_id``.
    classes : sequence of str or mapping of int to str, optional
        The names of classes by number, as in ``weights.meta["categories"]``.
    role : {"detections", "ground_truth"}
        The role.
    ground_truth : GroundTruth, optional
        For detections: the ground truth whose ids are used. Categories are matched by name, if `classes` are given.
    iou_type : str
        The shapes to read besides the boxes: "bbox", "segm" or "keypoints".
    mask_threshold : float
        In masks of floats, pixels with values above this threshold belong to the object.
    unknown_images : {"error", "ignore"}
        Whether detections on images that the ground truth lacks are an error, or are dropped.

    Returns
    -------
    GroundTruth or Detections

    Raises
    ------
    InputError
        If `outputs` have another type, an image is repeated or unknown, or a field is missing.
    """
    source = role.replace("_", " ")
    made = _Images(source, role, iou_type)
    listed = [outputs] if isinstance(outputs, Mapping) else list(outputs)
    if image_ids is None:
        image_ids = [_image_of(one, source, i) for i, one in enumerate(listed)]
    names = {"area": "areas", "iscrowd": "crowd"} if role == "ground_truth" else {"scores": "scores"}
    for image, one in _paired(listed, image_ids, source):
        needed = ["boxes", "labels", *(["scores"] if role == "detections" else [])]
        needed += [find(made.kind).argument] if made.kind != BOXES else []
        lacking = next((name for name in needed if name not in one), None)
        if lacking is not None:
            raise made.absent(image, lacking, f"it has: {', '.join(map(str, list(one)[:20]))}")
        more = {name: one.get(field) for field, name in names.items()}
        points = one[find(KEYPOINTS).argument] if made.kind == KEYPOINTS else None
        made.add(image, _corners(made, image, one["boxes"]), one["labels"], keypoints=points, **more)
        if made.kind == MASKS:
            bitmaps = made.array(one["masks"], image, "masks")
            if bitmaps.ndim == 4 and bitmaps.shape[1] == 1:
                bitmaps = bitmaps[:, 0]
            if bitmaps.dtype.kind == "f":
                bitmaps = bitmaps > mask_threshold
            made.add_masks(MaskColumn.of(Masks.from_bitmaps(bitmaps, source=made.place(image))))
    return made.table(_names(classes, source), ground_truth, unknown_images)


def _image_of(output: Mapping[str, Any], source: str, place: int) -> Any:
    if not isinstance(output, Mapping):
        raise InputError("expected a mapping for each image", source=source, value=type(output).__name__)
    if "image_id" not in output:
        raise InputError(
            "no image_id says which image it is", source=source, record=place, remedy="give image_ids, in this order"
        )
    if isinstance(output["image_id"], str):
        return output["image_id"]
    try:
        found = columns.array(output["image_id"])
    except TypeError:
        found = np.empty(0)
    if found.size != 1:
        raise InputError("image_id is not one number", source=source, record=place)
    (one,) = found.reshape(-1)
    return one.item() if hasattr(one, "item") else one


def _corners(made: _Images, image: Any, boxes: Any) -> NDArray[Any]:
    """Return boxes as corners, converting `BoundingBoxes` of another format."""
    table, form = made.boxes(boxes, image), _said(boxes)
    if form in ("", "XYXY"):
        return table
    if form not in ("XYWH", "CXCYWH"):
        raise InputError("boxes of this format are not read", source=made.source, field="boxes", value=form)
    out = table.astype(np.float64)
    if form == "CXCYWH":
        out[:, :2] -= out[:, 2:] / 2
    out[:, 2:] += out[:, :2]
    return out


def _said(boxes: Any) -> str:
    """Return the format of `BoundingBoxes`; "" for other boxes."""
    form = getattr(boxes, "format", None)
    return str(getattr(form, "value", form) or "").upper() if not callable(form) else ""
