"""The interface of tallies for bootstrap and permutation tests: columns, units, and scores with reweighted images.
`ResampledDetections` and `PairedDetections` implement it for detections, `detmap.statistics.segments` for panoptic
segmentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from detmap.detection.tally import Tally
from detmap.kernels import readonly
from detmap.panoptic.tally import PanopticTally
from detmap.statistics import intervals
from detmap.statistics.clusters import Units, units_of
from detmap.statistics.quick_differences import QuickDifferences
from detmap.statistics.reweighting import (
    Reweighted,
    balance,
    category_metrics,
    column_names,
    find_column,
    largest_values,
    metric_names,
    of_one_class,
    support,
    threshold_counts,
    unlimited,
)

AnyTally: TypeAlias = Tally | PanopticTally

#: A function that takes a sample's number and returns twice the number of copies of each image, shape (images,). The
#: lowest bit is left for the index of the model.
Copies: TypeAlias = Callable[[int], NDArray[np.int32]]

#: A function that takes a permutation's number and returns 1 for exchanged units and 0 for other units, shape (units,).
Swaps: TypeAlias = Callable[[int], NDArray[np.uint8]]

#: Permutations are only enumerated if fewer images than this can change the metric.
MOST_CHANGING = 61


class Columns(Protocol):
    """The columns of scores. There is a column for each metric in `metrics`. A column for each category follows, for
    each metric in `by_category`.
    """

    metrics: tuple[str, ...]
    by_category: tuple[str, ...]
    categories: tuple[tuple[Any, str], ...]
    #: The column of each metric, by its name in a result.
    columns: dict[str, int]
    #: The units that are drawn or exchanged, which are images or clusters of images.
    units: Units
    #: For each column, the number of images (or clusters) with positives, shape (m,).
    support: NDArray[np.int64]


class Resampled(Columns, Protocol):
    """A tally that can be scored for many samples of its images."""

    #: The minimum distances of a value in each column from 0 and from 1 for an interval, shape (m, 2); None if all
    #: distances are 0.
    near: NDArray[np.float64] | None
    #: The effective number of clusters of each column, shape (m,); None without clusters.
    balance: NDArray[np.float64] | None
    #: The maximum possible value of each column, such as 100 for a percentage, shape (m,); None if it is 1 for all.
    most: NDArray[np.float64] | None
    #: Mask of the columns that are not limited to [0, 1], shape (m,); None if all columns are limited.
    unlimited: NDArray[np.bool_] | None

    def score(self, count: int, copies: Copies, threads: int | None) -> NDArray[np.float64]:
        """Return the metrics of `count` samples, shape (count, m)."""


class Paired(Columns, Protocol):
    """Two tallies of the same images, between which the detections on an image can be exchanged."""

    #: For each category and unit, whether the tallies differ, shape (K, units).
    differs: NDArray[np.bool_]

    def differences(
        self, count: int, swaps: Swaps, threads: int | None, category: int | None = None
    ) -> NDArray[np.float64]:
        """Return the differences, second minus first, after each of `count` permutations, shape (count, m). If
        `category` is given, return only the columns of this category.
        """


class ResampledDetections:
    """A tally of detections, see `Resampled`."""

    def __init__(self, tally: Tally, threads: int | None = None) -> None:
        self._tally = tally = tally.in_ranking_order(threads)
        self.metrics: tuple[str, ...] = metric_names(tally.protocol)
        self.by_category: tuple[str, ...] = category_metrics(tally.protocol)
        self.categories, self.units = tally.categories, units_of(tally)
        self.columns = column_names(self.metrics, self.by_category, tally.protocol, tally.categories)
        self.support = support(tally, self.metrics, self.by_category, self.units)
        self.near: NDArray[np.float64] | None = self._near()
        self.balance = balance(tally, self.metrics, self.by_category, self.units)
        self.most: NDArray[np.float64] | None = largest_values(tally, self.metrics, self.by_category)
        self.unlimited: NDArray[np.bool_] | None = unlimited(
            tally.protocol, self.metrics, self.by_category, len(self.categories)
        )

    def _near(self) -> NDArray[np.float64]:
        number = len(self.categories)
        classes = int(np.count_nonzero(self.support[len(self.metrics) : len(self.metrics) + number]))
        of_all, of_category = threshold_counts(self._tally.protocol, self.metrics, self.by_category)
        alone = of_one_class(self._tally.protocol, self.metrics)
        ends = [intervals.nearest(*((1, 1) if one else (n, classes))) for n, one in zip(of_all, alone, strict=True)]
        ends += [intervals.nearest(count, 1) for count in of_category for _ in range(number)]
        return np.array(ends, np.float64).reshape(-1, 2)

    def score(self, count: int, copies: Copies, threads: int | None) -> NDArray[np.float64]:
        """See `Resampled`."""
        return Reweighted(self._tally, self.metrics, self.by_category).score(count, copies, threads)[:, 0]


class PairedDetections:
    """Two tallies of detections, see `Paired`. The columns are `metric`, and the AP of each category if `categories` is
    true.
    """

    def __init__(self, first: Tally, second: Tally, metric: str | None, categories: bool, threads: int | None) -> None:
        protocol = first.protocol
        self._both = _side_by_side(first, second, threads)
        self.categories = first.categories
        chosen = metric or metric_names(protocol)[0]
        find_column(protocol, self.categories, chosen)
        # A metric that is not in `metric_names` is the AP of one category; under VOC it has the name of the category.
        self.metrics: tuple[str, ...] = (chosen,) if chosen in metric_names(protocol) else ()
        of_category = ("AP",) if categories else ()
        self.by_category: tuple[str, ...] = of_category if self.metrics else category_metrics(protocol)
        self.columns = column_names(self.metrics, self.by_category, protocol, self.categories)
        self.units = units_of(first)
        self._images = images = int(first.image_ids.size)
        differing = _differing(self._both, MOST_CHANGING if self.units.of is None else images + 1)
        self.differs = self.units.any_of(differing)
        self.support = support(first, self.metrics, self.by_category, self.units)

    def differences(
        self, count: int, swaps: Swaps, threads: int | None, category: int | None = None
    ) -> NDArray[np.float64]:
        """See `Paired`."""
        tally, names = self._both, (self.metrics, self.by_category)
        if category is not None:
            tally, names = _only(self._both, category), ((), self.by_category)
        data = Reweighted(tally, *names, sides=2)

        def codes(r: int) -> NDArray[np.int32]:
            sides = np.empty((self._images, 2), np.int32)
            sides[:, 0] = 2 + self.units.over_images(swaps(r))
            sides[:, 1] = 5 - sides[:, 0]
            return sides.reshape(-1)

        values = data.score(count, codes, threads)
        return values[:, 1] - values[:, 0]

    def quick(self) -> QuickDifferences | None:
        """Return `QuickDifferences` for the metric in `metrics`; None if the metric has no such fast method."""
        return QuickDifferences.of(Reweighted(self._both, self.metrics, (), sides=2)) if self.metrics else None


def _side_by_side(first: Tally, second: Tally, threads: int | None) -> Tally:
    """Return both tallies as one: image *i* of the first model becomes image ``2 i``, and image *i* of the second model
    becomes image ``2 i + 1``.

    With this order, ties between images are broken as in each model's own tally.
    """
    even = np.arange(0, 2 * first.image_ids.size, 2)
    ids = readonly(np.arange(2 * first.image_ids.size), np.int64)
    both = first.beside((second,), (even, even + 1))
    crowding = None if first.crowd_index is None else readonly(np.repeat(first.crowd_index, 2), np.float64)
    made = replace(both, image_ids=ids, notices={}, clusters=None, crowd_index=crowding)
    return made.in_ranking_order(threads)


def _only(tally: Tally, category: int) -> Tally:
    """Return the tally of one category."""
    begin, end = tally.class_starts[category : category + 2].tolist()
    some = tally.take(slice(begin, end), tally.positive_category == category)
    return replace(
        some,
        categories=tally.categories[category : category + 1],
        category=readonly(np.zeros_like(some.category), np.int32),
        positive_category=readonly(np.zeros_like(some.positive_category), np.int32),
    )


def _differing(both: Tally, enough: int) -> NDArray[np.bool_]:
    """Return whether the two models' detections of a category on an image differ in score or outcome, shape (K,
    images). Scores and outcomes are not compared if the numbers of detections differ on at least `enough` images of
    each category.
    """
    images, categories = both.image_ids.size // 2, len(both.categories)
    cells = (both.category.astype(np.int64) * images + (both.image >> 1)) * 2 + (both.image & 1)
    sizes = np.bincount(cells, minlength=categories * images * 2).reshape(categories, images, 2)
    out = np.asarray(sizes[..., 0] != sizes[..., 1])
    if (out.sum(axis=1) >= enough).all():
        return out
    order = np.lexsort((both.rank, both.image, both.category))
    side, cell = both.image[order] & 1, cells[order] >> 1
    rows = np.column_stack((both.scores[order].view(np.uint64), both.hit[order], both.ignored[order]))
    if both.found.size:
        steps = (both.found[order], both.missed[order], both.alike[order].view(np.uint64))
        rows = np.column_stack((rows, *(column.astype(np.uint64) for column in steps)))
    out = out.reshape(-1)
    alike = ~out[cell]  # whether the models have equally many detections of the category on the image
    one, other = np.flatnonzero(alike & (side == 0)), np.flatnonzero(alike & (side == 1))
    unequal = (rows[one] != rows[other]).any(axis=1)
    if both.order.size:
        unequal |= both.order[order][one] != both.order[order][other]
    out[cell[one][unequal]] = True
    return out.reshape(categories, images)
