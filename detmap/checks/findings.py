"""Findings of a check: a code, a count, and the sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from detmap.checks.codes import CODES, Severity
from detmap.errors import many, shorten
from detmap.shapes.kinds import Kind

#: Maximum number of records named by a finding.
NAMED = 10


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A defect, or a property of the data that affects metrics.

    Attributes
    ----------
    code : str
        Code of the finding, a key of `detmap.checks.CODES`.
    severity : {"error", "warning", "note"}
        Severity of the code.
    count : int
        The number of affected records, images, and so on.
    unit : str
        Name of a counted record, as "detection".
    says : str
        The finding in one sentence.
    effect, remedy : str
        Effect on metrics, and how to fix the defect.
    named : str
        Kind of the entries of `records`: "record", "image" ("video" or "sample"), "category", "query", "class".
    records : tuple
        At most ten of the affected records: record numbers counted from 0 or, for other kinds, ids or names.
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
        """Return all attributes as plain values."""
        records = [one if isinstance(one, int) else shorten(one)[1:-1] for one in self.records]
        return {**vars(self), "records": records}

    def worded(self, kind: Kind) -> Finding:
        """Return the finding with the noun for images, such as "video", that `kind` uses."""
        names = ("unit", "says", "effect", "remedy", "named")
        texts: dict[str, Any] = {name: kind.worded(getattr(self, name)) for name in names}
        return replace(self, **texts)


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
    """Return the finding of a code; `words` fill the placeholder of the code's sentence, and `more` is appended."""
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


def names(values: Iterable[Any], most: int = 5) -> str:
    """Return the first `most` names as text, with the number of the remaining names."""
    given = list(values)
    shown = ", ".join(str(one) if isinstance(one, int) else shorten(str(one), 40)[1:-1] for one in given[:most])
    return shown + (f" and {len(given) - most:,} more" if len(given) > most else "")
