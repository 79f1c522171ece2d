"""Callbacks that score the detections of Ultralytics' validator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ultralytics.utils import ops

from detmap.detection.evaluator import Evaluator
from detmap.detection.protocols import AnyProtocol, Decisions
from detmap.detection.result import DetectionResult
from detmap.errors import OptionError

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Validation:
    """Scores the detected boxes whenever a model is validated, by ``model.val()`` or after an epoch.

    Boxes are in pixels of the original images.

    Parameters
    ----------
    model : ultralytics.YOLO
        The model to add callbacks to.
    protocol : str or Protocol
        As for `detmap.evaluate`.
    **decisions
        Any other decision of `detmap.Protocol`.

    Attributes
    ----------
    result : DetectionResult or None
        Result of the last validation. If there are several processes, it covers only the images of the first process.
    """

    def __init__(self, model: Any, protocol: AnyProtocol = "coco", **decisions: Unpack[Decisions]) -> None:
        self.result: DetectionResult | None = None
        self._decided = protocol, decisions
        Evaluator(protocol, **decisions)  # refuse invalid decisions before the validation
        model.add_callback("on_val_start", self._start)
        model.add_callback("on_val_end", self._end)

    def _start(self, validator: Any) -> None:
        """Make the validator pass its detections to an `Evaluator`."""
        if validator.args.task == "obb":
            raise OptionError("oriented boxes are not scored by this callback: detmap.formats.interop reads results")
        protocol, decisions = self._decided
        evaluator = self._evaluator = Evaluator(protocol, categories=dict(validator.data["names"]), **decisions)
        update_metrics = validator.update_metrics

        def update(found: Any, batch: Any) -> None:
            update_metrics(found, batch)
            for i, image in enumerate(found):
                true = validator._prepare_batch(i, batch)
                prediction = validator._prepare_pred(image)
                evaluator.update(
                    {
                        "boxes": _boxes(prediction, true),
                        "scores": prediction["conf"],
                        "labels": prediction["cls"].int(),
                    },
                    {"boxes": _boxes(true, true), "labels": true["cls"].int()},
                    image_ids=true["im_file"],
                )

        validator.update_metrics = update

    def _end(self, validator: Any) -> None:
        """Score the detections that the validator has passed on."""
        vars(validator).pop("update_metrics", None)  # another callback may have removed the attribute already
        self.result = self._evaluator.compute()


def _boxes(side: Any, image: Any) -> Any:
    """Return boxes in pixels of the original image."""
    boxes = side["bboxes"].clone().reshape(-1, 4).float()
    return ops.scale_boxes(image["imgsz"], boxes, image["ori_shape"], ratio_pad=image["ratio_pad"])
