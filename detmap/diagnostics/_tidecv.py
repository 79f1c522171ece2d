"""TIDE by the rules of tidecv 1.0.1, which matches and ranks differently from COCO."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import Categories, locate
from detmap.data.tables import Detections
from detmap.detection.arrangement import Arrangement
from detmap.detection.matches import HIT, IGNORED, MISS, Matches, matches_of
from detmap.detection.protocols import COCO, UNLIMITED
from detmap.diagnostics._errors import BKG, BOTH, CLS, DUPE, ERRORS, LOC, MISSED
from detmap.diagnostics._pairs import BACKGROUND
from detmap.diagnostics._ranking import ap_of_hits, hits_of
from detmap.kernels import allocate, readonly, sorting

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

#: Maximum number of detections per image, over all classes.
CAP = 100

#: AP as in tidecv: precision at 101 recalls that differ slightly from COCO's.
_RULE = replace(COCO, recall_thresholds=tuple((np.arange(101) / 100).tolist()), epsilon=0.0)


@dataclass(frozen=True, eq=False)
class Found:
    """The findings of tidecv; `error` is the code of each detection's error in the order of ``diagnosis.matches``, or 0."""

    error: NDArray[np.uint8]
    missed: NDArray[np.int32]
    counts: list[int]
    values: dict[str, float]


@dataclass(frozen=True, eq=False)
class _Points:
    """The entries of the rankings of all classes, called points. Each detection has a point in the ranking of its
    class. A detection that is moved to another class by fixing its error has a second point, in the ranking of the
    other class.
    """

    #: The points sorted by category, descending score, and tidecv's order of detections; shape (n,).
    order: NDArray[np.int32]
    #: Indices in `order` of the points that share category and score with another point; shape (t,).
    tied: NDArray[np.int64]
    #: Group number of each tied point; shape (t,).
    group: NDArray[np.int64]
    #: Where each category starts; shape (K + 1,).
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, category: NDArray[np.int64], rank: NDArray[np.int64], push: NDArray[np.int64], size: int) -> _Points:
        """Sort points of `size` categories by `rank` of the score, then by `push`, the index in tidecv's order."""
        pushed, _ = _grouped(push, None, int(push.max(initial=-1)) + 1)
        ranked, _ = _grouped(rank, pushed, int(rank.max(initial=-1)) + 1)
        order, starts = _grouped(category, ranked, size)
        category, rank = category[order], rank[order]
        new = np.append(True, (category[1:] != category[:-1]) | (rank[1:] != rank[:-1]))[: order.size]
        tied = np.flatnonzero(~new | np.append(~new[1:], False)[: order.size])
        return cls(order, tied, np.cumsum(new[tied]), starts)

    def by(self, tier: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the points in ranking order. Ties are broken by `tier`, an integer from 0 to 3, then as in `order`."""
        if not self.tied.size:
            return self.order
        order, points = np.array(self.order), self.order[self.tied]
        order[self.tied] = points[np.argsort(self.group * 4 + tier[points], kind="stable")]
        return order

    def ap(self, shown: NDArray[np.bool_], hit: NDArray[np.bool_], positives: NDArray[np.int64]) -> float:
        """Return the mean AP over the points in the mask `shown`. A class without objects has AP 0 if it has shown
        points, else it is left out. `shown` and `hit` are in an order returned by `by`.
        """
        hits = hits_of(self.starts, hit, shown, positives)
        there = (hits.items > 0) | (positives > 0)
        return float(np.nan_to_num(ap_of_hits(hits, _RULE))[there].mean()) if there.any() else float("nan")


def _grouped(
    keys: NDArray[np.integer], order: NDArray[np.int32] | None, size: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Sort the indices `order` (by default all) stably by key, and return the start of each key from 0 to `size`."""
    out, starts = allocate((keys.size, np.int32), (size + 1, np.int64))
    sorting.group_by(readonly(keys, np.int32), readonly(() if order is None else order, np.int32), out, starts)
    return out, starts


def tidecv(diagnosis: Diagnosis) -> Found:
    """Return the errors and gains by tidecv's rules, at the threshold of the diagnosis."""
    truth, found = diagnosis.ground_truth, diagnosis.detections
    place = np.arange(truth.images.ids.size) if truth.images.order is None else truth.images.order
    image = place[locate(found.images.ids, truth.images.ids)][found.images.codes]
    kept = _within_cap(image, found.scores)
    matches, last = _matched(diagnosis, found if kept.size == len(found) else found.take(kept))
    order, rank = _in_turn(matches, place)
    category = matches.category[order].astype(np.int64)
    outcome = matches.outcome[order]
    assert matches.same is not None
    assert matches.other is not None
    assert matches.same_overlap is not None
    assert matches.other_overlap is not None
    outcome = np.where((outcome == IGNORED) & ~(matches.overlap[order] > diagnosis.iou), MISS, outcome)
    same, other = (np.nan_to_num(column[order]) for column in (matches.same_overlap, matches.other_overlap))
    near = same >= BACKGROUND
    error = np.select(
        [
            outcome == HIT,
            near & (same <= diagnosis.iou),
            other >= diagnosis.iou,
            near,
            np.maximum(same, other) <= BACKGROUND,
        ],
        [0, LOC, CLS, DUPE, BKG],
        BOTH,
    ).astype(np.uint8)

    pointed = np.select([error == LOC, error == CLS], [matches.same[order], matches.other[order]], -1)
    target = _reversed(last, pointed)
    taken = np.zeros(len(truth), np.bool_)
    taken[_reversed(last, matches.ground_truth[order][outcome == HIT])] = True
    pointing = np.flatnonzero(target >= 0)
    pointing = pointing[~taken[target[pointing]]]
    # For each object, keep the detection with the highest score that points to the object; of equal scores, keep the
    # first.
    none = order.size * (order.size + 1)
    first = np.full(len(truth), none)
    np.minimum.at(first, target[pointing], rank[pointing] * order.size + pointing)
    usable = first < none
    best = np.zeros(order.size, np.bool_)
    best[first[usable] % max(order.size, 1)] = True

    names = {key: k for k, (key, _) in enumerate(matches.categories)}
    kinds = np.array([names.get(key, -1) for key in truth.categories.ids.tolist()], np.int64)[truth.categories.codes]
    counted = ~truth.crowd & (kinds >= 0)
    missing = np.flatnonzero(counted & ~taken & ~usable)
    size = len(matches.categories)
    positives = np.bincount(kinds[counted], minlength=size)
    fewer = np.bincount(kinds[missing], minlength=size)
    unfound = np.bincount(kinds[counted & ~taken], minlength=size)

    values = _values(
        _Errors(
            np.append(category, kinds[target[best & (error == CLS)]]),
            np.append(rank, rank[best & (error == CLS)]),
            np.append(np.arange(order.size), np.flatnonzero(best & (error == CLS))),
            error,
            outcome,
            best,
        ),
        positives,
        fewer,
        unfound,
    )
    counts = [int((error == code).sum()) for code in range(1, MISSED)]
    by_detection = np.zeros(len(found), np.uint8)
    by_detection[kept[matches.detection[order]]] = error
    return Found(
        by_detection[diagnosis.arranged.found.order], missing.astype(np.int32), [*counts, int(missing.size)], values
    )


class _Errors(NamedTuple):
    """Detections with their errors. `best` flags the detection with the highest score among those that point to the
    same unfound object. If its error is Cls, fixing the error moves the detection to the object's category.

    `category`, `rank` (the rank of the score) and `push` (the index in tidecv's order) have one value per detection,
    followed by one value per moved detection. The other columns have one value per detection.
    """

    category: NDArray[np.int64]
    rank: NDArray[np.int64]
    push: NDArray[np.int64]
    error: NDArray[np.uint8]
    outcome: NDArray[np.uint8]
    best: NDArray[np.bool_]


class _View(NamedTuple):
    """The points in one ranking order, see `_Points`. `lone` flags points of classes without objects."""

    error: NDArray[np.uint8]
    hit: NDArray[np.bool_]
    miss: NDArray[np.bool_]
    copy: NDArray[np.bool_]
    placed: NDArray[np.bool_]
    lone: NDArray[np.bool_]


def _values(
    found: _Errors, positives: NDArray[np.int64], fewer: NDArray[np.int64], unfound: NDArray[np.int64]
) -> dict[str, float]:
    """Return AP and the gains. `positives`, `fewer` and `unfound` are numbers of objects by class: all objects, objects
    with the error Miss, and objects that are not found.
    """
    points = _Points.of(found.category, found.rank, found.push, positives.size)
    copies = found.push.size - found.error.size
    copy = np.arange(found.push.size) >= found.error.size
    error = np.append(found.error, np.zeros(copies, np.uint8))
    hit = np.append(found.outcome == HIT, np.zeros(copies, np.bool_))
    miss = np.append(found.outcome == MISS, np.zeros(copies, np.bool_))
    placed = (error == LOC) & np.append(found.best, np.zeros(copies, np.bool_))
    lone = (positives == 0)[found.category]

    def view(order: NDArray[np.int32]) -> _View:
        return _View(error[order], hit[order], miss[order], copy[order], placed[order], lone[order])

    # Of detections with equal scores, tidecv ranks errors first, then fixed detections (the last fixed first), then hits.
    plain = first = second = third = view(points.order)
    if points.tied.size:
        first = view(points.by(hit.astype(np.int64)))
        second = view(points.by(np.select([hit, copy], [2, 1], 0)))
        third = view(points.by(np.select([hit, copy, placed], [3, 2, 1], 0)))

    def mended(kinds: set[int], at: _View) -> float:
        shown, right = at.hit | at.miss, at.hit.copy()
        for code in kinds:
            shown &= at.error != code
            if code in (CLS, LOC):
                fixed = at.copy if code == CLS else at.placed
                shown |= fixed
                right |= fixed
        return points.ap(shown, right, positives - fewer if MISSED in kinds else positives)

    ap = points.ap(plain.hit | plain.miss, plain.hit, positives)
    values = {"AP": ap}
    for code, name in enumerate(ERRORS, 1):
        values[f"dAP_{name}"] = max(mended({code}, first) - ap, 0.0)
    before, done = ap, set[int]()
    for code, name in enumerate(ERRORS, 1):
        done.add(code)
        now = mended(done, first if code == CLS else second if code == LOC else third)
        values[f"progressive_{name}"] = max(now - before, 0.0)
        before = now
    # FalsePos removes the false positives of classes with objects. Classes without objects keep their false positives,
    # so their AP stays 0.
    values["dAP_FalsePos"] = points.ap(plain.hit | (plain.miss & plain.lone), plain.hit, positives) - ap
    values["dAP_FalseNeg"] = points.ap(first.hit | first.miss, first.hit, positives - unfound) - ap
    return values


def _within_cap(image: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows of the `CAP` best detections of each image, by score. Ties are broken by row."""
    full = np.bincount(image, minlength=1) > CAP
    if not full.any():
        return np.arange(image.size)
    rows = np.flatnonzero(full[image])
    push = rows[np.lexsort((-scores[rows], image[rows]))]
    ahead = np.arange(push.size) - np.searchsorted(image[push], image[push])
    keep = np.ones(image.size, np.bool_)
    keep[push[ahead >= CAP]] = False
    return np.flatnonzero(keep)


def _in_turn(matches: Matches, place: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the rows of matches in tidecv's order, and the rank of each row's score."""
    # tidecv visits images in file order, and detections of an image by descending score. Equal scores share a rank.
    row = np.full(int(matches.detection.max(initial=-1)) + 1, -1)
    row[matches.detection] = np.arange(len(matches))
    row = row[row >= 0]
    scores = matches.score[row]
    down = np.argsort(-scores, kind="stable")
    row, scores = row[down], scores[down]
    rank = np.empty(row.size, np.int64)
    rank[row] = np.cumsum(np.append(False, scores[1:] != scores[:-1])[: row.size])
    order, _ = _grouped(place[matches.image], readonly(row, np.int32), place.size)
    return order, rank[order]


def _matched(diagnosis: Diagnosis, found: Detections) -> tuple[Matches, int]:
    """Match by tidecv's rules. Return the matches, with objects in reverse order, and the row of the last object."""
    # If overlaps are equal, tidecv matches the first object, and COCO's rule the last one, so the objects are reversed.
    # Classes with detections but no objects are added.
    truth = diagnosis.ground_truth
    rows = np.arange(len(truth))[::-1]
    known = truth.categories
    ids = known.ids
    if found.categories.ids.size and found.categories.ids.dtype.kind == ids.dtype.kind:
        ids = np.union1d(ids, found.categories.ids)
    names = dict(zip(known.ids.tolist(), known.names, strict=True))
    categories = Categories(
        readonly(ids, ids.dtype),
        readonly(locate(known.ids, ids)[known.codes], np.int32),
        tuple(names.get(key, str(key)) for key in ids.tolist()),
    )
    protocol = replace(
        diagnosis.protocol,
        max_dets=(UNLIMITED,),
        matching="best-free",
        strict=False,
        ignore=("crowd",),
        crowd_overlap=True,
        use_categories=True,
    )
    arranged = Arrangement.of(
        replace(truth, categories=categories).take(rows),
        replace(found, missing_classes="zero"),
        protocol,
        threads=diagnosis.threads,
    )
    whole = protocol.area_ranges[0][0]
    return matches_of(arranged, diagnosis.iou, whole, BACKGROUND, diagnosis.threads), len(truth) - 1


def _reversed(last: int, rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Convert rows of the reversed ground truth to rows of the ground truth; -1 stays -1."""
    return np.where(rows >= 0, last - rows.astype(np.int64), -1)
