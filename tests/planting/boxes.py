"""Defects of boxes: where they lie, what their numbers mean, and what models and their tools do to them."""

from __future__ import annotations

from planting.data import _box
from planting.registry import _objects, _sizes, _some, plants


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


@plants("scaled_boxes")
def detections_at_another_size(rng, data):
    sizes = _sizes(data)
    side = int(rng.choice([320, 512, 800, 1000]))
    for one in data.found:
        w, h = sizes[one["image_id"]]
        one["bbox"] = [v * side / s for v, s in zip(one["bbox"], (w, h, w, h), strict=True)]


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
