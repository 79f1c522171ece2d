"""Text is a number only as it is written everywhere: Python reads 1_000, and the digits of every script, too."""

from __future__ import annotations

import numpy as np
import pytest

import detmap
from detmap.batch import Splits
from detmap.choices import decimal, parse_caps, parse_number, parse_thresholds, whole
from detmap.detection.ranges import parse_area_ranges
from detmap.errors import DetmapError, InputError
from detmap.formats.ranking_tables import other_layout

ODD = ["1_0", "\u0661\u0660", "\uff11\uff10", "1_0.5", "", "ten"]


@pytest.mark.parametrize("text", ODD)
def test_what_is_no_number(text, tmp_path):
    for given in (text, text.encode()):
        with pytest.raises(ValueError):  # noqa: PT011 - each caller has words of its own
            decimal(given)
        with pytest.raises(ValueError):  # noqa: PT011
            whole(given)
    for parse, said in (
        (parse_number, text),
        (parse_caps, f"1,{text}"),
        (lambda one: parse_area_ranges([one]), f"a:0:{text}"),
    ):
        with pytest.raises(ValueError, match="must be"):
            parse(said)
    for said in (text, f"0.5,{text}", f"0.5:{text}:0.1"):
        with pytest.raises(DetmapError, match="thresholds must be"):
            parse_thresholds(said)
    path = tmp_path / "run.csv"
    path.write_text(f"query_id,doc_id,score\nq,d,{text}\n", encoding="utf-8")
    with pytest.raises(InputError, match="a score must be a number"):
        other_layout(path, "run")
    path = tmp_path / "found.csv"
    path.write_text(f"image_id,category_id,x,y,width,height,score\n1,1,0,0,5,5,{text}\n", encoding="utf-8")
    with pytest.raises(InputError, match="field 'score'"):
        detmap.read(path, "detections")


def test_what_is_a_number():
    for text, value in (("1.5", 1.5), ("-2e3", -2000.0), ("+.5", 0.5), (b"7", 7.0)):
        assert decimal(text) == value
    assert (whole("007"), whole(b"-3")) == (7, -3)
    with pytest.raises(ValueError, match="invalid literal"):
        whole("1.0")


@pytest.mark.parametrize("image", ["0_1", "+1", " 1", "1 ", "\u0661", "1.0", "1e0", 1.0, True, None, "9" * 25])
def test_an_image_of_a_split_is_an_integer(image):
    truth = detmap.GroundTruth.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 5, 5]])
    with pytest.raises(InputError, match="is not an image of the ground truth"):
        Splits.read({image: "public"}, truth)
    for given in (1, "1", "001", np.int64(1)):
        assert Splits.read({given: "public"}, truth).names == ("public",)
