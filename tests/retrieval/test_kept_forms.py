"""What comes of judgements and runs of odd ids, values and forms, of trec_eval's measures, and of ranx's tables, kept."""

from __future__ import annotations

import itertools

import kept
import numpy as np
import pytest
from test_kept_arguments import defaults, outcome, shown

from detmap import ranx
from detmap.errors import DetmapError
from detmap.pytrec_eval import RelevanceEvaluator
from detmap.retrieval import Evaluator, evaluate_rankings, evaluate_run, trec_eval
from detmap.retrieval.lookups import TOGETHER

#: Two ids of documents, of queries, or of both, in place of "x" and "y".
IDS = {
    "texts": ("x", "y"),
    "numbers": (7, 8),
    "digits": ("7", "8"),
    "numpy's": (np.int64(7), np.int32(8)),
    "bytes": (b"x", b"y"),
    "mixed": ("x", 8),
    "bytes and text": (b"x", "y"),
    "flags": (True, False),
    "floats": (7.0, 8.0),
    "fractions": (7.5, 8.0),
    "none": (None, "y"),
    "a zero byte": ("x\0", "y"),
    "zero bytes": (b"x\0", b"y"),
    "empty": ("", "y"),
    "blank": (" x", "x "),
    "long": ("x" * 127, "x" * 128),
    "too long": ("x" * 65536, "y"),
    "too long bytes": (b"x" * 65536, b"y"),
    "not utf-8": (b"\xff", b"y"),
    "surrogates": ("\ud800", "y"),
    "tuples": ((1,), (2,)),
    "wide": ("é", "日本"),
    "negative": (-1, 0),
    "huge": (2**63, 1),
    "numpy's texts": (np.str_("x"), np.str_("y")),
    "same": ("7", 7),
}
#: Values in place of a grade or a score.
NUMBERS = [
    0,
    1,
    -1,
    2,
    2.5,
    True,
    np.int64(2),
    np.float32(0.5),
    float("nan"),
    float("inf"),
    -float("inf"),
    "1",
    None,
    [1],
    100,
    -100,
    2**31,
    2**31 + 1,
    -(2**31),
    -(2**31) - 1,
    2**53 + 1,
    2**70,
    1e300,
    -0.0,
    1e-50,
]
METRICS = ["AP", "nDCG@2", "num_ret"]


def data(x="x", y="y", a="a", b="b"):
    qrels = {a: {x: 1, y: 0}, b: {y: 2}}
    run = {a: {x: 0.5, y: 0.75}, b: {x: 0.25, y: 0.25}}
    return qrels, run


def columns(table):
    return tuple(map(list, zip(*((q, d, v) for q, of in table.items() for d, v in of.items()), strict=True)))


FORMS = {
    "dicts": lambda qrels, run: (qrels, run),
    "columns": lambda qrels, run: (columns(qrels), columns(run)),
    "columns beside dicts": lambda qrels, run: (columns(qrels), run),
    "arrays": lambda qrels, run: tuple(tuple(map(np.array, columns(one))) for one in (qrels, run)),
}


@pytest.mark.parametrize("form", FORMS)
def test_odd_ids_and_values(form):
    def told(given):
        return outcome(lambda: evaluate_run(*FORMS[form](*given), METRICS), {})[:3000]

    lines = []
    for name, (x, y) in IDS.items():
        for where, given in (("documents", data(x, y)), ("queries", data(a=x, b=y)), ("both", data(x, y, x, y))):
            lines.append(f"{name} of {where}: {told(given)}")
        lines.append(f"{name} of the run: {told((data()[0], data(x, y)[1]))}")
    for value, side in itertools.product(NUMBERS, (0, 1)):
        given = data()
        given[side]["a"]["x"] = value
        lines.append(f"{type(value).__name__} {value} of {side}: {told(given)}")
    kept.same(f"forms/{form.replace(' ', '-')}", "\n".join(lines) + "\n")


LINES = {
    "right": "a 0 x 1\na 0 y 0\nb 0 y 2\n",
    "tabs": "a\t0\tx\t1\n",
    "blank lines": "\n a 0 x 1 \n\n",
    "no end": "a 0 x 1",
    "three": "a 0 x\n",
    "five": "a 0 x 1 2\n",
    "a word": "a 0 x one\n",
    "fraction": "a 0 x 0.5\n",
    "twice": "a 0 x 1\na 0 x 2\n",
    "empty": "",
    "blanks": " \n",
    "apart": "a 0 x 1\nb 0 y 1\na 0 y 1\n",
    "crlf": "a 0 x 1\r\nb 0 y 1\r\n",
    "bom": "\ufeffa 0 x 1\n",
    "huge": "a 0 x 99999999999\n",
    "sign": "a 0 x +1\n",
    "comment": "# a\na 0 x 1\n",
    "a run": "a Q0 x 1 0.5 r\n",
}
RUNS = {
    "right": "a Q0 x 1 0.5 r\na Q0 y 2 0.25 r\n",
    "five": "a Q0 x 1 0.5\n",
    "seven": "a Q0 x 1 0.5 r more\n",
    "nan": "a Q0 x 1 nan r\n",
    "inf": "a Q0 x 1 inf r\n",
    "word": "a Q0 x 1 high r\n",
    "exponent": "a Q0 x 1 -1e-3 r\n",
    "twice": "a Q0 x 1 1 r\na Q0 x 2 2 r\n",
    "apart": "a Q0 x 1 1 r\nb Q0 y 1 1 r\na Q0 y 2 0 r\n",
    "empty": "",
    "rank": "a Q0 x first 1 r\n",
    "bytes": "a Q0 \udcff 1 1 r\n",
    "qrels": "a 0 x 1\n",
    "many digits": f"a Q0 x 1 0.{'1' * 40} r\n",
    "hex": "a Q0 x 1 0x1p3 r\n",
}


def test_odd_lines():
    lines = []
    for name, text in LINES.items():
        made = outcome(lambda text=text: evaluate_run(text.encode(), RUNS["right"].encode(), METRICS), {})
        lines.append(f"judgements, {name}: {made}")
    for name, text in RUNS.items():
        raw = text.encode("utf-8", "surrogateescape")
        lines.append(f"run, {name}: {outcome(lambda raw=raw: evaluate_run(LINES['right'].encode(), raw, METRICS), {})}")
    kept.same("forms/lines", "\n".join(lines) + "\n")


def test_rankings_by_ids_and_flags():
    """Rankings of names and of places, with relevant items as sets, and all that is wrong with them."""
    lines = []
    for rankings in (
        [["a", "b"], ["c"]],
        [[1, 0], [2]],
        [[], ["a"]],
        [["a", "a"]],
        [[True, False], [True]],
        "ab",
        [1, 2],
        [[0.5, 1.5]],
        [[-1, 2], [0]],
    ):
        for relevant in (None, [{"a"}, {"c", "d"}], [[0], []], [{1}], ["a", "c"], [{"a": 1}, {"c": 2}]):
            for positives in (None, [2, 1], [0, 0], 3, [1], [-1, 1], [1.5, 1]):
                made = outcome(evaluate_rankings, {"rankings": rankings, "relevant": relevant, "positives": positives})
                said = None if relevant is None else [sorted(one) for one in relevant]
                lines.append(f"{rankings} {said} {positives}: {made}")
    kept.same("forms/rankings", "\n".join(lines) + "\n")


def test_documents_are_looked_up_in_parts(monkeypatch):
    """Runs of more scores than are processed together, with ties of many and of few documents, are ranked as in lines."""
    rng = np.random.default_rng(8)
    assert TOGETHER > 4
    monkeypatch.setattr("detmap.retrieval.lookups.TOGETHER", 4)
    for most in (0, 1, 3, 40):
        monkeypatch.setattr("detmap.retrieval.lookups._FEW", most)
        qrels = {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in rng.integers(0, 60, 9).tolist()} for q in range(7)}
        run = {
            q: {f"d{d}": float(rng.integers(0, 1 + at)) for d in rng.permutation(60)[: 9 * at].tolist()}
            for at, q in enumerate(qrels)
        }
        lines = "".join(f"{q} Q0 {d} 0 {s} r\n" for q, of in run.items() for d, s in of.items()).encode()
        wanted = evaluate_run(
            "".join(f"{q} 0 {d} {g}\n" for q, of in qrels.items() for d, g in of.items()).encode(), lines, METRICS
        )
        found = evaluate_run(qrels, run, METRICS)
        for name in METRICS:
            some = [found.per_query[name][at] for at, q in enumerate(found.query_ids) if run[q]]
            assert some == [wanted.per_query[name][at] for at, q in enumerate(wanted.query_ids) if run[q]]


# ---------------------------------------------------------------------------------------------------------- other tools

PARAMETERS = [
    [],
    ["1"],
    ["5", "2"],
    ["0"],
    ["0.5"],
    ["2.7"],
    ["1", "1"],
    ["x"],
    ["-1"],
    ["+3"],
    [".5"],
    ["1", "-1", "0", "0"],
    ["p=0.5"],
    ["1=3", "2=9"],
    ["1=3,2=9"],
    ["0.2", "0.1"],
    ["10"],
]


def test_measures_of_trec_eval():
    lines = [
        f"{name} {version}: {trec_eval.known(name, version)}" for name in ("map", "unj", "no") for version in (9, 10)
    ]
    lines += [f"{version}: {trec_eval.nicknames(version)}" for version in (9, 10)]
    for measure in trec_eval.MEASURES:
        lines.append(f"{measure}")
        for given in PARAMETERS:
            try:
                made = [tuple(one) for one in trec_eval.values_of(measure, given)]
            except DetmapError as error:
                made = kept.told(error)
            lines.append(f"{measure.name} {given}: {made}")
    kept.same("forms/trec_eval", "\n".join(lines) + "\n")


def test_measures_of_pytrec_eval():
    qrels = {"a": {"x": 1, "y": 0, "z": -1}, "b": {"y": 2}, "c": {"z": 1}}
    run = {"a": {"x": 0.5, "y": 0.75, "z": 0.25, "u": 0.5}, "b": {"x": 0.25, "y": 0.25}, "e": {"x": 1.0}, "c": {}}
    asked = [{name} for name in (*(one.name for one in trec_eval.MEASURES), "official", "set", "all_trec")]
    asked += [
        {f"{name}{tail}"}
        for name in ("P", "map", "ndcg", "set_F", "utility", "11pt_avg", "success", "no")
        for tail in (".5", "_5", ".1,10", "_1,10", ".0", ".x", ".1=2", "_0.5", "", ".2,1,0,0")
    ]
    lines = []
    for measures, (level, judged) in itertools.product(asked, ((1, False), (2, True))):
        try:
            found = RelevanceEvaluator(qrels, measures, level, judged).evaluate(run)
            made = {query: dict(sorted(of.items())) for query, of in found.items()}
        except (DetmapError, ValueError, TypeError) as error:
            made = f"{type(error).__name__}: {error}".partition("; one of")[0]
        lines.append(f"{sorted(measures)} {level}: {made}")
    kept.same("forms/pytrec_eval", "\n".join(lines) + "\n")


def test_tables_of_ranx():
    """Of runs that differ by chance, by more, and not at all, in every form, with every test."""
    rng = np.random.default_rng(2)
    qrels = ranx.Qrels({f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in range(6)} for q in range(14)}, "judged")
    runs = [
        ranx.Run({q: {d: float(rng.random() + skill * of[d]) for d in of} for q, of in qrels.qrels.items()}, name)
        for skill, name in ((0.0, "low_est"), (0.2, None), (2.0, "high"), (2.0, "high too"))
    ]
    metrics = ["map@3", "ndcg", "rbp.95", "precision@2-l2", "mrr", "hits"]
    lines = [f"by default: {defaults(call)}" for call in (ranx.compare, ranx.evaluate, ranx.Report)]
    for test, percent, digits in (
        ("student", False, 3),
        ("fisher", True, 4),
        ("tukey", False, 0),
        ("student", True, 1),
    ):
        if test == "tukey":
            pytest.importorskip("scipy")
        more = {
            "stat_test": test,
            "show_percentages": percent,
            "rounding_digits": digits,
            "max_p": 0.05,
            "n_permutations": 50,
        }
        report = ranx.compare(qrels, runs, metrics, **more)
        lines += [str(report), report.to_latex(), str(report.to_dict())]
    alone = ranx.compare(qrels, runs[:1], "map")
    lines += [str(alone), alone.to_latex()]
    worst = ranx.compare(
        ranx.Qrels({"q0": {"none": 1}}), [ranx.Run({"q0": {"d": 1.0}}, name) for name in "ab"], ["map"]
    )
    lines += [str(worst), worst.to_latex()]
    for more in ({}, {"return_mean": False}, {"return_std": True}, {"return_mean": False, "return_std": True}):
        lines.append(shown_of(ranx.evaluate(qrels, runs[1], metrics, **more)))
        lines.append(shown_of(ranx.evaluate(qrels, runs[1], "map@3", **more)))
    lines += [f"{runs[1].mean_scores} {runs[1].std_scores} {len(runs[1])} {qrels.name}"]
    kept.same("forms/ranx", "\n".join(lines) + "\n")


def shown_of(made):
    return f"{ {name: shown_of(one) for name, one in made.items()} if isinstance(made, dict) else shown(made) }"


def test_an_evaluator_of_runs_takes_every_form():
    qrels, run = data()
    values = []
    for form in FORMS.values():
        judged, given = form(qrels, run)
        evaluator = Evaluator(metrics=METRICS, qrels=judged)
        evaluator.update(run=given)
        values.append(dict(evaluator.compute()))
    assert values == [dict(evaluate_run(qrels, run, METRICS))] * len(FORMS)
