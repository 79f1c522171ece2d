"""`detmap check` on detections of another ground truth: that they do not agree is said, and no way in which they would."""

from __future__ import annotations

import numpy as np
import pytest
import unrelated

import detmap
from detmap.checks import CODES, check


def report_of(truth, found):
    return check(detmap.GroundTruth.from_arrays(**truth), detmap.Detections.from_arrays(**found))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_reading_makes_unrelated_files_agree(first):
    """Not one of many seeds, sizes and kinds brings a finding that says how boxes, ids or classes are meant."""
    assert set(CODES) > unrelated.CLAIMS
    for seed in range(first, first + 20):
        said = set(report_of(*unrelated.pair(seed)).codes)
        assert not said & unrelated.CLAIMS, seed


def test_detections_within_a_square_are_not_of_swapped_axes():
    """They reach beyond the lower edge of wide images alone, and would not if x and y were swapped: that is no proof."""
    rng = np.random.default_rng(0)
    ids = np.arange(200)
    truth = {
        "image_ids": np.repeat(ids, 6),
        "category_ids": np.ones(1200, int),
        "boxes": np.c_[rng.random((1200, 2)) * [500, 400], rng.uniform(10, 80, (1200, 2))],
        "images": ids,
        "categories": [1],
        "image_sizes": [(480, 640)] * 200,
    }
    found = {
        "image_ids": np.repeat(ids, 40),
        "category_ids": np.ones(8000, int),
        "boxes": np.c_[rng.random((8000, 2)) * [180, 330], rng.uniform(1, 300, (8000, 2))],
        "scores": rng.random(8000),
    }
    said = set(report_of(truth, found).codes)
    assert "no_agreement" in said
    assert not said & unrelated.CLAIMS


def test_labels_of_chance_are_no_permutation():
    """Boxes that agree, with labels that say nothing, of a class that is rare on the other side: none is the other."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        boxes = np.c_[rng.random((60, 2)) * 500, rng.uniform(20, 90, (60, 2))]
        truth = {
            "image_ids": np.arange(60),
            "category_ids": 1 + (rng.random(60) < 0.85),
            "boxes": boxes,
            "categories": [1, 2],
        }
        found = {
            "image_ids": np.arange(60),
            "category_ids": 1 + (rng.random(60) < 0.15),
            "boxes": boxes + 1.0,
            "scores": rng.random(60),
        }
        said = set(report_of(truth, found).codes)
        assert not said & unrelated.CLAIMS, seed
