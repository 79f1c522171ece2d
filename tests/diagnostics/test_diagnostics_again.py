"""What an error costs is what evaluating the mended data again gives, also for classes that lose everything."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from diagnosed import ERRORS, PRESET, made, same, small
from hypothesis import given, settings
from hypothesis import strategies as st
from support import examples

import detmap
from detmap import MISS
from detmap.detection.protocols import PRESETS

#: Detections beyond a cap would move up where others go away.
UNCAPPED = {name: dataclasses.replace(PRESETS[name], max_dets=(2**31 - 1,)) for name in ("coco", "voc2007", "voc2012")}


def value(truth, found, protocol, iou):
    """AP at a threshold, by a new evaluation."""
    return next(iter(detmap.evaluate(truth, found, protocol, iou_thresholds=iou).values()))


def check(truth, found, protocol, iou):
    """Compare all gains that come of leaving something out; return the diagnosis."""
    diagnosis = made(truth, found, protocol=protocol, iou=iou)
    tide, matches = diagnosis.tide(), diagnosis.matches
    before = value(truth, found, protocol, iou)
    same(tide["AP"], before)

    def gains(name, objects, detections):
        kept = np.ones(len(truth), bool), np.ones(len(found), bool)
        kept[0][objects], kept[1][detections] = False, False
        after = value(truth.take(kept[0]), found.take(kept[1]), protocol, iou)
        same(tide[f"dAP_{name}"], after - before)

    gains("Miss", tide.missed, [])
    gains("FalseNeg", matches.missed, [])
    gains("FalsePos", [], matches.detection[matches.outcome == MISS])
    for name in ("Both", "Dupe", "Bkg"):
        gains(name, [], matches.detection[tide.error == 1 + ERRORS.index(name)])
    return diagnosis


@settings(max_examples=examples(60), deadline=None)
@given(small(), PRESET, st.sampled_from([0.3, 0.5]))
def test_gains_are_those_of_evaluating_again(tables, protocol, iou):
    check(*tables, UNCAPPED[protocol], iou)


def drawn(seed, lost=(), silent=(), false=()):
    """Objects of six classes that do not overlap, and detections of them with every kind of error.

    Nothing comes close to the objects of `lost` classes; those of `silent` classes have no detection; all detections of
    `false` classes are of no object.
    """
    rng = np.random.default_rng(seed)
    count = 90
    kinds = np.arange(count) % 6
    images = np.arange(count) // 9
    boxes = np.stack(
        [np.arange(count) % 9 * 100 + 20.0, np.full(count, 20.0), *rng.uniform(30, 50, (2, count))], axis=1
    )
    rows = []
    for at in range(count):
        if kinds[at] in lost or kinds[at] in silent or rng.random() < 0.2:
            continue
        shift = rng.choice([0.0, 3.0, 18.0])
        kind = kinds[at] if rng.random() < 0.7 else rng.choice([k for k in range(6) if k not in (*silent, *false)])
        if kind in false:
            continue
        for _ in range(1 + (rng.random() < 0.2)):
            rows.append((images[at], kind, boxes[at] + [shift, 0, 0, 0], rng.random()))
    for kind in range(6):
        if kind not in silent:
            rows += [(rng.integers(10), kind, np.array([20.0, 500.0, 30, 30]), rng.random()) for _ in range(3)]
    truth = detmap.GroundTruth.from_arrays(
        image_ids=images, category_ids=kinds, boxes=boxes, difficult=kinds == 5 if 5 in lost else None
    )
    columns = list(zip(*rows, strict=True))
    found = detmap.Detections.from_arrays(
        image_ids=np.array(columns[0]), category_ids=np.array(columns[1]), boxes=np.array(columns[2]),
        scores=np.round(np.array(columns[3]), 2),
    )  # fmt: skip
    return truth, found


@pytest.mark.parametrize("protocol", list(UNCAPPED))
@pytest.mark.parametrize(
    "without",
    [
        {},
        {"lost": [1]},
        {"lost": [1, 5]},
        {"silent": [2]},
        {"false": [3]},
        {"lost": [0, 1], "silent": [2], "false": [3]},
    ],
    ids=str,
)
def test_classes_that_lose_everything(protocol, without):
    for seed in range(examples(2)):
        truth, found = drawn(seed, **without)
        diagnosis = check(truth, found, UNCAPPED[protocol], 0.5)
        for at, name in enumerate(ERRORS[:2], 1):  # Cls and Loc: the best of each object is put on it
            tide, matches = diagnosis.tide(), diagnosis.matches
            assert (tide.error == at).any()
            target = np.where(tide.error == 1, matches.other, np.where(tide.error == 2, matches.same, -1))
            unfound = np.isin(target, matches.missed)
            best = {}
            for row in np.flatnonzero(unfound).tolist():
                own = (-matches.score[row], row)
                best[target[row]] = min(best.get(target[row], (1.0, -1)), own)
            kept = np.ones(len(found), bool)
            boxes, kinds = found.boxes.copy(), found.categories.ids[found.categories.codes].copy()
            for row in np.flatnonzero(tide.error == at).tolist():
                place = matches.detection[row]
                if best.get(target[row], (0.0, -1))[1] != row:
                    kept[place] = False
                else:
                    boxes[place] = truth.boxes[target[row]]
                    kinds[place] = truth.categories.ids[truth.categories.codes[target[row]]]
            mended = detmap.Detections.from_arrays(
                image_ids=found.images.ids[found.images.codes][kept], category_ids=kinds[kept], boxes=boxes[kept],
                scores=found.scores[kept],
            )  # fmt: skip
            before = value(truth, found, UNCAPPED[protocol], 0.5)
            same(tide[f"dAP_{name}"], value(truth, mended, UNCAPPED[protocol], 0.5) - before)


def test_nothing_is_left_to_find():
    """Without an object AP is undefined, and so is what it would gain."""
    truth, found = drawn(0)
    nothing = made(truth, found.take(np.zeros(len(found), bool))).tide()
    assert nothing["AP"] == 0
    assert math.isnan(nothing["dAP_Miss"])
    assert math.isnan(nothing["dAP_FalseNeg"])
    assert nothing["dAP_FalsePos"] == 0


@pytest.mark.parametrize(
    ("kind", "height", "error"),
    [
        *[(1, 5, "Dupe"), (1, 4.999, "Loc"), (1, 1, "Loc"), (1, 0.999, "Bkg")],
        *[(2, 5, "Cls"), (2, 4.999, "Both"), (2, 1, "Both"), (2, 0.999, "Bkg")],
    ],
)
def test_either_side_of_an_overlap(kind, height, error):
    """An overlap of the threshold covers an object, and one of a tenth touches it."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 2], category_ids=[1, 2], boxes=[[0, 0, 10, 10], [0, 0, 10, 10]]
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1, 1], category_ids=[1, kind], boxes=[[0, 0, 10, 10], [0, 0, 10, height]], scores=[0.9, 0.8]
    )
    diagnosis = made(truth, found)
    tide = diagnosis.tide()
    by_row = dict(zip(diagnosis.matches.detection.tolist(), tide.error.tolist(), strict=True))
    assert (by_row[0], ERRORS[by_row[1] - 1]) == (0, error)


@pytest.mark.parametrize(
    ("kind", "height", "error"),
    [
        *[(1, 5.001, "Dupe"), (1, 5, "Loc"), (1, 1, "Loc"), (1, 0.999, "Bkg")],
        *[(2, 5, "Cls"), (2, 4.999, "Both"), (2, 1.001, "Both"), (2, 1, "Bkg")],
    ],
)
def test_either_side_of_an_overlap_by_the_rules_of_tidecv(kind, height, error):
    """An overlap of the threshold is still one of place, and one of a tenth with another class is background."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 2], category_ids=[1, 2], boxes=[[0, 0, 10, 10], [0, 0, 10, 10]]
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1, 1], category_ids=[1, kind], boxes=[[0, 0, 10, 10], [0, 0, 10, height]], scores=[0.9, 0.8]
    )
    tide = made(truth, found).tide(rules="tidecv")
    assert {row["error"] for row in tide.rows() if row["count"]} - {"Miss"} == {error}
