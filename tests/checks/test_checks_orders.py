"""What is read in another order than it was written: numbers are counted again from the file, limits on both sides."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_parts import iou, within
from test_checks_writers import few, findings

from detmap.checks import boxes, exchanges, parts
from detmap.checks.inputs import overlaps
from detmap.checks.resized import resized_sides

NAMES = np.array(["x1", "y1", "x2", "y2"])


class Records(SimpleNamespace):
    """A side of 100 records."""

    def __len__(self):
        return 100


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

    side = Records(role="ground_truth", image=np.arange(100), on=of)
    whole = SimpleNamespace(found=None, borne_out=lambda *given: 7)
    facts = SimpleNamespace(agreement=whole, concentrated=lambda *given: None, causes=set(), parts=[])
    assert "detections lie on 7 more objects" in boxes._of_corners(facts, side, np.arange(100) < count)
    assert facts.causes == causes


# --------------------------------------------------------------------------------------------------------------- sides


@pytest.mark.parametrize(("factor", "first", "last"), [(0.8, 40, 110), (0.8, 0, 160), (0.4, 0, 160), (0.6, 40, 110)])
def test_sides_that_were_scaled_about_the_top_left_corner_are_counted_again(factor, first, last):
    data = few("one class", 160)
    known = sorted(one["id"] for one in data.truth["images"])
    for one in data.found:
        if one["image_id"] in known[first:last]:
            x, y, w, h = one["bbox"]
            one["bbox"] = [x, y, factor * w, factor * h]
    made = findings(data)
    one = made["scaled_boxes"]
    width, height = map(float, re.search(r"width times ([\d.]+) and height times ([\d.]+)", one.says).groups())
    assert 1 / factor == pytest.approx(width, rel=0.05)
    assert 1 / factor == pytest.approx(height, rel=0.05)
    assert not {"biased_boxes", "drawn_unevenly", "uneven_boxes", "misplaced"} & set(made)
    if last - first < 160:
        there = {known.index(image) for image in known if within(one.says)(image)}
        assert len(there ^ set(range(first, last))) <= 20


@pytest.mark.parametrize(("corner", "said"), [(0.0, True), (0.04, True), (0.06, False), (0.1, False)])
def test_either_side_of_sides_scaled_about_the_top_left_corner(corner, said):
    """Sides times 0.8, and a corner that is off by so much of the objects' sides (0.1: scaled about the centre)."""
    true = np.tile([100.0, 100, 50, 80], (40, 1))
    own = np.concatenate([true[:, :2] + corner * true[:, 2:], 0.8 * true[:, 2:]], axis=1)
    every = np.arange(40)
    found = Records(boxes=own, records=lambda rows: {})
    evidence = SimpleNamespace(found=found, object_box=true, object_image=every, sure=every)
    evidence.pairs = every, every, overlaps(own, true)
    assert (resized_sides(evidence, None) is not None) is said


# ---------------------------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize(("step", "has"), [(1, "next"), (-1, "previous")])
def test_categories_of_the_row_beside_are_counted_again(step, has):
    data = few("crowded", 160)
    known = sorted(one["id"] for one in data.truth["images"])
    records = data.truth["annotations"]
    there = [one for one in records if one["image_id"] in known[40:80]]
    labels = [one["category_id"] for one in there]
    for at, one in enumerate(there):
        one["category_id"] = labels[(at + step) % len(there)]
    one = findings(data)["relabelled"]
    right, of = re.search(rf"each has the category of the {has} row: ([\d,]+) of them are", one.says), one.count
    assert 0.6 * of <= int(right[1].replace(",", "")) <= of


@pytest.mark.parametrize(("right", "wrong", "said"), [(12, 8, True), (11, 8, False), (10, 0, True), (9, 0, False)])
def test_either_side_of_categories_of_the_next_row(right, wrong, said):
    """So many objects are taken for the category of the row before, and so many for one that no row has."""
    count = right + wrong
    table = SimpleNamespace(categories=SimpleNamespace(codes=np.arange(100)))
    every = np.arange(1, count + 1)
    other = np.where(np.arange(count) < right, every - 1, 99)
    evidence = SimpleNamespace(truth=Records(rows=np.arange(100) + 5, table=table), objects=every, object_label=every)
    evidence.object_image, evidence.taken_for = every, (other, None)
    part = SimpleNamespace(images=np.ones(100, bool))
    says = parts._says_rows(evidence, part)
    assert says == (
        f"; each has the category of the next row: {right} of them are taken for that of the row before" if said else ""
    )


# -------------------------------------------------------------------------------------------------------------- images


def test_detections_of_other_images_of_a_part_are_told_so():
    data = few("crowded", 400)
    known = sorted(one["id"] for one in data.truth["images"])
    under = dict(zip(known[100:220], np.random.default_rng(0).permutation(known[100:220]).tolist(), strict=True))
    for one in data.found:
        one["image_id"] = under.get(one["image_id"], one["image_id"])
    says = findings(data)["misplaced"].says
    pairs, images = map(
        int, re.search(r"on (\d+) of (\d+) images with two or more confident .* fit another", says).groups()
    )
    assert 8 <= pairs <= images <= 125


@pytest.mark.parametrize("text", [True, False])
def test_ids_as_text_beside_ids_as_numbers(text):
    """The part is found but for its ends."""
    ids, part = np.arange(1, 201), np.arange(120)
    as_text = np.array(sorted(part.tolist(), key=lambda at: str(at + 1)))
    pairs = np.stack([part, as_text] if text else [as_text, part], axis=1)[20:100]
    assert exchanges._as_text(ids, pairs, part[3:-2]) == ((1, 120), 80, text)
