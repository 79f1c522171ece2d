"""Formatting of values in tables, and of ground truth and detections in notebooks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from detmap.data.notices import describe
from detmap.shapes.kinds import BOX_FIELD

if TYPE_CHECKING:
    from detmap.data.tables import Detections, GroundTruth


def printable(text: str) -> str:
    """Return `text` on one line, with control characters escaped, because the text may come from a hostile file."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def cell(value: Any, digits: int = 4) -> str:
    """Return one value formatted for a table."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.{digits}f}"
    return str(value)


def is_words(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Return whether a column holds words, which are left-aligned, rather than numbers."""
    return any(isinstance(row[name], str) for row in rows)


#: Maximum number of rows of a table, and of characters of a text, in a notebook.
_ROWS, _CHARACTERS = 40, 300


def fragment(title: str, tables: Mapping[str, Sequence[Mapping[str, Any]]], notes: Sequence[str] = ()) -> str:
    """Return HTML for a notebook: a title, the first rows of each table under its caption, and notes. All text is escaped,
    and there are no scripts.
    """
    import html

    def safe(text: str) -> str:
        text = printable(text)
        return html.escape(text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…", quote=True)

    def row(tag: str, cells: Sequence[str], words: Sequence[bool]) -> str:
        sides = ("left" if left else "right" for left in words)
        shown = (f'<{tag} style="text-align:{s}">{safe(c)}</{tag}>' for c, s in zip(cells, sides, strict=True))
        return f"<tr>{''.join(shown)}</tr>"

    out = [f'<div class="detmap"><p><strong>{safe(title)}</strong></p>']
    for caption, rows in tables.items():
        if not rows:
            continue
        header = list(rows[0])
        words = [is_words(rows, name) for name in header]
        body = [row("td", [cell(one[name]) for name in header], words) for one in rows[:_ROWS]]
        named = f"<caption>{safe(caption)}</caption>" if caption else ""
        out.append(f"<table>{named}<thead>{row('th', header, words)}</thead><tbody>{''.join(body)}</tbody></table>")
        if len(rows) > _ROWS:
            out.append(f"<p>{len(rows) - _ROWS:,} more rows</p>")
    return "".join([*out, *(f"<p>{safe(one)}</p>" for one in notes), "</div>"])


#: Maximum number of records of ground truth or detections shown in a notebook.
_RECORDS = 10


def record(table: GroundTruth | Detections, row: int) -> dict[str, Any]:
    """Return a row of ground truth or detections as plain values, under the names of `to_arrow`."""
    image, category = table.images.codes[row], table.categories.codes[row]
    names = getattr(table.categories, "names", None)
    found = {
        "image_id": table.images.ids[image].item(),
        "category_id": table.categories.ids[category].item(),
        **({} if names is None else {"category": names[category]}),
        BOX_FIELD if table.box_sizes else "bbox_xyxy": table.boxes[row].tolist(),
    }
    columns = (
        {"score": "scores"}
        if hasattr(table, "scores")
        else {"area": "areas", "crowd": "crowd", "difficult": "difficult"}
    )
    return found | {name: getattr(table, column)[row].item() for name, column in columns.items()}


def table_fragment(table: GroundTruth | Detections) -> str:
    """Return ground truth or detections as markup for a notebook: counts, the first rows, and notices."""
    corners = ("x", "y", "width", "height") if table.box_sizes else ("x1", "y1", "x2", "y2")
    rows = []
    for at in range(min(len(table), _RECORDS)):
        row: dict[str, Any] = {}
        for name, value in record(table, at).items():
            row |= {name: value} if name not in (BOX_FIELD, "bbox_xyxy") else dict(zip(corners, value, strict=True))
        rows.append(row)
    caption = f"the first {_RECORDS} of {len(table):,}" if len(table) > _RECORDS else ""
    return fragment(repr(table)[1:-1], {caption: rows}, describe(table.notices))
