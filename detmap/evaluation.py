"""`detmap.evaluate`: score detections against ground truth, optionally with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from detmap.data.ids import categories_given, check_chosen
from detmap.detection.evaluate import scored
from detmap.detection.given import Found, Owned, Truth, owned, tables_of
from detmap.detection.protocols import AnyProtocol, Decisions, parts_of, resolve
from detmap.detection.result import DetectionResult
from detmap.errors import OptionError
from detmap.shapes import IouType

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from detmap.statistics.intervals import Method


def evaluate(
    ground_truth: Truth,
    detections: Found | Owned,
    protocol: AnyProtocol = "coco",
    *,
    iou_type: IouType | None = None,
    image_ids: Sequence[Any] | ArrayLike | None = None,
    category_ids: Sequence[Any] | ArrayLike | None = None,
    labels: Sequence[Any] | ArrayLike | None = None,
    bootstrap: int | None = None,
    seed: int = 0,
    level: float = 0.95,
    method: Method = "t",
    threads: int | None = None,
    **decisions: Unpack[Decisions],
) -> DetectionResult:
    """Score detections against ground truth.

    Parameters
    ----------
    ground_truth : GroundTruth, path, or mapping
        The objects: a table, a file or folder of any format, or COCO's dictionary as ``json.load`` gives it.
    detections : Detections, path, or sequence of mappings
        The detections: a table, a file or folder of any format, or COCO's list of results. Detections of categories that
        the ground truth lacks are counted in a notice, but not scored.
    protocol : {"coco", "voc2007", "voc2012"} or Protocol
        The rules of evaluation; `decisions` can replace individual rules.
    iou_type : {"bbox", "segm", "keypoints", "boundary", "rotated", "probiou"}, optional
        What is compared: boxes, masks, poses (by object keypoint similarity), or contours of masks. Both tables must
        hold such geometries. By default the kind of geometry that both tables were read or built for
        (`GroundTruth.kinds`). Tables of different kinds, or a `Protocol` for another kind, are an error.
    image_ids, category_ids : sequence, optional
        The images and categories to score; by default all of the ground truth.
    labels : sequence, optional
        Another name of `category_ids`: give one of the two.
    bootstrap : int, optional
        Number of bootstrap resamples of the images for confidence intervals: at least 200, usually 1000. The result has
        the intervals in ``intervals`` and in its tables and documents. By default no intervals are computed.
    seed, level, method
        Options of the intervals: seed of the resampling, confidence level, and ``"t"``, ``"bca"`` or ``"percentile"``; see
        `detmap.statistics.bootstrap`.
    threads : int, optional
        One per processor by default. The number does not affect the result.
    **decisions
        Any other decision of `Protocol`, by its name: ``min_score=0.25``. The following are also accepted in other forms:

        * ``iou_thresholds``, ``recall_thresholds``: numbers, ``"a,b,c"``, or ``"start:stop:step"``, stop included;
        * ``area_ranges``: a mapping of name to minimum and maximum area, both included; the first range must hold all
          objects, and its metrics carry no suffix;
        * ``max_dets``: one or several numbers, the caps on the detections of one category in one image; None is no cap;
        * ``sigmas``: for poses, a list of numbers, or a mapping of category id or name to such lists.

        None keeps the protocol's decision, unless None is a valid value of the decision, as in ``min_score=None``.

    Returns
    -------
    DetectionResult
        The metrics by name, and the arrays from which the metrics are computed.

    Raises
    ------
    InputError
        For swapped arguments, detections on unknown images, or selected ids that the ground truth lacks.
    OptionError
        For contradictory or invalid decisions, and for intervals that cannot be computed.

    Notes
    -----
    Under ``coco`` results equal those of pycocotools 2.0.11 to the bit, with NaN where pycocotools writes -1. Three
    bugs of pycocotools are not reproduced, except the first with ``id_zero="missed"``:

    * a match with ground truth of id 0 counts as a miss;
    * if several annotations have the same id, the last one is scored in place of each of them;
    * two boxes match if their areas underflow (sides below 1e-160 pixels).
    """
    if bootstrap is None and (seed, level, method) != (0, 0.95, "t"):
        raise OptionError("seed, level and method are those of intervals: they need bootstrap=N")
    if bootstrap is not None:
        from detmap.statistics import result_intervals

        result_intervals.check_asked(bootstrap, seed, method, level)
    chosen = categories_given(category_ids, labels)
    check_chosen(image_ids, "image_ids")
    check_chosen(chosen, "category_ids")
    detections = owned(detections)  # lets `scored` free a table to which only this call refers
    result = scored(
        ground_truth,
        detections,
        protocol,
        iou_type=iou_type,
        image_ids=image_ids,
        category_ids=chosen,
        threads=threads,
        caller=evaluate,
        **decisions,
    )
    if bootstrap is not None:
        result_intervals.add_intervals(result, bootstrap, seed, method, level, threads)
    return result


def evaluate_parts(
    ground_truth: Truth,
    detections: Found,
    protocol: str,
    *,
    threads: int | None = None,
    **decisions: Unpack[Decisions],
) -> dict[str, DetectionResult]:
    """Score poses by each part of a skeleton and by the whole skeleton; files are read once.

    Parameters
    ----------
    ground_truth, detections
        As for `evaluate`.
    protocol : str
        The name of the protocol for the whole skeleton, as "wholebody".
    threads : int, optional
        One per processor by default. The number does not affect the result.
    **decisions
        Decisions for the protocols of all parts and of the whole.

    Returns
    -------
    dict of str to DetectionResult
        The result of each part by its name, in the order of the points; then the result of the whole skeleton, by
        the protocol's name.

    Raises
    ------
    OptionError
        For a protocol without parts, see `detmap.skeleton`.
    """
    chosen = {part: resolve(one, caller=evaluate_parts, **decisions) for part, one in parts_of(protocol).items()}
    truth, found = tables_of(ground_truth, detections, chosen[protocol], None)
    return {part: scored(truth, found, one, threads=threads) for part, one in chosen.items()}
