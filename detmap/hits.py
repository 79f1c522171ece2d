"""Metrics of rankings, computed from the ranks of the hits and the number of positives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap import columns
from detmap.errors import InputError, OptionError, check_choice, is_integer
from detmap.kernels import Frozen, curves, readonly
from detmap.system import parallel

Interpolation = Literal["step", "all-point", "trapezoid", "trapezoid-hits", "11-point", "101-point"]

#: Interpolations whose AP is a sum with one term per hit, mapped to the constants of the kernel.
RULES = {
    "step": curves.STEP,
    "all-point": curves.ALL_POINT,
    "all-point-pairwise": curves.PAIRWISE,  # see `PAIRWISE`
    "trapezoid": curves.TRAPEZOID,
    "trapezoid-hits": curves.TRAPEZOID_OF_HITS,
}

#: Interpolations that read the envelope at fixed recalls. The 11-point grid is VOC's ``arange(0, 1.1, .1)``, whose
#: fourth, seventh and eighth recalls are slightly above 0.3, 0.6 and 0.7. The 101-point grid, ``linspace(0, 1, 101)``,
#: is COCO's.
GRIDS = {"11-point": np.arange(0.0, 1.1, 0.1), "101-point": np.linspace(0.0, 1.0, 101)}

#: Interpolations for detectors only. MATLAB computes ``0:0.1:1`` from both ends, so that only the recall 0.3 is
#: slightly above its decimal value.
PAIRWISE, ELEVEN = "all-point-pairwise", "11-point-matlab"
MATLAB_GRID = tuple(k * 0.1 if k <= 5 else 1 - (10 - k) * 0.1 for k in range(11))

INTERPOLATIONS = (*(rule for rule in RULES if rule != PAIRWISE), *GRIDS)

#: Interpolations for detectors only. Straight lines connect the points of the envelope. The lines are sampled at COCO's
#: recalls and integrated by trapezoids. If the value is True, the curve falls in a straight line from its last point to
#: (1, 0), which adds area. If False, the curve drops to 0 at the last point.
LINEAR = {"101-linear": False, "101-linear-tail": True}
#: nuScenes' interpolation, for detectors only. Precision is interpolated linearly between items, without an envelope,
#: and read at COCO's recalls above 0.1. Precision is rescaled so that 0.1 becomes 0 and 1 stays 1; precision below 0.1
#: counts as 0.
CLIPPED: Final = "101-clipped"

#: nuScenes' interpolation: index of the first recall that counts, and the precision that is rescaled to 0.
CLIP, _LEAST = 11, 0.1

#: The interpolations that depend on items after the last hit.
WITH_TAIL = ("101-linear-tail", CLIPPED)

#: Number of hits above which several threads are used even for few rankings.
_MANY_HITS = 1 << 16
_NONE = readonly((), np.float64)
_NO_COUNTS = readonly((), np.int64)

Linear = Literal["101-linear", "101-linear-tail", "all-point-pairwise", "11-point-matlab", "101-clipped"]

#: KITTI's means of the precision at up to 41 hits: ``sampled-40`` skips the first hit, ``sampled-11`` uses every
#: fourth.
Sampled = Literal["sampled-40", "sampled-11"]
SAMPLED = {"sampled-40": slice(1, None), "sampled-11": slice(0, None, 4)}

#: Maximum number of hits at which the interpolations in `SAMPLED` read precision.
SAMPLES = 41

TieRule = Literal["index", "reversed", "docid", "docid-ascending", "collapsed", "expected", "best", "worst"]

#: Orders of the items of a tied group, mapped to the constants of the kernel; `KEEP` leaves the ranks unchanged.
TIE_RULES = {
    "index": curves.KEEP,
    "docid": curves.KEEP,
    "docid-ascending": curves.KEEP,
    "expected": curves.KEEP,
    "reversed": curves.REVERSE,
    "best": curves.FIRST,
    "worst": curves.LAST,
    "collapsed": curves.COLLAPSE,
}


def up_to(starts: NDArray[np.int64], ranks: NDArray[np.int64], depth: ArrayLike) -> NDArray[np.bool_]:
    """Return a mask of the `ranks` up to `depth`, which is one number or a number per ranking."""
    return np.asarray(ranks <= np.repeat(np.broadcast_to(np.asarray(depth), starts.size - 1), np.diff(starts)))


def counted(starts: NDArray[np.int64], flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of `flags` set in each ranking, shape (q,)."""
    total = np.concatenate(([0], np.cumsum(flags)))
    return np.asarray(total[starts[1:]] - total[starts[:-1]], dtype=np.int64)


def bends(hits: NDArray[np.int64], items: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the 0-based ranks at which the precision-recall curve of a ranking can bend, and the number of hits up to
    each rank. The curve can bend at the `hits`, at the items before the hits, and at the last item, because recall is
    constant in between.
    """
    count = np.arange(1, hits.size + 1)
    places = np.append(np.stack([hits - 1, hits], axis=1).ravel(), items - 1)
    found = np.append(np.stack([count - 1, count], axis=1).ravel(), hits.size)
    return places[places >= 0], found[places >= 0]


@dataclass(frozen=True, eq=False)
class Hits(Frozen):
    """Ranks of the hits of many rankings, and the numbers of positives.

    A ranking is a query of a retrieval system, or a class of a detector at one IoU threshold, area range and cap. Metrics
    are computed in the same way for both.

    Attributes
    ----------
    starts : ndarray of int64, shape (q + 1,)
        The hits of ranking *i* are the elements ``starts[i]:starts[i + 1]`` of the columns of shape (h,).
    ranks : ndarray of int64, shape (h,)
        1-based rank of each hit, ascending within a ranking.
    positives : ndarray of int64, shape (q,)
        Number of positives; at least the number of hits.
    items : ndarray of int64, shape (q,)
        Number of ranked items.
    scores : ndarray of float64, shape (h,) or (0,)
        The score at each hit, if known.
    first_scores : ndarray of float64, shape (q,) or (0,)
        The score of the first item of each ranking (0 for an empty one), if known.
    grades : ndarray of int64, shape (h,) or (0,)
        The relevance grade of each hit, if relevance is graded.
    ahead, tied : ndarray of int64, shape (h,) or (0,)
        Number of items with a higher score than the hit, and number of items with an equal score (including the hit),
        if known. The tied items have the ranks ``ahead + 1 .. ahead + tied`` in some order.
    """

    starts: NDArray[np.int64]
    ranks: NDArray[np.int64]
    positives: NDArray[np.int64]
    items: NDArray[np.int64]
    scores: NDArray[np.float64] = field(default_factory=lambda: _NONE)
    first_scores: NDArray[np.float64] = field(default_factory=lambda: _NONE)
    grades: NDArray[np.int64] = field(default_factory=lambda: _NO_COUNTS)
    ahead: NDArray[np.int64] = field(default_factory=lambda: _NO_COUNTS)
    tied: NDArray[np.int64] = field(default_factory=lambda: _NO_COUNTS)

    def __post_init__(self) -> None:
        for name in ("starts", "ranks", "positives", "items", "grades", "ahead", "tied"):
            object.__setattr__(self, name, readonly(getattr(self, name), np.int64))
        for name in ("scores", "first_scores"):
            object.__setattr__(self, name, readonly(getattr(self, name), np.float64))
        rankings, hits = self.positives.size, self.ranks.size
        starts = self.starts
        if starts.size != rankings + 1 or starts[0] != 0 or starts[-1] != hits or (starts[1:] < starts[:-1]).any():
            raise InputError("must ascend from 0 to the number of hits", source="hits", field="starts")
        per_hit = ("scores", "grades", "ahead", "tied")
        for name, sizes in {
            "items": (rankings,),
            "first_scores": (0, rankings),
            **dict.fromkeys(per_hit, (0, hits)),
        }.items():
            if getattr(self, name).size not in sizes:
                raise InputError(
                    f"{getattr(self, name).size} values where {sizes[-1]} belong", source="hits", field=name
                )
        short = self.counts > self.positives
        if short.any():
            raise InputError("more hits than positives", source="hits", record=f"ranking {int(np.argmax(short))}")

    @classmethod
    def from_ranks(
        cls, ranks: Iterable[ArrayLike], positives: ArrayLike | None = None, items: ArrayLike | None = None
    ) -> Hits:
        """Build hits from ranks.

        Parameters
        ----------
        ranks : iterable of array_like of int
            For each ranking the 1-based ranks of its hits, strictly ascending.
        positives : array_like of int, shape (q,), optional
            Number of positives of each ranking; the number of hits by default.
        items : array_like of int, shape (q,), optional
            Number of ranked items; the last hit's rank by default.

        Raises
        ------
        InputError
            If ranks are not ascending positive integers, or there are more hits than positives or items.

        Examples
        --------
        >>> Hits.from_ranks([[1, 4]], [2]).average_precision().tolist()
        [0.75]
        """
        lists = [_integers(r, f"ranking {i}") for i, r in enumerate(ranks)]
        counts = np.array([r.size for r in lists], dtype=np.int64)
        starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        flat = np.concatenate(lists) if lists else np.empty(0, np.int64)
        last = np.array([r[-1] if r.size else 0 for r in lists], dtype=np.int64)
        found = counts if positives is None else _integers(positives, "positives")
        ranked = last if items is None else _integers(items, "items")
        for name, column in (("positives", found), ("items", ranked)):
            if column.shape != counts.shape:
                raise InputError(f"{column.size} values for {counts.size} rankings", source="hits", field=name)
        for i, r in enumerate(lists):
            if r.size and (r[0] < 1 or np.any(np.diff(r) < 1)):
                raise InputError("ranks must be positive and strictly ascending", source="hits", record=f"ranking {i}")
        short = ranked < last
        if short.any():
            raise InputError("a hit beyond the last item", source="hits", record=f"ranking {int(np.argmax(short))}")
        return cls(starts, flat, found, ranked)

    def __len__(self) -> int:
        """Return the number of rankings."""
        return int(self.positives.size)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of hits of each ranking, shape (q,)."""
        return np.diff(self.starts)

    def recall(self) -> NDArray[np.float64]:
        """Return recall, hits over positives, of each ranking, shape (q,); NaN without positives."""
        with np.errstate(invalid="ignore"):
            return np.where(self.positives > 0, self.counts / self.positives, np.nan)

    def within(self, depth: ArrayLike) -> NDArray[np.int64]:
        """Return the number of hits of each ranking at ranks up to `depth` (one number, or one per ranking), shape (q,)."""
        return counted(self.starts, up_to(self.starts, self.ranks, depth))

    def first(self) -> NDArray[np.int64]:
        """Return the rank of each ranking's first hit, shape (q,); 0 without hits."""
        out = np.zeros(len(self), np.int64)
        some = self.counts > 0
        out[some] = self.ranks[self.starts[:-1][some]]
        return out

    def last(self) -> NDArray[np.int64]:
        """Return the rank of each ranking's last hit, shape (q,); 0 without hits."""
        out = np.zeros(len(self), np.int64)
        some = self.counts > 0
        out[some] = self.ranks[self.starts[1:][some] - 1]
        return out

    def select(self, mask: NDArray[np.bool_], positives: ArrayLike) -> Hits:
        """Return the hits for which `mask` is true; `positives` replaces the numbers of positives."""
        total = np.concatenate(([0], np.cumsum(mask)))
        columns = {
            name: getattr(self, name)[mask] if getattr(self, name).size else getattr(self, name)
            for name in ("ranks", "scores", "grades", "ahead", "tied")
        }
        found = np.asarray(positives, dtype=np.int64)
        return replace(self, starts=total[self.starts], positives=found, **columns)

    def cut(self, depth: ArrayLike, positives: ArrayLike) -> Hits:
        """Return the hits at ranks up to `depth` (one number, or one per ranking), with new `positives` of the rankings."""
        return self.select(up_to(self.starts, self.ranks, depth), positives)

    def break_ties(self, rule: TieRule) -> Hits:
        """Return the hits with their ranks under another order of ties.

        Parameters
        ----------
        rule : str
            ``reversed`` reverses the order of each tied group; ``best`` and ``worst`` put the hits of a group first and
            last (higher grades first under ``best``, last under ``worst``); ``collapsed`` gives every hit the rank of the
            group's last item. The other rules keep the ranks.

        Raises
        ------
        OptionError
            For an unknown rule, or if the bounds of tied groups are unknown.
        """
        check_choice("tie rule", rule, TIE_RULES)
        if (TIE_RULES[rule] == curves.KEEP and rule != "expected") or not self.ranks.size:
            return self
        if not self.tied.size:
            raise OptionError(f"ties={rule!r} needs scores: the tied items of a ranking as it stands are not known")
        if TIE_RULES[rule] == curves.KEEP:
            return self
        from detmap.kernels import ties

        ranks, grades = np.empty_like(self.ranks), np.empty(self.ranks.size, np.int64)
        given = self.grades if self.grades.size else readonly(np.ones(self.ranks.size), np.int64)
        ties.break_ties(self.starts, self.ranks, self.ahead, self.tied, given, TIE_RULES[rule], ranks, grades)
        return replace(self, ranks=ranks, grades=grades if self.grades.size else self.grades)

    def average_precision(
        self,
        interpolation: Interpolation | Linear | Sampled = "step",
        epsilon: float = 0.0,
        *,
        threads: int | None = None,
    ) -> NDArray[np.float64]:
        """Return the average precision of every ranking.

        Parameters
        ----------
        interpolation : {"step", "all-point", "all-point-pairwise", "trapezoid", "trapezoid-hits", "11-point", \
"11-point-matlab", "101-point", "101-linear", "101-linear-tail", "101-clipped", "sampled-40", "sampled-11"}
            ``step`` is the mean over the positives of the precision at each hit (trec_eval's map, scikit-learn).
            ``all-point`` is the area under the envelope (VOC from 2010), with terms added from first to last;
            ``all-point-pairwise`` adds the terms as numpy does, which differs in the last bit (TensorFlow's Object
            Detection API). ``trapezoid`` is Oxford's and Market-1501's rule, which averages the precision at a hit and
            at the rank before the hit. ``trapezoid-hits`` uses the previous hit instead of the previous rank, which
            reproduces published numbers of programs with this mistake. ``11-point`` and ``101-point`` are the mean of
            the envelope at fixed recalls (VOC2007, COCO); ``11-point-matlab`` uses the values of MATLAB's 0:0.1:1
            (THUMOS14's first kit). ``101-linear`` and ``101-linear-tail`` are Ultralytics' rules: trapezoids over 101
            recalls, read from straight lines between the points of the envelope. After the last point the curve drops
            to 0 (``101-linear``), or falls to (1, 0) in a straight line (``101-linear-tail``). ``sampled-40`` and
            ``sampled-11`` are KITTI's rules: the envelope of precision is read at the hits nearest to recalls 0, 1/40,
            2/40 and so on. The result has 41 values, padded with 0 if fewer hits are read. AP is the mean of all values
            but the first, or of every fourth value; `epsilon` is not added. ``101-clipped`` is nuScenes' rule: at
            recalls 0.11 to 1, precision is read from straight lines between the precisions at the items, without an
            envelope. Then 0.1 is subtracted from the precision, and the difference is divided by 0.9.
        epsilon : float
            Added to the rank in the denominator of precision; COCO's is ``numpy.spacing(1)``.

        Returns
        -------
        ndarray of float64, shape (q,)
            NaN for a ranking without positives; 0 for a ranking without hits.
        """
        if interpolation in RULES:
            out = np.empty(len(self))
            parallel.run(
                lambda begin, end: curves.average_precision(
                    self.starts, self.ranks, self.positives, RULES[interpolation], epsilon, begin, end, out
                ),
                blocks(self, threads),
                threads,
            )
            return out
        if interpolation == CLIPPED:
            return self._clipped(epsilon)
        if interpolation in LINEAR:
            return self._linear(LINEAR[interpolation], epsilon, threads)
        if interpolation in SAMPLED:
            return sampled_mean(self._sampled(threads), interpolation)
        check_choice("interpolation", interpolation, (*INTERPOLATIONS, PAIRWISE, ELEVEN, *LINEAR, CLIPPED, *SAMPLED))
        grid = np.array(MATLAB_GRID) if interpolation == ELEVEN else GRIDS[interpolation]
        precision, _ = self.interpolate(grid, epsilon, threads=threads)
        if interpolation == "101-point":
            return np.asarray(precision.mean(axis=1))
        total = np.zeros(len(self))
        for column in precision.T:  # like VOC's program, add p / 11 eleven times, which affects the last bit
            total += column / grid.size
        return total

    def _sampled(self, threads: int | None) -> NDArray[np.float64]:
        """Return the precision of every ranking at up to 41 of its hits."""
        from detmap.kernels import rematching

        out = np.empty((len(self), SAMPLES))
        columns = self.starts, self.ranks, self.positives
        parallel.run(
            lambda begin, end: rematching.sample_hits(*columns, begin, end, out), blocks(self, threads), threads
        )
        return out

    def _clipped(self, epsilon: float) -> NDArray[np.float64]:
        """Return the AP of every ranking under nuScenes' rule."""
        out = np.where(self.positives > 0, 0.0, np.nan)
        grid = GRIDS["101-point"]
        for i in np.flatnonzero((self.positives > 0) & (self.counts > 0)).tolist():
            places, found = bends(self.ranks[self.starts[i] : self.starts[i + 1]] - 1, int(self.items[i]))
            read = np.interp(grid, found / float(self.positives[i]), found / (places + 1 + epsilon), right=0)
            kept = read[CLIP:] - _LEAST
            out[i] = float(np.mean(np.where(kept < 0, 0.0, kept))) / (1.0 - _LEAST)
        return out

    def _linear(self, tail: bool, epsilon: float, threads: int | None) -> NDArray[np.float64]:
        """Return the AP of every ranking, with straight lines between the points of the envelope."""
        grid = readonly(GRIDS["101-point"], np.float64)
        rankings, read = self._rankings(), np.empty((len(self), grid.size))

        def lines(begin: int, end: int) -> None:
            curves.read_lines(rankings, self.items, grid, epsilon, tail, begin, end, read)

        parallel.run(lines, blocks(self, threads), threads)
        made = (np.diff(grid) * (read[:, 1:] + read[:, :-1]) / 2.0).sum(axis=1)
        return np.where((self.counts > 0) | (self.positives <= 0), made, 0.0)

    def interpolate(
        self, grid: ArrayLike, epsilon: float = 0.0, *, threads: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the envelope of the precision, and the scores, at given recalls.

        Parameters
        ----------
        grid : array_like of float, shape (r,)
            Recalls, usually ascending from 0 to 1.
        epsilon : float
            Added to the rank in the denominator of precision.

        Returns
        -------
        precision, scores : ndarray of float64, shape (q, r)
            ``precision[i, j]`` is the maximum precision of ranking *i* at recall ``grid[j]`` or more, and ``scores[i,
            j]`` is the score at which recall ``grid[j]`` is first reached. Both are 0 if the recall is not reached, and
            NaN without positives. `scores` has shape (0, r) if the hits have no scores.
        """
        recalls = readonly(grid, np.float64)
        if np.isnan(recalls).any():
            raise OptionError("a recall is NaN")
        precision = np.empty((len(self), recalls.size))
        scores = np.empty((len(self) if self.first_scores.size else 0, recalls.size))
        self.interpolate_into(recalls, epsilon, precision, scores, threads)
        return precision, scores

    def interpolate_into(
        self,
        grid: NDArray[np.float64],
        epsilon: float,
        precision: NDArray[np.float64],
        scores: NDArray[np.float64],
        threads: int | None = 1,
    ) -> None:
        """Like `interpolate`, but write the results into the arrays `precision` and `scores`."""
        rankings = self._rankings()
        parallel.run(
            lambda begin, end: curves.interpolate(rankings, grid, epsilon, begin, end, precision, scores),
            blocks(self, threads),
            threads,
        )

    def _rankings(self) -> curves.Rankings:
        """Return the columns that kernels read."""
        return curves.Rankings(self.starts, self.ranks, self.positives, self.scores, self.first_scores)


def blocks(hits: Hits, threads: int | None) -> list[tuple[int, int]]:
    """Divide the rankings into blocks for `threads` threads. Few rankings form a single block, because threads start
    slowly.
    """
    return parallel.even(len(hits), threads if len(hits) > 64 or hits.ranks.size > _MANY_HITS else 1)


def sampled_mean(values: NDArray[np.float64], interpolation: str) -> NDArray[np.float64]:
    """Return KITTI's mean of the precision at up to 41 hits (last axis), added from first to last."""
    chosen = values[..., SAMPLED[interpolation]]
    total = np.zeros(chosen.shape[:-1])
    for place in range(chosen.shape[-1]):
        total = total + chosen[..., place]
    return np.asarray(total / chosen.shape[-1])


def _integers(values: Any, name: str) -> NDArray[np.int64]:
    array = columns.regular(values, name)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError("expected a flat sequence of integers", source="hits", field=name)
    return array.astype(np.int64)


def _order(relevance: Any, scores: Any, positives: int | None) -> tuple[NDArray[np.bool_], NDArray[np.float64], int]:
    """Return the relevance in rank order, the scores in rank order (empty if not given), and the number of positives."""
    relevant = columns.regular(relevance, "relevance")
    if relevant.ndim != 1 or (relevant.size and relevant.dtype.kind not in "biuf"):
        raise InputError("expected a flat sequence of relevances", source="ranking", field="relevance")
    if relevant.dtype.kind == "f" and np.isnan(relevant).any():
        raise InputError("a relevance is NaN", source="ranking", field="relevance")
    flags = relevant > 0
    ordered = _NONE
    if scores is not None:
        ordered = columns.regular(scores, "scores").astype(np.float64)
        if ordered.shape != flags.shape:
            raise InputError(f"{ordered.size} scores for {flags.size} items", source="ranking", field="scores")
        if np.isnan(ordered).any():
            raise InputError("a score is NaN", source="ranking", field="scores")
        order = np.argsort(-ordered, kind="stable")
        flags, ordered = flags[order], ordered[order]
    found = int(flags.sum())
    if positives is not None:
        if not is_integer(positives) or positives < found:
            raise InputError(
                f"must be an integer of at least {found}, the number of relevant items in the ranking",
                source="ranking",
                field="positives",
                value=positives,
            )
        found = int(positives)
    return flags, ordered, found


def average_precision(
    relevance: ArrayLike,
    scores: ArrayLike | None = None,
    *,
    positives: int | None = None,
    interpolation: Interpolation | Linear | Sampled = "step",
    epsilon: float = 0.0,
) -> float:
    """Return the average precision of one ranking.

    Parameters
    ----------
    relevance : array_like, shape (n,)
        Whether each item is relevant (greater than 0): in rank order, or in the order of `scores`.
    scores : array_like of float, shape (n,), optional
        Items are ranked by descending score; items of equal score keep their order.
    positives : int, optional
        Number of relevant items, including items that were not retrieved; by default the number of relevant items in
        `relevance`.
    interpolation, epsilon
        See `Hits.average_precision`.

    Returns
    -------
    float
        NaN without positives.

    Raises
    ------
    InputError
        For NaN, other shapes, or fewer positives than relevant items.

    Examples
    --------
    >>> average_precision([1, 0, 0, 1])
    0.75
    """
    flags, _, found = _order(relevance, scores, positives)
    ranks = np.flatnonzero(flags) + 1
    hits = Hits(np.array([0, ranks.size]), ranks, np.array([found]), np.array([flags.size]))
    return float(hits.average_precision(interpolation, epsilon)[0])


def best_f1(
    starts: ArrayLike,
    scores: NDArray[np.float64],
    hit: NDArray[np.uint64],
    ignored: NDArray[np.uint64],
    bit: int,
    positives: ArrayLike,
) -> list[dict[str, float]]:
    """Return the best F1 of each ranking, as `Curve.best_f1` does. `hit` and `ignored` are words of flags, as in
    `detmap.detection.tally.Tally`, and `bit` selects a flag.
    """
    best = np.empty((np.size(starts) - 1, 4))
    curves.best_f1(
        readonly(starts, np.int64), readonly(scores, np.float64), readonly(hit, np.uint64), readonly(ignored, np.uint64),
        bit, readonly(positives, np.int64), best,
    )  # fmt: skip
    return [
        {"f1": f1, "score": score, "precision": precision, "recall": recall}
        for f1, score, precision, recall in best.tolist()
    ]


@dataclass(frozen=True, eq=False)
class Curve:
    """Precision and recall of one ranking, item by item.

    Attributes
    ----------
    precision, recall : ndarray of float64, shape (n,)
        Element *i* is the value after the first ``i + 1`` items.
    scores : ndarray of float64, shape (n,) or (0,)
        The score of each item, descending, if known.
    interpolated : ndarray of float64, shape (n,)
        The envelope: the maximum precision at an item or any later item.
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    scores: NDArray[np.float64]
    interpolated: NDArray[np.float64]

    @classmethod
    def from_flags(
        cls,
        flags: NDArray[np.bool_],
        scores: NDArray[np.float64],
        positives: int,
        epsilon: float = 0.0,
    ) -> Curve:
        """Build the curve of a ranking; ``flags[i]`` tells whether item *i* is a hit."""
        hits = np.cumsum(flags, dtype=np.float64)
        precision = hits / (np.arange(1, flags.size + 1) + epsilon)
        recall = hits / positives if positives else np.full(flags.size, np.nan)
        interpolated = np.maximum.accumulate(precision[::-1])[::-1] if flags.size else precision
        return cls(precision, recall, scores, interpolated)

    def best_f1(self, positives: int) -> dict[str, float]:
        """Return the best F1 over all score thresholds, and the threshold with the best F1.

        Items below a threshold are left out. If several thresholds have the best F1, the highest threshold is returned.

        Parameters
        ----------
        positives : int
            Number of positives.

        Returns
        -------
        dict
            ``f1``, ``score``, ``precision``, ``recall``; all NaN without positives or items.
        """
        hits = np.rint(np.nan_to_num(self.recall) * positives)  # NaN without positives
        flags = readonly(np.diff(hits, prepend=0.0)[: self.scores.size, None], np.uint64)
        return best_f1([0, self.scores.size], self.scores, flags, np.zeros_like(flags), 0, [positives])[0]


def precision_recall_curve(
    relevance: ArrayLike,
    scores: ArrayLike | None = None,
    *,
    positives: int | None = None,
    epsilon: float = 0.0,
) -> Curve:
    """Return precision and recall after every item of one ranking.

    Parameters are those of `average_precision`. Unlike in scikit-learn's function of this name, there is a point for
    every item (even if scores are equal), the first item comes first, and no point at recall 0 is added.

    Examples
    --------
    >>> precision_recall_curve([1, 0, 1]).recall.tolist()
    [0.5, 0.5, 1.0]
    """
    flags, ordered, found = _order(relevance, scores, positives)
    return Curve.from_flags(flags, ordered, found, epsilon)
