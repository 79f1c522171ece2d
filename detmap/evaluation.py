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
        The detections: a table, a file or folder of any format, or COCO's list of results. Those of categories that the
        ground truth lacks are counted in a notice, but not scored.
    protocol : {"coco", "voc2007", "voc2012"} or Protocol
        The decisions, unless the following replace them.
    iou_type : {"bbox", "segm", "keypoints", "boundary", "rotated", "probiou"}, optional
        What is compared: boxes, masks, poses (by object keypoint similarity), or contours of masks. Both tables must hold
        such shapes. By default the kind that both tables were read or built for (`GroundTruth.kinds`); tables of
        different kinds, or a `Protocol` for another one, are an error.
    image_ids, category_ids : sequence, optional
        Score these only; by default all that the ground truth has.
    labels : sequence, optional
        Another name of `category_ids`: give one of the two.
    bootstrap : int, optional
        Number of bootstrap resamples of the images for confidence intervals: at least 200, usually 1000. They become
        the result's ``intervals``, and are part of its tables and documents. By default there are none.
    seed, level, method
        Options of the intervals: seed of the draws, confidence level, and ``"t"``, ``"bca"`` or ``"percentile"``; see
        `detmap.statistics.bootstrap`.
    threads : int, optional
        One per processor by default. The result does not depend on it.
    **decisions
        Any other decision of `Protocol`, by its name: ``min_score=0.25``. These are also taken in other forms:

        * ``iou_thresholds``, ``recall_thresholds``: numbers, ``"a,b,c"`` or ``"start:stop:step"`` with its stop;
        * ``area_ranges``: a mapping of name to minimum and maximum area, both included; the first one must hold all
          objects, and its metrics carry no suffix;
        * ``max_dets``: a number or several, the caps on the detections of one category in one image; None is no cap;
        * ``sigmas``: of poses, a list of numbers, or a mapping of category id or name to such.

        None keeps the protocol's decision, except where None is a value itself, as in ``min_score=None``.

    Returns
    -------
    DetectionResult
        The metrics by name, and everything behind them.

    Raises
    ------
    InputError
        For swapped arguments, detections on unknown images, or selected ids that are not there.
    OptionError
        For contradictory or invalid decisions, and for intervals that cannot be computed.

    Notes
    -----
    Under ``coco`` every bit equals pycocotools 2.0.11's, with NaN where it writes -1, except for three accidents that
    only a drop-in should reproduce: in pycocotools a match with ground truth of id 0 counts as a miss (here with
    ``id_zero="missed"``), the last of several annotations with one id is scored once for each of them, and two boxes
    whose areas underflow (sides below 1e-160 pixels) match.
    """
    if bootstrap is None and (seed, level, method) != (0, 0.95, "t"):
        raise OptionError("seed, level and method are those of intervals: they need bootstrap=N")
    if bootstrap is not None:
        from detmap.statistics import result_intervals

        result_intervals.check_asked(bootstrap, seed, method, level)
    chosen = categories_given(category_ids, labels)
    check_chosen(image_ids, "image_ids")
    check_chosen(chosen, "category_ids")
    detections = owned(detections)  # so that no local name keeps alive a table that only this call holds
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
    """Score poses by each part of a skeleton and as a whole; files are read once.

    Parameters
    ----------
    ground_truth, detections
        As for `evaluate`.
    protocol : str
        The name of the protocol for the whole, as "wholebody".
    threads : int, optional
        One per processor by default. Changes no result.
    **decisions
        Decisions of all these protocols.

    Returns
    -------
    dict of str to DetectionResult
        By the names of the parts, in the order of their points; then the whole, by the name of the protocol.

    Raises
    ------
    OptionError
        For a protocol without parts, see `detmap.skeleton`.
    """
    chosen = {part: resolve(one, caller=evaluate_parts, **decisions) for part, one in parts_of(protocol).items()}
    truth, found = tables_of(ground_truth, detections, chosen[protocol], None)
    return {part: scored(truth, found, one, threads=threads) for part, one in chosen.items()}
