"""What the checks of every theme look at, and which causes were found so far: what they explain is not said again."""

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

#: Causes with which objects and detections can be compared all the same.
_BESIDE = {"classes_disagree", "sizes_cut", "category_cap", "piled_scores", "score_gap", "cut_boxes"}


@dataclass(eq=False)
class Facts:
    """What is checked."""

    #: The ground truth; of a schema the images and categories alone.
    truth: Side
    #: The detections.
    found: Side | None = None
    #: Whether nothing may be said of objects.
    schema: bool = False
    #: Another ground truth, with which the first should share no image.
    train: Side | None = None
    #: Pairs of a role and a code that were found, and that explain others.
    causes: set[tuple[str, str]] = field(default_factory=set)
    #: Images and category (None: all) of parts that were found to be unlike the rest, which explain other findings.
    parts: list[tuple[NDArray[np.bool_], int | None]] = field(default_factory=list)

    @property
    def sides(self) -> Iterator[Side]:
        """Both, or the one there is."""
        yield self.truth
        if self.found is not None:
            yield self.found

    @property
    def detections(self) -> Detections:
        """The table of detections."""
        assert self.found is not None
        assert isinstance(self.found.table, Detections)
        return self.found.table

    @cached_property
    def agreement(self) -> Agreement | None:
        """Both sides together, where there are objects and detections."""
        if self.found is None or self.schema or not len(self.found) or not len(self.truth):
            return None
        return Agreement(self.truth, self.found)

    @cached_property
    def evidence(self) -> Evidence | None:
        """What is found and missed, where there are objects and detections that mean the same images and categories."""
        if self.agreement is None or {code for _, code in self.causes} - _BESIDE:
            return None
        assert self.found is not None
        return evidence_of(self.truth, self.found, self.agreement.upside_down)

    def caused(self, role: str, *codes: str) -> bool:
        """Return whether one of some causes was found on a side."""
        return any((role, code) in self.causes for code in codes)
