"""Whether objects whose annotation has the id 0 can be found, or are always missed as in pycocotools.

pycocotools writes the id of the object that a detection matches into ``dtMatches``, where 0 means no match. So a
detection that matches the object of id 0 counts as unmatched. It is a false positive, or ignored if its own area is
outside of the area range. The object still counts as a positive, and no other detection can match it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from detmap.data.ids import locate
from detmap.detection.matching_rules import HITS_FIRST
from detmap.detection.measures import outside_of
from detmap.kernels import Frozen, matching, overlap, pairs, readonly
from detmap.system import parallel

if TYPE_CHECKING:
    from detmap.detection.arrangement import Arrangement
    from detmap.detection.protocols import Protocol
    from detmap.detection.tally import Tally

#: Value of the decision `id_zero` under which matches with objects of id 0 are misses.
MISSED = "missed"

#: Maps each value of `id_zero` to the other value.
OTHER: dict[str, Literal["found", "missed"]] = {"found": "missed", "missed": "found"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Otherwise(Frozen):
    """Detections whose outcome depends on whether objects of id 0 are found or missed (the decision `id_zero`)."""

    #: The protocol used for matching.
    protocol: Protocol
    #: False for a tally read from its saved form, which lacks these detections.
    known: bool = True
    #: Image id, category id, and rank within this image and category, which identify each detection; shape (n,).
    image: NDArray[Any]
    category: NDArray[Any]
    rank: NDArray[np.int32]
    #: The rows of `Tally.hit` and `Tally.ignored`, shape (n, w), for these detections under the other value of
    #: `id_zero`.
    hit: NDArray[np.uint64]
    ignored: NDArray[np.uint64]


def joined(parts: Sequence[Tally]) -> Otherwise | None:
    """Concatenate `Tally.otherwise` of tallies of disjoint images."""
    some = [part.otherwise for part in parts if part.otherwise is not None]
    if not some:
        return None
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in some])
        for name in ("image", "category", "rank", "hit", "ignored")
    }
    return replace(some[0], known=all(one.known for one in some), **columns)


def unknown(tally: Tally) -> Tally:
    """Mark the effect of id 0 as unknown, because saved tallies do not store it."""
    if not tally.notices.get("zero_id"):
        return tally
    nothing: dict[str, Any] = {
        name: getattr(tally, name)[:0] for name in ("image", "category", "rank", "hit", "ignored")
    }
    nothing["image"] = tally.image_ids[:0]
    return replace(tally, otherwise=Otherwise(protocol=tally.protocol, known=False, **nothing))


def under_other(tally: Tally) -> tuple[NDArray[np.bool_], Tally] | None:
    """Return a mask of the categories with outcomes that depend on the decision `id_zero`, and the tally of these
    categories under the other value of `id_zero`.

    Return None if no annotation has the id 0, or if the effect is unknown because the tally was saved.
    """
    known = tally.otherwise
    if known is None or not known.known or known.protocol != tally.protocol:
        return None
    places = {key: k for k, (key, _) in enumerate(tally.categories)}
    category = np.array([places.get(key, -1) for key in known.category.tolist()], np.int64)
    image = locate(known.image, tally.image_ids)
    there = (category >= 0) & (image >= 0)
    affected = np.zeros(len(tally.categories), np.bool_)
    affected[category[there]] = True
    cells = tally.category.astype(np.int64) * tally.image_ids.size + tally.image
    wanted = category[there] * tally.image_ids.size + image[there]
    rows = np.flatnonzero(np.isin(cells, wanted))
    row_of = {(cell, rank): row for cell, rank, row in zip(cells[rows], tally.rank[rows], rows, strict=True)}
    at = [row_of.get(key, -1) for key in zip(wanted, known.rank[there], strict=True)]
    changed, to = np.flatnonzero(np.array(at, np.int64) >= 0), np.array(at, np.int64)
    columns: dict[str, Any] = {}
    for name in ("hit", "ignored"):
        words = getattr(tally, name).copy()
        words[to[changed]] = getattr(known, name)[there][changed]
        columns[name] = readonly(words, np.uint64)
    other = replace(tally, ranked=tally.protocol.ties != HITS_FIRST, **columns)  # HITS_FIRST ranks by hits
    return affected, other.of_categories(affected).in_ranking_order()


def carry_out(arranged: Arrangement, levels: matching.Levels, words: matching.Words) -> Otherwise | None:
    """Write the outcomes under the decision `id_zero` into `words`. Return the detections whose outcomes differ under
    the other value of `id_zero`. To find the matches of objects with id 0, matching is repeated for the images and
    categories of these objects.
    """
    if arranged.zero is None:
        return None
    before = np.concatenate(([0], np.cumsum(arranged.zero)))
    cells = arranged.cells
    some = before[cells.ground_truth_stops] > before[cells.ground_truth_starts]
    cells = overlap.Cells(*(readonly(column[some], np.int64) for column in cells))
    candidates = arranged.candidates(
        cells, float(levels.thresholds.min()), 0, cells.detection_starts.size, parallel.stop_flag()
    )
    spans = list(zip(cells.detection_starts.tolist(), cells.detection_stops.tolist(), strict=True))
    rows = np.concatenate([np.empty(0, np.int64), *(np.arange(*span) for span in spans)])
    outside = np.concatenate(
        [
            np.empty((0, levels.ranges.measure.size), np.bool_),
            *(outside_of(arranged.unmatched_measures(*span), levels.ranges) for span in spans),
        ]
    )
    stops = np.cumsum(cells.detection_stops - cells.detection_starts)
    numbered = cells._replace(
        detection_starts=readonly(np.concatenate(([0], stops))[:-1], np.int64),
        detection_stops=readonly(stops, np.int64),
    )
    found = matching.Words(words.hit[rows], words.ignored[rows])
    missed = unmatched_words(numbered, candidates, arranged.objects, levels, arranged.zero, outside, found)
    differ = (found.hit != missed.hit).any(axis=1)  # `ignored` changes only where `hit` does
    chosen, left = (missed, found) if arranged.protocol.id_zero == MISSED else (found, missed)
    words.hit[rows], words.ignored[rows] = chosen
    changed, keys = rows[differ], [key for key, _ in arranged.categories]
    kind = object if keys == [None] else None
    return Otherwise(
        protocol=arranged.protocol,
        image=arranged.image_ids[arranged.found.image[changed]],
        category=np.array(keys, kind)[arranged.found.category[changed]],
        rank=arranged.found.rank[changed],
        hit=left.hit[differ],
        ignored=left.ignored[differ],
    )


def effect(metric: str, id_zero: str, here: float, there: float) -> dict[str, int]:
    """Return a notice that states a metric for both values of `id_zero`. `here` is the metric under the protocol's
    value, and `there` the metric under the other value.
    """
    found, missed = (there, here) if id_zero == MISSED else (here, there)
    digits = 4 if f"{found:.4f}" != f"{missed:.4f}" or found == missed else 17
    return {f"zero_id_effect:{metric} {found:.{digits}f} or {missed:.{digits}f}": 1}


def unmatch(taken: pairs.Taken, zero: NDArray[np.bool_], outside: NDArray[np.bool_]) -> None:
    """Turn hits on objects of id 0 into unmatched detections, in place. `zero` flags objects whose annotation has the id
    0, and `outside` flags detections that are ignored if unmatched. Both have one value per position.
    """
    lost = np.flatnonzero(taken.outcome == pairs.HIT)
    lost = lost[zero[taken.ground_truth[lost]]]
    taken.taken[taken.ground_truth[lost]] = False
    taken.outcome[lost] = np.where(outside[lost], pairs.IGNORED, pairs.MISS)
    taken.ground_truth[lost], taken.overlap[lost] = -1, np.nan


def unmatched_words(
    cells: overlap.Cells,
    candidates: overlap.Candidates,
    objects: matching.Objects,
    levels: matching.Levels,
    zero: NDArray[np.bool_],
    outside: NDArray[np.bool_],
    words: matching.Words,
) -> matching.Words:
    """Return the outcomes that `detmap.kernels.matching.match` wrote, with hits on objects of id 0 turned into unmatched
    detections.

    The d detections of `cells` are numbered consecutively from 0. `zero` flags, by position, the objects whose
    annotation has the id 0. `outside`, shape (d, A), flags the ranges in which a detection is ignored if unmatched.
    `words` holds the arrays that `match` wrote, both of shape (d, w).
    """
    thresholds, found = levels.thresholds, np.zeros((len(outside), 64 * words.hit.shape[1]), np.bool_)
    ignored = np.zeros_like(found)

    def assign(begin: int, end: int) -> None:
        beyond = outside_of(objects.measures, levels.ranges)
        for a in range(levels.ranges.measure.size):
            in_range = objects._replace(ignored=readonly(objects.ignored | beyond[:, a], np.bool_))
            for t, threshold in enumerate(thresholds.tolist()):
                taken = pairs.Taken(
                    np.full(len(outside), pairs.MISS, np.uint8),
                    np.full(len(outside), -1, np.int32),
                    np.empty(len(outside)),
                    np.zeros(zero.size, np.bool_),
                )
                rule = pairs.Rule(threshold, levels.only_best)
                pairs.assign(cells, candidates, in_range, rule, begin, end, parallel.stop_flag(), taken)
                hit = (taken.outcome == pairs.HIT) & zero[taken.ground_truth]
                found[:, a * thresholds.size + t] = hit
                ignored[:, a * thresholds.size + t] = hit & outside[:, a]

    parallel.run(assign, [(0, cells.detection_starts.size)], 1)
    return matching.Words(words.hit & ~_words(found), words.ignored | _words(ignored))


def _words(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return rows of flags as rows of 64-bit words."""
    packed = np.packbits(flags, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)
