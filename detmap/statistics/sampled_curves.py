"""Bootstrap and permutations under protocols that sample precision at scores chosen from the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from detmap.detection.metric_names import OF_CLASS, Row, metric_table
from detmap.detection.precisions import mean_of_defined
from detmap.detection.rematching import chosen_thresholds
from detmap.detection.sampling import Averages, Sampled, of_class, positives_of
from detmap.detection.tally import Tally
from detmap.errors import OptionError
from detmap.system import parallel


def sampled_scores(
    tally: Tally,
    metrics: Sequence[str],
    by_category: Sequence[str],
    codes: Callable[[int], NDArray[np.int32]],
    out: NDArray[np.float64],
    threads: int | None,
) -> NDArray[np.float64]:
    """Compute `detmap.statistics.reweighting.Reweighted.score` for protocols that sample precision at scores. Write the
    values to `out`, shape (count, sides, columns), and return it. Raises `OptionError` for metrics of pooled categories
    or of groups of images.
    """
    table = dict(metric_table(tally.protocol, ()))
    rows = [table[name] for name in metrics]
    other = next((name for name, row in zip(metrics, rows, strict=True) if row[0] not in ("AP", "AR", *OF_CLASS)), None)
    if other is not None:
        raise OptionError(f"{other} has no intervals with interpolation {tally.protocol.interpolation!r}")

    def work(begin: int, end: int) -> None:
        for replicate in range(begin, end):
            given = codes(replicate)
            for side in range(out.shape[1]):
                copies = np.where(given & 1 == side, given >> 1, 0).astype(np.int64)
                out[replicate, side] = _columns(tally, rows, by_category, copies)

    parallel.run(work, parallel.even(len(out), threads), threads)
    return out


def _columns(tally: Tally, rows: Sequence[Row], by_category: Sequence[str], copies: NDArray[np.int64]) -> list[float]:
    """Return the columns of one replicate, in which image *i* occurs ``copies[i]`` times."""
    protocol = tally.protocol
    made = Sampled.of(tally, copies, threads=1).averages(protocol.interpolation)
    held = copies[tally.image] > 0
    detected = np.bincount(tally.category[held], minlength=len(tally.categories))
    columns = []
    for kind, iou, area, cap, category in rows:
        if kind in OF_CLASS:
            values = (made.precision if kind == "percent" else made.alike)[:, area]
            columns.append(of_class(values, str(category), protocol, tally.categories, detected))
        elif kind == "AR":
            columns.append(mean_of_defined(_recalls(tally, copies, area, cap)[_thresholds(tally, iou)]))
        else:
            columns.append(mean_of_defined(_precisions(tally, made, area, iou)))
    for name in by_category:
        values = _precisions(tally, made, 0, {"AP": None, "AP50": 0.5, "AP75": 0.75}[name])
        columns += [mean_of_defined(column) for column in values.T]
    return columns


def _thresholds(tally: Tally, iou: float | None) -> slice:
    """Return the range of IoU thresholds over which a metric is averaged: all thresholds if `iou` is None."""
    if iou is None:
        return slice(None)
    found = tally.protocol.find_threshold(iou)
    return slice(0, 0) if found is None else slice(found, found + 1)


def _precisions(tally: Tally, made: Averages, area: int, iou: float | None) -> NDArray[np.float64]:
    """Return the AP by threshold and class, shape (T, K); NaN at thresholds that do not apply to the class."""
    values = made.precision[:, area].T
    if iou is None:
        values = np.where(chosen_thresholds(tally.protocol, tally.categories), values, np.nan)
    return np.ascontiguousarray(values[_thresholds(tally, iou)])


def _recalls(tally: Tally, copies: NDArray[np.int64], area: int, cap: int) -> NDArray[np.float64]:
    """Return the recall of all detections by threshold and class, shape (T, K)."""
    positives = positives_of(tally, copies)[:, area]
    weights = copies[tally.image] * (tally.rank < tally.protocol.max_dets[cap])
    found = [
        np.bincount(tally.category, weights * tally.bit(tally.hit, area, t), len(tally.categories))
        for t in range(len(tally.protocol.iou_thresholds))
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(positives > 0, np.stack(found) / positives, np.nan)
