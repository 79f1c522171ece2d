"""Check for images whose objects all have one category, such as the default of an annotation tool, by mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.rates import CHANCE, tail
from detmap.errors import many

Array = NDArray[Any]

#: Share of the confident detections of each category that are used to tell the category of an object: the best ones,
#: because many of the other detections are wrong.
BETTER = 0.5

#: Minimum overlap of two distributions of categories: of the detections on objects of the suspected category, and of the
#: correctly found objects of other categories. For two detectors on VOC2007 the overlap is at most 0.37, because a
#: category is confused with only a few similar ones. The overlap is 0.75 to 0.93 if one to ten of 100 images have a
#: default category.
COVERED = 0.6

#: Minimum number of other categories that are detected on objects of the suspected category, because detectors may
#: confuse one or two categories with it.
OTHERS = 3

#: Limits for images whose objects all have the suspected category although most detections on them have other
#: categories. `FEWEST` is the minimum number of these images. `TIMES` is the minimum ratio of the share of these images
#: to the same share for other categories. For the test against chance, a ratio of `USUAL` is assumed.
FEWEST, TIMES, USUAL = 10, 1.5, 1.2

#: Maximum number of other categories that are named.
_MOST_SAID = 3


def check(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings of images whose objects all have one category, although most detections have other categories."""
    classes, label, image = evidence.classes, evidence.object_label, evidence.object_image
    other, by = evidence.taken_for
    sure = by >= 0
    sure[sure] = evidence.sure_rank[by[sure]] < BETTER
    wrong = sure & (other != label)
    if classes <= OTHERS or np.count_nonzero(wrong) < FEWEST:
        return
    least, most = np.full(evidence.images, classes), np.full(evidence.images, -1)
    np.minimum.at(least, image, label)
    np.maximum.at(most, image, label)
    every, others = (np.bincount(image[which], minlength=evidence.images) for which in (sure, wrong))
    seen = (least == most) & (every > 0)
    mostly = seen & (2 * others >= every)  # some of these images may also have objects of the suspected category
    total, gone = (np.bincount(least[which], minlength=classes) for which in (seen, mostly))
    right, missed = (np.bincount(label[which], minlength=classes) for which in (sure & ~wrong, wrong))
    # If few images have objects of only one other category, the error rate of their objects is used.
    rate = (missed.sum() - missed + 1) / ((missed + right).sum() - missed - right + 2)
    rest = (gone.sum() - gone + rate) / (total.sum() - total + 1)
    for one in np.flatnonzero(gone >= np.maximum(FEWEST, TIMES * rest * total)).tolist():
        usual = USUAL * float(rest[one]) * int(total[one]) / evidence.frames
        if tail(int(gone[one] / evidence.frames), usual + 1) * classes >= CHANCE:
            continue
        images = mostly & (least == one)
        objects = wrong & images[image]
        held = np.bincount(other[objects], minlength=classes)
        if np.count_nonzero(held) < OTHERS or _overlap(held, np.where(np.arange(classes) == one, 0, right)) < COVERED:
            continue
        some = np.zeros(evidence.images, np.bool_)  # detections of low scores on objects of the category count, too
        some[image[(by >= 0) & (other != label)]] = True
        facts.parts += [(some & (least == most) & (least == one), None), (np.ones(evidence.images, np.bool_), one)]
        facts.causes.add(("ground_truth", "default_category"))
        yield _said(facts, evidence, one, images, held, (int(total[one]), int(gone.sum()), int(total.sum())))


def _overlap(one: Array, other: Array) -> float:
    """Return the overlap of two distributions, given as numbers per category: 1 if their shares are equal, else less."""
    return float(np.minimum(one / max(one.sum(), 1), other / max(other.sum(), 1)).sum())


def _said(
    facts: Facts, evidence: Evidence, one: int, images: Array, held: Array, counts: tuple[int, int, int]
) -> Finding:
    """Return the finding of a category, with the number of detections of each other category on its objects."""
    name, *others = (
        names([str(evidence.truth.on.categories.names[at])]) for at in (one, *np.argsort(-held, kind="stable").tolist())
    )
    seen, gone, total = counts
    count = int(np.count_nonzero(images))
    kinds = [f"{other} ({number:,})" for other, number in zip(others, np.sort(held)[::-1].tolist(), strict=True)]
    more = (
        f"category {name}, on {count:,} of {many(seen, 'image')} whose objects are all of it, where at least half of the "
        f"detections on them are others; of such images of other categories {gone - count:,} of {total - seen:,}; the "
        f"detections are of {np.count_nonzero(held)} categories, most often {', '.join(kinds[:_MOST_SAID])}"
    )
    known = np.zeros(evidence.images, np.bool_)
    known[evidence.object_image] = True
    part = facts.concentrated(images, known)
    if part is not None:
        more += f"; {int(np.count_nonzero(images & part.images)):,} of these images are among {part.says}"
    shown = evidence.truth.on.images.ids[images][:10].tolist()
    words = "{many}" if evidence.sure_looked_at.all() else AT_LEAST
    return found("default_category", int(held.sum()), "object", records=shown, named="image", more=more, words=words)
