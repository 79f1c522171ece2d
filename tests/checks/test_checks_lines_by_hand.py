"""Lines and grids of coordinates, squares, copies, and images shared with a training set, by loops and written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_boxes_by_hand import facts_of, side, told
from test_checks_limits import side as bare_side

import detmap
from detmap.checks import coverage, leakage, limits
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.checks.rates import Part, tail

SEEDS = range(6)

EDGES = ("left edge", "top edge", "right edge", "bottom edge")


def lines(one, rows):
    """The lines of boxes, by loops over single coordinates."""
    found = []
    images = len({int(one.image[row]) for row in rows})
    several = len({tuple(one.sizes[row]) for row in rows}) > 1
    names = [*EDGES, *(f"{name} / {by}" for by in ("side", "other side") for name in EDGES)]
    for what in names if several else EDGES:
        known = zip(rows, limits._at(one, rows, what).tolist(), strict=True)
        values = sorted({(int(one.image[row]), value) for row, value in known if not np.isnan(value)})
        values = [value for _, value in values]
        if len(values) < 200:
            continue
        held = {value: values.count(value) for value in set(values)}
        width = 0.0125 if "side" in what else 8.0
        for at in sorted(held):
            if held[at] < max(10, 0.01 * images):
                continue
            beside = sorted(count for value, count in held.items() if at - width <= value < at + width and value != at)
            around = sum(beside) / max(len(beside), 1)
            usual = max(3 * around, 1.5 * beside[-3] if len(beside) >= 3 else 0)
            if tail(held[at], usual + 1) * len(held) < 1e-6:
                found.append((what, at))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_coordinates_that_far_more_boxes_have_than_near_ones(seed):
    rng = np.random.default_rng(seed)
    count = 420
    boxes = np.c_[rng.integers(20, 120, (count, 2)), rng.integers(20, 160, (count, 2))].astype(float)
    boxes += rng.choice([0.0, 0.25], (count, 4))
    at = rng.permutation(count)
    boxes[at[: int(rng.integers(8, 60))], seed % 2] = 70.0
    boxes[at[100 : 100 + int(rng.integers(8, 60))], (seed + 1) % 2] = 72.0
    sizes = np.full((count, 2), 400.0) if seed % 3 == 0 else rng.choice([300.0, 400.0], (count, 2))
    some = at[200 : 200 + int(rng.integers(10, 60))]
    boxes[some, 2] = sizes[some, 0] / 2 - boxes[some, 0]
    one = bare_side(boxes, rng.integers(0, 300, count), sizes)
    rows = rng.permutation(count)[:400]
    made = limits._lines(one, rows)
    assert made == lines(one, rows)
    assert limits._lines(one, rows[:0]) == []
    unknown = bare_side(boxes, one.image, np.where(np.arange(count)[:, None] == rows[0], np.inf, sizes))
    assert not any("/" in what for what, _ in limits._lines(unknown, rows))


@pytest.mark.parametrize("seed", range(12))
def test_the_widest_grid_of_corners(seed):
    rng = np.random.default_rng(seed)
    step = int(rng.choice([1, 2, 3, 4, 5, 8, 10, 16, 20, 32]))
    part = float(rng.choice([0.02, 0.2, 1.0]))
    corners = rng.uniform(5, 300, (1200, 2)), rng.uniform(310, 600, (1200, 2))
    boxes = np.concatenate(corners, axis=1)
    on = rng.random(1200) < part
    boxes[on] = np.round(boxes[on] / step) * step
    boxes[:, 2:] -= boxes[:, :2]
    one, rows = bare_side(boxes, np.arange(1200), np.full((1200, 2), 640.0)), np.arange(1200)

    def share(step):
        return float(limits._on_grid(one, rows, step).mean())

    whole = share(1)
    expected = None
    if whole >= 0.01 and whole * 1200 >= 10:
        steps = (64, 32, 20, 16, 10, 8, 5, 4, 3, 2)
        wide = [
            wider for wider in steps
            if share(wider) >= max(0.01, 5 * whole / wider**4) and share(wider) * 1200 >= 10
            and all(share(wider) >= 0.5 * share(finer) for finer in steps if wider % finer == 0)
        ]  # fmt: skip
        expected = wide[0] if wide else 1
    assert limits._grid(one, rows) == expected
    assert limits._grid(one, rows[:9]) is None


@pytest.mark.parametrize("seed", range(12))
def test_squares_that_are_far_more_frequent_than_nearly_square_boxes(seed):
    rng = np.random.default_rng(seed)
    boxes = np.c_[rng.uniform(10, 200, (900, 2)), rng.integers(30, 60, (900, 2))].astype(float)
    boxes[:, 2] += rng.choice([0.0, 0.5], 900)
    count = int(rng.choice([0, 4, 40, 120]))
    boxes[:count, 3] = boxes[:count, 2]
    if seed % 4 == 3:
        boxes[: count // 2 + 30, 2:] = 48
    one, rows = bare_side(boxes, np.arange(900), np.full((900, 2), 640.0)), np.arange(900)
    equal = [abs(w - h) < 0.02 for _, _, w, h in boxes]
    sides = [round(w / 0.02) for (_, _, w, _), same in zip(boxes, equal, strict=True) if same]
    piled = any(2 * sides.count(one) > len(sides) for one in set(sides))
    apart = [round((w - h) / 0.02) for _, _, w, h in boxes]
    near = [one for one in apart if one and abs(one) < 8.5 / 0.02]
    held = sorted(near.count(one) for one in set(near))[-16:]
    said = not piled and sum(equal) >= max(10, 0.005 * 900) and tail(sum(equal), 3 * sum(held) / 16 + 1) < 1e-6
    assert bool(limits.squares(one, rows)) is bool(said)


def squared(count, of_objects=0, part=None):
    """What is said of square boxes among 900 detections, beside as many objects."""
    rng = np.random.default_rng(0)
    boxes = np.c_[rng.uniform(10, 200, (900, 2)), rng.uniform(30, 90, (900, 2)) + np.array([0, 80])]
    objects = boxes.copy()
    boxes[:count, 3] = boxes[:count, 2]
    objects[:of_objects, 3] = objects[:of_objects, 2]
    image = np.arange(900) // 3
    truth, found = (side(one, image=image, size=(640, 640)) for one in (objects, boxes))
    evidence = SimpleNamespace(found=found, objects=np.arange(900), images=300)
    facts = facts_of(truth, found, part=part)
    made = limits.of_squares(facts, evidence, np.arange(900))
    return made and (made.count, made.says.partition(": ")[2], made.records)


def test_square_boxes_are_counted():
    assert squared(60) == (60, "", tuple(range(10)))
    assert squared(2) is None
    assert squared(60, of_objects=60) is None
    there = np.arange(300) < 10
    assert squared(60, part=Part(there, "images 1 to 10", there)) == (30, "images 1 to 10", tuple(range(10)))


@pytest.mark.parametrize(
    ("same", "exact", "unsure", "found", "said"),
    [
        (10, 10, 0, 100, True),
        (9, 9, 0, 100, False),
        (10, 4, 0, 200, True),
        (10, 4, 0, 201, False),
        (20, 20, 3, 100, True),
    ],
)
def test_copies_of_boxes_are_counted(same, exact, unsure, found, said):
    """Ten, and one of twenty of the objects that are found."""
    place = np.arange(found)
    evidence = SimpleNamespace(
        finders=(place[::-1].copy(), place), copies=(place < same, place < exact, place >= found - unsure),
        object_image=place // 2, images=found, found=SimpleNamespace(records=lambda rows: {"records": rows.tolist()[:3]}),
    )  # fmt: skip
    flags = []
    there = place < 3
    facts = SimpleNamespace(
        gathered=lambda bad, known: flags.append((bad.tolist(), known.tolist())) or Part(there, "", there),
        says_part=lambda part: "a part",
    )
    made = list(limits._copied(facts, evidence))
    assert bool(made) is said
    if not said:
        return
    words = f"of {found} objects that are found"
    if same > exact:
        words += f"; {same - exact} of them once they are rounded, or cut off at the edges of their image, "
        words += "as the objects are"
    words += "; 6 of them on a part"
    assert made[0].count == same
    assert made[0].says.partition(": ")[2] == words
    assert ("at least" in made[0].says) is (unsure > 0)
    assert made[0].records == tuple(range(found - same, found - same + 3))
    held = [sum(at // 2 == image for at in range(found)) for image in range(found)]
    copied = [sum(at // 2 == image for at in range(same)) for image in range(found)]
    bad = [2 * some >= all_of > 0 for some, all_of in zip(copied, held, strict=True)]
    assert flags == [(bad, [all_of > 0 for all_of in held])]


# ----------------------------------------------------------------------------------------------------------------- training


def shared(own, train, labels=("cat", "cat")):
    """What is said of images of two files that hold some boxes each."""
    tables = []
    for given, label in zip((own, train), labels, strict=True):
        image = np.repeat(np.arange(len(given)), [len(one) for one in given])
        boxes = np.array([box for one in given for box in one], float).reshape(-1, 4)
        table = detmap.GroundTruth.from_arrays(
            image_ids=image, category_ids=np.ones(image.size, int), boxes=boxes, images=np.arange(len(given)),
            categories=[1], category_names={1: label}, image_sizes=[(100, 200)] * len(given),
        )  # fmt: skip
        tables.append(side_of(table))
    return told(leakage.check(Facts(tables[0], train=tables[1])))


BOXES = [[10, 10, 30, 40], [60, 20, 50, 30], [120, 50, 40, 45], [15, 60, 70, 30]]


def test_images_that_are_in_the_training_set_by_their_objects():
    own = [BOXES, [[1, 2, 30, 40]], [[x + 1, y, w, h] for x, y, w, h in BOXES]]
    same = "by their objects, which are the same box by box"
    placed = "by their objects, at the same places of "
    made = shared(own, [BOXES])
    assert made[0][0] == "leakage"
    assert made[0][2].startswith(same)
    assert 0 in made[0][3]
    assert 1 not in made[0][3]
    assert shared([BOXES], [BOXES]) == [("leakage", 1, same, (0,))]
    assert shared([BOXES], [BOXES], labels=("cat", "dog")) == []
    mirrored = [[200 - x - w, y, w, h] for x, y, w, h in BOXES]
    assert shared([mirrored], [BOXES]) == [("leakage", 1, placed + "mirrored images", (0,))]
    near = [[x + 0.2, y, w, h] for x, y, w, h in BOXES]
    assert shared([near], [BOXES]) == [("leakage", 1, placed + "the images", (0,))]
    assert shared([BOXES[:1]], [BOXES[:1]]) == []
    assert shared([[]], [BOXES]) == []
    truth = side([[0, 0, 5, 5]])
    assert list(leakage.check(Facts(truth))) == []


# ------------------------------------------------------------------------------------------------------------------ numbers


def capped(held, part=None, categories=1):
    """What is said of images with some numbers of detections, of categories in turn."""
    image = np.repeat(np.arange(len(held)), held)
    count = image.size
    found = detmap.Detections.from_arrays(
        image_ids=image + 1, category_ids=np.arange(count) % categories + 1, boxes=np.tile([1.0, 1, 5, 5], (count, 1)),
        scores=np.ones(count),
    )  # fmt: skip
    truth = side([[0, 0, 5, 5]], count=len(held))
    facts = facts_of(truth, side_of(found, truth.table), part=part)
    facts.detections = found
    return told(coverage._capped(facts, facts.found, np.array(held))), facts.causes


def test_detections_beyond_a_cap_and_at_a_limit():
    rng = np.random.default_rng(0)
    free = (rng.integers(0, 30, 200)).tolist()
    assert capped(free) == ([], set())
    assert capped([101, 99, 103, *free])[0] == [("beyond_cap", 4, "", ())]
    assert capped([199, *free], categories=2)[0] == []
    assert capped([201, *free], categories=2)[0] == [("beyond_cap", 1, "", ())]
    limited = np.minimum(rng.integers(5, 60, 100), 20).tolist()
    at = [place + 1 for place, count in enumerate(limited) if count == 20]
    made, causes = capped(limited)
    assert made == [("cap_reached", len(at), "20", tuple(at[:10]))]
    assert causes == {("detections", "cap_reached")}
    there = np.arange(180) < 50
    mixed = [*limited, *rng.integers(24, 90, 80).tolist()]
    made, _ = capped(mixed, Part(there, "images 1 to 50", there))
    inside = [one for one in at if one <= 50]
    assert made[0][:2] == ("cap_reached", len(inside))
    assert made[0][2].startswith("20; of one or two more or fewer detections there are at most ")
    assert made[0][2].endswith("; images 1 to 50")
