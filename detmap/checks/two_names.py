"""Check for categories without detections whose objects are detected as another category, as if both were one class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.findings import Finding, found, names
from detmap.checks.labels import plain
from detmap.checks.rates import CHANCE, tail
from detmap.errors import many

#: Minimum share of a category's objects that are detected as one other category. Only confident detections in the
#: better half of their category count. For four renamed classes of VOC2007 the share is 0.68 to 1.
MOSTLY = 0.5

#: Maximum number of categories that the finding lists.
_LISTED = 5


def check(facts: Facts) -> Iterator[Finding]:
    """Check for categories without detections whose objects are detected as another category."""
    evidence = facts.evidence
    if evidence is None or evidence.classes < 2 or not evidence.objects.size or not evidence.detections.size:
        return
    if facts.caused("detections", "classes_disagree", "single_category"):
        return
    pairs = _pairs(evidence)
    if not pairs:
        return
    facts.split |= set(pairs)
    called = evidence.truth.on.categories.names
    pairs = {one: of for one, of in pairs.items() if plain(called[one]) != plain(called[of[0]])}
    if not pairs:
        return  # equal names have a finding of their own
    label, image = evidence.object_label, evidence.object_image
    of = np.isin(label, list(pairs))
    flags, known = np.zeros((2, evidence.images), np.bool_)
    flags[image[of]] = True
    known[image[of | np.isin(label, [one for one, _, _ in pairs.values()])]] = True
    part = facts.gathered(flags, known)
    listed = [
        f"{names([called[a]])} is taken for {names([called[b]])} ({hits:,} of {total:,})"
        for a, (b, hits, total) in pairs.items()
    ]
    said = ", ".join(listed[:_LISTED]) + (f" and {len(listed) - _LISTED:,} more" if len(listed) > _LISTED else "")
    more = f"of objects on which a detection of the better half of its category lies, {said}; "
    more += f"these categories have {many(int(of.sum()), 'object')}"
    if part is not None:
        inside = int(np.count_nonzero(of & part.images[image]))
        more += f", {'all' if inside == of.sum() else f'{inside:,}'} of them on {facts.says_part(part)}"
    ids = evidence.truth.on.categories.ids[sorted(pairs)].tolist()
    yield found("class_of_two_names", len(pairs), "category", records=ids, named="category", more=more)


def _pairs(evidence: Evidence) -> dict[int, tuple[int, int, int]]:
    """Map each category that names the same class as another category to the other category, the number of objects
    detected as the other category, and the number of objects compared.
    """
    count, label = evidence.classes, evidence.object_label
    other, by = evidence.taken_for
    held = np.bincount(evidence.label[evidence.label >= 0], minlength=count)
    alone = (held == 0) & (np.bincount(label, minlength=count) > 0)
    if not alone.any():
        return {}
    rank = evidence.sure_rank[by] if evidence.sure.size else np.zeros(by.size)
    high = (by >= 0) & (rank < 0.5)
    rest = high & ~alone[label]
    wrong = (np.count_nonzero(rest & (other != label)) + 1) / (np.count_nonzero(rest) + 2)
    out = {}
    for one in np.flatnonzero(alone).tolist():
        taken = other[high & (label == one)]
        by_category = np.bincount(taken, minlength=count)
        most = int(by_category.argmax())
        hits = int(by_category[most])
        if hits < MOSTLY * taken.size:
            continue
        # The other category has as many confident detections as objects, so enough hits imply that the other category
        # has objects.
        if tail(hits, 2 * wrong * taken.size + 1) * count < CHANCE:
            out[one] = most, hits, int(taken.size)
    return out
