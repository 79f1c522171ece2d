"""Defects of masks and keypoints."""

from __future__ import annotations

from planting.data import _counts, compressed, rectangle
from planting.registry import _sizes, _some, plants


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


@plants("areas_of_boxes", kind="masks")
def areas_of_boxes_beside_masks(rng, data):
    for one in _some(rng, data.truth["annotations"], 0.3, 1.0):
        one["area"] = one["bbox"][2] * one["bbox"][3]


@plants("crowds_unflagged", kind="masks")
def crowds_without_their_flag(rng, data):
    """Regions of many objects as COCO draws them, by lists of run lengths, which a tool read as objects."""
    for at, image in enumerate(_some(rng, data.truth["images"], 0.01, 0.05, least=3)):
        box = [20, 15, image["width"] - 60, image["height"] - 45]
        counts = _counts(image, box)
        segmentation = {"size": [image["height"], image["width"]], "counts": counts}
        one = {
            "id": 90_000 + at,
            "image_id": image["id"],
            "category_id": data.truth["categories"][0]["id"],
            "iscrowd": 0,
        }
        data.truth["annotations"].append({**one, "bbox": box, "area": sum(counts[1::2]), "segmentation": segmentation})
