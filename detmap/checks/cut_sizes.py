"""Check for limits of size that hold only for the detections of a part of the images."""

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

#: Quantiles that are tested as limits, of the most extreme size on each image. The tested limits need not include the
#: exact limit of a part, because few images lie between two tested limits.
SHARES = np.arange(0.05, 0.96, 0.05)

#: Number of limits: a minimum and a maximum for each of three sizes.
SIZES = 6

#: Assumed share of the part's images with a detection beyond the limit. A small value makes the part end at an image
#: with a detection beyond the limit.
EXCEEDED = 1e-4

#: Maximum ratio of the share of missed objects in the part to the share elsewhere, among objects within the limit. If
#: boxes are scaled or cut, objects within the limit are missed, too.
WITHIN = 1.5


class Values(NamedTuple):
    """A size of the detections and of the objects."""

    #: Name of the size in messages.
    name: str
    #: Whether the values are reciprocals, so that the largest sizes come first.
    inverse: bool
    #: Values of the detections, and of the objects.
    own: Array
    true: Array


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
    known = np.flatnonzero(np.bincount(evidence.found.image[evidence.detections], minlength=evidence.images))
    orders = [np.argsort(one.place[known], kind="stable") for one in evidence.division.orders]
    own, true = (
        _sizes(*boxes) for boxes in (evidence.found.columns[2:, evidence.detections], evidence.object_box[:, 2:].T)
    )
    made = []
    for name in own:
        for inverse in (False, True):
            values = Values(name, inverse, *(1 / one[name] if inverse else one[name] for one in (own, true)))
            one = _limit(facts, evidence, values, known, orders)
            made += [] if one is None else [one]
    if made:
        one = max(made, key=lambda one: one.rows.size)
        facts.parts.append((one.part.images, None))
        facts.missing(one.rows, len(facts.truth))
        more = f"{one.says} on {facts.says_part(one.part)}"
        yield found("sizes_cut", one.rows.size, "object", more=more, **evidence.truth.records(np.sort(one.rows)))


def _sizes(width: Array, height: Array) -> dict[str, Array]:
    """Return the sizes that may have a limit, by their names in messages."""
    return {"area": width * height, "width": width, "height": height}


def _limit(
    facts: Facts, evidence: Evidence, values: Values, known: NDArray[np.int64], orders: list[NDArray[np.int64]]
) -> Limit | None:
    """Return the limit of a size on a part of the images: the minimum or, if the values are inverse, the maximum.
    Return None if there is no limit. `known` are the images with detections, and `orders` sort them.
    """
    rows, image = evidence.detections, evidence.found.image[evidence.detections]
    own, true = values.own, values.true
    least = np.full(evidence.images, np.inf)
    np.minimum.at(least, image, own)
    compared = ~limits.apart(evidence)[evidence.objects]
    groups = [_groups(one.codes[known], least[known]) for one in evidence.division.groupings]
    tested: set[bytes] = set()
    for value in np.quantile(least[known], SHARES).tolist():
        bad = least[known] >= value
        whole = max((int(held[low >= value].max(initial=0)) for low, held in groups), default=0)
        part = _part(evidence, known, orders, bad, whole)
        if part is None or part.images.tobytes() in tested:
            continue
        tested.add(part.images.tobytes())
        there, inside = part.images[image], part.images[evidence.object_image]
        objects = inside & compared
        edge = limits.edge_below(own[there], true[objects]) if there.any() and objects.any() else None
        if edge is None or np.count_nonzero(own[~there] < edge) < limits.EXPECTED:
            continue
        within = evidence.seen & (evidence.held > 0) & (true >= edge) & compared
        (missed, total), (rest, others) = (
            (int(np.count_nonzero(which & ~evidence.hit)), int(np.count_nonzero(which)))
            for which in (within & inside, within & ~inside)
        )
        if missed > WITHIN * total * (rest + 1) / (others + 2) + 1:
            continue
        if limits.cut_lines(facts, evidence, limits.sample(rows[there])):
            continue
        says = f"above {number(1 / edge)}" if values.inverse else f"below {number(edge)}"
        return Limit(part, f"{values.name} {says}", evidence.objects[inside & (true < edge)])
    return None


def _part(evidence: Evidence, image: Array, orders: list[NDArray[np.int64]], bad: Array, whole: int) -> Part | None:
    """Return the part in which nearly all of the images in `image` are `bad`; None if chance explains it. `whole` is
    the size of the largest group that consists of bad images only.
    """
    rate, division = max(float(bad.mean()), FLOOR), evidence.division
    if rate == 1:
        return None
    looks = 2 * SHARES.size * SIZES
    # Skip the test if it cannot succeed, because too few bad images follow one another or form a group.
    in_row, in_group = (
        math.log(looks * of / CHANCE) / -math.log(rate) for of in (len(orders) * bad.size, max(division.groups, 1))
    )
    if whole < in_group and not any(longest(bad[order]) >= in_row for order in orders):
        return None
    part = division.unlike(image, bad, np.full(bad.size, rate), looks, evidence.frames, EXCEEDED)
    return None if part is None or part.units.all() else part


def _groups(codes: Array, values: Array) -> tuple[Array, Array]:
    """Return the smallest value, and the number of values, of each group."""
    some = codes >= 0
    held = np.bincount(codes[some])
    low = np.full(held.size, np.inf)
    np.minimum.at(low, codes[some], values[some])
    return low, held
