"""Gains of other readings, compared with what loops over single boxes count, for many numbers of detections that gain."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_readings import nearest

import detmap
from detmap.checks import agreement, labels
from detmap.checks.agreement import Agreement, Gain, Nearest
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.checks.rates import tail


def moved(seed):
    """Objects of 10 to 30 images, and detections of which some lie below their objects, by 300 pixels and a few more."""
    rng = np.random.default_rng(seed)
    images, count = int(rng.integers(10, 31)), 80
    image = np.sort(rng.integers(0, images, count))
    objects = np.c_[rng.integers(0, 200, (count, 2)), rng.integers(20, 60, (count, 2))].astype(float)
    own = objects + rng.integers(-3, 4, (count, 4))
    some = rng.permutation(count)[: int(rng.choice([2, 4, 8, 12, 20, 40]))]
    own[some, 1] += 300
    wrong = rng.permutation(some)[: some.size // 3]
    own[wrong, 0] += rng.choice([0, 100])
    truth = detmap.GroundTruth.from_arrays(
        image_ids=image, category_ids=np.ones(count), boxes=objects, images=np.arange(images), categories=[1],
        image_sizes=[(700, 700)] * images,
    )  # fmt: skip
    found = detmap.Detections.from_arrays(
        image_ids=image, category_ids=np.ones(count), boxes=own, scores=rng.uniform(0, 1, count)
    )
    return Agreement(side_of(truth), side_of(found, truth))


def by_loops(made, code, role, image, found, whole=False):
    """The rows that gain, and whether they are enough; None if chance explains them."""

    def hits(image, boxes):
        near = nearest(made, image, boxes)
        if whole:
            better, on = {}, {}
            for at, (best, _) in zip(made.image[made.astray].tolist(), near, strict=True):
                better[at] = better.get(at, 0) + (best >= 0.6)
            for at, best in zip(made.image.tolist(), made.plain.overlap.tolist(), strict=True):
                on[at] = on.get(at, 0) + (best >= 0.5)
            own = made.image[made.astray].tolist()
            near = [
                (best if better[at] > on.get(at, 0) else 0.0, which)
                for at, (best, which) in zip(own, near, strict=True)
            ]
        return near

    near = hits(image, found)
    better = [best >= 0.6 for best, _ in near]
    if not any(better):
        return None
    enough = sum(better) >= 0.01 * made.rows.size
    gained = len({which for best, which in near if best >= 0.6})
    full = sorted({int(at) for at in made.truth.image})
    controls = []
    for part in (2, 3, 5):
        to = []
        for own, never in zip(made.image[made.astray].tolist(), image.tolist(), strict=True):
            place = full.index(own) if own in full else min(sum(one < own for one in full), len(full) - 1)
            place += min(len(full) // part + 1, len(full) - 1)
            other = full[place % len(full)]
            to.append(full[(place + 1) % len(full)] if other == never else other)
        controls.append((np.array(to), found))
    if len(full) < 20:
        turned = found.copy()
        turned[:, 0] = 700 - found[:, 0] - found[:, 2]
        controls.append((made.image[made.astray], turned))
    if code in ("scaled_boxes", "shifted_boxes"):
        controls.append((image, 2 * made.boxes[made.astray] - found))
    for on, boxes in controls:
        chance = len({which for best, which in hits(on, boxes) if best >= 0.6})
        if tail(gained, 2.0 * chance + 0.5) > (1e-5 if enough else 1e-7):
            return None
    usual = [best for best in made.plain.overlap.tolist() if best >= 0.6]
    undone = np.median([best for best, _ in near if best >= 0.6])
    if code != "normalised_boxes" and len(usual) >= 30 and undone < np.median(usual) - 0.1:
        return None
    return made.rows[made.astray[np.array(better)]].tolist(), enough


@pytest.mark.parametrize("seed", range(24))
def test_gains_by_loops(seed):
    made = moved(seed)
    rows = made.astray
    image, back = made.image[rows], made.boxes[rows] - np.array([0, 300, 0, 0])
    for code, role, whole in (
        ("turned_boxes", "detections", True), ("axes_swapped", "detections", False),
        ("shifted_boxes", "ground_truth", False),
        ("normalised_boxes", "detections", False),
    ):  # fmt: skip
        for boxes in (back, back + np.array([4, 4, 0, 0]), back + np.array([9, 0, 0, 0])):
            expected = by_loops(made, code, role, image, boxes, whole)
            gain = made.gain(code, role, image, boxes, whole=whole, more="as said")
            assert (gain is None) is (expected is None or not expected[1])
            if gain is not None:
                assert (gain.code, gain.role, gain.more) == (code, role, "as said")
                assert gain.gained.tolist() == expected[0]


def test_some_of_the_gains_are_there_and_others_are_not():
    """The scenes above show either side of each condition."""
    said = set()
    for seed in range(24):
        made = moved(seed)
        back = made.boxes[made.astray] - np.array([0, 300, 0, 0])
        said |= {by_loops(made, "axes_swapped", "detections", made.image[made.astray], back) is None}
    assert said == {True, False}


@pytest.mark.parametrize("seed", range(8))
def test_readings_are_tested_on_a_few_detections_first(monkeypatch, seed):
    """One of three is compared; if hardly one of a thousand gains, the others are not."""
    made = moved(seed)
    image, back = made.image[made.astray], made.boxes[made.astray] - np.array([0, 300, 0, 0])
    plain = made.gain("axes_swapped", "detections", image, back)
    monkeypatch.setattr(agreement, "_SCREENED", max(made.astray.size // 3, 1))
    asked = []
    of = Agreement._nearest

    def near(self, image, found, truth=None):
        asked.append(len(image))
        return of(self, image, found, truth)

    monkeypatch.setattr(Agreement, "_nearest", near)
    again = made.gain("axes_swapped", "detections", image, back)
    step = made.astray.size // max(made.astray.size // 3, 1)
    if step > 1:
        assert asked[0] == -(-made.astray.size // step)
    assert again is None or plain is not None
    asked.clear()
    assert made.gain("axes_swapped", "detections", image, back + np.array([0, 9000, 0, 0])) is None
    assert len(asked) == 1


def gain(size, code="x"):
    return Gain(code, "detections", np.arange(size), Nearest(np.zeros(0), np.zeros(0, int)))


def test_the_largest_gain_counts():
    one, two, three = gain(3, "a"), gain(5, "b"), gain(5, "c")
    assert agreement._best([None, one, two, None, three]) is two
    assert agreement._best([None, None]) is None
    assert agreement._best([]) is None


@pytest.mark.parametrize(
    ("best", "own", "rows", "said"),
    [(None, None, 10, None), (5, None, 10, "best"), (5, 6, 12, "own"), (5, 5, 10, "best"), (None, 6, 12, "own"),
     (None, 6, 13, None),
     (10, 12, 24, "own"), (10, 11, 22, "best"), (5, 6, 13, None)],
)  # fmt: skip
def test_boxes_moved_by_their_own_sides_are_preferred(best, own, rows, said):
    """By 1.2 times the gain, and if they are half of all."""
    made = Agreement(None, None)
    made._of_boxes = lambda: [None if best is None else gain(best, "best")]
    made.__dict__ |= {
        "of_images": None,
        "_of_own_sides": None if own is None else gain(own, "own"),
        "rows": np.arange(rows),
    }
    chosen = made.of_boxes
    assert (chosen and chosen.code) == said
    again = Agreement(None, None)
    again.__dict__ |= {"of_images": gain(1)}
    assert again.of_boxes is None


def test_ids_that_several_readings_explain():
    """The largest gain counts, and that of neighbours is asked for with the constant that gains most."""
    known = np.array([3, 5, 8, 9, 12])
    truth = SimpleNamespace(on=SimpleNamespace(images=SimpleNamespace(ids=known)))
    table = SimpleNamespace(images=SimpleNamespace(ids=known + 1, codes=np.arange(5)))
    made = Agreement(truth, SimpleNamespace(table=table))
    made.__dict__ |= {"boxes": np.zeros((5, 4)), "astray": np.arange(5), "rows": np.arange(5)}
    ways = [("image_ids_shifted", "p", "a"), ("image_ids_shifted", "q", "b"), ("image_ids_positions", "r", "c")]
    made._in_the_list, made._numbered = lambda known: np.array([1, 0, 2, 3, 4, -1]), lambda *given: iter(ways)
    asked = []
    sizes = {"a": 2, "b": 4, "c": 3}
    made.gain = lambda code, role, place, boxes, more: gain(sizes[more], f"{code} {place}")

    def neighbours(boxes, says, order, steps, constant):
        asked.append((says, order.tolist(), steps, constant))
        return []

    made._neighbours = neighbours
    made._restarted = lambda boxes: None
    assert made.of_images.code == "image_ids_shifted q"
    assert asked == [("order of ids", [0, 1, 2, 3, 4], 8, "q"), ("list of images", [1, 0, 2, 3, 4], 1, "q")]
    asked.clear()
    del made.__dict__["of_images"]
    made._in_the_list = lambda known: None
    made.gain = lambda code, role, place, boxes, more: None
    made._restarted = lambda boxes: gain(1, "restarted")
    assert made.of_images.code == "restarted"
    assert asked == [("order of ids", [0, 1, 2, 3, 4], 8, None)]
    for ids in (np.array(["a"]), np.arange(0)):
        table.images.ids = ids
        asked.clear()
        del made.__dict__["of_images"]
        assert (made.of_images is None) is (ids.size == 0)
        assert len(asked) == ids.size


def test_categories_of_files_are_checked_in_turn():
    """Categories without objects are told unless no object is checked, or there is none at all."""
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[0, 0], category_ids=[1, 2], boxes=[[0, 0, 5, 5]] * 2, images=[0], categories=[1, 2, 3],
        crowd=np.array([False, True]),
    )  # fmt: skip
    facts = Facts(side_of(truth))
    made = [(one.code, one.count, one.records) for one in labels.check(facts)]
    assert made == [("categories_without_objects", 2, (2, 3))]
    assert list(labels.check(Facts(side_of(truth), schema=True))) == []
    assert list(labels.check(Facts(side_of(truth.take(np.zeros(2, bool)))))) == []
