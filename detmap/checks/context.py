"""The input shared by all checks, and the causes found so far, which suppress the findings that they explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.checks.agreement import Agreement, Gain
from detmap.checks.evidence import Evidence, evidence_of
from detmap.checks.inputs import Side, side_of
from detmap.checks.rates import FLOOR, Division, Part
from detmap.checks.reversal import Reversal, reversal_of
from detmap.data.tables import Detections
from detmap.errors import many
from detmap.shapes import find
from detmap.shapes.kinds import BOXES, Kind

#: Codes of causes that do not prevent comparing objects and detections.
BESIDE = {
    "classes_disagree",
    "sizes_cut",
    "category_cap",
    "piled_scores",
    "score_gap",
    "cut_boxes",
    "copied_boxes",
    "coarse_boxes",
    "anchor_boxes",
    "piled_sides",
    "default_category",
    "cap_reached",
    "uneven_scores",
    "unsuppressed",
    "unsuppressed_across",
    "drawn_otherwise",
    "single_category",
    "strict_suppression",
    "suppressed_across",
}

#: Limits for flagged images to form a part. The share of flagged images in the part must be at least `_FLAGGED`, and at
#: least `_FLAGGED_TIMES` the share outside. The part must hold at least the share `_OF_FLAGGED` of all flagged images.
#: If detections of a part are mirrored, for example, only a third of its images are flagged, because many objects lie
#: in the middle. In other parts one in 400 images is flagged by chance.
_FLAGGED, _FLAGGED_TIMES, _OF_FLAGGED = 0.15, 4.0, 0.4

#: Assumed share of a defective part's images that are not flagged.
_LEFT = 0.7

#: Minimum share of the images that a part must leave out. The range from the first to the last of scattered images
#: leaves out few images: 13 of 4,952 if boxes are scaled on one image in eight of VOC2007.
_LEFT_OUT = 0.1


@dataclass(eq=False)
class Facts:
    """Input of all checks, and the causes found so far."""

    #: The ground truth; with `schema` only its images and categories are checked.
    truth: Side
    #: The detections.
    found: Side | None = None
    #: Whether only images and categories of the ground truth are checked, and none of its objects.
    schema: bool = False
    #: The ground truth of the training set, which should share no image with `truth`.
    train: Side | None = None
    #: Role and code of each finding that explains other findings.
    causes: set[tuple[str, str]] = field(default_factory=set)
    #: Parts of the data found to differ from the rest, each a mask of images and a category (None for all categories).
    #: Parts explain other findings.
    parts: list[tuple[NDArray[np.bool_], int | None]] = field(default_factory=list)
    #: Mask of the images whose detections are in the file under a changed image id; None if there are none.
    renamed: NDArray[np.bool_] | None = None
    #: Categories without detections that name the same class as another category.
    split: set[int] = field(default_factory=set)
    #: Mask of the images whose detections below a score are missing, and this score; None if there are no such images.
    cut: tuple[NDArray[np.bool_], float] | None = None
    #: Mask of the objects with a size or position that no detection has, shape (objects,); None if there are none.
    beyond: NDArray[np.bool_] | None = None

    @property
    def sides(self) -> Iterator[Side]:
        """The ground truth and, if given, the detections."""
        yield self.truth
        if self.found is not None:
            yield self.found

    @property
    def kind(self) -> Kind:
        """The kind of geometry that determines the noun for an image in messages, such as "video"."""
        return find(next(iter(self.truth.on.kinds), BOXES))

    @property
    def detections(self) -> Detections:
        """The table of detections."""
        assert self.found is not None
        assert isinstance(self.found.table, Detections)
        return self.found.table

    @cached_property
    def agreement(self) -> Agreement | None:
        """The overlaps of detections with objects; None without objects or detections."""
        if self.found is None or self.schema or not len(self.found) or not len(self.truth):
            return None
        turned = self.reversal
        return Agreement(self.truth, self.found, corrected=None if turned is None else turned.scores)

    @cached_property
    def reversal(self) -> Reversal | None:
        """The part of the images whose scores are reversed; None if there is none."""
        if self.found is None or self.schema or not len(self.found) or not len(self.truth):
            return None
        return reversal_of(Agreement(self.truth, self.found), self.gathered, self.says_part)

    @cached_property
    def evidence(self) -> Evidence | None:
        """Matches between objects and detections; None if objects and detections cannot be compared."""
        if self.agreement is None or {code for _, code in self.causes} - BESIDE:
            return None
        assert self.found is not None
        return evidence_of(self.truth, self.found, self.agreement.confidence)

    @cached_property
    def division(self) -> Division:
        """The parts of the images that are compared."""
        found = self.found
        if found is None:
            none = Detections.from_arrays(image_ids=[], category_ids=[], boxes=np.zeros((0, 4)), scores=[])
            found = side_of(none, self.truth.on)
        return evidence_of(self.truth, found).division

    def missing(self, rows: NDArray[np.int64], count: int) -> None:
        """Add the objects at `rows` to `beyond`; `count` is the number of all objects."""
        if self.beyond is None:
            self.beyond = np.zeros(count, np.bool_)
        self.beyond[rows] = True

    def unreported(self, image: NDArray[Any], label: NDArray[Any] | None = None) -> NDArray[np.bool_]:
        """Mask, shape (n,), of the records outside of `parts`; without `label`, outside of the parts of all categories."""
        out = np.ones(image.size, np.bool_)
        for images, of in self.parts:
            if of is None:
                out &= ~images[image]
            elif label is not None:
                out &= ~(images[image] & (label == of))
        return out

    def concentrated(
        self, flags: NDArray[np.bool_], known: NDArray[np.bool_], least: float = _FLAGGED, left: float = _LEFT
    ) -> Part | None:
        """Return the part of the images that holds most of the flagged images; None if there is no such part. Both
        masks have the shape (images,). Images outside of `known` are ignored. At least the share `least` of the part's
        images must be flagged; the share `left` is assumed not to be flagged.
        """
        image = np.flatnonzero(known)
        bad = flags[image]
        if self.schema or bad.all() or not bad.any():
            return None
        part = self.division.unlike(image, bad, np.full(bad.size, FLOOR), left=left)
        if part is None or part.units.all():
            return None
        inside, outside = bad[part.units], bad[~part.units]
        if outside.size < _LEFT_OUT * bad.size:
            return None
        if inside.mean() < max(least, _FLAGGED_TIMES * outside.mean()) or inside.sum() < _OF_FLAGGED * bad.sum():
            return None
        return part

    def gathered(self, flags: NDArray[np.bool_], known: NDArray[np.bool_]) -> Part | None:
        """Return the part of the images in which more images are flagged than elsewhere; None if there is no such part.
        Unlike `concentrated`, this method assumes that nearly all of the part is flagged. Both masks have the shape
        (images,).
        """
        image = np.flatnonzero(known)
        bad = flags[image]
        if self.schema or bad.all() or not bad.any():
            return None
        part = self.division.unlike(image, bad, np.full(bad.size, float(bad.mean())))
        return None if part is None or part.units.all() else part

    def rows_of(self, gain: Gain) -> tuple[NDArray[np.int64], str]:
        """Return the rows of the records that gain, and a description of the gain. If most of these records lie in one
        part of the images, only rows in this part are returned, because other records gain by chance.
        """
        whole = self.agreement
        assert whole is not None
        count, image = whole.truth.on.images.ids.size, whole.found.image
        of_truth = gain.role == "ground_truth"
        rows = whole.objects_of(gain) if of_truth else np.sort(gain.gained)
        known, flags = np.zeros((2, count), np.bool_)
        astray = whole.image[whole.astray]
        known[astray[astray >= 0]] = True
        own = image[gain.gained]
        flags[own[own >= 0]] = True
        part = self.concentrated(flags, known)
        if part is None:
            return rows, gain.more
        of = (whole.truth.image if of_truth else image)[rows]
        rows = rows[(of >= 0) & part.images[of]]
        return rows, "; ".join(filter(None, [gain.more, self.says_part(part)]))

    def says_part(self, part: Part) -> str:
        """Return a description of a part with the numbers of its images and detections."""
        assert self.found is not None
        images, image = int(part.images.sum()), self.found.image
        detections = int(np.count_nonzero(part.images[image[image >= 0]]))
        return f"{part.says}, {many(images, 'image')} with {many(detections, 'detection')}"

    def caused(self, role: str, *codes: str) -> bool:
        """Return whether a finding with one of these codes was added to `causes` for `role`."""
        return any((role, code) in self.causes for code in codes)
