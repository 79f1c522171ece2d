"""The report on one detector or several: evaluation, metrics, errors, and examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from detmap.data.notices import describe
from detmap.detection.metric_names import OF_CLASS, metric_table, scope
from detmap.detection.true_positives import names_of
from detmap.diagnostics._errors import ERRORS
from detmap.errors import many
from detmap.reports import rules, sections
from detmap.reports.blocks import Bar, Card, Section, metric_row, page, side_by_side, summary
from detmap.reports.galleries import IN_SHORT
from detmap.reports.tables import Table, table
from detmap.results import cell, printable
from detmap.shapes import find
from detmap.statistics.clusters import independent

if TYPE_CHECKING:
    from detmap.checks.report import Report
    from detmap.detection.result import DetectionResult
    from detmap.diagnostics import Diagnosis
    from detmap.explanations.presets import Under
    from detmap.explanations.survival import Survival
    from detmap.reports.pictures import Pictures
    from detmap.statistics import Bootstrap, Comparison


#: Maximum gain in AP that is considered a rounding error.
_NOTHING = 1e-9

#: Maximum number of metrics, and of worst classes, at the top of the page.
_METRICS, _WORST = 24, 6


_OF_CLASSES = "Which classes to work on. A name leads to pictures."


@dataclass
class Model:
    """A detector of a report.

    Attributes
    ----------
    name : str
        Name on the page.
    diagnosis : Diagnosis
        Diagnosis of the detector.
    result : DetectionResult
        Metrics of the detector under the protocol of the diagnosis.
    bootstrap : Bootstrap, optional
        Intervals of the metrics.
    checked : Report, optional
        Report of a check of the files.
    options : mapping of str to mapping
        Options for parts of the diagnosis, by name of the part.
    under : sequence of Under
        AP under other named protocols, as `detmap.explanations.under_presets` returns it.
    """

    name: str
    diagnosis: Diagnosis
    result: DetectionResult
    bootstrap: Bootstrap | None = None
    checked: Report | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    under: Sequence[Under] = ()


def html(
    models: Sequence[Model],
    inputs: Sequence[Mapping[str, str]],
    made: datetime,
    *,
    comparison: Comparison | None = None,
    survives: Survival | str | None = None,
    pictures: Pictures | None = None,
    level: float = 0.95,
) -> str:
    """Return the report as one self-contained HTML page (extra ``report``).

    Parameters
    ----------
    models : sequence of Model
        One or more models, evaluated on the same ground truth under the same protocol.
    inputs : sequence of mapping
        ``role``, ``name`` and ``sha256`` of each file.
    made : datetime
        Time of the report.
    comparison : Comparison, optional
        Comparison of several models.
    survives : Survival or str, optional
        Whether the order of the models holds under other rules; a str says why this was not tested.
    pictures : Pictures, optional
        The images; without them only outlines are drawn.
    level : float
        The level of the intervals.

    Raises
    ------
    MissingDependencyError
        Without jinja2.
    """
    first = models[0].diagnosis
    metric = next(iter(models[0].result))
    most = max(sections.most_gained(model.diagnosis, model.options) for model in models)
    parts = [
        sections.of(
            model.name,
            model.diagnosis,
            sections.Given(model.options, model.result, pictures, most, len(models)),
            model.checked,
        )
        for model in models
    ]
    if any(model.under for model in models):
        for model, own in zip(models, parts, strict=True):
            protocol, value = model.result.protocol.name, float(model.result[metric])
            at = next((i for i, one in enumerate(own) if one.id == "check"), len(own))
            own.insert(at, rules.under_others(model.name, protocol, value, model.under))
    merged = side_by_side(parts)
    if survives is not None:
        merged.insert(0, rules.survival(survives))
    if comparison is not None:
        merged.insert(0, sections.compared(comparison))
    by_class = _classes(models)
    at = next((i for i, one in enumerate(merged) if one.id == "errors"), -1) + 1
    merged.insert(at, Section("ap", "AP by class", _OF_CLASSES, [("", [by_class])]))
    return page(
        [model.name for model in models],
        first.protocol.iou_type,
        summaries=[_summary(model, metric, level) for model in models],
        metrics=_metrics(models, level),
        brief=_brief(first),
        inputs=inputs,
        facts=_facts(first),
        counts=[(printable(model.name), f"{len(model.diagnosis.detections):,} detections") for model in models],
        counted="Detections",
        notices={
            model.name: describe({**model.diagnosis.matches.notices, **model.result.notices}, first.protocol.iou_type)
            for model in models
        },
        sections=merged,
        made=made,
    )


def _brief(diagnosis: Diagnosis) -> str:
    counted = int(diagnosis.positives.sum())
    return (
        f"{diagnosis.protocol.title} · {many(diagnosis.ground_truth.images.ids.size, diagnosis.scene)} · "
        f"{many(len(diagnosis.categories), 'class')} · {many(counted, 'object')} to find"
    )


def _metrics(models: Sequence[Model], level: float) -> list[dict[str, Any]]:
    """Return the metrics of all models for the top of the page, without the metrics of single classes."""
    first = models[0].result
    rows = []
    for name, row in metric_table(first.protocol, first.categories):
        if isinstance(row[-1], int):
            continue
        ends = []
        for model in models:
            column = None if model.bootstrap is None else model.bootstrap.columns.get(name)
            found = (math.nan, math.nan)
            if model.bootstrap is not None and column is not None:
                low, high = model.bootstrap.interval(level)[column].tolist()
                found = low, high
            ends.append(found)
        rises = row[0] not in find(first.protocol.iou_type).errors
        values = [float(model.result[name]) for model in models]
        top = 100 if row[0] in OF_CLASS else 1
        rows.append(metric_row(name, scope(row, first.protocol), values, ends, rises=rises, top=top))
    return rows[:_METRICS]


def _facts(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    truth = diagnosis.ground_truth
    crowd = int(truth.crowd.sum())
    counted = int(diagnosis.positives.sum())
    aside = len(truth) - counted
    objects = f"{len(truth):,}" + (f", {aside:,} of which are not to be found" if aside else "")
    objects += f" ({crowd:,} crowds)" if crowd else ""
    return [
        ("Protocol", printable(diagnosis.protocol.describe())),
        ("Errors are told at", f"{diagnosis.at}"),
        (f"{diagnosis.scene.capitalize()}s", f"{truth.images.ids.size:,}"),
        ("Classes", f"{len(diagnosis.categories):,}"),
        ("Objects", objects),
    ]


def _summary(model: Model, metric: str, level: float) -> dict[str, Any]:
    """Return the numbers and sentences on a model for the top of the page."""
    value = model.result[metric]
    low = high = math.nan
    why, about = "no interval was asked for", ""
    if model.bootstrap is not None:
        column = model.bootstrap.columns[metric]
        units = model.bootstrap.unit
        low, high = (float(end) for end in model.bootstrap.interval(level)[column])
        why = "no interval: " + (model.bootstrap.reasons()[column] or f"too few {units}")
        about = (
            f"Interval of the {metric} expected on data sets of this size, drawn like this one; "
            f"{int(model.bootstrap.support[column]):,} {units} with something to find; estimated bias "
            f"{float(model.bootstrap.bias()[column]):.4f}, not taken off; {independent(units)}."
        )
    cards = [_costs(model.diagnosis), _threshold(model), *_worst_classes(model)]
    about = "" if math.isnan(low) else printable(about)
    return summary(model.name, metric, cell(value), (low, high), why, level, about=about, cards=cards)


def _costs(diagnosis: Diagnosis) -> Card:
    """Return a card on the errors that cost most AP."""
    tide = diagnosis.part("tide")
    rows = [row for row in tide.rows() if row["dAP"] > _NOTHING]
    ap, title = tide["AP"], "What costs most"
    if not rows or math.isnan(ap):
        said = "Nothing can be said of errors: there are no objects to find."
        if not math.isnan(ap):
            said = "No error costs any AP." if ap > 1 - _NOTHING else "No kind of error costs any AP by itself."
        return Card(title, said)
    worst = max(rows, key=lambda row: float(row["dAP"]))
    what = worst["meaning"] if worst["meaning"].startswith("an object") else f"a detection that {worst['meaning']}"
    said = (
        f"{worst['error']} costs most: {what}. Without these {worst['count']:,} errors AP at {diagnosis.at} would "
        f"be {ap + worst['dAP']:.4f} instead of {ap:.4f}."
    )
    legend = (("fill", "AP now"), ("gain", f"without {worst['error']}"))
    largest = float(worst["dAP"])
    bars = tuple(
        Bar(
            f"{row['error']}, {IN_SHORT[row['error']]}: {row['count']:,}",
            f"+{row['dAP']:.4f}",
            round(100 * max(row["dAP"], 0.0) / largest, 1),
            f"error={row['error']}" if row["count"] else "",
        )
        for row in sorted(tide.rows(), key=lambda row: -float(row["dAP"]))
    )
    return Card(title, said, round(ap * 100, 2), round(min(worst["dAP"], 1 - ap) * 100, 2), legend, bars)


def _worst_classes(model: Model) -> list[Card]:
    """Return a card of the classes with the lowest AP, if there are more classes than a card can list."""
    found = enumerate(zip(model.diagnosis.categories, model.result.rows(), strict=True))
    known = [(float(row["AP"]), k, name) for k, (name, row) in found if not math.isnan(row["AP"])]
    if len(known) <= _WORST:
        return []
    objects = model.diagnosis.positives.tolist()
    known.sort(key=lambda one: (one[0], -objects[one[1]]))  # if AP is equal, the class with more objects comes first
    bars = tuple(
        Bar(printable(name), f"{value:.4f}", round(100 * value, 1), f"class={k}") for value, k, name in known[:_WORST]
    )
    said = f"The lowest AP of {len(known):,} classes, by the protocol's own thresholds as AP above."
    return [Card("Worst classes", said, bars=bars)]


def _threshold(model: Model) -> Card:
    title = "Where to cut"
    points = sections.part(model.diagnosis, "operating_points", model.options).rows()
    best = points[0]
    if math.isnan(best["score"]):
        return Card(title, "There is no score to cut at: nothing is found.")
    between = ""
    if not math.isnan(best.get("score low", math.nan)):
        between = f" (on other images it might be {best['score low']:.3f} to {best['score high']:.3f})"
    said = (
        f"Keep detections of score {best['score']:.3f} or more{between}: there F1 of all classes together is best, with "
        f"precision {best['precision']:.3f} and recall {best['recall']:.3f} at {model.diagnosis.at}."
    )
    cuts = [
        one for one in points if str(one["point"]).startswith(("best", "precision")) and not math.isnan(one["score"])
    ]
    bars = tuple(
        Bar(f"{one['point']}: from {one['score']:.3f}", f"{one['recall']:.4f}", round(100 * one["recall"], 1))
        for one in cuts
    )
    return Card(title, f"{said} A bar is the recall that a cut leaves.", bars=bars)


def _classes(models: Sequence[Model]) -> Table:
    """Return a table with a row per class: number of objects, AP of every model, and the difference of two models."""
    several = len(models) > 1
    metric = next(iter(models[0].result))
    rows: list[dict[str, Any]] = []
    of_model = [model.result.rows() for model in models]
    counts = models[0].diagnosis.positives.tolist()
    names = models[0].diagnosis.categories
    protocol = models[0].diagnosis.protocol
    falls = find(protocol.iou_type).falls
    own_errors = () if several else names_of(protocol)
    others = {
        name: shown
        for name, shown in (("AP50", "AP_0.5" if falls else "AP50"), ("AP75", "AP_0.75" if falls else "AP75"))
        if any(not math.isnan(one.get(name, math.nan)) and one[name] != one["AP"] for one in of_model[0])
    }
    errors = sections.part(models[0].diagnosis, "tide", models[0].options).tables.get("categories", ())
    for k, name in enumerate(names):
        row: dict[str, Any] = {"category": name, "objects": int(counts[k])}
        for model, found in zip(models, of_model, strict=True):
            row[f"AP {printable(model.name)}" if several else "AP"] = float(found[k]["AP"])
        if not several:
            row |= {shown: float(of_model[0][k][name]) for name, shown in others.items()}
            row |= {name: errors[k][name] for name in ERRORS} if errors else {}
            row |= {name: float(of_model[0][k][name]) for name in own_errors}
        if len(models) == 2:
            row["difference"] = float(of_model[1][k]["AP"] - of_model[0][k]["AP"])
        rows.append(row)
    rows.sort(key=lambda row: -row["objects"])  # `table` sorts by AP, and keeps this order if AP is equal
    at = models[0].diagnosis.at
    said = f"; Cls to Miss: errors at {at}, which the section above explains" if errors and not several else ""
    if own_errors:
        at = find(protocol.iou_type).at(protocol.error_threshold or 0.0)
        said += f"; {own_errors[0]} to {own_errors[-1]}: the benchmark's errors, of matches at {at}, less is better"
    bars = {name: 1.0 for name in (rows[0] if rows else ()) if name.startswith("AP")}
    of = scope(("AP", None, 0, len(models[0].result.protocol.max_dets) - 1, None), models[0].result.protocol)
    if protocol.class_levels:
        note = "– where a class has no AP of its own by the protocol"
    elif protocol.empty_classes == "zero":
        note = f"{printable(metric)} is the mean over all classes; 0 where a class has no objects"
    else:
        note = f"{printable(metric)} is the mean over the classes with objects; – where a class has none"
    return table(
        "AP by class, worst first",
        rows,
        bars={"objects": None, **bars},
        most=2000,
        note=f"AP: {of}; {note}{said}",
        worst=next((name for name in rows[0] if name.startswith("AP")), "") if rows else "",
        queries=sections.of_classes(models[0].diagnosis),
    )
