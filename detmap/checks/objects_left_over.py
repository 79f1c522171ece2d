"""Check for images that hold objects of another image besides their own, for example because a list was not cleared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.boxes import marks
from detmap.checks.changes import Array
from detmap.checks.context import Facts
from detmap.checks.evidence import FOUND, PAIRS, best_of_pairs, evidence_of
from detmap.checks.findings import Finding, found
from detmap.checks.image_ids import signatures
from detmap.checks.inputs import Side, members
from detmap.checks.rates import CHANCE, tail
from detmap.errors import many

#: Minimum number of images that hold objects of another image. In VOC2007, whose boxes are in whole pixels, no object
#: has the category and box of an object 1, 2, 3, 5, 7, 16, 50 or 100 images away.
FEWEST = 5

#: Minimum share of the pairs of equal objects that have the same distance in one order of the images. If the share is
#: reached, copies are searched at the common distance, including objects that were clipped to a smaller image.
STEP = 0.5

#: Minimum number of equal objects on two images, if equal objects have no common distance.
SAME = 2

#: Minimum share of the other image's objects that are copied. A list that is not cleared holds all objects of the other
#: image. In a video, some objects are at rest and others move.
COMPLETE = 0.8

#: Minimum share of the images with copies that also hold objects of their own. With a smaller share, the images are
#: duplicates.
BESIDE = 0.5

#: Maximum difference of equal coordinates, in pixels: the rounding error of two decimals, for each of two corners.
_ROUNDED = 0.02

#: Minimum side in pixels of an object that is clipped to the image.
_LEAST = 2.0


class _Copies(NamedTuple):
    """Objects of an image that are copies of another image's objects."""

    #: Rows of the copies, and of the originals, shape (n,).
    copies: NDArray[np.int64]
    originals: NDArray[np.int64]
    #: Description of the other image, such as "of the image before, in the order of ids"; "" if it varies.
    says: str


def check(facts: Facts) -> Iterator[Finding]:
    """Check for objects of another image besides an image's own; the detections tell copies from originals."""
    truth = facts.truth
    if facts.agreement is None or truth.table.within_unit:
        return
    good = truth.sized & ~truth.whole & ~truth.crowd & ~truth.constant
    pairs = _equal(truth, np.flatnonzero(good))
    if np.unique(truth.image[pairs[1]]).size < FEWEST:
        return
    best: tuple[int, _Copies, str] | None = None
    for way in _ways(facts, pairs, good):
        chosen = _complete(truth, way, good)
        gain, says = (0, "") if chosen is None else _gain(facts, chosen)
        if chosen is not None and gain and (best is None or gain > best[0]):
            best = gain, chosen, says
    if best is None:
        return
    copies = np.unique(best[1].copies)
    truth.aside[copies] = True
    flags = np.zeros(truth.on.images.ids.size, np.bool_)
    flags[truth.image[copies]] = True
    known = np.bincount(truth.image, minlength=flags.size) > 0
    part = facts.concentrated(flags, known)
    more = f"on {many(int(flags.sum()), 'image')}{best[1].says}; {best[2]}"
    more += "" if part is None else f"; {facts.says_part(part)}"
    yield found("objects_left_over", copies.size, "object", more=more, **truth.records(copies))


def _equal(truth: Side, rows: Array) -> NDArray[np.int64]:
    """Return pairs of rows on different images with equal category and box, the earlier image first, shape (2, n)."""
    keys = marks(truth.table.categories.codes[rows], *truth.columns[:, rows])
    order = np.lexsort((truth.image[rows], keys))
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    pairs = rows[np.stack([order[same], order[same + 1]])]
    return np.asarray(pairs[:, truth.image[pairs[0]] != truth.image[pairs[1]]])


def _ways(facts: Facts, pairs: NDArray[np.int64], good: NDArray[np.bool_]) -> Iterator[_Copies]:
    """Yield possible copies. If most equal objects have the same distance, the copies are on the later or on the
    earlier image. Otherwise, the copies are on pairs of images with several equal objects.
    """
    truth = facts.truth
    far = []
    for order in facts.division.orders:
        steps, held = np.unique(np.diff(order.place[truth.image[pairs]], axis=0), return_counts=True)
        steps, at = np.unique(np.abs(steps), return_inverse=True)
        counts = np.bincount(at.ravel(), held)
        far.append((int(counts.max()), int(steps[counts.argmax()]), order))
    most, step, order = max(far, key=lambda one: one[0])
    if most >= STEP * pairs.shape[1]:
        for way, word in ((step, "before"), (-step, "after")):
            copies, originals = _at(truth, order.place, way, good)
            what = f"the image {word}" if step == 1 else f"the image {step} {word}"
            yield _Copies(copies, originals, f", of {what}, in the order of {order.says}")
        return
    count = truth.on.images.ids.size
    cells = truth.image[pairs[0]] * count + truth.image[pairs[1]]
    _, at, held = np.unique(cells, return_inverse=True, return_counts=True)
    several = pairs[:, held[at] >= SAME]
    yield _Copies(several[1], several[0], "")
    yield _Copies(several[0], several[1], "")


def _at(truth: Side, place: NDArray[np.int64], step: int, good: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the rows of copies, and of their originals. An original lies `step` positions before its copy, and has the
    same category and, after clipping to the image of the copy, the same box.
    """
    classes = truth.table.categories.ids.size
    rows = np.flatnonzero(good)
    at, label = place[truth.image[rows]], truth.table.categories.codes[rows].astype(np.int64)
    cell = at * classes + label
    order = np.argsort(cell, kind="stable")
    starts, stops = (np.searchsorted(cell[order], cell - step * classes, way) for way in ("left", "right"))
    held = np.where((at >= step) & (at - step < place.size), stops - starts, 0)
    held[np.cumsum(held) > PAIRS] = 0
    own, at = members(starts, held)
    own, other = rows[own], rows[order[at]]
    cut = _cut(truth.boxes[other], truth.sizes[own])
    same = (np.abs(cut - truth.boxes[own]) <= _ROUNDED).all(axis=1)
    return own[same], other[same]


def _cut(boxes: Array, sizes: Array) -> Array:
    """Return boxes clipped to images of these sizes."""
    near, far = np.maximum(boxes[:, :2], 0), np.minimum(boxes[:, :2] + boxes[:, 2:], sizes)
    within = ~np.isfinite(sizes).all(axis=1, keepdims=True)
    return np.where(within, boxes, np.concatenate([near, far - near], axis=1))


def _complete(truth: Side, way: _Copies, good: NDArray[np.bool_]) -> _Copies | None:
    """Return the copies from images of which nearly all objects are copied. Return None unless enough images hold
    copies besides their own objects. Images with the same objects are considered the same image.
    """
    count = truth.on.images.ids.size
    image, of = truth.image[way.copies], truth.image[way.originals]
    objects = signatures(truth, 1)
    kept = (objects[image] != objects[of]) & (image != of)
    pairs, at = np.unique(image[kept] * count + of[kept], return_inverse=True)
    own, other = pairs // count, pairs % count
    first = good.copy()
    first[way.copies[kept]] = False  # if the other image holds copies itself, only its own objects must be copied
    originals = np.unique(np.stack([at.ravel(), way.originals[kept]]), axis=1)
    copied = np.bincount(originals[0][first[originals[1]]], minlength=pairs.size)
    # If an original lies outside of a smaller image, it has no copy there.
    sizes = np.full((count, 2), np.inf) if truth.on.images.sizes is None else truth.on.images.sizes[:, ::-1]
    held = np.bincount(truth.image[first], minlength=count)[other]
    if np.isfinite(sizes).all():
        rows = np.flatnonzero(first)
        for pair in np.flatnonzero((copied < COMPLETE * held) & (sizes[own] < sizes[other]).any(axis=1)).tolist():
            boxes = truth.boxes[rows[truth.image[rows] == other[pair]]]
            cut = _cut(boxes, np.broadcast_to(sizes[own[pair]], (len(boxes), 2)).astype(float))
            held[pair] = np.count_nonzero((cut[:, 2:] >= _LEAST).all(axis=1))
    complete = (copied > 0) & (copied >= COMPLETE * held)
    chosen = np.flatnonzero(kept)[complete[at.ravel()]]
    copies = np.unique(way.copies[chosen])
    image = np.unique(truth.image[copies])
    every, copied = (np.bincount(of, minlength=count)[image] for of in (truth.image, truth.image[copies]))
    if image.size < FEWEST or np.count_nonzero(every > copied) < BESIDE * image.size:
        return None
    return _Copies(way.copies[chosen], way.originals[chosen], way.says)


def _gain(facts: Facts, way: _Copies) -> tuple[int, str]:
    """Return the number of images on which detections find originals but not their copies, and how many copies and
    originals are found. Return 0 unless the number is far larger than the number of images on which only copies are
    found. For objects at rest in a video, these two numbers of images are similar.
    """
    assert facts.found is not None
    evidence = evidence_of(facts.truth, facts.found)
    own, other = _hit(facts, evidence.label, way.copies), _hit(facts, evidence.label, way.originals)
    image = facts.truth.image[way.copies]
    right, wrong = (np.unique(image[which]).size for which in (other & ~own, own & ~other))
    first = np.unique(way.copies, return_index=True)[1]
    originals, second = np.unique(way.originals, return_index=True)
    said = (
        f"detections find {np.count_nonzero(own[first]):,} of them, and {np.count_nonzero(other[second]):,} of the "
        f"{many(originals.size, 'object')} that they repeat"
    )
    return (right if right >= FEWEST and tail(right, 2.0 * wrong + 1) < CHANCE else 0), said


def _hit(facts: Facts, label: NDArray[np.int64], objects: Array) -> NDArray[np.bool_]:
    """Mask of the rows `objects` that a detection of their category finds; `label` holds the detections' categories."""
    truth, side = facts.truth, facts.found
    assert side is not None
    classes = max(truth.table.categories.ids.size, 1)
    there = np.zeros(truth.on.images.ids.size + 1, np.bool_)  # the last entry is for unknown images
    there[truth.image[objects]] = True
    rows = np.flatnonzero(there[side.image] & (label >= 0) & side.sized)
    cell = side.image[rows] * classes + label[rows]
    order = np.argsort(cell, kind="stable")
    cells = truth.image[objects] * classes + truth.table.categories.codes[objects]
    starts, stops = (np.searchsorted(cell[order], cells, way) for way in ("left", "right"))
    best, _ = best_of_pairs(truth.boxes[objects], starts, stops, side.boxes[rows[order]])
    return np.asarray(best >= FOUND)
