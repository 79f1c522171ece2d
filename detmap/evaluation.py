"""`detmap.evaluate`: detections against ground truth, with confidence intervals where they are asked for."""

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
        What there is to find: a table, a file or folder of any format, or COCO's dictionary as ``json.load`` gives it.
    detections : Detections, path, or sequence of mappings
        What was found: a table, a file or folder of any format, or COCO's list of results. Those of categories that the
        ground truth does not have are counted, and not scored.
    protocol : {"coco", "voc2007", "voc2012"} or Protocol
        Every decision that the following do not replace.
    iou_type : {"bbox", "segm", "keypoints", "boundary", "rotated", "probiou"}, optional
        What is compared: boxes, masks, poses (by object keypoint similarity), or contours of masks. Both tables must hold
        such shapes. By default what both tables were read for, or given (`GroundTruth.kinds`); tables for different kinds,
        or a `Protocol` for another one, are an error then.
    image_ids, category_ids : sequence, optional
        Score these only; by default all that the ground truth has.
    labels : sequence, optional
        Another name of `category_ids`: give one of the two.
    bootstrap : int, optional
        Number of bootstrap resamples of the images for confidence intervals: at least 200, usually 1000. The intervals are
        the result's ``intervals``, and stand in what it prints, saves and returns as text. By default there are none.
    seed, level, method
        Of the intervals: seed of the draws, confidence level, and ``"t"``, ``"bca"`` or ``"percentile"``; see
        `detmap.statistics.bootstrap`.
    threads : int, optional
        One per processor by default. The result does not depend on it.
    **decisions
        Any other decision of `Protocol`, by its name: ``min_score=0.25``. These are also taken in other forms:

        * ``iou_thresholds``, ``recall_thresholds``: numbers, ``"a,b,c"`` or ``"start:stop:step"`` with its stop;
        * ``area_ranges``: a mapping of name to least and largest area, both included; the first one must hold all objects,
          and its metrics carry no suffix;
        * ``max_dets``: a number or several, the caps on the detections of one category in one image; None is no cap;
        * ``sigmas``: of poses, a list of numbers, or a mapping of category id or name to such.

        None leaves a decision as the protocol has it, except where it is a value of its own, as in ``min_score=None``.

    Returns
    -------
    DetectionResult
        The metrics by name, and everything behind them.

    Raises
    ------
    InputError
        For swapped arguments, detections on unknown images, or selected ids that are not there.
    OptionError
        For decisions that contradict each other or cannot have such a value, and for intervals that cannot be made.

    Notes
    -----
    Under ``coco`` every bit equals pycocotools 2.0.11's, with NaN where it writes -1, but for three accidents that only a
    drop-in should repeat: there a match with ground truth of id 0 counts as a miss (here with ``id_zero="missed"``), of
    annotations that share an id the last is scored once for each, and two boxes so small that their areas vanish (below
    1e-160 pixels a side) match.
    """
    if bootstrap is None and (seed, level, method) != (0, 0.95, "t"):
        raise OptionError("seed, level and method are those of intervals: they need bootstrap=N")
    if bootstrap is not None:
        from detmap.statistics import result_intervals

        result_intervals.check_asked(bootstrap, seed, method, level)
    chosen = categories_given(category_ids, labels)
    check_chosen(image_ids, "image_ids")
    check_chosen(chosen, "category_ids")
    detections = owned(detections)  # so that no name here keeps a table that only this call has
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
