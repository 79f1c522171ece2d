"""The index of a folder of results, by which `--resume` leaves files unread that have not changed since they were scored."""

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

#: Name of the index: no result's, whose names begin with no dot.
NAME = ".index"

#: Maximum size of an index in bytes, which is that of 200,000 files.
_LARGEST = 1 << 25

#: Age in nanoseconds from which a file's dates tell a change of it: the coarsest resolution of a file system's dates.
_SETTLED = 2_000_000_000


class Seen(NamedTuple):
    """The state of a file when its result was made, "" if it does not tell a change; and the key of the result."""

    state: str
    key: str


def state(path: str, stamps: Sequence[sources.Stamp] | None, begun: int, shared: str) -> str:
    """Return a hash of path and stamps of an input's files, taken since the time `begun`, and of `shared`; "" if these do
    not tell whether the files change: for a stream, for files that were written to just then, and on Windows, where any
    date can be set.
    """
    if os.name == "nt":
        return ""
    each = [one for stamp in stamps or () for one in (stamp.values() if isinstance(stamp, dict) else [stamp])]
    dates = [date for stamp in each if stamp is not None for date in stamp[2:]]
    if not dates or None in each or max(dates) > begun - _SETTLED:
        return ""
    return hashlib.sha256(repr((shared, os.path.abspath(path), stamps)).encode()).hexdigest()


class Index:
    """What was `seen` of the files of a run by the names of their results, and what an earlier run saw of these `before`."""

    def __init__(self, folder: Path | None, names: Iterable[str], resume: bool) -> None:
        self._path = None if folder is None else folder / NAME
        found = None if self._path is None or not resume else saving.unsealed(self._path, _LARGEST)
        kept: Any = {} if found is None else found.get("files")
        kept = kept if isinstance(kept, dict) else {}
        self.before = {name: Seen(*map(str, pair)) for name in names if _is_pair(pair := kept.get(name))}
        self.seen: dict[str, Seen] = dict(self.before)

    def note(self, name: str, now: Seen | None) -> None:
        """Keep what was seen of the file of a result, or that nothing was."""
        self.seen.pop(name, None)
        if now is not None and now.state:
            self.seen[name] = now

    def close(self) -> None:
        """Write the index if it differs from that of the earlier run."""
        if self._path is None or self.seen == self.before:
            return
        document = {"files": {name: list(one) for name, one in sorted(self.seen.items())}}
        with contextlib.suppress(DetmapError):  # without it files are read again
            write_atomically(self._path, saving.sealed(document))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2
