"""Zstandard compression, by Python's standard library from 3.14 on, else by the package zstandard (extra: zstd)."""

from __future__ import annotations

import io
from typing import Any

from detmap.errors import MissingDependencyError

#: Magic number of a frame.
MAGIC = b"\x28\xb5\x2f\xfd"

#: Base-2 logarithm of the maximum window size in bytes, as in zstd's own decoder by default.
_LARGEST_WINDOW = 27

#: Maximum number of compressed bytes decoded at a time. The number is small, because four bytes can expand to 128 KiB.
_STEP = 1 << 11

#: Number of bytes decoded in the first step, and after a step that returned more than `_LARGE` bytes. Decompression
#: bombs therefore expand slowly.
_FIRST, _LARGE = 1 << 6, 1 << 20


def _decompressor() -> tuple[Any, type[Exception]]:
    """Return a function that makes a decompressor for one frame, and the type of exception that decompressors raise."""
    try:
        from compression import zstd
    except ImportError:
        pass
    else:
        options = {zstd.DecompressionParameter.window_log_max: _LARGEST_WINDOW}
        return lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError
    try:
        import zstandard
    except ImportError:
        raise MissingDependencyError("zstandard", "zstd", "reading or writing zstd (before Python 3.14)") from None
    made = zstandard.ZstdDecompressor(max_window_size=1 << _LARGEST_WINDOW)
    return made.decompressobj, zstandard.ZstdError


def decompress(data: Any, limit: int) -> bytes:
    """Decompress one or more frames until their size exceeds a limit; raise `EOFError` or `OSError` for truncated or
    damaged data, `MissingDependencyError` without a decompressor.
    """
    make, problem = _decompressor()
    out = io.BytesIO()  # joining a list of parts would take twice the memory
    place, step, view = 0, _FIRST, memoryview(data)
    while place < len(view):
        if bytes(view[place : place + 4]) != MAGIC:
            raise OSError("something else follows the compressed data")
        frame = make()
        while not frame.eof:
            piece = bytes(view[place : place + step])
            if not piece:
                raise EOFError("it ends within a frame")
            try:
                part = frame.decompress(piece)
            except problem as error:
                raise OSError(" ".join(str(error).split())) from None
            place += len(piece) - (len(frame.unused_data) if frame.eof else 0)
            out.write(part)
            step = _FIRST if len(part) > _LARGE else min(2 * step, _STEP)
            if out.tell() > limit:
                return out.getvalue()
    return out.getvalue()


def begin(data: bytes, size: int) -> bytes:
    """Return the first decompressed bytes of possibly truncated data; empty if the data cannot be read."""
    try:
        make, problem = _decompressor()
    except MissingDependencyError:  # the file's reader raises it again
        return b""
    frame, out = make(), b""
    try:
        for place in range(0, len(data), _STEP):
            if frame.eof or len(out) >= size:
                break
            out += frame.decompress(data[place : place + _STEP])
    except problem:
        pass
    return out[:size]


def compress(data: bytes) -> bytes:
    """Compress into one frame with a checksum; raise `MissingDependencyError` without a compressor."""
    try:
        from compression import zstd
    except ImportError:
        pass
    else:
        made: bytes = zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})
        return made
    try:
        import zstandard
    except ImportError:
        raise MissingDependencyError("zstandard", "zstd", "reading or writing zstd (before Python 3.14)") from None
    return bytes(zstandard.ZstdCompressor(write_checksum=True).compress(data))
