"""Check for boxes of a few sizes, which are anchors or default boxes of a model without its regression."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.checks import limits
from detmap.checks.changes import Array
from detmap.checks.context import BESIDE, Facts
from detmap.checks.findings import Finding, found
from detmap.checks.inputs import Side
from detmap.errors import many

#: Precision of sizes in pixels, because coordinates may be rounded to two decimals.
STEP = 0.02

#: Minimum number of detections with a size, for the size to be tested, and maximum number of sizes in a part. Models
#: have 3 to 15 anchors at a position, on up to 5 levels.
FEWEST, MOST = 20, 75

#: Maximum ratio of the number of distinct sizes to the number of distinct widths, and to the number of distinct
#: heights. Coarsely rounded boxes combine every width with every height, whereas an anchor shares its width or height
#: with at most one other anchor.
A_SIDE = 2

#: Minimum ratio of the number of boxes with a size to the mean number with a similar size. The widths and heights of
#: similar sizes differ by at most the factor `NEAR`. If boxes are rounded to whole pixels, similar sizes are about as
#: frequent.
TIMES, NEAR = 5.0, 1.25

#: Minimum share of detections that have one of the sizes: `SOME` on an image, for the image to count, and `NEARLY_ALL`
#: in the part, among boxes away from the edges of images. `SOME` is smaller because boxes may be clipped at the edges.
SOME, NEARLY_ALL = 0.5, 0.9

#: Maximum ratio of the share of objects with one of the sizes to the share of detections with one of the sizes. If
#: objects often have these sizes, too, the sizes are a rule of the data.
OF_OBJECTS = 0.25

#: Steps of grids of centres, in pixels, and minimum share of centres on a grid.
STEPS, ON_GRID = (128, 64, 32, 16, 8, 4), 0.99

#: Bit mask of the height, which is the lower half of a size stored as one integer.
_LOW = 0xFFFFFFFF


def check(facts: Facts) -> Iterator[Finding]:
    """Check for detections whose boxes have only a few sizes, on a part of the images or on all."""
    side = facts.found
    if side is None or not len(side) or side.table.within_unit or {code for _, code in facts.causes} - BESIDE:
        return
    keys = _keys(side)
    sizes = frequent(side, keys, limits.sample(np.flatnonzero(keys >= 0)))
    if sizes.size < 2:
        return  # `piles` reports a single size as a frequent width and a frequent height
    there = np.isin(keys, sizes)
    count = facts.truth.on.images.ids.size
    held, on = (np.bincount(side.image[which], minlength=count) for which in (keys >= 0, there))
    part = facts.gathered(on >= SOME * np.maximum(held, 1), held > 0)
    images = np.ones(count, np.bool_) if part is None else part.images
    inner = (keys >= 0) & limits.not_at_edges(side, np.arange(len(side))) & images[side.image]
    own, times = np.unique(keys[inner & there], return_counts=True)
    own = own[times >= FEWEST / 2]
    there &= images[side.image] & np.isin(keys, own)
    if np.count_nonzero(there & inner) < NEARLY_ALL * np.count_nonzero(inner) or not 2 <= own.size <= MOST:
        return
    if own.size > A_SIDE * min(np.unique(own >> 32).size, np.unique(own & _LOW).size):
        return
    of_truth = np.isin(_keys(facts.truth), own)
    if len(facts.truth) and of_truth.mean() > OF_OBJECTS * np.count_nonzero(there) / np.count_nonzero(
        images[side.image]
    ):
        return
    facts.causes.add(("detections", "anchor_boxes"))
    facts.parts.append((images, None))
    grid = _grid(side, np.flatnonzero(there))
    more = many(own.size, "size") + (f", with centres on a grid of {grid} pixels" if grid else "")
    more += "" if part is None else f"; {facts.says_part(part)}"
    yield found("anchor_boxes", int(there.sum()), "detection", more=more, **side.records(there))


def _keys(side: Side) -> NDArray[np.int64]:
    """Return width and height of each box as one integer; -1 for boxes that are not compared."""
    width, height = np.rint(np.minimum(side.columns[2:], 1 << 20) / STEP).astype(np.int64)
    return np.where(
        side.sized & ~side.crowd & ~side.constant & ~side.aside & (side.image >= 0), width << 32 | height, -1
    )


def frequent(side: Side, keys: Array, rows: Array) -> NDArray[np.int64]:
    """Return the sizes that are far more frequent among the boxes at `rows` than similar sizes."""
    sizes, held = np.unique(keys[rows], return_counts=True)
    chosen = np.flatnonzero(held >= FEWEST)
    if not chosen.size or chosen.size > 4 * MOST:
        return sizes[:0]
    width, height = np.log(np.maximum(sizes >> 32, 1)), np.log(np.maximum(sizes & _LOW, 1))
    out = []
    for at in chosen.tolist():
        near = (np.abs(width - width[at]) <= np.log(NEAR)) & (np.abs(height - height[at]) <= np.log(NEAR))
        others = np.count_nonzero(near) - 1
        if held[at] >= TIMES * (held[near].sum() - held[at]) / max(others, 1):
            out.append(int(sizes[at]))
    return np.array(out, np.int64)


def _grid(side: Side, rows: Array) -> int:
    """Return the widest step of a grid on which the centres of the boxes at `rows` lie; 0 if there is none."""
    centre = side.boxes[rows, :2] + side.boxes[rows, 2:] / 2
    for step in STEPS:
        offset = np.rint(np.mod(centre, step) / STEP).astype(np.int64) % round(step / STEP)
        if all(np.bincount(axis).max() >= ON_GRID * axis.size for axis in offset.T):
            return step
    return 0
