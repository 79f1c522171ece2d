"""The detections of a diagnosis in ranking order, and the AP of every category after outcomes are changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matches import HIT, IGNORED, Matches
from detmap.detection.matching_rules import HITS_FIRST
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
    """Return the AP of each of K rankings, shape (K,). The AP of a ranking without positives is NaN or 0, as the
    protocol decides.

    Ranking *k* consists of the items ``starts[k]:starts[k + 1]``, best first. `counts` flags the items that are not
    ignored, and `hit` flags hits, both of shape (n,). `positives` are the numbers of positives, shape (K,).
    """
    return ap_of_hits(hits_of(starts, hit, counts, positives), protocol)


def hits_first(
    starts: NDArray[np.int64], scores: NDArray[np.float64], hit: NDArray[np.bool_], protocol: Protocol
) -> NDArray[np.int64] | slice:
    """Return an index that moves hits before misses of equal score if the protocol ranks hits first, else
    ``slice(None)``.
    """
    if protocol.ties != HITS_FIRST:
        return slice(None)
    return np.lexsort((~hit, -scores, np.repeat(np.arange(starts.size - 1), np.diff(starts))))


def ap_of_hits(hits: Hits, protocol: Protocol) -> NDArray[np.float64]:
    """Return the AP of each ranking, shape (K,); NaN or 0 without positives, as the protocol decides."""
    if protocol.interpolation != "grid":
        made = hits.average_precision(protocol.interpolation, protocol.epsilon, threads=1)
    else:
        made = hits.interpolate(protocol.recall_thresholds, protocol.epsilon, threads=1)[0].mean(axis=1)
    return with_empty(made, protocol)


def hits_of(
    starts: NDArray[np.int64], hit: NDArray[np.bool_], counts: NDArray[np.bool_], positives: NDArray[np.int64]
) -> Hits:
    """Return the hits of K rankings; parameters are as in `average_precision`."""
    places = np.flatnonzero(hit & counts)
    total = np.concatenate(([0], np.cumsum(counts)))
    first = np.searchsorted(places, starts)
    ranks = total[places + 1] - np.repeat(total[starts[:-1]], np.diff(first))
    return Hits(first, ranks, positives, total[starts[1:]] - total[starts[:-1]])


def mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


@dataclass(frozen=True, eq=False)
class Ranking:
    """The rows of `Matches` sorted by category and descending score; the protocol breaks ties."""

    #: The matches that are ranked.
    matches: Matches
    #: The row of `matches` at each ranking position; shape (n,).
    order: NDArray[np.int64]
    #: Where each category starts; shape (K + 1,).
    starts: NDArray[np.int64]
    #: The number of positives of each category; shape (K,).
    positives: NDArray[np.int64]

    @classmethod
    def of(cls, matches: Matches, positives: NDArray[np.int64]) -> Ranking:
        """Rank the rows of `matches`. Under COCO's rule, ties of scores are broken by the order of the rows."""
        # Sort by the keys that break ties, then stably by category, and then by score within each category. A single
        # sort takes twice as long, because it does not exploit that the rows are partly sorted.
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
        """The score at each ranking position, shape (n,)."""
        return self.matches.score[self.order]

    @cached_property
    def outcome(self) -> NDArray[np.uint8]:
        """The outcome of the detection at each ranking position, shape (n,)."""
        return self.matches.outcome[self.order]

    @cached_property
    def category(self) -> NDArray[np.int64]:
        """The category of the detection at each ranking position, shape (n,)."""
        return np.repeat(np.arange(self.positives.size), np.diff(self.starts))

    @cached_property
    def ap(self) -> NDArray[np.float64]:
        """The AP of each category, shape (K,); NaN without positives."""
        return self.ap_of(self.outcome)

    def precision_at(self, recalls: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the maximum precision of each category at each recall or above, shape (K, r); NaN without positives."""
        hits = hits_of(self.starts, self.outcome == HIT, self.outcome != IGNORED, self.positives)
        return hits.interpolate(recalls, self.matches.protocol.epsilon, threads=1)[0]

    def ap_of(
        self,
        outcome: NDArray[np.uint8],
        positives: NDArray[np.int64] | None = None,
        kept: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float64]:
        """Return each category's AP if the ranked detections have the outcomes `outcome`. `positives` replaces the
        numbers of positives, and `kept` is a mask of the detections that are not removed.
        """
        counts = outcome != IGNORED
        if kept is not None:
            counts &= kept
        sought = self.positives if positives is None else positives
        hit, protocol = outcome == HIT, self.matches.protocol
        order = hits_first(self.starts, self.scores, hit, protocol)
        return self.scored(average_precision(self.starts, hit[order], counts[order], sought, protocol))

    def scored(self, ap: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the AP of each category, shape (K,), with NaN for categories that the protocol does not score."""
        matches = self.matches
        if not matches.protocol.class_thresholds:
            return ap
        return np.where(chosen_thresholds(matches.protocol, matches.categories).any(axis=0), ap, np.nan)


@dataclass(frozen=True, eq=False)
class Cuts:
    """Hits and misses of all categories together at every distinct score, in descending order of scores."""

    #: The distinct scores; shape (s,).
    score: NDArray[np.float64]
    #: Numbers of hits and of misses with a score of at least `score`; shape (s,).
    hits: NDArray[np.int64]
    misses: NDArray[np.int64]
    #: Number of positives.
    positives: int

    @classmethod
    def of(cls, score: NDArray[np.float64], outcome: NDArray[np.uint8], positives: int) -> Cuts:
        """Compute the cuts from detections in any order."""
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
        """Return score, precision, recall and F1 at index `at`; all are NaN if `at` is None."""
        names = ("score", "precision", "recall", "f1")
        if at is None:
            return dict.fromkeys(names, float("nan"))
        return {name: float(getattr(self, name)[at]) for name in names}

    def best(self) -> int | None:
        """Return the index of the best F1 (the highest score among ties); None without positives or detections."""
        return int(np.argmax(self.f1)) if self.score.size and self.positives else None

    def with_precision(self, wanted: float) -> int | None:
        """Return the index of the highest recall with a precision of at least `wanted`; None if there is none."""
        found = np.flatnonzero(self.precision >= wanted)
        return int(found[-1]) if found.size else None

    def with_recall(self, wanted: float) -> int | None:
        """Return the index of the highest score with a recall of at least `wanted`; None if there is none."""
        found = np.flatnonzero(self.recall >= wanted)
        return int(found[0]) if found.size else None
