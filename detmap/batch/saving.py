"""Documents that a later run reuses: saved with a checksum, and reused only if it fits."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from detmap.results import without_nan

#: Member that holds the hash of the document's other members.
_SEAL = "seal"

#: Maximum size of a document of a run, in bytes.
_LARGEST = 1 << 28


def encoded(document: Any) -> bytes:
    """Return a document as JSON; undefined values become ``null``."""
    text = json.dumps(without_nan(document), indent=1, allow_nan=False, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the hash of its members added."""
    plain = without_nan(document)
    return {**plain, _SEAL: _hash(plain)}


def unsealed(path: Path) -> dict[str, Any] | None:
    """Return a document that `sealed` made, without its hash; None if it is damaged, changed, or missing."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # does not block on a pipe
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
                return None
            document = json.loads(file.read())
        if not isinstance(document, dict):
            return None
        seal = document.pop(_SEAL, None)
        return document if seal == _hash(document) else None
    except (OSError, ValueError, RecursionError):
        return None


def _hash(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
