"""What sections of a page are made of, whatever they tell of: paragraphs, panels of several models, how models differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from detmap.reports.page import render
from detmap.reports.tables import table
from detmap.results import printable

if TYPE_CHECKING:
    from datetime import datetime

    from detmap.checks.report import Report

#: So many pairs of models are compared in words.
_VERDICTS = 6

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
    """A section: its anchor, title, what to look for in it, and of each model its name and its blocks."""

    id: str
    title: str
    lead: str
    panels: list[tuple[str, list[Any]]]


class Card(NamedTuple):
    """A part of the first screen: a title, a sentence, and a bar with two parts, which a legend names.

    `filled` and `gain` are the lengths of the parts, from 0 to 100; a card without a bar has no `legend`.
    """

    title: str
    text: str
    filled: float = 0.0
    gain: float = 0.0
    legend: tuple[tuple[str, str], ...] = ()


def summary(
    name: str, metric: str, shown: str, value: float, ends: tuple[float, float], why: str, level: float, **more: Any
) -> dict[str, Any]:
    """Return what the first screen says of a model: a metric from 0 to 1 with its interval, or `why` it has none.

    `more` are ``others``, pairs of further metrics and their values as text, ``about``, what the interval is of, and
    ``cards``; and ``mark``, a warning about the number.
    """
    low, high = ends
    known = not math.isnan(low)
    return {
        "name": printable(name),
        "metric": printable(metric),
        "value": shown,
        "interval": f"{level * 100:g} % interval {low:.4f} to {high:.4f}" if known else why,
        "range": {"low": round(low * 100, 2), "width": round((high - low) * 100, 2)} if known else None,
        "share": 0.0 if math.isnan(value) else round(min(max(value, 0.0), 1.0) * 100, 2),
        "mark": "",
        **more,
    }


def side_by_side(models: Sequence[Sequence[Section]]) -> list[Section]:
    """Return the sections of several models with one panel for each; a single model needs no name there."""
    if len(models) == 1:
        return [one._replace(panels=[("", blocks) for _, blocks in one.panels]) for one in models[0]]
    return [
        alike[0]._replace(panels=[panel for one in alike for panel in one.panels])
        for alike in zip(*models, strict=True)
    ]


def picked(rows: Sequence[Mapping[str, Any]], names: Sequence[str], **renamed: str) -> list[dict[str, Any]]:
    """Return some columns of rows, those that are there, some of them under other names."""
    return [{renamed.get(name, name): row[name] for name in names if name in row} for row in rows]


def found_by_check(name: str, checked: Report | str) -> Section:
    """Return what a check of the files of a model found, or why there was none."""
    blocks: list[Any] = [Text(printable(checked)) if isinstance(checked, str) else Fragment(checked.to_html(level=3))]
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


def page(
    names: Sequence[str],
    kind: str = "",
    *,
    summaries: Sequence[Mapping[str, Any]],
    inputs: Sequence[Mapping[str, str]],
    facts: Sequence[tuple[str, str]],
    counts: Sequence[tuple[str, str]],
    counted: str,
    notices: Mapping[str, Sequence[str]],
    sections: Sequence[Section],
    made: datetime,
) -> str:
    """Return a report as one self-contained HTML page.

    The kind of shape is part of the title; it is empty for rankings. `summaries` has a `summary` of each model,
    `notices` what was unusual by model; of each input there are ``role``, ``name`` and ``sha256``. `facts` say what was
    evaluated, `counts` what there is of each, and `counted` what they count, for the page of a single model. `sections`
    follow the first screen.
    """
    import detmap

    several = len(names) > 1
    return render(
        "report.html",
        "the report",
        styles=["tables.css", "report.css"],
        scripts=["tables.js", "report.js"],
        title=printable(", ".join(names[:4]) + (" …" if len(names) > 4 else "") + (f" ({kind})" if kind else "")),
        several=several,
        summaries=summaries,
        inputs=[{name: printable(str(value)) for name, value in one.items()} for one in inputs],
        facts=[*facts, ("Made", f"{made:%Y-%m-%d %H:%M} UTC with detmap {detmap.__version__}")],
        counts=counts,
        counted=counted,
        notices=[
            printable(f"{name}: {text}" if several else text) for name, found in notices.items() for text in found
        ],
        sections=sections,
    )
