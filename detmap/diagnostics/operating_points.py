"""Precision, recall and F1 by score threshold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from detmap.detection.matches import HIT, IGNORED
from detmap.diagnostics._ranking import Cuts
from detmap.diagnostics._registry import Finding, Part, Rows, number
from detmap.errors import OptionError

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

#: Maximum number of scores at which the curve is reported.
_POINTS = 200


class OperatingPoints(Finding):
    """The finding of `operating_points`.

    Attributes
    ----------
    cuts : Cuts
        Precision, recall and F1 of all classes together at every score that occurs.
    """

    cuts: Cuts


def operating_points(
    diagnosis: Diagnosis,
    *,
    precision: float | Iterable[float] = (0.5, 0.75, 0.9, 0.95),
    recall: float | Iterable[float] = (0.5, 0.75, 0.9),
) -> OperatingPoints:
    """Return precision, recall and F1 of all classes together by minimum score, and recommended minimum scores. A
    minimum score does not change the matches of remaining detections, so nothing is matched again.

    Parameters
    ----------
    precision : float or iterable of float
        Required precisions. Of the scores that reach a precision, the score with the highest recall is reported.
    recall : float or iterable of float
        Required recalls. For each recall, the highest score that reaches the recall is reported.

    Returns
    -------
    OperatingPoints
        The best ``F1``, and its ``score``, ``precision`` and ``recall``. `rows` has a row for the best F1 and for each
        required value; NaN if no score reaches the value. If the diagnosis has ``replicates``, there are 95 % intervals
        of precision and recall at the reported score, and of the score itself, which is chosen anew in each replicate.
    """
    wanted = [("best F1", "f1", 0.0)]
    for name, values in (("precision", precision), ("recall", recall)):
        for value in [values] if isinstance(values, int | float | np.number) else tuple(values):
            if not 0 < number(name, value) <= 1:
                raise OptionError(f"a wanted {name} must be above 0 and at most 1, not {value!r}")
            wanted.append((f"{name} {float(value):g}", name, float(value)))
    cuts = diagnosis.cuts_of_all
    places = [_place(cuts, kind, value) for _, kind, value in wanted]
    rows: Rows = [{"point": name, **cuts.row(at)} for (name, _, _), at in zip(wanted, places, strict=True)]
    if diagnosis.replicates:
        rows = [row | more for row, more in zip(rows, _intervals(diagnosis, cuts, wanted, places), strict=True)]
    shown = np.unique(np.linspace(0, max(cuts.score.size - 1, 0), _POINTS).astype(np.int64))
    curve: Rows = [cuts.row(at) for at in shown.tolist()] if cuts.score.size else []
    ranking = diagnosis.ranking
    by_class: Rows = []
    for k, name in enumerate(diagnosis.categories):
        of = slice(int(ranking.starts[k]), int(ranking.starts[k + 1]))
        one = Cuts.of(ranking.scores[of], ranking.outcome[of], int(ranking.positives[k]))
        by_class.append({"category": name, "objects": one.positives, **one.row(one.best())})
    best = cuts.row(places[0])
    metrics = {"F1": best["f1"], **{name: best[name] for name in ("score", "precision", "recall")}}
    tables = {"points": rows, "categories": by_class, "curve": curve}
    settings: dict[str, Any] = {name: [v for _, kind, v in wanted if kind == name] for name in ("precision", "recall")}
    notes = [f"all classes together at {diagnosis.at}; detections of the score or more are kept"]
    if diagnosis.replicates:
        from detmap.diagnostics._resampling import sentence

        notes.append(sentence(diagnosis))
    made = OperatingPoints("operating_points", settings, metrics, tables, notes)
    made.cuts = cuts
    return made


def _place(cuts: Cuts, kind: str, value: float) -> int | None:
    if kind == "f1":
        return cuts.best()
    return cuts.with_precision(value) if kind == "precision" else cuts.with_recall(value)


def _intervals(
    diagnosis: Diagnosis, cuts: Cuts, wanted: list[tuple[str, str, float]], places: list[int | None]
) -> list[dict[str, float]]:
    """For each row of the table, return the ends of confidence intervals by column name."""
    from detmap.diagnostics._resampling import interval, units_of, weights

    diagnosis.say("drawing images anew, for scores to cut at")
    matches, truth = diagnosis.matches, diagnosis.arranged.truth
    counts = np.flatnonzero(matches.outcome != IGNORED)
    order = counts[np.argsort(-matches.score[counts], kind="stable")]
    image, hit, score = matches.image[order], matches.outcome[order] == HIT, matches.score[order]
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True)[: score.size])
    objects = np.bincount(truth.image[diagnosis.counted], minlength=matches.image_ids.size)
    found, units = [], units_of(diagnosis)
    for weight in weights(units, diagnosis.replicates, diagnosis.seed):
        kept = weight[image]
        hits = np.cumsum(kept * hit)[last]
        one = Cuts(cuts.score, hits, np.cumsum(kept)[last] - hits, int(weight @ objects))
        values = []
        for (_, kind, value), at in zip(wanted, places, strict=True):
            own = _place(one, kind, value)
            values.append(np.nan if own is None else float(cuts.score[own]))
            values += [np.nan, np.nan] if at is None else [float(one.precision[at]), float(one.recall[at])]
        found.append(values)
    table = np.array(found)
    rows = []
    for at, place in enumerate(places):
        row: dict[str, float] = {}
        for i, name in enumerate(("score", "precision", "recall")):
            value, bounded = cuts.row(place)[name], name != "score"
            ends = interval(value, table[:, 3 * at + i], diagnosis.replicates, units, objects, bounded=bounded)
            if name == "score" and cuts.score.size:  # every replicate chooses among the scores of the data
                ends = tuple(np.clip(ends, cuts.score.min(), cuts.score.max()).tolist())
            row |= dict(zip((f"{name} low", f"{name} high"), ends, strict=True))
        rows.append(row)
    return rows


PART = Part("operating_points", "precision, recall and F1 by score, and which score to cut at", operating_points)
