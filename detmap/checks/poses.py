"""Checks of keypoints: against the keypoints of the object that a detection finds, and against their visibility flags.

If the box of a detection finds an object, the detection's keypoints should lie near the object's keypoints. If the
keypoints lie elsewhere, the cause may be another order of the keypoints, or another origin or unit of their
coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.evidence import Evidence
from detmap.checks.findings import Finding, found
from detmap.checks.inputs import Side
from detmap.checks.parts import INSIDE, TIMES, share
from detmap.checks.rates import FEWEST, Part, rates

Array = NDArray[Any]

#: Maximum distance between a detection's point and the object's point for the points to coincide, as a share of the
#: square root of the object's box area. COCO's keypoint similarity is 0.5 at a distance of 0.06 (eyes) to 0.25 (hips).
NEAR = 0.1

#: Median distance of a pose's points, in the unit of `NEAR`, above which the pose is misplaced. At 0.25 the similarity
#: of each of COCO's keypoints is below 0.51.
FAR = 0.25

#: The order of points is wrong if the detection's point with the same index is far from an object's point, and a point
#: with another index is near. `CLOSER` is the maximum ratio of the smaller to the larger distance.
CLOSER = 0.5

#: Minimum number of labelled points of a pose that is compared.
POINTS = 3

#: Minimum share of defective poses for a defect to be reported for all images. Of poses simulated as in
#: ``tests/planting/poses.py``, 3 of 100 have left and right exchanged, as in the output of real detectors.
EVERYWHERE = 0.25

#: Minimum number of objects whose visibility contradicts their points.
CONTRADICTIONS = 3

#: Maximum number of pairs of points that are compared.
_PAIRS = 4_000_000


class Compared(NamedTuple):
    """The n poses of k points each whose boxes find an object."""

    #: Row of each detection, and index of its object in `Evidence.objects`, shape (n,).
    rows: NDArray[np.int64]
    objects: NDArray[np.int64]
    #: Points of detections and objects, shape (n, k, 2), and mask of the objects' labelled points, shape (n, k).
    own: Array
    true: Array
    labelled: NDArray[np.bool_]
    #: Square root of the area of each object's box, shape (n,).
    side: NDArray[np.float64]

    def distances(self, own: Array) -> NDArray[np.float64]:
        """Return the distance of each point in `own` from the object's point as a share of `side`; NaN if the object's
        point is not labelled.
        """
        apart = np.sqrt(((own - self.true) ** 2).sum(axis=2)) / self.side[:, None]
        return np.where(self.labelled, apart, np.nan)


def check(facts: Facts) -> Iterator[Finding]:
    """Check for points in another order or place than the objects' points, and for visibility flags that contradict
    points.
    """
    if facts.truth.posed is not None and not facts.schema:
        yield from _contradictions(facts.truth)
    if facts.truth.posed is None or facts.found is None or facts.found.posed is None:
        return
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    made = compared(evidence)
    if made is None:
        return
    plain = made.distances(made.own)
    order = permutation(made, plain)
    swapped = np.zeros(made.rows.size, np.bool_)
    if order is not None:
        swapped, decided = _exchanged(made, plain, order)
        said = ", ".join(f"{at + 1} is {to + 1}" for at, to in enumerate(order.tolist()) if at != to)
        yield from _parts(evidence, made, swapped, decided, "keypoints_permuted", f"of the points {said}")
    away = np.nanmedian(plain, axis=1) > FAR
    away &= ~swapped
    cause = _cause(evidence, made, away) if np.count_nonzero(away) >= FEWEST else ""
    yield from _parts(evidence, made, away, ~swapped, "keypoints_misplaced", cause)


def _contradictions(side: Side) -> Iterator[Finding]:
    """Yield a finding of objects with labelled points at the origin, or with points of which none is labelled."""
    assert side.posed is not None
    kind, poses = side.posed
    assert kind.points is not None
    counts, places, flags, _ = kind.points(poses)
    owner = np.repeat(np.arange(counts.size), counts)
    nowhere = (places == 0).all(axis=1)
    at_origin = np.bincount(owner[nowhere & np.isin(flags, (1, 2))], minlength=counts.size) > 0
    drawn = np.bincount(owner[~nowhere], minlength=counts.size) >= POINTS
    bare = drawn & (np.bincount(owner[flags > 0], minlength=counts.size) == 0)
    kinds = (at_origin, "labelled, at 0, 0"), (bare, "drawn, and none of them labelled")
    for which, says in kinds:
        if np.count_nonzero(which) >= CONTRADICTIONS:
            yield found("keypoint_visibility", int(which.sum()), side.unit, more=says, **side.records(which))


def compared(evidence: Evidence) -> Compared | None:
    """Return the poses that find an object with the same number of points; None if there are none."""
    rows, objects = evidence.finders
    (kind, own), (_, true) = evidence.found.posed, evidence.truth.posed  # type: ignore[misc]
    assert kind.points is not None
    (counts, places, _, _), (numbers, points, flags, _) = kind.points(own), kind.points(true)
    if not counts.size or not numbers.size:
        return None
    size = int(np.bincount(numbers).argmax())
    at = evidence.objects[objects]
    good = (counts[rows] == size) & (numbers[at] == size)
    rows, objects, at = rows[good], objects[good], at[good]
    if not size or not rows.size:
        return None
    many = max(_PAIRS // size**2, 1)
    if rows.size > many:
        chosen = np.sort(np.random.default_rng(0).permutation(rows.size)[:many])
        rows, objects, at = rows[chosen], objects[chosen], at[chosen]
    first, begin = np.cumsum(counts) - counts, np.cumsum(numbers) - numbers
    every = np.arange(size)
    labelled = flags[begin[at][:, None] + every] > 0
    full = labelled.sum(axis=1) >= POINTS
    if not full.any():
        return None
    rows, objects, at = rows[full], objects[full], at[full]
    box = evidence.object_box[objects]
    return Compared(
        rows,
        objects,
        places[first[rows][:, None] + every],
        points[begin[at][:, None] + every],
        labelled[full],
        np.sqrt(box[:, 2] * box[:, 3]),
    )


def permutation(made: Compared, plain: Array) -> NDArray[np.int64] | None:
    """Return for each point of an object the index of the detection's point that often lies on it; None if the order is
    the same.

    A point counts if it lies on the object's point, and the detection's point of the same index is more than twice as
    far away.
    """
    apart = np.sqrt(((made.true[:, :, None] - made.own[:, None]) ** 2).sum(axis=3)) / made.side[:, None, None]
    best = apart.argmin(axis=2)
    least = apart.min(axis=2)
    with np.errstate(invalid="ignore"):
        other = made.labelled & (least <= NEAR) & (plain > NEAR) & (least < CLOSER * plain)
    size = plain.shape[1]
    at = np.nonzero(other)[1]
    held = np.bincount(at * size + best[other], minlength=size * size).reshape(size, size)
    out = np.arange(size)
    for one in range(size):
        to = int(held[one].argmax())
        if held[one, to] >= FEWEST and held[:, to].argmax() == one:
            out[one] = to
    if np.unique(out).size < size:  # not a permutation, so keep only exchanged pairs
        out = np.where(out[out] == np.arange(size), out, np.arange(size))
    return None if (out == np.arange(size)).all() else out


def _exchanged(made: Compared, plain: Array, order: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks of the poses whose points mostly fit better in the order `order`, and of the poses with at least two points
    that distinguish the orders.
    """
    moved = order != np.arange(order.size)
    other = made.distances(made.own[:, order])
    with np.errstate(invalid="ignore"):
        matters = moved & made.labelled & (np.maximum(plain, other) > NEAR)
        better = matters & (other < CLOSER * plain)
    many = matters.sum(axis=1)
    return (2 * better.sum(axis=1) > many) & (many >= 2), many >= 2


def _parts(evidence: Evidence, made: Compared, flags: Array, known: Array, code: str, more: str) -> Iterator[Finding]:
    """Yield a finding if many poses, or most poses in a part of the images, are flagged."""
    flags, known = flags & known, np.asarray(known)
    count, total = int(np.count_nonzero(flags)), max(int(np.count_nonzero(known)), 1)
    if count < FEWEST:
        return
    image = evidence.object_image[made.objects]
    images, at = np.unique(image[known], return_inverse=True)
    some = np.bincount(at[flags[known]], minlength=images.size)
    bad = 2 * some >= np.bincount(at)
    chance = rates(bad, np.zeros(bad.size, np.int64), 1)[np.zeros(bad.size, np.int64)]
    part = (
        None if count >= EVERYWHERE * total else evidence.division.unlike(images, bad, chance, repeats=evidence.frames)
    )
    if part is not None and not _stands_out(bad, part):
        part = None
    if part is None and count < EVERYWHERE * total:
        return
    there = flags if part is None else flags & part.images[image]
    of = known if part is None else known & part.images[image]
    words = [] if part is None else [part.says]
    words += [
        f"{share(int(there.sum()), int(of.sum()))} of {int(of.sum()):,} that were compared{' there' if part else ''}"
    ]
    words += [more] if more else []
    rows = np.sort(made.rows[there])
    yield found(code, rows.size, "detection", more="; ".join(words), **evidence.found.records(rows))


def _stands_out(bad: Array, part: Part) -> bool:
    inside = float(bad[part.units].mean())
    outside = float(bad[~part.units].mean()) if (~part.units).any() else 0.0
    return inside >= INSIDE and inside >= TIMES * outside


def _cause(evidence: Evidence, made: Compared, away: NDArray[np.bool_]) -> str:
    """Return in words the change that moves the points of the poses `away` onto their objects' points; "" if none is
    found.
    """
    some = Compared(*(column[away] for column in made))  # type: ignore[arg-type]
    box, sizes = evidence.object_box[some.objects], evidence.found.sizes[some.rows]
    none = np.zeros((len(box), 2))
    corner, middle = box[:, :2], box[:, :2] + box[:, 2:] / 2
    ones = np.ones_like(none)
    # Each entry holds origin and unit of the detections' points, origin and unit of the objects' points, and a
    # description. Points are converted to (x - origin) / unit.
    ways = [
        (none, ones, none, ones, "times {} and {} (x, y)"),
        (middle, ones, middle, ones, "times {} and {} about the middle of the box"),
        (none, ones, corner, ones, "times {} and {}, from the corner of the box on,"),
        (none, ones, corner, box[:, 2:], "times {} and {} times the sides of the box, from its corner on,"),
    ]
    if np.isfinite(sizes).all():
        ways.append((none, ones, none, sizes, "times {} and {} times the sides of the image"))
    best = NEAR, ""
    for own_from, own_by, true_from, true_by, says in ways:
        own = (some.own - own_from[:, None]) / own_by[:, None]
        true = (some.true - true_from[:, None]) / true_by[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(some.labelled[:, :, None] & (own != 0), true / own, np.nan)
        factor = np.nanmedian(ratio, axis=(0, 1))
        undone = some.distances(own * factor * true_by[:, None] + true_from[:, None])
        apart = float(np.nanmedian(undone))
        if apart < best[0]:
            best = apart, says.format(*map(number, factor.tolist())) + " they lie on those of the objects"
    turned = float(np.nanmedian(some.distances(some.own[:, :, ::-1])))
    return "with x and y swapped they lie on those of the objects" if turned < best[0] else best[1]
