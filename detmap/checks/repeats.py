"""Checks for records that are repeated on several images, which neither detectors nor annotators produce."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.checks.boxes import marks
from detmap.checks.changes import Array
from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.findings import Finding, found, names
from detmap.checks.image_ids import mix, signatures
from detmap.checks.inputs import Side, best_of
from detmap.checks.rates import CHANCE, tail
from detmap.errors import many

#: Minimum number of images with the same box. Among 40,000 random boxes in whole pixels, of about 10 ** 8 possible
#: boxes, eight pairs are equal; five equal boxes occur once in 10 ** 11 data sets.
FEWEST = 5

#: Among detections with the most frequent box: maximum share of copies from another image, for the box to be reported.
#: If more are copies, the finding of copied detections explains the box.
COPIED = 0.5

#: Weights of x, y, width, height and score in a sum that is rarely equal for different records.
_WEIGHTS = (1.0, 1.618, 2.236, 2.718, 3141.6)

#: Minimum number of detections, equal in all columns including scores, for two images to have the same detections.
SAME = 2

#: Maximum distance in pixels between the edges of a box and of the image for the box to cover the whole image.
_WHOLE = 2.0

#: Number of highest-scoring detections that are searched first for repeated detections: on another image, in one place of
#: many images, or under another category.
_BEST = 20_000

#: Minimum number of images that hold detections of another image in addition to their own. If the other image is the
#: previous (or next) image for at least the share `_BESIDE` of these images, the finding says so.
FEWEST_LEFT, _BESIDE = 3, 0.9

#: Limits for one place at which a category is detected on at least `FEWEST_PLACE` images. A box is in the place if its
#: coordinates agree within `PLACE` pixels, because detected boxes of one object differ slightly between images. Places
#: are searched with bins of `_CELL` pixels. Of random boxes within `AROUND` pixels of a place (four times `PLACE`), one
#: in 256 is in the place. A ratio of up to `_OF_NEAR` is attributed to chance. Boxes with a side below `AROUND` are
#: ignored, because clipping turns boxes beyond a corner of the image into dots in this corner.
FEWEST_PLACE, PLACE, _CELL, AROUND, _OF_NEAR = 12, 3.0, 8.0, 12.0, 1 / 16

#: Minimum share of the detections in one place that find no object, and minimum IoU with an object to find it. Real
#: objects in a fixed place, such as a table in front of a fixed camera, are labelled. A logo drawn over photographs may
#: lie on an object by chance, but seldom fits it.
ON_NOTHING, _FOUND = 0.9, 0.5

#: Maximum number of places that are reported.
_PLACES = 3

#: For detections that are written again under a second category: minimum number among the best detections of the file,
#: and minimum share of the best detections of one category. If scores are rounded, a box may have equal scores under two
#: categories by chance, but this then happens for all pairs of categories.
FEWEST_TWICE, TWICE = 10, 0.05

#: The probability that a box has equal scores under two categories by chance is estimated from all other pairs of
#: categories. `PRIOR` boxes, one of them with equal scores, are added to the boxes of the other pairs. The estimate is
#: thus 1 / `PRIOR` if other pairs have no boxes in common.
PRIOR = 20

#: Several categories may be written again, each under another category (an *alias*). Aliases are left out when the
#: chance of equal scores is estimated. A pair of categories is an alias if at least the share `EVERY` of their common
#: boxes have equal scores, and if these boxes make up at least this share of the best detections of one of the
#: categories. Alternatively, at least `FEWEST_TWICE` of these boxes make up this share on the images with such a box
#: and several detections of the category. Of 675 pairs of detections for VOC2007 with a common box, none has equal
#: scores. A linked group of more than `LINKED` categories and more than half of all holds no aliases: probably all
#: categories of a box have one score.
EVERY, LINKED = 0.9, 2

#: Minimum share of the objects of one category that are also labelled as the other, for detections under both categories
#: to be considered correct. In a ground truth that is expanded by a hierarchy, the share is 1.
MEANT = 0.1

#: To report that all categories of a box have one score on a part of the images: minimum share `EQUAL` of pairs with
#: equal scores in the part, and maximum share `ROUNDED` elsewhere, where rounding makes scores equal. There must be at
#: least `KINDS` pairs of categories, because a single pair means that one category is written twice. Two random
#: detections of the part may have equal scores with a probability of at most `FEW_SCORES`; with a higher probability,
#: there are in effect fewer than ten distinct scores.
EQUAL, ROUNDED, KINDS, FEW_SCORES = 0.9, 0.5, 3, 0.1


def check(facts: Facts) -> Iterator[Finding]:
    """Check for one box on many images, and for images with the detections of another image."""
    for side in facts.sides:
        if len(side) and not side.table.within_unit:
            side.constant = constant(side)
    again: list[Finding] = []
    if facts.found is not None and len(facts.found):
        best = _best(facts.found)
        again += list(_left_over(facts, facts.found, best)) or _stale(facts, facts.found)
        same = facts.found.constant
        if np.count_nonzero(facts.found.aside & same) > COPIED * np.count_nonzero(same):
            facts.found.constant[:] = False
    for side in facts.sides:
        rows = side.constant
        if rows.any():
            images = np.unique(side.image[rows]).size
            box = ", ".join(map(number, side.boxes[np.flatnonzero(rows)[0]].tolist()))
            more = f"x, y, width, height {box}, on {images:,} images"
            yield found("constant_boxes", int(rows.sum()), side.unit, more=more, **side.records(rows))
    yield from again
    if facts.found is not None and len(facts.found):
        if not facts.found.table.within_unit and facts.agreement is not None:
            yield from _in_place(facts, facts.found, best)
        best = best[~facts.found.aside[best]]
        pairs = _pairs(facts.found, best)
        yield from _of_boxes(facts, facts.found, best, pairs[:, ~_of_aliases(facts.found, best, pairs)])
        yield from _twice(facts, facts.found, best, pairs)


def _best(side: Side) -> NDArray[np.int64]:
    """Return the rows of the `_BEST` highest scores, leaving out unknown images, boxes without an area, and boxes that
    are the same on many images.
    """
    scores: Array = side.table.scores  # type: ignore[union-attr]
    rows = best_of(scores, _BEST)
    return rows[(side.image[rows] >= 0) & ~side.constant[rows] & side.sized[rows]]


def constant(side: Side) -> NDArray[np.bool_]:
    """Mask, shape (n,), of the records with the most frequent box; all False if chance explains its frequency.

    Detections must have the same score as well. Objects must be on images that do not follow one another, because an
    object at rest in a video has the same box on consecutive images.
    """
    out = np.zeros(len(side), np.bool_)
    columns = list(side.columns)
    if side.role == "detections":
        columns.append(side.table.scores)  # type: ignore[union-attr]
    rows = np.flatnonzero((side.image >= 0) & ~side.whole & side.sized & ~side.crowd)
    # Equal records have equal sums of their columns; only records whose sum is frequent are compared.
    sums = np.zeros(len(side))
    with np.errstate(over="ignore", invalid="ignore"):
        for column, weight in zip(columns, _WEIGHTS, strict=False):
            sums += column * weight
    sums = sums[rows]
    by_size = np.sort(sums)
    frequent = by_size[FEWEST - 1 :][by_size[FEWEST - 1 :] == by_size[: 1 - FEWEST]]
    rows = rows[np.isin(sums, frequent)] if frequent.size else rows[:0]
    mixed = np.zeros(rows.size, np.uint64)
    for column in columns:
        mixed = mix(mixed ^ (column[rows] + 0.0).view(np.uint64))
    order = np.argsort(mixed, kind="stable")
    ascending = mixed[order]
    edges = np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1], [True]]))
    held = np.diff(edges)
    for at in np.argsort(-held, kind="stable")[:3].tolist():
        if held[at] < FEWEST:
            break
        these = rows[order[edges[at] : edges[at + 1]]]
        images = np.unique(side.image[these])
        apart = images.size if side.role == "detections" else 1 + np.count_nonzero(np.diff(images) > 1)
        if apart >= FEWEST and 3 * apart >= images.size:
            out[these] = True
            break
    return out


def _stale(facts: Facts, side: Side) -> Iterator[Finding]:
    """Yield a finding of images with exactly the detections of an earlier image, unless both have equal objects, too."""
    scores: Array = side.table.scores  # type: ignore[union-attr]
    marks = signatures(side, SAME, (scores + 0.0).view(np.uint64), ~side.constant & (side.image >= 0))
    order = np.argsort(marks, kind="stable")
    order = order[marks[order] > 0]
    again = np.zeros(marks.size, np.bool_)
    again[order[1:]] = marks[order[1:]] == marks[order[:-1]]
    if facts.schema or not again.any():
        own = again
    else:
        objects = signatures(facts.truth, 1)
        same = np.zeros(marks.size, np.bool_)
        same[order[1:]] = objects[order[1:]] == objects[order[:-1]]
        own = again & ~(same & (objects > 0))
    if own.any():
        side.aside |= (side.image >= 0) & own[side.image]
        ids = facts.truth.on.images.ids[own].tolist()
        yield found("same_detections", int(own.sum()), "image", records=ids, named="image")


def _records(side: Side, rows: Array) -> NDArray[np.uint64]:
    """Return a hash of category, box and score of the detections at `rows`."""
    scores: Array = side.table.scores  # type: ignore[union-attr]
    return marks(side.table.categories.codes[rows], *side.columns[:, rows], scores[rows])


def _again(keys: Array, image: Array) -> tuple[Array, Array]:
    """Return the indices of records whose key occurs on an earlier image, and for each of them the first image with this
    key.
    """
    if not keys.size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.lexsort((image, keys))
    new = np.append(True, keys[order[1:]] != keys[order[:-1]])
    first = image[order][np.flatnonzero(new)][np.cumsum(new) - 1]
    later = image[order] > first
    return order[later], first[later]


def _left_over(facts: Facts, side: Side, best: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield a finding of images that hold the detections of another image besides their own."""
    if _again(_records(side, best), side.image[best])[0].size < FEWEST_LEFT:
        return
    rows = np.flatnonzero((side.image >= 0) & ~side.constant)
    keys, image, count = _records(side, rows), side.image[rows], facts.truth.on.images.ids.size
    ways = [(rows[at], of) for at, of in (_again(keys, image), _again(keys, count - 1 - image))]
    ways[1] = ways[1][0], count - 1 - ways[1][1]
    copies, of = ways[0]
    if facts.agreement is not None:  # copies rarely lie on objects, but their originals do
        on = [facts.agreement.share_on_objects(np.intersect1d(one, best)) for one, _ in ways]
        copies, of = ways[on[0] > on[1]]
    if not facts.schema:  # images with equal objects are the same image
        objects = signatures(facts.truth, 1)
        same = (objects[of] == objects[side.image[copies]]) & (objects[of] > 0)
        copies, of = copies[~same], of[~same]
    held = np.bincount(side.image[rows], minlength=count)
    pairs, times = np.unique(side.image[copies] * count + of, return_counts=True)
    pairs = pairs[times >= SAME]
    at = pairs // count
    own = held > np.bincount(side.image[copies], minlength=count)
    if np.unique(at[own[at]]).size < max(FEWEST_LEFT, 0.5 * np.unique(at).size):
        return
    side.aside[copies] = True
    step = pairs % count - at
    beside = [
        f"of the image {way}, by id" for by, way in ((-1, "before"), (1, "after")) if np.mean(step == by) >= _BESIDE
    ]
    flags = np.zeros(count, np.bool_)
    flags[side.image[copies]] = True
    part = facts.concentrated(flags, held > 0)
    more = f"on {many(int(flags.sum()), 'image')}" + (f", {beside[0]}" if beside else "")
    more += "" if part is None else f"; {facts.says_part(part)}"
    yield found("detections_left_over", copies.size, "detection", more=more, **side.records(np.sort(copies)))


def _in_place(facts: Facts, side: Side, best: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield findings of categories that are detected in one place of many images, on no object."""
    assert facts.agreement is not None
    best = best[~side.aside[best] & np.isfinite(side.boxes[best]).all(axis=1)]
    box, size = side.boxes[best], side.sizes[best]
    far = box[:, :2] + box[:, 2:]
    inside = (box[:, :2] > _WHOLE).sum(axis=1) + (far < size - _WHOLE).sum(axis=1) >= 3
    inside &= (box[:, 2:] >= AROUND).all(axis=1)
    best, box = best[inside], box[inside]
    label = side.table.categories.codes[best].astype(np.int64)
    keys = marks(label, *np.floor(box.T / _CELL).clip(-1e9, 1e9).astype(np.int64))
    cells, first, held = np.unique(keys, return_index=True, return_counts=True)
    made = 0
    for at in np.argsort(-held, kind="stable")[: 4 * _PLACES].tolist():
        if held[at] < FEWEST_PLACE / 2 or made == _PLACES:
            return
        middle = np.median(box[keys == cells[at]], axis=0)
        own = label == label[first[at]]
        for _ in range(2):  # the bin may hold only some of the boxes in the place
            away = np.abs(box - middle).max(axis=1)
            middle = np.median(box[own & (away <= PLACE)], axis=0) if (own & (away <= PLACE)).any() else middle
        near = own & (np.abs(box - middle).max(axis=1) <= AROUND)
        here = near & (np.abs(box - middle).max(axis=1) <= PLACE) & ~side.aside[best]
        images = np.unique(side.image[best[here]])
        apart = 1 + np.count_nonzero(np.diff(images) > 1)
        others = np.count_nonzero(near) - np.count_nonzero(here)
        if apart < FEWEST_PLACE or 3 * apart < images.size or tail(apart, _OF_NEAR * others + 1) * cells.size >= CHANCE:
            continue
        overlap = facts.agreement.nearest(side.image[best[here]], box[here]).overlap
        alone = np.mean(overlap < _FOUND)
        if alone < ON_NOTHING:
            continue
        same = (side.table.categories.codes == label[first[at]]) & (side.image >= 0) & ~side.aside
        rows = np.flatnonzero(same)
        rows = rows[np.abs(side.boxes[rows] - middle).max(axis=1) <= PLACE]
        side.aside[rows] = True
        made += 1
        where = ", ".join(number(round(value, 1)) for value in middle.tolist())
        more = (
            f"category {names([_name(facts, side, int(label[first[at]]))])}, x, y, width, height within {PLACE:g} pixels of "
            f"{where}, on {np.unique(side.image[rows]).size:,} images; {alone:.0%} of {np.count_nonzero(here):,} looked at "
            "find no object"
        )
        yield found("detections_in_place", rows.size, "detection", more=more, **side.records(rows))


def _name(facts: Facts, side: Side, code: int) -> str:
    """Return the name of a category of the detections; its id if the ground truth lacks it."""
    own, categories = side.table.categories.ids[code], facts.truth.on.categories
    at = np.flatnonzero(categories.ids == own)
    return str(categories.names[at[0]] if at.size else own)


def _pairs(side: Side, best: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs of rows of `best` with one box in two categories, shape (2, n)."""
    label = side.table.categories.codes
    keys = marks(side.image[best], *side.columns[:, best])
    order = np.argsort(keys, kind="stable")
    pairs = [np.zeros((2, 0), np.int64)]
    for step in range(1, 4):
        same = np.flatnonzero(keys[order[step:]] == keys[order[:-step]])
        if not same.size:
            break
        pairs.append(np.stack([best[order[same]], best[order[same + step]]]))
    one, other = np.concatenate(pairs, axis=1)
    return np.stack([one, other])[:, label[one] != label[other]]


def _of_boxes(facts: Facts, side: Side, best: NDArray[np.int64], pairs: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield a finding of a part of the images in which all categories of a box have one score."""
    one, other = pairs
    scores, label = side.table.scores, side.table.categories.codes  # type: ignore[union-attr]
    equal = scores[one] == scores[other]
    if facts.schema or np.count_nonzero(equal) < FEWEST_TWICE:
        return
    of, image = facts.truth.table.categories.codes, side.image[one]
    if _under_several(facts.truth, np.arange(len(facts.truth)), of).sum() >= MEANT * len(facts.truth):
        return
    count = side.on.images.ids.size
    held, same = (np.bincount(which, minlength=count) for which in (image, image[equal]))
    known = held > 0 if (held > same).any() else np.bincount(side.image[best], minlength=count) > 0
    part = facts.gathered((same > 0) & (same == held), known)
    if part is None:
        return
    inside = part.images[image]
    low, high = np.minimum(label[one], label[other])[inside], np.maximum(label[one], label[other])[inside]
    own, rest = (float(equal[which].mean()) if which.any() else 0.0 for which in (inside, ~inside))
    if own < EQUAL or rest > ROUNDED or np.unique(marks(low, high)).size < KINDS:
        return
    there = np.unique(scores[best[part.images[side.image[best]]]], return_counts=True)[1]
    if np.sum(there**2) > FEW_SCORES * there.sum() ** 2:
        return  # constant or coarse scores have findings of their own
    rows = np.flatnonzero((side.image >= 0) & part.images[side.image] & side.sized & ~side.aside)
    rows = rows[_under_several(side, rows, label[rows], scores[rows])]
    facts.parts.append((part.images, None))
    more = (
        f"{facts.says_part(part)}; of {np.count_nonzero(inside):,} pairs of categories of one box looked at there {own:.0%} "
        f"have one score, elsewhere {rest:.0%}"
    )
    yield found("scores_of_boxes", rows.size, "detection", more=more, **side.records(rows))


def _under_several(side: Side, rows: Array, label: Array, *others: Array) -> NDArray[np.bool_]:
    """Mask of the records at `rows` whose image, box and `others` equal those of a record of another label."""
    keys = marks(side.image[rows], *side.columns[:, rows], *others)
    _, at = np.unique(marks(keys, label), return_index=True)
    distinct, held = np.unique(keys[at], return_counts=True)
    return np.isin(keys, distinct[held > 1])


def _twice(facts: Facts, side: Side, best: NDArray[np.int64], pairs: NDArray[np.int64]) -> Iterator[Finding]:
    """Yield findings of categories whose detections are repeated, with box and score, under another category."""
    one, other = pairs
    if one.size < FEWEST_TWICE:
        return
    count, scores = side.table.categories.ids.size, side.table.scores  # type: ignore[union-attr]
    label = side.table.categories.codes.astype(np.int64)
    equal, held = scores[one] == scores[other], np.bincount(label[best], minlength=count)
    kinds, at = _kinds(side, pairs)
    every, some = np.bincount(at), np.bincount(at[equal], minlength=kinds.size)
    aliases = _aliases(side, best, pairs)
    for kind in np.argsort(-some, kind="stable").tolist():
        a, b = divmod(int(kinds[kind]), count)
        others = np.arange(kinds.size) != kind
        others &= ~(aliases & aliases[kind])
        rate = (some[others].sum() + 1) / (every[others].sum() + PRIOR)
        if some[kind] < max(FEWEST_TWICE, TWICE * min(held[a], held[b])):
            return
        if tail(int(some[kind]), 2 * rate * every[kind] + 1) * kinds.size >= CHANCE:
            continue
        if facts.agreement is None or _meant(facts, side, a, b):
            continue
        rows = one[equal & (at == kind)]
        near = facts.agreement.nearest(side.image[rows], side.boxes[rows])
        on = facts.truth.table.categories.ids[facts.truth.table.categories.codes[near.object[near.overlap >= 0.5]]]
        hits = [int(np.count_nonzero(on == side.table.categories.ids[code])) for code in (a, b)]
        if aliases[kind] and _of_third(kinds[aliases], a, b, on, max(hits), side.table.categories.ids):
            continue
        kept, more_of = (a, b) if hits[0] >= hits[1] else (b, a)
        of_kept, of_more = (np.flatnonzero((label == code) & (side.image >= 0)) for code in (kept, more_of))
        theirs, ours = (marks(side.image[of], *side.columns[:, of], scores[of]) for of in (of_more, of_kept))
        rows = of_more[np.isin(theirs, ours)]
        side.aside[rows] = True
        more = (
            f"of {of_kept.size:,} of category {names([_name(facts, side, kept)])}, under "
            f"{names([_name(facts, side, more_of)])}; of {len(on):,} looked at that lie on an object, {max(hits):,} lie on "
            f"one of the first and {min(hits):,} on one of the second"
        )
        yield found("detections_of_two_classes", rows.size, "detection", more=more, **side.records(rows))


def _written_again(side: Side, best: Array, pairs: Array, kind: Array, kinds: Array) -> NDArray[np.bool_]:
    """Mask of the kinds (pairs of categories) whose `pairs` hold nearly all of the best detections of one of the
    categories. Either all images are compared, or only images with such a pair and several detections of the category
    (see `EVERY`). `kind` is the kind of each pair.
    """
    label, images = side.table.categories.codes.astype(np.int64), side.on.images.ids.size
    count, out = side.table.categories.ids.size, np.zeros(kinds.size, np.bool_)
    held = np.bincount(label[best], minlength=count)
    cells, held_there = np.unique(label[best] * images + side.image[best], return_counts=True)
    ordered = np.where(label[pairs[0]] < label[pairs[1]], pairs, pairs[::-1])
    for rows, of in zip(ordered, np.divmod(kinds, count), strict=True):
        again, row = np.divmod(np.unique(kind * len(side) + rows), max(len(side), 1))
        out |= np.bincount(again, minlength=kinds.size) >= EVERY * held[of]
        places, times = np.unique(again * images + side.image[row], return_counts=True)
        again, image = np.divmod(places, max(images, 1))
        own = held_there[np.searchsorted(cells, of[again] * images + image)]
        several = own > 1
        twins, total = (np.bincount(again[several], of[several], kinds.size) for of in (times, own))
        out |= (twins >= EVERY * total) & (twins >= FEWEST_TWICE)
    return out


def _kinds(side: Side, pairs: Array) -> tuple[Array, Array]:
    """Return the distinct pairs of categories in `pairs`, each as one integer, and the index of each pair among them."""
    label, count = side.table.categories.codes.astype(np.int64), side.table.categories.ids.size
    low, high = np.sort(label[pairs], axis=0)
    kinds, at = np.unique(low * count + high, return_inverse=True)
    return kinds, at


def _of_aliases(side: Side, best: Array, pairs: Array) -> NDArray[np.bool_]:
    """Mask of the pairs of detections whose categories are linked by aliases."""
    return _aliases(side, best, pairs)[_kinds(side, pairs)[1]]


def _aliases(side: Side, best: Array, pairs: Array) -> NDArray[np.bool_]:
    """Mask of the pairs of categories of `pairs` that are linked by aliases (see `EVERY`), unless too many categories are
    linked (see `LINKED`).
    """
    scores: Array = side.table.scores  # type: ignore[union-attr]
    kinds, at = _kinds(side, pairs)
    equal = scores[pairs[0]] == scores[pairs[1]]
    every, some = np.bincount(at, minlength=kinds.size), np.bincount(at[equal], minlength=kinds.size)
    whole = _written_again(side, best, pairs[:, equal], at[equal], kinds)
    whole &= (some >= FEWEST_TWICE) & (some >= EVERY * every)
    held = np.bincount(side.table.categories.codes[best], minlength=side.table.categories.ids.size)
    low, high = np.divmod(kinds, held.size)
    group = np.arange(held.size)  # smallest category linked with each category
    for _ in range(held.size):
        least = np.minimum(group[low[whole]], group[high[whole]])
        before = group.copy()
        np.minimum.at(group, low[whole], least)
        np.minimum.at(group, high[whole], least)
        if (group == before).all():
            break
    linked = np.bincount(group, held > 0, held.size)[group[low]]
    return np.asarray((group[low] == group[high]) & (linked <= max(LINKED, np.count_nonzero(held) / 2)))


def _of_third(aliases: Array, one: int, other: int, on: Array, hits: int, ids: Array) -> bool:
    """Return whether both categories are aliases of a third category, and more than `hits` of their common boxes lie on
    objects of the third. `hits` is the larger number of boxes on objects of one of the two categories, and `on` holds
    the categories of the objects.
    """
    pairs = list(zip(*(column.tolist() for column in np.divmod(aliases, ids.size)), strict=True))
    both = [{sum(pair) - code for pair in pairs if code in pair} for code in (one, other)]
    return any(np.count_nonzero(on == ids[code]) > hits for code in both[0] & both[1])


def _meant(facts: Facts, side: Side, one: int, other: int) -> bool:
    """Return whether objects are labelled under both categories, too, for example in a ground truth expanded by a
    hierarchy.
    """
    codes, ids = facts.truth.table.categories.codes, facts.truth.table.categories.ids
    rows = [np.flatnonzero(ids[codes] == side.table.categories.ids[code]) for code in (one, other)]
    first, second = (marks(facts.truth.image[of], *facts.truth.columns[:, of]) for of in rows)
    both = np.intersect1d(first, second).size
    return bool(both >= MEANT * max(min(first.size, second.size), 1))
