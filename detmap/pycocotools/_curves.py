"""Precision and recall from the entries of `evalImgs`. Each entry belongs to an image, a category and an area range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def accumulate(p: Any, evaluated: Any, cells: Any) -> dict[str, NDArray[np.float64]]:
    """Return precision, recall and scores under the params `p`. `cells` are the entries of `evalImgs`, which were
    computed under the params `evaluated`.
    """
    T, R, A, M = len(p.iouThrs), len(p.recThrs), len(p.areaRng), len(p.maxDets)
    K = len(p.catIds) if p.useCats else 1
    precision, recall = np.full((T, R, K, A, M), -1.0), np.full((T, K, A, M), -1.0)
    scores = precision.copy()
    images, areas = len(evaluated.imgIds), len(evaluated.areaRng)

    def chosen(values: Any, among: Any) -> list[int]:
        known = set(among)
        return [i for i, value in enumerate(values) if value in known]

    categories = chosen(p.catIds, evaluated.catIds if evaluated.useCats else [-1])
    image_places = chosen(p.imgIds, evaluated.imgIds)
    area_places = chosen(map(tuple, p.areaRng), map(tuple, evaluated.areaRng))
    caps = [cap for cap in p.maxDets if cap in set(evaluated.maxDets)]
    # Without an evaluated value of `maxDets`, `evalImgs` is not read and may lack entries.
    for k, category in enumerate(categories if caps else ()):
        for a, area in enumerate(area_places):
            first = (category * areas + area) * images
            held = [cell for cell in (cells[first + i] for i in image_places) if cell is not None]
            positives = sum(int(np.count_nonzero(cell["gtIgnore"] == 0)) for cell in held)
            if not positives:
                continue
            longest = max(len(cell["dtScores"]) for cell in held)
            made: dict[Any, Any] = {}  # by cap; None for all caps that drop no detection
            for m, cap in enumerate(caps):
                cut = cap if cap < longest else None
                if cut not in made:
                    made[cut] = _curves(held, cut, positives, p.recThrs)
                own = made[cut]
                T = len(own[0])
                recall[np.arange(T), k, a, m] = own[0]
                precision[np.arange(T), :, k, a, m] = own[1]
                scores[np.arange(T), :, k, a, m] = own[2]
    return {"precision": precision, "recall": recall, "scores": scores}


def _curves(cells: list[Any], cap: Any, positives: int, grid: Any) -> tuple[Any, Any, Any]:
    """Return recall (T,), precision (T, R) and scores (T, R) of the ranking of all detections in the entries `cells`."""
    found = np.concatenate([cell["dtScores"][0:cap] for cell in cells])
    order = np.argsort(-found, kind="stable")
    found = found[order]
    hit = np.concatenate([cell["dtMatches"][:, 0:cap] for cell in cells], axis=1)[:, order] != 0
    counted = np.logical_not(np.concatenate([cell["dtIgnore"][:, 0:cap] for cell in cells], axis=1)[:, order])
    true = np.cumsum(hit & counted, axis=1).astype(np.float64)
    false = np.cumsum(~hit & counted, axis=1).astype(np.float64)
    recalls = true / positives
    envelopes = np.maximum.accumulate((true / (false + true + np.spacing(1)))[:, ::-1], axis=1)[:, ::-1]
    precision, scores = np.zeros((len(true), len(grid))), np.zeros((len(true), len(grid)))
    for t in range(len(true)):
        places = np.searchsorted(recalls[t], grid, side="left")
        reached = int(np.argmax(places == found.size)) if (places == found.size).any() else len(grid)
        precision[t, :reached] = envelopes[t, places[:reached]]
        scores[t, :reached] = found[places[:reached]]
    return recalls[:, -1] if found.size else np.zeros(len(true)), precision, scores
