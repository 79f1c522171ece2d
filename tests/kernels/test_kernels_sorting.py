"""Kernels that sort, scatter, group and join rows, against naive twins."""

from __future__ import annotations

import itertools
import math

import naive
import numba
import numpy as np
import pytest
import workloads
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples

from detmap.kernels import allocate, readonly, sorting

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
        sorting.sort_rows(
            readonly(starts, np.int64), begin, end, rows._replace(scores=rows.scores.view(np.uint64)), group
        )
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
    values = readonly([row[2] for row in rows] if scored else (), np.float64).view(np.uint64)
    out = [np.empty(len(rows), np.int32) for _ in range(3)]
    out_bits, out_starts = np.empty(values.size, np.uint64), np.empty(len(rows), np.int64)
    found, placed = [], sorting.Placed(order, *out, out_bits)
    middle = len(content) // 2
    for begin, end in ((0, middle), (middle, len(content))):
        given = readonly(starts, np.int64), category, values
        count = sorting.arrange_cells(*given, merged, begin, end, placed, out_starts)
        found += out_starts[starts[begin] : starts[begin] + count].tolist()
    columns = (column.tolist() for column in (order, *out))
    assert list(zip(*columns, strict=True)) == expected
    assert found == [i for i, row in enumerate(expected) if row[3] == 0]
    assert np.array_equal(out_bits, values[order[: values.size]])


@pytest.mark.parametrize("values", [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.3]])
def test_rows_of_one_category_by_falling_score(values):
    """Those that come in order stay, and those that rise are sorted."""
    order, out = np.arange(3, dtype=np.int32), [np.empty(3, np.int32) for _ in range(3)]
    starts, category = readonly([0, 3], np.int64), readonly([0, 0, 0], np.int32)
    given = starts, category, readonly(values, np.float64).view(np.uint64)
    placed = sorting.Placed(order, *out, np.empty(3, np.uint64))
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
