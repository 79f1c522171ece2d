"""Describe unsupported files from their first bytes: images, archives, weights, HTML pages."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

from detmap.errors import InputError, shorten
from detmap.reading.sources import HEAD, Buffer

_NO_IMAGES = "images themselves are not read: give the file that was written about them"

_ARRAYS = "write CSV with the columns image,category,score,x1,y1,x2,y2; or in Python use Detections.from_arrays"

#: First bytes of unsupported kinds of files, with a description of the kind and the remedy.
_BEGINNINGS: tuple[tuple[tuple[bytes, ...], str, str], ...] = (
    ((b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"BM\x36", b"II*\x00"), "is an image", _NO_IMAGES),
    ((b"%PDF",), "is a PDF", "give the file that it was made from"),
    ((b"\x93NUMPY",), "is an array of numpy", _ARRAYS),
    (
        (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        "is a pickle of Python, which is not loaded: it could run anything",
        "write JSON or CSV",
    ),
    ((b"\x89HDF\r\n",), "is HDF5", "write JSON, CSV or Parquet"),
    ((b"SQLite format 3",), "is a database of SQLite", "write JSON, CSV or Parquet"),
    ((b"7z\xbc\xaf", b"Rar!"), "is a 7z or RAR archive", "unpack it"),
    ((b"BZh", b"\xfd7zXZ"), "is compressed by bzip2 or xz", "unpack it; gzip and zstd are read as they are"),
    (
        (b"version https://git-lfs.github.com",),
        "is a pointer of Git LFS in place of the file",
        "fetch it with git lfs pull",
    ),
)

#: Suffixes of files of model weights.
_WEIGHTS = (".pt", ".pth", ".ckpt", ".onnx", ".safetensors", ".tflite", ".engine", ".h5", ".pb")

#: Remedy for binary data of unknown format.
_WRITE = "write JSON, CSV or Parquet"

_NO_WEIGHTS = "give the file that its predictions were written to"

#: Maximum number of file names of an archive shown in a message.
_SHOWN = 3


def described(head: bytes, name: str, open_: Callable[[], IO[bytes]] | None = None) -> tuple[str, str] | None:
    """Return a description of an unsupported file, and a remedy, from its first bytes, name and content; None if the
    file may be supported.
    """
    if name.lower().endswith(_WEIGHTS) or (head[8:9] == b"{" and b'"dtype"' in head[:200] and head[4:8] == bytes(4)):
        return "holds weights of a model, no predictions", _NO_WEIGHTS
    if head[:4] == b"PK\x03\x04":
        return _archive(open_)
    for starts, what, remedy in _BEGINNINGS:
        if head.startswith(starts):
            return what, remedy
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "is an image", _NO_IMAGES
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "is text in UTF-16", "write it again in UTF-8"
    start = head.lstrip()[:15].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "is a page of HTML", "was it downloaded where one has to log in, or from a wrong address?"
    return ("is binary data of no known form", _WRITE) if b"\0" in head else None


def refuse_foreign(data: Buffer, name: str, binary: str = _WRITE) -> None:
    """Raise `InputError` for binary data and for HTML pages; `binary` is the remedy for binary data of unknown format."""
    found = described(bytes(data[:HEAD]), "", lambda: io.BytesIO(data))
    if found is not None:
        raise InputError(found[0], source=name, remedy=binary if found[1] == _WRITE else found[1])


def _archive(open_: Callable[[], IO[bytes]] | None) -> tuple[str, str]:
    """Return a description of a zip archive, and a remedy, from the names of the files in it."""
    import zipfile

    names: list[str] = []
    if open_ is not None:
        with suppress(OSError, ValueError, zipfile.BadZipFile, NotImplementedError), open_() as file:
            names = [one for one in zipfile.ZipFile(file).namelist() if not one.endswith("/")]
    if any(one.endswith("data.pkl") for one in names):
        return "holds weights of a model, no predictions", _NO_WEIGHTS
    if any(one.startswith("xl/") for one in names):
        return "is a workbook of Excel", "save the sheet as CSV"
    if names and all(one.endswith(".npy") for one in names):
        arrays = listed([one.removesuffix(".npy") for one in names])
        return (
            f"holds the numpy arrays {arrays}",
            _ARRAYS,
        )
    inside = f" that holds {listed(names)}" if names else ""
    return f"is a zip archive{inside}", "unpack it, and give the file or folder in it"


def listed(names: Sequence[str], most: int = _SHOWN) -> str:
    """Join names for a message: the first `most` names, and the number of the remaining names."""
    shown = [shorten(one, 40)[1:-1] for one in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else ""
