"""Windows that contain all detections of the images of a part, because the detector saw only a crop of each image."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.changes import Array
from detmap.checks.inputs import Side
from detmap.checks.rates import tail
from detmap.errors import many

#: Minimum distance between the edges of the window and the image, in pixels, and precision of coordinates.
INSIDE, STEP = 2.0, 0.01

#: Maximum p-value of the number of boxes that end at an edge of the window. Without a crop, at most `TIMES` times as
#: many boxes are assumed to end at this edge as at another coordinate within `NEAR` pixels. The factor is above 1
#: because boxes in whole pixels often share a coordinate.
CHANCE, NEAR, TIMES = 1e-6, 8.0, 3.0

#: A window is the central square of the image if it differs by at most `ROUNDED` pixels. `SQUARES` is the minimum share
#: of images with such a window.
ROUNDED, SQUARES = 1.0, 0.9


class Windows(NamedTuple):
    """The windows of images, determined separately for each image size."""

    #: Left, top, right and bottom edge of each image's window, shape (images, 4); infinite at an edge of the image.
    edges: NDArray[np.float64]
    #: Whether the windows are the central squares of the images.
    squares: bool

    @property
    def images(self) -> NDArray[np.bool_]:
        """Mask of the images with a window, shape (images,)."""
        return np.asarray(np.isfinite(self.edges).any(axis=1))

    def touched(self, side: Side) -> NDArray[np.bool_]:
        """Mask of the records with an edge on an edge of their image's window, shape (n,)."""
        apart = np.abs(_corners(side) - self.edges[side.image].T)
        return np.asarray((side.image >= 0) & (apart <= STEP).any(axis=0))

    def exceeded(self, side: Side) -> NDArray[np.bool_]:
        """Mask of the records that extend beyond their image's window, shape (n,)."""
        beyond = (self.edges[side.image].T - _corners(side)) * np.array([[1], [1], [-1], [-1]])
        return np.asarray((side.image >= 0) & (beyond > ROUNDED).any(axis=0))

    def says(self, truth: Side) -> str:
        """Describe the detections on the images with a window in comparison with the objects of `truth`."""
        objects = ~truth.crowd & self.images[truth.image]
        count = many(int(self.images.sum()), "image")
        beyond, total = int(np.count_nonzero(objects & self.exceeded(truth))), many(int(objects.sum()), "object")
        what = "it" if self.squares else "the outermost of these"
        more = f"on {count} no detection reaches beyond {what}, but {beyond:,} of {total} do"
        return f"those of the central square; {more}" if self.squares else more


def windows(side: Side, images: NDArray[np.bool_]) -> Windows | None:
    """Return the windows that contain all boxes on `images`, determined for each image size; None if there are none."""
    rows = np.flatnonzero((side.image >= 0) & side.sized & ~side.aside & images[side.image])
    sizes = side.sizes[rows]
    if not rows.size or not np.isfinite(sizes).all():
        return None
    corners = _corners(side)[:, rows]
    keys, group = np.unique(sizes[:, 0] * (sizes.max() + 1) + sizes[:, 1], return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(keys.size + 1))
    none = np.array([-np.inf, -np.inf, np.inf, np.inf])
    edges, known, square = np.tile(none, (images.size, 1)), 0, 0
    for at in range(keys.size):
        own = order[starts[at] : starts[at + 1]]
        of, size = np.unique(side.image[rows[own]]), sizes[own[0]]
        distances = np.concatenate([corners[:2, own], size[:, None] - corners[2:, own]])
        inside = np.array([_edge(values) for values in distances])
        if inside.any():
            edges[of] = np.where(inside > 0, np.concatenate([inside[:2], size - inside[2:]]), none)
            known += of.size
            square += of.size * bool((np.abs(inside - np.tile((size - size.min()) / 2, 2)) <= ROUNDED).all())
    if not known:
        return None
    made = Windows(edges, square >= SQUARES * known)
    return _squares(side, images) if made.squares else made


def _squares(side: Side, images: NDArray[np.bool_]) -> Windows:
    """Return the central squares of those `images` whose boxes all lie within the square."""
    edges = np.tile([-np.inf, -np.inf, np.inf, np.inf], (images.size, 1))
    size = np.zeros((images.size, 2))
    size[side.image[side.image >= 0]] = side.sizes[side.image >= 0]
    apart = (size - size.min(axis=1, keepdims=True)) / 2
    there = images & (apart > INSIDE).any(axis=1)
    square = np.concatenate([apart, size - apart], axis=1)
    inner = np.tile(apart > INSIDE, 2) & there[:, None]
    edges[inner] = square[inner]
    made = Windows(edges, True)
    edges[np.unique(side.image[made.exceeded(side)])] = [-np.inf, -np.inf, np.inf, np.inf]
    return made


def _corners(side: Side) -> Array:
    """Return left, top, right and bottom edge of each box, shape (4, n)."""
    x, y, w, h = side.columns
    return np.stack([x, y, x + w, y + h])


def _edge(values: Array) -> float:
    """Return the smallest distance of boxes from the image's edge, if above `INSIDE` and shared by many boxes; else 0."""
    least = float(values.min())
    if least <= INSIDE:
        return 0.0
    at = np.count_nonzero(values <= least + STEP)
    near = values[(values > least + STEP) & (values <= least + NEAR)]
    usual = near.size / max(np.unique(np.round(near / STEP)).size, 1)
    return least if tail(int(at), TIMES * usual + 1) < CHANCE else 0.0
