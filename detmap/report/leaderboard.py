"""The leaderboard as a page and as Markdown, made of rows; nothing in a row becomes markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from detmap.report.page import render
from detmap.results import cell, is_words, markdown_text, printable, to_markdown, without_nan


def markdown(
    rows: Sequence[Mapping[str, Any]],
    errors: Sequence[Mapping[str, Any]],
    rank_by: str,
    notices: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the leaderboard as Markdown: tables of the models, of notices, and of files that were not scored."""
    sections = (("Notices", notices), ("Not scored", errors))
    text = "".join(f"\n## {title}\n\n{to_markdown(found)}\n" for title, found in sections if found)
    return f"# Leaderboard by {markdown_text(rank_by)}\n\n{to_markdown(rows)}\n{text}"


def html(
    rows: Sequence[Mapping[str, Any]],
    errors: Sequence[Mapping[str, Any]],
    rank_by: str,
    models: Sequence[str],
    categories: Sequence[str],
    values: Sequence[Sequence[float | None]],
    notices: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the leaderboard as one self-contained HTML page (extra ``report``).

    Its columns sort, and the AP per category of any two models can be set beside each other.

    Parameters
    ----------
    rows : sequence of mapping
        A row per model, best first, all with the same columns; undefined numbers are NaN.
    errors : sequence of mapping
        ``model`` and ``error`` of those that could not be scored.
    rank_by : str
        The column that the rows are sorted by.
    models, categories : sequence of str
        The rows and columns of `values`.
    values : sequence of sequence of float or None
        ``values[i][k]`` is the AP of model *i* on category *k*.
    notices : sequence of mapping
        ``model`` and ``notice``: what was unusual.

    Raises
    ------
    MissingDependencyError
        Without jinja2.
    """
    header = list(rows[0]) if rows else []
    text = {name for name in header if name != "rank" and is_words(rows, name)}
    return render(
        "leaderboard.html",
        "leaderboard.html",
        styles=["tables.css"],
        scripts=["tables.js", "leaderboard.js"],
        rank_by=rank_by,
        columns=[{"name": printable(name), "text": name in text} for name in header],
        rows=[[_cell(name, row[name], rank_by, name in text) for name in header] for row in rows],
        notices=[[printable(str(row[name])) for name in ("model", "notice")] for row in notices],
        errors=[[printable(str(row[name])) for name in ("model", "error")] for row in errors],
        grouped="group" in header,
        data={
            "models": [printable(name) for name in models],
            "categories": [printable(name) for name in categories],
            "values": without_nan(values),
        },
    )


def _cell(name: str, value: Any, rank_by: str, text: bool) -> dict[str, str]:
    styles = [style for style, use in (("text", text), ("ranked", name == rank_by)) if use]
    exact = without_nan(value)
    shown = printable(cell(value))
    return {
        "shown": shown,
        "value": "" if exact is None else printable(str(exact)),
        "title": shown if text and len(shown) > 40 else "",
        "style": " ".join(styles),
    }
