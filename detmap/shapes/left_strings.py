"""Run-length strings that stay in the file until their masks are compared. Most masks are never compared."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import readonly, segmentations, texts
from detmap.shapes.reading import Scratch

if TYPE_CHECKING:
    from detmap.reading.opening import File

#: Offset of the positions of strings in a file, larger than all positions in memory.
IN_FILE = 1 << 50

#: Number of strings read at a time.
AT_A_TIME = 1 << 10

#: Maximum number of bytes between two strings that are read in one call.
_GAP = 1 << 15
#: Bytes appended to the strings, which complete a number that is cut off at the end of the last string.
_ENDS = np.frombuffer(b"0" * 16, np.uint8)

_own = threading.local()


@contextmanager
def left_in_files(once: bool) -> Iterator[None]:
    """Context manager for reading tables in this thread. If the tables are only scored `once`, their strings may stay in
    the files.
    """
    before = left()
    _own.left = once
    try:
        yield
    finally:
        _own.left = before


def left() -> bool:
    """Return whether strings may stay in files."""
    return getattr(_own, "left", False)


class LeftStrings:
    """Strings in a file, which stays open as long as this object exists."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._scratch = Scratch()
        weakref.finalize(self, file.close)

    def read(self, spans: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the concatenated strings as a text, and the span of each string. This thread's next call overwrites
        the text.

        Raises `InputError` if the file has changed, because areas and boxes were measured from its earlier content.
        """
        begins, ends = spans[:, 0] - IN_FILE, ~spans[:, 1] - IN_FILE
        order = np.argsort(begins, kind="stable")
        first, last = begins[order], ends[order]
        cuts = np.flatnonzero(first[1:] - last[:-1] > _GAP) + 1
        edges = np.concatenate([[0], cuts, [len(order)]])
        sizes = last[edges[1:] - 1] - first[edges[:-1]]
        places = np.cumsum(sizes) - sizes
        total = int(sizes.sum())
        text = self._scratch.take(total + len(_ENDS), np.uint8)
        for place, size, begin in zip(places.tolist(), sizes.tolist(), first[edges[:-1]].tolist(), strict=True):
            self._file.read_into(text[place : place + size], begin)
        text[total:] = _ENDS
        self._file.check()
        moved = np.empty(len(order), np.int64)
        moved[order] = np.repeat(places - first[edges[:-1]], np.diff(edges))
        made = spans.copy()
        made[:, 0], made[:, 1] = begins + moved, ~(ends + moved)
        segmentations.unescape(text, readonly(order, np.int64), made)
        return readonly(text, np.uint8), readonly(made, np.int64)

    def appended(self, text: NDArray[np.uint8], spans: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return `text` followed by the strings of `spans` that are in the file, and the new spans of all strings."""
        spans = spans.copy()
        rows = np.flatnonzero(spans[:, 0] >= IN_FILE)
        rows = rows[np.argsort(spans[rows, 0], kind="stable")]
        most = int((~spans[rows, 1] - spans[rows, 0]).sum())  # strings with escapes become shorter than in the file
        whole = np.empty(len(text) + most + len(_ENDS), np.uint8)
        whole[: len(text)], end = text, len(text)
        for begin in range(0, len(rows), AT_A_TIME):
            some = rows[begin : begin + AT_A_TIME]
            data, found = self.read(spans[some])
            sizes = ~found[:, 1] - found[:, 0]
            words = (found[:, 0] << texts.LENGTH_BITS | sizes).view(np.uint64)
            size = texts.kept_size(readonly(words, np.uint64))
            texts.keep(data, words, whole[end : end + size], end)
            kept = words.view(np.int64) >> texts.LENGTH_BITS
            spans[some, 0], spans[some, 1] = kept, ~(kept + sizes)
            end += size
        whole[end:] = 0
        return whole, spans
