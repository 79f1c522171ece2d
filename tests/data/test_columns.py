"""What is taken for a column of numbers, flags or ids, and what is not: in tables, and in the evaluator."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import fake_cupy
import numpy as np
import pandas as pd
import pytest
from support import assert_same_result

import detmap
from detmap.columns import flags, identifiers, numbers
from detmap.errors import InputError

masked = np.ma.array
OBJECTS = {"image_ids": [1, 1, 2], "category_ids": [1, 2, 1], "boxes": [[0, 0, 9, 9]] * 3}


class Tensor:
    """What matters of a tensor: it has to be detached and fetched before numpy can read it."""

    def __init__(self, values, there=True):
        self.values, self.there, self.dtype = np.asarray(values), there, "tensor"

    def detach(self):
        return self

    def cpu(self):
        return Tensor(self.values, there=False)

    def __array__(self, dtype=None, copy=None):
        if self.there:
            raise TypeError("on a device")
        return self.values


class Capsule:
    """An array that numpy reads through DLPack only."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


NUMBERS = [
    ([1, 2.5], [1.0, 2.5]),
    (np.array([1, 2], np.uint8), [1.0, 2.0]),
    (np.array([1.5], np.float16), [1.5]),
    (np.array([1.5], np.longdouble), [1.5]),
    (masked([1.0, 2.0], mask=[0, 0]), [1.0, 2.0]),
    ([masked([1.0, 2.0]), masked([3.0, 4.0])], [[1.0, 2.0], [3.0, 4.0]]),
    (np.array([1, 2.5, Decimal("3"), Fraction(1, 2), np.int8(4)], object), [1.0, 2.5, 3.0, 0.5, 4.0]),
    (pd.Series([1, 2], dtype="Int64"), [1.0, 2.0]),
    (Tensor([1.5, 2]), [1.5, 2.0]),
    (Capsule([1.5, 2]), [1.5, 2.0]),
    (fake_cupy.asarray(np.array([1.5, 2])), [1.5, 2.0]),
    ([float("nan"), float("inf")], [float("nan"), float("inf")]),
    ([2**53, -(2**53)], [2.0**53, -(2.0**53)]),
    ([], []),
]
NO_NUMBERS = [
    ([True, False], "record 0, field 'x': expected numbers, not booleans (got True); "),
    ([1j, 2], "record 0, field 'x': expected numbers, not complex numbers (got 1j); "),
    (["0.5"], "record 0, field 'x': expected numbers, not strings (got '0.5'); "),
    (np.array(["2020-01-01"], "M8[D]"), "expected numbers, not dates (got "),
    (np.array([1], "m8[s]"), "expected numbers, not time spans (got "),
    (np.array([(1, 2)], "i4,i4"), "expected numbers, not records (got (1, 2)); "),
    (masked([1.0, 2.0, 3.0], mask=[0, 1, 1]), "record 1, field 'x': is masked, one of 2 such values (got masked); "),
    (masked([[1, 2], [3, 4]], mask=[[0, 0], [0, 1]]), "record 1, field 'x': is masked, one of 1 such values"),
    ([1.0, np.ma.masked], "record 1, field 'x': is masked"),
    ([masked([1.0]), masked([2.0], mask=[1])], "record 1, field 'x': is masked"),
    (masked(3.0, mask=True), "field 'x': is masked; "),
    (np.array([1, None], object), "record 1, field 'x': is missing (got None); "),
    (np.array([[1, 2], [3, "4"]], object), "record 1, field 'x': is not a number (got '4'); "),
    (np.array([1, True], object), "record 1, field 'x': is not a number (got True); "),
    (np.array([1j], object), "record 0, field 'x': is not a number (got 1j); "),
    ([1, 2**70], "record 1, field 'x': is not a number (got 1180591620717411303424); "),
    ([10**400], "record 0, field 'x': is not a number (got "),
    ([0, 2**53 + 1], "record 1, field 'x': an integer beyond 2**53 is not told from its neighbours (got "),
    (np.array(2**60), "an integer beyond 2**53 is not told from its neighbours (got "),
    (np.array([0, 2**63], np.uint64), "record 1, field 'x': an integer beyond 2**53"),
    ([[1], [1, 2]], "field 'x': expected numbers in a regular array"),
    (None, "field 'x': expected a column, not NoneType"),
    ({1}, "field 'x': expected a column, not set"),
]
FLAGS = [
    ([True, False], [True, False]),
    ([0, 1], [False, True]),
    ([0.0, 1.0, -0.0], [False, True, False]),
    (np.array([0, True, 1.0, np.bool_(False)], object), [False, True, True, False]),
    (np.array([0, 1], np.uint8), [False, True]),
    (masked([True, False]), [True, False]),
    (pd.Series([True, False], dtype="boolean"), [True, False]),
    ([], []),
]
NO_FLAGS = [
    ([0, float("nan")], "record 1, field 'x': is neither 0 nor 1 (got nan); write False and True, or 0 and 1"),
    (["0"], "record 0, field 'x': expected booleans, not strings (got '0'); "),
    (["False"], "record 0, field 'x': expected booleans, not strings (got 'False'); "),
    (np.array(["0"], object), "record 0, field 'x': is neither 0 nor 1 (got '0'); "),
    ([0, 2], "record 1, field 'x': is neither 0 nor 1 (got 2); "),
    ([-1], "record 0, field 'x': is neither 0 nor 1 (got -1); "),
    ([0.5], "record 0, field 'x': is neither 0 nor 1 (got 0.5); "),
    (np.array(2), "record 0, field 'x': is neither 0 nor 1 (got 2); "),
    (np.array([0, 1, 255], np.uint8), "record 2, field 'x': is neither 0 nor 1 (got 255); "),
    (np.array([False, None]), "record 1, field 'x': is missing (got None); "),
    (pd.Series([True, None], dtype="boolean"), "record 1, field 'x': is missing (got <NA>); "),
    (masked([True, False], mask=[0, 1]), "record 1, field 'x': is masked"),
    (np.array([0j]), "expected booleans, not complex numbers (got 0j); "),
    (np.array([0], "M8[s]"), "expected booleans, not dates (got "),
    ([[True], [True, False]], "field 'x': expected flags in a regular array"),
]
IDS = [
    ([3, 1], [3, 1]),
    (["b", "a"], ["b", "a"]),
    (["b", np.str_("a")], ["b", "a"]),
    ([b"b", b"\xc3\xa4"], ["b", "ä"]),
    (np.array(["b", "a"], "S2"), ["b", "a"]),
    (np.array(["b", "a"], np.dtypes.StringDType()), ["b", "a"]),
    ([3.0, -1.0], [3, -1]),
    ([3, 1.0], [3, 1]),
    (np.array([3, 1], np.float32), [3, 1]),
    (np.array([3, 1.0, np.uint8(7)], object), [3, 1, 7]),
    (np.array(["b", "a"], object), ["b", "a"]),
    (pd.Series(["b", "a"]), ["b", "a"]),
    (pd.Series(["b", "a"], dtype=object), ["b", "a"]),
    (pd.Series(["b", "a"], dtype="string"), ["b", "a"]),
    (pd.Series(["b", "a"], dtype="category"), ["b", "a"]),
    (pd.Series([3, 1], dtype="category"), [3, 1]),
    (pd.Series([3, 1], dtype="Int64"), [3, 1]),
    (pd.Series([3.0, 1.0]), [3, 1]),
    (masked(["b", "a"]), ["b", "a"]),
    (Tensor([3, 1]), [3, 1]),
    (range(2), [0, 1]),
    ([2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
    ([], []),
]
NO_IDS = [
    ([1, "a"], "record 1, field 'x': ids must be all integers or all strings (got 'a'); "),
    (["a", 1], "record 1, field 'x': ids must be all integers or all strings (got 1); "),
    ([1, np.str_("a")], "record 1, field 'x': ids must be all integers or all strings (got 'a'); "),
    ([b"a", "a"], "record 1, field 'x': ids must be all integers or all strings (got 'a'); "),
    ([1.0, "a"], "record 1, field 'x': ids must be all integers or all strings (got 'a'); "),
    ([True, False], "record 0, field 'x': ids must be integers or strings, not booleans (got True); "),
    ([1, True], "record 1, field 'x': is neither an integer nor a string (got True); "),
    (np.array([object()]), "record 0, field 'x': is neither an integer nor a string (got <"),
    ([1j], "record 0, field 'x': ids must be integers or strings, not complex numbers (got 1j); "),
    (np.array([1], "M8[s]"), "ids must be integers or strings, not dates (got "),
    ([1.0, 2.5], "record 1, field 'x': is not an integer (got 2.5); "),
    ([1.0, float("inf")], "record 1, field 'x': is not an integer (got inf); "),
    ([1.0, float("nan")], "record 1, field 'x': is missing (got nan); "),
    (np.array([1, 2.5], object), "record 1, field 'x': is not an integer (got 2.5); "),
    (np.array([1, float("nan")], object), "record 1, field 'x': is missing (got nan); "),
    ([1, None], "record 1, field 'x': is missing (got None); "),
    (["a", None], "record 1, field 'x': is missing (got None); "),
    (pd.Series(["a", None]), "record 1, field 'x': is missing (got "),
    (pd.Series(["a", None], dtype="string"), "record 1, field 'x': is missing (got <NA>); "),
    (pd.Series(["a", None], dtype="category"), "record 1, field 'x': is missing (got nan); "),
    (pd.Series([1, None], dtype="Int64"), "record 1, field 'x': is missing (got "),
    (np.array(["a", None], np.dtypes.StringDType(na_object=None)), "record 1, field 'x': is missing (got None); "),
    (masked([1, 2], mask=[0, 1]), "record 1, field 'x': is masked"),
    ([1, 2**63], "record 1, field 'x': an id "),
    ([2**63], "record 0, field 'x': an id is beyond 64 bits (got 9223372036854775808)"),
    (np.array([1, 2**63], object), "record 1, field 'x': an id is beyond 64 bits (got 9223372036854775808)"),
    ([2**53 + 1, 1.0], "record 0, field 'x': an id from 2**53 on must not be a float"),
    (["a", "b\0"], "record 1, field 'x': an id holds a null character (got 'b\\x00')"),
    ([b"a\0b"], "record 0, field 'x': an id holds a null character"),
    (np.array(["a\0b"], object), "record 0, field 'x': an id holds a null character"),
    ([b"\xff"], "record 0, field 'x': an id is not UTF-8 (got "),
    ([[1], [2]], "field 'x': ids must be a flat sequence, all integers or all strings; "),
    ([[1], [2, 3]], "field 'x': ids must be a flat sequence, all integers or all strings"),
    (5, "field 'x': ids must be a flat sequence, all integers or all strings; "),
    (None, "field 'x': ids must be a flat sequence, all integers or all strings; "),
]


def check(read, values, expected, dtype):
    column = read(values, source="s", field="x")
    assert column.dtype.kind == np.dtype(dtype).kind or not column.size
    np.testing.assert_array_equal(column, np.array(expected, dtype))


@pytest.mark.parametrize(("values", "expected"), NUMBERS)
def test_what_numbers_may_be(values, expected):
    check(numbers, values, expected, np.float64)


@pytest.mark.parametrize(("values", "expected"), FLAGS)
def test_what_flags_may_be(values, expected):
    check(flags, values, expected, np.bool_)


@pytest.mark.parametrize(("values", "expected"), IDS)
def test_what_ids_may_be(values, expected):
    column = identifiers(values, source="s", field="x")
    assert column.dtype == np.int64 or column.dtype.kind == "U"
    assert column.tolist() == expected


@pytest.mark.parametrize(
    ("read", "values", "says"),
    [(read, *row) for read, rows in ((numbers, NO_NUMBERS), (flags, NO_FLAGS), (identifiers, NO_IDS)) for row in rows],
)
def test_everything_else_is_one_line_that_says_where_and_what(read, values, says):
    with pytest.raises(InputError) as caught:
        read(values, source="s", field="x")
    assert str(caught.value).startswith("s: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_column_of_one_record_counts_within_the_field():
    with pytest.raises(InputError, match=r"^s: image 3, field 'x\[1\]': is neither 0 nor 1 \(got 7\)"):
        flags([0, 7], source="s", field="x", record="image 3")


def test_booleans_are_numbers_where_that_is_meant():
    assert numbers([True, False], booleans=True, dtype=np.float32).tolist() == [1.0, 0.0]


def truth(**columns):
    return detmap.GroundTruth.from_arrays(**{**OBJECTS, **columns})


def found(**columns):
    return detmap.Detections.from_arrays(**{**OBJECTS, "scores": [0.5, 0.4, 0.3], **columns})


BAD = [
    (table, {name: bad})
    for bad in (
        masked([0.0, 1.0, 1.0], mask=[0, 1, 0]),
        np.array([0j, 0j, 0j]),
        np.array([0, 1, 1], "M8[s]"),
        np.array([0, 1, 1], "m8[s]"),
        ["0", "1", "1"],
        np.array([0, "1", 1], object),
        np.array([0, None, 1], object),
    )
    for table, names in ((truth, ("areas", "crowd", "difficult")), (found, ("scores",)))
    for name in names
] + [
    (table, {name: masked([1, 2, 2], mask=[0, 1, 0])})
    for table in (truth, found)
    for name in ("image_ids", "category_ids")
]


@pytest.mark.parametrize(("table", "columns"), BAD)
def test_no_table_takes_what_only_looks_like_a_column(table, columns):
    with pytest.raises(InputError) as caught:
        table(**columns)
    assert caught.value.record in (0, 1)


@pytest.mark.parametrize("table", [truth, found])
def test_a_mask_within_a_box_names_the_record(table):
    with pytest.raises(InputError, match=r"record 2, field 'boxes': is masked"):
        table(boxes=masked([[0, 0, 9, 9]] * 3, mask=[[0] * 4, [0] * 4, [0, 1, 0, 0]]))


@pytest.mark.parametrize("flag", ["crowd", "difficult"])
@pytest.mark.parametrize("bad", [[0, float("nan"), 0], ["0", "False", "0"], [0, 2, 1], [0.5, 0, 0]])
def test_flags_of_objects_are_not_guessed(flag, bad):
    with pytest.raises(InputError, match=f"field '{flag}'"):
        truth(**{flag: bad})


def test_a_table_does_not_change_with_the_array_it_was_made_of():
    crowd, scores = np.array([True, False, False]), masked([0.5, 0.4, 0.3])
    table, dets = truth(crowd=crowd), found(scores=scores)
    crowd[:], scores[:] = False, 0.0
    assert table.crowd.tolist() == [True, False, False]
    assert dets.scores.tolist() == [0.5, 0.4, 0.3]


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series(["x", "x", "y"]),
        pd.Series(["x", "x", "y"], dtype="category"),
        np.array(["x", "x", "y"], object),
        [b"x", b"x", b"y"],
    ],
)
def test_ids_of_a_frame_give_the_result_of_a_list(ids):
    expected = detmap.evaluate(truth(image_ids=["x", "x", "y"]), found(image_ids=["x", "x", "y"]))
    assert_same_result(detmap.evaluate(truth(image_ids=ids), found(image_ids=["x", "x", "y"])), expected)
    assert truth(image_ids=ids).images.values.tolist() == ["x", "y"]


def test_ids_that_pandas_made_floats_are_integers_again():
    table = truth(image_ids=np.array([7.0, 7.0, 2.0]), category_ids=np.array([3, 3, 1], object))
    assert (table.images.values.tolist(), table.categories.values.tolist()) == ([2, 7], [1, 3])
    assert (table.images.values.dtype, table.categories.values.dtype) == (np.int64, np.int64)


PREDICTION = {"boxes": [[0.0, 0, 9, 9]], "scores": [0.5], "labels": [1]}
TARGET = {"boxes": [[0.0, 0, 9, 9]], "labels": [1]}
BAD_IMAGES = [
    ({"scores": masked([0.5], mask=[1])}, {}, r"predictions: image 0, field 'scores\[0\]': is masked"),
    ({"scores": np.array([1j])}, {}, r"field 'scores\[0\]': expected numbers, not complex"),
    ({"scores": np.array([1], "M8[s]")}, {}, r"field 'scores\[0\]': expected numbers, not dates"),
    ({"scores": [True]}, {}, r"field 'scores\[0\]': expected numbers, not booleans"),
    ({"scores": [float("nan")]}, {}, r"field 'scores\[0\]': a score must be a number \(got nan\); "),
    ({"boxes": masked([[0, 0, 9, 9]], mask=[[0, 0, 0, 1]])}, {}, r"field 'boxes\[0\]': is masked"),
    ({"labels": masked([1], mask=[1])}, {}, r"field 'labels\[0\]': is masked"),
    ({"labels": [1.5]}, {}, r"field 'labels\[0\]': is not an integer \(got 1.5\)"),
    ({}, {"iscrowd": [float("nan")]}, r"targets: image 0, field 'iscrowd\[0\]': is neither 0 nor 1 \(got nan\)"),
    ({}, {"iscrowd": ["False"]}, r"field 'iscrowd\[0\]': expected booleans, not strings"),
    ({}, {"difficult": [2]}, r"field 'difficult\[0\]': is neither 0 nor 1 \(got 2\)"),
    ({}, {"difficult": masked([0], mask=[1])}, r"field 'difficult\[0\]': is masked"),
    ({}, {"area": [-1.0]}, r"field 'area\[0\]': an area must be a finite number of 0 or more \(got -1.0\); "),
    ({}, {"area": masked([1.0], mask=[1])}, r"field 'area\[0\]': is masked"),
]


@pytest.mark.parametrize(("prediction", "target", "says"), BAD_IMAGES)
def test_an_evaluator_takes_no_other_columns_than_a_table(prediction, target, says):
    evaluator = detmap.Evaluator()
    with pytest.raises(InputError, match=says):
        evaluator.update([{**PREDICTION, **prediction}], [{**TARGET, **target}])
    assert len(evaluator) == 0


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(np.array([7.0, 2.0]), [7, 2]), (pd.Series(["b", "a"]), ["b", "a"]), (np.array([b"b", b"a"]), ["b", "a"])],
)
def test_image_ids_of_an_evaluator_are_taken_for_what_they_say(ids, expected):
    evaluator = detmap.Evaluator()
    evaluator.update([PREDICTION, PREDICTION], [TARGET, TARGET], image_ids=ids)
    assert evaluator.compute().tally.image_ids.tolist() == sorted(expected)


def test_image_ids_of_an_evaluator_that_are_missing():
    with pytest.raises(InputError, match=r"record 1, field 'image_ids': is missing \(got nan\)"):
        detmap.Evaluator().update([PREDICTION] * 2, [TARGET] * 2, image_ids=[7.0, float("nan")])


@pytest.mark.parametrize("read", [np.asarray, Tensor, Capsule])
def test_an_evaluator_keeps_a_copy_of_what_others_go_on_to_fill(read):
    columns = {"boxes": np.array([[0.0, 0, 9, 9]]), "scores": np.array([0.5]), "labels": np.array([1])}
    evaluator = detmap.Evaluator()
    evaluator.update([{name: read(column) for name, column in columns.items()}], [TARGET])
    for column in columns.values():
        column[:] = 0
    assert evaluator.compute()["AP"] == pytest.approx(1.0)
