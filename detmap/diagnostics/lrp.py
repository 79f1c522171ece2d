"""Localisation recall precision (LRP): an error measure that combines localisation, false positives and misses. Optimal
LRP is the minimum over score thresholds.

K. Oksuz, B. C. Cam, E. Akbas and S. Kalkan, Localization Recall Precision (LRP): A New Performance Metric for Object
Detection, 2018, and One Metric to Measure Them All, 2021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matches import HIT, MISS
from detmap.diagnostics._ranking import Ranking, mean
from detmap.diagnostics._registry import Finding, Part, number, rows_of
from detmap.errors import OptionError
from detmap.shapes import find

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis


def lrp(diagnosis: Diagnosis, *, iou: float | None = None, area: str | None = None) -> Finding:
    """Return LRP and optimal LRP (oLRP) of every class, their components, and the score threshold that minimises LRP.

    Parameters
    ----------
    iou : float, optional
        The IoU threshold, below 1; by default the threshold of the diagnosis.
    area : str, optional
        The name of one of the protocol's area ranges; by default the first range, which usually contains all objects.

    Returns
    -------
    Finding
        ``oLRP`` and its components ``oLRP_Loc`` (the mean of 1 - IoU of the hits), ``oLRP_FP`` (1 - precision) and
        ``oLRP_FN`` (1 - recall), as means over the classes. ``LRP`` and its components are the same quantities without
        a score threshold, for all detections. In a class without hits, the error and its FN component are 1, and the
        other values are NaN. In a class without objects, everything is NaN. `rows` has a row per class, with the
        optimal minimum score in ``threshold``.
    """
    tau = diagnosis.iou if iou is None else number("iou", iou)
    if not 0 <= tau < 1:
        raise OptionError(f"iou must be at least 0 and below 1, not {tau!r}")
    matches = diagnosis.matched_at(tau, area)
    if matches is diagnosis.matches:
        ranking, positives = diagnosis.ranking, diagnosis.positives
    else:
        hits = matches.ground_truth[matches.outcome == HIT]
        counted = np.concatenate((hits, matches.missed))
        codes = diagnosis.arranged.truth.category[diagnosis.places[counted]]
        positives = np.bincount(codes, minlength=len(matches.categories))
        ranking = Ranking.of(matches, positives)
    overlap = matches.quality()[ranking.order]
    worst = 0.0 if find(matches.protocol.iou_type).falls else tau
    best = np.full((positives.size, 5), np.nan)
    whole = np.full((positives.size, 4), np.nan)
    starts = ranking.starts.tolist()
    for k, sought in enumerate(positives.tolist()):
        if sought:
            rows = slice(starts[k], starts[k + 1])
            best[k], whole[k] = _of_class(ranking.outcome[rows], overlap[rows], ranking.scores[rows], sought, worst)
    names = ("oLRP", "oLRP_Loc", "oLRP_FP", "oLRP_FN")
    metrics = {name: mean(best[:, at]) for at, name in enumerate(names)}
    metrics |= {name[1:]: mean(whole[:, at]) for at, name in enumerate(names)}
    columns = {"category": diagnosis.categories, "objects": positives}
    columns |= {name: best[:, at] for at, name in enumerate((*names, "threshold"))} | {"LRP": whole[:, 0]}
    notes = [f"at {diagnosis.named(tau)}; 0 is best and 1 worst; threshold: keep detections of this score or more"]
    return Finding("lrp", {"iou": tau, "area": matches.area}, metrics, {"categories": rows_of(columns)}, notes)


def _of_class(
    outcome: NDArray[np.uint8],
    overlap: NDArray[np.float64],
    score: NDArray[np.float64],
    positives: int,
    worst: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two arrays for one class. The first holds oLRP, its three components and the score threshold. The second holds
    LRP and its three components. Detections are in ranking order; `worst` is the minimum overlap of a hit.
    """
    hit = outcome == HIT
    nothing = np.array([1.0, np.nan, np.nan, 1.0])
    if not hit.any():
        return np.append(nothing, np.nan), nothing
    hits, wrong = np.cumsum(hit, dtype=np.float64), np.cumsum(outcome == MISS, dtype=np.float64)
    away = hits - np.cumsum(np.where(hit, overlap, 0.0))
    lost = positives - hits
    error = (away / (1 - worst) + wrong + lost) / (hits + wrong + lost)

    def parts(at: int) -> list[float]:
        kept = hits[at] + wrong[at]
        place = away[at] / hits[at] if hits[at] else np.nan
        return [
            float(error[at]),
            float(place),
            float(wrong[at] / kept) if kept else np.nan,
            float(lost[at] / positives),
        ]

    least = int(np.argmin(error))
    return np.array([*parts(least), float(score[least])]), np.array(parts(-1))


PART = Part("lrp", "localisation recall precision: one error for place, false positives and misses", lrp)
