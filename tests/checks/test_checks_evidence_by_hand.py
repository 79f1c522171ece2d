"""Matches between objects and detections, compared with what loops over single boxes find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_checks_readings import few, iou

import detmap
from detmap.checks import evidence as module
from detmap.checks.context import Facts
from detmap.checks.evidence import Evidence, best_of_pairs, evidence_of
from detmap.checks.inputs import side_of

SEEDS = range(6)


class Loops:
    """Objects and detections that are compared, one by one."""

    def __init__(self, seed, **more):
        made = few(seed, **{"detections": 70, "objects": 45, **more})
        self.truth, self.found = made.truth, made.found
        self.one = evidence_of(self.truth, self.found)
        known = self.truth.table.categories.ids.tolist()
        codes = self.found.table.categories.ids[self.found.table.categories.codes].tolist()
        self.label = [known.index(one) if one in known else -1 for one in codes]
        rows = [row for row in range(len(self.truth)) if not self.truth.crowd[row]]
        own = self.truth.table.categories.codes
        self.objects = sorted(rows, key=lambda row: (self.truth.image[row], own[row], row))
        self.of = [(int(self.truth.image[row]), int(own[row])) for row in self.objects]
        self.box = [self.truth.boxes[row] for row in self.objects]
        self.detections = [row for row in range(len(self.found)) if self.found.image[row] >= 0 and self.label[row] >= 0]
        self.score = self.found.table.scores.tolist()

    def cell(self, row):
        return int(self.found.image[row]), self.label[row]

    def iou(self, row, place):
        return float(iou(self.found.boxes[row], self.box[place]))

    def best(self, row, places):
        """The largest IoU, and the first of the objects that have it, -1 if none overlaps."""
        most = max(((self.iou(row, place), -place) for place in places), default=(0.0, 1))
        return (most[0], -most[1]) if most[0] > 0 else (0.0, -1)

    @property
    def sure(self):
        """By category and descending score, and as many as there are objects of it."""
        out = []
        for label in range(3):
            own = [row for row in self.detections if self.label[row] == label]
            own = sorted(own, key=lambda row: (-self.score[row], row))
            out += [(row, rank) for rank, row in enumerate(own[: sum(of[1] == label for of in self.of)])]
        return out


@pytest.mark.parametrize("seed", SEEDS)
def test_what_objects_and_detections_are_compared(seed):
    made = Loops(seed)
    one = made.one
    assert one.label.tolist() == made.label
    assert -1 in made.label
    assert one.objects.tolist() == made.objects
    assert list(zip(one.object_image.tolist(), one.object_label.tolist(), strict=True)) == made.of
    assert one.detections.tolist() == made.detections
    assert [tuple(divmod(cell, 3)) for cell in one.cell_of(one.detections).tolist()] == list(
        map(made.cell, made.detections)
    )
    assert one.held.tolist() == [sum(made.cell(row) == of for row in made.detections) for of in made.of]
    assert one.least_sides.tolist() == made.found.boxes[made.detections, 2:].min(axis=0).tolist()
    aside = Loops(seed)
    aside.truth.aside[::4] = aside.truth.constant[1::4] = True
    aside.found.aside[::3] = True
    assert aside.one.objects.tolist() == [row for row in made.objects if row % 4 > 1]
    assert aside.one.detections.tolist() == [row for row in made.detections if row % 3]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_finds_an_object_of_its_category(seed):
    made = Loops(seed)
    one = made.one
    rows, which, best = one.pairs
    expected = []
    for row in made.detections:
        places = [place for place, of in enumerate(made.of) if of == made.cell(row)]
        if places:
            most, place = made.best(row, places)
            expected.append((row, place, most))
    assert list(zip(rows.tolist(), which.tolist(), best.tolist(), strict=True)) == expected
    overlap, score = one.matched
    for place in range(len(made.of)):
        of = [(most, made.score[row]) for row, at, most in expected if at == place]
        assert overlap[place] == max((most for most, _ in of), default=0.0)
        assert score[place] == max((value for most, value in of if most >= 0.5), default=-np.inf)
        touched = any(made.cell(row) == made.of[place] and made.iou(row, place) >= 0.5 for row in made.detections)
        assert bool(one.hit[place]) is touched
    finders = {}
    for row, place, most in expected:
        if most >= 0.5 and (place not in finders or made.score[row] > made.score[finders[place]]):
            finders[place] = row
    assert dict(zip(one.finders[1].tolist(), one.finders[0].tolist(), strict=True)) == finders
    assert one.finders[1].tolist() == sorted(finders)
    assert one.seen.all()


@pytest.mark.parametrize("seed", SEEDS)
def test_confident_detections(seed):
    made = Loops(seed)
    one, sure = made.one, made.sure
    assert one.sure.tolist() == [row for row, _ in sure]
    held = [sum(made.label[other] == made.label[row] for other, _ in sure) for row, _ in sure]
    assert one.sure_rank.tolist() == [rank / count for (_, rank), count in zip(sure, held, strict=True)]
    near = []
    for row, _ in sure:
        near.append(made.best(row, [place for place, of in enumerate(made.of) if of[0] == made.found.image[row]]))
    assert list(zip(one.near.tolist(), one.nearest.tolist(), strict=True)) == near
    label, by = [-1] * len(made.of), [-1] * len(made.of)
    for at in sorted(range(len(sure)), key=lambda at: (one.sure_rank[at], at), reverse=True):
        if near[at][0] >= 0.5:
            label[near[at][1]], by[near[at][1]] = made.label[sure[at][0]], at
    assert one.taken_for[0].tolist() == label
    assert one.taken_for[1].tolist() == by
    between, earlier = [], []
    for at, (row, _) in enumerate(sure):
        before = [float(iou(made.found.boxes[row], made.found.boxes[other])) for other, _ in sure[:at]
                  if made.cell(other) == made.cell(row)]  # fmt: skip
        between.append(max(before, default=0.0))
    for at in sorted(range(len(sure)), key=lambda at: (made.found.image[sure[at][0]], at)):
        row = sure[at][0]
        before = [float(iou(made.found.boxes[row], made.found.boxes[other])) for other, _ in sure[:at]
                  if made.found.image[other] == made.found.image[row]]  # fmt: skip
        earlier.append(max(before, default=0.0))
    assert one.between_detections.tolist() == between
    assert one.between_any[0].tolist() == earlier
    doubled = [
        any(
            made.found.image[row] == made.found.image[other] and made.label[row] != made.label[other]
            and iou(made.found.boxes[row], made.found.boxes[other]) >= 0.75
            and min(made.score[row], made.score[other]) >= 0.7 * max(made.score[row], made.score[other])
            for other, _ in sure
        )
        for row, _ in sure
    ]  # fmt: skip
    assert one.doubled.tolist() == doubled
    one.suppressed = 0.5
    assert one.twins.tolist() == [0.5 <= value < 0.9999 for value in between]


@pytest.mark.parametrize("seed", SEEDS)
def test_confident_detections_on_nothing(seed):
    made = Loops(seed)
    one, truth = made.one, made.truth
    truth.sized = np.arange(len(truth)) % 20 != 2  # an object without an area may be found where it is not seen
    flat = {int(truth.image[row]) for row in range(len(truth)) if row % 20 == 2 and not truth.crowd[row]}
    assert flat
    expected = []
    for at, row in enumerate(one.sure):
        x, y, w, h = made.found.boxes[row]
        crowd = any(
            truth.crowd[other] and truth.image[other] == made.found.image[row]
            and 5 * max(min(x + w, u + s) - max(x, u), 0) * max(min(y + h, v + t) - max(y, v), 0) >= w * h
            for other, (u, v, s, t) in enumerate(truth.boxes)
        )  # fmt: skip
        expected.append(bool(one.near[at] < 0.2 and not crowd and made.found.image[row] not in flat))
    assert one.alone.tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_objects_that_overlap_each_other(seed):
    made = Loops(seed, objects=70, images=6)
    one = made.one
    own, other, among = [], [], []
    for place, of in enumerate(made.of):

        def overlap(places, place=place):
            return max((float(iou(made.box[place], made.box[at])) for at in places), default=0.0)

        own.append(overlap([at for at in range(place) if made.of[at] == of]))
        before = [at for at in range(place) if made.of[at][0] == of[0]]
        most = max(((float(iou(made.box[place], made.box[at])), -at) for at in before), default=(0.0, 0))
        other.append(0.0 if made.of[-most[1]] == of or not most[0] else most[0])
        among.append(overlap([at for at in range(len(made.of)) if made.of[at] == of and at != place]))
    assert not one.around.any()
    assert one.between_objects.tolist() == own
    assert one.between_any[1].tolist() == pytest.approx(other)
    assert one.among_objects.tolist() == among
    single = Loops(seed)
    single.one.classes = 1
    assert [part.size for part in single.one.between_any] == [0, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_objects_beside_one_that_is_found(seed):
    made = Loops(seed, objects=70, images=6)
    one = made.one
    places = {}
    for at, place in zip(*one.finders, strict=True):
        places[int(place)] = int(at)
    over, rest = one.beside_found(0.3)
    for place, of in enumerate(made.of):
        found = [at for at in places if made.of[at] == of and at != place]
        assert bool(over[place]) is any(float(iou(made.box[place], made.box[at])) > 0.3 for at in found), place
        alone = not one.among_objects[place] > 0.3
        assert bool(rest[place]) is (bool(found) and alone), place


@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_are_compared_a_few_at_a_time(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    one, other = (np.c_[rng.integers(0, 9, (20, 2)), rng.integers(1, 9, (20, 2))].astype(float) for _ in range(2))
    starts = rng.integers(0, 15, 20)
    stops = starts + rng.integers(-2, 6, 20)
    expected, touched = [], np.zeros(20, bool)
    for box, start, stop in zip(one, starts, stops, strict=True):
        values = [(iou(box, other[at]), -at) for at in range(start, stop)]
        most = max(values, default=(0, 1))
        expected.append((float(most[0]), -most[1] if most[0] else -1))
        for value, at in values:
            touched[-at] |= value >= 0.5
    for most in (1, 4, 250_000):
        monkeypatch.setattr(module, "_AT_ONCE", most)
        flags = np.zeros(20, bool)
        best, which = best_of_pairs(one, starts, stops, other, flags)
        assert list(zip(best.tolist(), which.tolist(), strict=True)) == expected
        assert flags.tolist() == touched.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_too_many_pairs_are_compared_on_some_images(monkeypatch, seed):
    whole, some = Loops(seed), Loops(seed)
    rows = np.array([row for row, *_ in zip(*whole.one.pairs, strict=True)])
    held = np.array([sum(of == whole.cell(row) for of in whole.of) for row in rows])
    monkeypatch.setattr(module, "PAIRS", int(held.sum()) - 1)
    expected = set()
    image = whole.found.image[rows]
    order = np.random.default_rng(0).permutation(9)
    count = 0
    for one in order:
        count += held[image == one].sum()
        if count <= held.sum() - 1:
            expected.add(int(one))
    assert np.flatnonzero(some.one.looked_at).tolist() == list(range(9))
    compared = some.one.pairs[0]
    assert set(np.flatnonzero(some.one.looked_at).tolist()) == expected
    assert compared.tolist() == [row for row in rows if whole.found.image[row] in expected]
    assert some.one.seen.tolist() == [of[0] in expected for of in whole.of]
    monkeypatch.setattr(module, "PAIRS", int(held.sum()))
    assert Loops(seed).one.pairs[0].tolist() == rows.tolist()


def test_size_bands_are_octaves():
    sides = [0.5, 1, 1.9, 2, 3.9, 4, 255, 256, 2047, 2048, 4095, 4096, 9000]
    truth = detmap.GroundTruth.from_arrays(
        image_ids=np.arange(13), category_ids=np.ones(13), boxes=np.array([[0, 0, one, one] for one in sides]),
        images=np.arange(13), categories=[1],
    )  # fmt: skip
    found = detmap.Detections.from_arrays(image_ids=[0], category_ids=[1], boxes=[[0, 0, 1, 1]], scores=[1])
    one = evidence_of(side_of(truth), side_of(found, truth))
    assert one.band.tolist() == [0, 0, 0, 1, 1, 2, 7, 8, 10, 11, 11, 11, 11]


@pytest.mark.parametrize(
    ("below", "above", "at", "said"),
    [(8, 1, 0.5, 0.5), (7, 0, 0.5, 0.75), (8, 2, 0.5, 0.55), (10, 2, 0.5, 0.5), (10, 2, 0.7, 0.7), (10, 0, 0.45, 0.45),
     (10, 0, 0.74, 0.75)],
)  # fmt: skip
def test_either_side_of_the_threshold_of_suppression(below, above, at, said):
    """Of eight images two detections overlap by up to a tenth less than it, of a fifth by up to a twentieth more."""
    one = Evidence.__new__(Evidence)
    largest = np.concatenate([np.full(below, at - 0.001), np.full(above, at + 0.049), np.full(9, 0.2)])
    one.__dict__ |= {"images": largest.size, "sure": np.arange(largest.size), "between_detections": largest}
    one.found = type("Found", (), {"image": np.arange(largest.size)})
    assert one.suppressed == said
    if at == 0.45:
        for least, said in ((0.351, 0.45), (0.349, 0.75)):
            one.__dict__.pop("suppressed")
            one.between_detections = np.where(largest == at - 0.001, least, largest)
            assert one.suppressed == said


def test_boxes_that_are_larger_than_their_objects_are_made_smaller():
    """Those of one category are by a half wider, in the median; those of the other are smaller, and stay."""
    boxes = np.array([[0.0, 0, 20, 20]] * 3 + [[0, 0, 20, 20]] * 2)
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[0, 1, 2, 0, 1], category_ids=[1, 1, 1, 2, 2], boxes=boxes, images=[0, 1, 2], categories=[1, 2, 3]
    )
    larger = np.array([[0.0, 0, 30, 20], [0, 0, 32, 22], [0, 0, 20, 20], [0, 0, 18, 30], [0, 0, 18, 30]])
    more = np.array([[16.0, 0, 30, 20]])
    found = detmap.Detections.from_arrays(
        image_ids=[0, 1, 2, 0, 1, 0], category_ids=[1, 1, 1, 2, 2, 1], boxes=np.r_[larger, more],
        scores=[0.9, 0.8, 0.7, 0.9, 0.8, 0.75],
    )  # fmt: skip
    one = evidence_of(side_of(truth), side_of(found, truth))
    assert one.enlarged.tolist() == [[1.5, 1.0], [1.0, 1.5], [1.0, 1.0]]
    assert one.sure.tolist() == [0, 1, 5, 3, 4]
    one.suppressed = 4 / 36
    assert one.between_detections.tolist() == pytest.approx([0, 0, 14 / 46, 0, 0])
    assert one.twins_of_size.tolist() == [False, False, True, False, False]  # 20 pixels wide, they share 4 of 36
    one.__dict__.pop("twins_of_size")
    one.suppressed = 4 / 36 + 1e-9
    assert not one.twins_of_size.any()


@pytest.mark.parametrize(
    ("near", "far", "frames"),
    [(0.5, 0.0, 2.0), (0.5, 0.25, 1.0), (0.5, 0.2, 1 / (1 - 0.3 / 0.8)), (0.99, 0.0, 50.0), (1.0, 1.0, 50.0),
     (0.8, 0.51, 5.0), (0.8, 0.5, 1.0), (0.0, 0.0, 1.0)],
)  # fmt: skip
def test_frames_of_which_an_object_stays(monkeypatch, near, far, frames):
    asked = []
    monkeypatch.setattr(Evidence, "_stays", lambda self, step: asked.append(step) or (near if step == 1 else far))
    one = Evidence.__new__(Evidence)
    one.images = 50
    assert one.frames == pytest.approx(frames, rel=1e-12)
    assert asked == [1, 25]
    few_images = Evidence.__new__(Evidence)
    few_images.images = 15
    assert few_images.frames == pytest.approx(frames, rel=1e-12)
    assert asked[2:] == [1, 10]


@pytest.mark.parametrize("seed", SEEDS)
def test_objects_that_stay_in_place(monkeypatch, seed):
    made = Loops(seed)
    for step in (1, 3):
        stays = [
            any(
                made.of[at] == (of[0] + step, of[1]) and iou(made.box[place], made.box[at]) >= 0.5
                for at in range(len(made.of))
            )
            for place, of in enumerate(made.of)
            if of[0] < 9 - step
        ]
        assert made.one._stays(step) == sum(stays) / len(stays)
        monkeypatch.setattr(module, "SAMPLE", 7)
        assert made.one._stays(step) == sum(stays[:7]) / 7
        monkeypatch.undo()
    assert made.one._stays(9) == 0.0
    assert made.one._stays(8) == 0.0
    assert Loops(seed, objects=0).one._stays(1) == 0.0


@pytest.mark.parametrize(
    "names", [["b/1.jpg", "a/2.jpg", "b/x3.jpg", "a\\x4.jpg"], ["1.jpg", "2.jpg", "x3.jpg", "d/x4.jpg"]]
)
def test_orders_and_groups_of_images(names):
    """By id, by name, by the first record in each file; folders, beginnings of names, and sizes."""
    sizes = np.array([[480, 640], [480, 640], [640, 480], [480, 640]])
    truth = detmap.GroundTruth.from_arrays(
        image_ids=[8, 8, 5, 7], category_ids=[1] * 4, boxes=[[0, 0, 9, 9]] * 4, images=[5, 6, 7, 8], categories=[1],
        image_sizes=sizes,
    )  # fmt: skip
    truth = replace(truth, images=replace(truth.images, names=names))
    found = detmap.Detections.from_arrays(
        image_ids=[6, 8, 6, 8, 5], category_ids=[1] * 5, boxes=[[0, 0, 9, 9]] * 5, scores=[1] * 5
    )
    division = evidence_of(side_of(truth), side_of(found, truth)).division
    by_name = [sorted(names).index(name) for name in names]
    # The file of detections goes back to an image; in that of objects image 6, without one, comes after image 5.
    expected = {"ids": [0, 1, 2, 3], "file names": by_name, "the file of objects": [1, 2, 3, 0]}
    assert {one.says: one.place.tolist() for one in division.orders} == expected
    folders = [name.replace("\\", "/").rpartition("/")[0] for name in names]
    heads = ["x" if "x" in name else "" for name in names]
    groups = {one.says: [one.names[code] for code in one.codes] for one in division.groupings if "{}" in one.says}
    assert groups == {
        "the images in the folder {}": [name or "." for name in folders],
        "the images whose names begin with {}": [name or "." for name in heads],
        "the images of {}": ["640 x 480", "640 x 480", "480 x 640", "640 x 480"],
    }


def test_flags_of_a_part_and_of_others():
    """A part is told if most of its images are flagged, and if it leaves out a tenth of all."""

    def part(size, inside, outside, count=1000, **more):
        ids = np.arange(count)
        truth = detmap.GroundTruth.from_arrays(
            image_ids=ids,
            category_ids=np.ones(count),
            boxes=np.tile([0.0, 0, 9, 9], (count, 1)),
            images=ids,
            categories=[1],
        )
        facts = Facts(side_of(truth))
        flags = np.zeros(count, bool)
        flags[:size][np.linspace(0, size - 1, inside).astype(int)] = True
        if outside:
            flags[size:][np.linspace(count - size - 1, 0, outside).astype(int)] = True
        known = np.ones(count, bool)
        return facts.concentrated(flags, known, **more), facts.gathered(flags, known), flags

    told, gathered, flags = part(100, 100, 0)
    assert told.images.tolist() == gathered.images.tolist() == flags.tolist()
    assert part(100, 60, 0, least=0.6)[0] is not None
    assert part(100, 60, 0, least=0.61)[0] is None
    assert part(910, 910, 0)[0] is None
    assert part(890, 890, 0)[0] is not None
    assert part(1000, 1000, 0)[:2] == (None, None)
    assert part(500, 0, 0)[:2] == (None, None)
