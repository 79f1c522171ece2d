"""What scores many protocols at once gives the bits of an evaluation of each, its bands, and the outcomes of matching."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import workloads
from support import BOX_PROTOCOLS, examples, same_bits

import detmap
from detmap.detection.matches import match_pairs
from detmap.detection.protocols import PRESETS
from detmap.detection.result import DetectionResult
from detmap.explanations import replay
from detmap.kernels import readonly

PEOPLE = Path(__file__).resolve().parents[2] / "fixtures" / "people"

CHOICES = {
    "min_score": [None, 0.01, 0.2, 0.5],
    "max_dets": [(1,), (2,), (10,), (100,)],
    "max_per_image": [None, 2, 8],
    "scored_images": ["all", "detected"],
    "interpolation": ["grid", "all-point", "101-linear-tail", "101-linear", "11-point", "step", "trapezoid"],
    "use_categories": [True, False],
    "score_decimals": [None, 1],
    "left_out": [(), ("crowd",), ("difficult", "crowd")],
    "ignore": [(), ("crowd",), ("crowd", "difficult")],
    "crowd_overlap": [True, False],
    "matching": ["best", "best-free"],
    "strict": [True, False],
    "inclusive_pixels": [True, False],
    "far_corner": ["x+w", "x+w-1"],
    "box_decimals": [None, 0, 1],
    "box_offset": [0.0, 1.0, -1.0],
    "numbers": ["float32", "float64"],
    "ties": ["image", "file"],
    "iou_thresholds": [(0.5,), (0.3, 0.5, 0.75), (0.5, 0.55, 0.95), (0.0, 0.5)],
    "area_ranges": [(("all", 0.0, 1e10),), (("all", 0.0, 1e10), ("small", 0.0, 500.0)), (("all", -1e5, 1e5),)],
    "object_areas": ["own", "shape"],
}


def changed(rng):
    """A preset with about a third of all decisions drawn; None where they contradict each other."""
    base = PRESETS[BOX_PROTOCOLS[rng.integers(len(BOX_PROTOCOLS))]]
    drawn = {name: values[rng.integers(len(values))] for name, values in CHOICES.items() if rng.random() < 0.35}
    try:
        made = dataclasses.replace(base, **drawn)
        last = made.area_ranges[-1][0]
        metric = "AP" if rng.random() < 0.6 or len(made.area_ranges) == 1 else f"AP_{last}"
        return metric, replay.trimmed(made, metric)
    except detmap.OptionError:
        return None


def tables(seed, rng):
    scores = list(workloads.SCORES)[seed % len(workloads.SCORES)]
    dataset, results = workloads.make_coco(seed, scores=scores, over_100=seed % 5 == 0, crowded_cell=seed % 2 == 0)
    truth = detmap.read_coco(dataset)
    truth = dataclasses.replace(truth, difficult=readonly(rng.random(len(truth)) < 0.2, np.bool_))
    return truth, detmap.read_coco_results(results, truth)


def by_row(matches, count):
    outcome, overlap = np.full(count, -1), np.full(count, np.nan)
    outcome[matches.detection], overlap[matches.detection] = matches.outcome, matches.overlap
    return outcome, overlap


@pytest.mark.parametrize("seed", range(examples(40)))
def test_any_protocol_has_the_bits_of_an_evaluation(seed):
    rng = np.random.default_rng(seed)
    truth, found = tables(seed, rng)
    looked: dict[str, replay.Replay] = {}
    for metric, protocol in filter(None, (changed(rng) for _ in range(10))):
        one = looked.setdefault(metric, replay.Replay(truth, found, metric))
        result = detmap.evaluate(truth, found, protocol)
        if np.isnan(result["AP"]):
            with pytest.raises(detmap.InputError, match="nothing to find"):
                one.value(protocol)
            continue
        value = one.value(protocol)
        assert value.value == result["AP"], protocol
        assert same_bits(value.classes, result._by_category(None)), protocol
        iou = float(rng.choice([0.3, 0.5, 0.75]))
        made = match_pairs(truth, found, protocol, iou=iou, area=protocol.area_ranges[0][0])
        for mine, theirs in zip(one.outcomes(protocol, iou), by_row(made, len(found)), strict=True):
            assert same_bits(mine.astype(float), theirs.astype(float)), protocol
        if protocol.matching != "by-object-twice":  # whose precisions are read at scores of another pass
            assert one.band(protocol) == pytest.approx(band(truth, found, protocol, result["AP"]), abs=1e-12)


def band(truth, found, protocol, value):
    """Both ends by a full tally of which equal scores are put in order by their outcomes."""
    tally, ends = detmap.match(truth, found, protocol), []
    for hits_first in (False, True):
        made = []
        for t, iou in enumerate(protocol.iou_thresholds):
            hit, ignored = (tally.bit(words, 0, t) for words in (tally.hit, tally.ignored))
            order = np.lexsort((hit != hits_first, -tally.scores, tally.category))
            moved = dataclasses.replace(
                tally.take(order, slice(None)),
                protocol=dataclasses.replace(protocol, iou_thresholds=(iou,)),
                hit=readonly(hit[order, None], np.uint64),
                ignored=readonly(ignored[order, None], np.uint64),
            )
            made.append(DetectionResult(moved)["AP"])
        ends.append(float(np.mean(made)))
    return min(*ends, value), max(*ends, value)


@pytest.mark.parametrize(("kind", "found"), [("segm", "masks"), ("boundary", "masks"), ("keypoints", "poses")])
def test_other_shapes(kind, found):
    truth = detmap.read_coco(str(PEOPLE / "ground_truth.json"), iou_type=kind)
    results = detmap.read_coco_results(str(PEOPLE / f"{found}.json"), truth, iou_type=kind)
    looked = replay.Replay(truth, results)
    for text in ("coco", "coco+matching=best+min_score=0.3", "coco+max_per_image=4+strict=yes", "coco+left_out=crowd"):
        protocol = replay.trimmed(replay.parse(text, kind), "AP")
        assert looked.value(protocol).value == detmap.evaluate(truth, results, protocol)["AP"]


def test_matching_is_shared():
    """A cut, a cap, an order of ties and a curve match nothing again, and the same pairs serve for every rule."""
    truth, found = tables(3, np.random.default_rng(3))
    looked = replay.Replay(truth, found)
    for text in ("coco", "coco+min_score=0.3", "coco+max_dets=1", "coco+ties=file", "coco+interpolation=step"):
        looked.value(replay.trimmed(replay.parse(text), "AP"))
    assert (looked.evaluations, looked.matchings) == (5, 1)
    looked.value(replay.trimmed(replay.parse("coco+matching=best+strict=yes"), "AP"))
    assert looked.matchings == 2
    assert looked._lean is not None
    assert len(looked._lean._pairs) == 1
