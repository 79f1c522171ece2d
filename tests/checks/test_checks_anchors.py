"""Boxes of a few sizes, as anchors have: numbers counted again, and either side of each limit."""

from __future__ import annotations

import copy
import re
from collections import Counter

import numpy as np
import pytest
from test_checks_parts import planted, scene, within

from detmap.checks import anchors, check


@pytest.mark.parametrize("kind", ["crowded", "sparse", "one class"])
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_anchors_are_counted_again(kind, share):
    data, made = planted("anchors_in_place_of_boxes_on_a_shard", kind, share)
    one = made["anchor_boxes"]
    there = within(one.says.partition(";")[2]) if ";" in one.says else lambda image: True
    held = Counter((d["bbox"][2], d["bbox"][3]) for d in data.found if there(d["image_id"]))
    sizes = int(re.search(r": (\d+) sizes", one.says)[1])
    assert one.count == sum(times for _, times in held.most_common(sizes))
    assert sizes <= 5
    step = int(re.search(r"centres on a grid of (\d+) pixels", one.says)[1])
    usual = dict(held.most_common(sizes))
    own = [d["bbox"] for d in data.found if there(d["image_id"]) and (d["bbox"][2], d["bbox"][3]) in usual]
    for axis in (0, 1):
        places = Counter((box[axis] + box[2 + axis] / 2) % step for box in own)
        assert places.most_common(1)[0][1] >= 0.99 * len(own)
        wider = Counter((box[axis] + box[2 + axis] / 2) % (2 * step) for box in own)
        assert wider.most_common(1)[0][1] < 0.99 * len(own) or step == 128
    assert not {"cut_boxes", "coarse_boxes", "piled_sides", "misplaced", "sizes_cut"} & set(made)


@pytest.mark.parametrize("step", [1, 8, 16, 32, 64])
def test_rounded_boxes_have_many_sizes(step):
    """Corners on a grid, coarse or fine, of some images and of all."""
    for share in (0.3, 1):
        data = copy.deepcopy(scene(0, "crowded")).data()
        ids = sorted(one["id"] for one in data.truth["images"])
        for d in data.found:
            if d["image_id"] <= ids[int(share * len(ids)) - 1]:
                x, y, w, h = d["bbox"]
                left, top, right, bottom = (round(one / step) * step for one in (x, y, x + w, y + h))
                d["bbox"] = [left, top, max(right - left, step), max(bottom - top, step)]
        assert "anchor_boxes" not in check(data.truth, data.found).codes


def few(sizes=((42, 55), (100, 130)), others=0, of_objects=0.0, count=600, images=100):
    """Whether sizes are said to be few if `count` detections have them in turn, `others` have sizes of their own, and the
    share `of_objects` of the objects have them, too.
    """
    rng = np.random.default_rng(0)

    def box(at, own):
        w, h = sizes[at % len(sizes)] if own else rng.uniform(30, 200, 2)
        return [float(rng.uniform(10, 390)), float(rng.uniform(10, 390)), float(w), float(h)]

    truth = {
        "images": [{"id": at, "width": 700, "height": 700} for at in range(images)],
        "categories": [{"id": 1, "name": "thing"}],
        "annotations": [
            {"id": at, "image_id": at % images, "category_id": 1, "iscrowd": 0, "bbox": box(at, at < of_objects * 200)}
            for at in range(200)
        ],
    }
    for one in truth["annotations"]:
        one["area"] = one["bbox"][2] * one["bbox"][3]
    found = [
        {"image_id": at % images, "category_id": 1, "bbox": box(at // images, at < count), "score": float(rng.random())}
        for at in range(count + others)
    ]
    return "anchor_boxes" in check(truth, found).codes


def test_either_side_of_the_number_of_sizes():
    assert few()
    assert not few(sizes=((42, 55),))  # a pile of one width and one height
    assert few(sizes=[(30 * 1.3**at, 34 * 1.25**at) for at in range(6)], count=1200)
    assert few(sizes=((40, 60), (40, 120), (80, 60), (80, 120)))  # two of each side
    grid = [(40 * one, 40 * other) for one in (1, 2, 4) for other in (1, 2, 4)]
    assert not few(sizes=grid, count=1800)


def test_either_side_of_other_sizes_and_objects():
    assert few(count=900, others=90)
    assert not few(count=900, others=110)
    assert few(of_objects=0.25)
    assert not few(of_objects=0.27)


def side(keys):
    """The frequent sizes among whole widths and heights."""
    keys = np.array([w * 50 << 32 | h * 50 for w, h in keys], np.int64)
    return {(one >> 32) // 50 for one in anchors.frequent(None, keys, np.arange(keys.size)).tolist()}


def test_either_side_of_a_frequent_size():
    assert side([(40, 40)] * 20) == {40}
    assert side([(40, 40)] * 19) == set()
    assert side([(40, 40)] * 50 + [(45, 40)] * 10) == {40}
    assert side([(40, 40)] * 49 + [(45, 40)] * 10) == set()
    assert side([(40, 40)] * 49 + [(51, 40)] * 10) == {40}  # not near it
