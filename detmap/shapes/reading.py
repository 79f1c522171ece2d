"""Helpers of readers of geometries: memory, powers of ten, and numbers that need ``float()``."""

from __future__ import annotations

import functools
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from detmap.kernels import allocate, readonly
from detmap.kernels.numbers import HIGHEST_POWER, LOWEST_POWER, POWERS_OF_FIVE
from detmap.system import parallel

#: Maximum number of values per call that a kernel leaves to ``float()`` instead of rounding them.
_DOUBTS = 1 << 10

#: Number of spare elements at the end of a chunk, because kernels may read up to two elements after the last point.
_BEHIND = 64

#: Usual number of elements in the regions of memory that a thread reserves, and maximum number of regions in a thread's
#: share of the memory. Regions are larger to respect this maximum, and smaller if a share is smaller than a region.
_REGION, _SHARES = 1 << 22, 8

# Decimal numbers only, because float() also accepts inf, nan and 1_000.
_DECIMAL = rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"


@functools.cache
def powers() -> NDArray[np.uint64]:
    """Return the powers that kernels look up: 10**0 to 10**19, then the leading 128 bits of each 5**q in two words."""
    words = [10**n for n in range(POWERS_OF_FIVE)]
    for q in range(LOWEST_POWER, HIGHEST_POWER + 1):
        power = 5 ** abs(q)
        if q < 0:  # the reciprocal, rounded up if the power has fewer than 64 bits
            power = (1 << (127 + power.bit_length())) // power + (q >= -27)
        power = power << 128 >> power.bit_length()
        words += [power >> 64, power & (1 << 64) - 1]
    return readonly(words, np.uint64)


class Scratch:
    """Memory that each thread reuses for the windows of a document, so that it stays in the processor's cache."""

    def __init__(self) -> None:
        self._own = threading.local()

    def take(self, size: int, kind: type[Any]) -> NDArray[Any]:
        """Return `size` elements of this thread's memory, overwriting the elements returned before."""
        own: NDArray[Any] | None = getattr(self._own, kind.__name__, None)
        if own is None or own.size < size:
            own = np.empty(size, kind)
            setattr(self._own, kind.__name__, own)
        return own[:size]


class Store:
    """Memory for values that several threads read from a document of `size` bytes. The size of a chunk is estimated
    from the bytes read so far. If a chunk is too small, more chunks are allocated, and all chunks are concatenated at
    the end.
    """

    def __init__(self, kind: type[Any], size: int) -> None:
        self._kind, self._size = kind, size
        self._chunks: list[NDArray[Any]] = []
        self._used: list[int] = []
        self._read = 0
        self._lock = threading.Lock()

    def take(self, count: int, read: int) -> tuple[NDArray[Any], int, int]:
        """Reserve memory for `count` elements from the next `read` bytes of the document. Return the chunk, the index
        of the first element in the chunk, and the chunk's number.
        """
        with self._lock:
            self._read += read
            if not self._chunks or self._used[-1] + count > self._chunks[-1].size - _BEHIND:
                # Allocate memory for the rest of the document, estimated from these bytes. Unwritten memory costs
                # nothing.
                expected = 1.1 * count / max(read, 1) * max(self._size - self._read, 0)
                self._chunks.append(np.empty(count + int(expected) + _BEHIND, self._kind))
                self._used.append(0)
            begin = self._used[-1]
            self._used[-1] += count
            return self._chunks[-1], begin, len(self._chunks) - 1

    def whole(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return all elements, and the index of each chunk's first element."""
        return _together(self._chunks, self._used, self._kind)


def _together(chunks: list[NDArray[Any]], used: list[int], kind: type[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Concatenate the used parts of chunks, and also return the start of each part; a single part is not copied."""
    parts = [chunk[:end] for chunk, end in zip(chunks, used, strict=True)]
    return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, kind)]), np.cumsum([0, *used])


class Regions:
    """Memory for at most `size` values that several threads read from a document. Each thread fills separate regions,
    so that the values are mostly not copied.
    """

    def __init__(self, kind: type[Any], size: int, first: NDArray[Any] | None = None) -> None:
        """`first` is an array that begins with the document, or None. The part of the array after the document is used
        before other memory is allocated.
        """
        self._kind, self._size = kind, size
        self._chunks: list[NDArray[Any]] = [] if first is None else [first]
        self._used: list[int] = [size] * len(self._chunks)
        self._lock = threading.Lock()
        self._own = threading.local()

    def take(self, most: int) -> tuple[NDArray[Any], int, int]:
        """Return a chunk of memory, the index at which this thread may write `most` elements, and the chunk's
        number.
        """
        chunk, begin, end = getattr(self._own, "region", (0, 0, -1))  # end -1: even 0 elements need a region
        if begin + most > end:
            with self._lock:
                # Unwritten memory costs nothing. Regions are much larger than the values read at a time, so the unused
                # ends of regions waste little memory.
                cores = parallel.cores()
                share = self._size // cores
                length = max(2 * most, min(_REGION, share), share // _SHARES)
                if not self._chunks or self._used[-1] + length > self._chunks[-1].size:
                    room = self._size + (cores + 1) * length  # each thread may leave the end of a region unused
                    # Unused parts between regions must not hold old data. The system zeroes large chunks itself.
                    self._chunks.append((np.zeros if room < _REGION else np.empty)(room, self._kind))
                    self._used.append(0)
                chunk, begin = len(self._chunks) - 1, self._used[-1]
                self._used[-1] = end = begin + length
        self._own.region = chunk, begin, end
        return self._chunks[chunk], begin, chunk

    def keep(self, end: int) -> None:
        """Record where in its chunk this thread stopped writing."""
        chunk, _, stop = self._own.region
        self._own.region = chunk, end, stop

    def whole(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return all used memory, and the start of each chunk in it."""
        return _together(self._chunks, self._used, self._kind)


class Rows:
    """Columns with a row per record, into which threads write their rows directly."""

    def __init__(self, kinds: Mapping[str, tuple[tuple[int, ...], DTypeLike]]) -> None:
        """Set the names of the columns, each with the array shape of a row and the dtype."""
        self._kinds = kinds
        self._whole = self.apart(0)
        self._capacity = 0
        self._lock = threading.Lock()

    def apart(self, count: int) -> dict[str, NDArray[Any]]:
        """Return new columns for `count` records, in one block of memory."""
        made = allocate(*(((count, *shape), dtype) for shape, dtype in self._kinds.values()))
        return dict(zip(self._kinds, made, strict=True))

    def at(self, row: int, count: int, capacity: int) -> dict[str, NDArray[Any]]:
        """Return views of the final columns: `count` rows, beginning at `row`. The columns have room for `capacity`
        records.
        """
        with self._lock:
            if self._capacity != capacity:
                self._whole, self._capacity = self.apart(capacity), capacity  # unwritten memory costs nothing
            return {name: column[row : row + count] for name, column in self._whole.items()}

    def joined(self, parts: Sequence[tuple[int, Mapping[str, NDArray[Any]]]]) -> dict[str, NDArray[Any]]:
        """Return the concatenated columns of all parts. Each part comes with the index of its first row in the final
        columns; -1 if it has separate columns. In the usual case, all parts are in the final columns, one after the
        other, and nothing is copied.
        """
        first = next(iter(self._kinds))
        starts = np.cumsum([0, *(len(part[first]) for _, part in parts)]).tolist()
        if all(row == start for (row, _), start in zip(parts, starts, strict=False)):
            return {name: column[: starts[-1]] for name, column in self._whole.items()}
        names, empty = list(self._kinds), self.apart(0)

        def join(begin: int, _: int) -> NDArray[Any]:
            return np.concatenate([*(part[names[begin]] for _, part in parts), empty[names[begin]]])

        made = parallel.run(join, [(field, field + 1) for field in range(len(names))])
        return dict(zip(names, made, strict=True))


def decimal(text: bytes) -> float:
    """Return the number spelled by a text; infinity if it is not a number."""
    return float(text) if re.fullmatch(_DECIMAL, text) else math.inf


def resolved(
    kernel: Callable[..., None],
    data: NDArray[np.uint8],
    spans: NDArray[np.int64],
    state: NDArray[np.int64],
    out: tuple[Any, ...],
    numbers: NDArray[np.uint64],
) -> None:
    """Call a kernel until it has read all records; ``float()`` parses the numbers that the kernel leaves."""
    from detmap.kernels.segmentations import DOUBTS, ROW

    doubts = np.empty((_DOUBTS, 3), np.int64)
    floats = numbers.view(np.float64)
    data, spans = readonly(data, np.uint8), readonly(spans, np.int64)
    with np.errstate(over="ignore"):  # numpy warns of overflow if kernels are not compiled
        while True:
            state[DOUBTS], row = 0, int(state[ROW])
            kernel(data, spans, powers(), doubts, state, *out)
            for at, begin, end in doubts[: state[DOUBTS]].tolist():
                floats[at] = decimal(data[begin:end].tobytes())
            if state[ROW] == len(spans):
                return
            if state[ROW] == row:  # a single record has more uncertain numbers than fit into `doubts`
                doubts = np.empty((2 * len(doubts), 3), np.int64)
