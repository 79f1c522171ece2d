"""Tables of a page. A cell has text, a sort key, and optionally a bar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from detmap.choices import is_number
from detmap.results import cell, is_words, p_value, printable, without_nan

#: Default maximum number of rows shown.
MOST = 500

#: Maximum line length, in characters, of a table that fits half of a page, and of one that fits half of a wide screen.
_HALF, _WHOLE = 66, 76

#: Minimum width of a column of longer texts, in characters.
_PROSE = 24

#: Columns of p-values, which are never shown as 0.
_CHANCE = ("p", "p corrected", "p (Holm)")

#: Maximum length of a cell's text before it is cut off; the tooltip then has the full text.
_LONG = 60


@dataclass(frozen=True)
class Table:
    """A sortable table."""

    #: Caption of the table.
    title: str
    #: ``name`` and ``style`` (CSS classes of the cells) of each column.
    columns: list[dict[str, Any]]
    #: Each cell has its text ``shown``, ``value`` (sort key), ``title`` (the tooltip), ``bar`` (length from 0 to 100, or
    #: None), and ``query`` (selects the linked pictures, or "").
    rows: list[list[dict[str, Any]]]
    #: Number of rows left out.
    more: int = 0
    #: A sentence below the table.
    note: str = ""
    #: Whether the table is too wide for half of a page, and for half of a wide screen.
    broad: bool = False
    vast: bool = False
    #: Whether rows are sorted worst first.
    worst: bool = False
    kind: str = "table"


def table(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    bars: Mapping[str, float | None] | None = None,
    most: int = MOST,
    note: str = "",
    worst: str = "",
    queries: Mapping[str, Mapping[str, str]] | None = None,
) -> Table:
    """Return the first `most` of `rows`, which all have the same columns, as a table with a note below.

    `bars` maps a column to the value of a full bar; None means the column's maximum. Rows are sorted by ascending
    values of the column `worst`, if given. ``queries[column][value]`` selects the pictures that a cell links to.
    Undefined numbers are NaN.
    """
    if worst:
        rows = sorted(rows, key=lambda row: (math.isnan(row[worst]), row[worst]))
    header = list(rows[0]) if rows else []
    words = {name for name in header if is_words(rows, name)}
    full: dict[str, float] = {}
    for name, value in (bars or {}).items():
        found = [abs(row[name]) for row in rows if name in row and not math.isnan(row[name])]
        full[name] = value or max(found, default=0.0)
    cells = [
        [_cell(row[name], name in words, full.get(name), name in _CHANCE) for name in header] for row in rows[:most]
    ]
    for name, of_value in (queries or {}).items():
        for row, made in zip(rows, cells, strict=False):
            if name in row:
                made[header.index(name)]["query"] = of_value.get(str(row[name]), "")
    widths = [max([len(name), *(len(row[at]["shown"]) for row in cells)]) for at, name in enumerate(header)]
    widths = [min(width, _PROSE) for width in widths]  # longer texts are wrapped
    length = sum(width + 3 for width in widths)
    return Table(
        printable(title),
        [
            {"name": printable(name), "style": _style(name in words, width)}
            for name, width in zip(header, widths, strict=True)
        ],
        cells,
        max(len(rows) - most, 0),
        sentence(note),
        length > _HALF,
        length > _WHOLE,
        bool(worst),
    )


def _style(words: bool, width: int) -> str:
    """Return the CSS classes of a column's cells."""
    return "" if not words else "text long" if width >= _PROSE else "text"


def sentence(text: str) -> str:
    """Return a note as a complete sentence; a name at its start, as in "dAP: …", keeps its case."""
    word = text.partition(" ")[0]
    text = printable(text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text)
    return text if not text or text[-1] in ".!?" else f"{text}."


def _cell(value: Any, words: bool, full: float | None, chance: bool = False) -> dict[str, Any]:
    exact = without_nan(value)
    number = not words and is_number(exact)
    shown = f"{exact:,}" if number and isinstance(exact, int) else printable(cell(value))
    if number and exact is not None and shown.startswith("-0") and not shown.strip("-0."):
        shown = shown[1:]  # avoid -0.0000
    if chance and number and exact is not None:
        shown = cell(p_value(exact))
    bar = None
    if full is not None:
        bar = round(min(max(exact / full, 0.0), 1.0) * 100, 1) if number and full else 0
    return {
        "shown": shown,
        "value": "" if exact is None else f"{exact:.9g}" if number else shown,
        "title": shown if len(shown) > _LONG else "",
        "bar": bar,
        "query": "",
    }
