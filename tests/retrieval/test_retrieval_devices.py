"""Features and distances on another device, against the same on the host: numpy, the strict twin of the array API, a fake
of CuPy, and PyTorch stand in for a GPU, as arrays whose memory is said to be no processor's. PyTorch's tests run in
scripts/test-torch, which takes a GPU, and CuPy, where there are.
"""

from __future__ import annotations

import sys
import types
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legs import examples
from test_retrieval_galleries import evaluated, galleries

from detmap.errors import InputError
from detmap.retrieval import Evaluator, device_arrays, evaluate_distances, evaluate_features, features


def torch():
    """Import PyTorch, or skip: without it `import torch` finds the folder tests/torch."""
    if getattr(find_spec("torch"), "origin", None) is None:
        pytest.skip("could not import 'torch'")
    return import_module("torch")


class Elsewhere:
    """A namespace of arrays: `put` makes one, and `taken` lets detmap take the memory of its arrays for a device's."""

    def __init__(self, name):
        self.name = name
        if name == "numpy" and np.lib.NumpyVersion(np.__version__) < "2.1.0":
            pytest.skip("this numpy is no namespace of the array API")
        self.module = np if name == "numpy" else torch() if name in ("torch", "cuda") else self.library(name)
        if name == "cuda" and not self.module.cuda.is_available():
            pytest.skip("PyTorch finds no GPU")
        # The standard has no float16.
        self.floats = [np.float16, np.float32, np.float64][name == "array_api_strict" :]

    def library(self, name):
        """Import a library; a fake CuPy where there is no GPU for it."""
        if name == "cupy" and (find_spec(name) is None or not import_module(name).cuda.is_available()):
            name = "fake_cupy"
        return pytest.importorskip(name)

    def put(self, values, device="device1"):
        if self.name == "numpy":
            return np.array(values)
        if self.name == "array_api_strict":
            return self.module.asarray(np.array(values), device=self.module.Device(device))
        if self.name == "cupy":
            return self.module.asarray(np.array(values))
        return self.module.asarray(np.array(values), device="cuda" if self.name == "cuda" else "cpu")

    @contextmanager
    def taken(self):
        with pytest.MonkeyPatch.context() as patch:
            if self.name == "cupy":
                patch.setitem(sys.modules, "cupy", self.module)
            elif self.name != "cuda":
                patch.setattr(device_arrays, "_HOST", frozenset())
            yield patch

    def equal(self, call, arrays, *args, **options):
        """Assert that `call` with `arrays` on the device has the result that it has on the host; return it."""
        wanted = evaluated(call, *arrays, *args, **options)
        with self.taken():
            found = evaluated(call, *map(self.put, arrays), *args, **options)
        assert_equal(found, wanted)
        return found


def assert_equal(found, wanted):
    if wanted is None:
        assert found is None
        return
    np.testing.assert_equal(dict(found), dict(wanted))
    np.testing.assert_equal(dict(found.per_query), dict(wanted.per_query))
    np.testing.assert_equal(found.cmc, wanted.cmc)
    np.testing.assert_equal(found.tie_band, wanted.tie_band)
    assert (found.junk, found.notices) == (wanted.junk, wanted.notices)


@pytest.fixture(params=["numpy", "array_api_strict", "cupy", "torch", "cuda"], scope="module")
def elsewhere(request):
    return Elsewhere(request.param)


@given(data=st.data())
@settings(max_examples=examples(100))
def test_distances_rank_as_on_the_host(elsewhere, data):
    distances, *who = data.draw(galleries(levels=5))
    q, n = distances.shape
    values = np.array([-0.0, 0.0, 1.0, 2.5, np.inf])[distances.astype(np.int64)]
    lists = st.lists(st.integers(0, n - 1), max_size=3)
    options = {
        "ties": data.draw(st.sampled_from(["index", "reversed", "expected", "best", "worst", "collapsed"])),
        "junk_id": data.draw(st.sampled_from([None, 0, 3])),
        "ignore": data.draw(st.none() | st.lists(lists, min_size=q, max_size=q)),
        "self_match": data.draw(st.none() | st.lists(st.integers(-1, n - 1), min_size=q, max_size=q)),
        "metrics": ["mAP", "CMC@1", "CMC@5", "R@3"],
    }
    elsewhere.equal(evaluate_distances, [values.astype(data.draw(st.sampled_from(elsewhere.floats)))], *who, **options)


def scene(seed, queries, items, width, people=6):
    """Features of whole numbers, whose products are exact in any order, some of them equal; identities and cameras."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-3, 4, (queries + items, width))
    rows[rng.integers(0, len(rows), len(rows) // 3)] = rows[0]
    who = rng.integers(0, people, queries + items), rng.integers(0, 3, queries + items)
    return (rows[:queries], rows[queries:]), [part for side in who for part in (side[:queries], side[queries:])]


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "dot"])
def test_features_rank_as_on_the_host(elsewhere, metric):
    for seed, kind in enumerate(elsewhere.floats):
        pair, who = scene(seed, 7, 60, 5)
        pair = [side.astype(kind) for side in pair]
        elsewhere.equal(evaluate_features, pair, *who, metric=metric, junk_id=2)
        elsewhere.equal(evaluate_features, pair, *who, metric=metric, ties="expected", metrics="mAP")


def test_cosine_ranks_as_on_the_host(elsewhere):
    rng = np.random.default_rng(5)
    pair, who = scene(6, 9, 80, 8)
    pair = [np.zeros_like(side) for side in pair]
    for side in pair:  # lengths of 0 and 2, whose quotients are exact
        for row in side[1:]:
            row[rng.choice(8, 4, replace=False)] = rng.choice([-1, 1], 4)
    elsewhere.equal(evaluate_features, [side.astype(np.float32) for side in pair], *who, metric="cosine")


def test_cosine_distances_are_1_minus_the_cosine(elsewhere):
    """Lengths of 1 and 2, so that all quotients are exact; a row of zeros has the distance 1 from everything."""
    query = np.array([[1.0, 0, 0], [0, -2, 0], [0, 0, 0]])
    gallery = np.array([[2.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, 0, 0]])
    with elsewhere.taken():
        tables = [device_arrays.array_table(elsewhere.put(side), "side") for side in (query, gallery)]
        ours, theirs = (features.survey(table, np.float64, "side") for table in tables)
        cuts, rows_of = features.blocks(ours, theirs, "cosine")
        distances = np.concatenate([rows_of(low, high)(low, high) for low, high in cuts])
    assert distances.tolist() == [[0, 2, 1, 1], [1, 1, 2, 1], [1, 1, 1, 1]]


@pytest.mark.parametrize("metrics", [None, ["mAP", "TPR@FPR=0.1"]])
def test_blocks_and_tiles_change_nothing(elsewhere, monkeypatch, metrics):
    pair, who = scene(1, 11, 90, 6)
    pair = [side.astype(np.float64) for side in pair]
    wanted = evaluate_features(*pair, *who, metrics=metrics)
    for block, tile in ((1, 1), (200, 100), (1000, 540)):
        monkeypatch.setattr(device_arrays, "_BLOCK_DISTANCES", block)
        monkeypatch.setattr(device_arrays, "_TILE_FEATURES", tile)
        assert_equal(elsewhere.equal(evaluate_features, pair, *who, metrics=metrics), wanted)
        distances = [((pair[0][:, None] - pair[1]) ** 2).sum(axis=2)]
        assert_equal(elsewhere.equal(evaluate_distances, distances, *who, metrics=metrics), wanted)


@pytest.mark.parametrize("cmc", ["cuhk03", "cuhk03_exact", "sysu", "market", "allshots"])
def test_every_cmc(elsewhere, cmc):
    pair, who = scene(2, 8, 50, 4)
    elsewhere.equal(evaluate_features, [side.astype(np.float32) for side in pair], *who, cmc=cmc)


def test_distances_stay_on_the_device(elsewhere, monkeypatch):
    pair, who = scene(3, 20, 400, 4, people=40)
    copied, fetched = [], device_arrays._fetched

    def count(values):
        copied.append(int(np.prod(values.shape)))
        return fetched(values)

    monkeypatch.setattr(device_arrays, "_fetched", count)
    elsewhere.equal(evaluate_features, [side.astype(np.float32) for side in pair], *who)
    assert max(copied) == 4 * 400  # the features of the gallery, and not 20 * 400
    assert sum(copied) < 20 * 400


def test_arrays_whose_capsules_stay_on_their_device(monkeypatch):
    def refuse(values, **options):
        raise BufferError("cannot copy")

    pair, who = scene(3, 5, 30, 4)
    place = Elsewhere("numpy")
    monkeypatch.setattr(np, "from_dlpack", refuse)
    place.equal(evaluate_features, [side.astype(np.float32) for side in pair], *who)


def test_equal_features_tie_whatever_the_device_rounds(elsewhere):
    """A product that rounds every column in its own way: without care no two items would tie."""
    rng = np.random.default_rng(7)
    pair = rng.standard_normal((2, 3)), rng.standard_normal((5, 3))[[0, 1, 0, 2, 1, 0]]

    def rounded(a, b):
        return elsewhere.module.matmul(a, b) + elsewhere.put(np.arange(b.shape[1]) * 1e-9)[None, :]

    with elsewhere.taken() as patch:
        functions = vars(device_arrays._namespace(elsewhere.put(pair[0])))
        rounding = types.SimpleNamespace(**{**functions, "matmul": rounded})
        patch.setattr(device_arrays, "_namespace", lambda values: rounding)
        tables = [device_arrays.array_table(elsewhere.put(side), "side") for side in pair]
        ours, theirs = (features.survey(table, np.float64, "side") for table in tables)
        cuts, rows_of = features.blocks(ours, theirs, "euclidean")
        distances = np.concatenate([rows_of(low, high)(low, high) for low, high in cuts])
    first = np.array([0, 1, 0, 3, 1, 0])
    np.testing.assert_array_equal(distances, distances[:, first])
    assert len(np.unique(distances[0])) == 3


def test_evaluators_take_arrays_of_a_device_and_merge_with_others(elsewhere):
    pair, (ours, theirs, *cameras) = scene(4, 12, 70, 5)
    query, gallery = (side.astype(np.float32) for side in pair)
    distances = ((query[:, None] - gallery) ** 2).sum(axis=2)
    options = {"gallery_ids": theirs, "gallery_cameras": cameras[1]}

    def fill(make, name, values, **more):
        evaluator = Evaluator(**options, **more)
        for some in (slice(0, 5), slice(5, 12)):
            evaluator.update(query_ids=ours[some], query_cameras=cameras[0][some], **{name: make(values[some])})
        return evaluator

    host = fill(np.asarray, "features", query, gallery=gallery)
    with elsewhere.taken():
        device = fill(elsewhere.put, "features", query, gallery=elsewhere.put(gallery))
        assert_equal(fill(elsewhere.put, "distances", distances).compute(), host.compute())
    assert device.to_bytes() == host.to_bytes()
    assert len(host.merge(device)) == 24


def test_bad_input_says_what_is_wrong(elsewhere):
    put, ids = elsewhere.put, ([0, 1], [0, 1, 1])
    query, gallery = np.ones((2, 3), np.float32), np.ones((3, 3), np.float32)
    hole = gallery.copy()
    hole[2, 1] = np.nan
    with elsewhere.taken():
        for pair, message in (
            ((query, hole), "gallery: record 2: NaN, or a number too large to square"),
            ((query, gallery[:, :2]), "gallery: 2 columns where the queries have 3"),
            ((query[0], gallery), "query: expected a matrix of numbers (got '1-d float32')"),
        ):
            with pytest.raises(InputError) as error:
                evaluate_features(*map(put, pair), *ids)
            assert str(error.value).startswith(message)
        with pytest.raises(InputError, match="query 1: a distance is NaN"):
            evaluate_distances(put([[0.0, 1, 2], [0, np.nan, 1]]), *ids)
        with pytest.raises(InputError, match="gallery: of queries and gallery only one is an array of floats on"):
            evaluate_features(put(query), [[1.0, 2, 3]] * 3, *ids)
        evaluator = Evaluator(gallery_ids=[0, 1, 1], gallery=gallery.tolist())
        with pytest.raises(InputError, match="features: of queries and gallery only one is an array of floats on"):
            evaluator.update(query_ids=[0, 1], features=put(query))


def test_two_devices_are_refused():
    strict = Elsewhere("array_api_strict")
    query, gallery = strict.put(np.ones((2, 3))), strict.put(np.ones((3, 3)), "device2")
    with strict.taken(), pytest.raises(InputError) as error:
        evaluate_features(query, gallery, [0, 1], [0, 1, 1])
    assert "queries are on array_api_strict.Device('device1') and the gallery on " in str(error.value)


@pytest.mark.parametrize("name", ["torch", "cuda"])
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_low_precision_is_widened_and_gradients_are_left_aside(name, kind):
    place = Elsewhere(name)
    pair, who = scene(8, 6, 40, 4)
    low = [
        place.module.asarray(side, dtype=getattr(place.module, kind)).to(place.put(0).device).requires_grad_()
        for side in pair
    ]
    wanted = evaluate_features(*(side.astype(np.float32) for side in pair), *who)
    with place.taken():
        assert_equal(evaluate_features(*low, *who), wanted)


def test_what_is_no_float_is_taken_to_the_host(elsewhere):
    pair, who = scene(9, 4, 30, 4)
    products = pair[0] @ pair[1].T
    for distances in (products, products > 2):
        elsewhere.equal(evaluate_distances, [distances], *who)
    elsewhere.equal(evaluate_features, pair, *who)


def test_tensors_that_are_no_dense_matrix_are_refused():
    place = Elsewhere("torch")
    xp = place.module
    with place.taken():
        for tensor in (xp.eye(3).to_sparse(), xp.ones(3, 3, device="meta")):
            with pytest.raises(InputError, match="query: is no array"):
                evaluate_features(tensor, xp.eye(3), [0, 1, 2], [0, 1, 2])
