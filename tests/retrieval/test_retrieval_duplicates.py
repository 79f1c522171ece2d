"""Equal features tie and equal queries rank alike, whatever BLAS rounds; layouts of the arrays play no part."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from detmap.kernels import hashing, readonly
from detmap.retrieval import evaluate_features, features

METRICS = ("euclidean", "cosine", "dot")


def copies(rng, items, width, kind, queries=7):
    """A gallery whose last item, the match of every query and near to it, equals its first, another identity."""
    gallery = rng.standard_normal((items, width)).astype(kind)
    gallery[-1] = gallery[0]
    ids = np.arange(1, items + 1)
    ids[-1] = 0
    query = (gallery[0] + 0.1 * rng.standard_normal((queries, width))).astype(kind)
    return query, gallery, np.zeros(queries, int), ids


@pytest.mark.parametrize("items", [5, 6, 7, 255, 257, pytest.param(16_385, marks=pytest.mark.compiled)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_wrong_copy_is_never_overtaken(items, kind):
    """CMC@1 is 0: the other identity's copy of the match comes first in the gallery."""
    rng = np.random.default_rng(items)
    query, gallery, *ids = copies(rng, items, 16, kind, queries=200)
    result = evaluate_features(query, gallery, *ids, metrics=["CMC@1", "mAP"])
    assert result["CMC@1"] == 0.0
    assert np.all(result.hits.tied == 2)
    low, high = result.tie_band
    assert low < high


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("kind", "metric", "step"),
    [(np.float32, "euclidean", 1), (np.float64, "dot", 4), (np.float32, "cosine", 4), (np.float16, "cosine", 7)],
)
def test_copies_tie_in_a_gallery_of_any_size(kind, metric, step):
    rng = np.random.default_rng(1)
    for items in (*range(2, 270, step), *range(270, 601, 7 * step)):  # one by one over four blocks of 64
        query, gallery, *_ = copies(rng, items, (1, 3, 17, 31, 64, 65, 129)[items % 7], kind, queries=1 + items % 5)
        multiplied = np.float64 if kind is np.float64 else np.float32
        ours, theirs = (features.survey(side, multiplied, "features") for side in (query, gallery))
        made = features._distances_of(ours, 0, len(query), 48, theirs, metric)
        assert np.array_equal(made[:, 0], made[:, -1]), items
        if gallery.shape[1] > 3 and kind is not np.float16:
            assert np.unique(made[0, :-1]).size > items // 3  # not everything ties


def test_copies_tie_wherever_they_stand():
    """Every place of the gallery holds one of a few distinct rows; a tied group holds all items of a row."""
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((37, 33)).astype(np.float32)
    which = rng.integers(0, 37, 1_111)
    result = evaluate_features(
        rng.standard_normal((50, 33)).astype(np.float32), rows[which], np.zeros(50, int), which, metrics=["mAP"]
    )
    assert np.all(result.hits.tied == np.count_nonzero(which == 0))


def test_zeros_of_both_signs_are_equal():
    rng = np.random.default_rng(3)
    for kind in (np.float32, np.float64):
        query, gallery, *ids = copies(rng, 300, 9, kind)
        gallery[0, :5], gallery[-1, :5] = -0.0, 0.0
        assert np.all(evaluate_features(query, gallery, *ids, metrics=["mAP"]).hits.tied == 2)


def test_rows_that_differ_may_have_the_same_hash(monkeypatch):
    rng = np.random.default_rng(4)
    rows = rng.integers(-2, 3, (6, 3)).astype(np.float64)
    which = rng.integers(0, 6, 40)
    args = rng.standard_normal((9, 3)), rows[which], rng.integers(0, 3, 9), rng.integers(0, 3, 40)
    wanted = evaluate_features(*args)
    monkeypatch.setattr(hashing, "hash_rows", lambda words, single, begin, end, out: out[begin:end].fill(7))
    found = evaluate_features(*args)
    assert dict(found) == dict(wanted)
    _, first, again = np.unique(rows[which], axis=0, return_index=True, return_inverse=True)
    side = features.survey(rows[which], np.float64, "gallery")
    assert np.array_equal(side.first, first[again.ravel()])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_hash_of_a_row_knows_only_its_values(kind):
    """Rows of whole numbers, whose bits differ in a few high places only, mostly have hashes of their own."""
    rows = np.stack(np.meshgrid(*[np.array([-1, 0, 1, 2], kind)] * 5), axis=-1).reshape(-1, 5)
    words = features._padded(rows, kind, 1).view(np.uint64)
    out = np.empty(len(rows), np.uint64)
    hashing.hash_rows(readonly(words, np.uint64), kind is np.float32, 0, len(rows), out)
    assert np.unique(out).size == len(rows) == 1024
    zeros = np.where(rows == 0, -0.0, rows).astype(kind)
    assert np.signbit(zeros).any(axis=1).sum() > 900
    again = np.empty(len(rows), np.uint64)
    words = features._padded(zeros, kind, 1).view(np.uint64)
    hashing.hash_rows(readonly(words, np.uint64), kind is np.float32, 0, len(rows), again)
    assert np.array_equal(out, again), "zeros of both signs are equal"


def layouts(array, path):
    yield np.asfortranarray(array)
    yield np.repeat(np.repeat(array, 2, axis=1), 3, axis=0)[::3, ::2]
    yield array[::-1].copy()[::-1]
    yield array.astype(array.dtype.newbyteorder())
    stored = np.memmap(path, dtype=array.dtype, mode="w+", shape=array.shape, offset=3)
    stored[:] = array
    yield stored  # not even aligned
    yield array.tolist() if array.dtype == np.float64 else np.ma.array(array)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_the_layout_of_the_arrays_plays_no_part(kind, metric, tmp_path):
    """Real-valued features that nearly tie: a single bit would show in the ranks."""
    rng = np.random.default_rng(5)
    base = rng.standard_normal(100)
    query = (base + 1e-7 * rng.standard_normal((130, 100))).astype(kind)
    gallery = (base + 1e-7 * rng.standard_normal((333, 100))).astype(kind)
    ids = rng.integers(0, 9, 130), rng.integers(0, 9, 333)
    wanted = evaluate_features(query, gallery, *ids, metric=metric).hits
    for a, b in zip(layouts(query, tmp_path / "q"), layouts(gallery, tmp_path / "g"), strict=True):
        for pair in ((a, gallery), (query, b), (a, b)):
            found = evaluate_features(*pair, *ids, metric=metric).hits
            assert np.array_equal(found.ranks, wanted.ranks)
            assert np.array_equal(found.tied, wanted.tied)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_equal_queries_have_equal_results_in_whatever_block(kind, monkeypatch):
    rng = np.random.default_rng(6)
    base = rng.standard_normal(70)
    rows = (base + 1e-7 * rng.standard_normal((20, 70))).astype(kind)
    which = np.concatenate((np.arange(20), rng.integers(0, 20, 130)))
    gallery = (base + 1e-7 * rng.standard_normal((50, 70))).astype(kind)
    monkeypatch.setattr(features, "_TOGETHER", 48)
    monkeypatch.setattr(features, "_BLOCK_DISTANCES", 50 * 48)  # blocks of 48 queries
    result = evaluate_features(rows[which], gallery, np.zeros(150, int), rng.integers(0, 5, 50), metrics=["mAP"])
    ranks = result.hits.ranks.reshape(150, -1)
    assert np.array_equal(ranks, ranks[which])
    assert np.unique(ranks, axis=0).shape[0] > 1


def test_equal_queries_of_several_blocks_may_have_one_place(monkeypatch):
    """The first ones of what a block repeats may stand at one place of different blocks: these are multiplied one by one."""
    rng = np.random.default_rng(8)
    base = rng.standard_normal(70)
    rows = (base + 1e-7 * rng.standard_normal((144, 70))).astype(np.float32)
    which = np.concatenate((np.arange(144), [3, 51, 99, 3, 4, 100]))
    gallery = (base + 1e-7 * rng.standard_normal((20, 70))).astype(np.float32)
    monkeypatch.setattr(features, "_TOGETHER", 48)
    monkeypatch.setattr(features, "_BLOCK_DISTANCES", 20 * 48)
    result = evaluate_features(rows[which], gallery, np.zeros(150, int), rng.integers(0, 2, 20), metrics=["mAP"])
    ranks = result.hits.ranks.reshape(150, -1)
    assert np.array_equal(ranks, ranks[which])


@pytest.mark.compiled
def test_the_first_queries_do_not_depend_on_those_that_follow(monkeypatch):
    """Whole blocks have one shape, however many there are."""
    rng = np.random.default_rng(7)
    base = rng.standard_normal(70)
    query, gallery = ((base + 1e-7 * rng.standard_normal((n, 70))).astype(np.float32) for n in (200, 130))
    ids = np.zeros(200, int), rng.integers(0, 5, 130)
    monkeypatch.setattr(features, "_TOGETHER", 48)
    monkeypatch.setattr(features, "_BLOCK_DISTANCES", 130 * 48)
    wanted = evaluate_features(query, gallery, *ids).per_query["AP"]
    for count in (48, 96, 144, 192):
        some = evaluate_features(query[:count], gallery, ids[0][:count], ids[1]).per_query["AP"]
        assert np.array_equal(some, wanted[:count])


KERNELS = ("Haswell", "SkylakeX", "Sandybridge", "Nehalem", "Prescott")

CHILD = """
import numpy as np
from detmap.retrieval import evaluate_features
rng = np.random.default_rng(0)
for kind in (np.float32, np.float64):
    for items, width in ((257, 65), (600, 129)):
        rows = rng.standard_normal((40, width)).astype(kind)
        which, who = rng.integers(0, 40, items), np.concatenate((np.arange(20), rng.integers(0, 20, 80)))
        query = rng.standard_normal((20, width)).astype(kind)[who]
        hits = evaluate_features(query, rows[which], np.full(100, which[0]), which, metrics=["mAP"]).hits
        assert np.all(hits.tied == np.count_nonzero(which == which[0])), (kind, items)
        ranks = hits.ranks.reshape(100, -1)
        assert np.array_equal(ranks, ranks[who]), (kind, items)
"""


@pytest.mark.compiled
@pytest.mark.parametrize("kernel", KERNELS)
def test_copies_tie_with_the_code_of_other_processors(kernel):
    """OpenBLAS is told to take another processor's code (others than OpenBLAS do not listen, and pass all the same)."""
    known = Path("/proc/cpuinfo").read_text().split() if sys.platform == "linux" else []
    if {"Haswell": "avx2", "SkylakeX": "avx512bw", "Sandybridge": "avx"}.get(kernel, "sse2") not in known:
        pytest.skip("this processor cannot run that code")
    for threads in ("1", "3"):
        environment = {**os.environ, "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
