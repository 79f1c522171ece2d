"""Every decision there is, alone and with only the images that have detections: explanations give what evaluations give."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import test_spans
from support import same_bits
from test_decisions import GIVEN
from test_explain_lean import band, by_row, tables

import detmap
from detmap.detection.matches import match_pairs
from detmap.detection.protocols import PRESETS
from detmap.explanations import incremental, replay

pytestmark = pytest.mark.plugins("spans")

PEOPLE = Path(__file__).resolve().parents[2] / "fixtures" / "people"


def variants(base):
    """A protocol with each decision changed, with all images scored and with those that have detections."""
    for name, (_, value) in GIVEN.items():
        for scored in ("all", "detected"):
            if name != "iou_type":
                yield dataclasses.replace(base, **{"scored_images": scored, name: value})


def boxes(seed):
    """Tables in which an image has no detection, and another one only detections of low scores."""
    truth, found = tables(seed, np.random.default_rng(seed))
    held = np.unique(truth.images.codes)
    found = found.take(found.images.ids[found.images.codes] != truth.images.ids[held[0]])
    low = np.where(found.images.ids[found.images.codes] == truth.images.ids[held[1]], 0.1, found.scores)
    return truth, dataclasses.replace(found, scores=low)


def outcome(compute):
    """What is computed, and None; or None, and an error's class and what it says."""
    try:
        return compute(), None
    except detmap.DetmapError as error:
        return None, (type(error), str(error))


def check(looked, truth, found, protocol):
    """Hold a replay to an evaluation, refusals included."""
    protocol = replay.trimmed(protocol, "AP")
    result, problem = outcome(lambda: detmap.evaluate(truth, found, protocol))
    value, said = outcome(lambda: looked.value(protocol))
    assert said == problem
    if problem is not None:
        return
    assert value.value == result["AP"], protocol
    assert same_bits(value.classes, result._by_category(None)), protocol
    made = match_pairs(truth, found, protocol, iou=0.5)
    for mine, theirs in zip(looked.outcomes(protocol, 0.5), by_row(made, len(found)), strict=True):
        assert same_bits(mine.astype(float), theirs.astype(float)), protocol


@pytest.mark.parametrize("preset", ["coco", "voc2007", "ultralytics-8.3"])
@pytest.mark.parametrize("seed", range(2))
def test_every_decision_on_boxes(preset, seed):
    truth, found = boxes(seed)
    looked = replay.Replay(truth, found)
    for protocol in variants(PRESETS[preset]):
        check(looked, truth, found, protocol)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "file"), [("segm", "masks"), ("boundary", "masks"), ("keypoints", "poses")])
def test_every_decision_on_other_shapes(kind, file):
    truth = detmap.read_coco(str(PEOPLE / "ground_truth.json"), iou_type=kind)
    found = detmap.read_coco_results(str(PEOPLE / f"{file}.json"), truth, iou_type=kind)
    looked = replay.Replay(truth, found)
    for protocol in variants(detmap.detection.protocols.resolve("coco", iou_type=kind)):
        check(looked, truth, found, protocol)


@pytest.mark.parametrize(
    "name", ["min_score", "box_offset", "crowd_overlap", "interpolation", "ties", "strict", "numbers"]
)
def test_a_decision_that_shares_nothing_is_carried_out_all_the_same(name, monkeypatch):
    """As that of a newcomer: `prepared`, `left_out` or an `Arrangement` carries it out, and `Lean` does not know it."""
    monkeypatch.setattr(incremental, "_UNKNOWN", (name,))
    truth, found = boxes(1)
    for first in ("coco", "other"):  # whichever is scored first
        looked = replay.Replay(truth, found)
        value = "all-point" if name == "interpolation" else GIVEN[name][1]
        for scored in ("all", "detected"):
            other = dataclasses.replace(PRESETS["coco"], **{"scored_images": scored, name: value})
            pair = (PRESETS["coco"], other) if first == "coco" else (other, PRESETS["coco"])
            for protocol in pair:
                check(looked, truth, found, protocol)
                plain = replay.trimmed(protocol, "AP")
                given = detmap.evaluate(truth, found, plain)
                assert looked.band(plain) == pytest.approx(band(truth, found, plain, given["AP"]), abs=1e-12)
            assert (
                looked.notices == detmap.evaluate(truth, found, replay.trimmed(pair[0], "AP")).notices
                or scored != "all"
            )


@pytest.mark.slow
def test_every_decision_on_a_kind_from_outside():
    """Its tables hold no boxes."""
    truth, found = test_spans.scene(3)
    truth = detmap.read_coco(truth, iou_type="span")
    found = detmap.read_coco_results(found, truth, iou_type="span")
    looked = replay.Replay(truth, found)
    for protocol in variants(detmap.detection.protocols.resolve("coco", iou_type="span")):
        check(looked, truth, found, protocol)


def test_tables_without_detections():
    truth, found = boxes(0)
    found = found.take(np.zeros(len(found), np.bool_))
    looked = replay.Replay(truth, found)
    for protocol in variants(PRESETS["coco"]):
        if protocol.scored_images == "detected" and protocol.empty_classes == "undefined":
            with pytest.raises(detmap.InputError, match="nothing to find"):
                looked.value(replay.trimmed(protocol, "AP"))
        else:
            check(looked, truth, found, protocol)
