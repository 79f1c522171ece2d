"""Defects of a range of images: numbers are counted again from the records, limits are tested on both sides."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_annotators import photos, said
from test_checks_limits import codes, of_confident, side
from test_checks_parts import iou, within

from detmap.checks import boxes, categories, limits, parts
from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.rates import Part


def renumbered(truth, found, ids):
    """Give the images other ids, in the same order."""
    new = dict(zip(sorted(one["id"] for one in truth["images"]), ids, strict=True))
    for one in truth["images"]:
        one["id"] = new[one["id"]]
    for one in [*truth["annotations"], *found]:
        one["image_id"] = new[one["image_id"]]


def by_image(records):
    held = {}
    for one in records:
        held.setdefault(one["image_id"], []).append(one["bbox"])
    return held


# ------------------------------------------------------------------------------------------------------ ids of neighbours


@pytest.mark.parametrize(("seed", "step", "of_list"), [(0, 1, False), (1, -1, False), (2, 1, True)])
def test_ids_of_neighbours_are_counted_again(seed, step, of_list):
    """Half of the ids of neighbours differ by one, so that a constant explains half of the detections."""
    truth, found, rng = photos(seed, images=600)
    renumbered(truth, found, np.cumsum(rng.integers(1, 3, 600)).tolist())
    for one in found[::7]:  # these lie on nothing
        one["bbox"] = [*rng.uniform(0, 300, 2), *rng.uniform(20, 90, 2)]
    if of_list:
        truth["images"] = [truth["images"][at] for at in rng.permutation(600)]
    ids = [one["id"] for one in truth["images"]]
    block = ids[100:280] if of_list else ids[100:200]
    meant = {ids[ids.index(one) + step]: one for one in block}
    moved = {one: other for other, one in meant.items()}
    for one in found:
        one["image_id"] = moved.get(one["image_id"], one["image_id"])
    (made,) = said("image_ids_rotated", truth, found)
    assert not said("image_ids_shifted", truth, found)
    way, order = {1: "previous", -1: "next"}[step], "list of images" if of_list else "order of ids"
    assert f": each is meant to be the {way} image in the {order}" in made.says
    assert " at least " in made.says
    objects, there = by_image(truth["annotations"]), within(made.says)
    gained = []
    for at, one in enumerate(found):
        place = ids.index(one["image_id"]) - step
        other = objects[ids[place]] if 0 <= place < 600 else []
        own = max(iou(one["bbox"], box) for box in objects[one["image_id"]])
        if own < 0.3 and max((iou(one["bbox"], box) for box in other), default=0) >= 0.6:
            gained.append(at)
    kept = gained if of_list else [at for at in gained if there(found[at]["image_id"])]
    assert made.count == len(kept)
    assert list(made.records) == kept[:10]
    assert np.mean([found[at]["image_id"] in meant for at in kept]) > 0.9
    if not of_list:
        (first, last), ends = re.findall(r"(\d+) to (\d+)", made.says)[0], sorted(meant)
        assert abs(ids.index(int(first)) - ids.index(ends[0])) < 9
        assert abs(ids.index(int(last)) - ids.index(ends[-1])) < 9


# ---------------------------------------------------------------------------------------------------- objects there twice


def partners(records, least):
    """How many of the objects of an image are in pairs: each the most similar one of the category for the other."""
    best = {}
    for at, one in enumerate(records):
        near = [(iou(one["bbox"], other["bbox"]), n) for n, other in enumerate(records)
                if n != at and other["category_id"] == one["category_id"]]  # fmt: skip
        best[at] = max(near, default=(0, -1))
    return [at for at, (value, n) in best.items() if value >= least and best[n][1] == at]


@pytest.mark.parametrize(("seed", "share", "block"), [(0, 0.15, False), (1, 0.04, False), (2, 0.2, True)])
def test_objects_of_two_annotators_are_counted_again(seed, share, block):
    """Each side of the second box is off by up to 5 %."""
    truth, found, rng = photos(seed)
    ids = [one["id"] for one in truth["images"]]
    count = round(share * len(ids))
    chosen = set(ids[100 : 100 + count]) if block else set(rng.choice(ids, count, replace=False).tolist())
    for one in [one for one in truth["annotations"] if one["image_id"] in chosen]:
        x, y, w, h = one["bbox"]
        j = rng.uniform(-0.05, 0.05, 4)
        box = [round(x + j[0] * w), round(y + j[1] * h), max(round(w * (1 + j[2])), 1), max(round(h * (1 + j[3])), 1)]
        truth["annotations"].append({**one, "id": len(truth["annotations"]) + 1, "bbox": box, "area": box[2] * box[3]})
    held = {}
    for at, one in enumerate(truth["annotations"]):
        held.setdefault(one["image_id"], []).append({**one, "at": at})
    doubled = {image for image, records in held.items() if len(partners(records, 0.7)) >= 0.8 * len(records)}
    rows = {
        max(one["at"], other["at"])
        for image in held for one in held[image] for other in held[image]
        if one["at"] < other["at"] and one["category_id"] == other["category_id"]
        and iou(one["bbox"], other["bbox"]) >= (0.7 if image in doubled else 0.95)
    }  # fmt: skip
    for given in (found, None):
        (made,) = said("duplicate_objects", truth, given)
        inside = sum(truth["annotations"][at]["image_id"] in doubled for at in rows)
        assert made.count == len(rows)
        assert f": {inside} of them on {len(doubled)} images on which nearly all objects have" in made.says
        assert list(made.records) == sorted(doubled)[:10]
        assert made.named == "image"
        assert ("in the order of ids" in made.says) is block
    assert len(doubled & chosen) >= 0.9 * count
    if block:
        there = [image for image in doubled if within(made.says)(image)]
        assert f"; {len(there)} of these are among images" in made.says
        assert len(there) >= 0.9 * count


def twice(several=6, loose=0, iou_of=0.72, loose_iou=0.5, single=0, each=2):
    """How many images have objects twice: on some images all `each` have a partner, on others with a smaller IoU."""
    box, image = [], []
    for at in range(several + loose):
        value = iou_of if at < several else loose_iou
        for n in range(each):
            box += [[200.0 * n, 0, 100, 100], [200.0 * n, 0, 100 * value, 100]]
        box += [[200.0 * (each + n), 0, 100, 100] for n in range(single)]
        image += [at] * (2 * each + single)
    count = several + loose + 50
    box += [[0.0, 0, 50, 50]] * 50
    image += range(several + loose, count)
    codes_of = np.array(image)
    given = side(np.array(box), codes_of, count=count)
    given.crowd = np.zeros(codes_of.size, bool)
    given.table = SimpleNamespace(
        images=SimpleNamespace(codes=codes_of),
        categories=SimpleNamespace(ids=np.zeros(1, int), codes=np.zeros(codes_of.size, int)),
    )
    whole = type("Given", (), {**vars(given), "__len__": lambda self: codes_of.size})()
    return int(boxes._doubled(whole, *boxes._overlapping(whole)).sum())


def test_either_side_of_images_whose_objects_are_there_twice():
    assert twice() == 6
    assert twice(several=5) == 0  # of one in 270 data sets
    assert twice(iou_of=0.701) == 6
    assert twice(iou_of=0.699) == 0
    assert twice(single=1) == 6  # four of five
    assert twice(single=2) == 0
    assert twice(several=20, loose=3) == 20
    assert twice(several=20, loose=4) == 0  # nine are expected by four others
    assert twice(several=20, loose=20, loose_iou=0.39) == 20
    assert twice(several=20, loose=4, loose_iou=0.41) == 0
    assert twice(each=1) == 6
    assert twice(each=1, loose=1) == 0


# ----------------------------------------------------------------------------------------------------------------- crowds


@pytest.mark.parametrize(("seed", "block"), [(0, True), (1, False)])
def test_images_on_which_all_objects_are_crowds_are_counted_again(seed, block):
    """A default of the tool; a crowd beside other objects on one image in twenty is none of it."""
    truth, found, rng = photos(seed)
    ids = [one["id"] for one in truth["images"]]
    chosen = set(ids[150:210]) if block else set(rng.choice(ids, 80, replace=False).tolist())
    for one in truth["annotations"]:
        one["iscrowd"] = int(one["image_id"] in chosen)
    for one in truth["annotations"][::80]:
        if one["image_id"] not in chosen:
            one |= {"iscrowd": 1, "bbox": [0, 0, 620, 460], "area": 620 * 460}
    for given in (found, None):
        (made,) = said("crowds_misplaced", truth, given)
        rows = [at for at, one in enumerate(truth["annotations"]) if one["image_id"] in chosen]
        assert made.count == len(rows)
        assert list(made.records) == rows[:10]
        where = rf" among images {ids[150]} to {ids[209]}, in the order of ids" if block else ""
        assert re.search(rf"single objects: all objects of {len(chosen)} images{where}(;|$)", made.says)


def crowded(every=12, some=0, small=0.3, inside=None):
    """How many objects are said to be crowds by default: on some images both are crowds, on others one of two, and of all
    crowds a share is small. With `inside`, a part of 100 images has so many of the former.
    """
    image = np.repeat(np.arange(1000), 2)
    crowd = image < every
    crowd[2 * every : 2 * (every + some) : 2] = True
    there = np.arange(1000) < 100
    truth = side(image=image, count=1000)
    truth.crowd = crowd
    part = None if inside is None else Part(there, "images 1 to 2", there)
    facts = SimpleNamespace(truth=truth, gathered=lambda *given: part)
    flags = np.arange(2000) < small * 2 * (every if inside is None else inside)
    rows, more = boxes._all_crowds(facts, flags)
    assert bool(more) is bool(rows.any())
    return int(rows.sum())


def test_either_side_of_images_on_which_all_objects_are_crowds():
    assert crowded(every=10) == 20
    assert crowded(every=9) == 0
    assert crowded(every=12, some=6) == 24
    assert crowded(every=12, some=7) == 0
    assert crowded(every=100, small=0.25) == 200
    assert crowded(every=100, small=0.24) == 0
    assert crowded(every=90, inside=90, some=100) == 180
    assert crowded(every=89, inside=89, some=100) == 0


# ------------------------------------------------------------------------------------------------------- labels of another


def test_labels_of_a_part_that_lack_a_category_are_counted_again():
    """Of four categories the last is rare; in a part its objects are labelled as the first."""
    truth, found, rng = photos(5, images=900)
    for one, own in zip(truth["annotations"], found, strict=True):
        one["category_id"] = own["category_id"] = int(rng.choice(3, p=[0.45, 0.45, 0.1])) + 1
    ids = [one["id"] for one in truth["images"]]
    block = set(ids[500:770])
    changed = [one for one in truth["annotations"] if one["image_id"] in block and one["category_id"] == 3]
    for one in changed:
        one["category_id"] = 1
    (made,) = said("labels_mixed", truth, found)
    there = within(made.says)
    assert re.search(rf"; {made.count} of them on images \d+ to \d+, in the order of ids, ", made.says)
    assert all(there(image) and image in block for image in made.records)
    # a detection of the better half of its category lies on each of them
    least = np.median([one["score"] for one in found if one["category_id"] == 3])
    held = {(one["image_id"], *one["bbox"]) for one in changed if there(one["image_id"])}
    count = 0
    for own in found:
        if own["category_id"] == 3 and own["score"] >= least:
            count += any(image == own["image_id"] and iou(box, own["bbox"]) >= 0.5 for image, *box in held)
    assert made.count <= count
    inside = [one for one in found if there(one["image_id"])]
    assert f"{len({one['image_id'] for one in inside}):,} images with {len(inside):,} detections" in made.says


# ---------------------------------------------------------------------------------------------------------------- squares


def test_squares_of_a_part_are_counted_again():
    truth, found, _ = photos(6, images=800)
    ids = [one["id"] for one in truth["images"]]
    block = set(ids[300:420])
    for one in found:
        if one["image_id"] in block:
            x, y, w, h = one["bbox"]
            most = max(w, h)
            one["bbox"] = [x + w / 2 - most / 2, y + h / 2 - most / 2, most, most]
    (made,) = said("square_boxes", truth, found)
    there = within(made.says)
    rows = []
    for at, one in enumerate(found):
        x, y, w, h = one["bbox"]
        if abs(w - h) < 0.02 and min(x, y, 640 - x - w, 480 - y - h) > 2 and there(one["image_id"]):
            rows.append(at)
    assert made.count == len(rows)
    assert list(made.records) == rows[:10]
    assert made.says.startswith(f"at least {made.count} detections of equal width and height: images {ids[300]} to ")
    assert not said("misplaced", truth, found)


@pytest.mark.parametrize(("squares", "named"), [(50, True), (49, False)])
def test_either_side_of_squares_that_explain_a_part(monkeypatch, squares, named):
    """Of 100 boxes that do not touch the edges of their images half are square, and ten that do."""
    box = np.tile([100.0, 100, 50, 60], (110, 1))
    box[:squares, 3] = 50
    box[100:] = [0, 0, 50, 50]
    found = side(box, np.zeros(110, int), np.full((110, 2), 640.0))
    evidence = SimpleNamespace(found=found, detections=np.arange(110))
    monkeypatch.setattr(limits, "of_squares", lambda *given: "made")
    part = Part(np.ones(1, bool), "", np.ones(1, bool))
    assert (parts._squares(None, evidence, part) is not None) is named


# ----------------------------------------------------------------------------------- boxes enlarged, categories of others


def test_boxes_that_are_larger_than_objects_are_compared_in_the_size_of_these():
    """Two boxes of 130 pixels with an IoU of 0.76 have one of 0.7 in the size of their objects."""
    image, box = (
        np.zeros(4, int),
        np.array([[0.0, 0, 130, 130], [17.7, 0, 130, 130], [0, 300, 100, 100], [0, 300, 99, 76]]),
    )
    evidence = SimpleNamespace(
        found=SimpleNamespace(image=image, boxes=box), sure=np.arange(4), label=np.array([0, 0, 1, 1]), classes=2,
        finders=(np.array([0, 2]), np.array([0, 1])), object_box=np.array([[15.0, 15, 100, 100], [0, 300, 120, 110]]),
        object_label=np.array([0, 1]), suppressed=0.75,
    )  # fmt: skip
    evidence._cell = lambda image, label: image * 2 + label
    evidence.enlarged = Evidence.enlarged.func(evidence)
    assert evidence.enlarged == pytest.approx(np.array([[1.3, 1.3], [1, 1]]))
    evidence._between = lambda boxes: Evidence._between(evidence, boxes)
    assert Evidence._between(evidence, box) == pytest.approx([0, 112.3 / 147.7, 0, 0.7524])
    assert Evidence.twins_of_size.func(evidence).tolist() == [
        False,
        False,
        False,
        True,
    ]  # smaller boxes are not enlarged


@pytest.mark.parametrize(("count", "named"), [(80, ["unsuppressed"]), (79, [])])
def test_either_side_of_overlaps_of_enlarged_boxes(count, named):
    """Of a category 120 of 1,000 detections overlap another, and so many in the size of their objects."""
    flags = np.arange(4000) < 120
    made = of_confident(np.repeat(np.arange(4), 1000), flags, twins=flags, twins_of_size=np.arange(4000) < count)
    assert codes(categories._unsuppressed(Facts(None), made)) == named


@pytest.mark.parametrize(("count", "named"), [(800, ["unsuppressed"]), (799, [])])
def test_either_side_of_overlaps_of_enlarged_boxes_of_all_categories(count, named):
    flags = np.tile(np.arange(1000) < 300, 4)
    reduced = flags & (np.cumsum(flags) <= count)
    made = of_confident(np.repeat(np.arange(4), 1000), flags, twins=flags, twins_of_size=reduced)
    assert codes(categories._unsuppressed(Facts(None), made)) == named


@pytest.mark.parametrize(("width", "height", "caused"), [(108, 108, True), (107.9, 108, False), (108, 107.9, False)])
def test_either_side_of_boxes_that_are_enlarged(monkeypatch, width, height, caused):
    """By 8 % in width and in height."""
    evidence = of_confident(np.zeros(1, int), np.zeros(1, bool))
    evidence.objects = evidence.detections = np.arange(1)
    evidence.enlarged = np.array([[1.0, 1.2], [width / 100, height / 100]])
    for name in ("_missed", "_lost", "_unlabelled", "_mixed", "_unsuppressed"):
        monkeypatch.setattr(categories, name, lambda *given: [])
    facts = Facts(None)
    facts.evidence = evidence
    assert list(categories.check(facts)) == []
    assert facts.caused("detections", "biased_boxes") is caused
