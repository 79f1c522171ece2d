"""Many files: which are found, and by which names they go."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import detmap
from detmap import batch
from detmap.batch import finding


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]")


def test_names_are_distinct_and_no_longer_than_needed(tmp_path):
    touch(tmp_path, "one/x.json", "two/x.json", "two/y.json.gz", "z.json", "z.json.gz", "deep/two/x.json", "w.jsonl")
    names = {e.path.removeprefix(str(tmp_path) + "/"): e.name for e in batch.find([tmp_path / "**/*.json*"])}
    assert names == {
        "one/x.json": "one/x",
        "two/x.json": next(n for p, n in names.items() if p == "two/x.json"),
        "deep/two/x.json": "deep/two/x",
        "two/y.json.gz": "y",
        "z.json": next(n for p, n in names.items() if p == "z.json"),
        "z.json.gz": next(n for p, n in names.items() if p == "z.json.gz"),
        "w.jsonl": "w",
    }
    assert len(set(names.values())) == 7
    assert names["two/x.json"].endswith("two/x")
    assert names["z.json"].endswith("z.json")


def test_a_file_is_found_once(tmp_path):
    touch(tmp_path, "a.json", "b.json")
    found = batch.find([tmp_path / "b.json", tmp_path, str(tmp_path) + "/./*.json"])
    assert [entry.name for entry in found] == ["b", "a"]


def test_a_folder_is_what_lies_in_it_or_voc(tmp_path):
    touch(
        tmp_path,
        "a.json",
        "note.txt",
        "leaderboard.json",
        "voc/comp4_det_test_cat.txt",
        "sub/b.json",
        "c.tar.gz",
        ".json",
    )
    assert [entry.name for entry in batch.find([tmp_path])] == [".json", "a", "c", "voc"]
    assert [entry.name for entry in batch.find([tmp_path / "voc"])] == ["voc"]


def test_a_pattern_in_the_name_of_a_file(tmp_path):
    touch(tmp_path, "a[1].json", "a1.json")
    assert [entry.name for entry in batch.find([tmp_path / "a[1].json"])] == ["a[1]"]
    assert [entry.name for entry in batch.find([tmp_path / "a?.json"])] == ["a1"]


def test_manifest(tmp_path):
    touch(tmp_path, "a.json", "b.json", "c.json")
    (tmp_path / "m.csv").write_text('\ufeffname,path,backbone\nfirst,a.json,"R50, deep"\n,b.json,Swin\n', "utf-8")
    found = batch.find([tmp_path / "m.csv", tmp_path / "c.json"])
    assert [(e.name, Path(e.path).name, dict(e.tags)) for e in found] == [
        ("first", "a.json", {"backbone": "R50, deep"}),
        ("b", "b.json", {"backbone": "Swin"}),
        ("c", "c.json", {}),
    ]


@pytest.mark.parametrize("line", ["1,1,0.9,10,20,30,40", "a.jpg;cat;.5;1e1;2;3;4", "-1,1,+0.9,1,2,3,4"])
def test_a_table_without_titles_is_no_manifest(tmp_path, line):
    (tmp_path / "m.csv").write_text(f"{line}\n")
    assert [(entry.name, Path(entry.path).name) for entry in batch.find([tmp_path / "m.csv"])] == [("m", "m.csv")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("name\nx\n", "no column 'path'"),
        ("path,name\na.json\n", "too many or too few cells"),
        ("path,name\na.json,x,y\n", "too many or too few cells"),
        ("path,name\na.json,x\nb.json,x\n", "2 files are called"),
        ('path\n"a.json\n', "is not a CSV file"),
        (b"path\n\xff\n", "is not a CSV file"),
    ],
)
def test_bad_manifests(tmp_path, text, message):
    path = tmp_path / "m.csv"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(detmap.DetmapError, match=message):
        batch.find([path])


def test_nothing_found(tmp_path):
    for nothing in (tmp_path, tmp_path / "*.json"):
        with pytest.raises(detmap.OptionError, match=r"no file|is an empty folder"):
            batch.find([nothing])


@given(st.lists(st.text("aA./-_é\n\0 ", min_size=1, max_size=5), max_size=8))
def test_names_of_result_files(names):
    made = finding.file_names(names)
    assert len({name.lower() for name in made}) == len(names)
    assert all(
        name and name[0] not in ".-" and set(name) <= set("aAbcdefghijklmnopqrstuvwxyz0123456789._-") for name in made
    )
