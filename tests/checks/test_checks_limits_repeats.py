"""Either side of each limit of the checks for repeated records, in numbers written out."""

from __future__ import annotations

import numpy as np
import pytest

from detmap.checks import repeats
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.data.tables import Detections, GroundTruth


def facts_of(objects, detections, images=200):
    """Facts of objects, rows of image, category, x, y, width, height, and of detections, which have a score besides."""
    objects, detections = np.array(objects, float).reshape(-1, 6), np.array(detections, float)
    truth = GroundTruth.from_arrays(
        image_ids=objects[:, 0].astype(int), category_ids=objects[:, 1].astype(int), boxes=objects[:, 2:],
        image_sizes=np.full((images, 2), 400), images=np.arange(images), categories=np.arange(1, 9),
    )  # fmt: skip
    found = Detections.from_arrays(
        image_ids=detections[:, 0].astype(int), category_ids=detections[:, 1].astype(int), boxes=detections[:, 2:6],
        scores=detections[:, 6],
    )  # fmt: skip
    own = side_of(truth)
    return Facts(own, side_of(found, truth))


def codes_of(facts):
    return {one.code: one for one in repeats.check(facts)}


def varied(images, category=1, seed=0, each=1, low=0.1):
    """Boxes that are all different, some on each image."""
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(images), each)
    boxes = np.c_[rng.uniform(50, 200, (image.size, 2)), rng.uniform(30, 90, (image.size, 2))]
    return np.c_[image, np.full(image.size, category), boxes, rng.uniform(low, low + 0.4, image.size)]


# ---------------------------------------------------------------------------------------------- one box, copied images


def constant(copied, images):
    """Whether one box on so many images is named, of which some hold all other detections of the image before."""
    own = varied(200, each=2)
    own = own[(own[:, 0] % 2 == 0) | (own[:, 0] > 2 * copied)]
    same = [[2 * at + (at < copied), 1, 7, 7, 50, 50, 0.95] for at in range(images)]
    again = own[(own[:, 0] % 2 == 0) & (own[:, 0] < 2 * copied)] + np.array([1, *[0] * 6])
    made = codes_of(facts_of(varied(200)[:, :6], np.concatenate([own, again, same])))
    assert [made["same_detections"].count] == [copied] if copied else "same_detections" not in made
    assert "constant_boxes" not in made or made["constant_boxes"].count == images
    return "constant_boxes" in made


def test_either_side_of_one_box_on_many_images():
    assert constant(0, 5)
    assert not constant(0, 4)
    assert constant(5, 10)
    assert not constant(6, 10)  # copies explain more than half of these boxes


@pytest.mark.parametrize(("count", "said"), [(5, 5), (4, 0)])
def test_boxes_whose_sums_are_equal_are_told_apart(count, said):
    """Moved by 1.618 to the right, or by 1 down, a box has the same weighted sum; twice as many boxes have it then."""
    boxes = np.tile([[11.618, 10, 20, 20], [10, 11, 20, 20]], (count, 1))
    rows = [[2 * at, 1, *box] for at, box in enumerate(boxes)]
    truth = facts_of([*varied(200)[:, :6], *rows], varied(200)).truth
    sums = truth.boxes[200:] @ np.array(repeats._WEIGHTS[:4])
    assert np.ptp(sums) < 1e-9
    assert repeats.constant(truth).sum() == said


def left_over(images, records=2, before=None):
    """What is said of images that hold detections of the image before, or further back, besides their own."""
    own = varied(200, each=3)
    before = images if before is None else before
    again = [
        row + np.array([1 if at < before else 3, *[0] * 6])
        for at in range(images) for row in own[15 * at : 15 * at + records]
    ]  # fmt: skip
    made = codes_of(facts_of(varied(200)[:, :6], [*own, *again]))
    return made["detections_left_over"].says if "detections_left_over" in made else ""


def test_either_side_of_images_that_hold_those_of_another():
    assert left_over(3)
    assert not left_over(2)
    assert not left_over(6, records=1)
    assert ", of the image before, by id" in left_over(10, before=9)
    assert ", of the image before, by id" not in left_over(10, before=8)


@pytest.mark.parametrize(("records", "said"), [(2, True), (1, False)])
def test_either_side_of_images_with_those_of_another_alone(records, said):
    own = varied(200, each=2)
    own = own[own[:, 0] != 51]
    again = own[own[:, 0] == 50][:records]
    own = own[(own[:, 0] != 50) | (np.cumsum(own[:, 0] == 50) <= records)]
    made = codes_of(facts_of(varied(200)[:, :6], [*own, *(again + np.array([1, *[0] * 6]))]))
    assert ("same_detections" in made) is said


# ------------------------------------------------------------------------------------------------------------- one place


def in_place(boxes, away=(), objects=()):
    """How many of detections, each on every other image, lie in one place, and in further ones."""
    rows = [[2 * at, 1, *box, 0.99 - at * 1e-6] for at, box in enumerate([*boxes, *away])]
    truth = [[2 * at, 1, *box] for at, box in enumerate(objects)]
    far = np.c_[varied(400)[:, :2], np.tile([300.0, 300, 60, 60], (400, 1))]
    facts = facts_of([*far, *truth], [*rows, *varied(400, 2)], images=400)
    return [one.count for one in repeats.check(facts) if one.code == "detections_in_place"]


def at(count, *box):
    return [box or (100, 100, 50, 50)] * count


def around(count, away):
    """Boxes around a place in sixteen others, so far away in x, y, width and height."""
    ways = 2 * (np.arange(count)[:, None] >> np.arange(4) & 1) - 1
    return (np.array([100.0, 100, 50, 50]) + away * ways).tolist()


def test_either_side_of_the_images_with_a_detection_in_one_place():
    assert in_place(at(12)) == [12]
    assert in_place(at(11)) == []
    assert in_place([*at(20), (103, 100, 50, 50)]) == [21]
    assert in_place([*at(20), (103.1, 100, 50, 50)]) == [20]


def test_either_side_of_the_sides_and_edges_of_boxes_in_one_place():
    assert in_place(at(20, 100, 100, 12, 12)) == [20]
    assert in_place(at(20, 100, 100, 11.9, 12)) == []  # dots at a corner of the image
    assert in_place(at(20, 100, 100, 12, 11.9)) == []
    assert in_place(at(20, 2.1, 2, 50, 50)) == [20]
    assert in_place(at(20, 2, 2, 50, 50)) == []  # at two edges of the image
    assert in_place(at(20, 347.9, 348, 50, 50)) == [20]
    assert in_place(at(20, 348, 348, 50, 50)) == []


def test_a_place_is_found_by_half_of_its_boxes():
    """Bins of eight pixels end at 48: boxes on both sides of it in x and y are in four bins."""
    halves = at(6, 47.9, 100, 50, 50) + at(6, 48.1, 100, 50, 50)
    assert in_place(halves) == [12]
    assert in_place([(x, 47.9 + 0.2 * (n % 2), w, h) for n, (x, _, w, h) in enumerate(halves)]) == []


def test_either_side_of_detections_beside_one_place():
    """One in sixteen of the detections within twelve pixels of a place lies in it by chance."""
    assert in_place(at(20), around(74, 11.9)) == [20]
    assert in_place(at(20), around(76, 11.9)) == []
    assert in_place(at(20), around(76, 12.1)) == [20]


def test_either_side_of_detections_in_one_place_that_lie_on_objects():
    """A tenth of them may find an object, with an IoU of half."""
    assert in_place(at(20), objects=[(100, 100, 50, 50)] * 2) == [20]
    assert in_place(at(20), objects=[(100, 100, 50, 50)] * 3) == []
    assert in_place(at(20), objects=[(100, 100, 50, 101)] * 3) == [20]
    assert in_place(at(20), objects=[(100, 100, 50, 99)] * 3) == []


def test_at_most_three_places_are_named():
    boxes = [box for x in (60, 120, 180, 240) for box in at(15, x, 100, 50, 50)]
    assert in_place(boxes) == [15] * 3


# ----------------------------------------------------------------------------------------------------------- two classes


def twice(equal, other=0, own=100, both=0):
    """Whether detections of one category are named that are written again under another, with their score or with another
    score; as many of each are there. Of 50 objects of the second so many are labelled as both.
    """
    first, second = varied(250, 1, seed=1)[:own], varied(250, 2, seed=2)[: own - equal - other]
    again = first[: equal + other] + np.array([0, 1, *[0] * 5])
    again[equal:, 6] /= 2
    truth = varied(100, 1, seed=3)[:, :6]
    more = varied(50, 2, seed=4)[:, :6]
    more[:both] = truth[:both] + np.array([0, 1, *[0] * 4])
    made = codes_of(facts_of([*truth, *more], [*first, *second, *again], images=250))
    return "detections_of_two_classes" in made


def test_either_side_of_detections_of_two_categories():
    assert twice(10)
    assert not twice(9)
    assert twice(10, own=200)
    assert not twice(10, own=201)  # less than one in twenty
    assert twice(10, other=9)
    assert not twice(10, other=10)  # of boxes of two categories so many have equal scores by chance
    assert twice(10, both=4)
    assert not twice(10, both=5)  # a tenth of the objects have both categories
