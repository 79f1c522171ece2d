"""Documents that a later run reuses, saved with a checksum that is verified on reading."""

from __future__ import annotations

import hashlib
import json
import marshal
import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any

import msgspec

from detmap.results import without_nan

#: Maximum size of a reused document, in bytes.
_LARGEST = 1 << 28

#: The last member of a document: the hash of the file without this member.
_SEAL = re.compile(rb',\n "seal": "([0-9a-f]{64})"\n}\n\Z')

_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))

#: Patterns of numbers that msgspec formats differently from Python: from 1e16 on, or between 1e-9 and 0.0001. They also
#: match some strings. The first begins with a literal character, because `re` finds a literal ten times as fast as a
#: character class.
_EXPONENT, _SMALL = re.compile(rb"e(?<=[0-9.]e)(?!-[0-9]{2})[-+]?[0-9]+(?:[],}]|\Z)"), b"0.0000"


def encoded(document: Any) -> bytes:
    """Return a document as JSON; undefined values become ``null``."""
    return _encoded(without_nan(document))


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """Return the same document as `without_nan`, in half the time for large documents."""
    try:
        made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    except (TypeError, OverflowError, UnicodeEncodeError):  # numpy values, integers beyond 64 bits, lone surrogates
        made = without_nan(document)
    return made


def _encoded(plain: Any) -> bytes:
    """Return plain values as ``json.dumps(plain, indent=1)`` writes them."""
    try:  # three times as fast as json.dumps
        text = msgspec.json.encode(plain)
        if _SMALL in text or _EXPONENT.search(text):
            text = _COMPACT.encode(plain).encode()
        return msgspec.json.format(text, indent=1) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, as in file names that are not UTF-8
        text = json.dumps(plain, indent=1, allow_nan=False, ensure_ascii=False).encode("utf-8", "backslashreplace")
        return text + b"\n"


def sealed(document: dict[str, Any]) -> bytes:
    """Return a document of plain values as JSON, whose last member is the hash of everything before it."""
    text = _encoded(document)
    return text.removesuffix(b"\n}\n") + b',\n "seal": "' + _hash(text) + b'"\n}\n'


def unsealed(path: Path, largest: int = _LARGEST) -> dict[str, Any] | None:
    """Read a document that `sealed` encoded; None if it is damaged, changed, missing or larger than `largest` bytes."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # must not block on a pipe
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
                return None
            data = file.read()
        seal = _SEAL.search(data, max(len(data) - 100, 0))
        text = b"" if seal is None else data[: seal.start()] + b"\n}\n"
        if seal is None or seal[1] != _hash(text):
            return None
        try:  # three times as fast as json.loads
            document = msgspec.json.decode(text)
        except msgspec.MsgspecError:  # a lone surrogate, as in `_encoded`
            document = json.loads(text)
        return document if isinstance(document, dict) else None
    except (OSError, ValueError, RecursionError):
        return None


def packed(document: dict[str, Any]) -> bytes:
    """Compress a document of plain values to about a twentieth of its memory; see `unpacked`."""
    return zlib.compress(marshal.dumps(document), 1)


def unpacked(data: bytes) -> dict[str, Any]:
    """Return a new copy of a packed document."""
    document: dict[str, Any] = marshal.loads(zlib.decompress(data))
    return document


def _hash(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()
