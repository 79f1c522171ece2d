"""Checks for records that are repeated on several images, which neither detectors nor annotators produce."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detmap.checks.changes import Array
from detmap.checks.context import Facts
from detmap.checks.data_statistics import number
from detmap.checks.findings import Finding, found
from detmap.checks.image_ids import mix, signatures
from detmap.checks.inputs import Side

#: Minimum number of images with the same box. Among 40,000 random boxes in whole pixels, of about 10 ** 8 possible
#: boxes, eight pairs are equal; five equal boxes occur once in 10 ** 11 data sets.
FEWEST = 5

#: Weights of x, y, width, height and score in a sum that is rarely equal for different records.
_WEIGHTS = (1.0, 1.618, 2.236, 2.718, 3141.6)

#: Minimum number of detections, equal in all columns including scores, for two images to have the same detections.
SAME = 2


def check(facts: Facts) -> Iterator[Finding]:
    """Check for one box on many images, and for images with the detections of another image."""
    for side in facts.sides:
        if len(side) and not side.table.within_unit:
            rows = constant(side)
            side.constant = rows
            if rows.any():
                images = np.unique(side.image[rows]).size
                box = ", ".join(map(number, side.boxes[np.flatnonzero(rows)[0]].tolist()))
                more = f"x, y, width, height {box}, on {images:,} images"
                yield found("constant_boxes", int(rows.sum()), side.unit, more=more, **side.records(rows))
    if facts.found is not None and len(facts.found):
        yield from _stale(facts, facts.found)


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
        ids = facts.truth.on.images.ids[own][:10].tolist()
        yield found("same_detections", int(own.sum()), "image", records=ids, named="image")
