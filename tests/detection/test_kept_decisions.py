"""All that results say where one decision is otherwise is the text that is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kept import Kept, said
from kept_scenes import boxes
from test_decisions import GIVEN

import detmap
from detmap.detection.protocols import PRESETS

KEPT = Kept("decisions")


def otherwise(name, value):
    """Rules of COCO with one decision otherwise, on boxes with crowds, ties and areas at the limits of ranges."""
    protocol = replace(PRESETS["coco"], **{name: value})
    result = detmap.evaluate(*boxes(7), protocol)
    return {
        "says": protocol.describe(),
        "metrics": said(dict(result)),
        "per_category": said(result.per_category),
        "arrays": said([result.precision, result.recall, result.scores]),
        "notices": result.described_notices(),
    }


for _name, (_, _value) in GIVEN.items():
    if _name not in ("iou_type", "sigmas"):
        KEPT.add(f"{_name} {_value}", otherwise, _name, _value)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
