"""Defects of records: repeated ones, and values that cannot be."""

from __future__ import annotations

from planting.registry import _NO_IMAGE, _objects, _some, plants


@plants("repeated_ids")
def annotation_ids_again(rng, data):
    for one in _some(rng, data.truth["annotations"], 0.01, 0.5, least=2):
        one["id"] = data.truth["annotations"][0]["id"]


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


@plants("cap_reached", *_NO_IMAGE)
def so_many_per_image(rng, data):
    most = int(rng.integers(5, 13))
    kept = {}
    for one in sorted(data.found, key=lambda one: -one["score"]):
        kept.setdefault(one["image_id"], []).append(one)
    data.found = [one for held in kept.values() for one in held[:most]]


@plants("duplicate_detections", "quantised_scores", "beyond_cap", "cap_reached")
def a_part_joined_twice(rng, data):
    ids = [one["id"] for one in data.truth["images"]]
    part = set(ids[int(rng.integers(4)) :: 4])
    data.found += [dict(one) for one in data.found if one["image_id"] in part]
