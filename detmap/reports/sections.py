"""The sections of a report on detectors, each filled by a function of a diagnosis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.diagnostics import PARTS, Confusion, Finding
from detmap.diagnostics.tide import Tide
from detmap.errors import OptionError
from detmap.reports import galleries
from detmap.reports.blocks import (
    DIFFERENCES,
    Apart,
    Section,
    Text,
    difference_rows,
    differences,
    found_by_check,
    picked,
)
from detmap.reports.charts import Plot, bar, heat, heights, line
from detmap.reports.galleries import Errors, Gallery
from detmap.reports.tables import sentence, table
from detmap.results import cell, printable

if TYPE_CHECKING:
    from detmap.checks.report import Report
    from detmap.detection.result import DetectionResult
    from detmap.diagnostics import Diagnosis
    from detmap.reports.pictures import Pictures
    from detmap.statistics import Comparison

Options = Mapping[str, Mapping[str, Any]]

#: Maximum number of classes with a curve; the classes with the most objects are shown.
_CURVES = 100

#: Recalls at which precision is shown.
_RECALLS = np.linspace(0, 1, 51)

#: Maximum number of worst images to find, and to list. Maximum number of pictures of suspicious labels.
_MEASURED, _IMAGES, _SUSPECTS = 200, 50, 12

#: Maximum number of example images named for a cell of the confusion matrix.
_NAMED = 3


def part(diagnosis: Diagnosis, name: str, options: Options) -> Finding:
    """Return a part of a diagnosis, computed with the options for this part."""
    return diagnosis.part(name, **options.get(name, {}))


@dataclass
class Given:
    """The data that sections need besides the diagnosis. Bars are scaled to `most_gained`, the largest gain of any model."""

    options: Options
    result: DetectionResult | None = None
    pictures: Pictures | None = None
    most_gained: float = 1.0
    models: int = 1
    _gallery: Gallery | None = None

    def worst(self, diagnosis: Diagnosis) -> Finding:
        """Return the diagnosis's part on the worst images, by default with up to `_MEASURED` images."""
        return part(diagnosis, "images", {"images": {"most": _MEASURED, **self.options.get("images", {})}})

    def gallery(self, diagnosis: Diagnosis) -> Gallery:
        """Return the gallery of the model, which is computed once."""
        if self._gallery is None:
            tide, confusion = (part(diagnosis, name, self.options) for name in ("tide", "confusion"))
            assert isinstance(tide, Tide)
            assert isinstance(confusion, Confusion)
            rows, errors = self.worst(diagnosis).rows(), Errors(tide, confusion)
            self._gallery = galleries.images(diagnosis, errors, rows, self.pictures, self.models)
        return self._gallery


def most_gained(diagnosis: Diagnosis, options: Options) -> float:
    """Return the largest gain in AP from fixing one kind of error."""
    gains = (value for name, value in part(diagnosis, "tide", options).items() if name.startswith("dAP_"))
    return max((value for value in gains if value == value), default=0.0)


def of(name: str, diagnosis: Diagnosis, given: Given, checked: Report | None) -> list[Section]:
    """Return the sections of one model; a sentence replaces the content of a section that cannot be computed."""
    made = []
    for anchor, (title, lead, fill) in _sections().items():
        try:
            blocks = fill(diagnosis, given)
        except OptionError as error:
            if given.options.get(anchor):  # the caller requested the part by name
                raise
            blocks = [Text(printable(f"This cannot be told: {error}."))]
        filters = next((block.filters for block in blocks if isinstance(block, Gallery)), None)
        title = title.format(scene=diagnosis.scene)
        made.append(Section(anchor, title, lead, [(printable(name), blocks)], filters))
    if checked is not None:
        made.append(found_by_check(name, checked))
    return made


def compared(comparison: Comparison) -> Section:
    """Return a section on the paired differences of models."""
    rows = difference_rows(comparison, (*comparison.differences, *comparison.changed))
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
    """Return the blocks of a part that a plug-in defines: numbers, tables and notes."""
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
            f"What AP at {diagnosis.at} would gain without each kind of error",
            both,
            bars={"dAP": given.most_gained},
            note=found.notes[0],
            queries={"error": {row["error"]: f"error={row['error']}" for row in both if row["count"]}},
        ),
        table("All at once", special, bars={"dAP": given.most_gained}),
    ]
    if "categories" in found.tables and given.models > 1:
        named = f"AP at {diagnosis.at}"
        rows = [
            {named if name == "AP" else name: value for name, value in row.items()} for row in found.rows("categories")
        ]
        queries = of_classes(diagnosis)
        blocks.append(table("Errors by class, worst first", rows, bars={named: 1.0}, worst=named, queries=queries))
    return blocks


def of_classes(diagnosis: Diagnosis) -> dict[str, dict[str, str]]:
    """Map each class name to the filter, such as ``class=3``, that selects the pictures of the class."""
    return {"category": {name: f"class={k}" for k, name in enumerate(diagnosis.categories)}}


def _curves(diagnosis: Diagnosis, given: Given) -> list[Any]:
    ranking = diagnosis.ranking
    values = ranking.precision_at(_RECALLS)
    averaged = ~np.isnan(ranking.ap)  # also classes without objects, if their AP counts as 0
    with_objects = np.flatnonzero(averaged & (ranking.positives > 0))
    if not with_objects.size:
        return [Text("There are no objects to find.")]
    chosen = with_objects[np.argsort(-ranking.positives[with_objects], kind="stable")[:_CURVES]]
    names = diagnosis.categories
    lines = [line(f"{names[k]}: AP {ranking.ap[k]:.3f}", _RECALLS, values[k], "thin") for k in chosen.tolist()]
    lines.append(line(f"mean: AP {diagnosis.ap:.3f}", _RECALLS, np.nan_to_num(values[averaged]).mean(axis=0), "main"))
    variants = _by_threshold(diagnosis, given, lines, chosen.tolist(), averaged)
    title = "Precision and recall" if variants else f"Precision and recall at {diagnosis.at}"
    says = f"Precision and recall at {diagnosis.at}: the mean of {np.count_nonzero(averaged):,} classes, "
    says += f"AP {diagnosis.ap:.3f}."
    thin = f"the {_CURVES} classes with the most objects" if with_objects.size > _CURVES else "each class"
    curve = part(diagnosis, "operating_points", given.options).rows("curve")
    blocks: list[Any] = [Plot(title, "recall", "precision", f"{says} Thin: {thin}.", lines, choose="class", **variants)]
    scores = np.array([row["score"] for row in curve])
    if scores.size and scores.min() >= 0 and scores.max() <= 1:
        columns = {name: np.array([row[name] for row in curve]) for name in ("precision", "recall", "f1")}
        drawn = [line(name.replace("f1", "F1"), scores, column, name) for name, column in columns.items()]
        best = f"F1 is best at {diagnosis.score:.3f}."
        blocks.append(Plot("Precision, recall and F1 by least score", "least score", "", best, drawn))
    return blocks


def _by_threshold(
    diagnosis: Diagnosis, given: Given, lines: list[dict[str, str]], chosen: list[int], averaged: NDArray[np.bool_]
) -> dict[str, Any]:
    """Add the curves at all IoU thresholds to `lines`. Return the arguments of `Plot` that let readers select a
    threshold; empty if there is only one threshold.
    """
    result = given.result
    if result is None or len(result.protocol.iou_thresholds) < 2:
        return {}
    here = result.protocol.find_threshold(diagnosis.iou)
    if here is None or [name for _, name in result.categories] != [name for _, name in diagnosis.matches.categories]:
        return {}
    recalls = np.array(result.protocol.recall_thresholds)
    nearest = np.searchsorted(recalls, _RECALLS - 1e-9).clip(0, recalls.size - 1)
    names = [f"{round(iou, 9):g}" for iou in result.protocol.iou_thresholds]
    of = [*chosen, None]
    levels, labels = [[""] * len(of) for _ in range(2)]
    for iou in result.protocol.iou_thresholds:
        precision = np.nan_to_num(result.class_precision(iou))
        for i, k in enumerate(of):
            curve = precision[:, averaged].mean(axis=1) if k is None else precision[:, k]
            name = "mean" if k is None else diagnosis.categories[k]
            levels[i] += heights(curve[nearest])
            labels[i] += f"{printable(name)}: AP {curve.mean():.3f}\t"
    for one, level, label in zip(lines, levels, labels, strict=True):
        one |= {"levels": level, "labels": label[:-1]}
    return {"variants_are": "IoU", "variants": names, "variant": names[here]}


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
        table(f"Scores to cut at, all classes together, at {diagnosis.at}", points, note=found.notes[0]),
        table(
            f"The best score of each class at {diagnosis.at}",
            rows,
            bars={"best F1": 1.0},
            worst="best F1",
            queries=of_classes(diagnosis),
        ),
        table("What a cut costs or gains in AP", cuts.rows(), note=cuts.notes[0]),
    ]


def _confusion(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = part(diagnosis, "confusion", given.options)
    assert isinstance(found, Confusion)
    pictured = {cell for one in given.gallery(diagnosis).pictures for cell in one["cells"].split()}
    named: dict[str, list[str]] = {}
    for row, column, image in sorted(set(zip(*(one.tolist() for one in found.entries), strict=True))):
        names = named.setdefault(f"{row}-{column}", [])
        if row != column and len(names) < _NAMED:
            names.append(str(diagnosis.image_name(image)))
    examples = {cell: printable(f"for example on {', '.join(names)}") for cell, names in named.items() if names}
    return [
        heat(
            f"Which classes are taken for which, at {diagnosis.at}",
            found.categories,
            found.matrix,
            pictured=pictured,
            examples=examples,
        ),
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
    what = f"AP of slices is at {diagnosis.at} alone; AP_small and the like on the first screen are the protocol's"
    return [table(f"AP at {diagnosis.at} by slice", rows, bars={"AP": 1.0}, note=what), *noted]


def _suspects(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = part(diagnosis, "suspects", given.options)
    rows = picked(found.rows(), ("suspicion", "kind", "reason", "image"))
    if not rows:
        return [Text("No label is suspicious.")]
    counts = ", ".join(f"{name}: {int(value):,}" for name, value in found.items())
    blocks: list[Any] = [Text(printable(counts))]
    if given.pictures is not None:
        blocks.append(galleries.suspects(diagnosis, found.rows()[:_SUSPECTS], given.pictures))
    return [*blocks, table("Labels to look at", rows, bars={"suspicion": 1.0}, note=found.notes[0])]


def _images(diagnosis: Diagnosis, given: Given) -> list[Any]:
    found = given.worst(diagnosis)
    rows = found.rows()
    if not rows:
        return [Text(f"No {diagnosis.scene} costs any AP.")]
    shown = picked(rows[:_IMAGES], ("image", "dAP", "objects", "missed", "false positives"), image=diagnosis.scene)
    listed = table(
        f"{diagnosis.scene.capitalize()}s that cost most", shown, bars={"dAP": None}, note="; ".join(found.notes)
    )
    return [given.gallery(diagnosis), listed]


_Fill = Callable[["Diagnosis", Given], list[Any]]

#: The title of each section, its hint for readers, and the function that fills it.
_SECTIONS: dict[str, tuple[str, str, _Fill]] = {
    "errors": ("Errors", "What kinds of errors there are, and what each of them costs.", _errors),
    "images": ("Worst {scene}s", "What is found, wrong and missed, where it costs most.", _images),
    "curves": ("Curves", "How precision falls as more is found.", _curves),
    "classes": ("Scores to deploy at", "Where to cut detections off.", _classes),
    "confusion": (
        "Confusion",
        "A row is what an object is, a column what it was found as. A cell leads to pictures.",
        _confusion,
    ),
    "calibration": ("Calibration", "Whether a score of 0.8 means that eight of ten are right.", _calibration),
    "slices": ("Sizes and slices", "Where it goes wrong: objects outside of a slice are ignored there.", _slices),
    "suspects": ("Suspicious labels", "Labels that may well be wrong: look at them first.", _suspects),
}

#: Parts of a diagnosis that `_SECTIONS` shows.
_USED = frozenset(
    ["tide", "confusion", "calibration", "lrp", "operating_points", "slices", "images", "suspects", "cuts"]
)


def _sections() -> dict[str, tuple[str, str, _Fill]]:
    """Return all sections. Sections that plug-ins add come last."""
    own = [name for name in PARTS if name not in _USED]
    return _SECTIONS | {
        f"part-{name}": (printable(PARTS[name].says[:1].upper() + PARTS[name].says[1:]), "", partial(_plain, name))
        for name in own
    }
