"""Checks for piles: widths or heights that far more boxes have than similar widths or heights.

A pile arises if a tool enforces a minimum or maximum side, or keeps a default side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.boxes import duplicates
from detmap.checks.context import BESIDE as COMPARABLE
from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.evidence import Evidence
from detmap.checks.findings import Finding, found
from detmap.checks.inputs import Side
from detmap.checks.rates import tail
from detmap.errors import many
from detmap.shapes import find

Array = NDArray[Any]

#: `STEP` is the bin width for widths and heights, in pixels, twice the precision of two decimals. Sides of `LONGEST`
#: pixels or more are not compared, because nearly all images are smaller, and more bins cost time and memory.
STEP, LONGEST = 0.02, 4096

#: Minimum number, and minimum share, of the boxes in a pile. Detections have fractional sides, so that even ten equal
#: sides stand out, but these are too few to change a metric.
FEWEST, SHARE = 20, 0.004

#: Values are near each other if their ratio is at most 4/3 or their distance at most `NEAR` pixels. At least 16 whole
#: numbers are near a value. A pile must be at least `TIMES` times as frequent as the third most frequent value near it
#: (`BESIDE`), because the first two may be piles, too. The largest ratio in VOC2007 is 1.3.
NEAR, TIMES, BESIDE = 8.0, 1.6, 3

#: A pile must be significantly more frequent than the third most frequent value near it, multiplied by this factor.
USUAL = 1.2

#: Maximum probability of a pile by chance, for each value.
CHANCE = 1e-6

#: Maximum distance in pixels between the edges of a box and of its image for the box to span the image. Annotators often
#: leave two pixels at each edge.
EDGE = 5.0

#: If few sides are smaller than the pile, the finding gives their number, because a tool may have enforced a minimum
#: side. On the images with a box in the pile, the share of smaller sides must be at most this fraction of the share on
#: other images. The share need not be 0, because some images have a box in the pile by chance. The same applies to
#: larger sides.
RARER = 0.6

#: A pile is not reported if the boxes of the other file (detections or objects) also have its side more often than
#: similar sides. In this case the side is a rule of the data. In the other file, a probability by chance below `BOTH`
#: suffices. The share of boxes with this side must be at least `AS_OFTEN` times the share in the pile's own file. A
#: lower share does not suffice, because a few detections have the side of a defective pile of objects, too.
BOTH, AS_OFTEN = 1e-2, 0.2

#: Maximum number of piles. If more values stand out, coordinates lie on a grid.
MOST = 3

_AXES = ("width", "height")


class Pile(NamedTuple):
    """A width or height that far more boxes have than similar ones."""

    #: Bin of the side, in units of `STEP`.
    at: int
    #: The axes on which boxes have this side: 0 for widths, 1 for heights.
    axes: tuple[int, ...]


def check(facts: Facts) -> Iterator[Finding]:
    """Check for piles of widths and heights, of objects and of detections."""
    if facts.schema:
        return
    made = {}
    for side in facts.sides:
        # Boxes in other units or at another scale have a finding of their own, which explains piles.
        causes = {code for role, code in facts.causes if role == side.role}
        if len(side) and not causes - COMPARABLE and "anchor_boxes" not in causes:
            bins = _bins(side)
            made[side.role] = side, bins, piles(facts, side, bins)
    for role, (side, bins, of) in made.items():
        others = [own for other, (_, own, _) in made.items() if other != role]
        for pile in of:
            if not any(_also(bins, own, pile) for own in others):
                facts.causes.add((role, "piled_sides"))
                yield _said(side, bins[list(pile.axes)], pile)


def _also(bins: Array, others: Array, pile: Pile) -> bool:
    """Return whether the boxes of the other file also have the side of a pile more often than similar sides (see `BOTH`)."""
    own, held = (np.sum([_counts(axis) for axis in sides[list(pile.axes)]], axis=0) for sides in (bins, others))
    held[0] = own[0] = 0
    usual, count = USUAL * beside(held, pile.at) + 1, int(held[pile.at])
    return bool(tail(count, usual) < BOTH and count * own.sum() >= AS_OFTEN * own[pile.at] * held.sum())


def _bins(side: Side) -> NDArray[np.int64]:
    """Return the bins of width and height of each box, shape (2, n); 0 for sides that span the image, and for boxes that
    other findings explain.
    """
    bins = np.rint(np.minimum(side.extents, LONGEST) / STEP).astype(np.int64)
    for axis in (0, 1):
        near, size = side.columns[axis], side.sizes[:, axis]
        # If the size of the image is unknown, a box that begins at its edge may span it.
        bins[axis][(side.extents[axis] >= size - EDGE) | (~np.isfinite(size) & (near <= EDGE))] = 0
    bins[:, ~side.sized | side.crowd | side.constant | side.aside | (side.image < 0)] = 0
    bins[bins >= round(LONGEST / STEP)] = 0
    return bins


def piles(facts: Facts, side: Side, bins: Array) -> list[Pile]:
    """Return the piles of widths and heights, the most frequent first."""
    if side.table.within_unit or (side.table.kinds and all(find(kind).unit != "pixels" for kind in side.table.kinds)):
        return []
    least = max(FEWEST, SHARE * np.count_nonzero(bins.any(axis=0)))
    if not _standing_out([_counts(own) for own in bins], least, 1.0):
        return []
    bins = np.where(duplicates(*side.columns), 0, bins)  # boxes of a copied image count once
    once = [_counts(_once(own, side.image)) for own in bins]
    # Each object of a video counts once. `frames` depends only on the ground truth.
    made = _standing_out(once, least, Evidence(facts.truth, facts.truth, np.empty(0)).frames)
    return made if len(made) <= MOST else []


def _once(bins: Array, image: Array) -> NDArray[np.int64]:
    """Return the bins, without repetitions of a bin on the same image."""
    images = int(image.max()) + 1
    keys = np.sort(bins * images + np.maximum(image, 0))  # `np.unique` is ten times as slow
    return np.asarray(keys[np.append(True, keys[1:] != keys[:-1])] // images)


def _counts(bins: Array) -> NDArray[np.int64]:
    """Return the number of boxes of each bin."""
    return np.bincount(bins, minlength=round(LONGEST / STEP))


def _standing_out(counts: list[Array], least: float, frames: float) -> list[Pile]:
    """Return the piles, given the numbers of boxes per width, per height, and per side of either axis."""
    best: dict[int, tuple[float, int, Pile]] = {}
    for axes, held in (((0,), counts[0]), ((1,), counts[1]), ((0, 1), counts[0] + counts[1])):
        held[0] = 0
        for at in np.flatnonzero(held >= least).tolist():
            usual = beside(held, at)
            count = int(held[at])
            if count < TIMES * usual or tail(int(count / frames), USUAL * usual / frames + 1) >= CHANCE:
                continue
            excess = (count - USUAL * usual) / math.sqrt(USUAL * usual + 1)
            if at not in best or excess > best[at][0]:
                best[at] = excess, count, Pile(at, axes)
    return [pile for _, _, pile in sorted(best.values(), key=lambda one: -one[1])]


def beside(held: Array, at: int) -> int:
    """Return the third largest number of boxes in the bins near the bin `at`."""
    low, high = min(round(0.75 * at), at - round(NEAR / STEP)), max(round(at / 0.75), at + round(NEAR / STEP))
    near = np.delete(held[max(low, 1) : high + 1], at - max(low, 1))
    return int(np.partition(near, -BESIDE)[-BESIDE])


def _said(side: Side, bins: Array, pile: Pile) -> Finding:
    """Return the finding of a pile; `bins` holds the bins of the pile's axes."""
    there = (bins == pile.at).any(axis=0)
    side.piled |= there
    images = np.zeros(side.on.images.ids.size, np.bool_)
    images[side.image[there]] = True
    inside = images[side.image]
    more = f"{' or '.join(_AXES[axis] for axis in pile.axes)} {number(round(pile.at * STEP, 2))} pixels"
    for word, beyond in (("smaller", (bins > 0) & (bins < pile.at)), ("larger", bins > pile.at)):
        (count, total), (usual, others) = (
            (int(np.count_nonzero(beyond[:, which])), int(np.count_nonzero(bins[:, which])))
            for which in (inside, ~inside)
        )
        if usual and count * others <= RARER * usual * total:
            more += (
                f"; on their {many(int(images.sum()), 'image')} {count:,} of {total:,} are {word}, "
                f"elsewhere {usual:,} of {others:,}"
            )
    return found("piled_sides", int(there.sum()), side.unit, more=more, **side.records(there))
