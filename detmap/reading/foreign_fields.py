"""Detect fields of other benchmarks in COCO's ground truth, decoding only these fields."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from detmap.data.benchmarks import VALUES, fields_of, has_field, noted
from detmap.reading.documents import Buffer

if TYPE_CHECKING:
    import msgspec


@cache
def _foreign() -> tuple[dict[str, Any], Any]:
    """Return an empty record for each list, by name, and a decoder of the fields of other benchmarks."""
    import msgspec

    plain: dict[str, Any] = {}
    lists: list[Any] = []
    for section in ("images", "annotations", "categories"):
        fields: Any = [(field, msgspec.Raw, msgspec.Raw()) for field in fields_of(section)]
        record = msgspec.defstruct("_Record", fields, gc=False)
        plain[section] = record()
        lists.append((section, list[record], []))  # type: ignore[valid-type]
    return plain, msgspec.json.Decoder(msgspec.defstruct("_Document", lists, gc=False)).decode


def foreign_fields(data: Buffer) -> dict[str, int]:
    """Return the notices on fields of other benchmarks in valid ground truth."""
    plain, decode = _foreign()
    document = decode(data[3:] if data[:3] == BOM_UTF8 else data)
    found: dict[str, int] = {}
    for section, none in plain.items():
        records = getattr(document, section)
        found |= noted(
            [field for field in fields_of(section) if _any_has(records, field, getattr(none, field))], section
        )
    return found


def _any_has(records: Sequence[Any], field: str, absent: Any) -> bool:
    """Return whether any record has a field; `absent` is the value that the decoder gives to a missing field."""
    return any(_is_foreign(value, field) for value in map(attrgetter(field), records) if value is not absent)


def _is_foreign(raw: msgspec.Raw, field: str) -> bool:
    """Return whether a field has a value that its benchmark uses."""
    import msgspec

    value = bytes(raw)
    return bool(value) and (field not in VALUES or has_field({field: msgspec.json.decode(value)}, field))
