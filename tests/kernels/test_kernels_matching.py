"""Kernels of matching: which detection takes which object, and the hits of rankings, against naive twins."""

from __future__ import annotations

import itertools

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_inputs import boxes_of, cells_of, words, xywh
from support import examples, same_bits

from detmap.kernels import NEVER, assignment, matching, overlap, readonly


def unpack(array, count):
    return np.array([[int(row[bit // 64]) >> (bit % 64) & 1 for bit in range(count)] for row in array], bool).reshape(
        -1, count
    )


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(st.lists(xywh, min_size=1, max_size=6), st.lists(xywh, min_size=1, max_size=6)), max_size=3),
    st.sampled_from([[0.5], [0.25, 0.5, 0.75], [0.0, 0.9], np.linspace(0.05, 0.95, 23).tolist()]),
    st.sampled_from([[[0, 1e10]], [[0, 1e10], [0, 9], [9, 16], [16, 1e10]]]),
    st.data(),
)
def test_match_by_the_best_that_is_free(cells, thresholds, ranges, data):
    """COCO's rule; detections of a cell are in the order of their score."""
    found, truth = [cell[0] for cell in cells], [cell[1] for cell in cells]
    objects = [box for cell in truth for box in cell]
    crowd = data.draw(st.lists(st.booleans(), min_size=len(objects), max_size=len(objects)))
    areas = data.draw(
        st.lists(st.sampled_from([4.0, 9.0, 12.5, 16.0, 20.0]), min_size=len(objects), max_size=len(objects))
    )
    hit, ignored = run_match(found, truth, areas, crowd, crowd, thresholds, ranges, only_best=False)
    d = at = 0
    for detections, cell in zip(found, truth, strict=True):
        here = slice(at, at + len(cell))
        at += len(cell)
        ious = naive.box_iou(detections, cell, crowd[here])
        for a, (low, high) in enumerate(ranges):
            ignore = [c or area < low or area > high for c, area in zip(crowd[here], areas[here], strict=True)]
            order = np.arange(len(detections))[::-1].tolist()  # falling scores
            matched, skip = naive.coco_match_cell(ious, order, ignore, crowd[here], thresholds)
            for t in range(len(thresholds)):
                for i, box in enumerate(detections):
                    bit = a * len(thresholds) + t
                    outside = not low <= box[2] * box[3] <= high
                    assert hit[d + i, bit] == (matched[t, i] >= 0 and not skip[t, i])
                    assert ignored[d + i, bit] == (skip[t, i] if matched[t, i] >= 0 else outside)
        d += len(detections)


def test_the_ends_of_an_area_range_belong_to_it():
    """Of objects by their own area, of detections without one by the box; a hit counts however large its box is."""
    ends = [[0, 1e10], [9, 16]]
    rows = [  # side lengths of the detection, area of its object, and outcome within 9 to 16
        ((3, 3), 9.0, "hit"),
        ((4, 4), 16.0, "hit"),
        ((3, 3), 8.5, "ignored"),
        ((4, 4), 16.5, "ignored"),
        ((4, 5), 12.0, "hit"),
        ((3, 3), None, "miss"),
        ((4, 4), None, "miss"),
        ((4, 5), None, "ignored"),
        ((2, 4), None, "ignored"),
    ]
    found = [[50.0 * i, 0, w, h] for i, ((w, h), _, _) in enumerate(rows)]
    truth = [box for box, (_, area, _) in zip(found, rows, strict=True) if area]
    areas, flags = [area for _, area, _ in rows if area], [False] * len(truth)
    hit, ignored = run_match([found], [truth], areas, flags, flags, [0.5], ends, only_best=False)
    assert hit[:, 0].tolist() == [area is not None for _, area, _ in rows]
    assert not ignored[:, 0].any()
    assert hit[:, 1].tolist() == [what == "hit" for _, _, what in rows]
    assert ignored[:, 1].tolist() == [what == "ignored" for _, _, what in rows]


@pytest.mark.parametrize("objects", [32, 33, 70])
def test_many_candidates_are_offered_from_the_best_down(objects):
    """Up to 32 are sorted by insertion, more by a heap; the last of those that overlap equally is taken first."""
    rng = np.random.default_rng(objects)
    truth = np.concatenate([rng.integers(0, 4, (objects, 2)) / 4, 8 + rng.integers(0, 5, (objects, 2)) / 2], axis=1)
    found = np.concatenate([rng.integers(0, 4, (40, 2)) / 4, 8 + rng.integers(0, 5, (40, 2)) / 2], axis=1)
    thresholds, flags = [0.5, 0.7, 0.9], rng.random(objects) < 0.3
    hit, ignored = run_match(
        [found], [truth], np.ones(objects), flags, np.zeros(objects, bool), thresholds, [[0, 1e10]], only_best=False
    )
    ious = naive.box_iou(found, truth, np.zeros(objects))
    assert (ious >= 0.5).sum(axis=1).min() == objects
    matched, skip = naive.coco_match_cell(ious, -np.arange(40.0), flags, np.zeros(objects), thresholds)
    assert np.array_equal(hit.T, (matched >= 0) & ~skip)
    assert np.array_equal(ignored.T, skip)


def run_match(found, truth, areas, ignore, crowd, thresholds, ranges, *, only_best, sizes=True, pixel=0.0):
    """mark_misses, box_candidates and match on cells given as lists of boxes: the hit and ignored bits."""
    cells = cells_of([len(cell) for cell in found], [len(cell) for cell in truth])
    sides = [boxes_of([box for cell in side for box in cell], sizes, pixel) for side in (found, truth)]
    measures = readonly(np.array(areas, float)[:, None], np.float64)
    objects = matching.Objects(measures, readonly(ignore, np.bool_), readonly(crowd, np.bool_))
    count, bits = sum(map(len, found)), len(thresholds) * len(ranges)
    hit, ignored = (np.full((count, -(-bits // 64)), 2**64 - 1, np.uint64) for _ in range(2))
    own, lowest = np.empty(count), float(min(thresholds))
    overlap.box_areas(sides[0], 0, count, own)
    bounds = matching.Ranges(readonly(np.array(ranges, float), np.float64), readonly(np.zeros(len(ranges)), np.int64))
    levels = readonly(thresholds, np.float64)
    matching.mark_misses(readonly(own[:, None], np.float64), bounds, len(thresholds), 0, count, hit, ignored)
    given = objects, matching.Levels(levels, bounds, only_best)
    for begin, end in ((0, len(found) // 2), (len(found) // 2, len(found))):
        candidates = overlap.candidates(cells, *sides, readonly(crowd, np.bool_), lowest, begin, end)
        matching.match(cells, candidates, *given, begin, end, NEVER, matching.Words(hit, ignored))
    return unpack(hit, bits), unpack(ignored, bits)


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(st.lists(xywh, min_size=1, max_size=6), st.lists(xywh, min_size=1, max_size=6)), max_size=2),
    st.sampled_from([[0.5], [0.25, 0.5]]),
    st.data(),
)
def test_match_by_the_best_alone(cells, thresholds, data):
    """VOC's rule."""
    corners = [[[[x, y, x + w, y + h] for x, y, w, h in side] for side in cell] for cell in cells]
    found, truth = [cell[0] for cell in corners], [cell[1] for cell in corners]
    count = sum(map(len, truth))
    difficult = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    no_crowd = [False] * count
    hit, ignored = run_match(
        found,
        truth,
        [1.0] * count,
        difficult,
        no_crowd,
        thresholds,
        [[0, 1e10]],
        only_best=True,
        sizes=False,
        pixel=1.0,
    )
    for t, threshold in enumerate(thresholds):
        d = at = 0
        for detections, cell in zip(found, truth, strict=True):
            objects = {"1": (cell, difficult[at : at + len(cell)])}
            at += len(cell)
            falling = [-float(i) for i in range(len(detections))]
            _, outcome, _ = naive.voc_match(["1"] * len(detections), falling, detections, objects, threshold)
            for i, what in enumerate(outcome):
                assert (hit[d + i, t], ignored[d + i, t]) == (what == "TP", what == "ignored")
            d += len(detections)


@settings(max_examples=examples(200))
@given(
    st.lists(xywh, min_size=1, max_size=6),
    st.lists(st.tuples(xywh, st.booleans(), st.booleans()), min_size=1, max_size=6),
    st.sampled_from([[0.5], [0.25, 0.75, 1.0], [0.0, 1 - 1e-10, 2.0]]),
    st.data(),
)
def test_assignment_pair_by_pair(found, objects, thresholds, data):
    """What each detection takes; one that does not keep it leaves the ground truth to the next."""
    objects = sorted(objects, key=lambda row: row[1])  # what is ignored comes last
    truth, ignore, crowd = zip(*objects, strict=True)
    keeps = data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found)))
    expected = naive.box_iou(found, truth, crowd)
    ious = np.empty((len(found), len(truth)))
    flags = [readonly(column, np.bool_) for column in (ignore, crowd, keeps)]
    assignment.box_ious(readonly(found, np.float64), readonly(truth, np.float64), flags[1], ious)
    assert same_bits(ious, expected)
    taken = np.empty((len(thresholds), len(found)), np.int64), np.empty((len(thresholds), len(truth)), np.int64)
    assignment.assign(readonly(ious, np.float64), *flags, readonly(thresholds, np.float64), *taken)
    for t, threshold in enumerate(thresholds):
        free, last = set(range(len(truth))), [-1] * len(truth)
        for d in range(len(found)):
            chosen = -1
            for part in ([g for g in free if not ignore[g]], [g for g in free if ignore[g]]):
                good = [g for g in part if expected[d, g] >= min(threshold, 1 - 1e-10)]
                if good and chosen < 0:
                    chosen = max(good, key=lambda g: (expected[d, g], g))
            assert taken[0][t, d] == chosen
            if chosen >= 0:
                last[chosen] = d
                if keeps[d] and not crowd[chosen]:
                    free.remove(chosen)
        assert taken[1][t].tolist() == last


def test_assignment_by_hand():
    """Of equal overlaps the last is taken first; a threshold of 1 or more is met by what overlaps wholly."""
    box, flags = [[0.0, 0, 4, 4]] * 2, readonly([False, False], np.bool_)
    ious, taken = np.empty((2, 2)), [np.empty((3, 2), np.int64) for _ in range(2)]
    assignment.box_ious(readonly(box, np.float64), readonly(box, np.float64), flags, ious)
    thresholds = readonly([0.5, 1.0, 2.0], np.float64)
    keeps = readonly([True, True], np.bool_)
    assignment.assign(readonly(ious, np.float64), flags, flags, keeps, thresholds, *taken)
    assert [column.tolist() for column in taken] == [[[1, 0]] * 3, [[1, 0]] * 3]


@settings(max_examples=examples(300))
@given(st.data(), st.booleans())
def test_collect_hits(data, scored):
    """Rankings made in two blocks, cut anywhere, against a plain count; with scores and without."""
    classes, areas = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 3]))
    thresholds = data.draw(st.sampled_from([1, 2, 30]))
    caps = data.draw(st.sampled_from([[1], [1, 2, 5], [2, 100]]))
    sizes = data.draw(st.lists(st.integers(0, 8), min_size=classes, max_size=classes))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    starts = np.cumsum([0, *sizes])
    count, bits = int(starts[-1]), areas * thresholds
    ignored = rng.random((count, bits)) < rng.choice([0.0, 0.2, 1.0])
    hit = (rng.random((count, bits)) < rng.choice([0.0, 0.4])) & ~ignored
    values = np.concatenate([-np.sort(-rng.integers(0, 5, n) / 4.0) for n in sizes])
    ranks = rng.integers(0, 4, count)
    for c in range(classes):
        if sizes[c]:
            ranks[starts[c]] = 0  # the best of all is the best of its image
    most = [int(hit[a:b].sum(axis=0).max(initial=0)) for a, b in itertools.pairwise(starts)]
    positives = np.array([[n + 1] * areas for n in most])
    positives[rng.random(positives.shape) < 0.1] = 0
    hit &= np.repeat(np.repeat(positives > 0, sizes, axis=0), thresholds, axis=1)
    expected = []
    for c in range(classes):
        for a in range(areas):
            for cap in caps:
                for t in range(thresholds):
                    kept = [d for d in range(starts[c], starts[c + 1]) if ranks[d] < cap]
                    counted = [d for d in kept if not ignored[d, a * thresholds + t]]
                    found = [(i + 1, values[d]) for i, d in enumerate(counted) if hit[d, a * thresholds + t]]
                    expected.append((found, len(counted), values[kept[0]] if kept else 0.0))
    total = len(expected)
    cut = data.draw(st.integers(0, total))
    got = []
    for begin, end in ((0, cut), (cut, total)):
        per_class = areas * len(caps) * thresholds
        room = np.repeat(np.minimum(positives, np.array(sizes)[:, None]).ravel(), len(caps) * thresholds)[begin:end]
        assert per_class * classes == total
        out_starts = np.concatenate(([0], np.cumsum(room))).astype(np.int64)
        out_ranks, out_scores = np.empty(out_starts[-1], np.int64), np.zeros(out_starts[-1] if scored else 0)
        items, first = np.empty(end - begin, np.int64), np.zeros(end - begin if scored else 0)
        flags = [readonly(words(bits), np.uint64) for bits in (hit, ignored)]
        detections = readonly(starts, np.int64), readonly(ranks, np.int32), readonly(values, np.float64), *flags
        given = readonly(caps, np.int64), readonly(positives, np.int64), thresholds
        out = matching.Collected(out_starts, out_ranks, out_scores, items, first)
        matching.collect_hits(matching.Ranked(*detections), *given, begin, end, out)
        for q in range(end - begin):
            rows = slice(out_starts[q], out_starts[q + 1])
            if scored:
                found = list(zip(out_ranks[rows].tolist(), out_scores[rows].tolist(), strict=True))
                got.append((found, int(items[q]), float(first[q])))
            else:
                got.append((out_ranks[rows].tolist(), int(items[q])))
    if not scored:
        expected = [([rank for rank, _ in found], count) for found, count, _ in expected]
    assert got == expected


@settings(max_examples=examples(100))
@given(st.integers(0, 2**32 - 1), st.sampled_from([[1], [1, 2, 5], [2, 100]]), st.sampled_from([1, 30, 70]))
def test_count_hits(seed, caps, bits):
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *rng.integers(0, 6, 3)])
    hit, ranks = rng.random((starts[-1], bits)) < 0.4, rng.integers(0, 6, starts[-1])
    flags = readonly(words(hit), np.uint64)
    rows = readonly(starts, np.int64), readonly(ranks, np.int32), readonly(np.zeros(len(hit)), np.float64), flags, flags
    out = np.zeros((3, len(caps), 64 * flags.shape[1]), np.int64)
    matching.count_hits(matching.Ranked(*rows), readonly(caps, np.int64), out)
    for c, (a, b) in enumerate(itertools.pairwise(starts)):
        for m, cap in enumerate(caps):
            assert out[c, m, :bits].tolist() == hit[a:b][ranks[a:b] < cap].sum(axis=0).tolist()
    assert not out[:, :, bits:].any()


@pytest.mark.parametrize("bits", [1, 30, 64, 65, 150])
def test_count_bits(bits):
    """Of one word and of several, added to what is there."""
    rng, starts = np.random.default_rng(bits), np.array([0, 5, 5, 17])
    flags = rng.random((starts[-1], bits)) < 0.4
    packed = readonly(words(flags), np.uint64)
    out = np.ones((3, 64 * packed.shape[1]), np.int64)
    matching.count_bits(readonly(starts, np.int64), packed, out)
    for c, (a, b) in enumerate(itertools.pairwise(starts)):
        assert (out[c, :bits] - 1).tolist() == flags[a:b].sum(axis=0).tolist()
    assert (out[:, bits:] == 1).all()
