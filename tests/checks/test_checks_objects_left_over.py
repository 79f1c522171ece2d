"""Objects of another image beside an image's own: numbers are counted again, limits are tested on both sides."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from test_checks_parts import by_image, iou, planted

from detmap.checks import objects_left_over
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.data.tables import Detections, GroundTruth


def cut(box, size):
    x, y, w, h = box
    near = max(x, 0), max(y, 0)
    return [*near, min(x + w, size[0]) - near[0], min(y + h, size[1]) - near[1]]


def alike(objects):
    return sorted((o["category_id"], *o["bbox"]) for o in objects)


def is_found(one, found):
    return any(d["category_id"] == one["category_id"] and iou(one["bbox"], d["bbox"]) >= 0.5 for d in found)


@pytest.mark.parametrize("kind", ["crowded", "sparse", "one class"])
@pytest.mark.parametrize("name", ["boxes_of_the_image_before_not_cleared", "boxes_of_the_image_before_on_some_images"])
def test_objects_of_the_image_before_are_counted_again(name, kind):
    data, made = planted(name, kind)
    one = made["objects_left_over"]
    images = sorted(data.truth["images"], key=lambda i: i["id"])
    held, found = by_image(data.truth["annotations"]), by_image(data.found)
    copies, originals = {}, {}
    for last, image in itertools.pairwise(images):
        size = image["width"], image["height"]
        if alike(held.get(image["id"], ())) == alike(held.get(last["id"], ())):
            continue  # the image has none of its own, and may be the same one twice
        for o in held.get(image["id"], ()):
            for p in held.get(last["id"], ()):
                if o["category_id"] == p["category_id"] and np.allclose(o["bbox"], cut(p["bbox"], size), atol=0.02):
                    copies[o["id"]], originals[p["id"]] = o, p
    whole = len({o["image_id"] for o in copies.values()})
    assert one.count == len(copies) > 5
    assert f": on {whole:,} images, of the image before, in the order of ids; " in one.says
    hits = [sum(is_found(o, found.get(o["image_id"], ())) for o in own.values()) for own in (copies, originals)]
    assert f"; detections find {hits[0]:,} of them, and {hits[1]:,} of the {len(originals):,} objects that" in one.says
    assert "misplaced" not in made
    assert {data.truth["annotations"][at]["id"] for at in one.records} <= set(copies)


# ------------------------------------------------------------------------------------------------ either side of limits


def said(objects, detections, sizes=None, images=200):
    """What is said of objects (image, category, box) and detections of score 0.5, on images of 400 x 400."""
    objects, detections = (np.array(rows, float).reshape(-1, 6) for rows in (objects, detections))
    truth = GroundTruth.from_arrays(
        image_ids=objects[:, 0].astype(int), category_ids=objects[:, 1].astype(int), boxes=objects[:, 2:],
        image_sizes=np.full((images, 2), 400) if sizes is None else sizes, images=np.arange(images), categories=[1, 2],
    )  # fmt: skip
    found = Detections.from_arrays(
        image_ids=detections[:, 0].astype(int), category_ids=detections[:, 1].astype(int), boxes=detections[:, 2:],
        scores=np.full(len(detections), 0.5),
    )  # fmt: skip
    facts = Facts(side_of(truth), side_of(found, truth))
    made = list(objects_left_over.check(facts))
    assert [one.count for one in made] == ([int(facts.truth.aside.sum())] if made else [])
    return made[0].says if made else ""


def some(images=200, each=3, seed=0):
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(images), each)
    return np.c_[image, np.ones(image.size), np.round(rng.uniform(50, 200, (image.size, 2))),
                 np.round(rng.uniform(30, 90, (image.size, 2)))]  # fmt: skip


def left_over(images, copied=3, own=None, step=1, found=lambda rows: rows):
    """Every third image from the second on has objects of the image before, beside its own or on as many as `own`."""
    rows = some()
    sources = np.arange(images) * 3
    again = np.concatenate([rows[rows[:, 0] == at][:copied] for at in sources]) + np.array([step, *[0] * 5])
    gone = [] if own is None else sources[own:] + step
    kept = rows[~np.isin(rows[:, 0], gone)]
    return said([*kept, *again], found(kept))


def test_either_side_of_images_with_objects_of_another():
    assert left_over(6)
    assert not left_over(4)
    # five images and none the other way round are a chance of 0.0037, six of 0.0006
    assert not left_over(5)


def test_all_objects_of_the_other_image_are_there():
    rows = some(each=5)
    for copied, expected in ((4, True), (3, False)):  # 0.8 of them
        again = np.concatenate([rows[rows[:, 0] == at][:copied] for at in range(0, 60, 3)]) + np.array([1, *[0] * 5])
        assert bool(said([*rows, *again], rows)) is expected


def test_images_have_objects_of_their_own_beside():
    """An image with the objects of another alone is the same image twice; some of these have one object less."""
    rows = some(each=5)
    for own, expected in ((10, True), (9, False)):
        sources = np.arange(20) * 3
        again = np.concatenate([rows[rows[:, 0] == at][: 5 if k < own else 4] for k, at in enumerate(sources)])
        kept = rows[~np.isin(rows[:, 0], sources[own:] + 1)]
        assert bool(said([*kept, *(again + np.array([1, *[0] * 5]))], kept)) is expected


def test_objects_at_rest_are_found_on_both_images():
    """Copies are found as often as originals: an object at rest in a video. Nor is it known without detections."""
    rows = some()
    again = rows[rows[:, 0] % 3 == 0] + np.array([1, *[0] * 5])
    assert said([*rows, *again], rows)
    assert not said([*rows, *again], [*rows, *again])
    assert not list(objects_left_over.check(Facts(side_of(GroundTruth.from_arrays(
        image_ids=rows[:, 0].astype(int), category_ids=np.ones(len(rows), int), boxes=rows[:, 2:])))))  # fmt: skip


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (1, "of the image before"),
        (-1, "of the image after"),
        (16, "of the image 16 before"),
        (-5, "of the image 5 after"),
    ],
)
def test_the_other_image_may_lie_anywhere(step, says):
    rows = some()
    again = rows[(rows[:, 0] % 3 == 0) & (rows[:, 0] > 20) & (rows[:, 0] < 120)] + np.array([step, *[0] * 5])
    assert f", {says}, in the order of ids; " in said([*rows, *again], rows)


@pytest.mark.parametrize(("records", "expected"), [(2, True), (1, False)])
def test_at_no_common_distance_two_objects_are_equal(records, expected):
    rows = some(each=records)
    to = np.arange(40) ** 2 % 97 + 60
    again = np.concatenate([np.c_[np.full(records, b), rows[rows[:, 0] == a][:, 1:]] for a, b in enumerate(to)])
    made = said([*rows, *again], rows)
    assert bool(made) is expected
    assert ", in the order of" not in made.partition(";")[0]


def test_half_of_the_equal_objects_are_at_one_distance():
    rows = some(each=1)
    near, far = np.arange(0, 60, 3), np.arange(100, 120)
    to = 199 - (far - 100) ** 2 % 61
    for count, expected in ((len(far), True), (len(far) + 1, False)):
        moved = rows[far[:1]] if count > len(far) else rows[:0]
        again = [
            *(rows[near] + np.array([1, *[0] * 5])),
            *np.c_[to, rows[far][:, 1:]],
            *(moved + np.array([40, *[0] * 5])),
        ]
        assert bool(said([*rows, *again], rows)) is expected


@pytest.mark.parametrize(("by", "expected"), [(0.0, 30), (0.019, 30), (0.021, 27)])
def test_rounded_copies_are_copies(by, expected):
    rows = some()
    again = rows[rows[:, 0] % 6 == 0][:30] + np.array([1, *[0] * 5])
    again[-3:, 3] += by
    made = said([*rows, *again], rows)
    assert int(re.match(r"\d+", made)[0]) == expected


def test_copies_are_cut_off_at_the_edges():
    """On a smaller image an object is cut off, or is not there at all."""
    rows = some()
    sizes = np.full((200, 2), 400)
    sizes[1::3] = 140
    again = rows[rows[:, 0] % 3 == 0] + np.array([1, *[0] * 5])
    far = np.minimum(again[:, 2:4] + again[:, 4:], 140)
    again[:, 4:] = far - again[:, 2:4]
    again = again[(again[:, 4:] >= 2).all(axis=1)]
    own = rows.copy()
    small = own[:, 0] % 3 == 1
    own[small, 2:] = own[small, 2:] / 3
    made = said([*own, *again], own, sizes)
    assert int(re.match(r"\d+", made)[0]) == len(again)


@pytest.mark.parametrize("seed", range(5))
def test_in_videos_of_objects_that_appear_and_stay_none_are_left_over(seed):
    """Each frame has all objects of the frame before, and new ones; the detector finds some now and then."""
    rng = np.random.default_rng(seed)
    objects, found, there = [], [], []
    for frame in range(200):
        there = [] if frame % 20 == 0 else there
        for _ in range(rng.poisson(1.0) + 2 * (frame % 20 == 0)):
            there.append((*np.round(rng.uniform(0, 300, 2)), *np.round(rng.uniform(30, 90, 2)), rng.uniform(0.3, 0.95)))
        objects += [(frame, 1, *one[:4]) for one in there]
        found += [(frame, 1, *one[:4]) for one in there if rng.random() < one[4]]
    assert not said(objects, found)
