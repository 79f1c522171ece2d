"""Detections against ground truth under a protocol: tables to tally to result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from detmap.data.tables import Detections, GroundTruth
from detmap.detection import zero_ids
from detmap.detection.arrangement import Arrangement, least_overlaps, over_cells
from detmap.detection.given import Found, Truth, tables_of
from detmap.detection.protocols import Decisions, Protocol, resolve
from detmap.detection.result import DetectionResult
from detmap.detection.scored_kinds import scored_kind
from detmap.detection.tally import Tally, word_count
from detmap.kernels import allocate, matching, readonly
from detmap.system import parallel

if TYPE_CHECKING:
    from typing_extensions import Unpack


def evaluate(
    ground_truth: Truth,
    detections: Found,
    protocol: str | Protocol = "coco",
    *,
    iou_type: str | None = None,
    image_ids: Sequence[Any] | ArrayLike | None = None,
    category_ids: Sequence[Any] | ArrayLike | None = None,
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
    iou_type : {"bbox", "segm", "keypoints", "boundary"}, optional
        What is compared: boxes, masks, poses (by object keypoint similarity), or contours of masks. Both tables must hold
        such shapes. By default what both tables were read for, or given (`GroundTruth.kinds`); tables for different kinds,
        or a `Protocol` for another one, are an error then.
    image_ids, category_ids : sequence, optional
        Score these only; by default all that the ground truth has.
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
        For decisions that contradict each other or cannot have such a value.

    Notes
    -----
    Under ``coco`` every bit equals pycocotools 2.0.11's, with NaN where it writes -1, but for three accidents that only a
    drop-in should repeat: there a match with ground truth of id 0 counts as a miss (here with ``id_zero="missed"``), of
    annotations that share an id the last is scored once for each, and two boxes so small that their areas vanish (below
    1e-160 pixels a side) match.
    """
    truth, found = tables_of(ground_truth, detections, protocol, iou_type)
    kind = scored_kind(protocol, iou_type, truth, found)
    decided = resolve(protocol, iou_type=kind, caller=evaluate, **decisions)
    tally = _match(truth, found, decided, image_ids, category_ids, threads)
    del detections, found  # frees tables that the caller does not keep, ahead of the ranking
    tally = tally.in_ranking_order(threads, grouped=True)  # and the tally as it was, for the curves
    return DetectionResult(tally, threads=threads)


def match(
    ground_truth: Truth,
    detections: Found,
    protocol: str | Protocol = "coco",
    *,
    iou_type: str | None = None,
    image_ids: Sequence[Any] | ArrayLike | None = None,
    category_ids: Sequence[Any] | ArrayLike | None = None,
    threads: int | None = None,
    **decisions: Unpack[Decisions],
) -> Tally:
    """Match detections with ground truth and return the tally, which merges with those of other images.

    The parameters are those of `evaluate`. ``DetectionResult(tally)`` makes the metrics.
    """
    truth, found = tables_of(ground_truth, detections, protocol, iou_type)
    kind = scored_kind(protocol, iou_type, truth, found)
    decided = resolve(protocol, iou_type=kind, caller=match, **decisions)
    tally = _match(truth, found, decided, image_ids, category_ids, threads)
    del detections, found
    return tally.in_ranking_order(threads, grouped=True)


def _match(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    image_ids: Any,
    category_ids: Any,
    threads: int | None,
) -> Tally:
    """Return the tally with its detections image by image; a function of its own, so that all it needed is gone after it."""
    arranged = Arrangement.of(ground_truth, detections, protocol, image_ids, category_ids, threads)
    words, otherwise = _match_cells(arranged, threads)
    found, truth = arranged.found, arranged.truth
    ranges = np.array([(low, high) for _, low, high in protocol.area_ranges])
    objects = arranged.objects
    outside = (
        objects.ignored[:, None] | (objects.areas[:, None] < ranges[:, 0]) | (objects.areas[:, None] > ranges[:, 1])
    )
    positives = np.add.reduceat(~outside, truth.starts[:-1], dtype=np.int32) if truth.order.size else outside
    truth_image, truth_category = truth.cells()
    return Tally(
        protocol=protocol,
        categories=arranged.categories,
        image_ids=arranged.image_ids,
        category=found.category,
        image=found.image,
        rank=found.rank,
        order=readonly(found.order if protocol.ties == "file" else (), np.int64),
        scores=found.scores,
        hit=words.hit,
        ignored=words.ignored,
        positive_category=truth_category,
        positive_image=truth_image,
        positive_counts=readonly(positives, np.int32),
        notices=arranged.notices,
        otherwise=otherwise,
        clusters=arranged.clusters,
    )


def _match_cells(arranged: Arrangement, threads: int | None) -> tuple[matching.Words, zero_ids.Otherwise | None]:
    """Return the hit and ignored words of every detection, by position, and those under the other value of `id_zero`."""
    protocol, cells = arranged.protocol, arranged.cells
    count, words = arranged.found.order.size, word_count(protocol)
    thresholds = least_overlaps(protocol, protocol.iou_thresholds)
    ranges = readonly([(low, high) for _, low, high in protocol.area_ranges], np.float64)
    hit, ignored = allocate(*[((count, words), np.uint64)] * 2)
    levels, out = matching.Levels(thresholds, ranges, protocol.matching == "best"), matching.Words(hit, ignored)

    def miss(begin: int, end: int) -> None:
        areas = arranged.detection_areas(begin, end)
        matching.mark_misses(areas, ranges, thresholds.size, begin, end, hit, ignored)

    def pair(begin: int, end: int) -> None:
        stop = parallel.stop_flag()
        candidates = arranged.candidates(cells, lowest, begin, end, stop)
        matching.match(cells, candidates, arranged.objects, levels, begin, end, stop, out)

    parallel.run(miss, parallel.even(count, threads), threads)
    lowest = float(thresholds.min())
    over_cells(pair, cells, threads)
    otherwise = zero_ids.carry_out(arranged, levels, out)
    return matching.Words(readonly(hit, np.uint64), readonly(ignored, np.uint64)), otherwise
