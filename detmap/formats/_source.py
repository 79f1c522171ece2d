"""Where bytes come from: paths, compressed files, open files, folders, archives."""

from __future__ import annotations

import gzip
import io
import mmap
import os
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from detmap.errors import InputError, shorten
from detmap.formats._scan import map_file

Buffer = bytes | mmap.mmap
Source = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | IO[str]

#: A compressed file may grow to this many bytes, or by this factor, whichever is more; beyond that it is a bomb.
_LEAST_LIMIT, _FACTOR = 256 << 20, 200


def inflate(data: Buffer, source: str) -> bytes:
    """Decompress gzip data of one or more members, within bounds.

    Raises
    ------
    InputError
        Where the data is damaged or grows beyond the bounds.
    """
    limit = max(_LEAST_LIMIT, _FACTOR * len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            out = file.read(limit + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"damaged gzip data: {error}", source=source, remedy="copy the file again") from None
    if len(out) > limit:
        raise InputError(
            f"grows beyond {limit >> 20} MiB when decompressed", source=source, remedy="decompress it first"
        )
    return out


def read_bytes(source: Source, name: str) -> tuple[Buffer, str]:
    """Return the bytes of a path, bytes or open file, decompressed where they are gzip, and a name for messages.

    A file on disk is mapped rather than read: what the caller is done with need not stay in memory.

    Raises
    ------
    InputError
        Where there is nothing to read.
    """
    data: Buffer
    if isinstance(source, str | os.PathLike):
        path, name = Path(source), os.fspath(source)
        try:
            data = map_file(path)
        except OSError as error:
            raise unreadable(path, error) from None
        except ValueError as error:  # a path with a null character in it
            raise InputError(f"cannot be read: {error}", source=name) from None
    elif isinstance(source, bytes):
        data = source
    elif isinstance(source, bytearray | memoryview):
        data = bytes(source)
    elif hasattr(source, "read"):
        content = source.read()
        data = content.encode() if isinstance(content, str) else bytes(content)
        name = str(getattr(source, "name", name))
    else:
        raise InputError(f"cannot read a {type(source).__name__}", source=name, remedy="give a path, bytes or a file")
    if data[:2] == b"\x1f\x8b":
        data = inflate(data, name)
    return data, name


def name_of(source: object, otherwise: str) -> str:
    """Return what messages call a source: its path, or what the caller calls it."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else otherwise


def unreadable(path: Path, error: OSError) -> InputError:
    """Return the error that says why a path cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError("no such file", source=str(path), remedy="check the path")
    if isinstance(error, IsADirectoryError):
        return InputError("is a folder", source=str(path), remedy="give a file")
    return InputError(f"cannot be read: {error.strerror or error}", source=str(path))


def members(source: Any, suffix: str, name: str) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, bytes and full name of every file that ends in `suffix`, in the order of names.

    Parameters
    ----------
    source : path, bytes, file object, or mapping of str to bytes or str
        A folder, a tar archive (``.tar``, ``.tar.gz``), or the files themselves by name.

    Raises
    ------
    InputError
        Where there is no such folder, or no such file in it.
    """
    if isinstance(source, Mapping):
        found = sorted((key, value) for key, value in source.items() if str(key).endswith(suffix))
        for key, value in found:
            yield key, value.encode() if isinstance(value, str) else bytes(value), f"{name}[{key}]"
        if not found:
            raise InputError(f"no name ends in {suffix}", source=name)
        return
    count = 0
    try:
        if isinstance(source, str | os.PathLike) and os.path.isdir(source):
            name = os.fspath(source)
            for file in sorted(Path(source).glob(f"*{suffix}")):
                if file.name.startswith("._") or not file.is_file():  # what macOS leaves beside files
                    continue
                yield file.name, file.read_bytes(), str(file)
                count += 1
        else:
            data, name = read_bytes(source, name)
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
                inside: dict[str, tarfile.TarInfo] = {}
                for member in archive:
                    key = Path(member.name).name
                    if not member.isreg() or not key.endswith(suffix) or key.startswith("._"):
                        continue
                    if key in inside:
                        raise InputError(
                            f"holds two files of one name: {shorten(inside[key].name)} and {shorten(member.name)}",
                            source=name,
                            remedy="pack one folder only",
                        )
                    inside[key] = member
                if any(member.issparse() for member in inside.values()):
                    raise InputError("holds sparse files", source=name, remedy="unpack it first")
                for key in sorted(inside):
                    content = archive.extractfile(inside[key])
                    yield key, content.read() if content else b"", f"{name}/{key}"
                    count += 1
    except OSError as error:
        raise unreadable(Path(name), error) from None
    except tarfile.TarError:
        raise InputError("is neither a folder nor a tar archive", source=name) from None
    if not count:
        raise InputError(
            f"holds no file that ends in {suffix}",
            source=name,
            remedy="is it the right folder, and the ground truth first?",
        )
