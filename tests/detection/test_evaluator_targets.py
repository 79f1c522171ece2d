"""Ids of images that targets have themselves."""

from __future__ import annotations

import numpy as np
import pytest

from detmap import Evaluator, InputError

PREDICTION = {"boxes": [[0, 0, 9, 9]], "scores": [0.8], "labels": [1]}
TARGET = {"boxes": [[0, 0, 10, 10]], "labels": [1]}


def seen(*batches, **options):
    evaluator = Evaluator(**options)
    for targets in batches:
        evaluator.update([PREDICTION] * len(targets), targets)
    return evaluator.compute().tally.image_ids.tolist()


def test_targets_say_which_images_they_are_of():
    batches = [[TARGET | {"image_id": 7}, TARGET | {"image_id": np.array([3])}], [], [TARGET | {"image_id": 5}]]
    assert seen(*batches) == [3, 5, 7]
    assert seen([TARGET | {"image_id": 5}], [TARGET | {"image_id": 5}], duplicates="first") == [5]
    assert seen([TARGET], [TARGET]) == [0, 1]


def test_one_image_and_given_ids():
    evaluator = Evaluator()
    evaluator.update(PREDICTION, TARGET | {"image_id": "a"})
    evaluator.update(PREDICTION, TARGET | {"image_id": "a"}, image_ids="b")
    assert evaluator.compute().tally.image_ids.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("batches", "problem"),
    [
        ([[TARGET | {"image_id": 5}], [TARGET | {"image_id": 5}]], "seen before"),
        ([[TARGET | {"image_id": 5}, TARGET]], "field 'image_id': 1 of 2 targets have none; give image_ids"),
        ([[TARGET], [TARGET | {"image_id": 5}]], "with every update, or with none"),
        ([[TARGET | {"image_id": 1.5}]], "image_ids"),
    ],
)
def test_refusals(batches, problem):
    with pytest.raises(InputError, match=problem):
        seen(*batches)
