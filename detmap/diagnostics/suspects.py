"""Labels that may be wrong because detections disagree with them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import used
from detmap.data.tables import Detections
from detmap.detection.arrangement import Arrangement, least_overlaps
from detmap.detection.matches import HIT
from detmap.diagnostics._errors import BKG, errors
from detmap.diagnostics._pairs import overlaps
from detmap.diagnostics._registry import Finding, Part, Rows, number
from detmap.errors import OptionError, check_integer
from detmap.kernels import readonly

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

REASONS = ("no label", "other class", "never found", "labelled twice")


def suspects(diagnosis: Diagnosis, *, most: int = 100, duplicate: float = 0.9) -> Finding:
    """Return labels to review, the most suspicious ones first.

    * ``no label``: a detection that overlaps no object of any class. Its score is at least the diagnosis's score. The
      suspicion is the precision of the detections of its class with the same or a higher score.
    * ``other class``: an object that is not covered by detections of its own class, but by detections of one other class
      whose scores are at least the diagnosis's score. The suspicion is computed as for ``no label``, from the best of
      these detections.
    * ``never found``: an object that no detection overlaps. The suspicion is the recall of its class.
    * ``labelled twice``: two objects of one image that overlap by `duplicate` or more. The suspicion is this overlap.

    Parameters
    ----------
    most : int
        Maximum number of rows.
    duplicate : float
        Minimum overlap of two objects that are reported as ``labelled twice``.

    Returns
    -------
    Finding
        The number of suspects of each kind. `rows` are the most suspicious labels, with ``suspicion`` between 0 and 1,
        the reason, and row numbers in the tables of ground truth (``object``, ``other object``) and detections
        (``detection``), or -1.
    """
    check_integer("most", most, 1)
    if not 0 < number("duplicate", duplicate) <= 1:
        raise OptionError(f"duplicate must be above 0 and at most 1, not {duplicate!r}")
    found = [_unlabelled(diagnosis), *_unfound(diagnosis), _twice(diagnosis, float(duplicate))]
    columns = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    reason = np.repeat(np.arange(4), [part[0].size for part in found])
    order = np.lexsort((columns[2], columns[1], reason, -columns[0]))[:most].tolist()
    rows: Rows = [_row(diagnosis, int(reason[at]), *(column[at].item() for column in columns)) for at in order]
    metrics = {name: int(part[0].size) for name, part in zip(REASONS, found, strict=True)}
    notes = [f"detections of score {diagnosis.score:.4g} or more, at {diagnosis.at}"]
    return Finding("suspects", {"most": most, "duplicate": duplicate}, metrics, {"suspects": rows}, notes)


#: Four columns with an element per suspect: the suspicion, the row of an object, the row of a second object, and the
#: row of a detection. A missing row is -1.
_Found = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _made(suspicion: NDArray[Any], first: Any = None, second: Any = None, detection: Any = None) -> _Found:
    none = np.full(suspicion.size, -1)
    columns = [none if column is None else np.asarray(column, np.int64) for column in (first, second, detection)]
    return suspicion.astype(np.float64), columns[0], columns[1], columns[2]


def _precision(diagnosis: Diagnosis) -> NDArray[np.float64]:
    """Return, for each detection, the precision of its class up to the detection's rank."""
    ranking = diagnosis.ranking
    first = ranking.starts[:-1][ranking.category]
    total = np.concatenate(([0], np.cumsum(ranking.outcome == HIT)))
    share = (total[1:] - total[first]) / (np.arange(ranking.order.size) - first + 1)
    out = np.empty(ranking.order.size)
    out[ranking.order] = share
    return out


def _unlabelled(diagnosis: Diagnosis) -> _Found:
    matches = diagnosis.matches
    alone = (errors(diagnosis) == BKG) & (matches.score >= diagnosis.score)
    alone[diagnosis.overlaps.found] = False  # these detections overlap an object, which may be an ignored crowd
    at = np.flatnonzero(alone)
    return _made(_precision(diagnosis)[at], detection=matches.detection[at])


def _unfound(diagnosis: Diagnosis) -> tuple[_Found, _Found]:
    """Return the suspects ``other class`` and ``never found``."""
    matches, truth, near = diagnosis.matches, diagnosis.arranged.truth, diagnosis.overlaps
    size = truth.order.size
    touched, own = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    touched[near.truth] = True
    least = float(least_overlaps(diagnosis.protocol, [diagnosis.iou])[0])
    near = near.take(near.overlap >= least)
    same = matches.category[near.found] == truth.category[near.truth]
    own[near.truth[same]] = True
    # Keep pairs of different classes if the score is high enough and no detection of the object's class covers the
    # object.
    sure = ~same & (matches.score[near.found] >= diagnosis.score)
    sure &= (diagnosis.counted & ~own)[near.truth]
    near = near.take(sure)
    order = np.lexsort((-matches.score[near.found], near.truth))
    near = near.take(order)
    kinds = matches.category[near.found]
    lowest, highest = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
    np.minimum.at(lowest, near.truth, kinds)
    np.maximum.at(highest, near.truth, kinds)
    first = np.append(True, near.truth[1:] != near.truth[:-1])[: near.truth.size]
    best = near.take(first & (lowest == highest)[near.truth])
    flipped = _made(_precision(diagnosis)[best.found], truth.order[best.truth], detection=matches.detection[best.found])
    hits = np.bincount(matches.category[matches.outcome == HIT], minlength=diagnosis.positives.size)
    recall = hits / np.maximum(diagnosis.positives, 1)
    lost = np.flatnonzero(diagnosis.counted & ~touched)
    return flipped, _made(recall[truth.category[lost]], truth.order[lost])


def _twice(diagnosis: Diagnosis, least: float) -> _Found:
    """Return the suspects ``labelled twice``: pairs of objects on one image that overlap by at least `least`."""
    truth = diagnosis.ground_truth
    real = truth.take(~truth.crowd)
    rows = np.flatnonzero(~truth.crowd)
    every = np.ones(len(real), np.bool_)
    as_found = Detections(
        images=used(real.images, every),
        categories=used(real.categories, every),
        shapes=real.shapes,
        scores=readonly(np.ones(len(real)), np.float64),
        source=truth.source,
    )
    protocol = replace(diagnosis.protocol, max_dets=(2**31 - 1,))
    arranged = Arrangement.of(real, as_found, protocol, threads=diagnosis.threads)
    near = overlaps(arranged, least, diagnosis.threads)
    one, other = rows[arranged.found.order[near.found]], rows[arranged.truth.order[near.truth]]
    once = one < other
    return _made(np.minimum(near.overlap[once], 1.0), one[once], other[once])


def _row(
    diagnosis: Diagnosis, reason: int, suspicion: float, first: int, second: int, detection: int
) -> dict[str, Any]:
    truth, found = diagnosis.ground_truth, diagnosis.detections

    def named(row: int) -> str:
        return str(truth.categories.names[truth.categories.codes[row]])

    label = named(first) if first >= 0 else ""
    seen = ""
    if detection >= 0:
        key = found.categories.ids[found.categories.codes[detection]]
        seen = truth.categories.names[int(np.searchsorted(truth.categories.ids, key))]
        score = float(found.scores[detection])
    says = {
        0: lambda: f"{seen} found with score {score:.3g} where no label is",
        1: lambda: f"labelled {label}, found as {seen} with score {score:.3g}",
        2: lambda: f"no detection touches this {label}",
        3: lambda: f"{label} and {named(second)} overlap by {suspicion:.3g}",
    }[reason]()
    if first >= 0:
        image = int(truth.images.codes[first])
    else:
        image = int(np.searchsorted(truth.images.ids, found.images.ids[found.images.codes[detection]]))
    return {
        "suspicion": suspicion,
        "kind": REASONS[reason],
        "reason": says,
        "image": str(diagnosis.image_name(image)),
        "object": first,
        "other object": second,
        "detection": detection,
    }


PART = Part("suspects", "labels that may well be wrong", suspects)
