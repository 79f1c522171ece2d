"""TIDE by the rules of tidecv 1.0.1, which match and rank otherwise than COCO."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.arrangement import Arrangement
from detmap.diagnostics._errors import BKG, BOTH, CLS, DUPE, ERRORS, LOC, MISSED
from detmap.diagnostics._pairs import BACKGROUND
from detmap.hits import Hits
from detmap.ids import Categories, locate
from detmap.kernels import readonly
from detmap.matches import HIT, IGNORED, MISS, Matches, matches_of
from detmap.protocols import UNLIMITED
from detmap.tables import Detections

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

#: So many detections of an image count, whatever their classes.
CAP = 100

_GRID = np.arange(101) / 100


@dataclass(frozen=True, eq=False)
class Found:
    """What tidecv finds: `error` by detection in the order of ``diagnosis.matches``, 0 also where it looks at none."""

    error: NDArray[np.uint8]
    missed: NDArray[np.int32]
    counts: list[int]
    values: dict[str, float]


@dataclass(frozen=True, eq=False)
class _Points:
    """Scored points, in the order in which tidecv pushes them."""

    category: NDArray[np.int64]
    score: NDArray[np.float64]
    hit: NDArray[np.bool_]

    def then(self, other: _Points) -> _Points:
        columns = ((getattr(self, name), getattr(other, name)) for name in ("category", "score", "hit"))
        return _Points(*(np.concatenate(pair) for pair in columns))

    def take(self, rows: NDArray[np.bool_]) -> _Points:
        return _Points(self.category[rows], self.score[rows], self.hit[rows])

    def ap(self, positives: NDArray[np.int64]) -> float:
        """Return the mean over classes that have points or objects; without objects a class counts 0."""
        order = np.lexsort((-self.score, self.category))
        hit = self.hit[order]
        starts = np.concatenate(([0], np.cumsum(np.bincount(self.category, minlength=positives.size))))
        places = np.flatnonzero(hit)
        first = np.searchsorted(places, starts)
        ranks = places + 1 - np.repeat(starts[:-1], np.diff(first))
        hits = Hits(first, ranks, np.maximum(positives, np.diff(first)), np.diff(starts))
        precision, _ = hits.interpolate(_GRID, threads=1)
        ap = np.where(positives > 0, np.nan_to_num(precision).mean(axis=1), 0.0)
        shown = (np.diff(starts) > 0) | (positives > 0)
        return float(ap[shown].mean()) if shown.any() else float("nan")


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

    all_points = _Points(category, score, outcome == HIT)
    base = all_points.take(outcome != IGNORED)
    hits = all_points.take(outcome == HIT)
    ap = base.ap(positives)

    def mended(code: int, open_errors: NDArray[np.bool_], right: _Points) -> tuple[_Points, _Points]:
        """Return all points with the errors of a kind mended, and those of them that are right; errors come first."""
        own = open_errors & (error == code)
        fixed = own & best if code in (LOC, CLS) else np.zeros_like(own)
        moved = np.where(fixed & (error == CLS), np.append(kinds, -1)[target], category)
        shown = fixed | (open_errors & (error != code) & (outcome == MISS))
        errors = _Points(moved, score, fixed).take(shown)
        return errors.then(right), errors.take(errors.hit).then(right)

    values = {"AP": ap}
    every = error > 0
    for code, name in enumerate(ERRORS, 1):
        points, _ = mended(code, every, hits)
        values[f"dAP_{name}"] = max(points.ap(positives - fewer if code == MISSED else positives) - ap, 0.0)
    before, left, right, sought = ap, every.copy(), hits, positives
    for code, name in enumerate(ERRORS, 1):
        points, right = mended(code, left, right)
        left &= error != code
        sought = sought - fewer if code == MISSED else sought
        now = points.ap(sought)
        values[f"progressive_{name}"] = max(now - before, 0.0)
        before = now
    wrong = all_points.take(outcome == MISS)
    sorted_out = replace(wrong, score=np.zeros(wrong.score.size)).then(replace(hits, score=np.ones(hits.score.size)))
    values["dAP_FalsePos"] = sorted_out.ap(positives) - ap
    values["dAP_FalseNeg"] = wrong.then(hits).ap(positives - unfound) - ap

    counts = [int((error == code).sum()) for code in range(1, MISSED)]
    by_detection = np.zeros(len(found), np.uint8)
    by_detection[kept[matches.detection[order]]] = error
    return Found(
        by_detection[diagnosis.matches.detection], missing.astype(np.int32), [*counts, int(missing.size)], values
    )


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
