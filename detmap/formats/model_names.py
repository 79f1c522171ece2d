"""Names of models from the paths of their files: the shortest distinct suffixes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial

from detmap.formats import files, registry  # noqa: F401 - files registers the formats, whose suffixes are looked up


def distinct(paths: Sequence[str], taken: Collection[str] = (), stem: Callable[[str], str] | None = None) -> list[str]:
    """Return the shortest distinct suffixes of the paths, without file extensions if still distinct. `taken` are names
    to avoid; `stem` removes an extension, by default one of the formats of detections.
    """
    stem = partial(_stem, registry.suffixes()) if stem is None else stem
    parts = [tuple(path.replace(os.sep, "/").strip("/").split("/")) for path in paths]
    short = [(*folders, stem(last)) for *folders, last in parts]
    names = [""] * len(paths)
    waiting = list(range(len(paths)))
    for depth in range(1, max(map(len, parts), default=0) + 2):
        for i in waiting:
            names[i] = "/".join(short[i][-depth:]) if depth <= len(parts[i]) else "/".join(parts[i])
        count = Counter(names)
        waiting = [i for i in waiting if count[names[i]] > 1 or names[i] in taken]
    return names


def _stem(suffixes: Sequence[str], name: str) -> str:
    endings = [suffix for suffix in suffixes if name.endswith(suffix) and name != suffix]
    return name.removesuffix(max(endings, key=len, default=""))
