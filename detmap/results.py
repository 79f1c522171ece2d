"""Named metrics: one mapping that becomes text, CSV, Markdown, JSON and data frames."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from detmap.errors import MissingDependencyError
from detmap.notices import describe


class Result(Mapping[str, float]):
    """A read-only mapping from metric name to value; an undefined value is NaN.

    Subclasses pass the metrics, and define `rows`: one record per category or query.
    """

    def __init__(self, metrics: Mapping[str, float], notices: Mapping[str, int] | None = None) -> None:
        self._metrics = dict(metrics)
        self._notices = {code: count for code, count in (notices or {}).items() if count}

    @property
    def notices(self) -> Mapping[str, int]:
        """What was unusual in the input, counted; `detmap.notices.NOTICES` says it in words."""
        return self._notices

    def add_notices(self, more: Mapping[str, int]) -> None:
        """Add what an entry point found unusual after the metrics were made; counts of 0 are left out."""
        self._notices.update({code: count for code, count in more.items() if count})

    def __getitem__(self, name: str) -> float:
        return self._metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    __eq__ = object.__eq__  # two results are compared by what is asked of them: NaN is no equal of NaN
    __hash__ = object.__hash__

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat record per category or query."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dicts, lists, strings and numbers (NaN where undefined)."""
        raise NotImplementedError

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON; undefined values become ``null``."""
        return json.dumps(without_nan(self.to_dict()), indent=indent, allow_nan=False)

    def to_frame(self) -> Any:
        """Return `rows` as a pandas data frame (extra ``frames``)."""
        return to_frame(self.rows())


def in_brief(notices: Mapping[str, int]) -> str:
    """Return notices as a cell of a table: codes and counts; for a code with names (``code:name``) their number."""
    counts: dict[str, int] = {}
    for key, count in notices.items():
        code, _, name = key.partition(":")
        counts[code] = counts.get(code, 0) + (1 if name else count)
    return ", ".join(f"{code} {count}" for code, count in counts.items())


def sentences(notices: Mapping[str, Mapping[str, int]]) -> list[dict[str, str]]:
    """Return a row per notice of several models or runs: ``model`` and ``notice``; one that all share stands there once."""
    said = {name: describe(found) for name, found in notices.items()}
    every = dict.fromkeys(text for found in said.values() for text in found)
    shared = {text for text in every if len(said) > 1 and all(text in found for found in said.values())}
    rows = [{"model": "all", "notice": text} for text in every if text in shared]
    return rows + [{"model": name, "notice": t} for name, found in said.items() for t in found if t not in shared]


def without_nan(value: Any) -> Any:
    """Return `value` with plain Python numbers and None for every NaN or infinity."""
    if isinstance(value, Mapping):
        return {str(key): without_nan(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return without_nan(value.tolist())
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def cell(value: Any, digits: int = 4) -> str:
    """Return one value as a person reads it in a table."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.{digits}f}"
    return str(value)


def printable(text: str) -> str:
    """Return `text` on one line, with control characters escaped: it may come from a hostile file."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def is_words(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Return whether a column holds words, which stand to the left, rather than numbers."""
    return any(isinstance(row[name], str) for row in rows)


def to_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as aligned plain text: words to the left, numbers to the right."""
    if not rows:
        return ""
    header = list(rows[0])
    lines = [header, *([printable(cell(row[name])) for name in header] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    words = [is_words(rows, name) for name in header]
    return "\n".join(
        "  ".join(
            text.ljust(w) if left else text.rjust(w) for text, w, left in zip(line, widths, words, strict=True)
        ).rstrip()
        for line in lines
    )


def to_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    if not rows:
        return ""
    header = list(rows[0])

    def line(cells: Sequence[str]) -> str:
        safe = (printable(c).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;") for c in cells)
        return "| " + " | ".join(safe) + " |"

    rule = "|" + "|".join(" --- " if is_words(rows, name) else " ---: " for name in header) + "|"
    return "\n".join([line(header), rule, *(line([cell(row[name]) for name in header]) for row in rows)])


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, floats with all their digits; undefined is empty."""
    out = io.StringIO()
    if rows:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow([_csv_cell(value) for value in row.values()])
    return out.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value  # a spreadsheet would run it as a formula
    return value


def to_frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a pandas data frame (extra ``frames``)."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError("pandas", "frames", "to_frame()") from None
    return pd.DataFrame(rows)
