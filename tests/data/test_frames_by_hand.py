"""Columns of Arrow and data frames by hand: what a table becomes, what comes back, and what is refused."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import detmap
from detmap.data import arrow_columns
from detmap.errors import InputError, OptionError


def said(call, *given, **more):
    with pytest.raises((InputError, OptionError)) as caught:
        call(*given, **more)
    return str(caught.value)


def truth(strings=False, corners=False):
    ids = (["b", "a", "c"], ["y", "x"]) if strings else ([20, 10, 30], [2, 1])
    table = detmap.GroundTruth.from_arrays(
        image_ids=[ids[0][0], ids[0][1], ids[0][0]], category_ids=[ids[1][0], ids[1][1], ids[1][0]], images=ids[0],
        boxes=[[0, 1, 2, 3], [4, 5, 6, 7], [1, 1, 9, 9]], box_format="xyxy" if corners else "xywh", areas=[1, 2.5, 0],
        crowd=[0, 1, 0], difficult=[1, 0, 0], image_sizes=[[4, 8], [5, 9], [6, 7]], group_of=[0, 0, 1],
        fields={"level": [1, None, 2]}, category_names=None if strings else {2: "two", 1: "one"},
    )  # fmt: skip
    return table if strings else replace(table, images=replace(table.images, names=("a.jpg", "", "c.jpg")))


def test_every_column_of_ground_truth_in_arrow():
    assert truth().to_arrow().to_pydict() == {
        "image_id": [20, 10, 20, 30], "image": [None, "a.jpg", None, "c.jpg"],
        "category_id": [2, 1, 2, None], "category": ["two", "one", "two", None],
        "bbox": [[0, 1, 2, 3], [4, 5, 6, 7], [1, 1, 9, 9], None], "area": [1, 2.5, 0, None],
        "crowd": [False, True, False, None], "difficult": [True, False, False, None],
        "IsGroupOf": [False, False, True, None], "level": [1, None, 2, None], "image_height": [4, 5, 4, 6],
        "image_width": [8, 9, 8, 7],
    }  # fmt: skip
    named = truth(strings=True, corners=True).to_arrow().to_pydict()
    assert list(named) == [
        "image", "category", "bbox_xyxy", "area", "crowd", "difficult", "IsGroupOf", "level", "image_height", "image_width"
    ]  # fmt: skip
    assert named["image"] == ["b", "a", "b", "c"]
    assert named["category"] == ["y", "x", "y", None]
    frame = truth().to_frame()
    assert list(frame) == [
        "image_id", "image", "category_id", "category", "area", "crowd", "difficult", "IsGroupOf", "level", "image_height",
        "image_width", "x", "y", "width", "height",
    ]  # fmt: skip
    assert frame["width"].tolist()[:3] == [2, 6, 9]
    assert str(frame["category_id"].dtype) == "Int64"
    assert list(truth(corners=True).to_frame())[-4:] == ["x1", "y1", "x2", "y2"]


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("way", ["arrow", "frame"])
def test_ground_truth_comes_back(way, strings, corners):
    table = truth(strings, corners)
    again = getattr(detmap.GroundTruth, f"from_{way}")(getattr(table, f"to_{way}")())
    for name in ("boxes", "areas", "crowd", "difficult", "group_of"):
        assert getattr(again, name).tolist() == getattr(table, name).tolist()
    for name in ("images", "categories"):
        ours, theirs = getattr(again, name), getattr(table, name)
        assert (ours.ids.tolist(), ours.codes.tolist()) == (theirs.ids.tolist(), theirs.codes.tolist())
    assert again.categories.names == table.categories.names
    assert again.images.sizes.tolist() == table.images.sizes.tolist()
    assert again.images.names == table.images.names
    assert np.array_equal(again.fields["level"], table.fields["level"], equal_nan=True)
    assert again.box_sizes is table.box_sizes


def test_detections_come_back():
    for strings in (False, True):
        ids = (["b", "a"], ["y", "x"]) if strings else ([20, 10], [2, 1])
        table = detmap.Detections.from_arrays(
            image_ids=ids[0], category_ids=ids[1], boxes=[[0, 1, 2, 3], [4, 5, 6, 7]], scores=[0.5, 0.25]
        )
        made = table.to_arrow().to_pydict()
        names = ["image", "category"] if strings else ["image_id", "category_id"]
        assert made == {names[0]: ids[0], names[1]: ids[1], "score": [0.5, 0.25], "bbox": [[0, 1, 2, 3], [4, 5, 6, 7]]}
        for again in (detmap.Detections.from_arrow(table.to_arrow()), detmap.Detections.from_frame(table.to_frame())):
            assert again.scores.tolist() == [0.5, 0.25]
            assert again.images.ids[again.images.codes].tolist() == ids[0]
            assert again.categories.ids[again.categories.codes].tolist() == ids[1]
    spans = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], segments=[[0, 1]], scores=[0.5])
    for again in (detmap.Detections.from_arrow(spans.to_arrow()), detmap.Detections.from_frame(spans.to_frame())):
        assert again.notices["unread_shapes"] == 1


def test_notes_of_shapes_that_are_left_out():
    """Whatever stands in the metadata is a number of at most the rows, or none."""
    from detmap.data import frames

    table = pa.table({"a": [1, 2]})
    for value, count in (("1", 1), ("5", 2), ("9" * 18, 2), ("9" * 19, 0), ("-1", 0), ("x", 0), ("²", 0), ("", 0)):
        noted = table.replace_schema_metadata({frames._SHAPES_LEFT_OUT: value})
        assert frames._left_out(None, noted) == count
        frame = pd.DataFrame()
        frame.attrs[frames._SHAPES_LEFT_OUT] = value
        assert frames._left_out(frame, table) == count
    assert frames._left_out(None, table) == 0


FOUND = {
    "image_id": [1, 2], "category_id": [1, 1], "score": [0.5, 0.4], "x": [0, 0], "y": [0, 0], "width": [1, 1],
    "height": [2, 2]
}  # fmt: skip
TITLES = ", ".join(FOUND)


def without(*names, **more):
    return {**{name: column for name, column in FOUND.items() if name not in names}, **more}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (without("score"), "d: field 'score': there is no column for scores; it has: image_id, category_id, x, y, width, "
         "height. Name what they hold: columns={'score': '…'}"),
        (without("image_id"), "d: field 'image_id': there is no column for images; it has: category_id, score, x, y, width, "
         "height. Name what they hold: columns={'image_id': '…'}"),
        (without("category_id"), "d: field 'category_id': there is no column for categories; it has: image_id, score, x, y, "
         "width, height. Name what they hold: columns={'category_id': '…'}"),
        (without("x"),
         "d: field 'bbox': there is no column for boxes: bbox (a list of x, y, width, height), or x1, y1, x2, y2"
         ", or such; it has: image_id, category_id, score, y, width, height. Name what they hold: columns={'bbox': '…'}"),
        (without(bbox=[[0, 0, 1, 1]] * 2), "d: has boxes in 2 ways: bbox and x, y, width, height; leave out columns of the "
         "others"),
        (without(x1=[0, 0], y1=[0, 0], x2=[1, 1], y2=[1, 1]),
         "d: has boxes in 2 ways: x1, y1, x2, y2 and x, y, width, height"
         "; leave out columns of the others"),
        (without(x=["a", "b"]), "d: field 'x': must be numbers"),
        (without("x", bbox=[[0, 0, 1]] * 2), "d: record 0, field 'bbox': has 3 numbers where 4 are expected"),
        (without("x", bbox=[[0, 0, 1, 1], None]), "d: record 1, field 'bbox': is missing"),
        (without("x", bbox=[[0, 0, 1, 1], [0, 0, None, 1]]), "d: field 'bbox': must be lists of four numbers"),
        (without("x", bbox=[["a"] * 4] * 2), "d: field 'bbox': must be lists of four numbers"),
        (without("x", bbox=["a", "b"]), "d: field 'bbox': must be lists of four numbers (got 'string')"),
        (without(image_id=[1, None]), "d: record 1, field 'image_id': is missing; leave out the record"),
        (without(image_id=["a", ""]),
         "d: field 'image_id': an id must have 1 to 256 characters, none of them null (got '')"),
        (without(image_id=["a", "b\0"]), "d: field 'image_id': an id must have 1 to 256 characters, none of them null (got "
         "'b\\x00')"),
        (without(image_id=[True, False]), "d: field 'image_id': ids must be integers or strings (got 'bool')"),
        (without(Score=[1, 1]), "d: has two columns for score (got 'Score'); name one: columns={...}"),
    ],
    ids=map(str, range(17)),
)  # fmt: skip
def test_columns_that_are_refused(data, says):
    assert said(detmap.Detections.from_arrow, data, source="d") == says
    assert len(detmap.Detections.from_arrow(FOUND)) == 2


def test_ids_of_the_longest_length():
    for length, good in ((256, True), (257, False)):
        data = without(image_id=["a", "x" * length])
        if good:
            assert detmap.Detections.from_arrow(data).images.ids.tolist() == ["a", "x" * length]
        else:
            assert "an id must have 1 to 256 characters" in said(detmap.Detections.from_arrow, data)


def test_columns_that_the_caller_names():
    data = without("score", p=[0.9, 0.8])
    assert detmap.Detections.from_arrow(data, columns={"score": "p"}).scores.tolist() == [0.9, 0.8]
    assert detmap.Detections.from_arrow({**FOUND, "p": [0.9, 0.8]}, columns={"score": "p"}).scores.tolist() == [
        0.9,
        0.8,
    ]
    assert said(detmap.Detections.from_arrow, data, columns={"score": "q"}, source="d") == (
        "d: has no column 'q'; it has: image_id, category_id, x, y, width, height, p"
    )
    assert said(detmap.Detections.from_arrow, data, columns={"nothing": "p"}).startswith(
        "a column cannot be 'nothing'; one of: "
    )
    assert detmap.Detections.from_arrow(FOUND, box_format="cxcywh").boxes.tolist() == [[-0.5, -1, 1, 2]] * 2
    more = {**FOUND, **{f"c{n}": [0, 0] for n in range(30)}}
    del more["score"]
    assert said(detmap.Detections.from_arrow, more).count(", c") == 15


def rows(**change):
    made = {"image_id": [1, 1, 2], "category_id": [5, 6, None], "bbox": [[0, 0, 1, 1], [1, 1, 2, 2], None], **change}
    return pa.table({name: column for name, column in made.items() if column is not None})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"area": [1.0, 2.0, 3.0]},
         "t: record 2, field 'category_id': is missing; give the category, or leave area empty too: "
         "then the row is an image without objects"),
        ({"category": ["a", "b", "c"]}, "t: record 2, field 'category_id': is missing; give the category, or leave category "
         "empty too: then the row is an image without objects"),
        ({"image_width": [5, 5, 6.5], "image_height": [1, 1, 1]},
         "t: field 'image_width': must be one whole number for each "
         "image"),
        ({"image_width": [5, 6, 7], "image_height": [1, 1, 1]}, "t: field 'image_width': must be one whole number for each "
         "image"),
        ({"image_width": [5, 5, 10**7], "image_height": [1, 1, 1]}, "t: field 'image_width': must be one whole number for "
         "each image"),
        ({"image_width": [5, 5, -1], "image_height": [1, 1, 1]}, "t: field 'image_width': must be one whole number for each "
         "image"),
        ({"image_width": ["a", "b", "c"], "image_height": [1, 1, 1]}, "t: field 'image_width': must be one whole number for "
         "each image"),
        ({"image": ["a", "b", "c"]}, "t: has two names: 'a' and 'b' (got 1)"),
        ({"IsGroupOf": ["1", "x", None]}, "t: record 1, field 'group_of': must be 1 or true, 0 or false, or "
         "-1 where it is not known (got 'x')"),
    ],
    ids=map(str, range(9)),
)  # fmt: skip
def test_ground_truth_that_is_refused(change, says):
    assert said(detmap.GroundTruth.from_arrow, rows(**change), source="t") == says


def test_ground_truth_with_what_a_row_may_lack():
    table = detmap.GroundTruth.from_arrow(
        rows(image_width=[5, 5, None], image_height=[None, None, 10**7 - 1], image=["a", None, "c"], other=[1, None, None],
             flag=[True, False, None], text=["x", "y", None], IsGroupOf=["-1", "TRUE", None], crowd=[0, 1, None])
    )  # fmt: skip
    assert table.images.ids.tolist() == [1, 2]
    assert table.images.sizes.tolist() == [[0, 5], [10**7 - 1, 0]]
    assert table.images.names == ("a", "c")
    assert np.array_equal(table.fields["other"], [1, np.nan], equal_nan=True)
    assert table.fields["flag"].tolist() == [1, 0]
    assert sorted(table.fields) == ["flag", "other"]
    assert table.group_of.tolist() == [False, True]
    assert table.crowd.tolist() == [False, True]
    unknown = detmap.GroundTruth.from_arrow(rows(image_width=pa.nulls(3), image_height=[1, 1, 1]))
    assert unknown.images.sizes.tolist() == [[1, 0], [1, 0]]


# -------------------------------------------------------------------------------------------------------------- types


def coded(values, run_ends=(1, 3)):
    return pa.RunEndEncodedArray.from_arrays(pa.array(run_ends, pa.int32()), pa.array(values))


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array(["a", None], pa.string_view()), ["a", None]),
        (coded(["a", "b"]), ["a", "b", "b"]),
        (pa.array([[1, 2], None, []], pa.list_view(pa.int64())), [[1, 2], None, []]),
        (pa.array([[1, 2], None, [3]], pa.large_list_view(pa.int64()))[1:], [None, [3]]),
        (pa.array([Decimal("1"), None, Decimal("-2")], pa.decimal128(20, 2)), [1, None, -2]),
        (pa.array([Decimal("1.5"), None], pa.decimal128(20, 2)), [1.5, None]),
        (pa.array([Decimal(2**63 - 1)], pa.decimal128(30, 0)), [2**63 - 1]),
        (pa.array([Decimal(2**63)], pa.decimal128(30, 0)), [2.0**63]),
        (pa.array([1, 2]), [1, 2]),
    ],
    ids=map(str, range(10)),
)
def test_types_of_arrow_are_made_plain(column, wanted, chunked):
    given = pa.chunked_array([column]) if chunked else column
    made = arrow_columns.plain(given)
    assert made.to_pylist() == wanted
    assert isinstance(made, pa.ChunkedArray) is chunked
    assert [type(one) for one in made.to_pylist()] == [type(one) for one in wanted]


def test_columns_of_lists():
    def listed(values, kind=None):
        chunks = [pa.array(values[:1], kind), pa.array(values[1:], kind)]
        return arrow_columns.listed(pa.chunked_array(chunks), "f", "s")

    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2)):
        assert listed([[1, 2], [3, 4], [5, 6]], kind).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert listed([1.5, 2.5]).tolist() == [1.5, 2.5]
    assert listed(["a", "b"]).tolist() == ["a", "b"]
    assert arrow_columns.listed(pa.chunked_array([pa.array([], pa.list_(pa.int64()))]), "f", "s").shape == (0, 0)
    assert said(listed, [[1, 2], [3]], pa.list_(pa.int64())) == (
        "s: record 1, field 'f': has 1 values where others have 2; fill up places with -1"
    )
    assert said(listed, [1, None], pa.int64()) == "s: record 1, field 'f': is missing"
    assert said(listed, [[1], [None]], pa.list_(pa.int64())) == "s: field 'f': a value is missing"
    assert arrow_columns.ids_of(pa.chunked_array([pa.nulls(0)]), "f", "s").tolist() == []
    made = arrow_columns.ids_of(pa.chunked_array([pa.array(["b"]), pa.array(["a", "b"])]), "f", "s")
    assert (made.values.tolist(), made.codes.tolist()) == (["b", "a"], [0, 1, 0])
    text = said(arrow_columns.ids_of, pa.chunked_array([pa.array([datetime.date(2020, 1, 1)])]), "f", "s")
    assert text == "s: field 'f': ids must be integers or strings (got 'date32[day]')"
