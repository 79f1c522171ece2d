"""The evaluator of rankings: its laws, and that it equals the functions that score all queries at once."""

from __future__ import annotations

import itertools
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legs import examples

from detmap.errors import InputError, OptionError, StateError
from detmap.retrieval import Evaluator, evaluate_distances, evaluate_features, evaluate_neighbors, evaluate_run

METRICS = ["mAP", "mAP@3", "mINP", "CMC@1", "CMC@3", "nDCG@4", "P@2", "R-prec", "mAP@R", "binG"]


def same(first, second):
    """Whether two results are equal to the last bit, and list the same queries."""
    assert dict(first).keys() == dict(second).keys()
    assert [v if v == v else None for v in first.values()] == [v if v == v else None for v in second.values()]
    assert first.query_ids.tolist() == second.query_ids.tolist()
    for name, column in first.per_query.items():
        assert np.array_equal(column, second.per_query[name], equal_nan=True), name
    assert first.queries == second.queries
    assert first.junk == second.junk
    assert dict(first.notices) == dict(second.notices)
    assert (first.cmc is None) == (second.cmc is None)
    if first.cmc is not None:
        assert np.array_equal(first.cmc, second.cmc)
    assert np.array_equal(first.hits.ranks, second.hits.ranks)
    return True


def gallery_data(seed, queries=9, items=20):
    rng = np.random.default_rng(seed)
    return {
        "distances": rng.integers(0, 7, (queries, items)) / 4,
        "query_ids": rng.integers(0, 4, queries),
        "gallery_ids": rng.integers(-1, 5, items),
        "query_cameras": rng.integers(0, 3, queries),
        "gallery_cameras": rng.integers(0, 3, items),
        "self_match": rng.integers(-1, items, queries),
    }


PER_QUERY = ("distances", "query_ids", "query_cameras", "self_match", "features", "indices", "names")
cuts_of = st.lists(st.integers(0, 9), max_size=4).map(lambda cuts: [0, *sorted(cuts), 9])


def batches(data, cuts):
    for begin, end in itertools.pairwise(cuts):
        yield {name: column[begin:end] for name, column in data.items() if name in PER_QUERY}


def of(data, **options):
    return Evaluator(
        metrics=options.pop("metrics", METRICS),
        gallery_ids=data["gallery_ids"],
        gallery_cameras=data.get("gallery_cameras"),
        **options,
    )


def fed(evaluator, parts):
    for part in parts:
        evaluator.update(**part)
    return evaluator


@given(st.integers(0, 30), cuts_of, st.sampled_from(["index", "expected", "reversed", "collapsed", "best"]))
@settings(max_examples=examples(60), deadline=None)
def test_how_queries_are_split_changes_no_bit(seed, cuts, ties):
    data = gallery_data(seed)
    metrics = METRICS if ties != "expected" else ["mAP", "mAP@3", "CMC@3", "mINP", "nDCG@4"]
    whole = evaluate_distances(**data, metrics=metrics, ties=ties)
    same(fed(of(data, metrics=metrics, ties=ties), batches(data, cuts)).compute(), whole)


@given(st.integers(0, 30), st.permutations(range(3)), cuts_of)
@settings(max_examples=examples(40), deadline=None)
def test_merges_are_associative_and_commutative_where_queries_have_names(seed, order, cuts):
    data = {**gallery_data(seed), "names": np.array([f"q{(7 * i) % 9}" for i in range(9)])}
    whole = fed(of(data), batches(data, [0, 9])).compute()
    assert whole.query_ids.tolist() == sorted(data["names"].tolist())
    parts = [fed(of(data), [{name: data[name][i::3] for name in PER_QUERY if name in data}]) for i in range(3)]
    a, b, c = (parts[i] for i in order)
    before = [part.to_bytes() for part in parts]
    left = of(data).merge(a).merge(b).merge(c)
    right = of(data).merge(a).merge(of(data).merge(b).merge(c))
    assert left.to_bytes() == right.to_bytes() == fed(of(data), batches(data, cuts)).to_bytes()
    assert same(left.compute(), whole)
    assert before == [part.to_bytes() for part in parts], "a merged evaluator is left as it is"


def test_numbered_queries_of_a_merged_evaluator_come_after():
    data = gallery_data(1)
    first, second = (fed(of(data), [part]) for part in batches(data, [0, 4, 9]))
    assert same(first.merge(second).compute(), evaluate_distances(**data, metrics=METRICS))
    assert len(first) == 9


@given(st.integers(0, 30), cuts_of)
@settings(max_examples=examples(30), deadline=None)
def test_saved_states_pickles_and_sync_keep_every_bit(seed, cuts):
    data = gallery_data(seed)
    whole = evaluate_distances(**data, metrics=METRICS)
    evaluator = of(data)
    for part in batches(data, cuts):
        again = pickle.loads(pickle.dumps(evaluator))
        evaluator = of(data).merge(Evaluator.from_bytes(again.to_bytes()))
        evaluator.update(**part)
    restored = Evaluator.from_bytes(evaluator.to_bytes())
    assert restored.to_bytes() == evaluator.to_bytes()
    assert restored.metrics == METRICS
    assert same(restored.compute(), whole)
    loaded = of(data)
    loaded.load_state_dict(evaluator.state_dict())
    assert same(loaded.compute(), whole)
    halves = [fed(of(data), [part]) for part in batches(data, [0, 5, 9])]

    def gather(states, mine):
        states[:] = [half.to_bytes() for half in halves]

    assert same(halves[0].sync(gather, 2).compute(), whole)
    loaded.reset()
    assert loaded.to_bytes() == of(data).to_bytes()
    assert same(loaded.merge(evaluator).compute(), whole)
    assert len(halves[0]) == 5


def test_features_in_batches_equal_all_at_once():
    rng = np.random.default_rng(0)
    data = {**gallery_data(2), "features": rng.integers(-3, 4, (9, 6)).astype(np.float32)}
    items = rng.integers(-3, 4, (20, 6)).astype(np.float32)
    del data["distances"]
    others = {name: column for name, column in data.items() if name != "features"}
    for metric in ("sqeuclidean", "dot"):
        whole = evaluate_features(data["features"], items, **others, metric=metric, metrics=METRICS)
        for cuts in ([0, 9], [0, 1, 2, 9], [0, 4, 4, 9]):
            assert same(fed(of(data, gallery=items, metric=metric), batches(data, cuts)).compute(), whole)


@pytest.mark.parametrize("measured", [True, False])
def test_neighbours_in_batches_equal_all_at_once(measured):
    data = gallery_data(3)
    indices = np.argsort(data["distances"], axis=1, kind="stable")[:, :8]
    near = np.take_along_axis(data["distances"], indices, axis=1)
    others = {name: column for name, column in data.items() if name != "distances"}
    data = {**others, "indices": indices, **({"distances": near} if measured else {})}
    metrics = ["mAP@8", "CMC@5", "R@8", "P@2"]
    whole = evaluate_neighbors(**data, metrics=metrics)
    assert whole.notices["short_rankings"]
    evaluator = fed(of(data, metrics=metrics), batches(data, [0, 2, 9]))
    for one in (evaluator, Evaluator.from_bytes(evaluator.to_bytes())):
        assert same(one.compute(), whole)
    with pytest.raises(OptionError, match="reads 9 neighbours"):
        fed(of(data, metrics=["mAP@9"]), batches(data, [0, 9]))


def test_matches_that_merge_identities_stay_the_same():
    data = gallery_data(4)
    for cmc in ("sysu", "cuhk03_exact", "allshots"):
        whole = evaluate_distances(**data, metrics=["mAP", "CMC@1", "CMC@3"], cmc=cmc)
        evaluator = fed(of(data, metrics=["mAP", "CMC@1", "CMC@3"], cmc=cmc), batches(data, [0, 4, 9]))
        assert same(evaluator.compute(), whole)
        assert same(Evaluator.from_bytes(evaluator.to_bytes()).compute(), whole)


# ------------------------------------------------------------------------------------------------------------------ runs

RUN_METRICS = ["map", "ndcg", "bpref", "infAP", "gm_map", "Rndcg", "ERR", "AP(rel=2)", "num_q", "unj@3", "P_5"]


def run_data(seed, fractions=False):
    rng = np.random.default_rng(seed)
    grades = rng.integers(-1, 4, (12, 15)) / (2 if fractions else 1)
    qrels = {f"q{(5 * q) % 12}": {f"d{d}": float(g) for d, g in enumerate(row)} for q, row in enumerate(grades)}
    run = {f"q{q}": {f"d{d}": float(s) for d, s in enumerate(rng.integers(0, 4, 9))} for q in range(2, 14)}
    return qrels, run


@given(st.integers(0, 20), st.lists(st.integers(0, 12), max_size=3), st.sampled_from(["trec", "ranx"]), st.booleans())
@settings(max_examples=examples(30), deadline=None)
def test_runs_in_batches_equal_all_at_once(seed, cuts, convention, fractions):
    qrels, run = run_data(seed, fractions)
    whole = evaluate_run(qrels, run, RUN_METRICS, convention)
    parts, bounds = [], [0, *sorted(cuts), 12]
    for begin, end in itertools.pairwise(bounds):
        evaluator = Evaluator(convention, RUN_METRICS, qrels=qrels)
        evaluator.update(run=dict(list(run.items())[begin:end]))
        parts.append(evaluator)
    merged = Evaluator(convention, RUN_METRICS, qrels=qrels)
    for part in reversed(parts):
        merged.merge(Evaluator.from_bytes(part.to_bytes()))
    assert same(merged.compute(), whole)
    if convention == "trec":
        assert same(Evaluator.from_bytes(merged.to_bytes()).compute(), whole)


def test_missing_queries_need_their_judgements():
    qrels, run = run_data(0)
    evaluator = Evaluator("ranx", ["map"], qrels=qrels)
    evaluator.update(run=run)
    with pytest.raises(StateError, match="has no judgements"):
        Evaluator.from_bytes(evaluator.to_bytes()).compute()
    assert evaluator.compute().queries["missing"] == 2


# ---------------------------------------------------------------------------------------------------------------- misuse


def test_what_does_not_belong_together_is_refused_and_nothing_is_taken_in():
    data = gallery_data(5)
    evaluator = fed(of(data), batches(data, [0, 9]))
    state = evaluator.to_bytes()
    ranked = np.argsort(data["distances"], axis=1)
    ids = {"query_ids": data["query_ids"], "query_cameras": data["query_cameras"]}
    for error, message, given_ in [
        (OptionError, "give one of", {}),
        (OptionError, "give one of", {"distances": data["distances"], "features": data["distances"]}),
        (OptionError, "an evaluator with qrels takes runs", {"run": {"q": {"a": 1.0}}}),
        (OptionError, "query_ids are missing", {"distances": data["distances"]}),
        (OptionError, "features need those of the gallery", {**ids, "features": data["distances"]}),
        (OptionError, "numbers all queries", {**ids, "distances": data["distances"], "self_match": True}),
        (InputError, "rows for", {**ids, "distances": data["distances"][:3]}),
        (InputError, "a distance is NaN", {**ids, "distances": np.full((9, 20), np.nan)}),
        (InputError, "a batch of ranks after batches of distances", {**ids, "indices": ranked}),
        (InputError, "some batches have names", {**ids, "distances": data["distances"], "names": np.arange(9)}),
        (InputError, "give the cameras", {"query_ids": data["query_ids"], "distances": data["distances"]}),
    ]:
        with pytest.raises(error, match=message):
            evaluator.update(**given_)
        assert evaluator.to_bytes() == state
    with pytest.raises(InputError, match="no query was seen"):
        of(data).compute()
    evaluator.update(query_ids=[], distances=np.empty((0, 20)))
    assert evaluator.to_bytes() == state


def test_what_cannot_be_made():
    ids = [1, 2]
    for options, message in [
        ({"depth": 3}, "need qrels"),
        ({"gallery": [[1.0]]}, "need gallery_ids"),
        ({"gallery_ids": ids, "qrels": {"q": {"a": 1}}}, "give qrels"),
        ({"gallery_ids": ids, "convention": "cuhk03"}, "cuhk03_exact"),
        ({"gallery_ids": ids, "metrics": ["TPR@FPR=0.1"]}, "of all pairs at once"),
        ({"gallery_ids": ids, "metrics": ["what"]}, "unknown metric"),
        ({"gallery_ids": ids, "duplicates": "last"}, "duplicates"),
        ({"gallery_ids": ids, "metric": "manhattan"}, "metric"),
    ]:
        with pytest.raises(OptionError, match=message):
            Evaluator(**options)
    with pytest.raises(InputError, match="3 rows for 2 ids"):
        Evaluator(gallery_ids=ids, gallery=np.zeros((3, 2)))
    with pytest.raises(InputError, match="judged twice"):
        Evaluator(qrels=(["a", "a"], ["x", "x"], [1, 1]))


def test_queries_that_are_seen_twice():
    data = {**gallery_data(6), "names": np.arange(9)}
    first = fed(of(data), batches(data, [0, 9]))
    with pytest.raises(InputError, match="a query was seen before"):
        fed(first, batches(data, [3, 5]))
    with pytest.raises(StateError, match="a query was seen before"):
        of(data).merge(first).merge(first)
    padded = fed(of(data, duplicates="first"), [*batches(data, [0, 5, 9]), *batches(data, [7, 9])])
    assert same(padded.compute(), first.compute())
    with pytest.raises(InputError, match="names are integers in some batches"):
        first.update(**{**next(batches(data, [0, 2])), "names": ["a", "b"]})
    with pytest.raises(InputError, match="2 names for 3 queries"):
        first.update(**{**next(batches(data, [0, 3])), "names": [10, 11]})


def test_evaluators_of_other_things_are_not_merged():
    data = gallery_data(7)
    first = fed(of(data), batches(data, [0, 9]))
    other = {**data, "gallery_ids": data["gallery_ids"] + 1}
    for second, message in [
        (of(data, metrics=["mAP"]), "metrics"),
        (of(data, ties="best"), "conventions"),
        (of(other), "galleries"),
        (Evaluator("reid", METRICS, qrels={"q": {"a": 1}}), "galleries|conventions"),
        (3, "only an Evaluator"),
    ]:
        with pytest.raises(StateError, match=message):
            first.merge(second)
    with pytest.raises(OptionError, match="merge it into one that has"):
        fed(Evaluator.from_bytes(first.to_bytes()), batches(data, [0, 9]))
    with pytest.raises(StateError, match="there is no 'state'"):
        first.load_state_dict({})
    with pytest.raises(OptionError, match="how many processes"):
        first.sync(lambda *_: None)


def test_damaged_states_are_refused():
    data = gallery_data(8)
    good = fed(of(data), batches(data, [0, 9])).to_bytes()
    for bad in (b"", good[:-1], good[:40] + b"x" + good[41:], good[: len(good) // 2]):
        with pytest.raises(StateError):
            Evaluator.from_bytes(bad)


def test_a_subclass_stays_one():
    class Mine(Evaluator):
        pass

    data = gallery_data(9)
    mine = Mine(metrics=METRICS, gallery_ids=data["gallery_ids"], gallery_cameras=data["gallery_cameras"])
    fed(mine, batches(data, [0, 9]))
    assert type(Mine.from_bytes(mine.to_bytes())) is Mine
    assert type(mine.sync(lambda states, one: states.__setitem__(0, one), 1)) is Mine


def test_updates_from_several_threads():
    data = {**gallery_data(10), "names": np.arange(9)}
    evaluator = of(data)
    threads = [threading.Thread(target=evaluator.update, kwargs=part) for part in batches(data, range(10))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same(evaluator.compute(), fed(of(data), batches(data, [0, 9])).compute())


@pytest.mark.parametrize("columns", [0, 9, 11])
def test_distances_to_another_number_of_items_are_refused(columns):
    """Fewer would be read beyond their row, and more would never be read."""
    evaluator = Evaluator(gallery_ids=np.arange(10) % 3)
    with pytest.raises(InputError, match=f"distances: {columns} columns where the gallery has 10 items; give indices"):
        evaluator.update(query_ids=[1], distances=np.zeros((1, columns)))
    assert not len(evaluator)


@pytest.mark.parametrize("depth", [0, -1, True, 1.5, "2", 2**60])
def test_a_depth_is_a_rank(depth):
    with pytest.raises(OptionError, match="depth must be"):
        Evaluator(qrels={1: {2: 1}}, depth=depth)
