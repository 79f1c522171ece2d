"""Either side of what each decision that is a number, or holds numbers, may be."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest

from detmap.choices import UNLIMITED
from detmap.detection import preparation
from detmap.detection.protocols import COCO
from detmap.errors import OptionError
from detmap.panoptic.rules import Rules
from detmap.retrieval import Convention

_CAP = "{} must be a positive integer or None"
_DECIMALS = "decimals must be an integer from 0 to 15 or None"
_RANGES = "class_ranges must be a positive distance for each class"
_POINTS = "points must be the first point and the one behind the last, or None"

#: By decision the values at the ends of what it may be, and those that are refused, with what is said.
LIMITS = {
    "min_score": (
        [None, 0.0, -1e300, 1],
        [(value, "min_score must be a finite number or None") for value in (math.inf, math.nan, "a")],
    ),
    "max_per_image": (
        [None, 1, np.int64(3), 2**31 - 1],
        [(value, _CAP.format("max_per_image")) for value in (0, -1, 2**31, 1.0, True)],
    ),
    "max_per_category": (
        [None, 1, 2**31 - 1],
        [(value, _CAP.format("max_per_category")) for value in (0, 2**31, 1.5)],
    ),
    "box_offset": (
        [0, 1e6, -1e6],
        [(value, "box_offset must be a number of pixels") for value in (1e6 + 1, -1e6 - 1, math.nan, math.inf)],
    ),
    "box_decimals": ([None, 0, 15, np.int64(2)], [(value, _DECIMALS) for value in (-1, 16, 1.0, True)]),
    "score_decimals": ([None, 0, 15], [(value, _DECIMALS) for value in (-1, 16, 2.0)]),
    "points": (
        [None, (0, 1), (17, 23), (0, 2**31 - 1), [np.int64(3), 4]],
        [(value, _POINTS) for value in ((-1, 2), (1, 1), (2, 1), (0, 2**31), (1, 2, 3), (1,), (0, 1.0))],
    ),
    "class_thresholds": (
        [(), (("car", 0.0), ("van", 1.0))],
        [
            ((("car", -0.01),), "class_thresholds must be from 0 to 1, not -0.01"),
            ((("car", 1.01),), "class_thresholds must be from 0 to 1, not 1.01"),
            ((("car", math.nan),), "class_thresholds must be from 0 to 1, not nan"),
            ((("car", 0.5), ("Car", 0.7)), "class_thresholds name a class twice"),
        ],
    ),
    "class_ranges": (
        [(), (("car", 1e-9),), (("car", 50.0), ("van", 50.0))],
        [(value, _RANGES) for value in ((("car", 0.0),), (("car", 5.0), ("van", -1.0)), (("car", 5.0), ("car", 6.0)))],
    ),
    "error_threshold": (
        [None, 1e-9, 1e9],
        [(value, "error_threshold must be a positive number or None") for value in (0.0, -1.0, math.inf, math.nan)],
    ),
    "crowd_groups": (
        [(), (("few", 0.5),), (("few", 0.1), ("many", 0.5))],
        [
            ((("few", math.inf),), "crowd_groups must be names with crowd indices that ascend"),
            ((("few", 0.5), ("many", 0.5)), "crowd_groups must be names with crowd indices that ascend"),
            ((("few", 0.5), ("many", 0.1)), "crowd_groups must be names with crowd indices that ascend"),
            ((("few", 0.1), ("few", 0.5)), "groups of images must have names of their own"),
            ((("", 0.1),), "groups of images must have names of their own"),
            ((("100", 0.1),), "groups of images must have names of their own"),
        ],
    ),
    "iou_thresholds": (
        [(0.5,), (0.0, 1.0), (0.75, 0.5)],
        [
            ((), "iou_thresholds must be one or more finite numbers"),
            ((0.5, math.nan), "iou_thresholds must be one or more finite numbers"),
            ((0.5, 0.5), "iou_thresholds repeat a value"),
        ],
    ),
    "recall_thresholds": (
        [(0.5,), (0.5, 0.5)],
        [((), "recall_thresholds must be one or more finite numbers"), ((math.inf,), "recall_thresholds must be")],
    ),
    "max_dets": (
        [(1,), (1, UNLIMITED), (1, 10, 100)],
        [
            ((), "max_dets must be positive integers up to"),
            ((0, 1), "max_dets must be positive integers up to"),
            ((UNLIMITED + 1,), "max_dets must be positive integers up to"),
            ((1.0,), "max_dets must be positive integers up to"),
            ((1, 1), "max_dets must ascend without repeats"),
            ((10, 1), "max_dets must ascend without repeats"),
        ],
    ),
    "dilation": ([1e-9, 5], [(value, "dilation must be a positive number") for value in (0.0, -0.02, math.inf)]),
    "epsilon": ([0.0, -1.0, 1e-16], [(math.nan, "epsilon must be a finite number"), (math.inf, "epsilon must be")]),
    "area_ranges": (
        [(("all", 0, 0),), (("all", 0, 1e10), ("tiny", 5, 5)), (("all", 0, 9), ("wide", 0, 9, "width"))],
        [
            ((), "at least one area range is needed"),
            ((("all", 1, 0),), "area range 'all' must be low:high with low <= high, not 1.0:0.0"),
            ((("all", math.nan, 1),), "area range 'all' must be low:high with low <= high"),
            ((("", 0, 1),), "an area range cannot be called ''"),
            ((("all", 0, 9), ("7", 0, 1)), "an area range cannot be called '7'"),
            ((("all", 0, 9), ("all", 0, 1)), "two area ranges have one name"),
            ((("all", 0, 9, "width"),), "the first area range must hold all objects, in square pixels, and 'all' is of"),
        ],
    ),
    "levels": (
        [(), (("hard", "occlusion>1"),), (("a", "height>=9,height<=9"), ("b", "height>9"), ("c", "height<9"))],
        [
            ((("", "occlusion>1"),), "a level cannot be called ''"),
            ((("3", "occlusion>1"),), "a level cannot be called '3'"),
            ((("a", "height>9,height<=9"),), "level 'a' is empty: no height can be height>9,height<=9"),
            ((("a", "height>9"), ("a", "height>8")), "two levels have one name"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("decision", LIMITS)
def test_values_at_the_ends_are_taken(decision):
    for value in LIMITS[decision][0]:
        dataclasses.replace(COCO, **{decision: value})


@pytest.mark.parametrize(
    ("decision", "value", "says"),
    [(decision, *refused) for decision, (_, every) in LIMITS.items() for refused in every],
    ids=lambda value: str(value)[:40],
)
def test_values_beyond_the_ends_are_refused(decision, value, says):
    with pytest.raises(OptionError, match=re.escape(says)) as error:
        dataclasses.replace(COCO, **{decision: value})
    assert "\n" not in str(error.value)


def test_decisions_of_rankings_and_segments():
    for digits in (None, 0, 4):
        assert Convention("mine", digits=digits).digits == digits
    for digits in (-1, 4.0, True):
        with pytest.raises(OptionError, match="digits must be an integer or None, not "):
            Convention("mine", digits=digits)
    for parts in (1, np.int64(7)):
        assert Rules(parts=parts).parts == parts
    for parts in (0, -1, 1.0, True):
        with pytest.raises(OptionError, match="parts must be an integer of at least 1"):
            Rules(parts=parts)


@pytest.mark.parametrize(("cap", "beyond"), [(0, [1, 2, 3, 4]), (1, [3, 4]), (2, [])])
def test_detections_that_a_cap_of_an_image_leaves_out_count_towards_no_other_cap(cap, beyond):
    """The best of group 0 is not counted; of equal scores in group 1 the first is best."""
    groups, scores = np.array([0, 0, 1, 1, 0], np.int32), np.array([0.9, 0.5, 0.4, 0.4, 0.1])
    counted = np.array([False, True, True, True, True])
    assert np.flatnonzero(preparation.beyond_cap(cap, groups, scores, counted)).tolist() == beyond
