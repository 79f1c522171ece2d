"""Coordinates of one byte, on a part of the images or on all: what is said, and either side of each limit."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import side
from test_checks_scores_of_parts import findings, images_said, scene

from detmap.checks import boxes
from detmap.checks.rates import Part


def wrapped(one):
    return dict(one, bbox=[int(v) % 256 for v in one["bbox"]])


def planted(seed, share, of="found"):
    """A scene whose boxes, of detections or of objects, are of bytes on a run of images, and the ids of these images."""
    truth, found = scene(seed, "crowded", 120)
    ids = [one["id"] for one in truth["images"]]
    count = round(share * len(ids))
    part = set(ids[20 : 20 + count] if share < 1 else ids)
    if of == "found":
        return truth, [wrapped(one) if one["image_id"] in part else one for one in found], part
    made = [wrapped(one) if one["image_id"] in part else one for one in truth["annotations"]]
    return dict(truth, annotations=made), found, part


@pytest.mark.parametrize(
    ("seed", "share", "of"),
    [(0, 0.2, "found"), (1, 0.5, "found"), (2, 1.0, "found"), (3, 0.3, "truth"), (0, 1.0, "truth")],
)
def test_coordinates_of_a_byte_are_counted_as_the_sentence_says(seed, share, of):
    truth, found, part = planted(seed, share, of)
    made = findings(truth, found)
    one = made["byte_boxes"]
    own, other = (found, truth["annotations"]) if of == "found" else (truth["annotations"], found)
    there = part if share == 1 else images_said(one.says, own)
    assert len(there ^ (part & {d["image_id"] for d in own})) <= 1
    inside = [d["bbox"] for d in own if d["image_id"] in there]
    assert one.count == sum(all(v == int(v) and 0 <= v <= 255 for v in box) for box in inside)
    others = [d["bbox"] for d in other if d["image_id"] in there]
    assert re.search(r"([\d,]+) of ([\d,]+) \w+ there have larger ones$", one.says).groups() == (
        f"{sum(max(box) > 255 for box in others):,}", f"{len(others):,}"
    )  # fmt: skip
    assert not {"misplaced", "zero_sized_boxes", "no_agreement"} & set(made)
    assert "byte_boxes" not in findings(*scene(seed, "crowded", 120))


def of_a_byte(larger=100, large=0, fractions=0, corners=100, elsewhere=True):
    """The number of boxes said to be of bytes, of 1,000 on a part of 100 images, if so many of as many of the other file are
    larger there, so many of these are too, have fractions, or reach beyond 255.
    """
    image = np.repeat(np.arange(200), 10)
    inside, place = image < 100, np.arange(image.size) % 1000
    own, other = (np.tile([100.0, 100.0, 50.0, 50.0], (image.size, 1)) for _ in range(2))
    own[inside & (place < corners), 2] = 200
    own[inside & (place >= 1000 - fractions), 1] += 0.5
    own[inside & (place >= 1000 - large), 0] = 300
    order = place % 10 * 100 + place // 10  # one box of each image, then another
    other[order < larger, 0] = 300
    if elsewhere:
        own[~inside & (order < larger), 0] = 300
    sides = [
        SimpleNamespace(image=image, on=side(count=200).on, boxes=made, columns=made.T, unit=unit)
        for made, unit in ((own, "detection"), (other, "object"))
    ]
    part = Part(np.arange(200) < 100, "images 0 to 99", np.arange(200) < 100)
    facts = SimpleNamespace(gathered=lambda *given: part, says_part=lambda part: part.says)
    made = boxes._of_a_byte(facts, *sides)
    return None if made is None else int(made[1].sum())


def test_either_side_of_coordinates_of_a_byte():
    assert of_a_byte() == 1000
    assert of_a_byte(larger=20) == 1000
    assert of_a_byte(larger=19) is None
    assert of_a_byte(large=5) == 990  # a twentieth of those expected; their image is left out
    assert of_a_byte(large=6) is None
    assert of_a_byte(fractions=50) == 950
    assert of_a_byte(fractions=51) is None
    assert of_a_byte(corners=5) == 1000
    assert of_a_byte(corners=4) is None  # cropped
    assert of_a_byte(elsewhere=False) is None  # this file never has larger ones
