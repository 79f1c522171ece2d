"""Read small documents of JSON strictly: UTF-8, every key at most once, and no NaN or Infinity."""

from __future__ import annotations

import json
from typing import Any

from detmap.errors import InputError


def parsed(data: bytes | memoryview, name: str, field: str | None = None) -> Any:
    """Return the content of a document. Messages mention the file `name`, and the option `field` that was set to it."""
    try:
        return json.loads(bytes(data).decode("utf-8-sig"), object_pairs_hook=once, parse_constant=_refused)
    except InputError as error:
        raise error.elsewhere(name, None) from None
    except (ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise InputError(f"is not valid JSON: {problem}", source=name, field=field) from None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's members; raise `InputError` for a repeated key."""
    found = dict(pairs)
    if len(found) < len(pairs):
        last = {key: at for at, (key, _) in enumerate(pairs)}
        twice = next(key for at, (key, _) in enumerate(pairs) if last[key] != at)
        raise InputError("is there twice in one object", value=twice, remedy="keep the one that is meant")
    return found


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
