"""The two sides of a check, ground truth and detections: the readable records as a table, and facts about the file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import locate
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats.inputs import Input
from detmap.formats.registry import Inspection, Refused
from detmap.reading.opening import Held
from detmap.reading.options import Role
from detmap.reading.sources import read_bytes, unmarked
from detmap.reading.typed_json import UNREADABLE
from detmap.shapes import KINDS, Boxes, Kind
from detmap.shapes.kinds import BOXES

#: Singular name of a record of each role.
UNITS = {"ground_truth": "object", "detections": "detection"}

Table = GroundTruth | Detections

#: Formats whose boxes include the pixels of both corners.
_INCLUSIVE = ("voc",)

#: Maximum distance in pixels between the edges of a box and of the image for the box to cover the whole image.
WHOLE = 2.0


@dataclass(eq=False)
class Side:
    """The ground truth or detections of a check."""

    role: Role
    #: The records that could be read.
    table: Table
    #: The number of each row's record in the file, shape (n,); None if unknown.
    rows: NDArray[np.int64] | None = None
    #: Records that the reader refused.
    refused: Sequence[Refused] = ()
    #: For each kind of geometry (such as masks) that other records have, the number of records without it.
    shapeless: Mapping[str, int] = field(default_factory=dict)
    #: Further facts about the file.
    inspected: Inspection | None = None
    #: Number of detections dropped while reading because the ground truth lacks their image.
    unknown: int = 0
    #: The detections with ids as in the file; None if ids were not converted.
    raw: Detections | None = None
    #: Whether boxes include the pixels of both corners, as VOC's do, so that equal corners are a box of one pixel.
    inclusive: bool = False
    #: Mask of the records whose box is the same on many images, shape (n,).
    constant: NDArray[np.bool_] = field(init=False)
    #: Mask of the records that a finding has explained and that other checks leave out, shape (n,).
    aside: NDArray[np.bool_] = field(init=False)
    #: Mask of the records with a width or height that is far more frequent than similar ones (see `piles`), shape (n,).
    piled: NDArray[np.bool_] = field(init=False)
    #: For detections, the ground truth that lists the images; None for ground truth.
    truth: GroundTruth | None = None

    def __post_init__(self) -> None:
        self.constant = np.zeros(len(self.table), np.bool_)
        self.aside = np.zeros(len(self.table), np.bool_)
        self.piled = np.zeros(len(self.table), np.bool_)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def unit(self) -> str:
        """Name of a record in messages."""
        return UNITS[self.role]

    @property
    def on(self) -> GroundTruth:
        """The ground truth, which lists the images."""
        return self.table if isinstance(self.table, GroundTruth) else self._truth

    @property
    def _truth(self) -> GroundTruth:
        assert self.truth is not None
        return self.truth

    @cached_property
    def image(self) -> NDArray[np.int64]:
        """Index of each record's image among the images of the ground truth, -1 if it is unknown."""
        if isinstance(self.table, GroundTruth):
            return self.table.images.codes.astype(np.int64)
        place = locate(self.table.images.ids, self._truth.images.ids)
        return place[self.table.images.codes] if len(self) else np.empty(0, np.int64)

    @cached_property
    def boxes(self) -> NDArray[np.float64]:
        """Boxes x, y, width, height of all records, shape (n, 4)."""
        boxes = self.table.shapes[BOXES]
        assert isinstance(boxes, Boxes)
        return as_sizes(boxes)

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """The boxes, shape (4, n), because contiguous coordinates are faster."""
        return np.ascontiguousarray(self.boxes.T)

    @cached_property
    def extents(self) -> NDArray[np.float64]:
        """Width and height of each box, shape (2, n), plus one pixel if the format counts the pixels of both corners."""
        return self.columns[2:] + float(self.inclusive)

    @cached_property
    def sized(self) -> NDArray[np.bool_]:
        """Mask of the boxes with positive width and height, shape (n,)."""
        return np.asarray((self.columns[2] > 0) & (self.columns[3] > 0))

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Width and height of each record's image, shape (n, 2); infinite if unknown."""
        known = self.on.images.sizes
        if known is None:
            return np.full((len(self), 2), np.inf)
        table = np.concatenate([np.where(known > 0, known, np.inf)[:, ::-1], np.full((1, 2), np.inf)])
        return np.asarray(table[self.image], np.float64)

    @cached_property
    def reach(self) -> NDArray[np.float64]:
        """Pixels by which each box exceeds its image, see `reach_of`."""
        return reach_of(self.columns.T, self.sizes)

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Mask of the boxes that cover the whole image except for at most 2 pixels at each edge, shape (n,)."""
        x, y, w, h = self.columns
        width, height = self.sizes.T
        out = (x <= WHOLE) & (y <= WHOLE)
        out &= ~np.isfinite(width) | ((x + w >= width - WHOLE) & (y + h >= height - WHOLE))
        return np.asarray(out)

    @cached_property
    def crowd(self) -> NDArray[np.bool_]:
        """Mask of the records that are crowds, shape (n,)."""
        return self.table.crowd if isinstance(self.table, GroundTruth) else np.zeros(len(self), np.bool_)

    @cached_property
    def drawn(self) -> tuple[Kind, Any] | None:
        """Kind and column of the masks; None if the records have no masks."""
        named = ((KINDS[name], column) for name, column in self.table.shapes.items())
        return next((one for one in named if one[0].image_sizes is not None), None)

    @cached_property
    def posed(self) -> tuple[Kind, Any] | None:
        """Kind and column of the poses (keypoints); None if the records have no poses."""
        named = ((KINDS[name], column) for name, column in self.table.shapes.items())
        return next((one for one in named if one[0].points is not None), None)

    def records(self, which: NDArray[Any], most: int = 10) -> dict[str, Any]:
        """Return the arguments of `found` that name the first rows of `which` (flags or indices), by record number if
        known, else by image id.
        """
        at = np.flatnonzero(which) if which.dtype == np.bool_ else which
        if at.size == len(self) > most:
            return {}  # all records are concerned
        at = at[:most]
        if self.rows is not None:
            return {"records": [int(row) for row in self.rows[at]], "named": "record"}
        ids = self.table.images.ids[self.table.images.codes[at]].tolist() if at.size else []
        return {"records": list(dict.fromkeys(ids)), "named": "image"}


def as_sizes(boxes: Boxes) -> NDArray[np.float64]:
    """Return boxes as x, y, width, height."""
    if boxes.sizes:
        return boxes.table
    table: NDArray[np.float64] = boxes.table.copy()
    table[:, 2:] -= table[:, :2]
    return table


def reach_of(boxes: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pixels by which each box exceeds its image; negative if the box lies inside or the image size is
    unknown.
    """
    x, y, w, h = np.ascontiguousarray(boxes.T)
    width, height = np.ascontiguousarray(sizes.T)
    far = np.maximum(x + w - width, y + h - height)
    near = np.where(np.isfinite(width + height), -np.minimum(x, y), -np.inf)
    return np.asarray(np.maximum(far, near))


def members(starts: NDArray[np.int64], held: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all positions from ``starts[i]`` to ``starts[i] + held[i] - 1``, range by range, as two arrays: the range
    i, and the position.
    """
    of = np.repeat(np.arange(held.size), held)
    return of, np.asarray(np.arange(of.size) - np.repeat(np.cumsum(held) - held - starts, held))


def overlaps(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """Return the IoU of each pair of boxes (x, y, width, height) in the same row; 0 if either box has no area."""
    (x, y, w, h), (u, v, s, t) = (np.ascontiguousarray(box.T) for box in (one, other))
    both = np.maximum(np.minimum(x + w, u + s) - np.maximum(x, u), 0.0)
    both *= np.maximum(np.minimum(y + h, v + t) - np.maximum(y, v), 0.0)
    union = np.maximum(w, 0.0) * np.maximum(h, 0.0) + np.maximum(s, 0.0) * np.maximum(t, 0.0) - both
    return np.asarray(np.divide(both, union, out=np.zeros(len(both)), where=union > 0))


def best_of(scores: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Return the rows, ascending, of the `most` highest scores."""
    first = len(scores) - most
    if first <= 0:
        return np.arange(len(scores))
    return np.sort(np.argpartition(scores, min(first, len(scores) - 1))[first:])


def on_crowds(
    truth: Side, image: NDArray[np.int64], boxes: NDArray[np.float64], least: float, pairs: int = 3_000_000
) -> NDArray[np.bool_]:
    """Mask of the boxes with at least the share `least` of their area on one crowd; `image` holds the image of each
    box. About `pairs` pairs of a box and a crowd are compared at once.
    """
    out = np.zeros(image.size, np.bool_)
    crowds = np.flatnonzero(truth.crowd)
    if not crowds.size:
        return out
    crowds = crowds[np.argsort(truth.image[crowds], kind="stable")]
    starts, stops = (np.searchsorted(truth.image[crowds], image, way) for way in ("left", "right"))
    for rows in np.array_split(np.flatnonzero(stops > starts), (stops - starts).sum() // pairs + 1):
        owner, at = members(starts[rows], (stops - starts)[rows])
        owner = rows[owner]
        (x, y, w, h), (u, v, s, t) = boxes[owner].T, truth.boxes[crowds[at]].T
        both = np.maximum(np.minimum(x + w, u + s) - np.maximum(x, u), 0)
        both *= np.maximum(np.minimum(y + h, v + t) - np.maximum(y, v), 0)
        out[owner[both >= least * w * h]] = True
    return out


def side_of(table: Table, truth: GroundTruth | None = None) -> Side:
    """Return the `Side` of a table in memory."""
    role: Role = "ground_truth" if isinstance(table, GroundTruth) else "detections"
    return Side(role, table, np.arange(len(table)), truth=truth)


def as_file(given: Any, role: Role) -> Any:
    """Encode COCO's dictionary or list as JSON, to be checked like a file; return any other value unchanged."""
    if not isinstance(given, Mapping | list | tuple):
        return given
    name = role.replace("_", " ")
    try:
        return Held.of(msgspec.json.encode(given, enc_hook=_plain), name)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be written as JSON: {error}", source=name) from None


def _plain(value: Any) -> Any:
    """Convert arrays, numpy scalars, and tensors to plain numbers and lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def read_truth(source: Input, iou_type: str | None) -> Side:
    """Read ground truth, skipping refused records; raise `InputError` if the error concerns more than single records."""
    kinds, shapeless = _kinds(source, iou_type)
    inspected = source.facts()
    refused: Sequence[Refused] = ()
    rows = None
    try:
        table = _read(source, kinds)
    except InputError as error:
        table, rows, refused = _salvaged(source, kinds, shapeless, None, error)
    rows = np.arange(len(table)) if rows is None and source.format.inspect is not None else rows
    return Side("ground_truth", table, rows, refused, shapeless, inspected, inclusive=source.format.name in _INCLUSIVE)


def read_found(source: Input, truth: GroundTruth, iou_type: str | None) -> Side:
    """Read detections, and skip records that are refused. Detections on unknown images are kept if the file can be read
    without ground truth; otherwise they are only counted.
    """
    form = source.format
    kinds, shapeless = _kinds(source, iou_type)
    refused: Sequence[Refused] = ()
    rows = None
    if form.needs_images or source.reading.class_map is not None:
        try:
            table = _read(source, kinds, truth)
        except InputError as error:
            if source.reading.class_map is not None:
                raise
            table, rows, refused = _salvaged(source, kinds, shapeless, truth, error)
    else:
        try:
            try:
                table = _read(source, kinds)
            except InputError:  # some formats need the image sizes
                table = _read(source, kinds, truth)
        except InputError as error:
            table, rows, refused = _salvaged(source, kinds, shapeless, truth, error)
        else:
            rows = np.arange(len(table)) if form.salvage is not None else None
    assert isinstance(table, Detections)
    unknown = table.notices.get("unknown_image", 0)
    raw = None
    strange = (locate(table.categories.ids, truth.categories.ids) < 0).any()
    if form.needs_images and (unknown or strange):
        with suppress(InputError):  # some files cannot be read without ground truth
            raw = _read(source, [BOXES] if form.holds is None or BOXES in form.holds else kinds)
    if unknown:
        rows = None
    if isinstance(raw, Detections) and unknown == len(raw) and raw.images.ids.dtype.kind == "i":
        table, unknown = raw, 0  # no image id was found, so keep the original ids for an explanation
    return Side(
        "detections",
        table,
        rows,
        refused,
        shapeless,
        unknown=unknown,
        raw=raw if isinstance(raw, Detections) else None,
        truth=truth,
        inclusive=form.name in _INCLUSIVE,
    )


def _kinds(source: Input, iou_type: str | None) -> tuple[list[str], dict[str, int]]:
    """Return the kinds of geometry that all records have. For each kind that only most records have, also return the
    number of records without this kind.
    """
    counts = source.kinds() or {}
    total = counts.pop("", 0)
    counts = {kind: count for kind, count in counts.items() if count and KINDS[kind].column_name == kind}
    if iou_type is not None:
        stored = KINDS.find(iou_type).column_name
        return [stored], {k: total - n for k, n in counts.items() if k == stored and n < total}
    most = {kind: count for kind, count in counts.items() if 2 * count > total}
    full = [kind for kind, count in most.items() if count == total]
    held = None if source.known is None else source.known.holds
    others = [BOXES if held is None or BOXES in held else KINDS[held[0]].column_name]
    return full or others, {kind: total - count for kind, count in most.items() if count < total}


def _read(source: Input, kinds: Sequence[str], truth: GroundTruth | None = None) -> Table:
    """Read a table with geometry of the given kinds."""
    reading = replace(source.reading, unknown_images="error" if truth is None else "ignore")
    tables = [source.read_as(replace(reading, iou_type=kind)).table(truth) for kind in kinds]
    table = tables[0]
    for other in tables[1:]:
        table = replace(
            table,
            shapes={**other.shapes, **table.shapes},
            kinds=tuple(kinds),
            notices={**other.notices, **table.notices},
        )
    return table


def _salvaged(
    source: Input, kinds: Sequence[str], others: Iterable[str], truth: GroundTruth | None, error: InputError
) -> tuple[Table, NDArray[np.int64] | None, Sequence[Refused]]:
    """Return the readable records of a refused file, if its format allows skipping records; else raise `error`."""
    # If no record can be read with `kinds`, read `others`, the kinds of geometry that most records have.
    made = source.salvage(kinds, truth)
    if made is not None and not len(made[0]) and others:  # the records may have no boxes
        made = source.salvage(list(others), truth)
    if made is None or not made[2]:  # no single record was refused, so the error concerns the file
        raise error
    if not len(made[0]) and kinds[0] != BOXES and all(one.code == "missing_shapes" for one in made[2]):
        asked = f"of the kind {kinds[0]}"
        return made[0], made[1], [one._replace(code="no_shapes", problem=asked) for one in made[2]]
    return made


def read_schema(source: Input) -> Side:
    """Read the images and categories of a file, without its records."""
    held = source.source
    if isinstance(held, Held) or not os.path.isdir(held):
        data, name = read_bytes(held, "images and categories")
        with suppress(*UNREADABLE):
            document = msgspec.json.decode(unmarked(data), type=dict[str, msgspec.Raw])
            if {"images", "categories"} <= set(document):
                parts = [b'"%b":%b' % (key.encode(), bytes(document[key])) for key in ("images", "categories")]
                held = Held.of(b"{%b,%b}" % (b",".join(parts), b'"annotations":[]'), name)
                source = Input(held, "ground_truth", source.reading)
    table = _read(source, [BOXES])
    assert isinstance(table, GroundTruth)
    return Side("ground_truth", table.take(np.zeros(len(table), np.bool_)), np.empty(0, np.int64))
