"""Read label maps from PNG files: the id of a segment is R + 256 G + 65536 B."""

from __future__ import annotations

import io
import threading
import warnings
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.segments import LabelMap
from detmap.errors import InputError, MissingDependencyError, shorten
from detmap.kernels import inflate, png, readonly
from detmap.reading.sources import most_inflated
from detmap.system import parallel
from detmap.system.limits import INFLATED

_MAGIC = b"\x89PNG\r\n\x1a\n"

#: Colour types by their number in the header, and bytes per pixel of the supported types.
_KINDS = {0: "gray", 2: "RGB", 3: "a palette", 4: "gray with transparency", 6: "RGBA"}
_BYTES = {2: 3, 6: 4}

#: Size in bytes of the header of the compressed data.
_HEAD = 2

#: Maximum memory in bytes that a thread keeps for the next file.
_KEPT = 1 << 26

_DAMAGED = "write the file again"


class _Header(NamedTuple):
    height: int
    width: int
    channels: int
    interlaced: bool


class _Memory(threading.local):
    """A thread's buffers for the rows of a file and their runs, reused because allocating memory costs as much as
    filling it.
    """

    def __init__(self) -> None:
        self.codes = inflate.codes()
        self._rows = np.empty(0, np.uint8)
        self._runs = png.Runs(np.empty(0, np.uint32), np.empty(0, np.uint32))

    def rows(self, size: int) -> NDArray[np.uint8]:
        if self._rows.size < size:
            made = np.empty(size, np.uint8)
            if size > _KEPT:
                return made
            self._rows = made
        return self._rows[:size]

    def runs(self, size: int) -> png.Runs:
        if self._runs.ends.size < size:
            made = png.Runs(np.empty(size, np.uint32), np.empty(size, np.uint32))
            if 8 * size > _KEPT:
                return made
            self._runs = made
        return self._runs


_memory = _Memory()


def label_map(data: bytes, name: str) -> LabelMap:
    """Return the label map of a PNG file.

    Parameters
    ----------
    data : bytes
        The file: 8-bit RGB, or RGBA, whose last channel is ignored.
    name : str
        Name for messages.

    Raises
    ------
    InputError
        If the file is not a PNG file, has other colours, is damaged, or has pixels that take more memory than the
        limit.
    MissingDependencyError
        If the file is interlaced and Pillow is not installed.
    """
    header = _header(data, name)
    rows = header.height * (1 + header.width * header.channels)
    if rows > most_inflated(len(data)):
        raise InputError(
            f"has {header.width:,} x {header.height:,} pixels, which take more memory than the limit",
            source=name,
            remedy=INFLATED.advice(),
        )
    packed = _packed(data, name)
    if header.interlaced:
        return LabelMap.of(_decoded(data, name), name)
    if len(packed) < 8 + _HEAD or packed[0] & 15 != 8 or int.from_bytes(packed[:2], "big") % 31 or packed[1] & 32:
        raise InputError("is damaged: its pixels are not compressed as zlib does", source=name, remedy=_DAMAGED)
    memory = _memory.rows(rows + inflate.SLACK)
    found = inflate.inflate(readonly(np.frombuffer(packed, np.uint8)[_HEAD:], np.uint8), _memory.codes, memory)
    # The checksums of the chunks are verified. The checksum of the pixels is not computed, because that takes twice as
    # long as everything else.
    if found != rows:
        what = "there are more pixels than the header says" if found == inflate.TOO_LONG else "pixels are missing"
        what = "its compressed pixels are no valid code" if found == inflate.DAMAGED else what
        raise InputError(f"is damaged: {what}", source=name, remedy=_DAMAGED)
    out = _memory.runs(1 + header.height * header.width)
    number = png.unfilter(
        readonly(memory, np.uint8), header.height, header.width, header.channels, parallel.stop_flag(), out
    )
    if number < 0:
        raise InputError("is damaged: a row has no known filter", source=name, remedy=_DAMAGED)
    return LabelMap(out.ends[1:number].copy(), out.values[1:number].copy(), (header.height, header.width))


def _header(data: bytes, name: str) -> _Header:
    """Return the header's values; raise if the file is no label map."""
    if data[:8] != _MAGIC or data[8:16] != b"\0\0\0\rIHDR" or len(data) < 33:
        raise InputError("is not a PNG file", source=name, remedy="label maps are PNG files")
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    depth, kind, *_, interlaced = data[24:29]
    if kind not in _BYTES or depth != 8:
        raise InputError(
            "is no label map",
            source=name,
            value=f"{_KINDS.get(kind, f'colours of kind {kind}')}, {depth} bits",
            remedy="write ids of segments as 8-bit RGB: id = R + 256 G + 65536 B",
        )
    if not 0 < width < 2**31 or not 0 < height < 2**31 or width * height >= 2**31:
        raise InputError("has a size that cannot be", source=name, value=f"{width} x {height}")
    return _Header(height, width, _BYTES[kind], bool(interlaced))


def _packed(data: bytes, name: str) -> bytes:
    """Return the compressed pixels from their chunks, verifying checksums."""
    at, parts = 8, list[bytes]()
    while at + 12 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + size
        if end > len(data):
            break
        if kind in (b"IHDR", b"IDAT") and zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(
            data[end - 4 : end], "big"
        ):
            raise InputError("is damaged: a check sum does not hold", source=name, remedy=_DAMAGED)
        if kind == b"IEND":
            return parts[0] if len(parts) == 1 else b"".join(parts)
        parts += [data[at + 8 : end - 4]] if kind == b"IDAT" else []
        at = end
    raise InputError("is damaged: it ends too early", source=name, remedy=_DAMAGED)


def _decoded(data: bytes, name: str) -> NDArray[np.uint8]:
    """Return the pixels of an interlaced file, decoded by Pillow, shape (H, W, channels)."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError("pillow", "images", "reading interlaced PNG files") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's warning about large images, for which detmap has a limit
            with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
                pixels: NDArray[Any] = np.asarray(image)
    except Exception as error:  # Pillow raises any exception for damaged files
        raise InputError(f"is damaged: {shorten(str(error), 100)[1:-1]}", source=name, remedy=_DAMAGED) from None
    return pixels
