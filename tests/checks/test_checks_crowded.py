"""Crowded images without detections: numbers counted again, and either side of each limit."""

from __future__ import annotations

import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_parts import planted

from detmap.checks import coverage
from detmap.checks.data_statistics import number
from detmap.checks.rates import Part


@pytest.mark.parametrize("share", [0.02, 0.1])
@pytest.mark.parametrize("kind", ["crowded", "sparse", "one class"])
def test_crowded_images_are_counted_again(kind, share):
    data, made = planted("time_out_on_crowded_images", kind, share)
    one = made["crowded_images_lost"]
    objects = Counter(o["image_id"] for o in data.truth["annotations"])
    held = Counter(d["image_id"] for d in data.found)
    lost = [count for image, count in objects.items() if not held[image]]
    others = [count for image, count in objects.items() if held[image]]
    assert one.count == len(lost)
    assert f": {number(np.mean(lost))} in the mean, where others hold {number(np.mean(others))}" in one.says
    limit = re.search(r"no other image has more than (\d+) detections", one.says)
    assert limit is None or int(limit[1]) == max(held[image] for image in objects)
    assert "missing_shard" not in made


def test_a_lost_shard_is_not_of_crowded_images():
    for name, share in (("last_batch_dropped", 0.1), ("every_other_shard_missing", 0.5)):
        _, made = planted(name, "crowded", share)
        assert "missing_shard" in made
        assert "crowded_images_lost" not in made


def crowded(lost, others, counts=None, together=None, schema=False):
    """What is said of images without detections by their objects, and those of others, which have `counts` of detections."""
    objects = np.array([*lost, *others])
    empty = np.arange(objects.size) < len(lost)
    counts = np.zeros(len(others), int) if counts is None else np.array(counts)
    part = None
    if together is not None:
        there = np.arange(objects.size) < together
        part = Part(there, "images", there)
    facts = SimpleNamespace(schema=schema, gathered=lambda *given: part)
    return coverage._crowded(facts, empty, ~empty, objects, np.append(np.zeros(len(lost), int), counts))


def test_either_side_of_the_objects_of_crowded_images():
    others = [9, 11] * 100
    assert crowded([15, 15, 15], others) == "15 in the mean, where others hold 10"
    assert crowded([15, 15, 14], others) == ""
    assert crowded([21, 31, 21, 31], others)  # 16 more, with a standard error of 2.9
    assert crowded([20, 32, 20, 32], others) == ""  # of 3.5
    assert crowded([15, 15, 15], others, schema=True) == ""
    assert crowded([15], others) == ""


def test_crowded_images_that_are_together_are_a_shard():
    others = [9, 11] * 100
    assert crowded([16] * 9, others, together=10)
    assert crowded([16] * 10, others, together=10) == ""
    assert crowded([16] * 10, others, together=300)


@pytest.mark.parametrize(
    ("near", "behind", "said"), [(12, 24, True), (11, 0, False), (12, 25, False), (30, 60, True), (30, 61, False)]
)
def test_either_side_of_the_most_detections_of_others(near, behind, said):
    """So many images of 88 to 100 detections, and so many of 77 to 86."""
    counts = [100] + [88] * (near - 1) + [86] * behind + [20] * (200 - near - behind)
    assert ("; no other image has more than 100 detections" in crowded([15] * 3, [9, 11] * 100, counts)) is said
