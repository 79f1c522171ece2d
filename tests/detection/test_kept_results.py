"""All that results say under every protocol is the text that is kept."""

from __future__ import annotations

import pytest
from kept import Kept, said
from kept_scenes import PROTOCOLS, tables

import detmap

#: Figures have 12 digits, because poses and angles differ in the last bits between processors.
KEPT = Kept("results", digits=12)


def whole(result):
    """All that a result says, but arrays of curves."""
    return {
        "repr": repr(result),
        "metrics": dict(result),
        "per_category": result.per_category,
        "summary": result.summary(),
        "class_summary": said(result.class_summary(), 12),
        "rows": said(result.rows(), 12),
        "notices": result.described_notices(),
        "flat": said(result.to_flat("val/", categories=True), 12),
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
        "precision": said(result.precision),
        "recall": said(result.recall),
        "scores": said(result.scores),
    }


for _name in PROTOCOLS:
    KEPT.add(_name, of_protocol, _name)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
