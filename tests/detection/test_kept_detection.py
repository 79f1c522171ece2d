"""All that is said of results and matches under every protocol, and under every decision, is the text that is kept."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import test_every_protocol as every
from kept import Kept, said
from support import detections_of, ground_truth_of
from test_decisions import GIVEN
from workloads import make_coco

import detmap
from detmap import decisions
from detmap.detection.protocols import PRESETS, resolve

KEPT = Kept("detection")


@functools.cache
def _files():
    folder = Path(tempfile.mkdtemp())
    return every.made_files(folder)


#: Protocols by name: all that ship, and rules of COCO for the other kinds of shape.
PROTOCOLS = {
    **PRESETS,
    "levels": every.LEVELS,
    **{name: resolve("coco", iou_type=kind, max_dets=(1, 2, 3)) for name, kind in every.KIND_PRESETS.items()},
}


@functools.cache
def read(folder, kind):
    """Ground truth and two models' detections, as files have them."""
    files = _files() / folder
    if folder == "kitti":
        paths = [files / one for one in ("label_2", "one", "two")]
    elif kind in every.DOTA:
        paths = [files / one for one in ("labelTxt", "one", "two")]
    else:
        paths = [files / f"{one}.json" for one in ("truth", "one", "two")]
    fields = ["occlusion"] if kind == "bbox" else []
    truth = detmap.read(paths[0], "ground_truth", image_facts=True, iou_type=kind, fields=fields)
    return truth, [detmap.read(one, ground_truth=truth, iou_type=kind) for one in paths[1:]]


def tables(name):
    protocol = PROTOCOLS[name]
    return read("kitti" if protocol.class_levels else protocol.iou_type, protocol.iou_type)


@functools.cache
def boxes(seed, **options):
    dataset, results = make_coco(seed, **options)[:2]
    return ground_truth_of(dataset), detections_of(results)


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


def columns(made):
    """All columns of matches, and the orders and numbers that follow from them."""
    names = [name for name in type(made).__dataclass_fields__ if name != "protocol"]
    kept = {name: getattr(made, name) for name in names}
    return {**kept, "quality": made.quality(), "tie_keys": made.tie_keys(), "repr": repr(made)}


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


def matched(name):
    protocol = PROTOCOLS[name]
    truth, (one, other) = tables(name)
    made = {}
    for at, (found, iou) in enumerate(((one, protocol.iou_thresholds[0]), (other, protocol.iou_thresholds[-1]))):
        area = protocol.range_names[-at]
        made[f"{iou} {area}"] = columns(detmap.match_pairs(truth, found, protocol, iou=iou, area=area))
    return made


def decided(name):
    """What a protocol decides otherwise than COCO, in words, and in values."""
    plain = [row["value"] for row in decisions.rows(PRESETS["coco"])]
    rows = [row for row, value in zip(decisions.rows(PROTOCOLS[name]), plain, strict=True) if row["value"] != value]
    return {row["decision"]: row["value"] for row in rows} | {"values": said(PROTOCOLS[name].to_dict())}


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


for _name in PROTOCOLS:
    KEPT.add(f"protocol {_name}", of_protocol, _name)
    KEPT.add(f"matches {_name}", matched, _name)
    KEPT.add(f"decisions of {_name}", decided, _name)
KEPT.add("decisions", decisions.rows, PRESETS["coco"])


for _name, (_, _value) in GIVEN.items():
    if _name not in ("iou_type", "sigmas"):
        KEPT.add(f"{_name} {_value}", otherwise, _name, _value)


@pytest.mark.parametrize("name", KEPT.cells)
def test_what_is_kept(name):
    KEPT.holds(name)
