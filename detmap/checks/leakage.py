"""Checks for images that two ground truths share: images with equal file names or equal objects, even if resized or
mirrored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.context import Facts
from detmap.checks.findings import Finding, found, names
from detmap.checks.image_ids import base_name, clean_name, signatures, tells
from detmap.checks.inputs import Side

Array = NDArray[Any]

#: Maximum difference, as a share of the image size, between an object's corners on an image and on a resized copy of it.
#: Corners are rounded to pixels, and the smaller image is assumed to be at least 100 pixels wide and high.
CLOSE = 0.01

#: Minimum number of equal objects for two images to be considered the same. n random boxes agree with a probability of
#: about (2 * CLOSE) ** (4 * n), so that in none of 10 ** 12 pairs of images 3 boxes agree.
SHARED = 3

#: Two images with equal names and aspect ratios, but different sizes, may be the same image. Without objects to
#: compare, this requires at least `SAME_ASPECTS` such pairs with at least `ASPECTS` distinct aspect ratios.
SAME_ASPECTS, ASPECTS = 10, 3

#: Maximum number of pairs of images whose boxes are compared.
_PAIRS = 500_000


class Layout(NamedTuple):
    """The objects of a ground truth, sorted by image, with corners as shares of the image size."""

    image: NDArray[np.int64]
    label: NDArray[np.int64]
    corners: NDArray[np.float64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


def check(facts: Facts) -> Iterator[Finding]:
    """Check for images that are also in the training set."""
    if facts.train is None:
        return
    truth, train = facts.truth, facts.train
    own = truth.on.images
    shared: dict[int, str] = {}
    how: list[str] = []
    layouts = _layouts(truth, train)
    by_name = list(_by_name(truth, train, layouts))
    shared.update(by_name)
    if len(truth) and len(train):
        mine, theirs = (signatures(side, rows=tells(side)) for side in (truth, train))
        same = np.isin(mine, theirs[theirs > 0]) & (mine > 0)
        same &= truth.on.categories.names == train.on.categories.names
        for place in np.flatnonzero(same).tolist():
            shared.setdefault(place, "")
        if shared.keys() - dict(by_name).keys():
            how.append("by their objects, which are the same box by box")
    if layouts is not None:
        before = set(shared)
        for turned in (False, True):
            for place in _by_objects(*layouts, turned):
                shared.setdefault(place, "")
            if set(shared) - before:
                how.append("by their objects, at the same places of " + ("mirrored images" if turned else "the images"))
                before = set(shared)
    if shared:
        named = [name for _, name in sorted(shared.items()) if name]
        if named:
            how.insert(0, f"files {names(named)}")
        ids = [own.ids[place].item() for place in sorted(shared)]
        yield found("leakage", len(shared), "image", records=ids, named="image", more="; ".join(how))


def _file_names(side: Side) -> dict[int, str]:
    """Return the file name of each image, by its index; ids that are strings are used if names are not listed."""
    images = side.on.images
    listed = images.names
    if listed is None and images.ids.dtype.kind == "U":
        listed = tuple(images.ids.tolist())
    return {place: clean_name(name) for place, name in enumerate(listed or ()) if name}


def _by_name(truth: Side, train: Side, layouts: tuple[Layout, Layout] | None) -> Iterator[tuple[int, str]]:
    """Yield index and file name of the images that share a name with an image of `train`, unless sizes or objects differ."""
    here, there = _file_names(truth), _file_names(train)
    folders = all(any("/" in name for name in side.values()) for side in (here, there))
    known = {name if folders else base_name(name): place for place, name in there.items()}
    own, others = truth.on.images.sizes, train.on.images.sizes
    resized: list[tuple[int, int, str]] = []
    for place, name in here.items():
        other = known.get(name if folders else base_name(name))
        if other is None:
            continue
        if (
            own is None
            or others is None
            or not own[place].all()
            or not others[other].all()
            or (own[place] == others[other]).all()
        ):
            yield place, name
        else:
            resized.append((place, other, name))
    if resized and own is not None and others is not None:
        yield from _resized(resized, own, others, layouts)


def _resized(
    pairs: list[tuple[int, int, str]], own: Array, others: Array, layouts: tuple[Layout, Layout] | None
) -> Iterator[tuple[int, str]]:
    """Yield those images of `pairs` (equal names, different sizes) whose objects or, without objects, aspect ratios
    agree.
    """
    aspect = np.array([(own[a, 0] / own[a, 1], others[b, 0] / others[b, 1]) for a, b, _ in pairs])
    kept = np.abs(aspect[:, 0] / aspect[:, 1] - 1) <= CLOSE
    says = np.zeros(len(pairs), np.int64)  # 1: the objects agree, -1: they do not, 0: unknown
    if layouts is not None:
        says = np.array([_agree(layouts[0], a, layouts[1], b) for a, b, _ in pairs])
    agree, against = np.count_nonzero(says > 0), np.count_nonzero(says < 0)
    if agree + against:
        meant = says > 0 if agree <= against else (says > 0) | ((says == 0) & kept)
    else:
        many = kept.all() and len(pairs) >= SAME_ASPECTS and np.unique(np.round(aspect[:, 0], 2)).size >= ASPECTS
        meant = np.full(len(pairs), many)
    for (place, _, name), one in zip(pairs, meant.tolist(), strict=True):
        if one:
            yield place, name


def _agree(one: Layout, a: int, other: Layout, b: int) -> int:
    """Return 1 if two images have the same objects, -1 if not, 0 if one of the images has no objects."""
    mine, theirs = (side.corners[side.starts[at] : side.stops[at]] for side, at in ((one, a), (other, b)))
    if not len(mine) or not len(theirs):
        return 0
    apart = np.abs(mine[:, None] - theirs[None]).max(axis=2).min(axis=1)
    return 1 if 2 * np.count_nonzero(apart <= CLOSE) >= len(mine) else -1


def _layouts(truth: Side, train: Side) -> tuple[Layout, Layout] | None:
    """Return the layouts of `truth` and `train`; None if `truth` or `train` lacks objects or image sizes."""
    if not (len(truth) and len(train)):
        return None
    labels = {
        name: at for at, name in enumerate(dict.fromkeys([*truth.on.categories.names, *train.on.categories.names]))
    }
    out = []
    for side in (truth, train):
        good = side.sized & np.isfinite(side.sizes).all(axis=1) & ~side.whole
        rows = np.flatnonzero(good)
        rows = rows[np.argsort(side.image[rows], kind="stable")]
        boxes, sizes = side.boxes[rows], side.sizes[rows]
        corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1) / np.concatenate(
            [sizes] * 2, axis=1
        )
        of = np.array([labels[name] for name in side.on.categories.names], np.int64)[side.table.categories.codes[rows]]
        places = np.arange(side.on.images.ids.size)
        starts, stops = (np.searchsorted(side.image[rows], places, way) for way in ("left", "right"))
        out.append(Layout(side.image[rows], of, corners, starts, stops))
    return (out[0], out[1]) if len(out[0].image) and len(out[1].image) else None


def _by_objects(one: Layout, other: Layout, turned: bool) -> Iterator[int]:
    """Yield the images of `one` with the same objects as an image of `other`, which is mirrored if `turned`."""
    theirs = other.corners[:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [1, 0, 1, 0] if turned else other.corners
    sides = []
    for side, corners in ((one, one.corners), (other, theirs)):
        held = side.stops - side.starts
        at = np.flatnonzero(held >= SHARED)
        middle = np.stack([np.bincount(side.image, column, held.size)[at] / held[at] for column in corners.T], axis=1)
        sides.append((at, held[at], middle))
    (at, held, middle), (to, of, means) = sides
    order = np.lexsort((means[:, 0], of))
    to, of, means = to[order], of[order], means[order]
    keys = of * 4.0 + means[:, 0]  # means are at most 1, so keys sort by number of objects first
    low = np.searchsorted(keys, held * 4.0 + middle[:, 0] - CLOSE)
    high = np.searchsorted(keys, held * 4.0 + middle[:, 0] + CLOSE, "right")
    tried = 0
    for place, mean, first, last in zip(at.tolist(), middle, low.tolist(), high.tolist(), strict=True):
        near = first + np.flatnonzero((np.abs(means[first:last] - mean) <= CLOSE).all(axis=1))
        tried += near.size
        if tried > _PAIRS:
            return
        mine = slice(one.starts[place], one.stops[place])
        for match in to[near].tolist():
            span = slice(other.starts[match], other.stops[match])
            apart = np.abs(one.corners[mine][:, None] - theirs[span][None]).max(axis=2)
            apart[one.label[mine][:, None] != other.label[span][None]] = 1.0
            if (apart.min(axis=1) <= CLOSE).all() and np.ptp(one.corners[mine], axis=0).max() > 2 * CLOSE:
                yield place
                break
