"""Either side of each limit by which a cause is accepted: other readings of ids and boxes, and the tests of rates."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_edges import FOUND, TRUTH

import detmap
from detmap.checks import check, image_ids, labels, repeats
from detmap.checks.agreement import Agreement, Nearest
from detmap.checks.changes import turned_left, turned_right
from detmap.checks.counts import Counts
from detmap.checks.evidence import _grouped, evidence_of
from detmap.checks.inputs import side_of
from detmap.checks.rates import bad_ranges, evidence


def places(count):
    """A box for each image, at a place of its own."""
    at = np.arange(count)
    return np.c_[150.0 * (at % 40), 150.0 * (at // 40), np.full((count, 2), 100.0)]


def overlapping(boxes, iou):
    """Boxes with this IoU."""
    return boxes * [1, 1, iou, 1]


def agreement(image, boxes, scores=None, count=200, ids=None):
    """Detections beside one object on each of so many images."""
    ids = np.cumsum(np.random.default_rng(0).integers(3, 300, count)) if ids is None else ids
    truth = detmap.GroundTruth.from_arrays(
        image_ids=ids, category_ids=np.ones(count, int), boxes=places(count), images=ids, categories=[1]
    )
    found = detmap.Detections.from_arrays(
        image_ids=ids[image],
        category_ids=np.ones(len(image), int),
        boxes=boxes,
        scores=np.linspace(1, 0.5, len(image)) if scores is None else scores,
    )
    one = side_of(truth)
    return Agreement(one, side_of(found, truth))


def gained(undone, usual=0.9, right=60, wrong=40):
    """How many detections gain that are nowhere, if they had this overlap under another reading, beside right ones."""
    image = np.arange(right + wrong)
    boxes = overlapping(places(200)[image], usual)
    boxes[right:] += [0, 20_000, 0, 0]
    made = agreement(image, boxes)
    assert made.astray.size == wrong
    gain = made.gain("scaled_boxes", "detections", image[right:], overlapping(places(200)[image[right:]], undone))
    return 0 if gain is None else gain.gained.size


def test_either_side_of_boxes_that_lie_well_under_another_reading():
    assert gained(0.61, right=20) == 40
    assert gained(0.59, right=20) == 0
    assert gained(0.805) == 40  # by a tenth worse than those that are right
    assert gained(0.795) == 0
    assert gained(0.61, right=30, usual=0.72) == 0
    assert gained(0.61, right=29, usual=0.72) == 40  # too few to compare with


def test_either_side_of_a_gain_by_chance():
    assert gained(0.9, right=60, wrong=7) == 7
    assert gained(0.9, right=60, wrong=6) == 0  # of one in 70,000 data sets


def test_either_side_of_the_share_that_gains():
    image = np.arange(1000)
    boxes = places(1000)
    boxes[980:] += [0, 20_000, 0, 0]
    made = agreement(image, boxes, count=1000)
    for count, said in ((10, True), (9, False)):
        undone = np.where((np.arange(20) < count)[:, None], places(1000)[980:], boxes[980:])
        assert (made.gain("scaled_boxes", "detections", image[980:], undone) is not None) is said


def test_either_side_of_detections_that_lie_on_nothing():
    image = np.arange(100)
    boxes = overlapping(places(200)[:100], 0.31)
    boxes[:40] = overlapping(places(200)[:40], 0.29)
    assert agreement(image, boxes).astray.size == 40


@pytest.mark.parametrize(("step", "said"), [(8, True), (9, False), (-8, True), (-9, False)])
def test_either_side_of_the_places_of_neighbours(step, said):
    image = np.arange(20, 180)
    made = agreement(image + step, places(200)[image]).of_images
    assert (made is not None) is said
    if said:
        assert made.code == "image_ids_rotated"
        assert made.more == f"each is meant to be 8 images {'back' if step > 0 else 'on'} in the order of ids"


@pytest.mark.parametrize(("count", "said"), [(50, True), (49, False)])
def test_either_side_of_the_share_of_ids_of_neighbours(count, said):
    """A quarter of 200."""
    image = np.arange(200)
    moved = np.where(image < count, image + 1, image)
    assert (agreement(moved, places(200)).of_images is not None) is said


@pytest.mark.parametrize(
    ("count", "gaps", "step", "code"),
    [(200, 7, 1, "rotated"), (200, 6, 1, "shifted"), (2000, 15, 1, "rotated"), (200, 7, -1, "rotated"),
     (200, 0, 1, "shifted")],
)  # fmt: skip
def test_either_side_of_ids_of_neighbours_that_no_constant_explains(count, gaps, step, code):
    """40 detections are under the id of the next image, or of the one before, which for some of them differs by two."""
    at = np.arange(count)
    ids = np.cumsum(np.where((at > 50) & (at <= 50 + gaps), 2, 1))
    image = np.where((at >= 50) & (at < 90), at + step, at)
    image[50 if step < 0 else 89] = count - 1 if step < 0 else 0
    moved = np.flatnonzero(image == at + step)
    made = agreement(image, places(count), count=count, ids=ids)
    gain = made.of_images
    assert gain.code == f"image_ids_{code}"
    held = moved if code == "rotated" else [one for one in moved if abs(ids[image[one]] - ids[one]) == 1]
    assert np.sort(gain.gained).tolist() == sorted(held)
    assert made.faint == []


@pytest.mark.parametrize(("width", "astray"), [(300, [1]), (299, [0, 1])])
def test_either_side_of_detections_on_a_crowd(width, astray):
    """Three tenths of a detection lie on a crowd of its image; another image has none, and one detection has no image."""
    crowd = np.array([True, True, False])
    truth = SimpleNamespace(
        crowd=crowd,
        image=np.array([1, 0, 1]),
        boxes=np.array([[0.0, 0, 900, 900], [0, 0, width, 50], [500, 500, 9, 9]]),
    )
    found = SimpleNamespace(image=np.array([0, 2]), boxes=np.array([[0.0, 0, 1000, 50], [0, 0, 10, 10]]))
    made = Agreement(truth, found)
    made.__dict__ |= {"rows": np.arange(2), "plain": Nearest(np.zeros(2), np.zeros(2, int))}
    assert made.astray.tolist() == astray


@pytest.mark.parametrize(("count", "said"), [(8, True), (7, False), (100, True)])
def test_either_side_of_images_after_which_a_counter_began_again(count, said):
    """Detections of the last images stand at the first ones; of a hundred they are half of all."""
    image = np.arange(200)
    made = agreement(np.where(image < 200 - count, image, image - (200 - count)), places(200))
    gain = made.of_images
    assert (gain is not None) is said
    if said:
        known = made.truth.on.images.ids
        assert (gain.code, gain.gained.size) == ("image_ids_positions", count)
        assert gain.more == f"counted from the first image again from image {known[200 - count]} on"


@pytest.mark.parametrize(("step", "count"), [(160, 40), (60, 0)])
def test_either_side_of_tiles_that_give_more_than_nearer_and_farther_ones(step, count):
    """Of 100 boxes 20 lie a step to the left and 20 a step above; a quarter of 60 pixels off they lie on objects as well."""
    image = np.arange(100)
    boxes = places(200)[:100]
    boxes[60:80] -= [step, 0, 0, 0]
    boxes[80:] -= [0, step, 0, 0]
    made = agreement(image, boxes)
    moved = made._moved(boxes[60:], np.array([(step, 0), (0, step), (step, step)])[:, None])
    gain = made.gain("shifted_boxes", "detections", image[60:], moved, more="as said")
    assert (0 if gain is None else gain.gained.size) == count
    assert gain is None or gain.more == "as said"


def test_boxes_of_tiles_are_moved_back():
    """By half of the sides of their images, or by a step that the largest image has."""
    sizes = np.array([[600.0, 300], [200, 250]])
    made = agreement(np.arange(2), places(2), count=5)
    own = np.array([[1.0, 2, 30, 40], [5, 6, 70, 80]])
    half, *others = made._tiles(own, sizes)
    assert half[0][:, 0].tolist() == [[301, 2, 30, 40], [1, 152, 30, 40], [301, 152, 30, 40]]
    assert half[0][:, 1].tolist() == [[105, 6, 70, 80], [5, 131, 70, 80], [105, 131, 70, 80]]
    assert [int(more.split()[-2]) for _, more in others] == [205, 256, 320, 410, 512]
    assert others[0][0][2].tolist() == [[206, 207, 30, 40], [210, 211, 70, 80]]


@pytest.mark.parametrize(("count", "controls"), [(19, 4), (20, 3)])
def test_few_images_are_also_compared_with_mirrored_ones(count, controls):
    made = agreement(np.arange(count), places(count), count=count)
    assert len(list(made._controls(made.image, made.boxes, made.found.sizes[made.rows]))) == controls


@pytest.mark.parametrize(
    ("by", "count", "said"), [(0.76, 200, True), (0.74, 200, False), (2.0, 50, True), (2.0, 49, False)]
)
def test_either_side_of_a_shift(by, count, said):
    boxes = places(200)[:count] + np.random.default_rng(0).normal(0, 1e-3, (count, 4)) + [by, 0, 0, 0]
    assert (agreement(np.arange(count), boxes).shift is not None) is said


@pytest.mark.parametrize(("count", "said"), [(10, 10), (9, 0)])
def test_either_side_of_what_bears_a_reading_out(count, said):
    boxes = places(200)[:100] + np.array([0, 20_000, 0, 0])
    made = agreement(np.arange(100), boxes)
    moved = np.where((np.arange(100) < count)[:, None], places(200)[:100], boxes)
    assert made.borne_out(made.found, np.arange(100), lambda own, sizes: moved) == said


def upside_down(higher, on=1000, off=1000):
    """Whether scores are, of which so many of 100 pairs have the higher one on an object."""
    image = np.concatenate([np.arange(on), np.arange(off)]) % 200
    boxes = places(200)[image]
    boxes[on:] += [0, 20_000, 0, 0]
    scores = np.concatenate([np.full(on, higher / 100), (np.arange(off) + 0.5) / off])
    return agreement(image, boxes, scores).upside_down


def test_either_side_of_inverted_scores():
    assert upside_down(34)
    assert not upside_down(36)
    assert upside_down(0, on=30, off=30)
    assert not upside_down(0, on=29, off=30)
    assert not upside_down(0, on=30, off=29)
    assert upside_down(0, on=100, off=50)
    assert not upside_down(0, on=100, off=49)  # a few lie on objects that are not labelled


def anywhere(count):
    """A box of 100 pixels for each image, anywhere."""
    return np.c_[np.random.default_rng(0).uniform(500, 3000, (count, 2)), np.full((count, 2), 100.0)]


def sized(image, boxes, count=100, size=(6000, 6000), objects=None):
    """Detections beside one object on each of so many images of one size."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=np.arange(count), category_ids=np.ones(count, int),
        boxes=anywhere(count) if objects is None else objects, images=np.arange(count),
        categories=[1], image_sizes=[size[::-1]] * count,
    )  # fmt: skip
    found = detmap.Detections.from_arrays(
        image_ids=image, category_ids=np.ones(len(image), int), boxes=boxes, scores=np.linspace(1, 0.5, len(image))
    )
    return Agreement(side_of(truth), side_of(found, truth))


@pytest.mark.parametrize(
    ("size", "says", "factor"),
    [((640, 480), "the shorter side were 800, and the longer 1333", 480 / 800),
     ((2000, 500), "the shorter side were 800, and the longer 1333", 2000 / 1333),
     ((640, 480), "the shorter side were 600, and the longer 1000", 480 / 600),
     ((2000, 500), "the shorter side were 600, and the longer 1000", 2000 / 1000)],
)  # fmt: skip
def test_sizes_of_the_input_of_models(size, says, factor):
    own = np.tile([10.0, 20, 300, 400], (100, 1))
    made = sized(np.arange(100), own, size=size)
    [scaled] = [boxes for boxes, words in made._scales(own, np.arange(100), made.found.sizes) if says in words]
    assert scaled == pytest.approx(own * factor, rel=1e-12)


@pytest.mark.parametrize(("count", "said"), [(10, True), (9, False)])
def test_either_side_of_the_boxes_that_are_enough_for_a_scale(count, said):
    own = np.tile([10.0, 20, 300, 400], (count, 1))
    made = sized(np.arange(count), own)
    assert bool(list(made._scales(own, np.arange(count), made.found.sizes))) is said


@pytest.mark.parametrize(("factor", "said"), [(1.06, True), (1.04, False), (0.94, True), (0.96, False)])
def test_either_side_of_a_factor_that_is_none(factor, said):
    objects = np.tile([10.0, 20, 300, 400], (100, 1))
    own = objects * factor
    made = sized(np.arange(100), own, objects=objects)
    told = [words for _, words in made._scales(own, np.arange(100), made.found.sizes)]
    assert (f"times {1 / factor:.3g} they lie on objects" in told) is said
    assert not any("(y)" in words for words in told)
    tall = own * [1.0, 1.06 if said else 1.04, 1.0, 1.06 if said else 1.04]
    told = [words for _, words in made._scales(tall, np.arange(100), made.found.sizes)]
    assert any("(y)" in words for words in told) is said


def moved_by(offset, count=20, more=0, at=(0.0, 0.0), grown=1.0, images=100):
    """What is said of detections that are moved by an offset, and of some more at another one."""
    boxes = anywhere(images)
    boxes = np.concatenate([boxes[:count], boxes[: count + more][count:] - [*at, 0, 0]]) - [*offset, 0, 0]
    boxes[:, 2:] *= grown
    boxes[:, :2] -= boxes[:, 2:] / 2 - 50
    made = sized(np.arange(len(boxes)), boxes, count=images, size=(5000, 1000))
    assert made.astray.size == len(boxes)
    said = []
    for moved, unit, words in made._offsets(made.boxes, made.found.sizes):
        by = np.median((moved - made.boxes)[:, :2] / unit, axis=0)
        said.append(f"moved by {words.format(*by)} (x, y) they lie on objects")
    return said


def test_either_side_of_boxes_that_are_moved():
    """Thirteen alike, where one is on other images, are there once in 400,000 data sets."""
    pixels, shares = moved_by((150.0, 310.0))
    assert pixels == "moved by +150 and +310 pixels (x, y) they lie on objects"
    assert shares == "moved by +0.03 and +0.31 times the sides of the image (x, y) they lie on objects"
    assert len(moved_by((150.0, 310.0), count=13)) == 2
    assert moved_by((150.0, 310.0), count=12) == []
    assert moved_by((150.0, 310.0), grown=1.16)
    assert moved_by((150.0, 310.0), grown=1.165) == []  # of another size
    for step, by in ((8.0, 1.0), (0.02, 5000.0)):
        offset = (4 * step * by, 300.0) if by > 1 else (40 * step, 300.0)
        near, far = (moved_by(offset, count=10, more=3, at=(times * step * by, 0.0)) for times in (0.95, 1.05))
        assert any(("pixels" in words) == (by == 1.0) for words in near)
        assert not any(("pixels" in words) == (by == 1.0) for words in far)


def of_own_sides(own, pixels, right=0):
    """What is said of boxes of different sizes, so many of which are moved by their own sides, and others by 240 pixels."""
    objects = anywhere(own + pixels + right)
    objects[:, 2:] = np.geomspace(20, 200, len(objects))[np.random.default_rng(0).permutation(len(objects)), None]
    boxes = objects.copy()
    boxes[:own, 0] += boxes[:own, 2]
    boxes[own : own + pixels, 1] += 240
    made = sized(np.arange(len(boxes)), boxes, len(boxes), (5000, 5000), objects).of_boxes
    return made and (made.code, made.gained.size, made.more.partition(" times ")[2][:15])


def test_either_side_of_boxes_that_are_moved_by_shares_of_their_own_sides():
    """By 1.2 times as many as by pixels; where others are right the rest is said of sizes or images."""
    said = "shifted_boxes", 66, "their own sides"
    assert of_own_sides(66, 55) == said
    assert of_own_sides(65, 55)[1] == 55
    assert of_own_sides(66, 0, right=66) == said
    assert of_own_sides(66, 0, right=67) is None


@pytest.mark.parametrize(
    ("count", "turn", "said"),
    [
        (3, None, ("detections", "mirrored left to right")),
        (2, None, None),
        (3, turned_left, ("ground_truth", "turned clockwise by 90 degrees")),
        (3, turned_right, ("ground_truth", "turned counter-clockwise by 90 degrees")),
        (2, turned_left, None),
    ],
)
def test_either_side_of_the_images_that_are_turned(count, turn, said):
    """Detections are mirrored, or objects turned by 90 degrees."""
    image = np.repeat(np.arange(count), 12)
    rng = np.random.default_rng(0)
    boxes = np.concatenate([rng.uniform(10, 200, (len(image), 2)), rng.uniform(40, 90, (len(image), 2))], axis=1)
    # Read in the size of the turned image, a change is the turn that the opposite change undoes.
    drawn = boxes if turn is None else turn(boxes, np.array([[480, 640]]))
    truth = detmap.GroundTruth.from_arrays(
        image_ids=image, category_ids=np.ones(len(image), int), boxes=drawn, images=np.arange(count), categories=[1],
        image_sizes=[(480, 640)] * count,
    )  # fmt: skip
    seen = boxes if turn else np.concatenate([640 - boxes[:, :1] - boxes[:, 2:3], boxes[:, 1:]], axis=1)
    found = detmap.Detections.from_arrays(
        image_ids=image, category_ids=np.ones(len(image), int), boxes=seen, scores=np.linspace(1, 0.5, len(image))
    )
    made = Agreement(side_of(truth), side_of(found, truth)).of_boxes
    assert (made if made is None else (made.code, made.role, made.more)) == (said and ("turned_boxes", *said))


@pytest.mark.parametrize(
    ("ending", "begins", "off", "said"),
    [(10, 5, 0, True), (9, 5, 0, False), (10, 4, 0, False), (10, 5, 0.02, False)],
)
def test_pieces_that_end_at_the_middle_of_their_image_are_of_no_other_size(ending, begins, off, said):
    """10 of 20 detections that gain by another scale end half a pixel from it, and 5 others begin there."""
    boxes = np.tile([3.0, 3, 10, 10], (100, 1))
    boxes[:ending, 2] = 47 - off
    boxes[50 : 50 + begins, 1] = 40
    found = SimpleNamespace(sizes=np.full((100, 2), [101.0, 80]))
    made = Agreement(found, found)
    made.__dict__.update(rows=np.arange(100), astray=np.arange(40), boxes=boxes)
    assert made._in_pieces(np.arange(40) < 20) is said


def test_pieces_gain_nothing_by_another_scale(monkeypatch):
    assert gained(0.9) == 40
    monkeypatch.setattr(Agreement, "_in_pieces", lambda *given: True)
    assert gained(0.9) == 0


def test_boxes_that_scatter_are_of_no_other_size():
    """Boxes at an offset that grows with the place are as often larger as smaller by it."""
    rng = np.random.default_rng(0)
    count = 3000
    objects = np.concatenate([rng.uniform(300, 500, (count, 2)), rng.uniform(20, 60, (count, 2))], axis=1)
    own = objects * (1 + rng.normal(0, 0.05, (count, 1)))
    tables = (
        detmap.GroundTruth.from_arrays(
            image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=objects, images=np.arange(count),
            categories=[1], image_sizes=[(640, 640)] * count,
        ),
        detmap.Detections.from_arrays(
            image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=own, scores=rng.random(count)
        ),
    )  # fmt: skip
    made = Agreement(side_of(tables[0]), side_of(tables[1], tables[0])).of_boxes
    assert made is None or made.code not in ("scaled_boxes", "shifted_boxes")


# ------------------------------------------------------------------------------------------------------- images left out


def skipped(bare, alone, overlap=0.0, others=200):
    """What is said of images without an object, where so many others have a detection on nothing."""
    count = others + bare
    boxes = np.tile([100.0, 100, 50, 50], (others, 1))
    truth = detmap.GroundTruth.from_arrays(
        image_ids=np.arange(others), category_ids=np.ones(others, int), boxes=boxes, images=np.arange(count),
        categories=[1], image_sizes=[(480, 640)] * count,
    )  # fmt: skip
    away = 50 * (1 - 2 * overlap / (1 + overlap))  # boxes of one size with this IoU
    extra = boxes[:alone] + np.array([away, 0, 0, 0])
    found = detmap.Detections.from_arrays(
        image_ids=np.concatenate([np.arange(others), np.arange(alone)]),
        category_ids=np.ones(others + alone, int),
        boxes=np.concatenate([boxes, extra]),
        scores=np.linspace(1, 0.5, others + alone),
    )
    return "empty_images_skipped" in check(truth, found).codes


def test_either_side_of_images_that_were_left_out():
    assert skipped(20, 200)  # 0.5 ^ 20 is less than one in a million
    assert not skipped(19, 200)
    assert skipped(49, 100)
    assert not skipped(47, 100)
    assert skipped(20, 200, overlap=0.095)
    assert not skipped(20, 200, overlap=0.105)
    assert not skipped(20, 0)


# --------------------------------------------------------------------------------------------------- classes and images


def moved(count):
    """Of twenty classes the first is on objects of the second so many times, whose own are on none."""
    rows = np.concatenate([np.zeros(count, int), np.repeat(np.arange(2, 20), 50)])
    columns = np.concatenate([np.ones(count, int), np.repeat(np.arange(2, 20), 50)])
    table = Counts(rows, columns, (20, 20))
    facts = SimpleNamespace(agreement=SimpleNamespace(confusion=table, distinct=table))
    return labels._moved(facts, np.arange(20))


def test_either_side_of_a_class_that_is_another():
    assert moved(5) == {0: 1}
    assert moved(4) == {}


@pytest.mark.parametrize(("total", "said"), [(50, [0]), (48, [])])
def test_either_side_of_labels_by_chance(total, said):
    """Five of five, of a class that a tenth of all objects have: of three classes once in 10,000 data sets."""
    rest = total - 5
    rows = np.concatenate([np.zeros(5, int), np.repeat([1, 2], [rest // 2, rest - rest // 2])])
    columns = np.concatenate([np.ones(5, int), np.repeat([0, 2], [rest // 2, rest - rest // 2])])
    table = Counts(rows, columns, (3, 3))
    assert labels._beyond_chance(table, np.array([True, False, False]), np.array([1, 0, 2])) == said


@pytest.mark.parametrize(("count", "said"), [(3, True), (2, False)])
def test_either_side_of_ids_that_explain_each_other(count, said):
    made = image_ids.by_ids_alone(np.arange(count) * 7, np.arange(count) * 7 + 1, "image_ids")
    assert (made is not None) is said


@pytest.mark.parametrize(("edge", "said"), [(2.0, 0), (2.25, 8)])
def test_either_side_of_a_box_of_the_whole_image(edge, said):
    count = 8
    table = detmap.GroundTruth.from_arrays(
        image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=np.tile([edge, 1.0, 640, 478.0], (count, 1)),
        images=np.arange(count), categories=[1], image_sizes=[(480, 640)] * count,
    )  # fmt: skip
    found = detmap.Detections.from_arrays(
        image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=table.boxes, scores=np.full(count, 0.5)
    )
    assert repeats.constant(side_of(found, table)).sum() == said


def test_either_side_of_boxes_of_shares_and_of_boxes_that_are_nearly_there():
    def codes(*boxes):
        annotations = [
            {**TRUTH["annotations"][0], "id": 9 + at, "image_id": 1 + at % 3, "bbox": box}
            for at, box in enumerate(boxes)
        ]
        return check({**TRUTH, "annotations": [*TRUTH["annotations"], *annotations]}, FOUND).codes

    share = [0.25, 0.25, 0.125, 0.25]
    assert "normalised_boxes" in codes(share, [0.5, *share[1:]], [0.75, *share[1:]])
    assert "normalised_boxes" not in codes(share, [0.5, *share[1:]])
    near = [[10.0 * one + 0.5, 20.0, 50.0, 40.0] for one in (1, 2, 3)]
    assert "duplicate_objects" in codes(*near)
    assert "duplicate_objects" not in codes(*near[:2])  # by chance, as in crowds


# ---------------------------------------------------------------------------------------------------------------- rates


def test_no_more_than_eight_ranges_are_named_together():
    for count in (7, 8, 9):
        bad = np.tile(np.arange(100) < 20, count)
        assert len(bad_ranges(bad, np.full(bad.size, 0.02), 1)) == min(count, 8)


@pytest.mark.parametrize(("count", "said"), [(1, 0), (2, 1), (40, 1), (41, 0)])
def test_either_side_of_the_folders_that_are_compared(count, said):
    assert len(_grouped("{}", [str(at) for at in range(count)])) == said


def test_either_side_of_what_finds_an_object_and_of_what_lies_on_none():
    count = 100
    objects = places(count)
    truth = detmap.GroundTruth.from_arrays(image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=objects)
    boxes = objects.copy()
    boxes[:, 2] *= np.repeat([0.51, 0.49, 0.21, 0.19], 25)
    found = detmap.Detections.from_arrays(
        image_ids=np.arange(count), category_ids=np.ones(count, int), boxes=boxes, scores=np.linspace(1, 0.5, count)
    )
    made = evidence_of(side_of(truth), side_of(found, truth))
    assert made.hit.sum() == 25
    assert made.alone.sum() == 25
    side = side_of(truth)
    side.sized = np.arange(count) < 90  # a detection may lie on an object whose box has no area
    assert evidence_of(side, side_of(found, truth)).alone.sum() == 15


def test_either_side_of_the_chance_of_a_range():
    """Nine bad units of a chance of a fifth outweigh 406 looks, and not 407."""
    bad = np.zeros(200, bool)
    bad[50:59] = True
    chance = np.full(200, 0.2)
    assert bad_ranges(bad, chance, 2.03)
    assert not bad_ranges(bad, chance, 2.035)
    assert evidence(np.array([True, False]), chance[:2]) == pytest.approx([np.log(0.84 / 0.2), np.log(0.2)])
    assert evidence(np.ones(1, bool), np.zeros(1)) == pytest.approx(np.log((1 - 0.98 * 0.2) / 0.02))
