"""Parts of a diagnosis, and their findings: metrics by name, and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from detmap.choices import is_number
from detmap.errors import OptionError, check_choice, shorten
from detmap.plugins import Registry
from detmap.results import Result, fragment, to_frame

Rows = list[dict[str, Any]]


def rows_of(columns: Mapping[str, Any]) -> Rows:
    """Return the rows of a table. `columns` maps titles to arrays or lists of equal length."""
    values = (one.tolist() if isinstance(one, np.ndarray) else one for one in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


class Finding(Result):
    """The finding of a part of a diagnosis: a read-only mapping from metric name to value, and tables.

    Parameters
    ----------
    part : str
        The name of the part.
    settings : mapping of str to Any
        The options of the part, including defaults, as plain values.
    metrics : mapping of str to float
        The headline numbers; NaN where undefined.
    tables : mapping of str to list of dict
        Tables by title, the most important one first. All rows of a table have the same columns.
    notes : sequence of str
        Sentences that explain the tables.

    Attributes
    ----------
    part, settings, tables, notes
        As given.
    """

    def __init__(
        self,
        part: str,
        settings: Mapping[str, Any],
        metrics: Mapping[str, float],
        tables: Mapping[str, Rows],
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(metrics)
        self.part, self.settings, self.tables, self.notes = part, dict(settings), dict(tables), tuple(notes)

    def rows(self, table: str | None = None) -> Rows:
        """Return the rows of the table with the title `table`, by default of the first table.

        Raises
        ------
        OptionError
            For an unknown title.
        """
        if table is not None:
            check_choice("table", table, self.tables)
        chosen = next(iter(self.tables.values()), []) if table is None else self.tables[table]
        return [dict(row) for row in chosen]

    def to_frame(self, table: str | None = None) -> Any:
        """Return the `rows` of a table as a pandas data frame (extra ``frames``)."""
        return to_frame(self.rows(table))

    def to_dict(self) -> dict[str, Any]:
        """Return part, settings, metrics, tables and notes as plain values (NaN where undefined)."""
        return {
            "part": self.part,
            "settings": dict(self.settings),
            "metrics": dict(self),
            "tables": {title: self.rows(title) for title in self.tables},
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        """Show the metrics and the first table."""
        first = {title: self.rows(title) for title in list(self.tables)[:1]}
        return fragment(self.part, {**self._tables(), **first}, self.notes)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value:.4g}" for name, value in list(self.items())[:8])
        return f"<{self.part}: {shown}>"


@dataclass(frozen=True)
class Part:
    """A part of a diagnosis, for `detmap.register`.

    Attributes
    ----------
    name : str
        A Python identifier, the name of a method of `detmap.Diagnosis` and a value of ``detmap diagnose --parts``.
    says : str
        What the part finds, in a sentence without its full stop.
    make : callable
        ``make(diagnosis, **options)`` returns a `Finding`. The function may read ``diagnosis.matches`` and all other
        attributes of `detmap.Diagnosis`.
    files : tuple of str
        Options that may name a file. A finding is not cached if one of these options is set, because the file can
        change.
    """

    name: str
    says: str
    make: Callable[..., Finding]
    files: tuple[str, ...] = ()


#: Every part of a diagnosis, in display order.
PARTS: Registry[Part] = Registry(Part, "part of a diagnosis")


def number(name: str, value: Any, *, finite: bool = True) -> float:
    """Return `value` as a float; raise `OptionError` for another type and, if `finite`, for infinity and NaN."""
    if not is_number(value) or (finite and not np.isfinite(value)):
        raise OptionError(f"{name} must be one finite number, not {shorten(value)}")
    return float(value)
