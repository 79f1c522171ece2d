"""Runs and judgements from tables, JSON and BEIR's folders, and neighbours from arrays: the numbers of TREC's lines."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from support import same_bits

from detmap.cli import main
from detmap.errors import InputError
from detmap.retrieval import evaluate_neighbors, evaluate_run

JUDGED = [("q1", "a", 1), ("q1", "b", 0), ("q2", "b", 2), ("q2", "c,d", 1), ("q3", "a", 1)]
RANKED = [("q1", "b", 0.75), ("q1", "a", 0.5), ("q2", "c,d", 5e-324), ("q2", "b", 0.0), ("q2", "x", 1.0)]


def columns(rows, names):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def nested(rows):
    out = {}
    for query, document, value in rows:
        out.setdefault(query, {})[document] = value
    return out


@pytest.fixture
def expected(tmp_path):
    (tmp_path / "q").write_text("".join(f"{q} 0 {d} {v}\n" for q, d, v in JUDGED))
    (tmp_path / "r").write_text("".join(f"{q} Q0 {d} 1 {v!r} x\n" for q, d, v in RANKED))
    return evaluate_run(tmp_path / "q", tmp_path / "r")


def write(path, table):
    """A table in the format that the path's name says."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(table), path)
    elif path.suffix == ".feather":
        feather.write_feather(pa.table(table), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(table))
    else:
        data = pd.DataFrame(table).to_csv(index=False, sep={".csv": ",", ".tsv": "\t"}[path.suffix])
        path.write_bytes(b"\xef\xbb\xbf" + data.replace("\n", "\r\n").encode())
    return path


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv", "tsv"])
def test_tables_with_named_columns(ending, expected, tmp_path, capsys):
    qrels = write(tmp_path / f"judged.{ending}", columns(JUDGED, ("query-id", "corpus-id", "score")))
    run = write(tmp_path / f"ranked.{ending}", {"rank": [1] * 5, **columns(RANKED, ("qid", "docno", "score"))})
    for pair in ((qrels, run), (qrels, tmp_path / "r"), (tmp_path / "q", run), (qrels.read_bytes(), run.read_bytes())):
        assert dict(evaluate_run(*pair)) == dict(expected)
    assert main(["trec", str(qrels), str(run), "--format", "json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == json.loads(expected.to_json())["metrics"]


class Stream:
    """Anything that has Arrow's interface, and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def test_frames_and_whatever_has_arrows_interface(expected):
    qrels, run = columns(JUDGED, ("query", "doc_id", "relevance")), columns(RANKED, ("query", "doc_id", "score"))
    for make in (pa.table, pd.DataFrame, lambda table: Stream(pa.table(table)), dict):
        assert dict(evaluate_run(make(qrels), make(run))) == dict(expected)
    coded = pa.table({**qrels, "doc_id": pa.array(qrels["doc_id"]).dictionary_encode()})
    assert dict(evaluate_run(coded, run)) == dict(expected)
    with pytest.raises(InputError, match="run: no column named score, sim, scores; it has: query, doc_id, relevance"):
        evaluate_run(qrels, pa.table(qrels))
    with pytest.raises(InputError, match="record 1, field 'doc_id': is missing"):
        evaluate_run(qrels, pa.table({**run, "doc_id": ["a", None, "b", "c", "d"]}))


def test_beirs_folder_and_json(expected, tmp_path, capsys):
    """The judgements of the test split; corpus and queries are not needed for the numbers."""
    folder = tmp_path / "set"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "a"}\n')
    table = columns(JUDGED, ("query-id", "corpus-id", "score"))
    write(folder / "qrels/test.tsv", table)
    (folder / "qrels/train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tb\t1\n")
    run = tmp_path / "run.json"
    run.write_text(json.dumps(nested(RANKED)))
    for qrels in (folder, folder / "qrels", folder / "qrels/test.tsv"):
        assert dict(evaluate_run(qrels, run)) == dict(expected)
    assert evaluate_run(folder / "qrels/train.tsv", run)["mAP"] == 1
    assert main(["trec", str(folder), str(run), "--format", "json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == json.loads(expected.to_json())["metrics"]
    with pytest.raises(InputError, match="is a folder; give the file of the run"):
        evaluate_run(folder, folder)
    (folder / "qrels/test.tsv").rename(folder / "qrels/a.tsv")
    (folder / "qrels/train.tsv").rename(folder / "qrels/b.tsv")
    with pytest.raises(InputError, match="holds 2 files of judgements"):
        evaluate_run(folder, run)
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match=r"is a folder; BEIR's data sets have qrels/test\.tsv"):
        evaluate_run(tmp_path / "none", run)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("query,doc\nq1,a\n", "no column named score, sim, scores; it has: query, doc"),
        ("query,doc,score\nq1,a\n", "line 2: has 2 fields where 3 are expected"),
        ("query,doc,score\nq1,a,high\n", r"line 2: a score must be a number \(got 'high'\)"),
        ("query,doc,score\nq1,a,1_0\n", r"line 2: a score must be a number \(got '1_0'\)"),
        ("query,doc,score\n", "is empty"),
        ("query,query,doc,score\nq,q,a,1\n", "has two columns of one name"),
        ('query,doc,score\nq1,"a,1\n', "is not valid CSV"),
        (b"query,doc,score\nq1,\xff,1\n", "is not a text file in UTF-8"),
        ('{"q1": {"a": 1, "a": 2}}', r"is there twice in one object \(got 'a'\)"),
        ('{"q1": [1]}', "must hold an object of documents and values for each query"),
        ('{"q1": {"a": ', "is not valid JSON"),
        ('{"q1": {"a": NaN}}', "NaN is no number of JSON"),
        ('{"q1": {"a": "1"}}', "number"),
        ("{}", "is empty"),
        (b"PAR1 and no more", "is not a parquet file that can be read"),
        (b"ARROW1 and no more", "is not a feather file that can be read"),
    ],
)
def test_files_that_are_none_are_refused_by_one_line(content, problem, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=problem) as caught:
        evaluate_run({"q1": {"a": 1}}, path)
    assert str(caught.value).isprintable()


def neighbors():
    rng = np.random.default_rng(3)
    ours, theirs = rng.integers(0, 4, 6), rng.integers(0, 4, 20)
    distances = np.sort(rng.random((6, 20)), axis=1)
    return {
        "indices": np.argsort(rng.random((6, 20)), axis=1)[:, :8],
        "distances": distances[:, :8],
        "query_ids": ours,
        "gallery_ids": theirs,
        "query_cameras": rng.integers(0, 2, 6),
        "gallery_cameras": rng.integers(0, 2, 20),
    }


def test_neighbours_as_arrays_and_tables(tmp_path, capsys):
    """The command gives the numbers of `evaluate_neighbors`, from .npz and from Parquet with a file of the gallery."""
    given = neighbors()
    names = ("indices", "query_ids", "gallery_ids", "distances", "query_cameras", "gallery_cameras")
    expected = evaluate_neighbors(*(given[name] for name in names))
    np.savez(tmp_path / "found.npz", **given)
    lists = {name: pa.array(list(given[name])) for name in ("indices", "distances")}
    parquet.write_table(
        pa.table({**lists, "query_id": given["query_ids"], "camera": given["query_cameras"]}),
        tmp_path / "found.parquet",
    )
    gallery = pa.table({"id": given["gallery_ids"], "camera": given["gallery_cameras"]})
    parquet.write_table(gallery, tmp_path / "gallery.parquet")
    feather.write_feather(gallery, tmp_path / "gallery.feather")
    for words in (
        ["found.npz"],
        ["found.parquet", "--gallery", str(tmp_path / "gallery.parquet")],
        ["found.parquet", "--gallery", str(tmp_path / "gallery.feather")],
    ):
        assert main(["reid", str(tmp_path / words[0]), *words[1:], "--format", "json", "--quiet"]) == 0
        metrics = json.loads(capsys.readouterr().out)["metrics"]
        assert same_bits(np.array(list(metrics.values()), float), np.array(list(expected.values())))
    del given["distances"]
    np.savez(tmp_path / "found.npz", **given)
    assert main(["reid", str(tmp_path / "found.npz"), "--quiet"]) == 0
    capsys.readouterr()
    lists["indices"] = pa.array([[1], [2, 3], [1], [1], [1], [1]])
    parquet.write_table(pa.table({**lists, "query_id": given["query_ids"]}), tmp_path / "found.parquet")
    assert main(["reid", str(tmp_path / "gallery.parquet"), "--gallery", str(tmp_path / "found.npz")]) == 2
    assert "is neither of parquet, feather" in capsys.readouterr().err
    for words, problem in (
        (
            ["--gallery", str(tmp_path / "gallery.parquet")],
            "record 1, field 'indices': has 2 values where others have 1",
        ),
        ([], "is Parquet, not an .npz file"),
    ):
        assert main(["reid", str(tmp_path / "found.parquet"), *words]) == 2
        assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b'{"a": 1}', "is JSON"),
        (b" [1]", "is JSON"),
        (b"1,2\n", "is text"),
        (b"", "is empty"),
        (b"\x89PNG\r\n\x1a\n", "is an image"),
        (b"\x93NUMPY\x01\x00", "is an array of numpy"),
        (b"\x00\x01", "is binary data of no known form"),
    ],
)
@pytest.mark.parametrize("command", ["reid", "hashing"])
def test_a_wrong_file_is_described(tmp_path, capsys, command, start, what):
    (tmp_path / "found.npz").write_bytes(start)
    assert main([command, str(tmp_path / "found.npz")]) == 2
    said = capsys.readouterr().err
    assert f"found.npz: {what}, not an .npz file; save with numpy.savez" in said
    assert said.count("\n") == 1
