"""What single comparisons and constants of the checks decide, each in numbers written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import codes, side

from detmap.checks import boxes, changes, leakage, limits, scores
from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence, _bounds
from detmap.checks.findings import Finding


@pytest.mark.parametrize(("sides", "beyond"), [((49.0, 400.0), (20.0, 48.0)), ((10.0, 49.0), (50.0, 90.0))])
def test_an_object_at_a_limit_of_size_is_not_beyond(monkeypatch, sides, beyond):
    """Of detections and of 200 objects one has a side of exactly 49, 60 other objects are smaller, or larger."""

    def squares(values):
        return np.c_[np.zeros((values.size, 2)), values, values]

    own = np.concatenate([[49.0], np.geomspace(49, 56, 40), np.geomspace(43, 49, 40), np.geomspace(*sides, 900)])
    own = own[(own >= sides[0]) & (own <= sides[1])]
    true = np.concatenate([[49.0], np.linspace(*beyond, 60), np.geomspace(*sides, 139)[1:-1]])
    nowhere = np.full((2000, 2), np.nan)
    found, truth = side(squares(own), None, nowhere[: own.size]), side(squares(true), None, nowhere[: true.size])
    truth.reach, truth.whole = np.zeros(true.size), np.zeros(true.size, bool)
    monkeypatch.setattr(limits.strays, "strays", lambda side: None)
    rows = np.arange(true.size)
    evidence = SimpleNamespace(detections=np.arange(own.size), found=found, truth=truth, objects=rows, classes=1)
    assert [one.count for one in limits._sizes(Facts(None), evidence)] == [60]


@pytest.mark.parametrize(
    ("stays", "frames"),
    [((0.9, 0.5), 1), ((0.75, 0.51), 4), ((0.8, 0.4), 1), ((0.75, 0.25), 3), ((1.0, 1.0), 50), ((0.0, 0.0), 1)],
)
@pytest.mark.parametrize(("images", "far"), [(60, 30), (61, 30), (19, 10), (2, 10)])
def test_frames_of_a_video_by_the_objects_that_stay(stays, frames, images, far):
    """A share of the objects is in place on the next image, and another one half of all images later: cars that are parked,
    or that drive. Of those that are not the same two thirds stay, if one in four is in place anyway.
    """
    evidence = SimpleNamespace(_stays=lambda step: {1: stays[0], far: stays[1]}[step], images=images)
    assert Evidence.frames.func(evidence) == pytest.approx(frames)


def test_an_order_by_first_records_puts_empty_images_behind_the_one_before():
    """Images 1 and 3 have no detection, and 0 is behind 2; where 0 has none either, both empty ones come first."""
    for image, order in (([2, 2, 4, 0], [2, 3, 4, 0, 1]), ([2, 2, 4], [0, 1, 2, 3, 4])):
        on = SimpleNamespace(images=SimpleNamespace(names=None))
        sides = [SimpleNamespace(image=np.array(one), on=on, inspected=None) for one in (image, [0, 1, 0, 1, 0, 1])]
        evidence = SimpleNamespace(found=sides[0], truth=sides[1], images=5)
        ((says, place),) = Evidence._other_orders(evidence)
        assert (says, np.argsort(place).tolist()) == ("the file of detections", order)


def test_parts_that_are_known_leave_out_a_category_or_all():
    images = np.arange(3) == 1
    image, label = np.array([0, 1, 1, 2]), np.array([2, 2, 0, 0])
    for of, left in ((2, [True, False, True, True]), (None, [True, False, False, True])):
        assert Facts.unreported(SimpleNamespace(parts=[(images, of)]), image, label).tolist() == left


@pytest.mark.parametrize(("wide", "beside", "said"), [(47, 51, 47), (46, 51, None), (47, 50, None)])
def test_either_side_of_a_gap_of_scores(wide, beside, said):
    """51 scores on either side, a step apart, and between them a gap in which 47 more would have been, as 14 / 0.3."""
    values = np.concatenate([np.arange(51), 50 + wide + np.arange(beside)]) / 1024
    made = scores.gap(values)
    assert (made and (made[0] * 1024, made[1] * 1024, round(made[2]))) == (said and (50, 50 + said, said))


def test_a_finding_as_plain_values_holds_names_without_quotes():
    records = (3, "000012.jpg", "x" * 500)
    made = Finding(code="c", severity="note", count=1, unit="image", says="", effect="", remedy="", records=records)
    number, name, long = made.to_dict()["records"]
    assert (number, name) == (3, "000012.jpg")
    assert long.startswith("xxx")
    assert len(long) < 100


@pytest.mark.parametrize(("apart", "said"), [(0.01, [0]), (np.nextafter(0.01, 1), [])])
def test_either_side_of_images_of_equal_objects(apart, said):
    """Four objects whose upper edges lie at the top, or 0.01 of the height below it."""
    corners = np.array([[0.1, 0.0, 0.3, 0.9], [0.2, 0.0, 0.5, 0.8], [0.3, 0.0, 0.8, 0.7], [0.4, 0.0, 0.9, 0.6]])
    none, start, stop = np.zeros(4, int), np.array([0]), np.array([4])
    moved = corners + np.array([0, apart, 0, 0])
    sides = [leakage.Layout(none, none, one, start, stop) for one in (corners, moved)]
    assert list(leakage._by_objects(*sides, False)) == said


class Records(SimpleNamespace):
    """A side with a length."""

    def __len__(self):
        return self.image.size


def turned(on, agreement=None):
    """What is said of objects on images 0 to 9 that fit once x and y are swapped, with detections on some images."""
    truth = Records(
        **{**vars(side(image=np.repeat(np.arange(10), 3), count=20)), "role": "ground_truth", "unit": "object"}
    )
    truth.on.images.ids = np.arange(20)
    found = Records(image=np.array(on), reach=np.zeros(len(on)), role="detections")
    facts = SimpleNamespace(truth=truth, found=found, sides=[truth, found], causes=set(), agreement=agreement)
    far = np.ones(30, bool)
    return codes(boxes._turned(facts, truth, far, far))


def test_sizes_of_images_are_swapped_where_nothing_says_otherwise():
    assert turned([15, 16]) == ["image_sizes_swapped"]
    assert turned([0, 16]) == ["axes_swapped"]  # a detection lies within its image


@pytest.mark.parametrize(
    ("swapped", "right", "left", "on", "said"),
    [
        (5, 0, 5, [15, 16], "turned_boxes"),
        (5, 5, 0, [0, 16], "turned_boxes"),
        (5, 4, 4, [0, 16], "axes_swapped"),
        (0, 1, 0, [0, 16], "turned_boxes"),
        (0, 0, 0, [15, 16], "image_sizes_swapped"),
        (0, 0, 0, [0, 16], None),
    ],
)
def test_boxes_are_turned_if_a_turn_finds_as_many_objects(swapped, right, left, on, said):
    found_by = {changes.swapped_axes: swapped, changes.turned_right: right, changes.turned_left: left}
    agreement = SimpleNamespace(borne_out=lambda side, rows, change: found_by[change])
    assert turned(on, agreement) == [said] * (said is not None)


@pytest.mark.parametrize("values", [3, 700, 10**6])
def test_detections_by_score_stay_in_the_order_of_the_file_where_scores_are_equal(values):
    """As a stable sort has them; many, few or no ties are sorted in different ways."""
    scores = np.random.default_rng(0).integers(values, size=50) / 7 - 1
    evidence = SimpleNamespace(scores=scores, detections=np.arange(50)[::-1])
    assert Evidence.by_score.func(evidence).tolist() == sorted(range(50), key=lambda at: -scores[::-1][at])


@pytest.mark.parametrize("count", [20, 10**6])
def test_equals_of_numbers_are_found_by_counting_and_by_search(count):
    ascending, values = np.array([1, 1, 4, 7, 7, 7]), np.array([0, 1, 4, 5, 7, 19])
    starts, stops = _bounds(ascending, values, count)
    assert starts.tolist() == [0, 0, 2, 3, 3, 6]
    assert stops.tolist() == [0, 2, 3, 3, 6, 6]
