"""Checks of masks, polygons and keypoints: whether they can be read, and lie within their boxes and images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.boxes import _CAUSES
from detmap.checks.changes import Array
from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.findings import AT_LEAST, Finding, found, names
from detmap.checks.inputs import Side, as_sizes, overlaps
from detmap.checks.rates import CHANCE, tail
from detmap.data.tables import GroundTruth
from detmap.errors import many
from detmap.shapes import Kind

#: Maximum number of pixels by which a polygon may exceed its image, because annotators click on the edge.
_EDGE = 2.0

#: Maximum distance of a keypoint from its box: this share of the box's side, plus this number of pixels.
_NEAR, _PIXELS = 0.25, 4.0

#: Maximum distance of a detection's keypoint from the image, as a share of the image's side.
_BEYOND = 0.5

#: Minimum shift of a mask relative to its box, in pixels. A mask of whole pixels may end one pixel inside or outside of
#: its box.
SHIFT = 2.0

#: For masks drawn at a lower resolution: minimum number of distinct rows in which a mask's runs end. The outline of a
#: mask of full resolution passes through nearly all of its rows, or at least through all of its columns. The probability
#: that fourteen random rows are all even or all odd is 1 / 8,192.
ROWS = 14

#: Maximum number of masks whose rows are compared.
LOOKED_AT = 1_000


def check(facts: Facts) -> Iterator[Finding]:
    """Check for records that could not be read, and masks, polygons and keypoints that do not fit boxes or images."""
    for side in facts.sides:
        yield from _refused(side)
        if side.drawn is not None:
            yield from _masks(facts, side, *side.drawn)
        if side.posed is not None:
            yield from _poses(facts, side, *side.posed)
    yield from _polygons(facts)


def _refused(side: Side) -> Iterator[Finding]:
    """Yield findings of records that strict reading refuses."""
    by_code: dict[str, list[Any]] = {}
    for one in side.refused:
        by_code.setdefault(one.code, []).append(one)
    for code, given in by_code.items():
        # missing geometry is reported below
        problems = list(dict.fromkeys(one.problem for one in given if code != "missing_shapes"))
        unit = given[0].unit or side.unit
        yield found(code, len(given), unit, records=[one.record for one in given], more=names(problems, 3))
    if not {"missing_shapes", "no_shapes"} & set(by_code):
        for kind, without in side.shapeless.items():  # a record may lack several kinds of geometry
            if without:
                yield found("missing_shapes", without, side.unit, more=kind)


def _masks(facts: Facts, side: Side, kind: Kind, masks: Any) -> Iterator[Finding]:
    assert kind.image_sizes is not None
    sizes = kind.image_sizes(masks)[:, ::-1].astype(np.float64)
    known = np.isfinite(side.sizes).all(axis=1)
    other = known & (sizes != side.sizes).any(axis=1)
    if other.any() and not facts.caused(side.role, "image_sizes_swapped"):
        turned = other & (sizes[:, ::-1] == side.sizes).all(axis=1)
        more = f"of {int(turned.sum()):,} height and width are swapped" if turned.any() else ""
        yield found("mask_sizes", int(other.sum()), side.unit, more=more, **side.records(other))
    yield from _coarse(side, masks)
    areas = masks.areas()
    empty = areas == 0
    if empty.any():
        yield found("empty_masks", int(empty.sum()), side.unit, **side.records(empty))
    if facts.caused(side.role, *_CAUSES):
        return
    bounds = as_sizes(masks.bounds())
    # Masks consist of whole pixels but boxes have fractions, so a difference of up to two pixels is ignored.
    grown = np.maximum(side.boxes[:, 2:], 0) + 2
    apart = np.abs(side.boxes[:, :2] + side.boxes[:, 2:] / 2 - bounds[:, :2] - bounds[:, 2:] / 2)
    off = (
        ~empty & (overlaps(side.boxes, bounds) < 0.5) & ((apart > 2).any(axis=1) | (bounds[:, 2:] > grown).any(axis=1))
    )
    off |= ~empty & (overlaps(side.boxes, bounds) < 0.25) & (areas > 64)
    moved, more = shifted(side.boxes, bounds, ~empty)
    off = (off | moved) & (side.boxes[:, 2:] > 0).all(axis=1)
    if off.any():
        yield found("masks_off_boxes", int(off.sum()), side.unit, more=more, **side.records(off))


def _coarse(side: Side, masks: Any) -> Iterator[Finding]:
    """Yield a finding of masks that were drawn at a lower resolution and scaled up."""
    rows = np.flatnonzero(masks.areas() > 0)
    words = "{many}"
    if rows.size > LOOKED_AT:
        rows, words = np.sort(np.random.default_rng(0).permutation(rows)[:LOOKED_AT]), AT_LEAST
    held = masks.take(rows).arrays()
    step = steps(held["ends"], held["stops"], held["sizes"][:, 0])
    known, coarse = int(np.count_nonzero(step > 0)), rows[step > 1]
    if tail(coarse.size, known / 2 ** (ROWS - 1) + 0.5) < CHANCE:
        more = many(int(np.bincount(step[step > 1]).argmax()), "pixel")
        yield found("coarse_masks", coarse.size, side.unit, more=more, words=words, **side.records(coarse))


def steps(ends: Array, stops: Array, heights: Array) -> NDArray[np.int64]:
    """Return for each mask the step, in pixels, of the grid on which its outline lies.

    The step is the greatest common divisor of the distances between rows in which runs end, and between columns at which
    these rows change. The step is 0 for masks with fewer than `ROWS` rows in which runs end, or half as many columns at
    which these rows change.

    The runs of mask *i* end at ``ends[stops[i - 1]:stops[i]]``, counted column by column.
    """
    owner = np.repeat(np.arange(stops.size), np.diff(stops, prepend=0))
    height = np.maximum(heights, 1)[owner]
    places = ends.astype(np.int64)
    inner = places % height > 0  # runs that end at the bottom of a column are cut by the image
    owner, places, height = owner[inner], places[inner], height[inner]
    rows = _divisor(owner, places % height, stops.size, ROWS)
    coarse = (rows > 1)[owner]
    owner, places, height = owner[coarse], places[coarse], height[coarse]
    most = int(places.max(initial=0)) + int(height.max(initial=1)) + 1
    keys = owner * most + places
    starts, after = ~np.isin(keys - height, keys), ~np.isin(keys + height, keys)
    at = np.concatenate([(places // height)[starts], (places // height)[after] + 1])
    columns = _divisor(np.concatenate([owner[starts], owner[after]]), at, stops.size, ROWS // 2)
    return np.where(rows > 1, np.where(columns > 0, np.gcd(rows, columns), 0), rows)


def _divisor(owner: Array, values: Array, count: int, least: int) -> NDArray[np.int64]:
    """Return the greatest common divisor of the gaps between each owner's distinct values; 0 for fewer than `least`
    values.
    """
    most = int(values.max(initial=0)) + 1
    keys = np.unique(owner * most + values)
    of = keys // most
    apart = np.diff(keys)[of[1:] == of[:-1]]
    held = np.bincount(of, minlength=count)
    out = np.zeros(count, np.int64)
    several = held > 1
    if several.any():
        first = np.cumsum(np.maximum(held - 1, 0)) - np.maximum(held - 1, 0)
        out[several] = np.gcd.reduceat(apart, first[several])
    return np.where(held >= least, out, 0)


def shifted(boxes: Array, bounds: Array, known: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], str]:
    """Return flags of masks that are shifted relative to their boxes in the prevailing direction, and the shift in words.

    A shifted mask exceeds its box on one side and ends early on the opposite side. A mask that a model draws within its
    box exceeds the box on neither side.
    """
    near, far = bounds[:, :2] - boxes[:, :2], (bounds - boxes)[:, :2] + (bounds - boxes)[:, 2:]
    middle = (near + far) / 2
    sure = (near * far > 0) & (np.abs(near - far) <= 0.5 * np.abs(middle)) & (np.abs(middle) >= SHIFT) & known[:, None]
    out = np.zeros(len(boxes), np.bool_)
    said = [0.0, 0.0]
    for axis in (0, 1):
        right, left = sure[:, axis] & (middle[:, axis] > 0), sure[:, axis] & (middle[:, axis] < 0)
        most, rest = (right, left) if np.count_nonzero(right) >= np.count_nonzero(left) else (left, right)
        count = int(np.count_nonzero(most))
        if tail(count, 1.5 * np.count_nonzero(rest) + 1) < CHANCE:
            out |= most
            said[axis] = float(np.median(middle[most, axis]))
    count = int(np.count_nonzero(out))
    words = f"{count:,} of them shifted by {said[0]:+.1f} and {said[1]:+.1f} pixels (x, y), in the median"
    return out, words if count else ""


def _polygons(facts: Facts) -> Iterator[Finding]:
    """Yield findings of polygons as written in the file of the ground truth, before reading normalises them."""
    side = facts.truth
    outlines = side.inspected.outlines if side.inspected is not None else None
    if outlines is None or side.rows is None or not (side.rows.size and outlines.records.size):
        return
    row_of = np.full(int(max(side.rows.max(initial=-1), outlines.records.max())) + 1, -1)
    row_of[side.rows] = np.arange(side.rows.size)
    rows = row_of[outlines.records]
    odd = outlines.numbers < 6
    odd |= outlines.numbers % 2 == 1
    if odd.any():
        whose = np.unique(outlines.records[odd]).tolist()
        yield found("odd_polygons", int(odd.sum()), "polygon", records=whose)
    there = (rows >= 0) & (outlines.numbers >= 2)
    sizes = np.where(there[:, None], side.sizes[np.maximum(rows, 0)], np.inf)
    within = there & (outlines.low >= 0).all(axis=1) & (outlines.high <= 1).all(axis=1) & np.isfinite(sizes).all(axis=1)
    within &= (sizes > 2).all(axis=1)
    if np.count_nonzero(within) >= 3:
        records = np.unique(outlines.records[within])
        yield found("normalised_polygons", records.size, "object", records=records.tolist())
    if facts.caused(side.role, "image_sizes_swapped"):
        return
    reach = np.maximum((outlines.high - sizes).max(axis=1), -outlines.low.min(axis=1))
    beyond = there & np.isfinite(sizes).all(axis=1) & (reach > _EDGE)
    if beyond.any():
        records = np.unique(outlines.records[beyond])
        more = f"by more than {_EDGE:g} pixels, and by {number(reach[beyond].max())} at most"
        yield found("outside_polygons", records.size, "object", records=records.tolist(), more=more)


def _poses(facts: Facts, side: Side, kind: Kind, poses: Any) -> Iterator[Finding]:
    """Yield findings of labelled points outside of their boxes or images, and of wrong counts and flags of points."""
    assert kind.points is not None
    counts, place, flag, said = kind.points(poses)
    if not counts.size:
        return
    owner = np.repeat(np.arange(counts.size), counts)
    labelled = flag > 0
    if isinstance(side.table, GroundTruth):
        seen = np.bincount(owner[labelled], minlength=counts.size)
        wrong = seen != said
        if wrong.any() and not side.table.notices.get("missing_num_keypoints"):
            yield found("keypoint_counts", int(wrong.sum()), side.unit, **side.records(wrong))
        strange = np.unique(owner[~np.isin(flag, (0, 1, 2))])
        if strange.size:
            yield found("keypoint_flags", strange.size, side.unit, **side.records(strange))
        common = np.bincount(counts).argmax()
        others = np.flatnonzero(counts != common)
        if others.size and side.table.categories.ids.size == 1:
            more = f"most have {common} points"
            yield found("bad_keypoints", others.size, side.unit, more=more, **side.records(others))
    if facts.caused(side.role, *_CAUSES):
        return
    boxes, sizes = side.boxes[owner], side.sizes[owner]
    if isinstance(side.table, GroundTruth):
        margin = _NEAR * np.maximum(boxes[:, 2:], 0) + _PIXELS
        low, high = boxes[:, :2] - margin, boxes[:, :2] + boxes[:, 2:] + margin
        more = f"of its box, by more than {_NEAR:.0%} of its side and {_PIXELS:g} pixels"
    else:  # models predict all points, also hidden points, and often no boxes
        low, high = -_BEYOND * sizes, (1 + _BEYOND) * sizes
        more = f"of its image, by more than {_BEYOND:.0%} of its side"
    with np.errstate(invalid="ignore"):
        out = labelled & ((place < low) | (place > high)).any(axis=1)
    rows = np.unique(owner[out & np.isfinite(boxes).all(axis=1)])
    if rows.size:
        yield found("outside_keypoints", rows.size, side.unit, more=more, **side.records(rows))
