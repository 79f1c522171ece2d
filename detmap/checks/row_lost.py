"""Check for a part in which every image lost one detection, such as the first row or the best detection."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.findings import Finding, found
from detmap.checks.parts import share
from detmap.checks.rates import CHANCE, explained
from detmap.checks.uneven import place_of

#: Assumed share of the part's images without a missed object, because a false positive was lost, or the object has a
#: second detection. In 12 scenes of ``tests/planting/scenes.py`` with this defect, the share is at most 0.05.
LEFT_WITHOUT = 0.15

#: Maximum ratio of the number of images without a missed object to the number expected if missed objects were spread at
#: random over the part's images. In 1,665 ranges of images of 14 clean scenes of ``tests/planting`` (seeds 0 and 1 of
#: each kind), with at least 7 expected images without a missed object, the ratio is at least 0.6. In the scenes of
#: `LEFT_WITHOUT` in which the defect is found, the ratio is at most 0.19.
FEWER = 0.5

#: To report that the best detection is lost: maximum share of the other images whose highest score is below the median
#: highest score of the part. The share is 0.5 by chance, and 0.07 to 0.29 in the scenes of `LEFT_WITHOUT` in which the
#: defect is found.
LOWER = 0.35


def check(facts: Facts) -> Iterator[Finding]:
    """Check for a part in which nearly every image has a missed object, more regularly than by chance."""
    evidence = facts.evidence
    if evidence is None or facts.parts or not evidence.objects.size or not evidence.detections.size:
        return
    if evidence.found.posed is not None or not evidence.looked_at.all():
        return
    missed, image = ~evidence.hit, evidence.object_image
    chance = explained(missed, (evidence.object_label, evidence.classes), (evidence.band, 12))
    held, some = (np.bincount(image[of], minlength=evidence.images) for of in (missed | True, missed))
    there = np.flatnonzero(held > 0)
    bad = some[there] > 0
    usual = 1 - _none(evidence, chance)[there]
    part = evidence.division.unlike(there, bad, usual, repeats=evidence.frames, left=LEFT_WITHOUT)
    if part is None or part.units.all():
        return
    several = part.images & (held > 1)  # with a single object per image, misses cannot be spread evenly
    inside = several[image]
    own, mean = chance * inside, float(np.count_nonzero(missed & inside))
    times = 1.0
    for _ in range(20):  # chances are at most 1
        times *= mean / max(float(np.minimum(times * own, 1).sum()), 1e-9)
    expected = float(_none(evidence, np.minimum(times * own, 1))[several].sum())
    none = int(np.count_nonzero(several & (some == 0)))
    if none > FEWER * expected or _at_most(none, expected / evidence.frames) >= CHANCE:
        return
    facts.parts.append((part.images, None))
    top = np.full(evidence.images, -np.inf)
    np.maximum.at(top, evidence.found.image[evidence.detections], evidence.scores[evidence.detections])
    known = np.isfinite(top)
    tops, rest = top[known & part.images], top[known & ~part.images]
    others = ~part.images & (held > 1)
    elsewhere = share(int(np.count_nonzero(others & (some == 0))), int(np.count_nonzero(others)))
    more = (
        f"{part.says}: of {int(several.sum()):,} with several objects all are found on {none:,}, where {expected:.1f} would "
        f"be expected by the number of those that are not; elsewhere on {elsewhere}"
    )
    if tops.size and rest.size and place_of(tops, rest, False) <= LOWER:
        more += (
            "; their highest scores are lower, as where the best detection is lost: "
            f"median {np.median(tops):.3g}, elsewhere {np.median(rest):.3g}"
        )
    images = part.images & (some > 0)
    shown = evidence.truth.on.images.ids[images].tolist()
    yield found("row_lost", int(images.sum()), "image", records=shown, named="image", more=more)


def _none(evidence: Evidence, chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each image the probability that no object is missed, from the chance of each object to be missed."""
    logs = np.log1p(-np.clip(chance, 0, 1 - 1e-9))
    return np.asarray(np.exp(np.bincount(evidence.object_image, logs, evidence.images)))


def _at_most(count: int, mean: float) -> float:
    """Return the Poisson probability of at most `count` events for an expected number `mean`."""
    return sum(math.exp(at * math.log(max(mean, 1e-9)) - mean - math.lgamma(at + 1)) for at in range(count + 1))
