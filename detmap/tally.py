"""The mergeable outcome of matching detections, and how it becomes hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import parallel
from detmap.errors import StateError
from detmap.hits import Hits
from detmap.kernels import matching, readonly, sorting
from detmap.protocols import Protocol
from detmap.tables import locate

#: The rankings are made in about so many blocks.
_BLOCKS = 32


@dataclass(frozen=True, eq=False, kw_only=True)
class Tally:
    """What happened to every detection, and how many positives there were to find. Frozen.

    Laws, with ``==`` for "the same bits in every array made from it" and `e` for `empty`:

    * ``e.merge(a) == a == a.merge(e)`` and ``a.merge(b).merge(c) == a.merge(b.merge(c))``;
    * ``a.merge(b) == b.merge(a)``;
    * however the images are split, the merged tallies of the parts equal the tally of the whole.

    They hold because ties are broken by keys that are stored (image and rank within it, or file order), never by position.

    Attributes
    ----------
    protocol : Protocol
        What it was matched under.
    categories : tuple of (id, name)
        The K evaluated categories, ascending by id; the one pair ``(None, "all")`` where categories are not used.
    image_ids : ndarray, shape (i,)
        The evaluated images, ascending.
    category, image, rank : ndarray of int32, shape (n,)
        Of each detection within its cap: index of its category, of its image, and its 0-based rank among the detections of
        that category in that image.
    order : ndarray of int64, shape (n,) or (0,)
        Position in the file, where the protocol breaks ties by it.
    scores : ndarray of float64, shape (n,)
        As given.
    hit, ignored : ndarray of uint64, shape (n, w)
        Bit ``a * T + t`` says that the detection is a hit, or does not count, in area range *a* at IoU threshold *t*.
    positive_category, positive_image : ndarray of int32, shape (p,)
        The pairs of category and image that hold ground truth.
    positive_counts : ndarray of int32, shape (p, A)
        How many there are to find in each pair and area range.
    ranked : bool
        Whether the detections are in ranking order: by category, descending score, then the tie key.
    notices : mapping of str to int
        What was unusual, counted.
    """

    protocol: Protocol
    categories: tuple[tuple[Any, str], ...]
    image_ids: NDArray[Any]
    category: NDArray[np.int32]
    image: NDArray[np.int32]
    rank: NDArray[np.int32]
    order: NDArray[np.int64]
    scores: NDArray[np.float64]
    hit: NDArray[np.uint64]
    ignored: NDArray[np.uint64]
    positive_category: NDArray[np.int32]
    positive_image: NDArray[np.int32]
    positive_counts: NDArray[np.int32]
    ranked: bool = False
    notices: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def empty(cls, protocol: Protocol, categories: tuple[tuple[Any, str], ...]) -> Tally:
        """Return the tally of no images: the identity of `merge`."""
        words = word_count(protocol)
        return cls(
            protocol=protocol,
            categories=categories,
            image_ids=readonly((), np.int64),
            category=readonly((), np.int32),
            image=readonly((), np.int32),
            rank=readonly((), np.int32),
            order=readonly((), np.int64),
            scores=readonly((), np.float64),
            hit=readonly(np.empty((0, words)), np.uint64),
            ignored=readonly(np.empty((0, words)), np.uint64),
            positive_category=readonly((), np.int32),
            positive_image=readonly((), np.int32),
            positive_counts=readonly(np.empty((0, len(protocol.area_ranges))), np.int32),
            ranked=True,
        )

    def __len__(self) -> int:
        """Return the number of detections."""
        return int(self.scores.size)

    def __repr__(self) -> str:
        return f"<Tally: {len(self)} detections, {self.image_ids.size} images, {len(self.categories)} categories>"

    def merge(self, *others: Tally) -> Tally:
        """Return the tally of all images of this one and the others.

        Raises
        ------
        StateError
            Where protocols or categories differ, or an image is in two of them.
        """
        parts = [part for part in (self, *others) if part.image_ids.size]
        for part in others:
            if part.protocol != self.protocol:
                raise StateError("tallies of different protocols cannot be merged")
            if part.categories != self.categories:
                raise StateError("tallies of different categories cannot be merged")
        if not parts:
            return self
        if len({part.image_ids.dtype.kind for part in parts}) > 1:
            raise StateError("image ids are integers in one tally and strings in another")
        images, seen = np.unique(np.concatenate([part.image_ids for part in parts]), return_counts=True)
        if (seen > 1).any():
            raise StateError(f"image {images[np.argmax(seen > 1)].item()!r} is in two tallies")
        if len(parts) == 1:
            return parts[0]
        place = [locate(part.image_ids, images).astype(np.int32) for part in parts]
        notices: dict[str, int] = {}
        for part in parts:
            for code, count in part.notices.items():
                notices[code] = notices.get(code, 0) + count

        def joined(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        columns: dict[str, Any] = {
            name: joined(name)
            for name in (
                *("category", "rank", "order", "scores", "hit", "ignored"),
                *("positive_category", "positive_counts"),
            )
        }
        for name in ("image", "positive_image"):
            columns[name] = np.concatenate([at[getattr(part, name)] for at, part in zip(place, parts, strict=True)])
        frozen: dict[str, Any] = {name: readonly(column, column.dtype) for name, column in columns.items()}
        return replace(
            self,
            image_ids=readonly(images, images.dtype),
            ranked=False,
            notices=notices,
            **frozen,
        )

    def in_ranking_order(self, threads: int | None = None, *, grouped: bool = False) -> Tally:
        """Return the same tally with its detections in ranking order; `grouped` where they stand by category and image."""
        if self.ranked:
            return self
        order = np.arange(len(self), dtype=np.int32)
        if self.protocol.ties == "file":
            order = np.argsort(self.order, kind="stable").astype(np.int32)
        elif not grouped:
            # Within an image the rows of a category stand by rank already, in every tally there is.
            order = _group(self.image, order, self.image_ids.size)[0]
        order, starts = _group(self.category, order, len(self.categories))
        blocks = parallel.split(np.diff(starts), max(len(self) / 16, 1.0))
        parallel.run(lambda a, b: sorting.sort_groups(self.scores, starts, a, b, order), blocks, threads)
        names = [
            name
            for name in ("category", "image", "rank", "order", "scores", "hit", "ignored")
            if len(getattr(self, name))
        ]
        columns: dict[str, Any] = {name: np.empty_like(getattr(self, name)) for name in names}

        def take(begin: int, end: int) -> None:
            rows = order[begin:end].astype(np.intp)
            for name, column in columns.items():
                np.take(getattr(self, name), rows, axis=0, out=column[begin:end], mode="clip")

        parallel.run(take, parallel.even(len(self), threads), threads)
        for column in columns.values():
            column.setflags(write=False)
        return replace(self, ranked=True, **columns)

    @cached_property
    def class_starts(self) -> NDArray[np.int64]:
        """Where each category's detections start in ranking order, shape (K + 1,)."""
        counts = np.bincount(self.category, minlength=len(self.categories))
        return readonly(np.concatenate(([0], np.cumsum(counts))), np.int64)

    @cached_property
    def positives(self) -> NDArray[np.int64]:
        """The numbers of positives, shape (K, A)."""
        columns = [
            np.bincount(self.positive_category, weights=column, minlength=len(self.categories))
            for column in self.positive_counts.T
        ]
        return readonly(np.stack(columns, axis=1), np.int64)

    @cached_property
    def hit_counts(self) -> NDArray[np.int64]:
        """The numbers of hits within the largest cap, in ranking order, shape (K, A, T)."""
        shape = (len(self.categories), len(self.protocol.area_ranges), len(self.protocol.iou_thresholds))
        counts = np.zeros((shape[0], 64 * self.hit.shape[1]), np.int64)
        matching.count_bits(self.class_starts, self.hit, counts)
        return counts[:, : shape[1] * shape[2]].reshape(shape)

    def bit(self, words: NDArray[np.uint64], area: int, threshold: int) -> NDArray[np.bool_]:
        """Return one bit of every row of `hit` or `ignored`, shape (n,)."""
        bit = area * len(self.protocol.iou_thresholds) + threshold
        return np.asarray(words[:, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1), np.bool_)


def word_count(protocol: Protocol) -> int:
    """Return how many 64-bit words hold the bits of a detection."""
    return -(-len(protocol.area_ranges) * len(protocol.iou_thresholds) // 64)


def _group(keys: NDArray[np.int32], order: NDArray[np.int32], groups: int) -> tuple[Any, Any]:
    out, starts = np.empty_like(order), np.empty(groups + 1, np.int64)
    sorting.group_by(keys, readonly(order, np.int32), out, starts)
    return out, readonly(starts, np.int64)


@dataclass(frozen=True, eq=False)
class Rankings:
    """The rankings of a tally in ranking order, made a block at a time.

    Ranking ``((k * A + a) * M + m) * T + t`` belongs to category *k*, area range *a*, cap *m* and IoU threshold *t*.
    """

    tally: Tally

    def __len__(self) -> int:
        """Return how many there are."""
        protocol = self.tally.protocol
        return self.tally.positives.size * len(protocol.max_dets) * len(protocol.iou_thresholds)

    def _per_area(self) -> int:
        return len(self.tally.protocol.max_dets) * len(self.tally.protocol.iou_thresholds)

    def _capacity(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return how many hits each ranking can have at most: as many as within the largest cap."""
        caps, thresholds = len(self.tally.protocol.max_dets), len(self.tally.protocol.iou_thresholds)
        ranking = np.arange(begin, end)
        return np.asarray(
            self.tally.hit_counts.ravel()[ranking // (caps * thresholds) * thresholds + ranking % thresholds]
        )

    def blocks(self) -> list[tuple[int, int]]:
        """Cut the rankings into blocks whose hits take up no more memory than the tally does."""
        capacity = self._capacity(0, len(self))
        looked_at = np.repeat(np.diff(self.tally.class_starts), len(self) // max(len(self.tally.categories), 1))
        costs = capacity + looked_at / self._per_area() + 4
        return parallel.split(costs, max(min(float(costs.sum()) / _BLOCKS, len(self.tally)), 1.0))

    def hits(self, begin: int, end: int) -> Hits:
        """Return the hits of rankings ``[begin, end)``."""
        tally = self.tally
        starts = np.concatenate(([0], np.cumsum(self._capacity(begin, end))))
        items, first = np.empty(end - begin, np.int64), np.empty(end - begin)
        ranks, scores = np.empty(starts[-1], np.int64), np.empty(starts[-1])
        matching.collect_hits(
            tally.class_starts, tally.rank, tally.scores, tally.hit, tally.ignored,
            readonly(tally.protocol.max_dets, np.int64), tally.positives, len(tally.protocol.iou_thresholds),
            begin, end, starts, ranks, scores, items, first,
        )  # fmt: skip
        found = starts[-1]
        positives = tally.positives.ravel()[np.arange(begin, end) // self._per_area()]
        return Hits(starts, ranks[:found], positives, items, scores[:found], first)
