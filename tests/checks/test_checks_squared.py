"""Objects that a tool made square: numbers are counted again, limits are tested on both sides."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_checks_parts import iou, planted, within

from detmap.checks import squared
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.data.tables import Detections, GroundTruth


@pytest.mark.parametrize(("kind", "share"), [("crowded", 0.2), ("sparse", 0.2), ("one class", 0.2), ("one class", 1.0)])
def test_objects_made_square_are_counted_again(kind, share):
    data, made = planted("objects_made_square", kind, share)
    one = made["square_boxes"]
    there = within(one.says) if share < 1 else lambda image: True
    sizes = {i["id"]: (i["width"], i["height"]) for i in data.truth["images"]}
    found = {}
    for d in data.found:
        found.setdefault((d["image_id"], d["category_id"]), []).append(d["bbox"])
    own = {}
    for o in data.truth["annotations"]:
        own.setdefault((o["image_id"], o["category_id"]), []).append(o)
    counts, ratios, square = {True: [0, 0], False: [0, 0]}, [], []
    for at, o in enumerate(data.truth["annotations"]):
        (x, y, w, h), (width, height) = o["bbox"], sizes[o["image_id"]]
        if min(x, y, width - x - w, height - y - h) > 2:
            inside = there(o["image_id"])
            counts[inside][1] += 1
            counts[inside][0] += abs(w - h) < 0.02
            if inside and abs(w - h) < 0.02:
                square.append(at)
    ids = {data.truth["annotations"][at]["id"] for at in square}
    for cell, objects in own.items():
        best = {}
        for d in found.get(cell, ()):
            values = [iou(o["bbox"], d) for o in objects]
            at = int(np.argmax(values))
            if values[at] >= 0.3 and values[at] > best.get(at, (0,))[0]:
                best[at] = values[at], d
        ratios += [max(d[2:]) / min(d[2:]) for at, (_, d) in best.items() if objects[at]["id"] in ids]
    few, total = counts[True]
    assert one.count == few == len(square)
    assert one.says.startswith(f"at least {few:,} objects of equal width and height: ")
    assert re.search(r"(\d+)% of ([\d,]+) that do not touch", one.says).groups() == (
        f"{few / total:.0%}"[:-1],
        f"{total:,}",
    )
    assert f"; of {len(ratios):,} detections on them the longer side is {np.median(ratios):.2g} times" in one.says
    assert list(one.records) == square[:10]
    if share < 1:
        usual, rest = counts[False]
        assert (
            f" there, elsewhere {usual / rest:.2%}" in one.says or f" there, elsewhere {usual / rest:.0%}" in one.says
        )
    assert not {"grouped_objects", "misplaced", "biased_boxes", "uneven_boxes", "drawn_otherwise"} & set(made)


# ------------------------------------------------------------------------------------------------ either side of limits


def facts_of(ratio=1.5, found=200, near=1.0, edge=0, plain=0):
    """Facts of 200 square objects, of which detections, so much longer than wide, lie on some; `near` is a share of the
    sides of these. Of the objects some touch the left edge of their image, and some others are not square.
    """
    rng = np.random.default_rng(0)
    side = rng.uniform(40, 90, 200)
    box = np.c_[rng.uniform(100, 300, (200, 2)), side, side]
    box[20 + rng.permutation(180)[:plain], 3] *= rng.uniform(1.5, 2, plain)
    box[:edge, 0] = 0
    truth = GroundTruth.from_arrays(
        image_ids=np.arange(200), category_ids=np.ones(200, int), boxes=box, image_sizes=np.full((200, 2), 640),
        images=np.arange(200), categories=[1],
    )  # fmt: skip
    wide = side / np.sqrt(ratio)
    own = np.c_[box[:, 0] + (side - wide * near) / 2, box[:, 1], wide * near, wide * ratio * near][:found]
    at = np.arange(found)
    other = Detections.from_arrays(
        image_ids=at, category_ids=1 + 0 * at, boxes=own, scores=np.linspace(0.9, 0.1, found)
    )
    return Facts(side_of(truth), side_of(other, truth))


def count(**given):
    facts = facts_of(**given)
    made = list(squared.check(facts))
    return made[0].count if made else 0, int(facts.truth.aside.sum())


def test_round_things_are_square():
    assert count(ratio=1.26) == (200, 200)
    assert count(ratio=1.24) == (0, 0)


def test_detections_lie_on_squares():
    assert count(found=10)[0] == 200
    assert count(found=9)[0] == 0
    assert count(ratio=1.5, near=0.66)[0] == 200  # an IoU of 0.33 or so
    assert count(ratio=1.5, near=0.5)[0] == 0  # 0.25


@pytest.mark.parametrize(("plain", "aside"), [(90, 200), (91, 89)])
def test_squares_that_are_cut_off_are_squares(plain, aside):
    """Of 180 objects away from the edges half are square, and twenty touch an edge."""
    assert count(edge=20, plain=plain) == (180 - plain, aside)


def test_square_detections_are_the_others_rule():
    """Where detections are square, too, as of points, the boxes of both sides follow one rule."""
    facts = facts_of(ratio=2.0)
    assert list(squared.check(facts))
    truth, found = facts.truth.table, facts.found.table
    boxes = facts.found.boxes + np.array([0, 0, 0.0, 0.0])
    boxes[:, 2] = boxes[:, 3]
    square = Detections.from_arrays(
        image_ids=np.arange(200), category_ids=np.ones(200, int), boxes=boxes, scores=found.scores
    )  # fmt: skip
    assert not list(squared.check(Facts(side_of(truth), side_of(square, truth))))
