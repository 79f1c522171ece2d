"""Decisions of the temporal benchmarks ActivityNet and THUMOS14: unlisted videos, means, and names of metrics."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from detmap.data.tables import Detections, GroundTruth
from detmap.decisions import YES_OR_NO, decision

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol

_decision = partial(decision, since="0.2")

UNLISTED_IMAGES = _decision(
    "What a detection on an image that the ground truth does not have is: an error, or wrong as any other miss.",
    "matching",
    allowed=("error", "wrong"),
    phrase=lambda protocol: f"detections on unlisted images {protocol.unlisted_images}",
)

MEAN_OF = _decision(
    "What AP over several IoU thresholds is the mean of: all values at once, the means over classes at each threshold "
    "(ActivityNet), or the means over thresholds of each class (nuScenes). They differ in the last bit.",
    "mean",
    allowed=("values", "thresholds", "classes"),
    phrase=lambda protocol: f"mean of {protocol.mean_of}",
)

THRESHOLD_METRICS = _decision(
    "Whether AP at each IoU threshold is a metric, as AP55, where metrics are named as VOC names them.",
    "names",
    allowed=YES_OR_NO,
    phrase=lambda protocol: "an AP per threshold",
)


def listing(ground_truth: GroundTruth, detections: Detections, protocol: Protocol) -> GroundTruth:
    """Return ground truth with the images of all detections added, if detections on unlisted images are false positives."""
    return ground_truth.with_images(detections.images.ids) if protocol.unlisted_images == "wrong" else ground_truth
