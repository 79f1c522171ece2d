"""The report on one detector or several: what was evaluated, how good it is, what goes wrong, and where to look."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import detmap
from detmap.notices import describe
from detmap.report import sections
from detmap.report.page import render
from detmap.report.tables import Table, table
from detmap.results import cell, printable

if TYPE_CHECKING:
    from detmap.checks.report import Report
    from detmap.detection import DetectionResult
    from detmap.diagnostics import Diagnosis
    from detmap.report.pictures import Pictures
    from detmap.statistics import Bootstrap, Comparison


#: A gain in AP that is none but for rounding.
_NOTHING = 1e-9


@dataclass
class Model:
    """A detector of a report.

    Attributes
    ----------
    name : str
        What the page calls it.
    diagnosis : Diagnosis
        What goes wrong.
    result : DetectionResult
        Its metrics under the same protocol.
    bootstrap : Bootstrap, optional
        Intervals of the metrics.
    checked : Report, optional
        What a check found.
    options : mapping of str to mapping
        Options of the diagnosis's parts, by their names.
    """

    name: str
    diagnosis: Diagnosis
    result: DetectionResult
    bootstrap: Bootstrap | None = None
    checked: Report | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def html(
    models: Sequence[Model],
    inputs: Sequence[Mapping[str, str]],
    made: datetime,
    *,
    comparison: Comparison | None = None,
    pictures: Pictures | None = None,
    level: float = 0.95,
) -> str:
    """Return the report as one self-contained HTML page (extra ``report``).

    Parameters
    ----------
    models : sequence of Model
        One or more, of the same ground truth under the same protocol.
    inputs : sequence of mapping
        Of each file ``role``, ``name`` and ``sha256``.
    made : datetime
        When.
    comparison : Comparison, optional
        Of two models or more.
    pictures : Pictures, optional
        Where the images are; without it the worst ones are listed.
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
        sections.of(model.name, model.diagnosis, sections.Given(model.options, pictures, most), model.checked)
        for model in models
    ]
    merged = sections.side_by_side(parts)
    if comparison is not None:
        merged.insert(0, sections.compared(comparison))
    by_class = _classes(models)
    at = next((i for i, one in enumerate(merged) if one.id == "classes"), len(merged))
    merged.insert(at, sections.Section("ap", "AP by class", "", [("", [by_class])]))
    notices = {model.name: describe({**model.diagnosis.matches.notices, **model.result.notices}) for model in models}
    several = len(models) > 1
    return render(
        "report.html",
        "the report",
        styles=["tables.css", "report.css"],
        scripts=["tables.js", "report.js"],
        title=printable(", ".join(model.name for model in models[:4]) + (" …" if len(models) > 4 else "")),
        several=several,
        summaries=[_summary(model, metric, level) for model in models],
        inputs=[{name: printable(str(value)) for name, value in one.items()} for one in inputs],
        facts=_facts(first, made),
        counts=_counts(models),
        notices=[
            printable(f"{name}: {text}" if several else text) for name, found in notices.items() for text in found
        ],
        sections=merged,
    )


def _facts(diagnosis: Diagnosis, made: datetime) -> list[tuple[str, str]]:
    truth = diagnosis.ground_truth
    crowd = int(truth.crowd.sum())
    counted = int(diagnosis.positives.sum())
    aside = len(truth) - counted
    objects = f"{len(truth):,}" + (f", {aside:,} of which are not to be found" if aside else "")
    objects += f" ({crowd:,} crowds)" if crowd else ""
    return [
        ("Protocol", printable(diagnosis.protocol.describe())),
        ("Errors are told at", f"IoU {diagnosis.iou:g}"),
        ("Images", f"{truth.images.ids.size:,}"),
        ("Classes", f"{len(diagnosis.categories):,}"),
        ("Objects", objects),
        ("Made", f"{made:%Y-%m-%d %H:%M} UTC with detmap {detmap.__version__}"),
    ]


def _counts(models: Sequence[Model]) -> list[tuple[str, str]]:
    return [(printable(model.name), f"{len(model.diagnosis.detections):,} detections") for model in models]


def _summary(model: Model, metric: str, level: float) -> dict[str, Any]:
    """Return the first screen's numbers and sentences."""
    value = model.result[metric]
    low = high = math.nan
    why = "no interval was asked for"
    if model.bootstrap is not None:
        column = model.bootstrap.columns[metric]
        low, high = (float(end) for end in model.bootstrap.interval(level)[column])
        why = "no interval: " + (model.bootstrap.reasons()[column] or "too few images")
    known = not math.isnan(low)
    others = [name for name in ("AP50", "AP75") if name in model.result]
    return {
        "name": printable(model.name),
        "metric": printable(metric),
        "value": cell(value),
        "interval": f"{level * 100:g} % interval {low:.4f} to {high:.4f}" if known else why,
        "range": {"low": round(low * 100, 2), "width": round((high - low) * 100, 2)} if known else None,
        "share": 0.0 if math.isnan(value) else round(min(max(value, 0.0), 1.0) * 100, 2),
        "others": [(name, cell(model.result[name])) for name in others],
        **_costs(model.diagnosis),
        "threshold": _threshold(model),
    }


def _costs(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return what costs most AP, in words and as shares of a bar."""
    tide = diagnosis.part("tide")
    rows = [row for row in tide.rows() if row["dAP"] > _NOTHING]
    ap = tide["AP"]
    if not rows or math.isnan(ap):
        said = "Nothing can be said of errors: there are no objects to find."
        if not math.isnan(ap):
            said = "No error costs any AP." if ap > 1 - _NOTHING else "No kind of error costs any AP by itself."
        return {"costs": said, "ap": 0 if math.isnan(ap) else round(ap * 100, 2), "gain": 0, "error": ""}
    worst = max(rows, key=lambda row: float(row["dAP"]))
    what = worst["meaning"] if worst["meaning"].startswith("an object") else f"a detection that {worst['meaning']}"
    said = (
        f"{worst['error']} costs most: {what}. Without these {worst['count']:,} errors AP at IoU {diagnosis.iou:g} would "
        f"be {ap + worst['dAP']:.4f} instead of {ap:.4f}."
    )
    return {
        "costs": said,
        "ap": round(ap * 100, 2),
        "gain": round(min(worst["dAP"], 1 - ap) * 100, 2),
        "error": worst["error"],
    }


def _threshold(model: Model) -> str:
    points = sections.part(model.diagnosis, "operating_points", model.options).rows()
    best = points[0]
    if math.isnan(best["score"]):
        return "There is no score to cut at: nothing is found."
    between = ""
    if not math.isnan(best.get("score low", math.nan)):
        between = f" (on other images it might be {best['score low']:.3f} to {best['score high']:.3f})"
    return (
        f"Keep detections of score {best['score']:.3f} or more{between}: there F1 of all classes together is best, with "
        f"precision {best['precision']:.3f} and recall {best['recall']:.3f} at IoU {model.diagnosis.iou:g}."
    )


def _classes(models: Sequence[Model]) -> Table:
    """Return a row per class: its objects, and AP of every model, with the gain of the second over the first."""
    several = len(models) > 1
    metric = next(iter(models[0].result))
    rows: list[dict[str, Any]] = []
    of_model = [model.result.rows() for model in models]
    counts = models[0].diagnosis.positives.tolist()
    names = models[0].diagnosis.categories
    for k, name in enumerate(names):
        row: dict[str, Any] = {"category": name, "objects": int(counts[k])}
        for model, found in zip(models, of_model, strict=True):
            row[f"AP {printable(model.name)}" if several else "AP"] = float(found[k]["AP"])
        if not several:
            row |= {name: float(of_model[0][k][name]) for name in ("AP50", "AP75") if name in of_model[0][k]}
        if len(models) == 2:
            row["difference"] = float(of_model[1][k]["AP"] - of_model[0][k]["AP"])
        rows.append(row)
    bars = {name: 1.0 for name in (rows[0] if rows else ()) if name.startswith("AP")}
    said = "mean over the classes with objects; – where a class has none"
    return table(
        "AP by class", rows, bars={"objects": None, **bars}, most=2000, note=f"{printable(metric)} is the {said}"
    )
