"""Checks for parts of the data (some images, or a category on some images) that differ from the rest by more than
category, size and score explain.

A *response* marks each *unit* (a pair of image and category, or a whole image) as good or bad. The share of bad units
is compared between parts of the images (`Division`), for all categories together and for each category. A part is
described by a common property of its images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks import batches, defaults, exchanges, limits, policies, uneven
from detmap.checks.agreement import Agreement, Gain
from detmap.checks.context import Facts
from detmap.checks.coverage import limit_of, longest
from detmap.checks.evidence import SUPPRESSED, Evidence
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.rates import CHANCE, FEWEST, FLOOR, Part, explained, rates, reaching, tail
from detmap.checks.resized import resized_sides
from detmap.errors import many

Array = NDArray[Any]

#: Minimum share of bad units in a part, and minimum ratio of this share to the share outside of the part. A model's
#: performance varies by less, and a defect in half of a part's records is still found.
INSIDE, TIMES = 0.4, 2.5

#: The minima `INSIDE` and `TIMES` for responses in which a unit is bad if half of its records are bad. Such units are
#: more frequent without a defect: night images with a third of the objects missed, in ``tests/planting/natural.py``,
#: stay below these minima.
HALF_INSIDE, HALF_TIMES = 0.6, 3.0

#: The minimum ratio `TIMES` for the response `_unlabelled_of_sizes`. In ``tests/planting/natural.py``, where a detector
#: finds half of the objects at night, bad images are 4 times as frequent at night without a defect.
SIZES_TIMES = 5.0

#: For each code, minimum share of bad records on a defective image, and on an image halfway between clean and
#: defective. Defective images anywhere in the data are reported if they outnumber halfway images, which differences in
#: difficulty do not explain. In 28 clean scenes of ``tests/planting`` (seeds 0 to 3 of each kind, 19,200 images), 2,
#: 11, 2 and 3 images are defective by these shares, in the order of the codes below, and 9, 349, 17 and 20 are halfway.
#: In 15 of the scenes, the shares of `BEYOND_THRESHOLD` apply to "unsuppressed".
SCATTERED = {
    "unsuppressed_across": (0.8, 0.4),
    "misplaced": (0.85, 0.5),
    "unsuppressed": (0.4, 0.2),
    "relabelled": (0.5, 0.25),
}

#: Minimum share of objects whose IoU with an object of another category is at least `SUPPRESSED`. If this share is
#: reached, two detections of different categories in one place are considered correct.
MEANT = 0.02

#: For a finding about all detections: minimum share of the confident detections that lie in the place of a detection of
#: another category. For a detector on VOC2007 the share is 1/60.
ALL_DOUBLED = 0.25

#: The shares of `SCATTERED` for "unsuppressed" if the threshold of non-maximum suppression can be estimated. Hardly any
#: image without the defect has detections that overlap by more than the threshold.
BEYOND_THRESHOLD = (0.25, 0.1)

#: Minimum share of confident detections on no object, for an image whose objects are missed to be defective. Of 11
#: images with nearly all objects missed in the scenes of `SCATTERED`, one image has this share.
ALONE = 0.25

#: Limits that two shares of an image must both reach: the share of missed objects, and the share of confident
#: detections on no object. At these limits, the image is defective, halfway between clean and defective, or a quarter
#: of the way.
BOTH, BOTH_HALFWAY, BOTH_QUARTER = 0.6, 0.35, 0.1

#: Assumed ratio of the number of images that reach `BOTH` without a defect to the number expected if records were
#: independent. For a weak detector on one class, which misses 24 of 100 objects, the ratio is 11 to 4.
BY_CHANCE = 2.0

#: To report a limit of the number of objects per image: on images that reach the limit, the share of confident
#: detections on no object must be at least this multiple of the share on other images. The main evidence is that many
#: images have the same number of objects.
CUT_OFF = 1.2

#: For a limit of the number of objects per image that holds only in a part of the images. `LIMITS` is the largest
#: tested limit, because larger numbers of objects are rare. `FEW_BEYOND` is the minimum share of all images that exceed
#: the limit. `EXCEEDED` is the assumed share of the part's images that exceed the limit; a small value makes the part
#: end at the first image above the limit. `EXCEEDING` is the maximum share of the part's images that exceed the limit.
#: `REACHED` is the minimum ratio of the share of the part's images at the limit to the share of other images at or
#: above the limit. The ratio is 1 if the limit is the only difference, and smaller if the images of the part have fewer
#: objects for another reason.
LIMITS, FEW_BEYOND, EXCEEDED, EXCEEDING, REACHED = 20, 0.05, 1e-4, 0.01, 0.6

#: Minimum number of categories with nearly the same part, for the part to be reported once, for all categories.
TOGETHER = 3

#: For objects detected as another category: minimum share with the same offset between both category ids, and minimum
#: number of objects.
MAPPED, FEWEST_MAPPED = 0.8, 10

#: Limits for reporting that detections of a part have exchanged categories, such as dogs under cat. At least the share
#: `MOSTLY` of the objects detected as a category must belong to one other category. A detector confuses two
#: categories in fewer than half of its detections. Such categories must explain at least the share `EXPLAINS` of the
#: objects that are detected as another category.
MOSTLY, EXPLAINS = 0.6, 0.5

#: Maximum number of exchanged categories that a finding names.
MOST_SAID = 10

#: Minimum number of an image's records for the shares of `SCATTERED`, `ALONE` and `BOTH`. With fewer records a share is
#: 0, because many images have a single bad record.
RECORDS = 2

#: For boxes cut at lines to explain a part: maximum ratio of the share of missed objects in the part to the share
#: elsewhere. Only objects that no line crosses are counted.
WHOLE = 1.5

#: For boxes cut at lines to explain detections on no object: minimum share of these detections with an edge at a line.
#: By chance the share is small, because only one in a hundred images has a box with an edge at a given coordinate.
CUT_ALONE = 0.5

#: Minimum share of square boxes among a part's detections that do not touch the edges of images, for squares to explain
#: missed objects. The share is 1 if all boxes of a part are squares, and smaller if the estimated part includes other
#: images.
SQUARE = 0.5

#: Minimum share of a part's detections on no object that lie on objects after a change of ids or boxes, for the change
#: to explain the part. If boxes were clipped to another size, a few boxes fit a change of scale by chance.
EXPLAINED = 0.1


#: To report that labels of a part leave out one kind of object, such as small objects, two ratios must be at most this
#: value. The first ratio is the share of this kind among the objects of the part, divided by its share elsewhere. The
#: second ratio compares, within the part, the shares of detections on no object: the share for other kinds, divided by
#: the share for this kind.
LEFT_OUT = 0.5

#: Boxes lie at the border if they are at most `AT_BORDER` pixels from the edge of the image. Boxes are small or large
#: if their area is below or above these quantiles of the areas of objects.
AT_BORDER, SMALL, BIG = 2.0, 0.25, 0.75

#: End of the description of images that form no range or group of images.
_ANYWHERE = " anywhere"

#: Two parts with the same code and category are considered one part if at least this share of the smaller part lies in
#: the other.
ONE_PART = 0.5


class Units(NamedTuple):
    """The units of a response: pairs of image and category, or whole images."""

    #: Image of each unit, and category of each unit.
    image: NDArray[np.int64]
    label: NDArray[np.int64]
    #: Mask of the bad units, and the expected probability of each unit to be bad.
    bad: NDArray[np.bool_]
    chance: NDArray[np.float64]
    #: Number of flagged records in each unit, and number of all records in each unit.
    some: NDArray[np.int64]
    total: NDArray[np.int64]


@dataclass(frozen=True)
class Response:
    """How the flags of units are computed, and the code of the finding if a part differs from the rest."""

    code: str
    #: Name of a counted record.
    unit: str
    #: Computes the units, one for each pair of image and category.
    make: Callable[[Evidence], Units]
    #: Whether an image is bad only if all of its categories are bad; otherwise it is bad if half of its records are.
    every: bool = True
    #: Minimum share of bad units in a part, and minimum ratio of this share to the share outside.
    stands_out: tuple[float, float] = (INSIDE, TIMES)
    #: Whether the ratio in `stands_out` must hold for the shares of flagged records, too.
    of_records: bool = False


# ---------------------------------------------------------------------------------------------------------------- responses


def _cells(evidence: Evidence, where: Array, image: Array, label: Array) -> tuple[Array, Array, Array]:
    """Return image and category of each unit, and the unit of each record selected by `where`."""
    keys = image[where] * max(evidence.classes, 1) + label[where]
    cells, at = np.unique(keys, return_inverse=True)
    return cells // max(evidence.classes, 1), cells % max(evidence.classes, 1), at


def _units(evidence: Evidence, where: Array, image: Array, label: Array, flags: Array, *, every: bool = True) -> Units:
    """Return the units of the records selected by `where`. A unit is bad if all of its flags (without `every`: at least
    half) are set.
    """
    images, labels, at = _cells(evidence, where, image, label)
    total = np.bincount(at, minlength=images.size)
    count = np.bincount(at[flags[where]], minlength=images.size)
    bad = count == total if every else 2 * count >= total
    return Units(images, labels, bad, rates(bad, labels, evidence.classes)[labels], count, total)


def _undetected(evidence: Evidence) -> Units:
    """Return units of objects on images with detections; an object is flagged if no detection on its image has its
    category.
    """
    known = (evidence.found.image >= 0) & ~evidence.found.aside
    some = np.bincount(evidence.found.image[known], minlength=evidence.images) > 0
    where = some[evidence.object_image]
    return _units(evidence, where, evidence.object_image, evidence.object_label, evidence.held == 0)


def _misplaced(evidence: Evidence) -> Units:
    """Return units of objects on images with detections of their category; an object is flagged if no detection finds it."""
    where = evidence.seen & (evidence.held > 0) & ~evidence.aside
    factors = (evidence.object_label, evidence.classes), (evidence.band, 12)
    missed = ~evidence.hit
    made = _units(evidence, where, evidence.object_image, evidence.object_label, missed)
    chance = explained(missed[where], *((codes[where], count) for codes, count in factors))
    at = _cells(evidence, where, evidence.object_image, evidence.object_label)[2]
    whole = np.exp(np.bincount(at, np.log(np.maximum(chance, 1e-9)), made.bad.size))
    return made._replace(chance=np.maximum(whole, made.chance))


def _half_missed(evidence: Evidence) -> Units:
    """Like `_misplaced`, but a unit is bad if half of its objects are missed. Slightly misplaced boxes still find some
    objects.
    """
    where = evidence.seen & (evidence.held > 0) & ~evidence.aside
    return _units(evidence, where, evidence.object_image, evidence.object_label, ~evidence.hit, every=False)


def _unlabelled(evidence: Evidence) -> Units:
    """Return units of the better half of each category's confident detections; a detection is flagged if it lies on no
    object.
    """
    image, label = evidence.found.image[evidence.sure], evidence.label[evidence.sure]
    where = (evidence.sure_rank < 0.5) & evidence.sure_looked_at[image]
    return _units(evidence, where, image, label, evidence.alone)


def _unlabelled_of_sizes(evidence: Evidence) -> Units:
    """Like `_unlabelled`, but detections are ranked within their category and size, because detections of small objects
    have low scores.
    """
    image, label = evidence.found.image[evidence.sure], evidence.label[evidence.sure]
    boxes = evidence.found.boxes[evidence.sure]
    band = np.clip(np.log2(np.maximum(boxes[:, 2] * boxes[:, 3], 1)) / 2, 0, 11).astype(np.int64)
    rank = uneven.ranks(evidence.sure_rank, label * 12 + band)
    return _units(evidence, (rank < 0.5) & evidence.sure_looked_at[image], image, label, evidence.alone, every=False)


def _relabelled(evidence: Evidence) -> Units:
    """Return units of objects; an object is flagged if its best confident detection has another category."""
    label, _ = evidence.taken_for
    where = evidence.sure_looked_at[evidence.object_image]
    wrong = (label >= 0) & (label != evidence.object_label)
    return _units(evidence, where, evidence.object_image, evidence.object_label, wrong, every=False)


def _unsuppressed(evidence: Evidence) -> Units:
    """Return units of confident detections; a detection is flagged if it overlaps a better detection of its category
    too much.
    """
    image, label = evidence.found.image[evidence.sure], evidence.label[evidence.sure]
    return _units(evidence, np.ones(image.size, np.bool_), image, label, evidence.twins, every=False)


def _doubled(evidence: Evidence) -> Units:
    """Return units of confident detections; a detection is flagged if a detection of another category lies in its
    place.
    """
    image, label = evidence.found.image[evidence.sure], evidence.label[evidence.sure]
    across = evidence.between_any[1]
    # Where objects of two categories lie in one place, such as a person and a woman, their detections do as well.
    meant = not across.size or np.mean(across >= SUPPRESSED) >= MEANT
    flags = np.zeros(image.size, np.bool_) if meant else evidence.doubled
    return _units(evidence, np.ones(image.size, np.bool_), image, label, flags, every=False)


#: Codes of missing suppression, which explains why overlaps differ between images.
SUPPRESSION = ("unsuppressed", "unsuppressed_across")

#: The responses in the order in which they run, because findings of a response may explain findings of later responses.
RESPONSES = (
    Response("unsuppressed_across", "detection", _doubled, False, (HALF_INSIDE, HALF_TIMES)),
    Response("relabelled", "object", _relabelled, every=False),
    Response("misplaced", "object", _misplaced),
    Response("misplaced", "object", _half_missed, every=False, stands_out=(HALF_INSIDE, HALF_TIMES)),
    Response("undetected", "object", _undetected),
    Response("unlabelled", "detection", _unlabelled),
    Response("unlabelled", "detection", _unlabelled_of_sizes, False, (INSIDE, SIZES_TIMES), of_records=True),
    Response("unsuppressed", "detection", _unsuppressed, every=False),
)


# -------------------------------------------------------------------------------------------------------------------- parts


def check(facts: Facts) -> Iterator[Finding]:
    """Check for parts with unusually many missed objects, detections on no object, or labels that disagree."""
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    yield from policies.whole_images(evidence)
    yield from defaults.check(facts, evidence)
    yield from _capped(facts, evidence)
    yield from uneven.differing(facts, evidence)
    said: list[_PartFindings] = []
    kinds = True
    for response in RESPONSES:
        if response.code == "unlabelled" and not facts.parts:
            yield from uneven.ranking(facts, evidence)  # if scores do not rank, missing labels cannot be recognised
        if response.code == "unlabelled" and kinds:
            kinds = False
            yield from _of_kinds(facts, evidence)
        units, before = response.make(evidence), len(facts.parts)
        for part, label in _unlike(facts, evidence, response, units):
            facts.parts.append((part.images, label))
            made = _PartFindings(response.code, label, part, list(_said(facts, evidence, response, units, part, label)))
            _add(said, made)
        images = _scattered(facts, evidence, response.code, units)
        if images is not None:
            facts.parts.append((images, None))
            says = f"{many(int(images.sum()), 'image')} anywhere"
            part = Part(images, says, images[units.image])
            said.append(
                _PartFindings(response.code, None, part, list(_said(facts, evidence, response, units, part, None)))
            )
        if response.code == "unsuppressed_across" and not facts.parts:
            yield from _all_doubled(facts, evidence, units)
        if response.code in SUPPRESSION and len(facts.parts) > before:
            facts.causes.add(("detections", response.code))
    for one in said:
        yield from one.findings
    if not facts.parts and facts.agreement is not None and facts.agreement.faint:
        gain = max(facts.agreement.faint, key=lambda one: one.gained.size)
        yield _of_gain(facts, gain, *facts.rows_of(gain))


class _PartFindings(NamedTuple):
    """A part of the images, and the findings about it."""

    code: str
    label: int | None
    part: Part
    findings: list[Finding]


def _add(said: list[_PartFindings], made: _PartFindings) -> None:
    """Add the findings about a part. Of two overlapping parts with the same code and category, only the wider part
    stays. A narrower part stays if its cause is known.
    """
    width = np.count_nonzero(made.part.images)
    for at, one in enumerate(said):
        own, both = np.count_nonzero(one.part.images), np.count_nonzero(one.part.images & made.part.images)
        if (one.code, one.label) == (made.code, made.label) and both >= ONE_PART * min(own, width):
            if width > own and all(finding.code in (one.code, "drawn_otherwise") for finding in one.findings):
                said[at] = made
            return
    said.append(made)


def of_kinds(boxes: Array, sizes: Array, areas: Array) -> dict[str, NDArray[np.bool_]]:
    """Return masks of three kinds of boxes (at the border of the image, small, and large), keyed by a description.

    Boxes are small or large in comparison with `areas`, the areas of all objects. If the size of an image is unknown,
    none of its boxes is at the border.
    """
    x, y, w, h = boxes.T
    near, far = np.minimum(x, y), np.minimum(sizes[:, 0] - x - w, sizes[:, 1] - y - h)
    border = (np.minimum(near, far) <= AT_BORDER) & np.isfinite(far)
    small, big = np.quantile(areas, [SMALL, BIG]).round()
    return {
        f"at most {AT_BORDER:g} pixels from the border of their image": border,
        f"of an area below {small:,.0f}": w * h < small,
        f"of an area above {big:,.0f}": w * h > big,
    }


def _of_kinds(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield the finding of a part whose labels leave out one kind of object (see `of_kinds`), so that detections of this
    kind lie on no object.
    """
    areas = evidence.object_box[:, 2:].prod(axis=1)
    own = of_kinds(evidence.object_box, evidence.truth.sizes[evidence.objects], areas)
    kinds = of_kinds(evidence.found.boxes[evidence.sure], evidence.found.sizes[evidence.sure], areas)
    image, label = evidence.found.image[evidence.sure], evidence.label[evidence.sure]
    response = Response("unlabelled", "detection", _unlabelled)
    made = []
    for says, objects in own.items():
        kind = kinds[says]
        better = uneven.ranks(evidence.sure_rank, label * 2 + kind) < 0.5
        which = kind & better & evidence.sure_looked_at[image]
        units = _units(evidence, which, image, label, evidence.alone)
        units = _chosen(units, facts.unreported(units.image, units.label))
        whole = _by_image(units, True)
        part = evidence.division.unlike(whole.image, whole.bad, whole.chance, len(kinds), evidence.frames)
        if part is None or not _stands_out(whole, part, response):
            continue
        there, on = part.images[evidence.object_image], part.images[image]
        (few, of_all), (usual, of_rest) = (
            (int(np.count_nonzero(objects & inside)), int(np.count_nonzero(inside))) for inside in (there, ~there)
        )
        others = float(np.mean(evidence.alone[~kind & better & on])) if (~kind & better & on).any() else 0.0
        alone = float(np.mean(evidence.alone[which & on]))
        if others <= LEFT_OUT * alone and few * of_rest <= LEFT_OUT * usual * of_all:
            more = f"; of the objects there {share(few, of_all)} are such, elsewhere {share(usual, of_rest)}"
            made.append(((few + 1) / (of_all + 1) * of_rest / (usual + 1), part, units, says, more))
    if made:
        _, part, units, says, more = min(made, key=lambda one: one[0])
        facts.parts.append((part.images, None))
        for finding in _said(facts, evidence, response, units, part, None):
            head, _, tail_of = finding.says.partition(": ")
            yield replace(finding, says=f"{head}: detections {says}, {tail_of}{more}")


def _capped(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding of images that reach a limit of the number of objects. The share of confident detections on no
    object must be larger on these images than on other images.
    """
    objects = np.bincount(evidence.truth.image[~evidence.truth.crowd], minlength=evidence.images)
    made = limit_of(objects, "object", 1)
    if made is not None:
        at = objects == made[0]
        # On images with few objects, a larger share of the confident detections lies on no object.
        own, rest = _alone_on(evidence, at, ~at & (2 * objects >= made[0]))
        if _more(own, rest, CUT_OFF):
            more = (
                f"{made[0]:,}{made[1]}; {share(*own)} of the confident detections there, and {share(*rest)} on others "
                "with at least half as many objects"
            )
            yield _of_limit(facts, evidence, at, more)
            return
    yield from _capped_part(facts, evidence, objects)


def _of_limit(facts: Facts, evidence: Evidence, at: NDArray[np.bool_], more: str) -> Finding:
    """Return the finding of images at a limit of the number of objects."""
    facts.parts.append((at, None))
    shown = evidence.truth.on.images.ids[at].tolist()
    return found("objects_capped", int(at.sum()), "image", records=shown, named="image", more=more)


def _alone_on(evidence: Evidence, *images: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return for each mask of images the number of confident detections on no object, and of all confident detections."""
    image = evidence.found.image[evidence.sure]
    known = evidence.sure_looked_at[image]
    return [
        (int(np.count_nonzero(which & evidence.alone)), int(np.count_nonzero(which)))
        for which in (known & one[image] for one in images)
    ]


def _more(own: tuple[int, int], rest: tuple[int, int], times: float) -> bool:
    """Return whether the first share is significantly more than `times` the second; both are given as count and total."""
    (count, total), usual = own, (rest[0] + 1) / (rest[1] + 2)
    return tail(count, times * total * usual + 1) < CHANCE


def _capped_part(facts: Facts, evidence: Evidence, objects: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield a finding of a limit of the number of objects that holds only in a part of the images. On images at the
    limit, a larger share of confident detections must lie on no object than on images outside of the part with as many
    objects.
    """
    image = np.flatnonzero(objects > 0)
    held = objects[image]
    for limit in _limits_of_parts(evidence, image, held):
        few = held <= limit
        rate = float(few.mean())
        part = evidence.division.unlike(
            image, few, np.full(image.size, rate), LIMITS, repeats=evidence.frames, left=EXCEEDED
        )
        if part is None or part.units.all():
            continue
        over, beyond = np.count_nonzero(part.units & ~few), np.count_nonzero(~part.units & ~few)
        if over > EXCEEDING * np.count_nonzero(part.units):
            continue
        # If labels beyond the limit were dropped, images at the limit are as frequent in the part as images at or above
        # the limit are elsewhere.
        reached, usual = np.mean(held[part.units] == limit), np.mean(held[~part.units] >= limit)
        at = part.images & (objects == limit)
        fewer = (objects > 0) & (objects < limit)
        own, rest, below, others = _alone_on(
            evidence, at, ~part.images & (objects == limit), part.images & fewer, ~part.images & fewer
        )
        # If labels are missing on the other images of the part, too, the limit does not explain the missing labels.
        missing = (below[0] + 1) * (others[1] + 2) / (below[1] + 2) / (others[0] + 1) if below[1] else 1.0
        if reached >= REACHED * usual and _more(own, rest, CUT_OFF * max(missing, 1.0)):
            there, elsewhere = (int(np.count_nonzero(which)) for which in (part.units, ~part.units))
            more = (
                f"{limit:,}; {part.says}: more objects are on {share(int(over), there)} of {many(there, 'image')} there, "
                f"elsewhere on {share(int(beyond), elsewhere)}; {share(*own)} of the confident detections on images at the "
                f"limit, and {share(*rest)} on others with as many objects"
            )
            yield _of_limit(facts, evidence, at, more)
            return


def _limits_of_parts(evidence: Evidence, image: Array, held: Array) -> Iterator[int]:
    """Yield possible limits: numbers of objects, from 1 on, that no image of some range or group exceeds. The range or
    group must be too large for this to be chance. `held` is the number of objects of each image in `image`.
    """
    division = evidence.division
    lists = [held[np.argsort(one.place[image], kind="stable")] for one in division.orders]
    groups = []
    for grouping in division.groupings:
        codes = grouping.codes[image]
        most = np.zeros(len(grouping.names), np.int64)
        np.maximum.at(most, codes[codes >= 0], held[codes >= 0])
        groups.append((most, np.bincount(codes[codes >= 0], minlength=most.size)))
    for limit in range(1, LIMITS + 1):
        rate = max(float(np.mean(held <= limit)), FLOOR)
        if rate > 1 - FEW_BEYOND:
            return
        needed = math.log(1 / CHANCE) / -math.log(rate)
        if any(longest(of <= limit) >= needed for of in lists) or any(
            (count[most <= limit] >= needed).any() for most, count in groups
        ):
            yield limit


def _all_doubled(facts: Facts, evidence: Evidence, units: Units) -> Iterator[Finding]:
    """Yield a finding if many confident detections on all images lie in the place of a detection of another category."""
    count, total = int(units.some.sum()), int(units.total.sum())
    if count >= max(FEWEST_MAPPED, ALL_DOUBLED * total):
        facts.parts.append((np.ones(evidence.images, np.bool_), None))
        shown = evidence.truth.on.images.ids[np.unique(units.image[units.some > 0])].tolist()
        more = f"{share(count, total)} of the confident detections"
        yield found("unsuppressed_across", count, "detection", records=shown, named="image", more=more)


def _unlike(facts: Facts, evidence: Evidence, response: Response, units: Units) -> Iterator[tuple[Part, int | None]]:
    """Yield the parts that differ from the rest and are not yet reported, with their category (None for all)."""
    units = _chosen(units, facts.unreported(units.image, units.label))
    left = np.ones(units.bad.size, np.bool_)
    if response.code != "undetected":  # images without detections have a finding of their own
        whole = _by_image(units, response.every)
        repeats = evidence.frames if response.stands_out != (INSIDE, TIMES) else 1.0
        part = evidence.division.unlike(whole.image, whole.bad, whole.chance, repeats=repeats)
        if part is not None and _stands_out(whole, part, response):
            yield part, None
            left &= ~part.images[units.image]
    if response.code == "unsuppressed_across" or (evidence.classes == 1 and response.code != "undetected"):
        return
    bad = np.bincount(units.label[units.bad & left], minlength=evidence.classes)
    made: list[tuple[Part, int | None]] = []
    if response.code == "undetected":  # categories without detections have a finding of their own
        bad[np.bincount(evidence.label[evidence.detections], minlength=evidence.classes) == 0] = 0
    for label in np.flatnonzero(bad >= FEWEST).tolist():
        own = _chosen(units, (units.label == label) & left)
        # Images of a video are not independent, because an object that is hard to find on one is hard to find on all.
        part = evidence.division.unlike(own.image, own.bad, own.chance, max(evidence.classes, 1), evidence.frames)
        if part is not None and _stands_out(own, part, response):
            made.append((part, label))
    widest = max((part for part, _ in made), key=lambda one: int(one.images.sum()), default=None)
    if widest is not None and len(made) >= TOGETHER and all(_alike(one.images, widest.images) for one, _ in made):
        yield widest._replace(units=widest.images[units.image]), None
        return
    yield from made


def _alike(one: Array, other: Array) -> bool:
    """Return whether part `one` lies almost entirely within part `other`, and covers at least a quarter of it."""
    both = np.count_nonzero(one & other)
    return bool(both >= 0.9 * np.count_nonzero(one) and both >= 0.25 * np.count_nonzero(other))


def _scattered(facts: Facts, evidence: Evidence, code: str, units: Units) -> NDArray[np.bool_] | None:
    """Return a mask of the defective images (see `SCATTERED`); None unless they far outnumber the halfway images.

    If images differ only in difficulty, larger shares of bad records are rarer. A second peak at large shares of bad
    records is therefore a defect.
    """
    if code not in SCATTERED:
        return None
    least, middle = SCATTERED[code]
    if code == "unsuppressed" and evidence.suppressed < SUPPRESSED:
        least, middle = BEYOND_THRESHOLD
    known = facts.unreported(np.arange(evidence.images))
    share_of = _shares(evidence, units)
    bad = known & (share_of >= least)
    halfway = known & (share_of >= middle) & ~bad
    found_among = [(bad, 1.5 * float(halfway.sum()) + 1)]
    if code == "misplaced":  # detections of a defective image must lie on no object, too
        alone = _shares_of(evidence.found.image[evidence.sure], evidence.alone, evidence.images)
        both = np.where(known, np.minimum(share_of, alone), 0.0)
        some, many, most = (float(np.count_nonzero(both >= low)) for low in (BOTH_QUARTER, BOTH_HALFWAY, BOTH))
        # Without a defect, the number of images falls at least geometrically from each limit to the next higher one. In
        # addition, images with few records may reach the limits `BOTH` by chance.
        rarer = (many - most) ** 2 / max(some - many, 1) + 0.5 + BY_CHANCE * _reaching_both(evidence, units)
        found_among = [(bad & (alone >= ALONE), found_among[0][1]), (both >= BOTH, rarer)]
    for which, expected in found_among:
        count = int(which.sum())
        if 2 * count > np.unique(units.image).size:
            return None  # if most images are affected, other checks report the defect
        if tail(math.ceil(count / evidence.frames), expected) < CHANCE:
            return None if code == "relabelled" and not _far_more(units, which) else np.asarray(which)
    return None


def _far_more(units: Units, images: NDArray[np.bool_]) -> bool:
    """Return whether the share of bad records is far larger on these images than on others. If it is not, bad records
    are frequent on all images, and images with few records have a large share by chance.
    """
    (rest, some), (others, total) = (
        np.bincount(images[units.image], column, 2) for column in (units.some, units.total)
    )
    return bool(some * others >= HALF_TIMES * rest * total)


def _reaching_both(evidence: Evidence, units: Units) -> float:
    """Return the expected number of images that reach `BOTH` by chance. Missed objects and confident detections on no
    object are assumed to be independent, with the same probabilities on all images.
    """
    objects = np.bincount(units.image, units.total, evidence.images).astype(np.int64)
    detections = np.bincount(evidence.found.image[evidence.sure], minlength=evidence.images)
    known = (objects >= RECORDS) & (detections >= RECORDS)
    if not known.any():
        return 0.0
    missed = float(units.some.sum() / units.total.sum())
    chances = reaching(BOTH, missed, objects[known]), reaching(BOTH, float(evidence.alone.mean()), detections[known])
    return float((chances[0] * chances[1]).sum())


def _shares(evidence: Evidence, units: Units) -> NDArray[np.float64]:
    """Return the share of bad records of each image, 0 for images with fewer than `RECORDS` records."""
    some, total = (np.bincount(units.image, column, evidence.images) for column in (units.some, units.total))
    return np.asarray(np.where(total >= RECORDS, some / np.maximum(total, 1), 0.0))


def _shares_of(image: Array, flags: Array, count: int) -> NDArray[np.float64]:
    total = np.bincount(image, minlength=count)
    return np.asarray(
        np.where(total >= RECORDS, np.bincount(image[flags], minlength=count) / np.maximum(total, 1), 0.0)
    )


def _chosen(units: Units, which: Array) -> Units:
    image, label, bad, chance, some, total = (column[which] for column in units)
    return Units(image, label, bad, chance, some, total)  # type: ignore[arg-type]


def _by_image(units: Units, every: bool) -> Units:
    """Return one unit per image, which is bad if all of its categories are bad or, without `every`, at least half of
    its records are.
    """
    images, at = np.unique(units.image, return_inverse=True)
    size = images.size
    count, total = (np.bincount(at, column, size).astype(np.int64) for column in (units.some, units.total))
    held = np.bincount(at, minlength=size)
    if every:
        bad = np.bincount(at, units.bad, size) == held
        chance = np.exp(np.bincount(at, np.log(np.maximum(units.chance, 1e-9)), size))
    else:
        bad = 2 * count >= total
        mean = np.bincount(at, units.chance, size) / held
        chance = mean ** np.sqrt(held)
    # Because images differ in difficulty, categories of an image are bad together more often than independent categories.
    share = float(bad.mean()) if size else 0.0
    chance = np.maximum(chance, min(share, 2 * float(np.median(chance)) + FLOOR) if size else 0.0)
    return Units(images, np.zeros(size, np.int64), bad, chance, count, total)


def _stands_out(units: Units, part: Part, response: Response) -> bool:
    """Return whether the share of bad units in a part is far above the share outside of it."""
    inside, outside = units.bad[part.units], units.bad[~part.units]
    share = float(inside.mean())
    rest = float(outside.mean()) if outside.size else 0.0
    least, times = response.stands_out
    if response.of_records:
        some, total = (np.bincount(part.units, column, 2) for column in (units.some, units.total))
        if some[1] * total[0] < times * some[0] * total[1]:
            return False
    return share >= least and share >= times * rest


def _said(
    facts: Facts, evidence: Evidence, response: Response, units: Units, part: Part, label: int | None
) -> Iterator[Finding]:
    """Yield the finding about a part, or the finding of wrong ids or boxes that explains the part."""
    code, policy = response.code, ""
    if response.code == "misplaced":
        lies_elsewhere = list(exchanges.exchanged(evidence, part.images)) if label is None else []
        lies_elsewhere = lies_elsewhere or (list(batches.turned(evidence, part)) if label is None else [])
        if lies_elsewhere:
            yield from lies_elsewhere
            return
        made = _explained(facts, part, label)
        if made is not None:
            yield made
            return
        lines = [] if label is not None else _cut_at(facts, evidence, part)
        if lines:
            yield from _of_lines(facts, evidence, lines)
            return
        square = _squares(facts, evidence, part)
        if square is not None:
            if not facts.caused("detections", square.code):
                facts.causes.add(("detections", square.code))
                yield square
            return
        sides = resized_sides(evidence, part) if label is None else None
        if sides is not None:
            yield sides
            return
        objects = part.images[evidence.object_image]
        within = exchanges.says_within(evidence, part) if label is None else ""
        policy = policies.policy(evidence, objects if label is None else objects & (evidence.object_label == label))
        if within:
            policy = within
        elif policy:
            facts.causes.add(("ground_truth", "drawn_otherwise"))
            code, policy = "drawn_otherwise", f"; {policy}"
    if response.code == "unlabelled":
        lines = limits.cut_lines(facts, evidence, _sample_of(evidence, part))
        alone = evidence.sure[evidence.alone & part.images[evidence.found.image[evidence.sure]]]
        if lines and np.mean(limits.touching(evidence.found, alone, lines)) >= CUT_ALONE:
            yield from _of_lines(facts, evidence, lines)
            return
    if response.code == "relabelled":
        made = _mapped(evidence, part, label)
        if made is not None:
            yield made
            return
    inside = part.images[units.image]
    of = np.ones(inside.size, np.bool_) if label is None else units.label == label
    count, total = int(units.some[inside & of].sum()), int(units.total[inside & of].sum())
    others = int(units.some[~inside & of].sum()), int(units.total[~inside & of].sum())
    called = "" if label is None else f"category {names([_name(evidence, label)])}, "
    elsewhere = f"; elsewhere {share(*others)}" if others[1] else ""
    more = f"{called}{part.says}: {share(count, total)} of {total:,} there{elsewhere}{policy}"
    if code == "relabelled":
        more += (
            (_says_rows(evidence, part) or _says_mapping(evidence, part))
            if label is None
            else _says_other(evidence, part, label)
        )
    shown = evidence.truth.on.images.ids[np.unique(units.image[inside & of & (units.some > 0)])].tolist()
    words = "{many}" if evidence.looked_at.all() and evidence.sure_looked_at.all() else AT_LEAST
    yield found(code, count, response.unit, records=shown, named="image", more=more, words=words)


def share(count: int, total: int) -> str:
    """Return a share as a percentage."""
    part = count / total if total else 0.0
    return f"{part:.0%}" if count in (0, total) or 0.01 <= part <= 0.99 else f"{part:.2%}"


def _name(evidence: Evidence, label: int) -> str:
    return str(evidence.truth.on.categories.names[label])


def _explained(facts: Facts, part: Part, label: int | None) -> Finding | None:
    """Return the finding of wrong ids or boxes that explains why detections of a part lie on no object; None if there
    is no such finding.
    """
    assert facts.agreement is not None
    whole = facts.agreement
    some = Agreement(whole.truth, whole.found, part.images, corrected=whole.corrected)
    for gain in (some.of_images, some.of_boxes):
        if gain is None or gain.role != "detections" or gain.gained.size < EXPLAINED * some.astray.size:
            continue
        more = "; ".join(filter(None, [gain.more, facts.says_part(part)]))
        return _of_gain(facts, gain, np.sort(gain.gained), more)
    return None


def _of_lines(facts: Facts, evidence: Evidence, lines: list[tuple[str, float]]) -> Iterator[Finding]:
    """Yield the finding of boxes that are cut at lines, unless it was yielded before."""
    if not facts.caused("detections", "cut_boxes"):
        facts.causes.add(("detections", "cut_boxes"))
        yield limits.at_lines(facts, evidence.found, lines)


def _sample_of(evidence: Evidence, part: Part) -> Array:
    """Return the rows of a part's detections, or a random sample of them."""
    return limits.sample(evidence.detections[part.images[evidence.found.image[evidence.detections]]])


def _cut_at(facts: Facts, evidence: Evidence, part: Part) -> list[tuple[str, float]]:
    """Return the lines at which boxes of a part are cut. Return an empty list if objects that no line crosses are
    missed more often in the part than elsewhere.
    """
    lines = limits.cut_lines(facts, evidence, _sample_of(evidence, part))
    if not lines:
        return []
    whole = evidence.seen & (evidence.held > 0) & ~limits.crossing(evidence.truth, evidence.objects, lines)
    inside = part.images[evidence.object_image]
    (own, total), rest = (
        (int(np.count_nonzero(which & ~evidence.hit)), int(np.count_nonzero(which)))
        for which in (whole & inside, whole & ~inside)
    )
    return lines if own <= WHOLE * total * (rest[0] + 1) / (rest[1] + 2) + 1 else []


def _squares(facts: Facts, evidence: Evidence, part: Part) -> Finding | None:
    """Return the finding of square boxes if most boxes of a part are square, else None."""
    rows = _sample_of(evidence, part)
    if limits.share_of_squares(evidence.found, rows) < SQUARE:
        return None
    return limits.of_squares(facts, evidence, rows)


def _of_gain(facts: Facts, gain: Gain, rows: Array, more: str) -> Finding:
    """Return the finding of a hypothesis about ids or boxes, with the detections at `rows` that gain by it."""
    assert facts.agreement is not None
    facts.causes.add(("detections", gain.code))
    return found(gain.code, rows.size, "detection", more=more, words=AT_LEAST, **facts.agreement.found.records(rows))


def _mapped(evidence: Evidence, part: Part, label: int | None) -> Finding | None:
    """Return the finding of category ids off by one if this offset explains most objects of a part that are detected as
    another category, else None.
    """
    ids = evidence.truth.table.categories.ids
    other, by = evidence.taken_for
    wrong = part.images[evidence.object_image] & (other >= 0) & (other != evidence.object_label)
    if label is not None or ids.dtype.kind != "i" or np.count_nonzero(wrong) < FEWEST_MAPPED:
        return None
    off = ids[other[wrong]] - ids[evidence.object_label[wrong]]
    for shift in (1, -1):
        if np.mean(off == shift) >= MAPPED:
            rows = np.sort(evidence.sure[by[wrong]])
            more = (
                f"{part.says}; each {'-' if shift > 0 else '+'} 1 is the one that is meant, unless the objects' are off"
            )
            of = evidence.found.records(rows)
            return found("category_ids_shifted", rows.size, "detection", more=more, words=AT_LEAST, **of)
    return None


def _says_mapping(evidence: Evidence, part: Part) -> str:
    """Describe which categories are exchanged in a part (see `mapping`); "" if they explain few of the objects that are
    detected as another category.
    """
    other, _ = evidence.taken_for
    inside = part.images[evidence.object_image] & (other >= 0)
    meant = mapping(other[inside], evidence.object_label[inside], evidence.classes)
    wrong = inside & (other != evidence.object_label)
    if not meant or np.count_nonzero(wrong & np.isin(other, list(meant))) < EXPLAINS * np.count_nonzero(wrong):
        return ""
    said = [
        f"{_name(evidence, one)} on {_name(evidence, of)} ({count:,} of {total:,})"
        for one, (of, count, total) in meant.items()
    ]
    return f"; confident detections lie there: {', '.join(said[:MOST_SAID])}" + (
        f" and {len(said) - MOST_SAID} more" if len(said) > MOST_SAID else ""
    )


def _says_rows(evidence: Evidence, part: Part) -> str:
    """Describe whether objects of a part have the category of the next, or of the previous, row of the file, judged by
    the categories detected on them; "" if not.
    """
    truth, (other, _) = evidence.truth, evidence.taken_for
    wrong = part.images[evidence.object_image] & (other >= 0) & (other != evidence.object_label)
    rows = np.arange(len(truth)) if truth.rows is None else truth.rows
    order = np.argsort(rows, kind="stable")
    codes, own, meant = truth.table.categories.codes[order], rows[evidence.objects[wrong]], other[wrong]
    for step, has, of in ((-1, "next", "row before"), (1, "previous", "row after")):
        place = np.minimum(np.searchsorted(rows[order], own + step), len(truth) - 1)
        right = int(np.count_nonzero((rows[order][place] == own + step) & (codes[place] == meant)))
        if right >= max(FEWEST_MAPPED, MOSTLY * own.size):
            return f"; each has the category of the {has} row: {right:,} of them are taken for that of the {of}"
    return ""


def _says_other(evidence: Evidence, part: Part, label: int) -> str:
    """Describe which other category the objects of `label` in a part are mostly detected as."""
    other, _ = evidence.taken_for
    wrong = part.images[evidence.object_image] & (evidence.object_label == label) & (other >= 0) & (other != label)
    held = np.bincount(other[wrong], minlength=evidence.classes)
    most = int(held.argmax())
    return f"; {held[most]:,} of them for {_name(evidence, most)}"


def mapping(written: Array, true: Array, classes: int) -> dict[int, tuple[int, int, int]]:
    """Find the categories that are mostly detected on objects of one other category.

    Map each such category to the other category, the number of its detections on objects of the other category, and the
    number of its detections on any object. `written` and `true` are the categories of the detections and of their
    objects.
    """
    pairs, held = np.unique(written * classes + true, return_counts=True)
    total = np.bincount(written, minlength=classes)
    out = {}
    for pair, count in zip(pairs.tolist(), held.tolist(), strict=True):
        one, of = divmod(pair, classes)
        if one != of and count >= FEWEST and count >= MOSTLY * total[one]:
            out[one] = of, count, int(total[one])
    return out
