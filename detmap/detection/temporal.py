"""Decisions of the temporal benchmarks ActivityNet and THUMOS14 on unlisted videos, means, and names of metrics."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from detmap.data.tables import Detections, GroundTruth
from detmap.decisions import YES_OR_NO, decision

if TYPE_CHECKING:
    from detmap.detection.protocols import Protocol

_decision = partial(decision, since="0.2")

UNLISTED_IMAGES = _decision(
    "How detections on an image that is not in the ground truth are treated: as an error of the input, or as false "
    "positives.",
    "matching",
    allowed=("error", "wrong"),
    phrase=lambda protocol: f"detections on unlisted images {protocol.unlisted_images}",
)

MEAN_OF = _decision(
    "How the mean AP over several IoU thresholds is computed: over all values at once, over the means of each threshold "
    "(ActivityNet), or over the means of each class (nuScenes). The results differ in the last bit.",
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
    """Add all images with detections to the ground truth, if the protocol counts detections on unlisted images as wrong."""
    return ground_truth.with_images(detections.images.ids) if protocol.unlisted_images == "wrong" else ground_truth
