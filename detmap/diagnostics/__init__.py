"""Diagnosis of detections: kinds of errors, and the gain in AP from fixing them. Each part of a diagnosis is a module
or a plug-in.
"""

from __future__ import annotations

from detmap.diagnostics import (
    calibration,
    confusion,
    cuts,
    images,
    lrp,
    operating_points,
    slices,
    suspects,
    tide,
)
from detmap.diagnostics._diagnosis import Diagnosis as Diagnosis  # imported by other modules of the package
from detmap.diagnostics._diagnosis import diagnose as diagnose
from detmap.diagnostics._registry import PARTS, Finding, Part
from detmap.diagnostics.confusion import Confusion
from detmap.diagnostics.operating_points import OperatingPoints
from detmap.diagnostics.tide import Tide
from detmap.plugins import register

__all__ = ["PARTS", "Confusion", "Finding", "OperatingPoints", "Part", "Tide"]

for _part in (
    tide.PART,
    confusion.PART,
    calibration.PART,
    lrp.PART,
    operating_points.PART,
    slices.PART,
    images.PART,
    suspects.PART,
    cuts.PART,
):
    register(_part)
