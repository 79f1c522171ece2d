"""How much two discs overlap."""

from __future__ import annotations

import math

from detmap.kernels import helper, kernel


@helper
def lens(a, b, apart):
    """Area of what a disc of radius `a` shares with one of radius `b` whose centre is `apart`."""
    if apart >= a + b:
        return 0.0
    if apart <= abs(a - b):
        return math.pi * min(a, b) ** 2
    x = (apart * apart + a * a - b * b) / (2 * apart)  # from the first centre to the chord
    y = apart - x
    height = math.sqrt(max(a * a - x * x, 0.0))
    return a * a * math.atan2(height, x) + b * b * math.atan2(height, y) - apart * height


@kernel
def overlaps(detections, ground_truth, left, right, crowd, out):
    """Write intersection over union of pairs of rows, or over the detection's own area where the other is a crowd."""
    for i in range(left.shape[0]):
        d, g = left[i], right[i]
        a, b = detections[d, 2], ground_truth[g, 2]
        shared = lens(a, b, math.hypot(detections[d, 0] - ground_truth[g, 0], detections[d, 1] - ground_truth[g, 1]))
        own = math.pi * a * a
        whole = own if crowd[i] else own + math.pi * b * b - shared
        out[i] = shared / whole if shared > 0.0 else 0.0
