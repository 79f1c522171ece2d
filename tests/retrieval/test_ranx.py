"""The drop-in for ranx: its values, order, errors, files and tables; ranx itself where it is installed."""

from __future__ import annotations

import json
import math
import random
from collections import UserDict

import numpy as np
import pytest
from legs import examples

from detmap import ranx as ours
from detmap.errors import InputError, OptionError

QRELS = {"q1": {"a": 1, "c": 2, "b": 0}, "q2": {"a": 1}}
RUN = {"q1": {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.5}, "q2": {"b": 0.4, "a": 0.2}}

#: Means of ranx 0.3.21 on these.
MEANS = {
    "hits": 1.5, "hit_rate": 1.0, "hit_rate@0": 1.0, "hit_rate@1": 0.5, "precision": 0.5, "recall@2": 0.75,
    "f1@2": 0.5833333333333333, "r-precision": 0.25, "r-precision@3": 0.25, "mrr": 0.75, "map": 0.6666666666666666,
    "map@2": 0.5, "map@0": 0.6666666666666666, "ndcg": 0.695558643501663, "ndcg@2": 0.5055117601436959,
    "ndcg_burges": 0.6597293172559621, "dcg": 1.3154648767857289, "dcg_burges@2": 0.8154648767857288, "bpref": math.nan,
    "rbp.95": 0.09387500000000007, "rbp@5": 0.5, "map-l2": 0.16666666666666666, "precision@2-l2": 0.0, "ndcg-l2": 0.25,
    "rbp.95-l2": 0.04512500000000004,
}  # fmt: skip

METRICS = [
    f"{name}{depth}{level}"
    for name in (
        "hits",
        "hit_rate",
        "precision",
        "recall",
        "f1",
        "mrr",
        "map",
        "dcg",
        "dcg_burges",
        "ndcg",
        "ndcg_burges",
    )
    for depth in ("", "@0", "@1", "@3", "@100")
    for level in ("", "-l1", "-l2")
] + [f"{name}{level}" for name in ("r-precision", "bpref", "rbp.95", "rbp@5") for level in ("", "-l2")]


def evaluated(qrels, run, metrics, **options):
    return ours.evaluate(ours.Qrels(qrels), ours.Run(run), metrics, **options)


@pytest.mark.parametrize("name", MEANS)
def test_every_metric_has_the_value_of_ranx(name):
    assert evaluated(QRELS, RUN, name) == pytest.approx(MEANS[name], rel=1e-14, nan_ok=True)


def test_what_evaluate_returns():
    run = ours.Run(RUN)
    assert type(evaluated(QRELS, RUN, ["map"])) is np.float64
    assert list(evaluated(QRELS, RUN, ["mrr", "map"])) == ["mrr", "map"]
    turned = {"q2": RUN["q2"], "q1": RUN["q1"]}
    assert evaluated(QRELS, turned, "map", return_mean=False).tolist() == [0.8333333333333333, 0.5]
    found = ours.evaluate(ours.Qrels(QRELS), run, ["map", "hits@1"], return_std=True)
    assert found["map"] == {"mean": 0.6666666666666666, "std": pytest.approx(1 / 6)}
    assert run.scores == {"map": {"q1": 0.8333333333333333, "q2": 0.5}, "hits@1": {"q1": 1.0, "q2": 0.0}}
    assert run.mean_scores == {"map": 0.6666666666666666, "hits@1": 0.5}
    assert list(run.std_scores) == ["map", "hits@1"]
    other = ours.Run(RUN)
    ours.evaluate(ours.Qrels(QRELS), other, "map", save_results_in_run=False)
    assert not other.scores


def test_ties_are_in_order_and_turned_around_in_dicts():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    assert evaluated(qrels, run, "mrr") == 1
    assert ours.evaluate(qrels, run, "mrr") == 1 / 3
    assert ours.evaluate(qrels, run, ["mrr", "bpref"])["mrr"] == 1 / 3
    several = {"p": {"b": 1}, **qrels, "r": {"c": 1}, "s": {"b": 1}}
    runs = {"p": run["q"], "q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": run["q"], "s": run["q"]}
    assert evaluated(several, runs, "mrr", return_mean=False).tolist() == [1 / 2, 1, 1 / 3, 1 / 2]
    assert ours.evaluate(several, runs, "mrr", return_mean=False).tolist() == [1 / 2, 1, 1, 1 / 2]
    long = {"q": {f"d{i}": 1.0 for i in range(16)} | {"a": 1.0}}
    with pytest.warns(UserWarning, match="1 query has a relevant document that is tied"):
        assert evaluated(qrels, long, "mrr") == 1 / 17


def test_dicts_are_paired_by_id():
    turned = {"q2": RUN["q2"], "q1": RUN["q1"]}
    with pytest.warns(UserWarning, match=r"2 queries are paired by their ids, where ranx pairs dicts by place: q1, q2"):
        assert ours.evaluate(QRELS, turned, "map") == 0.6666666666666666


def test_queries_of_one_side_alone():
    for qrels, run in ((QRELS, {"q1": RUN["q1"]}), ({"q1": QRELS["q1"]}, RUN)):
        with pytest.raises(AssertionError, match=r"Qrels and Run query ids do not match: .*'q2'"):
            evaluated(qrels, run, "map")
        with pytest.raises(AssertionError, match="do not match"):
            ours.evaluate(qrels, run, "map")
    run = ours.Run({"q1": RUN["q1"], "q9": RUN["q2"]})
    assert ours.evaluate(ours.Qrels(QRELS), run, "map", make_comparable=True) == 0.8333333333333333 / 2
    assert run.to_dict() == {"q1": RUN["q1"], "q2": {}}


CHANGES = {
    "add_score": lambda qrels, run: run.add_score("q1", "z", 5),
    "add": lambda qrels, run: run.add("q2", ["a", "x"], [1, 2]),
    "add_multi": lambda qrels, run: qrels.add_multi(["q2"], [["b"]], [[1]]),
    "a grade": lambda qrels, run: qrels.add_score("q1", "b", 3),
    "level": lambda qrels, run: qrels.set_relevance_level(2),
    "sort": lambda qrels, run: (run.sort(), qrels.sort()),
    "the dicts": lambda qrels, run: run.run["q1"].update(a=0.1),
    "the grades": lambda qrels, run: qrels.qrels["q2"].pop("a", None),
    "a copy": lambda qrels, run: run.get_doc_ids_and_scores()[0].clear(),
    "NaN": lambda qrels, run: (run.add_score("q1", "z", math.nan), run.add_score("q1", "z", 2.0)),
    "queries": lambda qrels, run: (run.add_score("q3", "z", 1), qrels.add_score("q3", "z", 1)),
}


@pytest.mark.parametrize("first", CHANGES)
@pytest.mark.parametrize("second", CHANGES)
def test_what_was_read_is_read_again_after_a_change(first, second):
    names = ["map", "ndcg@2", "mrr", "recall@1-l2"]
    qrels, run = ours.Qrels(QRELS), ours.Run(RUN)
    held = run.run if first == "the dicts" else None  # changed later, without a call
    for change in (None, first, second):
        if change is not None:
            CHANGES[change](qrels, run)
        if held is not None and change == second:
            held["q1"]["d"] = 7.0
        found = [ours.evaluate(qrels, run, names, return_mean=False) for _ in range(2)]
        fresh = ours.evaluate(ours.Qrels(qrels.to_dict()), ours.Run(run.to_dict()), names, return_mean=False)
        for one in found:
            assert {name: values.tolist() for name, values in one.items()} == {n: v.tolist() for n, v in fresh.items()}


def test_one_run_with_several_judgements_and_one_of_these_with_several_runs():
    qrels = [ours.Qrels(QRELS), ours.Qrels({**QRELS, "q2": {"b": 1}})]
    runs = [ours.Run(RUN), ours.Run({**RUN, "q2": {"b": 0.1, "a": 0.2}})]
    wanted = [[0.6666666666666666, 0.9166666666666666], [0.9166666666666666, 0.6666666666666666]]
    for _ in range(2):
        assert [[ours.evaluate(one, run, "map") for run in runs] for one in qrels] == wanted
        assert [[ours.evaluate(one, run, "hits@1") for run in runs] for one in qrels] == [[0.5, 1.0], [1.0, 0.5]]


def test_arrays_are_queries_by_place():
    qrels = [np.array([[1, 1], [3, 2], [2, 0]]), [[1, 1]]]
    run = [np.array([[1, 0.9], [2, 0.8], [3, 0.7], [4, 0.5]]), [[2, 0.4], [1, 0.2]]]
    assert ours.evaluate(qrels, run, ["map", "ndcg@2"]) == {"map": MEANS["map"], "ndcg@2": MEANS["ndcg@2"]}
    with pytest.raises(InputError, match="has arrays"):
        ours.evaluate(QRELS, run, "map")
    with pytest.raises(InputError, match="expected pairs"):
        ours.evaluate([[1, 2]], run, "map")
    with pytest.raises(InputError, match="there twice"):
        ours.evaluate([[[1, 2], [1, 1]]], run[:1], "map")


@pytest.mark.parametrize(
    "name", ["foo", "MAP", "map@-1", "map@x", "precision-l2@2", "rbp", "rbp.95@2", "map-l0", "map-l", "AP", "", 3]
)
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=r"not supported|needs p|-l takes"):
        evaluated(QRELS, RUN, [name])


def test_bad_input():
    for one in (ours.Qrels, ours.Run):
        with pytest.raises(ValueError, match="is empty"):
            one({})
    with pytest.raises(InputError, match="a score is NaN"):
        evaluated(QRELS, {**RUN, "q2": {"a": math.nan}}, "map")
    for given, says in (
        ({"q": {"a": "x"}}, r"run: query 'q', document 'a': must be a number \(got 'x'\)"),
        ({"q": None}, "run: query 'q': must be a dict of documents and numbers"),
        ([1], "run: must be a dict of dicts"),
    ):
        with pytest.raises(InputError, match=says):
            ours.Run(given)
    for sides in ((ours.Qrels(), ours.Run()), ([], []), ({}, {})):
        with pytest.raises(InputError, match="is empty"):
            ours.evaluate(*sides, "map")
    with pytest.raises(InputError, match="expected pairs of numbers"):
        ours.evaluate([[[1, 1]]], [[["a", 0.5]]], "map")
    with pytest.raises(OptionError, match="are read, but not written"):
        ours.Run(RUN).save("run.gz")
    with pytest.raises(OptionError, match="kind must be json"):
        ours.Run.from_file("run.lz4")
    with pytest.warns(UserWarning, match="ranx's bpref fails"):
        assert evaluated({"q1": {"a": 0}, "q2": {"a": 1, "b": 0}}, RUN, "bpref", return_mean=False).tolist() == [
            0.0,
            0.0,
        ]


def test_collections():
    qrels = ours.Qrels(QRELS, name="mine")
    assert list(qrels["q1"]) == ["c", "a", "b"]
    assert (len(qrels), qrels.size, qrels.name, qrels.get_query_ids(), list(qrels.keys())) == (
        2,
        2,
        "mine",
        ["q1", "q2"],
        ["q1", "q2"],
    )
    qrels.set_relevance_level(2)
    assert qrels.to_dict()["q1"] == {"c": 1, "a": 0, "b": -1}
    assert ours.Qrels({"q": {"a": 1.5, "b": True}}).to_dict() == {"q": {"a": 1, "b": 1}}
    run = ours.Run()
    run.add_score("q2", "a", 1)
    run.add("q1", ["a", "b", "c"], [1, 3, 3])
    run.add_multi(["q3"], [["z"]], [[2]])
    assert list(run.run) == ["q1", "q2", "q3"]
    assert run.get_doc_ids_and_scores()[0] == {"b": 3.0, "c": 3.0, "a": 1.0}
    assert repr(run) == repr(run.to_dict())
    assert ours.Run(UserDict(q=UserDict(a=0.5))).to_dict() == {"q": {"a": 0.5}}  # as typed dicts of numba are


@pytest.mark.parametrize("suffix", ["json", "trec", "txt", "parquet", "parq"])
def test_files(suffix, tmp_path):
    qrels, run = ours.Qrels(QRELS), ours.Run(RUN, name="bm25")
    paths = [str(tmp_path / f"{name}.{suffix}") for name in ("qrels", "run")]
    qrels.save(paths[0])
    run.save(paths[1])
    found, ranked = ours.Qrels.from_file(paths[0]), ours.Run.from_file(paths[1])
    assert ours.evaluate(found, ranked, "map") == MEANS["map"]
    assert found.to_dict() == qrels.to_dict()
    assert ranked.to_dict() == run.to_dict()
    assert ranked.name == ("bm25" if suffix in ("trec", "txt") else None)
    if suffix == "trec":
        assert (tmp_path / "qrels.trec").read_text() == "q1 0 c 2\nq1 0 a 1\nq1 0 b 0\nq2 0 a 1"
        assert (tmp_path / "run.trec").read_text().splitlines()[4] == "q2 Q0 b 1 0.4 bm25"


def test_frames(tmp_path):
    qrels, run = ours.Qrels(QRELS).to_dataframe(), ours.Run(RUN).to_dataframe()
    assert list(run.columns) == ["q_id", "doc_id", "score"]
    renamed = run.rename(columns={"doc_id": "d"})
    renamed.to_parquet(tmp_path / "run.parquet")
    for found in (
        ours.Run.from_df(renamed, doc_id_col="d", name="x"),
        ours.Run.from_parquet(tmp_path / "run.parquet", doc_id_col="d"),
    ):
        assert ours.evaluate(ours.Qrels.from_df(qrels), found, "map") == MEANS["map"]
    with pytest.raises(InputError, match="no column 'doc_id'"):
        ours.Run.from_df(renamed)
    assert ours.Run.from_dict(RUN, "y").name == "y"
    assert ours.Qrels.from_dict(QRELS).to_dict() == ours.Qrels(QRELS).to_dict()


# Reports -------------------------------------------------------------------------------------------------------------


def several(count=30, seed=1):
    rng = np.random.default_rng(seed)
    qrels = {f"q{i}": {f"d{j}": int(g) for j, g in enumerate(rng.integers(0, 3, 9))} for i in range(count)}
    runs = {
        name: {q: {d: float(rng.random() + shift * row[d]) for d in row} for q, row in qrels.items()}
        for name, shift in (("bm25", 0), ("a_b", 0.3), ("1", 0.1), ("best", 1.0))
    }
    return ours.Qrels(qrels), [ours.Run(run, name) for name, run in runs.items()]


def test_compare():
    qrels, runs = several()
    report = ours.compare(qrels, runs, ["map@10", "mrr"], max_p=0.01)
    assert str(report) == (
        "#    Model    MAP@10    MRR\n---  -------  --------  ------\n"
        "a    bm25     0.749     0.819\nb    a_b      0.934ᵃᶜ   1.000ᵃ\n"
        "c    1        0.795     0.953\nd    best     1.000ᵃᵇᶜ  1.000ᵃ"
    )
    found = report.to_dict()
    assert found["bm25"]["comparisons"]["best"] == {
        "map@10": report.comparisons["best", "bm25"]["map@10"]["p_value"],
        "mrr": report.comparisons[{"bm25", "best"}]["mrr"]["p_value"],
    }
    assert sum(found["bm25"]["win_tie_loss"]["a_b"]["mrr"].values()) == 30
    assert runs[3].mean_scores["map@10"] == report.results["best"]["map@10"]
    assert list(report.to_dataframe().columns) == ["model_names", "map@10", "mrr"]
    latex = report.to_latex()
    assert "d & best & \\textbf{1.000}$^{abc}$ & 1.000$^{a}$\\hphantom{$^{bc}$} \\\\" in latex
    assert latex.count("{") == latex.count("}")


def test_tables_of_numbers_alone():
    qrels, runs = several(3)
    runs[0].name, runs[1].name = None, "12"
    shown = str(
        ours.compare(qrels, [runs[0], runs[1]], ["hits", "rbp.95-l2"], show_percentages=True, rounding_digits=4)
    )
    assert shown.splitlines()[0] == "#    Model      Hits    RBP.95-l2"
    assert "%" not in shown


def test_p_values_of_each_test():
    stats = pytest.importorskip("scipy.stats")
    qrels, runs = several()
    columns = [ours.evaluate(qrels, run, "map", return_mean=False) for run in runs]
    student = ours.compare(qrels, runs, "map").comparisons["bm25", "1"]["map"]["p_value"]
    assert student == pytest.approx(stats.ttest_rel(columns[0], columns[2]).pvalue, rel=1e-12)
    fisher = ours.compare(qrels, runs, "map", stat_test="fisher").comparisons["bm25", "1"]["map"]["p_value"]
    assert fisher == 0.074  # ranx 0.3.21 on one thread
    one, perfect = ours.Run(RUN), ours.Run({"q1": {"c": 2, "a": 1}, "q2": {"a": 1}})
    perfect.name = "perfect"
    two = [
        ours.compare(ours.Qrels(QRELS), [one, perfect], "map", stat_test=test).to_dict()["run_1"]["comparisons"][
            "perfect"
        ]["map"]
        for test in ("student", "fisher", "tukey")
    ]
    assert two == pytest.approx([0.2951672353008664, 0.476, 0.18350341907227385], rel=1e-9)  # ranx 0.3.21 on one thread
    same = ours.compare(ours.Qrels(QRELS), [one, ours.Run(RUN, "again")], "map")
    assert math.isnan(same.to_dict()["again"]["comparisons"]["run_1"]["map"])


def test_what_compare_refuses(tmp_path):
    qrels, runs = several(3)
    with pytest.raises(NotImplementedError, match="wilcoxon"):
        ours.compare(qrels, runs, "map", stat_test="wilcoxon")
    with pytest.raises(OptionError, match="two runs are called 'bm25'"):
        ours.compare(qrels, [runs[0], runs[0]], "map")
    for given, says in (([], "no runs to compare"), ([{"q": {"a": 1.0}}], "a list of Run, not of dict")):
        with pytest.raises(OptionError, match=says):
            ours.compare(qrels, given, "map")
    with pytest.raises(OptionError, match="at most 26 runs"):
        ours.compare(qrels, [ours.Run(runs[0].run) for _ in range(27)], "map")
    ours.compare(qrels, runs[:2], ["map"]).save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["model_names"] == ["bm25", "a_b"]


# ranx itself ---------------------------------------------------------------------------------------------------------


def drawn(seed):
    """Judgements and a run of the same queries, tied where ranx's sort is stable."""
    rng = random.Random(seed)
    documents = [f"d{i}" for i in range(rng.choice([3, 8, 12, 40]))] + ["é", "D1", "10"]
    grades = rng.choice([[0, 1], [0, 1, 2], [-1, 0, 1, 2, 3], [1], [1, 2, 3, 4]])
    queries = [f"q{i}" for i in range(rng.choice([1, 3, 12]))]
    qrels = {q: {d: rng.choice(grades) for d in rng.sample(documents, rng.randint(1, 5))} for q in queries}
    run = {}
    for query in queries:
        count = rng.randint(1, len(documents))
        levels = rng.choice([2, 1 << 30]) if count <= 15 else 1 << 30
        run[query] = {d: rng.randint(0, levels) / 2 for d in rng.sample(documents, count)}
    return qrels, run


@pytest.mark.parametrize("seed", range(examples(30)))
@pytest.mark.filterwarnings("ignore")
def test_ranx_itself_on_drawn_data(seed):
    theirs = pytest.importorskip("ranx")
    qrels, run = drawn(seed)
    names = [
        name for name in METRICS if not name.startswith("bpref") or all(max(r.values()) > 1 for r in qrels.values())
    ]
    given = ([m.evaluate(m.Qrels(qrels), m.Run(run), names, return_mean=False) for m in (ours, theirs)],
             [m.evaluate(qrels, run, names, return_mean=False) for m in (ours, theirs)])  # fmt: skip
    for found, wanted in given:
        for name in names:
            assert np.allclose(found[name], wanted[name], rtol=1e-12, atol=1e-12, equal_nan=True), name
    assert ours.Run(run).to_dict() == theirs.Run(run).to_dict()


@pytest.mark.parametrize("test", ["student", "fisher", "tukey"])
@pytest.mark.filterwarnings("ignore")
def test_ranx_itself_compares(test):
    theirs = pytest.importorskip("ranx")
    numba = pytest.importorskip("numba")
    numba.set_num_threads(1)  # on several Fisher's test is another one each time
    qrels, runs = several()
    wanted = theirs.compare(
        theirs.Qrels(qrels.to_dict()),
        [theirs.Run(run.to_dict(), run.name) for run in runs],
        ["map@10", "ndcg@3-l2", "hits"],
        stat_test=test,
        threads=1,
    )
    if test == "fisher" and numba.threading_layer() == "workqueue":
        pytest.skip("the random numbers are those of numba's worker threads, which are not seeded")
    found = ours.compare(qrels, runs, ["map@10", "ndcg@3-l2", "hits"], stat_test=test)
    assert str(found) == str(wanted)
    for name, of in wanted.to_dict().items():
        if name in wanted.model_names:
            for other, values in of["comparisons"].items():
                assert found.to_dict()[name]["comparisons"][other] == pytest.approx(values, rel=1e-12, nan_ok=True)
