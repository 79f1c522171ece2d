"""Class maps: classes are renamed, united and left out, by name and by id, in every format and on the command line."""

from __future__ import annotations

import json

import pytest

import detmap
from detmap.cli import main
from detmap.errors import InputError, OptionError

NAMES = {1: "cat", 2: "dog", 3: "hen"}


@pytest.fixture
def world():
    given = {"image_ids": [1, 1, 1], "category_ids": [1, 2, 3], "boxes": [[0, 0, 8, 8], [9, 9, 8, 8], [30, 30, 8, 8]]}
    truth = detmap.GroundTruth.from_arrays(**given, images=[1], category_names=NAMES, image_sizes=[[64, 64]])
    return truth, detmap.Detections.from_arrays(**given, scores=[0.5, 0.6, 0.7])


def rows(table):
    return table.categories.ids[table.categories.codes].tolist()


@pytest.mark.parametrize("content", ["from,to\nkitten,cat\n9,dog\nbird,\n", '{"kitten": "cat", "9": 2, "bird": null}'])
def test_detections_get_the_classes_of_the_ground_truth(content, world, tmp_path):
    truth, _ = world
    (tmp_path / "map").write_text(content)
    lines = ["kitten,0.5,0,0,8,8", "9,0.6,9,9,8,8", "bird,0.7,1,1,1,1", "hen,1,30,30,8,8"]
    text = "image_id,category,score,x,y,width,height\n" + "".join(f"1,{line}\n" for line in lines)
    (tmp_path / "found.csv").write_text(text)
    found = detmap.read(tmp_path / "found.csv", "detections", ground_truth=truth, class_map=tmp_path / "map")
    assert rows(found) == [1, 2, 3]
    assert found.notices["dropped_classes"] == 1
    assert detmap.evaluate(truth, found)["AP"] > 0.99
    records = [{"image_id": 1, "category_id": 90 + i, "bbox": [0, 0, 8, 8], "score": 0.5} for i in range(3)]
    (tmp_path / "found.json").write_text(json.dumps(records))
    found = detmap.read(tmp_path / "found.json", "detections", ground_truth=truth, class_map={90: "cat", 91: 2})
    assert rows(found) == [1, 2, 92]
    assert rows(detmap.read(tmp_path / "found.json", "detections", class_map={90: 1, 91: 2})) == [1, 2, 92]
    assert rows(detmap.read(tmp_path / "found.json", "detections", class_map={90: "cat"})) == ["cat", "91", "92"]


@pytest.mark.parametrize("format", ["coco", "csv", "parquet", "yolo", "text", "voc"])
def test_a_map_means_the_same_in_every_format(format, world, tmp_path):
    truth, found = world
    path = tmp_path / ("found" + {"coco": ".json", "csv": ".csv", "parquet": ".parquet"}.get(format, ""))
    if format == "voc":
        given = {"image_ids": ["1"] * 3, "category_ids": ["cat", "dog", "hen"], "boxes": truth.boxes}
        truth = detmap.GroundTruth.from_arrays(**given, images=["1"], image_sizes=[[64, 64]])
        found = detmap.Detections.from_arrays(**given, scores=[0.5, 0.6, 0.7])
    detmap.write(found, path, format=format, ground_truth=truth)
    (tmp_path / "classes.txt").write_text("cat\ndog\nhen\n")
    more = {"classes": tmp_path / "classes.txt"} if format == "yolo" else {}
    by_id = format in ("coco", "csv", "parquet")
    names = {"1": "dog", "2": "cat", "3": ""} if by_id else {"cat": "dog", "dog": "cat", "hen": ""}
    again = detmap.read(path, "detections", format=format, ground_truth=truth, class_map=names, **more)
    assert sorted(again.scores.tolist()) == [0.5, 0.6]
    expected = ["cat", "dog"] if format == "voc" else [1, 2]
    assert sorted(rows(again)) == expected
    of = dict(zip(again.scores.tolist(), rows(again), strict=True))
    assert (of[0.6], of[0.5]) == tuple(expected)


def test_ground_truth_is_renamed_and_united(world, tmp_path):
    detmap.write(world[0], tmp_path / "truth.json")

    def read(mapping):
        table = detmap.read(tmp_path / "truth.json", "ground_truth", class_map=mapping)
        return rows(table), table.categories.ids.tolist(), table.category_names

    assert read({"dog": "cat"}) == ([1, 1, 3], [1, 3], ("cat", "hen"))
    assert read({"cat": "animal", "dog": "animal"}) == ([1, 1, 3], [1, 3], ("animal", "hen"))
    assert read({"cat": "dog", "dog": "cat"}) == ([2, 1, 3], [1, 2, 3], ("cat", "dog", "hen"))
    assert read({"3": "1", "cat": ""}) == ([2, 1], [1, 2], ("cat", "dog"))
    strings = detmap.GroundTruth.from_arrays(image_ids=["a"], category_ids=["x"], boxes=[[0, 0, 1, 1]])
    detmap.write(strings, tmp_path / "strings.json")
    table = detmap.read(tmp_path / "strings.json", "ground_truth", class_map={"x": "y"})
    assert (rows(table), table.category_names) == (["y"], ("y",))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is empty"),
        ("a,b\na,c\n", "line 2: is named twice"),
        ("a\n", "line 1: is not a class and the class that it becomes"),
        ("a,b,c\n", "is not a class and the class"),
        (",b\n", "is not a class and the class"),
        ('{"a": [1]}', "every value must be a name or an id"),
        ('{"a": 1', "is not valid JSON"),
        (b"\xff\xfe", "is not a text file in UTF-8"),
        ('{"a": "b", "a": "c"}', "class a: is named twice"),
    ],
)
def test_maps_that_are_none(content, problem, world, tmp_path):
    (tmp_path / "map").write_bytes(content if isinstance(content, bytes) else content.encode())
    detmap.write(world[1], tmp_path / "found.json")
    with pytest.raises(InputError, match=problem):
        detmap.read(tmp_path / "found.json", "detections", class_map=tmp_path / "map")
    with pytest.raises(OptionError, match="class_map must be a mapping or the path of a file, not int"):
        detmap.read(tmp_path / "found.json", "detections", class_map=3)


def test_the_commands_take_a_map(world, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth, found = world
    detmap.write(truth, "truth.json")
    detmap.write(found, "found.json")
    assert main(["convert", "found.json", "other.json", "--class-map", "none.csv"]) == 2
    assert "none.csv: no such file" in capsys.readouterr().err
    assert main(["batch", "truth.json", "found.json", "--class-map", "none.csv"]) == 2
    assert "none.csv: no such file" in capsys.readouterr().err
    (tmp_path / "away.csv").write_text("1,11\n2,12\n3,13\n")
    (tmp_path / "back.csv").write_text("11,cat\n12,2\n13,hen\n")
    assert main(["convert", "found.json", "away.json", "--class-map", "away.csv"]) == 0
    quiet = ["--quiet", "--format", "json"]
    capsys.readouterr()
    for words, expected in (([], 0), (["--class-map", "back.csv"], 1)):
        assert main(["eval", "truth.json", "away.json", *words, *quiet]) == 0
        assert json.loads(capsys.readouterr().out)["metrics"]["AP"] == pytest.approx(expected)
        assert main(["batch", "truth.json", "away.json", *words, *quiet]) == 0
        assert json.loads(capsys.readouterr().out)["models"][0]["metrics"]["AP"] == pytest.approx(expected)
