"""Check for parts of objects, such as heads and hands, that are labelled with the category of the whole object."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.checks.changes import Array
from detmap.checks.context import Facts
from detmap.checks.evidence import PAIRS, WITHIN, Evidence
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.inputs import members
from detmap.checks.parts import share
from detmap.checks.rates import CHANCE, tail
from detmap.errors import many

#: Maximum ratio of the area of a part to the area of the enclosing object of its category. Their IoU is then at most
#: 0.25, so that non-maximum suppression keeps detections of both.
SMALL = 0.25

#: Minimum number of missed parts of a category.
FEWEST = 20

#: `FOUND` is the maximum ratio of the number of parts that are found to the number expected from other objects of their
#: category and size. The test against chance assumes a ratio of `USUAL`, which clean data exceed. Objects in front of
#: or behind others are found less often: the ratio is 0.75 for VOC2007 and 0.96 to 1.09 for the scenes of
#: ``tests/planting``. With labelled heads and hands on half of the images of VOC2007, the ratio is 0.18.
FOUND, USUAL = 0.4, 0.6

#: An expected number is derived from at least `OTHERS` other objects of a category and size band. `BANDS` is the number
#: of bands per octave of the square root of the area.
OTHERS, BANDS = 5, 2

#: Minimum number of confident detections that lie within another detection of their category. If fewer detections lie
#: within another, the detector may suppress every enclosed detection.
BOTH = 5


def check(facts: Facts) -> Iterator[Finding]:
    """Check for objects inside far larger objects of their category, if missed more often than their size explains."""
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    known = evidence.seen & (evidence.held > 0) & ~evidence.aside
    inside = within(evidence.object_cell, evidence.object_box) & known
    if np.count_nonzero(inside & ~evidence.hit) < FEWEST:
        return
    expected = _expected(evidence, inside, known & ~inside)
    label = evidence.object_label
    said, chosen = [], np.zeros(inside.size, np.bool_)
    usual = 0.0
    for one in np.flatnonzero(np.bincount(label[inside], minlength=evidence.classes) >= FEWEST).tolist():
        own = inside & (label == one)
        compared = own & ~np.isnan(expected)
        hits, mean = np.count_nonzero(evidence.hit & compared), float(expected[compared].sum())
        few = 1 - tail(int(hits / evidence.frames) + 1, USUAL * mean / evidence.frames)
        if np.count_nonzero(own & ~evidence.hit) < FEWEST or hits > FOUND * mean or few >= CHANCE / evidence.classes:
            continue
        said.append(str(evidence.truth.on.categories.names[one]))
        chosen |= own
        usual += mean
    if not said or not _doubled(evidence):
        return
    missed = np.flatnonzero(chosen & ~evidence.hit)
    usual /= max(int(np.count_nonzero(chosen & ~np.isnan(expected))), 1)
    few, total = int(np.count_nonzero(evidence.hit & chosen)), int(np.count_nonzero(chosen))
    rows = np.sort(evidence.objects[missed])
    facts.truth.aside[rows] = True
    flags, held = (np.zeros(evidence.images, np.bool_) for _ in range(2))
    flags[evidence.object_image[missed]] = held[evidence.object_image] = True
    part = facts.concentrated(flags, held)
    more = (
        f"category {names(said)}, on {many(int(flags.sum()), 'image')}; {share(few, total)} of {total:,} objects so placed "
        f"are found, and {usual:.0%} of others of their category and size"
    )
    more += "" if part is None else f"; {facts.says_part(part)}"
    words = "{many}" if evidence.looked_at.all() else AT_LEAST
    yield found("parts_as_objects", rows.size, "object", more=more, words=words, **evidence.truth.records(rows))


def within(cell: Array, box: Array) -> NDArray[np.bool_]:
    """Mask of the boxes that lie within a far larger box of the same cell (image and category); `cell` is ascending."""
    starts, stops = (np.searchsorted(cell, cell, way) for way in ("left", "right"))
    area = box[:, 2] * box[:, 3]
    several = np.flatnonzero(stops - starts > 1)
    several = several[np.cumsum((stops - starts)[several]) <= PAIRS]
    owner, other = members(starts[several], (stops - starts)[several])
    owner = several[owner]
    small = area[owner] <= SMALL * area[other]
    owner, other = owner[small], other[small]
    near = np.maximum(box[owner, :2], box[other, :2])
    far = np.minimum(box[owner, :2] + box[owner, 2:], box[other, :2] + box[other, 2:])
    out = np.zeros(cell.size, np.bool_)
    out[owner[np.maximum(far - near, 0).prod(axis=1) >= WITHIN * area[owner]]] = True
    return out


def _expected(evidence: Evidence, inside: NDArray[np.bool_], others: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return for each object in `inside` the share of found objects among `others` of the same category and size; NaN
    if there are few others.
    """
    size = np.sqrt(evidence.object_box[:, 2] * evidence.object_box[:, 3])
    band = np.clip(BANDS * np.log2(np.maximum(size, 1)), 0, 31).astype(np.int64)
    key = evidence.object_label * 32 + band
    total, hits = (
        np.bincount(key[which], minlength=32 * max(evidence.classes, 1)) for which in (others, others & evidence.hit)
    )
    rate = np.where(total >= OTHERS, hits / np.maximum(total, 1), np.nan)
    return np.asarray(np.where(inside, rate[key], np.nan))


def _doubled(evidence: Evidence) -> bool:
    """Return whether confident detections lie within other detections of their category, as parts lie within objects."""
    cell = evidence.cell_of(evidence.sure)
    order = np.argsort(cell, kind="stable")
    return int(np.count_nonzero(within(cell[order], evidence.found.boxes[evidence.sure[order]]))) >= BOTH
