"""Either side of each limit of sides that were scaled about their top left corner, in numbers written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits_agreement import compared
from test_checks_parts import iou

from detmap.checks import uneven
from detmap.checks.agreement import Agreement, Nearest
from detmap.checks.inputs import overlaps
from detmap.checks.rates import Division, Order, Part
from detmap.checks.resized import resized_sides


class Found(SimpleNamespace):
    """The detections of a check without a file."""

    def __len__(self):
        return len(self.boxes)

    def records(self, rows):
        return {}


def named(larger, corner=0.0, rest=None):
    """Whether sides of detections are said to be scaled, if they are to be multiplied by exp(`larger`), of shape (n, 2), to
    be those of objects, and corners lie off by a share of the object's width. With `rest`, these detections are a part, and
    the sides of as many others are to be multiplied by exp(`rest`).
    """
    larger = np.asarray(larger, float)
    every = larger if rest is None else np.concatenate([larger, np.full(larger.shape, rest)])
    true = np.tile([100.0, 100, 50, 80], (len(every), 1))
    own = np.concatenate([true[:, :2], true[:, 2:] * np.exp(-every)], axis=1)
    own[: len(larger), 0] += np.asarray(corner) * 50
    place = np.arange(len(every))
    evidence = SimpleNamespace(found=Found(boxes=own), object_box=true, object_image=place, sure=place)
    evidence.pairs = place, place, overlaps(own, true)
    there = place < len(larger)
    part = None if rest is None else Part(there, "images 1 to 2", there)
    return resized_sides(evidence, part) is not None


def all_alike(width, height, count=40):
    return np.tile([width, height], (count, 1))


def test_either_side_of_sides_that_are_scaled_enough():
    """By a logarithm of 0.08 in width and in height, above or below that of others."""
    assert named(all_alike(0.0801, 0.0801))
    assert not named(all_alike(0.0799, 0.0801))
    assert not named(all_alike(0.0801, 0.0799))
    assert named(all_alike(-0.0801, -0.0801))
    assert not named(all_alike(-0.0799, -0.0801))
    assert named(all_alike(0.1, 0.1), rest=0.0199)
    assert not named(all_alike(0.1, 0.1), rest=0.0201)


def test_either_side_of_the_number_and_overlap_of_scaled_boxes():
    """20 detections of a part, and 20 others, which overlap their objects by 0.15."""
    assert named(all_alike(0.3, 0.3, 20))
    assert not named(all_alike(0.3, 0.3, 19))
    assert named(all_alike(0.3, 0.3, 20), rest=0.0)
    assert not named(all_alike(0.3, 0.3, 19), rest=0.0)
    half = -np.log(0.15) / 2
    assert named(all_alike(half - 1e-6, half - 1e-6))
    assert not named(all_alike(half + 1e-6, half + 1e-6))


@pytest.mark.parametrize(("spread", "said"), [(0.134, True), (0.135, False)])
def test_either_side_of_sides_that_differ_by_more_than_their_error(spread, said):
    """Of 25 boxes 16 are off the median of 0.3 by some spread, which is their median deviation. Six standard errors are
    6 * 1.2533 * 1.4826 / 5 = 2.23 of it.
    """
    assert named(0.3 + spread * np.repeat([[-1.0], [0.0], [1.0]], [8, 9, 8], axis=0) * [1, 1]) is said
    assert named(0.3 + spread * np.repeat([[-1.0], [0.0], [1.0]], [8, 9, 8], axis=0) * [0, 1]) is said


@pytest.mark.parametrize(("factor", "corner", "said"), [(0.92, 0.263, True), (0.92, 0.264, False)])
def test_either_side_of_overlaps_that_rise_enough(factor, corner, said):
    """Sides times 0.92, and corners off by a quarter of the width to the left or to the right: the median overlap rises by
    0.05 with sides divided by 0.92.
    """
    true, off = [100, 100, 50, 80], [corner * 50, -corner * 50]
    before, after = (
        np.mean([iou(true, [100 + by, 100, 50 * times, 80 * times]) for by in off]) for times in (factor, 1)
    )
    assert after - before == pytest.approx(0.05, abs=2e-4)
    assert bool(after - before >= 0.05) is said
    larger = -np.log(factor)
    assert named(all_alike(larger, larger), corner * np.tile([-1, 1], 20)) is said


@pytest.mark.parametrize(("corner", "said"), [(0.0526, True), (0.0527, False)])
def test_either_side_of_overlaps_that_reach_those_of_others(corner, said):
    """Corners off by c of the width leave an overlap of (1 - c) / (1 + c), 0.9 for c = 1 / 19; that of others is 1."""
    assert ((1 - corner) / (1 + corner) >= 0.9) is said
    off = corner * np.tile([-1, 1], 20)
    assert named(all_alike(0.3, 0.3), off, rest=0.0) is said
    assert named(all_alike(0.3, 0.3), off)


def part_of(monkeypatch, small, count):
    """The images of the part that is compared if the images `small` have the smallest detections, and the images that count
    as those of the smallest.
    """
    image = np.arange(count)
    side = np.where(np.isin(image, small), 10.0, 50.0) + np.random.default_rng(0).permutation(count) / 1000
    own, true = (np.stack([0 * side, 0 * side, sides, sides], axis=1) for sides in (side, 0 * side + 50))
    asked = []

    class Parts(Division):
        def unlike(self, image, bad, *given):
            asked.append(bad)
            return super().unlike(image, bad, *given)

    evidence = SimpleNamespace(
        object_image=image, object_label=0 * image, object_box=true, found=Found(boxes=own), images=count, frames=1.0,
        division=Parts(image, [Order("ids", image)], []),
    )  # fmt: skip
    monkeypatch.setattr(uneven, "resized_sides", lambda evidence, part: part)
    made = uneven.resized(evidence, image, image)
    return np.flatnonzero(made.images).tolist(), np.flatnonzero(asked[-1]).tolist()


@pytest.mark.parametrize("small", [89, 90, 91])
def test_three_of_ten_images_are_those_of_the_smallest_detections(monkeypatch, small):
    first = [*range(60), *(299 - 3 * np.arange(small - 60)).tolist()]
    flagged = part_of(monkeypatch, first, 300)[1]
    assert len(flagged) == 90
    assert len(set(flagged) & set(first)) == min(small, 90)


@pytest.mark.parametrize(
    ("between", "behind", "whole"), [(20, 21, True), (20, 20, False), (43, 45, False), (43, 46, True)]
)
def test_either_side_of_the_gap_in_a_part_with_scaled_sides(monkeypatch, between, behind, whole):
    """50 images with small detections, a gap, and again some with. Each of these weighs log((1 - 0.7 * 0.4) / 0.3) = 0.8755
    for the part, and each of the gap log(0.4) = -0.9163 against it.
    """
    small = np.concatenate([np.arange(50), 50 + between + np.arange(behind)])
    assert bool(behind * np.log(0.72 / 0.3) > -between * np.log(0.4)) is whole
    apart = 399 - 3 * np.arange(120 - small.size)
    images, flagged = part_of(monkeypatch, [*small, *apart], 400)
    assert images == (list(range(50 + between + behind)) if whole else small.tolist())
    assert flagged == sorted([*small, *apart])


@pytest.mark.parametrize(("corner", "alike", "said"), [(0.0999, 40, True), (0.1001, 40, False), (0.05, 39, False)])
def test_either_side_of_sides_of_objects_with_the_same_corner(corner, alike, said):
    """Of 100 detections on no object, some have about the same ratio of sides to those of the nearest object."""
    ratio = np.full(100, np.log(2.0))
    ratio[alike:] += np.where(np.arange(100 - alike) % 2 == 0, 0.16, -0.16)
    true = np.tile([100.0, 100, 80, 50], (100, 1))
    own = np.concatenate([true[:, :2] + [80 * corner, 0], true[:, 2:] / np.exp(ratio)[:, None]], axis=1)
    near = Nearest(np.full(100, 0.25), np.arange(100))
    made = compared(100, boxes=own, plain=near, truth=SimpleNamespace(boxes=true))
    sides = Agreement._sides(made, own)
    assert (sides is not None) is said
    if said:
        assert sides == pytest.approx([2, 2])
