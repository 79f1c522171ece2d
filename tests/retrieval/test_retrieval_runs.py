"""Runs against judgements: pytrec_eval bit for bit, naive twins for the rest, TREC files, bad input."""

from __future__ import annotations

import gzip
import random
import re
import tracemalloc
from fractions import Fraction
from pathlib import Path

import naive_retrieval as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legs import examples

from detmap.errors import InputError, OptionError
from detmap.formats import trec
from detmap.hits import TIE_RULES
from detmap.retrieval import Evaluator, document_ids, evaluate_run

TREC = Path(__file__).resolve().parents[3] / "shared" / "data" / "trec"
real_data = [pytest.mark.real_data, pytest.mark.skipif(not TREC.is_dir(), reason=f"{TREC} is not there")]

documents = st.sampled_from(["d1", "d10", "d2", "D3", "e", "zz", "é", "a-long-document-name/7", "9", "10"])
grades = st.integers(-1, 3)
scores = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 1e-10, 2.5, 2.5000001, -3.0, 1e-300, float("inf"), 1e300])
queries = st.sampled_from(["q1", "q2", "q10", "x"])
qrels_of = st.dictionaries(queries, st.dictionaries(documents, grades, min_size=1), min_size=1)
runs_of = st.dictionaries(queries, st.dictionaries(documents, scores, min_size=1), min_size=1)

NAMES = [
    *(
        "map",
        "ndcg",
        "Rprec",
        "bpref",
        "recip_rank",
        "infAP",
        "11pt_avg",
        "gm_map",
        "num_ret",
        "num_rel",
        "num_rel_ret",
    ),
    *(f"{m}_{k}" for m in ("P", "recall", "ndcg_cut", "map_cut") for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    *(f"success_{k}" for k in (1, 5, 10)),
    *(f"iprec_at_recall_{r / 10:.2f}" for r in range(11)),
]


def flat(table):
    rows = [(q, d, v) for q, inner in table.items() for d, v in inner.items()]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def evaluated(*args, **options):
    try:
        return evaluate_run(*args, **options)
    except InputError as error:
        assert "no query" in str(error)  # noqa: PT017
        return None


@given(qrels_of, runs_of, st.integers(1, 2), st.booleans())
@settings(max_examples=examples(300))
def test_equals_pytrec_eval_to_the_last_bit(qrels, run, level, judged_only):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    if any(max(inner.values()) < 0 for inner in qrels.values()):
        return  # trec_eval reads memory that it did not set, or never ends, where no document of a query is judged
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, pytrec_eval.supported_measures, level, judged_only)
    result = evaluated(qrels, run, NAMES, level=level, judged_only=judged_only)
    if result is None:
        return
    wanted = evaluator.evaluate(run)
    assert set(wanted) == set(result.query_ids.tolist())
    for name in NAMES:
        column = np.array([wanted[q][name] for q in result.query_ids.tolist()])
        if judged_only:  # trec_eval divides 0 by 0 where nothing is left of a ranking
            column[result.per_query["num_ret"] == 0] = np.nan_to_num(column[result.per_query["num_ret"] == 0])
        assert np.array_equal(result.per_query[name], column), name
        assert result[name] == pytrec_eval.compute_aggregated_measure(name, list(column)), name
    assert result.queries["missing"] == len(set(qrels) - set(run))
    assert result.queries["extra"] == len(set(run) - set(qrels))


@given(qrels_of, runs_of)
@settings(max_examples=examples(100))
def test_every_form_of_input_gives_the_same_bits(qrels, run):
    result = evaluated(qrels, run, NAMES)
    if result is None:
        return
    pandas = pytest.importorskip("pandas")
    qrels_lines = "".join(f"{q} 0 {d} {g}\n" for q, inner in qrels.items() for d, g in inner.items())
    run_lines = "".join(f"{q}\tQ0\t{d} 1 {s!r} name\n" for q, inner in run.items() for d, s in inner.items())
    q_columns, r_columns = flat(qrels), flat(run)
    shuffled = np.random.default_rng(0).permutation(len(r_columns[0]))
    forms = [
        (q_columns, r_columns),
        (qrels, r_columns),
        (q_columns, run),
        (q_columns, tuple(c[shuffled] for c in r_columns)),
        (
            pandas.DataFrame(dict(zip(("query_id", "doc_id", "relevance"), q_columns, strict=True))),
            dict(zip(("qid", "docno", "score"), r_columns, strict=True)),
        ),
        (qrels_lines.encode(), gzip.compress(run_lines.encode())),
    ]
    for form in forms:
        again = evaluate_run(*form, NAMES)
        assert again.query_ids.tolist() == result.query_ids.tolist()
        for name in NAMES:
            assert np.array_equal(again.per_query[name], result.per_query[name]), name


def test_integer_ids_are_ordered_as_text():
    qrels, run = {7: {9: 1, 10: 1, 100: 0}}, {7: {9: 0.5, 10: 0.5, 100: 0.5}}
    as_text = evaluate_run({"7": {str(d): g for d, g in qrels[7].items()}}, {"7": {str(d): 0.5 for d in run[7]}}, "map")
    for form in ((qrels, run), (flat(qrels), flat(run))):
        assert dict(evaluate_run(*form, "map")) == dict(as_text) == {"mAP": (1 + 2 / 3) / 2}


def in_order(run, ties):
    docs = list(run)
    return [docs[i] for i in naive.order_by_distance([-run[d] for d in docs], ties=ties, key=docs)]


@given(qrels_of, runs_of, st.sampled_from(["index", "reversed", "docid"]))
@settings(max_examples=examples(150))
def test_measures_beyond_trec_eval_equal_twins(qrels, run, ties):
    names = ["ERR@3", "ERR(max=4)", "RBP(p=0.8)", "nDCG(exp)@3", "R_cap@2", "F1@3"]
    names += ["judged@2", "bpref"] if ties != "reversed" else []
    result = evaluated(qrels, run, names, ties=ties, single=False)
    if result is None:
        return
    highest = max(max(g for inner in qrels.values() for g in inner.values()), 1)
    shared = [q for q in qrels if q in run]
    highest = max([1, *(g for q in shared for g in qrels[q].values())])
    for i, q in enumerate(result.query_ids.tolist()):
        order = [qrels[q].get(d) for d in in_order(run[q], ties)]
        gains = [max(g or 0, 0) for g in order]
        positives = sum(g >= 1 for g in qrels[q].values())
        if not positives:
            continue
        found = sum(g >= 1 for g in gains[:3])
        wanted = {
            "ERR@3": naive.err(gains, highest, 3),
            "ERR(max=4)": naive.err(gains, 4),
            "RBP(p=0.8)": naive.rbp(gains, 0.8, max(qrels[q].values())),
            "nDCG(exp)@3": naive.ndcg(gains, list(qrels[q].values()), 3, exponential=True),
            "R_cap@2": Fraction(sum(g >= 1 for g in gains[:2]), min(2, positives)),
            "F1@3": Fraction(2 * found, 3 + positives),
            "judged@2": Fraction(sum(g is not None for g in order[:2]), min(2, len(order))),
            "bpref": naive.bpref(order, positives, sum(g == 0 for g in qrels[q].values())),
        }
        for name in names:
            assert result.per_query[name][i] == pytest.approx(float(wanted[name]), abs=1e-14), name


@given(qrels_of, runs_of)
@settings(max_examples=examples(60))
def test_ranx_where_it_is_right(qrels, run):
    shared = sorted(set(qrels) & set(run))
    qrels = {q: {d: max(g, 0) for d, g in qrels[q].items()} for q in shared}
    run = {q: run[q] for q in shared}
    result = evaluated(qrels, run, ["AP", "RR", "P@3"], "ranx") if shared else None
    if result is None:
        return
    for i, q in enumerate(shared):
        flags = [int(qrels[q].get(d, 0) > 0) for d in in_order(run[q], "index")]
        positives = sum(g > 0 for g in qrels[q].values())
        wanted = naive.step_ap(flags, positives) if positives else 0
        assert result.per_query["AP"][i] == pytest.approx(float(wanted), abs=1e-15)


def test_conventions_for_whole_projects():
    qrels = {"a": {"x": 1, "y": 1, "a": 1}, "b": {"z": 1}, "c": {"x": 1}}
    run = {"a": {"a": 9.0, "n": 3.0, "x": 2.0, "m": 1.0, "y": -1.0}, "b": {"n": 1.0, "z": 0.0}}
    assert evaluate_run(qrels, run, "map", "trec")["map"] == ((1 + 2 / 3 + 3 / 5) / 3 + 1 / 2) / 2
    # identical ids go, means have five digits
    assert evaluate_run(qrels, run, "map", "beir")["map"] == round(((1 / 2 + 2 / 4) / 3 + 1 / 2) / 2, 5)
    # the order given, over all judged queries
    assert evaluate_run(qrels, run, "MRR@10", "msmarco")["MRR@10"] == (1 + 1 / 2) / 3
    # items of score 0 or less are dropped, and only hits count
    assert evaluate_run(qrels, run, "mAP", "torchmetrics")["mAP"] == (1 + 2 / 3) / 2 / 2
    assert evaluate_run(qrels, run, "mAP@3", "kaggle")["mAP@3"] == ((1 + 2 / 3) / 3 + 1 / 2) / 3
    assert evaluate_run(qrels, run, "mAP", missing="zero")["mAP"] == ((1 + 2 / 3 + 3 / 5) / 3 + 1 / 2) / 3


def test_empty_queries_are_a_choice():
    qrels, run = {"a": {"x": 1}, "b": {"x": 0}}, {"a": {"n": 2.0, "x": 1.0}, "b": {"x": 1.0}}
    for empty, mean in (("skip", 0.5), ("zero", 0.25), ("one", 0.75)):
        result = evaluate_run(qrels, run, "mAP", empty=empty)
        assert result["mAP"] == mean
        assert result.queries["empty"] == 1
    assert np.isnan(evaluate_run(qrels, run, "mAP", empty="nan")["mAP"])
    assert evaluate_run(qrels, run, "gm_map", empty="skip")["gm_map"] == pytest.approx(0.5, abs=1e-15)
    with pytest.raises(InputError, match="query b"):
        evaluate_run(qrels, run, "mAP", empty="error")


def test_names_are_found_in_any_spelling():
    result = evaluate_run({"a": {"x": 1}}, {"a": {"x": 1.0}}, ["ndcg_cut_10", "P.5", "recall@100", "rank-1", "MAP"])
    assert list(result) == ["nDCG@10", "P@5", "R@100", "CMC@1", "mAP"]
    assert result["nDCG@10"] == result["ndcg@10"] == result["ndcg_cut.10"] == result["map"] == result["Rank-1"] == 1.0
    assert result.per_query["P_5"].tolist() == [0.2]
    with pytest.raises(KeyError, match=r"no metric .P@7.; did you mean .P@5"):
        result["P@7"]
    assert "[trec: step AP / all relevant, ties docid" in str(result)
    assert result.to_dict()["per_query"][0]["AP"] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        result.per_query["AP"][0] = 0


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ({"a": {"x": 1}}, {"a": {"x": float("nan")}}, "a score is NaN"),
        ({"a": {"x": 1}}, {"b": {"x": 1.0}}, "no query of the run is judged"),
        ({"a": {"x": 0}}, {"a": {"x": 1.0}}, "no document is judged relevant"),
        ((["a", "a"], ["x", "x"], [1, 1]), {"a": {"x": 1.0}}, "judged twice"),
        ({"a": {"x": 1}}, (["a", "b", "a"], ["x", "x", "x"], [1, 2, 3]), "'x' is there twice"),
        ({"a": {"x": 1}}, (["a"], ["x"], [1, 2]), "expected 1 numbers"),
        ({"a": {"x": 1}}, (["a"], ["x", "y"], [1, 2]), "2 documents for 1 queries"),
        ({"a": {"x": 1}}, {"queries": ["a"]}, "no column named"),
        ({"a": {"x": 1}}, 7, "cannot read a int"),
        (b"a 0 x 1\na 0 y\n", {"a": {"x": 1.0}}, r"qrels:2: 3 fields"),
        (b"a 0 x one\n", {"a": {"x": 1.0}}, r"qrels:1: a grade must be an integer"),
        (b"a 0 x 1\n", b"\n# note\na Q0 x 1 0x1 n\n", r"run:3: a score must be a number"),
        (b"a 0 x 1\n", b"a Q0 x 1 nan n\n", r"run:1: a score must be a number"),
        (b"a 0 x 1\n", b"a Q0 x 1 1_0 n\n", r"run:1: a score must be a number"),
        (b"a 0 x 1\n", b"a Q0 x 1 1\n", r"run:1: 5 fields"),
        (b"a 0 x 1\n", b"# nothing\n", r"run: holds no lines"),
        (b"a 0 x 1\0\n", b"a Q0 x 1 1 n\n", r"qrels: is binary data of no known form; write lines of text"),
    ],
)
def test_bad_input_says_what_is_wrong(qrels, run, message):
    with pytest.raises(InputError, match=message):
        evaluate_run(qrels, run, "map")


def test_bad_options():
    for change, message in [
        ({"level": "1"}, "level must be"),
        ({"depth": 0}, "depth must be"),
        ({"ties": 1}, "ties must"),
    ]:
        with pytest.raises(OptionError, match=message):
            evaluate_run({"a": {"x": 1}}, {"a": {"x": 1.0}}, "map", **change)
    with pytest.raises(OptionError, match="is defined for ties='index' or 'docid' or 'docid-ascending', not"):
        evaluate_run({"a": {"x": 1}}, {"a": {"x": 1.0}}, "bpref", ties="best")


def generated_files(seed):
    """A run and judgements as columns of text: ties, tabs, documents that begin alike, queries not together or missing."""
    rng = random.Random(seed)
    names = sorted({rng.choice(["D", "doc-00000000", "é", "zz"]) + str(rng.randrange(10**4)) for _ in range(60)})
    judged = [(f"q{q}", d, str(rng.randrange(-1, 3))) for q in range(9) for d in rng.sample(names, 12)]
    ranked = [
        (f"q{q}", d, rng.choice(["1.5", "2", "2.0", "2.00000001", "-0", "0", "1e-3", "7.123456"]))
        for q in range(2, 12)
        for d in rng.sample(names, 30)
    ]
    rng.shuffle(judged)
    rng.shuffle(ranked)
    return judged, ranked


def written(judged, ranked, junk=""):
    blank = [" ", "\t", "  "]
    qrels = "".join(f"{q}{blank[i % 3]}0 {d} {g}\n" for i, (q, d, g) in enumerate(judged))
    run = "".join(f"{q} Q0 {d}{blank[i % 3]}{i} {s} name{' more' * (i % 2)}\n" for i, (q, d, s) in enumerate(ranked))
    return "# judgements\n\n" + qrels + junk, "  # a 0 b 1 2 run\r\n \t\n" + run + junk


def either_way(monkeypatch, qrels, run, *options):
    """What evaluating files gives, as bytes of numbers or as an error, through the scanner and through the slow reader."""
    found = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(trec, "_WORTH_SCANNING", least)
        try:
            result = evaluate_run(qrels, run, NAMES, *options)
            columns = {name: result.per_query[name].tobytes() for name in NAMES}
            found.append((result.query_ids.tolist(), columns, result.queries))
        except InputError as error:
            found.append(str(error))
    return found


@pytest.mark.compiled
@pytest.mark.parametrize("convention", ["trec", "trec10", "beir", "msmarco"])
@pytest.mark.parametrize("seed", range(5))
def test_files_scanned_or_read_equal_arrays(seed, convention, tmp_path, monkeypatch):
    judged, ranked = generated_files(seed)
    qrels, run = written(judged, ranked)
    (tmp_path / "qrels").write_text(qrels, newline="")
    (tmp_path / "run").write_text(run, newline="")
    (tmp_path / "run.gz").write_bytes(gzip.compress(run.encode()))
    columns = [
        (
            *(np.array(c) for c in zip(*((q, d) for q, d, _ in rows), strict=True)),
            np.array([float(v) for *_, v in rows]),
        )
        for rows in (judged, ranked)
    ]
    as_arrays = either_way(monkeypatch, *columns, convention)
    assert len(as_arrays[0][0]) >= 7
    scanned = []
    for name in ("scan_qrels", "scan_run"):
        scan = getattr(trec, name)
        monkeypatch.setattr(trec, name, lambda data, scan=scan: scanned.append(scan(data)) or scanned[-1])
    for form in ((tmp_path / "qrels", tmp_path / "run"), (str(tmp_path / "qrels"), tmp_path / "run.gz")):
        assert either_way(monkeypatch, *form, convention) == as_arrays
    assert len(scanned) == 4
    assert all(columns is not None for columns in scanned)


@pytest.mark.parametrize(
    ("qrels_junk", "run_junk", "message"),
    [
        ("", "q5 Q0 D1 1 inf name\n", None),
        ("", "q5 Q0 D1 1 1e999 name\n", None),
        ("", "q5 Q0 D1 1 007.5 name\n", None),
        ("", "q5 Q0\x0bD1 1 7 name\n", None),
        ("q5 0 D1 +1\n", "", None),
        ("", "q5 Q0 D1 1 nan name\n", r"run:303: a score must be a number"),
        ("", "q5 Q0 D1 1 1_0 name\n", r"run:303: a score must be a number"),
        ("", "q5 Q0 D1 1 7\n", r"run:303: 5 fields where 6 belong"),
        ("", "q5 Q0 D1 1 7 name\0\n", r"run: holds a zero byte"),
        ("q5 0 D1\n", "", r"qrels:111: 3 fields where 4 belong"),
        ("q5 0 D1 1 1\n", "", r"qrels:111: 5 fields where 4 belong"),
        ("q5 0 D1 1.5\n", "", r"qrels:111: a grade must be an integer"),
        ("q5 0 D1 9223372036854775808\n", "", r"qrels:111: a grade must be an integer"),
        ("q5 0 D1 1\nq5 0 D1 2\n", "", "document 'D1' is judged twice"),
        ("", "q5 Q0 D1 1 7 name\nq5 Q0 D1 1 7 name\n", "document 'D1' is there twice"),
    ],
)
def test_junk_in_files_is_the_same_error_either_way(qrels_junk, run_junk, message, tmp_path, monkeypatch):
    qrels, run = written(*generated_files(0))
    assert "D1 " not in qrels + run
    (tmp_path / "qrels").write_text(qrels + qrels_junk, newline="")
    (tmp_path / "run").write_text(run + run_junk, newline="")
    one, other = either_way(monkeypatch, tmp_path / "qrels", tmp_path / "run")
    assert one == other
    if message is None:
        assert len(one[0]) == 7
    else:
        assert re.search(message, one)


def test_files_without_lines_and_without_utf8(monkeypatch):
    for qrels, run, name in ((b"a 0 x 1\n", b"# nothing\n" * 3, "run"), (b"\n" * 20, b"a Q0 x 1 1 n\n", "qrels")):
        one, other = either_way(monkeypatch, qrels, run)
        assert one == other
        assert f"{name}: holds no lines" in one
    one, other = either_way(monkeypatch, b"caf\xe9 0 \xff 1\n", b"caf\xe9 Q0 \xff 1 2 n\ncaf\xe9 Q0 \xfe 1 3 n\n")
    assert one == other
    assert one[0] == ["caf\\xe9"]


@pytest.mark.compiled
def test_large_files_are_scanned(tmp_path, monkeypatch):
    line = b"q Q0 D%07d 1 %d.5 name\n"
    (tmp_path / "run").write_bytes(b"".join(line % (i, i) for i in range(1 << 16)))
    monkeypatch.setattr(trec, "_fields", None)
    assert (tmp_path / "run").stat().st_size >= 1 << 20
    assert evaluate_run({"q": {"D0065534": 1}}, tmp_path / "run", "MRR")["MRR"] == 0.5


def expected_output(name):
    rows = [line.split()[:3] for line in (TREC / name).read_text().splitlines()]
    table = {}
    for measure, query, value in rows:
        table.setdefault(query, {})[measure] = value
    return table


@pytest.mark.parametrize(
    ("output", "qrels", "run", "options", "least"),
    [
        pytest.param("out.test", "qrels.test", "results.test", {}, 28, marks=real_data),
        pytest.param("out.test.a", "qrels.test", "results.test", {}, 65, marks=real_data),
        pytest.param("out.test.aq", "qrels.test", "results.test", {}, 65, marks=real_data),
        pytest.param("out.test.aqc", "qrels.test", "results.trunc", {"missing": "zero"}, 65, marks=real_data),
        pytest.param(
            "out.test.aqcM", "qrels.test", "results.trunc", {"missing": "zero", "depth": 100}, 65, marks=real_data
        ),
        pytest.param("out.test.aql", "qrels.rel_level", "results.test", {"level": 2}, 65, marks=real_data),
        pytest.param("out.comment.test", "qrels.comment.test", "results.comment.test.gz", {}, 28, marks=real_data),
    ],
)
@pytest.mark.compiled
def test_trec_eval_10_outputs(output, qrels, run, options, least):
    wanted = expected_output(output)
    names = []
    for name in wanted["all"]:
        try:
            evaluate_run({"a": {"x": 1}}, {"a": {"x": 1.0}}, name)
            names.append(name)
        except OptionError:
            continue  # a measure that detmap does not have
    assert len(names) >= least
    result = evaluate_run(TREC / qrels, TREC / run, names, "trec10", **options)
    for query, values in wanted.items():
        for name in set(names) & set(values):
            at = None if query == "all" else result.query_ids.tolist().index(query)
            got = result[name] if at is None else result.per_query[name][at]
            assert f"{got:.4f}" == f"{float(values[name]):.4f}", (query, name)


def many_mappings(count=40):
    """Judgements and a run of several queries: tied scores, documents with the name of their query, queries of one side."""
    rng = random.Random(3)
    names = [*(f"d{i}" for i in range(30)), *(f"q{i}" for i in range(count)), "", "é", "\ud800", "a-long-name" * 9]
    judged = {f"q{i}": {d: rng.randrange(-1, 3) for d in rng.sample(names, 12)} for i in range(0, count, 2)}
    ranked = {f"q{i}": {d: rng.choice([0.5, 1.0, -2.0]) for d in rng.sample(names, i % 20)} for i in range(count - 5)}
    return judged, ranked


@pytest.mark.parametrize("together", [1, 7, 1 << 16])
@pytest.mark.parametrize(
    "options",
    [{}, {"missing": "zero"}, {"judged_only": True}, {"depth": 4}, {"convention": "beir"}, {"positive_scores": True}],
)
def test_a_run_of_mappings_is_looked_at_a_few_queries_at_a_time(together, options, monkeypatch):
    """The result is that of the same run as columns, where all is looked at together."""
    monkeypatch.setattr(document_ids, "_TOGETHER", together)
    judged, ranked = many_mappings()
    rows = [(q, d, v) for q, inner in ranked.items() for d, v in inner.items()]
    whole = evaluate_run(judged, tuple(map(list, zip(*rows, strict=True))), ["map", "ndcg_cut_10"], **options)
    # An empty query of a run is one in columns that is not there.
    own = evaluate_run(judged, {q: inner for q, inner in ranked.items() if inner}, ["map", "ndcg_cut_10"], **options)
    assert dict(own) == dict(whole)
    for name in whole:
        np.testing.assert_array_equal(own.per_query[name], whole.per_query[name])


@pytest.mark.parametrize("ties", TIE_RULES)
def test_judged_documents_alone_are_ranked_as_if_there_were_no_others(ties):
    judged, ranked = many_mappings()
    alone = {q: {d: s for d, s in inner.items() if judged.get(q, {}).get(d, -1) >= 0} for q, inner in ranked.items()}
    names = ["map", "MRR", "P_2", "num_ret"] if ties != "expected" else ["map", "MRR", "P_2"]
    found = evaluate_run(judged, ranked, names, ties=ties, judged_only=True)
    wanted = evaluate_run(judged, alone, names, ties=ties)
    for name in names:
        assert found.per_query[name].tolist() == wanted.per_query[name].tolist(), name


def test_of_judged_documents_those_are_ranked_that_are_among_the_first():
    """trec_eval's -M cuts before -J takes out."""
    judged, ranked = many_mappings()
    run = evaluate_run({"q": {"b": 1, "d": 1, "c": 0}}, {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}, ["map", "num_ret"],
                       depth=3, judged_only=True)  # fmt: skip
    assert run.per_query["map"].tolist() == [0.5]
    assert run["num_ret"] == 2
    for depth in (1, 4, 30):
        first = {
            q: dict(
                sorted(inner.items(), key=lambda pair: (pair[1], pair[0].encode("utf-8", "surrogatepass")))[-depth:]
            )
            for q, inner in ranked.items()
        }
        found = evaluate_run(judged, ranked, NAMES, depth=depth, judged_only=True)
        wanted = evaluate_run(judged, first, NAMES, judged_only=True)
        for name in NAMES:
            assert found.per_query[name].tolist() == wanted.per_query[name].tolist(), name


@pytest.mark.parametrize("together", [1, 1 << 16])
@pytest.mark.parametrize("query", ["q2", "q33"])  # judged, and not
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (7, "ids must be all integers or all strings"),
        (b"7", "ids must be all integers or all strings"),
        (None, "missing"),
        ("a\0b", "zero byte"),
        ("é" * 513, "more than 1024 bytes"),
    ],
)
def test_a_bad_document_in_any_query_of_a_run_is_refused_with_its_place(together, query, bad, message, monkeypatch):
    monkeypatch.setattr(document_ids, "_TOGETHER", together)
    judged, ranked = many_mappings()
    ranked[query][bad] = 0.5
    with pytest.raises(InputError, match=message) as error:
        evaluate_run(judged, ranked, ["map"])
    assert query in str(error.value)


def test_keys_of_mappings_are_ids_like_others():
    """Some of them, all of them, and those of an empty mapping."""
    given = document_ids.Keys([{"a": 1, "": 2}, {}, {"é": 3}], [1, 2, 3], "run", "documents")
    assert document_ids.texts(given).tolist() == [b"a", b"", "é".encode()]
    assert given[np.array([2, 0, 0])].tolist() == ["é".encode(), b"a", b"a"]
    assert given[np.empty(0, np.int64)].tolist() == given.located(1, 2).tolist() == []
    assert given.name(2) == "query 3, document 'é'"


@pytest.mark.compiled
def test_a_run_of_mappings_takes_little_memory_besides_its_scores(monkeypatch):
    """Less than twice the eight bytes of each score: the documents are not copied."""
    monkeypatch.setattr(document_ids, "_TOGETHER", 1 << 12)
    count, depth = 200, 1000
    ranked = {str(q): {str(q * depth + d): float(d) for d in range(depth)} for q in range(count)}
    judged = {str(q): {str(q * depth): 1} for q in range(count)}
    evaluate_run(judged, ranked, ["map"])  # which loads the kernels
    tracemalloc.start()
    try:
        evaluate_run(judged, ranked, ["map"])
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 16 * count * depth


@pytest.mark.compiled
def test_logarithms_are_those_of_the_library_of_c():
    """numpy's differ in the last bit, of 3 values in 1,000 with one version and of 200 with another."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    count = 3000
    relevant = np.random.default_rng(8).integers(1, 200, (count, 2))
    qrels = {f"q{q}": {f"d{d}": 1 for d in range(max(pair))} for q, pair in enumerate(relevant.tolist())}
    run = {f"q{q}": {f"d{d}": float(-d) for d in range(min(pair))} for q, pair in enumerate(relevant.tolist())}
    wanted = pytrec_eval.RelevanceEvaluator(qrels, {"gm_map", "gm_bpref"}).evaluate(run)
    result = evaluated(qrels, run, ["gm_map", "gm_bpref"])
    for name in ("gm_map", "gm_bpref"):
        assert result.per_query[name].tolist() == [wanted[q][name] for q in result.query_ids.tolist()]


@pytest.mark.parametrize("ties", ["index", "docid", "docid-ascending", "expected", "collapsed", "best", "worst"])
def test_a_depth_is_that_of_a_run_of_so_few_lines(ties):
    """Also where the depth cuts a group of tied documents, in values, in tie bands, and in a saved evaluator."""
    rng = np.random.default_rng(4)
    metrics = ["AP", "P@3", "RR", "nDCG"]
    for _ in range(examples(40)):
        depth = int(rng.integers(1, 9))
        qrels = {"q": {f"d{at}": int(rng.integers(-1, 3)) for at in range(8)} | {"z": 1}}
        run = {f"d{at}": float(rng.integers(0, 3)) for at in rng.permutation(10).tolist()}
        listed = list(run) if not ties.startswith("docid") else sorted(run, reverse=ties == "docid")
        few = set(sorted(listed, key=run.__getitem__, reverse=True)[:depth])
        wanted = evaluate_run(qrels, {"q": {d: s for d, s in run.items() if d in few}}, metrics, "detmap", ties=ties)
        found = evaluate_run(qrels, {"q": run}, metrics, "detmap", ties=ties, depth=depth)
        assert dict(found) == dict(wanted)
        assert np.array_equal(found.tie_bands(), wanted.tie_bands(), equal_nan=True)
        evaluator = Evaluator("detmap", metrics, qrels=qrels, ties=ties, depth=depth)
        evaluator.update(run={"q": run})
        assert dict(Evaluator.from_bytes(evaluator.to_bytes()).compute()) == dict(wanted)
