"""Confusion matrix of classes, by the matching of AP or by the rules of other tools."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from detmap.detection.arrangement import Arrangement, least_overlaps
from detmap.detection.matches import HIT, IGNORED, MISS
from detmap.detection.protocols import UNLIMITED
from detmap.diagnostics._pairs import Overlaps, overlaps, take_in_order
from detmap.diagnostics._registry import Finding, Part, Rows, number, rows_of
from detmap.errors import OptionError, check_choice
from detmap.kernels import readonly

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

Match = Literal["ap", "ultralytics", "supervision"]

#: Default minimum score and IoU threshold of each `match`; None means the values of the diagnosis.
DEFAULTS: dict[str, tuple[float | None, float | None]] = {
    "ap": (None, None),
    "ultralytics": (0.25, 0.45),
    "supervision": (0.3, 0.5),
}

#: Maximum number of confused pairs of classes in the table, and of example images of each pair.
_PAIRS, _EXAMPLES = 20, 3


class Confusion(Finding):
    """The finding of `confusion`.

    Attributes
    ----------
    matrix : ndarray of int64, shape (K + 1, K + 1)
        Rows are true classes, columns predicted classes. The last row counts detections without an object, and the last
        column objects that are not found.
    categories : tuple of str
        The K classes.
    score, iou : float
        Minimum score of a detection, and IoU threshold.
    entries : tuple of ndarray of int64, shape (n,)
        For each counted object, detection or pair, the row and column of its cell, and the index of its image in
        ``matches.image_ids``.
    """

    matrix: NDArray[np.int64]
    entries: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    categories: tuple[str, ...]
    score: float
    iou: float

    def to_dict(self) -> dict[str, Any]:
        """Return `Finding.to_dict` with ``categories`` and ``matrix`` added."""
        return {**super().to_dict(), "categories": list(self.categories), "matrix": self.matrix.tolist()}


def confusion(
    diagnosis: Diagnosis, *, score: float | None = None, iou: float | None = None, match: Match = "ap"
) -> Confusion:
    """Return the confusion matrix of detections above a score.

    Parameters
    ----------
    score : float, optional
        Minimum score. By default the diagnosis's score if `match` is ``ap``, else the tool's default.
    iou : float, optional
        The IoU threshold. By default the diagnosis's threshold if `match` is ``ap``, else the tool's default.
    match : {"ap", "ultralytics", "supervision"}
        ``ap``: first each class is matched as for AP. Then remaining detections are matched with objects of other
        classes, by descending score, each with the unmatched object that it overlaps most. A row therefore sums to the
        number of objects of a class, a column to the number of true and false positives of AP, and the diagonal holds
        the true positives. Ignored detections and objects are not counted. ``ultralytics`` (8.4): detections with
        scores above the minimum are matched in order of score, each with the unmatched object of any class that it
        overlaps most, by more than the threshold. ``supervision`` (0.31): detections with at least the minimum score
        are paired with the objects that they overlap by more than the threshold. Pairs are matched in descending order
        of overlap, but pairs of one class before all others. The two tools ignore no objects. The matrix of Ultralytics
        is the transpose, with predicted classes in rows.

    Returns
    -------
    Confusion
        ``matrix`` is the matrix; `rows` has a row for each of the most confused pairs of classes, with example images.
    """
    check_choice("match", match, DEFAULTS)
    least, threshold = DEFAULTS[match]
    chosen = ""
    if score is None:
        score = diagnosis.score if least is None else least
        if least is None and not diagnosis.score_is_given:
            chosen = ", where F1 of all classes together is best"
    score = number("score", score, finite=False)
    iou = (diagnosis.iou if threshold is None else threshold) if iou is None else number("iou", iou)
    if not 0 < iou <= 1:
        raise OptionError(f"iou must be above 0 and at most 1, not {iou!r}")
    truth, found, image = (_as_ap if match == "ap" else _as_others)(diagnosis, score, iou, match)
    size = len(diagnosis.categories)
    matrix = np.bincount(truth * (size + 1) + found, minlength=(size + 1) ** 2).reshape(size + 1, size + 1)
    hits = int(np.trace(matrix[:size, :size]))
    detected, objects = int(matrix[:, :size].sum()), int(matrix[:size].sum())
    metrics = {
        "score": score,
        "precision": hits / detected if detected else float("nan"),
        "recall": hits / objects if objects else float("nan"),
        "F1": 2 * hits / (detected + objects) if detected + objects else float("nan"),
    }
    tables = {
        "most confused": _confused(diagnosis, matrix, truth, found, image),
        "categories": _classes(diagnosis, matrix),
    }
    above = "above" if match == "ultralytics" else "of at least"
    notes = [f"detections of scores {above} {score:.4g}{chosen}; {diagnosis.named(iou)}"]
    made = Confusion("confusion", {"score": score, "iou": iou, "match": match}, metrics, tables, notes)
    made.matrix, made.categories = readonly(matrix, np.int64), tuple(diagnosis.categories)
    made.score, made.iou, made.entries = score, iou, (truth, found, image)
    return made


Cells = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _cells(
    size: int,
    truth: tuple[NDArray[np.int32], NDArray[np.int32]],
    found: tuple[NDArray[np.int32], NDArray[np.int32]],
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    shown: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> Cells:
    """Return row, column and image of each entry of the matrix. Each matched pair, unmatched object and unmatched
    detection is an entry.
    """
    # `truth` holds the categories and images of objects, `found` those of detections. `pairs` are the matched
    # detections and objects. `shown` holds two masks: of the objects, and of the detections, that count if unmatched.
    alone_truth, alone_found = shown[0].copy(), shown[1].copy()
    alone_found[pairs[0]] = False
    alone_truth[pairs[1]] = False
    lost, wrong = np.flatnonzero(alone_truth), np.flatnonzero(alone_found)
    rows = (truth[0][pairs[1]], truth[0][lost], np.full(wrong.size, size))
    columns = (found[0][pairs[0]], np.full(lost.size, size), found[0][wrong])
    images = (truth[1][pairs[1]], truth[1][lost], found[1][wrong])
    made = [np.concatenate(parts).astype(np.int64) for parts in (rows, columns, images)]
    return made[0], made[1], made[2]


def _as_ap(diagnosis: Diagnosis, score: float, iou: float, match: str) -> Cells:
    """Match as for AP, and then match the remaining detections across classes."""
    matches, truth = diagnosis.matched_at(iou), diagnosis.arranged.truth
    kept = matches.score >= score
    hits = np.flatnonzero(kept & (matches.outcome == HIT))
    objects = diagnosis.places[matches.ground_truth[hits]]
    free = diagnosis.counted.copy()
    free[objects] = False
    wrong = kept & (matches.outcome == MISS)
    least = float(least_overlaps(diagnosis.protocol, [iou])[0])
    near = _near(diagnosis, least)
    near = near.take(
        wrong[near.found] & free[near.truth] & (matches.category[near.found] != truth.category[near.truth])
    )
    made = _taken(near, diagnosis.arranged)
    return _cells(
        len(diagnosis.categories),
        (truth.category, truth.image),
        (matches.category, matches.image),
        (np.concatenate((hits, made.found)), np.concatenate((objects, made.truth))),
        (diagnosis.counted, kept & (matches.outcome != IGNORED)),
    )


def _near(diagnosis: Diagnosis, least: float) -> Overlaps:
    if least < diagnosis.floor:
        return overlaps(diagnosis.arranged, least, diagnosis.threads)
    return diagnosis.overlaps.take(diagnosis.overlaps.overlap >= least)


def _taken(near: Overlaps, arranged: Arrangement, same_first: bool = False) -> Overlaps:
    """Match greedily, and return the pairs that match. Pairs are visited in order, and a pair matches if its detection
    and its object are both unmatched.
    """
    # Pairs are sorted by score, row of the detection, overlap and row of the object. With `same_first`, pairs of one
    # class come before all others, and ties are sorted by overlap, row of the object, and row of the detection.
    found, truth = arranged.found, arranged.truth
    ties = truth.order[near.truth]
    if same_first:
        other = found.category[near.found] != truth.category[near.truth]
        order = np.lexsort((found.order[near.found], ties, -near.overlap, other))
    else:
        order = np.lexsort((ties, -near.overlap, found.order[near.found], -found.scores[near.found]))
    near = near.take(order)
    return near.take(take_in_order(near.found.tolist(), near.truth.tolist(), found.order.size, truth.order.size))


def _as_others(diagnosis: Diagnosis, score: float, iou: float, match: str) -> Cells:
    """Match by the rules of another tool, which have neither ignored objects nor a maximum number of detections."""
    truth = diagnosis.ground_truth
    plain = replace(truth, crowd=readonly(np.zeros(len(truth)), np.bool_))
    protocol = replace(diagnosis.protocol, ignore=(), crowd_overlap=False, max_dets=(UNLIMITED,))
    scores = diagnosis.detections.scores
    kept = scores > score if match == "ultralytics" else scores >= score
    arranged = Arrangement.of(plain, diagnosis.detections.take(kept), protocol, threads=diagnosis.threads)
    least = least_overlaps(replace(protocol, strict=True), [iou])[0]
    near = overlaps(arranged, float(least), diagnosis.threads)
    made = _taken(near, arranged, match == "supervision")
    found, objects = arranged.found, arranged.truth
    return _cells(
        len(diagnosis.categories),
        (objects.category, objects.image),
        (found.category, found.image),
        (made.found, made.truth),
        (np.ones(objects.order.size, np.bool_), np.ones(found.order.size, np.bool_)),
    )


def _confused(
    diagnosis: Diagnosis,
    matrix: NDArray[np.int64],
    truth: NDArray[np.int64],
    found: NDArray[np.int64],
    image: NDArray[np.int64],
) -> Rows:
    size = len(diagnosis.categories)
    inner = matrix[:size, :size].copy()
    np.fill_diagonal(inner, 0)
    objects = matrix[:size].sum(axis=1)
    flat = inner.ravel()
    rows: Rows = []
    for cell in np.argsort(-flat, kind="stable")[:_PAIRS].tolist():
        if not flat[cell]:
            break
        i, j = divmod(cell, size)
        at = np.unique(image[(truth == i) & (found == j)])[:_EXAMPLES]
        rows.append(
            {
                "object": diagnosis.categories[i],
                "found as": diagnosis.categories[j],
                "count": int(flat[cell]),
                "share": float(flat[cell] / objects[i]),
                "for example on": ", ".join(str(diagnosis.image_name(one)) for one in at.tolist()),
            }
        )
    return rows


def _classes(diagnosis: Diagnosis, matrix: NDArray[np.int64]) -> Rows:
    size = len(diagnosis.categories)
    inner, right = matrix[:size, :size], np.diag(matrix)[:size]
    columns = {"category": diagnosis.categories, "objects": matrix[:size].sum(axis=1), "found": right}
    columns |= {"found as another": inner.sum(axis=1) - right, "not found": matrix[:size, size]}
    columns |= {"detections": matrix[:, :size].sum(axis=0), "of another": inner.sum(axis=0) - right}
    return rows_of({**columns, "of nothing": matrix[size, :size]})


PART = Part("confusion", "which classes are taken for which", confusion)
