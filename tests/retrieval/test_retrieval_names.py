"""What a metric's name means under each convention: ranx's and ir_measures' names give their values, or are refused."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from detmap.errors import OptionError
from detmap.retrieval import CONVENTIONS, Evaluator, evaluate_rankings, evaluate_run
from detmap.retrieval.metrics import IR_MEASURES, METRICS, parse

QRELS = {"1": {"a": 3, "b": 0, "c": 1, "d": 2}, "2": {"a": 1, "e": 0}, "3": {"b": 2, "c": 1}, "4": {"a": 0}}
#: With scores that are tied, and one that is tied in single precision alone; a query is missing, and one is not judged.
RUN = {
    "1": {"b": 0.9, "a": 0.5, "c": 0.5, "x": 0.5000000001, "d": 0.1},
    "2": {"e": 0.7, "y": 0.7, "a": 0.7},
    "4": {"a": 1.0},
    "9": {"z": 1.0},
}

#: The values of ir_measures 0.4.3, with pytrec-eval-terrier 0.5.11, cwl-eval 1.0.12 and perl, query by query.
IR_VALUES = {
    "AP": [0.4777777777777777, 0.3333333333333333, 0.0, 0.0],
    "AP@5": [0.4777777777777777, 0.3333333333333333, 0.0, 0.0],
    "AP(rel=2)": [0.325, 0.0, 0.0, 0.0],
    "AP(rel=2)@5": [0.325, 0.0, 0.0, 0.0],
    "MAP": [0.4777777777777777, 0.3333333333333333, 0.0, 0.0],
    "P@5": [0.6, 0.2, 0.0, 0.0],
    "P@1": [0.0, 0.0, 0.0, 0.0],
    "P(rel=2)@5": [0.4, 0.0, 0.0, 0.0],
    "Precision@3": [0.3333333333333333, 0.3333333333333333, 0.0, 0.0],
    "R@5": [1.0, 1.0, 0.0, 0.0],
    "R@100": [1.0, 1.0, 0.0, 0.0],
    "Recall@3": [0.3333333333333333, 1.0, 0.0, 0.0],
    "R(rel=2)@5": [1.0, 0.0, 0.0, 0.0],
    "RR": [0.3333333333333333, 0.3333333333333333, 0.0, 0.0],
    "RR@10": [0.3333333333333333, 1.0, 0.0, 0.0],
    "RR@1": [0.0, 1.0, 0.0, 0.0],
    "RR@3": [0.3333333333333333, 1.0, 0.0, 0.0],
    "MRR": [0.3333333333333333, 0.3333333333333333, 0.0, 0.0],
    "MRR@10": [0.3333333333333333, 1.0, 0.0, 0.0],
    "RR(rel=2)@5": [0.3333333333333333, 0.0, 0.0, 0.0],
    "RR(rel=2)": [0.25, 0.0, 0.0, 0.0],
    "Rprec": [0.3333333333333333, 0.0, 0.0, 0.0],
    "RPrec": [0.3333333333333333, 0.0, 0.0, 0.0],
    "Rprec(rel=2)": [0.0, 0.0, 0.0, 0.0],
    "nDCG": [0.5388095312011184, 0.5, 0.0, 0.0],
    "nDCG@5": [0.5388095312011184, 0.5, 0.0, 0.0],
    "NDCG@10": [0.5388095312011184, 0.5, 0.0, 0.0],
    "nDCG@20": [0.5388095312011184, 0.5, 0.0, 0.0],
    "nDCG(dcg='exp-log2')@5": [0.49775, 0.5, 0.0, 0.0],
    "nDCG(dcg='exp-log2')@20": [0.49775, 0.5, 0.0, 0.0],
    "nDCG(dcg='log2')@5": [0.5388095312011184, 0.5, 0.0, 0.0],
    "ERR@1": [0.0, 0.0, 0.0, 0.0],
    "ERR@5": [0.14315, 0.02083, 0.0, 0.0],
    "ERR@20": [0.14315, 0.02083, 0.0, 0.0],
    "RBP(rel=1)": [0.31231999999999993, 0.12799999999999997, 0.0, 0.0],
    "RBP(rel=2)": [0.20991999999999997, 0.0, 0.0, 0.0],
    "RBP(p=0.5,rel=1)": [0.21875, 0.125, 0.0, 0.0],
    "RBP(rel=1,p=0.95)": [0.1287190625000001, 0.04512500000000004, 0.0, 0.0],
    "Success@1": [0.0, 0.0, 0.0, 0.0],
    "Success@5": [1.0, 1.0, 0.0, 0.0],
    "Success(rel=2)@5": [1.0, 0.0, 0.0, 0.0],
    "Bpref": [0.0, 0.0, 0.0, 0.0],
    "BPref": [0.0, 0.0, 0.0, 0.0],
    "Bpref(rel=2)": [0.0, 0.0, 0.0, 0.0],
    "infAP": [0.47777866664592633, 0.33333666660000133, 0.0, 0.0],
    "infAP(rel=2)": [0.3250015833186113, 0.0, 0.0, 0.0],
    "IPrec@0.1": [0.6, 0.3333333333333333, 0.0, 0.0],
    "IPrec@0.5": [0.6, 0.3333333333333333, 0.0, 0.0],
    "IPrec@1.0": [0.6, 0.3333333333333333, 0.0, 0.0],
    "IPrec(rel=2)@0.2": [0.4, 0.0, 0.0, 0.0],
    "Judged@1": [1.0, 1.0, 0.0, 1.0],
    "Judged@5": [0.8, 0.6666666666666666, 0.0, 1.0],
    "Judged@50": [0.8, 0.6666666666666666, 0.0, 1.0],
    "SetP": [0.6, 0.3333333333333333, 0.0, 0.0],
    "SetR": [1.0, 1.0, 0.0, 0.0],
    "SetF": [0.7499999999999999, 0.5, 0.0, 0.0],
    "SetF(beta=0.5)": [0.6923076923076922, 0.42857142857142855, 0.0, 0.0],
    "SetF(beta=2.0)": [0.818181818181818, 0.6000000000000001, 0.0, 0.0],
    "SetAP": [0.6, 0.3333333333333333, 0.0, 0.0],
    "SetP(rel=2)": [0.4, 0.0, 0.0, 0.0],
    "SetR(rel=2)": [1.0, 0.0, 0.0, 0.0],
    "SetAP(rel=2)": [0.4, 0.0, 0.0, 0.0],
    "SetRelP": [1.0, 1.0, 0.0, 0.0],
    "NumRet": [5.0, 3.0, 0.0, 1.0],
    "NumRet(rel=1)": [3.0, 1.0, 0.0, 0.0],
    "NumRet(rel=2)": [2.0, 0.0, 0.0, 0.0],
    "NumRelRet": [3.0, 1.0, 0.0, 0.0],
}

#: What detmap does not have under these names, or not with the value of ir_measures.
NOT_OF_IR_MEASURES = [
    "ERR", "RBP", "RBP(p=0.5)", "RBP(rel=1)@10", "ERR(max=2)@20", "nDCG(dcg='exp-log2')", "NumQ", "NumRel",
    "AP(hits)", "AP(trapezoid)", "AP(judged_only=True)", "SetP(relative=True)", "IPrec@0.123", "Judged", "Success",
    "Accuracy", "Compat", "alpha_nDCG@10", "ERR_IA@10", "NRBP", "StRecall@5", "BPM", "SDCG@5", "NERR8@5", "INST", "rbp.95",
]  # fmt: skip


@pytest.mark.parametrize("name", IR_VALUES)
def test_names_of_ir_measures_have_its_values(name):
    result = evaluate_run(QRELS, RUN, [name], "ir_measures")
    assert result.query_ids.tolist() == list(QRELS)
    found = result.per_query[name].tolist()
    if name.startswith("RBP"):  # cwl_eval divides its weights by their sum over 1,000 ranks, which rounds
        assert np.allclose(found, IR_VALUES[name], rtol=0, atol=4e-16)
    else:
        assert found == IR_VALUES[name]
    total = sum(IR_VALUES[name])
    assert result[name] == pytest.approx(total if name.startswith("Num") else total / len(QRELS), rel=1e-15)


def test_every_measure_of_the_table_is_among_the_values():
    requests = [parse(name, CONVENTIONS["ir_measures"]) for name in IR_VALUES]
    tested = {("nDCG(exp)" if one.options == ("exp",) else one.metric.name, one.depth is not None) for one in requests}
    tested |= {("RBP", False)} if any(one.metric.name == "RBP" for one in requests) else set()
    claimed = {(name, at == 1) for name, row in IR_MEASURES.items() for at in (0, 1) if row[at] is not None}
    assert claimed <= tested
    assert {name.partition("(")[0] for name in IR_MEASURES} <= {metric.name for metric in METRICS}


@pytest.mark.parametrize("name", NOT_OF_IR_MEASURES)
def test_other_names_are_refused_under_ir_measures(name):
    with pytest.raises(OptionError):
        evaluate_run(QRELS, RUN, [name], "ir_measures")


def test_names_that_ir_measures_does_not_have_are_those_of_detmap():
    names = ["GMAP", "11pt", "mAP@R", "mINP", "CMC@1", "rbp_resid", "num_nonrel_judged_ret"]
    ours = evaluate_run(QRELS, RUN, names, missing="zero")
    assert dict(evaluate_run(QRELS, RUN, names, "ir_measures")) == dict(ours)


def test_the_full_name_says_every_parameter():
    result = evaluate_run(QRELS, RUN, ["ERR@20", "RBP(rel=1)", "nDCG@10"], "ir_measures")
    assert list(result) == ["ERR(max=4)@20", "RBP(p=0.8,rel=1)@1000", "nDCG@10"]
    assert result["ERR@20"] == result["ERR(max=4)@20"]
    assert "highest_grade:3" not in result.notices
    plain = evaluate_run(QRELS, RUN, ["ERR@20", "RBP", "rbp_resid", "ERR(max=4)@20"])
    assert list(plain) == ["ERR@20", "RBP(p=0.9)", "rbp_resid(p=0.9)", "ERR(max=4)@20"]
    assert plain["RBP"] == plain["rbp"] == plain["RBP(p=0.9)"]
    assert plain.notices["highest_grade:3"] == 1
    assert "max is 3, the highest grade judged" in str(plain)
    assert "highest_grade:3" not in evaluate_run(QRELS, RUN, ["ERR(max=4)@20"]).notices
    assert "max is 2.5," in str(evaluate_run({"q": {"a": 2.5}}, {"q": {"a": 1.0}}, ["ERR@5"]))


def test_the_default_metrics_of_ir_measures_are_those_that_it_has():
    assert "mAP" in evaluate_run(QRELS, RUN, convention="ir_measures")
    assert "num_rel" not in set(evaluate_run(QRELS, RUN, convention="ir_measures"))


def test_orders_of_other_programs_need_a_run():
    evaluator = Evaluator("ir_measures", ["RR@10"], qrels=QRELS)
    evaluator.update(run=RUN)
    with pytest.raises(OptionError, match="a rule of its own"):
        evaluator.compute()
    assert evaluate_rankings([[0, 1]], metrics=["RR@10"], convention="ir_measures")["RR@10"] == 0.5
    same = evaluate_run(QRELS, RUN, ["RR@10"], "ir_measures", ties="index")  # one order, of the user's choice
    assert (
        same.per_query["RR@10"].tolist()
        == evaluate_run(QRELS, RUN, ["RR"], "ir_measures", ties="index").per_query["RR"].tolist()
    )


@pytest.mark.parametrize("ids", [["a", "b", "c"], ["10", "9", "é"]])
def test_ties_by_ascending_id_are_those_by_descending_id_reversed(ids):
    run = {"q": dict.fromkeys(ids, 1.0)}
    for at, relevant in enumerate(sorted(ids, key=str.encode)):
        ascending = evaluate_run({"q": {relevant: 1}}, run, ["RR"], ties="docid-ascending")["RR"]
        assert ascending == 1 / (at + 1)
        assert evaluate_run({"q": {relevant: 1}}, run, ["RR"], ties="docid")["RR"] == 1 / (len(ids) - at)


# ranx ----------------------------------------------------------------------------------------------------------------


def rank_biased(qrels, run, p):
    """Raw grades times p ** (rank - 1), as ranx has it."""
    total = 0.0
    for query, judged in qrels.items():
        ranked = sorted(run[query], key=run[query].__getitem__, reverse=True)
        total += (1 - p) * sum(judged.get(item, 0) * p**at for at, item in enumerate(ranked))
    return total / len(qrels)


@pytest.mark.parametrize(
    ("name", "p"),
    [("rbp.95", 0.95), ("rbp@95", 0.95), ("RBP.8", 0.8), ("rbp.05", 0.05), ("rbp.955", 0.955), ("rbp.10", 0.1)],
)
def test_a_number_behind_rbp_is_p_under_ranx(name, p):
    qrels = {"q1": {"a": 1, "c": 2, "b": 0}, "q2": {"a": 1}}
    run = {"q1": {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.5}, "q2": {"b": 0.4, "a": 0.2}}
    result = evaluate_run(qrels, run, [name], "ranx")
    assert result[name] == pytest.approx(rank_biased(qrels, run, p), rel=1e-14)
    digits = name[4:]
    assert list(result) == [f"RBP(p=0.{digits})"]
    if name == "rbp.95":
        assert result[name] == pytest.approx(0.09387500000000007, rel=1e-14)  # ranx 0.3.21


@pytest.mark.parametrize("convention", sorted(set(CONVENTIONS) - {"ranx", "gap"}))
@pytest.mark.parametrize("name", ["rbp.95", "rbp_95", "RBP-95", "rbp.0.95", "ERR.20", "err_20", "rbp_resid.95"])
def test_a_number_is_never_a_depth_where_it_could_be_a_parameter(name, convention):
    with pytest.raises(OptionError, match=r"is not clear|takes no"):
        evaluate_rankings([[1, 0, 1]], metrics=[name], convention=convention)


def test_what_ranx_refuses_or_has_by_another_name():
    with pytest.raises(OptionError, match=r"ranx's rbp needs p, as in rbp\.95"):
        evaluate_run(QRELS, RUN, ["rbp"], "ranx")
    result = evaluate_run(QRELS, RUN, ["ndcg_burges@3", "dcg_burges"], "ranx")
    assert list(result) == ["nDCG(exp)@3", "DCG(exp)"]
    assert result["ndcg_burges@3"] == result["nDCG(exp)@3"]
    for name in ("map-l2", "rbp.95-l2", "rbp.95@2", "ndcg_burges"):
        with pytest.raises(OptionError):
            evaluate_run(QRELS, RUN, [name], "trec")


def test_grades_below_a_level_have_no_gain():
    qrels, run = {"q": {"a": 1, "c": 3, "e": 2}}, {"q": {"a": 0.9, "b": 0.8, "c": 0.7}}
    zeroed = {"q": {"a": 0, "c": 3, "e": 2}}
    for name in ("nDCG", "nDCG@2", "nDCG(exp)", "DCG", "DCG(exp)@3"):
        level = name.replace("(exp)", "(exp,rel=2)") if "exp" in name else name.replace("CG", "CG(rel=2)")
        assert evaluate_run(qrels, run, [level])[level] == evaluate_run(zeroed, run, [name])[name]
        assert evaluate_run(qrels, run, [name], level=2)[name] == evaluate_run(qrels, run, [name])[name]
    with pytest.raises(OptionError, match="no measure of ir_measures"):
        evaluate_run(qrels, run, ["nDCG(rel=2)"], "ir_measures")


def test_depths_of_other_metrics_are_read_as_before():
    result = evaluate_run(QRELS, RUN, ["P_95", "P.5", "map_cut.10", "ndcg_cut_10", "recall_100", "set_F.0.5", "RBP@95"])
    assert list(result) == ["P@95", "P@5", "mAP@10", "nDCG@10", "R@100", "set_F(beta=0.5)", "RBP(p=0.9)@95"]


# The packages themselves ---------------------------------------------------------------------------------------------


def drawn(seed):
    rng = random.Random(seed)
    names = [f"d{i}" for i in range(rng.choice([5, 30, 60]))] + ["D1", "10", "9", "é"]
    qrels = {
        str(q): {d: rng.randint(-1, rng.choice([1, 4])) for d in rng.sample(names, rng.randint(1, min(len(names), 20)))}
        for q in range(rng.randint(1, 12))
    }
    qrels["0"][names[0]] = 1
    steps = rng.choice([3, 10, 1000])
    run = {
        str(q): {
            d: rng.randint(0, steps) / steps + 1e-10 * rng.randint(0, 3) for d in rng.sample(names, rng.randint(1, 9))
        }
        for q in range(len(qrels) + 2)
        if q == 0 or rng.random() < 0.85
    }
    return qrels, run


@pytest.mark.parametrize("seed", range(5))
def test_ir_measures_itself_on_drawn_data(seed):
    theirs = pytest.importorskip("ir_measures")
    qrels, run = drawn(seed)
    for name in IR_VALUES:
        measure = theirs.parse_measure(name)
        values = {one.query_id: one.value for one in theirs.iter_calc([measure], qrels, run)}
        ours = evaluate_run(qrels, run, [name], "ir_measures")
        found = dict(zip(ours.query_ids.tolist(), ours.per_query[name].tolist(), strict=True))
        assert found.keys() == values.keys()
        assert all(math.isclose(found[q], values[q], rel_tol=0, abs_tol=4e-16 * name.startswith("RBP")) for q in found)
