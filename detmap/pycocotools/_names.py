"""Snake-case aliases of attributes and methods."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

#: Attributes of `Params`, by pycocotools' names.
PARAMS = ("iouType", "imgIds", "catIds", "iouThrs", "recThrs", "maxDets", "areaRng", "areaRngLbl", "useCats")


def also_snake_case(owner: type, names: Iterable[str]) -> None:
    """Add snake-case aliases for attributes of a class: ``max_dets`` for ``maxDets``."""
    for name in names:
        setattr(owner, _in_snake_case(name), other_name(name))


def also_called_in_snake_case(owner: type, names: Iterable[str], defaults: bool = True, **keywords: str) -> None:
    """Add snake-case aliases for methods and their arguments; `keywords` holds irregular aliases by argument."""
    for name in names:
        setattr(owner, _in_snake_case(name), _other_method(getattr(owner, name), defaults, keywords))


def other_name(name: str) -> property:
    """Return a property that is an alias of another attribute."""
    return property(
        lambda self: getattr(self, name),
        lambda self, value: setattr(self, name, value),
        doc=f"`{name}` by its other name.",
    )


def _other_method(method: Callable[..., Any], defaults: bool, keywords: dict[str, str]) -> Callable[..., Any]:
    own, name = inspect.signature(method), method.__name__
    words = {keywords.get(one, _in_snake_case(one)): one for one in own.parameters}
    renamed = [own.parameters[one].replace(name=word) for word, one in words.items()]
    if not defaults:
        renamed = [one.replace(default=inspect.Parameter.empty) for one in renamed]
    signature = own.replace(parameters=renamed)

    def called(self: Any, *given: Any, **named: Any) -> Any:
        signature.bind(self, *given, **named)  # raises a TypeError that names the arguments of the alias
        return getattr(self, name)(*given, **{words[word]: value for word, value in named.items()})

    called.__doc__, called.__signature__ = f"`{name}` by its other name.", signature  # type: ignore[attr-defined]
    return called


def _in_snake_case(name: str) -> str:
    return re.sub("([A-Z]+)", r"_\1", name).lower()
