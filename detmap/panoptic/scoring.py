"""Panoptic quality from files or arrays."""

from __future__ import annotations

from typing import Any

from detmap.data.segments import SegmentedImages
from detmap.formats.coco.panoptic import Maps, read_panoptic
from detmap.panoptic.matching import match as match_images
from detmap.panoptic.result import PanopticResult
from detmap.panoptic.rules import Rules
from detmap.panoptic.tally import PanopticTally


def match(
    ground_truth: Any,
    predictions: Any,
    gt_maps: Maps | None = None,
    pred_maps: Maps | None = None,
    *,
    parts: int = 1,
    threads: int | None = None,
) -> PanopticTally:
    """Match segments and return the tally, which can be merged with tallies of other images.

    See `evaluate` for the parameters and errors.
    """
    rules = Rules(parts=parts)
    truth = ground_truth if isinstance(ground_truth, SegmentedImages) else read_panoptic(ground_truth, gt_maps)
    found = predictions
    if not isinstance(predictions, SegmentedImages):
        found = read_panoptic(predictions, pred_maps, predictions=True)
    return match_images(truth, found, rules, threads)


def evaluate(
    ground_truth: Any,
    predictions: Any,
    gt_maps: Maps | None = None,
    pred_maps: Maps | None = None,
    *,
    parts: int = 1,
    threads: int | None = None,
) -> PanopticResult:
    """Score panoptic segmentation: PQ, SQ and RQ, equal to panopticapi's to the last bit.

    Parameters
    ----------
    ground_truth, predictions : path, bytes, or mapping
        COCO's panoptic JSON: the path of a file, bytes, or the parsed document.
    gt_maps, pred_maps : path, or mapping of image id to array, optional
        Folders of PNG files (needs the extra ``images``); by default the path of each JSON file without ``.json``. Label
        maps can also be arrays: integer segment ids of shape (H, W), or uint8 colours of shape (H, W, 3), which stand for
        the ids R + 256 G + 65536 B. The id 0 is VOID.
    parts : int
        Number of parts into which the images are split: IoUs are summed within each part, then over the parts. panopticapi
        uses one part per CPU core. The number of parts only changes the last bits of the metrics.
    threads : int, optional
        One per processor by default. Changes no result.

    Returns
    -------
    PanopticResult
        ``PQ``, ``SQ`` and ``RQ`` from 0 to 1; ``PQ_things``, … for things only, ``PQ_stuff``, … for stuff only. NaN if no
        category of the group has segments.

    Raises
    ------
    InputError
        For files that cannot be scored, an image without predictions, label maps of different sizes, a predicted segment
        that is only in the label map or only in the JSON, or a predicted category that the ground truth lacks.
    OptionError
        If a folder is missing, or for an invalid number of parts.
    MissingDependencyError
        If PNG files are to be read and Pillow is not installed.

    Notes ----- Kirillov, A., K. He, R. Girshick, C. Rother and P. Dollár, Panoptic segmentation (2019). As in
    panopticapi, the area of a ground-truth segment is taken from the JSON, and segments match if their IoU is above
    0.5. An unmatched prediction is left out if more than half of its area lies on VOID or on the last crowd region of
    its category.
    """
    return PanopticResult(match(ground_truth, predictions, gt_maps, pred_maps, parts=parts, threads=threads))
