"""Tables of all formats with what is unusual in them: it comes through as it is, or is refused by one line."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from support import assert_same_result, same_bits
from workloads import make_coco

import detmap
from detmap.cli import main
from detmap.errors import InputError, OptionError
from detmap.formats.inputs import Input

BOX = {"x": [0.0, 1.0], "y": [0.0, 1.0], "width": [3.0, 4.0], "height": [3.0, 4.0]}
HUGE = 2**62 + 1


def truth_of(frame, **more):
    return detmap.GroundTruth.from_arrow(pa.table(frame), **more)


def one_image(image="a", **more):
    given = {"image_ids": [image], "category_ids": ["cat"], "boxes": [[8, 8, 16, 16]], "image_sizes": [[64, 64]]}
    return detmap.GroundTruth.from_arrays(**{**given, "images": [image], **more})


# ----------------------------------------------------------------------------------------------------- frames and Arrow


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"category_id": [1, None]}, "record 1, field 'category_id': is missing"),
        ({"category_id": [None, None]}, "record 0, field 'category_id': is missing"),
        ({"image_width": ["a", "b"], "image_height": [1, 2]}, "field 'image_width': must be one whole number"),
        ({"image_width": [1e300, 1], "image_height": [1, 2]}, "field 'image_width': must be one whole number"),
        ({"image_width": [-1, 1], "image_height": [1, 2]}, "field 'image_width': must be one whole number"),
        ({"image_id": [[1], [2]]}, "field 'image_id': ids must be integers or strings"),
        ({"image_id": [b"a", b"b"]}, "field 'image_id': ids must be integers or strings"),
        ({"image_id": [True, False]}, "field 'image_id': ids must be integers or strings"),
        (
            {"image_id": pd.to_datetime(["2020-01-01", "2021-01-01"])},
            "field 'image_id': ids must be integers or strings",
        ),
        ({"image_id": [1.5, 2.0]}, "is not an integer"),
    ],
)
def test_ground_truth_that_is_none_is_refused_by_one_line(change, problem):
    """A row without a category is an image without objects only where it says nothing else: no object is lost."""
    with pytest.raises(InputError, match=problem) as caught:
        truth_of({"image_id": [1, 2], "category_id": [1, 1], **BOX, **change})
    assert str(caught.value).isprintable()


def test_sizes_that_no_row_says_are_not_known():
    table = truth_of(
        {"image_id": [1, 2], "category_id": [1, 1], **BOX, "image_width": [None] * 2, "image_height": [9, 9]}
    )
    assert table.image_sizes.tolist() == [[9, 0], [9, 0]]


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow has no views of strings")
def test_strings_as_polars_hands_them_over():
    """Views, and dictionaries of them."""
    for column in (pa.array(["b", "a"], pa.string_view()), pa.array(["b", "a"]).dictionary_encode()):
        table = detmap.Detections.from_arrow(pa.table({"image": column, "label": column, "score": [0.5, 1], **BOX}))
        assert table.images.ids[table.images.codes].tolist() == ["b", "a"]
        assert table.categories.ids[table.categories.codes].tolist() == ["b", "a"]


def test_an_object_with_an_array_interface_is_a_table():
    class Batch:
        def __init__(self, batch):
            self._batch = batch

        def __arrow_c_array__(self, requested_schema=None):
            return self._batch.__arrow_c_array__(requested_schema)

    batch = pa.table({"image_id": [1, 2], "category_id": [1, 1], "score": [0.5, 1], **BOX}).to_batches()[0]
    assert len(detmap.Detections.from_arrow(Batch(batch))) == 2


def test_names_of_images_and_large_ids_come_back(tmp_path):
    """As floats, which data frames make of integers where some are missing, large ones would be others."""
    table = detmap.GroundTruth.from_arrays(
        image_ids=[HUGE],
        category_ids=[HUGE + 2],
        boxes=[[0, 0, 4, 4]],
        images=[HUGE, 3],
        category_names={HUGE + 2: 'a,"b'},
    )
    table = replace(table, images=replace(table.images, names=("", 'a, "ü".jpg')))
    for name in ("truth.parquet", "truth.feather", "truth.csv", "truth.json"):
        lost = detmap.write(table, tmp_path / name)
        assert lost == {}, name
        again = detmap.read(tmp_path / name, "ground_truth")
        assert again.images.ids.tolist() == [3, HUGE]
        assert again.categories.ids.tolist() == [HUGE + 2]
        assert again.images.names == table.images.names
        assert again.categories.names == ('a,"b',)
    again = detmap.GroundTruth.from_frame(table.to_frame())
    assert again.categories.ids.tolist() == [HUGE + 2]
    assert again.images.names == table.images.names
    table.to_frame().to_csv(tmp_path / "frame.csv", index=False)  # flags as True and False
    again = detmap.read(tmp_path / "frame.csv", "ground_truth")
    assert again.categories.ids.tolist() == [HUGE + 2]
    assert again.crowd.tolist() == [False]


def test_columns_of_parquet_that_nobody_asks_for_are_not_read(tmp_path):
    """They are still among those that a message lists."""
    frame = {"image_id": [1, 2], "category_id": [1, 1], "p": [0.5, 1], **BOX, "blob": [b"\0" * 10] * 2}
    parquet.write_table(pa.table(frame), tmp_path / "found.parquet")
    with pytest.raises(InputError, match=r"there is no column for scores; it has: image_id, category_id, p, x, .*blob"):
        detmap.read(tmp_path / "found.parquet", "detections")
    assert detmap.read(tmp_path / "found.parquet", "detections", columns="score=p").scores.tolist() == [0.5, 1]
    with pytest.raises(OptionError, match="columns of Parquet and Arrow have names"):
        detmap.read(tmp_path / "found.parquet", "detections", columns="image,score")


def test_a_stream_of_arrow_in_a_file_is_read(tmp_path):
    table = pa.table({"image_id": [1, 2], "category_id": [1, 1], "score": [0.5, 1], **BOX})
    with pa.ipc.new_stream(str(tmp_path / "found.arrow"), table.schema) as writer:
        writer.write_table(table)
    assert detmap.read(tmp_path / "found.arrow", "detections").scores.tolist() == [0.5, 1]
    assert detmap.convert(tmp_path / "found.arrow", tmp_path / "found.json").role == "detections"


def test_convert_tells_ground_truth_of_parquet_from_detections(tmp_path):
    truth = one_image()
    found = detmap.Detections.from_arrays(image_ids=["a"], category_ids=["cat"], boxes=[[0, 0, 1, 1]], scores=[1])
    for ending in ("parquet", "feather"):
        for table, role in ((truth, "ground_truth"), (found, "detections")):
            detmap.write(table, tmp_path / f"{role}.{ending}")
            assert detmap.convert(tmp_path / f"{role}.{ending}", tmp_path / f"{role}.json").role == role


# ------------------------------------------------------------------------------------------------------------------- CSV


def csv(path, text, **more):
    path.write_text(text, encoding="utf-8")
    return detmap.read(path, more.pop("role", "detections"), **more)


def test_ids_that_a_data_frame_has_made_floats_are_integers(tmp_path):
    text = "image_id,category_id,score,x,y,width,height\n1.0,3.0,1,0,0,2,2\n2.0,3.0,1,0,0,2,2\n"
    found = csv(tmp_path / "FOUND.CSV", text)
    assert found.images.ids.tolist() == [1, 2]
    assert found.categories.ids.tolist() == [3]
    mixed = csv(tmp_path / "mixed.csv", text.replace("1.0,3.0", "1.5,3.0"))
    assert mixed.images.ids.tolist() == ["1.5", "2.0"]


def test_an_image_with_two_names_is_refused(tmp_path):
    text = "image_id,image,category,x,y,width,height\n1,a.jpg,c,0,0,2,2\n1,b.jpg,c,0,0,2,2\n"
    with pytest.raises(InputError, match="line 3, field 'image': is another name of the image 1 than before"):
        csv(tmp_path / "truth.csv", text, role="ground_truth")


def test_a_category_that_only_some_rows_name_has_that_name(tmp_path):
    text = "image_id,category_id,category,x,y,width,height\n1,5,,0,0,2,2\n1,5,cat,0,0,2,2\n"
    assert csv(tmp_path / "truth.csv", text, role="ground_truth").category_names == ("cat",)


@pytest.mark.parametrize("ending", ["json", "csv", "parquet", "feather"])
def test_odd_numbers_and_names_keep_their_bits(ending, tmp_path):
    """Scores at 0, 1 and denormal, commas, quotes, semicolons and letters of all kinds in names."""
    scores = [0.0, 1.0, 5e-324, 2.2250738585072014e-308, 0.1 + 0.2, -0.0, 1e308]
    names = ["a,b", 'c"d"', "e;f", "ü漢😀", "=1+1", "null", "007"]
    found = detmap.Detections.from_arrays(
        image_ids=names, category_ids=names[::-1], boxes=[[0.1, 1e-300, 0.3, 1e9]] * 7, scores=scores
    )
    assert detmap.write(found, tmp_path / f"found.{ending}") == {}
    again = detmap.read(tmp_path / f"found.{ending}", "detections")
    assert same_bits(again.scores, found.scores)
    assert same_bits(again.boxes, found.boxes)
    assert again.images.ids[again.images.codes].tolist() == names
    assert again.categories.ids[again.categories.codes].tolist() == names[::-1]


# ------------------------------------------------------------------------------------------------- names of files, classes


@pytest.mark.parametrize("format", ["yolo", "text"])
@pytest.mark.parametrize("name", ["a.jpg", "frame_7.25", "train", "x.y.PNG"])
def test_images_of_any_name_come_through_folders_of_text(format, name, tmp_path):
    """Files of labels are called like the image without its ending, and detections find their images again."""
    truth = one_image(name)
    found = detmap.Detections.from_arrays(image_ids=[name], category_ids=["cat"], boxes=[[8, 8, 16, 16]], scores=[0.5])
    detmap.write(truth, tmp_path / "truth", format=format)
    detmap.write(found, tmp_path / "found", format=format, ground_truth=truth)
    again = detmap.read(tmp_path / "truth", "ground_truth", format=format)
    assert len(again) == again.images.ids.size == 1
    assert again.images.ids[0] == name.removesuffix(".jpg").removesuffix(".PNG")
    for one in (truth, again):
        got = detmap.read(tmp_path / "found", "detections", format=format, ground_truth=one)
        assert detmap.evaluate(one, got)["AP50"] > 0.99


@pytest.mark.parametrize("format", ["yolo", "text"])
def test_an_image_whose_empty_file_would_not_be_read_is_refused(format, tmp_path):
    truth = one_image("a", images=["a", "classes"], image_sizes=[[64, 64]] * 2)
    with pytest.raises(InputError, match=r"cannot have this name.*\(got 'classes'\)"):
        detmap.write(truth, tmp_path / "out", format=format)
    assert not (tmp_path / "out").exists()


def test_an_unknown_image_is_not_taken_for_another_by_cutting_its_name(tmp_path):
    truth = detmap.GroundTruth.from_arrays(image_ids=[7], category_ids=[1], boxes=[[0, 0, 2, 2]])
    text = "image,category_id,score,x,y,width,height\n7.5,1,1,0,0,2,2\n"
    with pytest.raises(InputError, match=r"is not an image of the ground truth \(got '7\.5'\)"):
        csv(tmp_path / "found.csv", text, ground_truth=truth)


def test_a_name_of_two_categories_is_refused(tmp_path):
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[7], category_ids=[1], boxes=[[0, 0, 2, 2]], categories=[1, 2], category_names={1: "cat", 2: "cat"}
    )
    text = "image_id,category,score,x,y,width,height\n7,cat,1,0,0,2,2\n"
    with pytest.raises(InputError, match="is the name of more than one category"):
        csv(tmp_path / "found.csv", text, ground_truth=truth)


def test_what_is_the_id_of_one_category_and_the_name_of_another_is_refused(tmp_path):
    """Detections hold ids where ground truth has ids and names: classes would change places without a word."""
    given = {"image_ids": ["i", "i"], "category_ids": ["a", "b"], "boxes": [[0, 0, 2, 2], [9, 9, 3, 3]]}
    truth = detmap.GroundTruth.from_arrays(**given, category_names={"a": "b", "b": "c"})
    found = detmap.Detections.from_arrays(**given, scores=[1, 0.5])
    for name in ("found.csv", "found.parquet"):
        detmap.write(found, tmp_path / name)
        with pytest.raises(InputError, match="is the id of one category of the ground truth, and the name of another"):
            detmap.read(tmp_path / name, "detections", ground_truth=truth)


def test_unknown_categories_get_ids_that_no_category_has(tmp_path):
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[7], category_ids=[2**63 - 1], boxes=[[0, 0, 2, 2]], categories=[1, 2**63 - 1]
    )
    text = "image_id,category,score,x,y,width,height\n7,bird,1,0,0,2,2\n7,hen,1,0,0,2,2\n"
    assert csv(tmp_path / "found.csv", text, ground_truth=truth).categories.ids.tolist() == [2, 3]


def test_many_long_names_do_not_widen_the_column(tmp_path):
    """A table of text as wide as its longest id would take gigabytes."""
    count = 20_000
    names = pa.DictionaryArray.from_arrays(pa.array(np.arange(count, dtype=np.int32) % 2), pa.array(["x" * 256, "dog"]))
    columns = {name: np.zeros(count) for name in ("x", "y")} | {name: np.ones(count) for name in ("width", "height")}
    frame = pa.table({"image": names, "label": names, "score": np.linspace(0, 1, count), **columns})
    parquet.write_table(frame, tmp_path / "found.parquet")
    truth = one_image("dog", category_ids=["dog"])
    found = detmap.read(tmp_path / "found.parquet", "detections", ground_truth=truth, unknown_images="ignore")
    assert len(found) == count // 2
    assert found.categories.ids.tolist() == ["dog"]


def test_nested_settings_are_refused_at_once(tmp_path):
    """Each of its lists holds the one before many times: written out it would be endless."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 7)}]" for i in range(1, 30))]
    (tmp_path / "data.yaml").write_text("\n".join([*lines, "names: *a29", "val: ."]))
    with pytest.raises(InputError, match="names"):
        detmap.read(tmp_path / "data.yaml", "ground_truth")


# ------------------------------------------------------------------------------------------------- options of the commands


def test_batch_and_compare_take_every_format_and_its_options(tmp_path, capsys, monkeypatch):
    """The same detections in every format that holds them: the same metrics, as files and as shards."""
    monkeypatch.chdir(tmp_path)
    dataset, results = make_coco(4, images=6, unknown_categories=False)
    (tmp_path / "truth.json").write_text(json.dumps(dataset))
    (tmp_path / "found.json").write_text(json.dumps(results))
    truth = detmap.read("truth.json", "ground_truth")
    found = detmap.read("found.json", "detections", ground_truth=truth)
    expected = json.loads(detmap.evaluate(truth, found).to_json())["metrics"]
    detmap.write(found, "found.csv")
    detmap.write(found, "found.parquet")
    frame = found.to_frame().rename(columns={"score": "p"})
    frame.to_csv("odd.csv", index=False)
    quiet = ["--quiet", "--format", "json"]
    assert main(["batch", "truth.json", "found.json", "found.csv", "found.parquet", *quiet]) == 0
    rows = json.loads(capsys.readouterr().out)["models"]
    assert len(rows) == 3
    assert all(row["metrics"] == expected for row in rows)
    (tmp_path / "models").mkdir()
    (tmp_path / "odd.csv").rename("models/odd.csv")
    assert main(["batch", "truth.json", "models", "--dt-format", "csv", "--columns", "score=p", *quiet]) == 0
    assert json.loads(capsys.readouterr().out)["models"][0]["metrics"] == expected
    words = ["--sharded", "--dt-format", "csv", "--columns", "score=p", *quiet]
    assert main(["eval", "truth.json", "models/odd.csv", *words]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"] == expected
    (tmp_path / "list.csv").write_text("path,name\nfound.csv,mine\n")
    assert main(["batch", "truth.json", "list.csv", *quiet]) == 0
    assert json.loads(capsys.readouterr().out)["models"][0]["model"] == "mine"
    assert main(["batch", "truth.json", "found.json", "--dt-format", "voc", *quiet]) == 3
    assert "tar" in capsys.readouterr().out


def test_resume_counts_what_decides_how_predictions_are_read(tmp_path, capsys, monkeypatch):
    """YOLO's data.yaml beside the predictions, and files that options name."""
    monkeypatch.chdir(tmp_path)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=["a"], category_ids=["cat"], boxes=[[8, 8, 16, 16]], categories=["cat", "dog"], images=["a"],
        image_sizes=[[64, 64]],
    )  # fmt: skip
    detmap.write(truth, "truth.json")
    (tmp_path / "run/labels").mkdir(parents=True)
    (tmp_path / "run/labels/a.txt").write_text("0 0.25 0.25 0.25 0.25 0.5\n")
    command = ["batch", "truth.json", "run", "--out", "board", "--resume", "--quiet", "--format", "json"]

    def ap(*more):
        assert main([*command, *more]) == 0
        return json.loads(capsys.readouterr().out)["models"][0]["metrics"]["AP50"]

    for settings, expected in (("names: [cat, dog]\n", 1), ("names: [dog, cat]\n", 0), ("names: [cat, dog]\n", 1)):
        (tmp_path / "run/data.yaml").write_text(settings)
        assert ap() == pytest.approx(expected)
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    assert ap("--classes", "names.txt") == pytest.approx(1)
    (tmp_path / "names.txt").write_text("dog\ncat\n")
    assert ap("--classes", "names.txt") == 0
    (tmp_path / "map.csv").write_text("dog,cat\n")
    assert ap("--classes", "names.txt", "--class-map", "map.csv") == pytest.approx(1)
    content = Input("run", "detections").fingerprint()
    (tmp_path / "run/data.yaml").write_text("names: [a, b]\n")
    assert Input("run", "detections").fingerprint() != content


def test_the_api_of_batch_reads_what_predictions_need(tmp_path):
    """Names and sizes of images, of ground truth that it reads itself; and it refuses options that there are not."""
    from detmap import batch

    truth = one_image("a")
    detmap.write(truth, tmp_path / "truth.json")
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels/a.txt").write_text("0 0.25 0.25 0.25 0.25 0.5\n")
    [found] = batch.score(tmp_path / "truth.json", [tmp_path / "labels"], reading={"format": "yolo"})
    assert found["AP50"] > 0.99
    whole = batch.evaluate_shards(tmp_path / "truth.json", [tmp_path / "labels"], reading={"format": "yolo"})
    assert_same_result(
        whole, detmap.evaluate(truth, detmap.read(tmp_path / "labels", "detections", ground_truth=truth))
    )
    with pytest.raises(OptionError, match="unknown option of reading 'colour'"):
        list(batch.score(truth, [tmp_path / "labels"], reading={"colour": 1}))
