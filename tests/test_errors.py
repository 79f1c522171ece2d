"""Messages of errors: counts, shortened values, places, suggestions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import detmap
from detmap import errors
from detmap.errors import InputError, MissingDependencyError, OptionError, UnknownMetricError


def said(call, *given, **more):
    with pytest.raises(detmap.DetmapError) as caught:
        call(*given, **more)
    return str(caught.value)


def test_counts():
    assert errors.many(1, "image") == "1 image"
    assert errors.many(0, "image") == "0 images"
    assert errors.many(2482, "detection of a class") == "2,482 detections of a class"
    assert errors.many(2, "category") == "2 categories"
    assert [errors.many(n, "query") for n in (1, 2)] == ["1 query", "2 queries"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"), (5, "5"), (None, "None"), (b"a\xff", "'a\ufffd'"), ("a\nb", "'a\\nb'"), ("ä", "'ä'"),
        ([1] * 8, "[1, 1, 1, 1, 1, 1, 1, 1]"), ([1] * 9, "list of 9 items"), ((1,) * 9, "tuple of 9 items"),
        (dict.fromkeys(range(8), 0), "{0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0}"),
        (dict.fromkeys(range(9), 0), "object with 9 fields"), ("\ud800", "'\\ud800'"), (["ä"], "['\\xe4']"),
        ("x" * 58, f"'{'x' * 58}'"), ("x" * 59, f"'{'x' * 58}…"), ("x" * 1000, f"'{'x' * 58}…"),
        (b"x" * 58, f"'{'x' * 58}'"), (b"x" * 59, f"'{'x' * 58}…"), (10**400, "1" + "0" * 58 + "…"),
    ],
)  # fmt: skip
def test_values_are_shown_shortened(value, text):
    assert errors.shorten(value) == text


def test_widths_and_values_that_cannot_be_shown():
    assert errors.shorten("abcdef", 5) == "'abc…"
    assert errors.shorten("abc", 5) == "'abc'"
    nested = []
    for _ in range(100_000):
        nested = [nested]
    assert errors.shorten(nested) == "<list>"
    assert errors.shorten(10**5000) == "<int>"


def test_the_place_of_an_input_error():
    every = InputError("is odd", source="f", record=3, field="x", value=[1], remedy="mend it")
    assert str(every) == "f: record 3, field 'x': is odd (got [1]); mend it"
    assert str(every.elsewhere("g", "line 7")) == "g: line 7, field 'x': is odd (got [1]); mend it"
    assert str(every.elsewhere("g", None)) == "g: field 'x': is odd (got [1]); mend it"
    assert str(InputError("is odd")) == "is odd"
    assert str(InputError("is odd", record="a\nb")) == "a\\nb: is odd"
    assert str(InputError("is odd", record=0, value=None)) == "record 0: is odd (got None)"
    assert str(InputError("is odd", field="")) == "field '': is odd"
    assert str(InputError("is odd", source="x" * 300)) == f"{'x' * 198}: is odd"
    assert (every.problem, every.source, every.record, every.field, every.remedy) == ("is odd", "f", 3, "x", "mend it")


def test_errors_are_relocated_by_their_record():
    def raised(record):
        with errors.relocated(lambda number: (f"f{number}", f"line {number + 1}")):
            raise InputError("is odd", source="s", record=record)

    assert said(raised, 4) == "f4: line 5: is odd"
    assert said(raised, "named") == "s: named: is odd"
    assert said(raised, None) == "s: is odd"


@pytest.mark.parametrize(
    ("word", "known", "near"),
    [
        ("AP05", ["AP", "AP50", "AP75"], "AP50"), ("ap", ["AR", "AP50", "AP75"], "AP50"),
        ("precisoin", ["precision"], "precision"),
        ("zzz", ["AP"], None), ("", ["AP"], None), ("ab", ["abc", "abd"], "abc"), ("AB", ["abd", "abc"], "abd"),
        ("coco", ["voc", "COCO", "coco"], "COCO"), ("mask", ["segm", "masks", "task"], "masks"), ("a", [], None),
        ("abcd", ["abdc", "abce"], "abdc"), ("abcdefghij", ["abcdefxyzw"], None),
        ("abcdefghij", ["abcdefgxyz"], "abcdefgxyz"),
    ],
)  # fmt: skip
def test_suggestions(word, known, near):
    assert errors.most_similar(word, known) == near
    assert errors.did_you_mean(word, known) == ("" if near is None else f"; did you mean {near!r}?")
    assert errors.most_similar(word, iter(known)) == near


def test_lists_of_known_words():
    assert errors.one_of("AP05", ["AP", "AP50"]) == "; did you mean 'AP50'? one of: AP, AP50"
    assert errors.one_of("zzz", ["AP", "AP50"]) == "; one of: AP, AP50"
    assert errors.one_of("zzz", ["AP", "AP50"], "AP") == "; did you mean 'AP'? one of: AP, AP50"
    assert errors.one_of("AP05", ["AP", "AP50"], "other") == "; did you mean 'AP50'? one of: AP, AP50"
    assert errors.one_of("zzz", []) == ""
    assert said(errors.check_choice, "rule", "zz", ["a", "b"]) == "unknown rule 'zz'; one of: a, b"
    errors.check_choice("rule", "a", ["a", "b"])
    assert said(errors.check_allowed, "ties", "las", ["last", "first"]) == (
        "ties must be one of last, first, not 'las'; did you mean 'last'?"
    )
    assert said(errors.check_allowed, "ties", 1.0, [1, 2]) == "ties must be one of 1, 2, not 1.0"
    assert said(errors.check_allowed, "ties", ["a"], ["a"]).startswith("ties must be one of a, not ['a']")
    for good in (1, None, "a"):
        errors.check_allowed("ties", good, [1, None, "a"])


@pytest.mark.parametrize(("count", "more"), [(0, None), (1, ""), (20, ""), (21, " and 1 more"), (25, " and 5 more")])
def test_a_metric_that_is_not_there(count, more):
    known = [f"m{n}" for n in range(count)]
    error = UnknownMetricError("zzz", known)
    listed = ", ".join(known[:20])
    assert str(error) == f"no metric 'zzz'; there are: {listed}{more or ''}"
    assert str(UnknownMetricError("zzz", known, "try it")) == f"{error}; try it"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert isinstance(error, KeyError)
    near = UnknownMetricError("AP05", ["AP50"], "try it")
    assert str(near) == "no metric 'AP05'; did you mean 'AP50'? there are: AP50; try it"
    assert str(pickle.loads(pickle.dumps(near))) == str(near)


@pytest.mark.parametrize(
    ("value", "integer", "identity"),
    [(1, True, True), (np.int8(1), True, True), (np.uint64(1), True, True), (True, False, False),
    (np.True_, False, False), (1.0, False, False), ("1", False, True), (np.str_("a"), False, True),
    (None, False, False), (b"a", False, False)],
)  # fmt: skip
def test_integers_and_ids(value, integer, identity):
    assert errors.is_integer(value) is integer
    assert errors.is_id(value) is identity
    if integer:
        errors.check_integer("n", value, 1)
        assert said(errors.check_integer, "n", value, 2) == f"n must be an integer of at least 2, not {value!r}"
    else:
        with pytest.raises(OptionError, match=r"^n must be an integer of at least 0, not "):
            errors.check_integer("n", value, 0)


def test_packages_that_are_missing():
    plain = MissingDependencyError("torch", None, "this")
    assert str(plain) == "this needs torch: pip install torch"
    for error in (plain, MissingDependencyError("pillow", "images", "that")):
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), type(again)) == (str(error), MissingDependencyError)
    assert str(MissingDependencyError("pillow", "images", "that")).startswith("that needs pillow: pip install ")
