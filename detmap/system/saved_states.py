"""Saved states as bytes: a header, columns, and a digest."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

from numpy.typing import NDArray

from detmap.errors import OptionError, StateError

_MAGIC = b"\x93detmap\n"
_VERSION = 1
_DIGEST = 32


def seal(kind: str, header: Mapping[str, Any], *columns: NDArray[Any] | bytes) -> bytes:
    """Return a header and columns as bytes: magic number, length of the header, header as JSON, columns, and the
    BLAKE2b digest of everything.
    """
    text = json.dumps({"kind": kind, "version": _VERSION, **header}, separators=(",", ":"), default=int).encode()
    parts: list[Any] = [_MAGIC, struct.pack("<Q", len(text)), text]
    for column in columns:
        if len(column):
            parts.append(memoryview(cast(bytes, column)).cast("B"))
    import hashlib

    digest = hashlib.blake2b(digest_size=_DIGEST)
    for part in parts:
        digest.update(part)
    return b"".join([*parts, digest.digest()])


def unseal(kind: str, data: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return the header and the columns' bytes from `seal`; raise `StateError` if they are damaged, truncated, of
    another version or kind, or not detmap's.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise StateError(f"a saved state is bytes, not {type(data).__name__}")
    view = memoryview(bytes(data))
    start = len(_MAGIC) + 8
    if bytes(view[: len(_MAGIC)]) != _MAGIC:
        raise StateError("not a saved state of detmap")
    body = view[:-_DIGEST]
    import hashlib

    if len(body) < start or hashlib.blake2b(body, digest_size=_DIGEST).digest() != view[-_DIGEST:]:
        raise StateError("the saved state is damaged or cut short")
    (length,) = struct.unpack("<Q", body[len(_MAGIC) : start])
    try:
        header = json.loads(bytes(body[start : start + length]))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or length > len(body) - start:
        raise StateError("the saved state has no header")
    if header.pop("version", None) != _VERSION:
        raise StateError("the saved state is of another version of detmap")
    found = header.pop("kind", None)
    if found != kind:
        raise StateError(
            f"the saved state is not of a {kind}" + (f" but of a {found}" if isinstance(found, str) else "")
        )
    return header, body[start + length :]


def gathered(state: bytes, all_gather_object: Callable[[list[Any], Any], Any], world_size: int | None) -> list[bytes]:
    """Return the states of all processes, in the order of ranks; the default number of processes comes from
    ``torch.distributed``. Raises `OptionError` if it is unknown.
    """
    if world_size is None:
        distributed = sys.modules.get("torch.distributed")
        if distributed is None:
            raise OptionError("say how many processes there are: sync(all_gather_object, world_size)")
        world_size = int(distributed.get_world_size())
    states: list[Any] = [None] * world_size
    all_gather_object(states, state)
    return states
