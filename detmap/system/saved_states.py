"""Saved states as bytes (a header, columns, and a digest), and the base class of evaluators that save their state."""

from __future__ import annotations

import json
import struct
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import NDArray

from detmap.errors import OptionError, StateError

if TYPE_CHECKING:
    from typing_extensions import Self

_MAGIC = b"\x93detmap\n"
_VERSION = 1
_DIGEST = 32


def seal(kind: str, header: Mapping[str, Any], *columns: NDArray[Any] | bytes) -> bytes:
    """Return a saved state: magic number, length of the header, header as JSON, columns, and BLAKE2b digest of all these."""
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
    """Return the header and the columns of a saved state. Raises `StateError` if the state is damaged, or of another
    version or kind.
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


def _gathered(state: bytes, all_gather_object: Callable[[list[Any], Any], Any], world_size: int | None) -> list[bytes]:
    """Return the states of all processes by rank; by default `world_size` comes from ``torch.distributed``."""
    if world_size is None:
        distributed = sys.modules.get("torch.distributed")
        if distributed is None:
            raise OptionError("say how many processes there are: sync(all_gather_object, world_size)")
        world_size = int(distributed.get_world_size())
    states: list[Any] = [None] * world_size
    all_gather_object(states, state)
    return states


class Accumulator(ABC):
    """Base class of evaluators, which process data batch by batch, in one or several processes, and can be saved.

    `_lock` is held while the state changes; the locks of two accumulators are never held together.
    """

    _lock: threading.RLock

    @abstractmethod
    def _forget(self) -> None:
        """Reset the state as if no data had been seen; settings stay."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Merge the state of `other` into this accumulator, and return it; `other` stays unchanged."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Serialise settings and state; `from_bytes` reads the result on any machine."""

    @classmethod
    @abstractmethod
    def from_bytes(cls, data: bytes) -> Any:
        """Restore an accumulator from the result of `to_bytes`."""

    def reset(self) -> None:
        """Forget all data seen so far."""
        with self._lock:
            self._forget()

    def _fresh(self) -> Self:
        """Return an empty accumulator with the same settings."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _lock=threading.RLock())
        made._forget()
        return made

    def sync(self, all_gather_object: Callable[[list[Any], Any], Any], world_size: int | None = None) -> Self:
        """Return a new evaluator that holds the data seen by all processes. Each process gets the same result.

        This evaluator stays unchanged.

        Parameters
        ----------
        all_gather_object : callable
            ``torch.distributed.all_gather_object`` or an equivalent, which fills a list with the object of every process,
            in the order of ranks.
        world_size : int, optional
            Number of processes; by default the world size of ``torch.distributed``.

        Raises
        ------
        StateError
            As for `merge`.

        Examples
        --------
        Run this in every process. A sampler may repeat images to fill the last batch; ``"first"`` ignores repeated images::

            evaluator = Evaluator(duplicates="first")
            for ids, images, targets in loader:
                evaluator.update(model(images), targets, image_ids=ids)
            result = evaluator.sync(torch.distributed.all_gather_object).compute()
        """
        merged = self._fresh()
        for state in _gathered(self.to_bytes(), all_gather_object, world_size):
            merged.merge(self.from_bytes(state))
        return merged

    def state_dict(self) -> dict[str, Any]:
        """Return the state as a dict with a single value of type bytes, to be saved with a training checkpoint."""
        return {"state": self.to_bytes()}


def state_of(state: Mapping[str, Any]) -> bytes:
    """Return the bytes in a dict from `Accumulator.state_dict`; raise `StateError` for anything else."""
    if not isinstance(state, Mapping) or "state" not in state:
        raise StateError("not what state_dict returned: there is no 'state'")
    return cast(bytes, state["state"])
