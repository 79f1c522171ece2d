"""Errors about judgements and runs, extended by file and line."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from detmap.errors import InputError
from detmap.reading.sources import read_bytes

F = TypeVar("F", bound=Callable[..., Any])


class RepeatedError(InputError):
    """A document is ranked or judged twice; `pair` holds the query and the document."""

    def __init__(self, problem: str, pair: tuple[Any, Any], **place: Any) -> None:
        super().__init__(problem, **place)
        self.pair = pair


def located(evaluate: F) -> F:
    """Decorate a function whose first two arguments are judgements and a run. Errors about these arguments then name
    the files.
    """

    @wraps(evaluate)
    def wrapped(qrels: Any, run: Any, *rest: Any, **options: Any) -> Any:
        try:
            return evaluate(qrels, run, *rest, **options)
        except InputError as error:
            path = {"qrels": qrels, "run": run}.get(str(error.source))
            if not isinstance(path, str | os.PathLike):
                raise
            line = _second_line(path, error.pair) if isinstance(error, RepeatedError) else None
            record = error.record if line is None else f"line {line}, {error.record}"
            raise error.elsewhere(os.fspath(path), record) from None

    return cast(F, wrapped)


def _second_line(path: str | os.PathLike[str], pair: tuple[Any, Any]) -> int | None:
    """Return the number of the line that repeats a query and document; None if the file cannot be read again."""
    wanted = [one if isinstance(one, bytes) else str(one).encode("utf-8", "surrogateescape") for one in pair]
    seen = 0
    try:
        data, _ = read_bytes(path, "lines")
    except InputError:
        return None
    for number, line in enumerate(bytes(data).removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        fields = line.split(None, 3)
        seen += fields[:1] + fields[2:3] == wanted
        if seen == 2:
            return number
    return None
