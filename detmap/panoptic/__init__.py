"""Panoptic segmentation: panoptic quality (PQ, SQ and RQ) of all categories, of things and of stuff.

The common pixels of each pair of segments are counted, segments are matched by IoU, and the matches are summed by
category. A `PanopticTally` holds the matches of each image; tallies of disjoint images can be merged.
"""

from __future__ import annotations

from detmap.data.segments import LabelMap, SegmentedImages
from detmap.formats.coco.panoptic import read_panoptic
from detmap.panoptic.result import PanopticResult
from detmap.panoptic.rules import Rules
from detmap.panoptic.scoring import evaluate, match
from detmap.panoptic.tally import PanopticTally

__all__ = [
    "LabelMap",
    "PanopticResult",
    "PanopticTally",
    "Rules",
    "SegmentedImages",
    "evaluate",
    "match",
    "read_panoptic",
]
