"""Either side of limits of boxes, offsets and scores of few digits, and numbers in sentences, written out."""

from __future__ import annotations

import copy
import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_limits import FACTS, of_confident
from test_checks_limits_agreement import compared
from test_checks_shaped import points_of, shaped

from detmap.checks import boxes, categories, check, parts, rates, scores
from detmap.checks.agreement import Agreement, Nearest
from detmap.checks.inputs import reach_of
from detmap.shapes.boxes import Boxes

# ------------------------------------------------------------------------------------------------------- what is written


@pytest.mark.parametrize(
    ("count", "total", "said"),
    [(0, 0, "0%"), (0, 5, "0%"), (5, 5, "100%"), (1, 3, "33%"), (1, 100, "1%"), (12, 1000, "1%"), (99, 100, "99%"),
     (9, 1000, "0.90%"), (991, 1000, "99.10%"), (1, 100_000, "0.00%")],
)  # fmt: skip
def test_shares_have_digits_near_0_and_1(count, total, said):
    assert parts.share(count, total) == said


def test_labels_that_are_missing_say_how_many_are_on_images_without_an_object():
    """30 of the best quarter of 2,000 detections lie on nothing, on an image each; the first 7 images are empty."""
    made = of_confident(np.zeros(2000, int), np.arange(2000) < 30)
    made.truth.image = np.arange(7, 2000)
    (found,) = categories._unlabelled(FACTS, made)
    assert found.code == "missing_labels"
    assert "6% of the best quarter of the confident detections; 7 of them on images without an object" in found.says


@pytest.mark.parametrize("count", [7, 8, 31, 32, 1000])
def test_images_are_dealt_out_to_at_most_eight_workers(count):
    made = list(rates.residues(count))
    steps = [step for step in range(2, 9) if count >= 4 * step]
    assert [len(one.names) for one in made] == steps
    for step, one in zip(steps, made, strict=True):
        assert one.codes.tolist() == (np.arange(count) % step).tolist()
        assert (
            one.names[-1]
            == f"{'every other image' if step == 2 else f'one image in {step}'} by id, from image number {step} on"
        )


def test_points_counted_from_the_corner_of_the_box_have_a_scale_of_each_side():
    """Boxes of any aspect; the crop has 192 by 256 pixels."""
    data = copy.deepcopy(shaped(0, "poses"))
    rng = np.random.default_rng(5)
    wide = {one["id"]: rng.uniform(0.5, 2) for one in data.truth["images"]}
    for one in [*data.truth["annotations"], *data.found]:  # stretched about the left edge of the image
        factor = wide[one["image_id"]]
        one["bbox"] = [one["bbox"][0] * factor, one["bbox"][1], one["bbox"][2] * factor, one["bbox"][3]]
        one["keypoints"] = (points_of(one) * [factor, 1, 1]).ravel().tolist()
    for one in data.truth["images"]:
        one["width"] = round(one["width"] * wide[one["id"]])
    for one in data.found:
        points = points_of(one)
        x, y, w, h = one["bbox"]
        points[:, :2] = (points[:, :2] - [x, y]) * [192 / w, 256 / h]
        one["keypoints"] = points.ravel().tolist()
    says = {one.code: one.says for one in check(data.truth, data.found).findings}["keypoints_misplaced"]
    first, second = map(
        float, re.search(r"times ([\d.]+) and ([\d.]+) times the sides of the box, from its corner", says).groups()
    )
    assert (first, second) == (pytest.approx(1 / 192, rel=0.02), pytest.approx(1 / 256, rel=0.02))


# ------------------------------------------------------------------------------------------------------------------ boxes


def by_edges(monkeypatch, *groups):
    """The code and the rows of boxes that fit their images of 400 by 100 in another format; groups are (number, box)."""
    made = np.concatenate([np.tile(np.array(box, float), (count, 1)) for count, box in groups])
    sizes = np.tile([400.0, 100.0], (len(made), 1))
    one = SimpleNamespace(
        boxes=made, sizes=sizes, reach=reach_of(made, sizes), sized=np.ones(len(made), bool),
        table=SimpleNamespace(shapes={"bbox": Boxes(made, sizes=True)}),
    )  # fmt: skip
    monkeypatch.setattr(boxes, "_cause", lambda facts, side, code, rows: (code, np.flatnonzero(rows).tolist()))
    return list(boxes._by_edges(SimpleNamespace(agreement=None), one))


#: Beyond the lower edge, and within the image with its sides swapped; beyond it both ways; within it both ways; within it
#: as it is alone.
TALL, FAR, SMALL, LONG = [200, 20, 10, 150], [390, 90, 60, 61], [10, 10, 12, 11], [90, 45, 290, 50]


@pytest.mark.parametrize(
    ("groups", "rows"),
    [([(18, TALL), (2, FAR)], range(18)), ([(17, TALL), (2, FAR)], None), ([(2, TALL), (500, SMALL)], None),
     ([(9, TALL), (491, SMALL)], range(9)), ([(10, TALL), (490, SMALL)], range(500)),
     ([(20, TALL), (79, SMALL), (1, LONG)], range(99)), ([(20, TALL), (78, SMALL), (2, LONG)], range(20)),
     ([(19, TALL), (1, FAR), (80, SMALL), (10, LONG)], range(19)), ([(4, TALL), (9, SMALL), (9, LONG)], None),
     ([(4, TALL), (9, SMALL), (10, LONG)], range(4)), ([(5, TALL), (9, SMALL), (9, LONG)], range(5))],
)  # fmt: skip
def test_either_side_of_boxes_that_fit_with_their_sides_swapped(monkeypatch, groups, rows):
    """Nine in ten of those beyond the image; all boxes are meant if 98 % fit and one in 50 lies beyond its image."""
    assert by_edges(monkeypatch, *groups) == ([] if rows is None else [("sides_swapped", list(rows))])


@pytest.mark.parametrize(
    ("sizes", "corner", "side", "said"),
    [((np.nan, np.nan), 0.25, 0.5, True), ((640, 480), 0.25, 0.5, True), ((2, 480), 0.25, 0.5, False),
     ((2.1, 2.1), 0.25, 0.5, True), ((640, 480), 0.0, 1.0, False), ((640, 480), 1.0, 0.5, True),
     ((640, 480), 1.01, 0.5, False), ((640, 480), 0.0, 1.01, False), ((640, 480), -0.01, 0.5, False)],
)  # fmt: skip
def test_either_side_of_boxes_that_are_shares(sizes, corner, side, said):
    """In images of more than two pixels, or of unknown size; at least three, that are not whole."""
    for count in (2, 3):
        made = np.tile([corner, corner, side, side], (count, 1)).astype(float)
        one = SimpleNamespace(
            columns=made.T, boxes=made, sized=np.ones(count, bool), sizes=np.tile(np.array(sizes, float), (count, 1)),
            table=SimpleNamespace(within_unit=False),
        )  # fmt: skip
        found = boxes._normalised(FACTS, one)
        assert (found is not None and bool(found.all())) is (said and count == 3)


# -------------------------------------------------------------------------------------------------------------- agreement


def shift(*offsets, count=50):
    """The shift of detections whose left, top, right and bottom edges lie this far from those of their objects."""
    rng = np.random.default_rng(1)
    objects = np.concatenate([rng.uniform(0, 50, (count, 2)), rng.uniform(30, 60, (count, 2))], axis=1)
    left, top, right, bottom = (np.resize(one, count) for one in offsets)
    own = objects + np.column_stack([left, top, right - left, bottom - top])
    made = SimpleNamespace(
        plain=Nearest(np.full(count, 0.6), np.arange(count)), boxes=own, truth=SimpleNamespace(boxes=objects)
    )
    found = Agreement.shift.func(made)
    return None if found is None else found.round(9).tolist()


NOISE = [-26.0, 4.0, 34.0]  # a median of 4, of which its error is more than a sixth


@pytest.mark.parametrize(
    ("offsets", "said"),
    [((4.0, 0, 4.0, 0), [4, 0]), ((0, -3.0, 0, -3.0), [0, -3]), ((0.75, 0, 0.75, 0), [0.75, 0]),
     ((0.74, 0, 0.74, 0), None), ((3.0, 0, 5.0, 0), [4, 0]), ((2.9, 0, 5.0, 0), None), ((4.0, 0, -4.0, 0), None),
     ((4.0, 0, NOISE, 0), None), ((NOISE, 0, 4.0, 0), None), ((4.0, 0, 0, 0), None), ((4.0, 2.0, 4.0, 2.0), [4, 2])],
)  # fmt: skip
def test_either_side_of_an_offset_of_both_edges(offsets, said):
    assert shift(*offsets) == said
    assert shift(*offsets, count=49) is None


@pytest.mark.parametrize(("gained", "sampled", "said"), [(10, 100, 10), (9, 100, 0), (8, 80, 8), (7, 80, 0)])
def test_either_side_of_objects_whose_change_detections_bear_out(gained, sampled, said):
    """A tenth of 100 objects, or of the part of them that as many detections can show."""
    made = compared(sampled, boxes=np.ones((sampled, 4)), order=np.arange(100), by_chance=True)
    made.truth = SimpleNamespace(boxes=np.ones((100, 4)), sizes=np.ones((100, 2)))
    made.found = SimpleNamespace(sizes=np.ones((sampled, 2)))
    near = Nearest(np.where(np.arange(sampled) < gained, 0.9, 0.0), np.arange(sampled))
    made.nearest, made._controls = lambda *given: near, lambda *given: iter([])
    assert made.borne_out(made.truth, np.arange(100), lambda boxes, sizes: boxes) == said


# ----------------------------------------------------------------------------------------------------------------- scores


@pytest.mark.parametrize(
    ("count", "total", "chance", "said"),
    [(20, 100, 0.0, True), (19, 100, 0.0, False), (20, 2000, 0.0, True), (20, 2001, 0.0, False),
     (20, 100, scores.CHANCE, False), (20, 100, scores.CHANCE * 0.99, True)],
)  # fmt: skip
def test_either_side_of_enough_scores_of_few_digits(monkeypatch, count, total, chance, said):
    asked = []
    monkeypatch.setattr(scores, "tail", lambda *given: asked.append(given) or chance)
    some = np.arange(total) < count
    found = scores._enough(np.linspace(0, 1, total), some, 3.5)
    assert (found is not None) is said
    assert found is None or found is some
    assert asked in ([], [(count, 8.0)])
    assert scores._enough(np.minimum(np.linspace(0, 1, total), 0.0), some, 3.5) is None  # of one value
