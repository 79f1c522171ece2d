"""Panoptic quality of reweighted images, and of two models after exchanges of images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import OptionError, one_of, shorten
from detmap.panoptic.tally import GROUPS, METRICS, QUALITIES, PanopticTally, Sums
from detmap.statistics.clusters import Units, balanced, units_of
from detmap.statistics.resampled import Copies, Swaps
from detmap.system import progress

#: Number of samples whose scores are computed together.
_BLOCK = 64


class ResampledSegments:
    """A tally of panoptic segmentation, see `detmap.statistics.resampled.Resampled`."""

    near: NDArray[np.float64] | None = None

    def __init__(self, tally: PanopticTally) -> None:
        self._tally = tally
        self.metrics: tuple[str, ...] = METRICS
        self.by_category: tuple[str, ...] = QUALITIES
        self.categories, self.units = tally.categories, units_of(tally)
        self.columns = {name: at for at, name in enumerate(METRICS)}
        self.support, self.balance = _support(tally, self.units)
        self.unlimited: NDArray[np.bool_] | None = None
        self.most: NDArray[np.float64] | None = None

    def score(self, count: int, copies: Copies, threads: int | None) -> NDArray[np.float64]:
        """See `Resampled`."""
        blocks = []
        for begin in range(0, count, _BLOCK):
            made = [self._tally.weighted(copies(r) / 2) for r in range(begin, min(begin + _BLOCK, count))]
            blocks.append(_columns(_stacked(made), self._tally.classes.things))
            progress.advance(len(made))
        return np.concatenate(blocks)


class PairedSegments:
    """Two tallies of panoptic segmentation, see `detmap.statistics.resampled.Paired`."""

    def __init__(self, first: PanopticTally, second: PanopticTally, metric: str | None, categories: bool) -> None:
        chosen = metric or METRICS[0]
        if chosen not in METRICS:
            raise OptionError(f"no metric {shorten(chosen)}{one_of(chosen, METRICS)}")
        self.metrics: tuple[str, ...] = (chosen,)
        self.by_category: tuple[str, ...] = QUALITIES[:1] if categories else ()
        self.categories, self.units = first.categories, units_of(first)
        self.columns = {chosen: 0}
        self._first, self._second = first, second
        self._wanted = [METRICS.index(chosen)]
        self._wanted += [len(METRICS) + k for k in range(len(self.categories) if categories else 0)]
        support, _ = _support(first, self.units)
        self.support = support[self._wanted]
        self.differs = self.units.any_of(self._differing())

    def _differing(self) -> NDArray[np.bool_]:
        """Return whether the matches or counts of the two models differ in a category on an image, shape (K, images)."""
        images = len(self._first.image_ids)
        number = len(self.categories) * images
        out = np.zeros(number, np.bool_)
        sides = []
        for tally in (self._first, self._second):
            counts = np.zeros((number, 3), np.int64)
            counts[tally.cell_category.astype(np.int64) * images + tally.cell_image] = tally.cell_counts[:, :3]
            at = tally.match_category.astype(np.int64) * images + tally.match_image
            order = np.argsort(at, kind="stable")
            sides.append((counts, at[order], tally.match_iou[order]))
        (counts, at, iou), (others, other_at, other_iou) = sides
        out |= (counts != others).any(axis=1)
        alike, other_alike = ~out[at], ~out[other_at]  # matches in a category and image with equal counts
        unequal = iou[alike] != other_iou[other_alike]
        out[at[alike][unequal]] = True
        return out.reshape(len(self.categories), images)

    def differences(
        self, count: int, swaps: Swaps, threads: int | None, category: int | None = None
    ) -> NDArray[np.float64]:
        """See `Paired`."""
        first, second, things = self._first, self._second, self._first.classes.things
        own, other, blocks = first.sums(), second.sums(), []
        for begin in range(0, count, _BLOCK):
            moved = []
            for r in range(begin, min(begin + _BLOCK, count)):
                weights = self.units.over_images(swaps(r)).astype(np.float64)
                gained, lost = second.weighted(weights), first.weighted(weights)
                moved.append(Sums(*(a - b for a, b in zip(gained, lost, strict=True))))
            change = _stacked(moved)
            one = _columns(Sums(*(a + b for a, b in zip(own, change, strict=True))), things)
            two = _columns(Sums(*(a - b for a, b in zip(other, change, strict=True))), things)
            blocks.append(two - one)
            progress.advance(len(moved))
        values = np.concatenate(blocks)
        return values[:, self._wanted if category is None else [len(METRICS) + category]]


def _columns(sums: Sums, things: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the columns of many samples, shape (samples, m): the means, then PQ, SQ and RQ of each category."""
    qualities = np.moveaxis(sums.qualities(), 0, 1).reshape(len(sums.tp), -1)
    return np.concatenate([sums.means(things), qualities], axis=1)


def _stacked(sums: list[Sums]) -> Sums:
    return Sums(*map(np.stack, zip(*sums, strict=True)))


def _support(tally: PanopticTally, units: Units) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return for each column the number of units (images or clusters) with segments, and the effective number of
    clusters (None without clusters).
    """
    things, number = tally.classes.things, len(tally.classes.ids)
    objects, image, category = tally.cell_counts[:, 3], tally.cell_image, tally.cell_category

    def of(cells: Any) -> tuple[int, float]:
        totals = units.totals(image[cells], objects[cells])
        return int(np.count_nonzero(totals)), 0.0 if units.of is None else balanced(totals)

    groups = (np.ones(number, np.bool_), things, ~things)
    of_groups = [of(group[category]) for group in groups]
    rows = [one for one in of_groups for _ in QUALITIES]
    order = np.argsort(category, kind="stable")
    starts = np.searchsorted(category[order], np.arange(number + 1))
    of_categories = [of(order[starts[k] : starts[k + 1]]) for k in range(number)]
    rows += of_categories * len(QUALITIES)
    assert len(groups) == len(GROUPS)
    held, worth = zip(*rows, strict=True)
    return np.array(held, np.int64), None if units.of is None else np.array(worth, np.float64)
