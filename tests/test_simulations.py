"""A glance at the simulations of docs/statistics.md: the same code on a few data sets of unkind worlds."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import simulate_coverage

from detmap import statistics

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("name", ["one-class-20", "near-zero-20", "near-one", "twenty-classes-20"])
def test_equal_models_are_seldom_called_different(name):
    found = simulate_coverage.equal_models(name, 99, range(40))
    overall, categories, _, _ = zip(*found, strict=True)
    assert sum(overall) <= 7  # of 40 at 5 %: more happens once in 1,500 times
    assert sum(categories) <= 7


def test_what_differs_is_found_and_what_does_not_is_not():
    found = simulate_coverage.equal_models("one-class-differs", 999, range(6))
    assert sum(differs for _, _, _, differs in found) >= 2
    assert sum(others for _, others, _, _ in found) <= 2


def test_intervals_hold_what_they_are_of():
    found = simulate_coverage.coverage("one-class", 200, range(30))
    value, ends, change, change_ends, _ = (np.stack(column) for column in zip(*found, strict=True))
    for values, limits in ((value, ends), (change, change_ends)):
        truth = values.mean(axis=0)
        held = ((limits[..., 0] <= truth) & (truth <= limits[..., 1])).mean(axis=0)
        assert held.min() >= 0.8
    lines = simulate_coverage.report_coverage("one-class", found)
    assert len(lines) == len(statistics.metric_names(simulate_coverage.PROTOCOL))


def test_power_is_that_of_a_plain_test():
    both = simulate_coverage.power("one-class", 99, range(3))
    assert [ours for ours, _ in both] == [plain for _, plain in both]


def test_shares_are_written_with_their_error():
    assert simulate_coverage.share([1, 0, 1, 1]) == "75.0 ± 42.4"
    assert simulate_coverage.share([float("nan")]) == "–"
    assert simulate_coverage.held(np.ones(3), np.full((3, 2), np.nan)) == "none shown"
