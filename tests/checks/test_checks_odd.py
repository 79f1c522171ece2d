"""`detmap check` on data that is unusual and right: what is said of it is true, and nothing else is said."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import detmap
from detmap.checks import check
from detmap.shapes import find

#: Every kind of data by name: what makes it, and what may be said of it, as it is true.
WORLDS = {}


def world(*true):
    def register(function):
        WORLDS[function.__name__] = function, set(true)
        return function

    return register


def data(
    rng, images=60, per_image=6.0, classes=5, shape=(640, 480), side=(0.05, 0.4), crowd=0.0, ids=None, numbers=None
):
    """Ground truth: boxes of random sides anywhere on images of one shape, or of one of several."""
    shapes = np.array(shape).reshape(-1, 2)
    ids = list(range(1, images + 1)) if ids is None else ids
    numbers = list(range(1, classes + 1)) if numbers is None else numbers
    truth = {"images": [], "categories": [{"id": one, "name": f"thing {one}"} for one in numbers], "annotations": []}
    for place, one in enumerate(ids):
        w, h = (int(v) for v in shapes[rng.integers(len(shapes))])
        truth["images"].append({"id": one, "file_name": f"{place:06d}.jpg", "width": w, "height": h})
        for _ in range(max(1, int(rng.poisson(per_image)))):
            bw, bh = np.maximum(np.exp(rng.uniform(*np.log(side), 2)) * [w, h], 2.0)
            box = [float(rng.uniform(0, w - bw)), float(rng.uniform(0, h - bh)), float(bw), float(bh)]
            truth["annotations"].append(
                {
                    "id": len(truth["annotations"]) + 1,
                    "image_id": one,
                    "category_id": numbers[rng.integers(len(numbers))],
                    "bbox": box,
                    "area": box[2] * box[3] * rng.uniform(0.5, 0.9),
                    "iscrowd": int(rng.random() < crowd),
                }
            )
    return truth


def detect(rng, truth, recall=0.85, jitter=0.06, false=4.0, right=0.95, digits=None):
    """Detections of it: most objects, some twice, and false ones."""
    sizes = {one["id"]: (one["width"], one["height"]) for one in truth["images"]}
    numbers = [one["id"] for one in truth["categories"]]
    found = []
    for one in truth["annotations"]:
        if rng.random() < recall:
            x, y, w, h = one["bbox"]
            dx, dy, dw, dh = rng.normal(0, jitter, 4)
            label = one["category_id"] if rng.random() < right else numbers[rng.integers(len(numbers))]
            box = [x + dx * w, y + dy * h, w * float(np.exp(dw)), h * float(np.exp(dh))]
            found.append((one["image_id"], label, box, float(rng.beta(5, 2))))
    for one, (w, h) in sizes.items():
        for _ in range(rng.poisson(false)):
            bw, bh = float(rng.uniform(0.03, 0.4) * w), float(rng.uniform(0.03, 0.4) * h)
            box = [float(rng.uniform(0, w - bw)), float(rng.uniform(0, h - bh)), bw, bh]
            found.append((one, numbers[rng.integers(len(numbers))], box, float(rng.beta(0.5, 6))))
    out = []
    for image, label, box, score in found:
        w, h = sizes[image]
        x1, y1, x2, y2 = max(box[0], 0), max(box[1], 0), min(box[0] + box[2], w), min(box[1] + box[3], h)
        box = [x1, y1, max(x2 - x1, 0.5), max(y2 - y1, 0.5)]
        out.append({"image_id": image, "category_id": label, "bbox": [float(v) for v in box], "score": score})
    return out


_FEW = ("categories_without_objects", "categories_without_detections", "images_without_detections")


@world(*_FEW)
def a_handful(rng):
    truth = data(rng, images=int(rng.integers(1, 5)), per_image=2.0, classes=2)
    return truth, detect(rng, truth, false=1.0)


@world("images_without_detections")
def one_class(rng):
    truth = data(rng, classes=1)
    return truth, detect(rng, truth)


@world()
def one_image_of_many_objects(rng):
    truth = data(rng, images=1, per_image=300, side=(0.01, 0.05))
    return truth, detect(rng, truth)


@world("crowds_misplaced", "categories_without_objects", "images_without_objects")
def everything_is_a_crowd(rng):
    truth = data(rng, crowd=1.0, side=(0.3, 0.7), per_image=2.0)
    return truth, detect(rng, truth)


@world("images_without_detections")
def huge_images_and_small_boxes(rng):
    truth = data(rng, images=40, shape=(20_000, 15_000), side=(0.0005, 0.004), per_image=20)
    return truth, detect(rng, truth)


@world("images_without_detections", "duplicate_objects")
def boxes_of_a_few_whole_pixels(rng):
    truth = data(rng, side=(0.004, 0.02), per_image=10)
    for one in truth["annotations"]:
        one["bbox"] = [float(round(v)) for v in one["bbox"]]
        one["area"] = one["bbox"][2] * one["bbox"][3]
    return truth, detect(rng, truth)


@world("constant_scores", "images_without_detections", "copied_boxes")
def ground_truth_as_detections(rng):
    truth = data(rng)
    keys = ("image_id", "category_id", "bbox")
    return truth, [{**{key: one[key] for key in keys}, "score": 1.0} for one in truth["annotations"]]


@world("images_without_detections")
def negative_ids(rng):
    truth = data(rng, ids=list(range(-30, 30)), numbers=[-2, -1, 0, 1])
    return truth, detect(rng, truth)


@world("images_without_detections")
def ids_of_text(rng):
    truth = data(rng, ids=[f"frame_{i:04d}" for i in range(60)], numbers=["cat", "dog", "3"])
    return truth, detect(rng, truth)


@world("bad_values")
def no_areas_and_no_crowds(rng):
    truth = data(rng)
    for one in truth["annotations"]:
        del one["area"], one["iscrowd"]
    return truth, detect(rng, truth)


@world("images_without_detections", "copied_boxes")
def a_perfect_model(rng):
    truth = data(rng)
    return truth, detect(rng, truth, recall=1.0, jitter=0.0, false=0.0, right=1.0)


@world("no_agreement", "images_without_detections")
def a_model_that_guesses(rng):
    truth = data(rng, images=120, side=(0.03, 0.15))
    return truth, detect(rng, truth, recall=0.0, false=9.0)


@world("categories_without_detections", "images_without_detections")
def one_class_of_many_is_detected(rng):
    truth = data(rng, classes=8)
    return truth, [one for one in detect(rng, truth) if one["category_id"] == 3]


@world("categories_without_detections", "categories_without_objects", "images_without_detections")
def a_long_tail(rng):
    truth = data(rng, images=150, classes=600)
    for one in truth["annotations"]:
        one["category_id"] = min(int(rng.zipf(1.4)), 600)
    return truth, detect(rng, truth)


@world("images_without_detections", "labels_mixed")
def two_classes_that_look_alike(rng):
    truth = data(rng, classes=4)
    found = detect(rng, truth)
    for one in found:
        if one["category_id"] in (1, 2) and rng.random() < 0.35:
            one["category_id"] = 3 - one["category_id"]
    return truth, found


@world("images_without_detections")
def a_class_that_is_taken_for_a_common_one(rng):
    """A model that never learned class 5 calls it 1, which is everywhere."""
    truth = data(rng, classes=5)
    for one in truth["annotations"]:
        if rng.random() < 0.6:
            one["category_id"] = 1
    found = detect(rng, truth, right=1.0, false=0.0)
    for one in found:
        one["category_id"] = 1 if one["category_id"] == 5 else one["category_id"]
    number = {one["id"] for one in truth["categories"]} - {one["category_id"] for one in found}
    truth["categories"] = [one for one in truth["categories"] if one["id"] not in number]
    truth["annotations"] = [one for one in truth["annotations"] if one["category_id"] not in number]
    return truth, found


@world("cap_reached")
def three_hundred_queries_for_each_image(rng):
    truth = data(rng, images=30)
    held = {}
    for one in detect(rng, truth, false=340):
        held.setdefault(one["image_id"], []).append(one)
    return truth, [one for rows in held.values() for one in rows[:300]]


@world("images_without_detections")
def pixels_counted_from_one(rng):
    """Boxes touch the last pixel, and reach one beyond."""
    truth = data(rng)
    for one in truth["annotations"][::7]:
        x, y = float(rng.integers(1, 600)), float(rng.integers(1, 440))
        one["bbox"] = [x, y, 641.0 - x, 481.0 - y]
        one["area"] = one["bbox"][2] * one["bbox"][3]
    return truth, detect(rng, truth)


@world("unknown_sizes", "images_without_detections")
def no_sizes(rng):
    truth = data(rng)
    found = detect(rng, truth)
    for one in truth["images"]:
        del one["width"], one["height"]
    return truth, found


@world("unknown_sizes", "images_without_detections", "shares_of_images")
def fractions_on_both_sides(rng):
    truth = data(rng)
    found = detect(rng, truth)
    for one in [*truth["annotations"], *found]:
        one["bbox"] = [v / (640, 480, 640, 480)[i] for i, v in enumerate(one["bbox"])]
        if "area" in one:
            one["area"] = one["bbox"][2] * one["bbox"][3]
    for one in truth["images"]:
        del one["width"], one["height"]
    return truth, found


@world("images_without_detections")
def people_on_a_street(rng):
    truth = data(rng, images=80, classes=1, shape=(1242, 375))
    for one in truth["annotations"]:
        h = float(rng.uniform(40, 200))
        one["bbox"] = [float(rng.uniform(0, 1242 - 0.4 * h)), float(max(190 - h / 2 + rng.normal(0, 8), 0)), 0.4 * h, h]
        one["bbox"][3] = min(one["bbox"][3], 375 - one["bbox"][1])
        one["area"] = one["bbox"][2] * one["bbox"][3]
    return truth, detect(rng, truth)


@world("images_without_detections", "images_without_objects")
def a_detector_that_says_little(rng):
    """Half a detection an image, on any of them alike."""
    truth = data(rng, images=200, per_image=1.0)
    return truth, detect(rng, truth, recall=0.5, false=0.0)


@world("images_without_detections")
def a_single_detection(rng):
    truth = data(rng, images=3, classes=1, per_image=2.0)
    return truth, detect(rng, truth)[:1]


@world("images_without_detections")
def squares_on_square_images(rng):
    truth = data(rng, shape=(512, 512))
    for one in truth["annotations"]:
        x, y, w, _ = one["bbox"]
        one["bbox"] = [x, min(y, 512 - w), w, w]
        one["area"] = w * w
    return truth, detect(rng, truth)


@world("images_without_detections")
def large_boxes_in_the_middle(rng):
    truth = data(rng, images=120, per_image=1.0, classes=3, side=(0.5, 0.9))
    return truth, detect(rng, truth, false=1.0)


@world("images_without_detections", "quantised_scores", "score_cut")
def scores_of_two_digits(rng):
    truth = data(rng)
    found = detect(rng, truth)
    for one in found:
        one["score"] = round(one["score"], 2)
    return truth, found


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", [1])
def test_what_is_unusual_and_right_has_true_findings_alone(name, seed, tmp_path):
    make, true = WORLDS[name]
    assert said(make, seed, tmp_path) <= true


def said(make, seed, folder):
    """The codes that are found."""
    paths = [folder / "truth.json", folder / "found.json"]
    for path, content in zip(paths, make(np.random.default_rng(seed)), strict=True):
        path.write_text(json.dumps(content))
    return set(check(*paths).codes)


def shapes_of(kind, count):
    """A column of a kind, whose images are videos or samples."""
    if kind == "temporal":
        return {"segments": [[0.0, 1.0 + at] for at in range(count)]}
    if kind == "tracks":
        return {"tracks": [[{"size": [8, 9], "counts": [0, 8 + at, 64 - at]}] for at in range(count)]}
    boxes = [[at, 0, 0, 1, 2, 3, 1, 0, 0, 0, 0, 0] for at in range(count)]
    return {"shapes": {kind: find(kind).given(boxes, "")}}


@pytest.mark.parametrize(("kind", "noun"), [("temporal", "video"), ("tracks", "video"), ("centre-distance", "sample")])
def test_findings_name_videos_and_samples(kind, noun):
    """In every sentence and figure, for objects and detections on images of their own, and none on most."""
    ids = {"image_ids": [1, 1, 1], "category_ids": [1, 1, 1], **shapes_of(kind, 3)}
    truth = detmap.GroundTruth.from_arrays(**ids, images=range(1, 9))
    found = detmap.Detections.from_arrays(**{**ids, "image_ids": [77, 77, 78]}, scores=[0.5, 0.25, 0.125])
    report = check(truth, found)
    unknown = "unknown_videos" if kind == "temporal" else "unknown_images"
    assert {unknown, "images_without_objects"} <= set(report.codes)
    text = report.to_text()
    assert f"8 {noun}s" in text
    assert f"objects per {noun}" in text
    assert f"on {noun}s that the ground truth does not have" in text
    assert f"  where   {noun}s 77, 78" in text
    assert not re.search(r"(?<!-)\b[Ii]mages?\b", re.sub(r"\(\w+\)", "", text))  # but for codes of findings
    assert "--unknown-images ignore" in text


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("An image counts twice; is an image read?", "A video counts twice; is a video read?"),
        ("The image ids of 3 images, and each image's size.", "The video ids of 3 videos, and each video's size."),
        ("Images: --image-sizes, images/val, image.jpg", "Videos: --image-sizes, images/val, image.jpg"),
    ],
)
def test_the_noun_of_a_kind(sentence, said):
    assert find("tracks").worded(sentence) == said
    assert find("bbox").worded(sentence) == sentence


def test_labels_of_activitynet_are_no_wrong_ids(tmp_path):
    """Its results name categories, and videos that the ground truth does not have are named: `evaluate` scores them."""
    row = {"segment": [1.0, 5.0], "label": "jump"}
    results = {f"v{at}": [{**row, "score": at / 16}] for at in range(1, 9)}
    truth = {f"v{at}": {"subset": "validation", "annotations": [row]} for at in range(1, 9)}
    paths = tmp_path / "truth.json", tmp_path / "found.json"
    paths[0].write_text(json.dumps({"version": "1", "database": truth}))
    paths[1].write_text(json.dumps({"version": "1", "results": results}))
    assert "category_ids_names" not in check(*paths).codes
    paths[1].write_text(json.dumps({"version": "1", "results": {**results, "w1": [{**row, "score": 0.5}]}}))
    (unknown,) = (one for one in check(*paths).findings if one.code == "unknown_videos")
    assert unknown.severity == "warning"
    truth = detmap.read(paths[0], "ground_truth", iou_type="temporal")
    found = detmap.read(paths[1], "detections", iou_type="temporal", ground_truth=truth)
    assert (
        detmap.evaluate(truth, found, protocol="activitynet").mAP < 1
    )  # a false one among the others, which are right
    assert (unknown.count, unknown.named, unknown.records) == (1, "video", ("w1",))


def test_boxes_on_an_image_without_a_size_are_on_an_unknown_one(tmp_path):
    """YOLO's shares of an image that neither the ground truth nor the table of sizes has."""
    for folder, score in (("labels", ""), ("found", " 0.9")):
        (tmp_path / folder).mkdir()
        for name in ("a", "b", "c"):
            (tmp_path / folder / f"{name}.txt").write_text(f"0 0.5 0.5 0.2 0.2{score}\n")
    (tmp_path / "found" / "z.txt").write_text("0 0.5 0.5 0.2 0.2 0.9\n")
    sizes = dict.fromkeys("abc", (100, 200))
    (unknown,) = (
        one
        for one in check(tmp_path / "labels", tmp_path / "found", image_sizes=sizes).findings
        if one.code == "unknown_images"
    )
    assert unknown.count == 1
