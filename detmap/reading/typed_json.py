"""JSON of a declared form: msgspec reads it, and its errors become ours, which name record and field."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from detmap.errors import InputError
from detmap.reading.sources import Buffer, Source, read_bytes, unmarked
from detmap.reading.unlike import refuse_foreign

T = TypeVar("T")

#: What the decoder raises for bytes that are not JSON, or not of the form.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

#: A place as the decoder writes it: the way to a record, and the last name on it.
_PLACE = re.compile(r"`\$\.?(.*?)(?:(?:^|\.)(\w+))?`")


def read_json(source: Source, form: type[T], what: str, remedy: str | None = None) -> tuple[T, str]:
    """Return what a file of JSON holds, and what messages call the file."""
    data, name = read_bytes(source, what)
    return decoded(data, form, name, remedy=remedy), name


def decoded(data: Buffer, form: type[T], name: str, record: str | None = None, remedy: str | None = None) -> T:
    """Return what JSON holds; `record` is what messages call the whole of it, if it is a part of the file `name`."""
    try:
        return msgspec.json.decode(unmarked(data), type=form)
    except UNREADABLE as error:
        if record is None:
            refuse_foreign(data, name)
        raise refused(error, name, record, remedy) from None


def refused(error: Exception, name: str, record: str | None = None, remedy: str | None = None) -> InputError:
    """Return an error of the decoder as one of input."""
    text = " ".join(str(error).split())
    if isinstance(error, RecursionError):
        return InputError("is nested too deeply", source=name, record=record)
    if not isinstance(error, msgspec.ValidationError):
        return InputError(f"is not valid JSON: {text}", source=name, record=record, remedy="is the file complete?")
    problem, _, place = text.partition(" - at ")
    way, field = match.groups() if (match := _PLACE.fullmatch(place)) else ("", None)
    at: int | str | None = int(way[1:-1]) if way[1:-1].isdigit() and way.startswith("[") else way or None
    if record is not None:
        at = record if at is None else f"{record}, record {at}" if isinstance(at, int) else f"{record}, {at}"
    return InputError(problem[:1].lower() + problem[1:], source=name, record=at, field=field, remedy=remedy)
