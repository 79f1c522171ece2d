"""Decisions of benchmarks, each declared once as the metadata of a dataclass field.

Validation, descriptions, command-line flags, saved states and the attributes in class docstrings use these
declarations. To add a decision, only add a field.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np

from detmap.errors import OptionError, check_allowed, shorten

T = TypeVar("T")

#: What a decision affects: the matching of detections with objects, the order of a ranking, the curve or AP of a
#: ranking, the mean over rankings, or only the names of metrics.
Affects = Literal["matching", "ranking", "curve", "mean", "names"]

#: Allowed values of a boolean decision.
YES_OR_NO = (False, True)

#: The version that introduced saved states. Every saved state holds all decisions of this version.
FIRST = "0.1"


@dataclass(frozen=True, kw_only=True)
class Flag:
    """The command-line flag of a decision."""

    #: The name with dashes, such as ``--iou-thresholds``.
    name: str
    #: Text for ``--help``; by default the description of the decision.
    help: str = ""
    #: Placeholder of the value; by default the allowed values.
    metavar: str = ""
    #: ``read(text)`` returns the value, or raises a ValueError that describes valid values.
    read: Callable[[Any], Any] | None = None
    #: For a flag without an argument, the value that it sets.
    value: Any = None
    #: Whether the flag takes the path of a JSON file, whose content is passed to `read`.
    is_file: bool = False
    #: Whether the flag may be given several times; `read` takes a list then.
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A dataclass field whose value users choose: a decision, or a reading option."""

    #: One or more sentences that describe the decision.
    says: str
    #: The allowed values; for a tuple, the allowed items. If empty, values are checked only by `wrong`.
    allowed: Collection[Any] = ()
    #: ``plain(value)`` returns the normalised value; raises TypeError or ValueError for an invalid value.
    plain: Callable[[Any], Any] | None = None
    #: ``wrong(value)`` returns an error message for an invalid value, else None.
    wrong: Callable[[Any], str | None] | None = None
    #: ``words(value)`` formats a value for display; by default as `str` does.
    words: Callable[[Any], str] = str
    #: The command-line flag; None if there is none.
    flag: Flag | None = None
    #: The version that introduced the field. A field added after `FIRST` is written to files only if its value is not
    #: the default, so that new and old versions write the same files.
    since: str = FIRST


@dataclass(frozen=True, kw_only=True)
class Decision(Declared):
    """A decision of a protocol or convention."""

    #: What the decision affects, see `Affects`.
    affects: tuple[Affects, ...]
    #: ``phrase(whole)`` returns the words in which `describe` states the decision of the protocol or convention `whole`.
    #: If `phrase` is None, `describe` leaves the decision out.
    phrase: Callable[[Any], str] | None = None
    #: Whether `describe` always mentions the decision, not only if its value differs from the default.
    always: bool = False
    #: Name of a group of decisions that are changed together. Comparisons of protocols count the group as one decision.
    group: str = ""
    #: Whether the decision affects reading, such as dropped records or rounding, rather than scoring.
    reads: bool = False


def decision(says: str, *affects: Affects, **more: Any) -> Mapping[str, Any]:
    """Return the metadata of a decision's field; `more` are further attributes of `Decision`."""
    return {"declared": Decision(says=says, affects=affects, **more)}


@cache
def declared_of(of: type) -> Mapping[str, Any]:
    """Map the field names of a class, in order, to the declarations in the fields."""
    return MappingProxyType(
        {field.name: field.metadata["declared"] for field in fields(of) if "declared" in field.metadata}
    )


def decisions_of(of: type) -> Mapping[str, Decision]:
    """Return the decisions of a class by field name, in order."""
    return declared_of(of)


def default_of(field: Field[Any]) -> Any:
    """Return the default of a field; `dataclasses.MISSING` if it has none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def varied(rules: T, changes: Mapping[str, Any]) -> T:
    """Return rules with some decisions replaced by values that `settle` has already checked."""
    made = object.__new__(type(rules))
    made.__dict__.update(rules.__dict__, **changes)
    return made


#: Cache of at most `_MOST_CHECKED` checked values, by class, field name and ``id(value)``. Variants of a protocol share
#: most values, which are then checked only once.
_CHECKED: dict[tuple[type, str, int], object] = {}
_MOST_CHECKED = 10_000


def settle(whole: Any) -> None:
    """Normalise and check every declared value of a frozen dataclass."""
    of: Any = type(whole)
    declared = {
        name: made
        for name, made in declared_of(of).items()
        if (value := getattr(whole, name)) is not _CHECKED.get((of, name, id(value)), _CHECKED)
    }
    for name, made in declared.items():
        if made.allowed is YES_OR_NO and isinstance(value := getattr(whole, name), int | np.bool_) and value in (0, 1):
            object.__setattr__(whole, name, bool(value))
        if made.plain is not None:
            try:
                object.__setattr__(whole, name, made.plain(getattr(whole, name)))
            except OptionError:
                raise
            except (TypeError, ValueError) as error:
                value = getattr(whole, name)
                why = str(error) if isinstance(value, Iterable) else "it must be a list"
                raise OptionError(f"{name} cannot be {shorten(value)}: {why}") from None
    for name, made in declared.items():
        value = getattr(whole, name)
        for one in value if isinstance(value, tuple) and made.allowed else (value,):
            if made.allowed:
                check_allowed(name, one, made.allowed)
        problem = None if made.wrong is None else made.wrong(value)
        if problem:
            raise OptionError(problem)
    for name in declared if len(_CHECKED) < _MOST_CHECKED else ():
        value = getattr(whole, name)
        with suppress(TypeError):  # unhashable values may be mutable, so they are always checked
            hash(value)
            _CHECKED[of, name, id(value)] = value


def written(whole: Any) -> dict[str, Any]:
    """Return the decisions by name, without decisions newer than version `FIRST` that have their default values."""
    declared = decisions_of(type(whole))
    return {
        field.name: getattr(whole, field.name)
        for field in fields(whole)
        if declared[field.name].since == FIRST or getattr(whole, field.name) != default_of(field)
    }


def describe(whole: Any) -> str:
    """Return the decisions in one line: first the decisions marked `always`, then all decisions with other values than
    the defaults.
    """
    declared = decisions_of(type(whole))
    always: list[str] = []
    otherwise: list[str] = []
    for field in fields(whole):
        made = declared.get(field.name)
        if made is None or made.phrase is None:
            continue
        if made.always:
            always.append(made.phrase(whole))
        elif getattr(whole, field.name) != default_of(field) and (said := made.phrase(whole)):
            otherwise.append(said)
    return f"{whole.name}: {', '.join(always + otherwise)}"


def rows(whole: Any) -> list[dict[str, str]]:
    """Return a row for each decision that affects results: the name of the decision, its value in `whole`, its effects
    (see `Affects`) and its meaning.
    """
    return [
        {
            "decision": name,
            "value": made.words(getattr(whole, name)),
            "affects": ", ".join(made.affects),
            "means": made.says,
        }
        for name, made in decisions_of(type(whole)).items()
        if made.affects
    ]


def differing(one: Any, other: Any) -> list[str]:
    """Return the names of the decisions that differ, without decisions that only affect the names of metrics."""
    declared = decisions_of(type(one))
    return [
        name
        for name, made in declared.items()
        if set(made.affects) - {"names"} and getattr(one, name) != getattr(other, name)
    ]


def apart(one: Any, other: Any) -> str:
    """Describe the decisions in which `one` differs from `other`, which is a better known protocol or convention."""
    declared = decisions_of(type(one))
    found = []
    for name in differing(one, other):
        made = declared[name]
        # values with equal words differ only by rounding
        if made.words(getattr(one, name)) != made.words(getattr(other, name)):
            found.append(f"{name} {made.words(getattr(one, name))}" if made.phrase is None else made.phrase(one))
    return ", ".join(found) or "nothing"


class _Documentation:
    """A class docstring that is composed when read: the text of the class, and a section of attributes for the fields."""

    def __init__(self, own: str) -> None:
        self._own = own

    def __get__(self, instance: object, of: type) -> str:
        from inspect import cleandoc

        lines = ["", "", "Attributes", "----------"]
        for field in fields(of):
            lines += entry(field)
        return cleandoc(self._own) + "\n".join(lines) + "\n"


def documented(of: type[T]) -> type[T]:
    """Add a numpydoc section of attributes for the fields to the docstring of a class."""
    of.__doc__ = _Documentation(of.__doc__ or "")  # type: ignore[assignment]
    return of


def entry(field: Field[Any], name: str | None = None) -> list[str]:
    """Return the lines that document a field in a docstring. If `name` is given, it replaces the field's name."""
    made: Declared = field.metadata["declared"]
    from textwrap import wrap

    kind = str(field.type)
    # registries may grow, so their values are not listed
    if isinstance(made.allowed, tuple) and made.allowed and made.allowed is not YES_OR_NO:
        choices = "{" + ", ".join(map(repr, made.allowed)) + "}"
        kind = f"tuple of {choices}" if kind.startswith("tuple") else choices
    return [f"{name or field.name} : {kind}", *(f"    {line}" for line in wrap(made.says, 110))]
