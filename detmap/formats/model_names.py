"""Derive the names of models from the paths of result files: the shortest last parts of the paths that are distinct."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial

from detmap.formats import files, registry  # noqa: F401 - files registers the formats, whose suffixes are looked up


def distinct(paths: Sequence[str], taken: Collection[str] = (), stem: Callable[[str], str] | None = None) -> list[str]:
    """Return the shortest distinct last parts of the paths. File extensions are removed, except from files of one
    folder that differ only by extension. `taken` are names to avoid. `stem` removes an extension; by default it removes
    the suffixes of files of detections.
    """
    stem = partial(_stem, registry.suffixes()) if stem is None else stem
    parts = [tuple(path.replace(os.sep, "/").strip("/").split("/")) for path in paths]
    short = [(*folders, stem(last)) for *folders, last in parts]
    alike, anywhere = Counter(short), Counter(one[-1] for one in short)
    short = [part if alike[one] == anywhere[one[-1]] > 1 else one for one, part in zip(short, parts, strict=True)]
    names = [""] * len(paths)
    waiting = list(range(len(paths)))
    for depth in range(1, max(map(len, parts), default=0) + 2):
        for i in waiting:
            names[i] = "/".join(short[i][-depth:]) if depth <= len(parts[i]) else "/".join(parts[i])
        count = Counter(names)
        waiting = [i for i in waiting if count[names[i]] > 1 or names[i] in taken]
    return names


#: Maximum length of a name that is shown in full if there are many columns.
_BRIEF = 20


def brief(names: Sequence[str]) -> dict[str, str]:
    """Return short forms of long names for narrow tables; ellipses replace the common beginning and end of all names."""
    if max(map(len, names), default=0) <= _BRIEF or len(names) < 2:
        return {name: name for name in names}
    begin = _alike(names)
    end = _alike([name[begin:][::-1] for name in names])
    made = {}
    for name in names:
        own = name[begin : len(name) - end]
        around = max(_BRIEF - 2 - len(own), 0)
        first = max(begin - around // 2, 0)
        last = min(len(name), len(name) - end + around - around // 2)
        made[name] = "…" * (first > 0) + name[first:last] + "…" * (last < len(name))
    short = all(0 < len(one) <= _BRIEF for one in made.values()) and len(set(made.values())) == len(names)
    return made if short else {name: name for name in names}


def _alike(names: Sequence[str]) -> int:
    """Return the length of the names' common prefix."""
    columns = enumerate(zip(*names, strict=False))
    return next((at for at, column in columns if len(set(column)) > 1), min(map(len, names)))


def _stem(suffixes: Sequence[str], name: str) -> str:
    endings = [suffix for suffix in suffixes if name.endswith(suffix) and name != suffix]
    return name.removesuffix(max(endings, key=len, default=""))
