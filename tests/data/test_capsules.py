"""Columns of every type that other libraries hand over by Arrow's interface: polars and DuckDB where they are installed."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_frames import Stream

import detmap
from detmap.errors import InputError
from detmap.retrieval import evaluate_neighbors, evaluate_run

IMAGES, CATEGORIES = [1, 1, 2, 3], [5, 6, 5, 5]
BOXES = np.random.default_rng(3).random((4, 4))
SCORES = np.random.default_rng(4).random(4)
SIDES = dict(zip(("x", "y", "width", "height"), BOXES.T, strict=True))
FOUND = {"image_id": IMAGES, "category_id": CATEGORIES, "score": SCORES, **SIDES}


def assert_same(table):
    """The table holds the numbers above bit for bit, and the ids as numbers or as text."""
    assert np.array_equal(table.boxes, BOXES)
    assert np.array_equal(table.scores, SCORES)
    for ids, expected in ((table.images, IMAGES), (table.categories, CATEGORIES)):
        assert [int(one) for one in ids.values[ids.codes].tolist()] == expected


def with_columns(**columns):
    """The detections as an Arrow table, some of whose columns are others; None leaves one out."""
    return pa.table({name: column for name, column in {**FOUND, **columns}.items() if column is not None})


def text(values, kind=None):
    return pa.array(list(map(str, values)), kind)


def lists(kind=None):
    return {**dict.fromkeys(SIDES), "bbox": pa.array(BOXES.tolist(), kind)}


def exact(values):
    """Decimals that are nearest to some floats, and to no others."""
    return pa.array([decimal.Decimal(repr(float(one))) for one in values], pa.decimal128(38, 25))


def list_of_decimals():
    return pa.array([[decimal.Decimal(repr(float(v))) for v in row] for row in BOXES], pa.list_(pa.decimal128(38, 25)))


def tensor():
    return pa.FixedShapeTensorArray.from_numpy_ndarray(BOXES)


#: Views came with pyarrow 16.
VIEWS = hasattr(pa, "string_view")

TYPES = {
    "large strings": lambda: {"image_id": text(IMAGES, pa.large_string())},
    "views of strings": lambda: {"image_id": text(IMAGES).cast(pa.string_view())},
    "dictionaries": lambda: {"image_id": text(IMAGES).dictionary_encode(), "category_id": text(CATEGORIES)},
    "dictionaries of views": lambda: {
        "category_id": pa.DictionaryArray.from_arrays([0, 1, 0, 0], text([5, 6]).cast(pa.string_view()))
    },
    "dictionaries of numbers": lambda: {"category_id": pa.array(CATEGORIES).dictionary_encode()},
    "lists": lambda: lists(pa.list_(pa.float64())),
    "large lists": lambda: lists(pa.large_list(pa.float64())),
    "views of lists": lambda: {**lists(), "bbox": pa.array(BOXES.tolist(), pa.list_view(pa.float64()))},
    "lists of one length": lambda: lists(pa.list_(pa.float64(), 4)),
    "tensors": lambda: {**lists(), "bbox": tensor()},
    "decimals": lambda: {"score": exact(SCORES), "width": exact(BOXES[:, 2])},
    "lists of decimals": lambda: {**lists(), "bbox": list_of_decimals()},
    "whole decimals": lambda: {"image_id": pa.array(IMAGES).cast(pa.decimal128(38, 0))},
    "small integers": lambda: {
        "image_id": pa.array(IMAGES, pa.uint8()),
        "category_id": pa.array(CATEGORIES, pa.int16()),
    },
}


@pytest.mark.parametrize("kind", [kind for kind in TYPES if VIEWS or "views" not in kind])
def test_every_type_of_column_holds_the_same_numbers(kind):
    """As one table, in two chunks, as a part of a larger table, and through Arrow's interface alone."""
    table = with_columns(**TYPES[kind]())
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    part = pa.concat_tables([table, table]).combine_chunks().slice(4)
    for data in (table, chunked, part, Stream(table), Stream(chunked), Stream(part)):
        assert_same(detmap.Detections.from_arrow(data))
    empty = detmap.Detections.from_arrow(Stream(table.slice(0, 0)))
    assert len(empty) == 0


def test_images_without_objects_are_told_by_any_type_of_column():
    """A row without a category is an image, whatever the strings and lists are."""
    names, classes = pa.array(["a", "b", "c"]), pa.array(["cat", None, "dog"])
    boxes = [[1.0, 2.0, 3.0, 4.0], None, [1.0, 1.0, 1.0, 1.0]]
    views = [pa.string_view()] if VIEWS else []
    for strings in (pa.string(), pa.large_string(), *views):
        for kind in (pa.list_(pa.float64()), pa.list_(pa.float64(), 4)):
            columns = {"image": names.cast(strings), "category": classes.cast(strings), "bbox": pa.array(boxes, kind)}
            table = detmap.GroundTruth.from_arrow(Stream(pa.table(columns)))
            assert table.images.values.tolist() == ["a", "b", "c"]
            assert table.categories.values.tolist() == ["cat", "dog"]
            assert table.boxes.tolist() == [boxes[0], boxes[2]]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"score": pa.array([None, decimal.Decimal("0.5")] * 2)}, "record 0, field 'score'"),
        ({"image_id": pa.array(["a", None] * 2).dictionary_encode()}, "record 1, field 'image_id': is missing"),
        ({"image_id": pa.array([b"a"] * 4)}, "ids must be integers or strings"),
        ({"image_id": pa.array([decimal.Decimal("0.5")] * 4)}, "record 0, field 'image_id': is not an integer"),
        ({**lists(), "bbox": pa.array([None, [1.0] * 4] * 2)}, "record 0, field 'bbox': is missing"),
    ],
)
def test_what_such_columns_lack_is_named(columns, problem):
    with pytest.raises(InputError, match=problem):
        detmap.Detections.from_arrow(Stream(with_columns(**columns)))


def test_neighbours_come_as_columns_of_lists():
    """Arrays of Arrow, series of lists, and lists of one length are tables of as many columns."""
    rows, distances = [[2, 1], [0, 2]], [[0.1, 0.2], [0.3, 0.4]]
    expected = dict(evaluate_neighbors(rows, [7, 8], [7, 8, 7], distances))
    for made in (pa.array, lambda values: pa.array(values, pa.list_(pa.array(values[0]).type, 2)), pd.Series):
        found = evaluate_neighbors(made(rows), pa.array([7, 8]), pa.array([7, 8, 7]), made(distances))
        assert dict(found) == expected
    with pytest.raises(InputError, match="indices: is no array: are its rows of one length"):
        evaluate_neighbors(pa.array([[1, 2], [1]]), [7, 8], [7, 8, 7])


class Plan:
    """A frame that says how its rows are computed, and has none."""

    def collect(self):
        return with_columns()


class Broken:
    """A library whose query fails with an error of its own."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise OSError("the query\nfailed")


def test_plans_and_failing_queries_are_one_line():
    for role in (detmap.Detections, detmap.GroundTruth):
        with pytest.raises(
            InputError, match=r"this Plan is a plan, and holds no rows yet; give what its method collect"
        ):
            role.from_frame(Plan())
    qrels = {"query_id": ["q"], "doc_id": ["d"], "relevance": [1]}
    with pytest.raises(InputError, match="run: this Plan is a plan"):
        evaluate_run(qrels, Plan())
    with pytest.raises(InputError, match="cannot be read as a table: the query failed"):
        detmap.Detections.from_arrow(Broken())


def address(array):
    return array.__array_interface__["data"][0]


def test_frames_of_polars():
    """Strings, categories, arrays, lists and parts of frames; scores and boxes lie where polars has them."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(FOUND)
    named = frame.with_columns(pl.col("image_id", "category_id").cast(pl.String))
    of_lists = frame.select("image_id", "category_id", "score", bbox=pl.concat_list(*SIDES))
    of_arrays = of_lists.with_columns(pl.col("bbox").list.to_array(4))
    kinds = [
        frame,
        named,
        named.with_columns(pl.col("image_id", "category_id").cast(pl.Categorical)),
        of_lists,
        of_arrays,
    ]
    for one in kinds:
        for data in (one, pl.concat([one[:1], one[1:]], rechunk=False), pl.concat([one, one])[4:]):
            assert_same(detmap.Detections.from_frame(data))
    table = detmap.Detections.from_arrow(of_arrays)
    assert address(table.scores) == address(of_arrays["score"].to_numpy())
    assert address(table.boxes) == address(pa.table(of_arrays)["bbox"].chunk(0).flatten().to_numpy())
    assert len(detmap.Detections.from_frame(frame[:0])) == 0
    with pytest.raises(InputError, match="this LazyFrame is a plan, and holds no rows yet"):
        detmap.Detections.from_frame(frame.lazy())


def test_relations_of_duckdb():
    """Decimals, as DuckDB takes numbers with a point, lists, arrays and enumerations."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("found", with_columns())
    for what in (
        "*",
        "image_id::varchar image_id, category_id::hugeint category_id, score, x, y, width, height",
        "image_id, category_id, score, [x, y, width, height] bbox",
        "image_id, category_id, score, [x, y, width, height]::double[4] bbox",
    ):
        assert_same(detmap.Detections.from_arrow(connection.sql(f"select {what} from found")))
    written = connection.sql("select image_id, category_id, 0.1 score, [1.5, 2.25, 3, 4] bbox from found")
    table = detmap.Detections.from_arrow(written)
    assert table.scores.tolist() == [0.1] * 4
    assert table.boxes.tolist() == [[1.5, 2.25, 3, 4]] * 4
    with pytest.raises(InputError, match="cannot be read as a table"):
        detmap.Detections.from_arrow(connection.sql("select *, error('no') wrong from found"))
