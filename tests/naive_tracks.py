"""Naive twin of YouTube-VIS' evaluation: tracks are lists with a size and a set of pixels, or None, for each frame."""

from __future__ import annotations

import numpy as np
from naive import coco_evaluate
from naive_masks import lengths_of, pixels_of, polygon

RANGES = ((0, 1e10), (0, 128**2), (128**2, 256**2), (256**2, 1e10))


def track(segmentations, height, width):
    """The track of a record."""
    out = []
    for one in segmentations:
        if one is None:
            out.append(None)
        elif isinstance(one, dict):
            out.append((tuple(one["size"]), pixels_of(lengths_of(one["counts"]), one["size"][0])))
        else:
            outlines = [list(zip(points[::2], points[1::2], strict=True)) for points in one]
            out.append(((height, width), set().union(*(polygon(points, height, width) for points in outlines))))
    return out


def overlap(one, other):
    """Pixels shared over pixels of either, over the frames of the shorter list; masks of different sizes do not count."""
    shared = either = 0
    for a, b in zip(one, other, strict=False):
        if a is not None and b is not None:
            if a[0] == b[0]:
                shared += len(a[1] & b[1])
                either += len(a[1] | b[1])
        else:
            either += sum(len(side[1]) for side in (a, b) if side is not None)
    return shared / either if either else 0.0


def mean_area(areas):
    """The mean of areas that are neither None nor 0."""
    seen = [area for area in areas if area]
    return sum(seen) / len(seen) if seen else 0


def evaluate(document, results, ranges=RANGES, **more):
    """Precision, recall and scores as `naive.coco_evaluate` returns them."""
    sizes = {one["id"]: (one["height"], one["width"]) for one in document["videos"]}
    sides = []
    for rows in (document["annotations"], results):
        side = []
        for one in rows:
            own = track(one["segmentations"], *sizes[one["video_id"]])
            areas = one["areas"] if "areas" in one else [one and len(one[1]) for one in own]
            side.append({**one, "image_id": one["video_id"], "bbox": own, "area": mean_area(areas)})
        sides.append(side)

    def within(low, high):
        return (lambda record: low <= record["area"] <= high,) * 2

    def measure(one, other, crowd):
        return np.array([[overlap(a, b) for b in other] for a in one]).reshape(len(one), len(other))

    ids = [one["id"] for one in document["videos"]], [one["id"] for one in document["categories"]]
    return coco_evaluate(*ids, *sides, area_ranges=[within(*one) for one in ranges], measure=measure, **more)
