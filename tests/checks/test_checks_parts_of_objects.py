"""Parts that are labelled as objects: numbers are counted again, limits are tested on both sides."""

from __future__ import annotations

import math
import re
from collections import defaultdict

import numpy as np
import pytest
from test_checks_parts import iou, planted

from detmap.checks import parts_of_objects
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.data.tables import Detections, GroundTruth


def lies_within(one, other):
    (x, y, w, h), (a, b, c, d) = one, other
    both = max(min(x + w, a + c) - max(x, a), 0) * max(min(y + h, b + d) - max(y, b), 0)
    return w * h <= 0.25 * c * d and both >= 0.9 * w * h


@pytest.mark.parametrize(("kind", "share"), [("crowded", 0.2), ("sparse", 0.2), ("one class", 0.5), ("one class", 1.0)])
def test_parts_that_are_objects_are_counted_again(kind, share):
    data, made = planted("parts_read_as_objects", kind, share)
    one = made["parts_as_objects"]
    called = {c["name"]: c["id"] for c in data.truth["categories"]}
    cells, found = defaultdict(list), defaultdict(list)
    for o in data.truth["annotations"]:
        cells[o["image_id"], o["category_id"]].append(o)
    for d in data.found:
        found[d["image_id"], d["category_id"]].append(d["bbox"])
    listed, more = re.search(r": category ([^;]*?)(?: and (\d+) more)?, on [\d,]+ images?; ", one.says).groups()
    names = {called[name] for name in listed.split(", ")}
    assert not more or len(names) == 5
    inside, others = [], defaultdict(list)
    for cell, own in cells.items():
        for o in own if found[cell] else ():
            hit = any(iou(o["bbox"], d) >= 0.5 for d in found[cell])
            size = int(2 * math.log2(max(math.sqrt(o["bbox"][2] * o["bbox"][3]), 1)))
            if any(lies_within(o["bbox"], p["bbox"]) for p in own):
                inside.append((cell, hit, size))
            else:
                others[cell[1], size].append(hit)
    if more:
        return  # not all categories are listed
    inside = [row for row in inside if row[0][1] in names]
    missed = [cell for cell, hit, _ in inside if not hit]
    assert one.count == len(missed) > 20
    assert f", on {len({image for image, _ in missed}):,} images; " in one.says
    shares = [np.mean(others[cell[1], size]) for cell, _, size in inside if len(others[cell[1], size]) >= 5]
    part, total, usual = re.search(
        r"; ([\d.]+)% of ([\d,]+) objects so placed are found, and (\d+)% of others", one.says
    ).groups()
    assert total == f"{len(inside):,}"
    assert float(part) == pytest.approx(100 * (1 - len(missed) / len(inside)), abs=0.5)
    assert float(usual) == pytest.approx(100 * np.mean(shares), abs=0.5)
    assert not {"misplaced", "grouped_objects"} & set(made)


# ------------------------------------------------------------------------------------------------ either side of limits


def facts_of(parts=100, hits=0, ratio=0.2, shifted=0.0, both=5, others=200, found=1.0, category=1):
    """Facts of 400 objects of 100 pixels, each on an image of its own, some with a part of an area `ratio` of theirs, on
    others as large alone; of these and of parts some are found. `both` more objects and parts are found together.
    """
    rng = np.random.default_rng(0)
    box = np.c_[rng.uniform(100, 200, (400, 2)), np.full((400, 2), 100.0)]
    side = 100 * math.sqrt(ratio)
    part = np.c_[box[:parts, :2] + 10, np.full((parts, 2), side)]
    part[:, 0] += shifted
    alone = np.c_[rng.uniform(100, 200, (others, 2)), np.full((others, 2), side)]
    two = np.c_[rng.uniform(100, 200, (both, 2)), np.full((both, 2), 100.0)]
    small = np.c_[two[:, :2] + 5, np.full((both, 2), 20.0)]
    image = np.concatenate([np.arange(400), rng.permutation(400)[:0], np.arange(parts), 400 + np.arange(others)])
    last = 400 + others + np.arange(both)
    image, boxes = np.concatenate([image, last, last]), np.concatenate([box, part, alone, two, small])
    truth = GroundTruth.from_arrays(
        image_ids=image, category_ids=np.full(image.size, category), boxes=boxes, images=np.arange(400 + others + both),
        image_sizes=np.full((400 + others + both, 2), 500), categories=[1, 2],
    )  # fmt: skip
    kept = np.ones(image.size, bool)
    kept[400 + hits : 400 + parts] = False
    kept[400 + parts + round(found * others) : 400 + parts + others] = False
    elsewhere = slice(400 + parts + round(found * others), 400 + parts + others)
    seen = np.concatenate([boxes[kept], boxes[elsewhere] + np.array([0, 150, 0, 0])])
    at = np.concatenate([image[kept], image[elsewhere]])
    given = Detections.from_arrays(
        image_ids=at, category_ids=np.full(at.size, category), boxes=seen, scores=np.linspace(0.9, 0.5, at.size)
    )
    return Facts(side_of(truth), side_of(given, truth))


def count(**given):
    facts = facts_of(**given)
    made = list(parts_of_objects.check(facts))
    assert [one.count for one in made] == ([int(facts.truth.aside.sum())] if made else [])
    return made[0].count if made else 0


def test_either_side_of_parts():
    assert count(parts=20) == 20
    assert count(parts=19) == 0


def test_parts_are_found_far_less_often_than_others():
    """All others of their size are found, so that of 300 parts 120 are 0.4 of those that are expected."""
    assert count(parts=300, hits=120) == 180
    assert count(parts=300, hits=121) == 0


def test_fewer_are_found_than_chance_explains():
    """Of others a tenth is found: of 40 parts 4 would be, and 2.4 in clean data; none is a chance of 0.09."""
    assert count(parts=40, found=0.1) == 0
    assert count(parts=200, found=0.1) == 200


def test_parts_are_far_smaller():
    assert count(ratio=0.249) == 100
    assert count(ratio=0.251) == 0


def test_parts_lie_within():
    """A part of 44.7 pixels begins 10 pixels from the left edge of 100: nine tenths of it end at 49.8."""
    assert count(shifted=49.7) == 100
    assert count(shifted=49.9) == 0


def test_a_detector_may_suppress_what_lies_within():
    assert count(both=5) == 100
    assert count(both=4) == 0


def test_others_of_their_size_are_known():
    assert count(others=5) == 100
    assert count(others=4) == 0


def test_in_clean_data_there_are_none():
    import planting

    from detmap.checks import check

    for kind in planting.KINDS:
        data = planting.scene(3, kind).data()
        assert "parts_as_objects" not in {one.code for one in check(data.truth, data.found).findings}
