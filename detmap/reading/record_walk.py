"""Decode JSON one record at a time, for documents that would take many times their size if decoded as a whole.

For example, each empty object in a list takes 3 bytes in the file but 72 in memory. A document of such objects is
invalid; its first invalid record is found without decoding the other records.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from detmap.reading.documents import Document, NotUnderstood, unquoted
from detmap.shapes.kinds import BOX_FIELD, SHIPPED_COUNTS

Buffer = bytes | memoryview

_LARGE = 1 << 20  # minimum size in bytes of a document that is checked
_LEAST = 12  # valid documents have at least this number of bytes per list or object

#: Pattern of the first 64 KiB of a list without nested values. A list without nested values takes up to 16 times its
#: size when decoded.
_LONG = re.compile(rb"\[[^\[\]{}]{65536}")
_PLAIN = (BOX_FIELD, "image_id", "category_id", "id", "score", "area", "iscrowd", "ignore", *SHIPPED_COUNTS, "name")
_LONG_VALUE = re.compile(rb'"(?:%b)"\s*:\s*' % "|".join(_PLAIN).encode() + _LONG.pattern)


def crowded(data: Buffer) -> bool:
    """Return whether a large document has more JSON lists and objects per byte than valid records have."""
    if len(data) < _LARGE:
        return False
    text = bytes(data)
    return (text.count(b"{") + text.count(b"[")) * _LEAST > len(text)


def holds_long_list(data: Buffer) -> bool:
    """Return whether a large document has a long list of plain values."""
    return len(data) >= _LARGE and _LONG.search(data) is not None


def holds_long_value(data: Buffer) -> bool:
    """Return whether a large document has a long list of plain values in place of a number, an id or a box."""
    return len(data) >= _LARGE and _LONG_VALUE.search(data) is not None


def walked(data: Buffer, lines: bool) -> Any:
    """Return a document whose records are decoded lazily; raise `ValueError` for anything that is not JSON."""
    if lines:
        return _Lines(data)
    document = Document(bytes(data), 1)
    place = document.after_blanks(0)
    try:
        if document.begins(place, b"["):
            return _Records(document, place)
        if not document.begins(place, b"{"):
            return json.loads(bytes(data))
        return _members(document, place)
    except NotUnderstood:
        raise ValueError("it is not JSON") from None


def _members(document: Document, place: int) -> dict[str, Any]:
    """Return the members of an object; members that are lists are decoded lazily."""
    found: dict[str, Any] = {}
    place = document.after_blanks(place + 1)
    while not document.begins(place, b"}"):
        _expect(document, place, b'"')
        end = document.skip(place)
        name = unquoted(document.slice(place + 1, end - 1))
        place = document.after_blanks(end)
        _expect(document, place, b":")
        place = document.after_blanks(place + 1)
        end = document.skip(place)
        listed = document.begins(place, b"[")
        found[name] = _Records(document, place) if listed else json.loads(document.slice(place, end))
        place = _after_value(document, end, b"}")
    return found


def _expect(document: Document, place: int, *texts: bytes) -> None:
    if not any(document.begins(place, text) for text in texts):
        raise NotUnderstood


def _after_value(document: Document, end: int, closing: bytes) -> int:
    """Return the place of the next member or element, or of the closing bracket."""
    place = document.after_blanks(end)
    _expect(document, place, b",", closing)
    return place if document.begins(place, closing) else document.after_blanks(place + 1)


class _Records(Sequence[Any]):
    """The values of a list that begins at a position, decoded lazily."""

    def __init__(self, document: Document, place: int) -> None:
        self._document, self._place = document, place

    def __iter__(self) -> Iterator[Any]:
        document = self._document
        place = document.after_blanks(self._place + 1)
        while not document.begins(place, b"]"):
            try:
                end = document.skip(place)
                following = _after_value(document, end, b"]")
            except NotUnderstood:
                raise ValueError("it is not JSON") from None
            if end - place > _LARGE and document.begins(place, b"{"):
                yield _members(document, place)
            else:
                yield json.loads(document.slice(place, end))
            place = following

    def __getitem__(self, index: Any) -> Any:
        for at, value in enumerate(self):
            if at == index:
                return value
        raise IndexError(index)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return "a long list"

    def __bool__(self) -> bool:
        return any(True for _ in self)


class _Lines(_Records):
    """The values of lines, decoded lazily."""

    def __init__(self, data: Buffer) -> None:
        self._data = data

    def __iter__(self) -> Iterator[Any]:
        for line in io.BytesIO(self._data):
            if len(line) > _LARGE and line.lstrip()[:1] == b"{":
                yield walked(line, False)
            elif line.strip():
                yield json.loads(line)
