"""The error of every detection, by TIDE's definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from detmap.detection.arrangement import least_overlaps
from detmap.detection.matches import MISS

if TYPE_CHECKING:
    from detmap.diagnostics._diagnosis import Diagnosis

#: The kinds of errors in TIDE's order, and their codes, which start at 1. Miss is an error of objects, not of detections.
ERRORS = ("Cls", "Loc", "Both", "Dupe", "Bkg", "Miss")
CLS, LOC, BOTH, DUPE, BKG, MISSED = range(1, 7)


def errors(diagnosis: Diagnosis) -> NDArray[np.uint8]:
    """Return the code of each detection's error in the order of ``diagnosis.matches``; 0 for no error."""
    matches = diagnosis.matches
    assert matches.same_overlap is not None
    assert matches.other_overlap is not None
    same, other = (np.where(np.isnan(one), -np.inf, one) for one in (matches.same_overlap, matches.other_overlap))
    least = float(least_overlaps(matches.protocol, [matches.iou])[0])
    found = np.select(
        [(same > -np.inf) & (same < least), other >= least, same >= least, other > -np.inf], [LOC, CLS, DUPE, BOTH], BKG
    )
    return np.where(matches.outcome == MISS, found, 0).astype(np.uint8)
