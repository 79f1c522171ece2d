"""The report on one or several panoptic segmentation models: PQ, SQ, RQ, missed and false segments, worst images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import many
from detmap.panoptic.result import PanopticResult
from detmap.panoptic.tally import QUALITIES
from detmap.reports.blocks import (
    DIFFERENCES,
    Apart,
    Card,
    Section,
    Text,
    difference_rows,
    differences,
    metric_row,
    page,
    side_by_side,
    summary,
)
from detmap.reports.tables import sentence, table
from detmap.results import cell, printable
from detmap.statistics import Bootstrap, Comparison

#: Maximum number of images listed.
_WORST = 100


@dataclass
class Model:
    """A model of the report: its name, its result, and its intervals, if any."""

    name: str
    result: PanopticResult
    bootstrap: Bootstrap | None = None


def html(
    models: Sequence[Model],
    inputs: Sequence[Mapping[str, str]],
    made: datetime,
    *,
    comparison: Comparison | None = None,
    level: float = 0.95,
) -> str:
    """Return the report on panoptic segmentation as one self-contained HTML page (extra ``report``).

    Parameters
    ----------
    models : sequence of Model
        One or more models, scored on the same ground truth.
    inputs : sequence of mapping
        ``role``, ``name`` and ``sha256`` of each file.
    made : datetime
        Time of the report.
    comparison : Comparison, optional
        Comparison of several models.
    level : float
        The level of the intervals.

    Raises
    ------
    MissingDependencyError
        Without jinja2.
    """
    sections = [] if comparison is None else [_compared(comparison, level)]
    sections += side_by_side([_own(model) for model in models])
    return page(
        [model.name for model in models],
        "panoptic",
        summaries=[_summary(model, level) for model in models],
        metrics=_first_metrics(models, level),
        brief=_counts(models[0].result).partition(":")[0],
        inputs=inputs,
        facts=[("Rules", printable(models[0].result.rules.describe())), ("PQ", "SQ times RQ: the summed IoU of the "
               "matched segments, divided by matched + false / 2 + missed / 2")],
        counts=[(printable(model.name), _counts(model.result)) for model in models],
        counted="Segments",
        notices={model.name: model.result.described_notices() for model in models},
        sections=sections,
        made=made,
    )  # fmt: skip


def _counts(result: PanopticResult) -> str:
    matched, false, missed, objects = result.counts.sum(axis=0).tolist()
    images, categories = len(result.tally.image_ids), result.number_of_categories["All"]
    return (
        f"{many(objects, 'segment')} of {many(categories, 'category')} on {many(images, 'image')}: {matched:,} matched, "
        f"{missed:,} missed; "
        f"{false:,} false"
    )


def _ends(model: Model, level: float) -> NDArray[np.float64]:
    """Return the intervals of the m metrics, shape (m, 2); NaN if undefined."""
    if model.bootstrap is None:
        return np.full((len(model.result), 2), np.nan)
    return model.bootstrap.interval(level)[: len(model.result)]


def _summary(model: Model, level: float) -> dict[str, Any]:
    value, why, (low, high) = model.result["PQ"], "no interval was asked for", _ends(model, level)[0].tolist()
    if model.bootstrap is not None:
        why = f"no interval: {model.bootstrap.reason(0)}"
    about = ""
    if model.bootstrap is not None and not math.isnan(low):
        about = sentence(model.bootstrap.sentence(level=level).removeprefix("low, high: "))
    cards = [_outlines_card(model.result), _segments_card(model.result)]
    return summary(model.name, "PQ", cell(value), (low, high), why, level, about=about, cards=cards)


def _first_metrics(models: Sequence[Model], level: float) -> list[dict[str, Any]]:
    """Return the metrics of all models for the first screen."""
    ends = [_ends(model, level).tolist() for model in models]
    rows = []
    for at, name in enumerate(models[0].result):
        of = {"things": "categories of things", "stuff": "categories of stuff"}.get(
            name.partition("_")[2], "all categories"
        )
        rows.append(
            metric_row(
                name, of, [float(model.result[name]) for model in models], [(own[at][0], own[at][1]) for own in ends]
            )
        )
    return rows


def _outlines_card(result: PanopticResult) -> Card:
    """Return a card on the gain from perfect outlines of matched segments."""
    pq, rq, title = result["PQ"], result["RQ"], "What better outlines would give"
    if math.isnan(pq):
        return Card(title, "Nothing can be said: no category has segments.")
    said = f"PQ would be {rq:.4f}, which is RQ, if each matched segment had an IoU of 1. "
    said += f"The other {1 - rq:.4f} are lost to segments that are missed or false."
    legend = (("fill", "PQ"), ("gain", "with perfect outlines"))
    return Card(title, said, round(100 * pq, 2), round(100 * (rq - pq), 2), legend)


def _segments_card(result: PanopticResult) -> Card:
    """Return a card with the numbers of missed segments and of false predictions."""
    matched, false, missed, _ = result.counts.sum(axis=0).tolist()
    title = "What is missed, and what is false"
    if not matched + missed:
        return Card(title, "The ground truth has no segments.")
    said = f"{matched:,} of {matched + missed:,} segments are matched ({matched / (matched + missed):.1%}). "
    said += f"Of {matched + false:,} predicted segments {false:,} are false."
    share = 100 * matched / (matched + missed)
    return Card(title, said, round(share, 2), round(100 - share, 2), (("fill", "matched"), ("gain", "missed")))


def _compared(comparison: Comparison, level: float) -> Section:
    """Return a section on the paired differences of models, and on the categories that changed."""
    found, unit = comparison.differences, comparison.unit
    apart = [Apart(one.first, one.second, one.difference, one.low, one.high, one.adjusted) for one in found]
    blocks = differences(comparison.metric, level, comparison.alpha, unit, apart, difference_rows(comparison, found))
    if comparison.changed:
        blocks.append(table("Categories that changed", difference_rows(comparison, comparison.changed)))
    blocks += [Text(sentence(one)) for one in comparison.sentences()]
    return Section("differences", "Differences", DIFFERENCES, [("", blocks)])


def _own(model: Model) -> list[Section]:
    """Return the sections of one model."""
    told = (
        ("categories", "Categories", "Which are recognised, and which have good outlines.", _categories(model.result)),
        ("images", "Worst images", "Where to look first.", _images(model.result)),
    )
    return [Section(anchor, title, lead, [(printable(model.name), blocks)]) for anchor, title, lead, blocks in told]


def _categories(result: PanopticResult) -> list[Any]:
    """Return a table of PQ, SQ, RQ and counts of each category with segments."""
    rows = [row for row in result.class_summary() if not math.isnan(row["PQ"])]
    rows = [
        {name: value for name, value in row.items() if name not in ("low", "high", "bias", "images")} for row in rows
    ]
    rows.sort(key=lambda row: row["PQ"])
    left_out = len(result.categories) - len(rows)
    note = f"{many(left_out, 'category')} without segments left out" if left_out else ""
    return [table("Categories by PQ", rows, bars=dict.fromkeys(QUALITIES, 1.0), note=note)]


def _images(result: PanopticResult) -> list[Any]:
    """Return a table of the images with the lowest PQ, computed over the segments of all categories together."""
    tally = result.tally
    images = len(tally.image_ids)
    counts = np.zeros((images, 4), np.int64)
    np.add.at(counts, tally.cell_image, tally.cell_counts)
    iou = np.bincount(tally.match_image, tally.match_iou, images)
    total = counts[:, 0] + counts[:, 1] / 2 + counts[:, 2] / 2
    value = np.divide(iou, total, out=np.full(images, np.nan), where=total > 0)
    order = [at for at in np.argsort(value, kind="stable").tolist() if not math.isnan(value[at])]
    rows = [
        {
            "image": str(tally.image_ids[at]),
            "PQ": float(value[at]),
            "matched": int(counts[at, 0]),
            "false": int(counts[at, 1]),
            "missed": int(counts[at, 2]),
        }
        for at in order[:_WORST]
    ]
    note = "PQ of an image is that of all its segments together, whatever their category"
    more = len(order) - len(rows)
    made = table("Images by PQ", rows, bars={"PQ": 1.0}, note=note)
    return [made, *([Text(f"{more:,} images more are better.")] if more > 0 else [])]
