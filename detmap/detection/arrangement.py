"""Tables arranged for matching. The rows of a category on an image are called a cell.

A `detmap.Tally` and `detmap.Matches` are both made from an `Arrangement`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.data import mismatches
from detmap.data.benchmarks import unread
from detmap.data.ids import Ids, locate, select
from detmap.data.notices import added
from detmap.data.tables import Detections, GroundTruth
from detmap.detection import pair_limits, rematching
from detmap.detection.boxed_objects import BoxedObjects, notices_of, roles_of
from detmap.detection.federated import Judgement, either, fields_read, missing_fields, without_area
from detmap.detection.group_boxes import groups_of
from detmap.detection.measures import Measured, Measures, outside_of
from detmap.detection.preparation import left_out, prepared
from detmap.detection.protocols import UNLIMITED, Protocol
from detmap.detection.temporal import listing
from detmap.detection.true_positives import HALF_TURNS, has_rule
from detmap.errors import InputError
from detmap.kernels import NEVER, allocate, matching, overlap, pairs, readonly, sorting
from detmap.shapes import Boxes, Column, Kind, Pairs, find
from detmap.shapes.kinds import BOXES
from detmap.system import parallel

_LONG = 1e5  # blocks that cost more run outside the main thread, so that Ctrl-C has an effect at once

#: Minimum overlap of boxes that touch: the smallest normal float.
_TOUCHING = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Side:
    """The evaluated rows of one table, ordered by image and then category. The rows of a category on an image are a cell.

    Images come first because most files are ordered by image. Memory is then read sequentially. A position is an index in
    this order. `starts` are the first positions of the cells. The other columns have one value per position: the row in the
    table (`order`), image, category, rank in the cell, and score.
    """

    order: NDArray[np.int32]
    image: NDArray[np.int32]
    category: NDArray[np.int32]
    rank: NDArray[np.int32]
    scores: NDArray[np.float64]
    starts: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        category: NDArray[np.int32],
        image: NDArray[np.int32],
        images: int,
        merged: bool,
        threads: int | None,
        scores: NDArray[np.float64] | None = None,
        cap: int = UNLIMITED,
        reverse: bool = False,
    ) -> Side:
        """Arrange the rows, without rows whose category or image is -1.

        If `merged` is true, all categories are treated as one. If `scores` are given, the rows of a category on an
        image are sorted by descending score, and only the first `cap` are kept. If `reverse` is true, rows of equal
        score are in reverse order of the table.
        """
        kept = (category >= 0) & (image >= 0)
        count = int(np.count_nonzero(kept))
        out_image, out_category, out_rank, out_scores = allocate(  # one allocation, freed as a whole
            *[(count, np.int32)] * 3, (count if scores is not None else 0, np.float64)
        )
        order, cells, starts = np.empty(count, np.int32), np.empty(count, np.int64), np.empty(images + 1, np.int64)
        # The kernel reads all rows if `rows` is empty, so `image` must be empty if no row is kept.
        rows = readonly(() if count == kept.size and not reverse else np.flatnonzero(kept), np.int32)
        if reverse:
            rows = readonly(rows[::-1], np.int32)
        sorting.group_by(readonly(image if count else (), np.int32), rows, order, starts)
        starts = readonly(starts, np.int64)
        given = readonly(() if scores is None else scores, np.float64).view(np.uint64)
        codes = readonly(category, np.int32)
        placed = sorting.Placed(order, out_image, out_category, out_rank, out_scores.view(np.uint64))

        def arrange(begin: int, end: int) -> NDArray[np.int64]:
            made = sorting.arrange_cells(starts, codes, given, merged, begin, end, placed, cells)
            return cells[starts[begin] : starts[begin] + made]

        found = parallel.run(arrange, parallel.cut(starts, threads), threads)
        cell_starts = np.concatenate([*found, [count]])
        if count and out_rank.max() >= cap:  # objects have no cap
            within = out_rank < cap
            order, out_image, out_category = order[within], out_image[within], out_category[within]
            out_rank, out_scores = out_rank[within], out_scores[within]
            cell_starts = np.concatenate(([0], np.cumsum(np.minimum(np.diff(cell_starts), cap))))
        return cls(
            readonly(order, np.int32),
            readonly(out_image, np.int32),
            readonly(out_category, np.int32),
            readonly(out_rank, np.int32),
            readonly(out_scores, np.float64),
            readonly(cell_starts, np.int64),
        )

    def cells(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return each cell's image and category."""
        first = self.starts[:-1]
        return readonly(self.image[first], np.int32), readonly(self.category[first], np.int32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Arrangement:
    """Both tables' rows in order of image, category and, for detections, descending score.

    A position is a row's index in this order; columns "by position" have one value per position. A row has no position
    if its image or category is not evaluated, or if it is a detection beyond the largest of the protocol's `max_dets`.
    """

    #: The protocol under which the tables are matched.
    protocol: Protocol
    #: The kind of geometry that is compared, such as boxes or masks.
    kind: Kind
    #: The evaluated images, ascending; shape (i,).
    image_ids: NDArray[Any]
    #: The evaluated categories, ascending by id; the single pair ``(None, "all")`` if categories are not used.
    categories: tuple[tuple[Any, str], ...]
    #: The evaluated detections and objects.
    found: Side
    truth: Side
    #: The pairs of image and category with both detections and objects, usually a small part of all pairs.
    cells: overlap.Cells
    #: The limits of area ranges and levels of difficulty.
    ranges: matching.Ranges
    #: The properties of objects that matching needs, by position.
    objects: matching.Objects
    #: Mask, by position, of the objects whose annotation has the id 0, shape (objects,); None if there are none.
    zero: NDArray[np.bool_] | None
    #: The cluster of each image, shape (i,); None if images are independent.
    clusters: NDArray[Any] | None
    #: The crowd index of each image, if the protocol groups images by crowd index; None if unknown.
    crowd_index: NDArray[np.float64] | None
    #: The frequency of each category, if known and if the protocol groups categories by frequency.
    frequencies: dict[Any, str]
    #: The number of occurrences of each kind of unusual input, by notice code.
    notices: dict[str, int]
    #: The detections that can be matched to objects of another category (`Protocol.absorbing`), for each pair of image and
    #: category in `cells`. The positions of these detections come after the positions of `found`.
    others: overlap.Cells
    #: The row in the table and the score of each detection, by position; the detections of `others` are included.
    order: NDArray[np.int32]
    scores: NDArray[np.float64]
    #: Angles of detections and of objects by position, in radians, for the similarity of orientation; empty if unknown.
    angles: tuple[NDArray[np.float64], NDArray[np.float64]]
    _columns: tuple[Column, Column]
    _compared: tuple[Any, Any]
    _own_areas: NDArray[np.float64] | None
    _measuring: Measures
    _measured: Measured
    _lenient: NDArray[np.bool_] | None
    _bounds: tuple[overlap.Boxes, overlap.Boxes]
    _reach: tuple[overlap.Boxes, overlap.Boxes] | None
    _least: float
    _crowd: NDArray[np.bool_]
    _boxed: BoxedObjects | None

    @classmethod
    def of(
        cls,
        ground_truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        image_ids: Sequence[Any] | ArrayLike | None = None,
        category_ids: Sequence[Any] | ArrayLike | None = None,
        threads: int | None = None,
    ) -> Arrangement:
        """Arrange two tables; parameters and errors are those of `detmap.match`."""
        kind = find(protocol.iou_type)
        ground_truth = listing(ground_truth, detections, protocol)
        annotated = ground_truth.shapes[BOXES]
        ground_truth, detections = prepared(ground_truth, detections.on_images_of(ground_truth), protocol)
        shapes = detections.shape(kind.name), ground_truth.shape(kind.name)
        compared: tuple[Any, Any] = shapes
        unusual: dict[str, int] = {}
        if kind.prepare is not None:
            *both, unusual = kind.prepare(detections, ground_truth, protocol)
            compared = (both[0], both[1])
        images, image_of = _selection(ground_truth.images.ids, image_ids, "image_ids")
        categories, category_of = _selection(ground_truth.categories.ids, category_ids, "category_ids")
        missing = mismatches.classes_without_results(ground_truth, detections, category_of >= 0)
        notices = {
            **unread(_notices(ground_truth, detections, missing), fields_read(protocol)),
            **unusual,
            **missing_fields(ground_truth, protocol, image_of >= 0),
        }
        if missing and detections.missing_classes == "skip":
            kept = categories[~np.isin(categories, list(missing))]
            categories, category_of = _selection(ground_truth.categories.ids, kept, "category_ids")
        rows = _evaluated(ground_truth, detections, protocol, image_of, category_of)
        notices["unknown_category"] = rows.unknown

        merged = not protocol.use_categories
        truth, neighbours = _objects(ground_truth, protocol, rows, images.size, threads)
        cap, backwards = protocol.max_dets[-1], protocol.ties in ("reversed", "file-reversed")
        found = Side.of(
            rows.found_category, rows.found_image, images.size, merged, threads, detections.scores, cap, backwards
        )
        cells = _joined(found, truth)
        ignored = _ignored(ground_truth, kind, protocol)
        # A crowd that is not ignored is an object like any other: it is matched at most once.
        crowd = ground_truth.crowd & ignored if protocol.crowd_overlap else np.zeros_like(ignored)
        group = groups_of(ground_truth, protocol)
        if group is not None:
            crowd = crowd & ~group
            ignored |= group & (protocol.group_of == "ignored")
        boxed = BoxedObjects.of(ground_truth, kind, protocol)
        roles = roles_of(group, boxed)
        notices = notices_of(boxed, notices, truth.order)
        zero = None if ground_truth.zero_ids is None else ground_truth.zero_ids[truth.order]
        # count only on the selected images, so that the counts of merged tallies add up
        if zero is not None and "zero_id" in notices:
            notices["zero_id"] = int(zero.sum())

        pixel = 1.0 if protocol.inclusive_pixels else 0.0
        by_kind = None if kind.areas is None else kind.areas(ground_truth, protocol)
        areas = _areas(ground_truth.areas if by_kind is None else by_kind, annotated, shapes[1], protocol, pixel)
        measuring = Measures(protocol, _sizes(ground_truth, image_of), images, ground_truth.source)
        measured, measured_objects = (
            Measured(table.shapes[BOXES], side.order, side.image, pixel)  # type: ignore[arg-type]
            for table, side in ((detections, found), (ground_truth, truth))
        )
        order, scores, others = found.order, found.scores, cells._replace(detection_starts=cells.detection_stops)
        if protocol.absorbing and protocol.matching == rematching.BY_OBJECTS and not merged:
            order, others = _absorbing(detections, shapes[0], rows, found, cells, measuring, measured)
            scores = readonly(detections.scores[order], np.float64)
            measured = replace(measured, order=order, image=rows.found_image[order])
        measures, lacking = measuring.of_objects(ground_truth, areas[truth.order], measured_objects)
        notices |= lacking
        least = float(least_overlaps(protocol, protocol.iou_thresholds).min())
        near = None if kind.reach is None else kind.reach(*compared, least)
        reach = None
        if near is not None:
            # With inclusive pixels, boxes less than a pixel apart touch, and so can boxes of width 0.
            reach = _nowhere(near[0].placed(order, 1.0), rows.unscored), near[1].placed(truth.order, 1.0)
        names = dict(zip(ground_truth.categories.ids.tolist(), ground_truth.categories.names, strict=True))
        clusters = ground_truth.images.clusters
        crowding = ground_truth.images.crowd_index if protocol.crowd_groups else None
        return cls(
            protocol=protocol,
            image_ids=images,
            categories=((None, "all"),) if merged else tuple((key, names[key]) for key in categories.tolist()),
            found=found,
            truth=truth,
            cells=cells,
            others=others,
            order=order,
            scores=scores,
            angles=_angles(detections, ground_truth, protocol, kind, order, truth.order),
            ranges=measuring.ranges,
            objects=matching.Objects(
                measures,
                readonly(either(ignored[truth.order], neighbours), np.bool_),
                readonly(crowd[truth.order], np.bool_),
                readonly(() if roles is None else roles[truth.order], np.uint8),
            ),
            zero=None if zero is None or not zero.any() else zero,
            clusters=None if clusters is None else readonly(clusters[image_of >= 0], clusters.dtype),
            crowd_index=None if crowding is None else readonly(crowding[image_of >= 0], np.float64),
            frequencies={} if merged else _frequencies(ground_truth, protocol, categories),
            notices=_relevant(notices, protocol, by_kind is None),
            kind=kind,
            _columns=shapes,
            _compared=compared,
            _own_areas=detections.areas if protocol.result_areas == "own" else None,
            _measuring=measuring,
            _measured=measured,
            _lenient=None if rows.lenient is None else rows.lenient[order],
            _reach=reach,
            _least=least,
            _bounds=(
                _bounds(kind, shapes[0], order, pixel, rows.unscored),
                _bounds(kind, shapes[1], truth.order, pixel, boxed=boxed),
            ),
            _crowd=readonly(crowd if group is None else crowd | group, np.bool_),
            _boxed=boxed,
        )

    def deviations(self, found: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
        """Return the errors of p matched pairs, such as the translation error, shape (p, E).

        `found` and `truth` are the positions of the detections and of the objects of the pairs.
        """
        assert self.kind.deviations is not None
        rows, others = self._bounds[0].order[found], self._bounds[1].order[truth]
        half = has_rule(self.protocol, (name for _, name in self.categories), HALF_TURNS)
        return self.kind.deviations(*self._compared, rows, others, half[self.truth.category[truth]])

    def detection_areas(self, begin: int, end: int) -> NDArray[np.float64]:
        """Return the areas by which the detections at positions ``[begin, end)`` are assigned to area ranges."""
        if self._own_areas is None:
            areas = self._shape_areas(begin, end)
        else:
            areas = self._own_areas[self._bounds[0].order[begin:end]]
            unknown = np.isnan(areas)
            if unknown.any():
                areas = np.where(unknown, self._shape_areas(begin, end), areas)
        # Under VOC's rule an unmatched box of negative size is a false positive. A negative area would lie outside of
        # all area ranges, so it is raised to 0.
        if self.protocol.matching == "best":
            areas = np.maximum(areas, 0.0)
        return readonly(areas, np.float64)

    def unmatched_measures(self, begin: int, end: int) -> NDArray[np.float64]:
        """Return the measures, such as area, of detections if they are unmatched, shape (n, M). A detection counts in
        the ranges that contain its measures. A measure of -inf lies in no range.
        """
        areas = self.detection_areas(begin, end)
        measures = self._measuring.of_detections(areas, self._measured, begin, end)
        if self._lenient is not None:
            measures = np.where(self._lenient[begin:end, None], -np.inf, measures)
        return readonly(measures, np.float64)

    def unmatched_outside(self, at: int) -> NDArray[np.bool_]:
        """Return a mask, by position, of the detections that are ignored in area range `at` if unmatched."""
        return outside_of(self.unmatched_measures(0, self.found.order.size), self.ranges)[:, at]

    def _shape_areas(self, begin: int, end: int) -> NDArray[np.float64]:
        shapes, bounds = self._columns[0], self._bounds[0]
        if self.kind.measure is not None:
            return self.kind.measure(shapes, bounds.order, bounds.pixel, begin, end)
        return shapes.areas()[bounds.order[begin:end]]

    def candidates(
        self, cells: overlap.Cells, lowest: float, begin: int, end: int, stop: NDArray[np.uint8] = NEVER
    ) -> overlap.Candidates:
        """Return the pairs of detection and object that overlap by at least `lowest`, with their overlaps, within the
        items ``[begin, end)`` of `cells`.

        An item of `cells` is a pair of image and category or, if pairs across categories are wanted, a whole image.
        Once `stop` is set, the remaining items are skipped.
        """
        kind, bounds = self.kind, self._bounds
        if self.protocol.matching == "by-object":  # this rule needs every ignored object that a detection touches
            lowest = min(lowest, _TOUCHING)
        least = {"threshold": lowest, "touch": min(lowest, _TOUCHING), "all": -np.inf}[kind.propose]
        if self._reach is not None and lowest >= self._least:
            bounds, least = self._reach, _TOUCHING
        found = pair_limits.candidates(cells, bounds, self._crowd, least, begin, end, stop)
        if kind.refine is not None and not stop[0]:
            self._refine(kind.refine, cells, found, lowest, begin, end)
        return found

    def _refine(
        self, refine: Any, cells: overlap.Cells, found: overlap.Candidates, lowest: float, begin: int, end: int
    ) -> None:
        """Replace the overlaps of bounding boxes in place by the overlaps of the compared geometries, such as masks."""
        count = int(found.last.max(initial=0))
        rows = pairs.Rows(
            np.empty(count, np.int64), np.empty(count, np.int64), self._bounds[0].order, self._bounds[1].order
        )
        pairs.rows_of(cells, found, begin, end, rows)
        given = Pairs(
            readonly(rows.detections, np.int64),
            readonly(rows.ground_truth, np.int64),
            readonly(self._crowd[rows.ground_truth], np.bool_),
            lowest,
        )
        refine(*self._compared, given, found.iou[:count])
        if self._boxed is not None:
            self._boxed.refine(self._columns[0], self.kind, given, found.iou[:count])


class _Evaluated(NamedTuple):
    """The index of the evaluated image and of the category of each row in both tables; -1 for rows that are left
    out.
    """

    found_image: NDArray[np.int32]
    found_category: NDArray[np.int32]
    truth_image: NDArray[np.int32]
    truth_category: NDArray[np.int32]
    #: Mask of the detections that are ignored, are not matched, and count towards `max_per_category`; None if there are
    #: none.
    unscored: NDArray[np.bool_] | None
    #: Mask of the detections that are ignored if unmatched; None if there are none.
    lenient: NDArray[np.bool_] | None
    #: The number of detections of categories that the ground truth does not list.
    unknown: int


def _evaluated(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    image_of: NDArray[np.int32],
    category_of: NDArray[np.int32],
) -> _Evaluated:
    """Find the rows that are scored.

    `image_of` maps images to indices among the evaluated images, and `category_of` maps categories likewise; -1 if not
    evaluated.
    """
    image = _translate(detections.images, ground_truth.images.ids)
    category = _translate(detections.categories, ground_truth.categories.ids)
    unknown = int((category < 0).sum())
    if len(detections) and unknown == len(detections):
        _check_kinds_of_ids(ground_truth, detections)
    out_of_truth, out_of_found = left_out(ground_truth, detections, protocol)
    judgement = Judgement(ground_truth, protocol, out_of_truth, image, category)
    unscored = either(judgement.unjudged, without_area(detections, protocol))
    lenient = judgement.lenient
    if protocol.max_per_category is None:
        out_of_found, unscored = either(out_of_found, unscored), None
    else:  # ignored rather than removed, because these detections count towards the cap
        lenient = either(lenient, unscored)
    if (image_of < 0).any():
        image = image_of[image]
    if (category_of < 0).any():
        category = np.where(category >= 0, category_of[category], -1).astype(np.int32)
    return _Evaluated(
        image,
        _without(category, out_of_found),
        image_of[ground_truth.images.codes],
        _without(category_of[ground_truth.categories.codes], out_of_truth),
        unscored,
        lenient,
        unknown,
    )


def _without(codes: NDArray[np.int32], rows: NDArray[np.bool_] | None) -> NDArray[np.int32]:
    """Return `codes` with -1 for the given rows."""
    return codes if rows is None else np.where(rows, np.int32(-1), codes)


def _objects(
    ground_truth: GroundTruth, protocol: Protocol, rows: _Evaluated, images: int, threads: int | None
) -> tuple[Side, NDArray[np.bool_] | None]:
    """Arrange the objects, with the copies that `rematching.with_neighbours` adds. Also return a mask of the copies (None
    if there are none).
    """
    merged, reverse = not protocol.use_categories, protocol.matching == "first-free"
    repeated = rematching.with_neighbours(ground_truth, protocol, rows.truth_category, rows.truth_image)
    if repeated is None:
        return Side.of(rows.truth_category, rows.truth_image, images, merged, threads, reverse=reverse), None
    side = Side.of(repeated.category, repeated.image, images, merged, threads, reverse=reverse)
    return replace(side, order=readonly(repeated.rows[side.order], np.int32)), repeated.neighbour[side.order]


def _ignored(ground_truth: GroundTruth, kind: Kind, protocol: Protocol) -> NDArray[np.bool_]:
    """Return a mask of the objects that are ignored in every area range."""
    ignored = np.zeros(len(ground_truth), np.bool_)
    for flag in protocol.ignore:
        ignored |= getattr(ground_truth, flag)
    if kind.ignored is not None:
        ignored |= kind.ignored(ground_truth.shape(kind.name))
    if protocol.valid_flag in ground_truth.part_flags:
        ignored |= ~ground_truth.part_flags[protocol.valid_flag]
    return ignored


def _areas(
    areas: NDArray[np.float64], annotated: Column, shape: Column, protocol: Protocol, pixel: float
) -> NDArray[np.float64]:
    """Return the areas by which objects are assigned to area ranges. `areas` and `annotated` are the areas and boxes in the
    annotations.
    """
    if isinstance(shape, Boxes) and (protocol.object_areas == "shape" or protocol.inclusive_pixels):
        # An annotated area that equals the box's area is recomputed by the protocol's pixel convention, like areas of
        # detections.
        of_box = protocol.object_areas == "shape" or areas == annotated.areas()
        return np.where(of_box, shape.areas(pixel), areas)
    return shape.areas() if protocol.object_areas == "shape" else areas


def _absorbing(
    detections: Detections,
    shape: Column,
    rows: _Evaluated,
    found: Side,
    cells: overlap.Cells,
    measuring: Measures,
    measured: Measured,
) -> tuple[NDArray[np.int32], overlap.Cells]:
    """Find the detections of other categories that can be matched to objects (`Protocol.absorbing`). Return
    `Arrangement.order`, which ends with these detections, and `Arrangement.others`.
    """
    everywhere = readonly(np.arange(len(detections)), np.int32)
    own = detections.areas
    areas = shape.areas() if own is None else np.where(np.isnan(own), 0.0, own)
    every = replace(measured, order=everywhere, image=rows.found_image)
    small = outside_of(measuring.of_detections(areas, every, 0, len(detections)), measuring.ranges)
    added_rows, others = rematching.absorbers(
        cells,
        found.image[cells.detection_starts],
        found.category[cells.detection_starts],
        np.asarray(small.any(axis=1)),
        rows.found_image,
        rows.found_category,
    )
    count = found.order.size
    others = others._replace(
        detection_starts=readonly(others.detection_starts + count, np.int64),
        detection_stops=readonly(others.detection_stops + count, np.int64),
    )
    return readonly(np.concatenate([found.order, added_rows]), np.int32), others


def _angles(
    detections: Detections,
    ground_truth: GroundTruth,
    protocol: Protocol,
    kind: Kind,
    order: NDArray[np.int32],
    truth_order: NDArray[np.int32],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the angles of detections and of objects by position; empty if unknown or not used."""
    found, truth = (rematching.angles_of(table, kind.name) for table in (detections, ground_truth))
    if found is None or truth is None or protocol.matching != rematching.BY_OBJECTS:
        return readonly((), np.float64), readonly((), np.float64)
    return readonly(found[order], np.float64), readonly(truth[truth_order], np.float64)


def _sizes(ground_truth: GroundTruth, image_of: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Return height and width of the evaluated images; None if all are unknown."""
    sizes = ground_truth.images.sizes
    return None if sizes is None else sizes[image_of >= 0]


def _frequencies(ground_truth: GroundTruth, protocol: Protocol, wanted: NDArray[Any]) -> dict[Any, str]:
    """Return the frequencies of the `wanted` categories, if the protocol uses them."""
    column = ground_truth.categories.frequencies
    if not protocol.groups or column is None:
        return {}
    known = dict(zip(ground_truth.categories.ids.tolist(), column, strict=True))
    return {key: known[key] for key in wanted.tolist() if known[key]}


def least_overlaps(protocol: Protocol, iou_thresholds: Sequence[float]) -> NDArray[np.float64]:
    """Return the minimum overlap for a match at each threshold; for distances, the negated maximum distance."""
    given = np.array(iou_thresholds)
    if find(protocol.iou_type).falls:
        given = -given
    # pycocotools uses min(threshold, 1 - 1e-10). Overlaps above a threshold are at least the next float after it.
    bounds = np.minimum(given, 1 - 1e-10) if protocol.matching == "best-free" else given
    return readonly(np.nextafter(given, np.inf) if protocol.strict else bounds, np.float64)


def rule_at(protocol: Protocol, iou: float) -> pairs.Rule:
    """Return the matching rule at one IoU threshold, in the form that the kernels expect."""
    least = float(least_overlaps(protocol, [iou])[0])
    return pairs.Rule(least, protocol.matching == "best", protocol.matching == "by-object")


def least_near(protocol: Protocol, iou: float, floor: float) -> float:
    """Return the minimum overlap of a detection with a nearby object. This is `floor` or, if overlaps are negated distances,
    ``-iou / floor``.
    """
    return -iou / floor if find(protocol.iou_type).falls else floor


def over_cells(task: Callable[[int, int], None], cells: overlap.Cells, threads: int | None) -> None:
    """Run a task on blocks of pairs of image and category of about equal cost."""
    found = cells.detection_stops - cells.detection_starts
    costs = found * (2.0 + (cells.ground_truth_stops - cells.ground_truth_starts) / 8)
    least = _LONG if parallel.thread_count(threads) == 1 else 1.0  # a single thread does not need small blocks
    limit = max(float(costs.sum()) / 16, least)
    parallel.run(task, parallel.split(costs, limit), threads, apart=limit > _LONG)


def _joined(found: Side, truth: Side) -> overlap.Cells:
    """Return the pairs of image and category with both detections and objects."""
    left = np.empty(min(found.starts.size, truth.starts.size), np.int64)
    right = np.empty_like(left)
    count = sorting.join(*found.cells(), *truth.cells(), left, right)
    left, right = left[:count], right[:count]
    return overlap.Cells(
        *(readonly(column, np.int64) for column in (found.starts[left], found.starts[left + 1])),
        *(readonly(column, np.int64) for column in (truth.starts[right], truth.starts[right + 1])),
    )


def _bounds(
    kind: Kind,
    shapes: Column,
    order: NDArray[np.int32],
    pixel: float,
    apart: NDArray[np.bool_] | None = None,
    boxed: BoxedObjects | None = None,
) -> overlap.Boxes:
    """Return the bounding boxes of `shapes` by position, and the areas of `shapes` if the kind defines areas."""
    boxes = _nowhere(shapes.bounds().placed(order, pixel), apart)
    boxes = boxes if kind.covered is None else boxes._replace(areas=readonly(kind.covered(shapes), np.float64))
    return boxes if boxed is None else boxed.proposed(boxes)


def _nowhere(boxes: overlap.Boxes, rows: NDArray[np.bool_] | None) -> overlap.Boxes:
    """Return `boxes` with the given rows replaced by boxes of negative size, which overlap nothing."""
    if rows is None:
        return boxes
    coordinates = boxes.coordinates.copy()
    coordinates[rows, 2:] = -2.0 if boxes.sizes else coordinates[rows, :2] - 2.0
    return boxes._replace(coordinates=readonly(coordinates, np.float64))


def _notices(ground_truth: GroundTruth, detections: Detections, missing: dict[Any, str]) -> dict[str, int]:
    """Return the notices of each table, and the notices about both tables together."""
    notices = added(ground_truth.notices, detections.notices)
    notices = added(notices, mismatches.notices_of_classes(missing, detections))
    return added(notices, mismatches.notices_of_units(ground_truth, detections))


def _relevant(notices: dict[str, int], protocol: Protocol, own_areas: bool) -> dict[str, int]:
    """Drop notices with a count of 0, and notices on input that has no effect under the protocol. `own_areas` tells
    whether areas come from files.
    """
    irrelevant = {
        "group_boxes": protocol.group_of != "object",
        # boxes as fractions of the image have the same IoU as boxes in pixels
        "shares_of_images": len(protocol.area_ranges) == 1 and not protocol.inclusive_pixels,
        "missing_iscrowd": "crowd" not in (*protocol.ignore, *protocol.left_out),
        # with inclusive pixels, a box whose corners are equal is a pixel wide
        "zero_sized_boxes": protocol.inclusive_pixels,
        "missing_area": not own_areas,
    }
    return {code: count for code, count in notices.items() if count and not irrelevant.get(code)}


def _check_kinds_of_ids(ground_truth: GroundTruth, detections: Detections) -> None:
    """Refuse integer category ids in one table and strings in the other, because such ids cannot match."""
    ours, theirs = ground_truth.categories.ids, detections.categories.ids
    if ours.size and ours.dtype.kind != theirs.dtype.kind:
        raise InputError(
            f"category ids such as {theirs[0].item()!r} never match the ground truth's, such as {ours[0].item()!r}",
            source=detections.source,
            remedy="write both as integers, or both as strings",
        )


def _selection(ids: NDArray[Any], wanted: Any, what: str) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the selected ids, and the index of each of `ids` among the selected ids (-1 if not selected)."""
    if wanted is None:
        return ids, np.arange(ids.size, dtype=np.int32)
    mask = select(wanted, ids, what)
    place = np.where(mask, np.cumsum(mask) - 1, -1).astype(np.int32)
    return readonly(ids[mask], ids.dtype), place


def _translate(table: Ids, known: NDArray[Any]) -> NDArray[np.int32]:
    """Return the index of each record's id among the `known` ids, -1 for unknown ids."""
    place = locate(table.ids, known).astype(np.int32)
    if place.size == known.size and (place == np.arange(place.size)).all():
        return table.codes
    return np.asarray(place[table.codes] if place.size else np.empty(0, np.int32))
