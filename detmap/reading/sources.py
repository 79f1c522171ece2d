"""Sources of bytes: paths, compressed files, open files, folders, archives."""

from __future__ import annotations

import io
import os
import posixpath
import stat
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

from detmap.errors import InputError, shorten
from detmap.reading import zstd
from detmap.reading.opening import STANDARD_INPUT, File, Held, changed, open_path, unreadable
from detmap.system import limits

if TYPE_CHECKING:
    import tarfile

T = TypeVar("T")

Buffer = bytes | memoryview
Source = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | IO[str]

#: Maximum ratio of decompressed to compressed size. A result smaller than `limits.INFLATED` is always allowed.
_FACTOR = 200

_PIECE = 1 << 20  # number of bytes decompressed at a time

#: Maximum number of chained links in an archive.
_MOST_LINKS = 40

_GZIP = b"\x1f\x8b"

#: Number of bytes of a file used to recognise its format, and maximum size of zstd's first block.
HEAD, _BLOCK = 4096, 1 << 18


def is_packed(start: Buffer) -> bool:
    """Return whether data is compressed by gzip or zstd, by its first bytes."""
    return bytes(start[:2]) == _GZIP or bytes(start[:4]) == zstd.MAGIC


def inflate(data: Buffer, source: str) -> bytes:
    """Decompress gzip data of one or more members, or zstd data of one or more frames; raise `InputError` for damaged
    data or excessive expansion, `MissingDependencyError` for zstd data without a decompressor.
    """
    limit = most_inflated(len(data))
    kind = "gzip" if bytes(data[:2]) == _GZIP else "zstd"
    try:
        out = zstd.decompress(data, limit) if kind == "zstd" else _unzipped(data, limit)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"damaged {kind} data: {error}", source=source, remedy="copy the file again") from None
    if len(out) > limit:
        raise InputError(
            f"grows beyond {limit >> 20} MiB when decompressed",
            source=source,
            remedy=f"decompress it first, or {limits.INFLATED.advice()}",
        )
    return out


def _unzipped(data: Buffer, limit: int) -> bytes:
    """Decompress gzip data until the result is longer than `limit`."""
    import gzip

    out = io.BytesIO()  # joining a list of pieces would take twice the memory
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while out.tell() <= limit and (part := file.read(min(_PIECE, limit + 1 - out.tell()))):
            out.write(part)
    return out.getvalue()


def compressed(data: bytes, name: str) -> bytes:
    """Return data, compressed if the file's name ends in ``.gz`` or ``.zst``."""
    if name.endswith(".gz"):
        import gzip

        return gzip.compress(data, mtime=0)
    return zstd.compress(data) if name.endswith(".zst") else data


def most_inflated(size: int) -> int:
    """Return the maximum size to which `size` compressed bytes may expand."""
    return max(limits.INFLATED.value(), _FACTOR * size)


def head(source: str | os.PathLike[str] | Held, size: int = HEAD) -> bytes:
    """Return the first bytes of a file or stream, at most `size`, decompressed; empty for other sources."""
    if isinstance(source, Held):
        return bytes(source[:size])
    with suppress(OSError, ValueError, zlib.error):
        if stat.S_ISREG(os.stat(source).st_mode):
            with open(source, "rb") as file:
                data = file.read(size)
                if data[:4] == zstd.MAGIC:  # zstd's first block is decompressed as a whole
                    return zstd.begin(data + file.read(_BLOCK), size)
            return zlib.decompressobj(31).decompress(data, size) if data[:2] == _GZIP else data
    return b""


class Opened:
    """An opened source: bytes, or an uncompressed file that can be read in blocks. Leaving the context closes it."""

    def __init__(self, source: Source, name: str) -> None:
        self.data, self.name = _opened(source, name)

    def whole(self) -> Buffer:
        """Return all bytes."""
        return self.data.read() if isinstance(self.data, File) else self.data

    def pieces(self, size: int = 1 << 20) -> Iterator[bytes | bytearray]:
        """Yield the bytes in pieces, each of which may be overwritten by the next."""
        if not isinstance(self.data, File):
            for begin in range(0, len(self.data), size):
                yield bytes(self.data[begin : begin + size])
            return
        piece = bytearray(min(size, self.data.size))
        for begin in range(0, self.data.size, size):
            if self.data.size - begin < len(piece):
                del piece[self.data.size - begin :]
            self.data.read_into(piece, begin)
            yield piece

    def __len__(self) -> int:
        return self.data.size if isinstance(self.data, File) else len(self.data)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(self.data, File):
            self.data.__exit__(kind, error, at)


def _opened(source: Source, name: str) -> tuple[Buffer | File, str]:
    data: Buffer | File
    if isinstance(source, str | os.PathLike):
        data = open_path(source)
        name = data.name
        if isinstance(data, File):
            if not is_packed(data.start(len(zstd.MAGIC))):
                return data, name
            with data as file:
                return inflate(file.read(), name), name
    elif isinstance(source, bytes):
        data, name = source, getattr(source, "name", name)
    elif isinstance(source, bytearray | memoryview):
        data = bytes(source)
    elif hasattr(source, "read"):
        name = str(getattr(source, "name", name))
        data = _read(source, name)
    else:
        raise InputError(f"cannot read a {type(source).__name__}", source=name, remedy="give a path, bytes or a file")
    if is_packed(data):
        data = inflate(data, name)
    return data, name


def _read(file: Any, name: str) -> bytes:
    """Return the content of an open file."""
    try:
        content = file.read()
    except OSError as error:
        raise unreadable(name, error) from None
    except (ValueError, EOFError, zlib.error) as error:  # closed, wrongly encoded or damaged
        raise InputError(f"cannot be read: {error}", source=name, remedy="give a path") from None
    return _content_of(content, name)


def _content_of(content: Any, name: str) -> bytes:
    """Return text or bytes as bytes."""
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    if not isinstance(content, str):
        raise InputError(f"holds a {type(content).__name__} where text or bytes belong", source=name)
    try:
        return content.encode("utf-8", "surrogateescape")  # bytes that are not UTF-8 were decoded to surrogates
    except UnicodeEncodeError as error:
        raise InputError(f"is no text: {error}", source=name) from None


def read_bytes(source: Source, name: str) -> tuple[Buffer, str]:
    """Return the decompressed bytes of a path, bytes or open file, and a name for messages."""
    with Opened(source, name) as opened:
        return opened.whole(), opened.name


def unmarked(data: Buffer) -> memoryview:
    """Return text without a UTF-8 byte order mark."""
    view = memoryview(data)
    return view[3:] if bytes(view[:3]) == BOM_UTF8 else view


def held(path: str | os.PathLike[str]) -> str | os.PathLike[str] | Held:
    """Return a path that can be read repeatedly, or the bytes of a stream, which can be read only once."""
    try:
        kind = os.stat(path).st_mode if os.fspath(path) != STANDARD_INPUT else stat.S_IFIFO
    except (OSError, ValueError):  # the reader of the path raises the error again
        return path
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        return path
    opened = open_path(path)
    if isinstance(opened, File):  # standard input redirected from a file
        with opened as file:
            opened = Held.of(bytes(file.read()), file.name)
    return unpacked(opened)


def unpacked(content: Held) -> Held:
    """Return the decompressed content of a file or stream."""
    return Held.of(inflate(content, content.name), content.name) if is_packed(content) else content


def name_of(source: object, otherwise: str) -> str:
    """Return the name of a source for messages: the path, the name of a stream, or `otherwise`."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return getattr(source, "name", otherwise) if isinstance(source, Held) else otherwise


class _Listed(NamedTuple):
    """The path and the `Stamp` of a file in a folder."""

    path: str
    stamp: tuple[int, int, int, int]


#: The stamp of a file: inode, size, and the times (in nanoseconds) of the last changes of its content and of its inode.
#: For a folder: the stamps of the files in it, by name. None for a path that cannot be read.
Stamp = tuple[int, int, int, int] | dict[str, tuple[int, int, int, int]] | None


def _stamp(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _listed(folder: str, suffix: str) -> dict[str, _Listed]:
    """Return the files of a folder that have a suffix, sorted by name. The case of the suffix is ignored."""
    found: dict[str, _Listed] = {}
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            key = _key(entry.name, suffix)
            if key is None:
                continue
            try:
                state = entry.stat()
            except OSError as error:
                raise unreadable(entry.path, error) from None
            if stat.S_ISDIR(state.st_mode):
                continue
            if not stat.S_ISREG(state.st_mode):
                raise InputError("is neither a file nor a folder", source=entry.path, remedy="remove it")
            if key in found:
                raise _twice(os.path.basename(found[key].path), entry.name, folder)
            found[key] = _Listed(entry.path, _stamp(state))
    return dict(sorted(found.items()))


def _key(name: str, suffix: str) -> str | None:
    """Return a file name with its suffix in lower case; None for files with another suffix, and for macOS's metadata."""
    plain = name.lower().endswith(suffix) and not name.startswith("._")
    return name[: -len(suffix)] + suffix if plain else None


def _twice(one: str, other: str, name: str) -> InputError:
    return InputError(
        f"holds two files of one name: {shorten(one)} and {shorten(other)}", source=name, remedy="keep one of them"
    )


def _content(path: str) -> bytes:
    """Return the raw bytes of a file."""
    opened = open_path(path)
    if isinstance(opened, Held):
        return opened
    with opened as file:
        return bytes(file.read())


def stamp(path: str | os.PathLike[str], suffix: str) -> Stamp:
    """Return the stamp, which differs after a change, of a file or of a folder's files with a suffix; None if
    unreadable.
    """
    try:
        found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            return {key: file.stamp for key, file in _listed(os.fspath(path), suffix).items()}
        return _stamp(found)
    except (OSError, ValueError):
        return None


@contextmanager
def unchanged(stamp: Callable[[], T], name: str) -> Iterator[T]:
    """Yield the result of `stamp`, which identifies the state of files that are read more than once in this context. If the
    state has changed at the end, raise `InputError`, in place of any `InputError` about the content of the files.
    """
    before = stamp()
    try:
        yield before
    except InputError:
        if stamp() != before:
            raise changed(name) from None
        raise
    if stamp() != before:
        raise changed(name)


def stream(path: str | os.PathLike[str]) -> object:
    """Return an identifier of a stream (a pipe, a device, standard input); None for files and folders."""
    if path == STANDARD_INPUT:
        return STANDARD_INPUT
    try:
        state = os.stat(path)
    except (OSError, ValueError):  # the reader of the path raises the error again
        return None
    return None if stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode) else (state.st_dev, state.st_ino)


def fingerprint(source: str | os.PathLike[str] | Held, suffix: str) -> str:
    """Return the hash (SHA-256) of a file, or of the names and contents of a folder's files with a suffix."""
    import hashlib

    whole = hashlib.sha256()
    if not isinstance(source, Held) and os.path.isdir(source):
        for one in _listed(os.fspath(source), suffix).values():
            data = _content(one.path)
            whole.update(f"{os.path.basename(one.path)}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
            whole.update(data)
        return whole.hexdigest()
    opened = source if isinstance(source, Held) else open_path(source)
    if isinstance(opened, Held):
        return hashlib.sha256(opened).hexdigest()
    with opened as file:
        piece = memoryview(bytearray(max(min(file.size, 1 << 20), 1)))
        for place in range(0, file.size, len(piece)):
            part = piece[: file.size - place]
            file.read_into(part, place)
            whole.update(part)
    return whole.hexdigest()


def members(source: Any, suffix: str, name: str) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, bytes and full name of every file whose name ends in `suffix`, sorted by name, from a folder, a tar
    archive (``.tar``, ``.tar.gz``) or a mapping.

    The case of the suffix is ignored; in yielded names the suffix is spelled as given. Links are followed; links in an
    archive may lead only to other members of the archive. Raises `InputError` if there is no such file, for a dangling
    link, or if files change meanwhile.
    """
    if isinstance(source, Mapping):
        given: dict[str, str] = {}
        for original in source:
            key = _key(str(original), suffix)
            if key in given:
                raise _twice(given[key], original, name)
            if key is not None:
                given[key] = original
        for key in sorted(given):
            place = f"{name}[{given[key]}]"
            yield key, _content_of(source[given[key]], place), place
        if not given:
            raise InputError(f"no name ends in {suffix}", source=name)
        return
    count = 0
    try:
        if isinstance(source, str | os.PathLike) and os.path.isdir(source):
            name = os.fspath(source)
            files = _listed(os.fspath(source), suffix)
            count = len(files)
            for key, file in files.items():
                yield key, _content(file.path), file.path
            if files != _listed(os.fspath(source), suffix):
                raise changed(name)
        else:
            with Opened(source, name) as opened:
                name = opened.name
                for found in _archived(opened, suffix):
                    count += 1
                    yield found
    except OSError as error:
        raise unreadable(name, error) from None
    if not count:
        raise InputError(
            f"holds no file that ends in {suffix}",
            source=name,
            remedy="is it the right folder, and the ground truth first?",
        )


def _archived(opened: Opened, suffix: str) -> Iterator[tuple[str, bytes, str]]:
    """Yield the members of an archive, for `members`."""
    import tarfile

    name = opened.name
    file = opened.data.stream() if isinstance(opened.data, File) else io.BytesIO(opened.data)
    archive: tarfile.TarFile | None = None
    try:
        with file, tarfile.open(fileobj=file, mode="r:") as archive:
            everything = archive.getmembers()
            paths = {posixpath.normpath(member.name).lstrip("/"): member for member in everything}
            inside: dict[str, tuple[tarfile.TarInfo, tarfile.TarInfo]] = {}
            linked = 0
            for member in everything:
                key = _key(posixpath.basename(member.name), suffix)
                if key is None or member.isdir():
                    continue
                target = member if member.isreg() else _target(member, paths, name)
                if key in inside and inside[key][1] is not target:
                    raise InputError(
                        f"holds two files of one name: {shorten(inside[key][0].name)} and {shorten(member.name)}",
                        source=name,
                        remedy="pack one folder only",
                    )
                linked += target.size if target is not member else 0
                inside[key] = member, target
            if any(target.issparse() for _, target in inside.values()):
                raise InputError("holds sparse files", source=name, remedy="unpack it first")
            if linked > most_inflated(len(opened)):
                raise InputError("has so many links to large files that it is a bomb", source=name)
            for key in sorted(inside):
                content = archive.extractfile(inside[key][1])
                yield key, content.read() if content else b"", f"{name}/{key}"
    except tarfile.TarError as error:
        if archive is None:
            raise InputError("is neither a folder nor a tar archive", source=name) from None
        raise InputError(
            f"is a damaged tar archive: {error}", source=name, remedy="is it complete? Copy it again"
        ) from None


def _target(member: tarfile.TarInfo, paths: Mapping[str, tarfile.TarInfo], name: str) -> tarfile.TarInfo:
    """Return the regular file of an archive that a link leads to; raise `InputError` if there is none."""

    def refused(problem: str) -> InputError:
        what = f"is a link to {shorten(member.linkname)}, which " if member.islnk() or member.issym() else "is "
        return InputError(
            what + problem, source=f"{name}/{member.name}", remedy="pack it again with the files instead of the links"
        )

    if not (member.islnk() or member.issym()):
        raise refused("neither a file nor a link")
    place = posixpath.normpath(member.name).lstrip("/")
    for _ in range(_MOST_LINKS):
        parts = place.split("/")
        for end in range(1, len(parts) + 1):
            step = paths.get("/".join(parts[:end]))
            if step is not None and (step.issym() or (step.islnk() and end == len(parts))):
                # Symbolic links are relative to their own folder, hard links to the root of the archive.
                folder = "/".join(parts[: end - 1]) if step.issym() else ""
                place = posixpath.normpath(posixpath.join(folder, step.linkname, *parts[end:]))
                break
        else:
            if step is None:
                raise refused("is not in the archive")
            if not step.isreg():
                raise refused("is no file")
            return step
        if place.startswith(("/", "../")) or place == "..":
            raise refused("lies outside of the archive")
    raise refused("leads in a circle, or through too many links")
