"""Fields of COCO's records for parts of a body, as in COCO-WholeBody: further lists of keypoints, scores, flags."""

from __future__ import annotations

import io
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.choices import is_number
from detmap.errors import InputError
from detmap.formats.coco.shapes import plain, read_texts
from detmap.reading.scanner import RESULT_LISTS
from detmap.reading.sources import Buffer
from detmap.shapes import Kind, Place


def parts_of_records(kind: Kind, records: Iterable[Mapping[str, Any]]) -> list[dict[str, bytes]]:
    """Return each parsed record's fields for parts of the body, encoded as JSON."""
    wanted = _fields(kind)
    return [
        {name: msgspec.json.encode(plain(record[name])) for name in wanted if record.get(name) is not None}
        for record in records
    ]


def parts_of_document(kind: Kind, data: Buffer, *, lines: bool = False) -> list[dict[str, bytes]]:
    """Return each record's fields for parts of the body, as raw JSON from a valid document."""
    text = data[3:] if data[:3] == BOM_UTF8 else data
    record, document = _structs(_fields(kind))
    if lines:
        decode = msgspec.json.Decoder(record).decode
        found: Sequence[Any] = [decode(line) for line in io.BytesIO(text) if line.strip()]
    elif bytes(text[:64]).lstrip()[:1] == b"[" or not bytes(text[:64]).strip():
        found = msgspec.json.Decoder(list[record]).decode(text)  # type: ignore[valid-type]
    else:
        held = msgspec.json.Decoder(document).decode(text)
        found = next((getattr(held, name) for name in RESULT_LISTS if getattr(held, name)), [])
    return [
        {name: raw for name in record.__struct_fields__ if (raw := bytes(getattr(one, name))) not in (b"", b"null")}
        for one in found
    ]


@cache
def _structs(fields: tuple[str, ...]) -> tuple[Any, Any]:
    """Return the struct types of a record with these fields, and of an object with a list of such records."""
    typed: Any = [(field, msgspec.Raw, msgspec.Raw()) for field in fields]
    record = msgspec.defstruct("_Record", typed, gc=False)
    lists: Any = [(name, list[record], []) for name in RESULT_LISTS]  # type: ignore[valid-type]
    return record, msgspec.defstruct("_Document", lists, gc=False)


def _fields(kind: Kind) -> tuple[str, ...]:
    return (*(field for field in kind.lists if field != kind.field), *kind.scores, *kind.flags)


def with_parts(
    kind: Kind, columns: dict[str, Any], parts: Sequence[Mapping[str, bytes]], name: str, what: str
) -> dict[str, Any]:
    """Add the keypoints, scores and flags of hands, face and other parts of the body to the columns of records. Boxes and
    areas are unchanged. In messages, `what` precedes the number of a record; `what` is "annotation " for ground truth
    and empty for results. Raises `InputError` if only some records have a list, if a list has a wrong number of points,
    or for an invalid score or flag.
    """
    place = Place(name, what, None, None, {})
    own = {
        field: _column(field, parts, _flag if what else _score, True if what else np.nan, place)
        for field in (kind.flags if what else kind.scores)
        if any(field in one for one in parts)
    }
    made = {**columns, "part_flags" if what else "more_scores": own}
    if not any(field in one for one in parts for field in kind.lists):
        return made
    assert kind.extended is not None
    held: list[Any] = []
    make: Any = kind.reader
    if columns["boxes"] is None:
        made["boxes"] = columns["shapes"][kind.column_name].bounds().table
    for field, count in kind.lists.items():
        column = columns["shapes"][kind.column_name]
        if field != kind.field:
            reader, read = read_texts(partial(make, field=field), [one.get(field, b"") for one in parts])
            column, _ = reader.column(read, place)
        _check_sizes(column, count, place, field)
        held.append(column)
    return {**made, "shapes": {**columns["shapes"], kind.column_name: kind.extended(held)}}


def _check_sizes(column: Any, count: int, place: Place, field: str) -> None:
    wrong = column.sizes() != 3 * count
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"has {int(column.sizes()[row]) // 3} points where there are {count}",
            source=place.source,
            record=place.record(row),
            field=field,
        )


def _column(
    field: str, parts: Sequence[Mapping[str, bytes]], read: Callable[[Any], Any], default: Any, place: Place
) -> NDArray[Any]:
    """Return a field of the records, with a default where it is missing."""
    column = np.full(len(parts), default)
    for row, one in enumerate(parts):
        if field in one:
            value = msgspec.json.decode(one[field])
            try:
                column[row] = read(value)
            except ValueError as error:
                where: dict[str, Any] = {"source": place.source, "record": place.record(row), "field": field}
                raise InputError(str(error), **where, value=value) from None
    return column


def _score(value: Any) -> float:
    if not is_number(value) or not abs(value) < 1e308:
        raise ValueError("must be a finite number")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | int | float) or value not in (0, 1):
        raise ValueError("is neither true nor false")
    return bool(value)
