"""trec_eval's further families bit for bit, grades with fractions, other tools' spellings, and empty input by choice."""

from __future__ import annotations

import naive_retrieval as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legs import examples

from detmap.errors import InputError, OptionError
from detmap.retrieval import METRICS, evaluate_distances, evaluate_rankings, evaluate_run
from detmap.retrieval.metrics import parse, split

documents = st.sampled_from(["d1", "d10", "d2", "D3", "e", "zz", "é", "9", "10"])
scores = st.sampled_from([0.0, 1.0, 1.0 + 1e-10, 2.5, 2.5000001, -3.0])
queries = st.sampled_from(["q1", "q2", "q10", "x"])
qrels_of = st.dictionaries(queries, st.dictionaries(documents, st.integers(-1, 4), min_size=1), min_size=1)
runs_of = st.dictionaries(queries, st.dictionaries(documents, scores, min_size=1), min_size=1)

CUTS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
#: Every family of pytrec_eval that is a number, and the names of its values.
FAMILIES = {
    **{
        name: [name]
        for name in (
            *("map", "ndcg", "Rprec", "bpref", "recip_rank", "infAP", "11pt_avg", "gm_map", "gm_bpref"),
            *("num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret"),
            *("Rndcg", "ndcg_rel", "G", "binG", "set_P", "set_recall", "set_F", "set_map", "set_relative_P", "utility"),
        )
    },
    **{m: [f"{m}_{k}" for k in CUTS] for m in ("P", "recall", "ndcg_cut", "map_cut", "relative_P")},
    "success": [f"success_{k}" for k in (1, 5, 10)],
    "iprec_at_recall": [f"iprec_at_recall_{r / 10:.2f}" for r in range(11)],
    "Rprec_mult": [f"Rprec_mult_{m / 5:.2f}" for m in range(1, 11)],
}
NAMES = [name for names in FAMILIES.values() for name in names]


def assert_equals_pytrec_eval(qrels, run, level=1, judged_only=False):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    wanted = pytrec_eval.RelevanceEvaluator(qrels, pytrec_eval.supported_measures, level, judged_only).evaluate(run)
    options = {"level": level, "judged_only": judged_only, "empty_input": "skip"}
    result = evaluate_run(qrels, run, NAMES, **options)
    assert set(wanted) == set(result.query_ids.tolist())
    for name in NAMES:
        column = np.array([wanted[q][name] for q in result.query_ids.tolist()])
        # trec_eval divides 0 by 0 where a ranking is empty
        column = np.where(result.per_query["num_ret"] == 0, np.nan_to_num(column), column)
        assert np.array_equal(result.per_query[name], column), name
        if wanted:
            assert result[name] == pytrec_eval.compute_aggregated_measure(name, list(column)), name
    return result


def test_every_family_of_pytrec_eval_is_compared():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    assert set(FAMILIES) == set(pytrec_eval.supported_measures) - {"runid", "relstring"}, "those two are texts"


@given(qrels_of, runs_of, st.integers(1, 2), st.booleans())
@settings(max_examples=examples(200), deadline=None)
def test_every_family_equals_pytrec_eval_to_the_last_bit(qrels, run, level, judged_only):
    if any(max(inner.values()) < 0 for inner in qrels.values()):
        return  # trec_eval reads memory that it did not set, or never ends, where no document of a query is judged
    # It reads beyond its counts of grades too where the level is far above them: levels up to 2 alone.
    assert_equals_pytrec_eval(qrels, run, level, judged_only)


@pytest.mark.parametrize("seed", range(3))
def test_long_runs_equal_pytrec_eval_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    names = [f"d{i}" for i in range(400)]
    qrels = {
        f"q{q}": {names[i]: int(g) for i, g in zip(rng.permutation(400)[:150], rng.integers(-1, 5, 150), strict=True)}
        for q in range(8)
    }
    run = {
        f"q{q}": {
            names[i]: float(s) for i, s in zip(rng.permutation(400)[:n], np.round(rng.normal(size=n), 1), strict=True)
        }
        for q, n in zip(range(2, 11), (300, 1, 40, 150, 90, 399, 7, 20, 60), strict=True)
    }
    assert_equals_pytrec_eval(qrels, run, level=1 + seed % 2)


EMPTY = [
    ({"q": {"a": 1}}, {"q": {}}, 1),
    ({"q": {"a": 1}}, {}, 0),
    ({"q": {}, "p": {"a": 1}}, {"q": {"a": 1.0}, "p": {"a": 1.0}}, 1),
    ({}, {"q": {"a": 1.0}}, 0),
    ({"q": {}}, {"q": {"a": 1.0}}, 0),
    ({"q": {"a": 1}}, {"p": {"a": 1.0}}, 0),
    ({"q": {"a": 0}}, {"q": {"a": 1.0}}, 1),
]


@pytest.mark.parametrize(("qrels", "run", "count"), EMPTY)
def test_empty_runs_and_judgements_are_as_in_pytrec_eval_by_choice(qrels, run, count):
    result = assert_equals_pytrec_eval(qrels, run)
    assert len(result.query_ids) == result.queries["scored"] == count
    assert (result["map"] == result["map"]) == bool(count)
    if count == 0:
        assert result["num_q"] == 0


def test_empty_input_is_an_error_unless_chosen():
    for qrels, run in (({}, {"q": {"a": 1.0}}), ({"q": {"a": 1}}, {}), ({"q": {"a": 1}}, {"p": {"a": 1.0}})):
        with pytest.raises(InputError):
            evaluate_run(qrels, run, "map")
    with pytest.raises(OptionError, match="empty_input"):
        evaluate_run({"q": {"a": 1}}, {"q": {"a": 1.0}}, "map", empty_input="both")


@given(st.lists(st.integers(-1, 3), max_size=12), st.lists(st.integers(1, 3), max_size=4))
@settings(max_examples=examples(150), deadline=None)
def test_measures_of_gains_equal_their_twins(ranking, unseen):
    every = [g for g in ranking if g > 0] + unseen
    qrels = {
        "q": {f"{i:02}": g for i, g in enumerate(ranking) if g != 0 or i % 2}
        | {f"x{i}": g for i, g in enumerate(unseen)}
    }
    run = {"q": {f"{i:02}": -float(i) for i in range(len(ranking))}}
    if not every or not ranking:
        return
    result = evaluate_run(qrels, run, ["G", "ndcg_rel", "Rndcg", "binG", "rbp_resid", "rbp_resid(p=0.5)", "unj@3"])
    gains = [max(g, 0) for g in ranking]
    judged = [qrels["q"].get(f"{i:02}", -1) >= 0 for i in range(len(ranking))]
    wanted = {
        "G": naive.normalized_gain(gains, every),
        "ndcg_rel": naive.ndcg_at_gains(gains, every),
        "Rndcg": naive.ndcg_at_levels(gains, every),
        "binG": naive.binary_gain([int(g > 0) for g in gains], len(every)),
        "rbp_resid": naive.rbp_residual(judged, 0.9),
        "rbp_resid(p=0.5)": naive.rbp_residual(judged, 0.5),
        "unj@3": judged[:3].count(False) / 3,
    }
    for name, value in wanted.items():
        assert result[name] == pytest.approx(value, abs=1e-13), name


def test_measures_of_gains_where_relevance_is_an_identity():
    names = ["G", "ndcg_rel", "Rndcg", "binG", "set_F", "utility", "hits@2", "num_q"]
    of_distances = evaluate_distances([[0.1, 0.2, 0.3, 0.4]], [7], [8, 7, 9, 7], metrics=names)
    of_run = evaluate_run({"q": {"b": 1, "d": 1}}, {"q": {"a": 4, "b": 3, "c": 2, "d": 1}}, names)
    assert dict(of_distances) == dict(of_run)
    assert of_run["hits@2"] == 1.0
    assert of_run["set_F"] == pytest.approx(2 / 3)


# ------------------------------------------------------------------------------------------------ grades with fractions


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 2.5]), st.integers(0, 5)), min_size=2, max_size=8
        ),
        min_size=1,
        max_size=3,
    )
)
@settings(max_examples=examples(60), deadline=None)
def test_ndcg_of_fractions_is_that_of_scikit_learn(rows):
    metrics = pytest.importorskip("sklearn.metrics")
    qrels = {f"q{q}": {f"d{i}": g for i, (g, _) in enumerate(row)} for q, row in enumerate(rows)}
    run = {f"q{q}": {f"d{i}": float(s) for i, (_, s) in enumerate(row)} for q, row in enumerate(rows)}
    if not any(g > 0 for row in rows for g, _ in row):
        return
    names = ["nDCG", "nDCG@2", "nDCG@5"]
    result = evaluate_run(qrels, run, names, ties="expected", empty="zero", single=False)
    for q, row in enumerate(rows):
        grades, given_scores = (np.array([column], float) for column in zip(*row, strict=True))
        for name, k in zip(names, (None, 2, 5), strict=True):  # ties: the mean over their orders, as in torchmetrics
            wanted = metrics.ndcg_score(grades, given_scores, k=k)
            assert result.per_query[name][q] == pytest.approx(wanted, abs=1e-12), name


def test_fractions_are_gains_in_every_entry():
    gains, order = [0.5, 0.0, 1.5, 0.25], [1.5, 0.5, 0.25, 0.0]
    wanted = naive.discounted(gains) / naive.discounted(order)
    ranked = evaluate_rankings([gains], metrics=["nDCG", "DCG", "nDCG(exp)", "G", "ERR(max=2)"])
    assert ranked["nDCG"] == pytest.approx(wanted, abs=1e-15)
    assert ranked["DCG"] == pytest.approx(naive.discounted(gains), abs=1e-15)
    exponential = [2**g - 1 for g in gains], [2**g - 1 for g in order]
    assert ranked["nDCG(exp)"] == pytest.approx(
        naive.discounted(exponential[0]) / naive.discounted(exponential[1]), abs=1e-15
    )
    qrels = {"q": {f"d{i}": g for i, g in enumerate(gains)}}
    run = {"q": {f"d{i}": -float(i) for i in range(4)}}
    columns = (["q"] * 4, list(qrels["q"]), gains), (["q"] * 4, list(run["q"]), list(run["q"].values()))
    for form in ((qrels, run), columns):
        result = evaluate_run(*form, ["nDCG", "DCG", "nDCG(exp)", "G", "ERR(max=2)"])
        assert dict(result) == dict(ranked)
    assert evaluate_rankings([[0.5, 0.0]], metrics=["RBP(p=0.5)"])["RBP(p=0.5)"] == 0.5  # over the highest grade


def test_a_fraction_is_relevant_from_its_level_on():
    gains = [[0.5, 0.0, 1.5, 0.25]]
    assert evaluate_rankings(gains, metrics=["P@4"])["P@4"] == 0.75
    assert evaluate_rankings(gains, metrics=["P@4"], level=0.5)["P@4"] == 0.5
    assert evaluate_rankings(gains, metrics=["P(rel=1)@4"])["P(rel=1)@4"] == 0.25
    assert evaluate_rankings([[1, 2, 0, 3]], level=2, metrics=["mAP"])["mAP"] == (1 / 2 + 2 / 4) / 2
    qrels = {"q": {f"d{i}": g for i, g in enumerate(gains[0])}}
    run = {"q": {f"d{i}": -float(i) for i in range(4)}}
    found = evaluate_run(qrels, run, ["P@4", "num_nonrel_judged_ret"], level=0.5)
    assert (found["P@4"], found["num_nonrel_judged_ret"]) == (0.5, 2)


def test_bad_grades_and_levels():
    for grades in ([[float("nan"), 1.0]], [[float("inf"), 0.5]], [[2.0**40, 0.5]]):
        with pytest.raises(InputError, match="a grade"):
            evaluate_rankings(grades, metrics=["nDCG"])
        with pytest.raises(InputError, match="a grade"):
            evaluate_run({"q": {"a": grades[0][0]}}, {"q": {"a": 1.0}}, "nDCG")
    for level in (0, -1, "2", True, float("nan")):
        with pytest.raises(OptionError, match="level"):
            evaluate_rankings([[1, 0]], level=level)
    with pytest.raises(OptionError, match="level is for grades"):
        evaluate_rankings([[7]], query_ids=[7], level=1)


# ------------------------------------------------------------------------------------------------------------ spellings

QRELS = {"q": {"a": 3, "b": 1, "c": 2, "d": 0}, "r": {"a": 1}}
RUN = {"q": {"d": 5.0, "b": 4.0, "c": 3.0, "x": 2.0, "a": 1.0}, "r": {"a": 1.0, "b": 2.0}}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("nDCG@10", "nDCG@10"),
        ("AP(rel=2)@100", "mAP(rel=2)@100"),
        ("RBP(p=0.8)", "RBP(p=0.8)"),
        ("P(rel=2)@5", "P(rel=2)@5"),
        ("RR(rel=3)", "MRR(rel=3)"),
        ("RR@10", "MRR@10"),
        ("R(rel=2)@2", "R(rel=2)@2"),
        ("Rprec(rel=2)", "R-prec(rel=2)"),
        ("Success(rel=2)@1", "success(rel=2)@1"),
        ("nDCG(dcg='exp-log2')@3", "nDCG(exp)@3"),
        ("nDCG(dcg='log2')@3", "nDCG@3"),
        ("Bpref(rel=2)", "bpref(rel=2)"),
        ("SetP", "P"),
        ("SetF(beta=0.5)", "set_F(beta=0.5)"),
        ("set_F_0.5", "set_F(beta=0.5)"),
        ("SetR(rel=2)", "R(rel=2)"),
        ("Judged@3", "judged@3"),
        ("IPrec@0.1", "iprec@0.1"),
        ("NumRet", "num_ret"),
        ("NumQ", "num_q"),
        ("NumRet(rel=1)", "num_ret(rel=1)"),
        ("NumRel(rel=2)", "num_rel(rel=2)"),
        ("ERR@3", "ERR@3"),
        ("infAP", "infAP"),
        ("RBP(rel=1, p=0.8)", "RBP(p=0.8,rel=1)"),
        ("mAP@R", "mAP@R"),
        ("AP(rel=2)@R", "mAP@R(rel=2)"),
        ("P@R", "R-prec"),
        ("Rank1", "CMC@1"),
        ("rank-5", "CMC@5"),
        ("Rank@5", "CMC@5"),
        ("hit_rate@3", "success@3"),
        ("hits@3", "hits@3"),
    ],
)
def test_spellings_of_other_tools(theirs, ours):
    result = evaluate_run(QRELS, RUN, [theirs])
    assert list(result) == [ours]
    assert result[theirs] == result[ours]
    assert parse(ours) == parse(theirs)
    assert len(result.per_query[theirs]) == 2


def test_rel_is_the_level_of_one_metric():
    names = ["AP", "P@3", "R@3", "RR", "Rprec", "bpref", "success@2", "set_map", "num_rel", "binG", "hits@4", "AP@R"]
    both = evaluate_run(QRELS, RUN, [name for n in names for name in (n, _at_level(n, 2))])
    at_two = evaluate_run(QRELS, RUN, names, level=2)
    for name in names:
        assert np.array_equal(both.per_query[_at_level(name, 2)], at_two.per_query[name]), name
        assert np.array_equal(both.per_query[name], evaluate_run(QRELS, RUN, names).per_query[name]), name
    with pytest.raises(OptionError, match="rel=2 needs grades"):
        evaluate_distances([[1.0, 2.0]], [1], [1, 2], metrics=["AP(rel=2)"])


def _at_level(name, level):
    head, at, depth = name.partition("@")
    return f"{head}(rel={level}){at}{depth}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ERR(rel=2)", "takes no rel"),
        ("AP(rel=0)", "must be a grade above 0"),
        ("AP(rel=x)", "must be a grade above 0"),
        ("F1(rel=1,beta=2)", "takes no options"),
        ("utility(hit=a)", "hit=number"),
        ("11pt(2)", "recalls from 0 to 1"),
        ("nDCG(2=x)", "the option exp, or gains of grades above 0"),
        ("nDCG(0=1)", "gains of grades above 0"),
        ("nDCG(1=-1)", "gains of grades above 0"),
        ("nDCG(exp,1=2)", "takes the option exp, not"),
        ("11pt(hit=1)", "recalls from 0 to 1"),
        ("hits@0", "a positive integer"),
        ("Rprec_mult", "Rprec_mult@0.2"),
        ("iprec@2", "a recall from 0 to 1"),
        ("Rprec_mult@0.2.1", "a number"),
        ("rbp_resid(p=2)", "p must be above 0"),
        ("x" * 5000, "unknown metric 'xxx"),
        ("AP(" + "y" * 5000 + ")", "not 'yyy"),
    ],
)
def test_bad_names_are_refused_in_short(name, message):
    with pytest.raises(OptionError, match=message) as error:
        evaluate_run(QRELS, RUN, [name])
    assert len(str(error.value)) < 1000
    with pytest.raises(KeyError) as missing:
        evaluate_run(QRELS, RUN, "map")[name]
    assert len(str(missing.value)) < 500


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("as_columns", [False, True])
def test_holes_and_fallout_are_counted_one_by_one(judged_only, as_columns):
    rng = np.random.default_rng(5)
    names = [f"d{i}" for i in range(60)]
    for _ in range(examples(20)):
        qrels = {f"q{q}": {d: int(rng.integers(-1, 3)) for d in rng.choice(names[:30], 8)} for q in range(6)}
        run = {
            f"q{q}": {d: float(rng.integers(0, 9)) for d in rng.choice(names, rng.integers(1, 40), replace=False)}
            for q in range(1, 9)
        }
        judged = {document for grades in qrels.values() for document in grades}
        rows = [(q, d, s) for q, scores in run.items() for d, s in scores.items()]
        given = tuple(map(list, zip(*rows, strict=True))) if as_columns else run
        metrics = ["hole@1", "hole@10", "fallout@5", "fallout(items=100)@5"]
        result = evaluate_run(qrels, given, metrics, judged_only=judged_only)
        for query, *found in zip(result.query_ids.tolist(), *result.per_query.values(), strict=True):
            ranking = sorted(run[query], key=lambda document: (run[query][document], document), reverse=True)
            if judged_only:
                ranking = [document for document in ranking if qrels[query].get(document, -1) >= 0]
            wrong = [qrels[query].get(document, 0) < 1 for document in ranking]
            positives = sum(grade > 0 for grade in qrels[query].values())
            assert found == [
                *(sum(document not in judged for document in ranking[:k]) / k for k in (1, 10)),
                sum(wrong[:5]) / max(sum(wrong), 1),
                sum(wrong[:5]) / (100 - positives),
            ]


def test_holes_are_those_of_beir():
    """Over all judged queries, one of which has no answer."""
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}, "q3": {"c": 1}}
    run = {"q1": {"x": 3.0, "a": 2.0, "b": 1.0}, "q2": {"c": 2.0, "a": 1.0}}
    result = evaluate_run(qrels, run, ["Hole@1", "hole@3", "accuracy@2"], "beir", missing="zero")
    assert dict(result) == {"hole@1": 0.33333, "hole@3": 0.11111, "success@2": 0.66667}


def test_holes_need_the_judgements_of_all_queries():
    with pytest.raises(OptionError, match="judgements of all queries"):
        evaluate_rankings([[1, 0]], metrics=["hole@1"])


def test_parameters_of_trec_eval():
    """What -m 11pt_avg..25,.5,.75 and -m utility.2,-1,0.5,1 with -N 100 ask for."""
    qrels = {"q": {"a": 1, "b": 1, "c": 0, "d": 2}, "p": {"a": 1}}
    run = {"q": {"x": 4.0, "a": 3.0, "c": 2.0, "d": 1.0}, "p": {"x": 1.0}}
    recalls = [0.25, 0.5, 0.75]
    names = ["11pt(0.25,0.5,0.75)", *(f"iprec@{recall}" for recall in recalls), "11pt", "11pt(1)", "iprec@1"]
    result = evaluate_run(qrels, run, names)
    columns = [result.per_query[f"iprec@{recall}"] for recall in recalls]
    assert result.per_query[names[0]].tolist() == ((columns[2] + columns[1] + columns[0]) / 3).tolist()
    assert result.per_query[names[0]][0] != result.per_query["11pt"][0]
    assert result.per_query["11pt(1)"].tolist() == result.per_query["iprec@1"].tolist()
    worth = evaluate_run(qrels, run, "utility(hit=2,wrong=-1,lost=0.5,left=1,items=100)")
    # 2 hits, 2 wrong, 1 relevant that was not ranked, and 95 others; none, 1, 1, and 98
    assert next(iter(worth.per_query.values())).tolist() == [4 - 2 + 0.5 + 95, -1 + 0.5 + 98]


def test_gains_of_grades():
    """A grade may have more gain than a higher one, or none: the best ranking is by gain."""
    rng = np.random.default_rng(6)
    names = [f"d{i:02}" for i in range(12)]
    for _ in range(examples(30)):
        qrels = {f"q{q}": {d: int(rng.integers(-1, 5)) for d in rng.permutation(names)[:8]} for q in range(4)}
        run = {f"q{q}": {d: float(-i) for i, d in enumerate(rng.permutation(names)[:9])} for q in range(4)}
        gains = {1: 3.0, 2: 0.0, 3: 2.5, 4: 4.0}
        found = evaluate_run(qrels, run, ["nDCG(1=3,2=0,3=2.5)", "nDCG(1=3,2=0,3=2.5)@3"]).per_query
        for depth, values in zip((99, 3), found.values(), strict=True):
            for query, value in zip(qrels, values.tolist(), strict=True):
                given = [gains.get(qrels[query].get(document, 0), 0.0) for document in run[query]][:depth]
                best = sorted((gains.get(grade, 0.0) for grade in qrels[query].values()), reverse=True)[:depth]
                own, most = (sum(g / np.log2(i + 2) for i, g in enumerate(row)) for row in (given, best))
                assert value == (pytest.approx(own / most, abs=1e-15) if most else 0.0)


def test_lists_of_metrics_are_cut_outside_of_parentheses():
    assert split("AP(step,hits)@5, map ,,utility(hit=2,wrong=-1)") == [
        "AP(step,hits)@5",
        "map",
        "utility(hit=2,wrong=-1)",
    ]


def test_every_alias_is_of_one_metric():
    aliases = [alias for metric in METRICS for alias in metric.aliases]
    assert len(set(aliases)) == len(aliases)
    for metric in METRICS:
        asked = f"{metric.name}@1" if metric.depth == "must" else metric.name
        assert parse(asked).metric is metric


def test_map_at_r_is_pytorch_metric_learnings():
    relevance = [[1, 0, 1, 1, 0], [0, 1, 0, 0, 1]]
    result = evaluate_rankings(relevance, [4, 2], metrics=["mAP@R", "mAP"])
    assert result.per_query["mAP@R"].tolist() == [(1 + 2 / 3 + 3 / 4) / 4, (1 / 2) / 2]
    assert result["mAP@R"] == evaluate_rankings(relevance, [4, 2], metrics=["mAP"], convention="map_at_r")["mAP"]


def test_a_convention_that_has_a_cmc_reports_it_by_default():
    relevance = [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    for convention in ("reid", "allshots", "layumi"):
        if convention == "layumi":
            result = evaluate_rankings(relevance, [2, 1, 0], convention=convention, ties="index")
            assert result.cmc.tolist() == [1 / 3, 2 / 3, 2 / 3]
        else:
            result = evaluate_rankings(relevance, [2, 1, 0], convention=convention)
            assert result.cmc.tolist() == [0.5, 1.0, 1.0]
        assert result["CMC@1"] == result.cmc[0]
        assert {"CMC@1", "CMC@5", "CMC@10", "CMC@20"} <= set(result)
    assert evaluate_rankings(relevance, [2, 1, 0]).cmc is None
    assert evaluate_rankings(relevance, [2, 1, 0], metrics=["CMC@1"]).cmc.tolist() == [0.5, 1.0, 1.0]
