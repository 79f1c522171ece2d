"""Detections at the very score or cap of a diagnosis."""

from __future__ import annotations

import math

import numpy as np
import pytest

import detmap
from detmap.diagnostics import _tidecv


def scored(score):
    """The diagnosis, from this score on, of an image with 3 objects: one is found, 2 detections of 0.5 lie elsewhere, and
    one of 0.5 lies on an object of the other class."""
    objects = np.array([[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10]], float)
    truth = detmap.GroundTruth.from_arrays(image_ids=[7] * 3, category_ids=[1, 1, 2], boxes=objects)
    found = detmap.Detections.from_arrays(
        image_ids=[7] * 4,
        category_ids=[1, 1, 2, 1],
        boxes=np.concatenate([objects[:1], [[80, 0, 90, 10], [60, 0, 70, 10]], objects[2:]]),
        scores=[0.9, 0.5, 0.5, 0.5],
    )
    return detmap.diagnose(truth, found, score=score)


@pytest.mark.parametrize("part", ["confusion", "images", "suspects"])
def test_a_detection_of_the_score_counts(part):
    """As a score just below it, and otherwise than a score just above."""
    at, below, above = (scored(score).part(part) for score in (0.5, math.nextafter(0.5, 0.0), math.nextafter(0.5, 1.0)))
    assert at.tables == below.tables != above.tables
    plain, other = ({name: value for name, value in one.items() if name != "score"} for one in (at, below))
    assert plain == other


def test_false_positives_of_images_are_those_of_the_score():
    rows = [scored(score).part("images").tables["most false positives"] for score in (0.5, 0.6)]
    assert [[row["false positives"] for row in every] for every in rows] == [[3], []]


@pytest.mark.parametrize("count", [99, 100, 101, 250])
def test_tidecv_takes_the_best_100_detections_of_an_image(count):
    """Of two images, beside one of few detections; of equal scores the first rows are taken."""
    rng = np.random.default_rng(count)
    image = rng.permutation(np.repeat([0, 1, 3], [count, 40, count]))
    scores = rng.integers(0, 4, image.size) / 4
    wanted = [
        row
        for of in (0, 1, 3)
        for row in sorted(np.flatnonzero(image == of).tolist(), key=lambda row: (-scores[row], row))[:100]
    ]
    assert _tidecv._within_cap(image, scores).tolist() == sorted(wanted)
