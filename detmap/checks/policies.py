"""Checks of how objects are drawn, by comparing missed objects with the confident detections on them.

Several objects may be drawn as one, the box may be the whole image, or some edges may be drawn elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks import uneven
from detmap.checks.context import Facts
from detmap.checks.evidence import PAIRS, Evidence
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.inputs import members
from detmap.checks.limits import ROUNDED
from detmap.checks.rates import CHANCE, tail

Array = NDArray[Any]

#: Limits for an object around several detections. At least the share `COVERED` of each detection's area must lie within
#: the object, and the IoU of the object with the box around the detections must be at least `SPANNED`. Along one axis,
#: two detections may overlap by at most the share `APART` of the object's side. Neighbours in a row overlap a little,
#: whereas detections of parts of one object lie on top of each other.
COVERED, SPANNED, APART = 0.8, 0.7, 0.1

#: Minimum number of missed objects around several detections, and minimum share among all missed objects. For a detector
#: on VOC2007, 3 of 4,357 missed objects lie around several detections. These 3 objects are groups that annotators did
#: not divide.
FEWEST, GROUPED = 10, 0.004

#: Limits for a part of the images with groups. Among its images with two confident detections of one category, at least
#: the share `LEAST` must have a group. The share `LEFT` is assumed to have no group, because most pairs of objects are
#: far apart. If the second half of VOC2007 has groups, the share of images with a group is 0.16 in that half, and 0.01
#: in the first half.
LEAST, LEFT = 0.05, 0.8

#: Codes of findings that explain why large objects are missed while their parts are found.
_APART = "cut_boxes", "sizes_cut", "score_gap", "strict_suppression"

#: For objects whose box is the whole image: minimum share of missed objects, and minimum ratio of this share to the share
#: of missed objects among other large objects. Objects are large if they cover at least the share `LARGE` of the image.
#: For VOC2007, a detector misses 15 % of 54 objects whose box is the whole image, and 5 % of the other large objects.
MISSED, MISSED_TIMES, LARGE = 0.3, 3.0, 0.5

#: Minimum IoU of a missed object and a confident detection, for their edges to be compared.
NEAR = 0.1

#: Limits for a part of the images. At least the share `COMPARED` of the missed objects must overlap a confident
#: detection. The quartiles of an edge's offsets may differ by at most `STEADY` of the detection's side; in clean data
#: the quartiles differ by 0.4 to 0.6 for the missed objects of a class. An edge is shared if its median offset is at
#: most `SHARED`, and moved if it is at least `MOVED`.
COMPARED, STEADY, SHARED, MOVED = 0.3, 0.3, 0.1, 0.15

#: Missed objects of a class are drawn alike if their offsets differ by at most `ALIKE` from the offsets of the most
#: typical object. At least `FEWEST_ALIKE` missed objects, and at least the share `SHARE_ALIKE`, must be drawn alike. In
#: clean data the share is at most 0.05.
ALIKE, FEWEST_ALIKE, SHARE_ALIKE = 0.12, 20, 0.1

#: Maximum number of objects of a class among which the most typical one is searched.
_SAMPLE = 800

_EDGES = ("left", "top", "right", "bottom")


def check(facts: Facts) -> Iterator[Finding]:
    """Check for objects that are drawn by another rule than the detections follow."""
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    if not any(facts.caused("detections", code) for code in _APART):
        yield from _groups(facts, evidence)
    if evidence.found.posed is None:
        yield from _anywhere(facts, evidence)


# ------------------------------------------------------------------------------------------------------------------- groups


def _groups(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding of objects around several confident detections that together span them. If most of these objects
    lie in one part of the images, only this part is reported. Only missed objects show whether objects are drawn as
    groups.
    """
    known = evidence.seen & ~evidence.aside & facts.unreported(evidence.object_image, evidence.object_label)
    missed = known & ~evidence.hit
    at = around_several(evidence, np.flatnonzero(missed))
    if at.size < max(FEWEST, GROUPED * np.count_nonzero(missed)) or at.size / evidence.frames < FEWEST:
        return
    at = around_several(evidence, np.flatnonzero(known))
    part = facts.concentrated(*_on_images(evidence, at), LEAST, LEFT)
    if part is not None:
        at = at[part.images[evidence.object_image[at]]]
    more = f"{np.count_nonzero(~evidence.hit[at]):,} of them are not found" + (
        "" if part is None else f"; {facts.says_part(part)}"
    )
    yield _of_objects("grouped_objects", evidence, at, more)


def _on_images(evidence: Evidence, objects: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mask of the images with any of `objects`, and mask of the images with two confident detections of one category,
    because only these can have a group.
    """
    flags, known = np.zeros((2, evidence.images), np.bool_)
    flags[evidence.object_image[objects]] = True
    cells, held = np.unique(evidence.cell_of(evidence.sure), return_counts=True)
    known[cells[held > 1] // max(evidence.classes, 1)] = True
    return flags & known, known


def _of_objects(code: str, evidence: Evidence, objects: Array, more: str) -> Finding:
    """Return a finding of objects; their number is a lower bound if only some of the images were compared."""
    words = "{many}" if evidence.looked_at.all() else AT_LEAST
    rows = np.sort(evidence.objects[objects])
    return found(code, rows.size, "object", more=more, words=words, **evidence.truth.records(rows))


def around_several(evidence: Evidence, objects: Array) -> NDArray[np.int64]:
    """Return the objects in `objects` that enclose at least two confident detections of their category. The detections
    have higher scores than any detection that finds the object, lie side by side, and together span the object.
    """
    cell = evidence.cell_of(evidence.sure)
    order = np.argsort(cell, kind="stable")
    boxes, scores = evidence.found.boxes[evidence.sure[order]], evidence.scores[evidence.sure[order]]
    starts, stops = (np.searchsorted(cell[order], evidence.object_cell[objects], way) for way in ("left", "right"))
    several = (stops - starts > 1) & (np.cumsum(stops - starts) <= PAIRS)
    objects, starts, held = objects[several], starts[several], (stops - starts)[several]
    owner, other = members(starts, held)
    near, far = _corners(boxes[other])
    low, high = _corners(evidence.object_box[objects])
    within = np.maximum(np.minimum(far, high[owner]) - np.maximum(near, low[owner]), 0).prod(axis=1)
    inside = (within >= COVERED * (far - near).prod(axis=1)) & (scores[other] > evidence.matched[1][objects[owner]])
    owner, near, far = owner[inside], near[inside], far[inside]
    ways = (np.minimum, np.maximum, np.maximum, np.minimum)
    ends = [np.full((objects.size, 2), value) for value in (np.inf, -np.inf, -np.inf, np.inf)]
    for way, out, values in zip(ways, ends, (near, far, near, far), strict=True):
        way.at(out, owner, values)
    first, last, latest, earliest = ends
    some = np.flatnonzero(np.isfinite(first[:, 0]))
    first, last, latest, earliest, low, high = (x[some] for x in (first, last, latest, earliest, low, high))
    beside = (latest - earliest >= -APART * (high - low)).any(axis=1)
    both = np.maximum(np.minimum(last, high) - np.maximum(first, low), 0).prod(axis=1)
    spans = both >= SPANNED * ((last - first).prod(axis=1) + (high - low).prod(axis=1) - both)
    return np.asarray(objects[some[beside & spans]])


def _corners(boxes: Array) -> tuple[Array, Array]:
    return boxes[:, :2], boxes[:, :2] + boxes[:, 2:]


# --------------------------------------------------------------------------------------------------------- the whole image


def whole_images(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding of objects whose box is the whole image, if they are missed far more often than other large ones."""
    rows, size = evidence.objects, evidence.truth.sizes[evidence.objects]
    if not np.isfinite(size).all():
        return
    whole = evidence.truth.whole[rows] & evidence.seen
    large = (evidence.object_box[:, 2:].prod(axis=1) >= LARGE * size.prod(axis=1)) & evidence.seen & ~whole
    (count, total), (rest, others) = (
        (int(np.count_nonzero(which & ~evidence.hit)), int(np.count_nonzero(which))) for which in (whole, large)
    )
    rate = (rest + 1) / (others + 2)
    if count < max(FEWEST, MISSED * total, MISSED_TIMES * rate * total):
        return
    if tail(int(count / evidence.frames), MISSED_TIMES / 2 * rate * total / evidence.frames + 1) < CHANCE:
        more = f"{count:,} of them are not found, and of others of at least half of their image {rest:,} of {others:,}"
        evidence.whole_known = True
        yield _of_objects("whole_image_objects", evidence, np.flatnonzero(whole), more)


# ------------------------------------------------------------------------------------------------------------ other extents


class Offsets(NamedTuple):
    """The missed objects that a confident detection of their category overlaps, and the edges of both."""

    #: Indices of the objects.
    objects: NDArray[np.int64]
    #: Differences of left, top, right and bottom edge, object minus detection, as shares of the detection's sides.
    edges: NDArray[np.float64]


def offsets(evidence: Evidence) -> Offsets:
    """Return the offsets of the missed objects from the confident detections that overlap them best."""
    rows, which, best = evidence.pairs
    confident = np.zeros(len(evidence.found), np.bool_)
    confident[evidence.sure] = True
    at = np.flatnonzero((which >= 0) & (best >= NEAR) & confident[rows])
    at = at[~(evidence.hit | evidence.aside)[which[at]]]
    sides = evidence.found.boxes[rows[at], 2:]
    # Leave out squares, and boxes of the minimum width or height, because their edges follow from a rule of the detector.
    at = at[(np.abs(sides[:, 0] - sides[:, 1]) >= ROUNDED) & (sides > evidence.least_sides).all(axis=1)]
    order = at[np.lexsort((-best[at], which[at]))]
    objects, first = np.unique(which[order], return_index=True)
    (near, far), (low, high) = (
        _corners(boxes) for boxes in (evidence.object_box[objects], evidence.found.boxes[rows[order[first]]])
    )
    side = high - low
    return Offsets(objects, np.concatenate([(near - low) / side, (far - high) / side], axis=1))


def policy(evidence: Evidence, which: Array) -> str:
    """Describe how the missed objects of the mask `which` are drawn in comparison with the detections on them. Return ""
    if their edges do not differ consistently, or if detections have keypoints.
    """
    if evidence.found.posed is not None:
        return ""
    made = offsets(evidence)
    edges = made.edges[which[made.objects]]
    if len(edges) < max(FEWEST, COMPARED * np.count_nonzero(which & ~evidence.hit & evidence.seen)):
        return ""
    low, middle, high = np.quantile(edges, [0.25, 0.5, 0.75], axis=0)
    said = differs(middle, np.median(edges[:, 2:] - edges[:, :2], axis=0)) if (high - low <= STEADY).all() else ""
    return said and f"in the median of {len(edges):,} that a confident detection overlaps, they {said}"


def differs(edges: Array, sides: Array) -> str:
    """Describe which edges are shared, and the ratio of the object's side to the detection's side if an edge is moved.

    `sides` holds the ratios of widths and of heights, minus 1. Return "" unless at least two edges are shared and the
    others are moved.
    """
    shared, moved = np.abs(edges) <= SHARED, np.abs(edges) >= MOVED
    if np.count_nonzero(shared) < 2 or not moved.any() or not (shared | moved).all():
        return ""
    kept = [name for name, one in zip(_EDGES, shared.tolist(), strict=True) if one]
    ratios = [
        f"{1 + sides[axis]:.2f} of its {name}"
        for axis, name in enumerate(("width", "height"))
        if moved[axis] or moved[2 + axis]
    ]
    listed = ", ".join(kept[:-1]) + f" and {kept[-1]}"
    return f"share the {listed} edges with the best overlapping one, and have {' and '.join(ratios)}"


def _anywhere(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding per category with many missed objects whose edges have the same offsets from the edges of
    detections.
    """
    if any(code == "drawn_otherwise" for _, code in facts.causes):
        return
    made = offsets(evidence)
    label = evidence.object_label[made.objects]
    label = np.where(facts.unreported(evidence.object_image[made.objects], label), label, evidence.classes)
    for one in np.flatnonzero(
        np.bincount(label, minlength=evidence.classes)[: evidence.classes] >= FEWEST_ALIKE
    ).tolist():
        edges, objects = made.edges[label == one], made.objects[label == one]
        sample = np.random.default_rng(0).permutation(len(edges))[:_SAMPLE]
        apart = np.zeros((sample.size, sample.size))
        for column in edges[sample].T:
            np.maximum(apart, np.abs(column[:, None] - column), out=apart)
        typical = edges[sample[np.count_nonzero(apart <= ALIKE, axis=1).argmax()]]
        alike = (np.abs(edges - typical) <= ALIKE).all(axis=1)
        if np.count_nonzero(alike) / evidence.frames < max(FEWEST_ALIKE, SHARE_ALIKE * len(edges) / evidence.frames):
            continue
        middle = np.median(edges[alike], axis=0)
        said = differs(middle, np.median(edges[alike, 2:] - edges[alike, :2], axis=0))
        sides = uneven.resized(evidence, *evidence.finders) if said and not facts.parts else None
        if sides is not None:
            facts.causes.add(("detections", sides.code))
            yield sides
            return
        if said:
            name = names([str(evidence.truth.on.categories.names[one])])
            more = f"category {name}, of {len(edges):,} that a confident detection overlaps; in the median they {said}"
            yield _of_objects("drawn_otherwise", evidence, objects[alike], more)
