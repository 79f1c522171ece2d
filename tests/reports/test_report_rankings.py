"""The report on rankings: what it says is what the commands say, it never fails, and names are text."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import datetime, timezone

import numpy as np
import pytest
from pages import HOSTILE, hostile_runs

from detmap import cli, retrieval
from detmap.cli import ranking_files, reporting
from detmap.errors import OptionError
from detmap.reports import blocks, charts, ranking_curves, rankings, tables
from detmap.reports.documents import documents
from detmap.retrieval import METRICS
from detmap.retrieval.scoring import by_query
from detmap.statistics import compare_queries

MADE = datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc)


def run(capsys, *words):
    try:
        code = cli.main(["report", *map(str, words)])
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Judgements, two runs, arrays of a gallery, and codes."""
    monkeypatch.chdir(tmp_path)
    _, before, after = hostile_runs(tmp_path)
    before.rename("plain.run")
    after.rename("<b>better.run")
    rng = np.random.default_rng(5)
    ids = np.arange(120) % 15
    centres, noise = rng.normal(size=(15, 8)), rng.normal(size=(135, 8))
    features = centres[np.concatenate([np.arange(15), ids])] + noise
    labels = {"query_ids": np.arange(15), "gallery_ids": ids}
    cameras = {"query_cameras": np.zeros(15, int), "gallery_cameras": rng.integers(0, 3, 120)}
    np.savez("reid.npz", query_features=features[:15], gallery_features=features[15:], **labels, **cameras)
    codes = (features > 0).astype(np.uint8)
    np.savez(
        "hash.npz", query_codes=codes[:15], gallery_codes=codes[15:], query_labels=np.arange(15), gallery_labels=ids
    )
    return tmp_path


def test_runs(files, capsys):
    """Metrics, intervals, bands of ties and the test are those of the library."""
    words = ["qrels.txt", "plain.run", "<b>better.run", "--out", "a.html", "--bootstrap", 200, "--quiet"]
    assert run(capsys, "--trec", *words) == (0, "", "")
    text = (files / "a.html").read_text("utf-8")
    results = {name: retrieval.evaluate_run("qrels.txt", name) for name in ("plain.run", "<b>better.run")}
    for result in results.values():
        assert f">{result['mAP']:.4f}<" in text
        low, high = result.tie_band
        assert low < high
        assert f"Mean AP lies between {low:.4f} and {high:.4f}" in text
        made = rankings.intervals(result, 200, 0, "t")
        low, high = made.interval()[made.columns["mAP"]]
        assert f"{low:.4f} – {high:.4f}" in text
    one = compare_queries(by_query(results, "AP")[1], replicates=200)[0]
    assert f"has {one.difference:.4f} more mAP than plain, 95 % interval {one.low:.4f} to {one.high:.4f}" in text
    assert "(tied_scores)" in text or "tied_scores" in text
    assert text.count("SHA-256") == 3
    for title in (
        "Differences",
        "Metrics",
        "Curves",
        "Queries",
        "Worst queries",
        "Ties",
        "What a check of the files found",
    ):
        assert f">{title}</h2>" in text
    assert "<img" not in text
    assert "<b>" not in text
    assert "http" not in text.replace("http-equiv", "")
    worst = int(np.argmin(results["plain.run"].per_query["AP"]))
    assert f"{results['plain.run'].per_query['AP'][worst]:.4f}" in text


def test_other_conventions(files, capsys, monkeypatch):
    """mAP under each convention that applies to runs is that of the library."""
    words = ["--trec", "qrels.txt", "plain.run", "<b>better.run", "--out", "a.html", "--bootstrap", 0, "--quiet"]
    assert run(capsys, *words)[0] == 0
    text = (files / "a.html").read_text("utf-8")
    assert "turns round under 0 of them" in text
    for name in ("trec", "hits_topk", "oxford"):
        value = retrieval.evaluate_run("qrels.txt", "plain.run", ["mAP"], name)["mAP"]
        assert f'>{name}</td><td data-value="{value:.9g}">{value:.4f}' in text
    monkeypatch.setattr(rankings, "ITEMS", 10)
    assert run(capsys, *words)[0] == 0
    assert "Under other conventions" not in (files / "a.html").read_text("utf-8")


def test_options_of_scoring_are_those_of_the_command(files, capsys):
    words = ["qrels.txt", "plain.run", "--metrics", "map,ndcg@5", "--ties", "best", "--level", 2, "--bootstrap", 0]
    code, _, err = run(capsys, "--trec", *words, "--out", "a.html")
    assert (code, err) == (0, f"detmap: note: wrote a.html, {(files / 'a.html').stat().st_size / 1e6:.1f} MB\n")
    text = (files / "a.html").read_text("utf-8")
    result = retrieval.evaluate_run("qrels.txt", "plain.run", ["map", "ndcg@5"], ties="best", level=2)
    assert f">{result['mAP']:.4f}<" in text
    assert result.convention.describe() in text
    assert "no interval was asked for" in text


def test_differences_have_the_level_and_the_kind_of_interval_that_are_asked_for(files, capsys):
    words = ["qrels.txt", "plain.run", "<b>better.run", "--out", "a.html", "--bootstrap", 200, "--quiet"]
    assert run(capsys, "--trec", *words, "--confidence", 0.9, "--interval", "percentile")[0] == 0
    results = {name: retrieval.evaluate_run("qrels.txt", name) for name in ("plain.run", "<b>better.run")}
    queries, values = by_query(results, "AP")
    assert queries.tolist() == sorted(queries.tolist())
    (one,) = compare_queries(values, replicates=200, level=0.9, method="percentile")
    text = (files / "a.html").read_text("utf-8")
    assert f"has {one.difference:.4f} more mAP than plain, 90 % interval {one.low:.4f} to {one.high:.4f}" in text


@pytest.mark.parametrize(("level", "said"), [(0.95, "may well be chance"), (0.9, "is more than chance")])
def test_the_level_of_the_intervals_is_that_of_the_test(monkeypatch, level, said):
    """A p-value of 0.07 is significant at 0.1."""
    found = retrieval.evaluate_rankings([[0, 1], [1, 0]] * 10, [1] * 20, metrics=["mAP"])
    row = compare_queries({"m0": found.per_query["AP"], "m1": found.per_query["AP"][::-1]}, replicates=200)[0]
    row = row._replace(difference=0.1, adjusted={"randomisation": 0.07})
    monkeypatch.setattr(rankings, "compare_queries", lambda *_, **__: [row])
    assert said in page_of(found, found, replicates=200, level=level)


@pytest.mark.parametrize(
    ("kind", "file", "words", "evaluate"),
    [
        ("reid", "reid.npz", (), lambda a: retrieval.evaluate_features(*a[:4], a[4], a[5])),
        ("hashing", "hash.npz", (), lambda a: retrieval.evaluate_codes(*a[:4])),
        ("hashing", "hash.npz", ("--k", "5"), lambda a: retrieval.evaluate_codes(*a[:4], 5)),
    ],
)
def test_arrays(files, capsys, kind, file, words, evaluate):
    assert run(capsys, f"--{kind}", file, *words, "--out", "a.html", "--bootstrap", 200, "--quiet") == (0, "", "")
    names = {
        "reid": "query_features gallery_features query_ids gallery_ids query_cameras gallery_cameras",
        "hashing": "query_codes gallery_codes query_labels gallery_labels",
    }
    with np.load(file) as arrays:
        result = evaluate([arrays[name] for name in names[kind].split()])
    model = rankings.Model("m", result)
    assert f"<strong>{result[model.metric]:.4f}</strong>" in (files / "a.html").read_text("utf-8")


def test_files_that_no_check_reads_are_said(files, capsys):
    name = HOSTILE.replace(" ", "/").replace("\u2028", "")
    (files / "run.json").write_text(json.dumps({f"q{q}{name}": {"d0": 1.0, "d9": 0.5} for q in range(30)}))
    assert run(capsys, "--trec", "qrels.txt", "run.json", "--out", "a.html", "--bootstrap", 0, "--quiet")[0] == 0
    assert "are checked where they are TREC&#39;s lines" in (files / "a.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--trec", "qrels.txt", "--out", "a.html"], "RUN"),
        (["--trec", "qrels.txt", "plain.run", "plain.run", "--out", "a.html"], "'plain.run' is given twice"),
        (["--trec", "qrels.txt", "plain.run", "--out", "plain.run"], "would be written over"),
        (["--reid", "reid.npz", "--out", "./reid.npz"], "would be written over"),
        (["--trec", "qrels.txt", "plain.run", "--out", "a.html", "--iou", "0.5"], "--iou"),
        (["--trec", "qrels.txt", "plain.run", "--out", "a.html", "--bootstrap", "7"], "200"),
        (
            ["--trec", "qrels.txt", "plain.run", "--out", "a.html", "--metrics", "num_ret"],
            "that are means over queries",
        ),
        (["--hashing", "reid.npz", "--out", "a.html"], "has no array query_codes"),
        (["qrels.txt", "plain.run", "--out", "a.html", "--ties", "best", "--metrics", "map"], "--metrics"),
    ],
)
def test_refusals_are_one_line(files, capsys, words, message):
    code, out, err = run(capsys, *words, "--quiet")
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert not (files / "a.html").exists()


# --------------------------------------------------------------------------------------------------------------- its pieces


def page_of(*results, **more):
    return rankings.html([rankings.Model(f"m{i}", one) for i, one in enumerate(results)], [], MADE, **more)


def test_rankings_without_scores_or_failures():
    """Perfect rankings have nothing to lose; without scores nothing is known of ties."""
    text = page_of(retrieval.evaluate_rankings([[1, 0], [1, 1]], [1, 2], metrics=["mAP"]))
    assert "Nowhere: AP is 1 for every query." in text
    assert "AP of every query is the same in every order" in text or "This cannot be told" in text


def test_queries_that_one_run_lacks_are_no_pairs():
    qrels = {f"q{i}": {"a": 1} for i in range(40)}
    whole = {query: {"b": 0.5, "a": 0.1 + 0.9 * (i % 2)} for i, query in enumerate(qrels)}
    part = {query: {"a": 1.0} for query in list(qrels)[:20]}
    text = page_of(retrieval.evaluate_run(qrels, whole), retrieval.evaluate_run(qrels, part), replicates=200)
    assert "m1 has 0.2500 more mAP than m0" in text
    assert "0.0000</td>" in text
    assert "AP rises from m0 to m1 for 10 queries and falls for 0" in text


def test_intervals_end_where_metrics_do():
    """CMC of nearly 1 ends at 1; DCG, which may exceed 1 on other queries, is not cut."""
    relevant = [[1]] * 20 + [[0, 0, 1]] * 2
    result = retrieval.evaluate_rankings(relevant, metrics=["CMC@1", "DCG@3"])
    made = rankings.intervals(result, 400, 0, "t")
    at = made.columns["CMC@1"]
    assert made.interval()[at, 1] == 1 < dataclasses.replace(made, limits=None).interval()[at, 1]
    assert made.limits[[at, made.columns["DCG@3"]]].tolist() == [[0, 1], [-math.inf, math.inf]]


def test_values_of_bounded_metrics_are_from_0_to_1():
    """On a run with grades; those of all others are somewhere beyond."""
    rng = np.random.default_rng(3)
    grades = rng.integers(-1, 4, (60, 30))
    qrels = {f"q{q}": {f"d{d}": int(grade) for d, grade in enumerate(row) if d % 4} for q, row in enumerate(grades)}
    run = {query: {f"d{d}": score for d, score in enumerate(rng.random(30).tolist()) if d > 2} for query in qrels}
    for metric in METRICS:
        if metric.name == "num_q":  # 1 for every query, of which the sum is shown
            continue
        asked = f"{metric.name}@20" if metric.depth == "must" and metric.at == "rank" else f"{metric.name}@1"
        result = retrieval.evaluate_run(qrels, run, metrics=[asked if metric.depth == "must" else metric.name])
        (values,) = result.per_query.values()
        assert (np.nanmin(values) >= 0 and np.nanmax(values) <= 1) == metric.bounded, metric.name


def test_no_metric_that_is_a_mean_is_refused():
    found = retrieval.evaluate_run({"a": {"b": 1}}, {"a": {"b": 1.0}}, ["num_ret"])
    with pytest.raises(OptionError, match="that are means over queries"):
        page_of(found)


def test_curves_by_rank_are_the_metrics():
    """At every rank that is drawn the curves equal CMC, P and R there."""
    rng = np.random.default_rng(2)
    flags = rng.random((40, 60)) < 0.1
    flags[:, 7] = True
    ranks = ranking_curves.ranks_drawn(60)
    assert ranks.tolist() == [*range(1, 21), 22, 24, 26, 29, 32, 35, 38, 42, 46, 51, 56, 60]
    names = [f"{name}@{rank}" for name in ("success", "P", "R") for rank in ranks.tolist()]
    result = retrieval.evaluate_rankings(flags, flags.sum(axis=1), metrics=names)
    found = ranking_curves.Curves.of(result)
    for name, values in (("success", found.first), ("P", found.precision), ("R", found.recall)):
        assert values.mean(axis=0) == pytest.approx([result[f"{name}@{rank}"] for rank in ranks.tolist()], abs=1e-12)


def test_a_point_of_a_shorter_curve_lies_at_its_own_rank():
    """Lists of 25 items end at rank 25, also beside lists of 200, whose ranks that are drawn are others."""
    rng = np.random.default_rng(2)
    short, long = (rng.random((20, items)) < 0.2 for items in (25, 200))
    found = [retrieval.evaluate_rankings(flags, flags.sum(axis=1) + 1, metrics=["mAP"]) for flags in (short, long)]
    section = ranking_curves.curves([rankings.Model(name, one) for name, one in zip("ab", found, strict=True)], 0.95)
    recall = next(one for _, blocks in section.panels for one in blocks if getattr(one, "y", "") == "recall")
    ends = [float(one["path"].rpartition("L")[2].split()[0]) for one in recall.lines if "band" not in one["style"]]
    assert ends == pytest.approx(
        [charts.LEFT + charts.WIDTH * math.log(25) / math.log(200), charts.LEFT + charts.WIDTH], abs=0.1
    )


def test_systems_of_the_same_values_are_said_to_have_them():
    found = retrieval.evaluate_rankings([[0, 1], [1, 0]] * 10, [1] * 20, metrics=["mAP"])
    text = page_of(found, found, replicates=200)
    assert "m0 and m1 have the same mAP." in text
    assert "-0.0000" not in text


def test_a_difference_that_is_undefined_is_said_to_be():
    made = blocks.differences("AP", 0.95, 0.05, "images", [blocks.Apart("a", "b", *[math.nan] * 4)], [])
    assert made[0].text == "a and b cannot be compared by AP, which is undefined for one of them or for both."


def uneven(tmp_path):
    """Judgements of 30 queries, a run of all, and one of 18 of them that is better there but worse by its mean."""
    rng = np.random.default_rng(4)
    documents = [f"d{k}" for k in range(20)]
    grades = {f"q{q:02}": {d: int(rng.random() < 0.2 or d == "d0") for d in documents} for q in range(30)}
    skills = {"whole": [2.0] * 12 + [0.2] * 18, "part": [0.0] * 12 + [0.3] * 18}
    paths = []
    for name, skill in skills.items():
        path = tmp_path / "home" / "author" / name / "run.txt"
        path.parent.mkdir(parents=True)
        lines = [
            f"{q} Q0 {d} 1 {rng.random() + skill[at] * of[d]:.4f} tag"
            for at, (q, of) in enumerate(grades.items())
            for d in documents
            if name == "whole" or at >= 12
        ]
        path.write_text("\n".join(lines) + "\n")
        paths.append(str(path))
    qrels = tmp_path / "home" / "author" / "qrels.txt"
    qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, of in grades.items() for d, g in of.items()))
    return str(qrels), paths


def test_models_of_different_queries_do_not_contradict_their_differences(tmp_path, capsys):
    """The sentence says of which queries it is, and both means there; the card of the model that lacks some is marked."""
    qrels, paths = uneven(tmp_path)
    out = tmp_path / "a.html"
    assert run(capsys, "--trec", qrels, *paths, "--out", out, "--bootstrap", 200, "--quiet")[0] == 0
    text = out.read_text("utf-8")
    results = {name: retrieval.evaluate_run(qrels, path) for name, path in zip("ab", paths, strict=True)}
    _, columns = by_query(results, "AP")
    common = ~np.isnan(columns["b"])
    means = [float(columns[name][common].mean()) for name in "ab"]
    assert results["a"]["mAP"] > results["b"]["mAP"]  # which the cards say
    assert means[0] < means[1]
    said = f"part/run has {means[1] - means[0]:.4f} more mAP than whole/run on the 18 queries that both have"
    assert f"{said} ({means[1]:.4f} and {means[0]:.4f})" in text
    assert text.count("Mean over 18 of 30 queries: this model lacks 12, so that its numbers cannot be compared") == 1
    assert '<p class="mark">' in text
    assert "Means are of each model&#39;s own queries, which are not the same for all" in text
    alike = tmp_path / "b.html"
    assert run(capsys, "--trec", qrels, paths[0], *paths[1:], "--convention", "ranx", "--out", alike, "--quiet")[0] == 0
    for unsaid in ("that both have", "this model lacks", "not the same for all", '<p class="mark">'):
        assert unsaid not in alike.read_text("utf-8")  # ranx counts them as 0


def test_pages_name_files_by_the_ends_of_their_paths(tmp_path, capsys, monkeypatch):
    qrels, paths = uneven(tmp_path)
    out = tmp_path / "a.html"
    assert run(capsys, "--trec", qrels, *paths, "--out", out, "--quiet")[0] == 0
    text = out.read_text("utf-8")
    assert "author" not in text
    assert "<title>Report on whole/run, part/run</title>" in text
    assert reporting._names(["a/x.run", "b/y.run"]) == ["x", "y"]
    assert reporting._names(["/r/s/x.run", "/r/t/x.run.gz"]) == ["s/x", "t/x"]
    assert reporting._names(["/r/x.run", "/r/x.txt"]) == ["x.run", "x.txt"]
    assert reporting._names(["/r/x.run", "/r/x.txt", "/s/x.run"]) == ["r/x.run", "r/x.txt", "s/x"]
    assert reporting._names(["/r/x.run", "/r/x.txt", "/s/x.run", "/s/x.txt"]) == [
        "r/x.run",
        "r/x.txt",
        "s/x.run",
        "s/x.txt",
    ]
    assert reporting._names(["x", "/r/x"]) == ["x", "r/x"]
    assert ranking_files.named(["/me/a/x.run", "/me/b/x.run"]) == {"a/x": "/me/a/x.run", "b/x": "/me/b/x.run"}


def test_the_command_says_that_differences_are_of_common_queries(tmp_path, capsys):
    qrels, paths = uneven(tmp_path)
    said = "a difference is that of the queries which both runs have"
    assert cli.main(["trec", qrels, *paths, "--metrics", "map", "--compare", "map"]) == 0
    assert said in "".join(capsys.readouterr())
    assert cli.main(["trec", qrels, *paths, "--metrics", "map", "--compare", "map", "--convention", "ranx"]) == 0
    assert said not in "".join(capsys.readouterr())


def test_names_of_systems_are_no_names_of_columns():
    """A system may be called as another column is, or p, which does not make its AP a p-value."""
    names = ("query", "p", "convention")
    rng = np.random.default_rng(2)
    qrels = {f"q{i}": {"d0": 1} for i in range(12)}
    models = []
    for name in names:
        run = {query: {f"d{k}": float(score) for k, score in enumerate(rng.random(5))} for query in qrels}
        run["q0"] = {f"d{1 + (name == 'query')}": 1.0} if name != "convention" else {"d0": 1.0}
        models.append(rankings.Model(name, retrieval.evaluate_run(qrels, run), under={"trec": 0.00001, "oxford": 0.5}))
    panels = [one for section in (rankings._compared(models, 200, 0, 0.95), rankings._conventions(models))
              for _, panel in section.panels for one in panel]  # fmt: skip
    made = {one.title: one for one in panels if one.kind == "table"}
    moved = made["Queries that move most"]
    assert [column["name"] for column in moved.columns] == ["query", "AP query", "AP p", "difference"]
    assert {row[0]["shown"] for row in moved.rows} <= set(qrels)
    other = made["Mean AP under every convention"]
    assert [column["name"] for column in other.columns] == [
        "convention", "mAP query", "mAP p", "mAP convention", "decides"
    ]  # fmt: skip
    assert other.rows[0][2]["shown"] == "0.0000"


def test_small_p_values_are_numbers_that_sort():
    made = tables.table("t", [{"p": 0.00007}, {"p": 0.5}, {"p": math.nan}])
    assert [row[0]["shown"] for row in made.rows] == ["<0.0001", "0.5000", "–"]
    assert [row[0]["value"] for row in made.rows] == ["7e-05", "0.5", ""]
    assert made.columns[0]["style"] == ""


def test_a_page_of_one_system_counts_its_queries():
    text = page_of(retrieval.evaluate_rankings([[1, 0], [1, 1]], [1, 2], metrics=["mAP"]))
    assert "<dt>Queries</dt><dd>2 queries scored" in text
    assert '>metric <span class="of">mean over queries</span><' in text  # said once, as it holds for every row
    assert text.count('<span class="of">') == 1
    alone = page_of(retrieval.evaluate_rankings([[1, 0]], [1], metrics=["mAP"]))
    assert "detmap · 1 query scored" in alone
    assert "<dd>1 query scored" in alone
    assert "Detections" not in text


def test_a_band_has_gaps_where_it_is_undefined():
    x = np.linspace(0, 1, 5)
    low = np.array([0.1, 0.2, math.nan, 0.3, 0.4])
    made = charts.area(x, low, low + 0.1, "main")
    assert made["path"].count("Z") == 2
    assert charts.area(x, low * math.nan, low, "main")["path"] == ""


def test_many_systems_are_drawn_thin_and_can_be_chosen():
    found = [retrieval.evaluate_rankings([[0, 1], [1, 0]], [1, 1], metrics=["mAP"])] * 8
    assert charts.styles(8) == ["c0", "c1", "c2", "c3", "c4", "c5", "thin", "thin"]
    assert "Show a model" in page_of(*found)


@pytest.mark.parametrize("ties", ["trec", "ranx"])
def test_documents_of_queries_have_the_ranks_that_are_scored(tmp_path, ties):
    """Hits at the ranks of the result, misses at all others, in a run with ties; and what is not ranked."""
    rng = np.random.default_rng(2)
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(0, 2)) for d in range(12)} for q in range(6)}
    run = {f"q{q}": {f"d{d}": float(rng.integers(0, 4)) for d in rng.permutation(20)[:10]} for q in range(6)}
    result = retrieval.evaluate_run(qrels, run, ["mAP"], ties)
    found = documents(qrels, run, result.convention, {"depth": None, "level": None}, list(qrels))
    hits = result.hits.break_ties(result.convention.ties)
    for at, query in enumerate(result.query_ids.tolist()):
        own = found[query]
        assert [rank for _, rank in own.hits] == hits.ranks[hits.starts[at] : hits.starts[at + 1]].tolist()
        assert sorted(rank for _, rank in [*own.hits, *own.misses]) == list(range(1, 11))
        assert all(qrels[query].get(name, 0) > 0 for name, _ in own.hits)
        assert {name for name, _ in [*own.hits, *own.misses]} == set(run[query])
        wanted = {name for name, grade in qrels[query].items() if grade > 0}
        assert set(own.lost) == wanted - set(run[query])
    assert documents(qrels, run, result.convention, {"judged_only": True}, list(qrels)) == {}


def test_the_worst_queries_name_documents(tmp_path, capsys):
    (tmp_path / "qrels").write_text("q1 0 <b>a 1\nq1 0 c 1\nq2 0 d 1\n")
    (tmp_path / "r.run").write_text("q1 Q0 x 0 3 r\nq1 Q0 <b>a 0 2 r\nq2 Q0 d 0 1 r\n")
    words = [
        "report",
        "--trec",
        tmp_path / "qrels",
        tmp_path / "r.run",
        "--out",
        tmp_path / "a.html",
        "--bootstrap",
        0,
        "--quiet",
    ]
    assert cli.main(list(map(str, words))) == 0
    text = (tmp_path / "a.html").read_text("utf-8")
    assert ">&lt;b&gt;a at 2</td>" in text
    assert ">x at 1</td>" in text
    assert ">c</td>" in text


def test_queries_that_move_most_stand_first():
    """Those that fall too; queries of equal changes in their order, and none without a change."""
    first, second = [1.0, 0.5, 0.25, 0.5, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0, 0.125, 0.875]
    runs = [
        {
            f"q{at}": {"a": 1.0} | {f"x{n}": 2.0 for n in range(int(1 / ap) - 1 if ap else 0)}
            for at, ap in enumerate(one)
        }
        for one in (first, second)
    ]
    runs[1]["q2"] = runs[1]["q3"] = {"b": 1.0}
    runs[1]["q5"] = {"a": 1.0}
    results = [retrieval.evaluate_run({query: {"a": 1} for query in runs[0]}, run) for run in runs]
    models = [rankings.Model(name, one) for name, one in zip("ab", results, strict=True)]
    made = rankings._compared(models, 200, 1, 0.95)
    moved = next(
        one for _, every in made.panels for one in every if getattr(one, "title", "") == "Queries that move most"
    )
    assert [[one["shown"] for one in row] for row in moved.rows] == [
        ["q4", "1.0000", "0.1250", "-0.8750"], ["q1", "0.5000", "1.0000", "0.5000"],
        ["q3", "0.5000", "0.0000", "-0.5000"], ["q2", "0.2500", "0.0000", "-0.2500"],
    ]  # fmt: skip


def shown(section, title):
    """The header and the cells of a table of a section."""
    (made,) = (one for _, every in section.panels for one in every if getattr(one, "title", "") == title)
    return [[one["name"] for one in made.columns], *[[one["shown"] for one in row] for row in made.rows]]


def test_means_stand_apart_from_other_numbers():
    """Counts are whole, and means are listed where the first screen has no room for all of them."""
    names = [f"{name}@{rank}" for name in ("P", "R", "CMC") for rank in range(1, 7)]
    found = retrieval.evaluate_run({"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}, [*names, "num_ret"])
    (section,) = rankings._metrics([rankings.Model("m", found)], 0.95)
    assert shown(section, "Other numbers") == [["metric", "value"], ["num_ret", "2"]]
    header, *rows = shown(section, "Means over queries")
    assert header == ["metric", "value"]
    assert rows == [[name, f"{found[name]:.4f}"] for name in list(found)[:-1]]
    (table,) = (one for one in section.panels[0][1] if getattr(one, "title", "") == "Means over queries")
    assert table.note == ""
    assert [row[1]["bar"] for row in table.rows] == [
        pytest.approx(100 * found[row[0]["shown"]], abs=0.1) for row in table.rows
    ]
    few = retrieval.evaluate_run({"q": {"a": 1}}, {"q": {"a": 1.0}}, names[:16])
    assert rankings._metrics([rankings.Model("m", few)], 0.95) == []


def test_means_of_several_systems_have_their_names_and_intervals(uneven_results):
    """Of a system without intervals, the value alone; below, of which queries, and how the intervals were made."""
    whole, part = uneven_results
    made = rankings.intervals(whole, 200, 0, "t")
    models = [rankings.Model("w", whole, made), rankings.Model("p", part)]
    (section,) = rankings._metrics(models, 0.9)
    header, *rows = shown(section, "Means over queries")
    assert header == ["metric", "w: value", "w: low", "w: high", "p: value"]
    ends = made.interval(0.9)
    for name, *numbers in rows:
        low, high = ends[made.columns[name]]
        assert numbers == [f"{value:.4f}" for value in (whole[name], low, high, part[name])]
    note = next(one for one in section.panels[0][1] if getattr(one, "title", "") == "Means over queries").note
    assert note.startswith("Means are of each model's own queries, which are not the same for all; ")
    assert made.sentence(level=0.9) in note


@pytest.fixture
def uneven_results():
    """Results with 18 means of 30 queries and of 20 of them."""
    rng = np.random.default_rng(1)
    names = [f"{name}@{rank}" for name in ("P", "R", "nDCG") for rank in range(1, 7)]
    qrels = {f"q{q}": {f"d{d}": int(rng.random() < 0.4 or not d) for d in range(12)} for q in range(30)}
    runs = [{q: {d: float(rng.random()) for d in of} for q, of in list(qrels.items())[:count]} for count in (30, 20)]
    return [retrieval.evaluate_run(qrels, run, names) for run in runs]


def test_differences_on_the_queries_that_both_have_show_the_means_there(uneven_results):
    whole, part = uneven_results
    models = [rankings.Model(name, one) for name, one in zip("wp", uneven_results, strict=True)]
    found = rankings._compared(models, 200, 1, 0.95)
    title = f"Difference of {models[0].metric}, 95 % interval and test"
    header, row = shown(found, title)
    both = ~np.isnan(by_query({"w": whole, "p": part}, "P@1")[1]["p"])
    means = [by_query({"w": whole, "p": part}, "P@1")[1][name][both].mean() for name in "wp"]
    said = dict(zip(header, row, strict=True))
    assert {said["from"], said["to"]} == {"w", "p"}
    by_name = {said["from"]: said["mean of from"], said["to"]: said["mean of to"]}
    assert by_name == {"w": f"{means[0]:.4f}", "p": f"{means[1]:.4f}"}
    alike = rankings._compared([models[0], rankings.Model("other", whole)], 200, 1, 0.95)
    assert "mean of from" not in shown(alike, title)[0]
