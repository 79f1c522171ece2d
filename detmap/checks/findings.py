"""Findings of a check: a code, a count, and the sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from detmap.checks.codes import CODES, Severity
from detmap.errors import shorten

#: Maximum number of records named by a finding.
NAMED = 10


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something to know before believing a number.

    Attributes
    ----------
    code : str
        Its name, one of `detmap.checks.CODES`.
    severity : {"error", "warning", "note"}
        As there.
    count : int
        The number of records, images, … concerned.
    unit : str
        What is counted, as "detection".
    says : str
        The finding in one sentence.
    effect, remedy : str
        What it does to the numbers, and what to do about it.
    named : str
        What `records` are: "record", "image", "category", "query", "class".
    records : tuple
        The first of them, at most ten: numbers of records counted from 0, or what `named` says.
    """

    code: str
    severity: Severity
    count: int
    unit: str
    says: str
    effect: str
    remedy: str
    named: str = "record"
    records: tuple[Any, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        records = [one if isinstance(one, int) else shorten(one)[1:-1] for one in self.records]
        return {**vars(self), "records": records}


#: Template of a count that is a lower bound.
AT_LEAST = "at least {many}"


def found(
    code: str,
    count: int,
    unit: str,
    *,
    records: Iterable[Any] = (),
    named: str = "record",
    more: str = "",
    words: str = "{many}",
) -> Finding:
    """Return the finding of a code about `count` units; `words` fill the placeholders of its sentence, `more` is
    appended.
    """
    row = CODES[code]
    kept = tuple(one for one, _ in zip(records, range(NAMED), strict=False))
    return Finding(
        code=code,
        severity=row.severity,
        count=int(count),
        unit=unit,
        says=row.says.format(many=words.format(many=many(count, unit))) + (f": {more}" if more else ""),
        effect=row.effect,
        remedy=row.remedy,
        records=kept,
        named=named,
    )


_PLURALS = {"category": "categories", "query": "queries", "class": "classes"}


def many(count: int, unit: str) -> str:
    """Return a number with its unit, as "1 image" or "2,482 detections"."""
    first, space, rest = unit.partition(" ")
    return f"{count:,} {first if count == 1 else _PLURALS.get(first, first + 's')}{space}{rest}"


def names(values: Iterable[Any], most: int = 5) -> str:
    """Return the first of some names for a sentence, and how many more there are."""
    given = list(values)
    shown = ", ".join(str(one) if isinstance(one, int) else shorten(str(one), 40)[1:-1] for one in given[:most])
    return shown + (f" and {len(given) - most:,} more" if len(given) > most else "")
