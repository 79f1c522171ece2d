"""Check for objects that belong to images of another shard, because several shards number their images from 1."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from detmap.checks import exchanges
from detmap.checks.context import Facts
from detmap.checks.findings import AT_LEAST, Finding, found
from detmap.data.ids import locate
from detmap.errors import many

#: Minimum ratio of the number of detections that fit objects at one distance, in images, to the numbers at neighbouring
#: distances. If only some frames of a video have labels, detections on other frames fit at many distances. In 18 scenes
#: of ``tests/planting/scenes.py`` with this defect, at least 36 detections fit at one distance, and at most 3 at a
#: neighbouring distance.
TIMES = 2.0

#: Maximum number of images with objects but without detections, as a share of the images without objects. If detections
#: instead of objects were moved to other images, the images of their objects lack detections.
LEFT = 0.5

#: Maximum number of detections that are compared with objects.
_LOOKED_AT = 2_000

#: Minimum IoU at which a detection lies on an object.
_ON = 0.5


def check(facts: Facts) -> Iterator[Finding]:
    """Check for images without objects whose detections lie on objects of other images, at one distance in the order of
    ids.
    """
    whole = facts.agreement
    if whole is None or facts.causes:
        return
    truth, side = whole.truth, whole.found
    count = truth.on.images.ids.size
    bare = np.bincount(truth.image[truth.image >= 0], minlength=count) == 0
    rows = whole.rows[(whole.image >= 0) & bare[whole.image]]
    label = locate(side.table.categories.ids, truth.table.categories.ids)[side.table.categories.codes[rows]]
    rows, label = rows[label >= 0], label[label >= 0]
    if rows.size < exchanges.FEWEST:
        return
    some = np.random.default_rng(0).permutation(rows.size)[:_LOOKED_AT]
    objects = np.flatnonzero(~truth.crowd & (truth.image >= 0))
    image, steps = exchanges.distances(
        side.image[rows[some]], label[some], side.boxes[rows[some]], truth.image[objects],
        truth.table.categories.codes[objects].astype(np.int64), truth.boxes[objects],
    )  # fmt: skip
    first, last, step = next(exchanges.moved(image, steps, count), (0, 0, 0))
    held = [sum(way in one for one in steps) for way in (step - 1, step, step + 1)]
    if not step or held[1] < TIMES * max(held[0], held[2]):
        return
    lost = np.bincount(side.image[side.image >= 0], minlength=count)[~bare] == 0
    if lost.sum() > LEFT * (last - first + 1):
        return  # detections were moved instead of objects
    inside = (side.image[rows] >= first) & (side.image[rows] <= last)
    near = whole.nearest(side.image[rows[inside]] + step, side.boxes[rows[inside]])
    on = (near.overlap >= _ON) & (truth.table.categories.codes[near.object] == label[inside])
    at = np.setdiff1d(near.object[on], whole.plain.object[whole.plain.overlap >= _ON])
    ids = truth.on.images.ids
    shift = np.unique(ids[first : last + 1] - ids[first + step : last + step + 1]) if ids.dtype.kind == "i" else ids[:0]
    code = "image_ids_shifted" if shift.size == 1 else "image_ids_positions"
    meant = (
        f"each {'+' if shift[0] > 0 else '-'} {abs(int(shift[0])):,} is the one that is meant"
        if shift.size == 1
        else f"counted from image {ids[first + step]} again from image {ids[first]} on"
    )
    facts.causes.add((truth.role, code))
    more = (
        f"{meant}; on images {ids[first + step]} to {ids[last + step]} lie those of {ids[first]} to {ids[last]}, which have "
        f"detections and no objects, {many(last - first + 1, 'image')}: were parts joined that each number images from 1?"
    )
    yield found(code, at.size, truth.unit, more=more, words=AT_LEAST, **truth.records(at))
