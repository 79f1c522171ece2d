"""`detmap batch --publish`: a folder with the public part of a leaderboard, and nothing else."""

from __future__ import annotations

import csv
import json
import os
import re

import pytest
from batches import FIXTURES, TRUTH, contents, run, variants, write

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    paths = variants(tmp_path_factory.mktemp("runs of organisers"), 3)
    records = json.loads((FIXTURES / "detections.json").read_text())
    noted = [*records, {**records[0], "category_id": 99}]  # a notice counts it, on whichever image it is
    paths.append(write(paths[0].parent, "noted.json", json.dumps(noted)))
    return [*paths, write(paths[0].parent, "wrong.json", json.dumps([{**records[0], "image_id": 987654321}]))]


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    path = tmp_path_factory.mktemp("splits") / "splits.csv"
    images = [image["id"] for image in json.loads(TRUTH.read_text())["images"]]
    lines = [f"{image},{'private' if at % 3 else 'public'}" for at, image in enumerate(images)]
    path.write_text("\n".join(["image,split", *lines]))
    return path


def numbers(document):
    """Every number in a document that is long enough to be told from others, as it is written."""
    return set(re.findall(r"\d\.\d{6,}", json.dumps(document)))


@pytest.mark.parametrize("more", [(), ("--discreet",), ("--bootstrap", 200, "--permutations", 200)])
def test_nothing_private_is_published(tmp_path, capsys, files, listed, more):
    out, site = tmp_path / "board", tmp_path / "site"
    arguments = ["batch", TRUTH, *files, "--splits", listed, "--hide", "private", *more]
    assert run(capsys, *arguments, "--out", out, "--publish", site)[0] == 3
    assert {path.name for path in site.iterdir()} == {
        f"leaderboard.{kind}" for kind in ("csv", "html", "json", "md", "parquet")
    }
    whole = [json.loads(path.read_text()) for path in (out / "results").iterdir()]
    public = set().union(*(numbers(one["splits"]["public"]) for one in whole if "splits" in one))
    told = ("metrics", "per_category", "bootstrap", "curve")
    private = set().union(*(numbers([one.get(name) for name in told]) for one in whole))
    private |= set().union(*(numbers(one["splits"]["private"]) for one in whole if "splits" in one))
    private -= public
    assert len(private) > 100
    images = json.loads(TRUTH.read_text())["images"]
    texts = [
        re.compile(r"private|987654321|notice|runs of organisers|sha256|ground truth have"),
        re.compile(rf"\b{len(images)} images\b"),
    ]
    pq = pytest.importorskip("pyarrow.parquet")
    for path, data in contents(site, "*").items():
        shown = json.dumps(pq.read_table(site / path).to_pylist()) if "parquet" in str(path) else data.decode()
        assert not any(one in shown for one in private), path
        for text in texts:
            found = text.search(
                re.sub(r"<(meta|style|script).*?>.*?(?=<)", "", shown, flags=re.DOTALL).replace('"notices": {}', "")
            )
            assert found is None, (path, found)
    rows = list(csv.DictReader((site / "leaderboard.csv").read_text().splitlines()))
    assert {row["model"] for row in rows} == {"model-000", "model-001", "model-002", "noted", "wrong"}
    assert [row["error"] != "" for row in rows] == [row["model"] == "wrong" for row in rows]


def test_the_private_ranking_never_takes_the_place_of_the_public_page(tmp_path, capsys, files, listed):
    site = tmp_path / "site"
    arguments = ["batch", TRUTH, *files[:2], "--splits", listed, "--out", tmp_path / "board", "--quiet"]
    assert run(capsys, *arguments, "--hide", "private", "--publish", site)[0] == 0
    before = contents(site, "*")
    private = ["--resume", "--rank-by", "private:AP"]
    assert run(capsys, *arguments, *private)[0] == 0  # at the end of the challenge, for organisers
    for more, said in (
        (private, "--publish needs --hide SPLIT: say which of public, private must not be seen"),
        (["--hide", "public"], "holds a leaderboard of other splits than private: choose another folder"),
    ):
        code, _, err = run(capsys, *arguments, *more, "--publish", site)
        assert (code, said in err) == (2, True), err
    code, _, err = run(capsys, "batch", TRUTH, *files[:2], "--publish", site)
    assert (code, "holds a leaderboard of other splits than none" in err) == (2, True), err
    assert contents(site, "*") == before
    assert run(capsys, *arguments, "--hide", "private", "--publish", site, "--resume")[0] == 0
    assert contents(site, "*") == before


def test_folders_in_which_nothing_is_published(tmp_path, capsys, files):
    arguments = ["batch", TRUTH, files[0], "--quiet"]
    assert run(capsys, *arguments, "--out", tmp_path / "board")[0] == 0
    write(tmp_path, "odd/leaderboard.json", "[1]")
    os.symlink(tmp_path / "board", tmp_path / "link")
    for folder, out, said in (
        ("board", "other", "holds results, which is for organisers"),
        ("link", "other", "holds results, which is for organisers"),
        ("new", "new", "would hold the results of --out"),
        ("new", "new/inside", "would hold the results of --out"),
        ("odd", "other", "holds a leaderboard of other splits than none"),
    ):
        code, _, err = run(capsys, *arguments, "--out", tmp_path / out, "--publish", tmp_path / folder)
        assert (code, said in err) == (2, True), (folder, err)
    assert not (tmp_path / "new").exists()
    assert run(capsys, *arguments, "--publish", tmp_path / "alone")[0] == 0  # without --out


def test_what_was_published_stays_where_a_run_ends_early(tmp_path, capsys, files):
    site = tmp_path / "site"
    assert run(capsys, "batch", TRUTH, files[0], "--publish", site, "--quiet")[0] == 0
    before = contents(site, "*")
    for more in (files[-1:], [files[-1], files[0], "--fail-fast", "--threads", 1]):
        code, _, err = run(capsys, "batch", TRUTH, *more, "--publish", site)
        assert code == 3
        assert "is left as it is: not all files were scored, or none could be" in err
    assert contents(site, "*") == before


def test_a_hidden_split_hides_the_notices_of_all_images(tmp_path, capsys, files, listed):
    arguments = ["batch", TRUTH, files[3], "--out", tmp_path / "board", "--format", "json"]
    _, plain, err = run(capsys, *arguments)
    assert json.loads(plain)["models"][0]["notices"]
    assert "noted" in err
    _, hidden, err = run(capsys, *arguments, "--splits", listed, "--hide", "private")
    assert json.loads(hidden)["models"][0]["notices"] == {}
    assert err == ""
    assert "notices" not in (tmp_path / "board/leaderboard.csv").read_text()
