"""Limits of size that detections of a part of the images have: numbers counted again, and either side of each limit."""

from __future__ import annotations

import copy
import re
from collections import defaultdict

import pytest
from test_checks_parts import iou, planted, scene, within

from detmap.checks import check

SIZES = {"area": lambda box: box[2] * box[3], "width": lambda box: box[2], "height": lambda box: box[3]}


@pytest.mark.parametrize("kind", ["crowded", "sparse", "one class"])
@pytest.mark.parametrize("name", ["large_objects_lost_on_a_shard", "small_objects_lost_on_a_shard"])
def test_limits_of_a_part_are_counted_again(name, kind):
    data, made = planted(name, kind, 0.5)
    one, there = made["sizes_cut"], within(made["sizes_cut"].says)
    size, word, limit = re.search(r": (\w+) (below|above) ([\d,.]+) on images", one.says).groups()
    own = [SIZES[size](d["bbox"]) for d in data.found if there(d["image_id"])]
    edge = min(own) if word == "below" else max(own)
    assert f"{edge:,.0f}" == limit if edge >= 100 else f"{edge:.3g}" == limit
    beyond = [
        o for o in data.truth["annotations"]
        if there(o["image_id"]) and (SIZES[size](o["bbox"]) < edge if word == "below" else SIZES[size](o["bbox"]) > edge)
    ]  # fmt: skip
    assert one.count == len(beyond)
    assert f", {sum(there(i['id']) for i in data.truth['images'])} images with {len(own):,} detections" in one.says
    assert not {"misplaced", "missing_shard", "undetected"} & set(made)


def cut(kept=None, lost=0.0, seed=0):
    """A scene whose detections with an area above 15,000 are missing on its first 100 images; elsewhere `kept` of them
    remain, or all. Of the other objects of the part the share `lost` has no detection.
    """
    data = copy.deepcopy(scene(seed, "crowded")).data()
    part = {one["id"] for one in sorted(data.truth["images"], key=lambda one: one["id"])[:100]}
    taken, objects = 0, defaultdict(list)
    for at, o in enumerate(data.truth["annotations"]):
        if o["image_id"] in part and at % 100 < 100 * lost:
            objects[o["image_id"]].append(o["bbox"])
    left = []
    for d in data.found:
        large = SIZES["area"](d["bbox"]) > 15_000
        taken += large and d["image_id"] not in part
        keep = kept is None or not large or taken <= kept
        keep &= not (large and d["image_id"] in part)
        if keep and not any(iou(d["bbox"], box) >= 0.5 for box in objects[d["image_id"]]):
            left.append(d)
    return [
        one.says for one in check(data.truth, left).findings if " on images " in one.says and one.code == "sizes_cut"
    ]


def test_objects_within_the_limit_are_found_as_elsewhere():
    assert len(cut()) == 1
    assert len(cut(lost=0.05)) == 1
    assert cut(lost=0.5) == []


def test_elsewhere_there_are_detections_beyond_the_limit():
    assert cut(kept=0) == []


def test_a_clean_scene_has_no_limit_in_a_part():
    for kind in ("crowded", "sparse", "one class"):
        data = scene(0, kind).data()
        assert not any(
            " on images " in one.says for one in check(data.truth, data.found).findings if one.code == "sizes_cut"
        )


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_labels_of_images_are_no_objects_beyond_a_limit(share):
    _, made = planted("labels_of_images_as_boxes", "crowded", share)
    assert "sizes_cut" not in made


def test_images_with_objects_beyond_the_limit_alone_are_not_lost():
    """Large detections are missing on all images, so that images with large objects alone are empty."""
    data = copy.deepcopy(scene(0, "sparse")).data()
    data.found = [d for d in data.found if SIZES["area"](d["bbox"]) < 15_000]
    large = {o["image_id"] for o in data.truth["annotations"] if SIZES["area"](o["bbox"]) >= 15_000}
    small = {o["image_id"] for o in data.truth["annotations"] if SIZES["area"](o["bbox"]) < 15_000}
    alone = sorted(large - small)[::2]
    data.found = [d for d in data.found if d["image_id"] not in alone]
    made = {one.code: one for one in check(data.truth, data.found).findings}
    assert "sizes_cut" in made
    assert "missing_shard" not in made
    assert made["images_without_detections"].count >= len(alone)
    data.found = [d for d in data.found if d["image_id"] not in sorted(small)[::5]]
    assert "missing_shard" in {one.code for one in check(data.truth, data.found).findings}
