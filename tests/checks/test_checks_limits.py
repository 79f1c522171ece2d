"""Either side of each limit of the checks that compare parts, categories and scores, in numbers written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from detmap.checks import categories, coverage, leakage, limits, parts, rates, sizes
from detmap.checks.agreement import Gain, Nearest
from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence
from detmap.checks.findings import found
from detmap.checks.rates import Division, Part


def side(boxes=None, image=None, image_sizes=None, count=1000):
    """The side of a check without a file."""
    return SimpleNamespace(
        boxes=boxes,
        image=image,
        sizes=image_sizes,
        unit="detection",
        drawn=None,
        records=lambda rows: {},
        on=SimpleNamespace(
            images=SimpleNamespace(ids=np.arange(count)), categories=SimpleNamespace(names=("cat", "dog", "cow", "emu"))
        ),
    )


def codes(made):
    return [one.code for one in made]


FACTS = Facts(None)

# --------------------------------------------------------------------------------------------------------------------- parts


def units(some, total):
    """A unit for each image, and which are bad does not matter."""
    some, total = np.array(some), np.array(total)
    image = np.arange(some.size)
    return parts.Units(image, 0 * image, some > 0, 0.1 + 0 * image, some, total)


@pytest.mark.parametrize(("response", "least", "times"), [(2, 40, 20), (3, 60, 20)])
def test_either_side_of_a_part_that_stands_out(response, least, times):
    """40 of 100 and 2.5 times the rest, or 60 of 100 and 3 times the rest where half of the records make a unit bad."""

    def stands_out(inside, outside):
        bad = np.concatenate([np.arange(100) < inside, np.arange(100) < outside])
        made = units(bad.astype(int), np.ones(200, int))
        there = np.arange(200) < 100
        return parts._stands_out(made, Part(there, "", there), parts.RESPONSES[response])

    assert stands_out(least, 0)
    assert not stands_out(least - 1, 0)
    share = {2: 50, 3: 62}[response]
    assert stands_out(share, times)
    assert not stands_out(share, times + 1)


def test_either_side_of_unlabelled_objects_of_each_size():
    """40 of 100 images and 5 times the rest, and as many times the records of the rest."""

    def stands_out(some, total):
        bad = np.array(some) > 0
        there = np.arange(200) < 100
        image = np.arange(200)
        made = parts.Units(image, 0 * image, bad, 0.1 + 0 * image, np.array(some), np.array(total))
        return parts._stands_out(made, Part(there, "", there), parts.RESPONSES[6])

    def images(inside, outside):
        return np.concatenate([np.arange(100) < inside, np.arange(100) < outside]).astype(int)

    assert parts.RESPONSES[6].make is parts._unlabelled_of_sizes
    assert stands_out(images(40, 8), np.ones(200, int))
    assert not stands_out(images(40, 9), np.ones(200, int))
    assert not stands_out(images(39, 0), np.ones(200, int))
    some = images(100, 10)
    assert stands_out(some, np.repeat([10, 5], 100))  # a tenth of the records, and a fiftieth elsewhere
    assert not stands_out(some, np.repeat([11, 5], 100))


@pytest.mark.parametrize(("gained", "said"), [(10, ["scaled_boxes"]), (9, [])])
def test_either_side_of_another_reading_that_explains_a_part(monkeypatch, gained, said):
    """A tenth of 100 detections on nothing."""
    gain = Gain("scaled_boxes", "detections", np.arange(gained), Nearest(np.zeros(100), np.zeros(100, int)))
    made = SimpleNamespace(of_images=None, of_boxes=gain, astray=np.arange(100))
    monkeypatch.setattr(parts, "Agreement", lambda *given, corrected: made)
    facts = SimpleNamespace(
        agreement=SimpleNamespace(truth=None, found=side(), corrected=None),
        causes=set(),
        says_part=lambda part: part.says,
    )
    told = parts._explained(facts, Part(np.ones(5, bool), "all", np.ones(5, bool)), None)
    assert codes([] if told is None else [told]) == said
    assert facts.causes == {("detections", code) for code in said}


@pytest.mark.parametrize(("missed", "said"), [(32, ["cut_boxes"]), (33, ["misplaced"])])
def test_either_side_of_a_part_that_a_cut_of_boxes_explains(monkeypatch, missed, said):
    """Of 198 objects elsewhere 20 are missed, of 200 in the part 1.5 times as many, beside 100 at which boxes are cut."""
    image = np.repeat([0, 1, 1], [198, 200, 100])
    place = np.concatenate([np.arange(198), np.arange(200), np.arange(100)])
    left = np.repeat([48.0, 48, 47], [198, 200, 100])  # two pixels from the line are no part of the inside
    boxes = np.c_[left, left, np.full((498, 2), 30.0)]
    hit = place >= np.repeat([20, missed, 100], [198, 200, 100])
    every, rows = np.ones(498, bool), np.arange(498)
    of = side(boxes, image, np.full((498, 2), 100.0))
    evidence = SimpleNamespace(
        truth=of, found=of, detections=rows, objects=rows, object_image=image, object_label=0 * rows, seen=every,
        held=0 * rows + 1, hit=hit, looked_at=every, sure_looked_at=every,
    )  # fmt: skip
    causes = set()
    facts = SimpleNamespace(causes=causes, caused=lambda *pair: pair in causes)
    monkeypatch.setattr(parts, "_explained", lambda *given: None)
    monkeypatch.setattr(parts, "resized_sides", lambda *given: None)
    monkeypatch.setattr(parts.exchanges, "says_within", lambda *given: "")
    monkeypatch.setattr(parts.exchanges, "exchanged", lambda *given: [])
    monkeypatch.setattr(parts.batches, "turned", lambda *given: [])
    monkeypatch.setattr(parts.policies, "policy", lambda *given: "")
    monkeypatch.setattr(parts, "_squares", lambda *given: None)
    monkeypatch.setattr(parts.limits, "cut_lines", lambda *given: [("left edge", 50.0)])
    monkeypatch.setattr(parts.limits, "at_lines", lambda *given: SimpleNamespace(code="cut_boxes"))
    part = Part(np.array([False, True]), "images 1", image == 1)
    made = units(np.bincount(image, ~hit).astype(int), np.bincount(image))
    given = facts, evidence, parts.RESPONSES[2], made, part
    assert codes(parts._said(*given, None)) == said
    assert codes(parts._said(*given, None)) == (said if said == ["misplaced"] else [])  # lines are named once
    assert codes(parts._said(*given, 0)) == ["misplaced"]


@pytest.mark.parametrize(("cut", "said"), [(50, ["cut_boxes"]), (49, ["unlabelled"])])
def test_either_side_of_detections_on_nothing_that_a_cut_of_boxes_explains(monkeypatch, cut, said):
    """Of 100 detections on nothing in the part half have an edge at the line; all others have, and lie on objects."""
    rows, image = np.arange(300), np.repeat([0, 1], [100, 200])
    alone = (rows >= 200) | (rows < 100)
    boxes = np.tile([50.0, 20, 30, 40], (300, 1))
    boxes[200 + cut :, 0] = 45.0
    of = side(boxes, image, np.full((300, 2), 100.0))
    evidence = SimpleNamespace(
        truth=of, found=of, detections=rows, sure=rows, alone=alone, looked_at=np.ones(2, bool),
        sure_looked_at=np.ones(2, bool),
    )  # fmt: skip
    monkeypatch.setattr(parts.limits, "cut_lines", lambda *given: [("left edge", 50.0)])
    monkeypatch.setattr(parts.limits, "at_lines", lambda *given: SimpleNamespace(code="cut_boxes"))
    part = Part(np.array([False, True]), "images 1", image == 1)
    made = units(np.bincount(image, alone).astype(int), np.bincount(image))
    assert codes(parts._said(Facts(None), evidence, parts.RESPONSES[5], made, part, None)) == said


def test_lines_cross_boxes_at_pixels_and_at_shares_of_either_side():
    boxes = np.array([[10.0, 20, 30, 40], [40, 20, 30, 40]])
    of = side(boxes, image_sizes=np.array([[100.0, 80]] * 2))
    for what, value, said in (
        ("left edge", 25.0, [True, False]),
        ("bottom edge", 59.0, [False, False]),
        ("right edge / side", 0.5, [False, True]),
        ("top edge / side", 0.5, [True, True]),
        ("right edge / other side", 0.25, [True, False]),
    ):
        assert limits.crossing(of, np.arange(2), [(what, value)]).tolist() == said


def scattered(code, shares, total=100, alone=100, sure=100, suppressed=0.75):
    """How many images are named of those with these shares of bad records, and of detections on nothing."""
    count = 200
    some = np.zeros(count, int)
    some[: len(shares)] = shares
    image = np.repeat(np.arange(count), sure)
    flags = np.tile(np.arange(sure) < alone, count)
    evidence = SimpleNamespace(
        images=count, found=SimpleNamespace(image=image), sure=np.arange(image.size), alone=flags, frames=1.0,
        suppressed=suppressed,
    )  # fmt: skip
    made = parts._scattered(FACTS, evidence, code, units(some, np.full(count, total)))
    return 0 if made is None else int(made.sum())


@pytest.mark.parametrize(
    ("code", "least", "middle"),
    [("misplaced", 85, 50), ("unsuppressed", 40, 20), ("relabelled", 50, 25), ("unsuppressed_across", 80, 40)],
)
def test_either_side_of_images_anywhere(code, least, middle):
    alone = 30 if code == "misplaced" else 100
    assert scattered(code, [least] * 8, alone=alone) == 8
    assert scattered(code, [least - 1] * 8, alone=alone) == 0
    assert scattered(code, [least] * 8 + [middle - 1] * 6, alone=alone) == 8
    assert scattered(code, [least] * 8 + [middle] * 6, alone=alone) == 0  # images differ in difficulty


def test_either_side_of_images_anywhere_where_a_threshold_of_suppression_is_known():
    assert scattered("unsuppressed", [25] * 8, suppressed=0.7) == 8
    assert scattered("unsuppressed", [24] * 8, suppressed=0.7) == 0
    assert scattered("unsuppressed", [25] * 8 + [9] * 6, suppressed=0.7) == 8
    assert scattered("unsuppressed", [25] * 8 + [10] * 6, suppressed=0.7) == 0


def test_either_side_of_images_anywhere_where_labels_are_wrong_everywhere():
    """A third of their share on other images, as where some of the labels of all images are drawn at random."""
    assert scattered("relabelled", [60] * 8 + [20] * 192) == 8
    assert scattered("relabelled", [60] * 8 + [21] * 192) == 0
    assert scattered("unsuppressed", [40] * 8 + [19] * 192) == 8  # of other findings a share is told as it is


def test_either_side_of_images_where_objects_are_missed_and_detections_lie_on_nothing():
    assert scattered("misplaced", [60] * 8) == 8
    assert scattered("misplaced", [59] * 8) == 0
    assert scattered("misplaced", [84] * 8, alone=60) == 8
    assert scattered("misplaced", [84] * 8, alone=59) == 0
    few = [60] * 5 + [10] * 16
    assert scattered("misplaced", few) == 5
    assert scattered("misplaced", [*few, *[34] * 4]) == 5
    assert scattered("misplaced", [*few, *[35] * 4]) == 0  # 16 and 4 images let one more be expected
    assert scattered("misplaced", [60] * 8 + [10] * 16 + [35] * 4) == 8
    assert scattered("misplaced", [60] * 8 + [9] * 16 + [35] * 4) == 0
    assert scattered("misplaced", [60] * 4) == 0


def test_either_side_of_detections_on_nothing_and_of_the_records_of_an_image():
    assert scattered("misplaced", [100] * 8, alone=25) == 8
    assert scattered("misplaced", [100] * 8, alone=24) == 0
    assert scattered("relabelled", [2] * 8, total=2) == 8
    assert scattered("relabelled", [1] * 8, total=1) == 0
    assert scattered("misplaced", [2] * 8, total=2, sure=2, alone=2) == 8
    assert scattered("misplaced", [2] * 8, total=2, sure=1, alone=1) == 0


def test_images_that_reach_two_shares_by_chance():
    """Of 100 images with two objects and two detections, half of which are bad, one in 16 has all of them bad."""
    image = np.repeat(np.arange(150), 2)
    evidence = SimpleNamespace(
        images=250, found=SimpleNamespace(image=np.append(image[:200], np.arange(150, 250))), sure=np.arange(300),
        alone=np.arange(300) % 2 == 0,
    )  # fmt: skip
    some, total = np.repeat([1, 0], [100, 50]), np.repeat([2, 0], [100, 50])
    made = parts.Units(np.arange(150), np.zeros(150, int), some > 0, 0.1 + 0 * some, some, total)
    assert parts._reaching_both(evidence, made) == pytest.approx(100 / 16)
    assert parts._reaching_both(evidence, parts._chosen(made, total == 0)) == 0.0
    sizes_of = np.array([2, 3, 5, 100, 4000])
    wanted = stats.binom.sf(np.ceil(0.6 * np.minimum(sizes_of, 100)) - 1, np.minimum(sizes_of, 100), 0.55)
    assert rates.reaching(0.6, 0.55, sizes_of) == pytest.approx(wanted)


@pytest.mark.parametrize(("total", "said"), [(100, 8), (2, 0)])
def test_either_side_of_images_that_reach_two_shares_by_chance(total, said):
    """Of eight images all is missed, and lies on nothing; of 96 others each half is, which of two records is by chance."""
    bad = np.repeat([1.0, 0.5, 0.0], [8, 96, 96]) * total, np.repeat([1.0, 0.0, 0.5], [8, 96, 96]) * total
    image = np.repeat(np.arange(200), total)
    flags = np.tile(np.arange(total), 200) < bad[1][image]
    evidence = SimpleNamespace(
        images=200, found=SimpleNamespace(image=image), sure=np.arange(image.size), alone=flags, frames=1.0
    )
    made = parts._scattered(FACTS, evidence, "misplaced", units(bad[0].astype(int), np.full(200, total)))
    assert (0 if made is None else int(made.sum())) == said


@pytest.mark.parametrize(("chance", "said"), [(0.1, 5), (0.14, 0)])
def test_either_side_of_twice_the_images_that_reach_two_shares_by_chance(monkeypatch, chance, said):
    monkeypatch.setattr(parts, "_reaching_both", lambda *given: chance)
    assert scattered("misplaced", [60] * 5) == said


def of_mapping(off, count):
    """What is said of objects of a part that are taken for another category, so many of them for the next one."""
    label = np.zeros(count, int)
    taken = np.where(np.arange(count) < off, 1, 2)
    truth = side()
    truth.table = SimpleNamespace(categories=SimpleNamespace(ids=np.array([5, 6, 9])))
    evidence = SimpleNamespace(
        truth=truth, taken_for=(taken, np.arange(count)), object_label=label, object_image=label, sure=np.arange(count),
        found=side(),
    )  # fmt: skip
    made = parts._mapped(evidence, Part(np.ones(1, bool), "images 1 to 2", None), None)
    return [] if made is None else [(made.code, made.count, made.says.partition("; ")[2])]


def test_either_side_of_ids_of_classes_that_are_off_by_one_in_a_part():
    code, says = "category_ids_shifted", "each - 1 is the one that is meant, unless the objects' are off"
    assert of_mapping(10, 10) == [(code, 10, says)]
    assert of_mapping(9, 9) == []
    assert of_mapping(80, 100) == [(code, 100, says)]
    assert of_mapping(79, 100) == []


def test_either_side_of_parts_that_are_nearly_the_same():
    """Nine tenths of the one lie within the other, of which it is a quarter."""
    at = np.arange(100)
    assert parts._alike((at >= 10) & (at < 20), (at >= 11) & (at < 47))
    assert not parts._alike((at >= 10) & (at < 20), (at >= 12) & (at < 47))
    assert not parts._alike((at >= 10) & (at < 20), (at >= 11) & (at < 48))


@pytest.mark.parametrize(
    ("below", "above", "said", "at"),
    [(100, 20, 0.55, 0.53), (100, 21, 0.6, 0.53), (8, 1, 0.55, 0.53), (7, 0, 0.75, 0.53), (8, 0, 0.45, 0.351),
     (8, 0, 0.75, 0.349), (8, 0, 0.5, 0.46), (8, 0, 0.55, 0.51), (8, 0, 0.6, 0.56), (8, 0, 0.65, 0.61),
     (8, 0, 0.7, 0.66), (8, 0, 0.75, 0.701)],
)  # fmt: skip
def test_either_side_of_a_threshold_of_suppression(below, above, said, at):
    """The largest overlap of some images lies up to 0.1 below a threshold, that of at most a fifth as many above."""
    largest = np.repeat([at, 0.56], [below, above])
    found = SimpleNamespace(image=np.arange(largest.size))
    evidence = SimpleNamespace(images=150, found=found, sure=np.arange(largest.size), between_detections=largest)
    assert Evidence.suppressed.func(evidence) == said


# -------------------------------------------------------------------------------------------------------------------- limits


def neighbours(objects, count, most=0.5, own=0, few=0, across=False):
    """What is said of so many objects that overlap another by so much, where detections overlap by `most` at most; `own` of
    them, and all but `few` of 1,000 others, have a detection of their own. With `across` the other is of another category.
    """
    none = np.zeros(0)
    evidence = SimpleNamespace(
        between_any=(np.array([0.0, most]), np.full(count, objects)) if across else (none, none),
        between_detections=np.array([0.0, most]),
        between_objects=np.full(count, objects),
        among_objects=np.append(np.full(count, objects), np.zeros(1000)),
        hit=np.ones(count, bool),
        beside_found=lambda limit: (
            np.arange(count + 1000) < count * (objects > limit),
            np.arange(count + 1000) >= count,
        ),
        matched=(
            None,
            np.where((np.arange(count + 1000) - count + own) % (count + 1000) < own + 1000 - few, 1, -np.inf),
        ),
        object_image=np.arange(count),
        objects=np.arange(count if across else count + 1000),
        frames=1.0,
        truth=side(),
    )
    return codes(limits._neighbours(evidence))


def test_either_side_of_suppression():
    assert neighbours(0.521, 14) == ["strict_suppression"]
    assert neighbours(0.519, 14) == []  # no more than the detections do, but for a rounding
    assert neighbours(0.521, 13) == []
    assert neighbours(0.845, 14) == ["strict_suppression"]
    assert neighbours(0.855, 14) == []  # one object that is labelled twice
    assert neighbours(0.8, 14, most=0.745) == ["strict_suppression"]
    assert neighbours(0.8, 14, most=0.755) == []
    assert neighbours(0.8, 100, own=84) == ["strict_suppression"]
    assert neighbours(0.8, 100, own=85) == []  # hardly more than of other objects have no detection of their own
    assert neighbours(0.8, 20, own=10) == ["strict_suppression"]
    assert neighbours(0.8, 20, own=11) == []
    assert neighbours(0.521, 14, across=True) == ["suppressed_across"]
    assert neighbours(0.519, 14, across=True) == []
    assert neighbours(0.8, 14, own=1, few=400) == ["strict_suppression"]
    assert neighbours(0.8, 14, own=2, few=400) == []  # 12 of 14 where 5.6 are expected occur once in 80 times


def test_objects_beside_a_found_one():
    """Three in a row, of which the first has a detection of its own; a box around several; two of other categories."""
    box = np.array(
        [[0, 0, 10, 10], [3, 0, 10, 10], [6, 0, 10, 10], [0, 0, 10, 14], [3, 0, 10, 10], [3, 0, 10, 10]], float
    )
    cell = np.array([0, 0, 0, 0, 1, 2])
    evidence = SimpleNamespace(
        object_cell=cell, object_box=box, seen=np.ones(6, bool), around=np.arange(6) == 3,
        among_objects=np.array([0.54, 0.54, 0.54, 0.0, 0.0, 0.0]),
        matched=(None, np.where(np.isin(np.arange(6), [0, 3]), 1.0, -np.inf)),
    )  # fmt: skip
    over, rest = Evidence.beside_found(evidence, 0.5)
    assert np.flatnonzero(over).tolist() == [1]  # the third overlaps a missed one, and the first is found itself
    assert np.flatnonzero(rest).tolist() == [3]
    evidence.matched = (None, np.where(np.arange(6) == 1, 1.0, -np.inf))
    over, rest = Evidence.beside_found(evidence, 0.5)
    assert (np.flatnonzero(over).tolist(), np.flatnonzero(rest).tolist()) == ([0, 2], [3])
    over, rest = Evidence.beside_found(evidence, 0.54)
    assert (np.flatnonzero(over).tolist(), np.flatnonzero(rest).tolist()) == ([], [0, 2, 3])


def of_limit(alone, others=0):
    """Whether a limit of three objects is named: of 100 images that have three, and of 40 that have two, so many have a
    confident detection on nothing.
    """
    held = np.repeat([1, 2, 3], [60, 40, 100])
    at = np.arange(200)
    flags = (at >= 100) & (at < 100 + alone) | (at >= 60) & (at < 60 + others)
    truth = side(count=200)
    truth.image = np.repeat(np.arange(200), held)
    truth.crowd = np.zeros(truth.image.size, bool)
    evidence = SimpleNamespace(
        truth=truth, images=200, found=SimpleNamespace(image=np.arange(200)), sure=np.arange(200), alone=flags,
        sure_looked_at=np.ones(200, bool), frames=1.0, division=Division(np.arange(200), [], []),
    )  # fmt: skip
    facts = SimpleNamespace(parts=[])
    made = list(parts._capped(facts, evidence))
    assert [images.sum() for images, _ in facts.parts] == [100] * len(made) == [one.count for one in made]
    return bool(made)


def test_either_side_of_a_limit_of_objects():
    assert of_limit(12)
    assert not of_limit(11)
    assert of_limit(88, others=20)
    assert not of_limit(87, others=20)  # 50 are expected by the others, and 60 are 1.2 times as many


def edge(beyond=60, next_to=20, behind=20, at=1.14, after=1.16):
    """A limit of 10 below which so many objects are; as many detections as objects next to it."""
    found = np.concatenate([[10.0], np.full(next_to - 1, 10 * at), np.full(behind, 10 * after), np.full(500, 50.0)])
    objects = np.concatenate([np.full(beyond, 5.0), np.full(next_to + behind, 11.0), np.full(100, 50.0)])
    return limits.edge_below(found, objects)


def test_either_side_of_an_edge():
    assert edge(beyond=47) == 10.0  # 0.3 of them are expected to be found, which is 14
    assert edge(beyond=46) is None
    assert edge(next_to=12, behind=5) == 10.0
    assert edge(next_to=11, behind=5) is None
    assert edge(next_to=12, behind=25) is None
    assert edge(next_to=13, behind=25) == 10.0
    assert edge(next_to=12, behind=25, after=1.149) == 10.0  # within the first band
    assert edge(beyond=200, next_to=12, behind=25, after=1.32) is None
    assert edge(beyond=200, next_to=12, behind=25, after=1.325) == 10.0  # beyond the second one


def test_either_side_of_the_edge_of_images():
    made = limits._at(
        side(np.array([[2.0, 9, 5, 5], [2.01, 9, 5, 5]]), None, np.full((2, 2), 100.0)), np.arange(2), "left edge"
    )
    assert np.isnan(made).tolist() == [True, False]


def test_either_side_of_a_line():
    """One in a hundred images has a box at a coordinate that its neighbours do not have."""
    rng = np.random.default_rng(0)
    for count, said in ((19, False), (20, True)):
        boxes = np.c_[rng.uniform(10, 200, (2000, 2)), rng.uniform(30, 90, (2000, 2))]
        boxes[:count, 0] = 300.0
        boxes[:count, 2] = rng.uniform(30, 90, count)
        one = side(boxes, np.arange(2000), np.full((2000, 2), 640.0))
        assert bool(limits._lines(one, np.arange(2000))) is said


@pytest.mark.parametrize(("beside", "said"), [(2, True), (3, False)])
def test_either_side_of_lines_side_by_side(beside, said):
    """30 boxes at a coordinate are a line beside two or three others of as many, not beside whole numbers."""
    rng = np.random.default_rng(0)
    boxes = np.c_[rng.uniform(200, 400, (2000, 2)), rng.uniform(30, 90, (2000, 2))]
    boxes[: 30 * (beside + 1), 0] = np.repeat(300.0 + np.arange(beside + 1), 30)
    one = side(boxes, np.arange(2000), np.full((2000, 2), 640.0))
    assert bool([what for what, _ in limits._lines(one, np.arange(2000)) if what == "left edge"]) is said


@pytest.mark.parametrize(("wide", "step"), [(500, 32), (499, 16)])
def test_either_side_of_a_wider_grid(wide, step):
    """Half of the boxes on a grid of 16 pixels lie on that of 32, too."""
    rng = np.random.default_rng(0)
    near = rng.integers(1, 8, (1000, 2))
    boxes = np.where(np.arange(1000)[:, None] < wide, 32, 16) * np.c_[near, 1 + 0 * near]
    boxes[wide:, 0] = 16 * (2 * near[wide:, 0] + 1)
    assert limits._grid(side(boxes.astype(float), np.arange(1000), np.full((1000, 2), 640.0)), np.arange(1000)) == step


def test_either_side_of_a_grid():
    rng = np.random.default_rng(0)
    for count, said in ((19, None), (20, 1)):
        boxes = np.c_[rng.uniform(10, 200, (2000, 2)), rng.uniform(30, 90, (2000, 2))]
        boxes[:count] = np.floor(boxes[:count])
        assert limits._grid(side(boxes, np.arange(2000), np.full((2000, 2), 640.0)), np.arange(2000)) == said


def square(count, apart=0.0, whole=False):
    """Whether so many of 4,000 detections are square, or nearly so."""
    rng = np.random.default_rng(0)
    boxes = np.c_[rng.uniform(10, 200, (4000, 2)), rng.uniform(30, 90, (4000, 2)) + np.array([0, 80 * (not whole)])]
    boxes = np.round(boxes) if whole else boxes
    boxes[:count, 3] = boxes[:count, 2] + apart
    return limits.squares(side(boxes, np.arange(4000), np.full((4000, 2), 640.0)), np.arange(4000))


def test_either_side_of_square_boxes():
    assert square(20)
    assert not square(19)
    assert square(100, apart=0.019)
    assert not square(100, apart=0.021)
    assert not square(20, whole=True)  # 66 of whole pixels are square by chance
    assert square(400, whole=True)


def test_either_side_of_squares_of_one_size():
    """Both sides of 40 boxes are equal, and half of them are 48 pixels: a least size, if it were one more."""
    for count, said in ((20, True), (21, False)):
        rng = np.random.default_rng(0)
        boxes = np.c_[rng.uniform(10, 200, (4000, 2)), rng.uniform(30, 90, (4000, 2)) + np.array([0, 80])]
        boxes[:40, 3] = boxes[:40, 2]
        boxes[:count, 2:] = 48
        assert bool(limits.squares(side(boxes, np.arange(4000), np.full((4000, 2), 640.0)), np.arange(4000))) is said


def matched(count=1000, alone=0, missed=100, elsewhere=1.0, score=0.5):
    """What is said of detections of which so many lie on nothing, and such a share of them would elsewhere."""
    overlaps = (np.arange(count) >= alone) * 0.7, (np.arange(count) >= elsewhere * count) * 0.7
    near = iter([SimpleNamespace(overlap=one) for one in overlaps])
    facts = SimpleNamespace(
        agreement=SimpleNamespace(
            thinned=lambda rows: rows, nearest=lambda *given: next(near), others=lambda image: image
        )
    )
    truth = SimpleNamespace(crowd=np.zeros(3, bool))
    evidence = SimpleNamespace(
        detections=np.arange(count), scores=np.full(count, score), truth=truth, hit=np.arange(1000) >= missed,
        seen=np.ones(1000, bool), objects=np.arange(1000), found=side(np.zeros((count, 4)), np.arange(count)),
    )  # fmt: skip
    return codes(limits._matched(facts, evidence))


def test_either_side_of_detections_that_were_matched():
    assert matched(alone=3) == ["detections_of_labels"]  # by their scores 150 are expected to lie on nothing
    assert matched(alone=4) == []
    assert matched(missed=20) == ["detections_of_labels"]
    assert matched(missed=19) == []  # a model that finds all objects may find nothing else
    assert matched(count=94) == ["detections_of_labels"]
    assert matched(count=93) == []
    assert matched(elsewhere=0.5) == ["detections_of_labels"]
    assert matched(elsewhere=0.49) == []  # objects are everywhere
    assert matched(score=1.01) == []


@pytest.mark.parametrize(
    ("count", "known", "said"),
    [(20, None, True), (19, None, False), (20, (0, 0), False), (20, (20, None), True), (20, (0, 1), True)],
)
def test_either_side_of_the_objects_of_a_category_with_a_limit(monkeypatch, count, known, said):
    """Of one category so many objects, which are smaller than any of its detections; one image, or a category there, may
    belong to a part with a finding of its own.
    """
    rng = np.random.default_rng(0)
    image_sizes = np.full((1000, 2), 640.0)
    boxes = np.c_[rng.uniform(10, 200, (1000, 2)), rng.uniform(5, 90, (1000, 2))]
    boxes[:200, 2:] = rng.uniform(40, 42, (200, 2))
    objects = boxes.copy()
    objects[:count, 2:] = 10
    label = (np.arange(1000) >= 200).astype(int)
    of = (np.arange(1000) >= count).astype(int)
    found, truth = (side(one, np.arange(1000), image_sizes) for one in (boxes, objects))
    truth.reach, truth.table = np.zeros(1000), SimpleNamespace(categories=SimpleNamespace(codes=of))
    truth.whole = np.zeros(1000, bool)
    monkeypatch.setattr(limits.strays, "strays", lambda side: None)
    evidence = SimpleNamespace(
        detections=np.arange(1000), found=found, truth=truth, objects=np.arange(1000), classes=2, label=label
    )
    parts_of = [] if known is None else [(np.arange(1000) == known[0], known[1])]
    assert codes(limits._sizes(Facts(None, parts=parts_of), evidence)) == ["sizes_cut"] * said


@pytest.mark.parametrize(("over", "said"), [(14, [14]), (13, [])])
def test_either_side_of_a_limit_of_images_and_categories(over, said):
    """On 100 images with five objects all are detected, and on others five of six: 14 more are expected, or 13."""
    objects = np.repeat(np.arange(100 + over), [5] * 100 + [6] * over)
    evidence = SimpleNamespace(
        cell=np.repeat(np.arange(100 + over), 5),
        object_cell=objects,
        held=np.full(objects.size, 5),
        classes=1,
        truth=side(),
    )
    assert [one.count for one in limits._of_cells(evidence)] == said


# --------------------------------------------------------------------------------------------------------------------- sizes


def regions(around=4, within=0.9, missed=10, others=0.02, many=40, reported=0):
    """What is said of objects around so many of their category, some of them missed, beside 1,000 others."""
    cell, box, hit = [], [], []
    for at in range(many):
        cell += [at] * (around + 1)
        box += [[0, 0, 100, 100]] + [[100 - 10 * within, 20 * one, 10, 10] for one in range(around)]
        hit += [at >= missed] + [True] * around
    count = 1000
    cell += list(range(many, many + count))
    box += [[0, 0, 100, 100]] * count
    hit += [at >= others * count for at in range(count)]
    evidence = SimpleNamespace(
        object_cell=np.array(cell),
        object_box=np.array(box, float),
        hit=np.array(hit),
        seen=np.ones(len(cell), bool),
        band=(np.array(box)[:, 2] > 50).astype(int),
        objects=np.arange(len(cell)),
        truth=side(),
    )
    evidence.around = Evidence.around.func(evidence)
    overlaps = Evidence.between_objects.func(evidence)  # those within a box around several are side by side
    assert (overlaps[np.array(cell) < many] > 0).any() == (not evidence.around.any())
    evidence.object_image = evidence.object_label = np.zeros(len(cell), int)
    return codes(sizes._regions(SimpleNamespace(unreported=lambda image, label: image == reported), evidence))


def test_either_side_of_a_region_of_several_objects():
    assert regions() == ["objects_of_many"]
    assert regions(around=3) == []
    assert regions(within=0.91) == ["objects_of_many"]
    assert regions(within=0.89) == []
    assert regions(missed=9) == []
    assert regions(missed=200, others=0.245, many=400) == ["objects_of_many"]  # twice as many as their sizes explain
    assert regions(missed=200, others=0.255, many=400) == []
    assert regions(reported=1) == []  # another finding names these objects


def test_either_side_of_the_bands_beside_a_dip():
    """Four bands are an octave, in which twenty objects on each side are enough; twelve bands are the widest range."""
    total = np.zeros(40, int)
    total[[16, 17, 18, 19]], total[20:22], total[[22, 23, 24, 25]] = 5, 50, 5
    hits = total.copy()
    hits[20:22] = 5
    assert sizes.dip(total, hits) is not None
    total[16] = hits[16] = 0
    total[15] = hits[15] = 5  # an octave and a band away
    assert sizes.dip(total, hits) is None
    for wide, said in ((12, (10, 22, 1.0)), (13, None)):
        total = np.full(40, 100)
        hits = total.copy()
        hits[10 : 10 + wide] = 0
        made = sizes.dip(total, hits)
        assert (made == said) if said else (made[1] - made[0] == 12)


# ---------------------------------------------------------------------------------------------------------------- categories


def of_objects(label, **columns):
    """The evidence of objects on an image each; all are found unless it is said otherwise."""
    label = np.asarray(label)
    count = label.size
    every = {
        "classes": 4,
        "images": count,
        "object_label": label,
        "object_image": np.arange(count),
        "object_box": np.tile([0.0, 0, 10, 10], (count, 1)) * (1 + np.arange(count) % 2)[:, None],
        "object_cell": np.arange(count),
        "held": np.ones(count, int),
        "hit": np.ones(count, bool),
        "seen": np.ones(count, bool),
        "found": SimpleNamespace(image=np.arange(count)),
        "truth": side(count=count),
        "looked_at": np.ones(count, bool),
        "sure_looked_at": np.ones(count, bool),
    }
    return SimpleNamespace(**{**every, **columns})


FOUR = np.repeat(np.arange(4), 200)


@pytest.mark.parametrize(("count", "said"), [(59, []), (60, ["rarely_detected"])])
def test_either_side_of_a_lost_category(count, said):
    held = np.ones(800, int)
    held[:count] = 0
    assert codes(categories._lost(FACTS, of_objects(FOUR, held=held))) == said


@pytest.mark.parametrize(("large", "said"), [(68, []), (72, ["rarely_detected"])])
def test_either_side_of_a_loss_that_depends_on_size(large, said):
    """All small objects of a category are lost, and so many of 100 large ones: 0.7 times as often is a defect."""
    held = np.ones(800, int)
    held[0:200:2] = 0
    held[1 : 2 * large : 2] = 0
    assert codes(categories._lost(FACTS, of_objects(FOUR, held=held))) == said


@pytest.mark.parametrize(("several", "said"), [(68, []), (72, ["rarely_detected"])])
def test_either_side_of_a_loss_that_depends_on_the_number_of_objects(several, said):
    """All objects of a category that are alone on their image are lost, and so many of 100 that are two."""
    held = np.ones(800, int)
    held[:100] = 0
    held[100 : 100 + several] = 0
    image = np.arange(800)
    image[100:200] = 100 + np.repeat(np.arange(50), 2)
    made = of_objects(FOUR, held=held, object_image=image, object_cell=image)
    made.object_box[:200] = np.tile([[0, 0, 10, 10], [0, 0, 20, 20]], (100, 1))
    assert codes(categories._lost(FACTS, made)) == said


@pytest.mark.parametrize(("count", "said"), [(139, []), (140, ["rarely_found"])])
def test_either_side_of_a_category_that_is_rarely_found(count, said):
    assert codes(categories._missed(FACTS, of_objects(FOUR, hit=np.arange(800) >= count))) == said


def test_either_side_of_what_is_far_above_other_categories():
    assert categories._beyond(10, 1000, 0.0, 5)
    assert not categories._beyond(9, 1000, 0.0, 5)
    assert categories._beyond(375, 1000, 0.125, 5)
    assert not categories._beyond(374, 1000, 0.125, 5)


def of_confident(label, alone, rank=None, **columns):
    """The evidence of confident detections on an image each, by category and descending score."""
    label = np.asarray(label)
    count = label.size
    rank = np.arange(count) % np.bincount(label)[0] / np.bincount(label)[0] if rank is None else rank
    made = {
        "classes": int(label.max()) + 1,
        "images": count,
        "found": SimpleNamespace(image=np.arange(count)),
        "sure": np.arange(count),
        "label": label,
        "object_label": label,
        "sure_rank": rank,
        "scores": 1.0 - rank,
        "alone": np.asarray(alone),
        "truth": side(count=count),
        "looked_at": np.ones(count, bool),
        "sure_looked_at": np.ones(count, bool),
    }
    made["truth"].image = np.arange(count)
    return SimpleNamespace(**{**made, **columns})


@pytest.mark.parametrize(("count", "said"), [(29, []), (30, ["missing_labels"])])
def test_either_side_of_labels_that_are_missing(count, said):
    """Of the best quarter of 2,000 detections."""
    alone = np.arange(2000) < count
    assert codes(categories._unlabelled(FACTS, of_confident(np.zeros(2000, int), alone))) == said


@pytest.mark.parametrize(("lower", "said"), [(500, ["missing_labels"]), (520, [])])
def test_either_side_of_labels_that_are_missing_at_any_score(lower, said):
    """A tenth of the best, and half of the lower half of 2,000: a fifth of that is a tenth."""
    at = np.arange(2000)
    alone = (at < 50) | ((at >= 1000) & (at < 1000 + lower))
    assert codes(categories._unlabelled(FACTS, of_confident(np.zeros(2000, int), alone))) == said


@pytest.mark.parametrize(("best", "said"), [(20, ["missing_labels"]), (19, [])])
def test_either_side_of_all_labels_that_are_missing_at_the_highest_scores(best, said):
    """40 of the second 250 detections lie on nothing, and half as many of the first."""
    at = np.arange(2000)
    alone = (at < best) | ((at >= 250) & (at < 290))
    assert codes(categories._unlabelled(FACTS, of_confident(np.zeros(2000, int), alone))) == said


def unlabelled_of_one(best, lower=0):
    """Of four categories of 1,000 detections one has so many on nothing in the best quarter, and in the lower half."""
    label = np.repeat(np.arange(4), 1000)
    at = np.arange(4000)
    return codes(categories._unlabelled(FACTS, of_confident(label, (at < best) | ((at >= 500) & (at < 500 + lower)))))


def test_either_side_of_a_category_without_labels():
    assert unlabelled_of_one(15) == ["rarely_labelled"]
    assert unlabelled_of_one(14) == []
    assert unlabelled_of_one(15, lower=149) == ["rarely_labelled"]
    assert unlabelled_of_one(15, lower=151) == []


@pytest.mark.parametrize(("count", "said"), [(19, ["rarely_labelled"]), (20, [])])
def test_either_side_of_detections_on_nothing_that_other_categories_have_at_the_same_scores(count, said):
    """Of one category 20 lie on nothing; others have three times the objects, and higher scores in their second quarters."""
    label = np.repeat(np.arange(4), 1000)
    at = np.arange(4000)
    alone = (at < 20) | ((at >= 1300) & (at < 1300 + count))
    made = of_confident(label, alone, scores=np.where(label, 2.0, 1.0) - at % 1000 / 1000)
    assert codes(categories._unlabelled(FACTS, made)) == said


@pytest.mark.parametrize(("best", "said"), [(10, ["rarely_labelled"]), (9, [])])
def test_either_side_of_labels_that_are_missing_at_the_highest_scores(best, said):
    """20 of the second 125 detections lie on nothing, and half as many of the first."""
    label = np.repeat(np.arange(4), 1000)
    at = np.arange(4000)
    alone = (at < best) | ((at >= 125) & (at < 145))
    assert codes(categories._unlabelled(FACTS, of_confident(label, alone))) == said


@pytest.mark.parametrize(
    ("twins", "said"), [((199, 199, 199, 199), []), ((200,) * 4, ["unsuppressed"]), ((79, 0, 0, 0), []),
                        ((80, 0, 0, 0), ["unsuppressed"])]
)  # fmt: skip
def test_either_side_of_detections_that_are_not_suppressed(twins, said):
    flags = np.concatenate([np.arange(1000) < one for one in twins])
    made = of_confident(np.repeat(np.arange(4), 1000), flags, twins=flags, twins_of_size=flags)
    assert codes(categories._unsuppressed(FACTS, made)) == said


@pytest.mark.parametrize(("count", "twins", "said"), [(19, 0, True), (20, 0, False), (20, 2, True), (20, 1, False)])
def test_either_side_of_a_category_that_is_suppressed(count, twins, said):
    """All categories of at least 20 confident detections, or none, are not suppressed: a tenth is enough."""
    label = np.concatenate([np.repeat(np.arange(3), 1000), np.full(count, 3)])
    flags = np.concatenate([np.tile(np.arange(1000) < 300, 3), np.arange(count) < twins])
    given = of_confident(label, flags, rank=0 * label, twins=flags, twins_of_size=flags)
    made = list(categories._unsuppressed(FACTS, given))
    assert (bool(made) and made[0].count == 900 + twins) is said


def mixed(wrong, lower=0, each=1000):
    """Of four categories with as many objects, so many are taken for the next one by the better half of the detections."""
    label = np.repeat(np.arange(4), each)
    place = np.tile(np.arange(each), 4)
    flags = (place < np.array(wrong)[label]) | ((place >= each // 2) & (place < each // 2 + lower))
    other = np.where(flags, (label + 1) % 4, label)
    made = of_objects(
        label, taken_for=(other, np.arange(label.size)), sure_rank=place / each, sure=np.arange(label.size)
    )
    facts = Facts(None)
    facts.division = Division(label, [], [])
    return codes(categories._mixed(facts, made))


def test_either_side_of_labels_that_are_wrong_or_mixed():
    assert mixed([35] * 4) == ["wrong_labels"]  # seven of a hundred
    assert mixed([30] * 4) == []  # six, where five are usual: so many of 2,000 are by chance
    assert mixed([305] * 4, each=10_000) == ["wrong_labels"]  # six of a hundred, where chance is no matter
    assert mixed([295] * 4, each=10_000) == []
    assert mixed([36] * 4, lower=70) == ["wrong_labels"]
    assert mixed([36] * 4, lower=74) == []  # lower scores are wrong more than twice as often
    assert mixed([50, 0, 0, 0]) == ["labels_mixed"]
    assert mixed([48, 0, 0, 0]) == []


# ------------------------------------------------------------------------------------------------------------------- leakage


def resized(count, aspects):
    """How many pairs of images of one name and another size are the same without objects."""
    own = np.array([(300 + 40 * (at % aspects), 600) for at in range(count)])
    pairs = [(at, at, f"{at}.jpg") for at in range(count)]
    return len(list(leakage._resized(pairs, own, own * 2, None)))


def test_either_side_of_images_of_one_name_and_aspect():
    assert resized(10, 3) == 10
    assert resized(9, 3) == 0
    assert resized(10, 2) == 0


def one_category(count):
    """The table of detections of one category."""
    return SimpleNamespace(categories=SimpleNamespace(ids=np.zeros(1, int), codes=np.zeros(count, int)))


@pytest.mark.parametrize(
    ("held", "said"),
    [((24, 12, 12, 12), True), ((23, 12, 12, 12), False), ((24, 12, 12, 13), False), ((20, 0, 0, 0), True)],
)
def test_either_side_of_a_limit_that_some_images_exceed(held, said):
    """Twice as many images have seven detections as have one or two more or fewer; five is the lowest limit."""
    for limit in (7, 5, 4):
        counts = np.repeat([limit, limit - 1, limit + 1, limit + 2, limit + 9], [*np.array(held) * 4, 1])
        facts = SimpleNamespace(
            detections=one_category(counts.sum()), truth=side(count=counts.size), causes=set(),
            concentrated=lambda *given: None,
        )  # fmt: skip
        every = np.ones(counts.sum(), bool)
        found = SimpleNamespace(image=np.repeat(np.arange(counts.size), counts), sized=every, aside=~every)
        made = codes(coverage._capped(facts, found, counts))
        assert made == (["cap_reached"] if said and limit > 4 else [])


@pytest.mark.parametrize(("padding", "copies"), [(False, False), (True, False), (False, True)])
def test_rows_of_padding_and_copies_fill_no_image_up_to_a_limit(padding, copies):
    """Of 100 images with 1 to 20 detections, all have 20 if rows without an area, or copies, fill them up."""
    own = np.repeat(np.arange(100), np.arange(100) % 20 + 1)
    image = np.concatenate([own, np.repeat(np.arange(100), 19 - np.arange(100) % 20)])
    more = np.arange(image.size) >= own.size
    found = SimpleNamespace(image=image, sized=~(more & padding), aside=more & copies)
    facts = SimpleNamespace(detections=one_category(image.size), truth=side(count=100), causes=set())
    made = coverage._capped(facts, found, np.bincount(image))
    assert [one.count for one in made] == ([] if padding or copies else [100])


def test_a_finding_names_ten_records():
    for count in (9, 10, 11):
        assert found("cap_reached", count, "image", records=range(count)).records == tuple(range(min(count, 10)))


@pytest.mark.parametrize(("alone", "said"), [(300, [20]), (299, [])])
def test_either_side_of_images_that_were_skipped(alone, said):
    """All of 300 images have a detection on nothing, of 20 others none has a detection: half as often is assumed."""
    image = np.arange(300)
    overlap = np.where(image < alone, 0.099, 0.1)
    facts = SimpleNamespace(
        causes=set(), truth=side(count=320),
        agreement=SimpleNamespace(thinned=lambda rows: rows, nearest=lambda *given: SimpleNamespace(overlap=overlap)),
    )  # fmt: skip
    held = (np.arange(320) < 300).astype(int)
    assert [one.count for one in coverage._skipped(facts, side(np.zeros((300, 4)), image), held, held)] == said
