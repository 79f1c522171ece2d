"""Checks that combine several figures, with figures written out: ids and labels that are mapped, copies, limits of parts."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_boxes_by_hand import facts_of, side, told
from test_checks_limits import matched
from test_checks_readings import few

import detmap
from detmap.checks import (
    anchors,
    batches,
    boxes,
    coverage,
    cut_sizes,
    exchanges,
    image_ids,
    labels,
    limits,
    objects_left_over,
)
from detmap.checks.counts import Counts
from detmap.checks.evidence import evidence_of
from detmap.checks.inputs import side_of
from detmap.checks.objects_left_over import _Copies
from detmap.checks.rates import Order, Part, tail

SEEDS = range(6)


def test_scores_of_0_and_1_are_probabilities():
    assert matched(score=1.0) == []  # none is expected to be wrong
    assert matched(score=0.0) == ["detections_of_labels"]
    assert matched(score=-0.1) == []
    for most, said in ((1.0, ["detections_of_labels"]), (1.01, [])):
        assert matched(score=np.r_[most, np.full(999, 0.5)]) == said


# -------------------------------------------------------------------------------------------------------- objects left over


def complete(copied, own=1, sources=5, images=5, size=(400, 400), smaller=None, boxes=None):
    """The copies of objects of images 0, 2, 4 …, which are on the next image beside `own` others."""
    given = np.array([[20.0 * n, 10, 15, 12] for n in range(sources)] if boxes is None else boxes, float)
    rows, image, copies, originals = [], [], [], []
    for at in range(images):
        first = len(rows)
        rows += given.tolist()
        image += [2 * at] * len(given)
        for n in range(copied):
            copies.append(len(rows))
            originals.append(first + n)
            rows.append(given[n].tolist())
            image.append(2 * at + 1)
        rows += [[3.0, 200 + 7 * n + at, 9, 9] for n in range(own)]
        image += [2 * at + 1] * own
    truth = side(rows, image=image, size=size, count=2 * images)
    if smaller is not None:
        truth.table.images.sizes.flags.writeable = True
        truth.table.images.sizes[1::2] = smaller[::-1]
    way = _Copies(np.array(copies, int), np.array(originals, int), ", as said")
    return objects_left_over._complete(truth, way, np.ones(len(rows), bool)), way


def test_nearly_all_objects_of_the_other_image_are_copied():
    """Four of five, on five images with objects of their own beside."""
    made, way = complete(4)
    assert made.copies.tolist() == way.copies.tolist()
    assert made.originals.tolist() == way.originals.tolist()
    assert made.says == ", as said"
    assert complete(3)[0] is None
    assert complete(4, images=objects_left_over.FEWEST - 1)[0] is None
    assert complete(4, images=objects_left_over.FEWEST)[0] is not None
    assert complete(4, own=0)[0] is None
    assert complete(5, own=0)[0] is None  # the same image


@pytest.mark.parametrize(("width", "said"), [(81.9, True), (82.0, False), (83, False)])
def test_objects_outside_of_a_smaller_image_have_no_copy(width, said):
    """The fifth begins at 80 pixels, and must be 2 pixels wide; three of four others are too few if it is."""
    boxes = [[20.0 * n, 10, 15, 12] for n in range(5)] + [[0.0, 100, 3, 3]]
    assert (complete(4, boxes=boxes, smaller=(width, 400))[0] is not None) is said
    assert complete(4, boxes=boxes[:5], smaller=(width, 400))[0] is not None


@pytest.mark.parametrize(
    ("right", "wrong", "said"), [(6, 0, 6), (5, 0, 0), (12, 1, 12), (9, 1, 0), (20, 4, 0), (24, 4, 24)]
)
def test_originals_are_found_and_copies_are_not(monkeypatch, right, wrong, said):
    """On far more than twice as many images as the other way round; both count each object once."""
    total = right + wrong + 3
    boxes = np.tile([10.0, 10, 20, 20], (2 * total, 1))
    truth = side(boxes, image=np.arange(2 * total))
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[1], boxes=[[0, 0, 1, 1]], scores=[1])
    facts = facts_of(truth, side_of(found, truth.table))
    copies, originals = np.arange(total), np.arange(total) + total
    hits = iter([np.arange(total) >= right, (np.arange(total) < right) | (np.arange(total) >= right + wrong)])
    monkeypatch.setattr(objects_left_over, "_hit", lambda *given: next(hits))
    made, says = objects_left_over._gain(facts, _Copies(copies, originals, ""))
    assert made == said
    assert (tail(right, 2.0 * wrong + 1) < 1e-3 and right >= 5) is bool(said)
    assert says == (f"detections find {wrong + 3} of them, and {right + 3} of the {total} objects that they repeat")


# ---------------------------------------------------------------------------------------------------------- limits of parts


@pytest.mark.parametrize("seed", SEEDS)
def test_the_smallest_value_of_each_group(seed):
    rng = np.random.default_rng(seed)
    codes, values = rng.integers(-1, 4, 30), rng.integers(0, 99, 30).astype(float)
    low, held = cut_sizes._groups(codes, values)
    assert held.tolist() == [int((codes == one).sum()) for one in range(4)]
    assert low.tolist() == [values[codes == one].min() for one in range(4)]


def part_cut(beyond=70, elsewhere=40, missed=(0, 0), next_to=20, inverse=False):
    """What is said of a limit of 10 that detections of the first 100 of 300 images have, beyond which objects are."""
    images = 300
    own_image, own, true_image, true, hit = [], [], [], [], []
    for at in range(images):
        sizes = [11.0, 30.0]
        if 100 <= at < 140:
            sizes.append(5.0 if at < 100 + elsewhere else 10.2)
        if at < next_to:
            sizes[0] = 10.5 if at else 10.0
        own_image += [at] * len(sizes)
        own += sizes
        objects = [11.0, 30.0, *([5.0] if at < beyond or at >= 100 else [])]
        true_image += [at] * len(objects)
        true += objects
        hit += [not (at < missed[0] or 100 <= at < 100 + missed[1])] * len(objects)
    own_image, true_image = np.array(own_image), np.array(true_image)
    there = np.arange(images) < 100
    order = Order("ids", np.arange(images))
    asked = []

    def unlike(image, bad, rate, looks, frames, left):
        asked.append((image.tolist(), looks, frames, left))
        return Part(there, "images 1 to 100", there)

    truth = SimpleNamespace(on=SimpleNamespace(images=SimpleNamespace(ids=np.arange(images))))
    evidence = SimpleNamespace(
        detections=np.arange(own_image.size), found=SimpleNamespace(image=own_image), images=images, frames=1.0,
        object_image=true_image, objects=np.arange(true_image.size) + 1000, hit=np.array(hit), truth=truth,
        seen=np.ones(true_image.size, bool), held=np.ones(true_image.size, int),
        division=SimpleNamespace(orders=[order], groupings=[], groups=0, unlike=unlike),
    )  # fmt: skip
    own, true = np.array(own), np.array(true)
    values = cut_sizes.Values("width", inverse, *(1 / one if inverse else one for one in (own, true)))
    known = np.arange(images)
    monkey = limits.apart, limits.cut_lines
    limits.apart = lambda evidence: np.zeros(9999, bool)
    limits.cut_lines = lambda *given: []
    try:
        made = cut_sizes._limit(None, evidence, values, known, [known])
    finally:
        limits.apart, limits.cut_lines = monkey
    rows = [1000 + at for at in range(true_image.size) if true_image[at] < 100 and true[at] < 10]
    if made is not None:
        assert made.rows.tolist() == rows
        assert asked[0][1:] == (2 * 19 * 6, 1.0, 1e-4)
    return None if made is None else made.says


def test_limits_of_a_part_of_the_images():
    """14 detections elsewhere are beyond; half as many more objects may be missed within the part, and one more."""
    assert part_cut() == "width below 10"
    assert part_cut(elsewhere=14) == "width below 10"
    assert part_cut(elsewhere=13) is None
    assert part_cut(beyond=62) == "width below 10"
    assert part_cut(beyond=60) is None
    assert part_cut(missed=(30, 40)) == "width below 10"
    assert part_cut(missed=(31, 40)) is None


@pytest.mark.parametrize(("rate", "said"), [(1.0, False), (0.5, True)])
def test_images_that_are_all_within_a_limit_are_no_part(rate, said):
    bad = np.arange(200) < 200 * rate
    there = np.arange(200) < 100
    evidence = SimpleNamespace(
        division=SimpleNamespace(groups=4, unlike=lambda *given: Part(there, "", there)), frames=1.0
    )
    order = np.arange(200)
    assert (cut_sizes._part(evidence, order, [order], bad, 0) is not None) is said
    mixed = np.ravel(np.column_stack([np.arange(100), np.arange(100, 200)]))
    assert cut_sizes._part(evidence, order, [mixed], bad, 0) is None  # no bad images in a row
    assert (cut_sizes._part(evidence, order, [mixed], bad, 100) is not None) is said
    whole = np.ones(200, bool)
    evidence.division.unlike = lambda *given: Part(whole, "", whole)
    assert cut_sizes._part(evidence, order, [order], bad, 100) is None


# ----------------------------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize(("orders", "chance", "said"), [(1, 1.65, True), (1, 1.75, False), (2, 1.65, False)])
def test_many_orders_are_tested_for_batches(monkeypatch, orders, chance, said):
    """20 explained detections where twice the mean and one more are expected, times all sizes and offsets of each order."""
    place = np.arange(40)
    found = SimpleNamespace(image=place, records=lambda rows: {"records": rows[:3].tolist()})
    every = [SimpleNamespace(says=f"order {at}", place=place) for at in range(orders)]
    evidence = SimpleNamespace(sure=place, found=found, division=SimpleNamespace(orders=every))
    order = batches.Order(4, 3)
    monkeypatch.setattr(batches, "_lying", lambda *given: (place[:20], place[:20], order.mirrored(place[:20])))
    monkeypatch.setattr(batches, "_orders", lambda *given: iter([(20, chance, order)]))
    monkeypatch.setattr(batches, "_even", lambda *given: True)
    there = np.arange(40) < 36
    made = list(batches.turned(evidence, Part(there, "images 1 to 36", there)))
    assert (tail(20, 2 * chance + 1) * orders * batches.MOST**2 < 1e-3) is said
    assert bool(made) is said
    if said:
        assert made[0].count == 36
        assert made[0].says.endswith(
            ": batches of 4 images in the order of order 0; images 1 to 36: of 36 confident detections there 20 lie on an "
            "object of their category on the mirrored image, and 0 on one of their own image"
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_detections_are_compared_image_by_image(seed):
    made = few(seed, detections=60)
    evidence = evidence_of(made.truth, made.found)
    images = np.arange(9) < 6
    image, steps = exchanges.fits(evidence, images, 0.5)
    assert {*image.tolist()} <= {*range(6)}
    order = np.random.default_rng(0).permutation(9)[image]
    assert order.tolist() == sorted(order.tolist())
    assert len(steps) == image.size


# ----------------------------------------------------------------------------------------------------------- ids and labels


@pytest.mark.parametrize("lies", [True, False])
def test_boxes_bear_out_other_ids(lies):
    """Those of the sample on images that the ids map to."""
    made = few(0)
    found = made.found
    ids = found.table.images.ids.tolist()
    known = made.truth.on.images.ids.tolist()
    to = {ids[0]: known[4], ids[2]: known[1]}
    asked = []
    agreement = SimpleNamespace(
        rows=np.arange(0, 40, 2), lies_on=lambda image, boxes: asked.append((image.tolist(), boxes.tolist())) or lies
    )
    facts = SimpleNamespace(agreement=agreement, truth=made.truth)
    assert image_ids._borne_out(facts, found, found.table, to) is lies
    rows = [row for row in range(0, 40, 2) if ids[found.table.images.codes[row]] in to]
    places = [known.index(to[ids[found.table.images.codes[row]]]) for row in rows]
    assert asked == [(places, found.boxes[rows].tolist())]
    assert image_ids._borne_out(facts, found, None, to) is True
    facts.agreement = None
    assert image_ids._borne_out(facts, found, found.table, to) is True


def mapped(ids, truth_ids, counts=None, weights=None, names=None, agreement=True):
    """What is said of detections of some categories: the number of each, and on objects of which category."""
    weights = [30] * len(ids) if weights is None else weights
    codes = np.repeat(np.arange(len(ids)), weights)
    table = SimpleNamespace(ids=np.array(ids), codes=codes)
    truth = SimpleNamespace(
        categories=SimpleNamespace(ids=np.array(truth_ids), names=names or [f"c{one}" for one in truth_ids])
    )
    matrix = np.zeros((len(ids), len(truth_ids)), int) if counts is None else np.array(counts)
    rows, columns = np.repeat(np.indices(matrix.shape).reshape(2, -1), matrix.ravel(), axis=1)
    held = Counts(rows, columns, matrix.shape)
    whole = SimpleNamespace(confusion=held, distinct=held, by_chance=False)

    class Records(SimpleNamespace):
        def __len__(self):
            return codes.size

    one = Records(
        raw=None, table=SimpleNamespace(categories=table),
        records=lambda rows: {"records": np.flatnonzero(rows).tolist()[:3]},
    )  # fmt: skip
    facts = facts_of(None, one, whole if agreement else None)
    facts.detections = SimpleNamespace(categories=table)
    return told(labels._mapped(facts, one, truth)), facts.causes


def test_categories_that_are_mapped():
    right = [[20, 0, 0], [0, 20, 0], [0, 0, 20]]
    assert mapped([1, 2, 3], [1, 2, 3], right) == ([], set())
    unknown = mapped([1, 2, 9], [1, 2, 3], [[20, 0, 0], [0, 20, 0], [0, 0, 0]])
    assert unknown == ([("unknown_categories", 30, "9", (9,))], set())
    made, causes = mapped([1, 2, 9], [1, 2, 3], right)
    assert made == [("classes_renamed", 30, "9 is 3 (c3)", (60, 61, 62))]
    assert causes == {("detections", "classes_renamed")}
    made, causes = mapped([1, 2, 9, 8], [1, 2, 3], [*right, [0, 0, 0]])
    assert made == [("classes_renamed", 30, "9 is 3 (c3)", (60, 61, 62)), ("unknown_categories", 30, "8", (8,))]
    made, causes = mapped([0, 1, 2], [1, 2, 3], right)
    assert made == [("category_ids_shifted", 90, "each + 1 is the one that is meant", (0, 1, 2))]
    assert causes == {("detections", "category_ids_shifted")}
    shifted, _ = mapped([0, 1, 2, 9], [1, 2, 3, 9], [[20, 0, 0, 0], [0, 20, 0, 0], [0, 0, 20, 0], [0, 0, 0, 20]])
    assert shifted == [("category_ids_shifted", 90, "each + 1 is the one that is meant", (0, 1, 2))]  # one is right
    swapped, _ = mapped([1, 2, 3], [1, 2, 3], [[0, 20, 0], [20, 0, 0], [0, 0, 20]], [31, 32, 33])
    assert swapped == [("classes_permuted", 63, "1 (c1) is 2 (c2), 2 (c2) is 1 (c1)", (0, 1, 2))]
    mixed, causes = mapped([1, 2, 3], [1, 2, 3], [[9, 8, 8], [8, 9, 8], [8, 8, 9]])
    assert [one[:2] for one in mixed] == [("classes_disagree", 48)]
    assert causes == {("detections", "classes_disagree")}


def test_categories_that_are_mapped_without_boxes():
    made, causes = mapped([0, 1, 2], [1, 2, 3], agreement=False)
    assert made == [("category_ids_shifted", 90, "each + 1 is one that is there", ())]
    assert causes == {("detections", "category_ids_shifted")}
    assert mapped([1, 2, 3], [1, 2, 3], agreement=False) == ([], set())
    made, _ = mapped([1, 2, 7], [1, 2, 3], agreement=False)
    assert made == [("unknown_categories", 30, "7", (7,))]


def test_categories_by_text_and_by_name():
    made, causes = mapped(["1", "2", "x"], [1, 2, 3], weights=[5, 6, 7])
    assert made == [("category_ids_type", 11, "'1' is 1, '2' is 2", (0, 1, 2)), ("unknown_categories", 7, "x", ("x",))]
    assert causes == {("detections", "category_ids_type")}
    made, causes = mapped(["cat", "dog"], [1, 2], names=["cat", "dog"])
    assert made == [("category_ids_names", 60, "'cat' is 1, 'dog' is 2", (0, 1, 2))]


def test_categories_without_objects_or_detections():
    """Crowds are no objects; where no category has detections none is named, nor those that are one class with another."""
    truth = side([[0, 0, 5, 5]] * 4, label=[1, 1, 1, 2], crowd=np.arange(4) == 3)
    found = detmap.Detections.from_arrays(image_ids=[1], category_ids=[2], boxes=[[0, 0, 5, 5]], scores=[1])
    facts = facts_of(truth, side_of(found, truth.table))
    facts.detections, facts.schema, facts.split = found, False, set()
    assert told(labels._undetected(facts, truth.table)) == [("categories_without_detections", 1, "1", (1,))]
    facts.schema = True
    assert [one[:2] for one in told(labels._undetected(facts, truth.table))] == [("categories_without_detections", 1)]
    facts.split = {0}
    assert told(labels._undetected(facts, truth.table)) == []
    none = detmap.Detections.from_arrays(image_ids=[1], category_ids=[9], boxes=[[0, 0, 5, 5]], scores=[1])
    facts.detections, facts.split = none, set()
    assert told(labels._undetected(facts, truth.table)) == []
    facts.schema = False
    assert [one[1] for one in told(labels._undetected(facts, truth.table))] == [1]


# ------------------------------------------------------------------------------------------------------ numbers and anchors


@pytest.mark.parametrize(("image", "said"), [([3, 5, 3], (1, 2, 3, 5)), ([3, 5, 0], None)])
def test_images_without_objects_are_more_than_half(image, said):
    """Of six; an image with a crowd is none of them."""
    truth = side([[0, 0, 5, 5]] * 3, image=image, count=6, crowd=np.arange(3) == 1)
    facts = facts_of(truth)
    facts.schema = False
    assert told(coverage.check(facts)) == ([] if said is None else [("images_without_objects", 4, "4 images", said)])
    facts.schema = True
    assert told(coverage.check(facts)) == []


def few_sizes(times, others=0, at_edges=0, part=None, objects=()):
    """What is said of boxes of two sizes, equally many of each, beside others of sizes of their own."""
    count = 2 * times + others + at_edges
    rng = np.random.default_rng(0)
    given = np.c_[rng.integers(5, 20, (count, 2)) * 8.0, np.full((count, 2), 64.0)]
    given[:times, 2:] = [32, 48]
    given[2 * times : 2 * times + others, 2:] = 100 + 3.0 * np.arange(others)[:, None]
    given[2 * times + others :] = [0, 0, 64, 64]
    found = detmap.Detections.from_arrays(
        image_ids=np.arange(count) % 50 + 1, category_ids=np.ones(count), boxes=given, scores=np.ones(count)
    )
    boxes = np.array([[9.0, 9, *one] for one in objects] or [[9.0, 9, 11, 12]])
    truth = side(boxes, image=np.zeros(len(boxes), int), count=50, size=(900, 900))
    facts = facts_of(truth, side_of(found, truth.table), part=part)
    made = told(anchors.check(facts))
    assert facts.causes == ({("detections", "anchor_boxes")} if made else set())
    return [one[1:3] for one in made]


def test_boxes_of_a_few_sizes():
    """Nine of ten away from the edges, of which each size has 20."""
    assert few_sizes(100) == [(200, "2 sizes, with centres on a grid of 8 pixels")]
    assert few_sizes(20) == [(40, "2 sizes, with centres on a grid of 8 pixels")]
    assert few_sizes(19) == []
    assert few_sizes(90, others=20)[0][0] == 180
    assert few_sizes(90, others=21) == []
    assert few_sizes(100, at_edges=30)[0][0] == 230
    quarter = [(32, 48)] + [(11, 12 + n) for n in range(3)]
    assert few_sizes(100, objects=quarter) != []
    assert few_sizes(100, objects=quarter[:3]) == []


@pytest.mark.parametrize("part", [True, False])
def test_the_way_of_copying_that_most_images_bear_out_is_told(monkeypatch, part):
    """Its copies are left out of other checks; images with one object or more may be in a part."""
    image = [0, 0, 1, 2, 2, 3, 5]
    truth = side([[10 + n, 10, 9, 9] for n in range(7)], image=image, count=6)
    there = np.arange(6) < 3
    facts = facts_of(truth, agreement=SimpleNamespace())
    asked = []
    facts.concentrated = lambda flags, known: (
        asked.append((flags.tolist(), known.tolist())) or (Part(there, "images 1 to 3", there) if part else None)
    )
    ways = [_Copies(np.array([1]), np.array([0]), ", one"), _Copies(np.array([4, 2, 4]), np.array([0, 1, 3]), ", two"),
            _Copies(np.array([3]), np.array([0]), ", three"), _Copies(np.array([6]), np.array([0]), ", four")]  # fmt: skip
    gains = {", one": 2, ", two": 5, ", three": 5, ", four": 0}
    monkeypatch.setattr(objects_left_over, "FEWEST", 2)
    monkeypatch.setattr(objects_left_over, "_equal", lambda *given: np.array([[0, 1], [2, 3]]))
    monkeypatch.setattr(objects_left_over, "_ways", lambda *given: iter(ways))
    monkeypatch.setattr(objects_left_over, "_complete", lambda truth, way, good: None if way.says == ", one" else way)
    monkeypatch.setattr(objects_left_over, "_gain", lambda facts, way: (gains[way.says], f"found{way.says}"))
    made = told(objects_left_over.check(facts))
    words = "on 2 images, two; found, two" + "; images 1 to 3" * part
    assert made == [("objects_left_over", 2, words, (2, 4))]
    assert np.flatnonzero(truth.aside).tolist() == [2, 4]
    known = [True, True, True, True, False, True]
    assert asked == [([False, True, True, False, False, False], known)]
    gains[", two"] = gains[", three"] = 0
    assert told(objects_left_over.check(facts)) == []
    monkeypatch.setattr(objects_left_over, "_equal", lambda *given: np.array([[0, 1], [3, 3]]))
    gains[", two"] = 5
    assert told(objects_left_over.check(facts)) == []  # of one image
    facts.agreement = None
    assert told(objects_left_over.check(facts)) == []


# -------------------------------------------------------------------------------------- images of which a part is searched


def test_images_that_are_searched_for_a_part():
    """Those with any record, and flagged are those with one or with half of them; unknown images are left out."""
    boxes_of = np.array([[10.0, 10, 30, 30.5], [50, 50, 20, 20], [70, 70, 25, 25], [0, 0, 30, 30], [90, 90, 31, 37]])
    image = np.array([0, 1, 1, 2, 3])
    truth = side(np.tile([1.0, 2, 3, 4], (5, 1)), image=image, size=(400, 400), count=6)
    found = side(boxes_of, image=image, size=(400, 400), count=6)
    facts = facts_of(truth, found)
    boxes._of_part(facts, np.array([True, False, True, False, False]))
    assert facts.asked.pop() == [[True, True, False, False, False, False], [True, True, True, True, False, False]]
    evidence = SimpleNamespace(found=found, objects=np.arange(5), images=6)
    monkey = limits.squares
    limits.squares = lambda of, rows: of is found
    try:
        made = limits.of_squares(facts, evidence, np.arange(5))
    finally:
        limits.squares = monkey
    assert (made.count, made.records) == (2, (1, 2))  # one is at the edge of its image
    assert facts.asked.pop() == [[False, True, True, False, True, True], [True, True, False, True, False, False]]
    line = limits.at_lines(facts, found, [("left edge", 70.0), ("top edge", 90.0)])
    assert (line.count, line.records) == (2, (2, 4))
    assert line.says.partition(": ")[2] == "left edge = 70, top edge = 90"
    assert facts.asked.pop() == [[False, True, False, True, False, False], [True, True, True, True, False, False]]


@pytest.mark.parametrize(("part", "count"), [(True, 4), (False, 5)])
def test_boxes_on_a_grid_are_those_of_a_part(monkeypatch, part, count):
    """In a part, those at the edges of images are on it, too."""
    given = [[8.0, 16, 24, 32]] * 3 + [[0, 0, 8, 640]] + [[8, 8, 8, 8]] * 2 + [[9.5, 8, 8, 8]] * 3
    image = [0, 1, 1, 1, 2, 3, 2, 3, 4]
    found = side(given, image=image, size=(640, 640), count=6)
    truth = side([[1.5, 2, 3, 4]] * 9, image=image, size=(640, 640), count=6)
    there = np.arange(6) < 2
    facts = facts_of(truth, found, part=Part(there, "images 1 to 2", there) if part else None)
    evidence = SimpleNamespace(found=found, detections=np.arange(9), objects=np.arange(9), images=6)
    monkeypatch.setattr(limits, "_grid", lambda *given: 8)
    made = told(limits._coordinates(facts, evidence))
    words = "8 pixels; images 1 to 2" if part else "8 pixels"
    rows = (0, 1, 2, 3) if part else (0, 1, 2, 4, 5)
    assert made == [("coarse_boxes", count, words, rows)]
    assert facts.causes == {("ground_truth", "coarse_boxes")}
    held, on = [1, 3, 2, 2, 1, 0], [1, 2, 1, 1, 0, 0]
    assert facts.asked == [[[2 * a >= b for a, b in zip(on, held, strict=True)], [b > 0 for b in held]]]
    monkeypatch.setattr(limits, "_grid", lambda *given: None)
    monkeypatch.setattr(limits, "cut_lines", lambda *given: [])
    monkeypatch.setattr(limits, "of_squares", lambda *given: None)
    assert told(limits._coordinates(facts, evidence)) == []
    monkeypatch.setattr(limits, "cut_lines", lambda *given: [("left edge", 9.5)])
    lines = [one[:2] for one in told(limits._coordinates(facts, evidence))]
    assert lines == [("cut_boxes", 0 if part else 3)]
    facts.causes.add(("detections", "cut_boxes"))
    assert told(limits._coordinates(facts, evidence)) == []
