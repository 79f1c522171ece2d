"""What is said of repeated records, word for word, and which rows are named."""

from __future__ import annotations

import numpy as np
import pytest
from test_checks_limits_repeats import facts_of, varied

from detmap.checks import repeats
from detmap.checks.rates import Part


def told(facts):
    return [(one.code, one.count, one.unit, one.says.partition(": ")[2], one.records) for one in repeats.check(facts)]


def part_of(images, count=200):
    there = np.isin(np.arange(count), images)
    return Part(there, "the part", there)


# --------------------------------------------------------------------------------------------------------- one box


@pytest.mark.parametrize("side", ["truth", "found"])
def test_one_box_on_many_images(side):
    rows = [[2 * at, 1, 7.25, 8, 50, 60, 0.5] for at in range(6)]
    objects = varied(200)[:, :6]
    own = varied(200, seed=5)
    facts = facts_of(
        [*objects, *np.array(rows)[:, :6]] if side == "truth" else objects, [*own, *rows] if side == "found" else own
    )
    says = "x, y, width, height 7.25, 8, 50, 60, on 6 images"
    unit = {"truth": "object", "found": "detection"}[side]
    assert told(facts) == [("constant_boxes", 6, unit, says, tuple(range(200, 206)))]


def constant(rows, objects=False):
    rows = np.array(rows, float)
    facts = facts_of(rows[:, :6] if objects else [[0, 1, 300, 300, 9, 9]], rows)
    return np.flatnonzero(repeats.constant(facts.truth if objects else facts.found)).tolist()


def test_which_box_is_constant():
    """The most frequent one; of objects, on images that mostly do not follow one another."""
    box = [10.0, 10, 20, 30]
    every = [[at, 1, *box, 0.5] for at in range(5)]
    assert constant(every) == [0, 1, 2, 3, 4]
    assert constant(every[:4]) == []
    assert constant([*every[:4], [9, 1, *box, 0.6]]) == []
    assert constant([*every, [9, 2, *box, 0.5]]) == [0, 1, 2, 3, 4, 5]
    more = [[at, 1, 11.0, 10, 20, 30, 0.5] for at in range(6)]
    assert constant([*every, *more]) == [5, 6, 7, 8, 9, 10]
    assert len(constant([*every, *more[:5]])) == 5
    whole = [[at, 1, 0, 0, 400, 400, 0.5] for at in range(8)]
    assert constant(whole) == []
    assert constant([*whole, *every]) == [8, 9, 10, 11, 12]
    flat = [[at, 1, 10, 10, 0, 30, 0.5] for at in range(8)]
    assert constant(flat) == []
    same_image = [[0, 1, *box, 0.5]] * 3 + [[at, 1, *box, 0.5] for at in range(1, 4)]
    assert constant(same_image) == []
    again = [[at // 3, 1, *box, 0.5] for at in range(15)]
    assert constant(again) == list(range(15))  # three on each of five images
    assert constant([[2 * at, 1, *box, 0.5] for at in range(5)], objects=True) == [0, 1, 2, 3, 4]
    assert constant([[2 * at, 1, *box, 0.5] for at in range(4)], objects=True) == []
    assert constant([[at, 1, *box, 0.5] for at in range(12)], objects=True) == []
    runs = [10 * run + at for run in range(5) for at in range(3)]
    assert constant([[at, 1, *box, 0.5] for at in runs], objects=True) == list(range(15))
    runs = [10 * run + at for run in range(5) for at in range(3)] + [3]
    assert constant([[at, 1, *box, 0.5] for at in runs], objects=True) == []


def test_the_second_of_frequent_boxes():
    """A box on images in a row hides no other one; three boxes are looked at."""
    rest = [[at, 1, 10 + n, 10, 20, 30, 0.5] for n in range(2) for at in range(20)]
    apart = [[2 * at, 1, 100, 10, 20, 30, 0.5] for at in range(6)]
    assert constant([*rest, *apart], objects=True) == list(range(40, 46))
    more = [[at, 1, 50, 10, 20, 30, 0.5] for at in range(20)]
    assert constant([*rest, *more, *apart], objects=True) == []


# ------------------------------------------------------------------------------------------------------ copied images


def test_what_is_said_of_images_with_the_detections_of_an_earlier_one():
    own = varied(200, each=2)
    own = own[~np.isin(own[:, 0], [5, 9])]
    copies = [[5, *row[1:]] for row in own[own[:, 0] == 3]] + [[9, *row[1:]] for row in own[own[:, 0] == 3]]
    objects = varied(200, seed=3)[:, :6]
    facts = facts_of(objects, [*own, *copies])
    assert told(facts) == [("same_detections", 2, "image", "", (5, 9))]
    assert np.flatnonzero(facts.found.aside).tolist() == [396, 397, 398, 399]
    objects[9, 1:] = objects[5, 1:] = objects[3, 1:]
    assert told(facts_of(objects, [*own, *copies])) == []  # the same image under three ids
    objects[5, 2] += 1
    assert told(facts_of(objects, [*own, *copies]))[0][:2] == ("same_detections", 2)  # beside the next one of them
    schema = facts_of(objects, [*own, *copies])
    schema.schema = True
    assert repeats.check(schema).__next__().count == 2


def left_over(images, step, own=None, part=None, objects=None):
    """What is said of images that hold two detections of the image so many before or behind, besides three of their own."""
    every = varied(200, each=3)
    again = [[at, *row[1:]] for at in images for row in every[every[:, 0] == at + step][:2]]
    if own is not None:
        every = every[~np.isin(every[:, 0], own)]
    truth = np.array(varied(200, seed=3)[:, :6]) if objects is None else objects
    facts = facts_of(truth, [*every, *again])
    facts.concentrated = lambda flags, known: None if part is None else part_of(part)
    made = list(repeats._left_over(facts, facts.found, repeats._best(facts.found)))
    return [(one.code, one.count, one.says.partition(": ")[2], one.records) for one in made], facts, len(every)


def test_what_is_said_of_detections_of_another_image():
    images = range(10, 50, 10)
    for step, way in ((-1, ", of the image before, by id"), (1, ", of the image after, by id"), (-3, "")):
        # the detections of each image before are on objects, those left over are not
        every = varied(200, each=3)
        objects = every[::3, :6]
        made, facts, rows = left_over(images, step, objects=objects)
        assert made == [("detections_left_over", 8, f"on 4 images{way}", tuple(range(rows, rows + 8)))]
        assert np.flatnonzero(facts.found.aside).tolist() == list(range(rows, rows + 8))
    made, _, rows = left_over(images, -1, part=range(10, 60), objects=objects)
    assert made[0][2] == "on 4 images, of the image before, by id; the part, 50 images with 158 detections"
    assert left_over(images[:2], -1, objects=objects)[0] == []
    assert len(left_over(images[:3], -1, objects=objects)[0]) == 1
    assert len(left_over(images, -1, own=[10], objects=objects)[0]) == 1
    assert left_over(images, -1, own=[10, 20], objects=objects)[0] == []  # two of four, but three are needed
    many = range(10, 70, 10)
    assert len(left_over(many, -1, own=[10, 20, 30], objects=objects)[0]) == 1
    assert left_over(many, -1, own=[10, 20, 30, 40], objects=objects)[0] == []


def test_images_with_equal_objects_are_one_image():
    objects = varied(200, each=3)[::3, :6].copy()
    for at in range(10, 50, 10):
        objects[at, 1:] = objects[at - 1, 1:]
    assert left_over(range(10, 50, 10), -1, objects=objects)[0] == []


# -------------------------------------------------------------------------------------------------------- in one place


def test_what_is_said_of_detections_in_one_place():
    """All in the place are named, also those of low scores, and of no other category."""
    far = np.c_[varied(400)[:, :2], np.tile([300.0, 300, 60, 60], (400, 1))]
    rows = [[2 * at, 1, 100 + at % 2, 100, 50, 50.25, 0.9 + at / 999] for at in range(16)]
    rows += [[2 * at, 1, 102, 100, 50, 50, at / 9999] for at in range(20, 24)]
    rows += [[101, 2, 100, 100, 50, 50, 0.95], [103, 1, 100, 104, 50, 50, 0.9], [500, 1, 100, 100, 50, 50, 0.9]]
    facts = facts_of(far, [*rows, *varied(400, 2)], images=400)
    made = [one for one in told(facts) if one[0] == "detections_in_place"]
    assert [one[:3] for one in made] == [("detections_in_place", 20, "detection")]
    assert made[0][3] == (
        "category 1, x, y, width, height within 3 pixels of 101, 100, 50, 50.2, on 20 images; 100% of 20 looked at find no "
        "object"
    )
    assert made[0][4] == tuple(range(10))
    assert np.flatnonzero(facts.found.aside).tolist() == list(range(20))


# ------------------------------------------------------------------------------------------------------- two categories


def test_what_is_said_of_detections_of_two_categories():
    """Kept is the category on whose objects more of the boxes lie."""
    for kept, more in ((1, 2), (2, 1)):
        first, second = varied(250, 1, seed=1)[:100], varied(250, 2, seed=2)[:80]
        again = first[:20] + np.array([0, 1, *[0] * 5])
        truth = [[*row[:1], kept if at < 12 else more, *row[2:6]] for at, row in enumerate(first[:20])]
        truth += [[row[0], 1, *row[2:6]] for row in varied(250, 1, seed=9)[150:160]]
        facts = facts_of(truth, [*first, *second, *again], images=250)
        made = [one for one in told(facts) if one[0] == "detections_of_two_classes"]
        count = 100
        rows = range(180, 190) if kept == 1 else range(10)
        assert made == [
            ("detections_of_two_classes", 20, "detection",
             f"of {count} of category {kept}, under {more}; of 20 looked at that lie on an object, 12 lie on one of the "
             "first and 8 on one of the second", tuple(rows))
        ]  # fmt: skip
        assert np.flatnonzero(facts.found.aside).tolist() == list(range(180, 200) if kept == 1 else range(20))


def of_boxes(inside=1.0, outside=0.0, kinds=3, part=range(20), schema=False, coarse=0, objects=0, images=60):
    """What is said of five boxes, each under two categories, on each of 60 images: with equal scores in the part."""
    rng = np.random.default_rng(0)
    rows = []
    for image in range(images):
        for at in range(5):
            box = [10 + 60 * at, 10 + image, 40, 50]
            low = (at % kinds) % 4
            scores = rng.uniform(0.1, 0.9, 2) if coarse == 0 else rng.integers(1, coarse + 1, 2) / (coarse + 1)
            equal = (image * 5 + at) % 20 < 20 * (inside if image in part else outside)
            rows += [
                [image, 1 + low, *box, scores[0]],
                [image, 5 + (at % kinds > 3), *box, scores[0] if equal else scores[1]],
            ]
    truth = [[0, 1, 300, 300, 20, 20], *[[m, 1 + n, 100, 100, 9, 9] for m in range(objects) for n in range(2)]]
    facts = facts_of([*truth, *[[at, 1, 300, 300, 20, 20] for at in range(1, 20)]], rows, images=images)
    facts.schema = schema
    best = repeats._best(facts.found)
    asked = []

    def gathered(flags, known):
        asked.append((np.flatnonzero(flags).tolist(), np.flatnonzero(known).tolist()))
        return None if part is None else part_of(part, images)

    facts.gathered = gathered
    made = list(repeats._of_boxes(facts, facts.found, best, repeats._pairs(facts.found, best)))
    assert len(facts.parts) == len(made)
    return [(one.count, one.says.partition(": ")[2], one.records) for one in made], asked


def test_what_is_said_of_one_score_for_all_categories_of_a_box():
    made, asked = of_boxes()
    says = (
        "the part, 20 images with 200 detections; of 100 pairs of categories of one box looked at there 100% have one "
        "score, elsewhere 0%"
    )
    assert made == [(200, says, tuple(range(10)))]
    assert asked == [(list(range(20)), list(range(60)))]
    made, asked = of_boxes(inside=0.9, outside=0.5)
    assert made[0][1].endswith("there 90% have one score, elsewhere 50%")
    assert made[0][0] == 180
    assert of_boxes(part=range(60))[0][0][1].endswith(
        "there 100% have one score, elsewhere 0%"
    )  # there is none elsewhere
    assert of_boxes(inside=0.85)[0] == []
    assert of_boxes(outside=0.55)[0] == []
    assert of_boxes(kinds=2)[0] == []
    assert len(of_boxes(kinds=3)[0]) == 1
    assert of_boxes(schema=True)[0] == []
    assert of_boxes(coarse=6)[0] == []
    assert len(of_boxes(coarse=60)[0]) == 1
    assert len(of_boxes(objects=1)[0]) == 1  # 2 of 22 objects have two categories
    assert of_boxes(objects=2)[0] == []
    assert of_boxes(part=range(1))[0] == []  # five pairs
    assert len(of_boxes(part=range(2))[0]) == 1


def test_names_of_categories():
    facts = facts_of([[0, 1, 300, 300, 20, 20]], [[0, 3, 1, 1, 9, 9, 0.5], [0, 77, 1, 1, 9, 9, 0.5]])
    assert [repeats._name(facts, facts.found, code) for code in range(2)] == ["3", "77"]


@pytest.mark.parametrize(("both", "first", "second", "meant"), [
    (1, 10, 10, True), (1, 11, 20, False), (2, 20, 30, True), (1, 0, 5, False), (0, 5, 5, False), (1, 30, 10, True),
])  # fmt: skip
def test_objects_that_are_labelled_under_two_categories(both, first, second, meant):
    """A tenth of those of the rarer one."""
    one, other = varied(200, 1, seed=1)[:first, :6], varied(200, 2, seed=2)[:second, :6]
    count = min(both, first)
    other[:count] = one[:count] + np.array([0, 1, *[0] * 4])
    facts = facts_of([*one, *other, [0, 5, 300, 300, 9, 9]], [[0, 1, 1, 1, 9, 9, 0.5], [0, 2, 1, 1, 9, 9, 0.5]])
    assert repeats._meant(facts, facts.found, 0, 1) is meant
