"""Convert masks to outlines: one closed polygon per mask that fills exactly the same pixels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.masks import Masks

#: Maximum number of pixels of masks unpacked at a time.
_PIXELS = 1 << 24


def outlines(masks: Masks) -> Iterator[NDArray[np.float64]]:
    """Yield the corners of each mask's outline, shape (k, 2): x and y in pixels, whole numbers.

    Parts and holes are joined to the outline by lines that are traversed in both directions and enclose nothing. The
    outline of an empty mask has shape (0, 2).
    """
    height, width = (max(int(side), 1) for side in masks.sizes.max(axis=0)) if len(masks) else (1, 1)
    step = max(_PIXELS // (height * width), 1)
    boxes = masks.boxes().astype(np.int64)
    for begin in range(0, len(masks), step):
        rows = range(begin, min(begin + step, len(masks)))
        for row in rows:
            x, y, w, h = boxes[row].tolist()
            if not w or not h:
                yield np.empty((0, 2))
                continue
            pixels = masks.take([row]).to_bitmaps()[0, y : y + h, x : x + w]
            yield _outline(pixels) + np.array([x, y], np.float64)


def _outline(pixels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the outline of a non-empty bitmap."""
    padded = np.pad(pixels, 1)
    here = padded[1:-1, 1:-1]
    following: dict[tuple[int, int], list[tuple[int, int]]] = {}
    # Sides between a pixel and the background, directed such that the pixel is on the right.
    sides = (
        (padded[:-2, 1:-1], (0, 0), (1, 0)),
        (padded[1:-1, 2:], (1, 0), (1, 1)),
        (padded[2:, 1:-1], (1, 1), (0, 1)),
        (padded[1:-1, :-2], (0, 1), (0, 0)),
    )
    for behind, (x1, y1), (x2, y2) in sides:
        rows, columns = np.nonzero(here & ~behind)
        for y, x in zip(rows.tolist(), columns.tolist(), strict=True):
            following.setdefault((x + x1, y + y1), []).append((x + x2, y + y2))
    loops: list[NDArray[np.float64]] = []
    while following:
        start = place = min(following)
        loop = [start]
        while True:
            after = following[place]
            place_next = after.pop()
            if not after:
                del following[place]
            place = place_next
            if place == start:
                break
            loop.append(place)
        loops.append(_corners(np.array(loop, np.float64)))
    first = loops[0]
    parts = [first]
    for other in loops[1:]:
        parts += [first[:1], other, other[:1]]
    if len(loops) > 1:
        parts.append(first[:1])
    return np.concatenate(parts)


def _corners(loop: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the corners of a loop."""
    before, after = loop - np.roll(loop, 1, axis=0), np.roll(loop, -1, axis=0) - loop
    turns: NDArray[np.bool_] = (before != after).any(axis=1)
    return loop[turns]
