"""What metrics cover, other spellings of them, and other names of classes are the text that is kept."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kept import Kept, said
from kept_scenes import PROTOCOLS, tables

import detmap
from detmap.detection.metric_names import distinct_names, find_metric, metric_table, scope
from detmap.detection.protocols import resolve
from detmap.detection.ranges import conditions_of, parse_area_ranges, parse_levels

KEPT = Kept("names")

CATEGORIES = ((3, "car"), (5, "small"), (9, "car"), (12, ""))
ENDINGS = """
50 _75 @0.5 @.5 @0.50 @[.5:.95] 50-95 @0.5:0.05:0.95 @[0.5:0.75] @0.6 @1 @10 @100 _300 @500 100 s _small _m l
_tiny 50_small 100_small _easy @0.7 @2.0 0.5 5 _easy_x
"""
SPELLINGS = [
    f"{mean}{kind}{rest}" for mean in ("", "m", "mean ") for kind in ("AP", "ar") for rest in ("", *ENDINGS.split())
]


def names(name):
    protocol = PROTOCOLS[name]
    table = metric_table(protocol, CATEGORIES)
    found = {one: find_metric(one, protocol, table) for one in SPELLINGS}
    return {
        "table": [said(row) for row in table][:40],
        "scopes": [scope(row, protocol) for _, row in table][:40],
        "found": said({one: metric for one, metric in found.items() if metric is not None}),
    }


for _name in PROTOCOLS:
    KEPT.add(_name, names, _name)
CAPPED = resolve(
    "coco",
    max_dets=(7, 700),
    iou_thresholds=(0.3, 0.4, 0.6),
    area_ranges={
        "all": (0, 1e10),
        "low": ("height", 0, 60),
        "half": (0, "2.5%"),
        "four": (1, 25),
        "large": (30, 1e10),
    },
)


def scopes(protocol):
    table = metric_table(protocol, CATEGORIES)
    return {
        "scopes": {name: scope(row, protocol) for name, row in table},
        "found": said({one: find_metric(one, protocol, table) for one in SPELLINGS}),
    }


KEPT.add("ranges of all kinds", scopes, CAPPED)
KEPT.add("one ranking of groups", scopes, resolve("lvis", pooled=True, groups=("r", "f")))
for _taken in itertools.product((("1", "a"), ("2", "a")), (("3", "a_1"), ("1", "b")), (("4", "a_1_1"), ("4", "a"))):
    KEPT.add(f"distinct {_taken}", lambda pairs: distinct_names((("1", "a"), *pairs)), _taken)

RANGES = """
tiny:0:9 tiny:9:0 tiny:9 tiny :0:9 all:0:9 low:height:0:60 low:width:1:2 low:depth:1:2 share:0:2% share:1%:2%
share:1:2% big:9:inf big:9:1e10 nan:nan:2 -:-1:5 low:height:0:2% 1:0:9 a:b:c:d:e
"""
for _text in RANGES.split():
    KEPT.add(f"range {_text}", lambda text: range_of(text), _text)


def range_of(text):
    try:
        ranges = parse_area_ranges([text])
    except ValueError as error:  # with detmap's words
        return {"OptionError": str(error)}
    return resolve("coco", area_ranges=ranges).describe()


LEVELS = """
tall:height>=9,iscrowd=0 tall:height>9 tall:height<=9 tall:height=9 tall:height tall: :height>1 tall:height>a
tall:object.height>1 tall:detection.height<2% tall:detection.occlusion>1 tall:area>1%,area<=2% tall:area<nan
tall:difficult=true tall:difficult=no tall:difficult=maybe all:height>1 small:height>1 tall:height>1,height<1
tall:width>=2.5e1 tall:occlusion=1%
"""


VALUES = np.array([np.nan, 0.0, 0.5, 1.0, 2.0, 9.0, 25.0])


def level(text):
    try:
        protocol = resolve("coco", levels=parse_levels([text]))
    except ValueError as error:
        return str(error)
    name = protocol.levels[-1][0]
    made = conditions_of(protocol.levels[-1][1], name)
    return {
        "says": protocol.describe(),
        "conditions": [said(one) for one in made],
        "measures": [one.measures for one in made],
        "text": [str(one) for one in made],
        "holds": [said(one.holds(VALUES)) for one in made],
    }


for _text in LEVELS.split():
    KEPT.add(f"level {_text}", level, _text)


def selected(**options):
    truth, (one, _) = tables("coco")
    result = detmap.evaluate(truth, one, **options)
    return {"metrics": said(dict(result)), "classes": said(result.per_category), "images": said(result.tally.image_ids)}


for _options in (
    {"image_ids": [1, 2, 3]}, {"image_ids": [3]}, {"image_ids": []}, {"category_ids": [2, 1]}, {"category_ids": [99]},
    {"labels": [2]}, {"image_ids": ["1"]}, {"category_ids": [1, 1]}, {"image_ids": [99]}, {"image_ids": 3},
):  # fmt: skip
    KEPT.add(f"selected {_options}", lambda options: selected(**options), _options)


def of_result(function):
    truth, (one, _) = tables("coco")
    try:
        return said(function(detmap.evaluate(truth, one)))
    except (AttributeError, KeyError) as error:  # said by detmap, as Python does
        return f"{type(error).__name__}: {error}"


for _name, _function in {
    "AP50": lambda one: (one.AP50, one.mAP, one["AP_small"]),
    "map_50": lambda one: one.map_50,
    "summarize": lambda one: one.summarize,
    "other": lambda one: one.other,
    "class": lambda one: one["class-1"],
    "no metric": lambda one: one["AP51"],
    "curve": lambda one: one.curve(1).precision,
    "curve of a name": lambda one: one.curve("class-2", 0.75).recall,
    "curve of none": lambda one: one.curve("class-9"),
    "curve at none": lambda one: one.curve(1, 0.51),
    "mean_precision": lambda one: (one.mean_precision(), one.mean_precision(0.5)),
    "class_precision": lambda one: (one.class_precision(), one.class_precision(0.75)),
    "counts at none": lambda one: one.counts(0.3),
    "average_precision": lambda one: one.average_precision,
}.items():
    KEPT.add(f"of a result: {_name}", of_result, _function)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
