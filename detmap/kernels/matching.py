"""Match detections with candidate objects, and set the bits of detections that are hits or ignored.

Bit ``a * T + t`` of a detection's row of words belongs to area range *a* and IoU threshold *t*.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import helper, kernel, readonly
from detmap.kernels.overlap import Candidates, Cells, longest_run

Array = NDArray[Any]

_NONE = readonly((), np.uint8)

#: The roles of objects: a single object, or a group of objects. A boxed object or group has only a box, and lacks the
#: compared geometry, such as a mask.
SINGLE, GROUP, BOXED, BOXED_GROUP = range(4)


class Objects(NamedTuple):
    """The ground truth for matching. Row *p* is the object at position *p*: its ``measures``, shape (n, M), the flags
    ``ignored`` and ``crowd``, and its ``role``. Detections that hit no other object may be assigned to a group. Objects
    that lack the compared geometry, such as a mask, are matched by their boxes; detections that only match such objects
    are ignored. ``role`` is empty where all objects are single.
    """

    measures: Array
    ignored: Array
    crowd: Array
    role: Array = _NONE


class Ranges(NamedTuple):
    """Area ranges. ``limits``, shape (A, 2), has the minimum and maximum of each range; ``measure``, shape (A,), has the
    column of ``Objects.measures`` that is compared with these limits.
    """

    limits: Array
    measure: Array


class Levels(NamedTuple):
    """The requirements of a match: ``thresholds``, shape (T,), are minimum overlaps, and ``ranges`` are area ranges. With
    ``only_best``, a detection only considers its best object (VOC's rule).
    """

    thresholds: Array
    ranges: Ranges
    only_best: bool


class Words(NamedTuple):
    """Flags of each detection as bits, one for each area range and threshold: whether it is a ``hit``, and whether it
    is ``ignored``.
    """

    hit: Array
    ignored: Array


class Ranked(NamedTuple):
    """Detections by class and descending score, with columns of `detmap.detection.tally.Tally`; class *c* has the rows
    ``starts[c]:starts[c + 1]``.
    """

    starts: Array
    ranks: Array
    scores: Array
    hit: Array
    ignored: Array


class Collected(NamedTuple):
    """The hits of rankings, with the columns of `detmap.hits.Hits`; `scores` and `first_scores` may be empty."""

    starts: Array
    ranks: Array
    scores: Array
    items: Array
    first_scores: Array


@helper
def _threshold_bits(ranges: int, thresholds: int, out: Array) -> None:
    """Write masks that select the bits of one threshold in every area range; `out` has the shape (min(T, 64), words).
    Row *t* selects threshold *t*. If there are more than 64 thresholds, word *w* of row *i* selects threshold ``(64 * w
    + i) % T``.
    """
    for row in range(out.shape[0]):
        for w in range(out.shape[1]):
            out[row, w] = np.uint64(0)
    for bit in range(ranges * thresholds):
        row = bit % thresholds if thresholds <= 64 else bit & 63
        out[row, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@helper
def _range_bits(thresholds: int, out: Array) -> None:
    """Write masks that select the bits of one area range at every threshold; `out` has the shape (A, words)."""
    for a in range(out.shape[0]):
        for w in range(out.shape[1]):
            out[a, w] = np.uint64(0)
        for bit in range(a * thresholds, (a + 1) * thresholds):
            out[a, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@kernel
def mark_misses(
    measures: Array, ranges: Ranges, thresholds: int, begin: int, end: int, hit: Array, ignored: Array
) -> None:
    """Initialise detections ``[begin, end)`` as misses; a detection is ignored in the area ranges that do not contain
    its `measures`.
    """
    words = ignored.shape[1]
    bits = np.empty((ranges.limits.shape[0], words), np.uint64)
    _range_bits(thresholds, bits)
    for d in range(begin, end):
        for w in range(words):
            hit[d, w] = np.uint64(0)
            outside = np.uint64(0)
            for a in range(ranges.limits.shape[0]):
                value = measures[d - begin, ranges.measure[a]]
                outside |= np.uint64((value < ranges.limits[a, 0]) | (value > ranges.limits[a, 1])) * bits[a, w]
            ignored[d, w] = outside


@helper
def _worse(candidates: Candidates, a: int, b: int) -> Any:
    """Return whether candidate `a` overlaps less than `b`; in a tie the earlier object is worse."""
    return candidates.iou[a] < candidates.iou[b] or (
        candidates.iou[a] == candidates.iou[b] and candidates.ground_truth[a] < candidates.ground_truth[b]
    )


@helper
def _rise(candidates: Candidates, first: int, count: int, rising: Array) -> None:
    """Sort a detection's candidates from worst to best: few by insertion, many by heapsort."""
    if count <= 32:
        for i in range(count):
            j = i
            while j > 0 and _worse(candidates, first + i, rising[j - 1]):
                rising[j] = rising[j - 1]
                j -= 1
            rising[j] = first + i
        return
    for i in range(count):
        rising[i] = first + i
    for end in range(2 * count - 1, 0, -1):
        if end >= count:  # first make a heap, from the last parent up
            root, size = end - count, count
        else:  # then move the maximum behind the heap
            rising[0], rising[end] = rising[end], rising[0]
            root, size = 0, end
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and _worse(candidates, rising[child], rising[child + 1]):
                child += 1
            if not _worse(candidates, rising[root], rising[child]):
                break
            rising[root], rising[child] = rising[child], rising[root]
            root = child


@helper
def _free(objects: Objects, start: int, count: int, ranges: Ranges, inside: Array, words: Words) -> None:
    """Mark `count` objects of one image and category as free. Each bit stands for a threshold and an area range. In
    `words`, ``hit`` has the bits for which an object is matched, and ``ignored`` the bits for which it is ignored.
    """
    for g in range(count):
        for w in range(inside.shape[1]):
            words.hit[g, w] = np.uint64(0)
            words.ignored[g, w] = np.uint64(0)
            for a in range(inside.shape[0]):
                value = objects.measures[start + g, ranges.measure[a]]
                if objects.ignored[start + g] or value < ranges.limits[a, 0] or value > ranges.limits[a, 1]:
                    words.ignored[g, w] |= inside[a, w]


@helper
def _best_by_role(candidates: Candidates, first: int, last: int, roles: Array, start: int, out: Array) -> None:
    """Write for each role the candidate with the largest overlap, -1 if there is none; the first object wins ties."""
    for role in range(out.shape[0]):
        out[role] = -1
    for i in range(first, last):
        role = np.int64(roles[start + candidates.ground_truth[i]]) if roles.shape[0] else np.int64(0)
        found = out[role]
        if found < 0 or candidates.iou[i] > candidates.iou[found]:
            out[role] = i
            continue
        earlier = candidates.ground_truth[i] < candidates.ground_truth[found]
        if candidates.iou[i] == candidates.iou[found] and earlier:
            out[role] = i


@helper
def _single_only(candidates: Candidates, roles: Array, start: int, rising: Array, count: int) -> Any:
    """Remove groups, and objects that have only a box, from `count` candidates, keeping the order; return how many are
    left.
    """
    kept = np.int64(0)
    for j in range(count):
        if roles[start + candidates.ground_truth[rising[j]]] == SINGLE:
            rising[kept] = rising[j]
            kept += 1
    return kept


@helper
def _reached(iou: float, thresholds: Array, reaches: Array, w: int) -> Any:
    """Return the bits of word *w* for which `iou` reaches the threshold."""
    enough = np.uint64(0)
    skip = 64 * w if thresholds.shape[0] > 64 else 0
    for k in range(reaches.shape[0]):
        t = (skip + k) % thresholds.shape[0] if skip else k
        if not iou < thresholds[t]:
            enough |= reaches[k, w]
    return enough


@kernel
def match(
    cells: Cells,
    candidates: Candidates,
    objects: Objects,
    levels: Levels,
    begin: int,
    end: int,
    stop: Array,
    out: Words,
) -> None:
    """Match the detections of the image-category pairs ``[begin, end)``, best score first; set the bits of matched
    detections.

    By COCO's rule a detection is matched to the free object that it overlaps most (the last in a tie). Ignored
    objects are only considered if no other free object overlaps the detection enough; a crowd is always free. By VOC's rule
    (`only_best`) a detection only considers the object that it overlaps most (the first in a tie). If that object is
    ignored, the detection is ignored; if that object is already matched, the detection is a miss.

    All thresholds and area ranges are matched at once, with one bit for each combination. Candidates are tried in
    descending order of overlap. For each combination, a candidate is matched if it is free, if its overlap reaches the
    threshold, and if the detection has no better match.

    A detection that matches no single object is assigned to the group that it overlaps most. The first detection that
    is assigned to a group is a hit. To mark a hit on a group, the bits of both ``hit`` and ``ignored`` are set. Later
    detections of the group are ignored. Other detections are ignored if they match an object or a group that has only a
    box.

    The kernel returns early once `stop` is set. `out` must be initialised by `mark_misses`. The loop over thresholds is
    inlined by hand, which saves 5 %.
    """
    thresholds, ranges, words = levels.thresholds, levels.ranges, out.hit.shape[1]
    widest, most = longest_run(cells.ground_truth_starts, cells.ground_truth_stops, begin, end), 0
    for r in range(candidates.first.shape[0]):
        most = max(most, candidates.last[r] - candidates.first[r])
    reaches = np.empty((min(thresholds.shape[0], 64), words), np.uint64)
    _threshold_bits(ranges.limits.shape[0], thresholds.shape[0], reaches)
    inside = np.empty((ranges.limits.shape[0], words), np.uint64)
    _range_bits(thresholds.shape[0], inside)
    outside, taken = np.empty((widest, words), np.uint64), np.empty((widest, words), np.uint64)
    rising = np.empty(
        most, np.int64
    )  # a detection's candidates by ascending overlap, the earlier object of a tie first
    row, roles, best = 0, objects.role.shape[0] > 0, np.empty(4, np.int64)
    for c in range(begin, end):
        start = cells.ground_truth_starts[c]
        _free(objects, start, cells.ground_truth_stops[c] - start, ranges, inside, Words(taken, outside))
        for d in range(cells.detection_starts[c], cells.detection_stops[c]):
            if stop[0]:
                return
            first, last = candidates.first[row], candidates.last[row]
            row += 1
            count = last - first
            if count == 0:
                continue
            if roles or levels.only_best:
                _best_by_role(candidates, first, last, objects.role, start, best)
            if levels.only_best:
                rising[0] = best[SINGLE]
                count = np.int64(rising[0] >= 0)
            else:
                _rise(candidates, first, count, rising)
                if roles:
                    count = _single_only(candidates, objects.role, start, rising, count)
            for w in range(words):
                done, passed = np.uint64(0), np.uint64(0)
                for real in (True, False):
                    for j in range(count - 1, -1, -1):
                        i = rising[j]
                        g = candidates.ground_truth[i]
                        offered = ~outside[g, w] if real else outside[g, w]
                        if not (objects.crowd[start + g] or (levels.only_best and not real)):
                            offered &= ~taken[g, w]
                        offered &= ~(done | passed)
                        if offered == 0:
                            continue
                        enough = np.uint64(0)
                        skip = 64 * w if thresholds.shape[0] > 64 else 0
                        for k in range(reaches.shape[0]):
                            t = (skip + k) % thresholds.shape[0] if skip else k
                            if not candidates.iou[i] < thresholds[t]:
                                enough |= reaches[k, w]
                        offered &= enough
                        taken[g, w] |= offered
                        if real:
                            done |= offered
                        else:
                            passed |= offered
                out.ignored[d, w] &= ~done
                for role in range(GROUP, best.shape[0] if roles else GROUP):
                    if best[role] < 0:
                        continue
                    g = candidates.ground_truth[best[role]]
                    fallen = _reached(candidates.iou[best[role]], thresholds, reaches, w) & ~(done | passed)
                    if role == GROUP:
                        first_in = fallen & ~(taken[g, w] | outside[g, w])
                        taken[g, w] |= first_in
                        done |= first_in
                    elif role == BOXED:
                        fallen &= ~taken[g, w]
                        taken[g, w] |= fallen
                    passed |= fallen
                out.hit[d, w] = done
                out.ignored[d, w] |= passed


@kernel
def count_bits(starts: Array, words: Array, out: Array) -> None:
    """Add to ``out[g, bit]`` the number of rows ``starts[g]:starts[g + 1]`` of `words` in which the bit is set."""
    for g in range(starts.shape[0] - 1):
        for row in range(starts[g], starts[g + 1]):
            for w in range(words.shape[1]):
                rest, bit = words[row, w], 64 * w
                while rest:
                    out[g, bit] += np.int64(rest & np.uint64(1))
                    rest >>= np.uint64(1)
                    bit += 1


@kernel
def count_hits(rows: Ranked, caps: Array, out: Array) -> None:
    """Add to ``out[c, m, bit]`` the number of hits of class *c* whose rank is below ``caps[m]``; `caps` are ascending."""
    cuts = caps.shape[0]
    for c in range(rows.starts.shape[0] - 1):
        for d in range(rows.starts[c], rows.starts[c + 1]):
            for w in range(rows.hit.shape[1]):
                rest, bit, m = rows.hit[d, w], 64 * w, 0
                if rest == 0:
                    continue
                while m < cuts and rows.ranks[d] >= caps[m]:
                    m += 1
                while rest and m < cuts:
                    out[c, m, bit] += np.int64(rest & np.uint64(1))
                    rest >>= np.uint64(1)
                    bit += 1
        for m in range(1, cuts):  # hits within a cap are within all larger caps
            for bit in range(out.shape[2]):
                out[c, m, bit] += out[c, m - 1, bit]


@helper
def _first_bits(areas: int, thresholds: int) -> Any:
    """Return the word with the bit of the first threshold set in every area range."""
    bits = np.uint64(0)
    for area in range(areas):
        bits |= np.uint64(1) << np.uint64(area * thresholds)
    return bits


@helper
def _items(counted: Array, skipped: Array, ranking: int, thresholds: int) -> Any:
    """Return the number of detections that count in a ranking."""
    area, pair = ranking // skipped.shape[1], ranking % skipped.shape[1]
    items = -skipped[area, pair]
    for m in range(pair // thresholds + 1):
        items += counted[area, counted.shape[1] - 1 - m]
    return items


@helper
def _close_up(found: Array, out: Collected) -> None:
    """Make the hits of all rankings contiguous: ranking *r* has ``found[r]`` hits, written from ``out.starts[r]`` on."""
    written = 0
    for ranking in range(found.shape[0]):
        start = out.starts[ranking]
        out.starts[ranking] = written
        for j in range(found[ranking]):
            out.ranks[written] = out.ranks[start + j]
            if out.scores.shape[0]:
                out.scores[written] = out.scores[start + j]
            written += 1
    out.starts[found.shape[0]] = written


@kernel
def collect_hits(
    rows: Ranked, caps: Array, positives: Array, thresholds: int, begin: int, end: int, out: Collected
) -> None:
    """Write the hits of rankings ``[begin, end)``; a ranking is numbered ``((class * A + area) * M + cap) * T +
    threshold``.

    Detections are sorted by class and descending score. A ranking leaves out detections whose rank within their image
    is beyond its cap, and detections that are ignored at its threshold. All rankings of a class are made in one pass.
    Most detections are misses or ignored at every threshold, and only need to be counted. `caps` ascend. On input
    ``out.starts`` reserves room for all possible hits of each ranking; on output it holds the starts of the actual
    hits. The loops over caps and words are inlined by hand, which saves 4 % on crowded images.
    """
    class_starts, ranks, scores, hit, ignored = rows.starts, rows.ranks, rows.scores, rows.hit, rows.ignored
    areas, words, cuts = positives.shape[1], hit.shape[1], caps.shape[0]
    per_area, scored = cuts * thresholds, out.first_scores.shape[0] > 0
    found = np.empty(end - begin, np.int64)
    for ranking in range(end - begin):
        found[ranking] = 0
    # Numbers of detections, by area range and by the number of caps that include the detection.
    counted = np.empty((areas, cuts + 1), np.int64)
    skipped = np.empty((areas, per_area), np.int64)
    masks = np.empty((areas, words), np.uint64)
    _range_bits(thresholds, masks)
    # The bits of the first threshold in every area range, for the usual case that one word holds all flags.
    firsts = _first_bits(areas if words == 1 else 0, thresholds)
    at = begin
    while at < end:
        c = at // (areas * per_area)
        base = c * areas * per_area
        stop = min(base + areas * per_area, end)
        first_area, last_area = (at - base) // per_area, (stop - 1 - base) // per_area
        for area in range(areas):  # a loop, because numba compiles an error message into a slice assignment
            for cut in range(cuts + 1):
                counted[area, cut] = 0
            for pair in range(per_area):
                skipped[area, pair] = 0
        for i in range(class_starts[c + 1] - class_starts[c]):
            d = np.uint64(class_starts[c] + i)  # unsigned, because numba checks signed indices for negative values
            within = np.uint64(0)
            for m in range(cuts):
                within += np.uint64(ranks[d] < caps[m])
            # Nearly all detections are misses whose ``ignored`` flag is the same at all thresholds of an area range.
            # The product copies the flag of the first threshold to all thresholds.
            outside = ignored[d, 0] & firsts
            if words == 1 and hit[d, 0] == 0 and ignored[d, 0] == outside * masks[0, 0]:
                for area in range(areas):
                    counted[area, within] += np.int64(~(outside >> np.uint64(area * thresholds)) & np.uint64(1))
                continue
            for area in range(first_area, last_area + 1):
                a = np.uint64(area)
                some, others = np.uint64(0), np.uint64(0)
                for w in range(words):
                    some |= (hit[d, w] | ignored[d, w]) & masks[a, w]
                    others |= ~ignored[d, w] & masks[a, w]
                counted[a, within] += others != 0
                if some == 0 or others == 0:
                    continue
                above = 0
                for m in range(cuts):
                    above += counted[area, cuts - m]  # detections within a cap are within all larger caps
                    if ranks[d] >= caps[m]:
                        continue
                    first = base + area * per_area + m * thresholds
                    for t in range(max(at - first, 0), min(thresholds, stop - first)):
                        bit = area * thresholds + t
                        shift = np.uint64(bit & 63)
                        if (ignored[d, bit >> 6] >> shift) & np.uint64(1):
                            skipped[area, m * thresholds + t] += 1
                        elif (hit[d, bit >> 6] >> shift) & np.uint64(1):
                            to = out.starts[first + t - begin] + found[first + t - begin]
                            out.ranks[to] = above - skipped[area, m * thresholds + t]
                            if scored:
                                out.scores[to] = scores[d]
                            found[first + t - begin] += 1
        for ranking in range(at, stop):
            out.items[ranking - begin] = _items(counted, skipped, ranking - base, thresholds)
            if scored:  # the first detection is the best of its image, and thus within any cap
                empty = class_starts[c + 1] == class_starts[c]
                out.first_scores[ranking - begin] = 0.0 if empty else scores[class_starts[c]]
        at = stop
    _close_up(found, out)
