"""Check for parts of the images that hold the detections of another part, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.agreement import Agreement
from detmap.checks.changes import Array
from detmap.checks.evidence import FOUND, Evidence
from detmap.checks.findings import Finding, found
from detmap.checks.inputs import overlaps
from detmap.checks.rates import Part, tail, worst_range
from detmap.errors import many

#: Maximum number of detections that are compared with objects of all images, and maximum number of pairs.
_LOOKED_AT, _PAIRS = 2_000, 4_000_000

#: Minimum IoU for a detection to be considered to belong to an object of another image. By chance, such an overlap is
#: rare: one in 250 pairs of confident boxes of VOC2007's largest category, person, reaches it.
FITS = 0.75

#: Minimum distance, in images, between a part and the part whose detections it holds. Other checks report smaller
#: distances.
LEAST = 9

#: For the detections that fit objects at one distance: minimum number, minimum share of the compared detections, and
#: maximum p-value if all distances were equally likely.
FEWEST, SHARE, CHANCE = 20, 0.05, 1e-6

#: Log-likelihood ratios of an exchanged part to other images, for a detection that fits and for a detection that does
#: not. The part is the range with the largest sum. A detection fits with a probability of at least 0.25 in an
#: exchanged part, and of 0.01 elsewhere. Probabilities between these values give the same range.
_FIT, _NO_FIT = float(np.log(0.25 / 0.01)), float(np.log(0.75 / 0.99))

#: Limits for detections that fit another image of the same part. At least `TOGETHER` confident detections of an image,
#: and at least the share `MOST`, must fit the same other image. An order must explain at least the share `MOST` of the
#: images that reach both limits. In 14 clean scenes of ``tests/planting`` (seeds 0 and 1 of each kind), one in ten
#: images reaches both limits by chance. With `CHANCE`, at least ten images of a part must reach both.
TOGETHER, MOST = 2, 0.6

#: Maximum number of images by which the ends of a part are moved to test whether the order of ids as text explains the
#: part. In 39 exchanged parts of ``tests/planting/scenes.py`` (seeds 0 to 7), the ends are off by at most 3 images.
AROUND = 12

#: Maximum number of distances that are tested.
_PARTS = 8


def exchanged(evidence: Evidence, images: NDArray[np.bool_]) -> Iterator[Finding]:
    """Yield the finding of images in the mask `images` that hold the detections of another part of the images."""
    said, whole = [], np.zeros(evidence.images, np.bool_)
    ids = evidence.truth.on.images.ids
    for first, last, step in moved(*fits(evidence, images), evidence.images):
        if not whole[first : last + 1].any():
            whole[first : last + 1] = True
            said.append(f"images {ids[first]} to {ids[last]} hold those of {ids[first + step]} to {ids[last + step]}")
    if not said:
        return
    of = evidence.found.image
    rows = np.flatnonzero((of >= 0) & whole[of])
    more = f"{', '.join(said)}, in the order of ids, {many(int(whole.sum()), 'image')}"
    yield found("parts_exchanged", rows.size, "detection", more=more, **evidence.found.records(rows))


def moved(image: Array, steps: list[Array], images: int) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of images whose detections fit objects at one distance, as first image, last image and distance,
    by descending frequency. `image` and `steps` are those of `fits`; `images` is the number of images.
    """
    count = image.size
    flat = np.concatenate([np.unique(one) for one in steps]) if steps else np.zeros(0, np.int64)
    ways, held = np.unique(flat, return_counts=True)
    order = np.argsort(image, kind="stable")
    for at in np.argsort(-held, kind="stable")[:_PARTS].tolist():
        step = int(ways[at])
        if held[at] < max(FEWEST, SHARE * count):
            break
        if abs(step) < LEAST or tail(int(held[at]), 2.0 * flat.size / (2 * images) + 1) * ways.size >= CHANCE:
            continue
        fit = np.array([step in steps[row] for row in order.tolist()])
        run = worst_range(np.where(fit, _FIT, _NO_FIT))
        if np.count_nonzero(fit[run.start : run.stop]) >= FEWEST:
            yield int(image[order[run.start]]), int(image[order[run.stop - 1]]), step


def says_within(evidence: Evidence, part: Part) -> str:
    """Describe on how many images of a part the detections fit another image of the part, and whether sorting ids as
    text explains this. Return "" if chance explains it.
    """
    image, steps = fits(evidence, part.images, FOUND)
    pairs, outside, known = [], 0, 0
    for one in np.unique(image).tolist():
        own = [np.unique(steps[row]) for row in np.flatnonzero(image == one).tolist()]
        if len(own) < TOGETHER:
            continue
        known += 1
        ways, held = np.unique(np.concatenate(own), return_counts=True)
        best = one + ways[held == held.max()] if held.size else ways
        if held.max(initial=0) < max(TOGETHER, MOST * len(own)) or best.size > 1 or best[0] == one:
            continue  # several images fit equally, no image fits, or the own image fits best
        pairs += [(one, int(best[0]))] * bool(part.images[best[0]])
        outside += not part.images[best[0]]
    inside, others = int(part.images.sum()), int((~part.images).sum())
    usual = outside * inside / max(others, 1)
    if not others or tail(len(pairs), 2.0 * usual + 1) >= CHANCE:
        return ""
    more = f"; on {len(pairs):,} of {known:,} images with two or more confident detections, "
    more += "these fit another image of the part better than all others"
    ends, held_by, way = _as_text(evidence.truth.on.images.ids, np.array(pairs), np.flatnonzero(part.images))
    if held_by < MOST * len(pairs):
        return more
    return (
        f"{more}: images {ends[0]} to {ends[1]} hold the detections of each other, those of the n-th in the order of ids "
        f"{'as text are under the n-th as numbers' if way else 'as numbers are under the n-th as text'}"
    )


def _as_text(ids: Array, pairs: Array, part: Array) -> tuple[tuple[Any, Any], int, bool]:
    """Find the range of images, near `part`, in which sorting ids as text instead of numbers explains most of `pairs`.
    Each pair consists of an image, and the image to which its detections belong. Return the first and last id of the
    range, the number of explained pairs, and whether the images are ordered by ids as numbers.
    """
    first, last = min(int(part[0]), int(pairs.min())), max(int(part[-1]), int(pairs.max()))
    best = (ids[first], ids[last]), 0, True
    low, high = max(first - AROUND, 0), min(last + AROUND, ids.size - 1) + 1
    widest = low + np.argsort(ids[low:high].astype(str), kind="stable")  # also sorts every narrower range
    for start in range(low, min(first + AROUND, int(pairs.min())) + 1):
        for stop in range(max(last - AROUND, int(pairs.max())) + 1, high + 1):
            order = widest[(widest >= start) & (widest < stop)]
            for way, (one, other) in ((True, pairs.T), (False, pairs.T[::-1])):
                held = int(np.count_nonzero(order[one - start] == other))
                if held > best[1]:
                    best = (ids[start], ids[stop - 1]), held, way
    return best


def fits(evidence: Evidence, images: NDArray[np.bool_], least: float = FITS) -> tuple[Array, list[Array]]:
    """Return the image of each compared detection, and the distances, in images, to all images where the detection fits
    an object with an IoU of at least `least`. The detections of an image are compared together.
    """
    part = Agreement(evidence.truth, evidence.found, images, corrected=evidence.scores)
    rows, rng = part.rows[evidence.label[part.rows] >= 0], np.random.default_rng(0)
    rows = rows[np.argsort(rng.permutation(evidence.images)[evidence.found.image[rows]], kind="stable")][:_LOOKED_AT]
    objects = evidence.object_image, evidence.object_label, evidence.object_box
    return distances(evidence.found.image[rows], evidence.label[rows], evidence.found.boxes[rows], *objects, least)


def distances(
    image: Array,
    label: Array,
    boxes: Array,
    object_image: Array,
    object_label: Array,
    object_box: Array,
    least: float = FITS,
) -> tuple[Array, list[Array]]:
    """Like `fits`, for given columns of some detections and of all objects."""
    by_label = np.argsort(object_label, kind="stable")
    of = object_label[by_label]
    steps: list[Array] = []
    pairs = 0
    for one, box, category in zip(image.tolist(), boxes, label.tolist(), strict=True):
        start, stop = np.searchsorted(of, category), np.searchsorted(of, category, "right")
        pairs += int(stop - start)
        if pairs > _PAIRS:
            break
        at = by_label[start:stop]
        steps.append(object_image[at[overlaps(np.broadcast_to(box, (at.size, 4)), object_box[at]) >= least]] - one)
    return image[: len(steps)], steps
