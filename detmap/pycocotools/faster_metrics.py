"""faster_coco_eval's metrics beyond AP and AR: matches, areas under curves, and metrics of each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SCORES = 1 << 12  # maximum number of score thresholds for which F1 is computed at a time


class Accumulated(dict[str, Any]):
    """The output of ``accumulate``; ``matched`` is computed lazily, because it needs the matches of every image.

    Parameters
    ----------
    found : dict
        The entries that pycocotools stores in ``eval``.
    evaluation : COCOeval_faster
        The evaluation that holds the matches.
    """

    def __init__(self, found: dict[str, Any], evaluation: Any) -> None:
        super().__init__(found)
        self._evaluation = evaluation
        self["evaluations_size"] = len(evaluation._paramsEval.imgIds) * found["counts"][2] * found["counts"][3]

    def __missing__(self, name: str) -> Any:
        if name != "matched":
            raise KeyError(name)
        self[name] = matches(self._evaluation)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return name == "matched" or super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the entry `name`, or `default`."""
        return self["matched"] if name == "matched" else super().get(name, default)

    def _whole(self) -> dict[str, Any]:
        """Return all entries, including ``matched``, as a plain dict."""
        return dict(zip(super().keys(), super().values(), strict=True)) | {"matched": self["matched"]}

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole())

    def __len__(self) -> int:
        return super().__len__() + (not super().__contains__("matched"))

    def keys(self) -> Any:
        """Return all names, including ``matched``."""
        return self._whole().keys()

    def values(self) -> Any:
        """Return all values."""
        return self._whole().values()

    def items(self) -> Any:
        """Return all names and values."""
        return self._whole().items()

    def __reduce__(self) -> Any:
        return dict, (self._whole(),)


def matches(evaluation: Any) -> dict[str, float]:
    """Return the overlap of each detection and object matched at any threshold, by key ``"{detection}_{object}"``."""
    out: dict[str, float] = {}
    gts, ious = evaluation._gts, evaluation.ious
    p = evaluation._paramsEval
    for cell in evaluation.evalImgs:
        if cell is None or not cell["dtMatches"].any():
            continue
        image, category = cell["image_id"], cell["category_id"]
        categories = [category] if p.useCats else p.catIds
        place = {g["id"]: i for i, g in enumerate(g for k in categories for g in gts[image, k])}
        overlaps = ious[image, category]
        _, rows = np.nonzero(cell["dtMatches"])
        found = cell["dtMatches"][cell["dtMatches"] != 0]
        for row, identity in set(zip(rows.tolist(), found.tolist(), strict=True)):
            out[f"{int(cell['dtIds'][row])}_{int(identity)}"] = float(overlaps[row, place[identity]])
    return out


def mark(gts: dict[Any, Any], dts: dict[Any, Any], matched: dict[str, float]) -> None:
    """Write the matches into annotations; see `math_matches`."""
    for anns in (dts, gts):
        for ann in anns.values():
            for name in ("tp", "fp", "fn", "gt_id", "dt_id", "iou"):
                ann.pop(name, None)
    for pair, overlap in matched.items():
        found, sought = map(int, pair.split("_", 1))
        dts[found].update(tp=True, gt_id=sought, iou=overlap)
        gts[sought]["dt_id"] = found
    for anns, name, other in ((dts, "fp", "gt_id"), (gts, "fn", "dt_id")):
        for ann in anns.values():
            if ann.get(other) is None:
                ann[name] = True


def area_under(recall: Any, precision: Any, *, extended: bool) -> float:
    """Return the area under a curve's envelope; with `extended`, sum in extended precision and round to 15 decimals."""
    dtype = np.longdouble if extended else np.float64
    x, y = np.array(recall, dtype), np.array(precision, dtype)
    y = np.maximum.accumulate(y[::-1])[::-1]
    steps = np.flatnonzero(x[1:] != x[:-1])
    areas = (x[steps + 1] - x[steps]) * y[steps + 1]
    if not extended:
        return float(np.sum(areas))
    total = np.add.accumulate(areas)[-1] if areas.size else 0.0  # sums sequentially, as in C++
    return round(float(total), 15)


def extended(evaluation: Any) -> dict[str, Any]:
    """Return the metrics of each class; see `detmap.pycocotools.faster.COCOeval_faster.extended_metrics`."""
    p = evaluation.params
    at_50 = np.flatnonzero(np.isclose(p.iouThrs, 0.5))
    if not at_50.size:
        raise ValueError(
            f"extended_metrics needs the IoU threshold 0.50, which is not among {list(map(float, p.iouThrs))}"
        )
    means, (precision, recall) = _best_f1(evaluation)
    rows: list[dict[str, Any]] = []
    names = {cat["id"]: cat["name"] for cat in evaluation.cocoGt.loadCats(p.catIds)} if p.useCats else {}
    for k, category in enumerate(p.catIds if p.useCats else ()):
        values = evaluation.eval["precision"][:, :, k, 0, -1]
        numbers = [
            mean_of_defined(values),
            mean_of_defined(values[at_50[0]]),
            *means.get(int(category), (np.nan, np.nan)),
        ]
        if not np.isnan(numbers).any():
            rows.append(_row(names[int(category)], *numbers))
    stats = evaluation.stats_as_dict
    rows.append(_row("all", stats["AP_all"], stats["AP_50"], precision, recall))
    return {"class_map": rows, "map": stats["AP_50"], "precision": precision, "recall": recall}


def _row(name: str, ap: float, ap_50: float, precision: float, recall: float) -> dict[str, Any]:
    return {"class": name, "map@50:95": ap, "map@50": ap_50, "precision": precision, "recall": recall}


def mean_of_defined(values: NDArray[np.float64]) -> float:
    """Return the mean of values other than -1; NaN if there are none."""
    defined = values[values > -1]
    return float(defined.mean()) if defined.size else float("nan")


def _best_f1(evaluation: Any) -> tuple[dict[int, tuple[float, float]], tuple[float, float]]:
    """Return precision and recall of each category, and their means, at the score threshold with the largest mean F1.
    Of several such thresholds, the lowest is used.
    """
    p, dts = evaluation.params, evaluation.cocoDt.anns
    hits = {int(pair.split("_", 1)[0]) for pair, overlap in evaluation.eval["matched"].items() if overlap >= 0.5}
    objects = Counter(ann["category_id"] for ann in evaluation.cocoGt.anns.values() if not ann.get("iscrowd", 0))
    by_class: dict[Any, list[tuple[float, bool]]] = {}
    for identity, ann in dts.items():
        by_class.setdefault(ann["category_id"], []).append((float(ann["score"]), identity in hits))
    categories = [int(k) for k in (p.catIds if p.useCats else set(by_class)) if objects[k]]
    thresholds = np.array(sorted({float(ann["score"]) for ann in dts.values()}))
    best, means, at = -np.inf, (0.0, 0.0), np.zeros((2, 0))
    ranked = [sorted(by_class.get(k, ()), key=lambda item: -item[0]) for k in categories]
    scores = [np.array([-score for score, _ in items]) for items in ranked]
    found = [np.cumsum([0, *(hit for _, hit in items)]) for items in ranked]
    for start in range(0, thresholds.size if categories else 0, _SCORES):
        chunk = thresholds[start : start + _SCORES]
        precision, recall = np.zeros((chunk.size, len(categories))), np.zeros((chunk.size, len(categories)))
        for k, category in enumerate(categories):
            above = np.searchsorted(scores[k], -chunk, side="right")
            precision[:, k] = found[k][above] / np.maximum(above, 1)
            recall[:, k] = found[k][above] / objects[category]
        total = precision + recall
        f1 = np.mean(2.0 * precision * recall / np.where(total > 0, total, 1.0), axis=1)
        row = int(np.argmax(f1))
        if f1[row] > best:
            best = f1[row]
            at = np.array([precision[row], recall[row]])
            means = float(np.mean(at[0])), float(np.mean(at[1]))
    return {k: (float(at[0, i]), float(at[1, i])) for i, k in enumerate(categories) if at.size}, means
