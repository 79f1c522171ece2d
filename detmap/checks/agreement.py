"""Tests whether detections overlap objects, or would overlap them if ids or boxes were read in another way.

A hypothesis is a possible error in ids or boxes, together with the change that undoes it. The *gain* of a hypothesis is
the number of sampled detections that overlap an object well only after the change. The gain by chance is measured in
the same way, with detections moved to other images. A hypothesis is accepted if its gain is far larger than the gain by
chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.checks.changes import CHANGES, QUARTERS, TURNS, Array, Change, as_sizes, resized, scaled
from detmap.checks.counts import Counts
from detmap.checks.inputs import Side, best_of, on_crowds, overlaps
from detmap.checks.rates import tail
from detmap.data.ids import locate
from detmap.shapes import Boxes
from detmap.shapes.kinds import BOXES

#: Maximum number of detections in the sample, and maximum number of compared pairs of a detection and an object.
_SAMPLE, _PAIRS = 20_000, 1_000_000

#: Approximate number of detections in a smaller sample that is tested first; a hypothesis without a gain in this sample
#: is rejected early.
_SCREENED = 2_500

#: Common input sizes of models: the shorter side, and the maximum of the longer side, in pixels.
_INPUTS = ((800, 1333), (600, 1000))

#: A detection gains by a change if its IoU with every object is below `_HARDLY` before the change, and its IoU with one
#: is at least `_WELL` after it.
_WELL, _HARDLY = 0.6, 0.3

#: Maximum p-value of the gain of an accepted hypothesis.
_CHANCE = 1e-5

#: The median IoU of gaining detections may be at most `_WORSE` below the median of detections that overlap an object
#: well without the change. Boxes moved to a wrong place barely reach `_WELL`. The codes in `_ROUNDED` are exempt
#: because their boxes are coarsely rounded.
_WORSE, _ROUNDED = 0.1, {"normalised_boxes"}

#: Codes of hypotheses that may move boxes only a little. For these codes, the gain of the opposite move counts as a
#: gain by chance.
_NEARBY = {"scaled_boxes", "shifted_boxes"}

#: Limits of the test for objects cut at the middle of the image: such a half, scaled by 2, overlaps the whole object.
#: `_MIDDLE` is the maximum distance of an edge from the middle in pixels, because the middle of an odd side is rounded.
#: At least the share `_ENDING` of the detections that gain end at the middle. `_BEGINNING` is the minimum ratio of the
#: number of sampled boxes that begin at the middle to the number that end there.
_MIDDLE, _ENDING, _BEGINNING = 0.51, 0.5, 0.5

#: Minimum share of gaining detections in the sample, for a hypothesis to be accepted.
_SHARE = 0.01

#: Limits for a hypothesis below `_SHARE` that is kept in `Agreement.faint`: minimum share of gaining detections, and
#: maximum p-value. The module `parts` reports such a hypothesis if no part of the images differs from the rest. For VOC's
#: 14,976 objects and a detector without a defect, the p-value of every hypothesis is at least 0.17.
_FAINT, _FAINT_CHANCE = 0.002, 1e-7

#: Number of images with objects below which the gain by chance is also measured with mirrored boxes.
_FEW_IMAGES = 20

#: Minimum share of gaining detections for the hypothesis that ids belong to neighbouring images; `parts` reports
#: smaller shares. The limit does not apply if a constant added to the ids explains a part of the gain.
_ROTATED = 0.25

#: Maximum tested offset between the written image id and the right id, in positions of the list of images. Results are
#: usually out of step by at most one batch, assumed to be 8 images, and each further offset may fit by chance.
_PLACES = 8

#: Minimum number of consecutive images without detections for the hypothesis that an image counter restarted.
_FEWEST_LOST = 8

#: Minimum number of images with objects for a hypothesis that rotates, flips or shifts whole images, because the
#: objects of a single image may be symmetric.
_FEWEST = 3

#: To report a shift of all boxes: minimum median offset of boxes from their objects, in pixels, and minimum number of
#: boxes that overlap an object.
_SHIFT, _FEWEST_SHIFTED = 0.75, 50

#: Limits of the search for an offset between detections and objects of similar size. Log widths and log heights of
#: similar sizes differ by at most `_ALIKE`. The bin widths of the offset are in pixels, as a share of the image, and as
#: a share of the box. At most `_PAIRS_MOVED` pairs are compared.
_ALIKE, _STEPS, _PAIRS_MOVED = 0.15, (8.0, 0.02, 0.1), 150_000

#: Minimum ratio of two gains for boxes to be considered moved by a share of their own sides: the gain of this
#: hypothesis, and the best other gain. If only one level of a feature pyramid is displaced, moving boxes by a number of
#: pixels undoes a part of the displacement. If boxes of 64 to 128 pixels are moved by 0.35 of their sides, the ratio is
#: 1.6 or more in the 9 scenes of ``tests/planting`` with seeds 0 to 2. If all boxes are moved by half a side, as if
#: centres were corners, the ratio is at most 1.001.
_OF_OWN_SIDES = 1.2

#: The sides of a detection on no object and of the nearest object are compared if their top left corners differ by at
#: most the share `_AT_CORNER` of the sides. `_ALIKE_SIDES` is the minimum share of ratios of sides that differ by less
#: than `_ALIKE` from the median (at least 0.96 in 14 scenes of ``tests/planting`` with sides times 0.4 or 0.5).
_AT_CORNER, _ALIKE_SIDES = 0.1, 0.4

#: Distances in pixels between the origins of neighbouring tiles: common tile sizes, and these sizes minus an overlap of
#: a fifth.
_TILES = (205, 256, 320, 410, 512, 640)

#: Multiples of a tested distance of tiles at which the gain is also measured, for comparison. If the tested distance is
#: wrong, its gain is not much larger than the mean of these gains.
_AROUND = (0.75, 1.25)

#: Maximum offset that is compared. The offset divided by the bin width must fit into 31 bits.
_FARTHEST = 1e6

#: For `Agreement.borne_out`: minimum share of the compared detections (or objects) that overlap an object (or detection)
#: only after the change, and maximum number of boxes compared.
_BORNE, _LOOKED_AT = 0.1, 5_000

#: AUC (`Agreement.ranked`) below which scores are considered inverted; minimum number of detections on objects, and of
#: detections on no object, to compute the AUC.
_UPSIDE_DOWN, _FEWEST_RANKED = 0.35, 30

#: Minimum ratio of detections on no object to detections on an object, for the AUC to be computed. If few detections
#: lie on no object, those with high scores may lie on unlabelled objects.
_ON_NONE = 0.5


class Nearest(NamedTuple):
    """The largest IoU of each sampled detection with an object, and the object's row (-1: none)."""

    overlap: NDArray[np.float64]
    object: NDArray[np.int64]


class Gain(NamedTuple):
    """The gain of a hypothesis."""

    #: The code of the finding.
    code: str
    #: Role of the file with wrong ids or boxes: "ground_truth" or "detections".
    role: str
    #: Rows of the detections that gain by the change.
    gained: NDArray[np.int64]
    #: Best overlaps of the detections at `Agreement.astray`, under the hypothesis.
    nearest: Nearest
    #: Text that is appended to the finding's sentence.
    more: str = ""


def reversed_by(share: float, spread: float) -> bool:
    """Return whether an AUC and its standard error (`Agreement.ranked_of`) mean that low scores are confident."""
    return share < min(_UPSIDE_DOWN, 0.5 - 5 * spread)


def says_shift(shift: Array) -> str:
    """Return the offset of boxes from their objects in words."""
    return f"by {shift[0]:+.1f} and {shift[1]:+.1f} pixels (x, y), in the median"


def _mode(offsets: Array, grid: float) -> tuple[int, Array]:
    """Return the number of offsets near the most frequent offset, and the median of these offsets."""
    offsets = offsets[(np.abs(offsets) < _FARTHEST).all(axis=1)]
    if not len(offsets):
        return 0, np.zeros(2)
    cells = np.round(offsets / grid).astype(np.int64)
    keys, held = np.unique(cells[:, 0] * (1 << 32) + cells[:, 1], return_counts=True)
    x, y = divmod(int(keys[held.argmax()]) + (1 << 31), 1 << 32)
    middle = np.array([x, y - (1 << 31)])
    near = (np.abs(offsets / grid - middle) <= 1).all(axis=1)
    return int(near.sum()), np.median(offsets[near], axis=0)


def _best(made: Iterable[Gain | None]) -> Gain | None:
    """Return the largest gain; None if all of `made` are None."""
    return max((one for one in made if one is not None), key=lambda one: one.gained.size, default=None)


@dataclass(eq=False)
class Agreement:
    """Comparison of detections with objects, unchanged and under hypotheses about ids and boxes."""

    #: The ground truth and the detections that are compared.
    truth: Side
    found: Side
    #: Mask of the images whose detections are compared, shape (images,); None for all images.
    part: NDArray[np.bool_] | None = None
    #: Significant gains of hypotheses about detections, but below the share `_SHARE` of the sample.
    faint: list[Gain] = field(default_factory=list)
    #: Corrected scores of all detections; None if the scores of the table are right.
    corrected: NDArray[np.float64] | None = None

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of all detections, corrected if the scores of a part are reversed."""
        return self.found.table.scores if self.corrected is None else self.corrected  # type: ignore[union-attr]

    @cached_property
    def ranked(self) -> tuple[float, float]:
        """The AUC of all scores, see `ranked_of`."""
        return self.ranked_of(np.arange(len(self.scores)))

    def ranked_of(self, rows: NDArray[np.int64]) -> tuple[float, float]:
        """Return the AUC and its standard error for the detections at `rows`, or for a sample of them. The AUC is the
        probability that a detection on an object outscores a detection on no object.

        A tie counts as one half. Both numbers are NaN if too few detections lie on objects, if too few lie on no
        object, or if the ratio of detections on no object to detections on objects is below `_ON_NONE`.
        """
        rows = np.random.default_rng(0).permutation(rows)[:_LOOKED_AT] if len(rows) > _LOOKED_AT else rows
        rows = self.thinned(rows, _LOOKED_AT)
        near = self.nearest(self.found.image[rows], self.found.boxes[rows])
        on, own = near.overlap >= 0.5, self.scores[rows]
        hits, others = int(np.count_nonzero(on)), int(np.count_nonzero(~on))
        if min(hits, others) < _FEWEST_RANKED or others < _ON_NONE * hits:
            return math.nan, math.nan
        ascending = np.sort(own)
        places = (np.searchsorted(ascending, own[on]) + np.searchsorted(ascending, own[on], "right")) / 2
        share = float((places.sum() - hits * hits / 2) / hits / others)
        return share, math.sqrt((hits + others + 1) / 12 / hits / others)

    @property
    def upside_down(self) -> bool:
        """Whether detections on no object tend to have higher scores than detections on objects."""
        return reversed_by(*self.ranked)

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The scores of all detections, negated if low scores mean confidence."""
        return -self.scores if self.upside_down else self.scores

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the sample: about as many of the highest-scoring detections as there are objects, or a random subset
        of these detections.
        """
        scores = self.confidence
        objects = int(np.count_nonzero(~self.truth.crowd))
        if self.part is not None:
            inside = np.flatnonzero((self.found.image >= 0) & self.part[self.found.image] & ~self.found.aside)
            most = max(int(np.count_nonzero(~self.truth.crowd & self.part[self.truth.image])), 20)
            rows = np.sort(inside[np.argsort(-scores[inside], kind="stable")[:most]])
            return self.thinned(rows, _SAMPLE)
        if self.found.aside.any():
            left = np.flatnonzero(~self.found.aside)
            return self.thinned(left[best_of(scores[left], max(objects, 200))], _SAMPLE)
        return self.thinned(best_of(scores, max(objects, 200)), _SAMPLE)

    def thinned(self, rows: Array, most: int = _SAMPLE) -> NDArray[np.int64]:
        """Return `rows`, or a random subset if there are more than `most` rows or `_PAIRS` pairs of a row and an
        object.
        """
        counts = self.stops - self.starts
        image = self.found.image[rows]
        pairs = int(np.where(image >= 0, counts[image], 0).sum()) if counts.size else 0
        step = max(1, -(-len(rows) // most), -(-pairs // _PAIRS))
        if step == 1:
            return np.asarray(rows, np.int64)
        return np.asarray(np.random.default_rng(0).permutation(rows)[: len(rows) // step], np.int64)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Rows of the objects that are not crowds, sorted by image."""
        rows = np.flatnonzero(~self.truth.crowd)
        return rows[np.argsort(self.truth.image[rows], kind="stable")]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Start of each image's objects in `order`, shape (images,)."""
        return np.searchsorted(self.truth.image[self.order], np.arange(self.truth.on.images.ids.size))

    @cached_property
    def stops(self) -> NDArray[np.int64]:
        """End of each image's objects in `order`, shape (images,)."""
        return np.searchsorted(self.truth.image[self.order], np.arange(self.truth.on.images.ids.size), "right")

    def nearest(self, image: Array, found: Array, truth: Array | None = None) -> Nearest:
        """Return the best overlap of each box in `found` with the objects on its image; `image` holds the index of the
        image, or -1.
        """
        boxes = self.truth.boxes if truth is None else truth
        count = len(image)
        if not self.order.size or not count:
            return Nearest(np.zeros(count), np.full(count, -1))
        held = np.where(image >= 0, (self.stops - self.starts)[image], 0)
        owner = np.repeat(np.arange(count), held)
        first = np.cumsum(held) - held
        objects = self.order[self.starts[image[owner]] + np.arange(owner.size) - first[owner]]
        values = overlaps(found[owner], boxes[objects])
        best = np.zeros(count)
        some = held > 0
        if owner.size:
            best[some] = np.maximum.reduceat(values, first[some])
        which = np.full(count, -1)
        at = np.flatnonzero((values == best[owner]) & (values > 0))[::-1]
        which[owner[at]] = objects[at]
        return Nearest(best, which)

    def _nearest(self, image: Array, found: Array, truth: Array | None = None) -> Nearest:
        """Like `nearest`, but `found` may have a leading axis of alternative boxes; the largest overlap counts."""
        if found.ndim == 2:
            return self.nearest(image, found, truth)
        made = [self.nearest(image, one, truth) for one in found]
        overlap, objects = (np.stack(column) for column in zip(*made, strict=True))
        best, at = overlap.argmax(axis=0), np.arange(len(image))
        return Nearest(overlap[best, at], objects[best, at])

    @cached_property
    def image(self) -> NDArray[np.int64]:
        """The image of each detection of the sample."""
        return self.found.image[self.rows]

    @cached_property
    def boxes(self) -> Array:
        """The box of each detection of the sample."""
        return self.found.boxes[self.rows]

    @cached_property
    def plain(self) -> Nearest:
        """The best overlaps of the unchanged sample."""
        return self.nearest(self.image, self.boxes)

    @cached_property
    def astray(self) -> NDArray[np.int64]:
        """Indices into the sample of the detections that lie neither on an object nor on a crowd; no other detection can
        gain.
        """
        return np.flatnonzero((self.plain.overlap < _HARDLY) & ~on_crowds(self.truth, self.image, self.boxes, _HARDLY))

    def others(self, image: Array, part: int = 2, never: Array | int = -1) -> NDArray[np.int64]:
        """Return for each image another image with objects that differs from the image in `never`; -1 if there is none.

        The other image comes later in the list of images with objects, by about ``1 / part`` of its length. For
        ``part=2`` the distance is one image more than half, because ids are off by half if an image counter restarted
        in the middle.
        """
        full = self._full
        if full.size < 2:
            return np.full(image.size, -1)
        place = np.clip(np.searchsorted(full, image), 0, full.size - 1) + min(full.size // part + 1, full.size - 1)
        other = full[place % full.size]
        return np.asarray(np.where(other == never, full[(place + 1) % full.size], other))

    @cached_property
    def _full(self) -> NDArray[np.int64]:
        """The images that have objects."""
        return np.flatnonzero(self.stops > self.starts)

    def _controls(
        self, image: Array, found: Array, sizes: Array, never: Array | int = -1
    ) -> Iterator[tuple[Array, Array]]:
        """Yield images and boxes that overlap objects only by chance: boxes moved to other images and, if there are few
        images, boxes mirrored on their own image.
        """
        for part in (2, 3, 5) if self._full.size > 1 else ():
            yield self.others(image, part, never), found
        if self._full.size < _FEW_IMAGES:
            width = np.where(np.isfinite(sizes[:, 0]), sizes[:, 0], (found[..., 0] + found[..., 2]).max(initial=0))
            yield image, np.concatenate([(width - found[..., 0] - found[..., 2])[..., None], found[..., 1:]], axis=-1)

    def gain(
        self,
        code: str,
        role: str,
        image: Array,
        found: Array,
        truth: Array | None = None,
        whole: bool = False,
        more: str = "",
    ) -> Gain | None:
        """Return the gain of moving the detections `astray` to the images `image` and the boxes `found`; None if chance
        explains it.

        With `whole`, a gain counts only on images where more detections lie on objects with the changed boxes than with
        the given boxes. `found` may have a leading axis of alternative boxes; for each detection, the box that overlaps
        an object best counts.
        """
        step = found.shape[-2] // _SCREENED
        # Screen a small sample first. A hypothesis with a sufficient gain on the whole sample fails here with a
        # probability of one in a million.
        if step > 1:
            some = self._nearest(image[::step], found[..., ::step, :], truth).overlap >= _WELL
            if np.count_nonzero(some) < 0.5 * _FAINT * self.rows.size / step:
                return None
        made = self._of_whole_images(self._nearest(image, found, truth), whole)
        better = made.overlap >= _WELL
        if not better.any() or np.count_nonzero(better) < _FAINT * self.rows.size:
            return None
        if code == "scaled_boxes" and self._in_pieces(better):
            return None
        enough = np.count_nonzero(better) >= _SHARE * self.rows.size
        gained = np.unique(made.object[better]).size  # several detections on one object are not independent
        sizes = self.found.sizes[self.rows[self.astray]]
        controls = list(self._controls(self.image[self.astray], found, sizes, image))
        if code in _NEARBY and truth is None:  # merely imprecise boxes gain as much by the opposite move
            controls.append((image, 2 * self.boxes[self.astray] - found))

        def by(on: Array, boxes: Array) -> int:
            control = self._of_whole_images(self._nearest(on, boxes, truth), whole)
            return np.unique(control.object[control.overlap >= _WELL]).size

        if any(tail(gained, 2.0 * by(*one) + 0.5) > (_CHANCE if enough else _FAINT_CHANCE) for one in controls):
            return None
        if found.ndim > 2:  # reject the distance if nearer and farther tiles gain as much
            own = self.boxes[self.astray]
            around = sum(by(image, own + times * (found - own)) for times in _AROUND) / len(_AROUND)
            if tail(gained, 1.2 * around + 0.5) > _CHANCE:
                return None
        usual = self.plain.overlap[self.plain.overlap >= _WELL]
        undone = float(np.median(made.overlap[better]))
        if code not in _ROUNDED and usual.size >= _FEWEST_RANKED and undone < float(np.median(usual)) - _WORSE:
            return None  # correctly restored boxes overlap objects as well as other detections do
        gain = Gain(code, role, self.rows[self.astray[better]], made, more)
        if not enough and role == "detections":
            self.faint.append(gain)
        return gain if enough else None

    def _of_whole_images(self, made: Nearest, whole: bool) -> Nearest:
        """If `whole` is true, set overlaps to 0 on images where the changed boxes put no more detections on objects than
        the given boxes.
        """
        if not whole:
            return made
        own, count = self.image[self.astray], self.truth.on.images.ids.size
        on = self.image[(self.plain.overlap >= 0.5) & (self.image >= 0)]
        better = np.bincount(own[(made.overlap >= _WELL) & (own >= 0)], minlength=count)
        good = better > np.bincount(on, minlength=count)
        return made._replace(overlap=np.where((own >= 0) & good[own], made.overlap, 0.0))

    def _in_pieces(self, better: NDArray[np.bool_]) -> bool:
        """Return whether most of the detections in `better` (a mask of `astray`) end at the middle of their image, and
        other boxes begin at the middle.
        """
        middle = self.found.sizes[self.rows] / 2
        begins, ends = (
            np.flatnonzero((np.abs(edges - middle) <= _MIDDLE).any(axis=1))
            for edges in (self.boxes[:, :2], self.boxes[:, :2] + self.boxes[:, 2:])
        )
        ending = np.isin(self.astray[better], ends)
        return bool(ending.mean() >= _ENDING and begins.size >= _BEGINNING * ends.size)

    def borne_out(self, side: Side, rows: NDArray[np.int64], change: Change) -> int:
        """Return the number of objects that detections overlap only after `change` is applied to the boxes at `rows` of
        `side`.

        Return 0 if chance explains the number, or if less than the share `_BORNE` of these boxes gain by the change.
        """
        if side is self.found:
            scores = self.scores[rows]
            rows = self.thinned(rows[np.argsort(-scores, kind="stable")[:_LOOKED_AT]], _LOOKED_AT)
            image, own = self.found.image[rows], self.found.boxes[rows]
            plain = self.nearest(image, own)
            sizes = self.found.sizes[rows]
            changed = change(own, sizes)
            made = self.nearest(image, changed)
            controls = [self.nearest(*one) for one in self._controls(image, changed, sizes)]
            better = (made.overlap >= _WELL) & (plain.overlap < _HARDLY)
            if np.count_nonzero(better) < _BORNE * rows.size:
                return 0
            meant = np.ones(len(self.truth), np.bool_)
        else:
            image, own = self.image[self.astray], self.boxes[self.astray]
            boxes = self.truth.boxes.copy()
            boxes[rows] = change(boxes[rows], self.truth.sizes[rows])
            made = self.nearest(image, own, boxes)
            sizes = self.found.sizes[self.rows[self.astray]]
            controls = [self.nearest(on, moved, boxes) for on, moved in self._controls(image, own, sizes)]
            better = made.overlap >= _WELL
            meant = np.zeros(len(boxes), np.bool_)
            meant[rows] = True
            looked_at = rows.size * min(1.0, self.rows.size / max(self.order.size, 1))
            if np.unique(made.object[better & meant[made.object]]).size < _BORNE * looked_at:
                return 0
        on = [made.object[better], *(one.object[one.overlap >= _WELL] for one in controls)]
        gained, *chances = (np.unique(one[meant[one]]).size for one in on)
        return gained if tail(gained, 2.0 * max(chances, default=0) + 0.5) <= _CHANCE else 0

    # ------------------------------------------------------------------------------------------------------------- images

    @cached_property
    def of_images(self) -> Gain | None:
        """The largest gain of a hypothesis about image ids; None if none is accepted."""
        ids, known = self.found.table.images.ids, self.truth.on.images.ids
        if not known.size or not ids.size:
            return None
        boxes, made, listed, constant = self.boxes[self.astray], list[Gain | None](), None, None
        if ids.dtype.kind == known.dtype.kind == "i":
            listed = self._in_the_list(known)
            ways = list(self._numbered(ids[self.found.table.images.codes[self.rows[self.astray]]], known, listed))
            made = [self.gain(code, "detections", place, boxes, more=says) for code, place, says in ways]
            accepted = [
                (one.gained.size, place)
                for one, (code, place, _) in zip(made, ways, strict=True)
                if one is not None and code == "image_ids_shifted"
            ]
            constant = max(accepted, key=lambda one: one[0])[1] if accepted else None
        made += self._neighbours(boxes, "order of ids", np.arange(known.size), _PLACES, constant)
        if listed is not None:
            made += self._neighbours(boxes, "list of images", listed[:-1], 1, constant)
        made.append(self._restarted(boxes))
        return _best(made)

    def _numbered(self, own: Array, known: Array, listed: Array | None) -> Iterator[tuple[str, Array, str]]:
        """Yield the code, the images and the description of each hypothesis about ids that are numbers."""
        first, last = (int(known[at]) - int(self.found.table.images.ids[at]) for at in (0, -1))
        for shift in sorted({1, -1, first, last} - {0}, key=abs):
            if abs(shift) < 1 << 60:
                sign = "+" if shift > 0 else "-"
                yield (
                    "image_ids_shifted",
                    locate(own + shift, known),
                    f"each {sign} {abs(shift):,} is the one that is meant",
                )
        consecutive = int(known[-1]) - int(known[0]) == known.size - 1
        for first in () if consecutive and listed is None else (0, 1):
            place = np.where((own >= first) & (own < known.size + first), own - first, -1)
            yield "image_ids_positions", place, f"counted from {first}, in the order of the ids"
            if listed is not None:
                yield "image_ids_positions", listed[place], f"counted from {first}, in the order of the list"

    def _restarted(self, boxes: Array) -> Gain | None:
        """Return the gain of the hypothesis that an image counter restarted. Detections on the first images then belong
        to the longest run of images without detections.
        """
        count = self.truth.on.images.ids.size
        some = np.bincount(self.found.image[self.found.image >= 0], minlength=count) > 0
        edges = np.flatnonzero(np.concatenate([[True], some, [True]]))
        held = np.diff(edges) - 1
        start, length = int(edges[held.argmax()]), int(held.max())
        if length < _FEWEST_LOST or start == 0:
            return None
        image = self.image[self.astray]
        place = np.where((image >= 0) & (image < length), image + start, -1)
        known = self.truth.on.images.ids
        says = f"counted from the first image again from image {known[start]} on"
        return self.gain("image_ids_positions", "detections", place, boxes, more=says)

    def _neighbours(
        self, boxes: Array, says: str, order: Array, steps: int, constant: Array | None
    ) -> Iterator[Gain | None]:
        """Yield the gains of hypotheses that all image ids are off by the same number of positions in `order`, up to
        `steps`.

        If an accepted hypothesis adds a constant to the ids, `constant` holds the resulting images, else it is None.
        Detections that both hypotheses move to the same image are explained by the constant. Therefore, the other
        detections must gain beyond chance, too.
        """
        image, count = self.image[self.astray], order.size
        at = np.argsort(order, kind="stable")[image]
        for step in (sign * by for by in range(1, steps + 1) for sign in (1, -1)):
            there = (image >= 0) & (at + step >= 0) & (at + step < count)
            place = np.where(there, order[(at + step) % count], -1)
            way = "next" if step > 0 else "previous"
            more = (
                f"each is meant to be the {way} image in the {says}"
                if abs(step) == 1
                else f"each is meant to be {abs(step)} images {'on' if step > 0 else 'back'} in the {says}"
            )
            made = self.gain("image_ids_rotated", "detections", place, boxes, more=more)
            if made is None:
                continue
            if constant is not None:
                faint, others = len(self.faint), np.where(place == constant, -1, place)
                if self.gain("image_ids_rotated", "detections", others, boxes) is not None or len(self.faint) > faint:
                    yield made
                del self.faint[faint:]
            elif self.part is not None or made.gained.size >= _ROTATED * self.rows.size:
                yield made

    def _in_the_list(self, known: Array) -> Array | None:
        """Return the file's list of images as indices in `known`, followed by -1 for unknown positions; None if sorted
        by id.
        """
        inspected = self.truth.inspected
        listed = [] if inspected is None else list(dict.fromkeys(inspected.images))
        if len(listed) != known.size or listed == known.tolist() or not all(isinstance(one, int) for one in listed):
            return None
        return np.append(locate(np.array(listed, np.int64), known), -1)

    # -------------------------------------------------------------------------------------------------------------- boxes

    @cached_property
    def of_boxes(self) -> Gain | None:
        """The largest gain of a hypothesis about the boxes of detections or objects; None if none is accepted."""
        if self.of_images is not None:
            return None  # a second defect is found once the first is fixed
        best, own = _best(self._of_boxes()), self._of_own_sides
        if own is None or (best is not None and own.gained.size < _OF_OWN_SIDES * best.gained.size):
            return best
        # If only some boxes are moved by shares of their own sides, later checks report the affected sizes or images.
        return own if 2 * own.gained.size >= self.rows.size else None

    def _of_boxes(self) -> Iterator[Gain | None]:
        image, own = self.image[self.astray], self.boxes[self.astray]
        for side in (self.found, self.truth):
            column = side.table.shapes[BOXES]
            changes: Mapping[str, tuple[Change, ...]] = CHANGES
            if isinstance(column, Boxes) and not column.sizes:
                changes = {**CHANGES, "corners_as_sizes": (), "sizes_as_corners": (as_sizes,)}
            for code, ways in changes.items():
                for change in ways:
                    if side is self.found:
                        made = change(own, side.sizes[self.rows[self.astray]])
                        yield self.gain(code, side.role, image, made)
                    else:
                        yield self.gain(code, side.role, image, own, change(side.boxes, side.sizes))
        sizes = self.found.sizes[self.rows[self.astray]]
        if np.isfinite(sizes).all() and self._full.size >= _FEWEST:
            for turn, more in TURNS.items():
                made = turn(own, sizes)
                yield self.gain("turned_boxes", "detections", image, made, whole=True, more=more)
            for turn in QUARTERS:  # other turns have the same effect on objects as on detections
                undone = turn(self.truth.boxes, self.truth.sizes)
                yield self.gain("turned_boxes", "ground_truth", image, own, undone, whole=True, more=TURNS[turn])
        if self.shift is not None:
            moved = scaled(own, 1.0, self.shift)
            yield self.gain("shifted_boxes", "detections", image, moved, more=says_shift(self.shift))
        for made, more in self._scales(own, image, sizes):
            yield self.gain("scaled_boxes", "detections", image, made, more=more)
        sides = self._sides(own)
        if sides is not None:
            more = f"with width times {sides[0]:.3g} and height times {sides[1]:.3g} they lie on objects"
            yield self.gain("scaled_boxes", "detections", image, resized(own, sides), more=more)
        for moved, unit, says in self._offsets(own, sizes):
            faint, gain = len(self.faint), self.gain("shifted_boxes", "detections", image, moved)
            self.faint[faint:] = [g._replace(more=self._moved_by(g, own, unit, says)) for g in self.faint[faint:]]
            yield None if gain is None else gain._replace(more=self._moved_by(gain, own, unit, says))
        for moved, more in self._tiles(own, sizes):
            yield self.gain("shifted_boxes", "detections", image, moved, more=more)

    @cached_property
    def shift(self) -> Array | None:
        """The median offset in x and y, in pixels, of the sampled boxes from their objects; None if not significant.

        The median offsets of opposite edges must agree, and must be far from 0 relative to their standard errors.
        """
        on = self.plain.overlap >= 0.5
        if np.count_nonzero(on) < _FEWEST_SHIFTED:
            return None
        own, objects = self.boxes[on], self.truth.boxes[self.plain.object[on]]
        edges = as_sizes(own, own) - as_sizes(objects, objects)  # left, top, right, bottom
        middle = np.median(edges, axis=0)
        spread = 1.2533 * 1.4826 * np.median(np.abs(edges - middle), axis=0) / np.sqrt(len(edges))
        sure = (np.abs(middle) >= _SHIFT) & (np.abs(middle) > 6 * spread)
        near, far = middle[:2], middle[2:]
        shifted = sure[:2] & sure[2:] & (near * far > 0) & (np.abs(near - far) <= 0.25 * np.abs(near + far))
        return np.where(shifted, (near + far) / 2, 0.0) if shifted.any() else None

    def _scales(self, own: Array, image: Array, sizes: Array) -> Iterator[tuple[Array, str]]:
        """Yield boxes scaled from a model's input size to the image size, or by constant factors, and descriptions of the
        scales.
        """
        far = own[:, :2] + own[:, 2:]
        good = (own[:, 2:] > 0).all(axis=1) & (image >= 0)
        if np.count_nonzero(good) < max(10, _SHARE * self.rows.size) or not self.order.size:
            return
        reach = np.maximum(np.quantile(far[good], 0.999, axis=0), 1e-9)
        objects = self.truth.boxes[self.order]
        if np.isfinite(sizes).all() and reach.max() > 2:
            longest = float(reach.max())
            ends = {(float(reach[0]), float(reach[1])), (longest, longest)}
            ends |= {(side, side) for side in (32.0 * max(math.ceil(longest / 32 - 0.2), 1), 1000.0, 1024.0)}
            for end in sorted(ends):
                yield scaled(own, sizes / np.array(end)), f"as if each image were {end[0]:.0f} x {end[1]:.0f}"
                whole = sizes.max(axis=1, keepdims=True) / max(end)
                yield scaled(own, whole), f"as if the longest side were {max(end):.0f}"
                if end[0] == end[1]:
                    padded = scaled(own, whole, (end[0] - sizes / whole) / 2)
                    yield padded, f"as if each image lay in the middle of a square of {end[0]:.0f} x {end[1]:.0f}"
            padding = (sizes.max(axis=1, keepdims=True) - sizes) / 2
            yield scaled(own, 1.0, padding), "as if each image lay in the middle of a square of its longer side"
            for short, long in _INPUTS:
                if longest <= 1.02 * long:
                    factor = np.maximum(sizes.min(axis=1) / short, sizes.max(axis=1) / long)[:, None]
                    yield scaled(own, factor), f"as if the shorter side were {short}, and the longer {long} at most"
        if np.isfinite(sizes).all():
            aspect = sizes[:, 1] / sizes[:, 0]
            one = np.ones(aspect.size)
            yield scaled(own, np.stack([one, aspect], axis=1)), "as if heights were scaled like widths"
            yield scaled(own, np.stack([1 / aspect, one], axis=1)), "as if widths were scaled like heights"
            exchanged = scaled(own, np.stack([1 / aspect, aspect], axis=1))
            yield exchanged, "as if each image had its height for its width, and its width for its height"
            every = self.truth.on.images.sizes
            if every is not None:
                for step, which in ((-1, "previous"), (1, "next")):
                    other = np.roll(every, -step, axis=0)[image, ::-1]
                    yield scaled(own, sizes / other), f"as if each image had the size of the {which} one, by id"
        factors = np.quantile(objects[:, :2] + objects[:, 2:], 0.999, axis=0) / reach
        if abs(factors[0] / factors[1] - 1) > 0.05:
            yield scaled(own, factors), f"times {factors[0]:.3g} (x) and {factors[1]:.3g} (y) they lie on objects"
        for factor in sorted({*factors.tolist(), float(np.sqrt(factors.prod())), 2.0, 0.5}):
            if abs(factor - 1) > 0.05:
                yield scaled(own, factor), f"times {factor:.3g} they lie on objects"

    def _sides(self, own: Array) -> Array | None:
        """Compare detections on no object with objects that have nearly the same top left corner. Return the median
        ratio of the objects' sides to the detections' sides; None if there are few pairs.
        """
        objects = self.plain.object[self.astray]
        some = np.flatnonzero((objects >= 0) & (own[:, 2:] > 0).all(axis=1))
        one, other = own[some], self.truth.boxes[objects[some]]
        same = (np.abs(one[:, :2] - other[:, :2]) <= _AT_CORNER * np.maximum(one[:, 2:], other[:, 2:])).all(axis=1)
        if np.count_nonzero(same) < max(_FEWEST_SHIFTED, _SHARE * self.rows.size):
            return None
        larger = np.log(other[same, 2:] / one[same, 2:])
        middle = np.median(larger, axis=0)
        if (np.abs(middle) < _ALIKE).any():
            return None  # a truncated object shares a third edge with its detection
        alike = (np.abs(larger - middle) < _ALIKE).all(axis=1)
        return np.asarray(np.exp(middle)) if alike.mean() >= _ALIKE_SIDES else None

    @cached_property
    def _modes(self) -> list[Array | None]:
        """For each bin width in `_STEPS`, the most frequent offset between detections on no object and objects of similar
        size; None if chance explains the offset.
        """
        own, image = self.boxes[self.astray], self.image[self.astray]
        sizes = self.found.sizes[self.rows[self.astray]]
        if self._full.size < _FEWEST or not np.isfinite(sizes).all():
            return [None] * len(_STEPS)
        held = np.where(image >= 0, (self.stops - self.starts)[image], 0)
        step = int(held.sum()) // _PAIRS_MOVED + 1
        rows = np.flatnonzero(image >= 0)[::step]
        on = [image[rows], *(self.others(image[rows], part) for part in (2, 3, 5))]
        pairs = [self._alike(own[rows], of, sizes[rows]) for of in on]
        made: list[Array | None] = []
        for offsets, grid in zip(zip(*pairs, strict=True), _STEPS, strict=True):
            (most, offset), *controls = (_mode(one, grid) for one in offsets)
            beyond_chance = tail(most, 2.0 * max(count for count, _ in controls) + 0.5) <= _CHANCE
            made.append(offset if beyond_chance else None)
        return made

    def _moved_by(self, made: Gain, own: Array, unit: Array, says: str) -> str:
        """Return in words the median offset of the boxes that gain. Objects that differ from the box in width (for x) or
        height (for y) are left out if possible, because the middle of a truncated object lies elsewhere.
        """
        at = np.flatnonzero(made.nearest.overlap >= _WELL)
        one, other = own[at], self.truth.boxes[made.nearest.object[at]]
        away = (other[:, :2] + other[:, 2:] / 2 - one[:, :2] - one[:, 2:] / 2) / np.broadcast_to(
            unit, own[:, :2].shape
        )[at]
        alike = np.abs(np.log(one[:, 2:] / other[:, 2:])) < _ALIKE
        offset = [float(np.median(away[alike[:, n], n] if alike[:, n].any() else away[:, n])) for n in (0, 1)]
        return f"moved by {says.format(*offset)} (x, y) they lie on objects"

    def _offsets(self, own: Array, sizes: Array) -> Iterator[tuple[Array, Array, str]]:
        """Yield boxes moved back by the most frequent offset, first in pixels, then as a share of the image. Also yield
        the unit of the offset and a template for its description.
        """
        words = "{:+.0f} and {:+.0f} pixels", "{:+.2f} and {:+.2f} times the sides of the image"
        for offset, unit, says in zip(self._modes, (np.ones(1), sizes), words, strict=False):
            if offset is not None:
                yield scaled(own, 1.0, -offset * unit), unit, says

    @cached_property
    def _of_own_sides(self) -> Gain | None:
        """The gain of boxes moved by the most frequent offset as a share of their own sides; None if there is no such
        offset.
        """
        offset = self._modes[-1]
        if offset is None:
            return None
        own, faint = self.boxes[self.astray], len(self.faint)
        moved = scaled(own, 1.0, -offset * own[:, 2:])
        says = "moved by {:+.2f} and {:+.2f} times their own sides (x, y) they lie on objects"
        made = self.gain("shifted_boxes", "detections", self.image[self.astray], moved, more=says.format(*offset))
        del self.faint[faint:]
        return made

    def _tiles(self, own: Array, sizes: Array) -> Iterator[tuple[Array, str]]:
        """For each tile size, yield the boxes moved to the tile on the right, below, and diagonally below, and a
        description.
        """
        if self._full.size < _FEWEST or not np.isfinite(sizes).all():
            return
        origins = np.array([(1, 0), (0, 1), (1, 1)])[:, None]
        yield self._moved(own, origins * sizes / 2), "as if counted from the corners of tiles of half the image's sides"
        for step in _TILES:
            if step < sizes.max(initial=0):
                yield (
                    self._moved(own, origins * float(step)),
                    f"as if counted from the corners of tiles that begin every {step} pixels",
                )

    @staticmethod
    def _moved(own: Array, by: Array) -> Array:
        """Return boxes moved by each of several offsets; the leading axis is the offset."""
        out: Array = np.repeat(own[None], len(by), axis=0)
        out[..., :2] += by
        return out

    def _alike(self, own: Array, image: Array, sizes: Array) -> tuple[Array, Array, Array]:
        """Return the offsets between boxes and the objects of similar size on their images, in pixels, as shares of
        `sizes`, and as shares of the boxes.
        """
        held = (self.stops - self.starts)[image]
        owner = np.repeat(np.arange(len(own)), held)
        objects = self.order[self.starts[image[owner]] + np.arange(owner.size) - (np.cumsum(held) - held)[owner]]
        one, other = own[owner], self.truth.boxes[objects]
        with np.errstate(divide="ignore", invalid="ignore"):
            alike = (np.abs(np.log(one[:, 2:] / other[:, 2:])) < _ALIKE).all(axis=1)
        one, other = one[alike], other[alike]
        away = other[:, :2] + other[:, 2:] / 2 - one[:, :2] - one[:, 2:] / 2
        return away, away / sizes[owner[alike]], away / one[:, 2:]

    @property
    def hits(self) -> int:
        """Number of sampled detections with an IoU of at least 0.5 with an object."""
        return int(np.count_nonzero(self.plain.overlap >= 0.5))

    @cached_property
    def none(self) -> bool:
        """Whether sampled detections overlap objects no more often than they would on other images."""
        inside = int(np.count_nonzero(self.image >= 0))
        if self.of_images is not None or self.of_boxes is not None or inside < 30 or not self.order.size:
            return False
        return self.hits < 0.2 * inside and self.by_chance

    @cached_property
    def by_chance(self) -> bool:
        """Whether sampled detections, unchanged, overlap objects no more often than by chance."""
        return self._as_by_chance(self.image, self.boxes, self.hits)

    def lies_on(self, image: Array, boxes: Array) -> bool:
        """Return whether most boxes, or more than by chance, overlap objects of the images `image`; True for too few
        boxes.
        """
        hits = int(np.count_nonzero(self.nearest(image, boxes).overlap >= 0.5))
        return len(image) < _FEWEST_RANKED or 2 * hits >= len(image) or not self._as_by_chance(image, boxes, hits)

    def _as_by_chance(self, image: Array, boxes: Array, hits: int) -> bool:
        others = [self.others(image, part) for part in (2, 3, 5)]
        chances = [int(np.count_nonzero(self.nearest(on, boxes).overlap >= 0.5)) for on in others]
        return tail(hits, 1.2 * max(chances) + 0.5) > 0.001

    @cached_property
    def best(self) -> Nearest:
        """The best overlap of each sampled detection with an object, using its given box or, if better, its box under
        the accepted hypothesis.
        """
        made = [one for one in (self.of_images, self.of_boxes) if one is not None]
        if not made:
            return self.plain
        overlap, objects = self.plain.overlap.copy(), self.plain.object.copy()
        nearest = made[0].nearest
        better = nearest.overlap > overlap[self.astray]
        overlap[self.astray[better]] = nearest.overlap[better]
        objects[self.astray[better]] = nearest.object[better]
        return Nearest(overlap, objects)

    def objects_of(self, gain: Gain) -> NDArray[np.int64]:
        """Return the rows, ascending, of the objects that detections overlap well only under the hypothesis of `gain`."""
        at = gain.nearest.object[gain.nearest.overlap >= _WELL]
        return np.unique(at[at >= 0])

    def share_on_objects(self, rows: NDArray[np.int64]) -> float:
        """Return the share of the detections at `rows` that lie on an object (IoU of at least 0.5)."""
        near = self.nearest(self.found.image[rows], self.found.boxes[rows])
        return float(np.mean(near.overlap >= 0.5)) if rows.size else 0.0

    def rate(self, rows: NDArray[np.int64]) -> tuple[float, float]:
        """Return the share of the detections at `rows` that lie on an object, and the share of objects without a
        detection.

        The share of objects is 0 if there are more than 10 detections per object, because so long a list hardly lacks
        detections with low scores.
        """
        rate = self.share_on_objects(rows)
        if len(self.found) > 10 * self.order.size:
            return rate, 0.0
        near = self.nearest(self.found.image, self.found.boxes)
        hit = np.unique(near.object[near.overlap >= 0.5])
        return rate, 1.0 - hit.size / max(self.order.size, 1)

    @cached_property
    def confusion(self) -> Counts:
        """Number of detections on objects, by the detection's category (row) and the object's category (column)."""
        own, objects = self._on
        return self._counted(own, self.truth.table.categories.codes[objects].astype(np.int64))

    @cached_property
    def distinct(self) -> Counts:
        """Like `confusion`, but several detections of one category on one object count once, because they are not
        independent.
        """
        own, objects = self._on
        count = len(self.truth)
        pairs = np.unique(own * count + objects)
        return self._counted(pairs // count, self.truth.table.categories.codes[pairs % count].astype(np.int64))

    @property
    def _on(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The category and the object of each sampled detection that lies on an object."""
        on = self.best.overlap >= 0.5
        return self.found.table.categories.codes[self.rows[on]].astype(np.int64), self.best.object[on]

    def _counted(self, own: NDArray[np.int64], of: NDArray[np.int64]) -> Counts:
        return Counts(own, of, (self.found.table.categories.ids.size, self.truth.table.categories.ids.size))
