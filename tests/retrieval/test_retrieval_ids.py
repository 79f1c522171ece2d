"""Ids of runs and judgements: one rule for all forms of input; nothing in a TREC file is lost without a word."""

from __future__ import annotations

import itertools
from decimal import Decimal

import numpy as np
import pytest

from detmap.cli import main
from detmap.errors import InputError
from detmap.formats import trec
from detmap.retrieval import Evaluator, evaluate_run

#: Ids of queries and documents in each of the forms that say the same.
FORMS = {
    "integers": int,
    "numpy integers": np.int32,
    "unsigned": np.uint64,
    "whole floats": float,
    "strings": str,
    "numpy strings": np.str_,
    "bytes": lambda number: str(number).encode(),
}
QRELS = {1: {10: 1, 20: 0, 30: 2}, 2: {10: 1}}
RUN = {2: {10: 0.5, 30: 0.25}, 1: {20: 0.9, 10: 0.8, 30: 0.8, 40: 0.1}}
METRICS = ["map", "ndcg", "bpref", "num_rel_ret"]


def as_mappings(table, form):
    return {form(q): {form(d): value for d, value in inner.items()} for q, inner in table.items()}


def as_columns(table, form):
    rows = [(form(q), form(d), value) for q, inner in table.items() for d, value in inner.items()]
    return tuple(list(column) for column in zip(*rows, strict=True))


def as_arrays(table, form):
    return tuple(np.array(column) for column in as_columns(table, form))


def as_objects(table, form):
    queries, documents, values = as_columns(table, form)
    return np.array(queries, object), np.array(documents, object), np.array(values, object)


def as_file(table, form):
    del form
    lines = [f"{q} 0 {d} {v} {f'{v} name' * isinstance(v, float)}\n" for q, i in table.items() for d, v in i.items()]
    return "".join(lines).encode()


def outcome(qrels, run, **options):
    result = evaluate_run(qrels, run, METRICS, **options)
    return dict(result), result.query_ids.astype(str).tolist(), {k: v.tolist() for k, v in result.per_query.items()}


def test_every_form_of_ids_gives_the_same_numbers_on_either_side():
    wanted = outcome(as_mappings(QRELS, str), as_mappings(RUN, str))
    assert wanted[0]["mAP"] > 0.5
    makers = (as_mappings, as_columns, as_arrays, as_objects)
    forms = [(maker, form) for maker in makers for form in FORMS.values()] + [(as_file, str)]
    for maker, form in forms:
        for other, other_form in ((as_mappings, str), (as_mappings, int), (as_arrays, int), (as_file, str)):
            assert outcome(maker(QRELS, form), other(RUN, other_form)) == wanted
            assert outcome(other(QRELS, other_form), maker(RUN, form)) == wanted


def test_ids_are_the_same_where_documents_with_the_name_of_their_query_are_dropped():
    judged = ({1: {1: 1, 2: 1}}, {"1": {"1": 1, "2": 1}})
    ranked = ({1: {1: 9, 2: 1}}, {"1": {"1": 9, "2": 1}}, b"1 0 1 1 9 t\n1 0 2 1 1 t\n")
    for qrels, run in itertools.product(judged, ranked):
        result = evaluate_run(qrels, run, "map", "beir")
        assert result["map"] == 0.5
        assert result.junk == 1


def test_columns_of_pandas_and_pyarrow():
    pandas = pytest.importorskip("pandas")
    wanted = outcome(as_mappings(QRELS, str), as_mappings(RUN, str))
    names = ["query_id", "doc_id", "score"]
    dtypes = ["object", "string", "category"]
    try:
        import pyarrow
    except ImportError:
        pass
    else:
        dtypes += ["string[pyarrow]", pandas.ArrowDtype(pyarrow.string())]
    for dtype in dtypes:
        frame = pandas.DataFrame(dict(zip(names, as_columns(RUN, str), strict=True)))
        frame[names[:2]] = frame[names[:2]].astype(dtype)
        assert outcome(QRELS, frame) == wanted
    for dtype in ("Int64", "int32", "float64", "category"):
        frame = pandas.DataFrame(dict(zip(names, as_columns(RUN, int), strict=True)))
        frame[names[:2]] = frame[names[:2]].astype(dtype)
        assert outcome(QRELS, frame.astype({"score": "Float64"})) == wanted


def test_nothing_is_normalised_and_a_run_without_a_judged_document_is_noticed():
    pairs = [("7", other) for other in ("07", "+7", " 7", "7.0", "٧")]
    for one, other in (*pairs, (7, "07"), ("D", "d"), ("é", "e\u0301"), ("", " ")):
        result = evaluate_run({"q": {one: 1}}, {"q": {other: 1.0, "other": 0.5}}, "map")
        assert result["map"] == 0
        assert result.notices == {"no_judged_document": 2}
    assert evaluate_run({"": {"": 1}}, {"": {"": 1.0}}, "map").notices == {}


def test_bytes_that_are_not_utf8_equal_no_string_that_shows_them():
    qrels = b"caf\xe9 0 x 1\ncaf\\xe9 0 y 1\nq 0 d\xe9 1\n"
    result = evaluate_run(qrels, b"caf\xe9 Q0 x 1 1 t\ncaf\\xe9 Q0 x 1 1 t\nq Q0 d\xe9 1 1 t\n", "map")
    assert result.query_ids.tolist() == ["caf\\xe9", "caf\\xe9", "q"]
    assert result.per_query["AP"].tolist() == [1, 0, 1]
    result = evaluate_run(qrels, {"caf\\xe9": {"y": 1.0}, "q": {"d\\xe9": 1.0}}, "map")
    assert result.per_query["AP"].tolist() == [1, 0]


MIXED = "ids must be all integers or all strings"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({1: {"x": 1}, "1": {"x": 1}}, f"qrels: field 'queries': {MIXED}, and there are 1 and '1'"),
        ({"a": {"x": 1}, 3: {"x": 1}, "3": {"x": 1}}, f"'queries': {MIXED}, and there are 3 and '3'"),
        ({np.int64(1): {"x": 1}, "a": {"x": 1}}, f"'queries': {MIXED}, and there are 1 and 'a'"),
        ({b"1": {"x": 1}, "1": {"x": 1}}, f"'queries': {MIXED}, and there are b'1' and '1'"),
        (
            {"a": {"x": 1}, "b": {5: 1, "5": 1}},
            f"qrels: query 'b': field 'documents': {MIXED}, and there are 5 and '5'",
        ),
        ({"a": {"5": 1}, "b": {5: 1}}, f"qrels: field 'documents': {MIXED}, and there are '5' and 5"),
        ({"a": {"x": 1, None: 1}}, "qrels: query 'a': record 1, field 'documents': is missing"),
        ({"a": {1: 1, float("nan"): 1}}, "qrels: query 'a': record 1, field 'documents': is missing"),
        ({None: {"x": 1}}, "qrels: record 0, field 'queries': is missing"),
        ({True: {"x": 1}}, "qrels: record 0, field 'queries': .*booleans"),
        ({1.5: {"x": 1}}, "qrels: record 0, field 'queries': is not an integer"),
        ({(1, 2): {"x": 1}}, "qrels: field 'queries': ids must be"),
        ({Decimal(1): {"x": 1}}, "qrels: record 0, field 'queries': "),
        ({10**30: {"x": 1}}, "qrels: record 0, field 'queries': an id is beyond 64 bits"),
        ({"a\0": {"x": 1}}, "'queries': an id holds a zero byte"),
        ({"a": {"x\0": 1}}, "'documents': an id holds a zero byte"),
        ({"a": {"x" * 1025: 1}}, "'documents': an id has more than 1024 bytes"),
        ({"é" * 600: {"x": 1}}, "'queries': an id has more than 1024 bytes"),
        ((["a", "a"], ["x", "é" * 600], [1, 1]), "'documents': an id has more than 1024 bytes"),
        ({}, "qrels: is empty"),
        ({"a": {"x": 1, "y": "1"}}, r"qrels: query 'a', document 'y', field 'grades': .*not strings \(got '1'\)"),
        ({"a": {"x": 1, "y": None}}, "qrels: query 'a', document 'y', field 'grades': is missing"),
        ({"a": {"x": 1, "y": float("nan")}}, "qrels: query 'a', document 'y', field 'grades': a grade is NaN"),
        ({"a": {"x": 1, "y": 2**40}}, "query 'a', document 'y', field 'grades': a grade must be from"),
        ({"a": {"x": 1, "y": 10**400}}, "query 'a', document 'y', field 'grades': is not a number"),
        ((["a", "a"], ["x", None], [1, 1]), "qrels: record 1, field 'documents': is missing"),
        ((["a", None], ["x", "y"], [1, 1]), "qrels: record 1, field 'queries': is missing"),
        (([1, np.nan], ["x", "y"], [1, 1]), "qrels: record 1, field 'queries': is missing"),
        ((np.array(["a", np.nan], object), ["x", "y"], [1, 1]), "qrels: record 1, field 'queries': is missing"),
        ((["a", 1], ["x", "y"], [1, 1]), f"qrels: record 1, field 'queries': {MIXED}"),
        ((["a", "a"], ["x", "x\0"], [1, 1]), "'documents': an id holds a zero byte"),
        ((["a", "a"], np.array([b"x", b"x\0y"]), [1, 1]), "'documents': an id holds a zero byte"),
        ((["a", "a"], np.array([b"x", b"y" * 2000]), [1, 1]), "'documents': an id has more than 1024 bytes"),
        ((["a", "a"], [[1], [2]], [1, 1]), "'documents': "),
        ((["a", "a"], np.zeros(2, "M8[s]"), [1, 1]), "'documents': .*dates"),
        ((["a", "a"], ["x", "y"], [1, np.nan]), "qrels: record 1, field 'grades': a grade is NaN"),
        ((["a", "a"], ["x", "y"], ["1", "0"]), "qrels: record 0, field 'grades': .*not strings"),
        ((["a", "a"], np.ma.array(["x", "y"], mask=[0, 1]), [1, 1]), "record 1, field 'documents': is masked"),
        ((np.ma.array([1, 2], mask=[0, 1]), ["x", "y"], [1, 1]), "record 1, field 'queries': is masked"),
        ((["a", "a"], ["x", "y"], np.ma.array([1, 1], mask=[0, 1])), "record 1, field 'grades': is masked"),
    ],
)
def test_what_is_no_id_or_grade_is_refused_with_its_place(table, message):
    with pytest.raises(InputError, match=message) as caught:
        evaluate_run(table, {"a": {"x": 1.0}}, "map")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("0.5", "not strings"),
        (None, "is missing"),
        (float("nan"), "a score is NaN"),
        (Decimal("nan"), "a score is NaN"),
        (1j, "not complex numbers"),
        (10**400, "is not a number"),
        (2**53 + 1, r"beyond 2\*\*53"),
        (np.ma.masked, "is masked"),
        ([1], "."),
    ],
)
def test_what_is_no_score_is_refused_with_its_place(score, message):
    with pytest.raises(InputError, match=rf"run: query 'b', document 'y', field 'scores': .*{message}"):
        evaluate_run({"a": {"x": 1}}, {"a": {"x": 1}, "b": {"x": 2, "y": score}}, "map")


def test_masked_scores_are_refused_and_decimals_taken():
    with pytest.raises(InputError, match="run: record 1, field 'scores': is masked"):
        evaluate_run({"a": {"x": 1}}, (["a", "a"], ["x", "y"], np.ma.array([1, 2], mask=[0, 1])), "map")
    for score in (Decimal("0.5"), True, np.float32(0.5), 7):
        assert evaluate_run({"a": {"x": 1}}, {"a": {"x": score, "y": 0}}, "map")["map"] == 1


# Files ---------------------------------------------------------------------------------------------------------------

LINES = ["a Q0 x 1 3 t", "a Q0 y 2 2 t", "# a remark", "", "b Q0 x 1 1 t"]
JUDGED = ["a 0 x 0", "", "# a remark", "a 0 y 1", "b 0 x 1"]


@pytest.fixture(params=["scanned", "read"])
def reader(request, monkeypatch):
    """The fast reader and the slow one."""
    monkeypatch.setattr(trec, "_WORTH_SCANNING", 0 if request.param == "scanned" else 1 << 40)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n", "mixed"])
@pytest.mark.parametrize("last", [True, False])
def test_lines_end_in_any_way(end, last):
    def written(lines):
        ends = itertools.cycle(["\r", "\n", "\r\n"]) if end == "mixed" else itertools.repeat(end)
        text = "".join(f"{line}{one}" for line, one in zip(lines, ends, strict=False))
        return (text if last else text.rstrip("\r\n")).encode()

    result = evaluate_run(written(JUDGED), written(LINES), ["map", "num_ret", "num_rel"])
    assert dict(result) == {"mAP": 0.75, "num_ret": 3, "num_rel": 2}
    assert result.notices == {"comment_lines": 2}


@pytest.mark.usefixtures("reader")
def test_text_after_the_name_is_counted():
    run = b"a Q0 x 1 3 t\na Q0 y 2 2 t with more words\nb Q0 x 1 1 t reserved\n" + b"b Q0 y 1 0.5 t \t \n"
    result = evaluate_run("\n".join(JUDGED).encode(), run, "map")
    assert result["map"] == 0.75
    assert result.notices == {"text_after_name": 2, "comment_lines": 1}
    assert result.to_dict()["notices"] == dict(result.notices)
    run = run.replace(b"with more words", b"k1 = 0.9 and b = 0.4, for the third time")
    assert evaluate_run("\n".join(JUDGED).encode(), run, "map").notices == result.notices


#: Lines that begin with #, and whether they are records: those with all fields, and a number where one belongs.
MARKED_RUNS = [
    (b"#1 Q0 x 1 3 t", True),
    (b"# Q0 x 1 3 t", True),
    (b"#1 Q0 x first inf t", True),
    (b"#1\tQ0\tx\t1\t+3e-2\tt", True),
    (b"#1 Q0 x 1 3 t with words", True),
    (b"#1 0 x 1 3 t with words and more of them", True),
    (b"#1 Q0 x 1 3", False),
    (b"#1 Q0 x 1 three t", False),
    (b"# a Q0 x 1 3 t", False),
    (b"# a 0 1 2 3 t", False),
    (b"# made by bm25 with k1 = 0.9 and b = 0.4", False),
    (b"#", False),
    (b"#!", False),
]
MARKED_JUDGEMENTS = [
    (b"#1 0 x 1", True),
    (b"# 0 x 1", True),
    (b"#1 0 x +1", True),
    (b"#1 0 x", False),
    (b"#1 0 x 1 more", False),
    (b"#1 0 x one", False),
    (b"# written by hand", False),
    (b"# a 0 x 1", False),
]


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(("line", "record"), MARKED_RUNS)
def test_lines_of_runs_that_begin_with_a_hash(line, record):
    """The query is scored as in dicts, and as pytrec_eval does; a comment is counted. Neither is passed in silence."""
    query, judged = line.split()[0], b"b 0 x 1\n%b 0 x 1\n" % line.split()[0]
    run = b"b Q0 y 1 1 t\n" + line + b"\n"
    result = evaluate_run(judged, run, "map")
    rows = {"b": {"y": 1.0}} | ({query.decode(): {"x": 3.0}} if record else {})
    alike = evaluate_run({"b": {"x": 1}, query.decode(): {"x": 1}}, rows, "map")
    assert (dict(result), result.queries) == (dict(alike), alike.queries)
    assert result["map"] == 0.5 * record
    assert result.notices.get("comment_lines", 0) == (not record)
    assert result.notices["marked_records"] == 1 + record


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(("line", "record"), MARKED_JUDGEMENTS)
def test_lines_of_judgements_that_begin_with_a_hash(line, record):
    run = b"b Q0 x 1 1 t\n%b Q0 x 1 1 t\n" % line.split()[0]
    result = evaluate_run(b"b 0 y 1\n" + line + b"\n", run, "map")
    assert result["map"] == 0.5 * record
    assert result.notices.get("comment_lines", 0) == (not record)
    assert result.notices["marked_records"] == 1 + record


@pytest.mark.usefixtures("reader")
def test_lines_with_all_fields_and_a_number_that_is_none_of_theirs_are_errors():
    with pytest.raises(InputError, match=":2: a grade must be an integer"):
        evaluate_run(b"b 0 y 1\n#1 0 x 1.5\n", b"b Q0 x 1 1 t\n", "map")
    with pytest.raises(InputError, match=":2: a score must be a number"):
        evaluate_run(b"b 0 y 1\n", b"b Q0 x 1 1 t\n#1 Q0 x 1 nan t\n", "map")


def test_an_evaluator_counts_comments_of_all_files():
    judged, run = b"#1 0 x 1\n# hand-made\n", b"# one\n#1 Q0 x 1 1 t\n"
    evaluator = Evaluator("trec", ["map"], qrels=judged)
    evaluator.update(run=run)
    assert evaluator.compute().notices == evaluate_run(judged, run, "map").notices
    assert evaluator.compute().notices == {"comment_lines": 2, "marked_records": 2}
    restored = Evaluator.from_bytes(evaluator.to_bytes())
    assert restored.compute().notices == {"comment_lines": 1, "marked_records": 1}


GLUED = [
    b"tagb Q0 x 1 1 t",  # no line feed
    b"tag b Q0 x 1 1 t",  # a blank instead
    b"tag with wordsb Q0 x 1 1 t",
    b"tagb 0 x first 1 t",
    b"tagb Q0 x 1.5 -1e-3 t and more",
    b"tagb Q0 x 1 1",  # of which the name is lost
]


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("rest", GLUED)
def test_a_record_on_the_line_of_another_is_not_lost(rest):
    run = b"a Q0 x 1 3 t\na Q0 y 2 2 " + rest + b"\n"
    with pytest.raises(InputError, match=r"run:2: \d+ fields where 6 belong .*A line feed is missing") as caught:
        evaluate_run(b"a 0 x 1\n", run, "map")
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(("line", "count"), [(b"a 0 x 1 1", 5), (b"a 0 x 1b 0 y 1", 7), (b"a 0 x 1 b 0 y 1", 8)])
def test_judgements_have_four_fields(line, count):
    with pytest.raises(InputError, match=rf"qrels:2: {count} fields where 4 belong") as caught:
        evaluate_run(b"a 0 z 1\n" + line + b"\n", b"a Q0 x 1 3 t\n", "map")
    assert ("line feed is missing" in str(caught.value)) == (count > 6)


@pytest.mark.usefixtures("reader")
def test_files_joined_with_a_byte_order_mark_between_them():
    one = b"\xef\xbb\xbfa 0 x 1\n"
    assert evaluate_run(one, b"\xef\xbb\xbfa Q0 x 1 3 t\n", "map")["map"] == 1
    with pytest.raises(InputError, match="qrels:2: a byte order mark"):
        evaluate_run(one + one.replace(b"x", b"y"), b"a Q0 x 1 3 t\n", "map")


def test_notices_on_the_command_line(tmp_path, capsys):
    (tmp_path / "qrels").write_bytes(b"a 0 x 1\n")
    (tmp_path / "run").write_bytes(b"a Q0 y 1 3 t more\n")
    arguments = ["trec", str(tmp_path / "qrels"), str(tmp_path / "run")]
    assert main(arguments) == 0
    said, logged = capsys.readouterr()
    assert said.count("1 line of the run with text after its name") == 1
    assert said.count("none of the 1 ranked documents is judged") == 1
    assert logged == ""
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr().out == said  # it is a part of the result, not a note on the work


@pytest.mark.parametrize("rest", [b"q1 Q0 h 1 x.5 tag", b"q1 A0 h 1 0.5 tag", b"q1 Q0 h x 0.5 tag"])
def test_two_records_on_one_line_are_an_error_even_where_the_second_is_damaged(rest):
    with pytest.raises(InputError, match="two records on one line"):
        evaluate_run(b"q1 0 a 1\n", b"q1 Q0 a 1 2.0 " + rest + b"\n")
