"""Decode JSON of a declared type with msgspec, and convert msgspec's errors to `InputError`."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from detmap.errors import InputError
from detmap.reading.sources import Buffer, Source, read_bytes, unmarked
from detmap.reading.unlike import refuse_foreign

T = TypeVar("T")

#: Exceptions of the decoder for invalid JSON, or JSON of another type.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

#: Finds a path such as ``$.annotations[0].bbox`` in a message of msgspec. Its groups are the record and the field.
_PLACE = re.compile(r"`\$\.?(.*?)(?:(?:^|\.)(\w+))?`")


def read_json(source: Source, form: type[T], what: str, remedy: str | None = None) -> tuple[T, str]:
    """Return the decoded content of a JSON file, and the file's name for messages."""
    data, name = read_bytes(source, what)
    return decoded(data, form, name, remedy=remedy), name


def decoded(data: Buffer, form: type[T], name: str, record: str | None = None, remedy: str | None = None) -> T:
    """Decode JSON. If `data` is a part of the file `name`, `record` names that part in messages."""
    try:
        return msgspec.json.decode(unmarked(data), type=form)
    except UNREADABLE as error:
        if record is None:
            refuse_foreign(data, name)
        raise refused(error, name, record, remedy) from None


def refused(error: Exception, name: str, record: str | None = None, remedy: str | None = None) -> InputError:
    """Convert an error of the decoder to an `InputError`."""
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
