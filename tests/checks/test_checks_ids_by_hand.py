"""Ids of images and of categories, orders of images, and signatures of images, in numbers written out and by loops."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_boxes_by_hand import side
from test_checks_limits import side as bare_side

from detmap.checks import batches, categories, exchanges, image_ids, labels
from detmap.checks.batches import Order
from detmap.checks.counts import Counts
from detmap.checks.rates import Part

SEEDS = range(8)


# -------------------------------------------------------------------------------------------------------------------- images


@pytest.mark.parametrize(
    ("ids", "known", "said"),
    [
        ([1, 2, 3], [2, 3, 4], ("shifted", "each + 1 is one that is there")),
        ([1, 2, 3], [0, 1, 2], ("shifted", "each - 1 is one that is there")),
        ([1, 2], [2, 3, 4], None), ([1, 2, 3], [2, 3], None), ([1, 2, 3], [2, 3, 5], None),
        ([0, 1, 2], [10, 20, 30], ("positions", "counted from 0, in the order of the ids")),
        ([1, 2, 3], [10, 20, 30], ("positions", "counted from 1, in the order of the ids")),
        ([1, 2, 4], [10, 20, 30], None), ([0, 2, 3], [10, 20, 30], None), ([-1, 2, 1], [10, 20, 30], None),
        ([0, 1, 2, 3], [0, 3, 20, 30], None),
        ([0, 1, 2, 3], [3, 20, 30, 40], ("positions", "counted from 0, in the order of the ids")),
        (["0", "1", "2"], [1, 2, 3], None), ([0, 1, 2], ["1", "2", "3"], None),
    ],
)  # fmt: skip
def test_ids_that_are_explained_by_themselves(ids, known, said):
    made = image_ids.by_ids_alone(np.array(ids), np.array(known), "image_ids")
    assert made == (said and (f"image_ids_{said[0]}", said[1]))


@pytest.mark.parametrize(
    ("value", "number", "canonical", "name"),
    [("a/img_007.jpg", "7", "a/img_007.jpg", "img_007.jpg"), (7, "7", "7", "7"), (" 007 ", "7", "7", " 007 "),
     ("0_1", None, "0_1", "0_1"),
     ("x0_1", "1", "x0_1", "x0_1"), ("b\\c.png", None, "b\\c.png", "c.png"), ("000", "0", "0", "000"),
     ("1" * 29, "1" * 29, "1" * 29, "1" * 29), ("x" + "1" * 30, None, "x" + "1" * 30, "x" + "1" * 30),
     ("0" + "1" * 29, "1" * 29, "0" + "1" * 29, "0" + "1" * 29), ("cat", None, "cat", "cat"), ("é5", "5", "é5", "é5")],
)  # fmt: skip
def test_names_that_hold_a_number(value, number, canonical, name):
    assert image_ids._number(value.strip() if value == " 007 " else value) == number
    assert image_ids._canonical(value) == canonical
    assert image_ids.base_name(value) == name


@pytest.mark.parametrize(
    ("ids", "said"),
    [(["a1", "a2", "b1"], True), (["a1", "a2", "b1", "b2"], False), (["a1", "b2"], False), (["a1"], True), ([], False),
     (["x", "y", "a1"], False), ([1, 2, 3], True), (["a1", "a2", "x", "y"], False), (["a1", "a2", "a3", "x", "y"], True)],
)  # fmt: skip
def test_names_that_are_numbered_alike(ids, said):
    assert image_ids._numbered_alike(ids) is said


def other_ids(strange, known, names=None, count=99, borne=True):
    truth = SimpleNamespace(on=SimpleNamespace(images=SimpleNamespace(ids=np.array(known), names=names)))
    asked = []
    made = image_ids._other_ids(strange, count, truth, lambda hits: asked.append(hits) or borne)
    return made, asked


def test_ids_that_are_written_otherwise():
    """Of most of them, and of three or all; different ids are of different images."""
    text, numbers = ["1", "02", " 3"], [1, 2, 3]
    assert other_ids(text, numbers)[0] == ("image_ids_type", "'1' is 1", {"1", "02", " 3"})
    assert other_ids(["5"], [5])[0] == ("image_ids_type", "'5' is 5", {"5"})
    assert other_ids([5], ["05"])[0] == ("image_ids_type", "5 is '05'", {5})
    assert other_ids(["1", "x", "y"], numbers)[0] is None
    assert other_ids(["1", "2", "x"], numbers)[0] == ("image_ids_type", "'1' is 1", {"1", "2"})
    assert other_ids(["1", "2", "x", "y"], numbers)[0] is None
    names = ["a/p.jpg", "a/q.jpg", "", "r.jpg"]
    known = [7, 8, 9, 10]
    assert other_ids(["p.jpg", "q.jpg", "b/r.jpg"], known, names)[0] == (
        "image_ids_names",
        "'p.jpg' is 7",
        {"p.jpg", "q.jpg", "b/r.jpg"},
    )
    assert other_ids(["p", "q", "r"], known, names)[0] == ("image_ids_names", "'p' is 7", {"p", "q", "r"})
    assert other_ids(["p", "q"], known, names)[0] is None
    assert other_ids(["p", "q"], known, names, count=2)[0] == ("image_ids_names", "'p' is 7", {"p", "q"})
    assert other_ids(["p", "x/p", "q", "r"], known, names)[0] is None  # two of one image
    numbered = ["img_1.jpg", "img_2.jpg", "img_3.jpg"]
    for borne, said in ((True, ("image_ids_names", "'scan01' is 7", {"scan01", "scan02", "scan03"})), (False, None)):
        made, asked = other_ids(["scan01", "scan02", "scan03"], [7, 8, 9], numbered, borne=borne)
        assert made == said
        assert asked[0] == {"scan01": 7, "scan02": 8, "scan03": 9}
    assert other_ids(["a1", "b2", "c3"], [7, 8, 9], numbered) == (None, [])
    assert other_ids(["img1", "img2", "img3"], [1, 2, 3])[0] == (
        "image_ids_names",
        "'img1' is 1",
        {"img1", "img2", "img3"},
    )
    folder = ["d/one.jpg", "d/two.jpg", "d/three.jpg"]
    assert other_ids(["one", "two", "three"], folder)[0] == (
        "image_ids_names",
        "'one' is 'd/one.jpg'",
        {"one", "two", "three"},
    )
    assert other_ids(["x_1", "x_2", "x_3"], ["y1", "y2", "y3"])[0] == (
        "image_ids_names",
        "'x_1' is 'y1'",
        {"x_1", "x_2", "x_3"},
    )
    assert other_ids([], [1])[0] is other_ids(["1"], [])[0] is None


@pytest.mark.parametrize("seed", SEEDS)
def test_signatures_are_equal_for_equal_records(seed):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 12, 40)
    label, boxes = rng.integers(1, 3, 40), rng.integers(1, 3, (40, 4)).astype(float)
    for at, of in ((3, 4), (5, 6)):  # two pairs of images with equal records in another order
        rows = np.flatnonzero(image != of)
        more = np.flatnonzero(image[rows] == at)[::-1]
        image = np.append(image[rows], np.full(more.size, of))
        label, boxes = np.append(label[rows], label[rows][more]), np.r_[boxes[rows], boxes[rows][more]]
    truth = side(boxes, image=image, label=label, count=13)
    chosen = rng.random(image.size) < 0.9
    for rows in (None, chosen):
        for fewest in (1, 2, 3):
            held = [
                sorted((*boxes[row], label[row]) for row in np.flatnonzero(image == at) if rows is None or rows[row])
                for at in range(13)
            ]
            marks = image_ids.signatures(truth, fewest, rows=rows).tolist()
            for one in range(13):
                assert (marks[one] == 0) is (len(held[one]) < fewest)
                for other in range(one):
                    if marks[one] and marks[other]:
                        assert (marks[one] == marks[other]) is (held[one] == held[other])
    more = np.arange(image.size).astype(np.uint64)
    every = image_ids.signatures(truth, 1, more)
    assert np.unique(every[every > 0]).size == np.count_nonzero(every)
    columns = np.zeros((1, image.size))
    by_label = image_ids.signatures(truth, 1, columns=columns).tolist()
    for one in range(13):
        for other in range(one):
            equal = sorted(label[image == one]) == sorted(label[image == other])
            assert (by_label[one] == by_label[other]) is equal


def same(*objects, found=None):
    """Which of some images have the objects of an earlier one, each given by the left edges of its boxes."""
    image = np.repeat(np.arange(len(objects)), [len(one) for one in objects])
    boxes = np.array([[left, 5, 7, 9] for one in objects for left in one], float)
    truth = side(boxes, image=image, count=len(objects), size=(100, 60))
    facts = SimpleNamespace(truth=truth, found=None)
    if found is not None:
        image = np.repeat(np.arange(len(found)), [len(one) for one in found])
        boxes = np.array([[left, 5, 7, 9] for one in found for left in one], float)
        facts.found = side(boxes, image=image, count=len(objects))
        facts.detections = SimpleNamespace(scores=np.ones(len(boxes)))
    return np.flatnonzero(image_ids._same_records(facts)).tolist()


def test_images_with_the_objects_of_an_earlier_one():
    """Three equal objects, two of exactly two images that are apart, or one if all detections are equal as well."""
    assert same([1, 2, 3], [4], [3, 2, 1]) == [2]
    assert same([1, 2, 3], [3, 2, 1], [1, 2, 3]) == [1, 2]
    assert same([1, 2], [4], [2, 1]) == [2]
    assert same([1, 2], [2, 1], [4]) == []
    assert same([1, 2], [4], [2, 1], [5], [1, 2]) == []
    assert same([1], [4], [1]) == []
    assert same([1], [4], [1], found=[[8], [9], [8]]) == [2]
    assert same([1], [4], [1], found=[[8], [9], [7]]) == []
    assert same([1], [4], [1], found=[[], [9], []]) == []
    assert same([1], [4], [1], found=[[8], [8], [8]]) == [2]
    assert same([1, 2, 3, 4], [1, 2, 3]) == []


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [([10, 50], [83, 43], [1]), ([10, 50], [43, 83], [1]), ([10], [83], []), ([10, 50], [83, 43.004], [1]),
     ([10, 50], [83, 43.02], []), ([10, 83], [40, 60], [])],
)  # fmt: skip
def test_images_with_the_mirrored_objects_of_an_earlier_one(one, other, said):
    """Boxes of 7 pixels on images of 100: 10 becomes 83; an image that is its own mirror is no other's."""
    boxes = np.array([[left, 5, 7, 9] for left in (*one, *other)], float)
    image = np.repeat([0, 1], [len(one), len(other)])
    truth = side(boxes, image=image, size=(100, 60))
    assert np.flatnonzero(image_ids._mirrored(truth)).tolist() == said
    truth.inclusive = True
    assert image_ids._mirrored(truth).any() is np.False_ or not said
    unknown = side(boxes, image=image)
    unknown.sizes = np.full((len(boxes), 2), np.inf)
    assert not image_ids._mirrored(unknown).any()


@pytest.mark.parametrize(
    ("name", "said"), [("./a//b.jpg", "a/b.jpg"), ("a\\b.jpg", "a/b.jpg"), ("/a/./b", "a/b"), ("..", "..")]
)
def test_names_of_files_without_what_says_nothing(name, said):
    assert image_ids.clean_name(name) == said


# ---------------------------------------------------------------------------------------------------------------- categories


def facts_of_counts(own, of, ids, truth_ids, names=None, total=None):
    """What is known of detections of some categories on objects of others; columns are given as rows of counts."""
    table = np.array(own)
    rows, columns = np.repeat(np.indices(table.shape).reshape(2, -1), table.ravel(), axis=1)
    counts = Counts(rows, columns, table.shape)
    agreement = SimpleNamespace(confusion=counts, distinct=counts, by_chance=False)
    truth = SimpleNamespace(
        categories=SimpleNamespace(ids=np.array(truth_ids), names=names or [f"class {one}" for one in truth_ids])
    )
    detections = SimpleNamespace(categories=SimpleNamespace(ids=np.array(ids)))
    return SimpleNamespace(agreement=agreement, detections=detections, causes=set()), truth


def located(ids, truth_ids):
    return np.array([truth_ids.index(one) if one in truth_ids else -1 for one in ids])


RENAMED = "7 is 10 (class 10), 8 is 20 (class 20), 9 is 30 (class 30)"
PERMUTED = "10 (class 10) is 30 (class 30), 30 (class 30) is 10 (class 10)"


@pytest.mark.parametrize(
    ("ids", "truth_ids", "to", "right", "said"),
    [
        ([1, 2, 3], [2, 3, 4], [0, 1, 2], 0, ("category_ids_shifted", "each + 1 is the one that is meant")),
        ([2, 3, 4], [1, 2, 3], [0, 1, 2], 0, ("category_ids_shifted", "each - 1 is the one that is meant")),
        ([0, 1, 2], [10, 20, 30], [0, 1, 2], 0, ("category_ids_positions", "counted from 0, in the order of the ids")),
        ([1, 2, 3], [10, 20, 30], [0, 1, 2], 0, ("category_ids_positions", "counted from 1, in the order of the ids")),
        ([7, 8, 9], [10, 20, 30], [0, 1, 2], 0, ("classes_renamed", RENAMED)),
        ([10, 20, 30], [10, 20, 30], [2, 1, 0], 0, ("classes_permuted", PERMUTED)),
        (["a", "b"], ["c", "d"], [1, 0], 0, ("classes_renamed", "a is d (class d), b is c (class c)")),
    ],
)  # fmt: skip
def test_ways_in_which_categories_are_moved(ids, truth_ids, to, right, said):
    counts = np.zeros((len(ids), len(truth_ids)), int)
    counts[np.arange(len(ids)), to] = 20
    own = located(ids, truth_ids)
    moved = {row: column for row, column in enumerate(to) if own[row] != column}
    facts, truth = facts_of_counts(counts, None, ids, truth_ids)
    assert labels._way(facts, truth, moved, own) == said
    assert right == 0


@pytest.mark.parametrize(("weights", "code"), [((40, 10), "shifted"), ((39, 10), "renamed")])
def test_either_side_of_categories_that_are_off_by_one(weights, code):
    """Four fifths of those that are moved, which are more than half of all."""
    facts, truth = facts_of_counts([[0, weights[0], 0], [weights[1], 0, 0]], None, [4, 9], [2, 5, 7])
    moved, own = {0: 1, 1: 0}, np.array([-1, -1])
    assert labels._way(facts, truth, moved, own)[0] in (f"category_ids_{code}", f"classes_{code}")
    more, truth = facts_of_counts([[0, 40, 0], [10, 0, 0], [0, 0, 50]], None, [4, 9, 7], [2, 5, 7])
    own = np.array([-1, -1, 2])
    assert labels._way(more, truth, moved, own)[0] == "classes_renamed"
    less, truth = facts_of_counts([[0, 40, 0], [10, 0, 0], [0, 0, 49]], None, [4, 9, 7], [2, 5, 7])
    assert labels._way(less, truth, moved, own)[0] == "category_ids_shifted"


@pytest.mark.parametrize(
    ("weights", "rest", "code"),
    [((40, 10), 29, "category_ids_positions"), ((39, 10), 0, "classes_renamed"), ((40, 10), 30, "classes_renamed")],
)
def test_either_side_of_categories_that_are_positions(weights, rest, code):
    """Four fifths of those that are moved, if positions are right for more than half of all."""
    ids, truth_ids = [0, 3, 11], [11, 3, 20]
    counts = np.zeros((3, 3), int)
    counts[0, 0], counts[1, 2], counts[2, 1] = weights[0], weights[1], rest
    facts, truth = facts_of_counts(counts, None, ids, truth_ids)
    made = labels._way(facts, truth, {0: 0, 1: 2}, np.array([-1, 1, 0]))[0]
    assert made == code


def moves(table, own=(0, 1, 2)):
    facts, _ = facts_of_counts(table, None, [1, 2, 3], [1, 2, 3])
    return labels._moved(facts, np.array(own))


def test_categories_that_are_moved():
    """Most detections of a category are on objects of another one, which are most of that one's, five at least."""
    assert moves([[0, 20, 0], [20, 0, 0], [0, 0, 20]]) == {0: 1, 1: 0}
    assert moves([[0, 4, 0], [20, 0, 0], [0, 0, 20]]) == {1: 0}
    assert moves([[6, 6, 0], [20, 0, 0], [0, 0, 20]]) == {1: 0}
    assert moves([[9, 20, 0], [20, 0, 0], [0, 0, 20]]) == {0: 1, 1: 0}
    assert moves([[10, 20, 0], [30, 0, 0], [0, 0, 20]]) == {1: 0}
    assert moves([[0, 60, 0], [0, 30, 0], [0, 0, 60]]) == {0: 1}
    assert moves([[0, 60, 0], [0, 31, 0], [0, 0, 60]]) == {}
    assert moves([[0, 20, 20], [20, 0, 0], [0, 0, 0]]) == {0: 1, 1: 0}
    assert moves([[0, 20, 21], [20, 0, 0], [0, 0, 0]]) == {0: 2, 1: 0}
    assert moves([[0, 0, 0]] * 3) == {}
    assert labels._moved(SimpleNamespace(agreement=None), np.arange(3)) == {}


@pytest.mark.parametrize(
    ("rows", "own", "settled"),
    [([[5, 0]], [0], [True]), ([[4, 0]], [0], [False]), ([[5, 5]], [0], [True]), ([[5, 6]], [0], [False]),
     ([[0, 9]], [-1], [False]),
     ([[0, 9], [9, 0]], [1, 1], [True, False])],
)  # fmt: skip
def test_categories_whose_ids_are_right(rows, own, settled):
    facts, _ = facts_of_counts(rows, None, [1] * len(rows), [1, 2])
    assert labels._settled(facts.agreement, np.array(own)).tolist() == settled


@pytest.mark.parametrize(
    ("right", "wrong", "said"), [(14, 16, 16), (15, 15, None), (14, 15, None), (0, 30, 30), (40, 41, 41)]
)
def test_labels_that_disagree_with_most_objects(right, wrong, said):
    """Of 30 at least; detections of an unknown category do not count."""
    table = [[right, wrong], [0, 0], [90, 0]]
    facts, _ = facts_of_counts(table, None, [1, 2, 9], [1, 2])
    made = list(labels._disagreeing(facts, np.array([0, 1, -1])))
    assert [one.count for one in made] == ([] if said is None else [said])
    if said:
        words = f"of {right + wrong} that were looked at, {right} have the category of the object that they lie on"
        assert made[0].says.endswith(words)
        assert made[0].says.startswith("The categories of at least") or "at least" in made[0].says
        assert facts.causes == {("detections", "classes_disagree")}
    facts.agreement.by_chance = True
    assert list(labels._disagreeing(facts, np.array([0, 1, -1]))) == []
    one, _ = facts_of_counts([[0], [30]], None, [1, 2], [1])
    assert list(labels._disagreeing(one, np.array([0, -1]))) == []


@pytest.mark.parametrize(
    ("ids", "known", "names", "said"),
    [
        (["1", "2"], [1, 2], ["cat", "dog"], ("category_ids_type", "'1' is 1, '2' is 2", ["1", "2"])),
        ([1, 2], ["1", "2"], ["cat", "dog"], ("category_ids_type", "1 is '1', 2 is '2'", [1, 2])),
        (["cat", "dog"], [1, 2], ["cat", "dog"], ("category_ids_names", "'cat' is 1, 'dog' is 2", ["cat", "dog"])),
        (["cat", "dog"], ["a", "b"], ["cat", "dog"], ("category_ids_names", "'cat' is 'a', 'dog' is 'b'", ["cat", "dog"])),
        (["Cat", "x", "y"], [1, 2], ["cat", "dog"], ("classes_renamed", "'Cat' is 1", ["Cat"])),
        (["x", "y"], [1, 2], ["cat", "dog"], None),
        ([7, 8], [1, 2], ["7", "8"], None),
        (["1", "x"], [1, 2], ["cat", "dog"], None),
        (["1", "2", "x"], [1, 2], ["cat", "dog"], ("category_ids_type", "'1' is 1, '2' is 2", ["1", "2"])),
        (["1", "2", "3", "4"], [1, 2, 3, 4], "abcd",
         ("category_ids_type", "'1' is 1, '2' is 2, '3' is 3", ["1", "2", "3", "4"])),
        ([], [1, 2], ["cat", "dog"], None), (["1"], [], [], None),
    ],
)  # fmt: skip
def test_categories_that_are_written_otherwise(ids, known, names, said):
    truth = SimpleNamespace(categories=SimpleNamespace(ids=np.array(known), names=list(names)))
    of = SimpleNamespace(raw=None, table=SimpleNamespace(categories=SimpleNamespace(ids=np.array(ids))))
    assert labels._written_otherwise(of, truth, np.ones(len(ids), bool)) == said
    assert labels._written_otherwise(of, truth, np.zeros(len(ids), bool)) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [("Traffic Light", "trafficlight"), ("traffic_light", "trafficlight"), ("traffic-light", "trafficlight"),
     ("class 1 2", "class1 2"),
     ("C++", "c++"), ("a.b", "ab"), ("v-2", "v-2"), ("t/v", "tv"), (" x ", "x"), ("1 a", "1a")],
)  # fmt: skip
def test_names_without_what_parts_their_words(name, said):
    assert labels.plain(name) == said


def test_categories_that_are_there_twice():
    names = ["cat", "Cat", "dog", "traffic light", "traffic_light", "-", "_", "cow"]
    truth = SimpleNamespace(categories=SimpleNamespace(ids=np.arange(8) + 1, names=names))
    for listed, more in ((None, []), ([1, 2, 2, 3, 3, 7, 7, 7], [3, 7])):
        inspected = None if listed is None else SimpleNamespace(categories=listed)
        facts = SimpleNamespace(truth=SimpleNamespace(inspected=inspected))
        [made] = labels._repeated(facts, truth)
        assert (made.code, made.count, made.records) == ("repeated_categories", 2 + len(more), (2, 5, *more))
        assert made.says.endswith(": Cat, traffic_light" + ", dog, _" * bool(more))
    truth.categories.names = ["a", "b", "c", "d", "e", "f", "g", "h"]
    assert list(labels._repeated(SimpleNamespace(truth=SimpleNamespace(inspected=None)), truth)) == []


def test_categories_without_detections_are_named():
    """At most five names and ten ids."""
    names = [f"n{at}" for at in range(12)]
    truth = SimpleNamespace(categories=SimpleNamespace(ids=np.arange(12) * 2, names=names))
    which = np.arange(12) > 0
    made = labels._of_categories("categories_without_objects", truth, which)
    assert (made.count, made.records) == (11, tuple(range(2, 22, 2)))
    assert made.says.endswith(": n1, n2, n3, n4, n5 and 6 more")


# --------------------------------------------------------------------------------------------------- groups of categories


@pytest.mark.parametrize(
    ("lost", "part", "rest_lost", "rest", "said"),
    [(7, 10, 10, 10, True), (6, 10, 10, 10, False), (0, 9, 10, 10, True), (0, 10, 10, 9, True), (0, 10, 0, 10, True),
     (14, 20, 20, 20, True), (13, 20, 20, 20, False)],
)  # fmt: skip
def test_records_that_are_lost_about_as_often_as_others(lost, part, rest_lost, rest, said):
    """Seven tenths; groups of nine are too small."""
    flags = np.concatenate([np.arange(part) < lost, np.arange(rest) < rest_lost])
    there = np.arange(part + rest) < part
    rest_lost = min(rest_lost, rest)
    assert categories._as_often(flags, there) is said


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rate_of_all_other_categories(seed):
    rng = np.random.default_rng(seed)
    total = rng.integers(5, 50, 6)
    count = rng.integers(0, 5, 6)
    made = categories._others(count, total)
    for at in range(6):
        others = [one for one in range(6) if one != at]
        assert made[at] == (sum(count[others]) + 1) / (sum(total[others]) + 2)


@pytest.mark.parametrize(("best", "second", "said"), [(5, 10, True), (4, 10, False), (0, 0, True), (10, 10, True)])
def test_the_best_eighth_lies_on_nothing_as_often_as_the_second(best, second, said):
    """Half as often."""
    alone = np.concatenate([np.arange(20) < best, np.arange(20) < second, [True] * 5])
    rank = np.repeat([0.1, 0.125, 0.2], [20, 20, 5])
    evidence = SimpleNamespace(sure_rank=rank, alone=alone)
    assert categories._steady(evidence, np.arange(45) < 40) is said
    assert categories._steady(evidence, np.arange(45) < 20) is True


# ------------------------------------------------------------------------------------------------------- orders of images


@pytest.mark.parametrize("batch", [2, 3, 4, 7])
@pytest.mark.parametrize("first", [0, 1, 3])
def test_batches_in_reverse_order(batch, first):
    """Each batch is mirrored in itself; ahead of the first one, places go on in the same way."""
    order = Order(batch, (2 * first + batch - 1) % (2 * batch))
    places = np.arange(first, first + 5 * batch)
    mirrored = [first + at * batch + n for at in range(5) for n in reversed(range(batch))]
    assert order.mirrored(places).tolist() == mirrored
    numbers = order.batch_of(places)
    assert (numbers - numbers[0]).tolist() == [at // batch for at in range(5 * batch)]
    assert order.mirrored(order.mirrored(np.arange(-9, 9))).tolist() == list(range(-9, 9))
    whole = Order(0, 11)
    assert whole.mirrored(places).tolist() == [11 - place for place in places.tolist()]
    assert whole.batch_of(places).tolist() == [0] * places.size


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_reverse_order_of_each_batch(seed):
    rng = np.random.default_rng(seed)
    place, other = rng.integers(0, 30, (2, 300))
    made = {order.batch: (held, chance, order) for held, chance, order in batches._orders(np.arange(300), place, other)}
    for batch in range(2, batches.MOST + 1):
        sums = [
            (a + b) % (2 * batch) for a, b in zip(place.tolist(), other.tolist(), strict=True) if abs(a - b) < batch
        ]
        held = [sums.count(total) for total in range(2 * batch)]
        total = held.index(max(held))
        if (total - batch) % 2:
            assert made.pop(batch) == (max(held), len(sums) / (2 * batch), Order(batch, total))
        else:
            assert batch not in made
    sums = (place + other).tolist()
    best = max(range(60), key=lambda one: (sums.count(one), -one))
    assert made == {0: (sums.count(best), 300 / len({*sums}), Order(0, best))}
    assert list(batches._orders(place[:0], place[:0], place[:0])) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_of_detections_and_images_on_which_they_would_lie(seed):
    rng = np.random.default_rng(seed)
    image, of = rng.integers(0, 9, 20), rng.integers(0, 9, 25)
    label, of_label = rng.integers(0, 2, 20), rng.integers(0, 2, 25)
    boxes, objects = (np.c_[rng.integers(0, 5, (count, 2)), rng.integers(5, 9, (count, 2))] * 1.0 for count in (20, 25))
    place = rng.permutation(9)
    evidence = SimpleNamespace(
        found=SimpleNamespace(image=image, boxes=boxes), label=label, images=9, object_image=of, object_label=of_label,
        object_box=objects,
    )  # fmt: skip
    rows = rng.permutation(20)[:15]
    expected = set()
    for at, row in enumerate(rows):
        for other in range(25):
            x, y, w, h = boxes[row]
            u, v, s, t = objects[other]
            both = max(min(x + w, u + s) - max(x, u), 0) * max(min(y + h, v + t) - max(y, v), 0)
            if label[row] == of_label[other] and 2 * both >= w * h + s * t - both:
                expected.add((at, int(place[image[row]]), int(place[of[other]])))
    made = batches._lying(evidence, rows, place)
    assert list(zip(*(one.tolist() for one in made), strict=True)) == sorted(expected)
    steps = exchanges.distances(image[rows], label[rows], boxes[rows], of, of_label, objects, 0.5)
    assert steps[0].tolist() == image[rows].tolist()
    for at, row in enumerate(rows):
        by_image = {(at, int(place[other])) for other in steps[1][at] + image[row]}
        assert by_image == {(one, other) for one, _, other in expected if one == at}


@pytest.mark.parametrize(("explained", "said"), [(7, True), (6, False)])
def test_explained_detections_are_of_most_batches(explained, said):
    """Of ten batches of ten detections, ten of a hundred are expected in 6.5 of ten: seven tenths are 4.6 of them."""
    every = np.repeat(np.arange(10), 10)
    own = np.repeat(np.arange(explained - 2), 2)
    own = np.append(own, np.zeros(10 - own.size if own.size < 10 else 0, int))
    expected = 10 * (1 - (1 - own.size / 100) ** 10)
    assert batches._even(every, own) is (np.unique(own).size >= 0.7 * expected)
    assert (explained - 2 >= 0.7 * expected) is said


@pytest.mark.parametrize(
    ("step", "fit", "others", "said"),
    [(9, 40, 0, True), (8, 40, 0, False), (-9, 40, 0, True), (9, 19, 0, False), (9, 20, 0, True), (9, 20, 381, False),
     (9, 20, 380, True)],
)  # fmt: skip
def test_ranges_whose_detections_fit_objects_at_one_distance(step, fit, others, said):
    """20 of them, and one of twenty of all."""
    image = np.append(np.arange(fit) + 100, np.arange(others) + 400)
    steps = [np.array([step])] * fit + [np.array([], int)] * others
    expected = [(100, 99 + fit, step)] if said else []
    assert list(exchanges.moved(image, steps, 2000)) == expected
    order = np.random.default_rng(0).permutation(image.size)
    assert list(exchanges.moved(image[order], [steps[at] for at in order], 2000)) == expected
    assert list(exchanges.moved(image[:0], [], 2000)) == []


def test_ids_as_text_are_under_those_as_numbers():
    """Of 8 to 12 the order as text is 10, 11, 12, 8, 9."""
    ids = np.arange(1, 30)
    text = sorted(range(8, 13), key=str)
    pairs = np.array([(one - 1, other - 1) for one, other in zip(range(8, 13), text, strict=True)])
    assert exchanges._as_text(ids, pairs, np.arange(7, 12)) == ((8, 12), 5, True)
    assert exchanges._as_text(ids, pairs[:, ::-1], np.arange(7, 12)) == ((8, 12), 5, False)
    assert exchanges._as_text(ids, pairs[1:4], np.arange(9, 11)) == ((8, 12), 3, True)
    apart = exchanges._as_text(ids, np.array([(0, 28)]), np.arange(0, 29))
    assert apart[1] in (0, 1)


def test_detections_within_a_part_fit_other_images():
    """Two of an image, most of which fit one other image, and no two images as often."""
    evidence = SimpleNamespace(truth=bare_side(count=400))
    there = (np.arange(400) >= 100) & (np.arange(400) < 150)
    image = np.repeat(np.arange(100, 150), 3)
    to = np.repeat(np.where(np.arange(50) % 2, -1, 1), 3)
    for steps, said in (
        ([np.array([one]) for one in to], True),
        ([np.array([one]) if at % 3 < 2 else np.array([], int) for at, one in enumerate(to)], True),
        ([np.array([one]) if at % 3 < 1 else np.array([], int) for at, one in enumerate(to)], False),
        ([np.array([one, 0]) for one in to], False), ([np.array([0])] * 150, False),
    ):  # fmt: skip
        exchanges_fits = exchanges.fits
        exchanges.fits = lambda *given, steps=steps: (image, steps)
        try:
            says = exchanges.says_within(evidence, Part(there, "", there))
        finally:
            exchanges.fits = exchanges_fits
        words = "; on 50 of 50 images with two or more confident detections, these fit another image of the part better than"
        assert says.startswith(words) is said
        assert bool(says) is said


@pytest.mark.parametrize(("scale", "said"), [(1, []), (2, [0, 1]), (10, [0, 1])])
def test_random_labels_do_not_explain_many_that_are_exchanged(scale, said):
    """The bound of each row, with the ways to choose two of three rows and a column for each: once in ten thousand."""
    table = np.array([[0, 4, 0], [4, 0, 0], [0, 0, 4]]) * scale
    rows, columns = np.repeat(np.indices(table.shape).reshape(2, -1), table.ravel(), axis=1)
    matrix = Counts(rows, columns, table.shape)
    bound = 2 * (4 * scale * np.log(1 / 3) + np.log(3)) + np.log(3)
    assert bool(bound < np.log(1e-4)) is bool(said)
    assert labels._beyond_chance(matrix, np.array([True, True, False]), np.array([1, 0, 2])) == said


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_of_random_labels_by_loops(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (4, 4)) + np.diag(rng.integers(0, 25, 4))[:, [1, 0, 3, 2]]
    rows, columns = np.repeat(np.indices(table.shape).reshape(2, -1), table.ravel(), axis=1)
    moved, best = rng.random(4) < 0.7, table.argmax(axis=1)
    logs, chosen = 0.0, []
    for row in np.flatnonzero(moved):
        held, part = table[row].sum(), table[row, best[row]] / table[row].sum()
        chance = table[:, best[row]].sum() / table.sum()
        log = np.log(4)
        if part > chance:
            rest = (1 - part) * np.log((1 - part) / (1 - chance)) if part < 1 else 0
            log -= held * (part * np.log(part / chance) + rest)
        if log < 0:
            logs, chosen = logs + log, [*chosen, int(row)]
    ways = np.log([1, 4, 6, 4, 1][len(chosen)])
    expected = chosen if logs + ways < np.log(1e-4) else []
    made = labels._beyond_chance(Counts(rows, columns, table.shape), moved, best)
    assert made == expected
