"""Exact tests of rates, corrected for the number of tests made (*looks*), for checks that compare a part with the rest.

A *unit* is an image, or the records of one category on an image, because single records of an image are not independent.
The probability that a unit is *bad* is estimated from the rest of the data. Ranges of consecutive units are compared by
likelihood ratios. By Ville's inequality, the probability that any range from a given first unit has a ratio above A is
at most 1 / A, so that for n first units it is at most n / A.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Maximum probability of a false finding in data without a defect, per test, after correction for the number of looks.
CHANCE = 1e-3

#: Assumed share of good units that a defect leaves good. The value is small, because a defect affects most units.
LEFT = 0.2

#: Minimum assumed probability that a unit is bad, because every data set has some unusual images.
FLOOR = 0.02

#: Minimum number of bad units in a part.
FEWEST = 5

#: Maximum number of ranges of one order that are reported together.
_RANGES = 8


def tail(count: int, mean: float) -> float:
    """Return the Poisson probability of at least `count` events for an expected number `mean`."""
    if count <= 0:
        return 1.0
    if mean <= 0:
        return 0.0
    term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
    total, at = 0.0, count
    if count < mean:  # the first term may underflow, so the probability of fewer events is summed
        while at and term > 1e-18 * total:
            term *= at / mean
            at -= 1
            total += term
        return max(1.0 - total, 0.0)
    while True:  # terms decrease beyond the mean
        total += term
        at += 1
        term *= mean / at
        if at > mean and term <= 1e-18 * total:
            return min(total, 1.0)


def reaching(share: float, rate: float, totals: Array, most: int = 100) -> NDArray[np.float64]:
    """Return the probability that the share of bad records is at least `share`, for each total number of records in
    `totals`. Records are bad independently of each other, with the probability `rate`. Totals above `most` count as
    `most`.
    """
    sizes, at = np.unique(np.minimum(totals, most), return_inverse=True)
    chances = [
        sum(
            math.comb(size, bad) * rate**bad * (1 - rate) ** (size - bad)
            for bad in range(math.ceil(share * size - 1e-9), size + 1)
        )
        for size in sizes.tolist()
    ]
    return np.asarray(np.array(chances)[at])


def rates(bad: Array, codes: Array, count: int, prior: float = 5.0) -> NDArray[np.float64]:
    """Return for each code the share of bad units, shrunk towards the overall share by `prior` pseudo-units."""
    held = np.bincount(codes, minlength=count)
    some = np.bincount(codes[bad], minlength=count)
    mean = float(bad.mean()) if bad.size else 0.0
    return np.asarray((some + prior * mean) / (held + prior))


def explained(flags: Array, *factors: tuple[Array, int]) -> NDArray[np.float64]:
    """Return the expected probability of each flag given `factors`, each a pair of codes and the number of codes. The
    odds ratios of the factors are multiplied.
    """
    mean = min(max(float(flags.mean()), 1e-3), 1 - 1e-3) if flags.size else 0.5
    logit = np.full(flags.size, math.log(mean / (1 - mean)))
    for codes, count in factors:
        share = np.clip(rates(flags, codes, count), 1e-3, 1 - 1e-3)
        logit += (np.log(share / (1 - share)) - math.log(mean / (1 - mean)))[codes]
    return np.asarray(1 / (1 + np.exp(-logit)))


def evidence(bad: Array, chance: Array, left: float = LEFT) -> NDArray[np.float64]:
    """Return the log likelihood ratio of a defect to no defect, for each unit. A defect leaves the share `left` of good
    units good.
    """
    chance = np.clip(chance, FLOOR, 0.95)
    return np.where(bad, np.log1p(-(1 - chance) * left) - np.log(chance), math.log(left))


class Range(NamedTuple):
    """A range of units and its log likelihood ratio."""

    start: int
    stop: int
    logs: float


def worst_range(logs: Array) -> Range:
    """Return the range with the largest sum of `logs`."""
    total = np.concatenate([[0.0], np.cumsum(logs)])
    low = np.minimum.accumulate(total)
    stop = int(np.argmax(total - low))
    start = stop - int(np.argmin(total[: stop + 1][::-1]))
    return Range(start, stop, float(total[stop] - total[start]))


def bad_ranges(bad: Array, chance: Array, looks: float, repeats: float = 1.0, left: float = LEFT) -> list[Range]:
    """Return the ranges in which more units are bad than chance explains, the worst range first.

    `repeats` is the number of consecutive units that are not independent of each other.
    """
    logs = evidence(bad, chance, left) / repeats
    out: list[Range] = []
    if not bad.size:
        return out
    least = math.log(bad.size * looks / CHANCE)
    while len(out) < _RANGES:
        made = worst_range(logs)
        if made.logs < least or np.count_nonzero(bad[made.start : made.stop]) < FEWEST:
            break
        out.append(made)
        logs[made.start : made.stop] = -math.inf
        logs = np.where(np.isneginf(logs), -1e9, logs)
    return out


def joined(ranges: list[Range], bad: Array) -> list[Range]:
    """Join neighbouring ranges if, by the share of bad units, the gap between them resembles the ranges more than the
    rest. If a defect leaves many units good, the assumption `LEFT` is too small and splits its range.
    """
    ordered = sorted(ranges)
    inside = np.zeros(bad.size, np.bool_)
    for one in ranges:
        inside[one.start : one.stop] = True
    out = [ordered[0]]
    for one in ordered[1:]:
        gap = bad[out[-1].stop : one.start]
        rest = ~inside
        rest[out[-1].stop : one.start] = False
        own, others = ((np.count_nonzero(bad & which) + 1) / (np.count_nonzero(which) + 2) for which in (inside, rest))
        count = np.count_nonzero(gap)
        if count * math.log(own / others) + (gap.size - count) * math.log((1 - own) / (1 - others)) > 0:
            out[-1] = Range(out[-1].start, one.stop, out[-1].logs + one.logs)
        else:
            out.append(one)
    return out if len(out) < len(ranges) else ranges


class Grouping(NamedTuple):
    """A way to divide images into parts."""

    #: Description of a part, with a placeholder for `names`.
    says: str
    #: Index of each image's part, -1 for none, shape (images,).
    codes: NDArray[np.int64]
    #: Names of the parts.
    names: Sequence[str]


class Order(NamedTuple):
    """An order of images."""

    says: str
    #: Position of each image in the order, shape (images,).
    place: NDArray[np.int64]


class Part(NamedTuple):
    """A part of the images that differs from the rest."""

    #: Mask of the images in the part, shape (images,).
    images: NDArray[np.bool_]
    #: Description of the part.
    says: str
    #: Mask of the units in the part, shape (units,).
    units: NDArray[np.bool_]


class Division:
    """All parts of the images that are compared: ranges in several orders, residue classes, folders, and image sizes."""

    def __init__(self, ids: Array, orders: Sequence[Order], groupings: Sequence[Grouping]) -> None:
        self.ids, self.orders, self.groupings = ids, orders, groupings
        self.groups = sum(len(one.names) for one in groupings)

    def unlike(
        self, image: Array, bad: Array, chance: Array, looks: float = 1.0, repeats: float = 1.0, left: float = LEFT
    ) -> Part | None:
        """Return the part with the strongest evidence that more of its units are bad than by chance; None if chance
        explains all parts.

        `image` is the image of each unit, `looks` is the number of calls for which the test is corrected, and `repeats`
        is the number of consecutive units that are not independent of each other. `left` is the share of good units that
        the defect leaves good.
        """
        if np.count_nonzero(bad) < FEWEST:
            return None
        best: tuple[float, Part] | None = None
        for order in self.orders:
            by = np.argsort(order.place[image], kind="stable")
            ranges = bad_ranges(bad[by], chance[by], 2 * looks * len(self.orders), repeats, left)
            if ranges:
                ranges = joined(ranges, bad[by])
                units = np.zeros(bad.size, np.bool_)
                for one in ranges:
                    units[by[one.start : one.stop]] = True
                logs = sum(one.logs for one in ranges) - 5.0 * (len(ranges) - 1)
                if best is None or logs > best[0] + 1:
                    best = logs, self._of_ranges(order, image, by, ranges, units)
        logs_of = evidence(bad, chance, left) / repeats  # orders and groups may each use half of `CHANCE`
        for grouping in self.groupings:
            codes = grouping.codes[image]
            known = codes >= 0
            sums = np.bincount(codes[known], logs_of[known], len(grouping.names))
            for code in np.flatnonzero(sums > math.log(2 * looks * self.groups / CHANCE)).tolist():
                units = codes == code
                if np.count_nonzero(bad & units) >= FEWEST and (best is None or sums[code] > best[0]):
                    images = grouping.codes == code
                    best = float(sums[code]), Part(images, grouping.says.format(grouping.names[code]), units)
        return None if best is None else best[1]

    def _of_ranges(self, order: Order, image: Array, by: Array, ranges: Sequence[Range], units: Array) -> Part:
        """Return the part that consists of `ranges` in `order`."""
        images = np.zeros(self.ids.size, np.bool_)
        listed = np.argsort(order.place, kind="stable")
        said = []
        for one in ranges:
            first, last = (int(order.place[image[by[at]]]) for at in (one.start, one.stop - 1))
            images[listed[first : last + 1]] = True
            said.append(f"{self.ids[listed[first]]} to {self.ids[listed[last]]}")
        more = f" and {len(said) - 1} other ranges" if len(said) > 2 else f" and {said[1]}" if len(said) == 2 else ""
        return Part(images, f"images {said[0]}{more}, in the order of {order.says}", units)


def residues(count: int, most: int = 8) -> Iterator[Grouping]:
    """Yield groupings of images by index modulo 2 to `most`, as if images were dealt out in turn to workers."""
    place = np.arange(count)
    for step in range(2, most + 1):
        if count >= 4 * step:
            every = "every other image" if step == 2 else f"one image in {step}"
            names = [f"{every} by id, from image number {at + 1} on" for at in range(step)]
            yield Grouping("{}", place % step, names)
