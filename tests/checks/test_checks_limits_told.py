"""Either side of limits of boxes, offsets and scores of few digits, and numbers in sentences, written out."""

from __future__ import annotations

import copy
import re
from types import SimpleNamespace

import numpy as np
import pytest
from test_checks_annotators import of_one_category
from test_checks_limits import FACTS, of_confident
from test_checks_limits import side as side_of
from test_checks_limits_agreement import compared
from test_checks_limits_scores import shown
from test_checks_shaped import points_of, shaped

from detmap.checks import boxes, categories, check, coverage, image_ids, labels, limits, parts, rates, scores, uneven
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


@pytest.mark.parametrize(
    ("box", "said"),
    [((0, 0, 0.5, 1), True), ((1, 0, 1, 0.5), True), ((0, 1, 0.5, 1), True), ((1.2, 0, 0.5, 1), False),
     ((0, 1.2, 0.5, 1), False), ((-0.1, 0, 0.5, 1), False), ((0, -0.1, 0.5, 1), False), ((0, 0, 1.2, 0.5), False),
     ((0, 0, 0.5, 1.2), False)],
)  # fmt: skip
def test_either_side_of_the_sides_of_shares(box, said):
    assert (boxes._normalised(FACTS, of_shares(box)) is not None) is said
    assert boxes._normalised(FACTS, of_shares(box, sized=False)) is None


def of_shares(box, sized=True, size=np.nan, **table):
    made = np.tile(np.array(box, float), (3, 1))
    return SimpleNamespace(
        columns=made.T, boxes=made, sized=np.full(3, sized), sizes=np.full((3, 2), size),
        table=SimpleNamespace(**{"within_unit": False, **table}),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("others", "said"), [(None, False), ([], False), ([[0, 0, 1, 1]], False), ([[0, 0, 1, 1.1], [0, 0, 1.1, 1]], True),
     ([[0, 0, 0.5, 5], [0, 0, 0.5, 5]], True), ([[7, 7, 1, 1]], False)],
)  # fmt: skip
def test_shares_of_both_sides_are_right(others, said):
    """Where all lie within 1 by 1 and sizes are unknown, the other side's boxes tell, by the median of their sides."""
    one = of_shares((0, 0, 0.5, 1), within_unit=True)
    other = None
    if others is not None:
        made = np.reshape(np.array(others, float), (-1, 4))
        other = type("Other", (), {"boxes": made, "__len__": lambda self: len(made)})()
    for facts in (SimpleNamespace(truth=one, found=other), SimpleNamespace(truth=other, found=one)):
        assert (boxes._normalised(facts, one) is not None) is said
    large = of_shares((0, 0, 0.5, 1), within_unit=True, size=640.0)
    assert boxes._normalised(SimpleNamespace(truth=large, found=None), large) is not None


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


@pytest.mark.parametrize(
    ("low", "high", "value"), [(0.1, 0.2, 0.7), (0.7, 0.8, 0.1), (0.1, 0.7, 0.9), (0.5, 0.6, 0.123456)]
)
def test_a_score_that_many_have_is_named_and_counted(low, high, value):
    """Among others, and as the lowest or the highest."""
    every = np.concatenate([np.linspace(low, high, 900), np.full(100, value)])
    (found,) = scores._piled(shown(1000), every)
    assert (found.code, found.count) == ("piled_scores", 100)
    assert f"{value:.4g}" in found.says
    second = np.concatenate([every[:300], np.full(11, 0.9), np.full(110, 0.3)])
    assert [one.count for one in scores._piled(shown(421), second)] == [110]
    assert list(scores._piled(shown(420), second[:-1])) == []
    of_one = shown(20)
    assert [one.count for one in scores._piled(of_one, np.full(20, 0.5))] == [20]
    of_one.aside[:1] = True
    assert list(scores._piled(of_one, np.full(20, 0.5))) == []


# --------------------------------------------------------------------------------------------------- what is compared


def test_controls_are_on_other_images_and_mirrored_where_there_are_few():
    """Half, a third and a fifth of the images further on; on fewer than 20 images with objects mirrored ones, too."""
    found = np.array([[10.0, 20, 30, 40]])
    sizes = np.array([[100.0, 200]])
    for full, places, mirrored in ((1, [], 1), (2, [1, 1, 1], 1), (19, [10, 7, 4], 1), (20, [11, 7, 5], 0)):
        made = SimpleNamespace(_full=np.arange(full))
        made.others = lambda *given, made=made: Agreement.others(made, *given)
        controls = list(Agreement._controls(made, np.zeros(1, int), found, sizes))
        assert [int(image[0]) for image, _ in controls] == places + [0] * mirrored
        assert all(boxes.tolist() == found.tolist() for _, boxes in controls[: len(places)])
        assert [boxes.tolist() for _, boxes in controls[len(places) :]] == [[[60, 20, 30, 40]]] * mirrored
    made = SimpleNamespace(_full=np.arange(1))
    two = np.array([[10.0, 20, 30, 40], [2, 20, 50, 40]])  # of unknown size, within what detections reach
    ((_, moved),) = Agreement._controls(made, np.zeros(2, int), two, np.full((2, 2), np.nan))
    assert moved.tolist() == [[12, 20, 30, 40], [0, 20, 50, 40]]


@pytest.mark.parametrize(("found", "rate"), [(40, 0.25), (41, 0.0), (3, 0.25)])
def test_objects_without_a_detection_are_counted_up_to_ten_detections_for_each(found, rate):
    near = Nearest(np.array([0.5, 0.9, 0.49, 0.7]), np.array([0, 1, 2, 3]))
    of_file = type("Found", (), {"image": None, "boxes": None, "__len__": lambda self: found})()
    made = SimpleNamespace(
        found=of_file, order=np.arange(4), nearest=lambda *given: near, share_on_objects=lambda rows: 0.125
    )
    assert Agreement.rate(made, np.arange(2)) == (0.125, rate)


@pytest.mark.parametrize(
    ("marks", "same"),
    [([5, 0, 5], [2]), ([5, 5, 0], []), ([5, 0, 5, 0, 5], []), ([5, 0, 5, 7, 0, 7], [2, 5]), ([0, 0, 0], []),
     ([7, 5, 7, 5], [2, 3])],
)  # fmt: skip
def test_two_objects_are_of_one_image_where_two_images_apart_have_them(monkeypatch, marks, same):
    """Three objects may be on any number of images, one on none without detections."""
    truth = type("Truth", (), {"__len__": lambda self: 6, "on": side_of(count=len(marks)).on})()
    facts = SimpleNamespace(truth=truth, found=None)
    none, some = (np.array(one, np.uint64) for one in (np.zeros(len(marks)), marks))
    monkeypatch.setattr(image_ids, "tells", lambda side: None)
    for fewest, wanted in ((image_ids._SHARED - 1, same), (image_ids._SHARED, None), (1, [])):
        monkeypatch.setattr(
            image_ids, "signatures", lambda side, least, rows, fewest=fewest: some if least == fewest else none
        )
        found = np.flatnonzero(image_ids._same_records(facts)).tolist()
        assert found == ([n for n, one in enumerate(marks) if one and one in marks[:n]] if wanted is None else wanted)


def test_names_of_the_file_are_those_of_text():
    def of(ids):
        return SimpleNamespace(raw=SimpleNamespace(categories=SimpleNamespace(ids=np.array(ids))))

    named = of(["cat", "dog"])
    assert labels._raw(named) is named.raw
    assert labels._raw(of([1, 2])) is None
    assert labels._raw(SimpleNamespace(raw=None)) is None


def test_a_category_without_labels_is_compared_with_the_others():
    label = np.repeat(np.arange(4), 1000)
    at = np.arange(4000)
    (found,) = categories._unlabelled(FACTS, of_confident(label, (at < 20) | (at == 1000) | (at == 2249)))
    assert found.code == "rarely_labelled"
    assert (
        "category cat, 8% of the best quarter of its confident detections; of the other categories 0.27%" in found.says
    )


# ---------------------------------------------------------------------------------------------------------- measured


def test_quantities_that_may_have_a_limit():
    made = np.array([[10.0, 20, 30, 40], [-60, -50, 10, 20], [150, 300, 30, 40], [60, 90, 30, 40], [40, 153, 30, 40]])
    found = limits._measures(made, np.tile([100.0, 200.0], (5, 1)))
    assert {name: values.tolist() for name, values in found.items()} == {
        "area": [1200, 200, 1200, 1200, 1200], "width": [30, 10, 30, 30, 30], "height": [40, 20, 40, 40, 40],
        "width / height": [0.75, 0.5, 0.75, 0.75, 0.75],
        "distance from the image's edge + 1": [11, 1, 1, 11, 8],
        "x of the centre / width of the image": [0.25, 0.001, 1, 0.75, 0.55],
        "y of the centre / height of the image": [0.2, 0.001, 1, 0.55, 0.865],
    }  # fmt: skip
    unknown = limits._measures(made[:3], np.array([[100.0, 200], [np.nan, np.nan], [100, 200]]))
    assert list(unknown) == ["area", "width", "height", "width / height"]


def widths(low, high, spread=0.0, count=None):
    """What is said of as many small and large boxes whose sides are larger by these numbers of pixels."""
    count = 2 * uneven.FEWEST_OF_CATEGORY if count is None else count
    away = np.resize([-spread, 0.0, spread], count)[:, None]
    more = np.concatenate([np.tile(low, (count, 1)) + away, np.tile(high, (count, 1))])
    return uneven.wider(more.astype(float), np.repeat([10.0, 50.0], count))


def test_either_side_of_sides_that_are_larger_by_the_same_pixels():
    least = uneven.PIXELS
    assert widths([4, 3], [6, 1.5]) == "width by +4.0 and height by +3.0 pixels, in the median of the smaller half"
    assert widths([-4, 3], [-4, 3]) == "width by -4.0 and height by +3.0 pixels, in the median of the smaller half"
    assert widths([least, -least], [least, -least]) is not None
    assert widths([0.99 * least, 9], [0.99 * least, 9]) is None
    assert widths([9, 0.99 * least], [9, 0.99 * least]) is None
    assert widths([4, 4], [6.01, 4]) is None
    assert widths([4, 4], [4, 1.99]) is None
    assert widths([4, 4], [4, 4], count=2 * uneven.FEWEST_OF_CATEGORY - 1) is None
    count = 2 * uneven.FEWEST_OF_CATEGORY
    error = 1.2533 * 1.4826 / np.sqrt(count)  # of the median, by a median deviation of 1
    assert widths([4, 4], [4, 4], spread=0.99 * 4 / 6 / error) is not None
    assert widths([4, 4], [4, 4], spread=1.01 * 4 / 6 / error) is None
    more = np.full((4 * uneven.FEWEST_OF_CATEGORY, 2), 4.0)
    assert uneven.wider(more, np.ones(len(more))) is None  # of one size, no half is smaller


def test_crowds_of_less_than_a_pixel_are_smaller_than_usual_objects(tmp_path):
    """Sides are compared as they are."""
    truth = {
        "images": [{"id": n, "width": 640, "height": 480} for n in range(20)],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": 5 * n + k + 1, "image_id": n, "category_id": 1, "iscrowd": int(not k), "area": side * 0.8,
             "bbox": [100.3 + 40 * k + n, 200.3 + 7 * n, side, 0.8]}
            for n in range(20)
            for k, side in enumerate([0.4, 0.8, 0.8, 0.8])
        ],
    }  # fmt: skip
    made = {one.code: one for one in check(truth).findings}["crowds_misplaced"]
    assert made.count == 20
    assert "smaller than a usual object of their category" in made.says


def test_images_without_detections_are_explained_by_a_cut_or_a_limit_alone():
    """Without a cut of scores or a limit of size, or without detections, findings stay as they are."""
    listed = [SimpleNamespace(code="missing_shard")]
    for cut, beyond, found in ((None, None, object()), (0.5, None, None), (None, object(), None), (None, None, None)):
        assert coverage.explained(SimpleNamespace(cut=cut, beyond=beyond, found=found), listed) is listed


def test_either_side_of_a_default_category_beside_five_other_images():
    """Of the other categories one in seven may be so: 11 of 61 images are more than that by chance, and 10 of 60 are not."""
    assert of_one_category([0, 2, 2, 2, 2, 2], 50, usual=(0, 5)) == []
    assert of_one_category([0, 3, 2, 2, 2, 2], 50, usual=(0, 5)) == [11]
