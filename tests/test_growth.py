"""What detmap grows by from outside: a kind of shape in one file, and a file of kernels, through all that scores."""

from __future__ import annotations

import dataclasses
import pickle
from collections import defaultdict
from pathlib import Path

import naive
import numpy as np
import pytest
from growth import circles, circles_kernels
from support import assert_same_result

import detmap
from detmap.errors import InputError, OptionError, StateError
from detmap.protocols import PRESETS
from detmap.shapes import find

AREAS = (("all", 0.0, 1e10), ("small", 0.0, 900.0), ("large", 900.0, 1e10))
PROTOCOL = dataclasses.replace(PRESETS["coco"], name="circles", iou_type="circle", area_ranges=AREAS, max_dets=(5, 40))


def scene(seed, images=4, objects=12, detections=60, start=0):
    """Made-up circles, ground truth and detections: many touch, some are crowds."""
    rng = np.random.default_rng(seed)
    truth = np.column_stack([rng.uniform(0, 150, (images * objects, 2)), rng.uniform(4, 40, images * objects)])
    near = truth.reshape(images, objects, 3)[:, rng.integers(0, objects, detections)]
    found = (near + rng.normal(0, 4, near.shape)).reshape(-1, 3)
    found[:, 2] = np.abs(found[:, 2]) + 1
    return (
        {
            "image_ids": np.repeat(np.arange(images), objects) + start,
            "category_ids": rng.integers(1, 3, len(truth)),
            "shapes": {"circle": circles.Circles.of(truth)},
            "crowd": rng.random(len(truth)) < 0.1,
            "images": np.arange(images) + start,
            "categories": [1, 2],
        },
        {
            "image_ids": np.repeat(np.arange(images), detections) + start,
            "category_ids": rng.integers(1, 3, len(found)),
            "shapes": {"circle": circles.Circles.of(found)},
            "scores": rng.integers(0, 30, len(found)) / 30,
        },
    )


def tables(truth, found):
    return detmap.GroundTruth.from_arrays(**truth), detmap.Detections.from_arrays(**found)


def disc_ious(detections, ground_truth, crowd):
    """Overlaps of all pairs, with the kernel's own arithmetic: what is tested is which pairs it comes to."""
    out = np.empty(len(detections) * len(ground_truth))
    left, right = (axis.ravel() for axis in np.indices((len(detections), len(ground_truth))))
    circles_kernels.overlaps(
        *(circles.Circles.of(side).table for side in (detections, ground_truth)), left, right, crowd[right], out
    )
    return out.reshape(len(detections), len(ground_truth))


def expected_outcomes(truth, found, iou, low, high):
    """Outcome and ground truth of every detection within the cap, and the missed objects, in plain Python."""
    outcomes, missed = {}, set()
    own, sought = (side["shapes"]["circle"] for side in (found, truth))
    groups = defaultdict(lambda: ([], []))
    for which, side in enumerate((found, truth)):
        for row, key in enumerate(zip(side["image_ids"].tolist(), side["category_ids"].tolist(), strict=True)):
            groups[key][which].append(row)
    for dts, gts in groups.values():
        dts = [dts[i] for i in naive.by_score(found["scores"][dts])][: PROTOCOL.max_dets[-1]]
        crowd, areas = truth["crowd"][gts], sought.areas()[gts]
        skip = crowd | (areas < low) | (areas > high)
        ious = disc_ious(own.table[dts], sought.table[gts], crowd)
        matched = naive.coco_match_cell(ious, found["scores"][dts], skip, crowd, [iou])[0][0]
        for d, g, area in zip(dts, matched.tolist(), own.areas()[dts], strict=True):
            outside = detmap.MISS if low <= area <= high else detmap.IGNORED
            outcomes[d] = (outside, -1) if g < 0 else (detmap.IGNORED if skip[g] else detmap.HIT, gts[g])
        missed |= {g for i, g in enumerate(gts) if not skip[i] and i not in matched.tolist()}
    return outcomes, sorted(missed)


def test_the_toy_is_small():
    for module in (circles, circles_kernels):
        assert len(Path(module.__file__).read_text().splitlines()) <= 80


def test_the_toy_knows_discs():
    pairs = disc_ious(
        np.array([[0, 0, 2], [0, 0, 1]]), np.array([[0, 0, 1], [9, 0, 1], [1, 0, 1]]), np.array([False, False, True])
    )
    assert pairs[0].tolist() == [0.25, 0.0, 0.25]
    assert pairs[1, 0] == 1.0
    assert pairs[1, 2] == pytest.approx((2 * np.pi / 3 - np.sqrt(3) / 2) / np.pi)


@pytest.mark.parametrize("seed", range(4))
def test_match_pairs_of_circles_equals_the_twin_and_the_tally(seed):
    truth, found = scene(seed)
    tally = detmap.match(*tables(truth, found), PROTOCOL)
    rows = np.lexsort((tally.rank, tally.category, tally.image))
    for a, (area, low, high) in enumerate(AREAS):
        for t, iou in enumerate(PROTOCOL.iou_thresholds):
            matches = detmap.match_pairs(*tables(truth, found), PROTOCOL, iou=iou, area=area)
            outcomes, missed = expected_outcomes(truth, found, iou, low, high)
            got = zip(matches.outcome.tolist(), matches.ground_truth.tolist(), strict=True)
            assert dict(zip(matches.detection.tolist(), got, strict=True)) == outcomes
            assert matches.missed.tolist() == missed
            hit, ignored = (tally.bit(words, a, t)[rows] for words in (tally.hit, tally.ignored))
            assert matches.outcome.tolist() == np.where(hit, detmap.HIT, 2 * ignored).tolist()
    half = detmap.match_pairs(*tables(truth, found), PROTOCOL)
    assert (half.outcome == detmap.HIT).any()
    boxes = detmap.match_pairs(*tables(truth, found), dataclasses.replace(PROTOCOL, iou_type="bbox"))
    assert half.outcome.tolist() != boxes.outcome.tolist()


def test_across_categories_looks_at_circles():
    truth, found = scene(7)
    matches = detmap.match_pairs(*tables(truth, found), PROTOCOL, across_categories=True, floor=0.3)
    counts = ~truth["crowd"]
    ious = disc_ious(found["shapes"]["circle"].table, truth["shapes"]["circle"].table, np.zeros(counts.size, bool))
    for row, d in enumerate(matches.detection.tolist()):
        here = counts & (truth["image_ids"] == found["image_ids"][d])
        own = truth["category_ids"] == found["category_ids"][d]
        for name, wanted in (("same", here & own), ("other", here & ~own)):
            best = np.where(wanted & (ious[d] >= 0.3), ious[d], -1)
            g = int(np.argmax(best)) if best.max() >= 0 else -1
            assert getattr(matches, name)[row] == g
            assert g < 0 or getattr(matches, f"{name}_overlap")[row] == ious[d, g]


def test_evaluate_merge_and_saved_states_of_circles():
    (truth, found), (more_truth, more_found) = scene(1), scene(2, start=100)
    a, b = (detmap.match(*tables(*one), PROTOCOL) for one in ((truth, found), (more_truth, more_found)))
    joined = [
        {
            **{name: np.concatenate([one[name], other[name]]) for name in one if name not in ("shapes", "categories")},
            "shapes": {
                "circle": circles.Circles.of(np.concatenate([x["shapes"]["circle"].table for x in (one, other)]))
            },
        }
        for one, other in ((truth, more_truth), (found, more_found))
    ]
    whole = detmap.evaluate(*tables({**joined[0], "categories": [1, 2]}, joined[1]), PROTOCOL)
    assert 0 < whole["AP"] < 1
    assert_same_result(detmap.DetectionResult(a.merge(b)), whole)
    assert a.merge(b).to_bytes() == whole.tally.to_bytes()
    again = detmap.Tally.from_bytes(a.to_bytes(), PROTOCOL)
    assert again.protocol.iou_type == "circle"
    assert again.to_bytes() == a.to_bytes()
    with pytest.raises(StateError, match="different protocols"):
        a.merge(detmap.match(*tables(more_truth, more_found), dataclasses.replace(PROTOCOL, iou_type="bbox")))


def test_tables_keep_shapes_through_take_and_pickle():
    truth, found = tables(*scene(3))
    rows = np.arange(len(found))[::-3]
    taken = found.take(rows)
    assert np.array_equal(taken.shapes["circle"].table, found.shapes["circle"].table[rows])
    assert np.array_equal(taken.boxes, found.boxes[rows])
    assert np.array_equal(taken.images.values[taken.images.codes], found.images.values[found.images.codes][rows])
    some = truth.take(truth.crowd)
    assert some.crowd.all()
    assert len(some) == len(some.shapes["circle"]) == truth.crowd.sum() > 0
    assert some.images.values.tolist() == truth.images.values.tolist()
    again = pickle.loads(pickle.dumps(found))
    assert not again.shapes["circle"].table.flags.writeable
    assert not again.boxes.flags.writeable
    few = detmap.GroundTruth.from_arrays(image_ids=[2], category_ids=[1], boxes=[[0, 0, 9, 9]])
    kept = found.on_images_of(few, unknown="ignore")
    assert np.array_equal(kept.shapes["circle"].table, found.shapes["circle"].table[kept_rows(found, 2)])


def kept_rows(found, image):
    return found.images.values[found.images.codes] == image


def test_shapes_that_cannot_be():
    truth, found = scene(4)
    with pytest.raises(OptionError, match=r"iou_type must be one of bbox, .*circle, not 'hexagon'"):
        dataclasses.replace(PROTOCOL, iou_type="hexagon")
    with pytest.raises(OptionError, match="iou_type must be one of"):
        find("hexagon")
    short = {**found, "shapes": {"circle": found["shapes"]["circle"].take(np.arange(3))}}
    with pytest.raises(InputError, match=r"shapes\['circle'\].*3 shapes for 240 records"):
        detmap.Detections.from_arrays(**short)
    with pytest.raises(InputError, match="expected a Circles"):
        detmap.Detections.from_arrays(**{**found, "shapes": {"circle": np.zeros((240, 3))}})
    boxes = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]], scores=[1])
    with pytest.raises(InputError, match="no shapes of the kind 'circle' here, only: bbox"):
        detmap.evaluate(detmap.GroundTruth.from_arrays(**truth), boxes, PROTOCOL)
