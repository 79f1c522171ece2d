"""LVIS's and CrowdPose's fields of images and categories in COCO's JSON: what was looked for, how frequent, how crowded."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from detmap.data.benchmarks import has_field
from detmap.data.crowding import crowd_index_of
from detmap.errors import InputError
from detmap.reading.sources import Buffer

#: The fields of an image that list categories.
LISTS = ("neg_category_ids", "not_exhaustive_category_ids")

_NOTED = tuple(f"foreign_fields:{field} (" for field in (*LISTS, "frequency", "crowdIndex"))


class _Image(msgspec.Struct, gc=False):
    id: int | str
    neg_category_ids: Any = None
    not_exhaustive_category_ids: Any = None
    crowdIndex: Any = None


class _Category(msgspec.Struct, gc=False):
    id: int | str
    frequency: Any = None


class _Document(msgspec.Struct, gc=False):
    images: list[_Image] = []
    categories: list[_Category] = []


_decode = msgspec.json.Decoder(_Document).decode


def federated_columns(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what a parsed document says, as arguments of `GroundTruth.from_arrays`."""
    return _columns(document["images"], document["categories"], name)


def federated_columns_in(data: Buffer, notices: Mapping[str, int], name: str) -> dict[str, Any]:
    """Return what a valid document says; it is looked at only where the `notices` say that it has such fields."""
    if not any(code.startswith(_NOTED) and count for code, count in notices.items()):
        return {}
    return _decoded(data[3:] if data[:3] == BOM_UTF8 else data, name)


def federated_columns_of(sections: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """Return what the lists of images and categories of a valid document say, as they stand in it."""
    return _decoded(b"{%b}" % b",".join(b'"%b":%b' % (key.encode(), text) for key, text in sections.items()), name)


def _decoded(document: Buffer, name: str) -> dict[str, Any]:
    found = _decode(document)
    images = [{field: getattr(one, field) for field in ("id", *LISTS, "crowdIndex")} for one in found.images]
    return _columns(images, [{"id": one.id, "frequency": one.frequency} for one in found.categories], name)


def _columns(images: Iterable[Mapping[str, Any]], categories: Iterable[Mapping[str, Any]], name: str) -> dict[str, Any]:
    lists: dict[str, dict[Any, Any]] = {field: {} for field in LISTS}
    crowding: dict[Any, float] = {}
    for row, image in enumerate(images):
        if image.get("crowdIndex") is not None:
            crowding.setdefault(image["id"], crowd_index_of(image["crowdIndex"], name, f"image {row}"))
        for field, made in lists.items():
            value = image.get(field)
            if value is None:
                continue
            if not isinstance(value, list | tuple):
                raise InputError(
                    "must be a list of category ids", source=name, record=f"image {row}", field=field, value=value
                )
            made.setdefault(image["id"], value)
    frequencies = {one["id"]: one["frequency"] for one in categories if has_field(one, "frequency")}
    return {
        **{field: made or None for field, made in lists.items()},
        "frequencies": frequencies or None,
        "crowd_index": crowding or None,
    }
