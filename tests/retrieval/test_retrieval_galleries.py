"""Distances and features against naive twins: re-identification, landmarks, tie rules, CMC variants, junk."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import naive_retrieval as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legs import examples

from detmap.errors import InputError, OptionError
from detmap.retrieval import Evaluator, evaluate_distances, evaluate_features, evaluate_landmarks, multi_query


@st.composite
def galleries(draw, most_queries=5, most_items=14, levels=4, people=4, cameras=3):
    """Distances with many ties, identities and cameras."""
    q, n = draw(st.integers(1, most_queries)), draw(st.integers(1, most_items))

    def whole(count, low, high):
        return np.array(draw(st.lists(st.integers(low, high), min_size=count, max_size=count)), dtype=np.int64)

    distances = whole(q * n, 0, levels - 1).reshape(q, n).astype(np.float64)
    return (
        distances,
        whole(q, 0, people - 1),
        whole(n, 0, people - 1),
        whole(q, 1, cameras),
        whole(n, 1, cameras),
    )


def evaluated(call, *args, **options):
    """The result, or None where no query has a match."""
    try:
        return call(*args, **options)
    except InputError as error:
        assert "no query has a relevant item" in str(error)  # noqa: PT017
        return None


@given(galleries(), st.sampled_from(["index", "reversed"]))
@settings(max_examples=examples(150))
def test_market_protocol_equals_twin(data, ties):
    result = evaluated(evaluate_distances, *data, ties=ties)
    wanted = naive.market(*data, ties=ties)
    if result is None:
        assert not any(wanted)
        return
    for q, row in enumerate(wanted):
        got = [result.per_query[name][q] for name in ("AP", "INP", "CMC@1", "CMC@5")]
        if row is None:
            assert np.isnan(got).all()
            continue
        ap, inp, first = row
        assert got == [pytest.approx(float(ap), abs=1e-15), float(inp), first <= 1, first <= 5]
    firsts = [row[2] for row in wanted if row]
    for k, value in enumerate(result.cmc, 1):
        assert value == pytest.approx(sum(f <= k for f in firsts) / len(firsts), abs=1e-15)
    assert result.queries == {"scored": len(firsts), "empty": wanted.count(None), "missing": 0, "extra": 0}
    assert result["mAP"] == pytest.approx(float(sum(row[0] for row in wanted if row) / len(firsts)), abs=1e-15)


@given(galleries(people=3))
@settings(max_examples=examples(60))
def test_layumi_equals_twin(data):
    distances, query_ids, gallery_ids, query_cameras, gallery_cameras = data
    gallery_ids = gallery_ids - 1
    args = (query_ids, gallery_ids, query_cameras, gallery_cameras)
    result = evaluated(evaluate_distances, distances, *args, convention="layumi", metrics=["mAP", "CMC@1", "CMC@3"])
    wanted = naive.layumi(-distances, *args)
    # a query of identity -1 does not occur in the twin's data
    if result is None:
        assert all(first == 0 for _, first in wanted)
        return
    assert np.allclose(result.per_query["AP"], [float(ap) for ap, _ in wanted], rtol=0, atol=1e-15)
    assert result["CMC@3"] == pytest.approx(sum(0 < f <= 3 for _, f in wanted) / len(wanted), abs=1e-15)
    assert result.cmc[0] == pytest.approx(sum(f == 1 for _, f in wanted) / len(wanted), abs=1e-15)


@pytest.mark.parametrize(
    ("convention", "twin"),
    [
        ("allshots", naive.all_shots_cmc),
        ("cuhk03_exact", naive.cuhk03_exact_cmc),
        ("sysu", naive.sysu_cmc),
    ],
)
@given(data=galleries(most_queries=3, most_items=9))
@settings(max_examples=examples(80))
def test_cmc_variants_equal_twins(convention, twin, data):
    result = evaluated(evaluate_distances, *data, convention=convention, metrics=["CMC@1", "CMC@2"])
    if result is None:
        return
    top = len(result.cmc)
    wanted = [float(v) for v in twin(*data, topk=top)]
    assert np.allclose(result.cmc, wanted, rtol=0, atol=1e-14)
    assert result["CMC@2"] == pytest.approx(wanted[min(2, top) - 1], abs=1e-14)


def test_cuhk03_worked_by_hand():
    # identities 0 (the query's, twice), 1 (three times), 2: the chances are 1/6, 5/12, 2/3, 1 when a third of the others
    # is ahead of the first match and so on; by enumeration in the twin
    distances = np.array([[0.5, 0.8, 0.1, 0.6, 0.9, 0.4]])
    people = np.array([0, 0, 1, 1, 1, 2])
    result = evaluate_distances(distances, [0], people, [0], [1] * 6, convention="cuhk03_exact", metrics=["CMC@1"])
    twin = naive.cuhk03_exact_cmc(distances, [0], people, [0], [1] * 6, topk=6)
    assert result.cmc.tolist() == pytest.approx([float(v) for v in twin], abs=1e-15)


@pytest.mark.compiled  # wrap-around multiplication
def test_cuhk03_draws_are_seeded_and_tend_to_the_expectation():
    rng = np.random.default_rng(0)
    people, query_ids = np.repeat(np.arange(12), 5), np.arange(12).repeat(60)
    distances = rng.random((query_ids.size, people.size))
    args = (distances, query_ids, people)
    drawn = evaluate_distances(*args, convention="cuhk03", seed=3, metrics=["CMC@1"]).cmc
    assert np.array_equal(drawn, evaluate_distances(*args, convention="cuhk03", seed=3, metrics=["CMC@1"]).cmc)
    assert not np.array_equal(drawn, evaluate_distances(*args, convention="cuhk03", seed=4, metrics=["CMC@1"]).cmc)
    exact = evaluate_distances(*args, convention="cuhk03_exact", metrics=["CMC@1"]).cmc
    assert np.abs(drawn - exact).max() < 0.02
    assert not np.array_equal(drawn, exact)


@given(galleries(most_queries=4, most_items=14, levels=9, people=3))
@settings(max_examples=examples(200))
def test_true_positive_rates_equal_fast_reid(data):
    pytest.importorskip("sklearn")
    rates = [0.0, 0.1, 0.25, 0.5, 0.9, 1.0]
    names = [f"TPR@FPR={rate:g}" for rate in rates]
    result = evaluated(evaluate_distances, *data, metrics=["mAP", *names])
    other = (data[1][:, None] != data[2]).any()
    if result is None or not other:
        return
    assert [result[name] for name in names] == pytest.approx(naive.roc_rates(*data, rates), abs=1e-15)
    assert "mAP" in result
    with pytest.raises(OptionError, match="rate must be"):
        evaluate_distances(*data, metrics=["TPR@FPR=2"])


TIE_METRICS = ["AP", "AP(trapezoid)", "AP@3", "P@2", "R@3", "RR", "RR@2", "nDCG@4", "CMC@2", "INP"]


def of_flags(flags, positives, name):
    ranks = [r for r, flag in enumerate(flags, 1) if flag]
    if name == "AP":
        return naive.step_ap(flags, positives)
    if name == "AP(trapezoid)":
        return naive.trapezoid_ap(flags, positives)
    if name == "AP@3":
        return naive.step_ap(flags, positives, 3)
    if name == "P@2":
        return Fraction(sum(flags[:2]), 2)
    if name == "R@3":
        return Fraction(sum(flags[:3]), positives)
    if name in ("RR", "RR@2"):
        return Fraction(1, ranks[0]) if name == "RR" or ranks[0] <= 2 else Fraction(0)
    if name == "nDCG@4":
        return naive.ndcg(flags, [1] * positives, 4)
    if name == "CMC@2":
        return Fraction(int(ranks[0] <= 2))
    return Fraction(positives, ranks[-1])


@pytest.mark.slow
@given(galleries(most_queries=2, most_items=9, levels=3, people=2))
@settings(max_examples=examples(150))
def test_expected_is_the_mean_over_all_orders_and_the_band_their_extremes(data):
    distances, query_ids, gallery_ids = data[:3]
    result = evaluated(evaluate_distances, *data[:3], ties="expected", metrics=TIE_METRICS)
    if result is None:
        return
    best = evaluate_distances(*data[:3], ties="best", metrics=TIE_METRICS)
    worst = evaluate_distances(*data[:3], ties="worst", metrics=TIE_METRICS)
    for q, row in enumerate(distances):
        relevant = {i for i in range(row.size) if gallery_ids[i] == query_ids[q]}
        if not relevant:
            continue
        orders = naive.tie_orders(row, relevant)
        for name in TIE_METRICS:
            values = [of_flags(flags, len(relevant), name) for flags in orders]
            assert result.per_query[name][q] == pytest.approx(float(sum(values) / len(values)), abs=1e-14), name
            assert best.per_query[name][q] == pytest.approx(float(max(values)), abs=1e-14), name
            assert worst.per_query[name][q] == pytest.approx(float(min(values)), abs=1e-14), name
        for rule in ("step", "trapezoid"):
            twin = naive.step_ap if rule == "step" else naive.trapezoid_ap
            for divisor in ("positives", "hits", "smaller"):
                for k in (None, 1, 3, 5):
                    kept = [twin(flags, len(relevant), k, divisor) for flags in orders]
                    other = evaluate_distances(
                        *data[:3], interpolation=rule, normalizer=divisor, empty="zero", metrics=["CMC@1"]
                    )
                    band = other.tie_bands(k)[q]
                    counted = [Fraction(0) if v is None else v for v in kept]
                    assert band.tolist() == pytest.approx([float(min(counted)), float(max(counted))], abs=1e-14)
                    expected = evaluate_distances(
                        *data[:3],
                        interpolation=rule,
                        normalizer=divisor,
                        empty="zero",
                        ties="expected",
                        metrics=["AP" if k is None else f"AP@{k}"],
                    )
                    (column,) = expected.per_query.values()
                    assert column[q] == pytest.approx(float(sum(counted) / len(counted)), abs=1e-14)


@given(galleries(most_queries=3, levels=3))
@settings(max_examples=examples(80))
def test_collapsed_equals_twin(data):
    result = evaluated(evaluate_distances, *data[:3], ties="collapsed", metrics=["AP", "AP(trapezoid)"])
    if result is None:
        return
    for q, row in enumerate(data[0]):
        relevant = {i for i in range(row.size) if data[2][i] == data[1][q]}
        if relevant:
            step = naive.collapsed_ap(row, relevant)
            assert result.per_query["AP"][q] == pytest.approx(float(step), abs=1e-15)
            area = naive.collapsed_ap(row, relevant, trapezoid=True)
            assert result.per_query["AP(trapezoid)"][q] == pytest.approx(float(area), abs=1e-15)


def test_many_relevant_items_take_the_other_path():
    rng = np.random.default_rng(5)
    distances = rng.integers(0, 700, (3, 3000)).astype(np.float32)
    distances[2] = rng.random(3000)
    people, cameras = rng.integers(0, 3, 3000), rng.integers(0, 2, 3000)
    args = (distances, np.arange(3), people, [0, 1, 1], cameras)
    result = evaluate_distances(*args)
    for q, (ap, inp, _) in enumerate(naive.market(*args)):
        assert result.per_query["AP"][q] == pytest.approx(float(ap), abs=1e-14)
        assert result.per_query["INP"][q] == float(inp)


def test_tie_band_goes_beyond_hits_first():
    # hits at 1 and 4 give 1 at k = 3; hits at 1 and 3 give 5/6
    distances = np.array([[0.0, 1.0, 2.0, 2.0]])
    result = evaluate_distances(distances, [7], [7, 0, 7, 0], normalizer="hits", metrics=["AP@3"])
    assert result.tie_band_at(3) == (pytest.approx(5 / 6, abs=1e-15), 1.0)


def test_junk_rules_add_up():
    rng = np.random.default_rng(1)
    distances = rng.integers(0, 9, (6, 30)).astype(float)
    query_ids, gallery_ids = rng.integers(0, 3, 6), rng.integers(-1, 3, 30)
    query_cameras, gallery_cameras = rng.integers(0, 2, 6), rng.integers(0, 2, 30)
    ignore = [rng.choice(30, 4, replace=False) for _ in range(6)]
    own = rng.integers(-1, 30, 6)
    result = evaluate_distances(
        distances, query_ids, gallery_ids, query_cameras, gallery_cameras, ignore=ignore, self_match=own
    )
    total = 0
    for q in range(6):
        same = gallery_ids == query_ids[q]
        junk = set(np.flatnonzero((gallery_ids == -1) | (same & (gallery_cameras == query_cameras[q]))))
        junk |= set(ignore[q]) | ({own[q]} if own[q] >= 0 else set())
        total += len(junk)
        flags = [int(same[i]) for i in naive.order_by_distance(distances[q], junk)]
        wanted = naive.step_ap(flags, sum(flags))
        assert wanted is None or result.per_query["AP"][q] == pytest.approx(float(wanted), abs=1e-15)
        assert result.hits.items[q] == 30 - len(junk)
    assert result.junk == total


def test_every_dtype_and_memmap_give_the_same_numbers(tmp_path):
    rng = np.random.default_rng(2)
    distances = rng.integers(0, 50, (8, 40)).astype(np.float16)
    args = (rng.integers(0, 4, 8), rng.integers(0, 4, 40))
    wanted = evaluate_distances(distances.astype(np.float64), *args)
    stored = np.memmap(tmp_path / "d.bin", dtype=np.float16, mode="w+", shape=distances.shape)
    stored[:] = distances
    for given_ in (distances, distances.astype(np.float32), distances.astype(np.int32), stored, distances.tolist()):
        assert dict(evaluate_distances(given_, *args)) == dict(wanted)
    names = [np.array([f"person {i}" for i in ids]) for ids in args]
    assert dict(evaluate_distances(distances, *names)) == dict(wanted)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "dot"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_features_rank_as_their_distances(metric, kind, tmp_path):
    rng = np.random.default_rng(3)
    # small integers: products, sums and squares are exact, so that the ranking is decided by the formula alone
    query, gallery = rng.integers(-3, 4, (7, 5)).astype(kind), rng.integers(-3, 4, (50, 5)).astype(kind)
    query_ids, gallery_ids = rng.integers(0, 4, 7), rng.integers(0, 4, 50)
    q64, g64 = query.astype(np.float64), gallery.astype(np.float64)
    if metric == "cosine":
        lengths = np.outer(np.linalg.norm(q64, axis=1), np.linalg.norm(g64, axis=1))
        distances = 1 - np.divide(q64 @ g64.T, lengths, out=np.zeros(lengths.shape), where=lengths > 0)
        rng2 = np.random.default_rng(4)  # ties of cosines depend on rounding: use features without any
        query, gallery = rng2.normal(size=(7, 5)).astype(kind), rng2.normal(size=(50, 5)).astype(kind)
        q64, g64 = query.astype(np.float64), gallery.astype(np.float64)
        lengths = np.outer(np.linalg.norm(q64, axis=1), np.linalg.norm(g64, axis=1))
        distances = 1 - (q64 @ g64.T) / lengths
    elif metric == "dot":
        distances = -(q64 @ g64.T)
    else:
        distances = ((q64[:, None] - g64[None]) ** 2).sum(axis=2)
    stored = np.memmap(tmp_path / "g.bin", dtype=kind, mode="w+", shape=gallery.shape)
    stored[:] = gallery
    result = evaluate_features(query, stored, query_ids, gallery_ids, metric=metric)
    assert dict(result) == dict(evaluate_distances(distances, query_ids, gallery_ids))


def test_features_in_several_blocks(monkeypatch):
    rng = np.random.default_rng(6)
    query, gallery = rng.integers(-3, 4, (9, 4)).astype(np.float32), rng.integers(-3, 4, (23, 4)).astype(np.float32)
    args = (query, gallery, rng.integers(0, 3, 9), rng.integers(0, 3, 23))
    wanted = evaluate_features(*args)
    monkeypatch.setattr("detmap.retrieval.features._TOGETHER", 48)
    monkeypatch.setattr("detmap.retrieval.features._BLOCK_DISTANCES", 46)
    monkeypatch.setattr("detmap.retrieval.features._TILE", 5)
    monkeypatch.setattr("detmap.retrieval.features._SURVEYED", 4)
    again = evaluate_features(*args)
    assert dict(again) == dict(wanted)
    assert np.array_equal(again.per_query["AP"], wanted.per_query["AP"])


@given(st.integers(0, 2**32))
@settings(max_examples=examples(60))
def test_landmarks_equal_revisitop(seed):
    rng = np.random.default_rng(seed)
    items, queries = 30, 4
    ranks = np.stack([rng.permutation(items) for _ in range(queries)], axis=1)
    truth = []
    for _ in range(queries):
        easy, hard, junk, _ = np.split(rng.permutation(items), np.sort(rng.integers(0, 14, 3)))
        truth.append({"easy": easy, "hard": hard, "junk": junk})
    try:
        results = evaluate_landmarks(ranks, truth)
    except InputError:
        return
    plans = {"easy": ("easy",), "medium": ("easy", "hard"), "hard": ("hard",)}
    for name, good_names in plans.items():
        good = [set(np.concatenate([t[g] for g in good_names])) for t in truth]
        junk = [set(np.concatenate([t[b] for b in t if b not in good_names])) for t in truth]
        wanted = naive.revisitop(ranks, good, junk, (1, 5, 10))
        for q, row in enumerate(wanted):
            got = [results[name].per_query[m][q] for m in ("AP", "mP@1", "mP@5", "mP@10")]
            if row is None:
                assert np.isnan(got).all()
            else:
                assert got == pytest.approx([float(row[0]), *map(float, row[1])], abs=1e-15)


def test_multi_query_averages_each_identity_and_camera():
    features, ids, cameras = multi_query([[1.0, 0], [3, 0], [0, 5]], [1, 1, 1], [0, 0, 1])
    assert features.tolist() == [[2, 0], [0, 5]]
    assert (ids.tolist(), cameras.tolist()) == ([1, 1], [0, 1])


def test_same_bits_for_any_number_of_threads_and_blocks(monkeypatch):
    rng = np.random.default_rng(7)
    distances = rng.integers(0, 60, (150, 400)).astype(np.float32)
    args = (
        distances,
        rng.integers(0, 20, 150),
        rng.integers(0, 20, 400),
        rng.integers(0, 3, 150),
        rng.integers(0, 3, 400),
    )
    wanted = evaluate_distances(*args)
    for cores in (1, 3, 7):
        monkeypatch.setattr("detmap.system.parallel.cores", lambda n=cores: n)
        monkeypatch.setattr("detmap.retrieval.galleries._BLOCK_ITEMS", 100 * cores)
        again = evaluate_distances(*args)
        for name, values in wanted.per_query.items():
            assert np.array_equal(values, again.per_query[name], equal_nan=True)
        assert dict(again) == dict(wanted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"distances": np.zeros(3)}, "expected a matrix"),
        ({"distances": np.array([[0, np.nan, 1]])}, "a distance is NaN"),
        ({"query_ids": [1, 2]}, "2 values for 1 rows"),
        ({"gallery_ids": [1, 2]}, "2 values for 3 rows"),
        ({"gallery_ids": [1.5, 2, 3]}, "is not an integer"),
        ({"gallery_ids": ["a", "b", "c"]}, "both be integers or both be strings"),
        ({"gallery_ids": [4, 5, 6]}, "nothing in common"),
        ({"query_cameras": [0]}, "cameras of both"),
        ({"query_cameras": [0], "gallery_cameras": [0, 0, 0]}, "share the query's camera"),
        ({"ignore": []}, "0 lists for 1 queries"),
        ({"ignore": [[3]]}, "item numbers from 0 to 2"),
    ],
)
def test_bad_input_says_what_is_wrong(change, message):
    good = {"distances": np.zeros((1, 3)), "query_ids": [1], "gallery_ids": [1, 2, 3]}
    with pytest.raises(InputError, match=message):
        evaluate_distances(**{**good, **change})


def test_bad_options():
    args = (np.zeros((1, 3)), [1], [1, 2, 3])
    for change, message in [
        ({"ties": "random"}, "ties must be one of"),
        ({"tie": "index"}, "unknown option 'tie'"),
        ({"convention": "nobody"}, "unknown convention"),
        ({"metrics": ["mAPP"]}, "unknown metric"),
        ({"metrics": ["P@0"]}, "positive integer"),
        ({"metrics": ["CMC"]}, "needs a depth"),
        ({"metrics": ["bpref"]}, "needs judgements"),
        ({"metrics": ["ERR"], "ties": "expected"}, "no closed form"),
        ({"metrics": ["AP(11-point)"], "ties": "expected"}, "AP by step, trapezoid, not by"),
    ]:
        with pytest.raises(OptionError, match=message):
            evaluate_distances(*args, **change)
    with pytest.raises(InputError, match="empty='error'"):
        evaluate_distances(np.zeros((2, 3)), [1, 9], [1, 2, 3], empty="error")


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(("metrics", "batch"), [(["mAP"], False), (["mAP", "TPR@FPR=0.1"], False), (["mAP"], True)])
def test_distances_of_one_block_of_queries_are_held(monkeypatch, metrics, batch):
    monkeypatch.setattr("detmap.retrieval.features._BLOCK_DISTANCES", 1)
    rng = np.random.default_rng(0)
    query, gallery = rng.standard_normal((288, 8), np.float32), rng.standard_normal((40_000, 8), np.float32)
    ids = rng.integers(0, 4000, 288), rng.integers(0, 4000, 40_000)

    def evaluate():
        if not batch:
            return evaluate_features(query, gallery, *ids, metrics=metrics)
        evaluator = Evaluator(metrics=metrics, gallery=gallery, gallery_ids=ids[1])
        evaluator.update(features=query, query_ids=ids[0])
        return evaluator.compute()

    evaluate()  # which loads the kernels
    tracemalloc.start()
    try:
        evaluate()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 1.7 * 96 * gallery.shape[0] * query.itemsize
