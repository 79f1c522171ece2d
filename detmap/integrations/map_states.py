"""Convert the state of torchmetrics' `MeanAveragePrecision` (lists with an entry per image) to tables, and score the
tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap import columns
from detmap.data.ids import Ids, index_ids
from detmap.data.tables import Detections, GroundTruth
from detmap.detection.evaluate import scored
from detmap.detection.given import Owned
from detmap.detection.result import DetectionResult
from detmap.masks import Masks


class States(NamedTuple):
    """The metric's state, with torchmetrics' names. Each list has an entry per image: a tensor or, for masks, run-length
    codes.
    """

    detection_box: Sequence[Any]
    detection_mask: Sequence[Any]
    detection_scores: Sequence[Any]
    detection_labels: Sequence[Any]
    groundtruth_box: Sequence[Any]
    groundtruth_mask: Sequence[Any]
    groundtruth_labels: Sequence[Any]
    groundtruth_crowds: Sequence[Any]
    groundtruth_area: Sequence[Any]


class Settings(NamedTuple):
    """The options of the metric, with torchmetrics' names."""

    iou_type: Sequence[str]
    average: str
    iou_thresholds: Sequence[float]
    rec_thresholds: Sequence[float]
    max_detection_thresholds: Sequence[int]
    class_metrics: bool


class Scores(NamedTuple):
    """The results of the metric for boxes or for masks, with -1 for undefined values.

    Attributes
    ----------
    stats : list of float
        The 12 values of pycocotools' ``stats``; AP is computed with the largest of `max_detection_thresholds`.
    ap, ar : ndarray of float64, shape (K,), or None
        AP and AR of each category, with the largest of `max_detection_thresholds`; None if not requested.
    """

    stats: list[float]
    ap: NDArray[np.float64] | None
    ar: NDArray[np.float64] | None


def scores_of(states: States, settings: Settings) -> tuple[dict[str, Scores | None], list[int]]:
    """Return the scores by `iou_type`, None without images to score, and the classes. If the state has no boxes, images
    without target masks are not scored, as in torchmetrics.
    """
    sides = _Side.found(states), _Side.true(states)
    classes = sorted({one for side in sides for one in side.labels.ids.tolist()})
    found: dict[str, Scores | None] = {}
    for kind in settings.iou_type:
        if all(side.images.size for side in sides):
            found[kind] = _scores(sides, kind, classes, settings)
        else:
            found[kind] = None
    return found, classes


class _Side(NamedTuple):
    """Predictions or targets of all images, concatenated; `images` are the indices of the images to score."""

    images: NDArray[np.int64]
    image: Ids
    labels: Ids
    boxes: NDArray[Any] | None
    masks: Masks | None
    scores: NDArray[Any]
    crowds: NDArray[Any]
    areas: NDArray[Any]

    @classmethod
    def found(cls, states: States) -> _Side:
        """Return the predictions."""
        none: tuple[Any, ...] = ()
        shapes = states.detection_box, states.detection_mask
        return cls._of("predictions", states.detection_labels, *shapes, states.detection_scores, none, none)

    @classmethod
    def true(cls, states: States) -> _Side:
        """Return the targets."""
        shapes = states.groundtruth_box, states.groundtruth_mask
        more = (), states.groundtruth_crowds, states.groundtruth_area
        return cls._of("targets", states.groundtruth_labels, *shapes, *more)

    @classmethod
    def _of(cls, source: str, labels: Any, boxes: Any, masks: Any, scores: Any, crowds: Any, areas: Any) -> _Side:
        counts = np.array([len(one) for one in labels], np.int64)
        there = np.flatnonzero(counts)
        codes = np.repeat(np.arange(there.size, dtype=np.int32), counts[there])
        codes_of_masks = [{"size": size, "counts": runs} for image in masks for size, runs in image]
        return cls(
            images=np.arange(counts.size) if boxes else there,
            image=Ids(there, codes),
            labels=index_ids(_joined(labels), source=source, field="labels"),
            boxes=_joined(boxes, 4) if boxes else None,
            masks=Masks.from_rle(codes_of_masks, source=source) if masks else None,
            scores=_joined(scores),
            crowds=_joined(crowds) != 0,
            areas=_joined(areas),
        )

    def of_one_class(self) -> _Side:
        """Return a copy with all labels set to 0, so that equal scores are ranked in the given order, not by class."""
        count = self.labels.codes.size
        return self._replace(labels=index_ids(np.zeros(count, np.int64), source="labels", field="labels"))

    def shapes(self, kind: str) -> dict[str, Any]:
        """Return the masks or boxes as an argument of ``from_arrays``."""
        return {"masks": self.masks} if kind == "segm" else {"boxes": self.boxes}

    def own_areas(self) -> NDArray[np.float64]:
        """Return the areas of the masks if there are masks, else the areas of the boxes, which may be negative."""
        if self.masks is not None:
            return np.asarray(self.masks.areas(), np.float64)
        assert self.boxes is not None
        sides = self.boxes.astype(np.float64)
        return np.asarray(sides[:, 2] * sides[:, 3])


def _joined(tensors: Sequence[Any], width: int | None = None) -> NDArray[Any]:
    """Return the tensors concatenated as one array; empty tensors, which may have any type and shape, are skipped."""
    there = [one for one in tensors if len(one) and one.numel()]
    if not there:
        return np.empty(0) if width is None else np.empty((0, width))
    import torch

    return columns.array(torch.cat(there))


def _scores(sides: Sequence[_Side], kind: str, classes: list[int], settings: Settings) -> Scores:
    micro = settings.average == "micro"
    result = _result(
        [side.of_one_class() for side in sides] if micro else sides, kind, [0] if micro else classes, settings
    )
    caps = settings.max_detection_thresholds
    names = ["AP", "AP50", "AP75", "AP_small", "AP_medium", "AP_large", *(f"AR_{cap}" for cap in caps)]
    names += ["AR_small", "AR_medium", "AR_large"]
    stats = [_defined(result[name]) for name in names]
    if not settings.class_metrics:
        return Scores(stats, None, None)
    if micro:
        result = _result(sides, kind, classes, settings)
    recall = result.recall[:, :, 0, -1].mean(axis=0)
    return Scores(stats, _defined(result._by_category(None)), _defined(recall))


def _defined(values: Any) -> Any:
    """Return values with NaN replaced by -1."""
    return np.where(np.isnan(values), -1.0, values)[()]


def _result(sides: Sequence[_Side], kind: str, classes: list[int], settings: Settings) -> DetectionResult:
    """Score boxes or masks."""
    predictions, targets = sides
    areas = np.where(targets.areas > 0, targets.areas, targets.own_areas())
    found = Owned(
        Detections.from_arrays(
            image_ids=predictions.image,
            labels=predictions.labels,
            **predictions.shapes(kind),
            scores=predictions.scores,
            invalid_boxes="miss",
            source="predictions",
        )
    )
    truth = GroundTruth.from_arrays(
        image_ids=targets.image,
        images=np.union1d(targets.images, predictions.image.ids),
        labels=targets.labels,
        categories=classes,
        **targets.shapes(kind),
        areas=np.maximum(areas, 0.0),
        crowd=targets.crowds | (areas < 0),  # pycocotools ignores objects of negative area in every area range
        invalid_boxes="miss",
        source="targets",
    )
    return scored(
        truth,
        found,
        "coco",
        iou_type="segm" if kind == "segm" else "bbox",
        image_ids=targets.images,
        iou_thresholds=settings.iou_thresholds,
        recall_thresholds=settings.rec_thresholds,
        max_dets=sorted(set(settings.max_detection_thresholds)),
    )
