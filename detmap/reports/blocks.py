"""Building blocks of sections shared by all reports: paragraphs, panels of several models, differences between
models.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from detmap.reports.page import render
from detmap.reports.tables import table
from detmap.results import cell, printable

if TYPE_CHECKING:
    from datetime import datetime

    from detmap.checks.report import Report
    from detmap.statistics import Comparison, Difference, QueryComparison

#: Maximum number of verdicts shown. A verdict is a sentence that says whether two models differ.
_VERDICTS = 6

#: Maximum number of verdicts at the top of the page; the other verdicts are in the section of differences.
_FIRST_VERDICTS = 3

#: Heading of the section of differences.
DIFFERENCES = "Are the models apart by more than chance?"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Lead:
    """An emphasised paragraph."""

    text: str
    kind: str = "lead"


@dataclass(frozen=True)
class Fragment:
    """Trusted HTML; its text was already escaped."""

    html: str
    kind: str = "fragment"


class Section(NamedTuple):
    """A section: its anchor, its title, a hint for readers, and a panel (name and blocks) for each model.

    `filters` are the choices of the gallery's filters, if the section has a gallery.
    """

    id: str
    title: str
    lead: str
    panels: list[tuple[str, list[Any]]]
    filters: Mapping[str, Any] | None = None


class Bar(NamedTuple):
    """A named bar of a card. `shown` is its value as text, and `share` its length from 0 to 100. `query` selects the
    linked pictures, such as ``class=3``.
    """

    name: str
    shown: str
    share: float
    query: str = ""


class Card(NamedTuple):
    """A card at the top of the page: title, sentence, a bar with two parts and a legend, and named bars.

    `filled` and `gain` are the lengths of the two parts, from 0 to 100; `legend` is empty if the card has no bar with
    two parts.
    """

    title: str
    text: str
    filled: float = 0.0
    gain: float = 0.0
    legend: tuple[tuple[str, str], ...] = ()
    bars: tuple[Bar, ...] = ()


def summary(
    name: str, metric: str, shown: str, ends: tuple[float, float], why: str, level: float, **more: Any
) -> dict[str, Any]:
    """Return a model's summary for the top of the page: a metric with its interval. `why` says why an interval is
    missing. `more` may have ``about`` (the scope of the interval), ``cards``, and ``mark`` (a warning about the value).
    """
    low, high = ends
    known = not math.isnan(low)
    return {
        "name": printable(name),
        "metric": printable(metric),
        "value": shown,
        "interval": f"{level * 100:g} % interval {low:.4f} to {high:.4f}" if known else why,
        "about": "",
        "mark": "",
        **more,
    }


def metric_row(
    name: str,
    of: str,
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    *,
    rises: bool = True,
    top: int = 1,
) -> dict[str, Any]:
    """Return a row of the page's first table: a metric, its scope, and its value and interval for each model. If there
    are several models, the best value is marked: the largest if `rises`, else the smallest. A full bar stands for the
    value `top`.
    """
    known = [value for value in values if not math.isnan(value)]
    best = (max if rises else min)(known) if len(values) > 1 and known else math.nan
    made = []
    for value, (low, high) in zip(values, ends, strict=True):
        drawn, between = 0 <= value <= top, not math.isnan(low)
        made.append(
            {
                "shown": cell(value),
                "best": value == best,
                "ends": f"{low:.4f} – {high:.4f}" if between else "",
                "share": round(100 * value / top, 2) if drawn else None,
                "range": {"low": round(100 * low / top, 2), "width": round(100 * (high - low) / top, 2)}
                if between
                else None,
            }
        )
    known_ends = any(one["ends"] for one in made)
    return {"name": printable(name), "of": printable(of), "values": made, "ends": known_ends, "top": top}


def side_by_side(models: Sequence[Sequence[Section]]) -> list[Section]:
    """Merge the sections of several models into sections with one panel per model; a single model's panel has no name."""
    if len(models) == 1:
        return [one._replace(panels=[("", blocks) for _, blocks in one.panels]) for one in models[0]]
    return [
        alike[0]._replace(panels=[panel for one in alike for panel in one.panels], filters=_all_filters(alike))
        for alike in zip(*models, strict=True)
    ]


def _all_filters(alike: Sequence[Section]) -> dict[str, Any] | None:
    """Return the union of the filters of all models; None if no model has filters."""
    made: dict[str, Any] = {}
    for one in alike:
        for name, choices in (one.filters or {}).items():
            made[name] = list(dict.fromkeys([*made.get(name, ()), *choices]))
    return made or None


def picked(rows: Sequence[Mapping[str, Any]], names: Sequence[str], **renamed: str) -> list[dict[str, Any]]:
    """Return `rows` with only the existing columns in `names`; `renamed` maps a column to its new name."""
    return [{renamed.get(name, name): row[name] for name in names if name in row} for row in rows]


def found_by_check(name: str, checked: Report | str) -> Section:
    """Return a section with the findings of a check of the files, or with the reason why the files were not checked."""
    blocks: list[Any] = [
        Text(printable(checked)) if isinstance(checked, str) else Fragment(checked.to_html(level=3, of=name))
    ]
    lead = "What to know before believing these numbers."
    return Section("check", "What a check of the files found", lead, [(printable(name), blocks)])


class Apart(NamedTuple):
    """The difference of two models, second minus first, with its interval and a corrected p-value. If one model lacks
    images or queries of the other, only the shared images or queries are compared. `common` is a phrase that describes
    the shared images or queries, and `means` are the means of the two models over them.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    common: str = ""
    means: tuple[float, float] = (math.nan, math.nan)


def differences(
    metric: str, level: float, alpha: float, too_few: str, found: Sequence[Apart], rows: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Return a sentence for each pair of models that says whether they differ, and a table of the pairs."""
    told: list[Any] = [Lead(_verdict(one, metric, level, alpha, too_few)) for one in found[:_VERDICTS]]
    return [*told, table(f"Difference of {metric}, {level * 100:g} % interval and test", rows)]


def mark_doubts(rows: Sequence[dict[str, Any]], disagree: Sequence[bool]) -> None:
    """Add a column that marks the rows with a disagreement of interval and test, if any."""
    if any(disagree):
        for row, one in zip(rows, disagree, strict=True):
            row["interval and p"] = "disagree (~)" if one else "agree"


def difference_row(
    one: Difference | QueryComparison, of: Mapping[str, Any], count: Mapping[str, int], p: float, corrected: float
) -> dict[str, Any]:
    """Return a table row for a difference. The columns `of` come after the models, and the columns `count` before the
    p-values.
    """
    names = {"from": one.first, "to": one.second}
    ends = {"difference": one.difference, "low": one.low, "high": one.high}
    return {**names, **of, **ends, **count, "p": p, "p corrected": corrected}


def difference_rows(comparison: Comparison, found: Sequence[Difference]) -> list[dict[str, Any]]:
    """Return a table row for each of the differences `found` in a comparison."""
    rows = [
        difference_row(
            one,
            {} if one.category is None else {"category": one.category},
            {comparison.unit: one.images},
            one.p,
            one.adjusted,
        )
        for one in found
    ]
    mark_doubts(rows, [comparison.disagrees(one) for one in found])
    return rows


def _verdict(one: Apart, metric: str, level: float, alpha: float, too_few: str) -> str:
    """Return a sentence on whether two models differ, with the better model named first."""
    if math.isnan(one.difference):
        return printable(
            f"{one.first} and {one.second} cannot be compared by {metric}, which is undefined for one of them or for both."
        )
    if one.difference == 0:
        return printable(f"{one.first} and {one.second} have the same {metric}{one.common}.")
    better, other, sign = (one.second, one.first, 1) if one.difference > 0 else (one.first, one.second, -1)
    low, high = sorted((sign * one.low, sign * one.high))
    both = f"{one.common} ({max(one.means):.4f} and {min(one.means):.4f})" if one.common else ""
    between = f", {level * 100:g} % interval {low:.4f} to {high:.4f}" if not math.isnan(low) else ""
    if math.isnan(one.p):
        told = f"there are too few {too_few} to tell whether this is chance"
    elif one.p <= alpha:
        told = f"this is more than chance explains, by a test at {alpha:.2g}"
    else:
        told = "this may well be chance"
    return printable(f"{better} has {sign * one.difference:.4f} more {metric} than {other}{both}{between}: {told}.")


def _verdicts(sections: Sequence[Section]) -> tuple[list[str], list[Section]]:
    """Return the verdicts for the top of the page, and the sections without these verdicts."""
    told, rest = list[str](), list[Section]()
    for one in sections:
        if one.id == "differences":
            ((name, blocks),) = one.panels
            leads = [block for block in blocks if isinstance(block, Lead)][:_FIRST_VERDICTS]
            told += [lead.text for lead in leads]
            one = one._replace(panels=[(name, [block for block in blocks if block not in leads])])
        rest.append(one)
    return told, rest


def page(
    names: Sequence[str],
    kind: str = "",
    *,
    summaries: Sequence[Mapping[str, Any]],
    metrics: Sequence[Mapping[str, Any]],
    brief: str,
    inputs: Sequence[Mapping[str, str]],
    facts: Sequence[tuple[str, str]],
    counts: Sequence[tuple[str, str]],
    counted: str,
    notices: Mapping[str, Sequence[str]],
    sections: Sequence[Section],
    made: datetime,
) -> str:
    """Return a report as one self-contained HTML page.

    `kind` is the kind of geometry, for the title; it is empty for rankings. `summaries` has a `summary` of each model,
    and `metrics` has rows of `metric_row`. `brief` is a line on the evaluation, and `facts` are a table on it.
    `notices` maps models to messages. Each of `inputs` has ``role``, ``name`` and ``sha256``. `counts` pairs each
    model's name with a text on the amount of its data. If there is only one model, `counted` is shown in place of its
    name. `sections` come last.
    """
    import detmap

    several = len(names) > 1
    verdicts, sections = _verdicts(sections)
    return render(
        "report.html",
        "the report",
        styles=["tables.css", "report.css"],
        scripts=["tables.js", "report.js"],
        title=printable(", ".join(names[:4]) + (" …" if len(names) > 4 else "") + (f" ({kind})" if kind else "")),
        several=several,
        summaries=summaries,
        metrics=metrics,
        brief=printable(f"{brief} · {made:%Y-%m-%d %H:%M} UTC with detmap {detmap.__version__}"),
        verdicts=verdicts,
        inputs=[{name: printable(str(value)) for name, value in one.items()} for one in inputs],
        facts=[*facts, ("Made", f"{made:%Y-%m-%d %H:%M} UTC with detmap {detmap.__version__}")],
        counts=counts,
        counted=counted,
        notices=[
            printable(f"{name}: {text}" if several else text) for name, found in notices.items() for text in found
        ],
        sections=sections,
    )
