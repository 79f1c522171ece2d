"""Calibration of scores: the reliability table, and errors of scores as estimates of precision or of overlap.

F. Küppers and others, Multivariate Confidence Calibration for Object Detection, 2020 (D-ECE); K. Oksuz and others, Towards
Building Self-Aware Object Detectors via Reliable Uncertainty Quantification and Calibration, 2023 (LaECE); S. Kuzucu and
others, On Calibration of Object Detectors: Pitfalls, Evaluation and Baselines, 2024 (LaACE).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matches import HIT, IGNORED
from detmap.diagnostics._ranking import mean
from detmap.diagnostics._registry import Finding, Part, number, rows_of
from detmap.errors import OptionError, check_integer

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis


def calibration(
    diagnosis: Diagnosis, *, bins: int = 10, tau: float = 0.1, la_bins: int = 25, position_bins: int = 5
) -> Finding:
    """Return calibration errors of the scores.

    Parameters
    ----------
    bins : int
        Number of bins of equal width, for reliability, ECE and D-ECE.
    tau : float
        The IoU threshold at which LaECE and LaACE match; with 0, any unmatched object of the class can match.
    la_bins : int
        Number of bins for LaECE.
    position_bins : int
        Number of bins of the position in each direction, for D-ECE.

    Returns
    -------
    Finding
        ``ECE``: the mean over bins of the absolute difference between mean score and precision, weighted by the number
        of detections. All detections of classes with objects are included. Publications also call this error D-ECE of
        the confidence. ``MCE``: the maximum of these differences; ``ACE``: the unweighted mean of these differences.
        ``D-ECE``: as ECE, with bins by score and position of the centre; NaN if image sizes are unknown. ``LaECE``: as
        ECE, with the mean overlap (0 for misses) instead of precision, averaged over classes. ``LaACE``: the mean
        absolute difference between the score and the overlap of a detection, averaged over classes. Ignored detections
        are left out, except from LaACE, as in its authors' program. `rows` are the bins of ECE.

    Raises
    ------
    OptionError
        If scores are not between 0 and 1.
    """
    for name, value in (("bins", bins), ("la_bins", la_bins), ("position_bins", position_bins)):
        check_integer(name, value, 1)
    tau = number("tau", tau)
    if not 0 <= tau <= 1:
        raise OptionError(f"tau must be between 0 and 1, not {tau!r}")
    matches = diagnosis.matches
    if matches.score.size and not (matches.score.min() >= 0 and matches.score.max() <= 1):
        low, high = float(matches.score.min()), float(matches.score.max())
        raise OptionError(f"only scores between 0 and 1 can be calibrated; these reach from {low:.4g} to {high:.4g}")
    counts = (matches.outcome != IGNORED) & (diagnosis.positives > 0)[matches.category]
    score, hit = matches.score[counts], (matches.outcome == HIT)[counts].astype(np.float64)
    size = len(diagnosis.categories)
    reliability = _Bins.of(_binned(score, bins), bins, score, hit)
    detections = max(score.size, 1)
    gaps = np.abs(reliability.target - reliability.score)
    empty = not score.size
    metrics = {
        "ECE": math.nan if empty else float(np.nansum(gaps * reliability.count) / detections),
        "MCE": math.nan if empty else float(np.nanmax(gaps)),
        "ACE": math.nan if empty else mean(gaps),
        "D-ECE": _with_position(diagnosis, counts, score, hit, bins, position_bins),
    }
    of_class = _Bins.of(matches.category[counts] * bins + _binned(score, bins), size * bins, score, hit)
    ece = _weighted(of_class, size)

    at_tau = diagnosis.matched_at(tau)
    overlap = np.where(at_tau.outcome == HIT, np.nan_to_num(at_tau.quality()), 0.0)
    counted = at_tau.outcome != IGNORED
    groups = at_tau.category[counted] * la_bins + _binned(at_tau.score[counted], la_bins)
    laece = _weighted(_Bins.of(groups, size * la_bins, at_tau.score[counted], overlap[counted]), size)
    number_of = np.bincount(at_tau.category, minlength=size)
    away = np.bincount(at_tau.category, np.abs(overlap - at_tau.score), minlength=size)
    laace = np.divide(away, number_of, out=np.full(size, np.nan), where=number_of > 0)
    for values in (laece, laace):  # the authors' program takes a class's value of exactly 0 as undefined
        values[(values == 0) | (diagnosis.positives == 0)] = np.nan
    metrics |= {"LaECE": mean(laece), "LaACE": mean(laace)}
    edges, held = np.arange(bins + 1) / bins, reliability.count.astype(np.int64)
    rows = {"from": edges[:-1], "to": edges[1:], "detections": held}
    rows |= {"score": reliability.score, "precision": reliability.target}
    of_classes = {"category": diagnosis.categories, "detections": number_of}
    of_classes |= {"ECE": ece, "LaECE": laece, "LaACE": laace}
    settings = {"bins": bins, "tau": tau, "la_bins": la_bins, "position_bins": position_bins, "iou": diagnosis.iou}
    notes = [f"ECE and D-ECE at {diagnosis.at}, LaECE and LaACE at {diagnosis.named(tau)}; 0 is best"]
    tables = {"reliability": rows_of(rows), "categories": rows_of(of_classes)}
    return Finding("calibration", settings, metrics, tables, notes)


class _Bins:
    """The number of detections, the mean score and the mean target of each bin. The target of a detection is its
    overlap, or 1 for a hit and 0 for a miss.
    """

    def __init__(self, count: NDArray[np.float64], score: NDArray[np.float64], target: NDArray[np.float64]) -> None:
        self.count, self.score, self.target = count, score, target

    @classmethod
    def of(cls, at: NDArray[np.int64], size: int, score: NDArray[np.float64], target: NDArray[np.float64]) -> _Bins:
        """Fill `size` bins, where detection *i* is in bin ``at[i]``; means of empty bins are NaN."""
        count = np.bincount(at, minlength=size).astype(np.float64)
        sums = (np.bincount(at, values, minlength=size) for values in (score, target))
        return cls(count, *(np.divide(s, count, out=np.full(size, np.nan), where=count > 0) for s in sums))


def _binned(score: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Return the bin of each score. A bin excludes its lower and includes its upper edge; the first bin includes 0."""
    return np.maximum(np.searchsorted(np.linspace(0.0, 1.0, bins + 1), score, side="left") - 1, 0)


def _weighted(bins: _Bins, size: int) -> NDArray[np.float64]:
    """Return the calibration error of each class: the mean over its bins, weighted by the number of detections in a
    bin; NaN without detections.
    """
    gaps = np.nan_to_num(np.abs(bins.target - bins.score) * bins.count)
    each = gaps.size // max(size, 1)
    gaps, count = (values.reshape(size, each).sum(axis=1) for values in (gaps, bins.count))
    return np.asarray(np.divide(gaps, count, out=np.full(size, np.nan), where=count > 0))


def _with_position(
    diagnosis: Diagnosis,
    counts: NDArray[np.bool_],
    score: NDArray[np.float64],
    hit: NDArray[np.float64],
    bins: int,
    position_bins: int,
) -> float:
    """Return D-ECE over bins of score and centre; NaN if the size of an image is unknown."""
    sizes = diagnosis.ground_truth.images.sizes
    if sizes is None or not score.size:
        return math.nan
    of_image = sizes[diagnosis.matches.image[counts]]
    if not of_image.all():
        return math.nan
    corners = diagnosis.corners("detections")[diagnosis.matches.detection[counts]]
    place = _binned(score, bins)
    total = bins
    for axis in (0, 1):
        centre = (corners[:, axis] + corners[:, axis + 2]) / 2 / of_image[:, 1 - axis]
        place = place * position_bins + _binned(np.clip(centre, 0.0, 1.0), position_bins)
        total *= position_bins
    found = _Bins.of(place, total, score, hit)
    return float(np.nansum(np.abs(found.target - found.score) * found.count) / score.size)


PART = Part("calibration", "whether scores mean what they say", calibration)
