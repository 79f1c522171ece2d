"""Evaluation of detections under a protocol: match the tables to get a tally, and compute the result from the tally."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.data.ids import categories_given
from detmap.data.tables import Detections, GroundTruth
from detmap.detection import by_objects, zero_ids
from detmap.detection.arrangement import Arrangement, least_overlaps, over_cells
from detmap.detection.given import Found, Owned, Truth, owned, tables_of
from detmap.detection.group_boxes import settle, tie_order
from detmap.detection.matches import HIT, IGNORED, taken_at
from detmap.detection.measures import outside_of
from detmap.detection.protocols import AnyProtocol, Decisions, Protocol, resolve
from detmap.detection.result import DetectionResult
from detmap.detection.scored_kinds import asked_protocol, scored_kind
from detmap.detection.tally import STEPS, Tally, in_file_order, rematched, word_count
from detmap.detection.true_positives import names_of
from detmap.kernels import allocate, matching, readonly
from detmap.shapes import IouType
from detmap.system import parallel

if TYPE_CHECKING:
    from typing_extensions import Unpack


def scored(
    ground_truth: Truth,
    detections: Found | Owned,
    protocol: AnyProtocol = "coco",
    *,
    iou_type: IouType | None = None,
    image_ids: Any = None,
    category_ids: Any = None,
    threads: int | None = None,
    caller: Callable[..., Any] | None = None,
    **decisions: Any,
) -> DetectionResult:
    """Evaluate as `detmap.evaluate` does, but without intervals. Error messages name the keyword arguments of the
    function `caller`.
    """
    detections = owned(detections)
    given = protocol, iou_type, image_ids, category_ids, threads, caller
    tally = tally_of(ground_truth, detections, *given, **decisions)
    tally = tally.in_ranking_order(threads, grouped=True)  # rebinding frees the unsorted tally
    return DetectionResult(tally, threads=threads)


def match(
    ground_truth: Truth,
    detections: Found | Owned,
    protocol: AnyProtocol = "coco",
    *,
    iou_type: IouType | None = None,
    image_ids: Sequence[Any] | ArrayLike | None = None,
    category_ids: Sequence[Any] | ArrayLike | None = None,
    labels: Sequence[Any] | ArrayLike | None = None,
    threads: int | None = None,
    **decisions: Unpack[Decisions],
) -> Tally:
    """Match detections with ground truth and return the tally, which can be merged with tallies of other images.

    The parameters are those of `detmap.evaluate`. ``DetectionResult(tally)`` computes the metrics.
    """
    detections = owned(detections)
    given = protocol, iou_type, image_ids, categories_given(category_ids, labels), threads, match
    return tally_of(ground_truth, detections, *given, **decisions).in_ranking_order(threads, grouped=True)


def tally_of(
    ground_truth: Truth,
    detections: Owned,
    protocol: AnyProtocol,
    iou_type: IouType | None,
    image_ids: Any,
    category_ids: Any = None,
    threads: int | None = None,
    caller: Callable[..., Any] | None = None,
    **decisions: Any,
) -> Tally:
    """Return the tally with detections ordered by image.

    Tables that this function reads from files, or that are given as `Owned`, are freed after matching.
    """
    truth, found = tables_of(ground_truth, detections, protocol, iou_type, decisions.get("levels"), once=True)
    protocol = asked_protocol(protocol, truth)
    kind = scored_kind(protocol, iou_type, truth, found)
    decided = resolve(protocol, iou_type=kind, caller=caller, **decisions)
    return _match(truth, found, decided, image_ids, category_ids, threads)


def _match(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    image_ids: Any,
    category_ids: Any,
    threads: int | None,
) -> Tally:
    """Return the tally with detections ordered by image. This is a separate function so that its local variables are
    freed early.
    """
    arranged = Arrangement.of(ground_truth, detections, protocol, image_ids, category_ids, threads)
    words, steps, otherwise = _match_cells(arranged, threads)
    found, truth = arranged.found, arranged.truth
    columns = {"order": found.order, "scores": found.scores, **words._asdict(), **steps}
    if names_of(protocol):
        columns["errors"] = _errors(arranged, threads)
    settled = settle(words, found.scores) if arranged.objects.role.size else np.zeros(found.order.size, np.bool_)
    by_ties = tie_order(protocol, found, settled)
    if by_ties is not None:
        # Columns that the protocol does not use are empty.
        columns = {name: column[by_ties] if len(column) else column for name, column in columns.items()}
    outside = arranged.objects.ignored[:, None] | outside_of(arranged.objects.measures, arranged.ranges)
    positives = np.add.reduceat(~outside, truth.starts[:-1], dtype=np.int32) if truth.order.size else outside
    truth_image, truth_category = truth.cells()
    return Tally(
        protocol=protocol,
        categories=arranged.categories,
        image_ids=arranged.image_ids,
        category=found.category,
        image=found.image,
        rank=found.rank,
        order=readonly(columns["order"] if in_file_order(protocol) else (), np.int64),
        scores=readonly(columns["scores"], np.float64),
        hit=readonly(columns["hit"], np.uint64),
        ignored=readonly(columns["ignored"], np.uint64),
        found=readonly(columns["found"], np.int32),
        missed=readonly(columns["missed"], np.int32),
        alike=readonly(columns["alike"], np.float64),
        errors=readonly(columns.get("errors", np.empty((0, 0))), np.float64),
        positive_category=truth_category,
        positive_image=truth_image,
        positive_counts=readonly(positives, np.int32),
        notices=arranged.notices,
        otherwise=otherwise,
        clusters=arranged.clusters,
        crowd_index=arranged.crowd_index,
        frequencies=arranged.frequencies,
    )


def _errors(arranged: Arrangement, threads: int | None) -> NDArray[np.float64]:
    """Return the errors of each detection, shape (n, errors), by position; NaN for detections that are not hits."""
    protocol = arranged.protocol
    assert protocol.error_threshold is not None
    outside = arranged.objects.ignored | outside_of(arranged.objects.measures, arranged.ranges)[:, 0]
    objects = arranged.objects._replace(ignored=readonly(outside, np.bool_))
    taken = taken_at(arranged, objects, protocol.error_threshold, 0, threads)
    hits = np.flatnonzero(taken.outcome == HIT)
    out = np.full((len(taken.outcome), len(names_of(protocol))), np.nan)
    out[hits] = arranged.deviations(hits, taken.ground_truth[hits])
    return out


def _match_cells(
    arranged: Arrangement, threads: int | None
) -> tuple[matching.Words, dict[str, NDArray[Any]], zero_ids.Otherwise | None]:
    """Return the outcomes of all detections, the columns `STEPS`, and the detections whose outcome depends on the decision
    `id_zero`. The columns are empty unless matching is repeated at each score.
    """
    protocol, cells = arranged.protocol, arranged.cells
    count, words = arranged.found.order.size, word_count(protocol)
    thresholds = least_overlaps(protocol, protocol.iou_thresholds)
    extended = arranged.order.size  # includes detections of other categories, which are not in the tally
    hit, ignored = allocate(*[((extended, words), np.uint64)] * 2)
    levels, out = (
        matching.Levels(thresholds, arranged.ranges, protocol.matching == "best"),
        matching.Words(hit, ignored),
    )

    def miss(begin: int, end: int) -> None:
        measures = arranged.unmatched_measures(begin, end)
        matching.mark_misses(measures, arranged.ranges, thresholds.size, begin, end, hit, ignored)

    def pair(begin: int, end: int) -> None:
        stop = parallel.stop_flag()
        candidates = arranged.candidates(cells, lowest, begin, end, stop)
        matching.match(cells, candidates, arranged.objects, levels, begin, end, stop, out)

    parallel.run(miss, parallel.even(extended, threads), threads)
    if rematched(protocol):
        made = by_objects.match_all(arranged, thresholds, out, threads)
        own = {name: column[:count] for name, column in made._asdict().items()}
        return matching.Words(hit[:count], ignored[:count]), {name: own[name] for name in STEPS}, None
    steps = {name: np.empty((0, len(protocol.range_names) * thresholds.size)) for name in STEPS}
    if protocol.matching == "by-object":
        _choose(arranged, out, threads)
        return out, steps, None
    lowest = float(thresholds.min())
    over_cells(pair, cells, threads)
    otherwise = zero_ids.carry_out(arranged, levels, out)
    return out, steps, otherwise


def _choose(arranged: Arrangement, out: matching.Words, threads: int | None) -> None:
    """Match by THUMOS14's rule, under which objects choose detections, and write the outcomes to `out`."""
    protocol, objects = arranged.protocol, arranged.objects
    outside = outside_of(objects.measures, arranged.ranges)
    for area in range(len(protocol.range_names)):
        ignored = readonly(objects.ignored | outside[:, area], np.bool_)
        for at, iou in enumerate(protocol.iou_thresholds):
            bit = area * len(protocol.iou_thresholds) + at
            taken = taken_at(arranged, objects._replace(ignored=ignored), iou, area, threads)
            for words, outcome in ((out.hit, HIT), (out.ignored, IGNORED)):
                word, shift = words[:, bit >> 6], np.uint64(bit & 63)
                word &= ~(np.uint64(1) << shift)
                word |= (taken.outcome == outcome).astype(np.uint64) << shift
