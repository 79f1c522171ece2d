"""Check for objects that a tool made square; the detections on them are longer on one axis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.checks import limits
from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.findings import AT_LEAST, Finding, found
from detmap.checks.parts import share

#: Minimum median ratio of the longer to the shorter side of detections on square objects, for these objects to have
#: been made square. Detections on round objects are nearly square. With edges off by 12 % of the side (standard
#: deviation), and thus a median IoU of 0.7, the median ratio is 1.18. If the objects of VOC2007 are made square, the
#: median ratio is 1.4.
LONGER = 1.25

#: Minimum share of square boxes among a part's objects that do not touch the edges of their image. If this share is
#: reached, objects that touch the edges are considered clipped squares.
MOST = 0.5

#: Minimum IoU of an object and the detection on it. A square and the middle third of this square have an IoU of 1/3.
_NEAR = 0.3

#: Minimum number of detections on square objects.
FEWEST = 10


def check(facts: Facts) -> Iterator[Finding]:
    """Check for square objects, in a part of the images or in all, whose detections are not square."""
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    truth = facts.truth
    if not limits.squares(truth, limits.sample(evidence.objects)):
        return
    if limits.squares(evidence.found, limits.sample(evidence.detections)):
        return
    every = np.arange(len(truth))
    inner = limits.not_at_edges(truth, every) & ~truth.crowd & truth.sized
    square = limits.equal_sides(truth, every) & inner
    held, on = (np.bincount(truth.image[which], minlength=evidence.images) for which in (inner, square))
    part = facts.gathered((2 * on >= held) & (held > 0), held > 0)
    there = (np.ones(evidence.images, np.bool_) if part is None else part.images)[truth.image]
    longer = _longer(evidence, square & there)
    if longer.size < FEWEST or np.median(longer) < LONGER:
        return
    (few, of_all), (usual, of_rest) = (
        (int(np.count_nonzero(square & which)), int(np.count_nonzero(inner & which))) for which in (there, ~there)
    )
    truth.aside |= there & truth.sized if few >= MOST * of_all else square & there
    facts.causes.add(("ground_truth", "square_boxes"))
    more = f"{share(few, of_all)} of {of_all:,} that do not touch the edges of their image"
    more = more if part is None else f"{facts.says_part(part)}; {more} there, elsewhere {share(usual, of_rest)}"
    times = f"the longer side is {np.median(longer):.2g} times the shorter, in the median"
    more += f"; of {longer.size:,} detections on them {times}"
    yield found("square_boxes", few, "object", more=more, words=AT_LEAST, **truth.records(square & there))


def _longer(evidence: Evidence, square: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the ratio of the longer to the shorter side of the best overlapping detection on each square object."""
    rows, which, best = evidence.pairs
    at = np.flatnonzero((which >= 0) & (best >= _NEAR))
    at = at[square[evidence.objects[which[at]]]]
    order = at[np.lexsort((-best[at], which[at]))]
    sides = evidence.found.boxes[rows[order[np.unique(which[order], return_index=True)[1]]], 2:]
    return np.asarray(sides.max(axis=1) / sides.min(axis=1))
