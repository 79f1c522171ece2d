"""Checks for non-maximum suppression (NMS) that is stricter, or goes across categories, on some of the images only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.boxes import marks
from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.evidence import Evidence
from detmap.checks.findings import Finding, found
from detmap.checks.parts import SUPPRESSION, share
from detmap.checks.rates import CHANCE, tail
from detmap.errors import many

Array = NDArray[Any]

#: Codes of findings about boxes that were changed (cut, rounded, enlarged, made square) or added after suppression.
RESHAPED = ("cut_boxes", "square_boxes", "coarse_boxes", "piled_scores", "piled_sides", "biased_boxes")

#: Number of the highest-scoring detections of each image that are compared.
TOP = 20

#: Minimum IoU of two boxes that are considered equal. Many models write the same box under several categories.
SAME = 0.99

#: Tested thresholds of suppression, and width of the IoU bands below and above a threshold.
THRESHOLDS, WIDTH = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7), 0.05

#: `FEWEST` is the minimum number of images that exceed a threshold, or on which every box has a single category. `FALL`
#: is the minimum ratio of the number of images whose largest overlap is in the band below a threshold to the number in
#: the band above. Without suppression, the numbers of neighbouring bands differ by at most a third.
FEWEST, FALL = 8, 2.0

#: Number that is added to the number of images expected below a threshold. If no image lies above the threshold, up to
#: three may be expected (the upper end of the 95 % interval of a Poisson mean without an event).
UNSEEN = 3.0

#: Minimum share of images whose largest overlap exceeds the threshold by more than `WIDTH`, among the images with any
#: overlap. If no overlap exceeds the threshold, suppression is equally strict on all images, which `limits` reports if
#: objects are lost.
BEYOND = 0.05

#: Maximum number of detections that are searched for equal boxes of different categories.
SAMPLE = 250_000

#: Images with fewer than `TWO` detections are ignored. A part is reported if at least the share `ALL` of its images has
#: only overlaps below the suppression threshold. A few images at the ends of a part may belong to the rest.
#: `EXCEEDING` is the assumed share of a part's images that exceed the threshold. A small value makes a part end at an
#: image that exceeds the threshold.
TWO, ALL, EXCEEDING = 2, 0.95, 0.01

#: A part of the images is reported if every box has a single category on at least the share `INSIDE` of its images, and
#: on at least `TIMES` the share of the other images.
INSIDE, TIMES = 0.8, 2.5

#: If no part is reported, all images on which every box has a single category are reported if their number n[0] is
#: significantly larger than `EXPECTED` times ``n[1] ** 2 / n[2]``. n[k] is the number of images on which k boxes have
#: two categories. For a log-concave distribution, n[0] is at most ``n[1] ** 2 / n[2]``.
EXPECTED = 2.0


def check(facts: Facts) -> Iterator[Finding]:
    """Check for images on which suppression goes across categories or is stricter than on the other images."""
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    if facts.caused("detections", *SUPPRESSION):
        return  # missing suppression explains the overlaps
    if facts.caused("detections", *RESHAPED) or evidence.found.constant.any():
        return  # boxes that are changed or added after suppression may overlap more than suppression allows
    unreported = facts.unreported(np.arange(evidence.images))
    overlaps, equal = largest_overlaps(evidence)
    for at, words in ((1, "detections of different categories"), (0, "detections of one category")):
        largest = np.where(unreported, overlaps[at], 0.0)
        made = threshold_of(largest)
        if made is not None:
            yield _strict(facts, evidence, made, np.where(equal[at], 1.0, largest), unreported, words)
            return
    if evidence.classes > 1:
        yield from _single(facts, evidence, unreported)


def _strict(
    facts: Facts, evidence: Evidence, made: tuple[float, int, int], largest: Array, known: NDArray[np.bool_], words: str
) -> Finding:
    """Return the finding of images with stricter suppression. These are the images of a part on which no overlap
    reaches the threshold or, without such a part, the images whose largest overlap is just below the threshold. Images
    outside of `known` are ignored.
    """
    threshold, above, beyond = made
    held = np.bincount(evidence.found.image[evidence.detections], minlength=evidence.images)
    there = np.flatnonzero((held >= TWO) & known)
    bad = largest[there] < threshold
    part = evidence.division.unlike(
        there, bad, np.full(bad.size, float(bad.mean())), repeats=evidence.frames, left=EXCEEDING
    )
    if part is not None and not part.units.all():
        (inside, total), (outside, others) = (
            (int(np.count_nonzero(bad[of])), int(np.count_nonzero(of))) for of in (part.units, ~part.units)
        )
        if inside >= ALL * total:
            facts.parts.append((part.images, None))
            more = (
                f"{part.says}: of the {TOP} best no two {words} overlap by {number(threshold)} or more on {inside:,} of "
                f"{many(total, 'image')} there with several, elsewhere on {outside:,} of {others:,}"
            )
            return _said(evidence, there[part.units & bad], more)
    more = (
        f"the largest overlap of two {words} lies just below {number(threshold)}; {many(above, 'image')} "
        f"{'exceeds' if above == 1 else 'exceed'} it by less than {WIDTH:g}, and {beyond:,} by more"
    )
    return _said(evidence, np.flatnonzero(known & (largest >= threshold - WIDTH) & (largest < threshold)), more)


def _said(evidence: Evidence, images: Array, more: str) -> Finding:
    shown = evidence.truth.on.images.ids[images][:10].tolist()
    return found("uneven_suppression", images.size, "image", records=shown, named="image", more=more)


def _single(facts: Facts, evidence: Evidence, unreported: NDArray[np.bool_]) -> Iterator[Finding]:
    """Yield a finding of images on which no box has two categories, although boxes on other images do."""
    image = evidence.found.image[evidence.detections]
    held = np.bincount(image, minlength=evidence.images)
    images = np.random.default_rng(0).permutation(np.flatnonzero((held > 0) & unreported))
    images = np.sort(images[np.cumsum(held[images]) <= SAMPLE])
    chosen = np.zeros(evidence.images, np.bool_)
    chosen[images] = True
    rows = evidence.detections[chosen[image]]
    box, of = evidence.found.columns[:, rows], evidence.found.image[rows]
    label, mixed = evidence.label[rows], marks(of, *box)
    order = np.argsort(label.astype(np.min_scalar_type(evidence.classes)), kind="stable")
    order = order[np.argsort(mixed[order], kind="stable")]
    same = mixed[order[1:]] == mixed[order[:-1]]
    again = order[1:][same & (label[order[1:]] != label[order[:-1]])]
    if not again.size:
        return
    boxes = held[images] - np.bincount(of[order[1:][same]], minlength=evidence.images)[images]
    images = images[boxes >= np.median(boxes)]  # on an image with few boxes each box may have one category by chance
    more = np.bincount(of[again], minlength=evidence.images)[images]
    bad = more == 0
    if np.count_nonzero(bad) < FEWEST or bad.all():
        return
    part = evidence.division.unlike(images, bad, np.full(bad.size, float(bad.mean())), repeats=evidence.frames)
    if part is not None and not part.units.all():
        inside, outside = bad[part.units], bad[~part.units]
        if inside.mean() >= max(INSIDE, TIMES * outside.mean()):
            facts.parts.append((part.images, None))
            figures = share(int(inside.sum()), inside.size), inside.size, share(int(outside.sum()), outside.size)
            words = "{}: no box has two categories on {} of {:,} with many boxes; elsewhere on {}"
            yield _said(evidence, images[part.units & bad], words.format(part.says, *figures))
            return
    none, one, two = np.bincount(more, minlength=3)[:3].tolist()
    if one <= two and tail(none, EXPECTED * one**2 / max(two, 1) + 1) < CHANCE:
        more = (
            f"of {bad.size:,} with many boxes, no box has two categories there; on {many(one, 'image')} one box has, and on "
            f"{two:,} two boxes have"
        )
        yield _said(evidence, images[bad], more)


def largest_overlaps(evidence: Evidence) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return for each image the largest IoU between two detections of the same category (row 0), and of different
    categories (row 1), shape (2, images). Pairs of equal boxes (see `SAME`) are left out. Return also a mask, shape (2,
    images), of the images with a pair of equal boxes.

    Only the `TOP` best detections of an image are compared. The value is 0 if no two boxes overlap.
    """
    order = evidence.by_score
    image = evidence.found.image[evidence.detections[order]]
    small = np.min_scalar_type(max(evidence.images, 1))  # numpy sorts integers of at most 16 bits by radix
    by_image = np.argsort(image.astype(small), kind="stable")
    order, image = order[by_image], image[by_image]
    held = np.bincount(image, minlength=evidence.images)
    rank = np.arange(order.size) - np.repeat(np.cumsum(held) - held, held)
    order, image, rank = (column[rank < TOP] for column in (order, image, rank))
    rows = evidence.detections[order]
    box = evidence.found.boxes[rows]
    table = np.zeros((6, TOP, evidence.images))  # corners, area and category
    values = (
        box[:, 0],
        box[:, 1],
        box[:, 0] + box[:, 2],
        box[:, 1] + box[:, 3],
        box[:, 2] * box[:, 3],
        evidence.label[rows],
    )
    for column, value in zip(table, values, strict=True):
        column[rank, image] = value
    out, equal = np.zeros((2, evidence.images)), np.zeros((2, evidence.images), np.bool_)
    for step in range(1, min(TOP, int(held.max(initial=0)))):
        one, other = table[:, :-step], table[:, step:]
        width = np.minimum(one[2], other[2]) - np.maximum(one[0], other[0])
        height = np.minimum(one[3], other[3]) - np.maximum(one[1], other[1])
        both = np.maximum(width, 0) * np.maximum(height, 0)
        value = np.divide(both, one[4] + other[4] - both, out=np.zeros_like(both), where=both > 0)
        as_one = value >= SAME
        value[as_one] = 0.0
        same = one[5] == other[5]
        for largest, twice, which in zip(out, equal, (same, ~same), strict=True):
            np.maximum(largest, np.where(which, value, 0.0).max(axis=0), out=largest)
            twice |= (as_one & which).any(axis=0)
    return out, equal


def threshold_of(largest: Array) -> tuple[float, int, int] | None:
    """Find a threshold such that the largest overlap lies just below it on many images, but just above it on few images.

    Return None if there is no threshold. Otherwise, return the threshold, the number of images that exceed it by less
    than `WIDTH`, and the number that exceed it by more.
    """
    best: tuple[float, tuple[float, int, int]] | None = None
    for threshold in THRESHOLDS:
        ends = (threshold - WIDTH, threshold, threshold + WIDTH, 1.0)
        below, above, beyond = (
            int(np.count_nonzero((largest >= low) & (largest < high))) for low, high in itertools.pairwise(ends)
        )
        chance = tail(below, FALL * above + UNSEEN) * len(THRESHOLDS)
        if chance >= CHANCE or beyond < max(FEWEST, BEYOND * np.count_nonzero(largest)):
            continue
        if best is None or chance < best[0]:
            best = chance, (threshold, above, beyond)
    return None if best is None else best[1]
