"""Ground truth and detections from a path, whichever of the detection formats it holds."""

from __future__ import annotations

import glob
import os
from typing import Literal

from detmap.boxes import InvalidBoxes
from detmap.errors import OptionError
from detmap.formats.coco import read_coco, read_coco_results
from detmap.formats.voc import class_of, read_voc, read_voc_results
from detmap.tables import Detections, GroundTruth, MissingClasses

_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_LISTS = tuple(ending + packed for ending in (".json", ".jsonl", ".ndjson") for packed in ("", ".gz"))

#: How files of predictions end.
SUFFIXES = (*_LISTS, *_ARCHIVES)


def is_voc(path: str) -> bool:
    """Return whether a path is read as VOC's: a folder, an archive, or the results of one class."""
    return os.path.isdir(path) or path.endswith(_ARCHIVES) or class_of(path) is not None


def holds_voc_results(folder: str) -> bool:
    """Return whether a folder holds VOC's detections, a file per class."""
    return any(glob.iglob(os.path.join(glob.escape(folder), "comp*_det_*.txt")))


def read_ground_truth(
    path: str | os.PathLike[str],
    image_set: str | os.PathLike[str] | None = None,
    *,
    invalid_boxes: InvalidBoxes = "error",
) -> GroundTruth:
    """Read COCO's JSON, or a folder or archive of VOC's XML with, optionally, a file that lists the images.

    Raises
    ------
    InputError
        As the reader of the format does.
    OptionError
        For an image set with COCO's JSON.
    """
    if is_voc(os.fspath(path)):
        return read_voc(path, image_set, invalid_boxes=invalid_boxes)
    if image_set:
        raise OptionError("--image-set goes with VOC's XML")
    return read_coco(path, invalid_boxes=invalid_boxes)


def read_detections(
    path: str | os.PathLike[str],
    ground_truth: GroundTruth,
    unknown_images: Literal["error", "ignore"] = "error",
    invalid_boxes: InvalidBoxes = "error",
    missing_classes: MissingClasses = "zero",
) -> Detections:
    """Read COCO's list of results, or a folder or archive of VOC's ``comp4_det_*_{class}.txt``, or one of these.

    `missing_classes` concerns VOC's only: COCO's list does not say which classes it is about.

    Raises
    ------
    InputError
        As the reader of the format does.
    """
    if not is_voc(os.fspath(path)):
        return read_coco_results(path, ground_truth, unknown_images=unknown_images, invalid_boxes=invalid_boxes)
    return read_voc_results(
        path,
        ground_truth,
        unknown_images=unknown_images,
        invalid_boxes=invalid_boxes,
        missing_classes=missing_classes,
    )
