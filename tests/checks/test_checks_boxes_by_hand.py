"""Formats of boxes that their images, masks and areas tell, repeated boxes, and crowds, in numbers written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import detmap
from detmap.checks import boxes
from detmap.checks.changes import as_centres, as_corners, swapped_axes, swapped_sides, turned_left, turned_right
from detmap.checks.inputs import side_of
from detmap.checks.rates import Part
from detmap.shapes import Boxes


def truth_of(given, image=None, size=(100, 60), areas=None, crowd=None, count=None, label=None):
    """Objects on images of one size, each on an image of its own, or on those given."""
    given = np.array(given, float).reshape(-1, 4)
    image = np.arange(len(given)) if image is None else np.array(image)
    count = int(image.max()) + 1 if count is None else count
    return detmap.GroundTruth.from_arrays(
        image_ids=image + 1, category_ids=np.ones(len(given), int) if label is None else label, boxes=given,
        images=np.arange(count) + 1, categories=[1, 2], image_sizes=[size[::-1]] * count, areas=areas,
        crowd=crowd,
    )  # fmt: skip


def side(*given, **more):
    return side_of(truth_of(*given, **more))


def facts_of(truth, found=None, agreement=None, part=None, causes=()):
    """What is known of some files; `part` is the part of the images that any flags are found in."""
    made = SimpleNamespace(truth=truth, found=found, agreement=agreement, causes=set(causes), parts=[])
    made.sides = [one for one in (truth, found) if one is not None]
    made.caused = lambda role, *codes: any((role, code) in made.causes for code in codes)
    made.asked = []  # the flags, and the images that are compared
    made.gathered = made.concentrated = lambda *given: made.asked.append([one.tolist() for one in given]) or part
    made.says_part = lambda one: one.says
    return made


def told(made):
    return [(one.code, one.count, one.says.partition(": ")[2], one.records) for one in made]


#: Inside of 100 x 60, and also as corners; inside alone; too far right, and right as corners; too far even then.
INSIDE = {
    "both": [10, 10, 30, 40],
    "plain": [60, 20, 30, 10],
    "corners": [60, 20, 90, 55],
    "neither": [60, 20, 170, 90],
}


@pytest.mark.parametrize(
    ("both", "plain", "corners", "neither", "said"),
    [
        (0, 10, 3, 0, 3), (0, 10, 2, 0, None), (0, 10, 9, 1, 9), (0, 10, 8, 1, None), (0, 0, 5, 0, 5), (10, 0, 10, 0, 20),
        (19, 1, 10, 0, None), (20, 1, 10, 0, 10), (49, 1, 1, 0, None), (95, 2, 3, 0, 3), (97, 2, 3, 0, 100),
        (147, 0, 3, 0, 150), (148, 0, 3, 0, 3),
    ],
)  # fmt: skip
def test_boxes_beyond_their_images_that_are_corners(both, plain, corners, neither, said):
    """Nine of ten must fit; all are told if all fit, and one of 50 reaches beyond."""
    given = [INSIDE["both"]] * both + [INSIDE["plain"]] * plain + [INSIDE["corners"]] * corners
    truth = side(given + [INSIDE["neither"]] * neither)
    made = told(boxes._by_edges(facts_of(truth), truth))
    rows = [*range(both if said == both + corners else 0), *range(both + plain, both + plain + corners)]
    expected = [("corners_as_sizes", said, "", () if said == len(truth) > 10 else tuple(rows[:10]))]
    assert made == ([] if said is None else expected)


@pytest.mark.parametrize(("pixels", "said"), [(3.0, 0), (3.1, 1)])
def test_either_side_of_boxes_that_far_exceed_their_images(pixels, said):
    """By a twentieth of the longer side, or 3 pixels."""
    for size, left, far in (((50, 40), 20, pixels), ((400, 300), 200, pixels + 17)):
        truth = side([[left, 10, size[0] - left + far, 20]] * 3, size=size)
        assert len(told(boxes._by_edges(facts_of(truth), truth))) == said
    flat = side([[60, 20, 90, 0]] * 3)
    assert told(boxes._by_edges(facts_of(flat), flat)) == []


@pytest.mark.parametrize(("count", "code"), [(7, "corners_as_sizes"), (0, None)])
def test_a_change_that_nothing_bears_out_is_no_cause(count, code):
    truth = side([INSIDE["corners"]] * 5)
    asked = []

    def borne_out(of, rows, change):
        asked.append((of is truth, rows.tolist(), change))
        return count

    made = told(boxes._by_edges(facts_of(truth, agreement=SimpleNamespace(borne_out=borne_out)), truth))
    assert [one[0] for one in made] == ([] if code is None else [code])
    assert asked == [(True, [0, 1, 2, 3, 4], as_corners)]


def test_sides_that_are_swapped_fit_into_their_images():
    """Five are enough, or fewer if most boxes inside would not fit; sides fit as well where axes do."""
    inside, wrong = [10, 10, 20, 30], [50, 5, 20, 45]
    five = side([wrong] * 5)
    assert told(boxes._by_edges(facts_of(five), five)) == []  # inside of their images
    wrong = [50, 25, 20, 45]  # swapped, from 50 to 95 and from 25 to 45
    for count, others, said in ((5, 0, 5), (5, 20, 25), (4, 20, None), (4, 0, 4), (3, 0, 3)):
        truth = side([wrong] * count + [inside] * others)
        made = told(boxes._by_edges(facts_of(truth), truth))
        assert [one[:2] for one in made] == ([] if said is None else [("sides_swapped", said)])
    some = side([wrong] * 4 + [inside, [10, 10, 60, 30], [10, 10, 60, 20]])  # one of three fits both ways
    assert [one[:2] for one in told(boxes._by_edges(facts_of(some), some))] == [("sides_swapped", 4)]


def test_boxes_as_corners_are_no_corners_of_corners():
    """In columns of corners, boxes that reach too far are of other images' sizes, or of swapped sides or axes."""
    table = SimpleNamespace(shapes={"bbox": Boxes(np.array([[60.0, 20, 150, 75]] * 3), sizes=False)})
    given = np.array([[60.0, 20, 90, 55]] * 3)
    sizes = np.array([[100.0, 60]] * 3)
    made = SimpleNamespace(
        boxes=given, sizes=sizes, table=table, reach=np.full(3, 50.0), sized=np.ones(3, bool), role="detections",
        drawn=None, unit="detection", image=np.arange(3), records=lambda rows: {}, __len__=lambda: 3,
    )  # fmt: skip
    assert list(boxes._by_edges(facts_of(made), made)) == []
    table.shapes["bbox"] = Boxes(given, sizes=True)

    class Sized(SimpleNamespace):
        def __len__(self):
            return 3

    made = Sized(**vars(made))
    assert [one.code for one in boxes._by_edges(facts_of(made), made)] == ["corners_as_sizes"]


@pytest.mark.parametrize(
    ("count", "others", "by_chance", "corners", "sides"),
    [(1, 0, 0, True, True), (4, 100, 96, True, False), (4, 100, 95, False, False), (4, 100, 50, True, False),
     (4, 100, 49, True, True), (5, 100, 100, True, True), (1, 10, 4, True, True), (1, 20, 9, False, True),
     (2, 20, 12, True, False), (2, 20, 13, False, False), (6, 20, 16, True, True), (7, 20, 16, True, True),
     (8, 20, 17, False, True), (100, 20, 18, False, True), (1, 20, 8, True, True)],
)  # fmt: skip
def test_boxes_that_fit_another_format_more_often_than_by_chance(count, others, by_chance, corners, sides):
    """As corners nine of ten fit: more than twice as probable as that all fit by chance, of which a fifth always may."""
    far = np.arange(count + others) < count
    fits = np.arange(count + others) < count + by_chance
    sizes = np.full((count + others, 2), 50.0)
    share = by_chance / others if others else 0
    assert corners is (share > 0.95 or 0.9**count > 2 * max(share, 0.2) ** count)
    assert bool(boxes._rather(far, fits, sizes, "corners_as_sizes")) is corners
    assert bool(boxes._rather(far, fits, sizes, "sides_swapped")) is sides
    unknown = np.concatenate([sizes, np.full((50, 2), np.inf)])
    more = np.zeros(50, bool)
    assert bool(boxes._rather(np.append(far, more), np.append(fits, ~more), unknown, "sides_swapped")) is sides


def test_boxes_fit_up_to_the_rounding_of_their_edges():
    sizes = np.array([[100.0, 60]] * 6)
    given = np.array(
        [[0, 0, 101.5, 60], [0, 0, 101.6, 60], [-1.5, 0, 50, 50], [-1.6, 0, 50, 50], [0, 0, 0, 9], [0, 0, 9, 0]]
    )
    assert boxes._fits(None, given[:, [1, 0, 3, 2]], sizes).tolist() == [True, False, True, False, False, False]
    assert boxes._fits(swapped_axes, given[:, [1, 0, 3, 2]], sizes).tolist() == [True, False, True, False, False, False]


TALL = [20, 50, 30, 40]  # of 100 x 60 it reaches 30 pixels too far; with both swapped it fits


def turned(truth, found=None, agreement=None, drawn=None):
    facts = facts_of(truth, found, agreement)
    far = np.array([box[1] + box[3] > 61.5 for box in truth.boxes])
    made = told(boxes._turned(facts, truth, far, np.array([box[1] + box[3] <= 100 for box in truth.boxes])))
    return [one[:2] for one in made], facts.causes


def test_sizes_of_images_are_swapped_if_all_of_their_boxes_fit_then():
    swapped = {("ground_truth", "image_sizes_swapped")}
    assert turned(side([TALL, TALL, TALL])) == ([("image_sizes_swapped", 3)], swapped)
    out = [10, 10, 20, 95]
    assert turned(side([TALL, TALL, TALL, out], image=[0, 1, 2, 2])) == ([("image_sizes_swapped", 2)], swapped)
    assert turned(side([TALL, TALL, out, out], image=[0, 1, 0, 2])) == ([], set())  # half of the images, or fewer
    assert turned(side([TALL, TALL], image=[0, 0])) == ([("image_sizes_swapped", 1)], swapped)  # the only image
    assert turned(side([TALL, TALL], image=[0, 0], count=2)) == ([], set())
    assert turned(side([TALL, TALL], count=9)) == ([("image_sizes_swapped", 2)], swapped)


def test_axes_are_swapped_if_the_other_file_fits_its_images():
    """If half as many boxes of the other file exceed the same images by more than 3 pixels, the sizes are wrong."""
    truth = side([TALL] * 4)
    fine, beyond = [10, 10, 20, 20], [10, 10, 20, 53.5]
    for count, codes in ((2, "image_sizes_swapped"), (1, "axes_swapped")):
        found = side([beyond] * count + [fine] * (4 - count))
        [made], causes = turned(truth, found)
        assert made == (codes, 4)
        assert ("ground_truth", codes) in causes
    near = side([[10, 10, 20, 53]] * 4)
    assert turned(truth, near)[0] == [("axes_swapped", 4)]
    elsewhere = side([fine] * 3, image=[4, 5, 6])
    assert turned(side([TALL] * 4, count=7), elsewhere)[0] == [("image_sizes_swapped", 4)]
    found = side([TALL] * 4, count=7)
    facts = facts_of(elsewhere, found)
    far = np.ones(4, bool)
    assert [one.code for one in boxes._turned(facts, found, far, far)] == ["axes_swapped"]


@pytest.mark.parametrize(
    ("swapped", "right", "left", "said"),
    [(0, 0, 0, []), (0, 1, 0, ["turned clockwise by 90 degrees"]), (1, 1, 1, ["turned clockwise by 90 degrees"]),
     (2, 1, 2, ["turned counter-clockwise by 90 degrees"]), (3, 2, 1, [""])],
)  # fmt: skip
def test_boxes_that_are_turned_or_have_swapped_axes(swapped, right, left, said):
    truth, fine = side([TALL] * 4), side([[10, 10, 20, 20]] * 4)
    by = {swapped_axes: swapped, turned_right: right, turned_left: left}
    agreement = SimpleNamespace(borne_out=lambda of, rows, change: by[change])
    far = np.ones(4, bool)
    facts = facts_of(truth, fine, agreement)
    made = told(boxes._turned(facts, truth, far, far))
    assert [one[2] for one in made] == said
    assert [one[0] for one in made] == ["turned_boxes" if one else "axes_swapped" for one in said]


@pytest.mark.parametrize(
    ("count", "others", "areas", "said"),
    [(3, 600, 1.0, None), (2, 0, 1.0, None), (3, 0, 1.0, 3), (3, 597, 1.0, 3), (3, 0, 1.001, 3), (3, 0, 1.0011, None),
     (3, 0, 0.999, 3), (3, 0, 0.9989, None)],
)  # fmt: skip
def test_areas_of_boxes_that_are_corners(count, others, areas, said):
    """Three, or one of 200; the area of a box may differ by a thousandth."""
    given = np.array([[10.0, 20, 50, 60]] * count + [[10, 20, 5, 6]] * others)
    table = SimpleNamespace(areas=np.array([1600.0 * areas] * count + [30.0] * others))
    made = boxes._areas_of_corners(table, given)
    assert (made if made is None else np.flatnonzero(made).tolist()) == (said if said is None else list(range(said)))


@pytest.mark.parametrize(("left", "said"), [(1.0, True), (0.99, False)])
def test_areas_of_boxes_of_which_both_readings_are_alike(left, said):
    """A box of 5,000 pixels, of 100 less as corners for each pixel of its left edge: a hundredth is the least difference."""
    given = np.array([[left, 0, 100, 50]] * 3)
    table = SimpleNamespace(areas=np.full(3, (100 - left) * 50))
    assert (boxes._areas_of_corners(table, given) is not None) is said


def masked(given, bounds, areas):
    """Boxes beside masks of some bounds, as left, top, right and bottom, and areas."""
    made = side(given)
    masks = SimpleNamespace(
        areas=lambda: np.array(areas, float), bounds=lambda: Boxes(np.array(bounds, float), sizes=False)
    )
    made.drawn = None, masks
    return made


@pytest.mark.parametrize(
    ("wrong", "rest", "area", "said"),
    [(3, 3, 17, 3), (2, 0, 17, None), (3, 4, 17, None), (4, 4, 17, 4), (5, 0, 16, None)],
)
def test_masks_tell_the_format_of_boxes(wrong, rest, area, said):
    """Half of those that do not bound their mask, and three; masks of 16 pixels tell nothing."""
    given = [[10, 10, 25, 40]] * wrong + [[10, 10, 5, 5]] * rest
    made = boxes._by_shapes(masked(given, [[10, 10, 25, 40]] * (wrong + rest), [area] * wrong + [100] * rest))
    assert (made and (made[0], np.flatnonzero(made[1]).tolist())) == (said and ("corners_as_sizes", list(range(said))))


def test_the_format_that_most_masks_tell():
    """Four are boxes of swapped sides, three of corners; the bounds that a format gives must overlap by 0.8."""
    given = [[10, 10, 40, 8]] * 4 + [[10, 10, 25, 40]] * 3
    bounds = [[10, 10, 18, 50]] * 4 + [[10, 10, 25, 40]] * 3
    code, rows = boxes._by_shapes(masked(given, bounds, [100] * 7))
    assert (code, np.flatnonzero(rows).tolist()) == ("sides_swapped", [0, 1, 2, 3])
    for bottom, said in ((42, True), (41, False)):  # 0.8 of 40, or less
        near = masked([[10, 10, 40, 8]] * 4, [[10, 10, 18, bottom]] * 4, [100] * 4)
        assert (boxes._by_shapes(near) is not None) is said
    for bottom, said in ((40, False), (40.5, True)):  # half of what they bound, or less
        near = masked([[10, 10, 30, bottom]] * 4, [[10, 10, 30, 40]] * 4, [100] * 4)
        assert (boxes._by_shapes(near) is not None) is said
    assert boxes._by_shapes(side([[10, 10, 30, 40]])) is None


def loop_iou(one, other):
    both = [max(min(one[n] + one[2 + n], other[n] + other[2 + n]) - max(one[n], other[n]), 0) for n in (0, 1)]
    return both[0] * both[1] / (one[2] * one[3] + other[2] * other[3] - both[0] * both[1])


@pytest.mark.parametrize("seed", range(6))
def test_objects_of_one_image_and_category_that_overlap(seed):
    """Those among the next eight by their left edges, of which here each has fewer."""
    rng = np.random.default_rng(seed)
    given = np.c_[rng.integers(0, 5, (40, 2)), rng.integers(0, 9, (40, 2))].astype(float)
    image, label, crowd = rng.integers(0, 5, 40), rng.integers(1, 3, 40), rng.random(40) < 0.2
    made = side(given, image=image, crowd=crowd, label=label, count=5)
    assert np.bincount(image * 2 + label - 1)[~crowd.all()].max() <= 9
    expected = {
        (one, other): loop_iou(given[one], given[other])
        for one in range(40)
        for other in range(one + 1, 40)
        if image[one] == image[other] and label[one] == label[other] and not (crowd[one] or crowd[other])
        and (given[[one, other], 2:] > 0).all() and loop_iou(given[one], given[other]) >= 0.4
    }  # fmt: skip
    one, other, iou = boxes._overlapping(made)
    assert dict(zip(zip(one.tolist(), other.tolist(), strict=True), iou.tolist(), strict=True)) == pytest.approx(
        expected
    )
    assert len(one) == len(expected)


@pytest.mark.parametrize(("apart", "pairs"), [(8, 1), (9, 0)])
def test_objects_are_compared_with_the_next_eight(apart, pairs):
    given = np.array(
        [[0.0, 0, 100, 100], *[[1 + n, 500, 10, 10 + 90 * (n % 2)] for n in range(apart - 1)], [10, 0, 100, 100]]
    )
    given[1:-1, 1] = 500 + 200 * np.arange(apart - 1)
    one, other, iou = boxes._overlapping(side(given, image=np.zeros(apart + 1, int), size=(5000, 5000)))
    assert one.size == other.size == iou.size == pairs
    limited = boxes._overlapping(side(given, image=np.zeros(apart + 1, int), size=(5000, 5000)), most=(apart + 1) * 7)
    assert limited[0].size == 0


@pytest.mark.parametrize(
    ("images", "others", "objects", "said"),
    [(9, 0, 4, True), (2, 0, 4, False), (9, 4, 4, False), (12, 1, 4, True), (12, 0, 2, True), (3, 0, 2, False)],
)  # fmt: skip
def test_images_whose_objects_are_labelled_twice(images, others, objects, said):
    """Far more than twice those on which only an IoU of 0.4 makes pairs, among images of several objects or of four."""
    tight, loose = [[0, 0, 10, 8], [0, 0, 10, 10]], [[0, 0, 10, 5], [0, 0, 10, 10]]
    given, image = [], []
    for at in range(images + others + 3):
        pair = tight if at < images else loose if at < images + others else [[0, 0, 10, 1], [0, 0, 10, 10]]
        for n in range(objects // 2):
            given += [[box[0] + 20 * n, *box[1:]] for box in pair]
            image += [at, at]
    made = side(given, image=image)
    doubled = boxes._doubled(made, *boxes._overlapping(made))
    assert doubled.tolist() == [said and at < images for at in range(images + others + 3)]


@pytest.mark.parametrize(("alone", "said"), [(0, True), (1, True), (2, True), (3, False)])
def test_either_side_of_images_of_which_most_objects_are_paired(alone, said):
    """Eight of ten objects of an image, and a crowd besides."""
    given, image, crowd = [], [], []
    for at in range(30):
        pairs = (10 - alone) // 2
        given += [[30 * n, 0, 10, 7 + 3 * twice] for n in range(pairs) for twice in (0, 1)]
        given += [[30 * n, 50, 10, 10] for n in range(10 - 2 * pairs)] + [[0, 0, 10, 10]]
        image += [at] * 11
        crowd += [False] * 10 + [True]
    made = side(given, image=image, crowd=np.array(crowd), size=(500, 500))
    assert bool(boxes._doubled(made, *boxes._overlapping(made)).all()) is said


def test_each_of_a_pair_has_its_largest_overlap_with_the_other():
    """A third object overlaps the second by less: it has no partner, and the image two of three paired objects."""
    made = side([[0, 0, 10, 10], [0, 0, 10, 9], [0, 0, 10, 7]] * 40, image=np.repeat(np.arange(40), 3))
    one, other, iou = boxes._overlapping(made)
    assert iou.size == 120
    assert not boxes._doubled(made, one, other, iou).any()


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_are_there_before(seed):
    rng = np.random.default_rng(seed)
    whole, fractions = rng.integers(0, 4, 30), rng.choice([0.0, -0.0, 0.5, 1.5], 30)
    seen, expected = set(), []
    for key in zip(whole.tolist(), fractions.tolist(), strict=True):
        expected.append(key in seen)
        seen.add(key)
    assert boxes.duplicates(whole, fractions).tolist() == expected
    assert boxes.duplicates(np.arange(5)).tolist() == [False] * 5
    assert boxes.duplicates(np.arange(0)).tolist() == []


@pytest.mark.parametrize("seed", range(6))
def test_medians_of_categories_with_five_values(seed):
    rng = np.random.default_rng(seed)
    codes, values = rng.choice([0, 1, 3, 4], 30, p=[0.6, 0.25, 0.1, 0.05]), rng.integers(0, 50, 30).astype(float)
    expected = []
    for code in range(6):
        own = sorted(values[codes == code])
        expected.append(own[len(own) // 2] if len(own) >= 5 else float(np.median(values)))
    assert boxes._medians(codes, values, 6).tolist() == expected


def test_a_crowd_that_a_detection_finds_as_one_object():
    """By an IoU of 0.75 and the same category, on the same image, and in the sample."""
    truth = side(
        [[0, 0, 20, 40]] * 5,
        image=[0, 1, 2, 3, 4],
        crowd=np.array([True, True, True, False, True]),
        label=[1, 1, 2, 1, 1],
    )
    found = detmap.Detections.from_arrays(
        image_ids=[1, 2, 3, 4, 5, 1], category_ids=[1, 1, 1, 1, 1, 2], scores=np.ones(6),
        boxes=np.array([[0.0, 0, 15, 40], [0, 0, 14.9, 40], [0, 0, 20, 40], [0, 0, 20, 40], [0, 0, 20, 40], [0, 0, 20, 40]]),
    )  # fmt: skip
    facts = facts_of(truth, side_of(found, truth.table), SimpleNamespace(rows=np.array([0, 1, 2, 3, 5])))
    assert boxes._fitted(facts).tolist() == [True, False, False, False, False]
    facts.agreement.rows = np.arange(6)
    assert boxes._fitted(facts).tolist() == [True, False, False, False, True]
    facts.agreement.rows = np.array([3])
    assert boxes._fitted(facts).tolist() == [False] * 5


@pytest.mark.parametrize(
    ("every", "some", "small", "part", "said"),
    [(10, 5, 10, None, 10), (9, 0, 10, None, 0), (10, 6, 10, None, 0), (12, 6, 12, None, 12), (10, 5, 2, None, 0),
     (12, 0, 3, None, 12), (10, 0, 2, None, 0), (9, 0, 9, 10, 9), (9, 0, 9, 11, 0), (4, 0, 4, 4, 4)],
)  # fmt: skip
def test_images_of_crowds_alone(every, some, small, part, said):
    """Ten images of two crowds, twice as many as those with a crowd and an object; in a part nine of ten images."""
    image = np.repeat(np.arange(every + some + 20), 2)
    crowd = np.arange(image.size) < 2 * every
    crowd[2 * every : 2 * (every + some) : 2] = True
    truth = side([[0, 0, 10, 10]] * image.size, image=image, crowd=crowd)
    there = np.arange(every + some + 20) < (part or 0)
    facts = facts_of(truth, part=None if part is None else Part(there, "images 1 to 9", there))
    rows, says = boxes._all_crowds(facts, np.arange(image.size) < 2 * small)
    assert np.flatnonzero(rows).tolist() == list(range(2 * said))
    among = " among images 1 to 9" if part else ""
    assert says == (f"all objects of {said} images{among}" if said else "")


def crowds(flags, sides, label=None, **more):
    truth = side([[0, 0, one, 10] for one in sides], crowd=np.array(flags, bool), label=label, count=len(sides) + 1)
    facts = facts_of(truth, **more)
    facts.gathered = facts.concentrated = lambda *given: None
    return [(count, says) for _, count, says, _ in told(boxes._crowds(facts))]


SMALL = "smaller than a usual object of their category"


def test_crowds_that_are_single_objects():
    """Three smaller than the median of their category, and a quarter of all; the median of all where there are few."""
    half = ", of which half would be so small if all were single objects"
    assert crowds([1] * 3 + [0] * 20, [4] * 3 + [5] * 20) == [(3, SMALL)]
    assert crowds([1] * 12 + [0] * 20, [4] * 3 + [9] * 9 + [5] * 20) == [(3, f"{SMALL}; of 12 flagged{half}")]
    assert crowds([1] * 13 + [0] * 20, [4] * 3 + [9] * 10 + [5] * 20) == []
    assert crowds([1] * 2 + [0] * 20, [4] * 2 + [5] * 20) == []
    assert crowds([1] * 3 + [0] * 20, [5] * 23) == []
    assert crowds([1] * 3 + [0] * 9, [6] * 3 + [5] * 5 + [9] * 4, [2] * 3 + [1] * 5 + [2] * 4) == []
    assert crowds([1] * 3 + [0] * 10, [6] * 3 + [5] * 5 + [9] * 5, [2] * 3 + [1] * 5 + [2] * 5) == [(3, SMALL)]
    assert crowds([0] * 9, [5] * 9) == []
    assert crowds([1] * 5 + [0] * 5, [9] * 5 + [5] * 5) == []
    assert crowds([1] * 6 + [0] * 5, [9] * 6 + [5] * 5) == [(6, "more than half of all objects")]
    assert crowds([1] * 6, [9] * 6) == [(6, "more than half of all objects")]
    both = f"{SMALL}, or more than half of all objects"
    assert crowds([1] * 6 + [0] * 5, [4] * 6 + [5] * 5) == [(6, both)]
    assert crowds([1] * 6 + [0] * 5, [4] * 6 + [5] * 5, causes=[("ground_truth", "corners_as_sizes")]) == []
    assert crowds([1] * 6 + [0] * 5, [4] * 6 + [5] * 5, causes=[("detections", "corners_as_sizes")]) == [(6, both)]


@pytest.mark.parametrize(
    ("fitted", "flagged", "wide", "said"),
    [(3, 30, 9, True), (2, 2, 9, False), (3, 31, 9, False), (4, 40, 9, True), (3, 3, 10, False)],
)
def test_crowds_that_are_found_as_one_object(monkeypatch, fitted, flagged, wide, said):
    """A tenth of the crowds, less than twice as large as usual objects."""
    rows = np.arange(flagged + 100) < fitted
    monkeypatch.setattr(boxes, "_fitted", lambda facts: rows)
    sides = [wide] * fitted + [30] * (flagged - fitted) + [5] * 100
    made = crowds([1] * flagged + [0] * 100, sides, agreement=SimpleNamespace())
    of = "" if fitted == flagged else f"; of {flagged} flagged"
    assert made == ([(fitted, f"found as one object by a detection{of}")] if said else [])
    known = crowds([1] * flagged + [0] * 100, sides, agreement=SimpleNamespace(), causes=[("detections", "x")])
    assert known == []


@pytest.mark.parametrize(
    ("listed", "flagged", "drawn", "said"),
    [(3, 0, 60, 3), (2, 0, 60, None), (3, 0, 59, None), (5, 2, 100, 3), (3, 3, 60, None), (3, 0, 61, 3)],
)
def test_run_lengths_that_are_no_crowds(listed, flagged, drawn, said):
    """From three on, and up to one of 20 polygons."""
    count = listed + drawn
    truth = side([[0, 0, 10, 10]] * count, crowd=np.arange(count) < flagged)
    outlines = SimpleNamespace(records=np.arange(listed, count))
    truth.inspected = SimpleNamespace(outlines=outlines, listed_runs=np.arange(listed))
    made = told(boxes._unflagged(facts_of(truth)))
    words = f"of {listed} with such a list, beside {drawn} with polygons"
    assert made == ([] if said is None else [("crowds_unflagged", said, words, tuple(range(flagged, listed)))])
    truth.inspected = SimpleNamespace(outlines=None, listed_runs=np.arange(listed))
    assert told(boxes._unflagged(facts_of(truth))) == []


def test_images_without_a_size():
    """Both sides must be known; the first ten are named."""
    sizes = [(0, 5)] * 6 + [(5, 0)] * 6 + [(5, 5)] * 3
    table = SimpleNamespace(images=SimpleNamespace(ids=np.arange(15) + 1, sizes=np.array(sizes)))
    facts = SimpleNamespace(kind=SimpleNamespace(scene="image"), truth=SimpleNamespace(on=table))
    assert told(boxes._sizes(facts)) == [("unknown_sizes", 12, "", tuple(range(1, 11)))]
    table.images.sizes = None
    assert told(boxes._sizes(facts)) == [("unknown_sizes", 15, "", tuple(range(1, 11)))]
    table.images.sizes = np.ones((15, 2))
    assert told(boxes._sizes(facts)) == []
    facts.kind.scene = "video"
    table.images.sizes = None
    assert told(boxes._sizes(facts)) == []


def test_changes_of_boxes_are_those_that_are_named():
    given, sizes = np.array([[10.0, 20, 30, 50]]), np.array([[100.0, 60]])
    assert as_corners(given, sizes).tolist() == [[10, 20, 20, 30]]
    assert as_centres(given, sizes).tolist() == [[-5, -5, 30, 50]]
    assert swapped_sides(given, sizes).tolist() == [[10, 20, 50, 30]]
    assert turned_right(given, sizes).tolist() == [[20, 60 - 10 - 30, 50, 30]]
    assert turned_left(given, sizes).tolist() == [[100 - 20 - 50, 10, 50, 30]]


# ------------------------------------------------------------------------------------------------- repeated and inverted


def again(given, image=None, constant=(), aside=(), part=None, label=None, crowd=None):
    """What is said of repeated objects."""
    image = np.zeros(len(given), int) if image is None else image
    truth = side(given, image=image, size=(900, 900), label=label, crowd=crowd)
    truth.constant[list(constant)] = truth.aside[list(aside)] = True
    return told(boxes._duplicates(facts_of(truth, part=part), truth))


def test_objects_that_are_there_again():
    """The same image, category and box; three that are nearly the same are told, too."""
    one, other = [10, 10, 100, 100], [300, 300, 50, 50]
    assert again([one]) == []
    assert again([one, other]) == []
    assert again([one, other, one, one]) == [("duplicate_objects", 2, "", (2, 3))]
    assert again([one, one], label=[1, 2]) == []
    assert again([one, one], image=[0, 1]) == []
    assert again([one, one], crowd=np.array([True, False])) == []
    assert again([one, one], constant=[1]) == []
    assert again([one, one, other, other], aside=[0]) == [("duplicate_objects", 1, "", (3,))]
    near = [[10, 10, 100, 95.5], [310, 10, 100, 100], [310, 10, 100, 95.5], [10, 310, 100, 100], [10, 310, 100, 95.5]]
    alone = [[500.0, 30 * n, 20, 20] for n in range(20)]
    more = "some with all but the same box"
    assert again([one, *near, *alone]) == [("duplicate_objects", 3, more, (1, 3, 5))]
    assert again([one, *near[:3], *alone]) == []
    far = [[*box[:3], 94.5] if box[3] == 95.5 else box for box in near]
    assert again([one, *far, *alone]) == []


def test_images_that_are_labelled_twice():
    """All of nine images, by an IoU of 0.7 or more; those of one part are said to be."""
    given, image = [], []
    for at in range(9):
        given += [[0, 0, 10, 8], [0, 0, 10, 10], [50, 0, 10, 10], [50, 0, 10, 7.5]]
        image += [at] * 4
    given += [[0, 0, 10, 10], [40, 40, 10, 10]] * 30
    image += np.repeat(np.arange(9, 39), 2).tolist()
    words = (
        "18 of them on 9 images on which nearly all objects have an earlier or later one beside them with an IoU of "
    )
    words += "0.7 or more"
    assert again(given, image) == [("duplicate_objects", 18, words, tuple(range(1, 10)))]
    there = np.arange(39) < 5
    [made] = again(given, image, part=Part(there, "images 1 to 5", there))
    assert made[2] == f"{words}; 5 of these are among images 1 to 5"


@pytest.mark.parametrize("role", ["detections", "ground_truth"])
@pytest.mark.parametrize("inside", [True, False])
def test_boxes_of_negative_sides_in_another_order_of_columns(role, inside):
    """Of detections as many confident ones are tried as there are objects on their images."""
    given = np.array([[20.0, 20, 10, 10], [30, 30, -5, 8], [30, 30, 5, -8], [30, 30, -5, -8], [1, 1, 2, 2]])
    image = np.array([0, 0, 1, 2, 3])
    truth = side([[0, 0, 5, 5]] * 3, image=[0, 0, 3], count=4)

    class Records(SimpleNamespace):
        def __len__(self):
            return 5

    own = Records(image=image, on=truth.on, role=role)
    asked = []

    def borne_out(of, rows, change):
        asked.append((of is own, rows.tolist()))
        return 7 if len(asked) == 3 else 6 if len(asked) == 2 else 0

    whole = SimpleNamespace(
        truth=truth if role == "detections" else own, found=own if role == "detections" else truth, borne_out=borne_out,
        confidence=np.array([0.9, 0.5, 0.6, 0.7, 0.1]),
    )  # fmt: skip
    there = np.arange(4) < 2
    facts = facts_of(truth, own, whole, part=Part(there, "images 1 to 2", there) if inside else None)
    says = boxes._of_corners(facts, own, (given[:, 2:] < 0).any(axis=1))
    order = list(boxes.ORDERS)[2]
    words = f"columns in the order {order} are read as x1, y1, x2, y2; in theirs, detections lie on 7 more objects"
    assert says == (f"{words}; images 1 to 2" if inside else words)
    assert len(asked) == len(boxes.ORDERS) == 23
    assert {(of, *rows) for of, rows in asked} == {(True, 2, 3) if role == "detections" else (True, 1, 2, 3)}
    assert [part[1] for part in facts.parts] == [None] * inside
    assert facts.causes == (set() if inside else {(role, "inverted_boxes")})
    asked[:] = [0] * 5
    assert boxes._of_corners(facts, own, (given[:, 2:] < 0).any(axis=1)) == ""
    assert boxes._of_corners(facts, own, np.zeros(5, bool)) == ""
    facts.agreement = None
    assert boxes._of_corners(facts, own, np.ones(5, bool)) == ""


@pytest.mark.parametrize(
    ("areas", "said"),
    [
        ([100, 200, 300], []), ([131, 246, 361], []), ([69, 154, 239], []),
        ([50, 100, 150], [(3, "0.5 times that of the box in the median, as at 0.707 times the size of the image")]),
        ([0.1, 200, 300], [(1, "0.001 times that of the box")]), ([100, 200, 362], [(1, "1.21 times that of the box")]),
        ([100 + 2 + 30 + 2.0, 200, 300], [(1, "1.34 times that of the box")]),
        ([200, 400, 600], [(3, "2 times that of the box in the median, as at 1.41 times the size of the image")]),
        ([200, 400, 300], [(2, "2 and 2 times that of the box")]),
    ],
)  # fmt: skip
def test_areas_of_objects_by_their_boxes(areas, said):
    """Boxes of 10 by 10, 20 and 30: 1.5 pixels for each of half of the perimeter, and one more, are the rounding."""
    given = [[0, 0, 10, 10], [0, 0, 20, 10], [0, 0, 30, 10], *[[0, 0, 40, 40]] * 9]
    truth = side(given, areas=np.array([*areas, *[1600.0] * 9]), size=(100, 60))
    made = [(count, says) for _, count, says, _ in told(boxes._areas(facts_of(truth)))]
    assert made == said


@pytest.mark.parametrize(("high", "said"), [(1.6, ", as at 1 times the size of the image"), (1.601, "")])
def test_areas_are_of_one_size_of_the_image_up_to_a_ratio_of_their_quartiles(high, said):
    times = np.array([1.0, 1.0, 1.0, high, high])
    assert (
        boxes._factor(times, "box", True)
        == f"1 times that of the box in the median, 1 to 1.6 times for half of them{said}"
    )
    assert (
        boxes._factor(times, "mask", False) == "1 times that of the mask in the median, 1 to 1.6 times for half of them"
    )
    assert boxes._factor(times[:2], "box", True) == "1 and 1 times that of the box"
    assert boxes._factor(times[:0], "box", True) == "the box has none"


def of_masks(*areas, drawn=1000, crowd=None):
    """What is said of objects of 40 x 50 pixels with masks of an area, beside whose areas others are written."""
    truth = side([[5, 5, 40, 50]] * len(areas), areas=np.array(areas, float), crowd=crowd)
    truth.drawn = None, SimpleNamespace(areas=lambda: np.full(len(areas), float(drawn)))
    return [(code, count, says, records) for code, count, says, records in told(boxes._areas(facts_of(truth)))]


def test_areas_of_objects_by_their_masks():
    """Rounding is 15 % of the mask or 2 pixels for each of half of the perimeter and 2 more, and of the box 1.5 and one."""
    assert of_masks(1000, 1182, 818) == []
    wrong = [("area_misfits", 1, "1.18 times that of the mask", (1,))]
    assert of_masks(1000, 1183, 1000) == wrong
    assert of_masks(1000, 817, 1000) == [("area_misfits", 1, "0.817 times that of the mask", (1,))]
    assert of_masks(2000, 1864, 2136) == [("areas_of_boxes", 3, "", (0, 1, 2))]
    assert of_masks(2000, 1864) == []
    assert of_masks(2000, 1864, 1863) == [("area_misfits", 1, "1.86 times that of the mask", (2,))]
    assert of_masks(2000, 1864, 2137) == [("area_misfits", 1, "2.14 times that of the mask", (2,))]
    assert of_masks(2000, 2000, 2000, drawn=101) == [("areas_of_boxes", 3, "", (0, 1, 2))]
    assert of_masks(2000, 2000, 2000, drawn=100) == []
    assert of_masks(2000, 2000, 2000, crowd=np.array([True, False, False])) == []
    large = of_masks(2300, 2000, 2000, drawn=2000)
    assert large == []  # 15 % of 2,000
    assert [one[:2] for one in of_masks(2301, 2000, 2000, drawn=2000)] == [("area_misfits", 1)]
    assert [one[2] for one in of_masks(1300, 1400, 1500, drawn=0)] == ["the mask has none"]


@pytest.mark.parametrize(
    ("areas", "said"),
    [([79] * 6, 0), ([78.9] * 6, 6), ([41_401] * 6, 0), ([41_402] * 6, 6), ([40_000] * 6 + [30_000] * 4, 4),
     ([40_000] * 5 + [30_000] * 5, 0), ([40_200.5] * 6 + [30_000] * 4, 4), ([40_201] * 6 + [30_000] * 4, 0),
     ([40_000] * 6 + [39_200] * 4, 0), ([40_000] * 6 + [39_199] * 4, 4)],
)  # fmt: skip
def test_areas_that_are_no_part_of_their_boxes(areas, said):
    """Boxes of 200 by 200: areas of masks may be far smaller, unless six of ten areas are those of boxes."""
    truth = side([[0, 0, 200, 200]] * len(areas), areas=np.array(areas, float), size=(300, 300))
    assert [count for _, count, *_ in told(boxes._areas(facts_of(truth)))] == [said] * (said > 0)
