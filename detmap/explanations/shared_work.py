"""What protocols share that score the same two tables: orders, rankings, pairs that overlap, and what is matched of them."""

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
    """What was made last, by what it was made for."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def get_or(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is there for a key, or make it."""
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
    """Detections by image, category and score: a position counts them so; `position` is that of each row, or -1.

    `image_rank` is the rank of each row among all detections of its image.
    """

    scores: NDArray[np.float64]
    side: Side
    position: NDArray[np.int32]
    images: NDArray[np.int32]

    @cached_property
    def image_rank(self) -> NDArray[np.int64]:
        """Ranks from 0, of equal scores the first row first."""
        return ranks_of(self.images, self.scores)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Positions in ranking order: by category, descending score, then ties; and the place of each position in it."""

    order: NDArray[np.int64]
    place: NDArray[np.int32]
    class_starts: NDArray[np.int64]
    scores: NDArray[np.float64]

    @cached_property
    def tied(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each place where the run of equal scores of its category begins, and where it ends."""
        new = np.ones(self.order.size, np.bool_)
        new[1:] = self.scores[1:] != self.scores[:-1]
        new[self.class_starts[:-1][self.class_starts[:-1] < new.size]] = True
        starts = np.flatnonzero(new)
        run = np.cumsum(new) - 1
        return starts[run], np.append(starts[1:], new.size)[run]


@dataclass(frozen=True, eq=False)
class Kept:
    """Which places of a ranking are not cut off, how many of them stand ahead of each (n + 1,), and the images they are of.

    `all`: none is cut off. `seen` flags the images that have a detection within score cut and cap of the image.
    """

    flags: NDArray[np.bool_]
    ahead: NDArray[np.int32]
    all: bool
    seen: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs that overlap by `lowest` or more: rows of the tables, and by how much.

    `by_nature` flags objects that no protocol with these pairs counts. The `areas` are those of the detections by row; None
    where no box can be outside of the range.
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
    """Pairs in the order in which they are matched: the positions of `live` detections, cells of them, and candidates."""

    live: NDArray[np.int64]
    cells: overlap.Cells
    candidates: overlap.Candidates


@dataclass(eq=False)
class Matched:
    """What became of the live detections: flags of shape (thresholds, live).

    `outside` says which positions an area range leaves out, None where none; `counted` which objects are to be found.
    """

    live: NDArray[np.int64]
    hit: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    outside: NDArray[np.bool_] | None
    counted: NDArray[np.bool_]
    ranked: dict[Any, tuple[NDArray[Any], ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Scene:
    """The hits of a protocol: of each its threshold, place in the ranking, and category, threshold by threshold.

    Of each category the `positives`, and of each threshold and category how many `items` are ranked. ``count(thresholds,
    stops, categories)`` is how many detections of a category count ahead of a place.
    """

    threshold: NDArray[np.int64]
    place: NDArray[np.int64]
    category: NDArray[np.int64]
    positives: NDArray[np.int64]
    items: NDArray[np.int64]
    count: Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]


def ranked_by(codes: NDArray[np.int32], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the order by code and descending score, which keeps that of equals."""
    by_score = np.argsort(-scores, kind="stable")
    # Of small integers numpy's stable sort counts, which is many times as fast.
    small = codes.astype(np.uint16) if codes.max(initial=0) < 2**16 else codes
    return by_score[np.argsort(small[by_score], kind="stable")]


def ranks_of(codes: NDArray[np.int32], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rank of each row by score among those of its code; of equal scores the first row is first."""
    order = ranked_by(codes, scores)
    starts = np.concatenate(([0], np.cumsum(np.bincount(codes))))
    out = np.empty(order.size, np.int64)
    out[order] = np.arange(order.size) - starts[codes[order]]
    return out
