"""What other readings of ids and boxes give, compared with what loops over single boxes give."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import detmap
from detmap.checks import agreement
from detmap.checks.agreement import Agreement, Gain, Nearest, says_shift
from detmap.checks.evidence import best_of_pairs
from detmap.checks.inputs import side_of

SEEDS = range(6)


def few(seed, images=9, objects=30, detections=40, known=True):
    """Boxes of small whole numbers, so that many overlaps are equal; some are crowds, some of an image that is unknown."""
    rng = np.random.default_rng(seed)
    ids = np.cumsum(rng.integers(1, 4, images)) + 4
    sizes = rng.integers(30, 60, (images, 2))

    def boxes(count):
        return np.c_[rng.integers(0, 7, (count, 2)), rng.integers(3, 14, (count, 2))].astype(float)

    truth = detmap.GroundTruth.from_arrays(
        image_ids=rng.choice(ids[:-1], objects), category_ids=rng.integers(1, 4, objects), boxes=boxes(objects),
        images=ids, categories=[1, 2, 3], image_sizes=sizes if known else None, crowd=rng.random(objects) < 0.15,
    )  # fmt: skip
    found = detmap.Detections.from_arrays(
        image_ids=rng.choice([*ids, 1], detections), category_ids=rng.integers(1, 5, detections), boxes=boxes(detections),
        scores=rng.integers(0, 9, detections) / 8,
    )  # fmt: skip
    return Agreement(side_of(truth), side_of(found, truth))


def iou(one, other):
    """The IoU of two boxes of whole numbers, exactly."""
    (x, y, w, h), (u, v, s, t) = (map(int, box) for box in (one, other))
    both = max(min(x + w, u + s) - max(x, u), 0) * max(min(y + h, v + t) - max(y, v), 0)
    return Fraction(both, w * h + s * t - both) if w * h + s * t - both else Fraction(0)


def nearest(made, image, boxes, objects=None):
    """The largest IoU of each box with an object of an image, and the first such object."""
    objects = made.truth.boxes if objects is None else objects
    out = []
    for at, box in zip(image, boxes, strict=True):
        best, which = Fraction(0), -1
        for row, other in enumerate(objects):
            if made.truth.image[row] == at and not made.truth.crowd[row] and iou(box, other) > best:
                best, which = iou(box, other), row
        out.append((float(best), which))
    return out


def pairs(near):
    return list(zip(near.overlap.tolist(), near.object.tolist(), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_overlap_with_an_object_of_the_image(seed):
    made = few(seed)
    image, boxes = made.found.image, made.found.boxes
    assert -1 in image
    assert pairs(made.nearest(image, boxes)) == nearest(made, image, boxes)
    moved = made.truth.boxes + np.array([1, 2, 0, 0])
    assert pairs(made.nearest(image, boxes, moved)) == nearest(made, image, boxes, moved)
    both = np.stack([boxes, boxes + np.array([3, 0, 0, 0])])
    one, other = (nearest(made, image, some) for some in both)
    assert pairs(made._nearest(image, both)) == [a if a[0] >= b[0] else b for a, b in zip(one, other, strict=True)]
    assert pairs(made._nearest(image, boxes, moved)) == nearest(made, image, boxes, moved)
    assert pairs(made.nearest(image[:0], boxes[:0])) == []
    none = few(seed, objects=0)
    assert pairs(none.nearest(none.found.image, none.found.boxes)) == [(0.0, -1)] * 40
    assert none.thinned(np.arange(7)).tolist() == list(range(7))


@pytest.mark.parametrize("seed", SEEDS)
def test_another_image_with_objects(seed):
    made = few(seed)
    full = sorted({int(image) for image, crowd in zip(made.truth.image, made.truth.crowd, strict=True) if not crowd})
    never = np.random.default_rng(seed).integers(0, 9, 9)
    for part in (2, 3, 5):
        expected = []
        for image, not_this in zip(range(9), never, strict=True):
            place = min(sum(one < image for one in full), len(full) - 1)
            place += min(len(full) // part + 1, len(full) - 1)
            one = full[place % len(full)]
            expected.append(full[(place + 1) % len(full)] if one == not_this else one)
        assert made.others(np.arange(9), part, never).tolist() == expected
    one = few(seed, images=2)
    assert one._full.size == 1
    assert one.others(np.arange(2)).tolist() == [-1, -1]
    sizes = one.found.sizes
    [(image, boxes)] = one._controls(one.found.image, one.found.boxes, sizes)  # mirrored ones alone
    assert image is one.found.image
    x, y, w, h = one.found.boxes.T
    far = np.where(np.isfinite(sizes[:, 0]), sizes[:, 0], (x + w).max())
    assert boxes.tolist() == np.c_[far - x - w, y, w, h].tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_how_often_a_detection_on_an_object_has_the_higher_score(monkeypatch, seed):
    monkeypatch.setattr(agreement, "_FEWEST_RANKED", 3)
    monkeypatch.setattr(agreement, "_ON_NONE", 0.0)
    made = few(seed, detections=60)
    scores = made.scores
    on = [best >= 0.5 for best, _ in nearest(made, made.found.image, made.found.boxes)]
    higher = [
        (2 * int(a > b) + int(a == b)) / 2
        for a, hit in zip(scores, on, strict=True)
        for b, other in zip(scores, on, strict=True)
        if hit and not other
    ]
    count = sum(on)
    assert 3 <= count <= 57
    assert made.ranked[0] == pytest.approx(sum(higher) / len(higher), rel=1e-12)
    assert made.ranked[1] == pytest.approx(math.sqrt(61 / 12 / count / (60 - count)), rel=1e-12)
    rows = np.array([row for row in range(60) if not on[row]] + [row for row in range(60) if on[row]][:2])
    assert np.isnan(made.ranked_of(rows)).all()
    rows = np.array([row for row in range(60) if on[row]] + [row for row in range(60) if not on[row]][:2])
    assert np.isnan(made.ranked_of(rows)).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sample_is_of_the_highest_scores(seed):
    made = few(seed, detections=300, objects=90)
    scores = made.scores
    objects = int((~made.truth.crowd).sum())
    highest = sorted(scores, reverse=True)
    assert sorted(scores[made.rows], reverse=True) == highest[:200]
    few_objects = few(seed, detections=300, objects=300)
    more = int((~few_objects.truth.crowd).sum())
    assert 200 < more < 300
    assert sorted(few_objects.scores[few_objects.rows], reverse=True) == sorted(few_objects.scores, reverse=True)[:more]
    aside = few(seed, detections=300, objects=90)
    aside.found.aside[::3] = True
    left = [row for row in range(300) if row % 3]
    assert aside.rows.tolist() == left  # 200 are left
    aside = few(seed, detections=330, objects=90)
    aside.found.aside[::3] = True
    left = [row for row in range(330) if row % 3]
    assert aside.rows.size == 200
    assert {*aside.rows.tolist()} < {*left}
    assert sorted(aside.scores[aside.rows], reverse=True) == sorted(aside.scores[left], reverse=True)[:200]
    part = few(seed, detections=300, objects=90)
    part.part = np.arange(9) < 4
    part.found.aside[::5] = True
    inside = [row for row in range(300) if 0 <= part.found.image[row] < 4 and row % 5]
    most = max(int(sum(part.truth.image[~part.truth.crowd] < 4)), 20)
    first = sorted(inside, key=lambda row: (-part.scores[row], row))[:most]
    assert 20 < most < len(inside)
    assert part.rows.tolist() == sorted(first)
    assert objects < 200


@pytest.mark.parametrize(
    ("pairs", "sample", "left"), [(10**6, 40, 40), (10**6, 39, 20), (10**6, 13, 10), (0, 40, 0), (1, 40, 1), (2, 40, 2)]
)
def test_a_sample_is_thinned_to_a_whole_share(monkeypatch, pairs, sample, left):
    """One of two where there is one detection too many; pairs are of a detection and an object of its image."""
    made = few(0)
    held = np.bincount(made.truth.image[~made.truth.crowd], minlength=9)
    count = sum(int(held[image]) for image in made.found.image if image >= 0)
    most = pairs if pairs > 2 else [count // 40, count, -(-count // 2)][pairs]
    step = max(1, -(-40 // sample), -(-count // most))
    monkeypatch.setattr(agreement, "_PAIRS", most)
    rows = made.thinned(np.arange(40), sample)
    assert rows.size == 40 // step
    assert np.unique(rows).size == rows.size
    assert (rows.tolist() == list(range(40))) is (step == 1)
    assert step == {40: 1, 20: 2, 10: 4, 0: step, 1: 1, 2: 2}[left]


def with_gain(made, monkeypatch):
    """Keep the images and boxes of which a gain is asked for, and the words; no detection gains."""
    told = []

    def gain(self, code, role, image, found, truth=None, whole=False, more=""):
        told.append((code, role, image.tolist(), more))

    monkeypatch.setattr(Agreement, "gain", gain)
    return told


@pytest.mark.parametrize("seed", SEEDS)
def test_ids_that_are_neighbours_of_those_that_are_meant(monkeypatch, seed):
    made = few(seed)
    told = with_gain(made, monkeypatch)
    boxes = made.boxes[made.astray]
    assert list(made._neighbours(boxes, "order of ids", np.arange(9), 3, None)) == []
    image = made.image[made.astray].tolist()
    steps = {1: "the next image", -1: "the previous image", 2: "2 images on", -2: "2 images back", 3: "3 images on",
             -3: "3 images back"}  # fmt: skip
    assert told == [
        (
            "image_ids_rotated", "detections",
            [at + step if at >= 0 and 0 <= at + step < 9 else -1 for at in image],
            f"each is meant to be {words} in the order of ids",
        )
        for step, words in steps.items()
    ]  # fmt: skip
    told.clear()
    order = [4, 2, 8, 0, 1, 7, 3, 5, 6]
    assert list(made._neighbours(boxes, "list of images", np.array(order), 1, None)) == []
    for (_, _, place, more), step in zip(told, (1, -1), strict=True):
        expected = []
        for at in image:
            to = order.index(at) + step if at >= 0 else -1
            expected.append(order[to] if 0 <= to < 9 else -1)
        assert place == expected
        assert more == f"each is meant to be the {'next' if step > 0 else 'previous'} image in the list of images"


@pytest.mark.parametrize("seed", SEEDS)
def test_ids_that_are_numbers(seed):
    """Those off by 1, by what the first or the last lacks, and positions; images are listed in another order."""
    made = few(seed)
    known = made.truth.on.images.ids
    ids = made.found.table.images.ids
    own = ids[made.found.table.images.codes]
    listed = np.append(np.argsort([3, 1, 4, 0, 5, 8, 2, 6, 7]), -1)
    place = {one: at for at, one in enumerate(known.tolist())}
    shifts = {1, -1, int(known[0]) - int(ids[0]), int(known[-1]) - int(ids[-1])} - {0}
    expected = {
        f"each {'+' if shift > 0 else '-'} {abs(shift):,} is the one that is meant": (
            "image_ids_shifted", [place.get(one + shift, -1) for one in own.tolist()]
        )
        for shift in shifts
    }  # fmt: skip
    for first in (0, 1):
        at = [one - first if 0 <= one - first < 9 else -1 for one in own.tolist()]
        expected[f"counted from {first}, in the order of the ids"] = "image_ids_positions", at
        expected[f"counted from {first}, in the order of the list"] = (
            "image_ids_positions", [listed[one] if one >= 0 else -1 for one in at]
        )  # fmt: skip
    made_of = list(made._numbered(own, known, listed))
    assert {says: (code, place.tolist()) for code, place, says in made_of} == expected
    assert len(made_of) == len(expected)
    plain = {says for says in expected if "of the list" not in says}
    assert {says for _, _, says in made._numbered(own, known, None)} == plain
    consecutive = np.arange(9) + known[0]
    assert not any("counted" in says for _, _, says in made._numbered(own, consecutive, None))
    assert sum("counted" in says for _, _, says in made._numbered(own, consecutive, listed)) == 4


@pytest.mark.parametrize(
    ("listed", "expected"),
    [([6, 4, 9], [1, 0, 2, -1]), ([4, 6, 9], None), ([6, 4], None), (["6", "4", "9"], None), ([6, 4, 6, 9], [1, 0, 2, -1]),
     (None, None)],
)  # fmt: skip
def test_images_in_the_order_of_their_list(listed, expected):
    made = SimpleNamespace(truth=SimpleNamespace(inspected=None if listed is None else SimpleNamespace(images=listed)))
    places = Agreement._in_the_list(made, np.array([4, 6, 9]))
    assert (places if places is None else places.tolist()) == expected


@pytest.mark.parametrize(
    ("runs", "start", "length"),
    [([(5, 1), (8, 0), (3, 1), (7, 0)], 5, 8), ([(5, 1), (7, 0), (3, 1)], None, 0), ([(9, 0), (3, 1), (8, 0)], None, 0),
     ([(1, 1), (9, 0)], 1, 9), ([(2, 1), (8, 0), (1, 1), (8, 0)], 2, 8)],
)  # fmt: skip
def test_a_counter_that_restarts_begins_with_the_longest_run_without_detections(monkeypatch, runs, start, length):
    some = np.concatenate([np.full(count, flag) for count, flag in runs])
    ids = np.arange(some.size) * 2 + 7
    truth = SimpleNamespace(on=SimpleNamespace(images=SimpleNamespace(ids=ids)))
    image = np.append(np.flatnonzero(some), -1)
    made = Agreement(truth, SimpleNamespace(image=image))
    made.__dict__ |= {"rows": np.arange(image.size), "astray": np.arange(image.size)}
    told = with_gain(made, monkeypatch)
    made._restarted(np.zeros((image.size, 4)))
    if start is None:
        assert told == []
        return
    moved = [at + start if 0 <= at < length else -1 for at in image.tolist()]
    says = f"counted from the first image again from image {2 * start + 7} on"
    assert told == [("image_ids_positions", "detections", moved, says)]


#: Boxes as given, of images 0 and 2 of three, of which the first is the largest, and beyond which none reaches.
OWN = np.array([[10.0, 20, 300, 200], [40, 8, 60, 300]])
SIZES = [(640, 480), (400, 500), (300, 600)]


def scales(own, image, sizes, objects, every=True):
    """By its words, each box as it would be on its image."""
    ids = np.arange(len(SIZES))
    on = SimpleNamespace(images=SimpleNamespace(ids=ids, sizes=np.array(SIZES)[:, ::-1] if every else None))
    made = Agreement(SimpleNamespace(on=on, boxes=objects), None)
    made.__dict__ |= {"rows": np.zeros(2, int), "order": np.arange(len(objects))}
    told = {}
    for boxes, says in made._scales(own, image, sizes):
        assert told.setdefault(says, boxes) == pytest.approx(boxes, rel=1e-9)
    return told


def times(by, padding=(0.0, 0.0), own=None):
    x, y, w, h = own
    return [(x - padding[0]) * by[0], (y - padding[1]) * by[1], w * by[0], h * by[1]]


def test_all_sizes_of_which_images_may_have_been():
    """The boxes of twelve images, of two sizes, reach to 310 x 308, or nearly so: the quantile leaves out a thousandth."""
    own, image = np.tile(OWN, (6, 1)), np.tile([0, 2], 6)
    sizes = np.array(SIZES, float)[image]
    objects = np.array([[20.0, 30, 500, 400], [0, 0, 10, 20]])
    told = scales(own, image, sizes, objects)
    x, y = (float(np.quantile(own[:, at] + own[:, 2 + at], 0.999)) for at in (0, 1))
    assert (f"{x:.0f}", f"{y:.0f}") == ("310", "308")
    expected = {}
    for ends in [(x, y), (x, x), (320.0, 320.0), (1000.0, 1000.0), (1024.0, 1024.0)]:
        words = f"{ends[0]:.0f} x {ends[1]:.0f}"
        whole = [max(w, h) / max(ends) for w, h in sizes]
        expected[f"as if each image were {words}"] = [(w / ends[0], h / ends[1]) for w, h in sizes], [(0, 0)] * 12
        expected[f"as if the longest side were {max(ends):.0f}"] = [(one, one) for one in whole], [(0, 0)] * 12
        if ends[0] == ends[1]:
            left = [((ends[0] - w / by) / 2, (ends[0] - h / by) / 2) for (w, h), by in zip(sizes, whole, strict=True)]
            expected[f"as if each image lay in the middle of a square of {words}"] = [(by, by) for by in whole], left
    ones, none = [(1.0, 1.0)] * 12, [(0, 0)] * 12
    square = [((max(one) - one[0]) / 2, (max(one) - one[1]) / 2) for one in sizes]
    expected["as if each image lay in the middle of a square of its longer side"] = ones, square
    for short, long in ((800, 1333), (600, 1000)):
        by = [max(min(one) / short, max(one) / long) for one in sizes]
        expected[f"as if the shorter side were {short}, and the longer {long} at most"] = (
            [(one, one) for one in by],
            none,
        )
    expected["as if heights were scaled like widths"] = [(1, h / w) for w, h in sizes], none
    expected["as if widths were scaled like heights"] = [(w / h, 1) for w, h in sizes], none
    expected["as if each image had its height for its width, and its width for its height"] = (
        [(w / h, h / w) for w, h in sizes], none
    )  # fmt: skip
    for step, words in ((-1, "previous"), (1, "next")):
        other = [SIZES[(at + step) % 3] for at in image]
        expected[f"as if each image had the size of the {words} one, by id"] = (
            [(w / u, h / v) for (w, h), (u, v) in zip(sizes, other, strict=True)], none
        )  # fmt: skip
    right, bottom = (float(np.quantile(objects[:, at] + objects[:, 2 + at], 0.999)) for at in (0, 1))
    along, down = right / x, bottom / y
    expected[f"times {along:.3g} (x) and {down:.3g} (y) they lie on objects"] = [(along, down)] * 12, none
    for by in (along, down, math.sqrt(along * down), 2.0, 0.5):
        expected[f"times {by:.3g} they lie on objects"] = [(by, by)] * 12, none
    assert set(told) == set(expected)
    for says, (by, padding) in expected.items():
        boxes = [times(a, b, box) for a, b, box in zip(by, padding, own, strict=True)]
        assert told[says] == pytest.approx(np.array(boxes), rel=1e-12, abs=1e-9), says


def test_sizes_that_are_not_known_leave_factors():
    own, image, objects = np.tile(OWN, (6, 1)), np.tile([0, 2], 6), np.array([[20.0, 30, 600, 400]])
    unknown = scales(own, image, np.full((12, 2), np.inf), objects)
    x, y = (float(np.quantile(own[:, at] + own[:, 2 + at], 0.999)) for at in (0, 1))
    factors = [620 / x, 430 / y]
    names = [f"times {factors[0]:.3g} (x) and {factors[1]:.3g} (y) they lie on objects"]
    names += [f"times {by:.3g} they lie on objects" for by in (*factors, math.sqrt(factors[0] * factors[1]), 2.0, 0.5)]
    assert set(unknown) == set(names)
    one = np.array(SIZES, float)[image]
    assert not any("by id" in says for says in scales(own, image, one, objects, every=False))
    shares = scales(own / 500, image, one, objects)  # boxes of shares of an image have no size of it in pixels
    assert [says for says in shares if says.startswith("as if")] == [
        "as if heights were scaled like widths", "as if widths were scaled like heights",
        "as if each image had its height for its width, and its width for its height",
        "as if each image had the size of the previous one, by id", "as if each image had the size of the next one, by id",
    ]  # fmt: skip
    assert scales(own, np.full(12, -1), one, objects) == {}
    flat = own.copy()
    flat[:3, 2] = 0
    assert scales(flat, image, one, objects) == {}  # nine are enough for no scale
    assert scales(flat[1:], image[1:], one[1:], objects) == {}


@pytest.mark.parametrize(("reach", "side"), [(310.0, 320), (326.0, 320), (327.0, 352), (1350.0, 1344), (12.0, 32)])
def test_inputs_of_models_are_multiples_of_32(reach, side):
    """A box may reach beyond the input by a fifth of a step."""
    own = np.tile([0.0, 0.0, reach, reach], (12, 1))
    told = scales(own, np.zeros(12, int), np.full((12, 2), 5000.0), own)
    assert f"as if each image were {side} x {side}" in told
    assert f"as if each image were {side + 32} x {side + 32}" not in told
    assert ("as if the shorter side were 800, and the longer 1333 at most" in told) is (reach <= 1.02 * 1333)
    assert ("as if the shorter side were 600, and the longer 1000 at most" in told) is (reach <= 1.02 * 1000)


@pytest.mark.parametrize(
    ("reach", "short"), [(1020.0, True), (1020.1, False), (1359.66, False), (2.0, None), (2.1, True)]
)
def test_either_side_of_the_longest_input_of_models(reach, short):
    own = np.tile([0.0, 0.0, reach, reach], (12, 1))
    told = scales(own, np.zeros(12, int), np.full((12, 2), 5000.0), own)
    assert ("as if the shorter side were 600, and the longer 1000 at most" in told) is bool(short)
    assert ("as if the longest side were 1000" in told) is (short is not None)
    assert ("as if the shorter side were 800, and the longer 1333 at most" in told) is (short is not None)


def beside(objects, boxes):
    """An object on each image, and a detection beside it, none of which lies on one."""
    count = len(boxes)
    side = SimpleNamespace(boxes=np.array(objects, float))
    made = Agreement(side, SimpleNamespace(boxes=np.array(boxes, float)))
    every = np.arange(count)
    made.__dict__ |= {"rows": every, "astray": every, "plain": Nearest(np.zeros(count), every.copy())}
    return made


def test_sides_that_differ_by_two_factors():
    """The median of each side; objects with another corner, boxes without an area and boxes beside none do not count."""
    own = np.tile([100.0, 100, 40, 40], (70, 1))
    objects = own * [1, 1, 2, 0.5] + [4, -4, 0, 0]  # by a tenth of the larger side at least
    objects[:10, 0] += 40
    own[10:15, 2] = 0
    objects[15:20, 2:] = [160, 5]
    made = beside(objects, own)
    assert made._sides(own).tolist() == pytest.approx([2, 0.5], rel=1e-12)
    made.plain.object[20] = -1
    made.plain.object[21:24] = -1
    assert made._sides(own).tolist() == pytest.approx([2, 0.5], rel=1e-12)
    made.plain.object[24:27] = -1
    assert made._sides(own) is None  # 49 are too few
    for larger, said in ((1.15, False), (1.17, True)):  # a factor of exp(0.15)
        near = own[25:].repeat(2, axis=0)
        assert (beside(near * [1, 1, larger, 2], near)._sides(near) is not None) is said


@pytest.mark.parametrize(("alike", "said"), [(24, True), (23, False)])
def test_either_side_of_sides_with_the_same_factors(alike, said):
    """Of 60 objects, of which the rest is larger or smaller: 0.4 of them."""
    own = np.tile([100.0, 100, 40, 40], (60, 1))
    rest = 60 - alike
    by = np.concatenate([np.full(alike, 2.0), np.full(rest // 2, 1.5), np.full(rest - rest // 2, 2.5)])
    objects = own * np.c_[np.ones((60, 2)), by, by]
    assert (beside(objects, own)._sides(own) is not None) is said


@pytest.mark.parametrize("seed", SEEDS)
def test_offsets_to_objects_of_similar_size(seed):
    made = few(seed, detections=25)
    rows = np.flatnonzero(made.found.image >= 0)
    image, own, sizes = made.found.image[rows], made.found.boxes[rows], made.found.sizes[rows]
    expected = []
    for at, box, size in zip(image, own, sizes, strict=True):
        for row, other in enumerate(made.truth.boxes):
            if made.truth.image[row] != at or made.truth.crowd[row]:
                continue
            if all(abs(math.log(box[n] / other[n])) < 0.15 for n in (2, 3)):
                by = [other[n] + other[2 + n] / 2 - box[n] - box[2 + n] / 2 for n in (0, 1)]
                expected.append((*by, by[0] / size[0], by[1] / size[1], by[0] / box[2], by[1] / box[3]))
    assert expected
    assert np.concatenate(made._alike(own, image, sizes), axis=1).tolist() == pytest.approx(np.array(expected))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_most_frequent_offset(seed):
    rng = np.random.default_rng(seed)
    offsets = np.r_[rng.integers(-9, 9, (40, 2)), [[-7, 5]] * 30, [[2_000_000, 0], [0, -1_000_000]]].astype(float)
    for grid in (1.0, 2.0):
        cells = {}
        for one in offsets[:-2]:
            cell = tuple(round(v / grid) for v in one)  # halves to even numbers
            cells.setdefault(cell, []).append(one)
        middle = max(sorted(cells), key=lambda cell: len(cells[cell]))
        near = [one for one in offsets if all(abs(one[n] / grid - middle[n]) <= 1 for n in (0, 1))]
        count, offset = agreement._mode(offsets, grid)
        assert count == len(near)
        assert offset.tolist() == np.median(near, axis=0).tolist()
    count, offset = agreement._mode(offsets[-2:], 1.0)
    assert (count, offset.tolist()) == (0, [0.0, 0.0])


def test_offsets_are_told_of_boxes_of_the_same_width_and_of_the_same_height():
    own = np.array([[0.0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 10]])
    objects = np.array([[6.0, 8, 10, 20], [20, 30, 30, 10], [500, 500, 10, 10], [4, 8, 10, 20]])
    made = beside(objects, own)
    gain = SimpleNamespace(nearest=Nearest(np.array([0.6, 0.9, 0.59, 0.7]), np.arange(4)))
    unit = np.array([[2.0, 10], [2, 10], [2, 10], [2, 10]])
    says = made._moved_by(gain, own, unit, "{:+.2f} and {:+.2f} units")
    assert says == "moved by +2.50 and +3.00 units (x, y) they lie on objects"  # medians of 3 and 2, and of 3
    tall = made._moved_by(gain, own * [1, 1, 9, 9], unit, "{} and {}")
    away = [(6 + 5 - 45) / 2, (20 + 15 - 45) / 2, (4 + 5 - 45) / 2], [(8 + 10 - 45) / 10, (30 + 5 - 45) / 10] * 1
    assert tall.startswith(f"moved by {sorted(away[0])[1]} and ")


@pytest.mark.parametrize(
    ("edges", "said"),
    [([1, 2, 1, 2], [1, 2]), ([1, 2, 1.6, 2], [1.3, 2]), ([1, 2, 1.7, 2], [0, 2]), ([-1, 2, -1, -2], [-1, 0]),
     ([0.75, 0, 0.75, 0], [0.75, 0]), ([0.74, 0, 0.75, 0], None), ([0.75, 0, 0.74, 0], None),
     ([0, -3, 0, -3.5], [0, -3.25])],
)  # fmt: skip
def test_a_shift_of_both_edges(edges, said):
    """Opposite edges must agree to a quarter of their sum, and both must be far enough."""
    objects = np.tile([100.0, 100, 64, 64], (50, 1))
    left, top, right, bottom = edges
    boxes = objects + np.array([left, top, right - left, bottom - top])
    made = beside(objects, boxes)
    made.__dict__ |= {"plain": Nearest(np.full(50, 0.5), np.arange(50)), "boxes": boxes}
    shift = made.shift
    assert (shift if shift is None else shift.tolist()) == (said if said is None else pytest.approx(said, abs=1e-9))
    if said is not None:
        assert says_shift(shift) == f"by {shift[0]:+.1f} and {shift[1]:+.1f} pixels (x, y), in the median"


@pytest.mark.parametrize(("spread", "said"), [(1.43, True), (1.44, False)])
def test_either_side_of_a_shift_beyond_its_error(spread, said):
    """Half of 64 edges lie on either side of 2 pixels: 6 errors of their median are 1.3936 times the spread."""
    by = np.where(np.arange(64) % 2, 2 + spread, 2 - spread)
    by[:2] = 2
    objects = np.tile([100.0, 100, 64, 64], (64, 1))
    boxes = objects + by[:, None] * np.array([1, 0, 0, 0])
    made = beside(objects, boxes)
    made.__dict__ |= {"plain": Nearest(np.full(64, 0.5), np.arange(64)), "boxes": boxes}
    assert (made.shift is not None) is said


@pytest.mark.parametrize("seed", SEEDS)
def test_categories_of_detections_on_objects(seed):
    made = few(seed, detections=120)
    made.of_images = made.of_boxes = None
    near = nearest(made, made.found.image, made.found.boxes)
    on = [(row, which) for row, (best, which) in enumerate(near) if best >= 0.5]
    own, of = made.found.table.categories, made.truth.table.categories
    pairs = [(int(own.codes[row]), int(of.codes[which]), which) for row, which in on]
    assert len({*pairs}) < len(pairs)
    shape = own.ids.size, of.ids.size
    for counts, told in (
        (made.confusion, pairs),
        (made.distinct, {(a, which): (a, b) for a, b, which in pairs}.values()),
    ):
        table = np.zeros(shape, int)
        for a, b, *_ in told:
            table[a, b] += 1
        assert counts.shape == shape
        assert counts.total == len(told)
        rows, columns = np.divmod(np.arange(table.size), shape[1])
        assert counts.at(rows, columns).reshape(shape).tolist() == table.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_detections_that_lie_on_objects(seed):
    made = few(seed, detections=60)
    near = nearest(made, made.found.image, made.found.boxes)
    assert made.hits == sum(best >= 0.5 for best, _ in near)
    crowds = made.truth.boxes[made.truth.crowd], made.truth.image[made.truth.crowd]
    astray = []
    for row, (box, image) in enumerate(zip(made.found.boxes, made.found.image, strict=True)):
        x, y, w, h = box
        shares = [
            max(min(x + w, u + s) - max(x, u), 0) * max(min(y + h, v + t) - max(y, v), 0)
            for (u, v, s, t), at in zip(*crowds, strict=True)
            if at == image
        ]
        if near[row][0] < 0.3 and not any(10 * share >= 3 * w * h for share in shares):
            astray.append(row)
    assert made.rows.tolist() == list(range(60))
    assert made.astray.tolist() == astray
    rows = np.arange(0, 60, 3)
    share = sum(near[row][0] >= 0.5 for row in rows) / 20
    found = len({which for best, which in near if best >= 0.5})
    assert made.share_on_objects(rows) == share
    assert made.rate(rows) == (share, 1 - found / made.order.size)
    assert made.share_on_objects(rows[:0]) == 0.0
    gain = Gain("", "", rows, Nearest(np.array([0.6, 0.59, 0.8, 0.7, 0.9]), np.array([7, 1, 3, -1, 3])))
    assert made.objects_of(gain).tolist() == [3, 7]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_better_of_the_given_boxes_and_of_another_reading(seed):
    made = few(seed)
    made.of_images = None
    plain, astray = made.plain, made.astray
    rng = np.random.default_rng(seed)
    under = Nearest(rng.integers(0, 5, astray.size) / 4, np.arange(100, 100 + astray.size))
    made.of_boxes = Gain("", "", astray, under)
    overlap, which = plain.overlap.tolist(), plain.object.tolist()
    for place, row in enumerate(astray):
        if under.overlap[place] > overlap[row]:
            overlap[row], which[row] = under.overlap[place], 100 + place
    assert pairs(made.best) == list(zip(overlap, which, strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reading_of_whole_images_counts_where_more_detections_lie_on_objects(seed):
    made = few(seed, detections=120)
    rng = np.random.default_rng(seed)
    under = Nearest(rng.integers(0, 6, made.astray.size) / 5, np.arange(made.astray.size))
    assert made._of_whole_images(under, False) is under
    expected = []
    for place, row in enumerate(made.astray):
        image = made.image[row]
        before = sum(made.image[other] == image and made.plain.overlap[other] >= 0.5 for other in range(120))
        after = sum(made.image[r] == image and under.overlap[p] >= 0.6 for p, r in enumerate(made.astray))
        expected.append(under.overlap[place] if image >= 0 and after > before else 0.0)
    changed = made._of_whole_images(under, True)
    assert changed.overlap.tolist() == expected
    assert changed.object is under.object
    assert 0 < np.count_nonzero(changed.overlap) < np.count_nonzero(under.overlap)


@pytest.mark.parametrize(("hits", "count", "chance", "said"), [
    (0, 29, 5, True), (0, 30, 5, False), (15, 30, 40, True), (14, 30, 40, False), (10, 60, 0, True), (3, 60, 0, False),
])  # fmt: skip
def test_boxes_that_lie_on_objects_more_often_than_by_chance(hits, count, chance, said):
    made = SimpleNamespace(others=lambda image, part: np.full(image.size, -part))

    def near(image, boxes):
        some = hits if image[0] == 0 else chance if image[0] == -3 else 0
        return Nearest(np.where(np.arange(count) < some, 0.5, 0.49), np.zeros(count, int))

    made.nearest = near
    made._as_by_chance = lambda *given: Agreement._as_by_chance(made, *given)
    assert Agreement.lies_on(made, np.zeros(count, int), np.zeros((count, 4))) is said


@pytest.mark.parametrize(
    ("inside", "hits", "by_chance", "said"),
    [(30, 5, True, True), (29, 0, True, False), (30, 6, True, False), (30, 5, False, False)],
)
def test_detections_that_lie_on_no_object_at_all(inside, hits, by_chance, said):
    made = Agreement(None, None)
    image = np.append(np.zeros(inside, int), [-1, -1])
    made.__dict__ |= {
        "image": image,
        "of_images": None,
        "of_boxes": None,
        "order": np.arange(3),
        "by_chance": by_chance,
    }
    made.__dict__ |= {"plain": Nearest(np.where(np.arange(inside + 2) < hits, 0.5, 0.4), image)}
    assert made.none is said
    for name, other in (("of_images", 0), ("of_boxes", 0), ("order", np.arange(0))):
        again = Agreement(None, None)
        again.__dict__ |= {**made.__dict__, name: other}
        again.__dict__.pop("none")
        assert again.none is False


@pytest.mark.parametrize(("tall", "said"), [(6.0, True), (5.99, False)])
def test_either_side_of_what_lies_well_on_an_object(tall, said):
    """60 of 100 pixels are just enough, under another reading of detections and of objects."""
    count = 40
    ids = np.arange(count)
    objects = np.c_[np.tile([100.0, 100], (count, 1)), np.full((count, 2), 10.0)] + np.arange(count)[:, None] * [
        9,
        0,
        0,
        0,
    ]
    moved = np.c_[objects[:, :3], np.full(count, tall)]
    below = np.array([0, 500, 0, 0])
    away = moved + below

    def compared(true, own):
        truth = detmap.GroundTruth.from_arrays(
            image_ids=ids, category_ids=np.ones(count), boxes=true, images=ids, categories=[1],
            image_sizes=[(900, 900)] * count,
        )  # fmt: skip
        found = detmap.Detections.from_arrays(
            image_ids=ids, category_ids=np.ones(count), boxes=own, scores=np.ones(count)
        )
        return Agreement(side_of(truth), side_of(found, truth))

    made = compared(objects, away)
    assert made.astray.size == count
    assert (made.gain("axes_swapped", "detections", ids, moved) is not None) is said
    assert made.borne_out(made.found, ids, lambda boxes, sizes: boxes - below) == (count if said else 0)
    made = compared(objects + below, moved)
    assert made.borne_out(made.truth, ids, lambda boxes, sizes: boxes - below) == (count if said else 0)
    assert (made.gain("axes_swapped", "ground_truth", ids, moved, objects) is not None) is said


@pytest.mark.parametrize(("tall", "astray"), [(3.0, 0), (2.99, 40)])
def test_either_side_of_what_hardly_lies_on_an_object(tall, astray):
    """30 of 100 pixels are too much; half of them are a hit."""
    made = few(0, images=41, objects=0)
    ids = np.arange(40)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=ids, category_ids=np.ones(40), boxes=np.tile([0.0, 0, 10, 10], (40, 1)), images=ids, categories=[1]
    )
    boxes = np.tile([0.0, 0, 10, tall], (40, 1))
    boxes[:7, 3] = 5
    found = detmap.Detections.from_arrays(image_ids=ids, category_ids=np.ones(40), boxes=boxes, scores=np.ones(40))
    made = Agreement(side_of(truth), side_of(found, truth))
    assert made.astray.size == (astray and 33)
    assert made.hits == 7
    assert made.share_on_objects(ids) == 7 / 40
    assert made.rate(ids) == (7 / 40, 33 / 40)
    assert made.confusion.total == 7
    assert made.shift is None


def test_of_equal_overlaps_that_of_the_first_object_counts():
    """Of the objects in the order of the file; with two readings, that of the first."""
    one, other = [0.0, 0, 10, 10], [5.0, 0, 10, 10]
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[1, 0, 0, 1, 0, 1], category_ids=[1] * 6, boxes=[other, one, one, one, other, one], images=[0, 1],
        categories=[1],
    )  # fmt: skip
    found = detmap.Detections.from_arrays(
        image_ids=[0, 1, 0], category_ids=[1] * 3, boxes=[one, one, other], scores=[0.9, 0.8, 0.7]
    )
    made = Agreement(side_of(truth), side_of(found, truth))
    assert pairs(made.plain) == [(1.0, 1), (1.0, 3), (1.0, 4)]
    both = np.stack([made.boxes, made.boxes[[2, 2, 0]]])
    assert pairs(made._nearest(made.image, both)) == [(1.0, 1), (1.0, 3), (1.0, 4)]
    best, which = best_of_pairs(
        np.array([one, other]), np.array([0, 1]), np.array([6, 5]), np.array([other, one, one, other, other, one])
    )
    assert (best.tolist(), which.tolist()) == ([1.0, 1.0], [1, 3])
