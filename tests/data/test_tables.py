"""Tables: what they hold, and data that is refused with its record, field, value and remedy."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_result, examples

import detmap
from detmap.data.ids import index_ids, locate, select
from detmap.data.notices import NOTICES, describe
from detmap.errors import InputError, OptionError, shorten
from detmap.installation import install_command

OBJECTS = {"image_ids": [7, 3, 7], "category_ids": [1, 2, 1], "boxes": [[0, 0, 10, 20], [5, 5, 1, 1], [2, 2, 4, 4]]}
FOUND = {**OBJECTS, "scores": [0.9, 0.5, 0.1]}


def truth(**changes):
    return detmap.GroundTruth.from_arrays(**{**OBJECTS, **changes})


def found(**changes):
    return detmap.Detections.from_arrays(**{**FOUND, **changes})


def test_columns():
    table = truth(crowd=[True, False, False], categories=[5, 2, 1], category_names={2: "dog"}, images=[3, 9, 7])
    assert table.images.values.tolist() == [3, 7, 9]
    assert table.images.codes.tolist() == [1, 0, 1]
    assert table.categories.values.tolist() == [1, 2, 5]
    assert table.category_names == ("1", "dog", "5")
    assert table.areas.tolist() == [200.0, 1.0, 16.0]
    assert table.crowd.tolist() == [True, False, False]
    assert table.difficult.tolist() == [False] * 3
    assert len(table) == 3
    assert "3 objects, 3 images, 3 categories" in repr(table)
    other = found()
    assert other.scores.tolist() == [0.9, 0.5, 0.1]
    assert len(other) == 3
    assert "3 on 2 images" in repr(other)


SIZES = {"images": [9, 3, 7], "image_sizes": [[90, 91], [30, 31], [0, 0]]}


def test_images_and_categories_are_tables():
    """Ids ascend whatever order they are given in, and sizes and names go with them."""
    table = truth(**SIZES, categories=[5, 2, 1], category_names={2: "dog"})
    assert table.images.ids.tolist() == [3, 7, 9]
    assert table.images.sizes.tolist() == [[30, 31], [0, 0], [90, 91]]
    assert (table.images.heights.tolist(), table.images.widths.tolist()) == ([30, 0, 90], [31, 0, 91])
    assert table.categories.ids.tolist() == [1, 2, 5]
    assert table.categories.names == ("1", "dog", "5")
    assert table.images.ids[table.images.codes].tolist() == OBJECTS["image_ids"]
    assert table.categories.ids[table.categories.codes].tolist() == OBJECTS["category_ids"]
    assert repr(table.images) == "<Images: 3, of 3 records>"
    bare = truth().images
    assert (bare.sizes, bare.heights, bare.widths) == (None, None, None)


def test_older_names_stand_for_the_columns_of_the_tables():
    table, other = truth(**SIZES), found()
    assert table.images.values is table.images.ids
    assert table.categories.values is table.categories.ids
    assert table.category_names is table.categories.names
    assert table.image_sizes is table.images.sizes
    assert other.images.values is other.images.ids


def test_a_part_of_the_objects_keeps_all_images_and_categories_and_a_part_of_the_detections_those_in_use():
    table, other = truth(**SIZES).take([1]), found().take(np.array([True, False, True]))
    assert table.images.ids.tolist() == [3, 7, 9]
    assert table.images.sizes.tolist() == [[30, 31], [0, 0], [90, 91]]
    assert (table.images.codes.tolist(), table.categories.codes.tolist()) == ([0], [1])
    assert (other.images.ids.tolist(), other.images.codes.tolist()) == ([7], [0, 0])
    assert (other.categories.ids.tolist(), other.categories.codes.tolist()) == ([1], [0, 0])


def test_the_tables_of_one_ground_truth_may_be_given_to_another():
    table = truth(**SIZES, categories=[5, 2, 1])
    again = truth(
        image_ids=table.images, category_ids=table.categories, images=table.images, categories=table.categories
    )
    assert again.images.ids.tolist() == table.images.ids.tolist()
    assert again.categories.codes.tolist() == table.categories.codes.tolist()


def test_columns_stay_read_only_in_another_process():
    table = pickle.loads(pickle.dumps(truth(**SIZES)))
    assert table.categories.names == ("1", "2")
    for column in (table.images.ids, table.images.codes, table.images.sizes, table.categories.codes, table.boxes):
        assert not column.flags.writeable


def test_columns_are_read_only_and_the_givers_arrays_are_not():
    scores = np.array([0.9, 0.5, 0.1])
    table = found(scores=scores)
    for column in (table.scores, table.boxes, table.images.values, table.images.codes):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
    assert scores.flags.writeable
    with pytest.raises(AttributeError):
        table.scores = scores


def test_one_dtype_per_column():
    table = found(scores=np.float32([1, 2, 3]), boxes=np.int16(OBJECTS["boxes"]), image_ids=np.uint8([7, 3, 7]))
    assert (table.scores.dtype, table.boxes.dtype) == (np.float64, np.float64)
    assert (table.images.values.dtype, table.images.codes.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize("box_format", ["xywh", "xyxy", "cxcywh"])
def test_formats_of_boxes(box_format):
    boxes = np.array([[4.0, 6.0, 10.0, 20.0], [0.0, 0.0, 2.0, 2.0]])
    given = {
        "xywh": boxes,
        "xyxy": np.column_stack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]),
        "cxcywh": np.column_stack([boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:]]),
    }
    ids = {"image_ids": [1, 1], "category_ids": [1, 1]}
    expected = detmap.evaluate(
        detmap.GroundTruth.from_arrays(**ids, boxes=boxes),
        detmap.Detections.from_arrays(**ids, boxes=boxes, scores=[0.5, 0.7]),
    )
    assert expected["AP"] == pytest.approx(1.0)
    table = detmap.GroundTruth.from_arrays(**ids, boxes=given[box_format], box_format=box_format)
    assert table.areas.tolist() == [200.0, 4.0]
    dets = detmap.Detections.from_arrays(**ids, boxes=given[box_format], box_format=box_format, scores=[0.5, 0.7])
    assert_same_result(detmap.evaluate(table, dets), expected)


BAD_BOXES = [
    ([1, 2, 3], "boxes", None),
    ([[1, 2, 3]] * 3, "boxes", "shape (3, 3) where 3 x 4 was expected"),
    (
        [[0, 0, 1, 1], [0, 0, 1, math.nan], [0, 0, 1, 1]],
        "bbox",
        "record 1, field 'bbox': a box must be four finite numbers",
    ),
    (
        [[0, 0, 1, 1], [0, 0, 1, 1], [math.inf, 0, 1, 1]],
        "bbox",
        "record 2, field 'bbox': a box must be four finite numbers",
    ),
    (
        [[0, 0, 1, 1], [0, 0, -1, 1], [0, 0, 1, 1]],
        "bbox",
        "record 1, field 'bbox': width and height must not be negative",
    ),
    ([["a", 0, 1, 1]] * 3, "boxes", "expected numbers, not strings"),
    ([[0, 0, 1, 1], [0, 0, 1], [0, 0, 1, 1]], "boxes", "expected numbers in a regular array"),
]


@pytest.mark.parametrize(("boxes", "field", "says"), BAD_BOXES)
@pytest.mark.parametrize("table", [truth, found])
def test_boxes_that_cannot_be(table, boxes, field, says):
    with pytest.raises(InputError) as caught:
        table(boxes=boxes)
    error = caught.value
    assert error.field == field
    assert error.source == ("ground truth" if table is truth else "detections")
    assert says is None or says in str(error)
    if field == "bbox":
        assert "(got [" in str(error)
        assert error.remedy


def test_a_swapped_corner_names_the_likely_mistake():
    with pytest.raises(InputError, match=r"record 1.*far corner.*\(got \[5.0, 5.0, 1.0, 1.0\]\); .*xywh"):
        truth(box_format="xyxy")
    with pytest.raises(InputError, match=r"; .*xyxy"):
        truth(boxes=[[0, 0, 1, 1], [9, 9, -3, 1], [0, 0, 1, 1]])
    with pytest.raises(OptionError, match=r"box_format must be one of xywh, xyxy, cxcywh, not 'yolo'"):
        truth(box_format="yolo")


def test_a_score_that_is_nan():
    with pytest.raises(InputError) as caught:
        found(scores=[0.5, math.nan, 0.1])
    expected = "detections: record 1, field 'score': a score must be a number (got nan); leave out the record"
    assert str(caught.value).startswith(expected)
    assert found(scores=[math.inf, -math.inf, 0]).scores[0] == math.inf


@pytest.mark.parametrize("area", [-1.0, math.nan, math.inf])
def test_an_area_that_cannot_be(area):
    with pytest.raises(InputError, match="record 2, field 'area': an area must be a finite number of 0 or more"):
        truth(areas=[1.0, 2.0, area])


@pytest.mark.parametrize("column", ["areas", "crowd", "difficult"])
def test_columns_of_other_lengths(column):
    with pytest.raises(InputError, match=r"shape \(2,\) where 3 was expected"):
        truth(**{column: [1, 0]})


def test_columns_of_other_lengths_in_detections():
    with pytest.raises(InputError, match=r"field 'score': shape \(2,\) where 3 was expected"):
        found(scores=[1, 2])
    with pytest.raises(InputError, match="2 category ids for 3 detections"):
        found(category_ids=[1, 2])
    with pytest.raises(InputError, match="2 category ids for 3 objects"):
        truth(category_ids=[1, 2])


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ([1, 2, None], "record 2, field 'COLUMN': is missing (got None)"),
        ([1.0, 2.5, 3.0], "record 1, field 'COLUMN': is not an integer (got 2.5)"),
        ([[1], [2], [3]], "all integers or all strings"),
        ([b"a", b"b", b"\xff"], "record 2, field 'COLUMN': an id is not UTF-8"),
        ([True, False, True], "record 0, field 'COLUMN': ids must be integers or strings, not booleans (got True)"),
        (5, "all integers or all strings"),
    ],
)
@pytest.mark.parametrize("column", ["image_ids", "category_ids"])
def test_ids_that_cannot_be(ids, says, column):
    with pytest.raises(InputError) as caught:
        truth(**{column: ids})
    assert caught.value.field == column[:-1]
    assert says.replace("COLUMN", column[:-1]) in str(caught.value)
    assert caught.value.remedy


def test_ids_beyond_64_bits():
    with pytest.raises(InputError):
        truth(image_ids=np.array([2**63, 1, 2], np.uint64))
    table = truth(image_ids=[2**63 - 1, -(2**63), 2**63 - 1])
    assert table.images.values.tolist() == [-(2**63), 2**63 - 1]
    assert table.images.codes.tolist() == [1, 0, 1]


def test_an_object_that_is_not_listed():
    with pytest.raises(InputError) as caught:
        truth(images=[7])
    assert str(caught.value).startswith("ground truth: record 1, field 'image_id': is not among the images (got 3); ")
    with pytest.raises(InputError) as caught:
        truth(categories=[1])
    assert str(caught.value).startswith(
        "ground truth: record 1, field 'category_id': is not among the categories (got 2)"
    )


def test_a_detection_on_an_unknown_image():
    with pytest.raises(InputError) as caught:
        detmap.evaluate(truth(), found(image_ids=[7, 3, 8]))
    assert str(caught.value).startswith(
        "detections: record 2, field 'image_id': is not an image of the ground truth (got 8)"
    )
    assert caught.value.remedy


def test_swapped_arguments_are_named():
    with pytest.raises(InputError, match="the arguments are swapped; give the ground truth first"):
        detmap.evaluate(found(), truth())
    with pytest.raises(InputError, match="expected Detections, not set"):
        detmap.evaluate(truth(), {1})
    with pytest.raises(InputError, match="expected GroundTruth, not int"):
        detmap.match(1, found())


def test_selected_ids_that_are_not_there():
    with pytest.raises(InputError, match=r"evaluate: field 'image_ids': is not in the ground truth \(got 99\)"):
        detmap.evaluate(truth(), found(), image_ids=[7, 99])
    with pytest.raises(InputError, match=r"'category_ids': is not in the ground truth \(got 'dog'\)"):
        detmap.evaluate(truth(), found(), category_ids=["dog"])


def test_what_is_unusual_is_counted():
    """And said in words, in the order of the table."""
    result = detmap.evaluate(
        truth(boxes=[[0, 0, 0, 5], [1, 1, 2, 2], [1, 1, 1, 1]], categories=[1, 2, 3]), found(category_ids=[1, 8, 9])
    )
    assert dict(result.notices) == {"zero_sized_boxes": 1, "unknown_category": 2, "empty_categories": 1}
    sentences = describe(result.notices)
    assert [sentence.split()[0] for sentence in sentences] == ["1", "2", "1"]
    assert describe({}) == []
    assert all("{n}" in text or "{names}" in text or code == "no_detections" for code, text in NOTICES.items())


def test_no_detections_is_a_result_with_zeros():
    nothing = detmap.Detections.from_arrays(image_ids=[], category_ids=[], boxes=[], scores=[])
    result = detmap.evaluate(truth(), nothing)
    assert result["AP"] == 0.0
    assert result["AR_100"] == 0.0
    assert result.notices["no_detections"] == 1
    assert detmap.evaluate(truth(), nothing, "voc2007")["mAP"] == 0.0


def test_no_ground_truth_is_undefined():
    nothing = detmap.GroundTruth.from_arrays(image_ids=[], category_ids=[], boxes=[], images=[3, 7], categories=[1, 2])
    result = detmap.evaluate(nothing, found())
    assert all(math.isnan(value) for value in result.values())
    assert '"AP": null' in result.to_json()


keys = st.lists(st.integers(-5, 5)) | st.lists(st.integers(-(2**63), 2**63 - 1)) | st.lists(st.text("ab1", max_size=2))


@settings(max_examples=examples(200))
@given(keys, st.data())
def test_ids_against_plain_python(ids, data):
    found_ids = index_ids(ids, source="x", field="y")
    expected = sorted(set(ids))
    assert found_ids.values.tolist() == expected
    assert [expected[code] for code in found_ids.codes.tolist()] == ids
    within = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
    known = index_ids(within, source="x", field="y").values
    place = locate(found_ids.values, known)
    assert place.tolist() == [sorted(within).index(i) if i in within else -1 for i in expected]
    if ids:
        assert select(within, found_ids.values, "z").tolist() == [i in within for i in expected]


# ------------------------------------------------------------------------------------------------------------- messages


def test_a_message_is_one_line_however_hostile_the_value():
    for value in ("a\nb\x1b[31m", "x" * 10**6, {"a": [1] * 100}, list(range(10**5)), b"\xff\x00", "\ud800"):
        text = str(InputError("bad", source="file\n.json", record=3, field="bbox", value=value, remedy="mend it"))
        assert "\n" not in text
        assert "\x1b" not in text
        assert len(text) < 400
        assert text.encode("utf-8")
        assert text.startswith("file\\n.json: record 3, field 'bbox': bad (got ")
        assert text.endswith("; mend it")


def test_shorten():
    assert shorten("abc") == "'abc'"
    assert shorten([1, 2]) == "[1, 2]"
    assert shorten(list(range(99))) == "list of 99 items"
    assert shorten({i: i for i in range(99)}) == "object with 99 fields"
    assert len(shorten("é" * 500)) <= 60
    nested = []
    for _ in range(100_000):
        nested = [nested]
    assert len(shorten(nested)) <= 60


def test_every_error_is_a_detmap_error():
    for kind in (detmap.InputError, detmap.OptionError, detmap.StateError, detmap.MissingDependencyError):
        assert issubclass(kind, detmap.DetmapError)
    assert issubclass(detmap.InputError, ValueError)
    error = detmap.MissingDependencyError("pandas", "frames", "to_frame()")
    assert isinstance(error, ImportError)
    assert install_command("frames") in str(error)
