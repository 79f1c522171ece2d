"""Files are written whole or not at all, even if the process is interrupted meanwhile."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from pathlib import Path

from detmap.errors import OptionError, shorten

_lock = threading.Lock()
_unfinished: list[Path] = []
_over: list[bool] = []


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that readers find either the old one or the new one, never a part.

    Raises
    ------
    OptionError
        Where it cannot be written.
    """
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with _lock:
            while _over:  # the process is about to end
                time.sleep(1)
            _unfinished.append(beside)
            try:
                beside.write_bytes(data)
                with contextlib.suppress(OSError):  # there is none yet, or it is another user's
                    beside.chmod(stat.S_IMODE(path.stat().st_mode))
                os.replace(beside, path)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
            finally:
                _unfinished.remove(beside)
    except OSError as error:
        raise OptionError(f"cannot write {shorten(str(path))}: {error.strerror}") from None


def write(path: str, data: bytes) -> None:
    """Write a file that an option names: whole or not at all, except for a device or a pipe.

    Raises
    ------
    OptionError
        Where it cannot be written.
    """
    target = Path(os.path.realpath(path))  # what a link leads to, not the link
    try:
        plain = target.is_file() or not target.exists()
        if plain and os.access(target.parent, os.W_OK):
            write_atomically(target, data)
        else:
            target.write_bytes(data)
    except (OSError, OptionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).rpartition(": ")[2]
        raise OptionError(f"cannot write {shorten(path)}: {reason}") from None


def abandon() -> None:
    """Stop writing files and remove half-written ones: the process is about to end."""
    _over.append(True)
    if not _lock.acquire(timeout=0.05):
        for path in list(_unfinished):
            with contextlib.suppress(OSError):
                path.unlink()
