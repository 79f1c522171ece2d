"""Parts of checks beside plain loops that compute the same, over drawn data with many ties."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from test_checks_limits import side
from test_checks_limits_repeats import facts_of

from detmap.checks import parts, parts_of_objects, piles, policies, repeats, row_lost, shapes, sizes, strays
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.checks.rates import Part
from detmap.data.tables import GroundTruth

# --------------------------------------------------------------------------------------------------------------- sides


def test_the_third_most_frequent_of_the_sides_near_one():
    rng = np.random.default_rng(0)
    for at in (3, 150, 399, 400, 402, 1199, 1200, 1201, 1600, 3000):
        held = rng.integers(0, 9, 5000) * (rng.random(5000) < 0.02)
        held[[0, 1, at, min(round(0.75 * at), at - 400) if at > 400 else 1, max(round(at / 0.75), at + 400)]] = 50
        for edge in (0, -1, 1):
            low, high = min(round(0.75 * at), at - 400), max(round(at / 0.75), at + 400)
            held[high + edge] += 20
            near = [int(held[one]) for one in range(max(low, 1), high + 1) if one != at]
            assert piles.beside(held, at) == sorted(near)[-3]


def standing_out(widths, heights, least, frames):
    """Bin by bin, of widths, heights and both: those that are far more frequent than the third most frequent near them."""
    best = {}
    for axes, held in (((0,), widths), ((1,), heights), ((0, 1), widths + heights)):
        held = np.r_[0, held[1:]]
        for at in range(1, held.size):
            if (count := int(held[at])) < least:
                continue
            usual = piles.beside(held, at)
            if count < 1.6 * usual or stats.poisson.sf(int(count / frames) - 1, 1.2 * usual / frames + 1) >= 1e-6:
                continue
            excess = (count - 1.2 * usual) / math.sqrt(1.2 * usual + 1)
            if at not in best or excess > best[at][0]:
                best[at] = excess, count, (at, axes)
    return [one for _, _, one in sorted(best.values(), key=lambda one: -one[1])]


def test_piles_of_widths_and_heights():
    rng = np.random.default_rng(0)
    seen = Counter()
    for _ in range(25):
        held = rng.integers(0, rng.choice([4, 12, 30]), (2, 900)) * (rng.random((2, 900)) < 0.3)
        held[:, 0] = 999
        for at in rng.integers(1, 900, 4):
            held[:, at] = rng.integers(10, 90, 2) * rng.choice([0, 1], 2)
        least, frames = float(rng.choice([10, 20, 30])), float(rng.choice([1, 1.5]))
        made = [tuple(one) for one in piles._standing_out([one.copy() for one in held], least, frames)]
        assert made == standing_out(*held, least, frames)
        seen.update(axes for _, axes in made)
    assert len(seen) == 3


@pytest.mark.parametrize(("count", "told"), [(40, True), (39, False)])
def test_a_pile_is_a_share_of_the_boxes(count, told):
    """40 of 10,000."""
    place = np.arange(10_000)
    boxes = np.c_[
        place * 389 % 700, place * 211 % 700, 20 + 0.02 * (place * 7 % 15_000), 20 + 0.02 * (place * 11 % 15_000)
    ]
    boxes[:count, 2] = 200.02
    table = GroundTruth.from_arrays(
        image_ids=place % 5000, category_ids=np.ones(10_000, int), boxes=boxes, image_sizes=np.full((5000, 2), 900),
        images=np.arange(5000), categories=[1],
    )  # fmt: skip
    own = side_of(table)
    made = piles.piles(Facts(own), own, piles._bins(own))
    assert [tuple(one) for one in made] == [(round(200.02 / 0.02), (0,))] * told


def test_bins_count_once_on_an_image():
    rng = np.random.default_rng(0)
    bins, image = rng.integers(0, 6, 50), rng.integers(-1, 5, 50)
    wanted = sorted({(one, max(of, 0)) for one, of in zip(bins.tolist(), image.tolist(), strict=True)})
    assert piles._once(bins, image).tolist() == [one for one, _ in wanted]


def test_bins_of_sides():
    """Of sides that do not span the image, of boxes that no other finding explains."""
    boxes = [
        [10, 10, 20, 30.01], [10, 10, 394.99, 30], [0, 0, 395, 394.98], [10, 10, 395.01, 9], [1, 1, 0, 5], [1, 1, 7, 8],
        [1, 1, 7, 8], [1, 1, 7, 8],
    ]  # fmt: skip
    table = GroundTruth.from_arrays(
        image_ids=[0] * 8, category_ids=[1] * 8, boxes=boxes, crowd=[0, 0, 0, 0, 0, 1, 0, 0], image_sizes=[[400, 400]],
        images=[0], categories=[1],
    )  # fmt: skip
    own = side_of(table)
    own.aside[6] = own.constant[7] = True
    assert piles._bins(own).tolist() == [[1000, 19750, 0, 0, 0, 0, 0, 0], [1500, 1500, 19749, 450, 0, 0, 0, 0]]
    table = GroundTruth.from_arrays(
        image_ids=[0] * 4, category_ids=[1] * 4, boxes=[[5, 5.01, 9, 9], [0, 6, 9, 9], [6, 6, 4095.98, 9], [6, 6, 4096, 9]],
        images=[0], categories=[1],
    )  # fmt: skip
    assert piles._bins(side_of(table)).tolist() == [[0, 0, 204799, 0], [450, 450, 450, 450]]


def test_what_is_said_of_a_pile():
    """Sides that are smaller, or larger, than those of the pile are named if they are rarer by two fifths there."""
    image = np.repeat(np.arange(6), 10)
    width = np.r_[np.tile([40.0] * 2 + [30] * 3 + [50] * 5, 3), np.tile([30.0] * 5 + [50] * 5, 3)]
    corner = np.random.default_rng(0).uniform(0, 100, (60, 2))
    table = GroundTruth.from_arrays(
        image_ids=image, category_ids=np.ones(60, int), boxes=np.c_[corner, width, np.full(60, 33.0)],
        image_sizes=np.full((6, 2), 400), images=np.arange(6), categories=[1],
    )  # fmt: skip
    own = side_of(table)
    bins = piles._bins(own)
    one = piles._said(own, bins[:1], piles.Pile(2000, (0,)))
    assert np.flatnonzero(own.piled).tolist() == np.flatnonzero(width == 40).tolist()
    assert (one.code, one.count, one.unit) == ("piled_sides", 6, "object")
    assert one.says.endswith("near it: width 40 pixels; on their 3 images 9 of 30 are smaller, elsewhere 15 of 30")
    assert one.records == (0, 1, 10, 11, 20, 21)
    width[np.flatnonzero(width[:30] == 50)[:1]] = 30
    again = np.where(width == 50, 2500, np.where(width == 40, 2000, 1500))[None]
    assert piles._said(own, again, piles.Pile(2000, (0,))).says.endswith("near it: width 40 pixels")
    again = np.where(width == 30, 2500, np.where(width == 40, 2000, 0))[None]
    made = piles._said(own, np.concatenate([again, again]), piles.Pile(2000, (0, 1))).says
    assert made.endswith("near it: width or height 40 pixels")
    again[0, 30:45] = 2500
    made = piles._said(own, again, piles.Pile(2000, (1,))).says
    assert made.endswith("near it: height 40 pixels; on their 3 images 10 of 16 are larger, elsewhere 24 of 24") is (
        10 * 24 <= 0.6 * 24 * 16
    )


def stray_limit(shorter):
    """Pixel by pixel."""
    best = None
    for limit in range(1, 33):
        beside = max(2, math.ceil(limit / 2))
        end = limit + beside
        below = sum(max(limit - beside, 0) < one <= limit for one in shorter)
        above = sum(limit < one <= end for one in shorter)
        larger = sum(end < one <= 3 * end for one in shorter)
        every = sum(one <= limit for one in shorter)
        if below < max(10, 2 * above) or larger < 2 * max(above, 1) or every > 0.25 * len(shorter):
            continue
        if stats.poisson.sf(below - 1, 1.5 * above + 1) < 1e-3 and (best is None or every - above > best[0]):
            best = every - above, limit
    return None if best is None else best[1]


def test_the_side_up_to_which_objects_are_strays():
    rng = np.random.default_rng(0)
    found = Counter()
    for _ in range(80):
        limit = int(rng.integers(1, 36))
        few = np.ceil(limit * rng.random(rng.integers(8, 40)))
        near = limit + rng.integers(1, 10, rng.integers(0, 8))
        shorter = np.r_[few, near, rng.integers(1, 300, rng.integers(20, 160))] - 0.5 * (rng.random() < 0.5)
        made = strays.limit_of(shorter)
        assert made == stray_limit(shorter.tolist())
        found[made] += 1
    assert found[None] > 20
    assert len(found) > 10


def dips(total, hits):
    """Band by band; an octave has four, and a range at most twelve."""
    best = None
    for first in range(4, len(total) - 4):
        for last in range(first + 1, min(first + 12, len(total) - 4) + 1):
            spans = [slice(first - 4, first), slice(last, last + 4), slice(first, last)]
            (few, near), (other, far), (count, own) = ((sum(total[one]), sum(hits[one])) for one in spans)
            if min(few, other, count) < 20:
                continue
            rate = min(near / few, far / other)
            if own > 0.5 * rate * count:
                continue
            if stats.poisson.sf(count - own - 1, 1.2 * count * (1 - rate) + 1) * len(total) * 12 >= 1e-3:
                continue
            gain = rate * count - 1.5 * own
            if best is None or gain > best[0] + 1e-9:
                best = gain, (first, last, rate)
    return None if best is None else best[1]


def test_sizes_at_which_few_objects_are_found():
    rng = np.random.default_rng(0)
    some = 0
    for _ in range(25):
        count = int(rng.integers(12, 30))
        total = rng.integers(5, 50, count)
        rate = np.full(count, rng.uniform(0.7, 0.95))
        first = int(rng.integers(2, count - 6))
        rate[first : first + int(rng.integers(1, 14))] = rng.uniform(0, 0.4)
        hits = rng.binomial(total, rate)
        made, wanted = sizes.dip(total, hits), dips(total.tolist(), hits.tolist())
        assert (made and made[:2]) == (wanted and wanted[:2])
        assert made is None or made[2] == wanted[2]
        some += made is not None
    assert 5 < some < 25


@pytest.mark.parametrize(("own", "others", "said"), [(20, 20, True), (19, 20, False), (20, 19, False)])
def test_either_side_of_the_objects_of_a_range_of_sizes(own, others, said):
    total, hits = np.zeros((2, 16), int)
    total[[4, 8, 11]] = others, own, others
    hits[[4, 11]] = others
    made = sizes.dip(total, hits)
    assert (made is not None) is said
    assert made is None or made == (8, 9, 1.0) or made[0] > 4


# --------------------------------------------------------------------------------------------------------------- boxes


def drawn_boxes(rng, count):
    return np.c_[rng.integers(0, 10, (count, 2)), rng.integers(1, 21, (count, 2))].astype(float)


def shared(one, other):
    wide = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    high = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    return max(wide, 0) * max(high, 0)


def test_boxes_within_far_larger_ones():
    """Of a quarter of the area, and with nine tenths of it inside."""
    rng = np.random.default_rng(0)
    some = 0
    for _ in range(40):
        cell = np.sort(rng.integers(0, 3, 25))
        box = drawn_boxes(rng, 25)
        box[:5, 2:] = 20
        box[5:12, 2:] = 10
        area = box[:, 2] * box[:, 3]
        wanted = [
            any(
                cell[one] == cell[other] and area[one] <= 0.25 * area[other]
                and shared(box[one], box[other]) >= 0.9 * area[one]
                for other in range(25)
            )
            for one in range(25)
        ]  # fmt: skip
        assert parts_of_objects.within(cell, box).tolist() == wanted
        some += sum(wanted)
    assert some > 50


def spanned(cell, box, best, at, cells, boxes, scores):
    """Whether detections of the object's cell, of higher scores than `best`, lie side by side in it and span it."""
    w, h = box[at, 2:]
    held = [
        one for one, of, score in zip(boxes, cells, scores, strict=True)
        if of == cell[at] and score > best[at] and shared(one, box[at]) >= 0.8 * (one[2] * one[3])
    ]  # fmt: skip
    if not held or sum(of == cell[at] for of in cells) < 2:
        return False
    near = np.array([one[:2] for one in held])
    far = np.array([one[:2] + one[2:] for one in held])
    beside = (near.max(axis=0) - far.min(axis=0) >= -0.1 * np.array([w, h])).any()
    around = [*near.min(axis=0), *(far.max(axis=0) - near.min(axis=0))]
    both = shared(around, box[at])
    return bool(beside and both >= 0.7 * (around[2] * around[3] + w * h - both))


def test_objects_around_several_detections():
    rng = np.random.default_rng(0)
    some = 0
    for _ in range(60):
        count = 12
        cell = np.sort(rng.integers(0, 4, count))
        box = np.c_[rng.integers(0, 3, (count, 2)), rng.integers(15, 21, (count, 2))].astype(float)
        boxes = np.c_[rng.integers(0, 13, (30, 1)), rng.integers(0, 5, (30, 1)), rng.integers(6, 11, (30, 1)),
                      rng.integers(12, 20, (30, 1))].astype(float)  # fmt: skip
        boxes[:5] = boxes[:5][:, [1, 0, 3, 2]]
        cells, scores = rng.integers(0, 4, 30), rng.integers(1, 9, 30) / 10
        best = np.where(rng.random(count) < 0.3, rng.integers(1, 9, count) / 10, -np.inf)
        evidence = SimpleNamespace(
            sure=np.arange(30), cell_of=lambda rows, cells=cells: cells[rows], found=SimpleNamespace(boxes=boxes),
            scores=scores, object_cell=cell, object_box=box, matched=(None, best),
        )  # fmt: skip
        given = np.flatnonzero(rng.random(count) < 0.8)
        wanted = [one for one in given.tolist() if spanned(cell, box, best, one, cells, boxes, scores)]
        assert policies.around_several(evidence, given).tolist() == wanted
        some += len(wanted)
    assert some > 30


def test_which_edges_are_shared_and_which_moved():
    says = "share the {} edges with the best overlapping one, and have {}"
    for edges, sides, kept, ratios in (
        ([0, 0, 0, -0.3], [0.1, -0.3], "left, top and right", "0.70 of its height"),
        ([0.1, -0.1, 0.15, -0.15], [0.05, -0.05], "left and top", "1.05 of its width and 0.95 of its height"),
        ([0.2, 0, 0, 0], [-0.2, 0.5], "top, right and bottom", "0.80 of its width"),
        ([0.2, 0, 0.4, 0], [0.2, 0.0], "top and bottom", "1.20 of its width"),
        ([0, -0.2, 0, 0.05], [0.2, 0.25], "left, right and bottom", "1.25 of its height"),
        ([0.11, 0, 0, 0.2], [0, 0], "", ""),
        ([0.14, 0, 0, 0], [0, 0], "", ""),
        ([0.2, 0.2, 0.2, 0], [0, 0], "", ""),
        ([0, 0, 0, 0], [0, 0], "", ""),
    ):
        wanted = says.format(kept, ratios) if kept else ""
        assert policies.differs(np.array(edges, float), np.array(sides, float)) == wanted


def test_edges_of_missed_objects_beside_those_of_detections():
    """Of the best that overlaps; detections that are square, as thin as the thinnest, or no confident ones, do not count."""
    found = np.array(
        [[10.0, 20, 40, 50], [12, 20, 40, 50], [10, 20, 50.01, 50], [0, 0, 5, 60], [0, 0, 60, 6], [10, 20, 40, 50],
         [20, 30, 51, 50], [5, 5, 20, 10]]
    )  # fmt: skip
    box = np.array([[14.0, 15, 40, 70], [0, 0, 60, 60], [9, 9, 9, 9], [20, 30, 60, 40], [1, 1, 20, 20], [5, 5, 10, 10]])
    which = np.array([0, 0, 1, 1, 1, 2, 3, 5])
    best = np.array([0.5, 0.6, 0.9, 0.9, 0.9, 0.9, 0.1, 0.0999])
    evidence = SimpleNamespace(
        pairs=(np.arange(8), which, best), sure=np.array([0, 1, 2, 3, 4, 5, 6, 7]), hit=np.array([0, 0, 1, 0, 0, 0], bool),
        aside=np.zeros(6, bool), found=type("Found", (), {"boxes": found, "__len__": lambda self: 8})(), object_box=box,
        least_sides=np.array([5.0, 6.0]),
    )  # fmt: skip
    made = policies.offsets(evidence)
    assert made.objects.tolist() == [0, 3]
    assert made.edges.tolist() == [[2 / 40, -5 / 50, 2 / 40, 15 / 50], [0, 0, 9 / 51, -10 / 50]]
    evidence.sure = np.array([0, 2, 3, 4, 5])
    assert policies.offsets(evidence).edges.tolist() == [[4 / 40, -5 / 50, 4 / 40, 15 / 50]]
    evidence.aside = np.array([1, 0, 0, 0, 0, 0], bool)
    assert policies.offsets(evidence).objects.size == 0


# --------------------------------------------------------------------------------------------------------------- units


def test_units_of_images():
    """All categories of an image are bad, or half of its records."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        keys = np.unique(rng.integers(0, 36, 20))
        image, label = keys // 4, keys % 4
        total = rng.integers(1, 5, keys.size)
        some = rng.integers(0, total + 1)
        bad, chance = rng.random(keys.size) < 0.5, rng.uniform(0, 1, keys.size) * (rng.random(keys.size) < 0.9)
        for every in (True, False):
            made = parts._by_image(parts.Units(image, label, bad, chance, some, total), every)
            expected, flags = [], []
            for one in np.unique(image):
                of = image == one
                flags.append(bad[of].all() if every else 2 * some[of].sum() >= total[of].sum())
                expected.append(
                    np.prod(np.maximum(chance[of], 1e-9)) if every else chance[of].mean() ** math.sqrt(of.sum())
                )
            least = min(np.mean(flags), 2 * np.median(expected) + 0.02)
            assert made.image.tolist() == np.unique(image).tolist()
            assert made.bad.tolist() == flags
            assert made.chance.tolist() == pytest.approx(np.maximum(expected, least).tolist())
            assert made.some.tolist() == [some[image == one].sum() for one in np.unique(image)]
            assert made.total.tolist() == [total[image == one].sum() for one in np.unique(image)]
            assert made.label.tolist() == [0] * len(flags)
    none = np.zeros(0, int)
    assert parts._by_image(parts.Units(none, none, none > 0, none / 1, none, none), True).image.size == 0


def test_units_of_records():
    rng = np.random.default_rng(1)
    evidence = SimpleNamespace(classes=3)
    image, label = rng.integers(0, 5, 40), rng.integers(0, 3, 40)
    where, flags = rng.random(40) < 0.8, rng.random(40) < 0.6
    for every in (True, False):
        made = parts._units(evidence, where, image, label, flags, every=every)
        wanted = []
        for one, of in sorted({*zip(image[where].tolist(), label[where].tolist(), strict=True)}):
            own = where & (image == one) & (label == of)
            count, total = np.sum(own & flags), own.sum()
            wanted.append((one, of, count == total if every else 2 * count >= total, count, total))
        assert [*zip(made.image, made.label, made.bad, made.some, made.total, strict=True)] == wanted
        assert len(set(made.chance.tolist())) <= 3


def test_shares_of_images_with_several_records():
    units = parts.Units(np.array([0, 0, 1, 3]), *[None] * 3, np.array([1, 0, 1, 2]), np.array([1, 2, 1, 2]))
    evidence = SimpleNamespace(images=5)
    assert parts._shares(evidence, units).tolist() == [1 / 3, 0, 0, 1, 0]
    flags = np.array([1, 0, 1, 1, 1], bool)
    assert parts._shares_of(np.array([0, 0, 1, 3, 3]), flags, 5).tolist() == [0.5, 0, 0, 1, 0]


@pytest.mark.parametrize(("some", "told"), [(9, True), (10, False)])
def test_either_side_of_bad_records_that_are_frequent_everywhere(some, told):
    """9 of 10 records are 3 times 9 of 30."""
    units = parts.Units(np.array([0, 1, 2]), *[None] * 3, np.array([9, some - 4, 4]), np.array([10, 15, 15]))
    assert parts._far_more(units, np.array([True, False, False])) is told


def test_kinds_of_boxes():
    boxes = np.array(
        [[2.0, 50, 10, 10], [2.1, 50, 10, 10], [50, 50, 48, 48], [50, 50, 47.9, 47.9], [9, 9, 9, 11], [9, 9, 2, 2]]
    )
    image = np.full((6, 2), 100.0)
    image[4] = np.inf
    made = parts.of_kinds(boxes, image, np.array([99.6, 99.6, 99.6, 2000, 3000, 2303.6]))
    assert {says: np.flatnonzero(which).tolist() for says, which in made.items()} == {
        "at most 2 pixels from the border of their image": [0, 2],
        "of an area below 100": [4, 5],
        "of an area above 2,228": [2, 3],
    }
    boxes[5] = [0, 0, 1, 1]
    image[5] = np.inf
    made = parts.of_kinds(boxes, image, np.full(5, 100.0))
    assert [which.tolist()[:2] for which in made.values()][1:] == [[False] * 2] * 2
    assert not next(iter(made.values()))[5]


def test_categories_that_are_detected_on_those_of_another():
    rng = np.random.default_rng(0)
    some = 0
    for _ in range(60):
        written, true = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
        for one in range(4):
            of = (written == one) & (rng.random(60) < rng.choice([0, 0.4, 0.6]))
            true[of] = rng.integers(0, 4)
        held = Counter(zip(written.tolist(), true.tolist(), strict=True))
        total = Counter(written.tolist())
        wanted = {
            one: (of, count, total[one])
            for (one, of), count in sorted(held.items()) if one != of and count >= max(5, 0.6 * total[one])
        }  # fmt: skip
        assert parts.mapping(written, true, 4) == wanted
        some += len(wanted)
    assert some > 30


@pytest.mark.parametrize(("one", "other", "alike"), [(9, 36, True), (9, 37, False), (8, 20, False), (10, 20, True)])
def test_parts_that_are_nearly_one(one, other, alike):
    """Nine of ten images of the first lie in the second, of which they are a quarter."""
    place = np.arange(100)
    first = place < 10
    second = (place >= 10 - one) & (place < 10 - one + other)
    assert parts._alike(first, second) is alike


def test_few_missed_objects_beside_those_of_chance():
    for mean in (0.5, 3.0, 12.0):
        for count in (0, 1, 2, 7, 20):
            assert row_lost._at_most(count, mean) == pytest.approx(stats.poisson.cdf(count, mean))
    evidence = SimpleNamespace(object_image=np.array([0, 0, 2, 2, 2]), images=4)
    made = row_lost._none(evidence, np.array([0.5, 0.2, 0.1, 0.1, 0.5]))
    assert made.tolist() == pytest.approx([0.4, 1, 0.405, 1])
    assert row_lost._none(evidence, np.array([1.0, 0, 0, 0, 0]))[0] == pytest.approx(1e-9)


# -------------------------------------------------------------------------------------------------------------- masks


def moved_masks(boxes, bounds, known):
    """Axis by axis, mask by mask."""
    out, words = [False] * len(boxes), [0.0, 0.0]
    for axis in (0, 1):
        by_sign = {1: {}, -1: {}}
        for at, (box, bound) in enumerate(zip(boxes, bounds, strict=True)):
            near, far = bound[axis] - box[axis], bound[axis] + bound[2 + axis] - box[axis] - box[2 + axis]
            middle = (near + far) / 2
            if known[at] and near * far > 0 and abs(near - far) <= 0.5 * abs(middle) and abs(middle) >= 2:
                by_sign[1 if middle > 0 else -1][at] = middle
        most = by_sign[1] if len(by_sign[1]) >= len(by_sign[-1]) else by_sign[-1]
        rest = by_sign[-1] if most is by_sign[1] else by_sign[1]
        if len(most) >= 5 and stats.poisson.sf(len(most) - 1, 1.5 * len(rest) + 1) < 1e-3:
            for at in most:
                out[at] = True
            words[axis] = float(np.median(list(most.values())))
    says = f"{sum(out):,} of them shifted by {words[0]:+.1f} and {words[1]:+.1f} pixels (x, y), in the median"
    return out, says if any(out) else ""


def test_masks_that_are_shifted():
    rng = np.random.default_rng(0)
    some = 0
    for _ in range(80):
        boxes = np.c_[rng.integers(20, 60, (40, 2)), rng.integers(10, 40, (40, 2))].astype(float)
        bounds = boxes.copy()
        moved = rng.random(40) < rng.choice([0.1, 0.2, 0.3])
        bounds[moved, :2] += rng.choice([-3, -2, 2, 3]) * (rng.random(2) < 0.7)
        bounds[:, 2:] += rng.integers(-2, 3, (40, 2)) * (rng.random((40, 2)) < 0.5)
        other = rng.random(40) < 0.1
        bounds[other, :2] += rng.integers(-4, 5, 2)
        known = rng.random(40) < 0.95
        flags, says = shapes.shifted(boxes, bounds, known)
        assert (flags.tolist(), says) == moved_masks(boxes, bounds, known)
        some += says != ""
    assert 20 < some < 75


def divisor(values, least):
    distinct = sorted(set(values))
    if len(distinct) < max(least, 2):
        return 0
    return math.gcd(*(b - a for a, b in pairwise(distinct)))


def test_divisors_of_gaps():
    rng = np.random.default_rng(0)
    for least in (1, 2, 3, 5):
        owner = np.repeat(np.arange(12), rng.integers(0, 7, 12))
        step = rng.integers(1, 5, 12)[owner]
        values = step * rng.integers(0, 9, owner.size) + owner
        order = rng.permutation(owner.size)
        made = shapes._divisor(owner[order], values[order], 12, least)
        wanted = [divisor(values[owner == at].tolist(), least) for at in range(12)]
        assert made.tolist() == wanted
    assert shapes._divisor(owner[:0], values[:0], 3, 2).tolist() == [0, 0, 0]


# ------------------------------------------------------------------------------------------------------- repeated boxes


def test_records_that_occur_on_an_earlier_image():
    rng = np.random.default_rng(0)
    for _ in range(20):
        keys, image = rng.integers(0, 8, 30), rng.integers(0, 10, 30)
        at, of = repeats._again(keys, image)
        first = {key: min(image[keys == key].tolist()) for key in keys.tolist()}
        wanted = {one: first[int(keys[one])] for one in range(30) if image[one] > first[int(keys[one])]}
        assert dict(zip(at.tolist(), of.tolist(), strict=True)) == wanted
        assert at.size == len(wanted)
    assert [one.size for one in repeats._again(keys[:0], image[:0])] == [0, 0]


def repeated(rng, count=40):
    """Detections of three boxes on four images, of four categories and three scores."""
    boxes = np.array([[10, 10, 20, 20], [40, 10, 20, 20], [10, 60, 30, 20]])[rng.integers(0, 3, count)]
    rows = np.c_[rng.integers(0, 4, count), rng.integers(1, 5, count), boxes, rng.integers(1, 4, count) / 4]
    return facts_of([[0, 1, 300, 300, 9, 9]], rows, images=10).found


def same(side, one, other):
    return side.image[one] == side.image[other] and (side.boxes[one] == side.boxes[other]).all()


def test_pairs_of_one_box_in_two_categories():
    """Each record and the three that follow it in the order of boxes."""
    rng = np.random.default_rng(0)
    for count in (1, 6, 12, 24):
        side = repeated(rng, count)
        label = side.table.categories.codes
        best = np.sort(rng.permutation(count)[: max(count - 2, 1)])
        groups = {}
        for one in best.tolist():
            groups.setdefault((int(side.image[one]), *side.boxes[one].tolist()), []).append(one)
        wanted = {
            (own[at], own[at + step])
            for own in groups.values() for at in range(len(own)) for step in (1, 2, 3)
            if at + step < len(own) and label[own[at]] != label[own[at + step]]
        }  # fmt: skip
        made = repeats._pairs(side, best)
        assert {*zip(*made.tolist(), strict=True)} == wanted
        assert made.shape == (2, len(wanted))


def test_records_under_several_labels():
    rng = np.random.default_rng(0)
    for _ in range(10):
        side = repeated(rng, 30)
        label, scores = side.table.categories.codes, side.table.scores
        rows = np.flatnonzero(rng.random(30) < 0.8)
        for others in ((), (scores[rows],)):
            wanted = [
                any(same(side, one, two) and label[one] != label[two] and (not others or scores[one] == scores[two])
                    for two in rows)
                for one in rows
            ]  # fmt: skip
            assert repeats._under_several(side, rows, label[rows], *others).tolist() == wanted


def test_kinds_of_pairs_of_categories():
    side = repeated(np.random.default_rng(0), 30)
    label = side.table.categories.codes.astype(int)
    pairs = np.random.default_rng(1).integers(0, 30, (2, 50))
    kinds, at = repeats._kinds(side, pairs)
    wanted = [tuple(sorted((label[one], label[other]))) for one, other in pairs.T.tolist()]
    assert [divmod(int(kinds[one]), side.table.categories.ids.size) for one in at] == wanted
    assert sorted(kinds.tolist()) == kinds.tolist()


def test_pairs_of_categories_of_which_one_is_written_again():
    """Nearly all its detections, or nearly all of those on images with such a box and several of it, at least ten."""

    def told(first, second, images, each, beside=0):
        """Of `first` detections of category 1, `second` of category 2 on one image each have the box of one of them."""
        rows = [[at // each, 1, 10 + at, 10, 20, 20, 0.5] for at in range(first)]
        again = [[at // each, 2, 10 + at, 10, 20, 20, 0.5] for at in range(second)]
        more = [[90 + at, 2, 10, 10, 20, 20, 0.5] for at in range(images)]
        more += [[0, 2, 10, 100 + at, 20, 20, 0.5] for at in range(beside)]
        side = facts_of([[0, 1, 300, 300, 9, 9]], [*rows, *again, *more], images=200).found
        pairs = np.stack([np.arange(second), first + np.arange(second)])
        for given in (pairs, pairs[::-1], np.where(np.arange(second) % 2, pairs, pairs[::-1])):
            kinds, at = repeats._kinds(side, given)
            made = repeats._written_again(side, np.arange(len(side)), given, at, kinds)
            yield made.tolist()

    assert [*told(100, 90, 50, 1)] == [[True]] * 3
    assert [*told(100, 89, 50, 1)] == [[False]] * 3
    assert [*told(100, 90, 10, 1)] == [[True]] * 3
    assert [*told(100, 54, 6, 1)] == [[True]] * 3  # of the second category
    assert [*told(100, 54, 7, 1)] == [[False]] * 3
    assert [*told(30, 10, 50, 10)] == [[True]] * 3  # all on the first image
    assert [*told(30, 9, 50, 9)] == [[False]] * 3
    assert [*told(60, 18, 50, 20, 9)] == [[True]] * 3
    assert [*told(60, 17, 50, 20, 1)] == [[True]] * 3
    assert [*told(60, 17, 50, 20, 2)] == [[False]] * 3


@pytest.mark.parametrize(
    ("links", "third"),
    [([(0, 1), (0, 2)], True), ([(1, 2), (0, 1)], True), ([(0, 1)], False), ([(0, 3), (1, 2)], False)],
)
def test_a_third_category_in_whose_place_two_are_written(links, third):
    """It is linked with both, and more of the boxes lie on its objects than on those of either."""
    ids = np.array([5, 6, 7, 8])
    aliases = np.array([4 * one + other for one, other in links])
    common = {(0, 1): (1, 2), (1, 2): (0, 2)}.get(links[0]) if third else (1, 2)
    between = ({0, 1, 2} - set(common)).pop()
    on = np.repeat(ids[between], 5)
    assert repeats._of_third(aliases, *common, on, 4, ids) is third
    assert not repeats._of_third(aliases, *common, on, 5, ids)


def test_parts_that_stand_out():
    """A smallest share of bad units, and a smallest ratio to that of others."""
    for inside, outside, told in (((4, 10), (16, 100), True), ((39, 100), (0, 100), False), ((4, 10), (17, 100), False),
                                  ((4, 10), (0, 0), True)):  # fmt: skip
        bad = np.r_[np.arange(inside[1]) < inside[0], np.arange(outside[1]) < outside[0]]
        there = np.arange(bad.size) < inside[1]
        units = parts.Units(None, None, bad, None, None, None)
        assert parts._stands_out(units, Part(there, "", there), parts.RESPONSES[2]) is told
    assert side().unit == "detection"
