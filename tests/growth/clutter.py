"""A part of a diagnosis from outside of the package: do crowded images fare worse? A row per number of objects."""

from __future__ import annotations

import numpy as np

from detmap import HIT, MISS, register
from detmap.diagnostics import Finding, Part


def clutter(diagnosis, *, most=10):
    """Return hits, false positives and recall by the number of objects in the image, up to `most` and more."""
    matches = diagnosis.matches
    size = matches.image_ids.size
    objects = np.bincount(diagnosis.arranged.truth.image[diagnosis.counted], minlength=size)
    group = np.minimum(objects, most)
    rows = []
    for count in np.unique(group).tolist():
        here = (group == count)[matches.image]
        hits, wrong = (int((here & (matches.outcome == what)).sum()) for what in (HIT, MISS))
        total = int(objects[group == count].sum())
        rows.append(
            {
                "objects in the image": f"{count}{' or more' if count == most else ''}",
                "images": int((group == count).sum()),
                "hits": hits,
                "false positives": wrong,
                "recall": hits / total if total else float("nan"),
            }
        )
    recalls = [row["recall"] for row in rows if row["recall"] == row["recall"]]
    metrics = {"worst recall": min(recalls, default=float("nan"))}
    return Finding("clutter", {"most": most}, metrics, {"by number of objects": rows}, ["a toy"])


CLUTTER = register(Part("clutter", "whether crowded images fare worse", clutter))
