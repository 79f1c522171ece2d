"""The sections of a report, each a function of a diagnosis; those of several models stand side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from detmap.diagnostics import PARTS, Confusion, Finding
from detmap.errors import OptionError
from detmap.reports.blocks import DIFFERENCES, Apart, Section, Text, differences, found_by_check, mark_doubts, picked
from detmap.reports.charts import Plot, bar, heat, line
from detmap.reports.tables import sentence, table
from detmap.results import cell, printable

if TYPE_CHECKING:
    from detmap.checks.report import Report
    from detmap.diagnostics import Diagnosis
    from detmap.reports.pictures import Pictures
    from detmap.statistics import Comparison

Options = Mapping[str, Mapping[str, Any]]

#: So many classes have a curve of their own: those with the most objects.
_CURVES = 100

#: Precision is shown at these recalls.
_RECALLS = np.linspace(0, 1, 51)

#: So many of the worst images are shown, and so many suspicious labels.
_IMAGES, _SUSPECTS = 24, 12


def part(diagnosis: Diagnosis, name: str, options: Options) -> Finding:
    """Return a part of a diagnosis, with its options."""
    return diagnosis.part(name, **options.get(name, {}))


class Given(NamedTuple):
    """What sections are made with: options of parts, where the images are, and the largest gain in AP of all models."""

    options: Options
    pictures: Pictures | None = None
    most_gained: float = 1.0


def most_gained(diagnosis: Diagnosis, options: Options) -> float:
    """Return what AP gains most by if errors are mended, so that bars of several models are alike."""
    gains = (value for name, value in part(diagnosis, "tide", options).items() if name.startswith("dAP_"))
    return max((value for value in gains if value == value), default=0.0)


def of(name: str, diagnosis: Diagnosis, given: Given, checked: Report | None) -> list[Section]:
    """Return the sections of one model. What cannot be told of it is a sentence."""
    made = []
    for anchor, (title, lead, fill) in _sections().items():
        try:
            blocks = fill(diagnosis, given)
        except OptionError as error:
            if given.options.get(anchor):  # what was asked for by name
                raise
            blocks = [Text(printable(f"This cannot be told: {error}."))]
        made.append(Section(anchor, title, lead, [(printable(name), blocks)]))
    if checked is not None:
        made.append(found_by_check(name, checked))
    return made


def compared(comparison: Comparison) -> Section:
    """Return the paired differences of models."""
    rows = [
        {
            "from": one.first,
            "to": one.second,
            **({"category": one.category} if one.category is not None else {}),
            "difference": one.difference,
            "low": one.low,
            "high": one.high,
            comparison.unit: one.images,
            "p": one.p,
            "p corrected": one.adjusted,
        }
        for one in (*comparison.differences, *comparison.changed)
    ]
    mark_doubts(rows, [comparison.disagrees(one) for one in (*comparison.differences, *comparison.changed)])
    pairs = len(comparison.differences)
    metric, level = comparison.metric, comparison.level
    family = comparison.families[0]
    could_tell = comparison.could_tell(family)
    found = [
        Apart(one.first, one.second, one.difference, one.low, one.high, one.adjusted if could_tell else math.nan)
        for one in comparison.differences
    ]
    too_few = comparison.unit if could_tell or not family.size else "permutations"
    blocks = differences(metric, level, comparison.alpha, too_few, found, rows[:pairs])
    if rows[pairs:]:
        blocks.append(table("Classes that changed significantly", rows[pairs:]))
    else:
        told = comparison.could_tell(comparison.families[1])
        blocks.append(Text("No class changed significantly." if told else "No test of a class could be significant."))
    blocks += [Text(sentence(said)) for said in comparison.sentences()]
    return Section("differences", "Differences", DIFFERENCES, [("", blocks)])


def _plain(own: str, diagnosis: Diagnosis, given: Given) -> list[Any]:
    """Return a part that nothing here knows: its numbers, tables and notes."""
    found = part(diagnosis, own, given.options)
    numbers = ", ".join(f"{name} {cell(value)}" for name, value in list(found.items())[:12])
    blocks: list[Any] = [Text(printable(numbers))] if numbers else []
    blocks += [table(title, found.rows(title)) for title in found.tables]
    return [*blocks, *(Text(sentence(note)) for note in found.notes)]


def _errors(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = part(diagnosis, "tide", given.options)
    both = picked(found.rows(), ("error", "dAP", "count", "progressive", "meaning"))
    special = picked(found.rows("special errors"), ("error", "dAP", "meaning"))
    blocks: list[Any] = [
        table(
            "What AP would gain without each kind of error", both, bars={"dAP": given.most_gained}, note=found.notes[0]
        ),
        table("All at once", special, bars={"dAP": given.most_gained}),
    ]
    if "categories" in found.tables:
        rows = found.rows("categories")
        blocks.append(table("Errors by class", rows, bars={"AP": 1.0}))
    return blocks


def _curves(diagnosis: Diagnosis, given: Given) -> list[Any]:
    ranking = diagnosis.ranking
    values = ranking.precision_at(_RECALLS)
    averaged = ~np.isnan(ranking.ap)  # under some protocols also classes without objects, whose precision is 0
    with_objects = np.flatnonzero(averaged & (ranking.positives > 0))
    if not with_objects.size:
        return [Text("There are no objects to find.")]
    chosen = with_objects[np.argsort(-ranking.positives[with_objects], kind="stable")[:_CURVES]]
    names = diagnosis.categories
    lines = [line(f"{names[k]}: AP {ranking.ap[k]:.3f}", _RECALLS, values[k], "thin") for k in chosen.tolist()]
    lines.append(line(f"mean: AP {diagnosis.ap:.3f}", _RECALLS, np.nan_to_num(values[averaged]).mean(axis=0), "main"))
    title = f"Precision and recall at {diagnosis.at}"
    says = f"{title}: the mean of {np.count_nonzero(averaged):,} classes, AP {diagnosis.ap:.3f}."
    thin = f"the {_CURVES} classes with the most objects" if with_objects.size > _CURVES else "each class"
    curve = part(diagnosis, "operating_points", given.options).rows("curve")
    blocks: list[Any] = [Plot(title, "recall", "precision", f"{says} Thin: {thin}.", lines, choose="class")]
    scores = np.array([row["score"] for row in curve])
    if scores.size and scores.min() >= 0 and scores.max() <= 1:
        columns = {name: np.array([row[name] for row in curve]) for name in ("precision", "recall", "f1")}
        drawn = [line(name.replace("f1", "F1"), scores, column, name) for name, column in columns.items()]
        best = f"F1 is best at {diagnosis.score:.3f}."
        blocks.append(Plot("Precision, recall and F1 by least score", "least score", "", best, drawn))
    return blocks


def _classes(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = part(diagnosis, "operating_points", given.options)
    scores = {row["category"]: row["threshold"] for row in part(diagnosis, "lrp", given.options).rows()}
    rows = [
        {**row, "score for LRP": scores[of["category"]]}
        for row, of in zip(
            picked(
                found.rows("categories"), ("category", "objects", "f1", "precision", "recall", "score"), f1="best F1"
            ),
            found.rows("categories"),
            strict=True,
        )
    ]
    points = picked(found.rows(), [name for name in found.rows()[0] if name != "f1 low"], f1="F1")
    cuts = part(diagnosis, "cuts", given.options)
    return [
        table("Scores to cut at, all classes together", points, note=found.notes[0]),
        table("The best score of each class", rows, bars={"best F1": 1.0}),
        table("What a cut costs or gains in AP", cuts.rows(), note=cuts.notes[0]),
    ]


def _confusion(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = part(diagnosis, "confusion", given.options)
    assert isinstance(found, Confusion)
    return [
        heat("Which classes are taken for which", found.categories, found.matrix),
        table("Most confused", found.rows(), bars={"share": None}, note=found.notes[0]),
    ]


def _calibration(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = part(diagnosis, "calibration", given.options)
    rows = [row for row in found.rows() if row["detections"]]
    bars = [
        bar(
            f"scores {row['from']:.2f} to {row['to']:.2f}: precision {row['precision']:.3f} of {row['detections']:,}",
            row["from"],
            row["to"],
            row["precision"],
        )
        for row in rows
    ]
    ends = np.array([0.0, 1.0])
    says = f"Precision of the detections by score; calibrated scores end on the diagonal. ECE {cell(found['ECE'])}."
    ideal = [line("as good as the score says", ends, ends, "ideal")]
    numbers = [{"measure": name, "value": value} for name, value in found.items()]
    return [
        Plot("Reliability", "score", "precision", says, ideal, bars),
        table("Calibration errors, 0 is best", numbers, bars={"value": None}, note=found.notes[0]),
        table("Calibration by class", found.rows("categories")),
    ]


def _slices(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = part(diagnosis, "slices", given.options)
    columns = ("by", "slice", "objects", "AP", "difference", "recall", "false positives", "missed")
    rows = picked(found.rows(), (*columns, "AP low", "AP high", "low", "high", "p", "p (Holm)"))
    noted = [Text(sentence(note)) for note in found.notes]
    return [table("AP by slice", rows, bars={"AP": 1.0}), *noted]


def _suspects(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = part(diagnosis, "suspects", given.options)
    rows = picked(found.rows(), ("suspicion", "kind", "reason", "image"))
    if not rows:
        return [Text("No label is suspicious.")]
    counts = ", ".join(f"{name}: {int(value):,}" for name, value in found.items())
    blocks: list[Any] = [Text(printable(counts))]
    if given.pictures is not None:
        blocks.append(given.pictures.of_suspects(diagnosis, found.rows()[:_SUSPECTS]))
    return [*blocks, table("Labels to look at", rows, bars={"suspicion": 1.0}, note=found.notes[0])]


def _images(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = part(diagnosis, "images", given.options)
    rows = found.rows()
    if not rows:
        return [Text("No image costs any AP.")]
    blocks: list[Any] = []
    if given.pictures is not None:
        blocks.append(given.pictures.of(diagnosis, rows[:_IMAGES]))
    shown = picked(rows, ("image", "dAP", "objects", "missed", "false positives"))
    return [*blocks, table("Images that cost most", shown, bars={"dAP": None}, note="; ".join(found.notes))]


_Fill = Callable[["Diagnosis", Given], list[Any]]

#: Title, what to look for, and what fills it.
_SECTIONS: dict[str, tuple[str, str, _Fill]] = {
    "errors": ("Errors", "What kinds of errors there are, and what each of them costs.", _errors),
    "curves": ("Curves", "How precision falls as more is found.", _curves),
    "classes": ("Scores to deploy at", "Where to cut detections off.", _classes),
    "confusion": ("Confusion", "A row is what an object is, a column what it was found as.", _confusion),
    "calibration": ("Calibration", "Whether a score of 0.8 means that eight of ten are right.", _calibration),
    "slices": ("Sizes and slices", "Where it goes wrong: objects outside of a slice are ignored there.", _slices),
    "images": ("Worst images", "The images whose errors cost most.", _images),
    "suspects": ("Suspicious labels", "Labels that may well be wrong: look at them first.", _suspects),
}

#: The parts that these sections show.
_USED = frozenset(
    ["tide", "confusion", "calibration", "lrp", "operating_points", "slices", "images", "suspects", "cuts"]
)


def _sections() -> dict[str, tuple[str, str, _Fill]]:
    """Return all sections, those of plug-ins' parts behind the others."""
    own = [name for name in PARTS if name not in _USED]
    return _SECTIONS | {
        f"part-{name}": (printable(PARTS[name].says[:1].upper() + PARTS[name].says[1:]), "", partial(_plain, name))
        for name in own
    }
