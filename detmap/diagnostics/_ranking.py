"""The detections of a diagnosis in ranking order, and the AP of every category if some of them were not what they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matches import HIT, IGNORED, Matches
from detmap.detection.precisions import with_empty
from detmap.detection.protocols import Protocol
from detmap.detection.rematching import chosen_thresholds
from detmap.hits import Hits
from detmap.kernels import readonly


def average_precision(
    starts: NDArray[np.int64],
    hit: NDArray[np.bool_],
    counts: NDArray[np.bool_],
    positives: NDArray[np.int64],
    protocol: Protocol,
) -> NDArray[np.float64]:
    """Return the AP of each of K rankings, shape (K,); NaN without positives.

    Items ``starts[k]:starts[k + 1]`` are those of ranking *k*, best first; `hit` and `counts`, shape (n,), say which
    are hits, and which count at all: a hit that does not count is none. `positives`, shape (K,), is how many hits there
    are to find.
    """
    return ap_of_hits(hits_of(starts, hit, counts, positives), protocol)


def ap_of_hits(hits: Hits, protocol: Protocol) -> NDArray[np.float64]:
    """Return the AP of each ranking, shape (K,); without positives NaN, or 0 where the protocol says so."""
    if protocol.interpolation != "grid":
        made = hits.average_precision(protocol.interpolation, protocol.epsilon, threads=1)
    else:
        made = hits.interpolate(protocol.recall_thresholds, protocol.epsilon, threads=1)[0].mean(axis=1)
    return with_empty(made, protocol)


def hits_of(
    starts: NDArray[np.int64], hit: NDArray[np.bool_], counts: NDArray[np.bool_], positives: NDArray[np.int64]
) -> Hits:
    """Return the hits of rankings; the parameters are those of `average_precision`."""
    places = np.flatnonzero(hit & counts)
    total = np.concatenate(([0], np.cumsum(counts)))
    first = np.searchsorted(places, starts)
    ranks = total[places + 1] - np.repeat(total[starts[:-1]], np.diff(first))
    return Hits(first, ranks, positives, total[starts[1:]] - total[starts[:-1]])


def mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the values that are not NaN; NaN where there is none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


@dataclass(frozen=True, eq=False)
class Ranking:
    """The rows of `Matches` by category and descending score, ties as the protocol breaks them."""

    #: Whose rows they are.
    matches: Matches
    #: The row at each place; shape (n,).
    order: NDArray[np.int64]
    #: Where each category starts; shape (K + 1,).
    starts: NDArray[np.int64]
    #: How many objects of each category there are to find; shape (K,).
    positives: NDArray[np.int64]

    @classmethod
    def of(cls, matches: Matches, positives: NDArray[np.int64]) -> Ranking:
        """Rank the rows of matches. They stand by image, category and score, which is the tie order of COCO."""
        # By score within a category, in three steps that each find runs in order: a sort of them all takes twice as long.
        size = len(matches.categories)
        given = None if matches.protocol.ties == "image" else matches.tie_keys()
        rows = np.argsort(given, kind="stable") if given is not None else None
        category = matches.category if rows is None else matches.category[rows]
        order = np.argsort(category.astype(np.int16 if size < 2**15 else np.int32), kind="stable")
        if rows is not None:
            order = rows[order]
        starts = np.concatenate(([0], np.cumsum(np.bincount(matches.category, minlength=size))))
        scores = -matches.score[order]
        for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if end - begin > 1:
                order[begin:end] = order[begin:end][np.argsort(scores[begin:end], kind="stable")]
        return cls(matches, order, readonly(starts, np.int64), positives)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """The score at each place, shape (n,)."""
        return self.matches.score[self.order]

    @cached_property
    def outcome(self) -> NDArray[np.uint8]:
        """The outcome at each place, shape (n,)."""
        return self.matches.outcome[self.order]

    @cached_property
    def category(self) -> NDArray[np.int64]:
        """The category at each place, shape (n,)."""
        return np.repeat(np.arange(self.positives.size), np.diff(self.starts))

    @cached_property
    def ap(self) -> NDArray[np.float64]:
        """The AP of each category, shape (K,); NaN without positives."""
        return self.ap_of(self.outcome)

    def precision_at(self, recalls: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest precision of each category at some recalls or more, shape (K, r); NaN without positives."""
        hits = hits_of(self.starts, self.outcome == HIT, self.outcome != IGNORED, self.positives)
        return hits.interpolate(recalls, self.matches.protocol.epsilon, threads=1)[0]

    def ap_of(
        self,
        outcome: NDArray[np.uint8],
        positives: NDArray[np.int64] | None = None,
        kept: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Return the AP of each category with other outcomes by place, other positives, or fewer detections."""
        counts = outcome != IGNORED
        if kept is not None:
            counts &= kept
        sought = self.positives if positives is None else positives
        return self.scored(average_precision(self.starts, outcome == HIT, counts, sought, self.matches.protocol))

    def scored(self, ap: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the AP of each category, shape (K,), with NaN for categories that the protocol does not score."""
        matches = self.matches
        if not matches.protocol.class_thresholds:
            return ap
        return np.where(chosen_thresholds(matches.protocol, matches.categories).any(axis=0), ap, np.nan)


@dataclass(frozen=True, eq=False)
class Cuts:
    """What is left of the detections of all categories at every score that occurs, the highest score first."""

    #: The scores, each once; shape (s,).
    score: NDArray[np.float64]
    #: `hits` and `misses`: how many hits and misses there are with that score or more; shape (s,).
    hits: NDArray[np.int64]
    misses: NDArray[np.int64]
    #: How many objects there are to find.
    positives: int

    @classmethod
    def of(cls, score: NDArray[np.float64], outcome: NDArray[np.uint8], positives: int) -> Cuts:
        """Make the cuts of detections in any order."""
        counts = outcome != IGNORED
        score, hit = score[counts], outcome[counts] == HIT
        order = np.argsort(-score, kind="stable")
        score, hit = score[order], hit[order]
        last = np.flatnonzero(np.append(score[1:] != score[:-1], True)[: score.size])
        hits = np.cumsum(hit, dtype=np.int64)[last]
        return cls(score[last], hits, last + 1 - hits, positives)

    @cached_property
    def precision(self) -> NDArray[np.float64]:
        """Precision at each score, shape (s,)."""
        return np.asarray(self.hits / np.maximum(self.hits + self.misses, 1))

    @cached_property
    def recall(self) -> NDArray[np.float64]:
        """Recall at each score, shape (s,); NaN without positives."""
        return self.hits / self.positives if self.positives else np.full(self.score.size, np.nan)

    @cached_property
    def f1(self) -> NDArray[np.float64]:
        """F1 at each score, shape (s,); NaN without positives."""
        if not self.positives:
            return np.full(self.score.size, np.nan)
        return np.asarray(2 * self.hits / (self.hits + self.misses + self.positives))

    def row(self, at: int | None) -> dict[str, float]:
        """Return score, precision, recall and F1 at the place `at`; NaN where it is None."""
        names = ("score", "precision", "recall", "f1")
        if at is None:
            return dict.fromkeys(names, float("nan"))
        return {name: float(getattr(self, name)[at]) for name in names}

    def best(self) -> int | None:
        """Return the place of the best F1, of the highest score among equals; None without positives or detections."""
        return int(np.argmax(self.f1)) if self.score.size and self.positives else None

    def with_precision(self, wanted: float) -> int | None:
        """Return the place of the highest recall whose precision is at least `wanted`; None where there is none."""
        found = np.flatnonzero(self.precision >= wanted)
        return int(found[-1]) if found.size else None

    def with_recall(self, wanted: float) -> int | None:
        """Return the place of the highest score whose recall is at least `wanted`; None where it is not reached."""
        found = np.flatnonzero(self.recall >= wanted)
        return int(found[0]) if found.size else None
