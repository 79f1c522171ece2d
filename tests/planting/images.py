"""Defects of images: their ids, lists, sizes and names, and images of other sets."""

from __future__ import annotations

from planting.data import clean
from planting.registry import _NO_IMAGE, _ONE_CLASS, _sizes, _some, plants


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


@plants("image_ids_rewritten", "missing_shard", "images_without_detections")
def some_ids_have_a_digit_more(rng, data):
    """As where a worker writes the number of a frame behind that of the video."""
    ids = {one["id"] for one in _some(rng, data.truth["images"], 0.1, 0.5)}
    digit = int(rng.integers(10))
    for one in data.found:
        if one["image_id"] in ids:
            one["image_id"] = 10 * one["image_id"] + digit


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


@plants("repeated_image_ids")
def images_listed_twice(rng, data):
    data.truth["images"] += [dict(one) for one in _some(rng, data.truth["images"], 0.02, 0.5, least=1)]


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


@plants("image_sizes_swapped")
def images_with_sides_swapped(rng, data):
    wide = [one for one in data.truth["images"] if one["width"] != one["height"]]
    for one in _some(rng, wide, 0.2, 1.0, least=20):
        one["width"], one["height"] = one["height"], one["width"]


@plants("no_agreement")
def detections_of_other_images(rng, data):
    ids = [one["id"] for one in data.truth["images"]]
    turned = dict(zip(ids, rng.permutation(ids).tolist(), strict=True))
    for one in data.found:
        one["image_id"] = turned[one["image_id"]]


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
