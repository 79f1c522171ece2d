"""Ranges of images between which a defect goes on are one range."""

from __future__ import annotations

import numpy as np
import pytest

from detmap.checks.rates import Range, joined


def spread(count, bad):
    """Flags of which some are set, at equal distances."""
    out = np.zeros(count, bool)
    out[np.linspace(0, count - 1, bad).round().astype(int) if bad else []] = True
    return out


def between(bad, size=100, rest=80):
    """The ranges that are left of two, of 72 % bad units, where some of the units between them are bad."""
    flags = np.concatenate([spread(1000, rest), spread(400, 288), spread(size, bad), spread(100, 72)])
    given = [Range(1000, 1400, 90.0), Range(1400 + size, 1500 + size, 20.0)]
    return joined(given, flags)


def test_either_side_of_two_ranges_that_are_one():
    """Of the units in the ranges 0.72 are bad, of others 0.081: (0.72 / 0.081) ** k exceeds (0.92 / 0.28) ** (100 - k)."""
    assert between(36) == [Range(1000, 1600, 110.0)]
    assert between(35) == [Range(1000, 1400, 90.0), Range(1500, 1600, 20.0)]


def test_ranges_that_stay_apart_keep_their_order():
    flags = np.concatenate([spread(100, 90), np.zeros(500, bool), spread(300, 280), np.zeros(100, bool)])
    given = [Range(600, 900, 300.0), Range(0, 100, 80.0)]
    assert joined(given, flags) == given


@pytest.mark.parametrize("size", [0, 1])
def test_ranges_side_by_side(size):
    made = between(size, size)
    assert len(made) == (1 if size else 2)


def test_three_ranges_of_which_two_are_one():
    flags = np.concatenate([spread(100, 80), spread(40, 30), spread(100, 80), np.zeros(400, bool), spread(100, 80)])
    given = [Range(140, 240, 50.0), Range(640, 740, 49.0), Range(0, 100, 48.0)]
    assert joined(given, flags) == [Range(0, 240, 98.0), Range(640, 740, 49.0)]
