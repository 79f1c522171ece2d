"""TIDE: classifies every false positive and missed object into one kind of error, and measures the cost of each kind in
AP.

D. Bolya, S. Foley, J. Hays and J. Hoffman, TIDE: A General Toolbox for Identifying Object Detection Errors, 2020.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matches import HIT, IGNORED, MISS
from detmap.diagnostics._errors import BKG, BOTH, CLS, DUPE, ERRORS, LOC, MISSED, errors
from detmap.diagnostics._ranking import average_precision, hits_first, mean
from detmap.diagnostics._registry import Finding, Part, Rows, rows_of
from detmap.diagnostics._tidecv import tidecv
from detmap.errors import check_choice

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

#: The definition of each error, for tables.
MEANING = {
    "Cls": "covers an object of another class",
    "Loc": "lies beside an object of its class",
    "Both": "lies beside an object of another class",
    "Dupe": "covers an object that a detection of higher score has found",
    "Bkg": "lies where there is no object",
    "Miss": "an object that nothing found or came close to",
    "FalsePos": "all false positives at once",
    "FalseNeg": "all objects that were not found at once",
}


class Tide(Finding):
    """The finding of `tide`.

    Attributes
    ----------
    error : ndarray of uint8, shape (n,)
        For each detection in the order of ``diagnosis.matches``: 0 for no error, else 1 plus its index in `ERRORS`.
    missed : ndarray of int32
        Rows of the objects with the error Miss in the ground-truth table: objects that are not found, and to which no
        Cls or Loc points.
    """

    error: NDArray[np.uint8]
    missed: NDArray[np.int32]


def tide(diagnosis: Diagnosis, *, rules: Literal["detmap", "tidecv"] = "detmap") -> Tide:
    """Return the six errors of TIDE, and the gain in AP from fixing each of them.

    Every false positive has one error, the first in this list that applies: Loc (overlaps an object of its own class by
    0.1 or more, but less than the threshold), Cls (overlaps an object of another class by the threshold or more), Dupe
    (overlaps a matched object of its own class by the threshold or more), Both (overlaps an object of another class by
    0.1 or more), Bkg (any other). Loc and Cls point to the object that the detection overlaps most, of its own or of
    another class. An object has the error Miss if it is not found and no Loc or Cls points to it.

    Errors are fixed as follows. Of the detections with Loc or Cls that point to the same unfound object, the detection
    with the highest score becomes a hit of the object's class. Every other false positive is removed. Objects with the
    error Miss are removed. AP is then computed from the changed data. A class that has no objects left is excluded from
    the mean. If no class is left, AP is undefined.

    Parameters
    ----------
    rules : {"detmap", "tidecv"}
        ``detmap`` uses the matching of the protocol: every detection is a hit, ignored, or an error. AP is the AP of
        `detmap.evaluate` at this threshold. With all errors fixed, AP is 1, or NaN if no object is left. Under a
        protocol that repeats matching at each score, such as KITTI's, AP is computed after the first matching, over all
        levels together, and is not the benchmark's AP. ``tidecv`` reproduces tidecv 1.0.1, which differs as follows. It
        keeps at most 100 detections per image, over all classes. Of equal overlaps, it matches the first object.
        Ignored detections can be errors. A class that has detections but no objects has AP 0. Fixed errors rank before
        other detections of the same score, so that ties alone can change AP.

    Returns
    -------
    Tide
        ``AP``, and gains in AP: ``dAP_Cls`` and so on if only errors of this kind are fixed, ``dAP_FalsePos`` if all
        false positives are removed, ``dAP_FalseNeg`` if all objects that are not found are removed. A gain is NaN if AP
        is undefined before or after the fix. In `rows`, ``progressive`` is the gain when the errors of the rows above
        are already fixed.
    """
    check_choice("rules", rules, ("detmap", "tidecv"))
    if rules == "tidecv":
        found = tidecv(diagnosis)
        return _finding(found.error, found.missed, found.counts, found.values, (), rules)
    matches, ranking = diagnosis.matches, diagnosis.ranking
    error = errors(diagnosis)
    mend = Mending(diagnosis, error)
    counts = [*np.bincount(error, minlength=7)[1:7].tolist()]
    missed = mend.missed
    counts[MISSED - 1] = missed.size
    ap = diagnosis.ap
    values = {"AP": ap}
    for code, name in enumerate(ERRORS, 1):
        values[f"dAP_{name}"] = mend.ap({code}) - ap
    last, mended = ap, set[int]()
    for code, name in enumerate(ERRORS, 1):
        mended.add(code)
        now = mend.ap(mended)
        values[f"progressive_{name}"] = now - last
        last = now
    hits = np.bincount(matches.category[matches.outcome == HIT], minlength=ranking.positives.size)
    values["dAP_FalsePos"] = mean(ranking.ap_of(np.where(ranking.outcome == MISS, IGNORED, ranking.outcome))) - ap
    values["dAP_FalseNeg"] = mean(ranking.ap_of(ranking.outcome, hits)) - ap
    per_class = np.zeros((ranking.positives.size, 7), np.int64)
    np.add.at(per_class, (matches.category, error), 1)
    lost = diagnosis.arranged.truth.category[diagnosis.places[missed]]
    per_class[:, MISSED] = np.bincount(lost, minlength=ranking.positives.size)
    of_class = {"category": diagnosis.categories, "AP": ranking.ap, "objects": ranking.positives, "hits": hits}
    of_class |= {name: per_class[:, code] for code, name in enumerate(ERRORS, 1)}
    return _finding(error, missed, counts, values, rows_of(of_class), rules)


def _finding(
    error: NDArray[np.uint8],
    missed: NDArray[np.int32],
    counts: list[int],
    values: dict[str, float],
    by_class: Rows | tuple[()],
    rules: str,
) -> Tide:
    special: Rows = [
        {"error": name, "dAP": values[f"dAP_{name}"], "meaning": MEANING[name]} for name in ("FalsePos", "FalseNeg")
    ]
    main: Rows = [
        {
            "error": name,
            "count": count,
            "dAP": values[f"dAP_{name}"],
            "progressive": values[f"progressive_{name}"],
            "meaning": MEANING[name],
        }
        for name, count in zip(ERRORS, counts, strict=True)
    ]
    metrics = {name: value for name, value in values.items() if not name.startswith("progressive")}
    tables = {"errors": main, "special errors": special}
    if by_class:
        tables["categories"] = list(by_class)
    notes = ["dAP: what AP gains if errors of this kind alone are mended; progressive: on top of the rows before"]
    made = Tide("tide", {"rules": rules}, metrics, tables, notes)
    made.error, made.missed = error, missed
    return made


class Mending:
    """A ranking of detections whose errors can be fixed, with entries sorted by category. If fixing Cls moves a
    detection to another category, the detection has an entry in both categories.

    `rows` holds the detection of each entry, as a row of ``diagnosis.matches``. `starts` holds the first entry of each
    category. `missed` are the objects with the error Miss.
    """

    def __init__(self, diagnosis: Diagnosis, error: NDArray[np.uint8]) -> None:
        matches, ranking = diagnosis.matches, diagnosis.ranking
        self.protocol, self.positives, self.ranking = matches.protocol, ranking.positives, ranking
        assert matches.same is not None
        assert matches.other is not None
        places = diagnosis.places
        # A detection with the error Loc or Cls points to an object. Among the detections that point to the same unfound
        # object, the one with the highest score is fixed.
        target = np.select([error == LOC, error == CLS], [matches.same, matches.other], -1).astype(np.int64)
        pointing = np.flatnonzero(target >= 0)
        pointing = pointing[diagnosis.found[places[target[pointing]]] < 0]
        pointing = pointing[np.lexsort((pointing, -matches.score[pointing], target[pointing]))]
        first = np.append(True, np.diff(target[pointing]) != 0)[: pointing.size]
        best = pointing[first]
        reached = np.zeros(len(diagnosis.ground_truth), np.bool_)
        reached[target[best]] = True
        self.missed = matches.missed[~reached[matches.missed]]
        truth = diagnosis.arranged.truth.category
        self.fewer = np.bincount(truth[places[self.missed]], minlength=self.positives.size)
        # Each detection whose error Cls is fixed gets a second entry, in the category of its object.
        moved = best[error[best] == CLS]
        to = truth[places[target[moved]]].astype(np.int64)
        tie = matches.tie_keys()
        at = _insertions(ranking.starts, ranking.scores, tie[ranking.order], to, matches.score[moved], tie[moved])
        order = np.lexsort((tie[moved], -matches.score[moved], to))
        at, moved, to = at[order], moved[order], to[order]
        self.rows = rows = np.insert(ranking.order, at, moved)
        self.moved = np.insert(np.zeros(ranking.order.size, np.bool_), at, True)
        self.starts = ranking.starts + np.concatenate(([0], np.cumsum(np.bincount(to, minlength=self.positives.size))))
        self.error = error[rows]
        self.outcome, self.scores = matches.outcome[rows], matches.score[rows]
        is_best = np.zeros(len(matches), np.bool_)
        is_best[best] = True
        self.best = is_best[rows]

    def outcomes(self, mended: set[int]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Fix errors of the kinds `mended`. Return a mask of the entries that are hits, and a mask of the entries that
        are not ignored.
        """
        counts, hit = (self.outcome != IGNORED) & ~self.moved, (self.outcome == HIT) & ~self.moved
        if LOC in mended:
            mine = (self.error == LOC) & ~self.moved
            counts &= ~mine | self.best
            hit |= mine & self.best
        if CLS in mended:
            counts &= self.error != CLS
            counts |= self.moved
            hit |= self.moved
        for code in mended & {BOTH, DUPE, BKG}:
            counts &= self.error != code
        return hit, counts

    def ap(self, mended: set[int]) -> float:
        """Return the mean AP after fixing errors of the kinds `mended`, over the classes that still have objects."""
        hit, counts = self.outcomes(mended)
        order = self.order_of(hit)
        positives = self.positives - self.fewer if MISSED in mended else self.positives
        return mean(
            self.ranking.scored(average_precision(self.starts, hit[order], counts[order], positives, self.protocol))
        )

    def order_of(self, hit: NDArray[np.bool_]) -> NDArray[np.int64] | slice:
        """Return the order of the entries if `hit` is the mask of hits."""
        return hits_first(self.starts, self.scores, hit, self.protocol)


def _insertions(
    starts: NDArray[np.int64],
    scores: NDArray[np.float64],
    ties: NDArray[np.integer],
    to: NDArray[np.int64],
    score: NDArray[np.float64],
    own_ties: NDArray[np.integer],
) -> NDArray[np.int64]:
    """Return the ranking indices at which to insert detections. Within a category, equal scores are sorted by tie
    key.
    """
    at = np.empty(to.size, np.int64)
    for k in np.unique(to).tolist():
        some = to == k
        own = -scores[starts[k] : starts[k + 1]]
        low, high = (np.searchsorted(own, -score[some], side) for side in ("left", "right"))
        tied = np.flatnonzero(low < high)
        for i, tie in zip(tied.tolist(), own_ties[some][tied].tolist(), strict=True):
            low[i] += np.searchsorted(ties[starts[k] + low[i] : starts[k] + high[i]], tie)
        at[some] = starts[k] + low
    return at


PART = Part("tide", "the kinds of errors, and what each of them costs in AP", tide)
