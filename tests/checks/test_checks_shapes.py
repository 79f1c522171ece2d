"""What is said of polygons, masks and points, word for word, and points of poses compared one by one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import side

from detmap.checks import check, poses, shapes
from detmap.checks.rates import Part

# ------------------------------------------------------------------------------------------------------------ polygons


def outlines(rows, facts_caused=False, sizes=(100.0, 80.0), numbers=None, kept=None):
    """What is said of polygons, each from a point to another, of the records 0, 10, 20, ..."""
    rows = np.array(rows, float)
    count = len(rows)
    made = SimpleNamespace(
        records=10 * np.arange(count), numbers=np.full(count, 8) if numbers is None else np.array(numbers),
        low=rows[:, :2], high=rows[:, 2:],
    )  # fmt: skip
    kept = np.arange(count) if kept is None else np.array(kept)
    of = SimpleNamespace(
        role="ground_truth", inspected=SimpleNamespace(outlines=made), rows=10 * kept,
        sizes=np.broadcast_to(np.array(sizes, float), (count, 2))[: len(kept)],
    )  # fmt: skip
    facts = SimpleNamespace(truth=of, caused=lambda *given: facts_caused)
    return [(one.code, one.count, one.says.partition(": ")[2], one.records) for one in shapes._polygons(facts)]


def test_polygons_of_few_or_an_odd_number_of_numbers():
    rows = [[1, 1, 5, 5]] * 5
    assert outlines(rows, numbers=[6, 8, 4, 7, 5]) == [("odd_polygons", 3, "", (20, 30, 40))]
    assert outlines(rows, numbers=[6, 8, 10, 6, 12]) == []


def test_polygons_that_are_shares_of_the_image():
    unit = [[0, 0, 1, 1]] * 3
    assert outlines(unit) == [("normalised_polygons", 3, "", (0, 10, 20))]
    assert outlines(unit[:2]) == []
    for other in ([-0.01, 0, 1, 1], [0, -0.01, 1, 1], [0, 0, 1.01, 1], [0, 0, 1, 1.01]):
        assert outlines([*unit[:2], other]) == []
    assert outlines(unit, sizes=(2.5, 3)) != []
    assert outlines(unit, sizes=(2, 3)) == outlines(unit, sizes=(3, 2)) == outlines(unit, sizes=(np.inf, 9)) == []
    assert outlines(unit, numbers=[2, 2, 2])[1:] == [("normalised_polygons", 3, "", (0, 10, 20))]
    assert [one[0] for one in outlines(unit, numbers=[2, 2, 1])] == ["odd_polygons"]
    assert outlines([*unit, *unit], kept=[0, 1, 2]) == [("normalised_polygons", 3, "", (0, 10, 20))]


def test_polygons_outside_of_their_image():
    says = "by more than 2 pixels, and by {} at most"
    assert outlines([[-2, 0, 102, 82]]) == []
    for row, most in (([-2.5, 0, 9, 9], "2.5"), ([0, -3, 9, 9], "3"), ([0, 0, 104, 9], "4"), ([0, 0, 9, 85], "5")):
        assert outlines([[5, 5, 9, 9], row]) == [("outside_polygons", 1, says.format(most), (10,))]
        assert outlines([[5, 5, 9, 9], row], facts_caused=True) == []
        assert outlines([[5, 5, 9, 9], row], kept=[0]) == []
        assert [one[0] for one in outlines([[5, 5, 9, 9], row], numbers=[8, 1])] == ["odd_polygons"]
    assert outlines([[5, 5, 900, 9]], sizes=(np.inf, np.inf)) == []
    assert outlines([[-9, 0, 9, 9], [0, 0, 104, 9]]) == [("outside_polygons", 2, says.format("9"), (0, 10))]


# ---------------------------------------------------------------------------------------------------------- masks, poses


def of_masks(boxes, areas, bounds, sizes=None, known=(100.0, 80.0), caused=()):
    """What is said of masks of some areas and extents; their images have 100 by 80 pixels."""
    count = len(boxes)
    boxes, bounds = np.array(boxes, float), np.array(bounds, float)
    made = SimpleNamespace(
        sizes=np.array([[80, 100]] * count if sizes is None else sizes), areas=lambda: np.array(areas),
        bounds=lambda: SimpleNamespace(sizes=True, table=bounds),
    )  # fmt: skip
    of = SimpleNamespace(
        role="ground_truth", unit="object", sizes=np.tile(known, (count, 1)), boxes=boxes,
        records=lambda which: {"records": np.flatnonzero(which).tolist()},
    )  # fmt: skip
    kind = SimpleNamespace(image_sizes=lambda masks: masks.sizes)
    facts = SimpleNamespace(caused=lambda role, *codes: bool(set(caused) & set(codes)))
    return [
        (one.code, one.count, one.says.partition(": ")[2], one.records) for one in shapes._masks(facts, of, kind, made)
    ]


@pytest.fixture
def fine(monkeypatch):
    monkeypatch.setattr(shapes, "_coarse", lambda *given: [])


def test_masks_of_other_sizes_than_their_images(fine):
    boxes = [[10, 10, 20, 20]] * 3
    assert of_masks(boxes, [9] * 3, boxes) == []
    swapped = "of 1 height and width are swapped"
    assert of_masks(boxes, [9] * 3, boxes, [[80, 100], [100, 80], [81, 100]]) == [("mask_sizes", 2, swapped, (1, 2))]
    assert of_masks(boxes, [9] * 3, boxes, [[80, 100], [80, 101], [80, 100]]) == [("mask_sizes", 1, "", (1,))]
    assert of_masks(boxes, [9] * 3, boxes, [[99, 9]] * 3, caused=["image_sizes_swapped"]) == []
    assert of_masks(boxes, [9] * 3, boxes, [[99, 9]] * 3, known=(np.inf, np.inf)) == []


def test_masks_beside_their_boxes(fine):
    boxes = [[10, 10, 20, 20]] * 4
    bounds = [[10, 10, 20, 20], [0, 0, 0, 0], [40, 10, 20, 20], [10, 10, 20, 45]]
    assert of_masks(boxes, [100, 0, 100, 100], bounds) == [
        ("empty_masks", 1, "", (1,)), ("masks_off_boxes", 2, "", (2, 3)),
    ]  # fmt: skip
    assert of_masks(boxes, [100, 0, 100, 100], bounds, caused=["scaled_boxes"]) == [("empty_masks", 1, "", (1,))]
    # Boxes of few pixels differ by rounding: centres by 2, sides by 2.
    small = [[10, 10, 2, 2]]
    for bound, off in (
        ([12, 12, 2, 2], False),
        ([12.1, 12, 2, 2], True),
        ([10, 8.9, 4, 4], False),
        ([9, 9, 4.1, 4], True),
    ):
        assert bool(of_masks(small, [9], [bound])) is off
    # An IoU below a quarter, of a mask of more than 64 pixels.
    within = [[14, 14, 9.9, 9.9]]
    assert of_masks([[10, 10, 20, 20]], [64], within) == []
    assert of_masks([[10, 10, 20, 20]], [65], within) != []
    assert of_masks([[10, 10, 20, 20]], [65], [[14, 14, 10, 10]]) == []
    assert of_masks([[10, 10, 0, 20]], [65], [[40, 14, 10, 10]]) == []
    many = np.tile([[10.0, 10, 30, 20]], (7, 1))
    assert of_masks(many, [99] * 7, many + np.array([3, 0, 0, 0])) == [
        ("masks_off_boxes", 7, "7 of them shifted by +3.0 and +0.0 pixels (x, y), in the median", (0, 1, 2, 3, 4, 5, 6))
    ]


def person(image, keypoints, said=None, box=(20.0, 20, 40, 40), category=1):
    labelled = sum(flag > 0 for flag in keypoints[2::3])
    return {"image_id": image, "category_id": category, "bbox": [*box], "area": 900.0, "iscrowd": 0, "keypoints": keypoints,
            "num_keypoints": labelled if said is None else said}  # fmt: skip


def of_people(*people, categories=1, found=None):
    truth = {
        "images": [{"id": at, "width": 100, "height": 90} for at in range(4)],
        "categories": [{"id": 1 + at, "name": f"{at}"} for at in range(categories)],
        "annotations": [{"id": at + 1, **one} for at, one in enumerate(people)],
    }
    report = check(truth, found, iou_type="keypoints")
    codes = {"keypoint_counts", "keypoint_flags", "bad_keypoints", "outside_keypoints", "keypoint_visibility"}
    return {(one.code, one.unit): (one.count, one.says.partition(": ")[2], one.records)
            for one in report.findings if one.code in codes}  # fmt: skip


FOUR = [30, 30, 2, 40, 40, 1, 50, 50, 2, 0, 0, 0]


def test_what_is_said_of_points():
    assert of_people(person(0, FOUR), person(1, FOUR)) == {}
    assert of_people(person(0, FOUR), person(1, FOUR, 2), person(2, FOUR, 4)) == {
        ("keypoint_counts", "object"): (2, "", (1, 2))
    }
    assert of_people(person(0, [30, 30, 3, *FOUR[3:]]), person(1, FOUR)) == {
        ("keypoint_flags", "object"): (1, "", (0,))
    }
    shorter = person(2, FOUR[:9])
    assert of_people(person(0, FOUR), person(1, FOUR), shorter) == {
        ("bad_keypoints", "object"): (1, "most have 4 points", (2,))
    }
    assert of_people(person(0, FOUR), person(1, FOUR), shorter, categories=2) == {}


@pytest.mark.parametrize(("x", "y", "out"), [
    (6, 40, False), (5.9, 40, True), (74, 40, False), (74.1, 40, True), (40, 6, False), (40, 5.9, True), (40, 74.1, True),
])  # fmt: skip
def test_either_side_of_points_of_objects(x, y, out):
    """A quarter of the sides of 40 pixels, and four pixels."""
    says = "of its box, by more than 25% of its side and 4 pixels"
    made = of_people(person(0, FOUR), person(1, [x, y, 2, *FOUR[3:]]))
    assert made == ({("outside_keypoints", "object"): (1, says, (1,))} if out else {})
    assert of_people(person(0, FOUR), person(1, [x, y, 0, *FOUR[3:]])) == {}


@pytest.mark.parametrize(("x", "y", "out"), [
    (-50, 40, False), (-50.1, 40, True), (150, 40, False), (150.1, 40, True), (40, -45.1, True), (40, 135, False),
    (40, 135.1, True),
])  # fmt: skip
def test_either_side_of_points_of_detections(x, y, out):
    says = "of its image, by more than 50% of its side"
    found = [{**person(at, [x, y, 1, *FOUR[3:]] if at == 2 else FOUR), "score": 0.5 + at / 10} for at in range(4)]
    made = of_people(*[person(at, FOUR) for at in range(4)], found=found)
    assert made.get(("outside_keypoints", "detection")) == ((1, says, (2,)) if out else None)


def test_points_at_the_origin_and_points_that_are_not_labelled():
    nowhere = [0, 0, 2, *FOUR[3:]]
    made = of_people(*[person(at % 4, nowhere, box=(0.0, 0, 60, 60)) for at in range(3)], person(0, FOUR))
    assert made[("keypoint_visibility", "object")] == (3, "labelled, at 0, 0", (0, 1, 2))
    bare = [30, 30, 0, 40, 0, 0, 0, 50, 0, 0, 0, 0]
    made = of_people(person(0, FOUR), *[person(at % 4, bare) for at in range(3)])
    assert made[("keypoint_visibility", "object")] == (3, "drawn, and none of them labelled", (1, 2, 3))
    few = [30, 30, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0]
    assert of_people(person(0, FOUR), *[person(at % 4, few) for at in range(3)]) == {}
    assert of_people(person(0, FOUR), *[person(at % 4, bare) for at in range(2)]) == {}


# -------------------------------------------------------------------------------------------------------- poses compared


def some_poses(count=40, points=6, seed=0):
    """Points of objects, in boxes of 100 by 64 pixels, and which of them are labelled."""
    rng = np.random.default_rng(seed)
    true = np.round(rng.uniform(0, 64, (count, points, 2)), 1) + 300
    return true, rng.random((count, points)) < 0.8


def compared(own, true, labelled):
    rows = np.arange(len(own))
    return poses.Compared(rows, rows, own, true, labelled, np.full(len(own), 80.0))


def test_distances_of_points():
    true, labelled = some_poses(3)
    own = true + np.array([3.0, 4.0])
    made = compared(own, true, labelled).distances(own)
    assert np.isnan(made).tolist() == (~labelled).tolist()
    assert made[labelled] == pytest.approx(5 / 80)


def order_of(made, plain):
    """Point by point: how often each point of a detection lies on an object's point whose own is more than twice as far."""
    count, size = plain.shape
    held = np.zeros((size, size), int)
    for pose in range(count):
        for one in range(size):
            apart = [np.hypot(*(made.true[pose, one] - made.own[pose, other])) / 80 for other in range(size)]
            least = min(apart)
            if made.labelled[pose, one] and least <= 0.1 < plain[pose, one] and least < plain[pose, one] / 2:
                held[one, apart.index(least)] += 1
    out = list(range(size))
    for one in range(size):
        to = int(held[one].argmax())
        if held[one, to] >= 5 and held[:, to].argmax() == one:
            out[one] = to
    if len(set(out)) < size:
        out = [out[one] if out[out[one]] == one else one for one in range(size)]
    return None if out == list(range(size)) else out


def test_the_order_of_points_point_by_point():
    rng = np.random.default_rng(0)
    some = 0
    for seed in range(25):
        true, labelled = some_poses(12, seed=seed)
        own = true + rng.normal(0, 3, true.shape)
        order = rng.permutation(6) if seed % 2 else [1, 0, 2, 4, 3, 5]
        changed = rng.random(12) < 0.7
        own[changed] = own[changed][:, order]
        made = compared(own, true, labelled)
        plain = made.distances(own)
        said, wanted = poses.permutation(made, plain), order_of(made, plain)
        assert (None if said is None else said.tolist()) == wanted
        some += wanted is not None
    assert some > 12


@pytest.mark.parametrize(
    ("own", "true", "exchanged"),
    [
        ([[30, 8], [0, 8]], [[0, 0], [30, 0]], True),  # a tenth of the side of 80 pixels
        ([[30, 8.01], [0, 8]], [[0, 0], [30, 0]], False),
        ([[16, 0], [-8, 0]], [[0, 0], [24, 0]], False),  # half as far as its own point
        ([[16.1, 0], [-8, 0]], [[0, 0], [24, 0]], True),
        ([[8, 0], [-3, 0]], [[0, 0], [11, 0]], False),  # its own point is a tenth away
        ([[8.1, 0], [-3, 0]], [[0, 0], [11, 0]], True),
    ],
)
def test_either_side_of_points_that_are_exchanged(own, true, exchanged):
    own, true = (np.tile(np.array(one, float), (6, 1, 1)) for one in (own, true))
    made = compared(own, true, np.ones((6, 2), bool))
    plain = made.distances(own)
    order = poses.permutation(made, plain)
    assert (order is not None) is exchanged
    assert poses.permutation(compared(own[:4], true[:4], np.ones((4, 2), bool)), plain[:4]) is None


@pytest.mark.parametrize(
    ("plain", "other", "flags", "known"),
    [(16, 7.9, True, True), (16, 8, False, True), (8, 3.9, False, False), (8.1, 4, True, True), (3, 8.1, False, True),
     (3, 8, False, False)],
)  # fmt: skip
def test_either_side_of_poses_that_fit_another_order(plain, other, flags, known):
    """Points farther away than a tenth of the side of 80 pixels in either order tell; half as far is better."""
    own = np.zeros((1, 2, 2))
    own[0, 0, 0] = 1000.0
    true = np.array([[[1000.0, plain], [0.0, plain]]])
    made = compared(own, true, np.ones((1, 2), bool))
    away = made.distances(own)
    assert away.tolist() == [[plain / 80] * 2]
    moved = made._replace(true=own[:, ::-1] + [0, other])
    assert moved.distances(own[:, ::-1]).tolist() == [[other / 80] * 2]
    fits, tells = poses._exchanged(moved, away, np.array([1, 0]))
    assert (fits.tolist(), tells.tolist()) == ([flags], [known])


def test_poses_whose_points_fit_another_order():
    rng = np.random.default_rng(0)
    for seed in range(10):
        true, labelled = some_poses(30, seed=seed)
        labelled[:6, 2:] = False
        own = true + rng.normal(0, 4, true.shape)
        order = np.array([1, 0, 3, 2, 4, 5])
        own[::2] = own[::2][:, order]
        made = compared(own, true, labelled)
        plain, other = made.distances(own), made.distances(own[:, order])
        flags, known = poses._exchanged(made, plain, order)
        for pose in range(30):
            at = [one for one in range(4) if labelled[pose, one] and max(plain[pose, one], other[pose, one]) > 0.1]
            better = sum(other[pose, one] < plain[pose, one] / 2 for one in at)
            assert known[pose] == (len(at) >= 2)
            assert flags[pose] == (len(at) >= 2 and 2 * better > len(at))


@pytest.mark.parametrize("says", [
    "times 2 and 4 (x, y) they lie on those of the objects",
    "times 0.5 and 0.25 about the middle of the box they lie on those of the objects",
    "times 1 and 1, from the corner of the box on, they lie on those of the objects",
    "times 1 and 1 times the sides of the box, from its corner on, they lie on those of the objects",
    "times 1 and 1 times the sides of the image they lie on those of the objects",
    "with x and y swapped they lie on those of the objects",
    "",
])  # fmt: skip
@pytest.mark.parametrize("sized", [True, False])
def test_what_moves_points_onto_those_of_objects(says, sized):
    true, labelled = some_poses()
    rng = np.random.default_rng(1)
    box = np.c_[rng.uniform(200, 300, (40, 2)), rng.uniform(60, 120, (40, 2))]
    true = box[:, None, :2] + rng.uniform(0, 1, true.shape) * box[:, None, 2:]
    sizes = rng.uniform(500, 900, (40, 2))
    corner, middle = box[:, None, :2], box[:, None, :2] + box[:, None, 2:] / 2
    own = {
        "2": true / [2, 4],
        "0": middle + (true - middle) * [2, 4],
        "from": true - corner,
        "box": (true - corner) / box[:, None, 2:],
        "image": true / sizes[:, None],
        "swapped": true[:, :, ::-1],
        "": true + rng.uniform(-200, 200, true.shape),
    }
    words = {"2": "times 2", "0": "times 0.5", "from": "from the corner", "box": "sides of the box"}
    words |= {"image": "sides of the image", "swapped": "swapped", "": ""}
    key = next(key for key, what in words.items() if what in says)
    away = np.arange(40) < 35
    given = own[key].copy()
    given[~away] = 0.0  # poses that are none of those
    evidence = SimpleNamespace(
        object_box=box, found=SimpleNamespace(sizes=sizes if sized else np.full((40, 2), np.inf))
    )
    made = poses._cause(evidence, compared(given, true, labelled), away)
    if key == "image" and not sized:
        assert made != says
    else:
        assert made == says


def of_poses(flags, known, part=None, more="", images=40):
    """What is said of poses, one on each image."""
    rows = np.arange(images)[::-1]
    made = poses.Compared(rows, np.arange(images), *[None] * 4)
    asked = []

    def unlike(image, bad, chance, repeats):
        asked.append((image.tolist(), bad.tolist(), chance, repeats))
        there = None if part is None else np.isin(np.arange(images), part)
        return None if part is None else Part(there, "the part", there[image])

    evidence = SimpleNamespace(
        object_image=np.arange(images), division=SimpleNamespace(unlike=unlike), frames=1.5,
        found=SimpleNamespace(records=lambda rows: {"records": rows.tolist()}),
    )  # fmt: skip
    at = np.arange(images)
    told = list(poses._parts(evidence, made, np.isin(at, flags), np.isin(at, known), "keypoints_misplaced", more))
    return [(one.count, one.says.partition(": ")[2], one.records) for one in told], asked


def test_what_is_said_of_poses():
    every = range(40)
    made, asked = of_poses(range(10), every)
    assert made == [(10, "25% of 40 that were compared", tuple(range(30, 40)))]
    assert asked == []
    assert of_poses(range(10), every, more="so") == (
        [(10, "25% of 40 that were compared; so", tuple(range(30, 40)))],
        [],
    )
    made, asked = of_poses(range(9), every)
    assert made == []
    ((image, bad, chance, repeats),) = asked
    assert (image, bad, repeats) == (list(every), [at < 9 for at in every], 1.5)
    assert chance.tolist() == pytest.approx([9 / 40] * 40)
    made, _ = of_poses(range(9), every, part=range(6, 12), more="so")
    assert made == [(3, "the part; 50% of 6 that were compared there; so", (31, 32, 33))]
    some = [0, 1, 2, 7, 8]
    assert of_poses(some, every, part=range(7, 12))[0] == [(2, "the part; 40% of 5 that were compared there", (31, 32))]
    assert of_poses(some, every, part=range(7, 13))[0] == []
    assert of_poses(range(5), range(30), part=range(3, 8))[0] == [
        (2, "the part; 40% of 5 that were compared there", (35, 36))
    ]
    assert of_poses(range(4), range(9))[0] == []
    assert of_poses([*range(4), 20], range(12))[0] == []
    assert of_poses(range(5), range(5))[0] == [(5, "100% of 5 that were compared", (35, 36, 37, 38, 39))]


@pytest.mark.parametrize(("outside", "told"), [(16, True), (17, False)])
def test_either_side_of_poses_of_a_part(outside, told):
    """Two of five poses, and 16 of 100 others: 2.5 times the share."""
    flags = [*range(2), *range(5, 5 + outside)]
    assert bool(of_poses(flags, range(105), part=range(5), images=105)[0]) is told


def poses_of(counts, numbers, labelled=4):
    """Rows and points that are compared, of detections and objects with so many points each."""

    def points(each, flag, start):
        place = start + np.arange(sum(each))
        flags = np.array([at < flag for one in each for at in range(one)], int)
        return np.array(each, int), np.stack([place, place + 1000], axis=1), flags, None

    kind = SimpleNamespace(points=lambda given: given)
    count = len(counts)
    evidence = SimpleNamespace(
        finders=(np.arange(count)[::-1], np.arange(count)), objects=np.arange(count)[::-1],
        found=SimpleNamespace(posed=(kind, points(counts, 9, 0.0))),
        truth=SimpleNamespace(posed=(kind, points(numbers, labelled, 5000.0))),
        object_box=np.tile([0.0, 0, 16, 25], (count, 1)),
    )  # fmt: skip
    return poses.compared(evidence)


def test_poses_of_as_many_points_are_compared():
    made = poses_of([5, 4, 5, 5], [5, 5, 4, 5])
    assert made.rows.tolist() == [3, 0]
    assert made.objects.tolist() == [0, 3]
    assert made.own[:, :, 0].tolist() == [[14, 15, 16, 17, 18], [0, 1, 2, 3, 4]]
    assert made.true[:, :, 1].tolist() == [[6014, 6015, 6016, 6017, 6018], [6000, 6001, 6002, 6003, 6004]]
    assert made.labelled.tolist() == [[True] * 4 + [False]] * 2
    assert made.side.tolist() == [20, 20]
    assert poses_of([5, 5], [5, 5], labelled=3) is not None
    assert poses_of([5, 5], [5, 5], labelled=2) is None
    assert poses_of([], []) is poses_of([4], [5]) is poses_of([0], [0]) is None


def test_some_of_many_poses_are_compared(monkeypatch):
    monkeypatch.setattr(poses, "_PAIRS", 99)
    assert poses_of([5] * 3, [5] * 3).rows.size == 3
    assert poses_of([5] * 4, [5] * 4).rows.size == 3
    assert side().unit == "detection"
