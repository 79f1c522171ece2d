"""All columns of matches under every protocol are the text that is kept."""

from __future__ import annotations

import pytest
from kept import Kept
from kept_scenes import PROTOCOLS, tables

import detmap

#: Figures have 12 digits, because poses and angles differ in the last bits between processors.
KEPT = Kept("matches", digits=12)


def columns(made):
    """All columns of matches, and the orders and numbers that follow from them."""
    names = [name for name in type(made).__dataclass_fields__ if name != "protocol"]
    kept = {name: getattr(made, name) for name in names}
    return {**kept, "quality": made.quality(), "tie_keys": made.tie_keys(), "repr": repr(made)}


def matched(name):
    protocol = PROTOCOLS[name]
    truth, (one, other) = tables(name)
    made = {}
    for at, (found, iou) in enumerate(((one, protocol.iou_thresholds[0]), (other, protocol.iou_thresholds[-1]))):
        area = protocol.range_names[-at]
        made[f"{iou} {area}"] = columns(detmap.match_pairs(truth, found, protocol, iou=iou, area=area))
    return made


for _name in PROTOCOLS:
    KEPT.add(_name, matched, _name)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
