"""Scenes of poses and of masks, as records, and their defects at a severity: the share of images or records concerned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planting.data import Data, clean, compressed, rectangle
from planting.scene_defects import Defect
from planting.scenes import boxes, jittered

SHAPED_KINDS = ("poses", "masks")

#: Points of a person that is seen from the front, as shares of its box, and pairs of left and right.
_BODY = np.array(
    [(0.5, 0.08), (0.54, 0.06), (0.46, 0.06), (0.6, 0.08), (0.4, 0.08), (0.68, 0.24), (0.32, 0.24), (0.78, 0.4), (0.22, 0.4),
     (0.82, 0.52), (0.18, 0.52), (0.6, 0.55), (0.4, 0.55), (0.62, 0.75), (0.38, 0.75), (0.63, 0.94), (0.37, 0.94)]
)  # fmt: skip
EXCHANGED = np.array([0, *(at + 1 if at % 2 else at - 1 for at in range(1, 17))])

SHAPED_DEFECTS = []


@dataclass
class Shaped(Data):
    """Documents of COCO that are planted in as scenes are."""

    classes: int = 1

    def data(self):
        """The documents."""
        return self


def shaped(seed, kind):
    """A clean scene of one of `SHAPED_KINDS`."""
    if kind == "poses":
        return _poses(seed)
    made = clean(seed, "masks")
    return Shaped(made.truth, made.found, classes=len(made.truth["categories"]))


def _poses(seed):
    """People whose points are found to a few hundredths of their size; 3 of 100 with left and right exchanged."""
    rng = np.random.default_rng([seed, 17])
    images = 300
    ids = np.sort(rng.choice(np.arange(10, 600_000), images, replace=False)).tolist()
    sizes = np.array([(640, 480), (480, 640), (1280, 720)])[rng.integers(3, size=images)]
    truth = {
        "images": [
            {"id": one, "file_name": f"{one:012d}.jpg", "width": int(w), "height": int(h)}
            for one, (w, h) in zip(ids, sizes, strict=True)
        ],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [],
    }
    found = []
    image = np.repeat(np.arange(images), rng.poisson(2.5, images) + 1)
    box = boxes(rng, sizes[image])
    near = jittered(rng, box, 0.05, sizes[image])
    hits = rng.random(image.size) < 0.85
    for at, own, other, hit in zip(image.tolist(), box, near, hits.tolist(), strict=True):
        shares = _BODY if rng.random() < 0.7 else _BODY[EXCHANGED]  # from behind
        points = own[:2] + own[2:] * (shares + rng.normal(0, 0.04, shares.shape)).clip(0, 1)
        flags = rng.choice([0, 1, 2], 17, p=[0.25, 0.15, 0.6])
        record = {"id": len(truth["annotations"]) + 1, "image_id": ids[at], "category_id": 1, "iscrowd": 0}
        record |= {"bbox": np.round(own, 2).tolist(), "area": float(0.6 * own[2] * own[3])}
        truth["annotations"].append(record | _written(points, flags) | {"num_keypoints": int((flags > 0).sum())})
        if hit:
            seen = points[EXCHANGED] if rng.random() < 0.03 else points
            seen = seen + rng.normal(0, 0.03, seen.shape) * np.sqrt(own[2] * own[3])
            found.append(_result(ids[at], other, seen, float(rng.beta(5, 2))))
    for at in np.repeat(np.arange(images), rng.poisson(2, images)).tolist():
        (own,) = boxes(rng, sizes[[at]])
        found.append(_result(ids[at], own, own[:2] + own[2:] * _BODY, float(rng.beta(1, 6))))
    return Shaped(truth, found)


def _written(points, flags):
    shown = np.where(flags[:, None] > 0, np.round(points, 1), 0)
    return {"keypoints": [v for (x, y), flag in zip(shown.tolist(), flags.tolist(), strict=True) for v in (x, y, flag)]}


def _result(image, box, points, score):
    record = {"image_id": image, "category_id": 1, "bbox": np.round(box, 2).tolist(), "score": score}
    return record | _written(points, np.ones(len(points), int))


def plants(codes, *also, kind="poses", least=0.02, most=1.0):
    """Register a defect of one kind of shape."""

    def register(function):
        code = codes.split()[0]
        made = Defect(frozenset(codes.split()), function.__name__, frozenset(also), 1, least, most, function, code)
        SHAPED_DEFECTS.append((kind, made))
        return function

    return register


def _of_shard(rng, data, records, share):
    """Records of images that follow one another."""
    ids = [one["id"] for one in data.truth["images"]]
    size = max(round(share * len(ids)), 8)
    first = int(rng.integers(len(ids) - size + 1))
    there = set(ids[first : first + size])
    return [one for one in records if one["image_id"] in there]


def _anywhere(rng, records, share, least=6):
    return [records[at] for at in rng.choice(len(records), max(round(share * len(records)), least), replace=False)]


def _moved(one, change, flags=None):
    """Change the points of a record; those that are not there stay so."""
    values = np.array(one["keypoints"], float).reshape(-1, 3)
    there = (values[:, 2] > 0) | (values[:, :2] != 0).any(axis=1)
    values[there, :2] = change(values[there, :2])
    if flags is not None:
        values[:, 2] = flags(values)
    one["keypoints"] = [v if at % 3 < 2 else int(v) for at, v in enumerate(values.ravel().tolist())]


_OUTSIDE = ("outside_keypoints", "keypoint_counts")


@plants("keypoints_permuted")
def left_and_right_swapped_on_a_shard(rng, data, share):
    """As after a flip of the input that was undone for places alone."""
    for one in _of_shard(rng, data, data.found, share):
        one["keypoints"] = np.array(one["keypoints"]).reshape(-1, 3)[EXCHANGED].ravel().tolist()


@plants("keypoints_permuted")
def left_and_right_swapped_in_labels_of_a_shard(rng, data, share):
    for one in _of_shard(rng, data, data.truth["annotations"], share):
        values = np.array(one["keypoints"]).reshape(-1, 3)[EXCHANGED].ravel().tolist()
        one["keypoints"] = [v if at % 3 < 2 else int(v) for at, v in enumerate(values)]


@plants("keypoints_permuted keypoints_misplaced", "keypoints_misplaced", "keypoints_permuted", least=0.1)
def points_in_another_order(rng, data, share):
    """Those of another tool: the nose, all on the right, all on the left."""
    order = np.array([0, *range(2, 17, 2), *range(1, 17, 2)])
    for one in _of_shard(rng, data, data.found, share):
        one["keypoints"] = np.array(one["keypoints"]).reshape(-1, 3)[order].ravel().tolist()


@plants("keypoints_misplaced", "outside_keypoints")
def points_at_half_of_the_size(rng, data, share):
    for one in _of_shard(rng, data, data.found, share):
        _moved(one, lambda points: points / 2)


@plants("keypoints_misplaced", "outside_keypoints")
def points_of_the_crop(rng, data, share):
    """Counted from the corner of the box, at the size of the model's input."""
    for one in _of_shard(rng, data, data.found, share):
        x, y, w, h = one["bbox"]
        _moved(one, lambda points, x=x, y=y, w=w, h=h: (points - [x, y]) * [192 / w, 256 / h])


@plants("keypoints_misplaced", "outside_keypoints")
def points_as_shares_of_the_image(rng, data, share):
    sizes = {one["id"]: (one["width"], one["height"]) for one in data.truth["images"]}
    for one in _of_shard(rng, data, data.found, share):
        _moved(one, lambda points, size=sizes[one["image_id"]]: points / size)


@plants("keypoints_misplaced outside_keypoints", "keypoints_misplaced", *_OUTSIDE)
def labelled_points_at_another_size(rng, data, share):
    for one in _of_shard(rng, data, data.truth["annotations"], share):
        _moved(one, lambda points: points * 1.5)


@plants("keypoint_visibility", *_OUTSIDE, "keypoints_misplaced")
def every_point_visible(rng, data, share):
    """Also those that are nowhere."""
    for one in _anywhere(rng, data.truth["annotations"], share):
        _moved(one, lambda points: points, lambda values: 2)
        one["num_keypoints"] = 17


@plants("keypoint_visibility", *_OUTSIDE)
def no_point_visible(rng, data, share):
    for one in _anywhere(rng, data.truth["annotations"], share):
        _moved(one, lambda points: points, lambda values: 0)
        one["num_keypoints"] = 0


@plants("masks_off_boxes", "empty_masks", "missing_shapes", kind="masks", least=0.1)
def masks_shifted(rng, data, share):
    """By some pixels in one direction, as by a border that was cut off."""
    by = rng.integers(4, 9, 2) * rng.choice([-1, 1], 2)
    sizes = {one["id"]: one for one in data.truth["images"]}
    for one in _anywhere(rng, data.found, share):
        x, y, w, h = one["bbox"]
        image = sizes[one["image_id"]]
        x, y = min(max(x + by[0], 0), image["width"] - 2), min(max(y + by[1], 0), image["height"] - 2)
        one["segmentation"] = rectangle(
            image, [float(x), float(y), min(w, image["width"] - x), min(h, image["height"] - y)]
        )


@plants("masks_off_boxes", "outside_polygons", "area_misfits", "empty_masks", kind="masks", least=0.1)
def polygons_shifted(rng, data, share):
    by = rng.integers(4, 9, 2) * rng.choice([-1, 1], 2)
    drawn = [one for one in data.truth["annotations"] if isinstance(one["segmentation"], list)]
    for one in _anywhere(rng, drawn, share):
        points = np.array(one["segmentation"][0]).reshape(-1, 2) + by
        one["segmentation"] = [np.round(points, 2).ravel().tolist()]


@plants("coarse_masks", kind="masks", least=0.1)
def masks_at_half_the_resolution(rng, data, share):
    """Ellipses drawn at half of the image's size, each pixel of which becomes four."""
    sizes = {one["id"]: one for one in data.truth["images"]}
    for one in _anywhere(rng, data.found, share, least=20):
        image, (x, y, w, h) = sizes[one["image_id"]], one["bbox"]
        columns, rows = np.mgrid[: image["width"], : image["height"]] // 2 * 2 + 1
        inside = ((columns - x - w / 2) / w) ** 2 + ((rows - y - h / 2) / h) ** 2 <= 0.25
        ends = np.append(np.flatnonzero(np.diff(inside.ravel())) + 1, inside.size)
        counts = np.diff(ends, prepend=0).tolist()
        counts = [0, *counts] if inside[0, 0] else counts
        if len(counts) > 1:
            one["segmentation"] = {"size": [image["height"], image["width"]], "counts": compressed(counts)}
