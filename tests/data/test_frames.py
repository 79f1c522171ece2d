"""Data frames, Arrow, Parquet and Feather: what is taken and given, without a copy where that can be."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
from support import assert_same_result, same_bits
from test_round_trips import assert_same_table, law, through
from workloads import make_coco

import detmap
from detmap.cli import main
from detmap.errors import InputError, MissingDependencyError, OptionError
from detmap.installation import install_command

FOUND = {
    "image_id": [1, 1, 2],
    "category_id": [5, 6, 5],
    "score": [0.5, 0.25, 0.75],
    "x": [0.0, 1.0, 2.0],
    "y": [0.0, 1.0, 2.0],
    "width": [3.0, 4.0, 5.0],
    "height": [3.0, 4.0, 5.0],
}
BOXES = np.array([[0, 0, 3, 3], [1, 1, 4, 4], [2, 2, 5, 5]], float)


def lists(kind=None):
    """The same with a column of lists."""
    kept = {name: FOUND[name] for name in ("image_id", "category_id", "score")}
    return pa.table({**kept, "bbox": pa.array(BOXES.tolist(), kind or pa.list_(pa.float64(), 4))})


class Stream:
    """Anything that has Arrow's interface, and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        FOUND,
        pd.DataFrame(FOUND),
        pd.DataFrame(FOUND, index=[7, 7, 7]),
        pa.table(FOUND),
        pa.table(FOUND).to_batches()[0],
        pa.table(FOUND).to_reader(),
        Stream(pa.table(FOUND)),
        pa.concat_tables([pa.table(FOUND).slice(0, 1), pa.table(FOUND).slice(1)]),
        lists(),
        lists(pa.list_(pa.float32())),
        lists(pa.large_list(pa.int64())),
    ],
    ids=lambda data: type(data).__name__,
)
def test_detections_of_anything_with_columns(data):
    table = detmap.Detections.from_frame(data)
    assert table.boxes.tolist() == BOXES.tolist()
    assert table.scores.tolist() == FOUND["score"]
    assert table.images.values[table.images.codes].tolist() == FOUND["image_id"]
    assert table.categories.values[table.categories.codes].tolist() == FOUND["category_id"]
    assert table.box_sizes


def test_scores_and_lists_of_boxes_are_not_copied():
    scores = np.random.default_rng(0).random(3)
    flat = BOXES.ravel().copy()
    boxes = pa.FixedSizeListArray.from_arrays(pa.array(flat), 4)
    data = pa.table({"image_id": [1, 1, 2], "category_id": [1, 1, 1], "score": pa.array(scores), "bbox": boxes})
    table = detmap.Detections.from_arrow(data)
    assert (
        table.scores.__array_interface__["data"][0] == data["score"].chunk(0).to_numpy().__array_interface__["data"][0]
    )
    inside = data["bbox"].chunk(0).flatten().to_numpy()
    assert table.boxes.__array_interface__["data"][0] == inside.__array_interface__["data"][0]


def test_strings_come_as_they_are_dictionaries_and_categories_too():
    names = ["b", "a", "b"]
    kinds = [pa.array(names), pa.array(names, pa.large_string()), pa.array(names).dictionary_encode()]
    for column in [*kinds, pd.Series(names, dtype="category", name="x")]:
        frame = {**{k: v for k, v in FOUND.items() if k != "image_id"}, "file_name": column}
        table = detmap.Detections.from_frame(pd.DataFrame(frame) if isinstance(column, pd.Series) else pa.table(frame))
        assert table.images.values.tolist() == ["a", "b"]
        assert table.images.codes.tolist() == [1, 0, 1]


def test_columns_and_formats_that_the_caller_names():
    frame = pd.DataFrame(FOUND).rename(columns={"score": "p", "image_id": "where"})
    frame["score"] = -1.0
    with pytest.raises(InputError, match="there is no column for images; it has: where"):
        detmap.Detections.from_frame(frame)
    table = detmap.Detections.from_frame(frame, columns={"image_id": "where", "score": "p"})
    assert table.scores.tolist() == FOUND["score"]
    corners = detmap.Detections.from_arrow(lists(), box_format="xyxy", invalid_boxes="miss")
    assert not corners.box_sizes
    titled = lists().rename_columns(["image_id", "category_id", "score", "bbox_xyxy"])
    assert not detmap.Detections.from_arrow(titled).box_sizes
    with pytest.raises(OptionError, match="a column cannot be 'colour'"):
        detmap.Detections.from_frame(frame, columns={"colour": "p"})
    with pytest.raises(InputError, match="has no column 'nowhere'"):
        detmap.Detections.from_frame(frame, columns={"score": "nowhere"})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"score": None}, "there is no column for scores"),
        ({"score": [0.5, None, 1]}, r"record 1, field 'score': a score must be a number"),
        ({"score": ["a", "b", "c"]}, "field 'score'"),
        ({"image_id": [1, None, 2]}, "record 1, field 'image_id': is missing"),
        ({"image_id": [1.5, 2, 3]}, "record 0, field 'image_id': is not an integer"),
        ({"image_id": ["a", "", "c"]}, "field 'image_id': an id must have 1 to 256"),
        ({"image_id": ["a", "x" * 300, "c"]}, "field 'image_id': an id must have 1 to 256"),
        ({"image_id": ["a", "b\0", "c"]}, "field 'image_id': an id must have 1 to 256"),
        ({"category_id": [[1], [2], [3]]}, "category_id"),
        ({"x": ["a", "b", "c"]}, "field 'x': must be numbers"),
        ({"x": [0.0, None, 1.0]}, "must be four finite numbers"),
        ({"x": None}, "there is no column for boxes"),
        ({"bbox": BOXES.tolist()}, "has boxes in 2 ways: bbox and x, y, width, height"),
        ({"x": None, "bbox": [[1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4]]}, "record 0, field 'bbox': has 3 numbers"),
        ({"x": None, "bbox": [[1, 2, 3, 4], None, [1, 2, 3, 4]]}, "record 1, field 'bbox': is missing"),
        ({"x": None, "bbox": [[1, 2, 3, None]] * 3}, "field 'bbox': must be lists of four numbers"),
        ({"x": None, "bbox": ["a", "b", "c"]}, "field 'bbox': must be lists of four numbers"),
        ({"x": None, "bbox": [["a"] * 4] * 3}, "field 'bbox': must be lists of four numbers"),
        ({"Score": [1, 2, 3]}, "has two columns for score"),
    ],
)
def test_columns_that_are_none(change, problem):
    data = {name: column for name, column in {**FOUND, **change}.items() if column is not None}
    with pytest.raises(InputError, match=problem) as caught:
        detmap.Detections.from_arrow(pa.table(data))
    assert str(caught.value).isprintable()


def test_what_is_no_table_is_refused(monkeypatch):
    for value in (3, "found.parquet", [1, 2], {"a": [1], "b": [1, 2]}):
        with pytest.raises(InputError, match="detections: cannot be read as a table"):
            detmap.Detections.from_frame(value)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=rf"needs pyarrow: {re.escape(install_command('parquet'))}"):
        detmap.Detections.from_frame(FOUND)


def test_ground_truth_has_flags_names_sizes_and_images_without_objects():
    frame = {
        "image": ["a", "b", "c"],
        "category_id": [3, 4, None],
        "category": ["cat", "dog", None],
        "bbox": [[0, 0, 2, 2], [1, 1, 2, 2], None],
        "iscrowd": [0, 1, None],
        "area": [3.0, 4.0, None],
        "image_width": [10, 20, 30],
        "image_height": [11, 21, None],
    }
    table = detmap.GroundTruth.from_arrow(pa.table(frame))
    assert table.images.values.tolist() == ["a", "b", "c"]
    assert table.category_names == ("cat", "dog")
    assert table.crowd.tolist() == [False, True]
    assert table.areas.tolist() == [3, 4]
    assert table.image_sizes.tolist() == [[11, 10], [21, 20], [0, 30]]
    more = detmap.GroundTruth.from_arrow(pa.table(frame), categories=[3, 4, 5], source="mine")
    assert (more.categories.values.tolist(), more.source) == ([3, 4, 5], "mine")
    for change, problem in (
        ({"category": ["cat", "dog", None], "category_id": [3, 3, None]}, "has two names: 'cat' and 'dog'"),
        ({"image": ["a", "a", "c"]}, "must be one whole number for each image"),
        ({"image_width": [10.5, 20, 30]}, "must be one whole number for each image"),
    ):
        with pytest.raises(InputError, match=problem):
            detmap.GroundTruth.from_arrow(pa.table({**frame, **change}))


@pytest.mark.parametrize("way", ["arrow", "frame", "parquet", "feather"])
def test_tables_of_boxes_come_back_bit_for_bit(way, tmp_path):
    """Categories without objects apart, which files count."""

    @law()
    def holds(world):
        for table in world:
            plain = (
                replace(table, images=replace(table.images, names=None))
                if isinstance(table, detmap.GroundTruth)
                else table
            )
            if way in ("arrow", "frame"):
                again = type(plain).from_frame(getattr(plain, f"to_{way}")())
            else:
                again, lost = through(plain, tmp_path / f"table.{way}")
                unused = 0
                if isinstance(plain, detmap.GroundTruth):
                    unused = plain.categories.values.size - np.unique(plain.categories.codes).size
                assert lost.get("empty_categories", 0) == unused
            assert again.images.values.tolist() == plain.images.values.tolist()
            assert again.images.codes.tolist() == plain.images.codes.tolist()
            used = plain.categories.values[plain.categories.codes].tolist()
            assert again.categories.values[again.categories.codes].tolist() == used
            assert same_bits(again.boxes, plain.boxes)
            if isinstance(plain, detmap.GroundTruth):
                assert same_bits(again.areas, plain.areas)
                assert again.crowd.tolist() == plain.crowd.tolist()
                assert again.difficult.tolist() == plain.difficult.tolist()
                assert plain.image_sizes is None or np.array_equal(again.image_sizes, plain.image_sizes)
                if plain.categories.values.dtype.kind == "i":
                    names = dict(zip(plain.categories.values.tolist(), plain.category_names, strict=True))
                    assert again.category_names == tuple(names[one] for one in again.categories.values.tolist())
            else:
                assert same_bits(again.scores, plain.scores)

    holds()


def test_parquet_and_feather_score_the_same_on_the_command_line(tmp_path, capsys):
    dataset, results = make_coco(8, images=6)
    truth = detmap.read_coco(dataset)
    found = detmap.read_coco_results(results, truth)
    expected = detmap.evaluate(truth, found)
    detmap.write(truth, tmp_path / "truth.json")
    for name in ("found.parquet", "found.feather", "found.arrow"):
        detmap.write(found, tmp_path / name)
        assert_same_table(found, detmap.read(tmp_path / name, "detections"))
        assert_same_result(
            detmap.evaluate(truth, detmap.read(tmp_path / name, "detections", ground_truth=truth)), expected
        )
        assert main(["eval", str(tmp_path / "truth.json"), str(tmp_path / name), "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["metrics"] == json.loads(expected.to_json())["metrics"]
    made = detmap.convert(tmp_path / "found.parquet", tmp_path / "again.csv", role="detections")
    assert made.written == len(found)


def test_ids_of_files_are_matched_with_those_of_the_ground_truth(tmp_path):
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[7], category_ids=[2], boxes=[[0, 0, 9, 9]], images=[7], category_names={2: "dog"}
    )
    truth = replace(truth, images=replace(truth.images, names=("val/a.jpg",)))
    path = tmp_path / "found.parquet"
    box = {"score": [1.0, 0.5], "x": [0, 0], "y": [0, 0], "width": [9, 9], "height": [9, 9]}
    parquet.write_table(pa.table({"image": ["a.jpg", "b.jpg"], "label": ["dog", "cat"], **box}), path)
    with pytest.raises(InputError, match=r"record 1: is not an image of the ground truth \(got 'b\.jpg'\)"):
        detmap.read(path, "detections", ground_truth=truth)
    found = detmap.read(path, "detections", ground_truth=truth, unknown_images="ignore")
    assert (found.images.values.tolist(), found.categories.values.tolist()) == ([7], [2])
    assert found.notices["unknown_image"] == 1
    strings = detmap.GroundTruth.from_arrays(image_ids=["7"], category_ids=["2"], boxes=[[0, 0, 9, 9]])
    parquet.write_table(pa.table({"image_id": [7, 7], "category_id": [2, 2], **box}), path)
    found = detmap.read(path, "detections", ground_truth=strings)
    assert (found.images.values.tolist(), found.categories.values.tolist()) == (["7"], ["2"])
    titles = "image=image_id, category=category_id"
    assert len(detmap.read(path, "detections", columns=titles)) == 2


def test_files_that_are_damaged_or_bombs_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    found = detmap.Detections.from_frame(FOUND)
    for name in ("found.parquet", "found.feather"):
        path = tmp_path / name
        detmap.write(found, path)
        data = path.read_bytes()
        for cut in (b"", data[:4], data[: len(data) // 2], data[: len(data) - 3], b"PAR1" * 9, b"ARROW1" * 9):
            path.write_bytes(cut)
            with pytest.raises(InputError):
                detmap.read(path, "detections")
        for _ in range(30):
            damaged = bytearray(data)
            damaged[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            with contextlib.suppress(InputError):
                detmap.read(path, "detections")
    count = 34_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), pa.array(["a"]))
    parquet.write_table(pa.table({"image": column}), tmp_path / "bomb.parquet")
    assert (tmp_path / "bomb.parquet").stat().st_size < 1_000_000
    with pytest.raises(InputError, match="grows beyond 256 MiB when decompressed"):
        detmap.read(tmp_path / "bomb.parquet", "detections")
    for compression in ("lz4", "zstd", "uncompressed"):
        feather.write_feather(pa.table(FOUND), tmp_path / "found.feather", compression=compression)
        assert_same_table(found, detmap.read(tmp_path / "found.feather", "detections"))
    zeros = pa.table({"score": np.zeros(34_000_000)})
    feather.write_feather(zeros, tmp_path / "bomb.feather", compression="zstd", chunksize=zeros.num_rows)
    assert (tmp_path / "bomb.feather").stat().st_size < 1_000_000
    with pytest.raises(InputError, match="grows beyond 256 MiB when decompressed"):
        detmap.read(tmp_path / "bomb.feather", "detections")


def test_runs_are_decoded(tmp_path):
    """Columns that are encoded by runs hold the same values."""
    import pyarrow.compute as compute

    plain = pa.table({**FOUND, "image": ["a", "a", "b"]}).drop_columns(["image_id"])
    columns = [compute.run_end_encode(column.combine_chunks()) for column in plain.columns]
    runs = pa.table(columns, names=plain.column_names)
    expected = detmap.Detections.from_arrow(plain)
    assert_same_table(expected, detmap.Detections.from_arrow(runs))
    assert_same_table(expected, detmap.Detections.from_arrow(pa.concat_tables([runs, runs.slice(3)])))
    with pa.ipc.new_file(str(tmp_path / "runs.arrow"), runs.schema) as writer:
        writer.write_table(runs)
    assert_same_table(detmap.read(tmp_path / "runs.arrow", "detections"), expected)


UNION = pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("bbox", pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(BOXES.tolist()))),
        ("score", pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(BOXES.tolist()))),
        ("score", UNION),
        ("image_id", UNION),
    ],
)
def test_a_type_that_pyarrow_does_not_convert_is_an_error_of_one_line(name, column, tmp_path):
    table = pa.table({**{title: lists()[title] for title in lists().column_names}, name: column})
    with pa.ipc.new_file(str(tmp_path / "odd.arrow"), table.schema) as writer:
        writer.write_table(table)
    for attempt in (
        lambda: detmap.Detections.from_arrow(table),
        lambda: detmap.read(tmp_path / "odd.arrow", "detections"),
    ):
        with pytest.raises(InputError, match=name) as told:
            attempt()
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
def test_shapes_that_frames_and_arrow_do_not_hold_are_counted(kind):
    truth = detmap.read_coco("fixtures/people/ground_truth.json", iou_type=kind)
    name = {"segm": "masks", "keypoints": "poses"}[kind]
    for table in (truth, detmap.read_coco_results(f"fixtures/people/{name}.json", truth, iou_type=kind)):
        arrow, frame = table.to_arrow(), table.to_frame()
        for made in (arrow, frame, frame.copy(), arrow.to_batches()[0]):
            back = type(table).from_arrow(made)
            assert back.kinds == ("bbox",)
            assert back.notices["unread_shapes"] == len(table)
        assert type(table).from_frame(frame.iloc[:3]).notices["unread_shapes"] == 3
        for spoilt in (b"", b"-1", b"many", b"9" * 5000, "²".encode()):
            odd = arrow.replace_schema_metadata({"detmap.shapes_left_out": spoilt})
            assert "unread_shapes" not in type(table).from_arrow(odd).notices
    boxes = detmap.read_coco("fixtures/people/ground_truth.json")
    assert boxes.to_arrow().schema.metadata is None
    assert not boxes.to_frame().attrs
    assert "unread_shapes" not in detmap.GroundTruth.from_frame(boxes.to_frame()).notices
