"""Kinds of shapes: one file per kind, with its column, how it is checked, and how two of them overlap."""

from __future__ import annotations

from detmap.plugins import register
from detmap.shapes import boxes, keypoints, masks
from detmap.shapes.boxes import Boxes
from detmap.shapes.kinds import KINDS, Column, Kind, Pairs, Place, Reader, find

__all__ = ["KINDS", "Boxes", "Column", "Kind", "Pairs", "Place", "Reader", "find", "register"]

register(boxes.KIND)
register(masks.KIND)
register(keypoints.KIND)
register(masks.BOUNDARY)
