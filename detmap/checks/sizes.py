"""Checks of object sizes: ranges in which objects are missed, boxes around several objects, and tiny objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks import strays
from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.evidence import HELD, Evidence
from detmap.checks.findings import AT_LEAST, Finding, found
from detmap.checks.parts import share
from detmap.checks.rates import CHANCE, rates, tail
from detmap.errors import many
from detmap.shapes import find

Array = NDArray[Any]

#: Number of size bands per octave of the square root of the area, and maximum number of bands in a range of sizes. Each
#: range is compared with the octaves directly below and above it.
BANDS, WIDEST = 4, 12

#: Minimum number of objects in a range of sizes, and in the octaves below and above it. Half of `FEWEST` is the minimum
#: number of missed boxes around several objects.
FEWEST = 20

#: Maximum ratio of the recall in a range of sizes to the lower recall of the octaves below and above the range. A
#: detector's recall has a single maximum as a function of size, so a dip to a half that chance does not explain is a
#: defect.
DIP = 0.5

#: Minimum ratio of the number of missed boxes around several objects to the number expected from the recall of objects of
#: the same sizes.
TIMES = 2.0

#: Shorter side in pixels below which an object is tiny, and minimum number and minimum share of tiny objects. None of
#: 1,449 objects of COCO and five of 977 objects of LVIS are tiny.
TINY, FEWEST_TINY, SHARE_TINY = 2.0, 10, 0.005


#: Maximum share of strays that detections find. Detectors find real objects more often, even small objects.
STRAY_FOUND = 0.05


def check(facts: Facts) -> Iterator[Finding]:
    """Check for sizes at which objects are missed, for boxes around several objects, and for tiny objects."""
    yield from _tiny(facts)
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    if not facts.caused("detections", "sizes_cut"):
        yield from _missed(evidence)
    yield from _regions(facts, evidence)


def _tiny(facts: Facts) -> Iterator[Finding]:
    """Yield a finding of strays or, without strays, of objects with a side below `TINY` pixels."""
    side = facts.truth
    if facts.schema or side.table.within_unit or facts.caused("ground_truth", "normalised_boxes"):
        return
    if side.table.kinds and all(find(kind).unit != "pixels" for kind in side.table.kinds):
        return
    shorter = side.extents.min(axis=0)
    counted = ", where both end pixels count" if side.inclusive else ""
    made = strays.strays(side)
    if made is not None:
        limit, stray = made
        count, of_found = int(stray.sum()), _found_of(facts, stray)
        if (of_found or 0) <= STRAY_FOUND * count:
            end = limit + strays.beside(limit)
            more = (
                f"a side of at most {limit} pixels{counted}, and of up to {end} pixels only "
                f"{many(int(np.count_nonzero((shorter > limit) & (shorter <= end) & ~side.crowd)), 'object')} more"
            )
            more += "" if of_found is None else f"; {share(of_found, count)} of them are found"
            yield found("stray_objects", count, "object", more=more, **side.records(stray))
            return
    tiny = (shorter > 0) & ~side.crowd & (shorter < TINY)
    if np.count_nonzero(tiny) >= max(FEWEST_TINY, SHARE_TINY * len(side)):
        yield found("tiny_objects", int(tiny.sum()), "object", more=counted[2:], **side.records(tiny))


def _found_of(facts: Facts, stray: Array) -> int | None:
    """Return how many objects of the mask `stray` are found by detections; None if objects and detections cannot be
    compared.
    """
    evidence = facts.evidence
    if evidence is None or not evidence.detections.size:
        return None
    return int(np.count_nonzero(stray[evidence.objects] & evidence.hit))


def _missed(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding of a range of sizes in which recall is far lower than for smaller and for larger objects."""
    area = evidence.object_box[:, 2] * evidence.object_box[:, 3]
    band = np.clip(np.floor(BANDS / 2 * np.log2(np.maximum(area, 1))), 0, 13 * BANDS).astype(np.int64)
    made = dip(
        np.bincount(band[evidence.seen], minlength=14 * BANDS), np.bincount(band[evidence.hit], minlength=14 * BANDS)
    )
    if made is None:
        return
    first, last, rate = made
    inside = (band >= first) & (band < last) & evidence.seen
    missed = np.sort(evidence.objects[inside & ~evidence.hit])
    low, high = (number(round(2 ** (at / BANDS), 1)) for at in (first, last))
    total = int(inside.sum())
    more = (
        f"root of the area {low} to {high}: {share(missed.size, total)} of {total:,}; "
        f"of an octave on the better and on the worse side at most {1 - rate:.0%}"
    )
    words = "{many}" if evidence.looked_at.all() else AT_LEAST
    yield found("sizes_missed", missed.size, "object", more=more, words=words, **evidence.truth.records(missed))


def dip(total: Array, hits: Array) -> tuple[int, int, float] | None:
    """Return start and stop of the bands with the largest dip in recall, and the lower recall beside them; None if
    there is no dip.
    """
    sums, found_of = (np.concatenate([[0], np.cumsum(column)]) for column in (total, hits))
    best: tuple[float, tuple[int, int, float]] | None = None
    looks = total.size * WIDEST
    for first in range(BANDS, total.size - BANDS):
        for last in range(first + 1, min(first + WIDEST, total.size - BANDS) + 1):
            spans = ((first - BANDS, first), (last, last + BANDS), (first, last))
            (few, near), (other, far), (count, own) = (
                (int(sums[b] - sums[a]), int(found_of[b] - found_of[a])) for a, b in spans
            )
            if min(few, other, count) < FEWEST:
                continue
            rate = min(near / few, far / other)
            missed, expected = count - own, count * (1 - rate)
            if own > DIP * rate * count or tail(missed, 1.2 * expected + 1) * looks >= CHANCE:
                continue
            gain = rate * count - own - 0.5 * own  # prefer ranges with many missed and few found objects
            if best is None or gain > best[0]:
                best = gain, (first, last, rate)
    return None if best is None else best[1]


def _regions(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding of boxes around several objects of their category, if these boxes are missed more often than
    sizes explain. Objects of parts with a finding of their own, such as a wrong category, are left out.
    """
    regions = evidence.around & facts.unreported(evidence.object_image, evidence.object_label)
    missed = regions & ~evidence.hit
    count = int(missed.sum())
    rest = evidence.seen & ~evidence.around
    chance = rates(~evidence.hit[rest], evidence.band[rest], 12)[evidence.band]
    expected = float(chance[regions].sum())
    if count >= FEWEST // 2 and count >= TIMES * expected and tail(count, 1.5 * expected + 1) < CHANCE:
        rows = np.sort(evidence.objects[missed])
        more = (
            f"{share(count, int(regions.sum()))} of {many(int(regions.sum()), 'object')} around {HELD} or more; "
            f"by their sizes {number(round(expected, 1))} would be expected"
        )
        yield found("objects_of_many", count, "object", more=more, **evidence.truth.records(rows))
