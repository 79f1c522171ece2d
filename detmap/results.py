"""Named metrics: a mapping, and its conversion to text, CSV, Markdown, JSON and data frames."""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from detmap.data.display import cell as cell
from detmap.data.display import fragment as fragment
from detmap.data.display import is_words as is_words
from detmap.data.display import printable as printable
from detmap.data.notices import describe
from detmap.errors import MissingDependencyError, OptionError, UnknownMetricError, shorten
from detmap.system.whole_files import write

#: Types whose values JSON can represent. `_PLAIN` adds float, although JSON cannot represent NaN and infinity.
_SURE = frozenset((int, str, bool, type(None)))
_PLAIN = frozenset((*_SURE, float))


class Intervals(Protocol):
    """Interface of a result's confidence intervals; see `detmap.statistics.Intervals`."""

    def __getitem__(self, name: str) -> tuple[float, float]:
        """Return the ends of the interval of a metric."""

    def of_metrics(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Return, for each metric, the columns that tables show beside its value."""

    def of_categories(self) -> list[dict[str, Any]]:
        """Return, for each category, the columns that tables show beside its AP."""

    def sentences(self, *, categories: bool = False, more: str = ...) -> list[str]:
        """Return sentences on the intervals."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""


class Result(Mapping[str, float]):
    """A read-only mapping from metric name to value; an undefined value is NaN.

    Subclasses pass the metrics, and define `rows`: one record per category or query.
    """

    _intervals: Intervals | None = None

    def __init__(self, metrics: Mapping[str, float], notices: Mapping[str, int] | None = None) -> None:
        self._metrics = dict(metrics)
        self._notices = {code: count for code, count in (notices or {}).items() if count}

    @property
    def notices(self) -> Mapping[str, int]:
        """The number of occurrences of each kind of unusual input, by code; see `detmap.data.notices.NOTICES`."""
        return self._notices

    def described_notices(self) -> list[str]:
        """Return a sentence for each notice, about images, videos or samples, depending on what was scored."""
        return describe(self.notices)

    def add_notices(self, more: Mapping[str, int]) -> None:
        """Add notices found after the metrics were computed; counts of 0 are left out."""
        self._notices.update({code: count for code, count in more.items() if count})

    def __getitem__(self, name: str) -> float:
        known = self._metrics.get(name)
        return self._metrics[self.name_of(name)] if known is None else known

    def name_of(self, name: str) -> str:
        """Return the canonical name of a metric; `name` may be another spelling, such as ``mAP@0.5`` for ``AP50``.

        Raises
        ------
        UnknownMetricError
            If there is no such metric; the error lists the metrics, and is a KeyError too.
        """
        found = name if name in self._metrics else self._meant(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownMetricError(name, self._metrics)
        return found

    def _meant(self, name: str) -> str | None:
        """Return the canonical name of a metric for another spelling; None if unknown."""
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    __eq__ = object.__eq__  # results compare by identity, because NaN would make equal results unequal
    __hash__ = object.__hash__

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat record per category or query."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dicts, lists, strings and numbers (NaN where undefined)."""
        raise NotImplementedError

    def to_flat(self, prefix: str = "") -> dict[str, float]:
        """Return the defined metrics by name, as experiment trackers take them.

        Parameters
        ----------
        prefix : str
            Prefix of each name: ``"val/"``.
        """
        return {f"{prefix}{name}": value for name, value in self.items() if not math.isnan(value)}

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON; undefined values become ``null``."""
        return json.dumps(without_nan(self.to_dict()), indent=indent, allow_nan=False)

    def to_frame(self) -> Any:
        """Return `rows` as a pandas data frame (extra ``frames``)."""
        return to_frame(self.rows())

    def to_markdown(self) -> str:
        """Return the table of metrics as Markdown."""
        return to_markdown(self._tables()[""])

    def to_latex(self) -> str:
        """Return the table of metrics as a LaTeX ``tabular`` with the rules of booktabs."""
        return to_latex(self._tables()[""])

    def to_csv(self) -> str:
        """Return `rows` as CSV, with exact floats; undefined values are empty."""
        return to_csv(self.rows())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file, atomically.

        Parameters
        ----------
        path : path
            The suffix selects the content: ``.json`` (`to_json`), ``.csv`` (`to_csv`), ``.md`` (`to_markdown`),
            ``.tex`` (`to_latex`), or ``.txt`` (the text of ``print``).

        Raises
        ------
        OptionError
            For another suffix, or if the file cannot be written.
        """
        writers: dict[str, Callable[[], str]] = {
            ".json": self.to_json,
            ".csv": self.to_csv,
            ".md": self.to_markdown,
            ".tex": self.to_latex,
            ".txt": self.__str__,
        }
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        if suffix not in writers:
            raise OptionError(
                f"cannot save as {shorten(os.fspath(path))}: name a file that ends in {', '.join(writers)}"
            )
        write(os.fspath(path), (writers[suffix]().rstrip("\n") + "\n").encode())

    def __str__(self) -> str:
        """Return the title, the table of metrics, and the notices as text."""
        notes = [*(f"note: {one}" for one in self.described_notices()), *self.about_intervals()]
        parts = [repr(self), to_text(self._tables()[""]), "\n".join(notes)]
        return "\n\n".join(filter(None, parts))

    def about_intervals(self, *, categories: bool = False, more: str = "to_dict() says why") -> list[str]:
        """Return sentences on the intervals of the metrics, if any; see `detmap.statistics.Intervals`."""
        return [] if self._intervals is None else self._intervals.sentences(categories=categories, more=more)

    def metric_rows(self) -> list[dict[str, Any]]:
        """Return a row per metric: its name, its value, and its interval, if any."""
        rows: list[dict[str, Any]] = [{"metric": name, "value": value} for name, value in self.items()]
        return rows if self._intervals is None else widened(rows, self._intervals.of_metrics(self), "value")

    def _tables(self) -> dict[str, Sequence[Mapping[str, Any]]]:
        """Return the tables that a notebook shows, by title."""
        return {"": self.metric_rows()}

    def _repr_html_(self) -> str:
        return fragment(repr(self), self._tables(), [*self.described_notices(), *self.about_intervals()])


def widened(rows: Sequence[Mapping[str, Any]], more: Sequence[Mapping[str, Any]], after: str) -> list[dict[str, Any]]:
    """Return `rows` with the columns of `more` inserted after the column `after`."""
    wide: list[dict[str, Any]] = []
    for row, columns in zip(rows, more, strict=True):
        wide.append({})
        for name, value in row.items():
            wide[-1][name] = value
            if name == after:
                wide[-1].update(columns)
    return wide


def in_brief(notices: Mapping[str, int]) -> str:
    """Return notices as a table cell with codes and counts. For codes with names, as in ``code:name``, the count is the
    number of names.
    """
    counts: dict[str, int] = {}
    for key, count in notices.items():
        code, _, name = key.partition(":")
        counts[code] = counts.get(code, 0) + (1 if name else count)
    return ", ".join(f"{code} {count}" for code, count in counts.items())


def sentences(notices: Mapping[str, Mapping[str, int]], iou_type: str | None = None) -> list[dict[str, str]]:
    """Return rows of ``model`` and ``notice`` for several models or runs. A notice that all models share has a single
    row.
    """
    said = {name: describe(found, iou_type) for name, found in notices.items()}
    every = dict.fromkeys(text for found in said.values() for text in found)
    shared = {text for text in every if len(said) > 1 and all(text in found for found in said.values())}
    rows = [{"model": "all", "notice": text} for text in every if text in shared]
    return rows + [{"model": name, "notice": t} for name, found in said.items() for t in found if t not in shared]


def without_nan(value: Any) -> Any:
    """Return `value` with plain Python numbers and None for every NaN or infinity."""
    kind = type(value)  # the usual types first, because testing for a mapping is slow
    if kind in _PLAIN:
        return None if kind is float and not math.isfinite(value) else value
    if kind is list and _SURE.issuperset(map(type, value)):  # the usual case of a list without floats
        return value.copy()
    if kind is dict or isinstance(value, Mapping):
        return {
            str(key): item
            if (of := type(item)) in _SURE or (of is float and math.isfinite(item))
            else without_nan(item)
            for key, item in value.items()
        }
    if isinstance(value, np.ndarray):
        return without_nan(value.tolist())
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def p_value(p: float) -> float | str:
    """Return a p-value for a table; a value that four decimals would round to 0 becomes "<0.0001"."""
    return "<0.0001" if p < 0.0001 else p


def signed(value: float) -> str:
    """Return a difference with its sign and four decimals; a value that would round to 0 has one significant digit."""
    return f"{value:+.0e}" if 0 < abs(value) < 5e-5 else f"{value + 0.0:+.4f}"


#: Maximum number of characters of a cell in an aligned column.
_WIDEST = 500


def shown(text: str) -> str:
    """Return text for a cell of an aligned table: on one line, and cut if very long."""
    text = printable(text[: _WIDEST + 1])
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def to_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as aligned plain text: words to the left, numbers to the right."""
    if not rows:
        return ""
    header = list(rows[0])
    lines = [[shown(name) for name in header], *([shown(cell(row[name])) for name in header] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    words = [is_words(rows, name) for name in header]
    return "\n".join(
        "  ".join(
            text.ljust(w) if left else text.rjust(w) for text, w, left in zip(line, widths, words, strict=True)
        ).rstrip()
        for line in lines
    )


#: Markdown's characters for tags, links, images, emphasis, code, mathematics, mentions and web addresses.
_MARKUP = r"(?i)[\\|\[\]*`~$]|(?<!\w)_|_(?!\w)|[<>&@]|:(?=//)|(?<=www)\."


#: Characters that end a cell of a Markdown table, or begin an escape in a cell.
_CELL = r"[\\|]"


def markdown_text(text: str) -> str:
    """Return text escaped for Markdown, on one line, because the text may come from a hostile file."""

    def escaped(match: re.Match[str]) -> str:
        one = match.group()
        return f"&#{ord(one)};" if one in "<>&@:." else "\\" + one

    return re.sub(_MARKUP, escaped, printable(text))


def to_markdown(rows: Sequence[Mapping[str, Any]], *, markup: bool = False) -> str:
    """Return rows as a Markdown table. Cells are escaped unless `markup` is true, which is for cells in Markdown."""
    if not rows:
        return ""
    header = list(rows[0])

    def text(one: str) -> str:
        return re.sub(_CELL, r"\\\g<0>", one).replace("<", "&lt;") if markup else markdown_text(one)

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(map(text, cells)) + " |"

    rule = "|" + "|".join(" --- " if is_words(rows, name) else " ---: " for name in header) + "|"
    return "\n".join([line(header), rule, *(line([cell(row[name]) for name in header]) for row in rows)])


#: Characters special to LaTeX, with their escapes.
_LATEX = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def to_latex(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a LaTeX ``tabular``. The document must load the package booktabs. If the rows have non-ASCII letters,
    the document must also support these letters.
    """
    if not rows:
        return ""
    header = list(rows[0])

    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX.get(c, c) for c in printable(one)) for one in cells) + r" \\"

    columns = "".join("l" if is_words(rows, name) else "r" for name in header)
    body = [line([cell(row[name]) for name in header]) for row in rows]
    begin = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", line(header), r"\midrule"]
    return "\n".join([*begin, *body, r"\bottomrule", r"\end{tabular}"])


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, with exact floats; undefined values are empty."""
    lines = [[_csv_cell(name) for name in rows[0]]] if rows else []
    lines += [[_csv_cell(value) for value in row.values()] for row in rows]
    return "".join(map(_csv_line, lines))


def _csv_line(cells: Sequence[Any]) -> str:
    """Return a line of CSV. The terminator is CR LF at first, because otherwise `csv` does not quote cells with CR."""
    import csv

    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue().removesuffix("\r\n") + "\n"


#: Characters that terminals interpret: control characters, line ends, and changes of writing direction.
_COMMANDS = "[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"

#: Beginnings of text that a spreadsheet may run as a formula; the last four are full-width characters.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    if isinstance(value, str):
        quote = "'" if value[:1] in _FORMULA else ""  # a spreadsheet may run such text as a formula
        return quote + re.sub(_COMMANDS, lambda match: repr(match[0])[1:-1], value)
    return value


def to_frame(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as a pandas data frame (extra ``frames``)."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError("pandas", "frames", "to_frame()") from None
    return pd.DataFrame(rows)
