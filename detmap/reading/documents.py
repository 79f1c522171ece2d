"""A document's bytes, read one window at a time. A file is read in windows as the scan advances, so strings that are
needed later are copied. A document in memory is a single window.
"""

from __future__ import annotations

import codecs
import json
import re
import threading

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import readonly, texts
from detmap.kernels.values import skip_value
from detmap.kernels.words import survey
from detmap.reading.opening import File
from detmap.shapes.reading import powers

# Number of bytes that a thread scans at a time, and number of bytes of a file that the thread holds in memory. Results
# do not depend on either number.
BLOCK = 1 << 20
WINDOW = 1 << 23
# Number of bytes that a window keeps for its last record. If that record is longer, the window is read again with
# `GROWTH` times the margin, up to `MOST_MARGIN`. The library parser reads documents with even longer records.
MARGIN = 1 << 16
GROWTH, MOST_MARGIN = 4, 1 << 24

# First step of a search in a file, in bytes.
_NEAR = 1 << 12

_BLANKS = re.compile(rb"[ \t\n\r]*")

Buffer = bytes | bytearray | memoryview


class NotUnderstood(Exception):
    """The document must be read by the library parser."""


class Document:
    """A document's bytes, a window at a time.

    A mark is a byte that occurs in every record: the opening brace in JSON, the line feed in lines of text. If `inner` is
    true, values of records may contain marks too. JSON must be UTF-8; the encoding of lines of text is not checked.
    """

    def __init__(self, data: Buffer | File, threads: int | None, mark: bytes = b"{", inner: bool = False) -> None:
        if isinstance(data, File) and data.size < 8:
            data = data.read()
        self.file = data if isinstance(data, File) else None
        if isinstance(data, File):
            self.size = data.size
        else:
            data = data if len(data) >= 8 else bytes(data) + b"\n" * 8
            self.memory = readonly(np.frombuffer(data, np.uint8), np.uint8)
            self.size = len(data)
        self._own = threading.local()
        self._keeping = threading.Lock()
        self._kept: NDArray[np.uint8] | None = None
        self._end = 0  # end of the kept strings
        self.mark, self.inner = ord(mark), inner
        self.threads = threads

    def window(self, begin: int, end: int) -> tuple[int, NDArray[np.uint8]]:
        """Return the position of a window's first byte, and the window's bytes, at least eight. For a file, the window
        is the range from `begin` to `end`, in a buffer that this thread's next call overwrites.
        """
        if self.file is None:
            return 0, self.memory
        end = min(max(end, begin + 8), self.size)
        begin = min(begin, self.size - 8)
        own: NDArray[np.uint8] | None = getattr(self._own, "window", None)
        if own is None or own.size < 2 * (end - begin) + 64:
            own = self._own.window = np.empty(2 * max(end - begin, BLOCK + 2 * MARGIN) + 64, np.uint8)
        self.file.read_into(own[: end - begin], begin)
        return begin, readonly(own[: end - begin], np.uint8)

    def buffer(self) -> NDArray[np.uint8] | None:
        """Return the buffer of this thread's last window, which has spare room at its end; None for a document in
        memory.
        """
        own: NDArray[np.uint8] | None = getattr(self._own, "window", None)
        return own

    def survey(self, data: NDArray[np.uint8], begin: int, end: int) -> tuple[int, bool]:
        """Return the number of marks in a range of a window, and whether all bytes are ASCII."""
        with np.errstate(over="ignore"):  # numpy warns of overflow if kernels are not compiled
            count = int(survey(data, begin, end, self.mark, self.inner))
        return max(count, ~count), count >= 0

    def check(self, data: NDArray[np.uint8], begin: int, end: int) -> None:
        """Raise `NotUnderstood` if a range of a JSON document is not UTF-8."""
        if self.mark == ord("{"):
            try:
                str(data[begin:end].data, "utf-8")
            except UnicodeDecodeError:
                raise NotUnderstood from None

    def keep(self, data: NDArray[np.uint8], words: NDArray[np.uint64]) -> None:
        """Copy strings of a window to their final place, and update their locations in `words`."""
        size = texts.kept_size(readonly(words, np.uint64))
        with self._keeping:
            if self._kept is None:
                # Blocks are scanned at most twice, so strings need at most twice the document's size. Unwritten memory costs
                # nothing.
                self._kept = np.empty(2 * self.size + 8, np.uint8)
            begin = self._end
            if begin + size + 8 > self._kept.size:
                raise NotUnderstood
            self._end += size
        texts.keep(data, words, self._kept[begin : begin + size], begin)

    def texts(self) -> NDArray[np.uint8]:
        """Return the buffer that contains the strings of columns, at least eight bytes."""
        if self.file is None:
            return self.memory
        if self._kept is None:
            return readonly(np.zeros(8), np.uint8)
        self._kept[self._end : self._end + 8] = 0
        return readonly(self._kept[: self._end + 8], np.uint8)

    def slice(self, begin: int, end: int) -> bytes:
        """Return a copy of the bytes from `begin` to `end`."""
        base, data = self.window(begin, min(end, self.size))
        return data[begin - base : max(end - base, 0)].tobytes()

    def find(self, pattern: re.Pattern[bytes], begin: int, end: int) -> int:
        """Return the first position of a short pattern between two positions; -1 if it is absent."""
        end, place, step = min(end, self.size), begin, _NEAR
        while place < end:
            stop = end if self.file is None else min(place + 2 * step, end)
            base, data = self.window(place, stop)
            found = pattern.search(data.data, place - base, stop - base)
            if found is not None:
                return base + found.start()
            if stop == end:
                break
            place, step = place + step, MARGIN
        return -1

    def after_blanks(self, place: int) -> int:
        """Return the first position from `place` on that is not white space."""
        step = 64
        while place < self.size:
            base, data = self.window(place, place + step)
            match = _BLANKS.match(data.data, place - base)
            assert match is not None  # the match may be empty
            place = base + match.end()
            if place < base + data.size:
                break
            step = MARGIN
        return place

    def begins(self, place: int, text: bytes) -> bool:
        """Return whether `text` is at a position."""
        return self.slice(place, place + len(text)) == text

    def skip(self, place: int) -> int:
        """Return the end of the value that begins at a position."""
        size = MARGIN
        while True:
            base, data = self.window(place, place + size)
            with np.errstate(over="ignore"):  # numpy warns of overflow if kernels are not compiled
                end = int(skip_value(data, place - base, False, powers()))
            if base + data.size == self.size or 0 <= end < data.size:
                break
            size *= GROWTH  # the window may have cut the value
        if end < 0:
            raise NotUnderstood
        self.check(data, place - base, end)
        return base + end


def misplaced(data: Buffer) -> int:
    """Return the position of the first byte that is not valid UTF-8, -1 if there is none, without copying the data."""
    decoder, view = codecs.getincrementaldecoder("utf-8")(), memoryview(data)
    kept = 0  # number of bytes of a character that continues in the next piece
    for begin in range(0, len(view), BLOCK):
        piece = bytes(view[begin : begin + BLOCK])
        if not kept and piece.isascii():
            continue
        try:
            decoder.decode(piece, final=begin + BLOCK >= len(view))
        except UnicodeDecodeError as error:
            return begin - kept + error.start
        kept = len(decoder.getstate()[0])
    return -1


def unquoted(raw: bytes) -> str:
    """Decode the bytes between the quotes of a JSON string."""
    text: str = json.loads(b'"%b"' % raw) if b"\\" in raw else raw.decode()
    return text
