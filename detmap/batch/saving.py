"""Documents that a later run reuses: saved with a checksum, and reused only if it fits."""

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

import numpy as np

from detmap.results import without_nan

#: Maximum size of a document of a run, in bytes.
_LARGEST = 1 << 28

#: The last member of a document: the hash of the file as it is without it.
_SEAL = re.compile(rb',\n "seal": "([0-9a-f]{64})"\n}\n\Z')

_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ": "))

_QUOTE, _OPEN, _CLOSE, _COMMA = 1, 2, 3, 4

#: What each byte of JSON is, outside of strings.
_KINDS = bytes({34: _QUOTE, 91: _OPEN, 123: _OPEN, 93: _CLOSE, 125: _CLOSE, 44: _COMMA}.get(i, 0) for i in range(256))


def encoded(document: Any) -> bytes:
    """Return a document as JSON; undefined values become ``null``."""
    return _encoded(without_nan(document))


def _encoded(plain: Any) -> bytes:
    """Return plain values as ``json.dumps(plain, indent=1)`` writes them."""
    # Python's encoder in C writes no indentation, and the one in Python that does takes twice as long as both steps here.
    text = _COMPACT.encode(plain).encode("utf-8", "backslashreplace")
    if b'\\"' in text:  # a quotation mark that ends no string
        text = json.dumps(plain, indent=1, allow_nan=False, ensure_ascii=False).encode("utf-8", "backslashreplace")
        return text + b"\n"
    return _indented(text) + b"\n"


def _indented(text: bytes) -> bytes:
    """Return compact JSON without quotation marks in strings with each value on a line, indented by its depth."""
    data = np.frombuffer(text, np.uint8)
    kinds = np.frombuffer(text.translate(_KINDS), np.uint8)
    places = np.flatnonzero(kinds != 0)
    kinds = kinds[places]
    outside = np.cumsum(kinds == _QUOTE, dtype=np.int32) % 2 == 0
    outside &= kinds != _QUOTE
    places, kinds = places[outside], kinds[outside]
    opens, closes = kinds == _OPEN, kinds == _CLOSE
    depths = np.cumsum(opens.astype(np.int8) - closes.astype(np.int8), dtype=np.int32)
    empty = np.zeros(kinds.size, np.bool_)  # an opening bracket, or the closing one, of what holds nothing
    empty[:-1] = opens[:-1] & closes[1:] & (places[1:] == places[:-1] + 1)
    empty[1:] |= empty[:-1]
    broken = ~(closes & empty) & ~(opens & empty)
    before = places[broken] + ~closes[broken]  # the byte that begins the new line
    widths = depths[broken] + 1
    ends = np.append(before, data.size)
    moved = np.append(0, np.cumsum(widths))  # by how much the bytes before each end are
    to = np.arange(data.size) + np.repeat(moved, np.diff(ends, prepend=0))
    out = np.full(data.size + int(moved[-1]), ord(" "), np.uint8)
    out[to] = data
    out[to[before] - widths] = ord("\n")
    return out.tobytes()


def sealed(document: dict[str, Any]) -> bytes:
    """Return a document of plain values as JSON, whose last member is the hash of all before it."""
    text = _encoded(document)
    return text.removesuffix(b"\n}\n") + b',\n "seal": "' + _hash(text) + b'"\n}\n'


def unsealed(path: Path) -> dict[str, Any] | None:
    """Return a document that `sealed` made, without its hash; None if it is damaged, changed, or missing."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # does not block on a pipe
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
                return None
            data = file.read()
        seal = _SEAL.search(data, max(len(data) - 100, 0))
        text = b"" if seal is None else data[: seal.start()] + b"\n}\n"
        if seal is None or seal[1] != _hash(text):
            return None
        document = json.loads(text)
        return document if isinstance(document, dict) else None
    except (OSError, ValueError, RecursionError):
        return None


def packed(document: dict[str, Any]) -> bytes:
    """Return a document of plain values in a twentieth of its memory, for `unpacked`."""
    return zlib.compress(marshal.dumps(document), 1)


def unpacked(data: bytes) -> dict[str, Any]:
    """Return a document anew."""
    document: dict[str, Any] = marshal.loads(zlib.decompress(data))
    return document


def _hash(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()
