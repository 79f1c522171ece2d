"""What sections of a page are made of, whatever they tell of: paragraphs, panels of several models, how models differ."""

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

#: Maximum number of pairs of models that are compared in words.
_VERDICTS = 6

#: Maximum number of verdicts on the first screen; the section of differences has all of them.
_FIRST_VERDICTS = 3

#: What a section of differences answers.
DIFFERENCES = "Are the models apart by more than chance?"


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    kind: str = "text"


@dataclass(frozen=True)
class Lead:
    """A paragraph that says what matters most."""

    text: str
    kind: str = "lead"


@dataclass(frozen=True)
class Fragment:
    """Markup that is made elsewhere, from names that were escaped there."""

    html: str
    kind: str = "fragment"


class Section(NamedTuple):
    """A section: its anchor, title, what to look for in it, and of each model its name and its blocks.

    `filters` are the choices of the filters of a gallery in it.
    """

    id: str
    title: str
    lead: str
    panels: list[tuple[str, list[Any]]]
    filters: Mapping[str, Any] | None = None


class Bar(NamedTuple):
    """A named bar of a card: its value as text, its length from 0 to 100, and the pictures that it leads to."""

    name: str
    shown: str
    share: float
    query: str = ""


class Card(NamedTuple):
    """A part of the first screen: a title, a sentence, a bar with two parts, which a legend names, and named bars.

    `filled` and `gain` are the lengths of the parts, from 0 to 100; a card without such a bar has no `legend`.
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
    """Return what the first screen says of a model: a metric from 0 to 1 with its interval, or `why` it has none.

    `more` are ``about``, what the interval is of, ``cards``, and ``mark``, a warning about the number.
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
    name: str, of: str, values: Sequence[float], ends: Sequence[tuple[float, float]], *, rises: bool = True
) -> dict[str, Any]:
    """Return a row of the first screen's table: a metric, what it is of, and its value and interval of each model.

    The largest value of several is marked if the metric `rises` with quality.
    """
    known = [value for value in values if not math.isnan(value)]
    best = max(known) if rises and len(values) > 1 and known else math.nan
    made = []
    for value, (low, high) in zip(values, ends, strict=True):
        drawn, between = 0 <= value <= 1, not math.isnan(low)
        made.append(
            {
                "shown": cell(value),
                "best": value == best,
                "ends": f"{low:.4f} – {high:.4f}" if between else "",
                "share": round(100 * value, 2) if drawn else None,
                "range": {"low": round(100 * low, 2), "width": round(100 * (high - low), 2)} if between else None,
            }
        )
    known_ends = any(one["ends"] for one in made)
    return {"name": printable(name), "of": printable(of), "values": made, "ends": known_ends}


def side_by_side(models: Sequence[Sequence[Section]]) -> list[Section]:
    """Return the sections of several models with one panel for each; a single model needs no name there."""
    if len(models) == 1:
        return [one._replace(panels=[("", blocks) for _, blocks in one.panels]) for one in models[0]]
    return [
        alike[0]._replace(panels=[panel for one in alike for panel in one.panels], filters=_all_filters(alike))
        for alike in zip(*models, strict=True)
    ]


def _all_filters(alike: Sequence[Section]) -> dict[str, Any] | None:
    """Return the choices of the filters of all models; None where no model has any."""
    made: dict[str, Any] = {}
    for one in alike:
        for name, choices in (one.filters or {}).items():
            made[name] = list(dict.fromkeys([*made.get(name, ()), *choices]))
    return made or None


def picked(rows: Sequence[Mapping[str, Any]], names: Sequence[str], **renamed: str) -> list[dict[str, Any]]:
    """Return some columns of rows, those that are there, some of them under other names."""
    return [{renamed.get(name, name): row[name] for name in names if name in row} for row in rows]


def found_by_check(name: str, checked: Report | str) -> Section:
    """Return what a check of the files of a model found, or why there was none."""
    blocks: list[Any] = [
        Text(printable(checked)) if isinstance(checked, str) else Fragment(checked.to_html(level=3, of=name))
    ]
    lead = "What to know before believing these numbers."
    return Section("check", "What a check of the files found", lead, [(printable(name), blocks)])


class Apart(NamedTuple):
    """By how much the second of two models exceeds the first, with its interval and the corrected p-value of a test.

    Where either lacks images or queries of the other, `common` says of which they are, and the ``means`` there of both.
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
    """Return in words which models differ, and a table of the pairs."""
    told: list[Any] = [Lead(_verdict(one, metric, level, alpha, too_few)) for one in found[:_VERDICTS]]
    return [*told, table(f"Difference of {metric}, {level * 100:g} % interval and test", rows)]


def mark_doubts(rows: Sequence[dict[str, Any]], disagree: Sequence[bool]) -> None:
    """Add a column that marks differences of which only one of interval and test finds that they are not 0, if any is so."""
    if any(disagree):
        for row, one in zip(rows, disagree, strict=True):
            row["interval and p"] = "disagree (~)" if one else "agree"


def _verdict(one: Apart, metric: str, level: float, alpha: float, too_few: str) -> str:
    """Return in a sentence whether two models differ, the better one first."""
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
    """Take who is better, and whether that could be chance, out of the sections for the first screen."""
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

    The kind of shape is part of the title; it is empty for rankings. `summaries` has a `summary` of each model, `metrics`
    the rows of `metric_row`, `brief` says in a line what was evaluated, `notices` what was unusual by model; of each input
    there are ``role``, ``name`` and ``sha256``. `facts` say what was evaluated, `counts` what there is of each, and
    `counted` what they count, for the page of a single model. `sections` follow the first screen.
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
