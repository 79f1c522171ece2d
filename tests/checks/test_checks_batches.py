"""Batches in reverse order: numbers counted again, and either side of each limit."""

from __future__ import annotations

import copy
import re
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_parts import iou, planted, scene, within

from detmap.checks import batches, check
from detmap.checks.rates import Order, Part


def confident(data):
    """As many of the best detections of each category as it has objects."""
    objects = Counter(o["category_id"] for o in data.truth["annotations"] if not o["iscrowd"])
    own = defaultdict(list)
    for d in sorted(data.found, key=lambda d: -d["score"]):
        if len(own[d["category_id"]]) < objects[d["category_id"]]:
            own[d["category_id"]].append(d)
    return [d for column in own.values() for d in column]


def recounted(data, one, mirrored):
    """Check the numbers of a finding, if the images at `mirrored` places hold the detections of the part."""
    ids = sorted(image["id"] for image in data.truth["images"])
    place, there = {image: at for at, image in enumerate(ids)}, within(one.says.partition(";")[2])
    objects = defaultdict(list)
    for o in data.truth["annotations"]:
        objects[place[o["image_id"]], o["category_id"]].append(o["bbox"])
    best = [d for d in confident(data) if there(d["image_id"])]
    counts = [
        sum(
            any(iou(d["bbox"], box) >= 0.5 for box in objects[to(place[d["image_id"]]), d["category_id"]]) for d in best
        )
        for to in (mirrored, lambda at: at)
    ]
    said = re.search(r"of ([\d,]+) confident .* there ([\d,]+) lie .* image, and ([\d,]+) on", one.says).groups()
    assert [int(number.replace(",", "")) for number in said] == [len(best), *counts]
    moved = {image for image in ids if there(image) and mirrored(place[image]) != place[image]}
    assert one.count == sum(d["image_id"] in moved for d in data.found)


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("kind", ["crowded", "sparse", "one class"])
def test_batches_in_reverse_order_are_counted_again(kind, share):
    data, made = planted("batches_in_reverse_order_on_a_shard", kind, share)
    one = made["batches_reversed"]
    rng = np.random.default_rng([0, 1])
    images = len(data.truth["images"])
    first, batch = int(rng.integers(images - max(round(share * images), 2) + 1)), int(rng.choice([8, 16, 32]))
    assert f"batches of {batch} images in the order of ids; images" in one.says
    recounted(data, one, lambda at: at + batch - 1 - 2 * ((at - first) % batch))
    assert "misplaced" not in made


def test_a_part_in_reverse_order_as_a_whole():
    data = copy.deepcopy(scene(0, "crowded")).data()
    ids = sorted(one["id"] for one in data.truth["images"])
    under = dict(zip(ids[100:260], ids[100:260][::-1], strict=True))
    for d in data.found:
        d["image_id"] = under.get(d["image_id"], d["image_id"])
    made = {one.code: one for one in check(data.truth, data.found).findings}
    one = made["batches_reversed"]
    assert ": the order of ids; images" in one.says
    recounted(data, one, lambda at: 359 - at)


def turned(monkeypatch, mirrored=40, own=0, by_chance=0, ahead=0, batch=8, count=160, shift=0):
    """What is said of `count` confident detections, one on each image, of which some lie on an object of the mirrored image,
    some on one of their own, some on one of a random image, and some on one of the image ten places ahead.
    """
    place = np.arange(count)
    to = place + batch - 1 - 2 * ((place - shift) % batch)
    rng = np.random.default_rng(0)
    pairs = [(at, int(to[at])) for at in rng.permutation(place).tolist() if 0 <= to[at] < count and to[at] != at][
        :mirrored
    ]
    pairs += [(at, at) for at in range(own)]
    pairs += [(at, int(other)) for at, other in rng.integers(count, size=(by_chance, 2)).tolist()]
    pairs += [(at, at + 10) for at in range(ahead)]
    one, other = np.unique(np.array(pairs), axis=0).T
    monkeypatch.setattr(batches, "_lying", lambda *given: (one, one, other))
    found = SimpleNamespace(image=place, records=lambda rows: {})
    evidence = SimpleNamespace(sure=place, found=found, division=SimpleNamespace(orders=[Order("ids", place)]))
    part = Part(np.ones(count, bool), "images", np.ones(count, bool))
    return [finding.says for finding in batches.turned(evidence, part)]


def test_either_side_of_the_detections_that_the_order_explains(monkeypatch):
    assert turned(monkeypatch, 20, count=80)
    assert not turned(monkeypatch, 19, count=80)  # fewer than twenty
    assert turned(monkeypatch, 32)
    assert not turned(monkeypatch, 31)  # less than a fifth
    assert turned(monkeypatch, 60, own=20)
    assert not turned(monkeypatch, 59, own=20)
    assert not turned(monkeypatch, 40, by_chance=8000)
    assert turned(monkeypatch, 60, ahead=45)
    assert not turned(monkeypatch, 60, ahead=46)


@pytest.mark.parametrize("step", [1, 2, 5])
def test_images_with_the_detections_of_another_one_at_one_distance(step):
    """Eight images are rotated: image n holds the detections of a later one."""
    data = copy.deepcopy(scene(0, "crowded")).data()
    ids = sorted(one["id"] for one in data.truth["images"])
    for count in (8, 40):
        made = copy.deepcopy(data.found)
        under = dict(zip(ids[100 : 100 + count], np.roll(ids[100 : 100 + count], step).tolist(), strict=True))
        for d in made:
            d["image_id"] = under.get(d["image_id"], d["image_id"])
        assert "batches_reversed" not in check(data.truth, made).codes


@pytest.mark.parametrize(("batches_with", "said"), [(7, True), (6, False)])
def test_either_side_of_the_batches_with_an_explained_detection(batches_with, said):
    """Of ten batches of 100 detections, each explained with a probability of a half."""
    explained = np.arange(500) % batches_with
    assert batches._even(np.repeat(np.arange(10), 100), explained) is said


@pytest.mark.parametrize("batch", [2, 5, 16, 128, 129])
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_batches_of_any_size_and_offset(monkeypatch, batch, shift):
    """Of more than 128 images none is tested."""
    says = turned(monkeypatch, 1200, batch=batch, shift=shift, count=1280)
    assert bool(says) is (batch <= 128)
    if says:
        assert f"batches of {batch} images in the order of ids" in says[0]
        place = np.arange(1280)
        moved = np.count_nonzero(place + batch - 1 - 2 * ((place - shift) % batch) != place)
        assert says[0].startswith(f"{moved:,} detections")


def test_shuffled_images_are_in_no_reverse_order():
    data = copy.deepcopy(scene(1, "crowded")).data()
    ids = sorted(one["id"] for one in data.truth["images"])
    under = dict(zip(ids[100:220], np.random.default_rng(0).permutation(ids[100:220]).tolist(), strict=True))
    for d in data.found:
        d["image_id"] = under.get(d["image_id"], d["image_id"])
    made = {one.code: one for one in check(data.truth, data.found).findings}
    assert "batches_reversed" not in made
    pairs, images = map(
        int, re.search(r"on (\d+) of (\d+) images with two or more confident", made["misplaced"].says).groups()
    )
    assert pairs >= 0.6 * images
