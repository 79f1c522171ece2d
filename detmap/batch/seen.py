"""The index of a folder of results. With it, `--resume` recognises unchanged files without reading them."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from detmap.batch import saving
from detmap.errors import DetmapError
from detmap.reading import sources
from detmap.system.whole_files import write_atomically

#: File name of the index. No result has this name, because names of results never begin with a dot.
NAME = ".index"

#: Maximum size of an index in bytes: the size of an index of about 200,000 files.
_LARGEST = 1 << 25

#: The coarsest resolution of time stamps of any file system, in nanoseconds. Two changes of a file within this time can
#: have the same time stamp.
_SETTLED = 2_000_000_000


class Seen(NamedTuple):
    """State of a file when its result was computed ("" if changes cannot be detected), and the key of the result."""

    state: str
    key: str


def state(path: str, stamps: Sequence[sources.Stamp] | None, begun: int, shared: str) -> str:
    """Return a hash that changes if a file of the input changes, or if `path` or `shared` differs. The `stamps` of the
    files were read after the time `begun`. Return "" if the stamps cannot prove that files are unchanged: for a stream,
    for files written shortly before `begun`, and on Windows, where programs can set all time stamps.
    """
    if os.name == "nt":
        return ""
    each = [one for stamp in stamps or () for one in (stamp.values() if isinstance(stamp, dict) else [stamp])]
    dates = [date for stamp in each if stamp is not None for date in stamp[2:]]
    if not dates or None in each or max(dates) > begun - _SETTLED:
        return ""
    return hashlib.sha256(repr((shared, os.path.abspath(path), stamps)).encode()).hexdigest()


class Index:
    """The states of the files of this run (`seen`) and of an earlier run (`before`), by name of the result."""

    def __init__(self, folder: Path | None, names: Iterable[str], resume: bool) -> None:
        self._path = None if folder is None else folder / NAME
        found = None if self._path is None or not resume else saving.unsealed(self._path, _LARGEST)
        kept: Any = {} if found is None else found.get("files")
        kept = kept if isinstance(kept, dict) else {}
        self.before = {name: Seen(*map(str, pair)) for name in names if _is_pair(pair := kept.get(name))}
        self.seen: dict[str, Seen] = dict(self.before)

    def note(self, name: str, now: Seen | None) -> None:
        """Store the state of the file whose result is called `name`, or remove it if the file has no state."""
        self.seen.pop(name, None)
        if now is not None and now.state:
            self.seen[name] = now

    def close(self) -> None:
        """Write the index if it differs from the index of the earlier run."""
        if self._path is None or self.seen == self.before:
            return
        document = {"files": {name: list(one) for name, one in sorted(self.seen.items())}}
        with contextlib.suppress(DetmapError):  # without an index, the next run reads all files
            write_atomically(self._path, saving.sealed(document))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2
