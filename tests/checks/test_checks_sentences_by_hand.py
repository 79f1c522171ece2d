"""What findings about categories and about copies say as a whole, and checks that have nothing to compare."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_boxes_by_hand import side
from test_checks_limits import FACTS, FOUR, of_confident, of_objects

from detmap.checks import across, categories, cut_sizes, data_statistics, findings, image_ids, limits, objects_left_over
from detmap.checks.context import Facts
from detmap.checks.rates import Division, Order, Part


@pytest.mark.parametrize("module", [across, categories, cut_sizes, limits])
@pytest.mark.parametrize(("objects", "detections"), [(0, 3), (3, 0), (0, 0), (3, 3)])
def test_nothing_is_compared_without_objects_or_detections(module, objects, detections):
    evidence = SimpleNamespace(objects=np.arange(objects), detections=np.arange(detections))
    facts = SimpleNamespace(schema=True, truth=None, evidence=evidence)
    if objects and detections:
        with pytest.raises(AttributeError):  # the boxes are asked for
            list(module.check(facts))
        return
    assert list(module.check(facts)) == []
    facts.evidence = None
    assert list(module.check(facts)) == []


def whole(made):
    return [(one.code, one.count, one.unit, one.named, one.says.partition(": ")[2], one.records) for one in made]


def test_what_is_said_of_categories_that_are_lost_or_missed():
    """80 of 200 objects of the second category, and 4 of 600 of the others."""
    at = np.r_[200:280, 0:2, 790:792]
    held, hit = np.ones(800, int), np.ones(800, bool)
    held[at] = 0
    words = "category dog, 40% of its objects; of the others 0.67%"
    assert whole(categories._lost(FACTS, of_objects(FOUR, held=held))) == [
        ("rarely_detected", 80, "object", "image", words, tuple(range(200, 210)))
    ]
    unknown = of_objects(FOUR, held=held, found=SimpleNamespace(image=np.r_[-1, np.arange(240, 800)]))
    assert whole(categories._lost(FACTS, unknown)) == []  # images without detections tell nothing
    reported = Facts(None, parts=[(np.arange(800) < 240, 1)])
    assert [one.count for one in categories._lost(reported, of_objects(FOUR, held=held))] == []
    some = of_objects(FOUR, held=held, looked_at=np.arange(800) > 0)
    assert "at least 80" in next(iter(categories._lost(FACTS, some))).says
    assert list(categories._lost(FACTS, of_objects(0 * FOUR, held=held, classes=1))) == []
    missed = np.r_[200:350, 0:3]
    hit[missed] = False
    words = "category dog, 75% of its objects on images with such detections; of the others 0.50%"
    assert whole(categories._missed(FACTS, of_objects(FOUR, hit=hit))) == [
        ("rarely_found", 150, "object", "image", words, tuple(range(200, 210)))
    ]
    seen = np.arange(800) != 200
    assert [one.count for one in categories._missed(FACTS, of_objects(FOUR, hit=hit, seen=seen))] == [149]
    held = np.ones(800, int)
    held[200:205] = 0
    assert [one.count for one in categories._missed(FACTS, of_objects(FOUR, hit=hit, held=held))] == [145]
    assert list(categories._missed(FACTS, of_objects(0 * FOUR, hit=hit, classes=1))) == []


def test_what_is_said_of_categories_without_labels():
    """30 of the best 250 detections of the third category, and 2 of 750 of the others."""
    label = np.repeat(np.arange(4), 1000)
    alone = np.isin(np.arange(4000), [*range(2000, 2030), 0, 1001])
    words = "category cow, 12% of the best quarter of its confident detections; of the other categories 0.27%"
    made = of_confident(label, alone)
    assert whole(categories._unlabelled(FACTS, made)) == [
        ("rarely_labelled", 30, "detection", "image", words, tuple(range(2000, 2010)))
    ]
    made.sure_looked_at[2000:2005] = False
    [one] = categories._unlabelled(FACTS, made)
    assert one.count == 25
    assert "at least 25" in one.says
    tied = of_confident(label, alone, scores=np.zeros(4000))
    assert list(categories._unlabelled(FACTS, tied)) == []  # the order of equal scores says nothing


def test_what_is_said_of_categories_without_suppression():
    label = np.repeat(np.arange(4), 1000)
    flags = np.isin(np.arange(4000), [*range(1000, 1100), 5, 7])
    made = of_confident(label, flags, twins=flags, twins_of_size=flags)
    words = "category dog, 10% of its confident detections; of the other categories 0.07%"
    assert whole(categories._unsuppressed(FACTS, made)) == [
        ("unsuppressed", 100, "detection", "image", words, tuple(range(1000, 1010)))
    ]
    made.twins_of_size = flags & (np.arange(4000) < 1079)
    assert whole(categories._unsuppressed(FACTS, made)) == []  # of the size of objects too few overlap
    every = np.arange(4000) % 4 == 0
    made = of_confident(label, every, twins=every, twins_of_size=every)
    assert whole(categories._unsuppressed(FACTS, made)) == [
        ("unsuppressed", 1000, "detection", "image", "25% of the confident detections", tuple(range(0, 40, 4)))
    ]
    made.twins_of_size = every & (np.arange(4000) < 3190)
    assert whole(categories._unsuppressed(FACTS, made)) == []
    made.twins_of_size = every & (np.arange(4000) < 3200)
    assert [one.count for one in categories._unsuppressed(FACTS, made)] == [1000]
    nine = np.arange(4000) < 9
    assert list(categories._unsuppressed(FACTS, of_confident(label, nine, twins=nine, twins_of_size=nine))) == []


def taken(wrong, each=1000, part=None, split=()):
    """What is said of objects of four categories, some of which are taken for the next one, at high scores."""
    label = np.repeat(np.arange(4), each)
    place = np.tile(np.arange(each), 4)
    other = np.where(place < np.array(wrong)[label], (label + 1) % 4, label)
    made = of_objects(
        label, taken_for=(other, np.arange(label.size)), sure_rank=place / each, sure=np.arange(label.size)
    )
    facts = Facts(None, split=set(split))
    facts.division = Division(label, [], [])
    if part is not None:
        facts.gathered = lambda *given: part
        facts.says_part = lambda one: one.says
    return whole(categories._mixed(facts, made))


def test_what_is_said_of_labels_that_are_wrong_or_mixed():
    words = "of 2,000 objects on which a detection of the better half of its category lies"
    [every] = taken([40] * 4)
    assert every == ("wrong_labels", 160, "object", "image", words, tuple(range(10)))
    words = "of 500 objects of category cow on which a detection of the better half of its category lies, "
    words += "60 are taken for emu"
    assert taken([0, 0, 60, 0]) == [("labels_mixed", 60, "object", "image", words, tuple(range(2000, 2010)))]
    assert [one[1] for one in taken([60, 0, 60, 0])] == [60, 60]
    assert taken([0, 0, 60, 0], split=[2]) == []
    there = np.arange(4000) < 2020
    made = taken([0, 0, 60, 0], part=Part(there, "images 1 to 20", there))
    words = f"{words}; 20 of them on images 1 to 20"
    assert made == [("labels_mixed", 20, "object", "image", words, tuple(range(2000, 2010)))]


# ---------------------------------------------------------------------------------------------------------- copies and names


def ways(steps, apart=()):
    """What may be copied of objects that are equal on images some places apart, and of pairs of other images."""
    boxes, image = [], []
    for at, step in enumerate(steps):
        for of in (3 * at, 3 * at + step):
            boxes.append([float(at), 1, 5, 6])
            image.append(of)
    for at, (one, other, count) in enumerate(apart):
        for n in range(count):
            boxes += [[200.0 + 9 * at, 1 + n, 5, 6]] * 2
            image += [one, other]
    truth = side(boxes, image=image, count=200, size=(900, 900))
    good = np.ones(len(boxes), bool)
    orders = [Order("ids", np.arange(200)), Order("names", np.random.default_rng(0).permutation(200))]
    facts = SimpleNamespace(truth=truth, division=SimpleNamespace(orders=orders))
    pairs = objects_left_over._equal(truth, np.arange(len(boxes)))
    return [
        (sorted(zip(one.copies.tolist(), one.originals.tolist(), strict=True)), one.says)
        for one in objects_left_over._ways(facts, pairs, good)
    ]


def test_objects_at_the_most_frequent_distance_may_be_copied():
    """If half of the pairs are at it, else those of images with several equal ones; either image may have the copies."""
    one = ways([1, 1, 1, 2])
    rows = [(1, 0), (3, 2), (5, 4)]
    assert one == [
        (rows, ", of the image before, in the order of ids"),
        ([(b, a) for a, b in rows], ", of the image after, in the order of ids"),
    ]
    far = ways([2, 2, -2, 1])
    assert [says for _, says in far] == [
        ", of the image 2 before, in the order of ids", ", of the image 2 after, in the order of ids"
    ]  # fmt: skip
    half = ways([1, 1, 2, 7])
    assert [says for _, says in half] == [
        ", of the image before, in the order of ids", ", of the image after, in the order of ids"
    ]  # fmt: skip
    several = ways([1, 2, 7, 11, 13], apart=[(50, 90, 2), (95, 60, 3), (100, 130, 1)])
    first = [(11, 10), (13, 12), (14, 15), (16, 17), (18, 19)]
    assert several == [(sorted(first), ""), (sorted((b, a) for a, b in first), "")]


@pytest.mark.parametrize(
    ("values", "most", "said"),
    [([1, 2, 3], 5, "1, 2, 3"), (["a", "b", "c"], 2, "a, b and 1 more"), ([], 5, ""),
     (list(range(1205)), 3, "0, 1, 2 and 1,202 more"), (["x" * 50], 5, None)],
)  # fmt: skip
def test_names_are_shown_up_to_a_number(values, most, said):
    shown = findings.names(values, most)
    assert shown == said if said is not None else len(shown) <= 41
    assert findings.names(range(7)) == "0, 1, 2, 3, 4 and 2 more"


@pytest.mark.parametrize(
    ("value", "said"),
    [(5.0, "5"), (1234.0, "1,234"), (1e9, "1e+09"), (999_999_999.0, "999,999,999"), (99.96, "100"), (100.4, "100"),
     (1234.56, "1,235"), (0.12345, "0.123"), (-250.5, "-250"), (-0.5, "-0.5"), (1.5e9, "1.5e+09"), (12.345, "12.3")],
)  # fmt: skip
def test_numbers_have_three_digits(value, said):
    assert data_statistics.number(value) == said


@pytest.mark.parametrize("seed", range(8))
def test_distributions_are_those_of_sorted_values(seed):
    """Quartiles between two values, and bars of equal width, of equal ratio, or of whole numbers."""
    rng = np.random.default_rng(seed)
    for values, log in (
        (rng.integers(0, 12, 60) / 1.0, False), (rng.integers(0, 90, 60) / 1.0, False), (rng.uniform(1, 90, 61), True),
        (rng.normal(0, 5, 62), False), (np.full(9, 3.5), False), (np.full(9, 3.5), True), (np.full(9, 3.0), False),
        (np.append(rng.uniform(0, 5, 20), 0.0), True), (rng.integers(3, 19, 60) / 1.0, False), (np.r_[0.0, 15, 3, 3], False),
        (np.r_[0.0, 16, 3, 3], False),
    ):  # fmt: skip
        made = data_statistics.figure_of("x", np.r_[values, np.nan, np.inf, -np.inf], log=log)
        low, high = min(values), max(values)
        assert (made.count, made.low, made.high) == (values.size, low, high)
        quartiles = np.quantile(values, [0.25, 0.5, 0.75])
        assert [made.quarter, made.median, made.three_quarters] == pytest.approx(quartiles, rel=1e-12)
        whole_numbers = not log and high - low < 16 and all(one == int(one) for one in values)
        if whole_numbers:
            edges = [low - 0.5 + n for n in range(int(high - low) + 2)]
        elif low == high:
            edges = [low, low + 1]
        elif log and low > 0:
            edges = [low * (high / low) ** (n / 16) for n in range(17)]
        else:
            edges = [low + (high - low) * n / 16 for n in range(17)]
        assert list(made.edges) == pytest.approx(edges, rel=1e-12, abs=1e-12)
        inner = made.edges[1:-1]
        bars = [0] * (len(edges) - 1)
        for one in values:
            bars[sum(edge <= one for edge in inner) - sum(edge == one for edge in inner)] += 1
        assert sum(made.bars) == values.size
        if whole_numbers:
            assert list(made.bars) == bars
    assert data_statistics.figure_of("x", np.array([np.nan, np.inf])) is None
    assert data_statistics.figure_of("x", np.array([1e100, 0])) is not None
    assert data_statistics.figure_of("x", np.array([1.1e100, 0])) is None
    assert data_statistics.figure_of("x", np.array([-1.1e100, 0])) is None


@pytest.mark.parametrize(
    ("bars", "said"),
    [((0, 1, 2, 4, 8), " ▂▃▅█"), ((), ""), ((0, 0), ""), ((8, 7, 1), "█" + "█" + "▂"), ((16, 13, 1), "█▇▁")],
)
def test_plots_of_bars(bars, said):
    """Eighths of the longest bar; the lowest block begins above none."""
    made = data_statistics.Figure("x", 1, 0, 0, 0, 0, 0, (), bars)
    assert made.plot() == said


# ------------------------------------------------------------------------------------------------ parts that hold most flags


def flagged(inside, outside, size=100, others=900, where=True, **more):
    """Whether a part with some flagged images of `size`, beside some of `others`, holds most of them."""
    there = np.arange(size + others) < size
    flags = np.r_[np.arange(size) < inside, np.arange(others) < outside]
    asked = []

    def unlike(image, bad, rate, left=None):
        asked.append((image.size, int(bad.sum()), float(rate[0]), left))
        return Part(there, "as said", there) if where else None

    facts = Facts(None, found=None)
    facts.division = SimpleNamespace(unlike=unlike)
    known = np.ones(size + others, bool)
    return facts.concentrated(flags, known, **more), facts.gathered(flags, known), asked


def test_either_side_of_a_part_that_holds_most_flags():
    """15 % of its images, four times the rest, and 40 % of all flags; a tenth of the images is left out."""
    made, gathered, asked = flagged(15, 0)
    assert made is not None
    assert gathered.says == "as said"
    assert [(count, bad) for count, bad, *_ in asked] == [(1000, 15)] * 2
    assert asked[0][3] == 0.7
    assert asked[1][2:] == (0.015, None)
    assert flagged(14, 0)[0] is None
    assert flagged(30, 0, least=0.3)[0] is not None
    assert flagged(30, 0, least=0.31)[0] is None
    assert flagged(20, 0, left=0.1)[2][0][3] == 0.1
    assert flagged(40, 10, others=100)[0] is not None
    assert flagged(40, 11, others=100)[0] is None
    assert flagged(40, 60)[0] is not None
    assert flagged(40, 61)[0] is None
    assert flagged(90, 0, size=900, others=100)[0] is None
    assert flagged(900, 0, size=900, others=100)[0] is not None
    assert flagged(900, 0, size=900, others=99)[0] is None
    assert flagged(100, 900)[:2] == (None, None)
    assert flagged(0, 0)[:2] == (None, None)
    assert flagged(50, 0, others=0)[:2] == (None, None)
    assert flagged(50, 0, where=False)[:2] == (None, None)
    facts = Facts(None, schema=True)
    assert (
        facts.concentrated(np.arange(5) < 2, np.ones(5, bool))
        is facts.gathered(np.arange(5) < 2, np.ones(5, bool))
        is None
    )


def test_images_that_are_not_known_are_no_part():
    facts = Facts(None)
    asked = []
    facts.division = SimpleNamespace(
        unlike=lambda image, bad, rate, left=0: asked.append((image.tolist(), bad.tolist()))
    )
    facts.gathered(np.arange(6) % 2 > 0, np.arange(6) > 1)
    facts.concentrated(np.arange(6) % 2 > 0, np.arange(6) > 1)
    assert asked == [([2, 3, 4, 5], [False, True, False, True])] * 2


@pytest.mark.parametrize("role", ["detections", "ground_truth"])
@pytest.mark.parametrize("where", [True, False])
def test_records_that_gain_are_those_of_one_part(role, where):
    """Detections, or the objects that they lie on; those beyond the part, or on no known image, gain by chance."""
    there = np.arange(6) < 3
    image = np.array([0, 1, 2, 3, 4, -1, 1])
    gain = SimpleNamespace(role=role, gained=np.array([6, 0, 3, 5]), more="as said")
    truth = SimpleNamespace(image=np.array([5, 0, 2, 2]), on=SimpleNamespace(images=SimpleNamespace(ids=np.arange(6))))
    facts = Facts(truth, found=SimpleNamespace(image=image))
    facts.agreement = SimpleNamespace(
        truth=truth,
        found=facts.found,
        objects_of=lambda gain: np.array([0, 1, 3]),
        image=image,
        astray=np.array([0, 1, 3, 5]),
    )
    asked = []

    def concentrated(flags, known):
        asked.append((flags.tolist(), known.tolist()))
        return Part(there, "images 0 to 2", there) if where else None

    facts.concentrated = concentrated
    rows, more = facts.rows_of(gain)
    assert asked == [([True, True, False, True, False, False], [True, True, False, True, False, False])]
    if not where:
        assert (rows.tolist(), more) == ([0, 3, 5, 6] if role == "detections" else [0, 1, 3], "as said")
        return
    assert rows.tolist() == ([0, 6] if role == "detections" else [1, 3])
    assert more == "as said; images 0 to 2, 3 images with 4 detections"
    gain.more = ""
    assert facts.rows_of(gain)[1] == "images 0 to 2, 3 images with 4 detections"


# ----------------------------------------------------------------------------------------------------------- unknown images


def unmatched(ids, known, images, gain=None, unknown=0, agreement=True, rows=None):
    """What is said of detections of some image ids, given by their places, beside those that are known."""
    images = np.array(images)
    truth = SimpleNamespace(
        on=SimpleNamespace(images=SimpleNamespace(ids=np.array(known), names=None), kinds=()), kinds=()
    )

    class Records(SimpleNamespace):
        def __len__(self):
            return images.size

    table = Records(images=SimpleNamespace(ids=np.array(ids), codes=images))
    own = Records(
        table=table, raw=None, unknown=unknown, boxes=np.zeros((images.size, 4)),
        image=np.array([known.index(ids[at]) if ids[at] in known else -1 for at in images]),
        records=lambda rows: {"records": rows.tolist()[:3]},
    )  # fmt: skip
    facts = Facts(truth, found=own)
    facts.agreement = (
        SimpleNamespace(of_images=gain, rows=np.arange(images.size), lies_on=lambda *given: True) if agreement else None
    )
    facts.rows_of = lambda gain: (np.array([1, 2] if rows is None else rows), gain.more)
    made = [(one.code, one.count, one.says.partition(": ")[2], one.records) for one in image_ids._unmatched(facts, own)]
    return made, facts.causes, "at least" in "".join(one.says for one in image_ids._unmatched(facts, own))


def test_images_that_are_unknown():
    assert unmatched([1, 2, 3], [1, 2, 3], [0, 1, 2, 2]) == ([], set(), False)
    made, causes, _ = unmatched([1, 2, 9], [1, 2, 3], [0, 1, 2, 2])
    assert made == [("unknown_images", 2, "", (9,))]
    assert causes == {("detections", "unknown_images")}
    gain = SimpleNamespace(code="image_ids_shifted", more="each + 1 is the one that is meant")
    made, causes, least = unmatched([1, 2, 9], [1, 2, 3], [0, 1, 2, 2], gain)
    assert made == [("image_ids_shifted", 2, "each + 1 is the one that is meant", (1, 2))]
    assert causes == {("detections", "image_ids_shifted")}
    assert least
    made, _, least = unmatched([9, 8, 7], [1, 2, 3], [0, 1, 2, 2], gain)
    assert [one[1] for one in made] == [4]  # as many as have unknown ids
    assert not least
    made, causes, _ = unmatched([2, 3, 4], [1, 2, 3], [0, 1, 2, 2], agreement=False)
    assert made == [("image_ids_shifted", 4, "each - 1 is one that is there", (4,))]
    assert causes == {("detections", "image_ids_shifted")}
    made, _, _ = unmatched([2, 3, 4], [1, 2, 3], [0, 1, 2, 2])
    assert made == [("unknown_images", 2, "", (4,))]
    made, causes, _ = unmatched(["1", "2", "3", "x"], [1, 2, 3], [0, 1, 2, 2, 3])
    assert made == [("image_ids_type", 4, "'1' is 1", ("1", "2", "3")), ("unknown_images", 1, "", ("x",))]
    assert causes == {("detections", "image_ids_type"), ("detections", "unknown_images")}
