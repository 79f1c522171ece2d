"""Scores that are reversed on some images: which images are looked at, and the scores that are meant."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import side

from detmap.checks.rates import Part
from detmap.checks.reversal import reversal_of


def reversal(values, turned, part=None, images=20, strange=0, rest=0.8):
    """What is said of scores, three on each image but the last, of which those of some images are reversed: AUCs are 0.1
    where most detections are of these, and 0.8 elsewhere. The first detections are of none of the images.
    """
    image = np.repeat(np.arange(images - 1), 3)
    image[:strange] = -1
    values = np.array(values, float)
    asked, ranked = [], []

    def ranked_of(rows):
        ranked.append(rows.tolist())
        return (0.1 if rows.size and np.isin(image[rows], turned).mean() > 0.5 else rest), 0.01

    def gathered(flags, known):
        asked.append((np.flatnonzero(flags).tolist(), np.flatnonzero(known).tolist()))
        there = np.isin(np.arange(images), part)
        return None if part is None else Part(there, "", there)

    agreement = SimpleNamespace(
        scores=values, found=SimpleNamespace(image=image), truth=SimpleNamespace(on=side(count=images).on),
        ranked_of=ranked_of,
    )  # fmt: skip
    made = reversal_of(agreement, gathered, lambda part: f"{part.images.sum()} images of a part")
    return made, asked, ranked


def scores_of(turned, low, high, images=20, others=None):
    """Scores around the middle of a range from `low` to `high`, far from it where they are reversed."""
    image = np.repeat(np.arange(images - 1), 3)
    spread = np.tile([-0.04, 0.0, 0.04], images - 1)
    place = np.where(np.isin(image, turned), 0.8, 0.2 if others is None else others) + spread
    place[-1] = 0.999
    return low + (high - low) * place


@pytest.mark.parametrize(("low", "high", "whole"), [(0, 1, 1), (0, 100, 100), (-5, 5, 0), (0, 1.1, 100)])
@pytest.mark.parametrize("upper", [True, False])
def test_scores_that_are_meant(low, high, whole, upper):
    """Scores are negated, or subtracted from 1 or 100; the images with high, or with low, mean scores are reversed."""
    turned = np.arange(6, 12)
    other = np.setdiff1d(np.arange(19), turned)
    values = scores_of(turned if upper else other, low, high)
    made, asked, ranked = reversal(values, turned)
    if whole == 100 and high < 50:
        assert made is None  # all are below the middle of percentages
        return
    assert asked[0] == ((turned if upper else other).tolist(), list(range(19)))
    assert len(asked) == (1 if upper else 2)
    assert made.images.tolist() == np.isin(np.arange(20), turned).tolist()
    assert (made.own, made.rest, made.says) == (0.1, 0.8, "on 6 images")
    inside = np.isin(np.repeat(np.arange(19), 3), turned)
    assert made.scores.tolist() == np.where(inside, whole - values, values).tolist()
    assert ranked[-2:] == [np.flatnonzero(inside).tolist(), np.flatnonzero(~inside).tolist()]


def test_a_part_is_tried_before_its_images():
    turned = np.arange(6, 12)
    values = scores_of(turned, 0, 1)
    made, _, _ = reversal(values, turned, part=range(5, 13))
    assert made.says == "8 images of a part"
    assert np.flatnonzero(made.images).tolist() == list(range(5, 13))
    made, _, ranked = reversal(values, turned, part=range(12, 19))
    assert made.says == "on 6 images"
    assert len(ranked) == 3


def test_detections_of_no_image_are_left_as_they_are():
    turned = np.arange(6)
    values = scores_of(turned, 0, 1)
    made, asked, _ = reversal(values, turned, strange=2)
    assert asked[0] == ([0, 1, 2, 3, 4, 5], list(range(19)))
    assert made.scores[:3].tolist() == [*values[:2], 1 - values[2]]
    assert reversal(values, turned, strange=57)[0] is None


def test_either_side_of_few_images_and_of_a_low_rest():
    assert reversal(scores_of(range(5), 0, 1), range(5))[0] is not None
    assert reversal(scores_of(range(4), 0, 1), range(4))[0] is None
    assert reversal(scores_of(range(19), 0, 1, others=0.5), range(19))[0] is None
    assert reversal(scores_of(range(6), 0, 1), range(6), rest=0.6)[0] is not None
    assert reversal(scores_of(range(6), 0, 1), range(6), rest=0.59)[0] is None
    values = scores_of(range(6), 0, 1)
    values[20] = np.inf
    assert reversal(values, range(6))[0] is None
    half = scores_of(range(6), 0, 1, others=0.5)  # mean scores in the middle are no high ones
    half[-1] = 0.54
    assert reversal(half, range(6))[1][0][0] == list(range(6))
