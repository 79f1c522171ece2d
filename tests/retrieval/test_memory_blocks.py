"""Blocks in which queries, galleries and scores are worked off: their bounds, and equal results in blocks of any size."""

from __future__ import annotations

import numpy as np
import pytest
from test_retrieval_devices import Elsewhere

from detmap.retrieval import codes, device_arrays, evaluate_codes, evaluate_features, features, galleries
from detmap.system import parallel


@pytest.mark.parametrize(
    ("queries", "items", "bounds"),
    [
        (0, 3, []),
        (1, 100, [(0, 1)]),
        (5, 5, [(0, 2), (2, 4), (4, 5)]),
        (3, 0, [(0, 3)]),
        (4, 11, [(0, 1), (1, 2), (2, 3), (3, 4)]),
    ],
)
def test_blocks_of_distances_on_a_device(monkeypatch, queries, items, bounds):
    """As many queries as have ten distances together, at least one."""
    monkeypatch.setattr(device_arrays, "_BLOCK_DISTANCES", 10)
    assert device_arrays._blocks(queries, items, str) == (bounds, str)


@pytest.mark.parametrize(("columns", "heights"), [(4, [3, 3, 1]), (5, [2, 2, 2, 1]), (13, [1] * 7), (1, [7])])
def test_tiles_of_features_on_a_device(monkeypatch, columns, heights):
    """As many items as have twelve features together, at least one; the distances are those of all at once."""
    elsewhere = Elsewhere("numpy")
    rng = np.random.default_rng(0)
    query, gallery = (rng.integers(-3, 4, (rows, columns)).astype(np.float32) for rows in (3, 7))
    ids = [0, 1, 2], [0, 1, 2, 0, 1, 2, 0]
    wanted = evaluate_features(query, gallery, *ids)
    monkeypatch.setattr(device_arrays, "_TILE_FEATURES", 12)
    seen = []
    matmul = np.matmul
    monkeypatch.setattr(np, "matmul", lambda a, b, **more: seen.append(b.shape[1]) or matmul(a, b, **more))
    with elsewhere.taken():
        found = evaluate_features(elsewhere.put(query), elsewhere.put(gallery), *ids)
    assert seen == heights
    assert dict(found) == dict(wanted)


@pytest.mark.parametrize(
    ("items", "tiles"),
    [
        (1, [(0, 1)]),
        (3, [(0, 3)]),
        (4, [(0, 4)]),
        (9, [(0, 8), (8, 9)]),
        (16, [(0, 8), (8, 16)]),
        (30, [(0, 8), (8, 16), (16, 24), (24, 28), (28, 30)]),
    ],
)
def test_tiles_of_a_gallery(monkeypatch, items, tiles):
    monkeypatch.setattr(features, "_ITEMS", 4)
    monkeypatch.setattr(features, "_TILE", 8)
    assert features._tiles(items) == tiles


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("columns", [3, 4, 5, 8])
def test_padded_rows(monkeypatch, rows, columns):
    monkeypatch.setattr(features, "_FEATURES", 4)
    given = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    made = features._padded(given, np.float64, 2)
    assert made.shape == (rows + rows % 2, columns + -columns % 4)
    assert (made.dtype, made.flags.c_contiguous) == (np.float64, True)
    assert np.array_equal(made[:rows, :columns], given)
    assert made.sum() == given.sum()


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "dot"])
@pytest.mark.parametrize("together", [1, 2, 5])
def test_features_in_blocks_of_any_size(monkeypatch, metric, together):
    """With equal queries in several blocks and equal items in several tiles."""
    rng = np.random.default_rng(together)
    query, gallery = rng.integers(-2, 3, (23, 3)).astype(float), rng.integers(-2, 3, (31, 3)).astype(float)
    query[::5], gallery[::4] = query[0], gallery[1]
    ids = np.arange(23) % 4, np.arange(31) % 4
    wanted = evaluate_features(query, gallery, *ids, metric=metric)
    for name, value in (("_TOGETHER", together), ("_BLOCK_DISTANCES", 31 * together), ("_TILE", 8), ("_ITEMS", 4),
                        ("_QUERIES", 2), ("_SURVEYED", 3), ("_MANY", 1)):  # fmt: skip
        monkeypatch.setattr(features, name, value)
    found = evaluate_features(query, gallery, *ids, metric=metric)
    for name, column in wanted.per_query.items():
        assert np.array_equal(found.per_query[name], column, equal_nan=True), name
    assert found.tie_band == wanted.tie_band


def test_rows_that_share_a_hash_are_told_apart():
    rows = np.array([[1.0, 2], [3, 4], [1, 2], [3, 4], [5, 6], [5, 6], [1, 2]])
    hashes = np.array([7, 7, 7, 7, 7, 8, 9], np.uint64)
    assert features._first_equal(rows, hashes, np.float64).tolist() == [0, 1, 0, 1, 4, 5, 6]
    assert features._first_equal(rows[:1], hashes[:1], np.float64).tolist() == [0]


@pytest.mark.parametrize("labels", ["near", "far", "texts", "rows", "negative"])
def test_codes_in_blocks_of_any_size(monkeypatch, labels):
    """With labels that are counted, sorted, or rows of flags, of which some are on one side alone."""
    rng = np.random.default_rng(1)
    ours, theirs = rng.integers(0, 2, (13, 70)), rng.integers(0, 2, (40, 70))
    ours[3] = theirs[5]
    named = np.arange(13) % 7, np.arange(40) % 5 + 1
    if labels == "rows":
        given = [np.eye(8, dtype=int)[one] for one in named]
    else:
        given = [
            {"near": one, "far": one * 10**12, "texts": one.astype(str), "negative": one - 4}[labels] for one in named
        ]
    own = np.where(np.arange(13) % 3, np.arange(13), -1)
    for options in (
        {},
        {"self_match": own},
        {"ties": "expected", "metrics": ["mAP", "P@4"]},
        {"k": 4, "self_match": own},
    ):
        wanted = evaluate_codes(ours, theirs, *named, **options)
        found = evaluate_codes(ours, theirs, *given, **options)
        monkeypatch.setattr(codes, "_BLOCK_ITEMS", 90)
        monkeypatch.setattr(codes, "_PART", 100)
        monkeypatch.setattr(codes, "_STEP", 50)
        parts = evaluate_codes(ours.astype(float), theirs.astype(float), *given, **options)
        monkeypatch.setattr(codes, "KEPT_HITS", 0)
        monkeypatch.setattr(codes, "_PASSING_ITEMS", 120)
        passing = evaluate_codes(ours, theirs, *given, **options)
        monkeypatch.undo()
        for other in (found, parts, passing):
            assert dict(other) == dict(wanted)
            assert other.junk == wanted.junk
            for name, column in wanted.per_query.items():
                assert np.array_equal(other.per_query[name], column, equal_nan=True), name
        assert parts.tie_band == wanted.tie_band


def test_galleries_in_blocks_of_queries(monkeypatch):
    """The costs of a query are its relevant items, its junk, and what is kept of it."""
    gallery = galleries.relate(
        4, 10, [0, 1, 2, 3], np.arange(10) % 4, None, None, None, [[0], [1, 2, 3], [], [9]], None,
        galleries.convention_of("reid", {}),
    )  # fmt: skip
    for most in range(1, 30):
        monkeypatch.setattr(galleries, "_BLOCK_ITEMS", most)
        assert gallery.parts(0, 4, 0) == parallel.split(np.array([3 + 1 + 1, 3 + 1 + 3, 2 + 1, 2 + 1 + 1]), most)
        later = [(begin + 1, end + 1) for begin, end in parallel.split(np.array([14, 10, 11]), most)]
        assert gallery.parts(1, 4, 7) == later
