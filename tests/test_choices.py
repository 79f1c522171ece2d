"""Values of decisions: text that is parsed, values that are refused, and how both are described."""

from __future__ import annotations

import math

import numpy as np
import pytest

from detmap import choices
from detmap.errors import OptionError

THRESHOLDS = [
    (0.5, (0.5,)),
    (1, (1.0,)),
    (np.float32(0.5), (0.5,)),
    (np.int8(1), (1.0,)),
    ([0.5, 0.75], (0.5, 0.75)),
    (np.array([0.5, 0.75]), (0.5, 0.75)),
    (np.ma.array([0.5, 0.75], mask=[0, 0]), (0.5, 0.75)),
    ("0.5", (0.5,)),
    ("0.75, 0.5", (0.75, 0.5)),
    ("0.5:0.5:0.05", (0.5,)),
    ("0.5:0.6:0.1", (0.5, 0.6)),
    ("0:1:0.25", (0.0, 0.25, 0.5, 0.75, 1.0)),
    ("1:0:-0.5", (1.0, 0.5, 0.0)),
    ("-1:1:1", (-1.0, 0.0, 1.0)),
    ("0.5:0.95:0.05", tuple(np.linspace(0.5, 0.95, 10).tolist())),
    ("0:9999:1", tuple(map(float, range(10_000)))),
]
NOT_WHOLE = ["0:10000:1", "0.5:0.95:0.1", "0:1:-1", "0:1:0.3333333", "1:0:1", "0:-1:1", "0:1.0000000012:1"]
NO_THRESHOLDS = ["0:1:0", "a", "0.5:b:0.1", "0.5,", "0:1", "0:1:0.5:2", "1_0", "٣", "0:inf:1", "nan:1:1"]


@pytest.mark.parametrize(("given", "expected"), THRESHOLDS)
def test_thresholds(given, expected):
    assert choices.parse_thresholds(given) == expected


@pytest.mark.parametrize("given", NOT_WHOLE)
def test_a_range_reaches_its_stop_in_whole_steps(given):
    with pytest.raises(OptionError) as caught:
        choices.parse_thresholds(given)
    assert str(caught.value) == f"{given!r} does not reach its stop in whole steps"


@pytest.mark.parametrize("given", NO_THRESHOLDS)
def test_what_is_no_range_and_no_list(given):
    with pytest.raises(OptionError) as caught:
        choices.parse_thresholds(given)
    assert str(caught.value) == f"thresholds must be start:stop:step or a,b,c, not {given!r}"


def test_masked_thresholds():
    with pytest.raises(OptionError, match=r"^thresholds must not be masked$"):
        choices.parse_thresholds(np.ma.array([0.5, 0.75], mask=[0, 1]))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        (" -2.5e1 ", -25.0),
        (b"0.5", 0.5),
        ("inf", math.inf),
        ("1_0", None),
        (b"1_0", None),
        ("٣", None),
        ("", None),
        ("x", None),
        (b"\xb2", None),
    ],
)
def test_numbers_in_text(text, value):
    assert choices.is_decimal(text) is (value is not None)
    if value is None:
        with pytest.raises(ValueError, match=r".*"):
            choices.decimal(text)
    else:
        assert choices.decimal(text) == value


def test_integers_in_text():
    assert [choices.whole(text) for text in ("3", " -4 ", b"5")] == [3, -4, 5]
    for text in ("1_0", "1.5", "٣", "x"):
        with pytest.raises(ValueError, match=r".*"):
            choices.whole(text)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, True),
        (1.5, True),
        (np.int8(1), True),
        (np.float16(1), True),
        (True, False),
        (np.True_, False),
        ("1", False),
        (None, False),
        (1j, False),
    ],
)
def test_numbers_and_other_values(value, number):
    assert choices.is_number(value) is number
    made = choices.plain_number(value)
    if number:
        assert (type(made), made) == (float, float(value))
    else:
        assert made is value


def test_pairs():
    assert choices.plain_pairs(float, {"a": 1, 2: 3}) == (("a", 1.0), ("2", 3.0))
    assert choices.plain_pairs(float, [("a", 1), (2, 3)]) == (("a", 1.0), ("2", 3.0))
    assert choices.parse_pairs(float, ":", "NAME:NUMBER", "none") == ()
    assert choices.parse_pairs(float, ":", "NAME:NUMBER", " a : 1,b:c:2 ") == (("a", 1.0), ("b:c", 2.0))
    for text in ("a", ":1", "a:", "a:1,", "a:x", " :1", "a: "):
        with pytest.raises(ValueError, match=r".*") as caught:
            choices.parse_pairs(float, ":", "NAME:NUMBER", text)
        assert str(caught.value) == f"must be NAME:NUMBER, not {text!r}"


def test_caps():
    assert choices.parse_caps("1,10, 100") == [1, 10, 100]
    with pytest.raises(ValueError, match=r"^must be integers with commas between, not '1,x'$"):
        choices.parse_caps("1,x")
    for given in (7, np.int16(7), [7], np.array([7]), (np.uint8(7),)):
        made = choices.plain_caps(given)
        assert (made, list(map(type, made))) == ((7,), [int])
    odd = choices.plain_caps([1.5, "2", np.int8(3), None, True])
    assert list(map(type, odd)) == [float, str, int, type(None), bool]
    assert odd == (1.5, "2", 3, None, True)
    most = 2**31 - 1
    for good in ((1,), (1, 10, 100), (most,)):
        assert choices.wrong_caps(good) is None
    for bad in ((), (0,), (most + 1,), (1.0,), (True,), (1, "2")):
        assert choices.wrong_caps(bad) == f"max_dets must be positive integers up to {most}, not {list(bad)!r}"
    for bad in ((2, 1), (1, 1)):
        assert choices.wrong_caps(bad) == "max_dets must ascend without repeats"
    assert choices.say_caps((1, most)) == "1/no cap"


def test_a_number_and_names():
    assert choices.parse_number(" 0.25") == 0.25
    with pytest.raises(ValueError, match=r"^must be a number, not 'x'$"):
        choices.parse_number("x")
    assert choices.parse_names("none") == ()
    assert choices.parse_names("a, b c ") == ("a", "b c")


def test_thresholds_that_are_refused():
    assert choices.wrong_thresholds("iou_thresholds", (0.5, 0.75)) is None
    assert choices.wrong_thresholds("recall_thresholds", (0.5, 0.5)) is None
    assert choices.wrong_thresholds("iou_thresholds", (0.5, 0.5)) == "iou_thresholds repeat a value"
    for bad in ((), (math.inf,), (0.5, math.nan)):
        says = f"recall_thresholds must be one or more finite numbers, not {bad!r}"
        assert choices.wrong_thresholds("recall_thresholds", bad) == says


def test_epsilons_and_dilations():
    assert choices.wrong_epsilon(0.0) is None
    assert choices.wrong_epsilon(math.inf) == "epsilon must be a finite number, not inf"
    assert choices.wrong_dilation(5e-324) is None
    assert choices.wrong_dilation(0.02) is None
    for bad in (0.0, -0.5, math.inf, math.nan, 1, None, "0.02"):
        assert choices.wrong_dilation(bad) == f"dilation must be a positive number, not {bad!r}"


SIGMAS = [
    (None, None),
    ([0.5, 1], (0.5, 1.0)),
    (np.array([0.5, 1.0]), (0.5, 1.0)),
    (["0.5"], (0.5,)),
    ({"car": [0.5, 1], 2: [3]}, (("car", (0.5, 1.0)), ("2", (3.0,)))),
    ([["car", [0.5]], ("bus", (1,))], (("car", (0.5,)), ("bus", (1.0,)))),
    ((("car", (0.5,)),), (("car", (0.5,)),)),
]


@pytest.mark.parametrize(("given", "expected"), SIGMAS)
def test_sigmas(given, expected):
    assert choices.plain_sigmas(given) == expected


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([], "[]"),
        ({}, "{}"),
        ([0.0], "[0.0]"),
        ([-1.0], "[-1.0]"),
        ([0.5, math.inf], "[0.5, inf]"),
        ([0.5, "x"], "[0.5, 'x']"),
        (5, "5"),
        ({"car": []}, "{'car': []}"),
        ({"a": [1], "b": []}, "{'a': [1], 'b': []}"),
        ({"car": [1, 0]}, "{'car': [1, 0]}"),
        ({"car": 5}, "{'car': 5}"),
        ([["car"]], "[['car']]"),
    ],
)
def test_sigmas_that_are_refused(given, shown):
    with pytest.raises(OptionError) as caught:
        choices.plain_sigmas(given)
    assert str(caught.value) == f"sigmas must be positive numbers, or those of each category, not {shown}"


def test_sigmas_of_a_file():
    assert choices.parse_sigmas([0.5]) == [0.5]
    assert choices.parse_sigmas({"car": [0.5]}) == {"car": [0.5]}
    with pytest.raises(ValueError, match=r"^must be a list of numbers, or an object of them by category$"):
        choices.parse_sigmas(0.5)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.5,), "0.5"),
        ((0.5, 0.75), "0.5/0.75"),
        ((0.5, 0.75, 1.0), "0.5:1:0.25"),
        ((0.5, 0.6, 0.8), "0.5/0.6/0.8"),
        (tuple(np.linspace(0.5, 0.95, 10).tolist()), "0.5:0.95:0.05"),
        (tuple(np.linspace(0.5, 0.95, 10).astype(np.float32).tolist()), "0.5:0.95:0.05 in single precision"),
        ((0.0, 1.0, 2.0000005), "0:2:1 in single precision"),
        ((0.0, 1.0, 2.00002), "0/1/2.00002"),
        ((0.0, 1.0, 2.0000012), "0/1/2"),
        ((0.0, 1.0, 2.0000000012), "0:2:1 in single precision"),
        ((0.0, 1.0, 2.0000000008), "0:2:1"),
    ],
)
def test_how_thresholds_are_described(values, text):
    assert choices.say_thresholds(values) == text


def test_how_flags_are_described():
    assert choices.say_flags(()) == "none"
    assert choices.say_flags(("crowd", "difficult")) == "crowd/difficult"
