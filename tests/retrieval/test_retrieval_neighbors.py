"""Neighbours that an index returned: where they are all of the gallery, the numbers of evaluate_distances."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from detmap.errors import InputError, OptionError
from detmap.retrieval import CONVENTIONS, Evaluator, evaluate_distances, evaluate_neighbors, evaluate_rankings
from detmap.retrieval.metrics import parse

METRICS = ["mAP", "mAP@5", "mINP", "R-prec", "P@3", "R@4", "R_cap@4", "MRR", "success@2", "nDCG@7", "CMC@1", "CMC@6"]


def world(seed, queries=12, items=40, people=5):
    rng = np.random.default_rng(seed)
    distances = rng.integers(0, 12, (queries, items)).astype(np.float32)  # with many ties
    ids = rng.integers(0, people, queries), rng.integers(-1, people, items)
    cameras = rng.integers(0, 4, queries), rng.integers(0, 4, items)
    return rng, distances, ids, cameras


def nearest(distances, depth, rng=None):
    """The neighbours as an index would return them: tied ones in any order."""
    other = np.arange(distances.size).reshape(distances.shape) if rng is None else rng.random(distances.shape)
    order = np.lexsort((other, distances), axis=1)[:, :depth]
    return order, np.take_along_axis(distances, order, axis=1)


def same(found, wanted):
    assert dict(found) == dict(wanted) or np.array_equal(
        np.array(list(found.values())), np.array(list(wanted.values())), equal_nan=True
    )
    assert list(found) == list(wanted)
    for name, values in wanted.per_query.items():
        assert np.array_equal(found.per_query[name], values, equal_nan=True), name
    assert found.queries == wanted.queries
    assert found.junk == wanted.junk
    assert (found.cmc is None and wanted.cmc is None) or np.array_equal(found.cmc, wanted.cmc)


@pytest.mark.parametrize("name", sorted(set(CONVENTIONS) - {"gap"}))
@pytest.mark.parametrize("rules", ["plain", "cameras", "junk"])
def test_all_neighbours_give_the_numbers_of_distances(name, rules):
    """Whatever the convention, its ties and junk rules; the index may return tied items in any order."""
    for seed in range(6):
        rng, distances, ids, cameras = world(seed)
        options = {"convention": name, "metrics": METRICS}
        if CONVENTIONS[name].ties == "expected":
            options["metrics"] = ["mAP", "mAP@5", "mINP", "P@3", "R@4", "MRR", "nDCG@7", "CMC@1", "CMC@6"]
        if CONVENTIONS[name].cmc in ("cuhk03", "cuhk03_exact", "sysu"):
            options["metrics"] = ["mAP", "CMC@1", "CMC@6"]
        given = cameras if rules == "cameras" else ()
        if rules == "junk":
            options["ignore"] = [rng.choice(40, 3, replace=False) for _ in range(12)]
            options["self_match"] = rng.integers(-1, 40, 12)
        wanted = evaluate_distances(distances, *ids, *given, **options)
        indices, ascending = nearest(distances, 40, rng)
        wide = np.pad(indices, ((0, 0), (0, 3)), constant_values=-1)
        garbage = np.pad(ascending, ((0, 0), (0, 3)), constant_values=np.nan)
        same(evaluate_neighbors(indices, *ids, ascending, *given, **options), wanted)
        found = evaluate_neighbors(wide, *ids, garbage, *given, **options)
        same(found, wanted)
        if wanted.hits is not None and found.hits is not None:
            for column in ("ranks", "positives", "items", "ahead", "tied"):
                assert np.array_equal(getattr(found.hits, column), getattr(wanted.hits, column)), column
        if CONVENTIONS[name].ties in ("index", "docid"):
            same(evaluate_neighbors(nearest(distances, 40)[0], *ids, None, *given, **options), wanted)


def test_rates_over_all_pairs_need_all_distances():
    _, distances, ids, _ = world(1)
    indices, ascending = nearest(distances, 40)
    metrics = ["TPR@FPR=0.1", "mAP"]
    wanted = evaluate_distances(distances, *ids, metrics=metrics)
    assert dict(evaluate_neighbors(indices, *ids, ascending, metrics=metrics)) == dict(wanted)
    for cut in ((indices, None), (indices[:, :9], ascending[:, :9])):
        with pytest.raises(OptionError, match="needs the distances of the whole gallery"):
            evaluate_neighbors(cut[0], *ids, cut[1], metrics=metrics)


@pytest.mark.parametrize("depth", [1, 3, 8, 39])
def test_a_cut_ranking_has_the_numbers_at_its_depth(depth):
    """Without junk, metrics at a depth are those of the whole ranking; relevant items that were not found count."""
    metrics = [f"{name}@{depth}" for name in ("mAP", "P", "R", "R_cap", "MRR", "success", "nDCG", "CMC", "F1")]
    for seed in range(6):
        _, distances, (mine, theirs), _ = world(seed)
        distances = distances + np.arange(40) / 64  # no ties at the cut
        for convention in ("reid", "hits_topk", "min_rk", "layumi", "hashnet"):
            options = {"metrics": metrics, "convention": convention, "junk_id": None}
            wanted = evaluate_distances(distances, mine, theirs, **options)
            indices, ascending = nearest(distances, depth)
            found = evaluate_neighbors(indices, mine, theirs, ascending, **options)
            for name, value in wanted.items():
                assert np.array_equal(found[name], value, equal_nan=True), (convention, name)
            assert np.array_equal(found.hits.positives, wanted.hits.positives)


def test_blocks_of_queries_change_nothing(monkeypatch):
    _, distances, ids, cameras = world(3)
    indices, ascending = nearest(distances, 11)
    wanted = evaluate_neighbors(indices, *ids, ascending, *cameras)
    monkeypatch.setattr("detmap.retrieval.galleries._BLOCK_ITEMS", 50)
    same(evaluate_neighbors(indices, *ids, ascending, *cameras), wanted)


def test_what_everyone_with_an_index_writes_is_too_high():
    """Relevant items that were not retrieved are no misses to evaluate_rankings, which says so."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 50, 300), rng.integers(0, 50, 2000)
    indices = np.argsort(rng.random((300, 2000)), axis=1)[:, :20]
    high = evaluate_rankings(ids[1][indices], query_ids=ids[0], metrics=["mAP@20"])
    right = evaluate_neighbors(indices, *ids)
    assert right["mAP@20"] == evaluate_distances(scattered(indices, 2000), *ids, metrics=["mAP@20"])["mAP@20"]
    assert high["mAP@20"] > 3 * right["mAP@20"]
    assert high.queries["empty"] > 50 > right.queries["empty"]
    assert high.notices == {"empty_queries": high.queries["empty"], "counted_positives": 300}
    assert "give positives" in str(high)
    assert high.to_dict()["notices"] == high.notices
    positives = np.bincount(ids[1], minlength=50)[ids[0]]
    given = evaluate_rankings(ids[1][indices], positives, query_ids=ids[0], metrics=["mAP@20"])
    assert given["mAP@20"] == right["mAP@20"]
    assert not given.notices
    assert not right.notices
    assert list(right) == ["mAP@20", "R@20", "CMC@1", "CMC@5", "CMC@10", "CMC@20"]


def scattered(indices, items):
    out = np.full((len(indices), items), 1e9)
    np.put_along_axis(out, indices, np.arange(indices.shape[1])[None], axis=1)
    return out


@pytest.mark.parametrize(("metric", "noticed"), [("P@1", False), ("mAP(hits)", False), ("mAP", True), ("R@1", True)])
def test_the_notice_is_about_metrics_that_need_the_number(metric, noticed):
    assert bool(evaluate_rankings([[1, 0], [0, 1]], metrics=[metric]).notices) is noticed
    assert not evaluate_rankings([["a"]], relevant=[["a", "b"]], metrics=[metric]).notices


#: Metrics whose names have no rank: those that read whole rankings, those that read to the number of relevant items, and
#: those of what was retrieved.
WHOLE = ["mAP", "P", "R", "F1", "MRR", "mINP", "nDCG", "DCG", "ERR", "RBP", "hits", "GMAP", "11pt", "iprec@0.5", "binG"]
RELEVANT, RETRIEVED = (
    ["mAP@R", "R-prec", "Rprec_mult@0.5"],
    ["set_F", "set_map", "set_relative_P", "num_ret", "num_rel"],
)


@pytest.mark.parametrize("metric", WHOLE)
def test_a_metric_of_whole_rankings_is_not_read_from_a_part(metric):
    """The number of the first three neighbours must not be called what that of the whole gallery is called."""
    _, distances, ids, _ = world(3)
    part, every = nearest(distances, 3)[0], nearest(distances, distances.shape[1])[0]
    whole = evaluate_neighbors(every, *ids, metrics=metric, junk_id=None)
    assert list(whole) == [parse(metric).name]
    named = f"ask for {replace(parse(metric), depth=3.0).name}, or search for the whole gallery"
    remedy = named if parse(metric).metric.depth == "may" else "query: search for the whole gallery"
    with pytest.raises(OptionError, match=f"{re.escape(next(iter(whole)))} reads whole rankings.*{re.escape(remedy)}"):
        evaluate_neighbors(part, *ids, metrics=metric, junk_id=None)
    evaluator = Evaluator("reid", [metric], gallery_ids=ids[1], junk_id=None)
    with pytest.raises(OptionError, match="reads whole rankings"):
        evaluator.update(query_ids=ids[0], indices=part)
    if parse(metric).metric.depth == "may":
        cut = f"{metric}@3"
        first = evaluate_neighbors(part, *ids, metrics=cut, junk_id=None)
        assert dict(first) == dict(evaluate_neighbors(every, *ids, metrics=cut, junk_id=None))
        assert metric == "hits" or first[cut] != whole[metric]


@pytest.mark.parametrize("metric", [*RELEVANT, *RETRIEVED])
def test_other_metrics_are_read_from_a_part_or_counted(metric):
    _, distances, ids, _ = world(3)
    part, every = nearest(distances, 30)[0], nearest(distances, distances.shape[1])[0]
    found = evaluate_neighbors(part, *ids, metrics=metric, junk_id=None)
    assert not found.notices.get("short_rankings")
    if metric in RELEVANT:
        assert dict(found) == dict(evaluate_neighbors(every, *ids, metrics=metric, junk_id=None))
        short = evaluate_neighbors(nearest(distances, 2)[0], *ids, metrics=metric, junk_id=None)
        assert short.notices["short_rankings"] > 0


def test_padding_is_nothing():
    """-1 is neither the last item nor a rank."""
    result = evaluate_neighbors([[1, -1, -1]], [7], [8, 8, 8, 7, 7], metrics=["mAP@3", "R@3", "P@3"])
    assert dict(result) == {"mAP@3": 0.0, "R@3": 0.0, "P@3": 0.0}
    assert result.notices == {"short_rankings": 1}
    result = evaluate_neighbors([[-1, -1], [3, 0]], [7, 7], [8, 8, 8, 7, 7], metrics=["mAP@2"])
    assert result.per_query["AP@2"].tolist() == [0.0, 0.5]
    assert result.hits.items.tolist() == [0, 2]


def test_junk_that_leaves_too_few_is_noticed():
    ids = [7, 7], [7, 7, 8, 8, 7, 8]
    assert evaluate_neighbors([[0, 2, 3], [1, 2, 3]], *ids, metrics=["CMC@3"], self_match=True).notices == {
        "short_rankings": 2
    }
    assert not evaluate_neighbors([[0, 2, 3], [1, 2, 3]], *ids, metrics=["CMC@2"], self_match=True).notices
    assert evaluate_neighbors([[0, 2, 3], [1, 2, 3]], *ids, metrics=["mAP"], convention="map_at_r").notices == {}
    assert evaluate_neighbors([[0, 2], [1, 2]], *ids, metrics=["mAP"], convention="map_at_r").notices == {
        "short_rankings": 2
    }


def test_a_tensor_or_unsigned_indices_do_as_well():
    wanted = dict(evaluate_neighbors([[2, 1]], [7], [7, 8, 7]))
    assert dict(evaluate_neighbors(np.array([[2, 1]], np.uint64), [7], [7, 8, 7])) == wanted
    assert dict(evaluate_neighbors(np.ma.array([[2, 1]]), ["7"], ["7", "8", "7"])) == wanted


MASKED = np.ma.array([[2, 1]], mask=[[False, True]])
GOOD = {"indices": [[2, 1], [0, 2]], "query_ids": [7, 7], "gallery_ids": [7, 8, 7]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": [[2, 1], [0, 3]]}, r"indices: query 1, rank 2: is not a place in a gallery of 3 items.*got 3"),
        ({"indices": [[2, 1], [-2, 0]]}, r"query 1, rank 1: is not a place.*got -2"),
        ({"indices": [[2, 1], [-1, 0]]}, r"query 1, rank 1: -1 stands before an item"),
        ({"indices": [[2, 1], [0, 0]]}, r"query 1, rank 2: an item is there twice \(got 0\)"),
        ({"indices": [[2.0, 1], [0, 1]]}, "which are integers"),
        ({"indices": [[True, False], [True, True]]}, "booleans"),
        ({"indices": [2, 1]}, "expected a matrix"),
        ({"indices": [[2, 1], [0]]}, "one length"),
        ({"indices": np.zeros((2, 0), int)}, "there are no neighbours"),
        ({"indices": MASKED, "query_ids": [7]}, "masked"),
        ({"indices": [[2, 1]]}, "2 values for 1 rows"),
        ({"distances": [[1, 2], [2, 1]]}, "query 1, rank 2: is below the one before it.*negatives"),
        ({"distances": [[1, 2], [np.nan, 1]]}, "query 1, rank 1: a distance is NaN"),
        ({"distances": [[1, 2]]}, "shape"),
        ({"distances": [[1j, 2], [1, 2]]}, "complex"),
        ({"distances": np.ma.array([[1, 2], [1, 2]], mask=[[0, 0], [0, 1]])}, "masked"),
        ({"distances": np.array([[1, 2], [1, 2**53 + 1]])}, "beyond 2"),
        ({"gallery_ids": [7, np.nan, 7]}, "gallery_ids: record 1: is missing"),
        ({"gallery_ids": ["7", "8", "7"]}, "both be integers or both be strings"),
        ({"query_ids": [9, 9]}, "nothing in common"),
        ({"self_match": np.ma.array([0, 1], mask=[0, 1])}, "masked"),
    ],
)
def test_bad_input_names_query_and_rank(change, message):
    with pytest.raises(InputError, match=message):
        evaluate_neighbors(**{**GOOD, **change})


def test_what_was_not_retrieved_is_not_guessed():
    for options, message in (
        ({"metrics": "CMC@3"}, "CMC@3 reads 3 neighbours of a query, and indices hold 2"),
        ({"convention": "cuhk03"}, "CMC cuhk03 needs rows that hold the whole gallery: 3 items"),
        ({"convention": "layumi"}, "ties='reversed' needs scores"),
        ({"metrics": "TPR@FPR=1e-3"}, "needs the distances"),
        ({"rank": 3}, "unknown option"),
    ):
        with pytest.raises(OptionError, match=message):
            evaluate_neighbors(**GOOD, **options)


def test_what_a_search_returns_is_taken_in_one_tuple():
    """faiss and scikit-learn return distances first, hnswlib and scann indices; faiss' Hamming distances are integers."""
    rng, distances, ids, _ = world(3)
    indices, near = nearest(distances, 9, rng)
    wanted = evaluate_neighbors(indices, *ids, near)
    hamming = near.astype(np.int32)
    for both in ((near, indices), (indices, near), (near.tolist(), indices), (hamming, indices.astype(np.int32))):
        same(evaluate_neighbors(both, *ids), wanted)
        evaluator = Evaluator(gallery_ids=ids[1], metrics=list(wanted))
        evaluator.update(query_ids=ids[0], indices=both)
        assert dict(evaluator.compute()) == dict(wanted)
    rows = tuple(map(tuple, indices[:2].tolist()))
    same(evaluate_neighbors(rows, ids[0][:2], ids[1]), evaluate_neighbors(indices[:2], ids[0][:2], ids[1]))
    with pytest.raises(OptionError, match="distances are given twice"):
        evaluate_neighbors((near, indices), *ids, near)
    with pytest.raises(InputError, match="expected places in the gallery, which are integers"):
        evaluate_neighbors((near, near), *ids)
    with pytest.raises(InputError, match=r"of similarities give the negatives"):
        evaluate_neighbors((-near, indices), *ids)


def test_each_distance_is_at_least_the_one_before():
    with pytest.raises(InputError, match=r"query 0, rank 3: is below the one before it \(got 3.0\)"):
        evaluate_neighbors([[0, 1, 2]], [1], [1, 2, 1], [[0.0, 5.0, 3.0]])
