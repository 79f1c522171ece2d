"""Shards that each number their images from 1, and are joined: what is said, and either side of each limit."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import planting
import pytest
from test_checks_limits import codes, side
from test_checks_parts import iou

import detmap
from detmap.checks import merged
from detmap.checks.agreement import Agreement, Nearest


def scene(seed, kind, by=1):
    made = planting.scene(seed, kind)
    made.ids = by * np.arange(1, len(made.ids) + 1)
    return made


@pytest.mark.parametrize(("kind", "share", "by"), [("sparse", 0.1, 1), ("crowded", 0.5, 1), ("one class", 0.02, 3)])
def test_objects_of_two_shards_on_the_same_images_are_counted_again(kind, share, by):
    made = scene(0, kind, by)
    count = len(made.ids)
    first = count - round(share * count)
    made.image = np.where(made.image >= first, made.image - first, made.image)
    moved = set(np.flatnonzero(planting.scene(0, kind).image >= first).tolist())
    data = made.data()
    (one,) = detmap.check(data.truth, data.found).findings
    assert one.code == "image_ids_shifted"
    assert f"objects are off by a constant: each + {by * first:,} is the one that is meant; on images" in one.says
    low, high, start, stop = map(
        int, re.search(r"images (\d+) to (\d+) lie those of (\d+) to (\d+), which", one.says).groups()
    )
    assert (start - low, stop - high) == (by * first,) * 2
    assert start <= by * (first + 5)
    assert stop >= by * (count - 4)
    found = {}
    for d in data.found:
        found.setdefault(d["image_id"], []).append(d["bbox"])
    under = {
        at
        for at in moved
        for box in found.get(data.truth["annotations"][at]["image_id"] + by * first, [])
        if iou(data.truth["annotations"][at]["bbox"], box) >= 0.5
    }
    assert 0.7 * len(under) <= one.count <= len(under)
    assert len(moved & set(one.records)) >= 9  # by chance a detection lies on another object of its category


def test_objects_of_a_shard_whose_ids_differ_by_no_constant():
    made = scene(1, "one class")
    made.ids = np.sort(np.random.default_rng(0).choice(9000, 500, replace=False))
    made.image = np.where(made.image >= 400, made.image - 400, made.image)
    data = made.data()
    (one,) = detmap.check(data.truth, data.found).findings
    assert one.code == "image_ids_positions"
    assert f"objects are places in the list of images: counted from image {made.ids[0]} again from" in one.says


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_detections_of_two_shards_on_the_same_images_are_told(share):
    """Also if the shards have as many images: by chance detections were compared with the right images, too."""
    made = scene(0, "one class")
    first = 500 - round(share * 500)
    made.d_image = np.where(made.d_image >= first, made.d_image - first, made.d_image)
    made.detections(np.argsort(made.d_image, kind="stable"))
    data = made.data()
    (one,) = detmap.check(data.truth, data.found).findings
    assert one.code == ("image_ids_shifted" if share == 0.5 else "image_ids_positions")


def test_images_that_are_compared_for_chance_are_no_others():
    whole = Agreement(None, side())
    whole._full = np.array([1, 2, 4, 8])
    for part, others in ((2, [8, 1, 2, 4]), (5, [2, 4, 8, 1])):
        assert whole.others(np.array([1, 2, 4, 8]), part).tolist() == others
    assert whole.others(np.array([1, 2, 4, 8]), 2, np.array([8, 8, 2, 1])).tolist() == [1, 1, 4, 4]


def of_bare(fits, beside=0, labels=True, causes=(), objects=False, lost=0):
    """What is said of 40 images without objects (or with one) with a confident detection each, of which so many fit an
    object 60 images ahead, and so many one 59 images ahead; `lost` of the images with objects have no detection.
    """
    place = np.arange(40)
    other = np.where(place < fits, place, np.where(place < fits + beside, place + 1, -1))
    held = other[other >= 0]
    at = np.flatnonzero(other >= 0)
    box = np.stack([200.0 * place, 0 * place, 100 + 0 * place, 100 + 0 * place], axis=1)
    categories = SimpleNamespace(ids=np.arange(2), codes=np.zeros(held.size + 40 * objects, int))
    more = np.arange(60, 100) if objects else held[:0]
    truth = SimpleNamespace(
        image=np.concatenate([held, more]), crowd=np.zeros(held.size + more.size, bool), unit="object", role="ground_truth",
        boxes=np.concatenate([box[at], box[: more.size] + 500]), table=SimpleNamespace(categories=categories),
        on=SimpleNamespace(images=SimpleNamespace(ids=np.arange(1, 101))), records=lambda rows: {},
    )  # fmt: skip
    own = SimpleNamespace(ids=np.arange(2) + (0 if labels else 5), codes=np.zeros(40, int))
    found = SimpleNamespace(
        image=np.concatenate([60 + place, np.arange(lost, 60)]), boxes=box, table=SimpleNamespace(categories=own)
    )
    none = Nearest(np.zeros(40), np.full(40, -1))
    near = Nearest(np.where(place < fits, 1.0, 0), np.minimum(place, held.size - 1))
    whole = SimpleNamespace(
        truth=truth, found=found, rows=place, image=60 + place, plain=none,
        nearest=lambda image, boxes: Nearest(near.overlap[image], near.object[image]),
    )  # fmt: skip
    facts = SimpleNamespace(agreement=whole, causes=set(causes))
    made = list(merged.check(facts))
    assert len(facts.causes) == len(made) + len(causes)
    return codes(made)


def test_either_side_of_objects_on_images_of_another_shard():
    assert of_bare(20) == ["image_ids_shifted"]
    assert of_bare(19) == []
    assert of_bare(20, lost=10) == ["image_ids_shifted"]
    assert of_bare(20, lost=11) == []  # detections that were moved
    assert of_bare(24, beside=12) == ["image_ids_shifted"]
    assert of_bare(24, beside=13) == []  # objects of a video
    assert of_bare(40, labels=False) == []
    assert of_bare(40, causes=["a"]) == []
    assert of_bare(40, objects=True) == []
