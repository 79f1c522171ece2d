"""What is checked: a table of each side as it could be read, and what its file says besides."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import locate
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import InputError
from detmap.formats import files, registry
from detmap.formats.registry import Format, Inspection, Path, Refused, Role
from detmap.reading.opening import Held
from detmap.reading.sources import read_bytes
from detmap.shapes import KINDS, Boxes

#: What a record of each role is called.
UNITS = {"ground_truth": "object", "detections": "detection"}

Table = GroundTruth | Detections


class Options(NamedTuple):
    """How the files are to be read, as for `detmap.read`."""

    gt_format: str | None = None
    dt_format: str | None = None
    iou_type: str | None = None
    image_set: Path | None = None
    image_sizes: Any = None
    classes: Any = None
    gt_columns: Any = None
    columns: Any = None
    gt_box_format: str | None = None
    box_format: str | None = None
    class_map: Any = None

    def of(self, role: Role) -> dict[str, Any]:
        """Return what `detmap.formats.files.read` takes for a role."""
        shared = {"image_sizes": self.image_sizes, "classes": self.classes, "invalid_boxes": "miss"}
        if role == "ground_truth":
            more = {"image_set": self.image_set, "columns": self.gt_columns, "box_format": self.gt_box_format}
            return {**shared, **more, "format": self.gt_format, "image_facts": True}
        more = {"columns": self.columns, "box_format": self.box_format, "class_map": self.class_map}
        return {**shared, **more, "format": self.dt_format}


@dataclass(eq=False)
class Side:
    """One side of a check.

    Attributes
    ----------
    role : {"ground_truth", "detections"}
        Which.
    table : GroundTruth or Detections
        What could be read.
    rows : ndarray of int64, shape (n,), or None
        The number of each row's record in the file; None where it is not known, as some records were left aside.
    refused : sequence of Refused
        Records that could not be read.
    shapeless : mapping of str to int
        How many records have no shape of a kind that others have.
    inspected : Inspection, or None
        What the file says besides.
    unknown : int
        Of detections: how many were dropped while reading, as the ground truth does not have their image.
    raw : Detections, or None
        Of these: the table with ids as the file has them.
    truth : GroundTruth, or None
        Of detections: the images that they are on.
    """

    role: Role
    table: Table
    rows: NDArray[np.int64] | None = None
    refused: Sequence[Refused] = ()
    shapeless: Mapping[str, int] = field(default_factory=dict)
    inspected: Inspection | None = None
    unknown: int = 0
    raw: Detections | None = None
    truth: GroundTruth | None = None

    def __len__(self) -> int:
        return len(self.table)

    @property
    def unit(self) -> str:
        """What a record is called."""
        return UNITS[self.role]

    @property
    def on(self) -> GroundTruth:
        """The table that says which images there are."""
        return self.table if isinstance(self.table, GroundTruth) else self._truth

    @property
    def _truth(self) -> GroundTruth:
        assert self.truth is not None
        return self.truth

    @cached_property
    def image(self) -> NDArray[np.int64]:
        """Each record's image as a place among those of the ground truth, -1 where it has none."""
        if isinstance(self.table, GroundTruth):
            return self.table.images.codes.astype(np.int64)
        place = locate(self.table.images.ids, self._truth.images.ids)
        return place[self.table.images.codes] if len(self) else np.empty(0, np.int64)

    @cached_property
    def boxes(self) -> NDArray[np.float64]:
        """x, y, width, height of each record."""
        boxes = self.table.shapes["bbox"]
        assert isinstance(boxes, Boxes)
        return as_sizes(boxes)

    @cached_property
    def columns(self) -> NDArray[np.float64]:
        """The same, shape (4, n): each coordinate in one piece, which is quicker to go through."""
        return np.ascontiguousarray(self.boxes.T)

    @cached_property
    def sized(self) -> NDArray[np.bool_]:
        """Which boxes have a width and a height above 0."""
        return np.asarray((self.columns[2] > 0) & (self.columns[3] > 0))

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Width and height of each record's image, shape (n, 2), infinite where they are not known."""
        known = self.on.images.sizes
        if known is None:
            return np.full((len(self), 2), np.inf)
        table = np.concatenate([np.where(known > 0, known, np.inf)[:, ::-1], np.full((1, 2), np.inf)])
        return np.asarray(table[self.image], np.float64)

    @cached_property
    def reach(self) -> NDArray[np.float64]:
        """By how many pixels each box reaches beyond its image, as `reach_of` says it."""
        return reach_of(self.columns.T, self.sizes)

    @cached_property
    def crowd(self) -> NDArray[np.bool_]:
        """Which records are crowds."""
        return self.table.crowd if isinstance(self.table, GroundTruth) else np.zeros(len(self), np.bool_)

    def records(self, which: NDArray[Any], most: int = 10) -> dict[str, Any]:
        """Return what a finding says of the first of some rows, given as flags or indices: numbers, else their images."""
        at = np.flatnonzero(which) if which.dtype == np.bool_ else which
        if at.size == len(self) > most:
            return {}  # it is all of them
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
    """Return by how many pixels boxes reach beyond images; negative where they do not, or no size is known."""
    x, y, w, h = np.ascontiguousarray(boxes.T)
    width, height = np.ascontiguousarray(sizes.T)
    far = np.maximum(x + w - width, y + h - height)
    near = np.where(np.isfinite(width + height), -np.minimum(x, y), -np.inf)
    return np.asarray(np.maximum(far, near))


def side_of(table: Table, truth: GroundTruth | None = None) -> Side:
    """Return the side of a table that is in memory."""
    role: Role = "ground_truth" if isinstance(table, GroundTruth) else "detections"
    return Side(role, table, np.arange(len(table)), truth=truth)


def read_truth(source: Path, options: Options) -> Side:
    """Read ground truth, and leave aside what cannot be read.

    Raises
    ------
    InputError
        Where nothing can be read.
    """
    held = files.held(source)
    form = registry.find(held, "ground_truth", options.gt_format)
    kinds, shapeless = _kinds(form, held, options.iou_type)
    inspected = form.inspect(held) if form.inspect is not None else None
    refused: Sequence[Refused] = ()
    rows = None
    try:
        table = _read(held, "ground_truth", kinds, options)
    except InputError as error:
        table, rows, refused = _salvaged(form, held, "ground_truth", kinds, shapeless, None, error)
    rows = np.arange(len(table)) if rows is None and form.inspect is not None else rows
    return Side("ground_truth", table, rows, refused, shapeless, inspected)


def read_found(source: Path, truth: GroundTruth, options: Options) -> Side:
    """Read detections likewise. They may be on any images."""
    held = files.held(source)
    form = registry.find(held, "detections", options.dt_format)
    kinds, shapeless = _kinds(form, held, options.iou_type)
    refused: Sequence[Refused] = ()
    rows = None
    if form.needs_images or options.class_map is not None:
        table = _read(held, "detections", kinds, options, truth)
    else:
        try:
            try:
                table = _read(held, "detections", kinds, options)
            except InputError:  # shapes may need the sizes of images
                table = _read(held, "detections", kinds, options, truth)
        except InputError as error:
            table, rows, refused = _salvaged(form, held, "detections", kinds, shapeless, truth, error)
        else:
            rows = np.arange(len(table)) if form.salvage is not None else None
    assert isinstance(table, Detections)
    unknown = table.notices.get("unknown_image", 0)
    raw = None
    strange = (locate(table.categories.ids, truth.categories.ids) < 0).any()
    if form.needs_images and (unknown or strange):
        with suppress(InputError):  # some cannot be read without ground truth
            raw = _read(held, "detections", ["bbox"], options)
    if unknown:
        rows = None
    if isinstance(raw, Detections) and unknown == len(raw) and raw.images.ids.dtype.kind == "i":
        table, unknown = raw, 0  # nothing was mapped: the ids may tell why
    return Side(
        "detections",
        table,
        rows,
        refused,
        shapeless,
        unknown=unknown,
        raw=raw if isinstance(raw, Detections) else None,
        truth=truth,
    )


def _kinds(form: Format, source: Path | Held, iou_type: str | None) -> tuple[list[str], dict[str, int]]:
    """Return the kinds of shape that all records have, and of how many a kind is missing that others have."""
    counts = {} if form.kinds_in is None else dict(form.kinds_in(source))
    total = counts.pop("", 0)
    counts = {kind: count for kind, count in counts.items() if count and KINDS[kind].column_name == kind}
    if iou_type is not None:
        stored = KINDS.find(iou_type).column_name
        return [stored], {k: total - n for k, n in counts.items() if k == stored and n < total}
    most = {kind: count for kind, count in counts.items() if 2 * count > total}
    full = [kind for kind, count in most.items() if count == total]
    return full or ["bbox"], {kind: total - count for kind, count in most.items() if count < total}


def _read(source: Path | Held, role: Role, kinds: Sequence[str], options: Options, truth: Any = None) -> Table:
    """Read a table with shapes of some kinds."""
    more: dict[str, Any] = {} if truth is None else {"ground_truth": truth, "unknown_images": "ignore"}
    source, own = files.concerning(source, role, options.of(role))
    tables = [files.read(source, role, iou_type=kind, **own, **more) for kind in kinds]
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
    form: Format,
    source: Path | Held,
    role: Role,
    kinds: Sequence[str],
    others: Iterable[str],
    truth: GroundTruth | None,
    error: InputError,
) -> tuple[Table, NDArray[np.int64], Sequence[Refused]]:
    """Return what can be read of a file that is refused, where its format can leave records aside.

    Where nothing can be, `others` are the kinds of shape that most records have.
    """
    made = None if form.salvage is None else form.salvage(source, role, kinds, truth)
    if (
        made is not None and not len(made[0]) and others and form.salvage is not None
    ):  # records without boxes of their own
        made = form.salvage(source, role, list(others), truth)
    if made is None or not made[2]:  # where nothing else is wrong with it, what was said is
        raise error
    return made


def read_schema(source: Path, options: Options) -> Side:
    """Read the images and categories of a file, and nothing of what may be on them.

    Raises
    ------
    InputError
        Where there are none.
    """
    held: Path | Held = files.held(source)
    name = getattr(held, "name", None) or os.fspath(source)
    if isinstance(held, Held) or not os.path.isdir(held):
        data, name = read_bytes(held, "images and categories")
        with suppress(msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            document = msgspec.json.decode(bytes(data).removeprefix(b"\xef\xbb\xbf"), type=dict[str, msgspec.Raw])
            if {"images", "categories"} <= set(document):
                parts = [b'"%b":%b' % (key.encode(), bytes(document[key])) for key in ("images", "categories")]
                held = Held.of(b"{%b,%b}" % (b",".join(parts), b'"annotations":[]'), name)
    table = _read(held, "ground_truth", ["bbox"], options)
    assert isinstance(table, GroundTruth)
    return Side("ground_truth", table.take(np.zeros(len(table), np.bool_)), np.empty(0, np.int64))
