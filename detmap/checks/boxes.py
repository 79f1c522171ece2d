"""Checks of boxes: their format, their position within the image, and duplicates.

A wrong box format is detected in up to three ways: boxes do not bound the masks of the same records, detections overlap
objects only after a conversion, or boxes exceed their images. A finding of a wrong format suppresses the findings that
it explains.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.checks import image_ids as ids
from detmap.checks.agreement import says_shift
from detmap.checks.changes import (
    CHANGES,
    ORDERS,
    QUARTERS,
    TURNS,
    Array,
    Change,
    as_corners,
    swapped_axes,
    swapped_sides,
)
from detmap.checks.context import Facts
from detmap.checks.data_statistics import number as said
from detmap.checks.findings import AT_LEAST, Finding, found
from detmap.checks.inputs import Side, as_sizes, best_of, overlaps, reach_of
from detmap.checks.rates import CHANCE, tail
from detmap.data.tables import Detections, GroundTruth
from detmap.errors import many
from detmap.shapes import Boxes
from detmap.shapes.kinds import BOXES

#: Maximum number of pixels by which a box of ground truth may exceed its image, because some tools count pixels from 1
#: and include the last pixel.
_ROUNDING = 1.5

#: Maximum share of a detection's area that may lie outside of the image, because few detectors clip their boxes.
_UNCLIPPED = 0.25

#: Codes of findings that explain why boxes lie outside of images, have no area, or are inverted.
_CAUSES = (
    *CHANGES,
    "sizes_as_corners",
    "scaled_boxes",
    "turned_boxes",
    "shifted_boxes",
    "image_sizes_swapped",
    "byte_boxes",
)

#: Minimum share of boxes with negative sides, for a wrong order of the corners' columns to suppress other findings. The
#: minimum applies if boxes with negative sides are not limited to one part of the images. With a smaller share, most
#: boxes can still be compared. If all columns x1, x2, y1, y2 are read as x1, y1, x2, y2, two thirds of VOC2007's
#: objects have negative sides.
_REORDERED = 0.1

#: Minimum number of boxes or images for a finding.
_FEWEST = 3

#: Minimum number of objects whose box is nearly, but not exactly, equal to another object's box. By chance one pair of
#: nearly equal boxes occurs in 1 of 10 scenes of ``tests/planting``, and three pairs in 1 of 6,000 scenes.
_FEWEST_CLOSE = 3

#: Minimum IoU of two objects of one category that have nearly the same box.
SAME = 0.95

#: Two objects of one category form a pair if each has its largest IoU with the other, and this IoU is at least `TIGHT`.
#: If two annotators place edges independently within 5 % of a side, the IoU is above 0.7. The objects of an image are
#: considered labelled twice if at least the share `PAIRED` of them form pairs. Small overlaps are frequent by chance.
#: Therefore, images labelled twice must be far more than twice as many as images that reach `PAIRED` only at an IoU of
#: `LOOSE`.
PAIRED, TIGHT, LOOSE = 0.8, 0.7, 0.4

#: Objects with a list of run lengths are considered crowds if their number is at most this share of the number of objects
#: with polygons. In two samples of COCO, 830 and 619 objects have polygons, and 9 and 5 have run lengths. All objects
#: with run lengths are crowds. If a data set draws ordinary objects by run lengths, most of its objects have run
#: lengths.
LISTED = 0.05

#: Description of crowds that are smaller than the median object of their category.
_SMALL = "smaller than a usual object of their category"

#: Minimum share of crowds that are smaller than the median object of their category, for crowds to be considered single
#: objects. If crowd flags were random the share would be a half; real crowds are rarely smaller than the median object.
SMALLER = 0.25

#: Images on which all objects are crowds are reported if they are at least the share `ALL_CROWDS` of a part's images
#: with objects. Without such a part, only images with several objects are counted. At least `FEWEST_CROWDS` images must
#: hold crowds only, and at least `MORE_CROWDS` times as many as hold both crowds and other objects. A tool that sets
#: the flag by mistake sets it on all objects of an image. In COCO, nearly all images with a crowd and another record
#: also have an object without the flag.
ALL_CROWDS, FEWEST_CROWDS, MORE_CROWDS = 0.9, 10, 2.0

#: Wrong areas belong to another image size if the quartiles of their ratios to the right areas differ at most by the
#: factor `STEADY`. Without masks, the right areas are known only if at least the share `EXACT` of the other areas fit
#: their boxes. If the longer side of every image is scaled to one length, all images of VOC2007 have one area factor,
#: and the factors of images of 500 to 640 pixels differ by up to 1.6 times.
STEADY, EXACT = 1.6, 0.9

#: Limits for coordinates that were stored as bytes. Judging by the other file, at least `EXPECTED` boxes of a part
#: should have coordinates above `BYTE`. At most the share `LEFT` of the expected number may have coordinates above
#: `BYTE`, because images at the ends of the part may belong to the rest. At least the share `WHOLE` of the boxes must
#: have whole numbers. The far corner of at least `CORNERS` boxes must lie beyond `BYTE`; otherwise the images were
#: cropped there.
BYTE, EXPECTED, LEFT, WHOLE, CORNERS = 255.0, 20.0, 0.05, 0.95, 5


#: Limits for reporting that boxes beyond their images are shifted. On images with such boxes, at least `_FEWEST_BESIDE`
#: detections must have an IoU of at least `_BESIDE` with an object. The median offset of these detections must be at
#: least `_OFF` pixels, and at least `_SURE` times its standard error. The IoU is low because shifted boxes overlap
#: less.
_BESIDE, _FEWEST_BESIDE, _OFF, _SURE = 0.3, 20, 0.75, 6.0


def check(facts: Facts) -> Iterator[Finding]:
    """Check for boxes that are in another format than assumed, exceed their images, or are repeated."""
    yield from _causes(facts)
    if facts.agreement is not None and facts.agreement.none and not facts.causes:
        assert facts.found is not None
        more = f"of {facts.agreement.rows.size:,} that were looked at, {facts.agreement.hits:,} overlap one by half"
        facts.causes.add(("detections", "no_agreement"))
        yield found("no_agreement", len(facts.found), "detection", more=more)
    shift = None if facts.agreement is None or facts.causes else facts.agreement.shift
    if shift is not None and facts.found is not None:
        assert facts.agreement is not None
        yield found("shifted_boxes", facts.agreement.hits, "detection", more=says_shift(shift))
    for side in facts.sides:
        yield from _forms(facts, side)
        yield from _duplicates(facts, side)
    yield from _sizes(facts)
    if not facts.caused("ground_truth", *_CAUSES):
        yield from _areas(facts)
    yield from _crowds(facts)
    yield from _unflagged(facts)


# ------------------------------------------------------------------------------------------------------------------- causes


def _causes(facts: Facts) -> Iterator[Finding]:
    sides = [side for side in facts.sides if len(side)]
    for side, other in (sides, sides[::-1]) if len(sides) == 2 and not facts.schema else ():
        bytes_of = _of_a_byte(facts, side, other)
        if bytes_of is not None:
            yield _cause(facts, side, *bytes_of)
    for side in sides:
        rows = _normalised(facts, side)
        if rows is not None:
            yield _cause(facts, side, "normalised_boxes", rows)
        elif side.table.within_unit and len(side) >= _FEWEST:
            yield found("shares_of_images", len(side), side.unit)
    for side in sides:
        if not facts.caused(side.role, *_CAUSES):
            made = _by_shapes(side)
            if made is not None:
                yield _cause(facts, side, *made)
    known = any(code in _CAUSES for _, code in facts.causes)
    gain = None if facts.agreement is None or known else facts.agreement.of_boxes
    if gain is not None:
        assert facts.agreement is not None
        side = facts.agreement.truth if gain.role == "ground_truth" else facts.agreement.found
        yield _cause(facts, side, gain.code, *facts.rows_of(gain), AT_LEAST)
    for side in sides:
        if not facts.caused(side.role, *_CAUSES):
            yield from _by_edges(facts, side)


def _cause(facts: Facts, side: Side, code: str, rows: Array, more: str = "", words: str = "{many}") -> Finding:
    facts.causes.add((side.role, code))
    count = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
    words = words if count < len(side) else "{many}"
    return found(code, count, side.unit, more=more, words=words, **side.records(rows))


def _of_a_byte(facts: Facts, side: Side, other: Side) -> tuple[str, Array, str] | None:
    """Find coordinates that are whole numbers up to 255 on a part of the images, or on all, although `other` has larger
    coordinates there. Return the code, a mask of the boxes, and the part in words; None if there are no such boxes.
    """
    count = side.on.images.ids.size
    own, their = side.image >= 0, other.image >= 0
    large, larger = own & (side.columns > BYTE).any(axis=0), their & (other.columns > BYTE).any(axis=0)
    held, above, beyond = (
        np.bincount(image, minlength=count) > 0 for image in (side.image[own], side.image[large], other.image[larger])
    )
    rows = np.flatnonzero(own & ~above[side.image])
    whole = np.zeros(own.size, np.bool_)
    whole[rows] = ((side.boxes[rows] == np.floor(side.boxes[rows])) & (side.boxes[rows] >= 0)).all(axis=1)
    if np.count_nonzero(whole) < EXPECTED:
        return None
    without = held & beyond & ~above
    without[side.image[rows[~whole[rows]]]] = False
    part = facts.gathered(without, held & beyond)
    if part is None and (held & above).any():
        return None
    there = np.ones(count, np.bool_) if part is None else part.images
    inside, theirs = own & there[side.image], their & there[other.image]
    expected = int(np.count_nonzero(inside)) * _share(larger, theirs)
    if part is not None:  # fewer are expected if `side` has fewer large coordinates elsewhere, too
        expected *= min(_share(large, own & ~inside) / max(_share(larger, their & ~theirs), 1e-9), 1.0)
    if expected < EXPECTED or np.count_nonzero(large & inside) > LEFT * expected:
        return None
    whole &= inside
    corners = side.boxes[whole, :2] + side.boxes[whole, 2:]
    few = np.count_nonzero(whole) < WHOLE * np.count_nonzero(inside)
    if few or np.count_nonzero((corners > BYTE).any(axis=1)) < CORNERS:
        return None
    more = f"{np.count_nonzero(larger & theirs):,} of {many(int(theirs.sum()), other.unit)} there have larger ones"
    return "byte_boxes", whole, more if part is None else f"{facts.says_part(part)}; {more}"


def _share(flags: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
    """Return the share of flagged records among the records `among`; 0 if there are none."""
    return int(np.count_nonzero(flags & among)) / max(int(np.count_nonzero(among)), 1)


def _normalised(facts: Facts, side: Side) -> Array | None:
    """Mask, shape (n,), of the boxes with normalised coordinates (0 to 1) instead of pixels; None if there are too few."""
    x, y, w, h = side.columns
    within: NDArray[np.bool_] = side.sized & (w <= 1.0) & (h <= 1.0)
    if not within.any():
        return None
    known = np.isfinite(side.sizes).all(axis=1)
    large = known & (side.sizes > 2).all(axis=1)
    if side.table.within_unit and not large.any():
        other = facts.found if side is facts.truth else facts.truth
        if other is None or not len(other) or np.median(other.boxes[:, 2:]) <= 1:
            return None  # objects and detections are both normalised
        return within
    within &= (x >= 0) & (x <= 1.0) & (y >= 0) & (y <= 1.0)
    # A single box smaller than a pixel in the corner of an image is probably an accident; several such boxes are not.
    within &= large | ~known
    fractions = (side.boxes[within] % 1 != 0).any(axis=1)
    return within if np.count_nonzero(fractions) >= _FEWEST else None


def _by_shapes(side: Side) -> tuple[str, Array] | None:
    """Return the code of a wrong box format, and a mask of the boxes that bound their segmentation masks only after the
    change that undoes this format.
    """
    if side.drawn is None:
        return None
    _, masks = side.drawn
    areas, bounds = masks.areas(), as_sizes(masks.bounds())
    plain = overlaps(side.boxes, bounds)
    off = (areas > 16) & (plain < 0.5)
    best: tuple[str, Array] | None = None
    if np.count_nonzero(off) < _FEWEST:
        return None
    for code, ways in CHANGES.items():
        for change in ways:
            mended = off & (overlaps(change(side.boxes, side.sizes), bounds) >= 0.8)
            if np.count_nonzero(mended) >= max(_FEWEST, 0.5 * np.count_nonzero(off)) and (
                best is None or np.count_nonzero(mended) > np.count_nonzero(best[1])
            ):
                best = code, mended
    return best


def _by_edges(facts: Facts, side: Side) -> Iterator[Finding]:
    """Yield findings of boxes that far exceed their images, but fit into them in another box format."""
    # Boxes can fit another format by chance, so the overlaps between detections and objects, if both are given, must
    # confirm the format.
    boxes, sizes = side.boxes, side.sizes
    column = side.table.shapes[BOXES]
    in_corners = isinstance(column, Boxes) and not column.sizes
    if isinstance(side.table, GroundTruth) and not in_corners:
        by_area = _areas_of_corners(side.table, boxes)
        if by_area is not None:
            yield _cause(facts, side, "corners_as_sizes", by_area)
            return
    longest = np.where(np.isfinite(sizes[:, 0] + sizes[:, 1]), np.maximum(sizes[:, 0], sizes[:, 1]), 0.0)
    far = (side.reach > np.maximum(0.05 * longest, 3)) & side.sized
    at = np.flatnonzero(far)
    if at.size < _FEWEST:
        return
    ways = dict(_EDGES)
    if in_corners:
        del ways["corners_as_sizes"]
    shares = {code: np.count_nonzero(_fits(change, boxes[at], sizes[at])) / at.size for code, change in ways.items()}
    code = max(shares, key=shares.__getitem__)
    fits = _fits(ways[code], boxes, sizes) if shares[code] >= 0.9 else np.zeros_like(far)
    if not fits.any() or not _rather(far, fits, sizes, code):
        return
    change = ways[code]
    if change is None or code == "axes_swapped":
        yield from _turned(facts, side, far, fits)
        return
    # Report all boxes if nearly all fit the other format, else only the boxes outside of their images.
    rows = fits if np.count_nonzero(fits) > 0.98 * fits.size and at.size >= 0.02 * fits.size else far & fits
    if facts.agreement is None or facts.agreement.borne_out(side, np.flatnonzero(rows), change):
        yield _cause(facts, side, code, rows)


#: For each code, the change that may bring boxes back into their images; None if the width and height of the image are
#: swapped instead.
_EDGES: dict[str, Change | None] = {
    "corners_as_sizes": as_corners,
    "image_sizes_swapped": None,
    "sides_swapped": swapped_sides,
    "axes_swapped": swapped_axes,
}


def _fits(change: Change | None, boxes: Array, sizes: Array) -> NDArray[np.bool_]:
    """Mask of the boxes that have an area and lie within their image after the change, shape (n,)."""
    if change is None:
        sizes = sizes[:, ::-1]
    else:
        boxes = change(boxes, sizes)
    return np.asarray((boxes[:, 2] > 0) & (boxes[:, 3] > 0) & (reach_of(boxes, sizes) <= _ROUNDING))


def _rather(far: Array, fits: Array, sizes: Array, code: str) -> bool:
    """Return whether boxes outside of their images fit the format of `code` more often than chance explains."""
    # The probability of a fit by chance is the share of the boxes within their images that also fit the format.
    within = ~far & np.isfinite(sizes[:, 0] + sizes[:, 1])
    others = np.count_nonzero(within)
    by_chance = np.count_nonzero(within & fits) / others if others else 0.0
    count = int(np.count_nonzero(far))
    if code == "corners_as_sizes":
        return by_chance > 0.95 or 0.9**count > 2 * max(by_chance, 0.2) ** count
    return count >= 5 or by_chance < 0.5


def _turned(facts: Facts, side: Side, far: Array, fits: Array) -> Iterator[Finding]:
    """Yield a finding of boxes that fit their images if x and y are swapped. The boxes may be turned by 90 degrees or
    have swapped axes, or the width and height of the images may be swapped.
    """
    if facts.agreement is not None:
        rows = np.flatnonzero(far & fits)
        swapped, *turned = (facts.agreement.borne_out(side, rows, one) for one in (swapped_axes, *QUARTERS))
        if max(turned) >= max(swapped, 1):
            more = TURNS[QUARTERS[turned.index(max(turned))]]
            yield _cause(facts, side, "turned_boxes", rows, more, AT_LEAST)
            return
    images = np.unique(side.image[far])
    other = facts.found if side is facts.truth else facts.truth
    of_image = True
    if other is not None and len(other):  # if objects and detections both exceed the image, the image size is wrong
        there = np.isin(other.image, images)
        beyond = other.reach > 3
        of_image = bool(there.any() and np.count_nonzero(beyond & there) >= 0.5 * np.count_nonzero(far))
        of_image |= side is facts.truth and not there.any()
    if side.drawn is not None:
        kind, masks = side.drawn
        assert kind.image_sizes is not None
        agree = (kind.image_sizes(masks)[:, ::-1] == side.sizes).all(axis=1)
        of_image = of_image and not agree[far].all()
    if not of_image:
        if facts.agreement is None or swapped:
            yield _cause(facts, side, "axes_swapped", far & fits)
        return
    # Report only images on which all boxes fit once width and height of the image are swapped.
    without = np.bincount(side.image[~fits & (side.image >= 0)], minlength=side.on.images.ids.size)[images] == 0
    if 2 * np.count_nonzero(without) > images.size and (images.size >= 2 or images.size == side.on.images.ids.size):
        for one in facts.sides:
            facts.causes.add((one.role, "image_sizes_swapped"))
        ids = side.on.images.ids[images[without]].tolist()
        yield found("image_sizes_swapped", len(ids), "image", records=ids, named="image", words=AT_LEAST)


def _areas_of_corners(table: GroundTruth, boxes: Array) -> Array | None:
    """Mask of the objects whose area is right if their box is read as two corners; None if there are too few of them."""
    corner = np.maximum(boxes[:, 2] - boxes[:, 0], 0) * np.maximum(boxes[:, 3] - boxes[:, 1], 0)
    plain = boxes[:, 2] * boxes[:, 3]
    close = (corner > 0) & (np.abs(table.areas - corner) <= 0.001 * corner) & (np.abs(plain - corner) > 0.01 * corner)
    return close if np.count_nonzero(close) >= max(_FEWEST, 0.005 * len(close)) else None


# -------------------------------------------------------------------------------------------------------------------- forms


def _forms(facts: Facts, side: Side) -> Iterator[Finding]:
    """Yield findings of boxes without an area, with a negative width or height, or outside of their image."""
    _, _, width, height = side.columns
    inverted = np.asarray((width < 0) | (height < 0))
    if inverted.any() and not facts.caused(side.role, *_CAUSES):
        more = _of_corners(facts, side, inverted)
        yield found("inverted_boxes", int(inverted.sum()), side.unit, more=more, **side.records(inverted))
    flat = np.asarray((side.extents == 0).any(axis=0) & ~inverted)
    if flat.any() and not facts.caused(side.role, "corners_as_sizes", "sizes_as_corners", "byte_boxes"):
        yield found("zero_sized_boxes", int(flat.sum()), side.unit, **side.records(flat))
    if facts.caused(side.role, *_CAUSES, *ids.CAUSES, "no_agreement"):
        return  # another finding explains these boxes
    beyond = (side.reach > _ROUNDING) & ~inverted
    at = np.flatnonzero(beyond)
    if isinstance(side.table, Detections) and at.size:
        boxes = side.boxes[at]
        near = np.maximum(boxes[:, :2], 0.0)
        far = np.minimum(boxes[:, :2] + boxes[:, 2:], side.sizes[at])
        inside = np.maximum(far - near, 0).prod(axis=1)
        beyond[at] = inside < (1 - _UNCLIPPED) * boxes[:, 2:].prod(axis=1)
    # predicted boxes around keypoints may exceed the image
    if beyond.any() and not (side.role == "detections" and side.posed is not None):
        least = f"{_ROUNDING:g} pixels" if side.role == "ground_truth" else f"{_UNCLIPPED:.0%} of its area"
        more = f"by more than {least}, and by {said(side.reach[beyond].max())} pixels at most"
        more += _says_shift(facts, side, beyond)
        yield found("outside_boxes", int(beyond.sum()), side.unit, more=more, **side.records(beyond))


def _says_shift(facts: Facts, side: Side, beyond: NDArray[np.bool_]) -> str:
    """Describe the shift of boxes on the images of `beyond`, a mask of boxes that exceed their image. The shift is
    measured between overlapping detections and objects. Return "" if it is not significant.
    """
    whole = facts.agreement
    if whole is None:
        return ""
    images = np.zeros(side.on.images.ids.size, np.bool_)
    images[side.image[beyond & (side.image >= 0)]] = True
    at = np.flatnonzero((whole.plain.overlap >= _BESIDE) & (whole.image >= 0))
    at = at[images[whole.image[at]]]
    if at.size < _FEWEST_BESIDE:
        return ""
    found_at, true = whole.boxes[at], whole.truth.boxes[whole.plain.object[at]]
    away = found_at[:, :2] + found_at[:, 2:] / 2 - true[:, :2] - true[:, 2:] / 2
    middle = np.median(away, axis=0)
    spread = 1.2533 * 1.4826 * np.median(np.abs(away - middle), axis=0) / np.sqrt(at.size)
    if not ((np.abs(middle) >= _OFF) & (np.abs(middle) > _SURE * spread)).any():
        return ""
    x, y = middle if side is whole.found else -middle
    other = "objects" if side is whole.found else "detections"
    return (
        f"; on their {many(int(images.sum()), 'image')} boxes lie off by {x:+.1f} and {y:+.1f} pixels (x, y) from the "
        f"{other} that they overlap, in the median: were they shifted?"
    )


def _of_corners(facts: Facts, side: Side, inverted: NDArray[np.bool_]) -> str:
    """Describe an order of the corners' columns that explains boxes with negative sides, and the part of the images; ""
    if no order explains them.
    """
    whole, rows = facts.agreement, np.flatnonzero(inverted & (side.image >= 0))
    if whole is None or not rows.size:
        return ""
    tested = rows
    if side is whole.found:  # the highest-scoring detections, as many as there are objects on these images
        objects = int(np.count_nonzero(np.isin(whole.truth.image, side.image[rows])))
        tested = rows[best_of(whole.confidence[rows], objects)]
    gained = {order: whole.borne_out(side, tested, change) for order, change in ORDERS.items()}
    order = max(gained, key=gained.__getitem__)
    more_objects = gained[order]
    if not more_objects:
        return ""
    more = f"columns in the order {order} are read as x1, y1, x2, y2; "
    more += f"in theirs, detections lie on {more_objects:,} more objects"
    count = side.on.images.ids.size
    held, bad = (np.bincount(side.image[which], minlength=count) > 0 for which in (side.image >= 0, rows))
    part = facts.concentrated(bad, held)
    if part is not None:
        facts.parts.append((part.images, None))
        return f"{more}; {part.says}"
    if rows.size >= _REORDERED * len(side):
        facts.causes.add((side.role, "inverted_boxes"))
    return more


def _sizes(facts: Facts) -> Iterator[Finding]:
    """Yield a finding of images without height and width; videos and samples of a recording have none and are skipped."""
    if facts.kind.scene != "image":
        return
    known = facts.truth.on.images.sizes
    count = facts.truth.on.images.ids.size
    without = np.ones(count, np.bool_) if known is None else ~(known > 0).all(axis=1)
    if without.any():
        ids = facts.truth.on.images.ids[without][:10].tolist()
        yield found("unknown_sizes", int(without.sum()), "image", records=ids, named="image")


def marks(*columns: Array) -> NDArray[np.uint64]:
    """Return a hash per row, equal for rows that are equal in all columns."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        bits = (column + 0.0).view(np.uint64) if column.dtype.kind == "f" else column.astype(np.uint64)
        mixed = ids.mix(mixed ^ bits)
    return mixed


def duplicates(*columns: Array) -> NDArray[np.bool_]:
    """Mask of the rows that equal an earlier row in all columns, shape (n,)."""
    mixed = marks(*columns)
    out = np.zeros(mixed.size, np.bool_)
    ascending = np.sort(mixed)
    if not (ascending[1:] == ascending[:-1]).any():
        return out
    order = np.argsort(mixed, kind="stable")
    out[order[1:]] = mixed[order[1:]] == mixed[order[:-1]]
    return out


def _duplicates(facts: Facts, side: Side) -> Iterator[Finding]:
    """Yield a finding of records with the same image, category and box. For objects, nearly equal boxes suffice. On
    images whose objects are all labelled twice, boxes may differ even more.
    """
    if len(side) < 2:
        return
    category = side.table.categories.codes
    crowd = [side.crowd] if side.crowd.any() else []
    again = duplicates(side.table.images.codes, category, *side.columns, *crowd)
    more, where = "", None
    if isinstance(side.table, GroundTruth):
        one, other, iou = _overlapping(side)
        close = np.zeros(len(side), np.bool_)
        close[other[iou >= SAME]] = True
        if np.count_nonzero(close & ~again) >= _FEWEST_CLOSE:
            again |= close
            more = "some with all but the same box"
        images = _doubled(side, one, other, iou)
        where = images[side.image] if images.any() else None
        if where is not None:
            again[other[(iou >= TIGHT) & where[other]]] = True
            more = f"{np.count_nonzero(again & where):,} of them on {many(int(images.sum()), 'image')} on which nearly all "
            more += f"objects have an earlier or later one beside them with an IoU of {TIGHT:g} or more"
            part = facts.gathered(images, np.bincount(side.image, minlength=images.size) > 1)
            if part is not None:
                more += f"; {np.count_nonzero(images & part.images):,} of these are among {part.says}"
    if side.drawn is not None:  # records with equal boxes may have different masks or poses
        again &= duplicates(side.table.images.codes, category, side.drawn[1].areas()) | (again & bool(more))
    again &= ~side.constant
    if side.aside.any():
        again[:] = False
        left = np.flatnonzero(~side.aside)
        again[left] = duplicates(side.table.images.codes[left], category[left], *side.columns[:, left])
        again &= ~side.constant
    if side is facts.found and facts.caused("detections", "anchor_boxes"):
        again &= facts.unreported(side.image)  # neighbouring objects have the same anchor
    if again.any():
        code = "duplicate_objects" if side.role == "ground_truth" else "duplicate_detections"
        of = side.records(again)
        if where is not None:
            of = {"records": side.on.images.ids[images].tolist(), "named": "image"}
        yield found(code, int(again.sum()), side.unit, more=more, **of)


def _overlapping(side: Side, most: int = 2_000_000) -> tuple[Array, Array, Array]:
    """Return pairs of objects of one image and category with an IoU of at least `LOOSE`: the row of the earlier object,
    the row of the later object, and the IoU.
    """
    codes = side.table.images.codes.astype(np.int64) * side.table.categories.ids.size + side.table.categories.codes
    rows = np.flatnonzero(~side.crowd & (side.boxes[:, 2:] > 0).all(axis=1))
    # Compare neighbours in the order of left edges within an image and category. Boxes with a large overlap are close
    # together in the order of left edges.
    order = rows[np.lexsort((side.boxes[rows, 0], codes[rows]))]
    made = [(order[:0], order[:0], np.zeros(0))]
    for step in range(1, 9):
        if order.size <= step or order.size * step > most:
            break
        one, other = order[:-step], order[step:]
        pairs = codes[one] == codes[other]
        if not pairs.any():
            break
        one, other = one[pairs], other[pairs]
        iou = overlaps(side.boxes[one], side.boxes[other])
        some = iou >= LOOSE
        one, other = one[some], other[some]
        made.append((np.minimum(one, other), np.maximum(one, other), iou[some]))
    one, other, iou = (np.concatenate(column) for column in zip(*made, strict=True))
    return one, other, iou


def _doubled(side: Side, one: Array, other: Array, iou: Array) -> NDArray[np.bool_]:
    """Mask of the images whose objects are labelled twice (see `PAIRED`), shape (images,). All values are False if chance
    explains the number of these images.
    """
    count = side.on.images.ids.size
    best = np.zeros(len(side))
    np.maximum.at(best, one, iou)
    np.maximum.at(best, other, iou)
    mutual = (iou == best[one]) & (iou == best[other])
    held = np.bincount(side.image[~side.crowd], minlength=count)

    def images(least: float) -> NDArray[np.bool_]:
        """Mask of the images on which nearly all objects form pairs with an IoU of at least `least`."""
        paired = np.zeros(len(side), np.bool_)
        for rows in (one, other):
            paired[rows[mutual & (iou >= least)]] = True
        return np.asarray((held > 1) & (np.bincount(side.image[paired], minlength=count) >= PAIRED * held))

    tight, loose = images(TIGHT), images(LOOSE)
    for several in (held > 1, held > 3):
        named, others = (int(np.count_nonzero(which & several)) for which in (tight, loose & ~tight))
        if tail(named, 2.0 * others + 1) < CHANCE:
            return tight
    return np.zeros(count, np.bool_)


# -------------------------------------------------------------------------------------------------------- areas and crowds


def _areas(facts: Facts) -> Iterator[Finding]:
    """Yield findings of areas that fit the box instead of the mask, or neither box nor mask."""
    side = facts.truth
    table = side.table
    assert isinstance(table, GroundTruth)
    if not len(table) or table.notices.get("missing_area", 0) == len(table):
        return
    box = np.maximum(side.boxes[:, 2:], 0).prod(axis=1)
    # half of the perimeter; rounding errors of an area are proportional to it
    around = side.boxes[:, 2:].clip(0).sum(axis=1)
    area = table.areas
    is_box = np.abs(area - box) <= np.maximum(0.02 * box, 1.5 * around + 1)
    if side.drawn is not None:
        drawn = side.drawn[1].areas()
        is_mask = np.abs(area - drawn) <= np.maximum(0.15 * drawn, 2 * around + 2)
        wrong = ~is_box & ~is_mask
        # If a mask covers less than a twentieth of its box, the mask itself is wrong.
        boxed = is_box & ~is_mask & ~table.crowd & side.sized & (drawn > 0.05 * box)
        if np.count_nonzero(boxed) >= _FEWEST:
            yield found("areas_of_boxes", int(boxed.sum()), "object", **side.records(boxed))
    else:
        wrong = (area > 1.02 * box + 1.5 * around + 1) | (area < 0.002 * box - 1)
        exact = np.abs(area - box) <= 0.005 * box + 0.5
        if np.count_nonzero(exact) >= 0.6 * len(table):
            wrong = ~is_box  # most areas equal the box area exactly, so all areas should
    wrong &= (side.boxes[:, 2:] > 0).all(axis=1)
    if wrong.any():
        true, what = (box, "box") if side.drawn is None else (drawn, "mask")
        some = wrong & (true > 0)
        # If the other areas are smaller than their boxes, as mask areas are, the scale is unknown.
        of_boxes = np.abs(area - box)[~wrong] <= around[~wrong]
        known = side.drawn is not None or (of_boxes.size > 0 and float(np.mean(of_boxes)) >= EXACT)
        more = _factor(area[some] / true[some], what, known) + _of_part(facts, wrong)
        yield found("area_misfits", int(wrong.sum()), "object", more=more, **side.records(wrong))


def _factor(times: Array, what: str, known: bool) -> str:
    """Describe the ratios of given to right areas and, if right areas are `known` and ratios similar, the image scale."""
    if not times.size:
        return f"the {what} has none"
    if times.size < _FEWEST:
        return f"{' and '.join(map(said, times.tolist()))} times that of the {what}"
    low, middle, high = np.quantile(times, [0.25, 0.5, 0.75])
    spread = f", {said(low)} to {said(high)} times for half of them" if said(low) != said(high) else ""
    of_one = known and high <= STEADY * low
    scale = f", as at {said(float(np.sqrt(middle)))} times the size of the image" if of_one else ""
    return f"{said(middle)} times that of the {what} in the median{spread}{scale}"


def _of_part(facts: Facts, which: NDArray[np.bool_]) -> str:
    """Describe the part of the images in which most of the objects in a mask lie; "" if there is none."""
    truth = facts.truth
    count = truth.on.images.ids.size
    held, flagged = (np.bincount(truth.image[rows], minlength=count) > 0 for rows in (truth.image >= 0, which))
    part = facts.concentrated(flagged, held)
    if part is None:
        return ""
    inside = int(np.count_nonzero(which & part.images[truth.image]))
    return f"; {'all' if inside == np.count_nonzero(which) else f'{inside:,}'} of them on {part.says}"


def _crowds(facts: Facts) -> Iterator[Finding]:
    """Yield a finding of crowd flags that are probably wrong, for example on polygons or on small objects."""
    side = facts.truth
    table = side.table
    assert isinstance(table, GroundTruth)
    crowd = table.crowd
    if not crowd.any() or facts.caused("ground_truth", *_CAUSES):
        return
    strange = np.zeros(len(table), np.bool_)
    why = []
    outlines = side.inspected.outlines if side.inspected is not None else None
    if outlines is not None and side.rows is not None:
        drawn = np.isin(side.rows, outlines.records)
        if (crowd & drawn).any():
            strange |= crowd & drawn
            why.append("a polygon, where crowds are run lengths")
    areas = side.boxes[:, 2:].clip(0).prod(axis=1)
    usual = np.zeros(table.categories.ids.size)
    if (~crowd).any():
        usual = _medians(table.categories.codes[~crowd], areas[~crowd], usual.size)
        small = crowd & (areas < usual[table.categories.codes])
        every, more = _all_crowds(facts, small)
        if more:
            strange |= every
            why.append(more)
        if np.count_nonzero(small & ~every) >= max(_FEWEST, SMALLER * np.count_nonzero(crowd & ~every)):
            strange |= small
            why.append(_SMALL)
        if facts.agreement is not None and not facts.causes:
            fitted = crowd & (areas < 2 * usual[table.categories.codes]) & _fitted(facts)
            if np.count_nonzero(fitted & ~every) >= max(_FEWEST, 0.1 * np.count_nonzero(crowd & ~every)):
                strange |= fitted
                why.append("found as one object by a detection")
    share = np.count_nonzero(crowd) / len(table)
    if share > 0.5:
        strange |= crowd
        why.append("more than half of all objects")
    if strange.any():
        of = ""
        if (strange != crowd).any():
            of = f"; of {np.count_nonzero(crowd):,} flagged"
            of += ", of which half would be so small if all were single objects" if _SMALL in why else ""
        more = f"{', or '.join(why)}{of}{_of_part(facts, strange)}"
        yield found("crowds_misplaced", int(strange.sum()), "object", more=more, **side.records(strange))


def _all_crowds(facts: Facts, small: Array) -> tuple[NDArray[np.bool_], str]:
    """Return a mask of the objects on images with crowds only, and a description of these images. If few images have
    crowds only, or few of the objects are `small`, all values of the mask are False and the description is empty.
    """
    side = facts.truth
    held, crowds = (
        np.bincount(side.image[which], minlength=side.on.images.ids.size) for which in (side.image >= 0, side.crowd)
    )
    every = (held > 0) & (crowds == held)
    part = facts.gathered(every, held > 0)
    if part is not None and np.mean(every[part.images & (held > 0)]) >= ALL_CROWDS:
        every &= part.images
        where = f" among {part.says}"
    else:
        some = np.count_nonzero((held > 1) & (crowds > 0) & ~every)
        if np.count_nonzero((held > 1) & every) < max(FEWEST_CROWDS, MORE_CROWDS * some):
            every[:] = False
        where = ""
    rows = every[side.image]
    if not rows.any() or np.mean(small[rows]) < SMALLER:
        return np.zeros_like(rows), ""
    return rows, f"all objects of {many(int(every.sum()), 'image')}{where}"


def _unflagged(facts: Facts) -> Iterator[Finding]:
    """Yield a finding of objects without the crowd flag that have a list of run lengths, as only crowds have in COCO."""
    side = facts.truth
    inspected = side.inspected
    if inspected is None or inspected.outlines is None or side.rows is None:
        return
    listed = np.isin(side.rows, inspected.listed_runs)
    drawn = int(np.count_nonzero(np.isin(side.rows, inspected.outlines.records)))
    plain = listed & ~side.crowd
    count = int(np.count_nonzero(listed))
    if plain.any() and _FEWEST <= count <= LISTED * drawn:
        more = f"of {count:,} with such a list, beside {drawn:,} with polygons"
        yield found("crowds_unflagged", int(plain.sum()), "object", more=more, **side.records(plain))


def _medians(codes: Array, values: Array, count: int) -> NDArray[np.float64]:
    """Return the median of the values of each code; for codes with fewer than five values, the median of all values."""
    out = np.full(count, np.median(values))
    order = np.lexsort((values, codes))
    edges = np.searchsorted(codes[order], np.arange(count + 1))
    held = np.diff(edges)
    some = held >= 5
    out[some] = values[order][(edges[:-1] + held // 2)[some]]
    return out


def _fitted(facts: Facts) -> NDArray[np.bool_]:
    """Mask of the crowds that a confident detection of their category matches like an object, shape (n,)."""
    assert facts.found is not None
    assert facts.agreement is not None
    truth = facts.truth
    rows = np.flatnonzero(truth.crowd)
    out = np.zeros(len(truth), np.bool_)
    sample = facts.agreement.rows
    sample = sample[np.isin(facts.found.image[sample], truth.image[rows])]
    by_image: dict[int, list[int]] = {}
    for row, image in zip(sample.tolist(), facts.found.image[sample].tolist(), strict=True):
        by_image.setdefault(image, []).append(row)
    pairs = [(row, other) for row in rows.tolist() for other in by_image.get(int(truth.image[row]), ())][:1_000_000]
    if not pairs:
        return out
    objects, others = np.array(pairs).T
    own = truth.table.categories.ids[truth.table.categories.codes[objects]]
    theirs = facts.found.table.categories.ids[facts.found.table.categories.codes[others]]
    fits = overlaps(truth.boxes[objects], facts.found.boxes[others]) >= 0.75
    out[objects[fits & (own.astype(str) == theirs.astype(str))]] = True
    return out
