"""Match the detections and objects of one image and category, and give the matches as pycocotools records them in
``evalImgs``. `detmap.kernels.matching` only gives hits, which suffice for metrics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

Array = NDArray[Any]


@kernel
def box_ious(detections: Array, ground_truth: Array, crowd: Array, out: Array) -> None:
    """Write the IoU of every pair of boxes (x, y, width, height), shape (d, g). For a crowd, the intersection is
    divided by the detection's area.
    """
    for d in range(detections.shape[0]):
        x, y, width, height = detections[d, 0], detections[d, 1], detections[d, 2], detections[d, 3]
        area = width * height
        for g in range(ground_truth.shape[0]):
            across, down = ground_truth[g, 2], ground_truth[g, 3]
            out[d, g] = 0.0
            # np.fmin and np.fmax ignore a NaN operand, as C's fmin and fmax do
            w = np.fmin(x + width, ground_truth[g, 0] + across) - np.fmax(x, ground_truth[g, 0])
            if w <= 0.0:
                continue
            h = np.fmin(y + height, ground_truth[g, 1] + down) - np.fmax(y, ground_truth[g, 1])
            if h <= 0.0:
                continue
            inter = w * h
            out[d, g] = inter / (area if crowd[g] else area + across * down - inter)


@kernel
def assign(
    ious: Array,
    ignored: Array,
    crowd: Array,
    keeps: Array,
    thresholds: Array,
    out_detections: Array,
    out_ground_truth: Array,
) -> None:
    """Write indices for each threshold: the object matched to each detection, and the last detection matched to each
    object; -1 for none. The rows of `ious` (d, g) are detections by descending score; the columns are objects,
    `ignored` objects last. A detection with an id of 0 or less (``keeps`` is false) leaves its object free for other
    detections.
    """
    out_detections[:] = -1
    out_ground_truth[:] = -1
    for t in range(thresholds.shape[0]):
        for d in range(ious.shape[0]):
            best, chosen = min(thresholds[t], 1 - 1e-10), -1
            for g in range(ious.shape[1]):
                taker = out_ground_truth[t, g]
                if taker >= 0 and keeps[taker] and not crowd[g]:
                    continue
                if chosen >= 0 and not ignored[chosen] and ignored[g]:
                    break
                if ious[d, g] < best:
                    continue
                best, chosen = ious[d, g], g
            if chosen >= 0:
                out_detections[t, d] = chosen
                out_ground_truth[t, chosen] = d
