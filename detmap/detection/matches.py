"""The outcome of each detection at one IoU threshold, on which diagnoses are based."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.choices import is_number
from detmap.data.ids import categories_given
from detmap.detection import by_objects, zero_ids
from detmap.detection.arrangement import Arrangement, least_near, over_cells, rule_at
from detmap.detection.given import Found, Truth, tables_of
from detmap.detection.matching_rules import BY_FILE, HITS_FIRST
from detmap.detection.measures import outside_of
from detmap.detection.protocols import AnyProtocol, Decisions, Protocol, resolve
from detmap.detection.scored_kinds import asked_protocol, scored_kind
from detmap.detection.tally import rematched
from detmap.errors import OptionError
from detmap.kernels import Frozen, overlap, pairs, readonly
from detmap.kernels.matching import GROUP, Objects
from detmap.kernels.pairs import HIT, IGNORED, MISS
from detmap.shapes import IouType, find
from detmap.system import parallel

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["HIT", "IGNORED", "MISS", "Matches", "match_pairs"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Matches(Frozen):
    """The outcome of every detection at one IoU threshold and in one area range: one row per detection.

    Rows are sorted by image, category and descending score. A detection has no row if it is beyond the largest of the
    protocol's `max_dets`, or if its image or category is not evaluated. If a detection has no matched or nearest
    object, the object's index is -1 and the overlap NaN.

    `outcome` agrees with the `detmap.Tally` of the same protocol at that threshold and area range. In each category the
    number of objects in `missed` is the number of false negatives.

    Attributes
    ----------
    protocol : Protocol
        The protocol used for matching.
    iou : float
        The threshold.
    area : str
        The name of the area range.
    image_ids : ndarray, shape (i,)
        The evaluated images, ascending.
    categories : tuple of (id, name)
        The evaluated categories, ascending by id; the single pair ``(None, "all")`` if categories are not used.
    detection : ndarray of int32, shape (n,)
        The row in the table of detections.
    image, category : ndarray of int32, shape (n,)
        Indices into `image_ids` and `categories`.
    score : ndarray of float64, shape (n,)
        The scores, as given.
    outcome : ndarray of uint8, shape (n,)
        ``MISS`` (0): a false positive. ``HIT`` (1): a true positive. ``IGNORED`` (2): not counted, because the detection
        matches an object that is ignored or outside of the area range, or is itself unmatched and outside of the area
        range.
    ground_truth : ndarray of int32, shape (n,)
        The row of the matched object in the table of ground truth, also if the object is ignored.
    overlap : ndarray of float64, shape (n,)
        The overlap with the matched object. Where distances are compared, all overlaps are negated distances.
    same, same_overlap : ndarray, shape (n,), or None
        The object of the detection's category with the largest overlap, matched or not, and the overlap. Only objects
        that count (neither ignored nor outside of the area range) and overlaps of at least ``floor`` are considered.
        None without ``across_categories``.
    other, other_overlap, other_category : ndarray, shape (n,), or None
        As `same`, but among the objects of all other evaluated categories; `other_category` is an index into `categories`.
    in_group : ndarray of bool, shape (n,), or None
        Whether the matched object stands for a group; None if there are neither groups nor objects that have only a box.
    missed : ndarray of int32, shape (m,)
        Rows of the table of ground truth that count and are unmatched, ascending.
    notices : mapping of str to int
        The number of occurrences of each kind of unusual input, by code.
    """

    protocol: Protocol
    iou: float
    area: str
    image_ids: NDArray[Any]
    categories: tuple[tuple[Any, str], ...]
    detection: NDArray[np.int32]
    image: NDArray[np.int32]
    category: NDArray[np.int32]
    score: NDArray[np.float64]
    outcome: NDArray[np.uint8]
    ground_truth: NDArray[np.int32]
    overlap: NDArray[np.float64]
    missed: NDArray[np.int32]
    in_group: NDArray[np.bool_] | None = None
    same: NDArray[np.int32] | None = None
    same_overlap: NDArray[np.float64] | None = None
    other: NDArray[np.int32] | None = None
    other_overlap: NDArray[np.float64] | None = None
    other_category: NDArray[np.int32] | None = None
    notices: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of detections."""
        return int(self.detection.size)

    def quality(self) -> NDArray[np.float64]:
        """Return the localisation quality of each detection, shape (n,); NaN if unmatched. It is the overlap or, if
        distances are compared, ``1 - distance / threshold``.
        """
        return 1 + self.overlap / self.iou if find(self.protocol.iou_type).falls else self.overlap

    def tie_keys(self) -> NDArray[np.int64]:
        """Return the keys that break ties, shape (n,): detections of equal category and score rank by ascending key."""
        rows = np.arange(len(self))
        if self.protocol.ties in BY_FILE:
            return self.detection.astype(np.int64) * (1 if self.protocol.ties == "file" else -1)
        if self.protocol.ties == "reversed":
            group = np.zeros(rows.size, np.bool_) if self.in_group is None else self.in_group & (self.outcome == HIT)
            keys = np.empty(rows.size, np.int64)
            keys[np.lexsort((self.detection, ~group, -self.image))] = rows
            return keys
        if self.protocol.ties == HITS_FIRST:
            return np.where(self.outcome == HIT, 0, rows.size) + rows
        return rows

    def __repr__(self) -> str:
        hits, ignored = ((self.outcome == what).sum() for what in (HIT, IGNORED))
        counts = f"{len(self)} detections, {hits} hits, {ignored} ignored, {self.missed.size} objects missed"
        return f"<Matches ({self.protocol.iou_type}): {counts}>"


def match_pairs(
    ground_truth: Truth,
    detections: Found,
    protocol: AnyProtocol = "coco",
    *,
    iou: float = 0.5,
    area: str = "all",
    across_categories: bool = False,
    floor: float = 0.1,
    iou_type: IouType | None = None,
    image_ids: Sequence[Any] | ArrayLike | None = None,
    category_ids: Sequence[Any] | ArrayLike | None = None,
    labels: Sequence[Any] | ArrayLike | None = None,
    threads: int | None = None,
    **decisions: Unpack[Decisions],
) -> Matches:
    """Match detections with ground truth at one IoU threshold and return the outcome of each detection.

    Parameters
    ----------
    ground_truth, detections
        Tables, paths, or COCO's JSON, as for `detmap.evaluate`.
    protocol : {"coco", "voc2007", "voc2012"} or Protocol
        The rules of matching, except the IoU threshold.
    iou : float
        The threshold; it need not be one of the protocol's.
    area : str
        The name of one of the protocol's area ranges or levels.
    across_categories : bool
        Also find the object that each detection overlaps most, in its own category and in all others.
    floor : float
        Minimum overlap for ``across_categories``, above 0 and at most 1; for distances, the threshold divided by the
        maximum distance.
    iou_type : {"bbox", "segm", "keypoints", "boundary", "rotated", "probiou"}, optional
        What is compared, as for `detmap.evaluate`.
    image_ids, category_ids : sequence, optional
        The images and categories to match; by default all of the ground truth.
    labels : sequence, optional
        Another name of `category_ids`: give one of the two.
    threads : int, optional
        One per processor by default. The result does not depend on it.
    **decisions
        Any other decision of `Protocol`, as for `detmap.evaluate`.

    Returns
    -------
    Matches
        One row per detection within the largest of the protocol's `max_dets`.

    Raises
    ------
    InputError
        For swapped arguments, detections on unknown images, or selected ids that the ground truth lacks.
    OptionError
        For decisions that cannot be carried out.
    """
    truth, found = tables_of(ground_truth, detections, protocol, iou_type, decisions.get("levels"))
    protocol = asked_protocol(protocol, truth)
    kind = scored_kind(protocol, iou_type, truth, found)
    decided = resolve(protocol, iou_type=kind, caller=match_pairs, **decisions)
    if not is_number(iou) or not math.isfinite(iou):
        raise OptionError(f"iou must be one finite number, not {iou!r}")
    if not is_number(floor) or not 0 < floor <= 1:
        raise OptionError(f"floor must be above 0 and at most 1, not {floor!r}")
    arranged = Arrangement.of(truth, found, decided, image_ids, categories_given(category_ids, labels), threads)
    return matches_of(arranged, iou, area, floor if across_categories else None, threads)


def matches_of(
    arranged: Arrangement, iou: float, area: str = "all", floor: float | None = None, threads: int | None = None
) -> Matches:
    """Return the matches of arranged tables. If `floor` is given, the matches include the nearest objects of each
    detection, in its own and in other categories.
    """
    decided = arranged.protocol
    if area not in decided.range_names:
        raise OptionError(f"no area range is called {area!r}; these are: {', '.join(decided.range_names)}")
    at = decided.range_names.index(area)
    found, truth, objects = arranged.found, arranged.truth, arranged.objects
    outside = objects.ignored | outside_of(objects.measures, arranged.ranges)[:, at]
    objects = objects._replace(ignored=readonly(outside, np.bool_))
    taken = taken_at(arranged, objects, float(iou), at, threads)
    group = None
    if objects.role.size:
        group = np.append(objects.role == GROUP, False)[taken.ground_truth]
        unseen = (taken.outcome == HIT) & group & ~(found.scores > 0)  # these find no group, see `group_boxes.settle`
        taken.outcome[unseen] = IGNORED
    best = (
        None if floor is None else _nearest(arranged, objects, least_near(decided, float(iou), float(floor)), threads)
    )
    hit = np.zeros(truth.order.size, np.bool_)
    hit[taken.ground_truth[taken.outcome == HIT]] = True
    more: dict[str, NDArray[Any]] = {}
    if best is not None:
        more = {
            "same": _at(truth.order, best.same),
            "same_overlap": readonly(best.same_overlap, np.float64),
            "other": _at(truth.order, best.other),
            "other_overlap": readonly(best.other_overlap, np.float64),
            "other_category": _at(truth.category, best.other),
        }
    return Matches(
        protocol=decided,
        iou=float(iou),
        area=area,
        image_ids=arranged.image_ids,
        categories=arranged.categories,
        detection=found.order,
        image=found.image,
        category=found.category,
        score=found.scores,
        outcome=readonly(taken.outcome, np.uint8),
        ground_truth=_at(truth.order, taken.ground_truth),
        overlap=readonly(taken.overlap, np.float64),
        in_group=None if group is None else readonly(group, np.bool_),
        missed=readonly(np.sort(truth.order[~(outside | hit)]), np.int32),
        notices=arranged.notices,
        **more,
    )


def _at(column: NDArray[np.int32], positions: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a column's values at positions, and -1 where a position is -1."""
    return readonly(np.append(column, np.int32(-1))[positions], np.int32)


def taken_at(arranged: Arrangement, objects: Objects, iou: float, at: int, threads: int | None) -> pairs.Taken:
    """Match at one threshold, in the area range with index `at`. The caller must flag `objects` outside of this range
    as ignored.
    """
    protocol = arranged.protocol
    if rematched(protocol):
        return by_objects.taken(arranged, objects, iou, at, threads)
    rule = rule_at(protocol, iou)
    outside = arranged.unmatched_outside(at)
    out = unmatched(arranged, outside)

    def assign(begin: int, end: int) -> None:
        stop = parallel.stop_flag()
        candidates = arranged.candidates(arranged.cells, rule.overlap, begin, end, stop)
        pairs.assign(arranged.cells, candidates, objects, rule, begin, end, stop, out)

    over_cells(assign, arranged.cells, threads)
    if arranged.zero is not None and protocol.id_zero == zero_ids.MISSED:
        zero_ids.unmatch(out, arranged.zero, outside)
    return out


def unmatched(arranged: Arrangement, outside: NDArray[np.bool_]) -> pairs.Taken:
    """Return columns in which no detection is matched. Detections flagged by `outside` are ignored, and all others are
    misses.
    """
    count = arranged.found.order.size
    return pairs.Taken(
        np.where(outside, IGNORED, MISS).astype(np.uint8),
        np.full(count, -1, np.int32),
        np.full(count, np.nan),
        np.zeros(arranged.truth.order.size, np.bool_),
    )


def images_of(arranged: Arrangement) -> overlap.Cells:
    """Return the ranges of positions of detections and objects, for each image with both."""
    found, truth = arranged.found, arranged.truth
    images = np.arange(arranged.image_ids.size + 1, dtype=np.int32)
    left, right = (np.searchsorted(side.image, images) for side in (found, truth))
    both = (np.diff(left) > 0) & (np.diff(right) > 0)
    return overlap.Cells(*(readonly(column[both], np.int64) for column in (left[:-1], left[1:], right[:-1], right[1:])))


def _nearest(arranged: Arrangement, objects: Objects, floor: float, threads: int | None) -> pairs.Nearest:
    """Return, for each detection, the object with the largest overlap in its own category and in all other categories."""
    found, truth = arranged.found, arranged.truth
    cells = images_of(arranged)
    search = pairs.Search(found.category, truth.category, floor, arranged.protocol.matching == "best")
    count = found.order.size
    out = pairs.Nearest(
        np.full(count, -1, np.int32), np.full(count, np.nan), np.full(count, -1, np.int32), np.full(count, np.nan)
    )

    def search_block(begin: int, end: int) -> None:
        stop = parallel.stop_flag()
        candidates = arranged.candidates(cells, floor, begin, end, stop)
        pairs.nearest(cells, candidates, objects, search, begin, end, stop, out)

    over_cells(search_block, cells, threads)
    return out
