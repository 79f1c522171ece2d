"""Check for images on which all detections have one category, although they lie on objects of several categories."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.checks.context import Facts
from detmap.checks.findings import Finding, found, names
from detmap.checks.inputs import Side
from detmap.checks.rates import FEWEST
from detmap.data.ids import locate
from detmap.errors import many

#: Minimum IoU at which a detection lies on an object.
_ON = 0.5

#: Minimum share of the detections on objects that lie on an object of another category. Detectors confuse a category in
#: fewer cases. If all detections have the most frequent category of VOC2007, person, the share is 0.6.
OTHERS = 0.3

#: Maximum share of the detections on objects that lie on objects of one category. If the share is larger, this category
#: probably has another name in the labels or in the detections.
ONE = 0.8

#: Minimum number of detections on an image, for equal categories to be evidence.
TWO = 2

#: Minimum share, among a part's images with detections, of images on which all detections have the one category.
ALL = 0.5

#: Among images whose detections have one category: maximum share of images with the most frequent category, for the
#: category to be considered to differ between images. If a detector knew a single category, nearly all images have this
#: category.
OF_ONE = 0.5

#: If the images form no part, only images with at least `SEVERAL` detections count, and at least the share `ANYWHERE` of
#: these must be affected. Eight detections have one category on one of 200 images by chance, if half of all detections
#: have this category.
SEVERAL, ANYWHERE = 8, 0.01


def check(facts: Facts) -> Iterator[Finding]:
    """Check for images whose detections all have one category, either the same on all these images or different ones."""
    side, agreement = facts.found, facts.agreement
    if side is None or agreement is None or side.table.categories.ids.size < 2:
        return
    count = facts.truth.on.images.ids.size
    known = (side.image >= 0) & ~side.aside
    image, codes = side.image[known], side.table.categories.codes[known].astype(np.int64)
    least, most = np.full(count, side.table.categories.ids.size), np.full(count, -1)
    np.minimum.at(least, image, codes)
    np.maximum.at(most, image, codes)
    of_object = locate(facts.truth.table.categories.ids, side.table.categories.ids)[facts.truth.table.categories.codes]
    others = ~facts.truth.crowd & (of_object != least[facts.truth.image])
    mixed = np.zeros(count, np.bool_)
    mixed[facts.truth.image[others]] = True
    held = np.bincount(least[(least == most) & mixed], minlength=1)
    code = int(held.argmax())
    if held.sum() < FEWEST:
        return
    several = held[code] <= OF_ONE * held.sum()
    if held[code] < FEWEST and not several:
        return
    single = (least == most) & ((least == code) | several)
    held = np.bincount(image, minlength=count)
    part = facts.gathered(single & (held >= TWO), held >= TWO)
    if part is None:
        full = held >= SEVERAL
        there = full & single
        enough = np.count_nonzero(there) >= ANYWHERE * np.count_nonzero(full)
        where = f"on {many(int(there.sum()), 'image')}"
    else:
        there = part.images & single
        enough = np.count_nonzero(there) >= ALL * np.count_nonzero(part.images & (held > 0))
        where = facts.says_part(part)
    of = np.flatnonzero(known & there[side.image])
    some = agreement.thinned(of)
    on = _objects(facts, some)
    on = on[on >= 0]
    if not enough or np.count_nonzero(there & mixed) < FEWEST or not on.size:
        return
    differ = int(np.count_nonzero(of_object[on] != least[facts.truth.image[on]]))
    largest = int(np.bincount(facts.truth.table.categories.codes[on]).max())
    if differ < OTHERS * on.size or largest > ONE * on.size:
        return
    looked_at = "" if some.size == of.size else f" of {some.size:,} looked at"
    which = f"one for each image, {np.unique(least[there]).size:,} in all" if several else _name(facts, side, code)
    more = f"{which}; {where}; of {on.size:,}{looked_at} on an object, {differ:,} are on one of another category"
    side.aside[of] = True
    facts.causes.add(("detections", "single_category"))
    facts.parts.append((there, None))
    yield found("single_category", of.size, "detection", more=more, **side.records(of))


def _objects(facts: Facts, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each detection at `rows` the object on which it lies, -1 if there is none."""
    assert facts.agreement is not None
    assert facts.found is not None
    made = facts.agreement.nearest(facts.found.image[rows], facts.found.boxes[rows])
    return np.where(made.overlap >= _ON, made.object, -1)


def _name(facts: Facts, side: Side, code: int) -> str:
    """Return the name of a category of the detections, or its id if the ground truth lacks it."""
    one = side.table.categories.ids[code]
    known = facts.truth.on.categories
    place = int(locate(np.array([one]), known.ids)[0])
    return names([str(known.names[place]) if place >= 0 else str(one)])
