"""Panoptic segmentation: panoptic quality, and its parts, of things and stuff.

Label maps become counts of pairs of segments, pairs become matches, and these are summed by category. A `PanopticTally`
holds what was found in each image; tallies of disjoint images merge.
"""

from __future__ import annotations

from detmap.panoptic.result import PanopticResult
from detmap.panoptic.rules import Rules
from detmap.panoptic.scoring import evaluate, match
from detmap.panoptic.tally import PanopticTally

__all__ = ["PanopticResult", "PanopticTally", "Rules", "evaluate", "match"]
