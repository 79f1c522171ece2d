"""Every kernel against its naive twin, and one compiled signature each."""

from __future__ import annotations

import importlib
import itertools
import math
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import naive
import numba
import numpy as np
import pytest
import workloads
from hypothesis import given, settings
from hypothesis import strategies as st
from support import evaluate, examples, same_bits, tables_of_arrays

import detmap
import detmap.kernels
from detmap.kernels import NEVER, allocate, assignment, curves, matching, overlap, passing, readonly, sorting
from detmap.protocols import PRESETS

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "coco"

# ------------------------------------------------------------------------------------------------------------ sorting

ODD = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.0**-1074, 1e308, -1e308, 0.1, 0.1 + 2**-56]
scores = st.sampled_from(ODD) | st.floats(width=64) | st.floats(0, 1, width=32) | st.integers(-3, 3).map(float)


def rows_of(values, with_order, words=2):
    """Columns of a tally in which every value says which row it belongs to."""
    count = len(values)
    number = np.arange(count)
    return sorting.Rows(
        image=number.astype(np.int32),
        rank=(number + 1).astype(np.int32),
        order=number[: count if with_order else 0] + 2,
        scores=np.array(values, np.float64),
        hit=(number[:, None] * words + np.arange(words)).astype(np.uint64),
        ignored=(number[:, None] * words + np.arange(words) + 1).astype(np.uint64),
    )


def sorted_rows(values, starts, with_order=True):
    """The kernel, in two blocks: which row comes where; every column must say the same."""
    rows = rows_of(values, with_order)
    before = rows_of(values, with_order)
    group = np.empty(len(values), np.int32)
    middle = (len(starts) - 1) // 2
    for begin, end in ((0, middle), (middle, len(starts) - 1)):
        sorting.sort_rows(readonly(starts, np.int64), begin, end, rows, group)
    assert group.tolist() == [g for g, (a, b) in enumerate(itertools.pairwise(starts)) for _ in range(a, b)]
    for column, given_column in zip(rows, before, strict=True):
        if len(column):
            assert np.array_equal(column.view(np.uint8), given_column[rows.image].view(np.uint8))
    return rows.image.tolist()


@settings(max_examples=examples(400))
@given(st.lists(st.lists(scores, max_size=60), max_size=4), st.booleans())
def test_sort_rows(groups, with_order):
    """Descending, NaN last, zeros of both signs equal, stable: below and above the size where the radix sort begins."""
    values = [score for group in groups for score in group]
    starts = np.cumsum([0, *map(len, groups)])
    expected = []
    for begin, end in itertools.pairwise(starts.tolist()):
        expected += [begin + i for i in naive.by_score(values[begin:end])]
    assert sorted_rows(values, starts, with_order) == expected


@pytest.mark.parametrize("size", [2, 39, 40, 41, 42, 1000])
@pytest.mark.parametrize("kind", ["float32", "tenths", "logits", "all equal", "odd"])
def test_sort_of_sizes_around_the_switch(size, kind):
    rng = np.random.default_rng(size)
    values = rng.choice(ODD, size) if kind == "odd" else np.asarray(workloads.SCORES[kind](rng, size), float)
    assert sorted_rows(values, [0, size]) == naive.by_score(values.tolist())
    assert values[naive.by_score(values.tolist())].tolist()[0] == np.nanmax(values)


@pytest.mark.parametrize("near", [2, 8, 300])
def test_sort_of_scores_that_share_the_upper_half_of_their_bits(near):
    """A few that do are put right after the upper bytes; where many do, every byte is sorted by."""
    rng = np.random.default_rng(near)
    values = rng.random(600 // near).repeat(near) + rng.integers(0, 9, 600 // near * near) * 2.0**-53
    values = rng.permutation(np.concatenate([values, values[:40]]))  # equal ones too
    uppers = values.view(np.uint64) >> 32
    assert 1 < np.unique(uppers).size < np.unique(values).size
    assert sorted_rows(values, [0, values.size]) == naive.by_score(values.tolist())


@numba.njit
def insertion(keys, order, first, size, limit):
    return sorting._by_insertion(keys, order, first, size, limit)


def test_an_insertion_sort_that_takes_too_long_gives_up():
    for limit, done in ((44, False), (45, True)):  # ten keys the wrong way round take 45 moves
        keys, order = np.arange(10, dtype=np.uint64)[::-1].copy(), np.arange(12, dtype=np.int32)
        assert insertion(keys, order, 2, 10, limit) == done
        assert order[:2].tolist() == [0, 1]
        assert sorted(order.tolist()) == list(range(12))  # nothing is lost
        assert [11 - key for key in order[2:].tolist()] == keys.tolist()
        assert not done or keys.tolist() == list(range(10))


def test_allocate():
    columns = allocate((3, np.int32), ((2, 5), np.uint64), (0, np.float64), ((0, 2), np.uint64), (1, np.float64))
    assert [(c.shape, c.dtype) for c in columns] == [
        ((3,), np.int32), ((2, 5), np.uint64), ((0,), np.float64), ((0, 2), np.uint64), ((1,), np.float64),
    ]  # fmt: skip
    for i, column in enumerate(columns):
        column[...] = i
    assert all((column == i).all() for i, column in enumerate(columns))
    assert len({column.base.__array_interface__["data"][0] for column in columns if column.size}) == 1
    assert [column.size for column in allocate((0, np.int32), (0, np.float64))] == [0, 0]
    large = allocate((1 << 20, np.int32), (0, np.int32), ((1 << 18, 2), np.float64))
    assert [(c.shape, c.dtype) for c in large] == [((1 << 20,), np.int32), ((0,), np.int32), ((1 << 18, 2), np.float64)]
    assert all(column.base is None for column in large)


@settings(max_examples=examples(200))
@given(st.integers(1, 6).flatmap(lambda g: st.tuples(st.just(g), st.lists(st.integers(0, g - 1)))), st.booleans())
def test_scatter_rows(case, with_order):
    """Rows go where the grouping of a given order puts them."""
    groups, keys = case
    order = np.arange(len(keys))[::-1]
    places, starts = np.empty(len(keys), np.int32), np.empty(groups + 1, np.int64)
    sorting.place_by(readonly(keys, np.int32), readonly(order, np.int32), places, starts)
    given_rows, out = rows_of(keys, with_order), rows_of(keys, with_order)
    middle = len(keys) // 2
    frozen = sorting.Rows(*(readonly(column, column.dtype) for column in given_rows))
    for begin, end in ((0, middle), (middle, len(keys))):
        sorting.scatter_rows(readonly(places, np.int32), begin, end, frozen, out)
    expected = [[i for i in order.tolist() if keys[i] == g] for g in range(groups)]
    assert [out.image[a:b].tolist() for a, b in itertools.pairwise(starts)] == expected
    for column, given_column in zip(out, given_rows, strict=True):
        if len(column):
            assert np.array_equal(column, given_column[out.image])


@settings(max_examples=examples(200))
@given(st.integers(1, 6).flatmap(lambda g: st.tuples(st.just(g), st.lists(st.integers(0, g - 1)))))
def test_group_by(case):
    groups, keys = case
    order = np.arange(len(keys))[::-1]
    out, starts = np.empty(len(keys), np.int32), np.empty(groups + 1, np.int64)
    sorting.group_by(readonly(keys, np.int32), readonly(order, np.int32), out, starts)
    expected = [[i for i in order.tolist() if keys[i] == g] for g in range(groups)]
    assert [out[a:b].tolist() for a, b in itertools.pairwise(starts)] == expected
    places = np.empty(len(keys), np.int32)
    for kernel, made in ((sorting.group_by, out), (sorting.place_by, places)):  # without an order: every key in turn
        kernel(readonly(keys, np.int32), readonly((), np.int32), made, starts)
    assert [out[a:b].tolist() for a, b in itertools.pairwise(starts)] == [sorted(group) for group in expected]
    assert places[out].tolist() == list(range(len(keys)))


images = st.lists(st.lists(st.tuples(st.integers(0, 300), scores), max_size=60), max_size=5)


@settings(max_examples=examples(300))
@given(images, st.booleans(), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_arrange_cells(content, merged, scored, falling, random):
    """An image's rows by category, in it by score, ties in their order; and where each cell starts."""
    rows = [(g, category, score) for g, image in enumerate(content) for category, score in image]
    random.shuffle(rows)
    if falling:
        rows = [rows[i] for i in naive.by_score([score for _, _, score in rows])]
    starts = np.cumsum([0, *map(len, content)])
    order = np.array([i for g in range(len(content)) for i, row in enumerate(rows) if row[0] == g], np.int32)
    expected = []  # row, image, category, rank within the cell
    for g in range(len(content)):
        members = [i for i, row in enumerate(rows) if row[0] == g]
        members.sort(key=lambda i: rows[i][1])
        cells = [members] if merged else [list(cell) for _, cell in itertools.groupby(members, lambda i: rows[i][1])]
        for cell in cells:
            ranked = [cell[i] for i in naive.by_score([rows[i][2] for i in cell])] if scored else cell
            expected += [(i, g, 0 if merged else rows[i][1], rank) for rank, i in enumerate(ranked)]
    category = readonly([row[1] for row in rows], np.int32)
    values = readonly([row[2] for row in rows] if scored else (), np.float64)
    out = [np.empty(len(rows), np.int32) for _ in range(3)]
    out_scores, out_starts = np.empty(values.size), np.empty(len(rows), np.int64)
    found, placed = [], sorting.Placed(order, *out, out_scores)
    middle = len(content) // 2
    for begin, end in ((0, middle), (middle, len(content))):
        given = readonly(starts, np.int64), category, values
        count = sorting.arrange_cells(*given, merged, begin, end, placed, out_starts)
        found += out_starts[starts[begin] : starts[begin] + count].tolist()
    columns = (column.tolist() for column in (order, *out))
    assert list(zip(*columns, strict=True)) == expected
    assert found == [i for i, row in enumerate(expected) if row[3] == 0]
    assert np.array_equal(out_scores.view(np.uint64), values[order[: values.size]].view(np.uint64))


@pytest.mark.parametrize("values", [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.3]])
def test_rows_of_one_category_by_falling_score(values):
    """Those that come in order stay, and those that rise are sorted."""
    order, out = np.arange(3, dtype=np.int32), [np.empty(3, np.int32) for _ in range(3)]
    starts, category = readonly([0, 3], np.int64), readonly([0, 0, 0], np.int32)
    given = starts, category, readonly(values, np.float64)
    placed = sorting.Placed(order, *out, np.empty(3))
    assert sorting.arrange_cells(*given, False, 0, 1, placed, np.empty(3, np.int64)) == 1
    assert order.tolist() == naive.by_score(values)


pairs = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 4))).map(sorted)


@settings(max_examples=examples(200))
@given(pairs, pairs)
def test_join(left, right):
    columns = [readonly([pair[i] for pair in side], np.int32) for side in (left, right) for i in (0, 1)]
    out = np.empty(min(len(left), len(right)), np.int64), np.empty(min(len(left), len(right)), np.int64)
    count = sorting.join(*columns, *out)
    expected = [(i, right.index(pair)) for i, pair in enumerate(left) if pair in right]
    assert list(zip(out[0][:count].tolist(), out[1][:count].tolist(), strict=True)) == expected


# ------------------------------------------------------------------------------------------------------------ overlap


def boxes_of(table, sizes, pixel):
    table = np.asarray(table, float).reshape(-1, 4)
    return overlap.Boxes(readonly(table, np.float64), readonly(np.arange(len(table)), np.int32), sizes, pixel)


def cells_of(detections, ground_truth):
    """Cells of so many detections and objects each."""
    bounds = [np.cumsum([0, *counts]) for counts in (detections, ground_truth)]
    columns = (bounds[0][:-1], bounds[0][1:], bounds[1][:-1], bounds[1][1:])
    return overlap.Cells(*(readonly(column, np.int64) for column in columns))


def candidates_of(found, truth, crowd, lowest, *, sizes=True, pixel=0.0):
    """The kernel on cells given as lists of boxes: for each detection of each cell the pairs (object, overlap)."""
    cells = cells_of([len(cell) for cell in found], [len(cell) for cell in truth])
    flat = [np.array([box for cell in side for box in cell], float).reshape(-1, 4) for side in (found, truth)]
    out = overlap.candidates(
        cells,
        boxes_of(flat[0], sizes, pixel),
        boxes_of(flat[1], sizes, pixel),
        readonly(crowd, np.bool_),
        lowest,
        0,
        len(found),
    )
    return [
        sorted(zip(out.ground_truth[a:b].tolist(), out.iou[a:b].tolist(), strict=True))
        for a, b in zip(out.first.tolist(), out.last.tolist(), strict=True)
    ]


def expected_candidates(found, truth, crowd, lowest, *, sizes=True, pixel=0.0):
    rows, at = [], 0
    for detections, objects in zip(found, truth, strict=True):
        flags = crowd[at : at + len(objects)]
        at += len(objects)
        if not len(detections):
            continue
        ious = naive.box_iou(detections, objects, flags) if sizes else naive.voc_iou(detections, objects, bool(pixel))
        rows += [[(g, float(value)) for g, value in enumerate(row) if value >= lowest] for row in ious]
    return rows


coordinate = st.integers(-2, 12) | st.floats(-2, 12, width=32)
size = st.integers(0, 6) | st.floats(0, 6, width=32)
xywh = st.tuples(coordinate, coordinate, size, size)


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(st.lists(xywh, max_size=5), st.lists(xywh, max_size=5)), max_size=3),
    st.sampled_from([0.5, 0.05, 1e-9, 0.0, -1.0]),
    st.data(),
)
def test_box_candidates(cells, lowest, data):
    found, truth = [cell[0] for cell in cells], [cell[1] for cell in cells]
    count = sum(map(len, truth))
    crowd = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    assert candidates_of(found, truth, crowd, lowest) == expected_candidates(found, truth, crowd, lowest)


@pytest.mark.parametrize("lowest", [0.5, 0.3, 1e-6, 0.0])
@pytest.mark.parametrize(("objects", "detections"), [(8, 64), (8, 63), (7, 100), (40, 60), (100, 30)])
@pytest.mark.parametrize("grid", [True, False])
def test_swept_cells(objects, detections, lowest, grid):
    """With many equal edges, and without."""
    rng = np.random.default_rng(objects)

    def boxes(n):
        if grid:
            return np.concatenate([rng.integers(0, 6, (n, 2)) * 4, rng.choice([0, 4, 8, 12], (n, 2))], axis=1)
        return np.concatenate([rng.random((n, 2)) * 20, 4 + rng.random((n, 2)) * 9], axis=1)

    found, truth = [boxes(detections), boxes(3)], [boxes(objects), boxes(2)]
    crowd = rng.random(objects + 2) < 0.2
    got = candidates_of(found, truth, crowd, lowest)
    assert got == expected_candidates(found, truth, crowd, lowest)
    assert any(got) if lowest == 0.5 else max(map(len, got)) > 1


@pytest.mark.parametrize("pixel", [0.0, 1.0])
def test_candidates_of_corners(pixel):
    rng = np.random.default_rng(3)

    def boxes(n):
        near = rng.integers(0, 30, (n, 2))
        return np.concatenate([near, near + rng.integers(1, 9, (n, 2))], axis=1)

    found, truth = [boxes(80), boxes(3)], [boxes(20), boxes(4)]
    crowd = np.zeros(24, bool)
    for lowest in (0.5, 0.1, 1e-9, 0.0):
        keywords = {"sizes": False, "pixel": pixel}
        assert candidates_of(found, truth, crowd, lowest, **keywords) == expected_candidates(
            found, truth, crowd, lowest, **keywords
        )


def test_pixels_that_touch_only_when_inclusive():
    """Boxes side by side, 1 to 3 and 3 to 5: they share the column 3 if the last pixel is inside. Swept and not."""
    sides = [[1, 1, 3, 3], [3, 1, 5, 3]]
    for copies, (one, other) in itertools.product((1, 30), (sides, sides[::-1])):
        found, truth = [[one] * copies], [[other] * copies]
        for pixel, expected in ((1.0, 3 / 15), (0.0, None)):
            rows = candidates_of(found, truth, [False] * copies, 1e-9, sizes=False, pixel=pixel)
            assert rows == [[(g, expected) for g in range(copies)] if expected else []] * copies


@settings(max_examples=examples(100))
@given(st.lists(xywh, max_size=8), st.booleans())
def test_box_areas(table, sizes):
    boxes = [[x, y, w, h] if sizes else [x, y, x + w, y + h] for x, y, w, h in table]
    out = np.empty(len(boxes))
    overlap.box_areas(boxes_of(boxes, sizes, 0.0 if sizes else 1.0), 0, len(boxes), out)
    expected = [b[2] * b[3] if sizes else (b[2] - b[0] + 1.0) * (b[3] - b[1] + 1.0) for b in boxes]
    assert same_bits(out, np.array(expected, float))


# ----------------------------------------------------------------------------------------------------------- matching


def words(bits):
    """Bits (n, b) packed into rows of 64-bit words."""
    out = np.zeros((len(bits), -(-bits.shape[1] // 64)), np.uint64)
    for (row, bit), value in np.ndenumerate(bits):
        out[row, bit // 64] |= np.uint64(int(value) << (bit % 64))
    return out


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
    objects = matching.Objects(readonly(areas, np.float64), readonly(ignore, np.bool_), readonly(crowd, np.bool_))
    count, bits = sum(map(len, found)), len(thresholds) * len(ranges)
    hit, ignored = (np.full((count, -(-bits // 64)), 2**64 - 1, np.uint64) for _ in range(2))
    own, lowest = np.empty(count), float(min(thresholds))
    overlap.box_areas(sides[0], 0, count, own)
    bounds, levels = readonly(np.array(ranges, float), np.float64), readonly(thresholds, np.float64)
    matching.mark_misses(readonly(own, np.float64), bounds, len(thresholds), 0, count, hit, ignored)
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


# ------------------------------------------------------------------------------------------------------------- curves

RULES = {curves.STEP: naive.step_ap, curves.ALL_POINT: naive.all_point_ap, curves.TRAPEZOID: naive.trapezoid_ap}
ranking = st.lists(st.booleans(), max_size=25).map(naive.ranks_of)
rankings = st.lists(st.tuples(ranking, st.integers(0, 4)), max_size=6)


def hits_of(rows):
    """Starts, ranks and positives of `(ranks, missed)` rows."""
    starts = readonly(np.cumsum([0, *(len(ranks) for ranks, _ in rows)]), np.int64)
    flat = readonly([rank for ranks, _ in rows for rank in ranks], np.int64)
    return starts, flat, readonly([len(ranks) + missed for ranks, missed in rows], np.int64)


@settings(max_examples=examples(300))
@given(rankings, st.sampled_from(sorted(RULES)), st.sampled_from([0.0, 2.0**-52]))
def test_average_precision(rows, rule, epsilon):
    """To the last bit: precisions are added in rank order and divided once."""
    if rule == curves.TRAPEZOID:
        epsilon = 0.0  # before rank 1 the kernel has 1 and the twin the precision there, the same but for an epsilon
    out = np.empty(len(rows))
    curves.average_precision(*hits_of(rows), rule, epsilon, 0, len(rows), out)
    expected = [RULES[rule](ranks, len(ranks) + missed, epsilon) for ranks, missed in rows]
    assert same_bits(out, np.array(expected, float))


GRIDS = [
    np.linspace(0, 1, 101).tolist(),
    np.arange(0, 1.1, 0.1).tolist(),
    [0.0],
    [1.0, 0.5, 0.0],
    [0.5, 1.5, 0.2],
    [-1.0, 1 / 3, 2 / 3],
    [1.0],
]


@settings(max_examples=examples(300))
@given(rankings, st.sampled_from(GRIDS), st.sampled_from([0.0, 2.0**-52]), st.booleans())
def test_interpolate(rows, grid, epsilon, with_scores):
    starts, flat, positives = hits_of(rows)
    at_hits = -np.arange(flat.size, dtype=float)
    first = np.arange(len(rows)) + 0.5
    precision = np.full((len(rows), len(grid)), 7.0)
    out_scores = np.full((len(rows) if with_scores else 0, len(grid)), 7.0)
    known = [readonly(column if with_scores else (), np.float64) for column in (at_hits, first)]
    given = curves.Rankings(starts, flat, positives, *known)
    curves.interpolate(given, readonly(grid, np.float64), epsilon, 0, len(rows), precision, out_scores)
    for q, (ranks, missed) in enumerate(rows):
        found = len(ranks) + missed
        if not found:
            assert np.isnan(precision[q]).all()
            assert not with_scores or np.isnan(out_scores[q]).all()
            continue
        envelope = naive.envelope_at_hits(ranks, epsilon)
        expected, expected_scores = [0.0] * len(grid), [0.0] * len(grid)
        for i, wanted in enumerate(grid):
            reached = [j for j in range(len(ranks)) if (j + 1) / found >= wanted]
            if wanted > 0 and not reached:
                break
            expected[i] = envelope[reached[0]] if reached else 0.0
            expected_scores[i] = first[q] if wanted <= 0 else at_hits[starts[q] + reached[0]]
        assert same_bits(precision[q], expected)
        assert not with_scores or same_bits(out_scores[q], expected_scores)


def test_interpolate_by_hand():
    """A grid that falls, and at recall 0 the score of each ranking's own first item. Precisions 1, 1/2 and 3/5; then 1/2."""
    columns = hits_of([([1, 4, 5], 0), ([2], 0)])
    known = readonly([0.9, 0.6, 0.5, 0.7], np.float64), readonly([0.9, 0.8], np.float64)
    precision, found = (np.empty((2, 3)) for _ in range(2))
    grid = readonly([2 / 3, 1 / 3, 0.0], np.float64)
    curves.interpolate(curves.Rankings(*columns, *known), grid, 0.0, 0, 2, precision, found)
    assert precision.tolist() == [[3 / 5, 1.0, 1.0], [0.5, 0.5, 0.5]]
    assert found.tolist() == [[0.6, 0.9, 0.9], [0.7, 0.7, 0.8]]


@pytest.mark.parametrize("grid", GRIDS[:2])
def test_recalls_are_reached_where_the_quotient_as_rounded_says_so(grid):
    """Of 25 positives 7 reach a recall of 0.28, though 0.28 * 25 is above 7; for every number of positives up to 300."""
    counts = np.arange(1, 301)
    starts, ranks, positives = hits_of([(range(1, count + 1), 0) for count in counts])
    numbers = readonly(ranks, np.float64)  # as scores: which hit it is
    out = [np.empty((counts.size, len(grid))) for _ in range(2)]
    first = readonly(np.zeros(counts.size), np.float64)
    given = curves.Rankings(starts, ranks, positives, numbers, first)
    curves.interpolate(given, readonly(grid, np.float64), 0.0, 0, counts.size, *out)
    for count, found in zip(counts.tolist(), out[1], strict=True):
        recalls = np.arange(count + 1) / count
        within = [wanted for wanted in grid if wanted <= 1]  # arange ends above 1, where no recall is
        expected = [int(np.argmax(recalls >= wanted)) for wanted in within] + [0] * (len(grid) - len(within))
        assert found.tolist() == expected


# --------------------------------------------------------------------------------------------------------- signatures


def kernels():
    """Every compiled function of every kernel file, by its full name."""
    found = {}
    for module in pkgutil.iter_modules(detmap.kernels.__path__):
        names = vars(importlib.import_module(f"detmap.kernels.{module.name}"))
        for name, value in names.items():
            if hasattr(value, "signatures") and value.py_func.__module__ == names["__name__"]:
                found[f"{module.name}.{name}"] = value
    return found


@pytest.mark.compiled
def test_one_signature_each():
    """After a varied session every kernel that others call has been compiled once, for one combination of types."""
    for name in PRESETS:
        for number in range(3):
            dataset, results = workloads.make_coco(number, images=4, coordinates=["integer", "float", "mixed"][number])
            assert evaluate(dataset, results, protocol=name, threads=number + 1).per_category
            evaluate(dataset, [], {"use_categories": False}, protocol=name)
            evaluate({**dataset, "annotations": []}, results, {"max_dets": [1]}, protocol=name)
    truth, found = tables_of_arrays(workloads.dense_scene(2, 30, 40, 1, canvas=200.0))
    one = detmap.match(truth, found, image_ids=[1])
    other = detmap.match(truth, found, image_ids=[2])
    result = detmap.DetectionResult(one.merge(other), threads=3)
    result.counts(iou=0.5, score=0.1)
    result.curve(1)
    corners = {
        "image_ids": ["a", "b"],
        "category_ids": ["x", "y"],
        "boxes": np.float32([[0, 0, 5, 5]] * 2),
        "box_format": "xyxy",
    }
    detmap.evaluate(
        detmap.GroundTruth.from_arrays(**corners), detmap.Detections.from_arrays(**corners, scores=np.float32([0.5, 1]))
    )
    for interpolation in ("step", "all-point", "trapezoid", "11-point", "101-point"):
        detmap.average_precision([1, 0, 1], [3, 2, 1], interpolation=interpolation)
        detmap.Hits.from_ranks([[1, 3], []], [2, 1]).average_precision(interpolation)
    every = kernels()
    assert len(every) >= 12
    detection = {name for name in every if name.split(".")[0] in ("overlap", "matching", "curves", "sorting", "ties")}
    called = {name: len(every[name].signatures) for name in detection if not name.split(".")[1].startswith("_")}
    called = {name: count for name, count in called.items() if count}  # rankings have kernels of their own
    assert called == dict.fromkeys(called, 1)
    assert len(called) >= 12
    assert {"overlap.box_candidates", "matching.match", "matching.collect_hits", "sorting.join"} <= set(called)


@pytest.mark.compiled
def test_kernels_release_the_gil_and_keep_to_ieee_division():
    for name, function in kernels().items():
        options = function.targetoptions
        assert options.get("nogil"), name
        assert options.get("error_model") == "numpy", name
        assert not options.get("parallel"), name
        assert not options.get("fastmath"), name


_LATER = """
import sys, threading
import numba.core.cpu
import numpy as np
from detmap.kernels import allocate, matching, readonly

refreshed = []
refresh = numba.core.cpu.CPUContext.refresh
numba.core.cpu.CPUContext.refresh = lambda context: (refreshed.append(1), refresh(context))[1]
out = np.zeros((2, 64), np.int64)
matching.count_bits(readonly([0, 1, 3], np.int64), readonly([[3], [1], [5]], np.uint64), out)
assert out[:, :3].tolist() == [[1, 1, 0], [2, 0, 1]], out
hit, ignored = np.ones((2, 1), np.uint64), np.zeros((2, 1), np.uint64)  # a kernel that allocates
matching.mark_misses(readonly([1, 5], np.float64), readonly([[0, 9], [0, 3]], np.float64), 1, 0, 2, hit, ignored)
assert (hit.tolist(), ignored.tolist()) == ([[0], [0]], [[0], [2]]), (hit, ignored)
print(len(matching.count_bits.stats.cache_hits), len(refreshed), int("numba.np.arrayobj" in sys.modules))
other = threading.Thread(target=lambda: matching.count_bits(np.array([0, 1]), np.ones((1, 1), np.uint64), out[:1]))
other.start()  # the same on writable arrays: to be compiled
other.join()
print(out[0, 0], len(matching.count_bits.signatures))
"""


@pytest.mark.compiled
def test_a_kernel_loads_without_setting_up_the_compiler_and_another_compiles_after_it(tmp_path):
    """In one process after the other: nothing is there, then all of it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    said = []
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-c", _LATER], env=environment, capture_output=True, text=True, check=True
        )
        said.append([line.split() for line in run.stdout.splitlines()])
    first, second, third = said
    assert first[0][0] == "0"
    assert int(first[0][1]) > 0
    assert first[0][2] == "1"
    assert second == third == [["1", "0", "0"], ["2", "2"]]


def test_readonly():
    array = np.arange(6, dtype=np.float32)[::2]
    view = readonly(array, np.float64)
    assert (view.dtype, view.flags.c_contiguous, view.flags.writeable) == (np.float64, True, False)
    own = np.arange(3.0)
    assert np.shares_memory(readonly(own, np.float64), own)
    assert own.flags.writeable


@pytest.mark.compiled
def test_kernels_are_compiled_without_what_nobody_calls(tmp_path):
    """From an empty cache: no wrapper for C, and one version of each kernel that kernels call."""
    program = (
        "from detmap import read_coco, read_coco_results, evaluate; from detmap.kernels import _numba, overlap;"
        f"truth = read_coco({str(FIXTURE / 'ground_truth.json')!r});"
        f"evaluate(truth, read_coco_results({str(FIXTURE / 'detections.json')!r}, truth));"
        "assert len(overlap._grown.signatures) == 1, overlap._grown.signatures;"
        "wanted = _numba.known_options(no_cfunc_wrapper=True);"
        "assert wanted.items() <= overlap.box_candidates.targetoptions.items()"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=300)


@pytest.mark.parametrize("shape", [0, 5, (3, 2), (1 << 20, 2), ((1 << 22) + 1, 2)])
def test_memory_that_is_soon_given_back_is_a_part_of_much(shape) -> None:
    """From a few megabytes on it is a part of so much that it comes from the system by itself; small arrays are not."""
    made = passing(shape, np.int64)
    plain = np.empty(shape, np.int64)
    assert (made.shape, made.dtype) == (plain.shape, plain.dtype)
    assert made.flags.c_contiguous
    assert made.flags.writeable
    whole = made
    while whole.base is not None:
        whole = whole.base
    assert whole.nbytes == plain.nbytes if plain.nbytes < 1 << 22 else whole.nbytes > 1 << 25
