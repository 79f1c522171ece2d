"""Kernels of curves: average precision and interpolation, against naive twins."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples, same_bits

from detmap.kernels import curves, readonly

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


@pytest.mark.parametrize("hits", [0, 1, 7, 8, 9, 127, 128, 129, 136, 143, 144, 255, 257, 1000, 2049])
@pytest.mark.parametrize("missed", [0, 3])
def test_areas_are_added_as_numpy_adds(hits, missed):
    """Open Images' program sums gains in recall times the envelope by ``np.sum``, whose order shows in the last bits."""
    rng = np.random.default_rng(hits)
    ranks = np.cumsum(rng.integers(1, 9, hits)).tolist()
    out = np.empty(1)
    curves.average_precision(*hits_of([(ranks, missed)]), curves.PAIRWISE, 0.0, 0, 1, out)
    if not hits + missed:
        assert np.isnan(out[0])
        return
    precision = np.arange(1, hits + 1) / np.array(ranks, float)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    recall = np.arange(hits + 1) / (hits + missed)
    terms = np.diff(recall) * envelope
    assert out[0] == np.sum(np.append(terms, 0.0) if missed else terms)


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
