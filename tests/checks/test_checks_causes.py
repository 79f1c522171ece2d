"""Either side of each limit by which a cause is accepted: other readings of ids and boxes, and the tests of rates."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_edges import FOUND, TRUTH

import detmap
from detmap.checks import check, image_ids, labels, repeats
from detmap.checks.agreement import Agreement, Counts
from detmap.checks.evidence import evidence_of
from detmap.checks.inputs import side_of
from detmap.checks.rates import bad_ranges, evidence


def places(count):
    """A box for each image, at a place of its own."""
    at = np.arange(count)
    return np.c_[150.0 * (at % 40), 150.0 * (at // 40), np.full((count, 2), 100.0)]


def overlapping(boxes, iou):
    """Boxes with this IoU."""
    return boxes * [1, 1, iou, 1]


def agreement(image, boxes, scores=None, count=200):
    """Detections beside one object on each of so many images."""
    ids = np.cumsum(np.random.default_rng(0).integers(3, 300, count))
    truth = detmap.GroundTruth.from_arrays(
        image_ids=ids, category_ids=np.ones(count, int), boxes=places(count), images=ids, categories=[1]
    )
    found = detmap.Detections.from_arrays(
        image_ids=ids[image],
        category_ids=np.ones(len(image), int),
        boxes=boxes,
        scores=np.linspace(1, 0.5, len(image)) if scores is None else scores,
    )
    one = side_of(truth)
    return Agreement(one, side_of(found, truth))


def gained(undone, usual=0.9, right=60, wrong=40):
    """How many detections gain that are nowhere, if they had this overlap under another reading, beside right ones."""
    image = np.arange(right + wrong)
    boxes = overlapping(places(200)[image], usual)
    boxes[right:] += [0, 20_000, 0, 0]
    made = agreement(image, boxes)
    assert made.astray.size == wrong
    gain = made.gain("scaled_boxes", "detections", image[right:], overlapping(places(200)[image[right:]], undone))
    return 0 if gain is None else gain.gained.size


def test_either_side_of_boxes_that_lie_well_under_another_reading():
    assert gained(0.61, right=20) == 40
    assert gained(0.59, right=20) == 0
    assert gained(0.81) == 40  # by a tenth worse than those that are right
    assert gained(0.79) == 0
    assert gained(0.61, right=30, usual=0.72) == 0
    assert gained(0.61, right=29, usual=0.72) == 40  # too few to compare with


def test_either_side_of_a_gain_by_chance():
    assert gained(0.9, right=60, wrong=7) == 7
    assert gained(0.9, right=60, wrong=6) == 0  # of one in 70,000 data sets


def test_either_side_of_the_share_that_gains():
    image = np.arange(1000)
    boxes = places(1000)
    boxes[980:] += [0, 20_000, 0, 0]
    made = agreement(image, boxes, count=1000)
    for count, said in ((10, True), (9, False)):
        undone = np.where((np.arange(20) < count)[:, None], places(1000)[980:], boxes[980:])
        assert (made.gain("scaled_boxes", "detections", image[980:], undone) is not None) is said


def test_either_side_of_detections_that_lie_on_nothing():
    image = np.arange(100)
    boxes = overlapping(places(200)[:100], 0.31)
    boxes[:40] = overlapping(places(200)[:40], 0.29)
    assert agreement(image, boxes).astray.size == 40


@pytest.mark.parametrize(("step", "said"), [(8, True), (9, False), (-8, True), (-9, False)])
def test_either_side_of_the_places_of_neighbours(step, said):
    image = np.arange(20, 180)
    made = agreement(image + step, places(200)[image]).of_images
    assert (made is not None) is said
    if said:
        assert made.code == "image_ids_rotated"
        assert made.more == f"each is meant to be 8 images {'back' if step > 0 else 'on'}"


@pytest.mark.parametrize(("count", "said"), [(50, True), (49, False)])
def test_either_side_of_the_share_of_ids_of_neighbours(count, said):
    """A quarter of 200."""
    image = np.arange(200)
    moved = np.where(image < count, image + 1, image)
    assert (agreement(moved, places(200)).of_images is not None) is said


@pytest.mark.parametrize(("count", "controls"), [(19, 4), (20, 3)])
def test_few_images_are_also_compared_with_mirrored_ones(count, controls):
    made = agreement(np.arange(count), places(count), count=count)
    assert len(list(made._controls(made.image, made.boxes, made.found.sizes[made.rows]))) == controls


@pytest.mark.parametrize(
    ("by", "count", "said"), [(0.76, 200, True), (0.74, 200, False), (2.0, 50, True), (2.0, 49, False)]
)
def test_either_side_of_a_shift(by, count, said):
    boxes = places(200)[:count] + np.random.default_rng(0).normal(0, 1e-3, (count, 4)) + [by, 0, 0, 0]
    assert (agreement(np.arange(count), boxes).shift is not None) is said


@pytest.mark.parametrize(("count", "said"), [(10, True), (9, False)])
def test_either_side_of_what_bears_a_reading_out(count, said):
    boxes = places(200)[:100] + np.array([0, 20_000, 0, 0])
    made = agreement(np.arange(100), boxes)
    moved = np.where((np.arange(100) < count)[:, None], places(200)[:100], boxes)
    assert made.borne_out(made.found, np.arange(100), lambda own, sizes: moved) is said


def upside_down(higher, on=1000, off=1000):
    """Whether scores are, of which so many of 100 pairs have the higher one on an object."""
    image = np.concatenate([np.arange(on), np.arange(off)]) % 200
    boxes = places(200)[image]
    boxes[on:] += [0, 20_000, 0, 0]
    scores = np.concatenate([np.full(on, higher / 100), (np.arange(off) + 0.5) / off])
    return agreement(image, boxes, scores).upside_down


def test_either_side_of_inverted_scores():
    assert upside_down(34)
    assert not upside_down(36)
    assert upside_down(0, on=30, off=30)
    assert not upside_down(0, on=29, off=30)
    assert not upside_down(0, on=30, off=29)
    assert upside_down(0, on=100, off=50)
    assert not upside_down(0, on=100, off=49)  # a few lie on objects that are not labelled


# --------------------------------------------------------------------------------------------------- classes and images


def moved(count):
    """Of twenty classes the first is on objects of the second so many times, whose own are on none."""
    rows = np.concatenate([np.zeros(count, int), np.repeat(np.arange(2, 20), 50)])
    columns = np.concatenate([np.ones(count, int), np.repeat(np.arange(2, 20), 50)])
    table = Counts(rows, columns, (20, 20))
    facts = SimpleNamespace(agreement=SimpleNamespace(confusion=table, distinct=table))
    return labels._moved(facts, np.arange(20))


def test_either_side_of_a_class_that_is_another():
    assert moved(5) == {0: 1}
    assert moved(4) == {}


@pytest.mark.parametrize(("total", "said"), [(50, [0]), (48, [])])
def test_either_side_of_labels_by_chance(total, said):
    """Five of five, of a class that a tenth of all objects have: of three classes once in 10,000 data sets."""
    rest = total - 5
    rows = np.concatenate([np.zeros(5, int), np.repeat([1, 2], [rest // 2, rest - rest // 2])])
    columns = np.concatenate([np.ones(5, int), np.repeat([0, 2], [rest // 2, rest - rest // 2])])
    table = Counts(rows, columns, (3, 3))
    assert labels._beyond_chance(table, np.array([True, False, False]), np.array([1, 0, 2])) == said


@pytest.mark.parametrize(("count", "said"), [(3, True), (2, False)])
def test_either_side_of_ids_that_explain_each_other(count, said):
    made = image_ids.by_ids_alone(np.arange(count) * 7, np.arange(count) * 7 + 1, "image_ids")
    assert (made is not None) is said


@pytest.mark.parametrize(("edge", "said"), [(2.0, 0), (2.25, 8)])
def test_either_side_of_a_box_of_the_whole_image(edge, said):
    count = 8
    table = detmap.GroundTruth.from_arrays(
        image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=np.tile([edge, 1.0, 640, 478.0], (count, 1)),
        images=np.arange(count), categories=[1], image_sizes=[(480, 640)] * count,
    )  # fmt: skip
    found = detmap.Detections.from_arrays(
        image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=table.boxes, scores=np.full(count, 0.5)
    )
    assert repeats.constant(side_of(found, table)).sum() == said


def test_either_side_of_boxes_of_shares_and_of_boxes_that_are_nearly_there():
    def codes(*boxes):
        annotations = [
            {**TRUTH["annotations"][0], "id": 9 + at, "image_id": 1 + at % 3, "bbox": box}
            for at, box in enumerate(boxes)
        ]
        return check({**TRUTH, "annotations": [*TRUTH["annotations"], *annotations]}, FOUND).codes

    share = [0.25, 0.25, 0.125, 0.25]
    assert "normalised_boxes" in codes(share, [0.5, *share[1:]], [0.75, *share[1:]])
    assert "normalised_boxes" not in codes(share, [0.5, *share[1:]])
    near = [[10.0 * one + 0.5, 20.0, 50.0, 40.0] for one in (1, 2, 3)]
    assert "duplicate_objects" in codes(*near)
    assert "duplicate_objects" not in codes(*near[:2])  # by chance, as in crowds


# ---------------------------------------------------------------------------------------------------------------- rates


def test_either_side_of_what_finds_an_object_and_of_what_lies_on_none():
    count = 100
    objects = places(count)
    truth = detmap.GroundTruth.from_arrays(image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=objects)
    boxes = objects.copy()
    boxes[:, 2] *= np.repeat([0.51, 0.49, 0.21, 0.19], 25)
    found = detmap.Detections.from_arrays(
        image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=boxes, scores=np.linspace(1, 0.5, count)
    )
    made = evidence_of(side_of(truth), side_of(found, truth), False)
    assert made.hit.sum() == 25
    assert made.alone.sum() == 25


def test_either_side_of_the_chance_of_a_range():
    """Nine bad units of a chance of a fifth outweigh 406 looks, and not 407."""
    bad = np.zeros(200, bool)
    bad[50:59] = True
    chance = np.full(200, 0.2)
    assert bad_ranges(bad, chance, 2.03)
    assert not bad_ranges(bad, chance, 2.035)
    assert evidence(np.array([True, False]), chance[:2]) == pytest.approx([np.log(0.84 / 0.2), np.log(0.2)])
    assert evidence(np.ones(1, bool), np.zeros(1)) == pytest.approx(np.log((1 - 0.98 * 0.2) / 0.02))
