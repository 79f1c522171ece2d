"""Strays: objects far smaller than all others, such as accidental clicks.

The size up to which objects are strays is derived from the distribution of sizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.inputs import Side
from detmap.checks.rates import CHANCE, tail
from detmap.shapes import find

Array = NDArray[Any]

#: Largest tested limit of the shorter side of strays, in pixels, and minimum number of strays just below a limit. Larger
#: boxes are hardly accidents.
LONGEST, FEWEST = 32, 10

#: Minimum ratio of the number of strays just below the limit, and of the number of larger objects, to the number of
#: objects just above the limit. Without strays the numbers fall towards small sizes, and do not rise again.
RARER = 2.0

#: Maximum share of strays among all objects, because an accident is the exception.
SHARE = 0.25

#: Strays are considered real objects, such as balls, if many of them belong to one category. The category's share of
#: the strays must be at least `OF_ONE`, and at least `OFTEN` times its share of all objects.
OF_ONE, OFTEN = 0.5, 1.5


def strays(side: Side) -> tuple[int, NDArray[np.bool_]] | None:
    """Return the largest shorter side of strays in pixels, and their mask, shape (n,); None if there are none."""
    if side.table.within_unit or (side.table.kinds and all(find(kind).unit != "pixels" for kind in side.table.kinds)):
        return None
    shorter = side.extents.min(axis=0, initial=np.inf)
    good = (shorter > 0) & ~side.crowd
    limit = limit_of(shorter[good])
    if limit is None:
        return None
    out = good & (shorter <= limit)
    classes = side.table.categories.ids.size
    own, every = (np.bincount(side.table.categories.codes[which], minlength=classes) for which in (out, good))
    most, count = int(own.argmax()), np.count_nonzero(out)
    if classes > 1 and own[most] >= OF_ONE * count and own[most] * good.sum() >= OFTEN * every[most] * count:
        return None
    return limit, out


def beside(limit: int) -> int:
    """Return the width in pixels of the bands of sizes below and above a limit."""
    return max(2, -(-limit // 2))


def limit_of(shorter: Array) -> int | None:
    """Return the limit of the shorter side, in pixels, up to which objects are strays; None if there are no strays.

    Many objects lie just below a limit, few just above, and many well above.
    """
    held = np.bincount(np.ceil(shorter[shorter <= 8 * LONGEST]).astype(np.int64), minlength=8 * LONGEST + 1)
    upto = np.cumsum(held)
    best: tuple[int, int] | None = None
    for limit in range(1, LONGEST + 1):
        end = limit + beside(limit)
        below = int(upto[limit] - upto[max(limit - beside(limit), 0)])
        above, larger = int(upto[end] - upto[limit]), int(upto[3 * end] - upto[end])
        if below < max(FEWEST, RARER * above) or larger < RARER * max(above, 1):
            continue
        if upto[limit] > SHARE * shorter.size or tail(below, 1.5 * above + 1) >= CHANCE:
            continue
        gain = int(upto[limit]) - above
        if best is None or gain > best[0]:
            best = gain, limit
    return None if best is None else best[1]
