"""nuScenes' errors of true positives, such as translation, and the detection score that combines these errors with AP.

The rules are those of Caesar et al., "nuScenes: A multimodal dataset for autonomous driving", 2020. The matches of a
class are sorted by descending score. The running mean of an error over these matches is read at 101 recalls. The error
of the class is the mean of these values over the recalls above 0.1 that the detector reaches. A class that does not
reach a recall of 0.1 has errors of 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.choices import decimal, parse_number, parse_pairs, plain_number, plain_pairs
from detmap.decisions import Flag, decision
from detmap.errors import shorten
from detmap.hits import CLIP, GRIDS, bends
from detmap.shapes import find

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol
    from detmap.detection.tally import Tally

_declared = partial(decision, since="0.2", group="true positives")

#: Weight of the mean AP relative to one error.
AP_WEIGHT = 5

#: Name of the rule for classes whose front and back are the same, such as barriers.
HALF_TURNS = "half turns"


def _wrong_threshold(value: Any) -> str | None:
    good = value is None or (isinstance(value, float) and 0 < value < math.inf)
    return None if good else f"error_threshold must be a positive number or None, not {shorten(value)}"


def _wrong_ranges(value: Any) -> str | None:
    good = all(metres > 0 for _, metres in value) and len({name for name, _ in value}) == len(value)
    return None if good else f"class_ranges must be a positive distance for each class, not {shorten(value)}"


ERROR_THRESHOLD = _declared(
    "For kinds with errors of true positives, as distances: these are measured of detections that match at this threshold. "
    "None: no errors.",
    "matching",
    plain=plain_number,
    wrong=_wrong_threshold,
    words=lambda value: "none" if value is None else f"{value:g}",
    phrase=lambda protocol: f"errors of matches at {protocol.error_threshold:g}",
    flag=Flag(
        name="--error-threshold",
        metavar="DISTANCE",
        help="distance: errors of true positives are measured of matches at this distance",
        read=parse_number,
    ),
)

ERROR_RULES = _declared(
    'Classes whose errors have rules of their own: "half turns" where front and back are the same, or the name of an error, '
    "as AOE, that they do not have.",
    "matching",
    plain=partial(plain_pairs, str),
    words=lambda value: ", ".join(f"{name}: {rule}" for name, rule in value) or "none",
    phrase=lambda protocol: "rules of errors of single classes",
)

CLASS_RANGES = _declared(
    "For boxes in space: how far from the car, in metres, objects and detections of a class are scored; those that are "
    "farther away are left out.",
    "matching",
    plain=partial(plain_pairs, float),
    wrong=_wrong_ranges,
    words=lambda value: ", ".join(f"{name} {metres:g}" for name, metres in value) or "none",
    phrase=lambda protocol: "classes within ranges",
    flag=Flag(
        name="--class-ranges",
        metavar="LIST",
        help="boxes in space: how far from the car a class is scored, as car=50,barrier=30, or none",
        read=partial(parse_pairs, decimal, "=", "distances by class, as car=50,barrier=30"),
    ),
)

EMPTY_CLASSES = _declared(
    "AP and recall of a class without ground truth: undefined, and in no mean, or 0.",
    "mean",
    allowed=("undefined", "zero"),
    phrase=lambda protocol: f"AP of classes without objects {protocol.empty_classes}",
    flag=Flag(name="--empty-classes", help="AP of a class without objects: undefined (default), or zero"),
)


def names_of(protocol: Protocol) -> tuple[str, ...]:
    """Return the names of the errors that the protocol measures."""
    return () if protocol.error_threshold is None else find(protocol.iou_type).errors


def has_rule(protocol: Protocol, names: Iterable[str], rule: str) -> NDArray[np.bool_]:
    """Return a mask, shape (K,), of the classes (`names`) that have a rule."""
    return np.array([(name, rule) in protocol.error_rules for name in names], np.bool_)


def running_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return cumulative means that skip NaN. The means are 0 before the first number, and all 1 if there are no
    numbers.
    """
    known = ~np.isnan(values)
    if not known.any():
        return np.ones(values.size)
    count = np.cumsum(known)
    total = np.nancumsum(values)
    return np.asarray(np.divide(total, count, out=np.zeros_like(total), where=count > 0))


def class_error(
    hits: NDArray[np.int64], scores: NDArray[np.float64], errors: NDArray[np.float64], positives: int
) -> NDArray[np.float64]:
    """Return the errors of a class, shape (E,).

    `hits` are the positions of the h matches in the ranking of the class. `scores` are the scores of the whole ranking.
    `errors`, shape (h, E), has a row per match.
    """
    if not hits.size or not positives:
        return np.ones(errors.shape[1])
    grid = GRIDS["101-point"]
    places, found = bends(hits, scores.size)
    confidence = np.interp(grid, found / float(positives), scores[places], right=0)
    reached = np.flatnonzero(confidence)
    first, last = CLIP, int(reached[-1]) if reached.size else 0
    if last < first:
        return np.ones(errors.shape[1])
    known = scores[hits][::-1]
    out = np.empty(errors.shape[1])
    for column, values in enumerate(errors.T):
        read = np.interp(confidence[::-1], known, running_means(values)[::-1])[::-1]
        out[column] = np.mean(read[first : last + 1])
    return out


def class_errors(tally: Tally, copies: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Return the errors of every class, shape (K, E), of a tally in ranking order; NaN for errors that the protocol
    does not define for a class. `copies` are the weights of images, by default 1.
    """
    names = names_of(tally.protocol)
    out = np.empty((len(tally.categories), len(names)))
    starts = tally.class_starts
    positives = tally.positives[:, 0]
    if copies is not None:
        weights = copies[tally.positive_image] * tally.positive_counts[:, 0]
        positives = np.bincount(tally.positive_category, weights, minlength=len(out)).astype(np.int64)
    for k in range(len(out)):
        rows: Any = np.arange(starts[k], starts[k + 1])
        if copies is not None:
            rows = np.repeat(rows, copies[tally.image[rows]])
        errors = tally.errors[rows]
        hits = np.flatnonzero(~np.isnan(errors[:, 0]))
        out[k] = class_error(hits, tally.scores[rows], errors[hits], int(positives[k]))
    classes = [name for _, name in tally.categories]
    for column, name in enumerate(names):
        out[has_rule(tally.protocol, classes, name), column] = np.nan
    return out


def mean_errors(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each error over the classes with that error, shape (E,); NaN if there are none."""
    known = ~np.isnan(errors).all(axis=0)
    out = np.full(errors.shape[1], np.nan)
    for column in np.flatnonzero(known).tolist():
        out[column] = np.nanmean(np.ascontiguousarray(errors[:, column]))
    return out


def detection_score(mean_ap: float, means: NDArray[np.float64]) -> float:
    """Return nuScenes' detection score: the weighted mean of the mean AP and of ``max(0, 1 - error)`` for each error."""
    scores = [max(0.0, 1.0 - error) for error in means.tolist()]
    return float(AP_WEIGHT * mean_ap + np.sum(scores)) / float(AP_WEIGHT + len(scores))
