"""Checks for single categories that differ from all other categories: detections or labels of the category are missing,
are mixed with detections or labels of another category, or are not suppressed.

A category that is hard to detect is no defect. A hard category misses mainly small objects and has mainly low-scoring
errors, whereas a defect does not depend on object size or score. The checks test for this difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.parts import share
from detmap.checks.rates import CHANCE, tail
from detmap.checks.uneven import BIAS

Array = NDArray[Any]

#: A category is reported if its share of defective records is at least this multiple of the share in the other categories.
#: In 99 of 100 clean scenes of ``tests/planting/scenes.py`` the largest ratio is smaller.
TIMES = 3.0

#: Minimum share of a category's objects that are on images without detections of the category. The largest share of a
#: category is 0.05 for a detector on VOC2007, and 0.25 in 14 clean scenes of ``tests/planting`` (seeds 0 and 1 of each
#: kind).
LOST = 0.3

#: An object is lost if its image has no detections of its category. `EVEN` is the minimum ratio of the shares of lost
#: objects in two groups. Larger objects are compared with smaller objects, because a defect does not depend on size.
#: Objects on images with several objects of the category are compared with single objects, because by chance an image
#: with several objects seldom has no detection.
EVEN = 0.7

#: Minimum share of missed objects among a category's objects on images that have detections of the category. The
#: largest share of a category is 0.62 for a detector on VOC2007, and 0.2 in the scenes of `LOST`.
MISSED = 0.7

#: Minimum share of detections on no object among the best quarter of the confident detections: for one category, and
#: for all categories together.
UNLABELLED, ALONE = 0.06, 0.06

#: Minimum ratio of two shares of detections on no object, for one category and for all categories together: the share
#: in the best quarter of the confident detections, divided by the share in the lower half. Missing labels do not depend
#: on scores. For a detector on VOC2007 the ratio is 0.17 for all categories together, and up to 0.44 for a single
#: category, which is not reported because of other limits.
FLAT, FLAT_ALONE = 0.2, 0.2

#: Minimum ratio of two shares of detections on no object, for one category and for all categories together: the share
#: in the best eighth of the confident detections, divided by the share in the second eighth. Missing labels do not
#: depend on scores. Objects that are hard to detect have more false positives at lower scores: if half of the objects
#: are missed, the ratio is 0.3.
STEADY = 0.5

#: Minimum share of the objects of a category A that are detected as a category B. If B has fewer detections than A has
#: objects, the share of B's detections counts instead.
MIXED = 0.1

#: Share of objects detected as another category, among objects with a high-scoring detection: minimum for a finding, and
#: share expected without a defect. Detectors simulated by ``tests/planting/data.py`` confuse 5 of 100 objects at any
#: score.
WRONG, USUAL = 0.06, 0.05

#: Minimum share of confident detections that overlap a better detection too much (`Evidence.twins`): for one category,
#: and for all categories together. For a detector on VOC2007 the largest share of a category is 0.01, and in the scenes
#: of `LOST` 0.007. For all categories together the share is at most 0.005.
TWINS, ALL_TWINS = 0.08, 0.2

#: Minimum number of records for a finding about a category.
FEWEST = 10


def check(facts: Facts) -> Iterator[Finding]:
    """Check for categories that are not detected, not labelled or mixed with another category, and for categories whose
    duplicate detections were not suppressed.
    """
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    yield from _missed(facts, evidence)
    yield from _lost(facts, evidence)
    # these causes explain high-scoring detections on no object
    if not facts.caused("detections", "piled_scores", "score_gap", "cut_boxes", "uneven_scores"):
        yield from _unlabelled(facts, evidence)
    if not facts.caused("detections", "classes_disagree", "uneven_scores"):
        yield from _mixed(facts, evidence)
    for one in _unsuppressed(facts, evidence):
        facts.causes.add(("detections", one.code))
        yield one
    if (evidence.enlarged >= 1 + BIAS).all(axis=1).any():  # such boxes have a finding of `uneven`
        facts.causes.add(("detections", "biased_boxes"))


def _others(count: Array, total: Array) -> NDArray[np.float64]:
    """Return for each category the rate ``count / total`` of all other categories, with one pseudo-record per outcome."""
    rest, among = count.sum() - count, total.sum() - total
    return np.asarray((rest + 1) / (among + 2))


def _beyond(count: int, total: int, rate: float, looks: int) -> bool:
    """Return whether ``count / total`` is far above the rate of the other categories and not explained by chance."""
    enough = count >= FEWEST and count >= TIMES * rate * total
    return enough and tail(count, 1.5 * rate * total + 1) * max(looks, 1) < CHANCE


def _lost(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings of categories with many lost objects (see `EVEN`) of all sizes."""
    count = evidence.classes
    if count < 2:
        return
    some = np.bincount(evidence.found.image[evidence.found.image >= 0], minlength=evidence.images) > 0
    label = evidence.object_label
    at = np.flatnonzero(some[evidence.object_image] & facts.unreported(evidence.object_image, label))
    label, lost = label[at], evidence.held[at] == 0
    area = evidence.object_box[at, 2] * evidence.object_box[at, 3]
    total, gone = np.bincount(label, minlength=count), np.bincount(label[lost], minlength=count)
    large = np.zeros(at.size, np.bool_)
    for one in np.flatnonzero(gone >= max(FEWEST, 1)).tolist():
        of = label == one
        large[of] = area[of] >= np.median(area[of])
    held = np.unique(evidence.object_cell[at], return_inverse=True, return_counts=True)
    several = held[2][held[1]] > 1
    rate = _others(gone, total)
    for one in np.flatnonzero((gone >= FEWEST) & (total > gone)).tolist():
        if not _beyond(int(gone[one]), int(total[one]), float(rate[one]), count) or gone[one] < LOST * total[one]:
            continue
        of = label == one
        if not (_as_often(lost[of], large[of]) and _as_often(lost[of], several[of])):
            continue  # easy objects (large, or several on an image) are lost less often, which is no defect
        more = (
            f"category {_name(evidence, one)}, {share(int(gone[one]), int(total[one]))} of its objects; of the others "
            f"{share(int(gone.sum() - gone[one]), int(total.sum() - total[one]))}"
        )
        yield _said("rarely_detected", evidence, evidence.object_image[at[lost & (label == one)]], "object", more)


def _as_often(lost: Array, part: Array) -> bool:
    """Return whether records in `part` are lost about as often as the other records (see `EVEN`); True if one group is
    small.
    """
    own, rest = np.count_nonzero(part), np.count_nonzero(~part)
    if min(own, rest) < FEWEST:
        return True
    return bool(np.count_nonzero(lost & part) * rest >= EVEN * np.count_nonzero(lost & ~part) * own)


def _missed(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings of categories with most objects missed on images that have detections of the category."""
    count = evidence.classes
    label = evidence.object_label
    at = np.flatnonzero(evidence.seen & (evidence.held > 0) & facts.unreported(evidence.object_image, label))
    label, missed = label[at], ~evidence.hit[at]
    total, gone = np.bincount(label, minlength=count), np.bincount(label[missed], minlength=count)
    rate = _others(gone, total)
    for one in np.flatnonzero(gone >= FEWEST).tolist() if count > 1 else ():
        if gone[one] >= MISSED * total[one] and _beyond(int(gone[one]), int(total[one]), float(rate[one]), count):
            more = (
                f"category {_name(evidence, one)}, {share(int(gone[one]), int(total[one]))} of its objects on images with "
                f"such detections; of the others {share(int(gone.sum() - gone[one]), int(total.sum() - total[one]))}"
            )
            yield _said("rarely_found", evidence, evidence.object_image[at[missed & (label == one)]], "object", more)


def _unlabelled(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings of categories whose best detections often overlap no object, or one finding of all categories."""
    count = evidence.classes
    image, label = evidence.found.image[evidence.sure], evidence.label[evidence.sure]
    known = facts.unreported(image, label) & evidence.sure_looked_at[image]
    top, low = known & (evidence.sure_rank < 0.25), known & (evidence.sure_rank >= 0.5)
    # Skip categories with a tied score in both the best quarter and the lower half, because the order of tied
    # detections is arbitrary.
    scores = evidence.scores[evidence.sure]
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, label[top], scores[top])
    np.maximum.at(most, label[low], scores[low])
    top, low = (which & (least > most)[label] for which in (top, low))
    total, gone = (np.bincount(label[which], minlength=count) for which in (top, top & evidence.alone))
    below, empty = (np.bincount(label[which], minlength=count) for which in (low, low & evidence.alone))
    every, part = int(gone.sum()), gone.sum() / max(total.sum(), 1)
    flat = FLAT_ALONE * empty.sum() / max(below.sum(), 1)
    spread = (gone >= 0.3 * part * total)[total >= 20]
    if every >= FEWEST and part >= max(ALONE, flat) and spread.all() and _steady(evidence, top):
        bare = np.bincount(evidence.truth.image, minlength=evidence.images) == 0
        there = image[top & evidence.alone]
        more = (
            f"{share(every, int(total.sum()))} of the best quarter of the confident detections; {int(bare[there].sum()):,} "
            f"of them on images without an object"
        )
        yield _said("missing_labels", evidence, there, "detection", more)
        return
    if count < 2:
        return
    rate = _others(gone, total)
    objects = np.bincount(evidence.object_label, minlength=count)
    on_nothing = known & evidence.alone
    for one in np.flatnonzero(gone >= FEWEST).tolist():
        part = gone[one] / total[one]
        # If a category is hard to detect, even its best quarter has low scores. Therefore the number of detections on
        # no object per object of the category is compared with the same ratio for the other categories above the same
        # score.
        usual = np.count_nonzero(on_nothing & (label != one) & (scores >= least[one])) + 1
        if gone[one] * (objects.sum() - objects[one]) < TIMES * usual * objects[one]:
            continue
        if part < UNLABELLED or not _beyond(int(gone[one]), int(total[one]), float(rate[one]), count):
            continue
        if part < FLAT * empty[one] / max(below[one], 1):
            continue
        if not _steady(evidence, top & (label == one)):
            continue
        rest = share(int(gone.sum() - gone[one]), int(total.sum() - total[one]))
        more = (
            f"category {_name(evidence, one)}, {share(int(gone[one]), int(total[one]))} of the best quarter of its "
            f"confident detections; of the other categories {rest}"
        )
        yield _said("rarely_labelled", evidence, image[top & evidence.alone & (label == one)], "detection", more)


def _steady(evidence: Evidence, top: NDArray[np.bool_]) -> bool:
    """Return whether detections in the best eighth lie on no object about as often as the rest of `top` (see `STEADY`)."""
    best = evidence.sure_rank < 0.125
    best, second = evidence.alone[top & best], evidence.alone[top & ~best]
    return not second.size or bool(np.mean(best) >= STEADY * np.mean(second))


def _mixed(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings of categories whose objects are detected as another category with high scores."""
    count = evidence.classes
    if count < 2:
        return
    other, by = evidence.taken_for
    label = evidence.object_label
    some = (by >= 0) & facts.unreported(evidence.object_image, label) & facts.unreported(evidence.object_image, other)
    some &= ~np.isin(label, list(facts.split))
    rank = np.where(by >= 0, evidence.sure_rank[np.maximum(by, 0)] if evidence.sure.size else 1.0, 1.0)
    high, low = some & (rank < 0.5), some & (rank >= 0.5)
    wrong = high & (other != label)
    if np.count_nonzero(wrong) < FEWEST:
        return
    every, among = int(np.count_nonzero(wrong)), int(np.count_nonzero(high))
    beneath = int(np.count_nonzero(low & (other != label))) / max(int(np.count_nonzero(low)), 1)
    found_of = np.bincount(label[high], minlength=count)
    spread = np.bincount(label[wrong], minlength=count) >= 0.3 * every / among * found_of
    often = every >= max(FEWEST, WRONG * among) and tail(every, USUAL * among) < CHANCE
    if often and every / among >= 0.5 * beneath and spread[found_of >= 20].all():
        more = f"of {among:,} objects on which a detection of the better half of its category lies"
        yield _said("wrong_labels", evidence, evidence.object_image[wrong], "object", more)
        return
    pairs, held = np.unique(label[wrong] * count + other[wrong], return_counts=True)
    objects, detections = (np.bincount(codes[high], minlength=count) for codes in (label, other))
    lower = np.bincount(other[low], minlength=count)
    keys = label * count + other
    for pair, many in zip(pairs.tolist(), held.tolist(), strict=True):
        one, taken = divmod(pair, count)
        rest = (held.sum() - many + 1) / (np.count_nonzero(high) + 1)
        least = int(min(objects[one], detections[taken]))
        part = float(many / least)
        if many < FEWEST or part < MIXED or part < TIMES * rest:
            continue
        if tail(many, 1.5 * rest * least + 1) * len(pairs) >= CHANCE:
            continue
        beneath = np.count_nonzero(low & (keys == pair)) / max(lower[taken], 1)
        if many / detections[taken] < 0.5 * beneath:
            continue  # the categories are confused mostly at low scores, because they look alike
        more = (
            f"of {objects[one]:,} objects of category {_name(evidence, one)} on which a detection of the better half of its "
            f"category lies, {many:,} are taken for {_name(evidence, taken)}"
        )
        at = np.flatnonzero(wrong & (keys == pair))
        image = evidence.object_image
        known, flags = np.zeros((2, evidence.images), np.bool_)
        known[image[high & (other == taken) & np.isin(label, [one, taken])]] = True
        flags[image[at]] = True
        where = facts.gathered(flags, known)
        if where is not None:  # confusions outside of this part are chance
            at = at[where.images[image[at]]]
            more += f"; {at.size:,} of them on {facts.says_part(where)}"
        yield _said("labels_mixed", evidence, evidence.object_image[at], "object", more)


def _unsuppressed(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings of categories whose confident detections overlap better detections, or one finding of all
    categories.
    """
    count = evidence.classes
    image, label = evidence.found.image[evidence.sure], evidence.label[evidence.sure]
    known = facts.unreported(image, label)
    total = np.bincount(label[known], minlength=count)
    twins = evidence.twins & known
    if np.count_nonzero(twins) < FEWEST:
        return
    some = np.bincount(label[twins], minlength=count)
    if some.sum() >= max(FEWEST, ALL_TWINS * total.sum()) and (some >= 0.5 * ALL_TWINS * total)[total >= 20].all():
        if np.count_nonzero(twins & evidence.twins_of_size) < ALL_TWINS * total.sum():
            return
        more = f"{share(int(some.sum()), int(total.sum()))} of the confident detections"
        yield _said("unsuppressed", evidence, image[twins], "detection", more)
        return
    rate = _others(some, total)
    for one in np.flatnonzero(some >= FEWEST).tolist():
        if some[one] < TWINS * total[one] or not _beyond(int(some[one]), int(total[one]), float(rate[one]), count):
            continue
        if np.count_nonzero(twins & evidence.twins_of_size & (label == one)) < TWINS * total[one]:
            continue
        rest = share(int(some.sum() - some[one]), int(total.sum() - total[one]))
        more = (
            f"category {_name(evidence, one)}, {share(int(some[one]), int(total[one]))} of its confident detections; of "
            f"the other categories {rest}"
        )
        yield _said("unsuppressed", evidence, image[twins & (label == one)], "detection", more)


def _said(code: str, evidence: Evidence, image: Array, unit: str, more: str) -> Finding:
    """Return the finding about records on the images `image`."""
    shown = evidence.truth.on.images.ids[np.unique(image)][:10].tolist()
    words = "{many}" if evidence.looked_at.all() and evidence.sure_looked_at.all() else AT_LEAST
    return found(code, image.size, unit, records=shown, named="image", more=more, words=words)


def _name(evidence: Evidence, label: int) -> str:
    return names([str(evidence.truth.on.categories.names[label])])
