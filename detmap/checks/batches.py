"""Check for parts of the images with detections in reverse order within batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.changes import Array
from detmap.checks.evidence import FOUND, Evidence
from detmap.checks.findings import Finding, found
from detmap.checks.inputs import members, overlaps
from detmap.checks.rates import CHANCE, Part, tail
from detmap.errors import many

#: Largest tested number of images of a batch. The limit does not apply to a part that is in reverse order as a whole.
MOST = 128

#: Minimum number of batches with a detection that the order explains, as a share of the number expected at random. An
#: order with the wrong batch size explains detections on some images only.
EVEN = 0.7

#: Maximum ratio of the number of detections that one fixed distance between images explains to the number that the
#: reverse order explains. In reversed batches of two, half of the detections belong to the next image. If instead every
#: image holds the detections of the next image, batches of two explain only half of the detections.
ONE_STEP = 0.75

#: Maximum number of pairs of detections and objects that are compared.
_PAIRS = 4_000_000

#: Limits for confident detections on an object of the mirrored image: minimum number, and minimum share of the part's
#: confident detections. `TIMES` is the minimum ratio of their number to the number of detections on an object of their
#: own image.
FEWEST, SHARE, TIMES = 20, 0.2, 3.0


class Order(NamedTuple):
    """A reverse order: each image holds the detections of the image at the mirrored position."""

    #: Number of images of a batch, 0 if the part is one batch.
    batch: int
    #: Sum of an image's position and its mirrored position; with batches, modulo twice the batch size.
    total: int

    def batch_of(self, place: Array) -> NDArray[np.int64]:
        """Return the batch number, which may be negative, of each position."""
        return np.asarray((place - (self.total - self.batch + 1) // 2) // self.batch if self.batch else 0 * place)

    def mirrored(self, place: Array) -> NDArray[np.int64]:
        """Return the mirrored positions."""
        if not self.batch:
            return np.asarray(self.total - place)
        within = place - (self.total - self.batch + 1) // 2 - self.batch * self.batch_of(place)
        return np.asarray(place + self.batch - 1 - 2 * within)


def turned(evidence: Evidence, part: Part) -> Iterator[Finding]:
    """Yield the finding of a part whose images hold detections of other images, because images are in reverse order
    within batches or within the whole part.
    """
    rows = evidence.sure[part.images[evidence.found.image[evidence.sure]]]
    best: tuple[int, int, str, Order, NDArray[np.int64]] | None = None
    for one in evidence.division.orders:
        own, place, other = _lying(evidence, rows, one.place)
        same = int(np.count_nonzero(place == other))
        steps = np.unique((other - place)[place != other], return_counts=True)[1].max(initial=0)
        least = max(FEWEST, SHARE * rows.size, TIMES * same, float(steps) / ONE_STEP)
        tests = len(evidence.division.orders) * MOST**2
        for held, chance, order in _orders(own, place, other):
            if held < least or tail(held, 2 * chance + 1) * tests >= CHANCE:
                continue
            at = order.batch_of(one.place[evidence.found.image[rows]])
            if not _even(at, order.batch_of(place[other == order.mirrored(place)])):
                continue
            if best is None or held > best[0]:
                best = held, same, one.says, order, one.place
    if best is None:
        return
    held, same, says, order, places = best
    image = evidence.found.image
    moved = part.images & (order.mirrored(places) != places)
    of = np.flatnonzero((image >= 0) & moved[image])
    more = f"batches of {many(order.batch, 'image')} in the order of {says}" if order.batch else f"the order of {says}"
    more += (
        f"; {part.says}: of {rows.size:,} confident detections there {held:,} lie on an object of their category on the "
        f"mirrored image, and {same:,} on one of their own image"
    )
    yield found("batches_reversed", of.size, "detection", more=more, **evidence.found.records(of))


def _even(batches: Array, explained: Array) -> bool:
    """Return whether about as many batches hold an explained detection as if explained detections were drawn at random.
    The arguments are the batches of all detections, and of the explained detections.
    """
    held = np.unique(batches, return_counts=True)[1]
    expected = np.sum(1 - (1 - explained.size / batches.size) ** held)
    return bool(np.unique(explained).size >= EVEN * expected)


def _lying(evidence: Evidence, rows: Array, place: Array) -> tuple[Array, Array, Array]:
    """Return pairs of a detection at `rows` and an image on which it would lie on an object of its category. The pairs
    are given as the index of the detection, the position of its own image, and the position of the other image.
    """
    own_place = place[evidence.found.image[rows]]
    span = int(np.ptp(own_place)) + 1 if rows.size else 1
    key = evidence.object_label * evidence.images + place[evidence.object_image]
    by = np.argsort(key, kind="stable")
    key, label = key[by], evidence.label[rows] * evidence.images
    for width in (span, MOST):
        starts = np.searchsorted(key, label + np.maximum(own_place - width, 0))
        held = np.searchsorted(key, label + np.minimum(own_place + width, evidence.images - 1), "right") - starts
        if held.sum() <= _PAIRS:
            break
    held[np.cumsum(held) > _PAIRS] = 0
    own, at = members(starts, held)
    objects = by[at]
    on = overlaps(evidence.found.boxes[rows[own]], evidence.object_box[objects]) >= FOUND
    pairs = np.unique(own[on] * evidence.images + place[evidence.object_image[objects[on]]])
    own, other = np.divmod(pairs, evidence.images)
    return own, own_place[own], other


def _orders(own: Array, place: Array, other: Array) -> Iterator[tuple[int, float, Order]]:
    """Yield the best reverse order for each batch size. Also yield the number of detections that it explains, and the
    mean of this number over all orders of this batch size.
    """
    if not own.size:
        return
    for batch in range(2, MOST + 1):
        near = np.abs(place - other) < batch
        at = (place[near] + other[near]) % (2 * batch)
        held = np.bincount(at, minlength=2 * batch)  # a detection has at most one pair with each sum
        total = int(held.argmax())
        if (total - batch) % 2:  # the first position of a batch is a whole number
            yield int(held[total]), at.size / (2 * batch), Order(batch, total)
    held = np.bincount(place + other)
    yield int(held.max()), own.size / np.count_nonzero(held), Order(0, int(held.argmax()))
