"""Write files atomically, even if the process is interrupted meanwhile."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from detmap.errors import OptionError, shorten

if TYPE_CHECKING:
    from pathlib import Path

_lock = threading.Lock()
_unfinished: list[Path] = []
_over: list[bool] = []

#: Name of a temporary file: machine, process, and a random part.
_NAME = r"\.detmap-([0-9a-f]{8})-([0-9]{1,9})-[0-9a-f]{16}\.tmp"

#: Seconds after which an unfinished temporary file is deleted, even if its process seems alive. The process may have
#: run on another machine, or its number may have been reused.
_GIVEN_UP = 86400.0


def _machine() -> str:
    import platform

    return f"{zlib.crc32(platform.node().encode()):08x}"


def _runs(process: int) -> bool | None:
    """Return whether a process of this machine is running; None if unknown."""
    if sys.platform == "win32":  # on Windows, signal 0 is Ctrl-C
        return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # the process belongs to another user
        return True
    return True


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished temporary files of killed processes from a folder; files still being written stay."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = re.fullmatch(_NAME, entry.name)
            if name is None:
                continue
            with contextlib.suppress(OSError):  # removed by another process, or owned by another user
                runs = _runs(int(name[2])) if name[1] == _machine() else None
                age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                if runs is False or age > _GIVEN_UP:
                    os.unlink(entry.path)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically: readers find either the old or the new content."""
    write_together({path: data})


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write several files. If a file cannot be written, no file is changed."""
    path: Path | None = None
    with _lock:
        while _over:  # wait for the end of the process
            time.sleep(1)
        try:
            made: dict[Path, Path] = {}
            for path, data in files.items():
                made[path] = _beside(path)
                made[path].write_bytes(data)
                with contextlib.suppress(OSError):  # there is no such file yet, or the file belongs to another user
                    made[path].chmod(stat.S_IMODE(path.stat().st_mode))
            with _restored() as replaced:
                for path, beside in made.items():
                    if len(made) > 1:
                        replaced[path] = _kept(path)
                    os.replace(beside, path)
        except OSError as error:
            raise OptionError(f"cannot write {shorten(str(path))}: {error.strerror}") from None
        finally:
            for beside in _unfinished:
                with contextlib.suppress(OSError):
                    beside.unlink(missing_ok=True)
            _unfinished.clear()


def _beside(path: Path) -> Path:
    """Return the path of a temporary file next to `path`, which `write_together` deletes at the end."""
    _unfinished.append(path.with_name(f".detmap-{_machine()}-{os.getpid()}-{os.urandom(8).hex()}.tmp"))
    return _unfinished[-1]


def _kept(path: Path) -> Path | None:
    """Keep the present content of a file under a temporary name, and return the name; None if there is no such file."""
    if not path.exists():
        return None
    beside = _beside(path)
    try:
        os.link(path, beside)
    except OSError:  # the file system has no hard links
        import shutil

        shutil.copy2(path, beside)
    return beside


@contextlib.contextmanager
def _restored() -> Iterator[dict[Path, Path | None]]:
    """Restore replaced files if the block fails."""
    # The block maps each replaced file to a copy of its former content; None if there was no such file.
    replaced: dict[Path, Path | None] = {}
    try:
        yield replaced
    except BaseException:
        for path, former in replaced.items():
            with contextlib.suppress(OSError):
                if former is None:
                    path.unlink(missing_ok=True)
                else:
                    os.rename(former, path)
        raise


def write(path: str, data: bytes) -> None:
    """Write a file at a path given by the user, atomically unless it is a device or a pipe."""
    from pathlib import Path

    target = Path(os.path.realpath(path))  # the target of a link, not the link
    try:
        plain = target.is_file() or not target.exists()
        if plain and os.access(target.parent, os.W_OK):
            remove_unfinished(target.parent)
            write_atomically(target, data)
        else:
            target.write_bytes(data)
    except (OSError, OptionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).rpartition(": ")[2]
        raise OptionError(f"cannot write {shorten(path)}: {reason}") from None


def abandon() -> None:
    """Stop writing files and remove unfinished ones, because the process is about to end."""
    _over.append(True)
    if not _lock.acquire(timeout=0.05):
        for path in list(_unfinished):
            with contextlib.suppress(OSError):
                path.unlink()
