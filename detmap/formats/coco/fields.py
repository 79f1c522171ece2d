"""Read further fields of COCO's annotations, such as the occlusion of objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError, shorten
from detmap.reading.sources import Buffer, unmarked
from detmap.reading.typed_json import UNREADABLE


def annotation_fields(
    document: Buffer | Mapping[str, Any], names: Sequence[str], source: str
) -> dict[str, NDArray[np.float64]]:
    """Return a column for each field in `names`, with NaN for annotations without the field.

    ``"attributes.occluded"`` is a field of a nested object. Raises `InputError` for a field that occurs in no
    annotation, and for a value that is neither a number nor a boolean.
    """
    if not names:
        return {}
    records = document["annotations"] if isinstance(document, Mapping) else _records(document, names, source)
    return {name: _column(records, name, document, source) for name in names}


def _records(document: Buffer, names: Sequence[str], source: str) -> list[dict[str, Any]]:
    """Return the annotations with only the given fields, or with all fields if `names` is empty."""
    text = unmarked(document)
    heads = list(dict.fromkeys(name.partition(".")[0] for name in names))
    record: Any = dict[str, Any]
    if heads:
        plain = [f"field{place}" for place in range(len(heads))]
        types = [(field, Any, None) for field in plain]
        record = msgspec.defstruct("_Record", types, rename=dict(zip(plain, heads, strict=True)), gc=False)
    try:
        found: Any = msgspec.json.decode(text, type=msgspec.defstruct("_Document", [("annotations", list[record])]))
    except UNREADABLE as error:
        raise InputError(f"fields of annotations cannot be read: {error}", source=source) from None
    if not heads:
        return list(found.annotations)
    return [{name: getattr(one, field) for field, name in zip(plain, heads, strict=True)} for one in found.annotations]


def _column(records: Sequence[Mapping[str, Any]], name: str, document: Any, source: str) -> NDArray[np.float64]:
    values = [_value(record, name) for record in records]
    if records and all(value is None for value in values):
        every = document["annotations"] if isinstance(document, Mapping) else _records(document, (), source)
        known = dict.fromkeys(field for record in every for field in _numeric(record))
        raise InputError(
            f"no annotation has the field {shorten(name)}, which levels or ranges of the rules ask for",
            source=source,
            remedy=f"fields with numbers or booleans are: {', '.join(list(known)[:40])}",
        )
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, int | float):
            raise InputError(
                "is neither a number nor a boolean", source=source, record=f"annotation {row}", field=name, value=value
            )
    return np.array([np.nan if value is None else float(value) for value in values], np.float64)


def _value(record: Mapping[str, Any], name: str) -> Any:
    if name in record:
        return record[name]
    head, _, rest = name.partition(".")
    within = record.get(head)
    return within.get(rest) if rest and isinstance(within, Mapping) else None


def _numeric(record: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the names of numeric and boolean fields, including those of nested objects."""
    found = [f"{prefix}{name}" for name, value in record.items() if isinstance(value, int | float)]
    if not prefix:
        for name, value in record.items():
            found += _numeric(value, f"{name}.") if isinstance(value, Mapping) else []
    return found
