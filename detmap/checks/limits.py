"""Checks for limits of size, position, number or score beyond which detections are missing, and for grids of
coordinates.

A limit is a value with many detections on one side, no detections on the other side, and objects on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks import crops, strays
from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.evidence import NOTHING, SUPPRESSED, Evidence
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.inputs import Side
from detmap.checks.rates import tail
from detmap.errors import many

Array = NDArray[Any]

#: Minimum expected number of detections beyond a limit for their absence to be reported. The probability of no
#: detection by chance is exp(-14), one in a million.
EXPECTED = 14.0

#: Assumed ratio of detections per object beyond a limit to detections per object next to the limit. Small objects, for
#: example, are found less often.
BEYOND = 0.3

#: Width of the band next to a limit, as a factor; minimum number of detections in the band; minimum ratio of this
#: number to the number in the next band. Without a limit the ratio is smaller, because extreme values are rare.
BAND, FEWEST_NEXT, SHARP = 1.15, 12, 0.5

#: Minimum number of objects beyond a limit.
FEWEST = 10

#: Maximum number of detections per image and category under the protocol coco.
LOOKED_AT = 100

#: Minimum shares: of images with a box edge at the same coordinate, of detections on a grid, of square detections.
ON_A_LINE, ON_A_GRID, SQUARES = 0.01, 0.01, 0.005

#: Minimum ratio of the share of boxes on a grid (such as 16 pixels) to the share on each finer grid that includes it
#: (such as 8 pixels). Of boxes on a grid of 16 pixels, one in 16 lies on the grid of 32 pixels by chance.
FINER = 0.5

#: A coordinate counts as a line, at which boxes are cut, only if it is far more frequent than its third most frequent
#: neighbour. Two neighbours may be lines as well: tiles whose borders overlap give three lines side by side.
BESIDE = 3

#: `MARGIN` is the minimum difference between the IoU of two objects and the largest IoU of two detections. `ONE_OBJECT`
#: is the minimum IoU of two objects that are considered one object labelled twice. Of 2,426 objects of COCO and LVIS,
#: one has this IoU with another object of its category.
MARGIN, ONE_OBJECT = 0.02, 0.85

#: Strict suppression is reported if objects that overlap a found object of their category are missed far more often than
#: others. Let a be the share of these objects without a detection of their own, and b the same share of other objects
#: on an image with a found object. Then (a - b) / (1 - b) must be at least `EXCESS`, and the probability of the excess
#: by chance below `STRICT_BY_CHANCE`. Only objects on an image with a found object count, because objects of a wrong
#: category or with too large a box are missed together. For a detector on VOC2007 the quotient is 0. The quotient is
#: 0.02 if sides below 48 pixels are enlarged, and 0.47 if suppression is set to an IoU of 0.3.
EXCESS, STRICT_BY_CHANCE = 0.15, 0.01

#: Maximum distance from the image's edge, in pixels, of coordinates that may come from clipping.
EDGE = 2.0

#: Maximum number of objects, and of detections, whose coordinates are searched for lines and grids.
SAMPLE = 20_000

#: To report that only detections matched to objects were kept: maximum ratio of the number of detections on no object
#: to the number expected from the scores. It is not 0, because a match at a low threshold may count as on no object.
#: `MATCHED` is also the minimum share of missed objects.
MATCHED = 0.02

#: Difference of width and height, in pixels, below which a box is square: twice the precision of two decimals.
ROUNDED = 0.02

#: Minimum share of detections with exactly the box of the object that they find.
COPIED = 0.05


def check(facts: Facts) -> Iterator[Finding]:
    """Check for limits of size, position and number, for lines and grids of coordinates, and for copied boxes."""
    yield from _objects_beyond(facts)
    evidence = facts.evidence
    if evidence is None or not evidence.objects.size or not evidence.detections.size:
        return
    if facts.caused("detections", "anchor_boxes") and not facts.unreported(np.arange(evidence.images)).any():
        return  # all boxes are of a few sizes
    for one in _sizes(facts, evidence):
        facts.causes.add(("detections", one.code))
        yield one
    for one in _of_cells(evidence):
        facts.causes.add(("detections", one.code))
        yield one
    yield from _score_cuts(evidence)
    yield from _of_labels(evidence)
    yield from _matched(facts, evidence)
    if not facts.caused("detections", "category_cap") and not facts.caused("ground_truth", "square_boxes"):
        for one in _neighbours(evidence):
            facts.causes.add(("detections", one.code))
            yield one
    for one in _coordinates(facts, evidence):
        facts.causes.add(("detections", one.code))
        yield one
    for one in _copied(facts, evidence):
        facts.causes.add(("detections", one.code))
        yield one


# -------------------------------------------------------------------------------------------------------------------- sizes


def _measures(boxes: Array, sizes: Array) -> dict[str, Array]:
    """Return the quantities that may have a limit, by their names in messages."""
    x, y, w, h = np.ascontiguousarray(boxes.T)
    width, height = np.ascontiguousarray(sizes.T)
    out = {"area": w * h, "width": w, "height": h, "width / height": w / h}
    if np.isfinite(sizes).all():
        near, far = np.minimum(x, y), np.minimum(width - x - w, height - y - h)
        out["distance from the image's edge + 1"] = np.maximum(np.minimum(near, far), 0) + 1
        out["x of the centre / width of the image"] = np.clip((x + w / 2) / width, 1e-3, 1)
        out["y of the centre / height of the image"] = np.clip((y + h / 2) / height, 1e-3, 1)
    return out


def edge_below(found: Array, objects: Array) -> float | None:
    """Return the smallest value of detections if objects show that smaller detections were cut off, else None."""
    least = float(found.min())
    beyond = int(np.count_nonzero(objects < 0.98 * least))
    if least <= 0 or beyond < FEWEST:
        return None
    next_to = int(np.count_nonzero(found < least * BAND))
    behind = int(np.count_nonzero(found < least * BAND**2)) - next_to
    if next_to < FEWEST_NEXT or next_to < SHARP * behind:
        return None
    beside = int(np.count_nonzero((objects >= least) & (objects < least * BAND**2)))
    rate = min((next_to + behind) / max(beside, 1), found.size / objects.size)
    return least if BEYOND * rate * beyond >= EXPECTED else None


def apart(evidence: Evidence) -> NDArray[np.bool_]:
    """Mask of the objects that are not compared: `strays`, and objects that cover or exceed the whole image."""
    known = strays.strays(evidence.truth)
    out = evidence.truth.whole | (evidence.truth.reach > EDGE) | (False if known is None else known[1])
    return np.asarray(out)


def _sizes(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings of sizes and positions that objects have but detections do not. Tests of single categories leave
    out parts with a finding, because detections there may have wrong categories.
    """
    rows = evidence.detections
    ours = _measures(evidence.found.boxes[rows], evidence.found.sizes[rows])
    objects = evidence.objects[~apart(evidence)[evidence.objects]]
    theirs = _measures(evidence.truth.boxes[objects], evidence.truth.sizes[objects])
    said = np.zeros(objects.size, np.bool_)
    for name in ours:
        for inverse, word in ((False, "below"), (True, "above")):
            edge = None
            if name in theirs:
                edge = edge_below(*(1 / one if inverse else one for one in (ours[name], theirs[name])))
            if edge is None:
                continue
            limit = float(ours[name].max() if inverse else ours[name].min())
            beyond = theirs[name] > limit if inverse else theirs[name] < limit
            # skip if another measure already covers these objects
            if np.count_nonzero(beyond & said) < 0.5 * np.count_nonzero(beyond):
                yield _cut(facts, evidence, objects[beyond], f"{name} {word} {number(limit)}")
            said |= beyond
    if said.any() or evidence.classes < 2:
        return
    label, labels = evidence.label[rows], evidence.truth.table.categories.codes[objects]
    kept, left = (
        np.flatnonzero(facts.unreported(image, of))
        for image, of in ((evidence.found.image[rows], label), (evidence.truth.image[objects], labels))
    )
    label, labels, objects, theirs_of = label[kept], labels[left], objects[left], theirs["area"][left]
    order = np.argsort(label.astype(np.min_scalar_type(evidence.classes)), kind="stable")
    areas, starts = ours["area"][kept[order]], np.searchsorted(label[order], np.arange(evidence.classes + 1))
    for one in np.flatnonzero(np.bincount(labels, minlength=evidence.classes) >= 2 * FEWEST).tolist():
        own, true = areas[starts[one] : starts[one + 1]], labels == one
        for inverse, word in ((False, "below"), (True, "above")):
            both = (1 / own, 1 / theirs_of[true]) if inverse else (own, theirs_of[true])
            edge = edge_below(*both) if own.size else None
            if edge is not None:
                beyond = true & (theirs_of > 1 / edge if inverse else theirs_of < edge)
                name = names([str(evidence.truth.on.categories.names[one])])
                at = number(1 / edge if inverse else edge)
                yield _cut(facts, evidence, objects[beyond], f"category {name}, area {word} {at}")


def _cut(facts: Facts, evidence: Evidence, rows: Array, more: str) -> Finding:
    rows = np.sort(rows)
    facts.missing(rows, evidence.truth.whole.size)
    return found("sizes_cut", rows.size, "object", more=more, **evidence.truth.records(rows))


# ------------------------------------------------------------------------------------------------------------------ numbers


def _objects_beyond(facts: Facts) -> Iterator[Finding]:
    """Yield a finding of objects beyond the maximum number of detections per image and category of the protocol coco."""
    truth = facts.truth
    if facts.schema or not len(truth):
        return
    cells = truth.image * truth.table.categories.ids.size + truth.table.categories.codes
    held = np.unique(cells[~truth.crowd], return_counts=True)
    over = held[1] > LOOKED_AT
    if over.any():
        images = np.unique(held[0][over] // truth.table.categories.ids.size)
        ids = truth.on.images.ids[images].tolist()
        more = f"on {many(images.size, 'image')}, up to {held[1].max():,} of one category"
        yield found(
            "objects_beyond_cap",
            int((held[1][over] - LOOKED_AT).sum()),
            "object",
            records=ids,
            named="image",
            more=more,
        )


def _of_cells(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding of a maximum number of detections per image and category that is below the number of objects."""
    held = np.unique(evidence.cell, return_counts=True)[1]
    most = int(held.max())
    cells, first, objects = np.unique(evidence.object_cell, return_index=True, return_counts=True)
    of = evidence.held[first]
    over, under = objects > most, objects <= most
    if np.count_nonzero(over) < FEWEST or not under.any():
        return
    # Without a limit, the n objects of an image and category have at least n detections with a probability of at least
    # rate ** n.
    rate = float(np.minimum(of[under], objects[under]).sum() / objects[under].sum())
    expected = float((rate ** (most + 1.0)) * np.count_nonzero(over))
    if expected >= EXPECTED and np.count_nonzero(of[over] == most) >= 0.5 * np.count_nonzero(over):
        ids = evidence.truth.on.images.ids[np.unique(cells[over] // max(evidence.classes, 1))].tolist()
        missing = int((objects[over] - most).sum())
        more = f"{most:,}"
        yield found("category_cap", missing, "object", records=ids, named="image", more=more)


def _score_cuts(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding of categories whose scores end at a minimum, if other categories have many lower scores."""
    if evidence.classes < 2:
        return
    scores, label = evidence.scores[evidence.detections], evidence.label[evidence.detections]
    held = np.bincount(label, minlength=evidence.classes)
    least = np.full(evidence.classes, np.inf)
    np.minimum.at(least, label, scores)
    low = float(np.min(scores))
    candidates = np.flatnonzero((held >= 2 * FEWEST) & (least > low))
    if not candidates.size:
        return
    ascending = np.sort(scores)
    grouped = scores[np.argsort(label.astype(np.min_scalar_type(evidence.classes)), kind="stable")]
    stops = np.cumsum(held)
    cut: list[int] = []
    for one in candidates.tolist():
        below = int(np.searchsorted(ascending, least[one]))
        part = below / (scores.size - held[one]) if scores.size > held[one] else 0.0
        own = grouped[stops[one] - held[one] : stops[one]]
        next_to = np.count_nonzero(own < least[one] * BAND)
        if next_to < FEWEST_NEXT / 2 or next_to < SHARP * (np.count_nonzero(own < least[one] * BAND**2) - next_to):
            continue  # the scores thin out towards their minimum
        # `part` is the share of scores below the limit in the other categories. The number expected in this category
        # follows from `part`.
        if part >= 0.1 and BEYOND * held[one] * part / max(1 - part, 0.05) >= EXPECTED:
            cut.append(one)
    if cut and len(cut) <= 0.5 * np.count_nonzero(held):
        shown = [f"{evidence.truth.on.categories.names[one]} {number(float(least[one]))}" for one in cut]
        rows = evidence.detections[np.isin(label, cut)]
        yield found("category_score_cut", rows.size, "detection", more=names(shown), **evidence.found.records(rows))


def _of_labels(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if every detection has a category of its image's objects, although many are false positives."""
    if evidence.classes < 2:
        return
    cells = np.unique(evidence.object_cell)
    inside = np.isin(evidence.cell, cells) if evidence.cell.size < 5_000_000 else np.zeros(1, np.bool_)
    false = evidence.detections.size - np.count_nonzero(evidence.hit)
    images = max(np.unique(evidence.object_image).size, 1)
    share = float(np.bincount(cells % max(evidence.classes, 1), minlength=evidence.classes).mean() / images)
    if inside.all() and BEYOND * false * (1 - share) >= EXPECTED:
        yield found(
            "categories_of_labels", evidence.detections.size, "detection", more=f"{false:,} of them find no object"
        )


def _matched(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if nearly every detection lies on an object, although scores imply many false positives."""
    assert facts.agreement is not None
    rows = facts.agreement.thinned(evidence.detections)
    scores = evidence.scores[rows]
    expected = BEYOND * float((1 - scores).sum())  # if scores are probabilities
    if scores.min() < 0 or scores.max() > 1 or expected < EXPECTED or evidence.truth.crowd.any():
        return
    missed = int(np.count_nonzero(~evidence.hit & evidence.seen))
    if missed < max(FEWEST, MATCHED * evidence.objects.size):
        return  # a model that finds nearly all objects may have no false positives
    image, boxes = evidence.found.image[rows], evidence.found.boxes[rows]
    alone = int(np.count_nonzero(facts.agreement.nearest(image, boxes).overlap < NOTHING / 2))
    if alone > MATCHED * expected:
        return
    elsewhere = facts.agreement.nearest(facts.agreement.others(image), boxes).overlap
    if np.mean(elsewhere < NOTHING / 2) >= 0.5:  # on another image most boxes lie on no object
        more = f"of {rows.size:,} that were looked at {alone:,} do not"
        yield found("detections_of_labels", evidence.detections.size, "detection", more=more)


def _neighbours(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings of objects that overlap each other more than any two confident detections do."""
    across, own = evidence.between_any, (evidence.between_detections, evidence.between_objects)
    rate = float(evidence.hit.mean())
    for code, (detections, objects) in (("suppressed_across", across), ("strict_suppression", own)):
        if not detections.size or not objects.size:
            continue
        most = float(detections.max())
        over = objects > most + MARGIN
        images = np.unique(evidence.object_image[over])
        if code == "strict_suppression":
            over &= objects < ONE_OBJECT
            if np.count_nonzero(objects >= ONE_OBJECT) > np.count_nonzero(over):
                continue  # most of these objects are labelled twice
        apart = np.count_nonzero(over) / evidence.frames
        if apart >= FEWEST and apart * rate**2 >= EXPECTED and most < SUPPRESSED and images.size >= FEWEST:
            if code == "strict_suppression":
                yield from _strict(evidence, most)
                return
            rows = np.sort(evidence.objects[over])
            yield found(code, rows.size, "object", more=f"{most:.2f}", **evidence.truth.records(rows))
            return


def _strict(evidence: Evidence, most: float) -> Iterator[Finding]:
    """Yield a finding if objects that overlap a found object of their category lack a detection far more often than
    other objects on such an image (see `EXCESS`).
    """
    limit = round(most + MARGIN, 2)
    over, rest = evidence.beside_found(limit)
    over &= evidence.among_objects < ONE_OBJECT
    none = np.isneginf(evidence.matched[1])
    (count, total), (few, others) = (
        (int(np.count_nonzero(which & none)), int(np.count_nonzero(which))) for which in (over, rest)
    )
    usual = (few + 1) / (others + 2)
    if (
        count >= FEWEST
        and count / total >= usual + EXCESS * (1 - usual)
        and tail(count, usual * total) < STRICT_BY_CHANCE
    ):
        more = (
            f"by more than {limit:.2f}, and detections by {most:.2f} at most; {count / total:.0%} of {total:,} objects that "
            f"overlap a found one so far, and {few / max(others, 1):.0%} of others on an image with a found one"
        )
        rows = np.sort(evidence.objects[over & none])
        yield found("strict_suppression", count, "object", more=more, **evidence.truth.records(rows))


# -------------------------------------------------------------------------------------------------------------- coordinates


def _coordinates(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings of coordinates shared by many boxes, and of coordinates on a grid."""
    side, rows = evidence.found, evidence.detections
    if facts.caused("detections", "anchor_boxes"):  # the coordinates of anchors are on a grid
        rows = rows[facts.unreported(side.image[rows])]
    rows = sample(rows)
    step = _grid(side, rows)
    if step == 1 and side.drawn is not None:
        return  # boxes around masks have whole coordinates
    true = evidence.objects if evidence.objects.size <= SAMPLE else evidence.objects[:SAMPLE]
    if step is not None:
        every = np.arange(len(side))
        theirs, ours = (float(_on_grid(*one, step).mean()) for one in ((facts.truth, true), (side, rows)))
        if theirs < 0.25 * ours:
            there = _on_grid(side, every, step)
            more = many(step, "pixel")
            facts.causes.add((side.role, "coarse_boxes"))
            held, on = (
                np.bincount(side.image[which], minlength=evidence.images)
                for which in (side.image >= 0, there & (side.image >= 0))
            )
            part = facts.concentrated(2 * on >= held, held > 0)
            if part is not None:  # in this part, boxes at the edges of the image are affected, too
                there = _at_steps(side, every, step) & part.images[side.image] & (side.image >= 0)
                more += f"; {facts.says_part(part)}"
            yield found("coarse_boxes", int(there.sum()), side.unit, more=more, **side.records(there))
        if step > 1:
            return
    if facts.caused("detections", "cut_boxes"):
        return
    lines = cut_lines(facts, evidence, rows)
    if lines:
        yield at_lines(facts, side, lines)
    elif not facts.caused("detections", "square_boxes"):
        made = of_squares(facts, evidence, rows)
        if made is not None:
            yield made


def sample(rows: Array) -> Array:
    """Return `rows`, or a random sample of `SAMPLE` of them."""
    return rows if rows.size <= SAMPLE else np.sort(np.random.default_rng(0).permutation(rows)[:SAMPLE])


def of_squares(facts: Facts, evidence: Evidence, rows: Array) -> Finding | None:
    """Return the finding of square boxes if many detections at `rows` are square, but few objects are; else None. Boxes at
    the edges of images, which may be clipped, are not counted.
    """
    side, every = evidence.found, np.arange(len(evidence.found))
    if not squares(side, rows) or squares(facts.truth, evidence.objects[:SAMPLE]):
        return None
    within, there = not_at_edges(side, every) & (side.image >= 0), equal_sides(side, every)
    held, on = (np.bincount(side.image[which], minlength=evidence.images) for which in (within, within & there))
    part = facts.gathered(2 * on >= held, held > 0)
    more = ""
    if part is not None:
        there &= part.images[side.image] & (side.image >= 0)
        more = facts.says_part(part)
    return found("square_boxes", int(there.sum()), side.unit, more=more, words=AT_LEAST, **side.records(there))


def cut_lines(facts: Facts, evidence: Evidence, rows: Array) -> list[tuple[str, float]]:
    """Return the coordinates that edges of many detections at `rows` share, but edges of objects do not."""
    lines = _lines(evidence.found, rows)
    known = set(_lines(facts.truth, evidence.objects[:SAMPLE])) if lines else set()
    return [line for line in lines if line not in known]


def at_lines(facts: Facts, side: Side, lines: list[tuple[str, float]]) -> Finding:
    """Return the finding of boxes with an edge at one of `lines`. If most of these boxes lie in one part of the images,
    only this part is reported. Boxes may also be cut at lines that are not found because fewer boxes share them.
    """
    there = touching(side, np.arange(side.image.size), lines)
    known, count = side.image >= 0, facts.truth.on.images.ids.size
    held, on = (np.bincount(side.image[which], minlength=count) > 0 for which in (known, known & there))
    part = facts.gathered(on, held)
    more = names([f"{what} = {value:.5g}" for what, value in lines])
    crop = crops.windows(side, held if part is None else part.images)
    touched = np.zeros_like(there) if crop is None else crop.touched(side)
    if crop is not None and 2 * np.count_nonzero(touched) >= np.count_nonzero(there & crop.images[side.image]):
        there |= touched
        more = crop.says(facts.truth) if crop.squares else f"{more}; {crop.says(facts.truth)}"
    if part is not None:
        there &= known & part.images[side.image]
        more += f"; {facts.says_part(part)}"
    return found("cut_boxes", int(there.sum()), side.unit, more=more, words=AT_LEAST, **side.records(there))


def touching(side: Side, rows: Array, lines: list[tuple[str, float]]) -> NDArray[np.bool_]:
    """Mask of the boxes at `rows` with an edge at one of `lines`."""
    out = np.zeros(rows.size, np.bool_)
    for what, value in lines:
        out |= _at(side, rows, what) == value
    return out


def crossing(side: Side, rows: Array, lines: list[tuple[str, float]]) -> NDArray[np.bool_]:
    """Mask of the boxes at `rows` with one of `lines` in their interior."""
    out = np.zeros(rows.size, np.bool_)
    for what, value in lines:
        name, _, by = what.partition(" / ")
        axis = _EDGES.index(name) % 2
        at = value * (side.sizes[rows, 1 - axis if by == _OTHER else axis] if by else 1.0)
        near = side.boxes[rows, axis]
        out |= (near + EDGE < at) & (at < near + side.boxes[rows, 2 + axis] - EDGE)
    return out


def equal_sides(side: Side, rows: Array) -> NDArray[np.bool_]:
    """Mask of the square boxes (see `ROUNDED`) that do not touch the edges of their image, shape (n,)."""
    boxes = side.boxes[rows]
    return np.asarray(not_at_edges(side, rows) & (np.abs(boxes[:, 2] - boxes[:, 3]) < ROUNDED))


def not_at_edges(side: Side, rows: Array) -> NDArray[np.bool_]:
    """Mask of the boxes at `rows` that do not touch the edges of their image."""
    boxes, sizes = side.boxes[rows], side.sizes[rows]
    return np.asarray((boxes[:, :2] > EDGE).all(axis=1) & (boxes[:, :2] + boxes[:, 2:] < sizes - EDGE).all(axis=1))


def share_of_squares(side: Side, rows: Array) -> float:
    """Return the share of square boxes among the boxes at `rows` that do not touch the edges of their image."""
    return int(np.count_nonzero(equal_sides(side, rows))) / max(int(np.count_nonzero(not_at_edges(side, rows))), 1)


def squares(side: Side, rows: Array) -> bool:
    """Return whether square boxes are far more frequent than boxes whose width and height differ by a few pixels."""
    equal = equal_sides(side, rows)
    _, times = np.unique(np.round(side.boxes[rows[equal], 2] / ROUNDED), return_counts=True)
    if 2 * times.max(initial=0) > np.count_nonzero(equal):
        return False  # most squares have one size, because small sides were raised to a minimum
    count = int(np.count_nonzero(equal))
    if count < max(FEWEST, SQUARES * rows.size):
        return False
    apart = np.round((side.boxes[rows, 2] - side.boxes[rows, 3]) / ROUNDED)
    _, held = np.unique(apart[(apart != 0) & (np.abs(apart) < 8.5 / ROUNDED)], return_counts=True)
    around = np.sort(held)[-16:].sum() / 16  # in whole pixels there are 16 nonzero differences of up to 8
    return tail(count, 3 * around + 1) < 1e-6


#: Names of the coordinates that are searched for lines, in pixels and in shares of the image.
_EDGES = ("left edge", "top edge", "right edge", "bottom edge")
_SIDE, _OTHER = "side", "other side"


def _at(side: Side, rows: Array, what: str) -> Array:
    """Return the coordinate `what` of boxes, NaN near the edges of their images."""
    name, _, by = what.partition(" / ")
    at = _EDGES.index(name)
    axis = at % 2
    value = side.boxes[rows, axis] + (side.boxes[rows, 2 + axis] if at >= 2 else 0)
    size = side.sizes[rows, axis]
    inner = (value > EDGE) & (value < size - EDGE)
    share = np.round(value / (side.sizes[rows, 1 - axis] if by == _OTHER else size), 4)
    return np.where(inner, share if by else np.round(value, 3), np.nan)


def _lines(side: Side, rows: Array) -> list[tuple[str, float]]:
    """Return the coordinates at which far more boxes have an edge than at neighbouring coordinates."""
    out = []
    images = np.unique(side.image[rows]).size
    known = bool(np.isfinite(side.sizes[rows]).all()) if rows.size else False
    one_size = known and bool((side.sizes[rows] == side.sizes[rows[0]]).all())
    shares = () if one_size or not known else (_SIDE, _OTHER)
    for what in [*_EDGES, *(f"{name} / {by}" for by in shares for name in _EDGES)]:
        values = _at(side, rows, what)
        inner = np.isfinite(values)
        # Boxes of one image at one coordinate count once, because an object may be found several times.
        image = side.image[rows[inner]]
        order = np.lexsort((image, values[inner]))
        values, image = values[inner][order], image[order]
        values = values[np.append(True, (values[1:] != values[:-1]) | (image[1:] != image[:-1]))[: values.size]]
        if values.size < 200:
            continue
        numbers, held = np.unique(values, return_counts=True)
        near = 0.0125 if what.endswith("side") else 8.0
        for at in np.flatnonzero(held >= max(FEWEST, ON_A_LINE * images)).tolist():
            start, stop = np.searchsorted(values, [numbers[at] - near, numbers[at] + near])
            others = np.searchsorted(numbers, [numbers[at] - near, numbers[at] + near])
            around = (stop - start - held[at]) / max(int(others[1] - others[0]) - 1, 1)
            # Where some boxes are rounded and others are not, all whole numbers are frequent.
            beside = np.sort(np.delete(held[others[0] : others[1]], at - others[0]))
            usual = max(3 * around, 1.5 * float(beside[-BESIDE]) if beside.size >= BESIDE else 0.0)
            if tail(int(held[at]), usual + 1) * numbers.size < 1e-6:
                out.append((what, float(numbers[at])))
    return out


def _on_grid(side: Side, rows: Array, step: float) -> NDArray[np.bool_]:
    """Mask of the boxes with all corners on a grid of `step` pixels and at least two edges away from the edges of the
    image.
    """
    sizes, corners = side.sizes[rows], _corners(side, rows)
    inner = (corners > EDGE) & (corners < np.concatenate([sizes, sizes], axis=1) - EDGE)
    return np.asarray(_at_steps(side, rows, step) & (inner.sum(axis=1) >= 2))


def _at_steps(side: Side, rows: Array, step: float) -> NDArray[np.bool_]:
    """Mask of the boxes with all corners on a grid of `step` pixels."""
    corners = _corners(side, rows)
    return np.asarray((np.abs(corners / step - np.round(corners / step)) < 1e-6).all(axis=1))


def _corners(side: Side, rows: Array) -> Array:
    boxes = side.boxes[rows]
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def _grid(side: Side, rows: Array) -> int | None:
    """Return the widest grid step, in pixels, on which more boxes lie than chance explains; None if there is no grid."""
    if rows.size < FEWEST:
        return None
    whole = float(_on_grid(side, rows, 1).mean())
    if whole < ON_A_GRID or whole * rows.size < FEWEST:
        return None  # boxes on a wider grid lie on whole pixels, too
    shares = {step: float(_on_grid(side, rows, step).mean()) for step in (64, 32, 20, 16, 10, 8, 5, 4, 3, 2)}
    for step, share in shares.items():
        if share < max(ON_A_GRID, 5 * whole * step**-4.0) or share * rows.size < FEWEST:
            continue
        if all(share >= FINER * of for finer, of in shares.items() if step % finer == 0):
            return step
    return 1


def _copied(facts: Facts, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding of detections that copy the box of their object exactly, or after rounding and clipping."""
    (rows, objects), (same, exact, unsure) = evidence.finders, evidence.copies
    if not rows.size or np.count_nonzero(same) < max(FEWEST, COPIED * rows.size):
        return
    more = f"of {rows.size:,} objects that are found"
    changed = int(np.count_nonzero(same & ~exact))
    if changed:
        more += (
            f"; {changed:,} of them once they are rounded, or cut off at the edges of their image, as the objects are"
        )
    image = evidence.object_image[objects]
    held = np.bincount(image, minlength=evidence.images)
    part = facts.gathered((2 * np.bincount(image[same], minlength=held.size) >= held) & (held > 0), held > 0)
    if part is not None:
        more += f"; {np.count_nonzero(same & part.images[image]):,} of them on {facts.says_part(part)}"
    at, words = np.sort(rows[same]), AT_LEAST if unsure.any() else "{many}"
    yield found("copied_boxes", at.size, "detection", more=more, words=words, **evidence.found.records(at))
