"""TIDE by the rules of tidecv 1.0.1, which match and rank otherwise than COCO."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.arrangement import Arrangement
from detmap.diagnostics._errors import BKG, BOTH, CLS, DUPE, ERRORS, LOC, MISSED
from detmap.diagnostics._pairs import BACKGROUND
from detmap.diagnostics._ranking import average_precision
from detmap.ids import Categories, locate
from detmap.kernels import readonly
from detmap.matches import HIT, IGNORED, MISS, Matches, matches_of
from detmap.protocols import COCO, UNLIMITED
from detmap.tables import Detections

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

#: So many detections of an image count, whatever their classes.
CAP = 100

#: Its AP: precision at 101 recalls, which are not quite those of COCO.
_RULE = replace(COCO, recall_thresholds=tuple((np.arange(101) / 100).tolist()), epsilon=0.0)


@dataclass(frozen=True, eq=False)
class Found:
    """What tidecv finds: `error` by detection in the order of ``diagnosis.matches``, 0 also where it looks at none."""

    error: NDArray[np.uint8]
    missed: NDArray[np.int32]
    counts: list[int]
    values: dict[str, float]


@dataclass(frozen=True, eq=False)
class _Points:
    """All points that there could be, sorted once: every detection, and copies of those that go to another class.

    Attributes
    ----------
    order : ndarray of int64, shape (n,)
        The points by category, descending score, and the order in which tidecv comes to their detections.
    group : ndarray of int64, shape (n,)
        Equal for points of one category and score, in that order.
    starts : ndarray of int64, shape (K + 1,)
        Where each category starts.
    """

    order: NDArray[np.int64]
    group: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, category: NDArray[np.int64], score: NDArray[np.float64], push: NDArray[np.int64], size: int) -> _Points:
        """Sort points of so many categories; `push` is the place of each one's detection."""
        order = np.lexsort((push, -score, category))
        category, score = category[order], score[order]
        new = np.append(True, (category[1:] != category[:-1]) | (score[1:] != score[:-1]))[: order.size]
        starts = np.concatenate(([0], np.cumsum(np.bincount(category, minlength=size))))
        return cls(order, np.cumsum(new), starts)

    def by(self, tier: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the order in which those of equal score stand by their `tier`, below 4, first."""
        return self.order[np.argsort(self.group * 4 + tier[self.order], kind="stable")]

    def ap(
        self,
        order: NDArray[np.int64],
        shown: NDArray[np.bool_],
        hit: NDArray[np.bool_],
        positives: NDArray[np.int64],
    ) -> float:
        """Return the mean over classes that have points or objects, of those `shown`; without objects a class counts 0."""
        counts = shown[order]
        ap = average_precision(self.starts, hit[order], counts, positives, _RULE)
        total = np.concatenate(([0], np.cumsum(counts)))
        there = (total[self.starts[1:]] > total[self.starts[:-1]]) | (positives > 0)
        return float(np.nan_to_num(ap)[there].mean()) if there.any() else float("nan")


def tidecv(diagnosis: Diagnosis) -> Found:
    """Return the errors and gains by tidecv's rules, at the threshold of the diagnosis."""
    truth, found = diagnosis.ground_truth, diagnosis.detections
    place = np.arange(truth.images.ids.size) if truth.images.order is None else truth.images.order
    image = place[locate(found.images.ids, truth.images.ids)][found.images.codes]
    # Image by image as the file has them, the best score first, 100 of each.
    push = np.lexsort((-found.scores, image))
    ahead = np.arange(push.size) - np.searchsorted(image[push], image[push])
    kept = np.sort(push[ahead < CAP])
    matches, last = _matched(diagnosis, found.take(kept))
    # Rows of both in the order in which tidecv comes to them.
    order = np.lexsort((matches.detection, -matches.score, place[matches.image]))
    category, score = matches.category[order].astype(np.int64), matches.score[order]
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
    by_score = pointing[np.lexsort((pointing, -score[pointing], target[pointing]))]
    best = np.zeros(order.size, np.bool_)
    best[by_score[np.append(True, np.diff(target[by_score]) != 0)[: by_score.size]]] = True
    usable = np.zeros(len(truth), np.bool_)
    usable[target[pointing]] = True

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
            np.append(score, score[best & (error == CLS)]),
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
    """Category, score and place of every detection and then of copies of the best Cls, in the class of their objects.

    Of the detections alone: error, outcome, and whether one is the best of those that point to an object.
    """

    category: NDArray[np.int64]
    score: NDArray[np.float64]
    push: NDArray[np.int64]
    error: NDArray[np.uint8]
    outcome: NDArray[np.uint8]
    best: NDArray[np.bool_]


def _values(
    found: _Errors, positives: NDArray[np.int64], fewer: NDArray[np.int64], unfound: NDArray[np.int64]
) -> dict[str, float]:
    """Return AP and the gains, of classes with so many objects, of which some are misses, or not found at all."""
    points = _Points.of(found.category, found.score, found.push, positives.size)
    copies = found.push.size - found.error.size
    copy = np.arange(found.push.size) >= found.error.size
    error = np.append(found.error, np.zeros(copies, np.uint8))
    hit = np.append(found.outcome == HIT, np.zeros(copies, np.bool_))
    miss = np.append(found.outcome == MISS, np.zeros(copies, np.bool_))
    placed = (error == LOC) & np.append(found.best, np.zeros(copies, np.bool_))
    # After each mending errors are pushed first, and then what is right: what the last mending made so, and so on.
    first = points.by(hit.astype(np.int64))
    second = points.by(np.select([hit, copy], [2, 1], 0))
    third = points.by(np.select([hit, copy, placed], [3, 2, 1], 0))

    def mended(kinds: set[int], order: NDArray[np.int64]) -> float:
        shown, right = hit | miss, hit.copy()
        for code in kinds:
            shown &= error != code
            if code in (CLS, LOC):
                fixed = copy if code == CLS else placed
                shown |= fixed
                right |= fixed
        return points.ap(order, shown, right, positives - fewer if MISSED in kinds else positives)

    ap = points.ap(points.order, hit | miss, hit, positives)
    values = {"AP": ap}
    for code, name in enumerate(ERRORS, 1):
        values[f"dAP_{name}"] = max(mended({code}, first) - ap, 0.0)
    before, done = ap, set[int]()
    for code, name in enumerate(ERRORS, 1):
        done.add(code)
        now = mended(done, first if code == CLS else second if code == LOC else third)
        values[f"progressive_{name}"] = max(now - before, 0.0)
        before = now
    # All false positives stand behind all hits: of a class without objects they are all there is, and it counts 0.
    lone = (positives == 0)[found.category]
    values["dAP_FalsePos"] = points.ap(points.order, hit | (miss & lone), hit, positives) - ap
    values["dAP_FalseNeg"] = points.ap(first, hit | miss, hit, positives - unfound) - ap
    return values


def _matched(diagnosis: Diagnosis, found: Detections) -> tuple[Matches, int]:
    """Return tidecv's matches, and the last row of the ground truth, which is matched in reverse.

    Among equal overlaps tidecv takes the first object and COCO's rule the last: in reverse they are the same. Classes that
    only detections have count too.
    """
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
    """Return rows of the ground truth of rows of it in reverse; -1 stays."""
    return np.where(rows >= 0, last - rows.astype(np.int64), -1)
