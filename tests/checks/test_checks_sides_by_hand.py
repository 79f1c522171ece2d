"""Figures of the two sides of a check, images without detections, suppression and leakage, by loops and written out."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_boxes_by_hand import facts_of, side, told
from test_checks_readings import few, iou

import detmap
from detmap.checks import across, boxes, coverage, inputs, leakage
from detmap.checks.evidence import evidence_of
from detmap.checks.leakage import Layout
from detmap.checks.rates import Part, tail
from detmap.errors import InputError

SEEDS = range(8)


# -------------------------------------------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("seed", SEEDS)
def test_facts_of_boxes_and_of_their_images(seed):
    made = few(seed)
    found = made.found
    sizes = made.truth.on.images.sizes
    for row in range(len(found)):
        at, (x, y, w, h) = found.image[row], found.boxes[row]
        height, width = (float("inf"), float("inf")) if at < 0 else sizes[at]
        assert found.sizes[row].tolist() == [width, height]
        reach = max(x + w - width, y + h - height, -min(x, y) if at >= 0 else -math.inf)
        assert found.reach[row] == reach
        whole = x <= 2 and y <= 2 and (at < 0 or (x + w >= width - 2 and y + h >= height - 2))
        assert bool(found.whole[row]) is bool(whole)
        assert found.columns[:, row].tolist() == [x, y, w, h]
    assert found.unit == "detection"
    assert made.truth.unit == "object"
    assert not found.crowd.any()
    assert found.extents.tolist() == found.columns[2:].tolist()
    found.inclusive = True
    found.__dict__.pop("extents")
    assert found.extents.tolist() == (found.columns[2:] + 1).tolist()
    none = few(seed, known=False)
    assert np.isinf(none.found.sizes).all()
    assert few(seed, detections=0).found.image.shape == (0,)


@pytest.mark.parametrize(
    ("box", "whole"),
    [([0, 0, 100, 60], True), ([2, 2, 96, 56], True), ([2.1, 2, 96, 56], False), ([2, 2.1, 96, 56], False),
     ([2, 2, 95.9, 56], False), ([2, 2, 96, 55.9], False), ([-5, -5, 200, 200], True)],
)  # fmt: skip
def test_either_side_of_a_box_of_the_whole_image(box, whole):
    assert side([box]).whole.tolist() == [whole]


def test_sizes_of_images_that_are_not_known_are_infinite():
    truth = side([[0, 0, 5, 5]] * 3)
    truth.table.images.sizes.flags.writeable = True
    truth.table.images.sizes[1] = [0, 70]
    assert truth.sizes.tolist() == [[100, 60], [70, np.inf], [100, 60]]


@pytest.mark.parametrize(
    ("which", "most", "rows", "said"),
    [
        ([1, 3], 10, [5, 6, 7, 8], {"records": [6, 8], "named": "record"}),
        ([True, False, False, True], 10, [5, 6, 7, 8], {"records": [5, 8], "named": "record"}),
        ([0, 1, 2, 3], 10, [5, 6, 7, 8], {"records": [5, 6, 7, 8], "named": "record"}),
        ([0, 1, 2, 3], 4, [5, 6, 7, 8], {"records": [5, 6, 7, 8], "named": "record"}), ([0, 1, 2, 3], 3, [5, 6, 7, 8], {}),
        ([0, 1, 2], 2, [5, 6, 7, 8], {"records": [5, 6], "named": "record"}),
        ([3, 1, 0], 10, None, {"records": [1, 3], "named": "image"}), ([], 10, None, {"records": [], "named": "image"}),
    ],
)  # fmt: skip
def test_records_that_are_named(which, most, rows, said):
    """By their numbers or else by their images, unless all of many are concerned."""
    truth = side([[0, 0, 5, 5]] * 4, image=[2, 2, 1, 0])
    truth.rows = None if rows is None else np.array(rows)
    assert truth.records(np.array(which, bool if which and which[0] is True else int), most) == said


@pytest.mark.parametrize("seed", SEEDS)
def test_overlaps_and_what_lies_on_crowds(seed):
    rng = np.random.default_rng(seed)
    one, other = (np.c_[rng.integers(0, 6, (60, 2)), rng.integers(-2, 6, (60, 2))].astype(float) for _ in range(2))
    expected = [
        float(iou([*a[:2], *np.maximum(a[2:], 0)], [*b[:2], *np.maximum(b[2:], 0)])) if min(*a[2:], *b[2:]) > 0 else 0.0
        for a, b in zip(one, other, strict=True)
    ]
    assert inputs.overlaps(one, other).tolist() == expected
    made = few(seed, objects=60)
    image, given = made.found.image, made.found.boxes
    for least in (0.2, 0.5):
        on = [
            any(
                made.truth.crowd[row] and made.truth.image[row] == at
                and max(min(x + w, u + s) - max(x, u), 0) * max(min(y + h, v + t) - max(y, v), 0) >= least * w * h
                for row, (u, v, s, t) in enumerate(made.truth.boxes)
            )
            for at, (x, y, w, h) in zip(image, given, strict=True)
        ]  # fmt: skip
        assert any(on)
        for pairs in (1, 7, 3_000_000):
            assert inputs.on_crowds(made.truth, image, given, least, pairs).tolist() == on


@pytest.mark.parametrize("seed", SEEDS)
def test_the_highest_scores_and_places_of_ranges(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 9, 20) / 8
    for most in (0, 1, 7, 19, 20, 30):
        rows = inputs.best_of(scores, most)
        assert rows.tolist() == sorted(rows.tolist())
        assert sorted(scores[rows]) == sorted(scores)[max(20 - most, 0) :]
    starts, held = rng.integers(0, 9, 10), rng.integers(0, 4, 10)
    pairs = [(at, start + n) for at, (start, count) in enumerate(zip(starts, held, strict=True)) for n in range(count)]
    assert list(zip(*inputs.members(starts, held), strict=True)) == pairs


# ------------------------------------------------------------------------------------------------- images without detections


def empties(objects, detections, **more):
    """What is said of images by their numbers of objects and of detections."""
    objects, detections = np.array(objects), np.array(detections)
    truth = SimpleNamespace(
        on=SimpleNamespace(images=SimpleNamespace(ids=np.arange(objects.size) * 2)), crowd=np.zeros(objects.sum(), bool),
        image=np.repeat(np.arange(objects.size), objects),
    )  # fmt: skip
    facts = {"schema": False, "renamed": None, "cut": None, "beyond": None, "truth": truth, **more}
    facts = SimpleNamespace(gathered=lambda *given: None, **facts)
    return told(coverage._empty(facts, objects, detections))


def test_images_without_detections_by_chance_or_because_they_were_lost():
    rng = np.random.default_rng(0)
    detections = rng.poisson(6, 200) + 1
    none = detections * (np.arange(200) < 190)
    expected = 200 * coverage.chance_of_none(none[:190])
    words = f"{expected:,.1f} would be expected by the numbers of detections of the others"
    made = empties(np.full(200, 3), none)
    assert made == [("missing_shard", 10, words, tuple(range(380, 400, 2)))]
    one = detections * (np.arange(200) < 199)
    assert empties(np.full(200, 3), one) == [("images_without_detections", 1, "", (398,))]
    objects = np.where(np.arange(200) < 195, 3, 0)
    words = words.replace(f"{expected:,.1f}", f"{195 * expected / 200:,.1f}")
    assert empties(objects, none) == [("missing_shard", 5, words, tuple(range(380, 390, 2)))]
    renamed = np.arange(200) >= 195
    assert [one[:2] for one in empties(np.full(200, 3), none, renamed=renamed)] == [("missing_shard", 5)]
    made = empties(objects, none, schema=True)
    assert [one[:2] for one in made] == [("missing_shard", 10)]
    few_of_many = rng.poisson(0.3, 200)
    empty = int((few_of_many == 0).sum())
    assert [one[:2] for one in empties(np.full(200, 3), few_of_many)] == [("images_without_detections", empty)]
    beyond = np.repeat(np.arange(200) >= 190, 3)
    assert [one[:2] for one in empties(np.full(200, 3), none, beyond=beyond)] == [("images_without_detections", 10)]
    beyond[-1] = False
    made = empties(np.full(200, 3), none, beyond=beyond)
    assert [one[:2] for one in made] == [("images_without_detections", 10)]


@pytest.mark.parametrize(("together", "said"), [(8, True), (4, False)])
def test_images_without_detections_that_follow_one_another(together, said):
    """As many anywhere are expected by the numbers of the others, but hardly in a row."""
    rng = np.random.default_rng(1)
    counts = np.maximum(rng.negative_binomial(1, 0.25, 500), 1)
    counts[100 : 100 + together] = 0
    counts[200 : 200 + 10 * (20 - together) : 10] = 0
    there = np.ones(500, bool)
    why = coverage._lost(SimpleNamespace(schema=True), np.full(500, 3), counts, there)
    runs = 500 * (20 / 500) ** together
    expected = f"{together} of them follow one another in the order of ids; {runs:.1g} such runs would be expected"
    assert why == (expected if said else "")


@pytest.mark.parametrize("seed", SEEDS)
def test_images_all_of_whose_objects_are_beyond_a_limit(seed):
    rng = np.random.default_rng(seed)
    image, crowd, flags = rng.integers(0, 9, 20), rng.random(20) < 0.2, rng.random(20) < 0.7
    facts = SimpleNamespace(beyond=flags, truth=SimpleNamespace(crowd=crowd, image=image))
    objects = np.bincount(image[~crowd], minlength=10)
    expected = [
        any(image[row] == at and not crowd[row] for row in range(20))
        and all(flags[row] for row in range(20) if image[row] == at and not crowd[row])
        for at in range(10)
    ]
    assert coverage._beyond(facts, objects).tolist() == expected
    facts.beyond = None
    assert coverage._beyond(facts, objects).tolist() == [False] * 10


@pytest.mark.parametrize(("empty", "said"), [(1, True), (16, True), (17, False)])
def test_images_that_a_cut_of_scores_leaves_without_detections(empty, said):
    """Of others one of 20 has no detection as high as the cut: 5 of 100, by 1.2 times and one more, are 7, and 17 are there
    once in 1,000 cases.
    """
    image = np.repeat(np.arange(300), 2)
    scores = np.tile([0.9, 0.2], 300)
    scores[200::40] = 0.1
    part = np.arange(300) < 100
    agreement, found = SimpleNamespace(confidence=scores), SimpleNamespace(image=image)
    facts = SimpleNamespace(cut=(part, 0.9), agreement=agreement, found=found)
    none = np.arange(300) < empty
    assert (tail(empty, 7.0) >= 1e-3) is said
    assert coverage._cut_empty(facts, none).tolist() == (part & said).tolist()
    facts.cut = None
    assert not coverage._cut_empty(facts, none).any()


@pytest.mark.parametrize(
    ("lost", "rest", "part", "said"),
    [([6] * 20 + [7] * 20, [4] * 99 + [5], None, True), ([6] * 40, [4] * 99 + [5], None, False), ([9], [4, 5], None, False),
     ([9, 9], [4], None, False), ([9, 9], [4, 5], None, True), ([9, 1] * 20, [2, 3] * 50, None, False),
     ([9, 1] * 40, [2, 3] * 50, None, True),
     ([9, 0] * 20, [2, 4] * 50, None, False), ([9] * 20, [4] * 100, 1, False), ([9] * 20, [4] * 100, 3, True)],
)  # fmt: skip
def test_lost_images_are_the_crowded_ones(lost, rest, part, said):
    """1.5 times as many objects in the mean, by five errors, and not nearly all images of a part."""
    objects = np.array([*lost, *rest])
    flags = np.arange(objects.size) < len(lost)
    there = np.arange(objects.size) < (part or 0) * len(lost)
    facts = SimpleNamespace(schema=False, gathered=lambda *given: None if part is None else Part(there, "", there))
    detections = np.where(flags, 0, 3 + np.arange(objects.size) % 2)
    made = coverage._crowded(facts, flags, ~flags, objects, detections)
    assert made.startswith(f"{np.mean(lost):.3g} in the mean, where others hold ") is said
    assert bool(made) is said
    facts.schema = True
    assert coverage._crowded(facts, flags, ~flags, objects, detections) == ""


def skipped(bare=30, full=100, alone=60, on_bare=0, causes=()):
    """What is said of images without objects, some of which have detections; on some of the others one lies alone."""
    objects = np.repeat([0, 1], [bare, full])
    image = np.append(np.arange(bare, bare + full), np.arange(on_bare))
    detections = np.bincount(image, minlength=bare + full)
    overlap = np.where(np.arange(image.size) < alone, 0.09, 0.1)
    agreement = SimpleNamespace(
        thinned=lambda rows: rows, nearest=lambda *given: SimpleNamespace(overlap=overlap[: len(given[0])])
    )
    truth = SimpleNamespace(on=SimpleNamespace(images=SimpleNamespace(ids=np.arange(bare + full))))
    facts = SimpleNamespace(agreement=agreement, causes=set(causes), truth=truth)
    found = SimpleNamespace(image=image, boxes=np.zeros((image.size, 4)))
    return told(coverage._skipped(facts, found, objects, detections))


def test_images_without_objects_that_were_skipped():
    """As if half as many of them had a detection on no object as of the others: 0.7 to the power of 39 is a millionth."""
    words = "of 100 others that were looked at 60% have one"
    assert skipped(bare=39) == [("empty_images_skipped", 39, words, tuple(range(10)))]
    assert skipped(bare=38) == []
    assert skipped(bare=39, alone=59) == []
    assert skipped(bare=39, on_bare=1) == []
    assert skipped(bare=0) == []
    assert skipped(bare=39, causes=[("detections", "x")]) == []
    assert skipped(bare=39, full=400, alone=300) != []


# ------------------------------------------------------------------------------------------------------------------- across


@pytest.mark.parametrize("seed", SEEDS)
def test_the_largest_overlap_of_the_best_detections_of_an_image(monkeypatch, seed):
    monkeypatch.setattr(across, "TOP", 4)
    made = few(seed, detections=60)
    evidence = evidence_of(made.truth, made.found)
    known = evidence.detections.tolist()
    best = {
        at: sorted((row for row in known if made.found.image[row] == at), key=lambda row: (-made.scores[row], row))[:4]
        for at in range(9)
    }
    out, equal = across.largest_overlaps(evidence)
    for at, rows in best.items():
        for of in (0, 1):
            values = [
                float(iou(made.found.boxes[one], made.found.boxes[other]))
                for place, one in enumerate(rows)
                for other in rows[:place]
                if (evidence.label[one] != evidence.label[other]) == of
            ]
            assert out[of, at] == max((value for value in values if value < across.SAME), default=0.0)
            assert bool(equal[of, at]) is any(value >= across.SAME for value in values)


@pytest.mark.parametrize("seed", range(30))
def test_a_threshold_that_overlaps_hardly_exceed(seed):
    rng = np.random.default_rng(seed)
    cut = float(rng.choice(across.THRESHOLDS))
    largest = np.concatenate([rng.uniform(0, cut, 150), rng.uniform(cut, 1, int(rng.integers(2, 40))), np.zeros(20)])
    best = None
    for threshold in across.THRESHOLDS:
        ends = threshold - across.WIDTH, threshold, threshold + across.WIDTH
        below = sum(ends[0] <= one < ends[1] for one in largest)
        above = sum(ends[1] <= one < ends[2] for one in largest)
        beyond = sum(ends[2] <= one < 1 for one in largest)
        chance = tail(below, across.FALL * above + across.UNSEEN) * len(across.THRESHOLDS)
        enough = beyond >= across.FEWEST and beyond >= across.BEYOND * sum(one > 0 for one in largest)
        if chance < across.CHANCE and enough and (best is None or chance < best[0]):
            best = chance, (threshold, above, beyond)
    assert across.threshold_of(largest) == (best and best[1])


# ------------------------------------------------------------------------------------------------------------------ leakage


def layout(*images):
    """Objects of images, each given by left, top, right and bottom as shares, and a category."""
    image = np.repeat(np.arange(len(images)), [len(one) for one in images])
    held = np.cumsum([0, *[len(one) for one in images]])
    corners = np.array([one[:4] for of in images for one in of], float).reshape(-1, 4)
    label = np.array([(*one, 0)[4] for of in images for one in of], int)
    return Layout(image, label, corners, held[:-1], held[1:])


A, B, C = (0.1, 0.2, 0.3, 0.5), (0.4, 0.1, 0.8, 0.4), (0.2, 0.6, 0.9, 0.9)


def near(box, by):
    return tuple(at + by for at in box)


def mirrored(box):
    return 1 - box[2], box[1], 1 - box[0], box[3]


def test_images_with_the_same_objects_at_the_same_places():
    """Three objects or more of the same categories, each within the rounding of another."""
    close, count = leakage.CLOSE, leakage.SHARED
    objects = [A, B, C, (0.5, 0.5, 0.6, 0.7), (0.05, 0.7, 0.1, 0.8)][:count]
    other = layout([(0.3, 0.3, 0.4, 0.4)], objects)

    def shared(one, turned=False):
        return list(leakage._by_objects(layout(*one), other, turned))

    assert shared([[A], objects, objects[::-1]]) == [1, 2]
    assert shared([objects[:-1]]) == []
    assert shared([[near(one, 0.9 * close) for one in objects]]) == [0]
    assert shared([[near(one, 1.1 * close) for one in objects]]) == []
    assert shared([[*objects[:-1], (*objects[-1], 1)]]) == []
    assert shared([[*objects[:-1], near(objects[-1], 2 * close)]]) == []
    assert shared([[mirrored(one) for one in objects]]) == []
    assert shared([[mirrored(one) for one in objects]], True) == [0]
    assert shared([objects], True) == []
    one_place = [A] * count
    assert list(leakage._by_objects(layout(one_place), layout(one_place), False)) == []
    apart = [near(A, 2.1 * close * (n == 0)) for n in range(count)]
    assert list(leakage._by_objects(layout(apart), layout(apart), False)) == [0]


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [([A, B], [A, C], 1), ([A, B, C], [A], -1), ([A], [A, B, C], 1), ([], [A], 0), ([A], [], 0), ([A, B], [C], -1)],
)
def test_half_of_the_objects_agree(mine, theirs, said):
    assert leakage._agree(layout(mine), 0, layout([B], theirs), 1) == said
    moved = [near(one, 0.9 * leakage.CLOSE) for one in theirs]
    assert leakage._agree(layout(mine), 0, layout([B], moved), 1) == said
    far = [near(one, 1.1 * leakage.CLOSE) for one in theirs]
    assert leakage._agree(layout(mine), 0, layout([B], far), 1) == min(said, 0) - (said > 0)


def test_layouts_of_objects_that_tell_images():
    """As shares of the sizes of their images; boxes of the whole image and without an area are left out."""
    truth = side(
        [[10, 6, 20, 30], [0, 0, 100, 60], [50, 30, 25, 15], [1, 1, 0, 5]], image=[1, 0, 0, 0], label=[1, 1, 2, 1]
    )
    train = side([[10, 6, 20, 30]], label=[2], size=(200, 120))
    one, other = leakage._layouts(truth, train)
    assert one.image.tolist() == [0, 1]
    assert one.label.tolist() == [1, 0]
    assert one.corners.tolist() == pytest.approx(np.array([[0.5, 0.5, 0.75, 0.75], [0.1, 0.1, 0.3, 0.6]]))
    assert (one.starts.tolist(), one.stops.tolist()) == ([0, 1], [1, 2])
    assert other.corners.tolist() == pytest.approx(np.array([[0.05, 0.05, 0.15, 0.3]]))
    assert other.label.tolist() == [1]
    assert leakage._layouts(truth, side([[0, 0, 100, 60]])) is None
    assert leakage._layouts(truth, side(np.zeros((0, 4)), image=[], count=1)) is None


def named(names, sizes=None):
    images = SimpleNamespace(names=names, ids=np.arange(len(names)), sizes=None if sizes is None else np.array(sizes))
    return SimpleNamespace(on=SimpleNamespace(images=images))


def test_images_of_the_same_name():
    """Names count without folders unless both files have them; images of other sizes must agree otherwise."""
    own, others = named(["a/x.jpg", "b/y.jpg", ""]), named(["c/y.jpg", "a/x.jpg"])
    assert list(leakage._by_name(own, others, None)) == [(0, "a/x.jpg")]
    assert list(leakage._by_name(own, named(["y.jpg", "x.jpg"]), None)) == [(0, "a/x.jpg"), (1, "b/y.jpg")]
    sized = named(["x", "y", "z", "w"], [[9, 9], [9, 8], [0, 9], [9, 9]])
    train = named(["x", "y", "z", "w"], [[9, 9], [9, 9], [5, 5], [5, 0]])
    assert list(leakage._by_name(sized, train, None)) == [(0, "x"), (2, "z"), (3, "w")]
    assert list(leakage._by_name(sized, named(["y"]), None)) == [(1, "y")]
    text = SimpleNamespace(on=SimpleNamespace(images=SimpleNamespace(names=None, ids=np.array(["p/q", "./r"]))))
    assert leakage._file_names(text) == {0: "p/q", 1: "r"}
    numbers = SimpleNamespace(on=SimpleNamespace(images=SimpleNamespace(names=None, ids=np.arange(3))))
    assert leakage._file_names(numbers) == {}


@pytest.mark.parametrize(
    ("agree", "against", "bare", "said"),
    [(3, 2, 1, [0, 1, 2, 5]), (2, 2, 1, [0, 1]), (2, 3, 1, [0, 1]), (0, 1, 2, []), (1, 0, 2, [0, 1, 2])],
)
def test_resized_images_of_one_name(agree, against, bare, said):
    """Those whose objects agree and, if these are more than others, those of one aspect without objects."""
    count = agree + against + bare
    own = np.tile([60, 90], (count, 1))
    others = np.tile([120, 180], (count, 1))
    mine = [[A] if at < agree + against else [] for at in range(count)]
    theirs = [[A] if at < agree else [C] for at in range(count)]
    pairs = [(at, at, f"{at}.jpg") for at in range(count)]
    layouts = layout(*mine), layout(*theirs)
    assert list(leakage._resized(pairs, own, others, layouts)) == [(at, f"{at}.jpg") for at in said]
    others[-1] = [120, 170]  # of another aspect
    kept = [at for at in said if at < count - 1]
    assert list(leakage._resized(pairs, own, others, layouts)) == [(at, f"{at}.jpg") for at in kept]


@pytest.mark.parametrize(("ones", "each", "bound"), [(0, 50, 0.01), (1, 50, 3 / 101), (2, 100, 5 / 202)])
def test_few_images_with_one_detection_bound_the_probability_of_none(ones, each, bound):
    """By the spread of these numbers one of 25 would have none."""
    counts = np.r_[np.ones(ones, int), np.full(each, 2), np.full(each, 30)]
    assert coverage.chance_of_none(counts) == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize(
    ("shift", "count", "said"),
    [(0.75, 20, True), (0.74, 20, False), (0.75, 19, False), (3.0, 30, True)],
)
def test_boxes_beyond_their_images_that_were_shifted(shift, count, said):
    """By the median of 20 pairs of detections and objects on the same images; the other file's are off the other way."""
    objects = np.tile([10.0, 10, 20, 20], (count, 1))
    found = side(objects + np.array([shift, 0, 0, 0]))
    truth = side(objects)
    every = np.arange(count)
    whole = SimpleNamespace(
        plain=SimpleNamespace(overlap=np.full(count, 0.3), object=every), image=every, boxes=found.boxes, truth=truth,
        found=found,
    )  # fmt: skip
    facts = facts_of(truth, found, whole)
    for one, sign, other in ((found, 1, "objects"), (truth, -1, "detections")):
        words = (
            f"; on their {count} images boxes lie off by {sign * shift:+.1f} and {sign * 0.0:+.1f} pixels (x, y) from the "
            f"{other} that they overlap, in the median: were they shifted?"
        )
        assert boxes._says_shift(facts, one, np.ones(count, bool)) == (words if said else "")
    assert boxes._says_shift(facts, found, every < 19) == ""
    whole.plain.overlap = np.full(count, 0.29)
    assert boxes._says_shift(facts, found, np.ones(count, bool)) == ""
    facts.agreement = None
    assert boxes._says_shift(facts, found, np.ones(count, bool)) == ""


def test_negative_sides_on_images_without_objects_are_told():
    """No order of columns is tried, because no object could be found there."""
    rng = np.random.default_rng(0)
    truth = side(np.c_[rng.uniform(0, 50, (60, 2)), rng.uniform(20, 40, (60, 2))], size=(200, 200), count=70).table
    given = np.r_[np.c_[rng.uniform(0, 50, (60, 2)), rng.uniform(20, 40, (60, 2))], [[50, 50, -20, 30]] * 10]
    found = detmap.Detections.from_arrays(
        image_ids=np.arange(70) + 1, category_ids=np.ones(70), boxes=given, scores=rng.random(70), invalid_boxes="miss"
    )
    told_of = {one.code: one.count for one in detmap.check(truth, found).findings}
    assert told_of["inverted_boxes"] == 10


# ------------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("counts", "iou_type", "holds", "said"),
    [
        ({"": 5, "bbox": 5, "segm": 5}, None, None, (["bbox", "segm"], {})),
        ({"": 5, "bbox": 5, "segm": 4}, None, None, (["bbox"], {"segm": 1})),
        ({"": 5, "bbox": 5, "segm": 2}, None, None, (["bbox"], {})),
        ({"": 4, "bbox": 4, "segm": 2}, None, None, (["bbox"], {})),
        ({"": 5, "bbox": 5, "segm": 0}, None, None, (["bbox"], {})),
        ({"": 5, "segm": 4}, None, None, (["bbox"], {"segm": 1})),
        ({"": 5, "segm": 4}, None, ("bbox", "segm"), (["bbox"], {"segm": 1})),
        ({"": 5, "segm": 4}, None, ("segm",), (["segm"], {"segm": 1})),
        ({"": 0}, None, ("keypoints",), (["keypoints"], {})),
        (None, None, None, (["bbox"], {})),
        ({"": 5, "bbox": 5, "segm": 4}, "segm", None, (["segm"], {"segm": 1})),
        ({"": 5, "bbox": 3, "segm": 5}, "segm", None, (["segm"], {})),
        ({"": 5, "bbox": 3, "segm": 5}, "bbox", None, (["bbox"], {"bbox": 2})),
    ],
)  # fmt: skip
def test_kinds_of_geometry_that_all_or_most_records_have(counts, iou_type, holds, said):
    known = None if holds is None else SimpleNamespace(holds=holds)
    source = SimpleNamespace(kinds=lambda: counts if counts is None else dict(counts), known=known)
    assert inputs._kinds(source, iou_type) == said


@pytest.mark.parametrize(
    ("first", "second", "others", "said"),
    [
        ((2, ["x"]), None, [], 2), ((0, ["x"]), (3, ["y"]), ["segm"], 3), ((0, ["x"]), (3, ["y"]), [], 0),
        ((2, []), None, [], "error"), (None, None, ["segm"], "error"), ((0, ["x"]), None, ["segm"], "error"),
    ],
)  # fmt: skip
def test_records_that_can_be_read(first, second, others, said):
    """Of other kinds where none can be; the error is that of the file if no record was refused."""
    asked = []

    def made(count, codes):
        return SimpleNamespace(code=codes, _replace=lambda **given: SimpleNamespace(**given))

    def salvage(kinds, truth):
        asked.append(kinds)
        one = first if len(asked) == 1 else second
        return one and (list(range(one[0])), "rows", [made(0, code) for code in one[1]])

    error = InputError("as said")
    source = SimpleNamespace(salvage=salvage)
    if said == "error":
        with pytest.raises(InputError, match="as said"):
            inputs._salvaged(source, ["bbox"], others, None, error)
        return
    table, rows, refused = inputs._salvaged(source, ["bbox"], others, None, error)
    assert (len(table), rows) == (said, "rows")
    assert [one.code for one in refused] == (second if len(asked) == 2 else first)[1]
    assert asked == [["bbox"], others][: len(asked)]


@pytest.mark.parametrize(("kind", "code", "said"), [
    ("segm", "missing_shapes", ("no_shapes", "of the kind segm")), ("bbox", "missing_shapes", ("missing_shapes", "x")),
    ("segm", "other", ("other", "x")),
])  # fmt: skip
def test_a_kind_that_no_record_has(kind, code, said):
    class One(SimpleNamespace):
        def _replace(self, **given):
            return One(**{**vars(self), **given})

    source = SimpleNamespace(salvage=lambda *given: ([], None, [One(code=code, problem="x")]))
    _, _, [one] = inputs._salvaged(source, [kind], [], None, InputError("as said"))
    assert (one.code, one.problem) == said
    some = SimpleNamespace(salvage=lambda *given: ([1], None, [One(code=code, problem="x")]))
    _, _, [one] = inputs._salvaged(some, [kind], [], None, InputError("as said"))
    assert (one.code, one.problem) == (code, "x")
