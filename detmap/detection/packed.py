"""Tallies of shards, packed to save memory, and unpacked a few categories at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import locate
from detmap.detection.matching_rules import HITS_FIRST
from detmap.detection.protocols import Protocol
from detmap.detection.tally import COLUMNS, Column, Tally
from detmap.hits import SAMPLED
from detmap.kernels import readonly, sorting
from detmap.system import parallel

#: Maximum number of detections in categories that are unpacked together. A larger category is unpacked alone.
TOGETHER = 2**21

#: The stored columns of detections; the column of categories follows from `PackedTally.starts`.
_PACKED = tuple(column for column in COLUMNS if column.per == "detection" and column.name != "category")
_HIT = next(column for column in _PACKED if column.name == "hit")


@dataclass(frozen=True, eq=False)
class PackedTally:
    """A tally with integers of the narrowest types, so that a detection takes about 24 bytes instead of 36."""

    #: The tally without its detections.
    frame: Tally
    #: Start of each category's detections, shape (K + 1,).
    starts: NDArray[np.int64]
    #: Columns of detections by name. Detections are sorted by category with a stable sort.
    columns: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, tally: Tally) -> PackedTally:
        """Pack a tally."""
        order, starts = np.empty(len(tally), np.int32), np.empty(len(tally.categories) + 1, np.int64)
        sorting.group_by(tally.category, readonly((), np.int32), order, starts)
        columns = {}
        for column in _PACKED:
            values = getattr(tally, column.name)
            columns[column.name] = _narrow(
                column, np.take(values, order, axis=0) if len(values) else values.copy(), tally.protocol
            )
        # Empty slices of the tally's columns would keep the whole columns in memory.
        nothing = Tally.empty(tally.protocol, tally.categories)
        none: dict[str, Any] = {
            column.name: getattr(nothing, column.name) for column in COLUMNS if column.per == "detection"
        }
        return cls(replace(tally, ranked=True, **none), starts, columns)

    def __len__(self) -> int:
        """Return the number of detections."""
        return int(self.starts[-1])

    def columns_of(self, begin: int, end: int) -> dict[str, NDArray[Any]]:
        """Return the columns of categories ``[begin, end)``, as views."""
        rows = slice(self.starts[begin], self.starts[end])
        return {name: values[rows] if len(values) else values for name, values in self.columns.items()}


def _byte_count(protocol: Protocol) -> int:
    """Return the number of bytes for a detection's flags, one bit for each area range and threshold."""
    return -(-len(protocol.range_names) * len(protocol.iou_thresholds) // 8)


def _pieces(count: int) -> list[tuple[int, int]]:
    """Divide `count` bytes into integers of 4, 2 and 1 bytes, the largest first; return the start and size of each."""
    ends = [count - count % size for size in (4, 2, 1)]
    return [
        (at, size)
        for size, end, begin in zip((4, 2, 1), ends, (0, *ends), strict=False)
        for at in range(begin, end, size)
    ]


def _pieces_of(rows: NDArray[np.uint8]) -> list[tuple[int, int, NDArray[Any]]]:
    """View rows of bytes as columns of integers, because integers are copied faster. Return for each column: the index
    of its 64-bit word, its shift in the word, and the column.
    """
    count, width = rows.shape
    return [
        (at // 8, 8 * (at % 8), np.ndarray(count, f"<u{size}", rows.data if count else None, at if count else 0, width))
        for at, size in _pieces(width)
    ]


def _narrow(column: Column, values: NDArray[Any], protocol: Protocol) -> NDArray[Any]:
    """Return a column in the narrowest lossless type. Of 64-bit words only the bytes in use are kept, shape (n, bytes)."""
    if column.width == "words":
        out = np.empty((len(values), _byte_count(protocol)), np.uint8)
        for word, shift, piece in _pieces_of(out):
            piece[...] = values[:, word] >> np.uint64(shift)
        return out
    if values.dtype.kind == "f" or not values.size:
        return values
    narrow = np.promote_types(*(np.min_scalar_type(int(end)) for end in (values.min(), values.max())))
    return values.astype(narrow) if narrow.itemsize < values.itemsize else values


def _widened(rows: NDArray[np.uint8], words: int) -> NDArray[np.uint64]:
    out = np.zeros((len(rows), words), np.uint64)
    for word, shift, piece in _pieces_of(rows):
        out[:, word] |= piece.astype(np.uint64) << np.uint64(shift)
    return out


class ShardedTally:
    """The packed tallies of shards with disjoint images, merged and unpacked a few categories at a time. The shards
    have the same protocol and categories. `before` is the number of detections in all earlier shards. `frame` is the
    merged tally without detections, and `notices` are its notices. `columns_of` returns each shard's columns for a
    range of categories; it is needed only if other processes hold the columns.
    """

    def __init__(
        self,
        shards: Sequence[PackedTally],
        before: Sequence[int],
        notices: Mapping[str, int],
        columns_of: Callable[[int, int], list[dict[str, NDArray[Any]]]] | None = None,
    ) -> None:
        self._shards, self._before = shards, before
        self._columns_of = columns_of or (lambda begin, end: [shard.columns_of(begin, end) for shard in shards])
        merged = shards[0].frame.merge(*(shard.frame for shard in shards[1:]))
        self.frame = replace(merged, notices=notices)
        self._images = [locate(one.frame.image_ids, self.frame.image_ids).astype(np.int32) for one in shards]
        self._counts = np.sum([np.diff(shard.starts) for shard in shards], axis=0)

    def __len__(self) -> int:
        """Return the number of detections before `max_per_category` is applied."""
        return int(self._counts.sum())

    def every_notice(self) -> dict[str, int]:
        """Return `Tally.every_notice` of the merged tally."""
        return self.frame.every_notice(len(self))

    def in_ranking_order(self, threads: int | None = None) -> Tally | ShardedTally:
        """Return the unpacked tally if it is small or if its categories must be scored together, else `self`."""
        if len(self) <= TOGETHER or self.frame.protocol.interpolation in SAMPLED:
            return self.whole(threads)
        return self

    def parts(self, threads: int | None = None) -> Iterator[Tally]:
        """Divide the categories into consecutive ranges, and yield the tally of each range in ranking order."""
        for begin, end in self._blocks():
            yield self._part(begin, end, threads)

    def _blocks(self) -> list[tuple[int, int]]:
        """Return the half-open ranges of categories that are unpacked together."""
        return parallel.split(self._counts, TOGETHER) or [(0, 0)]

    def whole(self, threads: int | None = None) -> Tally:
        """Return the whole tally in ranking order."""
        blocks = self._blocks()
        if len(blocks) == 1:
            return self._part(*blocks[0], threads)
        protocol, at, first = self.frame.protocol, 0, 0
        made = {column.name: np.empty(column.shape(protocol, len(self)), column.native()) for column in _PACKED}
        made["category"] = np.empty(len(self), np.int32)
        for part in self.parts(threads):
            rows = slice(at, at + len(part))
            for name, out in made.items():
                if len(out):
                    out[rows] = getattr(part, name)
            made["category"][rows] += first
            at, first = rows.stop, first + len(part.categories)
        columns: dict[str, Any] = {name: readonly(out[:at], out.dtype) for name, out in made.items()}
        return replace(self.frame, ranked=True, **columns)

    def _part(self, begin: int, end: int, threads: int | None) -> Tally:
        """Return the tally of categories ``[begin, end)`` in ranking order; only sort keys are unpacked before sorting."""
        frame = self.frame.of_categories(np.isin(np.arange(self._counts.size), np.arange(begin, end)))
        protocol, columns = frame.protocol, self._columns_of(begin, end)
        counts = [np.diff(shard.starts[begin : end + 1]) for shard in self._shards]
        category = np.concatenate([np.repeat(np.arange(end - begin, dtype=np.int32), count) for count in counts])
        keys = replace(
            frame,
            category=readonly(category, np.int32),
            image=readonly(self._column("image", columns), np.int32),
            order=readonly(self._column("order", columns), np.int64),
            scores=readonly(self._column("scores", columns), np.float64),
        )
        if protocol.ties == HITS_FIRST:
            keys = replace(keys, hit=_widened(self._column("hit", columns), *_HIT.shape(protocol, 1)[1:]))
        order, starts = np.empty(category.size, np.int32), np.empty(end - begin + 1, np.int64)
        sorting.group_by(keys.category, keys.tie_order(), order, starts)
        scores = np.take(keys.scores, order)
        del keys
        # Pass `order` as the column of images, so that the kernel sorts it and `rank` by score.
        rank = self._column("rank", columns)[order].astype(np.int32)
        words = np.empty((order.size, 0), np.uint64)
        rows = sorting.Rows(order, rank, np.empty(0, np.int64), scores.view(np.uint64), words, words)
        starts = readonly(starts, np.int64)
        parallel.run(
            lambda first, last: sorting.sort_rows(starts, first, last, rows, category),
            parallel.cut(starts, threads),
            threads,
        )
        made: dict[str, Any] = {"scores": scores, "rank": rank}
        for column in _PACKED:
            if column.name not in made:
                values = self._column(column.name, columns)
                if column.width == "words":  # np.take is faster on whole words
                    values = _widened(values, *column.shape(protocol, 1)[1:])
                values = np.take(values, order, axis=0) if len(values) else values
                made[column.name] = readonly(values, column.native())
        made |= {"scores": readonly(scores, np.float64), "rank": readonly(rank, np.int32)}
        return replace(frame, ranked=True, category=readonly(category, np.int32), **made).capped()

    def _column(self, name: str, columns: Sequence[Mapping[str, NDArray[Any]]]) -> NDArray[Any]:
        """Return a packed column, concatenated over shards; `columns` has the columns of each shard."""
        values = []
        for own, images, before in zip(columns, self._images, self._before, strict=True):
            column = images[own[name]] if name == "image" else own[name]
            values.append(column.astype(np.int64) + before if name == "order" else column)
        return np.concatenate(values)
