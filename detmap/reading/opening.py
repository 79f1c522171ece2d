"""Opening what is read: regular files by position, watched for changes; and streams, once and within bounds.

Files are not memory-mapped: truncating a mapped file kills the process that reads it (SIGBUS).
"""

from __future__ import annotations

import contextlib
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

from detmap.errors import InputError, did_you_mean, shorten
from detmap.system import limits, parallel

#: The most bytes that are read from a device that is no terminal: such as have an end have little in them.
_MOST_OF_DEVICES = 1 << 20

#: What stands for standard input where a path is expected.
STANDARD_INPUT = "-"

#: Sets that the paths of all files are added to that are opened meanwhile, see `noted`.
_noting: list[set[str]] = []

#: Maximum number of files among which the one that may be meant is looked for.
_LOOKED_AT = 1000

_PIECE = 1 << 22  # bytes that a thread reads at a time
_TICK = 20_000_000  # nanoseconds; two changes that are closer than this may leave a file with the same time


def unreadable(path: str | os.PathLike[str], error: OSError) -> InputError:
    """Return the error that says why a path cannot be read."""
    name = os.fspath(path)
    try:
        if os.path.islink(name) and not os.path.exists(name):
            return dangling(name)
    except ValueError:  # a null character in it
        pass
    if isinstance(error, FileNotFoundError):
        return InputError("no such file", source=name, remedy=f"check the path{_beside(name)}")
    if isinstance(error, IsADirectoryError):
        return InputError("is a folder", source=name, remedy="give a file")
    if error.errno == errno.ENXIO:
        return InputError("is a socket or a device that is not there", source=name, remedy="give a file")
    return InputError(f"cannot be read: {error.strerror or error}", source=name)


def _beside(name: str) -> str:
    """Return the end of a sentence that names the file of the same folder whose name is most like that of a path."""
    try:
        there = sorted(os.listdir(os.path.dirname(name) or "."))[:_LOOKED_AT]
    except (OSError, ValueError):
        return ""
    return did_you_mean(os.path.basename(name)[:100], there)


def dangling(path: str | os.PathLike[str]) -> InputError:
    """Return the error that says that what a symbolic link points to is not there."""
    target = os.readlink(path)
    remedy = "fetch what it points to, or remove the link"
    for mark, command in ((".git/annex", "git annex get"), ("/annex/objects", "git annex get"), ("dvc", "dvc pull")):
        if mark in target.replace(os.sep, "/"):
            remedy = f"fetch the file with {command}"
            break
    return InputError(f"is a link to {shorten(target, 200)}, which is not there", source=os.fspath(path), remedy=remedy)


def changed(name: str) -> InputError:
    """Return the error that says that a file, or a folder's files, are being written."""
    return InputError("changed while it was read", source=name, remedy="wait until it is written, and try again")


class Held(bytes):
    """What a stream held, which can be read only once; `name` is what messages call it."""

    name: str

    @classmethod
    def of(cls, data: bytes, name: str) -> Held:
        """Give bytes a name."""
        held = cls(data)
        held.name = name
        return held


class File:
    """A regular file of `size` bytes that is read by position, from any number of threads. That it changes meanwhile is
    an error.

    Leaving the context closes the file, and raises the error where anything else than before would be read by now.
    """

    def __init__(self, raw: io.FileIO, name: str) -> None:
        self._raw, self.name = raw, name
        self._lock = threading.Lock()
        self._before = self._settled()
        self.size = self._before[0]

    def _stamp(self) -> tuple[int, ...]:
        """What differs after a change: size, the times of the last changes in nanoseconds, and how many names there are."""
        found = os.fstat(self._raw.fileno())
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_nlink

    def _settled(self) -> tuple[int, ...]:
        """Return the stamp once it is so old that every later change makes another one."""
        for _ in range(5):
            stamp = self._stamp()
            rest = _TICK - abs(time.time_ns() - max(stamp[1:3]))
            if rest <= 0:
                return stamp
            time.sleep(rest / 1e9)
        raise changed(self.name)

    def check(self) -> None:
        """Make sure that the file has not changed since it was opened; raises `InputError` where it has."""
        before, now = self._before, self._stamp()
        # Another file in its place takes a name from this one, which is a change (ctime), but none of the content.
        if now != before and (now[:2] != before[:2] or now[3] == before[3]):
            raise changed(self.name)

    def read_into(self, out: Any, place: int) -> None:
        """Fill a buffer of bytes with those from `place` on."""
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

    def begins(self, text: bytes) -> bool:
        """Return whether the file begins with a few bytes; an error closes it."""
        start = bytearray(min(len(text), self.size))
        try:
            self.read_into(start, 0)
        except InputError:
            self._raw.close()
            raise
        return start == text

    def read(self) -> memoryview:
        """Return all bytes."""
        whole = np.empty(self.size, np.uint8)  # numpy asks the system for large pages
        bounds = [(begin, min(begin + _PIECE, self.size)) for begin in range(0, self.size, _PIECE)]
        parallel.run(lambda begin, end: self.read_into(whole[begin:end], begin), bounds)
        return whole.data

    def stream(self) -> io.BufferedReader:
        """Return the file for reading from its beginning on, to be closed by itself."""
        self._raw.seek(0)
        return os.fdopen(os.dup(self._raw.fileno()), "rb")

    def __enter__(self) -> File:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            # An error of what was read may come from a mixture of two contents; a lack of memory does not.
            if kind is None or issubclass(kind, InputError):
                self.check()
        except InputError as mixed:
            raise mixed from None
        finally:
            self._raw.close()


@contextlib.contextmanager
def noted() -> Iterator[set[str]]:
    """Give a set to which the paths of all files are added that are opened in this context."""
    found: set[str] = set()
    _noting.append(found)
    try:
        yield found
    finally:
        _noting[:] = [one for one in _noting if one is not found]


def open_path(path: str | os.PathLike[str]) -> File | Held:
    """Open a regular file; what is none (``-`` is standard input) is read right away: it can be opened once only."""
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
            if _is_regular(raw) and not regular:  # it was empty
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
        raise InputError(f"cannot be read: {error}", source=name) from None  # a null character in the path


def _standard_input() -> Any:
    """Return standard input: the file or pipe itself, or what stands for it (in tests and notebooks)."""
    if sys.stdin is None:
        raise InputError("is closed", source="standard input", remedy="give a path")
    try:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    except io.UnsupportedOperation:  # what stands for it is not open for the system
        return getattr(sys.stdin, "buffer", sys.stdin)


def _is_regular(raw: Any) -> bool:
    """Whether this is a regular file of a size that is known (files of ``/proc`` say 0)."""
    if not isinstance(raw, io.FileIO):
        return False
    found = os.fstat(raw.fileno())
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def _drained(raw: Any, name: str) -> bytes:
    """Read a stream to its end, unless that is too far."""
    out = io.BytesIO()  # parts that are joined in the end would be held twice
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
    """Return how many bytes are read from a stream: what the limit says, by default at most a quarter of the memory."""
    most = limits.STREAM.value()
    if most != limits.STREAM.default:
        return most
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on this system
        memory = 4 * most
    return min(most, memory // 4) if memory > 0 else most
