"""Federated fields in COCO's JSON, from LVIS, Open Images and CrowdPose: category lists of images, frequencies of
categories, flags of boxes around groups, and CrowdPose's crowd index of images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

from detmap.data.benchmarks import NO_FLAG, has_field, is_flag, is_no_flag
from detmap.data.crowding import crowd_index_of
from detmap.errors import InputError
from detmap.reading.sources import Buffer, unmarked

#: Fields that hold lists of categories in the records of images.
LISTS = ("neg_category_ids", "not_exhaustive_category_ids", "pos_category_ids")

#: Spellings of the annotation field that marks a box around a group.
GROUPS = ("is_group_of", "IsGroupOf", "isgroupof")

_NOTED = tuple(f"foreign_fields:{field} (" for field in (*LISTS, "frequency", "crowdIndex"))
_NOTED_GROUPS = tuple(f"foreign_fields:{field} (" for field in GROUPS)


@cache
def _decoders() -> tuple[Callable[[Buffer], Any], Callable[[Buffer], Any]]:
    """Return two decoders: for the federated fields of images and categories, and for the group flags of annotations."""
    import msgspec

    unknown: Any = (Any, None)
    image: Any = [("id", int | str), *((field, *unknown) for field in (*LISTS, "crowdIndex"))]
    category: Any = [("id", int | str), ("frequency", *unknown)]
    annotation: Any = [(field, *unknown) for field in GROUPS]
    lists = {"images": image, "categories": category, "annotations": annotation}
    records = {name: msgspec.defstruct("_Record", fields, gc=False) for name, fields in lists.items()}
    typed: Any = [(name, list[record], []) for name, record in records.items()]  # type: ignore[valid-type]
    document, groups = (msgspec.defstruct("_Document", one, gc=False) for one in (typed[:2], typed[2:]))
    return msgspec.json.Decoder(document).decode, msgspec.json.Decoder(groups).decode


def federated_columns(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the federated fields of a parsed document as arguments of `GroundTruth.from_arrays`."""
    annotations, images = document["annotations"], document["images"]
    groups = [[one.get(field) for field in GROUPS] for one in annotations]
    columns = {field: [one.get(field) for one in images] for field in (*LISTS, "crowdIndex")}
    ids = [one["id"] for one in images]
    return {**_columns(ids, columns, document["categories"], name), **_groups(groups, name)}


def has_groups(notices: Mapping[str, int]) -> bool:
    """Return whether the notices on a document mention a field that marks groups."""
    return any(code.startswith(_NOTED_GROUPS) and count for code, count in notices.items())


def groups_in(data: Buffer, name: str) -> dict[str, Any]:
    """Return which annotations of a valid document are groups."""
    found = _decode(_decoders()[1], unmarked(data), name).annotations
    return _groups([[getattr(one, field) for field in GROUPS] for one in found], name)


def _groups(values: Sequence[Sequence[Any]], name: str) -> dict[str, Any]:
    for row, own in enumerate(values):
        for field, value in zip(GROUPS, own, strict=True):
            if is_no_flag(value):
                raise InputError(NO_FLAG, source=name, record=f"annotation {row}", field=field, value=value)
    flags = np.array([any(map(is_flag, own)) for own in values], np.bool_)
    return {"group_of": flags} if flags.any() else {}


def federated_columns_in(data: Buffer, notices: Mapping[str, int], name: str) -> dict[str, Any]:
    """Return the federated fields of a valid document. Nothing is parsed if the `notices` mention no such field."""
    if not any(code.startswith(_NOTED) and count for code, count in notices.items()):
        return {}
    return _decoded(unmarked(data), name)


def federated_columns_of(sections: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """Return the federated fields from the raw lists of images and categories of a valid document."""
    if not sections:
        return _columns((), {}, (), name)
    return _decoded(b"{%b}" % b",".join(b'"%b":%b' % (key.encode(), text) for key, text in sections.items()), name)


def _decode(decoder: Callable[[Buffer], Any], document: Buffer, name: str) -> Any:
    """Decode a document; `name` is its name in messages."""
    from detmap.reading.typed_json import UNREADABLE, refused

    try:
        return decoder(document)
    except UNREADABLE as error:  # a number beyond float64
        raise refused(error, name) from None


def _decoded(document: Buffer, name: str) -> dict[str, Any]:
    found = _decode(_decoders()[0], document, name)
    ids = [one.id for one in found.images]
    columns = {field: list(map(attrgetter(field), found.images)) for field in (*LISTS, "crowdIndex")}
    return _columns(ids, columns, [{"id": one.id, "frequency": one.frequency} for one in found.categories], name)


def _columns(
    ids: Sequence[Any], columns: Mapping[str, Sequence[Any]], categories: Iterable[Mapping[str, Any]], name: str
) -> dict[str, Any]:
    """Return the arguments of `GroundTruth.from_arrays`; if several images have the same id, the first image is taken."""
    lists: dict[str, dict[Any, Any]] = {}
    for field in LISTS:
        made = lists[field] = {}
        for row, value in enumerate(columns.get(field, ())):
            if value is None:
                continue
            if not isinstance(value, list | tuple):
                raise InputError(
                    "must be a list of category ids", source=name, record=f"image {row}", field=field, value=value
                )
            made.setdefault(ids[row], value)
    crowding: dict[Any, float] = {}
    for row, value in enumerate(columns.get("crowdIndex", ())):
        if value is not None:
            crowding.setdefault(ids[row], crowd_index_of(value, name, f"image {row}"))
    frequencies = {one["id"]: one["frequency"] for one in categories if has_field(one, "frequency")}
    return {
        **{field: made or None for field, made in lists.items()},
        "frequencies": frequencies or None,
        "crowd_index": crowding or None,
    }
