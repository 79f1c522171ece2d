"""The drop-in for pytrec_eval: arguments, errors, files, and the patch."""

from __future__ import annotations

import gzip
import random
import sys
import tracemalloc
import types
from collections import OrderedDict, defaultdict
from dataclasses import replace
from datetime import date
from decimal import Decimal
from importlib import util
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from test_pytrec_eval_drawn import assert_alike

import detmap
from detmap import patch_pytrec_eval
from detmap import pytrec_eval as ours
from detmap.errors import DetmapError, InputError
from detmap.retrieval import CONVENTIONS, evaluate_run, runs
from detmap.retrieval.metrics import parse_all

theirs = pytest.importorskip("pytrec_eval")

TREC = Path(__file__).resolve().parents[3] / "shared" / "data" / "trec"
QRELS = {"q1": {"a": 1, "c": 2, "b": 0}, "q2": {"a": 1}}
RUN = {"q1": {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.5}, "q2": {"b": 0.4, "a": 0.2}}


def ended(api, qrels, measures, run, **options):
    """What comes of an evaluation: its result, or the exception that ends it."""
    try:
        return api.RelevanceEvaluator(qrels, measures, **options).evaluate(run)
    except Exception as error:  # whatever the original raises
        return type(error), str(error)


@pytest.mark.parametrize(
    "run",
    [
        *(
            None,
            [],
            {},
            0,
            5,
            "x",
            [("q1", {"a": 1.0})],
            {"q1": []},
            {"q1": None},
            {1: {"a": 1.0}},
            {b"q1": {"a": 1.0}},
        ),
        *(
            {"q1": {1: 1.0}},
            {"q1": {"a": 1.0, 2: 1.0}},
            {"q1": {b"a": 1.0}},
            {"z": {1: 1.0}},
            {"z": {"a": "x"}},
            {"z": 1},
        ),
        *({"q1": {"a": "1"}}, {"q1": {"a": None}}, {"q1": {"a": np.float32(1)}}, {"q1": {"a": np.int64(1)}}),
        *(
            {"q1": {"a": np.float64(1)}},
            {"q1": {"a": True, "b": 1}},
            {"q1": {"a": 1j}},
            {"q1": {"a": 2**70, "b": -1.0}},
        ),
        *(defaultdict(dict, RUN), OrderedDict(RUN), {q: OrderedDict(one) for q, one in RUN.items()}, {"z": {"a": 1.0}}),
        *(types.MappingProxyType(RUN), {"q1": types.MappingProxyType(RUN["q1"])}, {"q2": {"a": 1}, "q1": {}}),
    ],
)
def test_runs_end_alike(run):
    for measures in (["map", "P_5"], []):
        assert ended(ours, QRELS, measures, run) == ended(theirs, QRELS, measures, run)


@pytest.mark.parametrize(
    "qrels",
    [
        *(None, [], 5, {}, {"q1": []}, {"q1": [1]}, {"q1": None}, {1: {"a": 1}}, {"q1": {1: 1}}, {"q1": {"a": 1.0}}),
        *({"q1": {"a": np.int64(1)}}, {"q1": {"a": "1"}}, {"q1": {"a": None}}, {"q1": {"a": True, "b": 0}}, {"q1": {}}),
        *(
            {"q1": {"a": -5, "c": 1}},
            {"q1": {}, "q2": {"a": 1}},
            defaultdict(dict, QRELS),
            types.MappingProxyType(QRELS),
        ),
        {"q1": types.MappingProxyType(QRELS["q1"])},
    ],
)
def test_judgements_end_alike(qrels):
    assert ended(ours, qrels, ["map", "ndcg"], RUN) == ended(theirs, qrels, ["map", "ndcg"], RUN)


@pytest.mark.parametrize(
    "measures",
    [
        *(
            None,
            "map",
            [1],
            [None],
            ["prefs"],
            ["all_prefs"],
            ["qrels_jg"],
            ["MAP"],
            ["P_-5"],
            "P",
            [["map"]],
            {"map": 1},
        ),
        *(
            ["P_5.10"],
            ["P.5abc"],
            ["P_5,x"],
            ["all_trec.5"],
            ["official"],
            ["official.3"],
            ["map."],
            ["map_cut"],
            [""],
            [],
        ),
        *(
            ["rbp"],
            ["unj_5"],
            ["P", "P_3"],
            ["P.5", "P_3"],
            ["ndcg_cut.5.5"],
            ["P_3.0"],
            iter(["map"]),
            ["P_1000000000000"],
        ),
    ],
)
def test_measures_end_alike(measures):
    given = list(measures) if hasattr(measures, "__next__") else measures
    found, wanted = (ended(api, QRELS, given, RUN) for api in (ours, theirs))
    if isinstance(wanted, dict):
        assert_alike(found, wanted)
    elif wanted[0] is ValueError and len(given[0]) > 3 and given[0] in theirs.supported_nicknames:
        assert found[0] is ValueError  # which of the measures of a nickname is named depends on the order of a set
        assert found[1].startswith("unsupported measure ")
    else:
        assert found == wanted


@pytest.mark.parametrize(
    "options",
    [
        *({"relevance_level": level} for level in (0, 1.0, True, "1", None, 2**31, 2**40, 2, np.int64(2))),
        *({"judged_docs_only_flag": flag} for flag in (None, 2, "x", True, 0)),
    ],
)
def test_options_end_alike(options):
    assert ended(ours, QRELS, ["map"], RUN, **options) == ended(theirs, QRELS, ["map"], RUN, **options)


@pytest.mark.parametrize(
    ("qrels", "measures", "run", "message"),
    [
        (QRELS, ["P_0"], RUN, "P: a cutoff must be at least 1, not 0"),
        (QRELS, ["P_5", "P_5.0"], RUN, "P: a cutoff is there twice: 5,5.0"),
        (QRELS, ["ndcg.10"], RUN, "ndcg.10: detmap takes gains of grades above 0 for ndcg"),
        (QRELS, ["iprec_at_recall.1.05"], RUN, "the depth must be a recall from 0 to 1"),
        (QRELS, ["map"], {"q1": {"a": float("nan")}}, "run: query 'q1', document 'a', field 'scores': a score is NaN"),
        (QRELS, ["map"], {"q1": {"a\0b": 1.0}}, "an id holds a zero byte"),
        (QRELS, ["map"], {"q1\0": {"a": 1.0}}, "an id holds a zero byte"),
        (QRELS, ["map"], {"q1": {"a": 10**400}}, "too large"),
        ({"q1": {"a": 2**40}}, ["map"], RUN, "a grade must be from -2"),
        ({"q1": {"a\0b": 1}}, ["map"], RUN, "an id holds a zero byte"),
    ],
)
def test_what_pytrec_eval_dies_of_or_gets_wrong_is_refused_in_one_line(qrels, measures, run, message):
    with pytest.raises(DetmapError) as error:
        ours.RelevanceEvaluator(qrels, measures).evaluate(run)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert isinstance(error.value, ValueError)


def test_lone_surrogates_and_queries_judged_below_zero_have_values():
    """The original dies of both."""
    found = ours.RelevanceEvaluator({"q": {"\ud800": 1, "a": 0}}, ["map"]).evaluate({"q": {"\ud800": 1.0, "a": 1.0}})
    assert found == {"q": {"map": 1.0}}
    assert ours.RelevanceEvaluator({"q": {"a": -1}}, ["map", "bpref"]).evaluate({"q": {"a": 1.0}}) == {
        "q": {"map": 0.0, "bpref": 0.0}
    }


def test_names_equal():
    assert ours.supported_measures == theirs.supported_measures
    assert {name: set(names) for name, names in theirs.supported_nicknames.items()} == ours.supported_nicknames
    assert type(ours.supported_measures) is type(theirs.supported_measures)
    assert set(ours.__all__) >= set(theirs.__all__)


def test_an_evaluator_does_not_depend_on_what_becomes_of_its_judgements():
    qrels = {query: dict(grades) for query, grades in QRELS.items()}
    evaluator = ours.RelevanceEvaluator(qrels, {"map"})
    first = evaluator.evaluate(RUN)
    qrels["q1"].clear()
    del qrels["q2"]
    assert evaluator.evaluate(RUN) == first == {"q1": {"map": 0.8333333333333333}, "q2": {"map": 0.5}}
    assert evaluator.evaluate({"q2": RUN["q2"], "x": {"a": 1.0}}) == {"q2": {"map": 0.5}}


@pytest.mark.parametrize("values", [[0.5, 0.25, 1.0], [0.1] * 7, [-11.512925464970229, -0.5], (1.0,), [np.float64(3)]])
def test_aggregated_measures(values):
    for name in ("map", "num_ret", "gm_map", "ndcg_cut_10"):
        found = ours.compute_aggregated_measure(name, values)
        assert found == theirs.compute_aggregated_measure(name, values)
        assert type(found) is float
    assert ours.compute_aggregated_measure("num_ret", []) == 0
    with pytest.warns(RuntimeWarning):
        assert np.isnan(ours.compute_aggregated_measure("map", []))


LINES = ["q1 Q0 a 1 0.5 x\n", " q1\tQ0  b 2 -1e3 x", "q2 Q0 a 1 nan x\r\n", "q2 Q0 c 1 1_0 x"]


@pytest.mark.parametrize(
    "lines",
    [LINES, [], [*LINES, LINES[0]], ["q1 Q0 a 1 0.5"], ["q1 Q0 a 1 0.5 x y"], [""], ["q1 Q0 a 1 x x"], "q1", None],
)
def test_lines_of_runs_end_alike(lines):
    def parsed(api):
        try:
            found = api.parse_run(lines)
            return type(found), repr(found)
        except Exception as error:
            return type(error)

    assert parsed(ours) == parsed(theirs)


@pytest.mark.parametrize(
    "lines", [["q 0 a 1", "q 0 b -1\n", "p 0 a 2"], [], ["q 0 a 1", "q 0 a 1"], ["q 0 a"], ["q 0 a 1.0"], ["q 0 a 1 x"]]
)
def test_lines_of_judgements_end_alike(lines):
    def parsed(api):
        try:
            found = api.parse_qrel(lines)
            return type(found), repr(found)
        except Exception as error:
            return type(error)

    assert parsed(ours) == parsed(theirs)


@pytest.mark.real_data
@pytest.mark.skipif(not TREC.is_dir(), reason=f"{TREC} is not there")
@pytest.mark.compiled
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ("qrels.test", "results.test"),
        ("qrels.rel_level", "results.test"),
        ("qrels.test", "results.trunc"),
        ("qrels.comment.test", "results.comment.test.gz"),
    ],
)
def test_real_runs(qrels, run, level, judged_only):
    def read(name):
        data = (TREC / name).read_bytes()
        text = (gzip.decompress(data) if name.endswith("gz") else data).decode()
        # pytrec_eval reads no comments, and no text behind the name of a run.
        return [" ".join(line.split()[:6]) for line in text.splitlines() if line.strip() and not line.startswith("#")]

    judged, ranked = ours.parse_qrel(read(qrels)), ours.parse_run(read(run))
    assert judged == theirs.parse_qrel(read(qrels))
    assert ranked == theirs.parse_run(read(run))
    # trec_eval reads what it did not write where the level is above all grades but by one.
    judged = {query: grades for query, grades in judged.items() if max(grades.values()) >= level - 1}
    arguments = (judged, theirs.supported_measures, level, judged_only)
    wanted = theirs.RelevanceEvaluator(*arguments).evaluate(ranked)
    assert len(wanted) >= 2
    assert_alike(ours.RelevanceEvaluator(*arguments).evaluate(ranked), wanted)


class Score(float):
    """A float of another type."""


@pytest.mark.parametrize(
    "other",
    [{"a": 2, "b": 1.0}, {"a": True, "b": Score(0.5)}, {"a": np.float64(2), "b": 0.5}, {"\ud800": 3.0, "a": 2.0}],
)
@pytest.mark.parametrize("tied", [False, True])
def test_scores_of_other_types_among_floats(other, tied):
    """One query whose documents cannot be read at once with those of its neighbours changes no value of these."""
    rng = np.random.default_rng(7)
    run = {f"q{q}": {f"d{d}": float(rng.integers(3) if tied else rng.normal()) for d in range(50)} for q in range(9)}
    qrels = {query: {f"d{d}": int(rng.integers(3)) for d in range(30)} for query in run} | {"other": {"a": 1, "b": 2}}
    measures = {"map", "ndcg", "recip_rank"}
    assert_alike(
        ours.RelevanceEvaluator(qrels, measures).evaluate(run), theirs.RelevanceEvaluator(qrels, measures).evaluate(run)
    )
    mixed = {"q0": run["q0"], "other": other, **run}
    found = ours.RelevanceEvaluator(qrels, measures).evaluate(mixed)
    plain = ours.RelevanceEvaluator(qrels, measures).evaluate(run)
    assert {query: found[query] for query in run} == plain
    assert found["other"]["recip_rank"] == (0.5 if "\ud800" in other else 1.0)


@pytest.mark.compiled
@pytest.mark.parametrize("tied", [False, True])
def test_documents_are_not_copied(tied):
    """Besides scores, 8 bytes each, a few queries' arrays are held at a time; where all are tied, their ids too."""
    count, depth = 300, 1000
    value = (lambda d: float(d // 4)) if tied else float
    run = {str(q): {str(q * depth + d): value(d) for d in range(depth)} for q in range(count)}
    evaluator = ours.RelevanceEvaluator({str(q): {str(q * depth + 5): 1} for q in range(count)}, {"map"})
    evaluator.evaluate(run)  # which loads the kernels
    tracemalloc.start()
    try:
        evaluator.evaluate(run)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < (40 if tied else 20) * count * depth


def scored_by_name():
    """A client that knows pytrec_eval only."""
    import pytrec_eval

    return pytrec_eval.RelevanceEvaluator(QRELS, {"map", "ndcg_cut.5"}).evaluate(RUN)


def test_the_patch_is_reversible():
    framework = types.ModuleType("framework_of_rankings")
    framework.RelevanceEvaluator, framework.parse = theirs.RelevanceEvaluator, theirs.parse_run
    sys.modules[framework.__name__] = framework
    original, wanted = theirs.RelevanceEvaluator, scored_by_name()
    try:
        with patch_pytrec_eval() as patch:
            assert isinstance(patch, detmap.Patch)
            assert theirs.RelevanceEvaluator is ours.RelevanceEvaluator is framework.RelevanceEvaluator
            assert theirs.compute_aggregated_measure is ours.compute_aggregated_measure
            assert framework.parse is ours.parse_run
            assert {"pytrec_eval.RelevanceEvaluator", "framework_of_rankings.parse"} <= set(patch.replaced)
            assert_alike(scored_by_name(), wanted)
            with patch_pytrec_eval() as again:
                assert again.replaced == ()
            assert framework.RelevanceEvaluator is ours.RelevanceEvaluator
        assert theirs.RelevanceEvaluator is original is framework.RelevanceEvaluator
        patch = patch_pytrec_eval()
        patch.undo()
        patch.undo()
        assert theirs.RelevanceEvaluator is original
    finally:
        del sys.modules[framework.__name__]


def test_the_patch_where_pytrec_eval_is_not_installed(monkeypatch):
    from detmap.system import patching

    wanted = scored_by_name()
    monkeypatch.delitem(sys.modules, "pytrec_eval")
    monkeypatch.setattr(patching, "find_spec", lambda name: None if name == "pytrec_eval" else util.find_spec(name))
    with patch_pytrec_eval() as patch:
        assert patch.replaced == ("pytrec_eval",)
        import pytrec_eval

        assert pytrec_eval is ours
        assert_alike(scored_by_name(), wanted)
    assert "pytrec_eval" not in sys.modules


def test_scores_are_ranked_in_single_precision_and_ties_by_descending_id():
    run = {"q": {"a": 1.0, "b": 1.0 + 1e-10, "c": float("inf"), "d": 1e39}}
    for relevant, rank in (("d", 1), ("c", 2), ("b", 3), ("a", 4)):
        found = ours.RelevanceEvaluator({"q": {relevant: 1}}, ["recip_rank"]).evaluate(run)
        assert found == {"q": {"recip_rank": 1 / rank}}


def test_an_id_may_be_long_where_it_is_tied():
    run = {"q": {"x" * 5000: 1.0, "x" * 5000 + "y": 1.0}}
    qrels = {"q": {"x" * 5000: 1}}
    assert_alike(
        ours.RelevanceEvaluator(qrels, ["map"]).evaluate(run), theirs.RelevanceEvaluator(qrels, ["map"]).evaluate(run)
    )
    with pytest.raises(InputError, match="more than 1024 bytes"):
        detmap.retrieval.evaluate_run(qrels, run, "map")


@pytest.mark.parametrize("names", [["utility.4,3", "map"], ["utility_1"], ["iprec_at_recall.0.5,1.5,2", "P.5"]])
def test_parameters_that_give_0_whatever_was_found(names):
    found = ours.RelevanceEvaluator(QRELS, names).evaluate(RUN)
    assert found == theirs.RelevanceEvaluator(QRELS, names).evaluate(RUN)
    assert 0.0 in {value for values in found.values() for name, value in values.items() if name[0] in "ui"}


@pytest.mark.parametrize(("judged", "levels"), [(700, 5), (700, 10**9), (3, 5)])
def test_many_judged_documents_and_large_groups_of_equal_scores(judged, levels):
    """Documents are counted one by one or by a search, compared or sorted, by how many there are."""
    rng = random.Random(judged + levels)
    run = {q: {f"d{d}": rng.randint(0, levels) / 4 for d in rng.sample(range(2000), 900)} for q in ("a", "b")}
    qrels = {q: {f"d{d}": rng.randint(0, 2) for d in rng.sample(range(2000), judged)} | {"d0": 1} for q in run}
    measures = {"map", "ndcg", "bpref", "P.5,100"}
    found = ours.RelevanceEvaluator(qrels, measures).evaluate(run)
    assert found == theirs.RelevanceEvaluator(qrels, measures).evaluate(run)
    for ties, order in (("index", 1), ("reversed", -1)):
        lines = [(q, d, row[d]) for q, row in run.items() for d in list(row)[::order]]
        wanted = evaluate_run(qrels, tuple(map(list, zip(*lines, strict=True))), ["AP", "nDCG"], "detmap", empty="zero")
        rules = runs.Rules(replace(CONVENTIONS["detmap"], ties=ties))
        tables = runs.table_of_dicts(qrels, "qrels"), runs.table_of_dicts(run, "run", qrels)
        requests = parse_all(["AP", "nDCG"], rules.convention)
        assert dict(runs.ranked_run(*tables, rules, requests).score(requests)) == dict(wanted)


@pytest.mark.parametrize("key", [UUID(int=7), date(2020, 1, 2), Decimal("1.5")], ids=["UUID", "date", "Decimal"])
def test_ids_that_an_encoder_would_write_as_strings_are_none(key):
    given = {"q": {str(key): 1}}, {"map"}, {"q": {key: 0.5}}
    assert ended(ours, *given) == ended(theirs, *given)
