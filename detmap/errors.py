"""The exceptions of detmap.

::

    DetmapError
    ├── InputError (ValueError)             data that cannot be scored: names file, record, field, value and remedy
    ├── OptionError (ValueError)            an option or protocol that cannot be carried out
    │   └── UnknownMetricError (KeyError)   a result has no metric of that name
    ├── StateError (ValueError)             a saved tally or evaluator that is damaged or of another protocol
    └── MissingDependencyError (ImportError)  an optional package that is not installed
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any

from detmap.installation import install_command

if TYPE_CHECKING:
    from typing import TypeGuard

_UNSET = object()

#: Minimum similarity of a suggested word to the given word, as difflib's ratio of matching letters.
_LEAST_SIMILARITY = 0.65

#: Irregular plurals of units.
_PLURALS = {"category": "categories", "query": "queries", "class": "classes", "hypothesis": "hypotheses"}


def many(count: int, unit: str) -> str:
    """Return a number with its unit, as "1 image" or "2,482 detections"."""
    first, space, rest = unit.partition(" ")
    return f"{count:,} {first if count == 1 else _PLURALS.get(first, first + 's')}{space}{rest}"


def shorten(value: object, width: int = 60) -> str:
    """Return `value` as one printable line of at most `width` characters (control characters escaped)."""
    if isinstance(value, bytes):
        value = value[: 4 * width].decode("utf-8", "replace")
    if isinstance(value, str):
        value = value[: 4 * width]  # never format a hostile string whole
    elif isinstance(value, list | tuple) and len(value) > 8:
        return f"{type(value).__name__} of {len(value)} items"
    elif isinstance(value, dict) and len(value) > 8:
        return f"object with {len(value)} fields"
    try:
        text = ascii(value) if not isinstance(value, str) else repr(value).encode("utf-8", "backslashreplace").decode()
    except (RecursionError, ValueError):
        text = f"<{type(value).__name__}>"
    return text if len(text) <= width else text[: width - 1] + "…"


class DetmapError(Exception):
    """Base class of all errors that detmap raises deliberately; the message is one line."""


class InputError(DetmapError, ValueError):
    """Data that cannot be scored.

    Parameters
    ----------
    problem : str
        What is wrong, without saying where.
    source : str, optional
        The file, or the argument, that holds the data.
    record : int or str, optional
        Position of the record in its list, counted from 0, or a name of the record.
    field : str, optional
        The field within the record.
    value : object, optional
        The offending value; shown shortened and escaped.
    remedy : str, optional
        What the reader can do about the problem.
    """

    def __init__(
        self,
        problem: str,
        *,
        source: str | None = None,
        record: int | str | None = None,
        field: str | None = None,
        value: object = _UNSET,
        remedy: str | None = None,
    ) -> None:
        self.problem, self.source, self.record, self.field, self.remedy = problem, source, record, field, remedy
        self._value = value
        place = [shorten(source, 200)[1:-1]] if source else []
        inside = []
        if record is not None:
            inside.append(f"record {record}" if isinstance(record, int) else shorten(record, 200)[1:-1])
        if field is not None:
            inside.append(f"field {shorten(field)}")
        if inside:
            place.append(", ".join(inside))
        text = ": ".join([*place, problem])
        if value is not _UNSET:
            text += f" (got {shorten(value)})"
        if remedy:
            text += f"; {remedy}"
        super().__init__(text)

    def elsewhere(self, source: str, record: int | str | None) -> InputError:
        """Return the same error with another location: the file and line that the data came from."""
        return InputError(
            self.problem, source=source, record=record, field=self.field, value=self._value, remedy=self.remedy
        )


@contextmanager
def relocated(place: Callable[[int], tuple[str, int | str | None]]) -> Iterator[None]:
    """Context manager that relocates errors about numbered records. ``place(number)`` returns the source and the record
    that the error then names.
    """
    try:
        yield
    except InputError as error:
        if not isinstance(error.record, int):
            raise
        raise error.elsewhere(*place(error.record)) from None


class OptionError(DetmapError, ValueError):
    """An option or a protocol that cannot be carried out."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the suffix of a message that suggests the most similar known word, or ""."""
    near = most_similar(word, known)
    return "" if near is None else f"; did you mean {near!r}?"


def most_similar(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most similar to `word`, the first if several are equally similar; None if no known
    word is similar to `word` or begins with it.
    """
    from difflib import SequenceMatcher, get_close_matches

    lower, spelled = word.lower(), {one.lower(): one for one in reversed(list(known))}
    near = {one for one in spelled if lower and one.startswith(lower)}
    near.update(get_close_matches(lower, spelled, 10, _LEAST_SIMILARITY))

    def likeness(one: str) -> tuple[bool, float]:
        return sorted(one) == sorted(lower), SequenceMatcher(None, one, lower).ratio()

    best = max((one for one in reversed(spelled) if one in near), key=likeness, default=None)
    return None if best is None else spelled[best]


def one_of(word: object, known: Iterable[str], meant: str = "") -> str:
    """Return the end of a message that lists the known words and suggests one of them. The suggestion is `meant` or, if
    empty, the known word that is most similar to `word`.
    """
    names = list(known)
    near = f"; did you mean {meant!r}?" if meant in names else did_you_mean(str(word)[:100], names)
    return f"{near or ';'} one of: {', '.join(names)}" if names else near


class UnknownMetricError(OptionError, KeyError):
    """The name of a metric is unknown. The message lists up to 20 known names, and ends with `remedy`, if given."""

    def __init__(self, name: object, metrics: Iterable[str], remedy: str = "") -> None:
        known = list(metrics)
        more = f" and {len(known) - 20} more" if len(known) > 20 else ""
        near = did_you_mean(str(name)[:100], known)
        there = f"there are: {', '.join(known[:20])}{more}"
        super().__init__("; ".join(filter(None, [f"no metric {shorten(name)}{near or ';'} {there}", remedy])))
        self._given = name, known, remedy

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the quoted text

    def __reduce__(self) -> tuple[type, tuple[object, list[str], str]]:
        return type(self), self._given


def check_allowed(name: str, value: object, allowed: Collection[Any]) -> None:
    """Refuse a value that is not among the `allowed` values."""
    if not (isinstance(value, str | int | None) and value in allowed):
        near = did_you_mean(str(value)[:100], [str(one) for one in allowed])
        raise OptionError(f"{name} must be one of {', '.join(map(str, allowed))}, not {shorten(value)}{near}")


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer of Python or numpy, and not a boolean."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_id(value: object) -> TypeGuard[int | str]:
    """Return whether a value is an id: a string, or an integer as defined by `is_integer`."""
    return isinstance(value, str) or is_integer(value)


def check_integer(name: str, value: object, least: int) -> None:
    """Refuse anything but an integer of at least `least`."""
    if not is_integer(value) or value < least:
        raise OptionError(f"{name} must be an integer of at least {least}, not {value!r}")


def check_choice(what: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a value that is not among `choices`; `what` describes the value."""
    known = list(choices)
    if value not in known:
        raise OptionError(f"unknown {what} {value!r}{one_of(value, known)}")


class StateError(DetmapError, ValueError):
    """A saved state that is damaged, of another version, or of another protocol."""


class MissingDependencyError(DetmapError, ImportError):
    """An optional package that a feature needs is not installed.

    Parameters
    ----------
    package : str
        The name of the package on PyPI.
    extra : str or None
        The extra of detmap that installs it; None if there is none.
    purpose : str
        The feature that needs the package.
    """

    def __init__(self, package: str, extra: str | None, purpose: str) -> None:
        command = f"pip install {package}" if extra is None else install_command(extra)
        super().__init__(f"{purpose} needs {package}: {command}")
        self._given = package, extra, purpose

    def __reduce__(self) -> tuple[type, tuple[str, str | None, str]]:
        return type(self), self._given
