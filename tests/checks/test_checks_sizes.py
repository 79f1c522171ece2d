"""What is said of sizes, strays, groups and whole images, word for word."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import side

from detmap.checks import policies, shapes, sizes, strays
from detmap.checks.context import Facts
from detmap.checks.inputs import side_of
from detmap.checks.rates import Part
from detmap.data.tables import GroundTruth


def told(made):
    return [(one.code, one.count, one.unit, one.says.partition(": ")[2], one.records) for one in made]


class Truth(SimpleNamespace):
    def records(self, rows):
        return {"records": np.flatnonzero(rows).tolist() if rows.dtype == bool else rows.tolist()}


# --------------------------------------------------------------------------------------------------------------- sizes


def test_what_is_said_of_sizes_at_which_objects_are_missed(monkeypatch):
    """Bands are quarters of an octave of the root of the area; the last hold all larger objects."""
    given = []
    monkeypatch.setattr(sizes, "dip", lambda total, hits: given.append((total, hits)) or (8, 14, 0.75))
    side_of_root = 2 ** (np.array([0, 1.99, 2.01, 3.49, 3.51, 13, 15, -3, 2.5, 2.5]))
    box = np.c_[np.zeros((10, 2)), side_of_root, side_of_root]
    hit = np.array([1, 1, 0, 0, 1, 1, 1, 1, 1, 0], bool)
    evidence = SimpleNamespace(
        object_box=box, seen=np.arange(10) < 9, hit=hit, objects=np.arange(20, 10, -1), looked_at=np.ones(2, bool),
        truth=Truth(),
    )  # fmt: skip
    (made,) = sizes._missed(evidence)
    ((total, hits),) = given
    assert {at: int(count) for at, count in enumerate(total) if count} == {0: 2, 7: 1, 8: 1, 10: 1, 13: 1, 14: 1, 52: 2}
    assert {at: int(count) for at, count in enumerate(hits) if count} == {0: 2, 7: 1, 10: 1, 14: 1, 52: 2}
    assert total.size == hits.size == 56
    assert told([made]) == [
        ("sizes_missed", 2, "object", "root of the area 4 to 11.3: 67% of 3; of an octave on the better and on the worse "
         "side at most 25%", (17, 18))
    ]  # fmt: skip
    evidence.looked_at[0] = False
    assert next(sizes._missed(evidence)).says.startswith("at least 2 objects")
    monkeypatch.setattr(sizes, "dip", lambda total, hits: None)
    assert list(sizes._missed(evidence)) == []


def test_what_is_said_of_boxes_around_several():
    """Missed far more often than others of their size."""
    count = 160
    around = np.arange(count) < 40
    hit = np.r_[np.arange(40) >= 30, np.arange(120) >= 24]
    evidence = SimpleNamespace(
        around=around, seen=np.ones(count, bool), hit=hit, band=np.zeros(count, int), objects=np.arange(count)[::-1],
        object_image=np.zeros(count, int), object_label=np.zeros(count, int), truth=Truth(),
    )  # fmt: skip
    facts = SimpleNamespace(unreported=lambda image, label: image == 0)
    says = "75% of 40 objects around 4 or more; by their sizes 8 would be expected"
    assert told(sizes._regions(facts, evidence)) == [("objects_of_many", 30, "object", says, tuple(range(130, 140)))]
    evidence.seen[130:] = False
    assert list(sizes._regions(facts, evidence)) == []  # of 16 + 1 are 30 or more once in 400
    evidence.seen[130:140] = True
    evidence.seen[140:] = False
    assert "by their sizes 9.6 would be expected" in next(sizes._regions(facts, evidence)).says


def of_tiny(shorter, hits=None, inclusive=False, classes=None, crowd=()):
    """What is said of objects with such shorter sides, of which detections find some, if there are any."""
    count = len(shorter)
    boxes = np.c_[np.zeros((count, 2)), np.full(count, 150.0), shorter]
    table = GroundTruth.from_arrays(
        image_ids=np.arange(count), category_ids=np.ones(count, int) if classes is None else classes, boxes=boxes,
        images=np.arange(count), crowd=np.isin(np.arange(count), crowd),
    )  # fmt: skip
    own = side_of(table)
    own.inclusive = inclusive
    evidence = None
    if hits is not None:
        evidence = SimpleNamespace(
            detections=np.arange(hits >= 0), objects=np.arange(count)[::-1], hit=np.arange(count)[::-1] < hits
        )
    facts = SimpleNamespace(truth=own, evidence=evidence, schema=False, caused=lambda *given: False)
    made = told(sizes._tiny(facts))
    for change in ({"schema": True}, {"caused": lambda *given: given == ("ground_truth", "normalised_boxes")}):
        assert list(sizes._tiny(SimpleNamespace(**{**vars(facts), **change}))) == []
    return made, own


def test_what_is_said_of_strays():
    few, larger = np.full(20, 4.0), np.linspace(7.01, 57, 100)
    says = "a side of at most 4 pixels, and of up to 6 pixels only 2 objects more"
    sides = np.r_[few, 5, 6, larger]
    first = tuple(range(10))
    assert of_tiny(sides)[0] == of_tiny(sides, -1)[0] == [("stray_objects", 20, "object", says, first)]
    assert of_tiny(sides, 0)[0] == [("stray_objects", 20, "object", f"{says}; 0% of them are found", first)]
    assert of_tiny(sides, 1)[0] == [("stray_objects", 20, "object", f"{says}; 5% of them are found", first)]
    assert of_tiny(sides, 2)[0] == []
    assert of_tiny(np.r_[few, 5, 6, 6, larger], crowd=[20])[0][0][3] == says


def test_what_is_said_of_tiny_objects():
    def sides(count, total=1000):
        return np.r_[np.linspace(0.5, 1.9, count), np.linspace(2, 140, total - count)]

    assert of_tiny(sides(10))[0][0][:3] == ("tiny_objects", 10, "object")
    assert of_tiny(sides(9))[0] == []
    assert of_tiny(sides(15, 3000))[0][0][:2] == ("tiny_objects", 15)
    assert of_tiny(sides(14, 3000))[0] == []
    assert of_tiny(np.r_[sides(10), 0, 0])[0][0][1] == 10
    assert of_tiny(sides(10), crowd=[0])[0] == []


@pytest.mark.parametrize(
    ("own", "every", "is_said"),
    [(10, 40, False), (10, 41, True), (10, 10, False), (9, 9, True), (20, 81, False), (20, 82, True)],
)
def test_strays_of_one_category(own, every, is_said):
    """Half of 20 strays among 122 objects are of one category, which has 1.5 times its share of them: 40 or 81 of all."""
    sides = np.r_[np.full(20, 4.0), 5, 6, np.linspace(7.01, 57, 100)]
    others = 2 + np.arange(122) % 4  # of each fewer than half of the strays
    others[:own] = 1
    others[22 : 22 + every - own] = 1
    assert bool(of_tiny(sides, classes=others)[0]) is is_said
    assert of_tiny(sides, classes=np.ones(122, int))[0]


def test_strays_of_other_units():
    for kinds, within in ((("rotated",), False), ((), True)):
        own = SimpleNamespace(table=SimpleNamespace(within_unit=within, kinds=kinds), extents=np.full((2, 1), 4.0))
        if within:
            assert strays.strays(own) is None
    assert [strays.beside(limit) for limit in (1, 3, 4, 5, 6, 31, 32)] == [2, 2, 2, 3, 3, 16, 16]


# -------------------------------------------------------------------------------------------------------------- drawing


def test_what_is_said_of_whole_images():
    total, others = 40, 98
    every = np.ones(total + others, bool)
    evidence = SimpleNamespace(
        objects=np.arange(total + others)[::-1], seen=every, looked_at=np.array([True, False]), frames=1.0,
        hit=np.r_[np.arange(total) >= 20, np.arange(others) >= 4], object_box=np.tile([0.0, 0, 70, 80], (total + others, 1)),
        truth=Truth(sizes=np.full((total + others, 2), 100.0), whole=np.arange(total + others) >= others),
    )  # fmt: skip
    says = "20 of them are not found, and of others of at least half of their image 4 of 98"
    (made,) = policies.whole_images(evidence)
    assert told([made]) == [("whole_image_objects", 40, "object", says, tuple(range(98, 108)))]
    assert made.says.startswith("at least 40 objects")
    evidence.truth.sizes[0] = np.inf
    assert list(policies.whole_images(evidence)) == []


def groups(monkeypatch, part=None, hits=3):
    asked = []
    count = 200
    evidence = SimpleNamespace(
        seen=np.ones(count, bool), hit=np.arange(count) < hits, aside=np.zeros(count, bool), looked_at=np.ones(1, bool),
        objects=np.arange(count)[::-1], frames=1.0, object_image=np.arange(count), object_label=np.zeros(count, int),
        truth=Truth(),
    )  # fmt: skip

    def around(evidence, objects):
        asked.append(objects)
        return objects[:20]

    monkeypatch.setattr(policies, "around_several", around)
    monkeypatch.setattr(policies, "_on_images", lambda evidence, at: (at, "known"))
    there = None if part is None else Part(np.isin(np.arange(count), part), "the part", np.zeros(0, bool))
    facts = Facts(side(count=count))
    facts.unreported = lambda image, label: image != 7
    facts.concentrated = lambda *given: asked.append(given) or there
    facts.says_part = lambda part: f"{part.says}, so"
    made = told(policies._groups(facts, evidence))
    known = [at for at in range(count) if at != 7]
    assert asked[0].tolist() == [at for at in known if at >= hits]
    assert asked[1].tolist() == known
    assert asked[2][0].tolist() == known[:20]
    assert asked[2][1:] == ("known", 0.05, 0.8)
    return made


def test_what_is_said_of_groups(monkeypatch):
    rows = sorted(199 - at for at in range(21) if at != 7)
    assert groups(monkeypatch) == [("grouped_objects", 20, "object", "17 of them are not found", tuple(rows[:10]))]
    says = "4 of them are not found; the part, so"
    assert groups(monkeypatch, range(6)) == [("grouped_objects", 6, "object", "3 of them are not found; the part, so",
                                              tuple(range(194, 200)))]  # fmt: skip
    assert groups(monkeypatch, range(8))[0][3] == says


def test_images_that_could_have_groups():
    evidence = SimpleNamespace(
        images=6, classes=2, object_image=np.array([0, 1, 2, 3]), sure=np.arange(7),
        cell_of=lambda rows: np.array([0, 0, 2, 3, 5, 5, 9])[rows],
    )  # fmt: skip
    flags, known = policies._on_images(evidence, np.array([0, 1, 2]))
    assert np.flatnonzero(known).tolist() == [0, 2]
    assert np.flatnonzero(flags).tolist() == [0, 2]


# ---------------------------------------------------------------------------------------------------------------- masks


def coarse(monkeypatch, step, areas=None):
    """What is said of masks whose outlines lie on grids of such steps."""
    areas = np.ones(len(step), int) if areas is None else np.array(areas)
    step = np.array(step)
    taken = []

    def take(rows):
        taken.append(rows)
        return SimpleNamespace(
            arrays=lambda: {"ends": rows, "stops": rows, "sizes": np.stack([rows + 1, rows], axis=1)}
        )

    def steps(ends, stops, heights):
        assert heights.tolist() == (ends + 1).tolist()
        return step[ends]

    monkeypatch.setattr(shapes, "steps", steps)
    made = told(shapes._coarse(Truth(unit="object"), SimpleNamespace(areas=lambda: areas, take=take)))
    return made, taken[0].tolist()


def test_what_is_said_of_masks_of_a_low_resolution(monkeypatch):
    steps = [1, 2, 4, 2, 0, 2, 1, 8]
    made, taken = coarse(monkeypatch, steps)
    assert made == [("coarse_masks", 5, "object", "2 pixels", (1, 2, 3, 5, 7))]
    assert taken == list(range(8))
    assert coarse(monkeypatch, steps[:7])[0] == []
    made, taken = coarse(monkeypatch, [*steps, 2], areas=[1, 1, 1, 0, 1, 1, 1, 1, 1])
    assert made == [("coarse_masks", 5, "object", "2 pixels", (1, 2, 5, 7, 8))]
    assert taken == [0, 1, 2, 4, 5, 6, 7, 8]
    # of 20,000 masks of full resolution 2.4 have fourteen rows that are all even, or all odd, by chance
    for count, said in ((9, False), (10, True)):
        monkeypatch.setattr(shapes, "LOOKED_AT", 30_000)
        assert bool(coarse(monkeypatch, np.r_[np.full(count, 2), np.ones(20_000 - count, int)])[0]) is said
    monkeypatch.setattr(shapes, "LOOKED_AT", 8)
    assert len(coarse(monkeypatch, steps)[0]) == 1
    monkeypatch.setattr(shapes, "LOOKED_AT", 7)
    made, taken = coarse(monkeypatch, [2] * 8)
    assert len(taken) == 7
    assert taken == sorted(taken)
    assert made[0][:2] == ("coarse_masks", 7)
