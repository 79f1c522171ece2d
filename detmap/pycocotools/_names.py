"""Attributes by a second name."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: What `Params` holds, by pycocotools' names.
PARAMS = ("iouType", "imgIds", "catIds", "iouThrs", "recThrs", "maxDets", "areaRng", "areaRngLbl", "useCats")


def also_snake_case(owner: type, names: Iterable[str]) -> None:
    """Let attributes of a class be read and set by their names in snake case too: ``max_dets`` for ``maxDets``."""
    for name in names:
        setattr(owner, re.sub("([A-Z])", r"_\1", name).lower(), _other_name(name))


def _other_name(name: str) -> property:
    return property(
        lambda self: getattr(self, name),
        lambda self, value: setattr(self, name, value),
        doc=f"`{name}` by its other name.",
    )
