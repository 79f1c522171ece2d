"""Read further facts from COCO's files: names and sizes of images, kinds of shape, and facts for ``detmap check``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from detmap.data.ids import locate
from detmap.data.tables import GroundTruth
from detmap.errors import InputError
from detmap.formats.coco.lines import holds_lines
from detmap.formats.registry import Inspection, Outlines
from detmap.kernels import readonly
from detmap.reading.sources import Buffer, Opened, Source, read_bytes, unmarked
from detmap.reading.typed_json import UNREADABLE
from detmap.shapes import fields as kinds_by_field
from detmap.shapes.kinds import MASKS, SHIPPED_FIELDS, SHIPPED_LISTS


class _Image(msgspec.Struct, gc=False):
    id: int | str
    file_name: Any = None
    height: Any = None
    width: Any = None


class _Category(msgspec.Struct, gc=False):
    id: int | str
    skeleton: Any = None


class _Document(msgspec.Struct, gc=False):
    images: list[_Image]
    categories: list[_Category] = []


class _Fields(msgspec.Struct, gc=False):
    images: list[dict[str, Any]]


_decode = msgspec.json.Decoder(_Document).decode

#: Maximum number of limbs of a category; longer lists in files are ignored.
_LIMBS = 500


def with_facts(table: GroundTruth, data: Buffer) -> GroundTruth:
    """Add the names and sizes of images, and the limbs of categories, from the JSON `data` to ground truth. Raises
    `InputError` for invalid JSON. Invalid names, sizes and skeletons are left out; a valid size is two whole
    numbers of at least 1.
    """
    try:
        document = _decode(unmarked(data))
    except UNREADABLE as error:
        raise InputError(f"names and sizes of images cannot be read: {error}", source=table.source) from None
    images, count = document.images, table.images.values.size
    place = locate(np.array([one.id for one in images]), table.images.values)
    names, known = [""] * count, table.images.sizes
    for row, name in zip(place.tolist(), map(attrgetter("file_name"), images), strict=True):
        if isinstance(name, str):
            names[row] = name
    if known is None:
        sizes = np.zeros((count, 2), np.int64)
        for row, one in zip(place.tolist(), images, strict=True):
            if is_side(one.height) and is_side(one.width):
                sizes[row] = int(one.height), int(one.width)
        known = readonly(sizes, np.int64) if sizes.any() else None
    limbs = {one.id: _limbs(one.skeleton) for one in document.categories}
    return replace(
        table,
        images=replace(table.images, sizes=known, names=tuple(names) if any(names) else None),
        categories=replace(
            table.categories,
            limbs=tuple(limbs.get(one, ()) for one in table.categories.ids.tolist()) if any(limbs.values()) else None,
        ),
    )


def _limbs(skeleton: Any) -> tuple[tuple[int, int], ...]:
    """Return the pairs of points in COCO's ``skeleton``, counted from 0 instead of 1; () if it is invalid."""
    if not isinstance(skeleton, list) or len(skeleton) > _LIMBS:
        return ()
    if not all(isinstance(one, list) and len(one) == 2 and all(map(is_side, one)) for one in skeleton):
        return ()
    return tuple((int(first) - 1, int(second) - 1) for first, second in skeleton)


def image_field(source: Source, name: str) -> dict[Any, Any]:
    """Map image ids to the values of a field of the images, None for an image without the field. Return an empty dict for
    an invalid document.
    """
    data, _ = read_bytes(source, "ground truth")
    text = unmarked(data)
    if name.isascii() and name.isidentifier() and not has_key(text, name):
        return {}
    try:
        images = msgspec.json.decode(text, type=_Fields).images
    except UNREADABLE:
        return {}
    return {one.get("id"): one.get(name) for one in images}


#: Values of a field that hold no geometry.
_NOTHING = tuple(map(msgspec.Raw, (b"", b"null", b"[]")))


def kinds_in(source: Source) -> dict[str, int]:
    """Count the records with masks, keypoints and other shapes, by kind of shape; the key "" counts all records. The
    result is empty if there are only boxes.
    """
    fields = kinds_by_field() | {field: kind for kind, names in SHIPPED_LISTS.items() for field in names}
    with Opened(source, "records") as opened:
        absent = _absent(opened, fields)
        fields = {field: kind for field, kind in fields.items() if field not in absent}
        if not fields:
            return {}
        data, name = opened.whole(), opened.name
    text = unmarked(data)
    fields = {field: kind for field, kind in fields.items() if has_key(text, field)}
    if not fields:
        return {}
    record = msgspec.defstruct("_Record", [(field, msgspec.Raw, msgspec.Raw()) for field in fields], gc=False)
    try:
        if holds_lines(source, name):
            records = msgspec.json.Decoder(record).decode_lines(text)
        elif re.match(rb"\s*\[", text):
            records = msgspec.json.decode(text, type=list[record])  # type: ignore[valid-type]
        else:
            lists: Any = [(key, list[record], []) for key in ("annotations", "predictions")]  # type: ignore[valid-type]
            document = msgspec.json.decode(text, type=msgspec.defstruct("_Records", lists, gc=False))
            records = document.annotations or document.predictions  # type: ignore[attr-defined]
    except UNREADABLE:
        return {}
    found = {"": len(records)}
    for kind in dict.fromkeys(fields.values()):
        own = [field for field, other in fields.items() if other == kind]
        columns = (map(attrgetter(field), records) for field in own)
        found[kind] = sum(not any(one in _NOTHING for one in row) for row in zip(*columns, strict=True))
    return found


def has_key(text: Buffer, name: str) -> bool:
    """Return whether a document may have a key. If the document has escaped letters, the result is true, because they may
    spell the key.
    """
    return any(re.search(part, text) for part in (b'"%b"' % re.escape(name.encode()), rb"\\u00"))


def _absent(opened: Opened, names: Iterable[str]) -> set[str]:
    """Return the keys that cannot occur, because one of their letters does not occur in the document."""
    # Results with only boxes lack at least one letter of every other key. This test takes a tenth of the time of a
    # search for the keys, and no memory.
    letters = {name: set(name.encode()) for name in names}
    missing = {ord("\\")}.union(*letters.values())
    for piece in opened.pieces():
        missing = {letter for letter in missing if letter not in piece}
        if not any(needed & missing for needed in letters.values()):
            break
    return {name for name, needed in letters.items() if needed & missing and ord("\\") in missing}


def is_side(value: Any) -> bool:
    """Return whether a JSON value can be the height or width of an image."""
    return type(value) in (int, float) and 1 <= value < 2**32 and value == int(value)


# ------------------------------------------------------------------------------------------------------------------ inspect

_Polygons = list[list[float]] | dict[str, msgspec.Raw] | None


class _Listed(msgspec.Struct, gc=False):
    id: int | str | None = None


class _Drawn(msgspec.Struct, gc=False, rename={"polygons": SHIPPED_FIELDS[MASKS]}):
    polygons: _Polygons = None


class _Lists(msgspec.Struct, gc=False):
    images: list[_Listed] = []
    categories: list[_Listed] = []


class _Shapes(_Lists, gc=False):
    annotations: list[_Drawn] = []


def inspect(source: Source) -> Inspection | None:
    """Return facts about a file of ground truth that ``detmap check`` examines; None if the file cannot be decoded."""
    data, _ = read_bytes(source, "ground truth")
    text = unmarked(data)
    lists: _Lists | None = None
    outlines, listed = None, np.empty(0, np.int64)
    if has_key(text, SHIPPED_FIELDS[MASKS]):
        with suppress(*UNREADABLE):  # the reader raises the error for an invalid segmentation
            shapes = lists = msgspec.json.decode(text, type=_Shapes)
            drawn = [one.polygons for one in shapes.annotations]
            outlines = _outlines(drawn)
            listed = np.array([at for at, one in enumerate(drawn) if type(one) is dict and _lists_runs(one)], np.int64)
    if lists is None:
        try:
            lists = msgspec.json.decode(text, type=_Lists)
        except UNREADABLE:
            return None
    images, categories = ([one.id for one in part if one.id is not None] for part in (lists.images, lists.categories))
    return Inspection(images, categories, outlines, listed)


def _lists_runs(value: dict[str, msgspec.Raw]) -> bool:
    """Return whether a mask is written as a list of run lengths, not as a string."""
    return bytes(value.get("counts", b"")).startswith(b"[")


def _outlines(values: Sequence[Any]) -> Outlines | None:
    """Return the bounding boxes of polygons."""
    at = [(record, value) for record, value in enumerate(values) if isinstance(value, list)]
    counts = [len(value) for _, value in at]
    polygons = list(chain.from_iterable(value for _, value in at))
    if not polygons:
        return None
    numbers = np.fromiter(map(len, polygons), np.int64, len(polygons))
    # Drop an odd last coordinate, so that x and y stay aligned.
    flat = np.fromiter(chain.from_iterable(p[: len(p) // 2 * 2] for p in polygons), np.float64)
    points = flat.reshape(-1, 2)
    held = numbers // 2
    starts = np.cumsum(held) - held
    low, high = np.full((len(polygons), 2), np.inf), np.full((len(polygons), 2), -np.inf)
    some = held > 0
    if some.any():
        low[some] = np.minimum.reduceat(points, starts[some], axis=0)
        high[some] = np.maximum.reduceat(points, starts[some], axis=0)
    return Outlines(np.repeat([record for record, _ in at], counts).astype(np.int64), numbers, low, high)
