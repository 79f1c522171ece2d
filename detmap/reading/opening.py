"""Open inputs: regular files, read by position and checked for changes; and streams, read once and with a limit.

Files are not memory-mapped: truncating a mapped file kills the process that reads it (SIGBUS).
"""

from __future__ import annotations

import contextlib
import copy
import errno
import io
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import InputError, most_similar, shorten
from detmap.system import limits, parallel

#: Maximum number of bytes read from a device that is not a terminal.
_MOST_OF_DEVICES = 1 << 20

#: The path that stands for standard input.
STANDARD_INPUT = "-"

#: Sets to which the path of every opened file is added, see `noted`.
_noting: list[set[str]] = []

#: Maximum number of file names that are compared with the name of a missing file.
_LOOKED_AT = 1000

_PIECE = 1 << 22  # bytes that a thread reads at a time
_TICK = 20_000_000  # nanoseconds; two changes within this time may give a file the same modification time


def unreadable(path: str | os.PathLike[str], error: OSError) -> InputError:
    """Return the error about an unreadable path."""
    name = os.fspath(path)
    try:
        if os.path.islink(name) and not os.path.exists(name):
            return dangling(name)
    except ValueError:  # the path holds a null character
        pass
    if isinstance(error, FileNotFoundError):
        return InputError("no such file", source=name, remedy=f"check the path{_beside(name)}")
    if isinstance(error, IsADirectoryError):
        beside = name.rstrip("/") + ".json"
        remedy = f"give a file; did you mean {shorten(beside)}?" if os.path.isfile(beside) else "give a file"
        return InputError("is a folder", source=name, remedy=remedy)
    if error.errno == errno.ENXIO:
        return InputError("is a socket or a device that is not there", source=name, remedy="give a file")
    return InputError(f"cannot be read: {error.strerror or error}", source=name)


def _beside(name: str) -> str:
    """Return the end of a sentence that suggests the file with the most similar name in the same folder."""
    try:
        there = sorted(os.listdir(os.path.dirname(name) or "."))[:_LOOKED_AT]
    except (OSError, ValueError):
        return ""
    stems = {os.path.splitext(one)[0]: one for one in reversed(there)}  # common suffixes make unrelated names similar
    near = most_similar(os.path.splitext(os.path.basename(name)[:100])[0], stems)
    return "" if near is None else f"; did you mean {stems[near]!r}?"


def dangling(path: str | os.PathLike[str]) -> InputError:
    """Return the error about a dangling symbolic link."""
    target = os.readlink(path)
    remedy = "fetch what it points to, or remove the link"
    for mark, command in ((".git/annex", "git annex get"), ("/annex/objects", "git annex get"), ("dvc", "dvc pull")):
        if mark in target.replace(os.sep, "/"):
            remedy = f"fetch the file with {command}"
            break
    return InputError(f"is a link to {shorten(target, 200)}, which is not there", source=os.fspath(path), remedy=remedy)


def changed(name: str) -> InputError:
    """Return the error about a file, or a folder's files, that change while being read."""
    return InputError("changed while it was read", source=name, remedy="wait until it is written, and try again")


class Held(bytes):
    """The content of a stream, which can be read only once, with the stream's `name` for messages."""

    name: str

    @classmethod
    def of(cls, data: bytes, name: str) -> Held:
        """Give bytes a name."""
        held = cls(data)
        held.name = name
        return held


class File:
    """A regular file of `size` bytes, read by position from any number of threads. Leaving the context checks for
    changes.
    """

    def __init__(self, raw: io.FileIO, name: str) -> None:
        self._raw, self.name = raw, name
        self._lock = threading.Lock()
        self._before = self._settled()
        self.size = self._before[0]

    def _stamp(self) -> tuple[int, ...]:
        """Return size, modification times in nanoseconds, and number of links, by which changes are noticed."""
        found = os.fstat(self._raw.fileno())
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_nlink

    def _settled(self) -> tuple[int, ...]:
        """Wait until any later change would give a different stamp; return the present stamp."""
        for _ in range(5):
            stamp = self._stamp()
            rest = _TICK - abs(time.time_ns() - max(stamp[1:3]))
            if rest <= 0:
                return stamp
            time.sleep(rest / 1e9)
        raise changed(self.name)

    def check(self) -> None:
        """Raise `InputError` if the file has changed since it was opened."""
        before, now = self._before, self._stamp()
        # If another file replaces this file, the open file keeps its content. The ctime of the open file changes,
        # because the file loses a link.
        if now != before and (now[:2] != before[:2] or now[3] == before[3]):
            raise changed(self.name)

    def read_into(self, out: Any, place: int) -> None:
        """Fill a buffer with the bytes from `place` on."""
        view = memoryview(out)
        try:
            while view:
                if hasattr(os, "preadv"):
                    count = os.preadv(self._raw.fileno(), [view], place)
                else:
                    with self._lock:
                        self._raw.seek(place)
                        count = self._raw.readinto(view) or 0
                if not count:
                    raise changed(self.name)
                view, place = view[count:], place + count
        except OSError as error:
            raise unreadable(self.name, error) from None

    def start(self, size: int) -> bytes:
        """Return the first bytes, at most `size`; close the file on an error."""
        start = bytearray(min(size, self.size))
        try:
            self.read_into(start, 0)
        except InputError:
            self._raw.close()
            raise
        return bytes(start)

    def read(self) -> memoryview:
        """Return all bytes."""
        return self.read_before(0).data

    def read_before(self, spare: int) -> NDArray[np.uint8]:
        """Return a buffer with all bytes, followed by room for `spare` more bytes."""
        whole = np.empty(self.size + spare, np.uint8)  # numpy requests huge pages, which are faster to fill
        bounds = [(begin, min(begin + _PIECE, self.size)) for begin in range(0, self.size, _PIECE)]
        if len(bounds) == 1:  # `parallel.run` takes longer than reading a small file
            self.read_into(whole[: self.size], 0)
        else:
            parallel.run(lambda begin, end: self.read_into(whole[begin:end], begin), bounds)
        return whole

    def stream(self) -> io.BufferedReader:
        """Return a file object for reading from the beginning, to be closed separately."""
        self._raw.seek(0)
        return os.fdopen(os.dup(self._raw.fileno()), "rb")

    def duplicate(self) -> File:
        """Return a second handle, closed separately, that notices changes since the file was first opened."""
        made = copy.copy(self)
        made._raw = io.FileIO(os.dup(self._raw.fileno()))
        return made

    def close(self) -> None:
        """Close the file without a check."""
        self._raw.close()

    def __enter__(self) -> File:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            # An error about the content may be due to a change of the file, which is then reported instead.
            if kind is None or issubclass(kind, InputError):
                self.check()
        except InputError as mixed:
            raise mixed from None
        finally:
            self._raw.close()


@contextlib.contextmanager
def noted() -> Iterator[set[str]]:
    """Yield a set that collects the paths of all files opened in this context."""
    found: set[str] = set()
    _noting.append(found)
    try:
        yield found
    finally:
        _noting[:] = [one for one in _noting if one is not found]


def open_path(path: str | os.PathLike[str]) -> File | Held:
    """Open a regular file. Read other paths (``-`` is standard input) whole, because they can be opened only once."""
    name = os.fspath(path)
    for found in _noting:
        found.add(name)
    try:
        if name == STANDARD_INPUT:
            name, raw = "standard input", _standard_input()
        else:
            raw = io.FileIO(name)
        try:
            regular = _is_regular(raw)
            if regular and not raw.tell():
                return File(raw, name)
            held = Held.of(_drained(raw, name), name)
            if _is_regular(raw) and not regular:  # the file was empty when it was opened
                raise changed(name)
        except BaseException:
            raw.close()
            raise
        raw.close()
        return held
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot be read: {error}", source=name) from None  # the path holds a null character


def _standard_input() -> Any:
    """Return standard input: the file or pipe itself, or its replacement (in tests and notebooks)."""
    if sys.stdin is None:
        raise InputError("is closed", source="standard input", remedy="give a path")
    try:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    except io.UnsupportedOperation:  # the replacement has no file descriptor
        return getattr(sys.stdin, "buffer", sys.stdin)


def _is_regular(raw: Any) -> bool:
    """Return whether `raw` is a regular file of known size (files of ``/proc`` report 0)."""
    if not isinstance(raw, io.FileIO):
        return False
    found = os.fstat(raw.fileno())
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def _drained(raw: Any, name: str) -> bytes:
    """Read a stream to its end, within the limit."""
    out = io.BytesIO()  # joining a list of parts would take twice the memory
    device = isinstance(raw, io.FileIO) and stat.S_ISCHR(os.fstat(raw.fileno()).st_mode) and not raw.isatty()
    limit = _MOST_OF_DEVICES if device else most_streamed()
    while part := raw.read(1 << 20):
        out.write(part.encode() if isinstance(part, str) else part)
        if out.tell() > limit:
            raise InputError(
                f"goes on after {limit / (1 << 20):g} MiB, the most that is read from "
                + ("a device" if device else "what is no regular file"),
                source=name,
                remedy="write it to a file first" + ("" if device else f", or {limits.STREAM.advice()}"),
            )
    if part is None:
        raise InputError("cannot be read: it does not wait for data (O_NONBLOCK)", source=name)
    return out.getvalue()


def most_streamed() -> int:
    """Return the maximum number of bytes read from a stream: the limit set by the user, or else the smaller of the
    default limit and a quarter of the memory.
    """
    most = limits.STREAM.value()
    if most != limits.STREAM.default:
        return most
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # unknown on this system
        memory = 4 * most
    return min(most, memory // 4) if memory > 0 else most
