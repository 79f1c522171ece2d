"""AP of two tables under many protocols. Work that protocols share is done once, and only pairs of a detection and an
overlapping object are considered.

Most detections overlap no object enough to match it under any rule. Such detections are misses, and only the number of
misses above each hit matters. So the cost of a protocol depends only on its overlapping pairs. The following
intermediate results are shared by protocols and cached:

* orders: the detections sorted by image, category and score;
* rankings: the detections sorted by category and score, with ties broken;
* the kept detections of a ranking: score thresholds and caps remove the last detections of every cell (a pair of image
  and category), so the matches of the kept detections do not change;
* the overlapping pairs, for each setting of the decisions about boxes and overlaps;
* the matches among these pairs, for each setting of the decisions about matching.

Every metric is bit-identical to the metric of `detmap.evaluate`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.choices import UNLIMITED, WHOLE
from detmap.data.tables import Detections, GroundTruth
from detmap.decisions import default_of
from detmap.detection import zero_ids
from detmap.detection.arrangement import Arrangement, Side, least_overlaps, over_cells, rule_at
from detmap.detection.preparation import prepared_scores
from detmap.detection.protocols import Protocol
from detmap.detection.tally import word_count
from detmap.explanations.shared_work import (
    Cells,
    Kept,
    Matched,
    Order,
    Pairs,
    Ranking,
    Recent,
    Scene,
    ranked_by,
    ranks_of,
)
from detmap.hits import SAMPLED, Hits
from detmap.kernels import matching, overlap, pairs, readonly
from detmap.shapes.boxes import Boxes
from detmap.shapes.kinds import BOXES
from detmap.system import parallel

#: The default of each decision.
_PLAIN = {name: default_of(one) for name, one in Protocol.__dataclass_fields__.items()}
_PLAIN |= {"name": "", "iou_thresholds": (0.5,), "recall_thresholds": (0.0,), "area_ranges": (WHOLE,), "max_dets": (1,)}

#: Decisions that remove the last detections of a cell (a pair of image and category), or break ties in the ranking. The
#: matches of the kept detections do not change.
_OF_RANKING = ("min_score", "max_per_image", "max_dets", "scored_images", "ties")

#: Decisions that take effect after matching and ranking, when the metric is computed from the hits.
_LATE = ("interpolation", "recall_thresholds", "epsilon", "per_class_metrics", "name")

#: Decisions about ranking and matching, which do not affect overlaps.
_NOT_OF_PAIRS = (
    *_OF_RANKING, "score_decimals", "iou_thresholds", "strict", "matching", "ignore", "left_out", "area_ranges", "id_zero"
)  # fmt: skip

#: Decisions that affect the overlapping pairs, and decisions that affect the matches.
_OF_PAIRS = (
    "iou_type", "use_categories", "crowd_overlap", "inclusive_pixels", "far_corner", "numbers", "box_decimals",
    "box_offset", "object_areas", "result_areas", "oks_area", "sigmas", "dilation"
)  # fmt: skip
_OF_MATCHING = (*_OF_PAIRS, *(name for name in _NOT_OF_PAIRS if name not in _OF_RANKING))

#: Decisions that `Lean` does not implement.
_UNKNOWN = tuple(name for name in _PLAIN if name not in {*_NOT_OF_PAIRS, *_OF_PAIRS, *_LATE})

#: Maximum coordinate for which the areas of boxes stay within COCO's widest area range, even after rounding or moving.
_TAME = 3e4


def knows(protocol: Protocol) -> bool:
    """Return whether `Lean` implements all decisions of a protocol that differ from the default."""
    known = len(protocol.range_names) == 1 and all(getattr(protocol, name) == _PLAIN[name] for name in _UNKNOWN)
    if protocol.matching not in ("best-free", "best") or protocol.interpolation in SAMPLED:
        return False
    # other rules for ties change the matches
    return known and protocol.ties in ("image", "file")


@dataclass(eq=False)
class Lean:
    """Scores two tables by one metric under many protocols. All protocols have the same `iou_type`, and each has one
    area range and one maximum number of detections. `knows` must be True for each protocol. `matchings` is the number
    of matchings so far.
    """

    ground_truth: GroundTruth
    detections: Detections
    protocol: Protocol
    threads: int | None = None
    matchings: int = 0
    _orders: Recent = field(default_factory=lambda: Recent(8))
    _rankings: Recent = field(default_factory=lambda: Recent(12))
    _kept: Recent = field(default_factory=lambda: Recent(24))
    _pairs: Recent = field(default_factory=lambda: Recent(24))
    _celled: Recent = field(default_factory=lambda: Recent(24))
    _matched: Recent = field(default_factory=lambda: Recent(48))

    def values(self, protocol: Protocol) -> NDArray[np.float64]:
        """Return the precisions that the metric averages, by threshold, recall and category; NaN for a category without
        ground truth. If precision is not read at fixed recalls, the array holds AP, and the axis of recalls has length
        1.
        """
        scene = self._scene(protocol)
        return self._curves(protocol, scene, scene.count(scene.threshold, scene.place + 1, scene.category))

    def notices(self, protocol: Protocol) -> dict[str, int]:
        """Return the notices about the tables."""
        own = {
            "no_detections": int(not self.arranged.found.order.size),
            "empty_categories": int((self.positives(protocol) == 0).sum()),
        }
        return {**self.arranged.notices, **{code: count for code, count in own.items() if count}}

    def ends(self, protocol: Protocol) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return `values` with hits ranked last, and with hits ranked first, among equal scores of a category; None
        without ties.
        """
        ranking = self._ranking(protocol)
        begins, stops = ranking.tied
        kept = self._keep(protocol, ranking)
        if not (kept.ahead[stops] - kept.ahead[begins] > 1).any():
            return None
        scene = self._scene(protocol)
        run = begins[scene.place]
        first = np.ones(run.size, np.bool_)
        first[1:] = (run[1:] != run[:-1]) | (scene.threshold[1:] != scene.threshold[:-1])
        heads = np.flatnonzero(first)
        group = np.cumsum(first) - 1
        within = np.arange(1, run.size + 1) - heads[group]  # index of the hit, from 1, among the hits of equal score
        together = np.diff(np.append(heads, run.size))[group]
        ahead = scene.count(scene.threshold, run, scene.category)
        through = scene.count(scene.threshold, stops[scene.place], scene.category)
        return self._curves(protocol, scene, through - together + within), self._curves(protocol, scene, ahead + within)

    def outcomes(self, protocol: Protocol, iou: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return each detection's outcome (-1 if not scored) and overlap (NaN if unmatched) at one threshold."""
        rule = rule_at(protocol, iou)
        found = self._overlapping(protocol, rule.overlap)
        celled, order = self._cells_of(protocol, found), self._order(protocol)
        outside, objects = self._outside(protocol, found)
        taken = pairs.Taken(
            np.zeros(celled.live.size, np.uint8),
            np.full(celled.live.size, -1, np.int32),
            np.full(celled.live.size, np.nan),
            np.zeros(objects.ignored.size, np.bool_),
        )
        if outside is not None:
            taken.outcome[outside[celled.live]] = pairs.IGNORED

        def assign(begin: int, end: int) -> None:
            pairs.assign(celled.cells, celled.candidates, objects, rule, begin, end, parallel.stop_flag(), taken)

        parallel.run(assign, [(0, celled.cells.detection_starts.size)], 1)
        zero = self._zero(protocol)
        if zero is not None:
            zero_ids.unmatch(taken, zero, _among(outside, celled.live))
        by_position = np.full(order.side.order.size, pairs.MISS, np.int64)
        if outside is not None:
            by_position[outside] = pairs.IGNORED
        by_position[celled.live] = taken.outcome
        ranking = self._ranking(protocol)
        by_position[ranking.order[~self._keep(protocol, ranking).flags]] = -1
        outcome, overlaps = np.full(len(self.detections), -1), np.full(len(self.detections), np.nan)
        outcome[order.side.order] = by_position
        overlaps[order.side.order[celled.live]] = taken.overlap
        overlaps[outcome < 0] = np.nan
        return outcome, overlaps

    def positives(self, protocol: Protocol) -> NDArray[np.int64]:
        """Return the number of positives of each category."""
        counted = self._match(protocol).counted
        if protocol.scored_images == "detected":
            counted = counted & self._keep(protocol, self._ranking(protocol)).seen[self.ground_truth.images.codes]
        codes = self._codes[1][counted]
        return np.bincount(codes if protocol.use_categories else 0 * codes, minlength=self._classes(protocol))

    # ------------------------------------------------------------------------------------------ facts about the tables

    @cached_property
    def arranged(self) -> Arrangement:
        """Both tables in order of image and category, without score threshold and maximum numbers of detections."""
        plain = replace(
            self._plain(self.protocol, {*_NOT_OF_PAIRS, *_LATE}), use_categories=True, max_dets=(UNLIMITED,)
        )
        return Arrangement.of(self.ground_truth, self.detections, plain, threads=self.threads)

    @cached_property
    def _codes(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """The category of each detection and of each object (-1 if not scored), and the image of each detection."""
        made = []
        for side, count in ((self.arranged.found, len(self.detections)), (self.arranged.truth, len(self.ground_truth))):
            codes = np.full(count, -1, np.int32)
            codes[side.order] = side.category
            made.append(codes)
        images = np.zeros(len(self.detections), np.int32)
        images[self.arranged.found.order] = self.arranged.found.image
        return made[0], made[1], images

    @cached_property
    def _tame(self) -> bool:
        """Whether all boxes have areas from 0 to 1e10, even after rounding or moving."""
        if self.protocol.iou_type != BOXES:
            return False
        for table in (self.detections, self.ground_truth):
            boxes = table.shapes[BOXES]
            assert isinstance(boxes, Boxes)
            near, far = boxes.table[:, :2], boxes.table[:, 2:]
            if np.abs(boxes.table).max(initial=0) > _TAME or (far < (0 if boxes.sizes else near)).any():
                return False
        return True

    def _classes(self, protocol: Protocol) -> int:
        return len(self.arranged.categories) if protocol.use_categories else 1

    def _truth(self, protocol: Protocol) -> Side:
        """Return the objects sorted by image and category."""
        merged = not protocol.use_categories
        images = self.ground_truth.images

        def arrange() -> Side:
            return Side.of(self._codes[1], images.codes, images.ids.size, merged, self.threads)

        return self._orders.get_or(("objects", merged), arrange) if merged else self.arranged.truth

    def _zero(self, protocol: Protocol) -> NDArray[np.bool_] | None:
        """Mask of the objects (in the order of `_truth`) that count as missed because their id is 0; None if there are
        none.
        """
        zero = self.ground_truth.zero_ids
        return None if zero is None or protocol.id_zero != zero_ids.MISSED else zero[self._truth(protocol).order]

    # ------------------------------------------------------------------------------------------------- the rankings

    def _order_key(self, protocol: Protocol) -> Hashable:
        return protocol.numbers, protocol.score_decimals, protocol.use_categories, self._early_cap(protocol)

    def _early_cap(self, protocol: Protocol) -> int | None:
        """Return the cap on detections per image if it must be applied before matching, else None."""
        # Without categories, detections of equal score are matched in order of category, but capped in order of rows.
        # So the cap may remove a detection that is not last in matching order.
        return None if protocol.use_categories else protocol.max_per_image

    def _order(self, protocol: Protocol) -> Order:
        def arrange() -> Order:
            scores = prepared_scores(self.detections.scores, protocol)
            category, _, image = self._codes
            cap = self._early_cap(protocol)
            if cap is not None:
                category = np.where(ranks_of(self.detections.images.codes, scores) < cap, category, np.int32(-1))
            count, merged = self.ground_truth.images.ids.size, not protocol.use_categories
            side = Side.of(category, image, count, merged, self.threads, scores)
            position = np.full(scores.size, -1, np.int32)
            position[side.order] = np.arange(side.order.size, dtype=np.int32)
            return Order(scores, side, position, self.detections.images.codes)

        return self._orders.get_or(self._order_key(protocol), arrange)

    def _ranking(self, protocol: Protocol) -> Ranking:
        def rank() -> Ranking:
            side = self._order(protocol).side
            if protocol.ties == "file":
                given = np.argsort(side.order)
                order = given[ranked_by(side.category[given], side.scores[given])]
            else:  # positions are sorted by image and rank, and a stable sort keeps this order among ties
                order = ranked_by(side.category, side.scores)
            place = np.empty(order.size, np.int32)
            place[order] = np.arange(order.size, dtype=np.int32)
            counts = np.bincount(side.category, minlength=self._classes(protocol))
            return Ranking(order, place, np.concatenate(([0], np.cumsum(counts))), side.scores[order])

        return self._rankings.get_or((self._order_key(protocol), protocol.ties), rank)

    def _keep(self, protocol: Protocol, ranking: Ranking) -> Kept:
        def cut() -> Kept:
            order = self._order(protocol)
            left = np.ones(order.scores.size, np.bool_)
            if protocol.min_score is not None:
                left &= ~(order.scores < protocol.min_score)
            if protocol.max_per_image is not None:
                left &= order.image_rank < protocol.max_per_image
            seen = np.zeros(self.ground_truth.images.ids.size, np.bool_)
            if protocol.scored_images == "detected":
                ids = self.detections.images.ids[np.unique(self.detections.images.codes[left])]
                seen = np.isin(self.ground_truth.images.ids, ids)
            flags = left[order.side.order] & (order.side.rank < protocol.max_dets[-1])
            flags = flags[ranking.order]
            ahead = np.zeros(flags.size + 1, np.int32)
            np.cumsum(flags, out=ahead[1:])
            return Kept(flags, ahead, bool(flags.all()), seen)

        return self._kept.get_or((self._order_key(protocol), _key(protocol, _OF_RANKING)), cut)

    # ---------------------------------------------------------------------------------------------------- the pairs

    def _plain(self, protocol: Protocol, names: Any) -> Protocol:
        """Return a protocol with some decisions set to their defaults."""
        return replace(protocol, **{name: _PLAIN[name] for name in names})

    def _overlapping(self, protocol: Protocol, lowest: float) -> Pairs:
        low, high = protocol.area_ranges[0][1:]
        near_only = self._tame and low <= 0 and high >= 1e10
        # Overlaps with ignored crowds are computed in another way. Therefore the cached pairs depend on `ignore`.
        ignore = protocol.ignore if protocol.crowd_overlap and self.ground_truth.crowd.any() else ()
        key = (_key(protocol, _OF_PAIRS), near_only, ignore)
        if key in self._pairs and self._pairs[key].lowest > lowest:
            del self._pairs[key]

        def measure() -> Pairs:
            plain = replace(self._plain(protocol, {*_NOT_OF_PAIRS, *_LATE}), ignore=ignore, max_dets=(UNLIMITED,))
            return self._measure(plain, lowest, near_only)

        return self._pairs.get_or(key, measure)

    @cached_property
    def _near(self) -> dict[bool, NDArray[np.int64]]:
        """Maps each value of `use_categories` to the rows of the detections that may overlap an object. Without
        categories, these are the detections on images with objects; with categories, the image must have objects of the
        detection's category.
        """
        made = {}
        for use in (True, False):
            width = len(self.arranged.categories) if use else 1
            sides = []
            for codes, images in zip(self._codes[:2], (self._codes[2], self.ground_truth.images.codes), strict=True):
                sides.append(images.astype(np.int64) * width + (np.maximum(codes, 0) if use else 0))
            held = np.zeros(self.ground_truth.images.ids.size * width, np.bool_)
            held[sides[1][self._codes[1] >= 0]] = True
            made[use] = np.flatnonzero(held[sides[0]] & (self._codes[0] >= 0))
        return made

    def _measure(self, plain: Protocol, lowest: float, near_only: bool) -> Pairs:
        """Find the overlapping pairs. With `near_only`, only detections of `_near` are compared, and areas of
        detections are not computed.
        """
        rows = self._near[plain.use_categories] if near_only else np.arange(len(self.detections))
        detections = replace(self.detections.take(rows) if near_only else self.detections, missing_classes="zero")
        arranged = Arrangement.of(self.ground_truth, detections, plain, threads=self.threads)
        found, truth = arranged.found, arranged.truth
        parts: dict[int, tuple[NDArray[Any], ...]] = {-1: (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))}

        def measure(begin: int, end: int) -> None:
            made = arranged.candidates(arranged.cells, lowest, begin, end, parallel.stop_flag())
            count = int(made.last.max(initial=0))
            out = pairs.Rows(np.empty(count, np.int64), np.empty(count, np.int64), found.order, truth.order)
            pairs.rows_of(arranged.cells, made, begin, end, out)
            parts[begin] = out.detections, out.ground_truth, made.iou[:count]

        over_cells(measure, arranged.cells, self.threads)
        of_found, of_truth, iou = (
            np.concatenate(column) for column in zip(*(parts[at] for at in sorted(parts)), strict=True)
        )
        scored = self._codes[1][of_truth] >= 0
        object_areas, by_nature = np.full(len(self.ground_truth), np.nan), np.zeros(len(self.ground_truth), np.bool_)
        object_areas[truth.order], by_nature[truth.order] = arranged.objects.measures[:, 0], arranged.objects.ignored
        areas = None
        if not near_only:
            areas = np.full(len(self.detections), np.nan)
            areas[rows[found.order]] = arranged.detection_areas(0, found.order.size)
        return Pairs(lowest, rows[of_found[scored]], of_truth[scored], iou[scored], object_areas, by_nature, areas)

    def _cells_of(self, protocol: Protocol, found: Pairs) -> Cells:
        """Return the pairs without left-out objects, sorted by position of the detection."""

        def cut() -> Cells:
            order, truth = self._order(protocol), self._truth(protocol)
            there = order.position[found.detections] >= 0
            for flag in protocol.left_out:
                there &= ~getattr(self.ground_truth, flag)[found.objects]
            positions = order.position[found.detections[there]]
            sorting = np.argsort(positions, kind="stable")
            positions, iou = positions[sorting], found.iou[there][sorting]
            new = np.ones(positions.size, np.bool_)
            new[1:] = positions[1:] != positions[:-1]
            first = np.flatnonzero(new)
            live = positions[first].astype(np.int64)
            images, width = order.side.image[live].astype(np.int64), self._classes(protocol)
            cell = images * width + order.side.category[live]
            opens = np.ones(live.size, np.bool_)
            opens[1:] = cell[1:] != cell[:-1]
            starts = np.flatnonzero(opens)
            truth_cells = truth.image[truth.starts[:-1]].astype(np.int64) * width + truth.category[truth.starts[:-1]]
            at = np.searchsorted(truth_cells, cell[starts])
            place = np.empty(len(self.ground_truth), np.int64)
            place[truth.order] = np.arange(truth.order.size)
            own = np.repeat(truth.starts[at], np.diff(np.append(first[starts], positions.size)))
            local = (place[found.objects[there][sorting]] - own).astype(np.int32)
            columns = (starts, np.append(starts[1:], live.size)[: starts.size], truth.starts[at], truth.starts[at + 1])
            return Cells(
                live,
                overlap.Cells(*(readonly(column, np.int64) for column in columns)),
                overlap.Candidates(first, np.append(first[1:], positions.size)[: first.size], local, iou),
            )

        return self._celled.get_or((found, self._order_key(protocol), protocol.left_out), cut)

    def _outside(self, protocol: Protocol, found: Pairs) -> tuple[NDArray[np.bool_] | None, matching.Objects]:
        """Return a mask of the detections outside of the area range (None if there are none), and the objects. Objects
        outside of the area range are marked as ignored.
        """
        _, low, high = protocol.area_ranges[0]
        flags = found.by_nature
        for flag in protocol.ignore:
            flags = flags | getattr(self.ground_truth, flag)
        crowd = self.ground_truth.crowd & flags & protocol.crowd_overlap
        flags = flags | (found.object_areas < low) | (found.object_areas > high)
        rows = self._truth(protocol).order
        columns = (
            readonly(found.object_areas[rows, None], np.float64),
            readonly(flags[rows], np.bool_),
            readonly(crowd[rows], np.bool_),
        )
        if found.areas is None:
            return None, matching.Objects(*columns)
        areas = found.areas[self._order(protocol).side.order]
        if protocol.matching == "best":  # under VOC's rules, negative areas count as 0, inside the only area range
            areas = np.maximum(areas, 0.0)
        outside = (areas < low) | (areas > high)
        return (outside if outside.any() else None), matching.Objects(*columns)

    # ----------------------------------------------------------------------------------------------------- the hits

    def _match(self, protocol: Protocol) -> Matched:
        def match() -> Matched:
            self.matchings += 1
            thresholds = least_overlaps(protocol, protocol.iou_thresholds)
            found = self._overlapping(protocol, float(thresholds.min()))
            celled, words = self._cells_of(protocol, found), word_count(protocol)
            outside, objects = self._outside(protocol, found)
            hit, ignored = np.zeros((2, celled.live.size, words), np.uint64)
            if outside is not None:
                ignored[outside[celled.live]] = ~np.uint64(0)
            limits = readonly([protocol.area_ranges[0][1:]], np.float64)
            ranges = matching.Ranges(limits, readonly([0], np.int64))
            levels = matching.Levels(thresholds, ranges, protocol.matching == "best")
            out = matching.Words(hit, ignored)

            def run(begin: int, end: int) -> None:
                stop = parallel.stop_flag()
                matching.match(celled.cells, celled.candidates, objects, levels, begin, end, stop, out)

            parallel.run(run, [(0, celled.cells.detection_starts.size)], 1)
            zero = self._zero(protocol)
            if zero is not None:
                beyond = _among(outside, celled.live)[:, None]
                out = zero_ids.unmatched_words(celled.cells, celled.candidates, objects, levels, zero, beyond, out)
            counted = self._codes[1] >= 0
            for flag in protocol.left_out:
                counted &= ~getattr(self.ground_truth, flag)
            counted[self._truth(protocol).order[objects.ignored]] = False
            hits, ignores = (_flags(side, thresholds.size) for side in out)
            return Matched(celled.live, hits, ignores, outside, counted)

        return self._matched.get_or((_key(protocol, _OF_MATCHING), self._early_cap(protocol)), match)

    def _scene(self, protocol: Protocol) -> Scene:
        """Return the hits of a protocol by threshold, in ranking order."""
        ranking, matched = self._ranking(protocol), self._match(protocol)
        kept, classes = self._keep(protocol, ranking), self._classes(protocol)
        if protocol.ties not in matched.ranked:
            places = ranking.place[matched.live].astype(np.int64)
            by_place = np.argsort(places)
            matched.ranked[protocol.ties] = places[by_place], matched.hit[:, by_place], matched.ignored[:, by_place]
        places, hit, ignored = matched.ranked[protocol.ties]
        if not kept.all:
            there = kept.flags[places]
            hit, ignored = hit & there, ignored & there
        ahead = kept.ahead
        if matched.outside is None:
            changes = -ignored.astype(np.int8) if ignored.any() else np.zeros((len(hit), 0), np.int8)
        else:  # a detection outside of the area range counts only as a hit
            outside = matched.outside[ranking.order]
            ahead = np.concatenate(([0], np.cumsum(kept.flags & ~outside)))
            changes = outside[places] & kept.flags[places] & np.ones_like(hit)
            changes = changes.astype(np.int8) - ignored
        some = np.flatnonzero(changes.any(axis=0)) if changes.size else np.empty(0, np.int64)
        passed = np.zeros((len(hit), some.size + 1), np.int64)
        np.cumsum(changes[:, some], axis=1, out=passed[:, 1:])
        changed = places[some]
        starts = ranking.class_starts
        before_class = ahead[starts].astype(np.int64), np.searchsorted(changed, starts)

        def count(
            thresholds: NDArray[np.int64], stops: NDArray[np.int64], category: NDArray[np.int64]
        ) -> NDArray[np.int64]:
            made = ahead[stops] - before_class[0][category]
            if some.size:
                made += (
                    passed[thresholds, np.searchsorted(changed, stops)] - passed[thresholds, before_class[1][category]]
                )
            return made

        threshold, live = np.divmod(np.flatnonzero(hit), max(places.size, 1))
        at = places[live]
        category = np.searchsorted(starts, at, side="right") - 1
        every = np.repeat(np.arange(len(hit)), classes), np.tile(np.arange(classes), len(hit))
        items = count(every[0], starts[1:][every[1]], every[1])
        return Scene(threshold, at, category, self.positives(protocol), items, count)

    def _curves(self, protocol: Protocol, scene: Scene, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return precision by threshold, recall and category, given the `ranks` of the hits. If the rule for AP does
        not use fixed recalls, return AP, with an axis of length 1 in place of the recalls.
        """
        thresholds, classes = len(protocol.iou_thresholds), scene.positives.size
        counts = np.bincount(scene.threshold * classes + scene.category, minlength=thresholds * classes)
        starts = np.concatenate(([0], np.cumsum(counts)))
        hits = Hits(starts, ranks, np.tile(scene.positives, thresholds), scene.items)
        if protocol.interpolation != "grid":
            found = hits.average_precision(protocol.interpolation, protocol.epsilon, threads=1)
            return np.asarray(found.reshape(thresholds, 1, classes))
        precision, _ = hits.interpolate(protocol.recall_thresholds, protocol.epsilon, threads=1)
        return np.asarray(precision.reshape(thresholds, classes, len(protocol.recall_thresholds)).transpose(0, 2, 1))


def _key(protocol: Protocol, names: Iterable[str]) -> Hashable:
    """Return the values of the decisions `names` of a protocol, as a key for a cache."""
    return tuple(getattr(protocol, name) for name in names)


def _among(outside: NDArray[np.bool_] | None, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the `positions` outside of the area range. `outside` is the mask of all positions, or None if every
    position is inside.
    """
    return np.zeros(positions.size, np.bool_) if outside is None else outside[positions]


def _flags(words: NDArray[np.uint64], thresholds: int) -> NDArray[np.bool_]:
    """Return the first `thresholds` bits of each row of words, as flags of shape (thresholds, rows)."""
    bits = np.unpackbits(np.ascontiguousarray(words, "<u8").view(np.uint8), axis=1, bitorder="little")
    return np.ascontiguousarray(bits[:, :thresholds].T.astype(np.bool_))
