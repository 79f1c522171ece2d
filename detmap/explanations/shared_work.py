"""Intermediate results that protocols share on the same two tables: orders, rankings, overlapping pairs, and matches. A
cap is a maximum number of detections per image.
"""

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
    """A cache that keeps the most recently used values, at most `most`."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def get_or(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the cached value of a key; if there is none, compute it by `make`."""
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
    """The detections sorted by image, category and score (`side`). `position` is the index of each row in this order;
    -1 for rows that are not scored. `scores` and `images` have one value per row of the table.
    """

    scores: NDArray[np.float64]
    side: Side
    position: NDArray[np.int32]
    images: NDArray[np.int32]

    @cached_property
    def image_rank(self) -> NDArray[np.int64]:
        """The rank of each row among all detections of its image, from 0; equal scores rank in order of rows."""
        return ranks_of(self.images, self.scores)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Positions of `Order`, sorted by category, descending score and the rule for ties (`order`). `place` is the
    inverse permutation.
    """

    order: NDArray[np.int64]
    place: NDArray[np.int32]
    class_starts: NDArray[np.int64]
    scores: NDArray[np.float64]

    @cached_property
    def tied(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each place of the ranking, start and end of its tied group (the places with the same category and score)."""
        new = np.ones(self.order.size, np.bool_)
        new[1:] = self.scores[1:] != self.scores[:-1]
        new[self.class_starts[:-1][self.class_starts[:-1] < new.size]] = True
        starts = np.flatnonzero(new)
        run = np.cumsum(new) - 1
        return starts[run], np.append(starts[1:], new.size)[run]


@dataclass(frozen=True, eq=False)
class Kept:
    """The places of a ranking that remain after the score threshold and the caps. `flags` is the mask of kept places,
    and `all` whether every place is kept. `ahead`, shape (n + 1,), is the number of kept places before each place.
    `seen` flags the images with a detection that the score threshold and the cap per image keep.
    """

    flags: NDArray[np.bool_]
    ahead: NDArray[np.int32]
    all: bool
    seen: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of a detection and an object that overlap by at least `lowest`: the rows in the two tables, and the
    overlaps. `by_nature` flags objects that are ignored under every protocol with these pairs. `areas` are the areas of
    all detections in the table; None if every detection is inside the area range.
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
    """Pairs in matching order. `live` holds the positions of the detections that overlap an object. `cells` are the
    pairs of image and category of these detections, and `candidates` are the objects that each detection overlaps.
    """

    live: NDArray[np.int64]
    cells: overlap.Cells
    candidates: overlap.Candidates


@dataclass(eq=False)
class Matched:
    """Outcomes of the detections at the positions `live`: `hit` and `ignored`, shape (thresholds, live.size). `outside`
    flags positions outside of the area range (None if there are none). `counted` flags the positives, by row.
    """

    live: NDArray[np.int64]
    hit: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    outside: NDArray[np.bool_] | None
    counted: NDArray[np.bool_]
    ranked: dict[Any, tuple[NDArray[Any], ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Scene:
    """The hits under a protocol, sorted by threshold. `threshold`, `place` (in the ranking) and `category` have one
    value per hit. `positives` are the numbers of positives by category. `items` are the numbers of detections that are
    not ignored, by threshold and category. ``count(thresholds, stops, categories)`` returns how many detections of a
    category that are not ignored rank before the place `stops`.
    """

    threshold: NDArray[np.int64]
    place: NDArray[np.int64]
    category: NDArray[np.int64]
    positives: NDArray[np.int64]
    items: NDArray[np.int64]
    count: Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]


def ranked_by(codes: NDArray[np.int32], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the order of rows by code and descending score; equal rows stay in order."""
    by_score = np.argsort(-scores, kind="stable")
    # For small integers numpy's stable sort is a radix sort, which is many times faster.
    small = codes.astype(np.uint16) if codes.max(initial=0) < 2**16 else codes
    return by_score[np.argsort(small[by_score], kind="stable")]


def ranks_of(codes: NDArray[np.int32], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rank of each row by score among rows with the same code; equal scores rank in order of rows."""
    order = ranked_by(codes, scores)
    starts = np.concatenate(([0], np.cumsum(np.bincount(codes))))
    out = np.empty(order.size, np.int64)
    out[order] = np.arange(order.size) - starts[codes[order]]
    return out
