"""Clean data sets, and defects that are planted in them at random severities, for what `detmap check` should find.

Nothing here imports the library under test, nor shares a constant with it. A defect is a function of a random generator
and a data set, which it changes; it is registered under the code that should be found. What it brings along and is true
as well (a class of which no detection is left) is named beside it.
"""

from __future__ import annotations

import copy
import string
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Data:
    """Ground truth and results as COCO has them, another ground truth, and judgements and a run as lines."""

    truth: dict
    found: list
    train: dict | None = None
    more: dict = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------------------------- clean


def clean(seed, kind="boxes"):
    """A data set without a defect; every image, category and detection is of its own making."""
    rng = np.random.default_rng(seed)
    many = kind == "boxes"
    images = int(rng.integers(60, 220)) if many else int(rng.integers(25, 50))
    classes = int(rng.integers(4, 15)) if many else int(rng.integers(2, 5))
    shapes = (
        [(640, 480), (480, 640), (500, 375), (1280, 720), (612, 612)] if many else [(160, 120), (120, 160), (144, 96)]
    )
    ids = np.sort(rng.choice(np.arange(10, 600_000), images, replace=False))
    numbers = np.sort(rng.choice(np.arange(3, 200), classes, replace=False))
    weights = rng.dirichlet(np.full(classes, 4.0))
    truth = {
        "images": [
            {"id": int(one), "file_name": f"{int(rng.integers(1e9)):012d}_{place}.jpg", "width": w, "height": h}
            for place, one in enumerate(ids)
            for w, h in [shapes[rng.integers(len(shapes))]]
        ],
        "categories": [
            {
                "id": int(one),
                "name": "".join(rng.choice(list(string.ascii_lowercase), 7)) + " " + string.ascii_uppercase[i],
            }
            for i, one in enumerate(numbers)
        ],
        "annotations": [],
    }
    found = []
    for image in truth["images"]:
        w, h = image["width"], image["height"]
        for _ in range(int(rng.negative_binomial(3, 0.3)) + int(rng.random() < 0.8)):
            number = int(numbers[rng.choice(classes, p=weights)])
            crowd = many and rng.random() < 0.012
            box = _box(rng, w, h, 0.75 if crowd else 0.3)
            record = {"id": len(truth["annotations"]) + 1, "image_id": image["id"], "category_id": number}
            record |= {"bbox": box, "iscrowd": int(crowd), "area": round(box[2] * box[3] * rng.uniform(0.5, 0.8), 3)}
            _with_shape(rng, record, kind, image)
            truth["annotations"].append(record)
            if not crowd and rng.random() < 0.88:
                for again in range(1 + (rng.random() < 0.25)):
                    jitter = rng.normal(0, 0.05 + 0.1 * again, 4)
                    x, y, bw, bh = record["bbox"]
                    near = [x + jitter[0] * bw, y + jitter[1] * bh, bw * np.exp(jitter[2]), bh * np.exp(jitter[3])]
                    label = number if rng.random() < 0.95 else int(numbers[rng.integers(classes)])
                    score = float(rng.beta(5, 2)) * (0.4 if again else 1.0)
                    found.append(_result(rng, image, label, _clipped(near, w, h), score, kind))
        for _ in range(rng.poisson(6)):
            label = int(numbers[rng.choice(classes, p=weights)])
            found.append(_result(rng, image, label, _box(rng, w, h, 0.3), float(rng.beta(0.5, 6)), kind))
    order = rng.permutation(len(found))
    return Data(truth, [found[i] for i in order])


def _box(rng, w, h, share):
    """A box within an image of w x h, with fractions of pixels."""
    bw = float(np.clip(w * share * rng.lognormal(-0.3, 0.6), 6, 0.95 * w))
    bh = float(np.clip(h * share * rng.lognormal(-0.3, 0.6), 6, 0.95 * h))
    return [round(float(v), 2) for v in (rng.uniform(0, w - bw), rng.uniform(0, h - bh), bw, bh)]


def _clipped(box, w, h):
    x1, y1 = max(box[0], 0.0), max(box[1], 0.0)
    x2, y2 = min(box[0] + box[2], w), min(box[1] + box[3], h)
    return [round(float(v), 3) for v in (x1, y1, max(x2 - x1, 2.0), max(y2 - y1, 2.0))]


def _result(rng, image, label, box, score, kind):
    record = {"image_id": image["id"], "category_id": label, "bbox": box, "score": score}
    if kind == "masks":
        record["segmentation"] = rectangle(image, box)
    if kind == "poses":
        record["keypoints"] = _points(rng, box, 5, confidence=True)
    return record


def _with_shape(rng, record, kind, image):
    x, y, w, h = record["bbox"]
    if kind == "masks":
        if rng.random() < 0.3:
            record["segmentation"] = rectangle(image, record["bbox"])
            record["area"] = float(sum(_counts(image, record["bbox"])[1::2]))
        else:
            angle = np.sort(rng.uniform(0, 2 * np.pi, 24))
            angle[:4] = (0, np.pi / 2, np.pi, 3 * np.pi / 2)
            angle = np.sort(angle)
            px, py = x + w / 2 + w / 2 * np.cos(angle), y + h / 2 + h / 2 * np.sin(angle)
            record["segmentation"] = [np.round(np.stack([px, py], 1), 2).ravel().tolist()]
            record["area"] = float(0.5 * abs(np.dot(px, np.roll(py, 1)) - np.dot(py, np.roll(px, 1))))
    if kind == "poses":
        record["keypoints"] = _points(rng, record["bbox"], 5)
        record["num_keypoints"] = sum(v > 0 for v in record["keypoints"][2::3])


def _points(rng, box, count, confidence=False):
    x, y, w, h = box
    out = []
    for _ in range(count):
        flag = 1.0 if confidence else int(rng.integers(3))
        point = [x + w * rng.uniform(0.05, 0.95), y + h * rng.uniform(0.05, 0.95)] if flag else [0, 0]
        out += [round(float(point[0]), 2), round(float(point[1]), 2), flag]
    return out


def _counts(image, box):
    """Run lengths, column by column, of a rectangle."""
    h, w = image["height"], image["width"]
    x1, y1 = round(box[0]), round(box[1])
    x2, y2 = min(max(round(box[0] + box[2]), x1 + 1), w), min(max(round(box[1] + box[3]), y1 + 1), h)
    x1, y1 = min(x1, x2 - 1), min(y1, y2 - 1)
    mask = np.zeros((w, h), np.uint8)
    mask[x1:x2, y1:y2] = 1
    flat = mask.ravel()
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff([0, *edges, flat.size]).tolist()
    return runs if flat[0] == 0 else [0, *runs]


def rectangle(image, box):
    """A rectangle as COCO's compressed run lengths."""
    return {"size": [image["height"], image["width"]], "counts": compressed(_counts(image, box))}


def compressed(counts):
    """Run lengths as COCO's string: five bits a character, low ones first, differences from the fourth on."""
    out = []
    for place, value in enumerate(counts):
        left = int(value) - (int(counts[place - 2]) if place > 2 else 0)
        more = True
        while more:
            bits = left & 31
            left >>= 5
            more = left != (-1 if bits & 16 else 0)
            out.append(chr(48 + (bits | 32 if more else bits)))
    return "".join(out)


# ----------------------------------------------------------------------------------------------------------------- planted

#: Every defect: the code that is to be found, a name, what else is true then, the kind of data, and what plants it.
DEFECTS = []


def plants(code, *also, kind="boxes"):
    """Register a defect."""

    def register(function):
        DEFECTS.append((code, function.__name__, frozenset(also), kind, function))
        return function

    return register


def make(seed, code, name, kind, function):
    """A data set with the defect."""
    del code, name
    data = copy.deepcopy(clean(seed, kind))
    function(np.random.default_rng([seed, 1]), data)
    return data


def _some(rng, records, low=0.05, high=1.0, least=12):
    """A random share of records, log-uniform between two bounds."""
    share = float(np.exp(rng.uniform(np.log(low), np.log(high))))
    count = min(max(int(share * len(records)), least), len(records))
    return [records[i] for i in rng.choice(len(records), count, replace=False)]


def _objects(data):
    return [one for one in data.truth["annotations"] if not one["iscrowd"]]


def _sizes(data):
    return {one["id"]: (one["width"], one["height"]) for one in data.truth["images"]}


_ONE_CLASS = ("categories_without_detections",)
_NO_IMAGE = ("images_without_detections", "missing_shard", *_ONE_CLASS)


@plants("image_ids_shifted", "unknown_images")
def ids_off_by_one(rng, data):
    """Dense ids, all of which detections count from one less or more."""
    place = {one["id"]: i + 1 for i, one in enumerate(data.truth["images"])}
    for one in data.truth["images"]:
        one["id"] = place[one["id"]]
    by = int(rng.choice([-1, 1]))
    for one in data.truth["annotations"]:
        one["image_id"] = place[one["image_id"]]
    for one in data.found:
        one["image_id"] = place[one["image_id"]] + by


@plants("image_ids_shifted", "unknown_images")
def ids_off_by_a_constant(rng, data):
    by = int(rng.integers(1_000_000, 9_000_000))
    for one in data.found:
        one["image_id"] += by


@plants("image_ids_positions", "unknown_images")
def ids_are_places(rng, data):
    first = int(rng.integers(2))
    place = {one["id"]: i + first for i, one in enumerate(data.truth["images"])}
    for one in data.found:
        one["image_id"] = place[one["image_id"]]


@plants("image_ids_type")
def ids_are_text(rng, data):
    for one in data.found:
        one["image_id"] = str(one["image_id"]) if rng is not None else ""


@plants("image_ids_type")
def ids_are_text_in_the_ground_truth(rng, data):
    for one in data.truth["images"]:
        one["id"] = f"{one['id']:012d}" if rng is not None else ""
    for one in data.truth["annotations"]:
        one["image_id"] = f"{one['image_id']:012d}"


@plants("image_ids_type", *_NO_IMAGE)
def some_ids_are_text(rng, data):
    for one in _some(rng, data.found, 0.02, 0.3):
        one["image_id"] = str(one["image_id"])


@plants("image_ids_names")
def ids_are_files(rng, data):
    names = {one["id"]: one["file_name"] for one in data.truth["images"]}
    with_ending = rng.random() < 0.5
    for one in data.found:
        name = names[one["image_id"]]
        one["image_id"] = name if with_ending else name.partition(".")[0]


@plants("unknown_images", "quantised_scores")
def other_images(rng, data):
    """Detections of another split are there too."""
    for one in _some(rng, data.found, 0.02, 0.5):
        data.found.append({**one, "image_id": 700_000 + int(rng.integers(100_000))})


@plants("unlisted_images", "same_image_twice")
def images_left_out_of_the_list(rng, data):
    gone = {one["id"] for one in _some(rng, data.truth["images"], 0.02, 0.3, least=2)}
    data.truth["images"] = [one for one in data.truth["images"] if one["id"] not in gone]
    data.found = [one for one in data.found if one["image_id"] not in gone]


@plants("category_ids_shifted", "unknown_categories", *_ONE_CLASS)
def classes_counted_from_zero(rng, data):
    place = {one["id"]: i + 1 for i, one in enumerate(data.truth["categories"])}
    for one in data.truth["categories"]:
        one["id"] = place[one["id"]]
    for one in data.truth["annotations"]:
        one["category_id"] = place[one["category_id"]]
    by = int(rng.choice([-1, 1]))
    for one in data.found:
        one["category_id"] = place[one["category_id"]] + by


@plants("category_ids_positions", "unknown_categories", *_ONE_CLASS)
def classes_are_places(rng, data):
    first = int(rng.integers(2))
    place = {one["id"]: i + first for i, one in enumerate(data.truth["categories"])}
    for one in data.found:
        one["category_id"] = place[one["category_id"]]


@plants("category_ids_type")
def classes_are_text(rng, data):
    for one in data.found:
        one["category_id"] = str(one["category_id"]) if rng is not None else ""


@plants("category_ids_names")
def classes_are_names(rng, data):
    names = {one["id"]: one["name"] for one in data.truth["categories"]}
    for one in data.found:
        one["category_id"] = names[one["category_id"]] if rng is not None else ""


@plants("classes_renamed", *_ONE_CLASS)
def names_in_another_spelling(rng, data):
    names = {one["id"]: one["name"] for one in data.truth["categories"]}
    for one in data.truth["categories"]:
        one["id"] = one["name"]
    for one in data.truth["annotations"]:
        one["category_id"] = names[one["category_id"]]
    changed = set(_some(rng, sorted(names.values()), 0.1, 1.0, least=1))
    for one in data.found:
        name = names[one["category_id"]]
        one["category_id"] = name.replace(" ", "_").lower() if name in changed else name


@plants("classes_renamed", "classes_permuted", *_ONE_CLASS)
def a_class_of_another_name(rng, data):
    """One frequent class has an id that the ground truth does not have."""
    counts = {}
    for one in data.truth["annotations"]:
        counts[one["category_id"]] = counts.get(one["category_id"], 0) + 1
    frequent = sorted(counts, key=counts.get)[-3:]
    old = frequent[rng.integers(3)]
    for one in data.found:
        if one["category_id"] == old:
            one["category_id"] = 900


@plants("unknown_categories")
def classes_that_nobody_asked_for(rng, data):
    sizes = _sizes(data)
    for one in _some(rng, data.found, 0.02, 0.4):
        w, h = sizes[one["image_id"]]
        box = _box(rng, w, h, 0.2)
        data.found.append(
            {**one, "bbox": box, "category_id": 500 + int(rng.integers(5)), "score": float(rng.beta(1, 8))}
        )


@plants("classes_permuted")
def classes_in_another_order(rng, data):
    ids = [one["id"] for one in data.truth["categories"]]
    count = int(rng.integers(2, len(ids) + 1))
    which = rng.choice(len(ids), count, replace=False)
    turned = dict(zip([ids[i] for i in which], [ids[i] for i in np.roll(which, 1)], strict=True))
    for one in data.found:
        one["category_id"] = turned.get(one["category_id"], one["category_id"])


@plants("classes_disagree")
def classes_at_random(rng, data):
    ids = [one["id"] for one in data.truth["categories"]]
    for one in _some(rng, data.found, 0.85, 1.0):
        one["category_id"] = ids[rng.integers(len(ids))]


@plants("categories_without_objects")
def classes_nobody_drew(rng, data):
    for i in range(int(rng.integers(1, 8))):
        data.truth["categories"].append({"id": 300 + i, "name": f"nothing {i}"})


@plants("categories_without_detections", "images_without_detections", "missing_shard")
def classes_nobody_found(rng, data):
    gone = {one["id"] for one in _some(rng, data.truth["categories"], 0.1, 0.5, least=1)}
    data.found = [one for one in data.found if one["category_id"] not in gone]


@plants("repeated_categories", "categories_without_detections", "categories_without_objects")
def a_class_under_two_ids(rng, data):
    for i, one in enumerate(_some(rng, data.truth["categories"], 0.05, 0.5, least=1)):
        new = {"id": 400 + i, "name": one["name"].upper() if rng.random() < 0.5 else one["name"]}
        data.truth["categories"].append(new)
        for record in data.truth["annotations"]:
            if record["category_id"] == one["id"] and rng.random() < 0.5:
                record["category_id"] = new["id"]


@plants("repeated_image_ids")
def images_listed_twice(rng, data):
    data.truth["images"] += [dict(one) for one in _some(rng, data.truth["images"], 0.02, 0.5, least=1)]


@plants("repeated_ids")
def annotation_ids_again(rng, data):
    for one in _some(rng, data.truth["annotations"], 0.01, 0.5, least=2):
        one["id"] = data.truth["annotations"][0]["id"]


@plants("same_image_twice", "missing_shard", "images_without_detections")
def an_image_under_two_ids(rng, data):
    for i, one in enumerate(_some(rng, data.truth["images"], 0.02, 0.3, least=1)):
        data.truth["images"].append({**one, "id": 800_000 + i})


@plants("same_image_twice", "missing_shard", "images_without_detections", "repeated_ids")
def an_image_under_two_names(rng, data):
    held = {}
    for one in data.truth["annotations"]:
        held.setdefault(one["image_id"], []).append(one)
    full = [one for one in data.truth["images"] if len(held.get(one["id"], ())) >= 5]
    for i, one in enumerate(_some(rng, full, 0.02, 0.3, least=1)):
        data.truth["images"].append({**one, "id": 800_000 + i, "file_name": f"copy_{i}.png"})
        for record in held[one["id"]]:
            data.truth["annotations"].append(
                {**record, "image_id": 800_000 + i, "id": len(data.truth["annotations"]) + 1}
            )


@plants("leakage")
def images_of_the_training_set(rng, data):
    data.train = clean(int(rng.integers(1 << 40))).truth
    for one, other in zip(
        _some(rng, data.truth["images"], 0.02, 0.5, least=1), rng.permutation(data.train["images"]), strict=False
    ):
        other["file_name"] = one["file_name"]
        other["width"], other["height"] = one["width"], one["height"]


@plants("duplicate_objects")
def objects_twice(rng, data):
    for one in _some(rng, _objects(data), 0.01, 0.5, least=2):
        data.truth["annotations"].append({**one, "id": len(data.truth["annotations"]) + 1})


@plants("duplicate_objects")
def objects_nearly_twice(rng, data):
    for one in _some(rng, [r for r in _objects(data) if min(r["bbox"][2:]) > 60], 0.01, 0.5, least=2):
        x, y, w, h = one["bbox"]
        box = [x + 0.4, y + 0.3, w - 0.5, h - 0.6]
        data.truth["annotations"].append({**one, "bbox": box, "id": len(data.truth["annotations"]) + 1})


@plants("duplicate_detections", "quantised_scores", "cap_reached", "beyond_cap")
def detections_twice(rng, data):
    data.found += [dict(one) for one in _some(rng, data.found, 0.01, 1.0)]


@plants("outside_boxes", "area_misfits")
def objects_beyond_the_edge(rng, data):
    sizes = _sizes(data)
    for one in _some(rng, _objects(data), 0.01, 0.3, least=3):
        one["bbox"][0] = sizes[one["image_id"]][0] - float(rng.uniform(0.05, 0.7)) * one["bbox"][2] + 0.25


@plants("outside_boxes")
def detections_beyond_the_edge(rng, data):
    sizes = _sizes(data)
    for one in _some(rng, data.found, 0.01, 0.3, least=3):
        axis = int(rng.integers(2))
        one["bbox"][axis] = sizes[one["image_id"]][axis] - float(rng.uniform(-0.3, 0.6)) * one["bbox"][2 + axis]


@plants("zero_sized_boxes", "area_misfits")
def objects_without_a_side(rng, data):
    for one in _some(rng, _objects(data), 0.005, 0.3, least=1):
        one["bbox"][2 + int(rng.integers(2))] = 0
        one["area"] = 0


@plants("zero_sized_boxes")
def detections_without_a_side(rng, data):
    for one in _some(rng, data.found, 0.005, 0.3, least=1):
        one["bbox"][2 + int(rng.integers(2))] = 0.0


@plants("inverted_boxes", "area_misfits")
def objects_inverted(rng, data):
    for one in _some(rng, _objects(data), 0.005, 0.3, least=1):
        x, y, w, h = one["bbox"]
        one["bbox"] = [x + w, y, -w, h] if rng.random() < 0.5 else [x + w, y + h, -w, -h]


@plants("inverted_boxes")
def detections_inverted(rng, data):
    for one in _some(rng, data.found, 0.005, 0.3, least=1):
        x, y, w, h = one["bbox"]
        one["bbox"] = [x, y + h, w, -h]


def _corners(box):
    x, y, w, h = box
    return [x, y, x + w, y + h]


@plants("corners_as_sizes")
def detections_by_corners(rng, data):
    for one in _some(rng, data.found, 0.1, 1.0):
        one["bbox"] = _corners(one["bbox"])


@plants("corners_as_sizes")
def objects_by_corners(rng, data):
    for one in _some(rng, data.truth["annotations"], 0.1, 1.0):
        one["bbox"] = _corners(one["bbox"])


@plants("corners_as_sizes")
def objects_by_corners_without_detections(rng, data):
    for one in _some(rng, data.truth["annotations"], 0.3, 1.0):
        one["bbox"] = _corners(one["bbox"])
    data.found = None


@plants("centres_as_corners")
def detections_by_centres(rng, data):
    for one in _some(rng, data.found, 0.1, 1.0):
        x, y, w, h = one["bbox"]
        one["bbox"] = [x + w / 2, y + h / 2, w, h]


@plants("normalised_boxes")
def detections_as_fractions(rng, data):
    sizes = _sizes(data)
    for one in _some(rng, data.found, 0.02, 1.0):
        w, h = sizes[one["image_id"]]
        one["bbox"] = [v / s for v, s in zip(one["bbox"], (w, h, w, h), strict=True)]


@plants("normalised_boxes", "area_misfits")
def objects_as_fractions(rng, data):
    sizes = _sizes(data)
    for one in _some(rng, data.truth["annotations"], 0.02, 1.0):
        w, h = sizes[one["image_id"]]
        one["bbox"] = [v / s for v, s in zip(one["bbox"], (w, h, w, h), strict=True)]


@plants("sides_swapped")
def detections_with_sides_swapped(rng, data):
    for one in _some(rng, data.found, 0.2, 1.0):
        x, y, w, h = one["bbox"]
        one["bbox"] = [x, y, h, w]


@plants("axes_swapped")
def detections_with_axes_swapped(rng, data):
    for one in _some(rng, data.found, 0.1, 1.0):
        x, y, w, h = one["bbox"]
        one["bbox"] = [y, x, h, w]


@plants("image_sizes_swapped")
def images_with_sides_swapped(rng, data):
    wide = [one for one in data.truth["images"] if one["width"] != one["height"]]
    for one in _some(rng, wide, 0.2, 1.0, least=20):
        one["width"], one["height"] = one["height"], one["width"]


@plants("scaled_boxes")
def detections_at_another_size(rng, data):
    sizes = _sizes(data)
    side = int(rng.choice([320, 512, 800, 1000]))
    for one in data.found:
        w, h = sizes[one["image_id"]]
        one["bbox"] = [v * side / s for v, s in zip(one["bbox"], (w, h, w, h), strict=True)]


@plants("no_agreement")
def detections_of_other_images(rng, data):
    ids = [one["id"] for one in data.truth["images"]]
    turned = dict(zip(ids, rng.permutation(ids).tolist(), strict=True))
    for one in data.found:
        one["image_id"] = turned[one["image_id"]]


@plants("area_misfits")
def areas_of_another_unit(rng, data):
    for one in _some(rng, _objects(data), 0.02, 1.0):
        one["area"] *= float(rng.choice([4.0, 9.0, 0.001]))


@plants("crowds_misplaced", "categories_without_objects")
def objects_flagged_as_crowds(rng, data):
    for one in _some(rng, _objects(data), 0.06, 0.5, least=25):
        one["iscrowd"] = 1


@plants("bad_values", *_NO_IMAGE)
def scores_of_nan(rng, data):
    for one in _some(rng, data.found, 0.005, 0.2, least=1):
        one["score"] = float("nan")


@plants("bad_values", "images_without_objects")
def boxes_of_three_numbers(rng, data):
    for one in _some(rng, data.truth["annotations"], 0.005, 0.2, least=1):
        one["bbox"] = one["bbox"][:3]


@plants("broken_runs", kind="masks")
def runs_with_other_characters(rng, data):
    for one in _some(rng, data.found, 0.01, 0.3, least=1):
        text = one["segmentation"]["counts"]
        at = int(rng.integers(len(text)))
        one["segmentation"]["counts"] = text[:at] + "~" + text[at + 1 :]


@plants("mismatched_runs", "broken_runs", kind="masks")
def runs_cut_off(rng, data):
    packed = [one for one in data.truth["annotations"] if isinstance(one["segmentation"], dict)]
    for one in _some(rng, packed, 0.1, 0.5, least=1):
        text = one["segmentation"]["counts"]
        one["segmentation"]["counts"] = text[: max(1, len(text) - 4)]


@plants("mask_sizes", "masks_off_boxes", kind="masks")
def masks_of_another_size(rng, data):
    sizes = _sizes(data)
    for one in _some(rng, data.found, 0.02, 1.0):
        w, h = sizes[one["image_id"]]
        image = {"width": w // 2, "height": h // 2}
        one["segmentation"] = rectangle(image, [v / 2 for v in one["bbox"]])


@plants("empty_masks", "masks_off_boxes", kind="masks")
def masks_without_a_pixel(rng, data):
    for one in _some(rng, data.found, 0.01, 0.3, least=1):
        h, w = one["segmentation"]["size"]
        one["segmentation"] = {"size": [h, w], "counts": compressed([h * w])}


@plants("masks_off_boxes", kind="masks")
def masks_of_others(rng, data):
    by_image = {}
    for one in data.found:
        by_image.setdefault(one["image_id"], []).append(one)
    for held in _some(rng, [held for held in by_image.values() if len(held) > 3], 0.1, 1.0, least=3):
        masks = [one["segmentation"] for one in held]
        for one, mask in zip(held, masks[1:] + masks[:1], strict=True):
            one["segmentation"] = mask


@plants("outside_polygons", "masks_off_boxes", "area_misfits", "empty_masks", kind="masks")
def polygons_beyond_the_edge(rng, data):
    sizes = _sizes(data)
    drawn = [one for one in data.truth["annotations"] if isinstance(one["segmentation"], list)]
    for one in _some(rng, drawn, 0.02, 0.5, least=1):
        points = one["segmentation"][0]
        move = sizes[one["image_id"]][0] - max(points[::2]) + float(rng.uniform(5, 40))
        points[::2] = [x + move for x in points[::2]]


@plants("normalised_polygons", "masks_off_boxes", "area_misfits", "empty_masks", kind="masks")
def polygons_as_fractions(rng, data):
    sizes = _sizes(data)
    drawn = [one for one in data.truth["annotations"] if isinstance(one["segmentation"], list)]
    for one in _some(rng, drawn, 0.1, 1.0, least=4):
        w, h = sizes[one["image_id"]]
        one["segmentation"] = [[v / (h if i % 2 else w) for i, v in enumerate(one["segmentation"][0])]]


@plants("odd_polygons", kind="masks")
def polygons_of_two_points(rng, data):
    drawn = [one for one in data.truth["annotations"] if isinstance(one["segmentation"], list)]
    for one in _some(rng, drawn, 0.02, 0.5, least=1):
        one["segmentation"].append(one["segmentation"][0][:4])


@plants("missing_shapes", kind="masks")
def masks_left_out(rng, data):
    for one in _some(rng, data.found, 0.01, 0.3, least=1):
        del one["segmentation"]


@plants("outside_keypoints", kind="poses")
def points_of_other_boxes(rng, data):
    sizes = _sizes(data)
    seen = [one for one in data.truth["annotations"] if any(one["keypoints"][2::3])]
    for one in _some(rng, seen, 0.05, 0.6, least=3):
        w = sizes[one["image_id"]][0]
        x, _, bw, _ = one["bbox"]
        by = (x + 2.0 * bw + 20 if x + bw / 2 < w / 2 else x - 2.0 * bw - 20) - x
        one["keypoints"] = [
            v + by if i % 3 == 0 and one["keypoints"][i + 2] else v for i, v in enumerate(one["keypoints"])
        ]


@plants("keypoint_counts", kind="poses")
def points_miscounted(rng, data):
    for one in _some(rng, data.truth["annotations"], 0.02, 1.0, least=1):
        one["num_keypoints"] += 1


@plants("keypoint_flags", "keypoint_counts", "outside_keypoints", kind="poses")
def points_with_confidence(rng, data):
    for one in _some(rng, data.truth["annotations"], 0.02, 1.0, least=2):
        one["keypoints"][2::3] = [round(float(rng.uniform(0.1, 0.9)), 3) for _ in one["keypoints"][2::3]]


@plants("constant_scores")
def scores_all_alike(rng, data):
    value = float(rng.choice([0.0, 0.5, 1.0]))
    for one in data.found:
        one["score"] = value


@plants("logit_scores")
def scores_ahead_of_the_sigmoid(rng, data):
    shift = float(rng.uniform(-0.5, 0.5))
    for one in data.found:
        p = min(max(one["score"], 1e-6), 1 - 1e-6)
        one["score"] = float(np.log(p / (1 - p)) + shift)


@plants("percentage_scores")
def scores_in_percent(rng, data):
    for one in data.found:
        one["score"] *= 100 if rng is not None else 0


@plants("mixed_scores", "score_cut")
def scores_in_percent_in_part(rng, data):
    for one in _some(rng, data.found, 0.1, 0.7):
        one["score"] *= 100


@plants("quantised_scores", "score_cut")
def scores_of_few_digits(rng, data):
    digits = int(rng.integers(1, 3))
    for one in data.found:
        one["score"] = round(one["score"], digits)


@plants("score_cut", *_NO_IMAGE)
def scores_above_a_threshold(rng, data):
    least = float(rng.uniform(0.3, 0.75))
    data.found = [one for one in data.found if one["score"] >= least]


@plants("cap_reached", *_NO_IMAGE)
def so_many_per_image(rng, data):
    most = int(rng.integers(5, 13))
    kept = {}
    for one in sorted(data.found, key=lambda one: -one["score"]):
        kept.setdefault(one["image_id"], []).append(one)
    data.found = [one for held in kept.values() for one in held[:most]]


@plants("missing_shard", *_ONE_CLASS)
def a_part_is_missing(rng, data):
    parts = int(rng.integers(3, 17))
    ids = [one["id"] for one in data.truth["images"]]
    which = int(rng.integers(parts))
    size = max(-(-len(ids) // parts), 8)
    gone = set(ids[which * size :][:size] or ids[:size]) if rng.random() < 0.5 else set(ids[which::parts] + ids[:4])
    data.found = [one for one in data.found if one["image_id"] not in gone]


@plants("images_without_objects", "no_agreement")
def half_of_the_images_are_empty(rng, data):
    for i in range(len(data.truth["images"]) + int(rng.integers(2, 50))):
        data.truth["images"].append({"id": 800_000 + i, "file_name": f"empty_{i}.jpg", "width": 640, "height": 480})


@plants("unknown_sizes", "outside_boxes")
def images_without_a_size(rng, data):
    for one in _some(rng, data.truth["images"], 0.02, 1.0, least=1):
        del one["width"]


# ---------------------------------------------------------------------------------- what models and their tools do to boxes


@plants("corners_as_sizes")
def detections_by_corners_rows_first(rng, data):
    """top, left, bottom, right: as some libraries return boxes."""
    for one in _some(rng, data.found, 0.2, 1.0):
        x, y, w, h = one["bbox"]
        one["bbox"] = [y, x, y + h, x + w]


def _seen(box, size, way):
    """A box of an image of this width and height as it is on the image that was mirrored or turned."""
    (x, y, w, h), (width, height) = box, size
    if way in ("mirror", "half turn"):
        x = width - x - w
    if way in ("upside down", "half turn"):
        y = height - y - h
    if way == "right":
        return [height - y - h, x, h, w]
    if way == "left":
        return [y, width - x - w, h, w]
    return [x, y, w, h]


@plants("turned_boxes")
def detections_of_mirrored_images(rng, data):
    sizes, way = _sizes(data), str(rng.choice(["mirror", "upside down", "half turn"]))
    for one in data.found:
        one["bbox"] = _seen(one["bbox"], sizes[one["image_id"]], way)


@plants("turned_boxes")
def images_turned_as_exif_says(rng, data):
    """Some photographs were turned when the model saw them, and not when they were annotated."""
    sizes, way = _sizes(data), str(rng.choice(["left", "right", "half turn"]))
    turned = {one["id"] for one in _some(rng, data.truth["images"], 0.1, 0.6)}
    for one in data.found:
        if one["image_id"] in turned:
            one["bbox"] = _seen(one["bbox"], sizes[one["image_id"]], way)


@plants("scaled_boxes")
def detections_in_a_padded_square(rng, data):
    """As the model saw them: the image scaled to a square, in its middle; or scaled back, and the padding left."""
    sizes, side, back = _sizes(data), int(rng.choice([416, 640, 1024])), rng.random() < 0.4
    for one in data.found:
        w, h = sizes[one["image_id"]]
        by = 1.0 if back else side / max(w, h)
        left, top = (max(w, h) - w) / 2 * by, (max(w, h) - h) / 2 * by
        x, y, bw, bh = (v * by for v in one["bbox"])
        one["bbox"] = [x + left, y + top, bw, bh]


@plants("scaled_boxes")
def detections_at_the_shorter_side(rng, data):
    sizes, (short, long) = _sizes(data), ((800, 1333), (600, 1000))[rng.integers(2)]
    for one in data.found:
        by = min(short / min(sizes[one["image_id"]]), long / max(sizes[one["image_id"]]))
        one["bbox"] = [v * by for v in one["bbox"]]


@plants("shifted_boxes", "outside_boxes")
def detections_shifted(rng, data):
    """A border that was cut off."""
    dx, dy = rng.uniform(8, 15, 2) * rng.choice([-1, 1], 2)
    for one in data.found:
        one["bbox"][0] += float(dx)
        one["bbox"][1] += float(dy)


@plants("shifted_boxes", "outside_boxes")
def detections_counted_from_one(rng, data):
    """A detector that is good to a fraction of a pixel, and counts them from 1."""
    held = {one["id"]: one["bbox"] for one in _objects(data)}
    by = float(rng.choice([-1, 1]))
    data.found = []
    for one in _objects(data):
        box = [v + d for v, d in zip(held[one["id"]], (*rng.normal(by, 0.8, 2), *rng.normal(0, 0.8, 2)), strict=True)]
        score = float(rng.beta(5, 2))
        data.found.append({**_only(one, "image_id", "category_id"), "bbox": box, "score": score})
    sizes = _sizes(data)
    for image, (w, h) in sizes.items():
        for _ in range(3):
            number = data.truth["categories"][int(rng.integers(len(data.truth["categories"])))]["id"]
            one = {"image_id": image, "category_id": number, "bbox": _box(rng, w, h, 0.3)}
            data.found.append({**one, "score": float(rng.beta(0.5, 6))})


def _only(record, *fields):
    return {field: record[field] for field in fields}


@plants("inverted_scores")
def scores_that_are_distances(rng, data):
    least = float(rng.uniform(0.0, 0.2))
    for one in data.found:
        one["score"] = 1.0 - (1 - least) * one["score"]


@plants("areas_of_boxes", kind="masks")
def areas_of_boxes_beside_masks(rng, data):
    for one in _some(rng, data.truth["annotations"], 0.3, 1.0):
        one["area"] = one["bbox"][2] * one["bbox"][3]


@plants("duplicate_detections", "quantised_scores", "beyond_cap", "cap_reached")
def a_part_joined_twice(rng, data):
    ids = [one["id"] for one in data.truth["images"]]
    part = set(ids[int(rng.integers(4)) :: 4])
    data.found += [dict(one) for one in data.found if one["image_id"] in part]


@plants("unknown_categories")
def one_class_for_all_that_nobody_has(rng, data):
    number = int(rng.integers(0, 2))
    for one in data.found:
        one["category_id"] = number


@plants("classes_disagree", *_ONE_CLASS)
def one_class_for_all(rng, data):
    counts = {one["id"]: 0 for one in data.truth["categories"]}
    for one in data.truth["annotations"]:
        counts[one["category_id"]] += 1
    rare = sorted(counts, key=counts.get)[0]
    for one in data.found:
        one["category_id"] = rare if rng is not None else 0


@plants("unknown_images")
def detections_of_the_training_set(rng, data):
    others = dict(zip(_sizes(data), rng.choice(10_000_000, len(_sizes(data)), replace=False).tolist(), strict=True))
    for one in data.found:
        one["image_id"] = 1_000_000 + others[one["image_id"]]


@plants("image_ids_names")
def files_with_and_without_ending(rng, data):
    """Both sides go by names of files, one of them without .jpg."""
    names = {one["id"]: one["file_name"] for one in data.truth["images"]}
    short = rng.random() < 0.5
    for one in data.truth["images"]:
        one["id"] = names[one["id"]] if short else names[one["id"]][:-4]
    for one in data.truth["annotations"]:
        one["image_id"] = names[one["image_id"]] if short else names[one["image_id"]][:-4]
    for one in data.found:
        one["image_id"] = names[one["image_id"]][:-4] if short else names[one["image_id"]]
