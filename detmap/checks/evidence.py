"""Matches between objects and detections, used by several modules of checks.

Crowds do not count as objects. A detection is *confident* if its score is among the n highest of its category, where n
is the number of objects of the category. This criterion does not depend on the scale of scores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.copies import Copies, copies_of
from detmap.checks.inputs import Side, members, on_crowds, overlaps
from detmap.checks.rates import Division, Grouping, Order, residues
from detmap.checks.strays import strays
from detmap.data.ids import locate
from detmap.data.tables import Detections

Array = NDArray[Any]

#: Minimum IoU at which a detection finds an object: the lowest threshold of COCO and VOC.
FOUND = 0.5

#: A detection lies on no object if its IoU with every object is below this value. Neighbouring objects reach 0.1 by
#: chance.
NOTHING = 0.2

#: Maximum number of pairs of boxes compared at once, and in total; if there are more pairs, a random subset of the images
#: is compared.
_AT_ONCE, PAIRS = 250_000, 3_000_000

#: A box is a box around several objects if at least `HELD` objects of its image and category lie inside, each with at
#: least the share `WITHIN` of its area. Annotators draw a box around several objects so that it covers whole objects,
#: and the box of a single person rarely contains four smaller people.
HELD, WITHIN = 4, 0.9

#: Maximum share of tied scores for an unstable sort, followed by a sort of the tied scores. With more ties, a stable
#: sort is faster.
FEW_TIED = 0.05

#: Maximum number of objects that are compared with objects of later images, to estimate how long objects stay in place.
SAMPLE = 20_000

#: Maximum number of groups of images, such as folders, because folders with one image each are not informative.
_GROUPS = 40


def best_of_pairs(
    one: Array, starts: Array, stops: Array, others: Array, touched: Array | None = None
) -> tuple[Array, Array]:
    """Return for each box in `one` the largest IoU with ``others[start:stop]``, and the index of the box with this IoU
    (-1: none).

    `touched` is a mask of `others`; it is set to True for boxes with an IoU of at least `FOUND` with a box in `one`.
    """
    held = np.maximum(stops - starts, 0)
    best, which = np.zeros(len(one)), np.full(len(one), -1)
    ends = np.cumsum(held)
    row = 0
    while row < len(one):
        done = int(ends[row - 1]) if row else 0
        last = max(int(np.searchsorted(ends, done + _AT_ONCE, "right")), row + 1)
        count = held[row:last]
        owner = np.repeat(np.arange(row, last), count)
        if owner.size:
            first = ends[row:last] - count - done
            at = np.arange(owner.size) - first[owner - row] + starts[owner]
            values = overlaps(one[owner], others[at])
            some = np.flatnonzero(count)
            if touched is not None:
                touched[at[values >= FOUND]] = True
            best[row + some] = np.maximum.reduceat(values, first[some])
            top = np.flatnonzero((values == best[owner]) & (values > 0))[::-1]
            which[owner[top]] = at[top]
        row = last
    return best, which


def _bounds(ascending: Array, values: Array, count: int) -> tuple[Array, Array]:
    """Return where each value starts and stops in the sorted array `ascending`; all integers are in ``range(count)``."""
    if count > 4 * (ascending.size + values.size):
        return np.searchsorted(ascending, values), np.searchsorted(ascending, values, "right")
    edges = np.concatenate([[0], np.cumsum(np.bincount(ascending, minlength=count))])  # faster than searchsorted
    return edges[values], edges[values + 1]


def _with_earlier(cell: Array, boxes: Array, label: Array | None = None) -> NDArray[np.float64]:
    """Return the largest IoU of each box with an earlier box of its group. `cell` is the group of each box, in ascending
    order. With `label`, the IoU is 0 if both boxes have the same label.
    """
    starts = np.searchsorted(cell, cell)
    stops = np.arange(cell.size)
    chosen = np.flatnonzero(np.cumsum(stops - starts) <= PAIRS)
    out = np.zeros(cell.size)
    out[chosen], which = best_of_pairs(boxes[chosen], starts[chosen], stops[chosen], boxes)
    if label is not None:
        out[chosen[label[which] == label[chosen]]] = 0.0
    return out


@dataclass(eq=False)
class Evidence:
    """Matches between objects and detections."""

    truth: Side
    found: Side
    #: Scores of all detections, negated if low scores mean confidence.
    scores: NDArray[np.float64]
    #: Whether objects that cover the whole image were already reported, so that other checks ignore them.
    whole_known: bool = False

    # ------------------------------------------------------------------------------------------------------------------
    # inputs

    @cached_property
    def images(self) -> int:
        """The number of images."""
        return int(self.truth.on.images.ids.size)

    @cached_property
    def classes(self) -> int:
        """The number of categories of the ground truth."""
        return int(self.truth.table.categories.ids.size)

    @cached_property
    def label(self) -> NDArray[np.int64]:
        """Index of each detection's category among the categories of the ground truth, -1 if it is unknown."""
        table = self.found.table.categories
        return np.asarray(locate(table.ids, self.truth.table.categories.ids)[table.codes], np.int64)

    def _cell(self, image: Array, label: Array) -> NDArray[np.int64]:
        return np.asarray(image.astype(np.int64) * max(self.classes, 1) + label)

    def cell_of(self, rows: Array) -> NDArray[np.int64]:
        """Return image and category, as one integer, of the detections at `rows`."""
        return self._cell(self.found.image[rows], self.label[rows])

    @cached_property
    def objects(self) -> NDArray[np.int64]:
        """Rows of the objects, sorted by image and category."""
        good = ~self.truth.crowd & self.truth.sized & ~self.truth.constant & ~self.truth.aside
        rows = np.flatnonzero(good)
        cell = self._cell(self.truth.image[rows], self.truth.table.categories.codes[rows])
        return rows[np.argsort(cell, kind="stable")]

    @cached_property
    def object_image(self) -> NDArray[np.int64]:
        """The image of each object."""
        return self.truth.image[self.objects]

    @cached_property
    def object_label(self) -> NDArray[np.int64]:
        """The category of each object."""
        return self.truth.table.categories.codes[self.objects].astype(np.int64)

    @cached_property
    def object_box(self) -> Array:
        """The box of each object."""
        return self.truth.boxes[self.objects]

    @cached_property
    def object_cell(self) -> NDArray[np.int64]:
        """The cell (image and category as one integer) of each object, ascending."""
        return self._cell(self.object_image, self.object_label)

    @cached_property
    def detections(self) -> NDArray[np.int64]:
        """Rows of the detections that can be compared: on known images, of known categories, with an area, and not
        explained by another finding.
        """
        return np.flatnonzero((self.found.image >= 0) & (self.label >= 0) & self.found.sized & ~self.found.aside)

    @cached_property
    def least_sides(self) -> NDArray[np.float64]:
        """The smallest width and the smallest height of a detection."""
        return np.asarray(self.found.boxes[self.detections, 2:].min(axis=0, initial=np.inf))

    @cached_property
    def cell(self) -> NDArray[np.int64]:
        """Like `object_cell`, for each row of `detections`."""
        return self._cell(self.found.image[self.detections], self.label[self.detections])

    @cached_property
    def held(self) -> NDArray[np.int64]:
        """For each object, the number of detections of its category on its image."""
        new = np.diff(self.object_cell, prepend=-1) > 0
        cells = self.object_cell[new]
        starts, stops = _bounds(cells, self.cell, self.images * max(self.classes, 1))
        return np.asarray(np.bincount(starts[stops > starts], minlength=cells.size)[np.cumsum(new) - 1])

    @cached_property
    def band(self) -> NDArray[np.int64]:
        """The size band of each object: the octave of the square root of its area."""
        side = np.sqrt(self.object_box[:, 2] * self.object_box[:, 3])
        return np.asarray(np.clip(np.log2(np.maximum(side, 1)), 0, 11), np.int64)

    @property
    def aside(self) -> NDArray[np.bool_]:
        """Mask of the objects that another check already reports, shape (objects,)."""
        known = strays(self.truth)
        out = (self.truth.whole & self.whole_known) | self.truth.aside
        return np.asarray((out if known is None else out | known[1])[self.objects])

    # ---------------------------------------------------------------------------------------------------------- own category

    @cached_property
    def _own(self) -> tuple[Array, Array, Array, Array]:
        """Rows of the detections on images with objects of their category; for each of them, the best-overlapping
        object and its IoU. The last array is a mask of the objects that a detection finds.
        """
        starts, stops = _bounds(self.object_cell, self.cell, self.images * max(self.classes, 1))
        rows = np.flatnonzero(stops > starts)
        starts, stops = starts[rows], stops[rows]
        chosen = self._thinned(self.found.image[self.detections[rows]], stops - starts, self.looked_at, seed=0)
        rows, starts, stops = rows[chosen], starts[chosen], stops[chosen]
        boxes = self.found.boxes[self.detections[rows]]
        found = np.zeros(self.objects.size, np.bool_)
        best, which = best_of_pairs(boxes, starts, stops, self.object_box, found)
        return self.detections[rows], which, best, found

    @property
    def pairs(self) -> tuple[Array, Array, Array]:
        """Rows of the detections on images with objects of their category; for each detection, the best-overlapping
        object (-1: none) and its IoU.
        """
        return self._own[:3]

    def _thinned(self, image: Array, held: Array, looked_at: NDArray[np.bool_], seed: int) -> NDArray[np.bool_]:
        """Mask of the rows to compare. If there are more than `PAIRS` pairs, only rows on a random subset of images are
        compared, and this subset is written to `looked_at`.
        """
        pairs = np.bincount(image, held, self.images) if image.size else np.zeros(self.images)
        if pairs.sum() <= PAIRS:
            return np.ones(image.size, np.bool_)
        order = np.random.default_rng(seed).permutation(self.images)
        looked_at[:] = False
        looked_at[order[np.cumsum(pairs[order]) <= PAIRS]] = True
        return np.asarray(looked_at[image])

    @cached_property
    def looked_at(self) -> NDArray[np.bool_]:
        """Mask of the images that are compared, shape (images,): all, unless there are too many pairs."""
        return np.ones(self.images, np.bool_)

    @cached_property
    def matched(self) -> tuple[Array, Array]:
        """For each object the largest IoU with a detection of its category, and the best score of the detections of its
        category that find it.
        """
        rows, which, best, _ = self._own
        overlap, score = np.zeros(self.objects.size), np.full(self.objects.size, -np.inf)
        some = which >= 0
        np.maximum.at(overlap, which[some], best[some])
        some &= best >= FOUND
        np.maximum.at(score, which[some], self.scores[rows[some]])
        return overlap, score

    @cached_property
    def hit(self) -> NDArray[np.bool_]:
        """Mask of the objects that a detection of their category finds, shape (objects,)."""
        return np.asarray(self._own[3])

    @cached_property
    def finders(self) -> tuple[Array, Array]:
        """For each object found, the row of the best-scoring detection of its category that finds it, and the object's
        index.
        """
        rows, which, best, _ = self._own
        some = np.flatnonzero((which >= 0) & (best >= FOUND))
        order = some[np.lexsort((-self.scores[rows[some]], which[some]))]
        first = order[np.unique(which[order], return_index=True)[1]] if order.size else order
        return rows[first], which[first]

    @cached_property
    def copies(self) -> Copies:
        """Whether the detections of `finders` are copies of the objects that they find."""
        rows, objects = self.finders
        return copies_of(self.found.boxes[rows], self.object_box[objects], self.found.sizes[rows])

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Mask of the objects on compared images, shape (objects,)."""
        _ = self._own
        return np.asarray(self.looked_at[self.object_image])

    # ------------------------------------------------------------------------------------------------------------ confident

    @cached_property
    def by_score(self) -> NDArray[np.int64]:
        """Indices into `detections`, by descending score; ties in the order of the file."""
        values = -self.scores[self.detections]
        ascending = np.sort(values)
        same = np.append(ascending[1:] == ascending[:-1], False)
        if np.count_nonzero(same) > FEW_TIED * values.size:
            return np.argsort(values, kind="stable")
        order = np.argsort(values)  # twice as fast as a stable sort
        tied = np.flatnonzero(same | np.append(False, same[:-1]))
        order[tied] = order[tied][np.lexsort((order[tied], ascending[tied]))]
        return order

    @cached_property
    def sure(self) -> NDArray[np.int64]:
        """Rows of the confident detections, by category and descending score."""
        label = self.label[self.detections]
        objects = np.bincount(self.object_label, minlength=self.classes)
        held = np.bincount(label, minlength=self.classes)
        order = self.by_score
        small = np.min_scalar_type(max(self.classes, 1))  # numpy sorts integers of at most 16 bits by radix
        order = order[np.argsort(label[order].astype(small), kind="stable")]
        rank = np.arange(order.size) - np.repeat(np.cumsum(held) - held, held)
        return self.detections[order[rank < objects[label[order]]]]

    @cached_property
    def sure_rank(self) -> NDArray[np.float64]:
        """The relative rank of each confident detection in its category, from 0 (best) to 1."""
        label = self.label[self.sure]
        held = np.bincount(label, minlength=self.classes)
        return np.asarray(
            (np.arange(label.size) - np.repeat(np.cumsum(held) - held, held)) / np.maximum(held, 1)[label]
        )

    @cached_property
    def _any(self) -> tuple[Array, Array]:
        """For each confident detection the largest IoU with an object of any category, and the object (-1: none)."""
        image = self.found.image[self.sure]
        starts, stops = _bounds(self.object_image, image, self.images)
        chosen = self._thinned(image, stops - starts, self.sure_looked_at, seed=1)
        best, which = np.zeros(self.sure.size), np.full(self.sure.size, -1)
        best[chosen], which[chosen] = best_of_pairs(
            self.found.boxes[self.sure[chosen]], starts[chosen], stops[chosen], self.object_box
        )
        return best, which

    @cached_property
    def sure_looked_at(self) -> NDArray[np.bool_]:
        """Mask of the images that are compared across categories, shape (images,)."""
        return np.ones(self.images, np.bool_)

    @property
    def near(self) -> NDArray[np.float64]:
        """The largest IoU of each confident detection with any object."""
        return np.asarray(self._any[0])

    @property
    def nearest(self) -> NDArray[np.int64]:
        """For each confident detection the object with the largest IoU, as an index into `objects` (-1: none)."""
        return np.asarray(self._any[1])

    @cached_property
    def alone(self) -> NDArray[np.bool_]:
        """Mask of the confident detections that lie neither on an object nor on a crowd. Images with an object whose box
        has no area are left out, because detections may lie on such an object.
        """
        _ = self._any
        image = self.found.image[self.sure]
        broken = self.truth.image[~self.truth.sized & ~self.truth.crowd & (self.truth.image >= 0)]
        out = (self.near < NOTHING) & self.sure_looked_at[image] & ~np.isin(image, broken)
        return np.asarray(out & ~on_crowds(self.truth, image, self.found.boxes[self.sure], NOTHING))

    @cached_property
    def taken_for(self) -> tuple[Array, Array]:
        """For each object the category of the best confident detection on it, and this detection's index into `sure`
        (-1: none).
        """
        on = np.flatnonzero((self.near >= FOUND) & (self.nearest >= 0))
        order = on[np.lexsort((self.sure_rank[on], self.nearest[on]))]
        first = order[np.unique(self.nearest[order], return_index=True)[1]] if order.size else order
        label, by = np.full(self.objects.size, -1), np.full(self.objects.size, -1)
        label[self.nearest[first]] = self.label[self.sure[first]]
        by[self.nearest[first]] = first
        return label, by

    @cached_property
    def between_detections(self) -> NDArray[np.float64]:
        """The largest IoU of each confident detection with a better detection of its image and category."""
        return self._between(self.found.boxes[self.sure])

    def _between(self, boxes: Array) -> NDArray[np.float64]:
        """Return the values of `between_detections` with `boxes` in place of the boxes of the confident detections."""
        cell = self._cell(self.found.image[self.sure], self.label[self.sure])
        order = np.argsort(cell, kind="stable")  # by descending score within a cell
        out = np.zeros(order.size)
        out[order] = _with_earlier(cell[order], boxes[order])
        return out

    @cached_property
    def suppressed(self) -> float:
        """Minimum IoU at which non-maximum suppression removes one of two detections. The value is the first of
        `THRESHOLDS` that the largest IoU between detections of an image rarely exceeds, else `SUPPRESSED`.
        """
        largest = np.zeros(self.images)
        np.maximum.at(largest, self.found.image[self.sure], self.between_detections)
        for threshold in THRESHOLDS:
            below = np.count_nonzero((largest >= threshold - 2 * WIDTH) & (largest < threshold))
            above = np.count_nonzero((largest >= threshold) & (largest < threshold + WIDTH))
            if below >= FEWEST_BELOW and above <= DIP * below:
                return threshold
        return SUPPRESSED

    @property
    def twins(self) -> NDArray[np.bool_]:
        """Mask of the confident detections whose IoU with a better detection of their image and category is at
        least `suppressed`. Equal boxes are excluded because they have their own finding.
        """
        return np.asarray((self.between_detections >= self.suppressed) & (self.between_detections < 0.9999))

    @cached_property
    def enlarged(self) -> NDArray[np.float64]:
        """Median factors by which detections of each category are wider and higher than the objects that they find,
        shape (categories, 2); at least 1.
        """
        rows, objects = self.finders
        label = self.object_label[objects]
        larger = self.found.boxes[rows, 2:] / self.object_box[objects, 2:]
        out = np.ones((max(self.classes, 1), 2))
        for one in np.unique(label).tolist():
            out[one] = np.maximum(np.median(larger[label == one], axis=0), 1)
        return out

    @cached_property
    def twins_of_size(self) -> NDArray[np.bool_]:
        """Like `twins`, but boxes that are larger than their objects (see `enlarged`) are first reduced to the size of
        the objects. If boxes are enlarged after non-maximum suppression, they overlap more than the suppression allows.
        """
        boxes = self.found.boxes[self.sure].copy()
        sides = boxes[:, 2:] / self.enlarged[self.label[self.sure]]
        boxes[:, :2] += (boxes[:, 2:] - sides) / 2
        boxes[:, 2:] = sides
        return self._between(boxes) >= self.suppressed

    @cached_property
    def doubled(self) -> NDArray[np.bool_]:
        """Mask of the confident detections whose IoU with a detection of another category and a similar score is at least
        `SUPPRESSED`. Scores are similar if their ratio is at least `AS_HIGH`.
        """
        image = self.found.image[self.sure]
        order = np.argsort(image, kind="stable")
        ascending = image[order]
        starts = np.searchsorted(ascending, ascending)
        held = np.arange(order.size) - starts
        held[np.cumsum(held) > PAIRS] = 0
        owner = np.repeat(np.arange(order.size), held)
        other = np.arange(owner.size) - np.repeat(np.cumsum(held) - held, held) + starts[owner]
        one, other = order[owner], order[other]
        label, scores = self.label[self.sure], self.scores[self.sure]
        some = label[one] != label[other]
        some &= np.minimum(scores[one], scores[other]) >= AS_HIGH * np.maximum(scores[one], scores[other])
        one, other = one[some], other[some]
        boxes = self.found.boxes[self.sure]
        same = overlaps(boxes[one], boxes[other]) >= SUPPRESSED
        out = np.zeros(order.size, np.bool_)
        out[one[same]] = out[other[same]] = True
        return out

    @cached_property
    def between_any(self) -> tuple[Array, Array]:
        """Two arrays. The first has the largest IoU of each confident detection with an earlier detection of any
        category on its image. The second has the largest IoU of each object with an earlier object of another category
        on its image.
        """
        none = np.zeros(0)
        if self.classes < 2:
            return none, none
        image = self.found.image[self.sure]
        order = np.argsort(image, kind="stable")
        detections = _with_earlier(image[order], self.found.boxes[self.sure[order]])
        return detections, _with_earlier(self.object_image, self.object_box, self.object_label)

    @cached_property
    def frames(self) -> float:
        """Expected number of consecutive images on which an object stays in place: 1 for photographs, the length of tracks
        for videos.

        Consecutive images with the same object are not independent evidence. The estimate is the share of objects that
        overlap an object of their category on the next image, corrected by the same share for images half of the data
        away.
        """
        near, far = self._stays(1), self._stays(max(self.images // 2, 10))
        share = (near - far) / (1 - far) if near > 2 * far else 0.0
        share = max(share, near if far > 0.5 else 0.0)
        return 1 / (1 - min(share, 0.98))

    def _stays(self, step: int) -> float:
        """Return the share of the objects whose IoU with an object of their category `step` images later is at least
        `FOUND`.
        """
        if self.images <= step or not self.objects.size:
            return 0.0
        later = self.object_cell + step * max(self.classes, 1)
        starts, stops = (np.searchsorted(self.object_cell, later, way) for way in ("left", "right"))
        rows = np.flatnonzero(self.object_image < self.images - step)[:SAMPLE]
        best = best_of_pairs(self.object_box[rows], starts[rows], stops[rows], self.object_box)[0]
        return float(np.mean(best >= FOUND)) if rows.size else 0.0

    @cached_property
    def around(self) -> NDArray[np.bool_]:
        """Mask of the compared objects that are boxes around several other objects (see `HELD`), shape (objects,)."""
        cell, box = self.object_cell, self.object_box
        starts, stops = (np.searchsorted(cell, cell, way) for way in ("left", "right"))
        area = box[:, 2] * box[:, 3]
        several = np.flatnonzero(self.seen & (stops - starts > HELD))
        several = several[np.cumsum(stops[several] - starts[several]) <= PAIRS]
        owner, other = members(starts[several], (stops - starts)[several])
        owner = several[owner]
        near = np.maximum(box[owner, :2], box[other, :2])
        far = np.minimum(box[owner, :2] + box[owner, 2:], box[other, :2] + box[other, 2:])
        both = np.maximum(far - near, 0).prod(axis=1)
        inside = (both >= WITHIN * area[other]) & (area[other] < 0.5 * area[owner])
        return np.asarray(np.bincount(owner[inside], minlength=area.size) >= HELD)

    @cached_property
    def between_objects(self) -> NDArray[np.float64]:
        """The largest IoU of each object with an earlier object of its image and category; 0 for boxes around several
        objects, which are not compared.
        """
        out, single = np.zeros(self.objects.size), ~self.around
        out[single] = _with_earlier(self.object_cell[single], self.object_box[single])
        return out

    @cached_property
    def among_objects(self) -> NDArray[np.float64]:
        """The largest IoU of each object with any other object of its image and category. Boxes around several objects
        are left out.
        """
        out, single = np.zeros(self.objects.size), np.flatnonzero(~self.around)[::-1]
        out[single] = _with_earlier(-self.object_cell[single], self.object_box[single])
        return np.maximum(self.between_objects, out)

    def beside_found(self, limit: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return two masks of the compared objects on an image where another object of their category has a detection
        of its own. The first mask marks objects whose IoU with the other object exceeds `limit`; the second mask marks
        the remaining objects.
        """
        own = ~np.isneginf(self.matched[1])
        new = np.diff(self.object_cell, prepend=-1) > 0
        at = np.cumsum(new) - 1
        beside = self.seen & (np.bincount(at[own], minlength=np.count_nonzero(new))[at] > own)
        starts, stops = (np.searchsorted(self.object_cell, self.object_cell, way) for way in ("left", "right"))
        some = np.flatnonzero(beside & (self.among_objects > limit))
        some = some[np.cumsum(stops[some] - starts[some]) <= PAIRS]
        owner, other = members(starts[some], (stops - starts)[some])
        owner = some[owner]
        pairs = own[other] & (owner != other) & ~self.around[owner] & ~self.around[other]
        owner, other = owner[pairs], other[pairs]
        over = np.zeros(own.size, np.bool_)
        over[owner[overlaps(self.object_box[owner], self.object_box[other]) > limit]] = True
        return over, beside & ~(self.among_objects > limit)

    # ---------------------------------------------------------------------------------------------------------------- parts

    @cached_property
    def division(self) -> Division:
        """The parts of the images that are compared: ranges of images in several orders, and groups such as folders."""
        on = self.truth.on.images
        orders = [Order("ids", np.arange(self.images))]
        for says, place in self._other_orders():
            if not any((place == one.place).all() for one in orders):
                orders.append(Order(says, place))
        groupings = list(residues(self.images))
        if on.names is not None:
            folders = [name.replace("\\", "/").rpartition("/")[0] for name in on.names]
            groupings += _grouped("the images in the folder {}", folders)
            heads = [re.match(r"\D*", name.replace("\\", "/").rpartition("/")[2])[0] for name in on.names]  # type: ignore[index]
            groupings += _grouped("the images whose names begin with {}", heads)
        if on.sizes is not None:
            groupings += _grouped("the images of {}", [f"{w} x {h}" for h, w in on.sizes.astype(int).tolist()])
        return Division(on.ids, orders, groupings)

    def _other_orders(self) -> list[tuple[str, NDArray[np.int64]]]:
        """Return orders of images other than by id: in the list of images, by file name, by first record in each file."""
        on = self.truth.on.images
        out = []
        inspected = self.truth.inspected
        listed = [] if inspected is None else list(dict.fromkeys(inspected.images))
        if len(listed) == self.images and all(isinstance(one, type(listed[0])) for one in listed):
            at = locate(np.array(listed, on.ids.dtype), on.ids)
            if (at >= 0).all():
                out.append(("the list of images", np.argsort(at, kind="stable")))
        if on.names is not None and all(on.names):
            by_name = sorted(range(self.images), key=on.names.__getitem__)
            out.append(("file names", np.argsort(np.array(by_name), kind="stable")))
        for says, side in (("the file of detections", self.found), ("the file of objects", self.truth)):
            images = side.image[side.image >= 0]
            first = np.full(self.images, images.size)
            np.minimum.at(first, images, np.arange(images.size))
            runs = np.count_nonzero(np.diff(images) != 0) + 1
            if runs <= 1.02 * np.unique(images).size:  # the file lists the records of each image together
                there = first < images.size  # images without records follow the image with the previous id
                filled = np.maximum.accumulate(np.where(there, np.arange(self.images), -1))
                key = np.where(filled >= 0, first[np.maximum(filled, 0)], -1)
                out.append((says, np.argsort(np.lexsort((np.arange(self.images), key)), kind="stable")))
        return out


#: Each of `THRESHOLDS` is tested as the threshold of non-maximum suppression. On at least `FEWEST_BELOW` images, the
#: largest IoU must lie up to 2 * `WIDTH` below the threshold. On at most `DIP` times as many images, the largest IoU
#: may lie up to `WIDTH` above the threshold. Without suppression, at least a third as many images lie above the
#: threshold as below.
THRESHOLDS, WIDTH, FEWEST_BELOW, DIP = (0.45, 0.5, 0.55, 0.6, 0.65, 0.7), 0.05, 8, 0.2

#: Minimum IoU at which non-maximum suppression is assumed to remove one of two detections. Common thresholds are 0.45
#: to 0.7.
SUPPRESSED = 0.75

#: Minimum ratio of the lower to the higher score of two detections of different categories in the same place. Many models
#: write a box under several categories. Of 587 confident detections for VOC2007 in the place of another category's
#: detection, 256 reach this ratio.
AS_HIGH = 0.7


def _grouped(says: str, values: list[str]) -> list[Grouping]:
    """Return a list with the grouping of images by `values`; an empty list if there are too few or too many distinct
    values.
    """
    names = sorted(set(values))
    if not 2 <= len(names) <= _GROUPS:
        return []
    place = {name: at for at, name in enumerate(names)}
    return [Grouping(says, np.array([place[one] for one in values], np.int64), [name or "." for name in names])]


def evidence_of(truth: Side, found: Side, scores: NDArray[np.float64] | None = None) -> Evidence:
    """Return the matches between objects and detections; `scores` replace those of the table."""
    assert isinstance(found.table, Detections)
    return Evidence(truth, found, found.table.scores if scores is None else scores)
