"""Points, masks, scores of few digits and images under two ids: numbers counted again, limits on both sides."""

from __future__ import annotations

import copy
import functools
import re
from types import SimpleNamespace

import numpy as np
import planting
import pytest
from test_checks_parts import planted, scene, within

from detmap.checks import check, poses, shapes
from detmap.checks.rates import Division, Order
from detmap.checks.shapes import shifted
from detmap.masks import Masks

shaped = functools.lru_cache(maxsize=None)(planting.shaped)
SHAPED = {one.name: (kind, one) for kind, one in planting.SHAPED_DEFECTS}


def shaped_with(name, share, seed=0):
    """A scene of shapes with a defect, and its findings by code."""
    kind, one = SHAPED[name]
    data = copy.deepcopy(shaped(seed, kind))
    one.plant(np.random.default_rng([seed, 1]), data, share)
    return data, {found.code: found for found in check(data.truth, data.found).findings}


def points_of(one):
    return np.array(one["keypoints"], float).reshape(-1, 3)


# ---------------------------------------------------------------------------------------------------------------- poses


@pytest.mark.parametrize("kind", planting.SHAPED_KINDS)
def test_clean_scenes_of_shapes_have_no_finding(kind):
    data = shaped(0, kind)
    assert check(data.truth, data.found).codes == ()


@pytest.mark.parametrize("name", SHAPED)
def test_each_defect_of_shapes_is_named(name):
    _, one = SHAPED[name]
    _, made = shaped_with(name, max(one.least, 0.1))
    assert one.codes & set(made)
    assert set(made) <= one.codes | one.also


def test_poses_with_left_and_right_exchanged_are_counted_again():
    data, made = shaped_with("left_and_right_swapped_on_a_shard", 0.1)
    one = made["keypoints_permuted"]
    assert one.severity == "error"
    there = within(one.says)
    inside = [d for d in data.found if there(d["image_id"])]
    count, compared = (int(v) for v in re.search(r"^(\d+) .* of (\d+) that were compared", one.says).groups())
    assert 0.8 * compared < count == one.count <= compared <= len(inside)
    pairs = re.search(r"of the points (.*)", one.says)[1].split(", ")
    assert pairs == [f"{at + 1} is {to + 1}" for at, to in enumerate(planting.EXCHANGED.tolist()) if at != to]


@pytest.mark.parametrize(
    ("name", "says"),
    [("points_at_half_of_the_size", "times 2 and 2 (x, y)"),
     ("points_as_shares_of_the_image", "times the sides of the image"),
     ("points_of_the_crop", "times the sides of the box, from its corner on"),
     ("labelled_points_at_another_size", "times 1.5 and 1.5 (x, y)")],
)  # fmt: skip
def test_where_points_would_lie_is_said(name, says):
    _, made = shaped_with(name, 0.1)
    assert says in made["keypoints_misplaced"].says
    assert made["keypoints_misplaced"].says.endswith("they lie on those of the objects")


def test_points_of_which_x_and_y_are_swapped():
    data = copy.deepcopy(shaped(0, "poses"))
    for one in data.found:
        one["keypoints"] = points_of(one)[:, [1, 0, 2]].ravel().tolist()
    made = {one.code: one.says for one in check(data.truth, data.found).findings}
    assert made["keypoints_misplaced"].endswith("with x and y swapped they lie on those of the objects")


def test_visibility_that_contradicts_points_is_counted_again():
    data, made = shaped_with("every_point_visible", 0.1)
    poses_of = [points_of(one) for one in data.truth["annotations"]]
    assert made["keypoint_visibility"].count == sum(((p[:, :2] == 0).all(1) & (p[:, 2] > 0)).any() for p in poses_of)
    data, made = shaped_with("no_point_visible", 0.1)
    poses_of = [points_of(one) for one in data.truth["annotations"]]
    bare = sum((p[:, :2] != 0).any(1).sum() >= 3 and not (p[:, 2] > 0).any() for p in poses_of)
    assert made["keypoint_visibility"].count == bare


@pytest.mark.parametrize(("count", "points", "said"), [(3, 3, True), (2, 3, False), (3, 2, False)])
def test_either_side_of_visibility_that_contradicts_points(count, points, said):
    data = copy.deepcopy(shaped(0, "poses"))
    for one in data.truth["annotations"][:count]:
        one["keypoints"] = [v for at in range(17) for v in ((5 + at, 6.0, 0) if at < points else (0, 0, 0))]
        one["num_keypoints"] = 0
    assert ("keypoint_visibility" in check(data.truth).codes) is said


BODY = np.stack([np.arange(8.0) * 10, np.tile([0.0, 30.0], 4)], axis=1)


def compared(own, count=100, labelled=8):
    """Poses of eight points, of people of 100 pixels; those of the detections are as given."""
    flags = np.tile(np.arange(8) < labelled, (count, 1))
    rows = np.arange(count)
    return poses.Compared(rows, rows, np.array(own, float), np.tile(BODY, (count, 1, 1)), flags, np.full(count, 100.0))


def exchanged(many, count=100, noise=0.0):
    """Points of which the first two are exchanged in so many poses."""
    own = np.tile(BODY, (count, 1, 1))
    own[:many] = own[:many][:, [1, 0, 2, 3, 4, 5, 6, 7]]
    own[:, :2, 0] += noise
    return own


def test_either_side_of_points_in_another_order():
    def order(own):
        made = compared(own)
        return poses.permutation(made, made.distances(made.own))

    assert order(exchanged(4)) is None
    assert order(exchanged(5)).tolist() == [1, 0, 2, 3, 4, 5, 6, 7]
    assert order(exchanged(50, noise=9.9)) is not None  # within a tenth of the size
    assert order(exchanged(50, noise=10.1)) is None
    near = np.tile(BODY, (100, 1, 1))
    near[:, 0] = BODY[0] + (0, 12.0)  # beside its own place, and 20 pixels from the next
    assert order(near) is None


@pytest.mark.parametrize(("apart", "said"), [(9.5, True), (10.5, False)])
def test_either_side_of_a_point_that_is_meant(apart, said):
    """Two points 20 pixels from where they belong: others must be at most half as far away."""
    own = np.tile(BODY, (100, 1, 1))
    true = np.tile(BODY, (100, 1, 1))
    true[:, 1] = true[:, 0] + (20, 0)
    own[:, 0], own[:, 1] = true[:, 1] + (0, apart), true[:, 0] + (0, apart)
    made = compared(own)._replace(true=true)
    plain = made.distances(own)
    flags, known = poses._exchanged(made, np.where(plain > 0.1, 0.2, plain), np.array([1, 0, 2, 3, 4, 5, 6, 7]))
    assert known.all()
    assert flags.all() == said


def evidence_of(made, images=400):
    place = np.arange(images)
    return SimpleNamespace(
        object_image=place, images=images, frames=1.0, division=Division(place, [Order("ids", place)], []),
        found=SimpleNamespace(records=lambda rows: {}),
    )  # fmt: skip


@pytest.mark.parametrize(("count", "said"), [(100, True), (99, False)])
def test_either_side_of_poses_anywhere(count, said):
    """A quarter of 400 poses, on every image alike."""
    made = compared(np.tile(BODY, (400, 1, 1)), 400)
    flags = np.zeros(400, bool)
    flags[np.arange(count) * 167 % 400] = True
    told = list(poses._parts(evidence_of(made), made, flags, np.ones(400, bool), "keypoints_permuted", ""))
    assert bool(told) is said


@pytest.mark.parametrize(
    ("far", "labelled", "said"), [(25.5, 8, True), (24.5, 8, False), (25.5, 3, True), (25.5, 2, False)]
)
def test_either_side_of_points_elsewhere(far, labelled, said):
    """Of all people the points lie that far to the right, and so many are labelled."""
    truth = {"images": [], "annotations": [], "categories": [{"id": 1, "name": "person"}]}
    found = []
    for at in range(60):
        truth["images"].append({"id": at, "file_name": f"{at}.jpg", "width": 600, "height": 400})
        box = [100.0 + at, 50.0, 100.0, 100.0]
        body = BODY + np.array([110 + at, 70]) + np.random.default_rng(at).normal(0, 0.1, BODY.shape)
        points = [v for n, (x, y) in enumerate(body.tolist()) for v in ((x, y, 2) if n < labelled else (0, 0, 0))]
        one = {"image_id": at, "category_id": 1, "bbox": box}
        truth["annotations"].append(
            one | {"id": at + 1, "area": 6000.0, "iscrowd": 0, "keypoints": points, "num_keypoints": labelled}
        )
        moved = [v for x, y in body.tolist() for v in (x + far, y, 1)]
        found.append(one | {"keypoints": moved, "score": 0.3 + at / 97})
    assert ("keypoints_misplaced" in check(truth, found).codes) is said


# ---------------------------------------------------------------------------------------------------------------- masks


def test_masks_that_are_shifted_are_counted():
    data, made = shaped_with("masks_shifted", 0.5)
    says = made["masks_off_boxes"].says
    count, x, y = re.search(r": (\d+) of them shifted by ([+-][\d.]+) and ([+-][\d.]+) pixels", says).groups()
    assert 0 < int(count) <= made["masks_off_boxes"].count <= len(data.found)
    by = np.random.default_rng([0, 1])
    by = by.integers(4, 9, 2) * by.choice([-1, 1], 2)
    assert np.abs(np.array([float(x), float(y)]) - by).max() <= 0.5


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ([150, 150, 200, 100], 0),  # an IoU of a half, beside it
        ([150, 150, 201, 100], 1),
        ([100, 100, 200, 200], 0),  # an IoU of a quarter, around it
        ([99, 99, 202, 202], 1),
    ],
)
def test_either_side_of_a_mask_off_its_box(box, said):
    """A mask of 100 x 100 pixels from (150, 150) on."""
    data = {"images": [{"id": 1, "width": 640, "height": 480}], "categories": [{"id": 1, "name": "a"}]}
    drawn = {"segmentation": [[150, 150, 250, 150, 250, 250, 150, 250]], "area": 10_000, "iscrowd": 0}
    data["annotations"] = [{"id": 1, "image_id": 1, "category_id": 1, "bbox": box, **drawn}]
    assert [one.count for one in check(data).findings if one.code == "masks_off_boxes"] == [1] * said


@pytest.mark.parametrize(
    ("by", "count", "back", "said"), [(2.0, 6, 0, 6), (1.9, 6, 0, 0), (2.0, 5, 0, 0), (2.0, 9, 6, 0)]
)
def test_either_side_of_a_shift_of_masks(by, count, back, said):
    boxes = np.tile([50.0, 50, 40, 30], (40, 1))
    bounds = boxes.copy()
    bounds[:count, 0] += by
    bounds[count : count + back, 0] -= by
    assert shifted(boxes, bounds, np.ones(40, bool))[0].sum() == said
    bounds = boxes + np.array([4, 0, -8, 0])  # within its box on both sides
    assert not shifted(boxes, bounds, np.ones(40, bool))[0].any()


# --------------------------------------------------------------------------------------------- scores, and images twice


@pytest.mark.parametrize(("reach", "said"), [(2.0, False), (2.1, True), (-2.0, False), (-2.1, True)])
def test_either_side_of_a_polygon_beyond_its_image(reach, said):
    low, high = np.array([[min(reach, 5.0), 5]]), np.array([[max(reach, 0) + 100, 50]])
    outlines = SimpleNamespace(records=np.array([0]), numbers=np.array([8]), low=low, high=high)
    side = SimpleNamespace(
        role="ground_truth",
        inspected=SimpleNamespace(outlines=outlines),
        rows=np.array([0]),
        sizes=np.full((1, 2), 100.0),
    )
    facts = SimpleNamespace(truth=side, caused=lambda *given: False)
    assert [one.code for one in shapes._polygons(facts)] == ["outside_polygons"] * said
    for rows, records in ((np.zeros(0, int), outlines.records), (side.rows, np.zeros(0, int))):
        side.rows, outlines.records = rows, records  # nothing to compare
        assert list(shapes._polygons(facts)) == []


@pytest.mark.parametrize(("beyond", "said"), [(3.9, False), (4.1, True)])
def test_either_side_of_a_labelled_point_outside_of_its_box(beyond, said):
    """A quarter of its width of 200 pixels, and four pixels."""
    record = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [100.0, 100, 200, 100], "area": 20000.0, "iscrowd": 0}
    record |= {"keypoints": [100 - 50 - beyond, 120, 2, 200, 150, 2], "num_keypoints": 2}
    truth = {
        "images": [{"id": 1, "width": 640, "height": 480}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [record],
    }
    assert ("outside_keypoints" in check(truth, iou_type="keypoints").codes) is said


def test_scores_of_few_digits_are_counted_again():
    data, made = planted("scores_of_half_precision", share=0.1)
    held = np.array([one["score"] for one in data.found])
    assert made["coarse_scores"].count == np.count_nonzero(held.astype(np.float16) == held)
    data, made = planted("scores_of_two_digits_on_a_shard", share=0.1)
    there = within(made["coarse_scores"].says)
    count = sum(len(str(one["score"])) <= 4 for one in data.found if there(one["image_id"]))
    assert made["coarse_scores"].count == count


@pytest.mark.parametrize("name", ["images_under_two_ids", "images_under_two_ids_detected_once"])
def test_images_under_two_ids_are_counted_again(name):
    data, made = planted(name, "sparse", share=0.1)
    new = len(data.truth["images"]) - len(scene(0, "sparse").ids)
    assert 0.3 * new < made["same_image_twice"].count <= new


@pytest.mark.parametrize(("objects", "detections", "said"), [(1, 1, True), (1, 0, False), (2, 0, True), (0, 1, False)])
def test_either_side_of_an_image_under_two_ids(objects, detections, said):
    """Two equal objects, or one and all detections."""
    data = copy.deepcopy(scene(0, "one class")).data()
    boxes = [[11.25, 12.5, 40.0, 30.0], [91.25, 72.5, 41.0, 31.0]]
    for new in (10**6, 10**6 + 5, 10**6 + 7):
        data.truth["images"].append({"id": new, "file_name": f"{new}.jpg", "width": 640, "height": 480})
    for new in (10**6, 10**6 + 7):
        for at in range(objects):
            one = {"image_id": new, "category_id": 1, "bbox": boxes[at], "area": 900.0, "iscrowd": 0}
            data.truth["annotations"].append({**one, "id": new + 10 * at})
        if detections:
            data.found.append({"image_id": new, "category_id": 1, "bbox": [9.5, 11.0, 41.0, 33.0], "score": 0.456789})
    assert ("same_image_twice" in check(data.truth, data.found).codes) is said


def test_objects_at_rest_are_no_image_twice():
    """Two parked cars are on three frames, or on two that follow one another."""
    for frames in ((3, 9, 15), (3, 4)):
        data = copy.deepcopy(scene(0, "one class")).data()
        ids = [one["id"] for one in data.truth["images"]]
        gone = {ids[at] for at in frames}
        data.truth["annotations"] = [one for one in data.truth["annotations"] if one["image_id"] not in gone]
        for at in frames:
            for n, box in enumerate([[11.25, 12.5, 40.0, 30.0], [91.25, 72.5, 41.0, 31.0]]):
                one = {"image_id": ids[at], "category_id": 1, "bbox": box, "area": 900.0, "iscrowd": 0}
                data.truth["annotations"].append({**one, "id": 10**6 + 10 * at + n})
        assert "same_image_twice" not in check(data.truth, data.found).codes


# ------------------------------------------------------------------------------------------------ masks of a low resolution


def staircase(count, step=2, wide=2, first=2, height=80):
    """The ends of the runs of a mask that begins and ends a step lower after so many columns, so many times."""
    columns = np.arange(count * wide)
    return (columns[:, None] * height + first + step * (columns[:, None] // wide) + [0, 40]).ravel()


@pytest.mark.parametrize(
    ("ends", "step"),
    [(staircase(7), 2), (staircase(6), 0), (staircase(7, first=3), 2), (staircase(7, wide=3), 1), (staircase(7, wide=1), 1),
     (staircase(7, step=4), 2), (staircase(7, step=4, wide=4), 4), (staircase(9, step=1), 1),
     (np.append(staircase(7), 2000), 2), (np.append(staircase(7), 2017), 1)],
)  # fmt: skip
def test_either_side_of_the_rows_of_a_mask(ends, step):
    """Fourteen rows are enough, of seven steps; a run that ends with its column does not count; a slope is no staircase."""
    assert shapes.steps(ends, np.array([ends.size]), np.array([80])).tolist() == [step]
    twice = shapes.steps(np.tile(ends, 2), np.array([ends.size, 2 * ends.size]), np.array([80, 80]))
    assert twice.tolist() == [step, step]


def scaled_up(data, chosen, by=2):
    """Draw some detections' ellipses at a lower resolution, and each pixel so many times."""
    sizes = {one["id"]: one for one in data.truth["images"]}
    count = 0
    for at, one in enumerate(data.found):
        image, (x, y, w, h) = sizes[one["image_id"]], one["bbox"]
        rows, columns = np.mgrid[: image["height"], : image["width"]] + 0.5
        if at in chosen:
            rows, columns = (rows // by + 0.5) * by, (columns // by + 0.5) * by
        bitmap = ((columns - x - w / 2) / w) ** 2 + ((rows - y - h / 2) / h) ** 2 <= 0.25
        mask = Masks.from_bitmaps(bitmap[None])
        one["segmentation"] = mask.to_rle()[0]
        drawn = np.flatnonzero(np.diff(np.pad(bitmap, ((1, 0), (0, 0))).astype(int), axis=0).any(axis=1))
        drawn = drawn[drawn > 0]
        count += at in chosen and drawn.size >= 14 and np.gcd.reduce(np.diff(drawn)) > 1
    return count


def test_masks_of_half_the_resolution_are_counted_again():
    data = copy.deepcopy(shaped(0, "masks"))
    large = [at for at, one in enumerate(data.found) if min(one["bbox"][2:]) > 40]
    for chosen, said in ((large[:6], True), (large[:4], False)):
        count = scaled_up(data, set(chosen))
        made = {one.code: one for one in check(data.truth, data.found).findings}
        assert ("coarse_masks" in made) is said
        assert count == len(chosen)
        if said:
            assert made["coarse_masks"].count == count
            assert made["coarse_masks"].records == tuple(chosen)
            assert made["coarse_masks"].says.endswith(": 2 pixels")


# ---------------------------------------------------------------------------------------------------- crowds without a flag


def of_runs(listed, polygons, flagged=0, strings=0):
    """What is said of objects with lists of run lengths, some flagged, beside others with polygons or with strings."""
    runs = {"size": [480, 640], "counts": [480 * 10 + 20, 100, 380, 100, 480 * 640 - 5400]}
    text = Masks.from_rle([runs]).to_rle()[0]
    kinds = [runs] * listed + [[[10, 20, 60, 20, 60, 90]]] * polygons + [text] * strings
    truth = {
        "images": [{"id": 1 + at, "width": 640, "height": 480} for at in range(len(kinds))],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": 1 + at, "image_id": 1 + at, "category_id": 1, "bbox": [10, 20, 50, 70], "area": 1750,
             "segmentation": kind, "iscrowd": int(at < flagged)}
            for at, kind in enumerate(kinds)
        ],
    }  # fmt: skip
    return {one.code: one for one in check(truth).findings}.get("crowds_unflagged")


def test_either_side_of_lists_of_run_lengths_that_are_crowds():
    one = of_runs(3, 60, flagged=1)
    assert (one.count, one.records) == (2, (1, 2))
    assert one.says.endswith(": of 3 with such a list, beside 60 with polygons")
    assert of_runs(3, 60, flagged=3) is None
    assert of_runs(2, 60) is None
    assert of_runs(3, 59) is None  # one in twenty is how some objects are drawn
    assert of_runs(0, 60, strings=3) is None
