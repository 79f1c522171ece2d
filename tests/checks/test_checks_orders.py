"""What is read in another order than it was written: numbers are counted again from the file, limits on both sides."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_parts import iou, within
from test_checks_writers import few, findings

from detmap.checks import boxes

NAMES = np.array(["x1", "y1", "x2", "y2"])


def reordered(box, order):
    """A box whose corners are written in this order of columns, and read as x1, y1, x2, y2."""
    x, y, w, h = box
    x1, y1, x2, y2 = np.array([x, y, x + w, y + h])[list(order)].tolist()
    return [x1, y1, x2 - x1, y2 - y1]


# ------------------------------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("role", ["ground_truth", "detections"])
@pytest.mark.parametrize(("order", "first", "last"), [((0, 2, 1, 3), 40, 60), ((0, 3, 2, 1), 0, 160)])
def test_columns_in_another_order_are_counted_again(role, order, first, last):
    data = few("one class", 160)
    records = data.truth["annotations"] if role == "ground_truth" else data.found
    known = sorted(one["id"] for one in data.truth["images"])
    objects = {at: one["bbox"] for at, one in enumerate(data.truth["annotations"])}
    for one in records:
        if one["image_id"] in known[first:last]:
            one["bbox"] = reordered(one["bbox"], order)
            if "area" in one:
                one["area"] = abs(one["bbox"][2] * one["bbox"][3])
    made = findings(data)
    one = made["inverted_boxes"]
    inverted = [at for at, own in enumerate(records) if min(own["bbox"][2:]) < 0]
    assert one.count == len(inverted)
    assert f"columns in the order {', '.join(NAMES[list(order)])} are read as x1, y1, x2, y2; in theirs" in one.says
    assert "misplaced" not in made
    assert "undetected" not in made
    gained = int(re.search(r"detections lie on ([\d,]+) more objects", one.says)[1].replace(",", ""))
    there = {records[at]["image_id"] for at in inverted}
    if last - first < 160:
        assert {known.index(image) for image in known if within(one.says)(image)} <= set(range(first, last))
    # Few of these objects are found by two detections, or by one of low score.
    again = set()
    for at, true in objects.items():
        image = data.truth["annotations"][at]["image_id"]
        if role == "ground_truth" and at not in inverted:
            continue
        again |= {
            at
            for row, own in enumerate(data.found)
            if own["image_id"] == image
            and image in there
            and (role == "ground_truth" or row in inverted)
            and iou(reordered(own["bbox"], np.argsort(order)) if role == "detections" else own["bbox"], true) >= 0.6
        }
    assert 0.6 * len(again) <= gained <= len(again)


@pytest.mark.parametrize(("count", "causes"), [(10, {("ground_truth", "inverted_boxes")}), (9, set())])
def test_either_side_of_columns_in_another_order_that_explain_other_findings(count, causes):
    """So many of 100 objects have negative sides, and are found in another order of columns."""
    of = SimpleNamespace(images=SimpleNamespace(ids=np.arange(100)))

    class Objects(SimpleNamespace):
        def __len__(self):
            return 100

    side = Objects(role="ground_truth", image=np.arange(100), on=of)
    whole = SimpleNamespace(found=None, borne_out=lambda *given: 7)
    facts = SimpleNamespace(agreement=whole, concentrated=lambda *given: None, causes=set(), parts=[])
    assert "detections lie on 7 more objects" in boxes._of_corners(facts, side, np.arange(100) < count)
    assert facts.causes == causes
