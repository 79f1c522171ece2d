"""Check for limits of size that only the detections of a part of the images have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks import limits
from detmap.checks.changes import Array
from detmap.checks.context import Facts
from detmap.checks.coverage import longest
from detmap.checks.data_statistics import number
from detmap.checks.evidence import Evidence
from detmap.checks.findings import Finding, found
from detmap.checks.rates import CHANCE, FLOOR, Part

#: Shares of the images whose most extreme detection is less extreme than each limit that is tested. The limit of a part is
#: found by the next tested limit beyond it; the range from one to the next holds few images.
SHARES = np.arange(0.05, 0.96, 0.05)

#: Assumed share of the part's images with a detection beyond the limit. It is small, because the part should end at such an
#: image.
EXCEEDED = 1e-4

#: Maximum ratio of the share of missed objects in the part to the share elsewhere, among objects within the limit. If boxes
#: are scaled or cut, these objects are missed, too.
WITHIN = 1.5


class Limit(NamedTuple):
    """A limit of size on a part of the images."""

    part: Part
    #: The limit in words, such as "area above 32,400".
    says: str
    #: Rows of the objects of the part beyond the limit.
    rows: NDArray[np.int64]


def check(facts: Facts) -> Iterator[Finding]:
    """Check for a part of the images whose detections have a limit of area, width or height."""
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    made = [one for name in _SIZES for sign in (1, -1) if (one := _limit(facts, evidence, name, sign)) is not None]
    if made:
        one = max(made, key=lambda one: one.rows.size)
        facts.parts.append((one.part.images, None))
        facts.missing(one.rows, len(facts.truth))
        more = f"{one.says} on {facts.says_part(one.part)}"
        yield found("sizes_cut", one.rows.size, "object", more=more, **evidence.truth.records(np.sort(one.rows)))


_SIZES = {
    "area": lambda boxes: boxes[:, 2] * boxes[:, 3],
    "width": lambda boxes: boxes[:, 2],
    "height": lambda boxes: boxes[:, 3],
}


def _limit(facts: Facts, evidence: Evidence, name: str, sign: int) -> Limit | None:
    """Return the limit of the size `name` on a part of the images, a minimum (`sign` 1) or a maximum (-1); None if no part
    has one.
    """
    rows, image = evidence.detections, evidence.found.image[evidence.detections]
    own, true = (_SIZES[name](boxes) ** sign for boxes in (evidence.found.boxes[rows], evidence.object_box))
    least = np.full(evidence.images, np.inf)
    np.minimum.at(least, image, own)
    known = np.flatnonzero(np.isfinite(least))
    tested: set[bytes] = set()
    for value in np.quantile(least[known], SHARES).tolist():
        part = _part(evidence, known, least[known] >= value)
        if part is None or part.images.tobytes() in tested:
            continue
        tested.add(part.images.tobytes())
        there, objects = part.images[image], part.images[evidence.object_image] & ~evidence.aside
        edge = limits.edge_below(own[there], true[objects]) if there.any() and objects.any() else None
        if edge is None or np.count_nonzero(own[~there] < edge) < limits.EXPECTED:
            continue
        within = evidence.seen & (evidence.held > 0) & (true >= edge) & ~evidence.aside
        (missed, total), (rest, others) = (
            (int(np.count_nonzero(which & ~evidence.hit)), int(np.count_nonzero(which)))
            for which in (within & objects, within & ~part.images[evidence.object_image])
        )
        if missed > WITHIN * total * (rest + 1) / (others + 2) + 1:
            continue
        if limits.cut_lines(facts, evidence, limits.sample(rows[there])):
            continue
        word = "below" if sign > 0 else "above"
        return Limit(part, f"{name} {word} {number(edge**sign)}", evidence.objects[objects & (true < edge)])
    return None


def _part(evidence: Evidence, image: Array, bad: Array) -> Part | None:
    """Return the part in which nearly all of the images in `image` are `bad`; None if chance explains it."""
    rate = max(float(bad.mean()), FLOOR)
    if bad.all():
        return None
    needed = math.log(1 / CHANCE) / -math.log(rate)
    division = evidence.division
    runs = any(longest(bad[np.argsort(one.place[image], kind="stable")]) >= needed for one in division.orders)
    if not runs and not any(_whole(one.codes[image], bad, needed) for one in division.groupings):
        return None
    looks = SHARES.size * 2 * len(_SIZES)
    part = division.unlike(image, bad, np.full(bad.size, rate), looks, evidence.frames, EXCEEDED)
    return None if part is None or part.units.all() else part


def _whole(codes: Array, bad: Array, needed: float) -> bool:
    """Return whether all images of some group are bad, and are at least `needed`."""
    some, total = (np.bincount(codes[which & (codes >= 0)]) for which in (~bad, np.ones(bad.size, np.bool_)))
    some = np.pad(some, (0, total.size - some.size))
    return bool(((some == 0) & (total >= needed)).any())
