"""Kinds of geometry, such as boxes and masks. Each kind is a file with a column class, checks of the input, and a
measure of overlap.
"""

from __future__ import annotations

from detmap.plugins import register
from detmap.shapes import boxes
from detmap.shapes.boxes import Boxes
from detmap.shapes.kinds import (
    BEV,
    BOUNDARIES,
    BOX3D,
    DISTANCE,
    KEYPOINTS,
    KINDS,
    MASKS,
    PROBIOU,
    ROTATED,
    TEMPORAL,
    TEMPORAL_SPAN,
    TRACKS,
    WHOLE_BODIES,
    Column,
    Drawing,
    IouType,
    Kind,
    Pairs,
    Place,
    Points,
    Reader,
    fields,
    find,
)

__all__ = [
    "KINDS",
    "Boxes",
    "Column",
    "Drawing",
    "IouType",
    "Kind",
    "Pairs",
    "Place",
    "Points",
    "Reader",
    "fields",
    "find",
    "register",
]

register(boxes.KIND)
KINDS.add_later(MASKS, "detmap.shapes.masks", "KIND")
KINDS.add_later(KEYPOINTS, "detmap.shapes.keypoints", "KIND")
KINDS.add_later(BOUNDARIES, "detmap.shapes.masks", "BOUNDARY")
KINDS.add_later(WHOLE_BODIES, "detmap.shapes.keypoints", "WHOLE_BODY")
KINDS.add_later(ROTATED, "detmap.shapes.rotated", "KIND")
KINDS.add_later(PROBIOU, "detmap.shapes.rotated", "PROBABLE")
KINDS.add_later(BEV, "detmap.shapes.boxes3d", "KIND")
KINDS.add_later(BOX3D, "detmap.shapes.boxes3d", "SPACE")
KINDS.add_later(TEMPORAL, "detmap.shapes.segments", "KIND")
KINDS.add_later(TEMPORAL_SPAN, "detmap.shapes.segments", "SPAN")
KINDS.add_later(TRACKS, "detmap.shapes.tracks", "KIND")
KINDS.add_later(DISTANCE, "detmap.shapes.moving", "KIND")
