"""All that results say under every protocol is the text that is kept."""

from __future__ import annotations

import pytest
from kept import Kept, said
from kept_scenes import PROTOCOLS, tables

import detmap

KEPT = Kept("results")


def whole(result):
    """All that a result says, but arrays of curves."""
    return {
        "repr": repr(result),
        "metrics": dict(result),
        "per_category": result.per_category,
        "summary": result.summary(),
        "class_summary": said(result.class_summary()),
        "rows": said(result.rows()),
        "notices": result.described_notices(),
        "flat": said(result.to_flat("val/", categories=True)),
        "counts": [
            {"iou": iou, "score": score, "counts": result.counts(iou, score)}
            for iou in (None, result.protocol.iou_thresholds[-1])
            for score in (0.3, 0.5)
        ],
    }


def of_protocol(name):
    truth, (one, _) = tables(name)
    result = detmap.evaluate(truth, one, PROTOCOLS[name])
    return {
        "says": PROTOCOLS[name].describe(),
        "title": PROTOCOLS[name].title,
        **whole(result),
        "precision": result.precision,
        "recall": result.recall,
        "scores": result.scores,
    }


for _name in PROTOCOLS:
    KEPT.add(_name, of_protocol, _name)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
