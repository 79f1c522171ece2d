"""What was unusual in the input reaches everyone: every result has `notices`, and every form of output shows them."""

from __future__ import annotations

import concurrent.futures
import csv
import io
import json
import shutil

import numpy as np
import pytest
from batches import FIXTURES, TRUTH, run

import detmap
from detmap import batch, cli, results, statistics
from detmap.reports import leaderboard as report
from detmap.retrieval import evaluate_codes, evaluate_distances, evaluate_run

RECORDS = json.loads((FIXTURES / "detections.json").read_text())
UNKNOWN = sum(1 for i in range(len(RECORDS)) if i % 3 == 0)
HOSTILE = "<b onclick=x>|[2J`"
IN_WORDS = f"{UNKNOWN} detections of categories that the ground truth does not have: not scored"


@pytest.fixture
def folder(tmp_path):
    """Models: as they are, with unknown categories, and with images that are not there and a name that means harm."""
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "plain.json").write_text(json.dumps(RECORDS))
    (runs / "unknown.json").write_text(
        json.dumps([{**r, "category_id": r["category_id"] if i % 3 else 777} for i, r in enumerate(RECORDS)])
    )
    (runs / f"{HOSTILE}.json").write_text(json.dumps([*RECORDS, {**RECORDS[0], "image_id": 987654}]))
    return runs


EXPECTED = {"plain": {}, "unknown": {"unknown_category": UNKNOWN}, HOSTILE: {"unknown_image": 1}}


@pytest.mark.slow
@pytest.mark.parametrize("pool", [None, concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor])
def test_of_every_file_of_a_batch(folder, tmp_path, pool):
    if pool is concurrent.futures.ProcessPoolExecutor:
        import multiprocessing

        executor = pool(2, multiprocessing.get_context("spawn"))
    else:
        executor = None if pool is None else pool(2)
    try:
        found = list(batch.score(TRUTH, [folder], unknown_images="ignore", out=tmp_path / "out", executor=executor))
    finally:
        if executor is not None:
            executor.shutdown()
    assert {one.entry.name: dict(one.notices) for one in found} == EXPECTED
    written = [json.loads(path.read_text()) for path in (tmp_path / "out" / "results").glob("*.json")]
    assert {one["name"]: one["notices"] for one in written} == EXPECTED
    again = batch.score(TRUTH, [folder], unknown_images="ignore", out=tmp_path / "out", resume=True)
    assert {one.entry.name: dict(one.notices) for one in again} == EXPECTED


def test_a_batch_shows_them_in_every_form(folder, tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ("batch", TRUTH, folder, "--unknown-images", "ignore")
    code, table, err = run(capsys, *arguments, "--out", out)
    assert code == 0
    assert "note:" not in err
    assert f"unknown_category {UNKNOWN}" in run(capsys, *arguments, "--format", "csv")[1]
    assert table.count(IN_WORDS) == 1
    text = (out / "leaderboard.md").read_text()
    assert "\n## Notices\n" in text
    assert f"| unknown | {IN_WORDS} |" in text
    rows = list(csv.DictReader(io.StringIO((out / "leaderboard.csv").read_text())))
    brief = {"plain": "", "unknown": f"unknown_category {UNKNOWN}", HOSTILE: "unknown_image 1"}
    assert {row["model"]: row["notices"] for row in rows} == brief
    models = json.loads((out / "leaderboard.json").read_text())["models"]
    assert {row["model"]: row["notices"] for row in models} == EXPECTED
    page = (out / "leaderboard.html").read_text()
    assert ">Notices</h2>" in page
    assert page.count(IN_WORDS) == 1
    parquet = pytest.importorskip("pyarrow.parquet").read_table(out / "leaderboard.parquet").to_pylist()
    assert {row["model"]: row["notices"] for row in parquet} == brief
    shown = json.loads(run(capsys, *arguments, "--format", "json")[1])
    assert {row["model"]: row["notices"] for row in shown["models"]} == EXPECTED
    _, markdown, err = run(capsys, *arguments, "--format", "markdown", "--quiet")
    assert "note" not in err
    assert f"| unknown | {IN_WORDS} |" in markdown
    rows = list(csv.DictReader(io.StringIO(run(capsys, *arguments, "--format", "csv")[1])))
    assert {row["model"]: row["notices"] for row in rows} == brief


def test_names_that_mean_harm_are_text(folder, tmp_path, capsys):
    code, table, err = run(capsys, "batch", TRUTH, folder, "--unknown-images", "ignore", "--out", tmp_path / "out")
    assert code == 0
    for text in (table, err, (tmp_path / "out" / "leaderboard.md").read_text()):
        assert "\x1b" not in text
    page = (tmp_path / "out" / "leaderboard.html").read_text()
    assert "<b onclick" not in page
    assert "&lt;b onclick" in page
    notices = [{"model": "<i>", "notice": "<u>\x1b"}]
    made = report.html(report.Board("AP", [{"model": "a"}], notices=notices))
    assert '<dt>&lt;i&gt;</dt><dd class="notice">&lt;u&gt;\\x1b</dd>' in made


def test_what_all_have_is_said_once():
    """A thousand models of one ground truth: its notices are not a thousand lines."""
    found = {"a": {"zero_id": 2, "unknown_image": 1}, "b": {"zero_id": 2}}
    rows = results.sentences(found)
    assert [row["model"] for row in rows] == ["all", "a"]
    assert rows[0]["notice"].startswith("2 annotations with id 0")
    assert results.sentences({"a": found["a"]})[0]["model"] == "a"
    assert results.sentences({"a": {}, "b": {}}) == []


def test_they_name_what_was_scored(tmp_path, capsys):
    """Detections on a video are never called detections on an image."""
    folder = FIXTURES.parent / "temporal"
    truth, runs = folder / "activitynet.json", tmp_path / "runs"
    runs.mkdir()
    for name in "ab":
        shutil.copy(folder / "activitynet_results.json", runs / f"{name}.json")
    said = "4 detections on videos that the ground truth does not have: dropped"
    rules = ["--protocol", "activitynet", "--unknown-images", "ignore"]
    for command in (
        ["eval", truth, runs / "a.json", *rules],
        ["eval", truth, runs / "a.json", *rules, "--format", "csv"],
        ["diagnose", truth, runs / "a.json", *rules],
        ["compare", truth, runs / "a.json", runs / "b.json", *rules, "--bootstrap", "200"],
        ["batch", truth, runs, *rules, "--out", tmp_path / "out"],
    ):
        assert cli.main([str(one) for one in command]) == 0
        shown = capsys.readouterr()
        assert said in shown.out + shown.err, command
    assert said in (tmp_path / "out" / "leaderboard.md").read_text()
    ours = detmap.read(truth, iou_type="temporal")
    found = detmap.read(runs / "a.json", iou_type="temporal", unknown_images="ignore", ground_truth=ours)
    result = detmap.evaluate(ours, found, "activitynet")
    assert f"note: {said}" in str(result)
    assert said in result._repr_html_()
    assert results.sentences({"a": result.notices}, "a kind of a plug-in")[0]["notice"] == said.replace(
        "videos", "images"
    )


def test_a_code_with_names_is_counted_by_its_names():
    assert results.in_brief({"missing:cat": 1, "zero_id": 3, "missing:dog: big": 1}) == "missing 2, zero_id 3"


def test_a_leaderboard_without_notices_has_no_column(tmp_path):
    (tmp_path / "plain.json").write_text(json.dumps(RECORDS))
    board = batch.Leaderboard(list(batch.score(TRUTH, [tmp_path / "plain.json"])))
    assert "notices" not in board.rows()[0]
    assert board.notices() == []


@pytest.mark.compiled
def test_a_comparison_has_those_of_its_models(folder, tmp_path, capsys):
    paths = [folder / "plain.json", folder / "unknown.json"]
    few = ("--bootstrap", 200, "--permutations", 100)
    code, table, err = run(capsys, "compare", TRUTH, *paths, *few, "--out", tmp_path / "made.json")
    assert code == 0
    assert "note:" not in err
    assert f"unknown  {IN_WORDS}" in table
    expected = {name: EXPECTED[name] for name in ("plain", "unknown")}
    assert json.loads((tmp_path / "made.json").read_text())["notices"] == expected
    shown = run(capsys, "compare", TRUTH, *paths, *few, "--format", "json")[1]
    assert json.loads(shown)["notices"] == expected
    truth = detmap.read_coco(TRUTH)
    models = {p.stem: detmap.evaluate(truth, detmap.read_coco_results(p, truth)) for p in paths}
    assert statistics.compare(models, 200, permutations=100).notices == expected
    assert {name: dict(one.notices) for name, one in models.items()} == expected


def test_an_evaluation_shows_them_in_every_form(folder, tmp_path, capsys):
    arguments = ("eval", TRUTH, folder / "unknown.json")
    code, table, err = run(capsys, *arguments, "--out", tmp_path / "made.json")
    assert code == 0
    assert "note:" not in err
    assert table.endswith(f"notice\n{IN_WORDS}\n")
    assert json.loads((tmp_path / "made.json").read_text())["notices"] == EXPECTED["unknown"]
    assert json.loads(run(capsys, *arguments, "--format", "json")[1])["notices"] == EXPECTED["unknown"]
    assert f"| {IN_WORDS} |" in run(capsys, *arguments, "--format", "markdown")[1]
    assert run(capsys, *arguments, "--format", "csv")[1].endswith(f"notices unknown_category,{UNKNOWN}\n")


def test_shards_have_those_of_the_whole(tmp_path, capsys):
    records = json.loads((FIXTURES / "detections.json").read_text())
    images = sorted({r["image_id"] for r in records})
    for i in range(3):
        own = [r for r in records if images.index(r["image_id"]) % 3 == i]
        part = [{**r, "category_id": 777} if j % 4 == 0 else r for j, r in enumerate(own)]
        (tmp_path / f"{i}.json").write_text(json.dumps([*part, {**own[0], "image_id": 5_000_000 + i}]))
    whole = [r for i in range(3) for r in json.loads((tmp_path / f"{i}.json").read_text())]
    truth = detmap.read_coco(TRUTH)
    (tmp_path / "whole.jsonl").write_text("\n".join(map(json.dumps, whole)))
    expected = detmap.evaluate(
        truth, detmap.read_coco_results(tmp_path / "whole.jsonl", truth, unknown_images="ignore")
    )
    assert expected.notices["unknown_image"] == 3
    arguments = ("eval", TRUTH, tmp_path / "?.json", "--sharded", "--unknown-images", "ignore")
    code, out, err = run(capsys, *arguments, "--format", "json")
    assert code == 0
    assert json.loads(out)["notices"] == dict(expected.notices)
    assert f"note: {expected.notices['unknown_category']} detections of categories" in err


def test_rankings_have_them_too(tmp_path, capsys):
    qrels = {"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 0}}
    ranked = {"1": {"a": 0.5}, "3": {"c": 0.5}, "9": {"a": 0.5}}
    result = evaluate_run(qrels, ranked, ["map"])
    expected = {"missing_queries": 1, "extra_queries": 1, "empty_queries": 1}
    assert dict(result.notices) == expected
    assert result.to_dict()["notices"] == expected
    assert json.loads(result.to_json())["notices"] == expected
    (tmp_path / "q").write_text("1 0 a 1\n2 0 b 1\n3 0 c 0\n")
    (tmp_path / "one").write_text("1 Q0 a 1 .5 r\n3 Q0 c 1 .5 r\n9 Q0 a 1 .5 r\n")
    (tmp_path / "two").write_text("1 Q0 a 1 .5 r\n2 Q0 b 1 .5 r\n")
    code, table, err = run(capsys, "trec", tmp_path / "q", tmp_path / "one")
    assert code == 0
    assert err == ""
    assert "1 query of the run without judgements" in table
    paths = (tmp_path / "one", tmp_path / "two")
    for more in ((), ("--compare",)):
        _, table, err = run(capsys, "trec", tmp_path / "q", *paths, *more)
        assert err == ""
        assert table.count("1 query of the run without judgements") == 1
        shown = json.loads(run(capsys, "trec", tmp_path / "q", *paths, *more, "--format", "json", "--quiet")[1])
        shown = shown.get("runs", shown)
        assert [shown[str(path)]["notices"] for path in paths] == [expected, {"missing_queries": 1}]


def test_galleries_and_codes_have_them_too(tmp_path, capsys):
    distances = np.array([[0.1, 0.2], [0.3, 0.1]])
    result = evaluate_distances(distances, ["a", "x"], ["a", "b"], convention="sklearn")
    assert dict(result.notices) == {"empty_queries": 1}
    codes = np.array([[0, 1], [1, 1]])
    assert dict(evaluate_codes(codes, codes, [1, 5], [1, 2]).notices) == {"empty_queries": 1}
    np.savez(tmp_path / "c.npz", query_codes=codes, gallery_codes=codes, query_labels=[1, 5], gallery_labels=[1, 2])
    np.savez(tmp_path / "d.npz", distances=distances, query_ids=[1, 9], gallery_ids=[1, 2])
    for arguments in (("hashing", tmp_path / "c.npz"), ("reid", tmp_path / "d.npz", "--convention", "sklearn")):
        code, table, err = run(capsys, *arguments)
        assert code == 0, err
        assert err == ""
        assert "1 query without relevant items" in table
        assert json.loads(run(capsys, *arguments, "--format", "json")[1])["notices"] == {"empty_queries": 1}


# ---------------------------------------------------------------------------------------------- images seen by two parts

FLAT = {"boxes": [[0, 0, 0, 9], [0, 0, 9, 9]], "labels": [1, 1]}
ODD = ({"boxes": [[0, 0, 0, 9], [0, 0, 9, 9]], "scores": [0.5, 0.4], "labels": [1, 7]}, FLAT)
FINE = ({"boxes": [[0, 0, 9, 9]], "scores": [0.5], "labels": [1]}, {"boxes": [[0, 0, 9, 9]], "labels": [1]})
OF_ODD = {"zero_sized_boxes": 2, "unknown_category": 1}


def part(*images, again=lambda evaluator: evaluator):
    evaluator = detmap.Evaluator(categories=[1], duplicates="first")
    for identity in images:
        evaluator.update(*(ODD if identity % 2 else FINE), image_ids=identity)
    return again(evaluator)


def loaded(evaluator):
    other = part(3)
    other.load_state_dict(evaluator.state_dict())
    return other


COPIES = {
    "as it is": lambda one: one,
    "saved": lambda one: detmap.Evaluator.from_bytes(one.to_bytes()),
    "loaded": loaded,
}


@pytest.mark.parametrize("again", COPIES)
def test_an_image_that_pads_two_parts_is_counted_once(again):
    """Samplers pad the last batch: its notices were counted once for each part that saw the image."""
    whole = part(1, 2, 3, 4, 5)
    expected = dict(whole.compute().notices)
    assert expected == {code: 3 * count for code, count in OF_ODD.items()}
    made = part(again=COPIES[again])
    for images in ((1, 2, 3), (3, 4, 1), (5, 1), (2, 4)):
        made.merge(part(*images, again=COPIES[again]))
    assert dict(made.compute().notices) == expected
    assert made.to_bytes() == whole.to_bytes()
    gathered = made.sync(lambda states, own: states.__setitem__(slice(None), [own, own]), 2)
    assert dict(gathered.compute().notices) == expected


def test_images_without_ids_are_others():
    one = detmap.Evaluator(categories=[1])
    one.update(*ODD)
    one.update(*FINE)
    one.merge(one)
    assert one.compute().notices["zero_sized_boxes"] == 4
    assert detmap.Evaluator.from_bytes(one.to_bytes())._noted == {0: OF_ODD, 2: OF_ODD}


def test_a_state_that_notes_what_its_tally_does_not():
    for noted in ({9: OF_ODD}, {1: {"zero_sized_boxes": 3}}, {1: {"zero_sized_boxes": -1}}, {1: {"more": 1}}):
        evaluator = part(1, 2)
        evaluator.compute()
        evaluator._noted = noted
        with pytest.raises(detmap.StateError, match="notes more of its images than its tally does"):
            detmap.Evaluator.from_bytes(evaluator.to_bytes())


def test_a_state_that_notes_no_images_loads():
    """Those that were saved before this was noted."""
    evaluator = part(1, 2)
    evaluator.compute()
    evaluator._noted = {}
    assert dict(detmap.Evaluator.from_bytes(evaluator.to_bytes()).compute().notices) == OF_ODD
