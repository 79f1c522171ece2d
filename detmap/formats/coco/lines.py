"""Recognise COCO results with one JSON record per line."""

from __future__ import annotations

import os
from codecs import BOM_UTF8

from detmap.formats.registry import unpacked_name
from detmap.reading.opening import Held
from detmap.reading.sources import HEAD, head

#: Maximum length of a first line in bytes.
_LONGEST_LINE = 1 << 22


def holds_lines(source: object, name: str) -> bool:
    """Return whether a source holds a record per line, according to its name or to its first line. A file with a single
    record is recognised only by its name.
    """
    if unpacked_name(name).endswith((".jsonl", ".ndjson")):
        return True
    if not isinstance(source, str | os.PathLike | Held):
        return False
    if head(source).removeprefix(BOM_UTF8).lstrip()[:1] != b"{":
        return False
    return any(_begins_with_record(head(source, size), isinstance(source, Held)) for size in (HEAD, _LONGEST_LINE))


def _begins_with_record(data: bytes, alone: bool) -> bool:
    """Return whether the first line is a record. If `alone` is false, further lines must follow."""
    line, _, rest = data.removeprefix(BOM_UTF8).lstrip().partition(b"\n")
    if not (alone or rest.strip()):
        return False
    import msgspec

    from detmap.reading.typed_json import UNREADABLE

    try:
        msgspec.json.decode(line, type=msgspec.defstruct("_Line", [("image_id", msgspec.Raw)], gc=False))
    except UNREADABLE:
        return False
    return True
