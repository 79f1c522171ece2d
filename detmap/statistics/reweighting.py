"""A tally scored again under other weights of its images; nothing is matched again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import parallel
from detmap.errors import OptionError, shorten
from detmap.hits import Hits
from detmap.kernels import readonly, resampling
from detmap.naming import metric_table
from detmap.protocols import Protocol
from detmap.tally import Tally

#: A block of replicates has about so many precisions: few enough for a cache and for Ctrl-C to be heard soon, and enough
#: that calling the kernels does not count.
_BLOCK = 100_000


def metric_names(protocol: Protocol) -> tuple[str, ...]:
    """Return the metrics over all categories, in the order of a result."""
    return tuple(name for name, _ in metric_table(protocol, ()))


def category_metrics(protocol: Protocol) -> tuple[str, ...]:
    """Return the metrics that every category has of its own."""
    return ("AP",) if protocol.per_class_metrics else ("AP", "AP50", "AP75")


def column_names(
    metrics: Sequence[str], by_category: Sequence[str], protocol: Protocol, categories: tuple[tuple[Any, str], ...]
) -> dict[str, int]:
    """Return the column of every metric that a result names: those of all categories, and where it names them of one."""
    columns = {name: at for at, name in enumerate(metrics)}
    for name, (kind, _, _, _, k) in metric_table(protocol, categories):
        if k is not None and kind in by_category:
            columns[name] = len(metrics) + by_category.index(kind) * len(categories) + k
    return columns


def find_column(protocol: Protocol, categories: tuple[tuple[Any, str], ...], metric: str) -> int:
    """Return the column of a metric among all columns.

    Raises
    ------
    OptionError
        Where the protocol has no such metric.
    """
    columns = column_names(metric_names(protocol), category_metrics(protocol), protocol, categories)
    if metric not in columns:
        raise OptionError(f"no metric {shorten(metric)}; one of: {', '.join(list(columns)[:30])}")
    return columns[metric]


def support(tally: Tally, metrics: Sequence[str], by_category: Sequence[str]) -> NDArray[np.int64]:
    """Return how many images say something about each column: those with something to find in its area range."""
    rows, categories = dict(metric_table(tally.protocol, ())), len(tally.categories)
    held = tally.positive_counts > 0
    images = [np.unique(tally.positive_image[held[:, rows[name][2]]]).size for name in metrics]
    of_category = np.bincount(tally.positive_category[held[:, 0]], minlength=categories)
    return readonly(np.concatenate((images, np.tile(of_category, len(by_category)))), np.int64)


@dataclass(frozen=True, eq=False)
class Reweighted:
    """A tally made ready to be scored under many weights of its images.

    Parameters
    ----------
    tally : Tally
        In ranking order.
    metrics, by_category : sequence of str
        Names out of `metric_names` and `category_metrics`: first come the columns of the one, then, for each of the other, a
        column per category.
    sides : {1, 2}
        How many rows of output a replicate has, see `detmap.kernels.resampling`.
    """

    tally: Tally
    metrics: Sequence[str]
    by_category: Sequence[str]
    sides: int = 1
    areas: list[int] = field(init=False)
    caps: int = field(init=False)
    table: resampling.Table = field(init=False)
    events: resampling.Events = field(init=False)

    def __post_init__(self) -> None:
        protocol = self.tally.protocol
        rows = dict(metric_table(protocol, ()))
        chosen = [rows[name] for name in self.metrics]
        areas = sorted({0, *(area for _, _, area, _, _ in chosen)})
        last = len(protocol.max_dets) - 1
        metrics = [
            (kind == "AR", areas.index(area), *_thresholds(protocol, iou), cap) for kind, iou, area, cap, _ in chosen
        ]
        by_class = [_thresholds(protocol, {"AP": None, "AP50": 0.5, "AP75": 0.75}[name]) for name in self.by_category]
        object.__setattr__(self, "areas", areas)
        object.__setattr__(self, "caps", last if any(row[4] < last for row in metrics) else 0)
        object.__setattr__(
            self,
            "table",
            resampling.Table(
                readonly(np.array(metrics, np.int64).reshape(-1, 5), np.int64),
                readonly(np.array(by_class, np.int64).reshape(-1, 2), np.int64),
            ),
        )
        object.__setattr__(self, "events", _events(self.tally, areas))

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.metrics) + len(self.by_category) * len(self.tally.categories)

    def score(
        self, count: int, codes: Callable[[int], NDArray[np.int32]], threads: int | None = None
    ) -> NDArray[np.float64]:
        """Return the columns of many replicates, shape (count, sides, columns).

        Parameters
        ----------
        count : int
            How many.
        codes : callable
            Takes the number of a replicate and returns each image's ``2 * copies + side``, shape (i,).
        threads : int, optional
            One per processor by default. Changes no result.
        """
        out = np.empty((count, self.sides, self.columns))
        protocol = self.tally.protocol
        recalls = len(protocol.recall_thresholds) if protocol.interpolation == "grid" else 1
        bits = len(self.areas) * len(protocol.iou_thresholds)
        size = max(1, min(256, _BLOCK // max(self.sides * len(self.tally.categories) * bits * recalls, 1)))
        spare: list[_Room] = []  # what one block has used the next can use: new memory costs as much as filling it

        def work(begin: int, end: int) -> None:
            room = spare.pop() if spare else _Room()
            self._score_block(np.stack([codes(r) for r in range(begin, end)]), recalls, room, out[begin:end])
            spare.append(room)

        parallel.run(work, [(begin, min(begin + size, count)) for begin in range(0, count, size)], threads)
        return out

    def _score_block(self, codes: NDArray[np.int32], recalls: int, room: _Room, out: NDArray[np.float64]) -> None:
        protocol = self.tally.protocol
        hits, near, positives = self.hits(codes, room)
        thresholds = len(protocol.iou_thresholds)
        shape = (*positives.shape, thresholds, recalls)
        if protocol.interpolation == "grid":
            values = room.floats(int(np.prod(shape))).reshape(-1, recalls)
            grid = readonly(protocol.recall_thresholds, np.float64)
            hits.interpolate_into(grid, protocol.epsilon, values, np.empty((0, recalls)))
        else:
            values = hits.average_precision(protocol.interpolation, protocol.epsilon, threads=1)
        resampling.average(
            self.table, readonly(values.reshape(shape), np.float64), hits.starts, readonly(near, np.int64),
            readonly(positives, np.int64), 0, len(positives), out.reshape(-1, self.columns),
        )  # fmt: skip

    def hits(
        self, codes: NDArray[np.int32], room: _Room | None = None
    ) -> tuple[Hits, NDArray[np.int64], NDArray[np.int64]]:
        """Return the hits of every ranking of a block of replicates, those within smaller caps, and the positives."""
        tally, room = self.tally, room or _Room()
        thresholds, classes = len(tally.protocol.iou_thresholds), len(tally.categories)
        # Two bytes an image, which fit into the fastest cache: nobody draws one of so many images 16,384 times.
        rows, given = len(codes) * self.sides, readonly(codes, np.int16)
        counted = np.zeros((len(codes), self.sides, classes, len(self.areas)), np.int64)
        counts = readonly(tally.positive_counts[:, self.areas], np.int32)
        resampling.count_positives(tally.positive_category, tally.positive_image, counts, given, counted)
        positives = np.repeat(counted.ravel(), thresholds)
        starts = np.concatenate(([0], np.cumsum(positives)))  # no ranking has more hits than positives
        ranks = room.integers(int(starts[-1]))
        near = np.zeros((rows, classes, self.caps, thresholds), np.int64)
        resampling.collect_hits(self.events, given, thresholds, self.sides, starts, ranks, near)
        none = np.zeros(positives.size, np.int64)
        return (
            Hits(starts, ranks[: starts[-1]], positives, none),
            near,
            counted.reshape(rows, classes, len(self.areas)),
        )


class _Room:
    """Memory that is used again."""

    def __init__(self) -> None:
        self._floats, self._integers = np.empty(0), np.empty(0, np.int64)

    def floats(self, size: int) -> NDArray[np.float64]:
        if self._floats.size < size:
            self._floats = np.empty(size)
        return self._floats[:size]

    def integers(self, size: int) -> NDArray[np.int64]:
        if self._integers.size < size:
            self._integers = np.empty(size + size // 4, np.int64)
        return self._integers[:size]


def _thresholds(protocol: Protocol, iou: float | None) -> tuple[int, int]:
    """Return the first threshold of a metric and the one after the last; none where it was not evaluated."""
    if iou is None:
        return 0, len(protocol.iou_thresholds)
    found = protocol.find_threshold(iou)
    return (0, 0) if found is None else (found, found + 1)


def _events(tally: Tally, areas: Sequence[int]) -> resampling.Events:
    """Return the detections of a tally that count in some of the area ranges."""
    protocol, categories = tally.protocol, len(tally.categories)
    thresholds = len(protocol.iou_thresholds)
    counts = np.stack([~_bits(tally.ignored, a, thresholds, every=True) for a in areas])
    kept = np.flatnonzero(counts.any(axis=0))
    counts = counts[:, kept]
    hit, ignored = tally.hit[kept], tally.ignored[kept]
    category, image, score = tally.category[kept], tally.image[kept], tally.scores[kept]
    special = np.zeros(kept.size, np.bool_)
    for a, counted in zip(areas, counts, strict=True):
        special |= counted & _bits(hit | ignored, a, thresholds, every=False)
    code = np.zeros(kept.size, np.int64)
    for counted in counts:
        code = 2 * code + counted
        if code.size and code.max() >= 2**20:
            code = np.unique(code, return_inverse=True)[1].reshape(-1)
    _, first_of, pattern = np.unique(code, return_index=True, return_inverse=True)
    pattern = pattern.reshape(-1)

    starts_run = np.ones(kept.size, np.bool_)
    if protocol.ties == "image":
        # An image's detections of one score change places with nobody: the copies of such a run follow each other whole.
        starts_run[1:] = (category[1:] != category[:-1]) | (image[1:] != image[:-1]) | (score[1:] != score[:-1])
    run = np.cumsum(starts_run) - 1
    in_special = np.bincount(run[special], minlength=int(starts_run.sum())).astype(np.bool_)[run]
    rows = np.flatnonzero(in_special)
    first = in_special & starts_run
    lengths = np.bincount(np.cumsum(first)[rows] - 1, minlength=int(first.sum()))
    found, skipped = [], []
    for at, a in enumerate(areas):
        for t in range(thresholds):
            counted = counts[at, rows]
            found.append(counted & tally.bit(hit[rows], a, t))
            skipped.append(counted & tally.bit(ignored[rows], a, t))
    hit_starts, hit_bits = _sparse(found, rows.size)
    skip_starts, skip_bits = _sparse(skipped, rows.size)

    # The misses before each run of its category, and no others: behind the last hit of a class nothing matters any more.
    stays = np.flatnonzero(~in_special)
    run_at = np.flatnonzero(first)
    before = np.searchsorted(run_at, stays)  # the run that follows each miss
    follows = before < run_at.size
    stays, before = stays[follows], before[follows]
    own = category[stays] == category[run_at[before]]
    stays, before = stays[own], before[own]
    misses = np.bincount(before, minlength=run_at.size)
    per_class = np.bincount(category[run_at], minlength=categories)
    caps = np.array(protocol.max_dets)
    return resampling.Events(
        readonly(np.concatenate(([0], np.cumsum(per_class))), np.int64),
        readonly(np.concatenate(([0], np.cumsum(misses))), np.int64),
        readonly(image[stays], np.int32),
        readonly(pattern[stays], np.int32),
        readonly(image[first], np.int32),
        readonly(np.concatenate(([0], np.cumsum(lengths))), np.int64),
        readonly(pattern[rows], np.int32),
        readonly(np.searchsorted(caps, tally.rank[kept][rows], side="right"), np.int32),
        hit_starts,
        hit_bits,
        skip_starts,
        skip_bits,
        readonly(counts[:, first_of].T, np.int64),
    )


def _bits(words: NDArray[np.uint64], area: int, thresholds: int, *, every: bool) -> NDArray[np.bool_]:
    """Return whether every bit, or some bit, of an area range is set in each row."""
    mask = np.zeros(words.shape[1], np.uint64)
    for bit in range(area * thresholds, (area + 1) * thresholds):
        mask[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    inside = words & mask
    return np.asarray((inside == mask).all(axis=1) if every else inside.any(axis=1))


def _sparse(columns: Sequence[NDArray[np.bool_]], rows: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return which columns are true in each row, one row after the other, and where each row starts in that list."""
    row = np.concatenate([np.flatnonzero(column) for column in columns]) if columns else np.empty(0, np.int64)
    bit = np.repeat(np.arange(len(columns)), [int(column.sum()) for column in columns])
    order = np.argsort(row, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=rows))))
    return readonly(starts, np.int64), readonly(bit[order], np.int32)
