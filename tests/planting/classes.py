"""Defects of classes: their ids, names and order."""

from __future__ import annotations

import numpy as np

from planting.data import _box
from planting.registry import _ONE_CLASS, _sizes, _some, plants


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


@plants("repeated_categories", "labels_mixed", "categories_without_detections", "categories_without_objects")
def a_class_under_two_ids(rng, data):
    for i, one in enumerate(_some(rng, data.truth["categories"], 0.05, 0.5, least=1)):
        new = {"id": 400 + i, "name": one["name"].upper() if rng.random() < 0.5 else one["name"]}
        data.truth["categories"].append(new)
        for record in data.truth["annotations"]:
            if record["category_id"] == one["id"] and rng.random() < 0.5:
                record["category_id"] = new["id"]


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
