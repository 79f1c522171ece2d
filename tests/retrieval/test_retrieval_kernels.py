"""One compiled signature for every kernel of rankings, however they are reached; ranx on data where it is right."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from detmap import average_precision, ranx
from detmap.kernels import cmc, curves, gains, hashing, packing, ranking, readonly, sorting
from detmap.kernels import ties as tied_kernels
from detmap.pytrec_eval import RelevanceEvaluator
from detmap.retrieval import (
    average_precision_score,
    evaluate_codes,
    evaluate_distances,
    evaluate_features,
    evaluate_rankings,
    evaluate_run,
)


@pytest.mark.compiled
def test_one_signature_each():
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 3, 6), rng.integers(0, 3, 30), np.zeros(6, int), rng.integers(0, 2, 30)
    distances = rng.integers(0, 9, (6, 30))
    names = ["AP", "AP@3", "AP(11-point)", "nDCG@3", "RR", "INP", "P@3", "CMC@1"]
    for ties in ("index", "reversed", "collapsed", "best", "worst"):
        evaluate_distances(distances.astype(np.float32), *ids, ties=ties, metrics=[*names, "ERR", "RBP", "iprec@0.5"])
        assert evaluate_distances(distances, *ids, ties=ties, metrics=names).tie_band
    plain = [name for name in names if name != "AP(11-point)"]
    evaluate_distances(distances, *ids, ties="expected", metrics=plain)
    for variant in ("allshots", "cuhk03", "cuhk03_exact", "sysu"):
        evaluate_distances(distances, *ids, cmc=variant, metrics=["CMC@1", "TPR@FPR=0.1"])
    further = ["G", "binG", "Rndcg", "ndcg_rel", "mAP@R", "Rprec_mult@0.5"]
    evaluate_features(rng.random((6, 4)), rng.random((30, 4)).astype(np.float16), *ids)
    for labels in (ids[:2], (np.eye(3)[ids[0]], np.eye(3)[ids[1]])):
        evaluate_codes(rng.integers(0, 2, (6, 70)), rng.integers(0, 2, (30, 70), np.int8), *labels, k=3)
    evaluate_rankings([[1, 0, 2], [0, 1]], metrics=["bpref", "infAP", "judged@2", "ERR", "11pt", *further, "rbp_resid"])
    evaluate_distances(distances, *ids, metrics=further)
    evaluate_rankings([[0.5, 0, 2], [0, 1]], metrics=[*further, "nDCG(exp)", "RBP(rel=1)"])
    qrels = {1: {3: 1, 4: 0, 5: 2}, 2: {3: 1}}
    evaluate_run(qrels, {1: {3: 1.0, 4: 1.0, 6: 1.0}, 2: {9: 1.0}})
    evaluate_run(([1, 2, 1], [3, 4, 5], [1, 1, 1]), ([1, 2, 1], ["3", "4", "5"], [1, 1, 1]))
    RelevanceEvaluator({"q": {"a": 1}}, ["map"]).evaluate({"q": {"a": 1.0, "b": 1.0}})
    ranx.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0}}, "map")
    average_precision_score([0, 1, 1], [0.1, 0.2, 0.2], sample_weight=[1, 2, 3])
    average_precision_score([0, 1, 1], np.float32([0.1, 0.2, 0.2]))
    average_precision([1, 0, 1], [3, 2, 1], interpolation="101-linear")
    kernels = {
        f"{module.__name__}.{name}": value
        for module in (ranking, cmc, curves, tied_kernels, gains, sorting, hashing, packing)
        for name, value in vars(module).items()
        if hasattr(value, "signatures") and value.__module__ == module.__name__
    }
    called = {name: len(k.signatures) for name, k in kernels.items() if not name.rpartition(".")[2].startswith("_")}
    # Those of detection are called where its tests run in the same process.
    others = [name for name in called if (".sorting." in name or name.endswith(".best_f1")) and not called[name]]
    others.append(
        "detmap.kernels.sorting._longest_group"
    )  # a helper: numba compiles it again for a bound that is constant
    assert {name: count for name, count in called.items() if count != 1 and name not in others} == {}


def test_ranx_agrees_where_it_is_right():
    theirs = pytest.importorskip("ranx")
    rng = np.random.default_rng(1)
    qrels = {f"q{q:02}": {f"d{d}": int(g) for d, g in enumerate(rng.integers(0, 4, 12)) if g} for q in range(12)}
    # distinct scores: its dict path turns ties around; the same order of queries: it pairs them by position
    run = {q: {f"d{d}": float(s) for d, s in enumerate(rng.permutation(30))} for q in qrels}
    pairs = {
        "map": "AP", "map@5": "AP@5", "mrr": "RR", "precision@5": "P@5", "recall@5": "R@5", "ndcg@5": "nDCG@5",
        "ndcg_burges@5": "nDCG(exp)@5", "r-precision": "R-prec", "hit_rate@5": "success@5", "f1@5": "F1@5",
        "rbp.95": "RBP(p=0.95)",
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its kernels
        values = theirs.evaluate(theirs.Qrels(qrels), theirs.Run(run), list(pairs), return_mean=False)
    ours = evaluate_run(qrels, run, list(pairs.values()), "ranx")
    for name, key in pairs.items():
        assert np.allclose(np.asarray(values[name]), ours.per_query[key], rtol=0, atol=1e-13), name


def _drawn_distances(shape, rng, count):
    """Return distances of one query: evenly spread, with one far away, in few places, infinite, or hardly different."""
    values = rng.random(count)
    if shape == "skewed":
        values[0], values[1] = 1e9, -1e9
    elif shape == "tied":
        values = rng.integers(0, 60, count) / 7
    elif shape == "infinite":
        values[rng.integers(0, count, 9)] = np.inf
        values[rng.integers(0, count, 9)] = -np.inf
    elif shape == "near":
        values = 1 + rng.integers(0, 400, count) * 2.0**-52
    elif shape == "subnormal":
        values = rng.integers(0, 400, count) * 5e-324
    elif shape == "huge":
        values = (values - 0.5) * 3.5e308
    return values


@pytest.mark.parametrize("shape", ["even", "skewed", "tied", "infinite", "near", "subnormal", "huge"])
@pytest.mark.parametrize("relevant", [3, ranking.FEW, ranking.FEW + 1, 300])
def test_places_of_relevant_items_equal_sorting(shape, relevant):
    """Whatever the distribution, and however many are relevant, ranks are those of a stable sort without the junk."""
    rng = np.random.default_rng([relevant, len(shape)])
    for count in (relevant + 5, 700, 2 * ranking.TOGETHER + 1):
        values = _drawn_distances(shape, rng, count)
        chosen = rng.permutation(values.size)
        mine, junk = np.sort(chosen[:relevant]), np.sort(chosen[relevant : relevant + 5])
        lists = [ranking.Lists(readonly([0, one.size], np.int64), readonly(one, np.int64)) for one in (mine, junk)]
        distances = ranking.Distances(readonly(values, np.float64), readonly([0, values.size], np.int64), 0)
        ranks, ahead, tied, which, items = (np.empty(n, np.int64) for n in (*[relevant] * 4, 1))
        places = ranking.Places(ranks, ahead, tied, which, items)
        assert ranking.rank_relevant(distances, *lists, 0, 1, places) == -1
        kept = np.delete(np.arange(values.size), junk)
        order = kept[np.argsort(values[kept], kind="stable")]
        hits = np.flatnonzero(np.isin(order, mine))
        assert ranks.tolist() == (hits + 1).tolist()
        assert mine[which].tolist() == order[hits].tolist()
        assert ahead.tolist() == [np.count_nonzero(values[kept] < values[i]) for i in order[hits]]
        assert tied.tolist() == [np.count_nonzero(values[kept] == values[i]) for i in order[hits]]
        assert items.tolist() == [kept.size]


@pytest.mark.parametrize("levels", [3, 30, 300])
def test_shared_distances_are_numbered(levels):
    rng = np.random.default_rng(levels)
    sizes = [0, 1, 7, 40, 400, 400]
    rows = [rng.integers(0, levels, size) / 4 for size in sizes]
    wanted = [row[rng.permutation(row.size)[: rng.integers(0, row.size + 1)]] for row in rows]
    starts, ends = (np.cumsum([0, *map(len, of)]) for of in (rows, wanted))
    given = [readonly(np.concatenate(of), np.float64) for of in (rows, wanted)]
    ahead, tied = np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64)
    numbers, mine = np.zeros(starts[-1], np.int32), np.zeros(ends[-1], np.int32)
    ranking.count_nearer(
        given[0], readonly(starts, np.int64), given[1], readonly(ends, np.int64), ahead, tied, numbers, mine
    )
    for q, (row, some) in enumerate(zip(rows, wanted, strict=True)):
        own = slice(ends[q], ends[q + 1])
        steps = sorted(set(some.tolist()))
        assert ahead[own].tolist() == [int((row < x).sum()) for x in some]
        assert tied[own].tolist() == [int((row == x).sum()) for x in some]
        assert mine[own].tolist() == [steps.index(x) + 1 for x in some]
        shared = [steps.index(x) + 1 if x in steps and (row == x).sum() > 1 else 0 for x in row.tolist()]
        assert numbers[starts[q] : starts[q + 1]].tolist() == shared
