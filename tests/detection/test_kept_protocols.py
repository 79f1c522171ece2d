"""What protocols decide is the text that is kept."""

from __future__ import annotations

import pytest
from kept import Kept, said
from kept_scenes import PROTOCOLS

from detmap import decisions
from detmap.detection.protocols import PRESETS

KEPT = Kept("protocols")


def decided(name):
    """What a protocol decides otherwise than COCO, in words, and in values."""
    plain = [row["value"] for row in decisions.rows(PRESETS["coco"])]
    rows = [row for row, value in zip(decisions.rows(PROTOCOLS[name]), plain, strict=True) if row["value"] != value]
    return {row["decision"]: row["value"] for row in rows} | {"values": said(PROTOCOLS[name].to_dict())}


for _name in PROTOCOLS:
    KEPT.add(_name, decided, _name)
KEPT.add("decisions", decisions.rows, PRESETS["coco"])


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
