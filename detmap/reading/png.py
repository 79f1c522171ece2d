"""Read label maps from PNG files: the id of a segment is R + 256 G + 65536 B."""

from __future__ import annotations

import io
import struct
import threading
import warnings
import zlib
from collections.abc import Sequence
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

#: Width, height, depth, kind of colours, two numbers that are always 0, and whether the file is interlaced.
_HEADER = struct.Struct(">IIBBxxB")

_DAMAGED = "write the file again"

#: Descriptions of the kernel's error codes.
_PROBLEMS = {
    inflate.DAMAGED: "its compressed pixels are no valid code",
    inflate.TOO_LONG: "there are more pixels than the header says",
    png.MISSING: "pixels are missing",
    png.UNKNOWN: "a row has no known filter",
}


#: Runs of equal pixels that a thread's buffer can hold, in addition to one run per pixel of the largest file. For a larger
#: buffer, numpy would request huge pages, which take memory even if unused.
_ROOM = 1 << 18


class _File(NamedTuple):
    """A checked file: its data, its name, the values of its header, and its compressed pixels."""

    data: bytes
    name: str
    height: int
    width: int
    channels: int
    interlaced: bool
    pixels: memoryview

    def damaged(self, what: str) -> InputError:
        return InputError(f"is damaged: {what}", source=self.name, remedy=_DAMAGED)


class _Memory(threading.local):
    """A thread's buffers, reused because allocating memory costs as much as filling it."""

    def __init__(self) -> None:
        self._scratch = png.Scratch(inflate.codes(), np.empty(0, np.uint8))
        self._runs = png.Runs(np.empty(0, np.uint32), np.empty(0, np.uint32))

    def scratch(self, row: int) -> png.Scratch:
        """Return memory for rows of `row` bytes."""
        size = png.window(row)
        if self._scratch.window.size >= size:
            return self._scratch
        made = self._scratch._replace(window=np.empty(size, np.uint8))
        self._scratch = made if size <= _KEPT else self._scratch
        return made

    def runs(self, size: int) -> png.Runs:
        if self._runs.ends.size < size:
            made = png.Runs(np.empty(size, np.uint32), np.empty(size, np.uint32))
            if 8 * size > _KEPT:
                return made
            self._runs = made
        return self._runs


_memory = _Memory()


def label_maps(files: Sequence[tuple[bytes, str]]) -> list[LabelMap]:
    """Return the label maps of PNG files.

    Parameters
    ----------
    files : sequence of (bytes, str)
        The content of each file, and its name for messages. The colours are 8-bit RGB, or RGBA, whose last channel is
        ignored.

    Raises
    ------
    InputError
        If a file is not a PNG file, has other colours, is damaged, or has pixels that take more memory than the limit.
    MissingDependencyError
        If a file is interlaced and Pillow is not installed.
    """
    checked = [_checked(data, name) for data, name in files]
    plain = iter(_decoded([one for one in checked if not one.interlaced]))
    return [LabelMap.of(_interlaced(one), one.name) if one.interlaced else next(plain) for one in checked]


def _decoded(files: Sequence[_File]) -> list[LabelMap]:
    """Return the label maps of files that are not interlaced; raise `InputError` if a file is damaged."""
    if not files:
        return []
    ends = np.cumsum([len(one.pixels) for one in files])
    height, width, channels = (np.array(column, np.int64) for column in list(zip(*files, strict=True))[2:5])
    data = np.frombuffer(b"".join(one.pixels for one in files), np.uint8)
    columns = png.Files(
        readonly(data, np.uint8), *(readonly(column, np.int64) for column in
        (np.concatenate(([0], ends[:-1])), ends, height, width, channels)),
    )  # fmt: skip
    scratch = _memory.scratch(int((1 + width * channels).max()))
    out = _memory.runs(_ROOM + 1 + int((height * width).max()))
    bounds = np.zeros(len(files), np.int64)
    made: list[LabelMap] = []
    while len(made) < len(files):
        done, begin = len(made), 0
        upto = png.label_maps(columns, done, scratch, parallel.stop_flag(), out, bounds)
        parallel.check()
        if upto < len(files) and bounds[upto] < 0:
            raise files[upto].damaged(_PROBLEMS[int(bounds[upto])])
        for one, end in zip(files[done:upto], bounds[done:upto].tolist(), strict=True):
            ids = out.ends[begin + 1 : end].copy(), out.values[begin + 1 : end].copy()
            made.append(LabelMap(*ids, (one.height, one.width)))
            begin = end
    return made


def _checked(data: bytes, name: str) -> _File:
    """Return a file whose header and chunks are valid; raise `InputError` if they are not."""
    if data[:8] != _MAGIC or data[8:16] != b"\0\0\0\rIHDR" or len(data) < 33:
        raise InputError("is not a PNG file", source=name, remedy="label maps are PNG files")
    width, height, depth, kind, interlaced = _HEADER.unpack_from(data, 16)
    if kind not in _BYTES or depth != 8:
        raise InputError(
            "is no label map",
            source=name,
            value=f"{_KINDS.get(kind, f'colours of kind {kind}')}, {depth} bits",
            remedy="write ids of segments as 8-bit RGB: id = R + 256 G + 65536 B",
        )
    if not 0 < width < 2**31 or not 0 < height < 2**31 or width * height >= 2**31:
        raise InputError("has a size that cannot be", source=name, value=f"{width} x {height}")
    if height * (1 + width * _BYTES[kind]) > most_inflated(len(data)):
        raise InputError(
            f"has {width:,} x {height:,} pixels, which take more memory than the limit",
            source=name,
            remedy=INFLATED.advice(),
        )
    file = _File(data, name, height, width, _BYTES[kind], bool(interlaced), memoryview(b""))
    pixels = _pixels(file)
    if not interlaced and (
        len(pixels) < 8 + _HEAD or pixels[0] & 15 != 8 or int.from_bytes(pixels[:2], "big") % 31 or pixels[1] & 32
    ):
        raise file.damaged("its pixels are not compressed as zlib does")
    return file._replace(pixels=pixels[_HEAD:])


def _pixels(file: _File) -> memoryview:
    """Return the compressed pixels from their chunks, verifying checksums."""
    data, at, parts = memoryview(file.data), 8, list[memoryview]()
    while at + 12 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), bytes(data[at + 4 : at + 8])
        end = at + 12 + size
        if end > len(data):
            break
        # The checksums of the chunks are verified. The checksum of the pixels is not computed, because that takes twice
        # as long as everything else.
        if kind in (b"IHDR", b"IDAT") and zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(
            data[end - 4 : end], "big"
        ):
            raise file.damaged("a check sum does not hold")
        if kind == b"IEND":
            return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
        parts += [data[at + 8 : end - 4]] if kind == b"IDAT" else []
        at = end
    raise file.damaged("it ends too early")


def _interlaced(file: _File) -> NDArray[np.uint8]:
    """Return the pixels of an interlaced file, decoded by Pillow, shape (H, W, channels)."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError("pillow", "images", "reading interlaced PNG files") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's warning about large images, for which detmap has a limit
            with Image.open(io.BytesIO(file.data), formats=("PNG",)) as image:
                pixels: NDArray[Any] = np.asarray(image)
    except Exception as error:  # Pillow raises any exception for damaged files
        raise file.damaged(shorten(str(error), 100)[1:-1]) from None
    return pixels
