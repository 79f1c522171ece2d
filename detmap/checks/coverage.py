"""Checks of the number of detections per image, and of images without detections."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.checks import image_ids as image_ids
from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.findings import Finding, found, names
from detmap.checks.inputs import Side
from detmap.checks.rates import tail
from detmap.errors import many

#: A detection lies on no object if its IoU with every object is below this value, because neighbouring objects rarely
#: overlap more.
ALONE = 0.1

#: Limits for reporting that images without objects were skipped. The share of images that have a detection on no object
#: is estimated from at most `COMPARED` images with objects. Images without objects are assumed to have a detection with
#: at least `LESS` times this probability. The probability that no image without objects has a detection must be below
#: `UNLIKELY`.
COMPARED, LESS, UNLIKELY = 300, 0.5, 1e-6

#: If some images exceed a limit of the number of detections per image, the limit must be at least `LEAST_LIMIT`. At
#: least `PILE` times as many images must be at the limit as at any of the four nearest numbers. Without a limit the
#: number of images varies smoothly with the number of detections.
LEAST_LIMIT, PILE = 5, 2.0

#: In a part whose low scores were cut: maximum ratio of the share of images without detections to the expected share.
#: Other images, cut at the same score, give the expected share. The ratio may exceed 1 because the score of the cut is
#: an estimate.
CUT_EMPTY = 1.2

#: Images without detections are reported as crowded if they hold at least `CROWDED` times as many objects as other
#: images on average. The difference must be at least `SURE` standard errors; a lost shard differs by 5 standard errors
#: once in a million cases. No part may lack detections on more than the share `TOGETHER` of its images.
CROWDED, SURE, TOGETHER = 1.5, 5.0, 0.9

#: To report the largest number of detections on other images as a limit: minimum number `FEWEST_NEXT` of images within
#: the factor `BAND` below this number, and minimum ratio `SHARP` of these images to the images in the next lower band.
BAND, FEWEST_NEXT, SHARP = 1.15, 12, 0.5

#: Maximum number of detections per image and category under the protocol coco.
_LOOKED_AT = 100

#: Codes of findings of lost detections.
LOST = "missing_shard", "crowded_images_lost"


def check(facts: Facts) -> Iterator[Finding]:
    """Check for images without detections or objects, and for limits of the number of detections per image."""
    truth = facts.truth
    codes = [code.partition(":")[2] for code in truth.table.notices if code.startswith("foreign_fields:")]
    if codes:
        yield found("foreign_fields", len(codes), "field", more=names(codes))
    count = truth.on.images.ids.size
    yield from _nothing(facts)
    objects = np.bincount(truth.image[~truth.crowd], minlength=count)
    without = np.bincount(truth.image, minlength=count) == 0
    if not facts.schema and len(truth) and 2 * np.count_nonzero(without) > count:
        ids = truth.on.images.ids[without][:10].tolist()
        yield found("images_without_objects", int(without.sum()), "image", records=ids, named="image")
    side = facts.found
    if side is None or not len(side) or facts.caused("detections", *image_ids.CAUSES):
        return
    known = side.image >= 0
    detections = np.bincount(side.image[known], minlength=count)
    if detections.any():
        yield from _empty(facts, objects, detections)
        yield from _skipped(facts, side, np.bincount(truth.image, minlength=count), detections)
    yield from _capped(facts, side, detections)


def explained(facts: Facts, findings: list[Finding]) -> list[Finding]:
    """Repeat the check of images without detections if it found lost detections (`LOST`). A score cut or a limit of
    size may explain some of these images. Return other findings unchanged.
    """
    if (facts.cut is None and facts.beyond is None) or facts.found is None:
        return findings
    image, count = facts.found.image, facts.truth.on.images.ids.size
    objects = np.bincount(facts.truth.image[~facts.truth.crowd], minlength=count)
    made = _empty(facts, objects, np.bincount(image[image >= 0], minlength=count))
    return [other for one in findings for other in (made if one.code in LOST else [one])]


def _nothing(facts: Facts) -> Iterator[Finding]:
    """Yield a finding if there are no images, no objects, or no detections, although no record was refused."""
    images = facts.truth.on.images.ids.size
    if not images:
        yield found("no_images", 0, "image")
        return
    if not facts.schema and not len(facts.truth) and not facts.truth.refused:
        yield found("no_objects", images, "image")
    side = facts.found
    if side is not None and not len(side) and not side.refused and not side.unknown:
        yield found("no_detections", images, "image")


def _empty(facts: Facts, objects: NDArray[np.int64], detections: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield findings of images without detections; the code depends on whether chance or a score cut explains them."""
    there = np.ones(objects.size, np.bool_) if facts.schema else objects > 0
    if facts.renamed is not None:
        there &= ~facts.renamed
    words = "{many}" if facts.schema else "{many} with objects to find"
    empty = there & (detections == 0)
    compared = there & ~_cut_empty(facts, empty) & ~(empty & _beyond(facts, objects))
    lost = empty & compared
    why = "" if np.count_nonzero(lost) <= 1 else _lost(facts, objects, detections, compared)
    if not why:
        lost[:] = False
    crowded = _crowded(facts, lost, compared & ~empty, objects, detections) if why else ""
    why = crowded or why
    for code, which in ((LOST[bool(crowded)], lost), ("images_without_detections", empty & ~lost)):
        if which.any():
            ids, more = facts.truth.on.images.ids[which][:10].tolist(), why if which is lost else ""
            yield found(code, int(which.sum()), "image", records=ids, named="image", more=more, words=words)


def _crowded(
    facts: Facts,
    lost: NDArray[np.bool_],
    others: NDArray[np.bool_],
    objects: NDArray[np.int64],
    detections: NDArray[np.int64],
) -> str:
    """Describe by how many objects images without detections exceed others (see `CROWDED`); "" if they do not."""
    if facts.schema or np.count_nonzero(lost) < 2 or np.count_nonzero(others) < 2:
        return ""
    own, rest = objects[lost], objects[others]
    error = math.sqrt(own.var(ddof=1) / own.size + rest.var(ddof=1) / rest.size)
    if own.mean() < CROWDED * rest.mean() or own.mean() < rest.mean() + SURE * error:
        return ""
    part = facts.gathered(lost, lost | others)
    if part is not None and np.mean(lost[part.images & (lost | others)]) > TOGETHER:
        return ""
    more = f"{number(float(own.mean()))} in the mean, where others hold {number(float(rest.mean()))}"
    most = int(detections[others].max())
    edges = (most / BAND**2, most / BAND, most)
    behind, near = np.diff([int(np.count_nonzero(detections[others] <= edge)) for edge in edges]).tolist()
    if near >= max(FEWEST_NEXT, SHARP * behind):
        more += f"; no other image has more than {many(most, 'detection')}"
    return more


def _cut_empty(facts: Facts, empty: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask of the images whose low scores were cut (`facts.cut`). All values are False if more of these images are empty
    than the cut explains.
    """
    none = np.zeros_like(empty)
    if facts.cut is None or facts.agreement is None or facts.found is None:
        return none
    part, cut = facts.cut
    image, scores = facts.found.image, facts.agreement.confidence
    high = np.bincount(image[(image >= 0) & (scores >= cut)], minlength=empty.size) > 0
    others = ~part & ~empty
    chance = float(np.mean(~high[others])) if others.any() else 0.0
    count = int(np.count_nonzero(empty & part))
    expected = CUT_EMPTY * chance * int(np.count_nonzero(part)) + 1
    return part if tail(count, expected) >= 1e-3 else none


def _beyond(facts: Facts, objects: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the images on which every object has a size or position that no detection has (`facts.beyond`)."""
    if facts.beyond is None:
        return np.zeros(objects.size, np.bool_)
    rows = facts.beyond & ~facts.truth.crowd
    return np.asarray((objects > 0) & (np.bincount(facts.truth.image[rows], minlength=objects.size) == objects))


def _skipped(facts: Facts, side: Side, objects: NDArray[np.int64], detections: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield a finding if no image without objects has detections, although other images have detections on no object."""
    bare = objects == 0
    count = int(np.count_nonzero(bare))
    if facts.agreement is None or facts.causes or not count or (detections[bare] > 0).any():
        return
    full = np.flatnonzero(~bare & (detections > 0))
    full = np.sort(np.random.default_rng(0).permutation(full)[:COMPARED])
    rows = facts.agreement.thinned(np.flatnonzero(np.isin(side.image, full)))
    alone = facts.agreement.nearest(side.image[rows], side.boxes[rows]).overlap < ALONE
    some = np.unique(side.image[rows[alone]]).size / max(full.size, 1)
    # Images without objects may have fewer detections. Detections that hit no object are assumed to be at least half as
    # frequent on images without objects as on other images.
    if (1 - LESS * some) ** count < UNLIKELY:
        ids = facts.truth.on.images.ids[bare][:10].tolist()
        more = f"of {full.size:,} others that were looked at {some:.0%} have one"
        yield found("empty_images_skipped", count, "image", records=ids, named="image", more=more)


def _lost(facts: Facts, objects: NDArray[np.int64], detections: NDArray[np.int64], there: NDArray[np.bool_]) -> str:
    """Return, in words, the evidence that detections of some images were lost; "" if chance explains the empty images."""
    empty = there & (detections == 0)
    count, others = int(np.count_nonzero(empty)), there & ~empty
    expected = float(np.count_nonzero(there) * chance_of_none(detections[others]))
    chance = f"{expected:,.1f} would be expected by the numbers of detections of the others"
    if tail(count, expected) < 1e-3:
        return chance
    together = longest(empty[there])
    among = int(np.count_nonzero(there))
    # Upper bound of the expected number of runs of `together` or more empty images, if `count` random images are empty.
    runs = float(among * (count / among) ** together) if count < among else 1.0
    if together >= 5 and runs < 1e-4:
        return f"{together:,} of them follow one another in the order of ids; {runs:.1g} such runs would be expected"
    if not facts.schema:
        # Images that have no detections by chance have few objects; images whose detections were lost have as many
        # objects as other images.
        inside, outside = float(np.median(objects[empty])), float(np.median(objects[others]))
        if inside >= outside > 2 and count >= max(5, 2 * expected):
            return f"{chance}, and they hold as many objects as these, in the median {inside:g} and {outside:g}"
    return ""


def chance_of_none(counts: NDArray[np.int64]) -> float:
    """Return the probability of 0 under a negative binomial distribution fitted to counts that are at least 1.

    Mean and variance of the truncated counts are adjusted iteratively for the zeros.
    """
    if not counts.size:
        return 0.0
    mean, variance = float(counts.mean()), float(counts.var())
    ones = np.count_nonzero(counts == 1) / counts.size
    none = 0.0
    for _ in range(50):  # mean and variance including the estimated share of zeros
        whole = mean * (1 - none)
        spread = (variance + mean**2) * (1 - none) - whole**2
        if spread > whole * (1 + 1e-9):
            size = whole**2 / (spread - whole)
            made = (size / (size + whole)) ** size
        else:
            made = math.exp(-whole)
        if abs(made - none) < 1e-9:
            break
        none = min(made, 0.9)
    # The fit is unreliable for large counts, so the share of images with one detection bounds the probability.
    return min(none, 2.0 * ones + 1.0 / counts.size) if mean > 3 else none


def longest(flags: NDArray[np.bool_]) -> int:
    """Return the length of the longest run of set flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return int((edges[1::2] - edges[::2]).max()) if edges.size else 0


def _capped(facts: Facts, side: Side, detections: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield findings of detections beyond the protocol's limit, and of a limit that many images reach exactly."""
    table = facts.detections
    cells = side.image * table.categories.ids.size + table.categories.codes
    cells = cells[side.image >= 0]
    if cells.size:
        held = np.bincount(cells) if cells.max() < 1 << 24 else np.unique(cells, return_counts=True)[1]
        beyond = int(np.maximum(held - _LOOKED_AT, 0).sum())
        if beyond:
            yield found("beyond_cap", beyond, "detection")
    # Padding and copies fill images up to equal numbers; they have findings of their own.
    counted = np.bincount(side.image[(side.image >= 0) & side.sized & ~side.aside], minlength=detections.size)
    made = limit_of(counted, "detection", 3)
    if made is not None:
        limit, beside = made
        at = counted == limit
        facts.causes.add(("detections", "cap_reached"))
        part = facts.concentrated(at, counted > 0) if beside else None
        if part is not None:
            at &= part.images
        ids = facts.truth.on.images.ids[at][:10].tolist()
        more = f"{limit:,}{beside}" + ("" if part is None else f"; {facts.says_part(part)}")
        yield found("cap_reached", int(at.sum()), "image", records=ids, named="image", more=more)


def limit_of(counts: NDArray[np.int64], unit: str, near: int) -> tuple[int, str] | None:
    """Return the limit of the number of records per image; None if there is no limit. Also describe how many images
    have slightly more or fewer records. The description is empty if no image exceeds the limit.

    If no image exceeds the limit, there must be far more images at the limit than with each of the `near` next smaller
    numbers of records. ``near=1`` suffices if larger numbers are always rarer without a limit.
    """
    most = int(counts.max(initial=0))
    if most < max(near, 2):
        return None
    held = np.bincount(counts)
    below = int(held[most - near : most].max())
    # A limit leaves counts below it unchanged; counts that would exceed it accumulate at the limit.
    if (
        held[most] > 3
        and tail(int(held[most]), 1.5 * below + 1) < 1e-3
        and held[most] >= 0.01 * np.count_nonzero(counts)
    ):
        return most, ""
    for limit in range(LEAST_LIMIT, most - 1):
        beside = int(held[[limit - 2, limit - 1, limit + 1, limit + 2]].max())
        if held[limit] >= max(LEAST_LIMIT, PILE * beside) and tail(int(held[limit]), beside + 1.0) < 1e-6:
            return limit, f"; of one or two more or fewer {unit}s there are at most {many(beside, 'image')}"
    return None
