"""Intermediate results shared by protocols on the same two tables: orders, rankings, overlapping pairs, and matches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.detection.arrangement import Side
from detmap.kernels import overlap

T = TypeVar("T")


class Recent(OrderedDict[Hashable, Any]):
    """A small cache of the most recent values."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def get_or(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the cached value of a key, or make it."""
        if key in self:
            self.move_to_end(key)
        else:
            self[key] = make()
            if len(self) > self.most:
                self.popitem(last=False)
        made: T = self[key]
        return made


@dataclass(frozen=True, eq=False)
class Order:
    """Detections sorted by image, category and score; `position` is each row's index in that order, or -1. `image_rank`
    is each row's rank among all detections of its image.
    """

    scores: NDArray[np.float64]
    side: Side
    position: NDArray[np.int32]
    images: NDArray[np.int32]

    @cached_property
    def image_rank(self) -> NDArray[np.int64]:
        """Ranks from 0; the first row of ties comes first."""
        return ranks_of(self.images, self.scores)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Positions in ranking order (category, descending score, ties), and the inverse permutation."""

    order: NDArray[np.int64]
    place: NDArray[np.int32]
    class_starts: NDArray[np.int64]
    scores: NDArray[np.float64]

    @cached_property
    def tied(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each place, begin and end of its run of equal scores in its category."""
        new = np.ones(self.order.size, np.bool_)
        new[1:] = self.scores[1:] != self.scores[:-1]
        new[self.class_starts[:-1][self.class_starts[:-1] < new.size]] = True
        starts = np.flatnonzero(new)
        run = np.cumsum(new) - 1
        return starts[run], np.append(starts[1:], new.size)[run]


@dataclass(frozen=True, eq=False)
class Kept:
    """Mask of the kept places of a ranking (`flags`), and their cumulative count, shape (n + 1,) (`ahead`). `all`: every
    place is kept. `seen` flags the images with a detection within the score threshold and the cap on the image.
    """

    flags: NDArray[np.bool_]
    ahead: NDArray[np.int32]
    all: bool
    seen: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs that overlap by at least `lowest`: rows of the tables, and overlaps. `by_nature` flags objects that no
    protocol with these pairs counts. `areas` are those of the detections by row; None if no box can be outside of the
    range.
    """

    lowest: float
    detections: NDArray[np.int64]
    objects: NDArray[np.int64]
    iou: NDArray[np.float64]
    object_areas: NDArray[np.float64]
    by_nature: NDArray[np.bool_]
    areas: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class Cells:
    """Pairs in matching order: the positions of `live` detections, their cells, and candidates."""

    live: NDArray[np.int64]
    cells: overlap.Cells
    candidates: overlap.Candidates


@dataclass(eq=False)
class Matched:
    """Outcomes of the live detections: flags of shape (thresholds, live). `outside` flags positions outside of the area
    range (None: none); `counted` flags the positives.
    """

    live: NDArray[np.int64]
    hit: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    outside: NDArray[np.bool_] | None
    counted: NDArray[np.bool_]
    ranked: dict[Any, tuple[NDArray[Any], ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Scene:
    """The hits of a protocol by threshold: threshold, place in the ranking, and category of each. `positives` per
    category; `items`, the number ranked, per threshold and category. ``count(thresholds, stops, categories)`` is the
    number of detections of a category that count before a place.
    """

    threshold: NDArray[np.int64]
    place: NDArray[np.int64]
    category: NDArray[np.int64]
    positives: NDArray[np.int64]
    items: NDArray[np.int64]
    count: Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]


def ranked_by(codes: NDArray[np.int32], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the stable order by code and descending score."""
    by_score = np.argsort(-scores, kind="stable")
    # For small integers numpy's stable sort is a radix sort, which is many times faster.
    small = codes.astype(np.uint16) if codes.max(initial=0) < 2**16 else codes
    return by_score[np.argsort(small[by_score], kind="stable")]


def ranks_of(codes: NDArray[np.int32], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rank of each row by score within its code; the first row of ties comes first."""
    order = ranked_by(codes, scores)
    starts = np.concatenate(([0], np.cumsum(np.bincount(codes))))
    out = np.empty(order.size, np.int64)
    out[order] = np.arange(order.size) - starts[codes[order]]
    return out
