"""What a benchmark decides, declared once: as the metadata of a dataclass field.

Validation, descriptions, command-line flags, saved states and the attributes in a class's docstring follow from these
declarations, so that a new decision is one field.
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

#: What a decision changes: which detection is matched with which object, the order of a ranking, its curve or AP, the
#: mean over rankings, or only the names of the metrics.
Affects = Literal["matching", "ranking", "curve", "mean", "names"]

#: What a decision between yes and no is allowed to be.
YES_OR_NO = (False, True)

#: The version whose saved states hold every decision there was.
FIRST = "0.1"


@dataclass(frozen=True, kw_only=True)
class Flag:
    """How the command line takes a decision.

    Attributes
    ----------
    name : str
        ``--iou-thresholds``.
    help : str
        For ``--help``; by default the decision's sentence.
    metavar : str
        What stands for the value; by default the values that are allowed.
    read : callable, or None
        ``read(text)`` returns the value. It raises a ValueError whose text says what the value must be.
    value : object
        Of a flag without a value: what it decides.
    is_file : bool
        Whether the value is the path of a file of JSON, whose content `read` takes.
    repeated : bool
        Whether the flag may be given several times; `read` takes a list then.
    """

    name: str
    help: str = ""
    metavar: str = ""
    read: Callable[[Any], Any] | None = None
    value: Any = None
    is_file: bool = False
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A field of a dataclass that users choose: a decision, or an option of reading."""

    #: A sentence or more: what is decided.
    says: str
    #: The values that it can have; of a tuple, the values in it. Empty: `wrong` says what it can be.
    allowed: Collection[Any] = ()
    #: ``plain(value)`` returns a value as it is kept. It raises a TypeError or ValueError for one that cannot be.
    plain: Callable[[Any], Any] | None = None
    #: ``wrong(value)`` returns the sentence that says what is wrong with a value, None where nothing is.
    wrong: Callable[[Any], str | None] | None = None
    #: ``words(value)`` returns a value as people read it; by default as Python writes it.
    words: Callable[[Any], str] = str
    #: How the command line takes it; None: it does not.
    flag: Flag | None = None
    #: The version that has it first. Where a later one is as by default, it is not written to files, so that they stay
    #: the same.
    since: str = FIRST


@dataclass(frozen=True, kw_only=True)
class Decision(Declared):
    """A decision of a protocol or convention."""

    #: What it changes, of `Affects`.
    affects: tuple[Affects, ...]
    #: ``phrase(whole)`` returns what `describe` says of the decision in `whole`, the protocol or convention; None:
    #: nothing.
    phrase: Callable[[Any], str] | None = None
    #: Whether `describe` says it always; otherwise only where it is not the default.
    always: bool = False
    #: Decisions of one group make sense together only, and count as one where two protocols are compared.
    group: str = ""
    #: Whether it lies in what is read, which records and how exact, rather than in how they are scored.
    reads: bool = False


def decision(says: str, *affects: Affects, **more: Any) -> Mapping[str, Any]:
    """Return the metadata of a field that is a decision; `more` is what else a `Decision` has."""
    return {"declared": Decision(says=says, affects=affects, **more)}


@cache
def declared_of(of: type) -> Mapping[str, Any]:
    """Return what the fields of a class declare by their names, in the order of the fields."""
    return MappingProxyType(
        {field.name: field.metadata["declared"] for field in fields(of) if "declared" in field.metadata}
    )


def decisions_of(of: type) -> Mapping[str, Decision]:
    """Return the decisions of a class by the names of their fields, in the order of the fields."""
    return declared_of(of)


def default_of(field: Field[Any]) -> Any:
    """Return the default of a field; `dataclasses.MISSING` where it has none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def varied(rules: T, changes: Mapping[str, Any]) -> T:
    """Return rules with other values of decisions, which are not checked: `settle` made these, or left them as they are."""
    made = object.__new__(type(rules))
    made.__dict__.update(rules.__dict__, **changes)
    return made


#: Checked values by class, field and identity: variants share most of their values. At most `_MOST_CHECKED`.
_CHECKED: dict[tuple[type, str, int], object] = {}
_MOST_CHECKED = 10_000


def settle(whole: Any) -> None:
    """Make every declared value of a frozen dataclass plain, and check it."""
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
        with suppress(TypeError):  # what has no hash may change
            hash(value)
            _CHECKED[of, name, id(value)] = value


def written(whole: Any) -> dict[str, Any]:
    """Return all decisions by name, but for later ones that are as by default."""
    declared = decisions_of(type(whole))
    return {
        field.name: getattr(whole, field.name)
        for field in fields(whole)
        if declared[field.name].since == FIRST or getattr(whole, field.name) != default_of(field)
    }


def describe(whole: Any) -> str:
    """Return the decisions in one line, to stand beside a number: what is always said, then what is not the default."""
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
    """Return a row per decision that affects something: its name, its value in `whole`, what it affects, what it means."""
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
    """Return the names of the decisions in which two protocols or conventions differ, but for those of names alone."""
    declared = decisions_of(type(one))
    return [
        name
        for name, made in declared.items()
        if set(made.affects) - {"names"} and getattr(one, name) != getattr(other, name)
    ]


def apart(one: Any, other: Any) -> str:
    """Return in words what `one` decides otherwise than `other`, which is the better known."""
    declared = decisions_of(type(one))
    found = []
    for name in differing(one, other):
        made = declared[name]
        if made.words(getattr(one, name)) != made.words(getattr(other, name)):  # else they differ by rounding alone
            found.append(f"{name} {made.words(getattr(one, name))}" if made.phrase is None else made.phrase(one))
    return ", ".join(found) or "nothing"


class _Documentation:
    """The docstring of a class, made when it is read: its own, and its fields as a section of attributes."""

    def __init__(self, own: str) -> None:
        self._own = own

    def __get__(self, instance: object, of: type) -> str:
        from inspect import cleandoc

        lines = ["", "", "Attributes", "----------"]
        for field in fields(of):
            lines += entry(field)
        return cleandoc(self._own) + "\n".join(lines) + "\n"


def documented(of: type[T]) -> type[T]:
    """Add the fields to the docstring of a class, as a section of attributes in numpydoc's form."""
    of.__doc__ = _Documentation(of.__doc__ or "")  # type: ignore[assignment]
    return of


def entry(field: Field[Any], name: str | None = None) -> list[str]:
    """Return the lines of a field in a section of a docstring; `name` is what it is called there."""
    made: Declared = field.metadata["declared"]
    from textwrap import wrap

    kind = str(field.type)
    if isinstance(made.allowed, tuple) and made.allowed and made.allowed is not YES_OR_NO:  # a registry may grow
        choices = "{" + ", ".join(map(repr, made.allowed)) + "}"
        kind = f"tuple of {choices}" if kind.startswith("tuple") else choices
    return [f"{name or field.name} : {kind}", *(f"    {line}" for line in wrap(made.says, 110))]
