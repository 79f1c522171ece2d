"""The leaderboard as an HTML page and as Markdown; text of its rows is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from detmap.reports.charts import Plot, line
from detmap.reports.page import render
from detmap.reports.tables import Table, table
from detmap.results import cell, is_words, markdown_text, printable, to_markdown, without_nan
from detmap.shapes.kinds import BOXES, KINDS, Kind

#: Maximum number of models with a curve on the page. Maximum number of AP values of models and classes on the page.
CURVES, _VALUES = 200, 150_000

#: Number of curves initially highlighted.
_CHOSEN = 5

#: Number of points of a curve.
_POINTS = 51

#: Maximum number of groups of models shown as bars; if there are more groups, only their letters are shown.
_BARS = 16

#: Columns hidden by default, besides the columns of estimated bias.
_ASIDE = ("notices",)

#: Default fields of a cell.
_PLAIN: dict[str, Any] = {"best": False, "head": False, "interval": "", "slots": [], "bar": None, "link": ""}


@dataclass(frozen=True)
class Board:
    """The content of the leaderboard."""

    #: The column that rows are sorted by.
    rank_by: str
    #: A row per model, best first, all with the same columns; undefined numbers are NaN.
    rows: Sequence[Mapping[str, Any]] = ()
    #: Columns whose best value is marked: the smallest value for errors, else the largest.
    metrics: Sequence[str] = ()
    #: The ends of each metric's confidence interval, for each row.
    intervals: Sequence[Mapping[str, Sequence[float | None]]] = ()
    #: The level of the intervals.
    level: float = 0.95
    #: ``model`` and ``error`` of files that could not be scored.
    errors: Sequence[Mapping[str, Any]] = ()
    #: ``model`` and ``notice`` of each notice.
    notices: Sequence[Mapping[str, Any]] = ()
    #: Names of the rows and of the columns of `values`. The models are in the order of `rows`.
    models: Sequence[str] = ()
    categories: Sequence[str] = ()
    #: ``values[i][k]`` is the AP (or the metric `of_category`) of model *i* on category *k*.
    values: Sequence[Sequence[float | None]] = ()
    of_category: str = "AP"
    #: Number of objects of each category; empty if hidden.
    objects: Sequence[int] = ()
    #: The curve of each model: ``iou``, ``recall``, and ``precision`` averaged over classes; None if undefined.
    curves: Sequence[Mapping[str, Any] | None] = ()
    #: The geometry that was compared, such as "bbox"; None if unknown.
    iou_type: str | None = None
    #: Facts about the evaluation.
    facts: Sequence[tuple[str, str]] = ()
    #: ``model``, ``file`` and ``content`` (hash of the file) of each model, where known.
    files: Sequence[Mapping[str, Any]] = ()
    #: Sentences on tests and intervals.
    sentences: Sequence[str] = ()
    #: A row for each pair of neighbouring models whose order is reversed under other rules; None if no other rules were
    #: tried.
    doubts: Sequence[Mapping[str, Any]] | None = None
    #: What follows "Leaderboard by" in the page's title; by default `rank_by`.
    title: str = ""
    #: Relative links to the pages of models, by model.
    links: Mapping[str, str] = field(default_factory=dict)
    #: Sentences below the title: the rules, and the date.
    brief: Sequence[str] = ()
    _ends: list[tuple[float, float] | None] = field(init=False, default_factory=list)

    @property
    def kind(self) -> Kind:
        """The kind of geometry that was compared; boxes if unknown."""
        return KINDS[self.iou_type if self.iou_type is not None and self.iou_type in KINDS else BOXES]

    def __post_init__(self) -> None:
        given = list(self.intervals) + [{}] * (len(self.rows) - len(self.intervals))
        self._ends.extend(_known(one.get(self.rank_by)) for one in given)


def _known(ends: Sequence[float | None] | None) -> tuple[float, float] | None:
    """Return the ends of an interval; None if undefined."""
    if ends is None or any(end is None or math.isnan(end) for end in ends):
        return None
    low, high = ends
    return float(low or 0.0), float(high or 0.0)


def markdown(
    rows: Sequence[Mapping[str, Any]],
    errors: Sequence[Mapping[str, Any]],
    title: str,
    notices: Sequence[Mapping[str, Any]] = (),
    doubts: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the leaderboard as Markdown. The tables list the models, pairs of models whose order is reversed under
    other rules, notices, and files that were not scored.
    """
    sections = (("Orders that do not survive", doubts), ("Notices", notices), ("Not scored", errors))
    text = "".join(f"\n## {title}\n\n{to_markdown(found)}\n" for title, found in sections if found)
    return f"# Leaderboard by {markdown_text(title)}\n\n{to_markdown(rows)}\n{text}"


def html(board: Board) -> str:
    """Return the leaderboard as one self-contained HTML page (extra ``report``). Raises `MissingDependencyError`
    without jinja2.

    Readers can sort and select columns, filter rows, and save the table as CSV or JSON. They can highlight curves of
    models, and compare AP per category between any two models.
    """
    columns, rows = _models(board)
    data, left_out = _categories(board)
    return render(
        "leaderboard.html",
        "leaderboard.html",
        styles=["tables.css", "report.css", "leaderboard.css"],
        scripts=["tables.js", "leaderboard.js"],
        title=printable(board.title or board.rank_by),
        lead=_lead(board),
        brief=[printable(one) for one in board.brief],
        columns=columns,
        rows=rows,
        grouped="group" in (board.rows[0] if board.rows else ()),
        sentences=[printable(one) for one in board.sentences],
        facts=[(printable(name), printable(said)) for name, said in board.facts],
        files=_files(board),
        curves=_curves(board),
        notices=[[printable(str(row[name])) for name in ("model", "notice")] for row in board.notices],
        errors=[[printable(str(row[name])) for name in ("model", "error")] for row in board.errors],
        doubts=_doubts(board),
        data=data,
        left_out=left_out,
    )


# ------------------------------------------------------------------------------------------------------- table of models


def _models(board: Board) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """Return the columns, and the rows as lists of cells. The column after the metric that ranks models draws the
    metric's interval as a bar.
    """
    rows, ends = board.rows, board._ends
    header = list(rows[0]) if rows else []
    words = {name for name in header if name != "rank" and is_words(rows, name)}
    errors = {name for name in header if _error(name).removeprefix("m") in board.kind.errors}
    best = {
        name: (min if name in errors else max)(
            (row[name] for row in rows if not math.isnan(row[name])), default=math.nan
        )
        for name in header
        if name in board.metrics
    }
    letters = _letters([str(row.get("group", "")) for row in rows])
    axis = _axis([end for pair in ends if pair for end in pair])
    columns: list[dict[str, Any]] = []
    for name in header:
        style = " ".join(style for style, use in (("text", name in words), ("group", name == "group")) if use)
        columns.append(
            {
                "name": printable(name),
                "style": style,
                "aside": name in _ASIDE or name.endswith(" bias") or _error(name) in board.kind.errors,
            }
        )
        if name == board.rank_by and axis is not None:
            low, high = axis
            columns.append({"name": f"{low:g} – {high:g}", "style": "chart", "aside": False})
    made = []
    for at, row in enumerate(rows):
        cells = []
        for name in header:
            one = _cell(row[name], name in words, name == board.rank_by)
            one["best"] = name in best and row[name] == best[name]
            one["head"] = name == "model"
            one["link"] = board.links.get(str(row[name]), "") if name == "model" else ""
            if name == "survives" and row[name].startswith("no"):
                one["style"] += " doubt"
            given = _known(board.intervals[at].get(name)) if at < len(board.intervals) else None
            one["interval"] = f"{given[0]:.4f} – {given[1]:.4f}" if given else ""
            if name == "group" and letters:
                one["slots"] = [letter if letter in row["group"] else "" for letter in letters]
            cells.append(one)
            if name == board.rank_by and axis is not None:
                cells.append(_bar(row[name], ends[at], axis))
        made.append(cells)
    return columns, made


def _error(name: str) -> str:
    """Return the short name of an error, such as "mATE", from the name of a metric."""
    return name.rpartition(":")[2].partition("_")[0]


def _cell(value: Any, text: bool, ranked: bool) -> dict[str, Any]:
    styles = [style for style, use in (("text", text), ("ranked", ranked)) if use]
    exact = without_nan(value)
    shown = printable(cell(value))
    return {
        "shown": shown,
        "value": "" if exact is None else printable(str(exact)),
        "title": shown if text and len(shown) > 24 else "",
        "style": " ".join(styles),
        **_PLAIN,
    }


def _letters(groups: Sequence[str]) -> list[str]:
    """Return the sorted letters of the groups, which are drawn as bars; an empty list if there are more than `_BARS`."""
    every = sorted({letter for one in groups for letter in one})
    return every if len(every) <= _BARS else []


def _axis(ends: Sequence[float]) -> tuple[float, float] | None:
    """Return the range of the axis of interval bars: round numbers that enclose all `ends`."""
    if not ends:
        return None
    low, high = min(ends), max(ends)
    step = 10 ** math.floor(math.log10(max(high - low, 1e-3)))
    step = step / 2 if (high - low) / step < 2.5 else step
    return max(round(math.floor(low / step) * step, 9), 0.0), min(round(math.ceil(high / step) * step, 9), 1.0)


def _bar(value: float, ends: tuple[float, float] | None, axis: tuple[float, float]) -> dict[str, Any]:
    """Return a cell that draws a value as a dot and its interval as a line; positions are in percent of the axis."""

    def place(number: float) -> float:
        return round(100 * min(max((number - axis[0]) / ((axis[1] - axis[0]) or 1), 0.0), 1.0), 1)

    exact = "" if math.isnan(value) else repr(float(value))
    made = {"shown": "", "value": exact, "title": "", "style": "chart", **_PLAIN}
    if ends is None:
        return made
    low, high = map(place, ends)
    return {**made, "bar": {"low": low, "width": round(high - low, 1), "at": place(value)}}


# ------------------------------------------------------------------------------------------------------------- the rest


def _lead(board: Board) -> list[str]:
    """Return sentences on the best model, and on whether its lead is significant and holds under other rules."""
    scored = [row for row in board.rows if not math.isnan(row.get(board.rank_by, math.nan))]
    if not scored:
        return ["No model has a value."]
    best, value = scored[0], scored[0][board.rank_by]
    first = [str(row["model"]) for row in scored if row[board.rank_by] == value]
    ends = board._ends[0]
    between = f" ({100 * board.level:g} % interval {ends[0]:.4f} to {ends[1]:.4f})" if ends else ""
    many = len(first) > 1
    names = f"{len(first)} models share" if many else f"{first[0]} has"
    told = [f"{names} the highest {board.rank_by} of {len(scored):,}: {value:.4f}{between}."]
    letters = set(str(best.get("group", "")))
    if letters and not many:
        alike = [str(row["model"]) for row in scored[1:] if letters & set(str(row.get("group", "")))]
        if alike:
            more = f" and {len(alike) - 3:,} more" if len(alike) > 3 else ""
            told.append(f"It cannot be told apart from {', '.join(alike[:3])}{more} on these images.")
        elif len(scored) > 1:
            told.append("It is above every other model by more than chance.")
    if board.doubts is not None:
        pairs = len(scored) - 1 - sum(row.get("survives") == "equal" for row in scored)
        if board.doubts:
            some = len(board.doubts)
            verb = "does" if some == 1 else "do"
            told.append(f"Of {pairs:,} orders of neighbours {some:,} {verb} not survive other rules.")
        elif pairs:
            told.append("Every order of neighbours survives all other rules that were tried.")
    return [printable(one) for one in told]


def _curves(board: Board) -> Plot | None:
    """Return a chart of the models' mean curves; the best models are highlighted until readers choose others."""
    drawn = [(name, curve) for name, curve in zip(board.models, board.curves, strict=False) if curve][:CURVES]
    if not drawn:
        return None
    own = {str(row["model"]): row[board.rank_by] for row in board.rows}
    lines = []
    for name, curve in drawn:
        recall = np.array(curve["recall"], np.float64)
        precision = np.array([np.nan if one is None else one for one in curve["precision"]], np.float64)
        some = np.unique(np.linspace(0, recall.size - 1, _POINTS).round().astype(np.int64))
        label = f"{name}: {board.rank_by} {cell(own.get(name, math.nan))}"
        lines.append(line(label, recall[some], precision[some], "thin"))
    at = board.kind.at(drawn[0][1]["iou"])
    says = f"Each line is the mean of a model's classes. {min(_CHOSEN, len(lines))} of them are in front at first."
    if len(drawn) < len(board.models):
        says += f" The {len(drawn):,} best models with a curve are here."
    return Plot(f"Precision and recall at {at}", "recall", "precision", says, lines, choose="model")


def compared(categories: int) -> int:
    """Return the maximum number of models with values per category on the page."""
    return max(_VALUES // max(categories, 1), 2)


def _categories(board: Board) -> tuple[dict[str, Any], int]:
    """Return the data for comparing models by category, and the number of models omitted to limit the page's size."""
    most = compared(len(board.categories))
    values = [[None if one is None else round(one, 6) for one in without_nan(row)] for row in board.values[:most]]
    data = {
        "models": [printable(name) for name in board.models[:most]],
        "categories": [printable(name) for name in board.categories],
        "objects": list(board.objects),
        "values": values,
        "metric": board.of_category,
        "chosen": _CHOSEN,
    }
    return data, max(len(board.models) - most, 0)


def _files(board: Board) -> Table | None:
    return table("Files", board.files, most=2000) if board.files else None


def _doubts(board: Board) -> Table | None:
    if board.doubts is None:
        return None
    note = "Neighbours were scored again under other rules: an order survives where it holds under all of them"
    return table("Orders that do not survive", board.doubts, note=note)
