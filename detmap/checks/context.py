"""The input shared by all checks, and the causes found so far, which suppress the findings that they explain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from detmap.checks.agreement import Agreement
from detmap.checks.evidence import Evidence, evidence_of
from detmap.checks.inputs import Side
from detmap.data.tables import Detections
from detmap.shapes import find
from detmap.shapes.kinds import BOXES, Kind

#: Codes of causes that do not prevent comparing objects and detections.
_BESIDE = {
    "classes_disagree",
    "sizes_cut",
    "category_cap",
    "piled_scores",
    "score_gap",
    "cut_boxes",
    "copied_boxes",
    "cap_reached",
    "uneven_scores",
    "unsuppressed",
    "unsuppressed_across",
    "drawn_otherwise",
}


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
    #: Mask of the images whose detections below a score are missing, and this score; None if there are no such images.
    cut: tuple[NDArray[np.bool_], float] | None = None

    @property
    def sides(self) -> Iterator[Side]:
        """The ground truth and, if given, the detections."""
        yield self.truth
        if self.found is not None:
            yield self.found

    @property
    def kind(self) -> Kind:
        """The kind of geometry whose noun for images is used in messages."""
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
        return Agreement(self.truth, self.found)

    @cached_property
    def evidence(self) -> Evidence | None:
        """Matches between objects and detections; None if these cannot be compared."""
        if self.agreement is None or {code for _, code in self.causes} - _BESIDE:
            return None
        assert self.found is not None
        return evidence_of(self.truth, self.found, self.agreement.upside_down)

    def caused(self, role: str, *codes: str) -> bool:
        """Return whether a finding with one of these codes was added to `causes` for `role`."""
        return any((role, code) in self.causes for code in codes)
