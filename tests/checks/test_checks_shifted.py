"""Boxes that reach beyond their images because they are shifted: what is said, and either side of each limit."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import planting
import pytest
from test_checks_limits import side

import detmap
from detmap.checks import boxes
from detmap.checks.agreement import Nearest


@pytest.mark.parametrize(("of", "by"), [("objects", 6), ("objects", 12), ("detections", 12)])
def test_a_shift_on_images_anywhere_is_told_of_boxes_beyond_their_images(of, by):
    made, off = planting.scene(0, "one class"), np.array([by, by, 0, 0])
    there = np.zeros(500, bool)
    there[np.random.default_rng([0, 1]).choice(500, 50, replace=False)] = True
    if of == "objects":
        made.box = np.where(there[made.image][:, None], made.box + off, made.box)
    else:
        made.d_box = np.where(there[made.d_image][:, None], made.d_box + off, made.d_box)
    data = made.data()
    findings = {one.code: one for one in detmap.check(data.truth, data.found).findings}
    if of == "objects":
        told = re.search(
            r"; on their (\d+) images boxes lie off by (.\d+\.\d) and (.\d+\.\d) pixels .* from the detections that they",
            findings["outside_boxes"].says,
        )
        sizes = {one["id"]: (one["width"], one["height"]) for one in data.truth["images"]}
        beyond = {
            one["image_id"]
            for one in data.truth["annotations"]
            if any(one["bbox"][n] + one["bbox"][2 + n] > sizes[one["image_id"]][n] + 1.5 for n in (0, 1))
        }
        assert int(told[1]) == len(beyond)
        assert [float(told[2]), float(told[3])] == pytest.approx([by, by], abs=1.5)
    says = findings["shifted_boxes"].says  # of few boxes, too
    x, y = map(float, re.search(r": moved by (.\d+) and (.\d+) pixels", says).groups())
    assert [x, y] == pytest.approx([by, by] if of == "objects" else [-by, -by], abs=2)


def says_shift(by=6.0, spread=0.0, count=24, iou=1.0, of_found=True):
    """What is said of boxes of 100 pixels beyond their images, if on these images so many detections lie off by some pixels
    to the right, give or take a spread, and overlap objects by an IoU.
    """
    place = np.arange(count)
    true = np.tile([100.0, 100, 100, 100], (count, 1))
    own = true.copy()
    own[:, 0] += by + spread * (place % 3 - 1)
    of = side(own if of_found else true, np.zeros(count, int), count=5)
    whole = SimpleNamespace(
        image=0 * place, boxes=own, plain=Nearest(np.full(count, iou), place), truth=SimpleNamespace(boxes=true),
        found=of if of_found else None,
    )  # fmt: skip
    return boxes._says_shift(SimpleNamespace(agreement=whole), of, place < 1)


def test_either_side_of_boxes_that_are_said_to_be_shifted():
    assert says_shift() == (
        "; on their 1 image boxes lie off by +6.0 and +0.0 pixels (x, y) from the objects that they overlap, in the median: "
        "were they shifted?"
    )
    assert "by -6.0 and -0.0 pixels (x, y) from the detections" in says_shift(of_found=False)
    assert says_shift(0.75)
    assert not says_shift(0.74)
    assert says_shift(count=20)
    assert not says_shift(count=19)
    assert says_shift(iou=0.3)
    assert not says_shift(iou=0.299)
    assert says_shift(6.0, spread=2.63)  # six standard errors, 6 * 1.2533 * 1.4826 / 24 ** 0.5 = 2.276 of the spread
    assert not says_shift(6.0, spread=2.64)
    assert boxes._says_shift(SimpleNamespace(agreement=None), None, None) == ""
