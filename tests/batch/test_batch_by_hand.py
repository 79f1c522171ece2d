"""Results of files, splits, leaderboards and saved documents by hand: every row, sentence and value."""

from __future__ import annotations

import io
import json
import math
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

import detmap
from detmap import batch
from detmap.batch import leaderboard, saving, splits, workers
from detmap.batch.finding import file_names, find, is_manifest
from detmap.batch.splits import Splits, check_hidden, of_splits, split_of
from detmap.errors import DetmapError, InputError, OptionError


def said(call, *given, **more):
    with pytest.raises(DetmapError) as caught:
        call(*given, **more)
    return str(caught.value)


def result(name, tags=None, error=None, **document):
    if error is not None:
        return batch.FileResult(batch.Entry(name, f"{name}.json", tags or {}), {"error": error})
    base = {"protocol": {"iou_type": "segm"}, "per_category": [], "rules": "the rules", "images": 1200}
    return batch.FileResult(batch.Entry(name, f"{name}.json", tags or {}), {**base, **document})


def bootstrap(low, high, bias=0.01, images=50, **more):
    return {
        "intervals": {"AP": [low, high]}, "bias": {"AP": bias}, "images": {"AP": images}, "no_interval": {"AP50": "few"},
        "sentence": "an interval", "level": 0.9, "per_category": [1], **more,
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ results


def test_what_a_result_has():
    one = result(
        "a", metrics={"AP": 0.5, "AP50": None}, bootstrap=bootstrap(0.4, 0.6), notices={"missing_area": 2, "zero": 0},
        key="k", content="c", under={"metric": "AP"},
        splits={"public": {"metrics": {"AP": 0.25}, "bootstrap": bootstrap(0.1, 0.3, images=7), "per_category": [{"x": 1}]}},
    )  # fmt: skip
    assert str(dict(one)) == "{'AP': 0.5, 'AP50': nan, 'public:AP': 0.25}"
    assert (one.error, one.splits, one.iou_type, one.of_category) == (None, ["public"], "segm", "AP")
    assert one.identity == {"key": "k", "content": "c"}
    assert one.notices == {"missing_area": 2}
    assert "per_category" not in one.bootstrap
    assert one.interval("AP") == (0.4, 0.6)
    assert one.interval("public:AP") == (0.1, 0.3)
    assert all(map(math.isnan, one.interval("AP50")))
    assert one.intervals(["AP", "AP50", "public:AP", "no"]) == {"AP": [0.4, 0.6], "public:AP": [0.1, 0.3]}
    assert one.bias("AP") == 0.01
    assert math.isnan(one.bias("AP50"))
    assert (one.images("AP"), one.images("public:AP"), one.images("AP50"), one.unit) == (50, 7, None, "images")
    assert (one.no_interval("AP50"), one.no_interval("AP")) == ("few", "")
    assert one.part("public")["metrics"] == {"AP": 0.25}
    assert one.part("absent") == {}
    assert one.part(None) == one.document == one.to_dict()
    assert one.rows("public") == [{"x": 1}]
    assert one.rows() == one.rows("absent") == []
    assert repr(one) == "<FileResult: a: AP 0.5000 (segm)>"
    plain = result("b", metrics={"AP": 0.5})
    assert (plain.bootstrap, plain.images("AP"), plain.no_interval("AP"), plain.under) == ({}, None, "", {})
    clusters = result("c", metrics={"AP": 0.5}, bootstrap={"clusters": {"AP": 9}})
    assert (clusters.unit, clusters.images("AP")) == ("clusters", 9)
    panoptic = result("d", metrics={"PQ": 0.5}, task="panoptic")
    assert (panoptic.iou_type, panoptic.of_category) == ("panoptic", "PQ")
    failed = result("e", error="no")
    assert (failed.iou_type, failed.error, repr(failed)) == (None, "no", "<FileResult: e: no>")
    assert batch.FileResult(batch.Entry("f", "f"), {"metrics": {"AP": 1.0}}).iou_type == "bbox"


# ------------------------------------------------------------------------------------------------------------- splits


def truth(ids=(3, 1, 2)):
    return detmap.GroundTruth.from_arrays(
        image_ids=[ids[0]], category_ids=[1], boxes=[[0, 0, 1, 1]], images=list(ids), source="t"
    )


def test_splits_of_images():
    made = Splits.read({1: "public", 3: "public", 2: "a b.c+d-e_"}, truth())
    assert made.names == ("public", "a b.c+d-e_")
    assert made.codes.tolist() == [0, 1, 0]
    assert made.images("public").tolist() == [True, False, True]
    assert made.images("a b.c+d-e_").tolist() == [False, True, False]
    assert split_of("public:AP", made.names) == "public"
    assert split_of("AP", ["AP"]) is split_of("private:AP", made.names) is split_of("public", made.names) is None
    assert of_splits(["AP", "AR"], ["x", "y"]) == ["AP", "AR", "x:AP", "x:AR", "y:AP", "y:AR"]
    assert of_splits(["AP", "AR"], ["x", "y"], ["y"]) == ["x:AP", "x:AR"]
    assert of_splits(iter(["AP"]), []) == ["AP"]
    check_hidden([], [])
    check_hidden(["x"], ["x", "y"])
    assert said(check_hidden, ["z"], ["x", "y"]) == "no split 'z' to hide; one of: x, y"
    assert said(check_hidden, ["z"], []) == "no split 'z' to hide; there are none without --splits FILE"
    assert said(check_hidden, ["y", "x"], ["x", "y"]) == "all splits are hidden: nothing would be left to rank by"


@pytest.mark.parametrize("name", ["AP", "AR5", "mAP", "mAR x", "", "a" * 41, "a:b", "ä\n", 5])
def test_names_that_no_split_can_have(name):
    with pytest.raises(InputError, match="is no name of a split: at most 40 letters"):
        Splits.read({1: "public", 3: name, 2: "public"}, truth())
    assert Splits.read({1: "a" * 40, 2: "Ap", 3: "map"}, truth()).names == ("a" * 40, "Ap", "map")


def test_images_of_no_split():
    many = {n: f"s{n}" for n in range(101)}
    assert len(Splits.read(dict(list(many.items())[:100]), truth(range(100))).names) == 100
    assert said(Splits.read, many, truth(range(101))).endswith("has 101 splits, and 100 are the most")
    lacking = "2 of 3 images of the ground truth are in no split, the first of them 1; give every image a split"
    assert said(Splits.read, {3: "x"}, truth()).endswith(lacking)
    assert "is not an image of the ground truth; leave out the line" in said(Splits.read, {1: "x", 9: "x"}, truth())
    assert "is given twice (got " in said(Splits.read, {1: "x", "1": "x", 2: "x", 3: "x"}, truth())


# ------------------------------------------------------------------------------------------------------- leaderboards


def board(**more):
    results = [
        result("b", {"team": "x"}, metrics={"AP": 0.5, "AP50": 0.75}, bootstrap=bootstrap(0.4, 0.6),
               notices={"missing_area": 2}),
        result("a", metrics={"AP": 0.5, "AP50": None}, bootstrap=bootstrap(0.45, 0.55, 0.02), notices={"missing_area": 2}),
        result("c", metrics={"AP": 0.75, "AP50": 0.5}),
        result("d", metrics={"AP50": 1.0}),
        result("e", {"team": "y"}, error="cannot be read"),
    ]  # fmt: skip
    return batch.Leaderboard(results, **more)


NAN = float("nan")


def shown(rows):
    return [{name: str(value) for name, value in row.items()} for row in rows]


def test_every_row_of_a_leaderboard():
    made = board()
    assert made.rank_by == "AP"
    rows = [
        (1, "c", "", 0.75, NAN, NAN, NAN, 0.5, "", ""), (2, "a", "", 0.5, 0.45, 0.55, 0.02, NAN, "missing_area 2", ""),
        (2, "b", "x", 0.5, 0.4, 0.6, 0.01, 0.75, "missing_area 2", ""),
        ("", "d", "", NAN, NAN, NAN, NAN, 1.0, "", ""), ("", "e", "y", NAN, NAN, NAN, NAN, NAN, "", "cannot be read"),
    ]  # fmt: skip
    names = ["rank", "model", "group", "team", "AP", "AP low", "AP high", "AP bias", "AP50", "notices", "error"]
    wanted = [dict(zip(names, (*row[:2], "", *row[2:]), strict=True)) for row in rows]
    assert shown(made.rows()) == shown(wanted)
    plain = [{name: value for name, value in row.items() if name not in ("group", "error")} for row in wanted]
    assert shown(made.table()) == shown(plain)
    assert made.errors() == [{"model": "e", "error": "cannot be read"}]
    assert made.notices() == [
        {"model": "a", "notice": "2 annotations without area: that of their box"},
        {"model": "b", "notice": "2 annotations without area: that of their box"},
    ]
    assert made.title == "AP (segm)"
    assert made.sentences() == [
        "an interval; 50 images with something to find",
        "bias: by how much the value is expected to exceed that of a data set without end, estimated; not taken off",
    ]
    by_other = board(rank_by="AP50")
    assert [row["model"] for row in by_other.rows()] == ["d", "b", "c", "a", "e"]
    assert by_other.sentences()[-1] == "no interval of AP50: few"
    assert "AP50 low" not in by_other.table()[0]
    discreet = board(rank_by="AP50", discreet=True)
    assert discreet.sentences()[0] == "an interval"
    assert discreet.sentences()[-1] == "no interval of AP50"
    assert discreet.notices() == []
    assert "notices" not in discreet.rows()[0]


def test_everything_of_a_leaderboard_as_values():
    made = board(metrics=["AP50", "AP", "none"]).to_dict()
    assert {name: made[name] for name in ("rank_by", "tests", "protocol")} == {
        "rank_by": "AP", "tests": None, "protocol": {"iou_type": "segm"}
    }  # fmt: skip
    assert list(made) == ["rank_by", "tests", "protocol", "models"]
    model = made["models"][2]
    assert model == {
        "rank": 2, "model": "b", "source": "b.json", "tags": {"team": "x"}, "metrics": {"AP": 0.5, "AP50": 0.75},
        "intervals": {"AP": [0.4, 0.6]}, "bias": {"AP": 0.01}, "images": {"AP": 50}, "no_interval": {"AP50": "few"},
        "group": None, "notices": {"missing_area": 2}, "error": None,
    }  # fmt: skip
    assert made["models"][4]["rank"] is None
    assert made["models"][4]["error"] == "cannot be read"
    assert made["models"][3]["metrics"] == {"AP50": 1.0}
    hidden = board(discreet=True).to_dict()["models"][2]
    assert "images" not in hidden
    assert "no_interval" not in hidden
    assert hidden["notices"] == {}


def test_splits_of_a_leaderboard():
    def of(name, whole, public, private):
        parts = {
            "public": {"metrics": {"AP": public, "AP50": 0.1}},
            "private": {"metrics": {"AP": private, "AP50": 0.2}},
        }
        return result(name, metrics={"AP": whole, "AP50": 0.3}, splits=parts, notices={"missing_area": 1})

    results = [of("a", 0.5, 0.1, 0.9), of("b", 0.4, 0.2, 0.8)]
    made = batch.Leaderboard(results)
    assert made.rank_by == "public:AP"
    assert [row["model"] for row in made.table()] == ["b", "a"]
    assert list(made.table()[0]) == ["rank", "model", "AP", "public:AP", "private:AP", "notices"]
    assert list(batch.Leaderboard(results, "AP50").table()[0])[2:-1] == ["AP50", "public:AP50", "private:AP50"]
    assert made.to_dict()["splits"] == ["public", "private"]
    secret = batch.Leaderboard(results, hide=["private"])
    assert list(secret.table()[0]) == ["rank", "model", "public:AP"]
    assert secret.to_dict()["splits"] == ["public"]
    assert secret.notices() == []
    assert list(secret.to_dict()["models"][0]["metrics"]) == ["public:AP", "public:AP50"]
    for metric in ("AP", "private:AP", "other"):
        says = said(batch.Leaderboard, results, metric, hide=["private"])
        assert says.startswith(f"cannot rank by {metric!r}")
        assert says.endswith("one of: public:AP, public:AP50")
    assert said(batch.Leaderboard, results, hide=["other"]) == "no split 'other' to hide; one of: public, private"


def test_default_metrics():
    of = leaderboard.default_metric
    assert of(["mAP", "AP"], []) == "mAP"
    assert of(["AP", "x:AP", "y:AP"], ["x", "y"]) == "x:AP"
    assert of([], []) == "AP"
    assert of(["car_easy", "car_moderate"], []) == "car_moderate"
    assert of(["car_easy", "car_hard"], []) == "car_easy"
    assert of(["x:car_easy", "x:car_moderate"], ["x"]) == "x:car_moderate"
    assert of(["car_hard", "car_moderate"], []) == "car_hard"


@pytest.mark.parametrize("count", [8, 9, 10])
def test_metrics_of_classes_are_shown_where_they_are_few(count):
    metrics = {"AP": 0.5, **{f"AP_c{n}": n / 10 for n in range(count)}}
    names = list(batch.Leaderboard([result("a", metrics=metrics)]).table()[0])
    assert names == ["rank", "model", *(metrics if count == 8 else ["AP"])]
    ranked = batch.Leaderboard([result("a", metrics=metrics)], "AP_c1").table()[0]
    assert "AP_c1" in ranked
    assert ("AP_c2" in ranked) is (count <= 9)


def test_orders_under_other_rules(monkeypatch):
    rows = [
        {"first": "c", "second": "b", "survives": False, "equal": False, "held": 3, "tried": 5,
         "against": [{"name": "score cut", "values": [0.1, 0.2]}, {"name": "other", "values": [0, 1]}]},
        {"first": "b", "second": "a", "survives": True, "equal": False, "held": 5, "tried": 5, "against": []},
        {"first": "a", "second": "d", "survives": False, "equal": True, "held": 0, "tried": 5, "against": []},
    ]  # fmt: skip
    made = batch.Leaderboard(
        [result(name, metrics={"AP": value}) for name, value in zip("abcd", (2, 3, 4, 1), strict=True)]
    )
    made.__dict__["orders"] = rows
    assert [row["survives"] for row in made.rows()] == ["no: 3 of 5", "yes", "equal", ""]
    assert made.doubts() == [
        {"above": "c", "below": "b", "holds under": "3 of 5", "smallest change that ends it": "score cut",
         "above then": 0.1, "below then": 0.2}
    ]  # fmt: skip
    assert made.sentences()[0].startswith("survives: whether a model stays above the next one by AP under other ")
    assert made.to_dict()["orders"] == rows
    assert "Orders that do not survive" in made._repr_html_()
    one = batch.Leaderboard([result("a", metrics={"AP": 1}, under={"metric": "AP"}), result("b", metrics={"AP": 0})])
    assert one.orders == []


def test_facts_files_and_links(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    rows = [{"category_id": 1, "category": "cat", "positives": 1000, "AP": 0.5}, {"category_id": 2, "category": "dog",
            "positives": 234, "AP": None}]  # fmt: skip
    first = result("a", metrics={"AP": 0.5}, per_category=rows, ground_truth="sha256:ab", content="sha256:cd",
                   curve={"iou": 0.5})  # fmt: skip
    second = result("b/c", metrics={"AP": 0.4}, per_category=rows[:1])
    made = batch.Leaderboard([second, first, result("z", error="no")])
    version = detmap.__version__
    assert made._facts([first, second], None) == [
        ("Protocol", "the rules"), ("Images", "1,200"), ("Classes", "2"), ("Objects", "1,234"),
        ("Ground truth", "content sha256:ab"), ("Models", "2; 1 could not be scored"),
        ("Made", f"1970-01-02 00:00 UTC with detmap {version}"),
    ]  # fmt: skip
    assert made._facts([], None) == []
    assert made._brief([first]) == ["the rules", f"3 models · 1970-01-02 00:00 UTC · detmap {version}"]
    assert made._brief([]) == [f"3 models · 1970-01-02 00:00 UTC · detmap {version}"]
    discreet = batch.Leaderboard([first], discreet=True)
    assert [name for name, _ in discreet._facts([first], "x")] == ["Protocol", "Split", "Models", "Made"]
    assert made._files() == [
        {"model": "a", "file": "a.json", "content": "sha256:cd"}, {"model": "b/c", "file": "b/c.json", "content": ""},
        {"model": "z", "file": "z.json", "content": ""},
    ]  # fmt: skip
    assert batch.Leaderboard([second])._files() == [{"model": "b/c", "file": "b/c.json"}]
    (tmp_path / "reports").mkdir()
    for name in ("b_c.html", "z.txt", "other.html"):
        (tmp_path / "reports" / name).write_text("")
    assert made._links(tmp_path) == {"b/c": "reports/b_c.html"}
    classes = leaderboard._Classes.of([first, second], None)
    assert classes.keys == [(1, "cat"), (2, "dog")]
    assert classes.values == [[0.5, None], [0.5, None]]
    assert classes.objects == [1000, 234]
    assert classes.curves == [{"iou": 0.5}, None]
    unknown = result("c", metrics={"AP": 0.1}, per_category=[{"category_id": 9, "category": "cow", "AP": 0.1}])
    assert leaderboard._Classes.of([unknown], None).objects == []
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    assert leaderboard._now() != "1970-01-02 00:00 UTC"


def test_columns_of_parquet(tmp_path):
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(board()._parquet()))
    assert table.column("rank").to_pylist() == [1, 2, 2, None, None]
    assert table.column("model").to_pylist() == list("cabde")
    assert table.column("team").to_pylist() == ["", "", "x", "", "y"]
    assert str(table.column("AP").to_pylist()) == "[0.75, 0.5, 0.5, nan, nan]"
    assert [str(one.type) for one in table.schema] == [
        "int64", "string", "string", "string", *["double"] * 5, "string", "string"
    ]  # fmt: skip
    assert pq.read_table(io.BytesIO(batch.Leaderboard([])._parquet())).num_rows == 0
    many = batch.Leaderboard([result(f"m{n:02}", metrics={"AP": n / 8 if n % 3 else None}) for n in range(19)])
    ranks = pq.read_table(io.BytesIO(many._parquet())).column("rank").to_pylist()
    assert ranks == [row["rank"] or None for row in many.rows()]


# ------------------------------------------------------------------------------------------------ files and documents


def test_files_are_found_and_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "runs/a/dt.json",
        "runs/b/dt.json",
        "runs/c.csv",
        "runs/leaderboard.json",
        "runs/tests.json",
        "runs/d.txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("image_id,x,y,w,h\n" if name.endswith("csv") else "[]")
    entries = find([tmp_path / "runs/a/dt.json", str(tmp_path / "runs/*/dt.json"), tmp_path / "runs/c.csv"])
    assert [(one.name, one.path) for one in entries] == [
        ("a/dt", str(tmp_path / "runs/a/dt.json")), ("b/dt", str(tmp_path / "runs/b/dt.json")),
        ("c", str(tmp_path / "runs/c.csv")),
    ]  # fmt: skip
    assert [one.name for one in find([tmp_path / "runs"])] == ["c"]
    (tmp_path / "empty").mkdir()
    assert said(find, ["empty"]) == "'empty' is an empty folder; is it the right one?"
    assert said(find, ["x*"]) == "'x*' matches no file"
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "x.md").write_text("")
    assert said(find, ["others"]).startswith("no files of predictions in 'others': they end in ")
    manifest = tmp_path / "list.csv"
    manifest.write_text("path,name,team\nruns/a/dt.json,first,x\nruns/b/dt.json,,y\n")
    assert is_manifest(str(manifest))
    assert not is_manifest(str(tmp_path / "runs/c.csv"))
    listed = find([manifest])
    assert [(one.name, dict(one.tags)) for one in listed] == [("first", {"team": "x"}), ("dt", {"team": "y"})]
    twice = batch.Entry("first", str(tmp_path / "runs/c.csv"))
    assert said(find, [manifest, twice]) == "2 files are called 'first'"
    for text, says in (
        ("file\nx\n", f"{manifest}: has no column 'path'; a manifest's first line names its columns"),
        ("path,name\nx\n", f"{manifest}: line 2: has too many or too few cells"),
        ("path,name\nx,y,z\n", f"{manifest}: line 2: has too many or too few cells"),
        ("path,name\n,y\n", f"{manifest}: line 2: has too many or too few cells"),
    ):
        manifest.write_text(text)
        assert said(find, [manifest]) == says
    assert file_names(["a", "A", "a-2", "a", "", ".b", "-c", "ä/x", "y" * 120]) == [
        "a", "A-2", "a-2-2", "a-3", "_", "_.b", "_-c", "__x", "y" * 100,
    ]  # fmt: skip


DOCUMENTS = [
    {}, {"a": 1}, {"a": [1.5, None, True, "ä"], "b": {"c": []}}, {"a": 1e16}, {"a": 0.00001}, {"a": 1e-7, "b": "x e5"},
    {"a": [123456789012345680000.0, 1e-10, 5e-324]}, {"a": "\ud800"}, {"a": 2**70}, {"a": 0.0001, "b": 1e15},
]  # fmt: skip


@pytest.mark.parametrize("document", DOCUMENTS, ids=map(str, range(len(DOCUMENTS))))
def test_documents_are_saved_as_python_writes_them(document, tmp_path):
    text = json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    if document:
        assert saving.encoded(document) == text
    assert saving.plain(document) == document
    assert saving.unpacked(saving.packed(document)) == document
    path = tmp_path / "x.json"
    path.write_bytes(saving.sealed({**document, "z": 1}))
    assert saving.unsealed(path) == {**document, "z": 1}
    data = path.read_bytes()
    assert saving.unsealed(path, len(data)) is not None
    assert saving.unsealed(path, len(data) - 1) is None
    for damaged in (data[:-1], data + b" ", data[:5] + b"x" + data[6:], b"", b"{}"):
        path.write_bytes(damaged)
        assert saving.unsealed(path) is None
    assert saving.unsealed(tmp_path) is saving.unsealed(tmp_path / "absent") is None


def test_undefined_numbers_of_documents():
    assert saving.encoded({"a": float("nan"), "b": [np.float64(np.inf)]}) == b'{\n "a": null,\n "b": [\n  null\n ]\n}\n'
    assert saving.plain({"a": np.float32(0.5), "b": float("nan")}) == {"a": 0.5, "b": None}


# ------------------------------------------------------------------------------------------------------------ workers


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OptionError("a\nb"), "a\nb"), (MemoryError(), "out of memory"), (ValueError(" a \n\n b "), "ValueError: 'a b'"),
        (ValueError("Traceback (most recent call last):\n  File x\nKeyError: 5"), "ValueError: 'KeyError: 5'"),
        (ValueError('File "x", line 1\nlast'), "ValueError: 'last'"),
        (ValueError("a\n---> 5 b\nlast"), "ValueError: 'last'"),
        (ValueError("\x1b[31mred\x1b[0m"), "ValueError: 'red'"), (KeyError("x"), 'KeyError: "\'x\'"'),
        (ValueError("x" * 298), f"ValueError: '{'x' * 298}'"), (ValueError("x" * 299), f"ValueError: '{'x' * 298}…"),
    ],
)  # fmt: skip
def test_errors_of_workers_are_one_line(error, line):
    assert workers.one_line(error) == line


def test_code_of_another_process():
    here = workers.Home.here()
    here.check()
    other = here._replace(code="other")
    assert "has other code of detmap " in said(other.check)
    older = other._replace(version="0.0.1")
    assert f" has detmap {detmap.__version__}, and this process 0.0.1: install the same on both" in said(older.check)


def everything(**change):
    columns = {
        "image_ids": [1, 2], "category_ids": [1, 2], "boxes": [[0, 0, 5, 5]] * 2, "areas": [5, 5], "crowd": [0, 1],
        "difficult": [1, 0], "group_of": [0, 1], "images": [1, 2, 3], "categories": [1, 2, 3],
        "neg_category_ids": {1: [3]}, "not_exhaustive_category_ids": {2: [1]}, "pos_category_ids": {1: [1]},
        "frequencies": {1: "r"}, "crowd_index": {1: 0.5}, "part_flags": {"foot_valid": [1, 0]}, "fields": {"level": [1, 2]},
        "segments": [[0, 1], [1, 2]], "category_names": {1: "a"}, "notices": {"missing_area": 1},
    }  # fmt: skip
    clusters = change.pop("clusters", None)
    return detmap.GroundTruth.from_arrays(**{**columns, **change}).with_clusters(clusters)


def test_every_column_of_the_ground_truth_is_hashed():
    base = workers.fingerprint(everything())
    assert workers.fingerprint(everything(source="other")) == base
    changes = [
        {"image_ids": [1, 3]}, {"category_ids": [1, 3]}, {"boxes": [[0, 0, 5, 6]] * 2}, {"areas": [5, 6]}, {"crowd": [0, 0]},
        {"difficult": [0, 0]}, {"group_of": [1, 0]}, {"group_of": None}, {"images": [1, 2, 4]}, {"categories": [1, 2, 4]},
        {"neg_category_ids": {1: [2]}}, {"neg_category_ids": {1: [3], 3: []}}, {"neg_category_ids": None},
        {"not_exhaustive_category_ids": {2: [3]}}, {"pos_category_ids": {2: [1]}}, {"pos_category_ids": None},
        {"frequencies": {1: "c"}}, {"frequencies": None}, {"crowd_index": {1: 0.25}}, {"crowd_index": None},
        {"part_flags": {"foot_valid": [0, 0]}}, {"part_flags": {"face_valid": [1, 0]}}, {"part_flags": None},
        {"fields": {"level": [2, 2]}}, {"fields": {"other": [1, 2]}}, {"segments": [[0, 1], [1, 3]]}, {"segments": None},
        {"category_names": {1: "b"}}, {"notices": {"missing_area": 2}}, {"clusters": [1, 1, 2]},
        {"clusters": ["a", "a", "b"]},
        {"box_format": "xyxy"},
    ]  # fmt: skip
    made = [workers.fingerprint(everything(**change)) for change in changes]
    assert len({base, *made}) == 1 + len(changes)


def task(truth, common, *arguments):
    return common, arguments, detmap.system.parallel.thread_count(None) if arguments == ("threads",) else None


def test_tasks_on_threads_and_on_an_executor():
    table, given = everything(), [(n,) for n in range(9)]
    wanted = {n: ("common", (n,), None) for n in range(9)}
    assert dict(workers.dispatch(None, 2, table, task, "common", given)) == wanted
    with ThreadPoolExecutor(2) as pool:
        assert dict(workers.dispatch(pool, None, table, task, "common", given)) == wanted
        assert dict(workers.dispatch(pool, 3, table, task, "common", [("threads",)]))[0][2] == 3
        assert dict(workers.dispatch(pool, None, table, task, "common", [("threads",)]))[0][2] == 1
        assert dict(workers.dispatch(pool, None, table, task, "common", [])) == {}


class Losing(ThreadPoolExecutor):
    """Cancels a task some times before it is carried out, and counts how many tasks wait at a time."""

    def __init__(self, times):
        super().__init__(2)
        self.times, self.most, self.now = times, 0, 0

    def submit(self, *call):
        if self.times:
            self.times -= 1
            lost = Future()
            lost.cancel()
            lost.set_running_or_notify_cancel()
            return lost
        self.now += 1
        self.most = max(self.most, self.now)
        future = super().submit(*call)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, future):
        self.now -= 1


@pytest.mark.parametrize("times", [0, 1, 3, 4])
def test_a_task_that_is_lost_is_tried_four_times(times):
    with Losing(times) as pool:
        made = dict(workers.dispatch(pool, None, everything(), task, "common", [(0,)]))
    if times < 4:
        assert made == {0: ("common", (0,), None)}
    else:
        assert str(made[0]) == (
            "lost with its worker 4 times; detmap batch --resume scores only the files that are missing"
        )
    with Losing(0) as pool:
        assert len(dict(workers.dispatch(pool, None, everything(), task, "common", [(n,) for n in range(50)]))) == 50
        assert pool.most <= 4


def test_an_error_of_a_task_is_its_outcome():
    def failing(truth, common, n):
        if n % 2:
            raise KeyError(n)
        return n

    made = dict(workers.dispatch(None, 1, everything(), failing, None, [(n,) for n in range(4)]))
    assert [made[n] if n % 2 == 0 else (type(made[n]), made[n].args) for n in range(4)] == [
        0, (KeyError, (1,)), 2, (KeyError, (3,))
    ]  # fmt: skip
    assert splits.of_splits is of_splits
