"""Score a tally with reweighted images, without matching again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.detection.matching_rules import BY_FILE, HITS_FIRST
from detmap.detection.metric_names import OF_CLASS, OF_IMAGES, Row, metric_table
from detmap.detection.precisions import mean_under
from detmap.detection.protocols import Protocol
from detmap.detection.tally import Tally
from detmap.detection.true_positives import class_errors, detection_score, mean_errors, names_of
from detmap.errors import OptionError, one_of, shorten
from detmap.hits import SAMPLED, WITH_TAIL, Hits
from detmap.kernels import readonly, resampling
from detmap.statistics.clusters import Units, balanced, units_of
from detmap.statistics.sampled_curves import sampled_scores
from detmap.system import parallel, progress

#: Maximum number of precision values in a block of replicates, and maximum number of hits in a group of classes. Blocks
#: are small enough to react to Ctrl-C, and groups fit into a cache. Blocks and groups are large enough to make the cost
#: of calling kernels negligible. For COCO's 80 classes, a block holds at least `resampling.LANES` replicates, which
#: kernels process together.
_BLOCK, _HITS = 2_600_000, 500_000


def _of_category(protocol: Protocol) -> dict[str, tuple[str, float | None]]:
    """Return the kind and the IoU threshold of each per-category metric. The threshold is None if the metric is a mean
    over all thresholds.
    """
    if not protocol.per_class_metrics:
        return {"AP": ("AP", None), "AP50": ("AP", 0.5), "AP75": ("AP", 0.75)}
    errors = names_of(protocol)
    thresholds = protocol.iou_thresholds if errors else ()
    by_threshold = {f"AP_{iou:g}": ("AP", iou) for iou in thresholds}
    return {"AP": ("AP", None), **by_threshold, **{name: (name, None) for name in errors}}


def metric_names(protocol: Protocol) -> tuple[str, ...]:
    """Return the metrics over all categories, in the order of a result."""
    return tuple(name for name, _ in metric_table(protocol, ()))


def category_metrics(protocol: Protocol) -> tuple[str, ...]:
    """Return the per-category metrics."""
    return tuple(_of_category(protocol))


def column_names(
    metrics: Sequence[str], by_category: Sequence[str], protocol: Protocol, categories: tuple[tuple[Any, str], ...]
) -> dict[str, int]:
    """Return the column of each metric, by its name in a result, including metrics named after one category."""
    columns = {name: at for at, name in enumerate(metrics)}
    own = {_of_category(protocol)[name]: at for at, name in enumerate(by_category)}
    for name, (kind, iou, _, _, k) in metric_table(protocol, categories):
        if isinstance(k, int) and (kind, iou) in own:
            columns[name] = len(metrics) + own[kind, iou] * len(categories) + k
    return columns


def threshold_counts(
    protocol: Protocol, metrics: Sequence[str], by_category: Sequence[str]
) -> tuple[list[int], list[int]]:
    """Return the number of IoU thresholds over which each metric averages AP; 0 for metrics other than AP."""
    rows = dict(metric_table(protocol, ()))

    def count(kind: str, iou: float | None) -> int:
        first, stop = _thresholds(protocol, iou)
        return 0 if kind == "AR" or _measured(kind, protocol) else stop - first

    return [count(*rows[name][:2]) for name in metrics], [count(*_of_category(protocol)[name]) for name in by_category]


def _measured(kind: str, protocol: Protocol) -> bool:
    """Return whether a metric is a mean over true positives, such as a mean error."""
    return kind == "score" or kind in names_of(protocol)


def unlimited(
    protocol: Protocol, metrics: Sequence[str], by_category: Sequence[str], categories: int
) -> NDArray[np.bool_]:
    """Mask of the columns whose values are not limited to [0, 1], such as errors of true positives, shape (m,)."""
    rows, errors = dict(metric_table(protocol, ())), names_of(protocol)
    of_category = [name in errors for name in by_category for _ in range(categories)]
    return np.array([*(rows[name][0] in errors for name in metrics), *of_category], np.bool_)


def of_one_class(protocol: Protocol, metrics: Sequence[str]) -> list[bool]:
    """Return for each metric whether it belongs to a class with its own IoU thresholds, see
    `Protocol.class_thresholds`. Such a metric is a percentage.
    """
    rows = dict(metric_table(protocol, ()))
    return [rows[name][0] in OF_CLASS for name in metrics]


def largest_values(tally: Tally, metrics: Sequence[str], by_category: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the maximum possible value of each column; None if it is 1 for all."""
    percent = of_one_class(tally.protocol, metrics)
    if not any(percent):
        return None
    return np.array([*(100.0 if one else 1.0 for one in percent), *[1.0] * (len(by_category) * len(tally.categories))])


def find_column(protocol: Protocol, categories: tuple[tuple[Any, str], ...], metric: str) -> int:
    """Return the column of a metric among all columns; raise `OptionError` if the protocol has no such metric."""
    columns = column_names(metric_names(protocol), category_metrics(protocol), protocol, categories)
    if metric not in columns:
        raise OptionError(f"no metric {shorten(metric)}{one_of(metric, list(columns)[:30])}")
    return columns[metric]


def support(
    tally: Tally, metrics: Sequence[str], by_category: Sequence[str], units: Units | None = None
) -> NDArray[np.int64]:
    """Return for each column the number of units (images or clusters) with positives in the metric's area range."""
    units = units_of(tally) if units is None else units
    rows, categories = dict(metric_table(tally.protocol, ())), len(tally.categories)
    held = tally.positive_counts > 0
    unit = tally.positive_image if units.of is None else units.of[tally.positive_image]
    images = [np.unique(unit[held[:, rows[name][2]] & _of_group(tally, rows[name])]).size for name in metrics]
    pairs = np.unique(tally.positive_category[held[:, 0]].astype(np.int64) * max(units.number, 1) + unit[held[:, 0]])
    of_category = np.bincount(pairs // max(units.number, 1), minlength=categories)
    return readonly(np.concatenate((images, np.tile(of_category, len(by_category)))), np.int64)


def balance(
    tally: Tally, metrics: Sequence[str], by_category: Sequence[str], units: Units
) -> NDArray[np.float64] | None:
    """Return the effective number of clusters of each column, see `balanced`; None without clusters."""
    if units.of is None:
        return None
    rows, categories = dict(metric_table(tally.protocol, ())), len(tally.categories)

    def worth(area: int, wanted: Any = slice(None)) -> float:
        return balanced(units.totals(tally.positive_image[wanted], tally.positive_counts[wanted, area]))

    of_category = [worth(0, tally.positive_category == k) for k in range(categories)]
    of_all = (worth(rows[name][2], _of_group(tally, rows[name])) for name in metrics)
    return np.array([*of_all, *of_category * len(by_category)])


def _of_group(tally: Tally, row: Row) -> NDArray[np.bool_]:
    """Return a mask, shape (p,), of the pairs of category and image with positives over which a metric averages."""
    group = row[-1]
    if row[0] in OF_IMAGES:
        return tally.of_crowd_group(str(group))[tally.positive_image]
    if row[0] in OF_CLASS:
        named = [name.casefold() == str(group).casefold() for _, name in tally.categories]
        return np.asarray(np.array(named, np.bool_)[tally.positive_category])
    if not isinstance(group, str):
        return np.ones(tally.positive_category.size, np.bool_)
    return np.asarray(tally.in_group(group)[tally.positive_category])


@dataclass(frozen=True, eq=False)
class Reweighted:
    """A tally in ranking order, prepared to be scored for many samples of its images.

    There is a column for each metric in `metrics`. Then, for each metric in `by_category`, there is a column for each
    category. `sides` is the number of models: 2 if detections are exchanged between two models, else 1. A replicate has
    one output row per model; see `detmap.kernels.resampling`.
    """

    tally: Tally
    metrics: Sequence[str]
    by_category: Sequence[str]
    sides: int = 1
    areas: list[int] = field(init=False)
    caps: int = field(init=False)
    table: resampling.Table = field(init=False)
    groups: dict[str, NDArray[np.intp]] = field(init=False)
    pooled: dict[int, int] = field(init=False)
    pools: Reweighted | None = field(init=False)
    crowds: list[_Crowd] = field(init=False)
    events: resampling.Events = field(init=False)

    def __post_init__(self) -> None:
        protocol = self.tally.protocol
        if protocol.interpolation in SAMPLED:  # `sampled_scores` computes these curves
            return
        rows = dict(metric_table(protocol, ()))
        chosen = [rows[name] for name in self.metrics]
        areas = sorted({0, *(area for _, _, area, _, _ in chosen)})
        last = len(protocol.max_dets) - 1
        metrics = [
            (kind == "AR", areas.index(area), *_thresholds(protocol, iou), cap) for kind, iou, area, cap, _ in chosen
        ]
        pools = ("", *protocol.groups)
        pooled = {at: pools.index(str(row[-1] or "")) for at, row in enumerate(chosen) if row[0] == "pooled"}
        object.__setattr__(self, "pooled", pooled)
        own = None if not pooled else Reweighted(self.tally.pools(), (), ("AP",), self.sides)
        object.__setattr__(self, "pools", own)
        object.__setattr__(
            self, "crowds", [_Crowd(self.tally, name, chosen, self.sides) for name in _crowds_of(chosen)]
        )
        groups = [row[-1] if isinstance(row[-1], str) and row[0] not in OF_IMAGES else "" for row in chosen]
        by_class = [_thresholds(protocol, _of_category(protocol)[name][1]) for name in self.by_category]
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
        object.__setattr__(self, "groups", {one: np.flatnonzero(np.array(groups) == one) for one in groups if one})
        object.__setattr__(self, "events", _events(self.tally, areas, self.caps))

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.metrics) + len(self.by_category) * len(self.tally.categories)

    def score(
        self, count: int, codes: Callable[[int], NDArray[np.int32]], threads: int | None = None
    ) -> NDArray[np.float64]:
        """Return `count` replicates, shape (count, sides, columns). ``codes(r)`` encodes the number of copies of each
        image, and its model, as ``2 * copies + side``.
        """
        out = np.empty((count, self.sides, self.columns))
        protocol = self.tally.protocol
        if protocol.interpolation in SAMPLED:
            return sampled_scores(self.tally, self.metrics, self.by_category, codes, out, threads)
        recalls = len(protocol.recall_thresholds) if protocol.interpolation == "grid" else 1
        bits = len(self.areas) * len(protocol.iou_thresholds)
        size = max(1, min(256, _BLOCK // max(self.sides * len(self.tally.categories) * bits * recalls, 1)))
        size = size // resampling.LANES * resampling.LANES or size
        spare: list[_Room] = []  # blocks reuse buffers, because allocating memory costs as much as filling it

        def work(begin: int, end: int) -> None:
            room = spare.pop() if spare else _Room()
            self._score_block(np.stack([codes(r) for r in range(begin, end)]), recalls, room, out[begin:end])
            spare.append(room)
            progress.advance(end - begin)

        parallel.run(work, [(begin, min(begin + size, count)) for begin in range(0, count, size)], threads)
        if self.pools is not None:  # each category of `pools` is a union of categories
            with progress.counting(("pooled classes", count)):
                made = self.pools.score(count, codes, threads)
            out[:, :, list(self.pooled)] = made[:, :, list(self.pooled.values())]
        for crowd in self.crowds:
            with progress.counting(("groups of images", count)):
                crowd.fill(out, count, codes, threads)
        return out

    def _score_block(self, codes: NDArray[np.int32], recalls: int, room: _Room, out: NDArray[np.float64]) -> None:
        """Score a block of replicates, and write the columns to `out`."""
        protocol, classes = self.tally.protocol, len(self.tally.categories)
        thresholds, rows = len(protocol.iou_thresholds), len(codes) * self.sides
        # Small integers fit into the fastest cache. An image can have up to 255 copies, which is practically always
        # enough.
        given = readonly(codes, np.int16)
        words = self.words(given)
        positives = self.positives(given)
        items = self._counted_items(given) if protocol.interpolation in WITH_TAIL else None
        shape = (classes, rows, len(self.areas), thresholds)
        values = room.floats(int(np.prod(shape)) * recalls).reshape(*shape, recalls)
        found = np.empty(shape, np.int64)
        near = np.empty((classes, rows, self.caps, thresholds), np.int64)
        grid = readonly(protocol.recall_thresholds, np.float64)
        for begin, end in _groups(positives.sum(axis=(1, 2)) * thresholds):
            hits = self._hits(words, positives, (begin, end), near, room)
            found[begin:end] = np.diff(hits.starts).reshape(found[begin:end].shape)
            if protocol.interpolation == "grid":
                own = values[begin:end].reshape(-1, recalls)
                hits.interpolate_into(grid, protocol.epsilon, own, np.empty((0, recalls)))
            else:
                if items is not None:
                    hits = replace(hits, items=items[begin:end].ravel())
                own = hits.average_precision(protocol.interpolation, protocol.epsilon, threads=1)
                values[begin:end] = own.reshape(values[begin:end].shape)
        if protocol.empty_classes == "zero":  # a class without ground truth has AP 0, like a class without hits
            np.nan_to_num(values, copy=False)
            positives = np.maximum(positives, 1)
        resampling.average(
            self.table, readonly(values, np.float64), readonly(found, np.int64), readonly(near, np.int64),
            readonly(positives, np.int64), 0, rows, out.reshape(-1, self.columns),
        )  # fmt: skip
        for group, columns in self.groups.items():
            self._average_group(group, columns, (values, found, near, positives), out.reshape(-1, self.columns))
        if protocol.mean_of != "values" or names_of(protocol):
            self._fill_by_class(codes, values, out.reshape(-1, self.columns))

    def _fill_by_class(self, codes: NDArray[np.int32], values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Compute the columns that are means of per-class AP, or errors of true positives."""
        protocol, size = self.tally.protocol, len(self.tally.categories)
        table, names = dict(metric_table(protocol, ())), names_of(protocol)
        kinds = [(at, table[name]) for at, name in enumerate(self.metrics)]
        own = [(len(self.metrics) + at * size, name) for at, name in enumerate(self.by_category) if name in names]
        wanted = bool(own) or any(_measured(row[0], protocol) for _, row in kinds)
        for row in range(len(out)):
            by_area = [
                mean_under(protocol, np.ascontiguousarray(np.moveaxis(values[:, row, a], 0, -1)))
                for a in range(len(self.areas))
            ]
            if wanted:
                given = codes[row // self.sides]
                copies = np.where((given & 1) == row % self.sides, given >> 1, 0) if self.sides == 2 else given >> 1
                errors = class_errors(self.tally, copies.astype(np.int64))
                means = mean_errors(errors)
            for at, (kind, iou, area, _, group) in kinds:
                if kind == "AP" and protocol.mean_of != "values" and iou is None and group is None:
                    out[row, at] = by_area[self.areas.index(area)]
                elif kind == "score":
                    out[row, at] = detection_score(by_area[0], means)
                elif kind in names:
                    out[row, at] = means[names.index(kind)]
            for begin, name in own:
                out[row, begin : begin + size] = errors[:, names.index(name)]

    def _average_group(
        self, group: str, columns: NDArray[np.intp], made: tuple[NDArray[Any], ...], out: NDArray[np.float64]
    ) -> None:
        """Compute the columns of the metrics of a group of categories."""
        inside = self.tally.in_group(group)
        own = np.empty((len(out), columns.size))
        metrics = readonly(self.table.metrics[columns], np.int64)
        table = self.table._replace(metrics=metrics, by_class=readonly(np.empty((0, 2), np.int64), np.int64))
        values, found, near, positives = (array[inside] for array in made)
        resampling.average(
            table, readonly(values, np.float64), readonly(found, np.int64), readonly(near, np.int64),
            readonly(positives, np.int64), 0, len(out), own,
        )  # fmt: skip
        out[:, columns] = own

    @staticmethod
    def words(codes: NDArray[np.int16]) -> NDArray[np.uint64]:
        """Return the number of copies of each image of the first model in each replicate, in the layout that
        `resampling.collect_hits` reads.
        """
        blocks, images = -(-len(codes) // resampling.LANES), codes.shape[1]
        copies = np.zeros((blocks * resampling.LANES, images), np.uint8)
        copies[: len(codes)] = np.where(codes & 1, 0, codes >> 1)
        bytes_of = copies.reshape(blocks, resampling.LANES, images).transpose(0, 2, 1)
        return readonly(np.ascontiguousarray(bytes_of).view("<u8")[..., 0], np.uint64)

    def positives(self, codes: NDArray[np.int16]) -> NDArray[np.int64]:
        """Return the number of positives by class, by replicate and model, and by area range, shape (K, rows, areas)."""
        tally, areas, replicates = self.tally, len(self.areas), len(codes)
        if self.sides == 2:  # both models have the same ground truth, so every permutation has the same positives
            codes = readonly(codes[:1], np.int16)
        counted = np.zeros((len(codes), self.sides, len(tally.categories), areas), np.int64)
        counts = readonly(tally.positive_counts[:, self.areas], np.int32)
        resampling.count_positives(tally.positive_category, tally.positive_image, counts, codes, counted)
        counted = np.broadcast_to(counted, (replicates, *counted.shape[1:]))
        by_row = counted.reshape(replicates * self.sides, len(tally.categories), areas)
        return np.ascontiguousarray(by_row.transpose(1, 0, 2))

    @cached_property
    def _ranked(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Three arrays with a row for each pair of category and image with detections. They hold the category, the
        image, and a column for each area range and threshold with the number of detections that are not ignored.
        """
        tally, thresholds = self.tally, len(self.tally.protocol.iou_thresholds)
        cells, at = np.unique(tally.category.astype(np.int64) * tally.image_ids.size + tally.image, return_inverse=True)
        counts = np.zeros((cells.size, len(self.areas) * thresholds), np.int32)
        for bit in range(counts.shape[1]):
            counted = ~tally.bit(tally.ignored, self.areas[bit // thresholds], bit % thresholds)
            counts[:, bit] = np.bincount(at[counted], minlength=cells.size)
        category, image = np.divmod(cells, max(tally.image_ids.size, 1))
        return readonly(category, np.int32), readonly(image, np.int32), readonly(counts, np.int32)

    def _counted_items(self, codes: NDArray[np.int16]) -> NDArray[np.int64]:
        """Return the number of detections that are not ignored, shape (K, rows, areas * T). Some rules of interpolation
        need this number, because they use the detections after the last hit.
        """
        category, image, counts = self._ranked
        classes = len(self.tally.categories)
        counted = np.zeros((len(codes), self.sides, classes, counts.shape[1]), np.int64)
        resampling.count_positives(category, image, counts, codes, counted)
        return np.ascontiguousarray(counted.reshape(-1, classes, counts.shape[1]).transpose(1, 0, 2))

    def _hits(
        self,
        words: NDArray[np.uint64],
        positives: NDArray[np.int64],
        classes: tuple[int, int],
        near: NDArray[np.int64],
        room: _Room,
    ) -> Hits:
        """Return the hits of some classes' rankings, and write to `near` the number of hits within each smaller
        `max_dets`.
        """
        begin, end = classes
        thresholds = len(self.tally.protocol.iou_thresholds)
        most = np.repeat(positives[begin:end].ravel(), thresholds)  # a ranking has at most as many hits as positives
        starts = np.empty(most.size + 1, np.int64)
        ranks = room.integers(int(most.sum()) + resampling.SPARE)
        resampling.collect_hits(self.events, words, self.sides, begin, end, starts, ranks, near)
        return Hits(starts, ranks[: starts[-1]], most, np.zeros(most.size, np.int64))


def _crowds_of(rows: Sequence[Row]) -> list[str]:
    """Return the names of the groups of images for which `rows` define metrics."""
    return list(dict.fromkeys(str(row[-1]) for row in rows if row[0] in OF_IMAGES))


class _Crowd:
    """The metrics of a group of images, computed from a tally of only these images."""

    def __init__(self, tally: Tally, name: str, rows: Sequence[Row], sides: int) -> None:
        self.images = tally.of_crowd_group(name)
        own = Reweighted(tally.crowd_group(name), metric_names(tally.protocol)[:1], ("AP",), sides)
        self.reweighted = own
        self.columns = {at: row[0] for at, row in enumerate(rows) if row[0] in OF_IMAGES and row[-1] == name}

    def fill(
        self, out: NDArray[np.float64], count: int, codes: Callable[[int], NDArray[np.int32]], threads: int | None
    ) -> None:
        """Write the columns of this group of images to `out`, for `count` replicates."""
        made = self.reweighted.score(count, lambda r: codes(r)[self.images], threads)
        mean, defined = made[:, :, 0], ~np.isnan(made[:, :, 1:])
        lacking = (~defined).sum(axis=2)
        known = defined.shape[2] - lacking
        total = np.where(known > 0, mean * known, 0.0) - lacking
        published = np.round(total / max(defined.shape[2], 1), 4) if defined.shape[2] else mean
        for at, kind in self.columns.items():
            out[:, :, at] = mean if kind == "group" else published


def _groups(sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Split the classes into ranges with about `_HITS` hits each. `sizes` are the numbers of hits by class."""
    groups, begin, total = [], 0, 0
    for k, size in enumerate(sizes.tolist()):
        total += size
        if total >= _HITS or k == len(sizes) - 1:
            groups.append((begin, k + 1))
            begin, total = k + 1, 0
    return groups


class _Room:
    """Buffers that blocks of replicates reuse."""

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
    """Return the range of thresholds of a metric; empty if the protocol does not evaluate the threshold `iou`."""
    if iou is None:
        return 0, len(protocol.iou_thresholds)
    found = protocol.find_threshold(iou)
    return (0, 0) if found is None else (found, found + 1)


def _events(tally: Tally, areas: Sequence[int], caps: int) -> resampling.Events:
    """Return, as `resampling.Events`, the detections that are counted in at least one of the area ranges."""
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
    if protocol.ties not in BY_FILE:
        # A run is a group of detections of equal score on one image. A run is not divided: each copy of the image
        # repeats the whole run.
        starts_run[1:] = (category[1:] != category[:-1]) | (image[1:] != image[:-1]) | (score[1:] != score[:-1])
    if protocol.ties == HITS_FIRST:  # detections of equal score are then ordered by `times_hit`
        times = tally.times_hit()[kept]
        starts_run[1:] |= times[1:] != times[:-1]
    run = np.cumsum(starts_run) - 1
    in_special = np.bincount(run[special], minlength=int(starts_run.sum())).astype(np.bool_)[run]
    rows = np.flatnonzero(in_special)
    first = in_special & starts_run
    run_of = np.cumsum(first)[rows] - 1
    run_at = np.flatnonzero(first)
    sizes = np.stack([np.bincount(run_of[counted[rows]], minlength=run_at.size) for counted in counts], axis=1)

    # Misses after the last run of their category are dropped, because misses without a later hit do not change AP.
    stays = np.flatnonzero(~in_special)
    before = np.searchsorted(run_at, stays)  # index of the run after each miss
    follows = before < run_at.size
    stays, before = stays[follows], before[follows]
    own = category[stays] == category[run_at[before]]
    stays, before = stays[own], before[own]
    order = np.lexsort((pattern[stays], before))  # group misses by the run that follows, then by area ranges
    stays, before = stays[order], before[order]
    starts = np.ones(stays.size, np.bool_)
    starts[1:] = (before[1:] != before[:-1]) | (pattern[stays][1:] != pattern[stays][:-1])
    segment = np.flatnonzero(starts)
    segments = np.bincount(before[segment], minlength=run_at.size)
    per_class = np.bincount(category[run_at], minlength=categories)
    return resampling.Events(
        readonly(np.concatenate(([0], np.cumsum(per_class))), np.int64),
        readonly(image[first], np.int32),
        readonly(sizes, np.int64),
        readonly(np.concatenate(([0], np.cumsum(segments))), np.int64),
        readonly(pattern[stays][segment], np.int32),
        readonly(np.append(segment, stays.size), np.int64),
        readonly(image[stays], np.int32),
        readonly(counts[:, first_of].T, np.int64),
        *_items(tally, areas, caps, kept[rows], run_of, category[run_at]),
    )


def _items(
    tally: Tally,
    areas: Sequence[int],
    caps: int,
    rows: NDArray[np.int64],
    run_of: NDArray[np.int64],
    category: NDArray[np.int32],
) -> tuple[NDArray[Any], ...]:
    """Return the columns on items, which `resampling.Events` explains."""
    # `rows` are the row numbers of the detections that belong to runs. `run_of` is the run of each of these detections,
    # and `category` is the category of each run.
    thresholds, runs = len(tally.protocol.iou_thresholds), category.size
    hit, ignored = tally.hit[rows], tally.ignored[rows]
    beyond = np.minimum(np.searchsorted(np.array(tally.protocol.max_dets), tally.rank[rows], side="right"), caps)
    starts = np.searchsorted(run_of, np.arange(runs + 1))
    keys, items, steps, skips, many, places, beyonds = [], [], [], [], [], [], []
    for at, a in enumerate(areas):
        counted = ~_bits(ignored, a, thresholds, every=True)
        for t in range(thresholds):
            found, skipped = (counted & tally.bit(words, a, t) for words in (hit, ignored))
            # mask of the detections that count at this threshold and area range
            stays = counted & ~skipped
            total = np.concatenate(([0], np.cumsum(stays)))
            means = np.flatnonzero(np.bincount(run_of[found | skipped], minlength=runs))
            hits = np.flatnonzero(found)
            keys.append((category[means].astype(np.int64) * len(areas) + at) * thresholds + t)
            items.append(means)
            steps.append(total[starts[means + 1]] - total[starts[means]])
            skips.append(np.bincount(run_of[skipped], minlength=runs)[means])
            many.append(np.bincount(run_of[hits], minlength=runs)[means])
            places.append(total[hits + 1] - total[starts[run_of[hits]]])
            beyonds.append(beyond[hits])
    key, count, step, skip = (np.concatenate(column) for column in (keys, many, steps, skips))
    order = np.argsort(key, kind="stable")
    alone = (step == 1) & (skip == 0)
    begins = np.cumsum(count) - count  # start of each item's hits before the items are reordered
    count = count[order]
    moved = np.repeat(begins[order] - (np.cumsum(count) - count), count) + np.arange(count.sum())
    bounds = np.searchsorted(key[order], np.arange(len(tally.categories) * len(areas) * thresholds + 1))
    return (
        readonly(bounds, np.int64),
        readonly(np.concatenate(items)[order], np.int32),
        readonly(step[order], np.int32),
        readonly(skip[order], np.int32),
        readonly(np.where(count == 0, resampling.NO_HIT, resampling.ALONE * (alone[order] & (count == 1))), np.uint8),
        readonly(np.concatenate(([0], np.cumsum(count))), np.int64),
        readonly(np.concatenate(places)[moved], np.int32),
        readonly(np.concatenate(beyonds)[moved], np.int32),
    )


def _bits(words: NDArray[np.uint64], area: int, thresholds: int, *, every: bool) -> NDArray[np.bool_]:
    """Return for each row whether all bits of an area range are set, or with ``every=False`` whether any bit is set."""
    mask = np.zeros(words.shape[1], np.uint64)
    for bit in range(area * thresholds, (area + 1) * thresholds):
        mask[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    inside = words & mask
    return np.asarray((inside == mask).all(axis=1) if every else inside.any(axis=1))
