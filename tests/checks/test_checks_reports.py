"""Reports as text, Markdown and HTML, and what is said of runs, letter by letter."""

from __future__ import annotations

import numpy as np
import pytest
from test_checks_numbers import grid

import detmap
from detmap.checks import Finding, check, check_run, runs
from detmap.checks.data_statistics import Figure, figure_of
from detmap.checks.report import Report, ordered


def finding(severity, code="x_y", count=2, unit="object", named="record", records=(), says="It <is> so"):
    return Finding(
        code=code, severity=severity, count=count, unit=unit, says=says, effect="An & effect", remedy="Mend it", named=named,
        records=records,
    )  # fmt: skip


FIGURE = Figure('some "things"', 9, 0.5, 1.0, 2.0, 2500.0, 123456.0, (0.0, 1.0, 2.0, 3.0), (8, 0, 1))
REPORT = Report(
    "3 objects",
    (
        finding("warning", records=(1, 2)),
        finding("warning", count=12, records=tuple(range(10))),
        finding("note", count=1500, unit="detection", named="image", records=("a", "b\n")),
        finding("error", code="last", unit="image", count=12, named="image", records=tuple("abcdefghij"), says="So"),
        finding("note", code="none", count=20, named="image", records=tuple("abcdefghij")),
    ),
    (FIGURE,),
)

TEXT = """3 objects: 1 error, 2 warnings, 2 notes

warning: It <is> so (x_y)
  effect  An & effect
  remedy  Mend it
  where   records 1, 2

warning: It <is> so (x_y)
  effect  An & effect
  remedy  Mend it
  where   records 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more

note: It <is> so (x_y)
  effect  An & effect
  remedy  Mend it
  where   images a, b\\n

error: So (last)
  effect  An & effect
  remedy  Mend it
  where   images a, b, c, d, e, f, g, h, i, j and 2 more

note: It <is> so (none)
  effect  An & effect
  remedy  Mend it
  where   images a, b, c, d, e, f, g, h, i, j and others

"""


def test_a_report_as_text():
    assert REPORT.to_text().startswith(TEXT)
    table = REPORT.to_text()[len(TEXT) :].splitlines()
    assert table[0].split() == ["least", "quarter", "median", "three", "quarters", "most", "distribution"]
    assert table[-1].split() == ["some", '"things"', "0.5", "1", "2", "2,500", "123,456", "█", "▂"]
    assert str(REPORT) == REPORT.to_text()
    assert repr(REPORT) == "<Report on 3 objects: 1 error, 2 warnings, 2 notes>"
    assert Report("none", ()).to_text() == "none: nothing found"
    assert Report("none", ()).to_markdown() == "none: nothing found"


def test_what_a_report_holds():
    assert [one.code for one in REPORT.errors] == ["last"]
    assert [one.code for one in REPORT.warnings] == ["x_y", "x_y"]
    assert REPORT.codes == ("x_y", "last", "none")
    warned, noted = Report("", REPORT.findings[:2]), Report("", REPORT.findings[2:3])
    assert [REPORT.exit_code(), REPORT.exit_code(strict=True)] == [1, 1]
    assert [warned.exit_code(), warned.exit_code(strict=True)] == [0, 1]
    assert [noted.exit_code(), noted.exit_code(strict=True)] == [0, 0]
    assert [one.severity for one in ordered(REPORT.findings)] == ["error", "warning", "warning", "note", "note"]
    assert [one.count for one in ordered(REPORT.findings)] == [12, 2, 12, 1500, 20]
    assert REPORT.rows()[2] == {
        "severity": "note", "code": "x_y", "count": 1500, "says": "It <is> so", "effect": "An & effect", "remedy": "Mend it",
        "records": "a b\\n",
    }  # fmt: skip
    assert REPORT.to_json(None).startswith(
        '{"subject": "3 objects", "findings": [{"code": "x_y", "severity": "warning"'
    )
    assert '"statistics": [\n    {\n      "name": "some' in REPORT.to_json()


def item(severity, says, code, where):
    return (
        f'<dt class="{severity}"><strong>{severity}</strong> {says}\n <code>{code}</code></dt>\n'
        f"<dd>effect: An &amp; effect<br>remedy: Mend it<br>where: {where}</dd>\n"
    )


@pytest.mark.parametrize(("given", "level", "label"), [
    ({}, 2, "Distributions"), ({"level": 4, "of": "a<b"}, 4, "Distributions of a&lt;b"),
])  # fmt: skip
def test_a_report_as_html(given, level, label):
    html = (
        f'<section class="detmap-check">\n<h{level}>3 objects: 1 error, 2 warnings, 2 notes</h{level}>\n<dl>\n'
        + item("warning", "It &lt;is&gt; so", "x_y", "records 1, 2")
        + item("warning", "It &lt;is&gt; so", "x_y", "records 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more")
        + item("note", "It &lt;is&gt; so", "x_y", "images a, b\\n")
        + item("error", "So", "last", "images a, b, c, d, e, f, g, h, i, j and 2 more")
        + item("note", "It &lt;is&gt; so", "none", "images a, b, c, d, e, f, g, h, i, j and others")
        + f'</dl>\n<div class="wide" role="region" aria-label="{label}" tabindex="0">\n<table><thead><tr>'
        + "".join(
            f'<th scope="col">{one}</th>'
            for one in ("of", "least", "quarter", "median", "three quarters", "most", "distribution")
        )
        + '</tr></thead><tbody>\n<tr><th scope="row" class="text">some &quot;things&quot;</th><td>0.5</td><td>1</td>'
        '<td>2</td><td>2,500</td><td>123,456</td><td><svg role="img" aria-label="some &quot;things&quot;: from 0.5 to '
        '1.235e+05" width="160" height="28" viewBox="0 0 160 28" fill="currentColor"><rect x="0.0" y="0.0" width="48.0" '
        'height="28.0"/><rect x="106.7" y="24.5" width="48.0" height="3.5"/></svg></td></tr>\n</tbody></table></div>\n'
        "</section>\n"
    )
    assert REPORT.to_html(**given) == html
    assert REPORT._repr_html_() == REPORT.to_html(level=3)
    assert Report("none", ()).to_html() == '<section class="detmap-check">\n<h2>none: nothing found</h2>\n</section>\n'


def test_what_is_said_of_the_checked_data(tmp_path):
    truth, found = grid(3, each=2)
    assert check(truth).subject == "6 objects, 3 images, 2 categories"
    assert check(truth, found[:1]).subject == "6 objects, 1 detection, 3 images, 2 categories"
    assert check(truth, found, schema=True).subject == "6 detections, 3 images, 2 categories"
    tables = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[2], boxes=[[0, 0, 1, 1]])
    assert check(tables).subject == "1 object, 1 image, 1 category"
    for given in (
        {"schema": True},
        {"schema": True, "train": tables},
        {"schema": True, "detections": found, "train": truth},
    ):
        with pytest.raises(
            detmap.OptionError, match="a schema says what detections can be about: give them, and nothing"
        ):
            check(truth, **given)


# ---------------------------------------------------------------------------------------------------------------- runs


def of(tmp_path, qrels, run):
    """Findings by code, as count, the sentence, and records."""
    for name, lines in (("qrels", qrels), ("run", run)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    report = check_run(tmp_path / "qrels", tmp_path / "run")
    return report, {
        one.code: (one.count, one.unit, one.says.rpartition(": ")[2], one.records, one.named) for one in report.findings
    }


def lines_of(queries, documents, run=False, score=lambda place: 1 - place / 100):
    if run:
        return [f"{q} Q0 d{d} {d} {score(d)} x" for q in queries for d in range(documents)]
    return [f"{q} 0 d{d} {d % 2}" for q in queries for d in range(documents)]


def test_what_is_said_of_runs(tmp_path):
    qrels, run = lines_of(["a", "b", "c"], 4), lines_of(["a", "b", "c"], 4, run=True)
    report, made = of(tmp_path, qrels, run)
    assert made == {}
    assert report.subject == "12 judgements of 3 queries, 12 documents ranked for 3 queries"
    assert [(one.name, one.count, one.low, one.high) for one in report.figures] == [
        ("documents ranked per query", 3, 4, 4), ("judgements per query", 3, 4, 4), ("relevant per query", 3, 2, 2),
        ("scores", 12, 0.97, 1.0),
    ]  # fmt: skip
    _, made = of(tmp_path, [*qrels, "e 0 d1 1", "f 0 d1 0"], [*run, *[f"z{n:02d} Q0 d1 1 1 x" for n in range(12)]])
    assert made["missing_queries"][3:] == (("e", "f"), "query")
    assert made["missing_queries"][:2] == (2, "query")
    assert made["extra_queries"][0] == 12
    assert made["extra_queries"][3] == tuple(f"z{n:02d}" for n in range(10))
    _, made = of(tmp_path, [line[:-1] + "0" if line[0] in "bc" else line for line in qrels], run)
    assert made["queries_without_relevant"][0] == 2
    assert made["queries_without_relevant"][3:] == (("b", "c"), "query")
    _, made = of(tmp_path, qrels, [line.replace(" d", " e") for line in run])
    assert made["disjoint_documents"][0] == 4
    assert made["disjoint_documents"][3:] == (("e0", "e1", "e2", "e3"), "document")


def test_what_is_said_of_documents_that_are_not_judged(tmp_path):
    """Among the first ten of each query, most first."""
    qrels = lines_of(["a", "b", "c"], 12)
    run = lines_of(["c", "b", "a"], 14, run=True)
    run = [line.replace(" d3 ", " n3 ") if line[0] == "b" else line for line in run]
    run = [line.replace(" d9 ", " n9 ").replace(" d8 ", " n8 ") if line[0] == "a" else line for line in run]
    _, made = of(tmp_path, qrels, run)
    assert made == {"unjudged": (2, "query", "3 documents, 10% of all that stand there", ("a", "b"), "query")}


def test_what_is_said_of_tied_scores_and_short_rankings(tmp_path):
    qrels = lines_of("abcd", 10)
    run = lines_of("abcd", 10, run=True)
    run[3] = run[3].replace("0.97", "0.96")
    for at in (21, 22, 25):
        run[at] = run[at].replace(run[at].split()[4], "0.5")
    _, made = of(tmp_path, qrels, run)
    assert made == {"tied_scores": (5, "document", "12.5% of all", ("c", "a"), "query")}
    _, made = of(tmp_path, qrels, [*lines_of("abc", 10, run=True), *lines_of("d", 4, run=True)])
    assert made["short_rankings"] == (1, "query", "4 at least, where 10 is usual", ("d",), "query")
    _, made = of(tmp_path, qrels, [*lines_of("abc", 10, run=True), *lines_of("d", 5, run=True)])
    assert made == {}


def test_what_is_said_of_lines_that_are_there_again(tmp_path):
    qrels, run = lines_of("abc", 4), lines_of("abc", 4, run=True)
    _, made = of(tmp_path, [*qrels, "b 0 d1 1", "b 0 d2 1", "c 0 d1 5", "c 0 d1 5"], [*run, run[9], run[2], run[2]])
    assert made["same_query_document"][0] == 2
    assert made["same_query_document"][3:] == (("c", "a"), "query")
    assert made["repeated_judgements"][:2] == (1, "document")
    assert made["conflicting_judgements"][0] == 2
    assert made["conflicting_judgements"][3:] == (("b", "c"), "query")


@pytest.mark.parametrize(
    ("given", "known", "says"),
    [
        (["A1", "B2", "c3"], ["a1", "b2", "x"], "the same but for case: A1 is a1"),
        (["001", "0", "5x"], ["1", "000", "7"], "the same but for zeros ahead: 001 is 1"),
        (["a\\1.jpg", "b/2.png"], ["1", "3"], ""),
        (["a\\1.jpg", "b/2.png", "q"], ["1", "c/2.x.y"], "the same but for folders and endings: a\\\\1.jpg is 1"),
        (["img_007", "img_8"], ["7", "x8"], "the same but for what stands ahead of the number: img_007 is 7"),
        (["img", "im"], ["", "x"], ""),
        (["A", "b"], ["a", "c"], ""),
    ],
)
def test_ids_that_differ_in_spelling(given, known, says):
    assert runs._alike(given, known).replace("'", "") == says


def test_figures_of_distributions():
    one = figure_of("x", np.array([3.0, 1, 2, np.inf, np.nan, 10]))
    assert (one.count, one.low, one.quarter, one.median, one.three_quarters, one.high) == (4, 1, 1.75, 2.5, 4.75, 10)
    assert sum(one.bars) == 4
